//! Tests below HTTP: records and handshakes that no TLS library sends, and the cost of regular
//! ones.

pub(super) mod again;

use crate::{PLAIN_DEADLINE, Runner};
use dialogue::hello::{ALERT, HANDSHAKE, Hello, name_of, record};
use dialogue::talk::{All, Move, Talk, TalkEnd, TalkScript, What};
use torture::case::{Case, SlowHeld, TlsHandshakes, TlsWait};
use torture::judge::{ConversationOutcome, Judgement, PressureOutcome};
use torture::record;
use torture::record::Execution;
use torture::result::{CaseResult, ExchangeResult, Measure, Seen, Unit};
use units::{Nanos, show};

/// Reply of a server to the start of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HandshakeReply {
    /// The server continues the handshake.
    Hello,
    /// The server reports an error: the description of the alert (RFC 8446 section 6).
    Alert(u8),
    /// The server responds in HTTP without TLS.
    Plain,
    Ended,
    /// Other bytes.
    Other,
    Nothing,
    Unconnected,
    /// Closed by us before a reply: because of a limit, or on request.
    Cut,
}

impl HandshakeReply {
    fn new(talk: &Talk) -> HandshakeReply {
        match (talk.raw.as_slice(), talk.end) {
            (_, TalkEnd::Unconnected(_)) => HandshakeReply::Unconnected,
            ([HANDSHAKE, ..], _) => HandshakeReply::Hello,
            ([ALERT, _, _, _, _, _, description, ..], _) => HandshakeReply::Alert(*description),
            (raw, _) if raw.starts_with(b"HTTP/") => HandshakeReply::Plain,
            ([], TalkEnd::Closed | TalkEnd::Broken(_)) => HandshakeReply::Ended,
            ([], TalkEnd::Bounded | TalkEnd::Ours) => HandshakeReply::Cut,
            ([], _) => HandshakeReply::Nothing,
            _ => HandshakeReply::Other,
        }
    }

    fn describe(self) -> String {
        match self {
            HandshakeReply::Hello => "the handshake continues".to_owned(),
            HandshakeReply::Alert(description) => format!("alert {description}"),
            HandshakeReply::Plain => "a response in plain HTTP".to_owned(),
            HandshakeReply::Ended => "closed without a byte".to_owned(),
            HandshakeReply::Other => "bytes that are not TLS".to_owned(),
            HandshakeReply::Nothing => "no response, the connection stays open".to_owned(),
            HandshakeReply::Unconnected => "no connection".to_owned(),
            HandshakeReply::Cut => "ended by us".to_owned(),
        }
    }
}

/// Input, and conforming replies.
struct Trial {
    name: &'static str,
    moves: Vec<Move>,
    expected: &'static str,
    judge: fn(HandshakeReply) -> ConversationOutcome,
}

/// Accepts only a refusal.
fn refused(reply: HandshakeReply) -> ConversationOutcome {
    match reply {
        HandshakeReply::Alert(_) | HandshakeReply::Ended | HandshakeReply::Plain => {
            ConversationOutcome::Pass
        }
        HandshakeReply::Unconnected | HandshakeReply::Cut => ConversationOutcome::Inconclusive,
        HandshakeReply::Hello | HandshakeReply::Other | HandshakeReply::Nothing => {
            ConversationOutcome::Fail
        }
    }
}

/// Accepts a refusal or a continued handshake, but not silence.
fn answered(reply: HandshakeReply) -> ConversationOutcome {
    if reply == HandshakeReply::Hello { ConversationOutcome::Pass } else { refused(reply) }
}

/// RFC 7301 section 3.2: a server that supports the extension refuses; any other continues.
fn no_protocol(reply: HandshakeReply) -> ConversationOutcome {
    if reply == HandshakeReply::Hello { ConversationOutcome::Alternative } else { refused(reply) }
}

