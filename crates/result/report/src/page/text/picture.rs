//! A histogram of times as rows of bars.

use super::layout::Page;
use stats::Hist;
use units::{Nanos, show};

/// Block characters from one eighth to eight.
const EIGHTHS: [char; 8] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];

/// Maximum number of columns used, however wide the terminal is.
pub(crate) const COLUMNS_MAX: usize = 120;

/// Columns before each line of the report.
const MARGIN: usize = 2;

/// Returns whether it is part of a bar.
pub(crate) fn is_bar(c: char) -> bool {
    EIGHTHS[..7].contains(&c)
}

/// Minimum width of a bar before the counts are omitted.
const BAR_MIN: usize = 12;

/// Draws the picture after its margin.
pub(super) fn histogram(page: &mut Page, hist: &Hist, rows_max: usize) {
    let lines = histogram_lines(hist, page.width() - MARGIN, rows_max);
    lines.iter().for_each(|line| page.line(&format!("{:MARGIN$}{line}", "")));
}

/// Draws response times in classes, a line with a bar for each: at most `rows_max` lines of
/// `columns` characters. In few columns, the counts are omitted and the shares remain. Draws
/// nothing for fewer than two calls.
pub fn histogram_lines(hist: &Hist, columns: usize, rows_max: usize) -> Vec<String> {
    if hist.count() < 2 || rows_max < 2 {
        return Vec::new();
    }
    let classes = classes(hist, rows_max);
    let total = hist.count() as f64;
    let most = classes.iter().map(|(_, count)| *count).max().unwrap_or(1) as f64;
    let cells = |of: &dyn Fn(Nanos, u64) -> String| -> Vec<String> {
        let cells: Vec<String> = classes.iter().map(|(end, count)| of(*end, *count)).collect();
        let widest = cells.iter().map(|cell| cell.chars().count()).max().unwrap_or(0);
        cells.into_iter().map(|cell| format!("{cell:>widest$}")).collect()
    };
    let label = |end| show::duration(end).replace(".00 ", " ").replace(".0 ", " ");
    let names: Vec<String> = (0..classes.len())
        .map(|row| match classes[..row].last() {
            Some((below, _)) if is_coarse(&classes, row, hist.count()) => {
                format!("{} to {}", label(*below), label(classes[row].0))
            }
            _ => format!("≤ {}", label(classes[row].0)),
        })
        .collect();
    let labels = left_aligned(names);
    let counts = cells(&|_, count| show::count(count));
    let shares = cells(&|_, count| show::share(count as f64 / total));
    // the gaps around the bar and its neighbors
    let fixed = |gap: usize| cells_width(&labels) + 2 * gap + cells_width(&shares);
    let whole = columns.saturating_sub(fixed(2) + 2 + cells_width(&counts));
    let (room, gap) = match whole >= BAR_MIN {
        true => (whole, 2),
        false => (columns.saturating_sub(fixed(1)), 1),
    };
    let line = |(row, (_, count)): (usize, &(Nanos, u64))| {
        let bar = bar(*count as f64 / most, room);
        let blank = " ".repeat(gap + room - bar.chars().count());
        let count = if gap == 2 { format!("{}  ", counts[row]) } else { String::new() };
        format!("{}{:gap$}{bar}{blank}{count}{}", labels[row], "", shares[row])
    };
    classes.iter().enumerate().map(line).collect()
}

fn left_aligned(cells: Vec<String>) -> Vec<String> {
    let widest = cells.iter().map(|cell| cell.chars().count()).max().unwrap_or(0);
    cells.into_iter().map(|cell| format!("{cell:<widest$}")).collect()
}

/// Returns the width of cells that are all equally wide.
fn cells_width(cells: &[String]) -> usize {
    cells.first().map_or(0, |cell| cell.chars().count())
}

/// Draws a share as a bar of at most `room` characters; nonzero shares are visible.
fn bar(share: f64, room: usize) -> String {
    let eighths = (share * room as f64 * 8.0).round() as usize;
    let eighths = if share > 0.0 { eighths.max(1) } else { 0 };
    let mut bar = "█".repeat(eighths / 8);
    if !eighths.is_multiple_of(8) {
        bar.push(EIGHTHS[eighths % 8 - 1]);
    }
    bar
}

/// A class with more than this share of the calls keeps its own row.
const TAIL_SHARE_MAX: f64 = 0.01;

