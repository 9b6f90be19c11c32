//! Packets through AF_XDP: directly from and to an Ethernet device, bypassing the kernel's network
//! stack. A small program at the device passes the packets of our addresses to our sockets and lets
//! all others through, so that the kernel's own traffic continues. Segments, checksums, ARP and ND
//! are ours.
//!
//! VLAN tags are not supported: frames with tags go to the kernel.

mod arp;
mod link;
mod nd;
mod neighbors;
mod program;
mod queue;
mod raw;
mod trouble;

pub use link::Mac;
pub use trouble::XdpTrouble;

use crate::addresses::AddressPart;
use crate::span_until;
use link::{ETHERNET_HEAD, LinkFrame, LinkSide};
use neighbors::{Neighbors, Onward, Question};
use net::reactor::monotonic;
use netpath::{LinkFacts, PathTrouble, RouteFacts, later, retry_while_busy, used_bits};
use program::Steering;
use queue::{QueuePlace, QueueTrouble, Room, SINGLE_MAX, XdpQueue};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use sample::{AddressConflict, StackFacts};
use std::io;
use std::net::IpAddr;
use std::time::Duration;
use tcp::{destination, lacks_checksum};
use units::Nanos;

/// Number of frames of a queue on which a thread sends: more than arrive or leave in one turn.
const SENDING_ROOM: Room = Room { receive: 4_096, send: 4_096, threads: 1 };
/// Frames of a queue on which a thread only receives.
const OTHER_ROOM: Room = Room { receive: 2_048, send: 64, threads: 1 };
/// The minimum packet size that TCP relies on (RFC 9293 section 3.7.1), with its headers.
const MTU_MIN: u32 = 576;
/// The minimum MTU of an IPv6 link (RFC 8200 section 5).
const MTU_MIN_V6: u32 = 1_280;
/// Maximum number of queues of a device: each is polled in every turn, and each thread has a socket
/// for each.
pub const QUEUES_MAX: u32 = 64;
/// Number of addresses probed on the link before use (the first ones of each thread's part, at
/// least one per thread), and the duration.
const PROBED_MAX: u32 = 256;
const PROBE_SPAN: Nanos = Nanos::from_millis(150);
/// Maximum time for a reply of a next hop; it is queried once per second.
const ANSWER_SPAN: Nanos = Nanos::from_millis(2_500);
/// Maximum number of packets that wait for the address of their next hop.
const HELD_MAX: usize = 256;
/// Maximum number of ARP replies per turn.
const ANSWERS_MAX: usize = 256;
/// Delay until packets that the device did not accept are retried.
const SEND_AGAIN: Duration = Duration::from_millis(1);

/// Place in the kernel at which packets are received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XdpHook {
    /// In the device driver.
    Native,
    /// After the driver, on any device; segments merged by the device or a peer stay merged.
    Generic,
}

impl XdpHook {
    /// Returns the name in options and reports.
    pub fn name(self) -> &'static str {
        match self {
            XdpHook::Native => "native",
            XdpHook::Generic => "generic",
        }
    }
}

/// Requirements on a device.
#[derive(Clone, Debug, PartialEq)]
pub struct XdpAsk {
    pub device: String,
    /// Next hop of all packets; `None` for the routes of the kernel.
    pub gateway: Option<IpAddr>,
    /// Attachment mode; `None` for the best mode of the device.
    pub hook: Option<XdpHook>,
    /// The first local address and the prefix length.
    pub prefix: (IpAddr, u8),
}

/// Part of a device's packets for one thread: those of its own addresses.
#[derive(Debug)]
pub(crate) struct XdpLink {
    /// A socket for each queue of the device.
    queues: Vec<XdpQueue>,
    /// Socket that sends.
    out: usize,
    part: AddressPart,
    /// The prefix of all addresses of the device.
    prefix: (IpAddr, u8),
    gateway: Option<IpAddr>,
    index: u32,
    side: LinkSide,
    neighbors: Neighbors,
    /// Packets that wait for their next hop, with their destinations.
    held: Vec<(IpAddr, Vec<u8>)>,
    answers: Vec<Vec<u8>>,
    refused: u64,
    missed: u64,
    /// One of our addresses that another host uses.
    conflict: Option<AddressConflict>,
    /// The device has disappeared.
    gone: bool,
}

