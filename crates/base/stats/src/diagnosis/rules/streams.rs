use super::super::shape::ratio;
use super::super::{Confidence, Rule, Sign, View};
use units::show;

const WAIT_MIN: f64 = 0.2;
const HELD_MIN: f64 = 0.05;

pub(crate) const RULE: Rule = Rule {
    id: "stream-limit",
    title: "Calls wait for a stream: the server allows too few on a connection",
    reasoning: "An HTTP/2 server announces how many streams a connection may have at once \
        (SETTINGS_MAX_CONCURRENT_STREAMS). A call that finds all of them in use waits on the \
        client, although server and link may have capacity left. It shows as a limit that was \
        reached, and as calls that waited on an open connection.",
    source: "RFC 9113 §5.1.2 and §6.5.2, which recommends 100 at least; nginx's \
             http2_max_concurrent_streams (128), Apache's H2MaxSessionStreams (100).",
    thresholds: &[
        (
            WAIT_MIN,
            "share of the response time that is spent waiting for a connection with room, or else",
        ),
        (HELD_MIN, "share of the requests that were held back on their connection, at least"),
    ],
    advice: "Raise the server's limit of streams (http2_max_concurrent_streams, \
             H2MaxSessionStreams), or let clients open more connections (-c, --connections-max).",
    excludes: &["worker-pool", "serial-handler"],
    find,
};

fn find(view: &View<'_>) -> Option<Sign> {
    let facts = &view.total.connections.http2;
    let allowed = facts.streams_max.filter(|max| *max != u32::MAX)?;
    if !view.enough() || facts.streams_peak < u64::from(allowed) {
        return None;
    }
    let total = view.total;
    let waited = total.wait.mean().as_secs_f64() * total.wait.count() as f64;
    let response = total.response();
    let all = response.mean().as_secs_f64() * response.count() as f64;
    let wait = ratio(waited, all);
    let held = ratio(facts.held_back as f64, facts.streams as f64);
    let streams = show::count(u64::from(allowed));
    let evidence = if held >= HELD_MIN {
        format!(
            "the server allows {streams} streams on a connection, and {} of the requests waited for \
             one of them",
            show::share(held)
        )
    } else if view.evidence.users.is_none() && wait >= WAIT_MIN {
        format!(
            "the server allows {streams} streams on a connection, all of which were in use, and {} \
             of the response time is spent waiting for one",
            show::share(wait.min(1.0))
        )
    } else {
        return None;
    };
    Sign::new(Confidence::Certain, evidence)
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{http2_facts, measured};
    use super::*;

    /// Returns the finding for 1,000 requests, `held` of which were held back at a limit of
    /// `allowed`, of which `peak` were used.
    fn finding(allowed: u32, peak: u64, held: u64) -> Option<Confidence> {
        let mut facts = http2_facts(1_000);
        (facts.streams_max, facts.streams_peak, facts.held_back) = (Some(allowed), peak, held);
        let measurement = measured(facts);
        let mut evidence = super::super::super::Evidence::new(&measurement);
        evidence.users = Some(10);
        find(&View::new(&evidence)).map(|sign| sign.confidence)
    }

    #[test]
    fn a_stream_limit_is_reported_if_requests_waited() {
        assert_eq!(finding(16, 16, 50), Some(Confidence::Certain));
        assert_eq!(finding(16, 16, 49), None);
        // the limit was never reached
        assert_eq!(finding(16, 15, 500), None);
        assert_eq!(finding(u32::MAX, 100, 500), None);
    }
}
