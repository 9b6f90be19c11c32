//! Answers to challenges: Basic (RFC 7617) and Digest (RFC 7616, and RFC 2617 where a server names
//! no quality of protection).

use super::config::Login;
use md5::{Digest, Md5};
use sha2::Sha256;
use wire::fields;

/// What a server or a proxy asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Challenge {
    Basic {
        realm: String,
    },
    Digest(DigestChallenge),
    /// A scheme that is not spoken here: its name.
    Other(String),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct DigestChallenge {
    realm: String,
    nonce: String,
    opaque: Option<String>,
    algorithm: Option<String>,
    /// The server offers `auth`.
    qop: bool,
}

impl Challenge {
    pub(super) fn realm(&self) -> &str {
        match self {
            Challenge::Basic { realm } => realm,
            Challenge::Digest(digest) => &digest.realm,
            Challenge::Other(_) => "",
        }
    }

    /// The strongest that the head holds and that can be answered.
    pub(super) fn of(head: &[u8], field: &str) -> Option<Challenge> {
        let mut best = None;
        for value in fields::all(head, field) {
            let text = String::from_utf8_lossy(value).into_owned();
            let (scheme, rest) = text.split_once(' ').unwrap_or((&text, ""));
            let found = match scheme.to_ascii_lowercase().as_str() {
                "digest" => match digest(rest) {
                    Some(digest) => Challenge::Digest(digest),
                    None => Challenge::Other("Digest with an algorithm of its own".to_owned()),
                },
                "basic" => Challenge::Basic { realm: parameter(rest, "realm").unwrap_or_default() },
                _ => Challenge::Other(scheme.to_owned()),
            };
            let rank = |challenge: &Challenge| match challenge {
                Challenge::Digest(_) => 2,
                Challenge::Basic { .. } => 1,
                Challenge::Other(_) => 0,
            };
            if best.as_ref().is_none_or(|known| rank(&found) > rank(known)) {
                best = Some(found);
            }
        }
        best
    }
}

fn digest(text: &str) -> Option<DigestChallenge> {
    let algorithm = parameter(text, "algorithm");
    let known = ["MD5", "MD5-sess", "SHA-256", "SHA-256-sess"];
    let fits = |name: &str| known.iter().any(|known| known.eq_ignore_ascii_case(name));
    if !algorithm.as_deref().is_none_or(fits) {
        return None;
    }
    let qop = parameter(text, "qop");
    let auth = |list: &str| list.split(',').any(|each| each.trim().eq_ignore_ascii_case("auth"));
    if !qop.as_deref().is_none_or(auth) {
        return None;
    }
    Some(DigestChallenge {
        realm: parameter(text, "realm").unwrap_or_default(),
        nonce: parameter(text, "nonce").unwrap_or_default(),
        opaque: parameter(text, "opaque"),
        algorithm,
        qop: qop.is_some(),
    })
}

/// A parameter of a challenge; quoted or not.
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

/// A login that a user has been asked for, ready for its next request.
#[derive(Clone, Debug)]
pub(super) struct Pass {
    login: Login,
    challenge: Challenge,
    /// Requests made with the challenge's nonce; the client's own nonce.
    count: u32,
    cnonce: String,
}

impl Pass {
    /// `random`: what the client's nonce is made of.
    pub(super) fn new(login: Login, challenge: Challenge, random: u64) -> Pass {
        Pass { login, challenge, count: 0, cnonce: format!("{random:016x}") }
    }

    /// The field's value for a request.
    pub(super) fn value(&mut self, method: &str, uri: &str) -> Option<String> {
        let Login { user, password, .. } = &self.login;
        match &self.challenge {
            Challenge::Basic { .. } => wire::request::basic_authorization(user, password).ok(),
            Challenge::Digest(challenge) => {
                self.count += 1;
                Some(answered(challenge, &self.login, &self.cnonce, self.count, method, uri))
            }
            Challenge::Other(_) => None,
        }
    }
}

/// RFC 7616 section 3.4.
fn answered(
    challenge: &DigestChallenge,
    login: &Login,
    cnonce: &str,
    count: u32,
    method: &str,
    uri: &str,
) -> String {
    let DigestChallenge { realm, nonce, opaque, algorithm, qop } = challenge;
    let Login { user, password, .. } = login;
    let named = algorithm.as_deref().unwrap_or("MD5").to_ascii_uppercase();
    let hash = |text: String| {
        if named.starts_with("SHA-256") {
            hex(&Sha256::digest(text.as_bytes()))
        } else {
            hex(&Md5::digest(text.as_bytes()))
        }
    };
    let mut a1 = hash(format!("{user}:{realm}:{password}"));
    if named.ends_with("-SESS") {
        a1 = hash(format!("{a1}:{nonce}:{cnonce}"));
    }
    let a2 = hash(format!("{method}:{uri}"));
    let response = if *qop {
        hash(format!("{a1}:{nonce}:{count:08x}:{cnonce}:auth:{a2}"))
    } else {
        hash(format!("{a1}:{nonce}:{a2}"))
    };
    let mut out = format!(
        "Digest username=\"{user}\", realm=\"{realm}\", nonce=\"{nonce}\", uri=\"{uri}\", \
         response=\"{response}\""
    );
    if let Some(algorithm) = algorithm {
        put!(out, ", algorithm={algorithm}");
    }
    if let Some(opaque) = opaque {
        put!(out, ", opaque=\"{opaque}\"");
    }
    if *qop {
        put!(out, ", qop=auth, nc={count:08x}, cnonce=\"{cnonce}\"");
    } else if named.ends_with("-SESS") {
        put!(out, ", cnonce=\"{cnonce}\"");
    }
    out
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn challenge(line: &str) -> Option<Challenge> {
        let head = format!("HTTP/1.1 401 Unauthorized\r\n{line}\r\n\r\n");
        Challenge::of(head.as_bytes(), "www-authenticate")
    }

    /// The example of RFC 7616 section 3.9.1.
    #[test]
    fn digests_are_those_of_the_standard() {
        for (algorithm, response) in [
            ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
            ("SHA-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
        ] {
            let line = format!(
                "WWW-Authenticate: Digest realm=\"http-auth@example.org\", qop=\"auth, auth-int\", \
                 algorithm={algorithm}, nonce=\"7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v\", \
                 opaque=\"FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS\""
            );
            let Some(Challenge::Digest(found)) = challenge(&line) else { panic!("no digest") };
            let login = Login::parse("Mufasa:Circle of Life");
            let cnonce = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ";
            let value = answered(&found, &login, cnonce, 1, "GET", "/dir/index.html");
            assert!(value.contains(&format!("response=\"{response}\"")), "{value}");
            assert!(value.contains("nc=00000001"), "{value}");
        }
    }

    #[test]
    fn the_best_challenge_is_taken() {
        let both = "WWW-Authenticate: Basic realm=\"a\"\r\nWWW-Authenticate: Digest realm=\"b\", \
                    nonce=\"n\"";
        assert_eq!(challenge(both).expect("two").realm(), "b");
        assert_eq!(challenge("WWW-Authenticate: NTLM"), Some(Challenge::Other("NTLM".into())));
        assert_eq!(challenge("X: y"), None);
        let foreign = challenge("WWW-Authenticate: Digest realm=\"b\", algorithm=SHA-512-256");
        assert!(matches!(foreign, Some(Challenge::Other(_))));
    }
}
