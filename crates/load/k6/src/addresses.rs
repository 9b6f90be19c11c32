//! The options `hosts`, `blacklistIPs` and `localIPs`: addresses in place of names, addresses that
//! no connection goes to, and our own addresses.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Mutex, PoisonError};
use workload::AddressRules;

/// Maximum number of local addresses of a test.
const LOCAL_MAX: u128 = 4_096;

/// A range of addresses, `10.0.0.0/8`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Subnet {
    text: String,
    address: IpAddr,
    bits: u32,
}

/// Returns an address as a number, and its number of bits.
fn number(address: IpAddr) -> (u128, u32) {
    match address {
        IpAddr::V4(address) => (u128::from(u32::from(address)), 32),
        IpAddr::V6(address) => (u128::from(address), 128),
    }
}

/// Returns the address with this number, in the family of `like`.
fn address(number: u128, like: IpAddr) -> IpAddr {
    match like {
        IpAddr::V4(_) => Ipv4Addr::from(number as u32).into(),
        IpAddr::V6(_) => Ipv6Addr::from(number).into(),
    }
}

impl Subnet {
    /// # Errors
    /// Fails if the text is not a range; the text states why.
    pub(crate) fn parse(text: &str) -> Result<Subnet, String> {
        let wrong = || format!("\"{text}\" is not a range of addresses; write one like 10.0.0.0/8");
        let (bare, bits) = text.split_once('/').map_or((text, None), |(a, bits)| (a, Some(bits)));
        let address: IpAddr = bare.parse().map_err(|_| wrong())?;
        let most = number(address).1;
        let bits = bits.map_or(Ok(most), str::parse).map_err(|_| wrong())?;
        if bits > most {
            return Err(wrong());
        }
        Ok(Subnet { text: text.to_owned(), address, bits })
    }

    fn contains(&self, other: IpAddr) -> bool {
        let ((ours, width), (theirs, others)) = (number(self.address), number(other));
        let ignored = width - self.bits;
        width == others && (ours ^ theirs).checked_shr(ignored).unwrap_or(0) == 0
    }

    /// Returns the first and last address, without the network and broadcast addresses.
    fn ends(&self) -> (u128, u128) {
        let (start, width) = number(self.address);
        let mask = u128::MAX.checked_shr(128 - (width - self.bits)).unwrap_or(0);
        let (first, last) = (start & !mask, start | mask);
        match width == 32 && last - first > 1 {
            true => (first + 1, last - 1),
            false => (first, last),
        }
    }
}

/// An address of the option `hosts`, without a port if the URL's is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct HostAddress {
    ip: IpAddr,
    port: Option<u16>,
}

/// The options `hosts` and `blacklistIPs`.
#[derive(Debug, Default)]
pub struct AddressOptions {
    /// By names, with a port or without.
    hosts: BTreeMap<String, HostAddress>,
    /// By the ends of names, for `*.example.com`.
    host_ends: Vec<(String, HostAddress)>,
    blacklist: Vec<Subnet>,
    /// Names whose addresses are all in the blacklist.
    refused: Mutex<BTreeSet<String>>,
}

impl PartialEq for AddressOptions {
    fn eq(&self, other: &AddressOptions) -> bool {
        (&self.hosts, &self.host_ends, &self.blacklist)
            == (&other.hosts, &other.host_ends, &other.blacklist)
    }
}

impl AddressOptions {
    /// Reads the pairs of `hosts` and the ranges of `blacklistIPs`.
    ///
    /// # Errors
    /// Fails if one of them is invalid, with the name of the option and the reason.
    pub(crate) fn read(
        hosts: &[(String, String)],
        blacklist: &[String],
    ) -> Result<AddressOptions, (&'static str, String)> {
        let mut all = AddressOptions::default();
        for (name, text) in hosts {
            let port = text.parse::<SocketAddr>().ok();
            let ip = port.map_or_else(|| text.trim_matches(['[', ']']).parse(), |it| Ok(it.ip()));
            let ip = ip.map_err(|_| {
                let fix = format!("write {name}: '192.0.2.1' or '192.0.2.1:80'");
                ("hosts", format!("\"{text}\" is not an address; {fix}"))
            })?;
            let to = HostAddress { ip, port: port.map(|it| it.port()) };
            let name = name.to_ascii_lowercase();
            match name.strip_prefix('*') {
                Some(end) => all.host_ends.push((end.to_owned(), to)),
                None => drop(all.hosts.insert(name, to)),
            }
        }
        // the longest matching suffix applies
        all.host_ends.sort_by_key(|(end, _)| std::cmp::Reverse(end.len()));
        let ranges: Result<Vec<Subnet>, String> =
            blacklist.iter().map(|text| Subnet::parse(text)).collect();
        all.blacklist = ranges.map_err(|why| ("blacklistIPs", why))?;
        Ok(all)
    }

    pub(crate) fn has_rules(&self) -> bool {
        !(self.hosts.is_empty() && self.host_ends.is_empty() && self.blacklist.is_empty())
    }

    /// Returns the error for a host that the blacklist refuses; `None` for a name before its
    /// lookup.
    pub(crate) fn refusal(&self, host: &str, port: u16) -> Option<String> {
        if self.blacklist.is_empty() {
            return None;
        }
        let literal = host.trim_matches(['[', ']']).parse().ok();
        if let Some(ip) = self.address(host, port).map(|it| it.ip()).or(literal) {
            let range = self.blacklist.iter().find(|range| range.contains(ip))?;
            return Some(format!("IP ({ip}) is in a blacklisted range ({})", range.text));
        }
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.contains(host).then(|| format!("IP of {host} is in a blacklisted range"))
    }
}

