//! The emulated links that a worker's packets go through: links of its own clients, or of one client that
//! all workers are.

use crate::port::BATCH;
use netpath::{Lanes, LanesShare, Tally};
use reactor::monotonic;
use rustix::io::Errno;
use std::convert::Infallible;
use std::net::Ipv4Addr;
use units::Nanos;
use wan::Direction;

/// Longer than any packet of a device that carries real ones.
const REAL_MAX: usize = 2_048;

#[derive(Debug)]
pub(crate) enum Links {
    /// Nobody else has packets on them.
    Alone(Lanes),
    /// The other workers have; this one's packets come to `address`.
    Common { share: LanesShare, address: Ipv4Addr },
}

impl Links {
    /// Puts what is to be sent on its way.
    pub(crate) fn send<'a>(&mut self, now: Nanos, packets: impl Iterator<Item = &'a [u8]>) {
        match self {
            Links::Common { share, .. } => share.put(now, Direction::Up, packets),
            Links::Alone(lanes) => packets.for_each(|packet| match lanes.take() {
                None => lanes.overflow(),
                Some(number) => {
                    lanes.room(number)[..packet.len()].copy_from_slice(packet);
                    lanes.put(now, Direction::Up, number, packet.len());
                }
            }),
        }
    }

    /// Hands over what is due.
    pub(crate) fn hand_over(&mut self, mut write: impl FnMut(Nanos, Direction, &[u8])) {
        let mut now = monotonic();
        match self {
            Links::Common { share, .. } => share.hand_over(&mut now, monotonic, write),
            Links::Alone(lanes) => {
                let done: Result<(), Infallible> =
                    lanes.hand_over(&mut now, monotonic, |now, direction, packet| {
                        write(now, direction, packet);
                        Ok(())
                    });
                let Ok(()) = done;
            }
        }
    }

    /// Takes in what `read` has, [`BATCH`] packets at most: each begins its way at the instant of its reading.
    pub(crate) fn receive(&mut self, mut read: impl FnMut(&mut [u8]) -> Result<usize, Errno>) {
        let mut aside = [0; REAL_MAX];
        for _ in 0..BATCH {
            let length = match self {
                Links::Alone(lanes) => receive_alone(lanes, &mut aside, &mut read),
                Links::Common { share, address } => read(&mut aside).map(|length| {
                    let packet = &aside[..length];
                    if is_for(packet, *address) {
                        share.put(monotonic(), Direction::Down, std::iter::once(packet));
                    } else {
                        share.foreign();
                    }
                }),
            };
            if length.is_err_and(|error| error != Errno::INTR) {
                return;
            }
        }
    }

    /// When the next packet may be due.
    pub(crate) fn next_due(&mut self) -> Option<Nanos> {
        match self {
            Links::Alone(lanes) => lanes.next_due(),
            Links::Common { share, .. } => share.next_due(),
        }
    }

    /// Time that the worker slept, and that it spun before due instants.
    pub(crate) fn rested(&mut self, slept: Nanos, spun: Nanos) {
        match self {
            Links::Alone(lanes) => lanes.rested(slept, spun),
            Links::Common { share, .. } => share.rested(slept, spun),
        }
    }

    /// The counts since the last telling.
    pub(crate) fn tell(&mut self, now: Nanos) -> Tally {
        match self {
            Links::Alone(lanes) => lanes.tell(now),
            Links::Common { share, .. } => share.tell(now),
        }
    }
}

/// One packet into a buffer of the links'. What has no room is taken off all the same, or the device's queue
/// would lose in its place.
fn receive_alone(
    lanes: &mut Lanes,
    aside: &mut [u8],
    mut read: impl FnMut(&mut [u8]) -> Result<usize, Errno>,
) -> Result<(), Errno> {
    let Some(number) = lanes.take() else {
        return read(aside).map(|_| lanes.overflow());
    };
    match read(lanes.room(number)) {
        Ok(length) => {
            lanes.put(monotonic(), Direction::Down, number, length);
            Ok(())
        }
        Err(error) => {
            lanes.give_back(number);
            Err(error)
        }
    }
}

/// Whether it is an IPv4 packet to this address.
fn is_for(packet: &[u8], address: Ipv4Addr) -> bool {
    packet.first().is_some_and(|first| first >> 4 == 4)
        && packet.get(16..20).is_some_and(|bytes| bytes == address.octets())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ipv4_packets_to_the_workers_address_are_carried() {
        let address = Ipv4Addr::new(198, 18, 0, 1);
        let mut packet = [0x45; 40];
        packet[16..20].copy_from_slice(&address.octets());
        assert!(is_for(&packet, address));
        assert!(!is_for(&packet[..19], address) && !is_for(&[], address));
        assert!(!is_for(&packet, Ipv4Addr::new(198, 18, 0, 2)));
        packet[0] = 0x60;
        assert!(!is_for(&packet, address));
    }
}
