use super::*;
use crate::spec::PathSpec;
use crate::trace::{NoTraces, Trace};
use proptest::prelude::*;

fn up(text: &str) -> Arc<LinkSpec> {
    Arc::new(PathSpec::parse(text, &NoTraces).expect("a path").up)
}

fn link(text: &str) -> PathLink {
    PathLink::new(up(text), Seed(1), 0, Direction::Up, Nanos::ZERO)
}

/// Returns the fates of packets given as (microsecond, bytes): `token@µs` for arrivals, in order,
/// and `token!` with the letter of the cause for losses.
fn fates(link: &mut PathLink, packets: &[(u64, u32)]) -> String {
    let mut lost = Vec::new();
    let mut out = Vec::new();
    for (token, (at, bytes)) in packets.iter().enumerate() {
        let now = Nanos::from_micros(*at);
        if link.push(now, *bytes, token as u32, &mut lost) == 0 {
            out.push(format!("{token}!"));
        }
    }
    while let Some(came) = link.pop(Nanos::NEVER, &mut lost) {
        out.push(format!("{}@{}", came.token, came.due.0 / 1_000));
    }
    out.extend(lost.iter().map(|one| format!("{}!{:?}", one.token, one.to)));
    out.join(" ")
}

#[test]
fn packets_of_1500_bytes_leave_a_link_of_12_megabits_1_ms_apart() {
    let packets = [(0, 1_500); 4];
    assert_eq!(fates(&mut link("rate=12M"), &packets), "0@1000 1@2000 2@3000 3@4000");
    let mut late = link("rate=12M, delay=20ms");
    assert_eq!(fates(&mut late, &[(0, 1_500), (5_000, 750)]), "0@21000 1@25500");
    let mut heavy = link("rate=12M, overhead=38");
    assert_eq!(fates(&mut heavy, &[(0, 1_462)]), "0@1000");
}

#[test]
fn a_constant_delay_keeps_order_and_gaps() {
    let packets = [(0, 40), (3, 1_500), (3, 40), (1_000, 40)];
    assert_eq!(fates(&mut link("delay=50ms"), &packets), "0@50000 1@50003 2@50003 3@51000");
}

#[test]
fn after_a_pause_a_bucket_sends_at_once() {
    let packets = [(0, 1_500); 5];
    let mut bucket = link("rate=12M, bucket=3000");
    assert_eq!(
        fates(&mut bucket, &[(10_000, 1_500); 5]),
        "0@10000 1@10000 2@11000 3@12000 4@13000"
    );
    assert_eq!(fates(&mut link("rate=12M"), &packets), "0@1000 1@2000 2@3000 3@4000 4@5000");
}

#[test]
fn queues_drop_their_tail_or_their_head() {
    let packets = [(0, 1_500); 5];
    let mut tail = link("rate=12M, queue=2p");
    assert_eq!(fates(&mut tail, &packets), "3! 4! 0@1000 1@2000 2@3000");
    assert_eq!(tail.counts().lost_to_queue, 2);
    assert_eq!(tail.counts().queued_max, 2);
    let mut head = link("rate=12M, queue=2p, drop=head");
    assert_eq!(fates(&mut head, &packets), "0@1000 3@2000 4@3000 1!LinkQueue 2!LinkQueue");
    assert_eq!(head.counts().lost_to_queue, 2);
    let mut bytes = link("rate=12M, queue=3000B");
    let mixed = [(0, 1_500), (0, 1_500), (0, 1_000), (0, 1_000), (0, 500)];
    assert_eq!(fates(&mut bytes, &mixed), "3! 0@1000 1@2000 2@2666 4@3000");
}

/// Twice as many packets as the link carries: the queue delay is above 5 ms from about 10 ms on, so
/// that the first packet is dropped 100 ms later, and further ones at intervals of 100 ms / √n (RFC
/// 8289 section 5.4).
#[test]
fn codel_drops_faster_while_the_queue_persists() {
    let mut link = link("rate=12M, queue=none, drop=codel");
    let mut lost = Vec::new();
    let mut drops = Vec::new();
    for tick in 0..900_u64 {
        let now = Nanos::from_micros(500 * tick);
        let before = lost.len();
        link.push(now, 1_500, tick as u32, &mut lost);
        drops.extend((before..lost.len()).map(|_| now.0 / 1_000_000));
    }
    let gaps: Vec<u64> = drops.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(drops[0], 110);
    assert_eq!(gaps, [100, 71, 58, 50, 45]);
    assert_eq!(link.counts().lost_to_codel, 6);
}

