//! Arbitrary bytes as the packets of a connection, with calls of its owner in between. The fuzz
//! target includes this file too.

use super::tcp;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use tcp::{Checksums, End, Flow, Head, Outbox, Sources, TcpSettings, TcpStack, flag, read};
use units::{Nanos, Seed};

/// Room for a packet that stays in memory: more than sixty times 255 bytes.
const ROOM: usize = 20_000;

/// Splits the data into actions: each piece is a byte that selects the action, a length and that
/// number of bytes.
pub(crate) fn packets(data: &[u8]) {
    // the first byte selects the family
    let six = data.first().is_some_and(|byte| byte & 0x80 != 0);
    let address = |net: u16, last: u16| match six {
        true => IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, net, 0, 0, 0, last)),
        false => IpAddr::V4(Ipv4Addr::new(10, net as u8, 0, last as u8)),
    };
    let sources =
        Sources { first: address(9, 1), addresses: 1, port_first: 40_000, port_last: 40_000 };
    let peer = End { address: address(0, 2), port: 80 };
    let from = End { address: sources.first, port: 40_000 };
    let mut stack = TcpStack::new(TcpSettings::default(), sources, Checksums::Ours, Seed(1));
    let mut now = Nanos::from_secs(1);
    stack.open(now, 0, peer, true, (None, None)).ok();
    let mut taken = vec![0; 2 * ROOM].into_boxed_slice();
    let (mut ours, mut rest) = (0, data);
    while let [what, length, behind @ ..] = rest {
        let (piece, next) = behind.split_at(usize::from(*length).min(behind.len()));
        rest = next;
        for packet in stack.outgoing().packets() {
            if let Some(tcp::ArrivedPacket::Segment { head, .. }) = read(packet, true) {
                ours = head.seq;
            }
        }
        stack.sent();
        let number = |at: usize| {
            let word = piece.get(at..at + 4).and_then(|four| four.try_into().ok());
            word.map_or(0, u32::from_be_bytes)
        };
        match what % 8 {
            0 => stack.deliver(now, piece, true),
            3 if what & 8 != 0 => drop(stack.take(now, 0, &mut taken)),
            1 => now += Nanos::from_millis(u64::from(*length) * 10),
            2 => drop(stack.write(now, 0, piece)),
            3 => drop(stack.read(now, 0, &mut [0; 500])),
            4 => stack.shutdown_write(now, 0),
            kind => {
                // a segment that nearly fits
                let flags = if kind == 5 { flag::SYN | flag::ACK } else { *what };
                let head = Head {
                    seq: number(0) >> 12,
                    ack: ours.wrapping_add(number(4) >> 20),
                    flags: flags | flag::ACK,
                    window: number(2) as u16,
                    sacks: [(ours, ours.wrapping_add(number(6) >> 18)); 4],
                    sack_count: what >> 6,
                    sack_permitted: kind == 5,
                    ..Head::default()
                };
                let mut out = Outbox::new(Checksums::Ours);
                // some are long enough to be read in place
                let long = if kind == 7 { piece.repeat(60) } else { piece.to_vec() };
                out.push(&Flow { from: peer, to: from }, &head, [&long, &[]]);
                out.packets().for_each(|packet| deliver(&mut stack, now, packet, kind == 7));
            }
        }
        stack.arm(now);
        stack.tick(now);
    }
    // connections without an owner end, regardless of their state
    stack.close(now, 0, false);
    for _ in 0..40 {
        now += Nanos::from_secs(130);
        stack.arm(now);
        stack.tick(now);
    }
    assert_eq!(stack.connections(), 0);
}

/// Delivers a packet. `stays`: in the memory of the stack, where it is read.
fn deliver(stack: &mut TcpStack, now: Nanos, packet: &[u8], stays: bool) {
    if !stays || packet.len() > ROOM {
        return stack.deliver(now, packet, true);
    }
    stack.room(ROOM)[..packet.len()].copy_from_slice(packet);
    stack.deliver_here(now, 0..packet.len(), true);
}
