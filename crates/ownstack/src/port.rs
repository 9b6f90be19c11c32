//! Where packets come from and go to: a device's queue, by a system call for each packet or by io_uring.

use crate::uring::PacketRing;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::io;
use std::time::Duration;

/// Packets that are read before the worker gets its turn.
pub(crate) const BATCH: usize = 256;
/// A segment of 64 KiB with its heads; one buffer, which stays in the cache.
const BUFFER: usize = 70_000;

/// A device's packets.
#[derive(Debug)]
pub(crate) struct PacketPort {
    queue: OwnedFd,
    buffer: Vec<u8>,
    ring: Option<PacketRing>,
    /// Packets that the device did not take.
    refused: u64,
}

impl PacketPort {
    /// Each packet by a system call of its own.
    pub(crate) fn by_calls(queue: OwnedFd) -> PacketPort {
        PacketPort { queue, buffer: vec![0; BUFFER], ring: None, refused: 0 }
    }

    /// Packets in batches, by io_uring, for the calling thread alone.
    ///
    /// # Errors
    /// The kernel has none, or does not allow it.
    pub(crate) fn in_batches(queue: OwnedFd) -> io::Result<PacketPort> {
        let ring = PacketRing::open(&queue)?;
        Ok(PacketPort { ring: Some(ring), ..PacketPort::by_calls(queue) })
    }

    /// Whether [`PacketPort::exchange`] does all by one system call.
    pub(crate) fn has_batches(&self) -> bool {
        self.ring.is_some()
    }

    /// Packets that the device did not take.
    pub(crate) fn refused(&self) -> u64 {
        self.refused
    }

    /// Hands packets over. What the device does not take is lost, as on any link.
    pub(crate) fn send<'a>(&mut self, packets: impl Iterator<Item = &'a [u8]>) {
        match &mut self.ring {
            Some(ring) => {
                ring.send(packets);
                self.settle();
            }
            None => packets.for_each(|packet| self.write(packet)),
        }
    }

    /// Hands packets over and takes in what has come, [`BATCH`] of them at most; where nothing has come
    /// it may wait for it, `span` at most.
    pub(crate) fn exchange<'a>(
        &mut self,
        packets: impl Iterator<Item = &'a [u8]>,
        span: Option<Duration>,
    ) {
        match &mut self.ring {
            Some(ring) => {
                ring.exchange(packets, span);
                self.settle();
            }
            None => packets.for_each(|packet| self.write(packet)),
        }
    }

    /// What has come, [`BATCH`] packets at most.
    pub(crate) fn receive(&mut self, mut each: impl FnMut(&[u8])) {
        if let Some(ring) = &mut self.ring {
            return ring.take(each);
        }
        for _ in 0..BATCH {
            match rustix::io::read(&self.queue, &mut self.buffer[..]) {
                Ok(length) => each(&self.buffer[..length]),
                Err(Errno::INTR) => {}
                Err(_) => return,
            }
        }
    }

    /// After each use of the ring: what failed is counted, and a ring that the kernel has given up is
    /// given up.
    fn settle(&mut self) {
        let Some(ring) = &mut self.ring else { return };
        self.refused += ring.refused();
        if ring.is_broken() {
            self.ring = None;
        }
    }

    /// One packet, by a call of its own.
    pub(crate) fn read(&self, into: &mut [u8]) -> Result<usize, Errno> {
        rustix::io::read(&self.queue, into)
    }

    /// Hands one packet over, by a call of its own.
    pub(crate) fn write(&mut self, packet: &[u8]) {
        loop {
            match rustix::io::write(&self.queue, packet) {
                Err(Errno::INTR) => {}
                done => {
                    self.refused += u64::from(done.is_err());
                    return;
                }
            }
        }
    }

    /// Sleeps until a packet has come, `span` at most.
    pub(crate) fn sleep(&self, span: Option<Duration>) {
        let span = span.map(|span| Timespec {
            tv_sec: span.as_secs() as i64,
            tv_nsec: span.subsec_nanos().into(),
        });
        let mut wanted = [PollFd::new(&self.queue, PollFlags::IN)];
        // interrupted, or a queue that is gone: the next turn tells
        poll(&mut wanted, span.as_ref()).ok();
    }
}
