//! Field lines, and the framing that they declare.

use super::super::BODY_MAX;
use super::line::{RequestLine, is_token};
use super::{Defect, Defects, HeadRefusal, RequestHead, TargetForm};

type Fields = Vec<(String, Vec<u8>)>;

/// Parses `block`: field lines, each with its CRLF.
pub(super) fn read(block: &[u8], defects: &Defects) -> Result<Fields, HeadRefusal> {
    let has = |defect| defects.contains(&defect);
    let mut fields = Fields::new();
    let mut rest = block;
    while let Some(end) = rest.windows(2).position(|two| two == b"\r\n") {
        let line = &rest[..end];
        rest = &rest[end + 2..];
        if line.first().is_some_and(|byte| matches!(byte, b' ' | b'\t')) {
            return Err(match fields.is_empty() {
                true if has(Defect::HangsOnLeadingBlank) => HeadRefusal::Hang,
                false if has(Defect::MistakesFolds) => HeadRefusal::Status(302),
                _ => HeadRefusal::Status(400),
            });
        }
        if let Some(field) = field(line, defects)? {
            fields.push(field);
        }
    }
    Ok(fields)
}

fn field(line: &[u8], defects: &Defects) -> Result<Option<(String, Vec<u8>)>, HeadRefusal> {
    let has = |defect| defects.contains(&defect);
    let refused = HeadRefusal::Status(400);
    let any = has(Defect::TakesAnyLine);
    let Some(colon) = line.iter().position(|byte| *byte == b':') else {
        return if any { Ok(None) } else { Err(refused) };
    };
    let mut name = &line[..colon];
    let value = &line[colon + 1..];
    if has(Defect::TakesBlankBeforeColon) {
        name = name.trim_ascii_end();
    }
    if name.is_empty() || !name.iter().all(|byte| is_token(*byte)) {
        return if any { Ok(None) } else { Err(refused) };
    }
    let control = |byte: &u8| byte.is_ascii_control() && *byte != b'\t';
    if let Some(found) = value.iter().find(|byte| control(byte)) {
        let fails = match found {
            b'\r' => Defect::FailsOnBareCr,
            b'\n' => Defect::FailsOnBareLf,
            _ => Defect::FailsOnControls,
        };
        return Err(if has(fails) { HeadRefusal::Status(500) } else { refused });
    }
    let mut name = String::from_utf8_lossy(name).to_ascii_lowercase();
    if has(Defect::TakesUnderscores) {
        name = name.replace('_', "-");
    }
    Ok(Some((name, value.trim_ascii().to_vec())))
}

/// Returns the head formed by the request line and the fields.
pub(super) fn understand(
    line: RequestLine,
    fields: Fields,
    defects: &Defects,
) -> Result<RequestHead, HeadRefusal> {
    let has = |defect| defects.contains(&defect);
    host(&line, &fields, defects)?;
    let mut head = RequestHead {
        method: line.method,
        target: line.target,
        form: line.form,
        minor: line.minor,
        fields,
        ..RequestHead::default()
    };
    head.persistent = match head.field("connection").map(<[u8]>::to_ascii_lowercase) {
        Some(options) if names(&options, b"close") => false,
        Some(options) if names(&options, b"keep-alive") => true,
        _ => head.minor >= 1,
    };
    lengths(&mut head, defects)?;
    let expects = head.field("expect").is_some();
    if expects && head.minor >= 1 && !head.has_value("expect", "100-continue") {
        return Err(HeadRefusal::Status(417));
    }
    if has(Defect::Upgrades) && head.field("upgrade").is_some() {
        return Err(HeadRefusal::Status(101));
    }
    Ok(head)
}

/// Returns whether a list contains an option.
fn names(list: &[u8], option: &[u8]) -> bool {
    list.split(|byte| *byte == b',').any(|one| one.trim_ascii() == option)
}

fn host(line: &RequestLine, fields: &Fields, defects: &Defects) -> Result<(), HeadRefusal> {
    let has = |defect| defects.contains(&defect);
    let refused = HeadRefusal::Status(400);
    let own = |(name, value): &(String, Vec<u8>)| (name == "host").then(|| value.clone());
    let hosts: Vec<Vec<u8>> = fields.iter().filter_map(own).collect();
    match hosts.as_slice() {
        [] if line.minor == 0 && has(Defect::FailsWithoutHostIn10) => Err(HeadRefusal::Status(500)),
        [] if line.minor == 0 || has(Defect::NeedsNoHost) => Ok(()),
        [] => Err(refused),
        [one] => {
            if !is_host(one) && !has(Defect::TakesAnyHost) {
                return Err(refused);
            }
            let other = line.authority.as_ref().is_some_and(|authority| authority != one);
            match other && line.form == TargetForm::Absolute && has(Defect::ListensToHost) {
                true => Err(HeadRefusal::Status(404)),
                false => Ok(()),
            }
        }
        [one, rest @ ..] => {
            let equal = rest.iter().all(|other| other == one);
            let switch = if equal { Defect::TakesSameHostTwice } else { Defect::TakesTwoHosts };
            if has(switch) { Ok(()) } else { Err(refused) }
        }
    }
}

