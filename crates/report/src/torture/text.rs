//! The report for people at a terminal.

use super::{beside, costs, send, server, words};
use crate::Style;
use crate::page::text::layout::Page;
use crate::page::text::{WIDTH, ascii};
use crate::words::counted;
use record::torture::{CaseRecord, ExchangeRecord, TortureRecord};
use torture::judge::TestOutcome;
use units::show;

/// Bytes of an exchange that are shown.
const SHOWN_MAX: usize = 400;
/// Of what came back, beside the words for it.
const RECEIVED_MAX: usize = 160;

/// Characters beside a number that its note needs, at least.
const NOTE_WIDTH_MIN: usize = 24;

/// The record as text, with a line feed at its end.
pub fn text(record: &TortureRecord, style: Style) -> String {
    let mut page = Page::default();
    let head = format!("Torture of {} ({})", words::safe(&record.target), record.class.id());
    page.wrapped("", &head);
    page.blank();
    page.wrapped("", &words::summary(record));
    if let Some(why) = &record.ended_early {
        page.wrapped("", &format!("It ended early: {}.", words::safe(why)));
    }
    if let Some(seen) = &record.post_trouble {
        page.wrapped("", &format!("The page named by --post took no body: {}.", words::safe(seen)));
    }
    groups(&mut page, record);
    notable(&mut page, record);
    waivers(&mut page, record);
    if !style.quiet {
        beside::text(&mut page, record);
        pressed(&mut page, record);
        server::text(&mut page, record);
        limits(&mut page, record);
        costs::costs(&mut page, record);
        tallies(&mut page, record);
        habits(&mut page, record);
        untested(&mut page, record);
        page.heading("Not ruled out");
        words::not_ruled_out(record).iter().for_each(|one| page.wrapped("  - ", one));
    }
    let text = page.finish();
    let text = if style.unicode { text } else { ascii(&text) };
    if style.color { coloured(&text) } else { text }
}

/// One line a group, the worst first.
fn groups(page: &mut Page, result: &TortureRecord) {
    for (row, group) in words::groups(result).iter().enumerate() {
        if row == 0 {
            page.blank();
        }
        let name = words::group_name(group.letter);
        page.wrapped(&format!("  {}  {name:<24}", group.letter), &group.line());
    }
}

/// Findings at length, and advice in a line each.
fn notable(page: &mut Page, record: &TortureRecord) {
    let (findings, advice): (Vec<&CaseRecord>, Vec<&CaseRecord>) =
        record.notable().into_iter().partition(|case| case.outcome.is_finding());
    let mut shown = Vec::new();
    findings.into_iter().for_each(|case| finding(page, record, case, &mut shown));
    for (row, case) in advice.into_iter().enumerate() {
        if row == 0 {
            page.blank();
        }
        let names = names(case.exchanges.iter().filter(|one| is_notable(one)));
        let names = if names.is_empty() { names } else { format!(": {names}") };
        let what = format!("{} ({}, {}){names}", case.title, case.level.id(), case.reference);
        page.wrapped(&format!("{} {} ", case.id, case.outcome.id()), &what);
    }
}

fn is_notable(exchange: &ExchangeRecord) -> bool {
    exchange.outcome >= TestOutcome::Advisory
}

/// Names of exchanges, those that many words would hide left out.
fn names<'a>(exchanges: impl Iterator<Item = &'a ExchangeRecord>) -> String {
    let all: Vec<String> = exchanges.map(|one| words::safe(&one.name)).collect();
    let more = all.len().saturating_sub(NAMES_MAX);
    let named = all.iter().take(NAMES_MAX).cloned().collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{named} and {more} more") } else { named }
}

/// Exchanges of a block, or of a line of advice, that are named.
const NAMES_MAX: usize = 6;

