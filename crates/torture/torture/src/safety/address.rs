//! Classes of addresses, determined after unwrapping embedded IPv4 addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Owner class of an address, in increasing strictness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// This machine: 127/8, ::1, Unix sockets.
    Local,
    /// RFC 1918, RFC 4193, link-local.
    Private,
    /// Everything else, including shared address space (RFC 6598).
    Public,
    /// Never tested: cloud metadata services, multicast, broadcast, unspecified.
    Never,
}

impl Class {
    pub fn id(self) -> &'static str {
        match self {
            Class::Local => "local",
            Class::Private => "private",
            Class::Public => "public",
            Class::Never => "refused",
        }
    }
}

/// Ports of other protocols, as blocked by browsers (WHATWG fetch, "bad port"): a mail or database
/// server is not a web server.
pub const PORTS_REFUSED: [u16; 30] = [
    1, 7, 9, 11, 13, 17, 19, 21, 22, 23, 25, 53, 69, 110, 111, 119, 123, 135, 139, 143, 161, 179,
    389, 465, 587, 636, 993, 995, 6000, 6667,
];

/// Returns the class of an address. An embedded IPv4 address decides: mapped and compatible (RFC
/// 4291), NAT64 (RFC 6052), 6to4 (RFC 3056).
pub fn class(address: IpAddr) -> Class {
    match address {
        IpAddr::V4(address) => class_v4(address),
        IpAddr::V6(address) => class_v6(address),
    }
}

/// Returns the strictest class of all addresses of a name, or `Never` without any: no permission is
/// possible.
pub fn strictest(addresses: &[IpAddr]) -> Class {
    addresses.iter().map(|address| class(*address)).max().unwrap_or(Class::Never)
}

fn class_v4(address: Ipv4Addr) -> Class {
    let octets = address.octets();
    if is_metadata_v4(octets)
        || address.is_multicast()
        || address.is_broadcast()
        || octets[0] == 0
        || octets[0] >= 240
    {
        Class::Never
    } else if address.is_loopback() {
        Class::Local
    } else if address.is_private() || address.is_link_local() {
        Class::Private
    } else {
        Class::Public
    }
}

/// Returns whether this is a cloud metadata service: AWS, Azure, Google and others; Alibaba;
/// Oracle.
fn is_metadata_v4(octets: [u8; 4]) -> bool {
    matches!(
        octets,
        [169, 254, 169, 254] | [169, 254, 170, 2] | [100, 100, 100, 200] | [192, 0, 0, 192]
    )
}

fn class_v6(address: Ipv6Addr) -> Class {
    if address.is_loopback() {
        return Class::Local;
    }
    if let Some(inner) = embedded_ipv4(address) {
        return class_v4(inner);
    }
    let first = address.segments()[0];
    let metadata = address == Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);
    if metadata || address.is_unspecified() || address.is_multicast() {
        Class::Never
    } else if first & 0xfe00 == 0xfc00 || first & 0xffc0 == 0xfe80 {
        Class::Private
    } else {
        Class::Public
    }
}

/// Returns the embedded IPv4 address.
fn embedded_ipv4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let octets = address.octets();
    let four =
        |at: usize| Ipv4Addr::new(octets[at], octets[at + 1], octets[at + 2], octets[at + 3]);
    let segments = address.segments();
    match segments {
        // mapped ::ffff:a.b.c.d, and ::ffff:0:a.b.c.d (RFC 2765)
        [0, 0, 0, 0, 0, 0xffff, ..] | [0, 0, 0, 0, 0xffff, 0, ..] => Some(four(12)),
        // compatible ::a.b.c.d; :: and ::1 are ordinary addresses
        [0, 0, 0, 0, 0, 0, high, low] if high != 0 || low > 1 => Some(four(12)),
        // NAT64, well-known and local prefix
        [0x64, 0xff9b, 0, 0, 0, 0, ..] | [0x64, 0xff9b, 1, ..] => Some(four(12)),
        [0x2002, ..] => Some(four(2)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_classified_in_any_notation() {
        let table = [
            ("127.0.0.1", "local"),
            ("127.255.0.9", "local"),
            ("::1", "local"),
            ("::ffff:127.0.0.1", "local"),
            ("10.1.2.3", "private"),
            ("172.16.0.1", "private"),
            ("172.32.0.1", "public"),
            ("192.168.1.1", "private"),
            ("169.254.1.1", "private"),
            ("fd12::1", "private"),
            ("fe80::1", "private"),
            ("::ffff:10.0.0.1", "private"),
            ("64:ff9b::10.0.0.1", "private"),
            ("2002:a00:1::", "private"),
            ("::10.0.0.1", "private"),
            ("8.8.8.8", "public"),
            ("100.64.0.1", "public"),
            ("::ffff:8.8.8.8", "public"),
            ("64:ff9b::8.8.8.8", "public"),
            ("2002:808:808::1", "public"),
            ("2001:4860::1", "public"),
            ("192.0.2.1", "public"),
            ("169.254.169.254", "refused"),
            ("::ffff:169.254.169.254", "refused"),
            ("64:ff9b::169.254.169.254", "refused"),
            ("fd00:ec2::254", "refused"),
            ("100.100.100.200", "refused"),
            ("0.0.0.0", "refused"),
            ("::", "refused"),
            ("::ffff:0.0.0.0", "refused"),
            ("224.0.0.1", "refused"),
            ("255.255.255.255", "refused"),
            ("ff02::1", "refused"),
            ("240.0.0.1", "refused"),
        ];
        for (text, expected) in table {
            let address: IpAddr = text.parse().unwrap();
            assert_eq!(class(address).id(), expected, "{text}");
        }
    }

    #[test]
    fn the_strictest_address_of_a_name_counts() {
        let addresses: Vec<IpAddr> =
            ["127.0.0.1", "10.0.0.1", "8.8.8.8"].map(|text| text.parse().unwrap()).to_vec();
        assert_eq!(strictest(&addresses[..1]), Class::Local);
        assert_eq!(strictest(&addresses[..2]), Class::Private);
        assert_eq!(strictest(&addresses), Class::Public);
        assert_eq!(strictest(&[]), Class::Never);
    }
}
