//! Raw segments over a TUN device: there is no TCP of this program between the script and the
//! server's kernel.

use dialogue::packets::PacketLink;
use net::reactor::monotonic;
use netpath::{PacketDevice, PacketKind, PathTrouble, later};
use rustix::io::Errno;
use std::net::IpAddr;
use tcp::End;

/// Longer than any packet of a device that carries real packets.
const PACKET_MAX: usize = 2_048;
/// Conversations rotate over this many addresses, and over these ports of each.
const ADDRESSES: u32 = 60;
const PORT_FIRST: u16 = 20_000;
const PORTS: u32 = 40_000;

/// A device with raw packets in both directions; it is removed on drop.
#[derive(Debug)]
pub struct RawLink {
    device: PacketDevice,
    /// Counter of assigned tuples; starts at a random value, so that a server that remembers the
    /// connections of the last run sees different ones.
    turn: u32,
    refused: u64,
}

impl RawLink {
    /// Creates the device in the network namespace of the calling thread.
    ///
    /// # Errors
    /// Fails if this machine or user does not support it, with the fix.
    pub fn open() -> Result<RawLink, PathTrouble> {
        let device = PacketDevice::single(PacketKind::Real, ADDRESSES)?;
        let turn = (monotonic().0 / 1_000) as u32;
        Ok(RawLink { device, turn, refused: 0 })
    }

    /// Returns the device name.
    pub fn name(&self) -> &str {
        &self.device.name
    }

    /// Returns the first and the last source address of segments.
    pub fn sources(&self) -> (IpAddr, IpAddr) {
        let first = self.device.first;
        (first, later(first, self.addresses() - 1))
    }

    /// Returns the number of packets that the device did not accept.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    fn addresses(&self) -> u32 {
        self.device.addresses.clamp(1, ADDRESSES)
    }
}

impl PacketLink for RawLink {
    fn place(&mut self) -> Option<End> {
        let turn = self.turn;
        let addresses = self.addresses();
        self.turn = self.turn.wrapping_add(1);
        let address = later(self.device.first, turn % addresses);
        let port = PORT_FIRST + (turn / addresses % PORTS) as u16;
        Some(End { address, port })
    }

    fn send(&mut self, packet: &[u8]) {
        loop {
            match rustix::io::write(&self.device.queue, packet) {
                Err(Errno::INTR) => {}
                Ok(_) => return,
                Err(_) => {
                    self.refused += 1;
                    return;
                }
            }
        }
    }

    fn receive(&mut self, into: &mut Vec<u8>) -> bool {
        into.resize(PACKET_MAX, 0);
        loop {
            match rustix::io::read(&self.device.queue, &mut into[..]) {
                Err(Errno::INTR) => {}
                Ok(length) if length > 0 => {
                    into.truncate(length);
                    return true;
                }
                Ok(_) | Err(_) => {
                    into.clear();
                    return false;
                }
            }
        }
    }
}
