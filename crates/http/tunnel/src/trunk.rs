//! One connection of HTTP/2 or HTTP/3 that carries tunnels.

use crate::carrier::{CarriedPart, CarrierName, GoneTunnel, TunnelSession};
use conduit::{Io, IoError, OpenOptions, Peer, Slot, TlsSession};
use http2::{Request, SessionSettings};
use sample::{FailureClass, QuicEnd, SocketFacts};
use std::collections::VecDeque;

/// Maximum number of closed tunnels whose server has not ended its side; more are reset.
const LINGERING_MAX: usize = 100;
/// Number of unsent bytes for the connection beyond which tunnels accept none.
const UNSENT_MAX: usize = 256 << 10;

/// Reason why a trunk ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TrunkFailure {
    pub(crate) class: FailureClass,
    pub(crate) why: Option<String>,
}

impl TrunkFailure {
    pub(crate) fn new(class: FailureClass, why: Option<String>) -> TrunkFailure {
        TrunkFailure { class, why }
    }
}

/// Event of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TunnelInput<'a> {
    /// The head of the response.
    Head(&'a [u8]),
    Bytes(&'a [u8]),
    /// The server has ended its side.
    End,
    /// The server has reset the stream.
    Gone(FailureClass),
}

/// A stream, at the position that the session gave it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TrunkMember {
    id: u64,
    /// Slot; `None` if the worker has closed it.
    pub(crate) slot: Option<Slot>,
    answered: bool,
}

#[derive(Debug)]
pub(crate) struct Trunk {
    peer: Peer,
    options: OpenOptions,
    session: TunnelSession,
    tls: Option<Box<dyn TlsSession>>,
    /// Decrypted input, and output of the session that is not encrypted yet.
    plain: Vec<u8>,
    held: Vec<u8>,
    /// Bytes for the connection, of which `out_at` are sent.
    out: Vec<u8>,
    out_at: usize,
    pub(crate) members: VecDeque<TrunkMember>,
    /// Tunnels that wait for a stream, and the number of reserved streams.
    pub(crate) waiting: VecDeque<Slot>,
    pub(crate) admitted: u32,
    /// Tunnels to which a write was refused.
    blocked: Vec<Slot>,
    /// Tunnels with bytes that arrived last.
    pub(crate) fullest: Vec<Slot>,
    settled: bool,
    /// Reason why nothing more can be written; received bytes may still be read.
    pub(crate) unwritable: Option<TrunkFailure>,
    /// Retransmissions and facts of QUIC that were reported.
    retransmits: u64,
    quic: QuicEnd,
    /// It will be flushed before the next wait.
    pub(crate) is_dirty: bool,
}

impl Trunk {
    pub(crate) fn new(
        settings: &SessionSettings,
        peer: Peer,
        options: OpenOptions,
        mut tls: Option<Box<dyn TlsSession>>,
    ) -> Trunk {
        let mut out = Vec::new();
        let mut held = Vec::new();
        if let Some(tls) = &mut tls {
            tls.drain(&mut out);
        }
        let session = match peer.is_over_quic() {
            true => TunnelSession::http3(settings.header_list_max, &mut held),
            false => TunnelSession::http2(settings),
        };
        Trunk {
            peer,
            options,
            session,
            tls,
            plain: Vec::new(),
            held,
            out,
            out_at: 0,
            members: VecDeque::new(),
            waiting: VecDeque::new(),
            admitted: 0,
            blocked: Vec::new(),
            fullest: Vec::new(),
            settled: false,
            unwritable: None,
            retransmits: 0,
            quic: QuicEnd::default(),
            is_dirty: false,
        }
    }

    /// Returns whether the server's SETTINGS have arrived and allow tunnels.
    pub(crate) fn is_settled(&self) -> bool {
        self.settled
    }

    /// Returns the facts of the connection, with the retransmissions since the last call.
    pub(crate) fn new_facts(&mut self, facts: Option<SocketFacts>) -> Option<SocketFacts> {
        let SocketFacts { retransmits, rtt } = facts?;
        let before = std::mem::replace(&mut self.retransmits, retransmits);
        Some(SocketFacts { retransmits: retransmits.saturating_sub(before), rtt })
    }

    /// Facts of the connection since the last call, if it is one of QUIC.
    pub(crate) fn new_quic_facts(&mut self, facts: Option<QuicEnd>) -> Option<QuicEnd> {
        let facts = facts?;
        let before = std::mem::replace(&mut self.quic, facts.clone());
        Some(facts.since(&before))
    }

