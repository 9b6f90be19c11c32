//! The TCP sockets of a server's ports, by state, with the fill levels of its listen queues: from
//! the kernel's socket diagnosis, or from /proc/net/tcp of another network namespace.
//!
//! The kernel has one table for the sockets of both IP versions, and each request walks all of it: 3
//! ms with 262,144 entries, where reading /proc/net/tcp and tcp6 takes 26 ms. TCPDIAG_GETSOCK, the
//! older form of the request, covers both versions at once.

use crate::proc;
use rustix::net::netlink::{SOCK_DIAG, SocketAddrNetlink};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with,
    sockopt,
};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Connections that have not reached their server yet, over all listeners of some ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Queues {
    /// Connections that wait to be accepted.
    pub(crate) accept: u64,
    /// Maximum length; 0 if unknown.
    pub(crate) accept_max: u64,
    /// A SYN was received, and its handshake is not over.
    pub(crate) half_open: u64,
}

/// Sockets of some ports: the listening ones as queues, all others by state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PortSockets {
    pub(crate) queues: Queues,
    pub(crate) states: BTreeMap<&'static str, u64>,
}

/// Returns the listen queues of these ports, in the network namespace of process `pid`.
pub(crate) fn queues(pid: u32, ports: &BTreeSet<u16>) -> Queues {
    if ports.is_empty() {
        return Queues::default();
    }
    let asked = if same_namespace(pid) { query_kernel(ports, QUEUED) } else { None };
    asked.map_or_else(|| listed_queues(pid, ports), |sockets| sockets.queues)
}

/// Returns the sockets of a port in the network namespace of process `pid`.
pub(crate) fn sockets(pid: u32, port: u16) -> PortSockets {
    let ports = BTreeSet::from([port]);
    let asked = if same_namespace(pid) { query_kernel(&ports, ANY_STATE) } else { None };
    asked.unwrap_or_else(|| PortSockets {
        queues: listed_queues(pid, &ports),
        states: listed_states(pid, port),
    })
}

fn listed_queues(pid: u32, ports: &BTreeSet<u16>) -> Queues {
    let accept = TABLES.iter().map(|table| waiting(pid, table, ports)).sum();
    Queues { accept, ..Queues::default() }
}

/// Returns the sockets of a port, except listening ones, by state, from the namespace's own tables.
fn listed_states(pid: u32, port: u16) -> BTreeMap<&'static str, u64> {
    let mut all = BTreeMap::new();
    for table in TABLES {
        let text = std::fs::read(format!("/proc/{pid}/net/{table}")).unwrap_or_default();
        for state in proc::states(&String::from_utf8_lossy(&text), port) {
            *all.entry(state).or_default() += 1;
        }
    }
    all
}

const TABLES: [&str; 2] = ["tcp", "tcp6"];

/// Returns whether the network namespace is ours; assumed if unknown.
fn same_namespace(pid: u32) -> bool {
    let of = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/net")).ok();
    of(&pid.to_string()).is_none_or(|theirs| Some(theirs) == of("self"))
}

// linux/netlink.h, linux/sock_diag.h, linux/inet_diag.h, net/tcp_states.h
const HEADER: usize = 16;
const DONE: u16 = 3;
const ERROR: u16 = 2;
/// TCPDIAG_GETSOCK: TCP of both families. Its request ends with the states and an unused field.
const GET_TCP: u16 = 18;
const REQUEST_DUMP: u16 = 0x301;
const LISTEN: u8 = 10;
const SYN_RECEIVED: u8 = 3;
const NEW_SYN_RECEIVED: u8 = 12;
/// The states of sockets in the queues of listeners.
const QUEUED: u32 = (1 << LISTEN) | (1 << SYN_RECEIVED) | (1 << NEW_SYN_RECEIVED);
const ANY_STATE: u32 = (1 << (NEW_SYN_RECEIVED + 1)) - 1;
/// Position of the states in a request.
const STATES_AT: usize = HEADER + 52;
const REQUEST: usize = 60;
const MESSAGE: usize = 72;

