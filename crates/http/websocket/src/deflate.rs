//! permessage-deflate (RFC 7692): offers, the agreement, and the coding of messages.

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

/// Name of the extension in Sec-WebSocket-Extensions.
pub const NAME: &str = "permessage-deflate";
/// Bits of the largest window.
pub const WINDOW_MAX: u8 = 15;
/// zlib cannot write raw streams with a window below 9 bits.
const WINDOW_WRITABLE: u8 = 9;
/// Tail that a sender removes from each message, and a receiver restores.
const TAIL: [u8; 4] = [0, 0, 0xff, 0xff];
/// Number of bytes that are inflated at a time, so that a limit is noticed early.
const PIECE_LEN: usize = 16 << 10;

/// Offer of a client, or the answer of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeflateOffer {
    pub server_no_context_takeover: bool,
    pub client_no_context_takeover: bool,
    pub server_max_window_bits: Option<u8>,
    /// `Some(None)`: the client understands the parameter, without a value.
    pub client_max_window_bits: Option<Option<u8>>,
}

/// Parameters negotiated by both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agreed {
    pub server_no_context_takeover: bool,
    pub client_no_context_takeover: bool,
    pub server_window_bits: u8,
    pub client_window_bits: u8,
}

impl DeflateOffer {
    /// Returns the value for Sec-WebSocket-Extensions.
    pub fn value(&self) -> String {
        let mut text = NAME.to_owned();
        if self.server_no_context_takeover {
            text.push_str("; server_no_context_takeover");
        }
        if self.client_no_context_takeover {
            text.push_str("; client_no_context_takeover");
        }
        if let Some(bits) = self.server_max_window_bits {
            text.push_str(&format!("; server_max_window_bits={bits}"));
        }
        match self.client_max_window_bits {
            Some(Some(bits)) => text.push_str(&format!("; client_max_window_bits={bits}")),
            Some(None) => text.push_str("; client_max_window_bits"),
            None => {}
        }
        text
    }

    /// Parses one element of Sec-WebSocket-Extensions. `None` if it is another extension, or has
    /// unknown, repeated or invalid parameters.
    pub fn parse(element: &str) -> Option<DeflateOffer> {
        let mut parts = element.split(';').map(str::trim);
        if !parts.next()?.eq_ignore_ascii_case(NAME) {
            return None;
        }
        let mut offer = DeflateOffer::default();
        for part in parts {
            let (name, value) = match part.split_once('=') {
                Some((name, value)) => (name.trim(), Some(value.trim().trim_matches('"'))),
                None => (part, None),
            };
            let once = |flag: &mut bool| value.is_none() && !std::mem::replace(flag, true);
            let fits = match name {
                "server_no_context_takeover" => once(&mut offer.server_no_context_takeover),
                "client_no_context_takeover" => once(&mut offer.client_no_context_takeover),
                "server_max_window_bits" => {
                    let bits = window_bits(value?)?;
                    offer.server_max_window_bits.replace(bits).is_none()
                }
                "client_max_window_bits" => {
                    let bits = match value {
                        Some(value) => Some(window_bits(value)?),
                        None => None,
                    };
                    offer.client_max_window_bits.replace(bits).is_none()
                }
                _ => false,
            };
            if !fits {
                return None;
            }
        }
        Some(offer)
    }

    /// Returns the answer of a server that accepts this offer, and the resulting agreement. `None`
    /// if it requires a window that the server does not support.
    pub fn accept(&self) -> Option<(DeflateOffer, Agreed)> {
        let server_bits = self.server_max_window_bits.unwrap_or(WINDOW_MAX);
        if server_bits < WINDOW_WRITABLE {
            return None;
        }
        let client_bits = self.client_max_window_bits.flatten().unwrap_or(WINDOW_MAX);
        let answer = DeflateOffer {
            client_max_window_bits: self.client_max_window_bits.map(|_| Some(client_bits)),
            ..*self
        };
        Some((answer, answer.agreed()))
    }

    /// Checks a server's answer to this offer. `None` if it contains something that was not
    /// offered.
    pub fn settle(&self, answer: &DeflateOffer) -> Option<Agreed> {
        let server_bits = match (self.server_max_window_bits, answer.server_max_window_bits) {
            (Some(offered), Some(chosen)) => chosen <= offered,
            (Some(_), None) => false,
            (None, _) => true,
        };
        let client_bits = match (self.client_max_window_bits, answer.client_max_window_bits) {
            (None, Some(_)) | (_, Some(None)) => false,
            (Some(Some(offered)), Some(Some(chosen))) => chosen <= offered,
            _ => true,
        };
        let context = !self.server_no_context_takeover || answer.server_no_context_takeover;
        (server_bits && client_bits && context).then(|| Agreed {
            // a client may always do without its context
            client_no_context_takeover: self.client_no_context_takeover
                || answer.client_no_context_takeover,
            ..answer.agreed()
        })
    }

