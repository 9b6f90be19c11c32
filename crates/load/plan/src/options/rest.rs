//! Expectations, time limits, TLS, measurement, and resources of this machine.

use super::field::{KeyValue, NO_FIELD, PlanField, content, field, off};
use super::grammar::*;
use super::{Bound, Inputs, SETTING, Setting, least, most, within};
use crate::names::name_of;
use crate::options::Scalar;
use crate::verify::{parse_manifest, parse_verify};
use crate::{GrpcVariant, Verify};
use units::{ParseError, quoted};

const EXPECT: Setting = Setting {
    heading: "Expectations (what does not match is a failed call)",
    page: "requests",
    ..SETTING
};

#[rustfmt::skip] // a row is read as a row
pub(super) static EXPECTATIONS: &[Setting] = &[
    Setting { name: "expect-status", value: "LIST", common: true, field: field!(at expect.status, STATUSES),
        help: "Status codes that count as success: 200,204,300-399 [default: below 400]", ..EXPECT },
    Setting { name: "expect-length", value: "SIZE", field: field!(off expect.length, LENGTH),
        help: "Expected length of the body, after decompression", ..EXPECT },
    Setting { name: "expect-body", value: "RULE", field: field!(off expect.body, BODY_RULE),
        help: "Text that the body must contain; or exact:TEXT, regex:RE, sha256:HEX", ..EXPECT },
    Setting { name: "verify", value: "first|set:NAME[@SEED]|FILE", omitted: Some("first"), field: VERIFIED,
        help: "Verify length and hash of every body: against the first response of its URL, against set:NAME (what site --files serves), or against a FILE written by xxh128sum", ..EXPECT },
];

/// The option names a manifest file; the plan contains its lines.
const VERIFIED: PlanField = PlanField {
    typed: "_typed",
    check: |_, _| Ok(()),
    read: |plan, ending, value, inputs| {
        let value = match (ending, value) {
            ("_typed", KeyValue::One(named)) => verify_from_option(named.typed(), inputs)?,
            (_, value) => return off::read(&VERIFY, &mut plan.expect.verify, value, inputs),
        };
        plan.expect.verify = value;
        Ok(())
    },
    ..field!(off expect.verify, VERIFY)
};

fn verify_from_option(
    named: Option<String>,
    inputs: Inputs<'_>,
) -> Result<Option<Verify>, ParseError> {
    let Some(named) = named else { return Ok(None) };
    if named == "first" || named.starts_with("set:") {
        return parse_verify(&named).map(Some);
    }
    let bytes = inputs.files.read(&named).map_err(ParseError)?;
    let text = String::from_utf8(bytes)
        .map_err(|_| ParseError(format!("{} is not UTF-8 text", quoted(&named))))?;
    parse_manifest(&text).map(|lines| Some(Verify::Manifest(lines)))
}

const GRPC_CALL: Setting = Setting { heading: "gRPC", page: "grpc", ..SETTING };