    /// Returns whether at most one of its tunnels is open.
    pub(crate) fn is_last(&self) -> bool {
        self.members.iter().filter(|member| member.slot.is_some()).count() <= 1
    }

    /// Returns how many streams may still be opened, of `most` in all.
    pub(crate) fn room(&self, most: u32) -> u32 {
        let used = self.members.len() as u32 + self.admitted;
        self.session.capacity().min(most).saturating_sub(used)
    }

    /// Returns whether one more tunnel to `peer` fits.
    pub(crate) fn takes(&self, peer: &Peer, options: &OpenOptions, most: u32) -> bool {
        let same = self.peer == *peer && self.options.bind == options.bind;
        same && self.room(most) > self.waiting.len() as u32
    }

    /// Opens the stream of a tunnel and returns its id.
    pub(crate) fn send_request(&mut self, request: &Request, slot: Slot) -> u64 {
        self.admitted = self.admitted.saturating_sub(1);
        let id = self.session.open(request, &mut self.held);
        self.members.push_back(TrunkMember { id, slot: Some(slot), answered: false });
        id
    }

    /// Queues bytes of a tunnel; returns how many were accepted. `unsent`: number of earlier bytes
    /// that wait below the connection.
    pub(crate) fn push(&mut self, id: u64, slot: Slot, bytes: &[u8], unsent: usize) -> usize {
        let full = self.out.len() - self.out_at + self.held.len() > UNSENT_MAX;
        let count = match full {
            true => 0,
            false => self.session.push(id, bytes, unsent, &mut self.held),
        };
        if count < bytes.len() && !self.blocked.contains(&slot) {
            self.blocked.push(slot);
        }
        count
    }

    /// Ends our side of a tunnel.
    pub(crate) fn end(&mut self, id: u64) {
        self.session.end(id, &mut self.held);
    }

    /// Handles the close of a tunnel by the worker. `cut`: without the orderly end.
    pub(crate) fn leave(&mut self, id: u64, cut: bool) {
        let Some(place) = self.place(id) else { return };
        let lingering = self.members.iter().filter(|member| member.slot.is_none()).count();
        if cut || lingering >= LINGERING_MAX {
            self.members.remove(place);
            self.session.withdraw(place, &mut self.held);
            return;
        }
        self.members[place].slot = None;
        self.session.end(id, &mut self.held);
    }

    fn place(&self, id: u64) -> Option<usize> {
        self.members.binary_search_by_key(&id, |member| member.id).ok()
    }

    /// Sends as much as the connection accepts. Returns tunnels that may write again.
    ///
    /// # Errors
    /// Fails if the connection accepts no more bytes.
    pub(crate) fn flush<I: Io>(&mut self, io: &mut I, index: Slot) -> Result<Vec<Slot>, IoError> {
        loop {
            if self.out_at == self.out.len() {
                self.out.clear();
                self.out_at = 0;
                self.fill();
                if self.out.is_empty() {
                    break;
                }
            }
            match io.write(index, &self.out[self.out_at..]) {
                Ok(count) => self.out_at += count,
                Err(IoError::WouldBlock) => break,
                Err(error) => return Err(error),
            }
        }
        if self.out.len() - self.out_at > UNSENT_MAX / 2 {
            return Ok(Vec::new());
        }
        let Trunk { session, members, blocked, .. } = self;
        let mut unblocked = Vec::new();
        blocked.retain(|slot| {
            let member = members.iter().find(|member| member.slot == Some(*slot));
            let full = member.is_some_and(|it| session.is_full(it.id, (&mut *io, index)));
            if !full {
                unblocked.push(*slot);
            }
            full
        });
        Ok(unblocked)
    }

    /// Moves the session's output to that of the connection.
    fn fill(&mut self) {
        let Trunk { session, tls, held, out, .. } = self;
        session.drain(held);
        let Some(tls) = tls else {
            std::mem::swap(held, out);
            return;
        };
        if !held.is_empty() && !tls.handshaking() {
            tls.send(held);
            held.clear();
        }
        tls.drain(out);
    }

