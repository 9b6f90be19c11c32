//! Options that exclude WebSocket, and options that need it.

use super::Problems;
use crate::websocket::{ID_MARK, MESSAGE_MAX, ROOM_MARKS, WebSocketPlan, is_websocket_url};
use crate::{Auth, HttpVersion, Load, MessageAnswer, Migrate, Plan, Think};
use units::Nanos;

pub(super) fn check(plan: &Plan, problems: &mut Problems) {
    problems.add_faults(plan, "websocket");
    if !plan.is_websocket() {
        if plan.speaks_websocket() {
            return check_steps(plan, problems);
        }
        problems.add_if(
            plan.targets.iter().any(|target| is_websocket_url(&target.url)),
            "--urls",
            "ws:// and http:// URLs are mixed; run them one after the other",
        );
        problems.add_if(
            plan.websocket != WebSocketPlan::default(),
            "--ws-message",
            "options that begin with --ws- need a ws:// or wss:// URL; drop them, or change the URL",
        );
        return;
    }
    check_messages(plan, problems);
    check_rooms(plan, problems);
    check_churn(plan, problems);
    check_load(plan, problems);
    check_connection(plan, problems);
    check_exchange(plan, problems);
}

/// Refuses options that would open, close or slow down the WebSockets of steps.
fn check_steps_alone(websocket: &WebSocketPlan, problems: &mut Problems) {
    for (given, option) in [
        (websocket.live.is_some(), "--ws-live"),
        (websocket.storm.is_some(), "--ws-storm"),
        (websocket.read_rate.is_some(), "--ws-read-rate"),
    ] {
        if given {
            let why = "is for a ws:// URL; in a journey, steps open and close WebSockets";
            problems.add(option, format!("{option} {why}"));
        }
    }
}

/// Checks journeys whose steps open WebSockets.
fn check_steps(plan: &Plan, problems: &mut Problems) {
    let (websocket, connection) = (&plan.websocket, &plan.connection);
    problems.add_if(
        websocket.preset.is_some() || websocket.rooms.is_some(),
        "--ws-preset",
        "--ws-preset and --ws-rooms are for a ws:// URL; in a journey, use steps with send and expect",
    );
    check_steps_alone(websocket, problems);
    let of_message = WebSocketPlan {
        message: websocket.message.clone(),
        expect: websocket.expect.clone(),
        ..WebSocketPlan::default()
    };
    problems.add_if(
        of_message != WebSocketPlan::default(),
        "--ws-message",
        "--ws-message and --ws-expect are for a ws:// URL; a journey has steps with send and expect",
    );
    check_subprotocols(plan, problems);
    check_tunnels(plan, problems);
    // for a script it is known only during the run whether it opens WebSockets
    if !plan.journeys.as_ref().is_some_and(|journeys| journeys.has_sockets()) {
        return;
    }
    let of_all =
        |it: &stats::Objective| it.of.is_none() && it.text.trim_start().starts_with("message-");
    problems.add_if(
        plan.measure.slo.iter().any(of_all),
        "--slo",
        "an objective message-… would bound all calls of a journey, including its HTTP calls; name the step, \
         as in 'ask: p99<50ms'",
    );
    for (wrong, option, text) in [
        (
            !carries_websockets(plan.request.version),
            "--http",
            "steps with connect open WebSockets over HTTP/1.1, HTTP/2 or HTTP/3; drop --http, or give \
             --http 2 or 3",
        ),
        (
            connection.proxy.is_some(),
            "--proxy",
            "--proxy does not work with steps on WebSockets yet; drop it",
        ),
        (
            connection.calls.is_some(),
            "--calls",
            "--calls ends connections after N calls, and WebSocket steps need them open; drop it",
        ),
        (
            plan.tls.early_data,
            "--early-data",
            "--early-data does not work with WebSocket: an upgrade must not be replayed; drop it",
        ),
    ] {
        problems.add_if(wrong, option, text);
    }
}

fn check_subprotocols(plan: &Plan, problems: &mut Problems) {
    let plain = |name: &String| {
        !name.is_empty()
            && name.bytes().all(|b| b.is_ascii_graphic() && !b"\"(),/:;<=>?@[\\]{}".contains(&b))
    };
    problems.add_if(
        !plan.websocket_subprotocols().iter().all(plain),
        "--ws-subprotocol",
        "--ws-subprotocol takes names such as chat or graphql-transport-ws (RFC 6455 section 4.1)",
    );
}

