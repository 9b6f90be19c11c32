//! Loads, and the conditions that end a run.

use super::field::{KeyValue, NO_FIELD, PlanField, Shape, at, field, off};
use super::grammar::*;
use super::{SETTING, Setting, least, most};
use crate::options::Scalar;
use crate::rules::parse_think;
use crate::stages::{parse_stages, show_stages};
use crate::{Arrivals, Load, Pace, Plan, SessionPlan, Think};
use std::sync::Arc;
use units::{Nanos, ParseError, Rate, RateSpan, parse_duration, parse_rate_span};

const LOAD: Setting = Setting { heading: "Load", page: "loads", ..SETTING };
const OPEN: Setting = Setting { shown: is_open, ..LOAD };
const SESSION: Setting = Setting { page: "plans", shown: has_session, ..LOAD };

fn is_open(plan: &Plan) -> bool {
    matches!(plan.load, Load::Open { .. })
}

fn has_session(plan: &Plan) -> bool {
    plan.load.session().is_some()
}

/// A part that some loads have: `load!(at "users", Load::Closed { users, .. } => *users, COUNT,
/// or)`. For other loads `or` is the error.
macro_rules! load {
    ($kind:ident $key:expr, $pattern:pat => $place:expr, $grammar:expr, $or:expr) => {
        PlanField {
            key: concat!("load.", $key),
            shape: $grammar.shape,
            check: |text, inputs| ($grammar.read)(text, inputs.traces).map(drop),
            read: |plan, _, value, inputs| match &mut plan.load {
                $pattern => $kind::read(&$grammar, &mut $place, value, inputs),
                _ => $or(&value),
            },
            show: |plan, secrets| match &plan.load {
                $pattern => ("", $kind::show(&$grammar, &$place, secrets)),
                _ => ("", KeyValue::One(Scalar::Off)),
            },
            ..NO_FIELD
        }
    };
}

/// Defines the field for a part of an open load.
macro_rules! open {
    ($kind:ident $key:expr, $part:ident => $place:expr, $grammar:expr) => {
        load!($kind $key, Load::Open { $part, .. } => $place, $grammar, |_: &KeyValue| {
            Err(ParseError("it needs rate; without one the load is a closed loop".to_owned()))
        })
    };
}

/// Defines the field for a part of sessions.
macro_rules! session {
    ($kind:ident $key:expr, $field:ident, $grammar:expr) => {
        load!($kind $key,
            Load::Closed { session: Some(it), .. } | Load::Open { session: Some(it), .. } => it.$field,
            $grammar, without_session)
    };
}

/// Accepts a value that disables a feature, which needs no session.
fn without_session(value: &KeyValue) -> Result<(), ParseError> {
    let is_off = match value {
        KeyValue::One(value) => *value == Scalar::Off,
        KeyValue::Switch(on) => !on,
        KeyValue::List(items) => items.is_empty(),
        KeyValue::Texts(_) => false,
    };
    let why = || ParseError("session is missing: set the number of calls of a session".to_owned());
    if is_off { Ok(()) } else { Err(why()) }
}

/// Number of users; setting it makes the load closed, with the think time of the sessions.
const USERS: PlanField = PlanField {
    read: |plan, _, value, inputs| {
        plan.stages = None;
        if is_open(plan) {
            let think = plan.load.session().map_or(Think::None, |session| session.think);
            plan.load = Load::Closed { users: 0, think, session: None };
        }
        (CLOSED_USERS.read)(plan, "", value, inputs)
    },
    ..CLOSED_USERS
};
const CLOSED_USERS: PlanField =
    load!(at "users", Load::Closed { users, .. } => *users, COUNT, |_: &KeyValue| Ok(()));

/// Makes the load open, with these arrivals.
fn arrivals(plan: &mut Plan, rate: Rate) -> &mut Arrivals {
    if !is_open(plan) {
        let arrivals = Arrivals::constant(rate);
        plan.load = Load::Open { arrivals, session: None, connections_max: None, queue_max: None };
    }
    let Load::Open { arrivals, .. } = &mut plan.load else { unreachable!("it has been opened") };
    arrivals
}

