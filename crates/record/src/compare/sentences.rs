//! What a comparison says, in sentences.

use super::{CompareReport, Difference, Judgement, amount, interval, unsigned};

/// The answer in one sentence.
pub fn answer(report: &CompareReport) -> String {
    let of = |wanted: Judgement| -> Vec<String> {
        let found = report.differences.iter().filter(|one| one.judgement == wanted);
        found.map(|one| format!("{} {}", one.figure, amount(one.relative, one.points))).collect()
    };
    let (worse, better) = (of(Judgement::Worse), of(Judgement::Better));
    match (worse.is_empty(), better.is_empty()) {
        (false, true) => return format!("B is worse than A: {}.", worse.join(", ")),
        (true, false) => return format!("B is better than A: {}.", better.join(", ")),
        (false, false) => {
            let (worse, better) = (worse.join(", "), better.join(", "));
            return format!(
                "B is worse than A in some figures ({worse}), better in others ({better})."
            );
        }
        (true, true) => {}
    }
    if report.differences.iter().all(|one| one.judgement == Judgement::TooFew) {
        return "Too few runs to call anything a difference.".to_owned();
    }
    let excluded = ["p99", "p50", "throughput"].iter().find_map(|figure| {
        let known = |one: &&Difference| {
            one.figure == *figure && one.judgement == Judgement::NoneShown && !one.points
        };
        report.differences.iter().find(known)
    });
    match excluded {
        Some(one) => format!(
            "No difference shown; in {} one larger than {} can be excluded.",
            one.figure,
            unsigned(wider(one), one.points)
        ),
        None => "No difference shown.".to_owned(),
    }
}

/// What can be said of one figure.
pub fn sentence(one: &Difference) -> String {
    let change = amount(one.relative, one.points);
    let figure = &one.figure;
    match one.judgement {
        Judgement::Better => format!("{figure}: B is better, {change} ({}).", interval(one)),
        Judgement::Worse => format!("{figure}: B is worse, {change} ({}).", interval(one)),
        Judgement::NoneShown => format!(
            "{figure}: no difference shown; one larger than {} can be excluded.",
            unsigned(wider(one), one.points)
        ),
        Judgement::TooFew => format!("{figure}: cannot be judged."),
    }
}

/// The end of the interval that lies further from no difference.
pub fn wider(one: &Difference) -> f64 {
    if one.low.abs() > one.high.abs() { one.low } else { one.high }
}
