//! Devices for a program that creates its own packets: the addresses of their networks belong to
//! it, and their other end is the network namespace of the calling thread, including servers on
//! 127.0.0.1.

use crate::device::{self, InterfaceSettings, Tun};
use crate::path::{self, NetBlock, PathLock};
use crate::raw;
use crate::trouble::PathTrouble;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, OwnedFd};
use wan::CLIENTS_MAX;

/// Maximum number of devices; there are fewer workers.
const DEVICES_MAX: u32 = 4_096;

/// Device that is removed when its queue is closed.
///
/// Each worker has its own device instead of a queue of a shared device: the kernel learns the
/// queue of a flow only after its first packet, and the reply to a SYN, which is created before
/// that, would go to any of the workers.
#[derive(Debug)]
pub struct PacketDevice {
    pub name: String,
    /// The first of the possible source addresses.
    pub first: IpAddr,
    /// Number of addresses.
    pub addresses: u32,
    /// Reads and writes return packets in the format of `kind`.
    pub queue: OwnedFd,
    pub kind: PacketKind,
}

/// The packet format of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PacketKind {
    /// A virtio header of 10 bytes precedes each packet; checksums and segmentation are left to the
    /// reader.
    #[default]
    Virtio,
    /// Packets as on a wire: none above the MTU, every checksum correct.
    Real,
}

/// The common network of all devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Addresses {
    network: IpAddr,
    /// Number of addresses, a power of two.
    count: u32,
    /// The addresses of the devices; without one, each uses the second-to-last address of its part.
    gateway: Option<Ipv4Addr>,
}

/// Returns how many addresses of a prefix are used, as a power of two: at most the last 24 bits, as
/// an IPv6 `/64` has more than needed.
pub fn used_bits((network, bits): (IpAddr, u8)) -> u32 {
    let width = if network.is_ipv4() { 32 } else { 128 };
    (width - u32::from(bits)).min(24)
}

/// Returns the address at this offset from another one, within the prefix.
pub fn later(first: IpAddr, number: u32) -> IpAddr {
    match first {
        IpAddr::V4(first) => Ipv4Addr::from_bits(first.to_bits() + number).into(),
        IpAddr::V6(first) => Ipv6Addr::from_bits(first.to_bits() + u128::from(number)).into(),
    }
}

impl Addresses {
    /// Returns a block reserved for tests.
    fn from_block(block: NetBlock) -> Addresses {
        let count = !block.mask().to_bits() + 1;
        Addresses { network: block.network().into(), count, gateway: Some(block.server()) }
    }

    /// Returns the addresses that share the first `bits` bits with `network`.
    fn chosen(network: IpAddr, bits: u8) -> Result<Addresses, PathTrouble> {
        path::prefix_taken(network, bits, None)?;
        Ok(Addresses { network, count: 1 << used_bits((network, bits)), gateway: None })
    }
}

impl PacketDevice {
    /// Creates `count` devices in the calling thread's network namespace; their addresses are equal
    /// parts of the prefix `of`, its first address and length, or of a block reserved for tests.
    ///
    /// # Errors
    /// Fails if this machine or user does not support it, with the fix; or for a prefix that is in
    /// use, or too small.
    pub fn open(
        count: u32,
        kind: PacketKind,
        of: Option<(IpAddr, u8)>,
    ) -> Result<Vec<PacketDevice>, PathTrouble> {
        let parts = count.clamp(1, DEVICES_MAX);
        let make = |all: Addresses| {
            // the size of a network is a power of two
            let size = all.count / parts.next_power_of_two();
            if size < 4 {
                return Err(PathTrouble::FewAddresses { addresses: all.count, parts });
            }
            (0..parts).map(|row| PacketDevice::make(&all, row, size, kind)).collect()
        };
        match of {
            None => Ok(NetBlock::claim(CLIENTS_MAX, |block| make(Addresses::from_block(block)))?.1),
            Some((network, bits)) => {
                // prevents others from taking the same addresses between the check and the routes
                let _turn = PathLock::take()?;
                make(Addresses::chosen(network, bits)?)
            }
        }
    }

    /// Creates one device in the calling thread's network namespace, with this number of source
    /// `addresses`: it leaves as much room as possible for others.
    ///
    /// # Errors
    /// Fails if this machine or user does not support it, with the fix.
    pub fn single(kind: PacketKind, addresses: u32) -> Result<PacketDevice, PathTrouble> {
        let make = |block: NetBlock| {
            let all = Addresses::from_block(block);
            PacketDevice::make(&all, 0, all.count, kind)
        };
        Ok(NetBlock::claim(addresses, make)?.1)
    }

    /// Returns the number of packets that the device has dropped since its creation because its
    /// queue was full, in the calling thread's network namespace; 0 if the device is gone.
    pub fn dropped(&self) -> u64 {
        device::dropped(&self.name)
    }

    /// Returns the device of the network with this index, of `size` addresses.
    fn make(
        all: &Addresses,
        row: u32,
        size: u32,
        kind: PacketKind,
    ) -> Result<PacketDevice, PathTrouble> {
        let flags = if kind == PacketKind::Virtio { raw::IFF_VNET_HDR } else { 0 };
        let device = Tun::make_with("loadstone%d", flags)?;
        if kind == PacketKind::Virtio {
            raw::offload(device.as_fd()).map_err(PathTrouble::other(
                "the network device does not accept a virtio header",
            ))?;
        }
        let (network, last) =
            (later(all.network, row * size), later(all.network, row * size + size - 2));
        match (network, last) {
            (IpAddr::V4(network), IpAddr::V4(last)) => {
                let routes = vec![(network, Ipv4Addr::from_bits(!(size - 1)))];
                let address = all.gateway.unwrap_or(last);
                device::configure(&device, &InterfaceSettings { address, routes })?;
            }
            (IpAddr::V6(network), IpAddr::V6(last)) => {
                let bits = 128 - size.ilog2() as u8;
                device::configure_v6(&device, last, (network, bits))?;
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

    /// Without a reader, the queue accepts packets up to its length.
    #[test]
    fn packets_at_a_full_device_queue_are_counted() {
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
                // no one reads it when standard error is closed
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
