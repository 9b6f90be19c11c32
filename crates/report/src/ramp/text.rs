//! A ramp for people at a terminal: the verdict, the answer in words, then the steps as a table in
//! the shape of Swerve's and the curve as a picture.

mod picture;
mod table;

use super::{RampRecord, answer, load, steps_sentence};
use crate::Style;
use crate::blocks;
use crate::page::text::ascii;
use crate::page::text::layout::Page;
use crate::section::{Document, Forms};
use crate::words::{self, printable};
use stats::curve::{Curve, Span};

/// The report as text, with a line feed at its end.
pub fn text(report: &RampRecord, style: Style) -> String {
    let mut page = Page::default().coloured(style.color);
    let mut head = Document::default();
    head.add(Forms::FULL, [blocks::verdict(&report.verdict, (usize::MAX, usize::MAX))]);
    crate::page::text::write(&mut page, &head, Forms::FULL);
    if let Some(why) = &report.ended_early {
        page.blank();
        page.fact("Ended early", &printable(why, 400));
    }
    let many = report.labels.len() > 1;
    for (row, label) in report.labels.iter().enumerate() {
        if answer(report, row).is_empty() {
            continue;
        }
        match many {
            true => page.heading(&printable(label, 76)),
            false => page.blank(),
        }
        for (name, sentence) in answer(report, row) {
            page.fact(name, &sentence);
        }
    }
    if !style.quiet {
        what_was_done(&mut page, report);
        if many {
            table::side_by_side(&mut page, report);
        }
        picture::picture(&mut page, report);
        for row in 0..report.labels.len() {
            table::steps(&mut page, report, row);
        }
        for (label, curve) in report.labels.iter().zip(&report.curves()) {
            law(&mut page, report, label, curve);
        }
        findings(&mut page, report);
    }
    if style.unicode { page.finish() } else { ascii(&page.finish()) }
}

fn what_was_done(page: &mut Page, report: &RampRecord) {
    page.blank();
    let name = match report.name.as_str() {
        "" => words::target(report.plan.plan()),
        name => printable(name, 400),
    };
    page.fact("Target", &name);
    page.fact("Steps", &steps_sentence(report));
    page.fact("Request", &words::protocol(report.plan.plan()));
    let when = words::timestamp(report.started_unix_s);
    let machine = words::machine(&report.environment);
    page.fact("Measured", format!("{when}, {machine}").trim_end_matches(", "));
}

/// The fits, and what could not be said.
fn law(page: &mut Page, report: &RampRecord, label: &str, curve: &Curve) {
    let mut facts: Vec<(&str, String)> = Vec::new();
    if let Some(found) = &curve.kneedle {
        let rule = found.rule.trim_start_matches("Kneedle, ");
        facts.push(("Kneedle", format!("{} ({rule})", load(report.axis, found.at.at))));
    }
    if let Some(at) = curve.power_at {
        let text = format!("throughput over response time is largest at {}", load(report.axis, at));
        facts.push(("Power", text));
    }
    if let Some(law) = &curve.usl {
        let with = |span: &Span| match span.interval() {
            Some((low, high)) => format!(
                "{} ({} to {})",
                words::figure(span.at),
                words::figure(low),
                words::figure(high)
            ),
            None => words::figure(span.at),
        };
        let most = match law.n_max.is_finite() {
            true => format!(
                "largest throughput {} at {} calls at once",
                units::show::rate(law.x_max.round()),
                words::figure(law.n_max)
            ),
            false => format!("no more than {}", units::show::rate(law.x_max.round())),
        };
        facts.push((
            "Scalability",
            format!("contention {}, coherency {}; {most}", with(&law.a), with(&law.b)),
        ));
    }
    facts.extend(curve.notes.iter().map(|note| ("Note", note.clone())));
    if facts.is_empty() {
        return;
    }
    match report.labels.len() > 1 {
        true => page.heading(&printable(label, 76)),
        false => page.blank(),
    }
    for (name, text) in facts {
        page.fact(name, &text);
    }
}

fn findings(page: &mut Page, report: &RampRecord) {
    let mut told = Document::default();
    told.add(Forms::FULL, blocks::findings(&report.findings));
    crate::page::text::write(page, &told, Forms::FULL);
}
