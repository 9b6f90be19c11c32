//! System calls without a safe wrapper: some socket options, and batches of datagrams. The only
//! unsafe code of this crate.
#![allow(unsafe_code, reason = "socket options and ancillary data that rustix does not know")]

use rustix::fd::{AsRawFd, BorrowedFd};
use rustix::io::Errno;
use sample::SocketFacts;
use units::Nanos;

/// Sets IP_BIND_ADDRESS_NO_PORT (Linux 4.2): a bind to port 0 leaves the choice to connect.
pub(crate) fn bind_address_no_port(fd: BorrowedFd<'_>) -> Result<(), Errno> {
    set_number(fd, libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, 1)
}

/// Sends datagrams whole or not at all (IP_MTU_DISCOVER, IPV6_MTU_DISCOVER), independent of the
/// kernel's path MTU: QUIC finds its limit itself (RFC 9000 section 14).
pub(crate) fn forbid_fragments(fd: BorrowedFd<'_>, is_v4: bool) -> Result<(), Errno> {
    if is_v4 {
        set_number(fd, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE)
    } else {
        set_number(fd, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_PROBE)
    }
}

/// Datagrams of equal size are received together (UDP_GRO, Linux 5.0).
pub(crate) fn gather_datagrams(fd: BorrowedFd<'_>) -> Result<(), Errno> {
    set_number(fd, libc::SOL_UDP, libc::UDP_GRO, 1)
}

fn set_number(
    fd: BorrowedFd<'_>,
    level: libc::c_int,
    option: libc::c_int,
    number: libc::c_int,
) -> Result<(), Errno> {
    let size = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: `number` lives across the call and `size` is its size; `fd` is open while borrowed.
    let result = unsafe {
        libc::setsockopt(fd.as_raw_fd(), level, option, (&raw const number).cast(), size)
    };
    if result == 0 { Ok(()) } else { Err(last_error()) }
}

/// Room for one ancillary message with an integer, aligned as the kernel requires.
#[repr(align(8))]
struct Ancillary([u8; 64]);

/// Sends several datagrams of `each` bytes, the last of which may be shorter, in one call
/// (UDP_SEGMENT, Linux 4.18).
pub(crate) fn send_segments(fd: BorrowedFd<'_>, bytes: &[u8], each: u16) -> Result<usize, Errno> {
    let mut room = Ancillary([0; 64]);
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    // SAFETY: a message is plain data, for which all zeros are a value; the pointers put into it live
    // across the calls, and the room is larger than what one message with two bytes needs.
    let sent = unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = room.0.as_mut_ptr().cast();
        message.msg_controllen = libc::CMSG_SPACE(size_of::<u16>() as u32) as _;
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = libc::SOL_UDP;
        (*header).cmsg_type = libc::UDP_SEGMENT;
        (*header).cmsg_len = libc::CMSG_LEN(size_of::<u16>() as u32) as _;
        std::ptr::write_unaligned(libc::CMSG_DATA(header).cast::<u16>(), each);
        libc::sendmsg(fd.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL)
    };
    usize::try_from(sent).map_err(|_| last_error())
}

/// Receives datagrams: bytes in all, and of each.
pub(crate) fn receive_segments(
    fd: BorrowedFd<'_>,
    buffer: &mut [u8],
) -> Result<(usize, usize), Errno> {
    let mut room = Ancillary([0; 64]);
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: as in `send_segments`; the kernel writes at most the size of the buffers and returns
    // how much of the ancillary room it used, which the macros respect.
    unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = room.0.as_mut_ptr().cast();
        message.msg_controllen = room.0.len() as _;
        let read = libc::recvmsg(fd.as_raw_fd(), &raw mut message, 0);
        let count = usize::try_from(read).map_err(|_| last_error())?;
        let mut each = count;
        let mut header = libc::CMSG_FIRSTHDR(&raw const message);
        while !header.is_null() {
            if (*header).cmsg_level == libc::SOL_UDP && (*header).cmsg_type == libc::UDP_GRO {
                let size = std::ptr::read_unaligned(libc::CMSG_DATA(header).cast::<libc::c_int>());
                each = usize::try_from(size).unwrap_or(count);
            }
            header = libc::CMSG_NXTHDR(&raw const message, header);
        }
        Ok((count, each))
    }
}

/// Start of the kernel's `struct tcp_info`, whose layout only grows at its end.
const TCP_INFO_HEAD: usize = 104;
const RTT_US_AT: usize = 68;
const TOTAL_RETRANS_AT: usize = 100;

pub(crate) fn tcp_info(fd: BorrowedFd<'_>) -> Option<SocketFacts> {
    let mut info = [0u8; TCP_INFO_HEAD];
    let mut size = TCP_INFO_HEAD as libc::socklen_t;
    // SAFETY: the kernel writes at most `size` bytes into `info`, which is that long.
    let result = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut size,
        )
    };
    if result != 0 || (size as usize) < TCP_INFO_HEAD {
        return None;
    }
    let word = |at: usize| {
        let bytes = [info[at], info[at + 1], info[at + 2], info[at + 3]];
        u64::from(u32::from_ne_bytes(bytes))
    };
    Some(SocketFacts {
        retransmits: word(TOTAL_RETRANS_AT),
        rtt: Nanos::from_micros(word(RTT_US_AT)),
    })
}

fn last_error() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL)
}
