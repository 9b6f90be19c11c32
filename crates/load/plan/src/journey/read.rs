//! TOML → journeys. Every message names the line. Errors that can be found before the first call
//! are reported here: a name without a step, feeder or variable that sets it, an invalid selector,
//! a file without rows.

mod feeders;
mod grpc;
mod scripted;
mod sockets;

use super::model::{
    AfterFailure, Condition, Journey, JourneyBlock, JourneyPart, JourneyPlan, JourneyStep, Refresh,
    StepGuard,
};
use super::{names, tables};
use crate::check::node::{Node, Table, pick};
use crate::check::read::{Given, Reader, read_vars};
use crate::check::{Ask, CaptureMetric, Marks, Text, Wanted};
use crate::rules;
use crate::{FileSource, StepStream};
use sockets::SocketKey;
use std::collections::{BTreeMap, BTreeSet};
use toml::de::DeTable;
use units::{ParseError, quoted};
use url::Url;

/// The keys of a plan file that define journeys.
pub(crate) const KEYS: [&str; 5] = ["vars", "feeder", "setup", "journey", "teardown"];

/// Names that always have a value: the number of the user and of the iteration, from 0.
pub const USER_NUMBER: &str = "user.number";
pub const ITERATION_NUMBER: &str = "iteration.number";

/// Maximum number of steps of all journeys: below the rows of the report, whose last one collects
/// the rest.
pub const STEPS_MAX: usize = 999;
const JOURNEYS_MAX: usize = 100;
const DEPTH_MAX: usize = 4;
const REPEAT_MAX: u32 = 100_000;
const METRICS_MAX: usize = 50;
const TAGS_MAX: usize = 20;

const FAILURES: [(&str, AfterFailure); 2] =
    [("next", AfterFailure::Next), ("end", AfterFailure::End)];

/// Reads `stream` of a step: `"sse"`, `"lines"`, `"openai"`, `"anthropic"` or `false`.
fn stream_of(node: &Node<'_>) -> Result<StepStream, ParseError> {
    match node.switch() {
        Some(false) => Ok(StepStream::No),
        Some(true) => {
            Err(node.fault("write one of \"sse\", \"lines\", \"openai\" or \"anthropic\""))
        }
        None => {
            crate::parse_streaming(node.text()?).map(StepStream::Yes).map_err(|why| node.fault(why))
        }
    }
}

/// Returns the journeys of a plan file's text; `base`: its URL.
///
/// # Errors
/// Fails with one sentence that names the line: an unknown key, an invalid value, a file that
/// cannot be read or has no rows, an undefined name.
pub(crate) fn read(
    text: &str,
    base: &Url,
    files: &dyn FileSource,
) -> Result<JourneyPlan, ParseError> {
    let parsed = DeTable::parse(text).map_err(|error| {
        ParseError(format!("the plan is invalid: {}", error.to_string().trim()))
    })?;
    let mut top = Table::new(text, 0, "the plan", parsed.get_ref());
    let vars = read_vars(top.take("vars"), &Given::default())?;
    let mut reader = JourneyReader {
        reader: Reader::new(vars.clone(), files, Marks::Braces),
        steps: Vec::new(),
        captures: 0,
        metrics: Vec::new(),
        transactions: 0,
        transaction_names: BTreeSet::new(),
        feeders: Vec::new(),
        socket_url: None,
        files,
    };
    let feeders = feeders::read(top.take("feeder"), &reader.reader, files)?;
    reader.feeders = feeders.iter().map(|feeder| feeder.name.clone()).collect();
    reader.add_known_names(&feeders);
    let named = |error| with_columns(error, &feeders);
    let setup = reader.read_tasks(top.take("setup")).map_err(named)?;
    let Some(node) = top.take("journey") else {
        let why = "the plan has vars, feeder, setup or teardown, and no [[journey]] that uses them";
        return Err(ParseError(why.to_owned()));
    };
    let journeys = reader.journeys(&node).map_err(named)?;
    let teardown = reader.read_tasks(top.take("teardown")).map_err(named)?;
    let tables = tables::parse(text, files)?;
    Ok(JourneyPlan { base: base.clone(), vars, journeys, feeders, setup, teardown, tables })
}

