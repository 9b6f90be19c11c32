//! A command line as a POSIX shell splits it, as far as "copy as cURL" of the browsers needs it.

use crate::RecordedError;
use std::iter::Peekable;
use std::str::Chars;

type Rest<'a> = Peekable<Chars<'a>>;

/// Splits at blanks, outside of `'…'`, `"…"` and `$'…'` (bash). A backslash before the end of a line
/// joins lines.
///
/// # Errors
/// A quote that is not closed; an operator of the shell, such as `|` or `$(`, for nothing is run.
pub fn split(text: &str) -> Result<Vec<String>, RecordedError> {
    let mut rest = text.chars().peekable();
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    while let Some(next) = rest.next() {
        match next {
            ' ' | '\t' | '\n' | '\r' => words.extend(word.take()),
            '\'' => single(&mut rest, word.get_or_insert_default())?,
            '"' => double(&mut rest, word.get_or_insert_default())?,
            '$' if rest.next_if_eq(&'\'').is_some() => {
                ansi(&mut rest, word.get_or_insert_default())?;
            }
            '\\' => match rest.next() {
                Some('\n') => {}
                Some('\r') => {
                    rest.next_if_eq(&'\n');
                }
                Some(escaped) => word.get_or_insert_default().push(escaped),
                None => {}
            },
            '|' | ';' | '&' | '<' | '>' | '`' | '(' | ')' => return Err(operator(next)),
            '$' if matches!(rest.peek(), Some('(' | '{' | 'A'..='Z' | 'a'..='z' | '_')) => {
                return Err(operator(next));
            }
            '#' if word.is_none() => while rest.next_if(|next| *next != '\n').is_some() {},
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Ok(words)
}

fn operator(found: char) -> RecordedError {
    RecordedError(format!(
        "it has {found:?} outside of quotes, which a shell would act on and which is not run here; \
         put it into single quotes, or its value in its place"
    ))
}

fn open(quote: &str) -> RecordedError {
    RecordedError(format!("a quote is not closed: {quote}"))
}

fn single(rest: &mut Rest<'_>, word: &mut String) -> Result<(), RecordedError> {
    loop {
        match rest.next() {
            Some('\'') => return Ok(()),
            Some(other) => word.push(other),
            None => return Err(open("'")),
        }
    }
}

fn double(rest: &mut Rest<'_>, word: &mut String) -> Result<(), RecordedError> {
    loop {
        match rest.next() {
            Some('"') => return Ok(()),
            Some('\\') => match rest.next() {
                Some('\n') => {}
                Some(escaped @ ('"' | '\\' | '$' | '`')) => word.push(escaped),
                Some(other) => word.extend(['\\', other]),
                None => return Err(open("\"")),
            },
            Some('$') if matches!(rest.peek(), Some('(' | '{' | 'A'..='Z' | 'a'..='z' | '_')) => {
                return Err(operator('$'));
            }
            Some('`') => return Err(operator('`')),
            Some(other) => word.push(other),
            None => return Err(open("\"")),
        }
    }
}

/// bash's quotes with C's escapes.
fn ansi(rest: &mut Rest<'_>, word: &mut String) -> Result<(), RecordedError> {
    loop {
        match rest.next() {
            Some('\'') => return Ok(()),
            Some('\\') => match rest.next() {
                Some('n') => word.push('\n'),
                Some('r') => word.push('\r'),
                Some('t') => word.push('\t'),
                Some('u') => word.push(code(rest, 4)?),
                Some('U') => word.push(code(rest, 8)?),
                Some('x') => word.push(code(rest, 2)?),
                Some('0') => word.push('\0'),
                Some(other) => word.push(other),
                None => return Err(open("$'")),
            },
            Some(other) => word.push(other),
            None => return Err(open("$'")),
        }
    }
}

fn code(rest: &mut Rest<'_>, digits: usize) -> Result<char, RecordedError> {
    let mut value: u32 = 0;
    for _ in 0..digits {
        let Some(digit) = rest.next_if(char::is_ascii_hexdigit) else { break };
        value = (value << 4) | digit.to_digit(16).unwrap_or_default();
    }
    let wrong = || RecordedError(format!("an escape names no character: {value:x}"));
    char::from_u32(value).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn words_are_split_as_a_shell_does() {
        for (text, words) in [
            ("", &[][..]),
            ("curl  http://h/ -H 'A: b c'", &["curl", "http://h/", "-H", "A: b c"]),
            (r#""a \"b\" \n" c\ d"#, &[r#"a "b" \n"#, "c d"]),
            ("a \\\n  b", &["a", "b"]),
            ("a \\\r\n b # said\nc", &["a", "b", "c"]),
            (r"$'it\'s \u0041\x42\n'x", &["it's AB\nx"]),
            ("'' ''a''", &["", "a"]),
            ("a#b cost=$5", &["a#b", "cost=$5"]),
        ] {
            assert_eq!(split(text).unwrap(), words, "{text}");
        }
    }

    #[test]
    fn what_a_shell_would_act_on_is_refused() {
        for text in ["a | b", "a; b", "$(id)", "\"$HOME\"", "`id`", "a > f", "a &"] {
            assert!(split(text).unwrap_err().0.contains("outside of quotes"), "{text}");
        }
        for text in ["'a", "\"a", "$'a", "\"a\\", "$'\\"] {
            assert!(split(text).unwrap_err().0.contains("not closed"), "{text}");
        }
        assert!(split("$'\\UFFFFFFFF'").unwrap_err().0.contains("names no character"));
    }

    proptest! {
        #[test]
        fn quoted_words_come_back(words in proptest::collection::vec("[^']{0,12}", 0..5)) {
            let text: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
            prop_assert_eq!(split(&text.join(" ")).unwrap(), words);
        }

        #[test]
        fn no_text_is_too_odd(text in "\\PC*") {
            split(&text).ok();
        }
    }
}
