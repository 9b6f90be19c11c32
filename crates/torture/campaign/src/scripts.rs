//! Scripts of plain requests, of exchanges, of frames and of segments.

use crate::{GRACE, PLAIN_DEADLINE, Runner, habits};
use dialogue::http2::{Protocol, SOCKET, write};
use dialogue::http3;
use dialogue::packets::{PacketContent, PacketStep};
use dialogue::talk::{Awaited, Move, TalkScript};
use dialogue::text;
use dialogue::text::Values;
use torture::case::{Exchange, ScriptStep};
use units::Nanos;

/// Time for the server to close a connection after announcing the close.
pub(crate) const LINGER: Nanos = Nanos::from_secs(2);
/// Time for the close after GOAWAY; a case that needs the close waits for it itself.
const FRAMES_LINGER: Nanos = Nanos::from_millis(200);

/// Returns a plain request on a connection that the client then closes.
pub(crate) fn plain(runner: &mut Runner<'_>) -> TalkScript {
    let request = habits::plain_request(runner.target, "");
    runner.bare(vec![Move::Send(request)], PLAIN_DEADLINE)
}

/// Returns the script of an exchange, in any protocol.
pub(crate) fn of_exchange(runner: &mut Runner<'_>, exchange: &Exchange) -> TalkScript {
    let marker = format!("m{}", runner.next_serial());
    let tunneled = runner.target.protocol.is_http2();
    let values = Values { tunneled, ..runner.profile.values(&runner.target.values, marker) };
    let steps: Vec<Move> = exchange.steps.iter().map(|step| compile(step, &values)).collect();
    if exchange.is_raw() {
        return segments_script(runner, exchange, steps);
    }
    if tunneled && exchange.opens_socket() {
        let script = runner.bare(socket_steps(steps), exchange.deadline);
        return TalkScript { grace: GRACE, linger: FRAMES_LINGER, ..script };
    }
    if runner.target.protocol.has_frames() {
        return frames_script(runner, exchange, steps);
    }
    let follow_up = exchange.in_step.then(|| habits::plain_request(runner.target, ""));
    let mut script = runner.bare(steps, exchange.deadline);
    script.methods.clone_from(&exchange.methods);
    script.follow_up = follow_up;
    script.grace = GRACE;
    script.linger = LINGER;
    script
}

/// Returns the steps of a WebSocket as a stream of HTTP/2 (RFC 8441): the first one is the
/// handshake, and later ones are DATA. The end of the stream replaces the end of the connection. A
/// client that stops reading sets the windows of its streams to 0.
pub(crate) fn socket_steps(steps: Vec<Move>) -> Vec<Move> {
    let mut all = vec![Move::Send(write::opening()), Move::Await(Awaited::Settings)];
    let mut steps = steps.into_iter();
    all.extend(steps.next());
    all.extend(steps.map(|step| match step {
        Move::Send(bytes) => Move::Send(write::data(SOCKET, &bytes)),
        // the head is the whole response: the stream stays open
        Move::Await(Awaited::Response) => Move::Await(Awaited::Interim),
        Move::Await(Awaited::End) => Move::Await(Awaited::SocketEnd),
        Move::StopReading => Move::Send(write::stream_window(0)),
        Move::Read => Move::Send(write::stream_window(write::STREAM_WINDOW)),
        other => other,
    }));
    all
}

/// Returns a conversation of frames: the opening precedes them; a PING, whose reply shows that all
/// frames were read, and a valid request on a separate stream follow.
fn frames_script(runner: &mut Runner<'_>, exchange: &Exchange, steps: Vec<Move>) -> TalkScript {
    let mut all = Vec::new();
    let over_quic = runner.target.protocol.is_http3();
    let behind = http3::follow_up_stream(&steps);
    let by_hand = steps.iter().any(http3::packets::is_crafted);
    let bare = !by_hand && steps.iter().any(http3::datagrams::is_crafted);
    if exchange.opening && over_quic {
        all.push(Move::Send(http3::write::opening()));
    } else if exchange.opening {
        all.push(Move::Send(write::opening()));
        all.push(Move::Await(Awaited::Settings));
        all.push(Move::Send(write::settings_ack()));
    }
    all.extend(steps);
    if exchange.in_step && !over_quic {
        all.push(Move::Send(write::ping()));
    }
    TalkScript {
        follow_up: exchange.in_step.then(|| habits::follow_up(runner.target, behind)),
        protocol: match (over_quic, bare) {
            (true, true) => Protocol::Datagrams,
            (true, false) => Protocol::Http3,
            (false, _) => Protocol::Http2Raw,
        },
        methods: exchange.methods.clone(),
        grace: GRACE,
        linger: FRAMES_LINGER,
        ..runner.bare(all, exchange.deadline)
    }
}

/// Returns the script of an exchange. Unless its steps define the stream, the parts are taken from
/// a plain request with Connection: close.
fn segments_script(runner: &mut Runner<'_>, exchange: &Exchange, steps: Vec<Move>) -> TalkScript {
    let script = segments(runner, steps, exchange.deadline);
    TalkScript { methods: exchange.methods.clone(), ..script }
}

/// Returns these steps as raw TCP segments.
pub(crate) fn segments(
    runner: &mut Runner<'_>,
    mut steps: Vec<Move>,
    deadline: Nanos,
) -> TalkScript {
    let is_stream = |step: &Move| matches!(step, Move::Packet(PacketStep::Stream(_)));
    if !steps.iter().any(is_stream) {
        let plain = habits::plain_request(runner.target, "Connection: close\r\n");
        steps.insert(0, Move::Packet(PacketStep::Stream(PacketContent::Bytes(plain))));
    }
    let bare = runner.bare(steps, deadline);
    TalkScript { tls_name: None, grace: GRACE, linger: LINGER, ..bare }
}

/// Converts a step, with its placeholders replaced.
pub(crate) fn compile(step: &ScriptStep, values: &Values) -> Move {
    match step {
        // the parser of cases has checked it
        ScriptStep::Send(text) => Move::Send(text::bytes(text, values).unwrap_or_default()),
        ScriptStep::Pause(span) => Move::Pause(*span),
        ScriptStep::Await(what) => Move::Await(*what),
        ScriptStep::Urgent => Move::Urgent,
        ScriptStep::HalfClose => Move::HalfClose,
        ScriptStep::Reset => Move::Reset,
        ScriptStep::Close => Move::Close,
        ScriptStep::StopReading => Move::StopReading,
        ScriptStep::Read => Move::Read,
        ScriptStep::Packet(step) => Move::Packet(step.compiled(values)),
    }
}
