//! The classic tools' command lines: selects the face and runs it. `faces` decides what a tool
//! reads and prints; this module runs its plan with the code of `run`, without the plain first
//! call.

mod disk;
mod idle;
mod trouble;
mod watch;

use crate::script::LoadedScript;
use disk::Disk;
use engine::Logging;
use faces::{Date, Ending, Extras, Face, Facts, Job, OutFile, Reading, StartTrouble, Tool};
use plan::{Load, Pace};
use record::run::RunRecord;
use session::console::{stderr, stderr_is_terminal};
use session::{Env, Observers, RequestSource, RunLoad, Session, TooFew, Watcher};
use std::cell::RefCell;
use std::fs::File;
use std::io::Write;
use std::rc::Rc;
use std::sync::Arc;
use units::Nanos;
use watch::Watch;
use workload::{Guides, RequestMakers, Script, ScriptError};

/// Command line of a classic tool.
#[derive(Debug)]
pub(crate) struct ToolCall {
    tool: Tool,
    /// Name of the program in its messages.
    program: String,
    args: Vec<String>,
}

/// Returns the requested face, by the file name that started the program or by its first argument.
/// Invalid UTF-8 in an argument is replaced.
pub(crate) fn requested_face(args: impl Iterator<Item = std::ffi::OsString>) -> Option<ToolCall> {
    let mut args = args.map(|arg| arg.to_string_lossy().into_owned());
    let program = args.next()?;
    let file_name = program.rsplit('/').next().unwrap_or(&program);
    if let Some(tool) = Tool::from_name(file_name) {
        return Some(ToolCall { tool, program, args: args.collect() });
    }
    let tool = Tool::from_name(&args.next()?)?;
    Some(ToolCall { tool, program: tool.name().to_owned(), args: args.collect() })
}

/// Runs the tool's face, with the tool's exit code.
pub(crate) fn run_face(wanted: &ToolCall) -> u8 {
    // before any thread is started, as the C library's time zone requires
    let utc_offset_s = crate::wall_clock::utc_offset_s();
    match faces::read(wanted.tool, &wanted.program, &wanted.args, &Disk) {
        Reading::End(ending) => finish(ending, Extras::default()),
        Reading::Idle(kept) => idle::keep(&kept),
        Reading::Run(job) => run(*job, wanted.tool, utc_offset_s),
    }
}

fn run(job: Job, tool: Tool, utc_offset_s: i32) -> u8 {
    let Job { plan, needs, extras, script, guides, makers, log, mut face } = job;
    if let Err(problems) = plan::validate(&plan) {
        let text: Vec<String> = problems.into_iter().map(|problem| problem.text).collect();
        return finish(face.cannot_start(&StartTrouble::Other(text.join("\n"))), extras);
    }
    if let Err(error) = install_signals(tool) {
        let text = format!("cannot catch signals: {error}");
        return finish(face.cannot_start(&StartTrouble::Other(text)), extras);
    }
    let stage = match script.map(|job| LoadedScript::open(*job, &mut print_note)).transpose() {
        Ok(stage) => stage,
        Err(trouble) => return finish(face.cannot_start(&trouble), extras),
    };
    let log = match log.map(|wanted| open_log(&wanted)).transpose() {
        Ok(log) => log,
        Err(ending) => return finish(ending, extras),
    };
    let mut session = match open_or_reduce(&plan, &mut *face) {
        Ok(session) => session,
        Err(error) => return finish(face.cannot_start(&trouble::from_error(&error)), extras),
    };
    let needs = match settled(&mut session, &mut *face, needs) {
        Ok(needs) => needs,
        Err(trouble) => return finish(face.cannot_start(&trouble), extras),
    };
    let logging = logging(&needs);
    let face = Rc::new(RefCell::new(face));
    let Some(mut stage) = stage else {
        let made = makers.map_or_else(Vec::new, |makers| maker_sources(&*makers, &session));
        let sources = match guides.map_or(Ok(made), |all| guide_sources(&*all, &mut session)) {
            Ok(sources) => sources,
            Err(error) => {
                let trouble = trouble::from_error(&error);
                return finish(face.borrow_mut().cannot_start(&trouble), extras);
            }
        };
        return match measured(&session, logging, sources, (&face, log), utc_offset_s) {
            Ok(mut ending) => {
                ending.notes.splice(0..0, session.notes().map(str::to_owned));
                finish(ending, extras)
            }
            Err(error) => finish(Ending::error(format!("{error:#}\n"), 1), extras),
        };
    };
    let scripts = match stage.parts(session.workers(), &mut print_note) {
        Ok(scripts) => scripts,
        Err(trouble) => return finish(face.borrow_mut().cannot_start(&trouble), extras),
    };
    session.replace_plan(rated_by_requests(session.plan(), &scripts));
    let sources = scripts.into_iter().map(RequestSource::Script).collect();
    let ran = measured(&session, logging, sources, (&face, log), utc_offset_s);
    stage.flush();
    let code = match ran {
        Ok(mut ending) => {
            ending.notes.splice(0..0, session.notes().map(str::to_owned));
            finish(ending, extras)
        }
        Err(error) => return finish(broken(&face, &error), extras),
    };
    let done = face.borrow().figures().map_or(Ok(()), |figures| stage.done(figures));
    match done {
        Ok(()) => code,
        Err(trouble) => finish(face.borrow_mut().cannot_start(&trouble), extras),
    }
}

