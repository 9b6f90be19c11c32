//! A handle of a process that reports its end and, if the kernel supports it, its exit status, even
//! if the process is not our child. The only unsafe code of this crate.
#![allow(unsafe_code, reason = "PIDFD_GET_INFO is an ioctl that no safe wrapper offers")]

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::ioctl::{Opcode, Updater, ioctl, opcode};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use sample::Ending;

/// `struct pidfd_info` in its first form, 64 bytes (linux/pidfd.h, Linux 6.13). Its first word is
/// the request mask, and on return the reply mask; the exit code is the last half of its last word.
type Info = [u64; 8];
const GET_INFO: Opcode = opcode::read_write::<Info>(0xff, 11);
/// Flag for a process that has been waited for, since Linux 6.15.
const EXIT: u64 = 1 << 3;

/// Refers to one process, even if its number is reused later.
#[derive(Debug)]
pub(crate) struct Handle(OwnedFd);

impl Handle {
    /// Opens a handle; `None` if the kernel has no handles, or the process has ended.
    pub(crate) fn open(pid: u32) -> Option<Handle> {
        let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
        pidfd_open(pid, PidfdFlags::empty()).ok().map(Handle)
    }

    /// Returns how the process ended; `None` if unknown: an older kernel, or its parent has not
    /// waited for it yet.
    pub(crate) fn ending(&self) -> Option<Ending> {
        let mut info: Info = [0; 8];
        info[0] = EXIT;
        // SAFETY: the opcode encodes the size of `Info`, and the kernel writes no more than that.
        unsafe { ioctl(self.0.as_fd(), Updater::<GET_INFO, Info>::new(&mut info)) }.ok()?;
        let last = info[7].to_ne_bytes();
        let status = i32::from_ne_bytes([last[4], last[5], last[6], last[7]]);
        (info[0] & EXIT != 0).then(|| Ending::from_status(status))
    }
}

/// Returns which processes have ended, waited for or not; none if unknown.
pub(crate) fn ended<'a>(handles: impl Iterator<Item = &'a Handle>) -> Vec<bool> {
    let mut asked: Vec<PollFd<'_>> =
        handles.map(|handle| PollFd::new(&handle.0, PollFlags::IN)).collect();
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    if poll(&mut asked, Some(&at_once)).is_err() {
        return vec![false; asked.len()];
    }
    asked.iter().map(|one| one.revents().contains(PollFlags::IN)).collect()
}
