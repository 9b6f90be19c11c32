//! Parses transcripts. An invalid line is named; nothing is guessed.

use super::{FIRST_LINE, TRANSCRIPT_MAX, Transcript};
use crate::judge::{Judgement, Plain, TestOutcome};
use conduit::{OpenOptions, Peer};
use dialogue::http2::{FrameSeen, Protocol};
use dialogue::packets::{PacketKind, PacketStep};
use dialogue::replies::{Replies, Response};
use dialogue::talk::Awaited;
use dialogue::talk::{Move, Talk, TalkEnd, TalkEvent, TalkScript, What};
use dialogue::text;
use dialogue::text::Values;
use sample::FailureClass;
use std::net::SocketAddr;
use units::{Nanos, quoted, show};

/// Parses a transcript.
///
/// # Errors
/// Fails on an invalid line, with the reason, or if something is missing: a truncated file lacks
/// its outcome.
pub fn read(file: &str) -> Result<Transcript, String> {
    if file.len() > TRANSCRIPT_MAX {
        let most = show::bytes(TRANSCRIPT_MAX as u64);
        return Err(format!("it is longer than {most}, the limit for transcripts"));
    }
    let mut lines = file.lines().enumerate();
    match lines.next() {
        Some((_, FIRST_LINE)) => {}
        Some((_, other)) => {
            // 40 characters identify any version
            let other: String = other.chars().take(40).collect();
            let hint = match other.starts_with("loadstone.wire/") {
                true => {
                    ": it was recorded by another version of loadstone; use that version to \
                    read it"
                }
                false => "",
            };
            return Err(format!("line 1 is {}, not {FIRST_LINE}{hint}", quoted(&other)));
        }
        None => return Err("it is empty".to_owned()),
    }
    let mut parts = Parts::default();
    for (index, line) in lines.filter(|(_, line)| !line.is_empty()) {
        let read = parts.line(line);
        read.map_err(|why| format!("line {}: {why}", index + 1))?;
    }
    parts.whole()
}

/// The parts parsed so far.
#[derive(Default)]
struct Parts {
    loadstone: String,
    target: String,
    case: Option<(String, u32, u32)>,
    name: String,
    began: u64,
    plain: Plain,
    peer: Option<Peer>,
    tls: Option<String>,
    protocol: Protocol,
    recv_buffer: Option<u32>,
    methods: Vec<String>,
    deadline: Nanos,
    grace: Nanos,
    linger: Nanos,
    hold: bool,
    follow_up: Option<Vec<u8>>,
    steps: Vec<Move>,
    events: Vec<TalkEvent>,
    raw: Vec<u8>,
    over: Option<(Nanos, TalkEnd)>,
    counts: (u64, u64),
    all_sent: bool,
    before: Option<usize>,
    interim: Vec<u16>,
    responses: Vec<Response>,
    /// The streams of the responses, in order.
    answered_on: Vec<u32>,
    frames: Vec<FrameSeen>,
    junk: Option<Vec<u8>>,
    junk_why: String,
    outcome: Option<TestOutcome>,
    seen: String,
    expected: String,
    why: String,
}

impl Parts {
    fn line(&mut self, line: &str) -> Result<(), String> {
        let (name, value) = line.split_once(' ').unwrap_or((line, ""));
        match name {
            "loadstone" => self.loadstone = words(value)?,
            "target" => self.target = words(value)?,
            "case" => self.case = Some(case(value)?),
            "name" => self.name = words(value)?,
            "began" => self.began = number(value)?,
            "plain" => self.plain = plain(value)?,
            "peer" => self.peer = Some(Peer::Tcp(address(value)?)),
            "unix" => self.peer = Some(Peer::Unix(words(value)?.into())),
            "tls" => self.tls = Some(words(value)?),
            "spoken" => self.protocol = protocol(value)?,
            "receive-buffer" => self.recv_buffer = Some(number(value)?),
            "method" => self.methods.push(words(value)?),
            "deadline" => self.deadline = span(value)?,
            "grace" => self.grace = span(value)?,
            "linger" => self.linger = span(value)?,
            "hold" => self.hold = yes(value)?,
            "follow-up" => self.follow_up = Some(bytes(value)?),
            "step" => self.steps.push(step(value)?),
            _ => return self.outcome_line(name, value),
        }
        Ok(())
    }

