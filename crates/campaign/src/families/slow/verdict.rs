//! What became of a state that was held, as an outcome and a number.

use super::states::SlowHold;
use crate::slow_states::{HeldState, SlowState};
use dialogue::talk::{Move, TalkEnd, TalkEvent, What};
use torture::judge;
use torture::judge::{ConversationOutcome, Judgement};
use torture::result::{Measure, Unit};
use units::{Nanos, show};

/// A final response within this time, though the body was not there, is no deadline.
const EARLY: Nanos = Nanos::from_secs(2);
/// The response to the request before a connection idles comes within this time.
const RESPONSE: Nanos = Nanos::from_secs(5);
/// A deadline of 60 s is kept by a server whose timer is as much too late: a tenth.
const LATE: f64 = 1.1;
/// Two alerts of TLS with the heads, nonces and tags of their records (RFC 5246 section 6.2.3.3): some
/// servers send user_canceled before close_notify (RFC 8446 section 6.1). A response is longer.
const ALERTS_MAX: usize = 2 * (5 + 8 + 2 + 16);
/// A dripped message that lasts longer than so many times one that does not drip has a deadline that
/// each drop renews.
const PER_READ: u64 = 2;

/// How a state ended.
enum Ended {
    After(Nanos),
    /// It stood as long as was waited.
    Never,
    /// Nothing was learned, and why.
    Unseen(String),
}

impl HeldState {
    /// What came back, in a few words.
    pub(super) fn seen(&self) -> String {
        judge::seen(&self.talk)
    }

    /// What was sent before the first pause.
    pub(super) fn first_said(&self) -> Vec<u8> {
        let mut said = self.wanted.script.steps.iter().filter_map(|step| match step {
            Move::Send(bytes) => Some(bytes.clone()),
            _ => None,
        });
        said.next().unwrap_or_default()
    }

    /// How it ended, without what was asked for before.
    fn parting(&self) -> String {
        let idle = self.wanted.state == SlowState::Idle;
        let said = self.talk.replies.responses.len() > 1 || self.talk.replies.junk.is_some();
        match self.talk.end {
            TalkEnd::Closed if idle && !said => "closed without a byte".to_owned(),
            TalkEnd::Broken(_) if idle && !said => "reset without a byte".to_owned(),
            _ => self.seen(),
        }
    }

    /// The same conversation, but for the drops: by length, or by chunks.
    pub(super) fn is_as(&self, other: &HeldState) -> bool {
        let kind =
            |held: &HeldState| held.wanted.name.rsplit_once(", ").map(|(_, kind)| kind.to_owned());
        let chunked = |held: &HeldState| kind(held).is_some_and(|kind| kind == "chunked");
        chunked(self) == chunked(other)
    }

    /// The server has answered without waiting for the body.
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

    /// The same without the alert of TLS that comes with the end.
    fn words(&self) -> impl DoubleEndedIterator<Item = Nanos> {
        let end = self.end().filter(|_| self.wanted.script.tls_name.is_some());
        let alert = move |event: &TalkEvent| match event.what {
            What::Received(bytes) => bytes <= ALERTS_MAX && end == Some(event.at),
            _ => false,
        };
        let came = self.talk.events.iter().filter(|one| matches!(one.what, What::Received(_)));
        came.filter(move |event| !alert(event)).map(|event| event.at)
    }

    /// When the server ended it.
    fn end(&self) -> Option<Nanos> {
        let ends = |event: &&TalkEvent| matches!(event.what, What::Ended | What::Broken(_));
        let seen = self.talk.events.iter().find(ends).map(|event| event.at);
        let by_server = matches!(self.talk.end, TalkEnd::Closed | TalkEnd::Broken(_));
        seen.or(by_server.then_some(self.talk.over))
    }

    /// Of what was said after TLS had come to stand.
    fn first_byte(&self) -> Option<Nanos> {
        let secure = self.talk.events.iter().find(|event| event.what == What::Secure);
        let since = secure.map_or(Nanos::ZERO, |event| event.at);
        self.received().find(|at| *at >= since)
    }

