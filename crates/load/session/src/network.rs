//! The network that the connections of a run use.

use crate::judge::Judge;
use crate::over_quic::{self, Carrier};
use crate::own_stack;
use crate::path::EmulatedPath;
use crate::shared_connections::SharedConnections;
use crate::sockets::SocketLoop;
use crate::sut::SutTarget;
use crate::watcher::Watcher;
use anyhow::Result;
use engine::{Crowd, Endpoint, PacedReads, Setup};
use eventloop::Network as WorkerNetwork;
use net::reactor::{Reactor, RingReactor};
use ownstack::{Handover, OwnNetwork, OwnStack, XdpHook};
use plan::{Plan, StackChoice};
use record::run::RunReport;
use sample::{BudgetFacts, PathFacts, StackFacts};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use units::Nanos;

/// The network of a session.
#[derive(Clone, Debug)]
pub enum Network {
    /// The kernel's sockets in this host's network.
    Kernel(SocketLoop),
    /// The kernel's sockets with an emulated path.
    Path(Arc<EmulatedPath>, SocketLoop),
    /// Loadstone's own TCP, which emulates paths itself.
    OwnStack(Arc<OwnNetwork>),
    /// Other machines, each with its own network.
    Fleet(Arc<dyn Fleet>),
}

/// Connections of a worker over the kernel's sockets.
#[derive(Debug)]
pub(crate) enum ConnectionKind {
    Tcp,
    Quic(Carrier),
    /// WebSockets share connections of HTTP/2.
    Shared(SharedConnections),
    /// WebSockets share connections of HTTP/3.
    SharedQuic(SharedConnections, Carrier),
    /// Each reads this many bytes per second.
    SlowReads(u32),
}

impl ConnectionKind {
    pub(crate) fn new(plan: &Plan, tls: Option<&net::tls::Client>) -> ConnectionKind {
        let carrier = tls.and_then(|client| over_quic::carrier(plan, client));
        match (carrier, SharedConnections::new(plan, tls), plan.websocket.read_rate) {
            (Some(carrier), Some(shared), _) => ConnectionKind::SharedQuic(shared, carrier),
            (Some(carrier), None, _) => ConnectionKind::Quic(carrier),
            (None, Some(shared), _) => ConnectionKind::Shared(shared),
            (None, None, Some(rate)) if plan.is_websocket() => ConnectionKind::SlowReads(rate),
            (None, None, _) => ConnectionKind::Tcp,
        }
    }
}

/// A run for the machines of a fleet.
#[derive(Debug)]
pub struct FleetTask<'a> {
    pub plan: &'a Plan,
    pub endpoints: &'a [Endpoint],
    /// Values that the setup of journeys captured.
    pub captured: &'a BTreeMap<String, String>,
    /// The server whose resources are watched from here.
    pub sut: Option<&'a SutTarget>,
    pub judge: Judge,
}

/// Machines that run a plan instead of this one.
pub trait Fleet: std::fmt::Debug + Send + Sync {
    /// Checks that the machines can and may run the plan; returns its use of the budgets.
    ///
    /// # Errors
    /// Fails if the plan needs a feature that works on one machine only, or exceeds the terms.
    fn admit(&self, plan: &Plan) -> Result<Vec<BudgetFacts>>;

    /// Runs the plan once on all machines, and fills in the measurements.
    ///
    /// # Errors
    /// Fails if one of the machines cannot or may not run the plan, or is lost before the start.
    fn measure(
        &self,
        task: &FleetTask<'_>,
        watch: &mut dyn FnMut(&Setup) -> Box<dyn Watcher>,
        run: &mut RunReport,
    ) -> Result<()>;
}

impl Default for Network {
    fn default() -> Network {
        Network::Kernel(SocketLoop::default())
    }
}

impl Network {
    /// Returns the emulated path through which sockets are opened.
    pub(crate) fn route(&self) -> Option<&Arc<EmulatedPath>> {
        match self {
            Network::Path(route, _) => Some(route),
            Network::Kernel(_) | Network::OwnStack(_) | Network::Fleet(_) => None,
        }
    }

    /// Returns the devices of the program's own TCP.
    pub(crate) fn own(&self) -> Option<&Arc<OwnNetwork>> {
        match self {
            Network::OwnStack(own) => Some(own),
            Network::Kernel(_) | Network::Path(..) | Network::Fleet(_) => None,
        }
    }

