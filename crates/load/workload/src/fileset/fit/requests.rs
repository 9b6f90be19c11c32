//! Requests compared with a model: targets, frequencies, order and times.

use super::{FigureUnit, Fit, FitCheck, FitModel, Plot, RANKS_LAMBDA_MAX};
use super::{above, at, llcd, places};
use crate::fileset::surge::{self, Group};
use crate::fileset::{
    FileSet, Law, Matching, Sequence, SequenceError, SequenceOptions, SequenceStep, Spec, sequence,
};
use crate::fileset::{specweb99, webbench, webstone};
use stats::fit;
use std::collections::HashMap;

/// Requested targets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Requests {
    /// Distinct paths, without queries.
    pub targets: Vec<String>,
    /// Rows of the targets in the order of the requests.
    pub order: Vec<u32>,
    /// Body sizes of completely sent responses; `None` if only the model knows them.
    pub sizes: Option<Vec<u64>>,
    /// OFF times, in seconds.
    pub offs_s: Vec<f64>,
    /// Times between consecutive requests of a client, in seconds, if nothing else shows OFF times.
    pub gaps_s: Vec<f64>,
    /// Requests per time cell, and the length of a cell in seconds; empty if times are unknown.
    pub cells: Vec<f64>,
    pub cell_s: f64,
}

/// Minimum number of usable requests.
const REQUESTS_MIN: usize = 1_000;
/// Maximum number of requests of the model's sequence built for comparison.
const REFERENCE_MAX: u64 = 1_000_000;
/// Maximum share of requests for files that the model does not have.
const ELSEWHERE_MAX: f64 = 0.05;
/// Tolerance of the exponent of Zipf's law.
const EXPONENT_OFF: f64 = 0.15;
/// Tolerance of quantiles of the requested sizes: one file may have a tenth of all requests, so
/// that a quantile moves by a factor of two from seed to seed.
const SIZE_FACTOR: f64 = 2.0;
/// Tolerances of quantiles of stack distances up to p90, and beyond (the reference values'
/// tolerances).
const DEPTH_FACTOR: f64 = 1.15;
const DEEP_FACTOR: f64 = 1.3;
/// Value of H above which there are bursts at every scale.
const HURST_MIN: f64 = 0.6;
/// Number of seconds that a variance–time plot needs.
const HURST_S: f64 = 600.0;
/// Seconds above which a gap is an OFF time instead of a pause inside a page.
const IDLE_MIN: f64 = 10.0;
/// Tolerance of the exponent of idle times.
const IDLE_OFF: f64 = 0.3;
/// Minimum number of usable OFF times.
const OFFS_MIN: usize = 200;

/// Compares every property of the requests.
pub fn fit_requests(model: &FitModel, requests: &Requests) -> Fit {
    let reference = Reference::new(model, requests);
    let no_reference = reference.sequence.as_ref().err().cloned();
    let mut fit = Fit { no_reference, ..Fit::default() };
    if requests.order.len() < REQUESTS_MIN {
        let check = FitCheck::new("popularity", "", requests.order.len());
        fit.checks
            .push(check.undecided_because(format!("at least {REQUESTS_MIN} requests are needed")));
        return fit;
    }
    let rows = RowsOfSet::new(&reference.set, &requests.targets);
    sizes(&mut fit, model, requests, &reference, &rows);
    match model.spec {
        Spec::Surge { .. } => fit_surge(&mut fit, model, requests, &reference, &rows),
        Spec::Specweb99 { directories } => fit_specweb99(&mut fit, requests, &rows, directories),
        Spec::Webstone => {
            let shares = webstone::weights().map(|weight| weight / 1_000.0);
            by_class(&mut fit, "five files by their weights", requests, &rows, &shares, |row| row);
        }
        Spec::Webbench { files } => {
            let shares = webbench::SHARES.map(|share| share / 100.0);
            let class =
                |row| (0..8).position(|class| webbench::rows_of(files, class).contains(&row));
            let class = |row: usize| class(row as u64).unwrap_or(8);
            by_class(&mut fit, "nine classes by their shares", requests, &rows, &shares, class);
        }
    }
    arrivals(&mut fit, model, requests);
    fit
}

/// The model's own files, and its own sequence of about as many requests.
struct Reference {
    set: FileSet,
    sequence: Result<Sequence, SequenceError>,
}

