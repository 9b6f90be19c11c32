//! The evidence trail: recent conversations, and those before the server was first lost.

use crate::life::AffectedPart;
use dialogue::talk::{Move, Talk, TalkEnd, TalkScript};
use sample::Blame;
use std::collections::VecDeque;
use torture::case::Case;
use torture::record::Execution;

/// Maximum number of suspected conversations before a failure, and of their bytes.
pub const TAIL_MAX: usize = 32;
const TAIL_BYTES_MAX: usize = 8 << 20;

/// A suspected conversation.
#[derive(Clone, Debug)]
pub(crate) struct Suspect {
    pub(crate) case: String,
    pub(crate) name: String,
    pub(crate) script: TalkScript,
    /// Result; `None` if it was not kept.
    pub(crate) talk: Option<Talk>,
}

impl Suspect {
    /// Returns a completed conversation of a case.
    pub(crate) fn new(case: &Case, name: &str, script: TalkScript, talk: Talk) -> Suspect {
        Suspect { case: case.id.clone(), name: name.to_owned(), script, talk: Some(talk) }
    }

    /// Returns whether the client ended the conversation because no further response arrived.
    pub(crate) fn is_given_up(&self) -> bool {
        self.talk.as_ref().is_some_and(|talk| talk.end == TalkEnd::Silent)
    }

    /// Returns a remark that this conversation may be the cause of a crash during the next one,
    /// `name` of `case`; `None` unless the client gave it up. The server may notice the end of that
    /// connection later.
    pub(crate) fn as_earlier_cause(&self, case: &str, name: &str) -> Option<String> {
        if !self.is_given_up() || (self.case == case && self.name == name) {
            return None;
        }
        let place = match self.case == case {
            true => String::new(),
            false => format!(" of {}", self.case),
        };
        let served = self.talk.as_ref().map_or(0, |talk| talk.replies.whole());
        let got = match served {
            0 => "got no response".to_owned(),
            1 => "got one response, then nothing more,".to_owned(),
            count => format!("got {count} responses, then nothing more,"),
        };
        Some(format!(
            "; the cause may be the request before it ({}{place}), which {got} and was given up",
            self.name
        ))
    }
}

#[derive(Debug)]
pub(crate) struct Trail {
    /// True if conversations are kept because a search may follow.
    is_kept: bool,
    last: VecDeque<Suspect>,
    /// The conversations before the server was first lost in the current case.
    before_loss: Option<Vec<Suspect>>,
}

impl Trail {
    pub(crate) fn new(is_kept: bool) -> Trail {
        Trail { is_kept, last: VecDeque::new(), before_loss: None }
    }

    pub(crate) fn begin_case(&mut self) {
        self.before_loss = None;
    }

    /// Returns whether the server was gone when a conversation of the case was to start.
    pub(crate) fn was_lost(&self) -> bool {
        self.before_loss.is_some()
    }

    /// Adds a completed conversation, with its effect on the server.
    pub(crate) fn observe(&mut self, execution: &Execution<'_>, affected: AffectedPart) {
        if !self.is_kept {
            return;
        }
        match execution.talk.end {
            TalkEnd::Unconnected(class) if class.blame() == Blame::Driver => {}
            TalkEnd::Unconnected(_) => self.lose(),
            _ => {
                let (script, talk) = (execution.script.clone(), execution.talk.clone());
                self.add(Suspect::new(execution.case, execution.name, script, talk));
            }
        }
        if affected != AffectedPart::Nothing {
            self.lose();
        }
    }

    /// Adds an unreported conversation that may have caused the failure.
    pub(crate) fn add(&mut self, suspect: Suspect) {
        if !self.is_kept {
            return;
        }
        self.last.push_back(suspect);
        let length = |step: &Move| match step {
            Move::Send(bytes) => bytes.len(),
            _ => 0,
        };
        let size = |one: &Suspect| -> usize { one.script.steps.iter().map(length).sum() };
        let mut bytes: usize = self.last.iter().map(size).sum();
        while self.last.len() > TAIL_MAX || bytes > TAIL_BYTES_MAX {
            bytes -= self.last.pop_front().map_or(0, |first| size(&first));
        }
    }

