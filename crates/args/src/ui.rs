//! The options of `ui`.

use super::StoreArgs;
use clap::Args;
use std::net::SocketAddr;

/// Show the results store, and the running test, in a browser
///
/// Serves the browser of this machine, without a login. An address that other machines reach needs
/// the token that is in the printed URL.
#[derive(Args, Clone, Debug)]
pub struct UiArgs {
    /// Where to listen: a port of 127.0.0.1, or ADDRESS:PORT; 0 takes a free port
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = units::parse_listen, default_value = "127.0.0.1:2021")]
    pub listen: SocketAddr,
    #[command(flatten)]
    pub store: StoreArgs,
}