/// A device whose packets for our addresses are received.
#[derive(Debug)]
pub(crate) struct XdpDevice {
    /// Detaches the program from the device when closed; dropped first.
    _attached: OwnedFd,
    /// Makes the device receive multicast, as ND requests are.
    _groups: Option<OwnedFd>,
    pub(crate) hook: XdpHook,
    pub(crate) queues: usize,
    pub(crate) mtu: u16,
    /// The addresses of each thread.
    pub(crate) parts: Vec<AddressPart>,
}

/// Returns the address bits of each part when a prefix is split into this many parts, and the bits
/// of the part number.
fn divided(prefix: (IpAddr, u8), threads: u32) -> Result<(u32, u32), XdpTrouble> {
    let all = used_bits(prefix);
    let parts_bits = threads.next_power_of_two().ilog2();
    match all.checked_sub(parts_bits) {
        Some(part_bits) if part_bits >= 2 => Ok((part_bits, parts_bits)),
        _ => {
            let trouble = PathTrouble::FewAddresses { addresses: 1 << all, parts: threads };
            Err(XdpTrouble::Prefix(trouble))
        }
    }
}

impl XdpDevice {
    /// Receives the device's packets for our addresses, in the network namespace of the calling
    /// thread, for this many threads, each with a part of the addresses.
    ///
    /// # Errors
    /// Fails if this machine or user does not support it, with the fix.
    pub(crate) fn open(
        ask: &XdpAsk,
        threads: u32,
    ) -> Result<(XdpDevice, Vec<XdpLink>), XdpTrouble> {
        let (network, bits) = ask.prefix;
        let link = look(&ask.device, if network.is_ipv4() { MTU_MIN } else { MTU_MIN_V6 })?;
        let (part_bits, parts_bits) = divided(ask.prefix, threads)?;
        netpath::prefix_taken(network, bits, Some(&ask.device)).map_err(XdpTrouble::Prefix)?;
        // first: an operation for root only gives the clearest error
        let map = raw::make_map(QUEUES_MAX << parts_bits).map_err(by_bpf)?;
        let (sockets, in_parts) = bind_all(&ask.device, link.index, threads)?;
        let most = SINGLE_MAX - ETHERNET_HEAD;
        if !in_parts && link.mtu as usize > most {
            let (device, mtu) = (ask.device.clone(), link.mtu);
            return Err(XdpTrouble::Mtu { device, mtu, most: most as u32 });
        }
        for (thread, queues) in sockets.iter().enumerate() {
            for (number, queue) in queues.iter().enumerate() {
                let key = (number << parts_bits) + thread;
                raw::put_socket(map.as_fd(), key as u32, queue.as_fd()).map_err(by_bpf)?;
            }
        }
        let groups = network.is_ipv6().then(|| raw::join_groups(link.index)).transpose();
        let groups = groups.map_err(|error| {
            XdpTrouble::Other(format!("{} cannot receive multicast", ask.device), error)
        })?;
        let steering = Steering {
            // neither the network address nor the broadcast address
            first: later(network, 1),
            count: (u32::MAX >> (32 - part_bits - parts_bits)) - 1,
            part_bits,
            parts_bits,
            map: number_of(&map),
        };
        let loaded = raw::load(&program::program(&steering), in_parts).map_err(by_bpf)?;
        let (attached, hook) = attach(ask, &link, &loaded, in_parts)?;
        let part = |thread: u32| AddressPart {
            device: ask.device.clone(),
            first: later(network, (thread << part_bits) + 1),
            addresses: (1 << part_bits) - 2,
        };
        let parts: Vec<AddressPart> = (0..threads).map(part).collect();
        let device = XdpDevice {
            _attached: attached,
            _groups: groups,
            hook,
            queues: sockets.first().map_or(0, Vec::len),
            mtu: link.mtu.min(u32::from(u16::MAX)) as u16,
            parts,
        };
        let rows = device.parts.iter().zip(sockets).enumerate();
        let mut links: Vec<XdpLink> =
            rows.map(|(row, (part, queues))| XdpLink::new(ask, &link, row, part, queues)).collect();
        settle_in(&mut links)?;
        Ok((device, links))
    }
}

/// Returns how many addresses of each thread's part are probed.
fn probed_of_each(threads: usize) -> u32 {
    (PROBED_MAX / threads.max(1) as u32).max(1)
}

