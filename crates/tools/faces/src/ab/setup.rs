//! Converts options to a plan that sends the same bytes as ab.

use super::ciphers;
use super::options::Options;
use crate::words::exit_code;
use crate::{Ending, Files, words};
use plan::{
    AddressOrder, Expect, HttpVersion, Load, Plan, TargetPlan, Think, Timeouts, TlsPlan,
    TlsVersions,
};
use units::Nanos;
use url::Url;

const USER_AGENT: &str = "ApacheBench/2.3";
const DAY: i32 = 86_400;
/// Rows are short, so that progress is printed promptly.
const ROW: Nanos = Nanos::from_millis(100);

/// Reason why no run is started.
pub(super) enum Refusal {
    BeforeBanner(Ending),
    /// ab has already printed its banner.
    AfterBanner(Ending),
}

pub(super) fn plan(options: &Options, files: &dyn Files) -> Result<Plan, Refusal> {
    let tls = tls(options).map_err(Refusal::BeforeBanner)?;
    let after = |text: String, code| Refusal::AfterBanner(Ending::error(text, code));
    let head = head(options);
    if options.concurrency == 0 {
        // a poll set for nothing
        return Err(after("apr_pollset_poll: Invalid argument (22)\n".into(), 22));
    }
    // ab's URLs have no logins; the text would be part of a nonexistent name
    let url = target(options).filter(|url| url.username().is_empty() && url.password().is_none());
    let url = url.ok_or_else(|| no_such_host(connect_host(options)))?;
    let mut plan = Plan::for_targets(vec![TargetPlan {
        // the raw bytes have the request; the method only determines whether a body can follow
        method: (options.method.name() == "HEAD").then(|| "HEAD".to_owned()),
        raw: Some([head.as_bytes(), options.body.as_deref().unwrap_or_default()].concat()),
        ..TargetPlan::new(url)
    }]);
    plan.request.version = HttpVersion::Http10;
    // of a tunnel's CONNECT; the requests are raw bytes
    USER_AGENT.clone_into(&mut plan.request.user_agent);
    plan.tls = tls;
    plan.load = Load::Closed {
        users: options.concurrency.unsigned_abs(),
        think: Think::None,
        session: None,
    };
    plan.stop.requests = Some(u64::from(options.requests.unsigned_abs()));
    // the end of the time is checked at the next event: see Tally::limit
    plan.stop.duration = (options.time_limit != 0).then(|| seconds(options.time_limit));
    plan.timeouts = timeouts(options);
    plan.stop.at_loss = !options.receive_errors_ok;
    // every response is a complete request; its faults are counted separately
    plan.expect = Expect { status: vec![(100, 599)], ..Expect::default() };
    plan.measure.interval = ROW;
    plan.measure.tcp_info_share = 0.0;
    let connection = &mut plan.connection;
    connection.calls = (!options.keep_alive).then_some(1);
    connection.addresses = AddressOrder::FirstThatAnswers;
    // ab repeats the request at once; ten refusals in a row end it
    connection.reconnect_pause = Nanos::ZERO;
    if options.window > 0 {
        let bytes = Some(options.window.unsigned_abs());
        (connection.send_buffer, connection.recv_buffer) = (bytes, bytes);
    }
    if let Some(address) = &options.bind {
        let local = files.resolve(address).map_err(|_| no_such_host(address))?;
        connection.bind = vec![local];
    }
    if let Some((host, port)) = &options.proxy {
        let proxy = Url::parse(&format!("http://{host}:{port}/"));
        let proxy = proxy.map_err(|_| no_such_host(host))?;
        if *port == 0 {
            // the name is looked up before anything connects
            files.resolve(host).map_err(|_| no_such_host(host))?;
            return Err(after("apr_socket_recv: Connection refused (111)\n".into(), 111));
        }
        connection.proxy = Some(proxy);
    }
    Ok(plan)
}

/// Returns the name that is looked up first.
fn connect_host(options: &Options) -> &str {
    options.proxy.as_ref().map_or(&options.address.host, |(host, _)| host)
}

/// Returns the refusal of a name that no URL can contain: like ab's for a name without an address.
fn no_such_host(host: &str) -> Refusal {
    let (number, sentence) = words::resolver_error("");
    let number = 670_000 + number;
    let text = format!("apr_sockaddr_info_get() for {host}: {sentence} ({number})\n");
    Refusal::AfterBanner(Ending::error(text, exit_code(number)))
}

/// Returns the URL for connecting and for output; [`head`] makes the bytes that are sent.
fn target(options: &Options) -> Option<Url> {
    let address = &options.address;
    let base = format!("{}://{}:{}", address.scheme(), address.host_field(), address.port);
    let whole = Url::parse(&format!("{base}{}", address.path));
    whole.or_else(|_| Url::parse(&format!("{base}/"))).ok().map(|mut url| {
        url.set_fragment(None);
        url
    })
}

