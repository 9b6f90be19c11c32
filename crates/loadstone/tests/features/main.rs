//! The binary's options, one at a time, against servers in this process.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its scene has failed")]
#![allow(clippy::float_cmp, reason = "figures compared this way are exact by their making")]

#[path = "../support/mod.rs"]
mod support;

mod calls;
mod connections;
mod gate_pages;
mod grpc;
mod http2;
#[cfg(feature = "h3")]
mod http3;
mod journeys;
mod kernel_batches;
mod load;
mod netpath;
mod norm;
mod outputs;
mod own_stack;
mod peek;
mod program;
mod request;
mod scenarios;
mod script;
mod secure;
mod site;
mod streams;
mod urls;
mod verify;
mod websocket;
#[cfg(feature = "h3")]
mod websocket_http3;
mod workload;
mod xdp;
