//! WebSockets as streams of connections of HTTP/2 (RFC 8441) or HTTP/3 (RFC 9220) between a worker
//! and the network: an [`Io`] over another one. To the worker each WebSocket is a separate
//! connection that begins with an upgrade of HTTP/1.1. Below it, up to a given number of tunnels
//! share one connection, a `Trunk`. An upgrade is sent as an extended CONNECT, as a gateway does.
//! The response is returned as that of an upgrade, and the bytes after it pass unchanged. Layer 3:
//! it opens no socket and reads no clock.
//!
//! A tunnel to a peer of QUIC uses HTTP/3, over the streams that the [`Io`] below carries; any
//! other uses HTTP/2, with TLS if the peer has a name for it.
//!
//! A connection counts as connected once a stream for it may be opened: the connect time includes
//! TCP, TLS or QUIC, and the server's SETTINGS if it is the first of its trunk. TLS facts are those
//! of the trunk.
//!
//! Connections to peers other than [`Peer::Tunnel`] pass unchanged, such as those of the requests
//! of a journey. Not supported: connections that are opened for a user with its own TLS sessions.
#![forbid(unsafe_code)]

mod carrier;
mod endpoint;
mod head;
#[cfg(test)]
mod tests;
mod trunk;

use conduit::{Close, Io, IoError, OpenOptions, Peer, Ready, Slot, TlsFactory};
use endpoint::{TunnelEnd, TunnelEndpoint, TunnelStage};
use http2::SessionSettings;
use sample::{FailureClass, QuicEnd, SocketFacts};
use std::ops::Range;
use trunk::{Trunk, TrunkFailure, TunnelInput};
use units::Nanos;

/// Number of bytes read from a trunk at a time, and number of reads before the worker gets a turn.
const READ_SIZE: usize = 64 << 10;
const READS_MAX: usize = 16;
/// Maximum number of received bytes that a worker has not read; a trunk with a fuller tunnel is not
/// read.
const UNREAD_MAX: usize = 1 << 20;
/// Longest head of an upgrade.
const UPGRADE_MAX: usize = 64 << 10;

/// Settings of the connections that carry tunnels.
pub struct TunnelTerms {
    pub settings: SessionSettings,
    /// Maximum number of tunnels per connection; fewer if the server permits fewer streams.
    pub per_connection: u32,
    /// Offers HTTP/2 by ALPN; `None`: no server is reached by TLS.
    pub tls: Option<Box<dyn TlsFactory>>,
}

impl std::fmt::Debug for TunnelTerms {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TunnelTerms")
            .field("per_connection", &self.per_connection)
            .finish_non_exhaustive()
    }
}

/// Tunnels of one worker.
#[derive(Debug)]
pub struct Tunnels<I: Io> {
    io: I,
    terms: TunnelTerms,
    /// Each uses the slot below that is its index.
    trunks: Vec<Option<Trunk>>,
    /// Connections that are not tunnels, by their slots below.
    direct: Vec<Option<Slot>>,
    /// Slots below that are not in use.
    free: Vec<Slot>,
    tunnels: Vec<TunnelEndpoint>,
    /// Slots with readiness to be reported.
    news: Vec<Slot>,
    /// Trunks that have something to send, and trunks that were not read to the end.
    dirty: Vec<Slot>,
    unread: Vec<Slot>,
    /// Tunnels whose trunk has no stream for them.
    homeless: Vec<Slot>,
    ready: Vec<Ready>,
    buffer: Box<[u8]>,
    /// Trunks opened since the last query.
    opened: u64,
}

impl<I: Io> Tunnels<I> {
    pub fn new(io: I, terms: TunnelTerms) -> Tunnels<I> {
        Tunnels {
            io,
            terms,
            trunks: Vec::new(),
            direct: Vec::new(),
            free: Vec::new(),
            tunnels: Vec::new(),
            news: Vec::new(),
            dirty: Vec::new(),
            unread: Vec::new(),
            homeless: Vec::new(),
            ready: Vec::new(),
            buffer: vec![0; READ_SIZE].into_boxed_slice(),
            opened: 0,
        }
    }

