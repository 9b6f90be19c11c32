//! Ethernet and ARP (RFC 826) of our addresses: who asks is answered, and whom packets go to is asked
//! for. Without I/O and without a clock.

use std::collections::HashMap;
use std::fmt;
use std::net::Ipv4Addr;
use units::Nanos;

/// Bytes before each packet: two addresses and a kind.
pub(crate) const ETHERNET_HEAD: usize = 14;
/// Bytes of a frame with a question or an answer.
const ARP_FRAME: usize = ETHERNET_HEAD + 28;
const IPV4: [u8; 2] = [0x08, 0x00];
const ARP: [u8; 2] = [0x08, 0x06];
/// Ethernet, IPv4, addresses of 6 and 4 bytes.
const KINDS: [u8; 6] = [0, 1, 0x08, 0x00, 6, 4];
const REQUEST: u8 = 1;
const REPLY: u8 = 2;
/// Next hops and destinations that are remembered.
const REMEMBERED_MAX: usize = 1 << 15;
/// A hop that does not answer is asked again after so long.
pub(crate) const ASK_AGAIN: Nanos = Nanos::from_secs(1);

/// An address of Ethernet.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    const ALL: Mac = Mac([0xff; 6]);
    const UNKNOWN: Mac = Mac([0; 6]);
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What a frame that has come is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkFrame<'a> {
    Packet(&'a [u8]),
    /// Somebody asks for an address of ours: the answer.
    Asked([u8; ARP_FRAME]),
    /// A hop has told where it is.
    Told(Ipv4Addr),
    /// Somebody else has an address of ours.
    Taken(Ipv4Addr, Mac),
    Nothing,
}

/// How packets to an address go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Onward {
    To(Mac),
    /// This hop is to be asked where it is.
    Ask(Ipv4Addr),
    /// It has been asked.
    Wait,
    /// Nobody has said by which hop.
    Unknown,
}

#[derive(Clone, Copy, Debug)]
enum HopState {
    Known(Mac),
    AskedAt(Nanos),
}

/// The addresses on the link: ours, and those of who our packets go to.
#[derive(Debug)]
pub(crate) struct Neighbours {
    ours: Mac,
    first: Ipv4Addr,
    /// How many from the first on.
    count: u32,
    hops: HashMap<Ipv4Addr, HopState>,
    /// By destination: the hop that packets go to.
    ways: HashMap<Ipv4Addr, Ipv4Addr>,
    /// The last destination and its hop's address: nearly all packets go to a few.
    last: Option<(Ipv4Addr, Mac)>,
}

impl Neighbours {
    pub(crate) fn new(ours: Mac, first: Ipv4Addr, count: u32) -> Neighbours {
        let (hops, ways) = (HashMap::new(), HashMap::new());
        Neighbours { ours, first, count, hops, ways, last: None }
    }

    fn owns(&self, address: Ipv4Addr) -> bool {
        address.to_bits().wrapping_sub(self.first.to_bits()) < self.count
    }

    /// Packets to `destination` go by way of `hop`. False where there is no room.
    pub(crate) fn learn_way(&mut self, destination: Ipv4Addr, hop: Ipv4Addr) -> bool {
        let room = self.ways.len() < REMEMBERED_MAX;
        room && self.ways.insert(destination, hop).is_none_or(|_| true)
    }

    /// How packets to `destination` go. [`Onward::Ask`] is given once in [`ASK_AGAIN`].
    pub(crate) fn onward(&mut self, now: Nanos, destination: Ipv4Addr) -> Onward {
        if let Some((address, mac)) = self.last
            && address == destination
        {
            return Onward::To(mac);
        }
        let Some(hop) = self.ways.get(&destination).copied() else { return Onward::Unknown };
        match self.hops.get(&hop) {
            Some(HopState::Known(mac)) => {
                self.last = Some((destination, *mac));
                Onward::To(*mac)
            }
            Some(HopState::AskedAt(at)) if now - *at < ASK_AGAIN => Onward::Wait,
            _ => {
                self.hops.insert(hop, HopState::AskedAt(now));
                Onward::Ask(hop)
            }
        }
    }

