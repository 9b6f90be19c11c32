//! Controllers: blocks, loops, conditions.

use super::conditions::condition;
use super::elements::{self, Element, elements};
use super::scope::{JmxScope, is_config};
use super::{DEPTH_MAX, DraftReader, LISTENERS};
use crate::draft::*;
use crate::text::{Maker, Text};

/// Number of rounds of a loop without an end.
const ROUNDS_MAX: u32 = 100_000;
const WHILE_MAX: u32 = 1_000;
/// Maximum total size of the controllers inserted for modules, in bytes of the file.
const MODULES_BYTES_MAX: usize = 64 << 20;
/// Minimum size that each module adds to that total.
const MODULE_BYTES_MIN: usize = 1 << 10;

impl DraftReader<'_> {
    /// Converts the samplers and controllers of a tree.
    pub(super) fn parts(
        &mut self,
        all: &[Element<'_, '_>],
        scope: &JmxScope,
        depth: usize,
    ) -> Vec<DraftPiece> {
        let mut pieces = Vec::new();
        if depth > DEPTH_MAX {
            return pieces;
        }
        for element in all {
            match element.kind() {
                "HTTPSamplerProxy" | "HTTPSampler" | "HTTPSampler2" => {
                    let step = self.sampler(element, scope);
                    pieces.push(DraftPiece::Step(Box::new(step)));
                }
                kind if kind.ends_with("Controller")
                    || kind == "InterleaveControl"
                    || kind == "RunTime" =>
                {
                    self.controller(element, scope, depth, &mut pieces);
                }
                "TestAction" => self.pause(element, &mut pieces),
                kind if is_config(kind) => self.script(element),
                kind if LISTENERS.contains(&kind) => {}
                kind if kind.contains("JDBC") => {
                    self.leave_out(element, "it is not a request over HTTP")
                }
                "JSR223Sampler" | "BeanShellSampler" | "BSFSampler" => self.script(element),
                _ => self.leave_out(element, "it is not supported"),
            }
        }
        pieces
    }

    /// Converts a pause between samplers; other actions are listed.
    fn pause(&mut self, element: &Element<'_, '_>, pieces: &mut [DraftPiece]) {
        let pause = element.text("ActionProcessor.action") == "1"
            || element.text("ActionProcessor.action").is_empty();
        let millis =
            self.settled(&element.text("ActionProcessor.duration"), element).parse::<f64>();
        let inner = element.tree.map(elements).unwrap_or_default();
        let timed = self.scope(&inner, &JmxScope::default()).pause;
        let own =
            millis.ok().filter(|ms| *ms >= 0.0 && *ms < 8.64e7).map_or(0, |ms| (ms * 1e6) as u64);
        let total = (units::Nanos(timed.0.0 + own), units::Nanos(timed.1.0 + own));
        match pieces.last_mut() {
            Some(DraftPiece::Step(step)) if pause && total.1.0 > 0 => {
                step.comments.push(format!("pause of {} after it", super::pause_text(total)));
                step.think = Some(super::pause_text(total));
            }
            _ if pause && total.1.0 == 0 => {}
            _ => self.leave_out(
                element,
                "a pause follows a request, and other actions are not imported",
            ),
        }
    }

    /// Converts a script that only defines a variable; lists other scripts.
    fn script(&mut self, element: &Element<'_, '_>) {
        let kind = element.kind();
        if !kind.starts_with("JSR223") && !kind.starts_with("BeanShell") && !kind.starts_with("BSF")
        {
            return;
        }
        let script = format!(
            "{}{}{}",
            element.raw("script"),
            element.raw("BeanShellSampler.query"),
            element.raw("BeanShell.query")
        );
        for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let idle =
                line.starts_with("//") || line.starts_with("import ") || line.starts_with("log.");
            if idle {
                continue;
            }
            match one_liner(line) {
                Some((name, Assigned::Made(maker))) => {
                    self.functions.made.retain(|(known, _)| *known != name);
                    self.functions.made.push((name, maker));
                }
                Some((name, Assigned::Text(value))) => {
                    self.draft.vars.retain(|(known, _)| *known != name);
                    self.draft.vars.push((name, Text::plain(value)));
                }
                None => {
                    let why = format!("scripts are not executed: {line}");
                    return self.leave_out(element, &why);
                }
            }
        }
    }

    fn controller(
        &mut self,
        element: &Element<'_, '_>,
        outer: &JmxScope,
        depth: usize,
        pieces: &mut Vec<DraftPiece>,
    ) {
        if element.kind() == "ModuleController" {
            return self.module(element, outer, depth, pieces);
        }
        let Some(tree) = element.tree else { return };
        let all = elements(tree);
        let scope = self.scope(&all, outer);
        let mut parts = self.parts(&all, &scope, depth + 1);
        if parts.is_empty() {
            if element.kind() == "IncludeController" {
                let why = "the file that it refers to is not read; import it separately";
                self.leave_out(element, why);
            }
            return;
        }
        match element.kind() {
            "GenericController" | "RecordingController" | "TestFragmentController" => {
                return pieces.append(&mut parts);
            }
            "CriticalSectionController" => {
                let why = "critical sections are not supported; its steps run without a lock";
                self.leave_out(element, why);
                return pieces.append(&mut parts);
            }
            "OnceOnlyController" => {
                set_once(&mut parts);
                return pieces.append(&mut parts);
            }
            _ => {}
        }
        let name = if element.name().is_empty() { element.kind() } else { element.name() };
        if let Some(guard) = self.guard(element, &mut parts) {
            pieces.push(DraftPiece::Block(DraftBlock { name: name.to_owned(), guard, parts }));
        }
    }

    /// Converts the controller that a module refers to, in place of the module.
    fn module(
        &mut self,
        element: &Element<'_, '_>,
        outer: &JmxScope,
        depth: usize,
        pieces: &mut Vec<DraftPiece>,
    ) {
        let names = element.items("ModuleController.node_path");
        let names: Vec<&str> =
            names.iter().map(|it| it.text().unwrap_or_default().trim()).collect();
        // the first name is that of JMeter's root node, which the file does not contain
        let path = names.get(1..).unwrap_or_default();
        let document = self.document;
        let top = document.root_element().children().find(|node| node.has_tag_name("hashTree"));
        let found = top.and_then(|top| elements::element_at(top, path));
        let Some(target) = found.filter(|it| it.kind().ends_with("Controller")) else {
            let why = "the controller that it refers to is not in the file";
            return self.leave_out(element, why);
        };
        let id = target.node.range().start;
        let size = target.tree.map_or(0, |tree| tree.range().len());
        self.modules_bytes = self.modules_bytes.saturating_add(size.max(MODULE_BYTES_MIN));
        if self.modules.contains(&id) {
            let why = "it refers to a controller that contains it";
            return self.leave_out(element, why);
        }
        if self.modules_bytes > MODULES_BYTES_MAX {
            let why = "the modules before it already have the maximum size of a plan; import the \
                       test fragments separately";
            return self.leave_out(element, why);
        }
        self.modules.push(id);
        self.controller(&target, outer, depth + 1, pieces);
        self.modules.pop();
    }

    /// Returns when and how often the parts of a controller run; `None` for never.
    fn guard(
        &mut self,
        element: &Element<'_, '_>,
        parts: &mut Vec<DraftPiece>,
    ) -> Option<DraftGuard> {
        let mut guard = DraftGuard::default();
        match element.kind() {
            "TransactionController" => {}
            "LoopController" => return self.rounds(element),
            "IfController" | "WhileController" => self.conditional(element, &mut guard),
            "ThroughputController" => self.share(element, &mut guard),
            "RandomController" | "InterleaveControl" | "RandomOrderController" => {
                self.one_of(element, parts);
            }
            "SwitchController" => {
                let value = element.text("SwitchController.value");
                let text = self.text(&value, element.node);
                self.switch(element, &text, parts);
            }
            "ForeachController" => {
                self.leave_out(element, "loops over lists are not supported; its steps run once");
            }
            "RunTime" => self.leave_out(element, "its time is not kept; its steps run once"),
            _ => self.leave_out(element, "it is not known; its steps run unchanged"),
        }
        Some(guard)
    }

    /// Returns the rounds of a loop; `None` if there are none.
    fn rounds(&mut self, element: &Element<'_, '_>) -> Option<DraftGuard> {
        let mut guard = DraftGuard::default();
        let text = self.settled(&element.text("LoopController.loops"), element);
        match text.parse::<i64>() {
            Ok(-1) => guard.repeat = Some((ROUNDS_MAX, ROUNDS_MAX)),
            Ok(count) if count > 0 => {
                let count = count.min(i64::from(ROUNDS_MAX)) as u32;
                guard.repeat = Some((count, count));
            }
            Ok(_) => {
                self.leave_out(element, "its loop count is 0, so its steps are not in the plan");
                return None;
            }
            Err(_) => {
                let why = "its loop count is known only during the run; its steps run once";
                self.leave_out(element, why);
            }
        }
        Some(guard)
    }

    fn conditional(&mut self, element: &Element<'_, '_>, guard: &mut DraftGuard) {
        let looped = element.kind() == "WhileController";
        let key = if looped { "WhileController.condition" } else { "IfController.condition" };
        let text = self.text(&unwrapped(&element.text(key)), element.node);
        match (looped, condition(&text), super::conditions::negated(&text)) {
            (false, Some(when), _) => guard.when = when,
            (true, _, Some(until)) => {
                guard.repeat = Some((WHILE_MAX, WHILE_MAX));
                guard.until = until;
            }
            (true, ..) => {
                let why = "its condition is not a comparison with a value; its steps run once";
                self.leave_out(element, why);
            }
            (false, ..) => {
                let why = "its condition is not a comparison with a value; its steps always run";
                self.leave_out(element, why);
            }
        }
    }

    /// Restricts parts to a share of the iterations.
    fn share(&mut self, element: &Element<'_, '_>, guard: &mut DraftGuard) {
        let value = element.text("ThroughputController.percentThroughput").parse::<f64>();
        // 1 is a percentage, 0 a number of executions
        match value {
            Ok(value) if element.text("ThroughputController.style") == "1" && value > 0.0 => {
                guard.chance = Some((value / 100.0).min(1.0));
            }
            _ => {
                self.leave_out(element, "execution counts are not supported; its steps always run")
            }
        }
    }

    /// Runs one of the parts in each round, each with the same probability.
    fn one_of(&mut self, element: &Element<'_, '_>, parts: &mut [DraftPiece]) {
        if element.kind() == "RandomOrderController" {
            return self.leave_out(element, "its steps run in file order");
        }
        let chance = 1.0 / parts.len().max(1) as f64;
        for part in parts.iter_mut() {
            match part {
                DraftPiece::Step(step) => step.guard.chance = Some(chance),
                DraftPiece::Block(block) => {
                    block.guard.chance = Some(block.guard.chance.unwrap_or(1.0) * chance);
                }
            }
        }
        if parts.len() > 1 {
            self.draft.notes.push(format!(
                "{} {}: each of its {} parts runs with the same probability, so a round may run \
                 none or several.",
                element.kind(),
                element.name(),
                parts.len()
            ));
        }
    }

    fn switch(&mut self, element: &Element<'_, '_>, value: &Text, parts: &mut Vec<DraftPiece>) {
        let names = |index: usize, part: &DraftPiece| {
            let name = match part {
                DraftPiece::Step(step) => step.name.clone(),
                DraftPiece::Block(block) => block.name.clone(),
            };
            [index.to_string(), name]
        };
        if let Some(value) = value.settled() {
            let value = if value.is_empty() { "0".to_owned() } else { value };
            let at = parts
                .iter()
                .enumerate()
                .position(|(index, part)| names(index, part).contains(&value));
            let chosen = parts.drain(..).nth(at.unwrap_or(0));
            parts.extend(chosen);
            return;
        }
        let Some(variable) = value.single_name() else {
            return self
                .leave_out(element, "its value combines several variables; all its steps run");
        };
        for (index, part) in parts.iter_mut().enumerate() {
            let wanted = DraftRule::OneOf(names(index, part).map(Text::plain).to_vec());
            let guard = match part {
                DraftPiece::Step(step) => &mut step.guard,
                DraftPiece::Block(block) => &mut block.guard,
            };
            guard.when.push((variable.to_owned(), wanted));
        }
    }
}

