//! Web servers: the questions, the kept part of a reply, and fingerprints measured on loopback with
//! Debian 12 packages.

use crate::oddities::ODDITIES;
use crate::survey::table::{Fingerprint, Trait};
use dialogue::replies::Response;
use dialogue::talk::{Talk, TalkEnd};

/// The name of the plain request among the questions.
pub const PLAIN: &str = "a plain GET";

/// Maximum number of body bytes kept.
const BODY_MAX: usize = 24;
/// Maximum length of a server's claim in characters.
const CLAIM_MAX: usize = 100;

/// Returns the names of the questions in order: a plain GET, then the harmless oddities of a
/// torture run.
pub fn questions() -> impl Iterator<Item = &'static str> {
    [PLAIN].into_iter().chain(ODDITIES.iter().map(|(name, _, _)| *name))
}

/// Returns the `Server` field, truncated if too long; empty: none.
pub fn claim(talk: &Talk) -> String {
    let first = talk.replies.responses.first();
    let claimed = first.and_then(|response| response.field("server").next()).unwrap_or_default();
    claimed.chars().filter(|c| !c.is_control()).take(CLAIM_MAX).collect()
}

/// Returns the HTTP version of a reply, `1.0` or `1.1`.
pub fn version(talk: &Talk) -> Option<&'static str> {
    let first = talk.replies.responses.first()?;
    Some(if first.minor_version == 0 { "1.0" } else { "1.1" })
}

/// Returns the distinguishing part of a reply. For site content: order and spelling of the fields
/// that every server writes itself. For replies that the server generates: all of it, and the start
/// of the body.
pub fn signature(question: &str, talk: &Talk) -> String {
    let Some(response) = talk.replies.responses.first() else {
        return match (&talk.replies.junk, talk.end) {
            (Some(_), _) => "no head".to_owned(),
            (None, TalkEnd::Closed) => "closed".to_owned(),
            (None, TalkEnd::Broken(_)) => "reset".to_owned(),
            (None, _) => "silent".to_owned(),
        };
    };
    let ends = if talk.end == TalkEnd::Closed { "closes" } else { "stays" };
    match question {
        PLAIN => own_fields(response),
        "a missing page" => format!("{} {}", response.status, own_fields(response)),
        "a line of junk" => {
            let body = body_start(talk, response);
            format!(
                "1.{} {} {ends} {} {body}",
                response.minor_version,
                response.status,
                names(response)
            )
        }
        "HEAD" => {
            format!(
                "{} {}",
                response.status,
                if has_body(talk, response) { "body" } else { "bare" }
            )
        }
        _ => format!("1.{} {} {ends}", response.minor_version, response.status),
    }
}

/// Fields that servers write for any page.
const OWN: [&str; 4] = ["date", "server", "content-length", "content-type"];

fn own_fields(response: &Response) -> String {
    let own = field_names(response)
        .into_iter()
        .filter(|name| OWN.iter().any(|own| name.eq_ignore_ascii_case(own)));
    own.collect::<Vec<_>>().join(",")
}

fn names(response: &Response) -> String {
    field_names(response).join(",")
}

/// Returns the field names in order, spelled as received; limited by the parser.
fn field_names(response: &Response) -> Vec<String> {
    let lines = response.head.split(|byte| *byte == b'\n').skip(1);
    let name = |line: &[u8]| {
        let end = line.iter().position(|byte| *byte == b':')?;
        Some(String::from_utf8_lossy(&line[..end]).into_owned())
    };
    lines.filter_map(name).collect()
}

/// Returns the received start of the body.
fn body_start(talk: &Talk, response: &Response) -> String {
    let body = talk.raw.get(response.head.len()..).unwrap_or_default();
    let start = &body[..body.len().min(BODY_MAX)];
    let shown: Vec<char> = String::from_utf8_lossy(start)
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    shown.into_iter().collect::<String>().trim_end().to_owned()
}

/// Returns whether bytes followed the head of a response that has no body.
fn has_body(talk: &Talk, response: &Response) -> bool {
    talk.raw.len() > response.head.len()
}

const METHOD: &str = "an unknown method";
const FUTURE: &str = "a future version";
const JUNK: &str = "a line of junk";
const FIELD: &str = "an invalid field";
const ABSENT: &str = "a missing page";
const HEAD: &str = "HEAD";

