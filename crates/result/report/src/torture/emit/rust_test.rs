//! A Rust test that needs only the standard library.

use super::{account, place};
use dialogue::talk::{Move, TalkEnd};
use std::fmt::Write;
use torture::record::Transcript;

/// Number of bytes per literal.
const PIECE: usize = 96;

pub(super) fn test(kept: &Transcript) -> Result<String, String> {
    if kept.script.tls_name.is_some() {
        return Err("the standard library has no TLS; use --as sh".to_owned());
    }
    let (host, port) = place(kept)?;
    let mut body = String::new();
    for step in &kept.script.steps {
        statement(&mut body, step)?;
    }
    let account: String = account(kept).iter().map(|line| format!("/// {line}\n")).collect();
    let (name, claim) = (name(kept), claim(kept));
    Ok(format!(
        "{account}#[test]\nfn {name}() {{
    use std::io::{{Read, Write}};
    use std::time::Duration;
    let to = std::env::var(\"TARGET\").unwrap_or(\"{host}:{port}\".to_owned());
    let mut stream = std::net::TcpStream::connect(to).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let mut response = Vec::new();
    let mut piece = [0; 65536];
{body}    // until the end, or five seconds of silence
    let mut ended = false;
    while let Ok(count) = stream.read(&mut piece) {{
        ended = count == 0;
        if ended {{
            break;
        }}
        response.extend_from_slice(&piece[..count]);
    }}
    let text = String::from_utf8_lossy(&response);
    let status: Option<u16> = text.get(9..12).and_then(|digits| digits.parse().ok());
{claim}}}
"
    ))
}

fn statement(out: &mut String, step: &Move) -> Result<(), String> {
    let write = |out: &mut String, text: String| {
        writeln!(out, "    {text}").expect("writing to a String cannot fail")
    };
    match step {
        Move::Send(bytes) => {
            write(out, "let bytes: Vec<u8> = [".to_owned());
            literals(out, bytes);
            write(out, "].concat();".to_owned());
            // the server may have closed it already: its response shows why
            write(out, "stream.write_all(&bytes).ok();".to_owned());
        }
        Move::Pause(span) => write(
            out,
            format!("std::thread::sleep(Duration::from_nanos({}));", span.0),
        ),
        Move::Await(_) => write(
            out,
            "if let Ok(count) = stream.read(&mut piece) {\n        response.extend_from_slice(&piece[..count]);\n    }"
                .to_owned(),
        ),
        Move::HalfClose => write(out, "stream.shutdown(std::net::Shutdown::Write).ok();".to_owned()),
        // nothing is read implicitly
        Move::StopReading | Move::Read => {}
        _ => return Err("the standard library can neither reset nor send urgent data; use --as \
            pcap".to_owned()),
    }
    Ok(())
}

/// Writes the bytes as literals on their own lines; long runs as `repeat`.
fn literals(out: &mut String, bytes: &[u8]) {
    let mut rest = bytes;
    while let Some(&first) = rest.first() {
        let run = rest.iter().take_while(|byte| **byte == first).count();
        let length = if run > PIECE { run } else { rest.len().min(PIECE) };
        let text = match run > PIECE {
            true => format!("b\"{}\".repeat({run})", std::ascii::escape_default(first)),
            false => format!("b\"{}\".to_vec()", rest[..length].escape_ascii()),
        };
        writeln!(out, "        {text},").expect("writing to a String cannot fail");
        rest = &rest[length..];
    }
}

/// Returns the assertion, if it fits in a line: it fails as long as the server does.
fn claim(kept: &Transcript) -> String {
    let talk = &kept.talk;
    let fault = |status: u16| (500..600).contains(&status) && !matches!(status, 501 | 503 | 505);
    let responses = &talk.replies.responses;
    let seen = "{:?}: {text}";
    if responses.iter().any(|response| fault(response.status)) {
        return format!(
            "    let fault = status.is_some_and(|status| status >= 500 && ![501, 503, 505].contains(&status));\n    \
             assert!(!fault && (ended || status.is_some()), \"{seen}\", status);\n"
        );
    }
    if responses.is_empty() && talk.end == TalkEnd::Silent {
        return format!("    assert!(ended || !response.is_empty(), \"{seen}\", status);\n");
    }
    let expected: Vec<u16> =
        kept.judgement.expected.split(" or ").filter_map(|word| word.parse().ok()).collect();
    let all = kept.judgement.expected.split(" or ").count();
    if !expected.is_empty() && expected.len() == all {
        return format!(
            "    assert!(status.is_some_and(|status| {expected:?}.contains(&status)), \"{seen}\", status);\n"
        );
    }
    format!(
        "    // expected is more than a status: look\n    assert!(ended || status.is_some(), \"{seen}\", status);\n    println!(\"{{text}}\");\n"
    )
}

/// Returns the name of the function.
fn name(kept: &Transcript) -> String {
    let whole = format!("{} {}", kept.case, kept.name).to_ascii_lowercase();
    let plain: String =
        whole.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let words: Vec<&str> = plain.split('_').filter(|word| !word.is_empty()).collect();
    let name = words.join("_");
    if name.starts_with(|c: char| c.is_ascii_alphabetic()) { name } else { format!("case_{name}") }
}
