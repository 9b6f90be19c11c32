//! Bruno collections: single `.bru` files, or folders of them.

use crate::draft::*;
use crate::place::tidy;
use crate::postman::{file_body, form, graphql_body, multipart, set_api_key, set_bearer, text_of};
use crate::scripts::{self, ClientScript, is_status};
use crate::text::Text;
use crate::{Document, ImportRequest};

/// A block of a file: `headers { … }`.
#[derive(Debug)]
struct BruBlock<'a> {
    name: &'a str,
    line: usize,
    /// Lines inside, without their common indentation.
    lines: Vec<&'a str>,
}

/// Methods, which are also the names of request blocks.
const METHODS: [&str; 8] = ["get", "post", "put", "delete", "patch", "options", "head", "query"];

pub(crate) fn read(request: &ImportRequest<'_>) -> Result<PlanDraft, String> {
    let mut reader = DraftReader { draft: PlanDraft::default(), request };
    let mut files: Vec<(&Document, Vec<BruBlock<'_>>)> =
        request.documents.iter().map(|document| (document, blocks(&document.text))).collect();
    let shared =
        files.iter().position(|(document, _)| base_name(&document.name) == "collection.bru");
    let shared = shared.map(|at| files.remove(at).1).unwrap_or_default();
    for block in &shared {
        if block.name.starts_with("vars") {
            reader.variables(block);
        }
    }
    let mut items = Vec::new();
    for (document, blocks) in &files {
        if document.name.contains("environments/") || document.name.contains("environments\\") {
            blocks
                .iter()
                .filter(|block| block.name.starts_with("vars"))
                .for_each(|block| reader.variables(block));
        } else if let Some(step) = reader.file(document, blocks, &shared) {
            items.push((folder_of(&document.name), order_of(blocks), document.name.clone(), step));
        }
    }
    if items.is_empty() {
        return Err("it has no request: a block such as get { url: … }".to_owned());
    }
    items.sort_by(|a, b| (&a.0, a.1, &a.2).cmp(&(&b.0, b.1, &b.2)));
    let root = items
        .iter()
        .map(|item| item.0.as_str())
        .min_by_key(|folder| folder.len())
        .unwrap_or_default()
        .to_owned();
    let mut parts: Vec<DraftPiece> = Vec::new();
    for (folder, _, _, step) in items {
        let step = DraftPiece::Step(Box::new(step));
        let inner =
            folder.strip_prefix(&root).unwrap_or(&folder).trim_matches(['/', '\\']).to_owned();
        match parts.last_mut() {
            Some(DraftPiece::Block(block)) if !inner.is_empty() && block.name == inner => {
                block.parts.push(step)
            }
            _ if inner.is_empty() => parts.push(step),
            _ => parts.push(DraftPiece::Block(DraftBlock {
                name: inner,
                guard: DraftGuard::default(),
                parts: vec![step],
            })),
        }
    }
    let name = root
        .rsplit(['/', '\\'])
        .next()
        .filter(|it| !it.is_empty())
        .unwrap_or("requests")
        .to_owned();
    reader.draft.journeys.push(DraftJourney { name, parts, ..DraftJourney::default() });
    Ok(reader.draft)
}

fn base_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or_default()
}

fn folder_of(path: &str) -> String {
    path.rsplit_once(['/', '\\']).map_or(String::new(), |(folder, _)| folder.to_owned())
}

fn order_of(blocks: &[BruBlock<'_>]) -> u64 {
    let meta = blocks.iter().find(|block| block.name == "meta");
    meta.and_then(|block| pairs(block).find(|(_, name, _)| *name == "seq"))
        .and_then(|(_, _, value)| value.parse().ok())
        .unwrap_or(u64::MAX)
}

fn blocks(text: &str) -> Vec<BruBlock<'_>> {
    let mut all = Vec::new();
    let mut open: Option<BruBlock<'_>> = None;
    for (index, line) in text.lines().enumerate() {
        match &mut open {
            // a block ends with a brace at the beginning of a line
            Some(_) if line.starts_with(['}', ']']) => all.extend(open.take()),
            Some(block) => block.lines.push(line.strip_prefix("  ").unwrap_or(line)),
            None => {
                let name = line.trim_end().strip_suffix(['{', '[']).map(str::trim);
                if let Some(name) = name.filter(|name| !name.is_empty()) {
                    open = Some(BruBlock { name, line: index + 1, lines: Vec::new() });
                }
            }
        }
    }
    all.extend(open);
    all
}

