//! Names to addresses by the operating system's resolver, within a bound.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};
use units::{Nanos, quoted};

/// Family of requested addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Family {
    #[default]
    Any,
    V4,
    V6,
}

impl Family {
    fn admits(self, address: &SocketAddr) -> bool {
        match self {
            Family::Any => true,
            Family::V4 => address.is_ipv4(),
            Family::V6 => address.is_ipv6(),
        }
    }

    fn words(self) -> &'static str {
        match self {
            Family::Any => "",
            Family::V4 => "IPv4 ",
            Family::V6 => "IPv6 ",
        }
    }
}

/// Reason why a name has no address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResolveError {
    /// The resolver refused, with this message.
    NotFound { host: String, why: String },
    /// The name has addresses, but none of the requested family.
    OtherFamily { host: String, family: Family, found: IpAddr },
    /// No answer in time.
    TimedOut { host: String, after: Nanos },
}

impl ResolveError {
    /// Returns the description without the fix.
    pub fn why(&self) -> String {
        match self {
            ResolveError::NotFound { host, why } => {
                format!("the name {} has no address: {why}", quoted(host))
            }
            ResolveError::OtherFamily { host, family, found } => {
                format!("the name {} has no {}address, but {found}", quoted(host), family.words())
            }
            ResolveError::TimedOut { host, after } => format!(
                "no response within {} for the name {}: is the name server reachable?",
                units::show::duration(*after),
                quoted(host)
            ),
        }
    }
}

impl fmt::Display for ResolveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let way = match self {
            ResolveError::NotFound { .. } => {
                "; check its spelling, or give the address with --resolve"
            }
            ResolveError::OtherFamily { .. } => "; omit -4 or -6",
            ResolveError::TimedOut { .. } => " The address can be given with --resolve",
        };
        write!(f, "{}{way}", self.why())
    }
}

impl std::error::Error for ResolveError {}

/// The longest that [`resolve`] waits.
pub const RESOLVE_MAX: Nanos = Nanos::from_secs(5);

/// Resolves `host`, a name, or an address with or without brackets. Returns its addresses, at least
/// one and each once, in the resolver's order, and how long the look-up took.
///
/// # Errors
/// Fails for unknown names, names without an address of that family, and without an answer within
/// [`RESOLVE_MAX`].
pub fn resolve(
    host: &str,
    port: u16,
    family: Family,
) -> Result<(Vec<SocketAddr>, Nanos), ResolveError> {
    resolve_within(RESOLVE_MAX, host, port, family)
}

/// Like [`resolve`], with a custom bound. The system's resolver cannot be stopped: after the bound,
/// its thread continues until it gives up.
///
/// # Errors
/// Fails like [`resolve`].
pub fn resolve_within(
    bound: Nanos,
    host: &str,
    port: u16,
    family: Family,
) -> Result<(Vec<SocketAddr>, Nanos), ResolveError> {
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    if let Ok(address) = bare.parse::<IpAddr>() {
        let found = choose(vec![SocketAddr::new(address, port)], host, family)?;
        return Ok((found, Nanos::ZERO));
    }
    let name = bare.to_owned();
    let started = Instant::now();
    let look_up = move || (name.as_str(), port).to_socket_addrs().map(Iterator::collect);
    let found = bounded(bound, host, look_up)?;
    let took = Nanos(u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX));
    Ok((choose(found, host, family)?, took))
}

/// Returns the interface index for an IPv6 zone, given by name or number; `None` if no interface
/// has that name.
pub fn interface_index(zone: &str) -> Option<u32> {
    if let Ok(number) = zone.parse() {
        return Some(number);
    }
    let family = rustix::net::AddressFamily::INET;
    let socket = rustix::net::socket(family, rustix::net::SocketType::DGRAM, None).ok()?;
    rustix::net::netdevice::name_to_index(&socket, zone).ok()
}

