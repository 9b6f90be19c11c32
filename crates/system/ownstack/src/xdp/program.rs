//! The BPF program that runs for each received packet before the kernel processes it: packets to
//! our addresses, and ARP or ND messages about one of them, go to our sockets; everything else
//! passes unchanged. Assembled by hand.

use std::net::IpAddr;

/// `struct bpf_insn`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Instruction {
    code: u8,
    /// Destination and source, 4 bits each.
    registers: u8,
    offset: i16,
    number: i32,
}

const fn instruction(code: u8, to: u8, from: u8, offset: i16, number: i32) -> Instruction {
    let registers = if cfg!(target_endian = "little") { from << 4 | to } else { to << 4 | from };
    Instruction { code, registers, offset, number }
}

/// Operations by the names of RFC 9669 sections 4 and 5: class, source and operation in one byte.
mod code {
    pub(super) const LOAD_32: u8 = 0x61;
    pub(super) const LOAD_16: u8 = 0x69;
    pub(super) const LOAD_8: u8 = 0x71;
    pub(super) const LOAD_NUMBER_64: u8 = 0x18;
    pub(super) const COPY_64: u8 = 0xbf;
    pub(super) const SET_64: u8 = 0xb7;
    pub(super) const ADD_64: u8 = 0x07;
    pub(super) const ADD_REGISTER_64: u8 = 0x0f;
    pub(super) const SHIFT_LEFT_64: u8 = 0x67;
    pub(super) const SHIFT_RIGHT_64: u8 = 0x77;
    pub(super) const SUBTRACT_32: u8 = 0x14;
    /// From or to network byte order.
    pub(super) const NETWORK_ORDER: u8 = 0xdc;
    pub(super) const JUMP: u8 = 0x05;
    pub(super) const JUMP_IF_EQUAL: u8 = 0x15;
    pub(super) const JUMP_UNLESS_EQUAL_32: u8 = 0x56;
    pub(super) const JUMP_IF_ABOVE_REGISTER: u8 = 0x2d;
    pub(super) const JUMP_IF_BELOW_32: u8 = 0xa6;
    pub(super) const JUMP_IF_NOT_BELOW_32: u8 = 0x36;
    pub(super) const CALL: u8 = 0x85;
    pub(super) const EXIT: u8 = 0x95;
}

use code::*;

/// `XDP_PASS`: the packet goes to the kernel.
const PASS: i32 = 2;
/// The helper bpf_redirect_map.
const REDIRECT_MAP: i32 = 51;
/// The source register value that marks a number as the descriptor of a map.
const IS_MAP: u8 = 1;
const IPV4: u16 = 0x0800;
const ARP: u16 = 0x0806;
const IPV6: u16 = 0x86dd;
const ICMPV6: i32 = 58;
/// The hop limit of a message that no router has forwarded (RFC 4861 section 7.1.1).
const ON_LINK_HOPS: i32 = 255;
const SOLICITATION: i32 = 135;
const ADVERTISEMENT: i32 = 136;

/// Our addresses, in parts of equal size, each with its own socket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Steering {
    /// The first address; IPv6 addresses share the first 96 bits.
    pub(crate) first: IpAddr,
    /// Number of addresses from the first on, at least one. The address before the first belongs to
    /// the first part.
    pub(crate) count: u32,
    /// Addresses per part and number of parts, as powers of two.
    pub(crate) part_bits: u32,
    pub(crate) parts_bits: u32,
    /// A map whose key is the queue and, in the lowest bits, the part. A packet without a socket
    /// there passes to the kernel.
    pub(crate) map: i32,
}

/// A jump target in the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Label {
    /// An IPv4 packet, after its EtherType.
    Packet,
    /// The last 4 bytes of an address are in register 5: checks whether it is ours.
    Ask,
    /// The packet may be ND.
    Discovery,
    /// The packet is ND: checks the source.
    Sender,
    /// Checks the target.
    Target,
    /// Register 5 has the offset of one of our addresses from the first.
    Ours,
    Out,
}

