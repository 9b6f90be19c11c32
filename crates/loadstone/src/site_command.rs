//! `loadstone site`: the reference server in the foreground.

use crate::exit::{Code, Failure};
use std::time::Duration;

/// Serves until a signal comes or the site ends by its own rule.
pub(crate) fn serve(config: site::Config) -> Result<Code, Failure> {
    // its connections count against the soft limit: raise it as far as it goes
    host::raise_descriptors(host::limits::descriptors().hard).ok();
    let site = site::Site::start(config).map_err(|error| Failure::usage(error.to_string()))?;
    crate::files::write_stdout(&format!("{}\n", site.url()))
        .map_err(|error| Failure::not_written(&error))?;
    while crate::signals::caught() == 0 {
        if site.wait(Duration::from_millis(50)) {
            break;
        }
    }
    let lateness = site.lateness();
    let served = site.stop().map_err(|error| Failure::usage(error.to_string()))?;
    crate::say(&format!(
        "served {} requests on {} connections",
        units::show::count(served.requests),
        units::show::count(served.connections)
    ));
    if lateness.answers > 0 {
        crate::say(&format!(
            "answers were late by p50 {}, p99 {}, max {}",
            units::show::duration(lateness.p50),
            units::show::duration(lateness.p99),
            units::show::duration(lateness.max)
        ));
    }
    Ok(Code::Done)
}
