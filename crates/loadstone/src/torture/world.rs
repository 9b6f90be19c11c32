//! The real world of a torture: sockets.

use conduit::{Io, TlsFactory};
use reactor::Reactor;
use torture::session::World;
use torture::talk::{Pause, Script, Stage, Talk};
use units::Nanos;

/// How long a signal may go unnoticed.
const SIGNAL_CHECK: Nanos = Nanos::from_millis(50);

pub(super) struct Sockets {
    reactor: Reactor,
    tls: Option<tls::Factory>,
}

impl Sockets {
    /// # Errors
    /// No descriptor is left.
    pub(super) fn new(tls: Option<tls::Factory>) -> std::io::Result<Sockets> {
        Ok(Sockets { reactor: Reactor::new(Nanos::ZERO)?, tls })
    }
}

impl World for Sockets {
    fn now(&mut self) -> Nanos {
        self.reactor.now()
    }

    fn talk(&mut self, scripts: Vec<Script>) -> Vec<Talk> {
        let factory = self.tls.as_mut().map(|factory| factory as &mut dyn TlsFactory);
        let mut stage = Stage::new(factory);
        let places: Vec<usize> = scripts.into_iter().map(|script| stage.add(script)).collect();
        let (io, mut ready) = (&mut self.reactor, Vec::new());
        while let Pause::Until(at) = stage.turn(io) {
            let nap = io.now() + SIGNAL_CHECK;
            io.wait(at.min(nap), &mut ready);
            for event in &ready {
                stage.handle(io, *event);
            }
            if crate::signals::caught() > 0 {
                stage.abandon(io);
                break;
            }
        }
        let mut talks = stage.finished();
        talks.sort_by_key(|(place, _)| places.iter().position(|known| known == place));
        talks.into_iter().map(|(_, talk)| talk).collect()
    }

    fn pause(&mut self, span: Nanos) {
        let mut ready = Vec::new();
        let until = self.reactor.now() + span;
        while self.reactor.now() < until && crate::signals::caught() == 0 {
            self.reactor.wait(until, &mut ready);
        }
    }

    fn interrupted(&self) -> bool {
        crate::signals::caught() > 0
    }
}
