//! Nothing is tested before plain requests are answered, and always alike.

use crate::{PLAIN_CALLS, Runner, habits};
use dialogue::talk::TalkEnd;
use sample::FailureClass;
use torture::judge;
use torture::judge::Plain;

/// How the alert of TLS 1.0 to 1.3 begins (RFC 8446 section 5.1).
const TLS_ALERT: &[u8] = &[0x15, 0x03];

/// The probed page answers, and always the same.
pub(crate) fn check(runner: &mut Runner<'_>) -> Result<Plain, String> {
    let mut plain: Option<Plain> = None;
    for _ in 0..PLAIN_CALLS {
        let talk = runner.ask(&habits::plain_request(runner.target, ""));
        runner.profile.plain_took(talk.over);
        if let TalkEnd::Unconnected(class) = talk.end {
            let hint = match (class, &runner.target.tls_name) {
                (_, Some(_)) if runner.target.spoken.is_http3() => {
                    ": is HTTP/3 (QUIC, over UDP) served at this port? --http 2 tests it over TCP"
                }
                (FailureClass::Tls, Some(_)) if runner.target.spoken.is_http2() => {
                    ": does it speak HTTP/2 over TLS? --http 1.1 tests it without"
                }
                (FailureClass::Tls, Some(_)) => ": does it speak TLS? try http://",
                (FailureClass::Certificate, _) => ": accept any with --insecure",
                _ => "",
            };
            return Err(format!("no connection: {}{hint}", class.explain()));
        }
        let Some(response) = talk.replies.responses.first().filter(|response| response.complete)
        else {
            let hint = if talk.raw.starts_with(TLS_ALERT) {
                ": it speaks TLS, write https://"
            } else if runner.target.spoken.is_http2() {
                ": does it speak HTTP/2? --http 1.1 tests it without"
            } else if judge::speaks_http2(&talk) {
                ": it speaks HTTP/2 only, give --http 2"
            } else {
                ""
            };
            return Err(format!("a plain GET was not answered: {}{hint}", judge::seen(&talk)));
        };
        if !(200..400).contains(&response.status) {
            return Err(format!(
                "a plain GET was answered {}: {}",
                response.status,
                way_out(response.status)
            ));
        }
        let now = Plain {
            status: response.status,
            body_len: response.body_len,
            digest: Some(response.digest),
        };
        plain = Some(match plain {
            Some(before) if before.status != now.status => {
                return Err(format!(
                    "a plain GET was answered {} and then {}: name a page that is steady",
                    before.status, now.status
                ));
            }
            // a page that changes: its status alone is held against the responses
            Some(before) if before.digest != now.digest => Plain { digest: None, ..now },
            _ => now,
        });
    }
    plain.ok_or_else(|| "nothing was asked".to_owned())
}

/// What to do where the probed page gives this.
fn way_out(status: u16) -> &'static str {
    match status {
        401 | 403 | 407 => "name a page that anybody may read, or give the login with -H",
        429 | 503 => "it has too much to do, or sheds us: try again when it is at rest",
        500.. => "fix the page, or name another",
        _ => "name a page that is there",
    }
}
