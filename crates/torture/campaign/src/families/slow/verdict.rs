//! Judges a held state by an outcome and a measured number.

use super::states::SlowHold;
use crate::slow_states::{HeldState, SlowState};
use dialogue::talk::{Move, TalkEnd, TalkEvent, What};
use torture::judge;
use torture::judge::{ConversationOutcome, Judgement};
use torture::result::{Measure, Unit};
use units::{Nanos, show};

/// A final response within this time although the body is missing is not a timeout.
const EARLY: Nanos = Nanos::from_secs(2);
/// Time limit of the response to the request before a connection idles.
const RESPONSE: Nanos = Nanos::from_secs(5);
/// Tolerance: the timer of a server may be a tenth late for a timeout of 60 s.
const LATE: f64 = 1.1;
/// Longest interval at which servers check their timeouts (Node: 30 s). Within it, the time of a
/// close depends on when the connection was opened.
const CHECKED_EVERY: Nanos = Nanos::from_secs(30);
/// Two TLS alerts with the headers, nonces and tags of their records (RFC 5246 section 6.2.3.3):
/// some servers send user_canceled before close_notify (RFC 8446 section 6.1). A response is
/// longer.
const ALERTS_MAX: usize = 2 * (5 + 8 + 2 + 16);
/// Ratio of the lifetimes of a dripped message and of the same message without drips above which
/// each drip restarts the timeout.
const PER_READ: u64 = 2;

/// End of a state.
enum Ended {
    After(Nanos),
    /// The state lasted as long as we waited.
    Never,
    /// Inconclusive, with the reason.
    Unseen(String),
}

impl HeldState {
    /// Returns a short description of the response.
    pub(super) fn seen(&self) -> String {
        judge::seen(&self.talk)
    }

    /// Returns the bytes sent before the first pause.
    pub(super) fn first_sent(&self) -> Vec<u8> {
        let mut sent = self.wanted.script.steps.iter().filter_map(|step| match step {
            Move::Send(bytes) => Some(bytes.clone()),
            _ => None,
        });
        sent.next().unwrap_or_default()
    }

    /// Returns how it ended, without the response to the earlier request.
    fn describe_end(&self) -> String {
        let idle = self.wanted.state == SlowState::Idle;
        let has_bytes = self.talk.replies.responses.len() > 1 || self.talk.replies.junk.is_some();
        match self.talk.end {
            TalkEnd::Closed if idle && !has_bytes => "closed without a byte".to_owned(),
            TalkEnd::Broken(_) if idle && !has_bytes => "reset without a byte".to_owned(),
            _ => self.seen(),
        }
    }

    /// Returns whether the conversation is the same except for drips: by length, or by chunks.
    pub(super) fn is_as(&self, other: &HeldState) -> bool {
        let kind =
            |held: &HeldState| held.wanted.name.rsplit_once(", ").map(|(_, kind)| kind.to_owned());
        let chunked = |held: &HeldState| kind(held).is_some_and(|kind| kind == "chunked");
        chunked(self) == chunked(other)
    }

    /// Returns whether the server responded without waiting for the body.
    pub(super) fn was_answered_early(&self) -> bool {
        let timed_out = |status| matches!(status, 408 | 504);
        let answered =
            self.talk.replies.responses.first().is_some_and(|one| !timed_out(one.status));
        self.wanted.state.is_body() && answered && self.first_byte().is_some_and(|at| at < EARLY)
    }

    fn received(&self) -> impl DoubleEndedIterator<Item = Nanos> {
        let came = self.talk.events.iter().filter(|one| matches!(one.what, What::Received(_)));
        came.map(|event| event.at)
    }

    /// Returns the instants of received data without the TLS alert at the end.
    fn words(&self) -> impl DoubleEndedIterator<Item = Nanos> {
        let end = self.end().filter(|_| self.wanted.script.tls_name.is_some());
        let alert = move |event: &TalkEvent| match event.what {
            What::Received(bytes) => bytes <= ALERTS_MAX && end == Some(event.at),
            _ => false,
        };
        let came = self.talk.events.iter().filter(|one| matches!(one.what, What::Received(_)));
        came.filter(move |event| !alert(event)).map(|event| event.at)
    }

