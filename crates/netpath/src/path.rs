//! A path that stands: two ends, the thread between them, and what it has counted.

use crate::device::{self, Furniture, Tun};
use crate::forward::{Ear, ForwardOrder, Forwarder, SPIN};
use crate::lanes::LaneClients;
use crate::namespace::Namespace;
use crate::tally::Tally;
use crate::trouble::PathTrouble;
use sample::PathFacts;
use std::net::Ipv4Addr;
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;
use units::{Nanos, Seed};
use wan::{CLIENTS_MAX, Population};

/// Where the server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FarEnd {
    /// In the calling thread's own network: the host's servers, for which the host gets a device.
    Here,
    /// In a new network, which holds nothing else.
    New,
}

/// What a path is to be.
#[derive(Clone, Debug)]
pub struct PathAsk {
    pub population: Population,
    /// Clients with an address and a link of their own, at least 1.
    pub clients: u32,
    pub seed: u64,
    pub far: FarEnd,
    /// The clients' network keeps 127.0.0.0/8 to itself; otherwise these addresses are the
    /// server's, so that its URL on the loopback is the right one at the clients' end too.
    pub own_loopback: bool,
}

/// A path that stands until it is dropped.
#[derive(Debug)]
pub struct NetPath {
    near: Namespace,
    far: Namespace,
    devices: [String; 2],
    population: Population,
    /// Row of each client's kind.
    dealt: Vec<u32>,
    seed: u64,
    first: Ipv4Addr,
    line: Line,
    thread: Option<JoinHandle<()>>,
    /// Packets that the devices had dropped when they were last asked.
    dropped: Mutex<u64>,
}

/// How the thread is spoken to.
#[derive(Debug)]
struct Line {
    orders: Sender<ForwardOrder>,
    called: Arc<AtomicBool>,
    bell: UnixDatagram,
}

impl Line {
    fn send(&self, order: ForwardOrder) {
        // the thread outlives the line unless it panicked, which joining it tells
        self.orders.send(order).ok();
        self.called.store(true, Ordering::Release);
        self.bell.send(&[0]).ok();
    }
}

/// One of the four parts of 198.18.0.0/16 (RFC 2544) for clients, and an address of 198.19.0.0/16
/// for the server's end.
#[derive(Clone, Copy)]
pub(crate) struct NetBlock(u8);

const BLOCKS: u8 = 4;
pub(crate) const CLIENTS_MASK: Ipv4Addr = Ipv4Addr::new(255, 255, 192, 0);
const LOOPBACK: (Ipv4Addr, Ipv4Addr) = (Ipv4Addr::new(127, 0, 0, 0), Ipv4Addr::new(255, 0, 0, 0));
const EVERYWHERE: (Ipv4Addr, Ipv4Addr) = (Ipv4Addr::UNSPECIFIED, Ipv4Addr::UNSPECIFIED);

impl NetBlock {
    pub(crate) fn network(self) -> Ipv4Addr {
        Ipv4Addr::new(198, 18, self.0 * 64, 0)
    }

    pub(crate) fn first_client(self) -> Ipv4Addr {
        Ipv4Addr::new(198, 18, self.0 * 64, 1)
    }

    pub(crate) fn server(self) -> Ipv4Addr {
        Ipv4Addr::new(198, 19, self.0, 1)
    }

    /// The first one that no route of the calling thread's network goes to.
    pub(crate) fn free() -> Option<NetBlock> {
        let table = std::fs::read_to_string("/proc/thread-self/net/route").unwrap_or_default();
        let routes = routes(&table);
        (0..BLOCKS).map(NetBlock).find(|block| {
            let (network, server) = (u32::from(block.network()), u32::from(block.server()));
            routes.iter().all(|(to, mask)| {
                let common = mask & u32::from(CLIENTS_MASK);
                *mask == 0 || ((network ^ to) & common != 0 && (server ^ to) & mask != 0)
            })
        })
    }
}

/// Destinations and masks of /proc/net/route.
fn routes(table: &str) -> Vec<(u32, u32)> {
    named_routes(table).into_iter().map(|(_, to, mask)| (to, mask)).collect()
}

/// The same with the devices that they lead through.
fn named_routes(table: &str) -> Vec<(&str, u32, u32)> {
    let field = |row: &[&str], at: usize| {
        let number = row.get(at).and_then(|hex| u32::from_str_radix(hex, 16).ok())?;
        Some(number.swap_bytes())
    };
    fn row(line: &str) -> Vec<&str> {
        line.split_whitespace().collect()
    }
    let read = |line| {
        let row: Vec<&str> = row(line);
        Some((*row.first()?, field(&row, 1)?, field(&row, 7)?))
    };
    table.lines().skip(1).filter_map(read).collect()
}

