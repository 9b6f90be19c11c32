//! The report for people at a terminal.

use super::{Report, beside, costs, send, server, words};
use crate::Style;
use crate::text::layout::Page;
use crate::text::{WIDTH, ascii};
use torture::judge::Outcome;
use torture::result::{CaseResult, ExchangeResult, RunResult};
use units::{Nanos, show};

/// Bytes of an exchange that are shown.
const SHOWN_MAX: usize = 400;
/// Of what came back, beside the words for it.
const RECEIVED_MAX: usize = 160;

/// Characters beside a number that its note needs, at least.
const NOTE_WIDTH_MIN: usize = 24;

/// The report as text, with a line feed at its end.
pub fn text(report: &Report, style: Style) -> String {
    let mut page = Page::default();
    let result = &report.result;
    page.wrapped(
        "",
        &format!("Torture of {} ({})", words::safe(&report.target), report.class.id()),
    );
    page.blank();
    page.wrapped("", &words::summary(report));
    if let Some(why) = &result.ended_early {
        page.wrapped("", &format!("It ended early: {}.", words::safe(why)));
    }
    if let Some(seen) = &result.post_trouble {
        page.wrapped("", &format!("The page named by --post took no body: {}.", words::safe(seen)));
    }
    groups(&mut page, result);
    let mut found: Vec<&CaseResult> = result.cases.iter().collect();
    found.retain(|case| case.outcome >= Outcome::Advisory);
    found.sort_by_key(|case| std::cmp::Reverse(case.outcome));
    found.into_iter().for_each(|case| finding(&mut page, report, case));
    waivers(&mut page, report);
    if !style.quiet {
        beside::text(&mut page, report);
        pressed(&mut page, result);
        server::text(&mut page, report);
        limits(&mut page, result);
        costs::costs(&mut page, result);
        tallies(&mut page, result);
        habits(&mut page, result);
        untested(&mut page, result);
        page.heading("Not ruled out");
        words::not_ruled_out(report).iter().for_each(|one| page.wrapped("  - ", one));
    }
    let text = page.finish();
    let text = if style.unicode { text } else { ascii(&text) };
    if style.color { coloured(&text) } else { text }
}

/// One line a group, the worst first.
fn groups(page: &mut Page, result: &RunResult) {
    for (row, group) in words::groups(result).iter().enumerate() {
        if row == 0 {
            page.blank();
        }
        let name = words::group_name(group.letter);
        page.wrapped(&format!("  {}  {name:<24}", group.letter), &group.line());
    }
}

fn finding(page: &mut Page, report: &Report, case: &CaseResult) {
    let found = &case.case;
    page.blank();
    let head = format!("{} {} ", found.id, case.outcome.id());
    page.wrapped(&head, &format!("{} ({}, {})", found.title, found.level.id(), found.reference));
    if let Some(waived) = report.waived(&found.id) {
        let said = format!("until {}: {}", waived.waiver.until, waived.waiver.reason);
        page.wrapped("    waived    ", &words::safe(&said));
    }
    for note in &case.notes {
        page.wrapped("    because   ", &words::safe(note));
    }
    if let Some(health) = &case.health {
        for (label, said) in words::felt(health, report.result.baseline.as_ref()) {
            page.wrapped(&format!("    {label:<10}"), &said);
        }
    }
    for one in &case.measures {
        let said = format!("{} {} ({})", one.what, words::measure(one), one.note);
        page.wrapped("    measured  ", &words::safe(&said));
    }
    if let Some(recovery) = case.recovery {
        page.wrapped("    then      ", &words::afterwards(recovery));
    }
    let bad = |exchange: &&ExchangeResult| exchange.judgement.outcome >= Outcome::Advisory;
    case.exchanges.iter().filter(bad).for_each(|one| exchange(page, report, case, one));
}

fn exchange(page: &mut Page, report: &Report, case: &CaseResult, exchange: &ExchangeResult) {
    let judgement = &exchange.judgement;
    page.wrapped("  ", &format!("{}: {}", words::safe(&exchange.name), judgement.outcome.id()));
    if !exchange.sent.is_empty() {
        page.wrapped("    sent      ", &send::shown(&exchange.sent, SHOWN_MAX));
    }
    page.wrapped("    came back ", &words::safe(&judgement.seen));
    if !exchange.received.is_empty() {
        page.wrapped("              ", &send::shown(&exchange.received, RECEIVED_MAX));
    }
    if !judgement.expected.is_empty() {
        page.wrapped("    expected  ", &words::safe(&judgement.expected));
    }
    if !judgement.why.is_empty() {
        page.wrapped("    why       ", &words::safe(&judgement.why));
    }
    if exchange.tries > 1 {
        let often = format!("{} of {} tries", exchange.failed, exchange.tries);
        page.wrapped("    failed in ", &often);
    }
    if judgement.outcome.is_finding()
        && let Some(line) = send::shell_line(&report.target, &exchange.sent)
    {
        // not wrapped: it is there to be copied
        page.line(&format!("    again     {line}"));
    }
    if let Some(shrunk) = report.result.shrunk_of(&case.case.id, &exchange.name) {
        page.wrapped("    shrunk    ", &words::shrunk(shrunk));
    }
    if let Some(folder) = report.result.kept_folder(&case.case.id, &exchange.name) {
        page.line(&format!("    replay    loadstone torture replay {}", send::word(folder)));
    }
}

