//! The WebSocket that a step opens, and the moves on it.

use super::judge::content_differs;
use super::prepare::{Assembled, content};
use crate::exchange::{SocketMove, SocketTalk};
use crate::upgrade::fields_of;
use plan::check::{Ask, Body, Content, TalkMove};
use std::collections::BTreeMap;
use std::sync::Arc;
use units::Stream;
use websocket::handshake::{self, ClientOffer};
use workload::{AwaitedMessages, MessageFilter};

/// An upgrade: its key, its offers, and the seed of the masks.
pub(super) struct Upgrade {
    key: String,
    offer: ClientOffer,
    masks: u64,
}

/// Turns a request into a WebSocket upgrade with a fresh key (RFC 6455 section 4.1) and a fresh
/// seed for the masks (section 5.3).
///
/// # Errors
/// Fails if the step has a field that the upgrade has itself.
pub(super) fn upgrade(made: &mut Assembled, nonces: &mut Stream) -> Result<Upgrade, String> {
    let is_subprotocol = |name: &str| name.eq_ignore_ascii_case("sec-websocket-protocol");
    let is_own = |name: &str| {
        let name = name.to_ascii_lowercase();
        matches!(&*name, "upgrade" | "connection") || name.starts_with("sec-websocket-")
    };
    let own = made.headers.iter().find(|(name, _)| is_own(name) && !is_subprotocol(name));
    if let Some((name, _)) = own {
        return Err(format!("{name} is set by the WebSocket upgrade itself; drop it"));
    }
    let offered = made.headers.iter().filter(|(name, _)| is_subprotocol(name));
    let names = offered.flat_map(|(_, value)| value.split(',')).map(|name| name.trim().to_owned());
    let offer = ClientOffer { subprotocols: names.collect(), deflate: None };
    let [high, low, masks] = [(); 3].map(|()| nonces.next_u64());
    let key = handshake::key((u128::from(high) << 64 | u128::from(low)).to_le_bytes());
    // the subprotocols are among the step's fields
    made.headers.extend(fields_of(&ClientOffer::default(), &key));
    // connections are identified by HTTP schemes: wss becomes https
    let scheme = if made.url.scheme() == "wss" { "https" } else { "http" };
    made.url.set_scheme(scheme).map_err(|()| format!("{} is not a WebSocket URL", made.url))?;
    Ok(Upgrade { key, offer, masks })
}

/// Returns the moves of a step, with all values inserted.
///
/// # Errors
/// Fails if a value is missing.
pub(super) fn talk(
    Upgrade { key, offer, masks }: Upgrade,
    upgrade: Vec<u8>,
    ask: &Ask,
    captured: &BTreeMap<String, String>,
) -> Result<SocketTalk, String> {
    let values = Arc::new(captured.clone());
    let made = |it: &TalkMove| {
        Ok(match it {
            TalkMove::Send(body) => SocketMove::Send {
                text: !matches!(body, Body::Bytes(_)),
                payload: content(body, captured, &mut Vec::new())?.unwrap_or_default(),
            },
            TalkMove::Expect { matching, count } => SocketMove::Expect(AwaitedMessages {
                filter: Some(Arc::new(MoveFilter {
                    matching: matching.clone(),
                    captured: values.clone(),
                })),
                count: *count,
            }),
            TalkMove::Close(code) => SocketMove::Close(*code),
            TalkMove::Closed(code) => SocketMove::Closed(*code),
        })
    };
    let moves = ask.talk.iter().map(made).collect::<Result<_, String>>()?;
    Ok(SocketTalk { upgrade, key, masks, offer, moves, version: ask.version })
}

/// Messages that a move waits for.
#[derive(Debug)]
struct MoveFilter {
    matching: Content,
    captured: Arc<BTreeMap<String, String>>,
}

impl MessageFilter for MoveFilter {
    fn takes(&self, payload: &[u8]) -> bool {
        !content_differs(&self.matching, payload, &*self.captured)
    }
}
