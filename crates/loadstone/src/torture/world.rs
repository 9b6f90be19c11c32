//! The real world of a torture: sockets.

use conduit::{Io, TlsFactory};
use reactor::Reactor;
use torture::safety::Governor;
use torture::session::{Stop, World};
use torture::talk::{Director, Stage, play};
use units::Nanos;

/// How long a signal may go unnoticed.
const SIGNAL_CHECK: Nanos = Nanos::from_millis(50);

pub(super) struct Sockets {
    reactor: Reactor,
    tls: Option<tls::Factory>,
    governor: Governor,
}

impl Sockets {
    /// # Errors
    /// No descriptor is left.
    pub(super) fn new(tls: Option<tls::Factory>, governor: Governor) -> std::io::Result<Sockets> {
        Ok(Sockets { reactor: Reactor::new(Nanos::ZERO)?, tls, governor })
    }
}

impl World for Sockets {
    fn now(&mut self) -> Nanos {
        self.reactor.now()
    }

    fn play(&mut self, director: &mut dyn Director) {
        let factory = self.tls.as_mut().map(|factory| factory as &mut dyn TlsFactory);
        let mut stage = Stage::new(factory, &mut self.governor);
        play(&mut self.reactor, &mut stage, director, &mut |io, until| {
            let (mut ready, nap) = (Vec::new(), io.now() + SIGNAL_CHECK);
            io.wait(until.min(nap), &mut ready);
            (crate::signals::caught() == 0).then_some(ready)
        });
    }

    fn pause(&mut self, span: Nanos) {
        let mut ready = Vec::new();
        let until = self.reactor.now() + span;
        while self.reactor.now() < until && crate::signals::caught() == 0 {
            self.reactor.wait(until, &mut ready);
        }
    }

    fn governor(&mut self) -> &mut Governor {
        &mut self.governor
    }

    fn stopped(&self) -> Option<Stop> {
        let signal = (crate::signals::caught() > 0).then_some(Stop::Interrupted);
        signal.or_else(|| self.governor.stopped().cloned())
    }
}
