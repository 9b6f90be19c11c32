//! The options of `demo` and `calibrate`.

use super::options::{SHARED, SharedOptions, SharedRow, SharedRows};
use super::{Disk, Outputs, Sink, UsageError, parse};
use clap::{Args, ValueEnum};
use plan::{Gaps, Load, Plan};
use std::path::PathBuf;
use units::{Nanos, Rate};
use url::Url;

/// Start the built-in site, measure it and show the report
///
/// The site listens on a free loopback port, is measured under an open load, and is stopped
/// afterwards.
#[derive(Args, Clone, Debug)]
pub struct DemoArgs {
    /// stall: a server that freezes, measured by wrk and ab, where installed, and by Loadstone
    #[arg(
        value_enum,
        value_name = "SCENE",
        conflicts_with_all = ["duration", "rate", "html", "json", "quiet", "live", "store"]
    )]
    pub scene: Option<DemoScene>,
    #[command(flatten)]
    load: SharedOptions<DemoLoad>,
    /// Write the report as an HTML page
    #[arg(long, value_name = "FILE", default_value = "loadstone-demo.html")]
    pub html: PathBuf,
    /// Write the full result as JSON; with -, to standard output and nothing else
    #[arg(long, value_name = "FILE|-", value_parser = parse::sink)]
    pub json: Option<Sink>,
    /// Print the verdict and the headline only
    #[arg(short = 'q', long)]
    pub quiet: bool,
    /// Show a full-screen live view; q stops the run
    #[arg(long, conflicts_with = "quiet")]
    pub live: bool,
    #[command(flatten)]
    pub store: super::StoreArgs,
}

/// A demonstration of one topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DemoScene {
    Stall,
}

/// Duration, and calls per second: a constant rate.
#[derive(Debug)]
enum DemoLoad {}

impl SharedRows for DemoLoad {
    const ROWS: &'static [SharedRow] = &[
        SharedRow { name: "duration", default: Some("5s"), ..SHARED },
        SharedRow {
            name: "rate",
            help: Some("Calls per second"),
            default: Some("1000/s"),
            narrower: Some(|text| units::parse_rate(text).map(drop)),
            ..SHARED
        },
    ];
}

impl DemoArgs {
    /// Returns the load to announce: calls per second, and duration.
    pub fn extent(&self) -> (Rate, Nanos) {
        self.load.value(|plan| {
            let rate = match &plan.load {
                Load::Open { arrivals, .. } => arrivals.from,
                Load::Closed { .. } => Rate(0.0),
            };
            (rate, plan.stop.duration.unwrap_or_default())
        })
    }

    /// Returns a plan of independent users: Poisson arrivals, after a second of warm-up.
    ///
    /// # Errors
    /// Fails for an invalid rate or duration.
    pub fn into_plan(self, url: Url) -> Result<(Plan, Outputs), UsageError> {
        let name = url.to_string();
        let mut plan = Plan::for_url(url);
        self.load.apply(&mut plan, &Disk)?;
        if let Load::Open { arrivals, .. } = &mut plan.load {
            arrivals.gaps = Gaps::Poisson;
        }
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
/// against the built-in null server. The result is kept in the user's state directory and lets
/// later runs report the client's part of a figure.
#[derive(Args, Clone, Debug)]
pub struct CalibrateArgs {
    #[command(flatten)]
    step: SharedOptions<CalibrateStep>,
    /// Do not store the result
    #[arg(long)]
    pub no_save: bool,
    /// Write the result as JSON; with -, to standard output and nothing else
    #[arg(long, value_name = "FILE|-", value_parser = parse::sink)]
    pub json: Option<Sink>,
}

#[derive(Debug)]
enum CalibrateStep {}

impl SharedRows for CalibrateStep {
    const ROWS: &'static [SharedRow] = &[SharedRow {
        name: "duration",
        help: Some("Duration of each step"),
        default: Some("2s"),
        ..SHARED
    }];
}

impl CalibrateArgs {
    /// Duration of a step.
    pub fn step(&self) -> Nanos {
        self.step.value(|plan| plan.stop.duration.unwrap_or_default())
    }

    /// # Errors
    /// Fails for a step too short to measure anything, or too long to wait for.
    pub fn check(&self) -> Result<(), UsageError> {
        const STEP_MIN: Nanos = Nanos::from_millis(100);
        const STEP_MAX: Nanos = Nanos::from_secs(60);
        if !(STEP_MIN..=STEP_MAX).contains(&self.step()) {
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
