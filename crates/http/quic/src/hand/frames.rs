//! QUIC frames (RFC 9000 section 19): writes the client's, processes the server's.

use super::packet::{ID_MAX, NumberSpace};
use super::{GivenId, Hand, WINDOW};
use crate::wire::{UNI_MAX, number, put_number};
use conduit::streams::{self, BEYOND_LIMITS, BROKEN_RULES, HELD_LARGE, PieceKind, TRANSPORT};
use sample::FailureClass;

/// Maximum number of server streams that are read.
const STREAMS_MAX: usize = 20_000;
/// Maximum number of stored connection IDs and tokens.
const GIVEN_MAX: usize = 64;
/// Maximum number of bytes of all streams and of the handshake that wait for earlier ones.
const HELD_MAX: usize = 64 << 20;

/// One of QUIC's own codes (RFC 9000 section 20.1).
const INTERNAL_ERROR: u8 = 0x01;
const FLOW_CONTROL_ERROR: u8 = 0x03;
const STREAM_LIMIT_ERROR: u8 = 0x04;
const STREAM_STATE_ERROR: u8 = 0x05;
const FRAME_ENCODING_ERROR: u8 = 0x07;

/// Returns a frame that consists only of integers.
pub(super) fn of_numbers(kind: u8, numbers: &[u64]) -> Vec<u8> {
    let mut out = vec![kind];
    numbers.iter().for_each(|number| put_number(&mut out, *number));
    out
}

/// Encodes a STREAM frame with offset and length.
pub(super) fn stream(stream: u64, offset: u64, bytes: &[u8], last: bool) -> Vec<u8> {
    let kind = if last { 0x0f } else { 0x0e };
    let mut out = of_numbers(kind, &[stream, offset, bytes.len() as u64]);
    out.extend_from_slice(bytes);
    out
}

pub(super) fn crypto(offset: u64, bytes: &[u8]) -> Vec<u8> {
    let mut out = of_numbers(0x06, &[offset, bytes.len() as u64]);
    out.extend_from_slice(bytes);
    out
}

/// A parser of the contents of frames.
struct FramesLeft<'f> {
    rest: &'f [u8],
}

impl<'f> FramesLeft<'f> {
    fn number(&mut self) -> Option<u64> {
        let (value, used) = number(self.rest)?;
        self.rest = &self.rest[used..];
        Some(value)
    }

    fn bytes(&mut self, count: u64) -> Option<&'f [u8]> {
        let count = usize::try_from(count).ok()?;
        let (bytes, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(bytes)
    }

    /// Reads a length, and returns that number of bytes.
    fn text(&mut self) -> Option<&'f [u8]> {
        let length = self.number()?;
        self.bytes(length)
    }
}

/// Returns why a server may not send on this stream: requests, and their streams, belong to us.
fn forbidden(stream: u64) -> Option<u8> {
    match stream & 3 {
        1 => Some(STREAM_LIMIT_ERROR),
        2 => Some(STREAM_STATE_ERROR),
        3 if stream >> 2 >= UNI_MAX => Some(STREAM_LIMIT_ERROR),
        _ => None,
    }
}

impl Hand {
    /// Processes the frames of one packet, up to the first that cannot be parsed.
    pub(super) fn take_frames(&mut self, level: NumberSpace, frames: &[u8]) {
        let mut reader = FramesLeft { rest: frames };
        while !reader.rest.is_empty() && self.over.is_none() {
            if self.take_frame(level, &mut reader).is_none() {
                return;
            }
        }
    }

