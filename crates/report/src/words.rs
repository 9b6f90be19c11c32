//! Sentences and names that several outputs share, and the making printable of what peers sent.

use crate::{Figures, RunReport};
use plan::{Arrivals, Gaps, HttpVersion, Load, Order, Plan, SessionPlan, Think};
use sample::Environment;
use stats::State;
use std::cmp::Ordering;
use time::OffsetDateTime;
use units::{Nanos, show};

/// What a peer or a user typed, fit for one line of a terminal: control characters, bidirectional
/// overrides and everything else outside printable ASCII is written as an escape, and what is
/// longer than `chars_max` ends in `...`.
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

/// A URL with its user name and password masked.
pub(crate) fn shown_url(url: &url::Url) -> String {
    if url.username().is_empty() && url.password().is_none() {
        return url.as_str().to_owned();
    }
    let mut masked = url.clone();
    let done = masked.set_username("***").is_ok() && masked.set_password(None).is_ok();
    if done { masked.into() } else { format!("{}://***", url.scheme()) }
}

/// What the run is called, on one line and without a password.
pub(crate) fn name(report: &RunReport) -> String {
    if report.name.is_empty() {
        return target(&report.plan);
    }
    match url::Url::parse(&report.name) {
        Ok(url) if !url.username().is_empty() || url.password().is_some() => shown_url(&url),
        _ => printable(&report.name, 200),
    }
}

