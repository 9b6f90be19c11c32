//! ND for our IPv6 addresses (RFC 4861): replies to solicitations, and solicitations for next hops.
//! Without I/O and without a clock.

use super::link::{ETHERNET_HEAD, LinkFrame, Mac, head};
use super::neighbors::Question;
use std::net::{IpAddr, Ipv6Addr};
use tcp::{IPV6_HEAD, checksum};

const IPV6: [u8; 2] = [0x86, 0xdd];
const ICMPV6: u8 = 58;
/// The hop limit of a message that no router has forwarded (section 7.1.1).
const ON_LINK_HOPS: u8 = 255;
const SOLICITATION: u8 = 135;
const ADVERTISEMENT: u8 = 136;
/// Flags of an advertisement: solicited, override.
const SOLICITED: u8 = 0x40;
const OVERRIDE: u8 = 0x20;
/// Options: source and target link-layer address.
const SOURCE: u8 = 1;
const TARGET: u8 = 2;
/// Bytes of a message without options.
const MESSAGE: usize = 24;
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// Our side of the link.
#[derive(Debug)]
pub(crate) struct NdSide {
    ours: Mac,
    first: Ipv6Addr,
    /// Number of addresses from the first on.
    count: u32,
}

/// Returns the solicited-node multicast address (RFC 4291 section 2.7.1).
fn solicited_node(address: Ipv6Addr) -> Ipv6Addr {
    let bits = address.to_bits() & 0xff_ffff;
    Ipv6Addr::from_bits(0xff02_0000_0000_0000_0000_0001_ff00_0000 | bits)
}

/// Returns the Ethernet address of a multicast group (RFC 2464 section 7).
fn group(address: Ipv6Addr) -> Mac {
    let [.., a, b, c, d] = address.octets();
    Mac([0x33, 0x33, a, b, c, d])
}

/// A message: type, flags and target.
struct NdMessage {
    kind: u8,
    flags: u8,
    target: Ipv6Addr,
    /// The option with our Ethernet address.
    option: Option<u8>,
}

impl NdSide {
    pub(crate) fn new(ours: Mac, first: Ipv6Addr, count: u32) -> NdSide {
        NdSide { ours, first, count }
    }

    fn owns(&self, address: Ipv6Addr) -> bool {
        let offset = address.to_bits().wrapping_sub(self.first.to_bits());
        offset < u128::from(self.count)
    }

