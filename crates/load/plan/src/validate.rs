//! Invalid values and combinations. Every message names the option and the fix; the plan file's
//! keys have the options' names.

mod connection;
mod feeders;
mod journeys;
mod load;
mod request;
mod scenarios;
mod script;
mod specweb99;
mod token;
mod websocket;

pub use feeders::shortage as feeder_shortage;

use crate::journey::JourneyStep;
use crate::{GrpcVariant, HttpVersion, Plan, StepStream, Streaming};
use stats::Op;
use std::borrow::Cow;

/// One problem of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The invalid option: `--rate`.
    pub option: Cow<'static, str>,
    /// A sentence for the user: the problem and the fix.
    pub text: String,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Problem {}

/// Checks whether a plan can be run. Descriptors, ports and names depend on the machine, and are
/// not checked.
///
/// # Errors
/// Fails with all problems, in the order of the plan's parts.
pub fn validate(plan: &Plan) -> Result<(), Vec<Problem>> {
    let mut problems = Problems(Vec::new());
    request::check(plan, &mut problems);
    token::check(plan, &mut problems);
    script::check(plan, &mut problems);
    journeys::check(plan, &mut problems);
    specweb99::check(plan, &mut problems);
    connection::check(plan, &mut problems);
    load::check(plan, &mut problems);
    websocket::check(plan, &mut problems);
    check_measure(plan, &mut problems);
    check_driver(plan, &mut problems);
    feeders::check(plan, &mut problems);
    if problems.0.is_empty() { Ok(()) } else { Err(problems.0) }
}

struct Problems(Vec<Problem>);

impl Problems {
    fn add(&mut self, option: impl Into<Cow<'static, str>>, text: impl Into<String>) {
        self.0.push(Problem { option: option.into(), text: text.into() });
    }

    /// Adds values outside their rows' bounds, in a table of the plan file.
    fn add_faults(&mut self, plan: &Plan, table: &str) {
        for (option, text) in crate::options::faults(plan, table) {
            self.add(option, text);
        }
    }

    fn add_if(&mut self, wrong: bool, option: &'static str, text: &str) {
        if wrong {
            self.add(option, text);
        }
    }
}

fn check_measure(plan: &Plan, problems: &mut Problems) {
    let measure = &plan.measure;
    problems.add_faults(plan, "measure");
    let inside = |quantile: &f64| *quantile > 0.0 && *quantile <= 1.0;
    problems.add_if(
        measure.quantiles.is_empty() || !measure.quantiles.iter().all(inside),
        "--percentiles",
        "--percentiles takes numbers above 0 and up to 100, such as 50,99,99.9",
    );
    let abort_if = plan.stop.abort_if.iter().map(|rule| &rule.objective);
    for objective in measure.slo.iter().chain(abort_if) {
        if let Some(subject) = &objective.of
            && subject.rows == stats::SubjectRows::Unknown
        {
            problems.add("--slo", unknown_part(plan, &objective.text, &subject.name));
        }
    }
    check_objectives(plan, problems);
    check_grpc(plan, problems);
    check_stream(plan, problems);
    check_folds(plan, problems);
}

/// Refuses lower bounds on times, and objectives that `--until-sure` cannot decide.
fn check_objectives(plan: &Plan, problems: &mut Problems) {
    let objectives = &plan.measure.slo;
    for objective in objectives {
        if objective.metric.is_time() && matches!(objective.op, Op::Above | Op::AtLeast) {
            let text = &objective.text;
            let below = text.replacen(">=", "<=", 1).replacen('>', "<", 1).replacen('≥', "≤", 1);
            problems.add(
                "--slo",
                format!(
                    "--slo {}: a lower bound on a time is not an objective; write '{below}', or \
                     --abort-if '{text}' to end a run in which it is",
                    units::quoted(text)
                ),
            );
        }
    }
    if !plan.stop.until_sure {
        return;
    }
    problems.add_if(
        objectives.is_empty(),
        "--until-sure",
        "--until-sure ends the run as soon as its objectives are decided and needs an objective; \
         add --slo 'p99<200ms'",
    );
    problems.add_if(
        plan.measure.repeat > 1,
        "--until-sure",
        "--until-sure decides one run, and --repeat makes several; drop one",
    );
    if let Some(whole) = objectives.iter().find(|objective| !objective.is_sequential()) {
        let text = units::quoted(&whole.text);
        problems.add(
            "--until-sure",
            format!(
                "--until-sure cannot decide {text} early: only quantiles below the max, and \
                 failures, abnormal-closes and status-ok with a bound between 0 and 100 %, have an \
                 interval that holds at any time; drop one"
            ),
        );
    }
}

