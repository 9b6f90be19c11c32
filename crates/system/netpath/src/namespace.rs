//! Network namespaces as descriptors: a namespace ends with its last descriptor and its last
//! process.

use crate::raw;
use crate::trouble::PathTrouble;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;

/// The name of the TCP congestion control in the network namespace of the reading thread, IPv6
/// included.
const CONGESTION: &str = "/proc/sys/net/ipv4/tcp_congestion_control";

/// One network namespace.
#[derive(Debug)]
pub struct Namespace {
    file: File,
}

impl Namespace {
    /// Returns the namespace of the calling thread.
    pub(crate) fn here() -> io::Result<Namespace> {
        Ok(Namespace { file: File::open("/proc/thread-self/ns/net")? })
    }

    /// Creates a namespace on a separate thread, runs `configure` there, and returns its result.
    /// TCP there uses the congestion control of the current namespace, if the kernel permits it: by
    /// default, a new namespace has that of the host's initial one, and more than the path would
    /// change.
    pub(crate) fn create<T: Send>(
        configure: impl FnOnce() -> Result<T, PathTrouble> + Send,
    ) -> Result<(Namespace, T), PathTrouble> {
        run_on_own_thread(move || {
            let congestion = std::fs::read(CONGESTION);
            raw::leave_network().map_err(PathTrouble::Namespace)?;
            let here = Namespace::here().map_err(PathTrouble::Namespace)?;
            if let Ok(congestion) = congestion {
                // in a container /proc/sys may be read-only; the path works without it
                std::fs::write(CONGESTION, congestion).ok();
            }
            Ok((here, configure()?))
        })
    }

    /// Moves the calling thread into the namespace; processes that it starts are in it too.
    ///
    /// # Errors
    /// Fails if the kernel refuses; no reason is known for our own namespaces.
    pub fn enter(&self) -> io::Result<()> {
        move_into_link_name_space(self.file.as_fd(), Some(LinkNameSpaceType::Network))?;
        Ok(())
    }

    /// Runs a function in the namespace, on a separate thread.
    pub(crate) fn within<T: Send>(
        &self,
        work: impl FnOnce() -> Result<T, PathTrouble> + Send,
    ) -> Result<T, PathTrouble> {
        run_on_own_thread(move || {
            self.enter().map_err(PathTrouble::other("cannot enter a network namespace"))?;
            work()
        })
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Returns its unique identifier.
    ///
    /// # Errors
    /// Fails if the descriptor cannot be read.
    pub(crate) fn number(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.ino())
    }
}

fn run_on_own_thread<T: Send>(
    work: impl FnOnce() -> Result<T, PathTrouble> + Send,
) -> Result<T, PathTrouble> {
    std::thread::scope(|scope| {
        let thread =
            std::thread::Builder::new().name("path-setup".into()).spawn_scoped(scope, work);
        let thread = thread.map_err(PathTrouble::other("cannot start a thread"))?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Ensures that this process may create network namespaces: directly, or in its own user namespace,
/// which needs no privilege. Must be called while it has one thread. Returns whether a user
/// namespace was needed.
///
/// # Errors
/// Fails if neither is permitted here.
pub fn enable_namespaces() -> Result<bool, PathTrouble> {
    let able = run_on_own_thread(|| raw::leave_network().map_err(PathTrouble::Namespace));
    if able.is_ok() {
        return Ok(false);
    }
    let user = rustix::process::geteuid();
    let group = rustix::process::getegid();
    raw::leave_users().map_err(PathTrouble::Namespace)?;
    // the user id stays the same: the programs see the user that started them
    let write =
        |file: &str, text: String| std::fs::write(file, text).map_err(PathTrouble::Namespace);
    write("/proc/self/setgroups", "deny".to_owned())?;
    write("/proc/self/uid_map", format!("{0} {0} 1", user.as_raw()))?;
    write("/proc/self/gid_map", format!("{0} {0} 1", group.as_raw()))?;
    Ok(true)
}