    /// Parses a line of the outcome.
    fn outcome_line(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "at" => self.event(value)?,
            "plaintext" => self.raw.extend(bytes(value)?),
            "over" => self.over = Some(parse_end(value)?),
            "bytes" => {
                let (sent, received) = two(value)?;
                self.counts = (number(sent)?, number(received)?);
            }
            "all-sent" => self.all_sent = yes(value)?,
            "before-follow-up" => self.before = Some(number(value)?),
            "interim" => self.interim.push(number(value)?),
            "answer" => self.responses.push(response(value)?),
            "answered-on" => self.answered_on.push(number(value)?),
            "trailers" => {
                let (index, lines) = two(value)?;
                let answer = self.responses.get_mut(number::<usize>(index)?);
                let answer = answer.ok_or("trailers of a missing answer")?;
                answer.trailers = bytes(lines)?;
            }
            "frame" => self.frames.push(frame(value)?),
            "junk" => self.junk = Some(bytes(value)?),
            "junk-why" => self.junk_why = words(value)?,
            "outcome" => {
                let found = TestOutcome::ALL.into_iter().find(|outcome| outcome.id() == value);
                self.outcome =
                    Some(found.ok_or_else(|| format!("{} is not an outcome", quoted(value)))?);
            }
            "seen" => self.seen = words(value)?,
            "expected" => self.expected = words(value)?,
            "why" => self.why = words(value)?,
            other => return Err(format!("{} is not a line of a transcript", quoted(other))),
        }
        Ok(())
    }

    fn event(&mut self, value: &str) -> Result<(), String> {
        let (at, rest) = two(value)?;
        let (word, more) = rest.split_once(' ').unwrap_or((rest, ""));
        let what = match word {
            "connected" => What::Connected,
            "secure" => What::Secure,
            "sent" => What::Sent(number(more)?),
            "received" => {
                let (count, kept) = two(more)?;
                self.raw.extend(bytes(kept)?);
                What::Received(number(count)?)
            }
            "half-closed" => What::HalfClosed,
            "reset-by-us" => What::ResetByUs,
            "closed-by-us" => What::ClosedByUs,
            "segment" => What::Segment(words(more)?),
            "saw" => {
                let kind = PacketKind::from_name(more);
                What::Saw(kind.ok_or_else(|| format!("{} is not a kind of segment", quoted(more)))?)
            }
            "ended" => What::Ended,
            "broken" => What::Broken(class(more)?),
            other => return Err(format!("{} is not an event", quoted(other))),
        };
        self.events.push(TalkEvent { at: span(at)?, what });
        Ok(())
    }

    fn whole(self) -> Result<Transcript, String> {
        let missing = |what: &str| format!("it has no line `{what}`: it is incomplete");
        let (case, version, attempt) = self.case.ok_or_else(|| missing("case"))?;
        let peer = self.peer.ok_or_else(|| missing("peer"))?;
        let (over, end) = self.over.ok_or_else(|| missing("over"))?;
        let outcome = self.outcome.ok_or_else(|| missing("outcome"))?;
        let script = TalkScript {
            peer,
            options: OpenOptions {
                nodelay: true,
                recv_buffer: self.recv_buffer,
                ..OpenOptions::default()
            },
            tls_name: self.tls,
            protocol: self.protocol,
            start: Nanos::ZERO,
            steps: self.steps,
            methods: self.methods,
            deadline: self.deadline,
            follow_up: self.follow_up,
            grace: self.grace,
            linger: self.linger,
            hold: self.hold,
            probe: false,
        };
        let connected = self.events.iter().find(|event| event.what == What::Connected);
        let junk = self.junk.map(|bytes| (self.junk_why, bytes));
        let mut responses = self.responses;
        for (response, stream) in responses.iter_mut().zip(self.answered_on) {
            response.stream = stream;
        }
        let replies = Replies::kept(self.interim, responses, junk);
        let replies = match self.protocol.has_frames() {
            true => replies.with_frames(self.frames),
            false => replies,
        };
        let talk = Talk {
            start: Nanos::ZERO,
            connected: connected.map(|event| event.at),
            over,
            end,
            replies,
            steps: script.steps.clone(),
            before_follow_up: self.before,
            sent: self.counts.0,
            received: self.counts.1,
            raw: self.raw,
            events: self.events,
            all_sent: self.all_sent,
        };
        let (seen, expected, why) = (self.seen, self.expected, self.why);
        Ok(Transcript {
            loadstone: self.loadstone,
            target: self.target,
            case,
            version,
            name: self.name,
            attempt,
            began_unix_ns: self.began,
            plain: self.plain,
            script,
            talk,
            judgement: Judgement { outcome, seen, expected, why, ..Judgement::default() },
        })
    }
}

fn bytes(value: &str) -> Result<Vec<u8>, String> {
    text::bytes(value, &Values::default())
}

fn words(value: &str) -> Result<String, String> {
    String::from_utf8(bytes(value)?).map_err(|_| format!("{} is not UTF-8", quoted(value)))
}

fn number<N: std::str::FromStr>(value: &str) -> Result<N, String> {
    value.parse().map_err(|_| format!("{} is not a number in the allowed range", quoted(value)))
}

fn span(value: &str) -> Result<Nanos, String> {
    number(value).map(Nanos)
}

fn yes(value: &str) -> Result<bool, String> {
    match value {
        "yes" => Ok(true),
        "no" => Ok(false),
        other => Err(format!("{} is neither yes nor no", quoted(other))),
    }
}

fn two(value: &str) -> Result<(&str, &str), String> {
    value.split_once(' ').ok_or_else(|| format!("after {} something is missing", quoted(value)))
}

fn address(value: &str) -> Result<SocketAddr, String> {
    value.parse().map_err(|_| format!("{} is not an address with a port", quoted(value)))
}

