//! Wording shared by the text and the page.

use crate::section::{Block, Voice, text_block};
pub(crate) use crate::words::safe;
use crate::words::{capitalized, counted, figure, seconds};
pub(crate) use record::torture::found;
use record::torture::{
    BaselineRecord, BoundaryRecord, CaseRecord, HealthRecord, LimitRecord, Recovery, ShrunkRecord,
    TortureRecord,
};
use torture::case::{FOUND, GRPC, OWN, PACKETS, SOCKETS};
use torture::judge::{Severity, TestOutcome};
use torture::result::Unit;
use torture::safety::Class;
use units::{Nanos, show};

pub(crate) fn group_name(letter: char) -> &'static str {
    match letter {
        'F' => "random data",
        'S' => "syntax and conformance",
        'B' => "bodies and framing",
        'L' => "limits",
        'W' => "slow clients",
        'C' => "connections",
        'J' => "cookies",
        'V' => "caching",
        'M' => "response mix-ups",
        'T' => "TLS",
        SOCKETS => "WebSocket",
        'H' => "HTTP/2 frames",
        'Q' => "HTTP/3 streams",
        GRPC => "gRPC",
        PACKETS => "TCP segments",
        'R' => "overload and recovery",
        FOUND => "found on real servers",
        OWN => "your own cases",
        _ => "other",
    }
}

/// Describes what happened to a number of cases: `3 failed`.
fn happened(outcome: TestOutcome) -> &'static str {
    match outcome {
        TestOutcome::Pass => "passed",
        TestOutcome::Held => "held",
        TestOutcome::Alternative => "passed another way",
        TestOutcome::Skipped => "skipped",
        TestOutcome::Unseen => "unseen",
        TestOutcome::Inconclusive => "inconclusive",
        TestOutcome::Advisory => "advisory",
        TestOutcome::Shed => "shed",
        TestOutcome::Flaky => "flaky",
        TestOutcome::Degraded => "degraded",
        TestOutcome::Unbounded => "unbounded",
        TestOutcome::Fail => "failed",
        TestOutcome::Denied => "denied service",
        TestOutcome::Leak => "leaked",
        TestOutcome::Crashed => "crashed",
    }
}

/// A group of cases by outcome, worst first.
pub(crate) struct CaseGroup<'a> {
    pub(crate) letter: char,
    pub(crate) by_outcome: Vec<(TestOutcome, Vec<&'a CaseRecord>)>,
}

impl CaseGroup<'_> {
    pub(crate) fn worst(&self) -> TestOutcome {
        self.by_outcome.first().map(|(outcome, _)| *outcome).unwrap_or_default()
    }

    /// Formats `1 failed: S-07; 2 advisory; 30 passed`: findings are named.
    pub(crate) fn line(&self) -> String {
        let part = |(outcome, cases): &(TestOutcome, Vec<&CaseRecord>)| {
            let count = format!("{} {}", show::count(cases.len() as u64), happened(*outcome));
            if !outcome.is_finding() {
                return count;
            }
            let ids: Vec<&str> = cases.iter().map(|case| case.id.as_str()).collect();
            format!("{count}: {}", ids.join(" "))
        };
        let parts: Vec<String> = self.by_outcome.iter().map(part).collect();
        parts.join("; ")
    }
}

/// Returns the tested groups, worst first.
pub(crate) fn groups(result: &TortureRecord) -> Vec<CaseGroup<'_>> {
    let mut letters: Vec<char> = Vec::new();
    for case in &result.cases {
        if !letters.contains(&case.group()) {
            letters.push(case.group());
        }
    }
    let group = |letter: &char| {
        let of = |outcome: &TestOutcome| {
            let own = |case: &&CaseRecord| case.group() == *letter && case.outcome == *outcome;
            (*outcome, result.cases.iter().filter(own).collect::<Vec<_>>())
        };
        let all = TestOutcome::ALL.iter().rev().map(of);
        CaseGroup { letter: *letter, by_outcome: all.filter(|(_, own)| !own.is_empty()).collect() }
    };
    let mut groups: Vec<CaseGroup<'_>> = letters.iter().map(group).collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.worst()));
    groups
}

