//! `loadstone fleet manager`, and `loadstone fleet local`: server, manager and agents on one machine.

use super::usage;
use crate::exit::{Code, Failure};
use anyhow::Context;
use args::{FleetCredsArgs, FleetLocalArgs, FleetManagerArgs, FleetTask};
use fleet::protocol::manager::{AGENTS_MAX, Manager};
use fleet::{
    Credentials, Grant, NatsEndpoint, NatsLink, NatsServer, OnLoss, Role, ServerOptions, Subjects,
};
use fleetrun::{Beginning, FleetRun, Terms, Wire};
use session::Fleet;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// Name of a fleet on one machine.
const LOCAL: &str = "local";
/// Time for local agents to join, and to exit on their own.
const JOIN_MAX: Duration = Duration::from_secs(30);
const END_MAX: Duration = Duration::from_secs(3);

/// Agents started by this process; dropping them ends them.
struct Children(Vec<Child>);

impl Drop for Children {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // it may have ended already
            netpath::end(child, END_MAX).ok();
        }
    }
}

/// Runs server, manager and agents as processes of this machine, for one plan.
pub(crate) fn local(args: FleetLocalArgs) -> Result<Code, Failure> {
    let task = args.into_task()?;
    let dir = tempfile::Builder::new().prefix("loadstone-fleet-").tempdir();
    let dir = dir.context("a directory for credentials")?;
    let own = Credentials::generate(LOCAL, Role::Manager).map_err(usage)?;
    let mut grants = vec![Grant::from(&own)];
    let mut files = Vec::new();
    let agents = task.agents.unwrap_or(1);
    for row in 0..agents {
        let agent = Credentials::generate(LOCAL, Role::Agent).map_err(usage)?;
        let path = dir.path().join(format!("agent-{row}.creds"));
        agent.write(&path).map_err(usage)?;
        grants.push(Grant::from(&agent));
        files.push(path);
    }
    let options = ServerOptions { program: task.nats_server.clone(), ..ServerOptions::default() };
    let server = NatsServer::start(&options, LOCAL, &grants).map_err(usage)?;
    let place = NatsEndpoint { url: server.url(), ..NatsEndpoint::default() };
    let wire = open(&place, &own, agents, Some(server))?;
    let children = Children(
        files.iter().map(|file| start_agent(&place, file)).collect::<Result<_, Failure>>()?,
    );
    let code = command(&task, wire, Beginning::Fresh, false, JOIN_MAX);
    drop(children);
    code
}

fn start_agent(place: &NatsEndpoint, creds: &Path) -> Result<Child, Failure> {
    let program = host::invocation::program().context("cannot find this program's own file")?;
    let mut command = Command::new(program);
    command.args(["fleet", "agent", "--manager", &place.url, "--allow-scripts", "--creds"]);
    command.arg(creds).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::inherit());
    Ok(command.spawn().context("cannot start an agent")?)
}

fn open(
    place: &NatsEndpoint,
    own: &Credentials,
    agents: usize,
    server: Option<NatsServer>,
) -> Result<Wire, Failure> {
    let subjects = Subjects::new(&own.fleet);
    let (_, listen) = subjects.permitted(Role::Manager, &own.id());
    let link = NatsLink::connect(place, own, listen, Duration::from_secs(10)).map_err(usage)?;
    if let Some(warning) =
        link.version.filter(|_| !place.is_loopback()).and_then(fleet::ServerVersion::warning)
    {
        crate::print_message(&warning);
    }
    // in microseconds: agents follow a later manager, even one started within the same second
    let epoch = (crate::wall_clock::unix_seconds() * 1e6) as u64;
    let manager = Manager::new(epoch, agents, net::reactor::monotonic());
    Ok(Wire::start(manager, link, subjects, server)?)
}

