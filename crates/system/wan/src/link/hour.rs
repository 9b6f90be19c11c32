//! One hour of packets in virtual time: no growth, no loss without a model, and no drift.

use super::*;
use crate::spec::{Carrier, PathSpec};
use crate::trace::{NoTraces, Trace};

const HOUR: Nanos = Nanos::from_secs(3_600);

/// Returns the packet capacity of the buffers of the link.
fn room(link: &PathLink) -> usize {
    link.flight.in_order.capacity() + link.flight.overtaking.capacity() + link.transmitter.room()
}

/// Returns the result of one hour of packets of 1,000 bytes, `gap` apart: the number delivered and
/// the last delivery time. The capacity at the end is that after the tenth minute.
fn hour(mut link: PathLink, gap: Nanos) -> (PathLink, Nanos) {
    let mut lost = Vec::new();
    let mut last = Nanos::ZERO;
    let mut held = 0_usize;
    let mut now = Nanos::ZERO;
    let mut token = 0_u32;
    let mut early = 0;
    while now < HOUR {
        held += usize::from(link.push(now, 1_000, token, &mut lost));
        token = token.wrapping_add(1);
        while let Some(delivery) = link.pop(now, &mut lost) {
            last = delivery.due;
            held -= 1;
        }
        held -= lost.len();
        lost.clear();
        assert!(held < 2_000, "{held} packets are under way at {now:?}");
        if now <= Nanos::from_secs(600) {
            early = room(&link);
        }
        now += gap;
    }
    assert!(room(&link) <= early * 2, "{} against {early} packets of room", room(&link));
    while let Some(delivery) = link.pop(Nanos::NEVER, &mut lost) {
        last = delivery.due;
        held -= 1;
    }
    assert_eq!(held - lost.len(), 0);
    let counts = link.counts();
    assert_eq!(counts.arrived + counts.duplicated, counts.delivered + counts.lost());
    (link, last)
}

fn link(text: &str) -> PathLink {
    let spec = PathSpec::parse(text, &NoTraces).expect("a path").up;
    PathLink::new(Arc::new(spec), Seed(1), 0, Direction::Up, Nanos::ZERO)
}

#[test]
fn nothing_grows_in_an_hour_of_a_bad_link() {
    let gap = Nanos::from_millis(20);
    for text in [
        "delay=40ms, jitter=20ms, order=free, loss=2%, burst=4, duplicate=1%, corrupt=1%",
        "delay=40ms, jitter=20ms, dist=pareto, reorder=5%:3, outage=25s:2s:fixed",
        // less than the offered load: the queue is always full, and CoDel is always dropping
        "rate=300k, queue=64k, drop=head, loss=states:1%:30%:10%:40%:1%",
        "rate=300k, drop=codel, outage=25s:2s:fixed:lose",
    ] {
        let (link, _) = hour(link(text), gap);
        assert_eq!(link.counts().arrived, 180_000, "{text}");
        assert!(link.counts().delivered > 90_000, "{text}");
    }
}

/// A rate, a delay and a trace after one hour, exact to the nanosecond and the packet.
#[test]
fn nothing_drifts_in_an_hour() {
    let gap = Nanos::from_millis(20);
    let (_, last) = hour(link("delay=40ms"), gap);
    assert_eq!(last, HOUR - gap + Nanos::from_millis(40));
    // 1,000 bytes at 320 kbit/s are 25 ms: 40 of the 50 packets offered per second
    let (full, last) = hour(link("rate=320k, queue=100p"), gap);
    let carried = full.counts().delivered;
    assert_eq!(last, Nanos::from_millis(25) * carried);
    assert!((144_000..=144_101).contains(&carried), "{carried}");
    // three opportunities in 70 ms, 1,504 bytes each
    let trace = Carrier::Trace(Arc::new(Trace::parse("10\n30\n70\n").expect("a trace")));
    let spec = LinkSpec { carrier: trace, ..LinkSpec::default() };
    let trace = PathLink::new(Arc::new(spec), Seed(1), 0, Direction::Up, Nanos::ZERO);
    let (link, last) = hour(trace, gap);
    assert_eq!(link.counts().delivered, 180_000);
    assert!(last > HOUR - gap && last < HOUR + Nanos::from_millis(140), "{last:?}");
}
