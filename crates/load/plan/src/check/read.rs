//! TOML → check plan. Every message names the line.

pub(crate) mod ask;
mod expect;
mod talk;

pub(crate) use talk::SentNode;

use super::model::{Action, Ask, CheckPlan, Group, Step};
use super::node::{Node, Table};
use super::text::{Fill, Marks, Text};
use crate::{FileSource, HttpVersion};
use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;
use toml::de::DeTable;
use units::{Nanos, ParseError, quoted};
use url::Url;

/// Maximum size of a check plan in bytes.
pub const PLAN_BYTES_MAX: usize = 16 << 20;
const STEPS_MAX: usize = 10_000;
const MEMBERS_MAX: usize = 1_000;
const REPEAT_MAX: u32 = 100_000;
const TIMEOUT: Nanos = Nanos::from_secs(30);
const CONNECT: Nanos = Nanos::from_secs(5);
/// Time limit for a file or folder to become as expected.
const WITHIN: Nanos = Nanos::from_secs(2);

/// Keys of plans that only `run` reads.
const LOAD_KEYS: [&str; 7] =
    ["journey", "feeder", "scenario", "load", "stop", "targets", "urls_file"];

/// Options from outside the file.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// Replaces the plan's base.
    pub base: Option<Url>,
    /// Values that replace variables of the plan.
    pub set: Vec<(String, String)>,
    /// HTTP version of the steps that name none; replaces the plan's.
    pub http: Option<HttpVersion>,
}

/// Parses a file's text into a check plan. `files` reads the files that it names.
///
/// # Errors
/// Fails for invalid TOML, an unknown key, an invalid value, an unreadable file, or an undefined
/// variable: one sentence with the line.
pub fn from_toml(
    text: &str,
    given: &Given,
    files: &dyn FileSource,
) -> Result<CheckPlan, ParseError> {
    if text.len() > PLAN_BYTES_MAX {
        return Err(ParseError("the check plan is longer than 16 MiB".to_owned()));
    }
    let parsed = DeTable::parse(text).map_err(|error| {
        ParseError(format!("the check plan is invalid: {}", error.to_string().trim_end()))
    })?;
    let mut top = Table::new(text, 0, "a check plan", parsed.get_ref());
    if let Some(key) = LOAD_KEYS.iter().find(|key| top.find(key).is_some()) {
        return Err(ParseError(format!(
            "this is the plan of a load and not a check plan (it has {key}): run it with loadstone \
             run"
        )));
    }
    match top.take("version").map(|node| node.text_or_number()).transpose()?.as_deref() {
        Some("1") => {}
        None => return Err(ParseError("a check plan must begin with `version = 1`".to_owned())),
        Some(other) => {
            return Err(ParseError(format!(
                "the check plan has version {other}; this loadstone reads version 1"
            )));
        }
    }
    let vars = read_vars(top.take("vars"), given)?;
    let mut reader = Reader::new(vars, files, Marks::Dollar);
    let (name, base, connect) = reader.check_table(top.take("check"), given)?;
    let steps = match top.take("step") {
        Some(node) => reader.steps(&node)?,
        None => Vec::new(),
    };
    top.close()?;
    if steps.is_empty() {
        return Err(ParseError("the check plan has no [[step]]".to_owned()));
    }
    Ok(CheckPlan { name, base, connect, steps })
}

/// Reads `[vars]`, with the replacements of `--set`.
pub(crate) fn read_vars(
    node: Option<Node<'_>>,
    given: &Given,
) -> Result<BTreeMap<String, String>, ParseError> {
    let mut vars = BTreeMap::new();
    for node in node.map(|node| node.table()).transpose()?.iter_mut().flat_map(Table::rest) {
        vars.insert(node.key.to_owned(), node.text_or_number()?);
    }
    for (name, value) in &given.set {
        let Some(slot) = vars.get_mut(name) else {
            let known: Vec<&str> = vars.keys().map(String::as_str).collect();
            let known = if known.is_empty() { "it has none".to_owned() } else { known.join(", ") };
            return Err(ParseError(format!(
                "--set {name}: the plan has no such variable in [vars]; it has: {known}"
            )));
        };
        slot.clone_from(value);
    }
    Ok(vars)
}

