//! Devices for whoever makes packets himself: their networks' addresses are his, their other end is
//! the network of the calling thread, servers on 127.0.0.1 included.

use crate::device::{self, Furniture, Tun};
use crate::path::{CLIENTS_MASK, NetBlock};
use crate::raw;
use crate::trouble::PathTrouble;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, OwnedFd};

/// Addresses of all devices' networks together, those that no packet can come from included.
const BLOCK: u32 = !CLIENTS_MASK.to_bits() + 1;
/// A network has two addresses that no packet can come from, so this many devices at most.
const DEVICES_MAX: u32 = BLOCK / 4;

/// One device, which goes when its queue is closed.
///
/// Each worker has a device of its own, not a queue of one that all share: the kernel learns the
/// queue of a flow only behind its first packet, and the answer to a SYN, which is made before that,
/// would go to any of the workers.
#[derive(Debug)]
pub struct PacketDevice {
    pub name: String,
    /// The first of the addresses that packets can come from.
    pub first: Ipv4Addr,
    /// How many there are.
    pub addresses: u32,
    /// What is read and written is a packet, as `kind` says.
    pub queue: OwnedFd,
    pub kind: PacketKind,
}

/// What goes through a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PacketKind {
    /// Each packet that is read or written has a virtio header of 10 bytes before it, checksums and
    /// segmentation are left to its reader.
    #[default]
    Virtio,
    /// Packets as a wire would carry them: none above the MTU, every checksum right.
    Real,
}

impl PacketDevice {
    /// Makes `count` devices in the calling thread's network; their addresses are equal parts of one
    /// block.
    ///
    /// # Errors
    /// What this machine or this user cannot do, each with the way out.
    pub fn open(count: u32, kind: PacketKind) -> Result<Vec<PacketDevice>, PathTrouble> {
        let block = NetBlock::free().ok_or(PathTrouble::Addresses)?;
        // a network's size is a power of two
        let size = BLOCK / count.clamp(1, DEVICES_MAX).next_power_of_two();
        (0..count.min(DEVICES_MAX)).map(|row| PacketDevice::make(block, row, size, kind)).collect()
    }

    /// The device of the network with this row, of `size` addresses.
    fn make(
        block: NetBlock,
        row: u32,
        size: u32,
        kind: PacketKind,
    ) -> Result<PacketDevice, PathTrouble> {
        let flags = if kind == PacketKind::Virtio { raw::IFF_VNET_HDR } else { 0 };
        let device = Tun::make_with("loadstone%d", flags)?;
        if kind == PacketKind::Virtio {
            raw::offload(device.as_fd())
                .map_err(PathTrouble::other("the network device takes no virtio header"))?;
        }
        let network = block.network().to_bits() + row * size;
        let mask = Ipv4Addr::from_bits(!(size - 1));
        let routes = vec![(Ipv4Addr::from_bits(network), mask)];
        device::furnish(&device, &Furniture { address: block.server(), routes })?;
        Ok(PacketDevice {
            name: device.name.clone(),
            first: Ipv4Addr::from_bits(network + 1),
            addresses: size - 2,
            queue: OwnedFd::from(device),
            kind,
        })
    }
}
