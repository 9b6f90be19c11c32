//! Findings and advisories: the sent and received bytes, the expectation, and how to send them
//! again.

use super::{badge, named, send, words};
use crate::section::{
    Block, DataTable, Details, Document, Forms, Inline, Sentence, Voice, Words, aligned, placed,
    text_block, with_lead,
};
use crate::words::{counted, printable};
use record::torture::{CaseRecord, ExchangeRecord, TortureRecord};
use torture::case::{GRPC, HTTP2, PACKETS};
use torture::judge::{self, TestOutcome};

/// Maximum number of sent and received bytes shown in text ...
const SENT_MAX: usize = 400;
const RECEIVED_MAX: usize = 160;
/// ... and on the page; the JSON has all of them.
const SHOWN_MAX: usize = 4_000;
/// Maximum number of exchanges of a case on the page.
const EXCHANGES_MAX: usize = 24;
/// Maximum number of named exchanges of a block, or of an advisory.
const NAMES_MAX: usize = 6;
/// Maximum number of received responses shown.
const RESPONSES_MAX: usize = 6;
/// Groups whose cases need several connections or raw segments.
const SEVERAL: [char; 2] = ['M', PACKETS];
/// The group of random data.
const RANDOM: char = 'F';

/// Adds findings in detail, and advisories: in text one line each.
pub(super) fn findings(document: &mut Document, record: &TortureRecord, read: Forms) {
    counted_findings(document, record);
    let notable = record.notable();
    if !notable.is_empty() {
        document.add(Forms::PAGE, [placed("findings", "Findings and advice")]);
    }
    let mut shown = Vec::new();
    let mut advised = false;
    for case in notable {
        let bad = case.outcome.is_finding();
        let forms = if bad { Forms::TEXT | Forms::PAGE } else { Forms::PAGE };
        if read.has(forms) {
            document.add(forms, [Block::Details(finding(record, case, read, &mut shown))]);
        }
        if !bad {
            if !std::mem::replace(&mut advised, true) {
                document.add(Forms::TEXT, [Block::Gap]);
            }
            document.add(Forms::TEXT, [advice(case)]);
        }
    }
}

/// Adds the findings, one row each.
fn counted_findings(document: &mut Document, record: &TortureRecord) {
    let row = |case| counted_row(record, case);
    let rows: Vec<Vec<String>> = record.counted_findings().into_iter().map(row).collect();
    if !rows.is_empty() {
        let heads = ["severity", "outcome", "case", "title", "observed"];
        document.add(Forms::MARKDOWN, [Block::Table(DataTable::new(heads).with(rows))]);
    }
}

fn counted_row(record: &TortureRecord, case: &CaseRecord) -> Vec<String> {
    let bad = case.exchanges.iter().filter(|one| one.outcome.is_finding());
    let mut seen: Vec<String> = bad.map(|one| format!("{}: {}", one.name, one.seen)).collect();
    seen.extend(case.notes.iter().cloned());
    seen.extend(case.recovery_s.map(words::afterwards));
    let same: Vec<&str> = record.same_as(&case.id).iter().map(|one| one.id.as_str()).collect();
    if !same.is_empty() {
        seen.insert(0, format!("also seen as {}", same.join(", ")));
    }
    let seen = printable(&words::safe(&seen.join("; ")), super::LINE_MAX);
    let severity = case.severity.map_or("", |severity| severity.id()).to_owned();
    vec![severity, case.outcome.id().to_owned(), case.id.clone(), case.title.clone(), seen]
}

fn advice(case: &CaseRecord) -> Block {
    let names = names(case.exchanges.iter().filter(|one| is_notable(one)));
    let names = if names.is_empty() { names } else { format!(": {names}") };
    head_line(case, "", &names)
}

/// Returns the head of a case in text: id, outcome and severity before the title.
fn head_line(case: &CaseRecord, severity: &str, behind: &str) -> Block {
    let lead = Words::from(case.id.as_str()).plain(" ").with(badge(case.outcome));
    let rests_on = format!("({}, {})", case.level.id(), case.reference);
    Block::Sentence(Sentence {
        lead: lead.plain(format!(" {severity}")),
        voice: Voice::Plain,
        words: format!("{} {rests_on}{behind}", case.title).into(),
    })
}

fn is_notable(exchange: &ExchangeRecord) -> bool {
    exchange.outcome >= TestOutcome::Advisory
}

/// Returns names of exchanges; beyond the maximum they are counted.
fn names<'a>(exchanges: impl Iterator<Item = &'a ExchangeRecord>) -> String {
    let all: Vec<String> = exchanges.map(|one| words::safe(&one.name)).collect();
    let more = all.len().saturating_sub(NAMES_MAX);
    let named = all.iter().take(NAMES_MAX).cloned().collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{named} and {more} more") } else { named }
}

