//! Features of the server that a case may need, and its behavior for harmless oddities, before the
//! first case.

use crate::scripts::{LINGER, socket_steps};
use crate::{GRACE, ODDITIES, PLAIN_DEADLINE, Runner, ServerCommand, TestTarget, habits};
use dialogue::calls;
use dialogue::talk::{Awaited, Move, Talk};
use dialogue::text::{self, Values};
use torture::case::{Case, Need};
use torture::judge;
use torture::result::{Habits, RunResult};
use units::Nanos;

/// Time for which a body is withheld, to see whether the server waits for it.
const WITHHELD: Nanos = Nanos::from_millis(500);

/// Framing of a body of one byte, and of chunks, with the first one.
const LENGTH: &str = "Content-Length: 1";
const CODING: &str = "Transfer-Encoding: chunked";
const CHUNK: &str = "1\r\nx\r\n";

/// Returns the features that a case may need.
pub(crate) fn offers(runner: &mut Runner<'_>, result: &mut RunResult) -> Vec<Need> {
    let plain = runner.ask(&habits::plain_request(runner.target, ""));
    let mut has = habits::offers(&plain, &ranges(runner));
    runner.profile.learn_page(&plain);
    has.extend(runner.profile.has_table().then_some(Need::Table));
    has.extend(early(runner));
    has.extend(socket(runner, &plain));
    has.extend(health(runner));
    result.post_trouble = post_trouble(runner);
    if runner.target.takes_bodies && result.post_trouble.is_none() {
        has.push(Need::Post);
        let reads = Case::any_needs(runner.cases, &[Need::Reading]) && reads_bodies(runner);
        has.extend(reads.then_some(Need::Reading));
        let decodes = Case::any_needs(runner.cases, &[Need::Chunked]) && reads_chunks(runner);
        has.extend(decodes.then_some(Need::Chunked));
    }
    if !runner.settings.pages.is_empty() {
        has.push(Need::Pages);
    }
    if runner.settings.expensive.is_some() {
        has.push(Need::Expensive);
    }
    if runner.settings.outside.is_some() {
        has.push(Need::Outside);
    }
    if runner.settings.soak.is_some() {
        has.push(Need::Soak);
    }
    if runner.world.device().is_ok() {
        has.push(Need::Device);
    }
    let gives = |action: &ServerCommand| runner.settings.commands.contains(action);
    if gives(&ServerCommand::Restart) {
        has.push(Need::Restart);
    }
    if gives(&ServerCommand::Starve) && gives(&ServerCommand::Relieve) {
        has.push(Need::Starve);
    }
    has
}

/// Returns the server's support for early data, if a case needs it.
fn early(runner: &mut Runner<'_>) -> Vec<Need> {
    let early = [Need::EarlyTicket, Need::EarlyData];
    if !Case::any_needs(runner.cases, &early)
        || !runner.target.protocol.is_http3()
        || runner.is_stopped()
    {
        return Vec::new();
    }
    let talk = runner.ask(&habits::early_request(runner.target));
    let heard = |name| habits::has_frame(&talk, name);
    match (heard("no-ticket"), heard("early-accepted"), heard("early-rejected")) {
        (false, true, _) => early.to_vec(),
        (false, false, true) => early[..1].to_vec(),
        _ => Vec::new(),
    }
}

/// Usual path of a WebSocket, tried after the probed page.
const SOCKET_PATH: &str = "/ws";

/// Time after the handshake in which a server closes a WebSocket that it does not use.
const SOCKET_SETTLE: Nanos = Nanos::from_millis(200);

/// SETTINGS_ENABLE_CONNECT_PROTOCOL (RFC 8441 section 3).
const ENABLE_CONNECT_PROTOCOL: u16 = 8;

/// Returns whether the server announces that it accepts extended CONNECT.
fn tunnels(plain: &Talk) -> bool {
    let frames = plain.replies.frames.iter().flat_map(|frames| &frames.frames);
    let mut settings = frames.filter(|frame| frame.is_settings());
    settings.any(|frame| frame.setting(ENABLE_CONNECT_PROTOCOL) == Some(1))
}

/// Finds a WebSocket, if a case needs one: at the given path, or at the usual ones. `plain`: a
/// plain response, with the SETTINGS of HTTP/2 before it.
fn socket(runner: &mut Runner<'_>, plain: &Talk) -> Vec<Need> {
    let is_asked = Case::any_needs(runner.cases, &[Need::Socket, Need::SocketDeflate]);
    if !is_asked || runner.target.protocol.is_http3() {
        return Vec::new();
    }
    if runner.target.protocol.is_http2() {
        if !tunnels(plain) {
            return Vec::new();
        }
        runner.profile.learn_tunnels();
    }
    let known = &runner.target.values;
    let paths = match known.socket.as_str() {
        "" => vec![known.path.clone(), SOCKET_PATH.to_owned()],
        given => vec![given.to_owned()],
    };
    for path in paths {
        if runner.is_stopped() {
            break;
        }
        let talk = handshake(runner, &path);
        let Some(response) = talk.replies.responses.first().filter(|_| judge::opens_socket(&talk))
        else {
            continue;
        };
        if judge::closes_socket(&talk) {
            let seen = judge::seen(&talk);
            runner.profile.learn_socket_trouble(format!(
                "{path} opens a WebSocket and closes it at once ({seen}): --ws-path names another"
            ));
            continue;
        }
        let deflates = response
            .field("sec-websocket-extensions")
            .any(|one| one.starts_with("permessage-deflate"));
        runner.profile.learn_socket(&path);
        let compressed = deflates.then_some(Need::SocketDeflate);
        return std::iter::once(Need::Socket).chain(compressed).collect();
    }
    Vec::new()
}

