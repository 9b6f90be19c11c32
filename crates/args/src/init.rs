//! The options of `init`.

use super::recorded::plan_from_curl;
use super::{Disk, Sink, UsageError, parse};
use clap::Args;
use plan::Plan;
use std::path::Path;

/// Extensions of files that only `workload import` reads.
const IMPORTED: [&str; 6] = ["har", "json", "yaml", "yml", "jmx", "http"];

/// Write a plan for a URL, with comments, that runs unchanged
///
/// Takes a URL, or a curl command in quotes as a browser's developer tools copy it. The plan has an
/// objective on the p99 and one on failures, and names the settings that are changed most. Also
/// takes a file that `loadstone workload import` reads: HAR, OpenAPI, Postman, JMeter and others.
#[derive(Args, Clone, Debug)]
pub struct InitArgs {
    /// A URL, a curl command in quotes, or a file of another tool
    #[arg(value_name = "URL|'curl …'|FILE")]
    start: String,
    /// Write the plan here; with -, to standard output
    #[arg(
        short = 'o',
        long,
        value_name = "FILE|-",
        value_parser = parse::sink,
        default_value = "loadstone.toml"
    )]
    pub output: Sink,
    /// Replace FILE if it exists
    #[arg(long)]
    pub force: bool,
}

impl InitArgs {
    /// Returns the file to import, if the argument is a file or looks like one. A plan file is
    /// refused, with its own message.
    pub fn file(&self) -> Option<&str> {
        let path = Path::new(&self.start);
        let ending = path.extension().unwrap_or_default().to_string_lossy();
        // with one of these it may be a URL or a command
        let is_named_so = IMPORTED.contains(&&*ending) && !self.start.contains([':', '/', ' ']);
        let is_file = ending != "toml" && path.is_file();
        (is_file || is_named_so).then_some(self.start.as_str())
    }

    /// Returns a plan of the calls, with defaults for all other settings.
    ///
    /// # Errors
    /// Fails without a URL, or for a curl command that a plan cannot express.
    pub fn plan(&self) -> Result<Plan, UsageError> {
        let start = self.start.trim();
        if start.split_whitespace().next() == Some("curl") {
            return plan_from_curl(start, &Disk);
        }
        let (location, zone) = plan::parse_zoned_url(start)?;
        let mut plan = Plan::for_url(location.url);
        plan.request.auth = location.auth;
        plan.connection.resolve.extend(zone);
        Ok(plan)
    }
}
