//! Terms of a fleet's run.

use units::Rate;

/// The most calls a second that all agents together may send to a host: a name or an address.
pub type HostBudget = (String, Rate);

/// Action when an agent is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnLoss {
    /// Stops the other agents: the run is invalid.
    Stop,
    /// The other agents continue; calls due on the lost agent are lost.
    Continue,
    /// The other agents continue, and share the lost part once the agent is certainly silent. For
    /// open loads only.
    Redistribute,
}