/// Observations of nginx 1.22, Apache 2.4, lighttpd 1.4, Caddy 2.6, HAProxy 2.6, Varnish 7.1, Squid
/// 5.7, Node 20, Python 3.11, WEBrick 1.8, PHP 8.2, BusyBox 1.35 and this program's own site, each
/// queried on loopback in November 2026. The reply to a line of junk has the highest weight:
/// neither pages nor origin servers affect it.
pub static TABLE: [Fingerprint; 13] = [
    Fingerprint {
        software: "nginx",
        claims: &["nginx"],
        traits: &[
            Trait::new(PLAIN, 1, "Server,Date,Content-Type,*"),
            Trait::new(ABSENT, 1, "404 Server,Date,Content-Type,*"),
            Trait::new(METHOD, 2, "1.1 405 stays"),
            Trait::new(FUTURE, 1, "1.1 200 stays"),
            Trait::new(
                JUNK,
                5,
                "1.1 400 closes Server,Date,Content-Type,Content-Length,Connection <html>*",
            ),
            Trait::new(FIELD, 2, "1.1 200 stays"),
            Trait::new(HEAD, 1, "200 bare"),
        ],
    },
    Fingerprint {
        software: "Apache",
        claims: &["Apache"],
        traits: &[
            Trait::new(PLAIN, 1, "Date,Server,*"),
            Trait::new(ABSENT, 1, "404 Date,Server,*"),
            Trait::new(METHOD, 2, "1.1 501 closes"),
            Trait::new(FUTURE, 1, "1.1 200 stays"),
            Trait::new(
                JUNK,
                5,
                "1.1 400 closes Date,Server,Content-Length,Connection,Content-Type <!DOCTYPE HTML PUBLIC*",
            ),
            Trait::new(FIELD, 2, "1.1 400 closes"),
            Trait::new(HEAD, 1, "200 bare"),
        ],
    },
    Fingerprint {
        software: "lighttpd",
        claims: &["lighttpd"],
        traits: &[
            Trait::new(PLAIN, 1, "Content-Type,Content-Length,Date,Server"),
            Trait::new(ABSENT, 1, "404 Content-Type,Content-Length,Date,Server"),
            Trait::new(METHOD, 2, "1.1 501 closes"),
            Trait::new(FUTURE, 2, "1.0 505 closes"),
            Trait::new(
                JUNK,
                5,
                "1.0 400 closes Content-Type,Content-Length,Connection,Date,Server <?xml*",
            ),
            Trait::new(FIELD, 1, "1.1 400 closes"),
            Trait::new(HEAD, 1, "200 bare"),
        ],
    },
    Fingerprint {
        software: "Caddy",
        claims: &["Caddy"],
        traits: &[
            Trait::new(PLAIN, 2, "Content-Length,Content-Type,Server,Date"),
            Trait::new(ABSENT, 1, "404 Server,Date,Content-Length"),
            Trait::new(METHOD, 1, "1.1 200 stays"),
            Trait::new(FUTURE, 1, "1.1 200 stays"),
            Trait::new(JUNK, 5, "1.1 400 closes Content-Type,Connection 400 Bad Request"),
            Trait::new(FIELD, 1, "1.1 400 closes"),
            Trait::new(HEAD, 1, "200 bare"),
        ],
    },
    Fingerprint {
        software: "HAProxy",
        claims: &["HAProxy"],
        traits: &[
            Trait::new(
                JUNK,
                5,
                "1.1 400 closes Content-length,Cache-Control,Connection,Content-Type <html><body><h1>400 Bad*",
            ),
            Trait::new(FIELD, 2, "1.1 400 closes"),
        ],
    },
    Fingerprint {
        software: "Varnish",
        claims: &["Varnish"],
        traits: &[
            Trait::new(FUTURE, 2, "1.1 400 closes"),
            Trait::new(JUNK, 4, "1.1 400 closes  "),
            Trait::new(FIELD, 2, "1.1 400 closes"),
        ],
    },
    Fingerprint {
        software: "Squid",
        claims: &["squid"],
        traits: &[
            Trait::new(FUTURE, 1, "1.1 200 stays"),
            Trait::new(
                JUNK,
                5,
                "1.1 400 closes Server,Mime-Version,Date,Content-Type,Content-Length,X-Squid-Error,*",
            ),
            Trait::new(FIELD, 1, "1.1 400 closes"),
        ],
    },
    Fingerprint {
        software: "Node",
        claims: &[],
        traits: &[
            Trait::new(METHOD, 2, "1.1 400 closes"),
            Trait::new(FUTURE, 2, "1.1 400 closes"),
            Trait::new(JUNK, 5, "1.1 400 closes Connection "),
            Trait::new(FIELD, 1, "1.1 400 closes"),
        ],
    },
    Fingerprint {
        software: "Python http.server",
        claims: &["SimpleHTTP/0.6 Python", "BaseHTTP/0.6 Python"],
        traits: &[
            Trait::new(PLAIN, 1, "Server,Date,Content-type,*"),
            Trait::new(METHOD, 2, "1.0 501 closes"),
            Trait::new(FUTURE, 1, "1.0 200 closes"),
            Trait::new(JUNK, 4, "no head"),
            Trait::new(FIELD, 2, "1.0 200 closes"),
        ],
    },
    Fingerprint {
        software: "WEBrick",
        claims: &["WEBrick"],
        traits: &[
            Trait::new(PLAIN, 1, "Content-Type,Content-Length,Server,Date"),
            Trait::new(METHOD, 2, "1.1 405 closes"),
            Trait::new(FUTURE, 1, "1.1 200 stays"),
            Trait::new(
                JUNK,
                5,
                "1.1 400 closes Content-Type,Server,Date,Content-Length,Connection <!DOCTYPE HTML PUBLIC*",
            ),
            Trait::new(FIELD, 1, "1.1 400 closes"),
        ],
    },
    Fingerprint {
        software: "PHP's built-in server",
        claims: &["PHP"],
        traits: &[
            Trait::new(PLAIN, 1, "Date,Content-Type,Content-Length"),
            Trait::new(METHOD, 2, "1.1 501 closes"),
            Trait::new(JUNK, 4, "closed"),
            Trait::new(FIELD, 2, "1.1 200 closes"),
        ],
    },
    Fingerprint {
        software: "BusyBox httpd",
        claims: &["BusyBox"],
        traits: &[
            Trait::new(METHOD, 2, "1.1 501 closes"),
            Trait::new(FUTURE, 1, "1.1 200 closes"),
            Trait::new(
                JUNK,
                5,
                "1.1 400 closes Date,Connection,Content-type <HTML><HEAD><TITLE>400*",
            ),
            Trait::new(FIELD, 1, "1.1 200 closes"),
            Trait::new(HEAD, 1, "200 body"),
        ],
    },
    Fingerprint {
        software: "hyper",
        claims: &[],
        traits: &[
            Trait::new(FUTURE, 2, "1.1 400 closes"),
            Trait::new(JUNK, 5, "1.1 400 closes connection,content-length,date "),
            Trait::new(FIELD, 1, "1.1 400 closes"),
        ],
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::survey::classify;

    /// Replies of nginx 1.22.1, question by question.
    const NGINX: [(&str, &str); 7] = [
        (PLAIN, "Server,Date,Content-Type,Content-Length"),
        (ABSENT, "404 Server,Date,Content-Type,Content-Length"),
        (METHOD, "1.1 405 stays"),
        (FUTURE, "1.1 200 stays"),
        (
            JUNK,
            "1.1 400 closes Server,Date,Content-Type,Content-Length,Connection <html>  <head><title>400",
        ),
        (FIELD, "1.1 200 stays"),
        (HEAD, "200 bare"),
    ];

    fn evidence(rows: &[(&str, &str)]) -> Vec<(String, String)> {
        rows.iter().map(|(name, seen)| ((*name).to_owned(), (*seen).to_owned())).collect()
    }

    #[test]
    fn every_table_question_is_sent() {
        let asked: Vec<&str> = questions().collect();
        for one in &TABLE {
            for wanted in one.traits {
                assert!(asked.contains(&wanted.question), "{}: {}", one.software, wanted.question);
            }
        }
    }

    #[test]
    fn a_proxy_in_front_is_identified_by_its_own_replies() {
        let mut behind = evidence(&NGINX);
        for (question, seen) in &mut behind {
            match question.as_str() {
                PLAIN => *seen = "server,date,content-type,content-length".to_owned(),
                JUNK => {
                    *seen = "1.1 400 closes Content-length,Cache-Control,Connection,Content-Type \
                             <html><body><h1>400 Bad"
                        .to_owned();
                }
                FIELD => *seen = "1.1 400 closes".to_owned(),
                _ => {}
            }
        }
        let found = classify(&TABLE, "nginx/1.22.1", &behind);
        assert_eq!(
            (found.name.as_str(), found.confidence.id()),
            ("HAProxy, reports nginx", "disputed")
        );
        let found = classify(&TABLE, "nginx/1.22.1", &evidence(&NGINX));
        assert_eq!((found.name.as_str(), found.confidence.id()), ("nginx 1.22.1", "agreed"));
        let found = classify(&TABLE, "", &evidence(&NGINX));
        assert_eq!((found.name.as_str(), found.confidence.id()), ("nginx", "behaved"));
    }

    #[test]
    fn fingerprints_are_distinct() {
        for one in &TABLE {
            let own: Vec<(String, String)> = one
                .traits
                .iter()
                .map(|wanted| {
                    (wanted.question.to_owned(), wanted.signature.trim_end_matches('*').to_owned())
                })
                .collect();
            let found = classify(&TABLE, "", &own);
            assert_eq!(found.behaves.map(|(name, _)| name), Some(one.software));
        }
    }
}
