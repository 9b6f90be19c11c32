//! Merges findings with one cause: one fault of a server is one finding, however many cases show it.

use crate::case::Family;
use crate::framing::{self, ContentFraming, FramingFault, FramingReading, MessageEnd};
use crate::judge::severity::{self, Risk, Severity};
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
    /// An invalid head; with its faults, if the server refuses other invalid heads.
    InvalidHead(BTreeSet<FramingFault>),
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
    let known = RunFacts {
        limited,
        unread: unread_chunk_failures(cases),
        refuses_heads: cases.iter().any(refuses_invalid_head),
    };
    let faults: Vec<Vec<BTreeSet<ServerFault>>> =
        cases.iter().map(|case| faults_of(case, shrunk, &known)).collect();
    let weights: Vec<Vec<Severity>> = cases
        .iter()
        .zip(&faults)
        .map(|(case, faults)| failure_weights(case, faults.len()))
        .collect();
    let is_vague = |at: usize| faults[at].iter().any(|one| one.len() != 1);
    // mutations start from the requests of other cases, which state what the standard requires
    let mutates = |at: usize| matches!(cases[at].case.family, Some(Family::MutateBodies(_)));
    let is_usual = |at: usize| !mutates(at) && fails_usual_chunks(&cases[at]);
    // these are the special forms in which one server failed
    let is_regression = |at: usize| cases[at].case.group() == REGRESSIONS;
    // a hang on invalid heads is not a fault of their framing fields
    let hangs_on_head = |one: &ServerFault| matches!(one.on, Trigger::InvalidHead(_));
    let is_framing = |at: usize| {
        cases[at].case.risk == Some(Risk::Smuggling)
            && faults[at].iter().flatten().any(hangs_on_head)
    };
    // of equal findings, those about the usual form come first, then those that name their cause,
    // then those with lower ids
    order.sort_by_key(|(severity, at)| {
        let is_special = (is_vague(*at), mutates(*at), is_regression(*at), is_framing(*at));
        (std::cmp::Reverse(*severity), !is_usual(*at), is_special, *at)
    });
    let mut roots: Vec<(String, BTreeSet<ServerFault>)> = Vec::new();
    for (severity, at) in order {
        let own = &faults[at];
        if let Some(root) = root_of(own, &roots) {
            cases[at].same_as = Some(root.to_owned());
            continue;
        }
        // a failure with one possible trigger names its cause, if it gives the finding its severity
        let main = own.iter().zip(&weights[at]).filter(|(_, weight)| **weight >= severity);
        let certain = main.map(|(one, _)| one).filter(|one| one.len() == 1);
        let certain = certain.flatten().cloned().collect();
        roots.push((cases[at].case.id.clone(), certain));
    }
    merge_roots(cases, &faults);
}

/// Returns the severity of each failure of a case; `count`: number of its failures. A failure that is
/// no exchange, such as a denial, has that of the case.
fn failure_weights(case: &CaseResult, count: usize) -> Vec<Severity> {
    let exchanges: Vec<Severity> = case
        .exchanges
        .iter()
        .filter_map(|one| Some(severity::of_exchange(&case.case, one)?.severity))
        .collect();
    let own = severity::of_case(case).map_or(Severity::Low, |rated| rated.severity);
    let most = exchanges.iter().copied().max();
    // the effect on the server may be more severe than each exchange
    let raised = |one: Severity| if Some(one) == most { one.max(own) } else { one };
    let others = std::iter::repeat_n(own, count.saturating_sub(exchanges.len()));
    others.chain(exchanges.iter().copied().map(raised)).collect()
}

/// The group of cases that repeat faults found earlier.
const REGRESSIONS: char = 'K';

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

/// Facts of the whole run that decide which failures have one cause.
struct RunFacts {
    /// A number of idle connections keeps others out.
    limited: bool,
    /// Failures of the usual form of chunked content.
    unread: BTreeSet<FailureKind>,
    /// The server refuses an invalid head.
    refuses_heads: bool,
}