const RATE: PlanField = PlanField {
    check: |text, _| parse_rate_span(text).map(drop),
    read: |plan, _, value, inputs| {
        let mut span = RateSpan { from: Rate(0.0), to: Rate(0.0) };
        at::read(&RATE_SPAN, &mut span, value, inputs)?;
        plan.stages = None;
        let arrivals = arrivals(plan, span.from);
        (arrivals.from, arrivals.to, arrivals.at) = (span.from, span.to, None);
        Ok(())
    },
    ..open!(at "rate", arrivals => arrivals.from, PER_SECOND)
};

const RATE_TO: PlanField = PlanField {
    read: |plan, _, value, inputs| match &plan.load {
        Load::Open { arrivals, .. } if arrivals.from != arrivals.to => {
            Err(ParseError("rate names two rates already; drop one".to_owned()))
        }
        _ => (LAST_RATE.read)(plan, "", value, inputs),
    },
    ..LAST_RATE
};
const LAST_RATE: PlanField = open!(at "rate_to", arrivals => arrivals.to, PER_SECOND);

/// A trace without a rate; its length then bounds the queue.
const AT: PlanField = PlanField {
    shape: Shape::List,
    read: |plan, _, value, _| {
        let at = instants(&value)?;
        let count = Rate((at.len() as f64).max(1.0));
        arrivals(plan, count).at = Some(at);
        Ok(())
    },
    show: |plan, _| match &plan.load {
        Load::Open { arrivals: Arrivals { at: Some(at), .. }, .. } => ("", show_instants(at)),
        _ => ("", KeyValue::One(Scalar::Off)),
    },
    key: "load.at",
    ..NO_FIELD
};

fn instants(value: &KeyValue) -> Result<Arc<[Nanos]>, ParseError> {
    let KeyValue::List(items) = value else { return Ok(Arc::default()) };
    each(items, parse_duration).map(Arc::from)
}

/// Stages of the load. Levels without a unit are users, levels with `/s` or `/m` rates of arrivals.
const STAGES: PlanField = PlanField {
    key: "load.stages",
    shape: Shape::Text,
    check: |text, _| parse_stages(text).map(drop),
    read: |plan, _, value, _| {
        let KeyValue::One(Scalar::Text(text)) = value else { return Ok(()) };
        plan.set_stages(parse_stages(&text)?);
        Ok(())
    },
    show: |plan, _| {
        let shown = plan.stages.as_ref().map(show_stages);
        ("", KeyValue::One(shown.map_or(Scalar::Off, Scalar::Text)))
    },
    ..NO_FIELD
};

/// Think time of sessions, if there are any: single calls of an open load have no user to think.
const THINK: PlanField = PlanField {
    key: "load.think",
    // a number has no unit, which the grammar reports
    shape: Shape::One,
    check: |text, _| parse_think(text).map(drop),
    read: |plan, _, value, inputs| {
        let mut think = Think::None;
        at::read(&THINK_TIME, &mut think, value, inputs)?;
        match &mut plan.load {
            Load::Closed { session: Some(session), .. }
            | Load::Open { session: Some(session), .. } => session.think = think,
            Load::Closed { think: slot, .. } => *slot = think,
            Load::Open { .. } if think == Think::None => {}
            Load::Open { .. } => {
                let why = "with a rate, think needs session: single calls have no think time";
                return Err(ParseError(why.to_owned()));
            }
        }
        Ok(())
    },
    show: |plan, secrets| {
        let think = match &plan.load {
            Load::Closed { think, session: None, .. } => *think,
            load => load.session().map_or(Think::None, |session| session.think),
        };
        ("", at::show(&THINK_TIME, &think, secrets))
    },
    ..NO_FIELD
};

/// Number of calls of a session. In a closed load, sessions get the load's think time.
const CALLS: PlanField = PlanField {
    read: |plan, _, value, inputs| {
        let mut calls = None;
        off::read(&COUNT, &mut calls, value, inputs)?;
        let mut none = Think::None;
        let (slot, think) = match &mut plan.load {
            Load::Closed { session, think, .. } => (session, think),
            Load::Open { session, .. } => (session, &mut none),
        };
        match (&mut *slot, calls) {
            (Some(session), Some(calls)) => session.calls = calls,
            (_, calls) => {
                *slot = calls
                    .map(|calls| SessionPlan::new(calls, std::mem::replace(think, Think::None)));
            }
        }
        Ok(())
    },
    ..session!(at "session", calls, COUNT)
};