/// State while the steps are read, in order.
pub(crate) struct Reader<'f> {
    pub(crate) vars: BTreeMap<String, String>,
    /// Names that an earlier step captures, and other names that will have a value.
    pub(crate) captured: BTreeSet<String>,
    files: &'f dyn FileSource,
    /// Names of the steps so far.
    pub(crate) names: BTreeSet<String>,
    pub(crate) marks: Marks,
    timeout: Nanos,
    headers: Vec<(String, Text)>,
    jar: Option<String>,
    http: HttpVersion,
}

impl<'f> Reader<'f> {
    pub(crate) fn new(
        vars: BTreeMap<String, String>,
        files: &'f dyn FileSource,
        marks: Marks,
    ) -> Reader<'f> {
        Reader {
            vars,
            captured: BTreeSet::new(),
            files,
            names: BTreeSet::new(),
            marks,
            timeout: TIMEOUT,
            headers: Vec::new(),
            jar: None,
            http: HttpVersion::Http11,
        }
    }
}

impl Reader<'_> {
    /// Reads `[check]`: name, base and connect timeout; the rest are defaults of every step.
    fn check_table(
        &mut self,
        node: Option<Node<'_>>,
        given: &Given,
    ) -> Result<(String, Url, Nanos), ParseError> {
        let Some(node) = node else {
            return Err(ParseError("the check plan has no [check] table".to_owned()));
        };
        let mut table = node.table()?;
        let name = table.take("name").map(|node| self.settled(&node)).transpose()?;
        let named = table.take("base");
        let base = match (&given.base, named) {
            (Some(base), _) => base.clone(),
            (None, Some(node)) => {
                parse_base(&self.settled(&node)?).map_err(|why| node.fault(why))?
            }
            (None, None) => {
                return Err(table.fault("there is no base; add base = \"http://…\" or give --base"));
            }
        };
        if let Some(node) = table.take("timeout") {
            self.timeout = self.duration(&node)?;
        }
        let connect = table.take("connect").map(|node| self.duration(&node)).transpose()?;
        if let Some(node) = table.take("headers") {
            self.headers = self.headers(&node)?;
        }
        self.jar = match table.take("jar") {
            Some(node) => ask::jar(&node)?,
            None => Some(ask::JAR.to_owned()),
        };
        let http = table.take("http").map(|node| self.version(&node)).transpose()?;
        self.http = given.http.or(http).unwrap_or(HttpVersion::Auto);
        table.close()?;
        Ok((name.unwrap_or_else(|| "check".to_owned()), base, connect.unwrap_or(CONNECT)))
    }

    fn steps(&mut self, node: &Node<'_>) -> Result<Vec<Step>, ParseError> {
        let tables = node.tables()?;
        if tables.len() > STEPS_MAX {
            return Err(ParseError(format!("the check plan has more than {STEPS_MAX} steps")));
        }
        tables.into_iter().map(|table| self.step(table)).collect()
    }

    fn step(&mut self, mut table: Table<'_>) -> Result<Step, ParseError> {
        let line = table.line();
        let name = self.name(&mut table)?;
        let skip = table.take("when").map(|node| self.read_condition(&node)).transpose()?.flatten();
        let repeat = table.take("repeat").map(|node| self.number(&node)).transpose()?;
        let repeat = repeat.unwrap_or(1);
        if !(1..=REPEAT_MAX).contains(&repeat) {
            return Err(table.fault(format!("repeat is {repeat}; give 1 to {REPEAT_MAX}")));
        }
        let request = self.request(&mut table, true)?;
        let kinds = [table.take("together"), table.take("file"), table.take("dir")];
        let action = match (request, kinds) {
            (Some(ask), [None, None, None]) => Action::Ask(Box::new(ask)),
            (None, [Some(members), None, None]) => {
                Action::Together(self.group(&members, &mut table)?)
            }
            (None, [None, Some(path), None]) => {
                let within = self.within(&mut table)?;
                let wanted = self.file_content(&mut table)?;
                Action::File { path: self.place(&path)?, wanted, within }
            }
            (None, [None, None, Some(path)]) => {
                let within = self.within(&mut table)?;
                let wanted = self.entries(&mut table)?;
                Action::Folder { path: self.place(&path)?, wanted, within }
            }
            _ => {
                return Err(table.fault("a step has one of url, connect, together, file and dir"));
            }
        };
        table.close()?;
        self.learn(&action);
        Ok(Step { name, line, skip, repeat, action })
    }

    /// Reads the request of a table with `url` or `connect`; `None` if it has neither.
    fn request(&self, table: &mut Table<'_>, close: bool) -> Result<Option<Ask>, ParseError> {
        match (table.take("url"), table.take("connect")) {
            (Some(url), None) => self.read_ask(&url, table, close).map(Some),
            (None, Some(url)) => self.talk(&url, table).map(Some),
            (None, None) => Ok(None),
            (Some(_), Some(_)) => Err(table.fault("give url or connect, not both")),
        }
    }

    /// Makes the step's captures known to later steps.
    fn learn(&mut self, action: &Action) {
        let asks: Vec<_> = match action {
            Action::Ask(ask) => vec![&**ask],
            Action::Together(group) => group.members.iter().map(|(_, ask)| ask).collect(),
            Action::File { .. } | Action::Folder { .. } => Vec::new(),
        };
        let names = asks.iter().flat_map(|ask| &ask.capture).map(|(name, _)| name.clone());
        self.captured.extend(names);
    }

    pub(crate) fn name(&mut self, table: &mut Table<'_>) -> Result<String, ParseError> {
        let Some(node) = table.take("name") else {
            return Err(table.fault("it has no name; add name = \"…\""));
        };
        let name = self.settled(&node)?;
        self.take_name(&node, name)
    }

    /// Checks that no earlier part has the name.
    pub(crate) fn take_name(
        &mut self,
        node: &Node<'_>,
        name: String,
    ) -> Result<String, ParseError> {
        if name.trim().is_empty() {
            return Err(node.fault("the name is empty"));
        }
        if !self.names.insert(name.clone()) {
            return Err(node.fault(format!("{} is the name of an earlier step", quoted(&name))));
        }
        Ok(name)
    }

    /// Reads `when = { variable = value }` or a list of values: returns why the step is skipped.
    fn read_condition(&self, node: &Node<'_>) -> Result<Option<String>, ParseError> {
        for node in node.table()?.rest() {
            let Some(value) = self.vars.get(node.key) else {
                return Err(node.fault(format!("there is no variable {} in [vars]", node.key)));
            };
            let wanted: Vec<String> =
                node.list().iter().map(Node::text_or_number).collect::<Result<_, _>>()?;
            if !wanted.contains(value) {
                let wanted = wanted.join(" or ");
                return Ok(Some(format!("for {} = {wanted}, and it is {value}", node.key)));
            }
        }
        Ok(None)
    }

    fn group(&mut self, members: &Node<'_>, table: &mut Table<'_>) -> Result<Group, ParseError> {
        let tables = members.tables()?;
        if !(2..=MEMBERS_MAX).contains(&tables.len()) {
            return Err(members.fault(format!("a group has 2 to {MEMBERS_MAX} requests")));
        }
        let mut group = Group::default();
        for mut table in tables {
            let Some(node) = table.take("name") else {
                return Err(table.fault("it has no name; add name = \"…\""));
            };
            let name = self.settled(&node)?;
            if group.members.iter().any(|(known, _)| *known == name) {
                return Err(node.fault("two requests of the group have this name"));
            }
            // open until the whole group is done: a connection that ends makes room for another
            let Some(ask) = self.request(&mut table, false)? else {
                return Err(table.fault("it has neither url nor connect"));
            };
            table.close()?;
            group.members.push((name, ask));
        }
        let Some(node) = table.take("expect") else { return Ok(group) };
        let mut expect = node.table()?;
        if let Some(node) = expect.take("order") {
            group.order =
                node.list().iter().map(|node| self.settled(node)).collect::<Result<_, _>>()?;
            let unknown = group
                .order
                .iter()
                .find(|name| group.members.iter().all(|(known, _)| known != *name));
            if let Some(unknown) = unknown {
                return Err(node.fault(format!("no request of the group is called {unknown:?}")));
            }
        }
        group.succeeded = expect.take("succeeded").map(|node| self.number(&node)).transpose()?;
        group.failed = expect.take("failed").map(|node| self.number(&node)).transpose()?;
        (group.at_least, group.at_most) = self.bounds(&mut expect)?;
        expect.close()?;
        Ok(group)
    }

    /// Reads `at-least` and `at-most`, or `time`, a bound or a list of bounds.
    fn bounds(&self, table: &mut Table<'_>) -> Result<(Option<Nanos>, Option<Nanos>), ParseError> {
        let mut least = table.take("at-least").map(|node| self.duration(&node)).transpose()?;
        let mut most = table.take("at-most").map(|node| self.duration(&node)).transpose()?;
        for node in table.take("time").iter().flat_map(Node::list) {
            let text = self.settled(&node)?;
            let (end, bound) = time_bound(text.trim()).map_err(|why| node.fault(why))?;
            let slot = if end == TimeEnd::Most { &mut most } else { &mut least };
            if slot.replace(bound).is_some() {
                return Err(node.fault("the time has this bound already; give it once"));
            }
        }
        if let (Some(least), Some(most)) = (least, most)
            && least > most
        {
            return Err(table.fault("the lower bound of the time is above the upper one"));
        }
        Ok((least, most))
    }

    /// Returns a path below the site's root.
    fn place(&self, node: &Node<'_>) -> Result<String, ParseError> {
        let path = self.settled(node)?;
        if path.starts_with('/') || path.split('/').any(|part| part == "..") {
            return Err(node.fault("write a path below the site's root, which --root names"));
        }
        Ok(path)
    }

    fn within(&self, table: &mut Table<'_>) -> Result<Nanos, ParseError> {
        let within = table.take("within").map(|node| self.duration(&node)).transpose()?;
        Ok(within.unwrap_or(WITHIN))
    }

    /// Returns a text that may contain captured values.
    pub(crate) fn template(&self, node: &Node<'_>) -> Result<Text, ParseError> {
        self.fill(node, &node.text_or_number()?, Fill::AsIs)
    }

    pub(crate) fn fill(&self, node: &Node<'_>, text: &str, fill: Fill) -> Result<Text, ParseError> {
        let known = |name: &str| self.captured.contains(name);
        Text::read(text, (self.marks, fill), &self.vars, &known).map_err(|why| node.fault(why))
    }

    /// Returns a regular expression that may contain captured values.
    pub(crate) fn pattern(&self, node: &Node<'_>) -> Result<Text, ParseError> {
        self.pattern_of(node, &node.text_or_number()?)
    }

    fn pattern_of(&self, node: &Node<'_>, text: &str) -> Result<Text, ParseError> {
        let template = self.fill(node, text, Fill::Pattern)?;
        if let Some(text) = template.settled() {
            crate::rules::check_regex(&text).map_err(|why| node.fault(why))?;
        }
        Ok(template)
    }

    /// Returns a text that is known before anything is sent.
    pub(crate) fn settled(&self, node: &Node<'_>) -> Result<String, ParseError> {
        let text = self.template(node)?.settled();
        text.ok_or_else(|| node.fault("captured values cannot be used here, variables can"))
    }

    pub(crate) fn duration(&self, node: &Node<'_>) -> Result<Nanos, ParseError> {
        units::parse_duration(&self.settled(node)?).map_err(|why| node.fault(why))
    }

    pub(crate) fn number<T: FromStr>(&self, node: &Node<'_>) -> Result<T, ParseError> {
        let text = self.settled(node)?;
        let why = || node.fault(format!("{} is not a whole number in range", quoted(&text)));
        text.trim().parse().map_err(|_| why())
    }
}

