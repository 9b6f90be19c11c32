//! Messages between manager and agents, as JSON. Rows are separate: [`crate::protocol::row`].

use crate::protocol::stamp::RefusedMessages;
use sample::SutRow;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Properties and limits of an agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    pub protocol: u32,
    /// Version of the program.
    pub build: String,
    pub host: String,
    /// Identifies the process on its machine until it is restarted.
    pub boot: String,
    pub cores: u32,
    pub memory_bytes: u64,
    /// Calls per second that one of its cores can send; 0 if not measured.
    pub calls_per_core: f64,
    /// `region=…`, as the agent was started with.
    pub labels: BTreeMap<String, String>,
    /// Public key for sealed secrets.
    pub seal_key: Vec<u8>,
    /// Identifies the process: another process with the same credentials has another number.
    #[serde(default)]
    pub session: u64,
    /// The number that the manager requested with [`ToAgent::Prove`]; 0 before. A replayed hello
    /// has another number.
    #[serde(default)]
    pub proof: u64,
    /// True if its operator permits scripts.
    pub scripts: bool,
    /// Limit set by its operator, in calls per second.
    pub rate_max: Option<f64>,
}

impl FromAgent {
    /// Returns the step that the message is about.
    pub fn step(&self) -> Option<u64> {
        match self {
            FromAgent::Ready { step, .. }
            | FromAgent::Unfit { step, .. }
            | FromAgent::Armed { step, .. }
            | FromAgent::Taken { step, .. }
            | FromAgent::StoodDown { step, .. } => Some(*step),
            FromAgent::Final(content) => Some(content.step),
            FromAgent::Hello(_)
            | FromAgent::Clock { .. }
            | FromAgent::Alive
            | FromAgent::Held(_)
            | FromAgent::Leaving { .. } => None,
        }
    }
}

impl ToAgent {
    /// Returns the number of the sending manager.
    pub fn epoch(&self) -> u64 {
        match self {
            ToAgent::Prove { epoch, .. }
            | ToAgent::Welcome { epoch, .. }
            | ToAgent::Refused { epoch, .. }
            | ToAgent::Clock { epoch, .. }
            | ToAgent::Plan { epoch, .. }
            | ToAgent::Arm { epoch, .. }
            | ToAgent::Take { epoch, .. }
            | ToAgent::Cease { epoch, .. }
            | ToAgent::Recall { epoch }
            | ToAgent::Resend { epoch, .. } => *epoch,
        }
    }
}

/// From an agent to the manager.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "kebab-case")]
pub enum FromAgent {
    Hello(Hello),
    /// A question for the time: when it was sent, by the agent's clock.
    Clock {
        sent: u64,
    },
    /// A sign of life.
    Alive,
    /// The plan is read and prepared; the hash is of the plan as printed by the agent.
    Ready {
        step: u64,
        hash: String,
        workers: u32,
        /// Bound of its knowledge of the manager's clock in nanoseconds: half of the shortest round
        /// trip.
        bound: u64,
    },
    /// The agent cannot or may not run the plan.
    Unfit {
        step: u64,
        why: String,
    },
    /// The agent knows its slots and the instant; its clock's offset and bound, in nanoseconds.
    Armed {
        step: u64,
        ahead: i64,
        bound: u64,
    },
    /// Reply to the offer of a part: accepted, or the reason for the refusal.
    Taken {
        step: u64,
        number: u64,
        refused: Option<String>,
    },
    /// The agent did not start.
    StoodDown {
        step: u64,
        why: String,
    },
    /// Parts of a run that the agent holds, for a manager that takes over.
    Held(Holding),
    /// All its rows were sent.
    Final(Box<Final>),
    /// The agent leaves the fleet.
    Leaving {
        why: String,
    },
}

/// Run that an agent carries out, or whose rows it keeps; step 0 for none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Holding {
    /// The number of the manager that began it.
    #[serde(default)]
    pub run: u64,
    pub step: u64,
    /// Name of the plan.
    pub hash: String,
    /// The slots of each of its workers, and their total number.
    pub slots: Vec<Vec<u32>>,
    pub of: u32,
    /// Parts of lost agents that it took over in addition.
    pub taken: u32,
    /// Number of agents in the step.
    pub agents: u32,
    /// Age of the step, in nanoseconds.
    pub since: u64,
    /// Bound of the difference between its start and the others' in nanoseconds, as known then.
    pub bound: u64,
}

