//! Counters of packet carriers, and the facts derived from them.

use hdrhistogram::Histogram;
use sample::{PathDirection, PathFacts, PathKind};
use units::Nanos;
use wan::{Direction, LinkCounts, PathSpec, Population, PopulationPart, describe};

/// Packet counts, lateness and CPU time of a forwarder since the last query.
#[derive(Clone, Debug)]
pub struct Tally {
    /// For each client kind, up and down.
    pub(crate) kinds: Vec<[LinkCounts; 2]>,
    pub(crate) late: Histogram<u64>,
    pub(crate) overflowed: u64,
    pub(crate) foreign: u64,
    pub(crate) spun: Nanos,
    pub(crate) slept: Nanos,
    pub(crate) span: Nanos,
    /// The sum of the observation times of all carriers: the times asleep and spinning are parts of
    /// it.
    pub(crate) watched: Nanos,
    /// Reason why the forwarder has ended, unless it was stopped.
    pub(crate) broken: Option<String>,
}

/// Maximum recorded lateness; higher values count as the maximum.
const LATE_MAX: Nanos = Nanos::from_secs(60);

impl Tally {
    pub(crate) fn new(kinds: usize) -> Tally {
        Tally {
            kinds: vec![[LinkCounts::default(); 2]; kinds],
            late: Histogram::new_with_bounds(1, LATE_MAX.0, 2).expect("bounds are constants"),
            overflowed: 0,
            foreign: 0,
            spun: Nanos::ZERO,
            slept: Nanos::ZERO,
            span: Nanos::ZERO,
            watched: Nanos::ZERO,
            broken: None,
        }
    }

    /// Adds the observation time of one carrier.
    pub(crate) fn watch(&mut self, span: Nanos) {
        (self.span, self.watched) = (span, span);
    }

    pub(crate) fn late(&mut self, by: Nanos) {
        // 0 is outside the histogram's bounds
        self.late.saturating_record(by.0.max(1));
    }

    /// Counts packets that were dropped because the buffers were full.
    pub fn overflow(&mut self, packets: u64) {
        self.overflowed += packets;
    }

    /// Adds the counters of another worker for the same population and time.
    pub fn add(&mut self, other: &Tally) {
        for (row, more) in self.kinds.iter_mut().zip(&other.kinds) {
            row[0] += more[0];
            row[1] += more[1];
        }
        self.late.add(&other.late).expect("all tallies have the same bounds");
        self.overflowed += other.overflowed;
        self.foreign += other.foreign;
        self.spun += other.spun;
        self.slept += other.slept;
        self.span = self.span.max(other.span);
        self.watched += other.watched;
        self.broken = self.broken.take().or_else(|| other.broken.clone());
    }

    /// Returns the facts. `dealt`: index of the kind of each client.
    pub fn facts(&self, population: &Population, dealt: &[u32], seed: u64) -> PathFacts {
        let quantile = |q| match self.late.is_empty() {
            true => Nanos::ZERO,
            false => Nanos(self.late.value_at_quantile(q)),
        };
        let clients = |row: usize| dealt.iter().filter(|one| **one as usize == row).count() as u32;
        let rows = population.parts.iter().zip(&self.kinds).enumerate();
        let idle = (self.spun + self.slept).as_secs_f64();
        let watched = self.watched.as_secs_f64();
        PathFacts {
            spec: population.text.clone(),
            seed,
            span: self.span,
            kinds: rows.map(|(row, (part, counts))| kind(part, counts, clients(row))).collect(),
            late_p50: quantile(0.5),
            late_p99: quantile(0.99),
            late_max: Nanos(self.late.max()),
            busy: if watched > 0.0 { ((watched - idle) / watched).clamp(0.0, 1.0) } else { 0.0 },
            spun: self.spun,
            overflowed: self.overflowed,
            foreign: self.foreign,
        }
    }
}

fn kind(part: &PopulationPart, counts: &[LinkCounts; 2], clients: u32) -> PathKind {
    let path = &part.path;
    let of = |direction: Direction| direction_facts(path, direction, &counts[direction as usize]);
    PathKind {
        name: part.name.clone(),
        clients,
        rtt: path.rtt(),
        up: of(Direction::Up),
        down: of(Direction::Down),
    }
}

fn direction_facts(path: &PathSpec, direction: Direction, counts: &LinkCounts) -> PathDirection {
    PathDirection {
        link: describe(path.link(direction)),
        arrived: counts.arrived,
        delivered: counts.delivered,
        delivered_bytes: counts.delivered_bytes,
        duplicated: counts.duplicated,
        corrupted: counts.corrupted,
        lost_to_model: counts.lost_to_model,
        lost_to_outage: counts.lost_to_outage,
        lost_to_queue: counts.lost_to_queue,
        lost_to_codel: counts.lost_to_codel,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wan::NoTraces;

    /// Two workers, one half idle and one idle, are busy for a quarter of the time in total.
    #[test]
    fn workers_side_by_side_are_watched_for_one_span() {
        let millis = Nanos::from_millis;
        let (mut first, mut second) = (Tally::new(1), Tally::new(1));
        first.watch(millis(1_000));
        (first.slept, first.spun) = (millis(300), millis(200));
        second.watch(millis(999));
        second.slept = millis(999);
        first.add(&second);
        let population = Population::parse("[rtt=10ms]:100%", &NoTraces).expect("a population");
        let facts = first.facts(&population, &[0], 1);
        assert_eq!((facts.span, facts.spun), (millis(1_000), millis(200)));
        assert!((facts.busy - 0.25).abs() < 0.001, "{}", facts.busy);
    }
}
