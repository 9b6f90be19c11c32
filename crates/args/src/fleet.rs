//! The options of `fleet`.

use super::{Cli, Command, UsageError, parse};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};
use fleet::{HostBudget, NatsEndpoint, OnLoss, ServerOptions, ServerTls};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use units::{Nanos, Rate};

/// Load from many machines as one run
///
/// A manager divides the load among agents, starts them at one instant and merges what they count
/// into one report. They communicate through a NATS server, to which all of them connect.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  loadstone fleet local --agents 4 --rate 2000/s -d 10s http://127.0.0.1:8080/
  loadstone fleet local --agents 4 ramp http://127.0.0.1:8080/
  loadstone fleet creds ./keys --agents 20
  loadstone fleet manager --creds ./keys --agents 20 --nats tls://hub:4222 --ca ca.pem plan.toml
  loadstone fleet agent --manager tls://hub:4222 --ca ca.pem --creds agent-7.creds
  loadstone fleet watch --manager tls://hub:4222 --ca ca.pem --creds watch.creds --listen 0.0.0.0:80")]
pub struct FleetArgs {
    #[command(subcommand)]
    pub command: FleetCommand,
}

#[derive(Debug, Subcommand)]
pub enum FleetCommand {
    Local(Box<FleetLocalArgs>),
    Manager(Box<FleetManagerArgs>),
    Agent(FleetAgentArgs),
    Watch(FleetWatchArgs),
    /// Show the state of the agents of a manager
    Status(FleetOperatorArgs),
    /// End a manager's run; its report follows
    Abort(FleetOperatorArgs),
    Creds(FleetCredsArgs),
    /// Say that it is an option of the manager
    #[command(hide = true)]
    Attach {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
}

/// How a connection to the fleet's server is trusted and authenticated.
#[derive(Args, Debug)]
pub struct FleetTrustArgs {
    /// Trust server certificates of this authority (PEM)
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Client certificate, if the server requests one (PEM); with --key
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// Key of --cert (PEM)
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
}

impl FleetTrustArgs {
    /// Returns the endpoint of the server at this URL.
    pub fn place(&self, url: &str) -> NatsEndpoint {
        let identity = self.cert.clone().zip(self.key.clone());
        NatsEndpoint { url: url.to_owned(), ca: self.ca.clone(), identity }
    }
}

/// Location and credentials of a fleet.
#[derive(Args, Debug)]
pub struct FleetAccessArgs {
    /// URL of the NATS server that the manager uses: nats:// on this machine, tls:// elsewhere
    #[arg(long, value_name = "URL")]
    manager: String,
    /// Credentials made by `fleet creds`: agent-N.creds, watch.creds, operator.creds
    #[arg(long, value_name = "FILE")]
    pub creds: PathBuf,
    #[command(flatten)]
    trust: FleetTrustArgs,
}

impl FleetAccessArgs {
    pub fn place(&self) -> NatsEndpoint {
        self.trust.place(&self.manager)
    }
}

/// Work that the agents share.
#[derive(Args, Debug)]
struct FleetWorkArgs {
    /// When an agent is lost: stop the run, continue without it, or share its part of an open load among
    /// the others [default: stop with fewer than 20 agents, else continue]
    #[arg(long, value_name = "WHAT", value_parser = on_loss())]
    on_agent_loss: Option<OnLoss>,
    /// Refuse plans that send more than this to a host, all agents together; may be given several times
    #[arg(long = "budget", value_name = "HOST=RATE", value_parser = budget)]
    budgets: Vec<HostBudget>,
    /// Arguments of `run`; or `run` or `ramp`, followed by its arguments
    #[arg(
        value_name = "PLAN",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    words: Vec<String>,
}

/// Run server, manager and agents on this machine, to try things out
#[derive(Args, Debug)]
pub struct FleetLocalArgs {
    /// Number of agents
    #[arg(long, value_name = "N", value_parser = parse::count::<u32>, default_value = "4")]
    agents: u32,
    /// The NATS server's program
    #[arg(long, value_name = "FILE", default_value = "nats-server")]
    nats_server: PathBuf,
    #[command(flatten)]
    work: FleetWorkArgs,
}

/// Command agents on other machines
#[derive(Args, Debug)]
pub struct FleetManagerArgs {
    /// Directory with the fleet's credentials, as `fleet creds` makes them
    #[arg(long, value_name = "DIR")]
    pub creds: PathBuf,
    /// Number of agents to wait for [default with --attach: as many as the run has]
    #[arg(long, value_name = "N", value_parser = parse::count::<u32>, required_unless_present = "attach")]
    agents: Option<u32>,
    /// URL of a running NATS server; without it, one is started here
    #[arg(long, value_name = "URL")]
    pub nats: Option<String>,
    #[command(flatten)]
    pub trust: FleetTrustArgs,
    /// Address that the started server listens on; beyond loopback it needs --tls-cert
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = units::parse_listen, conflicts_with = "nats")]
    listen: Option<SocketAddr>,
    /// Certificate of the started server (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_key", conflicts_with = "nats")]
    tls_cert: Option<PathBuf>,
    /// Key of --tls-cert (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Also require agents to present a certificate of this authority
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    client_ca: Option<PathBuf>,
    /// The NATS server's program
    #[arg(long, value_name = "FILE", default_value = "nats-server", conflicts_with = "nats")]
    nats_server: PathBuf,
    /// Take over a run whose manager died; give the same arguments as that manager
    #[arg(long, requires = "nats")]
    pub attach: bool,
    /// Also wait for a `fleet watch` on the target's machine
    #[arg(long)]
    pub watch: bool,
    /// Longest time to wait for the agents
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration, default_value = "5m")]
    pub wait: Nanos,
    #[command(flatten)]
    work: FleetWorkArgs,
}