/// Checks that no host on the link uses one of our addresses, and announces ours (RFC 5227).
fn settle_in(links: &mut [XdpLink]) -> Result<(), XdpTrouble> {
    let each = probed_of_each(links.len());
    for link in links.iter_mut() {
        link.send_frames(each, LinkSide::probe);
    }
    let end = monotonic() + PROBE_SPAN;
    for link in links.iter_mut() {
        // packets that meanwhile arrived for other threads are read in their turn
        loop {
            link.receive(monotonic(), ANSWERS_MAX, |_, _| {});
            link.check_conflict()?;
            if monotonic() >= end {
                break;
            }
            link.sleep(span_until(end));
        }
    }
    for link in links {
        link.send_frames(each, LinkSide::announcement);
    }
    Ok(())
}

impl XdpLink {
    fn new(
        ask: &XdpAsk,
        link: &LinkFacts,
        row: usize,
        part: &AddressPart,
        queues: Vec<XdpQueue>,
    ) -> XdpLink {
        XdpLink {
            out: row % queues.len().max(1),
            queues,
            part: part.clone(),
            prefix: ask.prefix,
            gateway: ask.gateway,
            index: link.index,
            side: LinkSide::new(Mac(link.mac), part.first, part.addresses),
            neighbors: Neighbors::default(),
            held: Vec::new(),
            answers: Vec::new(),
            refused: 0,
            missed: 0,
            conflict: None,
            gone: false,
        }
    }

    /// Sends a message about each of the first addresses.
    fn send_frames(&mut self, addresses: u32, what: impl Fn(&LinkSide, IpAddr) -> Option<Vec<u8>>) {
        for row in 0..self.part.addresses.min(addresses) {
            if let Some(frame) = what(&self.side, later(self.part.first, row)) {
                self.queues[self.out].put(&frame, &[]);
            }
        }
        self.queues[self.out].flush();
    }

    /// Checks for an address that another host uses, before the run.
    fn check_conflict(&mut self) -> Result<(), XdpTrouble> {
        let Some(AddressConflict { address, by }) = self.conflict.take() else { return Ok(()) };
        let device = self.part.device.clone();
        Err(XdpTrouble::TakenOnLink { address, by: Mac(by), device })
    }

    /// Returns the next hop to a server.
    fn next_hop_to(&self, server: IpAddr) -> Result<IpAddr, XdpTrouble> {
        let what = |error| XdpTrouble::Other(format!("the route to {server}"), error);
        let here =
            server.is_loopback() || matches!(netpath::route(server, None), Ok(RouteFacts::Local));
        if here {
            let device = self.part.device.clone();
            return Err(XdpTrouble::Here { address: server, device });
        }
        if let Some(gateway) = self.gateway {
            return Ok(gateway);
        }
        let route = netpath::route(server, Some(self.index)).map_err(what)?;
        hop_by(route, server, &self.part.device)
    }

    /// Makes sure that packets to a server have a next hop.
    ///
    /// # Errors
    /// Fails if the server is this host, or the next hop to it does not reply.
    pub(crate) fn reach(&mut self, server: IpAddr) -> Result<(), XdpTrouble> {
        let hop = self.next_hop_to(server)?;
        self.neighbors.record_route(monotonic(), server, Some(hop));
        let end = monotonic() + ANSWER_SPAN;
        loop {
            let now = monotonic();
            match self.neighbors.route_to(now, server) {
                Onward::To(..) => return Ok(()),
                Onward::Ask(question) => self.send_question(question),
                Onward::Wait | Onward::Unknown | Onward::Nowhere => {}
            }
            if now >= end {
                let (network, bits) = self.prefix;
                let (device, from) = (self.part.device.clone(), format!("{network}/{bits}"));
                return Err(XdpTrouble::NoAnswer { hop, server, device, from });
            }
            self.queues[self.out].flush();
            // it is asked again in time
            self.sleep(span_until(end.min(now + neighbors::ASK_AGAIN)));
            self.receive(monotonic(), ANSWERS_MAX, |_, _| {});
            self.check_conflict()?;
        }
    }

    fn send_question(&mut self, question: Question) {
        if let Some(question) = self.side.question(question) {
            self.queues[self.out].put(&question, &[]);
        }
    }

