use super::super::queueing::{ALONE_MIN, queueing};
use super::super::{Confidence, Rule, Sign, View};
use units::show;

pub(crate) const FULL_MIN: f64 = 0.90;
const SHARED_MIN: f64 = 2.0;
/// Coherency from which a falling curve is reported; and the share of the peak it must lose.
pub(crate) const COHERENCY_LOSS_MIN: f64 = 0.05;

pub(crate) const RULE: Rule = Rule {
    id: "cpu-contention",
    title: "The server's CPUs, or a resource they share, are the limit",
    reasoning: "A server whose cores are all busy gets faster only with less work per call or more \
        cores. If its machine cannot be observed, the response times show it: calls that slow each \
        other down equally share a processor, so even the first calls of users who start at once \
        take as long as later ones. Over a whole curve the universal scalability law splits the \
        loss into contention (serialized work: throughput levels off) and coherency (crosstalk \
        between all workers: throughput falls again).",
    source: "Gunther: Guerrilla Capacity Planning, chapters 4 to 6; Kleinrock, Queueing Systems 2, \
             chapter 4 (processor sharing).",
    thresholds: &[
        (FULL_MIN, "share of its cores that the server uses, at least"),
        (SHARED_MIN, "calls in flight per call's worth of work done, at least"),
        (COHERENCY_LOSS_MIN, "share of the law's peak that is lost at the highest load, at least"),
        (ALONE_MIN.0 as f64 / 1e9, "seconds that a call takes alone, at least"),
    ],
    advice: "Profile the server for its most expensive work and its most contended lock; add cores \
             if it is contention-free, split it into independent processes if it is not.",
    excludes: &["serial-handler", "worker-pool", "rate-limit", "scheduling-quantum"],
    find,
};

fn find(view: &View<'_>) -> Option<Sign> {
    if let Some(share) = view.server_cpu().filter(|share| *share >= FULL_MIN) {
        let cores = view.evidence.sut.map_or(0.0, |sut| sut.cores);
        let text = format!("the server used {} of its {cores} cores", show::share(share));
        return Sign::new(Confidence::Certain, text);
    }
    let queueing = queueing(view)?;
    let shared = queueing.in_turns
        && queueing.alone >= ALONE_MIN
        && queueing.crowd >= SHARED_MIN * queueing.working.max(0.5)
        && queueing.working >= 0.5;
    if !shared {
        return None;
    }
    let text = format!(
        "{:.1} calls in flight got the work of {:.1} done, and the users' first calls, made at \
         once, took as long as later ones: they slow each other down equally",
        queueing.crowd, queueing.working
    );
    Sign::new(Confidence::Possible, text)
}
