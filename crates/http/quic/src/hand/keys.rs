//! Keys of a crafted connection: selects the key that encrypts or decrypts a packet, and performs
//! key updates (RFC 9001 section 6).

use super::packet::{self, CarrierForm, NumberSpace, PacketHead};
use super::{Hand, HandOut, SIZE};
use crate::wire::INVENTED;
use bytes::BytesMut;
use conduit::streams::{
    IN_EARLY, IN_HANDSHAKE, IN_INITIAL, KEY_UPDATE, LATE, OLD, PHASE, STRANGER, TWICE, WITH_TOKEN,
};
use quinn_proto::crypto::{HeaderKey, KeyPair, PacketKey};

pub(super) type EarlyKeys = (Box<dyn HeaderKey>, Box<dyn PacketKey>);
type PacketKeys = KeyPair<Box<dyn PacketKey>>;

/// Maximum number of prepared packets that wait for a key update.
const LATE_MAX: usize = 64;

/// The keys of 1-RTT packets across key updates.
#[derive(Default)]
pub(super) struct Phases {
    /// The key phase bit of the current keys.
    bit: bool,
    /// Former keys, and the next ones if already derived.
    old: Option<PacketKeys>,
    next: Option<PacketKeys>,
    /// The server's new keys were reported.
    reported: bool,
    late: Vec<Vec<u8>>,
}

impl Hand {
    /// Performs a key update and sends something with the new keys.
    pub(super) fn change_keys(&mut self) {
        self.take_next_keys();
        self.send(NumberSpace::Data, &[0x01], true);
        let late = std::mem::take(&mut self.phases.late);
        self.out.extend(late.into_iter().map(HandOut::Datagram));
    }

    fn take_next_keys(&mut self) {
        let made = self.phases.next.take().or_else(|| self.session.next_1rtt_keys());
        let keys = self.spaces[NumberSpace::Data as usize].keys.as_mut();
        if let (Some(next), Some(keys)) = (made, keys) {
            self.phases.old = Some(std::mem::replace(&mut keys.packet, next));
            self.phases.bit ^= true;
            self.phases.reported = false;
        }
    }

    /// Returns the number and the frames of a received packet.
    pub(super) fn opened(
        &mut self,
        level: NumberSpace,
        bytes: &mut [u8],
        number_at: usize,
    ) -> Option<(u64, BytesMut)> {
        let space = &self.spaces[level as usize];
        let largest = space.largest();
        let keys = space.keys.as_ref()?;
        let packet = packet::unmasked(&*keys.header.remote, bytes, number_at, largest)?;
        let number = packet.number;
        let is_current = level != NumberSpace::Data || packet.phase() == self.phases.bit;
        if is_current {
            let frames = packet.frames(&*keys.packet.remote)?;
            let changed = level == NumberSpace::Data && self.phases.old.is_some();
            if changed && !std::mem::replace(&mut self.phases.reported, true) {
                self.report_frame(KEY_UPDATE, &[]);
            }
            return Some((number, frames));
        }
        let old = self.phases.old.as_ref().and_then(|old| packet.frames(&*old.remote));
        if let Some(frames) = old {
            return Some((number, frames));
        }
        if self.phases.next.is_none() {
            self.phases.next = self.session.next_1rtt_keys();
        }
        let frames = packet.frames(&*self.phases.next.as_ref()?.remote)?;
        self.take_next_keys();
        Some((number, frames))
    }

    /// Sends a packet composed by the worker.
    pub(super) fn send_packet(&mut self, odd: u16, frames: &[u8]) {
        let (level, form) = match odd {
            _ if odd & IN_INITIAL != 0 => (NumberSpace::Initial, CarrierForm::Initial),
            _ if odd & IN_HANDSHAKE != 0 => (NumberSpace::Handshake, CarrierForm::Handshake),
            _ if odd & IN_EARLY != 0 => (NumberSpace::Data, CarrierForm::Early),
            _ => (NumberSpace::Data, self.form(NumberSpace::Data)),
        };
        let least = if form == CarrierForm::Initial { SIZE } else { 0 };
        let mut packet = self.sealed((level, form), frames, odd, least);
        if packet.is_empty() {
            return;
        }
        if odd & PHASE != 0 {
            // the key is wrong, and the bit claims a new one: it cannot be opened
            let body = packet.len().saturating_sub(packet::TAG_LEN);
            packet[body..].iter_mut().for_each(|byte| *byte ^= 0x5a);
        }
        if odd & LATE != 0 {
            if self.phases.late.len() < LATE_MAX {
                self.phases.late.push(packet);
            }
            return;
        }
        if odd & TWICE != 0 {
            self.out.push_back(HandOut::Datagram(packet.clone()));
        }
        self.out.push_back(HandOut::Datagram(packet));
    }

    /// Returns the current form of packets of this number space.
    pub(super) fn form(&self, level: NumberSpace) -> CarrierForm {
        match level {
            NumberSpace::Initial => CarrierForm::Initial,
            NumberSpace::Handshake => CarrierForm::Handshake,
            NumberSpace::Data if self.early.is_some() => CarrierForm::Early,
            NumberSpace::Data => CarrierForm::Short(self.phases.bit),
        }
    }

    /// Returns a packet; empty if its keys are missing.
    pub(super) fn sealed(
        &mut self,
        (level, form): (NumberSpace, CarrierForm),
        frames: &[u8],
        odd: u16,
        least: usize,
    ) -> Vec<u8> {
        let stranger = [0x5a; packet::ID_LEN];
        let to = if odd & STRANGER == 0 { &self.to[..] } else { &stranger };
        let token = if odd & WITH_TOKEN == 0 { &self.token[..] } else { INVENTED };
        let space = &mut self.spaces[level as usize];
        let mut form = form;
        let mut old = None;
        if odd & OLD != 0
            && let Some(keys) = &self.phases.old
        {
            form = CarrierForm::Short(!self.phases.bit);
            old = Some(&*keys.local);
        }
        let local = match (&space.keys, self.early.as_ref().or(self.spent.as_ref())) {
            (_, Some((header, body))) if form == CarrierForm::Early => (&**header, &**body),
            (Some(keys), _) if form != CarrierForm::Early => {
                (&*keys.header.local, old.unwrap_or(&*keys.packet.local))
            }
            _ => return Vec::new(),
        };
        let number = space.next;
        space.next += 1;
        PacketHead { form, to, from: &self.from, token, number, odd }.sealed(local, frames, least)
    }
}
