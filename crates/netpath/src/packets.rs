//! Devices for whoever makes packets himself: their networks' addresses are his, their other end is
//! the network of the calling thread, servers on 127.0.0.1 included.

use crate::device::{self, Furniture, Tun};
use crate::path::NetBlock;
use crate::raw;
use crate::trouble::PathTrouble;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, OwnedFd};
use wan::CLIENTS_MAX;

/// More than the most workers.
const DEVICES_MAX: u32 = 4_096;

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
    /// Each packet that is read or written has a virtio header of 10 bytes before it, checksums and
    /// segmentation are left to its reader.
    pub queue: OwnedFd,
}

impl PacketDevice {
    /// Makes `count` devices in the calling thread's network; their addresses are equal parts of one
    /// block.
    ///
    /// # Errors
    /// What this machine or this user cannot do, each with the way out.
    pub fn open(count: u32) -> Result<Vec<PacketDevice>, PathTrouble> {
        let make = |block: NetBlock| {
            // all addresses of the block, those that no packet can come from included; a network's
            // size is a power of two
            let size =
                (!block.mask().to_bits() + 1) / count.clamp(1, DEVICES_MAX).next_power_of_two();
            (0..count.min(DEVICES_MAX)).map(|row| PacketDevice::make(block, row, size)).collect()
        };
        Ok(NetBlock::claim(CLIENTS_MAX, make)?.1)
    }

    /// The device of the network with this row, of `size` addresses.
    fn make(block: NetBlock, row: u32, size: u32) -> Result<PacketDevice, PathTrouble> {
        let device = Tun::make_with("loadstone%d", raw::IFF_VNET_HDR)?;
        raw::offload(device.as_fd())
            .map_err(PathTrouble::other("the network device takes no virtio header"))?;
        let network = block.network().to_bits() + row * size;
        let mask = Ipv4Addr::from_bits(!(size - 1));
        let routes = vec![(Ipv4Addr::from_bits(network), mask)];
        device::furnish(&device, &Furniture { address: block.server(), routes })?;
        Ok(PacketDevice {
            name: device.name.clone(),
            first: Ipv4Addr::from_bits(network + 1),
            addresses: size - 2,
            queue: OwnedFd::from(device),
        })
    }
}
