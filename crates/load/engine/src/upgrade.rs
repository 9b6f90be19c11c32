//! The upgrade from HTTP/1.1 to WebSocket, as header fields of a request.

use plan::Plan;
use websocket::handshake::ClientOffer;

pub(crate) use workload::SOCKET_KEY_MARK as KEY_MARK;

/// Returns the fields that request the upgrade, with a key in place of the connection's.
pub(crate) fn upgrade_fields(plan: &Plan) -> Vec<(String, String)> {
    fields_of(&offer(plan), KEY_MARK)
}

/// Returns the fields that request an upgrade with these offers.
pub(crate) fn fields_of(offer: &ClientOffer, key: &str) -> Vec<(String, String)> {
    let mut bytes = Vec::new();
    offer.write_fields(key, &mut bytes);
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let pair =
        |line: &str| line.split_once(": ").map(|(name, value)| (name.to_owned(), value.to_owned()));
    text.lines().filter_map(pair).collect()
}

/// Offers of the upgrade.
pub(crate) fn offer(plan: &Plan) -> ClientOffer {
    ClientOffer {
        subprotocols: plan.websocket_subprotocols(),
        deflate: plan.websocket.compress.then(Default::default),
    }
}