/// RFC 8446 section 5.1 permits this, so a server must accept it; refusing affects few clients.
fn understood(reply: HandshakeReply) -> ConversationOutcome {
    match reply {
        HandshakeReply::Hello => ConversationOutcome::Pass,
        HandshakeReply::Unconnected | HandshakeReply::Cut => ConversationOutcome::Inconclusive,
        other => refused(other).max(ConversationOutcome::Advisory),
    }
}

/// Opens a connection to the TLS port and sends nothing.
pub(super) fn silent(
    runner: &mut Runner<'_>,
    case: &Case,
    with: &SlowHeld,
    result: &mut CaseResult,
) {
    let horizon = with.horizon;
    let mut script = plain(runner, Vec::new(), horizon);
    script.hold = true;
    let talk = runner.hold(script.clone());
    let over = talk.over.as_secs_f64();
    let ended = matches!(talk.end, TalkEnd::Closed | TalkEnd::Broken(_));
    let note = match ended {
        true => HandshakeReply::new(&talk).describe(),
        false => format!("none within {}", show::duration(horizon)),
    };
    let outcome = match talk.end {
        TalkEnd::Unconnected(_) | TalkEnd::Bounded | TalkEnd::Ours => {
            ConversationOutcome::Inconclusive
        }
        _ if !ended => ConversationOutcome::Unbounded,
        _ if talk.over > with.soon => ConversationOutcome::Advisory,
        _ => ConversationOutcome::Pass,
    };
    let seen = format!("{note} after {}", show::duration(talk.over));
    let expected = format!("a close within {}", show::duration(with.soon));
    let judgement = Judgement { outcome: outcome.into(), seen, expected, ..Judgement::default() };
    keep(runner, case, "silent from the start", &script, &talk, judgement, result);
    result.measures.push(Measure {
        what: "silent before TLS".to_owned(),
        low: Some(over),
        high: ended.then_some(over),
        unit: Unit::Seconds,
        note,
    });
}

/// Sends a valid ClientHello in one-byte records.
pub(super) fn pieces(
    runner: &mut Runner<'_>,
    case: &Case,
    with: &TlsWait,
    result: &mut CaseResult,
) {
    let hello = Hello { name: name(runner), ..Hello::default() };
    let records: Vec<u8> =
        hello.message().iter().flat_map(|byte| record(HANDSHAKE, &[*byte])).collect();
    let trials = vec![
        Trial {
            name: "whole",
            moves: vec![Move::Send(hello.record())],
            expected: "the handshake continues",
            judge: understood,
        },
        Trial {
            name: "in records of one byte",
            moves: vec![Move::Send(records)],
            expected: "the handshake continues",
            judge: understood,
        },
    ];
    run_trials(runner, case, with, trials, result);
}

