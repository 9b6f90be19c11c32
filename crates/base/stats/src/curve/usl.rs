//! The universal scalability law fitted to measurements (Gunther, Guerrilla Capacity Planning,
//! 2007), by the method of Levenberg and Marquardt on throughput with nonnegative parameters.

use super::{Level, Span, Usl};
use crate::interval::student_t;

/// Maximum number of steps of the fit; each start converges within tens of them.
const STEPS_MAX: usize = 500;

/// Maximum number of points, far more than a ramp has.
const POINTS_MAX: usize = 100_000;

type Vector = [f64; 3];
type Matrix = [[f64; 3]; 3];

/// Returns the fit of throughput (calls a second) over mean concurrency, both positive. Intervals
/// are at [`CONFIDENCE`](crate::interval::CONFIDENCE), from the curvature of the sum of squares, by
/// Student's t with n − 3 degrees of freedom, and end at 0. `None` for fewer than four points or
/// fewer than four levels of concurrency that differ by 1 %, which three parameters always fit.
pub fn usl(points: &[(f64, f64)]) -> Option<Usl> {
    let good = |&&(n, x): &&(f64, f64)| n > 0.0 && x > 0.0 && n.is_finite() && x.is_finite();
    let points: Vec<(f64, f64)> = points.iter().filter(good).copied().take(POINTS_MAX).collect();
    if distinct(&points) < 4 {
        return None;
    }
    let least = points.iter().min_by(|a, b| a.0.total_cmp(&b.0))?;
    let slope = least.1 / least.0;
    let starts =
        [[slope, 0.01, 1e-4], [slope, 0.1, 1e-3], [slope, 0.5, 0.0], [slope / 2.0, 0.0, 0.0]];
    let fits = starts.into_iter().filter_map(|start| fit(&points, start));
    let (best, squares) = fits.min_by(|a, b| a.1.total_cmp(&b.1))?;
    let freedom = points.len() as f64 - 3.0;
    let residual = (squares / freedom).sqrt();
    let t = student_t(points.len() as u64 - 3);
    let errors = inverse_diagonal(&normal(&points, best).0);
    let span = |index: usize| {
        let half = errors.map_or(f64::NAN, |errors| t * residual * errors[index].sqrt());
        Span { at: best[index], low: (best[index] - half).max(0.0), high: best[index] + half }
    };
    // the larger of 0 and NaN is 0: an undefined interval has no lower end either
    let span = |index: usize| {
        let span = span(index);
        if span.high.is_nan() { Span { low: f64::NAN, ..span } } else { span }
    };
    let [g, a, b] = best;
    let n_max = if b > 0.0 { ((1.0 - a).max(0.0) / b).sqrt().max(1.0) } else { f64::INFINITY };
    let x_max = if b > 0.0 { law(best, n_max) } else { g / a };
    Some(Usl { g: span(0), a: span(1), b: span(2), n_max, x_max, residual, points: points.len() })
}

impl Usl {
    /// Returns whether the law is meaningful and the steps do not contradict it: contention or
    /// coherency is above 0 in its whole interval, and no level has a throughput above the law's
    /// maximum (half a per cent changes none of the printed digits).
    pub fn explains(&self, levels: &[Level]) -> bool {
        let above = |span: &Span| span.interval().is_some_and(|(low, _)| low > 0.0);
        let highest = levels.iter().map(|level| level.mean(|point| point.goodput_per_s));
        let highest = highest.fold(0.0, f64::max);
        (above(&self.a) || above(&self.b)) && self.x_max * 1.005 >= highest
    }

    /// Returns the throughput at a mean concurrency, in calls per second.
    pub fn throughput(&self, concurrency: f64) -> f64 {
        law([self.g.at, self.a.at, self.b.at], concurrency)
    }

    /// Returns the mean time in the system at a mean concurrency, in seconds (Little).
    pub fn response_s(&self, concurrency: f64) -> f64 {
        concurrency / self.throughput(concurrency)
    }
}

fn law([g, a, b]: Vector, n: f64) -> f64 {
    g * n / (1.0 + a * (n - 1.0) + b * n * (n - 1.0))
}

