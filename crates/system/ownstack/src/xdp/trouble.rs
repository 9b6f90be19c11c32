//! Reasons why a device cannot be used with AF_XDP here, with the fix: one sentence each.

use super::link::Mac;
use netpath::PathTrouble;
use std::fmt;
use std::io;
use std::net::IpAddr;

/// Problems with packets through AF_XDP.
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
    /// Not root, or only root of a user namespace.
    Forbidden,
    /// The kernel has no AF_XDP.
    NoSockets,
    /// The limit of locked memory.
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
    /// The driver of the device does not support this mode.
    Mode {
        device: String,
        mode: &'static str,
        error: io::Error,
    },
    /// Generic mode, and the kernel does not support packets in several frames.
    GenericInParts {
        device: String,
    },
    /// The kernel does not support packets in several frames, and one is too short for the device.
    Mtu {
        device: String,
        mtu: u32,
        most: u32,
    },
    /// The MTU of the device is below the minimum of TCP.
    SmallMtu {
        device: String,
        mtu: u32,
        least: u32,
    },
    /// The prefix is in use on this host.
    Prefix(PathTrouble),
    /// One of our addresses is in use on the link.
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
    /// The route to an IPv4 server uses a neighbor with an IPv6 address only.
    HopOfIpv6 {
        hop: IpAddr,
        server: IpAddr,
        device: String,
    },
    /// The next hop does not reply.
    NoAnswer {
        hop: IpAddr,
        server: IpAddr,
        device: String,
        from: String,
    },
    /// Another error; the failed operation comes first.
    Other(String, io::Error),
}

impl fmt::Display for XdpTrouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            XdpTrouble::Forbidden => f.write_str(
                "AF_XDP requires root, or CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF outside user \
                namespaces; fix: run as root, in a container with --cap-add NET_ADMIN --cap-add \
                NET_RAW --cap-add BPF",
            ),
            XdpTrouble::NoSockets => f.write_str(
                "this kernel does not support AF_XDP (CONFIG_XDP_SOCKETS); fix: use a kernel \
                that does, or --stack own",
            ),
            XdpTrouble::Memory(error) => write!(
                f,
                "cannot lock the memory for packets ({error}); fix: `ulimit -l unlimited`, or \
                run as root with CAP_IPC_LOCK"
            ),
            XdpTrouble::Prefix(trouble) => trouble.fmt(f),
            XdpTrouble::TakenOnLink { address, by, device } => write!(
                f,
                "{address} is in use on the link of {device}: {by} responds for it; fix: use an \
                unused prefix"
            ),
            XdpTrouble::Here { address, device } => write!(
                f,
                "{address} is an address of this host, which packets sent by {device} cannot \
                reach; fix: use --stack own"
            ),
            XdpTrouble::HopOfIpv6 { hop, server, device } => write!(
                f,
                "the next hop to {server} on {device} is {hop}, an IPv6 address, which is not \
                supported for IPv4; fix: set gateway=ADDRESS to an IPv4 address of that router"
            ),
            XdpTrouble::NoAnswer { hop, server, device, from } => {
                let by = if hop.is_ipv4() { "ARP" } else { "ND" };
                let who = match hop == server {
                    true => format!("{server} does not respond to {by}"),
                    false => format!("{hop}, the next hop to {server}, does not respond to {by}"),
                };
                write!(
                    f,
                    "{who} on {device}; fix: check that it is up and has a route back to {from} \
                    (`ip route add {from} dev ...`), or set gateway=ADDRESS"
                )
            }
            XdpTrouble::Other(what, error) => write!(f, "{what}: {error}"),
            of_the_device => of_the_device.device(f),
        }
    }
}

impl XdpTrouble {
    /// Writes the text of a problem with the device itself.
    fn device(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            XdpTrouble::NoDevice { device } => {
                write!(f, "no network device {device} exists; fix: use one that `ip link` lists")
            }
            XdpTrouble::Loopback { device } => write!(
                f,
                "{device} is the loopback device, whose packets never leave the host; fix: use \
                --stack own, which reaches servers on this host"
            ),
            XdpTrouble::NotEthernet { device } => write!(
                f,
                "{device} is not an Ethernet device; fix: use the device that its packets leave \
                through, or --stack own"
            ),
            XdpTrouble::Down { device } => {
                write!(f, "{device} is down; fix: `ip link set {device} up`")
            }
            XdpTrouble::QueueBusy { device, queue } => write!(
                f,
                "queue {queue} of {device} is in use by another AF_XDP socket; fix: stop the \
                program that owns it, or use another device"
            ),
            XdpTrouble::ManyQueues { device, most } => write!(
                f,
                "{device} has more than {most} queues, too many for one thread to poll; fix: \
                `ethtool -L {device} combined {most}`"
            ),
            XdpTrouble::ManySockets { device } => write!(
                f,
                "each thread needs a socket per queue of {device}, more than the descriptor \
                limit of this process allows; fix: use fewer --threads, or raise the limit \
                (`ulimit -n`)"
            ),
            XdpTrouble::Attached { device } => write!(
                f,
                "an XDP program is already attached to {device}; fix: stop its owner (`ip link \
                show {device}` shows its number), or `ip link set dev {device} xdp off`"
            ),
            XdpTrouble::Mode { device, mode, error } => write!(
                f,
                "{device} does not accept XDP programs in {mode} mode ({error}); fix: use \
                another mode=, or Linux 5.9 or later"
            ),
            XdpTrouble::GenericInParts { device } => write!(
                f,
                "in generic mode {device} receives packets of up to 64 KiB, merged by its peer \
                or driver, which this kernel does not pass to AF_XDP (Linux 6.6 does); fix: use \
                mode=native"
            ),
            XdpTrouble::Mtu { device, mtu, most } => write!(
                f,
                "packets of {device} have up to {mtu} bytes, but this kernel accepts at most \
                {most} (Linux 6.6 accepts any); fix: `ip link set {device} mtu {most}`"
            ),
            XdpTrouble::SmallMtu { device, mtu, least } => write!(
                f,
                "packets of {device} have at most {mtu} bytes, but our own TCP needs {least}; \
                fix: `ip link set {device} mtu 1500`"
            ),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for XdpTrouble {}