/// Sends invalid records and unusual ClientHellos.
pub(super) fn records(
    runner: &mut Runner<'_>,
    case: &Case,
    with: &TlsWait,
    result: &mut CaseResult,
) {
    let own = name(runner);
    let send = |bytes: Vec<u8>| vec![Move::Send(bytes)];
    let named = |name: Option<&[u8]>| {
        let hello = Hello { name: name.map(<[u8]>::to_vec), ..Hello::default() };
        send(hello.record())
    };
    let usual = Hello { name: own.clone(), ..Hello::default() };
    let foreign = Hello { name: own, protocol: Some(b"loadstone/0".to_vec()), ..Hello::default() };
    let empty_first = [record(HANDSHAKE, &[]), usual.record()].concat();
    let long = [vec![b'a'; 63], vec![b'.'], vec![b'b'; 63], vec![b'.'], vec![b'c'; 63]].concat();
    let long = [long, b".".to_vec(), vec![b'd'; 63]].concat();
    let refusal = "an alert, or a closed connection";
    let either = "a continued handshake, an alert, or a closed connection";
    let row = |name, moves, expected, judge| Trial { name, moves, expected, judge };
    let trials = vec![
        row(
            "a record longer than allowed",
            send(record(HANDSHAKE, &[1; 65_535])),
            refusal,
            refused,
        ),
        row("an empty record, then a ClientHello", send(empty_first), either, answered),
        row("a record of unknown type", send(record(99, &[0; 32])), refusal, refused),
        row("bytes that are not a record", send(vec![0xff; 512]), refusal, refused),
        row("plain HTTP", send(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n".to_vec()), refusal, refused),
        row("an unknown ALPN protocol", send(foreign.record()), refusal, no_protocol),
        row("no server name", named(None), either, answered),
        row("an unknown server name", named(Some(b"loadstone.invalid")), either, answered),
        row("an empty server name", named(Some(b"")), either, answered),
        row("a server name of 255 bytes", named(Some(&long)), either, answered),
    ];
    run_trials(runner, case, with, trials, result);
}

/// Performs full handshakes, one per connection, at half the rate and at the full rate.
pub(super) fn handshakes(
    runner: &mut Runner<'_>,
    case: &Case,
    with: &TlsHandshakes,
    result: &mut CaseResult,
) {
    let mut felt = PressureOutcome::Held;
    result.outcome = felt.into();
    for rate in [with.rate / 2.0, with.rate] {
        if runner.is_stopped() || felt != PressureOutcome::Held {
            return;
        }
        let start = runner.now();
        let count = (rate * with.hold.as_secs_f64()).max(1.0) as u64;
        let at = |number: u64| start + Nanos::from_secs_f64(number as f64 / rate);
        let scripts = (0..count).map(|number| {
            let bare = runner.bare(vec![Move::Close], PLAIN_DEADLINE);
            TalkScript { start: at(number), ..bare }
        });
        let mut all = All::new(scripts.collect());
        let probes = runner.play_with_probes(&case.id, &mut all);
        let mut times: Vec<Nanos> = all.into_talks().iter().filter_map(handshake).collect();
        times.sort_unstable();
        let failed = count - times.len() as u64;
        let lost = probes.iter().filter(|probe| probe.seen == Seen::Lost && !probe.ours).count();
        if failed > 0 || lost > 0 {
            felt = if lost > 0 { PressureOutcome::Denied } else { PressureOutcome::Degraded };
            result.outcome = felt.into();
            result.notes.push(format!(
                "at {rate:.0} handshakes per second {failed} of {count} failed, and {lost} of {} \
                probes were lost",
                probes.len()
            ));
        }
        for (part, word) in [(50, "median"), (99, "99th percentile")] {
            let rank = (times.len() * part).div_ceil(100).max(1);
            let Some(time) = times.get(rank - 1) else { continue };
            result.measures.push(Measure::exact(
                format!("handshake at {rate:.0}/s, {word}"),
                time.as_secs_f64(),
                Unit::Spent,
                format!("{count} full handshakes, none resumed"),
            ));
        }
    }
}

/// Returns the time from the connection to the end of the handshake.
fn handshake(talk: &Talk) -> Option<Nanos> {
    let secure = talk.events.iter().find(|event| event.what == What::Secure)?;
    Some(secure.at - talk.connected?)
}

/// Runs all trials at once and judges them.
fn run_trials(
    runner: &mut Runner<'_>,
    case: &Case,
    with: &TlsWait,
    trials: Vec<Trial>,
    result: &mut CaseResult,
) {
    let wait = with.wait;
    let scripts: Vec<TalkScript> =
        trials.iter().map(|trial| plain(runner, trial.moves.clone(), wait)).collect();
    let talks = runner.play_all(scripts.clone());
    for ((trial, script), talk) in trials.iter().zip(&scripts).zip(talks) {
        let reply = HandshakeReply::new(&talk);
        let outcome = (trial.judge)(reply);
        let why = match (outcome, reply) {
            (ConversationOutcome::Fail, HandshakeReply::Nothing) => {
                "it waits for data that will never arrive"
            }
            (ConversationOutcome::Fail, _) => "it continues after input that it cannot have parsed",
            _ => "",
        };
        let judgement = Judgement {
            outcome: outcome.into(),
            seen: reply.describe(),
            expected: trial.expected.to_owned(),
            why: why.to_owned(),
            ..Judgement::default()
        };
        keep(runner, case, trial.name, script, &talk, judgement, result);
    }
}

fn keep(
    runner: &mut Runner<'_>,
    case: &Case,
    name: &str,
    script: &TalkScript,
    talk: &Talk,
    judgement: Judgement,
    result: &mut CaseResult,
) {
    let execution = Execution { case, name, attempt: 1, script, talk, judgement: &judgement };
    runner.report_conversation(&execution);
    result.show(judgement.outcome);
    result.exchanges.push(ExchangeResult {
        name: name.to_owned(),
        judgement,
        tries: 1,
        failed: 1,
        sent: record::sent(&script.steps),
        received: talk.raw.clone(),
        took: talk.over,
        pauses: Vec::new(),
    });
}

/// Returns a conversation below TLS.
fn plain(runner: &mut Runner<'_>, moves: Vec<Move>, deadline: Nanos) -> TalkScript {
    TalkScript { tls_name: None, ..runner.bare(moves, deadline) }
}

fn name(runner: &Runner<'_>) -> Option<Vec<u8>> {
    runner.target.tls_name.as_deref().and_then(name_of)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dialogue::replies::Replies;
    use sample::FailureClass;

    pub(super) fn talk(raw: &[u8], end: TalkEnd) -> Talk {
        Talk {
            start: Nanos::ZERO,
            connected: Some(Nanos::ZERO),
            over: Nanos::SECOND,
            end,
            replies: Replies::new(&[]),
            steps: Vec::new(),
            before_follow_up: None,
            sent: 0,
            received: raw.len() as u64,
            raw: raw.to_vec(),
            events: Vec::new(),
            all_sent: true,
        }
    }

    #[test]
    fn each_reply_is_described_and_judged() {
        use ConversationOutcome::{Advisory, Alternative, Fail, Inconclusive, Pass};
        let table: [(&[u8], TalkEnd, &str, [ConversationOutcome; 4]); 7] = [
            (
                &[22, 3, 3, 0, 4, 2],
                TalkEnd::Silent,
                "the handshake continues",
                [Fail, Pass, Alternative, Pass],
            ),
            (&[21, 3, 3, 0, 2, 2, 120], TalkEnd::Closed, "alert 120", [Pass, Pass, Pass, Advisory]),
            (&[], TalkEnd::Closed, "closed without a byte", [Pass, Pass, Pass, Advisory]),
            (
                b"HTTP/1.1 400 Bad Request\r\n",
                TalkEnd::Closed,
                "a response in plain HTTP",
                [Pass, Pass, Pass, Advisory],
            ),
            (&[], TalkEnd::Silent, "no response, the connection stays open", [Fail; 4]),
            (&[21, 3], TalkEnd::Closed, "bytes that are not TLS", [Fail; 4]),
            (
                &[],
                TalkEnd::Unconnected(FailureClass::Refused),
                "no connection",
                [Inconclusive, Inconclusive, Inconclusive, Inconclusive],
            ),
        ];
        for (raw, end, expected, outcomes) in table {
            let reply = HandshakeReply::new(&talk(raw, end));
            assert_eq!(reply.describe(), expected);
            let judged = [refused, answered, no_protocol, understood].map(|judge| judge(reply));
            assert_eq!(judged, outcomes, "{expected}");
        }
    }

    #[test]
    fn a_client_hello_has_correct_lengths() {
        let hello =
            Hello { name: Some(b"h.example".to_vec()), protocol: Some(b"x".to_vec()), again: None };
        let record = hello.record();
        let count = |at: usize| usize::from(record[at]) << 8 | usize::from(record[at + 1]);
        assert_eq!(count(3), record.len() - 5);
        assert_eq!((record[0], record[5], count(7)), (22, 1, record.len() - 9));
        let bare = Hello::default().record();
        assert_eq!(record.len() - bare.len(), 4 + 2 + 3 + 9 + 4 + 2 + 1 + 1);
    }
}
