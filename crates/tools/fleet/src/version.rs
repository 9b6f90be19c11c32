//! Versions of nats-server, and known faults of some.

use crate::FleetError;

/// Version such as `2.9.10`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServerVersion(pub u32, pub u32, pub u32);

/// First version of each line with the security fixes of 2026; later release lines have the fixes.
const FIXED: [ServerVersion; 3] =
    [ServerVersion(2, 11, 16), ServerVersion(2, 12, 7), ServerVersion(2, 14, 0)];
/// Oldest tested version.
const OLDEST: ServerVersion = ServerVersion(2, 9, 0);

impl std::fmt::Display for ServerVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

impl ServerVersion {
    /// Parses `nats-server: v2.9.10` or `2.9.10`.
    ///
    /// # Errors
    /// Fails if there is no version in it.
    pub fn parse(text: &str) -> Result<ServerVersion, FleetError> {
        let word = text.split_whitespace().last().unwrap_or_default();
        let word = word.trim_start_matches('v');
        let mut parts = word.split(['.', '-', '+']).map(str::parse::<u32>);
        match (parts.next(), parts.next(), parts.next()) {
            (Some(Ok(major)), Some(Ok(minor)), Some(Ok(patch))) => {
                Ok(ServerVersion(major, minor, patch))
            }
            _ => {
                Err(FleetError(format!("{} is not a version of nats-server", units::quoted(text))))
            }
        }
    }

    /// # Errors
    /// Fails if the version is too old for the fleet.
    pub fn check(self) -> Result<(), FleetError> {
        if self >= OLDEST {
            return Ok(());
        }
        Err(FleetError(format!(
            "nats-server {self} is too old: install {OLDEST} or later, or name a server with --nats URL"
        )))
    }

    /// Returns a warning about a server of this version that is reached over a network.
    pub fn warning(self) -> Option<String> {
        let line = FIXED.iter().find(|fixed| (fixed.0, fixed.1) == (self.0, self.1));
        let newest = FIXED[FIXED.len() - 1];
        let fixed = line.map_or(self >= newest, |line| self >= *line);
        (!fixed).then(|| {
            format!(
                "nats-server {self} lacks security fixes of 2026: use 2.11.16, 2.12.7, 2.14.0 or \
                 later on a network"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_and_judged() {
        let debian = ServerVersion::parse("nats-server: v2.9.10\n").unwrap();
        assert_eq!(debian, ServerVersion(2, 9, 10));
        assert!(debian.check().is_ok());
        assert!(debian.warning().unwrap().contains("2.9.10 lacks security fixes"));
        for (text, warned) in [
            ("2.11.15", true),
            ("2.11.16", false),
            ("2.12.6", true),
            ("2.12.7-RC.1", false),
            ("2.13.9", true),
            ("2.14.0", false),
            ("2.15.2", false),
            ("3.0.0", false),
        ] {
            assert_eq!(ServerVersion::parse(text).unwrap().warning().is_some(), warned, "{text}");
        }
        assert!(ServerVersion::parse("nothing").is_err());
        assert!(ServerVersion(2, 8, 4).check().unwrap_err().0.contains("--nats URL"));
    }
}