/// Ends of the classes of a decade, the finest first.
const STEPS: [&[u64]; 3] = [&[1, 2, 5], &[1, 3], &[1]];

/// Returns (upper end, count) of each class from the fastest call to the slowest: 1, 2 and 5 of
/// each decade, if `rows_max` rows can show them with only a tail sharing a row; otherwise fewer
/// ends per decade. If even whole decades are too many, the two outermost classes of an end are
/// merged repeatedly, at the end where fewer calls lose their class.
pub(crate) fn classes(hist: &Hist, rows_max: usize) -> Vec<(Nanos, u64)> {
    let steps = STEPS.iter().find(|steps| rows_with(hist, steps) <= rows_max);
    let mut rows = all_classes(hist, steps.unwrap_or(&STEPS[STEPS.len() - 1]));
    while rows.len() > rows_max.max(1) {
        merge_tail(&mut rows);
    }
    rows
}

/// Returns the number of rows below which a class above [`TAIL_SHARE_MAX`] would share its row with
/// others.
pub(crate) fn rows_needed(hist: &Hist) -> usize {
    rows_with(hist, STEPS[0])
}

fn rows_with(hist: &Hist, steps: &[u64]) -> usize {
    let tail_max = hist.count() as f64 * TAIL_SHARE_MAX;
    let mut rows = all_classes(hist, steps);
    while rows.len() > 1 && merge_tail(&mut rows) as f64 <= tail_max {}
    // the last step has merged one class too many
    rows.len() + 1
}

/// Merges the two outermost classes of one end; returns the number of calls that lose their class.
fn merge_tail(rows: &mut Vec<(Nanos, u64)>) -> u64 {
    let last = rows.len() - 1;
    // calls below an end are "at most" that end, while the slowest class also has a lower end
    let (slow, fast) = (rows[last].1 + rows[last - 1].1, rows[0].1);
    if slow <= fast {
        rows[last].1 = slow;
        rows.remove(last - 1);
        slow
    } else {
        rows[1].1 += fast;
        rows.remove(0);
        fast
    }
}

/// Returns whether a row holds several classes with more than a tail of the calls.
fn is_coarse(rows: &[(Nanos, u64)], row: usize, calls: u64) -> bool {
    let (end, count) = rows[row];
    let below = row.checked_sub(1).map(|before| rows[before].0);
    // whole decades are the widest classes
    let wide = below.is_some_and(|below| end.0 > 10 * below.0);
    wide && count as f64 > calls as f64 * TAIL_SHARE_MAX
}

fn all_classes(hist: &Hist, steps: &[u64]) -> Vec<(Nanos, u64)> {
    let mut rows: Vec<(Nanos, u64)> = ends(hist, steps).into_iter().map(|end| (end, 0)).collect();
    for (value, count) in hist.buckets() {
        let at = rows.partition_point(|(end, _)| *end < value).min(rows.len() - 1);
        rows[at].1 += count;
    }
    rows
}