    /// Reads a frame.
    pub(crate) fn hear<'a>(&mut self, frame: &'a [u8]) -> LinkFrame<'a> {
        let Some((head, body)) = frame.split_at_checked(ETHERNET_HEAD) else {
            return LinkFrame::Nothing;
        };
        match [head[12], head[13]] {
            IPV4 => LinkFrame::Packet(body),
            ARP => self.hear_arp(body),
            _ => LinkFrame::Nothing,
        }
    }

    fn hear_arp(&mut self, body: &[u8]) -> LinkFrame<'static> {
        let Some(body) = body.first_chunk::<28>() else { return LinkFrame::Nothing };
        let address = |at: usize| Ipv4Addr::new(body[at], body[at + 1], body[at + 2], body[at + 3]);
        let [_, _, _, _, _, _, _, what, a, b, c, d, e, f, ..] = *body;
        let (mac, from, target) = (Mac([a, b, c, d, e, f]), address(14), address(24));
        let is_arp = body[..6] == KINDS && body[6] == 0 && (what == REQUEST || what == REPLY);
        // what we said ourselves may come back; an address of a group is nobody's (RFC 1812, 3.3.2)
        if !is_arp || mac == self.ours || a & 1 != 0 {
            return LinkFrame::Nothing;
        }
        if self.owns(from) {
            return LinkFrame::Taken(from, mac);
        }
        let told = self.hops.get_mut(&from).map(|state| *state = HopState::Known(mac));
        if told.is_some() {
            self.last = None;
        }
        match what {
            REQUEST if self.owns(target) => {
                LinkFrame::Asked(self.arp(REPLY, target, (mac, from), mac))
            }
            _ if told.is_some() => LinkFrame::Told(from),
            _ => LinkFrame::Nothing,
        }
    }

    /// The question where `hop` is, from our first address.
    pub(crate) fn question(&self, hop: Ipv4Addr) -> [u8; ARP_FRAME] {
        self.arp(REQUEST, self.first, (Mac::UNKNOWN, hop), Mac::ALL)
    }

    /// The question whether anybody has this address of ours (RFC 5227 section 2.1.1).
    pub(crate) fn probe(&self, address: Ipv4Addr) -> [u8; ARP_FRAME] {
        self.arp(REQUEST, Ipv4Addr::UNSPECIFIED, (Mac::UNKNOWN, address), Mac::ALL)
    }

    /// That this address is ours (RFC 5227 section 2.3).
    pub(crate) fn announcement(&self, address: Ipv4Addr) -> [u8; ARP_FRAME] {
        self.arp(REQUEST, address, (Mac::UNKNOWN, address), Mac::ALL)
    }

    fn arp(&self, what: u8, from: Ipv4Addr, of: (Mac, Ipv4Addr), to: Mac) -> [u8; ARP_FRAME] {
        let mut frame = [0; ARP_FRAME];
        frame[..ETHERNET_HEAD].copy_from_slice(&self.head(to, ARP));
        frame[14..20].copy_from_slice(&KINDS);
        frame[21] = what;
        frame[22..28].copy_from_slice(&self.ours.0);
        frame[28..32].copy_from_slice(&from.octets());
        frame[32..38].copy_from_slice(&of.0.0);
        frame[38..].copy_from_slice(&of.1.octets());
        frame
    }

    fn head(&self, to: Mac, kind: [u8; 2]) -> [u8; ETHERNET_HEAD] {
        let mut head = [0; ETHERNET_HEAD];
        head[..6].copy_from_slice(&to.0);
        head[6..12].copy_from_slice(&self.ours.0);
        head[12..].copy_from_slice(&kind);
        head
    }

    /// What stands before an IPv4 packet that goes there.
    pub(crate) fn head_of_packet(&self, to: Mac) -> [u8; ETHERNET_HEAD] {
        self.head(to, IPV4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: Mac = Mac([2, 0, 0, 0, 0, 1]);
    const THEIRS: Mac = Mac([2, 0, 0, 0, 0, 9]);
    const GATEWAY: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
    const SERVER: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 7);

    fn ours() -> Neighbours {
        Neighbours::new(OURS, Ipv4Addr::new(10, 9, 0, 1), 14)
    }

    /// The other side: what it sends.
    fn theirs(what: u8, from: Ipv4Addr, target: [u8; 4]) -> [u8; ARP_FRAME] {
        let side = Neighbours::new(THEIRS, from, 1);
        side.arp(what, from, (Mac::UNKNOWN, target.into()), Mac::ALL)
    }

    /// A frame in words.
    fn words(frame: &[u8]) -> String {
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
    fn who_asks_for_an_address_of_ours_is_answered() {
        let mut we = ours();
        let said: String = [[10, 9, 0, 1], [10, 9, 0, 14], [10, 9, 0, 15], [192, 0, 2, 1]]
            .iter()
            .map(|target| match we.hear(&theirs(REQUEST, SERVER, *target)) {
                LinkFrame::Asked(answer) => words(&answer) + "\n",
                other => format!("{other:?}\n"),
            })
            .collect();
        assert_eq!(
            said,
            "02:00:00:00:00:01 to 02:00:00:00:00:09, kind 0806: 10.9.0.1 at 02:00:00:00:00:01 answers \
             203.0.113.7 at 02:00:00:00:00:09\n\
             02:00:00:00:00:01 to 02:00:00:00:00:09, kind 0806: 10.9.0.14 at 02:00:00:00:00:01 \
             answers 203.0.113.7 at 02:00:00:00:00:09\n\
             Nothing\n\
             Nothing\n"
        );
    }

    #[test]
    fn a_hop_is_asked_once_a_second_until_it_tells() {
        let mut we = ours();
        assert!(we.learn_way(SERVER, GATEWAY));
        let at = Nanos::from_millis;
        let mut said = Vec::new();
        for now in [0, 10, 999, 1_000, 1_500] {
            said.push(we.onward(at(now), SERVER));
        }
        let reply = theirs(REPLY, GATEWAY, [10, 9, 0, 1]);
        assert_eq!(we.hear(&reply), LinkFrame::Told(GATEWAY));
        for now in [1_600, 9_000] {
            said.push(we.onward(at(now), SERVER));
        }
        use Onward::{Ask, To, Unknown, Wait};
        let (ask, to) = (Ask(GATEWAY), To(THEIRS));
        assert_eq!(said, [ask, Wait, Wait, ask, Wait, to, to]);
        assert_eq!(we.onward(at(9_000), Ipv4Addr::new(203, 0, 113, 8)), Unknown);
        assert_eq!(
            words(&we.question(GATEWAY)),
            "02:00:00:00:00:01 to ff:ff:ff:ff:ff:ff, kind 0806: 10.9.0.1 at 02:00:00:00:00:01 asks \
             192.0.2.1 at 00:00:00:00:00:00"
        );
    }

    /// It asks for us from its new place: RFC 826 has that taken over.
    #[test]
    fn a_hop_that_moves_is_followed() {
        let mut we = ours();
        assert!(we.learn_way(SERVER, GATEWAY));
        assert_eq!(we.onward(Nanos::ZERO, SERVER), Onward::Ask(GATEWAY));
        we.hear(&theirs(REPLY, GATEWAY, [10, 9, 0, 1]));
        assert_eq!(we.onward(Nanos::ZERO, SERVER), Onward::To(THEIRS));
        let elsewhere = Mac([2, 0, 0, 0, 0, 8]);
        let side = Neighbours::new(elsewhere, GATEWAY, 1);
        let asks = side.question(Ipv4Addr::new(10, 9, 0, 3));
        assert!(matches!(we.hear(&asks), LinkFrame::Asked(_)));
        assert_eq!(we.onward(Nanos::ZERO, SERVER), Onward::To(elsewhere));
    }

    #[test]
    fn an_address_of_ours_that_somebody_has_is_told() {
        let mut we = ours();
        let other = theirs(REPLY, Ipv4Addr::new(10, 9, 0, 5), [10, 9, 0, 5]);
        assert_eq!(we.hear(&other), LinkFrame::Taken(Ipv4Addr::new(10, 9, 0, 5), THEIRS));
        // what we said ourselves, and a probe of somebody who is about to take it
        assert_eq!(we.hear(&we.announcement(Ipv4Addr::new(10, 9, 0, 5))), LinkFrame::Nothing);
        let probe = theirs(REQUEST, Ipv4Addr::UNSPECIFIED, [10, 9, 0, 5]);
        assert!(matches!(we.hear(&probe), LinkFrame::Asked(_)));
    }

    #[test]
    fn strange_frames_are_nothing() {
        let mut we = ours();
        let whole = theirs(REQUEST, SERVER, [10, 9, 0, 1]);
        for length in 0..ARP_FRAME {
            assert_eq!(we.hear(&whole[..length]), LinkFrame::Nothing, "{length} bytes");
        }
        // padded to Ethernet's least, as a wire has it
        let padded = [&whole[..], &[0; 18]].concat();
        assert!(matches!(we.hear(&padded), LinkFrame::Asked(_)));
        for (at, byte) in
            [(12, 0x86), (14, 9), (16, 9), (18, 7), (19, 16), (20, 1), (21, 8), (22, 3)]
        {
            let mut strange = whole;
            strange[at] = byte;
            assert_eq!(we.hear(&strange), LinkFrame::Nothing, "byte {at}");
        }
    }

    #[test]
    fn no_stranger_fills_the_memory() {
        let mut we = ours();
        for number in 0..100_000_u32 {
            we.hear(&theirs(REPLY, Ipv4Addr::from_bits(number + 0x0b00_0000), [10, 9, 0, 1]));
            we.learn_way(Ipv4Addr::from_bits(number), GATEWAY);
        }
        assert_eq!((we.hops.len(), we.ways.len()), (0, REMEMBERED_MAX));
    }
}
