//! A device for whoever makes packets himself: its network's addresses are his, its other end is the
//! network of the calling thread, servers on 127.0.0.1 included.

use crate::device::{self, Furniture, Tun};
use crate::path::{CLIENTS_MASK, NetBlock};
use crate::raw;
use crate::trouble::PathTrouble;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, OwnedFd};

/// Addresses of the device's network that packets can come from.
pub const SOURCES_MAX: u32 = 16_382;

/// The device; it goes when its last queue is closed.
#[derive(Debug)]
pub struct PacketDevice {
    pub name: String,
    /// The first of [`SOURCES_MAX`] addresses.
    pub first: Ipv4Addr,
    /// One for each worker. Each packet that is read or written has a virtio header of 10 bytes before
    /// it, checksums and segmentation are left to its reader.
    pub queues: Vec<OwnedFd>,
}

impl PacketDevice {
    /// Makes the device in the calling thread's network, with all queues before the first packet.
    ///
    /// # Errors
    /// What this machine or this user cannot do, each with the way out.
    pub fn open(queues: u32) -> Result<PacketDevice, PathTrouble> {
        let block = NetBlock::free().ok_or(PathTrouble::Addresses)?;
        let many = if queues > 1 { raw::IFF_MULTI_QUEUE } else { 0 };
        let flags = raw::IFF_VNET_HDR | many;
        let first = Tun::make_with("loadstone%d", flags)?;
        let name = first.name.clone();
        let mut files = vec![first];
        for _ in 1..queues {
            files.push(Tun::make_with(&name, flags)?);
        }
        for file in &files {
            let leave = raw::offload(file.as_fd());
            leave.map_err(PathTrouble::other("the network device takes no virtio header"))?;
        }
        let routes = vec![(block.network(), CLIENTS_MASK)];
        device::furnish(&files[0], &Furniture { address: block.server(), routes })?;
        let queues = files.into_iter().map(OwnedFd::from).collect();
        Ok(PacketDevice { name, first: block.first_client(), queues })
    }
}
