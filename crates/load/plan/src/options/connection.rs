//! Connections: number of calls, announced settings, destination and end.

use super::field::{NO_FIELD, field};
use super::grammar::*;
use super::{KeyValue, PlanField, SETTING, Setting, Shape, least, most, within};
use crate::Plan;
use crate::options::Scalar;
use std::collections::BTreeMap;

/// Maximum window (RFC 9113 section 6.9.1).
const WINDOW_MAX: f64 = 2_147_483_647.0;
const BUFFER_MAX: f64 = 1_073_741_824.0;
/// The limit is the memory that each connection may use.
const HEAD_MAX: f64 = 16_777_216.0;

const ROW: Setting = Setting { heading: "Connections", page: "connections", ..SETTING };

/// Field `connection.traces`, which follows from the paths that name traces and is read before
/// them.
const TRACES: PlanField = PlanField {
    key: "connection.traces",
    shape: Shape::Texts,
    show: |plan, _| ("", KeyValue::Texts(traces(plan))),
    ..NO_FIELD
};

/// Returns the traces that the plan's paths name as files.
fn traces(plan: &Plan) -> BTreeMap<String, String> {
    let path = plan.connection.path.iter().flat_map(|path| path.traces.clone());
    let clients = plan.connection.clients.iter().flat_map(wan::Population::traces);
    path.chain(clients).map(|(name, trace)| (name, trace.gaps())).collect()
}

fn has_streams(plan: &Plan) -> bool {
    plan.request.version.has_streams()
}

/// Proxy, or the word for none.
const PROXY_CHOICE: PlanField = PlanField {
    check: |text, _| if text == NONE { Ok(()) } else { crate::parse_proxy(text).map(drop) },
    read: |plan, _, value, inputs| {
        if value == KeyValue::One(Scalar::text(NONE)) {
            plan.connection.proxy = None;
            return Ok(());
        }
        super::field::off::read(&PROXY, &mut plan.connection.proxy, value, inputs)
    },
    ..field!(off connection.proxy, PROXY)
};
const NONE: &str = "none";

