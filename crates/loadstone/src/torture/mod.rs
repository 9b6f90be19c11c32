//! `loadstone torture`: hostile and broken input, and what the server makes of it.

mod world;

use crate::args::{Sink, TortureArgs, TortureAsk};
use crate::exit::{Code, Failure};
use crate::files;
use conduit::Peer;
use report::torture::Report;
use std::net::IpAddr;
use torture::case::Case;
use torture::judge::Outcome;
use torture::safety::{self, Class};
use torture::session::{self, CaseResult, RunResult, Settings, Target};
use torture::text::Values;
use url::Url;
use world::Sockets;

pub(crate) fn torture(args: &TortureArgs) -> Result<Code, Failure> {
    let cases = torture::catalogue::cases().map_err(Failure::usage)?;
    match (&args.ask, &args.url) {
        (Some(TortureAsk::List), _) => print(&report::torture::list(&cases)),
        (Some(TortureAsk::Explain { id }), _) => explain(&cases, id),
        (None, Some(url)) => run(args, url, chosen(cases, &args.only)?),
        (None, None) => {
            Err(Failure::usage("whom to torture? loadstone torture URL, or --help for all"))
        }
    }
}

fn print(text: &str) -> Result<Code, Failure> {
    files::write_stdout(text).map_err(|error| Failure::not_written(&error))?;
    Ok(Code::Done)
}

fn explain(cases: &[Case], id: &str) -> Result<Code, Failure> {
    let found = cases.iter().find(|case| case.id.eq_ignore_ascii_case(id));
    let case = found.ok_or_else(|| unknown(id))?;
    print(&report::torture::explain(case))
}

fn unknown(id: &str) -> Failure {
    Failure::usage(format!("{} is no case; see loadstone torture list", units::quoted(id)))
}

/// The cases that `--only` names.
fn chosen(cases: Vec<Case>, only: &[String]) -> Result<Vec<Case>, Failure> {
    let named = |case: &Case, name: &str| {
        case.id.eq_ignore_ascii_case(name) || case.group().to_string().eq_ignore_ascii_case(name)
    };
    if let Some(name) = only.iter().find(|name| !cases.iter().any(|case| named(case, name))) {
        return Err(unknown(name));
    }
    let wanted = |case: &Case| only.is_empty() || only.iter().any(|name| named(case, name));
    Ok(cases.into_iter().filter(wanted).collect())
}

fn run(args: &TortureArgs, url: &Url, cases: Vec<Case>) -> Result<Code, Failure> {
    check_outputs(args)?;
    let (target, addresses) = reach(args, url)?;
    let class = permit(url, &addresses)?;
    let mut report = Report {
        target: url.to_string(),
        addresses,
        class,
        started_unix_s: crate::wall_clock::unix_seconds(),
        result: RunResult::default(),
    };
    if args.dry_run {
        return print(&report::torture::dry_run(&report, &target, &cases));
    }
    let mut sockets = Sockets::new(tls_for(args, url)?)
        .map_err(|error| Failure::usage(format!("cannot wait for sockets: {error}")))?;
    let mut told = |_: &CaseResult| {};
    report.result = session::run(&target, &settings(args), &cases, &mut sockets, &mut told);
    write(args, &report)?;
    Ok(exit_code(args, &report.result))
}

/// Executions of random data of one case with `--quick`.
const QUICK: u64 = 50;

fn settings(args: &TortureArgs) -> Settings {
    let executions_max = if args.quick { QUICK } else { u64::MAX };
    Settings { seed: args.seed, executions_max }
}

fn tls_for(args: &TortureArgs, url: &Url) -> Result<Option<tls::Factory>, Failure> {
    if url.scheme() != "https" {
        return Ok(None);
    }
    let settings = tls::Settings { insecure: args.insecure, ..tls::Settings::default() };
    let client = tls::Client::new(&settings);
    Ok(Some(client.map_err(|error| Failure::usage(error.to_string()))?.factory()))
}

fn reach(args: &TortureArgs, url: &Url) -> Result<(Target, Vec<IpAddr>), Failure> {
    let host = url.host_str().unwrap_or_default();
    let port = url.port_or_known_default().unwrap_or(80);
    let (found, _) = host::resolve(host, port, host::Family::Any)
        .map_err(|error| Failure { code: Code::NoConnection, text: error.to_string() })?;
    let first = *found.first().ok_or_else(|| Failure::usage(format!("{host} has no address")))?;
    let named = match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    };
    let path = url[url::Position::BeforePath..url::Position::AfterQuery].to_owned();
    let target = Target {
        peer: Peer::Tcp(first),
        tls_name: (url.scheme() == "https").then(|| host.trim_matches(['[', ']']).to_owned()),
        values: Values {
            path,
            host: named,
            post: args.post.clone().unwrap_or_default(),
            marker: String::new(),
        },
        takes_bodies: args.post.is_some(),
        fields: format!("User-Agent: loadstone-torture/{}\r\n", env!("CARGO_PKG_VERSION")),
    };
    Ok((target, found.iter().map(std::net::SocketAddr::ip).collect()))
}

/// Whether this server may be tortured.
fn permit(url: &Url, addresses: &[IpAddr]) -> Result<Class, Failure> {
    let port = url.port_or_known_default().unwrap_or(80);
    if safety::PORTS_REFUSED.contains(&port) {
        return Err(Failure::usage(format!("port {port} is another protocol's: refused")));
    }
    let class = safety::strictest(addresses);
    let list: Vec<String> = addresses.iter().map(IpAddr::to_string).collect();
    match class {
        Class::Local | Class::Private => Ok(class),
        Class::Public => Err(Failure::usage(format!(
            "{} is public: torture is for loopback and private addresses only",
            list.join(", ")
        ))),
        Class::Never => {
            Err(Failure::usage(format!("{} is nobody's to torture: refused", list.join(", "))))
        }
    }
}

fn check_outputs(args: &TortureArgs) -> Result<(), Failure> {
    let json = match &args.json {
        Some(Sink::File(path)) => Some(path),
        _ => None,
    };
    for path in json.into_iter().chain(&args.junit) {
        files::check_writable(path).map_err(|error| Failure::not_written(&error))?;
    }
    Ok(())
}

fn write(args: &TortureArgs, report: &Report) -> Result<(), Failure> {
    let mut done = Ok(());
    if let Some(sink) = &args.json {
        done = files::write_to(sink, &report::torture::json(report));
    }
    if let Some(path) = &args.junit {
        done = done.and(files::write_whole(path, &report::torture::junit(report)));
    }
    if args.json != Some(Sink::Stdout) {
        let style = crate::run::output::style(args.quiet, false);
        done = done.and(files::write_stdout(&report::torture::text(report, style)));
    }
    done.map_err(|error| Failure::not_written(&error))
}

fn exit_code(args: &TortureArgs, result: &RunResult) -> Code {
    let tested = |case: &&CaseResult| case.skipped.is_none();
    let worst = result.cases.iter().filter(tested).map(|case| case.outcome).max();
    let bad =
        result.cases.iter().any(|case| matches!(case.outcome, Outcome::Fail | Outcome::Flaky));
    match (result, worst) {
        (RunResult { interrupted: true, .. }, _) => Code::Interrupted,
        (_, None) => Code::NoConnection,
        (RunResult { ended_early: Some(_), .. }, _) => Code::Invalid,
        _ if bad && !args.report_only => Code::Missed,
        (_, Some(Outcome::Inconclusive)) => Code::NoConnection,
        _ => Code::Done,
    }
}