/// Returns the request's head, with the empty line that ends it.
pub(super) fn head(options: &Options) -> String {
    let address = &options.address;
    // a tunnel's request is addressed to the server itself
    let via_proxy = options.proxy.is_some() && !address.secure;
    let path = if via_proxy { &address.full } else { &address.path };
    let mut head = format!("{} {path} HTTP/1.0\r\n", options.method.name());
    let mut line = |text: &str| {
        head.push_str(text);
        head.push_str("\r\n");
    };
    if options.keep_alive {
        line("Connection: Keep-Alive");
    }
    if let Some(cookie) = &options.cookie {
        line(&format!("Cookie: {cookie}"));
    }
    options.logins.iter().for_each(|login| line(login));
    if let Some(body) = &options.body {
        line(&format!("Content-length: {}", body.len()));
        line(&format!("Content-type: {}", options.content_type));
    }
    options.headers.iter().for_each(|header| line(header));
    for (name, value) in [
        ("Host:", format!("{}{}", address.host_field(), address.colon_port())),
        ("User-Agent:", USER_AGENT.to_owned()),
        ("Accept:", "*/*".to_owned()),
    ] {
        if given_header(options, name).is_none() {
            line(&format!("{name} {value}"));
        }
    }
    line("");
    head
}

/// Returns the value of a header line that the user gave; the last one of several.
fn given_header<'a>(options: &'a Options, name: &str) -> Option<&'a str> {
    let named = |line: &&'a String| {
        line.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name))
    };
    options.headers.iter().rfind(named).map(|line| line[name.len()..].trim())
}

/// Returns the name for SNI: never an address.
pub(super) fn server_name(options: &Options) -> Option<&str> {
    let name = given_header(options, "Host:").unwrap_or(&options.address.host);
    let literal = name.parse::<std::net::IpAddr>().is_ok();
    (options.address.secure && options.sni && !literal && !name.is_empty()).then_some(name)
}

/// Converts seconds; a negative limit expires before the run begins.
pub(super) fn seconds(count: i32) -> Nanos {
    u64::try_from(count).map_or(Nanos(1), Nanos::from_secs)
}

fn timeouts(options: &Options) -> Timeouts {
    // a negative timeout is invalid; a day is the maximum here
    let still = match options.timeout {
        0 => Nanos(1),
        count if !(0..=DAY).contains(&count) => seconds(DAY),
        count => seconds(count),
    };
    Timeouts {
        connect: still,
        first_byte: None,
        progress: Some(still),
        answer: None,
        call: seconds(DAY),
    }
}

fn tls(options: &Options) -> Result<TlsPlan, Ending> {
    let mut tls = TlsPlan {
        insecure: true,
        resumption: false,
        alpn: Vec::new(),
        sni: options.sni,
        // the groups that OpenSSL offers by default, if supported here
        groups: ["X25519", "P-256", "P-384"].map(str::to_owned).into(),
        ..TlsPlan::default()
    };
    let versions = versions(options.protocol.as_deref());
    // ab sets the list before it checks the URL's scheme
    if let Some(list) = &options.ciphers {
        let known = *versions.as_ref().unwrap_or(&TlsVersions::Any);
        tls.ciphers = ciphers::chosen(list, known).ok_or_else(|| {
            Ending::error(format!("error setting ciphersuite list [{list}]\n"), 1)
        })?;
    }
    if !options.address.secure {
        tls.ciphers = Vec::new();
        return Ok(tls);
    }
    tls.versions = versions?;
    tls.server_name = given_header(options, "Host:").filter(|_| options.sni).map(|name| {
        let name = name.rsplit_once(':').map_or(name, |(name, _)| name);
        name.to_owned()
    });
    if let Some((_, pem)) = &options.identity {
        (tls.cert, tls.key) = (Some(pem.clone()), Some(pem.clone()));
    }
    Ok(tls)
}

/// Parses `-f`: the prefix of the word decides; unknown words are ignored.
fn versions(protocol: Option<&str>) -> Result<TlsVersions, Ending> {
    let Some(protocol) = protocol else { return Ok(TlsVersions::Any) };
    let begins = |name: &str| {
        protocol.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name))
    };
    if begins("TLS1.3") {
        Ok(TlsVersions::Tls13)
    } else if begins("TLS1.2") {
        Ok(TlsVersions::Tls12)
    } else if ["SSL2", "SSL3", "TLS1"].into_iter().any(begins) {
        let text =
            format!("-f {protocol}: nothing below TLS 1.2 is supported here; leave -f out\n");
        Err(Ending::error(text, 1))
    } else {
        Ok(TlsVersions::Any)
    }
}
