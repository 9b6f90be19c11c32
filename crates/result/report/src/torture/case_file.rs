//! A failure as a case file in the form of the catalog, to be run again, changed and shared.

use super::words::safe;
use crate::words::timestamp;
use dialogue::talk::Awaited;
use dialogue::talk::Move;
use dialogue::text::written;
use torture::case::{Case, Exchange, read_own};
use torture::judge::Class;
use torture::record::Transcript;
use units::Nanos;
use url::{Position, Url};

/// Permitted outcomes of random data: any response, or a close.
const ANY_OUTCOME: [&str; 2] = ["answered", "reject"];
/// Maximum length of the server's own name.
const SERVER_MAX: usize = 80;

/// Returns the failure as a case with this id, judged by `rule`, the case that found it. Our own
/// field lines, which name the run and its contact, are omitted; Host and path become those of the
/// future run.
///
/// # Errors
/// Fails with the reason why it cannot be expressed.
pub fn case_file(kept: &Transcript, rule: &Case, id: &str) -> Result<String, String> {
    let own = rule.exchanges.iter().find(|exchange| exchange.name == kept.name);
    if own.is_none() && rule.fuzz.is_none() {
        return Err(format!(
            "{} {}: it is judged by code, which a case file cannot express; use --as sh",
            kept.case,
            safe(&kept.name)
        ));
    }
    let title = if own.is_some() { &rule.title } else { "random data that caused a failure" };
    let mut file = String::new();
    let mut put = |key: &str, value: String| file.push_str(&format!("{key} = {value}\n"));
    put("id", quoted(id));
    put("version", "1".to_owned());
    put("title", quoted(title));
    put("level", quoted(rule.level.id()));
    put("ref", quoted(&rule.reference));
    put("why", quoted(&safe(&kept.judgement.why)));
    put(
        "servers",
        quoted(&format!("{} ({} {})", safe(&kept.judgement.seen), kept.case, safe(&kept.name))),
    );
    put("found", quoted(&format!("{}, {}", server(kept), recorded_day(kept))));
    file.push_str("\n[[exchange]]\n");
    let mut put = |key: &str, value: String| file.push_str(&format!("{key} = {value}\n"));
    put("name", quoted(&safe(&kept.name)));
    put("send", steps(kept)?);
    if kept.script.methods.iter().any(|method| method != "GET") {
        put("methods", list(kept.script.methods.iter().map(String::as_str)));
    }
    put("deadline", quoted(&span(kept.script.deadline)));
    for (key, classes) in lists(own) {
        if key == "accept" || !classes.is_empty() {
            put(key, list(classes.iter().map(String::as_str)));
        }
    }
    put("in_step", kept.script.follow_up.is_some().to_string());
    // the result must be a valid case; an invalid id is reported so
    read_own(&format!("--id {}", safe(id)), &file)?;
    Ok(file)
}

fn lists(own: Option<&Exchange>) -> [(&'static str, Vec<String>); 4] {
    let words = |classes: &[Class]| classes.iter().map(ToString::to_string).collect();
    match own {
        Some(own) => [
            ("accept", words(&own.accept)),
            ("also", words(&own.also)),
            ("advise", words(&own.advise)),
            ("unlearned", words(&own.unlearned)),
        ],
        None => [
            ("accept", ANY_OUTCOME.map(str::to_owned).to_vec()),
            ("also", Vec::new()),
            ("advise", Vec::new()),
            ("unlearned", Vec::new()),
        ],
    }
}

/// Returns the server's own name in its responses.
fn server(kept: &Transcript) -> String {
    let heads = kept.talk.replies.responses.iter().map(|response| response.head.as_slice());
    let named = heads.into_iter().find_map(|head| {
        let lines = head.split(|byte| *byte == b'\n');
        lines.filter_map(|line| std::str::from_utf8(line).ok()).find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("server").then(|| value.trim().to_owned())
        })
    });
    let named = named.filter(|name| !name.is_empty());
    let named = named.unwrap_or_else(|| "a server of unknown name".to_owned());
    safe(&crate::words::printable(&named, SERVER_MAX))
}

fn recorded_day(kept: &Transcript) -> String {
    timestamp(kept.began_unix_ns as f64 / 1e9).chars().take(10).collect()
}

