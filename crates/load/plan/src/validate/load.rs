//! Load, stop rules and time limits.

use super::Problems;
use crate::{Arrivals, Load, Order, Pace, Plan, SessionPlan, Think};
use units::{Nanos, Rate};

pub(super) fn check(plan: &Plan, problems: &mut Problems) {
    check_sequence(plan, problems);
    if plan.scenarios.is_empty() {
        check_load(plan, problems);
    } else {
        super::scenarios::check(plan, problems, check_load);
    }
    check_stop(plan, problems);
    check_warm_up(plan, problems);
    problems.add_faults(plan, "timeouts");
}

fn check_load(plan: &Plan, problems: &mut Problems) {
    problems.add_faults(plan, "load");
    match &plan.load {
        Load::Closed { think, session, .. } => {
            check_think(*think, problems);
            if let Some(session) = session {
                check_session(plan, session, problems);
            }
        }
        Load::Open { arrivals, session, .. } => {
            check_arrivals(plan, arrivals, problems);
            if let Some(session) = session {
                check_session(plan, session, problems);
                problems.add_if(
                    !session.start_gap.is_zero(),
                    "start_gap",
                    "start_gap is for the users of a closed loop, and a rate determines when sessions start; \
                     drop it",
                );
            } else if plan.connection.group.is_some() {
                problems.add(
                    "--group",
                    "--group cannot be used with --rate: single calls fall due one by one; add \
                     --session N to send the calls of a session in groups, or use -c",
                );
            }
        }
    }
    check_stages(plan, problems);
}

fn check_sequence(plan: &Plan, problems: &mut Problems) {
    let rows = plan.targets.len() as u64;
    problems.add_if(
        plan.sequence.iter().any(|row| u64::from(*row) >= rows),
        "sequence",
        "sequence names a row that does not exist; the first target is row 0",
    );
    problems.add_if(
        plan.order == Order::Random && !plan.sequence.is_empty(),
        "sequence",
        "sequence fixes the order of the targets, and --random draws it; drop one",
    );
    problems.add_if(
        plan.order != Order::Random && plan.has_weights(),
        "weight",
        "weights are for a random order; write order = \"random\" (--random), or drop them",
    );
    problems.add_if(plan.sequence.len() > TRACE_MAX, "sequence", "sequence has over 10000000 rows");
}

fn check_arrivals(plan: &Plan, arrivals: &Arrivals, problems: &mut Problems) {
    let &Arrivals { from, to, .. } = arrivals;
    for rate in [from, to] {
        if !(rate.0 > 0.0 && rate.0.is_finite()) {
            problems.add("--rate", format!("--rate is {}/s; it must be above zero", rate.0));
        } else if rate.0 > RATE_MAX.0 {
            let text = format!(
                "--rate {}/s is more than any machine can send; give at most {}/s",
                rate.0, RATE_MAX.0
            );
            problems.add("--rate", text);
        }
        if from == to {
            break;
        }
    }
    problems.add_if(
        from != to && plan.stop.duration.is_none(),
        "--rate",
        "--rate with two rates changes from one to the other over the whole run, so it needs -d: \
         give a duration, or a single rate",
    );
    if let Some(at) = &arrivals.at {
        check_trace(plan, at, problems);
    }
}

fn check_stages(plan: &Plan, problems: &mut Problems) {
    let Some(stages) = &plan.stages else { return };
    let (stop, levels) = (&plan.stop, &stages.levels);
    let (trace, sessions) = match &plan.load {
        Load::Open { arrivals, .. } => (arrivals.at.is_some(), false),
        Load::Closed { session, .. } => (false, session.is_some()),
    };
    for (wrong, why) in [
        (
            !stop.warm_up.is_zero() && levels.first() == 0.0,
            "begin at 0, so --warmup would have no load; drop it, or begin above 0",
        ),
        (trace, "cannot be used with a trace (at), which sets when calls fall due; drop one"),
        (
            sessions,
            "of users cannot be used with sessions of a closed loop; give rates, such as 10s:5/s",
        ),
        (
            stop.duration.is_none() && stop.requests.is_none() && stop.bytes.is_none(),
            "that consist of jumps never end; give a stage a duration, or add -d",
        ),
        (levels.span() > units::DURATION_MAX, "take more than 100 years"),
        (
            levels.last() == 0.0 && stop.duration.is_none(),
            "end at 0, and the run may never reach the count that ends it; add -d",
        ),
        (plan.order == Order::Once, "cannot be used with --once: the list ends the run; drop one"),
    ] {
        if wrong {
            problems.add("--stages", format!("the stages {why}"));
        }
    }
}

fn check_trace(plan: &Plan, at: &[Nanos], problems: &mut Problems) {
    problems.add_if(
        at.is_empty() || at.len() > TRACE_MAX,
        "at",
        "at holds the instants of 1 to 10000000 arrivals",
    );
    problems.add_if(!at.is_sorted(), "at", "at decreases: its instants must be in ascending order");
    let late = at.last().is_some_and(|last| *last > units::DURATION_MAX);
    problems.add_if(late, "at", "the last instant of at is more than 100 years after the start");
    problems.add_if(
        !plan.stop.warm_up.is_zero(),
        "--warmup",
        "--warmup cannot be used with a trace (at), which covers only the measured part",
    );
}