/// Adds the columns of a feeder to an error about a name of that feeder.
fn with_columns(error: ParseError, feeders: &[super::Feeder]) -> ParseError {
    let asked = |feeder: &&super::Feeder| {
        let starts = [format!("{{{{{}.", feeder.name), format!("\"{}.", feeder.name)];
        error.0.contains("is not defined") && starts.iter().any(|start| error.0.contains(start))
    };
    let Some(feeder) = feeders.iter().find(asked) else { return error };
    let columns: Vec<String> = feeder.columns.iter().map(|column| quoted(column)).collect();
    let known = match &columns[..] {
        [one] if separator(one).is_some() => format!(
            "the only column of {} is {one}: separate columns by commas instead of {}",
            feeder.name,
            separator(one).unwrap_or_default()
        ),
        _ => format!("the columns of {} are {}", feeder.name, columns.join(", ")),
    };
    ParseError(format!("{}; {known}", error.0))
}

/// Returns the name of the probable column separator of a table that has one column; `name`: the
/// column's name in quotation marks.
fn separator(name: &str) -> Option<&'static str> {
    let all = [(";", "semicolons"), ("\\t", "tabs"), ("|", "vertical bars")];
    all.into_iter().find_map(|(mark, words)| name.contains(mark).then_some(words))
}

struct JourneyReader<'f> {
    reader: Reader<'f>,
    /// Names of the steps so far, by row.
    steps: Vec<String>,
    captures: u32,
    /// Names of the metrics so far, by row.
    metrics: Vec<String>,
    transactions: u32,
    transaction_names: BTreeSet<String>,
    feeders: Vec<String>,
    /// URL of the latest `connect` step of the journey.
    socket_url: Option<Text>,
    files: &'f dyn FileSource,
}

