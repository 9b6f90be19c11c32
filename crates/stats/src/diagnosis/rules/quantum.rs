use super::super::shape::{between, ratio};
use super::super::{Confidence, Rule, Sign, View};
use crate::Hist;
use units::{Nanos, show};

const QUANTUM_MIN: Nanos = Nanos::from_millis(4);
const TEETH_SHARE_MIN: f64 = 0.85;
const TOOTH_MIN: f64 = 0.02;
const WIDTH: f64 = 0.03;
/// An answer is never early, and on a busy machine it is read late.
const LATE: f64 = 0.08;
/// Peaks that no queue of equal work would show.
const TEETH_SURE: usize = 3;
const SPREAD_MAX: f64 = 0.02;
/// Time slices and timer periods that systems have, in seconds.
const KNOWN_S: &[f64] = &[0.01, 0.015_625, 0.02, 0.05, 0.1];

pub(crate) const RULE: Rule = Rule {
    id: "scheduling-quantum",
    title: "Answers wait for the tick of a timer or scheduler",
    reasoning: "When answers can only leave at the tick of a clock (a thread's time slice, a polling \
                loop that sleeps, a batch timer), service times are whole multiples of the tick: \
                peaks at q, 2 q, 3 q and nothing between. One call at a time then takes exactly q \
                and the throughput of each user is 1/q. With a single peak, a plain sleep in the \
                handler looks the same, so only the periods that schedulers are known for are told.",
    source: "Swerve's table 8-2: 50 connections a second, exactly 20 ms each, the time slice of its \
             threads; 15.6 ms is Windows' timer, 10 ms Linux' at 100 Hz.",
    thresholds: &[
        (TEETH_SHARE_MIN, "share of the calls at whole multiples, at least"),
        (WIDTH, "share of the tick by which a peak begins before its multiple"),
        (LATE, "share of the tick by which it ends after its multiple"),
        (TOOTH_MIN, "share of the calls in a peak to count it, at least"),
        (SPREAD_MAX, "p10 to p90 as a share of the median, for a single peak, at most"),
    ],
    advice: "Let the waiting thread be woken (a condition, epoll) instead of polled, shorten the \
             tick, or write as soon as the answer is there.",
    excludes: &["drift"],
    find,
};

fn find(view: &View<'_>) -> Option<Sign> {
    let service = view.service();
    if !view.enough() {
        return None;
    }
    if let Some((tick, teeth, share)) = ticks(service) {
        let text = format!(
            "{} of the calls take a multiple of {}, with {teeth} such peaks and little between",
            show::share(share),
            show::duration(tick)
        );
        let sure = if teeth >= TEETH_SURE { Confidence::Certain } else { Confidence::Likely };
        return Sign::new(sure, text);
    }
    single(service)
}

/// Whether calls take one tick, or two, or three and more. In a queue for workers who all take the
/// same time, they would take one or two numbers of turns only: as many as stand ahead.
pub(super) fn ticking(service: &Hist) -> bool {
    ticks(service).is_some_and(|(_, teeth, _)| teeth >= TEETH_SURE)
}

/// The largest tick that the calls take whole multiples of, the number of peaks, and their share.
fn ticks(service: &Hist) -> Option<(Nanos, usize, f64)> {
    let mode = mode(service)?;
    let parts = (1..=8u64).map(|part| Nanos(mode.0 / part)).take_while(|tick| *tick >= QUANTUM_MIN);
    let mut combs = parts.map(|tick| (tick, comb(service, tick)));
    let found = combs.find(|(_, (teeth, share))| *teeth >= 2 && *share >= TEETH_SHARE_MIN);
    found.map(|(tick, (teeth, share))| (tick, teeth, share))
}

/// The middle of the narrow stretch with the most recordings.
fn mode(service: &Hist) -> Option<Nanos> {
    let rows = service.buckets();
    let near = |value: Nanos| {
        let reach = Nanos((value.0 as f64 * WIDTH) as u64);
        between(service, value - reach, value + reach)
    };
    rows.into_iter().map(|(value, _)| value).max_by_key(|value| near(*value))
}

/// Peaks at multiples of `tick` that are worth the name, and the share of all calls in any.
fn comb(service: &Hist, tick: Nanos) -> (usize, f64) {
    let early = Nanos((tick.0 as f64 * WIDTH) as u64);
    let late = Nanos((tick.0 as f64 * LATE) as u64 + 300_000);
    let last = (service.max().0 / tick.0 + 1).min(1_000);
    let counts: Vec<u64> = (1..=last)
        .map(|times| between(service, tick * times - early, tick * times + late))
        .collect();
    let all = service.count() as f64;
    let teeth = counts.iter().filter(|count| ratio(**count as f64, all) >= TOOTH_MIN).count();
    (teeth, ratio(counts.iter().sum::<u64>() as f64, all))
}

fn single(service: &Hist) -> Option<Sign> {
    let (low, middle, high) = (service.quantile(0.1), service.quantile(0.5), service.quantile(0.9));
    let spread = ratio((high - low).as_secs_f64(), middle.as_secs_f64());
    let known =
        KNOWN_S.iter().find(|tick| (middle.as_secs_f64() / **tick - 1.0).abs() <= SPREAD_MAX)?;
    if spread > SPREAD_MAX {
        return None;
    }
    let text = format!(
        "nearly every call takes {} (p10 to p90 within {}), a period that schedulers are known for",
        show::duration(Nanos::from_secs_f64(*known)),
        show::share(spread)
    );
    Sign::new(Confidence::Possible, text)
}
