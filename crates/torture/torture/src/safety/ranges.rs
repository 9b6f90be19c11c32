//! Addresses of third-party machines in front of servers: a CDN's or a hosting provider's. The user
//! supplies them; published lists of providers can be pasted.
//!
//! One line each: `203.0.113.0/24 Example CDN`. Empty lines and text after `#` are ignored.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Maximum number of ranges in a list, and size of a provider's name in bytes.
pub const RANGES_MAX: usize = 20_000;
const NAME_MAX: usize = 120;

/// Owners of addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranges {
    all: Vec<(AddressRange, String)>,
}

/// Addresses with a common prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct AddressRange {
    first: IpAddr,
    bits: u8,
}

impl Ranges {
    /// # Errors
    /// Fails with the problem, with the line starting at 1.
    pub fn parse(text: &str) -> Result<Ranges, String> {
        let mut all = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let range = line.split('#').next().unwrap_or_default().trim();
            if range.is_empty() {
                continue;
            }
            if all.len() == RANGES_MAX {
                return Err(format!("more than {RANGES_MAX} ranges"));
            }
            all.push(entry(range).map_err(|why| format!("line {}: {why}", index + 1))?);
        }
        Ok(Ranges { all })
    }

    /// Returns the owner of an address in any form; the first matching line decides.
    pub fn provider(&self, address: IpAddr) -> Option<&str> {
        let plain = unmapped(address);
        let found = self.all.iter().find(|(range, _)| range.holds(plain));
        found.map(|(_, name)| name.as_str())
    }
}

impl AddressRange {
    fn holds(self, address: IpAddr) -> bool {
        match (self.first, address) {
            (IpAddr::V4(first), IpAddr::V4(address)) => {
                let apart = u32::from(first) ^ u32::from(address);
                apart.checked_shr(32 - u32::from(self.bits)).unwrap_or(0) == 0
            }
            (IpAddr::V6(first), IpAddr::V6(address)) => {
                let apart = u128::from(first) ^ u128::from(address);
                apart.checked_shr(128 - u32::from(self.bits)).unwrap_or(0) == 0
            }
            _ => false,
        }
    }
}

/// Converts an IPv4-mapped IPv6 address to IPv4 (RFC 4291 section 2.5.5.2).
fn unmapped(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(inner) => inner.to_ipv4_mapped().map_or(address, IpAddr::V4),
        IpAddr::V4(_) => address,
    }
}

fn entry(line: &str) -> Result<(AddressRange, String), String> {
    let (range, name) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let name = name.trim();
    let printable = name.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
    if name.is_empty() || name.len() > NAME_MAX || !printable {
        return Err(format!(
            "the provider is missing; write {} and a name of printable ASCII, at most {NAME_MAX} \
            bytes",
            units::quoted(range)
        ));
    }
    let wrong = || {
        let quoted = units::quoted(range);
        format!(
            "{quoted} is not a range of addresses: write one like 203.0.113.0/24 or 2001:db8::/32"
        )
    };
    let (first, bits) = range.split_once('/').ok_or_else(wrong)?;
    let first: IpAddr = first.parse().map_err(|_| wrong())?;
    let most = if first.is_ipv4() { 32 } else { 128 };
    let bits = bits.parse::<u8>().ok().filter(|bits| *bits <= most).ok_or_else(wrong)?;
    let found = AddressRange { first, bits };
    if !found.is_whole() {
        return Err(format!("{} has bits set after the first {bits}", units::quoted(range)));
    }
    Ok((found, name.to_owned()))
}

impl AddressRange {
    /// Returns whether no bits are set after the prefix: otherwise a digit is wrong.
    fn is_whole(self) -> bool {
        match self.first {
            IpAddr::V4(first) => {
                let behind = u32::MAX.checked_shr(u32::from(self.bits)).unwrap_or(0);
                Ipv4Addr::from(u32::from(first) & behind).is_unspecified()
            }
            IpAddr::V6(first) => {
                let behind = u128::MAX.checked_shr(u32::from(self.bits)).unwrap_or(0);
                Ipv6Addr::from(u128::from(first) & behind).is_unspecified()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_match_ranges() {
        let text = "# as published\n203.0.113.0/24 Example CDN\n203.0.113.9/32  Nobody # later\n\n\
                    2001:db8::/32 Example CDN\n10.0.0.0/8 a host\n198.51.100.0/31 two\n";
        let ranges = Ranges::parse(text).unwrap();
        for (address, provider) in [
            ("203.0.113.0", Some("Example CDN")),
            ("203.0.113.9", Some("Example CDN")),
            ("203.0.114.0", None),
            ("::ffff:203.0.113.9", Some("Example CDN")),
            ("10.255.0.1", Some("a host")),
            ("198.51.100.1", Some("two")),
            ("198.51.100.2", None),
            ("2001:db8:1::1", Some("Example CDN")),
            ("2001:db9::", None),
        ] {
            assert_eq!(ranges.provider(address.parse().unwrap()), provider, "{address}");
        }
        let all = Ranges::parse("0.0.0.0/0 everybody\n::/0 everybody").unwrap();
        assert_eq!(all.provider("8.8.8.8".parse().unwrap()), Some("everybody"));
        assert_eq!(all.provider("2000::1".parse().unwrap()), Some("everybody"));
        assert_eq!(Ranges::default().provider("8.8.8.8".parse().unwrap()), None);
    }

    #[test]
    fn invalid_ranges_are_reported_with_their_line() {
        for (text, part) in [
            ("1.2.3.4/24 x", "line 1: \"1.2.3.4/24\" has bits set after the first 24"),
            ("\n1.2.3.0/33 x", "line 2: \"1.2.3.0/33\" is not a range"),
            ("1.2.3.0 x", "is not a range of addresses"),
            ("::/129 x", "is not a range of addresses"),
            ("1.2.3.0/24", "the provider is missing"),
            ("1.2.3.0/24 \u{7}", "the provider is missing"),
        ] {
            let why = Ranges::parse(text).unwrap_err();
            assert!(why.contains(part), "{why}");
        }
        let long = "1.2.3.0/24 x\n".repeat(RANGES_MAX + 1);
        assert!(Ranges::parse(&long).unwrap_err().contains("more than 20000"));
    }
}
