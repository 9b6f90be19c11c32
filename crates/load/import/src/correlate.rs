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
use recording::{RecordedExchange, RecordedVisit, Slot, SlotKind, read_visit};
use std::collections::HashMap;
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
/// does not show which values change. `insecure`: the plan accepts any certificate.
///
/// # Errors
/// Fails if the text is not a HAR, or has no request.
pub fn import_visit(recording: &str, insecure: bool) -> Result<Imported, ImportError> {
    let visit = read_visit(recording).map_err(ImportError)?;
    let pairs: Vec<(usize, usize)> = (0..visit.exchanges.len()).map(|row| (row, row)).collect();
    if pairs.is_empty() {
        return Err(ImportError("it has no request".to_owned()));
    }
    let head = "Imported from a recording of one visit (HAR). A second recording shows which values \
                change: workload import FIRST --second SECOND.";
    let is_https = |exchange: &RecordedExchange| exchange.url.scheme() == "https";
    let insecure = insecure && visit.exchanges.iter().any(is_https);
    let draft = PlanDraft {
        left_out: visit.left_out.clone(),
        settings: DraftSettings { insecure, ..DraftSettings::default() },
        ..PlanDraft::default()
    };
    Ok(journey(draft, (&visit, &visit), &pairs, head, None, true)?.imported)
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
    let first = read_visit(first).map_err(named("first"))?;
    let second = read_visit(second).map_err(named("second"))?;
    let pairs = aligned(&first.exchanges, &second.exchanges);
    if pairs.is_empty() {
        return Err(ImportError(
            "the recordings have no request in common; record the same visit twice".to_owned(),
        ));
    }
    let head = "Imported from two recordings of the same visit (HAR).";
    let draft = PlanDraft { left_out: first.left_out.clone(), ..PlanDraft::default() };
    journey(draft, (&first, &second), &pairs, head, base, false)
}

