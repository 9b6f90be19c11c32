//! The emulated links of a worker's packets: links of its own clients, or of one client shared by
//! all workers.

use crate::reads::BATCH;
use net::reactor::monotonic;
use netpath::{Lanes, LanesShare, Tally};
use rustix::io::Errno;
use std::convert::Infallible;
use std::net::Ipv4Addr;
use units::Nanos;
use wan::Direction;

/// Longer than any packet of a device that carries real packets.
const REAL_MAX: usize = 2_048;

#[derive(Debug)]
pub(crate) enum Links {
    /// Used by this worker only.
    Alone(Lanes),
    /// Shared with other workers; packets of this worker arrive at `address`.
    Common { share: LanesShare, address: Ipv4Addr },
}

impl Links {
    /// Adds outgoing packets to the link.
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

    /// Delivers packets that are due.
    pub(crate) fn deliver_packets(&mut self, mut write: impl FnMut(Nanos, Direction, &[u8])) {
        let mut now = monotonic();
        match self {
            Links::Common { share, .. } => share.deliver_packets(&mut now, monotonic, write),
            Links::Alone(lanes) => {
                let done: Result<(), Infallible> =
                    lanes.deliver_packets(&mut now, monotonic, |now, direction, packet| {
                        write(now, direction, packet);
                        Ok(())
                    });
                let Ok(()) = done;
            }
        }
    }

    /// Takes packets from `read`, up to [`BATCH`]: each enters the link at the time it was read.
    pub(crate) fn receive(&mut self, mut read: impl FnMut(&mut [u8]) -> Result<usize, Errno>) {
        let mut aside = [0; REAL_MAX];
        for _ in 0..BATCH {
            let length = match self {
                Links::Alone(lanes) => receive_alone(lanes, &mut aside, &mut read),
                Links::Common { share, address } => read(&mut aside).map(|length| {
                    let packet = &aside[..length];
                    if is_addressed_to(packet, *address) {
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

    /// Returns when the next packet may be due.
    pub(crate) fn next_due(&mut self) -> Option<Nanos> {
        match self {
            Links::Alone(lanes) => lanes.next_due(),
            Links::Common { share, .. } => share.next_due(),
        }
    }

    /// Records how long the worker slept, and how long it spun before due times.
    pub(crate) fn record_rest(&mut self, slept: Nanos, spun: Nanos) {
        match self {
            Links::Alone(lanes) => lanes.record_rest(slept, spun),
            Links::Common { share, .. } => share.record_rest(slept, spun),
        }
    }

    /// Returns the counters since the last report.
    pub(crate) fn take_tally(&mut self, now: Nanos) -> Tally {
        match self {
            Links::Alone(lanes) => lanes.take_tally(now),
            Links::Common { share, .. } => share.take_tally(now),
        }
    }
}

/// Reads one packet into a buffer of the links. A packet without room is read anyway; otherwise the
/// device queue would drop others.
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
            lanes.release_unfilled(number);
            Err(error)
        }
    }
}

/// Returns whether it is an IPv4 packet to this address.
fn is_addressed_to(packet: &[u8], address: Ipv4Addr) -> bool {
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
        assert!(is_addressed_to(&packet, address));
        assert!(!is_addressed_to(&packet[..19], address) && !is_addressed_to(&[], address));
        assert!(!is_addressed_to(&packet, Ipv4Addr::new(198, 18, 0, 2)));
        packet[0] = 0x60;
        assert!(!is_addressed_to(&packet, address));
    }
}