/// Renders one finding.
/// `shown`: blocks of earlier findings, with the ids of their cases.
fn finding<'a>(
    record: &TortureRecord,
    case: &'a CaseRecord,
    read: Forms,
    shown: &mut Vec<(&'a str, Alike<'a>)>,
) -> Details {
    let severity = case.severity.map_or(String::new(), |one| format!("({}) ", one.id()));
    let mut body = Document::default();
    body.add(Forms::TEXT, [Block::Gap, head_line(case, &severity, "")]);
    let rests_on = format!("{}, {}", case.level.id(), case.reference);
    body.add(Forms::PAGE, [text_block(Voice::Soft, rests_on)]);
    body.add(Forms::TEXT | Forms::PAGE, [labelled(facts(record, case))]);
    if read.has(Forms::TEXT) && case.outcome.is_finding() {
        for alike in alike_exchanges(case) {
            repeated(&mut body, record, case, alike, shown);
        }
    }
    let exchanges: Vec<&ExchangeRecord> =
        case.exchanges.iter().filter(|one| is_notable(one)).collect();
    let detailed = if read.has(Forms::PAGE) { EXCHANGES_MAX } else { 0 };
    for one in exchanges.iter().take(detailed) {
        body.add(Forms::PAGE, exchange(record, case, one, &[]));
    }
    let left_out = exchanges.len().saturating_sub(EXCHANGES_MAX) as u64;
    let more =
        || text_block(Voice::Note, format!("{} more in the JSON.", counted(left_out, "exchange")));
    body.add(Forms::PAGE, (left_out > 0).then(more));
    Details {
        id: case.id.clone(),
        open: case.outcome.is_finding(),
        summary: named(Inline::Strong(case.id.clone()), case),
        body,
        ..Details::default()
    }
}

/// Formats facts of a finding after labels in their own column.
fn labelled<L: Into<String>, W: Into<Words>>(rows: Vec<(L, W)>) -> Block {
    aligned(4, 10, rows)
}

/// Returns the facts of the case, with the command that runs it again if no exchange has one.
fn facts(record: &TortureRecord, case: &CaseRecord) -> Vec<(&'static str, Words)> {
    let texts = numbers(record, case).into_iter();
    let mut facts: Vec<_> = texts.map(|(label, text)| (label, Words::from(text))).collect();
    let has_command = case.exchanges.iter().any(|one| one.outcome.is_finding());
    if case.outcome.is_finding() && !has_command {
        facts.push(("again", Words(vec![Inline::Command(send::case_line(record, case))])));
    }
    facts
}

/// Returns the facts of the case as a whole.
fn numbers(record: &TortureRecord, case: &CaseRecord) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    if let Some(one) = record.waiver_of(&case.id) {
        let text = format!("until {}: {}", one.waiver.until, one.waiver.reason);
        facts.push(("waived", words::safe(&text)));
    }
    if !case.reason.is_empty() {
        facts.push(("reason", words::safe(&case.reason)));
    }
    if !case.matters.is_empty() {
        facts.push(("matters", case.matters.clone()));
    }
    // a merge is a conclusion: its evidence stays visible
    facts.extend(record.same_as(&case.id).into_iter().map(|one| ("also seen", also_seen(one))));
    facts.extend(case.notes.iter().map(|note| ("because", words::safe(note))));
    if let Some(health) = &case.health {
        facts.extend(words::impact(health, record.baseline.as_ref()));
    }
    for one in record.limits_of(&case.id) {
        let text = format!("{} {} ({})", one.what, words::measure(one), one.note);
        facts.push(("measured", words::safe(&text)));
    }
    facts.extend(case.recovery_s.map(|recovery| ("then", words::afterwards(recovery))));
    facts
}

/// Returns what a case with the same fault observed.
fn also_seen(case: &CaseRecord) -> String {
    let bad = case.exchanges.iter().filter(|one| one.outcome.is_finding());
    let names = names(bad.clone());
    let mut seen: Vec<String> = Vec::new();
    for one in bad {
        if !seen.contains(&one.seen) {
            seen.push(one.seen.clone());
        }
    }
    let seen = words::safe(&seen.join("; "));
    match names.is_empty() {
        true => format!("{} ({})", case.id, case.title),
        false => format!("{} ({}), {names}: {seen}", case.id, case.title),
    }
}

/// Exchanges that failed in the same way; one of them represents all.
#[derive(Clone, Debug)]
struct Alike<'a> {
    /// The exchange that sent least.
    example: &'a ExchangeRecord,
    others: Vec<&'a ExchangeRecord>,
}

fn is_same_failure(a: &ExchangeRecord, b: &ExchangeRecord) -> bool {
    let key = |one: &ExchangeRecord| (one.outcome, one.tries == one.failed);
    key(a) == key(b) && a.seen == b.seen && a.expected == b.expected && a.why == b.why
}

