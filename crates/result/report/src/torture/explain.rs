//! Shows cases without sending them: the list of cases, one case in full, a dry run.

use super::words;
use crate::page;
use crate::section::{Block, Document, Forms, Voice, aligned, text_block, with_lead};
use crate::words::counted;
use dialogue::packets::PacketStep;
use torture::case::{Answers, Case, Exchange, Family, Need, PACKETS, Parameter, ScriptStep};
use torture::fuzz::FuzzPlace;
use torture::judge::severity;
use units::show;

/// Returns the list of cases, one line each.
pub fn list(cases: &[Case]) -> String {
    let line = |case: &Case| {
        let amount = match (&case.fuzz, &case.family) {
            (Some(fuzz), _) => format!(" ({})", counted(fuzz.count, "execution")),
            (None, Some(_)) if case.needs.contains(&Need::Soak) => " (with --soak)".to_owned(),
            (None, Some(_)) if case.press => " (with --press)".to_owned(),
            (None, Some(_)) => String::new(),
            (None, None) => format!(" ({})", counted(case.exchanges.len() as u64, "exchange")),
        };
        let lead = format!("{:<5} {:<8} ", case.id, case.level.id());
        with_lead(&lead, Voice::Plain, format!("{}{amount}", case.title))
    };
    let mut document = Document::default();
    document.add(Forms::TEXT, cases.iter().map(line));
    page::text::whole(&document)
}

/// Describes a case: what it sends, what it expects, and the reasons.
pub fn explain(case: &Case) -> String {
    let mut document = Document::default();
    document.add(Forms::TEXT, [text_block(Voice::Plain, format!("{} · {}", case.id, case.title))]);
    document.add(Forms::TEXT, [aligned(2, 9, case_facts(case))]);
    for exchange in &case.exchanges {
        let steps =
            exchange.steps.iter().map(|step| with_lead("    ", Voice::Plain, step_text(step)));
        document
            .add(Forms::TEXT, [Block::Gap, with_lead("  ", Voice::Plain, exchange.name.as_str())]);
        document.add(Forms::TEXT, steps);
        document.add(Forms::TEXT, [aligned(4, 7, right(exchange))]);
    }
    page::text::whole(&document)
}

/// Returns the table of severities: the first row that fits a failure rates it.
pub fn severities() -> String {
    let mut document = Document::default();
    let head = "Severity of a finding: what was sent, its effect, and why it matters. The first \
        row that fits applies; a row for anything fits every message. What a specification only \
        recommends or permits is at most ";
    let most = severity::RECOMMENDED_MAX.id();
    document.add(
        Forms::TEXT,
        [text_block(Voice::Plain, format!("{head}{most}, unless other clients are affected."))],
    );
    for (at, row) in severity::TABLE.iter().enumerate() {
        let first = at == 0 || severity::TABLE[at - 1].effect != row.effect;
        if first {
            document.add(Forms::TEXT, [Block::Gap, text_block(Voice::Plain, row.effect.text())]);
        }
        let lead = format!("  {:<8} ", row.rated.severity.id());
        let message = format!("{}: {}", row.sent.text(), row.rated.reason);
        document.add(Forms::TEXT, [with_lead(&lead, Voice::Plain, message)]);
    }
    page::text::whole(&document)
}

/// Returns the specification, the needs, and the parameters of a case.
fn case_facts(case: &Case) -> Vec<(String, String)> {
    let mut rows: Vec<(String, String)> = Vec::new();
    let mut add = |label: &str, value: String| rows.push((label.to_owned(), value));
    add("level", format!("{}, {}", case.level.id(), case.reference));
    if let Some(risk) = case.risk {
        add("risk", format!("{}: {}", risk.id(), risk.reason()));
    }
    add("why", case.why.clone());
    for (label, value) in [("servers", &case.servers), ("found", &case.found)] {
        if !value.is_empty() {
            add(label, value.clone());
        }
    }
    case.needs.iter().for_each(|need| add("needs", need.id().to_owned()));
    if case.answers != Answers::Server || case.group() == PACKETS {
        add("answers", case.answers.text().to_owned());
    }
    add("version", case.version.to_string());
    if let Some(fuzz) = &case.fuzz {
        let place = FuzzPlace::ALL.iter().find(|(_, place)| *place == fuzz.place);
        let place = place.map_or("", |(name, _)| name);
        add("random", format!("{place}: {}", counted(fuzz.count, "execution")));
        if fuzz.length > 0 {
            let most = show::count(fuzz.length - 1);
            add("length", format!("0 to {most} bytes, uniformly distributed"));
        }
    }
    for (name, parameter) in case.family.iter().flat_map(Family::parameters) {
        let value = match parameter {
            Parameter::Number(number) => format!("{number}"),
            Parameter::Span(span) => words::deadline(span.as_secs_f64()),
            Parameter::Text(text) => text,
        };
        // a long name keeps a space after it
        add(&format!("{name} "), value);
    }
    rows
}

/// Returns the possible outcomes.
fn right(exchange: &Exchange) -> Vec<(String, String)> {
    let mut rows: Vec<(String, String)> = Vec::new();
    let lists = [
        ("right", &exchange.accept),
        ("also", &exchange.also),
        ("advice", &exchange.advise),
        ("unclear", &exchange.unlearned),
    ];
    for (name, classes) in lists {
        if !classes.is_empty() {
            let classes: Vec<String> = classes.iter().map(ToString::to_string).collect();
            // a long name keeps a space after it
            rows.push((format!("{name} "), classes.join(" or ")));
        }
    }
    for need in &exchange.needs {
        rows.push(("needs".to_owned(), need.id().to_owned()));
    }
    if exchange.in_step {
        let text = "a valid request, if the connection stays open";
        rows.push(("then".to_owned(), text.to_owned()));
    }
    rows
}

fn packet_text(step: &PacketStep) -> String {
    match step {
        PacketStep::Expect { kinds, within } => {
            let kinds: Vec<&str> = kinds.iter().map(|kind| kind.id()).collect();
            format!("expect {} within {}", kinds.join(" or "), show::duration(*within))
        }
        other => other.to_string(),
    }
}

fn step_text(step: &ScriptStep) -> String {
    match step {
        ScriptStep::Send(text) => format!("send   {text}"),
        ScriptStep::Pause(span) => format!("pause  {}", show::duration(*span)),
        ScriptStep::Await(what) => format!("await  {what:?}").to_lowercase(),
        ScriptStep::Urgent => "one byte of urgent data".to_owned(),
        ScriptStep::HalfClose => "half-close".to_owned(),
        ScriptStep::Reset => "reset".to_owned(),
        ScriptStep::Close => "close".to_owned(),
        ScriptStep::StopReading => "stop reading".to_owned(),
        ScriptStep::Read => "read again".to_owned(),
        ScriptStep::Packet(step) => packet_text(step),
    }
}
