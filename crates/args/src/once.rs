//! The options of `once`.

use super::apply::negotiate_version;
use super::options::{SHARED, SharedOptions, SharedRow, SharedRows};
use super::{Disk, Outputs, UsageError};
use clap::Args;
use plan::Plan;

/// Make one call, and show its request and response
///
/// Sends what the first call of a run with the same options sends. Use it to see why a call of a load
/// fails.
#[derive(Args, Clone, Debug)]
pub struct OnceArgs {
    /// What to call: http(s)://host/path, host[:port][/path]
    #[arg(value_name = "URL")]
    url: String,
    #[command(flatten)]
    request: SharedOptions<OnceRequest>,
}

#[derive(Debug)]
enum OnceRequest {}

impl SharedRows for OnceRequest {
    const ROWS: &'static [SharedRow] = &[
        SharedRow { name: "method", ..SHARED },
        SharedRow { name: "header", ..SHARED },
        SharedRow { name: "body", ..SHARED },
        SharedRow { name: "body-file", ..SHARED },
        SharedRow { name: "form", ..SHARED },
        SharedRow { name: "user", ..SHARED },
        SharedRow { name: "bearer", ..SHARED },
        SharedRow { name: "http", ..SHARED },
        SharedRow { name: "timeout", ..SHARED },
        SharedRow { name: "proxy", ..SHARED },
        SharedRow { name: "expect-status", ..SHARED },
        SharedRow { name: "insecure", ..SHARED },
        SharedRow { name: "ca", ..SHARED },
    ];
}

impl OnceArgs {
    /// Returns the plan of a run that starts with this call, and the settings that its options left
    /// open.
    ///
    /// # Errors
    /// Fails without a URL, or for an invalid value.
    pub fn plan(&self) -> Result<(Plan, Outputs), UsageError> {
        let (location, zone) = plan::parse_zoned_url(&self.url)?;
        let mut plan = Plan::for_url(location.url);
        plan.request.auth = location.auth;
        plan.connection.resolve.extend(zone);
        self.request.apply(&mut plan, &Disk)?;
        plan.post_bodies();
        plan::validate(&plan)?;
        let proxy_open = !self.request.has("proxy");
        let version_open = !self.request.has("http");
        if version_open {
            negotiate_version(&mut plan);
        }
        Ok((plan, Outputs { version_open, proxy_open, ..Outputs::default() }))
    }
}
