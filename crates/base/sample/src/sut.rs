//! The system under test as reported by its own machine.

/// Observations of the system under test during the measurement. Unknown values are zero.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SutSeries {
    /// Name: `nginx (pid 71 and 2 more)`, or the node exporter's URL.
    pub name: String,
    /// Cores that it may use: its affinity, or its container's CPU quota if that is less.
    pub cores: f64,
    /// Main memory of its machine, in bytes.
    pub memory_max: u64,
    /// Descriptors that its first process may have open.
    pub descriptors_max: u64,
    /// Connections that may wait to be accepted, over the listeners of the target's ports.
    pub accept_queue_max: u64,
    /// Rows, one per second, in order.
    pub rows: Vec<SutRow>,
    /// Sentence about unreadable items and the reason; empty if there are none.
    pub trouble: String,
}

/// Interval of the watch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SutRow {
    /// End of the interval in seconds from the start of the measured phase; negative in the
    /// warm-up.
    pub at_s: f64,
    /// Cores kept busy, as a mean over the interval.
    pub cpu_cores: f64,
    /// Resident memory at the end, in bytes.
    pub memory_bytes: u64,
    pub threads: u64,
    /// Descriptors open at the end.
    pub descriptors: u64,
    /// Context switches a second, of its threads (a process) or of its machine (a node exporter).
    pub switches_per_s: f64,
    /// Connections that the machine's listen queues had no room for, in the interval.
    pub listen_overflows: u64,
    /// Connections that wait to be accepted, at the end.
    pub accept_queue: u64,
    /// Connections with an incomplete handshake, at the end: a SYN was received (the SYN queue).
    pub half_open: u64,
}

/// Use of a server's resources, each as the largest share in use, 0..=1 or more; 0 if unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Fullness {
    /// Cores used, as a mean over the measured phase.
    pub cpu: f64,
    pub memory: f64,
    pub descriptors: f64,
    pub accept_queue: f64,
    /// Connections dropped because a listen queue was full.
    pub overflows: u64,
}

impl Fullness {
    /// Share of a resource in use from which it counts as full.
    pub const FULL_MIN: f64 = 0.9;

    /// Returns the names of the resources that were full.
    pub fn full(&self) -> Vec<&'static str> {
        let full = |share: f64| share >= Fullness::FULL_MIN;
        let all = [
            ("CPU", full(self.cpu)),
            ("memory", full(self.memory)),
            ("descriptors", full(self.descriptors)),
            ("listen queue", full(self.accept_queue) || self.overflows > 0),
        ];
        all.into_iter().filter(|(_, full)| *full).map(|(name, _)| name).collect()
    }
}

impl SutSeries {
    /// Returns the rows of the measured phase: those that end in it.
    pub fn measured(&self) -> impl Iterator<Item = &SutRow> {
        self.rows.iter().filter(|row| row.at_s > 0.0)
    }

    /// Returns the share of its cores that it used, as a mean over the measured phase, 0..=1;
    /// `None` when it is not known.
    pub fn cpu_share(&self) -> Option<f64> {
        let rows = self.measured().count();
        let busy: f64 = self.measured().map(|row| row.cpu_cores).sum();
        (rows > 0 && self.cores > 0.0).then(|| (busy / rows as f64 / self.cores).min(1.0))
    }

    /// Returns the number of connections dropped in the measured phase because a listen queue was
    /// full.
    pub fn listen_overflows(&self) -> u64 {
        self.measured().map(|row| row.listen_overflows).sum()
    }

    /// Returns the use of its resources in the measured phase.
    pub fn fullness(&self) -> Fullness {
        let peak = |used: fn(&SutRow) -> u64, most: u64| {
            let peak = self.measured().map(used).max().unwrap_or(0);
            if most == 0 { 0.0 } else { peak as f64 / most as f64 }
        };
        Fullness {
            cpu: self.cpu_share().unwrap_or(0.0),
            memory: peak(|row| row.memory_bytes, self.memory_max),
            descriptors: peak(|row| row.descriptors, self.descriptors_max),
            accept_queue: peak(|row| row.accept_queue, self.accept_queue_max),
            overflows: self.listen_overflows(),
        }
    }
}
