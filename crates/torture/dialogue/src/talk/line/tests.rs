//! Conversations with servers that send without end, in virtual time.

use super::*;
use crate::governor::{Bounds, Stop};
use crate::talk::{All, Conversations, Director, Wake, play};
use conduit::{Peer, Ready};
use sample::SocketFacts;

/// A server that accepts everything and sends without end. Each reading of the clock takes a
/// millisecond, and readiness is reported once.
#[derive(Default)]
struct FloodingServer {
    now: Nanos,
    untold: Vec<Slot>,
    reads: u32,
}

impl Io for FloodingServer {
    fn now(&mut self) -> Nanos {
        self.now += Nanos::from_millis(1);
        self.now
    }
    fn open(&mut self, slot: Slot, _: &Peer, _: &OpenOptions) -> Result<(), IoError> {
        self.untold.push(slot);
        Ok(())
    }
    fn write(&mut self, _: Slot, bytes: &[u8]) -> Result<usize, IoError> {
        Ok(bytes.len())
    }
    fn read(&mut self, _: Slot, buffer: &mut [u8]) -> Result<usize, IoError> {
        self.reads += 1;
        assert!(self.reads < 5_000, "nobody looks at the time");
        buffer.fill(b'x');
        Ok(buffer.len())
    }
    fn close(&mut self, _: Slot, _: Close) {}
    fn shutdown_write(&mut self, _: Slot) {}
    fn facts(&mut self, _: Slot) -> Option<SocketFacts> {
        None
    }
    fn wait(&mut self, _: Nanos, ready: &mut Vec<Ready>) {
        let as_ready = |slot| Ready { slot, readable: true, writable: false, ended: false };
        *ready = self.untold.drain(..).map(as_ready).collect();
    }
}

/// Returns how two conversations with it end; the user's stop request comes with this wait.
fn ends(governor: &mut Governor, wish: Option<u32>) -> Vec<TalkEnd> {
    let request = Move::Send(b"GET / HTTP/1.1\r\n\r\n".to_vec());
    let script = TalkScript { deadline: Nanos::from_millis(500), ..TalkScript::new(vec![request]) };
    let mut all = All::new(vec![script.clone(), script]);
    played(&mut all, governor, wish);
    all.into_talks().iter().map(|talk| talk.end).collect()
}

/// Plays until it is over, or the stop request comes at this wait.
fn played(director: &mut dyn Director, governor: &mut Governor, wish: Option<u32>) {
    let (mut io, mut waits) = (FloodingServer::default(), 0);
    let mut stage = Conversations::new(None, governor);
    play(&mut io, &mut stage, director, &mut |io, until, governor| {
        waits += 1;
        if wish == Some(waits) {
            governor.stop(Stop::Interrupted);
        }
        let mut ready = Vec::new();
        io.wait(until, &mut ready);
        ready
    });
}

/// Watches one conversation.
struct Watching(Option<TalkScript>, Option<TalkEnd>);

impl Director for Watching {
    fn direct(
        &mut self,
        _: Nanos,
        stage: &mut Conversations<'_>,
        over: Vec<(usize, Talk)>,
    ) -> Wake {
        if let Some(script) = self.0.take() {
            let place = stage.add(script);
            stage.watch(place);
        }
        self.on_abandoned(over);
        Wake::WhenOver
    }

    fn on_abandoned(&mut self, over: Vec<(usize, Talk)>) {
        self.1 = over.first().map(|(_, talk)| talk.end).or(self.1);
    }
}

/// Bytes after a response are reported once, however many there are.
#[test]
fn a_stop_request_works_while_a_watched_server_floods() {
    let request = Move::Send(b"GET / HTTP/1.1\r\n\r\n".to_vec());
    let script = TalkScript {
        deadline: Nanos::from_millis(500),
        hold: true,
        ..TalkScript::new(vec![request])
    };
    let mut watching = Watching(Some(script), None);
    played(&mut watching, &mut Governor::unbounded(), Some(3));
    assert_eq!(watching.1, Some(TalkEnd::Ours));
}

#[test]
fn a_flooding_server_is_left_in_time() {
    assert_eq!(ends(&mut Governor::unbounded(), None), [TalkEnd::Silent; 2]);
}

