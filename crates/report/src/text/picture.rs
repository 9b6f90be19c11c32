//! The histogram of response times as rows of bars.

use super::WIDTH;
use super::layout::Page;
use stats::Hist;
use units::{Nanos, show};

/// Eighths of a character, from one to eight.
const EIGHTHS: [char; 8] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];

/// Columns that are used at most, however wide the terminal is.
const COLUMNS_MAX: usize = 120;

/// Steps within a decade, the finest first; of the last, every so many-th decade.
const STEPS: [(&[u64], u32); 4] = [(&[1, 2, 5], 1), (&[1, 3], 1), (&[1], 1), (&[1], 2)];

/// Whether it is a part of a bar.
pub(super) fn is_bar(c: char) -> bool {
    EIGHTHS[..7].contains(&c)
}

/// Response times in classes that grow by a factor, at most `rows_max` of them. Nothing for fewer than
/// two calls.
pub(super) fn histogram(page: &mut Page, hist: &Hist, columns: usize, rows_max: usize) {
    if hist.count() < 2 || rows_max < 2 {
        return;
    }
    let classes = classes(hist, rows_max);
    let total = hist.count() as f64;
    let most = classes.iter().map(|(_, count)| *count).max().unwrap_or(1) as f64;
    let counts: Vec<String> = classes.iter().map(|(_, count)| show::count(*count)).collect();
    let shares: Vec<String> =
        classes.iter().map(|(_, count)| show::share(*count as f64 / total)).collect();
    let label = |end: &Nanos| show::duration(*end).replace(".00 ", " ").replace(".0 ", " ");
    let labels: Vec<String> = classes.iter().map(|(end, _)| label(end)).collect();
    let widest = |cells: &[String]| cells.iter().map(|cell| cell.chars().count()).max();
    let (wide, wide_share) = (widest(&counts).unwrap_or(1), widest(&shares).unwrap_or(1));
    let wide_label = widest(&labels).unwrap_or(1);
    let columns = columns.clamp(WIDTH, COLUMNS_MAX);
    // the margin with its sign, then three gaps
    let room = columns.saturating_sub(4 + wide_label + 3 * 2 + wide + wide_share);
    page.heading("Response times, by calls");
    for (row, (_, count)) in classes.iter().enumerate() {
        let (label, shown, share) = (&labels[row], &counts[row], &shares[row]);
        let bar = bar(*count as f64 / most, room);
        let gap = " ".repeat(room - bar.chars().count());
        page.line(&format!(
            "  ≤ {label:<wide_label$}  {bar}{gap}  {shown:>wide$}  {share:>wide_share$}"
        ));
    }
}

/// A share of `room` characters; what is not nothing is seen.
fn bar(share: f64, room: usize) -> String {
    let eighths = (share * room as f64 * 8.0).round() as usize;
    let eighths = if share > 0.0 { eighths.max(1) } else { 0 };
    let mut bar = "█".repeat(eighths / 8);
    if !eighths.is_multiple_of(8) {
        bar.push(EIGHTHS[eighths % 8 - 1]);
    }
    bar
}

/// (upper end, count) of each class from the fastest call to the slowest.
pub(crate) fn classes(hist: &Hist, rows_max: usize) -> Vec<(Nanos, u64)> {
    let buckets = hist.buckets();
    let counted = |ends: &[Nanos]| -> Vec<(Nanos, u64)> {
        let mut rows: Vec<(Nanos, u64)> = ends.iter().map(|end| (*end, 0)).collect();
        for (value, count) in &buckets {
            let at = ends.partition_point(|end| end < value).min(rows.len() - 1);
            rows[at].1 += count;
        }
        rows
    };
    let fits = |ends: &Vec<Nanos>| ends.len() <= rows_max;
    let finest = STEPS.iter().map(|(steps, every)| ends(hist, steps, *every)).find(fits);
    let ends = finest.unwrap_or_else(|| {
        // the span is so wide that only its upper part is told apart
        let all = ends(hist, &[1], 2);
        all[all.len() - rows_max..].to_vec()
    });
    counted(&ends)
}

/// Upper ends from the one at or above the fastest call to the one at or above the slowest.
fn ends(hist: &Hist, steps: &[u64], every: u32) -> Vec<Nanos> {
    let (low, high) = (hist.quantile(0.0).max(Nanos(1)), hist.max().max(Nanos(1)));
    let decades = (0..=13).step_by(every as usize).map(|power| 10u64.pow(power));
    let all = decades.flat_map(|unit| steps.iter().map(move |step| Nanos(unit * step)));
    let mut ends = Vec::new();
    for end in all.filter(|end| *end >= low) {
        ends.push(end);
        if end >= high {
            break;
        }
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(values: &[(Nanos, u64)], columns: usize, rows: usize) -> String {
        let mut page = Page::default();
        histogram(&mut page, &Hist::from_buckets(values.iter().copied()), columns, rows);
        page.finish()
    }

    #[test]
    fn bars_are_proportional_and_nothing_is_lost() {
        let us = Nanos::from_micros;
        let shown = drawn(&[(us(80), 400), (us(150), 800), (us(1_900), 1)], 80, 8);
        let rows: Vec<&str> = shown.trim().lines().skip(1).collect();
        let cells = |row: &str| row.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let bars: Vec<usize> = rows.iter().map(|row| row.matches('█').count()).collect();
        assert_eq!(rows.len(), 5, "{shown}");
        assert!(bars[1] == 2 * bars[0] || bars[1] == 2 * bars[0] + 1, "{shown}");
        assert_eq!(cells(rows[1])[4..], ["800", "66.6", "%"], "{shown}");
        assert_eq!(cells(rows[4]), ["≤", "2", "ms", "▏", "1", "0.083", "%"], "{shown}");
        assert!(!rows[2].contains('▏'), "nothing has no bar: {shown}");
    }

    #[test]
    fn any_span_fits_into_the_rows() {
        for rows in 2..12 {
            for high in [Nanos(2), Nanos::from_micros(3), Nanos::from_secs(3_000)] {
                let shown = drawn(&[(Nanos(1), 1), (high, 2)], 200, rows);
                assert!(shown.lines().count() <= rows + 2, "{rows}: {shown}");
                assert!(shown.lines().all(|line| line.chars().count() <= 120), "{shown}");
            }
        }
        assert_eq!(drawn(&[(Nanos(5), 1)], 80, 8), "", "one call has no distribution");
    }
}
