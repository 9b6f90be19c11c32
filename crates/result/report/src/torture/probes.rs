//! Health probes as CSV: one line per probe, in the order of their ends.

use crate::csv::quoted;
use record::torture::ProbeRecord;

/// The first line of the file.
pub const PROBES_HEAD: &str =
    "due_s,kind,late_s,connected_s,first_byte_s,over_s,seen,said,ours,case\n";

/// Formats one probe as a line. Times are in seconds: `due_s` from the start of the run, `late_s`
/// the delay of sending, the others from the due instant; empty if not reached. `ours`: it could
/// not be sent because this machine ran out of descriptors or ports.
pub fn probe_line(probe: &ProbeRecord) -> String {
    let instant = |at: Option<f64>| at.map_or(String::new(), seconds);
    format!(
        "{},{},{},{},{},{},{},{},{},{}\n",
        seconds(probe.due_s),
        probe.kind_id(),
        seconds(probe.late_s),
        instant(probe.connected_s),
        instant(probe.first_byte_s),
        seconds(probe.over_s),
        probe.seen_id(),
        quoted(&probe.said),
        if probe.ours { "yes" } else { "no" },
        quoted(&probe.case)
    )
}

/// Returns every probe, after the header line.
pub fn probes_csv(probes: &[ProbeRecord]) -> String {
    let lines: String = probes.iter().map(probe_line).collect();
    format!("{PROBES_HEAD}{lines}")
}

fn seconds(span: f64) -> String {
    format!("{span:.6}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use torture::result::{Probe, ProbeKind, Seen};
    use units::Nanos;

    #[test]
    fn a_probe_is_a_line() {
        let probe = Probe {
            kind: ProbeKind::New,
            due: Nanos::from_millis(1_500),
            late: Nanos::from_micros(20),
            connected: Some(Nanos::from_micros(80)),
            first_byte: None,
            over: Nanos::from_secs(2),
            seen: Seen::Lost,
            said: "no response, in 2 s".into(),
            ours: false,
            refused: false,
            case: "W-10".into(),
        };
        let kept = Probe { kind: ProbeKind::Keep, seen: Seen::Shed, ..probe.clone() };
        assert_eq!(
            probes_csv(&[&probe, &kept].map(ProbeRecord::new)),
            "due_s,kind,late_s,connected_s,first_byte_s,over_s,seen,said,ours,case\n\
             1.500000,new,0.000020,0.000080,,2.000000,lost,\"no response, in 2 s\",no,W-10\n\
             1.500000,keep,0.000020,0.000080,,2.000000,shed,\"no response, in 2 s\",no,W-10\n"
        );
    }
}
