//! A snapshot as bytes: every count, and histograms as lists of the buckets in which something was
//! recorded.

use crate::protocol::codec::{Packed, Reader, Unreadable, put, read};
use sample::{
    BodyPrint, EarlyFacts, FailureClass, Http2Facts, Http3Facts, MigrationFacts, QuicFacts,
    SocketClose, SocketCounts, TlsFacts, WrongBody,
};
use stats::lives::{BEATS_MAX, Beats, Lives};
use stats::{
    BackendTally, Backends, Connections, Counts, FailedResponse, FailedResponses, FanOutTally,
    GrpcTally, Hist, Instants, JourneyTally, LoadFigure, LoadTally, MessageTally, Noted,
    NumberTally, ReconnectTally, ScenarioTally, ServerTimings, Sessions, Snapshot, StatusTally,
    StepStreams, StreamTally, TARGET_ROWS_MAX, TargetTally, TokenTally, TransactionTally, Verified,
};
use units::Nanos;

/// Every field is named, so that a new field cannot be forgotten here.
macro_rules! packed {
    ($($name:ident { $($field:ident),* $(,)? })*) => {$(
        impl Packed for $name {
            fn pack(&self, out: &mut Vec<u8>) {
                let $name { $($field),* } = self;
                $($field.pack(out);)*
            }

            fn fill(&mut self, from: &mut Reader<'_>) -> Result<(), Unreadable> {
                let $name { $($field),* } = self;
                $($field.fill(from)?;)*
                Ok(())
            }
        }
    )*};
}

stats::snapshot_fields!(packed);
packed! { FailedResponse { at, target, start, length } }

/// Zeros, the number of following buckets, and for each bucket its distance to the previous one and
/// its count.
impl Packed for Hist {
    fn pack(&self, out: &mut Vec<u8>) {
        let (zeros, rows) = self.rows();
        let rows: Vec<(usize, u64)> = rows.collect();
        zeros.pack(out);
        rows.len().pack(out);
        let mut before = 0;
        for (row, count) in rows {
            put(out, (row - before) as u128);
            put(out, u128::from(count));
            before = row;
        }
    }

    fn fill(&mut self, from: &mut Reader<'_>) -> Result<(), Unreadable> {
        let mut sum: u64 = read(from)?;
        self.record_n(Nanos::ZERO, sum);
        let rows = from.count()?;
        if rows > 0 {
            from.count_histogram()?;
        }
        let mut at = 0_u64;
        for row in 0..rows {
            let (gap, count): (u64, u64) = read(from)?;
            at = at.saturating_add(gap);
            sum = sum.checked_add(count).ok_or(Unreadable("a histogram that overflows"))?;
            if at >= Hist::ROWS as u64 || count == 0 || (gap == 0 && row > 0) {
                return Err(Unreadable("a histogram with a bucket out of its bounds"));
            }
            self.add_row(at as usize, count);
        }
        Ok(())
    }
}

impl Packed for StatusTally {
    fn pack(&self, out: &mut Vec<u8>) {
        self.seen().collect::<Vec<_>>().pack(out);
    }

    fn fill(&mut self, from: &mut Reader<'_>) -> Result<(), Unreadable> {
        for (status, count) in read::<Vec<(u16, u64)>>(from)? {
            self.add_n(status, count);
        }
        Ok(())
    }
}

fn class_number(class: FailureClass) -> usize {
    FailureClass::ALL.iter().position(|one| *one == class).unwrap_or_default()
}

fn class_of(number: usize) -> Result<FailureClass, Unreadable> {
    FailureClass::ALL.get(number).copied().ok_or(Unreadable("an unknown failure"))
}

/// Classes by index in the list of all classes: both sides have the list of the same build, or the
/// protocol's number differs.
impl Packed for std::collections::BTreeMap<FailureClass, u64> {
    fn pack(&self, out: &mut Vec<u8>) {
        self.len().pack(out);
        for (class, count) in self {
            (class_number(*class), *count).pack(out);
        }
    }

    fn fill(&mut self, from: &mut Reader<'_>) -> Result<(), Unreadable> {
        for (number, count) in read::<Vec<(usize, u64)>>(from)? {
            self.insert(class_of(number)?, count);
        }
        Ok(())
    }
}

/// By number of the class, as above, and status.
impl Packed for FailedResponses {
    fn pack(&self, out: &mut Vec<u8>) {
        self.kinds.len().pack(out);
        for ((class, status), samples) in &self.kinds {
            (class_number(*class), *status).pack(out);
            samples.pack(out);
        }
    }

    fn fill(&mut self, from: &mut Reader<'_>) -> Result<(), Unreadable> {
        for _ in 0..from.count()? {
            let (number, status): (usize, u16) = read(from)?;
            let class = class_of(number)?;
            let samples: Vec<FailedResponse> = read(from)?;
            samples.into_iter().for_each(|sample| self.add(class, status, sample));
        }
        Ok(())
    }
}

