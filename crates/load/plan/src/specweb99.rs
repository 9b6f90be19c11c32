//! A load modeled on SPECweb99: simultaneous connections, each paced as if by a line of 400 kbit/s,
//! with the benchmark's mix of operations.

use crate::{Load, Plan, TargetPlan, Think};
use url::Url;
use workload::fileset::specweb99::{Operation, SHARES, directories};

/// Maximum receive rate of a simultaneous connection, in bits per second, heads included
/// (USER_LINE_SPEED).
pub const LINE_BPS: f64 = 400_000.0;
/// Share of failed calls below which a connection conforms.
pub const ERRORS_MAX: f64 = 0.01;
/// Share of the simultaneous connections that must conform for a run to have a score.
pub const CONFORMING_MIN: f64 = 0.95;
/// The first file, which represents all files in the target list.
const FIRST_FILE: &str = "file_set/dir00000/class0_0";
/// Path of the built-in site's dynamic pages, below the folder of the files.
const SCRIPT: &str = "specweb99";
const CGI: &str = "specweb99-cgi";

/// Operations of the load. The targets of its plan are these in the order of [`SHARES`], or only
/// the first one for a load of static files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Specweb99Plan {
    /// Number of directories of the file set: 1 or more.
    pub directories: u32,
    /// Seed of the files' contents and of the advertisements.
    pub files_seed: u64,
}

impl Specweb99Plan {
    /// Sets the plan's load: `connections` simultaneous connections to the files below `folder`,
    /// which ends with a slash.
    ///
    /// # Errors
    /// Fails if the folder does not make a URL.
    pub fn apply(
        plan: &mut Plan,
        folder: &str,
        connections: u32,
        seed: u64,
        dynamic: bool,
    ) -> Result<(), String> {
        let directories = directories(u64::from(connections)) as u32;
        plan.specweb99 = Some(Specweb99Plan { directories, files_seed: seed });
        let target = |operation: Operation| -> Result<TargetPlan, String> {
            let below = match operation {
                Operation::Static => FIRST_FILE,
                Operation::Cgi => CGI,
                Operation::Dynamic | Operation::CustomAd | Operation::Post => SCRIPT,
            };
            let url = Url::parse(&format!("{folder}{below}"));
            let url = url.map_err(|error| format!("{folder}{below}: {error}"))?;
            let name = Some(operation.name().to_owned());
            let method = (operation == Operation::Post).then(|| "POST".to_owned());
            Ok(TargetPlan { name, method, ..TargetPlan::new(url) })
        };
        let rows = if dynamic { SHARES.len() } else { 1 };
        plan.targets =
            SHARES[..rows].iter().map(|(it, _)| target(*it)).collect::<Result<_, _>>()?;
        plan.load = Load::Closed { users: connections, think: Think::None, session: None };
        plan.measure.conforming_counts_heads = true;
        Ok(())
    }

    /// Returns the URL of the folder of the files, with a trailing slash; `None` if the plan's
    /// first target is not the first file.
    pub fn folder(plan: &Plan) -> Option<Url> {
        let mut url = plan.targets.first()?.url.clone();
        let path = url.path().strip_suffix(FIRST_FILE)?.to_owned();
        url.set_path(&path);
        (url.query().is_none() && path.ends_with('/')).then_some(url)
    }
}
