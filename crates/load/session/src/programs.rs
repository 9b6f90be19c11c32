//! Scripts that carry out journeys: in Lua, or in JavaScript with k6's interface.

use crate::caller::Caller;
use crate::console::{inherited, stderr};
use crate::exit::{Code, Failure};
use crate::script;
use crate::servers;
use crate::session::Session;
use engine::journey::make_call;
use k6::journey::{ActorSpec, PlannedScript, ScriptActor, ScriptStage, stage_failure, stage_reply};
use plan::journey::{Journey, JourneyPart, JourneyProgram, ProgramOutline};
use plan::{FileSource, Plan, ScriptPlan};
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use url::Url;
use workload::Actor;

/// Maximum number of files that one script reads.
const FILES_MAX: u32 = 1_000;
/// Seed of the execution that finds the first server; the run uses its own.
const OUTLINE_SEED: u64 = 1;
const NOT_IN_PLAN: &str = "the plan does not have this file: name it in script-files";

/// A script's description of its journey.
#[derive(Clone, Debug, Default)]
pub struct ScriptOutline {
    pub program: ProgramOutline,
    /// Server of the script's first request, if the script determines it.
    pub base: Option<Url>,
    /// Files that the script imports or opens: paths and texts.
    pub files: Vec<(String, String)>,
    /// The load that the script requests, as options of `run` and their values.
    pub load: Vec<(&'static str, String)>,
    /// The script's objectives.
    pub objectives: Vec<String>,
    /// Parts that have no equivalent.
    pub left_out: Vec<String>,
}

/// Returns a script's description of its journey; `None` if it makes single requests, like scripts
/// for wrk. `files`: source of its files.
///
/// # Errors
/// Fails if the script defines a journey and has an error: the line, and the message.
pub fn outline(
    script: &ScriptPlan,
    files: &dyn FileSource,
) -> Result<Option<ScriptOutline>, String> {
    if !script.is_javascript() {
        let program = script::outline(script)?;
        return Ok(program.map(|program| ScriptOutline { program, ..ScriptOutline::default() }));
    }
    let made = read_with(script, files)?;
    let (objectives, thresholds) = made.objectives();
    let thresholds = thresholds.iter().map(|text| format!("threshold {text}"));
    let left_out = thresholds.chain(made.not_applied()).collect();
    Ok(Some(ScriptOutline {
        program: ProgramOutline {
            steps: made.steps(),
            servers: made.further_servers(),
            metrics: made.metrics(),
        },
        base: made.base_server().cloned(),
        files: made.files()?,
        load: made.load_options(),
        objectives,
        left_out,
    }))
}

/// Content of a file, or the reason why it cannot be read.
type FileContent = Result<Vec<u8>, String>;
/// A path that a script reads, and the receiver of the content.
type FileQuestion = (String, Sender<FileContent>);

/// Reads a script on a second thread, and on this thread each file that it imports or opens.
fn read_with(script: &ScriptPlan, files: &dyn FileSource) -> Result<PlannedScript, String> {
    let (questions, asked) = channel::<FileQuestion>();
    // the script keeps the function that asks, so the sender is dropped here after reading
    let questions = Arc::new(Mutex::new(Some(questions)));
    std::thread::scope(|scope| {
        // a panic drops both holders of the sender, which ends the loop below
        let reading = scope.spawn(inherited(move || {
            let end = questions.clone();
            let read = read(script, OUTLINE_SEED, move |path| request_file(&questions, path));
            end.lock().unwrap_or_else(PoisonError::into_inner).take();
            read
        }));
        let mut count = 0;
        for (path, answer) in asked {
            count += 1;
            let content = match count {
                0..=FILES_MAX => files.read(&path),
                _ => Err(format!("a script reads at most {FILES_MAX} files")),
            };
            // the script waits for it
            answer.send(content).ok();
        }
        reading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Requests a file; after the outline is read there is no answer.
fn request_file(questions: &Mutex<Option<Sender<FileQuestion>>>, path: &str) -> FileContent {
    let questions = questions.lock().unwrap_or_else(PoisonError::into_inner);
    let (answer, content) = channel();
    let sent = questions.as_ref().and_then(|it| it.send((path.to_owned(), answer)).ok());
    sent.and_then(|()| content.recv().ok()).unwrap_or_else(|| Err(NOT_IN_PLAN.to_owned()))
}

/// Reads a script; `further` reads files that the plan does not have.
fn read(
    script: &ScriptPlan,
    seed: u64,
    further: impl Fn(&str) -> FileContent + Send + Sync + 'static,
) -> Result<PlannedScript, String> {
    let plan = script.clone();
    let entry = k6::program::entry_path(&script.name);
    let find = move |path: &str| {
        if path == entry {
            return Ok(plan.text.clone());
        }
        match plan.files.iter().find(|(name, _)| name == path) {
            Some((_, text)) => Ok(text.clone().into_bytes()),
            None => further(path),
        }
    };
    PlannedScript::read(&script.name, &script.args, Box::new(find), seed)
}

/// Returns the program of a journey that a JavaScript script carries out; `None` for other
/// journeys.
fn by_k6(journey: &Journey) -> Option<&JourneyProgram> {
    journey.script.as_ref().filter(|program| program.script.is_javascript())
}

/// Returns the name under which the result of `setup` is stored among the captured values.
fn data_key(journey: &Journey) -> String {
    format!("setup() of {}", journey.name)
}

/// The JavaScript scripts of a plan, by the rows of its journeys; shared by its workers.
#[derive(Debug, Default)]
pub(crate) struct Programs(Vec<Option<ActorSpec>>);

impl Programs {
    /// Reads the scripts of the journeys that have users. `values`: values that the setup captured.
    ///
    /// # Errors
    /// Fails if a script is invalid.
    pub(crate) fn open(plan: &Plan, values: &BTreeMap<String, String>) -> Result<Programs, String> {
        let Some(journeys) = &plan.journeys else { return Ok(Programs::default()) };
        let one = |journey: &Journey| -> Result<Option<ActorSpec>, String> {
            let Some(program) = by_k6(journey).filter(|_| journey.weight > 0.0) else {
                return Ok(None);
            };
            let script = read(&program.script, plan.seed, |_| Err(NOT_IN_PLAN.to_owned()))?;
            let steps = journey.parts.iter().filter_map(|part| match part {
                JourneyPart::Step(step) => Some(step.name.clone()),
                JourneyPart::Block(_) => None,
            });
            Ok(Some(ActorSpec {
                script: Arc::new(script),
                base: journeys.base.clone(),
                servers: program.servers.clone(),
                steps: steps.collect(),
                metrics: program.metrics.iter().map(|metric| metric.name.clone()).collect(),
                data: values.get(&data_key(journey)).cloned(),
                console: print,
            }))
        };
        journeys.journeys.iter().map(one).collect::<Result<_, _>>().map(Programs)
    }

    /// Returns one worker's programs, by the rows of the journeys. `aside`: they must not print on
    /// standard output.
    ///
    /// # Errors
    /// Fails if a script fails at its start.
    pub(crate) fn actors(
        &self,
        plan: &Plan,
        given: &BTreeMap<String, String>,
        aside: bool,
    ) -> Result<Vec<Option<Box<dyn Actor>>>, String> {
        let mut all = script::actors(plan, given, aside)?;
        all.resize_with(all.len().max(self.0.len()), || None);
        for (place, spec) in all.iter_mut().zip(&self.0) {
            if let Some(spec) = spec {
                *place = Some(Box::new(ScriptActor::new(spec.clone())));
            }
        }
        Ok(all)
    }
}

/// Prints a line of a script's console.
fn print(line: &str) {
    // if standard error is closed, the line is lost
    writeln!(stderr(), "{line}").ok();
}

/// Runs the functions `setup` or `teardown` of the plan's scripts; the result of `setup` is kept
/// for the users.
///
/// # Errors
/// Fails at the first script that fails.
pub(crate) fn run_stage(session: &mut Session, stage: ScriptStage) -> Result<(), Failure> {
    let plan = session.authorized(&session.fit.plan);
    let Some(journeys) = &plan.journeys else { return Ok(()) };
    if !journeys.journeys.iter().any(|journey| by_k6(journey).is_some()) {
        return Ok(());
    }
    let programs = Programs::open(&plan, &session.captured.values);
    let programs = programs.map_err(|why| Failure::usage(format!("--script: {why}")))?;
    for (journey, spec) in journeys.journeys.iter().zip(&programs.0) {
        let Some(spec) = spec.as_ref().filter(|spec| spec.script.has_stage(stage)) else {
            continue;
        };
        let mut caller = exchange_caller(&plan, session)?;
        let made = spec.run_stage(stage, &mut |call| match make_call(&plan, call, &mut caller) {
            Ok((took, reply)) => stage_reply(reply.facts.status, reply.head, reply.body, took),
            Err(class) => stage_failure(class),
        });
        let data = made.map_err(|why| Failure {
            code: Code::Missed,
            text: format!("{}() of {}: {why}", stage.function(), units::quoted(&journey.name)),
        })?;
        if let (ScriptStage::Setup, Some(data)) = (stage, data) {
            session.captured.values.insert(data_key(journey), data);
        }
    }
    Ok(())
}

/// Makes single exchanges by the rules of the plan.
pub(crate) fn exchange_caller(plan: &Plan, session: &Session) -> Result<Caller, Failure> {
    let settings = servers::exchange_tls_settings(plan);
    let own = session.fit.network.own().map(|network| (network.clone(), plan.seed));
    let caller = Caller::new(plan.timeouts.connect, settings).map_err(Failure::usage)?;
    let endpoints = &session.servers.endpoints;
    Ok(caller.with_own_stack(own).by_plan(endpoints, servers::endpoint_finder(plan)))
}