/// Who has addresses of a network already, in the calling thread's network: a route other than the
/// default one, or an address of this host. `None`: nobody.
pub(crate) fn taken(network: Ipv4Addr, mask: Ipv4Addr) -> Option<String> {
    let read = |name: &str| {
        std::fs::read_to_string(format!("/proc/thread-self/net/{name}")).unwrap_or_default()
    };
    let route = routed(&read("route"), network.to_bits(), mask.to_bits());
    route.or_else(|| local(&read("fib_trie"), network.to_bits(), mask.to_bits()))
}

fn routed(table: &str, network: u32, mask: u32) -> Option<String> {
    let overlaps = |to: u32, of: u32| of != 0 && (network ^ to) & mask & of == 0;
    let route = named_routes(table).into_iter().find(|(_, to, of)| overlaps(*to, *of));
    route.map(|(device, to, of)| {
        format!("a route to {}/{} goes through {device}", Ipv4Addr::from_bits(to), of.count_ones())
    })
}

/// Addresses of this host, by lines like `|-- 127.0.0.1` with `/32 host LOCAL` behind them.
fn local(trie: &str, network: u32, mask: u32) -> Option<String> {
    let mut latest = None;
    for line in trie.lines() {
        if let Some((_, address)) = line.split_once("|-- ") {
            latest = address.trim().parse::<Ipv4Addr>().ok();
        } else if line.contains("/32 host LOCAL")
            && let Some(address) = latest
            && address.to_bits() & mask == network
        {
            return Some(format!("{address} is an address of this host"));
        }
    }
    None
}

impl NetPath {
    /// Sets both ends up and starts to forward.
    ///
    /// # Errors
    /// What this machine or this user cannot do, each with the way out.
    pub fn open(ask: &PathAsk) -> Result<NetPath, PathTrouble> {
        let clients = ask.clients.clamp(1, CLIENTS_MAX);
        let block = match ask.far {
            FarEnd::Here => NetBlock::free().ok_or(PathTrouble::Addresses)?,
            FarEnd::New => NetBlock(0),
        };
        let (far, far_end) = far_end(ask.far, block)?;
        let (near, near_end) = Namespace::create(|| near_end(block, ask.own_loopback))?;
        let dealt = ask.population.deal(clients, Seed(ask.seed));
        let devices = [near_end.name.clone(), far_end.name.clone()];
        let (line, ear) = line()?;
        let inhabitants = LaneClients {
            first: block.first_client(),
            kinds: dealt.clone(),
            numbers: (0, 1),
            paths: ask.population.parts.iter().map(|part| part.path.clone()).collect(),
        };
        let spin = match std::thread::available_parallelism() {
            Ok(cores) if cores.get() > 1 => SPIN,
            _ => Nanos::ZERO,
        };
        let seed = ask.seed;
        let body = move || Forwarder::new([near_end, far_end], inhabitants, seed, spin, ear).run();
        let thread = std::thread::Builder::new().name("path".into()).spawn(body);
        let thread = thread.map_err(PathTrouble::other("cannot start a thread"))?;
        Ok(NetPath {
            near,
            far,
            devices,
            population: ask.population.clone(),
            dealt,
            seed,
            first: block.first_client(),
            line,
            thread: Some(thread),
            dropped: Mutex::new(0),
        })
    }

    /// Where the clients are.
    pub fn near(&self) -> &Namespace {
        &self.near
    }

    /// Where the server is.
    pub fn far(&self) -> &Namespace {
        &self.far
    }

    /// The name of the device at the server's end.
    pub fn far_device(&self) -> &str {
        &self.devices[1]
    }

    /// The address of the first client; those of the others follow it.
    pub fn first_client(&self) -> Ipv4Addr {
        self.first
    }

    /// The part of the population that each client belongs to.
    pub fn dealt(&self) -> &[u32] {
        &self.dealt
    }

    /// What has been counted since the path was opened or this was last called.
    ///
    /// # Errors
    /// The forwarder has ended, with its reason.
    pub fn facts(&self) -> Result<PathFacts, PathTrouble> {
        let (tell, told) = channel();
        self.line.send(ForwardOrder::Tell(tell));
        let silent = || std::io::Error::other("the forwarder is silent; this is a bug");
        let tally: Tally = told
            .recv_timeout(Duration::from_secs(10))
            .map_err(|_| PathTrouble::Other("the path".to_owned(), silent()))?;
        if let Some(why) = tally.broken {
            let broken = std::io::Error::other(why);
            return Err(PathTrouble::Other("the path has broken down".to_owned(), broken));
        }
        let kinds = self.population.parts.len() as u32;
        let count = |kind| self.dealt.iter().filter(|one| **one == kind).count() as u32;
        let counts: Vec<u32> = (0..kinds).map(count).collect();
        let mut facts = tally.facts(&self.population, &counts, self.seed);
        facts.overflowed += self.dropped_since()?;
        Ok(facts)
    }

