//! JSON or YAML documents as trees whose nodes have line numbers, so that every remark can name its
//! line.

use serde_yaml_ng::Value as Yaml;

/// Maximum nesting depth; deeper documents are refused.
const DEPTH_MAX: usize = 100;
/// Maximum number of nodes of a document.
const NODES_MAX: usize = 2_000_000;

/// Value, and the line on which it begins, from 1.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TreeNode {
    pub(crate) line: usize,
    pub(crate) value: Value,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    /// Number as written.
    Number(String),
    Text(String),
    List(Vec<TreeNode>),
    /// Entries in the order of the document.
    Map(Vec<(String, TreeNode)>),
}

impl TreeNode {
    pub(crate) fn get(&self, key: &str) -> Option<&TreeNode> {
        self.map().iter().find(|(name, _)| name == key).map(|(_, node)| node)
    }

    /// Returns the value at a path of nested keys.
    pub(crate) fn at(&self, path: &[&str]) -> Option<&TreeNode> {
        path.iter().try_fold(self, |node, key| node.get(key))
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the text under a key; empty if it is absent or not a text.
    pub(crate) fn text_at(&self, key: &str) -> &str {
        self.get(key).and_then(TreeNode::text).unwrap_or_default()
    }

    /// Returns a text, number or boolean as text.
    pub(crate) fn scalar(&self) -> Option<String> {
        match &self.value {
            Value::Text(text) | Value::Number(text) => Some(text.clone()),
            Value::Bool(value) => Some(value.to_string()),
            _ => None,
        }
    }

    pub(crate) fn scalar_at(&self, key: &str) -> Option<String> {
        self.get(key).and_then(TreeNode::scalar)
    }

    pub(crate) fn number(&self) -> Option<f64> {
        match &self.value {
            Value::Number(text) | Value::Text(text) => {
                text.trim().parse().ok().filter(|number: &f64| number.is_finite())
            }
            _ => None,
        }
    }

    pub(crate) fn is_true(&self) -> bool {
        self.value == Value::Bool(true)
    }

    pub(crate) fn is_false(&self) -> bool {
        self.value == Value::Bool(false)
    }

    pub(crate) fn list(&self) -> &[TreeNode] {
        match &self.value {
            Value::List(list) => list,
            _ => &[],
        }
    }

    pub(crate) fn list_at(&self, key: &str) -> &[TreeNode] {
        self.get(key).map_or(&[], TreeNode::list)
    }

    pub(crate) fn map(&self) -> &[(String, TreeNode)] {
        match &self.value {
            Value::Map(map) => map,
            _ => &[],
        }
    }

    /// Returns the value as JSON text.
    pub(crate) fn json(&self) -> String {
        let mut out = String::new();
        self.write_json(&mut out);
        out
    }

    fn write_json(&self, out: &mut String) {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        match &self.value {
            Value::Null => out.push_str("null"),
            Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Value::Number(text) => out.push_str(text),
            Value::Text(text) => out.push_str(&quoted(text)),
            Value::List(list) => {
                out.push('[');
                for (index, node) in list.iter().enumerate() {
                    out.push_str(if index > 0 { "," } else { "" });
                    node.write_json(out);
                }
                out.push(']');
            }
            Value::Map(map) => {
                out.push('{');
                for (index, (key, node)) in map.iter().enumerate() {
                    out.push_str(if index > 0 { "," } else { "" });
                    out.push_str(&quoted(key));
                    out.push(':');
                    node.write_json(out);
                }
                out.push('}');
            }
        }
    }
}

/// Parses JSON.
///
/// # Errors
/// Fails with one sentence that names the line.
pub(crate) fn parse_json(text: &str) -> Result<TreeNode, String> {
    let mut parser = JsonParser { text, at: 0, line: 1, nodes: 0 };
    let node = parser.value(0)?;
    parser.blanks();
    match parser.peek() {
        None => Ok(node),
        Some(_) => Err(parser.fault("there is more after the end of the document")),
    }
}

struct JsonParser<'a> {
    text: &'a str,
    at: usize,
    line: usize,
    nodes: usize,
}