#[test]
fn a_stop_request_works_while_a_server_floods() {
    assert_eq!(ends(&mut Governor::unbounded(), Some(3)), [TalkEnd::Ours; 2]);
}

#[test]
fn a_case_ends_in_time_while_a_server_floods() {
    let bounds = Bounds {
        connections_max: 100,
        opens_max: 100,
        requests_max: None,
        bytes_max: None,
        message_max: 1 << 20,
        case_max: Nanos::from_millis(100),
        run_max: None,
        lost_max: None,
    };
    let mut governor = Governor::new(bounds, Vec::new(), true);
    governor.begin_case();
    assert_eq!(ends(&mut governor, None), [TalkEnd::Bounded; 2]);
}

#[test]
fn replies_to_a_server_that_does_not_read_are_limited() {
    use crate::http2::{OCTETS, PING, SETTINGS, write};
    let ping = write::frame(PING, 0, 0, &OCTETS);
    let flood = [write::frame(SETTINGS, 0, 0, &[]), ping.repeat(130_000)].concat();
    assert!(flood.len() > 2 * OWED_MAX);
    // nothing is sent yet; the longest step is prepared, but unsent
    for (step, plain) in [(0, 0), (1, TEXT_MAX)] {
        let script = TalkScript { protocol: Protocol::Http2, ..TalkScript::new(Vec::new()) };
        let mut talk = Conversation::new(script, Nanos::ZERO);
        (talk.step, talk.plain) = (step, vec![0; plain]);
        flood.chunks(READ_SIZE).for_each(|piece| talk.understand(piece));
        let kept = talk.replies.frames.as_mut().unwrap().take_replies().len();
        let owed = talk.plain.len() - plain + kept;
        assert!((OWED_MAX / 2..=OWED_MAX).contains(&owed), "step {step}: {owed} bytes");
    }
}

/// A server that responds to each write with these bytes at once.
struct PromptServer {
    now: Nanos,
    says: &'static [u8],
    unread: Vec<u8>,
}

impl Io for PromptServer {
    fn now(&mut self) -> Nanos {
        self.now
    }
    fn open(&mut self, _: Slot, _: &Peer, _: &OpenOptions) -> Result<(), IoError> {
        Ok(())
    }
    fn write(&mut self, _: Slot, bytes: &[u8]) -> Result<usize, IoError> {
        if !bytes.is_empty() {
            self.unread.extend_from_slice(self.says);
        }
        Ok(bytes.len())
    }
    fn read(&mut self, _: Slot, buffer: &mut [u8]) -> Result<usize, IoError> {
        let count = self.unread.len().min(buffer.len());
        buffer[..count].copy_from_slice(&self.unread[..count]);
        self.unread.drain(..count);
        if count == 0 { Err(IoError::WouldBlock) } else { Ok(count) }
    }
    fn close(&mut self, _: Slot, _: Close) {}
    fn shutdown_write(&mut self, _: Slot) {}
    fn facts(&mut self, _: Slot) -> Option<SocketFacts> {
        None
    }
    fn wait(&mut self, until: Nanos, ready: &mut Vec<Ready>) {
        if self.unread.is_empty() {
            self.now = self.now.max(until);
            return;
        }
        ready.push(Ready { slot: 0, readable: true, writable: false, ended: false });
    }
}

/// Returns how a conversation with these steps ends if it is left after all of them.
fn ends_with(sent: &'static [u8], steps: Vec<Move>) -> (TalkEnd, Nanos) {
    script_ends_with(sent, TalkScript::new(steps))
}

fn script_ends_with(sent: &'static [u8], script: TalkScript) -> (TalkEnd, Nanos) {
    let script = TalkScript { deadline: Nanos::SECOND, ..script };
    let mut all = All::new(vec![script]);
    let mut io = PromptServer { now: Nanos::ZERO, says: sent, unread: Vec::new() };
    let mut governor = Governor::unbounded();
    let mut stage = Conversations::new(None, &mut governor);
    play(&mut io, &mut stage, &mut all, &mut |io, until, _| {
        let mut ready = Vec::new();
        io.wait(until, &mut ready);
        ready
    });
    all.into_talks().first().map(|talk| (talk.end, talk.over)).unwrap()
}

