//! Detects whether responses are sent at the ticks of a clock, from the instants at which they
//! arrive, whatever the service times.
//!
//! Two questions. *Do the instants keep a phase?* The mean resultant length of the instants modulo
//! q (Rayleigh's test: Mardia, Jupp: Directional Statistics, 2000, §6.3), over stretches of about a
//! second, searched over all periods q. *Is the phase that of a clock?* A user who calls again as
//! soon as the response arrives, and each time waits for a sleep of q, keeps a phase for a while
//! too; but there every late response delays all later ones, so that the phase wanders, while a
//! clock's next tick is not delayed. Von Neumann's ratio of the ticks' residuals, in its rank form,
//! distinguishes the two: Bartels, Journal of the American Statistical Association 77, 1982. It is
//! near 2 for independent residuals, and near 0 for a walk.

use super::shape::ratio;
use units::Nanos;

pub(crate) const TICK_MIN: Nanos = Nanos::from_millis(4);
pub(crate) const TICK_MAX: Nanos = Nanos::from_millis(250);
/// Minimum number of ticks with responses.
pub(crate) const TICKS_MIN: usize = 32;
/// Smallest mean resultant length of instants that are locked to a phase.
pub(crate) const LENGTH_MIN: f64 = 0.75;
/// Smallest ratio of von Neumann, by ranks, of a clock's residuals.
pub(crate) const RATIO_MIN: f64 = 1.25;
/// Minimum number of responses in a stretch, and the number that its length is chosen for.
const STRETCH_RESPONSES_MIN: usize = 8;
const STRETCH_RESPONSES: f64 = 12.0;
const STRETCH_S: (f64, f64) = (1.0, 4.0);
/// Seconds within which clocks cannot distinguish two residuals.
const SAME: f64 = 1e-6;
/// Number of instants that are rotated in parallel.
const LANES: usize = 8;
/// Number of tested frequencies per resolution of a stretch (1 / its length).
const OVERSAMPLED: f64 = 4.0;

/// Result about the instants of the responses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Regularity {
    /// Too few responses.
    Unknown,
    /// Not from a clock.
    Free,
    Locked(Ticks),
}

/// A clock at whose ticks responses arrive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ticks {
    pub(crate) period: Nanos,
    /// Ticks at which responses arrived.
    pub(crate) count: usize,
    /// Mean resultant length, 0..=1.
    pub(crate) length: f64,
    /// Share of the responses that arrived at the same tick as another, 0..=1.
    pub(crate) together: f64,
    /// Mean resultant length of the instants at which the calls fell due, by the same clock.
    pub(crate) due_length: f64,
}

/// Detects the clock. `rows`: (answered, due), in order of the responses.
pub(crate) fn phase(rows: &[(Nanos, Nanos)]) -> Regularity {
    let Some((first, _)) = rows.first() else { return Regularity::Unknown };
    // due instants may precede the first response
    let seconds = |at: Nanos| (at.0 as f64 - first.0 as f64) / 1e9;
    let times: Vec<f64> = rows.iter().map(|(done, _)| seconds(*done)).collect();
    let (stretches, length_s) = dense_ranges(&times);
    if times.len() < TICKS_MIN || stretches.is_empty() {
        return Regularity::Unknown;
    }
    let Some((frequency, power)) = fundamental(&times, &stretches, length_s) else {
        return Regularity::Free;
    };
    let ticks = (0..2).fold((1.0 / frequency, Vec::new()), |(period, _), _| {
        let ticks = ticks(&times, period);
        (line(&ticks).1, ticks)
    });
    let (period, ticks) = ticks;
    if ticks.len() < TICKS_MIN {
        return Regularity::Unknown;
    }
    let (start, slope) = line(&ticks);
    let residuals: Vec<f64> =
        ticks.iter().map(|tick| tick.at - start - slope * tick.turn).collect();
    if !period.is_finite() || period <= 0.0 || von_neumann(&residuals) < RATIO_MIN {
        return Regularity::Free;
    }
    let due: Vec<f64> = rows.iter().map(|(_, due)| seconds(*due)).collect();
    let crowded: usize = ticks.iter().map(|tick| tick.responses).filter(|n| *n > 1).sum();
    Regularity::Locked(Ticks {
        period: Nanos::from_secs_f64(period),
        count: ticks.len(),
        length: power.max(0.0).sqrt(),
        together: ratio(crowded as f64, times.len() as f64),
        due_length: power_at(&due, &stretches, frequency).max(0.0).sqrt(),
    })
}

