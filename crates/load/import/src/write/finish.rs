//! Makes a draft fit a plan: unique names, limits, and only expressions that our parsers support.

use crate::draft::*;
use crate::names::Names;
use crate::recorded::is_connection_header;
use crate::text::Text;
use plan::check::JsonPlace;
use std::collections::BTreeSet;
use workload::Selector;

/// Maximum number of steps and journeys, and maximum depth of blocks, of a plan.
const STEPS_MAX: usize = plan::journey::STEPS_MAX;
const JOURNEYS_MAX: usize = 100;
const DEPTH_MAX: usize = 4;
const TABLES_MAX: usize = 6;
const NAME_MAX: usize = 70;
/// Maximum length of a URL in bytes before values are inserted.
const URL_MAX: usize = 32 << 10;

/// Counts of a plan's elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ImportCounts {
    pub(crate) journeys: usize,
    pub(crate) steps: usize,
    pub(crate) captures: usize,
    pub(crate) checks: usize,
}

struct Finisher<'a> {
    names: BTreeSet<String>,
    renamed: Vec<(String, String)>,
    counts: ImportCounts,
    left_out: &'a mut LeftOutList,
}

pub(super) fn finish(draft: &mut PlanDraft) -> ImportCounts {
    let mut left_out = std::mem::take(&mut draft.left_out);
    let mut finisher = Finisher {
        names: BTreeSet::new(),
        renamed: Vec::new(),
        counts: ImportCounts::default(),
        left_out: &mut left_out,
    };
    for step in draft.setup.iter_mut().chain(&mut draft.teardown) {
        finisher.step(step);
        step.name = finisher.name(&step.name, "setup");
    }
    draft.targets.retain_mut(|step| {
        "target".clone_into(&mut step.name);
        let fault = target_fault(&step.url);
        if let Some(why) = &fault {
            finisher.left_out.add(step.line, step.url.beginning(), why);
        }
        finisher.step(step);
        fault.is_none()
    });
    for table in draft.tables.drain(TABLES_MAX.min(draft.tables.len())..) {
        finisher.left_out.add(0, table.name, "an imported plan has at most six data files");
    }
    for mut journey in std::mem::take(&mut draft.journeys) {
        let before = journey.name.clone();
        journey.name = finisher.name(&journey.name, "journey");
        let parts = finisher.pieces(journey.parts, 1);
        if parts.is_empty() || finisher.counts.journeys == JOURNEYS_MAX {
            finisher.left_out.add(
                0,
                before,
                "it has no request, or is beyond the 100 journeys of a plan",
            );
            finisher.names.remove(&journey.name);
            continue;
        }
        finisher.renamed.push((before, journey.name.clone()));
        finisher.counts.journeys += 1;
        draft.journeys.push(DraftJourney { parts, ..journey });
    }
    let renamed = std::mem::take(&mut finisher.renamed);
    let counts = finisher.counts;
    rename_loads(draft, &renamed);
    draft.left_out = left_out;
    counts
}

/// Makes loads refer to the remaining journeys by their new names.
fn rename_loads(draft: &mut PlanDraft, renamed: &[(String, String)]) {
    let whole = draft.loads.len() == 1;
    draft.loads.retain_mut(|load| {
        if load.journeys.is_empty() {
            return true;
        }
        let new = |old: &String| renamed.iter().find(|(before, _)| before == old);
        load.journeys = load.journeys.iter().filter_map(new).map(|(_, new)| new.clone()).collect();
        !load.journeys.is_empty()
    });
    if let [one] = &mut draft.loads[..]
        && (whole || one.journeys.len() == draft.journeys.len())
    {
        one.journeys.clear();
    }
    let mut known = BTreeSet::new();
    for load in &mut draft.loads {
        load.name = distinct(&objective_name(&load.name, "load"), &mut known);
    }
}

fn distinct(name: &str, known: &mut BTreeSet<String>) -> String {
    let mut chosen = name.to_owned();
    let mut number = 1;
    while !known.insert(chosen.clone()) {
        number += 1;
        chosen = format!("{name} ({number})");
    }
    chosen
}

/// Returns a name without values in it, which objectives can use.
fn objective_name(name: &str, fallback: &str) -> String {
    let plain = |c: char| if c.is_control() || "<>=,{}".contains(c) { ' ' } else { c };
    let name: String = name.chars().map(plain).collect();
    let name = name.split_whitespace().collect::<Vec<_>>().join(" ");
    let name: String = name.chars().take(NAME_MAX).collect();
    if name.trim().is_empty() { fallback.to_owned() } else { name.trim().to_owned() }
}