/// Waits for the agents, and runs `run` or `ramp` with them.
fn command(
    task: &FleetTask,
    wire: Wire,
    beginning: Beginning,
    watched: bool,
    patience: Duration,
) -> Result<Code, Failure> {
    let joined = match (beginning, task.agents) {
        (Beginning::Fresh, agents) => wire.await_agents(agents.unwrap_or(1), patience),
        (Beginning::Attached, agents) => wire.rejoin(agents, patience),
    };
    let joined = joined.and_then(|()| if watched { wire.await_watch(patience) } else { Ok(()) });
    let (on_loss, budgets) = (task.on_loss(wire.agents()), task.budgets.clone());
    let fleet_run = FleetRun::new(wire, Terms { on_loss, budgets, beginning });
    let code = joined.map_err(Failure::from).and_then(|()| run_on_machines(task, &fleet_run));
    fleet_run.close("the run is over");
    code
}

/// Runs `run` or `ramp` on these machines.
fn run_on_machines(task: &FleetTask, fleet_run: &FleetRun) -> Result<Code, Failure> {
    let machines: Arc<dyn Fleet> = Arc::new(fleet_run.clone());
    match task.command()? {
        args::Command::Run(args) => crate::run_plan(*args, Some(&machines)),
        args::Command::Ramp(args) => crate::ramp::ramp(*args, Some(&machines)),
        _ => Err(Failure::usage("a fleet supports run and ramp")),
    }
}

/// Commands agents on other machines.
pub(crate) fn manager(args: FleetManagerArgs) -> Result<Code, Failure> {
    let own = Credentials::read(&args.creds.join(MANAGER)).map_err(usage)?;
    let task = args.task()?;
    if args.attach && task.on_loss(1) == OnLoss::Redistribute {
        return Err(Failure::usage(
            "--attach ends a running load and reassigns nothing: omit --on-agent-loss redistribute",
        ));
    }
    if args.attach && task.is_ramp() {
        return Err(Failure::usage(
            "--attach ends a running load; only its manager knows the steps of a ramp",
        ));
    }
    let server = match &args.nats {
        Some(_) => None,
        None => {
            let grants = granted(&args.creds)?;
            let options = args.server_options()?;
            Some(NatsServer::start(&options, &own.fleet, &grants).map_err(usage)?)
        }
    };
    let url = args.nats.clone().or_else(|| server.as_ref().map(NatsServer::url));
    let place = args.trust.place(&url.unwrap_or_default());
    crate::print_message(&format!("agents join with --manager {}", place.url));
    let wire = open(&place, &own, task.agents.unwrap_or(AGENTS_MAX), server)?;
    let beginning = if args.attach { Beginning::Attached } else { Beginning::Fresh };
    command(&task, wire, beginning, args.watch, Duration::from_secs_f64(args.wait.as_secs_f64()))
}

const MANAGER: &str = "manager.creds";

/// Returns the owners of the credentials in a directory.
fn granted(dir: &Path) -> Result<Vec<Grant>, Failure> {
    let read = std::fs::read_dir(dir).with_context(|| dir.display().to_string())?;
    let mut paths: Vec<PathBuf> = read.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "creds"));
    paths.sort();
    let grant = |path: &PathBuf| Credentials::read(path).map(|read| Grant::from(&read));
    paths.iter().map(grant).collect::<Result<_, _>>().map_err(usage)
}

/// Creates the credentials of a fleet, and the configuration of a server that accepts them.
pub(crate) fn creds(args: &FleetCredsArgs) -> Result<Code, Failure> {
    std::fs::create_dir_all(&args.dir).with_context(|| args.dir.display().to_string())?;
    let mut grants = Vec::new();
    let mut make = |name: String, role| {
        let made = Credentials::generate(&args.fleet, role)?;
        made.write(&args.dir.join(name))?;
        grants.push(Grant::from(&made));
        Ok(())
    };
    let mut all = || {
        make(MANAGER.to_owned(), Role::Manager)?;
        make("operator.creds".to_owned(), Role::Operator)?;
        make("watch.creds".to_owned(), Role::Watch)?;
        (0..args.agents).try_for_each(|row| make(format!("agent-{row}.creds"), Role::Agent))
    };
    all().map_err(usage)?;
    let options = ServerOptions { port: 4222, ..ServerOptions::default() };
    let text = fleet::configuration(&options, &args.fleet, &grants).map_err(usage)?;
    let path = args.dir.join("server.conf");
    std::fs::write(&path, text).with_context(|| path.display().to_string())?;
    Ok(Code::Done)
}
