//! Length-prefixed messages: a flag, four bytes of length, the message.

use std::io::Write as _;

/// Number of bytes before each message.
pub const PREFIX_BYTES: usize = 5;

/// Maximum number of bytes kept of the end of a call, or of an error's description.
pub(super) const END_MAX: usize = 16 << 10;

/// Returns a message with its prefix, not compressed.
///
/// # Panics
/// Panics above 4 GiB, which no plan can hold.
pub fn prefixed(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).expect("a message below 4 GiB");
    let mut out = Vec::with_capacity(PREFIX_BYTES + message.len());
    out.push(0);
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(message);
    out
}

/// Returns a message with its prefix, compressed with gzip.
///
/// # Panics
/// Panics like [`prefixed`].
pub fn gzipped(message: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    let compressed = encoder.write_all(message).and_then(|()| encoder.finish());
    let mut out = prefixed(&compressed.expect("memory accepts all bytes"));
    out[0] = 1;
    out
}

/// Moves the missing bytes of a prefix from the start of `piece` to `prefix`. `have`: number of
/// prefix bytes received so far. Returns whether the prefix is complete.
pub fn fill_prefix(prefix: &mut [u8; PREFIX_BYTES], have: &mut usize, piece: &mut &[u8]) -> bool {
    let (taken, rest) = piece.split_at(piece.len().min(PREFIX_BYTES - *have));
    prefix[*have..*have + taken.len()].copy_from_slice(taken);
    *have += taken.len();
    *piece = rest;
    *have == PREFIX_BYTES
}

/// Error in the messages of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageFault {
    /// The flag is neither 0 nor 1, or a frame follows the end of the call.
    Flag,
    /// The flag marks the message as compressed, and no `grpc-encoding` names how.
    Compressed,
    /// The stream ended inside a message.
    Cut,
}

/// Limits on the messages of a response. When one is reached, the client ends the call, unless the
/// server has ended it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageLimits {
    /// Number of messages after which further ones are not counted.
    pub count: Option<u32>,
    /// Maximum length of a message in bytes, as received.
    pub length: Option<u64>,
}

/// Reason why a client ends a call before the server does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EarlyEnd {
    /// The response has as many messages as the client reads.
    Enough,
    /// A message of `length` bytes is longer than the limit.
    TooLong { length: u64 },
}

/// Counts the messages of one body as its pieces arrive, wherever they are split. Keeps only the
/// end of a call, if a frame contains it.
#[derive(Clone, Debug, Default)]
pub struct MessageReader {
    prefix: [u8; PREFIX_BYTES],
    /// Number of available prefix bytes.
    have: usize,
    /// Number of missing message bytes.
    left: u64,
    fault: Option<MessageFault>,
    compressed: bool,
    /// Flag of the frame that ends the call; 0: no frame does.
    end_flag: u8,
    /// The final frame has begun.
    ending: bool,
    end: Vec<u8>,
    limits: MessageLimits,
    /// Number of messages so far.
    count: u32,
    early_end: Option<EarlyEnd>,
}

impl MessageReader {
    /// Reads messages up to a frame with this flag, whose content is kept.
    pub fn with_end(end_flag: u8) -> MessageReader {
        MessageReader { end_flag, ..MessageReader::default() }
    }

    /// Reads messages with these limits. A message that is too long is not read.
    #[must_use]
    pub fn with_limits(self, limits: MessageLimits) -> MessageReader {
        MessageReader { limits, ..self }
    }

    /// Returns the first limit that was reached.
    pub fn early_end(&self) -> Option<EarlyEnd> {
        self.early_end
    }

    /// Returns whether a message so far is marked as compressed.
    pub fn is_compressed(&self) -> bool {
        self.compressed
    }

