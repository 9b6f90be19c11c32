//! Where a server no longer follows: the rate doubles from a low start, and the last step is halved
//! until the bracket is narrow.

use super::felt;
use super::load::{Flow, Load, Offer, Route};
use super::steps::LoadStep;
use crate::pressure::{CPU_MAX, Calm, SICK_TRIES, slow_from};
use crate::{Runner, habits};
use dialogue::talk::TalkScript;
use torture::case::{Case, KneeSearch};
use torture::judge::PressureOutcome;
use torture::result::{Measure, Probe, Unit};
use units::{Nanos, show};

/// A knee's upper end is no more than this times its lower one.
const NARROW: f64 = 1.25;
/// Steps of a search at most: from a tenth of a request a second to far beyond any ceiling.
const STEPS_MAX: usize = 40;
/// Below so many knees it is hardly an overload, and nothing is said of it.
const OVER_MIN: f64 = 1.2;
/// Below this rate no load is worth the name.
const RATE_LOW: f64 = 1.0;
/// So much of a bound is offered: what falls due evenly does not leave evenly.
const OF_BOUND: f64 = 0.95;
/// Between two steps probes are as before for so many of their gaps.
const CALM_GAPS: u64 = 2;
/// Time that a search may take, as a share of that of a case.
const SEARCH_SHARE: f64 = 0.4;

/// What kept a load from growing.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Limit {
    /// A bound of the run, and the option that raises it.
    Bound(&'static str),
    /// A parameter of the case.
    Case,
    /// This machine, and how that shows.
    Ourselves(String),
    /// The time of the case, or of the run.
    Time,
}

/// Where a server no longer follows, as far as that was found.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Knee {
    /// The highest rate that was followed; the lowest that was not. Requests a second.
    pub(crate) low: Option<f64>,
    pub(crate) high: Option<f64>,
    /// The most right responses a second, of any step.
    pub(crate) peak: f64,
    /// The server died of a step: how that showed.
    pub(crate) crashed: Option<String>,
    /// Why there is no `high`.
    pub(crate) limit: Option<Limit>,
    /// The most that may be offered, and what says so.
    pub(crate) most: f64,
    pub(crate) most_is: Limit,
}

impl Limit {
    /// What ended it, and the way out.
    pub(crate) fn words(&self) -> String {
        match self {
            Limit::Bound(option) => format!("no more may be offered ({option} raises it)"),
            Limit::Case => "no more is offered by this case".to_owned(),
            Limit::Ourselves(why) => format!("this machine could not offer more: {why}"),
            Limit::Time => "its time was up".to_owned(),
        }
    }
}

impl Knee {
    pub(crate) fn measures(&self) -> [Measure; 2] {
        let note = match &self.limit {
            _ if self.high.is_some() => "beyond it less than 95% was answered in time".to_owned(),
            Some(limit) => format!("every rate was followed; {}", limit.words()),
            None => "every rate was followed".to_owned(),
        };
        let peak = Measure::exact(
            "peak goodput",
            self.peak,
            Unit::PerSecond,
            "right responses a second".to_owned(),
        );
        let knee = Measure {
            what: "knee".to_owned(),
            low: self.low,
            high: self.high,
            unit: Unit::PerSecond,
            note,
        };
        [knee, peak]
    }

    /// The rate to look at after this one; `None`: nothing is to be found any more.
    fn next(&self, rate: f64) -> Option<f64> {
        match (self.low, self.high) {
            (Some(low), Some(high)) if high <= low * NARROW => None,
            (Some(low), Some(high)) => Some(between(low, high)),
            (Some(low), None) if low >= self.most => None,
            (Some(low), None) => Some((low * 2.0).min(self.most)),
            (None, _) if rate <= RATE_LOW => None,
            (None, _) => Some((rate / 2.0).max(RATE_LOW)),
        }
    }

