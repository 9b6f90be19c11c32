//! `loadstone workload sequence`: the requests for a file set, in order.

use crate::exit::{Code, Failure};
use crate::files;
use args::{Format, SequenceArgs, Sink};
use plan::representative::{folder, visits_of};
use plan::{Load, Plan, SessionPlan};
use std::fmt::Write as _;
use units::{Seed, show};
use url::Url;
use workload::fileset::{Sequence, SequenceStep};

/// Maximum number of sessions that httperf reads from a file.
const SESSIONS_MAX: usize = 1_000;

pub(super) fn write(args: &SequenceArgs) -> Result<Code, Failure> {
    let options = args.options()?;
    if let Sink::File(path) = &args.output {
        files::check_writable(path).map_err(|error| Failure::not_written(&error))?;
    }
    let sequence = workload::fileset::sequence(args.preset.spec, &options, Seed(args.seed))
        .map_err(|error| Failure::usage(error.to_string()))?;
    let (text, rest) = match args.format() {
        Format::Urls => (urls(&sequence, args.base.as_ref()), String::new()),
        Format::Sessions => sessions(&sequence, args),
        Format::Plan => as_plan(&sequence, args)?,
    };
    files::write_to(&args.output, &text).map_err(|error| Failure::not_written(&error))?;
    if !args.quiet {
        let requests = show::count(sequence.requests());
        let steps = show::count(sequence.steps().count() as u64);
        crate::print_message(&format!("{requests} requests in {steps} steps{rest}"));
    }
    Ok(Code::Done)
}

fn urls(sequence: &Sequence, base: Option<&Url>) -> String {
    // a base that ends in a file's name is its folder
    let base = base.map_or_else(|| "/".to_owned(), folder);
    sequence.steps().flat_map(SequenceStep::paths).map(|path| format!("{base}{path}\n")).collect()
}

/// Renders httperf's session file, with notes. A step is a burst: a page, then its embedded objects
/// at once.
fn sessions(sequence: &Sequence, args: &SequenceArgs) -> (String, String) {
    let base = args.base.as_ref().map_or_else(
        || "/".to_owned(),
        |base| {
            let path = base.path();
            path[..=path.rfind('/').unwrap_or(0)].to_owned()
        },
    );
    let sessions = sequence.sessions(args.users());
    let mut text = String::new();
    for session in &sessions {
        if !text.is_empty() {
            text.push('\n');
        }
        for step in session {
            burst(&mut text, &base, *step);
        }
    }
    let mut message = format!(", {} sessions", show::count(sessions.len() as u64));
    if sessions.len() > SESSIONS_MAX {
        let text = format!("; httperf takes {SESSIONS_MAX} at most: lower --requests");
        message.push_str(&text);
    }
    (text, message)
}

fn burst(text: &mut String, base: &str, step: SequenceStep<'_>) {
    for (index, path) in step.paths().enumerate() {
        let indent = if index == 0 { "" } else { "    " };
        write!(text, "{indent}{base}{path}").expect("a String accepts all text");
        if index == 0 && !step.off.is_zero() {
            let off = step.off.as_secs_f64();
            write!(text, " think={off:.3}").expect("a String accepts all text");
        }
        text.push('\n');
    }
}

/// Returns a plan of users with one session each: a page, its embedded objects, then the OFF time.
fn as_plan(sequence: &Sequence, args: &SequenceArgs) -> Result<(String, String), Failure> {
    let base = args.base.as_ref().expect("the options were checked");
    let made = visits_of(sequence, base, args.users());
    let (targets, visits) = made.map_err(Failure::usage)?;
    let mut plan = Plan::for_targets(targets);
    let (users, count) = (args.users().min(visits.len()) as u32, visits.len() as u64);
    let session = SessionPlan { visits, lead: true, ..SessionPlan::new(1, plan::Think::None) };
    plan.load = Load::Closed { users, think: plan::Think::None, session: Some(session) };
    (plan.stop.duration, plan.stop.requests) = (None, Some(count));
    plan.seed = args.seed;
    let text = format!(", {} users", show::count(u64::from(users)));
    Ok((plan::to_toml(&plan, plan::Secrets::Shown), text))
}
