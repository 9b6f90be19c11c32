//! Information of the kernel about devices and routes, and settings of our devices: queue length,
//! IPv6 addresses and routes (rtnetlink(7)).

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A device in the calling thread's network namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkFacts {
    /// Index of the device.
    pub index: u32,
    pub is_loopback: bool,
    pub is_ethernet: bool,
    pub is_up: bool,
    /// MTU of the device in bytes.
    pub mtu: u32,
    /// Ethernet address of the device.
    pub mac: [u8; 6],
    /// The kind of a device that is not hardware: "veth".
    pub kind: String,
}

/// The route of packets to an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteFacts {
    /// Packets stay on this host.
    Local,
    By(IpAddr),
    /// The destination is directly on the link.
    OnLink,
}

const RTM_NEWLINK: u16 = 16;
const RTM_GETLINK: u16 = 18;
const RTM_SETLINK: u16 = 19;
const RTM_NEWADDR: u16 = 20;
const RTM_NEWROUTE: u16 = 24;
const RTM_GETROUTE: u16 = 26;
const NLMSG_ERROR: u16 = 2;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
const NLM_F_CREATE: u16 = 0x400;
const HEAD: usize = 16;
/// Bytes of `struct ifinfomsg` and of `struct rtmsg`.
const LINK_HEAD: usize = 16;
const ROUTE_HEAD: usize = 12;
/// More than the length of a reply.
const ANSWER_MAX: usize = 64 * 1_024;

const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_TXQLEN: u16 = 13;
const IFLA_LINKINFO: u16 = 18;
const IFLA_INFO_KIND: u16 = 1;
const ARPHRD_ETHER: u16 = 1;
const IFF_UP: u32 = 1;
const IFF_LOOPBACK: u32 = 8;
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
/// A gateway of another family than the destination: `struct rtvia`, the family and the address.
const RTA_VIA: u16 = 18;
const RTN_UNICAST: u8 = 1;
const RTN_LOCAL: u8 = 2;
const RT_TABLE_MAIN: u8 = 254;
const RTPROT_STATIC: u8 = 4;
const IFA_LOCAL: u16 = 2;
const IFA_FLAGS: u16 = 8;
const IFA_F_NODAD: u32 = 2;

/// Returns information about a device.
///
/// # Errors
/// Fails with the kernel's error: `ENODEV` if there is no device of this name.
pub fn link(name: &str) -> io::Result<LinkFacts> {
    let text = [name.as_bytes(), &[0]].concat();
    let body = [&[0; LINK_HEAD][..], &attribute(IFLA_IFNAME, &text)].concat();
    let answer = send_netlink(RTM_GETLINK, 0, &body)?;
    read_link(&answer).ok_or_else(unexpected_answer)
}

/// Returns the route of packets to `address`, over the device with this index if given.
///
/// # Errors
/// Fails with the kernel's error if there is no route.
pub fn route(address: IpAddr, device: Option<u32>) -> io::Result<RouteFacts> {
    // family, destination prefix length, and zeros
    let (family, octets) = match address {
        IpAddr::V4(address) => (libc::AF_INET, address.octets().to_vec()),
        IpAddr::V6(address) => (libc::AF_INET6, address.octets().to_vec()),
    };
    let mut body = vec![family as u8, octets.len() as u8 * 8];
    body.resize(ROUTE_HEAD, 0);
    body.extend(attribute(RTA_DST, &octets));
    if let Some(device) = device {
        body.extend(attribute(RTA_OIF, &device.to_ne_bytes()));
    }
    let answer = send_netlink(RTM_GETROUTE, 0, &body)?;
    read_route(&answer).ok_or_else(unexpected_answer)
}

/// Sets the queue length of a device. Its ioctl needs more than the rights in a user namespace.
///
/// # Errors
/// Fails with the kernel's error.
pub(crate) fn set_queue_length(device: i32, packets: u32) -> io::Result<()> {
    // family and type, index, flags and change mask
    let head = [&[0; 4][..], &device.to_ne_bytes(), &[0; 8]].concat();
    let body = [head, attribute(IFLA_TXQLEN, &packets.to_ne_bytes())].concat();
    // an error of 0 is an acknowledgment
    send_netlink(RTM_SETLINK, NLM_F_ACK, &body).map(|_| ())
}

