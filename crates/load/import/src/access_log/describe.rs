//! Figures that describe the load of a log. The log is read once, in bounded memory: if it has more
//! clients or targets than are kept, a sample is counted, and the figures that follow from it have
//! an error.

use crate::access_log::cells::{Arrivals, SampledCells};
use crate::access_log::line::without_marks;
use crate::access_log::sketch::{Frequent, KEPT_MAX, Sampled, hash};
use crate::access_log::{Entry, LineError, parse_line};
use std::collections::BTreeMap;
use units::Nanos;

/// Figures of a log.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Description {
    pub requests: u64,
    pub targets: Counted,
    pub clients: Counted,
    /// Time from the first request to the last.
    pub span: Nanos,
    pub visits: Counted,
    /// Mean number of requests of a visit, one or more.
    pub mean_visit: f64,
    pub median_visit: u64,
    /// Longest of the counted visits.
    pub longest_visit: u64,
    pub model: Model,
    /// Exponent s of counts that fall as rank^−s, by least squares over the logarithms of the ranks
    /// with five requests or more; `None` for fewer than ten ranks.
    pub zipf: Option<f64>,
    /// Share of all requests for the most popular tenth of the targets, 0..=1, and its standard
    /// error.
    pub top_tenth: (f64, f64),
    /// Requests by the first digit of their status, 1 to 5; other statuses are not counted.
    pub statuses: [u64; 5],
    /// Sizes of response bodies at 10, 50, 90 and 99 %, in bytes.
    pub sizes: [u64; 4],
    /// Arrivals of requests; `None` if no whole second has any.
    pub arrivals: Option<Arrivals>,
    /// Number of requests more than an hour out of order, which are counted in another second.
    pub late: u64,
    /// Number of invalid lines, and the first of them: its number, and the reason.
    pub broken: u64,
    pub first_broken: Option<(u64, LineError)>,
}

/// Number of distinct items.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counted {
    pub count: u64,
    /// Standard error as a share of the count; 0: it is exact.
    pub error: f64,
    /// Number of items that each counted item represents.
    pub weight: u64,
}

/// The load model that behaves like the log's users.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Model {
    /// Visits are short: about five requests or fewer.
    #[default]
    Open,
    /// Visits are long: ten requests or more.
    Closed,
    /// Visits are neither short nor long.
    PartlyOpen,
}

/// Visits with a mean of this many requests or fewer behave like an open load, with that many or
/// more like a closed load (Schroeder, Wierman and Harchol-Balter, NSDI 2006).
const OPEN_MAX: f64 = 5.0;
const CLOSED_MIN: f64 = 10.0;
/// Minimum number of requests of a rank: fewer are weak evidence for the law.
const COUNT_MIN: u64 = 5;
const RANKS_MIN: f64 = 10.0;

/// Reads a log line by line and collects its figures.
#[derive(Debug)]
pub struct Describer {
    /// Pause that ends a visit.
    pause: Nanos,
    lines: u64,
    found: Description,
    fine: bool,
    first: Option<Nanos>,
    /// Earliest times, before and after the first line.
    earliest: i64,
    latest: i64,
    clients: Sampled<OpenVisit>,
    visits: Visits,
    targets: Sampled<u64>,
    /// The most popular targets, once not all targets are kept.
    popular: Option<Frequent>,
    sizes: Sizes,
    cells: SampledCells,
}

/// A client's latest request, and its requests since the last pause.
#[derive(Debug, Default)]
struct OpenVisit {
    last: i64,
    requests: u32,
}

impl Describer {
    /// Creates the describer; `pause` ends a visit.
    pub fn new(pause: Nanos) -> Describer {
        Describer::keeping(pause, KEPT_MAX)
    }

    /// Limits the kept clients and targets to these numbers.
    fn keeping(pause: Nanos, max: usize) -> Describer {
        Describer {
            pause,
            lines: 0,
            found: Description::default(),
            fine: false,
            first: None,
            earliest: 0,
            latest: 0,
            clients: Sampled::new(max),
            visits: Visits::default(),
            targets: Sampled::new(max),
            popular: None,
            sizes: Sizes::default(),
            cells: SampledCells::default(),
        }
    }

    /// Processes the next line. Empty lines and comments (`#`) are ignored.
    pub fn line(&mut self, line: &str) {
        self.lines += 1;
        let line = without_marks(line);
        if line.trim().is_empty() || line.starts_with('#') {
            return;
        }
        match parse_line(line) {
            Ok(entry) => self.take(&entry),
            Err(error) => {
                self.found.broken += 1;
                self.found.first_broken.get_or_insert((self.lines, error));
            }
        }
    }

