//! `loadstone.torture-chain/1`: how a proxy forwards requests, and whether the server after it
//! agrees.

use super::{WireBytes, ids};
#[cfg(any(test, feature = "schema"))]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use torture::chain::{ChainResult, ChainRow, DisagreementClass};
use torture::safety::Class;

/// The schema that is written, and the only one that is accepted.
pub const SCHEMA: &str = "loadstone.torture-chain/1";
/// Maximum number of bytes of a message that are shown.
const SHOWN_MAX: usize = 4 << 10;

/// Position in the chain.
#[derive(Clone, Debug)]
pub struct ChainEnds {
    /// The URL of the proxy as typed.
    pub front: String,
    /// The HTTP version used: `1.1`, `2`.
    pub http: &'static str,
    /// Address on which Loadstone listened as the server after the proxy.
    pub origin: Option<String>,
    /// The URL of the server after it.
    pub back: Option<String>,
    /// The strictest class of all their addresses.
    pub class: Class,
}

/// Forwarding of requests by a proxy, and their interpretation by the server after it. Bytes are
/// escaped as in a C string.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct ChainRecord {
    pub schema: String,
    /// Version of the program that tested.
    pub version: String,
    /// The URL of the proxy.
    pub front: String,
    /// The HTTP version used with the proxy: `1.1` or `2`; the proxy forwards in 1.1.
    pub http: String,
    /// Address on which Loadstone listened as the server after the proxy.
    pub origin: Option<String>,
    /// The URL of the server after it.
    pub back: Option<String>,
    /// The strictest class of all their addresses.
    #[serde(with = "ids::class")]
    #[cfg_attr(any(test, feature = "schema"), schemars(schema_with = "ids::class::schema"))]
    pub class: Class,
    pub interrupted: bool,
    /// Reason why nothing, or not everything, was tested.
    pub ended_early: Option<String>,
    /// Requests for which proxy and server would find different ends.
    pub disagreements: u64,
    pub requests: Vec<ChainRequestRecord>,
}

/// One request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct ChainRequestRecord {
    pub name: String,
    /// The two interpretations: `CL.TE`, `chunk extension`.
    #[cfg_attr(
        any(test, feature = "schema"),
        schemars(schema_with = "crate::schema::disagreement")
    )]
    pub pair: String,
    /// The text that defines the interpretation.
    #[serde(rename = "ref")]
    pub reference: String,
    /// Start of the sent bytes.
    pub sent: WireBytes,
    /// The client's response through the proxy.
    pub through: String,
    /// `refused`, `waits`, `made-clear`, `passed-on`, `cut-off`, `split`; null if arrivals were not
    /// recorded.
    #[cfg_attr(any(test, feature = "schema"), schemars(schema_with = "crate::schema::handling"))]
    pub handling: Option<String>,
    /// The beginning of each message that arrived.
    pub arrived: Vec<WireBytes>,
    /// Differences of the first arrived message from the sent one; for an HTTP/2 request, from its
    /// HTTP/1.1 form, preceded by the reason why it is not a single message.
    pub changes: Vec<String>,
    /// Framing rules that the arrived message still violates.
    pub faults: Vec<String>,
    /// The server's response to the arrived message, or to the request itself; null if it was not
    /// sent.
    pub back: Option<String>,
    /// `agrees`, `refuses`, `waits`, `finds-more`, `unlearned`.
    #[cfg_attr(any(test, feature = "schema"), schemars(schema_with = "crate::schema::meeting"))]
    pub meeting: Option<String>,
    /// The proxy may send the next request on the same connection.
    pub reused: bool,
    /// The two find different ends.
    pub disagrees: bool,
    /// The reason as a clause; null if they agree.
    pub why: Option<String>,
}

/// Returns the record of a chain.
pub fn chain_record(ends: &ChainEnds, result: &ChainResult) -> ChainRecord {
    let ChainEnds { front, http, origin, back, class } = ends.clone();
    ChainRecord {
        schema: SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        front,
        http: http.to_owned(),
        origin,
        back,
        class,
        interrupted: result.interrupted,
        ended_early: result.ended_early.clone(),
        disagreements: result.rows.iter().filter(|row| row.disagrees()).count() as u64,
        requests: result.rows.iter().map(row_record).collect(),
    }
}

fn row_record(row: &ChainRow) -> ChainRequestRecord {
    let shown = |bytes: &[u8]| WireBytes(bytes[..bytes.len().min(SHOWN_MAX)].to_vec());
    ChainRequestRecord {
        name: row.request.name.clone(),
        pair: row.request.class.id().to_owned(),
        reference: row.request.reference.clone(),
        sent: shown(&row.sent),
        through: row.front.clone(),
        handling: row.handling.map(|handling| handling.id().to_owned()),
        arrived: row.arrived.iter().map(|arrival| shown(&arrival.bytes)).collect(),
        changes: row.parted.iter().chain(&row.changes).cloned().collect(),
        faults: row.faults.iter().map(|fault| fault.text().to_owned()).collect(),
        back: row.back.as_ref().map(|(seen, _)| seen.clone()),
        meeting: row.back.as_ref().map(|(_, meeting)| meeting.id().to_owned()),
        reused: row.is_reused(),
        disagrees: row.disagrees(),
        why: row.disagrees().then(|| why(row)),
    }
}

fn why(row: &ChainRow) -> String {
    if let Some(why) = &row.out_of_step {
        return format!("through the proxy, {why}");
    }
    let meets = row.back.as_ref().is_some_and(|(_, meeting)| meeting.is_disagreement());
    if let Some(parted) = row.parted.as_ref().filter(|_| !meets) {
        let id = row.request.class.id();
        return format!("{id}: the proxy turned one HTTP/2 request into output that {parted}");
    }
    let verb = row.back.as_ref().map_or("disagrees", |(_, meeting)| meeting.text());
    let pair = match row.request.class {
        DisagreementClass::Control => String::new(),
        class => format!("{}: ", class.id()),
    };
    let hit = match row.is_reused() {
        true => "the proxy keeps the connection, so the next request on it can be another client's",
        false => {
            "the proxy closes the connection after it, so no other client's request follows \
            on it"
        }
    };
    format!("{pair}the proxy sends one request, and the server {verb}; {hit}")
}
