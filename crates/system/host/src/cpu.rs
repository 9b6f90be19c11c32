//! CPU time of this process and thread, and which cores may run it.

use crate::proc;
use std::collections::BTreeSet;
use std::io;
use units::Nanos;

/// CPU time of the whole process since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    pub user: Nanos,
    pub system: Nanos,
}

/// Returns the CPU time of this process over all its threads (getrusage). The sum is exact; its
/// division is the kernel's estimate.
pub fn process_time() -> CpuTime {
    use nix::sys::resource::{UsageWho, getrusage};
    use nix::sys::time::{TimeVal, TimeValLike};
    let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) else {
        return CpuTime::default();
    };
    let nanos =
        |time: TimeVal| Nanos::from_micros(u64::try_from(time.num_microseconds()).unwrap_or(0));
    CpuTime { user: nanos(usage.user_time()), system: nanos(usage.system_time()) }
}

/// Two clocks of the calling thread, read together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadTime {
    /// CPU time used, exact to the nanosecond.
    pub cpu: Nanos,
    /// Time passed, asleep or awake.
    pub wall: Nanos,
}

impl ThreadTime {
    pub fn now() -> ThreadTime {
        use rustix::time::ClockId::{Monotonic, ThreadCPUTime};
        let read = |clock| {
            let time = rustix::time::clock_gettime(clock);
            let part = |number: i64| u64::try_from(number).unwrap_or(0);
            Nanos::from_secs(part(time.tv_sec)) + Nanos(part(time.tv_nsec))
        };
        ThreadTime { cpu: read(ThreadCPUTime), wall: read(Monotonic) }
    }

    /// Returns the CPU time used since an earlier reading; at most the elapsed time, because the
    /// thread may have been descheduled between reading its two clocks.
    pub fn since(self, earlier: ThreadTime) -> ThreadTime {
        let wall = self.wall - earlier.wall;
        ThreadTime { cpu: (self.cpu - earlier.cpu).min(wall), wall }
    }
}

/// Returns how long the calling thread has been ready to run without a core, since its start; `None`
/// if the kernel does not count it.
pub fn core_wait() -> Option<Nanos> {
    proc::core_wait(&std::fs::read_to_string("/proc/thread-self/schedstat").ok()?)
}

/// Returns the online cores of this machine, numbered from 0 if the system does not name them.
pub fn online_cores() -> Vec<u32> {
    let named = std::fs::read_to_string("/sys/devices/system/cpu/online");
    let named = named.map(|text| proc::cores(&text)).unwrap_or_default();
    if named.is_empty() { counted_cores() } else { named }
}

/// Returns the cores that the calling thread may run on.
pub fn affinity() -> Vec<u32> {
    let allowed = system::affinity();
    if allowed.is_empty() { online_cores() } else { allowed }
}

/// Returns the number of cores that the first thread of a process may run on; `None` if it is gone.
pub(crate) fn affinity_of(pid: u32) -> Option<usize> {
    system::affinity_of(pid)
}

/// Returns the scheduling policy of the calling thread, and of threads that it will start: see
/// [`proc::scheduling`].
pub fn scheduling() -> Option<String> {
    proc::scheduling(&String::from_utf8_lossy(&std::fs::read("/proc/thread-self/stat").ok()?))
}

/// Returns the cores that any thread of a process may run on; empty if the process is gone or
/// hidden.
pub fn cores_of(pid: u32) -> Vec<u32> {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    let mut cores = BTreeSet::new();
    for thread in threads.flatten() {
        let Ok(status) = std::fs::read_to_string(thread.path().join("status")) else {
            continue;
        };
        let list = proc::value(&status, "Cpus_allowed_list").unwrap_or_default();
        cores.extend(proc::cores(list));
    }
    cores.into_iter().collect()
}

/// Binds the calling thread to cores.
///
/// # Errors
/// Fails for a core that is not online or not allowed to this process, and on a system without
/// affinity.
pub fn bind_thread(cores: &[u32]) -> io::Result<()> {
    system::bind_thread(cores).map_err(|error| {
        let online = online_cores();
        io::Error::new(
            error.kind(),
            format!("cannot run on cores {cores:?} ({error}); online are {online:?}"),
        )
    })
}

