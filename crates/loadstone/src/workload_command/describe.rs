//! `loadstone workload describe`: a server's access log in figures.

use super::access_log::{broken, lines, open, without_requests};
use crate::exit::{Code, Failure};
use crate::files;
use args::DescribeArgs;
use import::access_log::{Counted, Describer, Description, Model};
use std::fmt::Write as _;
use units::{Nanos, show};

pub(super) fn describe(args: &DescribeArgs) -> Result<Code, Failure> {
    let mut describer = Describer::new(args.pause);
    lines(&args.log, &mut open(&args.log)?, &mut |line| {
        describer.line(line);
        Ok(())
    })?;
    let found = describer.finish();
    let broken = broken(found.broken, found.first_broken.as_ref());
    if found.requests == 0 {
        return Err(without_requests(&args.log, &broken));
    }
    let text = summary(&found, args.pause);
    files::write_stdout(&text).map_err(|error| Failure::not_written(&error))?;
    if found.broken > 0 {
        crate::print_message(broken.trim_start_matches("; "));
    }
    Ok(Code::Done)
}

fn summary(found: &Description, pause: Nanos) -> String {
    let count = |n: u64| show::count(n);
    let mut rows = vec![
        (
            "Requests",
            format!(
                "{} for {}{} targets by {}{} in {}",
                count(found.requests),
                about(found.targets),
                count(found.targets.count),
                about(found.clients),
                record::words::counted(found.clients.count, "client"),
                show::duration(found.span)
            ),
        ),
        ("Load", advice(found)),
        (
            "Visits",
            format!(
                "{}{} of {:.1} requests, the mean (median {}, longest {}), separated by pauses \
                 above {}",
                about(found.visits),
                count(found.visits.count),
                found.mean_visit,
                count(found.median_visit),
                count(found.longest_visit),
                show::duration(pause)
            ),
        ),
    ];
    rows.extend(arrivals(found).map(|text| ("Arrivals", text)));
    rows.push(("Popularity", popularity(found)));
    let classes = found.statuses.iter().zip(1..).filter(|(n, _)| **n > 0);
    let classes: Vec<String> =
        classes.map(|(n, class)| format!("{class}xx {}", count(*n))).collect();
    rows.push(("Statuses", classes.join(", ")));
    let [p10, p50, p90, p99] = found.sizes.map(show::bytes);
    rows.push(("Sizes", format!("p10 {p10}, p50 {p50}, p90 {p90}, p99 {p99}")));
    rows.extend(approximate(found).map(|text| ("Approximate", text)));
    let mut text = String::new();
    for (name, row) in rows {
        writeln!(text, "{name:<12}{row}").expect("a String accepts all text");
    }
    text
}

fn advice(found: &Description) -> String {
    match found.model {
        Model::Open => {
            "open: visits are short, and new ones arrive regardless of the server; run \
                        --rate, or import --by requests"
        }
        Model::Closed => {
            "closed: visits are long, and a slow server slows its users down; run -c, \
                          or import --by visits"
        }
        Model::PartlyOpen => {
            "partly open: visits arrive independently, and then wait for responses; \
                              run --session, or import --by visits"
        }
    }
    .to_owned()
}

fn arrivals(found: &Description) -> Option<String> {
    let arrivals = found.arrivals?;
    let hurst = arrivals.hurst.map_or_else(String::new, |hurst| {
        let like = if hurst > 0.6 { "bursts at every scale" } else { "as Poisson's" };
        format!(", Hurst {hurst:.2} ({like})")
    });
    Some(format!(
        "{}, {}/s in the busiest second; variance over mean {:.2} (Poisson 1){hurst}",
        show::rate(arrivals.mean),
        show::count(arrivals.peak),
        arrivals.dispersion
    ))
}

fn popularity(found: &Description) -> String {
    let (share, error) = found.top_tenth;
    let mut top = show::share(share);
    if error > 0.0 {
        write!(top, " (± {})", margin(error)).expect("a String accepts all text");
    }
    let top = format!("the most popular tenth of the targets has {top} of the requests");
    match found.zipf {
        Some(exponent) => format!("rank^-{exponent:.2} (Zipf 1); {top}"),
        None => top,
    }
}

fn about(counted: Counted) -> &'static str {
    if counted.error > 0.0 { "about " } else { "" }
}

/// Formats two standard errors: in 95 % of samples, the estimate is off by at most this.
fn margin(error: f64) -> String {
    show::share(2.0 * error)
}

/// Lists inexact figures with their error bounds; `None` if all are exact.
fn approximate(found: &Description) -> Option<String> {
    let mut parts = Vec::new();
    let sampled = |counted: &Counted| (counted.error > 0.0).then_some(counted.weight);
    if let Some(weight) = sampled(&found.targets) {
        parts.push(format!(
            "targets and popularity are of one target in {} (number of targets ± {})",
            show::count(weight),
            margin(found.targets.error)
        ));
    }
    if let Some(weight) = sampled(&found.clients) {
        parts.push(format!(
            "clients and visits are of one client in {} (numbers ± {} and ± {}; the longest visit is one of \
             these)",
            show::count(weight),
            margin(found.clients.error),
            margin(found.visits.error)
        ));
    }
    if found.late > 0 {
        let requests = record::words::counted(found.late, "request");
        parts.push(format!("{requests} more than an hour out of order, in another second"));
    }
    (!parts.is_empty()).then(|| format!("{}; all else is exact", parts.join("; ")))
}
