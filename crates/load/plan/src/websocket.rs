//! WebSocket: the messages sent, and how their answers are recognized.

use crate::{HttpVersion, Load, Plan, SocketPreset, TargetPlan, Think};
use units::{Nanos, ParseError, quoted};
use url::Url;

/// Maximum length of a message in a plan.
pub(crate) const MESSAGE_MAX: usize = 16 << 20;
/// Mark in a message that is replaced by the number of the call.
pub const ID_MARK: &str = "{id}";
/// Message if the plan has none.
pub(crate) const MESSAGE_DEFAULT: &str = "hello {id}";
/// Number of connections of an open load if nothing else sets it.
const SOCKETS_DEFAULT: u32 = 10;
/// Default number of WebSockets on one HTTP/2 connection: the minimum number of streams that RFC
/// 9113 section 6.5.2 recommends servers to permit.
const PER_CONNECTION_DEFAULT: u32 = 100;
/// Maximum number of outstanding messages on one connection of an open load.
const OUTSTANDING_MAX: u32 = 10_000;

/// Messages of a load on `ws:` and `wss:` URLs.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct WebSocketPlan {
    /// Text, or binary if the bytes are not UTF-8. `None` for `MESSAGE_DEFAULT` or, with `ping`, no
    /// message.
    pub message: Option<Vec<u8>>,
    pub expect: MessageAnswer,
    /// Protocol on top of WebSocket.
    pub preset: Option<&'static SocketPreset>,
    /// Offered subprotocols, the preferred one first.
    pub subprotocols: Vec<String>,
    /// Interval of each connection's heartbeats.
    pub ping: Option<Nanos>,
    /// Number of rooms that the connections form; in each, one member publishes for all others.
    /// `None` for no rooms.
    pub rooms: Option<u32>,
    /// Mean lifetime of a WebSocket, after which it is closed and another one is opened.
    pub live: Option<Nanos>,
    /// All WebSockets are reset at this time of the measured phase.
    pub storm: Option<Nanos>,
    /// Bytes per second that each connection reads; `None` for no limit.
    pub read_rate: Option<u32>,
    /// Maximum number of WebSockets on one HTTP/2 connection; `None` for the default.
    pub per_connection: Option<u32>,
    /// True to offer permessage-deflate.
    pub compress: bool,
    pub mask: MaskRule,
}

/// Rule that selects the server's answer to a message.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum MessageAnswer {
    /// The message with the same payload.
    #[default]
    Echo,
    /// The message with the same value at this JSON pointer (RFC 6901).
    Json(String),
    /// The message with the same match of this expression as the sent message. If the sent message
    /// has no match, any message with a match.
    Regex(String),
    /// The next message.
    Next,
    /// Messages have no answer.
    None,
}

/// Marks that are replaced by the number of the room in the URL of a connection: as typed, and as
/// URLs encode it.
pub const ROOM_MARKS: [&str; 2] = ["{room}", "%7Broom%7D"];

/// Masking of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum MaskRule {
    /// Keys from the seeded generator.
    #[default]
    Random,
    /// The key is zero.
    Zero,
}

impl MessageAnswer {
    /// Returns the text as typed and printed.
    pub fn text(&self) -> String {
        match self {
            MessageAnswer::Echo => "echo".to_owned(),
            MessageAnswer::Json(pointer) => format!("json:{pointer}"),
            MessageAnswer::Regex(expression) => format!("regex:{expression}"),
            MessageAnswer::Next => "next".to_owned(),
            MessageAnswer::None => "none".to_owned(),
        }
    }
}

/// Parses `echo`, `json:/id`, `regex:RE`, `next` or `none`.
///
/// # Errors
/// Fails for anything else, and for an unusable pointer or expression.
pub(crate) fn parse_answer(text: &str) -> Result<MessageAnswer, ParseError> {
    if let Some(pointer) = text.strip_prefix("json:") {
        if !pointer.starts_with('/') {
            return Err(ParseError(format!(
                "{} is not a JSON pointer: write json:/id or json:/data/id",
                quoted(pointer)
            )));
        }
        return Ok(MessageAnswer::Json(pointer.to_owned()));
    }
    if let Some(expression) = text.strip_prefix("regex:") {
        crate::rules::check_regex(expression)
            .map_err(|error| ParseError(format!("regex: {error}")))?;
        return Ok(MessageAnswer::Regex(expression.to_owned()));
    }
    match text {
        "echo" => Ok(MessageAnswer::Echo),
        "next" => Ok(MessageAnswer::Next),
        "none" => Ok(MessageAnswer::None),
        _ => Err(ParseError(format!(
            "{} does not say which message is the answer: write echo, json:/id, regex:RE, next or none",
            quoted(text)
        ))),
    }
}

/// `random` or `zero`.
pub(crate) const MASK_RULES: [(&str, MaskRule); 2] =
    [("random", MaskRule::Random), ("zero", MaskRule::Zero)];

