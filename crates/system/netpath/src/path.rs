//! An open path: two ends, the thread between them, and its counters.

use crate::device::{self, InterfaceSettings, Tun};
use crate::forward::{CommandReceiver, ForwardOrder, Forwarder};
use crate::lanes::LaneClients;
use crate::namespace::Namespace;
use crate::replies::Replies;
use crate::tally::Tally;
use crate::trouble::PathTrouble;
use sample::PathFacts;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;
use units::Seed;
use wan::{CLIENTS_MAX, Population};

/// The location of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FarEnd {
    /// In the calling thread's own network namespace: servers of the host, for which the host gets
    /// a device.
    Here,
    /// In a new, otherwise empty network namespace.
    New,
}

/// Requirements on a path.
#[derive(Clone, Debug)]
pub struct PathRequest {
    pub population: Population,
    /// Clients with their own address and link, at least 1.
    pub clients: u32,
    pub seed: u64,
    pub far: FarEnd,
    /// True if the clients' namespace keeps 127.0.0.0/8 for itself; otherwise these addresses
    /// belong to the server, so that its loopback URL is valid on the clients' end too.
    pub own_loopback: bool,
}

/// An open path, closed on drop.
#[derive(Debug)]
pub struct NetPath {
    near: Namespace,
    far: Namespace,
    devices: [String; 2],
    population: Population,
    /// The index of the kind of each client.
    dealt: Vec<u32>,
    seed: u64,
    first: Ipv4Addr,
    server: Ipv4Addr,
    line: ForwarderHandle,
    thread: Option<JoinHandle<()>>,
    /// Packets dropped by the devices as of the last call.
    dropped: Mutex<u64>,
}

/// The command channel of the thread.
#[derive(Debug)]
struct ForwarderHandle {
    orders: Sender<ForwardOrder>,
    called: Arc<AtomicBool>,
    bell: UnixDatagram,
}

impl ForwarderHandle {
    fn send(&self, order: ForwardOrder) {
        // the thread outlives the channel unless it panicked, which joining it reports
        self.orders.send(order).ok();
        self.called.store(true, Ordering::Release);
        self.bell.send(&[0]).ok();
    }
}

/// A part of 198.18.0.0/16 (RFC 2544) for clients, no larger than needed, and an address of
/// 198.19.0.0/16 for the server's end, at the same offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NetBlock {
    network: u32,
    mask: u32,
}

/// Both networks of RFC 2544.
const CLIENTS_NET: u32 = u32::from_be_bytes([198, 18, 0, 0]);
const SERVERS_NET: u32 = u32::from_be_bytes([198, 19, 0, 0]);
const NET_SIZE: u32 = 1 << 16;
/// Smallest block: a host can have 1,024 of them at once.
const BLOCK_MIN: u32 = 64;
const LOOPBACK: (Ipv4Addr, Ipv4Addr) = (Ipv4Addr::new(127, 0, 0, 0), Ipv4Addr::new(255, 0, 0, 0));
const EVERYWHERE: (Ipv4Addr, Ipv4Addr) = (Ipv4Addr::UNSPECIFIED, Ipv4Addr::UNSPECIFIED);

impl NetBlock {
    /// Returns the size of a block for this many clients: their addresses, and the first and last
    /// of a network.
    fn size(clients: u32) -> u32 {
        (clients.clamp(1, CLIENTS_MAX) + 2).next_power_of_two().max(BLOCK_MIN)
    }

    /// Returns the first block, in a separate network namespace.
    pub(crate) fn first(clients: u32) -> NetBlock {
        NetBlock { network: CLIENTS_NET, mask: !(NetBlock::size(clients) - 1) }
    }

    pub(crate) fn network(self) -> Ipv4Addr {
        self.network.into()
    }

    pub(crate) fn mask(self) -> Ipv4Addr {
        self.mask.into()
    }

    pub(crate) fn first_client(self) -> Ipv4Addr {
        (self.network + 1).into()
    }

    pub(crate) fn server(self) -> Ipv4Addr {
        (SERVERS_NET + (self.network - CLIENTS_NET) + 1).into()
    }

    /// Returns the first block without a route in `table` (/proc/net/route) and without an address
    /// of this host in `trie` (/proc/net/fib_trie).
    fn free(clients: u32, table: &str, trie: &str) -> Option<NetBlock> {
        let (routes, local) = (routes(table), local_addresses(trie));
        let size = NetBlock::size(clients);
        let blocks = (0..NET_SIZE / size)
            .map(|number| NetBlock { network: CLIENTS_NET + number * size, mask: !(size - 1) });
        let (mut blocks, is_free) = (blocks, |block: &NetBlock| {
            let server = u32::from(block.server());
            routes.iter().all(|(to, mask)| {
                let common = mask & block.mask;
                *mask == 0 || ((block.network ^ to) & common != 0 && (server ^ to) & mask != 0)
            }) && !local.iter().any(|address| {
                let address = address.to_bits();
                address & block.mask == block.network || address == server
            })
        });
        blocks.find(is_free)
    }

