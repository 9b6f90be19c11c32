//! Assertions and extractors.

use super::DraftReader;
use super::elements::Element;
use crate::draft::*;
use crate::scripts::is_status;
use crate::text::Text;
use units::Nanos;

/// Bits of `Assertion.test_type`.
const NOT: i64 = 4;
const EQUALS: i64 = 8;
const SUBSTRING: i64 = 16;
const MATCH: i64 = 1;
const OR: i64 = 32;

impl DraftReader<'_> {
    /// Adds the checks and captures of an element below a sampler.
    pub(super) fn check(&mut self, element: &Element<'_, '_>, step: &mut DraftStep) {
        match element.kind() {
            "ResponseAssertion" => self.response_assertion(element, step),
            "JSONPathAssertion" => self.json_assertion(element, step),
            "DurationAssertion" => {
                let text = self.settled(&element.text("DurationAssertion.duration"), element);
                let millis = text.parse::<f64>().ok().filter(|ms| *ms > 0.0 && *ms < 8.64e7);
                step.expect.at_most = millis.map(|ms| Nanos((ms * 1e6) as u64));
            }
            "SizeAssertion" => {
                let size = element.text("SizeAssertion.size").parse().ok();
                // 1 is "equal to"; other comparisons have no equivalent
                match element.text("SizeAssertion.operator").as_str() {
                    "1" if size.is_some()
                        && element.text("Assertion.test_field").contains("body") =>
                    {
                        step.expect.length = size;
                    }
                    _ => self.leave_out(element, "only equality of a body size can be checked"),
                }
            }
            "JSONPostProcessor" => self.json_extractor(element, step),
            "RegexExtractor" => self.regex_extractor(element, step),
            "BoundaryExtractor" => self.boundary_extractor(element, step),
            "HtmlExtractor" => {
                let attribute =
                    Some(element.text("HtmlExtractor.attribute")).filter(|it| !it.is_empty());
                let from = CaptureFrom::Css(element.text("HtmlExtractor.expr"), attribute);
                let number = element.text("HtmlExtractor.match_number");
                let default = element.text("HtmlExtractor.default");
                let name = element.text("HtmlExtractor.refname");
                self.capture(element, step, (name, from, None), (number, default));
            }
            kind if kind.ends_with("Timer") => {}
            "HeaderManager"
            | "Arguments"
            | "CSVDataSet"
            | "CookieManager"
            | "CounterConfig"
            | "RandomVariableConfig"
            | "UserParameters"
            | "AuthManager"
            | "ConfigTestElement"
            | "CacheManager"
            | "DNSCacheManager" => {}
            kind if kind.contains("JSR223") || kind.contains("BeanShell") => {
                self.script_of_sampler(element)
            }
            _ => self.leave_out(element, "it is not supported"),
        }
    }

    fn script_of_sampler(&mut self, element: &Element<'_, '_>) {
        // extractors before a request may define a variable, which `parts` reads
        let pieces = self.parts(&[*element], &super::scope::JmxScope::default(), 0);
        debug_assert!(pieces.is_empty(), "a script has no requests");
    }

    fn response_assertion(&mut self, element: &Element<'_, '_>, step: &mut DraftStep) {
        let kind: i64 = element.text("Assertion.test_type").parse().unwrap_or(SUBSTRING);
        let field = element.text("Assertion.test_field");
        let strings = match element.items("Asserion.test_strings") {
            list if list.is_empty() => element.items("Assertion.test_strings"),
            list => list,
        };
        let values: Vec<(String, roxmltree::Node<'_, '_>)> = strings
            .into_iter()
            .map(|node| (node.text().unwrap_or_default().to_owned(), node))
            .collect();
        if field == "Assertion.response_code"
            && kind & NOT == 0
            && values.iter().all(|(value, _)| is_status(value.trim()))
        {
            let statuses = values.iter().map(|(value, _)| value.trim().to_owned());
            step.expect.status = statuses.collect();
            return;
        }
        if kind & OR != 0 && values.len() > 1 {
            return self
                .leave_out(element, "several alternatives: only all of them can be expected");
        }
        for (value, node) in values {
            let value = self.text(&value, node);
            if !respond(&field, kind, value, step) {
                let why = format!("{field} with test_type {kind} cannot be expected here");
                return self.leave_out(element, &why);
            }
        }
    }

    fn json_assertion(&mut self, element: &Element<'_, '_>, step: &mut DraftStep) {
        let path = element.text("JSON_PATH");
        let value = element.text("EXPECTED_VALUE");
        let regex = element.text("ISREGEX") == "true";
        if element.is_true("INVERT") || regex && !is_plain(&value) || element.is_true("EXPECT_NULL")
        {
            return self.leave_out(element, "only equality of a JSON value can be checked");
        }
        if !element.is_true("JSONVALIDATION") {
            // requires a match: a capture that finds nothing fails the call
            let name = format!("found-{}", step.captures.len() + 1);
            step.captures.push(Capture::new(name, CaptureFrom::Json(path)));
            return;
        }
        let text = self.text(&value, element.node);
        let rule = match text
            .settled()
            .map(|it| serde_json::from_str::<serde_json::Value>(&it).map(|json| (it, json)))
        {
            Some(Ok((raw, serde_json::Value::Number(_) | serde_json::Value::Bool(_)))) => {
                JsonRule::Raw(raw.trim().to_owned())
            }
            _ => JsonRule::Text(text),
        };
        step.expect.json.push((path, rule));
    }

    /// Reads an element that may have several names, separated by semicolons.
    fn json_extractor(&mut self, element: &Element<'_, '_>, step: &mut DraftStep) {
        let list = |name: &str| -> Vec<String> {
            element.text(name).split(';').map(|it| it.trim().to_owned()).collect()
        };
        let names = list("JSONPostProcessor.referenceNames");
        let paths = list("JSONPostProcessor.jsonPathExprs");
        let numbers = list("JSONPostProcessor.match_numbers");
        let defaults = list("JSONPostProcessor.defaultValues");
        for (index, (name, path)) in names.into_iter().zip(paths).enumerate() {
            let path = if path.starts_with('$') { path } else { format!("$.{path}") };
            let number = numbers.get(index).cloned().unwrap_or_default();
            let default = defaults.get(index).cloned().unwrap_or_default();
            self.capture(element, step, (name, CaptureFrom::Json(path), None), (number, default));
        }
    }

    fn regex_extractor(&mut self, element: &Element<'_, '_>, step: &mut DraftStep) {
        let mut regex = self.text(&element.text("RegexExtractor.regex"), element.node);
        let template = element.text("RegexExtractor.template");
        match template.as_str() {
            "" | "$1$" => {}
            "$0$" => {
                let mut whole = Text::plain("(");
                whole.append(regex);
                whole.push_str(")");
                regex = whole;
            }
            _ => self.leave_out(element, "only the first group is taken; its template is not"),
        }
        let from = match element.text("RegexExtractor.useHeaders").as_str() {
            "" | "false" | "as_document" | "unescaped" => CaptureFrom::Body,
            "true" => match header_of(&mut regex) {
                Some(name) => CaptureFrom::Header(name),
                None => {
                    return self.leave_out(
                        element,
                        "its expression does not begin with the name of a header",
                    );
                }
            },
            "code" => CaptureFrom::Status,
            _ => {
                return self.leave_out(element, "the URL and the reason phrase cannot be captured");
            }
        };
        let name = element.text("RegexExtractor.refname");
        let number = element.text("RegexExtractor.match_number");
        let default = element.text("RegexExtractor.default");
        self.capture(element, step, (name, from, Some(regex)), (number, default));
    }

    fn boundary_extractor(&mut self, element: &Element<'_, '_>, step: &mut DraftStep) {
        let (left, right) = (
            element.raw("BoundaryExtractor.lboundary"),
            element.raw("BoundaryExtractor.rboundary"),
        );
        let mut regex = self.text(&left, element.node).map_plain(regex::escape);
        regex.push_str("(?s:(.*?))");
        let right = self.text(&right, element.node).map_plain(regex::escape);
        regex.append(right);
        let name = element.text("BoundaryExtractor.refname");
        let number = element.text("BoundaryExtractor.match_number");
        let default = element.text("BoundaryExtractor.default");
        if element.text("BoundaryExtractor.useHeaders") == "true" {
            return self
                .leave_out(element, "boundaries in headers are not imported; capture the header");
        }
        self.capture(element, step, (name, CaptureFrom::Body, Some(regex)), (number, default));
    }

    fn capture(
        &mut self,
        element: &Element<'_, '_>,
        step: &mut DraftStep,
        (name, from, regex): (String, CaptureFrom, Option<Text>),
        (number, default): (String, String),
    ) {
        if name.is_empty() {
            return self.leave_out(element, "it has no name");
        }
        let take = match number.as_str() {
            "" | "1" => None,
            "0" => Some("random"),
            _ => {
                self.leave_out(element, "match number: the first match is taken");
                None
            }
        };
        if !default.is_empty()
            && !["NOT_FOUND", "NOTFOUND", "null", "NULL", "ERROR", "none"]
                .contains(&default.as_str())
        {
            self.draft.notes.push(format!(
                "{} {}: its default {} is not used; steps that need the value are skipped if it is missing.",
                element.kind(),
                element.name(),
                units::quoted(&default)
            ));
        }
        step.captures.retain(|known| known.name != name);
        step.captures.push(Capture { regex, take, optional: true, ..Capture::new(name, from) });
    }
}