/// End of an agent's part of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PartEnding {
    /// As planned, or by the manager's request.
    #[default]
    Done,
    /// The agent received no message from its manager.
    DeadMan,
    /// The agent could not continue.
    Failed,
}

/// An agent's report on its own part.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Final {
    pub step: u64,
    /// Number of rows that it sent.
    pub rows: u64,
    pub ending: PartEnding,
    /// `VALID`, `DEGRADED` or `INVALID` with the reasons, by the agent's own evidence.
    pub state: String,
    pub causes: Vec<FinalCause>,
    /// Response times and lateness of its own calls, in seconds.
    pub p50_s: f64,
    pub p99_s: f64,
    pub slip_p99_s: f64,
    pub offered: u64,
    /// Share of its core that each worker used, 0..=1.
    pub busy: Vec<f64>,
    pub user_s: f64,
    pub system_s: f64,
    /// Lateness of its first call, in seconds by its own clock; `None` without a call.
    pub first_s: Option<f64>,
    /// Drift between its clock and the manager's, in seconds.
    pub drift_s: Option<f64>,
    /// The error, if it could not continue.
    pub trouble: Option<String>,
    /// Figures of its emulated path, in the form of a result file; `None` without one.
    #[serde(default)]
    pub path: Option<String>,
    /// Messages that it refused.
    #[serde(default)]
    pub refused: RefusedMessages,
}

/// A reason of a verdict.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FinalCause {
    pub id: String,
    pub text: String,
    pub advice: String,
}

/// Message from the manager to one agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "kebab-case")]
pub enum ToAgent {
    /// Request for another hello with this number: it proves that the process runs now.
    Prove { epoch: u64, proof: u64 },
    Welcome {
        epoch: u64,
        /// Required number of agents.
        agents: u32,
    },
    /// Number of the refusing manager: a replaced manager cannot refuse.
    Refused {
        #[serde(default)]
        epoch: u64,
        why: String,
    },
    /// The answer to [`FromAgent::Clock`], by the clock of the manager of this number.
    Clock { epoch: u64, sent: u64, received: u64, returned: u64 },
    /// A part of the plan, sealed to the agent; the hash is of the manager's print.
    Plan {
        epoch: u64,
        step: u64,
        hash: String,
        part: u32,
        parts: u32,
        #[serde(with = "hex")]
        bytes: Vec<u8>,
    },
    /// The slots of each of its workers, their total number, and the first instant by the manager's
    /// clock.
    Arm {
        epoch: u64,
        step: u64,
        slots: Vec<Vec<u32>>,
        of: u32,
        start: u64,
        /// Number of agents that receive this.
        agents: u32,
    },
    /// A lost agent's part, or a share of it: these slots for each of its workers, from this time
    /// after the first instant on, in nanoseconds. Repeated until it is answered.
    Take { epoch: u64, step: u64, number: u64, slots: Vec<Vec<u32>>, of: u32, from: u64 },
    /// Other agents have its part of the load: it issues no calls from this instant of the
    /// manager's clock on.
    Cease { epoch: u64, step: u64, at: u64 },
    /// Another manager requests the list of its parts.
    Recall { epoch: u64 },
    /// Rows that did not arrive.
    Resend { epoch: u64, step: u64, rows: Vec<u64> },
}

/// Message from the manager to all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManagerMessage {
    /// Number of the manager, which has replaced all managers with lower numbers.
    pub epoch: u64,
    /// The run that its steps are of: the number of the manager that began it.
    #[serde(default)]
    pub run: u64,
    /// Counts the manager's messages to all, from 1.
    #[serde(default)]
    pub number: u64,
    /// Sending time by the manager's clock, or slightly earlier. Silence counts from then: a
    /// delayed message proves only that the manager was present at that time.
    pub at: u64,
    /// Agents that the manager does not receive: see [`crate::protocol::SUSPECT_AFTER`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unheard: Vec<String>,
    pub what: What,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "kebab-case")]
