//! System calls without a safe wrapper: ioctls of network devices, namespaces, a fork and the
//! actions of a child before its program. The only unsafe code of this crate.
#![allow(unsafe_code, reason = "ioctls on ifreq and rtentry, unshare, fork, prctl in a child")]

use std::ffi::CString;
use std::io;
use std::mem::size_of;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// `struct ifreq`: a name and 24 bytes whose meaning depends on the call.
#[repr(C)]
#[derive(Clone, Copy)]
struct InterfaceRequest {
    name: [u8; 16],
    payload: [u8; 24],
}

const TUNSETIFF: libc::Ioctl = 0x4004_54ca;
const IFF_TUN: i16 = 0x0001;
const IFF_NO_PI: i16 = 0x1000;

/// Each packet is preceded by a virtio header.
pub(crate) const IFF_VNET_HDR: i16 = 0x4000;
const TUNSETOFFLOAD: libc::Ioctl = 0x4004_54d0;
/// Checksums are not computed, and segments of up to 64 KiB may arrive, of IPv4 and of IPv6.
const CHECKSUM_AND_SEGMENTATION: libc::c_ulong = 1 | 2 | 4;

/// Configures the device to leave checksums and segmentation to its reader.
pub(crate) fn offload(file: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the argument of this request is a number, and the kernel reads no memory of ours
    let result = unsafe { libc::ioctl(file.as_raw_fd(), TUNSETOFFLOAD, CHECKSUM_AND_SEGMENTATION) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

impl InterfaceRequest {
    fn new(name: &str) -> io::Result<InterfaceRequest> {
        if name.len() > 15 || name.contains('\0') {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut request = InterfaceRequest { name: [0; 16], payload: [0; 24] };
        request.name[..name.len()].copy_from_slice(name.as_bytes());
        Ok(request)
    }

    fn call(&mut self, on: BorrowedFd<'_>, number: libc::Ioctl) -> io::Result<()> {
        // SAFETY: all requests used here read or write one ifreq, which `self` is and outlives the
        // call
        let result = unsafe { libc::ioctl(on.as_raw_fd(), number, std::ptr::from_mut(self)) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

/// Turns the file into an IPv4 and IPv6 device of whole packets, named `name` (a `%d` in it is a
/// free number), or an additional queue of it; returns the name. `more`: flags in addition to those
/// of every device.
pub(crate) fn make_tun(file: BorrowedFd<'_>, name: &str, more: i16) -> io::Result<String> {
    let mut request = InterfaceRequest::new(name)?;
    request.payload[..2].copy_from_slice(&(IFF_TUN | IFF_NO_PI | more).to_ne_bytes());
    request.call(file, TUNSETIFF)?;
    let end = request.name.iter().position(|byte| *byte == 0).unwrap_or(16);
    Ok(String::from_utf8_lossy(&request.name[..end]).into_owned())
}

/// Sets the MTU of a device.
pub(crate) fn set_mtu(socket: BorrowedFd<'_>, name: &str, bytes: i32) -> io::Result<()> {
    let mut request = InterfaceRequest::new(name)?;
    request.payload[..4].copy_from_slice(&bytes.to_ne_bytes());
    request.call(socket, libc::SIOCSIFMTU as libc::Ioctl)
}

/// Returns the index of a device in its namespace.
pub(crate) fn index(socket: BorrowedFd<'_>, name: &str) -> io::Result<i32> {
    let mut request = InterfaceRequest::new(name)?;
    request.call(socket, libc::SIOCGIFINDEX as libc::Ioctl)?;
    let [a, b, c, d, ..] = request.payload;
    Ok(i32::from_ne_bytes([a, b, c, d]))
}

/// Sets an address of a device: [`ADDRESS`] or [`NETMASK`].
pub(crate) fn set_address(
    socket: BorrowedFd<'_>,
    name: &str,
    call: libc::Ioctl,
    address: Ipv4Addr,
) -> io::Result<()> {
    let mut request = InterfaceRequest::new(name)?;
    request.payload[..16].copy_from_slice(&socket_address(address));
    request.call(socket, call)
}

pub(crate) const ADDRESS: libc::Ioctl = libc::SIOCSIFADDR as libc::Ioctl;
pub(crate) const NETMASK: libc::Ioctl = libc::SIOCSIFNETMASK as libc::Ioctl;

/// Returns a `struct sockaddr_in` with port 0.
fn socket_address(address: Ipv4Addr) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..2].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
    bytes[4..8].copy_from_slice(&address.octets());
    bytes
}

pub(crate) fn bring_up(socket: BorrowedFd<'_>, name: &str) -> io::Result<()> {
    let mut request = InterfaceRequest::new(name)?;
    request.call(socket, libc::SIOCGIFFLAGS as libc::Ioctl)?;
    let flags = i16::from_ne_bytes([request.payload[0], request.payload[1]]);
    let flags = flags | libc::IFF_UP as i16 | libc::IFF_RUNNING as i16;
    request.payload[..2].copy_from_slice(&flags.to_ne_bytes());
    request.call(socket, libc::SIOCSIFFLAGS as libc::Ioctl)
}

/// `struct rtentry`.
#[repr(C)]
struct RouteMessage {
    pad1: libc::c_ulong,
    to: [u8; 16],
    gateway: [u8; 16],
    mask: [u8; 16],
    flags: u16,
    pad2: i16,
    pad3: libc::c_ulong,
    pad4: *mut libc::c_void,
    metric: i16,
    device: *const libc::c_char,
    mtu: libc::c_ulong,
    window: libc::c_ulong,
    rtt: u16,
}

const ROUTE_UP: u16 = 1;

/// Routes `to`/`mask` over the device.
pub(crate) fn route(
    socket: BorrowedFd<'_>,
    name: &str,
    to: Ipv4Addr,
    mask: Ipv4Addr,
) -> io::Result<()> {
    let device = CString::new(name)?;
    let entry = RouteMessage {
        pad1: 0,
        to: socket_address(to),
        gateway: socket_address(Ipv4Addr::UNSPECIFIED),
        mask: socket_address(mask),
        flags: ROUTE_UP,
        pad2: 0,
        pad3: 0,
        pad4: std::ptr::null_mut(),
        metric: 0,
        device: device.as_ptr(),
        mtu: 0,
        window: 0,
        rtt: 0,
    };
    // SAFETY: the kernel reads one rtentry and the name it points to; both live until the call
    // returns
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), ADD_ROUTE, std::ptr::from_ref(&entry)) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

const ADD_ROUTE: libc::Ioctl = 0x890b;

/// Moves the calling thread to a new, empty network namespace.
pub(crate) fn leave_network() -> io::Result<()> {
    // SAFETY: only the calling thread's network namespace changes; no memory is shared differently
    let result = unsafe { libc::unshare(libc::CLONE_NEWNET) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Moves the process to a separate user namespace, in which it has the rights of root. Fails if
/// there is more than one thread.
pub(crate) fn leave_users() -> io::Result<()> {
    // SAFETY: changes credentials of this process only, which has one thread or the call fails
    let result = unsafe { libc::unshare(libc::CLONE_NEWUSER) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Returns the child's process id in the parent, `None` in the child. Must be called with a single
/// thread.
pub(crate) fn fork() -> io::Result<Option<u32>> {
    // SAFETY: the caller has one thread, so that no lock can be left held in the child
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(None),
        child => Ok(Some(child as u32)),
    }
}

/// Closes every descriptor from `first` to `last`.
pub(crate) fn close_range(first: u32, last: u32) {
    // SAFETY: called in a child that owns none of these descriptors by any Rust type that it uses
    unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
}

/// Makes the command's process enter this network namespace before its program, and has it killed
/// when the calling thread ends. The thread itself does not enter: a user may not be permitted to
/// return.
pub(crate) fn settle(command: &mut Command, network: BorrowedFd<'_>) {
    let parent = std::process::id();
    let network = network.as_raw_fd();
    let before_program = move || {
        // SAFETY: a plain system call on a descriptor that is open in the parent, and so in its
        // child
        if unsafe { libc::setns(network, libc::CLONE_NEWNET) } < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: prctl and getppid are safe in a child between fork and exec
        let (set, now) =
            unsafe { (libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL), libc::getppid() as u32) };
        match (set, now == parent) {
            (0, true) => Ok(()),
            (0, false) => Err(io::ErrorKind::Interrupted.into()),
            _ => Err(io::Error::last_os_error()),
        }
    };
    // SAFETY: the closure allocates nothing and takes no lock
    unsafe { command.pre_exec(before_program) };
}

const _: () = assert!(size_of::<InterfaceRequest>() == size_of::<libc::ifreq>());