/// Wait for plans, and carry out a part of each
#[derive(Args, Debug)]
pub struct FleetAgentArgs {
    #[command(flatten)]
    pub access: FleetAccessArgs,
    /// Longest time to wait for the server
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration, default_value = "5m")]
    pub wait: Nanos,
    /// Label of this agent in the report: region=north
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = label)]
    pub labels: Vec<(String, String)>,
    /// Allow plans with scripts, which run here
    #[arg(long)]
    pub allow_scripts: bool,
    /// Refuse a higher rate for this agent, and closed loads, which have no rate
    #[arg(long, value_name = "RATE", value_parser = units::parse_rate)]
    pub rate_max: Option<Rate>,
    /// Refuse plans for any host but these: a name or an address
    #[arg(long, value_name = "HOST,...", value_delimiter = ',')]
    pub targets: Vec<String>,
}

/// Send the counters of the target's machine to a fleet's run
///
/// Run it on the machine of the server under test: it reports CPU, memory, descriptors and listen
/// queues every second, by the fleet's clock.
#[derive(Args, Debug)]
#[command(group = clap::ArgGroup::new("who").required(true).multiple(true))]
pub struct FleetWatchArgs {
    #[command(flatten)]
    pub access: FleetAccessArgs,
    /// Longest time to wait for the server
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration, default_value = "5m")]
    pub wait: Nanos,
    /// The process to watch, with its children
    #[arg(long, value_name = "PID", group = "who", value_parser = parse::count::<u32>)]
    pub pid: Option<u32>,
    /// The address that the server listens on: its process and its listen queue are watched
    #[arg(long, value_name = "ADDRESS:PORT", group = "who", value_parser = units::parse_listen)]
    pub listen: Option<SocketAddr>,
    /// A node exporter to read instead of a process
    #[arg(long, value_name = "URL", group = "who", value_parser = exporter, conflicts_with = "pid")]
    pub exporter: Option<url::Url>,
}

fn exporter(text: &str) -> Result<url::Url, String> {
    match session::sut::parse(text)? {
        session::sut::SutTarget::Exporter(url) => Ok(url),
        session::sut::SutTarget::Process(_) => {
            Err("give the http:// URL of a node exporter".into())
        }
    }
}

/// Location of a fleet, for its operator.
#[derive(Args, Debug)]
pub struct FleetOperatorArgs {
    #[command(flatten)]
    pub access: FleetAccessArgs,
}