#[test]
fn webmark_charges_the_round_trip_to_the_packet() {
    let modem = |bytes| fates(&mut link("webmark, rate=56k, delay=100ms"), &[(0, bytes)]);
    assert_eq!(modem(40), "0@211428");
    assert_eq!(modem(60), "0@217142");
    assert_eq!(fates(&mut link("webmark, rate=1500k, delay=25ms"), &[(0, 1_500)]), "0@66000");
    assert_eq!(fates(&mut link("webmark, rate=10M, delay=0ms"), &[(0, 1_500)]), "0@2400");
    // each packet has its own delay: the small acknowledgment overtakes if that is allowed
    let packets = [(0, 1_500), (0, 40)];
    let free = "webmark, rate=56k, delay=100ms, order=free";
    assert_eq!(fates(&mut link(free), &packets), "1@211428 0@628571");
    let kept = "webmark, rate=56k, delay=100ms, order=keep";
    assert_eq!(fates(&mut link(kept), &packets), "0@628571 1@628571");
    // a kernel with 100 timer ticks per second
    let old = "webmark, rate=56k, delay=100ms, quantum=10ms";
    assert_eq!(fates(&mut link(old), &[(0, 40)]), "0@220000");
}

#[test]
fn jitter_overtakes_only_where_it_may() {
    let packets: Vec<(u64, u32)> = (0..200).map(|tick| (tick * 100, 100)).collect();
    let tokens = |text: &str| -> Vec<u32> {
        let mut link = link(text);
        let mut lost = Vec::new();
        for (token, (at, bytes)) in packets.iter().enumerate() {
            link.push(Nanos::from_micros(*at), *bytes, token as u32, &mut lost);
        }
        std::iter::from_fn(|| link.pop(Nanos::NEVER, &mut lost)).map(|came| came.token).collect()
    };
    assert!(tokens("delay=10ms, jitter=5ms").is_sorted());
    let free = tokens("delay=10ms, jitter=5ms, order=free");
    assert!(!free.is_sorted());
    assert_eq!(free.len(), packets.len());
}

#[test]
fn every_third_packet_overtakes() {
    let packets = [(0, 40); 6];
    let fates = fates(&mut link("delay=10ms, reorder=100%:3"), &packets);
    assert_eq!(fates, "2@0 5@0 0@10000 1@10000 3@10000 4@10000");
}

#[test]
fn a_copy_passes_the_rate_by_itself() {
    let mut link = link("rate=12M, duplicate=100%");
    assert_eq!(fates(&mut link, &[(0, 1_500), (0, 1_500)]), "0@1000 0@2000 1@3000 1@4000");
    assert_eq!(link.counts().duplicated, 2);
}

/// Packets are counted, not decisions: the third is dropped by the full queue, and the copy of a
/// flipped packet is flipped too.
#[test]
fn delivered_corrupt_packets_are_counted() {
    let packets = [(0, 1_500); 3];
    let mut full = link("rate=12M, queue=1p, corrupt=100%");
    assert_eq!(fates(&mut full, &packets), "2! 0@1000 1@2000");
    assert_eq!((full.counts().corrupted, full.counts().delivered), (2, 2));
    let mut twice = link("duplicate=100%, corrupt=100%");
    fates(&mut twice, &packets);
    assert_eq!((twice.counts().corrupted, twice.counts().delivered), (6, 6));
}

/// Returns the mean delay in microseconds at this packet rate, with a jitter of 10 ms around 50 ms.
fn mean_delay(order: &str, per_second: u64) -> u64 {
    let mut link = link(&format!("delay=50ms, jitter=10ms, dist=uniform, order={order}"));
    let (mut lost, mut sum) = (Vec::new(), 0);
    const PACKETS: u64 = 20_000;
    let sent = |token: u64| Nanos(token * 1_000_000_000 / per_second);
    for token in 0..PACKETS {
        link.push(sent(token), 100, token as u32, &mut lost);
    }
    while let Some(came) = link.pop(Nanos::NEVER, &mut lost) {
        sum += (came.due - sent(came.token.into())).0;
    }
    sum / PACKETS / 1_000
}

/// With order preserved, packets wait for the slowest one before: the mean delay is that of the
/// distribution if packets are further apart than the jitter, and approaches its maximum if many
/// are in flight.
#[test]
fn with_order_kept_the_mean_delay_rises_with_the_rate() {
    let means = |order| [10, 1_000, 10_000].map(|rate| mean_delay(order, rate) / 100);
    assert_eq!(means("free"), [500, 500, 500]);
    assert_eq!(means("keep"), [500, 552, 583]);
}