    /// Returns when the server closed it.
    fn end(&self) -> Option<Nanos> {
        let ends = |event: &&TalkEvent| matches!(event.what, What::Ended | What::Broken(_));
        let seen = self.talk.events.iter().find(ends).map(|event| event.at);
        let by_server = matches!(self.talk.end, TalkEnd::Closed | TalkEnd::Broken(_));
        seen.or(by_server.then_some(self.talk.over))
    }

    /// Returns the first byte after the TLS handshake.
    fn first_byte(&self) -> Option<Nanos> {
        let secure = self.talk.events.iter().find(|event| event.what == What::Secure);
        let since = secure.map_or(Nanos::ZERO, |event| event.at);
        self.received().find(|at| *at >= since)
    }

    /// Returns when the server began to wait.
    fn since(&self) -> Nanos {
        let connected = self.talk.connected.unwrap_or_default();
        if self.wanted.state != SlowState::Idle {
            return connected;
        }
        self.words().rfind(|at| *at <= connected + RESPONSE).unwrap_or(connected)
    }

    /// Returns when the server reported that it stopped waiting, or closed the connection, for a
    /// state in which it waits.
    fn ended(&self) -> Ended {
        let talk = &self.talk;
        let since = self.since();
        let asked = usize::from(self.wanted.state == SlowState::Idle);
        let word = match self.wanted.script.tls_name {
            // TLS records themselves are not data
            Some(_) if talk.replies.responses.len() > asked => self.words().next_back(),
            Some(_) => None,
            None => self.received().find(|at| *at > since),
        };
        match (talk.end, word.into_iter().chain(self.end()).min()) {
            (TalkEnd::Unconnected(_), _) => Ended::Unseen(self.unseen().unwrap_or_default()),
            // a response without a close does not free the connection
            (TalkEnd::Silent, Some(_)) if self.end().is_none() => Ended::Never,
            (_, Some(at)) => Ended::After(at - since),
            (TalkEnd::Silent | TalkEnd::Open, None) => Ended::Never,
            _ => Ended::Unseen(self.unseen().unwrap_or_default()),
        }
    }

    /// Returns why the end is inconclusive.
    fn unseen(&self) -> Option<String> {
        match self.talk.end {
            TalkEnd::Unconnected(class) => Some(format!("no connection: {}", class.explain())),
            TalkEnd::Bounded | TalkEnd::Ours => {
                Some("one of our limits, or the end of the run, was reached first".to_owned())
            }
            _ => None,
        }
    }

    /// Judges how the server ended a slow state.
    /// `steady`: result of the same state without drips.
    pub(super) fn judged(
        &self,
        hold: &SlowHold,
        steady: Option<&HeldState>,
    ) -> (Judgement, Option<Measure>) {
        let soon = hold.soon;
        let unseen =
            |why| (self.judgement(ConversationOutcome::Inconclusive, String::new(), why), None);
        if hold.page.is_some() {
            return self.unseen().map_or_else(|| self.read(), unseen);
        }
        let ended = self.ended();
        if let Ended::Unseen(why) = ended {
            return unseen(why);
        }
        let expected = format!("a close within {}", seconds(soon));
        let shape = steady.and_then(|steady| self.shape(steady));
        let (outcome, why) = match (&ended, &shape) {
            (Ended::After(_), Some(Shape::PerRead)) => (
                ConversationOutcome::Advisory,
                "each byte restarts the timeout: there is no deadline for the whole message".into(),
            ),
            (Ended::After(span), _) if is_late(*span, soon) => {
                (ConversationOutcome::Advisory, self.too_late(*span))
            }
            (Ended::After(_), _) => (ConversationOutcome::Pass, String::new()),
            (_, Some(Shape::PerRead)) => {
                let span = seconds(self.wanted.horizon);
                (
                    ConversationOutcome::Unbounded,
                    format!(
                        "each byte restarts the timeout: the connection lasted longer than \
                        {span}"
                    ),
                )
            }
            _ => (
                ConversationOutcome::Unbounded,
                format!("the connection lasted longer than {}", seconds(self.wanted.horizon)),
            ),
        };
        let how = match (&ended, &shape) {
            (Ended::After(_), Some(Shape::Absolute)) => {
                format!("absolute; {}", self.describe_end())
            }
            (Ended::After(_), Some(Shape::PerRead)) => {
                format!("between reads; {}", self.describe_end())
            }
            (Ended::After(_), None) => self.describe_end(),
            (_, Some(Shape::PerRead)) => {
                format!("between reads: none within {} of dripping", seconds(self.wanted.horizon))
            }
            _ => format!("none within {}", seconds(self.wanted.horizon)),
        };
        let measure = match ended {
            Ended::After(span) => {
                let span = span.as_secs_f64();
                self.measure(Some(span), Some(span), how)
            }
            _ => self.measure(Some(self.wanted.horizon.as_secs_f64()), None, how),
        };
        (self.judgement(outcome, expected, why), Some(measure))
    }

