//! Facts about this machine and this process: CPU, limits, environment, names, listeners.
//!
//! Each text of /proc is parsed by a pure function of [`proc`]; the functions that read files are
//! thin. An unavailable fact (another system than Linux, a hidden /proc) is "unknown" (`None`,
//! empty, zero), never a guess.
#![deny(unsafe_code)]

pub mod cpu;
mod dns;
mod environment;
pub mod forecast;
pub mod foreign;
pub mod invocation;
pub mod limits;
mod listen_queues;
pub mod listener;
pub mod lives;
mod pidfd;
pub mod proc;
mod quota;
mod resolve;
pub mod state;
pub mod sut;
mod txt;

pub use cpu::cores_of;
pub use dns::{Asking, NameServerVisit, ask_name_servers};
pub use environment::environment;
pub use forecast::{Demand, Forecast, Supply, forecast};
pub use foreign::{Foreign, ForeignWatch};
pub use limits::{Descriptors, raise_descriptors};
pub use listener::{
    bound_listener_pids, connections_to, listener_pid, listener_pids, process_name,
};
pub use resolve::{Family, RESOLVE_MAX, ResolveError, interface_index, resolve, resolve_within};
pub use state::state_dir;
pub use txt::{txt, txt_from};

/// For tests that start a program, and tests that check which process holds a socket: until it
/// executes its program, a child holds all descriptors of its parent.
#[cfg(all(test, target_os = "linux"))]
fn alone() -> std::sync::MutexGuard<'static, ()> {
    static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());
    TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