/// Sets the niceness, -20..=19, of the calling thread (on Linux; elsewhere of the process). Threads
/// that it starts later inherit it.
///
/// # Errors
/// Fails below the current niceness without the privilege for it.
pub fn set_nice(nice: i32) -> io::Result<()> {
    rustix::process::setpriority_process(None, nice).map_err(|error| {
        let error = io::Error::from(error);
        io::Error::new(
            error.kind(),
            format!("cannot set niceness {nice} ({error}); below 0 needs root or CAP_SYS_NICE"),
        )
    })
}

fn counted_cores() -> Vec<u32> {
    let count = std::thread::available_parallelism().map_or(1, |count| count.get());
    (0..u32::try_from(count).unwrap_or(1)).collect()
}

#[cfg(target_os = "linux")]
mod system {
    use rustix::thread::{CpuSet, Pid, sched_getaffinity, sched_setaffinity};
    use std::io;

    pub(super) fn affinity() -> Vec<u32> {
        let Ok(set) = sched_getaffinity(None) else {
            return Vec::new();
        };
        let cores = (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core));
        cores.filter_map(|core| u32::try_from(core).ok()).collect()
    }

    pub(super) fn affinity_of(pid: u32) -> Option<usize> {
        let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
        let set = sched_getaffinity(Some(pid)).ok()?;
        usize::try_from(set.count()).ok()
    }

    pub(super) fn bind_thread(cores: &[u32]) -> io::Result<()> {
        let mut set = CpuSet::new();
        for core in cores {
            match usize::try_from(*core) {
                Ok(core) if core < CpuSet::MAX_CPU => set.set(core),
                _ => return Err(io::ErrorKind::InvalidInput.into()),
            }
        }
        Ok(sched_setaffinity(None, &set)?)
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::io;

    pub(super) fn affinity() -> Vec<u32> {
        Vec::new()
    }

    pub(super) fn affinity_of(_pid: u32) -> Option<usize> {
        None
    }

    pub(super) fn bind_thread(_cores: &[u32]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_costs_cpu_time() {
        let before = (process_time(), ThreadTime::now().cpu);
        let mut sum = 0u64;
        while ThreadTime::now().cpu - before.1 < Nanos::from_millis(20) {
            sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(7));
        }
        let after = process_time();
        let spent = (after.user - before.0.user) + (after.system - before.0.system);
        // getrusage cuts both parts to whole microseconds
        assert!(spent + Nanos::from_micros(4) >= Nanos::from_millis(20), "{spent:?}");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_thread_can_be_bound_and_only_that_thread() {
        let all = affinity();
        assert!(!all.is_empty() && all.iter().all(|core| online_cores().contains(core)));
        let first = all[0];
        let bound = std::thread::spawn(move || {
            bind_thread(&[first]).unwrap();
            affinity()
        });
        assert_eq!(bound.join().unwrap(), [first]);
        assert_eq!(affinity(), all);
        let ours = cores_of(std::process::id());
        assert!(all.iter().all(|core| ours.contains(core)));
    }

    #[test]
    fn cores_that_do_not_exist_are_reported() {
        for cores in [&[][..], &[60_000], &[u32::MAX]] {
            let error = std::thread::scope(|scope| {
                scope.spawn(|| bind_thread(cores).unwrap_err().to_string()).join().unwrap()
            });
            assert!(error.contains(&format!("{cores:?}")) && error.contains("online"), "{error}");
        }
    }

    #[test]
    fn the_niceness_of_a_thread_can_be_raised() {
        let nice = || rustix::process::getpriority_process(None).unwrap();
        let raised = std::thread::spawn(move || {
            let more = (nice() + 1).min(19);
            set_nice(more).unwrap();
            (more, nice())
        });
        let (asked, got) = raised.join().unwrap();
        assert_eq!(asked, got);
    }

    #[test]
    fn an_exited_process_has_no_cores() {
        assert!(cores_of(u32::MAX).is_empty());
    }
}