fn check_folds(plan: &Plan, problems: &mut Problems) {
    let folds = &plan.measure.folds.patterns;
    if folds.is_empty() {
        return;
    }
    problems.add_if(
        folds.len() > crate::fold::FOLDS_MAX,
        "--fold",
        "--fold is given more than 100 times; {name} in a pattern matches many URLs",
    );
    problems.add_if(
        plan.journeys.is_some(),
        "--fold",
        "--fold is for lists of URLs: a step of a journey is one row by its name, regardless of its URL; \
         drop it",
    );
    problems.add_if(
        plan.script.is_some(),
        "--fold",
        "--fold is for lists of URLs, and the requests of a script have no rows; drop it, or make a list",
    );
}

/// Checks options that exclude gRPC calls, and options for gRPC calls only.
fn check_grpc(plan: &Plan, problems: &mut Problems) {
    problems.add_faults(plan, "grpc");
    let steps = plan.journeys.iter().flat_map(|journeys| journeys.steps());
    let of_grpc = |step: &JourneyStep| step.stream == StepStream::Yes(Streaming::Grpc);
    problems.add_if(
        steps.into_iter().any(|step| of_grpc(step) && step.grpc.is_none()),
        "--stream",
        "stream = \"grpc\" makes no call of gRPC; write grpc = \"package.Service/Method\" in place \
         of url",
    );
    check_grpc_connections(plan, problems);
    check_ended_streams(plan, problems);
    if plan.has_grpc() && !plan.is_grpc() {
        return check_grpc_steps(plan, problems);
    }
    if !plan.is_grpc() {
        let given = plan.grpc != crate::GrpcPlan::default();
        problems.add_if(
            given,
            "--message",
            "--grpc-…, --message…, --response-message…, --proto and --protoset are options of gRPC; \
             write the URL as grpc://host:port/package.Service/Method, or grpcs:// over TLS",
        );
        return;
    }
    problems.add_if(
        !matches!(plan.request.version, HttpVersion::Http2 | HttpVersion::Http3)
            && plan.grpc.variant == GrpcVariant::Grpc,
        "--http",
        "gRPC needs HTTP/2 or HTTP/3; drop --http",
    );
    problems.add_if(
        plan.journeys.is_some(),
        "--stream",
        "stream = \"grpc\" in [measure] makes every step a call of gRPC; give the steps grpc = \
         \"package.Service/Method\" and drop it",
    );
    problems.add_if(
        plan.request.compressed,
        "--compressed",
        "--compressed requests content codings, which gRPC does not use; drop it",
    );
    check_grpc_messages(plan, problems);
    let unnamed = |target: &crate::TargetPlan| {
        let parts: Vec<&str> = target.url.path().trim_start_matches('/').split('/').collect();
        parts.len() != 2 || parts.iter().any(|part| part.is_empty())
    };
    if let Some(target) = plan.targets.iter().find(|target| unnamed(target)) {
        let text = format!(
            "{} names no method; write grpc://host:port/package.Service/Method, for example \
             /grpc.health.v1.Health/Check",
            target.url.as_str().replacen("http", "grpc", 1)
        );
        problems.add("URL", text);
    }
}

/// Checks options for the connections, codings and back ends of gRPC.
fn check_grpc_connections(plan: &Plan, problems: &mut Problems) {
    problems.add_if(
        plan.grpc.compress && plan.grpc.variant == GrpcVariant::Connect,
        "--grpc-compress",
        "--grpc-compress is for grpc, grpc-web and grpc-web-text, and Connect names codings in other \
         fields; drop it",
    );
    problems.add_if(
        plan.has_grpc()
            && plan.grpc.keepalive.is_some()
            && plan.request.version != HttpVersion::Http2,
        "--grpc-keepalive",
        "--grpc-keepalive sends PING frames of HTTP/2; give --http 2, or drop it",
    );
    let limits = plan.grpc.response_limits();
    for (option, given) in [
        ("--response-messages", limits.count.is_some()),
        ("--response-message-max", limits.length.is_some()),
    ] {
        let text = format!("{option} needs HTTP/2 or HTTP/3; give --http 2, or drop it");
        let streams = matches!(plan.request.version, HttpVersion::Http2 | HttpVersion::Http3);
        problems.add_if(plan.has_grpc() && given && !streams, option, &text);
    }
    let is_field = |name: &String| {
        let token = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        !name.is_empty() && name.bytes().all(token)
    };
    problems.add_if(
        plan.grpc.backend.as_ref().is_some_and(|name| !is_field(name)),
        "--grpc-backend",
        "--grpc-backend takes the name of a field, such as x-served-by",
    );
}

/// Checks options of messages that exclude each other.
fn check_grpc_messages(plan: &Plan, problems: &mut Problems) {
    problems.add_if(
        plan.grpc.message_differs() && plan.targets.len() > 1,
        "--message",
        "--message with {id} takes one URL; drop the others",
    );
    let paced = plan.grpc.message_rate.is_some();
    problems.add_if(
        paced && plan.grpc.variant != GrpcVariant::Grpc,
        "--message-rate",
        "--message-rate needs streams of gRPC itself; drop --grpc-protocol",
    );
    problems.add_if(
        paced && plan.request.version == HttpVersion::Http3,
        "--message-rate",
        "--message-rate needs streams of HTTP/2; drop --http 3",
    );
    problems.add_if(
        plan.grpc.correlate.is_some() && !paced,
        "--correlate",
        "--correlate field:… is for the answers to messages on a schedule; give --message-rate, or \
         drop it",
    );
    problems.add_if(
        plan.grpc.correlate.is_some() && plan.grpc.compress,
        "--correlate",
        "--correlate field:… reads messages that are not compressed; drop --grpc-compress",
    );
    problems.add_if(
        paced && plan.grpc.message_differs(),
        "--message-rate",
        "--message-rate cannot be used with {id} in --message yet; drop one",
    );
}