    fn tunnel(&mut self, slot: Slot) -> Option<&mut TunnelEndpoint> {
        self.tunnels.get_mut(slot as usize)
    }

    fn trunk(&mut self, index: Slot) -> Option<&mut Trunk> {
        self.trunks.get_mut(index as usize)?.as_mut()
    }

    /// Returns the connection whose facts are reported with a tunnel: its own (`true`), or the
    /// shared one (`false`) if the tunnel is the last on its connection.
    fn connection_of(&mut self, slot: Slot) -> Option<(Slot, bool)> {
        let tunnel = self.tunnels.get(slot as usize)?;
        let is_direct = tunnel.stage == TunnelStage::Direct;
        let index = tunnel.trunk;
        (is_direct || self.trunk(index)?.is_last()).then_some((index, is_direct))
    }

    /// Schedules a flush of a trunk before the next wait.
    fn mark(&mut self, index: Slot) {
        if let Some(trunk) = self.trunks.get_mut(index as usize).and_then(Option::as_mut)
            && !std::mem::replace(&mut trunk.is_dirty, true)
        {
            self.dirty.push(index);
        }
    }

    fn report(&mut self, slot: Slot, readable: bool, writable: bool) {
        if let Some(tunnel) = self.tunnels.get_mut(slot as usize)
            && tunnel.note(readable, writable)
        {
            self.news.push(slot);
        }
    }

    /// Places a tunnel on a trunk with room, or on a new one.
    fn place(&mut self, slot: Slot) -> Result<(), IoError> {
        let Some(tunnel) = self.tunnels.get(slot as usize) else { return Ok(()) };
        let most = self.terms.per_connection;
        let fits = |trunk: &Option<Trunk>| {
            trunk.as_ref().is_some_and(|trunk| trunk.takes(&tunnel.peer, &tunnel.options, most))
        };
        let index = match self.trunks.iter().position(fits) {
            Some(index) => index as Slot,
            None => self.open_trunk(slot)?,
        };
        if let Some(trunk) = self.trunk(index) {
            trunk.waiting.push_back(slot);
        }
        if let Some(tunnel) = self.tunnel(slot) {
            tunnel.trunk = index;
        }
        self.admit(index);
        Ok(())
    }

    /// Opens a connection below; returns its slot.
    fn open_below(&mut self, peer: &Peer, options: &OpenOptions) -> Result<Slot, IoError> {
        let index = self.free.pop().unwrap_or_else(|| {
            self.trunks.push(None);
            self.direct.push(None);
            self.trunks.len() as Slot - 1
        });
        let opened = self.io.open(index, peer, options);
        opened.inspect_err(|_| self.free.push(index)).map(|()| index)
    }

    fn open_trunk(&mut self, slot: Slot) -> Result<Slot, IoError> {
        let tunnel = &self.tunnels[slot as usize];
        let peer = tunnel.peer.clone();
        let options = tunnel.options.clone();
        let Peer::Tunnel { to, name } = &peer else {
            return Err(IoError::Failed(FailureClass::OtherIo));
        };
        let tls = match (name, &mut self.terms.tls) {
            (None, _) => None,
            (Some(_), None) => return Err(IoError::Failed(FailureClass::Tls)),
            (Some(name), Some(factory)) => {
                let session = factory.session(name);
                Some(session.map_err(|error| IoError::Failed(error.class))?)
            }
        };
        let index = self.open_below(to, &options)?;
        let trunk = Trunk::new(&self.terms.settings, peer, options, tls);
        self.trunks[index as usize] = Some(trunk);
        self.mark(index);
        self.opened += 1;
        Ok(index)
    }

    /// Opens a connection that is not a tunnel.
    fn open_direct(
        &mut self,
        slot: Slot,
        peer: &Peer,
        options: &OpenOptions,
    ) -> Result<(), IoError> {
        let index = self.open_below(peer, options)?;
        self.direct[index as usize] = Some(slot);
        let tunnel = &mut self.tunnels[slot as usize];
        tunnel.stage = TunnelStage::Direct;
        tunnel.trunk = index;
        Ok(())
    }

