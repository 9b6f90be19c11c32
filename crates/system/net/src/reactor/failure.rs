//! Maps error numbers to failures of a call.

use conduit::IoError;
use rustix::io::Errno;
use sample::FailureClass;

pub(crate) fn io_error(errno: Errno) -> IoError {
    IoError::Failed(class(errno))
}

/// Returns the error for a slot without a socket: the worker closed it and still uses it.
pub(crate) fn closed() -> IoError {
    IoError::Failed(FailureClass::OtherIo)
}

/// Returns the failure for an error of the standard library, as the loop reports it.
pub fn failure_class(error: &std::io::Error) -> FailureClass {
    Errno::from_io_error(error).map_or(FailureClass::OtherIo, class)
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Error;

    #[test]
    fn an_error_of_the_standard_library_is_of_its_numbers_class() {
        for (errno, expected) in [
            (Errno::CONNREFUSED, FailureClass::Refused),
            (Errno::PIPE, FailureClass::Reset),
            (Errno::HOSTUNREACH, FailureClass::Unreachable),
            (Errno::MFILE, FailureClass::FdUnavailable),
            (Errno::ADDRINUSE, FailureClass::AddressUnavailable),
        ] {
            assert_eq!(failure_class(&Error::from(errno)), expected, "{errno}");
        }
        assert_eq!(failure_class(&Error::other("odd")), FailureClass::OtherIo);
    }
}
