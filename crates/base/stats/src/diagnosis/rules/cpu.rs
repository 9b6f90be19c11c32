use super::super::queueing::{ALONE_MIN, queueing};
use super::super::{Confidence, Rule, Sign, View};
use units::show;

pub(crate) const FULL_MIN: f64 = 0.90;
const SHARED_MIN: f64 = 2.0;
/// Coherency from which a falling curve is reported; and the share of the peak it must lose.
pub(crate) const COHERENCY_LOSS_MIN: f64 = 0.05;

pub(crate) const RULE: Rule = Rule {
    id: "cpu-contention",
    title: "The server's processors, or what they share, are the limit",
    reasoning: "A server whose cores are all busy answers faster only with less work per call or \
                more cores. Without a look at its machine the shape tells: calls that all slow each \
                other down in equal parts are worked on in turns, as on a processor, so that even \
                the first calls of users who start at once take as long as later ones. Over a whole \
                curve the universal scalability law splits what is lost into contention (a share \
                that only one can do at a time: throughput levels off) and coherency (everybody \
                talks to everybody: throughput falls again).",
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
        "{:.1} calls in flight got the work of {:.1} done, and the users' first calls, made at once, \
         took as long as later ones: they slow each other down in equal parts",
        queueing.crowd, queueing.working
    );
    Sign::new(Confidence::Possible, text)
}
