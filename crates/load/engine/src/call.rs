//! An arrival in progress.

use crate::intake::Intake;
use plan::Timeouts;
use protocol::http1::response::{Asked, ResponseFacts};
use sample::{FailureClass, Outcome, Sample};
use units::Nanos;
use workload::Template;

/// Placeholder for the user of a call without one, as in a plain open load.
pub(crate) const NO_USER: u32 = u32::MAX;

/// A call from its due instant to its outcome. Instants not reached yet are zero.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) index: u64,
    pub(crate) target: u32,
    pub(crate) user: u32,
    pub(crate) asked: Asked,
    /// Number of connections that the call has been put on; limits how often a call stranded by a
    /// close is moved.
    pub(crate) tries: u16,
    /// Redirects followed; at most 100 (`FOLLOW_MAX` of plans).
    pub(crate) redirects: u8,
    /// Number of times the call was resent to log in.
    pub(crate) logins: u8,
    /// Outstanding responses, if a script sends several requests as one call.
    pub(crate) responses_due: u16,
    /// The server answered 425 (Too Early): the call may be resent only after a handshake (RFC 8470
    /// section 5.2).
    pub(crate) late: bool,
    /// A request that replaces the target's: from a redirect or a guide.
    pub(crate) request: Option<Box<Template>>,
    /// The collected part of the response, if it is needed.
    pub(crate) intake: Option<Box<Intake>>,
    pub(crate) intended: Nanos,
    pub(crate) admitted: Nanos,
    pub(crate) issued: Nanos,
    pub(crate) sent: Nanos,
    pub(crate) written: Nanos,
    pub(crate) first_byte: Nanos,
    pub(crate) bytes_sent: u64,
    pub(crate) bytes_received: u64,
    pub(crate) head_bytes: u32,
    pub(crate) trailer_bytes: u32,
    pub(crate) body_bytes: u64,
    pub(crate) decoded_bytes: u64,
}

/// The limit was measured: a larger struct is moved by a call of memcpy for each response.
const _: () = assert!(size_of::<Call>() <= 128);

impl Call {
    pub(crate) fn new(index: u64, target: u32, user: u32, intended: Nanos, asked: Asked) -> Call {
        Call {
            index,
            target,
            user,
            asked,
            tries: 0,
            redirects: 0,
            logins: 0,
            responses_due: 1,
            late: false,
            request: None,
            intake: None,
            intended,
            admitted: Nanos::ZERO,
            issued: Nanos::ZERO,
            sent: Nanos::ZERO,
            written: Nanos::ZERO,
            first_byte: Nanos::ZERO,
            bytes_sent: 0,
            bytes_received: 0,
            head_bytes: 0,
            trailer_bytes: 0,
            body_bytes: 0,
            decoded_bytes: 0,
        }
    }

    /// Returns the lane of a call whose request is kept open.
    pub(crate) fn open_lane(&self) -> Option<u32> {
        let request = self.request.as_ref()?;
        request.http2.as_ref().filter(|http2| http2.is_open()).map(|_| request.lane)
    }

    /// Returns the time limit from the due instant; replaces the plan's.
    pub(crate) fn time_limit(&self) -> Option<Nanos> {
        let request = self.request.as_ref()?;
        request.timeout.or_else(|| request.socket.as_ref()?.timeout)
    }

    /// Returns the deadline of the whole call.
    pub(crate) fn deadline(&self, limits: &Timeouts) -> Nanos {
        self.intended + self.time_limit().unwrap_or(limits.call)
    }

    /// Keeps more of a request that is kept open until a connection can send it. Returns false if
    /// too many bytes wait.
    pub(crate) fn keep_more(&mut self, (bytes, ends): (&[u8], bool)) -> bool {
        let request = self.request.as_mut().and_then(|request| request.http2.as_mut());
        request.is_none_or(|http2| http2.keep_more(bytes, ends))
    }

    /// Returns the kept bytes of a request that is kept open, once, and whether it ends with them.
    pub(crate) fn take_more(&mut self) -> Option<(Vec<u8>, bool)> {
        self.request.as_mut()?.http2.as_mut()?.take_more()
    }

    /// Returns whether it waits for the next message of a WebSocket.
    pub(crate) fn listens(&self) -> bool {
        let socket = self.request.as_ref().and_then(|request| request.socket.as_ref());
        socket.is_some_and(|call| matches!(call.action, workload::SocketAction::Listen))
    }

    pub(crate) fn is_issued(&self) -> bool {
        !self.issued.is_zero()
    }

    /// Adds the bytes of one response.
    #[inline]
    pub(crate) fn add(&mut self, facts: &ResponseFacts, decoded: u64) {
        self.bytes_received += facts.head_bytes + facts.body_bytes + facts.framing_bytes;
        // the reader limits each head; a total above 4 GiB is reported as 4 GiB
        let sum = |a: u32, b: u64| (u64::from(a) + b).min(u64::from(u32::MAX)) as u32;
        self.head_bytes = sum(self.head_bytes, facts.head_bytes);
        self.trailer_bytes = sum(self.trailer_bytes, facts.trailer_bytes);
        self.body_bytes += facts.body_bytes;
        self.decoded_bytes += decoded;
    }

    #[inline]
    pub(crate) fn sample(&self, done: Nanos, end: &End) -> Sample {
        Sample {
            index: self.index,
            target: self.target,
            user: None,
            intended: self.intended,
            issued: self.issued,
            admitted: self.admitted,
            sent: self.sent,
            written: self.written,
            first_byte: self.first_byte,
            done,
            connect: None,
            tls: None,
            status: end.status,
            class: end.class,
            persistent: end.persistent,
            bytes_sent: self.bytes_sent,
            bytes_received: self.bytes_received,
            head_bytes: u64::from(self.head_bytes),
            trailer_bytes: u64::from(self.trailer_bytes),
            body_bytes: self.body_bytes,
            decoded_bytes: self.decoded_bytes,
            redirects: self.redirects.into(),
        }
    }
}

/// End of a call, before it becomes a sample.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End {
    pub(crate) outcome: Outcome,
    pub(crate) status: u16,
    pub(crate) class: Option<FailureClass>,
    pub(crate) persistent: bool,
}

impl End {
    /// Returns the end of a call with a complete response; `class`: failure found in the response.
    #[inline]
    pub(crate) fn answered(facts: &ResponseFacts, class: Option<FailureClass>) -> End {
        let outcome = if class.is_none() { Outcome::Succeeded } else { Outcome::Failed };
        End { outcome, status: facts.status, class, persistent: facts.persistent }
    }

    pub(crate) fn failed(class: FailureClass) -> End {
        End::without_response(Outcome::Failed, Some(class))
    }

    pub(crate) fn timed_out(class: FailureClass) -> End {
        End::without_response(Outcome::TimedOut, Some(class))
    }

    pub(crate) fn abandoned() -> End {
        End::without_response(Outcome::Abandoned, None)
    }

    fn without_response(outcome: Outcome, class: Option<FailureClass>) -> End {
        End { outcome, status: 0, class, persistent: false }
    }
}
