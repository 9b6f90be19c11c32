//! Outputs of synthetic runs: data in, text out.

mod across;
mod check;
mod compare;
mod curves;
mod fixtures;
mod formats;
mod markdown;
mod page;
mod ramp;
mod schema;
mod screen;
mod sessions;
mod torture;
mod torture_diff;
mod tortures;
mod watching;
