//! `loadstone fleet`: one load from many machines.

mod agent;
mod budget;
mod bundle;
mod fleet_run;
mod ledger;
mod local;
mod merge;
mod operator;
mod plan_bundle;
mod public;
mod successors;
mod target;
mod wire;

use crate::exit::{Code, Failure};
use ::fleet::FleetError;
use args::{FleetArgs, FleetCommand};

/// Errors of the fleet's network: credentials, a server.
fn usage(error: FleetError) -> Failure {
    Failure::usage(error.to_string())
}

/// Runs a command of the fleet.
pub(crate) fn fleet(args: FleetArgs) -> Result<Code, Failure> {
    match args.command {
        FleetCommand::Local(args) => local::local(*args),
        FleetCommand::Manager(args) => local::manager(*args),
        FleetCommand::Agent(args) => agent::agent(&args),
        FleetCommand::Status(args) => operator::status(&args),
        FleetCommand::Abort(args) => operator::abort(&args),
        FleetCommand::Watch(args) => target::watch(&args),
        FleetCommand::Creds(args) => local::creds(&args),
        FleetCommand::Attach { .. } => Err(Failure::usage(
            "attach is an option of the manager: loadstone fleet manager --attach --creds DIR --nats URL PLAN",
        )),
    }
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
