//! The per-call log: a line of tab-separated values per sample.

use sample::{Outcome, Sample};
use units::Nanos;

/// First line of a per-call log. Instants and times are in seconds; a missing time is empty (a
/// dropped call has none, a call that timed out in the queue has no service time).
pub const LOG_HEADER: &str = "index\tintended_s\tresponse_s\tservice_s\tslip_s\toutcome\tclass\t\
    status\tbytes\ttarget";

/// Renders the line of one call, without a line feed. `origin` is the instant that `intended_s`
/// counts from; bytes are those received, including heads; `target` is the row of the target list,
/// from 0.
pub fn log_line(sample: &Sample, outcome: Outcome, origin: Nanos) -> String {
    let issued = sample.issued > Nanos::ZERO;
    let ended = !matches!(outcome, Outcome::Dropped | Outcome::Abandoned);
    let span = |known: bool, to: Nanos, from: Nanos| match known {
        true => seconds(to - from),
        false => String::new(),
    };
    format!(
        "{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}",
        sample.index,
        signed_seconds(sample.intended, origin),
        span(ended, sample.done, sample.intended),
        span(ended && issued, sample.done, sample.issued),
        span(issued && outcome != Outcome::Dropped, sample.issued, sample.intended),
        outcome_name(outcome),
        sample.class.map_or("", |class| class.id()),
        sample.status,
        sample.bytes_received,
        sample.target,
    )
}

pub(crate) fn outcome_name(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Succeeded => "succeeded",
        Outcome::Failed => "failed",
        Outcome::TimedOut => "timed_out",
        Outcome::Dropped => "dropped",
        Outcome::Abandoned => "abandoned",
    }
}

/// Formats seconds to the nanosecond, without floating point.
fn seconds(span: Nanos) -> String {
    format!("{}.{:09}", span.0 / Nanos::SECOND.0, span.0 % Nanos::SECOND.0)
}

/// Formats seconds that are negative in the warm-up, which precedes the origin.
fn signed_seconds(at: Nanos, origin: Nanos) -> String {
    if at >= origin { seconds(at - origin) } else { format!("-{}", seconds(origin - at)) }
}
