//! Held states: the conversations of each.

use super::connection_search::ConnectionSearch;
use crate::{Runner, habits};
use dialogue::talk::{Move, TalkScript};
use torture::case::{Case, PressHeld, PressedState};
use torture::result::CaseResult;
use units::{Nanos, show};

/// Maximum lifetime of a connection that the server does not close.
const LIFE: Nanos = Nanos::from_secs(600);
/// Interval between two drips.
const DRIP: Nanos = Nanos::from_secs(5);
const DRIPS: usize = 120;
/// Size of a declared body.
const BODY: u64 = 100_000;
/// Number of bytes that kernels may buffer between the server and a client that does not read.
const BUFFERS: u64 = 16 << 20;
const SMALL_BUFFER: u32 = 4_096;

pub(in crate::families) fn run(
    runner: &mut Runner<'_>,
    case: &Case,
    with: &PressHeld,
    result: &mut CaseResult,
) {
    let unread = with.state == PressedState::Unread && case.press;
    if unread && size_of_page(runner) < BUFFERS {
        let least = show::bytes(BUFFERS);
        return result.skip(format!(
            "no page of {least} or more, too large for buffers, is given (--big \
                PATH)"
        ));
    }
    let (state, make): (&str, &dyn Fn(&mut Runner<'_>) -> TalkScript) = match with.state {
        PressedState::HalfHead => ("half a head", &half_head),
        PressedState::DrippedHead => ("a dripped head", &dripped_head),
        PressedState::DrippedBody => ("a dripped body", &dripped_body),
        PressedState::Unread if case.press => ("an unread response", &self::unread),
        PressedState::Unread => ("an unread response", &abandoned),
        PressedState::Idle => ("an idle connection", &idle),
    };
    let polite: &dyn Fn(&mut Runner<'_>) -> TalkScript = &idle;
    let connection_search = ConnectionSearch {
        case,
        state,
        make,
        control: (with.state != PressedState::Idle).then_some(polite),
        most: with.connections,
        hold: with.hold,
    };
    connection_search.run(runner, result);
}

fn held(runner: &mut Runner<'_>, steps: Vec<Move>) -> TalkScript {
    TalkScript { hold: true, ..runner.bare(steps, LIFE) }
}

/// Returns a request without its last line.
fn beginning(runner: &Runner<'_>) -> Vec<u8> {
    let mut head = habits::plain_request(runner.target, "");
    head.truncate(head.len() - 2);
    head
}

pub(in crate::families) fn half_head(runner: &mut Runner<'_>) -> TalkScript {
    let head = beginning(runner);
    held(runner, vec![Move::Send(head)])
}

fn drips(first: Vec<u8>, drop: &[u8]) -> Vec<Move> {
    let mut steps = vec![Move::Send(first)];
    for _ in 0..DRIPS {
        steps.extend([Move::Pause(DRIP), Move::Send(drop.to_vec())]);
    }
    steps
}

pub(in crate::families) fn dripped_head(runner: &mut Runner<'_>) -> TalkScript {
    let steps = drips(beginning(runner), b"X-Drip: a\r\n");
    held(runner, steps)
}

pub(in crate::families) fn dripped_body(runner: &mut Runner<'_>) -> TalkScript {
    let head = post_head(runner, BODY);
    let script = held(runner, drips(head, b"a"));
    TalkScript { methods: vec!["POST".to_owned()], ..script }
}

pub(super) fn post_head(runner: &Runner<'_>, length: u64) -> Vec<u8> {
    let target = runner.target;
    let (path, host, ours) = (&target.values.post, &target.values.host, &target.fields);
    format!("POST {path} HTTP/1.1\r\nHost: {host}\r\n{ours}Content-Length: {length}\r\n\r\n")
        .into_bytes()
}

/// Returns the size of the unread page.
fn size_of_page(runner: &mut Runner<'_>) -> u64 {
    let Some(path) = runner.settings.big.clone() else { return runner.profile.plain().body_len };
    let request = get(runner, &path);
    let responses = runner.ask(&request).replies.responses;
    responses.first().filter(|first| first.status < 300).map_or(0, |first| first.body_len)
}

fn get(runner: &Runner<'_>, path: &str) -> Vec<u8> {
    let (host, ours) = (&runner.target.values.host, &runner.target.fields);
    format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{ours}\r\n").into_bytes()
}

fn unread(runner: &mut Runner<'_>) -> TalkScript {
    let path = runner.settings.big.clone().unwrap_or_else(|| runner.target.values.path.clone());
    let request = get(runner, &path);
    not_reading(runner, request)
}

/// Returns a conversation that requests the plain page and never reads the response.
pub(in crate::families) fn abandoned(runner: &mut Runner<'_>) -> TalkScript {
    let request = habits::plain_request(runner.target, "");
    not_reading(runner, request)
}

fn not_reading(runner: &mut Runner<'_>, request: Vec<u8>) -> TalkScript {
    let mut script = held(runner, vec![Move::StopReading, Move::Send(request)]);
    script.options.recv_buffer = Some(SMALL_BUFFER);
    script
}

pub(in crate::families) fn idle(runner: &mut Runner<'_>) -> TalkScript {
    let request = habits::plain_request(runner.target, "");
    held(runner, vec![Move::Send(request)])
}