    /// Returns the underlying slot of a connection that is not a tunnel.
    fn direct(&self, slot: Slot) -> Option<Slot> {
        let tunnel = self.tunnels.get(slot as usize)?;
        (tunnel.stage == TunnelStage::Direct).then_some(tunnel.trunk)
    }

    /// Lets waiting tunnels of a trunk open their streams. Those without room must move.
    fn admit(&mut self, index: Slot) {
        let most = self.terms.per_connection;
        let Some(trunk) = self.trunks.get_mut(index as usize).and_then(Option::as_mut) else {
            return;
        };
        if !trunk.is_settled() {
            return;
        }
        while !trunk.waiting.is_empty() && trunk.room(most) > 0 {
            let Some(slot) = trunk.waiting.pop_front() else { break };
            trunk.admitted += 1;
            if let Some(tunnel) = self.tunnels.get_mut(slot as usize) {
                tunnel.stage = TunnelStage::Admitted;
                if tunnel.note(false, true) {
                    self.news.push(slot);
                }
            }
        }
        self.homeless.extend(trunk.waiting.drain(..));
    }

    /// Places tunnels that must move.
    fn relocate_tunnels(&mut self) {
        while let Some(slot) = self.homeless.pop() {
            if let Err(error) = self.place(slot) {
                self.end(slot, TunnelEnd::Failed(class_of(error)), None);
            }
        }
    }

    fn end(&mut self, slot: Slot, end: TunnelEnd, why: Option<&str>) {
        if let Some(tunnel) = self.tunnel(slot) {
            tunnel.end.get_or_insert(end);
            tunnel.why = why.map(str::to_owned).or(tunnel.why.take());
        }
        self.report(slot, true, true);
    }

    /// Ends a trunk and the tunnels on it.
    fn fail(&mut self, index: Slot, failure: &TrunkFailure) {
        let Some(mut trunk) = self.trunks.get_mut(index as usize).and_then(Option::take) else {
            return;
        };
        let mut facts = trunk.new_facts(self.io.facts(index));
        let mut quic = trunk.new_quic_facts(self.io.quic(index));
        self.io.close(index, Close::Orderly);
        self.free.push(index);
        let mut ended: Vec<Slot> = trunk.members.iter().filter_map(|it| it.slot).collect();
        ended.extend(trunk.waiting.iter().copied());
        for (slot, tunnel) in self.tunnels.iter_mut().enumerate() {
            if tunnel.trunk == index {
                // the next trunk may have this index before the worker closes the tunnel
                tunnel.trunk = Slot::MAX;
                match tunnel.stage {
                    TunnelStage::Admitted => ended.push(slot as Slot),
                    TunnelStage::Open => {
                        tunnel.facts = facts.take();
                        tunnel.quic = quic.take();
                    }
                    _ => {}
                }
            }
        }
        for slot in ended {
            self.end(slot, TunnelEnd::Failed(failure.class), failure.why.as_deref());
        }
    }

    /// Reads a trunk until no data is left, for a limited number of reads.
    fn receive(&mut self, index: Slot) {
        let Some(mut trunk) = self.trunks.get_mut(index as usize).and_then(Option::take) else {
            return;
        };
        let mut result = Ok(());
        let mut left = READS_MAX;
        while result.is_ok() {
            if left == 0 || self.is_full(&trunk) {
                self.unread.push(index);
                break;
            }
            left -= 1;
            let count = match self.io.read(index, &mut self.buffer) {
                Ok(0) => {
                    result = Err(TrunkFailure::new(FailureClass::ClosedEarly, None));
                    break;
                }
                Ok(count) => count,
                Err(IoError::WouldBlock) => {
                    result = trunk.unwritable.take().map_or(Ok(()), Err);
                    break;
                }
                Err(IoError::Failed(class)) => {
                    result = Err(TrunkFailure::new(class, self.io.failure_text(index)));
                    break;
                }
            };
            let mut buffer = std::mem::take(&mut self.buffer);
            result = trunk.receive(&buffer[..count], &mut |input| self.take_input(index, input));
            std::mem::swap(&mut self.buffer, &mut buffer);
            if count < READ_SIZE && trunk.unwritable.is_none() {
                break;
            }
        }
        if result.is_ok() && self.unread.last() != Some(&index) {
            trunk.take_stopped(&mut |input| self.take_input(index, input));
        }
        self.trunks[index as usize] = Some(trunk);
        match result {
            Ok(()) => {
                self.mark(index);
                self.admit(index);
            }
            Err(failure) => {
                // an alert or GOAWAY with the reason
                self.flush(index);
                self.fail(index, &failure);
            }
        }
    }

