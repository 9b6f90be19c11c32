//! Response mix-ups: requests with known responses, on several connections at once. A response that
//! belongs to another request is the most serious failure of a server.

use crate::{PLAIN_DEADLINE, Runner, habits};
use dialogue::replies::Response;
use dialogue::talk::{Awaited, Move, Talk, TalkEnd, TalkScript};
use torture::case::{Case, MixedRequests, OddClients, RequestOrder};
use torture::judge;
use torture::judge::{ConversationOutcome, FailureKind, Judgement};
use torture::record;
use torture::record::Execution;
use torture::result::{CaseResult, ExchangeResult};
use units::show;

/// Maximum number of different known responses.
const KNOWN_MAX: usize = 12;
/// Number of equal responses, requested one at a time, that make a response known. A server that
/// mixes up responses sometimes does so here too.
const SAME: usize = 3;
const ATTEMPTS: usize = 5;
/// Prefix lengths of the page, if it supports ranges.
const PREFIXES: [u64; 5] = [1, 2, 7, 40, 150];
/// Number of missing paths requested: many servers repeat the path.
const NOWHERE: u64 = 2;
/// Prefix of a token, unique on a page.
const TOKEN: &str = "lstk";
/// Length of a token.
const TOKEN_LEN: usize = 12;
/// Maximum number of failures recorded completely.
const KEPT_MAX: usize = 3;
/// Invalid requests for which many servers have distinct error responses.
const ERRORS: [&str; 3] = [
    "loadstone\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: h\r\nHost: i\r\n\r\n",
    "GET / HTTP/1.1\r\nHost : h\r\nContent-Length: x\r\n\r\n",
];

/// Request with its response when no others are sent.
#[derive(Clone, Debug)]
struct KnownResponse {
    name: String,
    target: String,
    fields: String,
    response: Response,
}

impl KnownResponse {
    fn is(&self, response: &Response) -> bool {
        let key = |one: &Response| (one.status, one.body_len, one.digest);
        response.complete && key(&self.response) == key(response)
    }
}

/// Requests of one connection: indices of known ones, with the token of each.
#[derive(Clone, Debug)]
struct OwnRequests {
    known: Vec<usize>,
    tokens: Vec<String>,
    script: TalkScript,
}

pub(super) fn run(
    runner: &mut Runner<'_>,
    case: &Case,
    with: &MixedRequests,
    result: &mut CaseResult,
) {
    // one request per connection does not need a persistent connection
    let keeps = with.depth > 1;
    let known = learn(runner, keeps);
    if known.len() < 2 {
        return result.skip(
            "the server keeps no connection open, or all its responses are alike: name pages \
            with different content with --pages",
        );
    }
    let (mut responses, mut unknown) = (0, 0);
    for round in 0..with.rounds {
        if runner.is_stopped() || result.exchanges.len() >= KEPT_MAX {
            break;
        }
        let asked = plan(runner, with, &known, round);
        let mut scripts: Vec<TalkScript> = asked.iter().map(|one| one.script.clone()).collect();
        let neighbors = neighbors(runner, with, &scripts);
        // between ours, not after them
        for (at, neighbor) in neighbors.into_iter().enumerate() {
            scripts.insert((at * 2).min(scripts.len()), neighbor);
        }
        let talks = runner.play_all(scripts.clone());
        for one in &asked {
            let place = scripts.iter().position(|script| script.steps == one.script.steps);
            let Some(talk) = place.and_then(|place| talks.get(place)) else { continue };
            responses += talk.replies.responses.len() as u64;
            match look(&known, one, talk) {
                ResponseOwner::Own => {}
                ResponseOwner::Unknown => unknown += 1,
                ResponseOwner::Foreign(why) => found(runner, case, one, talk, why, round, result),
            }
        }
    }
    result.notes.push(format!(
        "{} responses were checked, with {} different ones known beforehand",
        show::count(responses),
        known.len()
    ));
    if unknown > 0 {
        let text = format!(
            "{} got a response that matches neither their own request nor any other known one",
            connections(unknown)
        );
        result.notes.push(text);
    }
    if !result.exchanges.is_empty() && !still_match(runner, &known, keeps) {
        result.notes.push("the pages changed meanwhile, so nothing can be concluded".to_owned());
        result.outcome = ConversationOutcome::Inconclusive.into();
        result.exchanges.iter_mut().for_each(|one| {
            one.judgement.outcome = ConversationOutcome::Inconclusive.into();
        });
    }
}

