//! Description of a plan, as text and as the lines of its file.

use super::{counted, printable, shown_url};
use plan::{HttpVersion, Order, Plan, Verify};

/// Describes the effect of `--priority` on a run.
pub fn priority(plan: &Plan) -> Option<String> {
    let frames = match plan.request.version {
        HttpVersion::Http2 => {
            ", and a PRIORITY_UPDATE frame before it if the server supports RFC 9218"
        }
        _ => "",
    };
    let asked = plan.request.priority?;
    Some(format!("{asked}: a field of each request{frames}"))
}

/// Describes the calls of a plan: `GET, HTTP/1.1, new connection per call, pipelined 16 deep`.
pub fn protocol(plan: &Plan) -> String {
    if plan.is_websocket() {
        return websocket(plan);
    }
    let version = plan.request.version;
    let mut parts = vec![printable(&plan.request.method, 20), version.name().to_owned()];
    parts.extend(plan.connection.calls.map(|calls| match calls {
        1 => "a connection per call".to_owned(),
        n => format!("{} per connection", counted(u64::from(n), "call")),
    }));
    match (version.has_streams(), plan.connection.pipeline) {
        (true, n) => parts.push(counted(u64::from(n), "stream")),
        (_, 1) => {}
        (_, n) => parts.push(format!("pipelined {n} deep")),
    }
    parts.extend(plan.connection.group.map(|n| format!("groups of {n}")));
    if plan.journeys.is_some() || plan.specweb99.is_some() {
        parts.remove(0);
    } else if plan.targets.len() > 1 {
        let order = match plan.order {
            Order::InOrder => "targets in order",
            Order::Random => "targets at random",
            Order::Once => "each target once",
        };
        parts.push(order.to_owned());
    }
    if let Some(path) = &plan.connection.unix {
        parts.push(format!("through {}", printable(&path.to_string_lossy(), 60)));
    }
    if let Some(proxy) = &plan.connection.proxy {
        parts.push(format!("by the proxy {}", shown_url(proxy)));
    }
    parts.join(", ")
}

/// Describes the WebSockets of a plan: `WebSocket, 10 connections, 5 messages per connection`.
fn websocket(plan: &Plan) -> String {
    let mut parts = vec!["WebSocket".to_owned()];
    if let plan::Load::Open { connections_max: Some(count), .. } = &plan.load {
        parts.push(counted(u64::from(*count), "connection"));
    }
    parts.extend(
        plan.connection
            .calls
            .map(|calls| format!("{} per connection", counted(u64::from(calls), "message"))),
    );
    if plan.tunnels_websockets() {
        let most = plan.websockets_per_connection();
        let version = plan.request.version.name();
        parts.push(format!("over {version} with up to {most} on a connection"));
    }
    if let Some(rate) = plan.websocket.read_rate {
        parts.push(format!("each reads {}/s", units::show::bytes(u64::from(rate))));
    }
    if let Some(span) = plan.websocket.live {
        parts.push(format!("each open for about {}", units::show::duration(span)));
    }
    if let Some(at) = plan.websocket.storm {
        parts.push(format!("all reset after {}", units::show::duration(at)));
    }
    if let Some(interval) = plan.websocket.ping {
        parts.push(format!("a ping every {}", units::show::duration(interval)));
    }
    parts.join(", ")
}

/// Returns the rule by which a connection counts as conforming.
pub fn conforming_rule(plan: &Plan) -> String {
    let what = if plan.measure.conforming_counts_heads { "heads and bodies" } else { "bodies" };
    if plan.specweb99.is_some() {
        return format!(
            "above {}: bits of {what} over their time, including the waits for lines of {}, and \
             less than 1 % of the calls failed",
            bits_per_s(plan.measure.conforming_bps),
            bits_per_s(plan::specweb99::LINE_BPS)
        );
    }
    format!(
        "above {}: bits of {what} over the time the connection was open, less think time",
        bits_per_s(plan.measure.conforming_bps)
    )
}

/// Formats a bit rate: `320 kbit/s`.
fn bits_per_s(bps: f64) -> String {
    match bps {
        _ if !bps.is_finite() => "-".to_owned(),
        1e9.. => format!("{} Gbit/s", bps / 1e9),
        1e6.. => format!("{} Mbit/s", bps / 1e6),
        1e3.. => format!("{} kbit/s", bps / 1e3),
        _ => format!("{bps} bit/s"),
    }
}

/// Returns the reference for comparing bodies; `None` if not requested.
pub fn verified_against(plan: &Plan) -> Option<String> {
    Some(match plan.expect.verify.as_ref()? {
        Verify::First => "the first of each URL".to_owned(),
        Verify::Files { spec, seed } => format!("the files of {spec}, seed {seed}"),
        Verify::Manifest(_) => "the manifest".to_owned(),
    })
}