/// Returns one sentence about the whole.
pub(crate) fn summary(result: &TortureRecord) -> String {
    let verdict = match result.is_tested() {
        true => {
            let found = capitalized(&found(result.findings, result.tested_count()));
            let each = |(severity, count): &(Severity, u64)| format!("{count} {}", severity.id());
            let grave: Vec<String> = result.by_severity().iter().map(each).collect();
            match grave.is_empty() {
                true => found,
                false => format!("{found} ({})", grave.join(", ")),
            }
        }
        false => "Nothing was tested".to_owned(),
    };
    let mut parts = Vec::new();
    // skipped cases are not among those counted before
    for outcome in TestOutcome::ALL.into_iter().rev().filter(|one| *one != TestOutcome::Skipped) {
        let count = result.cases.iter().filter(|case| case.outcome == outcome).count() as u64;
        if count > 0 {
            parts.push(format!("{} {}", show::count(count), happened(outcome)));
        }
    }
    match result.waived_count() {
        0 => {}
        n => parts.push(format!("{} of them waived", show::count(n))),
    }
    let list = if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) };
    let skipped = match result.cases.len() as u64 - result.tested_count() {
        0 => String::new(),
        n => format!("; {} skipped", show::count(n)),
    };
    let cut = if result.interrupted { "; interrupted before the end" } else { "" };
    if !result.is_tested() {
        return format!("{verdict}{list}{skipped}{cut}.");
    }
    format!("{verdict}{list}, in {}{skipped}{cut}.", seconds(result.elapsed_s))
}

/// Returns why it ended early, one sentence each.
pub(super) fn early_end_reasons(ended_early: Option<&str>, interrupted: bool) -> Vec<Block> {
    let early = ended_early.map(|why| format!("It ended early: {}.", safe(why)));
    let interrupted = interrupted.then(|| "Interrupted before the end.".to_owned());
    early.into_iter().chain(interrupted).map(|text| text_block(Voice::Plain, text)).collect()
}

/// Describes the responses to plain requests after a case.
pub(crate) fn afterwards(recovery: Recovery) -> String {
    match recovery.duration() {
        Some(time) => {
            format!("plain requests got their usual response again after {}", show::duration(time))
        }
        None => "plain requests no longer get their usual response".to_owned(),
    }
}

/// Formats a recovery as a table cell.
pub(crate) fn recovery(recovery: Recovery) -> String {
    match recovery.duration() {
        Some(Nanos::ZERO) => "at once".to_owned(),
        Some(time) => show::duration(time),
        None => "never".to_owned(),
    }
}

/// Formats `8,190 B`, `60.0 s to 60.5 s`, `over 180 s`.
pub(crate) fn measure(measure: &LimitRecord) -> String {
    let one = |value: f64| amount(value, measure.unit);
    let whole =
        !matches!(measure.unit, Unit::Seconds | Unit::Spent | Unit::PerSecond | Unit::Ratio);
    match (measure.low, measure.high) {
        // the largest accepted and the smallest refused value are neighbors
        (Some(low), Some(high)) if whole && high - low <= 1.0 => one(low),
        (Some(low), Some(high)) if one(low) == one(high) => one(low),
        (Some(low), Some(high)) => format!("{} to {}", one(low), one(high)),
        (Some(low), None) => format!("over {}", one(low)),
        (None, Some(high)) => format!("below {}", one(high)),
        (None, None) => "-".to_owned(),
    }
}

/// Sizes up to here are exact.
const EXACT_BYTES_MAX: f64 = 10.0 * 1024.0 * 1024.0;

fn amount(value: f64, unit: Unit) -> String {
    // counts saturate below zero and beyond the range
    let whole = value.round() as u64;
    match unit {
        Unit::Bytes if value > EXACT_BYTES_MAX => show::bytes(whole),
        Unit::Bytes => format!("{} B", show::count(whole)),
        Unit::Fields => counted(whole, "field"),
        Unit::Connections => counted(whole, "connection"),
        Unit::Requests => counted(whole, "request"),
        Unit::Count => show::count(whole),
        Unit::Seconds => deadline(value),
        Unit::Spent => seconds(value),
        Unit::PerSecond => show::rate(value),
        Unit::Ratio => format!("{} ×", figure(value)),
    }
}

/// Formats a timeout in seconds, like server configurations: `60 s`, `20.5 s`.
pub(crate) fn deadline(value: f64) -> String {
    if !(1.0..1e15).contains(&value) {
        return seconds(value);
    }
    let figure = format!("{value:.1}");
    format!("{} s", figure.strip_suffix(".0").unwrap_or(&figure))
}

/// Returns the effect on well-behaved clients, one line each: label and text.
pub(crate) fn impact(
    health: &HealthRecord,
    base: Option<&BaselineRecord>,
) -> Vec<(&'static str, String)> {
    let share = |share: f64| show::share(share);
    let mut lines = vec![(
        "impact",
        format!(
            "{} of the time correct, {} shed, {} lost, measured by {}",
            share(health.correct),
            share(health.shed),
            share(health.lost),
            counted(health.probes, "probe")
        ),
    )];
    let before = base.map(|base| format!(", {} before it", p99(base.p99_s, base.probes)));
    let before = before.unwrap_or_default();
    let under_load = p99(health.p99_s, health.probes);
    lines.push(("response", format!("p99 {under_load} under load{before}")));
    let connections = format!("{} of {} connections established", health.armed, health.wanted);
    lines.push(("pressure", connections));
    let recovered = match health.recovery_s.map(Recovery::duration) {
        Some(Some(Nanos::ZERO)) => "at once after the load ended".to_owned(),
        Some(Some(time)) => format!("{} after the load ended", show::duration(time)),
        Some(None) => "never".to_owned(),
        None => "not known: the run, or the time of the case, ended first".to_owned(),
    };
    lines.push(("recovery", recovered));
    if health.rounds > 0 {
        lines.push(("followed", format!("{} of {} rounds", health.followed, health.rounds)));
    }
    if let Some(denied) = health.control_denied {
        let text = match denied {
            true => "as many well-behaved connections denied service too: a connection limit",
            false => "as many well-behaved connections did no harm: slowness is the cause",
        };
        lines.push(("control", text.to_owned()));
    }
    lines
}

