//! A server that was watched during the measurement.

use sample::{SutRow, SutSeries};

/// Returns the series of a server watched for ten seconds that runs out of CPU and of room in its
/// listen queue.
pub(crate) fn watched(cpu_cores: f64) -> SutSeries {
    let row = |second: u64| SutRow {
        at_s: second as f64,
        cpu_cores,
        memory_bytes: (200 + second) << 20,
        threads: 9,
        descriptors: 40 + second,
        switches_per_s: 1_200.0,
        listen_overflows: second / 9,
        accept_queue: 12 * second,
        half_open: second % 3,
    };
    SutSeries {
        name: "nginx (pid 71 and 2 more)".to_owned(),
        cores: 2.0,
        memory_max: 8 << 30,
        descriptors_max: 1_024,
        accept_queue_max: 128,
        rows: (1..=10).map(row).collect(),
        trouble: String::new(),
    }
}
