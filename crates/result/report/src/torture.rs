//! The report of a torture run: one line per group, then the findings with the bytes to send again,
//! then numbers, limits and habits; as text, as a page, as Markdown, as JSON
//! (`loadstone.torture/1`) and as JUnit XML.

mod again;
mod beside;
mod case_file;
mod chain;
pub mod diff;
mod dry_run;
mod emit;
mod explain;
mod findings;
mod junit;
mod limits;
mod pressure;
mod probes;
mod run_file;
mod send;
mod server;
mod words;

pub use again::{rejudged_text, replay_text, shrunk_text};
pub use case_file::case_file;
pub use chain::chain_text;
pub use dry_run::{DryRun, dry_run};
pub use emit::{ProbeForm, capture, emit};
pub use explain::{explain, list, severities};
pub use junit::junit;
pub use probes::{PROBES_HEAD, probe_line, probes_csv};
pub use run_file::{CaseOutcome, RunEnd, execution_line, failure_text, run_file};

pub use crate::words::timestamp;
pub use record::torture::{Beside, Report, found};

use crate::Style;
use crate::page;
use crate::section::{
    Block, CellLook, Column, DataTable, Document, Forms, Inline, Mood, Notice, TableCell, Title,
    Voice, Words, aligned, facts, heading, placed, text_block, title, with_lead,
};
use crate::words::{counted, printable, seconds};
use record::torture::{CaseRecord, TortureRecord};
use torture::judge::{Severity, TestOutcome};
use units::show;

/// Maximum length of foreign text in a Markdown line.
const LINE_MAX: usize = 400;

/// Returns the record as indented JSON, with a final line feed.
pub fn json(torture: &TortureRecord) -> String {
    record::document::printed(torture)
}

/// Returns the record as text, with a final line feed.
pub fn text(record: &TortureRecord, style: Style) -> String {
    let result = [text_block(Voice::Plain, words::summary(record))];
    page::text::text_with_result(&document(record, style.form()), result, style)
}

/// Returns the page.
pub fn html(record: &TortureRecord) -> String {
    page::html::page(&document(record, Forms::PAGE))
}

/// Returns the record for a pull request: one sentence, the findings, the limits.
pub fn markdown(record: &TortureRecord) -> String {
    page::markdown::markdown(&document(record, Forms::MARKDOWN))
}

/// Returns the parts for `read`, and cheap parts of the other forms.
fn document(record: &TortureRecord, read: Forms) -> Document {
    let target = printable(&record.target, 200);
    let mut page = Document::new(match record.findings {
        0 => format!("Torture of {target}"),
        found => format!("{}: torture of {target}", counted(found, "finding")),
    });
    head(&mut page, record);
    groups(&mut page, record);
    places(&mut page, record);
    findings::findings(&mut page, record, read);
    waivers(&mut page, record);
    beside::load(&mut page, record);
    pressure::pressure(&mut page, record);
    server::server(&mut page, record);
    limits::limits(&mut page, record);
    limits::costs(&mut page, record);
    tallies(&mut page, record);
    habits(&mut page, record);
    untested(&mut page, record);
    cases(&mut page, record);
    let doubts = words::not_ruled_out(record).into_iter().map(Words::from).collect();
    page.add(Forms::LONG | Forms::PAGE, [heading("Not ruled out"), Block::List(doubts)]);
    details(&mut page, record);
    let foot = record.environment.as_ref();
    let foot = foot.map(|machine| crate::words::measured(record.started_unix_s, machine));
    page.add(Forms::PAGE, foot.map(Block::Foot));
    page
}

/// Adds the tested cases, and the result in a sentence.
fn head(document: &mut Document, record: &TortureRecord) {
    let (class, summary) = (record.class.id(), words::summary(record));
    let named = format!("Torture of {} ({class})", words::safe(&record.target));
    document.add(Forms::TEXT, [text_block(Voice::Plain, named), Block::Gap]);
    let mark = match (record.findings, record.is_tested() && !record.is_cut()) {
        (1.., _) => "❌",
        (0, true) => "✅",
        (0, false) => "⚠️",
    };
    document.add(Forms::MARKDOWN, [title(format!("{mark} {summary}"))]);
    let done = format!("{class} · {} · {}", record.started, seconds(record.elapsed_s));
    let name = printable(&record.target, 400);
    let head = Title { kicker: "Torture of a web server", name, lines: vec![done.into()] };
    document.add(Forms::PAGE, [Block::Title(head), verdict(record)]);
    document.add(Forms::TEXT | Forms::PAGE, [text_block(Voice::Answer, summary)]);
    let (version, seed) = (&record.version, record.seed);
    let which = format!(
        "{} ({class}), {}, loadstone {version}, seed {seed}",
        record.target, record.started
    );
    let mut list = vec![Words::from(printable(&words::safe(&which), LINE_MAX))];
    for remark in remarks(record) {
        document.add(Forms::TEXT, [text_block(Voice::Plain, remark.as_str())]);
        list.push(remark.into());
    }
    document.add(Forms::MARKDOWN, [Block::List(list)]);
}