    /// Reserves a block in the calling thread's network namespace, whose routes exist when
    /// `configure` returns. No other path is set up there meanwhile, so no block is used twice.
    ///
    /// # Errors
    /// Fails if every block is in use, or with the error of `configure`.
    pub(crate) fn claim<T>(
        clients: u32,
        configure: impl FnOnce(NetBlock) -> Result<T, PathTrouble>,
    ) -> Result<(NetBlock, T), PathTrouble> {
        let _turn = PathLock::take()?;
        let (table, trie) = (net_file("route"), net_file("fib_trie"));
        let block = NetBlock::free(clients, &table, &trie).ok_or(PathTrouble::Addresses)?;
        Ok((block, configure(block)?))
    }
}

/// The right to set up a path in the calling thread's network namespace: a lock on the namespace,
/// which ends with its holder.
pub(crate) struct PathLock {
    _network: std::fs::File,
}

/// Maximum number of tries; a setup takes some milliseconds.
const TURN_TRIES: u32 = 1_000;
const TURN_PAUSE: Duration = Duration::from_millis(10);

impl PathLock {
    pub(crate) fn take() -> Result<PathLock, PathTrouble> {
        let trouble = PathTrouble::other("cannot wait for other processes that set up a path");
        let network = std::fs::File::open("/proc/thread-self/ns/net");
        let network = network.map_err(PathTrouble::Namespace)?;
        for _ in 0..TURN_TRIES {
            match network.try_lock() {
                Ok(()) => return Ok(PathLock { _network: network }),
                Err(std::fs::TryLockError::WouldBlock) => std::thread::sleep(TURN_PAUSE),
                Err(std::fs::TryLockError::Error(error)) => return Err(trouble(error)),
            }
        }
        Err(trouble(std::io::Error::other("one of them has not finished within 10 s")))
    }
}

/// Parses the destinations and masks of /proc/net/route.
fn routes(table: &str) -> Vec<(u32, u32)> {
    named_routes(table).into_iter().map(|(_, to, mask)| (to, mask)).collect()
}

/// Returns the routes, with their devices.
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

/// Checks that this host does not use addresses that share the first `bits` bits with `network`.
/// They may be part of a larger network on `device`, if they are to be used there.
///
/// # Errors
/// Fails with the user of the addresses.
pub fn prefix_taken(network: IpAddr, bits: u8, device: Option<&str>) -> Result<(), PathTrouble> {
    let by = match network {
        IpAddr::V4(network) => {
            let mask = Ipv4Addr::from_bits(!u32::MAX.checked_shr(bits.into()).unwrap_or(0));
            network_user(network, mask, device)
        }
        IpAddr::V6(network) => {
            let (routes, addresses) = (net_file("ipv6_route"), net_file("if_inet6"));
            taken_v6(&routes, &addresses, (network, bits), device)
        }
    };
    match by {
        None => Ok(()),
        Some(by) => Err(PathTrouble::Taken { prefix: format!("{network}/{bits}"), by }),
    }
}

/// Returns the user of addresses of a network in the calling thread's network namespace: a route
/// other than the default route, or an address of this host. `None` if the network is unused. A
/// route over the device `around` to a larger network that contains this one does not count.
fn network_user(network: Ipv4Addr, mask: Ipv4Addr, around: Option<&str>) -> Option<String> {
    let route = routed(&net_file("route"), network.to_bits(), mask.to_bits(), around);
    route.or_else(|| local(&net_file("fib_trie"), network.to_bits(), mask.to_bits()))
}

/// Returns a table of the calling thread's network namespace.
fn net_file(name: &str) -> String {
    std::fs::read_to_string(format!("/proc/thread-self/net/{name}")).unwrap_or_default()
}

