//! Tracks the processes of a server: those that hold the listening socket and their descendants,
//! their resources, and when and how they end.

use crate::pidfd::Handle;
use crate::{listen_queues, listener, pidfd, proc, sut};
use sample::{Death, Ending, Process, ServerState};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;
use units::Nanos;

/// Maximum number of watched processes; of a larger server, those with the lowest numbers.
const WATCHED_MAX: usize = 256;
/// Grace period in which the parent waits for an ended process; after that the kernel reports its
/// exit status.
const REAPED_WITHIN: Duration = Duration::from_millis(50);
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Watches the processes of the server that listens on an address of this machine: which run, and
/// when and how they ended.
#[derive(Debug)]
pub struct Lives {
    address: SocketAddr,
    watched: BTreeMap<u32, Watched>,
}

#[derive(Debug)]
struct Watched {
    process: Process,
    /// Handle; `None` if the kernel has no handles: then /proc is used.
    handle: Option<Handle>,
    listens: bool,
}

impl Lives {
    /// Finds the server that listens on `address`; of several, `named`. An ancestor of this program
    /// is considered only if named.
    ///
    /// # Errors
    /// Fails if no visible process of this machine listens there, or `named` does not: a message
    /// with the fix.
    pub fn find(address: SocketAddr, named: Option<u32>) -> Result<Lives, String> {
        let holders = listener::listener_pids(address);
        let mut lives = Lives { address, watched: BTreeMap::new() };
        match named {
            Some(pid) if holders.contains(&pid) => lives.watch(&[pid], &holders),
            Some(pid) => return Err(no_listener(pid, address, &holders)),
            None => {
                let mut roots = roots(&holders);
                // our ancestors hold more than the server does
                let own = ancestors();
                roots.retain(|pid| !own.contains(pid));
                lives.watch(&roots, &holders);
            }
        }
        if lives.listeners().next().is_none() {
            return Err(format!(
                "no visible process of this machine listens on {address}: it runs elsewhere, or \
                 belongs to another user (root sees all)"
            ));
        }
        Ok(lives)
    }

    fn listeners(&self) -> impl Iterator<Item = &Process> {
        self.watched.values().filter(|one| one.listens).map(|one| &one.process)
    }

    /// Watches the listening processes; `holders` and their descendants are their workers.
    fn watch(&mut self, roots: &[u32], holders: &[u32]) {
        let mut pids: BTreeSet<u32> = holders.iter().chain(roots).copied().collect();
        // our ancestors have unrelated children
        let own = ancestors();
        for root in roots.iter().filter(|root| !own.contains(root)) {
            pids.extend(sut::family(*root));
        }
        // listeners are watched first
        let others = pids.iter().filter(|pid| !roots.contains(pid));
        for pid in roots.iter().chain(others) {
            if let Some(known) = self.watched.get_mut(pid) {
                known.listens = roots.contains(pid);
            } else if self.watched.len() < WATCHED_MAX
                && let Some(one) = Watched::new(*pid, roots.contains(pid))
            {
                self.watched.insert(*pid, one);
            }
        }
    }

    /// Returns the processes that ended since the last call. Cheap while there are none.
    pub fn ended(&mut self) -> Vec<Death> {
        let gone = self.exited();
        let over: Vec<Watched> = gone.iter().filter_map(|pid| self.watched.remove(pid)).collect();
        let alone = self.listeners().next().is_none();
        let deaths = over.into_iter().map(|one| Death {
            whole: one.listens && alone,
            how: one.ending(),
            process: one.process,
        });
        let deaths: Vec<Death> = deaths.collect();
        if alone {
            // a process started in its place
            let holders = listener::listener_pids(self.address);
            self.watch(&roots(&holders), &holders);
        } else if !deaths.is_empty() {
            // the workers that take the place of others may not live to the next look
            let roots: Vec<u32> = self.listeners().map(|one| one.pid).collect();
            self.watch(&roots, &[]);
        }
        deaths
    }

    fn exited(&self) -> Vec<u32> {
        let handles =
            || self.watched.iter().filter_map(|(pid, one)| Some((pid, one.handle.as_ref()?)));
        let ended = pidfd::ended(handles().map(|(_, handle)| handle));
        let by_handle = handles().zip(ended).filter(|(_, ended)| *ended).map(|((pid, _), _)| *pid);
        let bare = self.watched.iter().filter(|(_, one)| one.handle.is_none() && !one.lives());
        by_handle.chain(bare.map(|(pid, _)| *pid)).collect()
    }

    /// Returns the resident memory of the watched processes. Much cheaper than [`state`](Self::state),
    /// which reads the socket tables of the whole machine.
    pub fn memory_bytes(&self) -> u64 {
        self.watched.keys().map(|pid| sut::memory_bytes(*pid)).sum()
    }

