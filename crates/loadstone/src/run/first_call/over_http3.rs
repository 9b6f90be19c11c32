//! The first call over HTTP/3: a single exchange with each of the addresses in turn.

use super::{BODY_SHOWN_MAX, CallTrouble, told};
use crate::{caller, over_quic};
use conduit::Peer;
use engine::exchange::{
    Exchange, Heard, Message, OVER_TCP, Request, ResponseLimits, Terms, Trouble,
};
use engine::{Endpoint, open_options};
use plan::Plan;
use reactor::Reactor;
use report::FirstCall;
use sample::FailureClass;
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
        let message = Message::Http3 { request: request.clone(), cookie: None, last: true };
        let (heard, allowed) = exchange(plan, client, &peer, message)?;
        match heard.result {
            Ok(reply) => {
                endpoint.peers = vec![peer];
                let facts = (reply.facts.status, reply.facts.body_bytes, "3".to_owned());
                let (first, leads) = told(template, facts, &reply.head, &reply.body);
                let allowed = allowed.map(|max| u32::try_from(max).unwrap_or(u32::MAX));
                return Ok((first, leads, allowed));
            }
            Err(why) => {
                let why = named(why, &peer, heard.connected);
                if why.connected {
                    return Err(why);
                }
                failed = Some(why);
            }
        }
    }
    Err(failed.unwrap_or_else(nobody))
}

/// What one address has to say, and the streams that it allows.
fn exchange(
    plan: &Plan,
    client: &tls::Client,
    peer: &Peer,
    message: Message,
) -> Result<(Heard, Option<u64>), CallTrouble> {
    let lacking = |why: String| trouble(FailureClass::OtherIo, why, false);
    let reactor = Reactor::new(Nanos::ZERO).map_err(|why| lacking(why.to_string()))?;
    let carrier = over_quic::carrier(plan, client);
    let mut io = carrier.ok_or_else(|| lacking("no QUIC in this plan".to_owned()))?.over(reactor);
    let limits = &plan.timeouts;
    let request =
        Request { peers: vec![peer.clone()], tls_name: None, message, timeout: limits.call };
    let terms = Terms {
        options: open_options(plan, 0),
        limits: ResponseLimits {
            first_byte: limits.first_byte,
            progress: limits.progress,
            answer: limits.answer,
            body_kept: Some(BODY_SHOWN_MAX),
        },
    };
    let mut machine = Exchange::new(vec![request], limits.connect, None).under(terms);
    caller::until_told(&mut machine, &mut io);
    let allowed = machine.streams_max(0);
    let heard = machine.finish().pop();
    Ok((heard.ok_or_else(|| lacking("no address".to_owned()))?, allowed))
}

/// What goes wrong with a connection is told with its address; what goes wrong on a stream is not.
fn named(why: Trouble, peer: &Peer, connected: bool) -> CallTrouble {
    let Trouble { class, text, .. } = why;
    let name = peer.to_string();
    let text = match class {
        FailureClass::Protocol | FailureClass::StreamReset | FailureClass::StreamRefused => text,
        // the options by their names, which this call has from a plan
        FailureClass::ClientTimeout => format!("{name}: {}", class.explain()),
        _ if text.starts_with(&name) => text,
        _ => format!("{name}: {text}"),
    };
    trouble(class, text, connected && class != FailureClass::Protocol)
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
