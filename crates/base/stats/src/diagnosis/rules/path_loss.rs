use super::super::shape::ratio;
use super::super::{Confidence, Rule, Sign, View};
use units::show;

const LOST_MIN: u64 = 5;
const SHARE_MIN: f64 = 0.001;

pub(crate) const RULE: Rule = Rule {
    id: "path-loss",
    title: "The emulated path loses packets, as configured",
    reasoning: "The path counts the packets that it loses. A lost segment costs its call a \
        retransmission timer, 200 ms at least and doubled with each try; a lost SYN costs a \
        connect one second, then two and four more. Findings that rest on such waits are omitted: \
        the path's losses, not the server, are their simplest cause.",
    source: "The path's own counts; RFC 6298 §2 and §5.7; Linux TCP_RTO_MIN \
             (include/net/tcp.h).",
    thresholds: &[(5.0, "packets lost, at least"), (SHARE_MIN, "share of all packets, at least")],
    advice: "The server needs no change. `loadstone ramp --vary loss=0..5%` shows what loss costs; \
             connections that carry many calls lose fewer handshakes.",
    excludes: &[
        "retransmission",
        "round-timeout",
        "connection-cap",
        "nagle-delayed-ack",
        "scheduling-quantum",
        "drift",
        "periodic-stall",
    ],
    find,
};

fn find(view: &View<'_>) -> Option<Sign> {
    let path = view.evidence.path?;
    let (lost, packets) = (path.lost(), path.packets());
    let share = ratio(lost as f64, packets as f64);
    if !view.enough() || lost < LOST_MIN || share < SHARE_MIN {
        return None;
    }
    let text = format!(
        "the path lost {} of {} packets ({}), and therefore the first attempt of about {} of all \
         handshakes",
        show::count(lost),
        show::count(packets),
        show::share(share),
        show::share(path.handshake_loss())
    );
    Sign::new(Confidence::Certain, text)
}

#[cfg(test)]
mod tests {
    use super::super::super::{Diagnosis, Evidence, of_run};
    use crate::Measurement;
    use sample::{PathDirection, PathFacts, PathKind, SutRow, SutSeries};
    use units::Nanos;

    /// Returns a thousand calls on as many connections, some of whose SYNs were resent after a
    /// second.
    fn measured(late: u64) -> Measurement {
        let mut measurement =
            Measurement { window: Nanos::from_secs(10), ..Measurement::default() };
        let total = &mut measurement.total;
        total.counts.due = 1_000;
        total.counts.succeeded = 1_000;
        for number in 0..1_000 {
            let wait = if number < late { 1_000 } else { 0 };
            let connect = Nanos::from_micros(2_000 + number) + Nanos::from_millis(wait);
            total.connect.record(connect);
            total.service.record(connect * 2);
            total.succeeded.record(connect * 2);
        }
        measurement
    }

    fn path(share: f64) -> PathFacts {
        let lost_to_model = (5_000.0 * share) as u64;
        let way = PathDirection { arrived: 5_000, lost_to_model, ..PathDirection::default() };
        let kind = PathKind { clients: 1, up: way.clone(), down: way, ..PathKind::default() };
        PathFacts { kinds: vec![kind], ..PathFacts::default() }
    }

    fn ids(evidence: &Evidence<'_>) -> Vec<&'static str> {
        of_run(evidence).iter().map(|one: &Diagnosis| one.rule.id).collect()
    }

    /// 5 % of loss each way make 97 or 98 of 1,000 handshakes late: caused by the path.
    #[test]
    fn losses_of_the_path_are_not_blamed_on_the_server() {
        let measurement = measured(98);
        let without = Evidence::new(&measurement);
        assert_eq!(ids(&without)[0], "accept-queue-overflow");
        let path = path(0.05);
        let with = Evidence { path: Some(&path), ..without };
        assert_eq!(ids(&with), ["path-loss"]);
    }

    /// There are far more of them than the path can have lost; or fewer, but the server's kernel
    /// reports it.
    #[test]
    fn late_connects_beyond_the_paths_losses_are_reported() {
        let (many, path) = (measured(98), path(0.005));
        let evidence = Evidence { path: Some(&path), ..Evidence::new(&many) };
        assert!(ids(&evidence).contains(&"accept-queue-overflow"), "{:?}", ids(&evidence));
        let few = measured(12);
        let row = |at_s, listen_overflows| SutRow { at_s, listen_overflows, ..SutRow::default() };
        let sut = SutSeries { rows: vec![row(0.0, 0), row(9.0, 12)], ..SutSeries::default() };
        let evidence = Evidence { path: Some(&path), ..Evidence::new(&few) };
        assert_eq!(ids(&evidence), ["path-loss"]);
        let evidence = Evidence { sut: Some(&sut), ..evidence };
        assert!(ids(&evidence).contains(&"accept-queue-overflow"), "{:?}", ids(&evidence));
    }

    #[test]
    fn a_path_that_loses_nothing_explains_nothing() {
        let (measurement, path) = (measured(98), path(0.0));
        let evidence = Evidence { path: Some(&path), ..Evidence::new(&measurement) };
        assert_eq!(ids(&evidence)[0], "accept-queue-overflow");
    }
}
