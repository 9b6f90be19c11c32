//! Values as TOML, in the most readable form.

/// Writes a key: bare if possible.
pub(crate) fn key(name: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    match !name.is_empty() && name.chars().all(bare) {
        true => name.to_owned(),
        false => basic(name),
    }
}

/// Writes a text: as a literal string if it would otherwise need escapes, and as a multi-line
/// string if it has line breaks.
pub(crate) fn text(value: &str) -> String {
    let odd = |c: char| c.is_control() && c != '\n' && c != '\t';
    let plain = !value.contains(odd);
    if plain && value.contains('\n') && !value.contains("'''") && !value.ends_with('\'') {
        return format!("'''\n{value}'''");
    }
    if plain && value.contains(['"', '\\']) && !value.contains(['\'', '\n', '\t']) {
        return format!("'{value}'");
    }
    basic(value)
}

fn basic(value: &str) -> String {
    let mut out = String::with_capacity(value.len() + 2);
    out.push('"');
    for c in value.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if c.is_control() => out.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Writes a list of texts, or a single text.
pub(crate) fn texts(values: &[String]) -> String {
    match values {
        [one] => text(one),
        many => list(many.iter().map(|value| one_line(value))),
    }
}

pub(crate) fn list(values: impl Iterator<Item = String>) -> String {
    format!("[{}]", values.collect::<Vec<_>>().join(", "))
}

/// Writes a text on one line, for inline tables.
pub(crate) fn one_line(value: &str) -> String {
    let plain = !value.contains(char::is_control);
    match plain && value.contains(['"', '\\']) && !value.contains('\'') {
        true => format!("'{value}'"),
        false => basic(value),
    }
}

/// Writes `{ a = 1, b = 2 }` from pairs that are already TOML.
pub(crate) fn inline(pairs: &[(String, String)]) -> String {
    let pairs: Vec<String> =
        pairs.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    format!("{{ {} }}", pairs.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_text_is_read_back(value in "(?s:.{0,30})", name in "(?s:.{0,8})") {
            for written in [text(&value), one_line(&value)] {
                let table: toml::Table = toml::from_str(&format!("{} = {written}\n", key(&name))).unwrap();
                prop_assert_eq!(table[&name].as_str().unwrap(), &value);
            }
        }
    }
}
