//! `loadstone fleet`: one load from many machines.

mod local;
mod operator;

use crate::exit::{Code, Failure};
use args::{FleetAgentArgs, FleetArgs, FleetCommand, FleetWatchArgs};
use fleetrun::{AgentTask, WatchTask, usage};

/// Runs a command of the fleet.
pub(crate) fn fleet(args: FleetArgs) -> Result<Code, Failure> {
    match args.command {
        FleetCommand::Local(args) => local::local(*args),
        FleetCommand::Manager(args) => local::manager(*args),
        FleetCommand::Agent(args) => fleetrun::agent(&agent(args)),
        FleetCommand::Status(args) => operator::status(&args),
        FleetCommand::Abort(args) => operator::abort(&args),
        FleetCommand::Watch(args) => fleetrun::watch(&watch(args)),
        FleetCommand::Creds(args) => local::creds(&args),
        FleetCommand::Attach { .. } => Err(Failure::usage(
            "attach is an option of the manager: loadstone fleet manager --attach --creds DIR --nats URL PLAN",
        )),
    }
}

fn agent(args: FleetAgentArgs) -> AgentTask {
    AgentTask {
        endpoint: args.access.place(),
        creds: args.access.creds,
        wait: args.wait,
        labels: args.labels,
        allow_scripts: args.allow_scripts,
        rate_max: args.rate_max,
        targets: args.targets,
    }
}

fn watch(args: FleetWatchArgs) -> WatchTask {
    WatchTask {
        endpoint: args.access.place(),
        creds: args.access.creds,
        wait: args.wait,
        pid: args.pid,
        listen: args.listen,
        exporter: args.exporter,
    }
}
