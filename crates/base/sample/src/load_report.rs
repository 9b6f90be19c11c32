//! Load of a back end as it reports it with a response (ORCA, `xds.data.orca.v3.OrcaLoadReport`).

/// Load report. A figure of 0 means that the report lacks it, as in the format itself.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LoadReport {
    /// Share of the CPU in use, 1 if all of it; servers that count cores may exceed 1.
    pub cpu: f64,
    /// Share of the memory in use.
    pub memory: f64,
    /// Share of the application's own measure of its capacity.
    pub application: f64,
    pub requests_per_s: f64,
    pub errors_per_s: f64,
}
