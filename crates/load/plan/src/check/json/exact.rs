//! JSONPath filters over large numbers. The library compares numbers as doubles, which do not
//! distinguish all integers above 2^53. For filters, such numbers are replaced by numbers in the
//! same order that are exact as doubles.

use serde_json::{Number, Value};
use serde_json_path::JsonPath;
use std::collections::BTreeMap;

/// Threshold from which two integers may be the same double.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
/// Maximum number of distinct large numbers of a document.
const LARGE_MAX: usize = 1 << 20;

/// A path with filters.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Filtered {
    /// The path, cut at the large numbers in it.
    pieces: Vec<NumberPiece>,
}

#[derive(Clone, Debug, PartialEq)]
enum NumberPiece {
    Text(String),
    Number(Number),
}

/// Orders numbers by their exact values.
#[derive(Clone, Debug)]
struct Exact(Number);

impl Exact {
    /// Returns the value as an integer, if it is one, and as a double. Doubles are compared if one
    /// of two values is not an integer.
    fn key(&self) -> (Option<i128>, f64) {
        let whole = self.0.as_i64().map(i128::from).or(self.0.as_u64().map(i128::from));
        let double = self.0.as_f64().unwrap_or(0.0);
        // a large double is a whole number, and usually fits in 128 bits
        let fits = double.abs() < 1e38 && double.fract() == 0.0;
        (whole.or(fits.then_some(double as i128)), double)
    }
}

impl PartialEq for Exact {
    fn eq(&self, other: &Exact) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Exact {}

impl PartialOrd for Exact {
    fn partial_cmp(&self, other: &Exact) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Exact {
    fn cmp(&self, other: &Exact) -> std::cmp::Ordering {
        match (self.key(), other.key()) {
            ((Some(a), _), (Some(b), _)) => a.cmp(&b),
            ((_, a), (_, b)) => a.total_cmp(&b),
        }
    }
}

fn is_large(number: &Number) -> bool {
    number.as_f64().is_some_and(|double| double.abs() >= EXACT_MAX)
}

impl Filtered {
    /// Returns the filters of a path; `None` if the path compares nothing.
    pub(super) fn parse(path: &str) -> Option<Filtered> {
        path.contains('?').then(|| Filtered { pieces: pieces(path) })
    }

