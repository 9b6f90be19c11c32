//! The small grammars of options: the values of `--expect-status`, `--abort-if`, `--bind`,
//! `--think` and others. Text in, value or an error sentence out; the plan file uses the same
//! grammars.

use crate::{
    AbortRule, Auth, BodyRule, Migrate, ResolveRule, SourcePrefix, Think, Visit, VisitGroup,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use units::{Nanos, ParseError, parse_duration, quoted};

/// Maximum number of local addresses of `--bind`.
pub const BIND_MAX: usize = 4_096;
/// Limit of core numbers that `--cpus` accepts, exclusive.
pub const CPUS_MAX: u32 = 4_096;
/// The largest standard deviation of a lognormal think time's logarithm.
pub const SIGMA_MAX: f64 = 5.0;
/// Maximum number of requested quantiles.
pub const QUANTILES_MAX: usize = 64;

fn bad(text: &str, what: &str, why: &str, example: &str) -> ParseError {
    ParseError(format!("{} is not {what}: {why}; write {example}", quoted(text)))
}

/// Parses `200,204,300-399`, `2xx`: inclusive ranges in the order given.
pub fn parse_statuses(text: &str) -> Result<Vec<(u16, u16)>, ParseError> {
    let bad = |why: &str| bad(text, "a list of statuses", why, "200,204 or 200-299 or 2xx");
    let number = |digits: &str| match digits.trim().parse::<u16>() {
        Ok(status) if (100..=599).contains(&status) => Ok(status),
        _ => Err(bad(&format!("{} is not a status from 100 to 599", quoted(digits.trim())))),
    };
    let mut ranges = Vec::new();
    for part in text.split(',').map(str::trim) {
        let hundreds = part.strip_suffix("xx").or_else(|| part.strip_suffix("XX"));
        let range = match (hundreds, part.split_once('-')) {
            (Some(hundreds), _) => {
                let from = number(&format!("{hundreds}00"))?;
                (from, from + 99)
            }
            (None, Some((from, to))) => (number(from)?, number(to)?),
            (None, None) => (number(part)?, number(part)?),
        };
        if range.0 > range.1 {
            return Err(bad(&format!("{} has its first value above its last", quoted(part))));
        }
        ranges.push(range);
    }
    Ok(ranges)
}

/// Parses `exact:TEXT`, `regex:RE`, `sha256:HEX`, `contains:TEXT`; a bare text is `contains`. Bytes
/// that are not text: `exact-base64:…`, `contains-base64:…`.
pub fn parse_body_rule(text: &str) -> Result<BodyRule, ParseError> {
    if text.is_empty() {
        return Err(ParseError(
            "an expected body is empty; to ask for an empty one write exact:".to_owned(),
        ));
    }
    let bytes = |code: &str| {
        let why = "what follows the colon is not base64";
        BASE64.decode(code).map_err(|_| bad(text, "an expected body", why, "exact:TEXT"))
    };
    Ok(match text.split_once(':') {
        Some(("exact", rest)) => BodyRule::Exact(rest.as_bytes().to_vec()),
        Some(("contains", rest)) => BodyRule::Contains(rest.as_bytes().to_vec()),
        Some(("exact-base64", code)) => BodyRule::Exact(bytes(code)?),
        Some(("contains-base64", code)) => BodyRule::Contains(bytes(code)?),
        Some(("regex", expression)) => {
            check_regex(expression)?;
            BodyRule::Regex(expression.to_owned())
        }
        Some(("sha256", hex)) => BodyRule::Sha256(parse_sha256(hex)?),
        _ => BodyRule::Contains(text.as_bytes().to_vec()),
    })
}

/// Formats a body rule as [`parse_body_rule`] reads it.
pub fn show_body_rule(rule: &BodyRule) -> String {
    let bytes = |name: &str, bytes: &[u8]| match std::str::from_utf8(bytes) {
        Ok(text) => format!("{name}:{text}"),
        Err(_) => format!("{name}-base64:{}", BASE64.encode(bytes)),
    };
    match rule {
        BodyRule::Exact(body) => bytes("exact", body),
        BodyRule::Contains(part) => bytes("contains", part),
        BodyRule::Regex(expression) => format!("regex:{expression}"),
        BodyRule::Sha256(digest) => format!("sha256:{}", units::hex(digest)),
    }
}

/// Checks that an expression compiles, within the library's size limit.
pub(crate) fn check_regex(expression: &str) -> Result<(), ParseError> {
    match regex::bytes::Regex::new(expression) {
        Ok(_) => Ok(()),
        Err(error) => {
            let why = error.to_string();
            let last = why.lines().last().unwrap_or("").trim_start_matches("error: ");
            Err(ParseError(format!("{} is not a regular expression: {last}", quoted(expression))))
        }
    }
}

pub(crate) fn parse_sha256(hex: &str) -> Result<[u8; 32], ParseError> {
    let bad = || {
        let why = "it must have 64 hexadecimal digits";
        bad(hex, "a SHA-256 digest", why, "what sha256sum prints")
    };
    if hex.len() != 64 || !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(bad());
    }
    let mut digest = [0u8; 32];
    for (byte, pair) in digest.iter_mut().zip(hex.as_bytes().chunks(2)) {
        let pair = std::str::from_utf8(pair).map_err(|_| bad())?;
        *byte = u8::from_str_radix(pair, 16).map_err(|_| bad())?;
    }
    Ok(digest)
}

