//! ARP (RFC 826) for our IPv4 addresses: replies to requests, and requests for next hops. Without
//! I/O and without a clock.

use super::link::{ETHERNET_HEAD, LinkFrame, Mac, head};
use super::neighbors::Question;
use std::net::{IpAddr, Ipv4Addr};

/// Bytes of a frame with a request or reply.
const ARP_FRAME: usize = ETHERNET_HEAD + 28;
const IPV4: [u8; 2] = [0x08, 0x00];
const ARP: [u8; 2] = [0x08, 0x06];
/// Ethernet, IPv4, addresses of 6 and 4 bytes.
const KINDS: [u8; 6] = [0, 1, 0x08, 0x00, 6, 4];
const REQUEST: u8 = 1;
const REPLY: u8 = 2;
/// Our side of the link.
#[derive(Debug)]
pub(crate) struct ArpSide {
    ours: Mac,
    first: Ipv4Addr,
    /// Number of addresses from the first on.
    count: u32,
}

impl ArpSide {
    pub(crate) fn new(ours: Mac, first: Ipv4Addr, count: u32) -> ArpSide {
        ArpSide { ours, first, count }
    }

    fn owns(&self, address: Ipv4Addr) -> bool {
        address.to_bits().wrapping_sub(self.first.to_bits()) < self.count
    }

