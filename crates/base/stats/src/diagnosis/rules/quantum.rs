use super::super::phase::{LENGTH_MIN, RATIO_MIN, Regularity, TICKS_MIN};
use super::super::shape::ratio;
use super::super::view::{TICK_SHARE_MIN, TOGETHER_MIN};
use super::super::{Confidence, Rule, Sign, View};
use crate::Hist;
use sample::PathFacts;
use units::{Nanos, show};

const QUANTUM_MIN: Nanos = Nanos::from_millis(4);
const TEETH_SHARE_MIN: f64 = 0.85;
const TOOTH_MIN: f64 = 0.01;
/// Tolerance before a multiple, for the resolution of clocks and histograms: responses are never
/// early.
const EARLY: f64 = 0.02;
/// Tolerance after a multiple: a busy machine sends and reads responses late.
const LATE: f64 = 0.25;
/// Minimum ratio of the recordings at a multiple to those just before it.
const RISE_MIN: u64 = 3;
/// Minimum number of peaks for certainty: a queue of equal work shows fewer.
const TEETH_SURE: usize = 3;
/// Maximum number of multiples examined.
const TEETH_MAX: usize = 1_000;
/// Highest multiple at which the fullest peak may be.
const PARTS_MAX: u64 = 8;
const SPREAD_MAX: f64 = 0.08;
const KNOWN_WITHIN: f64 = 0.05;
/// Common time slices and timer periods of systems, in seconds.
const KNOWN_S: &[f64] = &[0.01, 0.015_625, 0.02, 0.05, 0.1];

pub(crate) const RULE: Rule = Rule {
    id: "scheduling-quantum",
    title: "Responses wait for the tick of a timer or scheduler",
    reasoning: "When responses can only leave at the tick of a clock (a thread's time slice, a \
        batch timer), the instants at which they arrive are locked to a phase, regardless of \
        the service times: modulo q they coincide, for one user or fifty. A sleep of the same length \
        has no fixed phase: a late response delays the next one, while a clock's next tick is not \
        delayed. A handler that polls with a sleep shows as service times that are whole multiples \
        of q, with nothing between. With a single such peak and too few instants to determine a \
        phase, only well-known scheduler periods are reported.",
    source: "Swerve's table 8-2: 50 connections a second, exactly 20 ms each, the time slice of its \
             threads; 15.6 ms is Windows' timer, 10 ms Linux' at 100 Hz. \
             Rayleigh's test: Mardia, Jupp: Directional Statistics, 2000; the ratio of von Neumann \
             by ranks: Bartels, Journal of the American Statistical Association 77, 1982.",
    thresholds: &[
        (LENGTH_MIN, "mean resultant length of the instants modulo the tick, at least"),
        (RATIO_MIN, "ratio of von Neumann of the ticks' residuals, by ranks, at least"),
        (TICKS_MIN as f64, "ticks at which responses arrived, at least"),
        (TICK_SHARE_MIN, "tick as a share of the median service time, at least"),
        (
            TOGETHER_MIN,
            "share of several users' responses that arrive at a tick together, at least",
        ),
        (TEETH_SHARE_MIN, "share of the calls at whole multiples, at least"),
        (EARLY, "share of the tick by which a peak begins before its multiple"),
        (LATE, "share of the tick by which it ends after its multiple"),
        (TOOTH_MIN, "share of the calls in a peak to count it, at least"),
        (
            RISE_MIN as f64,
            "ratio of the calls in a peak to those in an equal time before it, at least",
        ),
        (SPREAD_MAX, "p10 to p90 as a share of the tick, for a single peak, at most"),
        (KNOWN_WITHIN, "share of a known tick by which a single peak's median is later, at most"),
    ],
    advice: "Wake the waiting thread (a condition variable, epoll) instead of polling, shorten the \
             tick, or write as soon as the response is there.",
    excludes: &["drift"],
    find,
};

