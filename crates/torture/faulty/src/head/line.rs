//! The request line.

use super::{Defect, Defects, HeadRefusal};

/// The form of a target (RFC 9112 section 3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum TargetForm {
    #[default]
    Origin,
    Absolute,
    Authority,
    Asterisk,
}

/// A valid request line.
#[derive(Clone, Debug, Default)]
pub(super) struct RequestLine {
    pub(super) method: String,
    pub(super) target: Vec<u8>,
    pub(super) form: TargetForm,
    /// Authority of the absolute form.
    pub(super) authority: Option<Vec<u8>>,
    pub(super) minor: u8,
}

const METHODS: [&str; 8] = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "CONNECT", "TRACE"];

/// Returns the line without its end, which must be CRLF.
pub(super) fn without_line_end<'l>(
    line: &'l [u8],
    defects: &Defects,
) -> Result<&'l [u8], HeadRefusal> {
    match line.strip_suffix(b"\r\n") {
        Some(text) => Ok(text),
        None if defects.contains(&Defect::HangsOnLfLines) => Err(HeadRefusal::Hang),
        None => Err(HeadRefusal::Status(400)),
    }
}

pub(super) fn read(line: &[u8], defects: &Defects) -> Result<RequestLine, HeadRefusal> {
    let has = |defect| defects.contains(&defect);
    let refused = HeadRefusal::Status(400);
    let printable = line.first().is_some_and(u8::is_ascii_graphic);
    if !printable && has(Defect::HangsOnGarbage) {
        return Err(HeadRefusal::Hang);
    }
    let first = line.iter().position(|byte| *byte == b' ').ok_or(refused)?;
    let last = line.iter().rposition(|byte| *byte == b' ').ok_or(refused)?;
    if first == last {
        // a line without a version
        return Err(if has(Defect::HangsOnHttp09) { HeadRefusal::Hang } else { refused });
    }
    let method = &line[..first];
    let target = &line[first + 1..last];
    let version = &line[last + 1..];
    let minor = read_version(version, defects)?;
    let method = read_method(method, defects)?;
    let (form, authority, target) = read_target(&method, target, defects)?;
    Ok(RequestLine { method, target, form, authority, minor })
}

fn read_version(version: &[u8], defects: &Defects) -> Result<u8, HeadRefusal> {
    let has = |defect| defects.contains(&defect);
    match version {
        [b'H', b'T', b'T', b'P', b'/', b'1', b'.', digit @ b'0'..=b'9'] => match digit - b'0' {
            minor @ 0..=1 => Ok(minor),
            _ if has(Defect::RefusesMinorVersions) => Err(HeadRefusal::Status(505)),
            _ => Ok(1),
        },
        [b'H', b'T', b'T', b'P', b'/', b'0'..=b'9', b'.', b'0'..=b'9'] => {
            let hangs = has(Defect::HangsOnMajorVersions);
            Err(if hangs { HeadRefusal::Hang } else { HeadRefusal::Status(505) })
        }
        _ if has(Defect::TakesAnyVersion) => Ok(1),
        _ => Err(HeadRefusal::Status(400)),
    }
}

fn read_method(method: &[u8], defects: &Defects) -> Result<String, HeadRefusal> {
    let token = !method.is_empty() && method.iter().all(|byte| is_token(*byte));
    let text = String::from_utf8_lossy(method).into_owned();
    if defects.contains(&Defect::TakesAnyMethod) && !METHODS.contains(&text.as_str()) {
        return Ok("GET".to_owned());
    }
    match token {
        false => Err(HeadRefusal::Status(400)),
        true if METHODS.contains(&text.as_str()) => Ok(text),
        true => Err(HeadRefusal::Status(501)),
    }
}

type SplitTarget = (TargetForm, Option<Vec<u8>>, Vec<u8>);

fn read_target(method: &str, target: &[u8], defects: &Defects) -> Result<SplitTarget, HeadRefusal> {
    let has = |defect| defects.contains(&defect);
    let refused = HeadRefusal::Status(400);
    let high = target.iter().any(|byte| *byte >= 0x80);
    if high && has(Defect::FailsOnHighBytes) {
        return Err(HeadRefusal::Status(500));
    }
    let odd = |byte: &u8| !byte.is_ascii_graphic() && *byte < 0x80 || *byte == b'#';
    let mut kept = target.to_vec();
    if target.iter().any(odd) {
        if !has(Defect::TakesAnyTarget) {
            return Err(refused);
        }
        // silent repair: the target is truncated at the first odd byte
        kept.truncate(target.iter().position(odd).unwrap_or(0));
    }
    let own = |form| Ok((form, None, kept.clone()));
    let absolute = after_scheme(&kept);
    match (method, kept.as_slice()) {
        ("CONNECT", authority) => connect(authority, defects),
        ("OPTIONS", b"*") if has(Defect::FailsOnAsterisk) => Err(HeadRefusal::Status(500)),
        ("OPTIONS", b"*") => own(TargetForm::Asterisk),
        (_, [b'/', ..]) => own(TargetForm::Origin),
        _ if absolute.is_some() && has(Defect::KnowsNoAbsoluteForm) => {
            Err(HeadRefusal::Status(404))
        }
        _ if absolute.is_some() => {
            let split = absolute.and_then(|rest| split_absolute(method, rest));
            let (authority, target) = split.ok_or(refused)?;
            Ok((TargetForm::Absolute, Some(authority), target))
        }
        _ if has(Defect::TakesAnyForm) => Ok((TargetForm::Origin, None, super::super::PATH.into())),
        _ => Err(refused),
    }
}

/// Returns what follows `http://`, which is case-insensitive (RFC 9110 section 4.2.3).
fn after_scheme(target: &[u8]) -> Option<&[u8]> {
    let (scheme, rest) = target.split_at_checked(b"http://".len())?;
    scheme.eq_ignore_ascii_case(b"http://").then_some(rest)
}

/// Splits what follows `http://` into the authority, and path with query. An empty path is `/`, or
/// the server as a whole for OPTIONS (RFC 9112 sections 3.2.1 and 3.2.4). `None` means no host (RFC
/// 9110 section 4.2.1).
fn split_absolute(method: &str, rest: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let end = rest.iter().position(|byte| b"/?".contains(byte)).unwrap_or(rest.len());
    let (authority, target) = rest.split_at(end);
    let target = match (method, target) {
        ("OPTIONS", []) => b"*".to_vec(),
        (_, [b'/', ..]) => target.to_vec(),
        _ => [b"/", target].concat(),
    };
    (!authority.is_empty()).then(|| (authority.to_vec(), target))
}

/// Refuses CONNECT, because this is not a proxy.
fn connect(authority: &[u8], defects: &Defects) -> Result<SplitTarget, HeadRefusal> {
    match defects.contains(&Defect::ConnectsAnywhere) {
        true => Ok((TargetForm::Authority, Some(authority.to_vec()), Vec::new())),
        false => Err(HeadRefusal::Status(400)),
    }
}

/// Returns whether a token may contain this byte (RFC 9110 section 5.6.2).
pub(crate) fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}
