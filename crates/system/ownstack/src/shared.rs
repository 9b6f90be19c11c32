//! State shared by the workers of a run: devices, clients behind emulated paths, and the counters
//! of all.

use crate::OwnStack;
use crate::addresses::AddressPart;
use crate::links::Links;
use crate::port::{LentLink, LinkHome, PacketPort};
use crate::uring;
use crate::xdp::{XdpAsk, XdpDevice, XdpHook, XdpTrouble};
use net::reactor::monotonic;
use netpath::{
    CommonLanes, LaneClients, Lanes, PacketDevice, PacketKind, PathTrouble, Tally, later,
};
use rustix::fd::OwnedFd;
use sample::{PathFacts, StackFacts};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::{fmt, io};
use tcp::{Checksums, Sources, TcpSettings, TcpStack};
use units::{Nanos, Purpose, Seed};
use wan::Population;

/// Requirements on a network.
#[derive(Clone, Debug, PartialEq)]
pub struct NetworkRequest {
    /// Threads with connections, each with its own device.
    pub workers: u32,
    /// Determines the kind of each client.
    pub seed: u64,
    /// Emulated paths of all packets.
    pub paths: Option<InsidePaths>,
    /// First local address and prefix length; `None` for a free part of 198.18.0.0/16. Clients
    /// behind emulated paths use IPv4.
    pub prefix: Option<(IpAddr, u8)>,
    /// Batching of packets, if the kernel supports it.
    pub batches: BatchUse,
    /// TCP settings; their MTU is that of the device.
    pub tcp: TcpSettings,
    /// The Ethernet device used instead of TUN devices; without emulated paths.
    pub xdp: Option<XdpAsk>,
}

/// Condition under which packets are batched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchUse {
    Never,
    /// While many arrive together, if the kernel supports it.
    WherePays,
    Always,
}

/// Method of exchanging packets with the devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Handover {
    /// One system call per packet, as requested or required by emulated paths.
    Calls,
    /// One system call per packet, and io_uring while many arrive together.
    ByNumber,
    /// All packets of a turn at once, with io_uring.
    Batches,
    /// One system call per packet, because the kernel does not support more; with the reason.
    Fallback(String),
    /// Through AF_XDP, bypassing the kernel's network stack.
    Xdp(XdpHook),
}

/// Reason why there is no network.
#[derive(Debug)]
pub enum NetworkTrouble {
    /// Trouble with TUN devices.
    Path(PathTrouble),
    /// Trouble with a device through AF_XDP.
    Xdp(XdpTrouble),
}

impl fmt::Display for NetworkTrouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NetworkTrouble::Path(trouble) => trouble.fmt(f),
            NetworkTrouble::Xdp(trouble) => trouble.fmt(f),
        }
    }
}

impl std::error::Error for NetworkTrouble {}

impl Handover {
    /// Returns the capabilities of TUN devices here.
    fn new(ask: &NetworkRequest) -> Handover {
        // on a link each packet has its own times
        if ask.batches == BatchUse::Never || ask.paths.is_some() {
            return Handover::Calls;
        }
        match (uring::probe(), ask.batches) {
            (Ok(()), BatchUse::Always) => Handover::Batches,
            (Ok(()), _) => Handover::ByNumber,
            (Err(error), BatchUse::Always) => {
                Handover::Fallback(net::reactor::ring_unavailable_reason(&error, "Linux 6.7"))
            }
            (Err(_), _) => Handover::Calls,
        }
    }
}

/// Emulated paths in this process: no forwarder, no namespace.
#[derive(Clone, Debug, PartialEq)]
pub struct InsidePaths {
    pub population: Population,
    /// Number of clients with their own links: one shared by all workers, or a multiple of the
    /// workers, so that each client belongs to one of them and has an address.
    pub clients: u32,
}

/// The network of a run; removed with the last worker and this handle.
#[derive(Debug)]
pub struct OwnNetwork {
    ground: Arc<Ground>,
    /// The addresses of each worker.
    parts: Vec<AddressPart>,
    ask: NetworkRequest,
    /// Index of the kind of each client.
    dealt: Vec<u32>,
    reported: Mutex<NetworkCounts>,
    /// The links shared by the workers, while any worker exists.
    common: Mutex<Weak<CommonLanes>>,
}

/// Devices that consecutive networks can use.
#[derive(Debug)]
pub struct Ground {
    devices: Devices,
    handover: Handover,
    /// The requirements they were created for.
    ask: NetworkRequest,
    /// Number of restarts of each worker's connections: for single calls, for a repetition, for a
    /// step.
    begun: Vec<AtomicU64>,
}

#[derive(Debug)]
enum Devices {
    /// One device per worker.
    Tun(Vec<PacketDevice>),
    /// One device shared by all, with a link for each worker, stored here while unused.
    Xdp(XdpDevice, Vec<Arc<LinkHome>>),
}

