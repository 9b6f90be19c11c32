//! Time limits of calls in the queue: the plan's, and a call's own.

use super::{START, plan_of, setup};
use crate::call::Call;
use crate::pool::Pool;
use plan::{Arrivals, Load};
use protocol::http1::response::Asked;
use units::{Nanos, Rate};

/// The plan's limit is 100 ms. Calls with a longer or a shorter limit of their own expire at that
/// limit, and all others at the plan's.
#[test]
fn each_queued_call_expires_at_its_own_limit() {
    let mut plan = plan_of(1, 1, 1);
    let arrivals = Arrivals::constant(Rate(10.0));
    plan.load = Load::Open { arrivals, session: None, connections_max: Some(1), queue_max: None };
    let setup = setup(plan);
    let mut pool = Pool::new(&setup, 0, None);
    for (index, limit) in [(0, Some(300)), (1, None), (2, Some(50)), (3, None)] {
        let due = START + Nanos::from_millis(index);
        let mut call = Call::new(index, 0, 0, due, Asked::Ordinary);
        call.request = limit.map(|limit| {
            let mut template = setup.targets.template(0).clone();
            template.timeout = Some(Nanos::from_millis(limit));
            Box::new(template)
        });
        assert!(pool.enqueue(call, 0).is_none(), "call {index}");
    }
    let mut left = Vec::new();
    // wakes at the queue's deadlines, like a worker
    while pool.has_queued() {
        let now = pool.queue_deadline();
        while let Some(call) = pool.dequeue_expired(now) {
            left.push((call.index, (now - START).0 / 1_000_000));
        }
        assert!(pool.queue_deadline() > now, "after {left:?}");
    }
    assert_eq!(left, [(2, 52), (1, 101), (3, 103), (0, 300)]);
    assert_eq!(pool.queue_deadline(), Nanos::NEVER);
}
