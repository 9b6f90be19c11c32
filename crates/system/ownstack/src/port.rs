//! Packet sources: a device queue, by one system call per packet or by io_uring, or an Ethernet
//! device through AF_XDP.

use crate::depth::{Crowds, Lengths};
use crate::reads::{BATCH, is_end};
use crate::uring::PacketRing;
use crate::xdp::XdpLink;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use sample::StackFacts;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tcp::VNET_HEAD;
use units::Nanos;

/// Packets of a device.
#[derive(Debug)]
pub(crate) struct PacketPort {
    source: PortSource,
    /// Packets that a TUN device did not accept.
    refused: u64,
    /// Packets that arrived in batches.
    batched: u64,
}

#[derive(Debug)]
enum PortSource {
    Tun(TunQueue),
    Xdp(LentLink),
}

/// Queue of a TUN device.
#[derive(Debug)]
struct TunQueue {
    queue: OwnedFd,
    ring: Option<Box<PacketRing>>,
    /// Ring, if any: it pauses while packets are long. A packet read by its own call is used in
    /// place; one received by the ring is copied first.
    lengths: Lengths,
    /// If the ring is used only while many packets arrive together.
    crowds: Option<Crowds>,
    /// True if the device was deleted: no more packets arrive, and polling for them would return at
    /// once.
    gone: bool,
}

/// Slot that keeps a link while it is unused.
pub(crate) type LinkHome = Mutex<Option<Box<XdpLink>>>;

/// A link of a device through AF_XDP; returned to its store at the end.
#[derive(Debug)]
pub(crate) struct LentLink {
    link: Option<Box<XdpLink>>,
    home: Arc<LinkHome>,
}

impl LentLink {
    /// Sets the link; `None` while it is in use.
    pub(crate) fn take(home: &Arc<LinkHome>) -> Option<LentLink> {
        let link = home.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        Some(LentLink { link: Some(link), home: home.clone() })
    }

    fn link(&mut self) -> &mut XdpLink {
        self.link.as_mut().expect("it is given back when this ends, and not before")
    }
}

impl Drop for LentLink {
    fn drop(&mut self) {
        *self.home.lock().unwrap_or_else(PoisonError::into_inner) = self.link.take();
    }
}

impl TunQueue {
    fn new(queue: OwnedFd, ring: Option<Box<PacketRing>>) -> TunQueue {
        TunQueue { queue, ring, lengths: Lengths::default(), crowds: None, gone: false }
    }

    /// Returns whether packets are read one by one despite a ring.
    fn reads_singly(&self) -> bool {
        self.lengths.are_long() || self.crowds.is_some_and(|crowds| !crowds.are_many())
    }

    /// Returns the ring, unless it pauses.
    fn working_ring(&mut self) -> Option<&mut PacketRing> {
        let rests = self.reads_singly();
        self.ring.as_deref_mut().filter(|_| !rests)
    }
}

impl PacketPort {
    /// Uses one system call per packet.
    pub(crate) fn by_calls(queue: OwnedFd) -> PacketPort {
        PacketPort::new(PortSource::Tun(TunQueue::new(queue, None)))
    }

    /// Creates a port that sends packets in batches, by io_uring, for the calling thread only;
    /// `always`, or only while many arrive together.
    ///
    /// # Errors
    /// Fails if the kernel has no io_uring, or does not permit it.
    pub(crate) fn in_batches(queue: OwnedFd, always: bool) -> io::Result<PacketPort> {
        let ring = Some(Box::new(PacketRing::open(&queue)?));
        let crowds = (!always).then(Crowds::default);
        let tun = TunQueue { crowds, ..TunQueue::new(queue, ring) };
        Ok(PacketPort::new(PortSource::Tun(tun)))
    }

    /// Creates a port for packets through AF_XDP.
    pub(crate) fn by_xdp(mut link: LentLink) -> PacketPort {
        // earlier losses do not belong to this run
        link.link().losses();
        PacketPort::new(PortSource::Xdp(link))
    }