    /// Returns whether a tunnel has too many bytes that its worker has not read.
    fn is_full(&self, trunk: &Trunk) -> bool {
        let slots = trunk.fullest.iter().filter_map(|slot| self.tunnels.get(*slot as usize));
        slots.map(TunnelEndpoint::unread).any(|unread| unread > UNREAD_MAX)
    }

    /// Takes an event of a tunnel's stream.
    fn take_input(&mut self, index: Slot, (slot, input): (Slot, TunnelInput<'_>)) {
        let Some(tunnel) = self.tunnels.get_mut(slot as usize) else { return };
        if tunnel.trunk != index {
            return;
        }
        match input {
            TunnelInput::Head(head) => tunnel.receive_head(head),
            TunnelInput::Bytes(bytes) => tunnel.input.extend_from_slice(bytes),
            TunnelInput::End => drop(tunnel.end.get_or_insert(TunnelEnd::Orderly)),
            TunnelInput::Gone(class) => drop(tunnel.end.get_or_insert(TunnelEnd::Failed(class))),
        }
        self.report(slot, true, false);
    }

    /// Sends the output of a trunk, until the connection accepts no more.
    fn flush(&mut self, index: Slot) {
        let Tunnels { io, trunks, .. } = self;
        let Some(trunk) = trunks.get_mut(index as usize).and_then(Option::as_mut) else { return };
        trunk.is_dirty = false;
        if trunk.unwritable.is_some() {
            return;
        }
        let unblocked = match trunk.flush(io, index) {
            Ok(unblocked) => unblocked,
            Err(IoError::Failed(class)) if !trunk.is_settled() => {
                let failure = TrunkFailure::new(class, io.failure_text(index));
                return self.fail(index, &failure);
            }
            Err(error) => {
                // received bytes are read first
                trunk.unwritable = Some(TrunkFailure::new(class_of(error), io.failure_text(index)));
                return self.unread.push(index);
            }
        };
        for slot in unblocked {
            self.report(slot, false, true);
        }
        let mut ended = Vec::new();
        if let Some(trunk) = self.trunk(index) {
            trunk.take_gone(&mut |(slot, input)| {
                if let TunnelInput::Gone(class) = input {
                    ended.push((slot, class));
                }
            });
        }
        for (slot, class) in ended {
            self.end(slot, TunnelEnd::Failed(class), None);
        }
    }

    /// Sends an upgrade as an extended CONNECT once its head is whole. Returns the accepted bytes.
    fn send_request(&mut self, slot: Slot, bytes: &[u8]) -> Result<usize, IoError> {
        let Some(tunnel) = self.tunnels.get_mut(slot as usize) else { return Ok(bytes.len()) };
        let before = tunnel.head.len();
        tunnel.head.extend_from_slice(bytes);
        let Some(size) = head::size(&tunnel.head, before) else {
            return match tunnel.head.len() > UPGRADE_MAX {
                true => Err(IoError::Failed(FailureClass::OtherIo)),
                false => Ok(bytes.len()),
            };
        };
        tunnel.head.truncate(size);
        let peer = &tunnel.peer;
        let secure = peer.is_over_quic() || matches!(peer, Peer::Tunnel { name: Some(_), .. });
        let scheme = if secure { "https" } else { "http" };
        let request = http2::Request::extended_connect(&tunnel.head, scheme, "websocket");
        let request = request.map_err(|error| {
            tunnel.why = Some(error.0);
            IoError::Failed(FailureClass::OtherIo)
        })?;
        tunnel.key = head::key(&tunnel.head);
        tunnel.head = Vec::new();
        tunnel.stage = TunnelStage::Open;
        let index = tunnel.trunk;
        let id = self.trunk(index).map_or(0, |trunk| trunk.send_request(&request, slot));
        if let Some(tunnel) = self.tunnel(slot) {
            tunnel.id = id;
        }
        self.mark(index);
        Ok(size - before)
    }

    /// Removes a tunnel from its trunk.
    fn leave(&mut self, slot: Slot, how: Close) {
        let Some(tunnel) = self.tunnels.get(slot as usize) else { return };
        let index = tunnel.trunk;
        let stage = tunnel.stage;
        let id = tunnel.id;
        let cut = how == Close::Reset || !tunnel.answered;
        let Some(trunk) = self.trunk(index) else { return };
        match stage {
            TunnelStage::Waiting => trunk.waiting.retain(|waiting| *waiting != slot),
            TunnelStage::Admitted => trunk.admitted = trunk.admitted.saturating_sub(1),
            TunnelStage::Open => {
                trunk.leave(id, cut);
                // the worker may be at its end and never wait again
                self.flush(index);
            }
            TunnelStage::Closed | TunnelStage::Direct => {}
        }
        self.admit(index);
        let unusable = |trunk: &mut Trunk| !trunk.is_settled() && trunk.waiting.is_empty();
        if self.trunk(index).is_some_and(unusable) {
            // all of its tunnels gave up; new tunnels must not wait on the same connection
            self.trunks[index as usize] = None;
            self.free.push(index);
            self.io.close(index, how);
        }
    }

    /// Closes a connection that is not a tunnel.
    fn close_direct(&mut self, slot: Slot, index: Slot, how: Close) {
        self.io.close(index, how);
        self.direct[index as usize] = None;
        self.free.push(index);
        self.tunnels[slot as usize] = TunnelEndpoint::default();
    }
}

impl<I: Io> Drop for Tunnels<I> {
    /// Closes the shared connections: nothing else ends those of QUIC before they time out.
    fn drop(&mut self) {
        for (index, trunk) in self.trunks.iter().enumerate() {
            if trunk.is_some() {
                self.io.close(index as Slot, Close::Orderly);
            }
        }
    }
}

/// Returns the class of an error that ends a connection.
fn class_of(error: IoError) -> FailureClass {
    match error {
        IoError::Failed(class) => class,
        IoError::WouldBlock => FailureClass::OtherIo,
    }
}

impl<I: Io> Io for Tunnels<I> {
    fn now(&mut self) -> Nanos {
        self.io.now()
    }

