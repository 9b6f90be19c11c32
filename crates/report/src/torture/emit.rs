//! A failure in forms that need no Loadstone: a shell script, a curl line, a nc line, a Rust test, a
//! capture. Each sends the very bytes, or says why it cannot.

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

/// The failure in this form, with a line feed at its end.
///
/// # Errors
/// Why it cannot be said so, and what else to take.
pub fn emit(kept: &Transcript, form: ProbeForm) -> Result<String, String> {
    if kept.script.spoken.is_http3() {
        return Err(format!(
            "{} {}: it speaks HTTP/3 over QUIC, which no shell tool says: take loadstone torture replay",
            kept.case,
            safe(&kept.name)
        ));
    }
    if kept.script.is_raw() {
        return Err(no_socket(kept));
    }
    let said = match form {
        ProbeForm::Sh => sh::script(kept),
        ProbeForm::Curl => curl::line(kept),
        ProbeForm::Nc => sh::line(kept),
        ProbeForm::RustTest => rust_test::test(kept),
    };
    said.map_err(|why| format!("{} {}: {why}", kept.case, safe(&kept.name)))
}

/// Why a conversation that is held segment by segment has no such form.
fn no_socket(kept: &Transcript) -> String {
    format!(
        "{} {}: it is held segment by segment, and no socket sends that; send it again with loadstone \
         torture replay",
        kept.case,
        safe(&kept.name)
    )
}

/// Where it went: name or address, and port.
fn place(kept: &Transcript) -> Result<(String, u16), String> {
    let wrong = || "its target is not a URL: the transcript was changed".to_owned();
    let url = Url::parse(&kept.target).map_err(|_| wrong())?;
    let host = url.host_str().ok_or_else(wrong)?.trim_matches(['[', ']']).to_owned();
    // what stands in a script must be a plain word
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-:_%".contains(&byte);
    if !host.bytes().all(plain) {
        return Err(wrong());
    }
    Ok((host, url.port_or_known_default().ok_or_else(wrong)?))
}

/// What it is and what came of it, a line each.
fn account(kept: &Transcript) -> Vec<String> {
    let judgement = &kept.judgement;
    let mut lines = vec![
        format!("{} {}: {}", kept.case, safe(&kept.name), judgement.outcome.id()),
        format!("came back: {}", safe(&judgement.seen)),
        format!("expected: {}", safe(&judgement.expected)),
    ];
    lines.retain(|line| !line.ends_with(": "));
    // a comment must end with its line
    lines.iter().map(|line| line.replace(['\n', '\r'], " ")).collect()
}

/// All bytes, where nothing else is done than sending them.
fn only_bytes(kept: &Transcript) -> Result<Vec<u8>, String> {
    let steps = &kept.script.steps;
    if steps.iter().any(|step| matches!(step, Move::Pause(_))) {
        return Err("it has pauses: take --as sh".to_owned());
    }
    if steps.iter().any(|step| !matches!(step, Move::Send(_))) {
        return Err("it does more than sending bytes: take --as sh or rust-test".to_owned());
    }
    Ok(kept.bytes())
}