/// Maximum number of bytes that the kernel fills at once.
const ANSWER_MAX: usize = 32 * 1024;
/// Maximum number of replies to one request, each with the sockets that fit.
const ANSWERS_MAX: usize = 4_096;
/// Time limit for the kernel's reply, which arrives at once.
const PATIENCE: Duration = Duration::from_millis(200);

/// Returns `None` if the kernel does not answer. `states`: a bit for each of the requested states.
fn query_kernel(ports: &BTreeSet<u16>, states: u32) -> Option<PortSockets> {
    let kind = (AddressFamily::NETLINK, SocketType::DGRAM, SocketFlags::CLOEXEC);
    let socket = socket_with(kind.0, kind.1, kind.2, Some(SOCK_DIAG)).ok()?;
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(PATIENCE)).ok()?;
    let kernel = SocketAddrNetlink::new(0, 0);
    sendto(&socket, &question(states), SendFlags::empty(), &kernel).ok()?;
    let mut sockets = PortSockets::default();
    let mut answer = vec![0; ANSWER_MAX];
    for _ in 0..ANSWERS_MAX {
        let (read, _) = recv(&socket, &mut answer, RecvFlags::empty()).ok()?;
        if add(&answer[..read], ports, &mut sockets)? {
            return Some(sockets);
        }
    }
    None
}

/// Requests the TCP sockets in these states.
fn question(states: u32) -> Vec<u8> {
    let length = (HEADER + REQUEST) as u32;
    let mut bytes = length.to_ne_bytes().to_vec();
    bytes.extend(GET_TCP.to_ne_bytes());
    bytes.extend(REQUEST_DUMP.to_ne_bytes());
    bytes.resize(STATES_AT, 0);
    bytes.extend(states.to_ne_bytes());
    bytes.resize(HEADER + REQUEST, 0);
    bytes
}