    fn take(&mut self, entry: &Entry) {
        self.fine |= entry.fine;
        self.found.requests += 1;
        let class = usize::from(entry.status / 100).wrapping_sub(1);
        if let Some(class) = self.found.statuses.get_mut(class) {
            *class += 1;
        }
        self.sizes.count(u32::try_from(entry.bytes).unwrap_or(u32::MAX), 1);
        let first = *self.first.get_or_insert(entry.at);
        let at = i128::from(entry.at.0) - i128::from(first.0);
        let at = i64::try_from(at).unwrap_or(if at < 0 { i64::MIN } else { i64::MAX });
        self.earliest = self.earliest.min(at);
        self.latest = self.latest.max(at);
        self.cells.count(at);
        self.visit(hash(&entry.client), at);
        self.ask(hash((&entry.method, &entry.target)));
    }

    fn visit(&mut self, client: u64, at: i64) {
        let Some(open) = self.clients.entry(client) else { return };
        if open.requests > 0 && at.saturating_sub(open.last) > self.pause.0.cast_signed() {
            let ended = std::mem::take(&mut open.requests);
            let weight = self.clients.weight();
            self.visits.count(ended, weight);
            return self.visit(client, at);
        }
        open.last = if open.requests == 0 { at } else { open.last.max(at) };
        open.requests = open.requests.saturating_add(1);
    }

    fn ask(&mut self, target: u64) {
        if let Some(count) = self.targets.entry(target) {
            *count += 1;
        }
        if let Some(popular) = &mut self.popular {
            popular.add(target, 1);
        } else if self.targets.weight() > 1 {
            // so far all were kept; the dropped ones were requested less often than most
            let known = self.targets.iter().map(|(target, count)| (target, *count));
            self.popular = Some(Frequent::new(known));
        }
    }

    /// Ends all visits.
    pub fn finish(mut self) -> Description {
        let weight = self.clients.weight();
        for (_, open) in self.clients.iter() {
            self.visits.count(open.requests, weight);
        }
        let mut found = self.found;
        let counted = |(count, error): (u64, f64), weight| Counted { count, error, weight };
        found.clients = counted(self.clients.count(), weight);
        found.targets = counted(self.targets.count(), self.targets.weight());
        found.span = Nanos(self.latest.abs_diff(self.earliest));
        found.visits = self.visits.counted(weight);
        found.mean_visit = self.visits.mean();
        found.median_visit = self.visits.lengths.at(0.5);
        found.longest_visit = u64::from(self.visits.longest);
        found.model = model(found.mean_visit);
        let ranks = Ranks::new(&self.targets, self.popular.as_ref());
        found.zipf = ranks.zipf();
        found.top_tenth = ranks.top_tenth(found.requests);
        found.sizes = [0.1, 0.5, 0.9, 0.99].map(|share| self.sizes.at(share));
        found.late = self.cells.late();
        found.arrivals = self.cells.arrivals(self.fine);
        found
    }
}

/// Visits that have ended, each with the number of visits that it represents.
#[derive(Debug, Default)]
struct Visits {
    lengths: Sizes,
    count: u64,
    requests: u64,
    /// Number of counted visits, without their weights.
    seen: u64,
    longest: u32,
}

impl Visits {
    fn count(&mut self, requests: u32, weight: u64) {
        if requests == 0 {
            return;
        }
        self.lengths.count(requests, weight);
        self.count += weight;
        self.requests += u64::from(requests) * weight;
        self.seen += 1;
        self.longest = self.longest.max(requests);
    }

    fn mean(&self) -> f64 {
        self.requests as f64 / self.count.max(1) as f64
    }

    fn counted(&self, weight: u64) -> Counted {
        let error = if weight == 1 { 0.0 } else { 1.0 / (self.seen.max(1) as f64).sqrt() };
        Counted { count: self.count, error, weight }
    }
}

/// Sizes by their first 12 binary digits, which is exact below 4 KiB and within 0.05 % above. The
/// number of cells is bounded for a log of any length.
#[derive(Debug, Default)]
struct Sizes {
    cells: BTreeMap<u32, u64>,
    sum: u64,
}

impl Sizes {
    fn count(&mut self, size: u32, times: u64) {
        let low = u32::BITS.saturating_sub(size.leading_zeros() + 12);
        *self.cells.entry(size >> low << low).or_default() += times;
        self.sum += times;
    }

