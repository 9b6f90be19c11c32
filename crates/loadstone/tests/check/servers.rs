//! Programs that serve while a test checks them: started as an unprivileged user, since root reads
//! everything, and ended by their own number.

use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// Debian's user and group nobody.
const NOBODY: u32 = 65_534;

/// A folder that the unprivileged user may write to.
pub(crate) fn open_folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    give_away(folder.path());
    folder
}

/// Whether this process may do anything.
pub(crate) fn privileged() -> bool {
    rustix::process::geteuid().is_root()
}

pub(crate) fn give_away(path: &Path) {
    if privileged() {
        chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
}

/// A command that will run without privileges.
pub(crate) fn unprivileged(program: &Path) -> Command {
    let mut command = Command::new(program);
    if privileged() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command.stdin(Stdio::null());
    command
}

/// A server that is ended with this.
pub(crate) struct Serving {
    child: Child,
}

impl Serving {
    pub(crate) fn start(mut command: Command) -> Serving {
        Serving { child: command.spawn().unwrap() }
    }

    /// It has ended by itself.
    pub(crate) fn over(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        // it may be gone already
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).ok();
        self.child.wait().ok();
    }
}
