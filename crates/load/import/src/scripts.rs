//! Scripts of Postman and similar clients. Statements that capture values from responses or check
//! them are recognized by their form. Nothing is executed; unrecognized statements are listed.

mod expression;

use crate::draft::*;
use crate::text::{DraftPart, Maker, Text};
use expression::{Aliases, Source, arguments, json_literal, quoted_text};
use regex::Regex;
use std::sync::LazyLock;

#[derive(Clone, Copy, Debug)]
pub(crate) struct ClientScript<'a> {
    pub(crate) text: &'a str,
    /// Line of the script's first line in the file.
    pub(crate) line: usize,
    /// True if the script runs before the request.
    pub(crate) before: bool,
}

/// Reason why the lines of a script are omitted.
pub(crate) const NOT_EXECUTED: &str = "scripts are not executed";

/// Maximum number of bytes examined in a script.
const SCRIPT_MAX: usize = 256 << 10;

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the pattern is a constant")
}

static COMMENTS: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?s)/\*.*?\*/|(?m)(^|\s)//[^\n]*"));
static SETTERS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?:pm\s*\.\s*(?:environment|collectionVariables|globals|variables)\s*\.\s*set|postman\s*\.\s*set(?:Environment|Global)Variable|bru\s*\.\s*set(?:Var|EnvVar|GlobalEnvVar))\s*\(",
    )
});
static EXPECTS: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?:pm\s*\.\s*)?\bexpect\s*\("));
static RESPONSE_IS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"pm\s*\.\s*response\s*\.\s*to\s*\.\s*(not\s*\.\s*)?(have|be)\s*\.\s*(\w+)\s*(\()?")
});
static LEGACY: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r#"tests\s*\[\s*["'`][^\n]*?["'`]\s*\]\s*=\s*responseCode\s*\.\s*code\s*===?\s*(\d{3})"#,
    )
});
static CHAIN: LazyLock<Regex> = LazyLock::new(|| pattern(r"^\s*\.\s*(\w+)\s*"));
/// Lines without effect, once recognized parts are blanked out.
static IDLE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r#"^(?:[\s{}();,]*|"use strict"|'use strict'|(?:pm\.test|test|it|describe)\s*\(\s*(?:"[^"]*"|'[^']*'|`[^`]*`)\s*,\s*(?:async\s*)?(?:function\s*\w*\s*\(\s*\w*\s*\)|\(\s*\w*\s*\)\s*=>|\w+\s*=>)?[\s{}();]*|console\.\w+\s*\(.*\)\s*;?[\s{}();]*|try\s*\{[\s]*|\}?\s*catch\s*(?:\(\s*\w*\s*\))?\s*\{[\s{}();]*)$"#,
    )
});

/// Adds the effects of a script to a step, and lists the rest.
pub(crate) fn apply(script: &ClientScript<'_>, step: &mut DraftStep, draft: &mut PlanDraft) {
    if script.text.len() > SCRIPT_MAX {
        draft.left_out.add(
            script.line,
            format!("script of {}", step.name),
            "it is longer than 256 KiB",
        );
        return;
    }
    let blank = |found: &regex::Captures<'_>| keep_lines(found.get(0).map_or("", |it| it.as_str()));
    let text = COMMENTS.replace_all(script.text, blank).into_owned();
    let mut reader =
        ScriptReader { aliases: Aliases::parse(&text), rest: text.clone(), script, step, draft };
    reader.setters(&text);
    if !script.before {
        reader.expectations(&text);
        reader.responses(&text);
        reader.legacy(&text);
    }
    reader.aliases.blank(&mut reader.rest);
    reader.list_rest();
}

/// Replaces all characters except line breaks with spaces, so that lines keep their numbers.
fn keep_lines(text: &str) -> String {
    text.chars().map(|c| if c == '\n' { '\n' } else { ' ' }).collect()
}

struct ScriptReader<'a, 's> {
    aliases: Aliases,
    /// The script without recognized parts.
    rest: String,
    script: &'a ClientScript<'s>,
    step: &'a mut DraftStep,
    draft: &'a mut PlanDraft,
}

