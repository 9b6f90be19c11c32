//! Command lines of Windows: first cmd.exe processes `^`, then the program's start-up code splits
//! words and processes `"` and `\`.

use crate::recorded::RecordedError;
use crate::recorded::commands::{Split, open, outside};

/// Returns whether a text was quoted for cmd.exe, as Chrome's "Copy as cURL (cmd)" does: `^"`, or
/// ` ^` at the end of a line, outside bash's quotes.
pub(crate) fn is_cmd(text: &str) -> bool {
    let (mut quote, mut before, mut at_blank) = (None, b'\n', true);
    for byte in text.bytes() {
        match (quote, byte) {
            (None, b'"') if before == b'^' => return true,
            (None, b'\n') if before == b'^' && at_blank => return true,
            // cmd.exe's lines end with CR LF
            (None, b'\r') => continue,
            // bash's backslash makes the next one a plain character, except in '…'
            (None | Some(Quote::Double | Quote::Ansi), b'"' | b'\'' | b'\\') if before == b'\\' => {
                before = b' ';
                continue;
            }
            (Some(Quote::Double), b'"') | (Some(Quote::Single | Quote::Ansi), b'\'') => {
                quote = None
            }
            (None, b'"') => quote = Some(Quote::Double),
            (None, b'\'') if before == b'$' => quote = Some(Quote::Ansi),
            (None, b'\'') => quote = Some(Quote::Single),
            _ => {}
        }
        if byte == b'^' {
            at_blank = before.is_ascii_whitespace();
        }
        before = byte;
    }
    quote.is_none() && before == b'^' && at_blank
}

/// Open quote of bash.
#[derive(Clone, Copy, Debug)]
enum Quote {
    Single,
    Double,
    /// `$'…'`
    Ansi,
}

/// A byte after processing by cmd.exe.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mark {
    /// Byte for the program.
    Byte(u8),
    /// The end of a line without continuation.
    Line,
    /// End of the command by `&`.
    End,
}

/// Parses commands like cmd.exe and a Windows program do.
pub(crate) fn read(text: &str, split: &mut Split) -> Result<(), RecordedError> {
    let marks = carets(text)?;
    let (mut at, mut quoted) = (0, false);
    while let Some(mark) = marks.get(at) {
        at += 1;
        match mark {
            Mark::Line => split.line(),
            Mark::End => split.end(),
            Mark::Byte(b' ' | b'\t' | b'\r' | b'\n') if !quoted => split.blank(),
            Mark::Byte(b'"') if quoted && marks.get(at) == Some(&Mark::Byte(b'"')) => {
                at += 1;
                split.word().push(b'"');
            }
            Mark::Byte(b'"') => {
                quoted = !quoted;
                split.word();
            }
            Mark::Byte(b'\\') => {
                let more = marks[at..].iter().take_while(|mark| **mark == Mark::Byte(b'\\'));
                let count = 1 + more.count();
                at += count - 1;
                let quote = marks.get(at) == Some(&Mark::Byte(b'"'));
                let kept = if quote { count / 2 } else { count };
                split.word().extend(std::iter::repeat_n(b'\\', kept));
                if quote && count % 2 == 1 {
                    at += 1;
                    split.word().push(b'"');
                }
            }
            Mark::Byte(other) => split.word().push(*other),
        }
    }
    if quoted {
        return Err(open("\""));
    }
    Ok(())
}

/// Removes each `^` that cmd.exe removes: outside quotes without a preceding `^`.
fn carets(text: &str) -> Result<Vec<Mark>, RecordedError> {
    let mut marks = Vec::new();
    let mut quoted = false;
    let text = text.replace("\r\n", "\n");
    let mut rest = text.bytes().peekable();
    while let Some(next) = rest.next() {
        match next {
            b'^' if !quoted => match rest.next() {
                // the line continues; a following line end is part of the text
                Some(b'\n') => marks.extend(rest.next().map(Mark::Byte)),
                Some(escaped) => marks.push(Mark::Byte(escaped)),
                None => {}
            },
            b'"' => {
                quoted = !quoted;
                marks.push(Mark::Byte(b'"'));
            }
            b'\n' => {
                // quotes of cmd.exe end with the line
                quoted = false;
                marks.push(Mark::Line);
            }
            b'&' if !quoted => {
                rest.next_if_eq(&b'&');
                marks.push(Mark::End);
            }
            b'|' | b'<' | b'>' if !quoted => return Err(outside(next)),
            other => marks.push(Mark::Byte(other)),
        }
    }
    Ok(marks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded::commands::ShellWord;

    fn split(text: &str) -> Result<Vec<Vec<ShellWord>>, RecordedError> {
        let mut split = Split::default();
        read(text, &mut split)?;
        split.finish()?;
        Ok(split.commands)
    }

    #[test]
    fn chromes_commands_for_windows_are_read() {
        let text = "curl ^\"http://h.example/a?x=1^&y=2^%^20^\" ^\r\n  -H ^\"a: b^\" ^\r\n  \
                    --data-raw ^\"^{^\\^\"k^\\^\":^\\^\"v^\\^\\w^\\^\"^}^\" &\r\ncurl ^\"http://h.example/b^\"";
        let words: Vec<Vec<String>> = split(text)
            .unwrap()
            .into_iter()
            .map(|words| words.into_iter().map(|word| String::from_utf8(word).unwrap()).collect())
            .collect();
        let first = [
            "curl",
            "http://h.example/a?x=1&y=2%20",
            "-H",
            "a: b",
            "--data-raw",
            "{\"k\":\"v\\\\w\"}",
        ];
        assert_eq!(words, [&first[..], &["curl", "http://h.example/b"]]);
    }

    #[test]
    fn a_line_end_of_the_text_has_a_caret_and_an_empty_line() {
        let words = split("curl ^\"a^\n\nb^\" \"c\\\\\" d\\e \"f\"\"g\"").unwrap();
        let expected: Vec<&[u8]> = vec![b"curl", b"a\nb", b"c\\", b"d\\e", b"f\"g"];
        assert_eq!(words, [expected]);
        assert!(split("curl ^\"a").unwrap_err().0.contains("not closed"));
        assert!(split("curl ^\"a^\" | more").unwrap_err().0.contains("outside of quotes"));
    }
}
