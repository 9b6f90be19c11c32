//! Durations, rates, sizes: one parser and one printer for the whole tool, and the splittable
//! seeded generator. Layer 0: no HTTP, sockets or statistics, and no clock.
#![forbid(unsafe_code)]

mod hex;
mod memory;
mod nanos;
mod numbers;
mod parse;
mod seed;
pub mod show;

pub use hex::hex;
pub use memory::room_for_more;
pub use nanos::Nanos;
pub use numbers::{NumberHasher, NumberMap};
pub use parse::{
    DURATION_MAX, ParseError, Rate, RateSpan, parse_count, parse_duration, parse_listen,
    parse_percent, parse_rate, parse_rate_span, parse_share, parse_size, quoted,
};
pub use seed::{Purpose, Seed, Stream};