impl Reference {
    fn new(model: &FitModel, requests: &Requests) -> Reference {
        let surge = matches!(model.spec, Spec::Surge { .. });
        let wanted = (requests.order.len() as u64).clamp(REQUESTS_MIN as u64, REFERENCE_MAX);
        let options = |requests| SequenceOptions {
            top: model.top,
            matching: model.matching,
            off_times: false,
            requests,
        };
        let made = |requests| sequence(model.spec, &options(requests), model.seed);
        // for SURGE the sequence cannot be longer than its counts give
        let sequence = match made(Some(wanted)) {
            Err(_) if surge => made(None),
            made => made,
        };
        Reference { set: model.spec.set(model.seed), sequence }
    }

    /// Returns the rows of the model's requests, in order; those of missing files are omitted.
    fn order(&self) -> Vec<u32> {
        let steps = self.sequence.iter().flat_map(Sequence::steps);
        steps
            .flat_map(SequenceStep::rows)
            .filter(|row| (*row as usize) < self.set.files().len())
            .collect()
    }
}

/// Row of each target in the model's set; `None` if the model has no such file.
struct RowsOfSet(Vec<Option<usize>>);

impl RowsOfSet {
    fn new(set: &FileSet, targets: &[String]) -> RowsOfSet {
        let known: HashMap<&str, usize> =
            set.files().iter().enumerate().map(|(row, file)| (file.path.as_str(), row)).collect();
        // a site may have the files in a subfolder
        let find = |path: &str| {
            let mut rest = path.trim_start_matches('/');
            loop {
                if let Some(row) = known.get(rest) {
                    return Some(*row);
                }
                rest = rest.split_once('/')?.1;
            }
        };
        RowsOfSet(targets.iter().map(|target| find(target)).collect())
    }

    /// Returns the number of requests of each file of the set, and of requests for other files.
    fn counts(&self, files: usize, order: &[u32]) -> (Vec<u64>, u64) {
        let (mut counts, mut elsewhere) = (vec![0; files], 0);
        for target in order {
            match self.0[*target as usize] {
                Some(row) => counts[row] += 1,
                None => elsewhere += 1,
            }
        }
        (counts, elsewhere)
    }
}

/// Compares the sizes of the requested targets.
fn sizes(
    fit: &mut Fit,
    model: &FitModel,
    requests: &Requests,
    reference: &Reference,
    rows: &RowsOfSet,
) {
    let files = reference.set.files();
    let known = |target: &u32| rows.0[*target as usize].map(|row| files[row].size);
    let found: Vec<u64> = match &requests.sizes {
        Some(sizes) => sizes.clone(),
        None => requests.order.iter().filter_map(known).collect(),
    };
    let mut found: Vec<f64> = found.into_iter().map(|size| size.max(1) as f64).collect();
    let mut wanted: Vec<f64> =
        reference.order().iter().map(|row| files[*row as usize].size as f64).collect();
    found.sort_by(f64::total_cmp);
    wanted.sort_by(f64::total_cmp);
    let text = "as in the model's own sequence";
    let mut check = FitCheck::new("requested sizes", text, found.len());
    if found.len() < REQUESTS_MIN || wanted.is_empty() {
        fit.checks.push(check.undecided_because("too few requests are for files in the model"));
        return;
    }
    let below = |x: f64| wanted.partition_point(|size| *size <= x) as f64 / wanted.len() as f64;
    for share in [0.1, 0.25, 0.5, 0.75, 0.9, 0.95] {
        let (name, bytes) = (format!("p{}", share * 100.0), FigureUnit::Bytes);
        check.within(&name, at(&found, share), at(&wanted, share), SIZE_FACTOR, bytes);
    }
    check.figure("p99", at(&found, 0.99), at(&wanted, 0.99), FigureUnit::Bytes);
    if matches!(model.spec, Spec::Surge { .. }) && model.matching == Matching::Requests {
        check.law = "Pareto, P(X > x) = 1000/x, from 10 KB to 1 MB".to_owned();
        for size in [10_000.0, 30_000.0, 100_000.0, 300_000.0, 1_000_000.0] {
            let share = (found.len() - found.partition_point(|it| *it <= size)) as f64;
            let (share, name) = (share / found.len() as f64, format!("P(X > {size:.0})"));
            // a twentieth of a decade in either direction, the tolerance of the matching
            check.within(&name, share, 1_000.0 / size, 1.122, FigureUnit::Share);
        }
    }
    fit.plots.extend(llcd("asked", "Requested sizes: P(X > x)", "bytes", &found, below));
    fit.checks.push(check);
}

