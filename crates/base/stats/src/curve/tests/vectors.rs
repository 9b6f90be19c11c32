//! Published figures: three fits of the scalability law, five curves of Kneedle.

use super::*;

#[track_caller]
fn near(name: &str, found: f64, expected: f64, relative: f64) {
    let off = (found - expected).abs() / expected.abs();
    assert!(off <= relative, "{name}: {found}, published {expected}");
}

/// SPEC SDM91 on a Sun SPARCcenter 2000 (Gunther, Guerrilla Capacity Planning).
#[test]
fn the_scalability_law_fits_the_sparccenter() {
    let n = [1.0, 18.0, 36.0, 72.0, 108.0, 144.0, 216.0];
    let x = [64.9, 995.9, 1652.4, 1853.2, 1828.9, 1775.0, 1702.2];
    let points: Vec<(f64, f64)> = n.into_iter().zip(x).collect();
    let fit = usl(&points).unwrap();
    near("a", fit.a.at, 0.0277285, 1e-4);
    near("b", fit.b.at, 1.04365e-4, 1e-4);
    near("g", fit.g.at, 89.9952, 1e-4);
    near("residual", fit.residual, 82.85, 1e-3);
    near("n_max", fit.n_max, 96.52, 1e-3);
    near("x_max", fit.x_max, 1883.9, 1e-3);
    near("limit", fit.g.at / fit.a.at, 3245.6, 1e-3);
    for span in [fit.g, fit.a, fit.b] {
        assert!(span.low < span.at && span.at < span.high && span.low >= 0.0, "{span:?}");
    }
}

const CISCO: [f64; 32] = [
    955.16, 1878.91, 2688.01, 3548.68, 4315.54, 5130.43, 5931.37, 6531.08, 7219.8, 7867.61,
    8278.71, 8646.7, 9047.84, 9426.55, 9645.37, 9897.24, 10097.6, 10240.5, 10532.39, 10798.52,
    11151.43, 11518.63, 11806.0, 12089.37, 12075.41, 12177.29, 12211.41, 12158.93, 12155.27,
    12118.04, 12140.4, 12074.39,
];

/// The router of "Practical Scalability Analysis with the Universal Scalability Law" (Schwartz).
#[test]
fn the_scalability_law_fits_the_router() {
    let points: Vec<(f64, f64)> =
        CISCO.iter().enumerate().map(|(row, x)| (row as f64 + 1.0, *x)).collect();
    let fit = usl(&points).unwrap();
    near("a", fit.a.at, 0.0267159, 1e-4);
    near("b", fit.b.at, 7.69094e-4, 1e-4);
    near("g", fit.g.at, 995.649, 1e-5);
    near("n_max", fit.n_max, 35.57, 1e-3);
    near("X(20)", fit.throughput(20.0), 11063.63, 1e-5);
    near("X(35)", fit.throughput(35.0), 12341.75, 1e-5);
    for (n, ms) in [(1.0, 1.00440), (20.0, 1.80772), (35.0, 2.83591)] {
        near("R", fit.response_s(n), ms / 1_000.0, 1e-4);
    }
}

#[test]
fn the_scalability_law_of_made_up_points() {
    let n = [1.0, 2.0, 4.0, 6.0, 8.0, 10.0];
    let x = [1.0, 1.8868, 3.0769, 3.5294, 3.5398, 3.3557];
    let fit = usl(&n.into_iter().zip(x).collect::<Vec<_>>()).unwrap();
    near("a", fit.a.at, 0.02, 1e-3);
    near("b", fit.b.at, 0.02, 1e-3);
    near("g", fit.g.at, 1.0, 1e-3);
}

/// An M/M/1 queue follows the law with a = 1/2, b = 0 and g = μ/2: X = μ N / (1 + N).
#[test]
fn a_missing_parameter_is_zero() {
    let queue = |n: f64| (n, 1_000.0 * n / (1.0 + n));
    let fit = usl(&[0.25, 0.5, 1.0, 3.0, 9.0].map(queue)).unwrap();
    near("a", fit.a.at, 0.5, 1e-4);
    near("g", fit.g.at, 500.0, 1e-4);
    assert!(fit.b.at < 1e-9, "{fit:?}");
    near("x_max", fit.x_max, 1_000.0, 1e-3);
    // better than linear: contention would have to be negative
    let fit = usl(&[(1.0, 1.0), (2.0, 2.2), (3.0, 3.5), (4.0, 5.0)]).unwrap();
    assert!(fit.a.at.abs() < 1e-9 && fit.b.at.abs() < 1e-9, "{fit:?}");
    assert!(fit.n_max.is_infinite() && fit.x_max.is_infinite());
}

#[test]
fn three_levels_of_concurrency_do_not_fit() {
    assert_eq!(usl(&[(1.0, 1.0), (2.0, 1.8), (4.0, 3.0), (4.001, 3.1)]), None);
    assert_eq!(usl(&[(0.0, 1.0), (f64::NAN, 1.0), (1.0, f64::INFINITY), (2.0, -1.0)]), None);
}

/// The curves of the reference implementation (kneed), and of the paper.
#[test]
fn kneedle_finds_the_published_knees() {
    let ten: Vec<f64> = (0..10).map(f64::from).collect();
    let cases = [
        (Form::ConcaveIncreasing, [0, 60, 80, 85, 90, 95, 96, 97, 98, 99], 2.0),
        (Form::ConvexDecreasing, [100, 40, 20, 15, 10, 5, 4, 3, 2, 1], 2.0),
        (Form::ConvexIncreasing, [1, 2, 3, 4, 5, 10, 15, 20, 40, 100], 7.0),
        (Form::ConcaveDecreasing, [99, 98, 97, 96, 95, 90, 85, 80, 60, 0], 7.0),
    ];
    for (form, y, knee) in cases {
        assert_eq!(kneedle(&ten, &y.map(f64::from), form, 1.0), Some(knee), "{form:?}");
    }
    let x: Vec<f64> = (0..10).map(|step| f64::from(step) / 9.0).collect();
    let y: Vec<f64> = x.iter().map(|x| -1.0 / (x + 0.1) + 5.0).collect();
    near("the paper's", kneedle(&x, &y, Form::ConcaveIncreasing, 1.0).unwrap(), 0.22, 0.05);
}

#[test]
fn kneedle_finds_no_knee_in_a_straight_line() {
    let x = [1.0, 2.0, 3.0, 4.0];
    for y in [[1.0, 2.0, 3.0, 4.0], [5.0; 4], [1.0, f64::NAN, 3.0, 4.0]] {
        assert_eq!(kneedle(&x, &y, Form::ConcaveIncreasing, 1.0), None, "{y:?}");
    }
    assert_eq!(kneedle(&x[..2], &[0.0, 1.0], Form::ConcaveIncreasing, 1.0), None);
}

/// Kleinrock: the power of an M/M/1 queue is largest at ρ = 1/2, of an M/D/1 queue at 2 − √2.
#[test]
fn power_peaks_at_the_theoretical_load() {
    let levels_of = |response: fn(f64) -> f64| -> Vec<Level> {
        let at = |percent: i32| {
            let rho = f64::from(percent) / 100.0;
            let point = Point {
                level: rho,
                goodput_per_s: rho,
                response_mean_s: response(rho),
                ..Point::default()
            };
            Level { at: rho, points: vec![point] }
        };
        (1..100).map(at).collect()
    };
    assert_eq!(power(&levels_of(|rho| 1.0 / (1.0 - rho))), Some(0.5));
    assert_eq!(power(&levels_of(|rho| 1.0 + rho / (2.0 * (1.0 - rho)))), Some(0.59));
}
