//! IPv4 packets with TCP segments (RFC 791, RFC 9293 section 3.1): read, and written into one buffer.

use std::net::Ipv4Addr;

/// Bits of a segment's head.
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

/// Bytes of an IPv4 head without options.
pub const IP_HEAD: usize = 20;
/// Bytes of a TCP head without options.
pub const TCP_HEAD: usize = 20;
/// Bytes of the header that a TUN device with IFF_VNET_HDR puts before each packet.
pub const VNET_HEAD: usize = 10;
/// SACK blocks in one segment at most (RFC 2018 section 3).
pub const SACK_BLOCKS: usize = 4;

/// Address and port of one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct End {
    pub address: Ipv4Addr,
    pub port: u16,
}

/// From where to where a segment goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    pub from: End,
    pub to: End,
}

/// A segment's head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    pub seq: u32,
    pub ack: u32,
    /// Bits of [`flag`].
    pub flags: u8,
    /// As it stands in the head, not scaled.
    pub window: u16,
    pub urgent: u16,
    pub mss: Option<u16>,
    pub shift: Option<u8>,
    pub sack_permitted: bool,
    /// TSval and TSecr (RFC 7323).
    pub stamps: Option<(u32, u32)>,
    /// SACK blocks, as many as `sack_count`.
    pub sacks: [(u32, u32); SACK_BLOCKS],
    pub sack_count: u8,
    /// The two ECN bits of the IP head (RFC 3168): 0 none, 2 ECT(0), 3 CE.
    pub ecn: u8,
}

impl Head {
    pub fn has(&self, bits: u8) -> bool {
        self.flags & bits != 0
    }

    pub fn sacks(&self) -> &[(u32, u32)] {
        &self.sacks[..usize::from(self.sack_count).min(SACK_BLOCKS)]
    }

    /// Bytes of its options, padded.
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

    /// Writes the options, in Linux's order: MSS, SACK permitted, time stamps, window scale; SACK last.
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

/// What a packet from outside is to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrivedPacket<'a> {
    Segment {
        flow: Flow,
        head: Head,
        payload: &'a [u8],
    },
    /// ICMP: a packet of ours was too large for a link; what fits (RFC 1191), 0 when it is not said.
    TooLarge {
        ours: Flow,
        seq: u32,
        mtu: u16,
    },
    /// ICMP: a packet of ours did not arrive.
    Unreachable {
        ours: Flow,
        seq: u32,
    },
}

/// Reads an IPv4 packet; `None` for what is no business of ours or broken. `checked`: the TCP checksum
/// has been seen to by whoever handed the packet over.
pub fn read(packet: &[u8], checked: bool) -> Option<ArrivedPacket<'_>> {
    let (from, to, protocol, body, ecn) = read_ip(packet, false)?;
    match protocol {
        6 => {
            if !checked && fold(sum(body) + pseudo_sum(from, to, body.len())) != 0xffff {
                return None;
            }
            let (ports, mut head, payload) = read_tcp(body)?;
            head.ecn = ecn;
            let flow = Flow {
                from: End { address: from, port: ports.0 },
                to: End { address: to, port: ports.1 },
            };
            Some(ArrivedPacket::Segment { flow, head, payload })
        }
        1 => read_icmp(body),
        _ => None,
    }
}

/// Whether a packet's TCP checksum has been left to a device that it did not go through: in its place is
/// the folded sum of the pseudo-header, as between devices of one machine.
pub fn is_sum_left_out(packet: &[u8]) -> bool {
    match read_ip(packet, false) {
        Some((from, to, 6, body, _)) if body.len() >= TCP_HEAD => {
            half(body, 16) == fold(pseudo_sum(from, to, body.len()))
        }
        _ => false,
    }
}

type Ip<'a> = (Ipv4Addr, Ipv4Addr, u8, &'a [u8], u8);

/// `cut`: the packet is quoted and may end early.
fn read_ip(packet: &[u8], cut: bool) -> Option<Ip<'_>> {
    let first = *packet.first()?;
    let head = usize::from(first & 15) * 4;
    let total = usize::from(half(packet, 2));
    let fragment = half(packet, 6) & 0x3fff;
    if first >> 4 != 4 || head < IP_HEAD || fragment != 0 || packet.len() < IP_HEAD {
        return None;
    }
    let end = if cut { packet.len() } else { total };
    let body = packet.get(head..end)?;
    let address = |at| Ipv4Addr::from(word(packet, at));
    Some((address(12), address(16), packet[9], body, packet[1] & 3))
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

fn read_icmp(body: &[u8]) -> Option<ArrivedPacket<'static>> {
    let (kind, code) = (*body.first()?, *body.get(1)?);
    // destination unreachable alone, and a checksum that is right
    if kind != 3 || fold(sum(body)) != 0xffff {
        return None;
    }
    let (from, to, protocol, quoted, _) = read_ip(body.get(8..)?, true)?;
    if protocol != 6 || quoted.len() < 8 {
        return None;
    }
    let end = |address, at| End { address, port: half(quoted, at) };
    let ours = Flow { from: end(from, 0), to: end(to, 2) };
    let seq = word(quoted, 4);
    Some(match code {
        4 => ArrivedPacket::TooLarge { ours, seq, mtu: half(body, 6) },
        _ => ArrivedPacket::Unreachable { ours, seq },
    })
}

/// The Internet checksum's sum (RFC 1071), not folded.
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

fn pseudo_sum(from: Ipv4Addr, to: Ipv4Addr, length: usize) -> u64 {
    u64::from(from.to_bits()) + u64::from(to.to_bits()) + 6 + length as u64
}

