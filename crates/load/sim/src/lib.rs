//! Virtual time for tests: workers ↔ links ↔ scripted or queueing-model servers, in one thread,
//! with a clock that jumps from event to event. The worker is the one used in production; only the
//! world around it is simulated, so a minute of load takes milliseconds and always gives the same
//! result.
#![forbid(unsafe_code)]

mod ailing;
mod canned;
mod canned_sockets;
mod canned_streams;
pub mod grpc;
pub mod http2;
pub mod quic;
mod quic_sockets;
mod run;
pub mod s_client;
mod servers;
mod tokens;
pub mod torture;
mod world;

pub use ailing::{Ailing, Ailments, Limiter, SharedLine};
pub use canned::{
    Canned, CannedResponse, CannedSteps, Keep, STEPS_PER_ITERATION, calls_against, canned_journey,
    canned_list, canned_thinkers, canned_worker,
};
pub use canned_sockets::{canned_messages, canned_pings};
pub use canned_streams::{CannedKind, calls_of_kind, calls_over_streams};
pub use run::{
    Carry, Simulated, exchange, exchange_with_terms, execute, execute_acted, execute_guided,
    execute_journeys, execute_parts, execute_scenarios, execute_scripted, execute_with, plan_for,
};
pub use servers::{ClosureServer, Queue, Service, Stall};
pub use world::{Action, Admission, Client, Server, Stolen, WorkTime, World};
