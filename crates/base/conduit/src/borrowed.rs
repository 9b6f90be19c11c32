//! A borrowed [`Io`] implements the trait too, so that `&mut dyn Io` fits where a generic one is
//! expected.

use crate::{Close, Io, IoError, OpenOptions, Peer, Ready, Slot};
use sample::{QuicEnd, SocketFacts};
use std::ops::Range;
use units::Nanos;

impl<I: Io + ?Sized> Io for &mut I {
    fn now(&mut self) -> Nanos {
        (**self).now()
    }

    fn open(&mut self, slot: Slot, peer: &Peer, options: &OpenOptions) -> Result<(), IoError> {
        (**self).open(slot, peer, options)
    }

    fn write(&mut self, slot: Slot, bytes: &[u8]) -> Result<usize, IoError> {
        (**self).write(slot, bytes)
    }

    fn read(&mut self, slot: Slot, buffer: &mut [u8]) -> Result<usize, IoError> {
        (**self).read(slot, buffer)
    }

    fn take(&mut self, slot: Slot, buffer: &mut Box<[u8]>) -> Result<Range<usize>, IoError> {
        (**self).take(slot, buffer)
    }

    fn send(&mut self, slot: Slot, datagrams: &[u8], each: usize) -> Result<usize, IoError> {
        (**self).send(slot, datagrams, each)
    }

    fn receive(&mut self, slot: Slot, buffer: &mut [u8]) -> Result<(usize, usize), IoError> {
        (**self).receive(slot, buffer)
    }

    fn close(&mut self, slot: Slot, how: Close) {
        (**self).close(slot, how);
    }

    fn shutdown_write(&mut self, slot: Slot) {
        (**self).shutdown_write(slot);
    }

    fn send_urgent(&mut self, slot: Slot, byte: u8) {
        (**self).send_urgent(slot, byte);
    }

    fn facts(&mut self, slot: Slot) -> Option<SocketFacts> {
        (**self).facts(slot)
    }

    fn quic(&mut self, slot: Slot) -> Option<QuicEnd> {
        (**self).quic(slot)
    }

    fn unsent(&mut self, slot: Slot, stream: u64) -> usize {
        (**self).unsent(slot, stream)
    }

    fn carriers(&mut self) -> u64 {
        (**self).carriers()
    }

    fn failure_text(&mut self, slot: Slot) -> Option<String> {
        (**self).failure_text(slot)
    }

    fn wait(&mut self, until: Nanos, ready: &mut Vec<Ready>) {
        (**self).wait(until, ready);
    }

    fn spin(&self) -> Nanos {
        (**self).spin()
    }
}
