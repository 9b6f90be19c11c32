//! Packets by AF_XDP: straight from and to a device of Ethernet, past the kernel's network. A small
//! program at the device hands the packets of our addresses to our sockets and lets all others pass, so
//! that the kernel's own traffic goes on beside them. Segments, checksums and ARP are ours.
//!
//! It refuses tags of VLANs and IPv6: such frames stay the kernel's.

mod arp;
mod netlink;
mod program;
mod queue;
mod raw;
mod trouble;

pub use arp::Mac;
pub use trouble::XdpTrouble;

use arp::{LinkFrame, Neighbours, Onward};
use netlink::{LinkFacts, RouteFacts};
use queue::{QueuePlace, QueueTrouble, Room, SINGLE_MAX, XdpQueue};
use reactor::monotonic;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;
use tcp::is_sum_left_out;
use units::Nanos;

/// Frames of the first queue, which sends too: more than come or go in one turn.
const FIRST_ROOM: Room = Room { receive: 4_096, send: 4_096 };
/// Those of the others, which only receive.
const OTHER_ROOM: Room = Room { receive: 2_048, send: 64 };
/// The least that TCP counts on (RFC 9293 section 3.7.1), with its heads.
const MTU_MIN: u32 = 576;
/// Queues of one device at most: each is looked at in every turn.
const QUEUES_MAX: u32 = 64;
/// What a former owner still holds for some milliseconds is tried for again.
const BUSY_TRIES: u32 = 100;
const BUSY_PAUSE: Duration = Duration::from_millis(10);
/// Addresses that are asked for on the link before they are taken, and for how long.
const PROBED_MAX: u32 = 256;
const PROBE_SPAN: Nanos = Nanos::from_millis(150);
/// How long a next hop has to say where it is; it is asked once a second.
const ANSWER_SPAN: Nanos = Nanos::from_millis(2_500);
/// Packets that wait for their next hop to say where it is.
const HELD_MAX: usize = 256;
/// Answers to questions by ARP in one turn.
const ANSWERS_MAX: usize = 256;
/// How soon what the device did not take is tried again.
const SEND_AGAIN: Duration = Duration::from_millis(1);

/// Where in the kernel the packets are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XdpHook {
    /// In the device's driver.
    Native,
    /// Behind it, on any device; segments that the device or a peer has put together stay together.
    Generic,
}

impl XdpHook {
    /// As options and reports call it.
    pub fn name(self) -> &'static str {
        match self {
            XdpHook::Native => "native",
            XdpHook::Generic => "generic",
        }
    }
}

/// A device that is to be used.
#[derive(Clone, Debug, PartialEq)]
pub struct XdpAsk {
    pub device: String,
    /// The next hop of all packets; `None`: as the kernel's routes say.
    pub gateway: Option<Ipv4Addr>,
    /// `None`: what suits the device.
    pub hook: Option<XdpHook>,
    /// The first address and the bits of the prefix that connections come from.
    pub prefix: (Ipv4Addr, u8),
}

/// A device's packets of our addresses.
#[derive(Debug)]
pub(crate) struct XdpLink {
    /// Takes the program off the device when it is closed; goes first.
    _attached: OwnedFd,
    queues: Vec<XdpQueue>,
    pub(crate) facts: XdpFacts,
    gateway: Option<Ipv4Addr>,
    index: u32,
    neighbours: Neighbours,
    held: Vec<(Ipv4Addr, Vec<u8>)>,
    answers: Vec<[u8; 42]>,
    refused: u64,
    missed: u64,
    /// The device is no more.
    gone: bool,
}

/// What a link is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct XdpFacts {
    pub(crate) device: String,
    pub(crate) hook: XdpHook,
    pub(crate) queues: usize,
    pub(crate) mtu: u16,
    pub(crate) first: Ipv4Addr,
    /// How many addresses from the first on.
    pub(crate) addresses: u32,
}

