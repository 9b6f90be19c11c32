//! Listeners: the processes on this machine that hold the server's socket.

use crate::foreign::pids;
use crate::proc::{self, Listening};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::Path;

/// Returns the process that listens on an address of this machine; the one with the lowest number
/// if several share the socket, like a master and its workers. `None` if no visible process does.
pub fn listener_pid(address: SocketAddr) -> Option<u32> {
    listener_pids(address).first().copied()
}

/// Returns all processes that hold a listening socket for the address, by number. Those of another
/// user are visible only to root. Reads the descriptors of every process, which takes milliseconds.
pub fn listener_pids(address: SocketAddr) -> Vec<u32> {
    holders(&inodes_of(address), pids)
}

/// Returns the listening processes that may not run on every core. The affinity is checked first,
/// so that the descriptors of few processes are read.
pub fn bound_listener_pids(address: SocketAddr) -> Vec<u32> {
    holders(&inodes_of(address), bound)
}

fn inodes_of(address: SocketAddr) -> Vec<u64> {
    if !is_ours(address.ip()) {
        return Vec::new();
    }
    let mut sockets = listening("tcp");
    sockets.extend(listening("tcp6"));
    inodes_for(&sockets, address)
}

/// Returns the processes whose first thread may not run on every core.
fn bound() -> Vec<u32> {
    let all = crate::cpu::online_cores().len();
    let is_bound = |pid: &u32| crate::cpu::affinity_of(*pid).is_some_and(|cores| cores < all);
    pids().into_iter().filter(is_bound).collect()
}

/// Returns the listening sockets in one of the kernel's tables. They precede all others, which may
/// be tens of thousands and are not read.
fn listening(name: &str) -> Vec<Listening> {
    let Ok(table) = File::open(format!("/proc/net/{name}")) else { return Vec::new() };
    let lines = BufReader::with_capacity(4 << 10, table).lines();
    let rows = lines.map_while(Result::ok).skip(1);
    rows.map_while(|row| proc::listening_line(&row)).collect()
}

/// Returns all processes that hold the listening Unix socket at `path`, by number.
pub fn unix_listener_pids(path: &Path) -> Vec<u32> {
    holders(&unix_inodes(path), pids)
}

/// Returns the listening processes that may not run on every core.
pub fn bound_unix_listener_pids(path: &Path) -> Vec<u32> {
    holders(&unix_inodes(path), bound)
}

fn unix_inodes(path: &Path) -> Vec<u64> {
    let table = std::fs::read("/proc/net/unix").unwrap_or_default();
    proc::listening_unix(&String::from_utf8_lossy(&table), &path.to_string_lossy())
}

/// Returns the number of sockets of this machine that lead to one of the addresses and are not
/// fully closed, including our connections that the peer still holds. 0 if unknown.
pub fn connections_to(addresses: &[SocketAddr]) -> usize {
    let count = |name: &str| {
        let table = std::fs::read_to_string(format!("/proc/net/{name}")).unwrap_or_default();
        proc::connected(&table, addresses)
    };
    count("tcp") + count("tcp6")
}

/// Returns the name of a process as the kernel keeps it (15 bytes); empty when it is gone.
pub fn process_name(pid: u32) -> String {
    let name = std::fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
    String::from_utf8_lossy(&name).trim_end().to_owned()
}

/// Returns whether an address belongs to this machine, so that it can be bound. Sends no packet.
fn is_ours(address: IpAddr) -> bool {
    address.is_loopback() || UdpSocket::bind((address, 0)).is_ok()
}

/// Returns the sockets that a connection to `address` would reach: those bound to that address or,
/// if there are none, to all addresses.
fn inodes_for(sockets: &[Listening], address: SocketAddr) -> Vec<u64> {
    let wanted = address.ip().to_canonical();
    let inodes = |fits: &dyn Fn(IpAddr) -> bool| -> Vec<u64> {
        let here = sockets.iter().filter(|socket| socket.address.port() == address.port());
        here.filter(|socket| fits(socket.address.ip())).map(|socket| socket.inode).collect()
    };
    let exact = inodes(&|ip| ip.to_canonical() == wanted);
    if !exact.is_empty() {
        return exact;
    }
    inodes(&|ip| match ip.to_canonical() {
        IpAddr::V4(ip) => ip == Ipv4Addr::UNSPECIFIED && wanted.is_ipv4(),
        // an IPv6 socket also accepts IPv4 connections, unless IPV6_V6ONLY is set
        IpAddr::V6(ip) => ip == Ipv6Addr::UNSPECIFIED,
    })
}

