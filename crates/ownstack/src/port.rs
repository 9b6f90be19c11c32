//! Where packets come from and go to: a device's queue, by a system call for each packet or by io_uring,
//! or a device of Ethernet by AF_XDP.

use crate::depth::{Crowds, Lengths};
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

/// Packets that are read before the worker gets its turn.
pub(crate) const BATCH: usize = 256;

/// A device's packets.
#[derive(Debug)]
pub(crate) struct PacketPort {
    source: PortSource,
    /// Packets that a TUN device did not take.
    refused: u64,
    /// Packets that came in batches.
    batched: u64,
}

#[derive(Debug)]
enum PortSource {
    Tun(TunQueue),
    Xdp(LentLink),
}

/// A TUN device's queue.
#[derive(Debug)]
struct TunQueue {
    queue: OwnedFd,
    ring: Option<Box<PacketRing>>,
    /// Where there is a ring: it rests while packets are long. One that is read by a call of its own is used
    /// where it lies, and one that the ring has taken in is copied first.
    lengths: Lengths,
    /// Where the ring is to work only while many packets come together.
    crowds: Option<Crowds>,
    /// The device was deleted: nothing comes any more, and who waits for it would be told so at once.
    gone: bool,
}

/// Where a link is while nobody has it.
pub(crate) type LinkHome = Mutex<Option<Box<XdpLink>>>;

/// A link of a device by AF_XDP; whoever has it gives it back in the end.
#[derive(Debug)]
pub(crate) struct LentLink {
    link: Option<Box<XdpLink>>,
    home: Arc<LinkHome>,
}

impl LentLink {
    /// `None` while somebody else has it.
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

    /// Whether packets go one by one though there is a ring.
    fn rests(&self) -> bool {
        self.lengths.are_long() || self.crowds.is_some_and(|crowds| !crowds.are_many())
    }

    /// The ring, unless it rests.
    fn working_ring(&mut self) -> Option<&mut PacketRing> {
        let rests = self.rests();
        self.ring.as_deref_mut().filter(|_| !rests)
    }
}

impl PacketPort {
    /// Each packet by a system call of its own.
    pub(crate) fn by_calls(queue: OwnedFd) -> PacketPort {
        PacketPort::of(PortSource::Tun(TunQueue::new(queue, None)))
    }

    /// Packets in batches, by io_uring, for the calling thread alone; `always`, or only while many come together.
    ///
    /// # Errors
    /// The kernel has none, or does not allow it.
    pub(crate) fn in_batches(queue: OwnedFd, always: bool) -> io::Result<PacketPort> {
        let ring = Some(Box::new(PacketRing::open(&queue)?));
        let crowds = (!always).then(Crowds::default);
        let tun = TunQueue { crowds, ..TunQueue::new(queue, ring) };
        Ok(PacketPort::of(PortSource::Tun(tun)))
    }

    /// Packets by AF_XDP.
    pub(crate) fn by_xdp(mut link: LentLink) -> PacketPort {
        // what was lost before is not of this run
        link.link().losses();
        PacketPort::of(PortSource::Xdp(link))
    }

    fn of(source: PortSource) -> PacketPort {
        PacketPort { source, refused: 0, batched: 0 }
    }

    /// Whether [`PacketPort::exchange`] waits as well, by the same system call.
    pub(crate) fn has_batches(&self) -> bool {
        matches!(&self.source, PortSource::Tun(tun) if tun.ring.is_some() && !tun.rests())
    }

    /// Whether a TUN device was deleted, as far as that was seen.
    pub(crate) fn is_gone(&self) -> bool {
        matches!(&self.source, PortSource::Tun(tun) if tun.gone)
    }

    /// What of packets is to be counted at the device since this was last asked: losses and batches.
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

    /// Hands packets over. What the device does not take is lost, as on any link.
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

    /// Hands packets over and takes in what has come, [`BATCH`] of them at most; where nothing has come
    /// it may wait for it, `span` at most.
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

    /// What has come together, [`BATCH`] packets at most. `each` gets a packet, and whether its TCP checksum needs
    /// no look. False where packets are had by [`PacketPort::read`] alone.
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

    /// Sees that all is counted which a ring's device did not take.
    pub(crate) fn settle_all(&mut self) {
        if let PortSource::Tun(TunQueue { ring: Some(ring), .. }) = &mut self.source {
            ring.settle_all();
            self.settle();
        }
    }

    /// After each use of the ring: what failed is counted, and a ring that the kernel has given up is
    /// given up.
    fn settle(&mut self) {
        let PortSource::Tun(tun) = &mut self.source else { return };
        let Some(ring) = &mut tun.ring else { return };
        self.refused += ring.refused();
        tun.gone |= ring.is_gone();
        if ring.is_broken() {
            tun.ring = None;
        }
    }

    /// One packet, by a call of its own.
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
            // emulated paths are behind TUN devices alone
            PortSource::Xdp(_) => Err(Errno::AGAIN),
        }
    }

    /// So many packets were read one by one in a turn: they came together.
    pub(crate) fn end_turn(&mut self, packets: usize) {
        if let PortSource::Tun(TunQueue { crowds: Some(crowds), .. }) = &mut self.source {
            crowds.note(packets);
        }
    }

    /// Hands one packet over, by a call of its own.
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

    /// Sleeps until a packet has come, `span` at most.
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
        // a device that is gone is told at once, again and again
        let wanted = if tun.gone { &mut [][..] } else { &mut wanted[..] };
        // interrupted: the next turn tells
        poll(wanted, span.as_ref()).ok();
        tun.gone |= wanted.iter().any(|queue| queue.revents().contains(PollFlags::ERR));
    }
}

/// Whether no packet comes after this error of reading one.
pub(crate) fn is_end(error: Errno) -> bool {
    !matches!(error, Errno::AGAIN | Errno::INTR | Errno::NOMEM | Errno::NOBUFS | Errno::CANCELED)
}

/// Whether a packet behind this virtio header needs no look at its TCP checksum: NEEDS_CSUM or DATA_VALID, the
/// sum is not there, or was looked at.
pub(crate) fn has_no_sum(packet: &[u8]) -> bool {
    packet[0] & 3 != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Option<Duration> = Some(Duration::ZERO);

    /// The numbers of the packets that have come, as the stack takes them in.
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