    /// Marks the loss of the server: one of the last conversations caused it.
    fn lose(&mut self) {
        self.before_loss.get_or_insert_with(|| self.last.iter().cloned().collect());
    }

    /// Returns the conversations so far, in order.
    pub(crate) fn suspects(&self) -> Vec<Suspect> {
        self.last.iter().cloned().collect()
    }

    /// Returns the conversations before the loss, or all without a loss.
    pub(crate) fn take_tail(&mut self) -> Vec<Suspect> {
        self.before_loss.take().unwrap_or_else(|| self.suspects())
    }

    /// Returns the last conversation before the loss, or of all, and names the one before it if
    /// that may be the cause of a crash too.
    pub(crate) fn take_last(&mut self) -> Option<(Suspect, Option<String>)> {
        let mut tail = self.take_tail();
        let last = tail.pop()?;
        let earlier = tail.last().and_then(|one| one.as_earlier_cause(&last.case, &last.name));
        Some((last, earlier))
    }

    /// Returns the first of the last conversations before the loss, or of all, that belong to this
    /// case and got no response: the later ones were sent to a server that was already lost.
    pub(crate) fn take_first_silent(&mut self, case: &str) -> Option<Suspect> {
        let silent = |talk: &Talk| {
            let by_server = matches!(talk.end, TalkEnd::Closed | TalkEnd::Broken(_));
            talk.replies.whole() == 0 && !(by_server && talk.received > 0)
        };
        let own = |one: &&Suspect| one.case == case && one.talk.as_ref().is_none_or(silent);
        self.take_tail().iter().rev().take_while(own).last().cloned()
    }

    /// Discards conversations of a search.
    pub(crate) fn forget(&mut self) {
        self.last.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dialogue::replies::Replies;
    use units::Nanos;

    #[test]
    fn the_first_of_those_without_a_response_is_blamed() {
        let suspect = |case: &str, name: &str, received: &str| {
            let mut replies = Replies::new(&["GET".to_owned()]);
            replies.take(received.as_bytes());
            let talk = Talk {
                start: Nanos::ZERO,
                connected: None,
                over: Nanos::ZERO,
                end: if received.is_empty() { TalkEnd::Silent } else { TalkEnd::Open },
                steps: Vec::new(),
                replies,
                before_follow_up: None,
                sent: 0,
                received: 0,
                raw: Vec::new(),
                events: Vec::new(),
                all_sent: true,
            };
            let script = TalkScript::new(Vec::new());
            Suspect { case: case.into(), name: name.into(), script, talk: Some(talk) }
        };
        let ok = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
        let mut trail = Trail::new(true);
        for (case, name, received) in [
            ("S-01", "before", ""),
            ("S-02", "served", ok),
            ("S-02", "hung", ""),
            ("S-02", "also", ""),
        ] {
            trail.add(suspect(case, name, received));
        }
        assert_eq!(trail.take_first_silent("S-02").unwrap().name, "hung");
        assert!(trail.take_first_silent("S-01").is_none());
        trail.add(suspect("S-02", "last", ok));
        assert!(trail.take_first_silent("S-02").is_none());
        let (last, earlier) = trail.take_last().unwrap();
        let given_up = "; the cause may be the request before it (also), which got no response and \
            was given up";
        assert_eq!((last.name.as_str(), earlier.as_deref()), ("last", Some(given_up)));
        // an attempt at the same request, or one that got its response, is no other cause
        trail.add(suspect("S-02", "last", ""));
        assert_eq!(trail.take_last().unwrap().1, None);
        trail.add(suspect("S-03", "next", ok));
        let (next, earlier) = trail.take_last().unwrap();
        assert!(next.name == "next" && earlier.unwrap().contains("(last of S-02)"));
        trail.add(suspect("S-03", "end", ok));
        assert_eq!(trail.take_last().unwrap().1, None);
        // one of its responses arrived
        let mut half = suspect("S-04", "pipeline", ok);
        half.talk.iter_mut().for_each(|talk| talk.end = TalkEnd::Silent);
        let text = "; the cause may be the request before it (pipeline of S-04), which got one \
            response, then nothing more, and was given up";
        assert_eq!(half.as_earlier_cause("S-05", "x").as_deref(), Some(text));
    }
}