/// Returns the processes with a descriptor for one of the sockets.
fn holders(inodes: &[u64], among: fn() -> Vec<u32>) -> Vec<u32> {
    if inodes.is_empty() {
        return Vec::new();
    }
    let holds = |pid: &u32| {
        let Ok(entries) = std::fs::read_dir(format!("/proc/{pid}/fd")) else {
            return false;
        };
        entries.flatten().any(|entry| {
            let link = std::fs::read_link(entry.path()).unwrap_or_default();
            let inode = link.to_str().and_then(proc::socket_inode);
            inode.is_some_and(|inode| inodes.contains(&inode))
        })
    };
    let mut found: Vec<u32> = among().into_iter().filter(holds).collect();
    found.sort_unstable();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn socket(address: &str, inode: u64) -> Listening {
        Listening { address: address.parse().unwrap(), inode }
    }

    #[test]
    fn which_socket_takes_the_connection() {
        let sockets = [
            socket("127.0.0.1:80", 1),
            socket("0.0.0.0:80", 2),
            socket("[::]:80", 3),
            socket("[::]:81", 4),
            socket("0.0.0.0:82", 5),
            socket("[::1]:83", 6),
            socket("[::ffff:127.0.0.1]:84", 7),
            // SO_REUSEPORT
            socket("127.0.0.1:85", 8),
            socket("127.0.0.1:85", 9),
        ];
        for (address, expected) in [
            ("127.0.0.1:80", &[1][..]),
            ("127.0.0.2:80", &[2, 3]),
            ("[::1]:80", &[3]),
            ("127.0.0.1:81", &[4]),
            ("[::1]:82", &[]),
            ("127.0.0.1:82", &[5]),
            ("[::1]:83", &[6]),
            ("127.0.0.1:83", &[]),
            ("127.0.0.1:84", &[7]),
            ("127.0.0.1:85", &[8, 9]),
            ("127.0.0.1:86", &[]),
        ] {
            assert_eq!(inodes_for(&sockets, address.parse().unwrap()), expected, "{address}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn we_are_found_when_we_listen() {
        let _alone = crate::alone();
        let us = std::process::id();
        for address in ["127.0.0.1:0", "127.0.0.3:0", "0.0.0.0:0"] {
            let listener = std::net::TcpListener::bind(address).unwrap();
            let port = listener.local_addr().unwrap().port();
            let asked = listener.local_addr().unwrap().ip();
            let ip = if asked.is_unspecified() { [127, 0, 0, 1].into() } else { asked };
            assert_eq!(listener_pids(SocketAddr::new(ip, port)), [us], "{address}");
            assert_eq!(listener_pid(SocketAddr::new(ip, port)), Some(us));
        }
        assert!(!process_name(us).is_empty());
        // a process that may run on every core is not among them
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let all = crate::cpu::online_cores().len();
        let bound = crate::cpu::affinity_of(us).is_some_and(|cores| cores < all);
        let expected = if bound { vec![us] } else { Vec::new() };
        assert_eq!(bound_listener_pids(address), expected);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn listeners_of_unix_sockets_are_found() {
        let _alone = crate::alone();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a socket");
        let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        assert_eq!(unix_listener_pids(&path), [std::process::id()]);
        assert!(unix_listener_pids(&folder.path().join("a")).is_empty());
    }

    #[test]
    fn an_address_of_elsewhere_is_not_ours() {
        // TEST-NET-3 (RFC 5737): unassigned
        let elsewhere: SocketAddr = "203.0.113.7:80".parse().unwrap();
        assert!(listener_pids(elsewhere).is_empty());
        assert_eq!(listener_pid(elsewhere), None);
    }
}