/// `shown`: the blocks of the findings before, with the ids of their cases.
fn finding<'a>(
    page: &mut Page,
    record: &TortureRecord,
    case: &'a CaseRecord,
    shown: &mut Vec<(&'a str, Block<'a>)>,
) {
    page.blank();
    let severity = case.severity.map_or(String::new(), |one| format!("({}) ", one.id()));
    let head = format!("{} {} {severity}", case.id, case.outcome.id());
    page.wrapped(&head, &format!("{} ({}, {})", case.title, case.level.id(), case.reference));
    if let Some(waived) = record.waiver_of(&case.id) {
        let said = format!("until {}: {}", waived.waiver.until, waived.waiver.reason);
        page.wrapped("    waived    ", &words::safe(&said));
    }
    if !case.matters.is_empty() {
        page.wrapped("    matters   ", &case.matters);
    }
    for note in &case.notes {
        page.wrapped("    because   ", &words::safe(note));
    }
    if let Some(health) = &case.health {
        for (label, said) in words::impact(health, record.baseline.as_ref()) {
            page.wrapped(&format!("    {label:<10}"), &said);
        }
    }
    for one in record.limits_of(&case.id) {
        let said = format!("{} {} ({})", one.what, words::measure(one), one.note);
        page.wrapped("    measured  ", &words::safe(&said));
    }
    if let Some(recovery) = case.recovery_s {
        page.wrapped("    then      ", &words::afterwards(recovery));
    }
    for block in blocks(case) {
        // elsewhere each case sends what no other does
        let random = case.group() == RANDOM;
        let before =
            if random { shown.iter().find(|(_, before)| before.is_like(&block)) } else { None };
        match before {
            Some((id, _)) => {
                let said = format!("{} as in {id}: {}", block.count(), names(block.all()));
                page.wrapped("  ", &said);
            }
            None => {
                exchange(page, record, case, &block);
                if random {
                    shown.push((&case.id, block));
                }
            }
        }
    }
}

/// The group of random data.
const RANDOM: char = 'F';

/// Exchanges that failed in the same way; one of them stands for all.
#[derive(Clone, Debug)]
struct Block<'a> {
    /// The one that sent least.
    example: &'a ExchangeRecord,
    others: Vec<&'a ExchangeRecord>,
}

impl<'a> Block<'a> {
    /// Whether both came to the same.
    fn is_like(&self, other: &Block<'_>) -> bool {
        alike(self.example, other.example)
    }

    fn all(&self) -> impl Iterator<Item = &'a ExchangeRecord> {
        std::iter::once(self.example).chain(self.others.iter().copied())
    }

    fn count(&self) -> String {
        counted(self.others.len() as u64 + 1, "exchange")
    }
}

fn alike(a: &ExchangeRecord, b: &ExchangeRecord) -> bool {
    let key = |one: &ExchangeRecord| (one.outcome, one.tries == one.failed);
    key(a) == key(b) && a.seen == b.seen && a.expected == b.expected && a.why == b.why
}

/// In the order of the first of each.
fn blocks(case: &CaseRecord) -> Vec<Block<'_>> {
    let mut all: Vec<Block<'_>> = Vec::new();
    for one in case.exchanges.iter().filter(|one| is_notable(one)) {
        match all.iter_mut().find(|block| alike(block.example, one)) {
            Some(block) if one.sent.0.len() < block.example.sent.0.len() => {
                block.others.insert(0, std::mem::replace(&mut block.example, one));
            }
            Some(block) => block.others.push(one),
            None => all.push(Block { example: one, others: Vec::new() }),
        }
    }
    all
}

fn exchange(page: &mut Page, record: &TortureRecord, case: &CaseRecord, block: &Block<'_>) {
    let exchange = block.example;
    let (sent, received) = (&exchange.sent.0, &exchange.received.0);
    page.wrapped("  ", &format!("{}: {}", words::safe(&exchange.name), exchange.outcome.id()));
    if !block.others.is_empty() {
        let said = format!("{}: {}", block.others.len(), names(block.others.iter().copied()));
        page.wrapped("    alike     ", &said);
    }
    if !sent.is_empty() {
        page.wrapped("    sent      ", &send::shown(sent, SHOWN_MAX));
    }
    page.wrapped("    came back ", &words::safe(&exchange.seen));
    responses(page, received);
    if !exchange.expected.is_empty() {
        page.wrapped("    expected  ", &words::safe(&exchange.expected));
    }
    if !exchange.why.is_empty() {
        page.wrapped("    why       ", &words::safe(&exchange.why));
    }
    if exchange.tries > 1 {
        let often = format!("{} of {} tries", exchange.failed, exchange.tries);
        page.wrapped("    failed in ", &often);
    }
    if exchange.outcome.is_finding()
        && let Some(line) = send::shell_line(&record.target, sent, &exchange.pauses)
    {
        // not wrapped: it is there to be copied
        page.line(&format!("    again     {line}"));
    }
    if let Some(shrunk) = record.shrunk_of(&case.id, &exchange.name) {
        page.wrapped("    shrunk    ", &words::shrunk(shrunk));
    }
    if let Some(folder) = record.kept_folder(&case.id, &exchange.name) {
        page.line(&format!("    replay    loadstone torture replay {}", send::word(folder)));
    }
}

