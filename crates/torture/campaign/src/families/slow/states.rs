//! The states in which a connection can be left, and the bytes that lead to them.

use crate::slow_states::SlowState;
use crate::{TestTarget, habits};
use dialogue::talk::Awaited;
use dialogue::talk::Move;
use torture::case::{Case, Family, SlowDripped, SlowHeld, SlowRead};
use units::Nanos;

/// Declared size of a body that is not sent.
const DECLARED: u64 = 1_000;
/// Interval and amount of reading a response slowly.
const READ_INTERVAL: Nanos = Nanos::SECOND;
const READ_LEN: usize = 1_024;

/// State that a case holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlowHold {
    pub(crate) state: SlowState,
    /// Maximum time for which it is held, and time within which it should end.
    pub(super) horizon: Nanos,
    pub(super) soon: Nanos,
    /// Interval between two drips; zero without dripping.
    every: Nanos,
    /// Page that is not read or is read slowly: its minimum size, and our receive buffer.
    pub(super) page: Option<(u64, u64)>,
}

impl SlowHold {
    /// Returns the state that a case holds; `None` for other cases.
    pub(crate) fn new(case: &Case) -> Option<SlowHold> {
        let still = |state, with: &SlowHeld| {
            let SlowHeld { horizon, soon } = *with;
            SlowHold { state, horizon, soon, every: Nanos::ZERO, page: None }
        };
        let dripped = |state, with: &SlowDripped| {
            let SlowDripped { horizon, soon, every } = *with;
            SlowHold { state, horizon, soon, every, page: None }
        };
        let read = |state, with: &SlowRead| {
            let SlowRead { horizon, soon, least, buffer } = *with;
            let page = Some((least.0, buffer.0));
            SlowHold { state, horizon, soon, every: Nanos::ZERO, page }
        };
        Some(match case.family.as_ref()? {
            Family::SlowSilent(with) => still(SlowState::Silent, with),
            Family::SlowHead(with) => still(SlowState::Head, with),
            Family::SlowHeadDripped(with) => dripped(SlowState::HeadDripped, with),
            Family::SlowBody(with) => still(SlowState::Body, with),
            Family::SlowBodyDripped(with) => dripped(SlowState::BodyDripped, with),
            Family::SlowUnread(with) => read(SlowState::Unread, with),
            Family::SlowSipped(with) => read(SlowState::Sipped, with),
            Family::SlowIdle(with) => still(SlowState::Idle, with),
            Family::SlowHandshake(with) => still(SlowState::Handshake, with),
            _ => return None,
        })
    }

    /// Returns names and steps of the conversations that lead there. `big`: the long page.
    pub(super) fn conversations(
        self,
        target: &TestTarget,
        horizon: Nanos,
        big: &str,
    ) -> Vec<(String, Vec<Move>)> {
        let one = |steps: Vec<Move>| vec![(self.state.text().to_owned(), steps)];
        let (path, host, ours) = (&target.values.path, &target.values.host, &target.fields);
        let half = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{ours}");
        match self.state {
            SlowState::Silent => one(Vec::new()),
            SlowState::Head => one(vec![send(half)]),
            SlowState::HeadDripped => {
                let drop = |number| format!("X-Loadstone-{number}: a\r\n");
                one(drip_steps(send(half), horizon, self.every, drop))
            }
            SlowState::Body | SlowState::BodyDripped => self.bodies(target, horizon),
            SlowState::Unread => {
                let get = send(get(big, target));
                one(vec![Move::StopReading, get, Move::Pause(horizon), Move::Read])
            }
            SlowState::Sipped => {
                let mut steps = vec![Move::StopReading, send(get(big, target))];
                for _ in 0..horizon.0 / READ_INTERVAL.0 {
                    steps.extend([Move::Pause(READ_INTERVAL), Move::Sip(READ_LEN)]);
                }
                steps.push(Move::Read);
                one(steps)
            }
            SlowState::Idle => {
                let plain = habits::plain_request(target, "");
                one(vec![Move::Send(plain), Move::Await(Awaited::Response)])
            }
            SlowState::Handshake => one(vec![Move::Send(half_hello())]),
        }
    }

    /// Returns both kinds of bodies: different code reads lengths and chunks.
    fn bodies(self, target: &TestTarget, horizon: Nanos) -> Vec<(String, Vec<Move>)> {
        let (path, host, ours) = (&target.values.post, &target.values.host, &target.fields);
        let length = format!("Content-Length: {DECLARED}");
        let kinds = [
            ("Content-Length", length.as_str(), "a", "a"),
            ("chunked", "Transfer-Encoding: chunked", "1\r\na\r\n", "1\r\na\r\n"),
        ];
        let conversation = |(name, field, first, drop): (&str, &str, &str, &str)| {
            let head =
                format!("POST {path} HTTP/1.1\r\nHost: {host}\r\n{ours}{field}\r\n\r\n{first}");
            let steps = match self.state {
                SlowState::BodyDripped => {
                    drip_steps(send(head), horizon, self.every, |_| drop.to_owned())
                }
                _ => vec![send(head)],
            };
            (format!("{}, {name}", self.state.text()), steps)
        };
        kinds.map(conversation).to_vec()
    }
}

fn send(text: String) -> Move {
    Move::Send(text.into_bytes())
}

fn get(path: &str, target: &TestTarget) -> String {
    let (host, ours) = (&target.values.host, &target.fields);
    format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{ours}\r\n")
}

/// Sends a drip after each pause until the time limit.
fn drip_steps(
    first: Move,
    horizon: Nanos,
    every: Nanos,
    drop: impl Fn(u64) -> String,
) -> Vec<Move> {
    let mut steps = vec![first];
    for number in 0..horizon.0 / every.0.max(Nanos::SECOND.0) {
        steps.extend([Move::Pause(every), send(drop(number))]);
    }
    steps
}

/// Returns the start of a ClientHello (RFC 8446 section 4.1.2): a declared record of 512 bytes, its
/// version and half of its random value.
fn half_hello() -> Vec<u8> {
    let mut hello = vec![0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03];
    hello.extend([0x5a; 16]);
    hello
}