/// Schedule of the calls of a session: at a rate, or at these instants.
const PACE: PlanField = PlanField {
    read: |plan, _, value, inputs| {
        let mut each = None;
        off::read(&PER_SECOND, &mut each, value.clone(), inputs)?;
        let Some(each) = each else { return Ok(()) };
        set_pace(plan, &value, Pace::Every(each))
    },
    show: |plan, secrets| match plan.load.session().and_then(|session| session.pace.as_ref()) {
        Some(Pace::Every(each)) => ("", at::show(&PER_SECOND, each, secrets)),
        _ => ("", KeyValue::One(Scalar::Off)),
    },
    key: "load.pace",
    ..NO_FIELD
};
const PACE_AT: PlanField = PlanField {
    shape: Shape::List,
    read: |plan, _, value, _| set_pace(plan, &value, Pace::At(instants(&value)?)),
    show: |plan, _| match plan.load.session().and_then(|session| session.pace.as_ref()) {
        Some(Pace::At(at)) => ("", show_instants(at)),
        _ => ("", KeyValue::One(Scalar::Off)),
    },
    key: "load.pace_at",
    ..NO_FIELD
};

fn set_pace(plan: &mut Plan, value: &KeyValue, pace: Pace) -> Result<(), ParseError> {
    match &mut plan.load {
        Load::Closed { session: Some(it), .. } | Load::Open { session: Some(it), .. } => {
            if it.pace.replace(pace).is_some() {
                return Err(ParseError("give a rate or pace_at, not both".to_owned()));
            }
            Ok(())
        }
        _ => without_session(value),
    }
}

fn has_pace_at(plan: &Plan) -> bool {
    plan.load.session().is_some_and(|session| matches!(session.pace, Some(Pace::At(_))))
}

#[rustfmt::skip] // a row is read as a row
pub(super) static LOADS: &[Setting] = &[
    Setting { name: "connections", short: Some('c'), value: "N", common: true, shown: |plan| !is_open(plan), field: USERS,
        bounds: &[least(1.0, "is 0: a closed loop needs a user to make calls; give -c 1 or more"), most(1e6, "{} is more than 1000000 users; spread such a load over several machines")],
        help: "Closed load: number of users [default: 10]", ..LOAD },
    Setting { name: "rate", value: "RATE", common: true, field: RATE,
        help: "Open load: calls (or sessions) per second; a range is a ramp: 100..2000/s", ..OPEN },
    Setting { field: RATE_TO, page: "plans",
        help: "Rate that an open load reaches at its end", ..OPEN },
    Setting { field: AT, page: "plans", shown: |plan| matches!(&plan.load, Load::Open { arrivals, .. } if arrivals.at.is_some()),
        help: "A trace of due instants, in place of a rate", ..OPEN },
    Setting { name: "stages", value: "STAGES", common: true, page: "loads", field: STAGES, shown: |plan| plan.stages.is_some(),
        help: "Users over time: '30s:0..100, 2m:100, 10s:0'; with /s, calls per second over time", ..LOAD },
    Setting { name: "think", value: "TIME", common: true, late: true, shown: |plan| !is_open(plan) || has_session(plan), field: THINK,
        help: "Think time after each response: 500ms, 1s..3s, exp:2s or lognormal:2s,0.8", ..LOAD },
    Setting { name: "session", value: "N", field: CALLS,
        bounds: &[least(1.0, "is 0: a session has at least one call; give 1 or more")],
        help: "With --rate: sessions of N calls arrive instead of single calls", ..LOAD },
    Setting { field: session!(at "visits", visits, VISITS),
        help: "What sessions do, in turn: rows of the targets in groups, each followed by a think time", ..SESSION },
    Setting { field: session!(off "parallel", parallel, COUNT), shown: |plan| plan.load.session().is_some_and(|it| it.parallel.is_some()),
        help: "Maximum number of calls of a group in flight", ..SESSION },
    Setting { field: session!(at "lead", lead, SWITCH),
        help: "Send the first call of a group alone, and the others after its response", ..SESSION },
    Setting { field: session!(at "one_connection", one_connection, SWITCH),
        help: "A session ends with its connection", ..SESSION },
    Setting { field: session!(at "retry", retry, SWITCH),
        help: "Retry a failed call instead of failing its session", ..SESSION },
    Setting { field: session!(at "survives", survives, SWITCH), shown: |plan| plan.load.session().is_some_and(|it| it.survives),
        help: "A failed call does not end its session", ..SESSION },
    Setting { field: session!(at "lengths", lengths, CORES),
        help: "Calls of the sessions, in turn, in place of one number", ..SESSION },
    Setting { field: session!(at "own_order", own_order, SWITCH),
        help: "Start each session at the first target", ..SESSION },
    Setting { field: session!(at "start_gap", start_gap, DURATION),
        help: "In a closed loop of sessions: time from the start of one user to that of the next", ..SESSION },
    Setting { field: PACE_AT, shown: has_pace_at,
        help: "When the calls of a session fall due, counted from its start", ..SESSION },
    Setting { field: PACE,
        help: "Rate at which the calls of a session fall due", ..SESSION },
    Setting { name: "arrivals", value: "LAW", choices: &["constant", "poisson", "uniform"], field: open!(at "arrivals", arrivals => arrivals.gaps, LAW),
        help: "With --rate: distribution of the gaps between arrivals [default: constant]", ..OPEN },
    Setting { name: "burst", value: "N", field: open!(at "burst", arrivals => arrivals.burst, COUNT),
        bounds: &[least(1.0, "is 0; give 1 or more arrivals at a time"), most(1e6, "is above 1000000 arrivals at a time; raise --rate instead")],
        help: "With --rate: N arrivals at a time", ..OPEN },
    Setting { name: "connections-max", value: "N", field: open!(off "connections_max", connections_max => *connections_max, COUNT),
        bounds: &[least(1.0, "is 0, so nothing could be sent; give 1 or more")],
        help: "With --rate: maximum number of open connections [default: what descriptors and ports allow]", ..OPEN },
    Setting { name: "queue-max", value: "N", field: open!(off "queue_max", queue_max => *queue_max, COUNT_64),
        help: "With --rate: maximum number of calls waiting for a connection; further calls are dropped [default: the arrivals of one timeout]", ..OPEN },
    Setting { name: "seed", value: "N", field: field!(at seed, COUNT_64),
        help: "Seed for everything random [default: 1]", ..LOAD },
];