impl ScriptReader<'_, '_> {
    fn blank(&mut self, from: usize, to: usize) {
        if let Some(found) = self.rest.get(from..to) {
            let blank: String = found
                .chars()
                .map(|c| if c == '\n' { "\n".to_owned() } else { " ".repeat(c.len_utf8()) })
                .collect();
            self.rest.replace_range(from..to, &blank);
        }
    }

    /// Finds `pm.environment.set("name", value)`.
    fn setters(&mut self, text: &str) {
        for found in SETTERS.find_iter(text) {
            let Some((list, end)) = arguments(text, found.end()) else { continue };
            let [name, value] = &list[..] else { continue };
            let Some(name) = quoted_text(name) else { continue };
            if self.set(&name, value) {
                self.blank(found.start(), end);
            }
        }
    }

    fn set(&mut self, name: &str, value: &str) -> bool {
        if let Some(maker) = maker_of(value, &self.aliases) {
            self.draft.made.retain(|(known, _)| known != name);
            self.draft.made.push((name.to_owned(), maker));
            return true;
        }
        if let Some(value) = quoted_text(value).or_else(|| json_literal(value)) {
            self.draft.vars.retain(|(known, _)| known != name);
            self.draft.vars.push((name.to_owned(), Text::plain(value)));
            return true;
        }
        if self.script.before {
            return false;
        }
        let Some(source) = self.aliases.source(value) else { return false };
        let from = match source {
            Source::Json(place) => CaptureFrom::Json(place),
            Source::Header(name) => CaptureFrom::Header(name),
            Source::Cookie(name) => CaptureFrom::Cookie(name),
            Source::Status => CaptureFrom::Status,
            Source::Body => CaptureFrom::Body,
            Source::Time => return false,
        };
        let mut capture = Capture::new(name, from);
        if matches!(capture.from, CaptureFrom::Body) {
            capture.regex = Some(Text::plain("(?s).*"));
        }
        self.step.captures.push(capture);
        true
    }

    /// Finds `pm.expect(value).to.equal(other)`.
    fn expectations(&mut self, text: &str) {
        for found in EXPECTS.find_iter(text) {
            let Some((list, end)) = arguments(text, found.end()) else { continue };
            let Some(subject) = list.first() else { continue };
            let Some((verb, wanted, stop)) = chain(text, end) else { continue };
            let Some(source) = self.aliases.source(subject) else { continue };
            if self.expect(source, &verb, wanted.as_deref()) {
                self.blank(found.start(), stop);
            }
        }
    }

    fn expect(&mut self, source: Source, verb: &str, wanted: Option<&[String]>) -> bool {
        let first = wanted.and_then(<[String]>::first).map(String::as_str);
        let literal = first.and_then(json_literal);
        let text = first.and_then(quoted_text);
        let equal = ["equal", "equals", "eql", "eq", "deep.equal"].contains(&verb);
        match source {
            Source::Status => {
                let all = first.map(|it| {
                    it.trim_matches(['[', ']', ' ']).split(',').map(str::trim).collect::<Vec<_>>()
                });
                let Some(all) = all.filter(|_| equal || verb == "oneOf") else { return false };
                if !all.iter().all(|one| is_status(one)) {
                    return false;
                }
                self.step.expect.status = all.iter().map(|one| (*one).to_owned()).collect();
                true
            }
            Source::Time => {
                let below = ["below", "lessThan", "lt", "lte", "most"].contains(&verb);
                let millis = first
                    .and_then(|it| it.trim().parse::<f64>().ok())
                    .filter(|ms| *ms > 0.0 && *ms < 1e9);
                let (Some(millis), true) = (millis, below) else { return false };
                self.step.check.at_most = Some(units::Nanos((millis * 1e6) as u64));
                true
            }
            Source::Json(place) => {
                let check = &mut self.step.check;
                match (verb, literal, text) {
                    (_, _, Some(text)) if equal => {
                        check.json.push((place, JsonRule::Text(Text::plain(text))))
                    }
                    (_, Some(raw), _) if equal && raw != "null" => {
                        check.json.push((place, JsonRule::Raw(raw)))
                    }
                    ("true", ..) => check.json.push((place, JsonRule::Raw("true".to_owned()))),
                    ("false", ..) => check.json.push((place, JsonRule::Raw("false".to_owned()))),
                    _ => return false,
                }
                true
            }
            Source::Body => {
                let check = &mut self.step.check;
                match (verb, text) {
                    ("include" | "contain" | "contains" | "includes", Some(text)) => {
                        check.contains.push(Text::plain(text))
                    }
                    (_, Some(text)) if equal => check.exact = Some(Text::plain(text)),
                    _ => return false,
                }
                true
            }
            Source::Header(name) => {
                let rule = match (verb, text) {
                    ("include" | "contain" | "contains" | "includes", Some(text)) => {
                        DraftRule::Contains(Text::plain(text))
                    }
                    (_, Some(text)) if equal => DraftRule::Exact(Text::plain(text)),
                    ("exist" | "ok", _) => DraftRule::Present,
                    _ => return false,
                };
                set_header_rule(&mut self.step.check, name, rule);
                true
            }
            Source::Cookie(_) => false,
        }
    }

