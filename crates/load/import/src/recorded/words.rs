//! Splits command lines like bash, to the extent that the browsers' "copy as cURL" requires.

use crate::recorded::RecordedError;
use crate::recorded::cmd;
use crate::recorded::commands::{ShellWord, Split, open, outside};
use std::iter::Peekable;
use std::slice::Iter;

type Rest<'a> = Peekable<Iter<'a, u8>>;

/// Splits a text into commands at `;`, `&`, `&&` and before a line that begins with `curl`, and
/// each command into words: at spaces outside `'…'`, `"…"` and `$'…'` (bash), or outside `^"…^"`
/// (cmd.exe). A line that begins with an option continues the command above it, even without a
/// backslash.
///
/// # Errors
/// Fails for an unclosed quote, or an operator of the shell, such as `|` or `$(`, because nothing
/// is run.
pub(crate) fn split(text: &str) -> Result<Vec<Vec<ShellWord>>, SplitError> {
    let mut split = Split::default();
    let done = if cmd::is_cmd(text) { cmd::read(text, &mut split) } else { read(text, &mut split) };
    let done = done.and_then(|()| split.finish());
    done.map_err(|error| SplitError { row: split.commands.len(), error })?;
    Ok(split.commands)
}

/// Reason why a text is not commands, and the index of the command, from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SplitError {
    pub(crate) row: usize,
    pub(crate) error: RecordedError,
}

fn read(text: &str, split: &mut Split) -> Result<(), RecordedError> {
    let mut rest = text.as_bytes().iter().peekable();
    while let Some(next) = rest.next() {
        match *next {
            b'\n' => split.line(),
            b' ' | b'\t' | b'\r' => split.blank(),
            b'\'' => single(&mut rest, split.word())?,
            b'"' => double(&mut rest, split.word())?,
            b'$' => dollar(&mut rest, split)?,
            b'\\' => match rest.next() {
                Some(b'\n') => {}
                Some(b'\r') => drop(rest.next_if_eq(&&b'\n')),
                Some(escaped) => split.word().push(*escaped),
                None => {}
            },
            // PowerShell's line continuation
            b'`' if matches!(rest.peek(), Some(b'\n' | b'\r')) => {
                rest.next_if_eq(&&b'\r');
                rest.next_if_eq(&&b'\n');
            }
            b';' => split.end(),
            b'&' => {
                rest.next_if_eq(&&b'&');
                split.end();
            }
            operator @ (b'|' | b'<' | b'>' | b'`' | b'(' | b')') => return Err(outside(operator)),
            b'#' if split.word.is_none() => while rest.next_if(|next| **next != b'\n').is_some() {},
            other => split.word().push(other),
        }
    }
    Ok(())
}

fn inside(found: u8) -> RecordedError {
    RecordedError(format!(
        "it has {:?} inside double quotes, where a shell puts in a value; write single quotes, or its \
         value in its place",
        char::from(found)
    ))
}

/// Returns whether a shell expands a `$` before this byte.
fn expands(next: Option<&&u8>) -> bool {
    next.is_some_and(|next| next.is_ascii_alphanumeric() || b"_({@*#?-$!".contains(next))
}

fn dollar(rest: &mut Rest<'_>, split: &mut Split) -> Result<(), RecordedError> {
    match rest.peek() {
        Some(b'\'') => {
            rest.next();
            ansi(rest, split.word())
        }
        // bash would translate the text
        Some(b'"') => {
            split.word();
            Ok(())
        }
        next if expands(next.copied().as_ref()) => Err(outside(b'$')),
        _ => {
            split.word().push(b'$');
            Ok(())
        }
    }
}

fn single(rest: &mut Rest<'_>, word: &mut ShellWord) -> Result<(), RecordedError> {
    loop {
        match rest.next() {
            Some(b'\'') => return Ok(()),
            Some(other) => word.push(*other),
            None => return Err(open("'")),
        }
    }
}

fn double(rest: &mut Rest<'_>, word: &mut ShellWord) -> Result<(), RecordedError> {
    loop {
        match rest.next() {
            Some(b'"') => return Ok(()),
            Some(b'\\') => match rest.next() {
                Some(b'\n') => {}
                Some(escaped @ (b'"' | b'\\' | b'$' | b'`')) => word.push(*escaped),
                Some(other) => word.extend([b'\\', *other]),
                None => return Err(open("\"")),
            },
            Some(b'$') if expands(rest.peek().copied().as_ref()) => return Err(inside(b'$')),
            Some(b'`') => return Err(inside(b'`')),
            Some(other) => word.push(*other),
            None => return Err(open("\"")),
        }
    }
}

