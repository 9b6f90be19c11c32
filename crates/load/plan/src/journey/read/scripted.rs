//! Journeys that a program carries out: its text, the names of its steps, and its permitted
//! servers.

use super::super::model::{JourneyPart, JourneyProgram, JourneyStep};
use super::super::tables;
use super::sockets::bare_ask;
use super::{JourneyReader, NAME_RULE, STEPS_MAX, is_valid_in_objectives};
use crate::ScriptPlan;
use crate::check::node::{Node, Table};
use crate::check::read::ask::{METRIC_NAME_RULE, is_metric_name};
use crate::check::read::parse_base;
use crate::check::{CaptureMetric, Text};
use units::{ParseError, quoted};
use url::Url;

/// Maximum number of servers that one program may call in addition to the base.
const SERVERS_MAX: usize = 1_000;

/// A program and the steps under which its calls are counted.
pub(super) struct ProgramParts {
    pub(super) program: JourneyProgram,
    pub(super) parts: Vec<JourneyPart>,
}

impl JourneyReader<'_> {
    /// Returns the journey's program; `None` if the plan defines its steps.
    pub(super) fn program(
        &mut self,
        table: &mut Table<'_>,
    ) -> Result<Option<ProgramParts>, ParseError> {
        let name = table.take("script-name").map(|node| node.text()).transpose()?;
        let (name, text) = match (table.take("script"), table.take("script-file")) {
            (None, None) => return Ok(None),
            (Some(text), None) => {
                (name.unwrap_or("script").to_owned(), text.text()?.as_bytes().to_vec())
            }
            (None, Some(path)) => {
                let path = self.reader.settled(&path)?;
                let text = tables::program_text(&path, self.files)?;
                (name.map_or(path, str::to_owned), text.into_bytes())
            }
            (Some(_), Some(file)) => return Err(file.fault("script is given too: drop one")),
        };
        if let Some(step) = table.find("step") {
            return Err(step.fault("the script makes the calls: name them in steps = [\"…\"]"));
        }
        let args = self.texts(table.take("args"))?;
        let first_row = self.steps.len() as u32;
        let Some(steps) = table.take("steps") else {
            let why = "its script needs steps = [\"…\"], the names of the calls that it makes";
            return Err(table.fault(why));
        };
        let parts = self.scripted_steps(&steps, table.line())?;
        let servers = self.servers(table.take("servers"))?;
        let feeders = self.used_feeders(table.take("feeders"))?;
        let files = self.script_files(table.take("script-files"))?;
        let mut metrics = Vec::new();
        for name in self.texts(table.take("metrics"))? {
            if !is_metric_name(&name) {
                return Err(table.fault(METRIC_NAME_RULE));
            }
            metrics.push(CaptureMetric { name, row: 0 });
        }
        self.number_metrics(metrics.iter_mut(), table)?;
        let script = ScriptPlan { name, text, args, files };
        let program = JourneyProgram { script, servers, feeders, metrics, first_row };
        Ok(Some(ProgramParts { program, parts }))
    }

    /// Returns the files of a script: paths, or tables with `name` and `text`.
    fn script_files(&self, node: Option<Node<'_>>) -> Result<Vec<(String, String)>, ParseError> {
        let mut all = Vec::new();
        for node in node.iter().flat_map(Node::list) {
            if node.is_text() {
                let path = self.reader.settled(&node)?;
                let text = tables::program_text(&path, self.files)?;
                all.push((path, text));
                continue;
            }
            let mut table = node.table()?;
            let (Some(name), Some(text)) = (table.take("name"), table.take("text")) else {
                return Err(table.fault("a file of a script has a name and a text"));
            };
            all.push((name.text()?.to_owned(), text.text()?.to_owned()));
            table.close()?;
        }
        Ok(all)
    }

    fn texts(&self, node: Option<Node<'_>>) -> Result<Vec<String>, ParseError> {
        let all = node.iter().flat_map(Node::list).collect::<Vec<_>>();
        all.iter().map(|node| self.reader.settled(node)).collect()
    }

    fn scripted_steps(
        &mut self,
        node: &Node<'_>,
        line: usize,
    ) -> Result<Vec<JourneyPart>, ParseError> {
        let names = node.list();
        if names.is_empty() {
            return Err(node.fault("name the calls that the script makes"));
        }
        let mut parts = Vec::with_capacity(names.len());
        for node in names {
            let name = self.reader.settled(&node)?;
            let name = self.reader.take_name(&node, name)?;
            if !is_valid_in_objectives(&name) {
                return Err(node.fault(NAME_RULE));
            }
            if self.steps.len() == STEPS_MAX {
                return Err(node.fault(format!("a plan has {STEPS_MAX} steps at most")));
            }
            let row = self.steps.len() as u32;
            self.steps.push(name.clone());
            parts.push(JourneyPart::Step(Box::new(scripted_step(name, line, row, self.captures))));
        }
        Ok(parts)
    }

    fn servers(&self, node: Option<Node<'_>>) -> Result<Vec<Url>, ParseError> {
        let mut all = Vec::new();
        for node in node.iter().flat_map(Node::list) {
            let text = self.reader.settled(&node)?;
            all.push(parse_base(&text).map_err(|why| node.fault(why))?);
            if all.len() > SERVERS_MAX {
                return Err(node.fault(format!("a script has {SERVERS_MAX} servers at most")));
            }
        }
        Ok(all)
    }

    fn used_feeders(&self, node: Option<Node<'_>>) -> Result<Vec<String>, ParseError> {
        let mut all = Vec::new();
        for node in node.iter().flat_map(Node::list) {
            let name = self.reader.settled(&node)?;
            if !self.feeders.contains(&name) {
                return Err(node.fault(format!("{} is not a [[feeder]]", quoted(&name))));
            }
            all.push(name);
        }
        Ok(all)
    }
}

/// Returns a named row for calls of a program, which defines their requests.
fn scripted_step(name: String, line: usize, row: u32, first_capture: u32) -> JourneyStep {
    JourneyStep { row, first_capture, ..JourneyStep::new(name, line, bare_ask(Text::plain(""))) }
}
