//! The comparison for people at a terminal: at most 80 columns, the answer first.

use super::{p_value, shown};
use crate::Style;
use crate::text::ascii;
use crate::text::layout::Page;
use crate::words::{self, counted, printable};
use record::compare::{
    CompareRecord, Contrast, DifferenceRecord, Judgement, amount, interval, unsigned, wider,
};

/// Characters shown of a command that starts a server.
pub(crate) const COMMAND_CHARS_MAX: usize = 1_000;
/// Blocks whose order is spelt out.
const BLOCKS_SHOWN: usize = 6;

/// The comparison as text, with a line feed at its end. Quiet: the answer, the bounds and what
/// speaks against it.
pub fn text(report: &CompareRecord, style: Style) -> String {
    let mut page = Page::default();
    page.wrapped("", &report.answer);
    if let Some(why) = &report.ended_early {
        page.wrapped("  ! ", &format!("Ended early: {}", printable(why, 1_000)));
    }
    for caution in &report.cautions {
        page.wrapped("  ! ", &printable(caution, 1_000));
    }
    for contrast in report.contrasts() {
        for bound in contrast.bounds {
            let mark = if bound.crossed { '✗' } else { '✓' };
            let of = contrast.mark(report);
            page.wrapped(&format!("  {mark} "), &format!("{of}{}: {}", bound.text, bound.why));
        }
    }
    if !style.quiet {
        what_was_done(&mut page, report);
        all_protocols(&mut page, report);
        for contrast in report.contrasts() {
            differences(&mut page, contrast);
        }
        power(&mut page, report);
    }
    let text = page.finish();
    if style.unicode { text } else { ascii(&text) }
}

fn what_was_done(page: &mut Page, report: &CompareRecord) {
    page.blank();
    for (letter, side) in report.lettered() {
        let count = counted(side.runs.len() as u64, "run");
        let load = side.plan.as_ref().map(|plan| words::load(plan.plan())).unwrap_or_default();
        page.wrapped(
            &format!("{letter}   "),
            &format!("{} · {count} · {load}", printable(&side.label, 200)),
        );
        if let Some(command) = &side.command {
            let command = printable(command, COMMAND_CHARS_MAX);
            let told = if command == side.label { String::new() } else { format!(": {command}") };
            page.wrapped("    ", &format!("restarted for each run{told}"));
        }
    }
    let blocks = &report.order;
    if !blocks.is_empty() {
        let shown = blocks[..blocks.len().min(BLOCKS_SHOWN)].join(" ");
        let more = if blocks.len() > BLOCKS_SHOWN { " ..." } else { "" };
        page.wrapped("    ", &format!("in turn: {shown}{more}, drawn"));
    }
}

/// One site over several protocols: what each took, and the times of all as bars.
fn all_protocols(page: &mut Page, report: &CompareRecord) {
    let Some(protocols) = super::protocols::protocols(report) else { return };
    page.blank();
    let mut rows = vec![vec![String::new()]];
    rows[0].extend(protocols.names.iter().map(|name| (*name).to_owned()));
    rows.extend(protocols.rows.iter().cloned());
    page.table(&rows);
    let bars = protocols.bars();
    if !bars.is_empty() {
        page.heading(match protocols.names.len() {
            2 => "Response times of both",
            _ => "Response times of all",
        });
        bars.iter().for_each(|line| page.line(line));
    }
}

fn differences(page: &mut Page, contrast: Contrast<'_>) {
    if contrast.differences.is_empty() {
        return;
    }
    if contrast.letter == 'B' {
        page.blank();
        page.wrapped("", &noise_floor(contrast));
    }
    page.blank();
    let letter = contrast.letter.to_string();
    let change = format!("{letter} to A");
    let head = ["", "A", &letter, &change, "95 % interval", "p", ""];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(contrast.differences.iter().map(row));
    page.table(&rows);
}

/// What A differs by from itself, of the figures that are looked at first.
fn noise_floor(contrast: Contrast<'_>) -> String {
    let first =
        |one: &&DifferenceRecord| ["throughput", "p50", "p99"].contains(&one.figure.as_str());
    let known = contrast.differences.iter().filter(first).filter(|one| one.noise.is_finite());
    let noise = known.map(|one| format!("{} ±{}", one.figure, unsigned(one.noise, one.points())));
    let noise: Vec<String> = noise.collect();
    match noise.is_empty() {
        true => "Noise floor: unknown; A has too few runs to be compared with itself.".to_owned(),
        false => format!("Noise floor, A against itself: {}.", noise.join(", ")),
    }
}

fn row(one: &DifferenceRecord) -> Vec<String> {
    let word = match one.judgement {
        Judgement::Better => "better",
        Judgement::Worse => "worse",
        Judgement::NoneShown | Judgement::TooFew => "",
    };
    vec![
        one.figure.clone(),
        shown(one, one.before),
        shown(one, one.after),
        cell(&amount(one.change, one.points())),
        cell(&interval(one)),
        p_value(one),
        word.to_owned(),
    ]
}

/// A difference as a cell: columns that are shorter leave two blanks between them, and headings of
/// several words can be told apart.
fn cell(text: &str) -> String {
    text.replace(" points", " pp")
}

/// What the comparison excludes, and what it could have found.
fn power(page: &mut Page, report: &CompareRecord) {
    let judged = |one: &&DifferenceRecord| one.judgement != Judgement::TooFew;
    let several = !report.further.is_empty();
    let mut any = false;
    for contrast in report.contrasts() {
        let judged = contrast.differences.iter().filter(judged);
        let rows: Vec<Vec<String>> = judged.map(power_row).collect();
        if rows.is_empty() {
            continue;
        }
        any = true;
        page.blank();
        let of = if several { &format!(", {} to A", contrast.letter) } else { "" };
        page.line(&format!("What these runs can show{of}"));
        let head = ["", "A to itself", "found 4 times in 5", "excluded beyond", "Cliff's delta"];
        let mut table = vec![head.map(str::to_owned).to_vec()];
        table.extend(rows);
        page.table(&table);
    }
    if !any {
        return;
    }
    // what stands at the margin must not read as another row
    page.blank();
    let method = format!(
        "p: how often labels drawn anew make any of these figures differ as much, {}; intervals: \
         bootstrap over {}, {} resamples. Cliff's delta: 1 when every run of B lies above every run \
         of A, -1 when below; pp: percentage points.{}",
        if report.order.is_empty() { "over all runs" } else { "within the blocks" },
        if report.order.is_empty() { "runs" } else { "blocks" },
        units::show::count(u64::from(report.resamples)),
        family(report)
    );
    page.wrapped("", &method);
}

/// What several comparisons of one result do to p.
pub(super) fn family(report: &CompareRecord) -> String {
    match report.further.len() + 1 {
        1 => String::new(),
        count => {
            format!(" Each p is multiplied by {count}, the number of comparisons (Bonferroni).")
        }
    }
}

fn power_row(one: &DifferenceRecord) -> Vec<String> {
    let excluded = match one.judgement {
        Judgement::NoneShown => unsigned(wider(one), one.points()),
        _ => String::new(),
    };
    vec![
        one.figure.clone(),
        cell(&format!("±{}", unsigned(one.noise, one.points()))),
        cell(&unsigned(one.detectable, one.points())),
        cell(&excluded),
        format!("{:+.2}", one.effect),
    ]
}
