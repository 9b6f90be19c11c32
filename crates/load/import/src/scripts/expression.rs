//! JavaScript expressions that refer to values of a response.

use regex::Regex;
use std::sync::LazyLock;

/// Part of a response.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Source {
    /// JSONPath.
    Json(String),
    Header(String),
    Cookie(String),
    Status,
    Body,
    /// Response time.
    Time,
}

/// Names that refer to expressions.
#[derive(Debug, Default)]
pub(crate) struct Aliases {
    all: Vec<(String, String)>,
    /// Positions of their declarations.
    spans: Vec<(usize, usize)>,
}

/// Maximum depth of names that refer to names.
const ALIAS_DEPTH_MAX: usize = 8;

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the pattern is a constant")
}

static DECLARED: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?:\b(?:const|let|var)\s+)(\w+)\s*=\s*([^;\n]+);?"));
static UNPACKED: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"\b(?:const|let|var)\s*\{([\w\s,:]+)\}\s*=\s*([^;\n]+);?"));
static STEPS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r#"^(?:\??\.([A-Za-z_$][\w$]*)|(?:\?\.)?\[(\d+)\]|(?:\?\.)?\[\s*(?:"([^"\\]+)"|'([^'\\]+)')\s*\])"#,
    )
});

impl Aliases {
    pub(crate) fn parse(text: &str) -> Aliases {
        let mut aliases = Aliases::default();
        for found in DECLARED.captures_iter(text) {
            if let (Some(whole), Some(name), Some(value)) =
                (found.get(0), found.get(1), found.get(2))
            {
                aliases.all.push((name.as_str().to_owned(), value.as_str().trim().to_owned()));
                aliases.spans.push((whole.start(), whole.end()));
            }
        }
        for found in UNPACKED.captures_iter(text) {
            if let (Some(whole), Some(names), Some(value)) =
                (found.get(0), found.get(1), found.get(2))
            {
                for name in names.as_str().split(',') {
                    let (field, name) = name.split_once(':').unwrap_or((name, name));
                    let value = format!("{}.{}", value.as_str().trim(), field.trim());
                    aliases.all.push((name.trim().to_owned(), value));
                }
                aliases.spans.push((whole.start(), whole.end()));
            }
        }
        aliases
    }

    /// Blanks out declarations of names for parts of the response: they have no other effect.
    pub(crate) fn blank(&self, rest: &mut String) {
        for (from, to) in &self.spans {
            let Some(found) = rest.get(*from..*to) else { continue };
            let value = found.split_once('=').map(|(_, value)| value.trim().trim_end_matches(';'));
            let known = value.is_some_and(|value| {
                self.source(value).is_some()
                    || is_whole(value)
                    || super::maker_of(value, self).is_some()
                    || quoted_text(value).is_some()
                    || json_literal(value).is_some()
            });
            if known {
                let blank: String = found
                    .chars()
                    .map(|c| if c == '\n' { "\n".to_owned() } else { " ".repeat(c.len_utf8()) })
                    .collect();
                rest.replace_range(*from..*to, &blank);
            }
        }
    }

    /// Replaces the first name of an expression by the expression that it refers to.
    pub(crate) fn resolved(&self, expression: &str) -> String {
        let mut text = expression.trim().trim_start_matches("await ").trim().to_owned();
        for _ in 0..ALIAS_DEPTH_MAX {
            let end = text
                .find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$'))
                .unwrap_or(text.len());
            let value = self.all.iter().rev().find(|(name, _)| *name == text[..end]);
            let Some((name, value)) = value else { break };
            if value.starts_with(name.as_str()) {
                break;
            }
            text = format!("{}{}", value.trim_start_matches("await ").trim(), &text[end..]);
        }
        text
    }

    /// Returns the part of the response that an expression refers to.
    pub(crate) fn source(&self, expression: &str) -> Option<Source> {
        let text = self.resolved(expression);
        let text = text.trim();
        if ["pm.response.code", "responseCode.code", "res.status", "res.getStatus()"]
            .contains(&text)
        {
            return Some(Source::Status);
        }
        if ["pm.response.responseTime", "responseTime", "res.responseTime", "res.getResponseTime()"]
            .contains(&text)
        {
            return Some(Source::Time);
        }
        if ["pm.response.text()", "responseBody"].contains(&text) {
            return Some(Source::Body);
        }
        for (start, cookie) in [
            ("pm.response.headers.get(", false),
            ("postman.getResponseHeader(", false),
            ("res.getHeader(", false),
            ("pm.cookies.get(", true),
            ("postman.getResponseCookie(", true),
        ] {
            if let Some(rest) = text.strip_prefix(start) {
                let end = rest.find(')')?;
                let tail = rest[end + 1..].trim();
                let name = quoted_text(&rest[..end])?;
                return match cookie {
                    true => (tail.is_empty() || tail == ".value").then_some(Source::Cookie(name)),
                    false => tail.is_empty().then_some(Source::Header(name)),
                };
            }
        }
        json_path(text).map(Source::Json)
    }
}

