//! Foreign work: the number of cores that were busy with neither this program nor the measured
//! server.
//!
//! Busy time comes from /proc/stat, which the kernel samples at its tick; the CPU time of processes
//! is exact. At 250 ticks per second a half-busy core is known with a standard error of √(¼ /
//! ticks): 3 % of a core over one second, 1 % over ten. Time in interrupts is excluded, so the
//! figure is an underestimate.

use crate::proc::{self, Process, Totals};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::time::Instant;
use units::Nanos;

/// Work of other programs.
#[derive(Clone, Debug, PartialEq)]
pub struct Foreign {
    /// Cores kept busy, as a mean over the interval.
    pub cores: f64,
    /// Work as a share of all online cores, 0..=1.
    pub share: f64,
    /// Share of all cores that the hypervisor gave to other guests, 0..=1.
    pub steal_share: f64,
    /// Process that did most of this work, if /proc shows one.
    pub busiest: Option<Culprit>,
    pub elapsed: Nanos,
}

/// A process that ran during the measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct Culprit {
    pub pid: u32,
    pub name: String,
    /// Cores that it kept busy, as a mean.
    pub cores: f64,
}

/// All processes in /proc, and the machine's totals, at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Census {
    totals: Totals,
    processes: BTreeMap<u32, Process>,
}

/// Watches the machine over an interval. Its start and its end each read all of /proc, which takes
/// a few milliseconds, so both must be outside the measurement.
#[derive(Debug)]
pub struct ForeignWatch {
    started: Instant,
    before: Option<Census>,
}

impl ForeignWatch {
    pub fn start() -> ForeignWatch {
        ForeignWatch { before: census(), started: Instant::now() }
    }

    /// Returns the time since the start.
    pub fn elapsed(&self) -> Nanos {
        Nanos(u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Returns the foreign work since the start; `None` if unknown, or if too little time has
    /// passed for the kernel's tick. `named`: finds other processes whose work is not foreign, such
    /// as the server on this machine, with their descendants.
    pub fn end(&self, named: impl FnOnce() -> Vec<u32>) -> Option<Foreign> {
        let elapsed = self.elapsed();
        let ticks_per_s = rustix::param::clock_ticks_per_second();
        if elapsed.0 < Nanos::SECOND.0 / ticks_per_s.max(1) {
            return None;
        }
        let interval =
            CensusInterval { elapsed, ticks_per_s, cores: crate::cpu::online_cores().len() };
        let mut ours = vec![std::process::id()];
        let after = census()?;
        ours.extend(named());
        compare(self.before.as_ref()?, &after, &ours, interval)
    }
}

#[derive(Clone, Copy, Debug)]
struct CensusInterval {
    elapsed: Nanos,
    ticks_per_s: u64,
    cores: usize,
}

impl CensusInterval {
    /// Converts ticks to a mean number of cores.
    fn as_cores(self, ticks: u64) -> f64 {
        ticks as f64 / self.ticks_per_s as f64 / self.elapsed.as_secs_f64()
    }
}

/// Maximum size of /proc/PID/stat: a name of 64 bytes and 51 numbers.
const STAT_MAX: usize = 2 << 10;

fn census() -> Option<Census> {
    let totals = proc::totals(&std::fs::read_to_string("/proc/stat").ok()?)?;
    let mut processes = BTreeMap::new();
    let mut line = [0; STAT_MAX];
    for pid in pids() {
        // a process may end at any moment, and its file is then missing. The kernel returns the
        // line in one read; reading a file of unknown length to its end takes six
        let stat =
            File::open(format!("/proc/{pid}/stat")).and_then(|mut file| file.read(&mut line));
        let stat = String::from_utf8_lossy(&line[..stat.unwrap_or(0)]);
        if let Some(process) = proc::process(&stat) {
            processes.insert(pid, process);
        }
    }
    Some(Census { totals, processes })
}

/// Numbers of all processes that /proc shows.
pub(crate) fn pids() -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let number = |entry: std::fs::DirEntry| entry.file_name().to_str()?.parse().ok();
    entries.flatten().filter_map(number).collect()
}

fn compare(
    before: &Census,
    after: &Census,
    ours: &[u32],
    interval: CensusInterval,
) -> Option<Foreign> {
    if interval.elapsed < Nanos(Nanos::SECOND.0 / interval.ticks_per_s.max(1)) {
        return None;
    }
    let known: BTreeSet<u32> =
        family(&before.processes, ours).union(&family(&after.processes, ours)).copied().collect();
    let busy = after.totals.threads().saturating_sub(before.totals.threads());
    let foreign = busy.saturating_sub(ticks_between(before, after, &known));
    let cores = interval.as_cores(foreign);
    let all = interval.cores.max(1) as f64;
    let steal = after.totals.steal.saturating_sub(before.totals.steal);
    Some(Foreign {
        cores,
        share: (cores / all).min(1.0),
        steal_share: (interval.as_cores(steal) / all).min(1.0),
        busiest: culprit(before, after, &known, interval),
        elapsed: interval.elapsed,
    })
}

/// Returns the roots and all their descendants.
fn family(processes: &BTreeMap<u32, Process>, roots: &[u32]) -> BTreeSet<u32> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (pid, process) in processes {
        children.entry(process.parent).or_default().push(*pid);
    }
    let mut found = BTreeSet::new();
    let mut waiting: Vec<u32> = roots.to_vec();
    while let Some(pid) = waiting.pop() {
        if found.insert(pid) {
            waiting.extend(children.get(&pid).into_iter().flatten());
        }
    }
    found
}

