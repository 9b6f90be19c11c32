//! HTTP/3: streams of one QUIC connection, whose responses come in any order and do not block one
//! another.

use super::{Event, Fault, Processed, Request};
use conduit::streams::{PieceKind, put_code};
use http2::Late;
use protocol::http1::response::{Framing, ResponseFacts};
use protocol::http1::timing::{Malformed, Timing, timings};
use protocol::http3::{GoneStream, Part, Session, SessionSettings, StreamFacts};
use sample::{FailureClass, Http3Facts};

#[derive(Debug)]
pub(crate) struct Http3 {
    settings: SessionSettings,
    session: Session,
    /// Number of input bytes that the session has consumed, but whose events have not all been
    /// returned.
    taken: Option<usize>,
    /// The response of the last event, if it continues.
    under_way: Option<usize>,
    /// Reason why our side broke the connection.
    violation: Option<String>,
}

impl Http3 {
    pub(super) fn new(settings: SessionSettings) -> Http3 {
        let session = Session::new(&settings);
        Http3 { settings, session, taken: None, under_way: None, violation: None }
    }

    pub(super) fn start(&mut self, out: &mut Vec<u8>) {
        *self = Http3::new(self.settings);
        self.session.start(out);
    }

    /// Returns `depth` while the session is open: the QUIC layer enforces the peer's limit. A call
    /// waits on its connection for its stream, because the limit grows shortly after each response.
    #[inline]
    pub(super) fn capacity(&self, depth: u32) -> u32 {
        if self.session.is_open() { depth } else { 0 }
    }

    pub(super) fn send_request(&mut self, request: &Request<'_>, out: &mut Vec<u8>) {
        if let Some(coded) = &request.template.http3 {
            self.session.send_request(coded, request.cookie, out);
        }
    }

    pub(crate) fn submit_last(
        &mut self,
        request: &protocol::http3::Coded,
        cookie: Option<&str>,
        out: &mut Vec<u8>,
    ) {
        self.session.send_request(request, cookie, out);
    }

    pub(super) fn process(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Processed, Fault> {
        let before = out.len();
        let taken = match self.taken {
            Some(taken) => taken,
            None => self.feed(input, out)?,
        };
        if let Some(gone) = self.session.take_gone() {
            self.taken = Some(taken);
            return Ok(Processed { consumed: 0, event: event_of(gone) });
        }
        if out.len() > before && self.session.has_part() {
            // the reply is a separate event, before the response that arrived with it
            self.taken = Some(taken);
            return Ok(Processed { consumed: 0, event: Event::Connection });
        }
        self.taken = None;
        let event = match self.session.take_part() {
            Some(Part { place, body, done }) => {
                self.under_way = (!done).then_some(place);
                Event::Response { call: place, body, done }
            }
            None => Event::Connection,
        };
        Ok(Processed { consumed: taken, event })
    }

    fn feed(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<usize, Fault> {
        match self.session.feed(input, out) {
            Ok(fed) => Ok(fed.consumed),
            Err(violation) => {
                put_code(out, PieceKind::Close, 0, Some(violation.code));
                self.violation = Some(violation.to_string());
                Err(Fault::Broken { class: FailureClass::Protocol })
            }
        }
    }

    /// Handles the end of the connection, which completes no stream: each stream ends by its own
    /// frame.
    pub(super) fn receive_end(&mut self) -> Result<(), FailureClass> {
        let begun = self.session.partial(0).is_some();
        Err(if begun { FailureClass::Truncated } else { FailureClass::ClosedEarly })
    }

    pub(super) fn withdraw(&mut self, call: usize, out: &mut Vec<u8>) -> bool {
        self.session.withdraw(call, out);
        true
    }

    #[inline]
    pub(super) fn facts(&self) -> ResponseFacts {
        // once the peer goes away, the connection ends with its last response
        let over = self.session.is_going_away() && self.session.outstanding() == 0;
        ResponseFacts { persistent: !over, ..converted(self.session.facts()) }
    }

    pub(super) fn head(&self) -> &[u8] {
        match self.under_way {
            Some(place) => self.session.head_of(place),
            None => self.session.head(),
        }
    }

    pub(super) fn head_of(&self, call: usize) -> &[u8] {
        self.session.head_of(call)
    }

    pub(super) fn trailers(&self) -> &[u8] {
        self.session.trailers()
    }

    pub(super) fn timings(&self) -> impl Iterator<Item = Result<Timing<'_>, Malformed>> {
        timings(self.session.timings())
    }

    pub(super) fn partial(&self, call: usize) -> Option<ResponseFacts> {
        self.session.partial(call).map(converted)
    }

    /// Returns the next call that waited for its stream and now has it.
    pub(super) fn take_opened(&mut self) -> Option<usize> {
        self.session.take_opened()
    }

    /// Returns the next call of whose request a further part was sent. Its bytes were counted at
    /// submission.
    pub(super) fn take_late(&mut self) -> Option<Late> {
        let place = self.session.take_unblocked()?;
        Some(Late { place, bytes: 0, begins: false })
    }

    /// Returns whether the call is queued because of the peer's limit on concurrent streams.
    pub(super) fn waits(&self, call: usize) -> bool {
        self.session.waits(call)
    }

    /// Returns whether nothing is outstanding and no further request is possible.
    pub(super) fn is_over(&self) -> bool {
        self.session.outstanding() == 0 && self.session.is_going_away()
    }

    pub(super) fn take_facts(&mut self) -> Http3Facts {
        let mut facts = self.session.take_facts();
        if let Some(why) = self.violation.take() {
            facts.add_violation(&why, 1);
        }
        facts
    }
}

fn event_of(gone: GoneStream) -> Event {
    let call = gone.place;
    match gone {
        GoneStream { refused: true, .. } => Event::Refused { call },
        GoneStream { by_peer: true, .. } => {
            Event::Failed { call, class: FailureClass::StreamReset }
        }
        _ => Event::Failed { call, class: FailureClass::BadFraming },
    }
}

fn converted(facts: StreamFacts) -> ResponseFacts {
    ResponseFacts {
        status: facts.status,
        minor_version: 0,
        persistent: true,
        framing: Framing::Length,
        head_bytes: facts.head_bytes,
        body_bytes: facts.body_bytes,
        framing_bytes: facts.framing_bytes,
        trailer_bytes: facts.trailer_bytes,
        interim: facts.interim,
        timed: facts.timed,
        sets_cookies: true,
    }
}