/// Adds the sockets of these ports from a reply. Returns whether it is the last reply, `None` for a
/// refusal.
fn add(mut answer: &[u8], ports: &BTreeSet<u16>, sockets: &mut PortSockets) -> Option<bool> {
    let u32_at = |bytes: &[u8], at: usize| -> Option<u32> {
        Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
    };
    while answer.len() >= HEADER {
        let length = u32_at(answer, 0)? as usize;
        let kind = u16::from_ne_bytes([answer[4], answer[5]]);
        if kind == DONE {
            // a dump that failed ends so too, with its error as a negative number
            let error = u32_at(answer, HEADER).unwrap_or(0).cast_signed();
            return (error >= 0).then_some(true);
        }
        let message = answer.get(HEADER..length).filter(|_| kind != ERROR)?;
        if kind == GET_TCP && message.len() >= MESSAGE {
            let port = u16::from_be_bytes([message[4], message[5]]);
            match message[1] {
                _ if !ports.contains(&port) => {}
                LISTEN => {
                    sockets.queues.accept += u64::from(u32_at(message, 56)?);
                    sockets.queues.accept_max += u64::from(u32_at(message, 60)?);
                }
                state => {
                    let half_open = matches!(state, SYN_RECEIVED | NEW_SYN_RECEIVED);
                    sockets.queues.half_open += u64::from(half_open);
                    if let Some(name) = proc::state_name(state.into()) {
                        *sockets.states.entry(name).or_default() += 1;
                    }
                }
            }
        }
        answer = answer.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Some(false)
}

/// Returns the number of connections that wait to be accepted on these ports, by the namespace's
/// own table.
fn waiting(pid: u32, table: &str, ports: &BTreeSet<u16>) -> u64 {
    use std::io::BufRead;
    let Ok(file) = std::fs::File::open(format!("/proc/{pid}/net/{table}")) else { return 0 };
    let lines = std::io::BufReader::new(file).lines().map_while(Result::ok).skip(1);
    // listening sockets come first
    lines
        .map_while(|line| backlog(&line))
        .filter(|(port, _)| ports.contains(port))
        .map(|(_, n)| n)
        .sum()
}

/// Returns the port and accept queue of a line of /proc/net/tcp in state LISTEN: the value of its
/// receive queue (tcp_diag calls it the backlog).
fn backlog(line: &str) -> Option<(u16, u64)> {
    let listening = proc::listening_line(line)?;
    let queues = line.split_ascii_whitespace().nth(4)?;
    let (_, received) = queues.split_once(':')?;
    Some((listening.address.port(), u64::from_str_radix(received, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_a_listener_is_read() {
        let line = "  0: 0100007F:07E4 00000000:0000 0A 00000000:0000000C 00:00000000 00000000 0 0 \
                    99 1 0 100 0 0 10 0";
        assert_eq!(backlog(line), Some((2020, 12)));
        assert_eq!(backlog(&line.replace(" 0A ", " 01 ")), None);
    }

    /// Builds a message of the kernel about one socket.
    fn socket(state: u8, port: u16, waiting: u32, most: u32) -> Vec<u8> {
        let mut bytes = ((HEADER + MESSAGE) as u32).to_ne_bytes().to_vec();
        bytes.extend(GET_TCP.to_ne_bytes());
        bytes.resize(HEADER, 0);
        bytes.extend([2, state, 0, 0]);
        bytes.extend(port.to_be_bytes());
        bytes.resize(HEADER + 56, 0);
        bytes.extend(waiting.to_ne_bytes());
        bytes.extend(most.to_ne_bytes());
        bytes.resize(HEADER + MESSAGE, 0);
        bytes
    }

    fn end(kind: u16, error: i32) -> Vec<u8> {
        let mut bytes = 20_u32.to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.resize(HEADER, 0);
        bytes.extend(error.to_ne_bytes());
        bytes
    }

    #[test]
    fn the_kernels_answers_are_added_up() {
        let ports = BTreeSet::from([80]);
        let mut all = PortSockets::default();
        let sockets = [
            socket(LISTEN, 80, 3, 128),
            socket(LISTEN, 80, 4, 128),
            socket(LISTEN, 81, 9, 9),
            socket(SYN_RECEIVED, 80, 0, 0),
            socket(8, 80, 0, 0),
            socket(0, 80, 0, 0),
            socket(99, 80, 0, 0),
        ];
        assert_eq!(add(&sockets.concat(), &ports, &mut all), Some(false));
        assert_eq!(add(&end(DONE, 0), &ports, &mut all), Some(true));
        assert_eq!(all.queues, Queues { accept: 7, accept_max: 256, half_open: 1 });
        assert_eq!(all.states, BTreeMap::from([("close-wait", 1), ("syn-received", 1)]));
        // refused, failed (ENOENT: the kernel has no inet_diag), cut short, lengths that lie
        assert_eq!(add(&end(ERROR, 0), &ports, &mut all), None);
        assert_eq!(add(&end(DONE, -2), &ports, &mut all), None);
        for length in [0_u32, 5, 15, 4_000, u32::MAX] {
            let mut liar = socket(LISTEN, 80, 1, 1);
            liar[..4].copy_from_slice(&length.to_ne_bytes());
            assert_eq!(add(&liar, &ports, &mut all), None, "{length}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn unaccepted_connections_are_counted() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let ports = BTreeSet::from([address.port()]);
        let clients: Vec<std::net::TcpStream> =
            (0..3).map(|_| std::net::TcpStream::connect(address).unwrap()).collect();
        let asked = query_kernel(&ports, QUEUED).unwrap().queues;
        assert_eq!((asked.accept, asked.half_open), (3, 0));
        assert!(asked.accept_max >= 3, "{asked:?}");
        assert_eq!(waiting(std::process::id(), "tcp", &ports), 3);
        assert_eq!(queues(std::process::id(), &ports), asked);
        // the server's ends; clients have other ports
        let both = sockets(std::process::id(), address.port());
        assert_eq!((both.queues, &both.states), (asked, &BTreeMap::from([("established", 3)])));
        assert_eq!(listed_states(std::process::id(), address.port()), both.states);
        drop(clients);
    }
}