    /// Sends packets. Packets without room are lost, as on any link.
    pub(crate) fn send<'a>(&mut self, now: Nanos, packets: impl Iterator<Item = &'a [u8]>) {
        for packet in packets {
            self.put(now, packet);
        }
        self.queues[self.out].flush();
    }

    fn put(&mut self, now: Nanos, packet: &[u8]) {
        let Some(to) = destination(packet) else { return };
        let mut onward = self.neighbors.route_to(now, to);
        if onward == Onward::Unknown {
            // a server that was unknown at the start of the run
            let hop = self.next_hop_to(to).ok();
            self.neighbors.record_route(now, to, hop);
            onward = self.neighbors.route_to(now, to);
        }
        match onward {
            Onward::To(mac, question) => {
                self.queues[self.out].put(&self.side.head(mac), packet);
                question.into_iter().for_each(|question| self.send_question(question));
            }
            Onward::Ask(question) => {
                let held = self.held.len();
                // queries of the last request, which got no reply
                self.held.retain(|(other, _)| *other != to);
                self.refused += (held - self.held.len()) as u64;
                self.send_question(question);
                self.hold(to, packet);
            }
            Onward::Wait => self.hold(to, packet),
            Onward::Unknown | Onward::Nowhere => self.refused += 1,
        }
    }

    fn hold(&mut self, to: IpAddr, packet: &[u8]) {
        if self.held.len() >= HELD_MAX {
            self.refused += 1;
            return;
        }
        self.held.push((to, packet.to_vec()));
    }

    /// Receives packets, up to `most` from each queue. `each` gets a packet and whether its TCP
    /// checksum is absent, as between devices of one machine.
    pub(crate) fn receive(&mut self, now: Nanos, most: usize, mut each: impl FnMut(&[u8], bool)) {
        let XdpLink { queues, out, side, neighbors, answers, conflict, .. } = self;
        let mut is_hop_found = false;
        for queue in queues.iter_mut() {
            queue.receive(most, |frame| match side.parse(frame) {
                LinkFrame::Packet(packet) => each(packet, lacks_checksum(packet)),
                LinkFrame::Neighbor(neighbor, mac, answer) => {
                    is_hop_found |= neighbors.update(now, neighbor, mac);
                    answers.extend(answer.filter(|_| answers.len() < ANSWERS_MAX));
                }
                LinkFrame::Taken(address, by) => {
                    *conflict = Some(AddressConflict { address, by: by.0 });
                }
                LinkFrame::Nothing => {}
            });
        }
        if !answers.is_empty() {
            for answer in answers.drain(..) {
                queues[*out].put(&answer, &[]);
            }
            queues[*out].flush();
        }
        if is_hop_found && !self.held.is_empty() {
            let held = std::mem::take(&mut self.held);
            self.send(now, held.iter().map(|(_, packet)| packet.as_slice()));
        }
    }

    /// Sleeps until a packet arrives, for at most `span`.
    pub(crate) fn sleep(&mut self, span: Option<Duration>) {
        let waits = self.queues[self.out].has_waiting();
        let span =
            if waits { Some(span.map_or(SEND_AGAIN, |it| it.min(SEND_AGAIN))) } else { span };
        let span = span.map(|span| Timespec {
            tv_sec: span.as_secs() as i64,
            tv_nsec: span.subsec_nanos().into(),
        });
        // polling a deleted device returns at once, every time
        let queues = if self.gone { &[][..] } else { &self.queues };
        let mut wanted: Vec<PollFd<'_>> =
            queues.iter().map(|queue| PollFd::new(queue, PollFlags::IN)).collect();
        // interrupted: the next turn finds out
        poll(&mut wanted, span.as_ref()).ok();
        self.gone |= wanted.iter().any(|queue| queue.revents().contains(PollFlags::ERR));
    }

    /// Returns counters since the last call: packets that the device did not accept or whose next
    /// hop did not reply, received packets without room, and one of our addresses that another host
    /// uses.
    pub(crate) fn losses(&mut self) -> StackFacts {
        let refused: u64 = self.queues.iter_mut().map(XdpQueue::refused).sum();
        let missed: u64 = self.queues.iter().map(XdpQueue::missed).sum();
        let since = missed.saturating_sub(self.missed);
        self.missed = missed;
        // their next hop has not replied, and they do not belong to the next run
        let held = std::mem::take(&mut self.held).len() as u64;
        StackFacts {
            refused: refused + std::mem::take(&mut self.refused) + held,
            missed: since,
            conflict: self.conflict.take(),
            ..StackFacts::default()
        }
    }
}

