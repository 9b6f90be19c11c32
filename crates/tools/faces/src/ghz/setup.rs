//! Converts ghz's options to a plan.

use super::messages::{CallContent, not_opened};
use super::options::{DurationStop, Options};
use super::schedule;
use crate::Files;
use plan::{Expect, Load, Plan, TargetPlan, Think, TlsPlan};
use units::{Nanos, Rate};
use url::Url;

/// Time limit for waits that ghz does not limit.
pub(super) const DAY: Nanos = Nanos::from_secs(86_400);
/// The default port of a host.
const PORT: u16 = 443;
/// Streams on a connection if calls do not wait for each other.
const STREAMS_MAX: u32 = 10_000;
const USER_AGENT: &str = "grpc-go/1.56.3";

/// Returns the number of calls of the run; `None` if a time bounds it. Contrary to its help, ghz
/// ignores `--total` if `--max-duration` is given: with `strict`, so does this.
fn total(options: &Options, strict: bool) -> Option<u64> {
    let timed = match options.max_duration.is_zero() {
        true => !options.duration.is_zero(),
        false => strict,
    };
    (!timed).then_some(options.total)
}

/// Returns the number of streams per connection; the remaining workers are not used.
pub(super) fn streams(options: &Options) -> u64 {
    (options.concurrency / options.connections.max(1)).max(1)
}

/// Returns the URL of the method; `unix:PATH` is handled separately.
///
/// # Errors
/// Fails for an invalid host.
pub(super) fn url(options: &Options, path: &str) -> Result<Url, String> {
    let scheme = if options.insecure { "http" } else { "https" };
    let host = options.host.strip_prefix("dns:///").unwrap_or(&options.host);
    let place = match unix_path(options) {
        Some(_) => "localhost".to_owned(),
        None if host.contains('/') => {
            return Err(format!(
                "{}: this name service is not supported; give HOST:PORT, dns:///HOST:PORT or \
                 unix:PATH",
                options.host
            ));
        }
        None => host.to_owned(),
    };
    let text = format!("{scheme}://{place}{path}");
    let mut url = Url::parse(&text).map_err(|why| format!("{}: {why}", options.host))?;
    let has_port = place.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    if !has_port && url.port().is_none() && options.insecure {
        // a URL of this scheme has a host, and with that room for a port
        url.set_port(Some(PORT)).ok();
    }
    Ok(url)
}

fn unix_path(options: &Options) -> Option<&str> {
    let path = options.host.strip_prefix("unix:")?;
    Some(path.strip_prefix("//").unwrap_or(path))
}

/// Returns a plan with the server, TLS and timeouts, which reflection needs too.
///
/// # Errors
/// Fails for certificates that cannot be read.
pub(super) fn base(options: &Options, url: Url, files: &dyn Files) -> Result<Plan, String> {
    let mut plan = Plan::for_url(url);
    plan.use_grpc();
    plan.request.user_agent = USER_AGENT.to_owned();
    if !options.authority.is_empty() {
        plan.request.headers.push(("host".to_owned(), options.authority.clone()));
    }
    plan.connection.unix = unix_path(options).map(Into::into);
    plan.connection.reconnect_pause = Nanos::ZERO;
    let limit = |span: Nanos| if span.is_zero() { DAY } else { span.min(DAY) };
    plan.timeouts.connect = limit(options.connect_timeout);
    plan.timeouts.call = limit(options.timeout);
    plan.expect = Expect { status: vec![(100, 599)], ..Expect::default() };
    plan.measure.tcp_info_share = 0.0;
    if !options.insecure {
        plan.tls = tls(options, files)?;
    }
    Ok(plan)
}

fn tls(options: &Options, files: &dyn Files) -> Result<TlsPlan, String> {
    let read = |path: &str| files.read(path).map_err(|error| not_opened(path, &error));
    let mut tls = TlsPlan::default();
    if !options.cert.is_empty() {
        let pair =
            |path: &str| read(path).map_err(|why| format!("could not load client key pair: {why}"));
        (tls.cert, tls.key) = (Some(pair(&options.cert)?), Some(pair(&options.key)?));
    }
    if options.skip_tls {
        tls.insecure = true;
    } else if !options.cacert.is_empty() {
        let anchors =
            read(&options.cacert).map_err(|why| format!("could not read ca certificate: {why}"))?;
        if !String::from_utf8_lossy(&anchors).contains("-----BEGIN CERTIFICATE-----") {
            return Err("failed to append ca certs".to_owned());
        }
        tls.ca = Some(anchors);
    }
    if !options.cname.is_empty() {
        tls.server_name = Some(options.cname.clone());
    }
    Ok(tls)
}