#[test]
fn an_outage_delays_or_drops_packets() {
    let packets = [(0, 40), (10_500, 40), (11_500, 40)];
    assert_eq!(fates(&mut link("outage=10ms:1ms:fixed"), &packets), "0@0 1@11000 2@11500");
    assert_eq!(fates(&mut link("outage=10ms:1ms:fixed:lose"), &packets), "1! 0@0 2@11500");
}

/// Losses are a function of the seed and the packet number: delays, times and the other stages do
/// not change them.
#[test]
fn a_delay_does_not_change_which_packets_are_lost() {
    let lost = |text: &str, seed, gap: u64| -> Vec<u32> {
        let mut link = PathLink::new(up(text), Seed(seed), 3, Direction::Up, Nanos::ZERO);
        let mut lost = Vec::new();
        (0..500_u32)
            .filter(|n| link.push(Nanos(u64::from(*n) * gap), 100, *n, &mut lost) == 0)
            .collect()
    };
    let plain = lost("loss=5%, burst=3", 1, 1_000);
    assert!(!plain.is_empty());
    assert_eq!(plain, lost("loss=5%, burst=3, delay=80ms, jitter=20ms, dist=pareto", 1, 77));
    assert_eq!(plain, lost("loss=5%, burst=3, duplicate=10%, corrupt=10%", 1, 5_000_000));
    assert_ne!(plain, lost("loss=5%, burst=3", 2, 1_000));
}

#[test]
fn directions_and_links_draw_independent_numbers() {
    let lost = |index, direction| -> Vec<u32> {
        let mut link = PathLink::new(up("loss=5%"), Seed(1), index, direction, Nanos::ZERO);
        let mut lost = Vec::new();
        (0..500).filter(|n| link.push(Nanos::ZERO, 100, *n, &mut lost) == 0).collect()
    };
    assert_ne!(lost(0, Direction::Up), lost(0, Direction::Down));
    assert_ne!(lost(0, Direction::Up), lost(1, Direction::Up));
}

#[test]
fn a_flipped_bit_is_after_the_header() {
    let mut clean = vec![0_u8; 60];
    clean[0] = 0x46;
    for number in 0..2_000 {
        let mut packet = clean.clone();
        flip(&mut packet, number);
        let changed: Vec<usize> = (0..60).filter(|at| packet[*at] != clean[*at]).collect();
        assert!(changed.len() == 1 && changed[0] >= 24, "{number}: {changed:?}");
    }
    // nothing after the header, and an empty packet: nothing to flip
    let mut header = vec![0x45; 20];
    flip(&mut header, 5);
    assert_eq!(header, [0x45; 20]);
    flip(&mut [], 5);
}