fn steps(kept: &Transcript) -> Result<String, String> {
    if kept.script.protocol.has_frames() {
        return Err("it uses HTTP/2 or HTTP/3, and your own cases use HTTP/1.1".to_owned());
    }
    let mut all = Vec::new();
    for step in &kept.script.steps {
        all.push(match step {
            Move::Send(bytes) => quoted(&bytes_text(kept, bytes)),
            Move::Pause(length) => format!("{{ pause = {} }}", quoted(&span(*length))),
            Move::Await(Awaited::Interim) => "{ await = \"interim\" }".to_owned(),
            Move::Await(Awaited::Response) => "{ await = \"answer\" }".to_owned(),
            Move::Await(Awaited::End) => "{ await = \"end\" }".to_owned(),
            Move::Await(Awaited::Settings) => "{ await = \"settings\" }".to_owned(),
            Move::Await(Awaited::SocketEnd) => "{ await = \"socket-end\" }".to_owned(),
            Move::Urgent => follow_up_step("urgent"),
            Move::HalfClose => follow_up_step("half-close"),
            Move::Reset => follow_up_step("reset"),
            Move::Close => follow_up_step("close"),
            Move::StopReading => follow_up_step("stop-reading"),
            Move::Read => follow_up_step("read"),
            Move::Renegotiate => {
                return Err("it renegotiates TLS, which a case file cannot express".to_owned());
            }
            Move::Packet(_) => {
                return Err("it sends TCP segments: copy its case from the catalogue".into());
            }
            Move::Sip(_) => {
                return Err("it reads in small pieces, which a case file cannot express".to_owned());
            }
        });
    }
    Ok(format!("[{}]", all.join(", ")))
}

fn follow_up_step(what: &str) -> String {
    format!("{{ then = {} }}", quoted(what))
}

/// Returns bytes in the language of case files, with placeholders for a future run.
fn bytes_text(kept: &Transcript, bytes: &[u8]) -> String {
    let bytes = without_ours(bytes);
    let Ok(url) = Url::parse(&kept.target) else { return written(&bytes) };
    let mut rest = bytes.as_slice();
    let mut text = String::new();
    let path = url[Position::BeforePath..Position::AfterQuery].as_bytes();
    if let Some((before, after)) = target_of(rest, path) {
        text += &format!("{}{{path}}", written(before));
        rest = after;
    }
    let host = &url[Position::BeforeHost..Position::AfterPort];
    let line = format!("Host: {host}\r\n");
    while let Some(at) = find(rest, line.as_bytes()) {
        text += &format!("{}Host: {{host}}\\r\\n", written(&rest[..at]));
        rest = &rest[at + line.len()..];
    }
    text + &written(rest)
}

/// Splits a request line around the path of the run, if it requests that.
fn target_of<'b>(bytes: &'b [u8], path: &[u8]) -> Option<(&'b [u8], &'b [u8])> {
    let at = bytes.iter().position(|byte| *byte == b' ')? + 1;
    let after = bytes[at..].strip_prefix(path)?;
    matches!(after.first(), Some(b' ' | b'?')).then_some((&bytes[..at], after))
}

/// Removes the lines that identify us and our contact.
fn without_ours(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut after_name = false;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let name = line.starts_with(b"User-Agent: loadstone-torture/");
        let ours = name || after_name && line.starts_with(b"From: ");
        after_name = name;
        if !ours {
            out.extend_from_slice(line);
        }
    }
    out
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

/// Formats a duration for case files: at least whole milliseconds.
fn span(length: Nanos) -> String {
    match length.0.div_ceil(1_000_000).max(1) {
        whole if whole.is_multiple_of(1_000) => format!("{}s", whole / 1_000),
        milliseconds => format!("{milliseconds}ms"),
    }
}

fn list<'t>(texts: impl Iterator<Item = &'t str>) -> String {
    let all: Vec<String> = texts.map(quoted).collect();
    format!("[{}]", all.join(", "))
}

/// Returns a TOML string: literal if possible, so that `\r\n` stays readable.
fn quoted(text: &str) -> String {
    let literal = text.contains('\\') && !text.contains(['\'', '\n', '\r']);
    match literal {
        true => format!("'{text}'"),
        false => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
    }
}