    /// Finds `pm.response.to.have.status(200)`.
    fn responses(&mut self, text: &str) {
        for found in RESPONSE_IS.captures_iter(text) {
            let whole = found.get(0).expect("a match has its text");
            let negative = found.get(1).is_some();
            let word = found.get(3).map_or("", |it| it.as_str());
            let (list, end) = match found.get(4) {
                Some(_) => arguments(text, whole.end()).unwrap_or_default(),
                None => (Vec::new(), whole.end()),
            };
            if end == 0 || negative {
                continue;
            }
            if self.response_is(word, &list) {
                self.blank(whole.start(), end);
            }
        }
    }

    fn response_is(&mut self, word: &str, list: &[String]) -> bool {
        let first = list.first().map(String::as_str).unwrap_or_default();
        let (expect, check) = (&mut self.step.expect, &mut self.step.check);
        match word {
            "status" if is_status(first.trim()) => expect.status = vec![first.trim().to_owned()],
            "status" => match quoted_text(first).and_then(|reason| status_of(&reason)) {
                Some(status) => expect.status = vec![status.to_owned()],
                None => return false,
            },
            "ok" | "success" => expect.status = vec!["2xx".to_owned()],
            "created" => expect.status = vec!["201".to_owned()],
            "accepted" => expect.status = vec!["202".to_owned()],
            "redirection" => expect.status = vec!["3xx".to_owned()],
            "clientError" => expect.status = vec!["4xx".to_owned()],
            "badRequest" => expect.status = vec!["400".to_owned()],
            "unauthorized" => expect.status = vec!["401".to_owned()],
            "forbidden" => expect.status = vec!["403".to_owned()],
            "notFound" => expect.status = vec!["404".to_owned()],
            "json" => {
                set_header_rule(
                    check,
                    "Content-Type".to_owned(),
                    DraftRule::Contains(Text::plain("json")),
                );
            }
            "withBody" => check.regex.push(Text::plain("(?s).")),
            "header" => {
                let Some(name) = quoted_text(first) else { return false };
                let value = list.get(1).map(|it| quoted_text(it));
                let rule = match value {
                    None => DraftRule::Present,
                    Some(Some(value)) => DraftRule::Exact(Text::plain(value)),
                    Some(None) => return false,
                };
                set_header_rule(check, name, rule);
            }
            "body" => match quoted_text(first) {
                Some(body) => check.exact = Some(Text::plain(body)),
                None => return false,
            },
            _ => return false,
        }
        true
    }

    /// Finds `tests["..."] = responseCode.code === 200`.
    fn legacy(&mut self, text: &str) {
        for found in LEGACY.captures_iter(text) {
            let (whole, status) = (found.get(0), found.get(1));
            if let (Some(whole), Some(status)) = (whole, status)
                && is_status(status.as_str())
            {
                self.step.expect.status = vec![status.as_str().to_owned()];
                self.blank(whole.start(), whole.end());
            }
        }
    }

    fn list_rest(&mut self) {
        let phase = if self.script.before { "pre-request script" } else { "test script" };
        for (index, (line, whole)) in self.rest.lines().zip(self.script.text.lines()).enumerate() {
            if !IDLE.is_match(line.trim()) {
                let what = format!("{phase} of {}: {}", self.step.name, whole.trim());
                self.draft.left_out.add(self.script.line + index, what, NOT_EXECUTED);
            }
        }
    }
}