    /// Packets that were lost in the devices' own queues since this was last called.
    fn dropped_since(&self) -> Result<u64, PathTrouble> {
        let [near, far] = &self.devices;
        let sum = self.near.within(|| Ok(device::dropped(near)))?
            + self.far.within(|| Ok(device::dropped(far)))?;
        let mut before = self.dropped.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(sum - std::mem::replace(&mut *before, sum).min(sum))
    }
}

impl Drop for NetPath {
    fn drop(&mut self) {
        self.line.send(ForwardOrder::Stop);
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

/// The end where the clients are, made in the calling thread's namespace.
fn near_end(block: NetBlock, own_loopback: bool) -> Result<Tun, PathTrouble> {
    let tun = Tun::make("path")?;
    let clients = (block.first_client(), CLIENTS_MASK);
    let mut routes = vec![EVERYWHERE];
    if own_loopback {
        device::loopback(&[(Ipv4Addr::LOCALHOST, LOOPBACK.1), clients])?;
    } else {
        // every address of the clients' network is one of this namespace, and 127.0.0.1 is none
        device::loopback(&[clients])?;
        routes.push(LOOPBACK);
    }
    device::widen();
    // the device's own address is the first client's: what chooses no source has that one
    device::furnish(&tun, &Furniture { address: block.first_client(), routes })?;
    Ok(tun)
}

fn far_end(far: FarEnd, block: NetBlock) -> Result<(Namespace, Tun), PathTrouble> {
    let furniture =
        Furniture { address: block.server(), routes: vec![(block.network(), CLIENTS_MASK)] };
    match far {
        FarEnd::Here => {
            let here = Namespace::here().map_err(PathTrouble::Namespace)?;
            let tun = Tun::make("loadstone%d")?;
            device::furnish(&tun, &furniture)?;
            Ok((here, tun))
        }
        FarEnd::New => Namespace::create(|| {
            let tun = Tun::make("path")?;
            device::loopback(&[(Ipv4Addr::LOCALHOST, LOOPBACK.1)])?;
            device::widen();
            device::furnish(&tun, &furniture)?;
            Ok(tun)
        }),
    }
}

fn line() -> Result<(Line, Ear), PathTrouble> {
    let (orders, inbox) = channel();
    let called = Arc::new(AtomicBool::new(false));
    let pair = || -> std::io::Result<(UnixDatagram, UnixDatagram)> {
        let (ring, bell) = UnixDatagram::pair()?;
        bell.set_nonblocking(true)?;
        Ok((ring, bell))
    };
    let (ring, bell) = pair().map_err(PathTrouble::other("cannot open a socket pair"))?;
    Ok((Line { orders, called: called.clone(), bell: ring }, Ear { orders: inbox, called, bell }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_of_the_kernels_table() {
        let table = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\n\
                     eth0\t00000000\t0100000A\t0003\t0\t0\t0\t00000000\t0\n\
                     loadstone0\t000012C6\t00000000\t0001\t0\t0\t0\t00C0FFFF\t0\n\
                     short\n";
        let found: Vec<(Ipv4Addr, Ipv4Addr)> =
            routes(table).into_iter().map(|(to, mask)| (to.into(), mask.into())).collect();
        assert_eq!(
            found,
            [
                (Ipv4Addr::UNSPECIFIED, Ipv4Addr::UNSPECIFIED),
                (Ipv4Addr::new(198, 18, 0, 0), Ipv4Addr::new(255, 255, 192, 0))
            ]
        );
    }

    #[test]
    fn addresses_that_are_somebodys_are_found() {
        let table = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\n\
                     eth0\t00000000\t0100000A\t0003\t0\t0\t0\t00000000\t0\n\
                     eth0\t0001090A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\n";
        let trie = "Local:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 10.7.0.2\n        /32 host LOCAL\n     |-- \
                    10.7.255.255\n        /32 link BROADCAST\n";
        let bits = |text: &str| text.parse::<Ipv4Addr>().expect("an address").to_bits();
        let mask = |bits: u8| !(u32::MAX >> bits);
        let through = Some("a route to 10.9.1.0/24 goes through eth0".to_owned());
        // what is wider than the route, and what is narrower
        assert_eq!(routed(table, bits("10.9.0.0"), mask(16)), through);
        assert_eq!(routed(table, bits("10.9.1.64"), mask(26)), through);
        assert_eq!(routed(table, bits("10.9.2.0"), mask(24)), None);
        let ours = Some("10.7.0.2 is an address of this host".to_owned());
        assert_eq!(local(trie, bits("10.7.0.0"), mask(16)), ours);
        assert_eq!(
            local(trie, bits("10.7.128.0"), mask(17)),
            None,
            "a broadcast address is no one's"
        );
    }
}
