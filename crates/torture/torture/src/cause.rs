//! Merges findings with one cause: one fault of a server is one finding, however many cases show it.

use crate::case::Family;
use crate::framing::{self, ContentFraming, FramingFault, FramingReading, MessageEnd};
use crate::judge::severity::{self, Severity};
use crate::judge::{Cause, FailureKind, TestOutcome};
use crate::result::{CaseResult, ExchangeResult, Shrunk};
use std::collections::BTreeSet;

/// A fault: how a server fails, and on what.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ServerFault {
    /// The status, `hang` and the like; empty for a missing field.
    how: String,
    on: Trigger,
}

/// The part of a message, or of the response, that a fault depends on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Trigger {
    /// A byte in the head, also percent-encoded.
    Byte(ByteSort),
    Framing(FramingFault),
    /// A field that the response must have.
    Missing(String),
    /// The reason why the received bytes are not a response.
    Reply(String),
    /// The server fails at random, regardless of the input.
    Chance,
    /// The server sends no final response after 100 (Continue).
    OnlyContinue,
    /// The server never releases a connection, regardless of the sent data.
    EveryConnection,
    /// A response to HEAD has content.
    HeadContent,
    /// Many ranges of one page.
    LongRanges,
    /// The response begins with the version of the request, regardless of which.
    EchoedVersion,
    /// No Host, several, or an invalid one.
    Host,
    /// Trailers, even valid ones. The server responds with an error or parses them as a request.
    Trailers,
    /// As many connections as the server serves at once, regardless of what they do.
    ConnectionLimit,
    /// An invalid head.
    InvalidHead,
    /// A request without content for this page, whose method may carry content.
    NoContent(Vec<u8>),
    /// Invalid chunks, whichever part of them is invalid.
    InvalidChunks,
    /// A chunk extension, even a valid one.
    Extension,
    /// Further requests before the response to the first.
    Pipelined,
    /// A head that exceeds the usual limits of servers.
    Long,
    /// Credentials of the scheme Basic that are not valid base64.
    Credentials,
    /// Cookies that are not pairs of a name and a value.
    Cookies,
    /// Chunked content of a request that ends the server's process in this way.
    Chunked(String),
    /// Valid chunked content in its usual form, which the server does not read.
    ChunkedContent,
    /// An unusual but valid form of a request with chunked content.
    ChunkedForm,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ByteSort {
    Nul,
    /// A control character other than tab, CR and LF.
    Control,
    /// A byte above 127.
    High,
    /// A percent sign without two hexadecimal digits.
    BadEscape,
}

/// Marks each finding whose failures all have the causes of findings at least as severe.
pub fn merge(cases: &mut [CaseResult], shrunk: &[Shrunk]) {
    let rated = |case: &CaseResult| severity::of_case(case).map(|rated| rated.severity);
    let mut order: Vec<(Severity, usize)> =
        cases.iter().enumerate().filter_map(|(at, case)| Some((rated(case)?, at))).collect();
    let limited = cases.iter().any(severity::is_connection_limit);
    let unread = unread_chunk_failures(cases);
    let faults: Vec<Vec<BTreeSet<ServerFault>>> =
        cases.iter().map(|case| faults_of(case, shrunk, limited, &unread)).collect();
    let is_vague = |at: usize| faults[at].iter().any(|one| one.len() != 1);
    // mutations start from the requests of other cases, which state what the standard requires
    let mutates = |at: usize| matches!(cases[at].case.family, Some(Family::MutateBodies(_)));
    let is_usual = |at: usize| !mutates(at) && fails_usual_chunks(&cases[at]);
    // of equal findings, those about the usual form come first, then those that name their cause,
    // then those with lower ids
    order.sort_by_key(|(severity, at)| {
        (std::cmp::Reverse(*severity), !is_usual(*at), is_vague(*at), mutates(*at), *at)
    });
    let mut roots: Vec<(String, BTreeSet<ServerFault>)> = Vec::new();
    for (_, at) in order {
        let own = &faults[at];
        if let Some(root) = root_of(own, &roots) {
            cases[at].same_as = Some(root.to_owned());
            continue;
        }
        // a failure with one possible trigger names its cause
        let certain = own.iter().filter(|one| one.len() == 1).flatten().cloned().collect();
        roots.push((cases[at].case.id.clone(), certain));
    }
    merge_roots(cases, &faults);
}

/// Merges missing fields into a later finding of the same severity that lacks them too. It was not
/// a candidate because it has other failures as well.
fn merge_roots(cases: &mut [CaseResult], faults: &[Vec<BTreeSet<ServerFault>>]) {
    let rated = |case: &CaseResult| severity::of_case(case).map(|rated| rated.severity);
    for at in 0..cases.len() {
        let own = &faults[at];
        let severity = rated(&cases[at]);
        let is_missing = |fault: &ServerFault| matches!(fault.on, Trigger::Missing(_));
        let is_certain = |one: &BTreeSet<ServerFault>| one.len() == 1 && one.iter().all(is_missing);
        let is_clear = !own.is_empty() && own.iter().all(is_certain);
        if severity.is_none() || cases[at].same_as.is_some() || !is_clear {
            continue;
        }
        let explains = |other: usize| {
            let certain =
                |one: &BTreeSet<ServerFault>| one.len() == 1 && faults[other].contains(one);
            other != at
                && cases[other].same_as.is_none()
                && rated(&cases[other]) == severity
                && faults[other].len() > own.len()
                && own.iter().all(certain)
        };
        let Some(root) = (0..cases.len()).find(|other| explains(*other)) else { continue };
        let (id, root) = (cases[at].case.id.clone(), cases[root].case.id.clone());
        for case in cases.iter_mut().filter(|case| case.same_as.as_ref() == Some(&id)) {
            case.same_as = Some(root.clone());
        }
        cases[at].same_as = Some(root);
    }
}

