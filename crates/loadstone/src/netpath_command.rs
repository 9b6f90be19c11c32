//! `loadstone netpath`: runs a program behind an emulated path.

use crate::exit::{Code, Failure};
use args::{NetpathArgs, NetpathCommand};
use host::invocation::is_process;
use netpath::{FarEnd, NetPath, PathRequest, Post, Warden};
use record::run::PathRecord;
use sample::PathFacts;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use units::show;
use wan::{PathSpec, Population, Throttles, describe, profiles};

/// Time limit for a server to end after a stop request.
const SERVER_PATIENCE: Duration = Duration::from_secs(3);

/// Returns the program's exit code, or this program's if it could not be run.
pub(crate) fn netpath(args: &NetpathArgs) -> u8 {
    let done = match &args.command {
        Some(NetpathCommand::Profiles) => list_profiles().map(u8::from),
        Some(NetpathCommand::Check) => check().map(u8::from),
        None => run(args),
    };
    done.unwrap_or_else(|failure| {
        crate::print_message(&failure.text);
        failure.code.into()
    })
}

fn run(args: &NetpathArgs) -> Result<u8, Failure> {
    let spec = args.path()?;
    if !is_process() {
        return Err(Failure::usage(
            "netpath needs a process with one thread: start the program loadstone for it",
        ));
    }
    // both before the first thread: the warden is a fork, and users are dropped by a whole process
    let mut warden = Warden::start()
        .map_err(|error| Failure::usage(format!("cannot start a process: {error}")))?;
    let mut post =
        Post::open().map_err(|error| Failure::usage(format!("cannot catch signals: {error}")))?;
    let far = if args.server.is_some() { FarEnd::New } else { FarEnd::Here };
    if far == FarEnd::New {
        netpath::enable_namespaces()?;
    }
    let path = NetPath::open(&PathRequest {
        population: Population::new(spec.clone()),
        clients: 1,
        seed: args.seed,
        far,
        own_loopback: args.own_loopback,
    })?;
    warden
        .guard(&path)
        .map_err(|error| Failure::usage(format!("the warden process has exited: {error}")))?;
    if !args.quiet {
        before(&spec, &path, far, args.own_loopback);
    }
    let server = args.server.as_deref().map(|command| start_server(command, &path)).transpose()?;
    let code = supervise(args, &path, &mut post);
    let facts = code.is_ok().then(|| path.facts()).transpose();
    if let Some(mut server) = server {
        netpath::end(&mut server, SERVER_PATIENCE).ok();
    }
    match facts {
        Ok(Some(facts)) if !args.quiet => print_facts(&facts),
        Ok(_) => {}
        Err(trouble) => crate::print_message(&trouble.to_string()),
    }
    code
}

/// Notes for the user before the program starts.
fn before(spec: &PathSpec, path: &NetPath, far: FarEnd, own_loopback: bool) {
    if far == FarEnd::Here {
        let device = path.far_device();
        crate::print_message(&format!(
            "the network device {device} exists on this host until the end"
        ));
    }
    if own_loopback {
        crate::print_message(&format!("for the program the server is at {}", path.server()));
    }
    if let Some(note) = session::too_fast(spec) {
        crate::print_message(&note);
    }
}

fn start_server(command: &str, path: &NetPath) -> Result<Child, Failure> {
    let mut shell = Command::new("sh");
    // our output is for people: the program's own is the only one on standard output
    shell.args(["-c", command]).stdin(Stdio::null()).stdout(std::io::stderr());
    let mut server = netpath::start(path.server_namespace(), &mut shell)
        .map_err(|error| Failure::usage(format!("--server: cannot start sh: {error}")))?;
    let mut ended = None;
    let ready = {
        let mut gone = || {
            ended = server.try_wait().ok().flatten();
            ended.is_some()
        };
        netpath::await_listener(path.server_namespace(), &mut gone)
    };
    match (ready, ended) {
        (Ok(true), _) => Ok(server),
        (Ok(false), ended) => {
            let how = ended.map_or(String::new(), |status| format!(" ({status})"));
            Err(Failure::usage(format!(
                "--server: {command:?} ended{how} before it listened on a TCP port; it must stay \
                 in the foreground"
            )))
        }
        (Err(trouble), _) => Err(Failure::usage(format!("--server: {trouble}"))),
    }
}

