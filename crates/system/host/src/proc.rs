//! Parses the texts of /proc and /sys. Pure functions: malformed values are omitted or `None`.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use units::Nanos;

/// Highest core number that a list may name; a larger number indicates a damaged file.
const CORE_MAX: u32 = 65_535;

/// Parses a list of cores as the kernel prints it: `0-3,8`. Empty for an empty or malformed text.
pub fn cores(text: &str) -> Vec<u32> {
    let mut found = BTreeSet::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        match (first.trim().parse::<u32>(), last.trim().parse::<u32>()) {
            (Ok(first), Ok(last)) if first <= last && last <= CORE_MAX => {
                found.extend(first..=last);
            }
            _ => return Vec::new(),
        }
    }
    found.into_iter().collect()
}

/// The line `cpu` of /proc/stat, in clock ticks summed over all cores. Guest time is included in
/// `user` and `nice`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub user: u64,
    pub nice: u64,
    pub system: u64,
    pub idle: u64,
    pub iowait: u64,
    pub irq: u64,
    pub softirq: u64,
    pub steal: u64,
}

impl Totals {
    /// Returns the time in which cores ran threads. Interrupts are excluded: their work for the
    /// loopback device is our own traffic, and some kernels also count it in the threads.
    pub fn threads(&self) -> u64 {
        self.user.saturating_add(self.nice).saturating_add(self.system)
    }
}

/// Parses /proc/stat.
pub fn totals(text: &str) -> Option<Totals> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let mut fields = line.split_ascii_whitespace().map(|field| field.parse().ok());
    let mut next = || fields.next().flatten();
    Some(Totals {
        user: next()?,
        nice: next()?,
        system: next()?,
        idle: next()?,
        // old kernels end early
        iowait: next().unwrap_or(0),
        irq: next().unwrap_or(0),
        softirq: next().unwrap_or(0),
        steal: next().unwrap_or(0),
    })
}

/// One process from /proc/PID/stat; times in clock ticks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    pub parent: u32,
    pub name: String,
    /// User and system time of all its threads.
    pub ticks: u64,
    /// The same for children that ended and were waited for.
    pub waited: u64,
    /// Start time: distinguishes two processes with the same number.
    pub started: u64,
    /// State letter: Z has ended and was not waited for yet.
    pub state: char,
    /// Wait status; `None` while it runs, and if the kernel hides it.
    pub status: Option<i32>,
}

impl Process {
    /// Returns whether the process has ended.
    pub fn is_over(&self) -> bool {
        matches!(self.state, 'Z' | 'X' | 'x')
    }
}

/// Parses the scheduling of a thread, from its stat file, if not the default: `SCHED_RR 1` (policy
/// and real-time priority, 1..=99), `SCHED_BATCH`. `None` for the default.
pub fn scheduling(text: &str) -> Option<String> {
    // fields 40 and 41 of proc_pid_stat(5); the first one after the name is number 3
    let mut fields = text.get(text.rfind(')')? + 1..)?.split_ascii_whitespace().skip(40 - 3);
    let (priority, policy) = (fields.next()?, fields.next()?);
    Some(match policy {
        "1" => format!("SCHED_FIFO {priority}"),
        "2" => format!("SCHED_RR {priority}"),
        "3" => "SCHED_BATCH".to_owned(),
        "5" => "SCHED_IDLE".to_owned(),
        "6" => "SCHED_DEADLINE".to_owned(),
        _ => return None,
    })
}

/// Parses /proc/PID/stat. The name may hold anything, parentheses and spaces too, so the last `)`
/// counts.
pub fn process(text: &str) -> Option<Process> {
    let (open, close) = (text.find('(')?, text.rfind(')')?);
    let name = text.get(open + 1..close)?.to_owned();
    // fields are numbered from 1 in proc_pid_stat(5); the first one here is number 3
    let fields: Vec<&str> = text.get(close + 1..)?.split_ascii_whitespace().collect();
    let number = |field: usize| fields.get(field - 3)?.parse::<i64>().ok();
    let ticks = |first: usize| {
        let sum = number(first)?.checked_add(number(first + 1)?)?;
        u64::try_from(sum).ok()
    };
    let mut process = Process {
        parent: u32::try_from(number(4)?).ok()?,
        name,
        ticks: ticks(14)?,
        waited: ticks(16)?,
        started: u64::try_from(number(22)?).ok()?,
        state: fields.first()?.chars().next()?,
        status: None,
    };
    if process.is_over() {
        process.status = number(52).and_then(|status| i32::try_from(status).ok());
    }
    Some(process)
}

/// Returns the value of the first line `Key: value` with this key in /proc/PID/status,
/// /proc/meminfo or /proc/cpuinfo.
pub fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let mut pairs = text.lines().filter_map(|line| line.split_once(':'));
    pairs.find(|(name, _)| name.trim() == key).map(|(_, value)| value.trim())
}

/// Returns `MemTotal` of /proc/meminfo in bytes.
pub fn memory(meminfo: &str) -> Option<u64> {
    let kib = value(meminfo, "MemTotal")?.strip_suffix("kB")?.trim();
    kib.parse::<u64>().ok()?.checked_mul(1024)
}

/// Returns the CPU model in /proc/cpuinfo; the key depends on the architecture.
pub fn cpu_model(cpuinfo: &str) -> Option<&str> {
    let keys = ["model name", "cpu model", "Model", "Hardware", "uarch", "cpu"];
    keys.iter().find_map(|key| value(cpuinfo, key)).filter(|model| !model.is_empty())
}

