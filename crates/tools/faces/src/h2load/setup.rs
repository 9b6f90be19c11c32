//! Converts h2load's command line to a plan.

use super::work::Work;
use crate::Ending;
use crate::ab::ciphers;
use plan::{
    Expect, HttpVersion, Load, Pace, Plan, SessionPlan, TargetPlan, Think, Timeouts, TlsPlan,
    TlsVersions,
};
use units::{Nanos, Rate};
use url::Url;

/// Limit for waits that are unlimited in h2load.
const DAY: Nanos = Nanos::from_secs(86_400);
/// Rows are short, so that progress is printed promptly.
const ROW: Nanos = Nanos::from_millis(100);
/// A connection begins with this window, which no frame makes smaller (RFC 9113 section 6.9.2).
const WINDOW_MIN: u32 = 65_535;
const USER_AGENT: &str = "h2load nghttp2/1.52.0";

fn wrong<T>(text: impl std::fmt::Display) -> Result<T, Ending> {
    Err(Ending::error(format!("{text}\n"), 1))
}

/// # Errors
/// Fails for settings that cannot be sent, or not be offered.
pub(super) fn plan(work: &Work) -> Result<Plan, Ending> {
    let options = &work.options;
    let targets = work.asked.paths.iter().map(|path| target(work, path));
    let mut plan = Plan::for_targets(targets.collect::<Result<_, _>>()?);
    request(work, &mut plan)?;
    plan.load = load(work);
    plan.stop.requests = Some(options.clients);
    if work.is_timed() {
        plan.stop.duration = Some(options.duration);
        plan.stop.warm_up = options.warm_up;
        plan.stop.at_once = true;
    } else {
        plan.stop.duration = None;
    }
    plan.timeouts = timeouts(work);
    plan.expect = Expect { status: vec![(100, 599)], ..Expect::default() };
    plan.driver.threads = Some(clamp_u32(options.threads));
    plan.measure.interval = ROW;
    plan.measure.tcp_info_share = 0.0;
    plan.http2.stream_window = window(options.window_bits);
    plan.http2.connection_window = window(options.connection_window_bits).max(WINDOW_MIN);
    plan.http2.header_table = options.header_table;
    plan.http2.encoder_table = options.encoder_table;
    plan.http2.frame_max = options.frame_max;
    let connection = &mut plan.connection;
    connection.pipeline = clamp_u32(options.streams);
    // h2load does not resend
    connection.tries = 1;
    connection.reconnect_pause = Nanos::ZERO;
    connection.unix = options.unix.as_ref().map(Into::into);
    plan.tls = tls(work)?;
    plan.request.version = match work.asked.base.secure {
        true => HttpVersion::Auto,
        false => HttpVersion::Http2,
    };
    if work.begins_with_http1() {
        speak_http1(work, &mut plan);
    }
    Ok(plan)
}

/// Makes the plan use HTTP/1.1: its requests are h2load's bytes, and outstanding requests are
/// pipelined.
pub(super) fn speak_http1(work: &Work, plan: &mut Plan) {
    plan.request.version = HttpVersion::Http11;
    if let Some(session) = session_of(&mut plan.load) {
        // it connects again if the server announces the close, and ends with any failure
        session.one_connection = false;
        session.survives = false;
    }
    plan.connection.needs_length = true;
    if work.body.is_some() {
        plan.connection.pipeline = 1;
    }
    let method = plan.request.method.clone();
    for (target, path) in plan.targets.iter_mut().zip(&work.asked.paths) {
        target.raw = Some(http1_request(work, &method, path));
    }
    plan.request.headers.clear();
    plan.request.body = None;
}

fn session_of(load: &mut Load) -> Option<&mut SessionPlan> {
    match load {
        Load::Closed { session, .. } | Load::Open { session, .. } => session.as_mut(),
    }
}

