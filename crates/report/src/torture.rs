//! What came of a torture: one line a group, then the findings with the bytes to send again, then
//! what the server does by habit; JSON (`loadstone.torture/1`) and JUnit's XML.

mod json;
mod junit;
mod send;

pub use json::json;
pub use junit::junit;

use crate::Style;
use crate::text::ascii;
use crate::text::layout::Page;
use crate::words::counted;
use std::net::IpAddr;
use torture::case::{Case, Step};
use torture::fuzz::Place;
use torture::judge::Outcome;
use torture::safety::Class;
use torture::session::{CaseResult, ExchangeResult, RunResult, Target};
use units::show;

/// A torture that is over.
#[derive(Clone, Debug)]
pub struct Report {
    /// The URL as typed.
    pub target: String,
    /// Where its name leads; the first is the one that was tested.
    pub addresses: Vec<IpAddr>,
    pub class: Class,
    /// In seconds since 1970-01-01 UTC.
    pub started_unix_s: f64,
    pub result: RunResult,
}

/// Bytes of an exchange that are shown.
const SHOWN_MAX: usize = 400;

/// The report as text, with a line feed at its end.
pub fn text(report: &Report, style: Style) -> String {
    let mut page = Page::default();
    let result = &report.result;
    page.wrapped("", &format!("Torture of {} ({})", report.target, report.class.id()));
    page.blank();
    page.wrapped("", &summary(result));
    if let Some(why) = &result.ended_early {
        page.wrapped("", &format!("It ended early: {why}."));
    }
    if let Some(seen) = &result.post_trouble {
        page.wrapped("", &format!("The page named by --post took no body: {seen}."));
    }
    groups(&mut page, result);
    let found = |case: &&CaseResult| case.outcome >= Outcome::Advisory;
    for case in result.cases.iter().filter(found) {
        finding(&mut page, report, case);
    }
    if !style.quiet {
        tallies(&mut page, result);
        skipped(&mut page, result);
        habits(&mut page, result);
        page.blank();
        page.wrapped("", NOT_RULED_OUT);
    }
    let text = page.finish();
    if style.unicode { text } else { ascii(&text) }
}

const NOT_RULED_OUT: &str = "Not ruled out: a machine between us and the server that answered in its \
place; a limit on rate that was aimed at us; another answer at another time, as this was one run.";

/// One sentence on the whole.
fn summary(result: &RunResult) -> String {
    let count = |outcome: Outcome| {
        result.cases.iter().filter(|case| case.outcome == outcome).count() as u64
    };
    let passed = count(Outcome::Pass) + count(Outcome::Held) + count(Outcome::Alternative);
    let mut parts = vec![format!("{} passed", show::count(passed))];
    let others = [
        (Outcome::Crashed, "crashed"),
        (Outcome::Leak, "leaked"),
        (Outcome::Denied, "denied service"),
        (Outcome::Fail, "failed"),
        (Outcome::Unbounded, "unbounded"),
        (Outcome::Degraded, "degraded"),
        (Outcome::Flaky, "came and went"),
        (Outcome::Shed, "shed"),
        (Outcome::Advisory, "advisory"),
        (Outcome::Inconclusive, "inconclusive"),
        (Outcome::Unseen, "unseen"),
        (Outcome::Skipped, "skipped"),
    ];
    for (outcome, word) in others {
        if count(outcome) > 0 {
            parts.push(format!("{} {word}", show::count(count(outcome))));
        }
    }
    let cases = counted(result.cases.len() as u64, "case");
    let cut = if result.interrupted { "; interrupted before its end" } else { "" };
    format!("{cases}: {}, in {}{cut}.", parts.join(", "), show::duration(result.took))
}