/// Default maximum length of a received message in grpc-go. It applies if only the limit for sent
/// messages is given.
const RECEIVED_MAX: u64 = 4 << 20;

/// Returns the maximum length of a response message; `None` without a limit.
fn received_max(options: &Options) -> Option<u32> {
    let most = options.max_recv.or(options.max_send.map(|_| RECEIVED_MAX))?;
    Some(u32::try_from(most).unwrap_or(u32::MAX))
}

/// Sets the pace, the limits and the end of streams (client, server). Returns whether the plan's
/// time limit of a call implements `--stream-call-duration` of a server's stream.
pub(super) fn set_streams(
    options: &Options,
    (client, server): (bool, bool),
    plan: &mut Plan,
) -> bool {
    if client && !options.stream_interval.is_zero() {
        // below a microsecond, messages are back to back in ghz too
        let rate = (1e9 / options.stream_interval.0 as f64).min(1e6);
        plan.grpc.message_rate = Some(Rate(rate));
    }
    if server && !client && options.stream_call_count > 0 {
        let count = u32::try_from(options.stream_call_count).unwrap_or(u32::MAX);
        plan.grpc.response_messages = Some(count);
    }
    plan.grpc.response_message_max = received_max(options);
    let duration = options.stream_call_duration;
    let cut = server && !client && !duration.is_zero() && duration < plan.timeouts.call;
    if cut {
        plan.timeouts.call = duration;
    }
    cut
}

/// Returns the plan of the run.
///
/// # Errors
/// Fails for a schedule that is not supported.
pub(super) fn plan(
    options: &Options,
    base: Plan,
    content: &CallContent,
    strict: bool,
) -> Result<Plan, String> {
    let mut plan = base;
    let url = plan.targets.first().map(|target| target.url.clone()).ok_or("host required")?;
    let target =
        |body: &Vec<u8>| TargetPlan { body: Some(body.clone()), ..TargetPlan::new(url.clone()) };
    let empty = vec![Vec::new()];
    let bodies = if content.bodies.is_empty() { &empty } else { &content.bodies };
    plan.targets = bodies.iter().map(target).collect::<Vec<_>>().into();
    let headers = &mut plan.request.headers;
    headers.extend(content.headers.iter().cloned());
    if !options.timeout.is_zero() {
        headers.push(("grpc-timeout".to_owned(), protocol::grpc::timeout(options.timeout)));
    }
    if options.enable_compression {
        headers.push(("grpc-encoding".to_owned(), "gzip".to_owned()));
    }
    let narrow = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    let total = total(options, strict);
    let limit = options.time_limit();
    plan.stop.requests = total;
    plan.stop.duration = Some(limit).filter(|limit| !limit.is_zero());
    plan.stop.at_once = plan.stop.duration.is_some() && options.duration_stop != DurationStop::Wait;
    let connections = narrow(options.connections.max(1));
    plan.connection.pipeline = narrow(streams(options)).min(STREAMS_MAX);
    if options.is_async {
        plan.connection.pipeline = STREAMS_MAX;
    }
    plan.driver.threads = Some(narrow(options.cpus.clamp(1, u64::from(connections))));
    match schedule::arrivals(options, total)? {
        Some(arrivals) => {
            plan.load = Load::Open {
                arrivals,
                session: None,
                connections_max: Some(connections),
                queue_max: None,
            };
        }
        None if options.workers.changes() => {
            plan.connection.pipeline = 1;
            plan.load = Load::Closed { users: 1, think: Think::None, session: None };
            schedule::set_workers(options, &mut plan)?;
            plan.driver.threads = Some(1);
        }
        None => {
            plan.load = Load::Closed { users: connections, think: Think::None, session: None };
        }
    }
    Ok(plan)
}
