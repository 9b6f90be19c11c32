//! nats-server as a child: its configuration, its start on a free port, its end with us.

use crate::{Credentials, FleetError, Role, ServerVersion, Subjects};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// A user of the server: the public half of the key, and its role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    pub id: String,
    pub role: Role,
}

impl From<&Credentials> for Grant {
    fn from(credentials: &Credentials) -> Grant {
        Grant { id: credentials.id(), role: credentials.role }
    }
}

/// Certificates of a server that listens on a network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerTls {
    pub cert: PathBuf,
    pub key: PathBuf,
    /// Clients must present a certificate of this authority, in addition to their key.
    pub client_ca: Option<PathBuf>,
}

/// Start options of a managed server.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// The program; found by its name in PATH.
    pub program: PathBuf,
    pub listen: IpAddr,
    /// Port; 0 for any free one.
    pub port: u16,
    pub tls: Option<ServerTls>,
}

impl Default for ServerOptions {
    fn default() -> ServerOptions {
        let listen = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
        ServerOptions { program: "nats-server".into(), listen, port: 0, tls: None }
    }
}

/// Returns a server's configuration. Accounts with their own users, and never an `authorization`
/// block with `$SYS`: versions below 2.9.23 then admit everyone (CVE-2023-47090).
///
/// # Errors
/// Fails for a server on a network without TLS.
pub fn configuration(
    options: &ServerOptions,
    fleet: &str,
    grants: &[Grant],
) -> Result<String, FleetError> {
    if !options.listen.is_loopback() && options.tls.is_none() {
        return Err(FleetError(format!(
            "a server that listens on {} needs TLS: name --tls-cert and --tls-key",
            options.listen
        )));
    }
    let port = if options.port == 0 { -1 } else { i32::from(options.port) };
    let mut text = format!(
        "host: \"{}\"\nport: {port}\nmax_connections: {}\nmax_pending: 256000000\n\
         write_deadline: \"10s\"\nping_interval: \"5s\"\nping_max: 2\n",
        options.listen,
        grants.len() * 2 + 16,
    );
    if let Some(tls) = &options.tls {
        // the server runs in its own directory
        let path = |path: &Path| {
            let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
            format!("{:?}", whole.display().to_string())
        };
        write!(text, "tls {{\n  cert_file: {}\n  key_file: {}\n", path(&tls.cert), path(&tls.key))
            .expect("writing to a String cannot fail");
        if let Some(ca) = &tls.client_ca {
            writeln!(text, "  ca_file: {}\n  verify: true", path(ca))
                .expect("writing to a String cannot fail");
        }
        text.push_str("}\n");
    }
    text.push_str("system_account: SYS\naccounts {\n  SYS { users: [] }\n  LOAD { users: [\n");
    let subjects = Subjects::new(fleet);
    for grant in grants {
        let (publish, subscribe) = subjects.permitted(grant.role, &grant.id);
        let list = |names: &[String]| {
            names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ")
        };
        writeln!(
            text,
            "    {{ nkey: {}, permissions: {{ publish: {{ allow: [{}] }}, subscribe: {{ allow: [{}] }} }} }}",
            grant.id,
            list(&publish),
            list(&subscribe)
        )
        .expect("writing to a String cannot fail");
    }
    text.push_str("  ] }\n}\n");
    Ok(text)
}

/// A running server; ended, with its process, when dropped.
#[derive(Debug)]
pub struct NatsServer {
    child: Child,
    options: ServerOptions,
    dir: TempDir,
    pub version: ServerVersion,
    /// Address where it listens.
    pub port: u16,
}

impl NatsServer {
    /// Starts the server and waits until it listens.
    ///
    /// # Errors
    /// Fails if there is no such program, its version is too old, or the server does not start.
    pub fn start(
        options: &ServerOptions,
        fleet: &str,
        grants: &[Grant],
    ) -> Result<NatsServer, FleetError> {
        let version = installed(&options.program)?;
        version.check()?;
        let text = configuration(options, fleet, grants)?;
        let broken =
            |error: std::io::Error| FleetError(format!("a directory for nats-server: {error}"));
        // made with mode 0700
        let dir = tempfile::Builder::new().prefix("loadstone-nats-").tempdir().map_err(broken)?;
        std::fs::write(dir.path().join("server.conf"), &text).map_err(broken)?;
        let (child, port) = launch(&options.program, dir.path(), None)?;
        Ok(NatsServer { child, options: options.clone(), dir, version, port })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the address for clients.
    pub fn url(&self) -> String {
        let scheme = if self.options.tls.is_some() { "tls" } else { "nats" };
        match self.options.listen {
            IpAddr::V6(address) => format!("{scheme}://[{address}]:{}", self.port),
            address => format!("{scheme}://{address}:{}", self.port),
        }
    }

    /// Ends the process.
    pub fn end(&mut self) {
        // it may have ended already
        self.child.kill().ok();
        self.child.wait().ok();
    }

    /// Restarts the server on the same port if it has exited; returns whether it had.
    ///
    /// # Errors
    /// Fails if it does not start again.
    pub fn restart_if_exited(&mut self) -> Result<bool, FleetError> {
        if matches!(self.child.try_wait(), Ok(None)) {
            return Ok(false);
        }
        // nothing is written: the disk may be full by now
        (self.child, self.port) = launch(&self.options.program, self.dir.path(), Some(self.port))?;
        Ok(true)
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        self.end();
    }
}

fn installed(program: &Path) -> Result<ServerVersion, FleetError> {
    let output = Command::new(program).arg("--version").stdin(Stdio::null()).output();
    let output = output.map_err(|error| {
        FleetError(format!(
            "cannot start {}: {error}; install it (Debian: apt-get install nats-server), or name a \
             server that runs with --nats URL",
            program.display()
        ))
    })?;
    ServerVersion::parse(&String::from_utf8_lossy(&output.stdout))
}

/// Returns the child and the port that it reports; `port` overrides the configuration's. With
/// `setpriv`, the kernel ends the server when this process ends in any way.
fn launch(program: &Path, dir: &Path, port: Option<u16>) -> Result<(Child, u16), FleetError> {
    let start = |mut command: Command| {
        command.arg("-c").arg(dir.join("server.conf")).current_dir(dir);
        if let Some(port) = port {
            command.args(["-p", &port.to_string()]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()
    };
    let mut guarded = Command::new("setpriv");
    guarded.args(["--pdeathsig", "TERM", "--"]).arg(program);
    let child = start(guarded).or_else(|_| start(Command::new(program)));
    let mut child = child
        .map_err(|error| FleetError(format!("cannot start {}: {error}", program.display())))?;
    let Some(out) = child.stderr.take() else {
        return Err(FleetError::new("nats-server has no standard error"));
    };
    let mut lines = BufReader::new(out).lines();
    let mut port = None;
    let mut last_line = String::new();
    for line in lines.by_ref().map_while(Result::ok) {
        if let Some((_, place)) = line.split_once("Listening for client connections on ") {
            port = place.rsplit(':').next().and_then(|port| port.trim().parse().ok());
        }
        if line.contains("Server is ready") {
            break;
        }
        if !line.trim().is_empty() {
            last_line = line;
        }
    }
    let Some(port) = port else {
        child.kill().ok();
        child.wait().ok();
        return Err(FleetError(format!("nats-server does not start: {last_line}")));
    };
    // further output is read and dropped: a full pipe would block it
    let drain = move || lines.for_each(drop);
    let thread = std::thread::Builder::new().name("nats-log".into()).spawn(drain);
    thread.map_err(|error| FleetError(format!("cannot start a thread: {error}")))?;
    Ok((child, port))
}
