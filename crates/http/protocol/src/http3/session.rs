//! One connection's session.

use crate::http3::code::{NO_ERROR, REQUEST_CANCELLED, REQUEST_REJECTED, STREAM_CREATION_ERROR};
use crate::http3::control::{CONTROL, Control};
use crate::http3::frame::{self, DATA, SETTINGS};
use crate::http3::qpack::SectionDecoder;
use crate::http3::request::Coded;
use crate::http3::stream::{Stream, StreamFacts, StreamFault, Stretch};
use crate::http3::{SessionSettings, Violation, code, varint};
use conduit::streams::{self, Cutter, Head, PieceKind};
use sample::Http3Facts;
use std::collections::VecDeque;
use std::ops::Range;

/// Number of our control stream: the first that a client opens in one direction.
const OWN_CONTROL: u64 = 2;

/// Requests' streams are numbered by fours (RFC 9000 section 2.1).
const STEP: u64 = 4;

/// The last number of a request's stream.
const ID_LAST: u64 = varint::MAX - 3;

/// SETTINGS_MAX_FIELD_SECTION_SIZE (RFC 9114 section 7.2.4.1).
const MAX_FIELD_SECTION_SIZE: u64 = 0x6;

/// A client session. A stream is identified by its index among the outstanding ones, in the order
/// of their requests; a finished stream is removed and later ones move up.
#[derive(Debug)]
pub struct Session {
    settings: SessionSettings,
    cutter: Cutter,
    /// Code of a received piece.
    code: Vec<u8>,
    streams: VecDeque<Stream>,
    /// Last completed response, or the received part of an abandoned one.
    done: Stream,
    /// Finished streams whose memory can be reused.
    spare: Vec<Stream>,
    next_id: u64,
    control: Control,
    decoder: SectionDecoder,
    part: Option<(u64, Range<usize>, bool)>,
    gone: VecDeque<(u64, u64, Parting)>,
    opened: Vec<u64>,
    /// Number of streams that the peer initially permits, once it is known.
    permitted: u64,
    /// Streams for which the peer's credit released more data.
    went: Vec<u64>,
    /// Tunnels whose data the peer does not want.
    stopped: Vec<u64>,
    facts: Http3Facts,
}

/// Early end of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Parting {
    /// The peer did not process the request.
    Refused,
    ByPeer,
    ByUs,
}

/// Result of a call of [`Session::feed`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fed {
    /// Number of consumed input bytes: at most one frame.
    pub consumed: usize,
}

/// Piece of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Index of its stream before its removal.
    pub place: usize,
    /// Content within the input.
    pub body: Range<usize>,
    /// The response is whole; its stream has left.
    pub done: bool,
}

/// A stream that ended without a complete response, and was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GoneStream {
    pub place: usize,
    pub code: u64,
    /// The peer has not processed the request: it is safe to send it again (RFC 9114 sections 4.1.1
    /// and 5.2).
    pub refused: bool,
    /// True if the peer abandoned the stream; otherwise our side did, because of data from the
    /// peer.
    pub by_peer: bool,
}

/// Maximum number of streams whose memory is kept.
const SPARE_MAX: usize = 256;

impl Session {
    pub fn new(settings: &SessionSettings) -> Session {
        Session {
            settings: *settings,
            cutter: Cutter::default(),
            code: Vec::with_capacity(8),
            streams: VecDeque::new(),
            done: Stream::default(),
            spare: Vec::new(),
            next_id: 0,
            control: Control::default(),
            decoder: SectionDecoder::default(),
            part: None,
            gone: VecDeque::new(),
            opened: Vec::new(),
            permitted: u64::MAX,
            went: Vec::new(),
            stopped: Vec::new(),
            facts: Http3Facts::default(),
        }
    }

