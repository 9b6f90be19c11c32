//! A row per step, in the order they were run.

use super::{RampRecord, RampStepRecord};
use crate::csv::quoted;
use sample::Blame;
use std::fmt::Write;

/// Columns, in order. Times in seconds, rates per second, shares 0..=1; empty without samples.
const HEADER: &str = "step,label,purpose,level,repeat,settled_s,window_s,offered_per_s,\
    achieved_per_s,goodput_per_s,concurrency,connections_peak,response_mean_s,response_p50_s,\
    response_p99_s,response_p99_9_s,response_max_s,service_mean_s,due,succeeded,failed,timed_out,\
    dropped,failure_share,failures_server,failures_path,failures_driver,failures_plan,met,\
    client_limited,verdict";

/// Renders the steps as CSV with a header line (RFC 4180, with plain line feeds).
pub fn csv(report: &RampRecord) -> String {
    let mut out = format!("{HEADER}\n");
    for (index, step) in report.steps.iter().enumerate() {
        let written = writeln!(out, "{},{},{}", index + 1, quoted(&step.label), row(step));
        written.expect("writing to a string cannot fail");
    }
    out
}

fn row(step: &RampStepRecord) -> String {
    let (point, run) = (step.point(), &step.run);
    let (counts, response) = (&run.outcomes, run.response());
    let known = |figure: f64| if figure.is_finite() { figure.to_string() } else { String::new() };
    let quantile = |q: f64| match response.is_empty() {
        true => String::new(),
        false => response.quantile(q).as_secs_f64().to_string(),
    };
    let mut cells = vec![
        step.purpose.id().to_owned(),
        point.level.to_string(),
        step.repeat.to_string(),
        known(step.settled_s.unwrap_or(f64::NAN)),
        run.duration_s.to_string(),
    ];
    cells.extend(
        [point.offered_per_s, point.achieved_per_s, point.goodput_per_s, point.concurrency]
            .map(known),
    );
    cells.push(run.connections.peak.to_string());
    cells.push(known(point.response_mean_s));
    cells.extend([0.5, 0.99, 0.999, 1.0].map(quantile));
    cells.push(known(point.service_mean_s));
    cells.extend(
        [counts.due, counts.succeeded, counts.failed, counts.timed_out, counts.dropped]
            .map(|count| count.to_string()),
    );
    cells.push(known(point.failure_share));
    cells.extend(
        [Blame::Server, Blame::Path, Blame::Driver, Blame::Plan]
            .map(|blame| super::blamed(step, blame).to_string()),
    );
    cells.push(match point.met {
        None => String::new(),
        Some(met) => u8::from(met).to_string(),
    });
    cells.push(u8::from(point.client_limited).to_string());
    cells.push(step.run.verdict.state.id().to_owned());
    cells.join(",")
}
