//! What the workers of a run have in common: their devices, and what all have counted.

use crate::OwnStack;
use netpath::{PacketDevice, PathTrouble};
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};
use tcp::{Checksums, Sources, TcpCounts, TcpSettings, TcpStack};
use units::{Nanos, Seed};

/// What all workers have done, summed up as they end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnCounts {
    pub tcp: TcpCounts,
    /// Packets that the devices did not take.
    pub refused: u64,
}

/// The devices of a run, one for each worker; they go with the last worker and this.
#[derive(Debug)]
pub struct OwnNetwork {
    devices: Vec<PacketDevice>,
    seed: u64,
    counts: Mutex<OwnCounts>,
}

impl OwnNetwork {
    /// Makes the devices, in the network of the calling thread.
    ///
    /// # Errors
    /// What this machine or this user cannot do, each with the way out.
    pub fn open(workers: u32, seed: u64) -> Result<Arc<OwnNetwork>, PathTrouble> {
        let devices = PacketDevice::open(workers.max(1))?;
        Ok(Arc::new(OwnNetwork { devices, seed, counts: Mutex::default() }))
    }

    /// The devices' names.
    pub fn devices(&self) -> impl Iterator<Item = &str> {
        self.devices.iter().map(|device| device.name.as_str())
    }

    /// The first and the last address that connections come from.
    pub fn sources(&self) -> (Ipv4Addr, Ipv4Addr) {
        let ends = |device: &PacketDevice| {
            let first = device.first.to_bits();
            (device.first, Ipv4Addr::from_bits(first + device.addresses - 1))
        };
        let first = self.devices.first().map_or(Ipv4Addr::UNSPECIFIED, |device| ends(device).0);
        let last = self.devices.last().map_or(Ipv4Addr::UNSPECIFIED, |device| ends(device).1);
        (first, last)
    }

    /// The connections of worker `id`, with a device and addresses of their own.
    ///
    /// # Errors
    /// There is no such worker, or no descriptor left.
    pub fn worker(self: &Arc<Self>, id: u32, spin: Nanos) -> std::io::Result<OwnStack> {
        let device = self.devices.get(id as usize);
        let none = || std::io::Error::other("there is no network device for this worker");
        let device = device.ok_or_else(none)?;
        // the device itself stays for the next repeat of the run
        let queue = device.queue.try_clone()?;
        let sources = Sources {
            first: device.first,
            addresses: device.addresses,
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
