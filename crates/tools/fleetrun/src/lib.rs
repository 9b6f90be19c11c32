//! Runs of a fleet: one load of a session, distributed over the agents of many machines. The manager
//! divides a plan and merges what the agents count ([`FleetRun`] is a [`session::Fleet`]), an agent
//! runs its part, and a watch sends the counters of the target's machine. Layer 5; messages, clocks
//! and state machines are in `fleet`.
#![forbid(unsafe_code)]

mod agent;
mod budget;
mod bundle;
mod fleet_run;
mod ledger;
mod merge;
mod plan_bundle;
mod public;
mod target;
mod wire;

pub use agent::{AgentTask, agent};
pub use fleet_run::{Beginning, FleetRun, Terms};
pub use target::{WatchTask, watch};
pub use wire::Wire;

use fleet::FleetError;
use session::Failure;

/// Converts an error of the fleet's network: credentials, a server.
pub fn usage(error: FleetError) -> Failure {
    Failure::usage(error.to_string())
}

/// Returns a load on `url` whose journey has one step, to `step`; `{{f.v}}` is a value of its
/// feeder.
#[cfg(test)]
fn journey(url: &str, rate: &str, step: &str) -> plan::Plan {
    let text = format!(
        "version = 1\nurl = '{url}'\n[load]\nrate = '{rate}'\n[[feeder]]\nname = 'f'\n\
         generate = {{ v = ['x'] }}\n[[journey]]\nname = 'j'\n[[journey.step]]\n\
         name = 's'\nurl = '{step}'\n"
    );
    plan::from_toml(&text, &plan::NoFiles).expect("a plan")
}
