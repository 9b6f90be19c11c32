//! Limits of this process and of the machine's network: descriptors, local ports, TIME_WAIT.

use crate::proc;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fmt;
use std::ops::RangeInclusive;
use units::Nanos;

/// RLIMIT_NOFILE of this process; `u64::MAX`: no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptors {
    /// Current limit.
    pub soft: u64,
    /// Limit up to which the soft limit may be raised without privileges.
    pub hard: u64,
}

/// More descriptors are needed than this process may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooFewDescriptors {
    pub needed: u64,
    /// Current limit: the soft limit, raised as high as possible.
    pub limit: u64,
}

impl fmt::Display for TooFewDescriptors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} file descriptors are needed but this process may have {}; use fewer connections, \
             or raise the hard limit (as root: ulimit -Hn {}; LimitNOFILE= in a systemd unit; \
             nofile in /etc/security/limits.conf)",
            self.needed, self.limit, self.needed
        )
    }
}

impl std::error::Error for TooFewDescriptors {}

/// Returns the limits of this process.
pub fn descriptors() -> Descriptors {
    let limit = getrlimit(Resource::Nofile);
    let number = |limit: Option<u64>| limit.unwrap_or(u64::MAX);
    Descriptors { soft: number(limit.current), hard: number(limit.maximum) }
}

