//! Protocols on top of WebSocket: the greeting after the upgrade, and heartbeats as messages.

use super::{Event, Phase, SocketSpeaker};
use plan::SocketPreset;
use regex::bytes::Regex;

/// A preset with its expressions compiled.
#[derive(Debug)]
pub(super) struct PresetTerms {
    pub(super) data: &'static SocketPreset,
    ready: Regex,
    heartbeat: Option<Regex>,
    ignored: Option<Regex>,
}

/// Meaning of a message for the preset's protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PresetMessage {
    /// The server accepts messages from now on.
    Ready,
    Heartbeat,
    /// Not an answer to any message.
    Ignored,
}

impl PresetTerms {
    /// # Errors
    /// Fails if an expression does not compile.
    pub(super) fn new(data: &'static SocketPreset) -> Result<PresetTerms, String> {
        let compiled = |text: &str| Regex::new(text).map_err(|error| error.to_string());
        let some = |text: &str| match text {
            "" => Ok(None),
            text => compiled(text).map(Some),
        };
        Ok(PresetTerms {
            data,
            ready: compiled(data.ready)?,
            heartbeat: some(data.heartbeat.0)?,
            ignored: some(data.ignored)?,
        })
    }

    /// Returns the meaning of a message, or `None` if it belongs to the application. `greeting`:
    /// the server was not ready before.
    pub(super) fn meaning(&self, payload: &[u8], greeting: bool) -> Option<PresetMessage> {
        let found = |regex: &Option<Regex>| regex.as_ref().is_some_and(|it| it.is_match(payload));
        match () {
            () if greeting && self.ready.is_match(payload) => Some(PresetMessage::Ready),
            () if found(&self.heartbeat) => Some(PresetMessage::Heartbeat),
            () if greeting || found(&self.ignored) => Some(PresetMessage::Ignored),
            () => None,
        }
    }
}

impl SocketSpeaker {
    /// Sends the greeting of the preset; returns false without a preset.
    pub(super) fn greet(&mut self, out: &mut Vec<u8>) -> bool {
        let terms = self.terms.clone();
        let (Some(preset), Phase::Open(socket)) = (&terms.preset, &mut self.phase) else {
            return false;
        };
        for message in preset.data.hello {
            socket.send(true, message.as_bytes(), out);
        }
        self.greeting = true;
        true
    }

    /// Processes a message of the preset's protocol.
    pub(super) fn process_preset_message(
        &mut self,
        message: PresetMessage,
        out: &mut Vec<u8>,
    ) -> Event {
        match message {
            PresetMessage::Ready => {
                self.greeting = false;
                self.send_waiting(out);
            }
            PresetMessage::Heartbeat => {
                let reply = self.terms.preset.as_ref().map_or("", |it| it.data.heartbeat.1);
                if let Phase::Open(socket) = &mut self.phase
                    && !reply.is_empty()
                {
                    socket.send(true, reply.as_bytes(), out);
                }
            }
            PresetMessage::Ignored => {}
        }
        Event::Connection
    }

    /// Sends the heartbeat of the preset; returns false if it has none.
    pub(super) fn beat(&mut self, out: &mut Vec<u8>) -> bool {
        let beats = self.terms.preset.as_ref().and_then(|preset| preset.data.beats);
        let (Some((message, _)), Phase::Open(socket)) = (beats, &mut self.phase) else {
            return false;
        };
        socket.send(true, message.as_bytes(), out);
        self.news.counts.pings += 1;
        true
    }
}