/// Adds the journey of the exchanges that both recordings have to a draft. `keeps_logins`: credentials that
/// no response contains are sent as recorded.
fn journey(
    draft: PlanDraft,
    (first, second): (&RecordedVisit, &RecordedVisit),
    pairs: &[(usize, usize)],
    head: &str,
    base: Option<&Url>,
    keeps_logins: bool,
) -> Result<Correlation, ImportError> {
    let mut correlator = Correlator {
        keeps_logins,
        base,
        first: &first.exchanges,
        second: &second.exchanges,
        pairs,
        draft,
        diff: Vec::new(),
        known: Vec::new(),
    };
    let mut steps = correlator.steps();
    correlator.list_cookies();
    correlator.list_unpaired();
    let Correlator { mut draft, diff, .. } = correlator;
    draft.settings.headers = common_headers(&mut steps);
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

/// Pairs the requests of both recordings. Each is paired with the first unpaired request of the
/// same path, otherwise of the same path shape. Browsers send the requests of a page in any order.
fn aligned(first: &[RecordedExchange], second: &[RecordedExchange]) -> Vec<(usize, usize)> {
    let mut free: HashMap<(String, String), Vec<usize>> = HashMap::new();
    for (row, exchange) in second.iter().enumerate() {
        free.entry(exchange.shape()).or_default().push(row);
    }
    let mut pairs = Vec::new();
    for (row, exchange) in first.iter().enumerate() {
        let Some(rows) = free.get_mut(&exchange.shape()) else { continue };
        let same = rows.iter().position(|other| second[*other].path() == exchange.path());
        if !rows.is_empty() {
            pairs.push((row, rows.remove(same.unwrap_or(0))));
        }
    }
    pairs
}

/// Removes the headers that all steps send with the same value from the steps, and returns them.
fn common_headers(steps: &mut [DraftStep]) -> Vec<(String, String)> {
    let [first, rest @ ..] = &*steps else { return Vec::new() };
    if rest.is_empty() {
        return Vec::new();
    }
    let is_common = |header: &(String, Text)| rest.iter().all(|step| step.headers.contains(header));
    let common: Vec<(String, Text)> =
        first.headers.iter().filter(|header| is_common(header)).cloned().collect();
    let settled = |(name, value): &(String, Text)| {
        let value = value.settled().filter(|value| !value.contains(char::is_control))?;
        write::is_step_header(name).then(|| (name.clone(), value))
    };
    let lifted: Vec<(String, String)> = common.iter().filter_map(settled).collect();
    for step in steps {
        step.headers.retain(|(name, _)| !lifted.iter().any(|(known, _)| known == name));
    }
    lifted
}

struct Correlator<'a> {
    keeps_logins: bool,
    /// Server that replaces the recorded one.
    base: Option<&'a Url>,
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
            if other.value != slot.value && slot.has_boundary() {
                // the body keeps the recorded boundary
            } else if other.value != slot.value && self.diff.len() < 2 * DIFFERENCES_MAX {
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
        replaced.extend(self.page_address(one, two));
        one.write(&replaced, self.keeps_logins, step);
        step.url = tidy(std::mem::take(&mut step.url));
        self.move_origin(one, step);
        if one.status >= 400 && one.status == two.status {
            step.expect.status.push(one.status.to_string());
        }
    }

    /// Returns the replacement for a `Referer` that differs between the recordings: the address
    /// with the known values inserted, or an empty text, because no server needs it.
    fn page_address(&self, one: &RecordedExchange, two: &RecordedExchange) -> Option<(Slot, Text)> {
        let (name, value) =
            one.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("referer"))?;
        let other = two.header("referer").unwrap_or_default();
        let text = (value != other).then(|| self.with_known(value, other).unwrap_or_default())?;
        Some((Slot::header(name, value), text))
    }

    /// Replaces the recorded server in the header fields that name it.
    fn move_origin(&self, one: &RecordedExchange, step: &mut DraftStep) {
        let Some(base) = self.base else { return };
        let recorded = one.url.origin().ascii_serialization();
        let moved = base.origin().ascii_serialization();
        for (name, value) in &mut step.headers {
            let names_server = ["origin", "referer"].iter().any(|it| name.eq_ignore_ascii_case(it));
            if let Some(DraftPart::Plain(first)) = value.0.first_mut().filter(|_| names_server)
                && let Some(rest) = first.strip_prefix(&recorded)
            {
                *first = format!("{moved}{rest}");
            }
        }
    }

    /// Replaces known values in a text, if the two recordings differ in nothing else.
    fn with_known(&self, one: &str, two: &str) -> Option<Text> {
        let replaced = |text: &str, known: fn(&(String, String, Text)) -> &str| {
            let mut out = Text::default();
            let mut rest = text;
            let mut in_word = false;
            while let Some(c) = rest.chars().next() {
                let fits = |value: &str| {
                    let after = rest.strip_prefix(value).map(|after| after.chars().next());
                    after.is_some_and(|next| !next.is_some_and(char::is_alphanumeric))
                };
                let here = self.known.iter().filter(|_| !in_word);
                let here = here.filter(|row| !known(row).is_empty() && fits(known(row)));
                let found = here.max_by_key(|row| known(row).len());
                match found {
                    Some(row) => {
                        out.append(row.2.clone());
                        rest = &rest[known(row).len()..];
                        in_word = true;
                    }
                    None => {
                        out.push_str(&rest[..c.len_utf8()]);
                        rest = &rest[c.len_utf8()..];
                        in_word = c.is_alphanumeric();
                    }
                }
            }
            out
        };
        let (one, two) = (replaced(one, |row| &row.0), replaced(two, |row| &row.1));
        (one == two).then_some(one)
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
                    let why = "no response of the recording sets it; it is sent only if a response \
                               of the run does; begin the recording without cookies";
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
        for core in [whole_of(slot, other), after_scheme(slot, other)].into_iter().flatten() {
            if let Some(text) = self.captured(number, &core.values, slot, (step, earlier)) {
                return Some(core.wrap(text));
            }
        }
        let part = core_of(&slot.value, &other.value)?;
        if let Some(text) = self.captured(number, &part.values, slot, (step, earlier)) {
            return Some(part.wrap(text));
        }
        if let Some(text) = self.with_known(&slot.value, &other.value) {
            self.show(step, slot, &display_text(&text), "as before");
            return Some(text);
        }
        let core = &part.values;
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
        self.known.push((core.0.clone(), core.1.clone(), text.clone()));
        Some(part.wrap(text))
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

    /// Lists the requests that only one recording has.
    fn list_unpaired(&mut self) {
        let unpaired = |all: &[RecordedExchange], is_paired: &dyn Fn(usize) -> bool| {
            let rows = all.iter().enumerate().filter(|(row, _)| !is_paired(*row));
            rows.map(|(_, it)| (it.line, format!("{} {}", it.method, it.path())))
                .collect::<Vec<_>>()
        };
        let first = unpaired(self.first, &|row| self.pairs.iter().any(|(known, _)| *known == row));
        let second =
            unpaired(self.second, &|row| self.pairs.iter().any(|(_, known)| *known == row));
        for (line, what) in first {
            self.draft.left_out.add(line, what, "the second recording has no such request");
        }
        for (_, what) in second {
            self.draft.left_out.add(0, what, "only the second recording has this request");
        }
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
    let part = |part: &DraftPart| match part {
        DraftPart::Plain(text) => one_line(text),
        DraftPart::Named(name) => format!("{{{{{name}}}}}"),
        DraftPart::Made(_) => "{{…}}".to_owned(),
        DraftPart::InJson(inner) => display_text(inner),
    };
    text.0.iter().map(part).collect()
}

/// The differing part of a value in each recording, and the equal text at its ends.
struct DifferingPart<'a> {
    values: (String, String),
    before: &'a str,
    after: &'a str,
}

impl DifferingPart<'_> {
    fn wrap(&self, text: Text) -> Text {
        let mut whole = Text::plain(self.before);
        whole.append(text);
        whole.push_str(self.after);
        whole
    }
}

/// Returns both values, decoded according to their place.
fn whole_of<'a>(slot: &Slot, other: &Slot) -> Option<DifferingPart<'a>> {
    let values = (slot.decoded()?, other.decoded()?);
    (!values.0.is_empty() && !values.1.is_empty()).then_some(DifferingPart {
        values,
        before: "",
        after: "",
    })
}

/// Returns the parts of both values after a common scheme such as `Bearer`.
fn after_scheme<'a>(slot: &'a Slot, other: &Slot) -> Option<DifferingPart<'a>> {
    let start = slot.value.rfind(' ').filter(|_| slot.kind == SlotKind::Header)? + 1;
    let before = &slot.value[..start];
    let rest = other.value.strip_prefix(before)?;
    let values = (slot.value[start..].to_owned(), rest.to_owned());
    (!values.0.is_empty() && !values.1.is_empty()).then_some(DifferingPart {
        values,
        before,
        after: "",
    })
}

/// Strips the common ends of two values, up to characters that delimit a token.
fn core_of<'a>(one: &'a str, two: &str) -> Option<DifferingPart<'a>> {
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
    let values = (cut(rest_one), cut(rest_two));
    (!values.0.is_empty() && !values.1.is_empty()).then_some(DifferingPart {
        values,
        before: &one[..start],
        after: &one[one.len() - end..],
    })
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
