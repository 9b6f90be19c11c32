//! Two in a row: what a proxy makes of a request, and whether the server behind it finds the same request in
//! what the proxy sends. Where they find different ends, the rest of one client's request becomes the
//! beginning of another's.

mod arrival;
mod downgrade;
mod meeting;
mod requests;

pub use arrival::{Arrival, Handling, changes};
pub use downgrade::parted;
pub use meeting::Meeting;
pub use requests::{ChainRequest, DisagreementClass, downgrades, requests};

use crate::framing::FramingFault;

/// What came of one request.
#[derive(Clone, Debug)]
pub struct ChainRow {
    pub request: ChainRequest,
    pub sent: Vec<u8>,
    /// What the client got, in a few words.
    pub front: String,
    /// The proxy's own part in it; `None` where nobody saw what arrived.
    pub handling: Option<Handling>,
    pub arrived: Vec<Arrival>,
    /// How the first message that arrived differs from what was sent.
    pub changes: Vec<String>,
    /// Rules of framing that it still breaks.
    pub faults: Vec<FramingFault>,
    /// What the server made of it: of what arrived where that was seen, else of the request itself.
    pub back: Option<(String, Meeting)>,
    /// One request of HTTP/2 has become something else than one message: what, as a clause about what
    /// arrived.
    pub parted: Option<String>,
    /// A valid request behind it, through the proxy, was not answered as it should: what came.
    pub out_of_step: Option<String>,
}

impl ChainRow {
    /// Proxy and server disagree where it ends.
    pub fn disagrees(&self) -> bool {
        let reached = self.arrived.len() == 1 && !self.arrived[0].cut_off;
        let meets = self.back.as_ref().is_some_and(|(_, meeting)| meeting.is_disagreement());
        reached && meets || self.parted.is_some() || self.out_of_step.is_some()
    }

    /// The proxy may send the next request on the same connection: the disagreement meets another client.
    pub fn is_reused(&self) -> bool {
        self.arrived.first().is_some_and(Arrival::may_go_on)
    }
}

/// What came of them all.
#[derive(Clone, Debug, Default)]
pub struct ChainResult {
    pub rows: Vec<ChainRow>,
    pub ended_early: Option<String>,
    pub interrupted: bool,
}

#[cfg(test)]
mod tests;
