//! A SPECweb99 load: the guides of its connections, and the server's log of the POSTs, which is
//! reset before a run and compared after it.

use crate::caller::Caller;
use crate::directory::SystemResolver;
use crate::exit::{Code, Failure};
use crate::network::Network;
use crate::servers;
use crate::threads::RequestSource;
use engine::Endpoint;
use engine::specweb99::{SpecwebLoad, command};
use plan::Plan;
use sample::PostFacts;
use std::sync::Arc;
use workload::fileset::specweb99::{compare, read_log};

/// Data to compare when a run is over.
pub(crate) struct Posting {
    load: Arc<SpecwebLoad>,
    plan: Plan,
    endpoints: Vec<Endpoint>,
    network: Network,
}

impl std::fmt::Debug for Posting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Posting").field("load", &self.load).finish_non_exhaustive()
    }
}

/// Returns the guides of the workers, and the comparison after the run; `None` for other kinds of
/// loads.
///
/// # Errors
/// Fails if the server's log cannot be reset: its dynamic pages are missing.
pub(crate) fn sources(
    plan: &Plan,
    endpoints: &[Endpoint],
    network: &Network,
    workers: usize,
) -> Result<Option<(Vec<RequestSource>, Posting)>, Failure> {
    let Some(load) = SpecwebLoad::new(plan) else { return Ok(None) };
    let (endpoints, network) = (endpoints.to_vec(), network.clone());
    let posting = Posting { load, plan: plan.clone(), endpoints, network };
    if let Some([reset, _]) = posting.load.log_commands() {
        posting.ask(&reset).map_err(|why| Failure {
            code: Code::Missed,
            text: format!(
                "the dynamic pages of specweb99-like are missing: {reset}: {why}. `loadstone site \
                 --files specweb99-like` serves them; --workload specweb99-like:mix=static does \
                 not need them"
            ),
        })?;
    }
    let shared = Arc::new(plan.clone());
    let guide = |_| {
        let directory = Box::new(SystemResolver(shared.clone()));
        RequestSource::Guide(posting.load.guide(), directory)
    };
    let sources = (0..workers).map(guide).collect();
    Ok(Some((sources, posting)))
}

impl Posting {
    /// Compares the sent POSTs with the server's log; `None` if nothing was posted.
    pub(crate) fn compare(&self) -> Option<PostFacts> {
        let [_, fetch] = self.load.log_commands()?;
        let sent = self.load.take_posts();
        let records = self.ask(&fetch).and_then(|text| read_log(&String::from_utf8_lossy(&text)));
        Some(match records {
            Ok(records) => compare(&sent, &records),
            // without a log no missing entry can be found
            Err(why) => PostFacts {
                missing: 0,
                trouble: Some(format!("{fetch}: {why}")),
                ..compare(&sent, &[])
            },
        })
    }

    fn ask(&self, url: &url::Url) -> Result<Vec<u8>, String> {
        let settings = servers::exchange_tls_settings(&self.plan);
        let own = self.network.own().map(|network| (network.clone(), self.plan.seed));
        let caller = Caller::new(self.plan.timeouts.connect, settings)?.with_own_stack(own);
        let meeting = servers::endpoint_finder(&self.plan);
        let mut caller = caller.by_plan(&self.endpoints, meeting);
        command(&self.plan, url, &mut caller)
    }
}