    /// When the server began to wait.
    fn since(&self) -> Nanos {
        let connected = self.talk.connected.unwrap_or_default();
        if self.wanted.state != SlowState::Idle {
            return connected;
        }
        self.words().rfind(|at| *at <= connected + RESPONSE).unwrap_or(connected)
    }

    /// When its word that it waits no longer came, or else its end; of a state in which the server waits.
    fn ended(&self) -> Ended {
        let talk = &self.talk;
        let since = self.since();
        let asked = usize::from(self.wanted.state == SlowState::Idle);
        let word = match self.wanted.script.tls_name {
            // the records of TLS itself are no words
            Some(_) if talk.replies.responses.len() > asked => self.words().next_back(),
            Some(_) => None,
            None => self.received().find(|at| *at > since),
        };
        match (talk.end, word.into_iter().chain(self.end()).min()) {
            (TalkEnd::Unconnected(_), _) => Ended::Unseen(self.unseen().unwrap_or_default()),
            (_, Some(at)) => Ended::After(at - since),
            (TalkEnd::Silent | TalkEnd::Open, None) => Ended::Never,
            _ => Ended::Unseen(self.unseen().unwrap_or_default()),
        }
    }

    /// Why nothing was learned of the end.
    fn unseen(&self) -> Option<String> {
        match self.talk.end {
            TalkEnd::Unconnected(class) => Some(format!("no connection: {}", class.explain())),
            TalkEnd::Bounded | TalkEnd::Ours => {
                Some("a bound of ours, or its end, came first".to_owned())
            }
            _ => None,
        }
    }

