//! IPv4 and IPv6 packets with TCP segments (RFC 791, RFC 8200, RFC 9293 section 3.1): parsed, and
//! written into one buffer. IPv6 extension headers are not parsed: segments with them are ignored.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Flag bits of a segment.
pub mod flag {
    pub const FIN: u8 = 0x01;
    pub const SYN: u8 = 0x02;
    pub const RST: u8 = 0x04;
    pub const PSH: u8 = 0x08;
    pub const ACK: u8 = 0x10;
    pub const URG: u8 = 0x20;
    pub const ECE: u8 = 0x40;
    pub const CWR: u8 = 0x80;
}

/// Bytes of an IPv4 header without options.
pub const IP_HEAD: usize = 20;
/// Size of an IPv6 header.
pub const IPV6_HEAD: usize = 40;
/// Bytes of a TCP header without options.
pub const TCP_HEAD: usize = 20;
/// Size of the header that a TUN device with IFF_VNET_HDR puts before each packet.
pub const VNET_HEAD: usize = 10;
/// Maximum number of SACK blocks in one segment (RFC 2018 section 3).
pub const SACK_BLOCKS: usize = 4;

/// Address and port of one endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct End {
    pub address: IpAddr,
    pub port: u16,
}

impl End {
    /// Returns the number of bytes of the IP header of a segment from or to this address.
    pub fn head(&self) -> usize {
        if self.address.is_ipv4() { IP_HEAD } else { IPV6_HEAD }
    }
}

/// Returns the last 32 bits of an address, the only ones in which addresses of a stack differ.
pub(crate) fn low_bits(address: IpAddr) -> u32 {
    match address {
        IpAddr::V4(address) => address.to_bits(),
        IpAddr::V6(address) => address.to_bits() as u32,
    }
}

/// Returns the address with these last 32 bits.
pub(crate) fn with_low_bits(like: IpAddr, bits: u32) -> IpAddr {
    match like {
        IpAddr::V4(_) => Ipv4Addr::from_bits(bits).into(),
        IpAddr::V6(like) => {
            Ipv6Addr::from_bits(like.to_bits() & !u128::from(u32::MAX) | u128::from(bits)).into()
        }
    }
}

/// Source and destination of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    pub from: End,
    pub to: End,
}

/// Header of a TCP segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    pub seq: u32,
    pub ack: u32,
    /// Bits of [`flag`].
    pub flags: u8,
    /// The value in the header, not scaled.
    pub window: u16,
    pub urgent: u16,
    pub mss: Option<u16>,
    pub shift: Option<u8>,
    pub sack_permitted: bool,
    /// TSval and TSecr (RFC 7323).
    pub stamps: Option<(u32, u32)>,
    /// SACK blocks; the first `sack_count` are valid.
    pub sacks: [(u32, u32); SACK_BLOCKS],
    pub sack_count: u8,
    /// ECN bits of the IP header (RFC 3168): 0 none, 2 ECT(0), 3 CE.
    pub ecn: u8,
}

impl Head {
    pub fn has(&self, bits: u8) -> bool {
        self.flags & bits != 0
    }

    pub fn sacks(&self) -> &[(u32, u32)] {
        &self.sacks[..usize::from(self.sack_count).min(SACK_BLOCKS)]
    }

    /// Returns the length of its options in bytes, padded.
    fn options_length(&self) -> usize {
        let mut length = 0;
        length += if self.mss.is_some() { 4 } else { 0 };
        length += if self.stamps.is_some() { 12 } else { 0 };
        length += if self.shift.is_some() { 4 } else { 0 };
        length += match (self.sack_permitted, self.stamps, self.has(flag::SYN)) {
            (true, Some(_), true) => 0, // takes the place of the padding before the time stamps
            (true, ..) => 4,
            (false, ..) => 0,
        };
        length + if self.sack_count > 0 { 4 + 8 * self.sacks().len() } else { 0 }
    }