/// Performs a handshake at this path that offers compression.
fn handshake(runner: &mut Runner<'_>, path: &str) -> Talk {
    let tunneled = runner.target.protocol.is_http2();
    let known = runner.target.values.clone();
    let values = Values { socket: path.to_owned(), tunneled, ..known };
    let offer = r"{upgrade Sec-WebSocket-Extensions: permessage-deflate\r\n}";
    let made = text::bytes(offer, &values).unwrap_or_default();
    let steps = match tunneled {
        true => socket_steps(vec![Move::Send(made), Move::Await(Awaited::Response), Move::Close]),
        false => vec![
            Move::Send(made),
            Move::Await(Awaited::Response),
            // a page without a use for it closes it at once
            Move::Pause(SOCKET_SETTLE),
        ],
    };
    let script = runner.bare(steps, PLAIN_DEADLINE);
    runner.hold(script)
}

/// Finds the gRPC service for health checks, if a case needs it.
fn health(runner: &mut Runner<'_>) -> Option<Need> {
    if !Case::any_needs(runner.cases, &[Need::Health])
        || !runner.target.is_grpc()
        || runner.is_stopped()
    {
        return None;
    }
    let (path, message) = (calls::HEALTH.to_owned(), calls::EMPTY.to_vec());
    let values = Values { path, message, ..runner.target.values.clone() };
    let target = TestTarget { values, ..runner.target.clone() };
    let talk = runner.ask(&habits::plain_request(&target, ""));
    let response = talk.replies.responses.first()?;
    response.call_status().is_some_and(|status| status.is_ok()).then_some(Need::Health)
}

fn ranges(runner: &mut Runner<'_>) -> Talk {
    runner.ask(&habits::plain_request(runner.target, "Range: bytes=0-0\r\n"))
}

/// Returns the response to a plain POST, unless it is below 400.
fn post_trouble(runner: &mut Runner<'_>) -> Option<String> {
    let target = runner.target;
    if !target.takes_bodies || target.protocol.has_frames() {
        return None;
    }
    let talk = post(runner, (LENGTH, "x"), PLAIN_DEADLINE);
    let taken = talk.replies.responses.first().is_some_and(|response| response.status < 400);
    (!taken).then(|| judge::seen(&talk))
}

/// Sends a POST with this framing field, and this part of its body.
fn post(runner: &mut Runner<'_>, (framing, body): (&str, &str), deadline: Nanos) -> Talk {
    let target = runner.target;
    let (path, host, ours) = (&target.values.post, &target.values.host, &target.fields);
    let head = format!("POST {path} HTTP/1.1\r\nHost: {host}\r\n{ours}{framing}\r\n\r\n{body}");
    let mut script = runner.bare(vec![Move::Send(head.into_bytes())], deadline);
    script.methods = vec!["POST".to_owned()];
    runner.hold(script)
}

/// Returns whether there is no response while the body is withheld.
fn reads_bodies(runner: &mut Runner<'_>) -> bool {
    waits_for_rest(runner, (LENGTH, ""))
}

/// Returns whether there is no response while the last chunk is withheld, and one after it.
fn reads_chunks(runner: &mut Runner<'_>) -> bool {
    let whole = format!("{CHUNK}0\r\n\r\n");
    waits_for_rest(runner, (CODING, CHUNK))
        && !post(runner, (CODING, &whole), PLAIN_DEADLINE).replies.responses.is_empty()
}

fn waits_for_rest(runner: &mut Runner<'_>, part: (&str, &str)) -> bool {
    !runner.target.protocol.has_frames()
        && post(runner, part, WITHHELD).replies.responses.is_empty()
}

/// Returns the responses to the oddities.
pub(crate) fn oddities(runner: &mut Runner<'_>) -> Habits {
    let mut habits = Habits::default();
    if runner.target.protocol.has_frames() {
        // the oddities are HTTP/1.1 lines
        return habits;
    }
    for (name, method, bytes) in ODDITIES {
        if runner.is_stopped() {
            break;
        }
        let made = text::bytes(bytes, &runner.target.values).unwrap_or_default();
        let mut script = runner.bare(vec![Move::Send(made)], PLAIN_DEADLINE);
        script.methods = vec![method.to_owned()];
        (script.grace, script.linger) = (GRACE, LINGER);
        let talk = runner.hold(script);
        habits.seen.push((name.to_owned(), judge::seen(&talk)));
    }
    habits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needs_of_exchanges_are_looked_for_too() {
        let all = torture::catalogue::cases().unwrap();
        let only =
            |id: &str| -> Vec<Case> { all.iter().filter(|case| case.id == id).cloned().collect() };
        // B-11 needs a page that reads content; some of its exchanges one that decodes chunks
        assert!(Case::any_needs(&only("B-11"), &[Need::Reading]));
        assert!(Case::any_needs(&only("B-11"), &[Need::Chunked]));
        assert!(!Case::any_needs(&only("B-10"), &[Need::Reading, Need::Chunked]));
        assert!(!Case::any_needs(&[], &[Need::Post]));
    }
}