fn respond(field: &str, kind: i64, value: Text, step: &mut DraftStep) -> bool {
    let expect = &mut step.expect;
    let plain = value.settled().is_none_or(|it| is_plain(&it));
    match field {
        "Assertion.response_data" | "Assertion.response_data_as_document" | "" => {
            match kind & !OR {
                SUBSTRING => expect.contains.push(value),
                kind if kind == SUBSTRING | NOT => expect.lacks.push(value),
                EQUALS => expect.exact = Some(value),
                2 if plain => expect.contains.push(value),
                2 => expect.regex.push(value),
                6 if plain => expect.lacks.push(value),
                MATCH => {
                    let mut whole = Text::plain("^(?:");
                    whole.append(value);
                    whole.push_str(")$");
                    expect.regex.push(whole);
                }
                _ => return false,
            }
        }
        // a status within a longer expression
        "Assertion.response_code" if kind & NOT == 0 => {
            let Some(text) = value.settled() else { return false };
            let hundreds = text.trim().trim_end_matches([
                'x', 'X', '.', '*', '\\', 'd', '+', '[', ']', '0', '9', '-', '{', '}', '2', '|',
                '(', ')',
            ]);
            let first = text.trim().chars().next().filter(|c| ('1'..='5').contains(c));
            match first {
                Some(first)
                    if text.len() <= 8 && hundreds.len() <= 1 && !is_status(text.trim()) =>
                {
                    expect.status.push(format!("{first}xx"));
                }
                Some(_) if is_status(text.trim()) => expect.status.push(text.trim().to_owned()),
                _ => return false,
            }
        }
        "Assertion.response_headers" if kind & NOT == 0 => {
            let Some(text) = value.settled() else { return false };
            match text.split_once(':') {
                Some((name, value)) if !name.contains(char::is_whitespace) => {
                    let rule = match value.trim() {
                        "" => DraftRule::Present,
                        value if kind & 2 != 0 && !is_plain(value) => {
                            DraftRule::Regex(Text::plain(value))
                        }
                        value => DraftRule::Contains(Text::plain(value)),
                    };
                    expect.headers.push((name.to_owned(), rule));
                }
                _ => return false,
            }
        }
        // the reason phrase adds nothing to the status
        "Assertion.response_message" if kind & NOT == 0 => match value.settled().as_deref() {
            Some("OK") => expect.status.push("200".to_owned()),
            Some("Created") => expect.status.push("201".to_owned()),
            _ => return false,
        },
        _ => return false,
    }
    true
}

/// Returns whether an expression matches only its own text.
fn is_plain(expression: &str) -> bool {
    !expression.contains(['\\', '^', '$', '.', '|', '?', '*', '+', '(', ')', '[', ']', '{', '}'])
}

/// Returns the header name at the start of an expression, and removes it.
fn header_of(regex: &mut Text) -> Option<String> {
    let first = regex.beginning().to_owned();
    let (name, rest) = first.split_once(':')?;
    let name = name.trim_start_matches('^').trim();
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        return None;
    }
    let rest = rest.trim_start().trim_start_matches("\\s*").trim_start_matches("\\s").to_owned();
    let tail = regex.0.iter().skip(1).cloned();
    let mut text = Text::plain(rest);
    tail.for_each(|part| text.push(part));
    *regex = text;
    Some(name.to_owned())
}
