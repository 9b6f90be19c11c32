//! Steps of a scenario.

use super::DraftReader;
use super::phases::time;
use crate::draft::*;
use crate::http_file::display_text;
use crate::place::tidy;
use crate::postman::{form, multipart};
use crate::scripts::is_status;
use crate::text::Text;
use crate::tree::{TreeNode, Value};

const METHODS: [&str; 7] = ["get", "post", "put", "patch", "delete", "head", "options"];
/// Maximum nesting depth of loops.
const DEPTH_MAX: usize = 20;
const ROUNDS_MAX: f64 = 100_000.0;

impl DraftReader<'_> {
    pub(super) fn flow(&mut self, steps: &[TreeNode], depth: usize) -> Vec<DraftPiece> {
        let mut pieces: Vec<DraftPiece> = Vec::new();
        for node in steps.iter().filter(|_| depth < DEPTH_MAX) {
            let request = node.map().iter().find(|(key, _)| METHODS.contains(&key.as_str()));
            if let Some((method, request)) = request {
                let step = self.step(method, request, node);
                pieces.push(DraftPiece::Step(Box::new(step)));
            } else if let Some(think) = node.get("think") {
                self.think(think, &mut pieces);
            } else if let Some(inner) = node.get("loop") {
                let block = self.repeat(node, inner, depth);
                pieces.push(DraftPiece::Block(block));
            } else if let Some(inner) = node.get("parallel") {
                self.draft.left_out.add(
                    inner.line,
                    "parallel",
                    "its requests run one after another",
                );
                pieces.extend(self.flow(inner.list(), depth + 1));
            } else if node.get("log").is_none() {
                let (key, inner) =
                    node.map().first().map_or(("step", node), |(key, inner)| (key.as_str(), inner));
                let why = match key {
                    "function" => "functions are JavaScript, which is not executed",
                    "emit" | "send" | "connect" | "namespace" => "it is not a request over HTTP",
                    _ => "it is not supported",
                };
                self.draft.left_out.add(
                    inner.line,
                    format!("{key} {}", inner.scalar().unwrap_or_default()),
                    why,
                );
            }
        }
        pieces
    }

    /// Adds a pause to the previous step.
    fn think(&mut self, node: &TreeNode, pieces: &mut [DraftPiece]) {
        let Some(pause) = time(node) else {
            return self.draft.left_out.add(
                node.line,
                "think",
                "its time is unknown before the run",
            );
        };
        match last_step(pieces) {
            Some(step) if step.think.is_none() => step.think = Some(crate::write::span(pause)),
            Some(_) => self.draft.left_out.add(
                node.line,
                "second think in a row",
                "a step has one pause after it",
            ),
            None => self.draft.left_out.add(
                node.line,
                "think before the first request",
                "a pause follows a step",
            ),
        }
    }

    fn repeat(&mut self, node: &TreeNode, inner: &TreeNode, depth: usize) -> DraftBlock {
        let parts = self.flow(inner.list(), depth + 1);
        let mut guard = DraftGuard::default();
        let count = node.get("count");
        match count.and_then(TreeNode::scalar) {
            Some(text) => {
                let (low, high) = text.split_once('-').unwrap_or((&text, &text));
                let number = |text: &str| {
                    text.trim()
                        .parse::<f64>()
                        .ok()
                        .filter(|it| (1.0..=ROUNDS_MAX).contains(it))
                        .map(|it| it as u32)
                };
                match (number(low), number(high)) {
                    (Some(low), Some(high)) if low <= high => guard.repeat = Some((low, high)),
                    _ => self.draft.left_out.add(
                        node.line,
                        "loop count",
                        "it is not a number; the loop runs once",
                    ),
                }
            }
            None if node.get("over").is_some() => {
                let rounds = node.list_at("over").len().clamp(1, 1_000) as u32;
                guard.repeat = Some((rounds, rounds));
                self.draft.left_out.add(
                    node.line,
                    "loop over",
                    "its rounds run, and $loopElement is the number of the round",
                );
            }
            None => {}
        }
        if let Some(condition) = node.get("whileTrue") {
            let why = "functions are JavaScript, which is not executed; the loop has a bound";
            self.draft.left_out.add(condition.line, "whileTrue", why);
        }
        DraftBlock {
            name: node.scalar_at("name").unwrap_or_else(|| "loop".to_owned()),
            guard,
            parts,
        }
    }

    fn step(&mut self, method: &str, node: &TreeNode, outer: &TreeNode) -> DraftStep {
        let line = outer.line;
        let mut step = DraftStep {
            line,
            comments: vec![format!("line {line}")],
            method: method.to_ascii_uppercase(),
            headers: self.headers.clone(),
            ..DraftStep::default()
        };
        // a request may be its URL
        let path = node
            .scalar()
            .or_else(|| node.scalar_at("url"))
            .or_else(|| node.scalar_at("uri"))
            .unwrap_or_default();
        let full = if path.starts_with('/') { format!("{}{path}", self.target) } else { path };
        let mut url = self.text(&full, line);
        for (index, (name, value)) in
            node.get("qs").map(TreeNode::map).unwrap_or_default().iter().enumerate()
        {
            let first = index == 0 && !full.contains('?');
            url.push_str(if first { "?" } else { "&" });
            url.push_str(&format!("{name}="));
            let value = self.text(&value.scalar().unwrap_or_default(), value.line);
            url.append(value);
        }
        step.url = tidy(url);
        step.name = node
            .scalar_at("name")
            .unwrap_or_else(|| format!("{} {}", step.method, display_text(&step.url)));
        for (key, inner) in node.map() {
            self.key(key, inner, &mut step);
        }
        step
    }

    fn key(&mut self, key: &str, node: &TreeNode, step: &mut DraftStep) {
        match key {
            "url" | "uri" | "qs" | "name" => {}
            "headers" => {
                for (name, value) in node.map() {
                    let value = self.text(&value.scalar().unwrap_or_default(), value.line);
                    step.set_header(name, value);
                }
            }
            "json" | "body" | "form" | "formData" => self.body(key, node, step),
            "cookie" => self.cookies(node, step),
            "auth" => self.login(node, step),
            "gzip" => self.draft.settings.compressed |= node.is_true(),
            "capture" => each(node).for_each(|one| self.capture(one, step)),
            "match" => each(node).for_each(|one| self.matching(one, step)),
            "expect" => {
                let rules = each(node).flat_map(TreeNode::map);
                rules.for_each(|(name, value)| self.expect(name, value, step));
            }
            "ifTrue" => self.condition(node, step),
            "followRedirect" if node.is_false() => {
                let what = format!("followRedirect of {}", step.name);
                let why = "redirects are followed by all steps or none";
                self.draft.left_out.add(node.line, what, why);
            }
            "followRedirect" => {}
            other => {
                let why = match other {
                    "beforeRequest" | "afterResponse" => {
                        "functions are JavaScript, which is not executed"
                    }
                    _ => "it is not supported",
                };
                self.draft.left_out.add(node.line, format!("{other} of {}", step.name), why);
            }
        }
    }

    fn body(&mut self, key: &str, node: &TreeNode, step: &mut DraftStep) {
        match key {
            "json" => {
                // Artillery inserts the values before it writes the JSON
                let text = self.text(&node.json(), node.line).escaped_in_strings();
                step.body = Body::Text(text);
                if !step.has_header("content-type") {
                    step.set_header("Content-Type", Text::plain("application/json"));
                }
            }
            "form" => {
                let fields = self.fields(node);
                step.body = form(fields, step);
            }
            "formData" => {
                let fields = self.fields(node);
                step.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("content-type"));
                step.body = multipart(fields, Vec::new(), node.line, &mut self.draft.left_out);
            }
            _ => {
                let body = node.scalar().unwrap_or_else(|| node.json());
                step.body = Body::Text(self.text(&body, node.line));
            }
        }
    }

    fn cookies(&mut self, node: &TreeNode, step: &mut DraftStep) {
        let mut cookies = Text::default();
        for (name, value) in node.map() {
            cookies.push_str(if cookies.is_empty() { "" } else { "; " });
            cookies.push_str(&format!("{name}="));
            let value = self.text(&value.scalar().unwrap_or_default(), value.line);
            cookies.append(value);
        }
        step.set_header("Cookie", cookies);
    }

    fn login(&mut self, node: &TreeNode, step: &mut DraftStep) {
        let either = |one: &str, other: &str| {
            node.scalar_at(one).or_else(|| node.scalar_at(other)).unwrap_or_default()
        };
        let mut user = self.text(&either("user", "username"), node.line);
        user.push_str(":");
        user.append(self.text(&either("pass", "password"), node.line));
        step.user = Some(user);
    }

    fn fields(&mut self, node: &TreeNode) -> Vec<(String, Text)> {
        let mut fields = Vec::new();
        for (name, value) in node.map() {
            match value.scalar() {
                Some(text) => fields.push((name.clone(), self.text(&text, value.line))),
                None => self.draft.left_out.add(
                    value.line,
                    format!("form field {name}"),
                    "only texts are imported",
                ),
            }
        }
        fields
    }

    fn capture(&mut self, node: &TreeNode, step: &mut DraftStep) {
        let name = node.scalar_at("as").unwrap_or_default();
        let mut regex = None;
        let from = if let Some(path) = node.scalar_at("json") {
            CaptureFrom::Json(bracketed(&path))
        } else if let Some(header) = node.scalar_at("header") {
            CaptureFrom::Header(header)
        } else if let Some(pattern) = node.scalar_at("regexp") {
            regex = Some(Text::plain(pattern));
            CaptureFrom::Body
        } else if let Some(css) = node.scalar_at("selector") {
            CaptureFrom::Css(css, node.scalar_at("attr"))
        } else {
            let what = format!("capture {name} of {}", step.name);
            return self.draft.left_out.add(
                node.line,
                what,
                "only json, header, regexp and selector are imported",
            );
        };
        if name.is_empty() {
            return self.draft.left_out.add(
                node.line,
                format!("capture of {}", step.name),
                "it has no name (as)",
            );
        }
        if node.get("transform").is_some() {
            self.draft.left_out.add(
                node.line,
                format!("transform of {name}"),
                "the value is kept as it is",
            );
        }
        let take = match node.scalar_at("index").as_deref() {
            Some("last") => Some("last"),
            Some("random") => Some("random"),
            _ => None,
        };
        let optional = node.get("strict").is_some_and(TreeNode::is_false);
        step.captures.push(Capture { regex, take, optional, ..Capture::new(name, from) });
    }

    fn matching(&mut self, node: &TreeNode, step: &mut DraftStep) {
        let value = node.scalar_at("value").unwrap_or_default();
        let value = self.text(&value, node.line);
        match (node.scalar_at("json"), node.scalar_at("regexp")) {
            (Some(path), _) => {
                step.expect.json.push((bracketed(&path), JsonRule::Text(value)));
            }
            (None, Some(pattern)) => step.expect.regex.push(Text::plain(pattern)),
            _ => self.draft.left_out.add(
                node.line,
                format!("match of {}", step.name),
                "only json and regexp are imported",
            ),
        }
    }

    fn expect(&mut self, name: &str, node: &TreeNode, step: &mut DraftStep) {
        let texts: Vec<String> = match &node.value {
            Value::List(list) => list.iter().filter_map(TreeNode::scalar).collect(),
            _ => node.scalar().into_iter().collect(),
        };
        match (name, &texts[..]) {
            ("statusCode", all) if !all.is_empty() && all.iter().all(|one| is_status(one)) => {
                step.expect.status.clone_from(&texts);
            }
            ("contentType", [one]) => {
                let media = if one == "json" { "json" } else { one };
                step.check
                    .headers
                    .push(("Content-Type".to_owned(), DraftRule::Contains(Text::plain(media))));
            }
            ("hasHeader", [name]) => step.check.headers.push((name.clone(), DraftRule::Present)),
            ("headerEquals", [name, value]) => {
                let value = self.text(value, node.line);
                step.check.headers.push((name.clone(), DraftRule::Exact(value)));
            }
            ("matchesRegexp", [pattern]) => step.check.regex.push(Text::plain(pattern)),
            ("hasProperty", [path]) => {
                let path = if path.starts_with('$') { path.clone() } else { format!("$.{path}") };
                let name = format!("found-{}", step.captures.len() + 1);
                step.captures.push(Capture {
                    optional: true,
                    ..Capture::new(name, CaptureFrom::Json(path))
                });
            }
            _ => self.draft.left_out.add(
                node.line,
                format!("expect {name} of {}", step.name),
                "it has no counterpart",
            ),
        }
    }

    /// Parses `ifTrue: "token"` or `ifTrue: "state == 'open'"`.
    fn condition(&mut self, node: &TreeNode, step: &mut DraftStep) {
        let text = node.scalar().unwrap_or_default();
        let word = |text: &str| {
            !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        };
        let (name, rule) = match text.split_once("==") {
            Some((name, value)) => {
                let value = value.trim_start_matches('=').trim().trim_matches(['"', '\'']);
                (name.trim(), DraftRule::Exact(Text::plain(value)))
            }
            None => (text.trim(), DraftRule::Present),
        };
        match word(name) {
            true => step.guard.when.push((name.to_owned(), rule)),
            false => self.draft.left_out.add(
                node.line,
                format!("ifTrue {text}"),
                "only a name, or a name that is equal to a value",
            ),
        }
    }
}