    /// Returns the name of the driver in reports. For a fleet it is unknown here.
    pub(crate) fn name(&self, plan: &Plan) -> &'static str {
        let sockets = match self {
            Network::OwnStack(own) => match own.handover() {
                Handover::Batches => return "own TCP over TUN by io_uring",
                Handover::Xdp(XdpHook::Native) => return "own TCP over AF_XDP, native",
                Handover::Xdp(XdpHook::Generic) => return "own TCP over AF_XDP, generic",
                _ => SocketLoop::default(),
            },
            Network::Fleet(_) if plan.driver.stack == StackChoice::KernelBatches => {
                return "kernel TCP";
            }
            Network::Fleet(_) => SocketLoop::default(),
            Network::Kernel(sockets) | Network::Path(_, sockets) => *sockets,
        };
        if plan.driver.stack.is_own() { "own TCP over TUN" } else { sockets.name() }
    }

    /// Returns the kinds of clients among the users, if the plan has them.
    pub(crate) fn crowd(&self, plan: &Plan) -> Option<Crowd> {
        match self {
            Network::Path(route, _) => route.crowd(plan),
            Network::OwnStack(own) => own_stack::crowd(own, plan),
            Network::Kernel(_) | Network::Fleet(_) => None,
        }
    }

    /// Returns figures of the path and of the program's own TCP since the last call.
    ///
    /// # Errors
    /// Fails if the forwarder of the path has ended.
    pub(crate) fn facts(&self) -> Result<(Option<PathFacts>, Option<StackFacts>)> {
        Ok(match self {
            Network::Path(route, _) => (Some(route.facts()?), None),
            Network::OwnStack(own) => {
                let (stack, path) = own.facts();
                (path, Some(stack))
            }
            Network::Kernel(_) | Network::Fleet(_) => (None, None),
        })
    }

    /// Returns the connections of one worker, made on the thread that uses them.
    pub(crate) fn of_worker(
        &self,
        id: u32,
        seed: u64,
        spin: Nanos,
        kind: ConnectionKind,
    ) -> io::Result<WorkerNetwork> {
        let sockets = match self {
            Network::OwnStack(own) => return Ok(over_own(own.worker(id, seed, spin)?, kind)),
            Network::Kernel(sockets) | Network::Path(_, sockets) => *sockets,
            Network::Fleet(_) => SocketLoop::default(),
        };
        Ok(match (kind, sockets) {
            (ConnectionKind::Quic(carrier), _) => {
                over_quic::network(carrier.wrap(Reactor::new(spin)?))
            }
            (ConnectionKind::SharedQuic(shared, carrier), _) => {
                over_quic::shared_network(shared.wrap(carrier.wrap(Reactor::new(spin)?)))
            }
            (ConnectionKind::Shared(shared), _) => {
                WorkerNetwork::Tunnels(Box::new(shared.wrap(Reactor::new(spin)?)))
            }
            (ConnectionKind::SlowReads(bytes_per_s), _) => {
                let io = PacedReads::new(Reactor::new(spin)?, f64::from(bytes_per_s));
                WorkerNetwork::Paced(Box::new(io))
            }
            (ConnectionKind::Tcp, SocketLoop::Ring) => {
                WorkerNetwork::Ring(Box::new(RingReactor::new(spin)?))
            }
            (ConnectionKind::Tcp, SocketLoop::Epoll) => WorkerNetwork::Sockets(Reactor::new(spin)?),
        })
    }
}

/// Returns the connections of a worker over the program's own TCP.
fn over_own(io: OwnStack, kind: ConnectionKind) -> WorkerNetwork {
    match kind {
        ConnectionKind::Shared(shared) => WorkerNetwork::OwnTunnels(Box::new(shared.wrap(io))),
        ConnectionKind::SlowReads(bytes_per_s) => {
            WorkerNetwork::OwnPaced(Box::new(PacedReads::new(io, f64::from(bytes_per_s))))
        }
        // unreachable for QUIC: plan validation refuses HTTP/3 over the own stack
        ConnectionKind::Tcp | ConnectionKind::Quic(_) | ConnectionKind::SharedQuic(..) => {
            WorkerNetwork::Own(Box::new(io))
        }
    }
}