/// Returns which calls the face receives.
fn logging(needs: &faces::Needs) -> Logging {
    Logging {
        calls: needs.calls,
        failures_at_once: needs.calls,
        responses: needs.responses,
        lenient: needs.lenient,
        ends: needs.ends,
    }
}

/// Time before the first call: short, because the tools send at once.
const LEAD: Nanos = Nanos::from_millis(5);

/// Opens the session. If file descriptors are short and the tool would continue too, it opens fewer
/// connections, but at least one per worker.
fn open_or_reduce(plan: &plan::Plan, face: &mut dyn Face) -> anyhow::Result<Session> {
    let mut env = Env::here();
    env.lead = LEAD;
    let env = Arc::new(env);
    let error = match Session::open(plan, "", &env) {
        Ok(session) => return Ok(session),
        Err(error) => error,
    };
    let Some(short) = error.downcast_ref::<TooFew>().filter(|short| short.descriptors) else {
        return Err(error);
    };
    let asked = match &plan.load {
        Load::Closed { users, .. } => *users,
        Load::Open { connections_max: Some(most), arrivals, .. } if arrivals.at.is_some() => *most,
        Load::Open { .. } => return Err(error),
    };
    let most = u32::try_from(short.most).unwrap_or(u32::MAX).min(asked);
    let threads = plan.driver.threads.unwrap_or(1);
    if most < threads || !face.run_without_connections(u64::from(asked - most)) {
        return Err(error);
    }
    Session::open(&with_connections(plan, most), "", &env)
}

/// Returns the plan with fewer connections than it requests.
fn with_connections(plan: &plan::Plan, most: u32) -> plan::Plan {
    let mut fewer = plan.clone();
    match &mut fewer.load {
        Load::Closed { users, .. } => {
            if fewer.stop.requests == Some(u64::from(*users)) {
                // of sessions, one for each user
                fewer.stop.requests = Some(u64::from(most));
            }
            *users = most;
        }
        Load::Open { connections_max, arrivals, .. } => {
            *connections_max = Some(most);
            let first = arrivals.at.iter().flat_map(|at| at.iter().copied()).take(most as usize);
            arrivals.at = Some(first.collect());
        }
    }
    fewer
}

/// Negotiates the protocol, if the plan lets the server choose, and notifies the face. An
/// unreachable server fails the calls, as in the tool.
fn settled(
    session: &mut Session,
    face: &mut dyn Face,
    needs: faces::Needs,
) -> Result<faces::Needs, StartTrouble> {
    let choice = match session.negotiate() {
        Ok(None) => return Ok(needs),
        Ok(Some(choice)) => choice,
        Err(failure) => return Err(StartTrouble::Other(failure.text)),
    };
    let fitted = face.negotiated(choice.chosen.as_deref(), session.plan());
    let Some((plan, needs)) = fitted else { return Ok(needs) };
    session.replace_plan(plan);
    Ok(needs)
}

/// Installs handlers for the signals after which a run prints its statistics: three for siege,
/// SIGINT for the other tools.
fn install_signals(tool: Tool) -> std::io::Result<()> {
    match tool {
        Tool::Siege => crate::signals::install(),
        // this tool prints nothing when interrupted: the signal ends it
        Tool::H2load => Ok(()),
        _ => crate::signals::install_interrupt(),
    }
}

/// Returns the plan with its rate divided by the requests per call: a rate of wrk2 counts requests,
/// and one call of the plan may contain several.
fn rated_by_requests(plan: &plan::Plan, scripts: &[Box<dyn Script>]) -> plan::Plan {
    let mut plan = plan.clone();
    let together = scripts.first().map_or(1, |part| part.wants().requests.max(1));
    if let Load::Open { session: Some(session), .. } = &mut plan.load
        && let Some(Pace::Every(rate)) = &mut session.pace
    {
        rate.0 /= f64::from(together);
    }
    plan
}