/// Rows by side and code.
impl Packed for std::collections::BTreeMap<SocketClose, u64> {
    fn pack(&self, out: &mut Vec<u8>) {
        self.len().pack(out);
        for (close, count) in self {
            let side: u16 = match close {
                SocketClose::Client(_) => 0,
                SocketClose::Server(_) => 1,
                SocketClose::Lost => 2,
                SocketClose::Violation(_) => 3,
                SocketClose::Refused => 4,
            };
            (side, (close.code(), *count)).pack(out);
        }
    }

    fn fill(&mut self, from: &mut Reader<'_>) -> Result<(), Unreadable> {
        for (side, (code, count)) in read::<Vec<(u16, (u16, u64))>>(from)? {
            let close = match side {
                0 => SocketClose::Client(code),
                1 => SocketClose::Server(code),
                2 => SocketClose::Lost,
                3 => SocketClose::Violation(code),
                4 => SocketClose::Refused,
                _ => return Err(Unreadable("an unknown end of a WebSocket")),
            };
            self.insert(close, count);
        }
        Ok(())
    }
}

impl Packed for ServerTimings {
    fn pack(&self, out: &mut Vec<u8>) {
        let named: Vec<(&str, &Hist)> = self.named().collect();
        named.len().pack(out);
        for (name, hist) in named {
            name.to_owned().pack(out);
            hist.pack(out);
        }
        self.other().pack(out);
        self.malformed().pack(out);
    }

    fn fill(&mut self, from: &mut Reader<'_>) -> Result<(), Unreadable> {
        let named: Vec<(String, Hist)> = read(from)?;
        *self = ServerTimings::from_parts(named, read(from)?, read(from)?);
        Ok(())
    }
}

impl Packed for Beats {
    fn pack(&self, out: &mut Vec<u8>) {
        let all = self.all();
        let first = all.iter().position(|(done, _)| *done > 0).unwrap_or(all.len());
        first.pack(out);
        all[first..].to_vec().pack(out);
    }

    fn fill(&mut self, from: &mut Reader<'_>) -> Result<(), Unreadable> {
        let first: usize = read(from)?;
        let rows: Vec<(u32, u32)> = read(from)?;
        if first.saturating_add(rows.len()) > BEATS_MAX {
            return Err(Unreadable("more beats than a run has"));
        }
        *self = Beats::from_rows(first, rows);
        Ok(())
    }
}

impl Packed for Instants {
    fn pack(&self, out: &mut Vec<u8>) {
        self.all().to_vec().pack(out);
    }

    fn fill(&mut self, from: &mut Reader<'_>) -> Result<(), Unreadable> {
        *self = Instants::from_rows(read(from)?);
        Ok(())
    }
}

/// Fills a snapshot from bytes; its parts have bounds that the reader enforces.
///
/// # Errors
/// Fails if the bytes are not a snapshot, or exceed a bound.
pub(crate) fn fill(snapshot: &mut Snapshot, from: &mut Reader<'_>) -> Result<(), Unreadable> {
    snapshot.fill(from)?;
    if snapshot.targets.len() > TARGET_ROWS_MAX
        || snapshot.clients.len() > TARGET_ROWS_MAX
        || snapshot.scenarios.len() > TARGET_ROWS_MAX
    {
        return Err(Unreadable("more targets, scenarios or kinds of clients than a run has rows"));
    }
    let of_scenarios = snapshot.scenarios.iter().map(|row| &row.counts);
    for counts in [&snapshot.counts, &snapshot.warm_up].into_iter().chain(of_scenarios) {
        bounded(counts)?;
        if counts.conserved().is_err() {
            return Err(Unreadable("calls are missing from its counts"));
        }
    }
    Ok(())
}