impl JourneyReader<'_> {
    /// Adds the names that always have a value.
    fn add_known_names(&mut self, feeders: &[super::Feeder]) {
        let known = &mut self.reader.captured;
        known.extend([USER_NUMBER, ITERATION_NUMBER].map(str::to_owned));
        for feeder in feeders {
            known.extend(feeder.columns.iter().map(|column| format!("{}.{column}", feeder.name)));
        }
    }

    fn journeys(&mut self, node: &Node<'_>) -> Result<Vec<Journey>, ParseError> {
        let tables = node.tables()?;
        if tables.is_empty() || tables.len() > JOURNEYS_MAX {
            return Err(node.fault(format!("a plan has 1 to {JOURNEYS_MAX} journeys")));
        }
        // a user keeps these, so that one journey may use values that another one captured
        for table in node.tables()? {
            let mut kept = BTreeSet::new();
            user_captures(table, &mut kept)?;
            self.reader.captured.extend(kept);
        }
        // the iterations of a journey are the first transactions
        self.transactions = tables.len() as u32;
        tables.into_iter().map(|table| self.journey(table)).collect()
    }

    fn journey(&mut self, mut table: Table<'_>) -> Result<Journey, ParseError> {
        let name = self.name_of(&mut table)?;
        self.transaction_names.insert(name.clone());
        let weight = table.take("weight").map(|node| number(&node)).transpose()?.unwrap_or(1.0);
        if !(weight > 0.0 && weight.is_finite()) {
            return Err(table.fault("weight is a number above zero"));
        }
        let think = self.think(&mut table)?;
        let failure = match table.take("failure") {
            Some(node) => pick(node.text()?, &FAILURES).map_err(|why| node.fault(why))?,
            None => AfterFailure::default(),
        };
        let first_row = self.steps.len();
        self.socket_url = None;
        let before = self.reader.captured.clone();
        if let Some(found) = self.program(&mut table)? {
            table.close()?;
            let (script, parts) = (Some(found.program), found.parts);
            return Ok(Journey { name, weight, think, failure, refresh: None, parts, script });
        }
        let refresh = table.take("refresh");
        let Some(node) = table.take("step") else {
            return Err(table.fault("it has no [[journey.step]], and no script"));
        };
        let parts = self.parts(&node, 1)?;
        let refresh = refresh.map(|node| self.refresh(&node, first_row)).transpose()?;
        table.close()?;
        // values captured by an iteration are known only to the steps of its journey
        self.reader.captured = before;
        Ok(Journey { name, weight, think, failure, refresh, parts, script: None })
    }

    fn name_of(&mut self, table: &mut Table<'_>) -> Result<String, ParseError> {
        let name = self.reader.name(table)?;
        if !is_valid_in_objectives(&name) {
            return Err(table.fault(NAME_RULE));
        }
        Ok(name)
    }

    fn refresh(&self, node: &Node<'_>, first_row: usize) -> Result<Refresh, ParseError> {
        let mut table = node.table()?;
        let mut statuses = Vec::new();
        for part in table.take("status").iter().flat_map(Node::list) {
            let ranges =
                rules::parse_statuses(&part.text_or_number()?).map_err(|why| part.fault(why))?;
            statuses.extend(ranges);
        }
        if statuses.is_empty() {
            statuses.push((401, 401));
        }
        let Some(step) = table.take("step") else {
            return Err(table.fault("step is missing: name the step that logs in"));
        };
        let wanted = step.text()?;
        let row = self.steps[first_row..].iter().position(|name| name == wanted);
        let row = row.ok_or_else(|| {
            step.fault(format!("{} is not a step of this journey", quoted(wanted)))
        })?;
        table.close()?;
        Ok(Refresh { statuses, row: (first_row + row) as u32 })
    }

    fn parts(&mut self, node: &Node<'_>, depth: usize) -> Result<Vec<JourneyPart>, ParseError> {
        if depth > DEPTH_MAX {
            return Err(node.fault(format!("steps are nested more than {DEPTH_MAX} deep")));
        }
        node.tables()?.into_iter().map(|table| self.part(table, depth)).collect()
    }

    fn part(&mut self, mut table: Table<'_>, depth: usize) -> Result<JourneyPart, ParseError> {
        let line = table.line();
        let name = self.name_of(&mut table)?;
        let (url, inner) = (table.take("url"), table.take("step"));
        match (url, inner) {
            (Some(url), None) => {
                let guard = self.guard(&mut table)?;
                let step = self.step(&url, &mut table, (name, line))?;
                self.finish_step(step, table, guard)
            }
            (None, Some(inner)) => {
                let guard = self.guard(&mut table)?;
                let transaction = self.transactions;
                self.transactions += 1;
                self.transaction_names.insert(name.clone());
                let parts = self.parts(&inner, depth + 1)?;
                let guard = self.until(guard, &mut table)?;
                table.close()?;
                Ok(JourneyPart::Block(JourneyBlock { name, transaction, guard, parts }))
            }
            (Some(_), Some(_)) => Err(table.fault(PART_RULE)),
            (None, None) if table.find("grpc").is_some() => {
                let guard = self.guard(&mut table)?;
                let step = self.grpc_step(&mut table, (name, line))?;
                self.finish_step(step, table, guard)
            }
            (None, None) => {
                let guard = self.guard(&mut table)?;
                let Some(key) = SocketKey::take(&mut table)? else {
                    return Err(table.fault(PART_RULE));
                };
                let think = self.think(&mut table)?;
                let once = table.flag("once")?;
                let (socket, ask) = self.socket_step(key, &mut table)?;
                let (socket, stream) = (Some(socket), StepStream::No);
                let step = JourneyStep::new(name, line, ask);
                let step = JourneyStep { think, once, stream, socket, ..step };
                self.finish_step(step, table, guard)
            }
        }
    }

    fn step(
        &mut self,
        url: &Node<'_>,
        table: &mut Table<'_>,
        (name, line): (String, usize),
    ) -> Result<JourneyStep, ParseError> {
        let think = self.think(table)?;
        let once = table.flag("once")?;
        let stream = table.take("stream").map(|node| stream_of(&node)).transpose()?;
        let stream = stream.unwrap_or_default();
        let ask = self.read_ask(url, table)?;
        if matches!(stream, StepStream::Yes(_)) && ask.method == "HEAD" {
            return Err(table.fault("a response to HEAD has no events: drop stream, or use GET"));
        }
        Ok(JourneyStep { think, once, stream, ..JourneyStep::new(name, line, ask) })
    }

    /// Reads the keys that all kinds of steps have, and assigns the step its place.
    fn finish_step(
        &mut self,
        mut step: JourneyStep,
        mut table: Table<'_>,
        guard: StepGuard,
    ) -> Result<JourneyPart, ParseError> {
        let check = table.take("check").map(|node| self.reader.expectations(&node)).transpose()?;
        if let Some(check) = &check {
            wants_a_response(check.outcome, &table)?;
        }
        if self.steps.len() == STEPS_MAX {
            return Err(table.fault(format!("a plan has {STEPS_MAX} steps at most")));
        }
        let tags = table.take("tags").map(|node| self.tags(&node)).transpose()?.unwrap_or_default();
        let captures = step.ask.capture.iter_mut();
        self.number_metrics(captures.filter_map(|(_, it)| it.metric.as_mut()), &table)?;
        let ask = &step.ask;
        let (row, first_capture) = (self.steps.len() as u32, self.captures);
        self.steps.push(step.name.clone());
        if let Some((name, _)) = ask.capture.iter().find(|(name, _)| name.contains('.')) {
            let why = format!("capture {}: a name with a dot is a feeder's column", quoted(name));
            return Err(table.fault(why));
        }
        self.captures += ask.capture.len() as u32;
        self.reader.captured.extend(ask.capture.iter().map(|(name, _)| name.clone()));
        let guard = self.until(guard, &mut table)?;
        table.close()?;
        let step = JourneyStep { row, first_capture, check, guard, tags, ..step };
        Ok(JourneyPart::Step(Box::new(step)))
    }

    /// Gives metrics their rows.
    fn number_metrics<'m>(
        &mut self,
        metrics: impl Iterator<Item = &'m mut CaptureMetric>,
        table: &Table<'_>,
    ) -> Result<(), ParseError> {
        for metric in metrics {
            let known = self.metrics.iter().position(|name| *name == metric.name);
            metric.row = known.unwrap_or(self.metrics.len()) as u32;
            if known.is_none() {
                self.metrics.push(metric.name.clone());
            }
        }
        if self.metrics.len() > METRICS_MAX {
            return Err(table.fault(format!("a plan has {METRICS_MAX} metrics at most")));
        }
        Ok(())
    }

    /// Reads `tags` of a step: words by name.
    fn tags(&self, node: &Node<'_>) -> Result<BTreeMap<String, String>, ParseError> {
        let rows = node.table()?.rest();
        if rows.len() > TAGS_MAX {
            return Err(node.fault(format!("a step has {TAGS_MAX} tags at most")));
        }
        let tag = |row: &Node<'_>| {
            let (name, value) = (row.key.to_owned(), self.reader.settled(row)?);
            let clear = |word: &str| is_valid_in_objectives(word) && !word.contains(':');
            if value.trim().is_empty() || !clear(&name) || !clear(&value) {
                let why = "a tag is a word without <, >, =, comma, colon or end of line";
                return Err(row.fault(why));
            }
            Ok((name, value))
        };
        rows.iter().map(tag).collect()
    }

    /// Reads the request with the keys of check plans; keys that belong to the whole plan are
    /// rejected.
    fn read_ask(&self, url: &Node<'_>, table: &mut Table<'_>) -> Result<Ask, ParseError> {
        for (key, why) in [
            ("http", "the plan sets the version: http in [request]"),
            ("close", "the plan sets the calls per connection: calls in [connection]"),
            ("jar", "each user has its own cookies; cookies = false in [request] keeps none"),
            ("timeout", "the plan sets the time limits: call in [timeouts]"),
        ] {
            if let Some(node) = table.find(key) {
                return Err(node.fault(why));
            }
        }
        let ask = self.reader.read_ask(url, table, false)?;
        table.hide_keys(&["http", "close", "jar", "timeout"]);
        wants_a_response(ask.expect.outcome, table)?;
        Ok(ask)
    }

    /// Reads steps that run once, before or after the run.
    fn read_tasks(&mut self, node: Option<Node<'_>>) -> Result<Vec<JourneyStep>, ParseError> {
        let mut all = Vec::new();
        for mut table in node.map(|node| node.tables()).transpose()?.unwrap_or_default() {
            let line = table.line();
            let name = self.name_of(&mut table)?;
            let Some(url) = table.take("url") else {
                return Err(table.fault("it has no url"));
            };
            let ask = self.read_ask(&url, &mut table)?;
            if ask.capture.iter().any(|(_, capture)| capture.metric.is_some()) {
                let why = "metric is for steps of journeys: this step is made once";
                return Err(table.fault(why));
            }
            // of these, all have a dot in their names, and captures have none
            if let Some(name) = names::of_request(&ask).into_iter().find(|it| it.contains('.')) {
                let why = format!("{{{{{name}}}}} belongs to a user, and this step has no user");
                return Err(table.fault(why));
            }
            self.reader.captured.extend(ask.capture.iter().map(|(name, _)| name.clone()));
            table.close()?;
            let step = JourneyStep::new(name, line, ask);
            all.push(JourneyStep { once: true, stream: StepStream::No, ..step });
        }
        if all.len() > STEPS_MAX {
            return Err(ParseError(format!("setup and teardown have {STEPS_MAX} steps at most")));
        }
        Ok(all)
    }

    fn think(&self, table: &mut Table<'_>) -> Result<Option<crate::Think>, ParseError> {
        let read = |node: Node<'_>| {
            rules::parse_think(&self.reader.settled(&node)?).map_err(|why| node.fault(why))
        };
        table.take("think").map(read).transpose()
    }

    fn guard(&self, table: &mut Table<'_>) -> Result<StepGuard, ParseError> {
        let mut guard = StepGuard::default();
        if let Some(node) = table.take("when") {
            guard.when = self.conditions(&node)?;
        }
        if let Some(node) = table.take("chance") {
            guard.chance =
                units::parse_share(&node.text_or_number()?).map_err(|why| node.fault(why))?;
            if guard.chance <= 0.0 {
                return Err(node.fault("a chance of 0 disables the step; delete it"));
            }
        }
        if let Some(node) = table.take("repeat") {
            let text = self.reader.settled(&node)?;
            let (low, high) = text.split_once("..").unwrap_or((&text, &text));
            let count = |part: &str| part.trim().parse::<u32>().ok();
            guard.repeat = match (count(low), count(high)) {
                (Some(low), Some(high)) if low <= high && high <= REPEAT_MAX && low > 0 => {
                    (low, high)
                }
                _ => {
                    let why = format!("give a number from 1 to {REPEAT_MAX}, or a range as 2..5");
                    return Err(node.fault(why));
                }
            };
        }
        Ok(guard)
    }

    /// Reads `until`, which may use the part's own captures.
    fn until(&self, mut guard: StepGuard, table: &mut Table<'_>) -> Result<StepGuard, ParseError> {
        if let Some(node) = table.take("until") {
            guard.until = self.conditions(&node)?;
            if guard.repeat == (1, 1) {
                return Err(node.fault(
                    "it ends a loop: give repeat too, the maximum number of \
                    rounds",
                ));
            }
        }
        Ok(guard)
    }

    fn conditions(&self, node: &Node<'_>) -> Result<Vec<Condition>, ParseError> {
        let condition = |row: &Node<'_>| {
            let known =
                self.reader.captured.contains(row.key) || self.reader.vars.contains_key(row.key);
            if !known {
                let why = format!("{} is not defined: {UNKNOWN}", quoted(row.key));
                return Err(row.fault(why));
            }
            let list = row.list();
            let rules = list.iter().map(|rule| self.reader.header_rule(rule));
            let rules = rules.collect::<Result<_, ParseError>>()?;
            Ok(Condition { name: row.key.to_owned(), rules })
        };
        node.table()?.rest().iter().map(condition).collect()
    }
}

