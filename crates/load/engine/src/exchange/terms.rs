//! Settings of exchanges that limit the time of each part of a response, and do not need the whole
//! body.

use conduit::OpenOptions;
use protocol::grpc::{BodyForm, BodyReader, MessageLimits};
use protocol::http1::response::Limits;
use sample::FailureClass;
use units::Nanos;

/// Settings of every connection of an exchange.
#[derive(Clone, Debug)]
pub struct Terms {
    pub options: OpenOptions,
    pub limits: ResponseLimits,
}

impl Default for Terms {
    fn default() -> Terms {
        let options = OpenOptions { nodelay: true, ..OpenOptions::default() };
        Terms { options, limits: ResponseLimits::default() }
    }
}

/// Default time for a server to close a connection as announced.
const LINGER: Nanos = Nanos::from_millis(500);

/// Limits on a response in addition to its request's timeout.
#[derive(Clone, Copy, Debug)]
pub struct ResponseLimits {
    /// Maximum time from sending the requests to the first byte of the response.
    pub first_byte: Option<Nanos>,
    /// Longest pause of the connection since they were sent.
    pub progress: Option<Nanos>,
    /// Maximum pause until the response begins; `None` for the same limit.
    pub answer: Option<Nanos>,
    /// Number of body bytes to keep. A body above [`super::BODY_MAX`] bytes is not read further,
    /// and the response is truncated. `None` if all are kept, and a longer body is a failure.
    pub body_kept: Option<usize>,
    /// Maximum number of bytes of the response's head that are read.
    pub head_max: u32,
    /// Time for the server to close a connection as announced.
    pub linger: Nanos,
    /// Form of the response of a gRPC call, and limits of its messages at which reading stops.
    pub messages: Option<(BodyForm, MessageLimits)>,
}

impl Default for ResponseLimits {
    fn default() -> ResponseLimits {
        ResponseLimits {
            first_byte: None,
            progress: None,
            answer: None,
            body_kept: None,
            head_max: Limits::default().head_max as u32,
            linger: LINGER,
            messages: None,
        }
    }
}

/// Instants at which those limits are reached.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Patience {
    first_byte: Option<Nanos>,
    progress: Option<Nanos>,
    begun: bool,
}

impl ResponseLimits {
    /// Returns a reader of a response whose messages have limits.
    pub(super) fn message_reader(&self) -> Option<BodyReader> {
        let (form, limits) = self.messages?;
        Some(BodyReader::new(form).with_limits(limits))
    }

    /// Returns the limits for the response to a request that is sent now.
    pub(super) fn begin(&self, now: Nanos) -> Patience {
        let first_byte = self.first_byte.map(|span| now + span);
        let progress = self.answer.or(self.progress).map(|span| now + span);
        Patience { first_byte, progress, begun: false }
    }
}

impl Patience {
    /// Records that bytes arrived now; `begun`: some belong to the response, not only to the
    /// protocol.
    pub(super) fn process(&mut self, limits: &ResponseLimits, now: Nanos, begun: bool) {
        self.begun |= begun;
        let awaited = limits.answer.filter(|_| !self.begun);
        self.progress = awaited.or(limits.progress).map(|span| now + span);
        if begun {
            self.first_byte = None;
        }
    }

    /// Returns the limit that is reached first, and its name at that time.
    pub(super) fn next(&self) -> Option<(Nanos, FailureClass)> {
        let first = self.first_byte.map(|at| (at, FailureClass::FirstByteTimeout));
        let still = self.progress.map(|at| (at, FailureClass::ProgressTimeout));
        first.into_iter().chain(still).min_by_key(|(at, _)| *at)
    }
}