/// Returns half-open ranges of responses that lie within this many seconds, each with enough of
/// them; their length in seconds.
fn dense_ranges(times: &[f64]) -> (Vec<(usize, usize)>, f64) {
    let span = times.last().copied().unwrap_or(0.0);
    let length_s =
        ratio(STRETCH_RESPONSES * span, times.len() as f64).clamp(STRETCH_S.0, STRETCH_S.1);
    let mut found = Vec::new();
    let mut from = 0;
    while from < times.len() {
        let to = times.partition_point(|at| *at < times[from] + length_s);
        if to - from >= STRETCH_RESPONSES_MIN {
            found.push((from, to));
        }
        from = to;
    }
    (found, length_s)
}

/// Returns the squared mean resultant length of `n` unit vectors with this sum, corrected for
/// chance.
fn unbiased((x, y): (f64, f64), n: f64) -> f64 {
    ((x * x + y * y) / n - 1.0) / (n - 1.0)
}

/// Returns the mean over the stretches of the squared mean resultant length, weighted by their
/// responses.
fn power_at(times: &[f64], stretches: &[(usize, usize)], frequency: f64) -> f64 {
    let (mut power, mut weight) = (0.0, 0.0);
    for (from, to) in stretches {
        let turns =
            times[*from..*to].iter().map(|at| (at * frequency * std::f64::consts::TAU).sin_cos());
        let sum = turns.fold((0.0, 0.0), |(x, y), (sin, cos)| (x + cos, y + sin));
        let n = (to - from) as f64;
        power += n * unbiased(sum, n);
        weight += n;
    }
    ratio(power, weight)
}

/// Returns the lowest frequency by which the instants keep a phase, and its power: a clock's
/// instants also keep one by every multiple of its frequency.
fn fundamental(times: &[f64], stretches: &[(usize, usize)], length_s: f64) -> Option<(f64, f64)> {
    let step = 1.0 / (OVERSAMPLED * length_s);
    let lowest = 1.0 / TICK_MAX.as_secs_f64();
    let powers = powers(times, stretches, lowest, step);
    let enough = LENGTH_MIN * LENGTH_MIN;
    // between two tested frequencies the power is up to a twentieth higher
    let mut top = powers.iter().position(|power| *power >= 0.95 * enough)?;
    while powers.get(top + 1).is_some_and(|next| *next > powers[top]) {
        top += 1;
    }
    let near = lowest + top as f64 * step;
    let fine = (-8..=8).map(|part| near + step * f64::from(part) / 8.0);
    let found = fine.map(|frequency| (frequency, power_at(times, stretches, frequency)));
    found.max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, power)| *power >= enough)
}

/// Returns the power at `lowest` and at each step above it, up to the shortest tick's frequency.
fn powers(times: &[f64], stretches: &[(usize, usize)], lowest: f64, step: f64) -> Vec<f64> {
    let count = ((1.0 / TICK_MIN.as_secs_f64() - lowest) / step) as usize + 2;
    let (mut powers, mut weight) = (vec![0.0; count], 0.0);
    let mut sums = vec![(0.0, 0.0); count];
    for (from, to) in stretches {
        sums.fill((0.0, 0.0));
        for some in times[*from..*to].chunks(LANES) {
            add_unit_vectors(some, times[*from], (lowest, step), &mut sums);
        }
        let n = (to - from) as f64;
        weight += n;
        for (power, sum) in powers.iter_mut().zip(&sums) {
            *power += n * unbiased(*sum, n);
        }
    }
    powers.iter().map(|power| power / weight).collect()
}