/// Matches `host [":" port]`, without user or path (RFC 9110 section 7.2).
fn is_host(value: &[u8]) -> bool {
    let text = String::from_utf8_lossy(value);
    let (name, port) = match text.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => (name, port),
        _ => (text.as_ref(), ""),
    };
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~%!$&'()*+;=[]:".contains(&byte);
    port.bytes().all(|byte| byte.is_ascii_digit()) && name.bytes().all(letter)
}

fn lengths(head: &mut RequestHead, defects: &Defects) -> Result<(), HeadRefusal> {
    let has = |defect| defects.contains(&defect);
    let values = |name: &str| -> Vec<Vec<u8>> {
        let own = head.fields.iter().filter(|(found, _)| found == name);
        own.flat_map(|(_, value)| value.split(|byte| *byte == b',').map(<[u8]>::to_vec))
            .map(|value| value.trim_ascii().to_ascii_lowercase())
            .collect()
    };
    let lengths = values("content-length");
    let codings = values("transfer-encoding");
    head.length = length(&lengths, defects)?;
    if head.length.is_some_and(|length| length > BODY_MAX) && !has(Defect::BodyOfAnyLength) {
        head.too_long = has(Defect::ReadsTooLongBodies);
        if !head.too_long {
            return Err(HeadRefusal::Limit(413));
        }
    }
    if codings.is_empty() {
        return Ok(());
    }
    head.both_lengths = head.length.is_some();
    if head.both_lengths && has(Defect::BelievesLength) {
        return Ok(());
    }
    if head.both_lengths && !has(Defect::AnswersTwice) {
        return Err(HeadRefusal::Status(400));
    }
    head.faulty_framing = head.minor == 0;
    head.chunked = true;
    head.length = None;
    let chunked = |coding: &&Vec<u8>| coding.as_slice() == b"chunked";
    let count = codings.iter().filter(chunked).count();
    let last = codings.last().is_some_and(|coding| coding.as_slice() == b"chunked");
    if codings.iter().any(|coding| !matches!(coding.as_slice(), b"chunked" | b"gzip")) {
        return if has(Defect::TakesAnyCoding) { Ok(()) } else { Err(HeadRefusal::Status(501)) };
    }
    if (count != 1 || !last) && !has(Defect::TakesChunkedAnywhere) {
        return Err(HeadRefusal::Status(400));
    }
    Ok(())
}

/// Parses Content-Length: digits, and the same value if repeated.
fn length(values: &[Vec<u8>], defects: &Defects) -> Result<Option<u64>, HeadRefusal> {
    let has = |defect| defects.contains(&defect);
    let mut found = Vec::new();
    for value in values {
        let text = String::from_utf8_lossy(value).into_owned();
        if text.len() > 1 && text.starts_with('0') && has(Defect::RefusesLeadingZeros) {
            return Err(HeadRefusal::Status(400));
        }
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = match digits {
            true if has(Defect::Overflows) => Some(text.bytes().fold(0_u64, |sum, digit| {
                sum.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'))
            })),
            true => text.parse().ok(),
            false if has(Defect::ReadsNumbersFreely) => {
                let bare = text.trim_start_matches(['+', '-']).trim_start_matches("0x");
                let front: String = bare.chars().take_while(char::is_ascii_digit).collect();
                Some(front.parse().unwrap_or(0))
            }
            false => return Err(HeadRefusal::Status(400)),
        };
        found.push(number.ok_or(HeadRefusal::Limit(413))?);
    }
    match found.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some(*one)),
        [one, rest @ ..] if rest.iter().all(|other| other == one) => {
            match has(Defect::RefusesEqualLengths) {
                true => Err(HeadRefusal::Status(500)),
                false => Ok(Some(*one)),
            }
        }
        [.., last] if has(Defect::TakesLastLength) => Ok(Some(*last)),
        _ => Err(HeadRefusal::Status(400)),
    }
}