    /// Writes the options in the order of Linux: MSS, SACK permitted, timestamps, window scale;
    /// SACK last.
    fn put_options(&self, out: &mut Vec<u8>) {
        if let Some(mss) = self.mss {
            out.extend_from_slice(&[2, 4]);
            out.extend_from_slice(&mss.to_be_bytes());
        }
        if let Some((value, echo)) = self.stamps {
            let lead = if self.sack_permitted && self.has(flag::SYN) { [4, 2] } else { [1, 1] };
            out.extend_from_slice(&lead);
            out.extend_from_slice(&[8, 10]);
            out.extend_from_slice(&value.to_be_bytes());
            out.extend_from_slice(&echo.to_be_bytes());
        } else if self.sack_permitted {
            out.extend_from_slice(&[1, 1, 4, 2]);
        }
        if let Some(shift) = self.shift {
            out.extend_from_slice(&[1, 3, 3, shift]);
        }
        if self.sack_count > 0 {
            out.extend_from_slice(&[1, 1, 5, 2 + 8 * self.sacks().len() as u8]);
            for (from, to) in self.sacks() {
                out.extend_from_slice(&from.to_be_bytes());
                out.extend_from_slice(&to.to_be_bytes());
            }
        }
    }

    fn read_options(&mut self, mut rest: &[u8]) {
        loop {
            let (kind, length) = match rest {
                [0, ..] | [] => return,
                [1, behind @ ..] => {
                    rest = behind;
                    continue;
                }
                [kind, length, ..] => (*kind, usize::from(*length)),
                [_] => return,
            };
            let Some(option) = rest.get(2..length) else { return };
            match (kind, option) {
                (2, [a, b]) => self.mss = Some(u16::from_be_bytes([*a, *b])),
                // RFC 7323 section 2.3: more than 14 counts as 14
                (3, [shift]) => self.shift = Some((*shift).min(14)),
                (4, []) => self.sack_permitted = true,
                (5, blocks) => {
                    for block in blocks.chunks_exact(8).take(SACK_BLOCKS) {
                        self.sacks[usize::from(self.sack_count)] = (word(block, 0), word(block, 4));
                        self.sack_count += 1;
                        if usize::from(self.sack_count) == SACK_BLOCKS {
                            break;
                        }
                    }
                }
                (8, stamps) if stamps.len() == 8 => {
                    self.stamps = Some((word(stamps, 0), word(stamps, 4)));
                }
                _ => {}
            }
            rest = &rest[length..];
        }
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|four| four.try_into().ok()).map_or(0, u32::from_be_bytes)
}

fn half(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at + 2).and_then(|two| two.try_into().ok()).map_or(0, u16::from_be_bytes)
}

/// A received packet, by its meaning for us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrivedPacket<'a> {
    Segment {
        flow: Flow,
        head: Head,
        payload: &'a [u8],
    },
    /// ICMP: one of our packets was too large for a link; the size that fits (RFC 1191, RFC 8201),
    /// 0 if not reported.
    TooLarge {
        ours: Flow,
        seq: u32,
        mtu: u16,
    },
    /// ICMP: one of our packets was not delivered.
    Unreachable {
        ours: Flow,
        seq: u32,
    },
}

const ICMP: u8 = 1;
const TCP: u8 = 6;
const ICMPV6: u8 = 58;

/// Parses an IP packet; `None` if it is irrelevant or malformed. `checked`: the TCP checksum was
/// already verified.
pub fn read(packet: &[u8], checked: bool) -> Option<ArrivedPacket<'_>> {
    let ip = read_ip(packet, false)?;
    match ip.protocol {
        TCP => {
            if !checked && fold(sum(ip.body) + ip.pseudo_sum()) != 0xffff {
                return None;
            }
            let (ports, mut head, payload) = read_tcp(ip.body)?;
            head.ecn = ip.ecn;
            let flow = Flow {
                from: End { address: ip.from, port: ports.0 },
                to: End { address: ip.to, port: ports.1 },
            };
            Some(ArrivedPacket::Segment { flow, head, payload })
        }
        ICMP | ICMPV6 => read_icmp(&ip),
        _ => None,
    }
}

