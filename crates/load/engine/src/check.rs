//! Runs a check plan: makes requests from steps, compares responses with expectations, carries
//! values from step to step. The world is a trait, so all of it can run without real I/O.

pub(crate) mod capture;
pub(crate) mod judge;
pub(crate) mod prepare;
mod talk;

use crate::exchange::{Caller, ExchangeError, ExchangeOutcome, Outgoing};
use judge::{Answered, ResponseParts};
use plan::check::{
    Action, Ask, CheckPlan, CheckResult, Content, Difference, Entries, Group, State, Step,
    StepResult,
};
use sample::FailureClass;
use std::collections::BTreeMap;
use units::{Nanos, Purpose, Seed, Stream};
use workload::Jar;

/// Environment of a check.
pub trait CheckWorld: Caller {
    fn now(&mut self) -> Nanos;

    /// Returns whether the site's files are accessible.
    fn has_files(&self) -> bool;

    /// # Errors
    /// Fails with one sentence that names the file.
    fn read_file(&mut self, path: &str) -> Result<Vec<u8>, String>;

    /// Returns the names of everything in a folder, sorted.
    ///
    /// # Errors
    /// Fails with one sentence that names the folder.
    fn list_folder(&mut self, path: &str) -> Result<Vec<String>, String>;

    /// Waits.
    fn pause(&mut self, span: Nanos);
}

/// Time between two checks of a file that is not as expected yet.
const CHECK_INTERVAL: Nanos = Nanos::from_millis(50);

/// Checks that every request of the plan can be sent.
///
/// # Errors
/// Fails with the first invalid step: line, step and reason.
pub fn check_sendable(plan: &CheckPlan) -> Result<(), String> {
    for step in &plan.steps {
        let asks: Vec<&Ask> = match &step.action {
            Action::Ask(ask) => vec![ask],
            Action::Together(group) => group.members.iter().map(|(_, ask)| ask).collect(),
            Action::File { .. } | Action::Folder { .. } => Vec::new(),
        };
        for ask in asks {
            prepare::check_sendable(plan, ask)
                .map_err(|why| format!("line {}: step {:?}: {why}", step.line, step.name))?;
        }
    }
    Ok(())
}

/// Runs the steps that `chosen` selects, in order. Passes each step to `report` when it is done.
pub fn run_check(
    plan: &CheckPlan,
    chosen: &dyn Fn(&Step) -> bool,
    world: &mut dyn CheckWorld,
    report: &mut dyn FnMut(&StepResult),
) -> CheckResult {
    let start = world.now();
    let mut runner = Runner {
        plan,
        world,
        captured: BTreeMap::new(),
        jars: BTreeMap::new(),
        // the clock differs in every check
        nonces: Seed(start.0).stream(Purpose::Sockets, 0),
        met: false,
        unreachable: None,
    };
    let mut result = CheckResult {
        name: plan.name.clone(),
        base: plan.base.to_string(),
        ..CheckResult::default()
    };
    for step in plan.steps.iter().filter(|step| chosen(step)) {
        if runner.world.interrupted() {
            result.interrupted = true;
            break;
        }
        let done = match &runner.unreachable {
            Some(_) => runner.skipped(step, "no connection"),
            None => runner.step(step),
        };
        if runner.world.interrupted() {
            // a result interrupted by the signal shows nothing about the site
            result.interrupted = true;
            break;
        }
        report(&done);
        result.steps.push(done);
    }
    result.unreachable = runner.unreachable.take();
    result.took = runner.world.now() - start;
    result
}

struct Runner<'a> {
    plan: &'a CheckPlan,
    world: &'a mut dyn CheckWorld,
    captured: BTreeMap<String, String>,
    jars: BTreeMap<String, Jar>,
    /// Random numbers for the keys and masks of WebSockets.
    nonces: Stream,
    /// True once a connection is open.
    met: bool,
    unreachable: Option<String>,
}

/// Result of one round of a step.
struct Round {
    difference: Option<Difference>,
    status: Option<u16>,
    members: Vec<StepResult>,
}

