//! A failure in forms that do not need Loadstone: a shell script, a curl line, an nc line, a Rust
//! test, a capture. Each sends exactly the same bytes, or reports why it cannot.

mod capture;
mod curl;
mod rust_test;
mod sh;

pub use capture::capture;

use super::words::safe;
use dialogue::talk::Move;
use torture::record::Transcript;
use url::Url;

/// A form that is text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeForm {
    Sh,
    Curl,
    Nc,
    RustTest,
}

/// Returns the failure in this form, with a final line feed.
///
/// # Errors
/// Fails with the reason why it cannot be expressed, and which form to use instead.
pub fn emit(kept: &Transcript, form: ProbeForm) -> Result<String, String> {
    if kept.script.protocol.is_http3() {
        return Err(format!(
            "{} {}: it uses HTTP/3 over QUIC, which no shell tool can send; use loadstone \
            torture replay",
            kept.case,
            safe(&kept.name)
        ));
    }
    if kept.script.is_raw() {
        return Err(no_socket(kept));
    }
    let emitted = match form {
        ProbeForm::Sh => sh::script(kept),
        ProbeForm::Curl => curl::line(kept),
        ProbeForm::Nc => sh::line(kept),
        ProbeForm::RustTest => rust_test::test(kept),
    };
    emitted.map_err(|why| format!("{} {}: {why}", kept.case, safe(&kept.name)))
}

/// Returns why a conversation of raw TCP segments cannot be sent from a shell.
fn no_socket(kept: &Transcript) -> String {
    format!(
        "{} {}: it sends TCP segments, which sockets cannot; use loadstone torture replay",
        kept.case,
        safe(&kept.name)
    )
}

/// Returns name or address, and port, of the server.
fn place(kept: &Transcript) -> Result<(String, u16), String> {
    let wrong = || "its target is not a URL: the transcript was changed".to_owned();
    let url = Url::parse(&kept.target).map_err(|_| wrong())?;
    let host = url.host_str().ok_or_else(wrong)?.trim_matches(['[', ']']).to_owned();
    // a word in a script must be plain
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-:_%".contains(&byte);
    if !host.bytes().all(plain) {
        return Err(wrong());
    }
    Ok((host, url.port_or_known_default().ok_or_else(wrong)?))
}

/// Describes the failure and its result, one line each.
fn account(kept: &Transcript) -> Vec<String> {
    let judgement = &kept.judgement;
    let mut lines = vec![
        format!("{} {}: {}", kept.case, safe(&kept.name), judgement.outcome.id()),
        format!("received: {}", safe(&judgement.seen)),
        format!("expected: {}", safe(&judgement.expected)),
    ];
    lines.retain(|line| !line.ends_with(": "));
    // a comment must end with its line
    lines.iter().map(|line| line.replace(['\n', '\r'], " ")).collect()
}

/// Returns all bytes, if the conversation only sends bytes.
fn only_bytes(kept: &Transcript) -> Result<Vec<u8>, String> {
    let steps = &kept.script.steps;
    if steps.iter().any(|step| matches!(step, Move::Pause(_))) {
        return Err("it has pauses; use --as sh".to_owned());
    }
    if steps.iter().any(|step| !matches!(step, Move::Send(_))) {
        return Err("it does more than send bytes; use --as sh or rust-test".to_owned());
    }
    Ok(kept.bytes())
}