    /// Why nothing can be said of overload; `None` where the server can be overloaded.
    pub(crate) fn unreached(&self) -> Option<String> {
        let low = show::rate(self.low.unwrap_or_default());
        match (self.high, &self.limit) {
            (Some(high), _) if self.most >= high * OVER_MIN => None,
            (Some(high), _) => {
                let (high, why) = (show::rate(high), self.most_is.words());
                Some(format!("not overloaded: the server does not follow {high}, and {why}"))
            }
            (None, limit) => {
                let why = limit.as_ref().map(Limit::words).unwrap_or_default();
                Some(format!("not overloaded: the server followed {low}, and {why}"))
            }
        }
    }

    /// The share of a rate that is offered where the knee is the whole; below the bound.
    pub(crate) fn times(&self, factor: f64) -> f64 {
        (self.high.unwrap_or(self.most) * factor).min(self.most).max(RATE_LOW)
    }

    /// A rate that the server follows easily.
    pub(crate) fn easy(&self, share: f64) -> f64 {
        (self.low.unwrap_or(RATE_LOW) * share).max(RATE_LOW)
    }
}

/// A rate between two, whole where that is no matter.
fn between(low: f64, high: f64) -> f64 {
    let rate = (low * high).sqrt();
    if rate < WHOLE { rate } else { rate.round() }
}

/// Rates from here on are whole.
const WHOLE: f64 = 10.0;

/// What a load is made of.
#[derive(Clone, Debug)]
pub(super) struct Course {
    pub(super) routes: Vec<Route>,
    pub(super) flows: Vec<Flow>,
    /// Conversations of another kind, and when each begins.
    pub(super) odd: Vec<(Nanos, TalkScript)>,
    /// From here on it is watched until all is as before.
    pub(super) released: Nanos,
    /// A request whose connection ends without a response is sent once more, as clients do.
    pub(super) resends: bool,
}

impl Course {
    pub(super) fn new(routes: Vec<Route>, flows: Vec<Flow>, released: Nanos) -> Course {
        Course { routes, flows, odd: Vec::new(), released, resends: true }
    }
}

/// A load that is over, and the probes beside it.
pub(super) struct Played {
    pub(super) load: Load,
    pub(super) probes: Vec<Probe>,
    /// Work of this process before the release, as a share of a core.
    pub(super) work: Option<f64>,
    /// Its time was up, or the run ended, before it was over.
    pub(super) cut_short: bool,
}

