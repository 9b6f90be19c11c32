use super::super::shape::ratio;
use super::super::{Confidence, Rule, Sign, View};
use units::show;

const GOAWAYS_MIN: u64 = 3;
const SPREAD_MAX: f64 = 0.2;

pub(crate) const RULE: Rule = Rule {
    id: "goaway-limit",
    title: "The server ends each HTTP/2 connection after a fixed number of requests",
    reasoning: "A server that limits the requests per connection sends GOAWAY with NO_ERROR at the \
        limit: open streams are answered, and all other requests must use a new connection. Many \
        clients open one only when they need it, and some fail the remaining requests. Connections \
        that ended this way after nearly the same number of streams were ended by a limit; a \
        timeout would end them after any number, and a shutdown ends each open connection once.",
    source: "RFC 9113 §6.8; nginx's keepalive_requests (1,000), which counts streams too, Apache's \
             MaxKeepAliveRequests (100), h2o's and Envoy's max_requests_per_connection.",
    thresholds: &[
        (3.0, "GOAWAY frames with NO_ERROR, at least"),
        (SPREAD_MAX, "spread of the streams before them over the fewest, at most"),
    ],
    advice: "Raise the server's limit of requests per connection (keepalive_requests, \
             MaxKeepAliveRequests): with HTTP/2 one connection carries what dozens did.",
    excludes: &["keep-alive-limit"],
    find,
};

fn find(view: &View<'_>) -> Option<Sign> {
    let facts = &view.total.connections.http2;
    let (fewest, most) = facts.goaway_streams?;
    // NO_ERROR (RFC 9113 section 7)
    let ended = facts.goaways.get(&0).copied().unwrap_or(0);
    let spread = ratio((most - fewest) as f64, fewest as f64);
    if !view.enough() || ended < GOAWAYS_MIN || fewest == 0 || spread > SPREAD_MAX {
        return None;
    }
    let streams = match fewest == most {
        true => show::count(fewest),
        false => format!("{} to {}", show::count(fewest), show::count(most)),
    };
    let text = format!(
        "the server ended {} connections by GOAWAY (NO_ERROR), each after {streams} streams",
        show::count(ended)
    );
    // a shutdown does that to similar connections, and at most to those open at once
    let again = ended > view.evidence.measurement.connections_peak;
    Sign::new(if again { Confidence::Certain } else { Confidence::Possible }, text)
}

#[cfg(test)]
mod tests {
    use super::super::super::Evidence;
    use super::super::super::testing::{http2_facts, measured};
    use super::*;

    fn sign(goaways: u64, streams: (u64, u64), open: u64) -> Option<Sign> {
        let mut facts = http2_facts(1_000);
        facts.goaways.insert(0, goaways);
        facts.goaway_streams = Some(streams);
        let mut measurement = measured(facts);
        measurement.connections_peak = open;
        find(&View::new(&Evidence::new(&measurement)))
    }

    fn finding(goaways: u64, streams: (u64, u64)) -> Option<String> {
        sign(goaways, streams, 1).map(|sign| sign.evidence)
    }

    #[test]
    fn a_shutdown_of_similar_connections_is_not_a_limit() {
        let sure = |ended| sign(ended, (990, 1_010), 8).map(|sign| sign.confidence);
        assert_eq!((sure(8), sure(9)), (Some(Confidence::Possible), Some(Confidence::Certain)));
    }

    #[test]
    fn connections_that_end_after_equal_streams_met_a_limit() {
        let text = "the server ended 3 connections by GOAWAY (NO_ERROR), each after 100 streams";
        assert_eq!(finding(3, (100, 100)).as_deref(), Some(text));
        assert!(finding(3, (100, 120)).is_some());
        assert_eq!(finding(3, (100, 121)), None);
        assert_eq!(finding(2, (100, 100)), None);
    }
}