/// Parses `failures>50% for 5s`. Without `for`, one row of the time series is enough.
pub fn parse_abort_rule(text: &str) -> Result<AbortRule, ParseError> {
    let text = text.trim();
    let (bound, hold) = match text.split_once(" for ") {
        Some((bound, hold)) => (bound, parse_duration(hold)?),
        None => (text, Nanos::ZERO),
    };
    let objective = stats::Objective::parse(bound)?;
    Ok(AbortRule { objective, hold, text: text.to_owned() })
}

/// Returns a host as written in URLs: lowercase, an internationalized name in its ASCII form, IPv6
/// in brackets.
pub fn parse_host(text: &str) -> Result<String, ParseError> {
    let bad = |why: &str| bad(text, "a host", why, "shop.example or 192.0.2.7 or [2001:db8::7]");
    if text.contains("://") || text.contains('/') {
        return Err(bad("it is a URL"));
    }
    if !text.starts_with('[') && text.matches(':').count() == 1 {
        return Err(bad("it has a port, but the rule covers every port of the host"));
    }
    host_of(text).ok_or_else(|| bad(if text.is_empty() { "it is empty" } else { "no URL has it" }))
}

/// Returns the host as written in URLs; IPv6 addresses may lack their brackets.
fn host_of(text: &str) -> Option<String> {
    let bare = text.parse::<Ipv6Addr>().map(|address| format!("[{address}]"));
    let host = url::Host::parse(bare.as_deref().unwrap_or(text)).ok()?;
    Some(host.to_string())
}

/// Parses `host:port:address`; IPv6 in brackets or bare after the second colon.
pub fn parse_resolve(text: &str) -> Result<ResolveRule, ParseError> {
    let bad = |why: &str| bad(text, "a resolve rule", why, "HOST:PORT:ADDRESS");
    let after_host = match text.strip_prefix('[') {
        Some(rest) => rest.find(']').map(|at| at + 2),
        None => text.find(':'),
    };
    let parts = after_host
        .and_then(|at| Some((text.get(..at)?, text.get(at..)?.strip_prefix(':')?)))
        .and_then(|(host, rest)| rest.split_once(':').map(|(port, address)| (host, port, address)));
    let Some((host, port, address)) = parts else {
        return Err(bad("it does not have three parts"));
    };
    if host.is_empty() {
        return Err(bad("the host is missing"));
    }
    let port = match port.parse::<u16>() {
        Ok(port) if port > 0 => port,
        _ => return Err(bad(&format!("{} is not a port from 1 to 65535", quoted(port)))),
    };
    let bare = address.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let address = bare.unwrap_or(address);
    let (address, zone) = match address.split_once('%') {
        Some((address, zone)) => {
            let fault =
                zone_fault(zone).or((!address.contains(':')).then_some("IPv4 has no zones"));
            if let Some(why) = fault {
                return Err(bad(&format!("the zone {} cannot be used: {why}", quoted(zone))));
            }
            (address, Some(zone.to_owned()))
        }
        None => (address, None),
    };
    let address = address
        .parse()
        .map_err(|_| bad(&format!("{} is not an IPv4 or IPv6 address", quoted(address))))?;
    // text that is not a URL host matches none
    let host = host_of(host).unwrap_or_else(|| host.to_ascii_lowercase());
    Ok(ResolveRule { host, port, address, zone })
}

