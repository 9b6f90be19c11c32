//! The plan file: a [`Plan`](crate::Plan) as TOML and back.
//!
//! The printed form names every field; in a file that is read, fields that equal `run`'s defaults
//! may be omitted. Quantities are strings in the options' grammar (`"10s"`, `"2000/s"`, `"64k"`)
//! or, except for times, plain numbers; `false` means no limit or absence. The types here belong to
//! the file, not the plan, so that the plan can change without breaking files of [`VERSION`].

mod keys;
mod read;
mod scenarios;
mod shape;
mod write;

#[cfg(test)]
pub(crate) use keys::TABLES;
pub use read::{from_masked_toml, from_toml};
pub use write::{identity, to_brief_toml, to_toml};

/// The version of the format; a file begins with it.
pub const VERSION: i64 = 1;

#[cfg(test)]
mod tests;