/// Returns whether /proc/cpuinfo reports a hypervisor (x86 only).
pub fn virtual_machine(cpuinfo: &str) -> bool {
    value(cpuinfo, "flags")
        .is_some_and(|flags| flags.split_ascii_whitespace().any(|flag| flag == "hypervisor"))
}

/// Parses ip_local_port_range: first and last.
pub fn port_range(text: &str) -> Option<(u16, u16)> {
    let mut fields = text.split_ascii_whitespace().map(|field| field.parse().ok());
    match (fields.next()??, fields.next()??) {
        (first, last) if first <= last => Some((first, last)),
        _ => None,
    }
}

/// A listening socket: its address, and the inode that its descriptors refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listening {
    pub address: SocketAddr,
    pub inode: u64,
}

/// Parses the wait for a core in /proc/PID/task/TID/schedstat: after the time on a core.
pub fn core_wait(schedstat: &str) -> Option<Nanos> {
    schedstat.split_ascii_whitespace().nth(1)?.parse().ok().map(Nanos)
}

/// Parses /proc/net/tcp or tcp6: the lines in state LISTEN.
pub fn listening(table: &str) -> Vec<Listening> {
    table.lines().filter_map(listening_line).collect()
}

pub fn listening_line(line: &str) -> Option<Listening> {
    const LISTEN: &str = "0A";
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    if *fields.get(3)? != LISTEN {
        return None;
    }
    let (address, port) = fields.get(1)?.split_once(':')?;
    Some(Listening {
        address: SocketAddr::new(hex_address(address)?, u16::from_str_radix(port, 16).ok()?),
        inode: fields.get(9)?.parse().ok()?,
    })
}

/// Parses /proc/net/tcp or tcp6: number of sockets of this machine whose other end is one of
/// `addresses` and that are not yet closed on both sides, as those in TIME_WAIT and CLOSE are.
pub fn connected(table: &str, addresses: &[SocketAddr]) -> usize {
    table.lines().filter(|line| connected_line(line, addresses).is_some()).count()
}

fn connected_line(line: &str, addresses: &[SocketAddr]) -> Option<()> {
    // TIME_WAIT, CLOSE, LISTEN
    const OVER: [&str; 3] = ["06", "07", "0A"];
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let (address, port) = fields.get(2)?.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let other = hex_address(address)?.to_canonical();
    let wanted = |known: &SocketAddr| known.ip().to_canonical() == other && known.port() == port;
    (!OVER.contains(fields.get(3)?) && addresses.iter().any(wanted)).then_some(())
}

/// States of TCP sockets as the kernel numbers them, from 1 (net/tcp_states.h), named as in ss(8).
const STATES: [&str; 12] = [
    "established",
    "syn-sent",
    "syn-received",
    "fin-wait-1",
    "fin-wait-2",
    "time-wait",
    "closed",
    "close-wait",
    "last-ack",
    "listen",
    "closing",
    "syn-received",
];
const LISTENS: &str = "listen";

/// Parses /proc/net/tcp or tcp6: the states of the sockets with this local port, without listening
/// ones.
pub fn states(table: &str, port: u16) -> impl Iterator<Item = &'static str> {
    table.lines().filter_map(move |line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().take(4).collect();
        let (_, own) = fields.get(1)?.split_once(':')?;
        let state = state_name(usize::from_str_radix(fields.get(3)?, 16).ok()?)?;
        (u16::from_str_radix(own, 16) == Ok(port) && state != LISTENS).then_some(state)
    })
}

/// Returns the name of a state of TCP sockets, by the kernel's number.
pub fn state_name(number: usize) -> Option<&'static str> {
    STATES.get(number.checked_sub(1)?).copied()
}

/// Parses words of 32 bits, each printed as a number in native byte order.
fn hex_address(text: &str) -> Option<IpAddr> {
    let word = |at: usize| {
        let digits = text.get(at..at + 8)?;
        u32::from_str_radix(digits, 16).ok().map(u32::to_ne_bytes)
    };
    match text.len() {
        8 => Some(IpAddr::V4(Ipv4Addr::from(word(0)?))),
        32 => {
            let mut bytes = [0; 16];
            for (index, part) in bytes.chunks_exact_mut(4).enumerate() {
                part.copy_from_slice(&word(index * 8)?);
            }
            Some(IpAddr::V6(Ipv6Addr::from(bytes)))
        }
        _ => None,
    }
}

/// Parses /proc/net/unix: inodes of the sockets that listen on `path`.
pub fn listening_unix(table: &str, path: &str) -> Vec<u64> {
    // __SO_ACCEPTCON
    const ACCEPTS: u32 = 1 << 16;
    let inode = |line: &str| {
        // a path may hold spaces: seven fields, then the rest
        let mut rest = line;
        let mut fields = [""; 7];
        for field in &mut fields {
            rest = rest.trim_start();
            let end = rest.find(' ').unwrap_or(rest.len());
            (*field, rest) = rest.split_at(end);
        }
        let flags = u32::from_str_radix(fields[3], 16).ok()?;
        (flags & ACCEPTS != 0 && rest.strip_prefix(' ')? == path)
            .then(|| fields[6].parse().ok())
            .flatten()
    };
    table.lines().filter_map(inode).collect()
}

/// Returns the inode of a link such as `socket:[12345]` in /proc/PID/fd.
pub fn socket_inode(link: &str) -> Option<u64> {
    link.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

#[cfg(test)]
mod tests;