    fn take_frame(&mut self, level: NumberSpace, from: &mut FramesLeft<'_>) -> Option<()> {
        let kind = from.number()?;
        // everything except PADDING, ACK and CONNECTION_CLOSE is ack-eliciting (section 13.2)
        self.spaces[level as usize].owes |= !matches!(kind, 0 | 2 | 3 | 0x1c | 0x1d);
        match kind {
            0x00 | 0x01 => {}
            0x02 | 0x03 => self.take_ack(level, kind, from)?,
            0x04 => {
                let stream = from.number()?;
                let code = from.number()?;
                let size = from.number()?;
                self.take_reset(stream, code, size);
            }
            0x05 => {
                let stream = from.number()?;
                let code = from.number()?;
                streams::put_code(self.inbox.pieces(), PieceKind::Stop, stream, Some(code));
            }
            0x06 => {
                let offset = from.number()?;
                self.take_crypto(level, offset, from.text()?);
            }
            0x08..=0x0f => self.take_stream(kind, from)?,
            0x10 => self.limits.raise_data_limit(from.number()?),
            0x11 => {
                let stream = from.number()?;
                self.limits.raise_stream_data_limit(stream, from.number()?);
            }
            0x12 | 0x13 => self.limits.raise_stream_limit(kind == 0x13, from.number()?),
            0x14 | 0x16 | 0x17 => {
                from.number()?;
            }
            0x15 => {
                from.number()?;
                from.number()?;
            }
            0x1c | 0x1d => {
                let code = from.number()?;
                self.closed(if kind == 0x1c { code | TRANSPORT } else { code });
            }
            _ => self.report_frame_content(kind, from)?,
        }
        Some(())
    }

    /// Reports a frame to the worker.
    fn report_frame_content(&mut self, kind: u64, from: &mut FramesLeft<'_>) -> Option<()> {
        let begin = from.rest;
        match kind {
            0x07 => {
                from.text()?;
            }
            0x18 => {
                let sequence = from.number()?;
                let first = from.number()?;
                let length = u64::from(*from.bytes(1)?.first()?);
                let id = from.bytes(length)?.to_vec();
                let token = from.bytes(16)?.to_vec();
                if first > sequence || !(1..=ID_MAX as u64).contains(&length) {
                    // RFC 9000 section 19.15
                    self.report_frame(BROKEN_RULES, &[]);
                    self.end_with(FRAME_ENCODING_ERROR, FailureClass::Protocol);
                    return Some(());
                }
                self.limits.retired = self.limits.retired.max(first);
                let known = self.spare.iter().any(|one| one.sequence == sequence);
                let retired = sequence < self.limits.retired;
                if retired && sequence != self.limits.used && !known {
                    // it was retired before it arrived
                    self.ready.push(of_numbers(0x19, &[sequence]));
                } else if self.spare.len() < GIVEN_MAX && sequence > self.limits.used && !known {
                    self.spare.push(GivenId { sequence, id });
                    // the oldest ones belong to connection IDs that are no longer used
                    if self.reset_tokens.len() > GIVEN_MAX {
                        self.reset_tokens.remove(0);
                    }
                    self.reset_tokens.push(token);
                }
                self.retire();
            }
            0x19 => {
                from.number()?;
            }
            0x1a => {
                let asked = from.bytes(8)?;
                self.ready.push([&[0x1b], asked].concat());
            }
            0x1b => {
                from.bytes(8)?;
            }
            0x1e => self.confirm(),
            _ => return None,
        }
        let used = begin.len() - from.rest.len();
        self.report_frame(kind, &begin[..used]);
        Some(())
    }

    /// Stops using connection IDs that the server retires, and confirms it (RFC 9000 sections 5.1.2
    /// and 19.15). The current one is kept while there is no other.
    fn retire(&mut self) {
        let first = self.limits.retired;
        for old in self.spare.extract_if(.., |one| one.sequence < first) {
            self.ready.push(of_numbers(0x19, &[old.sequence]));
        }
        if self.limits.used < first {
            self.change_identifier();
        }
    }

    /// Switches to another connection ID, if the server issued one, and retires the former one.
    pub(super) fn change_identifier(&mut self) {
        if self.spare.is_empty() {
            return;
        }
        let next = self.spare.remove(0);
        self.ready.push(of_numbers(0x19, &[self.limits.used]));
        self.to = next.id;
        self.limits.used = next.sequence;
    }