fn check_messages(plan: &Plan, problems: &mut Problems) {
    let websocket = &plan.websocket;
    problems.add_if(
        plan.targets.len() > 1,
        "--urls",
        "several URLs do not work with WebSocket yet; give one ws:// URL",
    );
    problems.add_if(
        websocket.message.as_ref().is_some_and(|message| message.len() > MESSAGE_MAX),
        "--ws-message",
        "--ws-message is above 16M; give a smaller message",
    );
    check_subprotocols(plan, problems);
    let message = plan.websocket_message();
    if let MessageAnswer::Json(pointer) = &websocket.expect {
        let shown = String::from_utf8_lossy(message).replace(ID_MARK, "1");
        let value = serde_json::from_str::<serde_json::Value>(&shown);
        problems.add_if(
            !value.is_ok_and(|value| value.pointer(pointer).is_some()),
            "--ws-expect",
            "--ws-expect json: needs a --ws-message that is JSON and has a value at that pointer, \
             such as '{\"id\":{id}}' with json:/id",
        );
    }
    problems.add_if(
        plan.holds_websockets() && websocket.expect != MessageAnswer::Echo,
        "--ws-expect",
        "--ws-expect needs --ws-message: with --ws-ping alone only pings are sent",
    );
}

fn check_rooms(plan: &Plan, problems: &mut Problems) {
    let Some(rooms) = plan.websocket.rooms else { return };
    let Load::Open { connections_max: Some(connections), .. } = plan.load else {
        problems.add("--ws-rooms", "--ws-rooms needs --ws-rate, the rate of published messages");
        return;
    };
    let members = plan.room_members();
    problems.add_if(
        members < 2 || members * u64::from(rooms) != u64::from(connections),
        "--ws-rooms",
        "--ws-rooms does not divide the connections of -c into equal rooms of two or more; change -c",
    );
    let url = plan.targets.iter().next().map_or("", |target| target.url.as_str());
    let marked = ROOM_MARKS.iter().any(|mark| url.contains(*mark));
    problems.add_if(
        rooms > 1 && !marked,
        "--ws-rooms",
        "--ws-rooms above 1 needs {room} in the URL, as in ws://host/chat?room={room}",
    );
    let message = plan.websocket_message();
    let has_id = message.windows(ID_MARK.len()).any(|window| window == ID_MARK.as_bytes());
    problems.add_if(
        !has_id,
        "--ws-message",
        "--ws-rooms needs {id} in --ws-message, so that messages can be distinguished",
    );
    let matched = !matches!(plan.websocket.expect, MessageAnswer::Next | MessageAnswer::None);
    problems.add_if(
        !matched,
        "--ws-expect",
        "--ws-rooms needs --ws-expect echo, json:/… or regex:…, so that receivers can identify a message",
    );
    problems.add_if(
        plan.websocket.preset.is_some(),
        "--ws-preset",
        "--ws-preset does not work with --ws-rooms yet; drop one",
    );
    problems.add_if(
        plan.connection.calls.is_some(),
        "--calls",
        "--calls closes connections, and --ws-rooms needs them open; drop one",
    );
}

fn check_churn(plan: &Plan, problems: &mut Problems) {
    let websocket = &plan.websocket;
    let churns = websocket.live.is_some() || websocket.storm.is_some();
    let option = if websocket.storm.is_some() { "--ws-storm" } else { "--ws-live" };
    problems.add_if(
        churns && websocket.rooms.is_some(),
        option,
        "--ws-storm and --ws-live do not work with --ws-rooms, whose members are not reconnected; drop one",
    );
    let late = |at: Nanos| plan.stop.duration.is_some_and(|span| at >= span);
    problems.add_if(
        websocket.storm.is_some_and(late),
        "--ws-storm",
        "--ws-storm must be before the end of the run; give an earlier time, or a longer -d",
    );
}

fn check_load(plan: &Plan, problems: &mut Problems) {
    let session = plan.loads().iter().any(|load| load.session().is_some());
    problems.add_if(
        session,
        "--session",
        "--session does not work with WebSocket yet; use --calls to close a connection after N messages",
    );
    problems.add_if(
        plan.journeys.is_some() || plan.script.is_some(),
        "--script",
        "journeys and scripts do not work with WebSocket yet; give --ws-message",
    );
    problems.add_if(
        !plan.scenarios.is_empty(),
        "scenario",
        "scenarios do not work with WebSocket yet; run one load at a time",
    );
    problems.add_if(
        plan.holds_websockets() && matches!(plan.load, Load::Open { .. }),
        "--ws-rate",
        "--ws-rate needs --ws-message: with --ws-ping alone each connection is held and sends pings",
    );
    let flood = matches!(plan.load, Load::Closed { think: Think::None, .. })
        && plan.websocket.expect == MessageAnswer::None;
    problems.add_if(
        flood,
        "--ws-expect",
        "--ws-expect none has no answer to wait for; add --ws-rate, or --think",
    );
}

