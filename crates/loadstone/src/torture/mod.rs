//! `loadstone torture`: tests a server with hostile and broken input.

mod audit_command;
mod beside;
mod chain;
mod choice;
mod diff;
mod emit;
mod outputs;
mod outside_file;
mod own;
mod permit;
mod progress;
mod prove;
mod raw;
mod rejudge;
mod replay;
mod scene;
mod server;
mod shrink;
mod target;
mod waivers;

use crate::exit::{Code, Failure};
use crate::files;
use crate::run::keeping::{Keeper, Keeping};
use args::{TortureArgs, TortureAsk};
use beside::Planned;
use campaign::{CampaignEvent, Settings, Watcher, Watchers, World};
use dialogue::governor::Bounds;
use permit::Permit;
use progress::Progress;
use record::torture::waivers::{Day, Waiver};
use record::torture::{OverCase, TortureRecord};
use report::torture::Report;
use session::{EmulatedPath, WantedPath};
use std::net::SocketAddr;
pub(crate) use target::run_id;
use torture::case::Case;
use torture::result::RunResult;
use units::Nanos;
use url::Url;
use world::audit::AuditWriter;
use world::directory::Recorder;
use world::{Commands, Sockets};

pub(crate) fn torture(args: &TortureArgs) -> Result<Code, Failure> {
    let cases = torture::catalogue::cases().map_err(Failure::usage)?;
    match (&args.ask, &args.url) {
        (Some(TortureAsk::List), _) => print(&report::torture::list(&cases)),
        (Some(TortureAsk::Explain { id }), _) => explain(&cases, id),
        (Some(TortureAsk::Diff(args)), _) => diff::diff(args),
        (Some(TortureAsk::Prove(args)), _) => prove::prove(args),
        (Some(TortureAsk::Audit { ask }), _) => audit_command::audit(ask),
        (Some(TortureAsk::Replay(args)), _) => replay::replay(args, &cases),
        (Some(TortureAsk::Judge(args)), _) => {
            rejudge::rejudge(args, &own::with_own(cases, &args.cases)?)
        }
        (Some(TortureAsk::Shrink(args)), _) => shrink::shrink(args, &cases),
        (Some(TortureAsk::Emit(args)), _) => emit::emit(args, &cases),
        (Some(TortureAsk::Chain(args)), _) => chain::chain(args),
        (None, Some(url)) => {
            let args = &choice::for_target(args, url)?;
            let cases = own::with_own(cases, &args.what.cases)?;
            let waivers = waivers::read(&args.outputs, &cases)?;
            run(args, url, choice::cases(cases, args)?, &waivers)
        }
        (None, None) => Err(Failure::usage(
            "torture needs a URL: loadstone torture URL; --help lists the options",
        )),
    }
}

fn print(text: &str) -> Result<Code, Failure> {
    files::write_stdout(text).map_err(|error| Failure::not_written(&error))?;
    Ok(Code::Done)
}

/// Word that `explain` accepts instead of a case, for the rules of rating.
const SEVERITY: &str = "severity";

fn explain(cases: &[Case], id: &str) -> Result<Code, Failure> {
    if id.eq_ignore_ascii_case(SEVERITY) {
        return print(&report::torture::severities());
    }
    let found = cases.iter().find(|case| case.id.eq_ignore_ascii_case(id));
    let case = found.ok_or_else(|| choice::unknown(id))?;
    print(&report::torture::explain(case))
}

/// Prepares everything before the first case.
fn initial_report(args: &TortureArgs, url: &Url, reached: &target::Reached) -> Report {
    Report {
        target: url.to_string(),
        addresses: reached.hosts.clone(),
        class: reached.class,
        started_unix_s: crate::wall_clock::unix_seconds(),
        seed: args.what.seed(),
        post: args.what.post.clone(),
        options: args.typed.of_cases(),
        fail_on: args.outputs.fail_on,
        environment: host::environment(),
        result: RunResult { slots_named: args.what.slots, ..RunResult::default() },
        waivers: Vec::new(),
        beside: None,
        path: None,
    }
}

