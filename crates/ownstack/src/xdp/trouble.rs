//! Why a device cannot be used by AF_XDP here, and the way out: one sentence each.

use super::link::Mac;
use netpath::PathTrouble;
use std::fmt;
use std::io;
use std::net::IpAddr;

/// What is in the way of packets by AF_XDP.
#[derive(Debug)]
pub enum XdpTrouble {
    NoDevice {
        device: String,
    },
    Loopback {
        device: String,
    },
    NotEthernet {
        device: String,
    },
    Down {
        device: String,
    },
    /// Not root, or root of a user namespace alone.
    Forbidden,
    /// The kernel is without AF_XDP.
    NoSockets,
    /// The memory that may be locked.
    Memory(io::Error),
    QueueBusy {
        device: String,
        queue: u32,
    },
    ManyQueues {
        device: String,
        most: u32,
    },
    /// The limit of descriptors.
    ManySockets {
        device: String,
    },
    /// Another program is attached to the device.
    Attached {
        device: String,
    },
    /// The device's driver has no such mode.
    Mode {
        device: String,
        mode: &'static str,
        error: io::Error,
    },
    /// Generic mode, and the kernel cannot put a packet into several frames.
    GenericInParts {
        device: String,
    },
    /// The kernel cannot put a packet of the device into several frames, and one is too short.
    Mtu {
        device: String,
        mtu: u32,
        most: u32,
    },
    /// Packets of the device are shorter than any TCP is sure of.
    SmallMtu {
        device: String,
        mtu: u32,
        least: u32,
    },
    /// The prefix is somebody's on this host.
    Prefix(PathTrouble),
    /// An address of ours is somebody's on the link.
    TakenOnLink {
        address: IpAddr,
        by: Mac,
        device: String,
    },
    /// The server is this host.
    Here {
        address: IpAddr,
        device: String,
    },
    /// The route to a server of IPv4 leads over a neighbour with an address of IPv6 alone.
    HopOfIpv6 {
        hop: IpAddr,
        server: IpAddr,
        device: String,
    },
    /// The next hop does not say where it is.
    NoAnswer {
        hop: IpAddr,
        server: IpAddr,
        device: String,
        from: String,
    },
    /// Something else; what was tried stands first.
    Other(String, io::Error),
}

impl fmt::Display for XdpTrouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            XdpTrouble::Forbidden => f.write_str(
                "only root may use AF_XDP, with CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF outside of any \
                 user namespace; way out: run this as root, in a container with --cap-add NET_ADMIN \
                 --cap-add NET_RAW --cap-add BPF",
            ),
            XdpTrouble::NoSockets => f.write_str(
                "this kernel is without AF_XDP (CONFIG_XDP_SOCKETS); way out: a kernel with it, or \
                 --stack own",
            ),
            XdpTrouble::Memory(error) => write!(
                f,
                "the memory of the packets cannot be locked ({error}); way out: `ulimit -l unlimited`, \
                 or run this as root with CAP_IPC_LOCK"
            ),
            XdpTrouble::Prefix(trouble) => trouble.fmt(f),
            XdpTrouble::TakenOnLink { address, by, device } => write!(
                f,
                "{address} is in use on the link of {device}: {by} answers for it; way out: a prefix in \
                 which nobody has an address"
            ),
            XdpTrouble::Here { address, device } => write!(
                f,
                "{address} is an address of this host, and what {device} sends does not come back to it; way \
                 out: --stack own"
            ),
            XdpTrouble::HopOfIpv6 { hop, server, device } => write!(
                f,
                "the next hop to {server} on {device} is {hop}, of IPv6, which is not asked for packets of IPv4 \
                 here; way out: gateway=ADDRESS with an address of IPv4 that it has"
            ),
            XdpTrouble::NoAnswer { hop, server, device, from } => {
                let by = if hop.is_ipv4() { "ARP" } else { "ND" };
                let who = match hop == server {
                    true => format!("{server} does not answer {by}"),
                    false => format!("{hop}, the next hop to {server}, does not answer {by}"),
                };
                write!(
                    f,
                    "{who} on {device}; way out: see that it is up and has a route back to {from} there (`ip \
                     route add {from} dev ...`), or name the way with gateway=ADDRESS"
                )
            }
            XdpTrouble::Other(what, error) => write!(f, "{what}: {error}"),
            of_the_device => of_the_device.device(f),
        }
    }
}

impl XdpTrouble {
    /// What is wrong with the device itself.
    fn device(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            XdpTrouble::NoDevice { device } => write!(
                f,
                "there is no network device {device} here; way out: one that `ip link` lists"
            ),
            XdpTrouble::Loopback { device } => write!(
                f,
                "{device} is the loopback, whose packets never reach a wire; way out: --stack own, which \
                 reaches the servers of this host"
            ),
            XdpTrouble::NotEthernet { device } => write!(
                f,
                "{device} is no device of Ethernet; way out: the device that its packets leave by, or \
                 --stack own"
            ),
            XdpTrouble::Down { device } => {
                write!(f, "{device} is down; way out: `ip link set {device} up`")
            }
            XdpTrouble::QueueBusy { device, queue } => write!(
                f,
                "queue {queue} of {device} is in use by another socket of AF_XDP; way out: end the program \
                 that has it, or take another device"
            ),
            XdpTrouble::ManyQueues { device, most } => write!(
                f,
                "{device} has more than {most} queues, all of which one thread would have to look at; way \
                 out: `ethtool -L {device} combined {most}`"
            ),
            XdpTrouble::ManySockets { device } => write!(
                f,
                "each thread has a socket of each queue of {device}, for which this process may not have \
                 descriptors enough; way out: fewer --threads, or a higher limit (`ulimit -n`)"
            ),
            XdpTrouble::Attached { device } => write!(
                f,
                "a program of XDP is attached to {device} already; way out: end who put it there (`ip link \
                 show {device}` has its number), or `ip link set dev {device} xdp off`"
            ),
            XdpTrouble::Mode { device, mode, error } => write!(
                f,
                "{device} does not take programs of XDP in {mode} mode ({error}); way out: another \
                 mode=, or Linux 5.9 or later"
            ),
            XdpTrouble::GenericInParts { device } => write!(
                f,
                "in generic mode packets come to {device} as its peer or its driver has put them together, \
                 with up to 64 KiB, which this kernel does not hand over (Linux 6.6 does); way out: \
                 mode=native"
            ),
            XdpTrouble::Mtu { device, mtu, most } => write!(
                f,
                "packets of {device} have up to {mtu} bytes, and this kernel takes in no more than {most} \
                 (Linux 6.6 takes any); way out: `ip link set {device} mtu {most}`"
            ),
            XdpTrouble::SmallMtu { device, mtu, least } => write!(
                f,
                "packets of {device} have no more than {mtu} bytes, and our own TCP needs {least}; way out: \
                 `ip link set {device} mtu 1500`"
            ),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for XdpTrouble {}
