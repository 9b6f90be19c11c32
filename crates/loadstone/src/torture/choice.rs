//! Selects the cases, and how they run.

use super::target::is_grpc;
use crate::exit::Failure;
use args::{Disk, TortureArgs, TortureWhat};
use campaign::Settings;
use campaign::probes::Probing;
use campaign::shrink::Budget;
use dialogue::http2::Protocol;
use plan::FileSource;
use torture::case::{Case, GRPC, GRPC_VERSION, HTTP2, HTTP3, Need, OWN, SOCKETS, SOCKETS_NAME};
use torture::safety::Class;
use units::{Nanos, show};
use url::{Position, Url};

pub(super) fn unknown(id: &str) -> Failure {
    Failure::usage(format!(
        "{} is not a case; loadstone torture list prints them",
        units::quoted(id)
    ))
}

/// Case of `--escalate`.
const ESCALATION: &str = "F-14";

/// Groups of `--quick`; the user's own cases are always included.
const QUICK_GROUPS: [char; 11] = ['B', 'F', GRPC, HTTP2, 'J', 'M', HTTP3, 'S', SOCKETS, 'V', OWN];

/// Options without meaning for calls: group G has no pages, random data, limits of heads, slow
/// requests or overload.
const NOT_FOR_GRPC: [&str; 20] = [
    "beside-rate",
    "big",
    "cases",
    "escalate",
    "expensive",
    "fuzz-number",
    "fuzz-time",
    "http",
    "outside",
    "pages",
    "post",
    "relieve-command",
    "restart-command",
    "segments",
    "slots",
    "soak",
    "starve-command",
    "wait-max",
    "workers",
    "ws-path",
];

/// Returns the options of a run against this URL: gRPC uses HTTP/2, and only cases of its group.
///
/// # Errors
/// Fails for an option that has no meaning over gRPC.
pub(super) fn for_target(args: &TortureArgs, url: &Url) -> Result<TortureArgs, Failure> {
    let mut args = args.clone();
    if !is_grpc(url) {
        return Ok(args);
    }
    if let Some(option) = NOT_FOR_GRPC.into_iter().find(|option| args.typed.has(option)) {
        return Err(Failure::usage(format!(
            "--{option} is for pages of a web server: omit it to test {url} (group {GRPC})"
        )));
    }
    args.what.set_protocol(Protocol::Http2);
    Ok(args)
}

/// Returns the selected cases: those of `--only`, or all without stress; with `--press` stress
/// cases too; the soak only with its duration.
pub(super) fn cases(all: Vec<Case>, args: &TortureArgs) -> Result<Vec<Case>, Failure> {
    let (what, soaks) = (&args.what, args.overload.soak.is_some());
    let named = |case: &Case, name: &str| {
        let socket = case.group() == SOCKETS && name.eq_ignore_ascii_case(SOCKETS_NAME);
        socket
            || case.id.eq_ignore_ascii_case(name)
            || case.group().to_string().eq_ignore_ascii_case(name)
    };
    if let Some(name) = what.only.iter().find(|name| !all.iter().any(|case| named(case, name))) {
        return Err(unknown(name));
    }
    let frames = what.protocol().has_frames();
    let grpc = args.url.as_ref().is_some_and(is_grpc);
    let version = if grpc { GRPC_VERSION } else { what.protocol().version() };
    let protocol = |case: &Case| case.runs_in(version);
    if let Some(name) =
        what.only.iter().find(|name| !all.iter().any(|case| named(case, name) && protocol(case)))
    {
        let mut meant = all.iter().filter(|case| named(case, name));
        let over_http2 = meant.clone().any(|case| case.runs_in("2"));
        let other = meant.next().map_or("1.1", Case::version_spoken);
        return Err(Failure::usage(match other {
            GRPC_VERSION => format!("{name} needs gRPC: write the URL as grpc://host:port"),
            _ if grpc => format!(
                "{name} is not a case of gRPC: name cases of group {GRPC}, or write the URL as \
                http://…"
            ),
            "1.1" if over_http2 => {
                format!("{name} needs HTTP/1.1 or HTTP/2: omit --http {version}, or use --http 2")
            }
            "1.1" => format!("{name} needs HTTP/1.1: omit --http {version}"),
            other => format!(
                "{name} needs HTTP/{other}: use --http {other}, and no case of another group"
            ),
        }));
    }
    if frames && (what.escalate || !what.cases.is_empty()) {
        let which = if what.escalate { "--escalate" } else { "--cases" };
        return Err(Failure::usage(format!("{which} needs HTTP/1.1: omit --http {version}")));
    }
    let wanted = |case: &Case| {
        if !protocol(case) {
            return false;
        }
        if what.escalate {
            return case.id == ESCALATION;
        }
        let segments = what.segments || what.only.iter().any(|name| named(case, name));
        if case.needs.contains(&Need::Device) && !segments {
            return false;
        }
        let soak = case.needs.contains(&Need::Soak);
        let pressing = if soak { soaks } else { what.press || !case.press };
        let usual = pressing && (!what.quick || QUICK_GROUPS.contains(&case.group()));
        // a case selected by its full id is selected even if it is a stress case
        let asked =
            |name: &String| case.id.eq_ignore_ascii_case(name) || usual && named(case, name);
        if what.only.is_empty() { usual } else { what.only.iter().any(asked) }
    };
    let chosen: Vec<Case> = all.into_iter().filter(wanted).collect();
    if let Some(name) = what.only.iter().find(|name| !chosen.iter().any(|case| named(case, name))) {
        return Err(Failure::usage(format!(
            "{} selects no case: stress cases need --press, and --quick runs B, F, G, H, J, M, Q, \
            S, U and V only",
            units::quoted(name)
        )));
    }
    Ok(chosen)
}

