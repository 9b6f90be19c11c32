//! A server on this machine while it is measured: CPU, memory, threads, descriptors, context
//! switches from /proc, listen queues from the kernel; or those of another machine, from a node
//! exporter's text.

use crate::foreign::pids;
use crate::listen_queues::{self, Queues};
use crate::proc::{self, Process};
use crate::quota;
use sample::{SutRow, SutSeries};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// The watched process of this machine, with its descendants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchedServer {
    pub pid: u32,
    /// Addresses where it listens, for its listen queues; empty if not requested.
    pub addresses: Vec<SocketAddr>,
}

/// Counters at one moment. Unknown values are zero.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SutReading {
    /// CPU seconds spent so far.
    pub cpu_s: f64,
    pub memory_bytes: u64,
    pub threads: u64,
    pub descriptors: u64,
    /// Context switches so far. The work of a thread between the last reading that saw it and its
    /// exit is not included.
    pub switches: u64,
    pub listen_overflows: u64,
    pub accept_queue: u64,
    pub half_open: u64,
}

/// Maximum number of readings between two searches for new processes. A search reads a file of
/// every process of the machine, so it is skipped unless the machine has started a process, if that
/// is known.
const FAMILY_EVERY: u32 = 5;
/// Processes of one server that are read; a server with more is read in part.
const FAMILY_MAX: usize = 2_000;
/// Threads of which context switches are read, over all processes.
const THREADS_MAX: usize = 2_000;

/// Reads a server's figures again and again.
#[derive(Debug)]
pub struct SutReader {
    server: WatchedServer,
    ports: BTreeSet<u16>,
    /// Start time of the server: another process may get its number later.
    started: u64,
    family: Vec<u32>,
    /// Last process that the machine had started at the previous search.
    newest: Option<u32>,
    /// Readings since then.
    age: u32,
    switches: SwitchCount,
}

impl SutReader {
    /// # Errors
    /// Fails if there is no such process, or its files are not readable; the message has the fix.
    pub fn new(server: WatchedServer) -> Result<SutReader, String> {
        let pid = server.pid;
        let Some(process) = stat(pid) else {
            return Err(format!(
                "there is no process {pid} on this machine (see `ps`), or /proc hides it"
            ));
        };
        if has_ended(pid, &process) {
            return Err(format!(
                "process {pid} ({}) has ended, and its parent has not waited for it: give the \
                 id of a running process (see `ps`)",
                process.name
            ));
        }
        let newest = newest();
        Ok(SutReader {
            family: family(pid),
            ports: server.addresses.iter().map(SocketAddr::port).collect(),
            server,
            started: process.started,
            newest,
            age: 0,
            switches: SwitchCount::default(),
        })
    }

    /// Returns a series without rows: the watched process and its limits.
    pub fn series(&self) -> SutSeries {
        let pid = self.server.pid;
        let more = self.family.len() - 1;
        let others = if more > 0 { format!(" and {more} more") } else { String::new() };
        let limits = read(pid, "limits").unwrap_or_default();
        let memory = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        SutSeries {
            name: format!("{} (pid {pid}{others})", crate::process_name(pid)),
            cores: usable_cores(pid),
            memory_max: proc::memory(&memory).unwrap_or(0),
            descriptors_max: descriptors_max(&limits).unwrap_or(0),
            accept_queue_max: self.queues().accept_max,
            rows: Vec::new(),
            trouble: String::new(),
        }
    }

    /// Searches for processes started since the last reading: the CPU time before a process is
    /// first seen goes into one row.
    fn look(&mut self) {
        let newest = newest();
        if newest.is_none() || newest != self.newest || self.age >= FAMILY_EVERY {
            self.family = family(self.server.pid);
            self.newest = newest;
            self.age = 0;
        }
        self.age += 1;
    }

    fn queues(&self) -> Queues {
        listen_queues::queues(self.server.pid, &self.ports)
    }

    /// Returns the current figures; `None` if the server has ended, even if its number was reused
    /// or it was not waited for yet.
    pub fn read(&mut self) -> Option<SutReading> {
        let pid = self.server.pid;
        stat(pid).filter(|now| now.started == self.started && !has_ended(pid, now))?;
        self.look();
        self.switches.add(switch_counts(&self.family));
        let queues = self.queues();
        Some(SutReading {
            listen_overflows: counter(self.server.pid, "ListenOverflows"),
            accept_queue: queues.accept,
            half_open: queues.half_open,
            switches: self.switches.total,
            ..figures(&self.family)
        })
    }
}

