mod dashboard;
mod endpoint;
mod formats;
mod openmetrics;
mod prometheus;
mod protobuf;
mod push;

use crate::metrics::{Reading, RunLabels};
use sample::FailureClass;
use stats::{Second, Snapshot};
use units::Nanos;

/// Returns a run with data in every family.
fn reading() -> Reading {
    let run = RunLabels {
        name: "http://127.0.0.1:2020/a\"b\\c\nd".into(),
        load: "closed loop of 10 users".into(),
        version: "0.1.0".into(),
        repeat: 1,
        started_unix_s: 1_700_000_000.0,
    };
    let mut total = Snapshot::default();
    let counts = &mut total.counts;
    (counts.due, counts.succeeded, counts.failed) = (1_010, 1_000, 3);
    (counts.timed_out, counts.dropped, counts.in_flight) = (2, 1, 4);
    total.warm_up.due = 50;
    for micros in 1..=1_000 {
        total.succeeded.record(Nanos::from_micros(micros));
    }
    total.timed_out.record_n(Nanos::from_secs(30), 2);
    total.service.merge(&total.succeeded.clone());
    total.slip.record_n(Nanos::ZERO, 1_005);
    total.connect.record(Nanos::from_micros(90));
    for status in [200, 200, 503] {
        total.status.add(status);
    }
    total.failures.insert(FailureClass::Status, 3);
    total.bytes_received = 123_456;
    total.connections.established = 10;
    let second =
        Second { at_s: 4.0, span_s: 1.0, in_flight: 4, driver_cpu: 0.25, ..Second::default() };
    Reading::new(&run, &second, &total, Some(1_012))
}

#[test]
fn machines_of_a_fleet_are_distinguished() {
    let agent = |number, p99| sample::AgentNow {
        number,
        host: "vm".into(),
        labels: "region=north".into(),
        offered: 40,
        p99,
        ..sample::AgentNow::default()
    };
    let agents = [agent(1, Some(Nanos::from_millis(3))), agent(2, None)];
    let text = crate::metrics::text(&reading().with_agents(&agents));
    let labels = "{agent=\"1\",host=\"vm\",labels=\"region=north\"}";
    for line in [
        format!("loadstone_agent_calls_offered_total{labels} 40"),
        format!("loadstone_agent_response_time_p99_seconds{labels} 0.003"),
        format!("loadstone_agent_running{labels} 1.0"),
    ] {
        assert!(text.lines().any(|one| one == line), "{line}: {text}");
    }
    assert_eq!(text.matches("agent=\"2\"").count(), 4, "{text}");
}