/// Returns why the text is not an interface name; Linux permits 15 bytes without space and slash.
pub(crate) fn zone_fault(zone: &str) -> Option<&'static str> {
    let allowed = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'/' | b'%' | b'[' | b']');
    match zone.len() {
        0 => Some("it is empty"),
        16.. => Some("an interface has at most 15 characters"),
        _ => (!zone.bytes().all(allowed)).then_some("no interface has such a name"),
    }
}

/// Formats a resolve rule as [`parse_resolve`] reads it.
pub fn show_resolve(rule: &ResolveRule) -> String {
    let zone = rule.zone.as_ref().map_or_else(String::new, |zone| format!("%{zone}"));
    format!("{}:{}:{}{zone}", rule.host, rule.port, rule.address)
}

/// Parses `127.0.0.2-127.0.0.9,127.0.1.1`, or the same with IPv6: addresses in order, each once, at
/// most [`BIND_MAX`].
pub fn parse_bind(text: &str) -> Result<Vec<IpAddr>, ParseError> {
    let bad = |why: &str| bad(text, "a list of addresses", why, "127.0.0.2-127.0.0.9,127.0.1.1");
    let address = |part: &str| {
        part.trim()
            .parse::<IpAddr>()
            .map_err(|_| bad(&format!("{} is not an IP address", quoted(part.trim()))))
    };
    let mut addresses = Vec::new();
    for part in text.split(',') {
        let (first, last) = match part.split_once('-') {
            Some((first, last)) => (address(first)?, address(last)?),
            None => (address(part)?, address(part)?),
        };
        let (from, to) = match (first, last) {
            (IpAddr::V4(first), IpAddr::V4(last)) => {
                (u128::from(first.to_bits()), u128::from(last.to_bits()))
            }
            (IpAddr::V6(first), IpAddr::V6(last)) => (first.to_bits(), last.to_bits()),
            _ => return Err(bad("a range mixes IPv4 and IPv6")),
        };
        if from > to {
            return Err(bad(&format!(
                "the range {} has its first value above its last",
                quoted(part.trim())
            )));
        }
        if to - from >= (BIND_MAX - addresses.len().min(BIND_MAX)) as u128 {
            return Err(bad(&format!("it names more than {BIND_MAX}")));
        }
        addresses.extend((from..=to).map(|bits| match first {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::from_bits(bits as u32)),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from_bits(bits)),
        }));
    }
    let mut sorted = addresses.clone();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(bad(&format!("{} appears twice", pair[0]))),
        None => Ok(addresses),
    }
}

/// Parses `500ms` fixed, `1s..3s` uniform, `exp:2s` exponential with that mean, `lognormal:2s,0.8`
/// with that median and standard deviation of its logarithm, `none`.
pub fn parse_think(text: &str) -> Result<Think, ParseError> {
    let text = text.trim();
    if text == "none" {
        return Ok(Think::None);
    }
    if let Some(mean) = text.strip_prefix("exp:") {
        let mean = parse_duration(mean)?;
        if mean.is_zero() {
            return Err(bad(text, "a think time", "its mean is zero", "exp:2s, or none"));
        }
        return Ok(Think::Exponential(mean));
    }
    if let Some(law) = text.strip_prefix("lognormal:") {
        let (median, sigma) = law.split_once(',').unwrap_or((law, ""));
        let (median, sigma) = (parse_duration(median)?, sigma.trim().parse::<f64>());
        return match sigma {
            Ok(sigma) if sigma > 0.0 && sigma <= SIGMA_MAX && !median.is_zero() => {
                Ok(Think::Lognormal(median, sigma))
            }
            _ => {
                let why = "it takes a median, and the deviation of its logarithm above 0 up to 5";
                Err(bad(text, "a think time", why, "lognormal:2s,0.8"))
            }
        };
    }
    if let Some((low, high)) = text.split_once("..") {
        let (low, high) = (parse_duration(low)?, parse_duration(high)?);
        if low >= high {
            return Err(bad(text, "a think time", "the range is empty", "the shorter one first"));
        }
        return Ok(Think::Uniform(low, high));
    }
    let span = parse_duration(text)?;
    Ok(if span.is_zero() { Think::None } else { Think::Fixed(span) })
}