impl Finisher<'_> {
    fn name(&mut self, name: &str, fallback: &str) -> String {
        distinct(&objective_name(name, fallback), &mut self.names)
    }

    fn pieces(&mut self, pieces: Vec<DraftPiece>, depth: usize) -> Vec<DraftPiece> {
        let mut out = Vec::new();
        for piece in pieces {
            match piece {
                DraftPiece::Step(mut step) => {
                    let length: usize = step.url.0.iter().map(part_length).sum();
                    if length > URL_MAX {
                        self.left_out.add(step.line, step.name, "its URL is longer than 32 KiB");
                        continue;
                    }
                    if self.counts.steps == STEPS_MAX {
                        self.left_out.add(step.line, step.name, "a plan has 999 steps at most");
                        continue;
                    }
                    self.counts.steps += 1;
                    self.step(&mut step);
                    step.name = self.name(&step.name, "step");
                    out.push(DraftPiece::Step(step));
                }
                DraftPiece::Block(block) if depth == DEPTH_MAX => {
                    if !block.guard.is_empty() {
                        let why = "blocks are nested more than four deep; its steps run once";
                        self.left_out.add(0, block.name, why);
                    }
                    out.extend(self.pieces(block.parts, depth));
                }
                DraftPiece::Block(block) => {
                    let name = self.name(&block.name, "block");
                    let parts = self.pieces(block.parts, depth + 1);
                    if parts.is_empty() {
                        self.names.remove(&name);
                        continue;
                    }
                    out.push(DraftPiece::Block(DraftBlock { name, parts, ..block }));
                }
            }
        }
        out
    }

    fn step(&mut self, step: &mut DraftStep) {
        let (line, name) = (step.line, step.name.clone());
        let left_out = &mut *self.left_out;
        step.captures.retain(|capture| match fault(capture) {
            None => true,
            Some(why) => {
                left_out.add(line, format!("{name}: capture {}", capture.name), why);
                false
            }
        });
        let mut known = BTreeSet::new();
        step.captures.retain(|capture| known.insert(capture.name.clone()));
        for checks in [&mut step.expect, &mut step.check] {
            checks.json.retain(|(place, _)| match JsonPlace::parse(place) {
                Ok(_) => true,
                Err(why) => {
                    left_out.add(line, format!("{name}: check of {place}"), why);
                    false
                }
            });
            checks.regex.retain(|regex| match bad_regex(regex) {
                None => true,
                Some(why) => {
                    left_out.add(line, format!("{name}: check by a regular expression"), why);
                    false
                }
            });
            checks.json = first_of_each(std::mem::take(&mut checks.json));
            self.counts.checks += checks.count();
        }
        for guard in [&mut step.guard.when, &mut step.guard.until] {
            guard.retain(|(variable, rule)| match rule {
                DraftRule::Regex(regex) if bad_regex(regex).is_some() => {
                    left_out.add(
                        line,
                        format!("{name}: condition on {variable}"),
                        "its expression",
                    );
                    false
                }
                _ => true,
            });
        }
        step.headers = headers(std::mem::take(&mut step.headers), line, &name, left_out);
        if step.method.eq_ignore_ascii_case("CONNECT") || !is_token(&step.method) {
            left_out.add(line, format!("{name}: method {}", one_line(&step.method)), "GET is used");
            "GET".clone_into(&mut step.method);
        }
        self.counts.captures += step.captures.len();
    }
}

fn part_length(part: &crate::text::DraftPart) -> usize {
    match part {
        crate::text::DraftPart::Plain(text) => text.len(),
        _ => 0,
    }
}

fn first_of_each<T>(pairs: Vec<(String, T)>) -> Vec<(String, T)> {
    let mut known = BTreeSet::new();
    pairs.into_iter().filter(|(name, _)| known.insert(name.clone())).collect()
}

/// Returns the headers that a step may have: valid names, each once, no headers of the connection.
fn headers(
    all: Vec<(String, Text)>,
    line: usize,
    step: &str,
    left_out: &mut LeftOutList,
) -> Vec<(String, Text)> {
    let mut kept: Vec<(String, Text)> = Vec::new();
    for (name, value) in all {
        let name = name.trim().to_owned();
        if is_connection_header(&name) {
            continue;
        }
        let value = value.map_plain(|text| text.replace(['\r', '\n'], " "));
        if !is_token(&name) {
            left_out.add(
                line,
                format!("{step}: header {}", one_line(&name)),
                "its name is not valid",
            );
        } else if kept.iter().any(|(known, _)| known.eq_ignore_ascii_case(&name)) {
            left_out.add(
                line,
                format!("{step}: second header {name}"),
                "a step sends each name once",
            );
        } else {
            kept.push((name, value));
        }
    }
    kept
}

/// Returns whether a step may have a header of this name.
pub(crate) fn is_step_header(name: &str) -> bool {
    is_token(name) && !is_connection_header(name)
}

/// Returns why a target cannot be called.
fn target_fault(url: &Text) -> Option<String> {
    let url = url.settled().unwrap_or_default();
    let relative = url.starts_with('/');
    if !relative && crate::place::split_origin(&url).is_none() {
        return Some("it is not a URL".to_owned());
    }
    let whole = if relative { format!("{}{url}", crate::place::NO_SERVER) } else { url };
    plan::parse_url(&whole).err().map(|error| error.0)
}

