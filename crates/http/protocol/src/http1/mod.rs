//! HTTP/1.x from the client's side, without I/O: requests rendered once into bytes, responses
//! parsed from pieces of any size, header fields, content codings. Layer 2: pure.
//!
//! Excludes sockets, clocks, retries, redirects, and requests that would break their own framing.
//! Invariants: no input byte panics; no call consumes more than it was given; every buffer has a
//! bound; the cuts between input pieces never change the result.

pub mod coding;
pub mod events;
pub mod fields;
pub mod multipart;
pub mod request;
pub mod response;
pub mod timing;
