//! Waits until the target is idle between steps. Instead of sleeping, it checks that our sockets
//! are closed on both sides, and that a plain call is as fast as before the first step.

use crate::exit::Failure;
use conduit::Peer;
use engine::Setup;
use session::{PlainCall, Session, unless_interrupted};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use units::Nanos;

/// Number of calls before the first step; the slowest is the reference for later ones.
const CALLS_BEFORE: usize = 3;
/// Factor for "as fast as before": a plain call takes at most this many times the slowest reference
/// call, or this much longer.
const FACTOR: u64 = 2;
const SLACK: Nanos = Nanos::from_millis(2);
/// Pause between two checks, growing from the first to the last.
const PAUSES: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(200));
/// Statuses that request a later retry: the previous load may be the cause.
const LATER: [u16; 4] = [408, 425, 429, 503];

/// Reference measurements of an idle target.
pub(crate) struct Rest {
    setup: Arc<Setup>,
    target: Arc<Session>,
    /// This machine's sockets to the target before the first step.
    sockets: usize,
    /// Duration of the slowest plain call.
    call: Nanos,
    addresses: Vec<SocketAddr>,
}

/// State of the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TargetRest {
    /// `failing`: the plain call got an error response.
    AtRest {
        failing: bool,
    },
    /// Not idle within the time limit; the step may still run.
    Restless,
    /// The server no longer answers, with the reason.
    Gone(String),
    Interrupted,
}

impl Rest {
    /// # Errors
    /// Fails for a plan that cannot be turned into calls. `None` means a signal arrived.
    pub(crate) fn new(target: &Arc<Session>) -> Result<Option<Rest>, Failure> {
        let endpoints = target.endpoints().to_vec();
        let setup = Setup::new(target.base().clone(), endpoints, 1, Nanos::ZERO)
            .map_err(|error| Failure::usage(error.to_string()))?;
        let peers = target.endpoints().iter().flat_map(|endpoint| &endpoint.peers);
        let addresses: Vec<SocketAddr> = peers.filter_map(Peer::address).collect();
        let mut rest = Rest {
            setup: Arc::new(setup),
            target: target.clone(),
            sockets: host::connections_to(&addresses),
            call: Nanos::ZERO,
            addresses,
        };
        for _ in 0..CALLS_BEFORE {
            let Some(found) = rest.call(target.base().timeouts.call)? else { return Ok(None) };
            rest.call = rest.call.max(found.call.took);
        }
        Ok(Some(rest))
    }

    /// Waits until the target is idle, for at most `limit`; returns how long that took.
    ///
    /// # Errors
    /// Fails for a plain call that cannot be attempted.
    pub(crate) fn wait(&self, limit: Nanos) -> Result<(TargetRest, Nanos), Failure> {
        let start = net::reactor::monotonic();
        let bound = Nanos(self.call.0.saturating_mul(FACTOR)).max(self.call + SLACK);
        let mut pause = PAUSES.0;
        loop {
            let open = host::connections_to(&self.addresses);
            let left = limit - (net::reactor::monotonic() - start).min(limit);
            let Some(found) = self.call(left.max(bound))? else {
                return Ok((TargetRest::Interrupted, net::reactor::monotonic() - start));
            };
            let passed = net::reactor::monotonic() - start;
            if !found.unreachable && found.call.took <= bound && open <= self.sockets {
                let failing = found.call.failure.is_some() && !LATER.contains(&found.call.status);
                return Ok((TargetRest::AtRest { failing }, passed));
            }
            if passed >= limit {
                return Ok((self.trouble(found), passed));
            }
            if !crate::signals::pause(pause) {
                return Ok((TargetRest::Interrupted, passed));
            }
            pause = (pause * 2).min(PAUSES.1);
        }
    }

    fn trouble(&self, found: PlainCall) -> TargetRest {
        if !found.unreachable {
            return TargetRest::Restless;
        }
        let why = found.call.failure.map_or_else(String::new, |(_, text)| text);
        TargetRest::Gone(why)
    }

    /// Makes one plain call; `None` if a signal arrived first.
    fn call(&self, patience: Nanos) -> Result<Option<PlainCall>, Failure> {
        let (setup, target) = (self.setup.clone(), self.target.clone());
        let body = move || target.plain_call(setup.targets.template(0), patience);
        unless_interrupted("probe", "the thread of a plain call", body)?.transpose()
    }
}