    fn agreed(&self) -> Agreed {
        Agreed {
            server_no_context_takeover: self.server_no_context_takeover,
            client_no_context_takeover: self.client_no_context_takeover,
            server_window_bits: self.server_max_window_bits.unwrap_or(WINDOW_MAX),
            client_window_bits: self.client_max_window_bits.flatten().unwrap_or(WINDOW_MAX),
        }
    }
}

fn window_bits(text: &str) -> Option<u8> {
    let plain = !text.starts_with(['0', '+']);
    text.parse().ok().filter(|bits| plain && (8..=WINDOW_MAX).contains(bits))
}

/// Returns the first acceptable offer among a client's values of Sec-WebSocket-Extensions, with the
/// server's answer to it.
pub fn choose<'a>(values: impl IntoIterator<Item = &'a str>) -> Option<(DeflateOffer, Agreed)> {
    let elements = values.into_iter().flat_map(|value| value.split(','));
    elements.filter_map(DeflateOffer::parse).find_map(|offer| offer.accept())
}

/// Compresses messages of one direction.
#[derive(Debug)]
pub struct Deflater {
    /// Compressor; `None` if the window is too small for the library, and messages are sent
    /// uncompressed.
    stream: Option<Compress>,
    keeps_context: bool,
}

impl Deflater {
    /// Creates a compressor. `window_bits`: at most this window; `no_context_takeover`: each
    /// message is independent.
    pub fn new(window_bits: u8, no_context_takeover: bool) -> Deflater {
        let bits = window_bits.min(WINDOW_MAX);
        let stream = (bits >= WINDOW_WRITABLE)
            .then(|| Compress::new_with_window_bits(Compression::fast(), false, bits));
        Deflater { stream, keeps_context: !no_context_takeover }
    }

    /// Appends the compressed message to `out`; returns false if it must be sent uncompressed.
    pub fn compress(&mut self, message: &[u8], out: &mut Vec<u8>) -> bool {
        let Some(stream) = &mut self.stream else { return false };
        let from = out.len();
        let before = stream.total_in();
        loop {
            out.reserve(PIECE_LEN.min(message.len() + 64));
            let done = (stream.total_in() - before) as usize;
            let flush = FlushCompress::Sync;
            match stream.compress_vec(&message[done..], out, flush) {
                Ok(Status::Ok | Status::BufError) => {}
                Ok(Status::StreamEnd) | Err(_) => {
                    out.truncate(from);
                    stream.reset();
                    return false;
                }
            }
            let whole = (stream.total_in() - before) as usize == message.len();
            if whole && out.len() < out.capacity() {
                break;
            }
        }
        if out[from..].ends_with(&TAIL) {
            out.truncate(out.len() - TAIL.len());
        }
        if out.len() == from {
            // RFC 7692 section 7.2.3.6: an empty message
            out.push(0);
        }
        if !self.keeps_context {
            stream.reset();
        }
        true
    }
}

/// Violation to inflate a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InflateError {
    /// The bytes are not a deflate stream, or end inside a block.
    Broken,
    /// The message is longer than the limit.
    TooLong,
}

/// Inflates messages of one direction.
#[derive(Debug)]
pub struct Inflater {
    stream: Decompress,
    keeps_context: bool,
}

impl Inflater {
    /// Inflates any window that a peer may use.
    pub fn new(no_context_takeover: bool) -> Inflater {
        Inflater { stream: Decompress::new(false), keeps_context: !no_context_takeover }
    }

    /// Appends the inflated piece of a message; `max`: maximum length of `out`.
    ///
    /// # Errors
    /// Fails for bytes that are not a deflate stream, or a message above `max`.
    pub fn push(
        &mut self,
        piece: &[u8],
        out: &mut Vec<u8>,
        max: usize,
    ) -> Result<(), InflateError> {
        let mut rest = piece;
        loop {
            if out.len() > max {
                return Err(InflateError::TooLong);
            }
            out.reserve(PIECE_LEN.min(max.saturating_sub(out.len()) + 1).max(64));
            let (before_in, before_out) = (self.stream.total_in(), out.len());
            let status = self
                .stream
                .decompress_vec(rest, out, FlushDecompress::Sync)
                .map_err(|_| InflateError::Broken)?;
            let used = (self.stream.total_in() - before_in) as usize;
            rest = &rest[used..];
            if status == Status::StreamEnd {
                // a final block: the receiver continues with another stream
                self.stream.reset(false);
                if rest.is_empty() {
                    break;
                }
                continue;
            }
            let full = out.len() == out.capacity();
            if rest.is_empty() && !full {
                break;
            }
            if used == 0 && out.len() == before_out {
                return Err(InflateError::Broken);
            }
        }
        if out.len() > max { Err(InflateError::TooLong) } else { Ok(()) }
    }