    /// Returns the path, and the document that replaces `document`; `None` if no number is too
    /// large.
    pub(super) fn exact(&self, document: &Value) -> Option<(JsonPath, Value)> {
        let mut large = BTreeMap::new();
        gather(document, &mut large);
        for piece in &self.pieces {
            if let NumberPiece::Number(number) = piece {
                large.insert(Exact(number.clone()), Number::from(0));
            }
        }
        if large.is_empty() || large.len() > LARGE_MAX {
            return None;
        }
        let below = large.keys().filter(|number| number.0.as_f64() < Some(0.0)).count();
        for (rank, (_, other)) in (0..).zip(&mut large) {
            // every second integer is a double between 2^53 and 2^54
            let away = |steps: usize| EXACT_MAX + 2.0 * steps as f64;
            let double = if rank < below { -away(below - 1 - rank) } else { away(rank - below) };
            *other = Number::from_f64(double)?;
        }
        let text = self.pieces.iter().map(|piece| match piece {
            NumberPiece::Text(text) => text.clone(),
            NumberPiece::Number(number) => large[&Exact(number.clone())].to_string(),
        });
        let path = JsonPath::parse(&text.collect::<String>()).ok()?;
        let mut document = document.clone();
        replace(&mut document, &large);
        Some((path, document))
    }
}

fn gather(value: &Value, large: &mut BTreeMap<Exact, Number>) {
    match value {
        Value::Number(number) if is_large(number) => {
            large.insert(Exact(number.clone()), Number::from(0));
        }
        Value::Array(all) => all.iter().for_each(|one| gather(one, large)),
        Value::Object(all) => all.values().for_each(|one| gather(one, large)),
        _ => {}
    }
}

fn replace(value: &mut Value, large: &BTreeMap<Exact, Number>) {
    match value {
        Value::Number(number) if is_large(number) => {
            if let Some(other) = large.get(&Exact(number.clone())) {
                *number = other.clone();
            }
        }
        Value::Array(all) => all.iter_mut().for_each(|one| replace(one, large)),
        Value::Object(all) => all.values_mut().for_each(|one| replace(one, large)),
        _ => {}
    }
}

/// Splits a path into text and large numbers. Only numbers outside strings count, and large ones
/// occur only in filters: an index is at most 2^53 - 1 (RFC 9535 section 2.1).
fn pieces(path: &str) -> Vec<NumberPiece> {
    let (mut pieces, mut plain, mut rest) = (Vec::new(), String::new(), path);
    let mut inside: Option<char> = None;
    while let Some(first) = rest.chars().next() {
        let mut length = first.len_utf8();
        match inside {
            Some(_) if first == '\\' => {
                length += rest[1..].chars().next().map_or(0, char::len_utf8);
            }
            Some(quote) if first == quote => inside = None,
            Some(_) => {}
            None if matches!(first, '\'' | '"') => inside = Some(first),
            None if first.is_alphabetic() || first == '_' => {
                // a name may contain digits
                let is_name = |it: char| it.is_alphanumeric() || it == '_';
                length = rest.find(|it| !is_name(it)).unwrap_or(rest.len());
            }
            None if first == '-' || first.is_ascii_digit() => {
                let is_number = |it: char| it.is_ascii_digit() || matches!(it, '.' | 'e' | 'E');
                let signed = |at: usize| rest[..at].ends_with(['e', 'E']);
                length = rest
                    .char_indices()
                    .skip(1)
                    .find(|(at, it)| !(is_number(*it) || (matches!(it, '+' | '-') && signed(*at))))
                    .map_or(rest.len(), |(at, _)| at);
                let number = serde_json::from_str::<Number>(&rest[..length]).ok();
                if let Some(number) = number.filter(is_large) {
                    pieces.push(NumberPiece::Text(std::mem::take(&mut plain)));
                    pieces.push(NumberPiece::Number(number));
                    rest = &rest[length..];
                    continue;
                }
            }
            None => {}
        }
        plain.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    pieces.push(NumberPiece::Text(plain));
    pieces
}

#[cfg(test)]
mod tests {
    use crate::check::JsonPlace;
    use proptest::prelude::*;

    /// Returns the names of the items that the path selects.
    fn names(path: &str, body: &str) -> Vec<String> {
        let document = serde_json::from_str(body).unwrap();
        let place = JsonPlace::parse(path).unwrap();
        let texts = place.texts(body.as_bytes(), &document, 100);
        let found = place.find(&document);
        assert_eq!(found.len(), texts.len());
        texts
    }

    #[test]
    fn integers_that_differ_by_one_are_different_in_a_filter() {
        let body = r#"{"limit": 9007199254740993, "all": [
            {"id": 9007199254740992, "n": "a"}, {"id": 9007199254740993, "n": "b"},
            {"id": 18446744073709551615, "n": "c"}, {"id": -9007199254740993, "n": "d"},
            {"id": -9007199254740992, "n": "e"}, {"id": 7, "n": "f"}, {"id": 1e30, "n": "g"}]}"#;
        for (condition, found) in [
            ("@.id == 9007199254740993", "b"),
            ("@.id != 9007199254740993", "acdefg"),
            ("@.id < 9007199254740993", "adef"),
            ("@.id >= 9007199254740993", "bcg"),
            ("@.id == $.limit", "b"),
            ("@.id == 18446744073709551615", "c"),
            ("@.id > 18446744073709551614", "cg"),
            ("@.id <= -9007199254740993", "d"),
            ("@.id < 0", "de"),
            ("@.id < 8", "def"),
            ("@.n == '9007199254740993' || @.id == 7", "f"),
            ("@.id == 1e30", "g"),
            ("length(@.n) == 1 && @.id == -9007199254740992", "e"),
        ] {
            let names = names(&format!("$.all[?{condition}].n"), body);
            assert_eq!(names.concat(), found, "{condition}");
        }
        // the value itself has its digits
        assert_eq!(names("$.all[?@.id > 1e20].id", body), ["1e30"]);
        assert_eq!(names("$.all[?@.n == 'c'].id", body), ["18446744073709551615"]);
    }

    proptest! {
        #[test]
        fn filters_compare_as_integers_do(ids: Vec<i64>, limit: i64, near in -2_i64..3) {
            let ids: Vec<i64> = ids.into_iter().chain([limit.saturating_add(near), limit]).collect();
            let body = serde_json::to_string(&ids).unwrap();
            for (sign, holds) in [
                ("<", (|a, b| a < b) as fn(i64, i64) -> bool),
                ("==", |a, b| a == b),
                (">=", |a, b| a >= b),
            ] {
                let wanted: Vec<String> =
                    ids.iter().filter(|id| holds(**id, limit)).map(i64::to_string).collect();
                prop_assert_eq!(names(&format!("$[?@ {sign} {limit}]"), &body), wanted);
            }
        }

        #[test]
        fn any_path_can_be_cut(path in "\\$[-?@.\\[\\]'\"\\\\0-9eE+<>= a_é]{0,40}") {
            let whole: String = super::pieces(&path).iter().map(|piece| match piece {
                super::NumberPiece::Text(text) => text.clone(),
                super::NumberPiece::Number(_) => String::new(),
            }).collect();
            prop_assert!(whole.len() <= path.len());
        }
    }
}