impl XdpLink {
    /// Takes the device's packets of our addresses, in the network of the calling thread.
    ///
    /// # Errors
    /// What this machine or this user cannot do, each with the way out.
    pub(crate) fn open(ask: &XdpAsk) -> Result<XdpLink, XdpTrouble> {
        let link = look(&ask.device)?;
        let (network, bits) = ask.prefix;
        netpath::prefix_taken(network, bits, &ask.device).map_err(XdpTrouble::Prefix)?;
        // neither the network's own address nor the one of all its machines
        let first = Ipv4Addr::from_bits(network.to_bits() + 1);
        let addresses = (u32::MAX >> bits) - 1;
        // first of all: what only root may do says so best
        let map = raw::make_map(QUEUES_MAX).map_err(by_bpf)?;
        let (queues, in_parts) = bind_all(&ask.device, link.index)?;
        let most = SINGLE_MAX - arp::ETHERNET_HEAD;
        if !in_parts && link.mtu as usize > most {
            let (device, mtu) = (ask.device.clone(), link.mtu);
            return Err(XdpTrouble::Mtu { device, mtu, most: most as u32 });
        }
        for (number, queue) in queues.iter().enumerate() {
            raw::put_socket(map.as_fd(), number as u32, queue.as_fd()).map_err(by_bpf)?;
        }
        let rows = program::program(first, addresses, number_of(&map));
        let loaded = raw::load(&rows, in_parts).map_err(by_bpf)?;
        let (attached, hook) = attach(ask, &link, &loaded, in_parts)?;
        let mtu = link.mtu.min(u32::from(u16::MAX)) as u16;
        let (device, count) = (ask.device.clone(), queues.len());
        let mut link = XdpLink {
            _attached: attached,
            queues,
            facts: XdpFacts { device, hook, queues: count, mtu, first, addresses },
            gateway: ask.gateway,
            index: link.index,
            neighbours: Neighbours::new(Mac(link.mac), first, addresses),
            held: Vec::new(),
            answers: Vec::new(),
            refused: 0,
            missed: 0,
            gone: false,
        };
        link.settle_in()?;
        Ok(link)
    }

    /// Sees that nobody on the link has an address of ours, and says that they are ours (RFC 5227).
    fn settle_in(&mut self) -> Result<(), XdpTrouble> {
        let probed = self.facts.addresses.min(PROBED_MAX);
        let address = |row| Ipv4Addr::from_bits(self.facts.first.to_bits() + row);
        let all: Vec<Ipv4Addr> = (0..probed).map(address).collect();
        for address in &all {
            let probe = self.neighbours.probe(*address);
            self.refused += u64::from(!self.queues[0].put(&probe, &[]));
        }
        self.queues[0].flush();
        let end = monotonic() + PROBE_SPAN;
        while monotonic() < end {
            self.sleep(Some(span_until(end)));
            if let Some((address, by)) = self.receive(ANSWERS_MAX, |_, _| {}) {
                let device = self.facts.device.clone();
                return Err(XdpTrouble::TakenOnLink { address, by, device });
            }
        }
        for address in &all {
            let announcement = self.neighbours.announcement(*address);
            self.queues[0].put(&announcement, &[]);
        }
        self.queues[0].flush();
        Ok(())
    }

    /// The next hop to a server.
    fn hop_to(&self, server: Ipv4Addr) -> Result<Ipv4Addr, XdpTrouble> {
        let what = |error| XdpTrouble::Other(format!("the route to {server}"), error);
        let here =
            server.is_loopback() || matches!(netlink::route(server, None), Ok(RouteFacts::Local));
        if here {
            let device = self.facts.device.clone();
            return Err(XdpTrouble::Here { address: server, device });
        }
        if let Some(gateway) = self.gateway {
            return Ok(gateway);
        }
        match netlink::route(server, Some(self.index)).map_err(what)? {
            RouteFacts::By(gateway) => Ok(gateway),
            RouteFacts::OnLink | RouteFacts::Local => Ok(server),
        }
    }

    /// Sees that packets to a server have somewhere to go.
    ///
    /// # Errors
    /// The server is this host, or the next hop to it does not answer.
    pub(crate) fn reach(&mut self, server: Ipv4Addr) -> Result<(), XdpTrouble> {
        let hop = self.hop_to(server)?;
        self.neighbours.learn_way(server, hop);
        let end = monotonic() + ANSWER_SPAN;
        loop {
            let now = monotonic();
            match self.neighbours.onward(now, server) {
                Onward::To(_) => return Ok(()),
                Onward::Ask(hop) => self.ask(hop),
                Onward::Wait | Onward::Unknown => {}
            }
            if now >= end {
                let facts = &self.facts;
                let network = Ipv4Addr::from_bits(facts.first.to_bits() - 1);
                let bits = (facts.addresses + 2).leading_zeros() + 1;
                let (device, from) = (facts.device.clone(), format!("{network}/{bits}"));
                return Err(XdpTrouble::NoAnswer { hop, server, device, from });
            }
            self.queues[0].flush();
            // it is asked again in time
            self.sleep(Some(span_until(end.min(now + arp::ASK_AGAIN))));
            if let Some((address, by)) = self.receive(ANSWERS_MAX, |_, _| {}) {
                let device = self.facts.device.clone();
                return Err(XdpTrouble::TakenOnLink { address, by, device });
            }
        }
    }