/// Adds the unit vectors of at most [`LANES`] instants, counted from `start`, at `lowest` and at
/// each `step` above it. Uses one rotation per frequency instead of a sine and a cosine, for
/// several instants at once, because a rotation waits for the previous one. A lane without an
/// instant has no length.
fn add_unit_vectors(
    times: &[f64],
    start: f64,
    (lowest, step): (f64, f64),
    sums: &mut [(f64, f64)],
) {
    let ([mut x, mut y], [mut cos, mut sin]) = ([[0.0; LANES]; 2], [[0.0; LANES]; 2]);
    for (lane, at) in times.iter().enumerate() {
        let at = (at - start) * std::f64::consts::TAU;
        (y[lane], x[lane]) = (at * lowest).sin_cos();
        (sin[lane], cos[lane]) = (at * step).sin_cos();
    }
    for sum in sums {
        sum.0 += x.iter().sum::<f64>();
        sum.1 += y.iter().sum::<f64>();
        for lane in 0..LANES {
            let (now_x, now_y) = (x[lane], y[lane]);
            x[lane] = now_x * cos[lane] - now_y * sin[lane];
            y[lane] = now_x * sin[lane] + now_y * cos[lane];
        }
    }
}

/// Tick with responses.
#[derive(Clone, Copy, Debug)]
struct Tick {
    /// Number of ticks since the first one.
    turn: f64,
    /// Mean instant of its responses, in seconds.
    at: f64,
    responses: usize,
}

fn ticks(times: &[f64], period: f64) -> Vec<Tick> {
    let mut ticks: Vec<Tick> = Vec::new();
    for at in times {
        let since = ticks.last().map(|tick| ((at - tick.at) / period).round());
        match (ticks.last_mut(), since) {
            (Some(tick), Some(turns)) if turns < 1.0 => {
                tick.responses += 1;
                tick.at += (at - tick.at) / tick.responses as f64;
            }
            (Some(tick), Some(turns)) => {
                let turn = tick.turn + turns;
                ticks.push(Tick { turn, at: *at, responses: 1 });
            }
            _ => ticks.push(Tick { turn: 0.0, at: *at, responses: 1 }),
        }
    }
    ticks
}

/// Returns the start and slope of the straight line through the ticks, by least squares.
fn line(ticks: &[Tick]) -> (f64, f64) {
    let n = ticks.len() as f64;
    let turn = ratio(ticks.iter().map(|tick| tick.turn).sum(), n);
    let at = ratio(ticks.iter().map(|tick| tick.at).sum(), n);
    let along: f64 = ticks.iter().map(|tick| (tick.turn - turn) * (tick.at - at)).sum();
    let square: f64 = ticks.iter().map(|tick| (tick.turn - turn).powi(2)).sum();
    let slope = ratio(along, square);
    (at - slope * turn, slope)
}

/// Returns the sum of the squared differences of neighbors' ranks over that of the ranks from their
/// mean. Residuals within [`SAME`] share a rank; if all do, they are independent: 2.
fn von_neumann(residuals: &[f64]) -> f64 {
    let values: Vec<i64> = residuals.iter().map(|value| (value / SAME).round() as i64).collect();
    let mut sorted = values.clone();
    sorted.sort_unstable();
    let rank = |value: &i64| {
        let below = sorted.partition_point(|other| other < value);
        let within = sorted.partition_point(|other| other <= value);
        (below + within) as f64 / 2.0
    };
    let ranks: Vec<f64> = values.iter().map(rank).collect();
    let middle = ranks.len() as f64 / 2.0;
    let spread: f64 = ranks.iter().map(|rank| (rank - middle).powi(2)).sum();
    let steps: f64 = ranks.windows(2).map(|pair| (pair[1] - pair[0]).powi(2)).sum();
    if spread > 0.0 { steps / spread } else { 2.0 }
}

#[cfg(test)]
mod tests;