/// Returns a guide for each worker.
///
/// # Errors
/// Fails for unusable TLS settings: users may go to any server.
fn guide_sources(guides: &dyn Guides, session: &mut Session) -> anyhow::Result<Vec<RequestSource>> {
    session.expect_tls()?;
    session.expect_sockets();
    let plan = session.plan();
    let directory = || session::directory_of(plan.clone(), guides);
    let source = |_| RequestSource::Guide(guides.guide(), directory());
    Ok((0..session.workers()).map(source).collect())
}

/// Returns a maker for each worker.
fn maker_sources(makers: &dyn RequestMakers, session: &Session) -> Vec<RequestSource> {
    (0..session.workers()).map(|_| RequestSource::Maker(makers.maker())).collect()
}

/// The face, shared with the watcher of its run.
type SharedFace = Rc<RefCell<Box<dyn Face>>>;

/// Handles a run that ended because of its script or a bug.
fn broken(face: &SharedFace, error: &anyhow::Error) -> Ending {
    match error.downcast_ref::<ScriptError>() {
        Some(ScriptError(text)) => {
            face.borrow_mut().cannot_start(&StartTrouble::Script(text.clone()))
        }
        None => Ending::error(format!("{error:#}\n"), 1),
    }
}

/// # Errors
/// Fails if its log cannot be opened, with how the tool ends.
fn open_log(wanted: &faces::RequestLog) -> Result<File, Ending> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = std::fs::OpenOptions::new();
    options.create(true).mode(LOG_MODE);
    if wanted.fresh {
        options.write(true).truncate(true);
    } else {
        options.append(true);
    }
    options.open(&wanted.path).map_err(|_| Ending::error(wanted.complaint.clone(), wanted.code))
}

/// Mode of a log file: the owner reads and writes, the group reads.
const LOG_MODE: u32 = 0o640;

/// Runs the plan with the face as watcher, and prints its result.
fn measured(
    session: &Session,
    logging: Logging,
    sources: Vec<RequestSource>,
    (face, log): (&SharedFace, Option<File>),
    utc_offset_s: i32,
) -> anyhow::Result<Ending> {
    let output = face.borrow_mut().begin();
    watch::print(&output);
    let mut log = log;
    let mut origin = Nanos::ZERO;
    let mut watch = |setup: &engine::Setup| -> Box<dyn Watcher> {
        origin = setup.measure_from();
        let ahead = origin.as_secs_f64() - net::reactor::monotonic().as_secs_f64();
        let unix_s = crate::wall_clock::unix_seconds() + ahead;
        face.borrow_mut().set_date(&Date { at: origin, unix_s, utc_offset_s });
        Box::new(Watch::new(face.clone(), log.take()))
    };
    // a tool with a fixed plan has no source: its targets are requested
    let observers = Observers { logging, sources: Some(sources), ..Observers::new(&mut watch) };
    let run = session.measure(&RunLoad::Repeat(0), observers)?;
    let facts = Facts {
        origin,
        utc_offset_s,
        descriptors: host::limits::descriptors().hard,
        signal: crate::signals::received_signal(),
    };
    let ending = face.borrow_mut().report(&RunRecord::new(&run), &facts);
    Ok(ending)
}

/// Prints, writes the files, and returns the exit code.
fn finish(ending: Ending, extras: Extras) -> u8 {
    let Ending { out, mut err, err_first, files, notes, mut code } = ending;
    if err_first {
        print_note(&std::mem::take(&mut err));
    }
    watch::print(&faces::FaceOutput { out, err, ..faces::FaceOutput::default() });
    for file in files {
        if let Err(error) = write(&file) {
            print_note(&format!("{}: {}\n", file.complaint, disk::sentence(&error)));
            if file.code != 0 {
                code = file.code;
                break;
            }
        }
    }
    if extras.notes || stderr_is_terminal() {
        notes.iter().for_each(|note| crate::print_message(note));
    }
    code
}

fn write(file: &OutFile) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.create(true).write(true).append(file.append).truncate(!file.append);
    options.open(&file.path)?.write_all(file.text.as_bytes())
}

/// Writes to standard error; a closed stream is not a failure.
fn print_note(text: &str) {
    stderr().write_all(text.as_bytes()).ok();
}
