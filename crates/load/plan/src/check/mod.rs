//! Check plans: what is asked of a site, in order, and what its responses must be. A TOML file
//! becomes a [`CheckPlan`]; what came of it is a [`CheckResult`]. Pure, as the whole crate.

mod json;
mod model;
pub(crate) mod node;
pub(crate) mod read;
mod result;
mod text;

pub use json::JsonPlace;
pub use model::*;
pub use read::{Given, PLAN_BYTES_MAX, from_toml, parse_base};
pub use result::{CheckResult, Difference, State, StepResult};
pub(crate) use text::Marks;
pub use text::{Fill, Text, ValueSource};

#[cfg(test)]
mod tests;