/// Assigns an IPv6 address to a device, without duplicate address detection.
///
/// # Errors
/// Fails with the kernel's error.
pub(crate) fn add_address(device: i32, address: Ipv6Addr) -> io::Result<()> {
    // family, prefix length, flags, scope, device
    let head = [&[libc::AF_INET6 as u8, 128, 0, 0][..], &device.to_ne_bytes()].concat();
    let flags = attribute(IFA_FLAGS, &IFA_F_NODAD.to_ne_bytes());
    let body = [head, attribute(IFA_LOCAL, &address.octets()), flags].concat();
    send_netlink(RTM_NEWADDR, NLM_F_ACK | NLM_F_CREATE, &body).map(|_| ())
}

/// Routes the IPv6 addresses of this prefix over a device.
///
/// # Errors
/// Fails with the kernel's error.
pub(crate) fn add_route(device: i32, (to, bits): (Ipv6Addr, u8)) -> io::Result<()> {
    // family, prefix lengths, type of service, table, protocol, scope, type, flags
    let head = [
        libc::AF_INET6 as u8,
        bits,
        0,
        0,
        RT_TABLE_MAIN,
        RTPROT_STATIC,
        0,
        RTN_UNICAST,
        0,
        0,
        0,
        0,
    ];
    let to = attribute(RTA_DST, &to.octets());
    let over = attribute(RTA_OIF, &device.to_ne_bytes());
    let body = [&head[..], &to, &over].concat();
    send_netlink(RTM_NEWROUTE, NLM_F_ACK | NLM_F_CREATE, &body).map(|_| ())
}

fn unexpected_answer() -> io::Error {
    io::Error::other("the kernel's response cannot be parsed")
}