    /// Completes the message after its last piece.
    ///
    /// # Errors
    /// Fails like [`Inflater::push`].
    pub fn finish(&mut self, out: &mut Vec<u8>, max: usize) -> Result<(), InflateError> {
        self.push(&TAIL, out, max)?;
        if !self.keeps_context {
            self.stream.reset(false);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(deflater: &mut Deflater, inflater: &mut Inflater, message: &[u8]) -> usize {
        let (mut packed, mut back) = (Vec::new(), Vec::new());
        assert!(deflater.compress(message, &mut packed));
        for piece in packed.chunks(7) {
            inflater.push(piece, &mut back, message.len()).unwrap();
        }
        inflater.finish(&mut back, message.len()).unwrap();
        assert_eq!(back, message);
        packed.len()
    }

    #[test]
    fn messages_survive_both_context_rules_and_every_window() {
        let text = "the same words repeatedly ".repeat(3_000).into_bytes();
        for alone in [false, true] {
            for bits in 9..=15 {
                let (mut deflater, mut inflater) =
                    (Deflater::new(bits, alone), Inflater::new(alone));
                for length in [0, 1, 125, 70_000] {
                    round_trip(&mut deflater, &mut inflater, &text[..length]);
                }
                let first =
                    round_trip(&mut deflater, &mut inflater, b"a message that is sent twice");
                let second =
                    round_trip(&mut deflater, &mut inflater, b"a message that is sent twice");
                assert_eq!(second < first, !alone, "context, {bits} bits");
            }
        }
        assert!(!Deflater::new(8, false).compress(b"x", &mut Vec::new()));
    }

    #[test]
    fn the_examples_of_the_rfc_inflate_to_hello() {
        // RFC 7692 section 7.2.3: fixed block, shared window, stored block, final block, two blocks
        let examples: [&[&[u8]]; 4] = [
            &[&[0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00], &[0xf2, 0x00, 0x11, 0x00, 0x00]],
            &[&[0x00, 0x05, 0x00, 0xfa, 0xff, 0x48, 0x65, 0x6c, 0x6c, 0x6f, 0x00]],
            &[&[0xf3, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00, 0x00]],
            &[&[0xf2, 0x48, 0x05, 0x00, 0x00, 0x00, 0xff, 0xff, 0xca, 0xc9, 0xc9, 0x07, 0x00]],
        ];
        for messages in examples {
            let mut inflater = Inflater::new(false);
            for message in messages {
                let mut out = Vec::new();
                inflater.push(message, &mut out, 100).unwrap();
                inflater.finish(&mut out, 100).unwrap();
                assert_eq!(out, b"Hello", "{message:02x?}");
            }
        }
    }

    #[test]
    fn a_bomb_ends_at_the_limit_and_garbage_is_broken() {
        let mut packed = Vec::new();
        assert!(Deflater::new(15, false).compress(&vec![0; 8 << 20], &mut packed));
        assert!(packed.len() < 200_000);
        let mut out = Vec::new();
        let error = Inflater::new(false).push(&packed, &mut out, 1 << 20);
        assert_eq!(error, Err(InflateError::TooLong));
        assert!(out.capacity() <= 2 << 20, "{}", out.capacity());
        let garbage = Inflater::new(false).push(&[0xff; 40], &mut Vec::new(), 1 << 20);
        assert_eq!(garbage, Err(InflateError::Broken));
    }

    #[test]
    fn offers_are_read_strictly_and_settled_by_the_rfc() {
        let parse = DeflateOffer::parse;
        let all = "permessage-deflate; server_no_context_takeover; client_no_context_takeover; \
                   server_max_window_bits=10; client_max_window_bits";
        assert_eq!(parse(all).unwrap().value(), all);
        for wrong in [
            "permessage-foo",
            "permessage-deflate; server_max_window_bits",
            "permessage-deflate; server_max_window_bits=7",
            "permessage-deflate; server_max_window_bits=16",
            "permessage-deflate; server_max_window_bits=08",
            "permessage-deflate; server_no_context_takeover=1",
            "permessage-deflate; server_no_context_takeover; server_no_context_takeover",
            "permessage-deflate; unknown",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
        let values = ["permessage-deflate; server_max_window_bits=8, x", "permessage-deflate"];
        let (answer, agreed) = choose(values).unwrap();
        assert_eq!((answer.value().as_str(), agreed.server_window_bits), (NAME, 15));
        let offer = parse("permessage-deflate; client_max_window_bits").unwrap();
        assert!(
            offer.settle(&parse("permessage-deflate; client_max_window_bits=9").unwrap()).is_some()
        );
        let plain = parse("permessage-deflate").unwrap();
        assert!(
            plain.settle(&parse("permessage-deflate; client_max_window_bits=9").unwrap()).is_none()
        );
    }
}