/// Counters of finished workers not yet fetched.
#[derive(Debug, Default)]
struct NetworkCounts {
    counts: StackFacts,
    carried: Option<Tally>,
    /// Seed of the links that carried the packets.
    seed: u64,
}

impl OwnNetwork {
    /// Creates the devices, or attaches to one, in the network namespace of the calling thread.
    ///
    /// # Errors
    /// Fails if this machine or user does not support it, with the fix.
    pub fn open(ask: NetworkRequest) -> Result<Arc<OwnNetwork>, NetworkTrouble> {
        OwnNetwork::on(&Ground::open(&ask)?, ask)
    }

    /// Returns a network over existing, suitable devices; no other network uses them meanwhile.
    ///
    /// # Errors
    /// Fails if a worker has fewer addresses than clients.
    pub fn on(
        ground: &Arc<Ground>,
        ask: NetworkRequest,
    ) -> Result<Arc<OwnNetwork>, NetworkTrouble> {
        let mut parts = ground.parts();
        parts.truncate(ask.workers.max(1) as usize);
        let clients = ask.paths.as_ref().map_or(0, |paths| paths.clients);
        let room = parts.iter().map(|part| part.addresses).min().unwrap_or(0);
        if clients.div_ceil(parts.len().max(1) as u32) > room {
            let trouble = PathTrouble::TooManyClients { clients, workers: ask.workers, room };
            return Err(NetworkTrouble::Path(trouble));
        }
        let dealt =
            ask.paths.as_ref().map(|paths| paths.population.assign_kinds(clients, Seed(ask.seed)));
        let dealt = dealt.unwrap_or_default();
        let reported = Mutex::default();
        let common = Mutex::default();
        let ground = ground.clone();
        Ok(Arc::new(OwnNetwork { ground, parts, ask, dealt, reported, common }))
    }

    /// Returns the devices of the network.
    pub fn ground(&self) -> &Arc<Ground> {
        &self.ground
    }

    /// Makes sure that packets to a server have a next hop, if it is up to us.
    ///
    /// # Errors
    /// Fails if the server is this host, or the next hop to it does not reply.
    pub fn reach(&self, server: IpAddr) -> Result<(), NetworkTrouble> {
        let Devices::Xdp(_, links) = &self.ground.devices else { return Ok(()) };
        for link in links {
            let mut link = link.lock().unwrap_or_else(PoisonError::into_inner);
            // the current user of the link resolves it itself
            let reached = link.as_mut().map_or(Ok(()), |link| link.reach(server));
            reached.map_err(NetworkTrouble::Xdp)?;
        }
        Ok(())
    }

    /// Returns how the packets of workers are exchanged.
    pub fn handover(&self) -> &Handover {
        &self.ground.handover
    }

    /// Returns the requirements of the network.
    pub fn request(&self) -> &NetworkRequest {
        &self.ask
    }

    /// Returns the device names.
    pub fn devices(&self) -> impl Iterator<Item = &str> {
        let devices = match &self.ground.devices {
            Devices::Tun(devices) => devices.len(),
            Devices::Xdp(..) => 1,
        };
        self.parts.iter().take(devices).map(|part| part.device.as_str())
    }

    /// Returns the number of queues of a device through AF_XDP, all of which are used; `None` for
    /// TUN devices.
    pub fn queues(&self) -> Option<usize> {
        match &self.ground.devices {
            Devices::Xdp(device, _) => Some(device.queues),
            Devices::Tun(_) => None,
        }
    }

    /// Returns the first and the last local address.
    pub fn sources(&self) -> (IpAddr, IpAddr) {
        let nobody = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let first = self.parts.first().map_or(nobody, |part| part.first);
        let last = self.parts.last().map_or(nobody, |part| {
            let addresses = self.addresses(part, self.parts.len() as u32 - 1);
            later(part.first, addresses.max(1) - 1)
        });
        (first, last)
    }

    /// Returns the first client address of each worker, if it is IPv4, as on emulated paths.
    pub fn firsts(&self) -> Arc<[Ipv4Addr]> {
        self.parts.iter().filter_map(|part| ipv4(part.first)).collect()
    }

    /// Returns the index of the population kind of each client; empty without paths.
    pub fn client_kinds(&self) -> &[u32] {
        &self.dealt
    }

    /// Returns the number of addresses of worker `id`.
    fn addresses(&self, part: &AddressPart, id: u32) -> u32 {
        match &self.ask.paths {
            None => part.addresses,
            Some(_) if self.has_common_links() => 1,
            Some(_) => self.clients_of(id).count() as u32,
        }
    }

