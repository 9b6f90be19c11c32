//! What could be sent, without sending it: the list of cases, one case in full, a dry run.

use super::words;
use crate::page::text::layout::Page;
use crate::words::counted;
use dialogue::packets::PacketStep;
use torture::case::{Answers, Case, Family, Need, PACKETS, Parameter, ScriptStep};
use torture::fuzz::FuzzPlace;
use units::show;

/// The list of cases, a line each.
pub fn list(cases: &[Case]) -> String {
    let mut page = Page::default();
    for case in cases {
        let amount = match (&case.fuzz, &case.family) {
            (Some(fuzz), _) => format!(" ({})", counted(fuzz.count, "execution")),
            (None, Some(_)) if case.needs.contains(&Need::Soak) => " (with --soak)".to_owned(),
            (None, Some(_)) if case.press => " (with --press)".to_owned(),
            (None, Some(_)) => String::new(),
            (None, None) => format!(" ({})", counted(case.exchanges.len() as u64, "exchange")),
        };
        let head = format!("{:<5} {:<8} ", case.id, case.level.id());
        page.wrapped(&head, &format!("{}{amount}", case.title));
    }
    page.finish()
}

/// What a case sends and expects, and why.
pub fn explain(case: &Case) -> String {
    let mut page = Page::default();
    page.wrapped("", &format!("{} · {}", case.id, case.title));
    page.wrapped("  level    ", &format!("{}, {}", case.level.id(), case.reference));
    if let Some(risk) = case.risk {
        page.wrapped("  risk     ", &format!("{}: {}", risk.id(), risk.reason()));
    }
    page.wrapped("  why      ", &case.why);
    if !case.servers.is_empty() {
        page.wrapped("  servers  ", &case.servers);
    }
    if !case.found.is_empty() {
        page.wrapped("  found    ", &case.found);
    }
    for need in &case.needs {
        page.wrapped("  needs    ", need.id());
    }
    if case.answers != Answers::Server || case.group() == PACKETS {
        page.wrapped("  answers  ", case.answers.text());
    }
    page.wrapped("  version  ", &case.version.to_string());
    if let Some(fuzz) = &case.fuzz {
        let place = FuzzPlace::ALL.iter().find(|(_, place)| *place == fuzz.place);
        let place = place.map_or("", |(name, _)| name);
        let count = counted(fuzz.count, "execution");
        page.wrapped("  random   ", &format!("{place}: {count}"));
        if fuzz.length > 0 {
            let most = show::count(fuzz.length - 1);
            page.wrapped("  length   ", &format!("0 to {most} bytes, each length as likely"));
        }
    }
    for (name, parameter) in case.family.iter().flat_map(Family::parameters) {
        let value = match parameter {
            Parameter::Number(number) => format!("{number}"),
            Parameter::Span(span) => words::deadline(span.as_secs_f64()),
            Parameter::Text(text) => text,
        };
        page.wrapped(&format!("  {name:<8} "), &value);
    }
    for exchange in &case.exchanges {
        page.blank();
        page.wrapped("  ", &exchange.name);
        exchange.steps.iter().for_each(|step| page.wrapped("    ", &step_text(step)));
        let lists = [
            ("right", &exchange.accept),
            ("also", &exchange.also),
            ("advice", &exchange.advise),
            ("unclear", &exchange.unlearned),
        ];
        for (name, classes) in lists {
            if !classes.is_empty() {
                let classes: Vec<String> = classes.iter().map(ToString::to_string).collect();
                page.wrapped(&format!("    {name:<7}"), &classes.join(" or "));
            }
        }
        if exchange.in_step {
            page.wrapped("    then   ", "a valid request, if the connection stays open");
        }
    }
    page.finish()
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
        ScriptStep::HalfClose => "end our side".to_owned(),
        ScriptStep::Reset => "reset".to_owned(),
        ScriptStep::Close => "close".to_owned(),
        ScriptStep::StopReading => "stop reading".to_owned(),
        ScriptStep::Read => "read again".to_owned(),
        ScriptStep::Packet(step) => packet_text(step),
    }
}