/// Returns the exit code for a program that cannot be started, as in shells: 127 if it is not
/// found, 126 if it cannot be executed.
fn unstarted(error: &std::io::Error) -> u8 {
    if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 }
}

/// Runs the program at the near end, to its exit code.
fn supervise(args: &NetpathArgs, path: &NetPath, post: &mut Post) -> Result<u8, Failure> {
    let Some((name, arguments)) = args.program.split_first() else {
        return Err(Failure::usage("no program is given; write it after --"));
    };
    let mut command = Command::new(name);
    command.args(arguments);
    let shown = name.to_string_lossy();
    let mut program = match netpath::start(path.client_namespace(), &mut command) {
        Ok(program) => program,
        Err(error) => {
            crate::print_message(&format!("{} cannot be started: {error}", units::quoted(&shown)));
            return Ok(unstarted(&error));
        }
    };
    let ended = post.supervise(&mut program);
    let ended =
        ended.map_err(|error| Failure::usage(format!("cannot wait for {shown}: {error}")))?;
    Ok(netpath::code(ended))
}

/// Prints what the path did.
pub(crate) fn print_facts(facts: &PathFacts) {
    path_lines(facts).iter().for_each(|line| crate::print_message(line));
}

/// Formats the facts of a path as lines.
fn path_lines(facts: &PathFacts) -> Vec<String> {
    let mut lines = vec![format!(
        "path {}, seed {}, {} packets in {}",
        facts.spec,
        facts.seed,
        show::count(facts.packets()),
        show::duration(facts.span)
    )];
    let record = PathRecord::new(facts);
    for (kind, result) in facts.kinds.iter().zip(&record.kinds) {
        if facts.kinds.len() > 1 {
            lines.push(format!("  {}: {} clients", kind.name, show::count(kind.clients.into())));
        }
        lines.push(format!("  up: {}", report::path::direction(&result.up)));
        lines.push(format!("  down: {}", report::path::direction(&result.down)));
        lines.push(format!("  configured round trip {}", show::duration(kind.rtt)));
    }
    lines.push(format!("  {}", report::path::emulation(&record)));
    let judged = [stats::verdict::path_overload(facts), stats::verdict::path_late(facts, None)];
    lines.extend(
        judged
            .into_iter()
            .flatten()
            .map(|cause| format!("  {}: {}. {}", cause.id.id(), cause.text, cause.advice)),
    );
    lines
}

fn list_profiles() -> Result<Code, Failure> {
    let mut text = String::new();
    for profile in profiles() {
        text.push_str(&format!("{:<19} {}\n", profile.name, profile.about));
        let spec = PathSpec::parse(profile.text, &wan::NoTraces)
            .map_err(|fault| Failure::usage(fault.to_string()))?;
        text.push_str(&format!("{:<19}   up    {}\n", "", describe(&spec.up)));
        text.push_str(&format!("{:<19}   down  {}\n", "", describe(&spec.down)));
        if profile.throttles == Throttles::Requests {
            let note = "made for requests in a browser; here its values apply to packets";
            text.push_str(&format!("{:<19}   {note}\n", ""));
        }
    }
    crate::print(text.as_bytes())
}

fn check() -> Result<Code, Failure> {
    netpath::enable_namespaces()?;
    let lines = netpath::check()?;
    let good = lines.iter().all(|line| line.good);
    let mut text = String::new();
    for line in &lines {
        text.push_str(&format!("{}  {}\n", if line.good { "ok  " } else { "MISS" }, line.text));
    }
    crate::print(text.as_bytes())?;
    Ok(if good { Code::Done } else { Code::Missed })
}