/// Returns the number of ticks that the known processes spent between the two, including children
/// that ended.
fn ticks_between(before: &Census, after: &Census, known: &BTreeSet<u32>) -> u64 {
    let sum = |process: &Process| process.ticks.saturating_add(process.waited);
    let mut spent = 0u64;
    let mut counted_before = 0u64;
    for pid in known {
        let (was, is) = (before.processes.get(pid), after.processes.get(pid));
        let lives_on = was.zip(is).is_some_and(|(was, is)| was.started == is.started);
        let earlier = was.map_or(0, sum);
        if lives_on {
            spent = spent.saturating_add(is.map_or(0, sum).saturating_sub(earlier));
            continue;
        }
        // a process with the number of an ended one is new
        spent = spent.saturating_add(is.map_or(0, sum));
        // it ended: its parent's `waited` includes its whole life, including time before the start
        if was.is_some_and(|was| is_counted_by_ancestor(was.parent, before, after, known)) {
            counted_before = counted_before.saturating_add(earlier);
        }
    }
    spent.saturating_sub(counted_before)
}

/// Returns whether the CPU time of a child of `parent` is counted by a known, living process: its
/// parent, or an ancestor that waited for it. CPU time that another process collected, such as
/// init, appears in no account.
fn is_counted_by_ancestor(
    mut parent: u32,
    before: &Census,
    after: &Census,
    known: &BTreeSet<u32>,
) -> bool {
    // parents that were not read at one moment may form a circle
    for _ in 0..before.processes.len() {
        let was = before.processes.get(&parent).filter(|_| known.contains(&parent));
        let Some(was) = was else { return false };
        if after.processes.get(&parent).is_some_and(|is| is.started == was.started) {
            return true;
        }
        parent = was.parent;
    }
    false
}

fn culprit(
    before: &Census,
    after: &Census,
    known: &BTreeSet<u32>,
    interval: CensusInterval,
) -> Option<Culprit> {
    let work = |(pid, is): (&u32, &Process)| {
        let was = before.processes.get(pid).filter(|was| was.started == is.started);
        let ticks = is.ticks.saturating_sub(was.map_or(0, |was| was.ticks));
        (ticks, *pid)
    };
    let strangers = after.processes.iter().filter(|(pid, _)| !known.contains(pid));
    let (ticks, pid) = strangers.map(work).max().filter(|(ticks, _)| *ticks > 0)?;
    let name = after.processes.get(&pid)?.name.clone();
    Some(Culprit { pid, name, cores: interval.as_cores(ticks) })
}

#[cfg(test)]
mod tests;