/// Returns the user of IPv6 addresses, from the lines of /proc/net/ipv6_route (destination, its
/// bits, ..., device) and of /proc/net/if_inet6 (address, ..., device), numbers in hexadecimal.
fn taken_v6(
    routes: &str,
    addresses: &str,
    (network, bits): (Ipv6Addr, u8),
    around: Option<&str>,
) -> Option<String> {
    let number = |text: &str| u128::from_str_radix(text, 16).ok();
    let same = |other: u128, bits: u32| {
        (network.to_bits() ^ other).checked_shr(128 - bits.min(128)).unwrap_or(0) == 0
    };
    let bits = u32::from(bits);
    let address = addresses.lines().find_map(|line| {
        let address = number(line.split_whitespace().next()?)?;
        same(address, bits).then(|| Ipv6Addr::from_bits(address))
    });
    if let Some(address) = address {
        return Some(format!("{address} is an address of this host"));
    }
    routes.lines().find_map(|line| {
        let row: Vec<&str> = line.split_whitespace().collect();
        let (to, of) = (number(row.first()?)?, number(row.get(1)?)? as u32);
        let device = row.last()?;
        // routes over the loopback are for addresses of this host, which were checked, or
        // unreachable
        let counts = of != 0 && *device != "lo" && (around != Some(*device) || of >= bits);
        (counts && same(to, of.min(bits)))
            .then(|| format!("a route to {}/{of} goes through {device}", Ipv6Addr::from_bits(to)))
    })
}

fn routed(table: &str, network: u32, mask: u32, around: Option<&str>) -> Option<String> {
    let overlaps = |to: u32, of: u32| of != 0 && (network ^ to) & mask & of == 0;
    let counts = |device: &str, of: u32| around != Some(device) || of & mask == mask;
    let route = named_routes(table)
        .into_iter()
        .find(|(device, to, of)| overlaps(*to, *of) && counts(device, *of));
    route.map(|(device, to, of)| {
        format!("a route to {}/{} goes through {device}", Ipv4Addr::from_bits(to), of.count_ones())
    })
}

/// Returns the device or route with an address of a network on this host.
fn local(trie: &str, network: u32, mask: u32) -> Option<String> {
    let mut addresses = local_addresses(trie).into_iter();
    let address = addresses.find(|address| address.to_bits() & mask == network)?;
    Some(format!("{address} is an address of this host"))
}

/// Parses the addresses of this host, by lines like `|-- 127.0.0.1` followed by `/32 host LOCAL`.
fn local_addresses(trie: &str) -> Vec<Ipv4Addr> {
    let (mut latest, mut addresses) = (None, Vec::new());
    for line in trie.lines() {
        if let Some((_, address)) = line.split_once("|-- ") {
            latest = address.trim().parse::<Ipv4Addr>().ok();
        } else if line.contains("/32 host LOCAL") {
            addresses.extend(latest);
        }
    }
    addresses
}

impl NetPath {
    /// Sets up both ends and starts forwarding.
    ///
    /// # Errors
    /// Fails if this machine or user does not support it, with the fix.
    pub fn open(ask: &PathRequest) -> Result<NetPath, PathTrouble> {
        let clients = ask.clients.clamp(1, CLIENTS_MAX);
        let (block, (far, far_end)) = far_end(ask.far, clients)?;
        let (near, near_end) = Namespace::create(|| near_end(block, ask.own_loopback))?;
        let dealt = ask.population.assign_kinds(clients, Seed(ask.seed));
        let devices = [near_end.name.clone(), far_end.name.clone()];
        let (line, ear) = line()?;
        let inhabitants = LaneClients {
            first: block.first_client(),
            kinds: dealt.clone(),
            numbers: (0, 1),
            paths: ask.population.parts.iter().map(|part| part.path.clone()).collect(),
        };
        let (seed, replies) = (ask.seed, Replies::new(block.server()));
        let body =
            move || Forwarder::new([near_end, far_end], inhabitants, replies, seed, ear).run();
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
            server: block.server(),
            line,
            thread: Some(thread),
            dropped: Mutex::new(0),
        })
    }

    /// Returns the network namespace of the clients.
    pub fn client_namespace(&self) -> &Namespace {
        &self.near
    }

    /// Returns the network namespace of the server.
    pub fn server_namespace(&self) -> &Namespace {
        &self.far
    }

    /// Returns the name of the device at the server's end.
    pub fn far_device(&self) -> &str {
        &self.devices[1]
    }

    /// Returns the address of the first client; the others follow it.
    pub fn first_client(&self) -> Ipv4Addr {
        self.first
    }

    /// Returns the address of the server's end, for servers that listen on all addresses there.
    pub fn server(&self) -> Ipv4Addr {
        self.server
    }

    /// Returns the population part of each client.
    pub fn client_kinds(&self) -> &[u32] {
        &self.dealt
    }

    /// Returns the counters since the path was opened or since the last call.
    ///
    /// # Errors
    /// Fails if the forwarder has ended, with the reason.
    pub fn facts(&self) -> Result<PathFacts, PathTrouble> {
        let (reply, answer) = channel();
        self.line.send(ForwardOrder::ReportTally(reply));
        let silent = || std::io::Error::other("the forwarder does not respond; this is a bug");
        let tally: Tally = answer
            .recv_timeout(Duration::from_secs(10))
            .map_err(|_| PathTrouble::Other("the path".to_owned(), silent()))?;
        if let Some(why) = tally.broken {
            let broken = std::io::Error::other(why);
            return Err(PathTrouble::Other("the path has failed".to_owned(), broken));
        }
        let mut facts = tally.facts(&self.population, &self.dealt, self.seed);
        facts.overflowed += self.dropped_since()?;
        Ok(facts)
    }

    /// Returns the packets dropped in the queues of the devices since the last call.
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

