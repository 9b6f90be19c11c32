//! `.http` and `.rest` files, as read by the REST clients of JetBrains and Visual Studio Code.

use crate::ImportRequest;
use crate::draft::*;
use crate::place::tidy;
use crate::postman::{file_body, form, text_of};
use crate::scripts::{self, ClientScript};
use crate::text::Text;

pub(crate) fn read(text: &str, request: &ImportRequest<'_>) -> Result<PlanDraft, String> {
    let mut reader =
        DraftReader { draft: PlanDraft::default(), request, parts: Vec::new(), named: Vec::new() };
    let mut block: Vec<(usize, &str)> = Vec::new();
    let mut title = String::new();
    for (index, line) in text.lines().enumerate() {
        if let Some(name) = line.strip_prefix("###") {
            reader.block(&block, &title);
            block.clear();
            name.trim_matches(['#', ' ', '\t']).clone_into(&mut title);
        } else {
            block.push((index + 1, line));
        }
    }
    reader.block(&block, &title);
    let parts = std::mem::take(&mut reader.parts);
    if parts.is_empty() {
        return Err("it has no request: a line such as GET http://localhost:8080/".to_owned());
    }
    reader.draft.journeys.push(DraftJourney {
        name: "requests".to_owned(),
        parts,
        ..DraftJourney::default()
    });
    reader.capture_named();
    Ok(reader.draft)
}

struct DraftReader<'a> {
    draft: PlanDraft,
    request: &'a ImportRequest<'a>,
    parts: Vec<DraftPiece>,
    /// Names of requests (`# @name login`) with their positions, for
    /// `{{login.response.body.token}}`.
    named: Vec<(String, usize)>,
}

/// Words that replace the method in requests of other protocols.
const NOT_HTTP: [&str; 3] = ["WEBSOCKET", "GRPC", "RSOCKET"];