/// Applies the rules of mahimahi, millisecond by millisecond: a program that steps through time.
fn by_the_rules(lines: &[u32], packets: &[(u64, u32)]) -> Vec<(u32, u64)> {
    let period = u64::from(*lines.last().expect("a line"));
    let mut queue = VecDeque::new();
    let mut partly: Option<(u32, u32)> = None;
    let mut out = Vec::new();
    let mut coming = packets.iter().enumerate().peekable();
    for ms in 0..u64::MAX {
        let rounds = [ms / period, (ms / period).wrapping_sub(1)];
        for _ in rounds.iter().flat_map(|round| {
            lines
                .iter()
                .filter(move |line| *round != u64::MAX && round * period + u64::from(**line) == ms)
        }) {
            let mut room = 1_504;
            while room > 0 {
                let (token, left) = match partly.take() {
                    Some(partly) => partly,
                    None => match queue.pop_front() {
                        Some(next) => next,
                        None => break,
                    },
                };
                let carried = room.min(left);
                room -= carried;
                if carried == left {
                    out.push((token, ms));
                } else {
                    partly = Some((token, left - carried));
                }
            }
        }
        while let Some((token, (_, bytes))) = coming.next_if(|(_, (at, _))| *at == ms) {
            queue.push_back((token as u32, bytes + 4));
        }
        if out.len() == packets.len() {
            return out;
        }
    }
    unreachable!("a trace carries everything in the end")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn traces_deliver_like_mahimahi(
        mut lines in proptest::collection::vec(0..30_u32, 1..12),
        mut packets in proptest::collection::vec((0..120_u64, 20..3_000_u32), 1..25),
    ) {
        lines.sort_unstable();
        lines.push(lines.last().expect("a line") + 1);
        packets.sort_unstable();
        let text: Vec<String> = lines.iter().map(u32::to_string).collect();
        let trace = Trace::parse(&text.join("\n")).expect("a trace");
        let spec = LinkSpec { carrier: crate::spec::Carrier::Trace(Arc::new(trace)), ..LinkSpec::default() };
        let mut link = PathLink::new(Arc::new(spec), Seed(1), 0, Direction::Down, Nanos::ZERO);
        let mut lost = Vec::new();
        for (token, (at, bytes)) in packets.iter().enumerate() {
            link.push(Nanos::from_millis(*at), *bytes, token as u32, &mut lost);
        }
        let found: Vec<(u32, u64)> = std::iter::from_fn(|| link.pop(Nanos::NEVER, &mut lost))
            .map(|came| (came.token, came.due.0 / 1_000_000))
            .collect();
        prop_assert_eq!(found, by_the_rules(&lines, &packets));
    }

    /// For any link: no packet is lost, order is preserved where required, and a caller that wakes
    /// up when `next` says so delivers every packet exactly on time.
    #[test]
    fn no_packet_vanishes_and_no_wakeup_is_late(
        text in any_link(),
        gaps in proptest::collection::vec((0..3_000_u64, 40..1_500_u32), 1..120),
        seed in 0..1_000_u64,
    ) {
        let spec = Arc::new(PathSpec::parse(&text, &NoTraces).expect("a path").up);
        let mut link = PathLink::new(spec.clone(), Seed(seed), 0, Direction::Up, Nanos::ZERO);
        let (mut lost, mut held, mut now) = (Vec::new(), 0_u64, Nanos::ZERO);
        let (mut came, mut refused) = (Vec::new(), 0_u64);
        for (token, (gap, bytes)) in gaps.iter().enumerate() {
            let at = now + Nanos::from_micros(*gap);
            while let Some(next) = link.next_at().filter(|next| *next < at) {
                now = now.max(next);
                take(&mut link, now, &mut lost, &mut came)?;
            }
            now = at;
            let copies = link.push(now, *bytes, token as u32, &mut lost);
            held += u64::from(copies);
            refused += u64::from(copies == 0);
        }
        while let Some(next) = link.next_at() {
            prop_assert!(next < Nanos::from_secs(3_600), "it ends");
            now = now.max(next);
            take(&mut link, now, &mut lost, &mut came)?;
        }
        let counts = link.counts();
        prop_assert_eq!(came.len() as u64 + lost.len() as u64, held);
        prop_assert_eq!(counts.delivered, came.len() as u64);
        prop_assert_eq!(counts.arrived, gaps.len() as u64);
        prop_assert_eq!(counts.arrived + counts.duplicated, counts.delivered + counts.lost());
        if refused == 0 && lost.is_empty() {
            prop_assert!(counts.lost() == 0 || counts.duplicated > 0);
        }
        if spec.keeps_order && spec.ahead.is_none() {
            let tokens: Vec<u32> = came.iter().map(|one| one.token).collect();
            prop_assert!(tokens.is_sorted(), "{:?}", tokens);
        }
    }
}

fn take(
    link: &mut PathLink,
    now: Nanos,
    lost: &mut Vec<Lost>,
    came: &mut Vec<Delivery>,
) -> Result<(), TestCaseError> {
    while let Some(delivery) = link.pop(now, lost) {
        prop_assert_eq!(delivery.due, now, "handed over late");
        came.push(delivery);
    }
    Ok(())
}

fn any_link() -> impl Strategy<Value = String> {
    let part = |parts: &'static [&'static str]| proptest::sample::select(parts);
    (
        part(&[
            "rtt=0ms",
            "delay=3ms",
            "delay=3ms, jitter=2ms",
            "delay=9ms, jitter=3ms, dist=normal",
            "delay=1ms, jitter=4ms, dist=pareto",
        ]),
        part(&["", "order=free", "reorder=50%:2", "quantum=1ms"]),
        part(&[
            "",
            "rate=8M",
            "rate=3M, queue=5p",
            "rate=3M, queue=4k, drop=head",
            "rate=2M, drop=codel:1ms:5ms",
            "rate=6M, bucket=6k",
        ]),
        part(&[
            "",
            "loss=10%",
            "loss=10%, burst=4",
            "loss=states:2%:30%:10%:40%:1%",
            "loss=list:2:3",
        ]),
        part(&["", "duplicate=20%", "corrupt=50%", "outage=5ms:2ms", "outage=5ms:2ms:lose"]),
    )
        .prop_map(|(a, b, c, d, e)| {
            let parts = [a, b, c, d, e];
            parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
        })
}