#[rustfmt::skip] // a row is read as a row
pub(super) static GRPC: &[Setting] = &[
    Setting { name: "message", value: "JSON|@FILE", without: &["body", "body-file"], field: MESSAGE,
        help: "The request as JSON; a list of messages for a client stream [default: an empty message]",
        more: "{id} is the number of the call, from 0. {{NAME.column}} inserts a value of --feeder, and {{user.number}} the number of the user; the calls are then those of a journey with one step.", ..GRPC_CALL },
    Setting { name: "feeder", value: "NAME=FILE,…", needs: Some("message"),
        help: "Files with values for --message, CSV or JSON lines: {{NAME.column}}; each call takes the next row", ..GRPC_CALL },
    Setting { name: "messages", value: "N", needs: Some("message"), field: field!(off grpc.messages, COUNT),
        bounds: &[within(1.0, 1e5, "takes a number of messages from 1 to 100000")],
        help: "Messages of a client stream: those of --message in turn [default: each once]", ..GRPC_CALL },
    Setting { name: "message-rate", value: "RATE", needs: Some("message"), field: field!(off grpc.message_rate, PER_SECOND),
        bounds: &[within(1e-3, 1e6, "takes a rate of messages from 0.001/s to 1000000/s")],
        help: "Messages per second of each client stream, on an absolute schedule from the instant the call is due [default: back to back]", ..GRPC_CALL },
    Setting { name: "correlate", value: "order|field:NAME", needs: Some("message-rate"), field: CORRELATE,
        help: "Which message of a bidirectional stream an answer belongs to: the next one, or the one with the same value in a field [default: order]", ..GRPC_CALL },
    Setting { name: "response-messages", value: "N", field: field!(off grpc.response_messages, COUNT),
        bounds: &[within(1.0, 4_294_967_295.0, "takes a number of messages from 1 to 4294967295")],
        help: "End the server's stream after N messages; the call succeeds [default: read to its end]", ..GRPC_CALL },
    Setting { name: "response-message-max", value: "SIZE", field: field!(off grpc.response_message_max, SIZE),
        help: "Maximum size of a response message; a longer one ends the call with RESOURCE_EXHAUSTED [default: none]", ..GRPC_CALL },
    Setting { field: field!(at grpc.answers, SWITCH), page: "plans",
        help: "Message k of a response answers message k of its request: set for bidirectional methods", ..GRPC_CALL },
    Setting { name: "proto", value: "FILE", without: &["protoset"],
        help: "The .proto file that describes the method [default: server reflection]", ..GRPC_CALL },
    Setting { name: "proto-path", value: "LIST", needs: Some("proto"),
        help: "Folders in which imports of --proto are found, separated by commas [default: its own]", ..GRPC_CALL },
    Setting { name: "protoset", value: "FILE", field: content!(grpc.descriptors, typed: "_file", Nothing),
        help: "A compiled FileDescriptorSet that describes the method, with its imports", ..GRPC_CALL },
    Setting { name: "grpc-status", value: "LIST", field: field!(at grpc.status, GRPC_STATUSES),
        help: "Status codes of gRPC that count as success: OK,NOT_FOUND or 0,5 [default: OK]", ..GRPC_CALL },
    Setting { name: "grpc-protocol", value: "NAME", field: VARIANT,
        help: "Protocol of the calls: grpc, grpc-web, grpc-web-text or connect [default: grpc]",
        more: "gRPC-Web and Connect use HTTP/1.1, HTTP/2 or HTTP/3. Without --http, TLS negotiates the version and plain text uses HTTP/1.1.", ..GRPC_CALL },
    Setting { name: "grpc-compress", value: "CODING", field: COMPRESS,
        help: "Compress messages, and accept compressed ones: gzip [default: none]", ..GRPC_CALL },
    Setting { name: "grpc-keepalive", value: "TIME", field: field!(off grpc.keepalive, DURATION),
        bounds: &[within(1.0, 86_400.0, "takes a time from 1s to 1d")],
        help: "Ping a connection with calls in flight after this time without data from the server [default: never]",
        more: "gRPC servers close connections that ping too often (GOAWAY ENHANCE_YOUR_CALM, too_many_pings). While the server sends no data, two pings are sent at this interval, and later ones more than 5 minutes apart. A connection is closed if a ping is not acknowledged within 20s.", ..GRPC_CALL },
    Setting { name: "grpc-backend", value: "FIELD", field: field!(off grpc.backend, TEXT),
        help: "Response field that names the back end, such as x-served-by: count calls per value", ..GRPC_CALL },
    Setting { name: "grpc-timeout", value: "TIME", field: DEADLINE,
        help: "Deadline sent to the server (grpc-timeout); --timeout is the client's", ..GRPC_CALL },
];

/// A message as text, or `@` and the name of its file.
const MESSAGE: PlanField = PlanField {
    typed: "_typed",
    read: |plan, ending, value, inputs| {
        let slot = &mut plan.grpc.message;
        match (ending, value) {
            ("_typed", KeyValue::One(value)) => {
                let Some(text) = value.typed() else { return Ok(()) };
                *slot = Some(match text.strip_prefix('@') {
                    Some(path) => inputs.files.read(path).map_err(ParseError)?,
                    None => text.into_bytes(),
                });
                Ok(())
            }
            (_, value) => super::field::read_content(slot, ending, value, inputs),
        }
    },
    ..content!(grpc.message, typed: "", Values)
};

