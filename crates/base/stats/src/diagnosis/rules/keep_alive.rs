use super::super::shape::{ratio, round};
use super::super::{Confidence, Rule, Sign, View};
use crate::lives::IDLE_END;
use units::{Nanos, show};

const CONNECTIONS_MIN: u64 = 3;
const SHARE_MIN: f64 = 0.8;
const CALLS_MAX: u64 = 50;
const COST_MIN: f64 = 0.05;

pub(crate) const RULE: Rule = Rule {
    id: "keep-alive-limit",
    title: "The server ends each connection after a fixed number of responses",
    reasoning: "A limit such as Apache's MaxKeepAliveRequests or nginx's keepalive_requests makes \
        the server close a connection after its N-th response; every further call first pays for a \
        new one. Connections that the server ends then all carried the same number of responses. \
        An idle timeout has the same effect on an even load, so connections that were idle at \
        their end are excluded; so does a limit of their age, so the finding is certain only for \
        one response or a round number. A limit is reported only when its cost is visible: few \
        responses per connection, or a large share of the time spent connecting.",
    source: "RFC 9112 §9.3 and §9.6; Apache httpd's MaxKeepAliveRequests (100), nginx's \
             keepalive_requests (1,000).",
    thresholds: &[
        (3.0, "connections that the server ended, at least"),
        (IDLE_END.0 as f64 / 1e9, "seconds without a call at their end, below"),
        (SHARE_MIN, "share of them that carried the same number, at least"),
        (50.0, "responses a connection, at most, or else"),
        (COST_MIN, "share of the service time that connecting takes, at least"),
    ],
    advice: "Raise or lift the server's limit of requests per connection (MaxKeepAliveRequests, \
             keepalive_requests), or turn keep-alive on.",
    excludes: &[],
    find,
};

fn find(view: &View<'_>) -> Option<Sign> {
    if !view.persistent() || !view.enough() {
        return None;
    }
    let served = view.lives.served();
    let ended: u64 = served.iter().map(|(_, count)| count).sum();
    let (responses, most) = served.iter().copied().max_by_key(|(_, count)| *count)?;
    if most < CONNECTIONS_MIN || ratio(most as f64, ended as f64) < SHARE_MIN {
        return None;
    }
    let spent = view.total.service.mean() * view.total.service.count();
    let setup: Nanos = view.total.connections.setup_sum;
    let cost = ratio(setup.as_secs_f64(), spent.as_secs_f64());
    if responses > CALLS_MAX && cost < COST_MIN {
        return None;
    }
    let times =
        if responses == 1 { "1 response".to_owned() } else { format!("{responses} responses") };
    let text = format!(
        "{} of the {} connections that the server ended carried exactly {times}; connecting \
         took {} of the service time",
        show::count(most),
        show::count(ended),
        show::share(cost.min(1.0))
    );
    let chosen = responses == 1 || round(responses as f64, 1e-9).is_some_and(|_| responses >= 10);
    Sign::new(if chosen { Confidence::Certain } else { Confidence::Likely }, text)
}
