//! Shell: printf, head, tr and sleep, into nc or openssl.

use super::{account, only_bytes, place};
use crate::torture::send::{printf_quoted, printing};
use dialogue::talk::Awaited;
use dialogue::talk::Move;
use torture::record::Transcript;
use units::Nanos;

/// Number of bytes per printf.
const PIECE: usize = 500;
/// Time that nc waits for more, beyond the longest pause, in seconds.
const PATIENCE_S: u64 = 5;

/// Returns a script that sends the bytes with their pauses.
pub(super) fn script(kept: &Transcript) -> Result<String, String> {
    let (host, port) = place(kept)?;
    if kept.script.steps.contains(&Move::Renegotiate) {
        return Ok(renegotiation(kept, &host, port));
    }
    let mut body = String::new();
    let mut last = Last::Waits;
    for (index, step) in kept.script.steps.iter().enumerate() {
        let more = kept.script.steps[index + 1..].iter().any(|step| matches!(step, Move::Send(_)));
        match step {
            Move::Send(bytes) => pieces(&mut body, bytes),
            Move::Pause(span) if more => body.push_str(&format!("sleep {}\n", seconds(*span))),
            Move::Await(Awaited::Interim | Awaited::Response) if more => {
                body.push_str("# time for a response\nsleep 1\n");
            }
            Move::Pause(_) | Move::Await(_) => {}
            Move::HalfClose if !more => last = Last::Ends,
            Move::Close if !more => last = Last::Leaves,
            _ => return Err("nc can neither reset nor stop reading; use --as pcap".to_owned()),
        }
    }
    let mut out = opening(kept, &host, port);
    out.push_str("{\n");
    out.push_str(&body);
    let patience = PATIENCE_S + longest_pause(kept).0.div_ceil(1_000_000_000);
    out.push_str(&format!("}} | {}\n", receiver(kept, last, patience)));
    Ok(out)
}

fn opening(kept: &Transcript, host: &str, port: u16) -> String {
    let mut out = String::from("#!/bin/sh\n");
    account(kept).iter().for_each(|line| out.push_str(&format!("# {line}\n")));
    out.push_str("# usage: sh repro.sh [HOST [PORT]]\n");
    out.push_str(&format!("host=${{1:-{host}}} port=${{2:-{port}}}\n"));
    out
}

/// Returns the renegotiation command: openssl renegotiates when a line of a single R is typed, and
/// reports the result.
fn renegotiation(kept: &Transcript, host: &str, port: u16) -> String {
    let name = kept.script.tls_name.as_deref().unwrap_or_default();
    let name = crate::torture::send::word(name);
    format!(
        "{}{{ sleep 1; echo R; sleep {PATIENCE_S}; }} | openssl s_client -tls1_2 -servername {name} \
         -connect \"$host:$port\"\n",
        opening(kept, host, port)
    )
}

/// Action once everything is sent.
#[derive(Clone, Copy)]
enum Last {
    Waits,
    /// FIN from us, and further data is read.
    Ends,
    Leaves,
}

fn receiver(kept: &Transcript, last: Last, patience: u64) -> String {
    match (&kept.script.tls_name, last) {
        (Some(name), _) => {
            let name = crate::torture::send::word(name);
            format!("openssl s_client -quiet -servername {name} -connect \"$host:$port\"")
        }
        (None, Last::Waits) => format!("nc -w {patience} \"$host\" \"$port\""),
        (None, Last::Ends) => format!("nc -N -w {patience} \"$host\" \"$port\""),
        (None, Last::Leaves) => "nc -q 0 \"$host\" \"$port\"".to_owned(),
    }
}

fn longest_pause(kept: &Transcript) -> Nanos {
    let pauses = kept.script.steps.iter().filter_map(|step| match step {
        Move::Pause(span) => Some(*span),
        _ => None,
    });
    pauses.max().unwrap_or_default()
}

/// Returns one line that sends the bytes.
pub(super) fn line(kept: &Transcript) -> Result<String, String> {
    let bytes = only_bytes(kept)?;
    let (host, port) = place(kept)?;
    if kept.script.tls_name.is_some() {
        return Err("nc has no TLS; use --as sh, which uses openssl".to_owned());
    }
    Ok(format!("printf '{}' | nc -w {PATIENCE_S} {host} {port}\n", printf_quoted(&bytes)))
}

/// Appends commands that print these bytes, one per line.
fn pieces(out: &mut String, bytes: &[u8]) {
    for command in printing(bytes, PIECE, usize::MAX).into_iter().flatten() {
        out.push_str(&command);
        out.push('\n');
    }
}

fn seconds(span: Nanos) -> String {
    let text = format!("{:.3}", span.as_secs_f64());
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