/// Returns the finding that explains most of these failures, the first if several do. `None` if
/// the findings do not explain all failures.
fn root_of<'r>(
    own: &[BTreeSet<ServerFault>],
    roots: &'r [(String, BTreeSet<ServerFault>)],
) -> Option<&'r str> {
    let explains =
        |known: &BTreeSet<ServerFault>, one: &BTreeSet<ServerFault>| !one.is_disjoint(known);
    let is_known = |one| roots.iter().any(|(_, known)| explains(known, one));
    if own.is_empty() || !own.iter().all(is_known) {
        return None;
    }
    let count = |known| own.iter().filter(|one| explains(known, one)).count();
    // `max_by_key` returns the last of equal elements
    let most = roots.iter().rev().max_by_key(|(_, known)| count(known));
    most.map(|(id, _)| id.as_str())
}

/// Returns the possible faults of each failed exchange; an empty set if they are unknown.
/// `limited`: a number of idle connections keeps others out. `unread`: failures of the usual form of
/// chunked content.
fn faults_of(
    case: &CaseResult,
    shrunk: &[Shrunk],
    limited: bool,
    unread: &BTreeSet<FailureKind>,
) -> Vec<BTreeSet<ServerFault>> {
    let failed = case.exchanges.iter().filter(|one| one.judgement.outcome.is_finding());
    let limit = severity::is_connection_limit(case) || limited && severity::lacks_control(case);
    let limit = limit.then(|| {
        BTreeSet::from([ServerFault { how: String::new(), on: Trigger::ConnectionLimit }])
    });
    let fault = |one| unread_chunks_fault(one, unread).unwrap_or_else(|| faults(case, one, shrunk));
    limit.into_iter().chain(failed.map(fault)).collect()
}

fn faults(
    case: &CaseResult,
    exchange: &ExchangeResult,
    shrunk: &[Shrunk],
) -> BTreeSet<ServerFault> {
    let judgement = &exchange.judgement;
    let whatever = match &judgement.cause {
        Some(Cause::Missing(field)) => Some(Trigger::Missing(field.clone())),
        Some(Cause::NoContinue) => Some(Trigger::Missing(CONTINUE.to_owned())),
        Some(Cause::Chance) => Some(Trigger::Chance),
        Some(Cause::OnlyContinue) => Some(Trigger::OnlyContinue),
        Some(Cause::EveryConnection) => Some(Trigger::EveryConnection),
        Some(Cause::HeadContent) => Some(Trigger::HeadContent),
        Some(Cause::LongRanges) => Some(Trigger::LongRanges),
        Some(Cause::EchoedVersion) => Some(Trigger::EchoedVersion),
        Some(Cause::NoHttp(_)) | None => None,
    };
    if let Some(on) = whatever {
        return BTreeSet::from([ServerFault { how: String::new(), on }]);
    }
    let crashed = judgement.outcome == TestOutcome::Crashed;
    let how = match judgement.kind {
        _ if crashed => FailureKind::Lost.to_string(),
        // wrong processing or refusal differs from message to message
        None | Some(FailureKind::Answer | FailureKind::AnswerClosed | FailureKind::Refused) => {
            return BTreeSet::new();
        }
        Some(kind) => kind.to_string(),
    };
    let id = &case.case.id;
    let short = shrunk.iter().find(|one| one.case == *id && one.name == exchange.name);
    let sent = short.map_or_else(|| exchange.sent.clone(), Shrunk::bytes);
    let reading = framing::read(&sent);
    let mut on = triggers(&sent, &reading);
    if let Some(Cause::NoHttp(why)) = &judgement.cause {
        on.insert(Trigger::Reply(why.clone()));
    }
    if is_silent(judgement.kind) && severity::is_http1(&case.case) && reading.has_invalid_head() {
        on.retain(|one| matches!(one, Trigger::Framing(_)));
        on.insert(Trigger::InvalidHead);
    }
    let in_head = on.iter().any(|one| matches!(one, Trigger::Byte(_)));
    if crashed
        && !in_head
        && let Some(chunked) = crash_by_chunks(case, &reading)
    {
        // the process ends, whichever part of the content is at fault
        on = BTreeSet::from([chunked]);
    }
    let is_error = matches!(judgement.kind, Some(FailureKind::Status(_)));
    if is_error {
        on = error_triggers(case, &sent, &reading, on);
    }
    let is_unanswered = is_silent(judgement.kind) || judgement.kind == Some(FailureKind::Closed);
    if (is_error || is_unanswered) && severity::is_http1(&case.case) {
        on.extend(valid_triggers(&sent, &reading));
    }
    let has_trailers = reading.trailers > 0 || reading.faults.contains(&FramingFault::Trailer);
    let spoils_next =
        matches!(judgement.kind, Some(FailureKind::ContentParsed | FailureKind::NextRefused));
    if spoils_next && has_trailers {
        on = BTreeSet::from([Trigger::Trailers]);
    } else if judgement.kind == Some(FailureKind::ContentParsed) && severity::is_http1(&case.case) {
        on.extend(unread_chunks(&sent, &reading));
    }
    if on.is_empty() && fails_as_pipeline(judgement.kind, &sent, &reading) {
        on.insert(Trigger::Pipelined);
    }
    on.into_iter().map(|on| ServerFault { how: how.clone(), on }).collect()
}