/// `2026-11-21 04:33:10 UTC`.
pub fn timestamp(unix_s: f64) -> String {
    let Ok(at) = OffsetDateTime::from_unix_timestamp(unix_s as i64) else {
        return format!("{unix_s} s after 1970-01-01 UTC");
    };
    let (year, month, day) = (at.year(), u8::from(at.month()), at.day());
    let (hour, minute, second) = (at.hour(), at.minute(), at.second());
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

/// The first target, and how many more there are.
pub(crate) fn target(plan: &Plan) -> String {
    let Some(first) = plan.targets.first() else { return "no target".to_owned() };
    let url = shown_url(&first.url);
    match plan.targets.len() {
        1 => url,
        n => format!("{url} and {} more", show::count(n as u64 - 1)),
    }
}

/// `closed loop of 64 users, 10 s`.
pub fn load(plan: &Plan) -> String {
    let mut parts = Vec::new();
    match &plan.load {
        Load::Closed { users, think, .. } => {
            parts.push(format!("closed loop of {}", counted(u64::from(*users), "user")));
            parts.extend(think_words(*think));
        }
        Load::Open { arrivals, session, .. } => {
            parts.push(arrival_words(arrivals, session.is_some()));
        }
    }
    if let Some(session) = plan.load.session() {
        parts.extend(session_words(&plan.load, session));
    }
    let stop = &plan.stop;
    parts.extend(stop.duration.map(span));
    parts.extend(stop.requests.map(|n| match &plan.load {
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

fn session_words(load: &Load, session: &SessionPlan) -> Vec<String> {
    let mut parts = Vec::new();
    if matches!(load, Load::Closed { .. }) {
        parts.push("sessions one after another".to_owned());
    }
    parts.push(match session.visits.len() {
        0 => format!("{} each", counted(u64::from(session.calls), "call")),
        visits => format!("{} in turn", counted(visits as u64, "visit")),
    });
    parts.extend(think_words(session.think));
    parts
}

fn arrival_words(arrivals: &Arrivals, sessions: bool) -> String {
    let what = if sessions { "partly open: sessions at " } else { "open loop at " };
    let (from, to) = (show::rate(arrivals.from.0), show::rate(arrivals.to.0));
    let rate = match arrivals.from.0.total_cmp(&arrivals.to.0) {
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

fn think_words(think: Think) -> Option<String> {
    Some(match think {
        Think::None => return None,
        Think::Fixed(pause) => format!("think time {}", span(pause)),
        Think::Uniform(low, high) => {
            format!("think time {} to {}", span(low), span(high))
        }
        Think::Exponential(mean) => {
            format!("think time exponential, mean {}", span(mean))
        }
    })
}

/// `GET, HTTP/1.1, new connection per call, pipelined 16 deep`.
pub(crate) fn protocol(plan: &Plan) -> String {
    let version = match plan.request.version {
        HttpVersion::Http10 => "HTTP/1.0",
        HttpVersion::Http11 => "HTTP/1.1",
    };
    let mut parts = vec![printable(&plan.request.method, 20), version.to_owned()];
    parts.extend(plan.connection.calls.map(|calls| match calls {
        1 => "a connection per call".to_owned(),
        n => format!("{} per connection", counted(u64::from(n), "call")),
    }));
    if plan.connection.pipeline > 1 {
        parts.push(format!("pipelined {} deep", plan.connection.pipeline));
    }
    parts.extend(plan.connection.group.map(|n| format!("groups of {n}")));
    if plan.targets.len() > 1 {
        let order = match plan.order {
            Order::InOrder => "targets in order",
            Order::Random => "targets at random",
            Order::Once => "each target once",
        };
        parts.push(order.to_owned());
    }
    if let Some(path) = &plan.connection.unix {
        parts.push(format!("through {}", printable(&path.to_string_lossy(), 60)));
    }
    if let Some(proxy) = &plan.connection.proxy {
        parts.push(format!("by the proxy {}", shown_url(proxy)));
    }
    parts.join(", ")
}

/// `200, 612 B, HTTP/1.1, server nginx, in 412 µs`.
pub(crate) fn first_call(report: &RunReport) -> Option<String> {
    let call = report.first_call.as_ref()?;
    let mut parts = Vec::new();
    if call.status > 0 {
        parts.push(format!("status {}", call.status));
        parts.push(show::bytes(call.length));
        parts.push(format!("HTTP/{}", printable(&call.http_version, 8)));
        parts.extend(call.server.as_ref().map(|name| format!("server {}", printable(name, 48))));
        parts.push(format!("in {}", show::duration(call.took)));
    }
    if let Some((class, detail)) = &call.failure {
        let detail = printable(detail, 160);
        let said = if detail.is_empty() { String::new() } else { format!(" ({detail})") };
        parts.push(format!("{}: {}{said}", class.id(), class.explain()));
    }
    let told = parts.join(", ");
    Some(match call.way_out {
        Some(way_out) => format!("{told}. {way_out}"),
        None => told,
    })
}

/// `dev1, Linux 6.18, 2 cores of AMD EPYC, 7.75 GiB, loadstone 0.1.0`.
pub(crate) fn environment(report: &RunReport) -> String {
    machine(&report.environment)
}

pub(crate) fn machine(facts: &Environment) -> String {
    let mut parts = Vec::new();
    let mut add = |text: &str, suffix: &str| {
        if !text.is_empty() {
            parts.push(format!("{}{suffix}", printable(text, 60)));
        }
    };
    add(&facts.host, "");
    add(&facts.container, "");
    add(&facts.kernel, "");
    let cores = match (facts.cores, facts.cpu_model.is_empty()) {
        (0, _) => facts.cpu_model.clone(),
        (n, true) => counted(u64::from(n), "core"),
        (n, false) => format!("{} of {}", counted(u64::from(n), "core"), facts.cpu_model),
    };
    add(&cores, "");
    add(&facts.governor, " governor");
    if facts.memory_bytes > 0 {
        add(&show::bytes(facts.memory_bytes), " of memory");
    }
    if !facts.version.is_empty() {
        add(&format!("loadstone {}", facts.version), "");
    }
    parts.join(", ")
}

/// The result in words, for somebody who reads one paragraph only.
pub(crate) fn answer(report: &RunReport, figures: &Figures) -> String {
    let total = &report.measurement.total;
    if total.counts.due == 0 {
        return "No call fell due, so nothing was measured.".to_owned();
    }
    let calls = counted(total.counts.due, "call");
    let share = total.counts.failure_share();
    let failures = match share {
        0.0 => "None failed.".to_owned(),
        _ => format!("{} failed, timed out or were dropped.", show::share(share)),
    };
    if figures.response.is_empty() {
        return format!("{calls} fell due and none succeeded. {failures}");
    }
    let at = |quantile| show::duration(figures.response.quantile(quantile));
    let mut times = format!("Half of the calls took at most {}", at(0.5));
    if figures.response.count() >= stats::samples_needed(0.99) {
        times = format!("{times}, 99 of 100 at most {}", at(0.99));
    }
    let slowest = show::duration(figures.response.max());
    let goodput = show::rate(figures.goodput);
    let goodput = goodput.trim_end_matches("/s");
    let caution = match report.verdict.state {
        State::Invalid => "Counted, though not a description of the server: ",
        State::Valid | State::Degraded => "",
    };
    format!("{caution}{goodput} good answers a second. {times}, the slowest {slowest}. {failures}")
}

/// What the state of the verdict means, in one sentence.
pub(crate) fn state_meaning(state: State) -> &'static str {
    match state {
        State::Valid => "The numbers mean what they say.",
        State::Degraded => "The numbers stand, with the reservations named below.",
        State::Invalid => "The numbers do not describe the server.",
    }
}

/// With a capital and a full stop.
pub(crate) fn sentence(text: &str) -> String {
    let mut chars = text.trim().trim_end_matches('.').chars();
    match chars.next() {
        Some(first) => format!("{}{}.", first.to_uppercase(), chars.as_str()),
        None => String::new(),
    }
}

/// `1 call`, `2,000 calls`.
pub(crate) fn counted(n: u64, noun: &str) -> String {
    format!("{} {noun}{}", show::count(n), if n == 1 { "" } else { "s" })
}

/// `320 kbit/s`.
pub(crate) fn bits_per_s(bps: f64) -> String {
    match bps {
        _ if !bps.is_finite() => "-".to_owned(),
        1e9.. => format!("{} Gbit/s", bps / 1e9),
        1e6.. => format!("{} Mbit/s", bps / 1e6),
        1e3.. => format!("{} kbit/s", bps / 1e3),
        _ => format!("{bps} bit/s"),
    }
}

/// Three digits, for figures that are neither time nor rate.
pub(crate) fn figure(value: f64) -> String {
    match value.abs() {
        _ if !value.is_finite() => "-".to_owned(),
        0.0 => "0".to_owned(),
        1_000.0.. => show::count(value.round() as u64),
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        1.0.. => format!("{value:.2}"),
        0.001.. => format!("{value:.4}"),
        _ => format!("{value:.2e}"),
    }
}

/// A length that somebody chose: `10 s` where a measured one would be `10.0 s`.
pub(crate) fn span(length: Nanos) -> String {
    let text = show::duration(length);
    match text.split_once(' ') {
        Some((number, unit)) if number.contains('.') => {
            format!("{} {unit}", number.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => text,
    }
}

pub(crate) fn seconds(s: f64) -> String {
    show::duration(Nanos::from_secs_f64(s))
}

/// The rule by which connections are called conforming.
pub(crate) fn conforming_rule(plan: &Plan) -> String {
    let what = if plan.measure.conforming_counts_heads { "heads and bodies" } else { "bodies" };
    format!(
        "above {}: bits of {what} over the time the connection was open, less think time",
        bits_per_s(plan.measure.conforming_bps)
    )
}