/// Formats a think time as [`parse_think`] reads it.
pub fn show_think(think: Think) -> String {
    match think {
        Think::None => "none".to_owned(),
        Think::Fixed(span) => show_span(span),
        Think::Uniform(low, high) => format!("{}..{}", show_span(low), show_span(high)),
        Think::Exponential(mean) => format!("exp:{}", show_span(mean)),
        Think::Lognormal(median, sigma) => format!("lognormal:{},{sigma}", show_span(median)),
    }
}

/// Parses `0,1,2 2s; 3`: groups of rows of the target list, each with the think time after it.
pub fn parse_visit(text: &str) -> Result<Visit, ParseError> {
    let bad = |why: &str| bad(text, "a visit", why, "0,1,2 2s; 3 (rows of the targets, from 0)");
    let mut groups = Vec::new();
    for part in text.split(';') {
        let mut words = part.split_whitespace();
        let rows = words.next().ok_or_else(|| bad("a group is empty"))?;
        let think = words.next().map_or(Ok(Nanos::ZERO), parse_duration)?;
        if words.next().is_some() {
            return Err(bad("a group is its rows and one think time"));
        }
        let row = |row: &str| row.parse::<u32>().map_err(|_| bad("a row is not a number"));
        let targets = rows.split(',').map(row).collect::<Result<_, _>>()?;
        groups.push(VisitGroup { targets, think });
    }
    Ok(Visit { groups })
}

/// Formats a visit as [`parse_visit`] reads it.
pub fn show_visit(visit: &Visit) -> String {
    let group = |group: &VisitGroup| {
        let rows: Vec<String> = group.targets.iter().map(u32::to_string).collect();
        format!("{} {}", rows.join(","), show_span(group.think))
    };
    visit.groups.iter().map(group).collect::<Vec<_>>().join("; ")
}

/// Formats a duration so that `parse_duration` reads it back without loss: `1500ms`, `10s`.
pub fn show_span(span: Nanos) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns")];
    let fits = |&(size, _): &(u64, &str)| span.0.is_multiple_of(size);
    let (size, unit) = units.into_iter().find(fits).unwrap_or((1, "ns"));
    format!("{}{unit}", span.0 / size)
}

/// Parses `50,90,99.9` or `p50,p99,max`: quantiles 0..=1 in ascending order.
pub fn parse_percentiles(text: &str) -> Result<Vec<f64>, ParseError> {
    let bad = |why: &str| bad(text, "a list of percentiles", why, "50,90,99,99.9,100");
    let mut quantiles = Vec::new();
    for part in text.split(',').map(str::trim) {
        let digits = part.strip_prefix('p').unwrap_or(part);
        let plain = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let quantile = match part {
            "max" => Some(1.0),
            // the decimal point is moved in the text: 99.9 / 100 in binary is above 0.999
            _ if plain => format!("{digits}e-2").parse::<f64>().ok(),
            _ => None,
        };
        match quantile {
            Some(quantile) if quantile > 0.0 && quantile <= 1.0 => quantiles.push(quantile),
            _ => return Err(bad(&format!("{} is not above 0 and up to 100", quoted(part)))),
        }
        if quantiles.len() > QUANTILES_MAX {
            return Err(bad(&format!("it has more than {QUANTILES_MAX}")));
        }
    }
    quantiles.sort_unstable_by(f64::total_cmp);
    quantiles.dedup_by(|a, b| a.total_cmp(b).is_eq());
    Ok(quantiles)
}

/// Parses `0,2-3`: core numbers in the order given, each once.
pub fn parse_cpus(text: &str) -> Result<Vec<u32>, ParseError> {
    let bad = |why: &str| bad(text, "a list of cores", why, "0,2-3");
    let number = |digits: &str| match digits.trim().parse::<u32>() {
        Ok(core) if core < CPUS_MAX => Ok(core),
        _ => Err(bad(&format!("{} is not a core number below {CPUS_MAX}", quoted(digits.trim())))),
    };
    let mut cores = Vec::new();
    for part in text.split(',') {
        let (from, to) = match part.split_once('-') {
            Some((from, to)) => (number(from)?, number(to)?),
            None => (number(part)?, number(part)?),
        };
        if from > to {
            return Err(bad(&format!(
                "the range {} has its first value above its last",
                quoted(part.trim())
            )));
        }
        for core in from..=to {
            if cores.contains(&core) {
                return Err(bad(&format!("core {core} appears twice")));
            }
            cores.push(core);
        }
    }
    Ok(cores)
}