/// One line a group, the worst first.
fn groups(page: &mut Page, result: &RunResult) {
    let mut letters: Vec<char> = result.cases.iter().map(|case| case.case.group()).collect();
    letters.dedup();
    let worst = |letter: char| {
        let own = result.cases.iter().filter(move |case| case.case.group() == letter);
        own.map(|case| case.outcome).max().unwrap_or_default()
    };
    letters.sort_by_key(|letter| std::cmp::Reverse(worst(*letter)));
    if !letters.is_empty() {
        page.blank();
    }
    for letter in letters {
        let own: Vec<&CaseResult> =
            result.cases.iter().filter(|case| case.case.group() == letter).collect();
        let bad = |case: &&&CaseResult| case.outcome.is_finding();
        let ids: Vec<&str> = own.iter().filter(bad).map(|case| case.case.id.as_str()).collect();
        let list = if ids.is_empty() { "nothing failed".to_owned() } else { ids.join(", ") };
        let name = group_name(letter);
        page.wrapped(&format!("  {letter}  {name:<24}"), &list);
    }
}

fn group_name(letter: char) -> &'static str {
    match letter {
        'F' => "random data",
        'S' => "syntax and conformance",
        'L' => "limits",
        'W' => "slow clients",
        'C' => "connections",
        'T' => "TLS",
        'R' => "overload and recovery",
        _ => "other",
    }
}