/// Who computes the TCP checksum of packets that go out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checksums {
    /// We do.
    #[default]
    Ours,
    /// The device: each packet has a virtio header before it, which asks for that.
    Device,
}

/// Packets on their way out, one behind the other.
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

    /// How many packets there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// The packets, each with the virtio header before it when the device computes checksums.
    pub fn packets(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(&0).chain(&self.ends);
        starts.zip(&self.ends).map(|(start, end)| &self.bytes[*start..*end])
    }

    /// Adds a segment whose payload is in two parts. What is too long for an IPv4 packet is left out.
    pub fn push(&mut self, flow: &Flow, head: &Head, payload: [&[u8]; 2]) {
        let options = head.options_length();
        let length = TCP_HEAD + options + payload[0].len() + payload[1].len();
        let Ok(total) = u16::try_from(IP_HEAD + length) else { return };
        let out = &mut self.bytes;
        if self.checksums == Checksums::Device {
            // flags NEEDS_CSUM, no segmentation; hdr_len, gso_size, csum_start, csum_offset
            out.extend_from_slice(&[1, 0, 0, 0, 0, 0]);
            out.extend_from_slice(&(IP_HEAD as u16).to_ne_bytes());
            out.extend_from_slice(&16_u16.to_ne_bytes());
        }
        let ip = out.len();
        out.extend_from_slice(&[0x45, head.ecn & 3]);
        out.extend_from_slice(&total.to_be_bytes());
        // identification 0, do not fragment, 64 hops, TCP, the checksum follows
        out.extend_from_slice(&[0, 0, 0x40, 0, 64, 6, 0, 0]);
        out.extend_from_slice(&flow.from.address.octets());
        out.extend_from_slice(&flow.to.address.octets());
        let check = !fold(sum(&out[ip..]));
        out[ip + 10..ip + 12].copy_from_slice(&check.to_be_bytes());
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
        let pseudo = pseudo_sum(flow.from.address, flow.to.address, length);
        let check = match self.checksums {
            Checksums::Ours => !fold(pseudo + sum(&out[tcp..])),
            Checksums::Device => fold(pseudo),
        };
        out[tcp + 16..tcp + 18].copy_from_slice(&check.to_be_bytes());
        self.ends.push(out.len());
    }
}

/// An IPv4 packet with this TCP segment, from its ports to its payload, whatever stands in it. The
/// checksum is put in, and is right when `wrong` is 0: that is what it is turned by. `None` for what is
/// no segment, or too long for a packet.
pub fn raw_packet(
    from: Ipv4Addr,
    to: Ipv4Addr,
    mut segment: Vec<u8>,
    wrong: u16,
) -> Option<Vec<u8>> {
    let total = u16::try_from(IP_HEAD + segment.len()).ok()?;
    segment.get_mut(16..18)?.fill(0);
    let sum_of_all = sum(&segment) + pseudo_sum(from, to, segment.len());
    let check = !fold(sum_of_all) ^ wrong;
    segment.get_mut(16..18)?.copy_from_slice(&check.to_be_bytes());
    let mut packet = Vec::with_capacity(usize::from(total));
    packet.extend_from_slice(&[0x45, 0]);
    packet.extend_from_slice(&total.to_be_bytes());
    packet.extend_from_slice(&[0, 0, 0x40, 0, 64, 6, 0, 0]);
    packet.extend_from_slice(&from.octets());
    packet.extend_from_slice(&to.octets());
    let check = !fold(sum(&packet));
    packet.get_mut(10..12)?.copy_from_slice(&check.to_be_bytes());
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
    fn a_checksum_that_is_left_to_a_device_is_told_from_a_whole_one() {
        let head = Head { seq: 5, ack: 6, flags: flag::ACK, window: 7, ..Head::default() };
        let sent = |checksums, skip: usize| {
            let mut out = Outbox::new(checksums);
            out.push(&flow(), &head, [b"abc", b""]);
            out.packets().next().expect("one was put in")[skip..].to_vec()
        };
        let (whole, left) = (sent(Checksums::Ours, 0), sent(Checksums::Device, VNET_HEAD));
        assert_eq!((is_sum_left_out(&whole), is_sum_left_out(&left)), (false, true));
        assert!(read(&whole, false).is_some() && read(&left, false).is_none());
        // a wire pads what is short
        let padded = [&left[..], &[0; 9]].concat();
        assert!(is_sum_left_out(&padded));
        let mut broken = left.clone();
        broken[IP_HEAD + 17] ^= 1;
        assert!(!is_sum_left_out(&broken));
        for length in 0..left.len() {
            assert!(!is_sum_left_out(&left[..length]), "{length} bytes");
        }
    }

    fn flow() -> Flow {
        let end = |last, port| End { address: Ipv4Addr::new(10, 0, 0, last), port };
        Flow { from: end(1, 40_000), to: end(2, 80) }
    }

    #[test]
    fn what_is_written_is_read_again() {
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
        for (head, payload) in [(syn, &b""[..]), (data, b"hello"), (plain, b"")] {
            let mut out = Outbox::new(Checksums::Ours);
            let (left, right) = payload.split_at(payload.len() / 2);
            out.push(&flow(), &head, [left, right]);
            let packet = out.packets().next().expect("one was put in").to_vec();
            let whole = read(&packet, false);
            assert_eq!(whole, Some(ArrivedPacket::Segment { flow: flow(), head, payload }));
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
            if let Some(first) = packet.first_mut() {
                *first = 0x45;
            }
            if let Some(protocol) = packet.get_mut(9) {
                *protocol = if *protocol & 1 == 0 { 6 } else { 1 };
            }
            if length > 3 {
                packet[2..4].copy_from_slice(&(length as u16).to_be_bytes());
            }
            read(&packet, true);
        }
    }
}