    fn ask(&mut self, hop: Ipv4Addr) {
        let question = self.neighbours.question(hop);
        self.refused += u64::from(!self.queues[0].put(&question, &[]));
    }

    /// Hands packets over. What has no room is lost, as on any link.
    pub(crate) fn send<'a>(&mut self, packets: impl Iterator<Item = &'a [u8]>) {
        for packet in packets {
            self.put(packet);
        }
        self.queues[0].flush();
    }

    fn put(&mut self, packet: &[u8]) {
        let Some(to) = packet.get(16..20).and_then(|to| to.first_chunk()) else { return };
        let to = Ipv4Addr::from_octets(*to);
        let mut onward = self.neighbours.onward(monotonic(), to);
        if onward == Onward::Unknown {
            // a server that nobody knew of when the run began
            if let Ok(hop) = self.hop_to(to) {
                self.neighbours.learn_way(to, hop);
            }
            onward = self.neighbours.onward(monotonic(), to);
        }
        match onward {
            Onward::To(mac) => {
                let head = self.neighbours.head_of_packet(mac);
                self.refused += u64::from(!self.queues[0].put(&head, packet));
            }
            Onward::Ask(hop) => {
                let held = self.held.len();
                // those of the last question, which went unanswered
                self.held.retain(|(other, _)| *other != to);
                self.refused += (held - self.held.len()) as u64;
                self.ask(hop);
                self.hold(to, packet);
            }
            Onward::Wait => self.hold(to, packet),
            Onward::Unknown => self.refused += 1,
        }
    }

    fn hold(&mut self, to: Ipv4Addr, packet: &[u8]) {
        if self.held.len() >= HELD_MAX {
            self.refused += 1;
            return;
        }
        self.held.push((to, packet.to_vec()));
    }

    /// Takes in what has come, `most` packets of each queue at most. `each` gets a packet, and whether its
    /// TCP checksum is left out, as between devices of one machine. Gives an address of ours that somebody
    /// else has.
    pub(crate) fn receive(
        &mut self,
        most: usize,
        mut each: impl FnMut(&[u8], bool),
    ) -> Option<(Ipv4Addr, Mac)> {
        let XdpLink { queues, neighbours, answers, .. } = self;
        let (mut told, mut taken) = (false, None);
        for queue in queues.iter_mut() {
            queue.receive(most, |frame| match neighbours.hear(frame) {
                LinkFrame::Packet(packet) => each(packet, is_sum_left_out(packet)),
                LinkFrame::Asked(answer) if answers.len() < ANSWERS_MAX => answers.push(answer),
                LinkFrame::Told(_) => told = true,
                LinkFrame::Taken(address, by) => taken = Some((address, by)),
                LinkFrame::Asked(_) | LinkFrame::Nothing => {}
            });
        }
        if !answers.is_empty() {
            for answer in answers.drain(..) {
                self.refused += u64::from(!queues[0].put(&answer, &[]));
            }
            queues[0].flush();
        }
        if told && !self.held.is_empty() {
            let held = std::mem::take(&mut self.held);
            self.send(held.iter().map(|(_, packet)| packet.as_slice()));
        }
        taken
    }

    /// Sleeps until a packet has come, `span` at most.
    pub(crate) fn sleep(&mut self, span: Option<Duration>) {
        let waits = self.queues[0].has_waiting();
        let span =
            if waits { Some(span.map_or(SEND_AGAIN, |it| it.min(SEND_AGAIN))) } else { span };
        let span = span.map(|span| Timespec {
            tv_sec: span.as_secs() as i64,
            tv_nsec: span.subsec_nanos().into(),
        });
        // a device that is gone is told at once, again and again
        let queues = if self.gone { &[][..] } else { &self.queues };
        let mut wanted: Vec<PollFd<'_>> =
            queues.iter().map(|queue| PollFd::new(queue, PollFlags::IN)).collect();
        // interrupted: the next turn tells
        poll(&mut wanted, span.as_ref()).ok();
        self.gone |= wanted.iter().any(|queue| queue.revents().contains(PollFlags::ERR));
    }

    /// Packets that the device did not take, and those that came and found no room, since this was last
    /// asked.
    pub(crate) fn lost(&mut self) -> (u64, u64) {
        let missed: u64 = self.queues.iter().map(XdpQueue::missed).sum();
        let since = missed.saturating_sub(self.missed);
        self.missed = missed;
        (std::mem::take(&mut self.refused), since)
    }
}

