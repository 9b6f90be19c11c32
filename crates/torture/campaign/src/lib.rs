//! A run of conformance cases: the server's behavior for plain requests and harmless oddities, then
//! case by case, with retries of each violation until it is certain or known to be flaky.
#![forbid(unsafe_code)]

mod attempts;
mod baseline;
mod bounds;
mod budget;
mod chain;
mod commands;
mod culprit;
mod families;
mod findings;
mod gate;
mod habits;
mod hangs;
mod health;
mod inherited_state;
mod knee;
mod leak;
mod life;
mod lints;
mod memory;
mod memory_watch;
mod offers;
mod order;
mod preconditions;
pub mod pressure;
mod prober;
pub mod probes;
mod profile;
mod replay;
mod rounds;
mod scripts;
mod search;
mod service_time;
mod session;
pub mod shrink;
mod shrinking;
mod slow_states;
mod spans;
mod trail;
mod tries;
mod watcher;
mod worst;

pub use chain::{ChainTargets, RecordingOrigin, chain};
pub use commands::{Done, ServerCommand};
pub use order::run;
pub use replay::{Failure, Timing, replay, shrink_failures};
pub use spans::{CaseSpan, span_of_run, usual_spans};
pub use torture::oddities::ODDITIES;
pub use trail::TAIL_MAX;
pub use watcher::{CampaignEvent, Unwatched, Watcher, Watchers};
pub use worst::worst_case_traffic;

use conduit::Peer;
use dialogue::governor::{Governor, Stop};
use dialogue::http2::Protocol;
use dialogue::talk::{All, Carried, Director, Talk, TalkScript};
use dialogue::text::Values;
use probes::Probing;
use sample::{Death, ServerState};
use session::Runner;
use shrink::Budget;
use torture::case::{GRPC_VERSION, Need};
use units::Nanos;

/// Attempts of a failing exchange; it is a finding if it fails in most of them.
pub const TRIES: u32 = 3;
/// Number of plain requests before anything odd is sent.
const PLAIN_CALLS: usize = 3;
/// Time limit of a plain request.
const PLAIN_DEADLINE: Nanos = Nanos::from_secs(5);
/// Time for the server to serve plain requests again after a case.
pub const GATE: Nanos = Nanos::from_secs(30);
/// Maximum number of probes kept per run.
pub const PROBES_MAX: usize = 100_000;
/// Interval between two plain requests of a gate.
const GATE_EVERY: Nanos = Nanos::from_millis(200);

/// Time for which a connection is watched after its last response, for unsolicited responses.
const GRACE: Nanos = Nanos::from_millis(60);

/// Options of a run.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Seed of all random data.
    pub seed: u64,
    /// Maximum number of executions of random data per case.
    pub executions_max: u64,
    /// Number of concurrent executions of random data; neither the bytes on a connection nor the
    /// verdicts depend on it.
    pub workers: usize,
    pub probing: Probing,
    /// Time for probing the idle server before the first case.
    pub baseline: Nanos,
    /// Paths for random data, in addition to the probed page.
    pub pages: Vec<String>,
    /// Path and query of a page that exceeds all buffers between the two programs.
    pub big: Option<String>,
    /// Number of connections that the server serves at once, if known.
    pub slots: Option<u64>,
    /// Budgets for finding culprits, per case, and for shrinking, per run; `None` disables both.
    pub search: Option<Budget>,
    /// Judges the effect on well-behaved clients even if the idle server is noisy.
    pub accept_noisy: bool,
    /// Path and query of a page much more expensive than the probed one.
    pub expensive: Option<String>,
    /// User commands that were given.
    pub commands: Vec<ServerCommand>,
    /// Duration of repeated odd requests.
    pub soak: Option<Nanos>,
    /// Maximum silence before it counts as a failure; `None` for the value of each exchange.
    pub silence_max: Option<Nanos>,
    /// Digest of the content of the file that `Values::outside` names: the server must not serve it.
    pub outside: Option<[u8; 32]>,
    /// Duration for which slow states are held; `None` for the values in the case files.
    pub wait_max: Option<Nanos>,
    /// Time for all cases; those beyond it are skipped. `None` for no limit.
    pub budget: Option<Nanos>,
    /// Number and duration of mutated requests; `None` means as in the case file.
    pub mutants_max: Option<u64>,
    pub mutation: Option<Nanos>,
}

