//! `loadstone torture`: hostile and broken input, and what the server makes of it.

mod diff;
mod directory;
mod outputs;
mod permit;
mod progress;
mod target;
mod waivers;
mod world;

use crate::args::{TortureArgs, TortureAsk, TortureWhat};
use crate::exit::{Code, Failure};
use crate::files;
use directory::Recorder;
use progress::Progress;
use report::torture::Report;
use report::torture::waivers::{Day, Waiver};
use torture::case::Case;
use torture::judge::Outcome;
use torture::safety::{Bounds, Class, Governor};
use torture::session::probes::Probing;
use torture::session::{self, CaseResult, RunResult, Settings, Stop, Watcher, Watchers, World};
use torture::shrink::Budget;
use units::Nanos;
use url::Url;
use world::Sockets;

pub(crate) fn torture(args: &TortureArgs) -> Result<Code, Failure> {
    let cases = torture::catalogue::cases().map_err(Failure::usage)?;
    match (&args.ask, &args.url) {
        (Some(TortureAsk::List), _) => print(&report::torture::list(&cases)),
        (Some(TortureAsk::Explain { id }), _) => explain(&cases, id),
        (Some(TortureAsk::Diff(args)), _) => diff::diff(args),
        (None, Some(url)) => {
            let waivers = waivers::read(&args.outputs, &cases)?;
            run(args, url, chosen(cases, &args.what)?, &waivers)
        }
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

/// The groups that `--quick` is made of.
const QUICK_GROUPS: [char; 2] = ['F', 'S'];

/// The cases that are asked for: those that `--only` names, or all that do not press, and with
/// `--press` those too.
fn chosen(cases: Vec<Case>, what: &TortureWhat) -> Result<Vec<Case>, Failure> {
    let named = |case: &Case, name: &str| {
        case.id.eq_ignore_ascii_case(name) || case.group().to_string().eq_ignore_ascii_case(name)
    };
    if let Some(name) = what.only.iter().find(|name| !cases.iter().any(|case| named(case, name))) {
        return Err(unknown(name));
    }
    let wanted = |case: &Case| {
        let usual =
            (what.press || !case.press) && (!what.quick || QUICK_GROUPS.contains(&case.group()));
        // a case that is named by its whole id is asked for, whether it presses or not
        let asked =
            |name: &String| case.id.eq_ignore_ascii_case(name) || usual && named(case, name);
        if what.only.is_empty() { usual } else { what.only.iter().any(asked) }
    };
    let chosen: Vec<Case> = cases.into_iter().filter(wanted).collect();
    if chosen.is_empty() {
        let names = what.only.join(",");
        return Err(Failure::usage(format!(
            "no case is left of {}: --press adds those that press, and --quick is F and S only",
            units::quoted(&names)
        )));
    }
    Ok(chosen)
}

fn run(
    args: &TortureArgs,
    url: &Url,
    cases: Vec<Case>,
    waivers: &[Waiver],
) -> Result<Code, Failure> {
    outputs::check(&args.outputs)?;
    let (target, addresses) = target::reach(args, url)?;
    let class = permit::permit(url, &addresses)?;
    let mut report = Report {
        target: url.to_string(),
        addresses,
        class,
        started_unix_s: crate::wall_clock::unix_seconds(),
        seed: args.what.seed,
        environment: host::environment(),
        result: RunResult::default(),
        waivers: Vec::new(),
    };
    if args.what.dry_run {
        return print(&report::torture::dry_run(&report, &target, &cases));
    }
    let pinned = match &target.peer {
        conduit::Peer::Tcp(address) => vec![*address],
        conduit::Peer::Unix(_) => Vec::new(),
    };
    let outside = || (crate::signals::caught() > 0).then_some(Stop::Interrupted);
    let governor = Governor::new(Bounds::usual(class), pinned, class == Class::Local);
    let mut sockets = Sockets::new(target::tls_for(args, url)?, governor, Box::new(outside))
        .map_err(|error| Failure::usage(format!("cannot wait for sockets: {error}")))?;
    let mut recorder = outputs::recorder(&args.outputs, &target, &cases, &report, sockets.now())?;
    let mut progress = Progress::new(args.outputs.quiet, cases.len());
    let mut watchers = Watchers(vec![&mut progress]);
    watchers.0.extend(recorder.iter_mut().map(|one| one as &mut dyn Watcher));
    report.result =
        session::run(&target, &settings(args, class), &cases, &mut sockets, &mut watchers);
    drop(watchers);
    progress.finish();
    let today = Day::of_unix(report.started_unix_s);
    report.waivers = report::torture::waivers::apply(waivers, &report.result.cases, today);
    report.result.kept = recorder.as_ref().map(Recorder::kept).unwrap_or_default();
    let recorded = recorder.map_or(Ok(()), |recorder| recorder.finish(&report));
    outputs::write(&args.outputs, &report).and(recorded)?;
    Ok(exit_code(args, &report))
}

/// Executions of random data of one case with `--quick`.
const QUICK: u64 = 50;

/// How long the quiet server is probed: with `--quick`, otherwise, and with `--press`, where what
/// polite clients feel is held against it.
const BASELINE_QUICK: Nanos = Nanos::from_millis(500);
const BASELINE: Nanos = Nanos::from_secs(2);
const BASELINE_PRESS: Nanos = Nanos::from_secs(10);

/// Time for shrinking with `--quick`.
const SEARCH_QUICK: Nanos = Nanos::from_secs(4);

/// What may be spent on searches: they send what failed again and again, which is not for servers
/// of others.
fn search(args: &TortureArgs, class: Class) -> Option<Budget> {
    let wanted = !args.what.no_shrink && matches!(class, Class::Local | Class::Private);
    let span = if args.what.quick { SEARCH_QUICK } else { Budget::USUAL.span };
    wanted.then_some(Budget { span, ..Budget::USUAL })
}

fn settings(args: &TortureArgs, class: Class) -> Settings {
    let executions_max = if args.what.quick { QUICK } else { u64::MAX };
    let baseline = match (args.what.quick, args.what.press) {
        (true, _) => BASELINE_QUICK,
        (false, false) => BASELINE,
        (false, true) => BASELINE_PRESS,
    };
    Settings {
        seed: args.what.seed,
        executions_max,
        probing: Probing::default(),
        baseline,
        accept_noisy: args.what.accept_noisy,
        big: args.what.big.clone(),
        slots: args.what.slots,
        search: search(args, class),
    }
}

fn exit_code(args: &TortureArgs, report: &Report) -> Code {
    let result = &report.result;
    let tested = |case: &&CaseResult| case.skipped.is_none();
    let worst = result.cases.iter().filter(tested).map(|case| case.outcome).max();
    let bad = !report.findings().is_empty();
    match (result, worst) {
        (RunResult { interrupted: true, .. }, _) => Code::Interrupted,
        (RunResult { stopped: Some(_), .. }, _) => Code::Invalid,
        (_, None) => Code::NoConnection,
        (RunResult { ended_early: Some(_), .. }, _) => Code::Invalid,
        _ if bad && !args.outputs.report_only => Code::Missed,
        (_, Some(Outcome::Inconclusive)) => Code::NoConnection,
        _ => Code::Done,
    }
}