    /// Returns the quantile of the sizes; 0 without sizes.
    fn at(&self, share: f64) -> u64 {
        let row = ((self.sum as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        let cell = self.cells.iter().find(|(_, count)| {
            seen += **count;
            seen >= row
        });
        cell.map_or(0, |(size, _)| u64::from(*size))
    }
}

/// Counts of targets, descending, each with the number of targets that it represents.
#[derive(Debug)]
struct Ranks {
    falling: Vec<(u64, u64)>,
    /// Total number of targets.
    targets: u64,
    /// Number of requests that the most popular targets may have beyond their counts.
    unknown: u64,
}

impl Ranks {
    /// Returns all kept targets or, for a sample, the most requested ones and the others with their
    /// weight.
    fn new(sampled: &Sampled<u64>, popular: Option<&Frequent>) -> Ranks {
        let weight = sampled.weight();
        let mut falling: Vec<(u64, u64)> = Vec::new();
        let mut certain: BTreeMap<u64, u64> = BTreeMap::new();
        let mut unknown = 0;
        if let Some(popular) = popular {
            certain.extend(popular.certain().map(|(target, count)| {
                unknown += popular.error() / 2;
                (target, count + popular.error() / 2)
            }));
        }
        for (target, count) in sampled.iter() {
            match certain.get_mut(&target) {
                // counted from the beginning
                Some(known) => *known = *count,
                None => falling.push((*count, weight)),
            }
        }
        falling.extend(certain.into_values().map(|count| (count, 1)));
        falling.sort_unstable_by(|a, b| b.cmp(a));
        let targets = falling.iter().map(|(_, weight)| weight).sum();
        Ranks { falling, targets, unknown }
    }

    /// Returns the exponent by least squares, in which each target has the same weight.
    fn zipf(&self) -> Option<f64> {
        let (mut rank, mut points) = (0.0, Vec::new());
        for (count, weight) in self.falling.iter().take_while(|(count, _)| *count >= COUNT_MIN) {
            let weight = *weight as f64;
            // the middle of the ranks that it represents
            points.push(((rank + (weight + 1.0) / 2.0).ln(), (*count as f64).ln(), weight));
            rank += weight;
        }
        let slope = -weighted_slope(&points);
        (rank >= RANKS_MIN && slope.is_finite()).then_some(slope)
    }

    /// Returns the share of the requests for the top tenth, and its standard error.
    fn top_tenth(&self, requests: u64) -> (f64, f64) {
        let mut left = self.targets.div_ceil(10);
        let (mut sum, mut variance) = (0.0, 0.0);
        for (count, weight) in &self.falling {
            let taken = left.min(*weight);
            let count = *count as f64;
            sum += count * taken as f64;
            // each was kept with a probability of one in `weight`
            variance += count * count * taken as f64 * (*weight as f64 - 1.0);
            left -= taken;
            if left == 0 {
                break;
            }
        }
        let requests = requests.max(1) as f64;
        ((sum / requests).min(1.0), (variance.sqrt() + self.unknown as f64) / requests)
    }
}

/// Returns the slope of a line through the points (x, y, weight), by least squares.
fn weighted_slope(points: &[(f64, f64, f64)]) -> f64 {
    let sum = |of: &dyn Fn(&(f64, f64, f64)) -> f64| points.iter().map(of).sum::<f64>();
    let weights = sum(&|point| point.2);
    let (mean_x, mean_y) = (sum(&|(x, _, w)| x * w) / weights, sum(&|(_, y, w)| y * w) / weights);
    sum(&|(x, y, w)| w * (x - mean_x) * (y - mean_y)) / sum(&|(x, _, w)| w * (x - mean_x).powi(2))
}

fn model(mean_visit: f64) -> Model {
    match mean_visit {
        short if short <= OPEN_MAX => Model::Open,
        long if long >= CLOSED_MIN => Model::Closed,
        _ => Model::PartlyOpen,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::{Purpose, Seed};

    fn described(entries: impl IntoIterator<Item = Entry>, pause: Nanos) -> Description {
        keeping(KEPT_MAX, entries, pause)
    }

    fn keeping(max: usize, entries: impl IntoIterator<Item = Entry>, pause: Nanos) -> Description {
        let mut describer = Describer::keeping(pause, max);
        entries.into_iter().for_each(|entry| describer.take(&entry));
        describer.finish()
    }

    fn access(at: f64, client: u32, ask: u32) -> Entry {
        Entry {
            client: client.to_string(),
            at: Nanos::from_secs(1_700_000_000) + Nanos::from_secs_f64(at),
            fine: true,
            method: "GET".to_owned(),
            target: format!("/{ask}"),
            status: 200,
            bytes: 100,
        }
    }

    /// Poisson arrivals at 20/s for an hour: dispersion 1, H 0.5.
    #[test]
    fn a_poisson_process_is_recognized() {
        let mut stream = Seed(1).stream(Purpose::Arrivals, 0);
        let mut at = 0.0;
        let times = std::iter::from_fn(|| {
            at += stream.exponential(0.05);
            (at < 3_600.0).then_some(at)
        });
        let entries = times.zip(0..).map(|(at, client)| access(at, client, 0));
        let found = described(entries, Nanos::from_secs(1_800));
        let arrivals = found.arrivals.unwrap();
        assert!((arrivals.mean - 20.0).abs() < 0.5, "{arrivals:?}");
        assert!((arrivals.dispersion - 1.0).abs() < 0.1, "{arrivals:?}");
        assert!((arrivals.hurst.unwrap() - 0.5).abs() < 0.06, "{arrivals:?}");
        assert_eq!(found.model, Model::Open);
        assert_eq!(found.zipf, None);
    }

    /// Sources that are on and off for times of a Pareto law (a = 1.4): H = (3 − a)/2 = 0.8
    /// (Willinger et al., 1997); over two hours an estimate is lower, and clearly above Poisson's.
    #[test]
    fn a_self_similar_process_is_recognized() {
        let mut accesses = Vec::new();
        for source in 0..50 {
            let mut stream = Seed(3).stream(Purpose::Arrivals, source);
            let mut pareto = || (1.0 - stream.unit()).powf(-1.0 / 1.4);
            let mut at = 0.0;
            while at < 7_200.0 {
                let on = pareto();
                let calls = (on * 2.0) as u32;
                accesses.extend(
                    (0..calls).map(|call| access(at + f64::from(call) / 2.0, source as u32, 0)),
                );
                at += on + pareto();
            }
        }
        accesses.sort_by_key(|access| access.at);
        let found = described(accesses, Nanos::from_secs(1_800)).arrivals.unwrap();
        assert!(found.hurst.unwrap() > 0.65, "{found:?}");
    }

    #[test]
    fn popularity_has_the_exponent_that_it_was_made_with() {
        let mut accesses = Vec::new();
        for rank in 1..=200_u32 {
            let count = (20_000.0 / f64::from(rank).powf(0.8)) as u32;
            accesses.extend((0..count).map(|call| access(f64::from(call), rank, rank - 1)));
        }
        let found = described(accesses, Nanos::from_secs(1));
        assert!((found.zipf.unwrap() - 0.8).abs() < 0.01, "{found:?}");
        assert_eq!(found.longest_visit, 20_000);
        assert!(found.top_tenth.0 > 0.4 && found.top_tenth.0 < 0.6, "{found:?}");
    }

    #[test]
    fn the_length_of_visits_determines_the_model() {
        let of = |calls: u32| {
            let calls = (0..100).flat_map(|client| (0..calls).map(move |call| (client, call)));
            let calls = calls.map(|(client, call)| access(f64::from(call), client, call));
            let mut accesses: Vec<Entry> = calls.collect();
            accesses.sort_by_key(|access| access.at);
            described(accesses, Nanos::from_secs(1_800)).model
        };
        assert_eq!(
            [1, 5, 7, 10].map(of),
            [Model::Open, Model::Open, Model::PartlyOpen, Model::Closed]
        );
    }

    /// Both seconds with a request may be cut off: nothing was counted in the others.
    #[test]
    fn whole_seconds_without_requests_have_no_arrivals() {
        let whole = |at: f64| Entry { fine: false, ..access(at, 0, 0) };
        let found = described([whole(0.0), whole(100.0)], Nanos::SECOND);
        assert_eq!(found.arrivals, None);
    }

    #[test]
    fn sizes_are_kept_to_a_part_in_two_thousand() {
        let mut sizes = Sizes::default();
        (0..100_000_u32).for_each(|row| sizes.count(row * 40_000, 1));
        for (share, exact) in [(0.1, 400e6), (0.5, 2e9), (0.99, 3.96e9)] {
            let found = sizes.at(share) as f64;
            assert!((found / exact - 1.0).abs() < 1e-3, "{share}: {found}");
        }
        assert!(sizes.cells.len() < 60_000);
        (0..50).for_each(|_| sizes.count(7, 1));
        assert_eq!((sizes.at(0.0), Sizes::default().at(0.5)), (0, 0));
        sizes.count(4_095, 1);
        assert!(sizes.cells.contains_key(&4_095));
    }

    #[test]
    fn an_empty_log_has_figures() {
        let found = described([], Nanos::SECOND);
        assert_eq!((found.visits.count, found.arrivals, found.sizes), (0, None, [0; 4]));
        assert_eq!(
            (found.targets.count, found.top_tenth, found.span),
            (0, (0.0, 0.0), Nanos::ZERO)
        );
    }

    /// The same visits as in an import of the log.
    #[test]
    fn visits_are_those_of_an_import() {
        let mut stream = Seed(2).stream(Purpose::Targets, 0);
        let mut lines = Vec::new();
        for row in 0..2_000_u64 {
            let second = row * 7 + stream.below(40);
            let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
            let client = stream.below(30);
            lines.push(format!(
                "{client} - - [10/Oct/2000:{hour:02}:{minute:02}:{second:02} +0000] \"GET / HTTP/1.1\" \
                 200 5"
            ));
        }
        let mut reader = crate::access_log::LogReader::new(Vec::new());
        lines.iter().for_each(|line| reader.line(line).unwrap());
        let log = reader.finish();
        // between whole seconds: an import spreads the requests of a second over it
        for pause in [30_500, 100_500, 1_000_500].map(Nanos::from_millis) {
            let mut describer = Describer::new(pause);
            lines.iter().for_each(|line| describer.line(line));
            let found = describer.finish();
            let visits = log.visits(pause);
            let longest = visits.iter().map(|visit| visit.rows.len() as u64).max();
            let off = found.visits.count.abs_diff(visits.len() as u64);
            assert!(off <= found.visits.count / 50, "{pause:?}: {found:?}, {}", visits.len());
            assert!(found.longest_visit.abs_diff(longest.unwrap()) <= 1 + found.longest_visit / 5);
            assert_eq!((found.requests, found.clients.count), (2_000, u64::from(log.clients)));
        }
    }

    /// Lines in another order within an hour give the same figures.
    #[test]
    fn the_order_of_lines_does_not_matter() {
        let mut entries: Vec<Entry> =
            (0..3_000).map(|row| access(f64::from(row), row % 7, row % 50)).collect();
        let in_order = described(entries.clone(), Nanos::from_secs(60));
        entries.chunks_mut(30).for_each(<[Entry]>::reverse);
        let found = described(entries, Nanos::from_secs(60));
        assert_eq!(
            (found.span, found.visits, found.targets, found.late),
            (in_order.span, in_order.visits, in_order.targets, 0)
        );
    }

    /// Returns accesses with popularity by a power law, and users with visits of 1 to 20 requests;
    /// a returning user makes another visit.
    fn of_many(requests: u32) -> impl Iterator<Item = Entry> {
        let mut stream = Seed(9).stream(Purpose::Targets, 0);
        let (mut client, mut left) = (0, 0);
        (0..requests).map(move |row| {
            if left == 0 {
                client = stream.below(60_000) as u32;
                left = 1 + stream.below(20);
            }
            left -= 1;
            // counts fall as rank^-0.7: the rank by inversion
            let rank = (stream.unit().powf(1.0 / 0.3) * 200_000.0) as u32;
            access(f64::from(row) / 50.0, client, rank)
        })
    }

    #[test]
    fn a_sample_of_a_huge_log_has_its_figures_within_their_errors() {
        let pause = Nanos::from_secs(300);
        let exact = described(of_many(600_000), pause);
        let found = keeping(4_000, of_many(600_000), pause);
        assert_eq!((exact.targets.error, exact.visits.error, exact.top_tenth.1), (0.0, 0.0, 0.0));
        for (name, found, exact) in [
            ("targets", found.targets, exact.targets),
            ("clients", found.clients, exact.clients),
            ("visits", found.visits, exact.visits),
        ] {
            let off = (found.count as f64 / exact.count as f64 - 1.0).abs();
            assert!(found.error > 0.005 && found.error < 0.05, "{name}: {found:?}");
            assert!(off < 3.0 * found.error, "{name}: {found:?}, {exact:?}");
        }
        let (share, error) = found.top_tenth;
        assert!(error < 0.06 && (share - exact.top_tenth.0).abs() < 3.0 * error, "{found:?}");
        assert!((found.zipf.unwrap() - exact.zipf.unwrap()).abs() < 0.03, "{found:?} {exact:?}");
        assert!((found.mean_visit / exact.mean_visit - 1.0).abs() < 0.05, "{found:?} {exact:?}");
        assert_eq!(found.median_visit, exact.median_visit);
        // none of these is sampled
        assert_eq!(
            (found.requests, found.span, found.sizes, found.statuses, found.arrivals, found.model),
            (exact.requests, exact.span, exact.sizes, exact.statuses, exact.arrivals, exact.model)
        );
    }
}
