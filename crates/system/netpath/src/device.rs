//! TUN devices, one for each end of a path. A device belongs to the namespace in which its file was
//! opened, and is removed with the file.

use crate::trouble::PathTrouble;
use crate::{netlink, raw, retry};
use rustix::fs::{Mode, OFlags, open};
use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Maximum packet size.
pub(crate) const MTU: usize = 1_500;

/// Maximum number of packets waiting for the forwarder: with the kernel's default of 500, 4,000 of
/// 5,000 connections opened at once lost their SYN-ACK there.
pub(crate) const QUEUE_LENGTH: u32 = 10_000;

/// One end of a path.
#[derive(Debug)]
pub(crate) struct Tun {
    file: OwnedFd,
    pub(crate) name: String,
}

impl Tun {
    /// Creates a device in the namespace of the calling thread.
    pub(crate) fn make(name: &str) -> Result<Tun, PathTrouble> {
        Tun::make_with(name, 0)
    }

    /// Creates a device with further flags of TUNSETIFF.
    pub(crate) fn make_with(name: &str, flags: i16) -> Result<Tun, PathTrouble> {
        let more = flags;
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = open("/dev/net/tun", flags, Mode::empty());
        let file = file.map_err(|error| PathTrouble::Device(error.into()))?;
        let busy = |error: &io::Error| error.raw_os_error() == Some(libc::EBUSY);
        let name = retry::retry_while_busy(|| raw::make_tun(file.as_fd(), name, more), busy);
        let name = name.map_err(PathTrouble::Host)?;
        Ok(Tun { file, name })
    }

    /// Reads one packet if there is one. Errors end the path.
    pub(crate) fn read(&self, into: &mut [u8]) -> io::Result<Option<usize>> {
        match rustix::io::read(&self.file, into) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if again(error) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Delivers one packet to the receiving side, whose whole receive path runs before this
    /// returns.
    pub(crate) fn write(&self, packet: &[u8]) -> io::Result<()> {
        rustix::io::write(&self.file, packet)?;
        Ok(())
    }
}

impl From<Tun> for OwnedFd {
    fn from(tun: Tun) -> OwnedFd {
        tun.file
    }
}

fn again(error: rustix::io::Errno) -> bool {
    matches!(error, rustix::io::Errno::AGAIN | rustix::io::Errno::INTR)
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Configuration of one end.
pub(crate) struct InterfaceSettings {
    /// The address of the device.
    pub(crate) address: Ipv4Addr,
    /// Other networks reached through the device, with netmasks.
    pub(crate) routes: Vec<(Ipv4Addr, Ipv4Addr)>,
}

/// Assigns the address and routes of the device and brings it up.
pub(crate) fn configure(
    tun: &Tun,
    interface_settings: &InterfaceSettings,
) -> Result<(), PathTrouble> {
    let name = &tun.name;
    // loopback addresses pass through it: a server that listens on 127.0.0.1 is reachable
    setting(&format!("ipv4/conf/{name}/route_localnet"), "1")?;
    setting(&format!("ipv4/conf/{name}/rp_filter"), "0")?;
    // without IPv6 in the kernel there is nothing to disable
    setting(&format!("ipv6/conf/{name}/disable_ipv6"), "1").ok();
    let set_up = || -> io::Result<()> {
        let socket = bring_up(name)?;
        let socket = socket.as_fd();
        raw::set_address(socket, name, raw::ADDRESS, interface_settings.address)?;
        raw::set_address(socket, name, raw::NETMASK, Ipv4Addr::BROADCAST)?;
        interface_settings
            .routes
            .iter()
            .try_for_each(|(to, mask)| raw::route(socket, name, *to, *mask))
    };
    set_up().map_err(PathTrouble::other(&format!("cannot set up the network device {name}")))
}

/// Configures IPv6 addresses: the device's own, and other networks reached through it.
pub(crate) fn configure_v6(
    tun: &Tun,
    address: Ipv6Addr,
    route: (Ipv6Addr, u8),
) -> Result<(), PathTrouble> {
    let name = &tun.name;
    setting(&format!("ipv6/conf/{name}/disable_ipv6"), "0")?;
    // no other host exists to announce a link address to, or to request one from
    setting(&format!("ipv6/conf/{name}/addr_gen_mode"), "1")?;
    setting(&format!("ipv6/conf/{name}/accept_ra"), "0")?;
    let set_up = || -> io::Result<()> {
        let socket = bring_up(name)?;
        let index = raw::index(socket.as_fd(), name)?;
        netlink::add_address(index, address)?;
        netlink::add_route(index, route)
    };
    set_up().map_err(PathTrouble::other(&format!("cannot set up the network device {name}")))
}

/// Brings a device up, with the MTU and queue length of all devices; returns a socket for further
/// settings.
fn bring_up(name: &str) -> io::Result<File> {
    let file = socket()?;
    let socket = file.as_fd();
    raw::set_mtu(socket, name, MTU as i32)?;
    netlink::set_queue_length(raw::index(socket, name)?, QUEUE_LENGTH)?;
    raw::bring_up(socket, name)?;
    Ok(file)
}

/// Assigns addresses to the loopback device of a namespace, with netmasks, and brings it up. All
/// addresses of such a network are addresses of the namespace.
pub(crate) fn loopback(addresses: &[(Ipv4Addr, Ipv4Addr)]) -> Result<(), PathTrouble> {
    let set_up = || -> io::Result<()> {
        let socket = socket()?;
        let socket = socket.as_fd();
        raw::bring_up(socket, "lo")?;
        for (row, (address, mask)) in addresses.iter().enumerate() {
            // the first replaces 127.0.0.1/8, assigned by the kernel
            let label = if row == 0 { "lo".to_owned() } else { format!("lo:{row}") };
            raw::set_address(socket, &label, raw::ADDRESS, *address)?;
            raw::set_address(socket, &label, raw::NETMASK, *mask)?;
        }
        Ok(())
    };
    set_up().map_err(PathTrouble::other("cannot set up the loopback of a network namespace"))
}

/// Applies the settings of a new namespace for load tests: enough ports, and queues that are not
/// the limit.
pub(crate) fn widen() {
    for (name, value) in [
        ("ipv4/ip_local_port_range", "1024 65535"),
        ("ipv4/tcp_tw_reuse", "1"),
        ("ipv4/ip_unprivileged_port_start", "0"),
        ("core/somaxconn", "65535"),
        ("ipv4/tcp_max_syn_backlog", "65535"),
    ] {
        // a kernel without one of these settings lacks the limit too
        setting(name, value).ok();
    }
}

/// Writes a setting under /proc/sys/net, of the calling thread's namespace.
fn setting(name: &str, value: &str) -> Result<(), PathTrouble> {
    let file = format!("/proc/sys/net/{name}");
    std::fs::write(&file, value).map_err(PathTrouble::other(&format!("cannot write {file}")))
}

fn socket() -> io::Result<File> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    Ok(File::from(OwnedFd::from(socket)))
}

/// Returns the number of packets that the device dropped because its queue to the forwarder was
/// full, in the calling thread's namespace.
pub(crate) fn dropped(name: &str) -> u64 {
    let table = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    let row = table.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(':'));
    // receive: bytes packets errs drop fifo frame compressed multicast; transmit: bytes packets
    // errs drop
    let drop = row.and_then(|row| row.split_whitespace().nth(11));
    drop.and_then(|drop| drop.parse().ok()).unwrap_or(0)
}