impl JsonParser<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn fault(&self, why: &str) -> String {
        format!("line {}: {why}", self.line)
    }

    fn blanks(&mut self) {
        while let Some(byte) = self.peek().filter(|byte| b" \t\r\n".contains(byte)) {
            self.line += usize::from(byte == b'\n');
            self.at += 1;
        }
    }

    fn value(&mut self, depth: usize) -> Result<TreeNode, String> {
        self.blanks();
        self.nodes += 1;
        if depth > DEPTH_MAX || self.nodes > NODES_MAX {
            return Err(self.fault("the document is nested too deeply or too large"));
        }
        let line = self.line;
        let value = match self.peek() {
            Some(b'{') => Value::Map(self.object(depth)?),
            Some(b'[') => Value::List(self.array(depth)?),
            Some(b'"') => Value::Text(self.string()?),
            Some(byte) if byte == b'-' || byte.is_ascii_digit() => self.number()?,
            _ => self.word()?,
        };
        Ok(TreeNode { line, value })
    }

    fn word(&mut self) -> Result<Value, String> {
        let rest = &self.text[self.at..];
        for (word, value) in
            [("true", Value::Bool(true)), ("false", Value::Bool(false)), ("null", Value::Null)]
        {
            if rest.starts_with(word) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(self.fault("a value is missing"))
    }

    fn number(&mut self) -> Result<Value, String> {
        let rest = &self.text[self.at..];
        let end = rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.')))
            .unwrap_or(rest.len());
        let text = &rest[..end];
        if serde_json::from_str::<serde_json::Number>(text).is_err() {
            return Err(self.fault(&format!("{} is not a number", units::quoted(text))));
        }
        self.at += end;
        Ok(Value::Number(text.to_owned()))
    }

    fn string(&mut self) -> Result<String, String> {
        let bytes = self.text.as_bytes();
        let start = self.at;
        let mut end = start + 1;
        loop {
            match bytes.get(end) {
                None => return Err(self.fault("a text has no closing quotation mark")),
                Some(b'"') => break,
                Some(b'\\') => end += 2,
                Some(_) => end += 1,
            }
        }
        let raw = self.text.get(start..=end).ok_or_else(|| self.fault("a string is invalid"))?;
        let text = serde_json::from_str(raw).or_else(|_| {
            // some exports have line breaks and tabs inside a text
            let repaired = raw.replace('\n', "\\n").replace('\r', "\\r").replace('\t', "\\t");
            serde_json::from_str(&repaired)
        });
        let text = text.map_err(|_| self.fault("a string has an invalid escape"))?;
        self.line += raw.bytes().filter(|byte| *byte == b'\n').count();
        self.at = end + 1;
        Ok(text)
    }

    fn array(&mut self, depth: usize) -> Result<Vec<TreeNode>, String> {
        let mut list = Vec::new();
        self.at += 1;
        self.blanks();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(list);
        }
        loop {
            list.push(self.value(depth + 1)?);
            self.blanks();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => break,
                _ => return Err(self.fault("a list has no comma or ] here")),
            }
        }
        self.at += 1;
        Ok(list)
    }

    fn object(&mut self, depth: usize) -> Result<Vec<(String, TreeNode)>, String> {
        let mut map = Vec::new();
        self.at += 1;
        self.blanks();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(map);
        }
        loop {
            self.blanks();
            if self.peek() != Some(b'"') {
                return Err(self.fault("a name in quotation marks is missing"));
            }
            let key = self.string()?;
            self.blanks();
            if self.peek() != Some(b':') {
                return Err(self.fault("a colon is missing"));
            }
            self.at += 1;
            map.push((key, self.value(depth + 1)?));
            self.blanks();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => break,
                _ => return Err(self.fault("an object has no comma or } here")),
            }
        }
        self.at += 1;
        Ok(map)
    }
}

/// Parses the first document of a YAML text. The library provides no positions, so lines are found
/// by searching the text for each key and each list item, in document order.
///
/// # Errors
/// Fails if the text is not YAML; the error has the position.
pub(crate) fn parse_yaml(text: &str) -> Result<TreeNode, String> {
    let value: Yaml = workload::yaml::parse(text)?;
    let mut finder = LineFinder { text, at: 0, line: 1, nodes: 0, budget: SCANNED_MAX };
    finder.node(value, 0)
}

struct LineFinder<'a> {
    text: &'a str,
    /// Position after the last key found.
    at: usize,
    line: usize,
    nodes: usize,
    /// Number of bytes that may still be searched.
    budget: usize,
}

/// Maximum number of bytes searched for the next key, and in total.
const LOOKAHEAD: usize = 64 << 10;
const SCANNED_MAX: usize = 64 << 20;