/// Returns whether a URL is a WebSocket URL.
pub fn is_websocket_url(url: &Url) -> bool {
    matches!(url.scheme(), "ws" | "wss")
}

/// Returns whether a URL uses TLS.
pub fn is_secure(url: &Url) -> bool {
    matches!(url.scheme(), "https" | "wss" | "grpcs")
}

impl Plan {
    /// Returns whether its calls are messages on WebSockets. Journeys open WebSockets by steps.
    pub fn is_websocket(&self) -> bool {
        self.journeys.is_none()
            && self.targets.iter().next().is_some_and(|target| is_websocket_url(&target.url))
    }

    /// Returns whether only heartbeats are sent.
    pub fn holds_websockets(&self) -> bool {
        self.is_websocket() && self.websocket.message.is_none() && self.websocket.ping.is_some()
    }

    /// Returns whether its WebSockets are streams of connections of HTTP/2 (RFC 8441) or HTTP/3
    /// (RFC 9220). WebSockets of scripts use HTTP/1.1.
    pub fn tunnels_websockets(&self) -> bool {
        let by_steps = || self.journeys.as_ref().is_some_and(|journeys| journeys.has_sockets());
        let has_streams = matches!(self.request.version, HttpVersion::Http2 | HttpVersion::Http3);
        has_streams && (self.is_websocket() || by_steps())
    }

    /// Returns the maximum number of WebSockets on one connection.
    pub fn websockets_per_connection(&self) -> u32 {
        self.websocket.per_connection.unwrap_or(PER_CONNECTION_DEFAULT)
    }

    /// Returns the number of members of each room, including the publisher; 0 without rooms.
    pub fn room_members(&self) -> u64 {
        match (&self.load, self.websocket.rooms) {
            (Load::Open { connections_max: Some(all), .. }, Some(rooms)) if rooms > 0 => {
                u64::from(all / rooms)
            }
            _ => 0,
        }
    }

    /// Returns the message that is sent.
    pub fn websocket_message(&self) -> &[u8] {
        self.websocket.message.as_deref().unwrap_or(MESSAGE_DEFAULT.as_bytes())
    }

    /// Returns the rule that finds answers: the plan's, or that of its preset.
    pub fn websocket_answer(&self) -> MessageAnswer {
        match (self.websocket.preset, &self.websocket.expect) {
            (Some(preset), MessageAnswer::Echo) => MessageAnswer::Regex(preset.answer.to_owned()),
            (_, own) => own.clone(),
        }
    }

    /// Returns the subprotocols that upgrades offer: the plan's, or that of its preset.
    pub fn websocket_subprotocols(&self) -> Vec<String> {
        match self.websocket.preset {
            Some(preset) if self.websocket.subprotocols.is_empty() => Some(preset.subprotocol)
                .filter(|it| !it.is_empty())
                .map(str::to_owned)
                .into_iter()
                .collect(),
            _ => self.websocket.subprotocols.clone(),
        }
    }

    /// Adds the settings of a preset: the query of the URL, and the interval of heartbeats.
    fn settle_preset(&mut self) {
        let Some(preset) = self.websocket.preset else { return };
        if let Some((_, interval)) = preset.beats {
            self.websocket.ping.get_or_insert(interval);
        }
        if self.websocket.message.is_none() {
            self.websocket.message = Some(preset.message.as_bytes().to_vec());
        }
        let mut targets: Vec<TargetPlan> = self.targets.iter().cloned().collect();
        for target in &mut targets {
            for (name, value) in url::form_urlencoded::parse(preset.query.as_bytes()) {
                let has = target.url.query_pairs().any(|(known, _)| known == name);
                if !has {
                    target.url.query_pairs_mut().append_pair(&name, &value);
                }
            }
        }
        self.targets = targets.into();
    }

    /// Adds settings that follow from the scheme: users of connections that are only held think
    /// between heartbeats, and an open load has a fixed number of connections.
    pub fn settle_websocket(&mut self) {
        if !self.is_websocket() {
            return;
        }
        self.settle_preset();
        let holds = self.holds_websockets();
        match &mut self.load {
            Load::Closed { think: think @ Think::None, .. } if holds => {
                let ping = self.websocket.ping.unwrap_or(Nanos::SECOND);
                // random, so that connections that were opened together do not send heartbeats at
                // once
                *think = Think::Uniform(Nanos(ping.0 / 2), Nanos(ping.0 + ping.0 / 2));
            }
            Load::Open { connections_max, .. } => {
                connections_max.get_or_insert(SOCKETS_DEFAULT);
                self.connection.pipeline = self.connection.pipeline.max(OUTSTANDING_MAX);
            }
            Load::Closed { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_as_they_are_printed() {
        for text in ["echo", "json:/data/id", "regex:\"id\":(\\d+)", "next", "none"] {
            assert_eq!(parse_answer(text).unwrap().text(), text);
        }
        for wrong in ["", "json", "json:id", "regex:(", "first"] {
            assert!(parse_answer(wrong).is_err(), "{wrong}");
        }
    }
}
