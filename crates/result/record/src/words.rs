//! Names of measured targets in one line: printable and without secrets.

mod plans;

pub use plan::to_brief_toml;

pub use plans::{conforming_rule, priority, protocol, verified_against};

use plan::scenario::ScenarioPlan;
use plan::stages::{Stages, show_stages};
use plan::{Arrivals, Gaps, Load, Plan, SessionPlan, Think};
use std::cmp::Ordering;
use units::{Nanos, show};

/// Replacement for a secret.
pub const MASK: &str = "***";

/// Escapes untrusted text for one line of a terminal: control characters, bidirectional overrides
/// and everything else outside printable ASCII. Text longer than `chars_max` ends in `...`.
pub fn printable(text: &str, chars_max: usize) -> String {
    let mut out = String::new();
    for c in text.chars() {
        let piece = match c {
            ' '..='~' => c.to_string(),
            other => other.escape_default().to_string(),
        };
        if out.len() + piece.len() > chars_max {
            out.truncate(chars_max.saturating_sub(3));
            out.push_str("...");
            break;
        }
        out.push_str(&piece);
    }
    out
}

pub use stats::show_number as number;

/// Formats a URL with its user name, its password and values of secret query names masked.
pub fn shown_url(url: &url::Url) -> String {
    if url.username().is_empty() && url.password().is_none() {
        return plan::Masker::default().text(url.as_str());
    }
    let mut masked = url.clone();
    let done = masked.set_username(MASK).is_ok() && masked.set_password(None).is_ok();
    match done {
        true => plan::Masker::default().text(masked.as_str()),
        false => format!("{}://{MASK}", url.scheme()),
    }
}

/// Returns the name of a run, on one line and without a password: its name, or its first target.
pub fn name(name: &str, plan: &Plan) -> String {
    if name.is_empty() {
        return target(plan);
    }
    match url::Url::parse(name) {
        Ok(url) if shown_url(&url) != url.as_str() => shown_url(&url),
        _ => printable(name, 200),
    }
}

/// Returns the URL of a target as given; a gRPC URL is stored as that of its requests.
fn target_url(plan: &Plan, url: &url::Url) -> String {
    let shown = shown_url(url);
    match shown.strip_prefix("http") {
        Some(rest) if plan.is_grpc() => format!("grpc{rest}"),
        _ => shown,
    }
}

/// Returns the URL of a target, by its row.
pub fn target_name(plan: &Plan, row: u32) -> String {
    match plan.targets.get(row as usize) {
        Some(target) => target_url(plan, &target.url),
        None => "a target that the plan does not have".to_owned(),
    }
}

/// Returns the first target, and the number of further ones.
pub fn target(plan: &Plan) -> String {
    if let Some(journeys) = &plan.journeys {
        let names: Vec<&str> = journeys.journeys.iter().map(|it| it.name.as_str()).collect();
        let what = if names.len() == 1 { "journey" } else { "journeys" };
        let names = printable(&names.join(", "), 100);
        return format!("{}, {what} {names}", shown_url(&journeys.base));
    }
    let Some(first) = plan.targets.first() else { return "no target".to_owned() };
    let url = target_url(plan, &first.url);
    match plan.targets.len() {
        1 => url,
        n => format!("{url} and {} more", show::count(n as u64 - 1)),
    }
}

/// Describes the load of a plan: `closed loop of 64 users, 10 s`.
pub fn load(plan: &Plan) -> String {
    let mut parts = match plan.scenarios.as_slice() {
        [] => one_load(plan, &plan.load, plan.stages.as_ref()),
        scenarios => {
            let names: Vec<&str> = scenarios.iter().map(|it| it.name.as_str()).collect();
            let names = printable(&names.join(", "), 100);
            match scenarios.len() {
                1 => vec![format!("scenario {names}")],
                count => vec![format!("{count} scenarios at once: {names}")],
            }
        }
    };
    let stop = &plan.stop;
    parts.extend(stop.duration.map(span));
    parts.extend(stop.requests.map(|n| match &plan.load {
        _ if plan.journeys.is_some() => counted(n, "iteration"),
        load if load.session().is_some() => counted(n, "session"),
        _ => counted(n, "call"),
    }));
    parts.extend(stop.bytes.map(|n| format!("{} received", show::bytes(n))));
    if !stop.warm_up.is_zero() {
        parts.push(format!("after {} of warm-up", span(stop.warm_up)));
    }
    if plan.measure.repeat > 1 {
        parts.push(format!("{} runs", plan.measure.repeat));
    }
    parts.join(", ")
}

