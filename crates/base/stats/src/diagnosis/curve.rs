//! Bottlenecks of a server, from its whole curve: several loads against one target.

use super::rules::{CONTENTION, POOL, SERIAL};
use super::shape::mean;
use super::{Confidence, Diagnosis, Evidence, View, of_run, ranked};
use crate::curve::Usl;
use units::{Nanos, show};

/// Minimum time of a single call for counting workers: a shorter time is lost in noise.
const ALONE_MIN_S: f64 = 0.001;
/// A plateau: the throughputs of its steps differ by at most this share.
const FLAT_MAX: f64 = 0.07;
/// Calls in flight per worker from which a step is on the plateau.
const CROWD_MIN: f64 = 2.0;
/// Share of the peak that a falling curve loses at the highest load.
const LOSS_MIN: f64 = super::rules::COHERENCY_LOSS_MIN;
/// Findings of single steps that a whole curve decides better.
const DECIDED: &[&str] = &["serial-handler", "worker-pool", "cpu-contention", "rate-limit"];

/// Returns the server's bottlenecks, most certain first, from the steps of a ramp against one
/// target in the order of their loads, and the law fitted to them.
///
/// A finding of a single step counts with the number of steps that show it. Steps limited by the
/// client only yield that finding.
pub fn of_ramp(steps: &[Evidence<'_>], usl: Option<&Usl>) -> Vec<Diagnosis> {
    let mut found: Vec<(Diagnosis, usize)> = Vec::new();
    let levels = levels(steps);
    let of_curve = of_curve(&levels, usl);
    for one in steps.iter().flat_map(of_run) {
        let sure = one.confidence == Confidence::Certain && one.rule.id == CONTENTION.id;
        if of_curve.is_some() && DECIDED.contains(&one.rule.id) && !sure {
            continue;
        }
        match found.iter_mut().find(|(known, _)| known.rule.id == one.rule.id) {
            Some((known, count)) => {
                *count += 1;
                if one.confidence > known.confidence {
                    *known = one;
                }
            }
            None => found.push((one, 1)),
        }
    }
    let describe = |(mut one, count): (Diagnosis, usize)| {
        one.evidence = format!("{} (seen at {count} of {} steps)", one.evidence, steps.len());
        one
    };
    let mut all: Vec<Diagnosis> = of_curve.into_iter().collect();
    all.extend(found.into_iter().map(describe));
    let mut all = ranked(all);
    if steps.iter().any(server_fails) {
        // the limit shows in the server's failures; the client's lateness explains nothing
        all.sort_by_key(|one| one.rule.id == "client-limited");
    }
    all
}

/// Returns whether calls of the step fail through the server's fault.
fn server_fails(step: &Evidence<'_>) -> bool {
    let total = &step.measurement.total;
    let failures = total.failures.iter();
    let failed: u64 = failures
        .filter(|(class, _)| class.blame() == sample::Blame::Server)
        .map(|(_, count)| count)
        .sum();
    failed as f64 > crate::curve::FAILURES_MAX * total.counts.done() as f64
}

/// One step as used for the curve.
#[derive(Clone, Copy, Debug)]
struct Level {
    concurrency: f64,
    throughput: f64,
    service_s: f64,
}

fn levels(steps: &[Evidence<'_>]) -> Vec<Level> {
    let views = steps.iter().map(View::new);
    let usable = views.filter(|view| {
        let limited = of_run(view.evidence).iter().any(|one| one.rule.id == "client-limited");
        view.enough() && view.evidence.one_by_one && !limited
    });
    let mut levels: Vec<Level> = usable
        .map(|view| Level {
            concurrency: view.concurrency,
            throughput: view.throughput,
            service_s: view.service().mean().as_secs_f64(),
        })
        .collect();
    levels.sort_by(|a, b| a.concurrency.total_cmp(&b.concurrency));
    levels
}

fn of_curve(levels: &[Level], usl: Option<&Usl>) -> Option<Diagnosis> {
    let low = levels.first().filter(|_| levels.len() >= 3)?;
    let high = levels.last()?;
    // the lowest step gives the time of a single call, if calls hardly overlap in it
    if low.service_s < ALONE_MIN_S || low.concurrency > 1.6 || high.concurrency < 3.0 {
        return None;
    }
    let peak = levels.iter().map(|level| level.throughput).fold(0.0, f64::max);
    falling(levels, peak, usl).or_else(|| plateau(levels, low, peak))
}

/// Detects that throughput falls again, step by step, past its peak.
fn falling(levels: &[Level], peak: f64, usl: Option<&Usl>) -> Option<Diagnosis> {
    let top = levels.iter().position(|level| level.throughput >= peak)?;
    let past = &levels[top..];
    let falls = past.windows(2).all(|pair| pair[1].throughput <= pair[0].throughput * 1.01);
    let last = past.last().filter(|_| past.len() >= 2 && falls)?;
    let loss = 1.0 - last.throughput / peak;
    if loss < LOSS_MIN {
        return None;
    }
    let mut evidence = format!(
        "throughput peaks at {} with {:.1} calls in flight and falls by {} to {} with {:.1}",
        show::rate(peak),
        levels[top].concurrency,
        show::share(loss),
        show::rate(last.throughput),
        last.concurrency
    );
    if let Some(usl) = usl {
        evidence += &format!(
            "; the scalability law fits with contention {:.3} and coherency {:.5}",
            usl.a.at, usl.b.at
        );
    }
    Some(Diagnosis { rule: &CONTENTION, confidence: Confidence::Likely, evidence })
}

/// Detects that throughput is constant while calls wait: the number of workers.
fn plateau(levels: &[Level], low: &Level, peak: f64) -> Option<Diagnosis> {
    // the lowest step may have a little queueing, so its throughput counts too
    let alone_s = low.service_s.min(low.concurrency / low.throughput);
    let workers = peak * alone_s;
    let on_it: Vec<&Level> =
        levels.iter().filter(|level| level.concurrency >= CROWD_MIN * workers.max(1.0)).collect();
    let flat = on_it.iter().all(|level| (level.throughput / peak - 1.0).abs() <= FLAT_MAX);
    let last = on_it.last()?;
    let follows = last.service_s / alone_s >= 0.7 * last.concurrency / workers;
    if on_it.len() < 2 || !flat || !follows || workers < 0.6 {
        return None;
    }
    let rate = mean(&on_it.iter().map(|level| level.throughput).collect::<Vec<f64>>());
    let workers = (rate * alone_s).round().max(1.0);
    let rule = if workers < 2.0 { &SERIAL } else { &POOL };
    let evidence = format!(
        "throughput stays at {} from {:.1} to {:.1} calls in flight, while the service time grows \
         from {} to {}: about {workers} {} work",
        show::rate(rate),
        on_it[0].concurrency,
        last.concurrency,
        show::duration(Nanos::from_secs_f64(alone_s)),
        show::duration(Nanos::from_secs_f64(last.service_s)),
        if workers < 2.0 { "worker does the" } else { "workers do the" }
    );
    let confidence = if on_it.len() >= 3 { Confidence::Certain } else { Confidence::Likely };
    Some(Diagnosis { rule, confidence, evidence })
}
