//! The options of `demo` and `calibrate`.

use super::{Outputs, Sink, UsageError, parse};
use clap::Args;
use plan::{Arrivals, Gaps, Load, Plan};
use std::path::PathBuf;
use units::{Nanos, Rate};
use url::Url;

/// Start the built-in site, measure it and show the report
///
/// The site listens on a free loopback port, is measured under an open load, and is stopped
/// afterwards.
#[derive(Args, Clone, Debug)]
pub(crate) struct DemoArgs {
    /// Duration of the measured part
    #[arg(short = 'd', long, value_name = "TIME", value_parser = units::parse_duration, default_value = "5s")]
    pub(crate) duration: Nanos,
    /// Calls per second
    #[arg(long, value_name = "RATE", value_parser = units::parse_rate, default_value = "1000/s")]
    pub(crate) rate: Rate,
    /// Write the report as an HTML page
    #[arg(long, value_name = "FILE", default_value = "loadstone-demo.html")]
    pub(crate) html: PathBuf,
    /// Write the full result as JSON; with -, to standard output and nothing else
    #[arg(long, value_name = "FILE|-", value_parser = parse::sink)]
    pub(crate) json: Option<Sink>,
    /// Print the verdict and the headline only
    #[arg(short = 'q', long)]
    pub(crate) quiet: bool,
    /// Show a full-screen live view; q stops the run
    #[arg(long, conflicts_with = "quiet")]
    pub(crate) live: bool,
    #[command(flatten)]
    pub(crate) store: super::StoreArgs,
}

impl DemoArgs {
    /// Users who know nothing of each other: Poisson arrivals, after a second of warm-up.
    ///
    /// # Errors
    /// A rate or a duration that cannot be.
    pub(crate) fn into_plan(self, url: Url) -> Result<(Plan, Outputs), UsageError> {
        let name = url.to_string();
        let mut plan = Plan::for_url(url);
        plan.load = Load::Open {
            arrivals: Arrivals { gaps: Gaps::Poisson, ..Arrivals::constant(self.rate) },
            session: None,
            connections_max: None,
            queue_max: None,
        };
        plan.stop.duration = Some(self.duration);
        plan.stop.warm_up = Nanos::SECOND;
        plan::validate(&plan)?;
        let outputs = Outputs {
            name,
            json: self.json,
            html: Some(self.html),
            quiet: self.quiet,
            live: self.live,
            store: self.store.store,
            ..Outputs::default()
        };
        outputs.check()?;
        Ok((plan, outputs))
    }
}

/// Measure how fast and how punctual this machine is as a client
///
/// Measures calls per second and core, punctuality at several rates, and connections per second
/// against the built-in null server. The result is kept in the user's state directory and tells
/// later runs which part of a figure is the client's own.
#[derive(Args, Clone, Debug)]
pub(crate) struct CalibrateArgs {
    /// Duration of each step
    #[arg(short = 'd', long, value_name = "TIME", value_parser = units::parse_duration, default_value = "2s")]
    pub(crate) duration: Nanos,
    /// Do not store the result
    #[arg(long)]
    pub(crate) no_save: bool,
    /// Write the result as JSON; with -, to standard output and nothing else
    #[arg(long, value_name = "FILE|-", value_parser = parse::sink)]
    pub(crate) json: Option<Sink>,
}

impl CalibrateArgs {
    /// # Errors
    /// A step too short to measure anything, or too long to wait for.
    pub(crate) fn check(&self) -> Result<(), UsageError> {
        const STEP_MIN: Nanos = Nanos::from_millis(100);
        const STEP_MAX: Nanos = Nanos::from_secs(60);
        if !(STEP_MIN..=STEP_MAX).contains(&self.duration) {
            return Err(UsageError::new("-d is the length of a step here; give 100ms to 60s"));
        }
        match &self.json {
            Some(Sink::File(path)) if path.as_os_str().is_empty() => {
                Err(UsageError::new("--json needs the name of a file"))
            }
            _ => Ok(()),
        }
    }
}