/// Returns what may have caused an error response, in addition to these triggers of the message.
fn error_triggers(
    case: &CaseResult,
    sent: &[u8],
    reading: &FramingReading,
    mut on: BTreeSet<Trigger>,
) -> BTreeSet<Trigger> {
    if reading.head > LONG {
        on.insert(Trigger::Long);
    }
    if is_pipelined(sent, reading) {
        // any of the requests may have caused it
        on.extend(byte_sorts(sent));
    }
    if !severity::is_http1(&case.case) {
        return on;
    }
    if has_bad_host(sent, reading) {
        on.insert(Trigger::Host);
    }
    if has_invalid_chunks(sent, reading) {
        on.retain(|one| !matches!(one, Trigger::Framing(fault) if is_chunk_fault(*fault)));
        on.insert(Trigger::InvalidChunks);
    }
    if reading.extensions > 0 {
        on.insert(Trigger::Extension);
    }
    if reading.trailers > 0 {
        on.insert(Trigger::Trailers);
    }
    if has_invalid_heads(sent) {
        on.insert(Trigger::InvalidHead);
    }
    on
}

/// Returns what may have caused a server to parse chunked content as a request, in addition to
/// faults of the message: a server that reads no chunked content parses that of any request.
fn unread_chunks(sent: &[u8], reading: &FramingReading) -> Vec<Trigger> {
    let head = &sent[..reading.head.min(sent.len())];
    if field_values(head, b"transfer-encoding").next().is_none() {
        return Vec::new();
    }
    let is_usual = matches!(reading.method.as_str(), "PATCH" | "POST" | "PUT")
        && head.windows(CHUNKED.len()).any(|here| here == CHUNKED);
    let is_valid = !reading.is_invalid();
    let form = (is_valid && !is_usual).then_some(Trigger::ChunkedForm);
    std::iter::once(Trigger::ChunkedContent).chain(form).collect()
}

/// Failures that chunked content may cause in any of its forms.
fn may_be_unread_chunks(kind: FailureKind) -> bool {
    use FailureKind::{Closed, Hang, Refused, Status, Unfinished};
    matches!(kind, Closed | Hang | Refused | Status(_) | Unfinished)
}

/// Returns how requests with chunked content in its usual form failed. Other forms of it that fail
/// in the same way have the same cause.
fn unread_chunk_failures(cases: &[CaseResult]) -> BTreeSet<FailureKind> {
    let usual = cases.iter().flat_map(usual_chunks);
    usual.filter_map(|one| one.judgement.kind).filter(|kind| may_be_unread_chunks(*kind)).collect()
}

/// Returns whether chunked content in its usual form fails in this case.
fn fails_usual_chunks(case: &CaseResult) -> bool {
    usual_chunks(case).next().is_some()
}

/// Returns the failures of chunked content in its usual form.
fn usual_chunks(case: &CaseResult) -> impl Iterator<Item = &ExchangeResult> {
    let exchanges = if severity::is_http1(&case.case) { &case.exchanges[..] } else { &[] };
    exchanges.iter().filter(|one| {
        let outcome = one.judgement.outcome;
        outcome.is_finding() && outcome != TestOutcome::Crashed && has_usual_chunks(&one.sent)
    })
}

/// Returns whether these bytes are one valid request whose only feature is chunked content.
fn has_usual_chunks(sent: &[u8]) -> bool {
    let reading = framing::read(sent);
    let head = &sent[..reading.head.min(sent.len())];
    reading.is_exact(sent.len())
        && matches!(reading.method.as_str(), "PATCH" | "POST" | "PUT")
        && reading.extensions == 0
        && reading.trailers == 0
        && head.windows(CHUNKED.len()).any(|here| here == CHUNKED)
        && byte_sorts(head).next().is_none()
}

/// Returns the fault of a request with chunked content, if the server fails in the same way on its
/// usual form.
fn unread_chunks_fault(
    exchange: &ExchangeResult,
    unread: &BTreeSet<FailureKind>,
) -> Option<BTreeSet<ServerFault>> {
    const NAME: &[u8] = b"chunked";
    let judgement = &exchange.judgement;
    let kind = judgement.kind.filter(|kind| unread.contains(kind))?;
    let reading = framing::read(&exchange.sent);
    let head = &exchange.sent[..reading.head.min(exchange.sent.len())];
    let is_chunked = field_values(head, b"transfer-encoding")
        .any(|value| value.to_ascii_lowercase().windows(NAME.len()).any(|here| here == NAME));
    let known = judgement.cause.is_some() || judgement.outcome == TestOutcome::Crashed;
    let fault = ServerFault { how: kind.to_string(), on: Trigger::ChunkedContent };
    (is_chunked && !known).then(|| BTreeSet::from([fault]))
}

/// The usual field line of chunked content.
const CHUNKED: &[u8] = b"\r\nTransfer-Encoding: chunked\r\n";

/// Returns the parts of a valid request that may have caused an error response.
fn valid_triggers(sent: &[u8], reading: &FramingReading) -> impl Iterator<Item = Trigger> + use<> {
    // a page may fail on other methods whatever follows them
    let may_have_content = matches!(reading.method.as_str(), "PATCH" | "POST" | "PUT");
    let has_none = matches!(reading.framing, ContentFraming::None | ContentFraming::Length(0));
    let is_clear = reading.ambiguities().all(|fault| fault == FramingFault::Lookalike)
        && !reading.faults.contains(&FramingFault::StartLine);
    let lacks_content = may_have_content && has_none && is_clear && reading.head > 0;
    let no_content = lacks_content.then(|| Trigger::NoContent(page(sent)));
    let credentials = has_bad_credentials(sent, reading).then_some(Trigger::Credentials);
    let cookies = has_bad_cookies(sent, reading).then_some(Trigger::Cookies);
    no_content.into_iter().chain(credentials).chain(cookies)
}

/// Returns whether a request has cookies that are not valid pairs of a name and a value (RFC 6265
/// section 4.2.1).
fn has_bad_cookies(sent: &[u8], reading: &FramingReading) -> bool {
    let is_octet = |byte: &u8| byte.is_ascii_graphic() && !b"\",;\\".contains(byte);
    let is_pair = |pair: &[u8]| {
        let Some(equals) = pair.iter().position(|byte| *byte == b'=') else { return false };
        let value = &pair[equals + 1..];
        let bare = value.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\""));
        framing::is_token(&pair[..equals]) && bare.unwrap_or(value).iter().all(is_octet)
    };
    let is_bad =
        |value: &[u8]| !value.split(|byte| *byte == b';').all(|pair| is_pair(pair.trim_ascii()));
    field_values(&sent[..reading.head.min(sent.len())], b"cookie").any(is_bad)
}