fn send_netlink(kind: u16, flags: u16, body: &[u8]) -> io::Result<Vec<u8>> {
    let family = AddressFamily::NETLINK;
    // without a protocol it is NETLINK_ROUTE, which is 0
    let socket = socket_with(family, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    rustix::io::write(&socket, &message(kind, flags, body))?;
    let mut answer = vec![0; ANSWER_MAX];
    let length = rustix::io::read(&socket, &mut answer[..])?;
    answer.truncate(length);
    match refusal(&answer) {
        Some(0) | None => Ok(answer),
        Some(error) => Err(io::Error::from_raw_os_error(error)),
    }
}

fn message(kind: u16, flags: u16, body: &[u8]) -> Vec<u8> {
    let length = (HEAD + body.len()) as u32;
    [
        &length.to_ne_bytes()[..],
        &kind.to_ne_bytes(),
        &(NLM_F_REQUEST | flags).to_ne_bytes(),
        // sequence number, sender
        &1_u32.to_ne_bytes(),
        &0_u32.to_ne_bytes(),
        body,
    ]
    .concat()
}

/// Encodes an attribute: length, type and value, padded to 4 bytes.
fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = (4 + value.len()) as u16;
    let mut bytes = [&length.to_ne_bytes()[..], &kind.to_ne_bytes(), value].concat();
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Returns the error number of a reply; 0 is an acknowledgment.
fn refusal(answer: &[u8]) -> Option<i32> {
    if half(answer, 4)? != NLMSG_ERROR {
        return None;
    }
    Some(word(answer, HEAD)?.cast_signed().wrapping_neg())
}

/// Iterates over consecutive attributes; the last one of a type is used.
fn attributes(mut rest: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(half(rest, 0)?);
        // the two highest bits are not part of the type
        let kind = half(rest, 2)? & 0x3fff;
        let value = rest.get(4..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

fn read_link(answer: &[u8]) -> Option<LinkFacts> {
    if half(answer, 4)? != RTM_NEWLINK {
        return None;
    }
    let body = answer.get(HEAD..)?;
    let flags = word(body, 8)?;
    let mut facts = LinkFacts {
        index: word(body, 4)?,
        is_loopback: flags & IFF_LOOPBACK != 0,
        is_ethernet: half(body, 2)? == ARPHRD_ETHER,
        is_up: flags & IFF_UP != 0,
        mtu: 0,
        mac: [0; 6],
        kind: String::new(),
    };
    for (kind, value) in attributes(body.get(LINK_HEAD..)?) {
        match kind {
            IFLA_ADDRESS => facts.mac = *value.first_chunk().unwrap_or(&[0; 6]),
            IFLA_MTU => facts.mtu = word(value, 0)?,
            IFLA_LINKINFO => {
                let name = attributes(value).find(|(kind, _)| *kind == IFLA_INFO_KIND);
                let name = name.map(|(_, name)| String::from_utf8_lossy(name).into_owned());
                facts.kind = name.unwrap_or_default().trim_end_matches('\0').to_owned();
            }
            _ => {}
        }
    }
    Some(facts)
}

fn read_route(answer: &[u8]) -> Option<RouteFacts> {
    if half(answer, 4)? != RTM_NEWROUTE {
        return None;
    }
    let body = answer.get(HEAD..)?;
    if *body.get(7)? == RTN_LOCAL {
        return Some(RouteFacts::Local);
    }
    let gateway = attributes(body.get(ROUTE_HEAD..)?).find_map(|(kind, value)| match kind {
        RTA_GATEWAY => Some(value),
        RTA_VIA => Some(value.get(2..).unwrap_or_default()),
        _ => None,
    });
    match gateway {
        Some(octets) => {
            let six = || octets.first_chunk().map(|octets| Ipv6Addr::from_octets(*octets).into());
            let four = || octets.first_chunk().map(|octets| Ipv4Addr::from_octets(*octets).into());
            Some(RouteFacts::By(six().or_else(four)?))
        }
        None => Some(RouteFacts::OnLink),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link_answer(flags: u32, attributes: &[Vec<u8>]) -> Vec<u8> {
        let head = [
            &[0, 0][..],
            &ARPHRD_ETHER.to_ne_bytes(),
            &7_u32.to_ne_bytes(),
            &flags.to_ne_bytes(),
            &[0; 4],
        ];
        message(RTM_NEWLINK, 0, &[head.concat(), attributes.concat()].concat())
    }

    #[test]
    fn a_device_is_read() {
        let info = [attribute(IFLA_INFO_KIND, b"veth\0"), attribute(2, &[1; 9])].concat();
        let answer = link_answer(
            IFF_UP,
            &[
                attribute(IFLA_IFNAME, b"eth0\0"),
                attribute(IFLA_MTU, &9_000_u32.to_ne_bytes()),
                attribute(IFLA_ADDRESS, &[2, 0, 0, 0, 0, 5]),
                // nested, as marked by newer kernels
                attribute(IFLA_LINKINFO | 0x8000, &info),
            ],
        );
        let facts = read_link(&answer).expect("an answer");
        assert_eq!(
            facts,
            LinkFacts {
                index: 7,
                is_loopback: false,
                is_ethernet: true,
                is_up: true,
                mtu: 9_000,
                mac: [2, 0, 0, 0, 0, 5],
                kind: "veth".to_owned(),
            }
        );
        for length in 0..answer.len() {
            // any truncation: no panic, and nothing parsed
            read_link(&answer[..length]);
        }
        assert_eq!(read_link(&answer[..HEAD + 11]), None);
        assert_eq!(read_route(&answer), None);
    }

    #[test]
    fn a_route_is_read() {
        let answer = |kind: u8, attributes: &[Vec<u8>]| {
            let mut body = vec![2, 32, 0, 0, 0, 0, 0, kind, 0, 0, 0, 0];
            body.extend(attributes.concat());
            message(RTM_NEWROUTE, 0, &body)
        };
        let via = attribute(RTA_GATEWAY, &[10, 0, 0, 1]);
        let out = attribute(RTA_OIF, &7_u32.to_ne_bytes());
        let routes = [
            read_route(&answer(1, &[out.clone(), via])),
            read_route(&answer(1, std::slice::from_ref(&out))),
            read_route(&answer(RTN_LOCAL, &[out])),
            read_route(&answer(1, &[attribute(RTA_GATEWAY, &[10])])),
        ];
        let by = RouteFacts::By(Ipv4Addr::new(10, 0, 0, 1).into());
        assert_eq!(routes, [Some(by), Some(RouteFacts::OnLink), Some(RouteFacts::Local), None]);
        let six = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
        let via = attribute(RTA_GATEWAY, &six.octets());
        assert_eq!(read_route(&answer(1, &[via])), Some(RouteFacts::By(six.into())));
        // to an IPv4 destination
        let family = (libc::AF_INET6 as u16).to_ne_bytes();
        let via = attribute(RTA_VIA, &[&family[..], &six.octets()].concat());
        assert_eq!(read_route(&answer(1, &[via])), Some(RouteFacts::By(six.into())));
        assert_eq!(read_route(&answer(1, &[attribute(RTA_VIA, &[10])])), None);
        let error = message(NLMSG_ERROR, 0, &(-19_i32).to_ne_bytes());
        assert_eq!((refusal(&error), read_route(&error)), (Some(19), None));
    }

    #[test]
    fn the_kernel_is_understood() {
        let loopback = link("lo").expect("every network has a loopback");
        assert!(loopback.is_loopback && loopback.mac == [0; 6] && loopback.index > 0);
        let none = link("no-such-device").expect_err("there is none");
        assert_eq!(none.raw_os_error(), Some(libc::ENODEV));
        assert_eq!(route(Ipv4Addr::LOCALHOST.into(), None).ok(), Some(RouteFacts::Local));
    }
}
