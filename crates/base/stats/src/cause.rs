//! Reasons why a run is not plainly valid, each under a stable name.

macro_rules! causes {
    ($($(#[$doc:meta])* $name:ident = $id:literal,)*) => {
        /// Identity of a [`Cause`](crate::Cause): its stable name in JSON, in stored results and in
        /// texts.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum CauseId { $($(#[$doc])* $name,)* }

        impl CauseId {
            pub const ALL: &[CauseId] = &[$(CauseId::$name,)*];

            /// Returns a stable name: `not-offered`.
            pub fn id(self) -> &'static str {
                match self { $(CauseId::$name => $id,)* }
            }
        }
    };
}

causes! {
    /// Fewer calls were offered than the plan intended.
    NotOffered = "not-offered",
    /// The client's lateness may have decided the result.
    Slip = "slip",
    /// There was no free local port.
    Ports = "ports",
    /// There was no free file descriptor.
    Descriptors = "descriptors",
    /// No call succeeded.
    AllFailed = "all-failed",
    /// Packets were lost to the emulation of a path, not to its model.
    PathOverload = "path-overload",
    /// The client's lateness is a large share of a time, but decides no objective.
    Lag = "lag",
    /// Calls waited for a free connection.
    Wait = "wait",
    /// In a closed loop, a worker was always busy.
    DriverCpu = "driver-cpu",
    /// A figure rose or fell throughout the window.
    Drift = "drift",
    /// Other programs, or the hypervisor, used our cores.
    ForeignCpu = "foreign-cpu",
    /// The server may run on one of the workers' cores.
    SharedCores = "shared-cores",
    /// An emulated path was slower than configured.
    PathLate = "path-late",
    /// A quantile is printed from too few samples.
    FewSamples = "few-samples",
    /// Ended early, by a signal or a rule.
    Interrupted = "interrupted",
    /// No valid token was left: the token endpoint issued none.
    Token = "token",
    /// A machine of a fleet was lost.
    AgentLost = "agent-lost",
    /// Calls came from fleet machines whose own part is INVALID.
    AgentInvalid = "agent-invalid",
    /// A clock of a fleet is not known precisely enough.
    Clock = "clock",
    /// A ramp has too few usable steps.
    UnusableSteps = "unusable-steps",
}

impl std::fmt::Display for CauseId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.id())
    }
}