fn bounded(
    bound: Nanos,
    host: &str,
    look_up: impl FnOnce() -> io::Result<Vec<SocketAddr>> + Send + 'static,
) -> Result<Vec<SocketAddr>, ResolveError> {
    let not_found = |why: String| ResolveError::NotFound { host: host.to_owned(), why };
    let (give, take) = sync_channel(1);
    std::thread::Builder::new()
        .name("resolver".to_owned())
        // the receiver is gone once the bound is reached
        .spawn(move || give.send(look_up()).ok())
        .map_err(|error| not_found(format!("cannot start a thread for the lookup: {error}")))?;
    match take.recv_timeout(Duration::from_nanos(bound.0)) {
        Ok(Ok(found)) => Ok(found),
        Ok(Err(error)) => Err(not_found(error.to_string())),
        Err(RecvTimeoutError::Timeout) => {
            Err(ResolveError::TimedOut { host: host.to_owned(), after: bound })
        }
        Err(RecvTimeoutError::Disconnected) => Err(not_found("the lookup ended early".to_owned())),
    }
}

fn choose(
    found: Vec<SocketAddr>,
    host: &str,
    family: Family,
) -> Result<Vec<SocketAddr>, ResolveError> {
    let mut chosen: Vec<SocketAddr> = Vec::new();
    for address in &found {
        if family.admits(address) && !chosen.contains(address) {
            chosen.push(*address);
        }
    }
    match (chosen.is_empty(), found.first()) {
        (false, _) => Ok(chosen),
        (true, Some(other)) => {
            Err(ResolveError::OtherFamily { host: host.to_owned(), family, found: other.ip() })
        }
        (true, None) => Err(ResolveError::NotFound {
            host: host.to_owned(),
            why: "the resolver's answer is empty".to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_is_an_interface_by_name_or_number() {
        assert_eq!((interface_index("lo"), interface_index("7")), (Some(1), Some(7)));
        assert_eq!(interface_index("no such one"), None);
    }
    use std::sync::mpsc::channel;

    fn addresses(texts: &[&str]) -> Vec<SocketAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn addresses_need_no_resolver() {
        for (host, family, expected) in [
            ("127.0.0.1", Family::Any, "127.0.0.1:80"),
            ("127.0.0.1", Family::V4, "127.0.0.1:80"),
            ("[::1]", Family::V6, "[::1]:80"),
            ("::1", Family::Any, "[::1]:80"),
        ] {
            // an address is accepted even with the smallest bound
            let (found, took) = resolve_within(Nanos::ZERO, host, 80, family).unwrap();
            assert_eq!((found, took), (addresses(&[expected]), Nanos::ZERO), "{host}");
        }
    }

    #[test]
    fn only_addresses_of_the_family_are_chosen() {
        let found = addresses(&["[::1]:80", "127.0.0.1:80", "[::1]:80"]);
        for (family, expected) in [
            (Family::Any, &["[::1]:80", "127.0.0.1:80"][..]),
            (Family::V4, &["127.0.0.1:80"]),
            (Family::V6, &["[::1]:80"]),
        ] {
            assert_eq!(choose(found.clone(), "name", family).unwrap(), addresses(expected));
        }
        let error = resolve("127.0.0.1", 80, Family::V6).unwrap_err().to_string();
        assert!(error.contains("no IPv6 address, but 127.0.0.1"), "{error}");
        let error = choose(Vec::new(), "name", Family::Any).unwrap_err().to_string();
        assert!(error.contains("empty"), "{error}");
    }

    #[test]
    fn this_machine_knows_itself() {
        let (found, _) = resolve("localhost", 8080, Family::Any).unwrap();
        assert!(found.iter().all(|address| address.ip().is_loopback() && address.port() == 8080));
    }

    #[test]
    fn the_resolvers_message_is_kept() {
        let refuse = || Err(io::Error::other("Name or service not known"));
        let error = bounded(RESOLVE_MAX, "no.such.host", refuse).unwrap_err().to_string();
        assert!(error.contains("no.such.host") && error.contains("not known"), "{error}");
        assert!(error.contains("--resolve"), "{error}");
    }

    #[test]
    fn a_silent_resolver_is_abandoned() {
        let (release, held) = channel::<()>();
        let hang = move || {
            held.recv().ok();
            Ok(Vec::new())
        };
        let error = bounded(Nanos::from_millis(1), "slow.example", hang).unwrap_err();
        drop(release);
        let expected =
            ResolveError::TimedOut { host: "slow.example".into(), after: Nanos::from_millis(1) };
        assert_eq!(error, expected);
        assert!(error.to_string().contains("slow.example"), "{error}");
    }
}