/// Returns whether the text is a token of RFC 9110 section 5.6.2.
fn is_token(text: &str) -> bool {
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(token)
}

/// Returns why a capture is not possible.
fn fault(capture: &Capture) -> Option<String> {
    match &capture.from {
        CaptureFrom::Json(place) => {
            if let Err(why) = JsonPlace::parse(place) {
                return Some(why);
            }
        }
        CaptureFrom::Css(css, _) => {
            if let Err(why) = Selector::parse(css) {
                return Some(format!("{} is not a supported selector: {why}", units::quoted(css)));
            }
        }
        CaptureFrom::Body if capture.regex.is_none() => {
            return Some("it takes the whole body; give a regex".to_owned());
        }
        _ => {}
    }
    capture.regex.as_ref().and_then(bad_regex)
}

fn bad_regex(regex: &Text) -> Option<String> {
    // values are inserted as literal text
    let sample = regex.0.iter().map(|part| match part {
        crate::text::DraftPart::Plain(text) => text.as_str(),
        _ => "x",
    });
    let sample: String = sample.collect();
    regex::bytes::Regex::new(&sample).err().map(|error| {
        let why = error.to_string();
        let last = why.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
        format!("{} is not a supported expression: {last}", units::quoted(&sample))
    })
}

impl DraftGuard {
    pub(crate) fn is_empty(&self) -> bool {
        self.when.is_empty()
            && self.chance.is_none()
            && self.repeat.is_none()
            && self.until.is_empty()
    }
}

impl Checks {
    pub(crate) fn count(&self) -> usize {
        usize::from(!self.status.is_empty())
            + self.headers.len()
            + usize::from(self.exact.is_some())
            + self.contains.len()
            + self.lacks.len()
            + self.regex.len()
            + self.json.len()
            + usize::from(self.length.is_some())
            + usize::from(self.graphql)
            + usize::from(self.at_most.is_some())
    }
}

/// Returns all steps, in order.
fn steps(draft: &PlanDraft) -> Vec<&DraftStep> {
    fn gather<'a>(pieces: &'a [DraftPiece], all: &mut Vec<&'a DraftStep>) {
        for piece in pieces {
            match piece {
                DraftPiece::Step(step) => all.push(step),
                DraftPiece::Block(block) => gather(&block.parts, all),
            }
        }
    }
    let mut all: Vec<&DraftStep> = draft.setup.iter().collect();
    draft.journeys.iter().for_each(|journey| gather(&journey.parts, &mut all));
    all.extend(&draft.teardown);
    all.extend(&draft.targets);
    all
}

/// Makes the plan decode compressed responses if its steps request them, so that captures and
/// checks read the decoded body.
pub(super) fn request_codings(draft: &mut PlanDraft) {
    let codings = |value: &str| {
        let mut codings = value.split(',').map(|one| one.split(';').next().unwrap_or_default());
        codings.any(|one| ["gzip", "deflate", "br", "zstd"].contains(&one.trim()))
    };
    let is_coding = |(name, value): &(String, Text)| {
        name.eq_ignore_ascii_case("accept-encoding")
            && value.settled().is_some_and(|value| codings(&value))
    };
    let mut found = false;
    let before = draft.settings.headers.len();
    draft
        .settings
        .headers
        .retain(|(name, value)| !is_coding(&(name.clone(), Text::plain(value.clone()))));
    found |= draft.settings.headers.len() < before;
    each_step(draft, &mut |step| {
        let before = step.headers.len();
        step.headers.retain(|header| !is_coding(header));
        found |= step.headers.len() < before;
    });
    draft.settings.compressed |= found;
}

fn each_step(draft: &mut PlanDraft, change: &mut dyn FnMut(&mut DraftStep)) {
    fn inside(pieces: &mut [DraftPiece], change: &mut dyn FnMut(&mut DraftStep)) {
        for piece in pieces {
            match piece {
                DraftPiece::Step(step) => change(step),
                DraftPiece::Block(block) => inside(&mut block.parts, change),
            }
        }
    }
    draft.setup.iter_mut().for_each(&mut *change);
    draft.journeys.iter_mut().for_each(|journey| inside(&mut journey.parts, change));
    draft.teardown.iter_mut().for_each(&mut *change);
    draft.targets.iter_mut().for_each(change);
}

pub(super) fn urls(draft: &PlanDraft) -> Vec<&Text> {
    steps(draft).into_iter().map(|step| &step.url).collect()
}

/// Collects the names that steps capture.
pub(super) fn captures(draft: &PlanDraft, names: &mut Names) {
    for step in steps(draft) {
        step.captures
            .iter()
            .for_each(|capture| names.will_capture(&capture.name, capture.user || step.once));
    }
}
