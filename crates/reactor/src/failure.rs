//! What an error number means for a call.

use conduit::IoError;
use rustix::io::Errno;
use sample::FailureClass;
use std::io::ErrorKind;

pub(crate) fn of(errno: Errno) -> IoError {
    IoError::Failed(class(errno))
}

/// A slot without a socket: the worker closed it and uses it still.
pub(crate) fn closed() -> IoError {
    IoError::Failed(FailureClass::OtherIo)
}

/// As the loop tells them, of an error of the standard library; one without a number is told by its
/// kind, as those of connections are that are not the kernel's.
pub fn failure_class(error: &std::io::Error) -> FailureClass {
    match Errno::from_io_error(error) {
        Some(errno) => class(errno),
        None => class(errno_like(error.kind())),
    }
}

/// The number that an error of this kind has where the kernel made it.
fn errno_like(kind: ErrorKind) -> Errno {
    match kind {
        ErrorKind::ConnectionRefused => Errno::CONNREFUSED,
        ErrorKind::ConnectionReset => Errno::CONNRESET,
        ErrorKind::BrokenPipe => Errno::PIPE,
        ErrorKind::TimedOut => Errno::TIMEDOUT,
        ErrorKind::HostUnreachable => Errno::HOSTUNREACH,
        ErrorKind::AddrNotAvailable => Errno::ADDRNOTAVAIL,
        _ => Errno::IO,
    }
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
    fn an_error_with_or_without_its_number_is_of_one_class() {
        for (errno, kind) in [
            (Errno::CONNREFUSED, ErrorKind::ConnectionRefused),
            (Errno::CONNRESET, ErrorKind::ConnectionReset),
            (Errno::PIPE, ErrorKind::BrokenPipe),
            (Errno::TIMEDOUT, ErrorKind::TimedOut),
            (Errno::HOSTUNREACH, ErrorKind::HostUnreachable),
            (Errno::ADDRNOTAVAIL, ErrorKind::AddrNotAvailable),
        ] {
            let numbered = failure_class(&Error::from(errno));
            assert_ne!(numbered, FailureClass::OtherIo, "{kind}");
            assert_eq!(failure_class(&kind.into()), numbered, "{kind}");
        }
        assert_eq!(failure_class(&Error::other("odd")), FailureClass::OtherIo);
        let all_in_use = failure_class(&Error::from(Errno::ADDRINUSE));
        assert_eq!(all_in_use, FailureClass::AddressUnavailable);
    }
}
