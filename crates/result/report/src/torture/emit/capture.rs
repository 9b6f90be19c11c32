//! A capture for Wireshark and tcpdump: the conversation with its instants, in synthetic packets.
//! Client addresses and ports, sequence numbers and acknowledgments are invented; for TLS it
//! contains the plaintext.

use dialogue::talk::{TalkEvent, What};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use torture::record::Transcript;

/// Magic number of captures with nanoseconds in the pcap format.
const MAGIC: u32 = 0xa1b2_3c4d;
/// Link type of packets that begin with the IP header.
const LINK_RAW: u32 = 101;
/// Maximum captured bytes per packet.
const SNAPLEN: u32 = 65_535;
/// Payload bytes per packet.
const SEGMENT: usize = 1_400;
/// Client port of the first conversation.
const CLIENT_PORT: u16 = 40_000;

const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const PSH: u8 = 0x08;
const ACK: u8 = 0x10;

/// Returns the conversations as one capture file.
///
/// # Errors
/// Fails for a conversation over a Unix socket, which has no packets.
pub fn capture(kept: &[&Transcript]) -> Result<Vec<u8>, String> {
    let mut packets = Vec::new();
    for (index, one) in kept.iter().enumerate() {
        if one.script.protocol.is_http3() {
            return Err(format!(
                "{} {}: QUIC is encrypted, so no capture can be created",
                one.case, one.name
            ));
        }
        let Some(server) = one.server() else {
            return Err(format!("{} {}: a Unix socket has no packets", one.case, one.name));
        };
        if one.script.is_raw() {
            return Err(super::no_socket(one));
        }
        let client = match server.ip() {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        };
        let port = CLIENT_PORT.wrapping_add(index as u16);
        let mut flow = CapturedConnection {
            ends: [SocketAddr::new(client, port), server],
            next: [1_000, 2_000],
            packets: &mut packets,
        };
        flow.play(one);
    }
    packets.sort_by_key(|(at, _)| *at);
    let mut out = Vec::new();
    for word in [MAGIC, u32::from_le_bytes([2, 0, 4, 0]), 0, 0, SNAPLEN, LINK_RAW] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    for (at, packet) in packets {
        let (seconds, nanos) = (at / 1_000_000_000, at % 1_000_000_000);
        for word in [seconds as u32, nanos as u32, packet.len() as u32, packet.len() as u32] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        out.extend_from_slice(&packet);
    }
    Ok(out)
}

/// One connection: 0 is the client, 1 the server.
struct CapturedConnection<'p> {
    ends: [SocketAddr; 2],
    /// The next sequence number of each side.
    next: [u32; 2],
    packets: &'p mut Vec<(u64, Vec<u8>)>,
}

impl CapturedConnection<'_> {
    fn play(&mut self, kept: &Transcript) {
        let follow_up = kept.script.follow_up.as_deref().unwrap_or_default();
        let sent = [&kept.bytes(), follow_up].concat();
        let (mut sent, mut heard) = (sent.as_slice(), kept.talk.raw.as_slice());
        // with TLS the counts are those of the ciphertext
        let plain = kept.script.tls_name.is_none();
        let part = |rest: &mut &[u8], count: usize| {
            let (now, later) =
                rest.split_at(if plain { count.min(rest.len()) } else { rest.len() });
            let now = now.to_vec();
            *rest = later;
            now
        };
        for TalkEvent { at, what } in &kept.talk.events {
            let at = kept.began_unix_ns + at.0;
            match what {
                What::Connected => {
                    self.packet(kept.began_unix_ns, 0, SYN, &[]);
                    self.packet(at, 1, SYN | ACK, &[]);
                    self.packet(at, 0, ACK, &[]);
                }
                What::Sent(count) => self.data(at, 0, &part(&mut sent, *count)),
                What::Received(count) => self.data(at, 1, &part(&mut heard, *count)),
                What::HalfClosed | What::ClosedByUs => self.packet(at, 0, FIN | ACK, &[]),
                What::ResetByUs => self.packet(at, 0, RST | ACK, &[]),
                What::Ended => self.packet(at, 1, FIN | ACK, &[]),
                What::Broken(_) => self.packet(at, 1, RST | ACK, &[]),
                What::Secure | What::Segment(_) | What::Saw(_) => {}
            }
        }
    }

    fn data(&mut self, at: u64, from: usize, bytes: &[u8]) {
        for segment in bytes.chunks(SEGMENT) {
            self.packet(at, from, PSH | ACK, segment);
        }
    }

    fn packet(&mut self, at: u64, from: usize, flags: u8, payload: &[u8]) {
        let (source, target) = (self.ends[from], self.ends[1 - from]);
        let mut tcp = Vec::with_capacity(20 + payload.len());
        tcp.extend_from_slice(&source.port().to_be_bytes());
        tcp.extend_from_slice(&target.port().to_be_bytes());
        tcp.extend_from_slice(&self.next[from].to_be_bytes());
        let seen = if flags & ACK == 0 { 0 } else { self.next[1 - from] };
        tcp.extend_from_slice(&seen.to_be_bytes());
        // five words of header; the window; checksum and urgent pointer
        tcp.extend_from_slice(&[5 << 4, flags, 0xff, 0xff, 0, 0, 0, 0]);
        tcp.extend_from_slice(payload);
        let pseudo = pseudo_header(source.ip(), target.ip(), tcp.len());
        let sum = checksum(&[&pseudo[..], &tcp].concat());
        tcp[16..18].copy_from_slice(&sum.to_be_bytes());
        let mut packet = ip_header(source.ip(), target.ip(), tcp.len());
        packet.extend_from_slice(&tcp);
        self.packets.push((at, packet));
        // SYN and FIN count as a byte (RFC 9293 section 3.4)
        let length = payload.len() as u32 + u32::from(flags & (SYN | FIN) != 0);
        self.next[from] = self.next[from].wrapping_add(length);
    }
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

/// Returns the pseudo-header covered by the TCP checksum (RFC 9293 section 3.1).
fn pseudo_header(source: IpAddr, target: IpAddr, length: usize) -> Vec<u8> {
    let mut out = [octets(source), octets(target)].concat();
    out.extend_from_slice(&(length as u32).to_be_bytes());
    out.extend_from_slice(&[0, 0, 0, 6]);
    out
}

fn ip_header(source: IpAddr, target: IpAddr, length: usize) -> Vec<u8> {
    let mut out = Vec::new();
    if source.is_ipv4() {
        out.extend_from_slice(&[0x45, 0]);
        out.extend_from_slice(&((20 + length) as u16).to_be_bytes());
        // no identification, don't fragment; 64 hops; TCP; the checksum
        out.extend_from_slice(&[0, 0, 0x40, 0, 64, 6, 0, 0]);
        out.extend_from_slice(&octets(source));
        out.extend_from_slice(&octets(target));
        let sum = checksum(&out);
        out[10..12].copy_from_slice(&sum.to_be_bytes());
    } else {
        out.extend_from_slice(&[0x60, 0, 0, 0]);
        out.extend_from_slice(&(length as u16).to_be_bytes());
        out.extend_from_slice(&[6, 64]);
        out.extend_from_slice(&octets(source));
        out.extend_from_slice(&octets(target));
    }
    out
}

/// Returns the internet checksum (RFC 1071).
fn checksum(bytes: &[u8]) -> u16 {
    let words =
        bytes.chunks(2).map(|two| u32::from(two[0]) << 8 | u32::from(*two.get(1).unwrap_or(&0)));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}
