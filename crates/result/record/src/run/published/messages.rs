//! Messages on WebSockets.

use super::times::TimesRecord;
use crate::finished::per_second;
use plan::journey::JourneyPlan;
use plan::{HttpVersion, MaskRule, Plan};
#[cfg(any(test, feature = "schema"))]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::{FanOutTally, Hist, Measurement, ReconnectTally, Snapshot};
use std::collections::BTreeMap;

/// Rule of messages of a journey: each step has its own.
const OF_STEPS: &str = "steps";

/// `messages` of a run; null without WebSockets. A call of the run is a message with its answer, so
/// `response_time_s` and `slip_s` of the run are repeated here under the names used for messages.
/// In a journey the steps with `send` and `expect` are the messages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct MessagesRecord {
    /// Rule that finds the answer: `echo`, `json:/id`, `regex:RE`, `next` or `none`; `steps`: each
    /// step of a journey has its own.
    pub expect: String,
    /// `random` or `zero`.
    pub mask: String,
    /// Handshakes that succeeded, and how many of them negotiated compression.
    pub opened: u64,
    pub compressed: u64,
    /// Connections of HTTP/2 that carried them; 0 if each had its own.
    #[serde(default)]
    pub http2_connections: u64,
    /// Connections of HTTP/3 that carried them; 0 if each had its own.
    #[serde(default)]
    pub http3_connections: u64,
    /// Messages sent, and whole messages received, over the whole run.
    pub sent: u64,
    pub received: u64,
    /// Messages received inside the measured window, over its length.
    pub received_per_s: f64,
    /// Received messages that answer no outstanding message.
    pub unmatched: u64,
    /// Received messages that answer a message that had timed out.
    pub late: u64,
    /// Messages whose answer did not arrive in time.
    pub lost: u64,
    /// Frames of the received messages.
    pub frames_received: u64,
    /// Bytes of payload before compression, and of frames on the wire.
    pub payload_sent: u64,
    pub payload_received: u64,
    pub wire_sent: u64,
    pub wire_received: u64,
    /// Time from the instant a message was due to the last frame of its answer.
    pub response_time_s: TimesRecord,
    /// Time from the instant a message was due until the client sent it.
    pub lateness_s: TimesRecord,
    /// Time from the upgrade request to the end of its response.
    pub handshake_s: TimesRecord,
    /// Time from one message of the server to the next on the same connection.
    pub gap_s: TimesRecord,
    /// Pings sent, their pongs, and the time between them. Pongs are the answer of the server's
    /// library, not of the application.
    pub pings: u64,
    pub pongs: u64,
    pub ping_s: TimesRecord,
    /// Ends of connections, by side and code.
    pub closes: Vec<CloseRecord>,
    /// Ends without the closing handshake, by a violation, or with a code that reports a failure.
    pub abnormal_closes: u64,
    /// Violations by servers, with their numbers.
    pub violations: BTreeMap<String, u64>,
    /// Messages that one member of a room published for all others; null without `--ws-rooms`.
    pub fan_out: Option<FanOutRecord>,
    /// Reconnection of the WebSockets after `--ws-storm` reset all of them; null without it.
    #[serde(default)]
    pub reconnects: Option<ReconnectsRecord>,
}

/// Reconnection of WebSockets after all of them were lost at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct ReconnectsRecord {
    /// WebSockets that were reset, and those that were open again before the end.
    pub lost: u64,
    pub restored: u64,
    /// Attempts that failed.
    pub failed: u64,
    /// From the loss to each handshake that succeeded.
    pub time_s: TimesRecord,
    /// Largest number of handshakes per second, over intervals of 100 ms.
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub peak_per_s: f64,
}

impl ReconnectsRecord {
    fn new(tally: &ReconnectTally) -> ReconnectsRecord {
        ReconnectsRecord {
            lost: tally.lost,
            restored: tally.restored(),
            failed: tally.failed,
            time_s: TimesRecord::new(&tally.times),
            peak_per_s: tally.peak_per_s(),
        }
    }
}

/// Broadcasts of the measured phase. Times count from the instant a message was due.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct FanOutRecord {
    pub rooms: u32,
    /// Members of each room, the publisher among them.
    pub members: u64,
    /// Messages published, and how many of them every receiver got.
    pub messages: u64,
    pub complete: u64,
    /// Expected receptions (by members that were open), and those that occurred within 5 s or the
    /// time limit of calls.
    pub expected: u64,
    pub received: u64,
    /// received / expected; null without expected receptions.
    pub reach: Option<f64>,
    /// Receptions of a message that the member had already received.
    pub duplicates: u64,
    /// Receptions of a message after one that was published later.
    pub out_of_order: u64,
    /// Times of all receptions.
    pub receiver_s: TimesRecord,
    /// Times of the first reception of each message, and of its last.
    pub first_receiver_s: TimesRecord,
    pub last_receiver_s: TimesRecord,
}

