//! Converts wrk's options to a plan.

use super::options::{Address, Options};
use plan::{Arrivals, Load, Pace, Plan, SessionPlan, Think};
use units::{Nanos, Rate};
use url::Url;

/// wrk counts each thread's requests ten times a second.
pub(super) const INTERVAL: Nanos = Nanos::from_millis(100);

/// Returns `None` for a URL that only wrk's parser accepts.
pub(super) fn plan(options: &Options, strict: bool) -> Option<Plan> {
    let mut plan = Plan::for_url(target(&options.url)?);
    let connections = u32::try_from(options.connections_used()).unwrap_or(u32::MAX);
    plan.load = match options.rate {
        None => Load::Closed { users: connections, think: Think::None, session: None },
        Some(rate) => paced(options, rate, connections),
    };
    let duration = Nanos::from_secs(options.duration_s);
    let timeout = Nanos::from_secs(options.timeout_s.max(1));
    plan.stop.duration = Some(duration);
    // wrk abandons no slow call: it only counts it
    let patient = strict || options.rate.is_some();
    plan.stop.at_once = patient;
    plan.timeouts.call = if patient { duration + timeout } else { timeout };
    plan.timeouts.connect = plan.timeouts.call;
    plan.expect.status = vec![(100, 599)];
    plan.driver.threads = Some(u32::try_from(options.threads).unwrap_or(u32::MAX));
    plan.measure.interval = INTERVAL;
    plan.measure.tcp_info_share = 0.0;
    // wrk connects again at once
    plan.connection.reconnect_pause = Nanos::ZERO;
    plan.tls.insecure = true;
    plan.tls.alpn = Vec::new();
    Some(plan)
}

/// Interval at which a thread of wrk2 opens connections.
const STAGGER: Nanos = Nanos::from_millis(5);
/// Connections whose starts are listed: no machine has descriptors for more.
const CONNECTIONS_MAX: u32 = 1_000_000;
/// Requests per second of a connection that mean "as fast as possible".
const PACE_MAX: f64 = 10_000_000.0;

/// Returns wrk2's load: each connection has its own schedule, which begins when it is opened.
fn paced(options: &Options, rate: u64, connections: u32) -> Load {
    let each = rate as f64 / f64::from(connections.max(1));
    let session = SessionPlan {
        survives: true,
        pace: Some(Pace::Every(Rate(each.min(PACE_MAX)))),
        ..SessionPlan::new(u32::MAX, Think::None)
    };
    let row = |connection: u32| STAGGER * (u64::from(connection) / options.threads);
    let starts: Vec<Nanos> = (0..connections.min(CONNECTIONS_MAX)).map(row).collect();
    let per_second = (options.threads as f64 / STAGGER.as_secs_f64()).min(PACE_MAX);
    let mut arrivals = Arrivals::constant(Rate(per_second));
    arrivals.at = Some(starts.into());
    Load::Open {
        arrivals,
        session: Some(session),
        connections_max: Some(connections),
        queue_max: None,
    }
}

/// Returns the destination of connections; the script creates the requests.
fn target(address: &Address) -> Option<Url> {
    let scheme = if address.scheme.eq_ignore_ascii_case("https") { "https" } else { "http" };
    let host = if address.host.contains(':') {
        format!("[{}]", address.host)
    } else {
        address.host.clone()
    };
    let port = address.port.as_ref().map(|port| format!(":{port}")).unwrap_or_default();
    Url::parse(&format!("{scheme}://{host}{port}/")).ok()
}