    /// Returns the kinds of the clients of worker `id`.
    fn clients_of(&self, id: u32) -> impl Iterator<Item = u32> {
        self.dealt.iter().skip(id as usize).step_by(self.parts.len().max(1)).copied()
    }

    /// Returns the connections of worker `id`, with its own device and addresses, for the calling
    /// thread only. `seed` is that of the links.
    ///
    /// # Errors
    /// Fails if there is no such worker, or no descriptor or memory is left.
    pub fn worker(self: &Arc<Self>, id: u32, seed: u64, spin: Nanos) -> io::Result<OwnStack> {
        let port = match (&self.ground.devices, self.handover()) {
            (Devices::Tun(devices), Handover::Batches) => {
                PacketPort::in_batches(queue(devices, id)?, true)?
            }
            (Devices::Tun(devices), Handover::ByNumber) => {
                // without memory for another ring (RLIMIT_MEMLOCK) the ring was not requested
                // explicitly
                PacketPort::in_batches(queue(devices, id)?, false).or_else(|_| self.port(id))?
            }
            _ => self.port(id)?,
        };
        self.open_stack(port, id, seed, spin)
    }

    /// Returns the connections of the first worker for single calls, on any thread; that worker
    /// must not exist meanwhile.
    ///
    /// # Errors
    /// Fails like [`OwnNetwork::worker`].
    pub fn caller(self: &Arc<Self>, seed: u64) -> io::Result<OwnStack> {
        self.open_stack(self.port(0)?, 0, seed, Nanos::ZERO)
    }

    /// Returns the packets of worker `id`, without batches. The device or link is kept for the next
    /// repetition of the run.
    fn port(&self, id: u32) -> io::Result<PacketPort> {
        match &self.ground.devices {
            Devices::Tun(devices) => queue(devices, id).map(PacketPort::by_calls),
            Devices::Xdp(_, links) => {
                let lent = links.get(id as usize).and_then(LentLink::take);
                lent.map(PacketPort::by_xdp).ok_or_else(no_device)
            }
        }
    }

    fn open_stack(
        self: &Arc<Self>,
        port: PacketPort,
        id: u32,
        seed: u64,
        spin: Nanos,
    ) -> io::Result<OwnStack> {
        let part = self.parts.get(id as usize).ok_or_else(no_device)?;
        let sources = Sources {
            first: part.first,
            addresses: self.addresses(part, id),
            port_first: 1_024,
            port_last: u16::MAX,
        };
        let (settings, checksums) = self.ground.manner(&self.ask.tcp);
        let stack =
            TcpStack::new(settings, sources, checksums, self.ground.draw(id, self.ask.seed));
        let paths = self.ask.paths.as_ref().zip(ipv4(part.first));
        let links = paths.map(|(paths, first)| self.links(paths, first, id, seed));
        self.lock().seed = seed;
        Ok(OwnStack::new(stack, port, links, (self.clone(), id), spin))
    }

    /// Returns the number of packets for worker `id` dropped because the queue of its TUN device
    /// was full, since the device was created.
    pub(crate) fn dropped(&self, id: u32) -> u64 {
        match &self.ground.devices {
            Devices::Tun(devices) => devices.get(id as usize).map_or(0, PacketDevice::dropped),
            // a link through AF_XDP reports its own losses
            Devices::Xdp(..) => 0,
        }
    }

    /// Returns the links of a worker whose addresses start at `first`.
    fn links(&self, paths: &InsidePaths, first: Ipv4Addr, id: u32, seed: u64) -> Links {
        let workers = self.parts.len() as u32;
        let common = self.has_common_links();
        let mine = LaneClients {
            first,
            kinds: if common { self.dealt.clone() } else { self.clients_of(id).collect() },
            numbers: (u64::from(if common { 0 } else { id }), u64::from(workers)),
            paths: paths.population.parts.iter().map(|part| part.path.clone()).collect(),
        };
        let now = monotonic();
        if !common {
            return Links::Alone(Lanes::new(mine, seed, now));
        }
        let mut shared_links = self.common.lock().unwrap_or_else(PoisonError::into_inner);
        let links =
            shared_links.upgrade().unwrap_or_else(|| CommonLanes::new(mine, workers, seed, now));
        *shared_links = Arc::downgrade(&links);
        Links::Common { share: links.share(id, now), address: first }
    }