/// Returns an emulated path: the name of a profile, or a path as text.
///
/// # Errors
/// Fails for an invalid path, or a trace that `traces` does not have.
pub fn parse_path(text: &str, traces: &dyn wan::TraceSource) -> Result<wan::PathSpec, ParseError> {
    wan::PathSpec::parse(text, traces).map_err(|fault| ParseError(fault.0))
}

/// Parses `10.9.0.0/16`, `fd00:9::/64`: local addresses of connections.
///
/// # Errors
/// Fails for an invalid prefix, host bits that are not zero, an invalid length, or addresses that
/// are not unicast.
pub fn parse_sources(text: &str) -> Result<SourcePrefix, ParseError> {
    let bad = |why: &str| bad(text, "a prefix of addresses", why, "10.9.0.0/16 or fd00:9::/64");
    let (network, bits) = text.trim().split_once('/').ok_or_else(|| bad("it has no /BITS"))?;
    let network: IpAddr =
        network.parse().map_err(|_| bad(&format!("{} is not an IP address", quoted(network))))?;
    let (least, most) = if network.is_ipv4() { (8, 30) } else { (16, 126) };
    let bits: u8 =
        bits.parse().ok().filter(|bits| (least..=most).contains(bits)).ok_or_else(|| {
            let bits = quoted(bits);
            bad(&format!("{bits} is not a number of bits from {least} to {most}"))
        })?;
    let (first, nobodys): (IpAddr, bool) = match network {
        IpAddr::V4(network) => {
            let first = Ipv4Addr::from_bits(network.to_bits() & !(u32::MAX >> bits));
            let octet = network.octets()[0];
            (first.into(), network.is_loopback() || octet == 0 || octet >= 224)
        }
        IpAddr::V6(network) => {
            let first = Ipv6Addr::from_bits(network.to_bits() & !(u128::MAX >> bits));
            let link_local = network.is_unicast_link_local();
            let low = network.segments()[0] == 0;
            (first.into(), network.is_multicast() || link_local || low)
        }
    };
    if first != network {
        return Err(bad(&format!("the first of its addresses is {first}")));
    }
    if nobodys {
        return Err(bad("packets cannot come from these addresses"));
    }
    Ok(SourcePrefix { network, bits })
}

/// Parses kinds of clients with their shares: `dsl:60%, 3g:40%`.
///
/// # Errors
/// Fails for an invalid part, shares whose sum is not 100 %, a trace that `traces` does not have,
/// or a bare number, as h2load's option of this name takes.
pub fn parse_clients(
    text: &str,
    traces: &dyn wan::TraceSource,
) -> Result<wan::Population, ParseError> {
    if text.trim().parse::<u64>().is_ok() {
        return Err(ParseError(format!(
            "{0} is a number, which -c {0} sets; --clients names profiles: dsl:60%, 3g:40%",
            text.trim()
        )));
    }
    wan::Population::parse(text, traces).map_err(|fault| ParseError(fault.0))
}

/// Returns when a QUIC connection changes its local port: `5s`, or `100 calls`.
///
/// # Errors
/// Fails for text that is neither a duration nor a number of calls.
pub fn parse_migrate(text: &str) -> Result<Migrate, ParseError> {
    let bad = |why: &str| bad(text, "a time between changes of the port", why, "5s or 100calls");
    let typed = text.trim();
    let Some(count) = typed.strip_suffix("calls").or_else(|| typed.strip_suffix("call")) else {
        let every = parse_duration(typed).map_err(|_| bad("it is neither a time nor calls"))?;
        return Ok(Migrate::Every(every));
    };
    let calls =
        count.trim().parse().map_err(|_| bad("it does not begin with a number of calls"))?;
    Ok(Migrate::Calls(calls))
}

/// Formats an interval of migrations as [`parse_migrate`] reads it.
pub fn show_migrate(when: Migrate) -> String {
    match when {
        Migrate::Every(every) => show_span(every),
        Migrate::Calls(calls) => format!("{calls}calls"),
    }
}

