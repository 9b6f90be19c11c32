//! Answers to challenges: Basic (RFC 7617) and Digest, implemented by the module `login`.

use super::config::Login;
use protocol::http1::fields;
use protocol::login::digest::{self, Answers};

/// A challenge from a server or a proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Challenge {
    Basic {
        realm: String,
    },
    Digest(digest::Challenge),
    /// The name of an unsupported scheme.
    Other(String),
}

impl Challenge {
    pub(super) fn realm(&self) -> &str {
        match self {
            Challenge::Basic { realm } => realm,
            Challenge::Digest(digest) => digest.realm(),
            Challenge::Other(_) => "",
        }
    }

    /// Returns the strongest challenge in the head that can be answered.
    pub(super) fn parse(head: &[u8], field: &str) -> Option<Challenge> {
        if let Some(digest) = digest::challenge(fields::all(head, field)) {
            return Some(Challenge::Digest(digest));
        }
        let mut best = None;
        for value in fields::all(head, field) {
            let text = String::from_utf8_lossy(value).into_owned();
            let (scheme, rest) = text.split_once(' ').unwrap_or((&text, ""));
            let found = match scheme.to_ascii_lowercase().as_str() {
                "digest" => Challenge::Other("Digest with this algorithm".to_owned()),
                "basic" => Challenge::Basic { realm: parameter(rest, "realm").unwrap_or_default() },
                _ => Challenge::Other(scheme.to_owned()),
            };
            let is_basic = matches!(found, Challenge::Basic { .. });
            if best.is_none() || (is_basic && matches!(best, Some(Challenge::Other(_)))) {
                best = Some(found);
            }
        }
        best
    }
}

/// Returns a parameter of a challenge; quoted or not.
fn parameter(text: &str, name: &str) -> Option<String> {
    let mut rest = text;
    while let Some((found, value)) = rest.split_once('=') {
        let found = found.trim_matches([' ', ',', '\t']);
        let value = value.trim_start();
        let (value, behind) = match value.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => value.split_once(',').unwrap_or((value, "")),
        };
        if found.eq_ignore_ascii_case(name) {
            return Some(value.trim().to_owned());
        }
        rest = behind;
    }
    None
}

/// A login for a challenge, ready for the user's next request.
#[derive(Clone, Debug)]
pub(super) enum Pass {
    Basic(Login),
    Digest(Box<Answers>),
}

impl Pass {
    /// Creates the credentials that answer a challenge; `None` for an unsupported scheme. `random`:
    /// source of the client's nonce.
    pub(super) fn new(login: Login, challenge: Challenge, random: u64) -> Option<Pass> {
        match challenge {
            Challenge::Basic { .. } => Some(Pass::Basic(login)),
            Challenge::Digest(asked) => {
                let cnonce = format!("{random:016x}");
                let answers = Answers::new(asked, &login.user, &login.password, cnonce);
                Some(Pass::Digest(Box::new(answers)))
            }
            Challenge::Other(_) => None,
        }
    }

    /// Returns the field's value for a request.
    pub(super) fn value(&mut self, method: &str, uri: &str) -> Option<String> {
        match self {
            Pass::Basic(Login { user, password, .. }) => {
                protocol::http1::request::basic_authorization(user, password).ok()
            }
            Pass::Digest(answers) => Some(answers.authorization(method, uri)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn challenge(line: &str) -> Option<Challenge> {
        let head = format!("HTTP/1.1 401 Unauthorized\r\n{line}\r\n\r\n");
        Challenge::parse(head.as_bytes(), "www-authenticate")
    }

    #[test]
    fn the_best_challenge_is_chosen() {
        let both = "WWW-Authenticate: Basic realm=\"a\"\r\nWWW-Authenticate: Digest realm=\"b\", \
                    nonce=\"n\"";
        assert_eq!(challenge(both).expect("two").realm(), "b");
        assert_eq!(challenge("WWW-Authenticate: NTLM"), Some(Challenge::Other("NTLM".into())));
        assert_eq!(challenge("X: y"), None);
        let foreign = challenge("WWW-Authenticate: Digest realm=\"b\", algorithm=SHA-512-256");
        assert!(matches!(foreign, Some(Challenge::Other(_))));
        let weak = "WWW-Authenticate: NTLM\r\nWWW-Authenticate: Basic realm=\"a\"";
        assert_eq!(challenge(weak).expect("two").realm(), "a");
    }

    #[test]
    fn a_digest_is_answered_request_by_request() {
        let asked = "WWW-Authenticate: Digest realm=\"b\", nonce=\"n\", qop=\"auth\"";
        let login = Login::parse("Mufasa:Circle of Life");
        let mut pass = Pass::new(login, challenge(asked).expect("one"), 7).expect("a pass");
        let first = pass.value("GET", "/").expect("an answer");
        assert!(first.contains("nc=00000001, cnonce=\"0000000000000007\""), "{first}");
        assert!(pass.value("GET", "/").expect("an answer").contains("nc=00000002"));
    }
}