fn find(view: &View<'_>) -> Option<Sign> {
    let service = view.service();
    // over an emulated path everything takes whole round trips: the path's clock, not the server's
    let path_rtt = view.evidence.path.map_or(Nanos::ZERO, PathFacts::rtt_min);
    if !view.enough() || !path_rtt.is_zero() {
        return None;
    }
    if let Regularity::Locked(ticks) = view.phase() {
        let text = format!(
            "the instants at which responses arrive keep the phase of a clock that ticks every {}, \
             over {} ticks (mean resultant length {:.2})",
            show::duration(ticks.period),
            show::count(ticks.count as u64),
            ticks.length
        );
        // one user's responses cannot share a tick: a rate limiter may look the same
        let sure = ticks.together >= TOGETHER_MIN;
        return Sign::new(if sure { Confidence::Certain } else { Confidence::Likely }, text);
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
    // with enough instants, a sleep is distinguished from a clock
    if view.phase() == Regularity::Unknown { single(service) } else { None }
}

/// Returns whether calls take one, two, three or more ticks. In a queue for workers with equal
/// times, they would take only one or two different numbers of turns: the number of calls ahead.
pub(crate) fn ticking(service: &Hist) -> bool {
    ticks(service).is_some_and(|(_, teeth, _)| teeth >= TEETH_SURE)
}

/// Returns the largest tick whose whole multiples the service times are, the number of consecutive
/// peaks, and the share of the calls in a peak.
fn ticks(service: &Hist) -> Option<(Nanos, usize, f64)> {
    let rows = service.buckets();
    let mode = mode(service, &rows)?;
    let of_part = |part: u64| {
        // the fullest peak's middle lies up to `LATE` after its multiple
        let tries = (0..=60).map(|step| mode * (1.02 - 0.005 * f64::from(step)) / part as f64);
        let combs = tries.take_while(|tick| *tick >= QUANTUM_MIN.0 as f64);
        combs.map(|tick| comb(&rows, tick)).max_by(|a, b| a.share.total_cmp(&b.share))
    };
    let found = (1..=PARTS_MAX).map_while(of_part).find_map(|rough| {
        let fine = comb(&rows, rough.slope);
        let best = if fine.share >= rough.share { fine } else { rough };
        (best.teeth >= 2 && best.share >= TEETH_SHARE_MIN).then_some(best)
    });
    found.map(|comb| (Nanos(comb.tick as u64), comb.teeth, comb.share))
}

/// Returns the center of the densest narrow interval, in nanoseconds.
fn mode(service: &Hist, rows: &[(Nanos, u64)]) -> Option<f64> {
    let counts = service.cumulative();
    let near = |value: Nanos| {
        let reach = Nanos((value.0 as f64 * EARLY) as u64);
        let up_to = |value| counts.count_at_or_below(value);
        up_to(value + reach).saturating_sub(up_to(value - reach))
    };
    rows.iter().map(|(value, _)| *value).max_by_key(|value| near(*value)).map(|v| v.0 as f64)
}

/// Fit of service times to the whole multiples of a period (the tick). Times are in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Comb {
    tick: f64,
    /// Longest run of consecutive multiples with a peak.
    teeth: usize,
    /// Share of the service times that are close to a multiple.
    share: f64,
    /// Refines the estimate of the tick: slope of the regression of service times on their
    /// multiples.
    slope: f64,
}

fn comb(rows: &[(Nanos, u64)], tick: f64) -> Comb {
    // recordings at each multiple, and in as much time before it
    let (mut at, mut before) = (vec![0; TEETH_MAX + 2], vec![0; TEETH_MAX + 2]);
    let (mut all, mut n, mut x, mut y, mut xx, mut xy) = (0, 0.0, 0.0, 0.0, 0.0, 0.0);
    for (value, count) in rows {
        all += count;
        let turns = value.0 as f64 / tick + EARLY;
        let (times, phase) = (turns.floor(), turns.fract());
        if times > TEETH_MAX as f64 {
            continue;
        }
        if phase > 1.0 - EARLY - LATE {
            before[times as usize + 1] += count;
        }
        if times >= 1.0 && phase <= EARLY + LATE {
            at[times as usize] += count;
            let (weight, value) = (*count as f64, value.0 as f64);
            n += weight;
            x += weight * times;
            y += weight * value;
            xx += weight * times * times;
            xy += weight * times * value;
        }
    }
    let all = all as f64;
    let peaks = at.iter().zip(&before).map(|(at, before): (&u64, &u64)| {
        ratio(*at as f64, all) >= TOOTH_MIN && *at >= RISE_MIN * (before + 1)
    });
    let mut run = 0;
    let runs = peaks.map(|peak| {
        run = if peak { run + 1 } else { 0 };
        run
    });
    let teeth = runs.max().unwrap_or(0);
    let spread = n * xx - x * x;
    let slope = if spread > 0.0 { (n * xy - x * y) / spread } else { tick };
    Comb { tick, teeth, share: ratio(n, all), slope }
}

fn single(service: &Hist) -> Option<Sign> {
    let at = |q: f64| service.quantile(q).as_secs_f64();
    let tick = KNOWN_S.iter().find(|tick| {
        let never_early = at(0.01) >= **tick * (1.0 - EARLY);
        never_early && at(0.5) <= **tick * (1.0 + KNOWN_WITHIN)
    })?;
    let spread = (at(0.9) - at(0.1)) / tick;
    if spread > SPREAD_MAX {
        return None;
    }
    let text = format!(
        "nearly every call takes {} (p10 to p90 within {}), a well-known scheduler period",
        show::duration(Nanos::from_secs_f64(*tick)),
        show::share(spread)
    );
    Sign::new(Confidence::Possible, text)
}