/// Returns the next hop to a server by the route of the kernel.
fn hop_by(route: RouteFacts, server: IpAddr, device: &str) -> Result<IpAddr, XdpTrouble> {
    match route {
        RouteFacts::By(hop) if hop.is_ipv6() && server.is_ipv4() => {
            Err(XdpTrouble::HopOfIpv6 { hop, server, device: device.to_owned() })
        }
        RouteFacts::By(hop) => Ok(hop),
        RouteFacts::OnLink | RouteFacts::Local => Ok(server),
    }
}

fn number_of(map: &OwnedFd) -> i32 {
    use rustix::fd::AsRawFd;
    map.as_raw_fd()
}

/// Returns the properties of a usable device.
fn look(device: &str, least: u32) -> Result<LinkFacts, XdpTrouble> {
    let name = || device.to_owned();
    let link = netpath::link(device).map_err(|error| match error.raw_os_error() {
        // an invalid device name is rejected before it is looked up
        Some(libc::ENODEV | libc::EINVAL | libc::ERANGE) => XdpTrouble::NoDevice { device: name() },
        _ => XdpTrouble::Other(format!("the device {device}"), error),
    })?;
    if link.is_loopback {
        return Err(XdpTrouble::Loopback { device: name() });
    }
    if !link.is_ethernet {
        return Err(XdpTrouble::NotEthernet { device: name() });
    }
    if !link.is_up {
        return Err(XdpTrouble::Down { device: name() });
    }
    if link.mtu < least {
        return Err(XdpTrouble::SmallMtu { device: name(), mtu: link.mtu, least });
    }
    Ok(link)
}

fn by_bpf(error: io::Error) -> XdpTrouble {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => XdpTrouble::Forbidden,
        Some(libc::ENOSYS) => XdpTrouble::NoSockets,
        _ => XdpTrouble::Other("the kernel rejects the XDP program".to_owned(), error),
    }
}

/// Binds sockets to each queue of a device, one per thread: returns those of each thread, and
/// whether packets in several frames are supported.
fn bind_all(
    device: &str,
    index: u32,
    threads: u32,
) -> Result<(Vec<Vec<XdpQueue>>, bool), XdpTrouble> {
    let place = |queue, in_parts| QueuePlace { device: index, queue, in_parts };
    // threads send on different queues
    let room = |queue| {
        let room = if queue < threads { SENDING_ROOM } else { OTHER_ROOM };
        Room { threads, ..room }
    };
    let bind = |queue, in_parts| {
        retry_while_busy(
            || XdpQueue::open(place(queue, in_parts), room(queue)),
            |trouble| matches!(trouble, QueueTrouble::Bind(Errno::BUSY)),
        )
    };
    let (first, in_parts) = match bind(0, true) {
        // the flag is unknown before Linux 6.6
        Err(QueueTrouble::Bind(Errno::INVAL)) => (bind(0, false), false),
        first => (first, true),
    };
    let mut queues = vec![first.map_err(|trouble| trouble.explain(device, 0))?];
    loop {
        let number = queues.len() as u32;
        match bind(number, in_parts) {
            // no queue with this number
            Err(QueueTrouble::Bind(Errno::INVAL)) => break,
            Ok(_) if number == QUEUES_MAX => {
                let device = device.to_owned();
                return Err(XdpTrouble::ManyQueues { device, most: QUEUES_MAX });
            }
            Ok(queue) => queues.push(queue),
            Err(trouble) => return Err(trouble.explain(device, number)),
        }
    }
    let mut sockets: Vec<Vec<XdpQueue>> = Vec::new();
    for _ in 1..threads {
        let shared = (0..).zip(&queues).map(|(number, queue)| {
            let shared = queue.share(place(number, in_parts), room(number));
            shared.map_err(|trouble| trouble.explain(device, number))
        });
        sockets.push(shared.collect::<Result<_, _>>()?);
    }
    sockets.insert(0, queues);
    Ok((sockets, in_parts))
}

