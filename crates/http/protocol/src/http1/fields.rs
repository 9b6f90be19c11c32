//! Header fields of a raw head, as bytes. No field is trusted to be text.

use std::borrow::Cow;

/// Returns the fields of a head in order, names and values as received, surrounding white space
/// removed. The status line and invalid lines are skipped; the empty line ends.
///
/// A value folded over several lines (obsolete, RFC 9112 §5.2) contains its line ends; [`unfold`]
/// makes one line of it.
pub fn fields(head: &[u8]) -> Fields<'_> {
    let mut fields = Fields { rest: head };
    fields.line();
    fields
}

/// Returns the fields of a trailer section, which has no status line.
pub fn trailers(section: &[u8]) -> Fields<'_> {
    Fields { rest: section }
}

/// The fields of a section; returned by [`fields`].
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    rest: &'a [u8],
}

/// Returns the first field with that name; case does not matter (RFC 9110 §5.1).
pub fn find<'a>(head: &'a [u8], name: &str) -> Option<&'a [u8]> {
    all(head, name).next()
}

/// Returns the first field of that name in a trailer section.
pub fn find_trailer<'a>(section: &'a [u8], name: &str) -> Option<&'a [u8]> {
    trailers(section)
        .find(|(known, _)| known.eq_ignore_ascii_case(name.as_bytes()))
        .map(|(_, value)| value)
}

/// Returns every field of that name.
pub fn all<'a>(head: &'a [u8], name: &str) -> impl Iterator<Item = &'a [u8]> {
    fields(head)
        .filter(move |(known, _)| known.eq_ignore_ascii_case(name.as_bytes()))
        .map(|(_, value)| value)
}

/// Returns the values of all Set-Cookie fields; each is a separate cookie, never a list (RFC 9110
/// §5.3).
pub fn set_cookies(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    all(head, "set-cookie")
}

/// Returns the target of a redirect: an absolute or relative reference. Unchecked; it may be
/// anything.
pub fn location(head: &[u8]) -> Option<&[u8]> {
    find(head, "location")
}

/// Returns the codings applied to the content, as a list: several fields are one (RFC 9110 §5.3).
pub fn content_encoding(head: &[u8]) -> Option<Cow<'_, [u8]>> {
    let mut all = all(head, "content-encoding");
    let first = all.next()?;
    let Some(second) = all.next() else { return Some(Cow::Borrowed(first)) };
    let lines: Vec<&[u8]> = [first, second].into_iter().chain(all).collect();
    Some(Cow::Owned(lines.join(&b", "[..])))
}

/// Returns a folded value as one line: each line end with the white space around it becomes a space
/// (RFC 9112 §5.2).
pub fn unfold(value: &[u8]) -> Cow<'_, [u8]> {
    if !value.contains(&b'\n') {
        return Cow::Borrowed(value);
    }
    let lines: Vec<&[u8]> = value.split(|byte| *byte == b'\n').map(trim).collect();
    Cow::Owned(lines.join(&b' '))
}

/// Returns the elements of a comma-separated list, without empty ones (RFC 9110 §5.6.1.2). A fold
/// counts as white space.
pub(crate) fn list(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b',').map(trim).filter(|element| !element.is_empty())
}

impl<'a> Fields<'a> {
    /// Returns the next line without its end; `None` at the end of the bytes.
    fn line(&mut self) -> Option<&'a [u8]> {
        if self.rest.is_empty() {
            return None;
        }
        let end = memchr::memchr(b'\n', self.rest);
        let (line, rest) = match end {
            Some(lf) => (&self.rest[..lf], &self.rest[lf + 1..]),
            None => (self.rest, &[][..]),
        };
        self.rest = rest;
        Some(line.strip_suffix(b"\r").unwrap_or(line))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let from = self.rest;
            let first = self.line()?;
            if first.is_empty() {
                self.rest = &[];
                return None;
            }
            let mut used = first.len();
            while matches!(self.rest.first(), Some(b' ' | b'\t')) {
                let begin = from.len() - self.rest.len();
                used = begin + self.line()?.len();
            }
            let whole = &from[..used];
            if let Some(colon) = memchr::memchr(b':', first) {
                let (name, value) = whole.split_at(colon);
                let name = name.trim_ascii_end();
                if !name.is_empty() {
                    return Some((name, trim(&value[1..])));
                }
            }
        }
    }
}

/// Returns whether the text is a token (RFC 9110 §5.6.2).
pub fn is_token(text: &[u8]) -> bool {
    let is_tchar = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    !text.is_empty() && text.iter().all(is_tchar)
}

pub(crate) fn trim(value: &[u8]) -> &[u8] {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
    let begin = value.iter().position(|byte| !blank(byte)).unwrap_or(value.len());
    let end = value.iter().rposition(|byte| !blank(byte)).map_or(begin, |last| last + 1);
    &value[begin..end]
}

#[cfg(test)]
mod tests;
