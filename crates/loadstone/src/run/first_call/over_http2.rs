//! The first call over HTTP/2: one stream of one connection.

use super::{BODY_MAX, BODY_SHOWN_MAX, Call, CallTrouble};
use engine::exchange::{SPEAK_HTTP1, not_http2};
use http2::{Request, Session, SessionSettings, StreamFacts, code_name};
use plan::Plan;
use sample::FailureClass;

/// What came back: its facts, its head as HTTP/1 would write it, and the beginning of its body.
pub(super) type Response = (StreamFacts, Vec<u8>, Vec<u8>);

impl Call {
    /// # Errors
    /// TLS agreed on another protocol, or what came is no HTTP/2.
    pub(super) fn exchange_http2(
        &mut self,
        plan: &Plan,
        request: &Request,
    ) -> Result<Response, CallTrouble> {
        self.hold_agreement()?;
        let mut session =
            Session::new(&SessionSettings { keeps_heads: true, ..SessionSettings::default() });
        let mut out = Vec::new();
        session.ask(request, None, &mut out);
        self.send(&out)?;
        self.expect_response(plan);
        let mut begun = Vec::new();
        loop {
            let input = std::mem::take(&mut self.plain);
            let mut at = 0;
            while at < input.len() {
                let rest = &input[at..];
                let fed = session.feed(rest).map_err(refused)?;
                at += fed.consumed;
                self.send_from(&mut session)?;
                if let Some(why) = session.violation() {
                    return Err(refused(why));
                }
                if let Some(gone) = session.take_gone() {
                    return Err(reset(gone.code));
                }
                let Some(part) = session.take_part() else { continue };
                let room = BODY_SHOWN_MAX.saturating_sub(begun.len());
                begun.extend(rest[part.body].iter().take(room));
                if part.done {
                    self.streams_max = session.take_facts().streams_max;
                    return Ok((session.facts(), session.head().to_vec(), begun));
                }
            }
            let so_far = session.partial(0).unwrap_or_default();
            if so_far.body_bytes > BODY_MAX {
                return Ok((so_far, session.head_of(0).to_vec(), begun));
            }
            if self.ended {
                let class = FailureClass::ClosedEarly;
                return Err(CallTrouble {
                    class,
                    text: class.explain().to_owned(),
                    connected: true,
                    way_out: None,
                });
            }
            self.fill()?;
        }
    }

    /// Over TLS the server must have chosen HTTP/2.
    fn hold_agreement(&self) -> Result<(), CallTrouble> {
        let Some(session) = &self.session else { return Ok(()) };
        let chosen = session.facts().map(|facts| facts.alpn).unwrap_or_default();
        match not_http2(&chosen) {
            Some(trouble) => Err(CallTrouble::from_exchange(trouble, false)),
            None => Ok(()),
        }
    }

    fn send_from(&mut self, session: &mut Session) -> Result<(), CallTrouble> {
        let mut out = Vec::new();
        session.drain(&mut out);
        self.send(&out)
    }
}

/// Nothing can be measured on such a connection.
fn refused(text: String) -> CallTrouble {
    let class = FailureClass::Protocol;
    CallTrouble { class, text, connected: false, way_out: Some(SPEAK_HTTP1) }
}

fn reset(code: u32) -> CallTrouble {
    let class = FailureClass::StreamReset;
    let text = format!("the server reset the stream with {}", code_name(code));
    CallTrouble { class, text, connected: true, way_out: None }
}
