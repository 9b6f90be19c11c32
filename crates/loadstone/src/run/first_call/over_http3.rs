//! The first call over HTTP/3: one stream of one QUIC connection.

use super::{BODY_MAX, BODY_SHOWN_MAX, CallTrouble, told};
use crate::over_quic;
use conduit::{Close, Io, IoError, Peer};
use engine::exchange::OVER_TCP;
use engine::{Endpoint, open_options};
use http3::{Coded, Session, SessionSettings, StreamFacts};
use plan::Plan;
use quic::Quic;
use reactor::Reactor;
use report::FirstCall;
use sample::{FailureClass, http3_code_name};
use units::Nanos;
use workload::Template;

const TRUST: &str = "Trust the certificate's issuer with --ca FILE, or accept any with --insecure.";

/// What came back, where it redirects to, and the streams that the server allows.
type Told = (FirstCall, super::Leads, Option<u32>);

/// # Errors
/// Nobody there who speaks HTTP/3, or no whole response.
pub(super) fn call(
    plan: &Plan,
    endpoint: &mut Endpoint,
    tls: Option<&tls::Client>,
    template: &Template,
) -> Result<Told, CallTrouble> {
    let nobody = || trouble(FailureClass::OtherIo, "no address".to_owned(), false);
    let (Some(client), Some(request)) = (tls, &template.http3) else { return Err(nobody()) };
    let mut failed = None;
    for peer in endpoint.peers.clone() {
        let mut call = Call::open(plan, client, &peer)?;
        match call.exchange(plan, request) {
            Ok((head, body)) => {
                endpoint.peers = vec![peer];
                let facts = call.facts;
                let facts = (facts.status, facts.body_bytes, "3".to_owned());
                let (first, location) = told(template, facts, &head, &body);
                let allowed = call.session.take_facts().streams_max;
                let allowed = allowed.map(|max| u32::try_from(max).unwrap_or(u32::MAX));
                return Ok((first, location, allowed));
            }
            Err(why) if why.connected => return Err(why),
            Err(why) => failed = Some(why),
        }
    }
    Err(failed.unwrap_or_else(nobody))
}

fn trouble(class: FailureClass, text: String, connected: bool) -> CallTrouble {
    let way_out = match class {
        FailureClass::Certificate => Some(TRUST),
        FailureClass::Refused
        | FailureClass::ConnectTimeout
        | FailureClass::Unreachable
        | FailureClass::Protocol
            if !connected =>
        {
            Some(OVER_TCP)
        }
        _ => None,
    };
    CallTrouble { class, text, connected, way_out }
}

struct Call {
    io: Quic<Reactor>,
    name: String,
    session: Session,
    /// The handshake is over.
    connected: bool,
    /// Of the response.
    facts: StreamFacts,
}

const SLOT: conduit::Slot = 0;

/// Bytes read at once.
const READ_SIZE: usize = 16 << 10;

impl Call {
    fn open(plan: &Plan, client: &tls::Client, peer: &Peer) -> Result<Call, CallTrouble> {
        let lacking = |why: std::io::Error| trouble(FailureClass::OtherIo, why.to_string(), false);
        let reactor = Reactor::new(Nanos::ZERO).map_err(lacking)?;
        let carrier = over_quic::carrier(plan, client);
        let none = || trouble(FailureClass::OtherIo, "no QUIC in this plan".to_owned(), false);
        let mut io = carrier.ok_or_else(none)?.over(reactor);
        let name = peer.to_string();
        if let Err(error) = io.open(SLOT, peer, &open_options(plan, 0)) {
            let class = class_of(error);
            return Err(trouble(class, format!("{name}: {}", class.explain()), false));
        }
        let session =
            Session::new(&SessionSettings { keeps_heads: true, ..SessionSettings::default() });
        let facts = StreamFacts::default();
        Ok(Call { io, name, session, connected: false, facts })
    }

