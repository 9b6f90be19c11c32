//! The steps as a table.

use crate::page::text::layout::Page;
use crate::ramp::answer::axis_word;
use crate::ramp::{Purpose, RampRecord, RampStepRecord, blamed, load};
use crate::words::{self, printable};
use sample::Blame;
use stats::curve::{Axis, CapacityEnd, OverloadShape};
use stats::{Hist, samples_needed};
use units::show;

/// Steps whose client-side causes are told one by one.
const CAUSES_MAX: usize = 5;

const SECTIONS: [(&str, &[Purpose]); 4] = [
    ("Steps", &[Purpose::Up]),
    ("Search", &[Purpose::Search, Purpose::Confirm]),
    ("Way down", &[Purpose::Down]),
    ("Overload and recovery", &[Purpose::Overload, Purpose::Recovery]),
];

const BLAMES: [Blame; 4] = [Blame::Server, Blame::Path, Blame::Driver, Blame::Plan];

/// All steps of one target, by what they were for and by load.
pub(super) fn steps(page: &mut Page, report: &RampRecord, row: usize) {
    let mut limited = Vec::new();
    for (name, purposes) in SECTIONS {
        let of = |step: &&RampStepRecord| purposes.contains(&step.purpose);
        let mut steps: Vec<&RampStepRecord> = report.steps_of(row).filter(of).collect();
        if steps.is_empty() {
            continue;
        }
        // in the table by load; the order they were run in is that of the JSON
        steps.sort_by(|a, b| {
            let later = |step: &RampStepRecord| step.purpose == Purpose::Recovery;
            let order = later(a).cmp(&later(b));
            order.then(a.level.total_cmp(&b.level))
        });
        limited.extend(steps.iter().copied().filter(|step| step.client_limited));
        section(page, report, row, name, &steps);
    }
    legend(page, report, row, &limited);
}

fn section(
    page: &mut Page,
    report: &RampRecord,
    row: usize,
    name: &str,
    steps: &[&RampStepRecord],
) {
    let label = match report.labels.len() > 1 {
        true => format!("  {}", printable(&report.labels[row], 50)),
        false => String::new(),
    };
    page.heading(&format!("{name}{label}"));
    let first = match report.axis {
        Axis::Rate => "offered/s",
        other => axis_word(other),
    };
    page.line(&line("", first, ["achieved", "goodput", "p50", "p99", "p99.9", "conns"], "failed"));
    let mut before = f64::NAN;
    for step in steps {
        let same = (step.level - before).abs() <= 1e-6 * before.abs();
        before = step.level;
        let level = if same { String::new() } else { bare(report.axis, step.level) };
        let response = step.run.response();
        let cells = [
            &per_s(step.point().achieved_per_s),
            &per_s(step.point().goodput_per_s),
            &quantile(&response, 0.5),
            &quantile(&response, 0.99),
            &quantile(&response, 0.999),
            &show::count(step.run.connections.peak),
        ];
        let failed = failures(step);
        let told = failed.first().map_or("0", String::as_str);
        page.line(&line(mark(step), &level, cells.map(String::as_str), told));
        for more in failed.iter().skip(1) {
            page.line(&line("", "", [""; 6], more));
        }
    }
}

/// The columns, 80 characters at most in all.
fn line(mark: &str, level: &str, cells: [&str; 6], failed: &str) -> String {
    let [achieved, goodput, p50, p99, p99_9, peak] = cells;
    format!(
        "{mark:1} {level:>9} {achieved:>9} {goodput:>9} {p50:>8} {p99:>8} {p99_9:>8} {peak:>6}  \
         {failed}"
    )
}

/// `*` where the client set the limit; else whether the objectives were kept.
fn mark(step: &RampStepRecord) -> &'static str {
    match (step.client_limited, step.met) {
        (true, _) => "*",
        (false, Some(true)) => "✓",
        (false, Some(false)) => "✗",
        (false, None) => "",
    }
}

/// A load without its unit, which the head of the column tells.
fn bare(axis: Axis, level: f64) -> String {
    let text = load(axis, level);
    if !axis.is_load() {
        return text.replace(' ', "");
    }
    text.trim_end_matches("/s").split(' ').next().unwrap_or_default().to_owned()
}

fn per_s(rate: f64) -> String {
    show::rate(rate).trim_end_matches("/s").to_owned()
}

/// `-` where there are too few samples to say.
fn quantile(hist: &Hist, q: f64) -> String {
    match hist.count() >= samples_needed(q) {
        true => show::duration(hist.quantile(q)),
        false => "-".to_owned(),
    }
}

/// `12 server`, one for each who is to blame.
fn failures(step: &RampStepRecord) -> Vec<String> {
    let told = |blame: Blame| match blamed(step, blame) {
        0 => None,
        count => Some(format!("{} {}", show::count(count), blame.id())),
    };
    BLAMES.into_iter().filter_map(told).collect()
}

fn legend(page: &mut Page, report: &RampRecord, row: usize, limited: &[&RampStepRecord]) {
    if report.steps_of(row).any(|step| step.met.is_some()) {
        page.line("  ✓ objectives kept   ✗ missed");
    }
    if limited.is_empty() {
        return;
    }
    page.line("  * the client was late, or at its own limit: used in no figure above");
    for step in limited.iter().take(CAUSES_MAX) {
        let cause = step.run.verdict.causes.first();
        let why = cause.map_or_else(String::new, |cause| format!("{}: {}", cause.id, cause.text));
        let level = load(report.axis, step.level);
        page.wrapped("    ", &format!("{level}: {}", printable(&why, 300)));
    }
    if limited.len() > CAUSES_MAX {
        page.line(&format!("    and {} more", limited.len() - CAUSES_MAX));
    }
}

/// The targets of one session, a row each.
pub(super) fn side_by_side(page: &mut Page, report: &RampRecord) {
    page.heading("Side by side");
    let head = ["", "peak", "knee", "capacity", "kept", "recovery"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for (label, curve) in report.labels.iter().zip(&report.curves()) {
        let axis = report.axis;
        let or = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let capacity = curve.capacity.as_ref().map(|found| match found.how {
            CapacityEnd::Bracketed => load(axis, found.at.at),
            CapacityEnd::NeverMet => "none".to_owned(),
            CapacityEnd::NeverMissed | CapacityEnd::ClientLimited => {
                format!("> {}", load(axis, found.at.at))
            }
        });
        let overload = &curve.overload;
        let kept =
            (overload.shape != OverloadShape::Unseen).then(|| show::share(overload.kept_share));
        let recovery = match overload.recovery_s {
            s if s.is_nan() => None,
            s if s.is_finite() => Some(words::seconds(s)),
            _ => Some("not seen".to_owned()),
        };
        rows.push(vec![
            printable(label, 40),
            or(curve.peak.map(|peak| format!("{}/s", per_s(peak.at.round())))),
            or(curve.knee.as_ref().map(|knee| load(axis, knee.at.at))),
            or(capacity),
            or(kept),
            or(recovery),
        ]);
    }
    page.table(&rows);
}