    fn new(source: PortSource) -> PacketPort {
        PacketPort { source, refused: 0, batched: 0 }
    }

    /// Returns whether [`PacketPort::exchange`] also waits, in the same system call.
    pub(crate) fn has_batches(&self) -> bool {
        matches!(&self.source, PortSource::Tun(tun) if tun.ring.is_some() && !tun.reads_singly())
    }

    /// Returns whether a TUN device was deleted, if that was noticed.
    pub(crate) fn is_gone(&self) -> bool {
        matches!(&self.source, PortSource::Tun(tun) if tun.gone)
    }

    /// Returns the packet counters of the device since the last call: losses and batches.
    pub(crate) fn counts(&mut self) -> StackFacts {
        match &mut self.source {
            PortSource::Xdp(lent) => lent.link().losses(),
            PortSource::Tun(_) => StackFacts {
                refused: std::mem::take(&mut self.refused),
                batched: std::mem::take(&mut self.batched),
                ..StackFacts::default()
            },
        }
    }

    /// Sends packets. Packets that the device does not accept are lost, as on any link.
    pub(crate) fn send<'a>(&mut self, now: Nanos, packets: impl Iterator<Item = &'a [u8]>) {
        match &mut self.source {
            PortSource::Xdp(lent) => lent.link().send(now, packets),
            PortSource::Tun(tun) => match tun.working_ring() {
                Some(ring) => {
                    ring.send(packets);
                    self.settle();
                }
                None => packets.for_each(|packet| self.write(now, packet)),
            },
        }
    }

    /// Sends packets and receives at most [`BATCH`]; if none has arrived it may wait, for at most
    /// `span`.
    pub(crate) fn exchange<'a>(
        &mut self,
        now: Nanos,
        packets: impl Iterator<Item = &'a [u8]>,
        span: Option<Duration>,
    ) {
        let ring = match &mut self.source {
            PortSource::Tun(tun) => tun.working_ring(),
            PortSource::Xdp(_) => None,
        };
        match ring {
            Some(ring) => {
                ring.exchange(packets, span);
                self.settle();
            }
            None => self.send(now, packets),
        }
    }

    /// Receives the packets that arrived together, at most [`BATCH`]. `each` gets a packet and
    /// whether its TCP checksum need not be verified. False if packets are available through
    /// [`PacketPort::read`] only.
    pub(crate) fn receive(&mut self, now: Nanos, mut each: impl FnMut(&[u8], bool)) -> bool {
        match &mut self.source {
            PortSource::Xdp(lent) => lent.link().receive(now, BATCH, each),
            PortSource::Tun(tun) => {
                let Some(ring) = tun.working_ring() else { return false };
                let came = ring.take(|bytes| {
                    if let Some((_, packet)) = bytes.split_at_checked(VNET_HEAD) {
                        each(packet, has_no_sum(bytes));
                    }
                });
                self.batched += came.0 as u64;
                tun.lengths.note(came);
                if let Some(crowds) = &mut tun.crowds {
                    crowds.note(came.0);
                }
            }
        }
        true
    }

    /// Makes sure that all packets rejected by the device of a ring are counted.
    pub(crate) fn settle_all(&mut self) {
        if let PortSource::Tun(TunQueue { ring: Some(ring), .. }) = &mut self.source {
            ring.settle_all();
            self.settle();
        }
    }

    /// Handles the end of each use of the ring: counts failures, and drops a ring that the kernel
    /// has ended.
    fn settle(&mut self) {
        let PortSource::Tun(tun) = &mut self.source else { return };
        let Some(ring) = &mut tun.ring else { return };
        self.refused += ring.refused();
        tun.gone |= ring.is_gone();
        if ring.is_broken() {
            tun.ring = None;
        }
    }

    /// Reads one packet with its own call.
    pub(crate) fn read(&mut self, into: &mut [u8]) -> Result<usize, Errno> {
        match &mut self.source {
            PortSource::Tun(tun) => {
                let read = rustix::io::read(&tun.queue, into);
                tun.gone |= matches!(read, Err(error) if is_end(error));
                if let (Ok(length), true) = (read, tun.ring.is_some()) {
                    tun.lengths.note((1, length));
                }
                read
            }
            // emulated paths need TUN devices
            PortSource::Xdp(_) => Err(Errno::AGAIN),
        }
    }

    /// Records the number of packets that were read one by one in a turn: they arrived together.
    pub(crate) fn end_turn(&mut self, packets: usize) {
        if let PortSource::Tun(TunQueue { crowds: Some(crowds), .. }) = &mut self.source {
            crowds.note(packets);
        }
    }

    /// Sends one packet with its own call.
    pub(crate) fn write(&mut self, now: Nanos, packet: &[u8]) {
        let tun = match &mut self.source {
            PortSource::Tun(tun) => tun,
            PortSource::Xdp(lent) => return lent.link().send(now, std::iter::once(packet)),
        };
        loop {
            match rustix::io::write(&tun.queue, packet) {
                Err(Errno::INTR) => {}
                done => {
                    self.refused += u64::from(done.is_err());
                    return;
                }
            }
        }
    }

    /// Sleeps until a packet arrives, for at most `span`.
    pub(crate) fn sleep(&mut self, span: Option<Duration>) {
        let tun = match &mut self.source {
            PortSource::Tun(tun) => tun,
            PortSource::Xdp(lent) => return lent.link().sleep(span),
        };
        let span = span.map(|span| Timespec {
            tv_sec: span.as_secs() as i64,
            tv_nsec: span.subsec_nanos().into(),
        });
        let mut wanted = [PollFd::new(&tun.queue, PollFlags::IN)];
        // polling a deleted device returns at once, every time
        let wanted = if tun.gone { &mut [][..] } else { &mut wanted[..] };
        // interrupted: the next turn finds out
        poll(wanted, span.as_ref()).ok();
        tun.gone |= wanted.iter().any(|queue| queue.revents().contains(PollFlags::ERR));
    }
}

