//! Messages on WebSockets.

use super::field::{KeyValue, NO_FIELD, PlanField, content, field};
use super::grammar::*;
use super::{SETTING, Setting, within};
use crate::{Plan, Secrets, WebSocketPlan};
use units::ParseError;

const ROW: Setting = Setting {
    heading: "WebSocket (for ws:// and wss:// URLs)",
    page: "websocket",
    shown: is_shown,
    ..SETTING
};

/// Returns whether the plan is for a WebSocket, or has the table anyway.
fn is_shown(plan: &Plan) -> bool {
    plan.is_websocket() || plan.websocket != WebSocketPlan::default()
}

/// The option is text or the name of a file; the plan contains its bytes.
const MESSAGE: PlanField = PlanField {
    typed: "_typed",
    endings: &["", "_base64", "_file"],
    read: |plan, ending, value, inputs| {
        let slot = &mut plan.websocket.message;
        let KeyValue::One(typed) = value else { return Ok(()) };
        if ending != "_typed" {
            return super::field::read_content(slot, ending, KeyValue::One(typed), inputs);
        }
        let Some(text) = typed.typed() else { return Ok(()) };
        *slot = Some(match text.strip_prefix('@') {
            Some(path) => inputs.files.read(path).map_err(ParseError)?,
            None => text.into_bytes(),
        });
        Ok(())
    },
    ..content!(websocket.message, typed: "", Values)
};

/// Rate of the load.
const RATE: PlanField = PlanField {
    check: |text, _| units::parse_rate(text).map(drop),
    show: |_: &Plan, _: Secrets| ("", KeyValue::One(crate::options::Scalar::Off)),
    ..NO_FIELD
};

#[rustfmt::skip] // a row is read as a row
pub(super) static SETTINGS: &[Setting] = &[
    Setting { name: "ws-message", value: "TEXT|@FILE", field: MESSAGE,
        help: "Message to send; {id} becomes the number of the message [default: hello {id}]",
        more: "A file that is not UTF-8 is sent as a binary message.", ..ROW },
    Setting { name: "ws-rate", value: "RATE", field: RATE, without: &["rate", "stages"],
        help: "Messages due per second over all connections, whose number is -c; without it each connection waits for the answer", ..ROW },
    Setting { name: "ws-expect", value: "RULE", field: field!(at websocket.expect, ANSWER),
        help: "Which message is the answer: echo (same payload), json:/id (same value at a JSON pointer), regex:RE (same match), next, or none [default: echo]", ..ROW },
    Setting { name: "ws-subprotocol", value: "LIST", field: field!(at websocket.subprotocols as "websocket.subprotocol", NAMES),
        help: "Subprotocols to offer, in order of preference", ..ROW },
    Setting { name: "ws-ping", value: "TIME", field: field!(off websocket.ping, DURATION),
        bounds: &[within(0.001, 86_400.0, "takes an interval from 1ms to 1d")],
        help: "Ping every connection at this interval; without --ws-message connections are held and nothing else is sent", ..ROW },
    Setting { name: "ws-preset", value: "NAME", choices: &crate::preset::PRESET_NAMES, field: field!(off websocket.preset, PRESET),
        help: "Protocol on top of WebSocket: its handshake, heartbeats, message and answers", ..ROW },
    Setting { name: "ws-rooms", value: "N", field: field!(off websocket.rooms, COUNT),
        bounds: &[within(1.0, 1e6, "is {}; give 1 to 1000000 rooms")],
        help: "Divide the connections into N rooms: in each, one publishes --ws-message, and all others should receive it; {room} in the URL becomes the room's number", ..ROW },
    Setting { name: "ws-live", value: "TIME", field: field!(off websocket.live, DURATION),
        bounds: &[within(0.01, 86_400.0, "takes a time from 10ms to 1d")],
        help: "Close each WebSocket after about this time and open another; the actual time is random, from 0.5 to 1.5 times TIME", ..ROW },
    Setting { name: "ws-storm", value: "TIME", field: field!(off websocket.storm, DURATION),
        bounds: &[within(0.001, 864_000.0, "takes a time from 1ms to 10d")],
        help: "Reset all WebSockets at this time of the run, and reconnect them at once: a reconnect storm", ..ROW },
    Setting { name: "ws-read-rate", value: "SIZE", field: field!(off websocket.read_rate, SIZE),
        bounds: &[within(1.0, 1e9, "takes 1 to 1G bytes per second")],
        help: "Maximum bytes per second that each connection reads: a slow consumer. The socket's buffers fill first; --recv-buffer makes the client's smaller", ..ROW },
    Setting { name: "ws-per-connection", value: "N", field: field!(off websocket.per_connection, COUNT),
        bounds: &[within(1.0, 1e6, "is {}; give 1 to 1000000 WebSockets on each connection")],
        help: "Maximum number of WebSockets on one connection with --http 2 or 3, where each is a stream (RFC 8441, RFC 9220); fewer if the server allows fewer streams [default: 100]", ..ROW },
    Setting { name: "ws-compress", field: field!(at websocket.compress, SWITCH),
        help: "Offer compression (permessage-deflate, RFC 7692)", ..ROW },
    Setting { name: "ws-mask", value: "RULE", choices: &["random", "zero"], field: field!(at websocket.mask, MASKS),
        help: "Masking keys of the client's frames; zero leaves payloads readable on the wire [default: random]", ..ROW },
];
