//! Preconditions: plain requests must get a stable response before anything is tested.

use crate::{PLAIN_CALLS, Runner, habits};
use dialogue::replies::Response;
use dialogue::talk::TalkEnd;
use sample::FailureClass;
use torture::judge;
use torture::judge::Plain;

/// Start of an alert of TLS 1.0 to 1.3 (RFC 8446 section 5.1).
const TLS_ALERT: &[u8] = &[0x15, 0x03];

/// Measures the time of a plain request after a silent attempt. This raises the limit if the machine
/// became slower, but not if the server hangs.
pub(crate) fn measure_plain_time(runner: &mut Runner<'_>) {
    let asked = runner.ask(&habits::plain_request(runner.target, ""));
    let first = asked.replies.responses.first();
    if first.is_some_and(|response| runner.profile.plain().is(response)) {
        runner.profile.record_plain_time(asked.over);
    }
}

/// Checks that the probed page has a stable response.
pub(crate) fn check(runner: &mut Runner<'_>) -> Result<Plain, String> {
    let mut plain: Option<Plain> = None;
    for _ in 0..PLAIN_CALLS {
        let talk = runner.ask(&habits::plain_request(runner.target, ""));
        runner.profile.record_plain_time(talk.over);
        if let TalkEnd::Unconnected(class) = talk.end {
            let hint = match (class, &runner.target.tls_name) {
                (_, Some(_)) if runner.target.protocol.is_http3() => {
                    ": does this port serve HTTP/3 (QUIC over UDP)? --http 2 tests over TCP"
                }
                (FailureClass::Tls, Some(_)) if runner.target.is_grpc() => {
                    ": does it support HTTP/2 over TLS? grpc:// calls without TLS"
                }
                (FailureClass::Tls, Some(_)) if runner.target.protocol.is_http2() => {
                    ": does it support HTTP/2 over TLS? --http 1.1 tests without HTTP/2"
                }
                (FailureClass::Tls, Some(_)) => ": does it use TLS? try http://",
                (FailureClass::Certificate, _) => ": --insecure accepts any certificate",
                _ => "",
            };
            return Err(format!("no connection: {}{hint}", class.explain()));
        }
        let Some(response) = talk.replies.responses.first().filter(|response| response.complete)
        else {
            let hint = if talk.raw.starts_with(TLS_ALERT) {
                ": it uses TLS; write https://"
            } else if runner.target.is_grpc() {
                ": does it support gRPC over HTTP/2 on this port?"
            } else if runner.target.protocol.is_http2() {
                ": does it support HTTP/2? --http 1.1 tests without HTTP/2"
            } else if judge::speaks_http2(&talk) {
                ": it supports HTTP/2 only; use --http 2"
            } else {
                ""
            };
            let request = runner.target.plain_name();
            return Err(format!("{request} got no response: {}{hint}", judge::seen(&talk)));
        };
        if runner.target.is_grpc() {
            check_call(runner, response)?;
        } else if !(200..400).contains(&response.status) {
            return Err(format!("a plain GET got {}: {}", response.status, fix(response.status)));
        }
        let now = Plain {
            status: response.status,
            body_len: response.body_len,
            digest: Some(response.digest),
            outside: None,
        };
        plain = Some(match plain {
            Some(before) if before.status != now.status => {
                return Err(format!(
                    "{} got {} and then {}: name a page with a stable response",
                    runner.target.plain_name(),
                    before.status,
                    now.status
                ));
            }
            // a changing page: only its status is compared
            Some(before) if before.digest != now.digest => Plain { digest: None, ..now },
            _ => now,
        });
    }
    plain.ok_or_else(|| "nothing was requested".to_owned())
}

/// Checks that the plain call of gRPC succeeded.
fn check_call(runner: &Runner<'_>, response: &Response) -> Result<(), String> {
    let path = &runner.target.values.path;
    let status = match response.call_status() {
        Some(status) if status.is_ok() && response.is_grpc_response() => return Ok(()),
        Some(status) => status.name.to_owned(),
        None => format!("HTTP status {} without grpc-status", response.status),
    };
    Err(format!(
        "a plain call of {path} got {status}: name a method that accepts an empty message, such as \
        grpc://host:port/package.Service/Method"
    ))
}

/// Returns the fix for this status of the probed page.
fn fix(status: u16) -> &'static str {
    match status {
        401 | 403 | 407 => "name a public page, or give the login with -H",
        429 | 503 => "the server is overloaded or rate-limiting us; retry when it is idle",
        500.. => "fix the page, or name another one",
        _ => "name an existing page",
    }
}
