//! The worker of one core: schedule × workload × connections × recorder, generic over
//! [`conduit::Io`], and the collector that merges the workers' counts. Layer 3: no sockets, files,
//! threads or clock; the driver passes time and readiness.
//!
//! A worker is a state machine: [`Worker::turn`] processes everything due and returns how long it
//! can wait, [`Worker::handle`] processes one readiness event. [`drive`] is the loop around the
//! two.
#![forbid(unsafe_code)]

mod answers;
mod call;
pub mod check;
mod churn;
mod collect;
mod connect;
mod connection;
pub mod crawl;
mod deadlines;
mod decimal;
mod edges;
pub mod exchange;
mod fan_out;
mod feedback;
mod guide;
mod heartbeats;
mod held;
mod inspect;
mod intake;
mod journal;
pub mod journey;
mod link;
mod message_field;
mod paced_reads;
mod pacer;
mod pool;
pub mod proof;
pub mod ramp;
pub mod redirect;
mod render;
mod scenario_workers;
mod script;
mod setup;
mod slot_timers;
mod source;
mod speaker;
pub mod specweb99;
pub mod token;
mod transport;
mod upgrade;
mod verify;
mod worker;

pub use collect::{Collector, Intention, Owed, Row};
pub use guide::Directory;
pub use held::WithHeldConnections;
pub use intake::RESPONSE_KEPT_MAX;
pub use link::{Link, Order};
pub use paced_reads::PacedReads;
pub use render::{build_template, connect_request};
pub use scenario_workers::ScenarioWorkers;
pub use setup::{
    Crowd, Endpoint, LateShare, Logging, Setup, SetupError, endpoint_key, http2_settings,
    open_options,
};
pub use worker::{Driven, Turn, Worker, drive, ends_first};
pub use workload::schedule::Share;
