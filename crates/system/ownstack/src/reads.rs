//! Rules for reading packets, the same for every kind of device.

use rustix::io::Errno;

/// Maximum number of packets read before the worker continues with its other work.
pub(crate) const BATCH: usize = 256;

/// Returns whether no packet will arrive after this read error.
pub(crate) fn is_end(error: Errno) -> bool {
    !matches!(error, Errno::AGAIN | Errno::INTR | Errno::NOMEM | Errno::NOBUFS | Errno::CANCELED)
}