/// Returns the upper ends of the classes, from that of the fastest call to that of the slowest.
fn ends(hist: &Hist, steps: &[u64]) -> Vec<Nanos> {
    let (low, high) = (hist.quantile(0.0).max(Nanos(1)), hist.max().max(Nanos(1)));
    let decades = (0..=13).map(|power| 10u64.pow(power));
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

    fn draw_picture(values: &[(Nanos, u64)], columns: usize, rows: usize) -> String {
        let mut page = Page::for_columns(columns);
        histogram(&mut page, &Hist::from_buckets(values.iter().copied()), rows);
        page.finish()
    }

    #[test]
    fn bars_are_proportional_and_nothing_is_lost() {
        let us = Nanos::from_micros;
        let shown = draw_picture(&[(us(80), 400), (us(150), 800), (us(1_900), 1)], 80, 8);
        let rows: Vec<&str> = shown.lines().collect();
        let cells = |row: &str| row.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let bars: Vec<usize> = rows.iter().map(|row| row.matches('█').count()).collect();
        assert_eq!(rows.len(), 5, "{shown}");
        assert!(bars[1] == 2 * bars[0] || bars[1] == 2 * bars[0] + 1, "{shown}");
        assert_eq!(cells(rows[1])[4..], ["800", "66.6", "%"], "{shown}");
        assert_eq!(cells(rows[4]), ["≤", "2", "ms", "▏", "1", "0.083", "%"], "{shown}");
        assert!(!rows[2].contains('▏'), "nothing has no bar: {shown}");
    }

    #[test]
    fn a_narrow_picture_leaves_the_counts_out() {
        let ms = Nanos::from_millis;
        let hist = Hist::from_buckets([(ms(2), 30), (ms(4), 60), (ms(80), 10)]);
        assert_eq!(
            histogram_lines(&hist, 24, 5),
            [
                "≤ 5 ms   ████████ 90.0 %",
                "≤ 10 ms              0 %",
                "≤ 20 ms              0 %",
                "≤ 50 ms              0 %",
                "≤ 100 ms ▉        10.0 %",
            ]
        );
        for columns in 0..100 {
            let lines = histogram_lines(&hist, columns, 5);
            assert!(lines.iter().all(|line| line.chars().count() <= columns.max(19)), "{lines:?}");
        }
    }

    /// Most calls take 100 µs to 2 ms, single ones far longer.
    #[test]
    fn few_rows_show_where_the_calls_are() {
        let us = Nanos::from_micros;
        let values = [(90, 3), (150, 200), (400, 500), (900, 250), (1_800, 40), (62_000, 7)];
        let hist = Hist::from_buckets(values.map(|(time, count)| (us(time), count)));
        let shown = |rows| classes(&hist, rows).into_iter().map(|(end, n)| (end.0 / 1_000, n));
        let five = [(200, 203), (500, 500), (1_000, 250), (2_000, 40), (100_000, 7)];
        assert!(shown(5).eq(five), "{:?}", classes(&hist, 5));
        // whole decades, of which a tail shares its row
        let three = [(1_000, 953), (10_000, 40), (100_000, 7)];
        assert!(shown(3).eq(three), "{:?}", classes(&hist, 3));
        for rows in 1..20 {
            assert_eq!(shown(rows).map(|(_, count)| count).sum::<u64>(), 1_000);
        }
    }

    #[test]
    fn a_class_with_more_than_one_percent_keeps_its_row() {
        let us = Nanos::from_micros;
        let values = [(60, 2), (90, 310), (400, 160), (1_500, 150), (3_500, 150), (15_000, 220)];
        let tails = [(300_000, 5), (3_000_000, 3)];
        let all = values.into_iter().chain(tails);
        let hist = Hist::from_buckets(all.map(|(time, count)| (us(time), count)));
        let rows = rows_needed(&hist);
        let classes = classes(&hist, rows);
        assert_eq!(classes.iter().map(|(_, count)| count).sum::<u64>(), 1_000);
        let lumped = |row: &usize| is_coarse(&classes, *row, 1_000);
        assert_eq!((0..classes.len()).find(lumped), None, "{classes:?}");
        assert!(rows < all_classes(&hist, STEPS[0]).len(), "tails share a row: {classes:?}");
    }

    #[test]
    fn a_row_of_several_classes_names_both_its_ends() {
        let us = Nanos::from_micros;
        let values = [(90, 300), (800, 400), (3_500, 100), (15_000, 200)];
        let hist = Hist::from_buckets(values.map(|(time, count)| (us(time), count)));
        let lines = histogram_lines(&hist, 60, 3);
        assert!(lines[2].starts_with("1 ms to 100 ms "), "{lines:?}");
    }

    /// Two modes in few rows: a row with several classes would look like a mode.
    #[test]
    fn few_rows_have_wider_classes_and_no_lumps() {
        let us = Nanos::from_micros;
        let values = [(1_500, 200), (4_000, 250), (15_000, 200), (40_000, 150), (150_000, 200)];
        let hist = Hist::from_buckets(values.map(|(time, count)| (us(time), count)));
        for rows in 3..12 {
            let classes = classes(&hist, rows);
            let lumped = (0..classes.len()).find(|row| is_coarse(&classes, *row, 1_000));
            assert_eq!(lumped, None, "{rows}: {classes:?}");
        }
    }

    #[test]
    fn any_span_fits_into_the_rows() {
        for rows in 2..12 {
            for high in [Nanos(2), Nanos::from_micros(3), Nanos::from_secs(3_000)] {
                let shown = draw_picture(&[(Nanos(1), 1), (high, 2)], 200, rows);
                assert!(shown.lines().count() <= rows, "{rows}: {shown}");
                assert!(shown.lines().all(|line| line.chars().count() <= 120), "{shown}");
            }
        }
        assert_eq!(draw_picture(&[(Nanos(5), 1)], 80, 8), "", "one call has no distribution");
    }
}
