//! Network namespaces as descriptors: one dies with the last descriptor and the last process in it.

use crate::raw;
use crate::trouble::PathTrouble;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;

/// Name of the congestion control of TCP in the reading thread's network, IPv6 included.
const CONGESTION: &str = "/proc/sys/net/ipv4/tcp_congestion_control";

/// One network namespace.
#[derive(Debug)]
pub struct Namespace {
    file: File,
}

impl Namespace {
    /// The calling thread's.
    pub(crate) fn here() -> io::Result<Namespace> {
        Ok(Namespace { file: File::open("/proc/thread-self/ns/net")? })
    }

    /// Makes a new one on a thread of its own, where `furnish` then runs, and gives what it gave. TCP there
    /// sends by the congestion control that it has here, where the kernel allows it: of its own accord a new
    /// network has that of the host's first one, and a path would change more than the path.
    pub(crate) fn create<T: Send>(
        furnish: impl FnOnce() -> Result<T, PathTrouble> + Send,
    ) -> Result<(Namespace, T), PathTrouble> {
        elsewhere(move || {
            let congestion = std::fs::read(CONGESTION);
            raw::leave_network().map_err(PathTrouble::Namespace)?;
            let here = Namespace::here().map_err(PathTrouble::Namespace)?;
            if let Ok(congestion) = congestion {
                // a container may have /proc/sys for reading alone; the path stands without it
                std::fs::write(CONGESTION, congestion).ok();
            }
            Ok((here, furnish()?))
        })
    }

    /// The calling thread is in it from now on, and so is what it starts.
    ///
    /// # Errors
    /// The kernel's refusal; none is known for a namespace of our own.
    pub fn enter(&self) -> io::Result<()> {
        move_into_link_name_space(self.file.as_fd(), Some(LinkNameSpaceType::Network))?;
        Ok(())
    }

    /// Runs something in it, on a thread of its own.
    pub(crate) fn within<T: Send>(
        &self,
        work: impl FnOnce() -> Result<T, PathTrouble> + Send,
    ) -> Result<T, PathTrouble> {
        elsewhere(move || {
            self.enter().map_err(PathTrouble::other("cannot enter a network namespace"))?;
            work()
        })
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// What tells it from every other.
    ///
    /// # Errors
    /// As of reading any descriptor.
    pub(crate) fn number(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.ino())
    }
}

fn elsewhere<T: Send>(
    work: impl FnOnce() -> Result<T, PathTrouble> + Send,
) -> Result<T, PathTrouble> {
    std::thread::scope(|scope| {
        let thread =
            std::thread::Builder::new().name("path-setup".into()).spawn_scoped(scope, work);
        let thread = thread.map_err(PathTrouble::other("cannot start a thread"))?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Makes sure that this process may make network namespaces: as it is, or in a user namespace of its
/// own, which needs no privilege. To be called while it has one thread. Gives whether it had to.
///
/// # Errors
/// Neither is allowed here.
pub fn become_able() -> Result<bool, PathTrouble> {
    let able = elsewhere(|| raw::leave_network().map_err(PathTrouble::Namespace));
    if able.is_ok() {
        return Ok(false);
    }
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    raw::leave_users().map_err(PathTrouble::Namespace)?;
    // the own number stays what it is: the programs see the user that started them
    let write =
        |file: &str, text: String| std::fs::write(file, text).map_err(PathTrouble::Namespace);
    write("/proc/self/setgroups", "deny".to_owned())?;
    write("/proc/self/uid_map", format!("{0} {0} 1", user.as_raw()))?;
    write("/proc/self/gid_map", format!("{0} {0} 1", group.as_raw()))?;
    Ok(true)
}