/// Makes room for `needed` descriptors in all; never lowers a limit.
///
/// # Errors
/// Fails if even the hard limit is too low and cannot be raised. The soft limit has then been
/// raised to the hard one, so that the caller may continue with less.
pub fn raise_descriptors(needed: u64) -> Result<Descriptors, TooFewDescriptors> {
    let now = descriptors();
    match step(now, needed) {
        LimitStep::Nothing => Ok(now),
        LimitStep::Soft => {
            set(Descriptors { soft: needed, ..now });
            settled(needed)
        }
        LimitStep::Hard => {
            // root may exceed the hard limit
            if !set(Descriptors { soft: needed, hard: needed }) {
                set(Descriptors { soft: now.hard, ..now });
            }
            settled(needed)
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LimitStep {
    Nothing,
    Soft,
    Hard,
}

fn step(now: Descriptors, needed: u64) -> LimitStep {
    if needed <= now.soft {
        LimitStep::Nothing
    } else if needed <= now.hard {
        LimitStep::Soft
    } else {
        LimitStep::Hard
    }
}

fn set(limits: Descriptors) -> bool {
    let option = |limit: u64| (limit != u64::MAX).then_some(limit);
    let limit = Rlimit { current: option(limits.soft), maximum: option(limits.hard) };
    setrlimit(Resource::Nofile, limit).is_ok()
}

/// the kernel has its own ceiling (fs.nr_open), so the limit is read back
fn settled(needed: u64) -> Result<Descriptors, TooFewDescriptors> {
    let now = descriptors();
    if now.soft >= needed { Ok(now) } else { Err(TooFewDescriptors { needed, limit: now.soft }) }
}

/// Returns the number of open descriptors of this process; 0 if unknown.
pub fn descriptors_open() -> u64 {
    let count = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    // one of them is the listing itself
    u64::try_from(count).unwrap_or(0).saturating_sub(1)
}

/// Local ports that the kernel gives to connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ports {
    pub range: RangeInclusive<u16>,
    /// Number of usable ports in the range, without reserved ones.
    pub count: u32,
}

/// Port range of IANA, for systems that do not report one (RFC 6335 §6).
const DYNAMIC_PORTS: RangeInclusive<u16> = 49_152..=65_535;

/// Returns the ephemeral ports of this machine.
pub fn ports() -> Ports {
    let read = |name| std::fs::read_to_string(format!("/proc/sys/net/ipv4/{name}"));
    let range = read("ip_local_port_range").unwrap_or_default();
    let reserved = read("ip_local_reserved_ports").unwrap_or_default();
    ports_of(&range, &reserved)
}

fn ports_of(range: &str, reserved: &str) -> Ports {
    let range = proc::port_range(range).map_or(DYNAMIC_PORTS, |(first, last)| first..=last);
    let inside = |port: &u32| u16::try_from(*port).is_ok_and(|port| range.contains(&port));
    let reserved = proc::cores(reserved).into_iter().filter(inside).count();
    let count = u32::try_from(range.len().saturating_sub(reserved)).unwrap_or(0);
    Ports { range, count }
}

/// Time for which Linux holds a port after closing a connection first (TCP_TIMEWAIT_LEN).
const TIME_WAIT: Nanos = Nanos::from_secs(60);

/// Returns how long a closed connection keeps its local port from being reused for the same peer:
/// sixty seconds, or less if net.ipv4.tcp_tw_reuse permits it, which is the default on loopback.
pub fn time_wait(loopback: bool) -> Nanos {
    let read = |name| {
        let text = std::fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).ok()?;
        text.trim().parse::<u64>().ok()
    };
    let reuse = Reuse {
        mode: read("tcp_tw_reuse").unwrap_or(0),
        timestamps: read("tcp_timestamps").unwrap_or(0) != 0,
        delay: Nanos::from_millis(read("tcp_tw_reuse_delay").unwrap_or(1_000)),
    };
    time_wait_of(reuse, loopback)
}

/// Settings of the kernel for ports in TIME_WAIT.
#[derive(Clone, Copy, Debug)]
struct Reuse {
    /// 0: never, 1: everywhere, 2: on loopback.
    mode: u64,
    timestamps: bool,
    delay: Nanos,
}

fn time_wait_of(reuse: Reuse, loopback: bool) -> Nanos {
    let reused = reuse.mode == 1 || (reuse.mode == 2 && loopback);
    // without timestamps an old segment cannot be distinguished from a new one (RFC 6191)
    if reused && reuse.timestamps { reuse.delay.min(TIME_WAIT) } else { TIME_WAIT }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn required_limits_are_computed() {
        let now = Descriptors { soft: 1_024, hard: 4_096 };
        for (needed, expected) in [
            (0, LimitStep::Nothing),
            (1_024, LimitStep::Nothing),
            (1_025, LimitStep::Soft),
            (4_096, LimitStep::Soft),
            (4_097, LimitStep::Hard),
        ] {
            assert_eq!(step(now, needed), expected, "{needed}");
        }
        let unlimited = Descriptors { soft: u64::MAX, hard: u64::MAX };
        assert_eq!(step(unlimited, 1 << 60), LimitStep::Nothing);
    }

    #[test]
    fn raising_never_lowers_and_failures_are_reported() {
        let before = descriptors();
        assert_eq!(raise_descriptors(1), Ok(before));
        // above fs.nr_open even root is refused
        let error = raise_descriptors(1 << 40).unwrap_err();
        let after = descriptors();
        assert_eq!((after.soft, after.hard), (before.hard, before.hard));
        assert_eq!(error, TooFewDescriptors { needed: 1 << 40, limit: before.hard });
        let text = error.to_string();
        assert!(text.contains("1099511627776") && text.contains("ulimit"), "{text}");
    }

    #[test]
    fn open_descriptors_are_counted() {
        let before = descriptors_open();
        let held: Vec<_> = (0..40).map(|_| std::fs::File::open("/dev/null").unwrap()).collect();
        // other tests open files at the same time, but not forty
        assert!(descriptors_open() >= before + 20 || before == 0);
        drop(held);
    }

    #[test]
    fn ports_of_the_kernels_texts() {
        for (range, reserved, expected) in [
            ("32768\t60999\n", "\n", (32_768..=60_999, 28_232)),
            ("1024 65535", "80,8080,9000-9009", (1_024..=65_535, 64_501)),
            ("40000 40000", "40000", (40_000..=40_000, 0)),
            ("40000 40009", "1-10", (40_000..=40_009, 10)),
            ("", "", (49_152..=65_535, 16_384)),
            ("9 1", "", (49_152..=65_535, 16_384)),
        ] {
            let ports = ports_of(range, reserved);
            assert_eq!((ports.range, ports.count), expected, "{range:?} {reserved:?}");
        }
        assert!(ports().count > 0);
    }

    #[test]
    fn time_wait_follows_the_kernels_settings() {
        let delay = Nanos::from_secs(1);
        for (mode, timestamps, loopback, seconds) in [
            (0, true, true, 60),
            (1, true, false, 1),
            (2, true, true, 1),
            (2, true, false, 60),
            (2, false, true, 60),
        ] {
            let reuse = Reuse { mode, timestamps, delay };
            assert_eq!(time_wait_of(reuse, loopback), Nanos::from_secs(seconds), "{reuse:?}");
        }
    }
}
