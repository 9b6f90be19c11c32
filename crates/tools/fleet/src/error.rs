//! Errors between the machines of a fleet.

/// One sentence that names the failure and the fix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetError(pub String);

impl FleetError {
    pub(crate) fn new(text: impl Into<String>) -> FleetError {
        FleetError(text.into())
    }
}

impl std::fmt::Display for FleetError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for FleetError {}