/// Parses bash's quotes with C's escapes. A NUL ends the text within the quotes, as bash's strings
/// end.
fn ansi(rest: &mut Rest<'_>, word: &mut ShellWord) -> Result<(), RecordedError> {
    let mut raw = Vec::new();
    loop {
        match rest.next() {
            Some(b'\'') => break,
            Some(b'\\') => {
                raw.push(b'\\');
                raw.push(*rest.next().ok_or_else(|| open("$'"))?);
            }
            Some(other) => raw.push(*other),
            None => return Err(open("$'")),
        }
    }
    let (mut raw, mut made) = (raw.iter().peekable(), Vec::new());
    while let Some(next) = raw.next() {
        if *next == b'\\' {
            escape(&mut raw, &mut made);
        } else {
            made.push(*next);
        }
    }
    let end = made.iter().position(|byte| *byte == 0).unwrap_or(made.len());
    word.extend(&made[..end]);
    Ok(())
}

/// Parses an escape sequence after a backslash, as in bash 5.2.
fn escape(raw: &mut Rest<'_>, made: &mut Vec<u8>) {
    let Some(letter) = raw.next() else { return made.push(b'\\') };
    match letter {
        b'a' => made.push(0x07),
        b'b' => made.push(0x08),
        b'e' | b'E' => made.push(0x1b),
        b'f' => made.push(0x0c),
        b'n' => made.push(b'\n'),
        b'r' => made.push(b'\r'),
        b't' => made.push(b'\t'),
        b'v' => made.push(0x0b),
        b'\\' | b'\'' | b'"' | b'?' => made.push(*letter),
        b'0'..=b'7' => {
            let mut value = u32::from(letter - b'0');
            for _ in 0..2 {
                let Some(digit) = raw.next_if(|digit| (b'0'..=b'7').contains(*digit)) else {
                    break;
                };
                value = value * 8 + u32::from(digit - b'0');
            }
            made.push((value & 0xff) as u8);
        }
        b'x' => hexadecimal(raw, made),
        b'u' => code(raw, (b'u', 4), made),
        b'U' => code(raw, (b'U', 8), made),
        b'c' => match raw.next() {
            None => made.extend(b"\\c"),
            Some(b'?') => made.push(0x7f),
            Some(control) => {
                if *control == b'\\' {
                    raw.next_if_eq(&&b'\\');
                }
                made.push(control.to_ascii_uppercase() & 0x1f);
            }
        },
        other => made.extend([b'\\', *other]),
    }
}

/// Parses up to this number of hexadecimal digits; `None` without one.
fn digits(raw: &mut Rest<'_>, most: usize) -> Option<u32> {
    let mut value = None;
    for _ in 0..most {
        let Some(digit) = raw.next_if(|digit| digit.is_ascii_hexdigit()) else { break };
        let digit = char::from(*digit).to_digit(16).unwrap_or_default();
        value = Some((value.unwrap_or(0) << 4) | digit);
    }
    value
}

/// Parses `\xHH`, or `\x{H…}`, of which the last two digits count.
fn hexadecimal(raw: &mut Rest<'_>, made: &mut Vec<u8>) {
    if raw.next_if_eq(&&b'{').is_some() {
        let value = digits(raw, usize::MAX).unwrap_or(0);
        raw.next_if_eq(&&b'}');
        return made.push((value & 0xff) as u8);
    }
    match digits(raw, 2) {
        Some(value) => made.push((value & 0xff) as u8),
        None => made.extend(b"\\x"),
    }
}

/// Parses `\uHHHH` and `\UHHHHHHHH` to UTF-8; beyond Unicode, bash writes the older form of UTF-8
/// (RFC 2279).
fn code(raw: &mut Rest<'_>, (letter, most): (u8, usize), made: &mut Vec<u8>) {
    let Some(value) = digits(raw, most) else { return made.extend([b'\\', letter]) };
    let (length, mark) = match value {
        0..0x80 => return made.push(value as u8),
        0x80..0x800 => (2, 0xc0),
        0x800..0x1_0000 => (3, 0xe0),
        0x1_0000..0x20_0000 => (4, 0xf0),
        0x20_0000..0x400_0000 => (5, 0xf8),
        0x400_0000..0x8000_0000 => (6, 0xfc),
        _ => return,
    };
    for at in (0..length).rev() {
        let bits = (value >> (6 * at)) as u8;
        made.push(if at + 1 == length { mark | bits } else { 0x80 | (bits & 0x3f) });
    }
}

#[cfg(test)]
mod tests;
