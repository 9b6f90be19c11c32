//! Decides whether enough of a ramp's steps are usable for conclusions.

use super::{Point, Purpose};

/// Number of unusable first steps that end a ramp.
const FIRST: usize = 2;
/// Minimum number of steps of which more than half must be usable.
const STEPS_MIN: usize = 4;

/// Returns the reason why these steps of one target, in run order, allow no conclusion: the client
/// limited the first ones, or more than half of all. Overload and the steps after it do not count:
/// there the client may well reach its limit.
pub fn inconclusive_reason<'a>(
    steps: impl IntoIterator<Item = (Purpose, &'a Point)>,
) -> Option<String> {
    let counted = |purpose| !matches!(purpose, Purpose::Overload | Purpose::Recovery);
    let limited: Vec<bool> = steps
        .into_iter()
        .filter(|(purpose, _)| counted(*purpose))
        .map(|(_, point)| point.client_limited)
        .collect();
    let count = limited.iter().filter(|limited| **limited).count();
    let first = limited.len() >= FIRST && limited[..FIRST].iter().all(|limited| *limited);
    let most = limited.len() >= STEPS_MIN && count * 2 > limited.len();
    (first || most).then(|| {
        format!(
            "{count} of {} steps are unusable because the client was late or at its own limit, and \
             the others do not support a conclusion",
            limited.len()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(steps: &str) -> bool {
        let point = |mark: char| {
            let purpose = if mark.is_uppercase() { Purpose::Overload } else { Purpose::Up };
            (purpose, Point { client_limited: mark.eq_ignore_ascii_case(&'x'), ..Point::default() })
        };
        let points: Vec<(Purpose, Point)> = steps.chars().map(point).collect();
        inconclusive_reason(points.iter().map(|(purpose, point)| (*purpose, point))).is_some()
    }

    #[test]
    fn the_first_steps_or_most_of_all_have_to_be_usable() {
        assert!(found("xx") && found("xxo") && found("xxoooooo"));
        assert!(!found("") && !found("x") && !found("xo") && !found("xox"));
        assert!(found("xoxx") && found("oxoxx") && !found("oxox"));
        assert!(!found("ooXXXX"), "overload does not count");
    }
}
