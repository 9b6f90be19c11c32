//! The program that runs for each packet which a device has received, before the kernel looks at it:
//! IPv4 packets to our addresses, and ARP that is sent to one of them or claims to have one, go to our
//! sockets, and all else goes on as if it were not there. Assembled by hand: 30 instructions.

use std::net::Ipv4Addr;

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

/// Operations by the names of RFC 9669 section 4 and 5: class, source and operation in one byte.
mod code {
    pub(super) const LOAD_32: u8 = 0x61;
    pub(super) const LOAD_16: u8 = 0x69;
    pub(super) const LOAD_NUMBER_64: u8 = 0x18;
    pub(super) const COPY_64: u8 = 0xbf;
    pub(super) const SET_64: u8 = 0xb7;
    pub(super) const ADD_64: u8 = 0x07;
    pub(super) const SUBTRACT_32: u8 = 0x14;
    /// From the network's order of bytes, or into it.
    pub(super) const NETWORK_ORDER: u8 = 0xdc;
    pub(super) const JUMP: u8 = 0x05;
    pub(super) const JUMP_IF_EQUAL: u8 = 0x15;
    pub(super) const JUMP_UNLESS_EQUAL: u8 = 0x55;
    pub(super) const JUMP_IF_ABOVE_REGISTER: u8 = 0x2d;
    pub(super) const JUMP_IF_BELOW_32: u8 = 0xa6;
    pub(super) const JUMP_IF_NOT_BELOW_32: u8 = 0x36;
    pub(super) const CALL: u8 = 0x85;
    pub(super) const EXIT: u8 = 0x95;
}

/// `XDP_PASS`: the packet goes on.
const PASS: i32 = 2;
/// The helper bpf_redirect_map.
const REDIRECT_MAP: i32 = 51;
/// The source register that makes a number the descriptor of a map.
const IS_MAP: u8 = 1;
const IPV4: u16 = 0x0800;
const ARP: u16 = 0x0806;
/// Where the last instructions are, that let a packet pass.
const OUT: i16 = 28;

/// The jump from the instruction in this row to that one.
const fn to(row: i16, from: i16) -> i16 {
    row - from - 1
}