fn http1_request(work: &Work, method: &str, path: &str) -> Vec<u8> {
    let mut head = String::new();
    put!(head, "{method} {path} HTTP/1.1\r\nHost: {}\r\n", authority(work));
    put!(head, "user-agent: {}\r\n", given_value(work, "user-agent").unwrap_or(USER_AGENT));
    for (name, value) in further(work) {
        put!(head, "{name}: {value}\r\n");
    }
    if let Some(body) = &work.body {
        put!(head, "Content-Length: {}\r\n", body.len());
    }
    head.push_str("\r\n");
    [head.as_bytes(), work.body.as_deref().unwrap_or_default()].concat()
}

/// Returns the last value given for a replaceable field.
fn given_value<'a>(work: &'a Work, name: &str) -> Option<&'a str> {
    let headers = work.options.headers.iter().rev();
    headers.clone().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

/// Returns the fields that are added.
fn further(work: &Work) -> impl Iterator<Item = &(String, String)> {
    work.options.headers.iter().filter(|(name, _)| !name.starts_with(':') && name != "user-agent")
}

fn authority(work: &Work) -> String {
    if let Some(given) = given_value(work, ":authority").or_else(|| given_value(work, ":host")) {
        return given.to_owned();
    }
    let base = &work.asked.base;
    let host = bracketed(&base.host);
    match base.port {
        port if port == base.default_port() => host,
        port => format!("{host}:{port}"),
    }
}

fn bracketed(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.to_owned() }
}

/// Returns the destination of connections, and the requested path.
fn target(work: &Work, path: &str) -> Result<TargetPlan, Ending> {
    let base = &work.asked.base;
    let (host, port) = match &work.options.connect_to {
        Some((host, 0)) => (host.as_str(), base.port),
        Some((host, port)) => (host.as_str(), *port),
        None => (base.host.as_str(), base.port),
    };
    let text = format!("{}://{}:{port}{path}", base.scheme(), bracketed(host));
    match Url::parse(&text) {
        Ok(url) => Ok(TargetPlan::new(url)),
        Err(error) => wrong(format!("invalid URI: {text}: {error}")),
    }
}

/// Sets the request for HTTP/2; HTTP/1.1 uses prepared bytes.
fn request(work: &Work, plan: &mut Plan) -> Result<(), Ending> {
    for (name, value) in &work.options.headers {
        let fits = match name.as_str() {
            ":scheme" => value == work.asked.base.scheme(),
            ":authority" | ":host" | ":method" => true,
            name => !name.starts_with(':'),
        };
        if !fits {
            return wrong(format!(
                "-H: {name}: {value} is already part of the URI; change the URI instead"
            ));
        }
    }
    let request = &mut plan.request;
    let method = if work.body.is_some() { "POST" } else { "GET" };
    given_value(work, ":method").unwrap_or(method).clone_into(&mut request.method);
    given_value(work, "user-agent").unwrap_or(USER_AGENT).clone_into(&mut request.user_agent);
    request.headers = vec![("host".to_owned(), authority(work))];
    request.headers.extend(further(work).filter(|(name, _)| name != "host").cloned());
    request.body.clone_from(&work.body);
    Ok(())
}

/// Returns the load: a client is a session on one connection, which ends with it.
fn load(work: &Work) -> Load {
    let options = &work.options;
    let mut session = SessionPlan::new(u32::MAX, Think::None);
    session.one_connection = true;
    session.own_order = true;
    // a stream that fails is one request; the client continues
    session.survives = true;
    if let Some(first) = work.quotas.first() {
        session.calls = clamp_u32(*first);
        if work.quotas.iter().any(|quota| quota != first) {
            session.lengths = work.quotas.iter().map(|quota| clamp_u32(*quota)).collect();
        }
    }
    if options.rps > 0.0 {
        session.pace = Some(Pace::Every(Rate(options.rps)));
    } else if options.timing {
        session.pace = Some(Pace::At(work.asked.at.clone().into()));
    }
    let starts = work.starts();
    if starts.is_empty() {
        let users = clamp_u32(options.clients);
        return Load::Closed { users, think: Think::None, session: Some(session) };
    }
    let rate = options.rate.unwrap_or(1) as f64 / options.period.as_secs_f64();
    let mut arrivals = plan::Arrivals::constant(Rate(rate));
    arrivals.at = Some(starts.into());
    Load::Open {
        arrivals,
        session: Some(session),
        connections_max: Some(clamp_u32(options.clients)),
        queue_max: None,
    }
}