/// Returns whether the server refused an invalid head in this case.
fn refuses_invalid_head(case: &CaseResult) -> bool {
    let refuses = |one: &ExchangeResult| {
        let received = one.received.strip_prefix(b"HTTP/1.");
        received.is_some_and(|rest| rest.get(1..3) == Some(b" 4"))
            && !one.judgement.outcome.is_finding()
            && framing::read(&one.sent).has_invalid_head()
    };
    severity::is_http1(&case.case) && case.exchanges.iter().any(refuses)
}

/// Returns the possible faults of each failed exchange; an empty set if they are unknown.
fn faults_of(case: &CaseResult, shrunk: &[Shrunk], known: &RunFacts) -> Vec<BTreeSet<ServerFault>> {
    let failed = case.exchanges.iter().filter(|one| one.judgement.outcome.is_finding());
    let limit =
        severity::is_connection_limit(case) || known.limited && severity::lacks_control(case);
    let limit = limit.then(|| {
        BTreeSet::from([ServerFault { how: String::new(), on: Trigger::ConnectionLimit }])
    });
    let fault = |one| {
        unread_chunks_fault(one, &known.unread)
            .unwrap_or_else(|| faults(case, one, shrunk, known.refuses_heads))
    };
    limit.into_iter().chain(failed.map(fault)).collect()
}

fn faults(
    case: &CaseResult,
    exchange: &ExchangeResult,
    shrunk: &[Shrunk],
    refuses_heads: bool,
) -> BTreeSet<ServerFault> {
    let judgement = &exchange.judgement;
    if let Some(on) = judgement.cause.as_ref().and_then(trigger_of_cause) {
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
        on.insert(invalid_head(&sent, &reading, refuses_heads));
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
    if is_confused_by_length(judgement.kind) && reading.head.max(unended(&sent, &reading)) > LONG {
        on.insert(Trigger::Long);
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

/// Returns the trigger of a hang on an invalid head: its faults, if the server refuses other invalid
/// heads. A NUL ends the head for some parsers, wherever it is.
fn invalid_head(sent: &[u8], reading: &FramingReading, refuses_heads: bool) -> Trigger {
    let head = if reading.head > 0 { &sent[..reading.head.min(sent.len())] } else { sent };
    match refuses_heads {
        true if head.contains(&0) => Trigger::Byte(ByteSort::Nul),
        true => Trigger::InvalidHead(reading.head_faults().collect()),
        false => Trigger::InvalidHead(BTreeSet::new()),
    }
}

/// Returns the trigger of a known cause, which does not depend on what was sent.
fn trigger_of_cause(cause: &Cause) -> Option<Trigger> {
    match cause {
        Cause::Missing(field) => Some(Trigger::Missing(field.clone())),
        Cause::NoContinue => Some(Trigger::Missing(CONTINUE.to_owned())),
        Cause::Chance => Some(Trigger::Chance),
        Cause::OnlyContinue => Some(Trigger::OnlyContinue),
        Cause::EveryConnection => Some(Trigger::EveryConnection),
        Cause::HeadContent => Some(Trigger::HeadContent),
        Cause::LongRanges => Some(Trigger::LongRanges),
        Cause::EchoedVersion => Some(Trigger::EchoedVersion),
        Cause::NoHttp(_) => None,
    }
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
        on.insert(Trigger::InvalidHead(BTreeSet::new()));
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

/// Returns whether a head that exceeds a buffer may cause this kind of failure.
fn is_confused_by_length(kind: Option<FailureKind>) -> bool {
    use FailureKind::{Closed, ContentParsed, Hang, OutOfStep, Unfinished};
    matches!(kind, Some(Closed | ContentParsed | Hang | OutOfStep | Unfinished))
}

/// Returns the length of a head without an end, or zero.
fn unended(sent: &[u8], reading: &FramingReading) -> usize {
    if reading.head == 0 { sent.len() } else { 0 }
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
        Some(FailureKind::NextHangs | FailureKind::Closed) => lacks_content(sent),
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
mod tests;