impl Runner<'_> {
    fn skipped(&self, step: &Step, why: &str) -> StepResult {
        StepResult {
            name: step.name.clone(),
            line: step.line,
            state: State::Skipped(why.to_owned()),
            took: Nanos::ZERO,
            asked: describe_request(self.plan, &step.action),
            status: None,
            members: Vec::new(),
        }
    }

    fn step(&mut self, step: &Step) -> StepResult {
        if let Some(why) = &step.skip {
            return self.skipped(step, why);
        }
        let files = matches!(step.action, Action::File { .. } | Action::Folder { .. });
        if files && !self.world.has_files() {
            return self.skipped(step, "--root gives the folder of the site's files");
        }
        let start = self.world.now();
        let mut round = Round { difference: None, status: None, members: Vec::new() };
        for turn in 1..=step.repeat {
            round = self.round(step);
            if let Some(difference) = &mut round.difference {
                if step.repeat > 1 {
                    difference.what =
                        format!("round {turn} of {}: {}", step.repeat, difference.what);
                }
                break;
            }
            if self.world.interrupted() {
                break;
            }
        }
        StepResult {
            name: step.name.clone(),
            line: step.line,
            state: State::new(round.difference),
            took: self.world.now() - start,
            asked: describe_request(self.plan, &step.action),
            status: round.status,
            members: round.members,
        }
    }

    fn round(&mut self, step: &Step) -> Round {
        match &step.action {
            Action::Ask(ask) => self.single(ask),
            Action::Together(group) => self.group(group, step.line),
            Action::File { path, wanted, within } => {
                let look = |runner: &mut Self| runner.look_at_file(path, wanted);
                Round::plain(self.watch(*within, look))
            }
            Action::Folder { path, wanted, within } => {
                let look = |runner: &mut Self| runner.look_at_folder(path, wanted);
                Round::plain(self.watch(*within, look))
            }
        }
    }

    fn single(&mut self, ask: &Ask) -> Round {
        let mut heard = self.exchange(&[ask]);
        match heard.pop() {
            Some((_, heard)) if self.unmet(ask, &heard) => {
                let trouble = heard.result.err();
                self.unreachable =
                    Some(trouble.as_ref().map(ExchangeError::with_common_fix).unwrap_or_default());
                let text = trouble.map(|trouble| trouble.text).unwrap_or_default();
                Round::plain(Some(Difference::new("connection", "one", text)))
            }
            Some((sent, heard)) => self.evaluate(ask, &sent, &heard),
            None => Round::plain(None),
        }
    }

    /// Returns whether the step expects a response, but no server has been reached so far.
    fn unmet(&mut self, ask: &Ask, heard: &ExchangeOutcome) -> bool {
        self.met |= heard.connected;
        let silent = !self.met && heard.result.is_err();
        silent && ask.expect.outcome == plan::check::Wanted::Response
    }

    /// Sends the requests at the same moment; requests that cannot be sent are returned as errors.
    fn exchange(&mut self, asks: &[&Ask]) -> Vec<(Option<Outgoing>, ExchangeOutcome)> {
        let prepared: Vec<Result<Outgoing, String>> = asks
            .iter()
            .map(|ask| {
                let nonces = &mut self.nonces;
                prepare::prepare(self.plan, ask, &self.captured, &self.jars, nonces)
            })
            .collect();
        let outgoing = prepared.iter().flatten().cloned().collect();
        let mut responses = self.world.exchange(outgoing).into_iter();
        let mut pair = |sent: Result<Outgoing, String>| match sent {
            Ok(sent) => {
                let lost = || silence("no response to this request".to_owned());
                (Some(sent), responses.next().unwrap_or_else(lost))
            }
            Err(why) => (None, silence(why)),
        };
        prepared.into_iter().map(&mut pair).collect()
    }

    /// Compares a response with the expectations; keeps cookies and captured values.
    fn evaluate(&mut self, ask: &Ask, sent: &Option<Outgoing>, heard: &ExchangeOutcome) -> Round {
        let status = heard.result.as_ref().ok().map(|reply| reply.facts.status);
        let Some(sent) = sent else {
            let why = heard.result.as_ref().err().map(|trouble| trouble.text.clone());
            let difference =
                Difference::new("request", "a complete request", why.unwrap_or_default());
            return Round { difference: Some(difference), status, members: Vec::new() };
        };
        if let (Ok(reply), Some(jar)) = (&heard.result, &ask.jar) {
            let jar = self.jars.entry(jar.clone()).or_default();
            for cookie in protocol::http1::fields::set_cookies(&reply.head) {
                jar.absorb(&sent.url, cookie);
            }
        }
        let answered = Answered { result: &heard.result, took: heard.took };
        let mut difference = judge::difference(&ask.expect, &answered, &self.captured);
        if let (None, Ok(reply)) = (&difference, &heard.result) {
            for (name, wanted) in &ask.capture {
                // there is no seed: the first of several values is taken
                match capture::capture(
                    wanted,
                    &ResponseParts::new(reply),
                    &self.captured,
                    &mut |_| 0,
                ) {
                    Ok(value) => drop(self.captured.insert(name.clone(), value)),
                    Err(wrong) => {
                        difference = Some(Difference { what: format!("capture {name}"), ..wrong });
                        break;
                    }
                }
            }
        }
        Round { difference, status, members: Vec::new() }
    }

    fn group(&mut self, group: &Group, line: usize) -> Round {
        let asks: Vec<&Ask> = group.members.iter().map(|(_, ask)| ask).collect();
        let heard = self.exchange(&asks);
        self.met |= heard.iter().any(|(_, heard)| heard.connected);
        if !self.met
            && let Some(trouble) = heard.iter().find_map(|(_, heard)| heard.result.as_ref().err())
        {
            self.unreachable = Some(trouble.with_common_fix());
        }
        let mut members = Vec::new();
        for ((name, ask), (sent, heard)) in group.members.iter().zip(&heard) {
            let round = self.evaluate(ask, sent, heard);
            members.push(StepResult {
                name: name.clone(),
                line,
                state: State::new(round.difference),
                took: heard.took,
                asked: request_label(self.plan, ask),
                status: round.status,
                members: Vec::new(),
            });
        }
        let difference = judge::group(group, &mut members);
        Round { difference, status: None, members }
    }

    /// Repeats the check until the file is as expected or the time is over.
    fn watch(
        &mut self,
        within: Nanos,
        mut look: impl FnMut(&mut Self) -> Option<Difference>,
    ) -> Option<Difference> {
        let looks = within.0 / CHECK_INTERVAL.0;
        for _ in 0..looks {
            look(self)?;
            if self.world.interrupted() {
                break;
            }
            self.world.pause(CHECK_INTERVAL);
        }
        look(self)
    }

    fn look_at_file(&mut self, path: &str, wanted: &Content) -> Option<Difference> {
        match self.world.read_file(path) {
            Ok(bytes) => {
                judge::content("content", wanted, &bytes, bytes.len() as u64, &self.captured)
            }
            Err(why) => Some(Difference::new("file", "a readable file", why)),
        }
    }

    fn look_at_folder(&mut self, path: &str, wanted: &Entries) -> Option<Difference> {
        match self.world.list_folder(path) {
            Ok(names) => judge::entries(wanted, &names),
            Err(why) => Some(Difference::new("folder", "a readable folder", why)),
        }
    }
}

impl Round {
    fn plain(difference: Option<Difference>) -> Round {
        Round { difference, status: None, members: Vec::new() }
    }
}

fn silence(text: String) -> ExchangeOutcome {
    ExchangeOutcome::nothing(ExchangeError::new(FailureClass::WorkloadEnd, text))
}

/// Describes a step's request and its destination.
fn describe_request(plan: &CheckPlan, action: &Action) -> String {
    match action {
        Action::Ask(ask) => request_label(plan, ask),
        Action::Together(_) => String::new(),
        Action::File { path, .. } | Action::Folder { path, .. } => path.clone(),
    }
}

fn request_label(plan: &CheckPlan, ask: &Ask) -> String {
    let url = ask.url.settled().unwrap_or_else(|| "(captured)".to_owned());
    let base = prepare::base_of(plan, ask);
    let url = prepare::locate(&base, &url).map_or(url, |(url, _)| url.to_string());
    let is_named = ask.version != plan::HttpVersion::Auto;
    let over = match is_named && ask.version.has_streams() {
        true => format!(" over {}", ask.version.name()),
        false => String::new(),
    };
    format!("{} {url}{over}", ask.method)
}

#[cfg(test)]
mod tests;