/// Executions of random data per case with `--quick`.
const QUICK: u64 = 50;

/// Time for probing the idle server with `--quick`, by default, and with `--press`, where it is the
/// baseline for well-behaved clients.
const BASELINE_QUICK: Nanos = Nanos::from_millis(500);
const BASELINE: Nanos = Nanos::from_secs(2);
const BASELINE_PRESS: Nanos = Nanos::from_secs(10);

/// Time for shrinking with `--quick`.
const SEARCH_QUICK: Nanos = Nanos::from_millis(1_500);

/// Duration of silence that counts as a failure, with `--quick`.
const SILENCE_QUICK: Nanos = Nanos::from_millis(300);

/// Returns the budget of searches, which repeat failing input: none for third-party servers.
fn search(what: &TortureWhat, class: Class) -> Option<Budget> {
    let wanted = !what.no_shrink && matches!(class, Class::Local | Class::Private);
    let span = if what.quick { SEARCH_QUICK } else { Budget::USUAL.span };
    wanted.then_some(Budget { span, ..Budget::USUAL })
}

/// Interval between two probes of a kind: on this machine, and on other machines.
const PROBE_EVERY: Nanos = Nanos::from_millis(200);
const PROBE_EVERY_FAR: Nanos = Nanos::SECOND;

/// Returns how the cases run.
///
/// # Errors
/// Fails for a list of pages that cannot be read, or names another server.
pub(super) fn settings(args: &TortureArgs, url: &Url, class: Class) -> Result<Settings, Failure> {
    let what = &args.what;
    let every = if class == Class::Local { PROBE_EVERY } else { PROBE_EVERY_FAR };
    let executions_max = if what.quick { QUICK } else { u64::MAX };
    let baseline = match (what.quick, what.press || what.escalate) {
        (true, _) => BASELINE_QUICK,
        (false, false) => BASELINE,
        (false, true) => BASELINE_PRESS,
    };
    Ok(Settings {
        seed: what.seed(),
        executions_max,
        workers: usize::try_from(what.workers).unwrap_or(1),
        probing: Probing { every, ..Probing::default() },
        baseline,
        accept_noisy: what.accept_noisy,
        big: what.big.clone(),
        slots: what.slots,
        pages: pages(what, url)?,
        search: search(what, class),
        silence_max: what.quick.then_some(SILENCE_QUICK),
        expensive: args.overload.expensive.clone(),
        soak: args.overload.soak,
        mutants_max: mutants_max(what),
        mutation: what.fuzz_time,
        budget: budget(args)?,
        wait_max: what.wait_max,
        outside: None,
        commands: args.overload.commands().into_iter().map(|(action, _)| action).collect(),
    })
}

