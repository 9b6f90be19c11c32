//! Collected parts of a response in progress, if more than its length is needed.

use crate::answers::{AnswerKeys, AnswerReader};
use crate::inspect::{BodyTest, Inspect, StreamReader, TokenReader};
use plan::Streaming;
use protocol::grpc::{BodyForm, BodyReader, EarlyEnd, MessageLimits};
use protocol::http1::events::EventReader;
use sample::{BodyPrint, FailureClass};
use stats::{SAMPLE_BYTES_MAX, StreamMarks};
use std::sync::Arc;

/// Maximum number of bytes kept of a response.
pub const RESPONSE_KEPT_MAX: usize = 8 << 10;

/// Maximum size of a body kept for a script or a guide, in bytes; the rest is cut off.
const BODY_MAX: usize = 16 << 20;

/// Expected content of the body of a gRPC call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GrpcBody<'a> {
    pub(crate) form: BodyForm,
    /// Limits at which the client ends the call.
    pub(crate) limits: MessageLimits,
    /// Messages that it may answer.
    pub(crate) answers: Option<&'a Arc<AnswerKeys>>,
}

/// Collected parts of one call, so that responses may arrive interleaved.
#[derive(Debug, Default)]
pub(crate) struct Intake {
    inspect: Inspect,
    body: Vec<u8>,
    /// The start of the response as received.
    kept: Vec<u8>,
    /// The start of a response that may be shown as a sample of a failure.
    sample: Vec<u8>,
    /// State of the response as a stream of events.
    pub(crate) marks: StreamMarks,
    /// gRPC status of a call, to be logged unless it is OK.
    pub(crate) status: Option<Box<protocol::grpc::Status>>,
    /// End of a gRPC call that is part of the body.
    pub(crate) end: Vec<u8>,
    /// Limit that the messages of a judged body have reached.
    pub(crate) early_end: Option<EarlyEnd>,
}

impl Intake {
    /// Resets it for another call; buffers keep their memory.
    pub(crate) fn renew(&mut self) {
        self.inspect.reset();
        self.body.clear();
        self.kept.clear();
        self.sample.clear();
        self.marks = StreamMarks::default();
        self.status = None;
        self.end.clear();
        self.early_end = None;
    }

    /// Expects a stream of events as the next body. `grpc`: content of bodies with gRPC messages.
    pub(crate) fn expect_events(&mut self, form: Streaming, grpc: GrpcBody<'_>) {
        self.marks.usage = form.is_token_stream().then(Default::default);
        self.inspect.expect_events(|| match form {
            Streaming::Sse => StreamReader::Events(EventReader::sse()),
            Streaming::Lines => StreamReader::Events(EventReader::lines()),
            Streaming::Model(api) => StreamReader::Tokens(Box::new(TokenReader::new(api))),
            Streaming::Grpc => StreamReader::Messages {
                reader: BodyReader::new(grpc.form).with_limits(grpc.limits),
                has_encoding: false,
                answers: grpc.answers.map(|keys| Box::new(AnswerReader::new(Arc::clone(keys)))),
            },
        });
    }

    pub(crate) fn is_stream(&self) -> bool {
        self.inspect.is_stream()
    }

    /// Returns the limit that the messages of the body in progress have reached.
    pub(crate) fn reached_limit(&self) -> Option<EarlyEnd> {
        self.inspect.early_end()
    }

    /// Returns the number of events since the last call; `whole`: the body is complete, and its
    /// tokens are known.
    pub(crate) fn take_events(&mut self, whole: bool) -> u64 {
        if whole {
            self.marks.usage = self.inspect.usage();
        }
        self.inspect.take_events(whole)
    }

    /// Returns the numbers of the request's messages that were answered since the last call.
    pub(crate) fn take_answers(&mut self) -> Vec<u32> {
        self.inspect.take_answers()
    }

    /// Keeps a piece of the response, up to the available space.
    pub(crate) fn keep(&mut self, piece: &[u8]) {
        let room = RESPONSE_KEPT_MAX - self.kept.len();
        self.kept.extend_from_slice(&piece[..piece.len().min(room)]);
    }

    /// Keeps a piece of a response that may be a sample, up to the available space.
    pub(crate) fn sample(&mut self, piece: &[u8]) {
        let room = SAMPLE_BYTES_MAX.saturating_sub(self.sample.len());
        self.sample.extend_from_slice(&piece[..piece.len().min(room)]);
    }

    pub(crate) fn take_sample(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.sample)
    }

    pub(crate) fn take_kept(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.kept)
    }

    pub(crate) fn clear_kept(&mut self) {
        self.kept.clear();
    }

    /// Processes a piece of the body that the plan's expectations examine.
    pub(crate) fn inspect(&mut self, test: &BodyTest, head: &[u8], piece: &[u8], last: bool) {
        self.inspect.take(test, head, piece, last);
    }

    /// Completes the body: returns its length after decoding, its fault, and its hash.
    pub(crate) fn judge(
        &mut self,
        test: &BodyTest,
    ) -> (u64, Option<FailureClass>, Option<BodyPrint>) {
        let (decoded, wrong) = self.inspect.finish(test);
        let print = self.inspect.print(test);
        self.end = self.inspect.take_end();
        self.early_end = self.inspect.early_end();
        self.inspect.reset();
        (decoded, wrong, print)
    }

    /// Keeps a piece of the body that a script or a guide needs.
    pub(crate) fn gather(&mut self, piece: &[u8]) {
        let room = BODY_MAX.saturating_sub(self.body.len());
        self.body.extend_from_slice(&piece[..piece.len().min(room)]);
    }

    pub(crate) fn body(&self) -> &[u8] {
        &self.body
    }

    /// Swaps the body for an empty buffer.
    pub(crate) fn swap_body(&mut self, other: &mut Vec<u8>) {
        std::mem::swap(&mut self.body, other);
        self.body.clear();
    }

    pub(crate) fn clear_body(&mut self) {
        self.body.clear();
    }
}
