//! Addresses of UDP replies. A server that listens on all addresses sends its replies from the
//! address of the route back, here the device's, instead of the address that received the request.
//! On a loopback the two are equal; a client with a connected socket drops a reply from a different
//! address, and QUIC regards it as another path. The forwarder therefore remembers the destination
//! of each flow, and writes that address into the replies.

use std::collections::HashMap;
use std::net::Ipv4Addr;

/// Flows that are remembered at least; the oldest are forgotten first.
const FLOWS_MAX: usize = 65_536;
const UDP: u8 = 17;

/// Client, its port and the server's.
type UdpFlow = (u32, u16, u16);

/// A map that drops the least recently used entries.
#[derive(Debug)]
struct Recent<K> {
    fresh: HashMap<K, u32>,
    old: HashMap<K, u32>,
}

impl<K: std::hash::Hash + Eq + Copy> Recent<K> {
    fn new() -> Recent<K> {
        Recent { fresh: HashMap::new(), old: HashMap::new() }
    }

    fn put(&mut self, key: K, value: u32) {
        if self.fresh.len() >= FLOWS_MAX && !self.fresh.contains_key(&key) {
            self.old = std::mem::take(&mut self.fresh);
        }
        self.fresh.insert(key, value);
    }

    fn get(&self, key: &K) -> Option<u32> {
        self.fresh.get(key).or_else(|| self.old.get(key)).copied()
    }
}

/// The address of the server's end, and the addresses that flows requested.
#[derive(Debug)]
pub(crate) struct Replies {
    server: u32,
    flows: Recent<UdpFlow>,
    /// Datagrams whose first fragment had its address changed: client and identification.
    fragments: Recent<(u32, u16)>,
}

impl Replies {
    /// Creates an empty table.
    /// `server`: address of the device at the server's end.
    pub(crate) fn new(server: Ipv4Addr) -> Replies {
        Replies { server: server.to_bits(), flows: Recent::new(), fragments: Recent::new() }
    }

    /// Remembers the destination of a packet to the server.
    pub(crate) fn note_destination(&mut self, packet: &[u8]) {
        let Some(head) = UdpHead::parse(packet).filter(|head| head.offset == 0) else { return };
        let Some((from, to)) = head.ports(packet) else { return };
        self.flows.put((head.source, from, to), head.destination);
    }

    /// Sets the source of the server's packet to the address to which the client sent.
    pub(crate) fn answer(&mut self, packet: &mut [u8]) {
        let Some(head) = UdpHead::parse(packet).filter(|head| head.source == self.server) else {
            return;
        };
        let datagram = (head.destination, head.identification);
        let asked = if head.offset > 0 {
            self.fragments.get(&datagram)
        } else {
            let ports = head.ports(packet);
            ports.and_then(|(from, to)| self.flows.get(&(head.destination, to, from)))
        };
        let Some(asked) = asked.filter(|asked| *asked != self.server) else { return };
        if head.offset == 0 {
            if head.more {
                self.fragments.put(datagram, asked);
            }
            let at = head.length + 6;
            let old = sum_at(packet, at);
            // zero means that the packet has no checksum (RFC 768)
            if old != 0 {
                let new = adjusted(old, head.source, asked);
                put_sum(packet, at, if new == 0 { 0xffff } else { new });
            }
        }
        let sum = adjusted(sum_at(packet, 10), head.source, asked);
        put_sum(packet, 10, sum);
        packet[12..16].copy_from_slice(&asked.to_be_bytes());
    }
}

/// Required fields of an IPv4 header before UDP.
#[derive(Clone, Copy)]
struct UdpHead {
    length: usize,
    identification: u16,
    more: bool,
    /// Offset of a fragment, in units of 8 bytes.
    offset: u16,
    source: u32,
    destination: u32,
}

impl UdpHead {
    fn parse(packet: &[u8]) -> Option<UdpHead> {
        let length = usize::from(packet.first()? & 15) * 4;
        if packet[0] >> 4 != 4 || length < 20 || packet.len() < length || packet[9] != UDP {
            return None;
        }
        let number = |at: usize| u16::from_be_bytes([packet[at], packet[at + 1]]);
        let address = |at: usize| u32::from(number(at)) << 16 | u32::from(number(at + 2));
        Some(UdpHead {
            length,
            identification: number(4),
            more: number(6) & 0x2000 != 0,
            offset: number(6) & 0x1fff,
            source: address(12),
            destination: address(16),
        })
    }

    /// Returns source and destination of a packet that contains the whole UDP header.
    fn ports(&self, packet: &[u8]) -> Option<(u16, u16)> {
        let head = packet.get(self.length..self.length + 8)?;
        Some((u16::from_be_bytes([head[0], head[1]]), u16::from_be_bytes([head[2], head[3]])))
    }
}

fn sum_at(packet: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([packet[at], packet[at + 1]])
}

fn put_sum(packet: &mut [u8], at: usize, sum: u16) {
    packet[at..at + 2].copy_from_slice(&sum.to_be_bytes());
}

