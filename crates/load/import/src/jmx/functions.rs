//! `${name}` and `${__function(arguments)}` of JMeter.

use crate::draft::{DataTable, LeftOutList};
use crate::text::{DraftPart, Maker, Text};

/// Maximum nesting depth of functions.
const DEPTH_MAX: usize = 12;

#[derive(Debug)]
pub(super) struct Functions {
    properties: Vec<(String, String)>,
    /// Variables that functions and elements define.
    pub(super) made: Vec<(String, Maker)>,
    pub(super) tables: Vec<DataTable>,
}

impl Functions {
    pub(super) fn new(properties: &[(String, String)]) -> Functions {
        Functions { properties: properties.to_vec(), made: Vec::new(), tables: Vec::new() }
    }

    pub(super) fn counter(&mut self, name: String, from: i64, to: i64) {
        self.made.push((name, Maker::Counter(from, to)));
    }

    /// Reads a text of the file.
    pub(super) fn text(&mut self, source: &str, line: usize, left_out: &mut LeftOutList) -> Text {
        self.read(source, line, left_out, 0)
    }

    fn read(
        &mut self,
        source: &str,
        line: usize,
        left_out: &mut LeftOutList,
        depth: usize,
    ) -> Text {
        let mut text = Text::default();
        let mut rest = source;
        while let Some((before, after)) = rest.split_once("${") {
            text.push_str(before);
            let Some(end) = closing(after).filter(|_| depth < DEPTH_MAX) else {
                text.push_str("${");
                rest = after;
                continue;
            };
            let inside = &after[..end];
            rest = &after[end + 1..];
            match inside.strip_prefix("__") {
                Some(call) => {
                    let value = self.call(call, line, left_out, depth);
                    text.append(value);
                }
                None => text.append(Text::named(inside.trim())),
            }
        }
        text.push_str(rest);
        text
    }

    fn call(&mut self, call: &str, line: usize, left_out: &mut LeftOutList, depth: usize) -> Text {
        let (name, list) = call.split_once('(').unwrap_or((call, ""));
        let list = list.strip_suffix(')').unwrap_or(list);
        let texts: Vec<Text> = split_arguments(list)
            .iter()
            .map(|part| self.read(&part.replace("\\,", ","), line, left_out, depth + 1))
            .collect();
        let name = name.trim();
        let settled =
            |at: usize| texts.get(at).and_then(Text::settled).map(|it| it.trim().to_owned());
        if let Some((maker, saved)) = maker_of(name, &settled, texts.len()) {
            return self.keep(saved, maker);
        }
        let fault = match name {
            "P" | "property" | "env" => {
                let wanted = settled(0).unwrap_or_default();
                // property and env have the default in third place
                let default = texts.get(if name == "P" { 1 } else { 2 }).cloned();
                return self.property(&wanted, default, line, left_out);
            }
            "V" | "eval" => {
                let text = texts.first().cloned().unwrap_or_default();
                return text.settled().filter(|_| name == "V").map_or(text, Text::named);
            }
            "intSum" | "longSum" => match sum(&settled, texts.len()) {
                Some(sum) => return Text::plain(sum.to_string()),
                None => "sums of values that are known only during the run",
            },
            "samplerName" | "threadGroupName" | "machineName" | "machineIP" | "TestPlanName" => {
                return Text::plain("jmeter");
            }
            _ if TRANSFORMS.contains(&name) => {
                if let Some(text) = settled(0).and_then(|text| transform(name, &text)) {
                    return Text::plain(text);
                }
                let why = "values of the run are not transformed; the value itself is sent";
                left_out.add(line, format!("${{__{call}}}"), why);
                return texts.first().cloned().unwrap_or_default();
            }
            "Random" => "its bounds are not numbers that are known before the run",
            "time" | "timeShift" | "RandomDate" => "dates are not computed; 2027-01-15 is sent",
            _ => "this function is not known",
        };
        unknown(call, fault, line, left_out)
    }

    /// Returns a generated value, and stores it under the name given to the function, if any.
    fn keep(&mut self, saved: Option<String>, maker: Maker) -> Text {
        match saved.filter(|name| !name.is_empty()) {
            Some(name) => {
                self.made.retain(|(known, _)| *known != name);
                self.made.push((name.clone(), maker));
                Text::named(name)
            }
            None => Text(vec![DraftPart::Made(maker)]),
        }
    }

    fn property(
        &self,
        wanted: &str,
        default: Option<Text>,
        line: usize,
        left_out: &mut LeftOutList,
    ) -> Text {
        if let Some((_, value)) = self.properties.iter().rev().find(|(name, _)| name == wanted) {
            return Text::plain(value);
        }
        default.unwrap_or_else(|| {
            left_out.add(
                line,
                format!("property {wanted}"),
                format!("it has no default; give -J {wanted}=VALUE"),
            );
            Text::plain("1")
        })
    }
}

/// Functions that transform a text.
const TRANSFORMS: [&str; 11] = [
    "base64Encode",
    "base64Decode",
    "urlencode",
    "urldecode",
    "lowercase",
    "toLowerCase",
    "uppercase",
    "toUpperCase",
    "escapeHtml",
    "unescape",
    "trim",
];

