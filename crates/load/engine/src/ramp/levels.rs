//! The levels of a staircase.

use super::STEPS_MAX;

/// Progression of a staircase from its lowest level to its highest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Staircase {
    /// Adds the same difference.
    Step(f64),
    /// Multiplies by the same factor, above 1.
    Factor(f64),
}

/// Returns `from`, `from + step`, … and finally `to`, which is always a level. `None` for more than
/// [`STEPS_MAX`] levels or invalid figures.
pub fn linear(from: f64, to: f64, step: f64) -> Option<Vec<f64>> {
    let sound = from >= 0.0 && to >= from && step > 0.0 && to.is_finite();
    if !sound || (to - from) / step > STEPS_MAX as f64 {
        return None;
    }
    let whole = ((to - from) / step + 1e-9).floor() as usize;
    Some(closed((0..=whole).map(|index| from + step * index as f64).collect(), to))
}

/// Returns `from`, `from × factor`, … and finally `to`. Like [`linear`].
pub fn geometric(from: f64, to: f64, factor: f64) -> Option<Vec<f64>> {
    let sound = from > 0.0 && to >= from && factor > 1.0 && to.is_finite() && factor.is_finite();
    if !sound || (to / from).ln() / factor.ln() > STEPS_MAX as f64 {
        return None;
    }
    let whole = ((to / from).ln() / factor.ln() + 1e-9).floor() as i32;
    Some(closed((0..=whole).map(|index| from * factor.powi(index)).collect(), to))
}

impl Staircase {
    /// Returns the levels from `from` to `to`; numbers of users are whole. `None` has the same
    /// meaning as for [`linear`].
    pub fn levels(self, from: f64, to: f64, whole: bool) -> Option<Vec<f64>> {
        let mut levels = match self {
            Staircase::Step(step) => linear(from, to, step)?,
            Staircase::Factor(factor) => geometric(from, to, factor)?,
        };
        if whole {
            levels.iter_mut().for_each(|level| *level = level.round());
            levels.dedup();
        }
        (levels.len() <= STEPS_MAX).then_some(levels)
    }
}

/// Ends the list at `to`: rounding may leave the last level close to it.
fn closed(mut levels: Vec<f64>, to: f64) -> Vec<f64> {
    match levels.last_mut() {
        Some(last) if (*last - to).abs() <= 1e-6 * to => *last = to,
        _ => levels.push(to),
    }
    levels
}