/// Attaches the program in the best supported mode.
fn attach(
    ask: &XdpAsk,
    link: &LinkFacts,
    program: &OwnedFd,
    in_parts: bool,
) -> Result<(OwnedFd, XdpHook), XdpTrouble> {
    let device = || ask.device.clone();
    let mut trouble = None;
    for hook in hooks(ask, link, in_parts)? {
        let native = *hook == XdpHook::Native;
        let attached = retry_while_busy(
            || raw::attach(program.as_fd(), link.index, native),
            |error| error.raw_os_error() == Some(libc::EBUSY),
        );
        trouble = Some(match attached {
            Ok(attached) => return Ok((attached, *hook)),
            Err(error) => match error.raw_os_error() {
                Some(libc::EBUSY | libc::EEXIST) => XdpTrouble::Attached { device: device() },
                Some(libc::EPERM) => XdpTrouble::Forbidden,
                _ => XdpTrouble::Mode { device: device(), mode: hook.name(), error },
            },
        });
    }
    Err(trouble.expect("at least one way was tried"))
}

/// Returns the modes to try, best first. In generic mode, packets merged by the device or its peer
/// arrive whole, up to 64 KiB, in several frames.
fn hooks(ask: &XdpAsk, link: &LinkFacts, in_parts: bool) -> Result<&'static [XdpHook], XdpTrouble> {
    Ok(match ask.hook {
        Some(XdpHook::Native) => &[XdpHook::Native],
        Some(XdpHook::Generic) if in_parts => &[XdpHook::Generic],
        Some(XdpHook::Generic) => {
            return Err(XdpTrouble::GenericInParts { device: ask.device.clone() });
        }
        None if !in_parts => &[XdpHook::Native],
        // the driver of a veth would disable segmentation offload of its peer, and has a short
        // queue
        None if link.kind == "veth" => &[XdpHook::Generic, XdpHook::Native],
        None => &[XdpHook::Native, XdpHook::Generic],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_has_a_probed_address() {
        let asked = [1, 2, 3, 256, 257, 1_024].map(probed_of_each);
        assert_eq!(asked, [256, 128, 85, 1, 1, 1]);
    }

    #[test]
    fn the_next_hop_is_requested_in_its_family() {
        let address = |text: &str| text.parse::<IpAddr>().expect("an address");
        let describe = |route, server| match hop_by(route, address(server), "eth0") {
            Ok(hop) => hop.to_string(),
            Err(trouble) => trouble.to_string(),
        };
        let by = |hop| RouteFacts::By(address(hop));
        assert_eq!(describe(RouteFacts::OnLink, "10.9.0.2"), "10.9.0.2");
        assert_eq!(describe(by("10.9.0.1"), "10.9.7.2"), "10.9.0.1");
        assert_eq!(describe(by("fe80::1"), "fd00::2"), "fe80::1");
        assert_eq!(
            describe(by("fe80::1"), "10.9.7.2"),
            "the next hop to 10.9.7.2 on eth0 is fe80::1, an IPv6 address, which is not \
            supported for IPv4; fix: set gateway=ADDRESS to an IPv4 address of that router"
        );
    }

    #[test]
    fn no_generic_mode_without_packets_of_several_frames() {
        let describe = |kind: &str, hook, in_parts| {
            let ask = XdpAsk {
                device: "eth0".to_owned(),
                gateway: None,
                hook,
                prefix: (IpAddr::from([10, 9, 0, 0]), 24),
            };
            let (mtu, mac, kind) = (1_500, [2; 6], kind.to_owned());
            let (is_loopback, is_ethernet, is_up) = (false, true, true);
            let link = LinkFacts { index: 3, is_loopback, is_ethernet, is_up, mtu, mac, kind };
            match hooks(&ask, &link, in_parts) {
                Ok(hooks) => hooks.iter().map(|hook| hook.name()).collect::<Vec<_>>().join(", "),
                Err(trouble) => trouble.to_string(),
            }
        };
        assert_eq!(describe("veth", None, true), "generic, native");
        assert_eq!(describe("", None, true), "native, generic");
        assert_eq!(describe("veth", None, false), "native");
        assert_eq!(describe("", None, false), "native");
        assert_eq!(describe("veth", Some(XdpHook::Native), false), "native");
        assert_eq!(describe("veth", Some(XdpHook::Generic), true), "generic");
        assert_eq!(
            describe("veth", Some(XdpHook::Generic), false),
            "in generic mode eth0 receives packets of up to 64 KiB, merged by its peer or \
            driver, which this kernel does not pass to AF_XDP (Linux 6.6 does); fix: use \
            mode=native"
        );
    }
}