/// Returns the end of the clients, created in the calling thread's namespace.
fn near_end(block: NetBlock, own_loopback: bool) -> Result<Tun, PathTrouble> {
    let tun = Tun::make("path")?;
    let clients = (block.first_client(), block.mask());
    let mut routes = vec![EVERYWHERE];
    if own_loopback {
        device::loopback(&[(Ipv4Addr::LOCALHOST, LOOPBACK.1), clients])?;
    } else {
        // every address of the clients' network belongs to this namespace, and 127.0.0.1 does not
        device::loopback(&[clients])?;
        routes.push(LOOPBACK);
    }
    device::widen();
    // the address of the device is that of the first client: sockets without a chosen source use it
    device::configure(&tun, &InterfaceSettings { address: block.first_client(), routes })?;
    Ok(tun)
}

fn far_end(far: FarEnd, clients: u32) -> Result<(NetBlock, (Namespace, Tun)), PathTrouble> {
    let interface_settings = |block: NetBlock| InterfaceSettings {
        address: block.server(),
        routes: vec![(block.network(), block.mask())],
    };
    match far {
        FarEnd::Here => NetBlock::claim(clients, |block| {
            let here = Namespace::here().map_err(PathTrouble::Namespace)?;
            let tun = Tun::make("loadstone%d")?;
            device::configure(&tun, &interface_settings(block))?;
            Ok((here, tun))
        }),
        FarEnd::New => {
            let block = NetBlock::first(clients);
            let end = Namespace::create(|| {
                let tun = Tun::make("path")?;
                device::loopback(&[(Ipv4Addr::LOCALHOST, LOOPBACK.1)])?;
                device::widen();
                device::configure(&tun, &interface_settings(block))?;
                Ok(tun)
            })?;
            Ok((block, end))
        }
    }
}