/// From now until then.
fn span_until(instant: Nanos) -> Duration {
    Duration::from_nanos((instant - monotonic()).0)
}

fn number_of(map: &OwnedFd) -> i32 {
    use rustix::fd::AsRawFd;
    map.as_raw_fd()
}

/// What is known of a device that can be used.
fn look(device: &str) -> Result<LinkFacts, XdpTrouble> {
    let name = || device.to_owned();
    let link = netlink::link(device).map_err(|error| match error.raw_os_error() {
        // a name that no device can have is refused before it is looked for
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
    if link.mtu < MTU_MIN {
        return Err(XdpTrouble::SmallMtu { device: name(), mtu: link.mtu });
    }
    Ok(link)
}

fn by_bpf(error: io::Error) -> XdpTrouble {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => XdpTrouble::Forbidden,
        Some(libc::ENOSYS) => XdpTrouble::NoSockets,
        _ => XdpTrouble::Other("the kernel does not take the program of XDP".to_owned(), error),
    }
}

/// Binds a socket to each queue of a device; whether packets of several frames are to be had.
fn bind_all(device: &str, index: u32) -> Result<(Vec<XdpQueue>, bool), XdpTrouble> {
    let bind = |queue, room, in_parts| {
        again(
            || XdpQueue::open(QueuePlace { device: index, queue, in_parts }, room),
            |trouble| matches!(trouble, QueueTrouble::Bind(Errno::BUSY)),
        )
    };
    let (first, in_parts) = match bind(0, FIRST_ROOM, true) {
        // the flag is unknown before Linux 6.6
        Err(QueueTrouble::Bind(Errno::INVAL)) => (bind(0, FIRST_ROOM, false), false),
        first => (first, true),
    };
    let mut queues = vec![first.map_err(|trouble| trouble.explain(device, 0))?];
    loop {
        let number = queues.len() as u32;
        match bind(number, OTHER_ROOM, in_parts) {
            // there is none of this number
            Err(QueueTrouble::Bind(Errno::INVAL)) => return Ok((queues, in_parts)),
            Ok(_) if number == QUEUES_MAX => {
                let device = device.to_owned();
                return Err(XdpTrouble::ManyQueues { device, most: QUEUES_MAX });
            }
            Ok(queue) => queues.push(queue),
            Err(trouble) => return Err(trouble.explain(device, number)),
        }
    }
}

/// Attaches the program where it does best, or where that is not to be had, elsewhere.
fn attach(
    ask: &XdpAsk,
    link: &LinkFacts,
    program: &OwnedFd,
    in_parts: bool,
) -> Result<(OwnedFd, XdpHook), XdpTrouble> {
    let hooks: &[XdpHook] = match ask.hook {
        Some(XdpHook::Native) => &[XdpHook::Native],
        Some(XdpHook::Generic) => &[XdpHook::Generic],
        // a veth's driver would take the segmentation from its peer, and has a short queue
        None if link.kind == "veth" && in_parts => &[XdpHook::Generic, XdpHook::Native],
        None => &[XdpHook::Native, XdpHook::Generic],
    };
    let device = || ask.device.clone();
    let mut trouble = None;
    for hook in hooks {
        let native = *hook == XdpHook::Native;
        let attached = again(
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

/// Tries again for a second what is `busy`, because its former owner has just gone.
fn again<T, E>(
    mut attempt: impl FnMut() -> Result<T, E>,
    busy: impl Fn(&E) -> bool,
) -> Result<T, E> {
    for _ in 1..BUSY_TRIES {
        match attempt() {
            Err(error) if busy(&error) => std::thread::sleep(BUSY_PAUSE),
            done => return done,
        }
    }
    attempt()
}