/// Returns whether the TCP checksum of a packet was left to a device that the packet never passed:
/// the field contains the folded sum of the pseudo-header, as between devices of one machine.
pub fn lacks_checksum(packet: &[u8]) -> bool {
    match read_ip(packet, false) {
        Some(ip) if ip.protocol == TCP && ip.body.len() >= TCP_HEAD => {
            half(ip.body, 16) == fold(ip.pseudo_sum())
        }
        _ => false,
    }
}

/// Returns the destination of an IP packet; `None` for anything else.
pub fn destination(packet: &[u8]) -> Option<IpAddr> {
    match packet.first()? >> 4 {
        4 => Some(Ipv4Addr::from_octets(*packet.get(16..)?.first_chunk()?).into()),
        6 => Some(Ipv6Addr::from_octets(*packet.get(24..)?.first_chunk()?).into()),
        _ => None,
    }
}

struct Ip<'a> {
    from: IpAddr,
    to: IpAddr,
    protocol: u8,
    body: &'a [u8],
    ecn: u8,
}

impl Ip<'_> {
    /// Returns the part of a checksum that covers the addresses.
    fn pseudo_sum(&self) -> u64 {
        pseudo_sum(self.from, self.to, self.protocol, self.body.len())
    }
}

/// Parses the IP header of a packet. `cut`: the packet is quoted and may be truncated.
#[inline]
fn read_ip(packet: &[u8], cut: bool) -> Option<Ip<'_>> {
    let first = *packet.first()?;
    if first >> 4 == 6 {
        return read_ipv6(packet, cut);
    }
    let head = usize::from(first & 15) * 4;
    let total = usize::from(half(packet, 2));
    let fragment = half(packet, 6) & 0x3fff;
    if first >> 4 != 4 || head < IP_HEAD || fragment != 0 || packet.len() < IP_HEAD {
        return None;
    }
    let end = if cut { packet.len() } else { total };
    let body = packet.get(head..end)?;
    let address = |at| IpAddr::V4(Ipv4Addr::from(word(packet, at)));
    let from = address(12);
    let to = address(16);
    Some(Ip { from, to, protocol: packet[9], body, ecn: packet[1] & 3 })
}

fn read_ipv6(packet: &[u8], cut: bool) -> Option<Ip<'_>> {
    let head = packet.first_chunk::<IPV6_HEAD>()?;
    let total = IPV6_HEAD + usize::from(half(head, 4));
    let end = if cut { packet.len() } else { total };
    let body = packet.get(IPV6_HEAD..end)?;
    let address = |at| Some(IpAddr::V6(Ipv6Addr::from_octets(*head.get(at..)?.first_chunk()?)));
    let from = address(8)?;
    let to = address(24)?;
    Some(Ip { from, to, protocol: head[6], body, ecn: head[1] >> 4 & 3 })
}

fn read_tcp(body: &[u8]) -> Option<((u16, u16), Head, &[u8])> {
    let offset = usize::from(*body.get(12)? >> 4) * 4;
    if offset < TCP_HEAD {
        return None;
    }
    let options = body.get(TCP_HEAD..offset)?;
    let mut head = Head {
        seq: word(body, 4),
        ack: word(body, 8),
        flags: body[13],
        window: half(body, 14),
        urgent: half(body, 18),
        ..Head::default()
    };
    head.read_options(options);
    Some(((half(body, 0), half(body, 2)), head, &body[offset..]))
}

