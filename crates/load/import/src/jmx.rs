//! JMeter test plans (JMX).
//!
//! Elements apply by scope: the configuration elements, timers, assertions and extractors of a tree
//! apply to all samplers in it, in addition to those of outer trees. A disabled element disables
//! its subtree.

mod assertions;
mod conditions;
mod controllers;
mod elements;
mod functions;
mod loads;
mod sampler;
mod scope;

pub(crate) use scope::{csv_rows, csv_text};

use crate::ImportRequest;
use crate::draft::*;
use elements::{Element, elements};
use functions::Functions;
use roxmltree::{Document, Node, ParsingOptions};
use scope::JmxScope;
use units::Nanos;

/// Maximum number of nodes of a document.
const NODES_MAX: u32 = 4_000_000;
/// Maximum nesting depth of elements.
const DEPTH_MAX: usize = 100;

pub(crate) fn read(text: &str, request: &ImportRequest<'_>) -> Result<PlanDraft, String> {
    if nesting(text) > 4 * DEPTH_MAX {
        return Err("its elements are nested too deeply".to_owned());
    }
    let options =
        ParsingOptions { allow_dtd: false, nodes_limit: NODES_MAX, ..ParsingOptions::default() };
    let document = Document::parse_with_options(text, options)
        .map_err(|error| format!("it is not supported XML: {error}"))?;
    let root = document.root_element();
    if root.tag_name().name() != "jmeterTestPlan" {
        return Err("it is not a JMeter test plan: its root is not jmeterTestPlan".to_owned());
    }
    let mut draft = PlanDraft::default();
    draft.settings.no_cookies = true;
    let mut reader = DraftReader {
        functions: Functions::new(request.properties),
        draft,
        request,
        document: &document,
        pauses: Vec::new(),
        groups: 0,
        modules: Vec::new(),
        modules_bytes: 0,
    };
    let tree = root.children().find(|node| node.has_tag_name("hashTree"));
    let Some(tree) = tree else {
        return Err("it is not a JMeter test plan: it has no hashTree".to_owned());
    };
    reader.tree(tree, &JmxScope::default(), 0);
    reader.finish();
    Ok(reader.draft)
}

/// Returns the nesting depth of the elements without parsing: the parser uses the stack for each
/// level.
fn nesting(text: &str) -> usize {
    let (mut depth, mut most) = (0_usize, 0);
    for (at, _) in text.match_indices('<') {
        let rest = &text.as_bytes()[at + 1..];
        match rest.first() {
            Some(b'/') => depth = depth.saturating_sub(1),
            Some(byte) if byte.is_ascii_alphabetic() => {
                let end = rest.iter().position(|byte| *byte == b'>');
                let closed = end.is_some_and(|end| end > 0 && rest[end - 1] == b'/');
                depth += usize::from(!closed);
                most = most.max(depth);
            }
            _ => {}
        }
    }
    most
}

struct DraftReader<'a> {
    functions: Functions,
    draft: PlanDraft,
    request: &'a ImportRequest<'a>,
    document: &'a Document<'a>,
    /// Pauses before the samplers of the current thread group, in order: lowest and highest.
    pauses: Vec<(Nanos, Nanos)>,
    groups: usize,
    /// Positions of the referenced controllers whose conversion is in progress, to detect cycles.
    modules: Vec<usize>,
    /// Total size of the controllers inserted for modules so far.
    modules_bytes: usize,
}

/// Elements that only show or store results.
const LISTENERS: [&str; 12] = [
    "ResultCollector",
    "Summariser",
    "BackendListener",
    "kg.apc.jmeter.vizualizers.CorrectedResultCollector",
    "kg.apc.jmeter.reporters.FlexibleFileWriter",
    "kg.apc.jmeter.perfmon.PerfMonCollector",
    "ResultSaver",
    "ResultAction",
    "MailerResultCollector",
    "com.blazemeter.jmeter.RandomCSVReader",
    "DebugPostProcessor",
    "DebugSampler",
];

impl<'a> DraftReader<'a> {
    fn line(&self, node: Node<'_, '_>) -> usize {
        self.document.text_pos_at(node.range().start).row as usize
    }

    fn leave_out(&mut self, element: &Element<'_, '_>, why: &str) {
        let line = self.line(element.node);
        let what = format!("{} {}", element.kind(), element.name());
        self.draft.left_out.add(line, what, why);
    }

    fn text(&mut self, source: &str, node: Node<'_, '_>) -> crate::text::Text {
        let line = self.line(node);
        self.functions.text(source, line, &mut self.draft.left_out)
    }

    /// Reads the top level of the plan: global configuration, and thread groups.
    fn tree(&mut self, tree: Node<'_, '_>, outer: &JmxScope, depth: usize) {
        if depth > DEPTH_MAX {
            return;
        }
        let all = elements(tree);
        let scope = self.scope(&all, outer);
        for element in &all {
            match element.kind() {
                "TestPlan" => self.test_plan(element, &scope, depth),
                kind if kind.ends_with("ThreadGroup") || kind.ends_with("ArrivalsThreadGroup") => {
                    self.thread_group(element, &scope, depth);
                }
                kind if scope::is_config(kind) || LISTENERS.contains(&kind) => {}
                "TestFragmentController" | "TestFragment" => {}
                _ => self.leave_out(element, "it is not known outside of a thread group"),
            }
        }
    }