    /// Returns the server's current state. Call [`ended`](Self::ended) first, which reports deaths.
    pub fn state(&mut self) -> ServerState {
        let roots: Vec<u32> = self.listeners().map(|one| one.pid).collect();
        self.watch(&roots, &[]);
        let (listeners, workers): (Vec<&Watched>, Vec<&Watched>) =
            self.watched.values().partition(|one| one.listens);
        let list = |all: Vec<&Watched>| all.into_iter().map(|one| one.process.clone()).collect();
        let pids: Vec<u32> = self.watched.keys().copied().collect();
        let figures = sut::figures(&pids);
        let mut state = ServerState {
            listeners: list(listeners),
            workers: list(workers),
            threads: figures.threads,
            descriptors: figures.descriptors,
            memory_bytes: figures.memory_bytes,
            cpu: Nanos::from_secs_f64(figures.cpu_s),
            ..ServerState::default()
        };
        if let Some(first) = roots.first() {
            let port = self.address.port();
            let found = listen_queues::sockets(*first, port);
            let named = found.states.into_iter().map(|(name, count)| (name.to_owned(), count));
            state.sockets = named.collect();
            let queues = found.queues;
            state.accept_queue = queues.accept;
            state.accept_queue_max = queues.accept_max;
            state.half_open = queues.half_open;
            state.overflows = sut::counter(*first, "ListenOverflows");
            state.cookies = sut::counter(*first, "SyncookiesSent");
        }
        state
    }
}

impl Watched {
    fn new(pid: u32, listens: bool) -> Option<Watched> {
        let handle = Handle::open(pid);
        // read after the handle was opened: both are of the same process
        let stat = stat(pid)?;
        let process = Process { pid, started: stat.started, name: stat.name };
        let one = Watched { process, handle, listens };
        one.lives().then_some(one)
    }

    fn lives(&self) -> bool {
        match &self.handle {
            Some(handle) => pidfd::ended(std::iter::once(handle)) != [true],
            None => stat(self.process.pid)
                .is_some_and(|stat| stat.started == self.process.started && !stat.is_over()),
        }
    }

    /// Returns how an ended process exited.
    fn ending(&self) -> Ending {
        let mut waited = Duration::ZERO;
        loop {
            // its parent has not waited for it yet: /proc still shows it
            let left = stat(self.process.pid).filter(|stat| stat.started == self.process.started);
            let found = self.handle.as_ref().and_then(Handle::ending);
            let found = found.or_else(|| left.as_ref()?.status.map(Ending::from_status));
            match found {
                Some(ending) => return ending,
                None if left.is_none() || waited >= REAPED_WITHIN => return Ending::Unseen,
                None => {}
            }
            std::thread::sleep(POLL_INTERVAL);
            waited += POLL_INTERVAL;
        }
    }
}

fn stat(pid: u32) -> Option<proc::Process> {
    let text = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    proc::process(&String::from_utf8_lossy(&text))
}

/// Returns this process and its ancestors.
fn ancestors() -> Vec<u32> {
    let mut all = vec![std::process::id()];
    while let Some(parent) = stat(all[all.len() - 1]).map(|stat| stat.parent)
        && parent > 1
        && !all.contains(&parent)
    {
        all.push(parent);
    }
    all
}

/// Returns the processes that hold the socket without being a child of another holder. If init
/// opened the socket for a service, the service counts.
fn roots(holders: &[u32]) -> Vec<u32> {
    let holders: Vec<u32> = match holders {
        [1, rest @ ..] if !rest.is_empty() => rest.to_vec(),
        all => all.to_vec(),
    };
    let parent = |pid: u32| stat(pid).map_or(0, |stat| stat.parent);
    holders.iter().copied().filter(|pid| !holders.contains(&parent(*pid))).collect()
}

fn no_listener(pid: u32, address: SocketAddr, holders: &[u32]) -> String {
    if stat(pid).is_none() {
        return format!("there is no process {pid} on this machine (see `ps`), or /proc hides it");
    }
    let name = crate::process_name(pid);
    let others: Vec<String> = roots(holders)
        .into_iter()
        .map(|pid| format!("{pid} ({})", crate::process_name(pid)))
        .collect();
    let who = match others.as_slice() {
        [] => "no visible process does".to_owned(),
        some => format!("process {} does", some.join(" and ")),
    };
    format!("process {pid} ({name}) does not listen on {address}: {who}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    #[cfg(target_os = "linux")]
    fn listeners_are_found_and_others_reported() {
        let _alone = crate::alone();
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let us = std::process::id();
        // the observing process is not a server
        assert!(Lives::find(address, None).is_err());
        let mut lives = Lives::find(address, Some(us)).unwrap();
        assert_eq!(lives.ended(), []);
        let state = lives.state();
        assert_eq!(state.listeners.iter().map(|one| one.pid).collect::<Vec<_>>(), [us]);
        assert!(state.memory_bytes > 0 && state.descriptors > 0 && state.threads > 0);
        let parent = stat(us).unwrap().parent;
        let why = Lives::find(address, Some(parent)).unwrap_err();
        assert!(
            why.contains(&format!("process {us} (")) && why.contains("does not listen"),
            "{why}"
        );
        let why = Lives::find(address, Some(u32::MAX)).unwrap_err();
        assert!(why.contains("no process 4294967295"), "{why}");
        drop(socket);
        assert!(
            Lives::find(address, None).unwrap_err().contains("no visible process of this machine")
        );
    }

    /// The end of a child of ours, and its kind, are visible before and after it is waited for.
    #[test]
    #[cfg(target_os = "linux")]
    fn how_a_process_ended_is_seen() {
        let _alone = crate::alone();
        for waited in [false, true] {
            let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
            let watched = Watched::new(child.id(), true).unwrap();
            assert!(watched.lives());
            child.kill().unwrap();
            if waited {
                child.wait().unwrap();
            }
            while watched.lives() {
                std::thread::yield_now();
            }
            let ending = watched.ending();
            let killed = Ending::Signal { number: 9, core: false };
            // kernels before 6.15 forget it once it was waited for
            assert!(ending == killed || waited && ending == Ending::Unseen, "{ending:?}");
            child.wait().unwrap();
        }
    }
}
