//! Tokens in the simulated world: an additional machine that acts like the program's token thread.

use crate::world::{SimIo, World};
use conduit::Peer;
use engine::exchange::{Exchange, Pause, Request};
use engine::token::Tokens;
use plan::Plan;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use units::Nanos;

/// Requests tokens while the workers run.
pub(crate) struct TokenMachine {
    pub(crate) tokens: Arc<Tokens>,
    io: SimIo,
    /// The requests in flight: their tokens by row, and when they were sent.
    asked: Option<(Exchange<'static>, Vec<usize>, Nanos)>,
}

impl TokenMachine {
    /// Creates the machine and requests the first tokens. `worker`: a number that no worker has.
    pub(crate) fn new(
        plan: &Plan,
        world: &Rc<RefCell<World>>,
        worker: u32,
    ) -> Option<TokenMachine> {
        let tokens = Tokens::new(plan).expect("a test's plan is valid")?;
        let io = SimIo { world: world.clone(), worker };
        let mut machine = TokenMachine { tokens: Arc::new(tokens), io, asked: None };
        machine.tokens.provide(plan.token_count());
        loop {
            let wake = machine.turn();
            let now = world.borrow().now();
            if machine.tokens.are_ready(now) || machine.tokens.lost(now).is_some() {
                break;
            }
            if !machine.handle() {
                let next = world.borrow().next_event();
                world.borrow_mut().advance(next.min(wake));
            }
        }
        Some(machine)
    }

    /// Processes everything that is due; returns when the next item is due.
    pub(crate) fn turn(&mut self) -> Nanos {
        loop {
            let now = self.io.world.borrow().now();
            if self.asked.is_none() {
                let rows = self.tokens.take_due(now);
                if rows.is_empty() {
                    return self.tokens.next_due();
                }
                let requests = rows.iter().map(|_| self.request()).collect();
                let machine = Exchange::new(requests, Nanos::from_secs(5), None);
                self.asked = Some((machine, rows, now));
            }
            let Some((machine, ..)) = &mut self.asked else { continue };
            if let Pause::Until(wake) = machine.turn(&mut self.io) {
                return wake;
            }
            let Some((machine, rows, sent)) = self.asked.take() else { continue };
            for (row, heard) in rows.into_iter().zip(machine.finish()) {
                self.tokens.answered(row, &heard, sent, now);
            }
        }
    }

    fn request(&self) -> Request {
        let asked = self.tokens.request();
        Request {
            peers: vec![Peer::Tcp(([127, 0, 0, 1], 1).into())],
            tls_name: None,
            tunnel: None,
            message: asked.message,
            timeout: asked.timeout,
        }
    }

    /// Passes on pending readiness; returns false if there was none.
    pub(crate) fn handle(&mut self) -> bool {
        let now = self.io.world.borrow().now();
        self.io.world.borrow_mut().advance(now);
        let ready = self.io.world.borrow_mut().take_ready(self.io.worker);
        let Some((machine, ..)) = &mut self.asked else { return false };
        for event in &ready {
            machine.handle(&mut self.io, *event);
        }
        !ready.is_empty()
    }
}