/// Parses an error message about one of our packets (RFC 792, RFC 4443).
fn read_icmp(ip: &Ip<'_>) -> Option<ArrivedPacket<'static>> {
    let body = ip.body;
    let what = (*body.first()?, *body.get(1)?);
    let (too_large, pseudo) = match (ip.protocol, what) {
        (ICMP, (3, code)) => (code == 4, 0),
        (ICMPV6, (1, _)) => (false, ip.pseudo_sum()),
        (ICMPV6, (2, _)) => (true, ip.pseudo_sum()),
        _ => return None,
    };
    if ip.from.is_ipv4() != (ip.protocol == ICMP) || fold(sum(body) + pseudo) != 0xffff {
        return None;
    }
    let quoted = read_ip(body.get(8..)?, true)?;
    if quoted.protocol != TCP || quoted.body.len() < 8 {
        return None;
    }
    let end = |address, at| End { address, port: half(quoted.body, at) };
    let ours = Flow { from: end(quoted.from, 0), to: end(quoted.to, 2) };
    let seq = word(quoted.body, 4);
    // a 16-bit field in IPv4, 32 bits in IPv6
    let mtu = if ip.protocol == ICMP { half(body, 6).into() } else { word(body, 4) };
    Some(match too_large {
        true => ArrivedPacket::TooLarge { ours, seq, mtu: mtu.min(u16::MAX.into()) as u16 },
        false => ArrivedPacket::Unreachable { ours, seq },
    })
}

/// Returns the sum of the Internet checksum (RFC 1071), not folded.
fn sum(bytes: &[u8]) -> u64 {
    let mut total = 0_u64;
    let mut words = bytes.chunks_exact(4);
    for four in &mut words {
        total += u64::from(word(four, 0));
    }
    let rest = words.remainder();
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    total + u64::from(u32::from_be_bytes(last))
}

fn fold(mut total: u64) -> u16 {
    while total > 0xffff {
        total = (total >> 16) + (total & 0xffff);
    }
    total as u16
}

/// Returns the checksum of a message whose checksum field is zero, with its pseudo-header (RFC 8200
/// section 8.1); 0 if the message contains the correct one.
pub fn checksum(from: IpAddr, to: IpAddr, protocol: u8, message: &[u8]) -> u16 {
    !fold(sum(message) + pseudo_sum(from, to, protocol, message.len()))
}

fn address_sum(address: IpAddr) -> u64 {
    match address {
        IpAddr::V4(address) => u64::from(address.to_bits()),
        IpAddr::V6(address) => sum(&address.octets()),
    }
}

fn pseudo_sum(from: IpAddr, to: IpAddr, protocol: u8, length: usize) -> u64 {
    address_sum(from) + address_sum(to) + u64::from(protocol) + length as u64
}

/// Writes an IP header for the given number of TCP bytes. Writes nothing if that is too long or the
/// address families differ.
fn put_head(out: &mut Vec<u8>, from: IpAddr, to: IpAddr, length: usize, ecn: u8) -> Option<()> {
    match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let total = u16::try_from(IP_HEAD + length).ok()?;
            let ip = out.len();
            out.extend_from_slice(&[0x45, ecn & 3]);
            out.extend_from_slice(&total.to_be_bytes());
            // identification 0, do not fragment, 64 hops, TCP, the checksum follows
            out.extend_from_slice(&[0, 0, 0x40, 0, 64, TCP, 0, 0]);
            out.extend_from_slice(&from.octets());
            out.extend_from_slice(&to.octets());
            let check = !fold(sum(&out[ip..]));
            out[ip + 10..ip + 12].copy_from_slice(&check.to_be_bytes());
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let length = u16::try_from(length).ok()?;
            // no flow label; TCP, 64 hops
            out.extend_from_slice(&[0x60, (ecn & 3) << 4, 0, 0]);
            out.extend_from_slice(&length.to_be_bytes());
            out.extend_from_slice(&[TCP, 64]);
            out.extend_from_slice(&from.octets());
            out.extend_from_slice(&to.octets());
        }
        _ => return None,
    }
    Some(())
}