const END: Setting =
    Setting { heading: "End of the run", page: "measure-a-server", late: true, ..SETTING };
const YEARS_100: f64 = units::DURATION_MAX.0 as f64 / 1e9;

#[rustfmt::skip] // a row is read as a row
pub(super) static ENDS: &[Setting] = &[
    Setting { name: "duration", short: Some('d'), value: "TIME", common: true, field: field!(off stop.duration, DURATION),
        bounds: &[least(1e-9, "is 0: nothing would fall due; give a time such as 10s"), most(YEARS_100, "is longer than 100 years")],
        help: "Duration of the measured part [default: 10s]", ..END },
    Setting { name: "requests", short: Some('n'), value: "COUNT", common: true, field: field!(off stop.requests, COUNT_64),
        bounds: &[least(1.0, "is 0: nothing would be sent; give 1 or more")],
        help: "Number of calls (or sessions); with -d, whichever is reached first", ..END },
    Setting { name: "bytes-max", value: "SIZE", field: field!(off stop.bytes, LENGTH),
        bounds: &[least(1.0, "is 0: the run would end before it began; give a size such as 1G")],
        help: "Stop after receiving this many bytes", ..END },
    Setting { field: field!(at stop.at_once, SWITCH), page: "plans",
        help: "Abandon the calls in flight at the end of the duration", ..END },
    Setting { field: field!(at stop.at_loss, SWITCH), page: "plans", shown: |plan| plan.stop.at_loss,
        help: "The first call that times out, or whose connection is refused or reset, ends the run", ..END },
    Setting { name: "warmup", value: "TIME", common: true, field: field!(at stop.warm_up as "stop.warmup", DURATION),
        bounds: &[most(YEARS_100, "is longer than 100 years")],
        help: "Load before the measured part, reported separately", ..END },
    Setting { name: "abort-if", value: "RULE", field: field!(off stop.abort_if, ABORT_RULE),
        help: "Stop early when a rule is met: 'failures>50% for 5s'", ..END },
    Setting { name: "until-sure", page: "in-ci", field: field!(at stop.until_sure, SWITCH), shown: |plan| plan.stop.until_sure, without: &["repeat"],
        help: "Stop as soon as every objective of --slo is decided; -d is then the longest time", ..END },
];
