//! What an error number means for a call.

use conduit::IoError;
use rustix::io::Errno;
use sample::FailureClass;

pub(crate) fn of(errno: Errno) -> IoError {
    IoError::Failed(class(errno))
}

/// A slot without a socket: the worker closed it and uses it still.
pub(crate) fn closed() -> IoError {
    IoError::Failed(FailureClass::OtherIo)
}

pub(crate) fn class(errno: Errno) -> FailureClass {
    match errno {
        Errno::CONNREFUSED => FailureClass::Refused,
        Errno::CONNRESET | Errno::PIPE | Errno::CONNABORTED => FailureClass::Reset,
        Errno::TIMEDOUT => FailureClass::SocketTimeout,
        Errno::HOSTUNREACH | Errno::NETUNREACH | Errno::NETDOWN | Errno::HOSTDOWN => {
            FailureClass::Unreachable
        }
        Errno::MFILE => FailureClass::FdUnavailable,
        Errno::NFILE => FailureClass::FileTableFull,
        Errno::ADDRNOTAVAIL | Errno::ADDRINUSE => FailureClass::AddressUnavailable,
        _ => FailureClass::OtherIo,
    }
}
