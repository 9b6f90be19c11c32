//! Emulated paths for real programs: two network namespaces, or this one and another, with a TUN
//! device each and one thread between the two that does to packets what `wan` says. Layer 4.
//!
//! Nothing outlives the process: devices and namespaces are held by descriptors alone, and processes
//! that were started in them are ended by a [`Warden`]. Of the host nothing is changed but a device
//! of our own, where the server is the host's; it goes with the process.
#![deny(unsafe_code)]

mod buffers;
mod check;
mod clock;
mod common;
mod device;
mod forward;
mod lanes;
mod namespace;
mod netlink;
mod packets;
mod path;
mod program;
mod raw;
mod replies;
mod retry;
mod tally;
mod trouble;
mod warden;

pub use check::{CheckLine, check};
pub use common::{CommonLanes, LanesShare};
pub use lanes::{LaneClients, Lanes};
pub use namespace::{Namespace, become_able};
pub use netlink::{LinkFacts, RouteFacts, link, route};
pub use packets::{PacketDevice, PacketKind, later, used_bits};
pub use path::{FarEnd, NetPath, PathAsk, prefix_taken};
pub use program::{Post, await_listener, code, end, start};
pub use retry::while_busy;
pub use tally::Tally;
pub use trouble::PathTrouble;
pub use warden::Warden;