    /// Returns the kept content of the frame that ends the call.
    pub fn take_end(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.end)
    }

    /// Processes a piece of the body and returns the number of messages that end in it.
    pub fn push(&mut self, mut piece: &[u8]) -> u64 {
        let mut messages = 0;
        while !piece.is_empty() && self.fault.is_none() && !self.has_stopped() {
            if self.have < PREFIX_BYTES {
                if !fill_prefix(&mut self.prefix, &mut self.have, &mut piece) {
                    break;
                }
                self.begin();
            } else {
                let count = usize::try_from(self.left).unwrap_or(usize::MAX).min(piece.len());
                self.left -= count as u64;
                if self.ending {
                    let room = END_MAX - self.end.len();
                    self.end.extend_from_slice(&piece[..count.min(room)]);
                }
                piece = &piece[count..];
            }
            if self.left == 0 && self.fault.is_none() {
                self.have = 0;
                messages += u64::from(self.end_message());
            }
        }
        messages
    }

    /// Returns whether a message is too long to be read.
    fn has_stopped(&self) -> bool {
        matches!(self.early_end, Some(EarlyEnd::TooLong { .. }))
    }

    /// Ends a frame. Returns whether it is a message to be counted.
    fn end_message(&mut self) -> bool {
        if self.ending || self.early_end.is_some() {
            return false;
        }
        self.count = self.count.saturating_add(1);
        if self.limits.count == Some(self.count) {
            self.early_end = Some(EarlyEnd::Enough);
        }
        true
    }

    /// Begins a message whose prefix is complete.
    fn begin(&mut self) {
        let [flag, length @ ..] = self.prefix;
        self.left = u64::from(u32::from_be_bytes(length));
        match flag {
            _ if self.ending => self.fault = Some(MessageFault::Flag),
            0 => {}
            1 => self.compressed = true,
            flag if flag == self.end_flag => self.ending = true,
            _ => self.fault = Some(MessageFault::Flag),
        }
        let too_long = self.limits.length.is_some_and(|most| self.left > most);
        if too_long && !self.ending && self.early_end.is_none() {
            self.early_end = Some(EarlyEnd::TooLong { length: self.left });
        }
    }

    /// Returns the error in the complete body. `has_encoding`: the response names the encoding of
    /// its compressed messages.
    pub fn fault(&self, has_encoding: bool) -> Option<MessageFault> {
        let cut = (self.have > 0 && !self.has_stopped()).then_some(MessageFault::Cut);
        let compressed = (self.compressed && !has_encoding).then_some(MessageFault::Compressed);
        self.fault.or(compressed).or(cut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_counted_however_they_are_cut() {
        let body = [prefixed(b""), prefixed(b"hello"), prefixed(&[7; 300])].concat();
        for step in 1..body.len() {
            let mut reader = MessageReader::default();
            let messages: u64 = body.chunks(step).map(|piece| reader.push(piece)).sum();
            assert_eq!((messages, reader.fault(false)), (3, None), "pieces of {step}");
        }
    }

    #[test]
    fn limits_are_found_however_the_body_is_cut() {
        let body = [prefixed(b"a"), prefixed(b"bc"), prefixed(b""), prefixed(b"def")].concat();
        let read = |count, length, step: usize| {
            let limits = MessageLimits { count, length };
            let mut reader = MessageReader::default().with_limits(limits);
            let messages: u64 = body.chunks(step).map(|piece| reader.push(piece)).sum();
            (messages, reader.early_end(), reader.fault(false))
        };
        for step in 1..=body.len() {
            let too_long = Some(EarlyEnd::TooLong { length: 3 });
            assert_eq!(read(None, None, step), (4, None, None));
            assert_eq!(read(Some(5), Some(3), step), (4, None, None));
            assert_eq!(read(Some(2), None, step), (2, Some(EarlyEnd::Enough), None));
            assert_eq!(read(Some(4), Some(2), step), (3, too_long, None));
            assert_eq!(read(Some(1), Some(0), step).0, 0);
        }
    }

    #[test]
    fn each_fault_is_seen() {
        let read = |body: &[u8], encoding| {
            let mut reader = MessageReader::default();
            (reader.push(body), reader.fault(encoding))
        };
        assert_eq!(read(b"", false), (0, None));
        assert_eq!(read(&[0, 0, 0], false), (0, Some(MessageFault::Cut)));
        assert_eq!(read(&[0, 0, 0, 0, 2, 1], false), (0, Some(MessageFault::Cut)));
        assert_eq!(read(&[2, 0, 0, 0, 0], false), (0, Some(MessageFault::Flag)));
        assert_eq!(read(&[1, 0, 0, 0, 1, 9], false), (1, Some(MessageFault::Compressed)));
        assert_eq!(read(&[1, 0, 0, 0, 1, 9], true), (1, None));
        // four GiB are announced and nothing is kept for them
        assert_eq!(read(&[0, 255, 255, 255, 255, 1], true), (0, Some(MessageFault::Cut)));
    }
}