    fn take_ack(&mut self, level: NumberSpace, kind: u64, from: &mut FramesLeft<'_>) -> Option<()> {
        let largest = from.number()?;
        let _delay = from.number()?;
        let ranges = from.number()?;
        let mut low = largest.checked_sub(from.number()?)?;
        let flight = &mut self.spaces[level as usize].flight;
        let before = flight.len();
        flight.retain(|number, _| !(low..=largest).contains(number));
        for _ in 0..ranges {
            let high = low.checked_sub(from.number()?)?.checked_sub(2)?;
            low = high.checked_sub(from.number()?)?;
            flight.retain(|number, _| !(low..=high).contains(number));
        }
        if flight.len() < before {
            self.tries = 0;
        }
        for _ in 0..if kind == 0x03 { 3 } else { 0 } {
            from.number()?;
        }
        Some(())
    }

    fn take_crypto(&mut self, level: NumberSpace, offset: u64, bytes: &[u8]) {
        let crypto = &mut self.spaces[level as usize].crypto;
        let before = crypto.buffered_bytes();
        crypto.put(offset, bytes, false);
        let sent = crypto.take();
        let after = crypto.buffered_bytes();
        self.count_held(before, after);
        if sent.is_empty() || self.over.is_some() {
            return;
        }
        match self.session.read_handshake(&sent) {
            Ok(_) => self.advance_handshake(),
            Err(_) => {
                self.report_frame(BROKEN_RULES, &[]);
                self.over = Some(Err(FailureClass::Tls));
            }
        }
    }

    fn take_stream(&mut self, kind: u64, from: &mut FramesLeft<'_>) -> Option<()> {
        let stream = from.number()?;
        let offset = if kind & 4 == 0 { 0 } else { from.number()? };
        let bytes = if kind & 2 == 0 { std::mem::take(&mut from.rest) } else { from.text()? };
        if self.came.len() >= STREAMS_MAX && !self.came.contains_key(&stream) {
            return Some(());
        }
        if let Some(code) = forbidden(stream) {
            self.refuse(code);
            return Some(());
        }
        let came = self.came.entry(stream).or_default();
        let over = came.is_over();
        let held = came.buffered_bytes();
        let highest = came.highest();
        let first = came.consumed() == 0;
        came.put(offset, bytes, kind & 1 != 0);
        let new = came.take();
        let ends = came.is_over() && !over;
        let after = came.buffered_bytes();
        let used = came.highest();
        self.window_used += used - highest;
        if used > WINDOW || self.window_used > WINDOW {
            self.refuse(FLOW_CONTROL_ERROR);
            return Some(());
        }
        self.count_held(held, after);
        if stream & 3 == 3 {
            self.control.take(stream, first, &new);
        }
        if stream & 3 == 0 && !new.is_empty() {
            self.note_response();
        }
        if !new.is_empty() || ends {
            streams::put_data(self.inbox.pieces(), stream, &new, ends);
        }
        Some(())
    }

    /// Handles RESET_STREAM. The final size consumes the windows like data of this length (RFC 9000
    /// section 4.5).
    fn take_reset(&mut self, stream: u64, code: u64, size: u64) {
        if let Some(code) = forbidden(stream) {
            return self.refuse(code);
        }
        if self.came.len() < STREAMS_MAX || self.came.contains_key(&stream) {
            let came = self.came.entry(stream).or_default();
            self.window_used += size.saturating_sub(came.highest());
            came.reach(size);
            if size > WINDOW || self.window_used > WINDOW {
                return self.refuse(FLOW_CONTROL_ERROR);
            }
        }
        streams::put_code(self.inbox.pieces(), PieceKind::Reset, stream, Some(code));
    }

    /// Closes the connection because the server violated a limit (RFC 9000 sections 4.1, 4.5, 4.6,
    /// 19.4 and 19.8).
    fn refuse(&mut self, code: u8) {
        self.report_frame(BEYOND_LIMITS, &[]);
        self.end_with(code, FailureClass::Protocol);
    }

    /// Updates the total of held data after that of a stream has changed. A total above our maximum
    /// closes the connection: data acknowledged and discarded would never arrive again.
    fn count_held(&mut self, before: usize, after: usize) {
        self.held = self.held + after - before;
        if self.held > HELD_MAX {
            self.report_frame(HELD_LARGE, &[]);
            self.end_with(INTERNAL_ERROR, FailureClass::OtherIo);
        }
    }

