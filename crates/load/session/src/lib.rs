//! From a plan to measured runs: the path between the command line and the engine's workers.
//!
//! [`Session::open`] looks up names, prepares TLS, chooses cores, raises limits and sets up the
//! network. [`Session::first_call`] makes the plain call that precedes every run.
//! [`Session::measure`] runs the plan once under a [`RunLoad`], and can be repeated;
//! [`Session::close`] makes the teardown steps. `run`, `ramp`, `compare`, `calibrate`, the faces, a
//! fleet's agents and the background load of a torture use these four calls.
#![forbid(unsafe_code)]

mod assemble;
pub mod calibration;
pub mod caller;
mod change;
pub mod console;
mod directory;
pub mod exit;
pub mod files;
mod first_call;
mod grpc;
mod grpc_tls;
mod journeys;
mod judge;
mod load;
mod measure;
mod message_values;
mod negotiate;
mod network;
#[cfg_attr(not(feature = "h3"), path = "no_quic.rs")]
pub mod over_quic;
mod own_stack;
mod path;
mod peak;
mod placement;
pub mod programs;
mod reach;
#[cfg_attr(not(feature = "lua"), path = "no_script.rs")]
pub mod script;
mod scripts;
mod servers;
mod session;
mod settled;
mod shared_connections;
pub mod shell;
pub mod signals;
mod sockets;
mod specweb99;
pub mod sut;
mod threads;
mod tokens;
pub mod wall_clock;
mod watcher;
mod watchers;

pub use assemble::no_connection;
pub use calibration::Calibration;
pub use change::Change;
pub use directory::directory_of;
pub use exit::{Code, Failure, NotBegun};
pub use first_call::PlainCall;
pub use grpc::declare_streams;
pub use judge::{Circumstances, Judge, printed_quantiles};
pub use load::{Observers, RunLoad};
pub use network::{Fleet, FleetTask, Network};
pub use path::{EmulatedPath, WantedPath, too_fast};
pub use peak::{RateUnknown, lane_peak, rate_peak};
pub use placement::{TooFew, units_of_work};
pub use reach::unless_interrupted;
pub use scripts::Scripts;
pub use servers::endpoint_of;
pub use session::{Env, MachinePart, Session};
pub use threads::RequestSource;
pub use watcher::{Lease, Takeovers, Watcher};
pub use watchers::Watchers;