    /// Describes an event that is too late, after this time.
    fn too_late(&self, span: Nanos) -> String {
        match self.end() {
            Some(_) => format!("closed only after {}", seconds(span)),
            None => format!(
                "the response came only after {}, and the connection stays open",
                seconds(span)
            ),
        }
    }

    /// Compares both states: with drips, the state ended at about the same time as without, or much
    /// later.
    fn shape(&self, steady: &HeldState) -> Option<Shape> {
        let Ended::After(still) = steady.ended() else { return None };
        match self.ended() {
            Ended::After(span) if span <= still * PER_READ => Some(Shape::Absolute),
            Ended::After(_) | Ended::Never => Some(Shape::PerRead),
            Ended::Unseen(_) => None,
        }
    }

    /// Judges a response that was not read, or read slowly. Its unread part is counted at the end.
    fn read(&self) -> (Judgement, Option<Measure>) {
        let Some(response) = self.talk.replies.responses.first() else {
            return self.judge_unread_close(0, None);
        };
        let whole = response.field("content-length").next().and_then(|text| text.parse().ok());
        if response.complete {
            return self.read_whole(response.body_len);
        }
        match self.talk.end {
            TalkEnd::Closed | TalkEnd::Broken(_) => {
                self.judge_unread_close(response.body_len, whole)
            }
            _ => {
                let why = "the rest of it did not arrive in time".to_owned();
                (self.judgement(ConversationOutcome::Inconclusive, String::new(), why), None)
            }
        }
    }

    fn read_whole(&self, length: u64) -> (Judgement, Option<Measure>) {
        let (span, all) = (seconds(self.wanted.horizon), show::bytes(length));
        let (outcome, expected, why) = match self.wanted.state {
            SlowState::Sipped => (ConversationOutcome::Pass, String::new(), String::new()),
            _ => {
                let why = format!("all {all} arrived, although nothing was read for {span}");
                (ConversationOutcome::Unbounded, "a truncated response".to_owned(), why)
            }
        };
        let note = format!("none within {span}: all {all} arrived then");
        let measure = self.measure(Some(self.wanted.horizon.as_secs_f64()), None, note);
        (self.judgement(outcome, expected, why), Some(measure))
    }

    /// Judges a state that the server ended by closing the connection. A client that does not read
    /// cannot observe when: the close is visible only after the buffered data.
    fn judge_unread_close(&self, came: u64, whole: Option<u64>) -> (Judgement, Option<Measure>) {
        let of = whole.map_or(String::new(), |whole| format!(" of {}", show::bytes(whole)));
        let cut = format!("{}{of} arrived, {}", show::bytes(came), self.how());
        let measure = self.measure(None, Some(self.wanted.horizon.as_secs_f64()), cut);
        let expected = match self.wanted.state {
            SlowState::Sipped => String::new(),
            _ => "a truncated response".to_owned(),
        };
        (self.judgement(ConversationOutcome::Pass, expected, String::new()), Some(measure))
    }

    fn how(&self) -> &'static str {
        match self.talk.end {
            TalkEnd::Broken(_) => "then it was reset",
            _ => "then it was closed",
        }
    }

    fn judgement(&self, outcome: ConversationOutcome, expected: String, why: String) -> Judgement {
        let seen = format!("{}, after {}", self.seen(), seconds(self.talk.over));
        Judgement { outcome: outcome.into(), seen, expected, why, ..Judgement::default() }
    }

    fn measure(&self, low: Option<f64>, high: Option<f64>, note: String) -> Measure {
        Measure { what: self.wanted.name.clone(), low, high, unit: Unit::Seconds, note }
    }
}