fn timeouts(work: &Work) -> Timeouts {
    let limit = |span: Nanos| if span.is_zero() { DAY } else { span.min(DAY) };
    let options = &work.options;
    Timeouts {
        connect: limit(options.inactivity_timeout),
        first_byte: None,
        progress: Some(options.inactivity_timeout).filter(|span| !span.is_zero()).map(limit),
        answer: None,
        call: limit(options.active_timeout),
    }
}

/// Returns a window of 2^bits − 1 bytes.
fn window(bits: u32) -> u32 {
    ((1u64 << bits) - 1) as u32
}

fn clamp_u32(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn tls(work: &Work) -> Result<TlsPlan, Ending> {
    let options = &work.options;
    let secure = work.asked.base.secure;
    let mut tls = TlsPlan { insecure: true, resumption: false, ..TlsPlan::default() };
    let refused = |what: &str, list: &str| {
        wrong(format!("{what} with {list} failed: error:0A0000B9:SSL routines::no cipher match"))
    };
    let older = options.ciphers.as_deref();
    let newest = options.newest_ciphers.as_deref();
    let of = |list: Option<&str>, versions| ciphers::chosen(list.unwrap_or(OLDER), versions);
    let Some(old_ones) = of(older, TlsVersions::Tls12) else {
        return refused("SSL_CTX_set_cipher_list", older.unwrap_or_default());
    };
    let new_ones = match newest {
        None => NEWEST.map(str::to_owned).to_vec(),
        Some(list) => match of(Some(list), TlsVersions::Tls13) {
            Some(found) => found,
            None => return refused("SSL_CTX_set_ciphersuites", list),
        },
    };
    let groups = options.groups.as_deref().unwrap_or(GROUPS);
    let Some(groups) = known_groups(groups) else {
        return wrong("SSL_CTX_set1_groups_list failed");
    };
    if !secure {
        return Ok(TlsPlan::default());
    }
    tls.ciphers = new_ones.into_iter().chain(old_ones).collect();
    tls.groups = groups;
    tls.alpn = work.offered();
    if tls.alpn.is_empty() {
        return wrong(format!(
            "--npn-list: none of {} is supported here; give h2, http/1.1 or both",
            options.alpn.join(",")
        ));
    }
    let literal = work.asked.base.host.parse::<std::net::IpAddr>().is_ok();
    tls.sni = !literal;
    tls.server_name = Some(work.asked.base.host.clone());
    Ok(tls)
}

/// h2load's own lists, limited to what is supported here: TLS_AES_128_CCM_SHA256, P-521 and the
/// suites of DHE are not.
const OLDER: &str = "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:\
                     ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:\
                     ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305";
const NEWEST: [&str; 3] =
    ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"];
const GROUPS: &str = "X25519:P-256:P-384:P-521";

/// Returns the supported groups by OpenSSL's names. `None` if a name is unknown, or no group is
/// left.
fn known_groups(list: &str) -> Option<Vec<String>> {
    let mut ours = Vec::new();
    for name in list.split(':') {
        match name.to_ascii_lowercase().as_str() {
            "x25519" => ours.push("X25519"),
            "p-256" | "prime256v1" | "secp256r1" => ours.push("P-256"),
            "p-384" | "secp384r1" => ours.push("P-384"),
            "p-521" | "secp521r1" | "x448" => {}
            _ => return None,
        }
    }
    let ours: Vec<String> = ours.into_iter().map(str::to_owned).collect();
    (!ours.is_empty()).then_some(ours)
}
