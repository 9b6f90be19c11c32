//! Checks of a response's body: decoding, length, hash, text. Only if the plan requires it;
//! otherwise bodies are counted and dropped.

mod tokens;

use crate::answers::AnswerReader;
use crate::verify::Hashing;
use plan::{BodyRule, Expect};
use protocol::grpc::{BodyReader, EarlyEnd};
use protocol::http1::coding::Decoder;
use protocol::http1::events::EventReader;
use protocol::http1::fields;
use regex::bytes::Regex;
use sample::{BodyPrint, FailureClass};
use sha2::{Digest, Sha256};
use stats::TokenUsage;
pub(crate) use tokens::TokenReader;

/// Maximum size of a searched body in bytes; the rest is not searched.
const KEPT_MAX: usize = 16 << 20;

/// The plan's checks of bodies, prepared for every connection.
#[derive(Debug, Default)]
pub(crate) struct BodyTest {
    rule: Option<BodyRule>,
    regex: Option<Regex>,
    length: Option<u64>,
    decode: bool,
    /// True if bodies are hashed.
    hashes: bool,
    /// Some bodies are streams of events.
    streams: bool,
    /// Some bodies are gRPC messages.
    grpc: bool,
    /// True if the body must be examined; see [`BodyTest::looks`].
    looks: bool,
}

impl BodyTest {
    /// # Errors
    /// Fails if the regular expression does not compile, with the position.
    pub(crate) fn new(expect: &Expect, decode: bool, streams: bool) -> Result<BodyTest, String> {
        let regex = match &expect.body {
            Some(BodyRule::Regex(text)) => {
                Some(Regex::new(text).map_err(|error| format!("--expect-body regex: {error}"))?)
            }
            _ => None,
        };
        let (rule, hashes) = (expect.body.clone(), expect.verify.is_some());
        let looks = rule.is_some() || decode || hashes || streams;
        let length = expect.length;
        Ok(BodyTest { rule, regex, length, decode, hashes, streams, grpc: false, looks })
    }

    /// Creates the tests; `grpc`: some bodies are gRPC messages.
    pub(crate) fn of_grpc(self, grpc: bool) -> BodyTest {
        BodyTest { grpc, ..self }
    }

    /// Returns whether some bodies are gRPC messages.
    #[inline]
    pub(crate) fn is_grpc(&self) -> bool {
        self.grpc
    }

    /// Returns whether bodies must be examined, beyond counting their bytes.
    #[inline]
    pub(crate) fn looks(&self) -> bool {
        self.looks
    }

    /// Returns whether some bodies are streams of events.
    #[inline]
    pub(crate) fn streams(&self) -> bool {
        self.streams
    }

    fn keeps(&self) -> bool {
        matches!(self.rule, Some(BodyRule::Regex(_) | BodyRule::Contains(_)))
    }

    /// Returns the failure of a body of `bytes` bytes that was not examined.
    pub(crate) fn judge_length(&self, bytes: u64) -> Option<FailureClass> {
        let wrong = self.length.is_some_and(|wanted| wanted != bytes);
        wrong.then_some(FailureClass::Length)
    }
}

/// Number of encoded bytes decoded at a time. Decoding expands up to 1,032 times (deflate), so a
/// connection needs about 1 MiB for it, regardless of what the server sends.
const PIECE_LEN: usize = 1 << 10;

/// Counts the events of a body.
#[derive(Clone, Debug)]
pub(crate) enum StreamReader {
    Events(EventReader),
    Tokens(Box<TokenReader>),
    Messages {
        reader: BodyReader,
        /// The response names the encoding of its compressed messages.
        has_encoding: bool,
        /// Matches answers to messages by a field, if one is configured.
        answers: Option<Box<AnswerReader>>,
    },
}

impl StreamReader {
    fn push(&mut self, piece: &[u8]) -> u64 {
        match self {
            StreamReader::Events(reader) => reader.push(piece),
            StreamReader::Tokens(reader) => reader.push(piece),
            StreamReader::Messages { reader, answers, .. } => {
                if let Some(answers) = answers {
                    answers.push(piece);
                }
                reader.push(piece)
            }
        }
    }

    fn finish(&mut self) -> u64 {
        match self {
            StreamReader::Events(reader) => reader.finish(),
            StreamReader::Messages { reader, .. } => reader.finish(),
            StreamReader::Tokens(_) => 0,
        }
    }