    /// Parses a frame.
    pub(crate) fn parse<'a>(&self, frame: &'a [u8]) -> LinkFrame<'a> {
        let Some((before, body)) = frame.split_at_checked(ETHERNET_HEAD) else {
            return LinkFrame::Nothing;
        };
        if before[12..] != IPV6 {
            return LinkFrame::Nothing;
        }
        let Some(ip) = body.first_chunk::<IPV6_HEAD>() else { return LinkFrame::Nothing };
        let length = usize::from(u16::from_be_bytes([ip[4], ip[5]]));
        let message = body.get(IPV6_HEAD..IPV6_HEAD + length);
        let kind = message.and_then(|message| message.first());
        match (ip[6], kind, message) {
            (ICMPV6, Some(&(SOLICITATION | ADVERTISEMENT)), Some(message)) => {
                let [.., a, b, c, d, e, f] = *before.first_chunk::<12>().unwrap_or(&[0; 12]);
                self.parse_message(ip, message, Mac([a, b, c, d, e, f]))
                    .unwrap_or(LinkFrame::Nothing)
            }
            _ => LinkFrame::Packet(body),
        }
    }

    /// Returns `None` for an invalid or irrelevant message.
    fn parse_message(
        &self,
        ip: &[u8; IPV6_HEAD],
        message: &[u8],
        sender: Mac,
    ) -> Option<LinkFrame<'static>> {
        let address = |bytes: &[u8], at: usize| {
            bytes.get(at..)?.first_chunk().map(|octets| Ipv6Addr::from_octets(*octets))
        };
        let from = address(ip, 8)?;
        let to = address(ip, 24)?;
        let kind = message[0];
        let code = *message.get(1)?;
        let target = address(message, 8)?;
        let whole = checksum(from.into(), to.into(), ICMPV6, message) == 0;
        let mac = mac_option(
            message.get(MESSAGE..)?,
            if kind == SOLICITATION { SOURCE } else { TARGET },
        )?;
        let mac = mac.unwrap_or(sender);
        // our own frames may return; multicast addresses belong to no one
        let strange = mac == self.ours || mac.is_group() || target.is_multicast();
        if ip[7] != ON_LINK_HOPS || code != 0 || !whole || strange {
            return None;
        }
        if self.owns(from) {
            return Some(LinkFrame::Taken(from.into(), mac));
        }
        if kind == ADVERTISEMENT {
            return Some(match self.owns(target) {
                true => LinkFrame::Taken(target.into(), mac),
                false => LinkFrame::Neighbor(target.into(), mac, None),
            });
        }
        let answer = self.owns(target).then(|| self.answer(target, from, mac));
        Some(LinkFrame::Neighbor(from.into(), mac, answer))
    }

    /// Returns the reply, addressed to all nodes if the sender has no address yet: it is about to
    /// use this one (RFC 4862 section 5.4.3).
    fn answer(&self, target: Ipv6Addr, to: Ipv6Addr, at: Mac) -> Vec<u8> {
        let (flags, to, at) = match to.is_unspecified() {
            true => (OVERRIDE, ALL_NODES, group(ALL_NODES)),
            false => (SOLICITED | OVERRIDE, to, at),
        };
        let message = NdMessage { kind: ADVERTISEMENT, flags, target, option: Some(TARGET) };
        self.frame(target, (to, at), &message)
    }

    /// Returns a solicitation for the address of a next hop, from our first address.
    pub(crate) fn question(&self, question: Question) -> Option<Vec<u8>> {
        let IpAddr::V6(target) = question.hop else { return None };
        let all = solicited_node(target);
        let to = question.at.map_or((all, group(all)), |at| (target, at));
        let message = NdMessage { kind: SOLICITATION, flags: 0, target, option: Some(SOURCE) };
        Some(self.frame(self.first, to, &message))
    }

    /// Returns a probe that checks whether one of our addresses is in use (RFC 4862 section 5.4.2).
    pub(crate) fn probe(&self, address: Ipv6Addr) -> Vec<u8> {
        let all = solicited_node(address);
        let message = NdMessage { kind: SOLICITATION, flags: 0, target: address, option: None };
        self.frame(Ipv6Addr::UNSPECIFIED, (all, group(all)), &message)
    }

    /// Returns an announcement of an address of ours (RFC 4861 section 7.2.6).
    pub(crate) fn announcement(&self, address: Ipv6Addr) -> Vec<u8> {
        let option = Some(TARGET);
        let message = NdMessage { kind: ADVERTISEMENT, flags: OVERRIDE, target: address, option };
        self.frame(address, (ALL_NODES, group(ALL_NODES)), &message)
    }

    fn frame(&self, from: Ipv6Addr, (to, at): (Ipv6Addr, Mac), message: &NdMessage) -> Vec<u8> {
        let mut body = vec![message.kind, 0, 0, 0, message.flags, 0, 0, 0];
        body.extend(message.target.octets());
        if let Some(option) = message.option {
            // in units of 8 bytes
            body.extend([option, 1]);
            body.extend(self.ours.0);
        }
        let sum = checksum(from.into(), to.into(), ICMPV6, &body);
        body[2..4].copy_from_slice(&sum.to_be_bytes());
        let length = (body.len() as u16).to_be_bytes();
        let mut frame = self.head(at).to_vec();
        frame.extend([0x60, 0, 0, 0, length[0], length[1], ICMPV6, ON_LINK_HOPS]);
        frame.extend(from.octets());
        frame.extend(to.octets());
        frame.extend(body);
        frame
    }

    /// Returns the Ethernet header of an IPv6 packet to this hop.
    pub(crate) fn head(&self, to: Mac) -> [u8; ETHERNET_HEAD] {
        head(to, self.ours, IPV6)
    }
}

