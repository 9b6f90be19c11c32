//! A fleet measures the same as a single process.

use super::{RESPONSE, open, script};
use ::fleet::protocol::row::{self, RowHead};
use ::fleet::protocol::slots::SlotTable;
use sim::{Action, Server, World, execute_parts, execute_with};
use stats::{Hist, Snapshot};
use units::Nanos;
use workload::schedule::Share;

/// The path determines the response's duration, for any client and time.
fn by_path() -> Box<dyn Server> {
    script(|now, _, request| {
        let digits = request.iter().filter(|byte| byte.is_ascii_digit());
        let number = digits.take(3).fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0'));
        vec![(now + Nanos::from_micros(700 + number * 13), Action::Bytes(RESPONSE.to_vec()))]
    })
}

/// Encodes and decodes the bytes that travel between machines.
fn encode_and_decode(row: engine::Row) -> engine::Row {
    let head = RowHead {
        start: row.start,
        end: row.end,
        edge: row.edge,
        open_connections: row.open_connections,
        connections_peak: row.connections_peak,
        in_flight: row.in_flight,
        last_done: row.last_done,
        last: row.last,
        ..RowHead::default()
    };
    let bytes = row::encode(&head, &row.snapshot);
    let mut snapshot = Box::<Snapshot>::default();
    assert_eq!(row::decode(&bytes, &mut snapshot).expect("a row"), head);
    engine::Row { snapshot, ..row }
}

/// Returns all figures of a histogram.
fn figures(hist: &Hist) -> Vec<u64> {
    let quantiles = (0..=100).map(|step| hist.quantile(f64::from(step) / 100.0).0);
    [hist.count(), hist.min().0, hist.max().0].into_iter().chain(quantiles).collect()
}

#[test]
fn a_fleet_equals_one_process_bit_by_bit() {
    let plan = || {
        let mut plan = open(400.0, 3);
        let target = plan.targets[0].clone();
        let other = |row: u32| {
            let url = format!("http://sim.example/{row:03}").parse().unwrap();
            plan::TargetPlan { url, ..target.clone() }
        };
        plan.targets = (100..400).map(other).collect();
        plan
    };
    let world = || World::new(by_path(), Nanos::ZERO, Nanos::from_secs(1_000));
    let alone = execute_with(plan(), world(), 1, None).measurement;
    assert!(alone.total.counts.succeeded > 1_000, "{:?}", alone.total.counts);
    // machines of the same and of different weights
    for weights in [&[1.0; 4][..], &[1.0, 2.0, 0.5], &[1.0; 7]] {
        let table = SlotTable::new(weights);
        let part = |slots: &Vec<u32>| Share::from_slots(slots, table.of).unwrap();
        let shares = table.slots.iter().map(part).collect();
        let fleet = execute_parts(plan(), world(), shares, Box::new(encode_and_decode)).measurement;
        assert_eq!(fleet.total.counts, alone.total.counts, "{weights:?}");
        for (one, other) in [
            (alone.total.response(), fleet.total.response()),
            (alone.total.service.clone(), fleet.total.service.clone()),
            (alone.total.succeeded.clone(), fleet.total.succeeded.clone()),
        ] {
            assert!(figures(&one) == figures(&other), "{weights:?}");
        }
        let seconds = |measured: &stats::Measurement| -> Vec<(u64, Nanos, Nanos)> {
            let rows = measured.series.iter();
            rows.map(|row| (row.counts.succeeded, row.p50, row.p99)).collect()
        };
        assert_eq!(seconds(&fleet), seconds(&alone), "{weights:?}");
    }
}
