//! Fingerprints: how software names itself, and how it replies to the questions.

/// The reply of one software to one question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trait {
    /// The question's name.
    pub question: &'static str,
    /// Weight among the traits of its fingerprint: replies that depend on pages and settings have
    /// the lowest.
    pub weight: u32,
    /// The signature of the reply; a trailing `*` matches any rest.
    pub signature: &'static str,
}

impl Trait {
    pub const fn new(question: &'static str, weight: u32, signature: &'static str) -> Trait {
        Trait { question, weight, signature }
    }

    pub(crate) fn fits(&self, signature: &str) -> bool {
        match self.signature.strip_suffix('*') {
            Some(beginning) => signature.starts_with(beginning),
            None => signature == self.signature,
        }
    }
}

/// Distinguishing features of a software.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    pub software: &'static str,
    /// Prefixes of its claim without the version, case-insensitive. Empty: a library, which leaves
    /// the claim to the program.
    pub claims: &'static [&'static str],
    pub traits: &'static [Trait],
}

impl Fingerprint {
    /// Returns the version in a claim of this software; empty if there is none.
    pub fn version<'a>(&self, claim: &'a str) -> Option<&'a str> {
        // the longest name wins: the text after a shorter one is the rest of the name
        let fits = self.claims.iter().filter_map(|known| {
            let (name, rest) = claim.split_at_checked(known.len())?;
            // the name must end here, not only start like this one
            let open = known.ends_with(|c: char| !c.is_ascii_alphanumeric());
            let ends = open || rest.is_empty() || rest.starts_with(['/', ' ', '-', '(']);
            (ends && name.eq_ignore_ascii_case(known)).then_some(rest)
        });
        fits.min_by_key(|rest| rest.len()).map(first_version)
    }
}

/// Returns `1.22.1` from `/1.22.1 (Debian)`.
fn first_version(rest: &str) -> &str {
    let Some(rest) = rest.strip_prefix(['/', ' ', '-']).or(Some(rest)) else { return "" };
    let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(rest.len());
    rest[..end].trim_end_matches('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_parsed_from_claims() {
        let one =
            |claims: &'static [&'static str]| Fingerprint { software: "", claims, traits: &[] };
        for (claims, claim, version) in [
            (&["nginx"][..], "nginx/1.22.1", Some("1.22.1")),
            (&["nginx"], "nginx", Some("")),
            (&["nginx"], "nginx-rc", Some("")),
            (&["nginx"], "nginxx/1", None),
            (&["Apache"], "Apache/2.4.71 (Debian)", Some("2.4.71")),
            (&["SimpleHTTP/0.6 Python/"], "SimpleHTTP/0.6 Python/3.11.7", Some("3.11.7")),
            (&["Knot DNS"], "Knot DNS 3.2.6", Some("3.2.6")),
            (&["dnsmasq"], "dnsmasq-2.90", Some("2.90")),
            (&["Caddy"], "caddy", Some("")),
            (&["é"], "e", None),
        ] {
            assert_eq!(one(claims).version(claim), version, "{claim}");
        }
    }
}