/// Expressions for the whole document.
const WHOLE: [&str; 7] = [
    "pm.response.json()",
    "JSON.parse(responseBody)",
    "JSON.parse(pm.response.text())",
    "res.getBody()",
    "res.body",
    "response.json()",
    "res.json()",
];

fn is_whole(text: &str) -> bool {
    WHOLE.contains(&text.trim())
}

/// Returns the JSONPath of `pm.response.json().data[0].id`.
fn json_path(text: &str) -> Option<String> {
    let rest = WHOLE.iter().find_map(|start| text.strip_prefix(start))?;
    let mut path = "$".to_owned();
    let mut rest = rest.trim();
    while !rest.is_empty() {
        let found = STEPS.captures(rest)?;
        if let Some(name) = found.get(1) {
            // lengths and methods are not in the document
            let tail = rest[name.end()..].trim_start();
            if name.as_str() == "length" && tail.is_empty() || tail.starts_with('(') {
                return None;
            }
            path.push('.');
            path.push_str(name.as_str());
        } else if let Some(index) = found.get(2) {
            path.push_str(&format!("[{}]", index.as_str()));
        } else if let Some(name) = found.get(3).or(found.get(4)) {
            path.push_str(&format!("['{}']", name.as_str().replace('\'', "\\'")));
        }
        rest = &rest[found.get(0)?.end()..];
    }
    (path != "$").then_some(path)
}

/// Parses a text between quotation marks, without interpolation.
pub(crate) fn quoted_text(expression: &str) -> Option<String> {
    let text = expression.trim();
    let mark = text.chars().next().filter(|c| ['"', '\'', '`'].contains(c))?;
    let inner = text.get(1..)?.strip_suffix(mark)?;
    let mut out = String::new();
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next()? {
                'n' => out.push('\n'),
                't' => out.push('\t'),
                'r' => out.push('\r'),
                'u' | 'x' => return None,
                other => out.push(other),
            },
            c if c == mark => return None,
            '$' if mark == '`' && chars.as_str().starts_with('{') => return None,
            c => out.push(c),
        }
    }
    Some(out)
}

/// Parses a number or a boolean.
pub(crate) fn json_literal(expression: &str) -> Option<String> {
    let text = expression.trim();
    let value: serde_json::Value = serde_json::from_str(text).ok()?;
    matches!(value, serde_json::Value::Number(_) | serde_json::Value::Bool(_))
        .then(|| text.to_owned())
}

/// Maximum size of a list of arguments in bytes.
const ARGUMENTS_MAX: usize = 16 << 10;

/// Returns the arguments of a call whose opening parenthesis ends at `from`, and the end of the
/// call.
pub(crate) fn arguments(text: &str, from: usize) -> Option<(Vec<String>, usize)> {
    let rest = text.get(from..)?;
    let (mut list, mut start, mut depth) = (Vec::new(), 0, 0_usize);
    let mut quote: Option<char> = None;
    let mut escaped = false;
    for (at, c) in rest.char_indices().take_while(|(at, _)| *at < ARGUMENTS_MAX) {
        if let Some(mark) = quote {
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                c if c == mark => quote = None,
                _ => {}
            }
            continue;
        }
        match c {
            '"' | '\'' | '`' => quote = Some(c),
            '(' | '[' | '{' => depth += 1,
            ')' if depth == 0 => {
                let last = rest[start..at].trim();
                if !last.is_empty() {
                    list.push(last.to_owned());
                }
                return Some((list, from + at + 1));
            }
            ')' | ']' | '}' => depth = depth.checked_sub(1)?,
            ',' if depth == 0 => {
                list.push(rest[start..at].trim().to_owned());
                start = at + 1;
            }
            _ => {}
        }
    }
    None
}
