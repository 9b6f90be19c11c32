//! A load after SPECweb99: the guides of its connections, and the server's log of what was posted,
//! which is begun anew before a run and compared behind it.

use super::directory::SystemResolver;
use super::prepare::{self, Prepared};
use super::threads::Cast;
use crate::caller::Caller;
use crate::exit::{Code, Failure};
use engine::specweb99::{SpecwebLoad, command};
use plan::Plan;
use sample::PostFacts;
use std::sync::Arc;
use workload::fileset::specweb99::{compare, read_log};

/// What is to be compared when a run is over.
pub(super) struct Posting {
    load: Arc<SpecwebLoad>,
    plan: Plan,
    prepared: Prepared,
}

impl std::fmt::Debug for Posting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Posting").field("load", &self.load).finish_non_exhaustive()
    }
}

/// The guides of the workers, and what is to be done behind the run; `None`: it is another load.
///
/// # Errors
/// The server's log cannot be begun anew: its dynamic pages are not there.
pub(super) fn cast(
    plan: &Plan,
    prepared: &Prepared,
) -> Result<Option<(Vec<Cast>, Posting)>, Failure> {
    let Some(load) = SpecwebLoad::new(plan) else { return Ok(None) };
    let posting = Posting { load, plan: plan.clone(), prepared: prepared.clone() };
    if let Some([reset, _]) = posting.load.log_commands() {
        posting.ask(&reset).map_err(|why| Failure {
            code: Code::Missed,
            text: format!(
                "the dynamic pages of specweb99-like are not there: {reset}: {why}. `loadstone site \
                 --files specweb99-like` has them; --workload specweb99-like:mix=static does without"
            ),
        })?;
    }
    let shared = Arc::new(plan.clone());
    let guide =
        |_| -> Cast { Cast::Guide(posting.load.guide(), Box::new(SystemResolver(shared.clone()))) };
    let casts = prepared.shares().into_iter().map(guide).collect();
    Ok(Some((casts, posting)))
}

impl Posting {
    /// Compares what was sent with the server's log; `None`: nothing is posted.
    pub(super) fn compare(&self) -> Option<PostFacts> {
        let [_, fetch] = self.load.log_commands()?;
        let sent = self.load.take_posts();
        let records = self.ask(&fetch).and_then(|text| read_log(&String::from_utf8_lossy(&text)));
        Some(match records {
            Ok(records) => compare(&sent, &records),
            // none is missing from a log that is not there
            Err(why) => PostFacts {
                missing: 0,
                trouble: Some(format!("{fetch}: {why}")),
                ..compare(&sent, &[])
            },
        })
    }

    fn ask(&self, url: &url::Url) -> Result<Vec<u8>, String> {
        let mut settings = prepare::tls_settings(&self.plan);
        settings.alpn = vec!["http/1.1".to_owned()];
        let own = self.prepared.own.clone().map(|network| (network, self.plan.seed));
        let caller = Caller::new(self.plan.timeouts.connect, settings)?.over(own);
        let meeting = prepare::meeting(&self.plan);
        let mut caller = caller.by_plan(&self.prepared.endpoints, meeting);
        command(&self.plan, url, &mut caller)
    }
}