/// The tested server.
#[derive(Clone, Debug)]
pub struct TestTarget {
    pub peer: Peer,
    /// Name for SNI; `None` without TLS.
    pub tls_name: Option<String>,
    /// Protocol of plain requests, probes and cases: HTTP/1.1, or another one as used by a
    /// well-behaved client.
    pub protocol: Protocol,
    /// `path` is the probed page.
    pub values: Values,
    /// True if `values.post` names a page that accepts bodies.
    pub takes_bodies: bool,
    /// Our field lines, each with its line end: User-Agent and the user's own fields.
    pub fields: String,
    /// Values of the user's fields that must not appear in a result.
    pub secrets: Vec<String>,
}

impl TestTarget {
    /// Returns whether the server is called over gRPC.
    pub fn is_grpc(&self) -> bool {
        !self.values.message.is_empty()
    }

    /// Returns the HTTP version, as options name it, or gRPC.
    pub(crate) fn version(&self) -> &'static str {
        if self.is_grpc() { GRPC_VERSION } else { self.protocol.version() }
    }

    /// Returns the plain request as a noun phrase.
    pub(crate) fn plain_name(&self) -> &'static str {
        if self.is_grpc() { "a plain call" } else { "a plain GET" }
    }
}

/// Environment of the runner.
pub trait World {
    fn now(&mut self) -> Nanos;

    /// Plays the conversations that the director starts, until it is done or the run must end.
    fn play(&mut self, director: &mut dyn Director);

    /// Plays these conversations all at once, and returns them in order.
    fn talk(&mut self, scripts: Vec<TalkScript>) -> Vec<Talk> {
        let mut all = All::new(scripts);
        self.play(&mut all);
        all.into_talks()
    }

    fn pause(&mut self, span: Nanos);

    /// Returns the conversations that continue during everything that is played.
    fn carried(&mut self) -> &mut Carried;

    /// Returns the rate limiter of all stages of this world.
    fn governor(&mut self) -> &mut Governor;
    /// Returns the CPU use of this process since the previous call, as a share of one core; `None`
    /// if unknown.
    fn own_work(&mut self) -> Option<f64> {
        None
    }

    /// Returns the server's processes and their resources; `None` if they are not visible. Must be
    /// called after the query of deaths.
    fn server(&mut self) -> Option<ServerState> {
        None
    }

    /// Returns the memory of the server's processes alone: cheap enough for samples during a case.
    /// `None` if they are not visible.
    fn server_memory(&mut self) -> Option<u64> {
        self.server().map(|state| state.memory_bytes)
    }

    /// Checks whether raw TCP segments can be sent.
    ///
    /// # Errors
    /// Fails with the reason and the fix.
    fn device(&self) -> Result<(), String> {
        Err(Need::Device.missing().to_owned())
    }

    /// Returns the server's processes that exited since the previous call; cheap if there are none.
    fn deaths(&mut self) -> Vec<Death> {
        Vec::new()
    }

    /// Schedules a user command for this instant, while the next director plays.
    fn schedule_command(&mut self, _action: ServerCommand, _at: Nanos) {}

    /// Returns the results of the scheduled commands in order of their start. Waits for running
    /// ones, and starts pending ones if the server needs them.
    fn finished_commands(&mut self) -> Vec<Done> {
        Vec::new()
    }

    /// Returns why the run must end now, if so.
    fn stopped(&self) -> Option<Stop>;
}
