//! Kneedle: finds the knee of a curve from its form alone (Satopaa, Albrecht, Irwin, Raghavan,
//! "Finding a Kneedle in a haystack", ICDCS workshops 2011).

/// Direction in which a curve bends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Throughput over load.
    ConcaveIncreasing,
    ConvexDecreasing,
    /// Response time over load.
    ConvexIncreasing,
    ConcaveDecreasing,
}

/// Returns the x of the first knee. `x` ascending, as many as `y`; `sensitivity` (the paper's S, 1
/// as a rule) is how far the curve must fall below its peak distance from the chord, in mean steps
/// of x. `None` for fewer than three points, a flat curve, no knee, or values that are not finite.
pub fn kneedle(x: &[f64], y: &[f64], form: Form, sensitivity: f64) -> Option<f64> {
    let n = x.len();
    if n < 3 || y.len() != n || x.iter().chain(y).any(|value| !value.is_finite()) {
        return None;
    }
    let y = upright(y, form);
    let x_unit = unit(x)?;
    let distance: Vec<f64> = unit(&y)?.iter().zip(&x_unit).map(|(y, x)| y - x).collect();
    let margin = sensitivity / (n - 1) as f64;
    let index = first_knee(&distance, margin)?;
    Some(match form {
        Form::ConcaveIncreasing | Form::ConvexDecreasing => x[index],
        Form::ConvexIncreasing | Form::ConcaveDecreasing => x[n - 1 - index],
    })
}

/// Returns the curve mirrored so that it rises and is concave.
fn upright(y: &[f64], form: Form) -> Vec<f64> {
    let max = y.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    match form {
        Form::ConcaveIncreasing => y.to_vec(),
        Form::ConvexDecreasing => y.iter().map(|value| max - value).collect(),
        Form::ConvexIncreasing => y.iter().rev().map(|value| max - value).collect(),
        Form::ConcaveDecreasing => y.iter().rev().copied().collect(),
    }
}

/// Returns the values scaled to 0..=1; `None` if all are equal.
fn unit(values: &[f64]) -> Option<Vec<f64>> {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (high > low).then(|| values.iter().map(|value| (value - low) / (high - low)).collect())
}

/// Accepts a local maximum of the distance as the knee once the distance has fallen `margin` below
/// it before the next maximum; after a local minimum, waits for the next maximum.
fn first_knee(distance: &[f64], margin: f64) -> Option<usize> {
    let last = distance.len() - 1;
    let left = |at: usize| distance[at.saturating_sub(1)];
    let right = |at: usize| distance[(at + 1).min(last)];
    let mut candidate: Option<(usize, f64)> = None;
    for at in 0..last {
        let here = distance[at];
        if here >= left(at) && here >= right(at) {
            candidate = Some((at, here - margin));
        } else if here <= left(at) && here <= right(at) {
            candidate = candidate.map(|(index, _)| (index, 0.0));
        }
        if let Some((index, threshold)) = candidate
            && distance[at + 1] < threshold
        {
            return Some(index);
        }
    }
    None
}