fn fit_surge(
    fit: &mut Fit,
    model: &FitModel,
    requests: &Requests,
    reference: &Reference,
    rows: &RowsOfSet,
) {
    let (counts, elsewhere) = rows.counts(reference.set.files().len(), &requests.order);
    let strange = elsewhere as f64 / requests.order.len() as f64;
    let counts = if strange <= ELSEWHERE_MAX {
        // embedded files take their requests from the pages that they are in
        let Spec::Surge { files } = model.spec else { return };
        let groups = surge::Files::new(files as usize, model.seed).groups;
        let own = |(_, group): &(&u64, &Group)| **group != Group::Embedded;
        counts.iter().zip(&groups).filter(own).map(|(count, _)| *count).collect()
    } else {
        let mut counts = vec![0_u64; requests.targets.len()];
        requests.order.iter().for_each(|target| counts[*target as usize] += 1);
        counts
    };
    zipf(fit, "Zipf: the file of rank r is requested 1/r times as often as the first", counts);
    depths(fit, requests, reference);
    off_times(fit, model, requests);
}

/// Counts by rank against 1/rank.
fn zipf(fit: &mut Fit, law: &str, mut counts: Vec<u64>) {
    counts.retain(|count| *count > 0);
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let total = counts.iter().sum::<u64>() as f64;
    let mut check = FitCheck::new("popularity", law, counts.len());
    check.lambda_max = RANKS_LAMBDA_MAX;
    let harmonic: f64 = (1..=counts.len()).map(|rank| 1.0 / rank as f64).sum();
    // ranks 1, 2 to 3, 4 to 7, …
    let (mut octaves, mut shares) = (Vec::new(), Vec::new());
    for (row, count) in counts.iter().enumerate() {
        let octave = (row + 1).ilog2() as usize;
        if octaves.len() == octave {
            octaves.push(0);
            shares.push(0.0);
        }
        octaves[octave] += count;
        shares[octave] += 1.0 / (row + 1) as f64 / harmonic;
    }
    check.bins(&octaves, &shares);
    let often = counts.iter().take_while(|count| **count >= 5);
    let logs: Vec<(f64, f64)> = (1..)
        .zip(often)
        .map(|(rank, count)| (f64::from(rank).ln(), (*count as f64).ln()))
        .collect();
    if logs.len() < 10 {
        fit.checks.push(
            check.undecided_because("fewer than ten of them were requested five times or more"),
        );
        return;
    }
    let exponent = -fit::slope(&logs);
    check.figure("exponent", exponent, 1.0, FigureUnit::Number);
    if (exponent - 1.0).abs() > EXPONENT_OFF {
        check.against.push(format!("the exponent is {exponent:.2}, not 1 ± {EXPONENT_OFF}"));
    }
    let ranks: Vec<f64> = places(1.0, counts.len() as f64).into_iter().map(f64::round).collect();
    let mut ranks = ranks;
    ranks.dedup();
    fit.plots.push(Plot {
        id: "popularity",
        title: "Requests by rank",
        across: "rank",
        across_seconds: false,
        along_share: false,
        found: ranks.iter().map(|rank| Some(counts[*rank as usize - 1] as f64)).collect(),
        model: ranks.iter().map(|rank| Some(total / harmonic / rank)).collect(),
        at: ranks,
        model_name: "Zipf",
    });
    fit.checks.push(check);
}