    /// Appends the output that precedes the first request: our control stream, with the settings.
    pub fn start(&self, out: &mut Vec<u8>) {
        let mut settings = Vec::new();
        varint::put(&mut settings, MAX_FIELD_SECTION_SIZE);
        varint::put(&mut settings, u64::from(self.settings.section_max));
        let mut bytes = vec![CONTROL as u8];
        frame::put_head(&mut bytes, SETTINGS, settings.len() as u64);
        bytes.extend_from_slice(&settings);
        streams::put_data(out, OWN_CONTROL, &bytes, false);
    }

    /// Returns whether further requests can be sent.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.control.limit().is_none() && self.next_id <= ID_LAST
    }

    /// Sends a request on a new stream, which becomes the last outstanding one. `cookie`: the value
    /// of an additional Cookie field.
    pub fn send_request(&mut self, request: &Coded, cookie: Option<&str>, out: &mut Vec<u8>) {
        self.open_stream(request, cookie, true, out);
    }

    /// Sends a request on a new stream and returns its id. `last`: nothing follows it.
    fn open_stream(
        &mut self,
        request: &Coded,
        cookie: Option<&str>,
        last: bool,
        out: &mut Vec<u8>,
    ) -> u64 {
        let id = self.next_id;
        self.next_id += STEP;
        // the head is written with its length at the end: it is rendered in place
        let start = out.len();
        out.reserve(streams::HEAD + request.room());
        out.extend_from_slice(&[0; streams::HEAD]);
        let (plain, coded) = request.put(cookie, out);
        let length = (out.len() - start - streams::HEAD) as u32;
        let head = Head { kind: PieceKind::Data, last, length, stream: id };
        out[start..start + streams::HEAD].copy_from_slice(&head.to_bytes());
        let mut stream = self.spare.pop().unwrap_or_default();
        stream.renew(id, request.headless);
        stream.is_beyond = self.streams.len() as u64 >= self.permitted;
        self.streams.push_back(stream);
        self.facts.streams += 1;
        self.facts.fields_sent += plain;
        self.facts.coded_sent += coded;
        self.facts.streams_peak = self.facts.streams_peak.max(self.streams.len() as u64);
        id
    }

    /// Opens a tunnel by an extended CONNECT (RFC 9220) and returns the id of its stream, which
    /// becomes the last outstanding one. [`Session::take_gone`] removes the stream once both
    /// sides have ended.
    pub fn open_tunnel(&mut self, request: &Coded, out: &mut Vec<u8>) -> u64 {
        let id = self.open_stream(request, None, false, out);
        if let Some(stream) = self.streams.back_mut() {
            stream.tunnel.is_asked = true;
        }
        id
    }

    /// Sends bytes of a tunnel, shorter than [`streams::PIECE_MAX`].
    pub fn push(&mut self, id: u64, bytes: &[u8], out: &mut Vec<u8>) {
        let mut frame = Vec::with_capacity(2 * varint::BYTES_MAX);
        frame::put_head(&mut frame, DATA, bytes.len() as u64);
        let length = (frame.len() + bytes.len()) as u32;
        let head = Head { kind: PieceKind::Data, last: false, length, stream: id };
        out.extend_from_slice(&head.to_bytes());
        out.extend_from_slice(&frame);
        out.extend_from_slice(bytes);
    }

    /// Ends our side of a tunnel.
    pub fn end_tunnel(&mut self, id: u64, out: &mut Vec<u8>) {
        let Some(place) = self.place(id) else { return };
        let tunnel = &mut self.streams[place].tunnel;
        if !std::mem::replace(&mut tunnel.ended, true) {
            let peer_ended = tunnel.peer_ended;
            streams::put_data(out, id, &[], true);
            if peer_ended {
                self.gone.push_back((id, NO_ERROR, Parting::ByPeer));
            }
        }
    }

    /// Returns whether the server accepts extended CONNECT; `None` before its SETTINGS.
    pub fn accepts_tunnels(&self) -> Option<bool> {
        self.control.accepts_tunnels()
    }

    /// Returns whether the server has ended its side of a tunnel.
    pub fn is_ended_by_peer(&self, id: u64) -> bool {
        self.place(id).is_some_and(|place| self.streams[place].tunnel.peer_ended)
    }

    /// Takes the id of an open tunnel whose data the server does not want.
    pub fn take_stopped(&mut self) -> Option<u64> {
        self.stopped.pop()
    }

    /// Returns the number of streams that the server permitted initially; `None` before the
    /// handshake is complete.
    pub fn streams_max(&self) -> Option<u64> {
        self.facts.streams_max
    }

    /// Processes input of at most one frame. Then [`Session::take_gone`] and [`Session::take_part`]
    /// return its meaning. `out`: output for the peer.
    ///
    /// # Errors
    /// Fails for a violation by the server; afterwards the connection cannot be used.
    pub fn feed(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Fed, Violation> {
        let broken = Violation::new(code::INTERNAL_ERROR, "a piece of no stream", "own contract");
        let head_bytes = self.cutter.open(input).map_err(|_| broken)?;
        let Some(head) = self.cutter.current() else { return Ok(Fed { consumed: head_bytes }) };
        let payload = self.cutter.payload(&input[head_bytes..]);
        let taken = match head.kind {
            PieceKind::Data => self.process(head.stream, payload, head_bytes, out)?,
            _ => {
                self.code.extend_from_slice(payload);
                payload.len()
            }
        };
        if self.cutter.pass(taken) {
            match head.kind {
                PieceKind::Data if head.last => self.end(head.stream, out)?,
                PieceKind::Data => {}
                _ => {
                    let code = streams::code(&self.code).unwrap_or(0);
                    self.code.clear();
                    self.signal(head, code, out)?;
                }
            }
        }
        Ok(Fed { consumed: head_bytes + taken })
    }

    /// Processes bytes of a stream; `before`: bytes of the input before them. Returns how many were
    /// used.
    fn process(
        &mut self,
        id: u64,
        payload: &[u8],
        before: usize,
        out: &mut Vec<u8>,
    ) -> Result<usize, Violation> {
        if payload.is_empty() {
            return Ok(0);
        }
        match id % STEP {
            0 => {}
            3 => {
                let taken = self.control.process(id, payload)?;
                self.drop_unprocessed_streams();
                return Ok(taken);
            }
            _ => {
                let what = "a bidirectional stream opened by the server";
                let section = "RFC 9114 section 6.1";
                return Err(Violation::new(STREAM_CREATION_ERROR, what, section));
            }
        }
        // data for a removed stream is ignored
        let Some(place) = self.place(id) else { return Ok(payload.len()) };
        let stream = &mut self.streams[place];
        match stream.process(payload, &mut self.decoder, &self.settings) {
            Ok(Stretch { consumed, content, fields }) => {
                if let Some((plain, coded)) = fields {
                    self.facts.fields_received += plain;
                    self.facts.coded_received += coded;
                }
                let body = content.start + before..content.end + before;
                self.part = Some((id, if content.is_empty() { 0..0 } else { body }, false));
                Ok(consumed)
            }
            Err(StreamFault::Connection(violation)) => Err(violation),
            Err(StreamFault::Stream(code)) => {
                self.give_up(id, code, Parting::ByUs, out);
                Ok(payload.len())
            }
        }
    }

    /// Handles the end of a stream by the server.
    fn end(&mut self, id: u64, out: &mut Vec<u8>) -> Result<(), Violation> {
        if !id.is_multiple_of(STEP) {
            return self.control.end(id);
        }
        let Some(place) = self.place(id) else { return Ok(()) };
        match self.streams[place].end() {
            Ok(()) => {
                let tunnel = &mut self.streams[place].tunnel;
                tunnel.peer_ended = true;
                let done = !tunnel.is_asked || tunnel.ended;
                let body =
                    self.part.take().filter(|(of, ..)| *of == id).map_or(0..0, |part| part.1);
                self.part = Some((id, body, done));
                Ok(())
            }
            Err(StreamFault::Connection(violation)) => Err(violation),
            Err(StreamFault::Stream(code)) => {
                self.give_up(id, code, Parting::ByUs, out);
                Ok(())
            }
        }
    }

    /// Removes a stream with its outcome.
    fn give_up(&mut self, id: u64, code: u64, parting: Parting, out: &mut Vec<u8>) {
        self.part = self.part.take().filter(|(of, ..)| *of != id);
        if parting == Parting::ByUs {
            streams::put_code(out, PieceKind::Stop, id, Some(code));
            streams::put_code(out, PieceKind::Reset, id, Some(code));
        }
        self.gone.push_back((id, code, parting));
    }

    /// Processes a piece without bytes.
    fn signal(&mut self, head: Head, code: u64, out: &mut Vec<u8>) -> Result<(), Violation> {
        let id = head.stream;
        match head.kind {
            PieceKind::Allowed => {
                let least = self.facts.streams_max.map_or(code, |before| before.min(code));
                self.facts.streams_max = Some(least);
                self.permitted = code;
                let most = usize::try_from(code).unwrap_or(usize::MAX);
                self.streams.iter_mut().skip(most).for_each(|stream| stream.is_beyond = true);
            }
            PieceKind::Opened => {
                self.facts.waited += 1;
                self.opened.push(id);
                if let Some(place) = self.place(id) {
                    self.streams[place].is_beyond = false;
                }
            }
            PieceKind::Went => self.went.push(id),
            PieceKind::Reset if !id.is_multiple_of(STEP) => return self.control.end(id),
            PieceKind::Reset => {
                if self.place(id).is_some() {
                    *self.facts.resets.entry(code).or_default() += 1;
                    let refused = code == REQUEST_REJECTED;
                    self.give_up(
                        id,
                        code,
                        if refused { Parting::Refused } else { Parting::ByPeer },
                        out,
                    );
                }
            }
            PieceKind::Stop if id == OWN_CONTROL => {
                let what = "the server stopped our control stream";
                let section = "RFC 9114 section 6.2.1";
                return Err(Violation::new(code::CLOSED_CRITICAL_STREAM, what, section));
            }
            PieceKind::Stop => {
                // the response may still arrive; a server that rejects the request resets the
                // stream too
                let Some(place) = self.place(id) else { return Ok(()) };
                if code != NO_ERROR {
                    *self.facts.resets.entry(code).or_default() += 1;
                }
                if self.streams[place].is_open_tunnel() {
                    self.stopped.push(id);
                }
            }
            PieceKind::Data
            | PieceKind::Close
            | PieceKind::Datagram
            | PieceKind::Initial
            | PieceKind::Sent
            | PieceKind::Packet
            | PieceKind::Limit
            | PieceKind::Port
            | PieceKind::Shake
            | PieceKind::Hello
            | PieceKind::Action
            | PieceKind::Frame => {}
        }
        Ok(())
    }

    /// Removes the streams that the server will not process, after GOAWAY.
    fn drop_unprocessed_streams(&mut self) {
        let Some(limit) = self.control.limit() else { return };
        let refused: Vec<u64> =
            self.streams.iter().map(|stream| stream.id).filter(|id| *id >= limit).collect();
        for id in refused {
            if !self.gone.iter().any(|(gone, ..)| *gone == id) {
                self.gone.push_back((id, REQUEST_REJECTED, Parting::Refused));
            }
        }
    }

    fn place(&self, id: u64) -> Option<usize> {
        place_in(&self.streams, id)
    }

    /// Takes a stream that ended without a complete response.
    pub fn take_gone(&mut self) -> Option<GoneStream> {
        while let Some((id, code, parting)) = self.gone.pop_front() {
            let Some(place) = self.place(id) else { continue };
            let Some(stream) = self.streams.remove(place) else { continue };
            self.replace_done(stream);
            let refused = parting == Parting::Refused;
            self.facts.refused += u64::from(refused);
            return Some(GoneStream { place, code, refused, by_peer: parting != Parting::ByUs });
        }
        None
    }

    /// Returns whether [`Session::take_part`] has a part.
    pub fn has_part(&self) -> bool {
        self.part.as_ref().is_some_and(|(id, ..)| self.place(*id).is_some())
    }

    /// Returns the piece of a response that the input was.
    pub fn take_part(&mut self) -> Option<Part> {
        let (id, body, done) = self.part.take()?;
        let place = self.place(id)?;
        if done && let Some(stream) = self.streams.remove(place) {
            self.replace_done(stream);
        }
        Some(Part { place, body, done })
    }

    fn replace_done(&mut self, stream: Stream) {
        let before = std::mem::replace(&mut self.done, stream);
        self.keep(before);
    }

    fn leave(&mut self, place: usize) -> Option<u64> {
        let stream = self.streams.remove(place)?;
        let id = stream.id;
        self.keep(stream);
        Some(id)
    }

    fn keep(&mut self, stream: Stream) {
        if self.spare.len() < SPARE_MAX {
            self.spare.push(stream);
        }
    }

    /// Returns the index of a request that waited for its stream and is being sent now.
    pub fn take_opened(&mut self) -> Option<usize> {
        std::iter::from_fn(|| self.opened.pop()).find_map(|id| place_in(&self.streams, id))
    }

    /// Returns the index of a request some of whose bytes waited for the peer's credit and are
    /// being sent now.
    pub fn take_unblocked(&mut self) -> Option<usize> {
        std::iter::from_fn(|| self.went.pop()).find_map(|id| place_in(&self.streams, id))
    }

    /// Abandons a request: its stream is removed, and the peer is notified.
    pub fn withdraw(&mut self, place: usize, out: &mut Vec<u8>) {
        if let Some(id) = self.leave(place) {
            streams::put_code(out, PieceKind::Reset, id, Some(REQUEST_CANCELLED));
            streams::put_code(out, PieceKind::Stop, id, Some(REQUEST_CANCELLED));
        }
    }

    /// Returns the facts of the last completed response, or of the received part of an abandoned
    /// one.
    #[inline]
    pub fn facts(&self) -> StreamFacts {
        self.done.facts
    }

    /// Returns the fields in the form of HTTP/1, if heads are kept.
    pub fn head(&self) -> &[u8] {
        &self.done.head
    }

    /// Returns the fields of its trailers, if heads are kept.
    pub fn trailers(&self) -> &[u8] {
        &self.done.trailers
    }

    /// Returns the values of its Server-Timing fields.
    pub fn timings(&self) -> &[u8] {
        &self.done.timings
    }

    /// Returns the fields of a response in progress, if heads are kept.
    pub fn head_of(&self, place: usize) -> &[u8] {
        self.streams.get(place).map_or(&[], |stream| &stream.head)
    }

    /// Returns the received part of an incomplete response; `None` before its first frame.
    pub fn partial(&self, place: usize) -> Option<StreamFacts> {
        self.streams.get(place).filter(|stream| stream.has_started()).map(|stream| stream.facts)
    }

    /// Returns whether the request is queued because of the peer's limit on streams. Only the
    /// initial limit is known here.
    pub fn waits(&self, place: usize) -> bool {
        let waits = |stream: &Stream| stream.is_beyond && !stream.has_started();
        self.streams.get(place).is_some_and(waits)
    }

    /// Returns the number of requests outstanding.
    pub fn outstanding(&self) -> usize {
        self.streams.len()
    }

    /// Returns whether the peer accepts no further requests.
    pub fn is_going_away(&self) -> bool {
        self.control.limit().is_some()
    }

    /// Returns the counts so far and resets them.
    pub fn take_facts(&mut self) -> Http3Facts {
        self.facts.goaways += self.control.take_goaways();
        std::mem::take(&mut self.facts)
    }
}

fn place_in(streams: &VecDeque<Stream>, id: u64) -> Option<usize> {
    streams.binary_search_by_key(&id, |stream| stream.id).ok()
}