const UNKNOWN: &str = "it is not a variable of [vars], not a column of a feeder (written \
                       'feeder.column'), and no earlier step captures it";

/// Message that lists the kinds of steps.
const PART_RULE: &str = "give one of url (a request), grpc (a call of gRPC), connect, send, expect \
                         and close (WebSocket), and steps in it (a block)";

/// Message for an invalid name of a step.
const NAME_RULE: &str = "a name must not contain <, >, =, a comma or a line end";

/// Returns whether objectives can refer to the name.
pub(super) fn is_valid_in_objectives(name: &str) -> bool {
    !name.contains(['\n', '<', '>', '=', ','])
}

fn wants_a_response(outcome: Wanted, table: &Table<'_>) -> Result<(), ParseError> {
    if outcome == Wanted::Response {
        return Ok(());
    }
    Err(table.fault("outcome works only in check plans; drop it"))
}

/// Collects the values that the steps of a journey capture for the user's lifetime.
fn user_captures(mut table: Table<'_>, kept: &mut BTreeSet<String>) -> Result<(), ParseError> {
    for mut part in table.take("step").map(|node| node.tables()).transpose()?.unwrap_or_default() {
        let captures = part.take("capture").map(|node| node.table()).transpose()?;
        for row in captures.map(|mut table| table.rest()).unwrap_or_default() {
            let scope = row.table()?.take("scope").map(|node| node.text()).transpose()?;
            if scope == Some("user") {
                kept.insert(row.key.to_owned());
            }
        }
        user_captures(part, kept)?;
    }
    Ok(())
}

fn number(node: &Node<'_>) -> Result<f64, ParseError> {
    node.text_or_number()?.parse().map_err(|_| node.fault("it is not a number"))
}