#[test]
fn a_step_accepts_an_earlier_response() {
    let request = || Move::Send(b"GET / HTTP/1.1\r\n\r\n".to_vec());
    let response = || Move::Await(Awaited::Response);
    let pause = || Move::Pause(Nanos::from_millis(100));
    let sent = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    let in_pause = ends_with(sent, vec![request(), pause(), response(), Move::Close]);
    assert_eq!(in_pause, (TalkEnd::Ours, Nanos::from_millis(100)));
    // each response is consumed once
    let steps = vec![request(), pause(), request(), response(), response(), Move::Close];
    assert_eq!(ends_with(sent, steps), (TalkEnd::Ours, Nanos::from_millis(100)));
    let one_too_many = vec![request(), pause(), response(), response(), Move::Close];
    assert_eq!(ends_with(sent, one_too_many), (TalkEnd::Silent, Nanos::SECOND));
}

#[test]
fn a_step_accepts_an_earlier_head() {
    let head = Move::Send(b"POST / HTTP/1.1\r\nContent-Length: 1\r\n\r\n".to_vec());
    let interim = || Move::Await(Awaited::Interim);
    let pause = Move::Pause(Nanos::from_millis(100));
    let refused = b"HTTP/1.1 417 No\r\nContent-Length: 0\r\n\r\n";
    for sent in [b"HTTP/1.1 100 Continue\r\n\r\n", &refused[..]] {
        let steps = vec![head.clone(), pause.clone(), interim(), Move::Close];
        assert_eq!(ends_with(sent, steps), (TalkEnd::Ours, Nanos::from_millis(100)));
    }
    // a final response instead of 100 is still the response
    let response = Move::Await(Awaited::Response);
    let steps = vec![head.clone(), interim(), response.clone(), Move::Close];
    assert_eq!(ends_with(refused, steps), (TalkEnd::Ours, Nanos::ZERO));
    // and so is its head
    let steps = vec![head, response, interim(), Move::Close];
    assert_eq!(ends_with(refused, steps), (TalkEnd::Silent, Nanos::SECOND));
}

#[test]
fn an_interim_response_is_consumed_with_its_response() {
    let hints = b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    let request = || Move::Send(b"GET / HTTP/1.1\r\n\r\n".to_vec());
    let awaits = |what| Move::Await(what);
    let steps = |requests: usize| {
        let mut steps = vec![request(); requests];
        steps.extend([awaits(Awaited::Response), awaits(Awaited::Interim), Move::Close]);
        steps
    };
    assert_eq!(ends_with(hints, steps(1)), (TalkEnd::Silent, Nanos::SECOND));
    // that of the next response does not count
    assert_eq!(ends_with(hints, steps(2)), (TalkEnd::Ours, Nanos::ZERO));
    let before = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n";
    assert_eq!(ends_with(before, steps(1)), (TalkEnd::Ours, Nanos::ZERO));
}

/// A stream is reset during the pause: the step waits for data that arrives after it. Two
/// simultaneous resets satisfy two steps.
#[test]
fn frame_steps_ignore_replies_before_the_last_action() {
    // SETTINGS, as at the start of every server, and RST_STREAM
    let reset = b"\0\0\0\x04\0\0\0\0\0\0\0\x04\x03\0\0\0\0\x01\0\0\0\x01";
    let resets = [&reset[..], &reset[..]].concat().leak();
    let request = || Move::Send(b"x".to_vec());
    let pause = Move::Pause(Nanos::from_millis(100));
    let awaits = || Move::Await(Awaited::Response);
    let framed = |sent: &'static [u8], steps: Vec<Move>| {
        let script = TalkScript { protocol: Protocol::Http2Raw, ..TalkScript::new(steps) };
        script_ends_with(sent, script)
    };
    let in_pause = vec![request(), pause, awaits(), Move::Close];
    assert_eq!(framed(reset, in_pause), (TalkEnd::Silent, Nanos::SECOND));
    let one = vec![request(), awaits(), Move::Close];
    assert_eq!(framed(reset, one), (TalkEnd::Ours, Nanos::ZERO));
    let two = vec![request(), awaits(), awaits(), Move::Close];
    assert_eq!(framed(reset, two.clone()), (TalkEnd::Silent, Nanos::SECOND));
    assert_eq!(framed(resets, two), (TalkEnd::Ours, Nanos::ZERO));
}