impl DraftReader<'_> {
    fn block(&mut self, lines: &[(usize, &str)], title: &str) {
        let mut step = DraftStep { name: title.to_owned(), ..DraftStep::default() };
        let mut name = None;
        let mut lines = lines.iter().copied().peekable();
        // variables and comments precede the request
        let start = loop {
            let Some((line, text)) = lines.next() else { return };
            let text = text.trim();
            if let Some((variable, value)) =
                text.strip_prefix('@').and_then(|it| it.split_once('='))
            {
                let value = text_of(value.trim(), line, &mut self.draft.left_out);
                let variable = variable.trim().to_owned();
                self.draft.vars.retain(|(known, _)| *known != variable);
                self.draft.vars.push((variable, value));
                continue;
            }
            if text.starts_with("< ") {
                self.draft.left_out.add(line, text, "scripts are not executed");
                if text.contains("{%") && !text.contains("%}") {
                    lines.by_ref().find(|(_, it)| it.contains("%}"));
                }
                continue;
            }
            let comment = text.strip_prefix('#').or_else(|| text.strip_prefix("//"));
            if let Some(comment) = comment {
                let comment = comment.trim();
                if let Some(given) = comment.strip_prefix("@name") {
                    name = Some(given.trim_start_matches(['=', ' ']).trim().to_owned());
                } else if comment.starts_with('@') {
                    self.setting(comment, line);
                }
                continue;
            }
            if !text.is_empty() {
                break (line, text);
            }
        };
        self.request_line(start, &mut lines, &mut step);
        if NOT_HTTP.contains(&step.method.as_str()) {
            let what = format!("{} {}", step.method, display_text(&step.url));
            return self.draft.left_out.add(step.line, what, "it is not a request over HTTP");
        }
        if let Some(name) = name.filter(|name| !name.is_empty()) {
            self.named.push((name.clone(), self.parts.len()));
            step.name = name;
        }
        if step.name.is_empty() {
            step.name = format!("{} {}", step.method, display_text(&step.url));
        }
        self.headers(&mut lines, &mut step);
        let rest: Vec<(usize, &str)> = lines.collect();
        self.body(&rest, &mut step);
        self.parts.push(DraftPiece::Step(Box::new(step)));
    }

    fn setting(&mut self, comment: &str, line: usize) {
        match comment.split_whitespace().next().unwrap_or_default() {
            "@no-log" | "@note" | "@title" => {}
            "@prompt" => {
                let why = "prompts are not supported; set the value as @name = value in the file";
                self.draft.left_out.add(line, comment, why);
            }
            "@no-cookie-jar" => self.draft.settings.no_cookies = true,
            "@no-redirect" => {}
            other => self.draft.left_out.add(line, other, "this setting is not imported"),
        }
    }

    fn request_line<'l>(
        &mut self,
        (line, text): (usize, &str),
        lines: &mut std::iter::Peekable<impl Iterator<Item = (usize, &'l str)>>,
        step: &mut DraftStep,
    ) {
        let mut whole = text.to_owned();
        // a query may continue on the next lines
        while let Some((_, more)) = lines.next_if(|(_, it)| {
            it.starts_with([' ', '\t']) && it.trim_start().starts_with(['?', '&'])
        }) {
            whole.push_str(more.trim());
        }
        let (method, rest) = match whole.split_once(char::is_whitespace) {
            Some((word, rest)) if is_method(word) => (word.to_owned(), rest.trim()),
            _ => ("GET".to_owned(), whole.as_str()),
        };
        let (url, version) = match rest.rsplit_once(char::is_whitespace) {
            Some((url, version)) if version.starts_with("HTTP/") => (url.trim(), version),
            _ => (rest, ""),
        };
        if version == "HTTP/2" || version == "HTTP/2.0" {
            self.draft.settings.http = Some("2");
        }
        step.line = line;
        step.comments.push(format!("line {line}"));
        step.method = method.to_ascii_uppercase();
        if step.method == "GRAPHQL" {
            self.draft.left_out.add(
                line,
                format!("{} {url}", step.method),
                "it is sent as a POST over HTTP",
            );
            "POST".clone_into(&mut step.method);
        }
        step.url = tidy(text_of(url, line, &mut self.draft.left_out));
    }

    fn headers<'l>(
        &mut self,
        lines: &mut std::iter::Peekable<impl Iterator<Item = (usize, &'l str)>>,
        step: &mut DraftStep,
    ) {
        while let Some((line, text)) = lines.next_if(|(_, it)| !begins_handler(it)) {
            let text = text.trim();
            if text.is_empty() {
                return;
            }
            if text.starts_with('#') || text.starts_with("//") {
                continue;
            }
            let Some((name, value)) = text.split_once(':') else {
                self.draft.left_out.add(
                    line,
                    one_line(text),
                    "it is not a header: it has no colon",
                );
                continue;
            };
            let value = value.trim();
            let login =
                value.strip_prefix("Basic ").filter(|_| name.eq_ignore_ascii_case("authorization"));
            // `Basic name password` and `Basic name:password` are encoded by the clients
            if let Some((user, password)) = login.and_then(|it| it.split_once([' ', ':'])) {
                let login = format!("{}:{}", user.trim(), password.trim());
                step.user = Some(text_of(&login, line, &mut self.draft.left_out));
                continue;
            }
            let value = text_of(value, line, &mut self.draft.left_out);
            step.headers.push((name.trim().to_owned(), value));
        }
    }

    fn body(&mut self, lines: &[(usize, &str)], step: &mut DraftStep) {
        let mut body: Vec<&str> = Vec::new();
        let mut at = 0;
        let mut first = step.line;
        while let Some((line, text)) = lines.get(at) {
            if begins_handler(text) {
                at = self.handler(lines, at, step);
                continue;
            }
            if body.is_empty() {
                first = *line;
            }
            body.push(text);
            at += 1;
        }
        while body.last().is_some_and(|line| line.trim().is_empty()) {
            body.pop();
        }
        while body.first().is_some_and(|line| line.trim().is_empty()) {
            body.remove(0);
        }
        let media = step.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        let media = media.and_then(|(_, value)| value.settled()).unwrap_or_default();
        match &body[..] {
            [] => {}
            [one] if one.starts_with("< ") || one.starts_with("<@ ") => {
                let file = one.trim_start_matches(['<', '@']).trim();
                step.body = file_body(file, first, self.request, &mut self.draft.left_out);
            }
            _ if media.starts_with("multipart/form-data") => {
                self.draft.left_out.add(
                    first,
                    format!("multipart body of {}", step.name),
                    "write it as form and upload in the plan",
                );
            }
            lines if media.starts_with("application/x-www-form-urlencoded") => {
                let whole: String = lines.iter().map(|line| line.trim()).collect();
                let fields = whole.split('&').filter(|it| !it.is_empty()).map(|field| {
                    let (name, value) = field.split_once('=').unwrap_or((field, ""));
                    let decode = |text: &str| {
                        percent_encoding::percent_decode_str(&text.replace('+', " "))
                            .decode_utf8_lossy()
                            .into_owned()
                    };
                    let value = text_of(value, first, &mut self.draft.left_out).map_plain(decode);
                    (decode(name), value)
                });
                let fields: Vec<(String, Text)> = fields.collect();
                step.body = form(fields, step);
            }
            lines => {
                let whole = lines.join("\n");
                if lines.iter().any(|line| line.starts_with("< ") || line.starts_with("<@ ")) {
                    self.draft.left_out.add(
                        first,
                        "a file inside of a body",
                        "the line is sent as it is",
                    );
                }
                step.body = Body::Text(text_of(&whole, first, &mut self.draft.left_out));
            }
        }
    }

    /// Parses a response script, `> {% … %}`: recognizes tests and captures, and lists everything
    /// else.
    fn handler(&mut self, lines: &[(usize, &str)], at: usize, step: &mut DraftStep) -> usize {
        let (line, text) = lines[at];
        if !text.contains("{%") {
            self.draft.left_out.add(
                line,
                one_line(text),
                "scripts are not executed, and responses are not written to files",
            );
            return at + 1;
        }
        let mut script = text.split_once("{%").map_or("", |(_, rest)| rest).to_owned();
        let mut end = at + 1;
        while !script.contains("%}") {
            let Some((_, more)) = lines.get(end) else { break };
            script.push('\n');
            script.push_str(more);
            end += 1;
        }
        let script = script.split("%}").next().unwrap_or_default();
        let script = jetbrains(script);
        scripts::apply(&ClientScript { text: &script, line, before: false }, step, &mut self.draft);
        end
    }

    /// Captures `{{login.response.body.token}}` from the request named login.
    fn capture_named(&mut self) {
        let mut wanted: Vec<(usize, Capture)> = Vec::new();
        let named = std::mem::take(&mut self.named);
        let Some(journey) = self.draft.journeys.first_mut() else { return };
        for part in &journey.parts {
            let DraftPiece::Step(step) = part else { continue };
            for name in names_of(step) {
                let Some((request, place)) = name.split_once(".response.") else { continue };
                let Some((_, at)) = named.iter().find(|(known, _)| known == request) else {
                    continue;
                };
                let from = match place.split_once('.') {
                    Some(("body", path)) if path.starts_with('$') => {
                        CaptureFrom::Json(path.to_owned())
                    }
                    Some(("body", "*")) | None => CaptureFrom::Body,
                    Some(("body", path)) => CaptureFrom::Json(format!("$.{path}")),
                    Some(("headers", header)) => CaptureFrom::Header(header.to_owned()),
                    Some(_) => continue,
                };
                let mut capture = Capture::new(name, from);
                if matches!(capture.from, CaptureFrom::Body) {
                    capture.regex = Some(Text::plain("(?s).*"));
                }
                wanted.push((*at, capture));
            }
        }
        for (at, capture) in wanted {
            if let Some(DraftPiece::Step(step)) = journey.parts.get_mut(at)
                && step.captures.iter().all(|known| known.name != capture.name)
            {
                step.captures.push(capture);
            }
        }
    }
}