/// The program so far. Register 2 has the start of the packet, 3 its end, 6 the context.
#[derive(Debug, Default)]
struct Assembly {
    rows: Vec<Instruction>,
    jumps: Vec<(usize, Label)>,
    places: Vec<(Label, usize)>,
}

impl Assembly {
    fn put(&mut self, code: u8, to: u8, from: u8, offset: i16, number: i32) {
        self.rows.push(instruction(code, to, from, offset, number));
    }

    fn jump(&mut self, code: u8, to: u8, number: i32, label: Label) {
        self.jumps.push((self.rows.len(), label));
        self.put(code, to, 0, 0, number);
    }

    fn here(&mut self, label: Label) {
        self.places.push((label, self.rows.len()));
    }

    /// Passes shorter packets to the kernel.
    fn need(&mut self, bytes: i32) {
        self.put(COPY_64, 4, 2, 0, 0);
        self.put(ADD_64, 4, 0, 0, bytes);
        self.jumps.push((self.rows.len(), Label::Out));
        self.put(JUMP_IF_ABOVE_REGISTER, 4, 3, 0, 0);
    }

    /// Jumps unless the bytes at this place equal this number in network byte order.
    fn jump_unless(&mut self, load: u8, at: i16, number: i32, label: Label) {
        self.put(load, 5, 2, at, 0);
        self.jump(JUMP_UNLESS_EQUAL_32, 5, number, label);
    }

    /// Computes the offset of an address from the first one; register 5 contains its last 4 bytes.
    fn distance(&mut self, first: u32) {
        self.put(NETWORK_ORDER, 5, 0, 0, 32);
        self.put(SUBTRACT_32, 5, 0, 0, first as i32);
    }

    fn finish(mut self) -> Vec<Instruction> {
        for (row, label) in &self.jumps {
            let place = self.places.iter().find(|(known, _)| known == label);
            let (_, place) = place.expect("each label that is jumped to has a place");
            self.rows[*row].offset = (place - row - 1) as i16;
        }
        self.rows
    }
}

/// Returns the program in a form that the kernel's verifier accepts.
pub(crate) fn program(steering: &Steering) -> Vec<Instruction> {
    let mut all = Assembly::default();
    all.put(COPY_64, 6, 1, 0, 0);
    // struct xdp_md: data at 0, data_end at 4, rx_queue_index at 16
    all.put(LOAD_32, 2, 1, 0, 0);
    all.put(LOAD_32, 3, 1, 4, 0);
    match steering.first {
        IpAddr::V4(first) => ipv4(&mut all, first.to_bits(), steering.count),
        IpAddr::V6(first) => ipv6(&mut all, first.octets(), steering.count),
    }
    all.here(Label::Ours);
    all.put(LOAD_32, 2, 6, 16, 0);
    all.put(SHIFT_LEFT_64, 2, 0, 0, steering.parts_bits as i32);
    all.put(ADD_64, 5, 0, 0, 1);
    all.put(SHIFT_RIGHT_64, 5, 0, 0, steering.part_bits as i32);
    all.put(ADD_REGISTER_64, 2, 5, 0, 0);
    // an instruction of two slots
    all.put(LOAD_NUMBER_64, 1, IS_MAP, 0, steering.map);
    all.put(0, 0, 0, 0, 0);
    all.put(SET_64, 3, 0, 0, PASS);
    all.put(CALL, 0, 0, 0, REDIRECT_MAP);
    all.put(EXIT, 0, 0, 0, 0);
    all.here(Label::Out);
    all.put(SET_64, 0, 0, 0, PASS);
    all.put(EXIT, 0, 0, 0, 0);
    all.finish()
}

fn kind(number: u16) -> i32 {
    i32::from(number.to_be())
}

