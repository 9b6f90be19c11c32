//! Conversations that are held segment by segment.

use crate::{GRACE, LINGER, Runner, habits};
use dialogue::packets::{PacketContent, PacketStep};
use dialogue::talk::{Move, TalkScript};
use torture::case::Exchange;
use units::Nanos;

impl Runner<'_> {
    /// The script of an exchange. Where its steps do not say what the parts are of, they are of a plain
    /// request that asks for the end of the connection.
    pub(crate) fn raw_script(&mut self, exchange: &Exchange, steps: Vec<Move>) -> TalkScript {
        let script = self.raw_bare(steps, exchange.deadline);
        TalkScript { methods: exchange.methods.clone(), ..script }
    }

    /// What the server does where no text says what to do.
    pub(crate) fn tell_trait(&mut self, what: String, seen: &str) {
        self.traits.push((what, seen.to_owned()));
    }

    /// These steps, segment by segment.
    pub(crate) fn raw_bare(&mut self, mut steps: Vec<Move>, deadline: Nanos) -> TalkScript {
        let said = |step: &Move| matches!(step, Move::Packet(PacketStep::Stream(_)));
        if !steps.iter().any(said) {
            let plain = habits::plain_request(self.target, "Connection: close\r\n");
            steps.insert(0, Move::Packet(PacketStep::Stream(PacketContent::Bytes(plain))));
        }
        let bare = self.bare(steps, deadline);
        TalkScript { tls_name: None, grace: GRACE, linger: LINGER, ..bare }
    }
}