#[rustfmt::skip] // a row is read as a row
pub(super) static SETTINGS: &[Setting] = &[
    Setting { name: "calls", value: "N",
        field: field!(off connection.calls, COUNT), bounds: &[least(1.0, "is 0: a connection has at least one call; give --calls 1 for a connection per call")],
        help: "Calls per connection before it is closed [default: as many as the server allows]", ..ROW },
    Setting { name: "close", means: "1", without: &["calls"], field: field!(off connection.calls, COUNT),
        help: "A new connection for every call; same as --calls 1", ..ROW },
    Setting { name: "pipeline", value: "N", page: "loads", shown: |plan| !has_streams(plan),
        field: field!(at connection.pipeline, COUNT), bounds: &[within(1.0, 10e3, "is {}; give 1 to 10000 requests")],
        help: "Requests in flight on a connection [default: 1]", ..ROW },
    Setting { name: "streams", value: "N", without: &["pipeline"], page: "http2-and-http3", shown: has_streams,
        field: field!(at connection.pipeline as "connection.streams", COUNT),
        help: "HTTP/2 and 3: streams in flight on a connection [default: 1 per user, 100 with --rate]", ..ROW },
    Setting { name: "stream-window", value: "SIZE", page: "http2-and-http3",
        field: field!(at http2.stream_window, SIZE), bounds: &[within(1.0, WINDOW_MAX, "is {} bytes; give 1 to 2147483647")],
        help: "HTTP/2 and 3: flow-control window of a stream, in bytes [default: 1G - 1]", ..ROW },
    // a connection's window begins at 65,535 and can only grow (RFC 9113 section 6.9.2)
    Setting { name: "connection-window", value: "SIZE", page: "http2-and-http3",
        field: field!(at http2.connection_window, SIZE), bounds: &[within(65_535.0, WINDOW_MAX, "is {} bytes; give 65535 to 2147483647")],
        help: "HTTP/2 and 3: flow-control window of a connection, in bytes [default: 1G - 1]", ..ROW },
    Setting { name: "header-table", value: "SIZE", page: "http2-and-http3", field: field!(at http2.header_table, SIZE),
        help: "HTTP/2: size of the table the server may use to compress fields, in bytes [default: 4K]", ..ROW },
    Setting { name: "encoder-table", value: "SIZE", page: "http2-and-http3", field: field!(at http2.encoder_table, SIZE),
        help: "HTTP/2: size of the table the client uses to compress fields, in bytes [default: 4K]", ..ROW },
    Setting { name: "frame-max", value: "SIZE", page: "http2-and-http3",
        field: field!(at http2.frame_max, SIZE), bounds: &[within(16_384.0, 16_777_215.0, "is {} bytes; give 16384 to 16777215 (RFC 9113 section 6.5.2)")],
        help: "HTTP/2: largest frame the server may send, in bytes [default: 16K]", ..ROW },
    Setting { name: "group", value: "N", page: "loads",
        field: field!(off connection.group, COUNT), bounds: &[within(1.0, 10e3, "is {}; give 1 to 10000 requests")],
        help: "Send N requests together, and the next N when all responses are complete", ..ROW },
    Setting { field: field!(off connection.depth, COUNT), bounds: &[least(1.0, "is 0: no call could be sent; give 1 or more")],
        help: "Calls of a group outstanding on one connection; the rest use other connections of \
            the user", page: "plans", ..ROW },
    Setting { field: field!(at connection.per_user, COUNT), bounds: &[least(1.0, "is 0: no call could be sent; give 1 or more")],
        help: "Connections that a user or session may have", page: "plans", ..ROW },
    Setting { field: field!(at connection.tries, COUNT_16), bounds: &[least(1.0, "is 0: a call \
        needs one attempt; give 1 or more")],
        help: "Maximum number of connections tried for a call, if they end before its response", page: "plans", ..ROW },
    Setting { field: field!(at connection.resend, SWITCH),
        help: "Resend a call whose request crossed with the close of an idle connection", page: "plans", ..ROW },
    Setting { field: field!(at connection.needs_length, SWITCH), shown: |plan| plan.connection.needs_length,
        help: "Treat a response without a length, which ends with its connection, as incomplete", page: "plans", ..ROW },
    Setting { name: "head-max", value: "SIZE", page: "requests", shown: |plan| plan.connection.head_max != crate::ConnectionPlan::default().head_max,
        field: field!(at connection.head_max, SIZE), bounds: &[within(1024.0, HEAD_MAX, "is {} bytes; give a size from 1K to 16M")],
        help: "Largest head of a response (uncompressed in HTTP/2 and 3); a longer one fails the call [default: 64K]", ..ROW },
    Setting { name: "unix", value: "PATH", is_file: true, field: field!(off connection.unix, PATH),
        help: "Connect to a Unix socket; the URL gives the Host and the path", ..ROW },
    Setting { name: "resolve", value: "HOST:PORT:ADDRESS",
        field: field!(add connection.resolve, RESOLVE),
        help: "Use ADDRESS for HOST:PORT; may be given several times", ..ROW },
    Setting { name: "bind", value: "LIST", field: field!(at connection.bind, ADDRESS_LIST),
        help: "Local addresses to connect from, in turn: 127.0.0.2-127.0.0.9,127.0.1.1", ..ROW },
    Setting { name: "path", value: "PATH", page: "paths", field: field!(off connection.path, LINK),
        help: "Reach a server of this host through an emulated path: 3g, 'rtt=80ms, loss=1%' (needs root)", ..ROW },
    Setting { name: "clients", value: "SHARES", page: "paths", field: field!(off connection.clients, CLIENTS),
        help: "Each user on a separate emulated path: 'dsl:60%, 3g:30%, satellite:10%' (needs root)", ..ROW },
    // more than a machine has memory for
    Setting { name: "idle", value: "N", page: "paths",
        field: field!(off connection.idle, COUNT), bounds: &[within(1.0, 10e6, "is {}; give 1 to 10000000 connections")],
        help: "Hold N more connections open while the load runs, and count those that end", ..ROW },
    Setting { name: "migrate", value: "TIME|Ncalls", page: "http2-and-http3", shown: |plan| plan.connection.migrate.is_some(),
        field: field!(off connection.migrate, MIGRATION),
        help: "HTTP/3: change each connection's local port at this interval: 5s, or 100calls", ..ROW },
    Setting { field: TRACES, help: "The traces of emulated paths by name: the spans between their lines, in milliseconds",
        page: "paths", shown: |plan| !traces(plan).is_empty(), ..ROW },
    Setting { name: "proxy", value: "URL|none", field: PROXY_CHOICE,
        help: "Use a proxy: http://[name:password@]host:port; none ignores the variables http_proxy, https_proxy, all_proxy and no_proxy",
        more: "Without this option the proxy of the environment is used, by curl's rules: http_proxy (lower case only) for http, https_proxy or HTTPS_PROXY for https, all_proxy or ALL_PROXY for both; no_proxy or NO_PROXY lists hosts, suffixes and networks that are reached directly. Unlike curl, this machine (localhost, 127.0.0.0/8, ::1) is always reached directly. A plan file with the key proxy ignores them as well.", ..ROW },
    Setting { name: "ipv4", short: Some('4'), means: "4", without: &["ipv6"],
        field: field!(at connection.prefer as "connection.family", FAMILY), help: "Use IPv4 only", ..ROW },
    Setting { name: "ipv6", short: Some('6'), means: "6",
        field: field!(at connection.prefer as "connection.family", FAMILY), help: "Use IPv6 only", ..ROW },
    Setting { field: field!(at connection.addresses, ADDRESS_ORDER), page: "plans",
        help: "Addresses of a host to connect to: all in turn, or the first that answers", ..ROW },
    Setting { name: "send-buffer", value: "SIZE",
        field: field!(off connection.send_buffer, SIZE), bounds: &[within(1.0, BUFFER_MAX, "is {} bytes; give a size from 1 to 1G")],
        help: "Size of the socket's send buffer [default: the kernel's]", ..ROW },
    Setting { name: "recv-buffer", value: "SIZE",
        field: field!(off connection.recv_buffer, SIZE), bounds: &[within(1.0, BUFFER_MAX, "is {} bytes; give a size from 1 to 1G")],
        help: "Size of the socket's receive buffer [default: the kernel's]", ..ROW },
    Setting { name: "no-nodelay", means: "false", field: field!(at connection.nodelay, SWITCH),
        help: "Keep Nagle's algorithm on (do not set TCP_NODELAY)", ..ROW },
    Setting { name: "reset", field: field!(at connection.reset_on_close as "connection.reset", SWITCH),
        help: "Close connections with RST, so that no port stays in TIME_WAIT", ..ROW },
    // waiting longer than an hour measures nothing
    Setting { name: "reconnect-pause", value: "TIME", page: "loads",
        field: field!(at connection.reconnect_pause, DURATION), bounds: &[most(3_600.0, "is above 1h; give a duration from 0 to 1h")],
        help: "Shortest pause of a user after a connection could not be opened [default: 10ms]", ..ROW },
];