/// Returns whether a request has credentials of the scheme Basic that are not padded base64 (RFC
/// 7617 section 2).
fn has_bad_credentials(sent: &[u8], reading: &FramingReading) -> bool {
    const SCHEME: &[u8] = b"basic";
    let is_base64 = |text: &[u8]| {
        let digits = text.strip_suffix(b"==").or(text.strip_suffix(b"=")).unwrap_or(text);
        let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/".contains(byte);
        !text.is_empty() && text.len().is_multiple_of(4) && digits.iter().all(is_digit)
    };
    field_values(&sent[..reading.head.min(sent.len())], b"authorization").any(|value| {
        value.split_at_checked(SCHEME.len()).is_some_and(|(scheme, credentials)| {
            scheme.eq_ignore_ascii_case(SCHEME) && !is_base64(credentials.trim_ascii())
        })
    })
}

/// Returns the values of the fields with this name in a head.
fn field_values<'h>(head: &'h [u8], name: &'h [u8]) -> impl Iterator<Item = &'h [u8]> {
    head.split(|byte| *byte == b'\n').filter_map(|line| {
        let (found, value) = line.split_at_checked(name.len())?;
        let value = value.strip_prefix(b":")?;
        found.eq_ignore_ascii_case(name).then(|| value.trim_ascii())
    })
}

/// Returns the requested page, without its query.
fn page(sent: &[u8]) -> Vec<u8> {
    let line = sent.trim_ascii_start().split(|byte| b"\r\n".contains(byte)).next();
    let target = line.unwrap_or_default().split(|byte| *byte == b' ').nth(1);
    target.unwrap_or_default().split(|byte| *byte == b'?').next().unwrap_or_default().to_vec()
}

/// Returns whether chunked content violates its framing after a head with valid framing.
fn has_invalid_chunks(sent: &[u8], reading: &FramingReading) -> bool {
    let head = framing::read(&sent[..reading.head.min(sent.len())]);
    reading.framing == ContentFraming::Chunked
        && !head.faults.iter().copied().any(is_chunk_fault)
        && reading.faults.iter().copied().any(is_chunk_fault)
}

/// Returns whether this is a fault of chunks, not of the trailers after them.
fn is_chunk_fault(fault: FramingFault) -> bool {
    use FramingFault::{ChunkEnd, ChunkExtension, ChunkSize, LineEnd};
    matches!(fault, ChunkSize | ChunkExtension | ChunkEnd | LineEnd)
}

/// Maximum number of pipelined requests that are examined.
const REQUESTS_MAX: usize = 32;

/// Returns whether one of the pipelined requests has an invalid head.
fn has_invalid_heads(mut sent: &[u8]) -> bool {
    for _ in 0..REQUESTS_MAX {
        let reading = framing::read(sent);
        if reading.has_invalid_head() {
            return true;
        }
        match reading.end {
            MessageEnd::At(end) if end > 0 && end < sent.len() => sent = &sent[end..],
            _ => break,
        }
    }
    false
}

/// Returns whether no response, or none with an end, was received.
fn is_silent(kind: Option<FailureKind>) -> bool {
    matches!(kind, Some(FailureKind::Hang | FailureKind::Unfinished))
}

/// Bytes of a head that some servers refuse.
const LONG: usize = 4_096;

/// Returns the trigger of a process that a request with chunked content ends.
fn crash_by_chunks(case: &CaseResult, reading: &FramingReading) -> Option<Trigger> {
    let deaths = case.server.iter().flat_map(|server| &server.deaths);
    let first = deaths.into_iter().find(|death| death.how.is_fault() || death.whole)?;
    let chunked = reading.framing == ContentFraming::Chunked;
    chunked.then(|| Trigger::Chunked(first.how.to_string()))
}

/// Returns whether a failure may be caused by further requests before the response to the first.
fn fails_as_pipeline(kind: Option<FailureKind>, sent: &[u8], reading: &FramingReading) -> bool {
    match kind {
        Some(FailureKind::Status(_) | FailureKind::Foreign) => is_pipelined(sent, reading),
        Some(FailureKind::NextHangs) => lacks_content(sent),
        _ => false,
    }
}

/// Returns whether these bytes are several valid requests without content.
fn lacks_content(sent: &[u8]) -> bool {
    let methods = framing::valid_requests(sent);
    methods.is_some_and(|count| count > 1) && !framing::read(sent).has_valid_content()
}

/// Returns whether the bytes continue after a complete request.
fn is_pipelined(sent: &[u8], reading: &FramingReading) -> bool {
    matches!(reading.end, MessageEnd::At(end) if end < sent.len())
}

/// The interim response that a client waits for before it sends content.
const CONTINUE: &str = "100 (continue)";

/// Returns the unusual features of a request.
fn triggers(sent: &[u8], reading: &FramingReading) -> BTreeSet<Trigger> {
    let head = if reading.head > 0 { &sent[..reading.head.min(sent.len())] } else { sent };
    byte_sorts(head).chain(reading.ambiguities().map(Trigger::Framing)).collect()
}

/// Returns the unusual bytes of heads, raw and percent-encoded.
fn byte_sorts(heads: &[u8]) -> impl Iterator<Item = Trigger> + '_ {
    let sort = |(at, byte): (usize, &u8)| match byte {
        b'%' => escaped(heads.get(at + 1..at + 3)),
        other => byte_sort(*other),
    };
    heads.iter().enumerate().filter_map(sort).map(Trigger::Byte)
}