    fn open(&mut self, slot: Slot, peer: &Peer, options: &OpenOptions) -> Result<(), IoError> {
        let index = slot as usize;
        if self.tunnels.len() <= index {
            self.tunnels.resize_with(index + 1, TunnelEndpoint::default);
        }
        self.tunnels[index] = TunnelEndpoint::new(peer, options);
        if !matches!(peer, Peer::Tunnel { .. }) {
            return self.open_direct(slot, peer, options);
        }
        self.place(slot)?;
        self.relocate_tunnels();
        Ok(())
    }

    fn write(&mut self, slot: Slot, bytes: &[u8]) -> Result<usize, IoError> {
        let Some(tunnel) = self.tunnels.get_mut(slot as usize) else {
            return Err(IoError::Failed(FailureClass::OtherIo));
        };
        if let Some(TunnelEnd::Failed(class)) = tunnel.end {
            return Err(IoError::Failed(class));
        }
        match tunnel.stage {
            TunnelStage::Closed => return Err(IoError::Failed(FailureClass::OtherIo)),
            TunnelStage::Direct => return self.io.write(tunnel.trunk, bytes),
            TunnelStage::Waiting => return Err(IoError::WouldBlock),
            TunnelStage::Admitted | TunnelStage::Open if bytes.is_empty() => return Ok(0),
            TunnelStage::Admitted => return self.send_request(slot, bytes),
            TunnelStage::Open => {}
        }
        let index = tunnel.trunk;
        let id = tunnel.id;
        let unsent = self.io.unsent(index, id);
        let Some(trunk) = self.trunk(index) else {
            return Err(IoError::Failed(FailureClass::ClosedEarly));
        };
        match trunk.push(id, slot, bytes, unsent) {
            0 => Err(IoError::WouldBlock),
            count => {
                self.mark(index);
                Ok(count)
            }
        }
    }

