//! The two socket options that no safe wrapper offers. The only unsafe code of this crate.
#![allow(unsafe_code, reason = "getsockopt and setsockopt for options that rustix does not know")]

use rustix::fd::{AsRawFd, BorrowedFd};
use rustix::io::Errno;
use sample::SocketFacts;
use units::Nanos;

/// IP_BIND_ADDRESS_NO_PORT (Linux 4.2): a bind to port 0 leaves the choice to connect.
pub(crate) fn bind_address_no_port(fd: BorrowedFd<'_>) -> Result<(), Errno> {
    let on: libc::c_int = 1;
    let size = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: `on` lives across the call and `size` is its size; `fd` is open while borrowed.
    let result = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::IPPROTO_IP,
            libc::IP_BIND_ADDRESS_NO_PORT,
            (&raw const on).cast(),
            size,
        )
    };
    if result == 0 { Ok(()) } else { Err(last_error()) }
}

/// The head of the kernel's `struct tcp_info`, whose layout only ever grows at its end.
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