    /// The response's head, and the beginning of its body.
    fn exchange(
        &mut self,
        plan: &Plan,
        request: &Coded,
    ) -> Result<(Vec<u8>, Vec<u8>), CallTrouble> {
        let limits = &plan.timeouts;
        let mut out = Vec::new();
        self.session.start(&mut out);
        self.session.ask(request, None, &mut out);
        let (mut ready, mut begun) = (Vec::new(), Vec::new());
        let mut buffer = vec![0; READ_SIZE];
        let mut deadline = (self.io.now() + limits.connect, FailureClass::ConnectTimeout);
        loop {
            if !out.is_empty() && self.write(&mut out)? {
                let now = self.io.now();
                let whole = (now + limits.call, FailureClass::ClientTimeout);
                let first = limits.first_byte.map(|s| (now + s, FailureClass::FirstByteTimeout));
                let still = limits.progress.map(|s| (now + s, FailureClass::ProgressTimeout));
                let all = [Some(whole), first, still].into_iter().flatten();
                deadline = all.min_by_key(|(at, _)| *at).unwrap_or(whole);
            }
            while let Some(count) = self.read(&mut buffer)? {
                if self.take(&buffer[..count], &mut out, &mut begun)? {
                    self.io.close(SLOT, Close::Orderly);
                    return Ok((self.session.head().to_vec(), begun));
                }
            }
            let now = self.io.now();
            if now >= deadline.0 {
                return Err(self.failed(deadline.1));
            }
            if out.is_empty() || !self.connected {
                self.io.wait(deadline.0, &mut ready);
            }
        }
    }

    /// True: these were the first bytes, so the connection stands.
    fn write(&mut self, out: &mut Vec<u8>) -> Result<bool, CallTrouble> {
        match self.io.write(SLOT, out) {
            Ok(count) => {
                out.drain(..count);
                Ok(!std::mem::replace(&mut self.connected, true))
            }
            Err(IoError::WouldBlock) => Ok(false),
            Err(error) => Err(self.failed(class_of(error))),
        }
    }

    fn read(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, CallTrouble> {
        match self.io.read(SLOT, buffer) {
            Ok(0) => Err(self.failed(FailureClass::ClosedEarly)),
            Ok(count) => Ok(Some(count)),
            Err(IoError::WouldBlock) => Ok(None),
            Err(error) => Err(self.failed(class_of(error))),
        }
    }

    /// True: the response is whole, or as much of it as is looked at.
    fn take(
        &mut self,
        input: &[u8],
        out: &mut Vec<u8>,
        begun: &mut Vec<u8>,
    ) -> Result<bool, CallTrouble> {
        let mut at = 0;
        while at < input.len() {
            let rest = &input[at..];
            let fed = self.session.feed(rest, out).map_err(|violation| {
                trouble(FailureClass::Protocol, violation.to_string(), false)
            })?;
            at += fed.consumed;
            if let Some(gone) = self.session.take_gone() {
                let name = http3_code_name(gone.code);
                let by = if gone.by_peer { "the server reset" } else { "we gave up" };
                let text = format!("{by} the stream with {name}");
                return Err(trouble(FailureClass::StreamReset, text, true));
            }
            let Some(part) = self.session.take_part() else { continue };
            let room = BODY_SHOWN_MAX.saturating_sub(begun.len());
            begun.extend(rest[part.body].iter().take(room));
            self.facts = match part.done {
                true => self.session.facts(),
                false => self.session.partial(part.place).unwrap_or_default(),
            };
            if part.done || self.facts.body_bytes > BODY_MAX {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// What is known of a connection that failed.
    fn failed(&mut self, class: FailureClass) -> CallTrouble {
        let why = self.io.quic(SLOT).and_then(|end| end.why);
        let why = why.unwrap_or_else(|| class.explain().to_owned());
        trouble(class, format!("{}: {why}", self.name), self.connected)
    }
}

fn class_of(error: IoError) -> FailureClass {
    match error {
        IoError::Failed(class) => class,
        IoError::WouldBlock => FailureClass::OtherIo,
    }
}