/// Returns the most recently assigned process or thread number of this machine.
fn newest() -> Option<u32> {
    newest_number(&std::fs::read_to_string("/proc/loadavg").ok()?)
}

/// Returns the last field of /proc/loadavg; 0 if it is not genuine.
fn newest_number(loadavg: &str) -> Option<u32> {
    let number = loadavg.split_ascii_whitespace().nth(4)?.parse().ok();
    number.filter(|number| *number > 0)
}

/// Returns the cores that a process may use: its affinity, or the CPU quota of its control groups
/// if that is less. 0 if unknown.
fn usable_cores(pid: u32) -> f64 {
    let cores = crate::cores_of(pid).len() as f64;
    quota::cpu_quota(pid).map_or(cores, |quota| quota.min(cores))
}

/// Context switches, summed over threads that start and end.
#[derive(Debug, Default)]
struct SwitchCount {
    /// Previous reading of each thread, by process and thread number.
    last: BTreeMap<(u32, u32), u64>,
    total: u64,
}

impl SwitchCount {
    /// Adds the work of threads since the last reading, all work of new ones, and nothing for ended
    /// ones. Counting begins with the first reading.
    fn add(&mut self, now: BTreeMap<(u32, u32), u64>) {
        // where more threads are there than are read, one that is read now may be old
        let all_were_read = self.last.len() < THREADS_MAX;
        for (thread, count) in &now {
            let before = match self.last.get(thread) {
                Some(before) if before <= count => *before,
                None if !all_were_read => *count,
                // new, or new with the number of one that has ended
                _ => 0,
            };
            self.total = self.total.saturating_add(count - before);
        }
        self.last = now;
    }
}

/// Returns the totals of these processes, without context switches.
pub(crate) fn figures(pids: &[u32]) -> SutReading {
    let ticks_per_s = rustix::param::clock_ticks_per_second() as f64;
    let mut reading = SutReading::default();
    for pid in pids {
        let Some(process) = stat(*pid) else { continue };
        // children that ended between two readings are in their parent's account
        reading.cpu_s += (process.ticks + process.waited) as f64 / ticks_per_s;
        reading.memory_bytes += memory_bytes(*pid);
        reading.descriptors += std::fs::read_dir(format!("/proc/{pid}/fd"))
            .map_or(0, |entries| entries.count() as u64);
        reading.threads += tasks(*pid).count() as u64;
    }
    reading
}

/// Returns the resident memory of a process; 0 if it is unknown.
pub(crate) fn memory_bytes(pid: u32) -> u64 {
    let page = rustix::param::page_size() as u64;
    read(pid, "statm").and_then(|text| resident(&text)).unwrap_or(0) * page
}

/// Returns the difference between two readings `span_s` seconds apart, the later one at `at_s`.
pub fn row(before: &SutReading, after: &SutReading, span_s: f64, at_s: f64) -> SutRow {
    let span_s = span_s.max(1e-9);
    SutRow {
        at_s,
        cpu_cores: ((after.cpu_s - before.cpu_s) / span_s).max(0.0),
        memory_bytes: after.memory_bytes,
        threads: after.threads,
        descriptors: after.descriptors,
        switches_per_s: after.switches.saturating_sub(before.switches) as f64 / span_s,
        listen_overflows: after.listen_overflows.saturating_sub(before.listen_overflows),
        accept_queue: after.accept_queue,
        half_open: after.half_open,
    }
}

