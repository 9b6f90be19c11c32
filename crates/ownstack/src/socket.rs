//! One connection of our own TCP that is read and written as a socket is, for calls that block.

use crate::{OwnNetwork, OwnStack};
use conduit::{Close, Io, IoError, OpenOptions, Peer, Ready};
use reactor::monotonic;
use sample::FailureClass;
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::sync::Arc;
use std::time::Duration;
use units::Nanos;

const SLOT: u32 = 0;
/// How long the two sides may take to end the connection before it is reset.
const GOODBYE: Nanos = Nanos::from_millis(500);

/// A connection with a stack of its own, on the device and the first address of the first worker:
/// while it lives that worker must not.
#[derive(Debug)]
pub struct OwnSocket {
    io: OwnStack,
    ready: Vec<Ready>,
    limit: Nanos,
}

impl OwnSocket {
    /// Connects, through the network's paths where it has some.
    ///
    /// # Errors
    /// As a socket's, with the kinds of errors that a socket has.
    pub fn connect(
        network: &Arc<OwnNetwork>,
        seed: u64,
        peer: &Peer,
        options: &OpenOptions,
        within: Nanos,
    ) -> Result<OwnSocket> {
        let mut io = network.caller(seed)?;
        let options = OpenOptions { bind: Some(io.first_address()), ..options.clone() };
        io.open(SLOT, peer, &options).map_err(error)?;
        let mut socket = OwnSocket { io, ready: Vec::new(), limit: within };
        socket.until(|io| io.write(SLOT, &[]))?;
        Ok(socket)
    }

    /// The longest that one read or write may take from now on.
    pub fn limit(&mut self, left: Duration) {
        self.limit = Nanos(u64::try_from(left.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Tries until it is done, or the limit is reached.
    fn until<T>(
        &mut self,
        mut attempt: impl FnMut(&mut OwnStack) -> std::result::Result<T, IoError>,
    ) -> Result<T> {
        let end = monotonic() + self.limit;
        loop {
            match attempt(&mut self.io) {
                Err(IoError::WouldBlock) => {}
                other => return other.map_err(error),
            }
            if monotonic() >= end {
                return Err(ErrorKind::TimedOut.into());
            }
            self.io.wait(end, &mut self.ready);
        }
    }
}

fn error(error: IoError) -> Error {
    let IoError::Failed(class) = error else { return ErrorKind::WouldBlock.into() };
    let kind = match class {
        FailureClass::Refused => ErrorKind::ConnectionRefused,
        FailureClass::Reset => ErrorKind::ConnectionReset,
        FailureClass::SocketTimeout => ErrorKind::TimedOut,
        FailureClass::Unreachable => ErrorKind::HostUnreachable,
        FailureClass::AddressUnavailable => ErrorKind::AddrNotAvailable,
        _ => return Error::other(class.explain()),
    };
    kind.into()
}

impl Read for OwnSocket {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        self.until(|io| io.read(SLOT, buffer))
    }
}

impl Write for OwnSocket {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.until(|io| io.write(SLOT, bytes))
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

impl Drop for OwnSocket {
    /// Ends it in order, as a socket that is closed does behind its owner's back.
    fn drop(&mut self) {
        self.io.close(SLOT, Close::Orderly);
        let end = monotonic() + GOODBYE;
        while self.io.connections() > 0 && monotonic() < end {
            self.io.wait(end, &mut self.ready);
        }
    }
}