/// Returns the reasons why cases did not run, one sentence each.
fn remarks(record: &TortureRecord) -> impl Iterator<Item = String> {
    let early = record.ended_early.as_ref().map(|why| format!("It ended early: {why}."));
    let no_post =
        |seen: &String| format!("The page named by --post did not accept a body: {seen}.");
    let cut = early.into_iter().chain(record.incomplete());
    let all = cut.chain(record.post_trouble.as_ref().map(no_post));
    all.map(|reported| words::safe(&reported))
}

/// Returns the verdict, with each finding named.
fn verdict(record: &TortureRecord) -> Block {
    let found = record.counted_findings();
    let (mood, word, meaning) = match (found.len(), record.is_cut(), !record.is_tested()) {
        (0, _, true) => {
            (Mood::Doubtful, "NOTHING TESTED".to_owned(), "Nothing is known about this server.")
        }
        (0, true, _) => (Mood::Doubtful, "CUT SHORT".to_owned(), "The tested cases found nothing."),
        (0, false, _) => {
            (Mood::Good, "NO FINDING".to_owned(), "The server passed all tested cases.")
        }
        (1, ..) => (Mood::Bad, "1 FINDING".to_owned(), "The worst first:"),
        (n, ..) => (Mood::Bad, format!("{n} FINDINGS"), "The worst first:"),
    };
    let mut items: Vec<Words> = remarks(record).map(Words::from).collect();
    items.extend(found.into_iter().map(|case| named(link(case), case)));
    Block::Notice(Notice { mood, word, meaning, items, ..Notice::default() })
}

/// Returns the link to a finding or an advisory.
fn link(case: &CaseRecord) -> Inline {
    Inline::Link(case.id.clone(), case.id.clone())
}

/// Returns a case after its id, with its outcome and severity.
fn named(id: Inline, case: &CaseRecord) -> Words {
    let mut words = Words(vec![id]).plain(" ").with(badge(case.outcome));
    if let Some(severity) = case.severity {
        let mood = match severity {
            Severity::Critical | Severity::High => Mood::Bad,
            Severity::Medium => Mood::Doubtful,
            Severity::Low => Mood::Unknown,
        };
        words = words.plain(" ").with(Inline::Badge(mood, severity.id().to_owned()));
    }
    words.plain(format!(" {}", case.title))
}

/// Returns an outcome in the color of its severity; its word has the same meaning.
fn badge(outcome: TestOutcome) -> Inline {
    let mood = match outcome {
        bad if bad.is_finding() => Mood::Bad,
        well if well.is_favorable() => Mood::Good,
        TestOutcome::Advisory | TestOutcome::Shed => Mood::Doubtful,
        _ => Mood::Unknown,
    };
    Inline::Badge(mood, outcome.id().to_owned())
}

/// Adds one line per group, worst first.
fn groups(document: &mut Document, record: &TortureRecord) {
    let rows: Vec<Vec<TableCell>> = words::groups(record)
        .iter()
        .map(|group| {
            let worst = Words(vec![badge(group.worst())]);
            let name = words::group_name(group.letter);
            vec![group.letter.to_string().into(), name.into(), worst.into(), group.line().into()]
        })
        .collect();
    if rows.is_empty() {
        return;
    }
    let columns = [
        Column::text("Group"),
        Column::text("").at_least(22),
        Column::text("Worst").only(Forms::PAGE),
        Column::text("Cases"),
    ];
    document.add(Forms::TEXT, [Block::Gap]);
    let table = DataTable::new(columns).listed().with(rows);
    document.add(Forms::TEXT | Forms::PAGE, [Block::Table(table)]);
}

/// Adds links to the existing sections, because a page with many findings is long.
fn places(document: &mut Document, record: &TortureRecord) {
    let parts = [
        ("findings", "Findings", record.cases.iter().any(CaseRecord::is_notable)),
        ("felt", "Well-behaved clients", !record.probe_series.is_empty()),
        ("server", "The server", record.server.is_some()),
        ("limits", "Limits and deadlines", !record.limits.is_empty()),
        ("habits", "Habits", !record.habits.is_empty()),
        ("cases", "All cases", !record.cases.is_empty()),
    ];
    let there = parts.into_iter().filter(|(.., there)| *there);
    document.add(
        Forms::PAGE,
        [Block::Places(there.map(|(id, name, _)| (id, name.to_owned())).collect())],
    );
}

