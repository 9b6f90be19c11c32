//! Emulated paths for real programs: two network namespaces, or the current one and another, with a
//! TUN device each and a thread between the two that applies `wan` to packets. Layer 4.
//!
//! Nothing outlives the process: devices and namespaces are held only by descriptors, and a
//! [`Warden`] ends the processes started in them. The host is not changed except for one device, if
//! the server is on the host; it is removed with the process.
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
pub use namespace::{Namespace, enable_namespaces};
pub use netlink::{LinkFacts, RouteFacts, link, route};
pub use packets::{PacketDevice, PacketKind, later, used_bits};
pub use path::{FarEnd, NetPath, PathRequest, prefix_taken};
pub use program::{Post, await_listener, code, end, start};
pub use retry::retry_while_busy;
pub use tally::Tally;
pub use trouble::PathTrouble;
pub use warden::Warden;