fn finding(page: &mut Page, report: &Report, case: &CaseResult) {
    let found = &case.case;
    page.blank();
    let head = format!("{} {} ", found.id, case.outcome.id());
    page.wrapped(&head, &format!("{} ({}, {})", found.title, found.level.id(), found.reference));
    if let Some(recovery) = case.recovery {
        let said = match recovery {
            Some(span) => format!("plain requests were right again after {}", show::duration(span)),
            None => "plain requests were not answered as before any more".to_owned(),
        };
        page.wrapped("    afterwards  ", &said);
    }
    let bad = |exchange: &&ExchangeResult| exchange.judgement.outcome >= Outcome::Advisory;
    for exchange in case.exchanges.iter().filter(bad) {
        let judgement = &exchange.judgement;
        page.wrapped("  ", &format!("{}: {}", exchange.name, judgement.outcome.id()));
        page.wrapped("    sent      ", &send::shown(&exchange.sent, SHOWN_MAX));
        page.wrapped("    came back ", &judgement.seen);
        page.wrapped("    expected  ", &judgement.expected);
        if !judgement.why.is_empty() {
            page.wrapped("    why       ", &judgement.why);
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
    }
}

fn skipped(page: &mut Page, result: &RunResult) {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for case in &result.cases {
        let Some(why) = &case.skipped else { continue };
        match reasons.iter_mut().find(|(known, _)| known == why) {
            Some((_, ids)) => ids.push(&case.case.id),
            None => reasons.push((why, vec![&case.case.id])),
        }
    }
    if !reasons.is_empty() {
        page.blank();
    }
    for (why, ids) in reasons {
        page.wrapped("skipped       ", &format!("{why}: {}", ids.join(", ")));
    }
}

/// torture.pl's whole report: what random data got, by status.
fn tallies(page: &mut Page, result: &RunResult) {
    let tallied = |case: &&CaseResult| !case.tally.is_empty();
    for (row, case) in result.cases.iter().filter(tallied).enumerate() {
        if row == 0 {
            page.blank();
            page.line("What random data got");
        }
        let each = |(what, count): (&String, &u64)| format!("{what} × {}", show::count(*count));
        let list: Vec<String> = case.tally.iter().map(each).collect();
        page.wrapped(&format!("  {} {:<46} ", case.case.id, case.case.title), &list.join(", "));
    }
}

fn habits(page: &mut Page, result: &RunResult) {
    if result.habits.seen.is_empty() {
        return;
    }
    page.blank();
    page.line("Habits of this server");
    for (name, seen) in &result.habits.seen {
        page.wrapped(&format!("  {name:<30}"), seen);
    }
}

/// The list of cases, a line each.
pub fn list(cases: &[Case]) -> String {
    let mut page = Page::default();
    for case in cases {
        let count = match (&case.fuzz, &case.family) {
            (Some(fuzz), _) => counted(fuzz.count, "execution"),
            (None, Some(_)) if case.press => "with --press".to_owned(),
            (None, Some(family)) => family.run.clone(),
            (None, None) => counted(case.exchanges.len() as u64, "exchange"),
        };
        let head = format!("{:<5} {:<8} ", case.id, case.level.id());
        page.wrapped(&head, &format!("{} ({count})", case.title));
    }
    page.finish()
}

/// What a case sends and expects, and why.
pub fn explain(case: &Case) -> String {
    let mut page = Page::default();
    page.wrapped("", &format!("{} · {}", case.id, case.title));
    page.wrapped("  level    ", &format!("{}, {}", case.level.id(), case.reference));
    page.wrapped("  why      ", &case.why);
    if !case.servers.is_empty() {
        page.wrapped("  servers  ", &case.servers);
    }
    for need in &case.needs {
        page.wrapped("  needs    ", need.id());
    }
    page.wrapped("  version  ", &case.version.to_string());
    if let Some(fuzz) = &case.fuzz {
        let place = Place::ALL.iter().find(|(_, place)| *place == fuzz.place);
        let place = place.map_or("", |(name, _)| name);
        let count = counted(fuzz.count, "execution");
        page.wrapped("  random   ", &format!("{place}: {count}"));
        if fuzz.length > 0 {
            let most = show::count(fuzz.length - 1);
            page.wrapped("  length   ", &format!("0 to {most} bytes, each length as likely"));
        }
    }
    for exchange in &case.exchanges {
        page.blank();
        page.wrapped("  ", &exchange.name);
        exchange.steps.iter().for_each(|step| page.wrapped("    ", &step_text(step)));
        let lists =
            [("right", &exchange.accept), ("also", &exchange.also), ("advice", &exchange.advise)];
        for (name, classes) in lists {
            if !classes.is_empty() {
                let classes: Vec<String> = classes.iter().map(ToString::to_string).collect();
                page.wrapped(&format!("    {name:<7}"), &classes.join(" or "));
            }
        }
        if exchange.in_step {
            page.wrapped("    then   ", "a valid request, if the connection stands");
        }
    }
    page.finish()
}

fn step_text(step: &Step) -> String {
    match step {
        Step::Send(text) => format!("send   {text}"),
        Step::Pause(span) => format!("pause  {}", show::duration(*span)),
        Step::Await(what) => format!("await  {what:?}").to_lowercase(),
        Step::HalfClose => "end our side".to_owned(),
        Step::Reset => "reset".to_owned(),
        Step::Close => "close".to_owned(),
        Step::StopReading => "stop reading".to_owned(),
        Step::Read => "read again".to_owned(),
    }
}

/// What would be sent, and where.
pub fn dry_run(report: &Report, target: &Target, cases: &[Case]) -> String {
    let mut page = Page::default();
    let addresses: Vec<String> = report.addresses.iter().map(IpAddr::to_string).collect();
    let fuzzed = |case: &Case| case.fuzz.as_ref().map_or(0, |fuzz| fuzz.count as usize);
    let exchanges: usize = cases.iter().map(|case| case.exchanges.len() + fuzzed(case)).sum();
    page.wrapped("", &format!("{} would be tested; nothing is sent.", report.target));
    page.wrapped("  addresses    ", &addresses.join(" "));
    page.wrapped("  class        ", report.class.id());
    page.wrapped("  cases        ", &cases.len().to_string());
    let most = exchanges as u64 * u64::from(torture::session::TRIES);
    let requests = format!(
        "{} exchanges, at most {} with repeats, one connection at a time",
        show::count(exchanges as u64),
        show::count(most)
    );
    page.wrapped("  requests     ", &requests);
    page.wrapped("  plain page   ", &format!("GET {}", target.values.path));
    let bodies = if target.takes_bodies { target.values.post.as_str() } else { "none: skipped" };
    page.wrapped("  bodies go to ", bodies);
    page.blank();
    page.finish() + &list(cases)
}
