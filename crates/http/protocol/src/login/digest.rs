//! HTTP Digest access authentication (RFC 7616) with SHA-256 and MD5, with their session forms, and
//! with `qop=auth` or, for old servers, without a quality of protection (RFC 2069).
//!
//! `auth-int`, SHA-512-256 and hashed user names are not supported: a challenge that requires them
//! cannot be answered.

use md5::{Digest as _, Md5};
use sha2::Sha256;
use units::hex;

/// Challenge from a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge {
    realm: String,
    nonce: String,
    opaque: Option<String>,
    algorithm: Algorithm,
    /// The algorithm's name as the server wrote it; `None` if absent.
    algorithm_name: Option<String>,
    /// The nonce before was too old, and name and password were right.
    pub stale: bool,
    /// True if `qop=auth` is offered.
    qop: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Algorithm {
    hash: Hash,
    /// The hash of name and password has the first nonces in it.
    session: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Hash {
    Md5,
    Sha256,
}

impl Hash {
    fn hex_digest(self, text: &str) -> String {
        match self {
            Hash::Md5 => hex(Md5::digest(text.as_bytes())),
            Hash::Sha256 => hex(Sha256::digest(text.as_bytes())),
        }
    }
}

/// Returns the strongest of the challenges in the values of WWW-Authenticate fields that can be
/// answered. A field may hold several, of any scheme.
pub fn challenge<'a>(fields: impl Iterator<Item = &'a [u8]>) -> Option<Challenge> {
    let all = fields.filter_map(|field| std::str::from_utf8(field).ok()).flat_map(schemes);
    let known = all.filter(|scheme| scheme.name.eq_ignore_ascii_case("digest"));
    // of two that are equally strong the first, which the server prefers
    let known: Vec<Challenge> = known.filter_map(|scheme| of_scheme(&scheme)).collect();
    known.into_iter().rev().max_by_key(|one| one.algorithm.hash)
}

struct Scheme {
    name: String,
    parameters: Vec<(String, String)>,
}

/// Returns the challenges of a field (RFC 9110 section 11.6.1): a name without a value begins one.
fn schemes(field: &str) -> Vec<Scheme> {
    let mut all: Vec<Scheme> = Vec::new();
    let mut rest = field;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        let end = rest.find([' ', '\t', ',', '=']).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        if rest.is_empty() {
            return all;
        }
        let value = after.trim_start_matches([' ', '\t']).strip_prefix('=');
        let Some(value) = value else {
            all.push(Scheme { name: name.to_owned(), parameters: Vec::new() });
            rest = after;
            continue;
        };
        let (value, after) = parameter(value.trim_start_matches([' ', '\t']));
        if let Some(scheme) = all.last_mut() {
            scheme.parameters.push((name.to_ascii_lowercase(), value));
        }
        rest = after;
    }
}

/// Parses a token or a quoted string; returns the rest too.
fn parameter(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([' ', '\t', ',']).unwrap_or(text.len());
        return (text[..end].to_owned(), &text[end..]);
    };
    let (mut value, mut escaped) = (String::new(), false);
    for (at, char) in quoted.char_indices() {
        match char {
            '\\' if !escaped => escaped = true,
            '"' if !escaped => return (value, &quoted[at + 1..]),
            char => {
                value.push(char);
                escaped = false;
            }
        }
    }
    (value, "")
}

fn of_scheme(scheme: &Scheme) -> Option<Challenge> {
    let find = |name: &str| {
        let found = scheme.parameters.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.clone())
    };
    let algorithm_name = find("algorithm");
    let name = algorithm_name.as_deref().unwrap_or("MD5").to_ascii_lowercase();
    let (name, session) = name.strip_suffix("-sess").map_or((&*name, false), |name| (name, true));
    let hash = match name {
        "md5" => Hash::Md5,
        "sha-256" => Hash::Sha256,
        _ => return None,
    };
    let qop = find("qop");
    let auth = |list: &String| list.split(',').any(|it| it.trim().eq_ignore_ascii_case("auth"));
    let with_qop = qop.as_ref().is_some_and(auth);
    if qop.is_some() && !with_qop {
        return None;
    }
    Some(Challenge {
        realm: find("realm").unwrap_or_default(),
        nonce: find("nonce")?,
        opaque: find("opaque"),
        algorithm: Algorithm { hash, session },
        algorithm_name,
        stale: find("stale").is_some_and(|stale| stale.eq_ignore_ascii_case("true")),
        qop: with_qop,
    })
}

impl Challenge {
    /// Returns the realm of the requested credentials; empty if the server does not name it.
    pub fn realm(&self) -> &str {
        &self.realm
    }
}

/// A challenge that consecutive requests answer: each uses the nonce's next count.
#[derive(Clone, Debug)]
pub struct Answers {
    challenge: Challenge,
    cnonce: String,
    /// Hash of name, realm and password.
    secret: String,
    user: String,
    /// Number of requests so far.
    count: u32,
}