    fn read(&mut self, slot: Slot, buffer: &mut [u8]) -> Result<usize, IoError> {
        if let Some(index) = self.direct(slot) {
            return self.io.read(index, buffer);
        }
        let Some(tunnel) = self.tunnels.get_mut(slot as usize) else {
            return Err(IoError::Failed(FailureClass::OtherIo));
        };
        tunnel.read(buffer)
    }

    fn take(&mut self, slot: Slot, buffer: &mut Box<[u8]>) -> Result<Range<usize>, IoError> {
        match self.direct(slot) {
            Some(index) => self.io.take(index, buffer),
            None => self.read(slot, buffer).map(|count| 0..count),
        }
    }

    fn close(&mut self, slot: Slot, how: Close) {
        if let Some(index) = self.direct(slot) {
            return self.close_direct(slot, index, how);
        }
        self.leave(slot, how);
        if let Some(tunnel) = self.tunnel(slot) {
            *tunnel = TunnelEndpoint::default();
        }
        self.relocate_tunnels();
    }

    fn shutdown_write(&mut self, slot: Slot) {
        if let Some(index) = self.direct(slot) {
            return self.io.shutdown_write(index);
        }
        let Some(tunnel) = self.tunnels.get(slot as usize) else { return };
        let index = tunnel.trunk;
        let id = tunnel.id;
        if tunnel.stage == TunnelStage::Open
            && let Some(trunk) = self.trunk(index)
        {
            trunk.end(id);
            self.mark(index);
        }
    }

    /// Returns the facts of the shared connection, for its last tunnel only.
    fn facts(&mut self, slot: Slot) -> Option<SocketFacts> {
        let tunnel = self.tunnels.get_mut(slot as usize)?;
        if let Some(facts) = tunnel.facts.take() {
            return Some(facts);
        }
        let (index, is_direct) = self.connection_of(slot)?;
        let facts = self.io.facts(index);
        if is_direct { facts } else { self.trunk(index)?.new_facts(facts) }
    }

    /// Returns the facts of the shared connection, for its last tunnel only.
    fn quic(&mut self, slot: Slot) -> Option<QuicEnd> {
        let tunnel = self.tunnels.get_mut(slot as usize)?;
        if let Some(facts) = tunnel.quic.take() {
            return Some(facts);
        }
        let (index, is_direct) = self.connection_of(slot)?;
        let facts = self.io.quic(index);
        if is_direct { facts } else { self.trunk(index)?.new_quic_facts(facts) }
    }

    fn carriers(&mut self) -> u64 {
        std::mem::take(&mut self.opened)
    }

    fn failure_text(&mut self, slot: Slot) -> Option<String> {
        match self.direct(slot) {
            Some(index) => self.io.failure_text(index),
            None => self.tunnels.get(slot as usize)?.why.clone(),
        }
    }

    fn wait(&mut self, until: Nanos, ready: &mut Vec<Ready>) {
        for index in std::mem::take(&mut self.dirty) {
            self.flush(index);
        }
        let at_once = !self.news.is_empty() || !self.unread.is_empty();
        let until = if at_once { Nanos::ZERO } else { until };
        let mut below = std::mem::take(&mut self.ready);
        self.io.wait(until, &mut below);
        let mut readable = std::mem::take(&mut self.unread);
        ready.clear();
        for event in below.drain(..) {
            if let Some(slot) = self.direct.get(event.slot as usize).copied().flatten() {
                ready.push(Ready { slot, ..event });
                continue;
            }
            if event.writable {
                self.flush(event.slot);
            }
            if event.readable || event.ended {
                readable.push(event.slot);
            }
        }
        self.ready = below;
        readable.sort_unstable();
        readable.dedup();
        for index in readable {
            self.receive(index);
        }
        self.relocate_tunnels();
        for slot in std::mem::take(&mut self.news) {
            if let Some(tunnel) = self.tunnels.get_mut(slot as usize) {
                ready.extend(tunnel.take_ready(slot));
            }
        }
    }

    fn spin(&self) -> Nanos {
        self.io.spin()
    }
}