/// Time for all cases with `--quick`, and by default; stress cases have no limit.
const BUDGET_QUICK: Nanos = Nanos::from_secs(60);
const BUDGET: Nanos = Nanos::from_secs(15 * 60);

/// Returns the time for all cases: the default time, plus the time that options request for single
/// cases.
///
/// # Errors
/// Fails for a `--budget` shorter than a requested time.
fn budget(args: &TortureArgs) -> Result<Option<Nanos>, Failure> {
    let what = &args.what;
    let requested = [
        ("--soak", args.overload.soak),
        ("--fuzz-time", what.fuzz_time),
        ("--wait-max", what.wait_max),
    ];
    if let Some(budget) = what.budget {
        let longer = requested.into_iter().find(|(_, span)| span.is_some_and(|one| one > budget));
        if let Some((option, Some(span))) = longer {
            let (budget, span) = (show::duration(budget), show::duration(span));
            return Err(Failure::usage(format!(
                "--budget {budget} is shorter than {option} {span}: give a longer --budget, or \
                omit it"
            )));
        }
        return Ok(Some(budget));
    }
    let usual = match (what.quick, what.press || what.escalate || !what.only.is_empty()) {
        (true, _) => Some(BUDGET_QUICK),
        (false, false) => Some(BUDGET),
        (false, true) => None,
    };
    let more = requested.into_iter().filter_map(|(_, span)| span);
    Ok(usual.map(|usual| more.fold(usual, |sum, span| sum + span)))
}

/// Returns the number of requests of F-15; if only a time is given, as many as fit into it.
fn mutants_max(what: &TortureWhat) -> Option<u64> {
    let named = what.fuzz_number.or(what.fuzz_time.map(|_| u64::MAX));
    named.or(what.quick.then_some(QUICK))
}

/// Returns the pages of `--pages` as paths of the tested server.
fn pages(what: &TortureWhat, url: &Url) -> Result<Vec<String>, Failure> {
    let Some(name) = &what.pages else { return Ok(Vec::new()) };
    let wrong = |why: &dyn std::fmt::Display| Failure::usage(format!("--pages {name}: {why}"));
    let bytes = Disk.read(name).map_err(|error| wrong(&error))?;
    let text = String::from_utf8(bytes).map_err(|_| wrong(&"it is not UTF-8 text"))?;
    let list = plan::parse_url_list(&text, Some(url)).map_err(|error| wrong(&error))?;
    let path = |page: &Url| page[Position::BeforePath..Position::AfterQuery].to_owned();
    if let Some(other) = list.iter().find(|target| target.url.origin() != url.origin()) {
        return Err(wrong(&format!(
            "{} is on another server: test that one in a separate run",
            other.url
        )));
    }
    Ok(list.iter().map(|target| path(&target.url)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Args, Command};

    /// Options with a meaning for calls.
    const FOR_GRPC: [&str; 36] = [
        "accept-noisy",
        "agent-suffix",
        "beside",
        "budget",
        "bytes-max",
        "case-max",
        "confirm",
        "connections-max",
        "contact",
        "dry-run",
        "duration",
        "expect",
        "fail-on",
        "front",
        "header",
        "html",
        "insecure",
        "json",
        "junit",
        "message-max",
        "no-audit",
        "no-shrink",
        "only",
        "out",
        "own",
        "path",
        "press",
        "probes",
        "quick",
        "quiet",
        "rate-max",
        "report-only",
        "requests-max",
        "seed",
        "store",
        "sut",
    ];

    /// A new option needs a decision.
    #[test]
    fn every_option_is_accepted_or_refused_for_grpc() {
        let command = TortureArgs::augment_args(Command::new("torture"));
        let mut options: Vec<&str> =
            command.get_arguments().filter_map(|arg| arg.get_long()).collect();
        let mut decided = [&NOT_FOR_GRPC[..], &FOR_GRPC].concat();
        options.sort_unstable();
        decided.sort_unstable();
        assert_eq!(options, decided);
    }
}
