//! Transcripts: a conversation with everything that its judgment needs, as text for people and for
//! this program. docs/guide/torture-results.md describes the lines.

mod read;
#[cfg(test)]
mod tests;

pub use read::read;

use crate::case::Case;
use crate::judge::{FailureKind, Judgement, Plain};
use crate::result::SentPause;
use conduit::Peer;
use dialogue::http2::{FrameSeen, Protocol};
use dialogue::replies::Response;
use dialogue::talk::Awaited;
use dialogue::talk::{Move, Talk, TalkEnd, TalkScript, What};
use dialogue::text::written;
use std::fmt::{Display, Write};
use units::{Nanos, hex};

/// The first line of a transcript.
pub const FIRST_LINE: &str = "loadstone.wire/1";
/// Maximum size of a transcript in bytes.
pub const TRANSCRIPT_MAX: usize = 64 << 20;

/// One recorded conversation.
#[derive(Clone, Debug)]
pub struct Transcript {
    /// Version of the recording program.
    pub loadstone: String,
    /// The tested URL, as typed.
    pub target: String,
    pub case: String,
    pub version: u32,
    /// The exchange, or the random data.
    pub name: String,
    pub attempt: u32,
    /// Start time in nanoseconds since 1970-01-01 UTC.
    pub began_unix_ns: u64,
    /// The usual response of the probed page to a plain GET at that time.
    pub plain: Plain,
    pub script: TalkScript,
    pub talk: Talk,
    pub judgement: Judgement,
}

/// One conversation of a case, with everything that its judgment needs.
#[derive(Clone, Copy, Debug)]
pub struct Execution<'a> {
    pub case: &'a Case,
    /// The exchange, or the random data.
    pub name: &'a str,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    pub script: &'a TalkScript,
    pub talk: &'a Talk,
    pub judgement: &'a Judgement,
}

/// Data shared by all conversations of a run.
#[derive(Clone, Debug, Default)]
pub struct Run {
    pub loadstone: String,
    pub target: String,
    /// Zero of the run's clock in nanoseconds since 1970-01-01 UTC.
    pub zero_unix_ns: u64,
    pub plain: Plain,
}

impl Transcript {
    pub fn new(run: &Run, execution: &Execution<'_>) -> Transcript {
        Transcript {
            loadstone: run.loadstone.clone(),
            target: run.target.clone(),
            case: execution.case.id.clone(),
            version: execution.case.version,
            name: execution.name.to_owned(),
            attempt: execution.attempt,
            began_unix_ns: run.zero_unix_ns.saturating_add(execution.talk.start.0),
            plain: run.plain.clone(),
            script: execution.script.clone(),
            talk: execution.talk.clone(),
            judgement: execution.judgement.clone(),
        }
    }

    /// Returns the server's address, or `None` for a Unix socket.
    pub fn server(&self) -> Option<std::net::SocketAddr> {
        self.script.peer.address()
    }

    /// Returns the bytes of the script without pauses.
    pub fn bytes(&self) -> Vec<u8> {
        sent(&self.script.steps)
    }
}

/// Returns all bytes that these steps send.
pub fn sent(steps: &[Move]) -> Vec<u8> {
    let each = steps.iter().filter_map(|step| match step {
        Move::Send(bytes) => Some(bytes.as_slice()),
        _ => None,
    });
    each.collect::<Vec<&[u8]>>().concat()
}

/// Returns the pauses between the sent bytes, and other actions of the client; leading and trailing
/// pauses are omitted.
pub fn pauses(steps: &[Move]) -> Vec<SentPause> {
    let (mut after, mut waiting, mut found) = (0, Nanos::ZERO, Vec::new());
    for (at, step) in steps.iter().enumerate() {
        match step {
            Move::Pause(span) if after > 0 => waiting += *span,
            Move::Send(bytes) => {
                if waiting > Nanos::ZERO {
                    let span = std::mem::take(&mut waiting);
                    found.push(SentPause { after, span, ..SentPause::default() });
                } else if after > 0 && bytes.len() == 1 {
                    // a shell joins writes without a pause between them
                    other_action(&mut found, after);
                }
                after += bytes.len() as u64;
            }
            Move::HalfClose => {
                found.push(SentPause { after, half_close: true, ..SentPause::default() });
            }
            Move::Await(_) if after > 0 => waiting += AWAITED,
            Move::Pause(_) | Move::Await(_) => {}
            // the response has arrived: a client that stays sees the same
            Move::Close if matches!(steps.get(at.wrapping_sub(1)), Some(Move::Await(_))) => {}
            _ => other_action(&mut found, after),
        }
    }
    found
}