/// Checks that sums of another machine's counts do not overflow ours.
fn bounded(counts: &Counts) -> Result<(), Unreadable> {
    const MOST: u64 = 1 << 52;
    let Counts { due, succeeded, failed, timed_out, dropped, abandoned, lost, .. } = counts;
    let all = [*due, *succeeded, *failed, *timed_out, *dropped, *abandoned, *lost];
    let gauges = [counts.queued.unsigned_abs(), counts.in_flight.unsigned_abs()];
    if all.iter().chain(&gauges).any(|count| *count > MOST) {
        return Err(Unreadable("a count beyond all bounds"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::codec::HISTOGRAMS_MAX;
    use proptest::prelude::*;

    fn hist(values: &[(u64, u64)]) -> Hist {
        Hist::from_buckets(values.iter().map(|(value, count)| (Nanos(*value), *count)))
    }

    #[test]
    fn histograms_that_take_memory_are_bounded() {
        let pack = |rows: Vec<Hist>| {
            let mut bytes = Vec::new();
            rows.pack(&mut bytes);
            bytes
        };
        let some = hist(&[(700, 2)]);
        let two = pack(vec![some.clone(), some.clone()]);
        assert_eq!(two.len(), 9, "a few bytes each");
        // a list of zeros takes no memory
        let one = pack(vec![hist(&[(0, 9)]), some, Hist::new()]);
        let left = |histograms: usize, bytes: &[u8]| {
            let mut from = Reader::new(bytes);
            (histograms..HISTOGRAMS_MAX).try_for_each(|_| from.count_histogram()).unwrap();
            read::<Vec<Hist>>(&mut from).map(|rows| rows.len())
        };
        assert_eq!((left(2, &two), left(1, &one)), (Ok(2), Ok(3)));
        let refused = Err(Unreadable("more histograms than a run has"));
        assert_eq!((left(1, &two), left(0, &one)), (refused.clone(), refused));
    }

    fn again(hist: &Hist) -> Hist {
        let mut bytes = Vec::new();
        hist.pack(&mut bytes);
        read(&mut Reader::new(&bytes)).unwrap()
    }

    proptest! {
        // a snapshot is large
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_histogram_round_trips_bucket_by_bucket(
            values in prop::collection::vec((0_u64..5_000_000_000_000, 1_u64..1_000), 0..60),
            small in prop::collection::vec((0_u64..4_000_000, 1_u64..9), 0..60),
        ) {
            let hist = hist(&[values, small].concat());
            let back = again(&hist);
            prop_assert_eq!(back.buckets(), hist.buckets());
            prop_assert_eq!(back.summary(), hist.summary());
        }

        #[test]
        fn any_bytes_are_a_snapshot_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let mut snapshot = Snapshot::default();
            fill(&mut snapshot, &mut Reader::new(&bytes)).ok();
        }

        #[test]
        fn a_changed_snapshot_is_read_or_refused(at in 0_usize..500, byte in any::<u8>()) {
            let mut bytes = Vec::new();
            busy().pack(&mut bytes);
            let at = at % bytes.len();
            bytes[at] = byte;
            fill(&mut Snapshot::default(), &mut Reader::new(&bytes)).ok();
            fill(&mut Snapshot::default(), &mut Reader::new(&bytes[..at])).ok();
        }
    }

    fn busy() -> Snapshot {
        let mut snapshot = Snapshot {
            succeeded: hist(&[(0, 3), (700, 2), (1_500_000, 40), (90_000_000, 1)]),
            slip: hist(&[(0, 46)]),
            flight_integral: u128::MAX / 3,
            beats: Beats::from_rows(20, vec![(5, 4), (0, 0), (7, 7)]),
            instants: Instants::from_rows(vec![(Nanos(7), Nanos(5))]),
            targets: vec![TargetTally::default(), TargetTally::default()],
            ..Snapshot::default()
        };
        snapshot.counts = Counts {
            due: 50,
            succeeded: 46,
            failed: 1,
            queued: 5,
            in_flight: -2,
            ..Counts::default()
        };
        snapshot.failures.insert(FailureClass::ALL[3], 9);
        snapshot.status.add_n(503, 4);
        snapshot.connections.tls.insert(TlsFacts::default(), 2);
        let sample = FailedResponse { start: b"HTTP/1.1 503".into(), ..FailedResponse::default() };
        snapshot.failed_responses.add(FailureClass::ALL[3], 503, sample);
        snapshot.journeys.metrics.resize_with(1, NumberTally::default);
        snapshot.journeys.metrics[0].record(Some(-7));
        snapshot.journeys.missed.push(Noted { count: 2, example: Some((Nanos(5), "é".into())) });
        snapshot
    }

    #[test]
    fn a_snapshot_round_trips() {
        let mut bytes = Vec::new();
        let whole = busy();
        whole.pack(&mut bytes);
        let mut back = Snapshot::default();
        fill(&mut back, &mut Reader::new(&bytes)).unwrap();
        let mut second = Vec::new();
        back.pack(&mut second);
        assert_eq!(bytes, second);
        assert_eq!(back.counts, whole.counts);
        assert_eq!(back.failed_responses, whole.failed_responses);
        assert_eq!(back.journeys.metrics, whole.journeys.metrics);
        assert_eq!(back.succeeded.summary(), whole.succeeded.summary());
        assert_eq!(back.beats.all(), whole.beats.all());
        assert_eq!(back.flight_integral, whole.flight_integral);
        assert!(bytes.len() < 400, "{}", bytes.len());
    }

    #[test]
    fn counts_that_do_not_add_up_are_refused() {
        let mut snapshot = busy();
        snapshot.counts.failed += 1;
        let mut bytes = Vec::new();
        snapshot.pack(&mut bytes);
        let error = fill(&mut Snapshot::default(), &mut Reader::new(&bytes)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "a message that cannot be read: calls are missing from its counts"
        );
    }
}