fn set_once(parts: &mut [DraftPiece]) {
    for part in parts {
        match part {
            DraftPiece::Step(step) => step.once = true,
            DraftPiece::Block(block) => set_once(&mut block.parts),
        }
    }
}

/// Returns the condition inside `${__jexl3(…,)}` or `${__groovy(…,)}`.
fn unwrapped(text: &str) -> String {
    for function in ["${__jexl3(", "${__jexl2(", "${__groovy(", "${__javaScript("] {
        if let Some(inner) = text.trim().strip_prefix(function).and_then(|it| it.strip_suffix(")}"))
        {
            let inner = inner.trim_end().trim_end_matches(',');
            // in Groovy a variable is vars.get("name")
            let mut out = String::new();
            let mut rest = inner;
            while let Some((before, after)) = rest.split_once("vars.get(") {
                let Some((name, tail)) = after.split_once(')') else { break };
                out.push_str(before);
                out.push_str(&format!("${{{}}}", name.trim().trim_matches(['"', '\''])));
                rest = tail;
            }
            return format!("{out}{rest}");
        }
    }
    text.to_owned()
}

enum Assigned {
    Made(Maker),
    Text(String),
}

/// Parses `vars.put("name", value)` with a random value, a time or a text.
fn one_liner(line: &str) -> Option<(String, Assigned)> {
    let inner = line.trim_end_matches(';').trim().strip_prefix("vars.put(")?.strip_suffix(')')?;
    let (name, value) = inner.split_once(',')?;
    let name = name.trim().trim_matches(['"', '\'']).to_owned();
    let value: String = value.trim().to_owned();
    let dense: String = value.chars().filter(|c| !c.is_whitespace()).collect();
    let plain = value.len() > 1
        && (value.starts_with('"') && value.ends_with('"')
            || value.starts_with('\'') && value.ends_with('\''));
    let assigned = match () {
        () if dense.contains("UUID.randomUUID()") && !dense.contains('+') => {
            Assigned::Made(Maker::Uuid)
        }
        () if dense.contains("System.currentTimeMillis()/1000") => Assigned::Made(Maker::Seconds),
        () if dense.contains("System.currentTimeMillis()") && !dense.contains(['+', '-', '*']) => {
            Assigned::Made(Maker::Millis)
        }
        () if plain && !value[1..value.len() - 1].contains(['"', '\'', '$', '\\']) => {
            Assigned::Text(value[1..value.len() - 1].to_owned())
        }
        () if dense.contains("nextInt(") && !dense.contains("+") => {
            let bound = dense.split_once("nextInt(")?.1.split(')').next()?.parse::<i64>().ok()?;
            Assigned::Made(Maker::Range(0, bound.checked_sub(1).filter(|most| *most >= 0)?))
        }
        () => return None,
    };
    Some((name, assigned))
}
