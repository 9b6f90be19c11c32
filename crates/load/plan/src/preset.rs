//! Protocols on top of WebSocket: the messages that a client sends after the upgrade, its replies
//! to heartbeats, and how it recognizes the answer to a message. This is data: the speaker of
//! connections implements it.

use units::{Nanos, ParseError, quoted};

/// A protocol on top of WebSocket.
#[derive(Debug, PartialEq, Eq)]
pub struct SocketPreset {
    pub name: &'static str,
    /// Parameters added to the URL's query, unless it has them.
    pub query: &'static str,
    /// Subprotocols offered unless the plan offers others.
    pub subprotocol: &'static str,
    /// Message sent when the WebSocket is open.
    pub hello: &'static [&'static str],
    /// Expression that matches the message after which the server accepts messages.
    pub ready: &'static str,
    /// Expression that matches heartbeats of the server, and the reply to them; empty for no reply.
    pub heartbeat: (&'static str, &'static str),
    /// Heartbeats of the client, and their interval.
    pub beats: Option<(&'static str, Nanos)>,
    /// Expression that matches expected messages that answer nothing; empty if there are none.
    pub ignored: &'static str,
    /// Message if the plan has none; `{id}` is the number of the call.
    pub message: &'static str,
    /// Expression whose first group is equal in a message and its answer.
    pub answer: &'static str,
}

/// Specifications of the presets: Engine.IO 4 and Socket.IO 5 protocol; STOMP 1.2; graphql-ws
/// PROTOCOL.md; SignalR HubProtocol.md; Phoenix channels, serializer 2.0.0; Action Cable protocol.
static PRESETS: [SocketPreset; 6] = [
    SocketPreset {
        name: "socketio",
        query: "EIO=4&transport=websocket",
        subprotocol: "",
        hello: &["40"],
        ready: "^40",
        heartbeat: ("^2$", "3"),
        beats: None,
        ignored: r"^0\{",
        message: r#"42{id}["message","hello {id}"]"#,
        answer: r"^4[23](\d+)",
    },
    SocketPreset {
        name: "stomp",
        query: "",
        subprotocol: "v12.stomp",
        hello: &["CONNECT\naccept-version:1.2\nhost:/\nheart-beat:0,0\n\n\0"],
        ready: "^CONNECTED",
        heartbeat: (r"^\r?\n$", ""),
        beats: None,
        ignored: "",
        message: "SEND\ndestination:/queue/loadstone\nreceipt:{id}\n\nhello {id}\0",
        answer: r"\nreceipt(?:-id)?:(\d+)",
    },
    SocketPreset {
        name: "graphql-ws",
        query: "",
        subprotocol: "graphql-transport-ws",
        hello: &[r#"{"type":"connection_init"}"#],
        ready: r#""connection_ack""#,
        heartbeat: (r#""type"\s*:\s*"ping""#, r#"{"type":"pong"}"#),
        beats: None,
        ignored: r#""type"\s*:\s*"(?:complete|pong)""#,
        message: r#"{"id":"{id}","type":"subscribe","payload":{"query":"{ __typename }"}}"#,
        answer: r#""id"\s*:\s*"(\d+)""#,
    },
    SocketPreset {
        name: "signalr",
        query: "",
        subprotocol: "",
        hello: &["{\"protocol\":\"json\",\"version\":1}\u{1e}"],
        ready: "^\\{\\}\u{1e}",
        heartbeat: (r#""type"\s*:\s*6\b"#, ""),
        beats: Some(("{\"type\":6}\u{1e}", Nanos::from_secs(15))),
        ignored: "",
        message: "{\"type\":1,\"invocationId\":\"{id}\",\"target\":\"Echo\",\"arguments\":[\"hello {id}\"]}\u{1e}",
        answer: r#""invocationId"\s*:\s*"(\d+)""#,
    },
    SocketPreset {
        name: "phoenix",
        query: "vsn=2.0.0",
        subprotocol: "",
        hello: &[r#"["join","join","room:lobby","phx_join",{}]"#],
        ready: r#""join".*"phx_reply""#,
        heartbeat: (r#"null,\s*"heartbeat""#, ""),
        beats: Some((r#"[null,"heartbeat","phoenix","heartbeat",{}]"#, Nanos::from_secs(30))),
        ignored: "",
        message: r#"["join","{id}","room:lobby","echo",{"id":{id}}]"#,
        answer: r#"^\["join",\s*"(\d+)""#,
    },
    SocketPreset {
        name: "actioncable",
        query: "",
        subprotocol: "actioncable-v1-json",
        hello: &[r#"{"command":"subscribe","identifier":"{\"channel\":\"EchoChannel\"}"}"#],
        ready: "confirm_subscription",
        heartbeat: (r#""type"\s*:\s*"ping""#, ""),
        beats: None,
        ignored: r#""type"\s*:\s*"welcome""#,
        message: r#"{"command":"message","identifier":"{\"channel\":\"EchoChannel\"}","data":"{\"action\":\"echo\",\"id\":{id}}"}"#,
        answer: r#"\bid\\?"\s*:\s*(\d+)"#,
    },
];

/// Names, as typed.
pub(crate) const PRESET_NAMES: [&str; 6] =
    ["socketio", "stomp", "graphql-ws", "signalr", "phoenix", "actioncable"];

/// Returns the preset of this name.
///
/// # Errors
/// Fails for any other name.
pub(crate) fn parse_preset(text: &str) -> Result<&'static SocketPreset, ParseError> {
    PRESETS.iter().find(|preset| preset.name == text).ok_or_else(|| {
        let names = PRESET_NAMES.join(", ");
        ParseError(format!("{} is not a known protocol; use one of {names}", quoted(text)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_of_presets_compile_and_find_their_messages() {
        assert!(PRESETS.iter().map(|preset| preset.name).eq(PRESET_NAMES));
        for preset in &PRESETS {
            let compiled = |text: &str| regex::Regex::new(text).expect(preset.name);
            for text in [preset.ready, preset.heartbeat.0, preset.ignored] {
                compiled(text);
            }
            let message = preset.message.replace("{id}", "4711");
            let found = compiled(preset.answer).captures(&message).expect(preset.name);
            assert_eq!(&found[1], "4711", "{}", preset.name);
        }
        assert!(parse_preset("mqtt").is_err());
    }
}