/// The first response, and the first line of each that followed.
fn responses(page: &mut Page, received: &[u8]) {
    let all = send::responses(received);
    for (row, response) in all.iter().enumerate().filter(|(_, one)| !one.is_empty()) {
        let label = match all.len() {
            1 => String::new(),
            all => format!("{} of {all}", row + 1),
        };
        let shown = match row {
            0 => send::shown(response, RECEIVED_MAX),
            _ => {
                let line = response.split(|byte| *byte == b'\r' || *byte == b'\n').next();
                send::shown(line.unwrap_or_default(), RECEIVED_MAX)
            }
        };
        page.wrapped(&format!("    {label:<10}"), &shown);
    }
}

/// Waivers that need attention.
fn waivers(page: &mut Page, record: &TortureRecord) {
    let told = record.waivers.iter().filter_map(|one| Some((one, one.word()?)));
    for (row, (one, word)) in told.enumerate() {
        if row == 0 {
            page.heading("Waivers that need attention");
        }
        page.wrapped("  ", &words::safe(&format!("{} ({word})", one.what())));
    }
}

/// What well-behaved clients observed, a row for each case that applied pressure.
fn pressed(page: &mut Page, result: &TortureRecord) {
    let rows: Vec<Vec<String>> = result.cases.iter().filter_map(pressed_row).collect();
    if rows.is_empty() {
        return;
    }
    page.heading("Well-behaved clients under pressure");
    if let Some(base) = &result.baseline {
        page.wrapped("  ", &format!("Before: {}.", words::baseline(base)));
    }
    let heads = ["", "correct", "shed", "lost", "p99", "recovery", "established", "followed"];
    let mut table = vec![heads.map(str::to_owned).to_vec()];
    table.extend(rows);
    page.table(&table);
}

fn pressed_row(case: &CaseRecord) -> Option<Vec<String>> {
    let health = case.health.as_ref()?;
    Some(vec![
        format!("{} {}", case.id, case.outcome.id()),
        show::share(health.correct),
        show::share(health.shed),
        show::share(health.lost),
        words::duration(health.p99_s),
        words::recovery(health.recovery_s),
        format!("{}/{}", health.armed, health.wanted),
        words::followed(health),
    ])
}

/// Limits and deadlines, whether there is a finding or not: an operator needs them in any case.
fn limits(page: &mut Page, record: &TortureRecord) {
    let measured = &record.limits;
    if measured.is_empty() {
        return;
    }
    page.heading("Limits and deadlines");
    let width = measured.iter().map(|one| one.what.chars().count()).max().unwrap_or(0).min(30);
    let values = measured.iter().map(|one| words::measure(one).chars().count());
    let room = values.max().unwrap_or(0).min(26);
    for one in measured {
        let what = words::safe(&one.what);
        let head = format!("  {} {what:<width$}  {:<room$}  ", one.case, words::measure(one));
        let note = words::safe(&one.note);
        // nobody reads a narrow column of notes
        if head.chars().count() + NOTE_WIDTH_MIN <= WIDTH || note.chars().count() < NOTE_WIDTH_MIN {
            page.wrapped(&head, &note);
        } else {
            page.line(&head);
            page.wrapped("       ", &note);
        }
    }
}

/// torture.pl's whole report: what random data got, by status.
fn tallies(page: &mut Page, result: &TortureRecord) {
    let tallied = |case: &&CaseRecord| !case.tally.is_empty();
    for (row, case) in result.cases.iter().filter(tallied).enumerate() {
        if row == 0 {
            page.heading("Responses to random data");
        }
        let each = |(what, count): (&String, &u64)| {
            format!("{} × {}", words::safe(what), show::count(*count))
        };
        let list: Vec<String> = case.tally.iter().map(each).collect();
        page.wrapped(&format!("  {} {:<46} ", case.id, case.title), &list.join(", "));
    }
}

fn habits(page: &mut Page, result: &TortureRecord) {
    if result.habits.is_empty() {
        return;
    }
    page.heading("Habits of this server");
    for habit in &result.habits {
        page.wrapped(&format!("  {:<30}", words::safe(&habit.name)), &words::safe(&habit.seen));
    }
}

/// What was skipped or inconclusive, and why; cases of one reason together.
fn untested(page: &mut Page, result: &TortureRecord) {
    let mut reasons: Vec<(String, Vec<&str>)> = Vec::new();
    for case in &result.cases {
        let Some(why) = words::untested(case) else { continue };
        match reasons.iter_mut().find(|(known, _)| *known == why) {
            Some((_, ids)) => ids.push(&case.id),
            None => reasons.push((why, vec![&case.id])),
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
        let outcome = TestOutcome::ALL.into_iter().find(|outcome| outcome.id() == word);
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