/// Returns the rounds in which the load had an effect; a dash without an effect.
pub(crate) fn followed(health: &HealthRecord) -> String {
    match health.followed {
        0 => "-".to_owned(),
        n => format!("{n} of {}", health.rounds),
    }
}

/// Formats a p99, marked if it has fewer probes than it needs.
pub(crate) fn p99(time_s: f64, probes: u64) -> String {
    let mark = if probes < stats::samples_needed(0.99) { "~" } else { "" };
    format!("{mark}{}", seconds(time_s))
}

/// Describes probes before any load.
pub(crate) fn baseline(base: &BaselineRecord) -> String {
    let failed = match base.failed {
        0 => String::new(),
        n => format!(", {} of them failed", show::count(n)),
    };
    let (p50, p99) = (seconds(base.p50_s), p99(base.p99_s, base.probes));
    format!("p50 {p50}, p99 {p99} of {}{failed}", counted(base.probes, "probe"))
}

/// Returns the usual other explanations that apply to this run.
pub(crate) fn not_ruled_out(record: &TortureRecord) -> Vec<String> {
    let mut list: Vec<&str> = Vec::new();
    let is_time = |limit: &LimitRecord| matches!(limit.unit, Unit::Seconds | Unit::Spent);
    let timed =
        record.cases.iter().any(|case| case.health.is_some()) || record.limits.iter().any(is_time);
    let turned_away = |case: &CaseRecord| {
        matches!(case.outcome, TestOutcome::Shed | TestOutcome::Degraded | TestOutcome::Denied)
            || case.tally.contains_key("503")
            || case.tally.contains_key("429")
            || case.recovery_s.is_some_and(|recovery| recovery.duration().is_none())
    };
    if record.class == Class::Local {
        if timed {
            list.push("client and server share this machine's CPUs: delays may be the client's");
        }
        list.push("a proxy in front of the server that responded in its place");
    } else {
        list.push("loss and delay on the path");
        list.push("a proxy, firewall or CDN that responded in the server's place");
    }
    if record.class != Class::Local || record.cases.iter().any(turned_away) {
        list.push("a rate or connection limit that applied only to us");
    }
    if record.plain.changes {
        list.push(
            "wrong bodies: the probed page changes between requests, so only its status \
            was compared",
        );
    }
    if record.is_cut() {
        list.push("failures that only the skipped cases would have shown");
    }
    list.push("results that vary over time: this was a single run");
    list.into_iter().map(str::to_owned).collect()
}

/// Returns why a case shows nothing about the server.
pub(crate) fn untested(case: &CaseRecord) -> Option<String> {
    if let Some(why) = &case.skipped {
        return Some(safe(why));
    }
    if !matches!(case.outcome, TestOutcome::Inconclusive | TestOutcome::Unseen) {
        return None;
    }
    let exchange = case.exchanges.iter().find(|one| one.outcome == case.outcome);
    let judged = exchange.map(|one| one.why.clone()).filter(|why| !why.is_empty());
    let why = case.notes.first().cloned().or(judged);
    Some(format!(
        "{}: {}",
        case.outcome.id(),
        safe(&why.unwrap_or_else(|| "no reason was recorded".into()))
    ))
}

/// Maximum number of bytes of the shrunk form shown.
const SHRUNK_MAX: usize = 400;

/// Describes the shrunk random data.
pub(crate) fn shrunk(shrunk: &ShrunkRecord) -> String {
    let bytes = &shrunk.sent.0;
    let cut = if shrunk.finished { "" } else { "; the search was stopped early" };
    let sides: String = shrunk.boundaries.iter().map(boundary).collect();
    format!(
        "{} ({} of {} bytes, in {} conversations{cut}{sides}; bucket {})",
        super::send::escape_bytes(bytes, SHRUNK_MAX),
        bytes.len(),
        shrunk.from_bytes,
        shrunk.executions,
        shrunk.bucket
    )
}

fn boundary(one: &BoundaryRecord) -> String {
    format!("; {}: {} bytes pass, {} fail", one.what, one.passes, one.fails)
}