fn connections(count: u64) -> String {
    let noun = if count == 1 { "connection" } else { "connections" };
    format!("{} {noun}", show::count(count))
}

/// Learns which requests always get the same response, different from all others.
fn learn(runner: &mut Runner<'_>, keeps: bool) -> Vec<KnownResponse> {
    let path = runner.target.values.path.clone();
    let mut wanted = vec![("the page".to_owned(), path.clone(), String::new())];
    let pages = runner.settings.pages.iter().take(KNOWN_MAX);
    wanted.extend(pages.map(|page| (page.clone(), page.clone(), String::new())));
    wanted.extend((1..=NOWHERE).map(|number| {
        let nowhere = format!("/loadstone-nothing-here-{number}");
        (nowhere.clone(), nowhere, String::new())
    }));
    wanted.extend(PREFIXES.map(|bytes| {
        let fields = format!("Range: bytes=0-{}\r\n", bytes - 1);
        (format!("the first {bytes} bytes of the page"), path.clone(), fields)
    }));
    let mut known: Vec<KnownResponse> = Vec::new();
    for (name, target, fields) in wanted {
        if runner.is_stopped() || known.len() == KNOWN_MAX {
            break;
        }
        let Some(response) = steady(runner, &target, &fields, keeps) else { continue };
        if !known.iter().any(|one| one.is(&response)) {
            known.push(KnownResponse { name, target, fields, response });
        }
    }
    known
}

/// Returns the response to a request if it is nearly always the same and the connection stays open
/// as required.
fn steady(runner: &mut Runner<'_>, target: &str, fields: &str, keeps: bool) -> Option<Response> {
    let mut seen: Vec<(usize, Response)> = Vec::new();
    for _ in 0..ATTEMPTS {
        let token = token(runner);
        let talk = runner.ask(&request(runner, target, fields, &token));
        let Some(response) = talk.replies.responses.first().filter(|one| one.complete) else {
            continue;
        };
        let key = |one: &Response| (one.status, one.body_len, one.digest);
        match seen.iter_mut().find(|(_, known)| key(known) == key(response)) {
            Some((count, _)) => *count += 1,
            None => seen.push((1, response.clone())),
        }
        if let Some((_, response)) = seen.iter().find(|(count, _)| *count == SAME) {
            return Some(response.clone()).filter(|one| one.persistent || !keeps);
        }
    }
    None
}

/// Returns whether every request still gets its known response when sent alone.
fn still_match(runner: &mut Runner<'_>, known: &[KnownResponse], keeps: bool) -> bool {
    known.iter().all(|one| {
        steady(runner, &one.target, &one.fields, keeps).is_some_and(|response| one.is(&response))
    })
}

fn token(runner: &mut Runner<'_>) -> String {
    let digits = TOKEN_LEN - TOKEN.len();
    format!("{TOKEN}{:0digits$}", runner.next_serial() % 10_u64.pow(digits as u32))
}

/// Adds the token in a field that many servers repeat.
fn request(runner: &Runner<'_>, target: &str, fields: &str, token: &str) -> Vec<u8> {
    let (host, ours) = (&runner.target.values.host, &runner.target.fields);
    format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n{ours}X-Request-ID: {token}\r\n{fields}\r\n")
        .into_bytes()
}

/// Plans the requests of each connection in this round: neighbors never send the same request at
/// the same position.
fn plan(
    runner: &mut Runner<'_>,
    with: &MixedRequests,
    known: &[KnownResponse],
    round: u64,
) -> Vec<OwnRequests> {
    let (connections, depth) = (with.connections, with.depth);
    let in_turn = with.order == RequestOrder::InTurn;
    (0..connections)
        .map(|connection| {
            let which = |place: u64| (round + connection + place * 3) as usize % known.len();
            let known_ones: Vec<usize> = (0..depth).map(which).collect();
            let tokens: Vec<String> = (0..depth).map(|_| token(runner)).collect();
            let mut requests = known_ones.iter().zip(&tokens).map(|(which, token)| {
                let KnownResponse { target, fields, .. } = &known[*which];
                request(runner, target, fields, token)
            });
            let steps: Vec<Move> = match in_turn {
                true => requests
                    .flat_map(|one| [Move::Send(one), Move::Await(Awaited::Response)])
                    .collect(),
                false => vec![Move::Send(requests.by_ref().flatten().collect())],
            };
            let mut script = runner.bare(steps, PLAIN_DEADLINE);
            script.methods = vec!["GET".to_owned(); known_ones.len()];
            OwnRequests { known: known_ones, tokens, script }
        })
        .collect()
}

