//! Check plans: what is asked of a site, in order, and what its answers must be. A TOML file
//! becomes a [`CheckPlan`]; what came of it is a [`CheckResult`]. Pure, as the whole crate.

mod model;
mod node;
mod read;
mod result;
mod text;

pub use model::*;
pub use read::{Given, PLAN_BYTES_MAX, from_toml, parse_base};
pub use result::{CheckResult, Difference, State, StepResult};
pub use text::Text;

#[cfg(test)]
mod tests;