impl FanOutRecord {
    fn new(plan: &Plan, tally: &FanOutTally) -> Option<FanOutRecord> {
        let rooms = plan.websocket.rooms?;
        Some(FanOutRecord {
            rooms,
            members: plan.room_members(),
            messages: tally.messages,
            complete: tally.complete,
            expected: tally.expected,
            received: tally.received,
            reach: Some(tally.reach()).filter(|reach| reach.is_finite()),
            duplicates: tally.duplicates,
            out_of_order: tally.out_of_order,
            receiver_s: TimesRecord::new(&tally.each),
            first_receiver_s: TimesRecord::new(&tally.first),
            last_receiver_s: TimesRecord::new(&tally.last),
        })
    }
}

/// Connections that ended in the same way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct CloseRecord {
    /// `client` or `server`: the side that sent the close frame; `lost`: no close frame;
    /// `violation`: the server broke the protocol; `refused`: the handshake failed.
    pub by: String,
    /// Close code; 1005: a close frame without a code, 1006: no close frame.
    pub code: u16,
    pub count: u64,
}

impl MessagesRecord {
    /// Returns true for the messages of a journey's steps.
    pub fn belongs_to_steps(&self) -> bool {
        self.expect == OF_STEPS
    }

    pub(crate) fn new(plan: &Plan, measurement: &Measurement) -> Option<MessagesRecord> {
        let total = &measurement.total;
        let of_steps = !plan.is_websocket();
        // a script opens WebSockets or not
        if of_steps && (!plan.speaks_websocket() || total.messages.is_empty()) {
            return None;
        }
        let messages = &total.messages;
        let counts = &messages.counts;
        let close = |(close, count): (&sample::SocketClose, &u64)| CloseRecord {
            by: close.side().to_owned(),
            code: close.code(),
            count: *count,
        };
        let mask = match plan.websocket.mask {
            MaskRule::Random => "random",
            MaskRule::Zero => "zero",
        };
        let over_quic = plan.request.version == HttpVersion::Http3;
        let pings_are_calls = plan.holds_websockets();
        let (response, lost) = match (&plan.journeys, of_steps) {
            (Some(journeys), true) => times_of_steps(journeys, total),
            _ => (total.response(), total.counts.timed_out),
        };
        Some(MessagesRecord {
            expect: if of_steps { OF_STEPS.to_owned() } else { plan.websocket_answer().text() },
            mask: mask.to_owned(),
            opened: counts.opened,
            compressed: counts.compressed,
            http2_connections: if over_quic { 0 } else { counts.carriers },
            http3_connections: if over_quic { counts.carriers } else { 0 },
            sent: counts.sent,
            received: counts.received,
            received_per_s: per_second(messages.in_window, measurement.window),
            unmatched: counts.unmatched,
            late: counts.late,
            lost,
            frames_received: counts.frames_received,
            payload_sent: counts.payload_sent,
            payload_received: counts.payload_received,
            wire_sent: counts.wire_sent,
            wire_received: counts.wire_received,
            response_time_s: TimesRecord::new(&response),
            lateness_s: TimesRecord::new(&total.slip),
            handshake_s: TimesRecord::new(&messages.handshake),
            gap_s: TimesRecord::new(&messages.gap),
            pings: counts.pings,
            pongs: counts.pongs,
            ping_s: TimesRecord::new(if pings_are_calls { &response } else { &messages.ping }),
            closes: messages.closes.iter().map(close).collect(),
            abnormal_closes: messages.abnormal(),
            violations: messages.violations.clone(),
            fan_out: FanOutRecord::new(plan, &messages.fan_out),
            reconnects: plan.websocket.storm.map(|_| ReconnectsRecord::new(&messages.reconnects)),
        })
    }
}

/// Returns the response times of the steps that are messages, and the number of time-outs among
/// them.
fn times_of_steps(journeys: &JourneyPlan, total: &Snapshot) -> (Hist, u64) {
    let rows = journeys.message_rows().into_iter();
    let mut response = Hist::new();
    let mut lost = 0;
    for tally in rows.filter_map(|row| total.targets.get(row as usize)) {
        response.merge(&tally.response);
        lost += tally.timed_out;
    }
    (response, lost)
}
