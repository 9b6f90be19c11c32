//! Clients that read slowly: an [`Io`] over another one whose connections return a limited number
//! of bytes per second. Unread bytes stay in the socket, so that TCP slows the server down.

use conduit::{Close, Io, IoError, OpenOptions, Peer, Ready, Slot};
use sample::{QuicEnd, SocketFacts};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use units::Nanos;

/// Number of bytes at the start of a connection that are read at once: TLS and the response to an
/// upgrade.
const UNPACED: u64 = 8 << 10;
/// Time whose bytes are read together.
const GRAIN: Nanos = Nanos::from_millis(10);

/// One connection.
#[derive(Clone, Copy, Debug, Default)]
struct ReadPace {
    received: u64,
    /// Instant before which nothing is read.
    free_at: Nanos,
    /// Instant at which the worker is notified again; zero without an alarm.
    alarm: Nanos,
}

#[derive(Debug)]
pub struct PacedReads<I> {
    io: I,
    bytes_per_s: f64,
    paces: Vec<ReadPace>,
    alarms: BinaryHeap<Reverse<(Nanos, Slot)>>,
}

impl<I: Io> PacedReads<I> {
    pub fn new(io: I, bytes_per_s: f64) -> PacedReads<I> {
        PacedReads { io, bytes_per_s, paces: Vec::new(), alarms: BinaryHeap::new() }
    }

    fn pace(&mut self, slot: Slot) -> &mut ReadPace {
        let index = slot as usize;
        if self.paces.len() <= index {
            self.paces.resize(index + 1, ReadPace::default());
        }
        &mut self.paces[index]
    }

    /// Notifies the worker when the connection may be read again.
    fn set_alarm(&mut self, slot: Slot) {
        let pace = self.pace(slot);
        if pace.alarm != pace.free_at {
            pace.alarm = pace.free_at;
            let at = pace.free_at;
            self.alarms.push(Reverse((at, slot)));
        }
    }
}

impl<I: Io> Io for PacedReads<I> {
    fn now(&mut self) -> Nanos {
        self.io.now()
    }

    fn open(&mut self, slot: Slot, peer: &Peer, options: &OpenOptions) -> Result<(), IoError> {
        *self.pace(slot) = ReadPace::default();
        self.io.open(slot, peer, options)
    }

    fn write(&mut self, slot: Slot, bytes: &[u8]) -> Result<usize, IoError> {
        self.io.write(slot, bytes)
    }

    fn read(&mut self, slot: Slot, buffer: &mut [u8]) -> Result<usize, IoError> {
        let now = self.io.now();
        if now < self.pace(slot).free_at {
            self.set_alarm(slot);
            return Err(IoError::WouldBlock);
        }
        let unpaced = UNPACED.saturating_sub(self.pace(slot).received);
        let most = (self.bytes_per_s * GRAIN.as_secs_f64()).max(1.0) as u64;
        let most = usize::try_from(most.max(unpaced)).unwrap_or(usize::MAX).min(buffer.len());
        let count = self.io.read(slot, &mut buffer[..most])?;
        let paced = (count as u64).saturating_sub(unpaced);
        let free_at = now + Nanos::from_secs_f64(paced as f64 / self.bytes_per_s);
        let pace = self.pace(slot);
        pace.received += count as u64;
        pace.free_at = free_at;
        // a short read means to the worker that there is no more
        self.set_alarm(slot);
        Ok(count)
    }

    fn close(&mut self, slot: Slot, how: Close) {
        *self.pace(slot) = ReadPace::default();
        self.io.close(slot, how);
    }

    fn shutdown_write(&mut self, slot: Slot) {
        self.io.shutdown_write(slot);
    }

    fn send_urgent(&mut self, slot: Slot, byte: u8) {
        self.io.send_urgent(slot, byte);
    }

    fn facts(&mut self, slot: Slot) -> Option<SocketFacts> {
        self.io.facts(slot)
    }

    fn quic(&mut self, slot: Slot) -> Option<QuicEnd> {
        self.io.quic(slot)
    }

    fn failure_text(&mut self, slot: Slot) -> Option<String> {
        self.io.failure_text(slot)
    }

    fn wait(&mut self, until: Nanos, ready: &mut Vec<Ready>) {
        let next = self.alarms.peek().map_or(Nanos::NEVER, |Reverse((at, _))| *at);
        self.io.wait(until.min(next), ready);
        if next == Nanos::NEVER {
            return;
        }
        let now = self.io.now();
        while let Some(Reverse((at, slot))) = self.alarms.peek().copied()
            && at <= now
        {
            self.alarms.pop();
            let pace = self.pace(slot);
            // otherwise it belongs to an earlier connection
            if pace.alarm == at {
                pace.alarm = Nanos::ZERO;
                ready.push(Ready { slot, readable: true, writable: false, ended: false });
            }
        }
    }

    fn spin(&self) -> Nanos {
        self.io.spin()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A connection with endless input, and a clock.
    #[derive(Debug, Default)]
    struct Endless {
        now: Nanos,
    }

    impl Io for Endless {
        fn now(&mut self) -> Nanos {
            self.now
        }

        fn open(&mut self, _: Slot, _: &Peer, _: &OpenOptions) -> Result<(), IoError> {
            Ok(())
        }

        fn write(&mut self, _: Slot, bytes: &[u8]) -> Result<usize, IoError> {
            Ok(bytes.len())
        }

        fn read(&mut self, _: Slot, buffer: &mut [u8]) -> Result<usize, IoError> {
            Ok(buffer.len())
        }

        fn close(&mut self, _: Slot, _: Close) {}

        fn shutdown_write(&mut self, _: Slot) {}

        fn facts(&mut self, _: Slot) -> Option<SocketFacts> {
            None
        }

        fn wait(&mut self, until: Nanos, ready: &mut Vec<Ready>) {
            ready.clear();
            self.now = self.now.max(until);
        }
    }

    #[test]
    fn a_connection_is_read_at_its_rate_after_the_handshake() {
        let mut io = PacedReads::new(Endless::default(), 1_000.0);
        let peer = Peer::Tcp("127.0.0.1:1".parse().unwrap());
        io.open(3, &peer, &OpenOptions::default()).unwrap();
        let mut buffer = [0; 64 << 10];
        assert_eq!(io.read(3, &mut buffer), Ok(UNPACED as usize));
        let (mut received, mut ready) = (0, Vec::new());
        let end = Nanos::from_secs(10);
        while io.now() < end {
            while let Ok(count) = io.read(3, &mut buffer) {
                received += count;
            }
            io.wait(end, &mut ready);
            assert!(io.now() >= end || ready.iter().any(|event| event.slot == 3 && event.readable));
        }
        assert!((9_990..=10_010).contains(&received), "{received}");
        // an alarm of a closed connection is dropped
        io.close(3, Close::Orderly);
        io.wait(Nanos::from_secs(11), &mut ready);
        assert!(ready.is_empty(), "{ready:?}");
    }
}
