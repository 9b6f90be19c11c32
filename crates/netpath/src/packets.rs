//! Devices for whoever makes packets himself: their networks' addresses are his, their other end is
//! the network of the calling thread, servers on 127.0.0.1 included.

use crate::device::{self, Furniture, Tun};
use crate::path::{self, NetBlock, PathLock};
use crate::raw;
use crate::trouble::PathTrouble;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
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
    pub first: IpAddr,
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

/// Which addresses all devices' networks have together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Addresses {
    network: IpAddr,
    /// A power of two.
    count: u32,
    /// The devices' own; without one each takes the last but one of its part.
    gateway: Option<Ipv4Addr>,
}

/// How many addresses of a prefix, of so many bits, are used, as a power of two: no more than the last 24 bits
/// make, as a `/64` of IPv6 has more than anybody needs.
pub fn used_bits((network, bits): (IpAddr, u8)) -> u32 {
    let width = if network.is_ipv4() { 32 } else { 128 };
    (width - u32::from(bits)).min(24)
}

/// The address so many behind another one, in a prefix that has it.
pub fn later(first: IpAddr, number: u32) -> IpAddr {
    match first {
        IpAddr::V4(first) => Ipv4Addr::from_bits(first.to_bits() + number).into(),
        IpAddr::V6(first) => Ipv6Addr::from_bits(first.to_bits() + u128::from(number)).into(),
    }
}

impl Addresses {
    /// A block that is set aside for tests.
    fn of_block(block: NetBlock) -> Addresses {
        let count = !block.mask().to_bits() + 1;
        Addresses { network: block.network().into(), count, gateway: Some(block.server()) }
    }

    /// Those that agree with `network` in the first `bits` bits.
    fn chosen(network: IpAddr, bits: u8) -> Result<Addresses, PathTrouble> {
        path::prefix_taken(network, bits, None)?;
        Ok(Addresses { network, count: 1 << used_bits((network, bits)), gateway: None })
    }
}

impl PacketDevice {
    /// Makes `count` devices in the calling thread's network; their addresses are equal parts of the
    /// prefix `of`, its first address and its bits, or of a block that is set aside for tests.
    ///
    /// # Errors
    /// What this machine or this user cannot do, each with the fix; a prefix that is in use, or
    /// too small.
    pub fn open(
        count: u32,
        kind: PacketKind,
        of: Option<(IpAddr, u8)>,
    ) -> Result<Vec<PacketDevice>, PathTrouble> {
        let parts = count.clamp(1, DEVICES_MAX);
        let make = |all: Addresses| {
            // a network's size is a power of two
            let size = all.count / parts.next_power_of_two();
            if size < 4 {
                return Err(PathTrouble::FewAddresses { addresses: all.count, parts });
            }
            (0..parts).map(|row| PacketDevice::make(&all, row, size, kind)).collect()
        };
        match of {
            None => Ok(NetBlock::claim(CLIENTS_MAX, |block| make(Addresses::of_block(block)))?.1),
            Some((network, bits)) => {
                // nobody takes the same ones between the look and the routes
                let _turn = PathLock::take()?;
                make(Addresses::chosen(network, bits)?)
            }
        }
    }

    /// Makes one device in the calling thread's network, from which packets of some `addresses` come:
    /// it leaves room for as many others as can be.
    ///
    /// # Errors
    /// What this machine or this user cannot do, each with the fix.
    pub fn single(kind: PacketKind, addresses: u32) -> Result<PacketDevice, PathTrouble> {
        let make = |block: NetBlock| {
            let all = Addresses::of_block(block);
            PacketDevice::make(&all, 0, all.count, kind)
        };
        Ok(NetBlock::claim(addresses, make)?.1)
    }

    /// Packets that came and that the device has dropped since it was made, because nobody had taken those
    /// before them out of its queue, by the calling thread's network; 0 where the device is gone.
    pub fn dropped(&self) -> u64 {
        device::dropped(&self.name)
    }

    /// The device of the network with this row, of `size` addresses.
    fn make(
        all: &Addresses,
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
        let (network, last) =
            (later(all.network, row * size), later(all.network, row * size + size - 2));
        match (network, last) {
            (IpAddr::V4(network), IpAddr::V4(last)) => {
                let routes = vec![(network, Ipv4Addr::from_bits(!(size - 1)))];
                let address = all.gateway.unwrap_or(last);
                device::furnish(&device, &Furniture { address, routes })?;
            }
            (IpAddr::V6(network), IpAddr::V6(last)) => {
                let bits = 128 - size.ilog2() as u8;
                device::furnish_v6(&device, last, (network, bits))?;
            }
            _ => {}
        }
        Ok(PacketDevice {
            name: device.name.clone(),
            first: later(all.network, row * size + 1),
            addresses: size - if all.gateway.is_some() { 2 } else { 3 },
            queue: OwnedFd::from(device),
            kind,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::namespace::Namespace;
    use std::net::UdpSocket;

    /// Nobody reads: the queue takes as many as it is long.
    #[test]
    fn what_finds_the_devices_queue_full_is_counted() {
        let opened = Namespace::create(|| {
            let device = PacketDevice::single(PacketKind::Real, 1)?;
            let before = device.dropped();
            let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("a socket");
            for _ in 0..device::QUEUE_LENGTH + 100 {
                socket.send_to(b"?", (device.first, 9)).ok();
            }
            Ok((before, device.dropped()))
        });
        let (_network, dropped) = match opened {
            Ok(opened) => opened,
            Err(trouble) => {
                use std::io::Write;
                // nobody reads it when standard error is closed
                writeln!(std::io::stderr(), "a full queue is not tested: {trouble}").ok();
                assert!(std::env::var_os("CI").is_none(), "{trouble}");
                return;
            }
        };
        assert_eq!(dropped, (0, 100));
    }

    #[test]
    fn of_a_prefix_the_first_addresses_are_used() {
        let last = |network: &str, bits| {
            let network = network.parse().expect("an address");
            let used = used_bits((network, bits));
            format!("{used} {}", later(network, (1 << used) - 1))
        };
        assert_eq!(last("10.9.0.0", 30), "2 10.9.0.3");
        assert_eq!(last("10.9.0.0", 16), "16 10.9.255.255");
        assert_eq!(last("10.0.0.0", 8), "24 10.255.255.255");
        // of 2^31 too
        assert_eq!(last("128.0.0.0", 1), "24 128.255.255.255");
        assert_eq!(last("fd00:9::", 112), "16 fd00:9::ffff");
        assert_eq!(last("fd00:9::", 64), "24 fd00:9::ff:ffff");
    }
}