fn check_visits(plan: &Plan, session: &SessionPlan, problems: &mut Problems) {
    let rows = plan.targets.len() as u64;
    let known = |row: &u32| u64::from(*row) < rows;
    for visit in &session.visits {
        let mut groups = visit.groups.iter();
        problems.add_if(
            visit.groups.is_empty() || groups.any(|group| group.targets.is_empty()),
            "visits",
            "a visit needs at least one group, and a group at least one row of the targets",
        );
        let calls: usize = visit.groups.iter().map(|group| group.targets.len()).sum();
        problems.add_if(
            calls > VISIT_CALLS_MAX,
            "visits",
            "a visit has more than 1000000 calls; let several visits share them",
        );
        let mut groups = visit.groups.iter();
        if !groups.all(|group| group.targets.iter().all(known)) {
            let text =
                format!("visits names a row that is not there; the targets are 0 to {}", rows - 1);
            problems.add("visits", text);
            break;
        }
    }
}

fn check_session(plan: &Plan, session: &SessionPlan, problems: &mut Problems) {
    if let Some(group) = plan.connection.group
        && session.calls > 0
        && group > session.calls
    {
        let text = format!(
            "--group {group} is above --session {}: a group cannot be larger than its session; \
             lower --group or raise --session",
            session.calls
        );
        problems.add("--group", text);
    }
    problems.add_if(
        session.parallel == Some(0) || (session.parallel.is_some() && session.visits.is_empty()),
        "parallel",
        "parallel is the number of concurrent calls in a group of visits: give 1 or more, and visits",
    );
    check_visits(plan, session, problems);
    check_think(session.think, problems);
    check_lengths(session, problems);
    check_pace(plan, session, problems);
    problems.add_if(
        session.own_order && (plan.order != Order::InOrder || !plan.sequence.is_empty()),
        "own_order",
        "own_order takes the targets in their order; drop it, or order and sequence",
    );
}

fn check_lengths(session: &SessionPlan, problems: &mut Problems) {
    let lengths = &session.lengths;
    problems.add_if(
        lengths.contains(&0) || lengths.len() > TRACE_MAX,
        "lengths",
        "lengths holds the calls of up to 10000000 sessions, 1 or more each",
    );
    problems.add_if(
        !lengths.is_empty() && !session.visits.is_empty(),
        "lengths",
        "lengths and visits both set the number of calls of a session; drop one",
    );
}

fn check_pace(plan: &Plan, session: &SessionPlan, problems: &mut Problems) {
    let Some(pace) = &session.pace else { return };
    for (given, what) in [
        (session.think != Think::None, "think"),
        (!session.visits.is_empty(), "visits"),
        (plan.connection.group.is_some(), "a group"),
        (session.retry, "retry"),
    ] {
        if given {
            let text = format!(
                "pace and {what} both determine when a session's next call falls due; drop one of them"
            );
            problems.add("pace", text);
        }
    }
    match pace {
        Pace::Every(Rate(rate)) => problems.add_if(
            !(*rate >= PACE_MIN && *rate <= RATE_MAX.0),
            "pace",
            "pace is not a rate; give one such as 20/s, or 0.1/s",
        ),
        Pace::At(at) => {
            let most = session.lengths.iter().copied().max().unwrap_or(session.calls);
            problems.add_if(
                !at.is_sorted() || at.len() > TRACE_MAX || at.len() < most as usize,
                "pace_at",
                "pace_at holds the instant of each call of a session, in order",
            );
            let late = at.last().is_some_and(|last| *last > units::DURATION_MAX);
            let why = "the last instant of pace_at is more than 100 years after the start";
            problems.add_if(late, "pace_at", why);
        }
    }
}

fn check_think(think: Think, problems: &mut Problems) {
    let wrong = match think {
        Think::None | Think::Fixed(_) => false,
        Think::Uniform(low, high) => low >= high,
        Think::Exponential(mean) => mean.is_zero(),
        Think::Lognormal(median, sigma) => {
            median.is_zero() || !(sigma > 0.0 && sigma <= crate::rules::SIGMA_MAX)
        }
    };
    problems.add_if(
        wrong,
        "--think",
        "--think is an empty range or has a mean of zero; give 500ms, 1s..3s or exp:2s",
    );
}

fn check_stop(plan: &Plan, problems: &mut Problems) {
    let stop = &plan.stop;
    let once = plan.order == Order::Once;
    problems.add_if(
        stop.duration.is_none() && stop.requests.is_none() && stop.bytes.is_none() && !once,
        "-d",
        "nothing ends the run: give -d TIME, -n COUNT, --bytes-max SIZE, or --once with a URL list",
    );
    problems.add_faults(plan, "stop");
    problems.add_if(
        stop.at_once && stop.duration.is_none(),
        "at_once",
        "at_once needs a duration, at whose end calls are abandoned; give -d, or drop at_once",
    );
    let sessions = plan.load.session().is_some();
    let listed = if plan.sequence.is_empty() { plan.targets.len() } else { plan.sequence.len() };
    if let Some(requests) = stop.requests
        && once
        && !sessions
        && requests > listed as u64
    {
        let text = format!(
            "-n {requests} is above {listed}, the length of the URL list, and --once requests each \
             URL once; lower -n or drop --once"
        );
        problems.add("-n", text);
    }
}

fn check_warm_up(plan: &Plan, problems: &mut Problems) {
    let stop = &plan.stop;
    if stop.warm_up.is_zero() {
        return;
    }
    problems.add_if(
        plan.order == Order::Once,
        "--warmup",
        "--warmup cannot be used with --once: it would send URLs of the list a second time; drop one",
    );
    problems.add_if(
        stop.duration.is_none() && plan.order != Order::Once,
        "--warmup",
        "--warmup needs -d: give the measured part a duration too, or drop --warmup",
    );
}

const RATE_MAX: Rate = Rate(10_000_000.0);
/// Minimum calls per second of one session: one in a million seconds.
const PACE_MIN: f64 = 1e-6;
const TRACE_MAX: usize = 10_000_000;
const VISIT_CALLS_MAX: usize = 1_000_000;