/// The program for `count` addresses from `first` on, at least one; `map` is a map from queues to sockets. A
/// packet of a queue that has no socket passes.
pub(crate) fn program(first: Ipv4Addr, count: u32, map: i32) -> [Instruction; 30] {
    use code::*;
    let kind = |number: u16| i32::from(number.to_be());
    let first = first.to_bits() as i32;
    [
        instruction(COPY_64, 6, 1, 0, 0),
        // struct xdp_md: data at 0, data_end at 4, rx_queue_index at 16
        instruction(LOAD_32, 2, 1, 0, 0),
        instruction(LOAD_32, 3, 1, 4, 0),
        // 14 bytes of Ethernet, 20 of IPv4
        instruction(COPY_64, 4, 2, 0, 0),
        instruction(ADD_64, 4, 0, 0, 34),
        instruction(JUMP_IF_ABOVE_REGISTER, 4, 3, to(OUT, 5), 0),
        instruction(LOAD_16, 5, 2, 12, 0),
        instruction(JUMP_IF_EQUAL, 5, 0, to(18, 7), kind(IPV4)),
        instruction(JUMP_UNLESS_EQUAL, 5, 0, to(OUT, 8), kind(ARP)),
        // 28 bytes of ARP
        instruction(COPY_64, 4, 2, 0, 0),
        instruction(ADD_64, 4, 0, 0, 42),
        instruction(JUMP_IF_ABOVE_REGISTER, 4, 3, to(OUT, 11), 0),
        // whose sender has an address of ours: the answer to a probe names no target
        instruction(LOAD_32, 5, 2, 28, 0),
        instruction(NETWORK_ORDER, 5, 0, 0, 32),
        instruction(SUBTRACT_32, 5, 0, 0, first),
        instruction(JUMP_IF_BELOW_32, 5, 0, to(22, 15), count as i32),
        // or that is for one of them
        instruction(LOAD_32, 5, 2, 38, 0),
        instruction(JUMP, 0, 0, to(19, 17), 0),
        // row 18: IPv4's destination
        instruction(LOAD_32, 5, 2, 30, 0),
        // row 19: is it ours?
        instruction(NETWORK_ORDER, 5, 0, 0, 32),
        instruction(SUBTRACT_32, 5, 0, 0, first),
        instruction(JUMP_IF_NOT_BELOW_32, 5, 0, to(OUT, 21), count as i32),
        // row 22: it is
        instruction(LOAD_32, 2, 6, 16, 0),
        // an instruction of two places
        instruction(LOAD_NUMBER_64, 1, IS_MAP, 0, map),
        instruction(0, 0, 0, 0, 0),
        instruction(SET_64, 3, 0, 0, PASS),
        instruction(CALL, 0, 0, 0, REDIRECT_MAP),
        instruction(EXIT, 0, 0, 0, 0),
        // row 28, OUT
        instruction(SET_64, 0, 0, 0, PASS),
        instruction(EXIT, 0, 0, 0, 0),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAP: i32 = 9;

    /// What the program does with a packet of queue 3. A machine for the operations that it has, which
    /// stops at a look behind the packet's end, as the kernel's check would.
    fn does(rows: &[Instruction], packet: &[u8]) -> String {
        // the packet lies at 1,000, what is known of it at 0
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
                code::LOAD_32 => r[d] = load(at, 4),
                code::LOAD_16 => r[d] = load(at, 2),
                code::LOAD_NUMBER_64 => {
                    r[d] = 100 + u64::from(number.unsigned_abs());
                    row += 1;
                }
                code::COPY_64 => r[d] = r[s],
                code::SET_64 => r[d] = u64::from(number.unsigned_abs()),
                code::ADD_64 => r[d] = r[d].wrapping_add_signed(number.into()),
                code::SUBTRACT_32 => r[d] = u64::from((r[d] as u32).wrapping_sub(number as u32)),
                code::NETWORK_ORDER => r[d] = u64::from((r[d] as u32).swap_bytes()),
                code::JUMP => jump = true,
                code::JUMP_IF_EQUAL => jump = r[d] == number as u64,
                code::JUMP_UNLESS_EQUAL => jump = r[d] != number as u64,
                code::JUMP_IF_ABOVE_REGISTER => jump = r[d] > r[s],
                code::JUMP_IF_BELOW_32 => jump = (r[d] as u32) < number as u32,
                code::JUMP_IF_NOT_BELOW_32 => jump = r[d] as u32 >= number as u32,
                code::CALL => {
                    assert_eq!((number, r[1], r[3]), (REDIRECT_MAP, 100 + MAP as u64, 2));
                    return format!("to the socket of queue {}", r[2]);
                }
                code::EXIT => {
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
        let rows = program(Ipv4Addr::new(10, 9, 0, 1), 254, MAP);
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
        let said: String =
            packets.iter().map(|(name, it)| format!("{name}: {}\n", does(&rows, it))).collect();
        assert_eq!(
            said,
            "IPv4 to the first: to the socket of queue 3\n\
             IPv4 to the last: to the socket of queue 3\n\
             IPv4 to the one before: passes\n\
             IPv4 to the one behind: passes\n\
             IPv4 to another: passes\n\
             ARP for ours: to the socket of queue 3\n\
             ARP from who has ours: to the socket of queue 3\n\
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
    fn addresses_above_the_half_are_no_negative_numbers() {
        let rows = program(Ipv4Addr::new(198, 18, 0, 1), 65_534, MAP);
        assert!(does(&rows, &ipv4([198, 18, 255, 254])).starts_with("to "));
        for other in [[198, 19, 0, 0], [198, 18, 0, 0], [127, 0, 0, 1], [0, 0, 0, 0], [255; 4]] {
            assert_eq!(does(&rows, &ipv4(other)), "passes", "{other:?}");
        }
    }

    /// What the kernel is given, byte by byte.
    #[cfg(target_endian = "little")]
    #[test]
    fn the_bytes() {
        let rows = program(Ipv4Addr::new(10, 9, 0, 1), 254, MAP);
        let said: Vec<String> = rows
            .iter()
            .map(|it| {
                let (offset, number) = (it.offset.to_le_bytes(), it.number.to_le_bytes());
                units::hex([&[it.code, it.registers][..], &offset, &number].concat())
            })
            .collect();
        assert_eq!(
            said[..10],
            [
                "bf16000000000000",
                "6112000000000000",
                "6113040000000000",
                "bf24000000000000",
                "0704000022000000",
                "2d34160000000000",
                "69250c0000000000",
                "15050a0008000000",
                "5505130008060000",
                "bf24000000000000",
            ]
        );
        // the first address, so many of them, the queue, the map
        let rest = ["140500000100090a", "36050600fe000000", "6162100000000000", "1811000009000000"];
        assert_eq!(said[20..24], rest);
        assert_eq!(said[28..], ["b700000002000000", "9500000000000000"]);
    }
}