fn ipv4(all: &mut Assembly, first: u32, count: u32) {
    // 14 bytes of Ethernet, 20 of IPv4
    all.need(34);
    all.put(LOAD_16, 5, 2, 12, 0);
    all.jump(JUMP_IF_EQUAL, 5, kind(IPV4), Label::Packet);
    all.jump(JUMP_UNLESS_EQUAL_32, 5, kind(ARP), Label::Out);
    // 28 bytes of ARP
    all.need(42);
    // the sender has an address of ours: the reply to a probe names no target
    all.put(LOAD_32, 5, 2, 28, 0);
    all.distance(first);
    all.jump(JUMP_IF_BELOW_32, 5, count as i32, Label::Ours);
    // or the target is one of them
    all.put(LOAD_32, 5, 2, 38, 0);
    all.jump(JUMP, 0, 0, Label::Ask);
    all.here(Label::Packet);
    all.put(LOAD_32, 5, 2, 30, 0);
    all.here(Label::Ask);
    all.distance(first);
    all.jump(JUMP_IF_NOT_BELOW_32, 5, count as i32, Label::Out);
}

fn ipv6(all: &mut Assembly, first: [u8; 16], count: u32) {
    let Ok([a, b, c, last]) = <[[u8; 4]; 4]>::try_from(first.as_chunks::<4>().0) else { return };
    let words = [a, b, c];
    let same = |all: &mut Assembly, at: i16, label| {
        for (at, word) in (at..).step_by(4).zip(&words) {
            all.jump_unless(LOAD_32, at, i32::from_ne_bytes(*word), label);
        }
        all.put(LOAD_32, 5, 2, at + 12, 0);
        all.distance(u32::from_be_bytes(last));
    };
    // 14 bytes of Ethernet, 40 of IPv6
    all.need(54);
    all.jump_unless(LOAD_16, 12, kind(IPV6), Label::Out);
    // the destination
    same(all, 38, Label::Discovery);
    all.jump(JUMP_IF_BELOW_32, 5, count as i32, Label::Ours);
    // solicitations for one of ours go to a multicast group, and so do messages of a host that uses
    // one
    all.here(Label::Discovery);
    all.need(78);
    all.jump_unless(LOAD_8, 20, ICMPV6, Label::Out);
    all.jump_unless(LOAD_8, 21, ON_LINK_HOPS, Label::Out);
    all.put(LOAD_8, 5, 2, 54, 0);
    all.jump(JUMP_IF_EQUAL, 5, SOLICITATION, Label::Sender);
    all.jump(JUMP_UNLESS_EQUAL_32, 5, ADVERTISEMENT, Label::Out);
    all.here(Label::Sender);
    same(all, 22, Label::Target);
    all.jump(JUMP_IF_BELOW_32, 5, count as i32, Label::Ours);
    all.here(Label::Target);
    same(all, 62, Label::Out);
    all.jump(JUMP_IF_NOT_BELOW_32, 5, count as i32, Label::Out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv6Addr;

    const MAP: i32 = 9;

    /// Returns the program's action for a packet of queue 3: an interpreter of its operations,
    /// which fails on an access after the end of the packet, as the kernel's verifier would.
    fn does(rows: &[Instruction], packet: &[u8]) -> String {
        // the packet is at address 1,000, its context at 0
        let end = 1_000 + packet.len() as u64;
        let mut r = [0_u64; 11];
        let mut row = 0_usize;
        let load = |at: u64, length: usize| -> u64 {
            match at {
                0 => 1_000,
                4 => end,
                16 => 3,
                _ => {
                    let at = at.checked_sub(1_000).expect("a place of the packet") as usize;
                    let bytes = packet.get(at..at + length).expect("a place before the end");
                    let mut all = [0; 8];
                    all[..length].copy_from_slice(bytes);
                    u64::from_le_bytes(all)
                }
            }
        };
        loop {
            let Instruction { code: what, registers, offset, number } = rows[row];
            let (d, s) = (usize::from(registers & 15), usize::from(registers >> 4));
            let at = r[s].wrapping_add_signed(offset.into());
            let mut jump = false;
            match what {
                LOAD_32 => r[d] = load(at, 4),
                LOAD_16 => r[d] = load(at, 2),
                LOAD_8 => r[d] = load(at, 1),
                LOAD_NUMBER_64 => {
                    r[d] = 100 + u64::from(number.unsigned_abs());
                    row += 1;
                }
                COPY_64 => r[d] = r[s],
                SET_64 => r[d] = u64::from(number.unsigned_abs()),
                ADD_64 => r[d] = r[d].wrapping_add_signed(number.into()),
                ADD_REGISTER_64 => r[d] = r[d].wrapping_add(r[s]),
                SHIFT_LEFT_64 => r[d] <<= number,
                SHIFT_RIGHT_64 => r[d] >>= number,
                SUBTRACT_32 => r[d] = u64::from((r[d] as u32).wrapping_sub(number as u32)),
                NETWORK_ORDER => r[d] = u64::from((r[d] as u32).swap_bytes()),
                JUMP => jump = true,
                JUMP_IF_EQUAL => jump = r[d] == number as u64,
                JUMP_UNLESS_EQUAL_32 => jump = r[d] as u32 != number as u32,
                JUMP_IF_ABOVE_REGISTER => jump = r[d] > r[s],
                JUMP_IF_BELOW_32 => jump = (r[d] as u32) < number as u32,
                JUMP_IF_NOT_BELOW_32 => jump = r[d] as u32 >= number as u32,
                CALL => {
                    assert_eq!((number, r[1], r[3]), (REDIRECT_MAP, 100 + MAP as u64, 2));
                    return format!("to socket {}", r[2]);
                }
                EXIT => {
                    assert_eq!(r[0], PASS as u64);
                    return "passes".to_owned();
                }
                _ => panic!("an instruction that the program should not have: {what:#x}"),
            }
            if jump {
                row = row.wrapping_add_signed(offset.into());
            }
            row += 1;
        }
    }

    /// Returns the program for addresses from the first on in one part, with a map of one part.
    fn whole(first: &str, count: u32) -> Vec<Instruction> {
        let first = first.parse().expect("an address");
        program(&Steering { first, count, part_bits: 32, parts_bits: 0, map: MAP })
    }

    fn frame(kind: u16, body: &[u8]) -> Vec<u8> {
        [&[2; 12][..], &kind.to_be_bytes(), body].concat()
    }

    fn ipv4(to: [u8; 4]) -> Vec<u8> {
        let head = [&[0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0, 192, 0, 2, 1][..], &to].concat();
        frame(IPV4, &[&head[..], &[0; 20]].concat())
    }

    fn arp(from: [u8; 4], target: [u8; 4]) -> Vec<u8> {
        let head = [0, 1, 8, 0, 6, 4, 0, 1, 2, 2, 2, 2, 2, 2];
        frame(ARP, &[&head[..], &from, &[0; 6], &target].concat())
    }

    #[test]
    fn packets_and_arp_of_our_addresses_are_ours_the_rest_passes() {
        let rows = whole("10.9.0.1", 254);
        let other = [192, 0, 2, 9];
        let mut short = arp(other, [10, 9, 0, 7]);
        short.truncate(41);
        let tagged = frame(0x8100, &[&[0, 5, 8, 0][..], &ipv4([10, 9, 0, 7])[14..]].concat());
        let packets = [
            ("IPv4 to the first", ipv4([10, 9, 0, 1])),
            ("IPv4 to the last", ipv4([10, 9, 0, 254])),
            ("IPv4 to the one before", ipv4([10, 9, 0, 0])),
            ("IPv4 to the one behind", ipv4([10, 9, 0, 255])),
            ("IPv4 to another", ipv4(other)),
            ("ARP for ours", arp(other, [10, 9, 0, 77])),
            ("ARP from who has ours", arp([10, 9, 0, 77], [0; 4])),
            ("ARP for another", arp(other, [192, 0, 2, 8])),
            ("ARP that is cut", short),
            ("IPv6", frame(0x86dd, &[0x60; 60])),
            ("a VLAN's", tagged),
            ("another kind", frame(0x88cc, &[10; 60])),
            ("IPv4 that is cut", ipv4([10, 9, 0, 1])[..33].to_vec()),
            ("nothing", Vec::new()),
        ];
        let text: String =
            packets.iter().map(|(name, it)| format!("{name}: {}\n", does(&rows, it))).collect();
        assert_eq!(
            text,
            "IPv4 to the first: to socket 3\n\
             IPv4 to the last: to socket 3\n\
             IPv4 to the one before: passes\n\
             IPv4 to the one behind: passes\n\
             IPv4 to another: passes\n\
             ARP for ours: to socket 3\n\
             ARP from who has ours: to socket 3\n\
             ARP for another: passes\n\
             ARP that is cut: passes\n\
             IPv6: passes\n\
             a VLAN's: passes\n\
             another kind: passes\n\
             IPv4 that is cut: passes\n\
             nothing: passes\n"
        );
    }

    #[test]
    fn addresses_above_the_half_are_not_negative() {
        let rows = whole("198.18.0.1", 65_534);
        assert!(does(&rows, &ipv4([198, 18, 255, 254])).starts_with("to "));
        for other in [[198, 19, 0, 0], [198, 18, 0, 0], [127, 0, 0, 1], [0, 0, 0, 0], [255; 4]] {
            assert_eq!(does(&rows, &ipv4(other)), "passes", "{other:?}");
        }
    }

    /// Four parts of 64 addresses; each queue has four sockets: queue 3 those from 12 on.
    #[test]
    fn each_part_of_the_addresses_has_a_socket_of_its_own() {
        let first = "10.9.0.1".parse().expect("an address");
        let rows = program(&Steering { first, count: 254, part_bits: 6, parts_bits: 2, map: MAP });
        let other = [192, 0, 2, 9];
        let effects = [1, 63, 64, 127, 128, 192, 254].map(|last| {
            let (to, from) = (ipv4([10, 9, 0, last]), arp([10, 9, 0, last], other));
            assert_eq!(does(&rows, &to), does(&rows, &from));
            assert_eq!(does(&rows, &to), does(&rows, &arp(other, [10, 9, 0, last])));
            does(&rows, &to)
        });
        let socket = ["to socket 12", "to socket 13", "to socket 14", "to socket 15"];
        let [a, b, c, d] = socket;
        assert_eq!(effects, [a, a, b, b, c, d, d]);
    }

    fn octets(address: &str) -> [u8; 16] {
        address.parse::<Ipv6Addr>().expect("an address").octets()
    }

    fn ipv6(to: &str, kind: u8, hops: u8, target: &str) -> Vec<u8> {
        let (from, to) = (octets("2001:db8::9"), octets(to));
        let head = [&[0x60, 0, 0, 0, 0, 32, 58, hops][..], &from, &to].concat();
        frame(IPV6, &[&head[..], &[kind, 0, 0, 0, 0, 0, 0, 0], &octets(target), &[1; 8]].concat())
    }

    fn from(who: &str, mut frame: Vec<u8>) -> Vec<u8> {
        frame[22..38].copy_from_slice(&octets(who));
        frame
    }

    #[test]
    fn packets_and_nd_of_our_addresses_of_ipv6_are_ours() {
        let first = "fd00:0:0:9::ffff:1".parse().expect("an address");
        let steering = Steering { first, count: 0xfffe, part_bits: 15, parts_bits: 1, map: MAP };
        let rows = program(&steering);
        let (all, ours, ours_too) =
            ("ff02::1:ff00:5", "fd00:0:0:9::ffff:5", "fd00:0:0:9::ffff:8005");
        let other = "fd00:0:0:9::fffe:5";
        let mut udp = ipv6(all, 135, 255, ours);
        udp[20] = 17;
        let packets = [
            ("to ours", ipv6(ours, 128, 64, other)),
            ("to ours of the other part", ipv6(ours_too, 128, 64, other)),
            ("to the last", ipv6("fd00:0:0:9::ffff:fffe", 128, 64, other)),
            ("to the one behind", ipv6("fd00:0:0:9::ffff:ffff", 128, 64, other)),
            ("to the one before", ipv6("fd00:0:0:9::ffff:0", 128, 64, other)),
            ("to another network", ipv6("fd00:0:0:8::ffff:5", 128, 64, other)),
            ("who is asked for ours", ipv6(all, 135, 255, ours)),
            ("who is asked for ours of the other part", ipv6(all, 135, 255, ours_too)),
            ("who has ours", ipv6("ff02::1", 136, 255, ours)),
            ("who is asked for another", ipv6(all, 135, 255, other)),
            ("a question of who has ours", from(ours, ipv6(all, 135, 255, other))),
            ("one of who has ours of the other part", from(ours_too, ipv6(all, 135, 255, ours))),
            ("an answer of who has ours", from(ours, ipv6("ff02::1", 136, 255, other))),
            ("another message of who has ours", from(ours, ipv6("ff02::1", 133, 255, other))),
            ("a question that a router let through", ipv6(all, 135, 254, ours)),
            ("a router's advertisement", ipv6("ff02::1", 134, 255, ours)),
            ("no ICMP", udp),
            ("a question that is cut", ipv6(all, 135, 255, ours)[..77].to_vec()),
            ("a packet that is cut", ipv6(ours, 128, 64, other)[..53].to_vec()),
            ("IPv4", ipv4([10, 9, 0, 1])),
        ];
        let text: String =
            packets.iter().map(|(name, it)| format!("{name}: {}\n", does(&rows, it))).collect();
        assert_eq!(
            text,
            "to ours: to socket 6\n\
             to ours of the other part: to socket 7\n\
             to the last: to socket 7\n\
             to the one behind: passes\n\
             to the one before: passes\n\
             to another network: passes\n\
             who is asked for ours: to socket 6\n\
             who is asked for ours of the other part: to socket 7\n\
             who has ours: to socket 6\n\
             who is asked for another: passes\n\
             a question of who has ours: to socket 6\n\
             one of who has ours of the other part: to socket 7\n\
             an answer of who has ours: to socket 6\n\
             another message of who has ours: passes\n\
             a question that a router let through: passes\n\
             a router's advertisement: passes\n\
             no ICMP: passes\n\
             a question that is cut: passes\n\
             a packet that is cut: passes\n\
             IPv4: passes\n"
        );
    }

    /// Checks the instructions for the kernel, byte by byte.
    #[cfg(target_endian = "little")]
    #[test]
    fn the_program_has_the_expected_bytes() {
        let rows = whole("10.9.0.1", 254);
        let bytes: Vec<String> = rows
            .iter()
            .map(|it| {
                let (offset, number) = (it.offset.to_le_bytes(), it.number.to_le_bytes());
                units::hex([&[it.code, it.registers][..], &offset, &number].concat())
            })
            .collect();
        assert_eq!(
            bytes[..10],
            [
                "bf16000000000000",
                "6112000000000000",
                "6113040000000000",
                "bf24000000000000",
                "0704000022000000",
                "2d341a0000000000",
                "69250c0000000000",
                "15050a0008000000",
                "5605170008060000",
                "bf24000000000000",
            ]
        );
        // the first address, the number of addresses, the queue, the map
        let rest = [
            "140500000100090a",
            "36050a00fe000000",
            "6162100000000000",
            "6702000000000000",
            "0705000001000000",
            "7705000020000000",
            "0f52000000000000",
            "1811000009000000",
        ];
        assert_eq!(bytes[20..28], rest);
        assert_eq!(bytes[32..], ["b700000002000000", "9500000000000000"]);
    }
}