/// Returns whether the TCP checksum of a packet with this virtio header need not be verified: with
/// NEEDS_CSUM it is absent, with DATA_VALID it was verified.
pub(crate) fn has_no_sum(packet: &[u8]) -> bool {
    packet[0] & 3 != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Option<Duration> = Some(Duration::ZERO);

    /// Returns the numbers of the received packets, in the order in which the stack gets them.
    fn taken(port: &mut PacketPort) -> Vec<u8> {
        let mut numbers = Vec::new();
        port.exchange(Nanos::ZERO, std::iter::empty(), NOW);
        if !port.receive(Nanos::ZERO, |packet, _| numbers.push(packet[0])) {
            let mut room = [0; 2_048];
            while let Ok(80) = port.read(&mut room) {
                numbers.push(room[VNET_HEAD]);
            }
            port.end_turn(numbers.len());
        }
        numbers
    }

    #[test]
    fn the_ring_begins_and_rests_between_packets() {
        let Some((ours, theirs)) = crate::uring::tests::pair() else { return };
        let mut port = PacketPort::in_batches(ours, false).expect("a ring");
        let mut worked = Vec::new();
        for together in [[1; 60], [150; 60], [3; 60]] {
            for packets in together {
                let sent: Vec<u8> = (0..packets).collect();
                for number in &sent {
                    rustix::io::write(&theirs, &[*number; 80]).expect("it takes packets");
                }
                let mut came = Vec::new();
                while came.len() < sent.len() {
                    came.extend(taken(&mut port));
                }
                assert_eq!(came, sent, "each once and in order");
            }
            worked.push(port.has_batches());
        }
        assert_eq!(worked, [false, true, false]);
        assert!(port.counts().batched > 0);
    }
}