/// Returns the enabled `name: value` lines of a block, with their line numbers in the file.
fn pairs<'b>(block: &'b BruBlock<'_>) -> impl Iterator<Item = (usize, &'b str, &'b str)> {
    let numbered = block.lines.iter().enumerate();
    numbered.filter_map(|(index, line)| {
        let line = line.trim();
        let (name, value) = line.split_once(':').filter(|_| !line.starts_with('~'))?;
        Some((block.line + 1 + index, name.trim().trim_matches('"'), value.trim()))
    })
}

/// Names of blocks, up to a colon, that are read or do not affect requests.
const BLOCKS: [&str; 11] = [
    "meta", "headers", "auth", "body", "params", "query", "vars", "assert", "script", "tests",
    "docs",
];

struct DraftReader<'a> {
    draft: PlanDraft,
    request: &'a ImportRequest<'a>,
}

impl DraftReader<'_> {
    fn text(&mut self, source: &str, line: usize) -> Text {
        // `{{process.env.NAME}}` is a variable of that name
        text_of(&source.replace("{{process.env.", "{{"), line, &mut self.draft.left_out)
    }

    fn variables(&mut self, block: &BruBlock<'_>) {
        for (line, name, value) in pairs(block) {
            let value = self.text(value, line);
            self.draft.vars.retain(|(known, _)| known != name);
            self.draft.vars.push((name.to_owned(), value));
        }
    }

    fn file(
        &mut self,
        document: &Document,
        blocks: &[BruBlock<'_>],
        shared: &[BruBlock<'_>],
    ) -> Option<DraftStep> {
        let main = blocks.iter().find(|block| METHODS.contains(&block.name))?;
        let meta = blocks.iter().find(|block| block.name == "meta");
        let name = meta
            .and_then(|block| pairs(block).find(|(_, name, _)| *name == "name"))
            .map(|(_, _, value)| value);
        let fallback = base_name(&document.name).trim_end_matches(".bru");
        let mut step = DraftStep {
            name: name.unwrap_or(fallback).to_owned(),
            line: main.line,
            comments: vec![format!("{} line {}", base_name(&document.name), main.line)],
            method: main.name.to_ascii_uppercase(),
            ..DraftStep::default()
        };
        let field = |wanted: &str| {
            pairs(main).find(|(_, name, _)| *name == wanted).map_or("", |(_, _, value)| value)
        };
        let (url, mode, auth) =
            (field("url").to_owned(), field("body").to_owned(), field("auth").to_owned());
        let url = path_parameters(&url, blocks);
        step.url = tidy(self.text(&url, main.line));
        for block in shared.iter().filter(|block| block.name == "headers").chain(blocks) {
            if block.name == "headers" {
                for (line, name, value) in pairs(block) {
                    let value = self.text(value, line);
                    step.set_header(name, value);
                }
            }
        }
        let auth = if auth == "inherit" { mode_of_auth(shared) } else { auth };
        let login = blocks.iter().chain(shared).find(|block| block.name == format!("auth:{auth}"));
        self.auth(&auth, login, &mut step);
        let body = blocks.iter().find(|block| {
            block.name == format!("body:{mode}")
                || mode == "formUrlEncoded" && block.name == "body:form-urlencoded"
                || mode == "multipartForm" && block.name == "body:multipart-form"
                || mode == "json" && block.name == "body"
        });
        if let Some(body) = body {
            self.body(body, blocks, &mut step);
        }
        for block in blocks {
            self.behavior(block, &mut step);
            let part = block.name.split(':').next().unwrap_or_default();
            if !METHODS.contains(&block.name) && !BLOCKS.contains(&part) {
                let what = format!("{} of {}", block.name, step.name);
                self.draft.left_out.add(block.line, what, "this block is not imported");
            }
        }
        Some(step)
    }

    fn auth(&mut self, kind: &str, block: Option<&BruBlock<'_>>, step: &mut DraftStep) {
        let Some(block) = block else {
            // the values of a login may be in a file that is not there
            if !matches!(kind, "none" | "" | "inherit") {
                let what = format!("auth {kind} of {}", step.name);
                self.draft.left_out.add(step.line, what, "the file has no values for it");
            }
            return;
        };
        let value = |wanted: &str| {
            pairs(block)
                .find(|(_, name, _)| *name == wanted)
                .map_or("", |(_, _, value)| value)
                .to_owned()
        };
        match kind {
            "none" | "" => {}
            "bearer" => {
                let token = self.text(&value("token"), block.line);
                set_bearer(step, token);
            }
            "basic" => {
                let login = format!("{}:{}", value("username"), value("password"));
                step.user = Some(self.text(&login, block.line));
            }
            "apikey" => {
                let key = self.text(&value("value"), block.line);
                set_api_key(step, &value("key"), key, value("placement") == "queryparams");
            }
            other => {
                let why = "this kind of login is not imported; its requests are sent without one";
                self.draft.left_out.add(block.line, format!("auth:{other}"), why);
            }
        }
    }

    fn body(&mut self, block: &BruBlock<'_>, blocks: &[BruBlock<'_>], step: &mut DraftStep) {
        let whole = block.lines.join("\n");
        let media = match block.name {
            "body" | "body:json" => "application/json",
            "body:xml" => "application/xml",
            "body:text" => "text/plain",
            "body:sparql" => "application/sparql-query",
            "body:form-urlencoded" => {
                let fields: Vec<(usize, String, String)> = pairs(block)
                    .map(|(line, name, value)| (line, name.to_owned(), value.to_owned()))
                    .collect();
                let fields = fields
                    .into_iter()
                    .map(|(line, name, value)| (name, self.text(&value, line)))
                    .collect();
                step.body = form(fields, step);
                return;
            }
            "body:multipart-form" => return self.multipart(block, step),
            "body:graphql" => {
                let variables = blocks.iter().find(|it| it.name == "body:graphql:vars");
                let variables = variables.map(|it| it.lines.join("\n")).unwrap_or_default();
                step.body = graphql_body(&whole, &variables, |text| self.text(text, block.line));
                step.set_header("Content-Type", Text::plain("application/json"));
                return;
            }
            other => {
                self.draft.left_out.add(
                    block.line,
                    other,
                    "this kind of body is not imported; none is sent",
                );
                return;
            }
        };
        let text = self.text(&whole, block.line);
        // Bruno escapes the values in JSON and in no other body
        let text = if media == "application/json" { text.escaped_in_strings() } else { text };
        step.body = Body::Text(text);
        if !step.has_header("content-type") {
            step.set_header("Content-Type", Text::plain(media));
        }
    }

    fn multipart(&mut self, block: &BruBlock<'_>, step: &mut DraftStep) {
        let (mut fields, mut uploads) = (Vec::new(), Vec::new());
        for (line, name, value) in pairs(block) {
            match value.strip_prefix("@file(").and_then(|it| it.split(')').next()) {
                Some(file) => {
                    let body = file_body(file, line, self.request, &mut self.draft.left_out);
                    if let Body::File(file) = body {
                        uploads.push(FormUpload { field: name.to_owned(), file, media_type: None });
                    }
                }
                None => fields.push((name.to_owned(), self.text(value, line))),
            }
        }
        step.body = multipart(fields, uploads, block.line, &mut self.draft.left_out);
    }

    /// Reads variables, assertions, scripts and tests.
    fn behavior(&mut self, block: &BruBlock<'_>, step: &mut DraftStep) {
        let whole = || block.lines.join("\n");
        match block.name {
            "vars:pre-request" => self.variables(block),
            "vars:post-response" => {
                for (line, name, value) in pairs(block) {
                    let script = format!("bru.setVar(\"{name}\", {value});");
                    let script = ClientScript { text: &script, line, before: false };
                    scripts::apply(&script, step, &mut self.draft);
                }
            }
            "assert" => {
                for (line, name, value) in pairs(block) {
                    if !assertion(name, value, step) {
                        let what = format!("assert {name}: {value}");
                        self.draft.left_out.add(line, what, "this assertion has no counterpart");
                    }
                }
            }
            "script:pre-request" | "script:post-response" | "tests" => {
                let before = block.name == "script:pre-request";
                let script = ClientScript { text: &whole(), line: block.line + 1, before };
                scripts::apply(&script, step, &mut self.draft);
            }
            _ => {}
        }
    }
}