/// Adds an action that a shell cannot repeat, unless the last entry is one already: thousands of
/// single bytes are one entry.
fn other_action(found: &mut Vec<SentPause>, after: u64) {
    if !found.last().is_some_and(|last| last.other_action) {
        found.push(SentPause { after, other_action: true, ..SentPause::default() });
    }
}

/// Time for a response that a step waits for, in a command that sends everything.
const AWAITED: Nanos = Nanos::from_millis(300);

/// Time for the response before the follow-up request, in a command that sends both.
const BEFORE_FOLLOW_UP: Nanos = Nanos::SECOND;

/// Bytes that show a failure again, with their pauses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SentBytes {
    pub bytes: Vec<u8>,
    pub pauses: Vec<SentPause>,
}

/// Returns the bytes that a script sends, with the valid request after it if that request failed.
pub fn sent_again(script: &TalkScript, talk: &Talk, kind: Option<FailureKind>) -> SentBytes {
    let mut all = SentBytes { bytes: sent(&script.steps), pauses: pauses(&script.steps) };
    let behind = kind.is_some_and(FailureKind::is_behind);
    let follow_up = script.follow_up.as_ref();
    if let Some(follow_up) = follow_up.filter(|_| behind && talk.before_follow_up.is_some()) {
        let after = all.bytes.len() as u64;
        all.pauses.push(SentPause { after, span: BEFORE_FOLLOW_UP, ..SentPause::default() });
        all.bytes.extend_from_slice(follow_up);
    }
    all
}

/// Returns the transcript as text; [`read`] parses it.
pub fn write(kept: &Transcript) -> String {
    let mut out = Lines::default();
    out.text.push_str(FIRST_LINE);
    out.text.push('\n');
    origin(&mut out, kept);
    script(&mut out, &kept.script);
    out.text.push('\n');
    events(&mut out, kept);
    out.text.push('\n');
    replies(&mut out, &kept.talk);
    judgement(&mut out, &kept.judgement);
    out.text
}

#[derive(Default)]
struct Lines {
    text: String,
}

impl Lines {
    fn put(&mut self, name: &str, value: impl Display) {
        writeln!(self.text, "{name} {value}").expect("writing to a String cannot fail");
    }
}

fn origin(out: &mut Lines, kept: &Transcript) {
    out.put("loadstone", written(kept.loadstone.as_bytes()));
    out.put("target", written(kept.target.as_bytes()));
    let (case, version, attempt) = (&kept.case, kept.version, kept.attempt);
    out.put("case", format!("{} {version} {attempt}", written(case.as_bytes())));
    out.put("name", written(kept.name.as_bytes()));
    out.put("began", kept.began_unix_ns);
    let digest = kept.plain.digest.map_or("-".to_owned(), hex);
    let outside = kept.plain.outside.map_or(String::new(), |sum| format!(" {}", hex(sum)));
    let (status, length) = (kept.plain.status, kept.plain.body_len);
    out.put("plain", format!("{status} {length} {digest}{outside}"));
}

fn script(out: &mut Lines, script: &TalkScript) {
    match (&script.peer, script.peer.address()) {
        (Peer::Unix(path), _) => out.put("unix", written(path.as_os_str().as_encoded_bytes())),
        // conversations use byte streams
        (_, Some(address)) => out.put("peer", address),
        (_, None) => {}
    }
    if let Some(name) = &script.tls_name {
        out.put("tls", written(name.as_bytes()));
    }
    match script.protocol {
        Protocol::Http1 => {}
        Protocol::Http2 => out.put("spoken", "http2"),
        Protocol::Http2Raw => out.put("spoken", "http2-raw"),
        Protocol::Http3 => out.put("spoken", "http3"),
        Protocol::Datagrams => out.put("spoken", "quic-datagrams"),
    }
    if let Some(bytes) = script.options.recv_buffer {
        out.put("receive-buffer", bytes);
    }
    for method in &script.methods {
        out.put("method", written(method.as_bytes()));
    }
    out.put("deadline", script.deadline.0);
    out.put("grace", script.grace.0);
    out.put("linger", script.linger.0);
    out.put("hold", if script.hold { "yes" } else { "no" });
    if let Some(bytes) = &script.follow_up {
        out.put("follow-up", written(bytes));
    }
    for step in &script.steps {
        match step {
            Move::Send(bytes) => out.put("step send", written(bytes)),
            Move::Pause(span) => out.put("step pause", span.0),
            Move::Await(Awaited::Interim) => out.put("step await", "interim"),
            Move::Await(Awaited::Response) => out.put("step await", "answer"),
            Move::Await(Awaited::End) => out.put("step await", "end"),
            Move::Await(Awaited::Settings) => out.put("step await", "settings"),
            Move::Await(Awaited::SocketEnd) => out.put("step await", "socket-end"),
            Move::HalfClose => out.put("step", "half-close"),
            Move::Reset => out.put("step", "reset"),
            Move::Close => out.put("step", "close"),
            Move::StopReading => out.put("step", "stop-reading"),
            Move::Urgent => out.put("step", "urgent"),
            Move::Read => out.put("step", "read"),
            Move::Sip(most) => out.put("step sip", most),
            Move::Renegotiate => out.put("step", "renegotiate"),
            Move::Packet(packet) => out.put("step packet", packet),
        }
    }
}