/// Parses bits per second: `320000`, `320k`, `2M`, with or without `bit/s`; `k` and `M` are powers
/// of 1000.
pub fn parse_bits(text: &str) -> Result<f64, ParseError> {
    let bad = |why: &str| bad(text, "a bit rate", why, "320k or 2Mbit/s");
    let number = text.trim();
    let number = number.strip_suffix("bit/s").or_else(|| number.strip_suffix("bps"));
    let number = number.unwrap_or(text.trim()).trim_end();
    let (digits, times) = match number.chars().last() {
        Some('k' | 'K') => (&number[..number.len() - 1], 1e3),
        Some('M') => (&number[..number.len() - 1], 1e6),
        Some('G') => (&number[..number.len() - 1], 1e9),
        _ => (number, 1.0),
    };
    let digits = digits.trim_end();
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    match digits.parse::<f64>() {
        Ok(rate) if plain && rate > 0.0 && rate.is_finite() => Ok(rate * times),
        Ok(_) if plain => Err(bad("it must be above zero")),
        _ => Err(bad("it is not a number")),
    }
}

/// Parses `Name: value`. Space around the value is removed (RFC 9110 §5.5).
pub fn parse_header(text: &str) -> Result<(String, String), ParseError> {
    let bad = |why: &str| bad(text, "a header", why, "'Name: value'");
    let Some((name, value)) = text.split_once(':') else { return Err(bad("it has no colon")) };
    let (name, value) = (name.trim(), value.trim_matches([' ', '\t']));
    match header_fault(name, value) {
        Some(why) => Err(bad(&why)),
        None => Ok((name.to_owned(), value.to_owned())),
    }
}

/// Returns why this field cannot be sent; `None` if it can.
pub(crate) fn header_fault(name: &str, value: &str) -> Option<String> {
    if !is_token(name) {
        return Some(format!("{} is not a field name", quoted(name)));
    }
    // RFC 9110 §5.5: CR, LF and NUL are dangerous, other control characters invalid.
    if value.bytes().any(|byte| byte != b'\t' && byte.is_ascii_control()) {
        return Some("a control character is in the value".to_owned());
    }
    if value.trim_matches([' ', '\t']) != value {
        return Some("the value has leading or trailing whitespace".to_owned());
    }
    let framing = ["content-length", "transfer-encoding"];
    if framing.iter().any(|known| name.eq_ignore_ascii_case(known)) {
        return Some(format!("{name} is derived from the body and added automatically"));
    }
    None
}

/// Returns whether the text is a token (RFC 9110 §5.6.2), as used for methods and field names.
pub(crate) fn is_token(text: &str) -> bool {
    let mark = |byte| b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || mark(byte))
}

/// Parses `GET`, `POST`, `PURGE`: a token; CONNECT is for proxies, not for servers.
pub fn parse_method(text: &str) -> Result<String, ParseError> {
    match method_fault(text) {
        Some(why) => Err(bad(text, "a method", &why, "GET, HEAD or POST")),
        None => Ok(text.to_owned()),
    }
}

pub(crate) fn method_fault(text: &str) -> Option<String> {
    if !is_token(text) || text.len() > 64 {
        return Some("it is not a token".to_owned());
    }
    let connect = text.eq_ignore_ascii_case("CONNECT");
    connect.then(|| "it opens a tunnel (for a proxy, give --proxy)".to_owned())
}

/// Parses `name:password` for Digest; without a colon the password is empty.
pub fn parse_digest(text: &str) -> Result<Auth, ParseError> {
    match parse_user(text)? {
        Auth::Basic { user, password } => Ok(Auth::Digest { user, password }),
        other => Ok(other),
    }
}

/// Parses `provider[:prefix[:region[:service]]]`, as curl's option of the same name.
pub fn parse_aws_sigv4(text: &str) -> Result<protocol::login::sigv4::SignatureScope, ParseError> {
    let scope = protocol::login::sigv4::SignatureScope::parse(text);
    scope.map_err(|why| {
        ParseError(format!("{} is not the scope of a signature: {why}", quoted(text)))
    })
}

/// Parses `name:password`; without a colon the password is empty.
pub fn parse_user(text: &str) -> Result<Auth, ParseError> {
    let (user, password) = text.split_once(':').unwrap_or((text, ""));
    if text.chars().any(char::is_control) {
        let why = "a control character is in a user name or password";
        return Err(ParseError(format!("{why}; Basic authentication cannot carry one")));
    }
    Ok(Auth::Basic { user: user.to_owned(), password: password.to_owned() })
}

#[cfg(test)]
mod tests;