fn set_header_rule(check: &mut Checks, name: String, rule: DraftRule) {
    check.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(&name));
    check.headers.push((name, rule));
}

pub(crate) fn is_status(text: &str) -> bool {
    text.parse::<u16>().is_ok_and(|status| (100..=599).contains(&status))
}

fn status_of(reason: &str) -> Option<&'static str> {
    let table = [
        ("OK", "200"),
        ("Created", "201"),
        ("Accepted", "202"),
        ("No Content", "204"),
        ("Bad Request", "400"),
        ("Unauthorized", "401"),
        ("Forbidden", "403"),
        ("Not Found", "404"),
    ];
    table.iter().find(|(name, _)| name.eq_ignore_ascii_case(reason)).map(|(_, status)| *status)
}

/// Parses `.to.be.oneOf([200, 201])` after an expectation: the last word of the chain, its
/// arguments, and its end. A chain with `not` is not recognized.
fn chain(text: &str, from: usize) -> Option<(String, Option<Vec<String>>, usize)> {
    let mut at = from;
    let mut words: Vec<String> = Vec::new();
    loop {
        let rest = text.get(at..)?;
        let found = CHAIN.captures(rest);
        let Some(found) = found else { break };
        let word = found.get(1)?.as_str();
        at += found.get(0)?.end();
        if word == "not" {
            return None;
        }
        words.push(word.to_owned());
        if text.get(at..)?.starts_with('(') {
            let (list, end) = arguments(text, at + 1)?;
            // a longer chain asserts more than its first link
            if CHAIN.is_match(text.get(end..)?) {
                return None;
            }
            return Some((verb(&words), Some(list), end));
        }
    }
    (!words.is_empty()).then(|| (verb(&words), None, at))
}

fn verb(words: &[String]) -> String {
    let filler = ["to", "be", "have", "an", "a", "is", "that", "deep"];
    let last = words.iter().rev().find(|word| !filler.contains(&word.as_str()));
    last.cloned().unwrap_or_default()
}

/// Parses an expression that generates a value.
fn maker_of(expression: &str, aliases: &Aliases) -> Option<Maker> {
    let dense: String =
        aliases.resolved(expression).chars().filter(|c| !c.is_whitespace()).collect();
    if let Some(name) = dense
        .strip_prefix("pm.variables.replaceIn(")
        .and_then(|rest| quoted_text(rest.trim_end_matches(')')))
    {
        let name = name.strip_prefix("{{")?.strip_suffix("}}")?;
        return match &crate::dynamic::dynamic(name.trim())?.0[..] {
            [DraftPart::Made(maker)] => Some(maker.clone()),
            _ => None,
        };
    }
    let dense = dense.trim_end_matches(".toString()");
    let dense = dense.strip_prefix("String(").and_then(|it| it.strip_suffix(')')).unwrap_or(dense);
    match dense {
        "Date.now()" | "newDate().getTime()" | "newDate().valueOf()" => return Some(Maker::Millis),
        "Math.floor(Date.now()/1000)" | "Math.round(Date.now()/1000)" => {
            return Some(Maker::Seconds);
        }
        "uuid.v4()" | "uuidv4()" | "crypto.randomUUID()" | "require('uuid').v4()" => {
            return Some(Maker::Uuid);
        }
        _ => {}
    }
    let random = dense
        .strip_prefix("Math.floor(Math.random()*")
        .or_else(|| dense.strip_prefix("Math.round(Math.random()*"));
    if let Some(rest) = random {
        let (most, plus) = rest.split_once(')')?;
        let most = most.trim_matches(['(', ')']).parse::<i64>().ok()?;
        let plus = plus.trim_matches(['(', ')', '+']);
        let plus = if plus.is_empty() { 0 } else { plus.parse::<i64>().ok()? };
        let last = plus.checked_add(most.checked_sub(1)?)?;
        return (most > 0).then_some(Maker::Range(plus, last));
    }
    let random = dense.strip_prefix("_.random(")?.strip_suffix(')')?;
    let (from, to) = random.split_once(',')?;
    let (from, to) = (from.parse::<i64>().ok()?, to.parse::<i64>().ok()?);
    (from <= to).then_some(Maker::Range(from, to))
}
