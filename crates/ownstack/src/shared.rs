//! What the workers of a run have in common: the device, its queues, and what all have counted.

use crate::OwnStack;
use netpath::{PacketDevice, PathTrouble, SOURCES_MAX};
use rustix::fd::OwnedFd;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};
use tcp::{Checksums, Sources, TcpCounts, TcpSettings, TcpStack};
use units::{Nanos, Seed};

/// What all workers have done, summed up as they end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnCounts {
    pub tcp: TcpCounts,
    /// Packets that the device did not take.
    pub refused: u64,
}

/// The device of a run; it goes with the last worker and this.
#[derive(Debug)]
pub struct OwnNetwork {
    name: String,
    first: Ipv4Addr,
    /// Addresses of each worker.
    share: u32,
    seed: u64,
    queues: Vec<OwnedFd>,
    counts: Mutex<OwnCounts>,
}

impl OwnNetwork {
    /// Makes the device, in the network of the calling thread.
    ///
    /// # Errors
    /// What this machine or this user cannot do, each with the way out.
    pub fn open(workers: u32, seed: u64) -> Result<Arc<OwnNetwork>, PathTrouble> {
        let device = PacketDevice::open(workers.max(1))?;
        Ok(Arc::new(OwnNetwork {
            name: device.name,
            first: device.first,
            share: (SOURCES_MAX / workers.max(1)).max(1),
            seed,
            queues: device.queues,
            counts: Mutex::default(),
        }))
    }

    /// The device's name.
    pub fn device(&self) -> &str {
        &self.name
    }

    /// The first and the last address that connections come from.
    pub fn sources(&self) -> (Ipv4Addr, Ipv4Addr) {
        (self.first, Ipv4Addr::from_bits(self.first.to_bits() + SOURCES_MAX - 1))
    }

    /// The connections of worker `id`, with a queue and addresses of their own.
    ///
    /// # Errors
    /// There is no such worker, or no descriptor left.
    pub fn worker(self: &Arc<Self>, id: u32, spin: Nanos) -> std::io::Result<OwnStack> {
        let queue = self.queues.get(id as usize);
        let none = || std::io::Error::other("the network device has no queue for this worker");
        // the queue itself stays for the next repeat of the run
        let queue = queue.ok_or_else(none)?.try_clone()?;
        let sources = Sources {
            first: Ipv4Addr::from_bits(self.first.to_bits().wrapping_add(id * self.share)),
            addresses: self.share,
            port_first: 1_024,
            port_last: u16::MAX,
        };
        let settings = TcpSettings::default();
        let stack = TcpStack::new(settings, sources, Checksums::Device, Seed(self.seed));
        Ok(OwnStack::new(stack, queue, self.clone(), spin))
    }

    pub(crate) fn add(&self, tcp: TcpCounts, refused: u64) {
        let mut sum = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        sum.tcp += tcp;
        sum.refused += refused;
    }

    /// What the workers that have ended have counted.
    pub fn counts(&self) -> OwnCounts {
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
