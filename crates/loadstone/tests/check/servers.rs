//! Servers for tests of the check. They run as an unprivileged user, because root can read
//! everything, and are terminated by PID.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// Debian's user and group nobody.
const NO_USER: u32 = 65_534;

/// Creates a folder that the unprivileged user may write to.
pub(crate) fn open_folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    chown_to_unprivileged(folder.path());
    folder
}

/// Returns whether this process is privileged.
pub(crate) fn privileged() -> bool {
    rustix::process::geteuid().is_root()
}

pub(crate) fn chown_to_unprivileged(path: &Path) {
    if privileged() {
        chown(path, Some(NO_USER), Some(NO_USER)).unwrap();
    }
}

/// Returns a command that runs without privileges.
pub(crate) fn unprivileged(program: &Path) -> Command {
    let mut command = Command::new(program);
    if privileged() {
        command.uid(NO_USER).gid(NO_USER);
    }
    command.stdin(Stdio::null());
    command
}

/// Returns the path of this program that the unprivileged user can access: a copy in the folder if
/// needed.
pub(crate) fn own_program(folder: &Path) -> PathBuf {
    let own = crate::support::binary();
    let reached =
        unprivileged(&own).arg("--version").output().is_ok_and(|ran| ran.status.success());
    if reached {
        return own;
    }
    let there = folder.join("loadstone");
    std::fs::copy(&own, &there).unwrap();
    there
}

/// Running server; dropping it ends the process.
pub(crate) struct Serving {
    child: Child,
}

impl Serving {
    /// Starts a server whose first line on standard output is its URL.
    pub(crate) fn announced(mut command: Command) -> (Serving, String) {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let out = child.stdout.take().unwrap();
        BufReader::new(out).read_line(&mut line).unwrap();
        let serving = Serving { child };
        assert!(line.starts_with("http://"), "{command:?} said {line:?}");
        (serving, line.trim().to_owned())
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        // it may have exited already
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).ok();
        self.child.wait().ok();
    }
}