/// Returns whether a request has no Host, several, or an invalid one (RFC 9112 section 3.2).
fn has_bad_host(sent: &[u8], reading: &FramingReading) -> bool {
    let head = &sent[..reading.head.min(sent.len())];
    reading.hosts != 1 || field_values(head, b"host").any(|host| !is_host(host))
}

/// Returns whether this is a host with an optional port (RFC 9110 section 7.2).
fn is_host(host: &[u8]) -> bool {
    let port = host.iter().rposition(|byte| *byte == b':').filter(|_| !host.ends_with(b"]"));
    let (name, port) = host.split_at(port.unwrap_or(host.len()));
    let in_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~%!$&'()*+,;=[]:".contains(byte);
    name.iter().all(in_name) && port.iter().skip(1).all(u8::is_ascii_digit)
}

fn byte_sort(byte: u8) -> Option<ByteSort> {
    match byte {
        0 => Some(ByteSort::Nul),
        b'\t' | b'\r' | b'\n' => None,
        1..=31 | 127 => Some(ByteSort::Control),
        128.. => Some(ByteSort::High),
        _ => None,
    }
}

/// Returns the kind of a percent-encoded byte.
fn escaped(digits: Option<&[u8]>) -> Option<ByteSort> {
    let text = digits.and_then(|digits| std::str::from_utf8(digits).ok());
    match text.and_then(|text| u8::from_str_radix(text, 16).ok()) {
        Some(b'\t' | b'\r' | b'\n') => Some(ByteSort::Control),
        Some(byte) => byte_sort(byte),
        None => Some(ByteSort::BadEscape),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue;
    use crate::judge::Judgement;
    use crate::result::{Health, ServerDuringCase};
    use sample::{Death, Ending, Process, ServerState};
    use units::Nanos;

    fn row(id: &str, kind: Option<FailureKind>, name: &str, sent: &[u8]) -> CaseResult {
        let all = catalogue::cases().unwrap();
        let case = all.into_iter().find(|case| case.id == id).unwrap();
        let outcome = TestOutcome::Fail;
        let exchange = ExchangeResult {
            name: name.to_owned(),
            judgement: Judgement { outcome, kind, ..Judgement::default() },
            tries: 3,
            failed: 3,
            sent: sent.to_vec(),
            received: Vec::new(),
            took: Nanos::ZERO,
            pauses: Vec::new(),
        };
        CaseResult { outcome, exchanges: vec![exchange], ..CaseResult::new(&case) }
    }

    fn merged(mut cases: Vec<CaseResult>) -> String {
        merge(&mut cases, &[]);
        let one = |case: &CaseResult| {
            let root = case.same_as.as_ref().map_or(String::new(), |root| format!("={root}"));
            format!("{}{root}", case.case.id)
        };
        cases.iter().map(one).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn findings_with_one_cause_are_one() {
        let nul = |id: &str, bytes: &[u8]| row(id, Some(FailureKind::Status(500)), "x", bytes);
        let encoded = b"GET /?%00 HTTP/1.1\r\nHost: h\r\n\r\n";
        let raw = b"GET / HTTP/1.1\r\nHost: h\r\nA: \0\r\n\r\n";
        let other = b"GET /?%ff HTTP/1.1\r\nHost: h\r\n\r\n";
        let both = b"GET /?%ff%00 HTTP/1.1\r\nHost: h\r\n\r\n";
        assert_eq!(
            merged(vec![
                nul("F-01", encoded),
                nul("F-02", other),
                nul("F-05", both),
                nul("S-11", raw)
            ]),
            "F-01 F-02 F-05=F-01 S-11=F-01"
        );
        // one that may have several causes is explained by a later one with a single cause
        assert_eq!(merged(vec![nul("F-01", both), nul("F-02", encoded)]), "F-01=F-02 F-02");
        // a bad status line, regardless of the cause
        let no_http = |id: &str, sent: &[u8], why: &str| {
            let mut row = row(id, Some(FailureKind::NoHttp), "x", sent);
            row.exchanges[0].judgement.cause = Some(Cause::NoHttp(why.to_owned()));
            row
        };
        let version = "its head is invalid: invalid HTTP version";
        assert_eq!(
            merged(vec![
                no_http("F-07", b"GET / HTTP/11.1\r\n\r\n", version),
                no_http("F-08", b"GET /?%00 HTTP/2.1\r\n\r\n", version),
                no_http("K-01", b"GET / HTTP/9.9\r\n\r\n", "it does not begin with HTTP/"),
            ]),
            "F-07 F-08=F-07 K-01"
        );
        let late = |id: &str, kind| {
            let mut row = row(id, Some(kind), "x", encoded);
            row.exchanges[0].judgement.cause = Some(Cause::NoContinue);
            row
        };
        let (waits, prompt) =
            (late("F-15", FailureKind::NoContinue), late("S-50", FailureKind::Answer));
        assert_eq!(merged(vec![waits, prompt]), "F-15=S-50 S-50");
        let hang = row("F-02", Some(FailureKind::Hang), "x", encoded);
        assert_eq!(merged(vec![nul("F-01", encoded), hang]), "F-01 F-02");
        let because = |id: &str, kind, cause: Cause| {
            let mut row = row(id, kind, "x", b"DELETE /");
            row.exchanges[0].judgement.cause = Some(cause);
            row
        };
        let lacks = |name: &str| Cause::Missing(name.to_owned());
        let refused = Some(FailureKind::Refused);
        let lint = || because("F-13", None, lacks("allow"));
        assert_eq!(
            merged(vec![lint(), because("S-53", refused, lacks("allow"))]),
            "F-13 S-53=F-13"
        );
        assert_eq!(merged(vec![lint(), because("S-53", refused, lacks("date"))]), "F-13 S-53");
    }

    #[test]
    fn a_finding_with_more_failures_explains_one_with_fewer() {
        let lacks = |id: &str, names: &[Option<&str>]| {
            let mut all = row(id, None, "x", b"GET /");
            let one = all.exchanges[0].clone();
            all.exchanges = names.iter().map(|_| one.clone()).collect();
            for (exchange, name) in all.exchanges.iter_mut().zip(names) {
                exchange.judgement.cause = name.map(|name| Cause::Missing(name.to_owned()));
            }
            all
        };
        let (date, both) = (Some("date"), [Some("date"), None]);
        // the cause of one failure of F-13 is unknown
        let pair = |fewer: &[Option<&str>]| vec![lacks("F-13", &both), lacks("S-53", fewer)];
        assert_eq!(merged(pair(&[date])), "F-13 S-53=F-13");
        assert_eq!(merged(pair(&[Some("allow")])), "F-13 S-53");
        assert_eq!(merged(vec![lacks("F-13", &[None, None]), lacks("S-53", &[date])]), "F-13 S-53");
    }

    #[test]
    fn an_echoed_version_is_one_cause() {
        let echoed = |id: &str, sent: &[u8]| {
            let mut row = row(id, Some(FailureKind::NoHttp), "x", sent);
            row.exchanges[0].judgement.cause = Some(Cause::EchoedVersion);
            row
        };
        let rows = vec![
            echoed("F-04", b"x y zzz\r\n\r\n"),
            echoed("F-08", b"GET / HTTP/9.9\r\nHost: h\r\n\r\n"),
            echoed("K-01", b"GET / HTTP/1.1 x\r\nHost: h\r\n\r\n"),
        ];
        assert_eq!(merged(rows), "F-04 F-08=F-04 K-01=F-04");
    }

    #[test]
    fn chance_silence_and_content_are_causes() {
        let because = |id: &str, kind, cause: Cause| {
            let mut row = row(id, kind, "x", b"DELETE /");
            row.exchanges[0].judgement.cause = Some(cause);
            row
        };
        // regardless of their texts
        let lost = |id: &str| because(id, Some(FailureKind::Lost), Cause::Chance);
        assert_eq!(merged(vec![lost("F-01"), lost("F-16")]), "F-01 F-16=F-01");
        let silent = |id: &str, sent: &[u8]| row(id, Some(FailureKind::Hang), "x", sent);
        assert_eq!(
            merged(vec![
                silent("F-01", b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"),
                silent("S-07", b"GET / HTTP/1.1\r\nHost: h\r\nX : 1\r\n\r\n"),
                silent("S-23", b"GET / HTTQ/1.1\r\nHost: h\r\n\r\n"),
                // an unknown coding may be the cause as well
                silent(
                    "B-01",
                    b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: \x0bchunked\r\n\r\n"
                ),
                silent(
                    "S-38",
                    b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nz\r\n"
                ),
            ]),
            "F-01 S-07 S-23=S-07 B-01=S-07 S-38"
        );
        let only = |id: &str| because(id, Some(FailureKind::Hang), Cause::OnlyContinue);
        assert_eq!(merged(vec![only("B-14"), only("F-08")]), "B-14 F-08=B-14");
        let content = |id: &str| because(id, Some(FailureKind::Answer), Cause::HeadContent);
        assert_eq!(merged(vec![content("S-43"), content("S-46")]), "S-43 S-46=S-43");
    }

    #[test]
    fn long_heads_pipelines_and_chunks_are_causes() {
        let nul = |id: &str, bytes: &[u8]| row(id, Some(FailureKind::Status(500)), "x", bytes);
        // a long head, regardless of its content
        let long = |part: &str| format!("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", part.repeat(3_000));
        let (plain, odd) = (long("a/"), long("%ff"));
        let pair = |odd: &str| vec![nul("F-02", odd.as_bytes()), nul("L-06", plain.as_bytes())];
        assert_eq!(merged(pair(&odd)), "F-02=L-06 L-06");
        assert_eq!(merged(pair("GET /%ff HTTP/1.1\r\nHost: h\r\n\r\n")), "F-02 L-06");
        // any second request, but not of different failures
        let two = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n".repeat(2);
        let failed = |id: &str| row(id, Some(FailureKind::Status(500)), "x", &two);
        let foreign = row("M-02", Some(FailureKind::Foreign), "x", &two);
        assert_eq!(merged(vec![failed("L-13"), failed("S-43"), foreign]), "L-13 S-43=L-13 M-02");
        assert_eq!(merged(vec![failed("L-13"), nul("S-43", &two[..two.len() / 2])]), "L-13 S-43");
        // one crash on different parts of chunked content
        let crash = |id: &str, chunks: &str, number: u8| {
            let head = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
            let mut row =
                row(id, Some(FailureKind::Lost), "x", (head.to_owned() + chunks).as_bytes());
            row.exchanges[0].judgement.outcome = TestOutcome::Crashed;
            let how = Ending::Signal { number, core: false };
            let process = Process { pid: 8, started: 0, name: "httpd".into() };
            let deaths = vec![Death { process, whole: true, how }];
            let (before, after) = (ServerState::default(), ServerState::default());
            row.server = Some(ServerDuringCase { before, after, deaths });
            row
        };
        let (size, trailer) = ("5x\r\nhello\r\n0\r\n\r\n", "1\r\nx\r\n0\r\nA: b\r\n\r\n");
        assert_eq!(
            merged(vec![crash("B-04", size, 6), crash("S-40", trailer, 6)]),
            "B-04 S-40=B-04"
        );
        assert_eq!(merged(vec![crash("B-04", size, 6), crash("S-40", trailer, 11)]), "B-04 S-40");
    }

    #[test]
    fn hosts_and_trailers_are_causes() {
        let failed = |id: &str, host: &str| {
            let sent = format!("GET / HTTP/1.1\r\n{host}\r\n");
            row(id, Some(FailureKind::Status(500)), "x", sent.as_bytes())
        };
        let odd = [("S-05", ""), ("S-04", "Host: a b\r\n"), ("F-08", "Host: h:x\r\n")];
        let odd = odd.map(|(id, host)| failed(id, host)).to_vec();
        assert_eq!(merged(odd), "S-05 S-04=S-05 F-08=S-05");
        assert_eq!(
            merged(vec![failed("S-05", ""), failed("S-04", "Host: [::1]:80\r\n")]),
            "S-05 S-04"
        );
        let parsed = |id: &str, trailers: &str| {
            let head = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
            let sent = format!("{head}1\r\nx\r\n0\r\n{trailers}\r\n");
            row(id, Some(FailureKind::ContentParsed), "x", sent.as_bytes())
        };
        let both = vec![parsed("B-11", "no colon\r\nA: b\r\n"), parsed("L-11", "A: b\r\n")];
        assert_eq!(merged(both), "B-11 L-11=B-11");
        let failed = |id: &str, trailers: &str| {
            let mut row = parsed(id, trailers);
            row.exchanges[0].judgement.kind = Some(FailureKind::Status(500));
            row
        };
        let both = vec![failed("B-05", "Host: i\r\n"), failed("S-40", "A: b\r\n")];
        assert_eq!(merged(both), "B-05=S-40 S-40");
    }

    #[test]
    fn chunked_content_that_is_never_read_is_one_cause() {
        let parsed = |id: &str, method: &str, fields: &str, content: &str| {
            let sent = format!("{method} / HTTP/1.1\r\nHost: h\r\n{fields}\r\n\r\n{content}");
            row(id, Some(FailureKind::ContentParsed), "x", sent.as_bytes())
        };
        let (field, chunks) = ("Transfer-Encoding: chunked", "1\r\nx\r\n0\r\n\r\n");
        let unusual = || {
            vec![
                parsed("B-01", "POST", "Transfer-Encoding: xchunked", chunks),
                parsed("B-02", "POST", "Transfer-Encoding: CHUNKED", chunks),
                parsed("B-03", "POST", field, "+1\r\nx\r\n0\r\n\r\n"),
                parsed("B-07", "GET", field, chunks),
                parsed("B-09", "GET", "Content-Length: 1", "x"),
            ]
        };
        let mut all = unusual();
        all.push(parsed("B-14", "POST", field, chunks));
        assert_eq!(merged(all), "B-01=B-14 B-02=B-14 B-03=B-14 B-07=B-14 B-09 B-14");
        // a server that reads it in its usual form
        assert_eq!(merged(unusual()), "B-01 B-02 B-03 B-07 B-09");
        // a server that does not consume the whole head refuses the next request
        let refused =
            |id: &str, sent: &str| row(id, Some(FailureKind::NextRefused), "x", sent.as_bytes());
        let codings = "Transfer-Encoding: chunked\r\n , identity";
        let folded = format!("POST / HTTP/1.1\r\nHost: h\r\n{codings}\r\n\r\n0\r\n\r\n");
        let fold = "GET / HTTP/1.1\r\nHost: h\r\nA: b\r\n c\r\n\r\n";
        let both = vec![refused("B-01", &folded), refused("S-08", fold)];
        assert_eq!(merged(both), "B-01 S-08=B-01");
    }

    #[test]
    fn chunked_content_that_gets_no_response_is_one_cause() {
        let post = |id: &str, kind, fields: &str, content: &str| {
            let sent = format!("POST / HTTP/1.1\r\nHost: h\r\n{fields}\r\n\r\n{content}");
            row(id, Some(kind), "x", sent.as_bytes())
        };
        let (field, chunks) = ("Transfer-Encoding: chunked", "1\r\nx\r\n0\r\n\r\n");
        use FailureKind::{Closed, Hang, Refused};
        let unusual = |kind| {
            vec![
                post("B-02", kind, "Transfer-Encoding: CHUNKED", chunks),
                post("S-40", kind, field, "1\r\nx\r\n0\r\nA: b\r\n\r\n"),
                // a server may read other content
                post("B-09", kind, "Content-Length: 1", "x"),
            ]
        };
        for kind in [Closed, Hang, Refused] {
            let mut all = unusual(kind);
            all.push(post("B-14", kind, field, chunks));
            assert_eq!(merged(all), "B-02=B-14 S-40=B-14 B-09 B-14", "{kind}");
            // a server that reads the usual form, or fails in another way on it
            assert_eq!(merged(unusual(kind)), "B-02 S-40 B-09", "{kind}");
            let mut all = unusual(kind);
            all.push(post("B-14", FailureKind::Status(500), field, chunks));
            assert_eq!(merged(all), "B-02 S-40 B-09 B-14", "{kind}");
        }
    }

    #[test]
    fn pipelined_requests_without_a_response_are_one_cause() {
        let get = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
        let silent =
            |id: &str, sent: String| row(id, Some(FailureKind::NextHangs), "x", sent.as_bytes());
        let content = "GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx";
        assert_eq!(
            merged(vec![
                silent("K-03", get.repeat(2)),
                silent("S-43", get.repeat(3)),
                // the content may be the cause
                silent("S-42", content.to_owned() + get),
            ]),
            "K-03 S-43=K-03 S-42"
        );
    }

    #[test]
    fn errors_on_heads_chunks_and_no_content_are_one_each() {
        let failed =
            |id: &str, sent: &str| row(id, Some(FailureKind::Status(500)), "x", sent.as_bytes());
        let post = "POST / HTTP/1.1\r\nHost: h\r\n";
        let chunked = |chunks: &str| format!("{post}Transfer-Encoding: chunked\r\n\r\n{chunks}");
        // the first one is also processed in another exchange
        let mut processed = failed("B-03", &chunked("1_\r\nx\r\n0\r\n\r\n"));
        let answer = row("B-03", Some(FailureKind::Answer), "y", b"x").exchanges;
        processed.exchanges.extend(answer);
        let rows = vec![
            processed,
            failed("B-08", &chunked("1\nx\r\n0\r\n\r\n")),
            failed("B-12", &chunked("1;\r\nx\r\n0\r\n\r\n")),
            // an invalid trailer follows valid chunks
            failed("B-05", &chunked("1\r\nx\r\n0\r\nno colon\r\n\r\n")),
            failed("S-39", &chunked("1;a=b\r\nx\r\n0\r\n\r\n")),
            failed("S-40", &chunked("1\r\nx\r\n0\r\nA: b\r\n\r\n")),
            failed("B-14", &format!("{post}\r\n")),
            failed("B-09", &format!("{post}Content-Length: 00\r\n\r\n")),
            failed("B-10", &format!("{post}Content_Length: 5\r\n\r\n")),
            // these have none either: a method that the page does not implement, another page
            failed("S-53", "DELETE / HTTP/1.1\r\nHost: h\r\n\r\n"),
            failed("S-26", "POST /other HTTP/1.1\r\nHost: h\r\n\r\n"),
            failed("F-07", "G T / HTTP/1.1\r\nHost: h\r\n\r\n"),
            failed("S-25", "G(T / HTTP/1.1\r\nHost: h\r\n\r\n"),
            failed("F-15", "GET / HTTP/1.1\r\nHost: h\r\n\r\nG(T / HTTP/1.1\r\n\r\n"),
        ];
        assert_eq!(
            merged(rows),
            "B-03 B-08=B-03 B-12=B-03 B-05=S-40 S-39 S-40 B-14 B-09=B-14 B-10=B-14 S-53 S-26 F-07 S-25=F-07 F-15=F-07"
        );
    }

    #[test]
    fn hangs_without_content_and_with_credentials_are_merged() {
        let silent = |id: &str, sent: &str| row(id, Some(FailureKind::Hang), "x", sent.as_bytes());
        let post = "POST / HTTP/1.1\r\nHost: h\r\n";
        // the field is valid, and so is the head
        let lookalike = format!("{post}Content_Length: 5\r\n\r\n");
        let invalid = "GET / HTTP/1.1\r\nHost: h\r\nX : 1\r\n\r\n";
        assert_eq!(merged(vec![silent("B-10", &lookalike), silent("F-08", invalid)]), "B-10 F-08");
        let bare = silent("B-14", &format!("{post}\r\n"));
        assert_eq!(merged(vec![silent("B-10", &lookalike), bare]), "B-10=B-14 B-14");
        let login = |id: &str, method: &str, credentials: &str| {
            let head = format!("{method} / HTTP/1.1\r\nHost: h\r\n");
            silent(id, &format!("{head}Authorization: {credentials}\r\n\r\n"))
        };
        let rows = vec![
            login("F-06", "GET", "Basic ===="),
            login("F-08", "GET", "Basic0"),
            login("S-28", "TRACE", "basic loadstone-secret"),
            login("S-44", "GET", "Basic bG9hZHN0b25lOg=="),
            login("S-45", "GET", "Bearer a-b"),
        ];
        assert_eq!(merged(rows), "F-06 F-08=F-06 S-28=F-06 S-44 S-45");
    }

    #[test]
    fn errors_on_cookies_are_one() {
        let failed = |id: &str, cookies: &str| {
            let sent = format!("GET / HTTP/1.1\r\nHost: h\r\nCookie: {cookies}\r\n\r\n");
            row(id, Some(FailureKind::Status(500)), "x", sent.as_bytes())
        };
        let rows = vec![
            failed("J-04", "a"),
            failed("J-05", "a\0b=1"),
            failed("J-06", "a=1; b=\"2\""),
            failed("F-06", "a=1;; b"),
        ];
        assert_eq!(merged(rows), "J-04 J-05=J-04 J-06 F-06=J-04");
    }

    #[test]
    fn a_connection_limit_is_one_finding() {
        let denied = |id: &str, control_denied| {
            let health = Some(Health { control_denied, ..Health::default() });
            let bare = row(id, None, "x", b"");
            CaseResult { outcome: TestOutcome::Denied, exchanges: Vec::new(), health, ..bare }
        };
        let (limit, same) = (denied("C-01", None), denied("C-06", Some(true)));
        // the control run was inconclusive, but idle connections suffice
        assert_eq!(merged(vec![limit.clone(), denied("C-06", None)]), "C-01 C-06=C-01");
        assert_eq!(merged(vec![denied("W-11", None), denied("C-06", None)]), "W-11 C-06");
        assert_eq!(merged(vec![limit.clone(), same.clone()]), "C-01 C-06=C-01");
        assert_eq!(merged(vec![limit, denied("C-06", Some(false))]), "C-01 C-06");
        // a case with other failures remains a separate finding
        let exchanges = row("C-06", Some(FailureKind::Hang), "x", b"GET /").exchanges;
        assert_eq!(
            merged(vec![denied("C-01", None), CaseResult { exchanges, ..same }]),
            "C-01 C-06"
        );
    }

    #[test]
    fn a_framing_fault_is_one_finding_unless_processed() {
        let nul = |id: &str, bytes: &[u8]| row(id, Some(FailureKind::Status(500)), "x", bytes);
        // the same framing fault, but only where it is not processed
        let length = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: x\r\n\r\n";
        let answered = |id: &str| row(id, Some(FailureKind::Answer), "x", length);
        assert_eq!(merged(vec![answered("B-06"), answered("S-34")]), "B-06 S-34");
        let (one, other) = (nul("B-06", length), nul("S-34", length));
        assert_eq!(merged(vec![one, other]), "B-06 S-34=B-06");
    }
}