/// Waivers that did not do what they were written for.
fn waivers(page: &mut Page, report: &Report) {
    let told = report.waivers.iter().filter_map(|one| Some((one, one.word()?)));
    for (row, (one, word)) in told.enumerate() {
        if row == 0 {
            page.heading("Waivers to look at");
        }
        page.wrapped("  ", &words::safe(&format!("{} ({word})", one.what())));
    }
}

/// What polite clients felt, a row a case that pressed.
fn pressed(page: &mut Page, result: &RunResult) {
    let rows: Vec<Vec<String>> = result.cases.iter().filter_map(pressed_row).collect();
    if rows.is_empty() {
        return;
    }
    page.heading("Polite clients while a case pressed");
    if let Some(base) = &result.baseline {
        page.wrapped("  ", &format!("Before: {}.", words::baseline(base)));
    }
    let heads = ["", "correct", "shed", "lost", "p99", "back after", "stood", "followed"];
    let mut table = vec![heads.map(str::to_owned).to_vec()];
    table.extend(rows);
    page.table(&table);
}

fn pressed_row(case: &CaseResult) -> Option<Vec<String>> {
    let health = case.health.as_ref()?;
    let back = match health.recovery {
        Some(Nanos::ZERO) => "at once".to_owned(),
        Some(span) => show::duration(span),
        None => "never".to_owned(),
    };
    Some(vec![
        format!("{} {}", case.case.id, case.outcome.id()),
        show::share(health.correct),
        show::share(health.shed),
        show::share(health.lost),
        show::duration(health.p99),
        back,
        format!("{}/{}", health.armed, health.wanted),
        words::followed(health),
    ])
}

/// The numbers that an operator pins up, whether all is well or not.
fn limits(page: &mut Page, result: &RunResult) {
    let measured =
        || result.cases.iter().flat_map(|case| case.measures.iter().map(move |m| (case, m)));
    if measured().next().is_none() {
        return;
    }
    page.heading("Limits and deadlines");
    let width = measured().map(|(_, one)| one.what.chars().count()).max().unwrap_or(0).min(30);
    let values = measured().map(|(_, one)| words::measure(one).chars().count());
    let room = values.max().unwrap_or(0).min(26);
    for (case, one) in measured() {
        let what = words::safe(&one.what);
        let head = format!("  {} {what:<width$}  {:<room$}  ", case.case.id, words::measure(one));
        let note = words::safe(&one.note);
        // a narrow column of notes is read by nobody
        if head.chars().count() + NOTE_WIDTH_MIN <= WIDTH || note.chars().count() < NOTE_WIDTH_MIN {
            page.wrapped(&head, &note);
        } else {
            page.line(&head);
            page.wrapped("       ", &note);
        }
    }
}

/// torture.pl's whole report: what random data got, by status.
fn tallies(page: &mut Page, result: &RunResult) {
    let tallied = |case: &&CaseResult| !case.tally.is_empty();
    for (row, case) in result.cases.iter().filter(tallied).enumerate() {
        if row == 0 {
            page.heading("What random data got");
        }
        let each = |(what, count): (&String, &u64)| {
            format!("{} × {}", words::safe(what), show::count(*count))
        };
        let list: Vec<String> = case.tally.iter().map(each).collect();
        page.wrapped(&format!("  {} {:<46} ", case.case.id, case.case.title), &list.join(", "));
    }
}

fn habits(page: &mut Page, result: &RunResult) {
    if result.habits.seen.is_empty() {
        return;
    }
    page.heading("Habits of this server");
    for (name, seen) in &result.habits.seen {
        page.wrapped(&format!("  {name:<30}"), &words::safe(seen));
    }
}

/// What was skipped or taught nothing, and why; cases of one reason together.
fn untested(page: &mut Page, result: &RunResult) {
    let mut reasons: Vec<(String, Vec<&str>)> = Vec::new();
    for case in &result.cases {
        let Some(why) = words::untested(case) else { continue };
        match reasons.iter_mut().find(|(known, _)| *known == why) {
            Some((_, ids)) => ids.push(&case.case.id),
            None => reasons.push((why, vec![&case.case.id])),
        }
    }
    if !reasons.is_empty() {
        page.heading("Not tested");
    }
    for (why, ids) in reasons {
        page.wrapped("  ", &format!("{}: {why}", ids.join(" ")));
    }
}

/// Outcomes at the heads of findings; their words say the same without colour.
fn coloured(text: &str) -> String {
    let line = |line: &str| {
        let mut words = line.splitn(3, ' ');
        let (Some(id), Some(word), Some(rest)) = (words.next(), words.next(), words.next()) else {
            return format!("{line}\n");
        };
        let outcome = Outcome::ALL.into_iter().find(|outcome| outcome.id() == word);
        match outcome {
            Some(outcome) if id.get(1..2) == Some("-") => {
                let code = if outcome.is_finding() { "1;31" } else { "33" };
                format!("{id} \u{1b}[{code}m{word}\u{1b}[0m {rest}\n")
            }
            _ => format!("{line}\n"),
        }
    };
    text.lines().map(line).collect()
}