    /// Searches the head for the encoding once a message is marked as compressed.
    fn note_encoding(&mut self, head: &[u8]) {
        if let StreamReader::Messages { reader, has_encoding, .. } = self
            && reader.is_compressed()
            && !*has_encoding
        {
            let encoding = fields::find(head, "grpc-encoding");
            *has_encoding = encoding.is_some_and(|name| !name.eq_ignore_ascii_case(b"identity"));
        }
    }

    /// Returns the limit at which the client ends the call.
    fn early_end(&self) -> Option<EarlyEnd> {
        match self {
            StreamReader::Messages { reader, .. } => reader.early_end(),
            StreamReader::Events(_) | StreamReader::Tokens(_) => None,
        }
    }

    /// Returns the failure of a complete body.
    fn fault(&self) -> Option<FailureClass> {
        match self {
            StreamReader::Events(_) => None,
            StreamReader::Tokens(reader) => {
                reader.is_broken().then_some(FailureClass::StreamFailed)
            }
            StreamReader::Messages { reader, has_encoding, .. } => {
                reader.fault(*has_encoding).map(|_| FailureClass::BadFraming)
            }
        }
    }
}

/// Body of one response as it arrives.
#[derive(Debug, Default)]
pub(crate) struct Inspect {
    begun: bool,
    decoder: Option<Decoder>,
    broken: bool,
    decoded: u64,
    /// `None` before the first byte.
    sha256: Option<Sha256>,
    hashing: Hashing,
    /// The body so far if it must be searched; otherwise scratch memory for one piece.
    kept: Vec<u8>,
    /// True while the body equals the expected one.
    equal: bool,
    /// If the body is a stream of events: its state, and uncollected events.
    events: Option<StreamReader>,
    fresh: u64,
}

impl Inspect {
    /// Resets for the next response.
    pub(crate) fn reset(&mut self) {
        self.begun = false;
        self.decoder = None;
        self.broken = false;
        self.decoded = 0;
        self.sha256 = None;
        self.hashing = Hashing::None;
        self.kept.clear();
        self.equal = true;
        self.events = None;
        self.fresh = 0;
    }

    /// Expects a stream of events as the next body.
    pub(crate) fn expect_events(&mut self, reader: impl FnOnce() -> StreamReader) {
        if !self.begun {
            self.events.get_or_insert_with(reader);
        }
    }

    /// Returns whether the body is a stream of events.
    pub(crate) fn is_stream(&self) -> bool {
        self.events.is_some()
    }

    /// Returns the tokens that the body reports; `None` if it is not a stream of tokens.
    pub(crate) fn usage(&self) -> Option<TokenUsage> {
        match &self.events {
            Some(StreamReader::Tokens(reader)) => Some(reader.usage()),
            _ => None,
        }
    }

    /// Returns the number of events since the last call; `whole`: the body is complete.
    pub(crate) fn take_events(&mut self, whole: bool) -> u64 {
        if whole && let Some(reader) = &mut self.events {
            self.fresh += reader.finish();
        }
        std::mem::take(&mut self.fresh)
    }

    /// Returns the numbers of the request's messages that were answered since the last call.
    pub(crate) fn take_answers(&mut self) -> Vec<u32> {
        match &mut self.events {
            Some(StreamReader::Messages { answers: Some(answers), .. }) => answers.take(),
            _ => Vec::new(),
        }
    }

    /// Returns the limit of its messages that the body has reached.
    pub(crate) fn early_end(&self) -> Option<EarlyEnd> {
        self.events.as_ref().and_then(StreamReader::early_end)
    }

    /// Takes the frame that ends the gRPC call, or the start of a body that is a single message.
    pub(crate) fn take_end(&mut self) -> Vec<u8> {
        match &mut self.events {
            Some(StreamReader::Messages { reader, .. }) => reader.take_end(),
            _ => Vec::new(),
        }
    }

