//! Paths through an emulated Internet: what a link does to packets (loss, queue, rate, delay, order),
//! as a machine of descriptors and instants. Layer 2: holds no packet, opens nothing, reads no
//! clock. What it draws is a function of seed, link, direction and packet index, so that the same
//! packets get the same fate whenever they come.
#![forbid(unsafe_code)]

mod codel;
mod delay;
mod describe;
mod draw;
mod link;
mod loss;
mod number;
mod outage;
mod population;
mod profiles;
mod spec;
mod trace;
mod transmitter;

pub use codel::CoDel;
pub use delay::{Delay, JitterLaw};
pub use describe::describe;
pub use draw::Direction;
pub use link::{Delivery, LinkCounts, Lost, LostTo, PathLink, flip};
pub use loss::Loss;
pub use outage::Outage;
pub use population::{CLIENTS_MAX, PARTS_MAX, Population, PopulationPart};
pub use profiles::{Profile, Throttles, profile, profiles};
pub use spec::{
    Ahead, Carrier, LinkSpec, PathSpec, QueueLimit, QueuePolicy, QueueSpec, SpecFault, WebMarkLaw,
};
pub use trace::{NoTraces, OPPORTUNITY_BYTES, TRACE_LINES_MAX, Trace, TraceFault, TraceSource};
