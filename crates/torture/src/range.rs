//! The firing range: a small server that does everything right, with a switch for every defect. It
//! proves the catalogue: with no switch thrown every case passes, and every case that can fail is
//! turned red by at least one switch. A machine without sockets: bytes in, acts out.

mod body;
mod defect;
mod head;
mod page;

pub use defect::Defect;
pub use page::{PAGE, PATH, POST};

use body::{Body, Taken};
use head::{Head, Refusal};
use std::collections::BTreeSet;

/// Bytes of a request line, and of a whole head, that are taken.
pub const LINE_MAX: usize = 8_192;
pub const HEAD_MAX: usize = 32_768;
/// Bytes of a body that are taken.
pub const BODY_MAX: u64 = 1 << 20;

/// What the server does next, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    Send(Vec<u8>),
    /// FIN; whatever still comes is ignored.
    Close,
    Reset,
    /// The whole server is gone: it accepts nothing any more.
    Die,
}

/// The switches that are thrown.
pub type Defects = BTreeSet<Defect>;

/// One connection of the server.
#[derive(Debug)]
pub struct Connection {
    defects: Defects,
    buffer: Vec<u8>,
    state: State,
    acts: Vec<Act>,
    served: u32,
}

#[derive(Debug)]
enum State {
    Head,
    Body(Box<(Head, Body)>),
    /// Nothing further is read: closed, or hanging.
    Over,
}

impl Connection {
    pub fn new(defects: &Defects) -> Connection {
        Connection {
            defects: defects.clone(),
            buffer: Vec::new(),
            state: State::Head,
            acts: Vec::new(),
            served: 0,
        }
    }

    /// Bytes have come.
    pub fn receive(&mut self, bytes: &[u8]) -> Vec<Act> {
        if !matches!(self.state, State::Over) {
            self.buffer.extend_from_slice(bytes);
            while self.step() {}
        }
        std::mem::take(&mut self.acts)
    }

    /// The client has ended its side.
    pub fn ended(&mut self) -> Vec<Act> {
        let half = !self.buffer.is_empty() || matches!(self.state, State::Body(_));
        match &self.state {
            State::Over => {}
            State::Body(parts) if self.has(Defect::ServesHalfBodies) => {
                let answer = page::answer(&parts.0, &self.defects, true);
                self.acts.push(Act::Send(answer));
                self.close();
            }
            _ if half && self.has(Defect::ForgetsHalfClosed) => self.state = State::Over,
            _ => self.close(),
        }
        std::mem::take(&mut self.acts)
    }

    fn has(&self, defect: Defect) -> bool {
        self.defects.contains(&defect)
    }

    fn close(&mut self) {
        self.acts.push(Act::Close);
        self.state = State::Over;
    }

    /// One step forward; false when more is needed.
    fn step(&mut self) -> bool {
        match std::mem::replace(&mut self.state, State::Over) {
            State::Over => false,
            State::Head => self.read_head(),
            State::Body(parts) => self.read_body(parts),
        }
    }

    fn read_head(&mut self) -> bool {
        let behind = self.served > 0 && self.has(Defect::HangsAfterGarbage);
        match head::read(&mut self.buffer, &self.defects) {
            Ok(None) => {
                self.state = State::Head;
                false
            }
            Ok(Some(head)) => {
                if head.wants_continue(&self.defects) && self.buffer.is_empty() {
                    self.acts.push(Act::Send(b"HTTP/1.1 100 Continue\r\n\r\n".to_vec()));
                }
                let body = Body::of(&head, &self.defects);
                self.state = State::Body(Box::new((head, body)));
                true
            }
            Err(_) if behind => false,
            Err(refusal) => self.refuse(refusal),
        }
    }

    fn read_body(&mut self, mut parts: Box<(Head, Body)>) -> bool {
        let body = &mut parts.1;
        match body.take(&mut self.buffer, &self.defects) {
            Ok(Taken::More) => {
                self.state = State::Body(parts);
                false
            }
            Ok(Taken::Done) => self.serve(&parts.0),
            Err(refusal) => self.refuse(refusal),
        }
    }

    fn serve(&mut self, head: &Head) -> bool {
        self.served += 1;
        if self.breaks_on(head) {
            return false;
        }
        let parting = !head.persistent && !self.has(Defect::IgnoresClose);
        let faulty = head.faulty_framing || head.both_lengths && !head.chunked;
        let closes = parting && !head.faulty_framing
            || faulty
                && !self.has(Defect::KeepsAfterFaultyFraming)
                && !self.has(Defect::BelievesLength);
        let answer = page::answer(head, &self.defects, closes);
        let before = self.acts.len();
        self.acts.push(Act::Send(answer.clone()));
        if head.both_lengths && self.has(Defect::AnswersTwice) {
            self.acts.push(Act::Send(answer));
        }
        if self.has(Defect::AnswersBackwards) && before > 0 {
            self.acts.swap(before - 1, before);
        }
        if closes {
            self.close();
            return false;
        }
        self.state = State::Head;
        true
    }

    /// Defects that show on what a target holds.
    fn breaks_on(&mut self, head: &Head) -> bool {
        let encoded = head.target.windows(3).any(|three| three == b"%00");
        if encoded && self.has(Defect::FailsOnEncodedNul) {
            self.acts.push(Act::Send(page::error(500, true, &self.defects)));
            self.close();
        } else if encoded && self.has(Defect::DiesOnEncodedNul) {
            self.acts.push(Act::Die);
        } else {
            return encoded && self.has(Defect::HangsOnEncodedNul);
        }
        true
    }

    fn refuse(&mut self, refusal: Refusal) -> bool {
        let Refusal::Status(status) = refusal else { return false };
        if self.has(Defect::HangsInsteadOfRefusing) {
            return false;
        }
        if self.has(Defect::FailsInsteadOfRefusing) {
            self.acts.push(Act::Send(page::error(500, true, &self.defects)));
        } else if self.has(Defect::StaysAfterRefusing) {
            self.acts.push(Act::Send(page::error(status, false, &self.defects)));
            self.buffer.clear();
            self.state = State::Head;
            return false;
        } else if !self.has(Defect::RefusesWithoutAWord) {
            self.acts.push(Act::Send(page::error(status, true, &self.defects)));
        }
        self.close();
        false
    }
}