/// Writes the events with their instants; received bytes appear where they arrived, unless TLS was
/// used.
fn events(out: &mut Lines, kept: &Transcript) {
    let talk = &kept.talk;
    let mut rest = talk.raw.as_slice();
    for event in &talk.events {
        let at = event.at.0;
        match event.what {
            What::Connected => out.put("at", format!("{at} connected")),
            What::Secure => out.put("at", format!("{at} secure")),
            What::Sent(count) => out.put("at", format!("{at} sent {count}")),
            What::Received(count) if kept.script.tls_name.is_none() => {
                let (bytes, more) = rest.split_at(count.min(rest.len()));
                rest = more;
                out.put("at", format!("{at} received {count} {}", written(bytes)));
            }
            What::Received(count) => out.put("at", format!("{at} received {count} ")),
            What::HalfClosed => out.put("at", format!("{at} half-closed")),
            What::ResetByUs => out.put("at", format!("{at} reset-by-us")),
            What::ClosedByUs => out.put("at", format!("{at} closed-by-us")),
            What::Segment(ref line) => {
                out.put("at", format!("{at} segment {}", written(line.as_bytes())))
            }
            What::Saw(kind) => out.put("at", format!("{at} saw {}", kind.id())),
            What::Ended => out.put("at", format!("{at} ended")),
            What::Broken(class) => out.put("at", format!("{at} broken {}", class.id())),
        }
    }
    if !rest.is_empty() {
        out.put("plaintext", written(rest));
    }
    let end = match talk.end {
        TalkEnd::Unconnected(class) => format!("unconnected {}", class.id()),
        TalkEnd::Closed => "closed".to_owned(),
        TalkEnd::Broken(class) => format!("broken {}", class.id()),
        TalkEnd::Open => "open".to_owned(),
        TalkEnd::Silent => "silent".to_owned(),
        TalkEnd::Bounded => "bounded".to_owned(),
        TalkEnd::Ours => "ours".to_owned(),
    };
    out.put("over", format!("{} {end}", talk.over.0));
    out.put("bytes", format!("{} {}", talk.sent, talk.received));
    out.put("all-sent", if talk.all_sent { "yes" } else { "no" });
}

/// Writes how the received bytes were parsed.
fn replies(out: &mut Lines, talk: &Talk) {
    if let Some(count) = talk.before_follow_up {
        out.put("before-follow-up", count);
    }
    talk.replies.interim.iter().for_each(|status| out.put("interim", status));
    for response in &talk.replies.responses {
        let Response { status, minor_version, body_len, complete, persistent, .. } = response;
        let whole = if *complete { "whole" } else { "cut" };
        let stays = if *persistent { "stays" } else { "parts" };
        let digest = hex(response.digest);
        let head = written(&response.head);
        out.put(
            "answer",
            format!("{status} {minor_version} {body_len} {digest} {whole} {stays} {head}"),
        );
    }
    if let Some(frames) = &talk.replies.frames {
        for response in &talk.replies.responses {
            out.put("answered-on", response.stream);
        }
        for (index, response) in talk.replies.responses.iter().enumerate() {
            if !response.trailers.is_empty() {
                out.put("trailers", format!("{index} {}", written(&response.trailers)));
            }
        }
        for FrameSeen { kind, flags, stream, length, payload } in &frames.frames {
            out.put("frame", format!("{kind} {flags} {stream} {length} {}", written(payload)));
        }
    }
    if let Some((why, bytes)) = &talk.replies.junk {
        out.put("junk", written(bytes));
        out.put("junk-why", written(why.as_bytes()));
    }
}

fn judgement(out: &mut Lines, judgement: &Judgement) {
    out.put("outcome", judgement.outcome.id());
    out.put("seen", written(judgement.seen.as_bytes()));
    out.put("expected", written(judgement.expected.as_bytes()));
    out.put("why", written(judgement.why.as_bytes()));
}

/// Returns the SHA-256 of bytes in hexadecimal digits.
pub fn digest(bytes: &[u8]) -> String {
    use sha2::Digest;
    hex(sha2::Sha256::digest(bytes))
}