fn each(node: &TreeNode) -> impl Iterator<Item = &TreeNode> {
    let list = node.list();
    let single = if list.is_empty() { Some(node) } else { None };
    list.iter().chain(single)
}

fn last_step(pieces: &mut [DraftPiece]) -> Option<&mut DraftStep> {
    match pieces.last_mut()? {
        DraftPiece::Step(step) => Some(step),
        DraftPiece::Block(block) => last_step(&mut block.parts),
    }
}

/// Rewrites dotted indexes such as `$.items.0.id` as `$.items[0].id`: standard JSONPath (RFC 9535)
/// requires brackets.
fn bracketed(path: &str) -> String {
    if !path.starts_with('$') {
        return path.to_owned();
    }
    let is_index = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let mut made = String::new();
    let mut quoted = false;
    for (place, part) in path.split('.').enumerate() {
        let (index, rest) =
            part.split_once('[').map_or((part, None), |(head, rest)| (head, Some(rest)));
        match () {
            () if !quoted && place > 0 && is_index(index) => {
                made.push_str(&format!("[{index}]"));
                made.extend(rest.map(|rest| format!("[{rest}")));
            }
            () if place > 0 => made.push_str(&format!(".{part}")),
            () => made.push_str(part),
        }
        // a dot in a name in quotes does not separate
        quoted ^= part.matches(['\'', '"']).count() % 2 == 1;
    }
    made
}
