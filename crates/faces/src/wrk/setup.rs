//! From wrk's options to a plan of ours.

use super::options::{Address, Options};
use plan::{Arrivals, Load, Plan, Think};
use units::{Nanos, Rate};
use url::Url;

/// wrk counts each thread's requests ten times a second.
pub(super) const INTERVAL: Nanos = Nanos::from_millis(100);

/// `None`: a URL that only wrk's parser takes for one.
pub(super) fn plan(options: &Options, strict: bool) -> Option<Plan> {
    let mut plan = Plan::for_url(target(&options.url)?);
    let connections = u32::try_from(options.connections_used()).unwrap_or(u32::MAX);
    plan.load = match options.rate {
        None => Load::Closed { users: connections, think: Think::None, session: None },
        Some(rate) => Load::Open {
            arrivals: Arrivals::constant(Rate(rate as f64)),
            session: None,
            connections_max: Some(connections),
            queue_max: None,
        },
    };
    let duration = Nanos::from_secs(options.duration_s);
    let timeout = Nanos::from_secs(options.timeout_s.max(1));
    plan.stop.duration = Some(duration);
    // wrk gives up nothing that takes too long: it only counts it
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

/// Where connections go; what is sent there is made by the script.
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
