//! Compares two recordings (HAR) of the same visit: values that differ between them are not
//! constants. A value that occurs in an earlier response becomes a capture; any other value is
//! generated.

mod find;
mod recording;

use crate::draft::*;
use crate::place::tidy;
use crate::text::{DraftPart, Maker, Text};
use crate::{ImportError, Imported, write};
use find::{FoundValue, find};
use recording::{RecordedExchange, Slot, exchanges};
use url::Url;

/// Maximum number of differing values in a visit.
const DIFFERENCES_MAX: usize = 2_000;
/// Minimum length of a token that is searched for in responses.
const TOKEN_MIN: usize = 8;

/// Plan with its changes.
#[derive(Clone, Debug)]
pub struct Correlation {
    pub imported: Imported,
    /// Diff lines: the recorded text, and its replacement in the plan.
    pub diff: Vec<String>,
}

/// Makes a journey from one recording: its requests in order, with their pauses. A single recording
/// does not show which values change.
///
/// # Errors
/// Fails if the text is not a HAR, or has no request.
pub fn import_visit(recording: &str) -> Result<Imported, ImportError> {
    let exchanges = exchanges(recording).map_err(ImportError)?;
    let pairs: Vec<(usize, usize)> = (0..exchanges.len()).map(|row| (row, row)).collect();
    if pairs.is_empty() {
        return Err(ImportError("it has no request".to_owned()));
    }
    let head = "Imported from a recording of one visit (HAR). A second recording shows which values \
                change: workload import FIRST --second SECOND.";
    Ok(visit((&exchanges, &exchanges), &pairs, head, None, true)?.imported)
}

/// Makes a plan from a visit that was recorded twice.
///
/// # Errors
/// Fails if a text is not a HAR, or the recordings have no request in common.
pub fn correlate(
    first: &str,
    second: &str,
    base: Option<&Url>,
) -> Result<Correlation, ImportError> {
    let named = |which: &str| {
        let which = which.to_owned();
        move |why: String| ImportError(format!("the {which} recording: {why}"))
    };
    let first = exchanges(first).map_err(named("first"))?;
    let second = exchanges(second).map_err(named("second"))?;
    let pairs = aligned(&first, &second);
    if pairs.is_empty() {
        return Err(ImportError(
            "the recordings have no request in common; record the same visit twice".to_owned(),
        ));
    }
    let head = "Imported from two recordings of the same visit (HAR).";
    visit((&first, &second), &pairs, head, base, false)
}

/// Returns the journey of the exchanges that both recordings have. `keeps_logins`: credentials that
/// no response contains are sent as recorded.
fn visit(
    (first, second): (&[RecordedExchange], &[RecordedExchange]),
    pairs: &[(usize, usize)],
    head: &str,
    base: Option<&Url>,
    keeps_logins: bool,
) -> Result<Correlation, ImportError> {
    let mut correlator = Correlator {
        keeps_logins,
        first,
        second,
        pairs,
        draft: PlanDraft::default(),
        diff: Vec::new(),
        known: Vec::new(),
    };
    let steps = correlator.steps();
    correlator.list_cookies();
    let Correlator { mut draft, diff, .. } = correlator;
    let missing = first.len() - pairs.len();
    if missing > 0 {
        draft.notes.push(format!("{missing} requests of the first recording have no counterpart in the second and are left out."));
    }
    let parts = steps.into_iter().map(|step| DraftPiece::Step(Box::new(step))).collect();
    draft.journeys.push(DraftJourney {
        name: "visit".to_owned(),
        parts,
        ..DraftJourney::default()
    });
    let written = write::write(draft, head, base).map_err(ImportError)?;
    let write::ImportCounts { journeys, steps, captures, checks } = written.counts;
    let imported = Imported {
        toml: written.toml,
        left_out: written.left_out,
        journeys,
        steps,
        captures,
        checks,
    };
    Ok(Correlation { imported, diff })
}

/// Pairs equal requests of both recordings: each with the next one of the same method and path
/// shape.
fn aligned(first: &[RecordedExchange], second: &[RecordedExchange]) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    let mut from = 0;
    for (row, exchange) in first.iter().enumerate() {
        let found = second[from..].iter().position(|other| other.shape() == exchange.shape());
        if let Some(found) = found {
            pairs.push((row, from + found));
            from += found + 1;
        }
    }
    pairs
}

struct Correlator<'a> {
    keeps_logins: bool,
    first: &'a [RecordedExchange],
    second: &'a [RecordedExchange],
    pairs: &'a [(usize, usize)],
    draft: PlanDraft,
    diff: Vec<String>,
    /// Values of both recordings, with the name that replaces them.
    known: Vec<(String, String, Text)>,
}

