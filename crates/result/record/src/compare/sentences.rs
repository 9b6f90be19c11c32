//! Text of a comparison.

use super::{CompareRecord, Contrast, DifferenceRecord, Judgement, amount, interval, unsigned};

/// Returns the answer in one sentence, or in one sentence for each side after the first.
pub fn answer(report: &CompareRecord) -> String {
    let several = !report.further.is_empty();
    let one =
        |contrast: Contrast<'_>| match (several, verdict(contrast.letter, contrast.differences)) {
            (false, text) => text,
            // without a difference no side is named
            (true, text) if text.starts_with(contrast.letter) => text,
            (true, text) => format!("{} to A: {text}", contrast.letter),
        };
    report.contrasts().map(one).collect::<Vec<_>>().join(" ")
}

/// Returns the result of a side compared with the first, as text.
pub fn verdict(letter: char, differences: &[DifferenceRecord]) -> String {
    let of = |wanted: Judgement| -> Vec<String> {
        let found = differences.iter().filter(|one| one.judgement == wanted);
        found.map(|one| format!("{} {}", one.figure, amount(one.change, one.points()))).collect()
    };
    let (worse, better) = (of(Judgement::Worse), of(Judgement::Better));
    match (worse.is_empty(), better.is_empty()) {
        (false, true) => return format!("{letter} is worse than A: {}.", worse.join(", ")),
        (true, false) => return format!("{letter} is better than A: {}.", better.join(", ")),
        (false, false) => {
            let (worse, better) = (worse.join(", "), better.join(", "));
            return format!(
                "{letter} is worse than A in some figures ({worse}), better in others ({better})."
            );
        }
        (true, true) => {}
    }
    if differences.iter().all(|one| one.judgement == Judgement::TooFew) {
        return "Too few runs to show a difference.".to_owned();
    }
    let excluded = ["p99", "p50", "throughput"].iter().find_map(|figure| {
        let known = |one: &&DifferenceRecord| {
            one.figure == *figure && one.judgement == Judgement::NoneShown && !one.points()
        };
        differences.iter().find(known)
    });
    match excluded {
        Some(one) => format!(
            "No significant difference; {} changes above {} are ruled out.",
            one.figure,
            unsigned(wider(one), one.points())
        ),
        None => "No significant difference.".to_owned(),
    }
}

/// Returns the text for one figure.
pub fn sentence(letter: char, one: &DifferenceRecord) -> String {
    let change = amount(one.change, one.points());
    let figure = &one.figure;
    match one.judgement {
        Judgement::Better => format!("{figure}: {letter} is better, {change} ({}).", interval(one)),
        Judgement::Worse => format!("{figure}: {letter} is worse, {change} ({}).", interval(one)),
        Judgement::NoneShown => format!(
            "{figure}: no significant difference; changes above {} are ruled out.",
            unsigned(wider(one), one.points())
        ),
        Judgement::TooFew => format!("{figure}: cannot be judged."),
    }
}

/// Returns the end of the interval that is farther from no difference.
pub fn wider(one: &DifferenceRecord) -> f64 {
    if one.low.abs() > one.high.abs() { one.low } else { one.high }
}
