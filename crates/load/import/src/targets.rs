//! Lists of targets: vegeta's, in both formats, and siege's URLs. They become targets of a plan, which are
//! called in turn.

use crate::ImportRequest;
use crate::detect::{first_lines, is_request_line};
use crate::draft::*;
use crate::place::tidy;
use crate::postman::file_body;
use crate::text::Text;
use crate::tree::{TreeNode, parse_json};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use units::Nanos;

/// Maximum number of targets in a list.
const TARGETS_MAX: usize = 100_000;

/// The rate of `vegeta attack` without options.
const VEGETA_RATE: f64 = 50.0;

pub(crate) fn read_vegeta(text: &str, request: &ImportRequest<'_>) -> Result<PlanDraft, String> {
    let mut draft = PlanDraft::default();
    // vegeta follows ten redirects
    draft.settings.follow = Some(10);
    draft.settings.no_cookies = true;
    vegeta_targets(text, request, &mut draft)?;
    draft.loads.push(LoadPart {
        name: "attack".to_owned(),
        journeys: Vec::new(),
        start: Nanos::ZERO,
        duration: Some(Nanos::from_secs(10)),
        iterations: None,
        kind: LoadKind::Rate(VEGETA_RATE),
    });
    Ok(draft)
}

pub(crate) fn vegeta_targets(
    text: &str,
    request: &ImportRequest<'_>,
    draft: &mut PlanDraft,
) -> Result<(), String> {
    match text.trim_start().starts_with('{') {
        true => json_lines(text, draft)?,
        false => http_blocks(text, request, draft),
    }
    if draft.targets.is_empty() {
        return Err("it has no target: a line such as GET http://localhost:8080/".to_owned());
    }
    if draft.targets.len() > TARGETS_MAX {
        return Err(format!("it has more than {TARGETS_MAX} targets; shorten it"));
    }
    Ok(())
}

fn target(line: usize, method: &str, url: &str) -> DraftStep {
    DraftStep {
        line,
        method: method.to_owned(),
        url: tidy(Text::plain(url)),
        ..DraftStep::default()
    }
}

fn http_blocks(text: &str, request: &ImportRequest<'_>, draft: &mut PlanDraft) {
    for (index, line) in text.lines().enumerate() {
        let (number, line) = (index + 1, line.trim());
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let mut words = line.split_whitespace();
        let (first, second) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        if is_request_line(line)
            || !first.ends_with(':') && second.contains("://") && is_upper(first)
        {
            draft.targets.push(target(number, first, second));
        } else if let Some(file) = line.strip_prefix('@') {
            if let Some(last) = draft.targets.last_mut() {
                last.body = file_body(file.trim(), number, request, &mut draft.left_out);
            }
        } else if let Some((name, value)) = line.split_once(':')
            && let Some(last) = draft.targets.last_mut()
        {
            last.headers.push((name.trim().to_owned(), Text::plain(value.trim())));
        } else {
            draft.left_out.add(
                number,
                one_line(line),
                "it is neither a target nor a header of one",
            );
        }
    }
}

fn is_upper(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_uppercase())
}

fn json_lines(text: &str, draft: &mut PlanDraft) -> Result<(), String> {
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let number = index + 1;
        let node = parse_json(line).map_err(|why| format!("line {number} is not JSON: {why}"))?;
        let url = node.text_at("url");
        if url.is_empty() {
            draft.left_out.add(number, "target", "it has no url");
            continue;
        }
        let method = node.text_at("method");
        let mut step = target(number, if method.is_empty() { "GET" } else { method }, url);
        for (name, values) in node.get("header").map(TreeNode::map).unwrap_or_default() {
            for value in values.list().iter().filter_map(TreeNode::text) {
                step.headers.push((name.clone(), Text::plain(value)));
            }
        }
        match BASE64
            .decode(node.text_at("body"))
            .ok()
            .and_then(|bytes| String::from_utf8(bytes).ok())
        {
            Some(body) if !body.is_empty() => step.body = Body::Text(Text::plain(body)),
            Some(_) => {}
            None => draft.left_out.add(
                number,
                format!("body of {url}"),
                "it is not text in base64; none is sent",
            ),
        }
        draft.targets.push(step);
    }
    Ok(())
}

pub(crate) fn read_siege(text: &str, request: &ImportRequest<'_>) -> Result<PlanDraft, String> {
    let mut draft = PlanDraft::default();
    siege_targets(text, request, &mut draft);
    if draft.targets.is_empty() {
        return Err("it has no URL".to_owned());
    }
    if draft.targets.len() > TARGETS_MAX {
        return Err(format!("it has more than {TARGETS_MAX} URLs; shorten it"));
    }
    Ok(draft)
}

/// Parses lines of siege's urls.txt: `URL`, `URL POST data`, `URL POST <file`, `NAME=value`.
pub(crate) fn siege_targets(text: &str, request: &ImportRequest<'_>, draft: &mut PlanDraft) {
    let mut variables: Vec<(String, String)> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        let Some(line) = first_lines(line).next() else { continue };
        let line = variables.iter().fold(line.to_owned(), |line, (name, value)| {
            line.replace(&format!("$({name})"), value).replace(&format!("${{{name}}}"), value)
        });
        let assigned = line.split_once('=').filter(|(name, _)| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        });
        if let Some((name, value)) = assigned {
            variables.push((name.to_owned(), value.trim().to_owned()));
            continue;
        }
        siege_line(number, &line, request, draft);
    }
}

pub(crate) fn siege_line(
    number: usize,
    line: &str,
    request: &ImportRequest<'_>,
    draft: &mut PlanDraft,
) {
    let (url, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let (method, data) = rest.trim().split_once(char::is_whitespace).unwrap_or((rest.trim(), ""));
    let method = if method.is_empty() { "GET" } else { method };
    if !is_upper(method) {
        return draft.left_out.add(
            number,
            one_line(line),
            "it is not a URL, perhaps with a method and data",
        );
    }
    let mut step = target(number, method, url);
    let data = data.trim();
    if let Some(file) = data.strip_prefix('<') {
        step.body = file_body(file.trim(), number, request, &mut draft.left_out);
    } else if !data.is_empty() {
        step.body = Body::Text(Text::plain(data));
        step.headers
            .push(("Content-Type".to_owned(), Text::plain("application/x-www-form-urlencoded")));
    }
    draft.targets.push(step);
}
