//! HTTP/1.x as a client sees it, without I/O: requests rendered once into bytes, responses read out of
//! whatever pieces the transport delivers, header fields, content codings. Layer 2: pure.
//!
//! Refuses: sockets, clocks, retries, redirects, and requests that would break their own framing.
//! Invariants: no input byte panics; no call consumes more than it was given; every buffer has a
//! bound; how the input was cut into pieces never changes what is read from it.

pub mod coding;
pub mod events;
pub mod fields;
pub mod multipart;
pub mod request;
pub mod response;
pub mod timing;
