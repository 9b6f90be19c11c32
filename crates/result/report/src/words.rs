//! Sentences and names shared by several outputs, and the escaping of text from peers.

use crate::{RunRecord, RunTimes};
use record::run::{EnvironmentRecord, VerdictRecord};
pub use record::timestamp;
pub(crate) use record::words::number;
pub(crate) use record::words::{conforming_rule, counted, priority, protocol, span, target};
pub use record::words::{load, printable};
use stats::{CauseId, State};
pub(crate) use units::show::safe;
use units::{Nanos, show};

/// Formats `200, 612 B, HTTP/1.1, server nginx, in 412 µs`.
pub(crate) fn first_call(report: &RunRecord) -> Option<String> {
    let call = report.first_call.as_ref()?;
    let mut parts = Vec::new();
    if call.status > 0 {
        parts.push(format!("status {}", call.status));
        parts.push(show::bytes(call.length));
        let choice = match call.negotiated.as_deref() {
            None => String::new(),
            Some([]) => " (no negotiation without TLS)".to_owned(),
            Some(offered) => format!(" (the server's choice of {})", offered.join(" and ")),
        };
        parts.push(format!("HTTP/{}{choice}", printable(&call.http_version, 8)));
        parts.extend(call.server.as_ref().map(|name| format!("server {}", printable(name, 48))));
        parts.push(format!("in {}", seconds(call.took_s)));
        parts.extend(call.alt_svc.as_deref().and_then(|field| offer(&call.http_version, field)));
    }
    if let Some(failure) = &call.failure {
        let detail = printable(&failure.detail, 160);
        let text = if detail.is_empty() { String::new() } else { format!(" ({detail})") };
        parts.push(format!("{}{text}", failure.class.explain()));
    }
    let message = parts.join(", ");
    Some(match call.failure.as_ref().and_then(|failure| failure.advice.as_ref()) {
        Some(fix_text) => format!("{message}. {fix_text}"),
        None => message,
    })
}

/// Returns the HTTP/3 offers of Alt-Svc (RFC 7838 section 3) to clients of another version.
fn offer(version: &str, field: &str) -> Option<String> {
    let named = |entry: &str| entry.trim_start().starts_with("h3=");
    let offered = version != "3" && field.split(',').any(named);
    offered.then(|| format!("offers HTTP/3 (Alt-Svc: {})", printable(field, 48)))
}

/// Describes the machine: `dev1, Linux 6.18, 2 cores of AMD EPYC, 7.75 GiB, loadstone 0.1.0`.
pub(crate) fn machine(facts: &EnvironmentRecord) -> String {
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
    add(&facts.congestion, " congestion control");
    if facts.memory_bytes > 0 {
        add(&show::bytes(facts.memory_bytes), " of memory");
    }
    if !facts.version.is_empty() {
        add(&format!("loadstone {}", facts.version), "");
    }
    parts.join(", ")
}

/// Describes the time and the machine: `Measured 2026-11-26 … on dev1, ….`
pub(crate) fn measured(started_unix_s: f64, facts: &EnvironmentRecord) -> String {
    let machine = machine(facts);
    let on = if machine.is_empty() { machine } else { format!(" on {machine}") };
    format!("Measured {}{on}.", timestamp(started_unix_s))
}

/// Formats ` (client's lateness: at most 9 ms of it)` if that exceeds the last digit of the figure;
/// otherwise empty.
fn lateness(times: &RunTimes, quantile: f64) -> String {
    let doubt = times.doubt.as_ref().filter(|doubt| doubt.shows(quantile));
    doubt.map_or(String::new(), |doubt| {
        format!(" (including at most {} of client delay)", show::duration(doubt.at(quantile)))
    })
}

/// Returns the result as text, for readers of a single paragraph.
pub(crate) fn answer(report: &RunRecord, all: &RunTimes) -> String {
    if report.outcomes.due == 0 {
        return "No call was due, so nothing was measured.".to_owned();
    }
    let calls = counted(report.outcomes.due, "call");
    let failures = match report.failure_share {
        0.0 => "None failed.".to_owned(),
        share => format!("{} failed, timed out or were dropped.", show::share(share)),
    };
    if all.response.is_empty() {
        let verb = if report.outcomes.due == 1 { "was" } else { "were" };
        return format!("{calls} {verb} due and none succeeded. {failures}");
    }
    let at = |quantile| show::duration(all.response.quantile(quantile));
    let mut times = format!("Half of the calls took at most {}", at(0.5));
    if all.response.count() >= stats::samples_needed(0.99) {
        times = format!("{times}, 99 of 100 at most {}{}", at(0.99), lateness(all, 0.99));
    }
    let slowest = show::duration(all.response.max());
    let goodput = show::rate(report.goodput_per_s);
    let goodput = goodput.trim_end_matches("/s");
    let caution = match report.verdict.state {
        State::Invalid if !only_undecided(&report.verdict) => {
            "Measured, but not representative of the server: "
        }
        State::Valid | State::Degraded | State::Invalid => "",
    };
    format!("{caution}{goodput} successful responses/s. {times}, the slowest {slowest}. {failures}")
}

/// Returns whether a result is INVALID only because an objective is undecided: the causes that
/// concern the figures themselves come first.
fn only_undecided(verdict: &VerdictRecord) -> bool {
    let first = verdict.causes.first().map(|cause| cause.id);
    verdict.state == State::Invalid && first == Some(CauseId::FewSamples)
}

/// Returns the meaning of the verdict's state, in one sentence.
pub(crate) fn state_meaning(verdict: &VerdictRecord) -> &'static str {
    match verdict.state {
        State::Valid => "The numbers are valid.",
        State::Degraded => "The numbers are usable, with the reservations below.",
        State::Invalid if only_undecided(verdict) => "An objective is undecided.",
        State::Invalid => "The numbers do not describe the server.",
    }
}

/// Returns the text with an initial capital and a full stop.
pub(crate) fn sentence(text: &str) -> String {
    match text.trim().trim_end_matches('.') {
        "" => String::new(),
        text => format!("{}.", capitalized(text)),
    }
}

/// Returns the text with an initial capital.
pub(crate) fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|first| format!("{}{}", first.to_uppercase(), chars.as_str()));
    first.unwrap_or_default()
}

/// Formats three digits, for figures that are neither time nor rate.
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

pub(crate) fn seconds(s: f64) -> String {
    show::duration(Nanos::from_secs_f64(s))
}
