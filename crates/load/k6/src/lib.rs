//! k6 scripts as a source of calls: a JavaScript runtime for each user, k6's modules, options,
//! executors, metrics, thresholds and end-of-test summary. Layer 4: it runs programs of the user,
//! which read files; the engine provides instants.
//!
//! A user is a [`vu::Vu`]: a runtime on its own stack. It is resumed with an answer and returns the
//! next event that it waits for. [`guide::ScriptGuide`] drives the users of one worker; everything
//! else is a pure function of the options and the collected data. [`journey`] runs the functions of
//! a script as journeys of a plan instead.

mod addresses;
mod begun;
mod buffer;
mod bytecode;
mod call;
mod compress;
mod context;
mod digest;
pub mod duration;
mod grpc;
mod grpc_tls;
pub mod guide;
mod http;
pub mod journey;
pub mod metrics;
pub mod modules;
mod native;
pub mod options;
pub mod output;
mod pem;
pub mod program;
mod request;
mod response;
pub mod scan;
pub mod scenario;
mod socket;
pub mod summary;
mod suspension;
pub mod test;
pub mod threshold;
mod typescript;
pub mod vu;
mod webcrypto;

pub use call::{
    Headers, HttpReply, SocketRequest, Task, VuAnswer, VuCall, VuFailure, VuRequest, WireRequest,
};
pub use context::{Context, IterationFacts, ScenarioFacts};

/// Version of k6 whose interface is provided.
pub const VERSION: &str = "2.2.0";