    /// Processes a piece of the body. `head` is the response's; `last`: this is the last piece.
    pub(crate) fn take(&mut self, test: &BodyTest, head: &[u8], piece: &[u8], last: bool) {
        if !self.begun {
            self.begun = true;
            let encoding = if test.decode { fields::content_encoding(head) } else { None };
            if let Some(encoding) = encoding {
                self.decoder = Decoder::for_encoding(&encoding);
                self.broken = self.decoder.is_none() && !encoding.eq_ignore_ascii_case(b"identity");
            }
        }
        if self.decoder.is_none() && test.rule.is_none() {
            // there is nothing to search: no copy is needed
            if test.hashes {
                self.hashing.add(piece, last);
            }
            if let Some(reader) = &mut self.events {
                self.fresh += reader.push(piece);
                reader.note_encoding(head);
            }
            self.decoded += piece.len() as u64;
            return;
        }
        // each decoded piece is examined before the next is decoded: a bomb expands a thousandfold
        let bite = if self.decoder.is_some() { PIECE_LEN } else { piece.len().max(1) };
        for bite in piece.chunks(bite) {
            if !test.keeps() {
                self.kept.clear();
            }
            let from = self.kept.len();
            match &mut self.decoder {
                Some(decoder) => self.broken |= decoder.push(bite, &mut self.kept).is_err(),
                None => self.kept.extend_from_slice(bite),
            }
            self.absorb(test, from);
        }
        if let Some(reader) = &mut self.events {
            reader.note_encoding(head);
        }
    }

    fn absorb(&mut self, test: &BodyTest, from: usize) {
        let fresh = &self.kept[from..];
        if let Some(reader) = &mut self.events {
            self.fresh += reader.push(fresh);
        }
        if test.hashes {
            self.hashing.add(fresh, false);
        }
        match &test.rule {
            Some(BodyRule::Sha256(_)) => self.sha256.get_or_insert_default().update(fresh),
            Some(BodyRule::Exact(wanted)) => {
                let at = usize::try_from(self.decoded).unwrap_or(usize::MAX);
                let here = wanted.get(at..at.saturating_add(fresh.len()));
                self.equal &= here == Some(fresh);
            }
            _ => {}
        }
        self.decoded += fresh.len() as u64;
        self.kept.truncate(KEPT_MAX);
    }

    /// Completes the body: returns its length after decoding, and its fault.
    pub(crate) fn finish(&mut self, test: &BodyTest) -> (u64, Option<FailureClass>) {
        if let Some(decoder) = &mut self.decoder {
            self.broken |= decoder.finish().is_err();
        }
        let class = if self.broken {
            Some(FailureClass::Encoding)
        } else if let Some(class) = self.events.as_ref().and_then(StreamReader::fault) {
            Some(class)
        } else if let Some(class) = test.judge_length(self.decoded) {
            Some(class)
        } else {
            (!self.meets(test)).then_some(FailureClass::Body)
        };
        (self.decoded, class)
    }

    /// Returns the length and hash of the complete body, if bodies are hashed.
    pub(crate) fn print(&mut self, test: &BodyTest) -> Option<BodyPrint> {
        let length = Some(self.decoded);
        test.hashes.then(|| BodyPrint { length, hash: self.hashing.finish() })
    }

