//! Texts of other tools, in which names represent values.

/// Text with the values that are inserted into it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Text(pub(crate) Vec<DraftPart>);

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum DraftPart {
    Plain(String),
    /// Variable, by its name in the other tool.
    Named(String),
    /// Value that is generated for each iteration.
    Made(Maker),
    /// Part of a JSON string; all of it is escaped, including the inserted values.
    InJson(Text),
}

/// Generator of values.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Maker {
    Uuid,
    Hex(usize),
    Digits(usize),
    Letters(usize),
    /// Random number in a range.
    Range(i64, i64),
    /// Number that counts up over all users.
    Counter(i64, i64),
    OneOf(Vec<String>),
    /// Seconds or milliseconds since 1970: rising numbers that look like a time.
    Seconds,
    Millis,
    UserNumber,
    IterationNumber,
}

impl Text {
    pub(crate) fn plain(text: impl Into<String>) -> Text {
        let text = text.into();
        if text.is_empty() { Text::default() } else { Text(vec![DraftPart::Plain(text)]) }
    }

    pub(crate) fn named(name: impl Into<String>) -> Text {
        Text(vec![DraftPart::Named(name.into())])
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the text if no values are inserted into it.
    pub(crate) fn settled(&self) -> Option<String> {
        let mut out = String::new();
        for part in &self.0 {
            let DraftPart::Plain(text) = part else { return None };
            out.push_str(text);
        }
        Some(out)
    }

    /// Returns the variable that is the whole text.
    pub(crate) fn single_name(&self) -> Option<&str> {
        match &self.0[..] {
            [DraftPart::Named(name)] => Some(name),
            _ => None,
        }
    }

    pub(crate) fn push(&mut self, part: DraftPart) {
        match (self.0.last_mut(), part) {
            (_, DraftPart::Plain(text)) if text.is_empty() => {}
            (Some(DraftPart::Plain(last)), DraftPart::Plain(text)) => last.push_str(&text),
            (_, part) => self.0.push(part),
        }
    }

    pub(crate) fn push_str(&mut self, text: &str) {
        self.push(DraftPart::Plain(text.to_owned()));
    }

    pub(crate) fn append(&mut self, other: Text) {
        other.0.into_iter().for_each(|part| self.push(part));
    }

    /// Returns the text before the first inserted value.
    pub(crate) fn beginning(&self) -> &str {
        match self.0.first() {
            Some(DraftPart::Plain(text)) => text,
            _ => "",
        }
    }

    /// Returns the text as part of a JSON string.
    pub(crate) fn in_json(self) -> Text {
        match self.is_empty() {
            true => self,
            false => Text(vec![DraftPart::InJson(self)]),
        }
    }

    /// Returns JSON text whose inserted values are escaped where they are inside of strings. Values
    /// outside of strings are JSON themselves.
    pub(crate) fn escaped_in_strings(self) -> Text {
        let (mut in_string, mut is_escaped) = (false, false);
        let mut out = Text::default();
        for part in self.0 {
            match part {
                DraftPart::Plain(text) => {
                    for byte in text.bytes() {
                        match byte {
                            _ if is_escaped => is_escaped = false,
                            b'\\' => is_escaped = in_string,
                            b'"' => in_string = !in_string,
                            _ => {}
                        }
                    }
                    out.push(DraftPart::Plain(text));
                }
                part if in_string => out.append(Text(vec![part]).in_json()),
                part => out.push(part),
            }
        }
        out
    }

    /// Transforms the plain parts.
    pub(crate) fn map_plain(mut self, change: impl Fn(&str) -> String) -> Text {
        for part in &mut self.0 {
            if let DraftPart::Plain(text) = part {
                *text = change(text);
            }
        }
        self
    }

    /// Parses a text in which `{{name}}` is a value; `read` interprets a name. A name that is empty
    /// or spans lines is plain text.
    pub(crate) fn braces(source: &str, read: &mut dyn FnMut(&str) -> Text) -> Text {
        let mut text = Text::default();
        let mut rest = source;
        while let Some((before, after)) = rest.split_once("{{") {
            let Some((name, tail)) = after.split_once("}}") else { break };
            if name.trim().is_empty() || name.contains(['\n', '{']) {
                // the first brace may be text, and a name may begin at the second
                text.push_str(before);
                text.push_str("{");
                rest = &rest[before.len() + 1..];
                continue;
            }
            text.push_str(before);
            text.append(read(name.trim()));
            rest = tail;
        }
        text.push_str(rest);
        text
    }
}

/// Parses a text in which every `{{name}}` is a variable.
#[cfg(test)]
pub(crate) fn variables(source: &str) -> Text {
    Text::braces(source, &mut |name| Text::named(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_between_braces_are_values() {
        let text = variables("a{{ b }}c{{}}d{{e");
        let expected = [
            DraftPart::Plain("a".into()),
            DraftPart::Named("b".into()),
            DraftPart::Plain("c{{}}d{{e".into()),
        ];
        assert_eq!(text.0, expected);
        assert_eq!(variables("{{x}}").single_name(), Some("x"));
        assert_eq!(variables("plain").settled().as_deref(), Some("plain"));
        assert_eq!(variables("{{{x}}}").0.len(), 3);
    }

    #[test]
    fn values_are_escaped_inside_of_strings_only() {
        let text = variables(r#"{"a{{x}}": "\"{{y}}", "n": {{z}}, "b": "\\", "m": [{{z}}]}"#);
        let inside = |part: &DraftPart| match part {
            DraftPart::InJson(inner) => inner.single_name().map(str::to_owned),
            _ => None,
        };
        let found: Vec<String> = text.escaped_in_strings().0.iter().filter_map(inside).collect();
        assert_eq!(found, ["x", "y"]);
    }
}
