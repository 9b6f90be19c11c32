//! Connections of idleconn: opened, left idle, reopened when the server closes them.

use super::finish;
use conduit::{Close, Io, IoError, OpenOptions, Peer, Slot};
use faces::{Ending, Extras, FaceOutput, Idle, words};
use net::reactor::Reactor;
use std::collections::BTreeSet;
use units::Nanos;

/// Maximum delay until a signal is noticed.
const SIGNAL_CHECK: Nanos = Nanos::from_millis(100);

/// Keeps the connections until a signal arrives.
pub(super) fn keep(idle: &Idle) -> u8 {
    let ending = kept(idle).unwrap_or_else(|error| Ending::error(format!("{error:#}\n"), 1));
    finish(ending, Extras::default())
}

fn kept(idle: &Idle) -> anyhow::Result<Ending> {
    crate::signals::install_interrupt()?;
    let addresses = host::resolve(&idle.server, idle.port, host::Family::V4);
    let Some(address) = addresses.ok().and_then(|(found, _)| found.first().copied()) else {
        return Ok(idle.no_address());
    };
    super::watch::print(&FaceOutput { out: idle.opening(), ..FaceOutput::default() });
    let descriptors = u64::from(idle.connections) + host::limits::descriptors_open() + 8;
    // a missing resource is reported connection by connection
    host::raise_descriptors(descriptors).ok();
    let mut keeper = Keeper {
        io: Reactor::new(Nanos::ZERO)?,
        peer: Peer::Tcp(address),
        next: 0,
        wanted: idle.connections,
        connecting: BTreeSet::new(),
        created: 0,
        closed: 0,
    };
    let start = keeper.io.now();
    keeper.open_next()?;
    let mut ready = Vec::new();
    while crate::signals::received_signal() == 0 {
        let until = keeper.io.now() + SIGNAL_CHECK;
        keeper.io.wait(until, &mut ready);
        for event in &ready {
            keeper.look(event.slot)?;
            keeper.open_next()?;
        }
    }
    let seconds = (keeper.io.now() - start).as_secs_f64();
    Ok(idle.ending(keeper.created, keeper.closed, seconds))
}

struct Keeper {
    io: Reactor,
    peer: Peer,
    /// Next connection to open, once the previous one is established; `wanted` when all are open.
    next: Slot,
    wanted: Slot,
    connecting: BTreeSet<Slot>,
    created: u64,
    closed: u64,
}

impl Keeper {
    /// Opens connections one after another, like the original: it stops at the first refused one.
    fn open_next(&mut self) -> anyhow::Result<()> {
        while self.connecting.is_empty() && self.next < self.wanted {
            let slot = self.next;
            self.next += 1;
            self.open(slot)?;
        }
        Ok(())
    }

    fn open(&mut self, slot: Slot) -> anyhow::Result<()> {
        let opened = self.io.open(slot, &self.peer, &OpenOptions::default());
        // an empty write reports when the connection is established, and registers it for watching
        match opened.and_then(|()| self.io.write(slot, b"").map(drop)) {
            Ok(()) => {
                self.created += 1;
                Ok(())
            }
            Err(IoError::WouldBlock) => {
                self.created += 1;
                self.connecting.insert(slot);
                Ok(())
            }
            Err(error) => self.refused(slot, error),
        }
    }

    /// Reports the reason, and stops, like the original.
    fn refused(&mut self, slot: Slot, error: IoError) -> anyhow::Result<()> {
        self.io.close(slot, Close::Orderly);
        self.next = self.wanted;
        let sentence = match error {
            IoError::Failed(class) => words::system_error(class).map(|(_, sentence)| sentence),
            IoError::WouldBlock => None,
        };
        let out = format!("connect: {}\n", sentence.unwrap_or("Connection failed"));
        super::watch::print(&FaceOutput { out, ..FaceOutput::default() });
        Ok(())
    }

    fn look(&mut self, slot: Slot) -> anyhow::Result<()> {
        self.connecting.remove(&slot);
        match self.io.read(slot, &mut [0; 4_096]) {
            Err(IoError::WouldBlock) => Ok(()),
            Err(IoError::Failed(class)) if failed_to_connect(class) => {
                self.created -= 1;
                self.refused(slot, IoError::Failed(class))
            }
            // bytes, the end or an error: the server does not leave it idle
            Ok(_) | Err(IoError::Failed(_)) => {
                self.io.close(slot, Close::Orderly);
                self.closed += 1;
                self.open(slot)
            }
        }
    }
}

/// Returns whether a connect failed, as opposed to an established connection.
fn failed_to_connect(class: sample::FailureClass) -> bool {
    use sample::FailureClass as Class;
    matches!(class, Class::Refused | Class::Unreachable | Class::SocketTimeout)
}
