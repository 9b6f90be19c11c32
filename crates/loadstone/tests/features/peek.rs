//! Observes the running program from outside: its threads and its sockets, through /proc and
//! descriptors duplicated by the kernel.

use rustix::net::sockopt;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use std::fs;
use std::net::SocketAddr;

#[derive(Debug)]
pub(crate) struct Thread {
    /// Permitted cores, as a list of the kernel: `0`, `0-1`, `0,2`.
    pub(crate) cores: String,
    pub(crate) nice: i64,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Socket {
    pub(crate) nodelay: bool,
    pub(crate) send_buffer: usize,
    pub(crate) receive_buffer: usize,
}

/// Finds the program whose command line names this address.
fn client_of(server: SocketAddr) -> i32 {
    let wanted = server.to_string();
    let mut pids = fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let fits = |pid: &i32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(&wanted)
    };
    pids.find(fits).expect("the client runs while it waits for its response")
}

pub(crate) fn threads_of(server: SocketAddr) -> Vec<Thread> {
    let tasks = format!("/proc/{}/task", client_of(server));
    let entries = fs::read_dir(tasks).unwrap().filter_map(Result::ok);
    entries
        .filter_map(|entry| {
            let status = fs::read_to_string(entry.path().join("status")).ok()?;
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            let cores = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
            // proc_pid_stat(5): nice is field 19; the name, field 2, may hold spaces
            let nice = stat.rsplit_once(')')?.1.split_whitespace().nth(16)?.parse().ok()?;
            Some(Thread { cores: cores.trim().to_owned(), nice })
        })
        .collect()
}

/// Finds the client's socket that is connected to this address.
pub(crate) fn socket_of(server: SocketAddr) -> Socket {
    let pid = client_of(server);
    let process = pidfd_open(Pid::from_raw(pid).unwrap(), PidfdFlags::empty()).unwrap();
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().filter_map(Result::ok);
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    for number in numbers {
        let Ok(lent) = pidfd_getfd(&process, number, PidfdGetfdFlags::empty()) else { continue };
        let peer = rustix::net::getpeername(&lent).ok().flatten();
        let peer = peer.and_then(|peer| SocketAddr::try_from(peer).ok());
        if peer == Some(server) {
            return Socket {
                nodelay: sockopt::tcp_nodelay(&lent).unwrap(),
                send_buffer: sockopt::socket_send_buffer_size(&lent).unwrap(),
                receive_buffer: sockopt::socket_recv_buffer_size(&lent).unwrap(),
            };
        }
    }
    panic!("the client has no socket connected to {server}");
}

/// Returns the cores that this process may use.
pub(crate) fn own_cores() -> Vec<usize> {
    let set = rustix::thread::sched_getaffinity(None).unwrap();
    (0..1_024).filter(|core| set.is_set(*core)).collect()
}
