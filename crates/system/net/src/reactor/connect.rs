//! Opens sockets, and queries the kernel about them.

use crate::reactor::raw;
use conduit::{OpenOptions, Peer};
use rustix::event::Timespec;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType, sockopt};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use units::Nanos;

pub(crate) fn timespec(span: Nanos) -> Timespec {
    Timespec { tv_sec: (span.0 / 1_000_000_000) as i64, tv_nsec: (span.0 % 1_000_000_000) as i64 }
}

/// Returns a socket whose connect is in progress or done; true if it must be retried, because the
/// Unix socket's queue is full or other connects wait for it (`waited_for`).
pub(crate) fn start(
    peer: &Peer,
    options: &OpenOptions,
    waited_for: bool,
) -> Result<(OwnedFd, bool), Errno> {
    match peer {
        Peer::Tcp(address) => start_tcp(*address, options).map(|fd| (fd, false)),
        Peer::Unix(path) => {
            let fd = socket(AddressFamily::UNIX)?;
            if waited_for {
                return Ok((fd, true));
            }
            match connect_unix(fd.as_fd(), path) {
                Ok(()) => Ok((fd, false)),
                Err(Errno::AGAIN) => Ok((fd, true)),
                Err(errno) => Err(errno),
            }
        }
        Peer::Udp(address) => start_udp(*address, options).map(|fd| (fd, false)),
        // made one layer above
        Peer::Quic { .. } | Peer::Tunnel { .. } => Err(Errno::AFNOSUPPORT),
    }
}

/// Connects to a Unix socket; EAGAIN: its listen queue is full.
pub(crate) fn connect_unix(fd: BorrowedFd<'_>, path: &Path) -> Result<(), Errno> {
    accept_in_progress(net::connect(fd, &net::SocketAddrUnix::new(path)?))
}

/// Returns a socket for datagrams to and from one address.
fn start_udp(address: SocketAddr, options: &OpenOptions) -> Result<OwnedFd, Errno> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let fd = net::socket_with(family, SocketType::DGRAM, flags, None)?;
    sockopt::set_socket_send_buffer_size(&fd, options.send_buffer.unwrap_or(UDP_BUFFER) as usize)?;
    sockopt::set_socket_recv_buffer_size(&fd, options.recv_buffer.unwrap_or(UDP_BUFFER) as usize)?;
    if let Some(local) = options.bind {
        net::bind(&fd, &SocketAddr::new(local, options.port.unwrap_or(0)))?;
    }
    // without path MTU discovery datagrams would be fragmented
    raw::forbid_fragments(fd.as_fd(), address.is_ipv4())?;
    // a kernel without it delivers one datagram at a time
    raw::gather_datagrams(fd.as_fd()).ok();
    net::connect(&fd, &address)?;
    Ok(fd)
}

/// Default buffer size of a datagram socket: the kernel's usual 208 KiB lose datagrams of a single
/// larger response. The kernel grants up to its own limit.
const UDP_BUFFER: u32 = 1 << 20;

fn start_tcp(address: SocketAddr, options: &OpenOptions) -> Result<OwnedFd, Errno> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let fd = socket(family)?;
    if options.nodelay {
        sockopt::set_tcp_nodelay(&fd, true)?;
    }
    if let Some(bytes) = options.send_buffer {
        sockopt::set_socket_send_buffer_size(&fd, bytes as usize)?;
    }
    if let Some(bytes) = options.recv_buffer {
        sockopt::set_socket_recv_buffer_size(&fd, bytes as usize)?;
    }
    match (options.bind, options.port) {
        (bind, Some(port)) => bind_again(&fd, bind.unwrap_or(unspecified(address)), port)?,
        (Some(local), None) => bind_late(&fd, local)?,
        (None, None) => {}
    }
    accept_in_progress(net::connect(&fd, &address))?;
    Ok(fd)
}

/// Binds to an address and leaves the port to `connect`, which may then use a port again that is
/// bound for another destination: 64 k ports for each pair of addresses.
fn bind_late(fd: &OwnedFd, local: IpAddr) -> Result<(), Errno> {
    raw::bind_address_no_port(fd.as_fd())?;
    net::bind(fd, &SocketAddr::new(local, 0))
}

/// Binds to a port at which a connection of before may still be in TIME_WAIT.
fn bind_again(fd: &OwnedFd, local: IpAddr, port: u16) -> Result<(), Errno> {
    sockopt::set_socket_reuseaddr(fd, true)?;
    net::bind(fd, &SocketAddr::new(local, port))
}

fn unspecified(peer: SocketAddr) -> IpAddr {
    match peer {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    }
}

fn socket(family: AddressFamily) -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    net::socket_with(family, SocketType::STREAM, flags, None)
}

fn accept_in_progress(connected: Result<(), Errno>) -> Result<(), Errno> {
    match connected {
        Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => Ok(()),
        Err(errno) => Err(errno),
    }
}

/// Returns the cause of a read or write error: a failed connect stores its own in SO_ERROR.
pub(crate) fn reason(fd: BorrowedFd<'_>, errno: Errno) -> Errno {
    match sockopt::socket_error(fd) {
        Ok(Err(kept)) => kept,
        _ => errno,
    }
}

/// Makes the next close send a reset.
pub(crate) fn linger_zero(fd: BorrowedFd<'_>) {
    // fails only on a descriptor that is not a socket
    sockopt::set_socket_linger(fd, Some(std::time::Duration::ZERO)).ok();
}