/// Compares the depth of each request's target in a stack of recently requested ones with the
/// model's.
fn depths(fit: &mut Fit, requests: &Requests, reference: &Reference) {
    let sorted = |order: &[u32], count: usize| {
        let mut depths = fit::stack_distances(order, count);
        depths.sort_unstable();
        depths.into_iter().map(f64::from).collect::<Vec<f64>>()
    };
    let found = sorted(&requests.order, requests.targets.len());
    let wanted = sorted(&reference.order(), reference.set.files().len());
    let text = "as in the model's own sequence";
    let mut check = FitCheck::new("stack distances", text, found.len());
    if found.len() < REQUESTS_MIN || wanted.is_empty() {
        fit.checks.push(check.undecided_because("too few requests are repeated"));
        return;
    }
    for (share, factor) in
        [(0.25, DEPTH_FACTOR), (0.5, DEPTH_FACTOR), (0.75, DEPTH_FACTOR), (0.9, DEPTH_FACTOR)]
            .into_iter()
            .chain([(0.95, DEEP_FACTOR), (0.99, DEEP_FACTOR)])
    {
        // from 1, so that a depth of zero has a ratio
        let (name, number) = (format!("p{}", share * 100.0), FigureUnit::Number);
        check.within(&name, at(&found, share) + 1.0, at(&wanted, share) + 1.0, factor, number);
    }
    let deepest = found.last().copied().unwrap_or(1.0).max(2.0);
    let at = places(1.0, deepest);
    fit.plots.push(Plot {
        id: "depths",
        title: "Stack distances: P(X > x)",
        across: "distance",
        across_seconds: false,
        along_share: true,
        found: above(&found, &at),
        model: above(&wanted, &at),
        at,
        model_name: "model",
    });
    fit.checks.push(check);
}

/// Compares the times between two steps of a user with SURGE's law.
fn off_times(fit: &mut Fit, model: &FitModel, requests: &Requests) {
    let law: Law = surge::off_times();
    let text = "Pareto, k = 1 s, a = 1.4, up to half an hour";
    if requests.offs_s.is_empty() && requests.gaps_s.is_empty() {
        return;
    }
    if requests.offs_s.is_empty() {
        // a log includes the server's time and the pauses inside pages: only the tail is comparable
        let mut gaps: Vec<f64> = requests.gaps_s.clone();
        gaps.retain(|gap| *gap > IDLE_MIN && *gap <= 1_800.0);
        gaps.sort_by(f64::total_cmp);
        let mut check = FitCheck::new("OFF times", format!("{text}; its tail"), gaps.len());
        if gaps.len() < OFFS_MIN {
            let why = format!("at least {OFFS_MIN} gaps of a client above {IDLE_MIN} s are needed");
            fit.checks.push(check.undecided_because(why));
            return;
        }
        let exponent = fit::hill(gaps.iter().copied(), IDLE_MIN).unwrap_or(f64::NAN);
        check.figure("exponent", exponent, 1.4, FigureUnit::Number);
        if (exponent - 1.4).abs() > IDLE_OFF {
            check.against.push(format!("the exponent is {exponent:.2}, not 1.4 ± {IDLE_OFF}"));
        }
        let tail = |x: f64| 1.0 - (1.0 - law.cdf(x)) / (1.0 - law.cdf(IDLE_MIN));
        let title = "Gaps of a client above 10 s: P(X > x)";
        fit.plots.extend(llcd("offs", title, "seconds", &gaps, tail));
        fit.checks.push(check);
        return;
    }
    let mut offs = requests.offs_s.clone();
    offs.sort_by(f64::total_cmp);
    let mut check = FitCheck::new("OFF times", text, offs.len());
    if offs.len() < OFFS_MIN {
        fit.checks.push(check.undecided_because(format!("at least {OFFS_MIN} of them are needed")));
        return;
    }
    check.follow(&offs, &law, model.seed);
    let exponent = fit::hill(offs.iter().copied(), 1.0).unwrap_or(f64::NAN);
    check.figure("exponent", exponent, 1.4, FigureUnit::Number);
    for share in [0.5, 0.9, 0.99] {
        let name = format!("p{}", share * 100.0);
        check.figure(name, at(&offs, share), law.quantile(share), FigureUnit::Seconds);
    }
    fit.plots.extend(llcd("offs", "OFF times: P(X > x)", "seconds", &offs, |x| law.cdf(x)));
    fit.checks.push(check);
}