enum Shape {
    Absolute,
    PerRead,
}

/// Formats `60 s`, `20.1 s`: always in seconds, for comparison.
fn seconds(span: Nanos) -> String {
    match span.0 % Nanos::SECOND.0 {
        0 => format!("{} s", span.0 / Nanos::SECOND.0),
        _ => format!("{:.1} s", span.as_secs_f64()),
    }
}

/// Returns whether a close after `span` is too late for a timeout of `soon`.
fn is_late(span: Nanos, soon: Nanos) -> bool {
    span.as_secs_f64() > soon.as_secs_f64() * LATE + CHECKED_EVERY.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slow_states::WantedState;
    use dialogue::replies::Replies;
    use dialogue::talk::{Talk, TalkScript};
    use sample::FailureClass;

    const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    const BROKEN: TalkEnd = TalkEnd::Broken(FailureClass::Tls);

    /// Returns how long a connection was idle, from received data: instants in ms, and bytes. The
    /// last data arrived with the close.
    fn idle(tls: bool, end: TalkEnd, came: &[(u64, usize)]) -> String {
        let ms = Nanos::from_millis;
        let mut replies = Replies::new(&["GET".to_owned()]);
        replies.take(OK);
        let event = |at: u64, what| TalkEvent { at: ms(at), what };
        let mut events = vec![event(1, What::Connected)];
        events.extend(came.iter().map(|(at, bytes)| event(*at, What::Received(*bytes))));
        let over = came.last().map_or(0, |(at, _)| *at);
        // an undecodable record breaks the connection without its own event
        events.extend((end == TalkEnd::Closed).then(|| event(over, What::Ended)));
        let mut script = TalkScript::new(Vec::new());
        script.tls_name = tls.then(|| "a".to_owned());
        let talk = Talk {
            start: Nanos::ZERO,
            connected: Some(ms(1)),
            over: ms(over),
            end,
            steps: Vec::new(),
            replies,
            before_follow_up: None,
            sent: 0,
            received: 0,
            raw: Vec::new(),
            events,
            all_sent: true,
        };
        let (state, horizon) = (SlowState::Idle, Nanos::from_secs(60));
        let wanted = WantedState { state, name: String::new(), script, horizon };
        match (HeldState { wanted, talk }).ended() {
            Ended::After(span) => seconds(span),
            Ended::Never => "never".to_owned(),
            Ended::Unseen(why) => why,
        }
    }

    /// Node closes after 60 to 90 s, depending on when the connection was opened.
    #[test]
    fn the_interval_of_a_check_is_not_late() {
        let at = Nanos::from_secs;
        let late = [59, 61, 71, 90, 91, 97, 110].map(|span| is_late(at(span), at(60)));
        assert_eq!(late, [false, false, false, false, false, true, true]);
    }

    #[test]
    fn a_closing_alert_is_not_a_response() {
        let response = [(5, 1_500), (10, 230)];
        let ended = |bytes| [&response[..], &[(2_010, bytes)]].concat();
        // close_notify alone, after user_canceled, and an alert that ends the connection
        assert_eq!(idle(true, TalkEnd::Closed, &ended(24)), "2 s");
        assert_eq!(idle(true, TalkEnd::Closed, &ended(48)), "2 s");
        assert_eq!(idle(true, BROKEN, &ended(24)), "2 s");
        // the close arrived with the response itself, however late
        assert_eq!(idle(true, TalkEnd::Closed, &[(5, 1_500), (1_010, 254)]), "0 s");
        assert_eq!(idle(false, TalkEnd::Closed, &[(10, 40)]), "0 s");
        assert_eq!(idle(true, TalkEnd::Silent, &response), "never");
        // a timeout that is reported, with and without a close
        assert_eq!(idle(false, TalkEnd::Closed, &[(10, 40), (8_010, 90)]), "8 s");
        assert_eq!(idle(false, TalkEnd::Silent, &[(10, 40), (8_010, 90)]), "never");
    }
}