/// By default answers have the order of their messages, which is written `order`.
const CORRELATE: PlanField = PlanField {
    check: |text, inputs| match text {
        "order" => Ok(()),
        _ => (field!(off grpc.correlate, ANSWER_FIELD).check)(text, inputs),
    },
    read: |plan, ending, value, inputs| {
        if let KeyValue::One(given) = &value
            && given.typed().as_deref() == Some("order")
        {
            plan.grpc.correlate = None;
            return Ok(());
        }
        (field!(off grpc.correlate, ANSWER_FIELD).read)(plan, ending, value, inputs)
    },
    ..field!(off grpc.correlate, ANSWER_FIELD)
};

/// The variant also determines fields of the request.
const VARIANT: PlanField = PlanField {
    key: "grpc.protocol",
    check: |text, _| parse_variant(text).map(drop),
    read: |plan, _, value, _| {
        let KeyValue::One(value) = value else { return Ok(()) };
        let Some(text) = value.typed() else { return Ok(()) };
        plan.carry_grpc(parse_variant(&text)?);
        Ok(())
    },
    show: |plan, _| {
        ("", KeyValue::One(Scalar::text(name_of(&GrpcVariant::ALL, &plan.grpc.variant))))
    },
    ..NO_FIELD
};

fn parse_variant(text: &str) -> Result<GrpcVariant, ParseError> {
    let found = GrpcVariant::ALL.iter().find(|(name, _)| *name == text);
    found.map(|(_, variant)| *variant).ok_or_else(|| {
        ParseError(format!(
            "{} is not a protocol of gRPC; write grpc, grpc-web, grpc-web-text or connect",
            quoted(text)
        ))
    })
}

/// The coding also determines fields of the request.
const COMPRESS: PlanField = PlanField {
    key: "grpc.compress",
    check: |text, _| check_coding(text),
    read: |plan, _, value, _| {
        let KeyValue::One(value) = value else { return Ok(()) };
        let Some(text) = value.typed() else { return Ok(()) };
        check_coding(&text)?;
        plan.compress_grpc();
        Ok(())
    },
    show: |plan, _| {
        let coding = if plan.grpc.compress { Scalar::text("gzip") } else { Scalar::Off };
        ("", KeyValue::One(coding))
    },
    ..NO_FIELD
};

fn check_coding(text: &str) -> Result<(), ParseError> {
    match text {
        "gzip" => Ok(()),
        _ => Err(ParseError(format!("{} is not a known coding; write gzip", quoted(text)))),
    }
}

/// A deadline is a field of the request, without a key in the plan.
const DEADLINE: PlanField = PlanField {
    check: |text, _| units::parse_duration(text).map(drop),
    read: |plan, _, value, _| {
        let KeyValue::One(value) = value else { return Ok(()) };
        let Some(text) = value.typed() else { return Ok(()) };
        let deadline = protocol::grpc::timeout(units::parse_duration(&text)?);
        plan.request.headers.push(("grpc-timeout".to_owned(), deadline));
        Ok(())
    },
    ..NO_FIELD
};

const LIMIT: Setting = Setting {
    heading: "Time limits",
    value: "TIME",
    page: "connections",
    bounds: LIMITS,
    ..SETTING
};
const LIMITS: &[Bound] = &[
    least(1e-9, "is 0: no call could succeed; give 30s or so"),
    most(86_400.0, "is above a day; give 1d at most"),
];

#[rustfmt::skip] // a row is read as a row
pub(super) static TIME_LIMITS: &[Setting] = &[
    Setting { name: "timeout", common: true, field: field!(at timeouts.call, DURATION),
        help: "From the instant a call is due to its outcome [default: 30s]", ..LIMIT },
    Setting { name: "connect-timeout", field: field!(at timeouts.connect, DURATION),
        help: "To open a connection [default: 5s]", ..LIMIT },
    Setting { name: "first-byte-timeout", field: field!(off timeouts.first_byte, DURATION),
        help: "From the request to the first byte of the response [default: none]", ..LIMIT },
    Setting { name: "progress-timeout", field: field!(off timeouts.progress, DURATION),
        help: "Without any progress on a connection that has a call in flight [default: none]", ..LIMIT },
    Setting { field: field!(off timeouts.answer, DURATION), page: "plans",
        help: "Maximum time without progress before the first byte of a response", ..LIMIT },
];