impl Runner<'_> {
    /// The knee, found once a run.
    pub(super) fn knee(&mut self, case: &Case, search: KneeSearch) -> Knee {
        if let Some(known) = &self.knee {
            return known.clone();
        }
        let found = self.find_knee(case, search, self.probed_route());
        if found.limit != Some(Limit::Time) {
            self.knee = Some(found.clone());
        }
        found
    }

    /// The page that is probed.
    pub(super) fn probed_route(&self) -> Route {
        Route {
            request: habits::plain_request(self.target, ""),
            plain: self.plain.clone(),
            deadline: self.probing.deadline,
            share: 1.0,
        }
    }

    /// The most requests a second that may be offered, and what says so.
    fn rate_max(&mut self, case: f64) -> (f64, Limit) {
        let Some(bounds) = self.world.governor().bounds().cloned() else {
            return (case, Limit::Case);
        };
        match bounds.requests_max.map(|most| most as f64 * OF_BOUND) {
            Some(most) if most < case => (most, Limit::Bound("--requests-max")),
            _ => (case, Limit::Case),
        }
    }

    pub(super) fn find_knee(&mut self, case: &Case, search: KneeSearch, route: Route) -> Knee {
        let (most, most_is) = self.rate_max(search.ceiling);
        let mut knee = Knee {
            low: None,
            high: None,
            peak: 0.0,
            crashed: None,
            limit: None,
            most,
            most_is: most_is.clone(),
        };
        let mut rate = search.from.max(RATE_LOW).min(most);
        let (began, time) = (self.now(), self.search_time());
        let mut tries = 0;
        for _ in 0..STEPS_MAX {
            if self.is_stopped() || self.case_is_over() || self.now() - began > time {
                knee.limit = Some(Limit::Time);
                break;
            }
            let span = search.step;
            let flow = Flow::new(0, Nanos::ZERO, span, rate);
            let course = Course::new(vec![route.clone()], vec![flow], span);
            let played = self.play_load(case, search.waiting, course);
            let step = LoadStep::of(played.load.calls(), 0, Nanos::ZERO, span);
            if played.cut_short {
                knee.limit = Some(Limit::Time);
                break;
            }
            let (_, verdict) = felt(self, &played, Nanos::ZERO);
            if verdict.outcome == PressureOutcome::Crashed {
                let why = verdict.notes.into_iter().next().unwrap_or_default();
                knee.crashed = Some(format!("at {}: {why}", show::rate(rate)));
                knee.high = Some(rate);
                break;
            }
            // what we could not offer says nothing of the server, but what it served does
            let ours = if step.is_followed() { None } else { self.is_ours(&played, &step) };
            if let Some(limit) = ours {
                tries += 1;
                if tries < SICK_TRIES && matches!(limit, Limit::Ourselves(_)) {
                    continue;
                }
                knee.limit = Some(limit);
                break;
            }
            tries = 0;
            knee.peak = knee.peak.max(step.goodput());
            match step.is_followed() {
                true => knee.low = Some(rate),
                false => knee.high = Some(rate),
            }
            match knee.next(rate) {
                Some(next) => rate = next,
                None => break,
            }
        }
        if knee.high.is_none() && knee.low.is_some_and(|low| low >= most) {
            knee.limit.get_or_insert(most_is);
        }
        if knee.limit == Some(Limit::Time) {
            knee.high = None;
        }
        knee
    }

    fn search_time(&mut self) -> Nanos {
        let bound = self.world.governor().bounds().map(|bounds| bounds.case_max);
        bound.map_or(Nanos::NEVER, |span| Nanos::from_secs_f64(span.as_secs_f64() * SEARCH_SHARE))
    }

    /// What of ours kept a step from being what it should be.
    fn is_ours(&self, played: &Played, step: &LoadStep) -> Option<Limit> {
        if played.load.is_short() {
            return Some(Limit::Ourselves("descriptors or ports ran out".to_owned()));
        }
        if let Some(late) = step.lateness() {
            return Some(Limit::Ourselves(late));
        }
        if let Some(share) = played.work.filter(|share| *share > CPU_MAX) {
            return Some(Limit::Ourselves(format!("it took {} of a core", show::share(share))));
        }
        let most = played.load.waiting_max();
        step.is_for_want_of(self.quiet.p50, most).map(Limit::Bound)
    }

    /// Plays flows with probes beside them; from `released` on it is watched until all is as before.
    pub(super) fn play_load(&mut self, case: &Case, waiting: u64, course: Course) -> Played {
        let Course { routes, flows, odd, released, resends } = course;
        let every = self.probing.every;
        let offer = Offer {
            routes,
            flows,
            odd,
            pattern: self.bare(Vec::new(), Nanos::ZERO),
            resends,
            waiting_max: self.connections_max(waiting) as usize,
            opens_max: self.opens_max(u64::MAX),
            released,
            calm: Calm::new(slow_from(&self.quiet), every, every * CALM_GAPS),
            origin: self.start,
        };
        let mut load = Load::new(offer);
        self.world.own_work();
        let probes = self.play_probed(&case.id, &mut load);
        // the watch after it is no work
        let stretch = (load.over_at() - load.start()).as_secs_f64() / released.as_secs_f64();
        let work = self.world.own_work().map(|share| share * stretch.max(1.0));
        let cut_short = load.is_cut_off() || self.is_stopped();
        Played { load, probes, work, cut_short }
    }
}