    /// Closes the connection ourselves: the reason was reported before.
    fn end_with(&mut self, code: u8, class: FailureClass) {
        self.send(NumberSpace::Data, &[0x1c, code, 0, 0], false);
        self.over.get_or_insert(Err(class));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hand::Shake;
    use crate::session::{HandSessions, SessionWords, Tickets};
    use conduit::streams::HEAD;
    use rustls::{ClientConfig, RootCertStore};
    use std::sync::Arc;
    use units::Nanos;

    fn hand() -> Hand {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth();
        let words = SessionWords {
            name: |name| name.to_owned().try_into().ok(),
            facts: |_| None,
            why: ToString::to_string,
        };
        let sessions = HandSessions::new(&config, words);
        Hand::new(&sessions, "localhost", Shake::default(), Tickets::None, Nanos::ZERO).unwrap()
    }

    /// Returns the first report, by its number.
    fn first_reported(hand: &mut Hand) -> Option<u64> {
        let mut head = [0; HEAD];
        let whole = hand.inbox.read(&mut head) == HEAD;
        let head = streams::Head::from_bytes(&head).filter(|_| whole)?;
        (head.kind == PieceKind::Frame).then_some(head.stream)
    }

    #[test]
    fn data_beyond_the_limits_is_reported() {
        let window = |id, at| vec![stream(id, at, b"x", false)];
        let reset = |id, size| vec![of_numbers(0x04, &[id, 0, size])];
        let both = [window(3, WINDOW / 2), window(7, WINDOW / 2)].concat();
        let table = [
            (window(3, WINDOW - 1), false, "the last byte of a window"),
            (window(3, WINDOW), true, "the first byte after it"),
            (both, true, "two streams that exceed the window together"),
            (window(63, 0), false, "the last stream in one direction"),
            (window(67, 0), true, "the first byte after it"),
            (window(1, 0), true, "a request stream of the server"),
            (window(2, 0), true, "our own stream in one direction"),
            (reset(3, WINDOW), false, "a final size equal to the window"),
            (reset(3, WINDOW + 1), true, "one that is more"),
            (
                [window(3, WINDOW - 1), reset(3, WINDOW)].concat(),
                false,
                "a final size equal to the received bytes",
            ),
            (
                [window(3, WINDOW / 2), reset(7, WINDOW / 2 + 1)].concat(),
                true,
                "a final size that exceeds the window together with another stream",
            ),
            (reset(63, 0), false, "the end of the last stream in one direction"),
            (reset(67, 0), true, "of the first byte after it"),
            (reset(1, 0), true, "of a request stream of the server"),
            (reset(2, 0), true, "of our own stream in one direction"),
        ];
        for (frames, refused, what) in table {
            let mut hand = hand();
            for frame in frames {
                hand.take_frames(NumberSpace::Data, &frame);
            }
            let expected = refused.then_some(Err(FailureClass::Protocol));
            assert_eq!(hand.over, expected, "{what}");
            let reported = first_reported(&mut hand) == Some(BEYOND_LIMITS);
            assert_eq!(reported, refused, "{what}");
        }
    }

    fn given(sequence: u8, first: u8, id: &[u8; 4]) -> Vec<u8> {
        [&[0x18, sequence, first, 4][..], id, &[sequence; 16]].concat()
    }

    #[test]
    fn identifiers_that_the_server_retires_are_used_no_more() {
        let mut hand = hand();
        hand.take_frames(NumberSpace::Data, &given(1, 1, b"next"));
        assert_eq!((&hand.to[..], &hand.ready[..]), (&b"next"[..], &[vec![0x19, 0]][..]));
        hand.ready.clear();
        // a spare one, and one that was retired before it arrived
        hand.take_frames(NumberSpace::Data, &given(3, 1, b"lost"));
        hand.take_frames(NumberSpace::Data, &given(5, 4, b"last"));
        hand.take_frames(NumberSpace::Data, &given(2, 0, b"late"));
        let mut ready = std::mem::take(&mut hand.ready);
        ready.sort();
        assert_eq!(ready, [[0x19, 1], [0x19, 2], [0x19, 3]]);
        assert_eq!((&hand.to[..], hand.spare.len()), (&b"last"[..], 0));
        hand.take_frames(NumberSpace::Data, &given(9, 9, b"good"));
        assert_eq!((&hand.to[..], &hand.ready[..]), (&b"good"[..], &[vec![0x19, 5]][..]));
    }

    /// RFC 9000 section 19.15: retiring itself, of length zero, longer than 20.
    #[test]
    fn identifiers_that_cannot_be_end_the_connection() {
        for frame in [
            given(1, 2, b"next"),
            [&[0x18, 1, 0, 0][..], &[9; 16]].concat(),
            [&[0x18, 1, 0, 21][..], &[7; 21], &[9; 16]].concat(),
        ] {
            let mut hand = hand();
            hand.take_frames(NumberSpace::Data, &frame);
            assert_eq!(first_reported(&mut hand), Some(BROKEN_RULES), "{frame:x?}");
            assert_eq!(hand.over, Some(Err(FailureClass::Protocol)), "{frame:x?}");
        }
    }

    #[test]
    fn tokens_of_retired_identifiers_do_not_pile_up() {
        let mut hand = hand();
        for sequence in 1..=63 {
            hand.take_frames(NumberSpace::Data, &given(sequence, sequence, b"next"));
        }
        for round in 0..1_000u16 {
            let sequence = (0x4040 + round).to_be_bytes();
            let frame = [&[0x18], &sequence[..], &sequence, &[4], b"next", &[9; 16]].concat();
            hand.take_frames(NumberSpace::Data, &frame);
        }
        assert_eq!((hand.reset_tokens.len(), hand.spare.len()), (GIVEN_MAX + 1, 0));
        assert_eq!(hand.limits.used, 0x40 + 999);
    }

    /// RFC 9000 section 9.5: the server issues another connection ID for a retired one.
    #[test]
    fn each_port_has_an_identifier_of_its_own() {
        let mut hand = hand();
        for (sequence, id) in [(1, b"next"), (2, b"last")] {
            hand.take_frames(NumberSpace::Data, &given(sequence, 0, id));
            hand.change_port();
            assert_eq!((&hand.to[..], &hand.ready[..]), (&id[..], &[vec![0x19, sequence - 1]][..]));
        }
    }

    #[test]
    fn invalid_tls_messages_are_reported() {
        let mut hand = hand();
        hand.take_frames(NumberSpace::Initial, &[&[0x06, 0, 4][..], &[0xff; 4]].concat());
        assert_eq!(hand.over, Some(Err(FailureClass::Tls)));
        assert_eq!(first_reported(&mut hand), Some(BROKEN_RULES));
    }

    #[test]
    fn settings_are_available_once_their_frame_is_complete() {
        let table = [
            (&[][..], false),
            (&[0], false),
            (&[0, 4], false),
            (&[0, 4, 2, 6], false),
            (&[0, 4, 0x80], false),
            (&[0, 4, 0], true),
            (&[0, 4, 2, 6, 9], true),
            (&[0, 4, 2, 6, 9, 7], true),
        ];
        for (begun, expected) in table {
            let mut hand = hand();
            for (at, byte) in begun.iter().enumerate() {
                hand.take_frames(NumberSpace::Data, &stream(3, at as u64, &[*byte], false));
            }
            assert_eq!(hand.has_settings(), expected, "{begun:?}");
        }
    }

    #[test]
    fn out_of_order_bytes_are_bounded_over_all_streams() {
        let mut hand = hand();
        let part = vec![b'x'; 1 << 20];
        let pieces = (0..).map(|row| stream(3 + 4 * (row % 8), 1 + (row << 20), &part, false));
        let taken = pieces
            .take(200)
            .take_while(|frame| {
                hand.take_frames(NumberSpace::Data, frame);
                hand.over.is_none()
            })
            .count();
        assert_eq!((taken, hand.over), (63, Some(Err(FailureClass::OtherIo))));
        assert_eq!(first_reported(&mut hand), Some(HELD_LARGE));
    }
}