/// Returns the number of levels of concurrency that differ by at least 1 %.
fn distinct(points: &[(f64, f64)]) -> usize {
    let mut levels: Vec<f64> = points.iter().map(|point| point.0).collect();
    levels.sort_by(f64::total_cmp);
    let mut count = 0;
    let mut last = 0.0;
    for level in levels {
        if level > last * 1.01 {
            count += 1;
            last = level;
        }
    }
    count
}

fn squares(points: &[(f64, f64)], at: Vector) -> f64 {
    points.iter().map(|&(n, x)| (x - law(at, n)).powi(2)).sum()
}

/// Returns JᵀJ and Jᵀr at these parameters.
fn normal(points: &[(f64, f64)], at: Vector) -> (Matrix, Vector) {
    let [g, a, b] = at;
    let (mut matrix, mut vector) = ([[0.0; 3]; 3], [0.0; 3]);
    for &(n, x) in points {
        let below = 1.0 + a * (n - 1.0) + b * n * (n - 1.0);
        let slope = -g * n / (below * below);
        let row = [n / below, slope * (n - 1.0), slope * n * (n - 1.0)];
        let off = x - law(at, n);
        for i in 0..3 {
            vector[i] += row[i] * off;
            for j in 0..3 {
                matrix[i][j] += row[i] * row[j];
            }
        }
    }
    (matrix, vector)
}

/// Fits parameters from one start; returns them with their sum of squares. Each step is cut off at
/// 0; a parameter at 0 that would decrease is excluded from the step.
fn fit(points: &[(f64, f64)], start: Vector) -> Option<(Vector, f64)> {
    let mut at = start;
    let mut least = squares(points, at);
    let mut damping = 1e-3;
    for _ in 0..STEPS_MAX {
        let (mut matrix, mut vector) = normal(points, at);
        for i in 0..3 {
            if at[i] <= 0.0 && vector[i] < 0.0 {
                (0..3).for_each(|j| (matrix[i][j], matrix[j][i]) = (0.0, 0.0));
                (matrix[i][i], vector[i]) = (1.0, 0.0);
            }
            matrix[i][i] *= 1.0 + damping;
        }
        let Some(step) = solve(matrix, vector) else { break };
        let next: Vector = std::array::from_fn(|i| (at[i] + step[i]).max(0.0));
        let found = squares(points, next);
        if found.is_finite() && found <= least {
            let moved = (0..3).map(|i| (next[i] - at[i]).abs() / at[i].abs().max(1e-12));
            let moved = moved.fold(0.0, f64::max);
            (at, least) = (next, found);
            damping = (damping / 10.0).max(1e-12);
            if moved < 1e-12 {
                break;
            }
        } else {
            damping *= 10.0;
            if damping > 1e12 {
                break;
            }
        }
    }
    least.is_finite().then_some((at, least))
}

/// Returns the solution of three linear equations, by elimination with the largest pivot, each row
/// scaled by its largest element first: g and b differ by many orders of magnitude.
fn solve(matrix: Matrix, vector: Vector) -> Option<Vector> {
    let scale: Vector = std::array::from_fn(|i| matrix[i][i].abs().sqrt());
    if scale.iter().any(|scale| !(*scale > 0.0 && scale.is_finite())) {
        return None;
    }
    let mut m: [[f64; 4]; 3] = std::array::from_fn(|i| {
        std::array::from_fn(|j| match j {
            3 => vector[i] / scale[i],
            _ => matrix[i][j] / (scale[i] * scale[j]),
        })
    });
    for column in 0..3 {
        let pivot =
            (column..3).max_by(|a, b| m[*a][column].abs().total_cmp(&m[*b][column].abs()))?;
        m.swap(column, pivot);
        if m[column][column].abs() < 1e-14 {
            return None;
        }
        for row in 0..3 {
            if row != column {
                let factor = m[row][column] / m[column][column];
                let top = m[column];
                (column..4).for_each(|j| m[row][j] -= factor * top[j]);
            }
        }
    }
    Some(std::array::from_fn(|i| m[i][3] / m[i][i] / scale[i]))
}

/// Returns the diagonal of the inverse.
fn inverse_diagonal(matrix: &Matrix) -> Option<Vector> {
    let mut diagonal = [0.0; 3];
    for (i, value) in diagonal.iter_mut().enumerate() {
        let mut one = [0.0; 3];
        one[i] = 1.0;
        *value = solve(*matrix, one)?[i].max(0.0);
    }
    Some(diagonal)
}