fn run(
    args: &TortureArgs,
    url: &Url,
    cases: Vec<Case>,
    waivers: &[Waiver],
) -> Result<Code, Failure> {
    outputs::check(&args.outputs)?;
    let mut reached = target::reach(args, url)?;
    let outside = outside_file::read(args, reached.class, &reached.hosts)?;
    let settings = Settings {
        outside: outside.as_ref().map(|file| file.digest),
        ..choice::settings(args, url, reached.class)?
    };
    reached.target.values.outside = outside.map_or_else(String::new, |file| file.path);
    let target = &reached.target;
    let seen = server::processes(&args.server, &reached)?;
    let mut report = initial_report(args, url, &reached);
    let planned = beside::planned(args, &reached.url)?;
    let asked = beside::remaining_limits(args.safety.requested(), reached.class, planned.as_ref())?;
    if args.what.dry_run {
        let cases = permit::dry_run(args, &report, &reached, &settings, &cases, &asked)?;
        let beside = planned.as_ref().map(Planned::description).unwrap_or_default();
        return print(&format!("{cases}{beside}"));
    }
    let keeper = Keeper::open(args.outputs.store.store.as_ref())?;
    let Permit { governor, outside, audit, alone: _alone } =
        permit::permit(args, &reached.url, &reached, &cases, &asked)?;
    let raw = raw::link(args, &reached.url, (reached.class, &reached.addresses), &cases)?;
    let watched = seen.map_or_else(|| server::machine(&args.server), |seen| Ok(Some(seen)))?;
    let mut sockets = Sockets::new(target::tls_for(args, &reached.url)?, governor, outside)?
        .over_quic(args.what.protocol())?
        .with_path(route(args, &reached)?)
        .raw(raw)
        .with_commands(Commands::new(args.overload.commands()))
        .with_server_watch(watched);
    let load = beside::start(planned)?;
    let mut recorder = outputs::recorder(&args.outputs, target, &cases, &report, sockets.now())?;
    let keeping = keeper.torture(&report.record(), load.as_ref().map(|load| &load.plan))?;
    let mut progress =
        Progress::new(args.outputs.quiet, spans(&cases, &settings, sockets.governor().bounds()));
    let mut spans = beside::Spans::default();
    let mut storing = Storing { keeping: &keeping, over: 0 };
    let mut watchers = Watchers(vec![&mut progress, &mut spans, &mut storing]);
    watchers.0.extend(recorder.iter_mut().map(|one| one as &mut dyn Watcher));
    let mut writer = audit.clone().map(AuditWriter);
    watchers.0.extend(writer.iter_mut().map(|one| one as &mut dyn Watcher));
    report.result = campaign::run(target, &settings, &cases, &mut sockets, &mut watchers);
    drop(watchers);
    progress.finish();
    report.path = sockets.path_facts()?;
    // a failed load is reported after the rest is written
    let felt = load.map(|load| load.end(&spans, &mut report.result.cases)).transpose();
    let felt = felt.map(|beside| report.beside = beside);
    let today = Day::from_unix_seconds(report.started_unix_s);
    report.waivers = record::torture::waivers::apply(waivers, &report.result.cases, today);
    report.result.kept = recorder.as_ref().map(Recorder::kept).unwrap_or_default();
    let torture = report.record();
    let recorded = recorder.map_or(Ok(()), |recorder| recorder.finish(&torture));
    let code = exit_code(args, report.result.stopped.is_some(), &torture);
    if let Some(audit) = audit {
        audit.borrow_mut().end(&report.result, code as u8);
    }
    // the store comes first: its result is complete even if writing files fails
    let kept = keep(keeping, &torture, args.outputs.quiet);
    outputs::write(&args.outputs, &torture).and(recorded).and(felt).and(kept)?;
    print_remarks(&torture, &report, args.outputs.quiet);
    Ok(code)
}

/// Prints what follows the report: that cases had no time, and what the path did.
fn print_remarks(torture: &TortureRecord, report: &Report, quiet: bool) {
    if let Some(missing) = torture.incomplete() {
        crate::print_message(&missing);
    }
    if let Some(facts) = report.path.as_ref().filter(|_| !quiet) {
        crate::netpath_command::print_facts(facts);
    }
}

/// Completes the result in the store; one without tested cases is removed.
fn keep(keeping: Keeping, torture: &TortureRecord, quiet: bool) -> Result<(), Failure> {
    if torture.is_tested() {
        return keeping.finish_torture(torture, quiet);
    }
    keeping.discard();
    Ok(())
}

/// Returns the usual duration of each case.
fn spans(cases: &[Case], settings: &Settings, bounds: Option<&Bounds>) -> Vec<(String, Nanos)> {
    let Some(bounds) = bounds else { return Vec::new() };
    let spans = campaign::usual_spans(cases, settings, bounds);
    cases.iter().map(|case| case.id.clone()).zip(spans).collect()
}

/// Returns the requested emulated path.
fn route(args: &TortureArgs, reached: &target::Reached) -> Result<Option<EmulatedPath>, Failure> {
    let Some(spec) = args.what.path() else { return Ok(None) };
    if !reached.addresses.first().is_some_and(SocketAddr::is_ipv4) {
        return Err(Failure::usage(
            "--path supports IPv4 only, and the URL resolves to another address; write 127.0.0.1",
        ));
    }
    let route = EmulatedPath::create(WantedPath::single(&spec), args.what.seed())?;
    if !args.outputs.quiet {
        route.notes().iter().for_each(|note| crate::print_message(note));
    }
    Ok(Some(route))
}

/// Observer that stores each case when it ends.
struct Storing<'k> {
    keeping: &'k Keeping,
    over: usize,
}

impl Watcher for Storing<'_> {
    fn observe(&mut self, event: CampaignEvent<'_>) {
        if let CampaignEvent::CaseOver(result) = event {
            self.keeping.case(self.over, || OverCase::new(result));
            self.over += 1;
        }
    }
}

/// Returns the exit code. `stopped`: the run was ended by something other than the user.
fn exit_code(args: &TortureArgs, stopped: bool, torture: &TortureRecord) -> Code {
    match torture {
        TortureRecord { interrupted: true, .. } => Code::Interrupted,
        _ if stopped => Code::Invalid,
        _ if !torture.is_conclusive() => Code::NoConnection,
        TortureRecord { ended_early: Some(_), .. } => Code::Invalid,
        _ if torture.fails() && !args.outputs.report_only => Code::Missed,
        // a gate must not pass on cases that never ran
        _ if torture.out_of_time > 0 && !args.outputs.report_only => Code::Invalid,
        _ => Code::Done,
    }
}
