//! The results store in a browser: a list of what is stored, its pages, two results side by side, and
//! a running test while it goes on. Serves this machine's browser and nobody else: an address beyond
//! loopback needs a token, foreign pages can neither read nor change anything, and the pages ask
//! nothing of the network.

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