/// Requests by classes of files; requests for other files are the last class, if there is one for
/// them.
fn by_class(
    fit: &mut Fit,
    law: &str,
    requests: &Requests,
    rows: &RowsOfSet,
    shares: &[f64],
    class: impl Fn(usize) -> usize,
) {
    let mut check = FitCheck::new("popularity", law, requests.order.len());
    let (mut counts, mut elsewhere) = (vec![0_u64; shares.len()], 0_u64);
    let absent = (shares.len() == webbench::SHARES.len()).then_some(shares.len() - 1);
    for target in &requests.order {
        match rows.0[*target as usize].map(&class).or(absent) {
            Some(class) => counts[class] += 1,
            None => elsewhere += 1,
        }
    }
    let total = requests.order.len() as f64;
    for (number, (count, share)) in (1..).zip(counts.iter().zip(shares)) {
        let name = format!("class {number}");
        check.figure(name, *count as f64 / total, *share, FigureUnit::Share);
    }
    check.bins(&counts, shares);
    not_elsewhere(&mut check, elsewhere, requests.order.len());
    fit.checks.push(check);
}

fn not_elsewhere(check: &mut FitCheck, elsewhere: u64, all: usize) {
    let share = elsewhere as f64 / all as f64;
    check.figure("for other files", share, 0.0, FigureUnit::Share);
    if share > ELSEWHERE_MAX {
        check.against.push(format!(
            "{elsewhere} requests are for files that the model does not \
            have"
        ));
    }
}

fn fit_specweb99(fit: &mut Fit, requests: &Requests, rows: &RowsOfSet, directories: u64) {
    let (counts, elsewhere) = rows.counts(directories as usize * 36, &requests.order);
    let by = |size: usize, part: &dyn Fn(usize) -> usize| {
        let mut sums = vec![0_u64; size];
        for (row, count) in counts.iter().enumerate() {
            sums[part(row)] += count;
        }
        sums
    };
    let total = counts.iter().sum::<u64>().max(1) as f64;
    let mut check = FitCheck::new("classes", "35, 50, 14 and 1 %", requests.order.len());
    let classes = by(4, &|row| row / 9 % 4);
    let shares = specweb99::class_shares();
    for (class, (count, share)) in classes.iter().zip(&shares).enumerate() {
        check.figure(format!("class {class}"), *count as f64 / total, *share, FigureUnit::Share);
    }
    check.bins(&classes, &shares);
    not_elsewhere(&mut check, elsewhere, requests.order.len());
    fit.checks.push(check);
    let text = "3.9, 5.9, 8.8, 17.7, 35.3, 11.8, 7.1, 5.0 and 4.4 %";
    let mut check = FitCheck::new("files of a class", text, requests.order.len());
    let files = by(9, &|row| row % 9);
    let shares = specweb99::file_shares();
    for (file, (count, share)) in files.iter().zip(&shares).enumerate() {
        check.figure(format!("file {file}"), *count as f64 / total, *share, FigureUnit::Share);
    }
    check.bins(&files, &shares);
    fit.checks.push(check);
    let law = "Zipf over the directories";
    zipf(fit, law, by(directories as usize, &|row| row / 36));
}

/// Tests the burstiness of the requests: the variance of their counts over increasing spans.
fn arrivals(fit: &mut Fit, model: &FitModel, requests: &Requests) {
    if requests.cells.is_empty() {
        return;
    }
    let rests = matches!(model.spec, Spec::Surge { .. });
    let law = match rests {
        true => "users with pauses: self-similar, Hurst above 0.6",
        false => "clients without pauses: the server's pace, no law",
    };
    let mut check = FitCheck::new("arrivals", law, requests.order.len());
    let cells_min = (HURST_S / requests.cell_s) as usize;
    let Some(found) = fit::variance_time(&requests.cells, cells_min) else {
        fit.checks.push(check.undecided_because("at least ten minutes are needed"));
        return;
    };
    check.figure("Hurst", found.hurst, if rests { 0.8 } else { 0.5 }, FigureUnit::Number);
    if rests && found.hurst <= HURST_MIN {
        check.against.push(format!("Hurst is {:.2}, not above {HURST_MIN}", found.hurst));
    }
    let spans = |points: &[(usize, f64)]| -> Vec<f64> {
        points.iter().map(|(cells, _)| *cells as f64 * requests.cell_s).collect()
    };
    fit.plots.push(Plot {
        id: "variance",
        title: "Variance of the number of requests, by the length of the span",
        across: "span",
        across_seconds: true,
        along_share: false,
        at: spans(&found.points),
        found: found.points.iter().map(|(_, share)| Some(*share)).collect(),
        model: found.points.iter().map(|(cells, _)| Some(1.0 / *cells as f64)).collect(),
        model_name: "Poisson (slope −1)",
    });
    fit.checks.push(check);
}