/// Describes one of several loads: `open loop at 5/s, constant gaps, from 10 s on, for 20 s`.
pub fn scenario(plan: &Plan, scenario: &ScenarioPlan) -> String {
    let mut parts = one_load(plan, &scenario.load, scenario.stages.as_ref());
    if !scenario.start.is_zero() {
        parts.push(format!("from {} on", span(scenario.start)));
    }
    parts.extend(scenario.duration.map(|length| format!("for {}", span(length))));
    parts.join(", ")
}

fn one_load(plan: &Plan, load: &Load, stages: Option<&Stages>) -> Vec<String> {
    let mut parts = Vec::new();
    match load {
        Load::Closed { users, think, .. } => {
            let most = if stages.is_some() { "up to " } else { "" };
            parts.push(format!("closed loop of {most}{}", counted(u64::from(*users), "user")));
            parts.extend(think_time_text(*think));
        }
        Load::Open { arrivals, session, .. } => {
            parts.push(arrivals_text(arrivals, session.is_some(), stages.is_some()));
        }
    }
    if let Some(session) = load.session().filter(|_| plan.journeys.is_none()) {
        parts.extend(session_text(load, session));
    }
    parts.extend(stages.map(|it| format!("in stages {}", show_stages(it))));
    parts
}

fn session_text(load: &Load, session: &SessionPlan) -> Vec<String> {
    let mut parts = Vec::new();
    if matches!(load, Load::Closed { .. }) {
        parts.push("sessions one after another".to_owned());
    }
    parts.push(match session.visits.len() {
        0 => format!("{} each", counted(u64::from(session.calls), "call")),
        visits => format!("{} in turn", counted(visits as u64, "visit")),
    });
    parts.extend(think_time_text(session.think));
    parts
}

fn arrivals_text(arrivals: &Arrivals, sessions: bool, staged: bool) -> String {
    if let Some(at) = &arrivals.at {
        let what = if sessions { "partly open: sessions by" } else { "open loop by" };
        let last = at.last().copied().unwrap_or_default();
        return format!("{what} a trace over {}", show::duration(last));
    }
    let what = if sessions { "partly open: sessions at " } else { "open loop at " };
    let (from, to) = (show::rate(arrivals.from.0), show::rate(arrivals.to.0));
    let rate = match arrivals.from.0.total_cmp(&arrivals.to.0) {
        Ordering::Equal if staged => format!("up to {from}"),
        Ordering::Equal => from,
        Ordering::Less => format!("{from} rising to {to}"),
        Ordering::Greater => format!("{from} falling to {to}"),
    };
    let gaps = match arrivals.gaps {
        Gaps::Constant => "constant gaps",
        Gaps::Poisson => "Poisson arrivals",
        Gaps::Uniform => "uniform gaps",
    };
    let burst = match arrivals.burst {
        0 | 1 => String::new(),
        n => format!(", bursts of {n}"),
    };
    format!("{what}{rate}, {gaps}{burst}")
}

fn think_time_text(think: Think) -> Option<String> {
    Some(match think {
        Think::None => return None,
        Think::Fixed(pause) => format!("think time {}", span(pause)),
        Think::Uniform(low, high) => {
            format!("think time {} to {}", span(low), span(high))
        }
        Think::Exponential(mean) => {
            format!("think time exponential, mean {}", span(mean))
        }
        Think::Lognormal(median, _) => {
            format!("think time lognormal, median {}", span(median))
        }
    })
}

/// Formats a number with its noun: `1 call`, `2,000 calls`.
pub fn counted(n: u64, noun: &str) -> String {
    format!("{} {noun}{}", show::count(n), if n == 1 { "" } else { "s" })
}

/// Formats a configured duration: `10 s`; a measured one would be `10.0 s`.
pub fn span(length: Nanos) -> String {
    let text = show::duration(length);
    match text.split_once(' ') {
        Some((number, unit)) if number.contains('.') => {
            format!("{} {unit}", number.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_of_grpc_has_its_own_scheme() {
        let mut plan = Plan::for_url(url::Url::parse("https://h/a.B/C").unwrap());
        assert_eq!(target(&plan), "https://h/a.B/C");
        plan.use_grpc();
        assert_eq!(target(&plan), "grpcs://h/a.B/C");
    }
}