/// Adds expiry and reason of each waived finding; text has only those that need attention.
fn waivers(document: &mut Document, record: &TortureRecord) {
    let describe = |what: String, word: Option<&str>| -> Words {
        let word = word.map_or(String::new(), |word| format!(" ({word})"));
        words::safe(&format!("{what}{word}")).into()
    };
    let urgent = record.waivers.iter().filter(|one| one.word().is_some());
    let urgent: Vec<Block> =
        urgent.map(|one| with_lead("  ", Voice::Plain, describe(one.what(), one.word()))).collect();
    if !urgent.is_empty() {
        document.add(Forms::TEXT, [heading("Waivers that need attention")]);
        document.add(Forms::TEXT, urgent);
    }
    let all: Vec<Words> =
        record.waivers.iter().map(|one| describe(one.what(), one.word())).collect();
    if !all.is_empty() {
        document.add(Forms::PAGE, [heading("Waivers"), Block::List(all)]);
    }
}

/// Adds torture.pl's whole report: responses to random data, by status.
fn tallies(document: &mut Document, record: &TortureRecord) {
    let row = |case: &CaseRecord| {
        let each = |(what, count): (&String, &u64)| {
            format!("{} × {}", words::safe(what), show::count(*count))
        };
        let list: Vec<String> = case.tally.iter().map(each).collect();
        vec![case.id.clone(), case.title.clone(), list.join(", ")]
    };
    let tallied = record.cases.iter().filter(|case| !case.tally.is_empty());
    let rows: Vec<Vec<String>> = tallied.map(row).collect();
    if !rows.is_empty() {
        let columns =
            [Column::word("Case"), Column::text("").at_least(45), Column::text("Responses")];
        let table = Block::Table(DataTable::new(columns).listed().with(rows));
        document.add(Forms::LONG | Forms::PAGE, [heading("Responses to random data"), table]);
    }
}

fn habits(document: &mut Document, record: &TortureRecord) {
    if !record.habits.is_empty() {
        let rows = record.habits.iter();
        let rows = rows.map(|habit| (words::safe(&habit.name), words::safe(&habit.seen)));
        let list = aligned(2, 30, rows);
        document.add(Forms::LONG | Forms::PAGE, [placed("habits", "Habits of this server"), list]);
    }
}

/// Adds skipped and inconclusive cases with their reasons; cases with the same reason are combined.
fn untested(document: &mut Document, record: &TortureRecord) {
    let mut reasons: Vec<(String, Vec<&str>)> = Vec::new();
    for case in &record.cases {
        let Some(why) = words::untested(case) else { continue };
        match reasons.iter_mut().find(|(known, _)| *known == why) {
            Some((_, ids)) => ids.push(&case.id),
            None => reasons.push((why, vec![&case.id])),
        }
    }
    if !reasons.is_empty() {
        document.add(Forms::LONG, [heading("Not tested")]);
    }
    let line = |(why, ids): (String, Vec<&str>)| {
        with_lead("  ", Voice::Plain, format!("{}: {why}", ids.join(" ")))
    };
    document.add(Forms::LONG, reasons.into_iter().map(line));
}

fn cases(document: &mut Document, record: &TortureRecord) {
    if record.cases.is_empty() {
        return;
    }
    let columns = [
        Column::from("Case"),
        Column::text("Title"),
        Column::word("Outcome"),
        Column::word("Level"),
        Column::from("Duration"),
        Column::text("Rests on"),
    ];
    let rows = record.cases.iter().map(case_row);
    let table = DataTable::new(columns).sortable().chosen_by(2).with(rows);
    document.add(Forms::PAGE, [placed("cases", "All cases"), Block::Table(table)]);
}

fn case_row(case: &CaseRecord) -> Vec<TableCell> {
    let shown = case.is_notable() && case.same_as.is_none();
    let id = if shown { link(case) } else { Inline::Plain(case.id.clone()) };
    let mut about = Words::from(case.title.as_str());
    about.0.extend(words::untested(case).map(Inline::Below));
    about.0.extend(case.waived.is_some().then(|| Inline::Below("waived".to_owned())));
    let same = |root: &String| Inline::Below(format!("the fault of {root}"));
    about.0.extend(case.same_as.as_ref().map(same));
    let elapsed = case.elapsed();
    vec![
        Words(vec![id]).into(),
        about.into(),
        Words(vec![badge(case.outcome)]).into(),
        case.level.id().into(),
        TableCell::by(elapsed.0 as f64, show::duration(elapsed)),
        TableCell::new(CellLook::Soft, case.reference.as_str()),
    ]
}

fn details(document: &mut Document, record: &TortureRecord) {
    let plain = record.plain;
    let mut rows = vec![
        ("Addresses", record.addresses.join(", ")),
        ("Class", record.class.id().to_owned()),
        ("Seed", record.seed.to_string()),
    ];
    if plain.status > 0 {
        rows.push(("Probed page", format!("{}, {}", plain.status, show::bytes(plain.body_bytes))));
    }
    for (label, probes) in [("New probes", record.probes.new), ("Kept probes", record.probes.keep)]
    {
        if probes.sum() > 0 {
            let [correct, shed, lost] = [probes.correct, probes.shed, probes.lost].map(show::count);
            rows.push((label, format!("{correct} correct, {shed} shed, {lost} lost")));
        }
    }
    document.add(Forms::PAGE, [heading("Details"), facts(rows)]);
}