/// Make the keys of a fleet, and the configuration of its NATS server
#[derive(Args, Debug)]
pub struct FleetCredsArgs {
    /// Directory to write them to
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// Name of the fleet
    #[arg(long, value_name = "NAME", default_value = "fleet")]
    pub fleet: String,
    /// Number of agents
    #[arg(long, value_name = "N", value_parser = parse::count::<u32>)]
    pub agents: u32,
}

/// Parses an action for the loss of an agent.
fn on_loss() -> impl TypedValueParser<Value = OnLoss> {
    const ACTIONS: [(&str, OnLoss, &str); 3] = [
        ("stop", OnLoss::Stop, "Stops the other agents: the run is invalid"),
        (
            "continue",
            OnLoss::Continue,
            "The other agents continue; calls due on the lost agent are lost",
        ),
        (
            "redistribute",
            OnLoss::Redistribute,
            "The other agents continue, and share the lost part once the agent is certainly \
             silent. For open loads only",
        ),
    ];
    let values = ACTIONS.map(|(name, _, help)| PossibleValue::new(name).help(help));
    PossibleValuesParser::new(values).try_map(|word| {
        let found = ACTIONS.iter().find(|(name, ..)| *name == word);
        found.map(|(_, action, _)| *action).ok_or("no such action")
    })
}

fn budget(text: &str) -> Result<HostBudget, String> {
    let (host, rate) = text.rsplit_once('=').ok_or("a budget is HOST=RATE: shop.example=500/s")?;
    if host.is_empty() {
        return Err("a budget names a host: shop.example=500/s".into());
    }
    Ok((host.to_owned(), units::parse_rate(rate).map_err(|error| error.to_string())?))
}