const SECURE: Setting = Setting { heading: "TLS", page: "connections", ..SETTING };

#[rustfmt::skip]
pub(super) static TLS: &[Setting] = &[
    Setting { name: "insecure", common: true, field: field!(at tls.insecure, SWITCH),
        help: "Accept any certificate", ..SECURE },
    Setting { name: "ca", value: "FILE", common: true, field: content!(tls.ca, typed: "_file", Nothing),
        help: "Trust the certificates of this PEM file instead of the system's", ..SECURE },
    Setting { name: "cert", value: "FILE", field: content!(tls.cert, typed: "_file", Nothing),
        help: "Client certificate, PEM", ..SECURE },
    Setting { name: "key", value: "FILE", field: content!(tls.key, typed: "_file", Whole),
        help: "Key of the client certificate, PEM", ..SECURE },
    Setting { name: "tls", value: "VERSION", choices: &["1.2", "1.3"], field: field!(at tls.versions as "tls.version", TLS_VERSION),
        help: "Use only this TLS version", ..SECURE },
    Setting { name: "no-resumption", means: "false", field: field!(at tls.resumption, SWITCH),
        help: "Make a full handshake for every connection", ..SECURE },
    Setting { name: "early-data", field: field!(at tls.early_data, SWITCH), shown: |plan| plan.tls.early_data,
        help: "Send requests with the first flight of a resumed handshake (0-RTT); GET, HEAD and OPTIONS only", ..SECURE },
    Setting { name: "user-sessions", without: &["no-resumption"], field: field!(at tls.user_sessions, SWITCH),
        help: "Each user resumes only its own TLS sessions and starts with a full handshake", ..SECURE },
    Setting { field: field!(at tls.sni, SWITCH), page: "plans", help: "Send the name of the server \
        in the handshake (SNI)", ..SECURE },
    Setting { name: "alpn", value: "LIST", field: field!(at tls.alpn, NAMES),
        help: "ALPN protocols to offer, or none [default: http/1.1]", ..SECURE },
    Setting { name: "server-name", value: "NAME", field: field!(off tls.server_name, TEXT),
        help: "Name for SNI and certificate verification, instead of the URL's host", ..SECURE },
    Setting { name: "groups", value: "LIST", field: field!(at tls.groups, NAMES),
        help: "Key-exchange groups, in order of preference", ..SECURE },
    Setting { name: "ciphers", value: "LIST", field: field!(at tls.ciphers, NAMES),
        help: "Cipher suites, in order of preference", ..SECURE },
];

const MEASURE: Setting = Setting { heading: "Measuring", page: "reading-the-report", ..SETTING };