/// Returns the Ethernet address in the option of this type. `None` if the options are malformed
/// (section 7.1.1).
fn mac_option(mut options: &[u8], wanted: u8) -> Option<Option<Mac>> {
    let mut found = None;
    while let [kind, units, ..] = *options {
        let option = options.get(..usize::from(units) * 8).filter(|option| !option.is_empty())?;
        if kind == wanted {
            found = option.get(2..).and_then(|bytes| bytes.first_chunk()).map(|mac| Mac(*mac));
        }
        options = &options[option.len()..];
    }
    options.is_empty().then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: Mac = Mac([2, 0, 0, 0, 0, 1]);
    const THEIRS: Mac = Mac([2, 0, 0, 0, 0, 9]);

    fn address(text: &str) -> Ipv6Addr {
        text.parse().expect("an address")
    }

    fn ours() -> NdSide {
        NdSide::new(OURS, address("fd00:9::1"), 14)
    }

    fn theirs() -> NdSide {
        NdSide::new(THEIRS, address("fe80::9"), 1)
    }

    /// Returns a frame as text.
    fn describe(frame: &[u8]) -> String {
        let mac = |at: usize| Mac(frame[at..at + 6].try_into().expect("6 bytes"));
        let address = |at: usize| Ipv6Addr::from_octets(frame[at..at + 16].try_into().expect("16"));
        let (from, to) = (address(22), address(38));
        let sum = checksum(from.into(), to.into(), ICMPV6, &frame[54..]);
        let option = match frame.get(78..) {
            Some([kind, 1, a, b, c, d, e, f]) => {
                format!("option {kind}: {}", Mac([*a, *b, *c, *d, *e, *f]))
            }
            _ => format!("{} bytes of options", frame.len() - 78),
        };
        format!(
            "{} to {}, kind {}, {from} to {to}, {} hops, {} {:02x} {}, {option}{}\n",
            mac(6),
            mac(0),
            units::hex(&frame[12..14]),
            frame[21],
            frame[54],
            frame[58],
            address(62),
            if sum == 0 { "" } else { ", wrong sum" }
        )
    }

    #[test]
    fn outgoing_messages_are_valid() {
        let we = ours();
        let question = |at| Question { hop: address("fe80::1:2:3").into(), at };
        let sent = [
            we.probe(address("fd00:9::5")),
            we.announcement(address("fd00:9::5")),
            we.question(question(None)).expect("it is of IPv6"),
            we.question(question(Some(THEIRS))).expect("it is of IPv6"),
        ];
        assert_eq!(
            sent.map(|frame| describe(&frame)).concat(),
            "02:00:00:00:00:01 to 33:33:ff:00:00:05, kind 86dd, :: to ff02::1:ff00:5, 255 hops, 135 00 \
             fd00:9::5, 0 bytes of options\n\
             02:00:00:00:00:01 to 33:33:00:00:00:01, kind 86dd, fd00:9::5 to ff02::1, 255 hops, 136 20 \
             fd00:9::5, option 2: 02:00:00:00:00:01\n\
             02:00:00:00:00:01 to 33:33:ff:02:00:03, kind 86dd, fd00:9::1 to ff02::1:ff02:3, 255 hops, \
             135 00 fe80::1:2:3, option 1: 02:00:00:00:00:01\n\
             02:00:00:00:00:01 to 02:00:00:00:00:09, kind 86dd, fd00:9::1 to fe80::1:2:3, 255 hops, 135 \
             00 fe80::1:2:3, option 1: 02:00:00:00:00:01\n"
        );
    }

    #[test]
    fn requests_for_our_addresses_are_answered() {
        let (we, they) = (ours(), theirs());
        let asked = |target: &str| {
            let question = Question { hop: address(target).into(), at: None };
            they.question(question).expect("it is of IPv6")
        };
        let parse = |frame: &[u8]| match we.parse(frame) {
            LinkFrame::Neighbor(who, mac, Some(answer)) => {
                format!("{who} at {mac}: {}", describe(&answer))
            }
            LinkFrame::Neighbor(who, mac, None) => format!("{who} at {mac}\n"),
            other => format!("{other:?}\n"),
        };
        let sent = [
            parse(&asked("fd00:9::1")),
            parse(&asked("fd00:9::e")),
            parse(&asked("fd00:9::f")),
            // a host about to use one of ours
            parse(&they.probe(address("fd00:9::5"))),
            parse(&they.announcement(address("fe80::9"))),
        ];
        assert_eq!(
            sent.concat(),
            "fe80::9 at 02:00:00:00:00:09: 02:00:00:00:00:01 to 02:00:00:00:00:09, kind 86dd, fd00:9::1 \
             to fe80::9, 255 hops, 136 60 fd00:9::1, option 2: 02:00:00:00:00:01\n\
             fe80::9 at 02:00:00:00:00:09: 02:00:00:00:00:01 to 02:00:00:00:00:09, kind 86dd, fd00:9::e \
             to fe80::9, 255 hops, 136 60 fd00:9::e, option 2: 02:00:00:00:00:01\n\
             fe80::9 at 02:00:00:00:00:09\n\
             :: at 02:00:00:00:00:09: 02:00:00:00:00:01 to 33:33:00:00:00:01, kind 86dd, fd00:9::5 to \
             ff02::1, 255 hops, 136 20 fd00:9::5, option 2: 02:00:00:00:00:01\n\
             fe80::9 at 02:00:00:00:00:09\n"
        );
    }

    #[test]
    fn an_address_conflict_is_reported() {
        let we = ours();
        let shared = address("fd00:9::5");
        let they = NdSide::new(THEIRS, shared, 1);
        let taken = LinkFrame::Taken(shared.into(), THEIRS);
        let question = Question { hop: address("fd00:9::1:1").into(), at: None };
        assert_eq!(we.parse(&they.announcement(shared)), taken);
        assert_eq!(we.parse(&they.question(question).expect("it is of IPv6")), taken);
        // a reply about an address of its own
        let message = NdMessage {
            kind: ADVERTISEMENT,
            flags: SOLICITED,
            target: address("fe80::9"),
            option: Some(TARGET),
        };
        assert_eq!(we.parse(&they.frame(shared, (address("fe80::1"), OURS), &message)), taken);
        // our own frames
        assert_eq!(we.parse(&we.announcement(shared)), LinkFrame::Nothing);
    }

    #[test]
    fn invalid_messages_are_ignored() {
        let (we, they) = (ours(), theirs());
        let question = Question { hop: address("fd00:9::1").into(), at: None };
        let whole = they.question(question).expect("it is of IPv6");
        assert!(matches!(we.parse(&whole), LinkFrame::Neighbor(.., Some(_))));
        // links pad short frames
        let padded = [&whole[..], &[0; 9]].concat();
        assert!(matches!(we.parse(&padded), LinkFrame::Neighbor(.., Some(_))));
        for length in 0..whole.len() {
            let parsed = we.parse(&whole[..length]);
            // TCP handles truncated packets in its own way
            let nothing = matches!(parsed, LinkFrame::Nothing | LinkFrame::Packet(_));
            assert!(nothing, "{length} bytes: {parsed:?}");
        }
        // hop limit, checksum, an option of length zero
        for (at, byte) in [(21, 64), (56, 0), (79, 0)] {
            let mut strange = whole.clone();
            strange[at] = byte;
            assert_eq!(we.parse(&strange), LinkFrame::Nothing, "byte {at}");
        }
        assert_eq!(mac_option(&[1, 0, 2, 3, 4, 5, 6, 7], SOURCE), None);
        assert_eq!(mac_option(&[1, 1, 2, 3, 4, 5, 6], SOURCE), None);
        assert_eq!(mac_option(&[14, 1, 2, 3, 4, 5, 6, 7], SOURCE), Some(None));
    }

    #[test]
    fn other_packets_belong_to_tcp() {
        let mut frame = ours().probe(address("fd00:9::5"));
        frame[54] = 2;
        let parsed = ours().parse(&frame);
        assert_eq!(parsed, LinkFrame::Packet(&frame[ETHERNET_HEAD..]));
    }
}
