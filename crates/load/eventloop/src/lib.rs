//! The loop of a worker thread over each kind of network. The engine's worker is generic over its
//! network. This crate compiles it once for the real networks, and optimizes it in every profile,
//! unlike the rest of the program. It starts no thread and opens no connection.
#![forbid(unsafe_code)]

use conduit::{Io, Peer};
use engine::{Link, PacedReads, ScenarioWorkers, WithHeldConnections, Worker, drive};
use net::reactor::{Reactor, RingReactor};
use ownstack::OwnStack;
use sample::HeldFacts;

/// The connections of one worker thread.
#[derive(Debug)]
pub enum Network {
    /// Kernel sockets with epoll.
    Sockets(Reactor),
    /// Kernel sockets with io_uring.
    Ring(Box<RingReactor>),
    /// The program's own TCP.
    Own(Box<OwnStack>),
    /// Sockets of the kernel that are read slowly.
    Paced(Box<PacedReads<Reactor>>),
    /// Connections of the program's own TCP that are read slowly.
    OwnPaced(Box<PacedReads<OwnStack>>),
    /// WebSockets as streams of HTTP/2 connections over sockets of the kernel.
    Tunnels(Box<tunnel::Tunnels<Reactor>>),
    /// WebSockets as streams of HTTP/2 connections over the program's own TCP.
    OwnTunnels(Box<tunnel::Tunnels<OwnStack>>),
    /// QUIC over kernel datagram sockets.
    #[cfg(feature = "quic")]
    Quic(Box<quic::Quic<Reactor>>),
    /// WebSockets as streams of HTTP/3 connections.
    #[cfg(feature = "quic")]
    QuicTunnels(Box<tunnel::Tunnels<quic::Quic<Reactor>>>),
}

impl Network {
    fn boxed(self) -> Box<dyn Io> {
        match self {
            Network::Sockets(io) => Box::new(io),
            Network::Ring(io) => io,
            Network::Own(io) => io,
            Network::Paced(io) => io,
            Network::OwnPaced(io) => io,
            Network::Tunnels(io) => io,
            Network::OwnTunnels(io) => io,
            #[cfg(feature = "quic")]
            Network::Quic(io) => io,
            #[cfg(feature = "quic")]
            Network::QuicTunnels(io) => io,
        }
    }
}

/// Idle connections that are held open alongside the load.
#[derive(Clone, Debug)]
pub struct HeldCount {
    pub count: u32,
    /// Connections are made to each of these in turn.
    pub peers: Vec<Peer>,
}

/// Runs the loads of worker thread `id` to their ends, one worker for each load. With `scenarios`,
/// even a single load is counted by scenario. Returns the final state of the connections in `held`.
pub fn run(
    id: u32,
    mut workers: Vec<Worker>,
    scenarios: bool,
    network: Network,
    held: Option<HeldCount>,
    link: &mut dyn Link,
) -> Option<HeldFacts> {
    let Some(held) = held else {
        match workers.as_mut_slice() {
            [worker] if !scenarios => run_one(worker, network, link),
            _ => run_all(id, workers, scenarios, &mut *network.boxed(), link),
        }
        return None;
    };
    let mut io = network.boxed();
    let mut beside = WithHeldConnections::new(&mut *io, held.count, held.peers, true);
    run_all(id, workers, scenarios, &mut beside, link);
    Some(beside.facts())
}

/// Runs the usual case, for which the loop is compiled with each network so that its calls are
/// inlined.
fn run_one(worker: &mut Worker, network: Network, link: &mut dyn Link) {
    match network {
        Network::Sockets(mut io) => drive(worker, &mut io, link),
        Network::Ring(mut io) => drive(worker, &mut *io, link),
        Network::Own(mut io) => drive(worker, &mut *io, link),
        // virtual calls instead of one more copy of the engine
        Network::Paced(_) | Network::OwnPaced(_) | Network::Tunnels(_) | Network::OwnTunnels(_) => {
            let mut io = network.boxed();
            drive(worker, &mut &mut *io, link);
        }
        #[cfg(feature = "quic")]
        Network::Quic(mut io) => drive(worker, &mut *io, link),
        #[cfg(feature = "quic")]
        Network::QuicTunnels(_) => {
            let mut io = network.boxed();
            drive(worker, &mut &mut *io, link);
        }
    }
}

/// Runs several loads, or connections held during them. A virtual call for each read and write
/// costs less than another copy of the whole engine for every network.
fn run_all(
    id: u32,
    mut workers: Vec<Worker>,
    scenarios: bool,
    mut io: &mut dyn Io,
    link: &mut dyn Link,
) {
    match workers.as_mut_slice() {
        [worker] if !scenarios => drive(worker, &mut io, link),
        _ => drive(&mut ScenarioWorkers::new(id, workers), &mut io, link),
    }
}

#[cfg(test)]
mod tests;