    /// Parses a frame.
    pub(crate) fn parse<'a>(&self, frame: &'a [u8]) -> LinkFrame<'a> {
        let Some((head, body)) = frame.split_at_checked(ETHERNET_HEAD) else {
            return LinkFrame::Nothing;
        };
        match [head[12], head[13]] {
            IPV4 => LinkFrame::Packet(body),
            ARP => self.parse_arp(body),
            _ => LinkFrame::Nothing,
        }
    }

    fn parse_arp(&self, body: &[u8]) -> LinkFrame<'static> {
        let Some(body) = body.first_chunk::<28>() else { return LinkFrame::Nothing };
        let address = |at: usize| Ipv4Addr::new(body[at], body[at + 1], body[at + 2], body[at + 3]);
        let [_, _, _, _, _, _, _, what, a, b, c, d, e, f, ..] = *body;
        let mac = Mac([a, b, c, d, e, f]);
        let from = address(14);
        let target = address(24);
        let is_arp = body[..6] == KINDS && body[6] == 0 && (what == REQUEST || what == REPLY);
        // our own frames may return; multicast addresses belong to no one (RFC 1812, 3.3.2)
        if !is_arp || mac == self.ours || mac.is_group() {
            return LinkFrame::Nothing;
        }
        if self.owns(from) {
            return LinkFrame::Taken(from.into(), mac);
        }
        let asks = what == REQUEST && self.owns(target);
        LinkFrame::Neighbor(
            from.into(),
            mac,
            asks.then(|| self.arp(REPLY, target, (mac, from), mac)),
        )
    }

    /// Returns a request for the address of a next hop, from our first address.
    pub(crate) fn question(&self, question: Question) -> Option<Vec<u8>> {
        let IpAddr::V4(hop) = question.hop else { return None };
        let to = question.at.unwrap_or(Mac::ALL);
        Some(self.arp(REQUEST, self.first, (Mac::UNKNOWN, hop), to))
    }

    /// Returns a probe whether one of our addresses is in use (RFC 5227 section 2.1.1).
    pub(crate) fn probe(&self, address: Ipv4Addr) -> Vec<u8> {
        self.arp(REQUEST, Ipv4Addr::UNSPECIFIED, (Mac::UNKNOWN, address), Mac::ALL)
    }

    /// Returns an announcement of an address of ours (RFC 5227 section 2.3).
    pub(crate) fn announcement(&self, address: Ipv4Addr) -> Vec<u8> {
        self.arp(REQUEST, address, (Mac::UNKNOWN, address), Mac::ALL)
    }

    fn arp(&self, what: u8, from: Ipv4Addr, of: (Mac, Ipv4Addr), to: Mac) -> Vec<u8> {
        let mut frame = vec![0; ARP_FRAME];
        frame[..ETHERNET_HEAD].copy_from_slice(&head(to, self.ours, ARP));
        frame[14..20].copy_from_slice(&KINDS);
        frame[21] = what;
        frame[22..28].copy_from_slice(&self.ours.0);
        frame[28..32].copy_from_slice(&from.octets());
        frame[32..38].copy_from_slice(&of.0.0);
        frame[38..].copy_from_slice(&of.1.octets());
        frame
    }

    /// Returns the Ethernet header of an IPv4 packet to this hop.
    pub(crate) fn head_of_packet(&self, to: Mac) -> [u8; ETHERNET_HEAD] {
        head(to, self.ours, IPV4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: Mac = Mac([2, 0, 0, 0, 0, 1]);
    const THEIRS: Mac = Mac([2, 0, 0, 0, 0, 9]);
    const GATEWAY: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
    const SERVER: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 7);

    fn ours() -> ArpSide {
        ArpSide::new(OURS, Ipv4Addr::new(10, 9, 0, 1), 14)
    }

    /// Returns the frames sent by the other side.
    fn theirs(what: u8, from: Ipv4Addr, target: [u8; 4]) -> Vec<u8> {
        let side = ArpSide::new(THEIRS, from, 1);
        side.arp(what, from, (Mac::UNKNOWN, target.into()), Mac::ALL)
    }

    /// Returns a frame as text.
    fn describe(frame: &[u8]) -> String {
        let mac = |at: usize| Mac(frame[at..at + 6].try_into().expect("6 bytes"));
        let address = |at: usize| Ipv4Addr::from_octets(frame[at..at + 4].try_into().expect("4"));
        let what = ["", "asks", "answers"][usize::from(frame[21])];
        let (to, from) = (mac(0), mac(6));
        format!(
            "{from} to {to}, kind {:02x}{:02x}: {} at {} {what} {} at {}",
            frame[12],
            frame[13],
            address(28),
            mac(22),
            address(38),
            mac(32)
        )
    }

    #[test]
    fn requests_for_our_addresses_are_answered() {
        let we = ours();
        let sent: String = [[10, 9, 0, 1], [10, 9, 0, 14], [10, 9, 0, 15], [192, 0, 2, 1]]
            .iter()
            .map(|target| match we.parse(&theirs(REQUEST, SERVER, *target)) {
                LinkFrame::Neighbor(from, _, None) => format!("{from} asks for somebody else\n"),
                LinkFrame::Neighbor(_, _, Some(answer)) => describe(&answer) + "\n",
                other => format!("{other:?}\n"),
            })
            .collect();
        assert_eq!(
            sent,
            "02:00:00:00:00:01 to 02:00:00:00:00:09, kind 0806: 10.9.0.1 at 02:00:00:00:00:01 answers \
             203.0.113.7 at 02:00:00:00:00:09\n\
             02:00:00:00:00:01 to 02:00:00:00:00:09, kind 0806: 10.9.0.14 at 02:00:00:00:00:01 \
             answers 203.0.113.7 at 02:00:00:00:00:09\n\
             203.0.113.7 asks for somebody else\n\
             203.0.113.7 asks for somebody else\n"
        );
    }

    #[test]
    fn hops_are_requested_by_broadcast_or_unicast() {
        let we = ours();
        let ask = |at| {
            let question = Question { hop: GATEWAY.into(), at };
            describe(&we.question(question).expect("it is of IPv4"))
        };
        assert_eq!(
            [ask(None), ask(Some(THEIRS))],
            [
                "02:00:00:00:00:01 to ff:ff:ff:ff:ff:ff, kind 0806: 10.9.0.1 at 02:00:00:00:00:01 asks \
                 192.0.2.1 at 00:00:00:00:00:00",
                "02:00:00:00:00:01 to 02:00:00:00:00:09, kind 0806: 10.9.0.1 at 02:00:00:00:00:01 asks \
                 192.0.2.1 at 00:00:00:00:00:00",
            ]
        );
        let reply = theirs(REPLY, GATEWAY, [10, 9, 0, 1]);
        assert_eq!(we.parse(&reply), LinkFrame::Neighbor(GATEWAY.into(), THEIRS, None));
    }

    #[test]
    fn an_address_conflict_is_reported() {
        let we = ours();
        let other = theirs(REPLY, Ipv4Addr::new(10, 9, 0, 5), [10, 9, 0, 5]);
        assert_eq!(we.parse(&other), LinkFrame::Taken(Ipv4Addr::new(10, 9, 0, 5).into(), THEIRS));
        // our own frames, and the probe of a host about to use the address
        assert_eq!(we.parse(&we.announcement(Ipv4Addr::new(10, 9, 0, 5))), LinkFrame::Nothing);
        let probe = theirs(REQUEST, Ipv4Addr::UNSPECIFIED, [10, 9, 0, 5]);
        assert!(matches!(we.parse(&probe), LinkFrame::Neighbor(.., Some(_))));
    }

    #[test]
    fn unknown_frames_are_ignored() {
        let we = ours();
        let whole = theirs(REQUEST, SERVER, [10, 9, 0, 1]);
        for length in 0..ARP_FRAME {
            assert_eq!(we.parse(&whole[..length]), LinkFrame::Nothing, "{length} bytes");
        }
        // padded to the minimum of Ethernet, as on a wire
        let padded = [&whole[..], &[0; 18]].concat();
        assert!(matches!(we.parse(&padded), LinkFrame::Neighbor(.., Some(_))));
        for (at, byte) in
            [(12, 0x86), (14, 9), (16, 9), (18, 7), (19, 16), (20, 1), (21, 8), (22, 3)]
        {
            let mut strange = whole.clone();
            strange[at] = byte;
            assert_eq!(we.parse(&strange), LinkFrame::Nothing, "byte {at}");
        }
    }
}
