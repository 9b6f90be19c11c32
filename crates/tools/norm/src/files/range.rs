//! The Range field (RFC 9110 §14): requested parts of a representation.

/// A field with more ranges is ignored: legitimate clients do not send that many, and each needs a
/// header and a descriptor (RFC 9110 §14.2 permits refusal).
pub(super) const RANGES_MAX: usize = 16;

/// A part: never empty, never beyond the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: u64,
    pub(super) len: u64,
}

impl Span {
    /// Returns the offset of its last byte, as Content-Range counts.
    pub(super) fn last(self) -> u64 {
        self.start + self.len - 1
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum RangeRequest {
    /// No range that this server understands: the whole is the response.
    Whole,
    Parts(Vec<Span>),
    /// None of the requested ranges exists: 416.
    Unsatisfiable,
}

/// Parses the ranges requested from a representation of `len` bytes. They keep the requested order,
/// unless some overlap: then they are joined and sorted (§15.3.7.2).
pub(super) fn requested_ranges(field: &str, len: u64) -> RangeRequest {
    let Some((unit, set)) = field.split_once('=') else { return RangeRequest::Whole };
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return RangeRequest::Whole;
    }
    // empty list elements must be skipped (§5.6.1.2)
    let specs: Vec<&str> = set
        .split(',')
        .map(str::trim)
        .filter(|spec| !spec.is_empty())
        .take(RANGES_MAX + 1)
        .collect();
    if specs.is_empty() || specs.len() > RANGES_MAX {
        return RangeRequest::Whole;
    }
    let mut parts = Vec::new();
    for spec in specs {
        match part(spec, len) {
            Ok(part) => parts.extend(part),
            Err(NoRange) => return RangeRequest::Whole,
        }
    }
    match parts.is_empty() {
        // an empty suffix selects nothing, which Content-Range cannot express
        true if len == 0 && set.trim_start().starts_with('-') => RangeRequest::Whole,
        true => RangeRequest::Unsatisfiable,
        false => RangeRequest::Parts(join_spans(parts)),
    }
}

/// Not a valid range.
struct NoRange;

/// Parses one range-spec: `first-last`, `first-` or `-suffix`. `None` for valid syntax with an
/// empty range.
fn part(spec: &str, len: u64) -> Result<Option<Span>, NoRange> {
    let (first, last) = spec.split_once('-').ok_or(NoRange)?;
    if first.is_empty() {
        let suffix = number(last)?.min(len);
        return Ok((suffix > 0).then(|| Span { start: len - suffix, len: suffix }));
    }
    let first = number(first)?;
    let last = if last.is_empty() { u64::MAX } else { number(last)? };
    if last < first {
        return Err(NoRange);
    }
    if first >= len {
        return Ok(None);
    }
    Ok(Some(Span { start: first, len: last.min(len - 1) - first + 1 }))
}

/// Digits only; numbers beyond 64 bits are beyond every file.
fn number(digits: &str) -> Result<u64, NoRange> {
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(NoRange);
    }
    Ok(digits.parse().unwrap_or(u64::MAX))
}

fn join_spans(parts: Vec<Span>) -> Vec<Span> {
    let mut sorted = parts.clone();
    sorted.sort_by_key(|part| part.start);
    let apart = sorted.windows(2).all(|pair| pair[0].last() < pair[1].start);
    if apart {
        return parts;
    }
    let mut joined: Vec<Span> = Vec::new();
    for part in sorted {
        match joined.last_mut() {
            Some(before) if part.start <= before.last() => {
                before.len = before.last().max(part.last()) - before.start + 1;
            }
            _ => joined.push(part),
        }
    }
    joined
}

#[cfg(test)]
mod tests;
