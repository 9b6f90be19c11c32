//! The differences as CSV (RFC 4180, with plain line feeds): a row per figure, for each side after the
//! first.

use record::compare::CompareRecord;
use std::fmt::Write;

/// Columns, in order. Times in seconds, rates per second, shares 0..=1; an unavailable figure is
/// empty. If several sides are compared with the first, a last column `side` has their letters.
const HEADER: &str = "figure,before,after,scale,change,low,high,noise,detectable,effect,p_value,\
                      judgement";

/// Renders the differences as CSV with a header line.
pub fn csv(report: &CompareRecord) -> String {
    let several = !report.further.is_empty();
    let mut out = format!("{HEADER}{}\n", if several { ",side" } else { "" });
    let known = |value: f64| if value.is_finite() { value.to_string() } else { String::new() };
    let rows = report
        .contrasts()
        .flat_map(|contrast| contrast.differences.iter().map(move |one| (contrast.letter, one)));
    for (letter, one) in rows {
        let side = if several { format!(",{letter}") } else { String::new() };
        let figures =
            [one.change, one.low, one.high, one.noise, one.detectable, one.effect, one.p_value];
        let written = writeln!(
            out,
            "{},{},{},{},{},{}{side}",
            one.figure,
            known(one.before),
            known(one.after),
            if one.points() { "points" } else { "ratio" },
            figures.map(known).join(","),
            one.judgement.id()
        );
        written.expect("writing to a string cannot fail");
    }
    out
}