/// Place at which the TCP checksum of outgoing packets is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checksums {
    /// Computed here.
    #[default]
    Ours,
    /// Computed by the device: a virtio header that requests it precedes each packet.
    Device,
}

/// Outgoing packets, one after the other.
#[derive(Debug, Default)]
pub struct Outbox {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    checksums: Checksums,
}

impl Outbox {
    pub fn new(checksums: Checksums) -> Outbox {
        Outbox { checksums, ..Outbox::default() }
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the number of packets.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Returns the packets, each preceded by a virtio header if the device computes checksums.
    pub fn packets(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(&0).chain(&self.ends);
        starts.zip(&self.ends).map(|(start, end)| &self.bytes[*start..*end])
    }

    /// Adds a segment whose payload is in two slices. A segment too long for an IP packet is
    /// omitted.
    pub fn push(&mut self, flow: &Flow, head: &Head, payload: [&[u8]; 2]) {
        let options = head.options_length();
        let length = TCP_HEAD + options + payload[0].len() + payload[1].len();
        let from = flow.from.address;
        let to = flow.to.address;
        let before = self.bytes.len();
        let out = &mut self.bytes;
        if self.checksums == Checksums::Device {
            // flags NEEDS_CSUM, no segmentation; hdr_len, gso_size, csum_start, csum_offset
            out.extend_from_slice(&[1, 0, 0, 0, 0, 0]);
            out.extend_from_slice(&(flow.from.head() as u16).to_ne_bytes());
            out.extend_from_slice(&16_u16.to_ne_bytes());
        }
        if put_head(out, from, to, length, head.ecn).is_none() {
            out.truncate(before);
            return;
        }
        let tcp = out.len();
        out.extend_from_slice(&flow.from.port.to_be_bytes());
        out.extend_from_slice(&flow.to.port.to_be_bytes());
        out.extend_from_slice(&head.seq.to_be_bytes());
        out.extend_from_slice(&head.ack.to_be_bytes());
        out.extend_from_slice(&[((TCP_HEAD + options) as u8 / 4) << 4, head.flags]);
        out.extend_from_slice(&head.window.to_be_bytes());
        out.extend_from_slice(&[0, 0]);
        out.extend_from_slice(&head.urgent.to_be_bytes());
        head.put_options(out);
        out.extend_from_slice(payload[0]);
        out.extend_from_slice(payload[1]);
        let pseudo = pseudo_sum(from, to, TCP, length);
        let check = match self.checksums {
            Checksums::Ours => !fold(pseudo + sum(&out[tcp..])),
            Checksums::Device => fold(pseudo),
        };
        out[tcp + 16..tcp + 18].copy_from_slice(&check.to_be_bytes());
        self.ends.push(out.len());
    }
}

/// Returns an IP packet with this TCP segment (ports to payload), with any content. The checksum is
/// inserted; it is correct if `wrong` is 0, and otherwise XORed with it. `None` if it is not a
/// segment or too long for a packet.
pub fn raw_packet(from: IpAddr, to: IpAddr, mut segment: Vec<u8>, wrong: u16) -> Option<Vec<u8>> {
    segment.get_mut(16..18)?.fill(0);
    let sum_of_all = sum(&segment) + pseudo_sum(from, to, TCP, segment.len());
    let check = !fold(sum_of_all) ^ wrong;
    segment.get_mut(16..18)?.copy_from_slice(&check.to_be_bytes());
    let mut packet = Vec::with_capacity(IPV6_HEAD + segment.len());
    put_head(&mut packet, from, to, segment.len(), 0)?;
    packet.extend_from_slice(&segment);
    Some(packet)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_raw_packet_is_the_outboxs_and_may_have_a_wrong_sum() {
        let head = Head { seq: 5, ack: 6, flags: flag::ACK, window: 7, ..Head::default() };
        let mut out = Outbox::new(Checksums::Ours);
        out.push(&flow(), &head, [b"abc", b""]);
        let packet = out.packets().next().expect("one was put in").to_vec();
        let (from, to) = (flow().from.address, flow().to.address);
        let segment = packet[IP_HEAD..].to_vec();
        assert_eq!(raw_packet(from, to, segment.clone(), 0), Some(packet));
        let wrong = raw_packet(from, to, segment, 0x1234).expect("it fits");
        assert!(read(&wrong, false).is_none() && read(&wrong, true).is_some());
        assert_eq!(raw_packet(from, to, vec![0; 3], 0), None);
        assert_eq!(raw_packet(from, to, vec![0; 70_000], 0), None);
    }

    #[test]
    fn offloaded_checksums_are_recognized() {
        let head = Head { seq: 5, ack: 6, flags: flag::ACK, window: 7, ..Head::default() };
        let sent = |checksums, skip: usize| {
            let mut out = Outbox::new(checksums);
            out.push(&flow(), &head, [b"abc", b""]);
            out.packets().next().expect("one was put in")[skip..].to_vec()
        };
        let (whole, left) = (sent(Checksums::Ours, 0), sent(Checksums::Device, VNET_HEAD));
        assert_eq!((lacks_checksum(&whole), lacks_checksum(&left)), (false, true));
        assert!(read(&whole, false).is_some() && read(&left, false).is_none());
        // links pad short frames
        let padded = [&left[..], &[0; 9]].concat();
        assert!(lacks_checksum(&padded));
        let mut broken = left.clone();
        broken[IP_HEAD + 17] ^= 1;
        assert!(!lacks_checksum(&broken));
        for length in 0..left.len() {
            assert!(!lacks_checksum(&left[..length]), "{length} bytes");
        }
    }

    fn flow() -> Flow {
        let end = |last, port| End { address: Ipv4Addr::new(10, 0, 0, last).into(), port };
        Flow { from: end(1, 40_000), to: end(2, 80) }
    }

    fn flow6() -> Flow {
        let address = |last| Ipv6Addr::new(0xfd00, 0, 0, 9, 0, 0, 0xfffe, last).into();
        let end = |last, port| End { address: address(last), port };
        Flow { from: end(1, 40_000), to: end(2, 80) }
    }

    /// The header of RFC 8200, and the checksum of section 8.1, computed by hand.
    #[test]
    fn a_segment_over_ipv6_has_the_bytes_of_the_rfc() {
        let head = Head { seq: 1, ack: 2, flags: flag::ACK, window: 3, ecn: 2, ..Head::default() };
        let mut out = Outbox::new(Checksums::Ours);
        out.push(&flow6(), &head, [b"hi", b""]);
        let packet = out.packets().next().expect("one was put in");
        assert_eq!(
            units::hex(packet),
            "6020000000160640\
             fd0000000000000900000000fffe0001\
             fd0000000000000900000000fffe0002\
             9c400050000000010000000250100003b0be00006869"
        );
    }

    #[test]
    fn icmpv6_reports_undelivered_packets() {
        let head = Head { seq: 77, flags: flag::ACK, ..Head::default() };
        let mut out = Outbox::new(Checksums::Ours);
        out.push(&flow6(), &head, [&[0; 1_400], b""]);
        let quoted = out.packets().next().expect("one was put in")[..80].to_vec();
        let router: IpAddr = Ipv6Addr::new(0xfd00, 0, 0, 1, 0, 0, 0, 1).into();
        let describe = |kind: u8, number: u32, wrong: u16| {
            let mut body = [&[kind, 0, 0, 0][..], &number.to_be_bytes(), &quoted].concat();
            let pseudo = pseudo_sum(router, flow6().from.address, ICMPV6, body.len());
            let check = !fold(sum(&body) + pseudo) ^ wrong;
            body[2..4].copy_from_slice(&check.to_be_bytes());
            let mut packet = Vec::new();
            put_head(&mut packet, router, flow6().from.address, body.len(), 0).expect("it fits");
            packet[6] = ICMPV6;
            packet.extend(body);
            read(&packet, false).map(|one| format!("{one:?}").split('{').next().map(String::from))
        };
        let name = |name: &str| Some(Some(name.to_owned()));
        assert_eq!(describe(2, 1_280, 0), name("TooLarge "));
        assert_eq!(describe(2, 1_280, 1), None, "the checksum tells");
        assert_eq!((describe(1, 0, 0), describe(3, 0, 0)), (name("Unreachable "), None));
    }

    #[test]
    fn written_packets_parse_back() {
        let syn = Head {
            seq: 7,
            flags: flag::SYN,
            window: 64_240,
            mss: Some(1_460),
            shift: Some(7),
            sack_permitted: true,
            stamps: Some((11, 0)),
            ..Head::default()
        };
        let data = Head {
            seq: u32::MAX,
            ack: 9,
            flags: flag::ACK | flag::PSH,
            stamps: Some((1, 2)),
            sacks: [(1, 2), (3, 4), (5, 6), (0, 0)],
            sack_count: 3,
            ecn: 2,
            ..Head::default()
        };
        let plain = Head { flags: flag::SYN, sack_permitted: true, ..Head::default() };
        let heads = [(syn, &b""[..]), (data, b"hello"), (plain, b"")];
        for (flow, (head, payload)) in
            [flow(), flow6()].iter().flat_map(|it| heads.map(|head| (*it, head)))
        {
            let mut out = Outbox::new(Checksums::Ours);
            let (left, right) = payload.split_at(payload.len() / 2);
            out.push(&flow, &head, [left, right]);
            let packet = out.packets().next().expect("one was put in").to_vec();
            let whole = read(&packet, false);
            assert_eq!(whole, Some(ArrivedPacket::Segment { flow, head, payload }));
            assert_eq!(destination(&packet), Some(flow.to.address));
            for length in 0..packet.len() {
                // any truncation: no panic, and nothing parsed
                assert_eq!(read(&packet[..length], false), None, "{length} bytes");
            }
            let mut broken = packet;
            let last = broken.len() - 1;
            broken[last] ^= 1;
            assert_eq!(read(&broken, false), None, "the checksum tells");
        }
    }

    #[test]
    fn the_syn_has_the_options_of_linux_in_their_order() {
        let syn = Head {
            flags: flag::SYN,
            mss: Some(1_460),
            shift: Some(10),
            sack_permitted: true,
            stamps: Some((1, 0)),
            ..Head::default()
        };
        let mut options = Vec::new();
        syn.put_options(&mut options);
        assert_eq!(
            options,
            [2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 10],
            "MSS, SACK permitted, time stamps, NOP, window scale"
        );
        assert_eq!(options.len(), syn.options_length());
    }

    #[test]
    fn any_bytes_are_read_without_panic() {
        let seed = units::Seed(4);
        let mut draw = seed.stream(units::Purpose::Think, 0);
        for _ in 0..20_000 {
            let length = (draw.next_u64() % 90) as usize;
            let mut packet: Vec<u8> = (0..length).map(|_| draw.next_u64() as u8).collect();
            let six = draw.next_u64() & 1 == 0;
            if let Some(first) = packet.first_mut() {
                *first = if six { 0x60 } else { 0x45 };
            }
            if let Some(next) = packet.get_mut(6).filter(|_| six) {
                *next = if *next & 1 == 0 { TCP } else { ICMPV6 };
            }
            if let Some(protocol) = packet.get_mut(9).filter(|_| !six) {
                *protocol = if *protocol & 1 == 0 { 6 } else { 1 };
            }
            let (at, value) = if six { (4, length.saturating_sub(40)) } else { (2, length) };
            if let Some(room) = packet.get_mut(at..at + 2) {
                room.copy_from_slice(&(value as u16).to_be_bytes());
            }
            read(&packet, true);
        }
    }
}