    /// `steady`: the same without drops.
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
        let expected = format!("an end within {}", seconds(soon));
        let shape = steady.and_then(|steady| self.shape(steady));
        let (outcome, why) = match (&ended, &shape) {
            (Ended::After(_), Some(Shape::PerRead)) => (
                ConversationOutcome::Advisory,
                "each drop renews the deadline: it is no deadline for the whole".into(),
            ),
            (Ended::After(span), _) if span.as_secs_f64() > soon.as_secs_f64() * LATE => {
                (ConversationOutcome::Advisory, format!("it ended only after {}", seconds(*span)))
            }
            (Ended::After(_), _) => (ConversationOutcome::Pass, String::new()),
            (_, Some(Shape::PerRead)) => {
                let span = seconds(self.wanted.horizon);
                (
                    ConversationOutcome::Unbounded,
                    format!("each drop renews the deadline: it lasted longer than {span}"),
                )
            }
            _ => (
                ConversationOutcome::Unbounded,
                format!("it lasted longer than {}", seconds(self.wanted.horizon)),
            ),
        };
        let how = match (&ended, &shape) {
            (Ended::After(_), Some(Shape::Absolute)) => {
                format!("absolute; {}", self.parting())
            }
            (Ended::After(_), Some(Shape::PerRead)) => {
                format!("between reads; {}", self.parting())
            }
            (Ended::After(_), None) => self.parting(),
            (_, Some(Shape::PerRead)) => {
                format!("between reads: none within {} of drops", seconds(self.wanted.horizon))
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

    /// Only the two together tell: without drops it ended, and with them about then, or much later.
    fn shape(&self, steady: &HeldState) -> Option<Shape> {
        let Ended::After(still) = steady.ended() else { return None };
        match self.ended() {
            Ended::After(span) if span <= still * PER_READ => Some(Shape::Absolute),
            Ended::After(_) | Ended::Never => Some(Shape::PerRead),
            Ended::Unseen(_) => None,
        }
    }

    /// A response that was not read, or slowly: what is left of it is counted at the end.
    fn read(&self) -> (Judgement, Option<Measure>) {
        let Some(response) = self.talk.replies.responses.first() else {
            return self.gave_up(0, None);
        };
        let whole = response.field("content-length").next().and_then(|text| text.parse().ok());
        if response.complete {
            return self.read_whole(response.body_len);
        }
        match self.talk.end {
            TalkEnd::Closed | TalkEnd::Broken(_) => self.gave_up(response.body_len, whole),
            _ => {
                let why = "what was left of it did not come within the time for it".to_owned();
                (self.judgement(ConversationOutcome::Inconclusive, String::new(), why), None)
            }
        }
    }

    fn read_whole(&self, length: u64) -> (Judgement, Option<Measure>) {
        let (span, all) = (seconds(self.wanted.horizon), show::bytes(length));
        let (outcome, expected, why) = match self.wanted.state {
            SlowState::Sipped => (ConversationOutcome::Pass, String::new(), String::new()),
            _ => {
                let why = format!("all {all} came, though nothing was read for {span}");
                (ConversationOutcome::Unbounded, "a response that is cut short".to_owned(), why)
            }
        };
        let note = format!("none within {span}: all {all} came then");
        let measure = self.measure(Some(self.wanted.horizon.as_secs_f64()), None, note);
        (self.judgement(outcome, expected, why), Some(measure))
    }

    /// The server has given up. A client that does not read cannot see when: the end is seen only
    /// behind what the buffers hold.
    fn gave_up(&self, came: u64, whole: Option<u64>) -> (Judgement, Option<Measure>) {
        let of = whole.map_or(String::new(), |whole| format!(" of {}", show::bytes(whole)));
        let cut = format!("{}{of} came, {}", show::bytes(came), self.how());
        let measure = self.measure(None, Some(self.wanted.horizon.as_secs_f64()), cut);
        let expected = match self.wanted.state {
            SlowState::Sipped => String::new(),
            _ => "a response that is cut short".to_owned(),
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
        Judgement { outcome: outcome.into(), seen, expected, why, kind: None }
    }

    fn measure(&self, low: Option<f64>, high: Option<f64>, note: String) -> Measure {
        Measure { what: self.wanted.name.clone(), low, high, unit: Unit::Seconds, note }
    }
}

enum Shape {
    Absolute,
    PerRead,
}

/// `60 s`, `20.1 s`: seconds stay seconds, as deadlines are compared.
fn seconds(span: Nanos) -> String {
    match span.0 % Nanos::SECOND.0 {
        0 => format!("{} s", span.0 / Nanos::SECOND.0),
        _ => format!("{:.1} s", span.as_secs_f64()),
    }
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

    /// How long a connection was idle, in words, of what came on it: instants in ms, and bytes. The last
    /// of them came with the end.
    fn idle(tls: bool, end: TalkEnd, came: &[(u64, usize)]) -> String {
        let ms = Nanos::from_millis;
        let mut replies = Replies::new(&["GET".to_owned()]);
        replies.take(OK);
        let event = |at: u64, what| TalkEvent { at: ms(at), what };
        let mut events = vec![event(1, What::Connected)];
        events.extend(came.iter().map(|(at, bytes)| event(*at, What::Received(*bytes))));
        let over = came.last().map_or(0, |(at, _)| *at);
        // a record that cannot be read breaks the connection without an event of its own
        events.extend((end == TalkEnd::Closed).then(|| event(over, What::Ended)));
        let mut script = TalkScript::of(Vec::new());
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

    #[test]
    fn the_alert_of_an_end_is_not_taken_for_a_response() {
        let response = [(5, 1_500), (10, 230)];
        let ended = |bytes| [&response[..], &[(2_010, bytes)]].concat();
        // close_notify alone, behind user_canceled, and an alert that breaks the connection
        assert_eq!(idle(true, TalkEnd::Closed, &ended(24)), "2 s");
        assert_eq!(idle(true, TalkEnd::Closed, &ended(48)), "2 s");
        assert_eq!(idle(true, BROKEN, &ended(24)), "2 s");
        // the end came with the response itself, however late that was
        assert_eq!(idle(true, TalkEnd::Closed, &[(5, 1_500), (1_010, 254)]), "0 s");
        assert_eq!(idle(false, TalkEnd::Closed, &[(10, 40)]), "0 s");
        assert_eq!(idle(true, TalkEnd::Silent, &response), "never");
    }
}