fn read(pid: u32, file: &str) -> Option<String> {
    let bytes = std::fs::read(format!("/proc/{pid}/{file}")).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn stat(pid: u32) -> Option<Process> {
    proc::process(&read(pid, "stat")?)
}

/// Returns whether the process of this reading has ended. If only the main thread has exited, the
/// process looks ended although other threads continue.
fn has_ended(pid: u32, process: &Process) -> bool {
    process.is_over() && tasks(pid).nth(1).is_none()
}

/// Returns the threads of a process, by number.
fn tasks(pid: u32) -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Returns a process and its descendants, by number.
pub(crate) fn family(root: u32) -> Vec<u32> {
    let known: BTreeMap<u32, Process> =
        pids().into_iter().filter_map(|pid| Some((pid, stat(pid)?))).collect();
    let mut found = BTreeSet::from([root]);
    loop {
        let more: Vec<u32> = known
            .iter()
            .filter(|(pid, process)| found.contains(&process.parent) && !found.contains(*pid))
            .map(|(pid, _)| *pid)
            .collect();
        if more.is_empty() || found.len() >= FAMILY_MAX {
            return found.into_iter().take(FAMILY_MAX).collect();
        }
        found.extend(more);
    }
}

/// Returns the context switches of the threads of these processes, up to the maximum number of
/// threads read.
fn switch_counts(pids: &[u32]) -> BTreeMap<(u32, u32), u64> {
    let threads = pids.iter().flat_map(|pid| tasks(*pid).map(move |task| (*pid, task)));
    let counted = threads.filter_map(|(pid, task)| {
        let status = read(pid, &format!("task/{task}/status"))?;
        Some(((pid, task), context_switches(&status)))
    });
    counted.take(THREADS_MAX).collect()
}

/// Parses both kinds of context switches in /proc/PID/task/TID/status.
fn context_switches(status: &str) -> u64 {
    let keys = ["voluntary_ctxt_switches", "nonvoluntary_ctxt_switches"];
    keys.iter().filter_map(|key| proc::value(status, key)?.parse::<u64>().ok()).sum()
}

/// Parses the resident pages of /proc/PID/statm.
fn resident(statm: &str) -> Option<u64> {
    statm.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Returns the soft limit of open files in /proc/PID/limits.
fn descriptors_max(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// Returns a counter of a process's network namespace, such as `ListenOverflows`.
pub(crate) fn counter(pid: u32, name: &str) -> u64 {
    let text = read(pid, "net/netstat").unwrap_or_default();
    netstat(&text, name).unwrap_or(0)
}

/// Returns a counter of /proc/net/netstat: lines in pairs, names and then values.
fn netstat(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines();
    while let (Some(names), Some(values)) = (lines.next(), lines.next()) {
        let at = names.split_ascii_whitespace().position(|field| field == name);
        if let Some(at) = at {
            return values.split_ascii_whitespace().nth(at)?.parse().ok();
        }
    }
    None
}

/// Parses a node exporter's text as a reading, with the machine's cores and memory.
pub fn node_exporter(text: &str) -> Option<(SutReading, f64, u64)> {
    let mut cores = BTreeSet::new();
    let mut reading = SutReading::default();
    let (mut total, mut available, mut seen) = (0.0, 0.0, false);
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let Some((name, value)) = line.rsplit_once(' ') else { continue };
        let Ok(value) = value.parse::<f64>() else { continue };
        match name.split('{').next().unwrap_or(name) {
            "node_cpu_seconds_total" => {
                cores.insert(label(name, "cpu").unwrap_or_default().to_owned());
                let mode = label(name, "mode").unwrap_or_default();
                seen = true;
                if !["idle", "iowait", "steal"].contains(&mode) {
                    reading.cpu_s += value;
                }
            }
            "node_memory_MemTotal_bytes" => total = value,
            "node_memory_MemAvailable_bytes" => available = value,
            "node_filefd_allocated" => reading.descriptors = value as u64,
            "node_context_switches_total" => reading.switches = value as u64,
            "node_netstat_TcpExt_ListenOverflows" => reading.listen_overflows = value as u64,
            "node_processes_threads" => reading.threads = value as u64,
            _ => {}
        }
    }
    reading.memory_bytes = (total - available).max(0.0) as u64;
    seen.then_some((reading, cores.len() as f64, total as u64))
}

/// Returns the value of a label in `name{label="value",…}`.
fn label<'a>(series: &'a str, key: &str) -> Option<&'a str> {
    let (_, rest) = series.split_once(&format!("{key}=\""))?;
    rest.split('"').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_become_rows() {
        let before =
            SutReading { cpu_s: 10.0, switches: 100, listen_overflows: 5, ..SutReading::default() };
        let after =
            SutReading { cpu_s: 11.5, switches: 700, listen_overflows: 8, ..before.clone() };
        let row = row(&before, &after, 2.0, 3.0);
        assert!((row.cpu_cores - 0.75).abs() < 1e-9 && (row.switches_per_s - 300.0).abs() < 1e-9);
        assert_eq!((row.listen_overflows, row.at_s), (3, 3.0));
    }

    #[test]
    fn context_switches_go_on_when_threads_end() {
        let counts = |counts: &[((u32, u32), u64)]| counts.iter().copied().collect();
        let mut switches = SwitchCount::default();
        switches.add(counts(&[((1, 1), 100), ((1, 2), 9_000)]));
        let begin = switches.total;
        let mut then = |now: &[((u32, u32), u64)]| {
            switches.add(counts(now));
            switches.total - begin
        };
        assert_eq!(then(&[((1, 1), 150), ((1, 2), 9_001)]), 51);
        // a thread ends, another starts, a process starts
        assert_eq!(then(&[((1, 1), 160), ((1, 3), 7), ((5, 5), 2)]), 70);
        // a number that is used again
        assert_eq!(then(&[((1, 1), 160), ((1, 3), 4)]), 74);
        assert_eq!(then(&[]), 74);
    }

    #[test]
    fn threads_beyond_the_bound_are_reused() {
        let many = |first: u32| (first..).map(|task| ((1, task), 10)).take(THREADS_MAX).collect();
        let mut switches = SwitchCount::default();
        switches.add(many(1));
        let begin = switches.total;
        switches.add(many(2));
        assert_eq!(switches.total, begin);
    }

    #[test]
    fn texts_of_proc_are_read() {
        let netstat_text = "TcpExt: SyncookiesSent ListenOverflows ListenDrops\nTcpExt: 1 42 43\n\
                            IpExt: InNoRoutes\nIpExt: 7\n";
        assert_eq!(netstat(netstat_text, "ListenOverflows"), Some(42));
        assert_eq!(netstat(netstat_text, "InNoRoutes"), Some(7));
        assert_eq!(netstat("", "ListenOverflows"), None);
        let limits = "Limit Soft Hard Units\nMax open files            1024                 4096                 files\n";
        assert_eq!(descriptors_max(limits), Some(1_024));
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t3\n";
        assert_eq!(context_switches(status), 10);
        assert_eq!((resident("100 42 7"), resident("x")), (Some(42), None));
        assert_eq!(newest_number("0.20 0.18 0.12 1/80 11206\n"), Some(11_206));
        assert_eq!(["0.00 0.00 0.00 0/0 0\n", "", "1 2 3 4 x"].map(newest_number), [None; 3]);
    }

    #[test]
    fn a_node_exporters_text_is_read() {
        let text = "# HELP node_cpu_seconds_total x\n\
                    node_cpu_seconds_total{cpu=\"0\",mode=\"idle\"} 100\n\
                    node_cpu_seconds_total{cpu=\"0\",mode=\"user\"} 5.5\n\
                    node_cpu_seconds_total{cpu=\"1\",mode=\"system\"} 2\n\
                    node_memory_MemTotal_bytes 8e+09\nnode_memory_MemAvailable_bytes 3e+09\n\
                    node_filefd_allocated 1234\nnode_context_switches_total 5e+06\n\
                    node_netstat_TcpExt_ListenOverflows 9\nbroken line\nalso{ 1 x\n";
        let (reading, cores, memory) = node_exporter(text).unwrap();
        assert!((reading.cpu_s - 7.5).abs() < 1e-9 && (cores - 2.0).abs() < 1e-9);
        assert_eq!((memory, reading.memory_bytes), (8_000_000_000, 5_000_000_000));
        assert_eq!((reading.descriptors, reading.listen_overflows), (1_234, 9));
        assert_eq!(node_exporter("<html>no metrics</html>"), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_child_is_in_the_next_reading() {
        let _alone = crate::alone();
        let server = WatchedServer { pid: std::process::id(), addresses: Vec::new() };
        let mut reader = SutReader::new(server).unwrap();
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let reading = reader.read();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(reading.is_some() && reader.family.contains(&child.id()), "{reader:?}");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_zombie_server_is_gone() {
        let _alone = crate::alone();
        use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let server = WatchedServer { pid: child.id(), addresses: Vec::new() };
        let mut reader = SutReader::new(server.clone()).unwrap();
        let alive = reader.read();
        child.kill().unwrap();
        // it has ended, and remains a zombie
        let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(Pid::from_child(&child)), ended).unwrap();
        let error = (reader.read(), SutReader::new(server).unwrap_err());
        child.wait().unwrap();
        assert!(alive.is_some() && error.0.is_none(), "{error:?}");
        assert!(error.1.contains("has ended"), "{error:?}");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_reused_number_is_not_the_server() {
        let server = WatchedServer { pid: std::process::id(), addresses: Vec::new() };
        let mut reader = SutReader::new(server).unwrap();
        reader.started += 1;
        assert_eq!(reader.read(), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_can_be_watched() {
        let server = WatchedServer { pid: std::process::id(), addresses: Vec::new() };
        let mut reader = SutReader::new(server).unwrap();
        let reading = reader.read().unwrap();
        assert!(reading.memory_bytes > 0 && reading.threads > 0 && reading.descriptors > 0);
        let series = reader.series();
        assert!(series.name.contains("pid") && series.cores > 0.0 && series.descriptors_max > 0);
        let gone = WatchedServer { pid: u32::MAX, addresses: Vec::new() };
        assert!(SutReader::new(gone).unwrap_err().contains("no process"));
    }
}