    /// Returns whether several workers are one client, behind one pair of links.
    fn has_common_links(&self) -> bool {
        self.ask.paths.as_ref().is_some_and(|paths| paths.clients == 1) && self.parts.len() > 1
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, NetworkCounts> {
        self.reported.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, counts: StackFacts, carried: Option<Tally>) {
        let mut reported = self.lock();
        reported.counts += counts;
        match (&mut reported.carried, carried) {
            (Some(sum), Some(more)) => sum.add(&more),
            (sum @ None, more) => *sum = more,
            (Some(_), None) => {}
        }
    }

    /// Returns the counters of the workers that finished since the last call: of TCP, and of the
    /// paths.
    pub fn facts(&self) -> (StackFacts, Option<PathFacts>) {
        let reported = std::mem::take(&mut *self.lock());
        let carried = reported.carried.zip(self.ask.paths.as_ref());
        let path = carried
            .map(|(tally, paths)| tally.facts(&paths.population, &self.dealt, reported.seed));
        (reported.counts, path)
    }
}

impl Ground {
    /// Creates devices, or attaches to one, for the requested number of workers, in the network
    /// namespace of the calling thread.
    ///
    /// # Errors
    /// Fails if this machine or user does not support it, with the fix.
    pub fn open(ask: &NetworkRequest) -> Result<Arc<Ground>, NetworkTrouble> {
        let (devices, handover) = match &ask.xdp {
            Some(xdp) => {
                let opened = XdpDevice::open(xdp, ask.workers.max(1));
                let (device, links) = opened.map_err(NetworkTrouble::Xdp)?;
                let handover = Handover::Xdp(device.hook);
                let home = |link| Arc::new(Mutex::new(Some(Box::new(link))));
                (Devices::Xdp(device, links.into_iter().map(home).collect()), handover)
            }
            None => {
                // losses and delays apply to packets as on a wire, not to one of 64 KiB
                let real = ask.paths.is_some();
                let kind = if real { PacketKind::Real } else { PacketKind::Virtio };
                let devices = PacketDevice::open(ask.workers.max(1), kind, ask.prefix);
                (Devices::Tun(devices.map_err(NetworkTrouble::Path)?), Handover::new(ask))
            }
        };
        let begun = (0..ask.workers.max(1)).map(|_| AtomicU64::new(0)).collect();
        Ok(Arc::new(Ground { devices, handover, ask: ask.clone(), begun }))
    }

    /// Returns the seed of a worker's next connections. Stacks of later runs do not start with the
    /// ports of earlier ones: a server may not have closed those yet, and would reply to the first
    /// SYN with a challenge ACK (RFC 5961).
    fn draw(&self, id: u32, seed: u64) -> Seed {
        let begun =
            self.begun.get(id as usize).map_or(0, |all| all.fetch_add(1, Ordering::Relaxed));
        Seed(Seed(seed).stream(Purpose::Paths, begun).next_u64())
    }

    /// Returns whether a network can use these devices: same kind and addresses, and a part for
    /// each worker. Paths, clients, TCP settings and seed may differ.
    pub fn can_serve(&self, ask: &NetworkRequest) -> bool {
        let existing = &self.ask;
        existing.prefix == ask.prefix
            && existing.batches == ask.batches
            && existing.xdp == ask.xdp
            && (ask.xdp.is_some() || existing.paths.is_some() == ask.paths.is_some())
            && existing.workers >= ask.workers
    }

    /// Returns the maximum number of workers of a network over these devices: each needs a part of
    /// the addresses.
    pub fn threads(&self) -> u32 {
        self.ask.workers.max(1)
    }

    /// Returns the addresses that the user named, of which these devices have the parts.
    pub fn prefix(&self) -> Option<(IpAddr, u8)> {
        self.ask.prefix
    }

    fn parts(&self) -> Vec<AddressPart> {
        match &self.devices {
            Devices::Tun(devices) => devices
                .iter()
                .map(|device| AddressPart {
                    device: device.name.clone(),
                    first: device.first,
                    addresses: device.addresses,
                })
                .collect(),
            Devices::Xdp(device, _) => device.parts.clone(),
        }
    }

    /// Returns TCP's settings over it, and which side computes its checksums.
    fn manner(&self, asked: &TcpSettings) -> (TcpSettings, Checksums) {
        let settings = asked.clone();
        match &self.devices {
            Devices::Xdp(device, _) => {
                (TcpSettings { mtu: device.mtu, ..settings }, Checksums::Ours)
            }
            Devices::Tun(devices) => match devices.first().map(|device| device.kind) {
                Some(PacketKind::Real) => (settings, Checksums::Ours),
                Some(PacketKind::Virtio) | None => (settings, Checksums::Device),
            },
        }
    }
}

fn ipv4(address: IpAddr) -> Option<Ipv4Addr> {
    match address {
        IpAddr::V4(address) => Some(address),
        IpAddr::V6(_) => None,
    }
}

fn queue(devices: &[PacketDevice], id: u32) -> io::Result<OwnedFd> {
    devices.get(id as usize).ok_or_else(no_device)?.queue.try_clone()
}

fn no_device() -> io::Error {
    io::Error::other("there is no network device for this worker")
}
