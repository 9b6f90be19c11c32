//! Runs N calls of the production worker against canned responses: the difference between two N,
//! under callgrind, is the cost of a call in instructions. `cargo xtask perf` does this.
//!
//!     instructions CALLS [keepalive|pipeline16|percall|numbered|timed|list|journey|templates|messages|http2_N|http3_N|post_N|grpc_N]
//!
//! `http2_10` is HTTP/2 with ten streams on each of ten connections; `post_10` and `grpc_10` are
//! POSTs and calls of gRPC with messages of 64 bytes over HTTP/2.

use plan::HttpVersion;
use sim::{
    CannedKind, CannedResponse, CannedSteps, Keep, calls_against, calls_of_kind,
    calls_over_streams, canned_journey, canned_list, canned_messages,
};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let calls = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(10_000);
    let kind = arguments.next().unwrap_or_else(|| "keepalive".into());
    let made = match kind.as_str() {
        "journey" => Some(canned_journey(calls, CannedSteps::Static)),
        "templates" => Some(canned_journey(calls, CannedSteps::Templates)),
        "list" => Some(canned_list(calls)),
        _ => None,
    };
    let mut keep = Keep::default();
    if let Some((mut worker, mut io)) = made {
        engine::drive(&mut worker, &mut io, &mut keep);
        return assert_eq!(keep.total.counts.succeeded, calls);
    }
    if kind == "messages" {
        let (mut worker, mut io) = canned_messages(calls);
        engine::drive(&mut worker, &mut io, &mut keep);
        return assert_eq!(keep.total.messages.counts.received, calls);
    }
    let (pipeline, per_connection) = match kind.as_str() {
        "pipeline16" => (16, None),
        "percall" => (1, Some(1)),
        _ => (1, None),
    };
    let response = match kind.as_str() {
        "numbered" => CannedResponse::Numbered,
        "timed" => CannedResponse::Timed,
        _ => CannedResponse::Plain,
    };
    let streams = |name: &str| kind.strip_prefix(name).and_then(|count| count.parse().ok());
    for (name, kind) in [("post_", CannedKind::Post), ("grpc_", CannedKind::Grpc)] {
        if let Some(count) = streams(name) {
            calls_of_kind(calls, HttpVersion::Http2, (kind, count), &mut keep);
            return assert_eq!(keep.total.counts.succeeded, calls);
        }
    }
    match (streams("http2_"), streams("http3_")) {
        (Some(count), _) => calls_over_streams(calls, HttpVersion::Http2, count, &mut keep),
        (_, Some(count)) => calls_over_streams(calls, HttpVersion::Http3, count, &mut keep),
        _ => calls_against(calls, pipeline, per_connection, response, &mut keep),
    }
    assert_eq!(keep.total.counts.succeeded, calls);
}