impl AddressRules for AddressOptions {
    fn address(&self, host: &str, port: u16) -> Option<SocketAddr> {
        let host = host.trim_matches(['[', ']']).to_ascii_lowercase();
        let exact = self.hosts.get(&format!("{host}:{port}")).or_else(|| self.hosts.get(&host));
        let found = exact.or_else(|| {
            self.host_ends.iter().find(|(end, _)| host.ends_with(end)).map(|(_, to)| to)
        });
        found.map(|to| SocketAddr::new(to.ip, to.port.unwrap_or(port)))
    }

    fn permits(&self, address: IpAddr) -> bool {
        !self.blacklist.iter().any(|range| range.contains(address))
    }

    fn exclude(&self, host: &str) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.insert(host.to_owned());
    }
}

/// Reads `localIPs`: addresses, ranges `a-b` and subnets, separated by commas. An address that is
/// given twice counts once.
///
/// # Errors
/// Fails if the text is not a list of addresses, or of too many; the text states why.
pub(crate) fn local_addresses(text: &str) -> Result<Vec<IpAddr>, String> {
    let wrong = |part: &str| {
        format!(
            "\"{part}\" is not an address; write one like 192.0.2.1, 192.0.2.1-192.0.2.9 or \
                 192.0.2.0/28"
        )
    };
    let (mut all, mut known) = (Vec::new(), BTreeSet::new());
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (first, last, like) = match part.split_once('-') {
            Some((first, last)) => {
                let first: IpAddr = first.trim().parse().map_err(|_| wrong(part))?;
                let last: IpAddr = last.trim().parse().map_err(|_| wrong(part))?;
                if first.is_ipv4() != last.is_ipv4() || first > last {
                    return Err(wrong(part));
                }
                (number(first).0, number(last).0, first)
            }
            None => {
                let range = Subnet::parse(part).map_err(|_| wrong(part))?;
                let (first, last) = range.ends();
                (first, last, range.address)
            }
        };
        if last - first >= LOCAL_MAX - all.len() as u128 {
            return Err(format!("\"{part}\": a test uses at most {LOCAL_MAX} local addresses"));
        }
        let addresses = (first..=last).map(|it| address(it, like));
        all.extend(addresses.filter(|it| known.insert(*it)));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(all: &[(&str, &str)]) -> Vec<(String, String)> {
        all.iter().map(|(name, to)| ((*name).to_owned(), (*to).to_owned())).collect()
    }

    #[test]
    fn hosts_replace_names_and_ports() {
        let hosts = pairs(&[
            ("shop.test", "192.0.2.1"),
            ("shop.test:443", "192.0.2.2:8443"),
            ("*.test", "[2001:db8::1]:90"),
            ("*.eu.test", "2001:db8::2"),
        ]);
        let rules = AddressOptions::read(&hosts, &[]).unwrap();
        let at = |host: &str, port| rules.address(host, port).map(|it| it.to_string());
        assert_eq!(at("SHOP.test", 80).as_deref(), Some("192.0.2.1:80"));
        assert_eq!(at("shop.test", 443).as_deref(), Some("192.0.2.2:8443"));
        assert_eq!(at("a.test", 80).as_deref(), Some("[2001:db8::1]:90"));
        assert_eq!(at("a.eu.test", 80).as_deref(), Some("[2001:db8::2]:80"));
        assert_eq!(at("test", 80), None);
        let (_, why) = AddressOptions::read(&pairs(&[("a", "b")]), &[]).unwrap_err();
        assert!(why.contains("\"b\" is not an address; write a:"), "{why}");
    }

    #[test]
    fn addresses_of_a_blacklist_are_refused() {
        let list = ["10.0.0.0/8", "192.0.2.7", "2001:db8::/32"].map(str::to_owned);
        let hosts = pairs(&[("inner.test", "10.1.2.3")]);
        let rules = AddressOptions::read(&hosts, &list).unwrap();
        let refused = |host: &str| rules.refusal(host, 80);
        let text = "IP (10.1.2.3) is in a blacklisted range (10.0.0.0/8)";
        assert_eq!(refused("inner.test").as_deref(), Some(text));
        assert!(refused("192.0.2.7").is_some() && refused("192.0.2.8").is_none());
        assert!(refused("[2001:db8:1::]").is_some() && refused("name.test").is_none());
        let permits = |address: &str| rules.permits(address.parse().unwrap());
        assert!(!permits("10.9.9.9") && permits("192.0.2.8"));
        // a name is refused when none of its addresses is permitted
        assert!(refused("name.test").is_none());
        rules.exclude("name.test");
        assert!(refused("name.test").is_some());
        for bad in ["10.0.0.0/33", "x", "10.0.0.0/-1"] {
            assert!(AddressOptions::read(&[], &[bad.to_owned()]).is_err(), "{bad}");
        }
        let all = AddressOptions::read(&[], &["0.0.0.0/0".to_owned()]).unwrap();
        assert!(all.refusal("203.0.113.1", 80).is_some());
    }

    #[test]
    fn local_addresses_are_lists_of_ranges() {
        let list = |text: &str| {
            local_addresses(text).map(|all| all.iter().map(IpAddr::to_string).collect::<Vec<_>>())
        };
        let all = ["127.0.0.2", "127.0.0.3", "127.0.1.1", "127.0.1.2", "127.0.2.1"];
        assert_eq!(list("127.0.0.2-127.0.0.3,127.0.1.0/30, 127.0.2.1").unwrap(), all);
        assert_eq!(list("127.0.0.0/31, 127.0.0.1").unwrap(), ["127.0.0.0", "127.0.0.1"]);
        for bad in ["x", "127.0.0.3-127.0.0.2", "::1-127.0.0.1", "10.0.0.0/8", "::/0"] {
            assert!(list(bad).is_err(), "{bad}");
        }
    }
}
