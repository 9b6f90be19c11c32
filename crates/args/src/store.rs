//! The store option of the commands that measure or read measurements.

use clap::Args;
use store::StorePlace;
use units::ParseError;

#[derive(Args, Clone, Debug, Default)]
pub struct StoreArgs {
    /// Where to store the result: a file, :memory: or none [default: runs.db in the user's data
    /// directory, or $LOADSTONE_STORE]
    #[arg(long, value_name = "PLACE", value_parser = place, hide_short_help = true)]
    pub store: Option<StorePlace>,
}

fn place(text: &str) -> Result<StorePlace, ParseError> {
    if text.is_empty() {
        return Err(ParseError("the file name is empty; to store nothing, write none".to_owned()));
    }
    Ok(StorePlace::parse(text))
}
