//! Connections: how many calls they carry, what they announce, where they go and how they end.

use super::access::{TRACES, add, at, off};
use super::grammar::*;
use super::{SETTING, Setting};
use crate::{IDLE_MAX, Plan};
use units::Nanos;

const DEPTH_MAX: u32 = 10_000;
const BUFFER_MAX: u32 = 1 << 30;
/// Who waits longer than an hour measures nothing.
const RECONNECT_PAUSE_MAX: Nanos = Nanos::from_secs(3_600);
/// RFC 9113 sections 6.9.1 and 6.9.2: a connection begins with the smaller one, and can only grow.
const WINDOW_MAX: u32 = (1 << 31) - 1;
const CONNECTION_WINDOW_MIN: u32 = 65_535;
/// Section 4.2.
const FRAME_MIN: u32 = 1 << 14;
const FRAME_MAX: u32 = (1 << 24) - 1;

const ROW: Setting =
    Setting { heading: "Connections", page: "requests-and-connections", ..SETTING };

fn has_streams(plan: &Plan) -> bool {
    plan.request.version.has_streams()
}

#[rustfmt::skip] // a row is read as a row
pub(super) static SETTINGS: &[Setting] = &[
    Setting { name: "calls", value: "N", common: true,
        field: &COUNT.of(off!(connection.calls)).least(1, "is 0: a connection without a call; give --calls 1 for a connection per call"),
        help: "Calls per connection before it is closed [default: as many as the server allows]", ..ROW },
    Setting { name: "close", means: "1", common: true, without: &["calls"], field: &COUNT.of(off!(connection.calls)),
        help: "A new connection for every call; same as --calls 1", ..ROW },
    Setting { name: "pipeline", value: "N", common: true, page: "sessions-and-groups", shown: |plan| !has_streams(plan),
        field: &COUNT.of(at!(connection.pipeline)).within(1, DEPTH_MAX, "is {}; give 1 to 10000 requests"),
        help: "Requests in flight on a connection [default: 1]", ..ROW },
    Setting { name: "streams", value: "N", common: true, without: &["pipeline"], page: "http2", shown: has_streams,
        field: &COUNT.of(at!(connection.pipeline, "connection.streams")),
        help: "HTTP/2 and 3: streams in flight on a connection [default: 1 per user, 100 with --rate]", ..ROW },
    Setting { name: "stream-window", value: "SIZE", page: "http2",
        field: &SIZE.of(at!(http2.stream_window)).within(1, WINDOW_MAX, "is {} bytes; give 1 to 2147483647"),
        help: "HTTP/2 and 3: flow-control window of a stream, in bytes [default: 1G - 1]", ..ROW },
    Setting { name: "connection-window", value: "SIZE", page: "http2",
        field: &SIZE.of(at!(http2.connection_window)).within(CONNECTION_WINDOW_MIN, WINDOW_MAX, "is {} bytes; give 65535 to 2147483647"),
        help: "HTTP/2 and 3: flow-control window of a connection, in bytes [default: 1G - 1]", ..ROW },
    Setting { name: "header-table", value: "SIZE", page: "http2", field: &SIZE.of(at!(http2.header_table)),
        help: "HTTP/2: size of the table the server may use to compress fields, in bytes [default: 4K]", ..ROW },
    Setting { name: "encoder-table", value: "SIZE", page: "http2", field: &SIZE.of(at!(http2.encoder_table)),
        help: "HTTP/2: size of the table the client uses to compress fields, in bytes [default: 4K]", ..ROW },
    Setting { name: "frame-max", value: "SIZE", page: "http2",
        field: &SIZE.of(at!(http2.frame_max)).within(FRAME_MIN, FRAME_MAX, "is {} bytes; give 16384 to 16777215 (RFC 9113 section 6.5.2)"),
        help: "HTTP/2: largest frame the server may send, in bytes [default: 16K]", ..ROW },
    Setting { name: "group", value: "N", page: "sessions-and-groups",
        field: &COUNT.of(off!(connection.group)).within(1, DEPTH_MAX, "is {}; give 1 to 10000 requests"),
        help: "Send N requests together, and the next N when all responses are complete", ..ROW },
    Setting { field: &COUNT.of(off!(connection.depth)).least(1, "is 0: no call could go out; give 1 or more"),
        help: "Calls of a group outstanding on one connection; the rest go to further ones of the user", page: "plans", ..ROW },
    Setting { field: &COUNT.of(at!(connection.per_user)).least(1, "is 0: no call could go out; give 1 or more"),
        help: "Connections that a user or session may have", page: "plans", ..ROW },
    Setting { field: &COUNT_16.of(at!(connection.tries)).least(1, "is 0: a call must be put on a connection once; give 1 or more"),
        help: "Connections that a call is put on at most, as one after the other ends before its response", page: "plans", ..ROW },
    Setting { field: &SWITCH.of(at!(connection.resend)),
        help: "A call goes to another connection where the server had ended an idle one", page: "plans", ..ROW },
    Setting { name: "unix", value: "PATH", is_file: true, page: "addresses-and-proxies", field: &PATH.of(off!(connection.unix)),
        help: "Connect to a Unix socket; the URL gives the Host and the path", ..ROW },
    Setting { name: "resolve", value: "HOST:PORT:ADDRESS", page: "addresses-and-proxies",
        field: &RESOLVE.of(add!(connection.resolve, "connection.resolve")),
        help: "Use ADDRESS for HOST:PORT; may be given several times", ..ROW },
    Setting { name: "bind", value: "LIST", page: "addresses-and-proxies", field: &ADDRESS_LIST.of(at!(connection.bind)),
        help: "Local addresses to connect from, in turn: 127.0.0.2-127.0.0.9,127.0.1.1", ..ROW },
    Setting { name: "path", value: "PATH", common: true, page: "paths", field: &LINK.of(off!(connection.path)),
        help: "Reach a server of this host through an emulated path: 3g, 'rtt=80ms, loss=1%' (needs root)", ..ROW },
    Setting { name: "clients", value: "SHARES", common: true, page: "paths", field: &CLIENTS.of(off!(connection.clients)),
        help: "Each user behind an emulated path of its own: 'dsl:60%, 3g:30%, satellite:10%' (needs root)", ..ROW },
    Setting { name: "idle", value: "N", page: "own-stack",
        field: &COUNT.of(off!(connection.idle)).within(1, IDLE_MAX, "is {}; give 1 to 10000000 connections"),
        help: "Hold this many further connections open while the load runs, and count who ends them", ..ROW },
    Setting { name: "migrate", value: "TIME|Ncalls", page: "http3", shown: |plan| plan.connection.migrate.is_some(),
        field: &MIGRATION.of(off!(connection.migrate)),
        help: "HTTP/3: change each connection's local port so often: 5s, or 100calls", ..ROW },
    Setting { field: &TRACES, help: "The traces of emulated paths by name: the spans between their lines, in milliseconds",
        page: "paths", shown: |plan| !super::access::traces(plan).is_empty(), ..ROW },
    Setting { name: "proxy", value: "URL", page: "addresses-and-proxies", field: &PROXY.of(off!(connection.proxy)),
        help: "Use a proxy: http://[name:password@]host:port", ..ROW },
    Setting { name: "ipv4", short: Some('4'), means: "4", without: &["ipv6"], page: "addresses-and-proxies",
        field: &FAMILY.of(at!(connection.prefer, "connection.family")), help: "Use IPv4 only", ..ROW },
    Setting { name: "ipv6", short: Some('6'), means: "6", page: "addresses-and-proxies",
        field: &FAMILY.of(at!(connection.prefer, "connection.family")), help: "Use IPv6 only", ..ROW },
    Setting { field: &ADDRESS_ORDER.of(at!(connection.addresses)), page: "plans",
        help: "Which of a host's addresses connections go to: all in turn, or the first that answers", ..ROW },
    Setting { name: "send-buffer", value: "SIZE",
        field: &SIZE.of(off!(connection.send_buffer)).within(1, BUFFER_MAX, "is {} bytes; give a size from 1 to 1G"),
        help: "Size of the socket's send buffer [default: the kernel's]", ..ROW },
    Setting { name: "recv-buffer", value: "SIZE",
        field: &SIZE.of(off!(connection.recv_buffer)).within(1, BUFFER_MAX, "is {} bytes; give a size from 1 to 1G"),
        help: "Size of the socket's receive buffer [default: the kernel's]", ..ROW },
    Setting { name: "no-nodelay", means: "false", field: &SWITCH.of(at!(connection.nodelay)),
        help: "Keep Nagle's algorithm on (do not set TCP_NODELAY)", ..ROW },
    Setting { name: "reset", field: &SWITCH.of(at!(connection.reset_on_close, "connection.reset")),
        help: "Close connections with RST, so that no port stays in TIME_WAIT", ..ROW },
    Setting { name: "reconnect-pause", value: "TIME", page: "open-and-closed",
        field: &DURATION.of(at!(connection.reconnect_pause)).most(RECONNECT_PAUSE_MAX, "is above 1h; give a duration from 0 to 1h"),
        help: "Shortest pause of a user after a connection could not be opened [default: 10ms]", ..ROW },
];