/// Checks options that need complete responses.
fn check_ended_streams(plan: &Plan, problems: &mut Problems) {
    if plan.grpc.response_messages.is_none() {
        return;
    }
    let expect = &plan.expect;
    let examined = expect.body.is_some() || expect.length.is_some() || expect.verify.is_some();
    for (wrong, text) in [
        (
            plan.has_grpc() && !plan.is_grpc(),
            "--response-messages works only with a grpc:// URL, not with steps or messages with \
             inserted values; drop it",
        ),
        (
            examined,
            "--response-messages ends calls before their responses are complete; drop it, or drop \
             --expect-body, --expect-length and --verify",
        ),
        (
            plan.script.is_some(),
            "--response-messages ends calls before a script gets their responses; drop one of them",
        ),
        (
            plan.measure.slo.iter().any(|it| it.metric == stats::Metric::StatusOk),
            "--response-messages ends calls with the status CANCELLED, which the objective status-ok \
             counts as a failure; use the objective failures<…, or drop --response-messages",
        ),
    ] {
        problems.add_if(wrong, "--response-messages", text);
    }
}

/// Checks options that exclude steps with gRPC calls.
fn check_grpc_steps(plan: &Plan, problems: &mut Problems) {
    for (wrong, option, text) in [
        (
            !matches!(plan.request.version, HttpVersion::Http2 | HttpVersion::Http3)
                && plan.grpc.variant == GrpcVariant::Grpc,
            "--http",
            "a journey with gRPC steps uses HTTP/2 for all steps; write url = \
             \"grpc://host:port\", or http = \"2\" in [request]",
        ),
        (
            plan.grpc.messages.is_some()
                || plan.grpc.message_rate.is_some()
                || plan.grpc.correlate.is_some(),
            "--message-rate",
            "--messages, --message-rate and --correlate work only with a grpc:// URL, not with steps \
             or messages with inserted values; drop them",
        ),
        (
            plan.grpc.message.is_some(),
            "--message",
            "--message works only with a grpc:// URL; a step has message = {…}",
        ),
        (
            plan.request.compressed,
            "--compressed",
            "--compressed requests content codings, which gRPC does not use; drop it",
        ),
    ] {
        problems.add_if(wrong, option, text);
    }
}

fn check_stream(plan: &Plan, problems: &mut Problems) {
    if plan.measure.stream.is_none() {
        return;
    }
    let head = |target: &crate::TargetPlan| {
        target.method.as_deref().unwrap_or(&plan.request.method) == "HEAD"
    };
    problems.add_if(
        plan.journeys.is_none() && plan.targets.iter().all(head),
        "--stream",
        "--stream cannot be used with --method HEAD, whose responses have no events; use GET, or drop it",
    );
    problems.add_if(
        plan.script.is_some(),
        "--stream",
        "--stream cannot be used with --script, which may send several requests as one call; drop one",
    );
}

fn unknown_part(plan: &Plan, text: &str, name: &str) -> String {
    let names = plan.part_names();
    if name.starts_with(stats::METRIC_PREFIX) && names.iter().any(|known| known == name) {
        return format!(
            "{text}: {} is a number that the plan takes from responses: bound its p50, p99, max or \
             mean without a unit, such as p95<100",
            units::quoted(name)
        );
    }
    let known = match names.as_slice() {
        [] => {
            "nothing in this plan has a name: journeys have steps, [[targets]] may have a name, and --clients \
             has profiles"
                .into()
        }
        names => format!("there are: {}", names.join(", ")),
    };
    format!("{text}: nothing is called {}; {known}", units::quoted(name))
}

fn check_driver(plan: &Plan, problems: &mut Problems) {
    let driver = &plan.driver;
    problems.add_faults(plan, "driver");
    if let Some(threads) = driver.threads
        && let crate::Load::Closed { users, .. } = plan.load
        && plan.scenarios.is_empty()
        && users > 0
        && threads > users
    {
        let text = format!(
            "--threads {threads} is above -c {users}: a thread without a user would idle; \
             give at most --threads {users}"
        );
        problems.add("--threads", text);
    }
    let known = |core: &u32| *core < crate::rules::CPUS_MAX;
    problems.add_if(
        !driver.cpus.iter().all(known),
        "--cpus",
        "--cpus takes core numbers such as 0,2-3",
    );
}

#[cfg(test)]
mod tests;
