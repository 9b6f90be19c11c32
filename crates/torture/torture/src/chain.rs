//! Two servers in a row: how a proxy changes a request, and whether the server after it sees the
//! same request. If they find different ends, the rest of one client's request becomes the start of
//! another's.

mod arrival;
mod downgrade;
mod meeting;
mod requests;

pub use arrival::{Arrival, Handling, changes};
pub use downgrade::merge_difference;
pub use meeting::Meeting;
pub use requests::{ChainRequest, DisagreementClass, downgrades, requests};

use crate::framing::FramingFault;

/// Result of one request.
#[derive(Clone, Debug)]
pub struct ChainRow {
    pub request: ChainRequest,
    pub sent: Vec<u8>,
    /// Short description of the client's response.
    pub front: String,
    /// Handling of the request by the proxy, or `None` if arrivals were not recorded.
    pub handling: Option<Handling>,
    pub arrived: Vec<Arrival>,
    /// Differences of the first message that arrived from the sent one.
    pub changes: Vec<String>,
    /// Framing rules that the message still violates.
    pub faults: Vec<FramingFault>,
    /// Interpretation by the server of the arrived messages, or of the request itself if arrivals
    /// were not recorded.
    pub back: Option<(String, Meeting)>,
    /// One HTTP/2 request became something other than one message: a clause that describes the
    /// arrival.
    pub parted: Option<String>,
    /// A valid follow-up request through the proxy got a wrong response: what was received.
    pub out_of_step: Option<String>,
}

impl ChainRow {
    /// Returns whether proxy and server disagree about the end of the request.
    pub fn disagrees(&self) -> bool {
        let reached = self.arrived.len() == 1 && !self.arrived[0].cut_off;
        let meets = self.back.as_ref().is_some_and(|(_, meeting)| meeting.is_disagreement());
        reached && meets || self.parted.is_some() || self.out_of_step.is_some()
    }

    /// Returns whether the proxy may reuse the connection, so that the disagreement affects another
    /// client.
    pub fn is_reused(&self) -> bool {
        self.arrived.first().is_some_and(Arrival::may_continue)
    }
}

/// Result of all requests.
#[derive(Clone, Debug, Default)]
pub struct ChainResult {
    pub rows: Vec<ChainRow>,
    pub ended_early: Option<String>,
    pub interrupted: bool,
}

#[cfg(test)]
mod tests;