impl Answers {
    /// Prepares the responses to a challenge.
    /// `cnonce`: the client's own nonce, unpredictable and of visible characters.
    pub fn new(challenge: Challenge, user: &str, password: &str, cnonce: String) -> Answers {
        let Algorithm { hash, session } = challenge.algorithm;
        let mut secret = hash.hex_digest(&format!("{user}:{}:{password}", challenge.realm));
        if session {
            secret = hash.hex_digest(&format!("{secret}:{}:{cnonce}", challenge.nonce));
        }
        Answers { challenge, cnonce, secret, user: user.to_owned(), count: 0 }
    }

    /// Returns the value of the Authorization field of the next request; `uri`: its target as it is
    /// sent.
    pub fn authorization(&mut self, method: &str, uri: &str) -> String {
        self.count = self.count.wrapping_add(1);
        let Challenge { realm, nonce, opaque, algorithm, algorithm_name, qop, .. } =
            &self.challenge;
        let hash = algorithm.hash;
        let request = hash.hex_digest(&format!("{method}:{uri}"));
        let (count, cnonce, secret) = (format!("{:08x}", self.count), &self.cnonce, &self.secret);
        let response = match qop {
            true => hash.hex_digest(&format!("{secret}:{nonce}:{count}:{cnonce}:auth:{request}")),
            false => hash.hex_digest(&format!("{secret}:{nonce}:{request}")),
        };
        let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
        let mut value = format!(
            "Digest username=\"{}\", realm=\"{}\", nonce=\"{}\", uri=\"{}\"",
            quoted(&self.user),
            quoted(realm),
            quoted(nonce),
            quoted(uri)
        );
        if let Some(name) = algorithm_name {
            value.push_str(&format!(", algorithm={name}"));
        }
        if *qop {
            value.push_str(&format!(", qop=auth, nc={count}, cnonce=\"{}\"", quoted(cnonce)));
        } else if algorithm.session {
            value.push_str(&format!(", cnonce=\"{}\"", quoted(cnonce)));
        }
        value.push_str(&format!(", response=\"{response}\""));
        if let Some(opaque) = opaque {
            value.push_str(&format!(", opaque=\"{}\"", quoted(opaque)));
        }
        value
    }
}