fn class(value: &str) -> Result<FailureClass, String> {
    let found = FailureClass::ALL.iter().find(|class| class.id() == value);
    found.copied().ok_or_else(|| format!("{} is not a class of failure", quoted(value)))
}

fn case(value: &str) -> Result<(String, u32, u32), String> {
    let (id, rest) = two(value)?;
    let (version, attempt) = two(rest)?;
    Ok((words(id)?, number(version)?, number(attempt)?))
}

fn plain(value: &str) -> Result<Plain, String> {
    let (status, rest) = two(value)?;
    let (body_len, sum) = two(rest)?;
    let (sum, outside) = sum.split_once(' ').map_or((sum, None), |(sum, rest)| (sum, Some(rest)));
    let digest_of = |sum: &str| if sum == "-" { Ok(None) } else { digest(sum).map(Some) };
    let outside = outside.map_or(Ok(None), digest_of)?;
    let digest = digest_of(sum)?;
    Ok(Plain { status: number(status)?, body_len: number(body_len)?, digest, outside })
}

fn digest(value: &str) -> Result<[u8; 32], String> {
    let wrong = || format!("{} is not a SHA-256 digest", quoted(value));
    let plain = value.len() == 64 && value.bytes().all(|digit| digit.is_ascii_hexdigit());
    if !plain {
        return Err(wrong());
    }
    let mut out = [0; 32];
    for (place, byte) in out.iter_mut().enumerate() {
        let digits = &value[place * 2..place * 2 + 2];
        *byte = u8::from_str_radix(digits, 16).map_err(|_| wrong())?;
    }
    Ok(out)
}

fn step(value: &str) -> Result<Move, String> {
    let (word, argument) = value.split_once(' ').unwrap_or((value, ""));
    Ok(match (word, argument) {
        ("packet", line) => Move::Packet(PacketStep::parse(line)?),
        ("send", text) => Move::Send(bytes(text)?),
        ("pause", length) => Move::Pause(span(length)?),
        ("await", "interim") => Move::Await(Awaited::Interim),
        ("await", "answer") => Move::Await(Awaited::Response),
        ("await", "end") => Move::Await(Awaited::End),
        ("await", "settings") => Move::Await(Awaited::Settings),
        ("await", "socket-end") => Move::Await(Awaited::SocketEnd),
        ("half-close", "") => Move::HalfClose,
        ("reset", "") => Move::Reset,
        ("close", "") => Move::Close,
        ("stop-reading", "") => Move::StopReading,
        ("urgent", "") => Move::Urgent,
        ("read", "") => Move::Read,
        ("renegotiate", "") => Move::Renegotiate,
        ("sip", most) => Move::Sip(number(most)?),
        _ => return Err(format!("{} is not a step", quoted(value))),
    })
}

fn parse_end(value: &str) -> Result<(Nanos, TalkEnd), String> {
    let (at, rest) = two(value)?;
    let (word, argument) = rest.split_once(' ').unwrap_or((rest, ""));
    let end = match word {
        "unconnected" => TalkEnd::Unconnected(class(argument)?),
        "closed" => TalkEnd::Closed,
        "broken" => TalkEnd::Broken(class(argument)?),
        "open" => TalkEnd::Open,
        "silent" => TalkEnd::Silent,
        "bounded" => TalkEnd::Bounded,
        "ours" => TalkEnd::Ours,
        other => return Err(format!("{} is not an end", quoted(other))),
    };
    Ok((span(at)?, end))
}

fn response(value: &str) -> Result<Response, String> {
    let parts: Vec<&str> = value.splitn(7, ' ').collect();
    let [status, minor, body_len, sum, whole, stays, head] = parts[..] else {
        return Err("a response has seven parts".to_owned());
    };
    let word = |value: &str, right: &str, wrong: &str| match value {
        it if it == right => Ok(true),
        it if it == wrong => Ok(false),
        other => Err(format!("{} is neither {right} nor {wrong}", quoted(other))),
    };
    Ok(Response {
        status: number(status)?,
        minor_version: number(minor)?,
        head: bytes(head)?,
        body_len: number(body_len)?,
        digest: digest(sum)?,
        complete: word(whole, "whole", "cut")?,
        persistent: word(stays, "stays", "parts")?,
        ..Response::default()
    })
}

fn protocol(value: &str) -> Result<Protocol, String> {
    match value {
        "http2" => Ok(Protocol::Http2),
        "http2-raw" => Ok(Protocol::Http2Raw),
        "http3" => Ok(Protocol::Http3),
        "quic-datagrams" => Ok(Protocol::Datagrams),
        other => Err(format!("{} is not a protocol", quoted(other))),
    }
}

fn frame(value: &str) -> Result<FrameSeen, String> {
    let parts: Vec<&str> = value.splitn(5, ' ').collect();
    let [kind, flags, stream, length, payload] = parts[..] else {
        return Err("a frame has five parts".to_owned());
    };
    Ok(FrameSeen {
        kind: number(kind)?,
        flags: number(flags)?,
        stream: number(stream)?,
        length: number(length)?,
        payload: bytes(payload)?,
    })
}
