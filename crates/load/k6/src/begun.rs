//! Calls started by a script, until they are passed to the engine.

use crate::call::VuCall;
use std::collections::{BTreeMap, VecDeque};

/// Maximum number of bytes that a script may write to open requests without a pause.
const EXTENSION_BYTES_MAX: usize = 16 << 20;

/// Kinds of calls that may be passed on now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Passable {
    /// Calls that add to the number of calls in flight.
    pub(crate) calls: bool,
    /// Requests of `k6/http` among them, which the option `rps` holds back.
    pub(crate) requests: bool,
}

/// Started calls with their lanes.
#[derive(Debug, Default)]
pub(crate) struct CallQueue {
    /// Continuations of open streams and WebSockets, which nothing holds back.
    continuations: VecDeque<(u32, VuCall)>,
    calls: VecDeque<(u32, VuCall)>,
    requests: VecDeque<(u32, VuCall)>,
    /// Continuations of open requests that are not passed on yet.
    of_unbegun: BTreeMap<u32, Vec<VuCall>>,
    /// Number of bytes for open requests.
    extension_bytes: usize,
}

impl CallQueue {
    pub(crate) fn push(&mut self, lane: u32, call: VuCall) {
        if call.is_request() {
            return self.requests.push_back((lane, call));
        }
        if !call.is_continuation() {
            if matches!(&call, VuCall::Http(wire) if wire.keeps_open) {
                self.of_unbegun.insert(lane, Vec::new());
            }
            return self.calls.push_back((lane, call));
        }
        match self.of_unbegun.get_mut(&lane) {
            Some(list) => list.push(call),
            None => self.continuations.push_back((lane, call)),
        }
    }

    /// Adds to the body of an open request. Returns false if too many bytes wait.
    pub(crate) fn extend(&mut self, lane: u32, bytes: Vec<u8>, ends: bool) -> bool {
        let waiting = self.extension_bytes + bytes.len();
        if waiting > EXTENSION_BYTES_MAX {
            return false;
        }
        self.extension_bytes = waiting;
        self.push(lane, VuCall::Extend { bytes, ends });
        true
    }

    /// Removes and returns the next call that may be passed on.
    pub(crate) fn pop(&mut self, passable: Passable) -> Option<(u32, VuCall)> {
        let call = self.continuations.pop_front();
        let call = call.or_else(|| self.calls.pop_front_if(|_| passable.calls));
        let next = call.or_else(|| self.requests.pop_front_if(|_| passable.requests))?;
        match &next {
            (_, VuCall::Extend { bytes, .. }) => self.extension_bytes -= bytes.len(),
            (lane, VuCall::Http(wire)) if wire.keeps_open => {
                let list = self.of_unbegun.remove(lane).unwrap_or_default();
                self.continuations.extend(list.into_iter().map(|call| (*lane, call)));
            }
            _ => {}
        }
        Some(next)
    }

    /// Returns whether a request of `k6/http` waits.
    pub(crate) fn has_request(&self) -> bool {
        !self.requests.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::{SocketRequest, WireRequest};
    use std::sync::Arc;
    use url::Url;

    const ALL: Passable = Passable { calls: true, requests: true };
    const HELD: Passable = Passable { calls: true, requests: false };
    const NONE: Passable = Passable { calls: false, requests: false };

    fn wire(url: &str, keeps_open: bool) -> VuCall {
        VuCall::Http(Box::new(WireRequest {
            method: "POST".into(),
            url: Url::parse(url).unwrap().into(),
            headers: Arc::default(),
            body: Vec::new(),
            name: String::new(),
            expected: None,
            timeout: None,
            keeps_open,
        }))
    }

    fn lanes(queue: &mut CallQueue, passable: Passable) -> Vec<u32> {
        std::iter::from_fn(|| queue.pop(passable)).map(|(lane, _)| lane).collect()
    }

    #[test]
    fn messages_of_open_streams_and_websockets_pass_a_full_user() {
        let mut queue = CallQueue::default();
        queue.push(1, wire("http://h/", false));
        assert!(queue.extend(9, vec![1], false));
        queue.push(2, VuCall::Socket(1, Box::new(SocketRequest::Listen(None))));
        queue.push(9, VuCall::Cancel);
        assert_eq!(lanes(&mut queue, NONE), [9, 2, 9]);
        assert_eq!(lanes(&mut queue, ALL), [1]);
    }

    #[test]
    fn calls_without_a_rate_pass_a_held_request() {
        let mut queue = CallQueue::default();
        queue.push(1, wire("http://h/", false));
        queue.push(2, wire("grpc://h/s/m", false));
        assert_eq!(lanes(&mut queue, HELD), [2]);
        assert!(queue.has_request());
        assert_eq!(lanes(&mut queue, ALL), [1]);
        assert!(!queue.has_request());
    }

    #[test]
    fn messages_follow_the_start_of_their_stream() {
        let mut queue = CallQueue::default();
        queue.push(3, wire("grpc://h/s/m", true));
        assert!(queue.extend(3, vec![0; EXTENSION_BYTES_MAX], true));
        assert!(!queue.extend(3, vec![0], false), "the bytes that wait are bounded");
        assert!(lanes(&mut queue, NONE).is_empty());
        assert_eq!(lanes(&mut queue, ALL), [3, 3]);
        assert!(queue.extend(3, vec![0], false), "passed bytes no longer count");
        assert_eq!(lanes(&mut queue, NONE), [3]);
    }
}