/// Returns whether the value of an Authorization field answers the challenge for this request, with
/// that name and password. Any count of the nonce is accepted.
pub fn is_answered(
    challenge: &Challenge,
    field: &str,
    (method, uri): (&str, &str),
    (user, password): (&str, &str),
) -> bool {
    let all = schemes(field);
    let Some(given) = all.iter().find(|one| one.name.eq_ignore_ascii_case("digest")) else {
        return false;
    };
    let find = |name: &str| {
        let found = given.parameters.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value.as_str())
    };
    let count = u32::from_str_radix(find("nc"), 16).ok().filter(|count| *count > 0);
    let (Some(count), true) = (count, challenge.qop) else { return false };
    if find("username") != user || find("nonce") != challenge.nonce || find("uri") != uri {
        return false;
    }
    let mut answers = Answers::new(challenge.clone(), user, password, find("cnonce").to_owned());
    answers.count = count - 1;
    let wanted = answers.authorization(method, uri);
    wanted.contains(&format!(", response=\"{}\"", find("response")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn one(field: &str) -> Option<Challenge> {
        challenge([field.as_bytes()].into_iter())
    }

    fn part<'a>(value: &'a str, name: &str) -> &'a str {
        let from = value.split(&format!("{name}=")).nth(1).unwrap_or("");
        from.split([',']).next().unwrap_or("").trim_matches('"')
    }

    #[test]
    fn valid_and_invalid_answers_are_distinguished() {
        let asked =
            one("Digest realm=\"r\", qop=\"auth\", algorithm=SHA-256, nonce=\"n\"").unwrap();
        let mut answers = Answers::new(asked.clone(), "fred", "rocks", "c".to_owned());
        answers.authorization("GET", "/a");
        let right = answers.authorization("GET", "/a");
        let is = |field: &str, request, login| is_answered(&asked, field, request, login);
        assert!(is(&right, ("GET", "/a"), ("fred", "rocks")), "{right}");
        for (field, request, login) in [
            (right.as_str(), ("PUT", "/a"), ("fred", "rocks")),
            (&right, ("GET", "/b"), ("fred", "rocks")),
            (&right, ("GET", "/a"), ("fred", "stone")),
            (&right, ("GET", "/a"), ("bob", "rocks")),
            (&right.replace("nonce=\"n\"", "nonce=\"m\""), ("GET", "/a"), ("fred", "rocks")),
            (&right.replace("nc=00000002", "nc=00000003"), ("GET", "/a"), ("fred", "rocks")),
            (&right.replace("nc=00000002", "nc=0"), ("GET", "/a"), ("fred", "rocks")),
            (&right.replace("Digest", "Basic"), ("GET", "/a"), ("fred", "rocks")),
            ("", ("GET", "/a"), ("fred", "rocks")),
            ("Digest response=\"\", nc=1", ("GET", "/a"), ("fred", "rocks")),
        ] {
            assert!(!is(field, request, login), "{field} {request:?} {login:?}");
        }
    }

    /// RFC 7616 section 3.9.1: one user, one request, both hashes.
    #[test]
    fn the_standards_example_has_its_answer() {
        const NONCES: &str = "nonce=\"7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v\", \
                              opaque=\"FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS\"";
        let field = |hash: &str| {
            format!(
                "Digest realm=\"http-auth@example.org\", qop=\"auth, auth-int\", algorithm={hash}, {NONCES}"
            )
        };
        let cnonce = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ";
        for (hash, response) in [
            ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
            ("SHA-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
        ] {
            let found = one(&field(hash)).unwrap();
            let mut answers = Answers::new(found, "Mufasa", "Circle of Life", cnonce.to_owned());
            let value = answers.authorization("GET", "/dir/index.html");
            assert_eq!(part(&value, "response"), response, "{value}");
            assert_eq!((part(&value, "nc"), part(&value, "qop")), ("00000001", "auth"));
            assert_eq!(part(&value, " algorithm"), hash);
            let next = answers.authorization("GET", "/dir/index.html");
            assert_eq!(part(&next, "nc"), "00000002");
            assert_ne!(part(&next, "response"), response);
        }
        // if both are offered, the stronger one is used, in any order
        for fields in [["MD5", "SHA-256"], ["SHA-256", "MD5"]] {
            let fields = fields.map(field);
            let found = challenge(fields.iter().map(String::as_bytes)).unwrap();
            assert_eq!(found.algorithm.hash, Hash::Sha256);
        }
    }

    /// RFC 2617 section 3.5, and without a quality of protection RFC 2069 section 2.4 with its errata.
    #[test]
    fn older_servers_are_answered_too() {
        let old = "Digest realm=\"testrealm@host.com\",\
                   nonce=\"dcd98b7102dd2f0e8b11d0f600bfb0c093\",\
                   opaque=\"5ccc069c403ebaf9f0171e9517f40e41\"";
        let mut answers = Answers::new(
            one(&format!("{old}, qop=\"auth,auth-int\"")).unwrap(),
            "Mufasa",
            "Circle Of Life",
            "0a4f113b".to_owned(),
        );
        let value = answers.authorization("GET", "/dir/index.html");
        assert_eq!(part(&value, "response"), "6629fae49393a05397450978507c4ef1");
        let mut answers =
            Answers::new(one(old).unwrap(), "Mufasa", "CircleOfLife", "unused".to_owned());
        let value = answers.authorization("GET", "/dir/index.html");
        assert_eq!(part(&value, "response"), "1949323746fe6a43ef61f9606e7febea");
        assert!(!value.contains("cnonce") && !value.contains("algorithm"), "{value}");
    }

    #[test]
    fn challenges_are_found_among_others() {
        let both = "Basic realm=\"a, b\", Digest realm=\"x \\\"y\\\"\" , nonce = abc, stale=TRUE, Negotiate";
        let found = one(both).unwrap();
        assert_eq!((&*found.realm, &*found.nonce, found.stale), ("x \"y\"", "abc", true));
        let mut answers = Answers::new(found, "a\"b", "p", "c".to_owned());
        let value = answers.authorization("GET", "/?q=\"");
        assert!(value.contains("username=\"a\\\"b\"") && value.contains("realm=\"x \\\"y\\\"\""));
        for none in [
            "Basic realm=\"x\"",
            "Digest realm=\"x\"",
            "Digest realm=\"x\", nonce=\"n\", qop=\"auth-int\"",
            "Digest realm=\"x\", nonce=\"n\", algorithm=SHA-512-256",
            "nonce=\"n\"",
            "",
            "Digest nonce=\"n",
        ] {
            assert_eq!(one(none).is_some(), none.ends_with("\"n"), "{none}");
        }
    }

    #[test]
    fn the_secret_of_a_session_contains_the_nonces() {
        let field = |name: &str| format!("Digest realm=r, nonce=n, qop=auth, algorithm={name}");
        let secret =
            |name: &str| Answers::new(one(&field(name)).unwrap(), "u", "p", "c".to_owned()).secret;
        let plain = secret("MD5");
        assert_eq!(secret("MD5-sess"), Hash::Md5.hex_digest(&format!("{plain}:n:c")));
        assert_ne!(secret("SHA-256-sess"), secret("SHA-256"));
    }

    proptest! {
        #[test]
        fn no_field_panics(field in prop::collection::vec(any::<u8>(), 0..80), tail in "\\PC*") {
            challenge([field.as_slice(), format!("Digest {tail}").as_bytes()].into_iter());
        }
    }
}