impl Correlator<'_> {
    fn steps(&mut self) -> Vec<DraftStep> {
        let mut steps: Vec<DraftStep> = Vec::new();
        for (number, (row, other)) in self.pairs.iter().enumerate() {
            let (one, two) = (&self.first[*row], &self.second[*other]);
            let mut step = DraftStep {
                name: format!("{} {}", one.method, one.path()),
                line: one.line,
                comments: vec![format!("line {}", one.line)],
                method: one.method.clone(),
                ..DraftStep::default()
            };
            let next = self.pairs.get(number + 1).map(|(next, _)| &self.first[*next]);
            let pause = next
                .and_then(|next| next.at.checked_sub(one.end()))
                .filter(|pause| *pause >= 1_000_000);
            step.think =
                pause.map(|pause| write::span(units::Nanos(pause / 1_000_000 * 1_000_000)));
            self.request(number, one, two, &mut step, &mut steps);
            steps.push(step);
        }
        steps
    }

    /// Builds the request of a step, with names in place of differing values.
    fn request(
        &mut self,
        number: usize,
        one: &RecordedExchange,
        two: &RecordedExchange,
        step: &mut DraftStep,
        earlier: &mut [DraftStep],
    ) {
        let others = two.slots();
        let mut replaced: Vec<(Slot, Text)> = Vec::new();
        for slot in one.slots() {
            let Some(other) = others.iter().find(|other| other.place == slot.place) else {
                continue;
            };
            if other.value != slot.value && self.diff.len() < 2 * DIFFERENCES_MAX {
                let text = self.differing(number, &slot, other, step, earlier);
                if let Some(text) = text {
                    replaced.push((slot, text));
                }
            } else if other.value == slot.value && slot.is_login() {
                match self.login(number, &slot, step, earlier) {
                    Some(text) => replaced.push((slot, text)),
                    None if self.keeps_logins => {}
                    None => {
                        let what = format!("{} of {}", slot.place, step.name);
                        let why =
                            "no response contains these credentials; add the header to the plan";
                        self.draft.left_out.add(step.line, what, why);
                    }
                }
            }
        }
        one.write(&replaced, self.keeps_logins, step);
        step.url = tidy(std::mem::take(&mut step.url));
    }

    /// Returns the replacement for credentials that are the same in both recordings, if an earlier
    /// response contains them.
    fn login(
        &mut self,
        number: usize,
        slot: &Slot,
        step: &DraftStep,
        earlier: &mut [DraftStep],
    ) -> Option<Text> {
        let start = slot.value.rfind(' ').map_or(0, |at| at + 1);
        let token = slot.value[start..].to_owned();
        if token.len() < TOKEN_MIN {
            return None;
        }
        let captured = self.captured(number, &(token.clone(), token), slot, (step, earlier))?;
        let mut whole = Text::plain(&slot.value[..start]);
        whole.append(captured);
        Some(whole)
    }

    /// Lists the cookies that were sent before any response set them.
    fn list_cookies(&mut self) {
        let mut known: Vec<String> = Vec::new();
        for (row, _) in self.pairs {
            let exchange = &self.first[*row];
            for name in exchange.cookies_sent() {
                if !known.iter().any(|it| it == name) {
                    known.push(name.to_owned());
                    let why = "no response of the recording sets it, so it is not sent; begin the \
                               recording without cookies";
                    self.draft.left_out.add(exchange.line, format!("cookie {name}"), why);
                }
            }
            known.extend(exchange.cookies_set().map(str::to_owned));
        }
    }

    /// Returns the replacement for a value that differs.
    fn differing(
        &mut self,
        number: usize,
        slot: &Slot,
        other: &Slot,
        step: &DraftStep,
        earlier: &mut [DraftStep],
    ) -> Option<Text> {
        let (core, range) = core_of(&slot.value, &other.value)?;
        let wrap = |text: Text| {
            let mut whole = Text::plain(&slot.value[..range.0]);
            whole.append(text);
            whole.push_str(&slot.value[slot.value.len() - range.1..]);
            whole
        };
        if let Some(text) = self.captured(number, &core, slot, (step, earlier)) {
            return Some(wrap(text));
        }
        let Some(maker) = maker_of(&core.0, &core.1) else {
            let what = format!("{} of {}", slot.place, step.name);
            let why = "it differs between the recordings, and no earlier response contains it; the recorded value is sent";
            self.draft.left_out.add(step.line, what, why);
            return None;
        };
        let name = self.free_name(&slot.name());
        self.draft.made.push((name.clone(), maker));
        let text = Text::named(name);
        self.show(
            step,
            slot,
            &display_text(&text),
            "no response contains it; it is generated for each iteration",
        );
        self.known.push((core.0, core.1, text.clone()));
        Some(wrap(text))
    }

    /// Returns the capture for a value that is already captured or that an earlier response
    /// contains. `core`: the value in each recording.
    fn captured(
        &mut self,
        number: usize,
        core: &(String, String),
        slot: &Slot,
        (step, earlier): (&DraftStep, &mut [DraftStep]),
    ) -> Option<Text> {
        let known = self.known.iter().find(|(a, b, _)| *a == core.0 && *b == core.1);
        if let Some(text) = known.map(|(_, _, text)| text.clone()) {
            self.show(step, slot, &display_text(&text), "as before");
            return Some(text);
        }
        for (at, earlier) in earlier.iter_mut().enumerate().take(number) {
            let (row, counterpart) = self.pairs[at];
            let found = find(&self.first[row], &self.second[counterpart], &core.0, &core.1);
            let Some(FoundValue { from, regex, place }) = found else { continue };
            let name = self.free_name(&slot.name());
            earlier.captures.push(Capture { regex, ..Capture::new(name.clone(), from) });
            let text = Text::named(name);
            let why = format!("captured by {} from {place}", earlier.name);
            self.show(step, slot, &display_text(&text), &why);
            self.known.push((core.0.clone(), core.1.clone(), text.clone()));
            return Some(text);
        }
        None
    }

    fn show(&mut self, step: &DraftStep, slot: &Slot, now: &str, why: &str) {
        let what = format!("{}: {}", step.name, slot.place);
        self.diff.push(format!("- {what} = {}", one_line(&slot.value)));
        self.diff.push(format!("+ {what} = {now}  ({why})"));
    }

    fn free_name(&self, wanted: &str) -> String {
        let taken =
            |name: &str| self.known.iter().any(|(_, _, text)| text.single_name() == Some(name));
        let plain =
            |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' };
        let base: String = wanted.chars().map(plain).take(40).collect();
        let base = if base.trim_matches('_').is_empty() { "value".to_owned() } else { base };
        let mut name = base.clone();
        let mut number = 1;
        while taken(&name) {
            number += 1;
            name = format!("{base}{number}");
        }
        name
    }
}

