//! The curve as a chart of plain characters: good responses a second over the load.

use super::{Purpose, RampRecord, load};
use crate::page::text::WIDTH;
use crate::section::{Block, heading};
use crate::words::printable;
use stats::curve::Axis;
use units::show;

/// Columns and rows of the chart itself.
const WIDE: usize = 64;
const HIGH: usize = 12;
/// Columns left of it, for the rates.
const LEFT: usize = 11;

/// Marks of the targets, in their order.
const MARKS: [char; 16] =
    ['o', 'x', '+', '#', '@', '%', '&', '$', 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];

/// Cells of the chart: rows from the bottom up, each from left to right.
struct Plane {
    cells: Vec<[char; WIDE]>,
    x_max: f64,
    y_max: f64,
}

impl Plane {
    fn put(&mut self, x: f64, y: f64, mark: char) {
        let column = (x / self.x_max * (WIDE - 1) as f64).round();
        let row = (y / self.y_max * (HIGH - 1) as f64).round();
        let inside = |value: f64, size: usize| value >= 0.0 && value < size as f64;
        if inside(column, WIDE) && inside(row, HIGH) {
            self.cells[row as usize][column as usize] = mark;
        }
    }
}

/// Draws the picture; empty for fewer than two loads.
pub(super) fn picture(report: &RampRecord) -> Vec<Block> {
    let shown: Vec<_> =
        report.steps.iter().filter(|step| step.purpose != Purpose::Recovery).collect();
    let x_max = shown.iter().map(|step| step.level).fold(0.0, f64::max);
    let x_min = shown.iter().map(|step| step.level).fold(f64::INFINITY, f64::min);
    let y_max = shown.iter().map(|step| step.point().goodput_per_s).fold(0.0, f64::max);
    if x_min >= x_max || y_max <= 0.0 {
        return Vec::new();
    }
    let mut plane = Plane { cells: vec![[' '; WIDE]; HIGH], x_max, y_max };
    if report.axis == Axis::Rate {
        for column in 0..WIDE {
            let x = x_max * column as f64 / (WIDE - 1) as f64;
            plane.put(x, x, '.');
        }
    }
    for step in &shown {
        let own = MARKS[report.row_of(step).unwrap_or(0) % MARKS.len()];
        let mark = if step.client_limited { '*' } else { own };
        plane.put(step.level, step.point().goodput_per_s, mark);
    }
    vec![heading(head(report)), Block::Lines(lines(report, &plane))]
}

fn lines(report: &RampRecord, plane: &Plane) -> Vec<String> {
    let row = |(row, cells): (usize, &[char; WIDE])| {
        let rate = match row {
            0 => "0".to_owned(),
            _ if row == HIGH - 1 || row == HIGH / 2 => {
                let rate = plane.y_max * row as f64 / (HIGH - 1) as f64;
                show::rate(rate.round())
            }
            _ => String::new(),
        };
        let cells: String = cells.iter().collect();
        format!("{rate:>LEFT$} |{cells}")
    };
    let mut lines: Vec<String> = plane.cells.iter().enumerate().rev().map(row).collect();
    lines.push(format!("{:>LEFT$} +{}", "", "-".repeat(WIDE)));
    lines.push(format!("{:>LEFT$}  {}", "", ruler(report, plane)));
    lines
}

/// Describes the meaning of the marks.
fn head(report: &RampRecord) -> String {
    let mut parts = vec!["Successful responses/s by load".to_owned()];
    if report.labels.len() > 1 {
        for (label, mark) in report.labels.iter().zip(MARKS) {
            parts.push(format!("{mark} {}", printable(label, 12)));
        }
    }
    if report.axis == Axis::Rate {
        parts.push(". offered load".to_owned());
    }
    parts.join("   ").chars().take(WIDTH).collect()
}

/// Draws the ends of the axis, and the first target's knee if it fits.
fn ruler(report: &RampRecord, plane: &Plane) -> String {
    let end = load(report.axis, plane.x_max);
    let mut line = vec![' '; WIDE];
    let mut write = |at: usize, text: &str| {
        let free = line.iter().skip(at).take(text.len() + 1).all(|c| *c == ' ');
        if free && at + text.len() <= WIDE {
            line.splice(at..at + text.len(), text.chars());
        }
    };
    write(0, "0");
    write(WIDE.saturating_sub(end.len()), &end);
    if let Some(knee) = report.curves.first().and_then(|curve| curve.curve().knee) {
        let column = knee.at.at / plane.x_max * (WIDE - 1) as f64;
        write(
            column.round().max(0.0) as usize,
            &format!("^ knee {}", load(report.axis, knee.at.at)),
        );
    }
    line.into_iter().collect::<String>()
}