fn mode_of_auth(shared: &[BruBlock<'_>]) -> String {
    let auth = shared.iter().find(|block| block.name == "auth");
    let mode = auth.and_then(|block| pairs(block).find(|(_, name, _)| *name == "mode"));
    mode.map_or(String::new(), |(_, _, value)| value.to_owned())
}

/// Replaces parameters of the path (`/users/:id`) by the values of `params:path`.
fn path_parameters(url: &str, blocks: &[BruBlock<'_>]) -> String {
    let mut url = url.to_owned();
    let Some(block) = blocks.iter().find(|block| block.name == "params:path") else { return url };
    for (_, name, value) in pairs(block) {
        let (path, query) = url
            .split_once('?')
            .map_or((url.clone(), None), |(a, b)| (a.to_owned(), Some(b.to_owned())));
        let mark = format!(":{name}");
        let segments: Vec<&str> =
            path.split('/').map(|segment| if segment == mark { value } else { segment }).collect();
        url = segments.join("/");
        if let Some(query) = query {
            url = format!("{url}?{query}");
        }
    }
    url
}

/// Parses `res.status: eq 200` or `res.body.id: isDefined`; returns whether the assertion is
/// supported.
fn assertion(subject: &str, rule: &str, step: &mut DraftStep) -> bool {
    let (verb, value) = rule.split_once(' ').unwrap_or((rule, ""));
    let (verb, value) = match verb {
        "eq" | "neq" | "gt" | "lt" | "lte" | "contains" | "in" | "isDefined" | "matches"
        | "startsWith" | "isString" | "isNumber" | "isBoolean" | "isJson" | "isNotEmpty" => {
            (verb, value.trim())
        }
        // a value without an operator means equality
        _ => ("eq", rule),
    };
    let value = value.trim_matches(['"', '\'']);
    if subject == "res.status" {
        let all: Vec<&str> = value.trim_matches(['[', ']']).split(',').map(str::trim).collect();
        let good = ["eq", "in"].contains(&verb) && all.iter().all(|one| is_status(one));
        if good {
            step.expect.status = all.into_iter().map(str::to_owned).collect();
        }
        return good;
    }
    if subject == "res.responseTime" {
        let millis = value.parse::<f64>().ok().filter(|ms| *ms > 0.0 && *ms < 8.64e7);
        let below = ["lt", "lte"].contains(&verb);
        step.check.at_most = millis
            .filter(|_| below)
            .map(|ms| units::Nanos((ms * 1e6) as u64))
            .or(step.check.at_most);
        return below && millis.is_some();
    }
    if let Some(name) =
        subject.strip_prefix("res.headers.").or_else(|| subject.strip_prefix("res.headers['"))
    {
        let name = name.trim_end_matches("']").to_owned();
        let rule = match verb {
            "eq" => DraftRule::Exact(Text::plain(value)),
            "contains" => DraftRule::Contains(Text::plain(value)),
            "isDefined" => DraftRule::Present,
            _ => return false,
        };
        step.check.headers.push((name, rule));
        return true;
    }
    let Some(path) = subject.strip_prefix("res.body") else { return false };
    match (path, verb) {
        ("", "contains") => step.check.contains.push(Text::plain(value)),
        ("", _) => return false,
        (path, "eq") => {
            let raw = serde_json::from_str::<serde_json::Value>(value).ok();
            let raw = raw.filter(|it| it.is_number() || it.is_boolean()).map(|it| it.to_string());
            let rule = raw.map_or_else(|| JsonRule::Text(Text::plain(value)), JsonRule::Raw);
            step.check.json.push((format!("${path}"), rule));
        }
        (path, "isDefined" | "isNotEmpty" | "isString" | "isNumber") => {
            let name = format!("found-{}", step.captures.len() + 1);
            step.captures.push(Capture::new(name, CaptureFrom::Json(format!("${path}"))));
        }
        _ => return false,
    }
    true
}
