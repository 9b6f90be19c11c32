//! Ports for servers that must know their port before they start, and for addresses without a
//! listener.

use std::net::{TcpListener, UdpSocket};
use std::sync::atomic::{AtomicU32, Ordering};

/// Lower ports may belong to services of this machine.
const FIRST: u16 = 10_000;

/// Linux's file with the range of ephemeral ports.
const HANDED_OUT: &str = "/proc/sys/net/ipv4/ip_local_port_range";

/// Number of assigned ports.
static GIVEN: AtomicU32 = AtomicU32::new(0);

/// Returns a port of 127.0.0.1 without a listener that no other test gets. Each is given to one
/// test of this process, and the kernel does not assign any of them to a socket that connects or
/// that requests any port. A port chosen by the kernel could be taken before it is used.
///
/// # Panics
/// Panics if all of the ports are taken.
pub(crate) fn free_port() -> u16 {
    let ports = apart(&std::fs::read_to_string(HANDED_OUT).unwrap_or_default());
    // another test program may run in parallel: it starts elsewhere
    let begin = std::process::id().wrapping_mul(397);
    for _ in &ports {
        let turn = begin.wrapping_add(GIVEN.fetch_add(1, Ordering::Relaxed));
        let port = ports[turn as usize % ports.len()];
        let place = ("127.0.0.1", port);
        if TcpListener::bind(place).is_ok() && UdpSocket::bind(place).is_ok() {
            return port;
        }
    }
    panic!("no port from {FIRST} on is free");
}

/// Returns the ports from [`FIRST`] on outside of Linux's ephemeral range; all of them if the range
/// leaves none or is unreadable.
fn apart(range: &str) -> Vec<u16> {
    let mut ends = range.split_whitespace().map_while(|end| end.parse::<u16>().ok());
    let handed_out = ends.next().zip(ends.next()).map(|(low, high)| low..=high);
    let is_apart = |port: &u16| handed_out.as_ref().is_none_or(|range| !range.contains(port));
    let ports: Vec<u16> = (FIRST..=u16::MAX).filter(is_apart).collect();
    if ports.is_empty() { (FIRST..=u16::MAX).collect() } else { ports }
}
