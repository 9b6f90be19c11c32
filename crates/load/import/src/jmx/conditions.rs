//! Conditions of controllers, which compare a variable with a value.

use crate::draft::DraftRule;
use crate::text::{DraftPart, Text};

/// Parses `"${x}" == "y"`, or several of these joined with `&&`.
pub(super) fn condition(text: &Text) -> Option<Vec<(String, DraftRule)>> {
    if text.settled().as_deref().map(str::trim) == Some("true") {
        return Some(Vec::new());
    }
    clauses(text)?.iter().map(|clause| compare(clause, false)).collect()
}

/// Negates the condition of a loop. Only a single comparison can be negated.
pub(super) fn negated(text: &Text) -> Option<Vec<(String, DraftRule)>> {
    let clauses = clauses(text)?;
    let [one] = &clauses[..] else { return None };
    Some(vec![compare(one, true)?])
}

fn clauses(text: &Text) -> Option<Vec<Text>> {
    let mut all = vec![Text::default()];
    for part in &text.0 {
        match part {
            DraftPart::Plain(plain) if plain.contains("||") => return None,
            DraftPart::Plain(plain) => {
                for (index, piece) in plain.split("&&").enumerate() {
                    if index > 0 {
                        all.push(Text::default());
                    }
                    all.last_mut()?.push_str(piece);
                }
            }
            part => all.last_mut()?.push(part.clone()),
        }
    }
    Some(all)
}

fn compare(clause: &Text, turned: bool) -> Option<(String, DraftRule)> {
    // the variable, and the text with a mark in its place
    let mut name = None;
    let mut shown = String::new();
    for part in &clause.0 {
        match part {
            DraftPart::Plain(text) => shown.push_str(text),
            DraftPart::Named(found) if name.is_none() => {
                name = Some(found.clone());
                shown.push('\u{1}');
            }
            _ => return None,
        }
    }
    let name = name?;
    let shown = shown.trim().trim_matches(['(', ')']).trim();
    let (negative, left, right) = match (shown.split_once("!="), shown.split_once("==")) {
        (Some((left, right)), _) => (true, left, right),
        (None, Some((left, right))) => (false, left, right),
        (None, None) => {
            let bare = unquoted(shown);
            let (negative, bare) =
                bare.strip_prefix('!').map_or((false, bare), |rest| (true, rest.trim()));
            if bare != "\u{1}" {
                return None;
            }
            // a plain truth value
            let value = if negative == turned { "true" } else { "false" };
            return Some((name, DraftRule::Exact(Text::plain(value))));
        }
    };
    let (left, right) = (unquoted(left), unquoted(right.trim_start_matches('=')));
    let value = match (left, right) {
        ("\u{1}", value) | (value, "\u{1}") => value,
        _ => return None,
    };
    match (negative == turned, value) {
        (true, "null") => Some((name, DraftRule::Absent)),
        (true, value) => Some((name, DraftRule::Exact(Text::plain(value)))),
        (false, "null" | "") => Some((name, DraftRule::Regex(Text::plain(".")))),
        (false, "true") => Some((name, DraftRule::Exact(Text::plain("false")))),
        (false, "false") => Some((name, DraftRule::Exact(Text::plain("true")))),
        _ => None,
    }
}

fn unquoted(text: &str) -> &str {
    let text = text.trim();
    for mark in ['"', '\''] {
        if let Some(inner) = text.strip_prefix(mark).and_then(|it| it.strip_suffix(mark)) {
            return inner;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::variables;

    #[test]
    fn comparisons_become_conditions() {
        let shown = |text: &str| format!("{:?}", condition(&variables(text)));
        assert!(shown("\"{{x}}\" == \"y\"").contains("Exact"));
        assert!(shown("'{{x}}' != ''").contains("Regex"));
        assert!(shown("{{ok}} && \"{{x}}\"==\"1\"").contains("true"));
        assert_eq!(shown("{{x}} > 5"), "None");
        assert_eq!(shown("\"{{x}}\" == \"{{y}}\""), "None");
        assert_eq!(shown("'{{x}}' != 'a'"), "None");
        let until = format!("{:?}", negated(&variables("\"{{state}}\" != \"done\"")));
        assert!(until.contains("done"), "{until}");
    }
}
