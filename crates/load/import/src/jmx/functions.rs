//! `${name}` and `${__function(arguments)}` of JMeter.

use crate::draft::{DataTable, LeftOutList};
use crate::text::{Maker, Part, Text};

/// Functions in one another.
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
        let parts = split_arguments(list);
        let texts: Vec<Text> = parts
            .iter()
            .map(|part| self.read(&part.replace("\\,", ","), line, left_out, depth + 1))
            .collect();
        let settled =
            |at: usize| texts.get(at).and_then(Text::settled).map(|it| it.trim().to_owned());
        let made = |maker: Maker| Text(vec![Part::Made(maker)]);
        let number = |at: usize| settled(at).and_then(|it| it.parse::<i64>().ok());
        let keep = |saved: Option<String>, maker: Maker, this: &mut Functions| match saved
            .filter(|name| !name.is_empty())
        {
            Some(name) => {
                this.made.retain(|(known, _)| *known != name);
                this.made.push((name.clone(), maker));
                Text::named(name)
            }
            None => made(maker),
        };
        match name.trim() {
            "P" | "property" => {
                let wanted = settled(0).unwrap_or_default();
                // property has its default in third place
                let default = texts.get(if name.trim() == "P" { 1 } else { 2 }).cloned();
                self.property(&wanted, default, line, left_out)
            }
            "V" | "eval" => match texts.first() {
                Some(text) => text
                    .settled()
                    .filter(|_| name.trim() == "V")
                    .map_or_else(|| text.clone(), Text::named),
                None => Text::default(),
            },
            "Random" => match (number(0), number(1)) {
                (Some(from), Some(to)) => {
                    keep(settled(2), Maker::Range(from.min(to), from.max(to)), self)
                }
                _ => unknown(
                    call,
                    "its bounds are not numbers that are known before the run",
                    line,
                    left_out,
                ),
            },
            "RandomString" => {
                let length =
                    number(0).and_then(|n| usize::try_from(n).ok()).unwrap_or(8).clamp(1, 10_000);
                let letters = settled(1).unwrap_or_default();
                let maker = match () {
                    () if letters.is_empty() => Maker::Letters(length),
                    () if letters.chars().all(|c| c.is_ascii_digit()) => Maker::Digits(length),
                    () if letters.chars().all(|c| c.is_ascii_hexdigit()) => Maker::Hex(length),
                    () => Maker::Letters(length),
                };
                keep(settled(2), maker, self)
            }
            "chooseRandom" => {
                let mut values: Vec<String> = (0..texts.len()).filter_map(settled).collect();
                let saved = if values.len() > 2 { values.pop() } else { None };
                keep(saved, Maker::OneOf(values), self)
            }
            "UUID" => made(Maker::Uuid),
            "threadNum" => made(Maker::UserNumber),
            "counter" => keep(settled(1), Maker::Counter(1, i64::MAX / 4), self),
            "time" | "timeShift" => {
                let format = settled(0).unwrap_or_default();
                match format.as_str() {
                    "" => keep(settled(1), Maker::Millis, self),
                    "/1000" => keep(settled(1), Maker::Seconds, self),
                    _ => unknown(
                        call,
                        "times in a format of their own; 2027-01-15 is sent",
                        line,
                        left_out,
                    ),
                }
            }
            "RandomDate" => unknown(call, "drawn dates; 2027-01-15 is sent", line, left_out),
            "env" => {
                let wanted = settled(0).unwrap_or_default();
                self.property(&wanted, texts.get(2).cloned(), line, left_out)
            }
            "intSum" | "longSum" => {
                let sum: Option<i64> = (0..texts.len())
                    .filter(|at| settled(*at).is_some_and(|it| !it.is_empty()))
                    .try_fold(0_i64, |sum, at| number(at).and_then(|it| sum.checked_add(it)));
                match sum {
                    Some(sum) => Text::plain(sum.to_string()),
                    None => unknown(
                        call,
                        "sums of values that are known in the run alone",
                        line,
                        left_out,
                    ),
                }
            }
            "base64Encode" | "urlencode" | "urldecode" | "lowercase" | "toLowerCase"
            | "uppercase" | "toUpperCase" | "escapeHtml" | "unescape" | "trim" | "base64Decode" => {
                match settled(0).and_then(|text| transform(name.trim(), &text)) {
                    Some(text) => Text::plain(text),
                    None => {
                        left_out.add(
                            line,
                            format!("${{__{call}}}"),
                            "values of the run are not transformed; the value itself is sent",
                        );
                        texts.first().cloned().unwrap_or_default()
                    }
                }
            }
            "samplerName" | "threadGroupName" | "machineName" | "machineIP" | "TestPlanName" => {
                Text::plain("jmeter")
            }
            "iterationNum" => made(Maker::IterationNumber),
            _ => unknown(call, "this function is not known", line, left_out),
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

/// Where the brace ends that is open.
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

/// Arguments between commas, except for commas that are escaped or inside of another call.
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
        assert_eq!(read("${__Random(1,9)}").0.0, [Part::Made(Maker::Range(1, 9))]);
        assert_eq!(read("${__Random(1,9,n)}").0.single_name(), Some("n"));
        assert_eq!(
            read("${__UUID}${__UUID()}").0.0,
            [Part::Made(Maker::Uuid), Part::Made(Maker::Uuid)]
        );
        assert_eq!(read("${__groovy(1 + ${x})}").1, 1);
        assert_eq!(read("${__P(none)}").1, 1);
    }
}