    /// Processes bytes of the connection.
    ///
    /// # Errors
    /// The connection cannot be used any further.
    pub(crate) fn receive(
        &mut self,
        input: &[u8],
        take: &mut dyn FnMut((Slot, TunnelInput<'_>)),
    ) -> Result<(), TrunkFailure> {
        self.fullest.clear();
        let Some(tls) = &mut self.tls else { return self.process(input, take) };
        let mut plain = std::mem::take(&mut self.plain);
        plain.clear();
        let shaking = tls.handshaking();
        tls.feed(input, &mut plain)
            .map_err(|error| TrunkFailure::new(error.class, Some(error.text)))?;
        if shaking && !tls.handshaking() {
            let agreed = tls.facts().map(|facts| facts.alpn).unwrap_or_default();
            if agreed != http2::ALPN {
                let chosen = if agreed.is_empty() { "no protocol" } else { &agreed };
                let why = format!("the server chose {chosen} where HTTP/2 (ALPN h2) was offered");
                return Err(TrunkFailure::new(FailureClass::Protocol, Some(why)));
            }
        }
        let result = self.process(&plain, take);
        self.plain = plain;
        result
    }

    fn process(
        &mut self,
        input: &[u8],
        take: &mut dyn FnMut((Slot, TunnelInput<'_>)),
    ) -> Result<(), TrunkFailure> {
        let broken = |why: String| TrunkFailure::new(FailureClass::Protocol, Some(why));
        let mut rest = input;
        while !rest.is_empty() {
            let consumed = self.session.feed(rest, &mut self.held).map_err(broken)?;
            self.take_gone(take);
            if let Some(part) = self.session.take_part() {
                self.take_part(&part, rest, take);
            }
            rest = &rest[consumed..];
            self.settle()?;
        }
        if self.session.is_going_away() && self.members.is_empty() {
            return Err(TrunkFailure::new(FailureClass::ClosedEarly, None));
        }
        Ok(())
    }

    /// Checks the server's SETTINGS.
    fn settle(&mut self) -> Result<(), TrunkFailure> {
        if self.settled {
            return Ok(());
        }
        let no = |why: String| Err(TrunkFailure::new(FailureClass::UpgradeRefused, Some(why)));
        let CarrierName { http, standard } = self.session.name();
        match self.session.accepts_tunnels() {
            None => Ok(()),
            Some(false) => no(format!(
                "the server does not accept WebSocket over {http}: its SETTINGS lack \
                 ENABLE_CONNECT_PROTOCOL ({standard})"
            )),
            Some(true) if self.session.capacity() == 0 => {
                no(format!("the server allows no streams on an {http} connection"))
            }
            Some(true) => {
                self.settled = true;
                Ok(())
            }
        }
    }

    /// Takes streams that ended without a complete response.
    pub(crate) fn take_gone(&mut self, take: &mut dyn FnMut((Slot, TunnelInput<'_>))) {
        while let Some(GoneTunnel { place, refused, by_peer }) = self.session.take_gone() {
            let class = match (refused, by_peer) {
                (true, _) => FailureClass::StreamRefused,
                (false, true) => FailureClass::StreamReset,
                (false, false) => FailureClass::BadFraming,
            };
            if let Some(slot) = self.members.remove(place).and_then(|member| member.slot) {
                take((slot, TunnelInput::Gone(class)));
            }
        }
    }

    /// Abandons the tunnels whose data the server does not want. Must be called after all received
    /// bytes were processed, because they may contain the end of the server's data.
    pub(crate) fn take_stopped(&mut self, take: &mut dyn FnMut((Slot, TunnelInput<'_>))) {
        while let Some(id) = self.session.take_stopped() {
            let Some(place) = self.place(id) else { continue };
            self.session.withdraw(place, &mut self.held);
            if let Some(slot) = self.members.remove(place).and_then(|member| member.slot) {
                take((slot, TunnelInput::Gone(FailureClass::StreamReset)));
            }
        }
    }

    fn take_part(
        &mut self,
        part: &CarriedPart,
        input: &[u8],
        take: &mut dyn FnMut((Slot, TunnelInput<'_>)),
    ) {
        let Some(member) = self.members.get_mut(part.place) else { return };
        let TrunkMember { id, slot, answered } = *member;
        member.answered |= self.session.status(part) != 0;
        let begins = member.answered && !answered;
        if part.done {
            self.members.remove(part.place);
        }
        let Some(slot) = slot else { return };
        if begins {
            take((slot, TunnelInput::Head(self.session.head(part))));
        }
        if !part.body.is_empty() {
            take((slot, TunnelInput::Bytes(&input[part.body.clone()])));
            if self.fullest.last() != Some(&slot) {
                self.fullest.push(slot);
            }
        }
        if part.done || self.session.is_ended_by_peer(id) {
            take((slot, TunnelInput::End));
        }
    }
}