fn label(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("a label is NAME=VALUE: region=north")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Command of a fleet.
#[derive(Debug)]
pub struct FleetTask {
    /// Number of agents; `None`: the number in the run that is taken over.
    pub agents: Option<usize>,
    pub nats_server: PathBuf,
    on_loss: Option<OnLoss>,
    pub budgets: Vec<HostBudget>,
    words: Vec<String>,
}

/// Below this number of agents, the loss of one makes the run invalid.
const FEW: usize = 20;

impl FleetTask {
    fn new(
        agents: Option<u32>,
        nats_server: PathBuf,
        work: &FleetWorkArgs,
    ) -> Result<FleetTask, UsageError> {
        let agents = agents.map(|agents| agents as usize);
        let words = work.words.clone();
        let budgets = work.budgets.clone();
        let on_loss = work.on_agent_loss;
        let mut task = FleetTask { agents, nats_server, on_loss, budgets, words };
        // options may also follow the plan: `fleet local PLAN --agents 4`
        if let Some(at) = task.words.iter().position(|word| word == "--agents") {
            let count = task.words.get(at + 1).and_then(|word| word.parse().ok());
            let count =
                count.ok_or_else(|| UsageError::new("--agents needs a number of agents"))?;
            task.agents = Some(count);
            task.words.drain(at..at + 2);
        }
        if task
            .agents
            .is_some_and(|agents| agents == 0 || agents > fleet::protocol::manager::AGENTS_MAX)
        {
            let most = fleet::protocol::manager::AGENTS_MAX;
            return Err(UsageError::new(format!("--agents takes a number from 1 to {most}")));
        }
        // reported now, not after all agents have joined
        task.command()?;
        Ok(task)
    }

    /// Parses the words after the options: the command to run.
    ///
    /// # Errors
    /// Fails like that command.
    pub fn command(&self) -> Result<Command, UsageError> {
        let named = matches!(self.words.first().map(String::as_str), Some("run" | "ramp"));
        let mut argv = vec!["loadstone".to_owned()];
        if !named {
            argv.push("run".to_owned());
        }
        argv.extend(self.words.iter().cloned());
        let cli = Cli::try_parse_from(&argv)
            .map_err(|error| UsageError::new(error.to_string().trim_end().to_owned()))?;
        Ok(cli.command)
    }

    /// Returns the action for the loss of one of `agents` agents.
    pub fn on_loss(&self, agents: usize) -> OnLoss {
        self.on_loss.unwrap_or(if agents < FEW { OnLoss::Stop } else { OnLoss::Continue })
    }

    pub fn is_ramp(&self) -> bool {
        self.words.first().is_some_and(|word| word == "ramp")
    }
}

impl FleetLocalArgs {
    /// # Errors
    /// Fails without a number of agents.
    pub fn into_task(self) -> Result<FleetTask, UsageError> {
        FleetTask::new(Some(self.agents), self.nats_server, &self.work)
    }
}

impl FleetManagerArgs {
    /// # Errors
    /// Fails without a number of agents.
    pub fn task(&self) -> Result<FleetTask, UsageError> {
        FleetTask::new(self.agents, self.nats_server.clone(), &self.work)
    }

    /// Returns the options of a server that the manager starts.
    ///
    /// # Errors
    /// Fails for a server on a network without TLS.
    pub fn server_options(&self) -> Result<ServerOptions, UsageError> {
        let tls = self.tls_cert.clone().zip(self.tls_key.clone());
        let tls = tls.map(|(cert, key)| ServerTls { cert, key, client_ca: self.client_ca.clone() });
        let loopback = SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);
        let listen = self.listen.unwrap_or(loopback);
        if !listen.ip().is_loopback() && tls.is_none() {
            return Err(UsageError::new(format!(
                "a server that listens on {} needs TLS: name --tls-cert and --tls-key",
                listen.ip()
            )));
        }
        let (program, listen, port) = (self.nats_server.clone(), listen.ip(), listen.port());
        Ok(ServerOptions { program, listen, port, tls })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_placement_files_start_agents_with_the_same_options() {
        let files = [
            "kubernetes.yaml",
            "agents.slurm",
            "loadstone-agent@.service",
            "over-ssh.sh",
            "agents.nomad",
        ];
        for file in files {
            let path = format!("{}/../../deploy/{file}", env!("CARGO_MANIFEST_DIR"));
            let text = std::fs::read_to_string(path).unwrap();
            let clean = |word: &str| word.trim_matches(['"', '\'', ',', '\\']).to_owned();
            let words =
                text.split_whitespace().map(clean).filter(|word| !["-", "="].contains(&&**word));
            // the command that starts agents; a comment may name another command before it
            let words: Vec<String> = words.collect();
            let starts = |pair: &[String]| pair[0] == "fleet" && pair[1] == "agent";
            let at = words.windows(2).position(starts).unwrap();
            let words = words.into_iter().skip(at + 1);
            let mut argv = vec!["loadstone".to_owned(), "fleet".to_owned()];
            // up to the last option and its value
            argv.extend(words.filter(|word| !word.is_empty()).take(7));
            if argv.iter().any(|word| word.starts_with("--creds=")) {
                argv.truncate(6);
            }
            argv.retain(|word| !word.is_empty());
            let cli = Cli::try_parse_from(&argv)
                .unwrap_or_else(|error| panic!("{file}: {argv:?}: {error}"));
            let Command::Fleet(FleetArgs { command: FleetCommand::Agent(agent) }) = cli.command
            else {
                panic!("{file} starts no agent");
            };
            let FleetAccessArgs { manager, trust, creds } = agent.access;
            assert_eq!(manager, "tls://hub.example:4222", "{file}");
            assert!(trust.ca.is_some(), "{file}");
            assert!(creds.to_string_lossy().ends_with(".creds"), "{file}: {creds:?}");
        }
    }

    #[test]
    fn agents_may_precede_or_follow_the_plan() {
        let task = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            FleetTask::new(
                Some(4),
                PathBuf::new(),
                &FleetWorkArgs { on_agent_loss: None, budgets: Vec::new(), words },
            )
        };
        let behind = task(&["plan.toml", "--agents", "30", "-q"]).unwrap();
        assert_eq!((behind.agents, behind.on_loss(30)), (Some(30), OnLoss::Continue));
        assert_eq!(behind.words, ["plan.toml", "-q"]);
        let before = task(&["ramp", "URL"]).unwrap();
        assert_eq!((before.agents, before.on_loss(4)), (Some(4), OnLoss::Stop));
        assert!(task(&["plan.toml", "--agents"]).is_err());
        assert!(task(&["plan.toml", "--agents", "0"]).is_err());
    }
}