fn display_text(text: &Text) -> String {
    match text.single_name() {
        Some(name) => format!("{{{{{name}}}}}"),
        None => text.beginning().to_owned(),
    }
}

/// Strips the common ends of two values, up to characters that delimit a token; returns the cores
/// and the lengths of the common ends.
fn core_of(one: &str, two: &str) -> Option<((String, String), (usize, usize))> {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let common = one
        .chars()
        .zip(two.chars())
        .take_while(|(a, b)| a == b)
        .map(|(a, _)| a.len_utf8())
        .sum::<usize>();
    // back to the beginning of the token
    let start = one[..common]
        .char_indices()
        .rev()
        .find(|(_, c)| !word(*c) && *c != '-')
        .map_or(0, |(at, c)| at + c.len_utf8());
    let (rest_one, rest_two) = (&one[start..], &two[start..]);
    let back = rest_one
        .chars()
        .rev()
        .zip(rest_two.chars().rev())
        .take_while(|(a, b)| a == b)
        .map(|(a, _)| a.len_utf8())
        .sum::<usize>();
    let tail = &rest_one[rest_one.len() - back..];
    let end = tail
        .char_indices()
        .find(|(_, c)| !word(*c) && *c != '-')
        .map_or(0, |(at, _)| tail.len() - at);
    let cut = |text: &str| text[..text.len() - end].to_owned();
    let core = (cut(rest_one), cut(rest_two));
    (!core.0.is_empty() && !core.1.is_empty()).then_some((core, (start, end)))
}

/// Returns how values of this kind are generated.
fn maker_of(one: &str, two: &str) -> Option<Maker> {
    let both = |fits: fn(&str) -> bool| fits(one) && fits(two);
    if both(is_uuid) {
        return Some(Maker::Uuid);
    }
    let time = |length: usize| {
        both(|text| text.bytes().all(|byte| byte.is_ascii_digit()))
            && one.len() == length
            && two.len() == length
            && one.starts_with('1')
            && two.starts_with('1')
    };
    if time(10) {
        return Some(Maker::Seconds);
    }
    if time(13) {
        return Some(Maker::Millis);
    }
    let length = one.len();
    if length != two.len() || length < 4 {
        return None;
    }
    match () {
        () if both(|text| text.bytes().all(|byte| byte.is_ascii_digit())) => {
            Some(Maker::Digits(length))
        }
        () if both(|text| text.bytes().all(|byte| byte.is_ascii_hexdigit())) => {
            Some(Maker::Hex(length))
        }
        () if both(|text| text.bytes().all(|byte| byte.is_ascii_alphanumeric())) => {
            Some(Maker::Letters(length))
        }
        () => None,
    }
}

fn is_uuid(text: &str) -> bool {
    let groups: Vec<&str> = text.split('-').collect();
    let lengths: Vec<usize> = groups.iter().map(|group| group.len()).collect();
    lengths == [8, 4, 4, 4, 12]
        && groups.iter().all(|group| group.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Replaces parts of a text with values.
pub(super) fn replace_parts(source: &str, parts: &[(std::ops::Range<usize>, Text)]) -> Text {
    let mut text = Text::default();
    let mut at = 0;
    for (range, value) in parts {
        if range.start < at || range.end > source.len() {
            continue;
        }
        text.push(DraftPart::Plain(source[at..range.start].to_owned()));
        text.append(value.clone());
        at = range.end;
    }
    text.push(DraftPart::Plain(source[at..].to_owned()));
    text
}