/// The end of a time that a bound limits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TimeEnd {
    Least,
    Most,
}

/// Parses `<200ms`, `<=200ms`, `>1s` or `>=1s`: the returned time itself is within the bound.
fn time_bound(text: &str) -> Result<(TimeEnd, Nanos), ParseError> {
    let bounds = [
        ("<=", TimeEnd::Most),
        (">=", TimeEnd::Least),
        ("<", TimeEnd::Most),
        (">", TimeEnd::Least),
    ];
    let found =
        bounds.into_iter().find_map(|(sign, end)| Some((sign, end, text.strip_prefix(sign)?)));
    let Some((sign, end, rest)) = found else {
        let why =
            format!("{} is not a bound on a time: write \"<200ms\" or \">=1s\"", quoted(text));
        return Err(ParseError(why));
    };
    let bound = units::parse_duration(rest.trim())?;
    match sign {
        "<" if bound.is_zero() => Err(ParseError("no time is below zero".to_owned())),
        "<" => Ok((end, bound - Nanos(1))),
        ">" => Ok((end, bound + Nanos(1))),
        _ => Ok((end, bound)),
    }
}

/// Returns the base of relative URLs: http or https, without a login.
///
/// # Errors
/// Fails for any other text.
pub fn parse_base(text: &str) -> Result<Url, ParseError> {
    let location = crate::parse_url(text)?;
    if location.auth.is_some() {
        return Err(ParseError("leave the login out of the base; steps have user = \"…\"".into()));
    }
    Ok(location.url)
}
