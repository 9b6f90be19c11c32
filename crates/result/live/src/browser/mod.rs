//! The results store in a browser: the list of results, their pages, two results side by side, and
//! a running test. Serves only this machine's browser by default: an address beyond loopback needs
//! a token, other sites' pages can neither read nor change anything, and the pages load nothing
//! from the network.

mod guard;
mod list;
mod live;
mod pages;
mod refusal;
mod routes;
mod server;
mod token;
mod trend;

pub use server::{Ui, UiConfig};
pub use token::Token;

#[cfg(test)]
mod tests;
