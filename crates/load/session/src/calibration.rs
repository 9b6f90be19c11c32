//! Client capacity of this machine: stored by host, kernel, CPU and version in the user's state
//! directory, created by `calibrate`, used by the verdict and by the report's line on the dummy
//! run.

use plan::Plan;
use sample::Environment;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Maximum performance of one core of this machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Calibration {
    pub schema: String,
    pub host: String,
    pub kernel: String,
    pub cpu_model: String,
    pub version: String,
    pub taken_unix_s: f64,
    /// Calls per second of one worker on open connections, against the null server.
    pub calls_per_s: f64,
    /// CPU seconds of the client per call.
    pub cpu_per_call_s: f64,
    /// Connections per second of one worker, one call each.
    pub connections_per_s: f64,
    /// Median service time of one user's call: combined cost of client, loopback and null server.
    pub call_p50_s: f64,
    pub punctuality: Vec<Punctuality>,
    /// Reasons why the calibration is unreliable; a calibration from a busy machine is never
    /// stored.
    #[serde(default)]
    pub doubts: Vec<String>,
}

/// Lateness of calls at one rate.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Punctuality {
    pub rate_per_s: f64,
    pub offered_per_s: f64,
    pub lag_p50_s: f64,
    pub lag_p99_s: f64,
    pub lag_max_s: f64,
}

pub const SCHEMA: &str = "loadstone.calibrate/1";

impl Calibration {
    /// Returns the path of this machine's calibration; `None` without a home.
    pub fn path() -> Option<PathBuf> {
        host::state_dir().map(|folder| folder.join("calibration.json"))
    }

    /// Returns the current calibration of this machine; a calibration of another kernel or version
    /// is ignored.
    pub fn load(environment: &Environment) -> Option<Calibration> {
        let known: Option<Calibration> = host::state::load_json(&Self::path()?).ok()?;
        let sound = |known: &Calibration| known.schema == SCHEMA && known.doubts.is_empty();
        known.filter(|known| sound(known) && known.fits(environment))
    }

    pub fn fits(&self, environment: &Environment) -> bool {
        self.host == environment.host
            && self.kernel == environment.kernel
            && self.cpu_model == environment.cpu_model
            && self.version == environment.version
    }

    /// Returns a throughput as a share of this machine's ceiling, from 0; only for calibrated
    /// settings: plain HTTP/1 without pipelining.
    pub fn share_of_ceiling(&self, plan: &Plan, per_s: f64, workers: u32) -> f64 {
        let plain = plan.targets.iter().all(|target| target.url.scheme() == "http");
        let piped = plan.connection.pipeline > 1
            || plan.connection.group.is_some()
            || plan.request.version.has_streams();
        if !plain || piped || !plan.is_closed() {
            return 0.0;
        }
        let one = plan.connection.calls == Some(1);
        let ceiling = if one { self.connections_per_s } else { self.calls_per_s };
        if ceiling > 0.0 { per_s / (ceiling * f64::from(workers)) } else { 0.0 }
    }
}
