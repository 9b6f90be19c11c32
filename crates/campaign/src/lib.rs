//! A run of conformance cases: what the server does with plain requests and with harmless oddities,
//! then case by case, each breach tried again until it is sure or known to come and go.
#![forbid(unsafe_code)]

mod baseline;
mod bounds;
mod budget;
mod chain;
mod culprit;
mod errands;
mod families;
mod findings;
mod gate;
mod habits;
mod hangs;
mod health;
mod heir;
mod knee;
mod leak;
mod life;
mod lints;
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
pub use culprit::CULPRIT;
pub use errands::{Done, ServerCommand};
pub use order::run;
pub use replay::{Failure, Timing, replay, shrink_failures};
pub use spans::{CaseSpan, span_of_run, usual_spans};
pub use torture::oddities::ODDITIES;
pub use trail::TAIL_MAX;
pub use watcher::{CampaignEvent, Unwatched, Watcher, Watchers};
pub use worst::worst;

use conduit::Peer;
use dialogue::governor::{Governor, Stop};
use dialogue::http2::Spoken;
use dialogue::talk::{All, Carried, Director, Talk, TalkScript};
use dialogue::text::Values;
use probes::Probing;
use sample::{Death, ServerState};
use session::Runner;
use shrink::Budget;
use torture::case::Need;
use units::Nanos;

/// Tries of an exchange that fails; it is a finding when it fails in most of them.
pub const TRIES: u32 = 3;
/// Plain requests before anything odd is sent.
const PLAIN_CALLS: usize = 3;
/// Time for a plain request.
const PLAIN_DEADLINE: Nanos = Nanos::from_secs(5);
/// How long the server may take to answer plain requests again after a case.
pub const GATE: Nanos = Nanos::from_secs(30);
/// Probes of a run that are kept.
pub const PROBES_MAX: usize = 100_000;
/// Between two plain requests of a gate.
const GATE_EVERY: Nanos = Nanos::from_millis(200);

/// How long a connection is watched after its last response, for responses that nobody asked for.
const GRACE: Nanos = Nanos::from_millis(60);

/// What was asked for.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Of everything random.
    pub seed: u64,
    /// Executions of random data of one case at most.
    pub executions_max: u64,
    /// Executions of random data that are under way at once; what is sent on each connection, and
    /// what is said of it, does not depend on it.
    pub workers: usize,
    pub probing: Probing,
    /// How long the quiet server is probed before the first case.
    pub baseline: Nanos,
    /// Paths that random data is sent to, beside the probed page.
    pub pages: Vec<String>,
    /// Path and query of a page that is longer than all buffers between the two programs.
    pub big: Option<String>,
    /// Connections that the server serves at once, where the user knows.
    pub slots: Option<u64>,
    /// What may be spent on finding who did it, for each case, and on shrinking, for the whole run;
    /// `None`: neither is done.
    pub search: Option<Budget>,
    /// What well-behaved clients observe is judged even where the quiet server is noisy.
    pub accept_noisy: bool,
    /// Path and query of a page that costs the server much more than the probed one.
    pub expensive: Option<String>,
    /// The commands that the user gave.
    pub errands: Vec<ServerCommand>,
    /// How long odd requests go on and on.
    pub soak: Option<Nanos>,
    /// How long silence lasts at most until it is a failure; `None`: as long as each exchange says.
    pub silence_max: Option<Nanos>,
    /// Of a case that changes requests again and again: how many of them, and for how long; `None`: as its
    /// file says.
    pub mutants_max: Option<u64>,
    pub mutation: Option<Nanos>,
}

/// Who is tested.
#[derive(Clone, Debug)]
pub struct TestTarget {
    pub peer: Peer,
    /// Name for SNI; `None` without TLS.
    pub tls_name: Option<String>,
    /// What plain requests, probes and cases speak: HTTP/1.1, or HTTP/2 as a well-behaved client does.
    pub spoken: Spoken,
    /// `path` is the probed page.
    pub values: Values,
    /// `values.post` names a page that takes bodies.
    pub takes_bodies: bool,
    /// Field lines of ours, each with its line end: User-Agent and the user's own.
    pub fields: String,
    /// Values of the user's fields that nobody may read in a result.
    pub secrets: Vec<String>,
}

/// What the runner needs of the world.
pub trait World {
    fn now(&mut self) -> Nanos;

    /// Has the conversations that the director begins, until it says that it is all over, or the run
    /// is to end.
    fn play(&mut self, director: &mut dyn Director);

    /// Has these conversations, all at once, and gives them back in their order.
    fn talk(&mut self, scripts: Vec<TalkScript>) -> Vec<Talk> {
        let mut all = All::new(scripts);
        self.play(&mut all);
        all.into_talks()
    }

    fn pause(&mut self, span: Nanos);

    /// Conversations that go on beside everything that is played.
    fn carried(&mut self) -> &mut Carried;

    /// Who keeps the bounds, on every stage of this world.
    fn governor(&mut self) -> &mut Governor;
    /// Work of this process since it was asked last, as a share of one core; `None` where that is not
    /// known.
    fn own_work(&mut self) -> Option<f64> {
        None
    }

    /// The server's processes and what they hold now; `None` where they are not seen. Deaths are to be
    /// asked for before.
    fn server(&mut self) -> Option<ServerState> {
        None
    }

    /// Whether conversations can be held segment by segment.
    ///
    /// # Errors
    /// Why not, and the way out.
    fn device(&self) -> Result<(), String> {
        Err(Need::Device.missing().to_owned())
    }

    /// Processes of the server that have ended since this was asked last; cheap as long as none has.
    fn deaths(&mut self) -> Vec<Death> {
        Vec::new()
    }

    /// Has a command of the user's run from this instant on, while the next director plays.
    fn send_for(&mut self, _errand: ServerCommand, _at: Nanos) {}

    /// What became of the commands that were sent for, in the order of their beginnings. Waits for
    /// those that go on; those that never began are begun, where the server needs them.
    fn errands(&mut self) -> Vec<Done> {
        Vec::new()
    }

    /// The run is to end now, and why.
    fn stopped(&self) -> Option<Stop>;
}
