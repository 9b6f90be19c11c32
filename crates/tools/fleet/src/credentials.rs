//! Identity in a fleet: an nkey. Its public half is the id in the server's configuration; its
//! secret half is in a file with private permissions.

use crate::FleetError;
use nkeys::KeyPair;
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::Path;

/// Role in a fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    Manager,
    Agent,
    /// Reports only the target's machine.
    Watch,
    /// Queries the state, and ends the run.
    Operator,
}

/// The contents of a credentials file.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Credentials {
    pub fleet: String,
    pub role: Role,
    /// The secret half of the nkey.
    seed: String,
}

/// The seed is not for logs.
impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Credentials({} of {})", self.id(), self.fleet)
    }
}

impl Credentials {
    /// Generates new credentials.
    pub fn generate(fleet: &str, role: Role) -> Result<Credentials, FleetError> {
        check_name(fleet)?;
        let seed = KeyPair::new_user().seed();
        let seed =
            seed.map_err(|error| FleetError::new(format!("cannot generate a key: {error}")))?;
        Ok(Credentials { fleet: fleet.to_owned(), role, seed })
    }

    /// Returns the public half: a unique name.
    pub fn id(&self) -> String {
        KeyPair::from_seed(&self.seed).map(|pair| pair.public_key()).unwrap_or_default()
    }

    pub(crate) fn seed(&self) -> &str {
        &self.seed
    }

    /// # Errors
    /// Fails for a file that does not exist, that other users may read, or that has other contents.
    pub fn read(path: &Path) -> Result<Credentials, FleetError> {
        let named = |why: String| FleetError(format!("{}: {why}", path.display()));
        check_mode(path).map_err(named)?;
        let text = std::fs::read_to_string(path).map_err(|error| named(error.to_string()))?;
        let read: Credentials = toml::from_str(&text)
            .map_err(|error| named(format!("not credentials of a fleet: {}", error.message())))?;
        check_name(&read.fleet).map_err(|error| named(error.0))?;
        KeyPair::from_seed(&read.seed).map_err(|_| named("its seed is not an nkey".into()))?;
        Ok(read)
    }

    /// Writes to a new file that only this user may read.
    ///
    /// # Errors
    /// Fails if the file is there already or cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), FleetError> {
        use std::os::unix::fs::OpenOptionsExt;
        let named = |error: std::io::Error| FleetError(format!("{}: {error}", path.display()));
        let text = toml::to_string(self)
            .map_err(|error| FleetError(format!("{}: {error}", path.display())))?;
        let mut options = std::fs::OpenOptions::new();
        let mut file =
            options.write(true).create_new(true).mode(0o600).open(path).map_err(named)?;
        file.write_all(text.as_bytes()).map_err(named)
    }
}

/// Refuses a secret that others can read, as ssh does.
fn check_mode(path: &Path) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(path).map_err(|error| error.to_string())?.permissions().mode();
    if mode & 0o077 == 0 {
        return Ok(());
    }
    Err(format!(
        "other users can read it (mode {:03o}): run chmod 600 on it, and create new credentials if another user read it",
        mode & 0o777
    ))
}

/// Checks the name of a fleet, which is a part of subjects.
fn check_name(fleet: &str) -> Result<(), FleetError> {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
    if !fleet.is_empty() && fleet.len() <= 64 && fleet.chars().all(fits) {
        return Ok(());
    }
    Err(FleetError(format!(
        "{} is not a name of a fleet: up to 64 letters, digits, - and _",
        units::quoted(fleet)
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_load_from_their_file_without_printing_the_seed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("agent.creds");
        let made = Credentials::generate("blue", Role::Agent).unwrap();
        made.write(&path).unwrap();
        let read = Credentials::read(&path).unwrap();
        assert_eq!(read, made);
        assert!(!format!("{read:?}").contains(read.seed()));
        assert!(made.write(&path).is_err(), "an existing file is not written over");
    }

    #[test]
    fn a_file_that_others_may_read_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("agent.creds");
        Credentials::generate("blue", Role::Agent).unwrap().write(&path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        let error = Credentials::read(&path).unwrap_err().to_string();
        assert!(error.contains("other users can read it (mode 640)"), "{error}");
    }

    #[test]
    fn a_name_with_dots_or_stars_is_refused() {
        for name in ["", "a.b", "*", ">", "a b"] {
            assert!(Credentials::generate(name, Role::Agent).is_err(), "{name}");
        }
    }
}