impl LineFinder<'_> {
    fn node(&mut self, value: Yaml, depth: usize) -> Result<TreeNode, String> {
        self.nodes += 1;
        if depth > DEPTH_MAX || self.nodes > NODES_MAX {
            return Err("the document is nested too deeply or too large".to_owned());
        }
        let line = self.line;
        let value = match value {
            Yaml::Null => Value::Null,
            Yaml::Bool(value) => Value::Bool(value),
            Yaml::Number(number) => Value::Number(number.to_string()),
            Yaml::String(text) => Value::Text(text),
            Yaml::Sequence(list) => {
                let node = |item: Yaml| self.node(item, depth + 1);
                Value::List(list.into_iter().map(node).collect::<Result<_, _>>()?)
            }
            Yaml::Mapping(map) => {
                let mut all = Vec::new();
                for (key, value) in map {
                    let key = match key {
                        Yaml::String(text) => text,
                        Yaml::Bool(value) => value.to_string(),
                        Yaml::Number(number) => number.to_string(),
                        _ => continue,
                    };
                    self.seek(&key);
                    let line = self.line;
                    let node = self.node(value, depth + 1)?;
                    all.push((key, TreeNode { line, ..node }));
                }
                let line = all.first().map_or(line, |(_, node)| node.line);
                return Ok(TreeNode { line, value: Value::Map(all) });
            }
            Yaml::Tagged(tagged) => return self.node(tagged.value, depth + 1),
        };
        Ok(TreeNode { line, value })
    }

    /// Advances past the next text that looks like this key; does nothing without one.
    fn seek(&mut self, key: &str) {
        let end = self.text.floor_char_boundary((self.at + LOOKAHEAD).min(self.text.len()));
        let rest = &self.text[self.at..end];
        if key.is_empty() || self.budget < rest.len() {
            return;
        }
        let found = rest.match_indices(key).find(|(at, _)| is_key(rest, *at, key));
        match found {
            Some((at, _)) => {
                self.line += rest[..at].bytes().filter(|byte| *byte == b'\n').count();
                self.at += at + key.len();
                self.budget -= at;
            }
            None => self.budget -= rest.len(),
        }
    }
}

/// Returns whether the text at a position is a YAML key.
fn is_key(text: &str, at: usize, key: &str) -> bool {
    let before = text[..at].chars().next_back();
    let after = text[at + key.len()..].trim_start_matches(['"', '\'']);
    let begins =
        before.is_none_or(|c| c.is_whitespace() || matches!(c, '"' | '\'' | '{' | ',' | '-'));
    let ends = after.strip_prefix(':');
    begins && ends.is_some_and(|tail| tail.is_empty() || tail.starts_with([' ', '\t', '\r', '\n']))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn json_nodes_know_their_lines() {
        let node = parse_json("{\n \"a\": [1,\n  {\"b\": \"x\\n\"}],\n \"c\": null}").unwrap();
        let inner = &node.list_at("a")[1];
        assert_eq!((inner.line, inner.text_at("b")), (3, "x\n"));
        assert_eq!(node.get("c").unwrap().line, 4);
        assert_eq!(node.json(), r#"{"a":[1,{"b":"x\n"}],"c":null}"#);
        for (text, why) in [
            ("{\n\"a\" 1}", "line 2: a colon is missing"),
            ("[1 2]", "no comma or ]"),
            ("[01]", "\"01\" is not a number"),
            ("\"a", "no closing quotation mark"),
            ("{} {}", "more after the end"),
            ("", "a value is missing"),
        ] {
            assert!(parse_json(text).unwrap_err().contains(why), "{text}");
        }
        assert!(parse_json(&"[".repeat(100_000)).unwrap_err().contains("too deeply"));
    }

    #[test]
    fn yaml_nodes_know_their_lines() {
        let text = "config:\n  target: http://h\n  phases:\n    - duration: 1\n    - duration: 2\n\
                    scenarios:\n  - flow:\n    - get:\n        url: /\n    - think: 3\n";
        let node = parse_yaml(text).unwrap();
        let phases = node.at(&["config", "phases"]).unwrap().list();
        assert_eq!(phases.iter().map(|phase| phase.line).collect::<Vec<_>>(), [4, 5]);
        let flow = node.list_at("scenarios")[0].list_at("flow");
        assert_eq!(flow.iter().map(|step| step.line).collect::<Vec<_>>(), [8, 10]);
        assert!(parse_yaml("a: [").is_err());
    }

    proptest! {
        #[test]
        fn json_is_read_as_serde_reads_it(text in "[\\[\\]{},:\"a0-9.e\\\\ \n-]{0,40}") {
            let strict: Result<serde_json::Value, _> = serde_json::from_str(&text);
            match (parse_json(&text), strict) {
                (Ok(node), Ok(value)) => {
                    let again: serde_json::Value = serde_json::from_str(&node.json()).unwrap();
                    prop_assert_eq!(again, value);
                }
                (read, strict) => prop_assert!(strict.is_err(), "{:?} {:?}", read, strict),
            }
        }

        #[test]
        fn any_text_is_a_tree_or_an_error(text in "\\PC{0,60}") {
            drop((parse_json(&text), parse_yaml(&text)));
        }
    }
}