/// Returns whether WebSockets can be opened over this version.
fn carries_websockets(version: HttpVersion) -> bool {
    matches!(version, HttpVersion::Http11 | HttpVersion::Http2 | HttpVersion::Http3)
}

/// Checks WebSockets that share connections of HTTP/2 or HTTP/3.
fn check_tunnels(plan: &Plan, problems: &mut Problems) {
    let (connection, tunnels) = (&plan.connection, plan.tunnels_websockets());
    for (wrong, option, text) in [
        (
            plan.websocket.per_connection.is_some() && !tunnels,
            "--ws-per-connection",
            "--ws-per-connection needs --http 2 or 3: over HTTP/1.1, and in scripts, each WebSocket has a \
             connection",
        ),
        (
            tunnels && connection.idle.is_some(),
            "--idle",
            "--idle does not work with WebSocket over HTTP/2 or HTTP/3; drop one",
        ),
        (
            tunnels && plan.websocket.read_rate.is_some(),
            "--ws-read-rate",
            "--ws-read-rate does not work with --http 2 or 3, where WebSockets share a connection; drop one",
        ),
        (
            tunnels && plan.tls.user_sessions,
            "--user-sessions",
            "--user-sessions does not work with WebSocket over HTTP/2 or HTTP/3, where users share \
             connections; drop one",
        ),
        (
            tunnels && matches!(connection.migrate, Some(Migrate::Calls(_))),
            "--migrate",
            "--migrate Ncalls counts requests, and WebSockets share a connection; give an interval, as in \
             --migrate 5s",
        ),
    ] {
        problems.add_if(wrong, option, text);
    }
}

fn check_connection(plan: &Plan, problems: &mut Problems) {
    let connection = &plan.connection;
    check_tunnels(plan, problems);
    for (wrong, option, text) in [
        (
            !carries_websockets(plan.request.version),
            "--http",
            "WebSocket works over HTTP/1.1, HTTP/2 and HTTP/3; drop --http, or give --http 2 or 3",
        ),
        (
            connection.proxy.is_some(),
            "--proxy",
            "--proxy does not work with WebSocket yet; drop it",
        ),
        (
            connection.clients.is_some(),
            "--clients",
            "--clients does not work with WebSocket yet; give --path for one emulated path",
        ),
        (
            connection.group.is_some(),
            "--group",
            "--group sends requests of HTTP together; with WebSocket give --ws-rate",
        ),
        (
            plan.tls.early_data,
            "--early-data",
            "--early-data does not work with WebSocket: an upgrade must not be replayed; drop it",
        ),
    ] {
        problems.add_if(wrong, option, text);
    }
    problems.add_if(
        matches!(plan.load, Load::Closed { .. }) && connection.pipeline > 1,
        "--pipeline",
        "--pipeline and --streams are options of HTTP requests; with WebSocket give --ws-rate for several \
         messages in flight, or --ws-per-connection for several WebSockets on a connection of HTTP/2 or HTTP/3",
    );
}

fn check_exchange(plan: &Plan, problems: &mut Problems) {
    let (request, expect) = (&plan.request, &plan.expect);
    let proved = matches!(request.auth, Some(Auth::Digest { .. } | Auth::AwsSigV4 { .. }));
    let written = |name: &str| {
        name.to_ascii_lowercase().starts_with("sec-websocket-")
            || ["upgrade", "connection"].iter().any(|own| name.eq_ignore_ascii_case(own))
    };
    if let Some((name, _)) = request.headers.iter().find(|(name, _)| written(name)) {
        let text =
            format!("-H {name:?} is a header that the upgrade to WebSocket writes itself; drop it");
        problems.add("-H", text);
    }
    for (wrong, option, instead) in [
        (request.method != "GET", "--method", "the upgrade is a GET"),
        (request.body.is_some(), "--body", "give --ws-message"),
        (request.follow_max > 0, "--follow", "give the URL that answers 101"),
        (request.cookies, "--cookies", "give -H 'Cookie: …'"),
        (request.compressed, "--compressed", "give --ws-compress"),
        (proved, "--digest", "give --user or --bearer"),
        (plan.uses_tokens(), "--token-url", "give --bearer"),
        (!expect.status.is_empty(), "--expect-status", "the upgrade must be answered with 101"),
        (expect.length.is_some(), "--expect-length", "give --ws-expect"),
        (expect.body.is_some(), "--expect-body", "give --ws-expect"),
        (expect.verify.is_some(), "--verify", "give --ws-expect echo"),
        (plan.measure.stream.is_some(), "--stream", "drop it"),
    ] {
        if wrong {
            problems.add(
                option,
                format!("{option} is an option of HTTP requests; with WebSocket {instead}"),
            );
        }
    }
}