pub enum What {
    Beat,
    /// The start that was armed holds.
    Go {
        step: u64,
    },
    /// The measured phase of the step starts at this instant of the manager's clock: a watch of the
    /// target uses the same intervals as the agents. Until the step is merged, this replaces
    /// [`What::Beat`], for watches that join late or do not know the time yet.
    Measuring {
        step: u64,
        from: u64,
    },
    /// Starts no further calls. Calls in flight complete.
    Stop {
        step: u64,
    },
    /// No more calls, and those in flight are abandoned.
    Abandon {
        step: u64,
    },
    /// The step is merged: its rows may be dropped.
    Done {
        step: u64,
    },
    /// The fleet has ended.
    Disband {
        why: String,
    },
}

/// From a watch of the target's machine (`fleet watch`) to the manager.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "kebab-case")]
pub enum FromWatch {
    Hello(WatchHello),
    /// A question for the time: when it was sent, by the watch's clock.
    Clock {
        sent: u64,
    },
    /// Observations of a second of a step.
    Row {
        step: u64,
        #[serde(with = "SutRowForm")]
        row: SutRow,
    },
    /// Reading failed for good; has the reason.
    Trouble {
        why: String,
    },
}

/// The watched processes and resource limits: as [`sample::SutSeries`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WatchHello {
    pub protocol: u32,
    /// Identifies the process, and shows that it runs now: as [`Hello`].
    #[serde(default)]
    pub session: u64,
    #[serde(default)]
    pub proof: u64,
    /// Machine on which it runs.
    pub host: String,
    pub name: String,
    pub cores: f64,
    pub memory_max: u64,
    pub descriptors_max: u64,
    pub accept_queue_max: u64,
}

/// Serialized form of a row of the target's machine; [`sample::SutRow`] has no format. Its end is
/// in seconds from the start of the measured phase by the manager's clock.
#[derive(Serialize, Deserialize)]
#[serde(remote = "SutRow")]
struct SutRowForm {
    at_s: f64,
    cpu_cores: f64,
    memory_bytes: u64,
    threads: u64,
    descriptors: u64,
    switches_per_s: f64,
    listen_overflows: u64,
    accept_queue: u64,
    half_open: u64,
}

/// From an operator to the manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "kebab-case")]
pub enum OperatorMessage {
    Status,
    /// End the run now; the report follows.
    Abort,
}

/// The manager's answer to an operator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// Number of started steps, and of agents still awaited.
    pub step: u64,
    pub wanted: usize,
    pub agents: Vec<AgentStatus>,
    /// Messages that the manager refused.
    #[serde(default)]
    pub refused: RefusedMessages,
}

/// An agent, as its manager sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentStatus {
    pub id: String,
    pub host: String,
    /// `idle`, `running`, `lost` and the like.
    pub stage: String,
    /// Time since it was last received, in milliseconds.
    pub silent_ms: u64,
    /// Rows of the step that were merged.
    pub rows: u64,
}

/// # Errors
/// Fails for a message of another protocol, or other bytes.
pub fn read<T: for<'a> Deserialize<'a>>(bytes: &[u8]) -> Result<T, String> {
    serde_json::from_slice(bytes).map_err(|error| format!("a message that cannot be read: {error}"))
}

pub fn write<T: Serialize>(message: &T) -> Vec<u8> {
    serde_json::to_vec(message).expect("messages are always valid JSON")
}

/// Bytes as hexadecimal text in JSON.
mod hex {
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        let mut text = String::with_capacity(bytes.len() * 2);
        for byte in bytes {
            for digit in [byte >> 4, byte & 15] {
                text.push(char::from_digit(digit.into(), 16).unwrap_or('0'));
            }
        }
        to.serialize_str(&text)
    }

    pub(super) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(from)?;
        let digit = |digit: u8| char::from(digit).to_digit(16).map(|value| value as u8);
        let pair = |pair: &[u8]| match pair {
            [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
            _ => None,
        };
        let bytes: Option<Vec<u8>> = text.as_bytes().chunks(2).map(pair).collect();
        bytes.ok_or_else(|| serde::de::Error::custom("bytes that are no pairs of digits"))
    }
}