/// Returns whether a line handles the response: by a script, or by writing it to a file.
fn begins_handler(line: &str) -> bool {
    let line = line.trim_start();
    ["> ", "<> ", ">> ", ">>! "].iter().any(|mark| line.starts_with(mark))
}

fn names_of(step: &DraftStep) -> Vec<String> {
    let mut texts: Vec<&Text> = vec![&step.url];
    texts.extend(step.headers.iter().map(|(_, value)| value));
    texts.extend(&step.user);
    match &step.body {
        Body::Text(text) => texts.push(text),
        Body::Form(fields) => texts.extend(fields.iter().map(|(_, value)| value)),
        _ => {}
    }
    let names = texts.into_iter().flat_map(|text| &text.0).filter_map(|part| match part {
        crate::text::DraftPart::Named(name) => Some(name.clone()),
        _ => None,
    });
    names.collect()
}

/// Translates a response handler of JetBrains' client to Postman's functions.
fn jetbrains(script: &str) -> String {
    script
        .replace("client.global.set(", "pm.globals.set(")
        .replace("client.test(", "pm.test(")
        .replace("response.body.", "pm.response.json().")
        .replace("response.headers.valueOf(", "pm.response.headers.get(")
        .replace("client.log(", "console.log(")
        .lines()
        .map(assertion)
        .collect::<Vec<_>>()
        .join("\n")
}

/// Converts `client.assert(response.status === 200, "…")` to the form of Postman; returns other
/// lines unchanged.
fn assertion(line: &str) -> String {
    let inner = line
        .trim()
        .strip_prefix("client.assert(response.status ===")
        .or_else(|| line.trim().strip_prefix("client.assert(response.status =="));
    let status = inner
        .map(|it| it.trim_start().chars().take_while(char::is_ascii_digit).collect::<String>());
    match status {
        Some(status) if status.len() == 3 => format!("pm.response.to.have.status({status});"),
        _ => line.to_owned(),
    }
}

fn is_method(word: &str) -> bool {
    let known = crate::detect::METHODS.iter().any(|method| method.eq_ignore_ascii_case(word));
    known || word == "GRAPHQL" || NOT_HTTP.contains(&word)
}

/// Formats a URL without its server, as the name of a step.
pub(crate) fn display_text(url: &Text) -> String {
    let mut out = String::new();
    for part in &url.0 {
        match part {
            crate::text::DraftPart::Plain(text) => out.push_str(text),
            crate::text::DraftPart::Named(name) => out.push_str(&format!(":{name}")),
            crate::text::DraftPart::Made(_) | crate::text::DraftPart::InJson(_) => out.push('*'),
        }
    }
    let path = crate::place::split_origin(&out).map(|(_, end)| out[end..].to_owned());
    let path = path.unwrap_or(out);
    let path = path.split('?').next().unwrap_or_default();
    if path.is_empty() { "/".to_owned() } else { path.to_owned() }
}