#[rustfmt::skip]
pub(super) static MEASURING: &[Setting] = &[
    Setting { name: "repeat", value: "N", common: true, heading: "End of the run", page: "measure-a-server",
        field: field!(at measure.repeat, COUNT), bounds: &[within(1.0, 1e3, "takes a number of runs from 1 to 1000")],
        help: "Repeat the whole run N times and report confidence intervals across runs", ..MEASURE },
    Setting { name: "slo", value: "RULES", common: true, page: "in-ci", field: field!(add measure.slo, OBJECTIVES),
        help: "Objectives: 'p99<50ms, failures<0.1%'; exit code 1 if one is missed. They are added to those of the plan", ..MEASURE },
    Setting { name: "percentiles", value: "LIST", omitted: Some(""), field: field!(at measure.quantiles, QUANTILES),
        help: "Show the full table of quantiles, or only =50,90,99.9", ..MEASURE },
    Setting { name: "conforming", value: "BITRATE", field: field!(at measure.conforming_bps as "measure.conforming", BIT_RATE),
        bounds: &[within(f64::MIN_POSITIVE, f64::MAX, "takes a bit rate above zero, such as 320k")],
        help: "Lowest bit rate of a conforming connection [default: 320k]", ..MEASURE },
    Setting { name: "conforming-heads", field: field!(at measure.conforming_counts_heads as "measure.conforming_heads", SWITCH),
        help: "Count header sections as well as bodies in the bit rate of a connection", ..MEASURE },
    Setting { name: "stream", value: "FORM", page: "requests", field: field!(off measure.stream, STREAMING),
        help: "Responses are streams of events: time to the first event, and between events. FORM is sse (Server-Sent Events), lines (a line for each, as in JSON lines), or openai or anthropic (tokens of a language model)", ..MEASURE },
    Setting { name: "fold", value: "PATTERN", page: "requests", field: field!(add measure.folds.patterns as "measure.fold", FOLDS),
        help: "One row and one name for URLs that differ in an id: '/user/{id}'; may be given several times", ..MEASURE },
    Setting { name: "interval", value: "TIME", page: "measure-a-server", field: field!(at measure.interval, DURATION),
        bounds: &[within(0.01, 3_600.0, "takes a time from 10ms to 1h: the length of a row of the time series")],
        help: "Interval of the time series [default: 1s]", ..MEASURE },
    Setting { field: field!(at measure.tcp_info_share, NUMBER), bounds: &[within(0.0, 1.0, "is a share from 0 to 1")],
        help: "Share of closing connections whose TCP_INFO is read", page: "plans", ..MEASURE },
    Setting { name: "doubt-max", value: "SHARE", page: "reading-the-report", field: field!(at measure.doubt_max, SHARE),
        bounds: &[within(0.0, 1.0, "takes a share from 0 % to 100 %, such as 25%")],
        help: "Largest share of the p99 that may be the client's own delay [default: 25%]", ..MEASURE },
];

const DRIVER: Setting = Setting { heading: "This machine", page: "reading-the-report", ..SETTING };

#[rustfmt::skip]
pub(super) static MACHINE: &[Setting] = &[
    Setting { name: "threads", value: "N", field: field!(off driver.threads, COUNT),
        bounds: &[within(1.0, 1_024.0, "is {}; give 1 to 1024, best one per free core")],
        help: "Number of worker threads [default: one per free core]", ..DRIVER },
    Setting { name: "cpus", value: "LIST", field: field!(at driver.cpus, CORES),
        help: "CPUs for the workers: 0,2-3 [default: one is left to a server on this machine]", ..DRIVER },
    Setting { name: "nice", value: "N", field: field!(off driver.nice, PRIORITY),
        bounds: &[within(-20.0, 19.0, "takes a number from -20 (first) to 19 (last)")],
        help: "Scheduling priority, -20 (first) to 19 (last)", ..DRIVER },
    Setting { value: "TIME", field: field!(at driver.spin, DURATION), page: "plans",
        bounds: &[most(1.0, "is above 1s; it bounds the busy wait before a due instant, 100us by default")],
        help: "Longest busy wait before a due instant", ..DRIVER },
    Setting { name: "stack", value: "kernel[:batches]|own[:calls|:batches|:xdp=DEVICE]|auto", page: "paths",
        field: field!(at driver.stack, STACK),
        help: "TCP implementation: the kernel's, or own, in this process over a TUN device, or over DEVICE by AF_XDP (needs root); with :batches by io_uring, plain own only while many packets arrive together [default: auto, the kernel's]", ..DRIVER },
    Setting { name: "sources", value: "PREFIX", page: "paths", field: field!(off driver.sources, SOURCES),
        help: "Source addresses of --stack own; required by own:xdp [default: a part of 198.18.0.0/16]", ..DRIVER },
    Setting { name: "tcp", value: "TRAITS", page: "paths", field: field!(off driver.tcp, TCP_TRAITS),
        help: "Traits of the TCP of --stack own that differ from Linux: ecn, keep-alive=15s, no-sack, no-timestamps, initial-window=4, receive-window=64k, ack-delay=0ms", ..DRIVER },
];