fn line() -> Result<(ForwarderHandle, CommandReceiver), PathTrouble> {
    let (orders, inbox) = channel();
    let called = Arc::new(AtomicBool::new(false));
    let pair = || -> std::io::Result<(UnixDatagram, UnixDatagram)> {
        let (ring, bell) = UnixDatagram::pair()?;
        bell.set_nonblocking(true)?;
        Ok((ring, bell))
    };
    let (ring, bell) = pair().map_err(PathTrouble::other("cannot open a socket pair"))?;
    Ok((
        ForwarderHandle { orders, called: called.clone(), bell: ring },
        CommandReceiver { orders: inbox, called, bell },
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(network: u32, mask: u32) -> String {
        format!(
            "tun\t{:08X}\t00000000\t0001\t0\t0\t0\t{:08X}\t0\n",
            network.swap_bytes(),
            mask.swap_bytes()
        )
    }

    #[test]
    fn clients_with_ipv6_addresses_are_refused() {
        let routes = "fd000000000000090000000000000000 40 00000000000000000000000000000000 00 \
                      00000000000000000000000000000000 00000100 00000001 00000000 00000001     eth0\n\
                      00000000000000000000000000000000 00 00000000000000000000000000000000 00 \
                      fe800000000000000000000000000001 00000400 00000001 00000000 00000003     eth0\n\
                      fd000000000000090000000000000007 80 00000000000000000000000000000000 00 \
                      00000000000000000000000000000000 00000000 00000001 00000000 80200001       lo\n";
        let addresses = "fd000000000000090000000000000007 02 40 00 80     eth0\n";
        let describe = |prefix: &str, bits, device| {
            let network = prefix.parse().expect("an address");
            let by = taken_v6(routes, addresses, (network, bits), Some(device));
            by.unwrap_or_else(|| "free".to_owned())
        };
        // a part of the device's own network, the same over another device, the host's own address
        assert_eq!(describe("fd00:0:0:9:1::", 96, "eth0"), "free");
        let route = "a route to fd00:0:0:9::/64 goes through eth0";
        assert_eq!(describe("fd00:0:0:9:1::", 96, "eth1"), route);
        assert_eq!(
            describe("fd00:0:0:9::", 120, "eth0"),
            "fd00:0:0:9::7 is an address of this host"
        );
        assert_eq!(describe("fd00::", 48, "eth0"), "fd00:0:0:9::7 is an address of this host");
        assert_eq!(describe("2001:db8::", 32, "eth1"), "free");
    }

    /// A thousand single clients at once, including a large group, without conflicts.
    #[test]
    fn blocks_are_as_large_as_they_have_to_be() {
        let mut table = String::from("head\n");
        let mut servers = Vec::new();
        for clients in std::iter::once(5_000).chain([1; 896]) {
            let block = NetBlock::free(clients, &table, "").expect("a free block");
            assert!(!block.mask > clients, "{block:?}");
            servers.push(block.server());
            table.push_str(&line(block.network, block.mask));
        }
        assert_eq!(NetBlock::free(1, &table, ""), None);
        servers.sort_unstable();
        servers.dedup();
        assert_eq!(servers.len(), 897);
        assert_eq!(NetBlock::first(1).server(), Ipv4Addr::new(198, 19, 0, 1));
    }

    #[test]
    fn prefixes_routed_elsewhere_are_left_alone() {
        let free = |network: [u8; 4], mask: u32| {
            NetBlock::free(1, &format!("head\n{}", line(u32::from_be_bytes(network), mask)), "")
        };
        assert_eq!(free([0; 4], 0), Some(NetBlock::first(1)));
        assert_eq!(free([198, 18, 0, 0], 0xfffe_0000), None);
        let next = free([198, 18, 0, 64], 0xffff_ffff).expect("a free block");
        assert_eq!(next, NetBlock::first(1));
        let next = free([198, 18, 0, 7], 0xffff_ffff).expect("a free block");
        assert_eq!(next.network(), Ipv4Addr::new(198, 18, 0, 64));
        let next = free([198, 19, 0, 0], 0xffff_ff00).expect("a free block");
        assert_eq!(next.network(), Ipv4Addr::new(198, 18, 1, 0));
    }

    /// No route of the main table leads to an address of the host.
    #[test]
    fn a_block_with_an_address_of_this_host_is_left_alone() {
        let free = |address: &str| {
            let trie = format!("Local:\n     |-- {address}\n        /32 host LOCAL\n");
            NetBlock::free(1, "head\n", &trie).expect("a free block").network()
        };
        let (first, second) = (Ipv4Addr::new(198, 18, 0, 0), Ipv4Addr::new(198, 18, 0, 64));
        assert_eq!([free("198.18.0.1"), free("198.19.0.1")], [second, second]);
        assert_eq!([free("198.18.0.64"), free("198.19.0.2"), free("10.7.0.2")], [first; 3]);
    }

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
    fn used_addresses_are_found() {
        let table = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\n\
                     eth0\t00000000\t0100000A\t0003\t0\t0\t0\t00000000\t0\n\
                     eth0\t0001090A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\n";
        let trie = "Local:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 10.7.0.2\n        /32 host LOCAL\n     |-- \
                    10.7.255.255\n        /32 link BROADCAST\n";
        let bits = |text: &str| text.parse::<Ipv4Addr>().expect("an address").to_bits();
        let mask = |bits: u8| !(u32::MAX >> bits);
        let through = Some("a route to 10.9.1.0/24 goes through eth0".to_owned());
        // wider and narrower networks than the route
        assert_eq!(routed(table, bits("10.9.0.0"), mask(16), None), through);
        assert_eq!(routed(table, bits("10.9.1.64"), mask(26), None), through);
        assert_eq!(routed(table, bits("10.9.2.0"), mask(24), None), None);
        // a part of the network on the device; all of it; a part on another device
        assert_eq!(routed(table, bits("10.9.1.64"), mask(26), Some("eth0")), None);
        assert_eq!(routed(table, bits("10.9.1.0"), mask(24), Some("eth0")), through);
        assert_eq!(routed(table, bits("10.9.1.64"), mask(26), Some("eth1")), through);
        let ours = Some("10.7.0.2 is an address of this host".to_owned());
        assert_eq!(local(trie, bits("10.7.0.0"), mask(16)), ours);
        assert_eq!(
            local(trie, bits("10.7.128.0"), mask(17)),
            None,
            "a broadcast address is no one's"
        );
    }
}