    fn meets(&mut self, test: &BodyTest) -> bool {
        match &test.rule {
            None => true,
            Some(BodyRule::Exact(wanted)) => self.equal && self.decoded == wanted.len() as u64,
            Some(BodyRule::Sha256(wanted)) => {
                let sum = self.sha256.take().unwrap_or_default().finalize();
                sum.as_slice() == wanted
            }
            Some(BodyRule::Contains(text)) => {
                text.is_empty() || self.kept.windows(text.len()).any(|window| window == text)
            }
            Some(BodyRule::Regex(_)) => {
                test.regex.as_ref().is_some_and(|regex| regex.is_match(&self.kept))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::grpc::BodyForm;

    fn test_of(rule: BodyRule) -> BodyTest {
        BodyTest::new(&Expect { body: Some(rule), ..Expect::default() }, false, false).unwrap()
    }

    const GZIP: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n";

    /// Passes the body in two pieces, cut at every place; all results must agree.
    fn verdict(test: &BodyTest, body: &[u8]) -> Option<FailureClass> {
        let judge = |cut: usize| {
            let mut inspect = Inspect::default();
            inspect.reset();
            inspect.take(test, b"", &body[..cut], false);
            inspect.take(test, b"", &body[cut..], true);
            inspect.finish(test).1
        };
        let verdicts: Vec<_> = (0..=body.len()).map(judge).collect();
        assert!(verdicts.iter().all(|verdict| *verdict == verdicts[0]), "{verdicts:?}");
        verdicts[0]
    }

    #[test]
    fn each_rule_accepts_the_right_body_and_no_other() {
        let sum = Sha256::digest(b"hello").as_slice().try_into().unwrap();
        for rule in [
            BodyRule::Exact(b"hello".to_vec()),
            BodyRule::Sha256(sum),
            BodyRule::Contains(b"ell".to_vec()),
            BodyRule::Regex("^h.*o$".into()),
        ] {
            let test = test_of(rule.clone());
            assert_eq!(verdict(&test, b"hello"), None, "{rule:?}");
            assert_eq!(verdict(&test, b"hullp"), Some(FailureClass::Body), "{rule:?}");
            assert_eq!(verdict(&test, b""), Some(FailureClass::Body), "{rule:?}");
        }
        let exact = test_of(BodyRule::Exact(b"hello".to_vec()));
        assert_eq!(verdict(&exact, b"hello!"), Some(FailureClass::Body), "longer");
        assert_eq!(verdict(&exact, b"hell"), Some(FailureClass::Body), "shorter");
    }

    #[test]
    fn a_wrong_length_is_its_own_class() {
        let test =
            BodyTest::new(&Expect { length: Some(5), ..Expect::default() }, true, false).unwrap();
        assert_eq!(verdict(&test, b"hello"), None);
        assert_eq!(verdict(&test, b"hell"), Some(FailureClass::Length));
        assert_eq!(test.judge_length(5), None);
        assert_eq!(test.judge_length(6), Some(FailureClass::Length));
    }

    #[test]
    fn events_are_counted_of_the_decoded_body() {
        use std::io::Write;
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(b"data: a\n\n").unwrap();
        encoder.flush().unwrap();
        let first = encoder.get_ref().len();
        encoder.write_all(b"data: b\n\n").unwrap();
        let packed = encoder.finish().unwrap();
        let test = BodyTest::new(&Expect::default(), true, true).unwrap();
        let mut inspect = Inspect::default();
        inspect.reset();
        inspect.expect_events(|| StreamReader::Events(EventReader::sse()));
        inspect.take(&test, GZIP, &packed[..first], false);
        assert_eq!((inspect.take_events(false), inspect.take_events(false)), (1, 0));
        inspect.take(&test, GZIP, &packed[first..], true);
        assert_eq!(inspect.take_events(true), 1);
        inspect.reset();
        assert!(!inspect.is_stream());
    }

    #[test]
    fn messages_of_grpc_are_counted_and_checked() {
        let test = BodyTest::new(&Expect::default(), false, true).unwrap().of_grpc(true);
        let mut inspect = Inspect::default();
        let mut judged = |head: &[u8], body: &[u8]| {
            inspect.reset();
            let reader = BodyReader::new(BodyForm::Messages { end_flag: 0, text: false });
            inspect.expect_events(|| StreamReader::Messages {
                reader,
                has_encoding: false,
                answers: None,
            });
            inspect.take(&test, head, body, true);
            (inspect.take_events(true), inspect.finish(&test).1)
        };
        assert_eq!(judged(b"", &protocol::grpc::prefixed(b"hello")), (1, None));
        assert_eq!(judged(b"", b"\0\0\0\0\x09hello"), (0, Some(FailureClass::BadFraming)));
        let gzip = b"HTTP/2 200\r\ngrpc-encoding: gzip\r\n\r\n";
        assert_eq!(judged(gzip, b"\x01\0\0\0\x01h"), (1, None));
        assert_eq!(judged(b"", b"\x01\0\0\0\x01h"), (1, Some(FailureClass::BadFraming)));
    }

    #[test]
    fn a_bad_expression_is_refused_with_its_text() {
        let expect = Expect { body: Some(BodyRule::Regex("(".into())), ..Expect::default() };
        assert!(BodyTest::new(&expect, false, false).unwrap_err().contains("--expect-body"));
    }

    #[test]
    fn bytes_in_another_coding_fail_the_call() {
        let test = BodyTest::new(&Expect::default(), true, false).unwrap();
        let mut inspect = Inspect::default();
        inspect.reset();
        inspect.take(&test, GZIP, b"this is not gzip stream", true);
        assert_eq!(inspect.finish(&test).1, Some(FailureClass::Encoding));
        inspect.reset();
        inspect.take(
            &test,
            b"HTTP/1.1 200 OK\r\nContent-Encoding: identity\r\n\r\n",
            b"plain",
            true,
        );
        assert_eq!(inspect.finish(&test), (5, None));
    }
}