/// Exchanges in the order of their first occurrence.
fn alike_exchanges(case: &CaseRecord) -> Vec<Alike<'_>> {
    let mut all: Vec<Alike<'_>> = Vec::new();
    for one in case.exchanges.iter().filter(|one| is_notable(one)) {
        match all.iter_mut().find(|block| is_same_failure(block.example, one)) {
            Some(block) if one.sent.0.len() < block.example.sent.0.len() => {
                block.others.insert(0, std::mem::replace(&mut block.example, one));
            }
            Some(block) => block.others.push(one),
            None => all.push(Alike { example: one, others: Vec::new() }),
        }
    }
    all
}

/// Adds similar exchanges in text: the example, or a reference to an earlier one.
fn repeated<'a>(
    body: &mut Document,
    record: &TortureRecord,
    case: &'a CaseRecord,
    these: Alike<'a>,
    shown: &mut Vec<(&'a str, Alike<'a>)>,
) {
    // in other groups every case sends different bytes
    let random = case.group() == RANDOM;
    // without a response there is no evidence that two failures have the same cause
    let is_alike = |one: &Alike<'_>| {
        !these.example.received.0.is_empty() && is_same_failure(one.example, these.example)
    };
    let before = shown.iter().find(|(_, one)| random && is_alike(one));
    if let Some((id, _)) = before {
        let count = counted(these.others.len() as u64 + 1, "exchange");
        let all = names(std::iter::once(these.example).chain(these.others.iter().copied()));
        body.add(
            Forms::TEXT,
            [with_lead(
                "  ",
                Voice::Plain,
                format!("{count} with the same result as in {id}: {all}"),
            )],
        );
        return;
    }
    body.add(Forms::TEXT, exchange(record, case, these.example, &these.others));
    if random {
        shown.push((&case.id, these));
    }
}

/// Returns the sent and received bytes, how often the exchange failed, and how to send it again.
fn exchange(
    record: &TortureRecord,
    case: &CaseRecord,
    one: &ExchangeRecord,
    others: &[&ExchangeRecord],
) -> [Block; 2] {
    let (sent, target) = (&one.sent.0, &record.target);
    let name = Words::from(words::safe(&one.name)).plain(": ").with(badge(one.outcome));
    let mut facts: Vec<(String, Words)> = Vec::new();
    let mut add = |label: &str, words: Words| facts.push((label.to_owned(), words));
    if !others.is_empty() {
        let text = format!("{}: {}", others.len(), names(others.iter().copied()));
        add("alike", text.into());
    }
    if !sent.is_empty() {
        let line = send::escape_bytes(sent, SENT_MAX);
        add("sent", Words(vec![Inline::Bytes { line, lines: send::lines(sent, SHOWN_MAX) }]));
    }
    add("received", words::safe(&one.seen).into());
    responses(&one.received.0).into_iter().for_each(|(label, words)| add(&label, words));
    let mut right = judge::description(&one.expected);
    if case.group() == GRPC {
        right = right.replace("a plain GET", "a valid call");
    }
    for (label, text) in [("right", &right), ("why", &one.why)] {
        if !text.is_empty() {
            add(label, words::safe(text).into());
        }
    }
    if one.tries > 1 {
        add("failed in", format!("{} of {} tries", one.failed, one.tries).into());
    }
    let command = |line: String| Words(vec![Inline::Command(line)]);
    if one.outcome.is_finding() {
        let several = SEVERAL.contains(&case.group());
        let in_frames = matches!(case.group(), GRPC | HTTP2);
        let line = send::shell_line(target, sent, &one.pauses, in_frames).filter(|_| !several);
        let line = line.unwrap_or_else(|| send::case_line(record, case));
        add("again", command(line));
    }
    if let Some(shrunk) = record.shrunk_of(&case.id, &one.name) {
        add("shrunk", words::shrunk(shrunk).into());
    }
    if let Some(folder) = record.kept_folder(&case.id, &one.name) {
        add("replay", command(format!("loadstone torture replay {}", send::word(folder))));
    }
    [with_lead("  ", Voice::Head, name), labelled(facts)]
}

/// Returns the first response, and in text the first line of each further one.
fn responses(received: &[u8]) -> Vec<(String, Words)> {
    let all = send::responses(received);
    let describe = |(row, response): (usize, &&[u8])| {
        let label = match all.len() {
            1 => String::new(),
            all => format!("{} of {all}", row + 1),
        };
        let brief = match row {
            0 => response,
            _ => response.split(|byte| b"\r\n".contains(byte)).next().unwrap_or_default(),
        };
        let line = send::escape_bytes(brief, RECEIVED_MAX);
        (label, Words(vec![Inline::Bytes { line, lines: send::lines(response, SHOWN_MAX) }]))
    };
    let mut shown: Vec<(String, Words)> = all
        .iter()
        .enumerate()
        .filter(|(_, one)| !one.is_empty())
        .take(RESPONSES_MAX)
        .map(describe)
        .collect();
    let more = all.len().saturating_sub(RESPONSES_MAX);
    if more > 0 {
        shown
            .push((String::new(), format!("and {} more", counted(more as u64, "response")).into()));
    }
    shown
}