/// Returns the generator of a function that generates a value, with the variable that stores it.
fn maker_of(
    name: &str,
    settled: &dyn Fn(usize) -> Option<String>,
    count: usize,
) -> Option<(Maker, Option<String>)> {
    let number = |at: usize| settled(at).and_then(|it| it.parse::<i64>().ok());
    Some(match name {
        "Random" => {
            let (from, to) = (number(0)?, number(1)?);
            (Maker::Range(from.min(to), from.max(to)), settled(2))
        }
        "RandomString" => {
            let length = number(0).and_then(|n| usize::try_from(n).ok()).unwrap_or(8);
            let length = length.clamp(1, 10_000);
            let letters = settled(1).unwrap_or_default();
            let all = |fits: fn(&char) -> bool| letters.chars().all(|c| fits(&c));
            let maker = match () {
                () if letters.is_empty() => Maker::Letters(length),
                () if all(char::is_ascii_digit) => Maker::Digits(length),
                () if all(char::is_ascii_hexdigit) => Maker::Hex(length),
                () => Maker::Letters(length),
            };
            (maker, settled(2))
        }
        "chooseRandom" => {
            let mut values: Vec<String> = (0..count).filter_map(settled).collect();
            let saved = if values.len() > 2 { values.pop() } else { None };
            (Maker::OneOf(values), saved)
        }
        "UUID" => (Maker::Uuid, None),
        "threadNum" => (Maker::UserNumber, None),
        "iterationNum" => (Maker::IterationNumber, None),
        "counter" => (Maker::Counter(1, i64::MAX / 4), settled(1)),
        "time" | "timeShift" => match settled(0).unwrap_or_default().as_str() {
            "" => (Maker::Millis, settled(1)),
            "/1000" => (Maker::Seconds, settled(1)),
            _ => return None,
        },
        _ => return None,
    })
}

fn sum(settled: &dyn Fn(usize) -> Option<String>, count: usize) -> Option<i64> {
    let mut given = (0..count).map(settled).filter(|it| it.as_deref() != Some(""));
    given.try_fold(0_i64, |sum, text| sum.checked_add(text?.parse().ok()?))
}

fn unknown(call: &str, why: &str, line: usize, left_out: &mut LeftOutList) -> Text {
    left_out.add(line, format!("${{__{call}}}"), why);
    let date = call.starts_with("time") || call.starts_with("RandomDate");
    Text::plain(if date { "2027-01-15" } else { "x" })
}

fn transform(function: &str, text: &str) -> Option<String> {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    Some(match function {
        "base64Encode" => STANDARD.encode(text),
        "base64Decode" => String::from_utf8(STANDARD.decode(text).ok()?).ok()?,
        "urlencode" => url::form_urlencoded::byte_serialize(text.as_bytes()).collect(),
        "urldecode" => percent_encoding::percent_decode_str(&text.replace('+', " "))
            .decode_utf8()
            .ok()?
            .into_owned(),
        "lowercase" | "toLowerCase" => text.to_lowercase(),
        "uppercase" | "toUpperCase" => text.to_uppercase(),
        "trim" => text.trim().to_owned(),
        _ => return None,
    })
}

/// Returns the position of the closing brace.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => return Some(at),
            '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Splits arguments at commas that are neither escaped nor inside another call.
fn split_arguments(list: &str) -> Vec<String> {
    if list.is_empty() {
        return Vec::new();
    }
    let mut parts = vec![String::new()];
    let mut depth = 0_usize;
    let mut before = ' ';
    for c in list.chars() {
        match c {
            '{' | '(' => depth += 1,
            '}' | ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if c == ',' && depth == 0 && before != '\\' {
            parts.push(String::new());
        } else if let Some(last) = parts.last_mut() {
            last.push(c);
        }
        before = c;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(source: &str) -> (Text, usize) {
        let mut functions = Functions::new(&[("host".to_owned(), "h".to_owned())]);
        let mut left_out = LeftOutList::default();
        let text = functions.text(source, 1, &mut left_out);
        (text, left_out.0.len())
    }

    #[test]
    fn functions_become_values() {
        let settled = |source: &str| read(source).0.settled().unwrap_or_else(|| panic!("{source}"));
        assert_eq!(settled("http://${__P(host,x)}:${__P(port,80)}/"), "http://h:80/");
        assert_eq!(settled("${__property(host)}${__intSum(1,2,)}"), "h3");
        assert_eq!(settled("${__base64Encode(a:b)} ${__urlencode(a b)}"), "YTpi a+b");
        assert_eq!(settled("${__P(x,a\\,b)} ${open"), "a,b ${open");
        assert_eq!(read("${__Random(1,9)}").0.0, [DraftPart::Made(Maker::Range(1, 9))]);
        assert_eq!(read("${__Random(1,9,n)}").0.single_name(), Some("n"));
        assert_eq!(
            read("${__UUID}${__UUID()}").0.0,
            [DraftPart::Made(Maker::Uuid), DraftPart::Made(Maker::Uuid)]
        );
        assert_eq!(read("${__groovy(1 + ${x})}").1, 1);
        assert_eq!(read("${__P(none)}").1, 1);
    }
}