    fn test_plan(&mut self, element: &Element<'_, '_>, outer: &JmxScope, depth: usize) {
        let variables = element.variables("TestPlan.user_defined_variables");
        self.define(&variables);
        if element.is_true("TestPlan.serialize_threadgroups") {
            self.leave_out(element, "thread groups run one after another there, and at once here; set start of each scenario");
        }
        if let Some(tree) = element.tree {
            self.tree(tree, outer, depth + 1);
        }
    }

    /// Reads the variables that the file defines.
    fn define(&mut self, variables: &[(String, String, Node<'_, '_>)]) {
        for (name, value, node) in variables {
            let value = self.text(value, *node);
            if !name.is_empty() {
                self.draft.vars.retain(|(known, _)| known != name);
                self.draft.vars.push((name.clone(), value));
            }
        }
    }

    fn thread_group(&mut self, element: &Element<'_, '_>, scope: &JmxScope, depth: usize) {
        let kind = element.kind();
        let Some(tree) = element.tree else { return };
        self.groups += 1;
        let name = match element.name() {
            "" => format!("Thread Group {}", self.groups),
            name => name.to_owned(),
        };
        let all = elements(tree);
        let inner = self.scope(&all, scope);
        self.pauses.clear();
        let mut parts = self.parts(&all, &inner, depth + 1);
        if kind == "SetupThreadGroup" || kind == "PostThreadGroup" {
            let mut steps = Vec::new();
            self.plain_steps(parts, &mut steps);
            let place = if kind == "SetupThreadGroup" {
                &mut self.draft.setup
            } else {
                &mut self.draft.teardown
            };
            place.append(&mut steps);
            return;
        }
        let think = self.place_pauses(&mut parts);
        let on_error = element.text("ThreadGroup.on_sample_error");
        let ends = matches!(on_error.as_str(), "startnextloop" | "stopthread");
        if ["stoptest", "stoptestnow", "stopthread"].contains(&on_error.as_str()) {
            let why = format!(
                "on_sample_error {on_error}: a failure ends the iteration at most; --abort-if ends a run"
            );
            self.leave_out(element, &why);
        }
        let samplers = count_steps(&parts);
        self.draft.journeys.push(DraftJourney {
            name: name.clone(),
            weight: None,
            think,
            ends_on_failure: ends,
            parts,
        });
        let load = self.load(element, name, samplers, &inner);
        self.draft.loads.push(load);
    }

    /// Appends the steps of a setup group, which run once, to `out`, in order.
    fn plain_steps(&mut self, pieces: Vec<DraftPiece>, out: &mut Vec<DraftStep>) {
        for piece in pieces {
            match piece {
                DraftPiece::Step(mut step) => {
                    if !step.guard.is_empty() {
                        let why = "steps before and after the load run once, without a condition";
                        self.draft.left_out.add(step.line, step.name.clone(), why);
                        step.guard = DraftGuard::default();
                    }
                    out.push(*step);
                }
                DraftPiece::Block(block) => {
                    if !block.guard.is_empty() {
                        let why = "steps before and after the load run once, without a condition";
                        self.draft.left_out.add(0, block.name.clone(), why);
                    }
                    self.plain_steps(block.parts, out);
                }
            }
        }
    }

    /// Moves pauses: timers pause before a sampler, a plan pauses after a step. Returns the pause
    /// of the journey if all are the same.
    fn place_pauses(&mut self, parts: &mut [DraftPiece]) -> Option<String> {
        let pauses = std::mem::take(&mut self.pauses);
        let first = pauses.first().copied()?;
        let zero = (Nanos::ZERO, Nanos::ZERO);
        if pauses.iter().all(|pause| *pause == first) {
            return (first != zero).then(|| pause_text(first));
        }
        let shifted: Vec<_> = pauses.iter().skip(1).chain([&first]).copied().collect();
        let mut next = shifted.into_iter();
        set_pauses(parts, &mut next);
        let note = "A JMeter timer pauses before its sampler, and a think time after its step: \
            each pause moves to the previous step, that of the first step to the last.";
        if !self.draft.notes.iter().any(|known| known == note) {
            self.draft.notes.push(note.to_owned());
        }
        None
    }

    fn finish(&mut self) {
        self.draft.tables.append(&mut self.functions.tables);
        self.draft.made.append(&mut self.functions.made);
        if self.draft.loads.len() > 1 {
            for load in &mut self.draft.loads {
                if load.iterations.take().is_some() && load.duration.is_none() {
                    load.duration = Some(Nanos::from_secs(60));
                    let why =
                        "several loads end by time and not by loops: its duration is set to 60 s";
                    self.draft.left_out.add(0, format!("loops of {}", load.name), why);
                }
            }
        }
    }
}

fn set_pauses(parts: &mut [DraftPiece], next: &mut dyn Iterator<Item = (Nanos, Nanos)>) {
    for part in parts {
        match part {
            DraftPiece::Step(step) => {
                if let Some(pause) = next.next().filter(|pause| pause.1 > Nanos::ZERO) {
                    step.think = Some(pause_text(pause));
                }
            }
            DraftPiece::Block(block) => set_pauses(&mut block.parts, next),
        }
    }
}

fn pause_text((low, high): (Nanos, Nanos)) -> String {
    let span = crate::write::span;
    if low == high { span(low) } else { format!("{}..{}", span(low), span(high)) }
}

fn count_steps(parts: &[DraftPiece]) -> usize {
    let count = |part: &DraftPiece| match part {
        DraftPiece::Step(_) => 1,
        DraftPiece::Block(block) => count_steps(&block.parts),
    };
    parts.iter().map(count).sum()
}