/// Returns a checksum after an address has changed (RFC 1624, equation 3).
fn adjusted(sum: u16, old: u32, new: u32) -> u16 {
    let halves = |address: u32| (address >> 16) + (address & 0xffff);
    let mut total = u32::from(!sum) + halves(!old) + halves(new);
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    !(total as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: [u8; 4] = [198, 19, 0, 1];
    const CLIENT: [u8; 4] = [198, 18, 0, 1];
    const ASKED: [u8; 4] = [127, 0, 0, 1];

    fn sum_of(parts: &[&[u8]]) -> u16 {
        let mut total = 0_u32;
        for part in parts {
            for pair in part.chunks(2) {
                total += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
            }
        }
        while total > 0xffff {
            total = (total & 0xffff) + (total >> 16);
        }
        total as u16
    }

    /// Returns a datagram with correct checksums; `offset` in units of 8 bytes.
    fn datagram(from: ([u8; 4], u16), to: ([u8; 4], u16), text: &[u8], flags: u16) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 0, 0, 7, 0, 0, 64, UDP, 0, 0];
        packet[6..8].copy_from_slice(&flags.to_be_bytes());
        packet.extend(from.0);
        packet.extend(to.0);
        let mut udp = Vec::new();
        udp.extend(from.1.to_be_bytes());
        udp.extend(to.1.to_be_bytes());
        udp.extend((8 + text.len() as u16).to_be_bytes());
        udp.extend([0, 0]);
        udp.extend(text);
        let length = [0, UDP, 0, udp.len() as u8];
        let sum = !sum_of(&[&from.0, &to.0, &length, &udp]);
        udp[6..8].copy_from_slice(&(if sum == 0 { 0xffff } else { sum }).to_be_bytes());
        let head = !sum_of(&[&packet]);
        packet[10..12].copy_from_slice(&head.to_be_bytes());
        packet.extend(udp);
        packet
    }

    fn answered(replies: &mut Replies, mut packet: Vec<u8>) -> Vec<u8> {
        replies.answer(&mut packet);
        packet
    }

    #[test]
    fn a_reply_has_the_requested_address_and_valid_checksums() {
        let mut replies = Replies::new(SERVER.into());
        replies.note_destination(&datagram((CLIENT, 4_000), (ASKED, 53), b"q", 0));
        for text in [&b"answer"[..], b"odd", b""] {
            let reply = datagram((SERVER, 53), (CLIENT, 4_000), text, 0);
            let expected = datagram((ASKED, 53), (CLIENT, 4_000), text, 0);
            assert_eq!(answered(&mut replies, reply), expected, "{text:?}");
        }
        // an absent checksum stays absent
        let mut reply = datagram((SERVER, 53), (CLIENT, 4_000), b"a", 0);
        reply[26..28].copy_from_slice(&[0, 0]);
        assert_eq!(answered(&mut replies, reply)[26..28], [0, 0]);
    }

    #[test]
    fn other_packets_stay_as_they_are() {
        let mut replies = Replies::new(SERVER.into());
        replies.note_destination(&datagram((CLIENT, 4_000), (ASKED, 53), b"q", 0));
        replies.note_destination(&datagram((CLIENT, 4_001), (SERVER, 53), b"q", 0));
        let mut tcp = datagram((SERVER, 53), (CLIENT, 4_000), b"a", 0);
        tcp[9] = 6;
        for packet in [
            datagram((SERVER, 54), (CLIENT, 4_000), b"another port", 0),
            datagram((SERVER, 53), (CLIENT, 4_001), b"asked there", 0),
            datagram(([127, 0, 0, 2], 53), (CLIENT, 4_000), b"another address", 0),
            tcp,
            vec![0x45; 27],
            vec![0x60; 60],
            vec![],
        ] {
            assert_eq!(answered(&mut replies, packet.clone()), packet);
        }
    }

    #[test]
    fn fragments_of_a_reply_have_one_address() {
        let mut replies = Replies::new(SERVER.into());
        replies.note_destination(&datagram((CLIENT, 4_000), (ASKED, 53), b"q", 0));
        let first = datagram((SERVER, 53), (CLIENT, 4_000), b"first", 0x2000);
        assert_eq!(answered(&mut replies, first)[12..16], ASKED);
        let rest = datagram((SERVER, 1), (CLIENT, 2), b"rest", 0x0002);
        let expected = rest[20..].to_vec();
        let rest = answered(&mut replies, rest);
        assert_eq!((&rest[12..16], &rest[20..]), (&ASKED[..], &expected[..]));
        assert_eq!(sum_of(&[&rest[..20]]), 0xffff);
    }

    #[test]
    fn old_flows_are_forgotten() {
        let mut recent = Recent::new();
        (0..3 * FLOWS_MAX as u32).for_each(|number| recent.put(number, number));
        assert_eq!(recent.get(&0), None);
        assert_eq!(recent.get(&(3 * FLOWS_MAX as u32 - 1)), Some(3 * FLOWS_MAX as u32 - 1));
        assert!(recent.fresh.len() + recent.old.len() <= 2 * FLOWS_MAX);
    }
}
