//! Emulated network paths: the effect of a link on packets (loss, queue, rate, delay, order), as a
//! state machine of packet descriptors and times. Layer 2: holds no packets, performs no I/O, reads
//! no clock. Its random numbers are a function of seed, link, direction and packet index, so that a
//! packet has the same fate whenever it arrives.
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
mod queue;
mod spec;
mod trace;
mod transmitter;

pub use delay::{Delay, JitterLaw};
pub use describe::describe;
pub use draw::Direction;
pub use link::{Delivery, LinkCounts, PathLink, flip};
pub use loss::Loss;
pub use outage::Outage;
pub use population::{CLIENTS_MAX, PARTS_MAX, Population, PopulationPart};
pub use profiles::{Profile, Throttles, profile, profiles};
pub use queue::{Lost, LostTo};
pub use spec::{
    Ahead, Carrier, CoDel, LinkSpec, PathSpec, QueueLimit, QueuePolicy, QueueSpec, SpecFault,
    WebMarkLaw,
};
pub use trace::{NoTraces, OPPORTUNITY_BYTES, TRACE_LINES_MAX, Trace, TraceFault, TraceSource};
