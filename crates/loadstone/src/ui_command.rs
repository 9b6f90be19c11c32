//! `loadstone ui`: the store in a browser, until a signal.

use crate::exit::{Code, Failure};
use args::UiArgs;
use live::browser::{Ui, UiConfig};
use std::time::Duration;

/// Poll interval for signals.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

pub(crate) fn ui(args: UiArgs) -> Result<Code, Failure> {
    let place = crate::run::keeping::requested_store(args.store.store.as_ref()).unwrap_or_default();
    // a store in memory is empty when its program has ended
    let file = place.file().map_err(|error| Failure::usage(error.to_string()))?;
    if file.is_none() {
        return Err(Failure::usage(
            "a store in memory, or none, has nothing to show; give the file with --store FILE",
        ));
    }
    let config = UiConfig { listen: args.listen, place };
    let ui = Ui::start(config).map_err(|error| Failure::usage(format!("{error:#}")))?;
    crate::files::write_stdout(&format!("{}\n", ui.url()))
        .map_err(|error| Failure::not_written(&error))?;
    while crate::signals::received_signal() == 0 {
        if ui.wait(POLL_INTERVAL) {
            return Err(Failure::usage("the server has ended; this is a bug"));
        }
    }
    Ok(Code::Done)
}
