//! The server as its own machine showed it.

use sample::{Death, Ending, Process, ServerState};
#[cfg(any(test, feature = "schema"))]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use torture::result::{ServerDuringCase, ServerRow, ServerSeen};
use units::Nanos;

/// States of sockets that no longer use resources of the server.
const OVER: [&str; 2] = ["time-wait", "closed"];

/// `server` of a torture: before the first case, at the end, and the processes that ended before
/// the first case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct ServerRecord {
    /// State before the first case.
    pub before: StateRecord,
    /// State at the end.
    pub after: StateRecord,
    /// Deaths before the first case.
    pub deaths: Vec<DeathRecord>,
    /// The server's resources at each observation: before the first case, and after each.
    #[serde(default)]
    pub series: Vec<MomentRecord>,
}

/// The server's resources at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct MomentRecord {
    /// Time from the start of the run.
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub at_s: f64,
    /// The case that had just ended; empty before the first.
    pub case: String,
    /// Resident.
    pub memory_bytes: u64,
    pub descriptors: u64,
    pub threads: u64,
}

/// `server` of a case: state around it, and processes that ended during it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct ServerCaseRecord {
    /// Null in results of versions that did not write it.
    #[serde(default)]
    pub before: Option<StateRecord>,
    pub after: StateRecord,
    pub deaths: Vec<DeathRecord>,
}

/// The server at one moment. Unknown values are zero.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct StateRecord {
    /// The figures are of a whole machine, by the URL of its node exporter; null: of the server's
    /// processes.
    pub machine: Option<String>,
    /// Processes that hold the listening socket independently.
    pub listeners: Vec<ProcessRecord>,
    /// Descendants of the listeners, or processes that share the socket; exits are named.
    pub workers: u64,
    pub threads: u64,
    pub descriptors: u64,
    /// Resident.
    pub memory_bytes: u64,
    /// Spent so far.
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub cpu_s: f64,
    /// The server's connections by state.
    pub sockets: BTreeMap<String, u64>,
    pub accept_queue: u64,
    pub accept_queue_max: u64,
    pub half_open: u64,
    /// Count since boot, over all servers of the machine.
    pub listen_overflows: u64,
    /// Count since boot, over all servers of the machine.
    pub syn_cookies: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct ProcessRecord {
    pub pid: u32,
    /// Start in clock ticks since boot.
    pub started: u64,
    pub name: String,
}

/// The end of a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct DeathRecord {
    pub process: ProcessRecord,
    /// The server itself ended, not one of its workers.
    pub whole: bool,
    /// Exit code, or signal with its name and whether memory was dumped.
    #[serde(with = "ending")]
    #[cfg_attr(any(test, feature = "schema"), schemars(schema_with = "ending::schema"))]
    pub how: Ending,
}

/// End of a process, as shown.
mod ending {
    use sample::Ending;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(how: &Ending, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(how)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Ending, D::Error> {
        let text = String::deserialize(from)?;
        let signals = (0..=u8::MAX)
            .flat_map(|number| [false, true].map(|core| Ending::Signal { number, core }));
        let mut all =
            (0..=u8::MAX).map(Ending::Exit).chain(signals).chain(std::iter::once(Ending::Unseen));
        let found = all.find(|how| how.to_string() == text);
        let wrong = || format!("{} is not an exit status", units::quoted(&text));
        found.ok_or_else(|| D::Error::custom(wrong()))
    }

    #[cfg(any(test, feature = "schema"))]
    pub(super) fn schema(to: &mut schemars::SchemaGenerator) -> schemars::Schema {
        to.subschema_for::<String>()
    }
}

impl fmt::Display for ProcessRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (pid {})", self.name, self.pid)
    }
}

impl ServerRecord {
    pub(super) fn new(seen: &ServerSeen) -> Option<ServerRecord> {
        let (first, last) = (seen.rows.first()?, seen.rows.last()?);
        Some(ServerRecord {
            before: StateRecord::new(&first.state),
            after: StateRecord::new(&last.state),
            deaths: seen.deaths.iter().map(DeathRecord::new).collect(),
            series: seen.rows.iter().map(MomentRecord::new).collect(),
        })
    }
}

impl MomentRecord {
    fn new(row: &ServerRow) -> MomentRecord {
        MomentRecord {
            at_s: row.at.as_secs_f64(),
            case: row.case.clone(),
            memory_bytes: row.state.memory_bytes,
            descriptors: row.state.descriptors,
            threads: row.state.threads,
        }
    }
}

impl ServerCaseRecord {
    pub(super) fn new(seen: &ServerDuringCase) -> ServerCaseRecord {
        ServerCaseRecord {
            before: Some(StateRecord::new(&seen.before)),
            after: StateRecord::new(&seen.after),
            deaths: seen.deaths.iter().map(DeathRecord::new).collect(),
        }
    }
}

impl StateRecord {
    pub(super) fn new(state: &ServerState) -> StateRecord {
        StateRecord {
            machine: Some(&state.machine).filter(|name| !name.is_empty()).cloned(),
            listeners: state.listeners.iter().map(ProcessRecord::new).collect(),
            workers: state.workers.len() as u64,
            threads: state.threads,
            descriptors: state.descriptors,
            memory_bytes: state.memory_bytes,
            cpu_s: state.cpu.as_secs_f64(),
            sockets: state.sockets.clone(),
            accept_queue: state.accept_queue,
            accept_queue_max: state.accept_queue_max,
            half_open: state.half_open,
            listen_overflows: state.overflows,
            syn_cookies: state.cookies,
        }
    }

    /// Returns the number of connections on the server's side that are not over.
    pub fn connections(&self) -> u64 {
        let live = self.sockets.iter().filter(|(name, _)| !OVER.contains(&name.as_str()));
        live.map(|(_, count)| count).sum()
    }

    /// Returns the CPU time from `before` to now; `None` for another server, which has a separate
    /// account.
    pub fn cpu_since(&self, before: &StateRecord) -> Option<Nanos> {
        let (before_cpu, cpu) =
            (Nanos::from_secs_f64(before.cpu_s), Nanos::from_secs_f64(self.cpu_s));
        let same = before.listeners == self.listeners;
        same.then(|| Nanos(cpu.0.saturating_sub(before_cpu.0)))
    }
}

impl ProcessRecord {
    fn new(process: &Process) -> ProcessRecord {
        ProcessRecord { pid: process.pid, started: process.started, name: process.name.clone() }
    }
}

impl DeathRecord {
    fn new(death: &Death) -> DeathRecord {
        let process = ProcessRecord::new(&death.process);
        DeathRecord { process, whole: death.whole, how: death.how }
    }

    /// Returns whether it was a loss: an orderly exit of a worker is not.
    pub fn is_loss(&self) -> bool {
        self.whole || !self.how.is_orderly()
    }

    /// Converts to the type of the measuring crates.
    pub fn death(&self) -> Death {
        let ProcessRecord { pid, started, ref name } = self.process;
        let process = Process { pid, started, name: name.clone() };
        Death { process, whole: self.whole, how: self.how }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_end_of_a_process_is_read_back() {
        let signal = |core| Ending::Signal { number: 11, core };
        for how in [Ending::Exit(3), signal(true), signal(false), Ending::Unseen] {
            let process = ProcessRecord { pid: 7, started: 1, name: "httpd".into() };
            let death = DeathRecord { process, whole: true, how };
            let text = serde_json::to_string(&death).unwrap();
            assert_eq!(serde_json::from_str::<DeathRecord>(&text).unwrap(), death, "{text}");
        }
    }
}