/// Returns the odd clients alongside: some disconnect in the middle, others are refused.
fn neighbors(
    runner: &mut Runner<'_>,
    with: &MixedRequests,
    ours: &[TalkScript],
) -> Vec<TalkScript> {
    let aborted = habits::plain_request(runner.target, "").repeat(4);
    (0..ours.len())
        .filter_map(|index| match with.beside {
            OddClients::Aborted => {
                let steps = vec![Move::Send(aborted.clone()), Move::Reset];
                Some(runner.bare(steps, PLAIN_DEADLINE))
            }
            OddClients::Refused => {
                let bytes = ERRORS[index % ERRORS.len()].as_bytes().to_vec();
                Some(runner.bare(vec![Move::Send(bytes)], PLAIN_DEADLINE))
            }
            OddClients::Nobody => None,
        })
        .collect()
}

/// Data received on a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ResponseOwner {
    Own,
    /// Neither the expected response nor that of another request, for instance from an overloaded
    /// server.
    Unknown,
    /// Response to another request, and how it was recognized.
    Foreign(String),
}

fn look(known: &[KnownResponse], asked: &OwnRequests, talk: &Talk) -> ResponseOwner {
    if let Some(token) = foreign_token(&talk.raw, &asked.tokens) {
        return ResponseOwner::Foreign(format!(
            "the response contained the token {token}, which was sent on another connection"
        ));
    }
    let mut seen = ResponseOwner::Own;
    for (place, response) in talk.replies.responses.iter().enumerate() {
        let Some(own) = asked.known.get(place).map(|which| &known[*which]) else {
            return ResponseOwner::Foreign(format!(
                "{} responses arrived for {} requests",
                talk.replies.responses.len(),
                asked.known.len()
            ));
        };
        if !response.complete || own.is(response) {
            continue;
        }
        match known.iter().find(|other| other.is(response)) {
            Some(other) => {
                return ResponseOwner::Foreign(format!(
                    "request {} of {} was for {}, but the response is that of {}: {} with {}",
                    place + 1,
                    asked.known.len(),
                    own.name,
                    other.name,
                    response.status,
                    show::bytes(response.body_len)
                ));
            }
            None => seen = ResponseOwner::Unknown,
        }
    }
    seen
}

/// Finds one of our tokens that was not sent on this connection.
fn foreign_token(raw: &[u8], own: &[String]) -> Option<String> {
    let places = raw.windows(TOKEN_LEN).filter(|here| here.starts_with(TOKEN.as_bytes()));
    let tokens = places.filter(|here| here[TOKEN.len()..].iter().all(u8::is_ascii_digit));
    let mut tokens = tokens.map(|token| String::from_utf8_lossy(token).into_owned());
    tokens.find(|token| !own.contains(token))
}

fn found(
    runner: &mut Runner<'_>,
    case: &Case,
    asked: &OwnRequests,
    talk: &Talk,
    why: String,
    round: u64,
    result: &mut CaseResult,
) {
    if result.exchanges.len() >= KEPT_MAX || matches!(talk.end, TalkEnd::Unconnected(_)) {
        return;
    }
    let name = format!("round {}, connection {}", round + 1, result.exchanges.len() + 1);
    let judgement = Judgement {
        outcome: ConversationOutcome::Fail.into(),
        seen: judge::seen(talk),
        expected: "its own response for each request".to_owned(),
        why,
        kind: Some(FailureKind::Foreign),
        ..Judgement::default()
    };
    let script = &asked.script;
    runner.report_conversation(&Execution {
        case,
        name: &name,
        attempt: 1,
        script,
        talk,
        judgement: &judgement,
    });
    result.show(ConversationOutcome::Fail);
    result.exchanges.push(ExchangeResult {
        name,
        judgement,
        tries: 1,
        failed: 1,
        sent: record::sent(&script.steps),
        received: talk.raw.clone(),
        took: talk.over,
        pauses: Vec::new(),
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_foreign_token_is_found_anywhere() {
        let own = ["lstk00000001".to_owned(), "lstk00000002".to_owned()];
        for (raw, found) in [
            (&b"X-Request-ID: lstk00000001\r\n\r\nlstk00000002"[..], None),
            (b"X-Request-ID: lstk00000003\r\n", Some("lstk00000003")),
            (b"lstkabcdefgh lstk0000", None),
            (b"", None),
        ] {
            assert_eq!(foreign_token(raw, &own).as_deref(), found);
        }
    }
}
