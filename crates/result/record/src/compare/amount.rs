//! Changes as text: percent, or points of a share.

use super::DifferenceRecord;

/// Formats a change: `+7.1 %`, `-0.3 points`; `-` without a value.
pub fn amount(change: f64, points: bool) -> String {
    if !change.is_finite() {
        return "-".to_owned();
    }
    let text = number(change);
    let sign = match text.bytes().any(|byte| (b'1'..=b'9').contains(&byte)) {
        true if change < 0.0 => "-",
        true => "+",
        false => "",
    };
    format!("{sign}{text} {}", unit(points))
}

/// Formats the interval of a difference: `+5.9 to +8.2 %`.
pub fn interval(one: &DifferenceRecord) -> String {
    if !one.low.is_finite() || !one.high.is_finite() {
        return "-".to_owned();
    }
    let low = amount(one.low, one.points());
    let low = low.rsplit_once(' ').map_or("", |(number, _)| number);
    format!("{low} to {}", amount(one.high, one.points()))
}

/// Formats a change without its sign.
pub fn unsigned(change: f64, points: bool) -> String {
    match change.is_finite() {
        true => format!("{} {}", number(change), unit(points)),
        false => "-".to_owned(),
    }
}

fn unit(points: bool) -> &'static str {
    if points { "points" } else { "%" }
}

/// Formats a percentage without a sign.
fn number(change: f64) -> String {
    let percent = (change * 100.0).abs();
    match percent {
        100.0.. => units::show::count(percent.round() as u64),
        10.0.. => format!("{percent:.1}"),
        _ => format!("{percent:.2}"),
    }
}
