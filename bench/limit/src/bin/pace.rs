//! UDP through an emulated path: the difference between each packet's arrival, as stamped by the
//! receiving kernel, and the instant requested of the path. `receive` runs at the server's end,
//! `send` at the clients'; the sender fetches the receiver's result over TCP and prints it.
//!
//!     pace receive PORT DELAY_US
//!     pace send ADDRESS PORT RATE SECONDS BYTES
//!
//! One line: sent, received, p50, p90 and p99 of the error in microseconds, packets a second received,
//! and the median of the sender's own system call, which is in the error, in microseconds.
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

/// How long the last packet may be under way.
const GRACE: Duration = Duration::from_millis(700);
/// No more data, not even the mark at the end.
const SILENCE: Duration = Duration::from_secs(3);

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words[..] {
        ["receive", port, delay] => receive(number(port) as u16, number(delay) as i64 * 1_000),
        ["send", address, port, rate, seconds, bytes] => send(
            address.parse().expect("an IPv4 address"),
            number(port) as u16,
            number(rate),
            number(seconds),
            number(bytes) as usize,
        ),
        _ => {
            eprintln!("pace receive PORT DELAY_US | pace send ADDRESS PORT RATE SECONDS BYTES");
            std::process::exit(2);
        }
    }
}

fn number(text: &str) -> u64 {
    text.parse().unwrap_or_else(|_| panic!("{text} is no whole number"))
}

fn receive(port: u16, asked: i64) {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).expect("listen");
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port)).expect("bind");
    let fd = socket.as_raw_fd();
    // a large buffer, so that no waiting packet is dropped
    option(fd, libc::SO_RCVBUFFORCE, 256 << 20);
    option(fd, libc::SO_TIMESTAMPNS, 1);
    let (mut errors, mut first, mut last): (Vec<i64>, u64, u64) = (Vec::new(), 0, 0);
    let mut packet = [0_u8; 2_048];
    loop {
        let (length, stamp) = stamped(fd, &mut packet);
        if length < 8 {
            break;
        }
        let sent = u64::from_ne_bytes(packet[..8].try_into().unwrap());
        if sent == 0 {
            break;
        }
        if first == 0 {
            first = stamp;
            socket.set_read_timeout(Some(SILENCE)).expect("a time-out");
        }
        last = stamp;
        errors.push(stamp as i64 - sent as i64 - asked);
    }
    errors.sort_unstable();
    let at = |share: f64| match errors.len() {
        0 => 0.0,
        count => errors[((count - 1) as f64 * share) as usize] as f64 / 1e3,
    };
    let span = (last - first) as f64 / 1e9;
    let rate = errors.len().saturating_sub(1) as f64 / span.max(1e-9);
    let (mut asker, _) = listener.accept().expect("the sender");
    let count = errors.len();
    write!(asker, "{count} {:.1} {:.1} {:.1} {rate:.0}", at(0.5), at(0.9), at(0.99)).expect("write");
}

fn send(address: Ipv4Addr, port: u16, rate: u64, seconds: u64, bytes: usize) {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("bind");
    option(socket.as_raw_fd(), libc::SO_SNDBUFFORCE, 64 << 20);
    socket.connect((address, port)).expect("connect");
    let mut packet = vec![0_u8; bytes.max(8)];
    let (start, count) = (limit::now_ns(), rate * seconds);
    let mut calls: Vec<u64> = Vec::with_capacity(count as usize);
    for row in 0..count {
        // a sleep of a short span ends late by 50 us: spin
        while limit::now_ns() < start + row * 1_000_000_000 / rate {
            std::hint::spin_loop();
        }
        let began = limit::now_ns();
        packet[..8].copy_from_slice(&real_ns().to_ne_bytes());
        socket.send(&packet).ok();
        calls.push(limit::now_ns() - began);
    }
    calls.sort_unstable();
    let call = calls.get(calls.len() / 2).map_or(0.0, |&ns| ns as f64 / 1e3);
    std::thread::sleep(GRACE);
    packet[..8].fill(0);
    for _ in 0..20 {
        socket.send(&packet).ok();
    }
    let mut result = String::new();
    let mut asked = TcpStream::connect((address, port)).expect("connect");
    asked.read_to_string(&mut result).expect("the receiver's result");
    println!("{count} {result} {call:.1}");
}

fn real_ns() -> u64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &mut t) };
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

fn option(fd: RawFd, name: libc::c_int, value: libc::c_int) {
    let size = std::mem::size_of::<libc::c_int>() as u32;
    let pointer = std::ptr::from_ref(&value).cast();
    let done = unsafe { libc::setsockopt(fd, libc::SOL_SOCKET, name, pointer, size) };
    assert_eq!(done, 0, "setsockopt {name}: {}", std::io::Error::last_os_error());
}

/// One packet and the instant when the kernel received it, in nanoseconds of the real-time clock; 0
/// bytes if none arrived within the socket's timeout.
fn stamped(fd: RawFd, packet: &mut [u8]) -> (usize, u64) {
    let mut control = [0_u64; 16];
    let mut part =
        libc::iovec { iov_base: packet.as_mut_ptr().cast(), iov_len: packet.len() };
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = std::mem::size_of_val(&control);
    let length = unsafe { libc::recvmsg(fd, &mut message, 0) };
    if length < 0 {
        return (0, 0);
    }
    let mut header = unsafe { libc::CMSG_FIRSTHDR(&message) };
    while !header.is_null() {
        let kind = unsafe { ((*header).cmsg_level, (*header).cmsg_type) };
        if kind == (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) {
            let stamp: libc::timespec =
                unsafe { std::ptr::read_unaligned(libc::CMSG_DATA(header).cast()) };
            return (length as usize, stamp.tv_sec as u64 * 1_000_000_000 + stamp.tv_nsec as u64);
        }
        header = unsafe { libc::CMSG_NXTHDR(&message, header) };
    }
    panic!("the kernel gave no time stamp");
}
