//! Check plans: ordered requests to a site, and requirements on its responses. A TOML file becomes
//! a [`CheckPlan`]; its result is a [`CheckResult`]. Pure, like the whole crate.

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
