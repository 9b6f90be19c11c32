//! HTTP/2: streams of one connection, whose responses come in any order.

use super::{Event, Fault, KeptAlive, Processed, Request};
use http2::{Gone, Late, Part, ReleasedMessage, Session, SessionSettings, StreamFacts};
use protocol::http1::response::{Framing, ResponseFacts};
use protocol::http1::timing::{Malformed, Timing, timings};
use sample::{FailureClass, Http2Facts};
use units::Nanos;

/// Number of pings that every gRPC server accepts without data in between: by default the third is
/// one too many (`too_many_pings`), and gRPC's own clients send two.
const PINGS_WITHOUT_DATA: u32 = 2;
/// Interval of further pings: servers accept one in 5 minutes by default. The rest is for delays on
/// the path.
const PING_INTERVAL_WITHOUT_DATA: Nanos = Nanos::from_secs(310);
/// Time in which a ping must be acknowledged, as in gRPC's clients.
const PING_TIMEOUT: Nanos = Nanos::from_secs(20);

/// Keepalive pings since the peer's last HEADERS or DATA.
#[derive(Clone, Copy, Debug, Default)]
struct Pings {
    /// Number of HEADERS and DATA frames before them.
    answers: u64,
    count: u32,
    last: Nanos,
}

#[derive(Debug)]
pub(crate) struct Http2 {
    settings: SessionSettings,
    session: Session,
    /// Number of input bytes that the session has consumed, but whose events have not all been
    /// returned.
    taken: Option<usize>,
    /// The response of the last event, if it continues.
    under_way: Option<usize>,
    /// Reason why our side broke the connection.
    violation: Option<String>,
    pings: Pings,
}

impl Http2 {
    pub(super) fn new(settings: SessionSettings) -> Http2 {
        let session = Session::new(&settings);
        let pings = Pings::default();
        Http2 { settings, session, taken: None, under_way: None, violation: None, pings }
    }

    pub(super) fn start(&mut self, out: &mut Vec<u8>) {
        *self = Http2::new(self.settings);
        self.session.drain(out);
    }

    #[inline]
    pub(super) fn capacity(&self, depth: u32) -> u32 {
        depth.min(self.session.capacity())
    }

    pub(super) fn send_request(&mut self, request: &Request<'_>, out: &mut Vec<u8>) {
        if let Some(translated) = &request.template.http2 {
            self.session.send_request(translated, request.cookie, out);
        }
    }

    /// Sends the next message of a paced request.
    pub(super) fn release(&mut self, call: usize, out: &mut Vec<u8>) -> Option<ReleasedMessage> {
        self.session.release(call, out)
    }

    /// Adds to the body of a request that is kept open, and ends it if so requested.
    pub(super) fn extend(
        &mut self,
        call: usize,
        (bytes, ends): (&[u8], bool),
        out: &mut Vec<u8>,
    ) -> bool {
        self.session.extend(call, bytes, ends, out)
    }

    /// Pings a connection that received no bytes for some time, no more often than servers accept.
    pub(super) fn keep_alive(&mut self, now: Nanos, out: &mut Vec<u8>) -> KeptAlive {
        if self.session.unanswered_pings() > 0 {
            let until = self.pings.last + PING_TIMEOUT;
            return match now < until {
                true => KeptAlive::Later { again: until },
                false => KeptAlive::Unanswered,
            };
        }
        let answers = self.session.answers();
        if answers != self.pings.answers {
            self.pings = Pings { answers, count: 0, last: self.pings.last };
        }
        let allowed = self.pings.last + PING_INTERVAL_WITHOUT_DATA;
        if self.pings.count >= PINGS_WITHOUT_DATA && now < allowed {
            return KeptAlive::Later { again: allowed };
        }
        self.session.ping(out);
        self.pings = Pings { count: self.pings.count + 1, last: now, ..self.pings };
        KeptAlive::Pinged { again: now + PING_TIMEOUT }
    }

    pub(crate) fn submit_last(
        &mut self,
        request: &http2::Request,
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
        let fed = self.session.feed(input);
        self.session.drain(out);
        let why = match fed {
            Ok(fed) => match self.session.violation() {
                None => return Ok(fed.consumed),
                Some(why) => why,
            },
            Err(why) => why,
        };
        self.violation = Some(why);
        Err(Fault::Broken { class: FailureClass::Protocol })
    }

    /// Handles the end of the connection, which completes no stream: each stream ends by its own
    /// frame.
    pub(super) fn receive_end(&mut self) -> Result<(), FailureClass> {
        let begun = self.session.partial(0).is_some();
        Err(if begun { FailureClass::Truncated } else { FailureClass::ClosedEarly })
    }

    pub(super) fn withdraw(&mut self, call: usize, out: &mut Vec<u8>) -> bool {
        self.session.withdraw(call);
        self.session.drain(out);
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

    /// Returns the next call of whose request a further part was sent.
    pub(super) fn take_late(&mut self) -> Option<Late> {
        self.session.take_late()
    }

    pub(super) fn stream_id(&self) -> i32 {
        self.session.done_id()
    }

    /// Returns whether the call is queued because of the peer's limit on concurrent streams.
    pub(super) fn waits(&self, call: usize) -> bool {
        self.session.waits(call)
    }

    /// Returns whether nothing is outstanding and no further request is possible.
    pub(super) fn is_over(&self) -> bool {
        self.session.outstanding() == 0 && self.session.is_going_away()
    }

    pub(super) fn take_facts(&mut self) -> Http2Facts {
        let mut facts = self.session.take_facts();
        if let Some(why) = self.violation.take() {
            facts.add_violation(&why, 1);
        }
        facts
    }
}

fn event_of(gone: Gone) -> Event {
    let call = gone.place;
    match gone {
        Gone { refused: true, .. } => Event::Refused { call },
        Gone { by_peer: true, .. } => Event::Failed { call, class: FailureClass::StreamReset },
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
