//! The verdict of a run on itself: are its figures valid, and if not, why. Three questions come
//! before any figure: was the load offered as intended, was the client free to measure, and was the
//! measurement steady with enough samples.

mod fleet;
mod path;

pub use fleet::{TAINTED_SHARE_MAX, tainted};
pub use path::{
    PATH_LATE_MAX, PATH_LATE_MIN, PATH_LATE_SHARE_MAX, PathAnswer, path_late, path_overload,
    round_trip_lateness,
};

use crate::interval::samples_needed;
use crate::steady::{self, Drift, Drifting};
use crate::{CauseId, Doubt, Measurement, Metric, Objective, Ruling, Snapshot, Undecided, rulings};
use sample::{FailureClass, FleetFacts, PathFacts};
use units::{Nanos, show};

/// INVALID `not-offered`: offered below this share of intended.
pub const OFFERED_SHARE_MIN: f64 = 0.99;
/// INVALID `slip`, if no objective is stricter: the client's lateness in a printed quantile of the
/// response time, up to the p99, above this, and above [`DOUBT_MAX`] or the plan's value in its
/// place.
pub const SLIP_MAX: Nanos = Nanos::from_millis(1);
/// Maximum share of a quantile that may be the client's lateness.
pub const DOUBT_MAX: f64 = 0.25;
/// Highest quantiles whose lateness makes a run INVALID, and DEGRADED. The maximum is a single call.
const SLIP_HIGHEST: f64 = 0.99;
const LAG_HIGHEST: f64 = 0.999_999;
/// DEGRADED `wait`: p99 of the wait for a connection above [`SLIP_MAX`] and above this share of the
/// median response time.
pub const WAIT_SHARE_MAX: f64 = 0.10;
/// DEGRADED `driver-cpu`, in a closed loop: the busiest worker's share of a core, spinning
/// excluded, at or above this.
pub const DRIVER_BUSY_MAX: f64 = 0.95;
/// DEGRADED `foreign-cpu`: others' share of our cores, or the hypervisor's, above this.
pub const FOREIGN_SHARE_MAX: f64 = 0.05;

/// DEGRADED `foreign-cpu` in a closed loop: share of the calls that may have waited for the client's
/// core as long as the p99. Above this share, the p99 may be that wait.
const WAITED_CALLS_MAX: f64 = 0.01;

/// Causes that make a run INVALID; all others make it DEGRADED.
pub const INVALID: [CauseId; 7] = [
    CauseId::NotOffered,
    CauseId::Slip,
    CauseId::Ports,
    CauseId::Descriptors,
    CauseId::AllFailed,
    CauseId::PathOverload,
    CauseId::AgentInvalid,
];

/// Validity of a run's numbers, from good to bad.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// Valid without reservations.
    #[default]
    Valid,
    /// Usable, with the reservations that the causes name.
    Degraded,
    /// The figures do not describe the server.
    Invalid,
}

impl State {
    pub const ALL: [State; 3] = [State::Valid, State::Degraded, State::Invalid];

    /// Returns `VALID`, `DEGRADED` or `INVALID`.
    pub fn id(self) -> &'static str {
        match self {
            State::Valid => "VALID",
            State::Degraded => "DEGRADED",
            State::Invalid => "INVALID",
        }
    }
}

/// Reason why a run is not fully valid.
#[derive(Clone, Debug, PartialEq)]
pub struct Cause {
    pub id: CauseId,
    /// The measured value, in the unit that `text` names.
    pub figure: f64,
    /// The figure as text, with its threshold.
    pub text: String,
    /// Advice, in one sentence.
    pub advice: String,
}

/// The state and its causes: an interruption, then the gravest first. A busy machine whose calls were
/// issued in time is a cause of a VALID run too: a note that changes no figure.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    pub state: State,
    pub causes: Vec<Cause>,
}

/// Input of a verdict. [`Evidence::new`] contains only the measurement; `None` was not observed and
/// does not count against the run.
#[derive(Clone, Debug)]
pub struct Evidence<'a> {
    pub measurement: &'a Measurement,
    /// Source of due instants: in a closed loop, a busy client limits the throughput.
    pub closed_loop: bool,
    /// The plan changes the load within the window; it then causes the drift.
    pub ramped: bool,
    /// The busiest worker's share of a core without its spinning, 0..=1.
    pub driver_busy: Option<f64>,
    /// Maximum share of the calls' time in which their worker waited for a core, 0..=1; 0 if unknown.
    pub waited_share: f64,
    /// Share of our cores that other programs (except a server on its own core) and the hypervisor
    /// (steal) used, 0..=1.
    pub foreign_share: Option<f64>,
    pub steal_share: Option<f64>,
    /// Names the core that the target shares with us: "the server (pid 7) may run on our core 1".
    pub shared_cores: Option<String>,
    /// Attempts without a free local port or descriptor that made no call fail, such as a pool that
    /// could not grow; failed calls are counted from the measurement.
    pub ports_out: u64,
    pub descriptors_out: u64,
    /// Behavior of the emulated path of all traffic.
    pub path: Option<&'a PathFacts>,
    /// The machines that ran it together.
    pub fleet: Option<&'a FleetFacts>,
    /// Quantiles that the report prints, 0..=1.
    pub quantiles: &'a [f64],
    /// The names of the simultaneous loads.
    pub scenarios: Vec<String>,
    /// Users or sessions for which a feeder had no row left, if the plan has no rule for that.
    pub without_row: u64,
    /// Requirements on the run.
    pub objectives: &'a [Objective],
    /// Without an objective of time: the share of the p99 that may be the client's lateness, 0..=1.
    pub doubt_max: f64,
}

impl<'a> Evidence<'a> {
    pub fn new(measurement: &'a Measurement) -> Evidence<'a> {
        Evidence {
            measurement,
            closed_loop: false,
            scenarios: Vec::new(),
            without_row: 0,
            ramped: false,
            driver_busy: None,
            waited_share: 0.0,
            foreign_share: None,
            steal_share: None,
            shared_cores: None,
            ports_out: 0,
            descriptors_out: 0,
            path: None,
            fleet: None,
            quantiles: &[],
            objectives: &[],
            doubt_max: DOUBT_MAX,
        }
    }
}

/// Returns the number of calls of the measured phase that were presented to the server: due, and
/// neither dropped nor ended while they waited for a connection. Service times are of issued calls
/// only.
pub fn offered(total: &Snapshot) -> u64 {
    total.counts.due.saturating_sub(refused(total) + total.counts.lost)
}

/// Returns the number of calls that this client never issued.
fn refused(total: &Snapshot) -> u64 {
    let died_waiting = total.counts.done().saturating_sub(total.service.count());
    total.counts.dropped + died_waiting
}

/// Checks a finished run against the thresholds above.
pub fn judge(evidence: &Evidence<'_>) -> Verdict {
    let (slip, all_failed) = (slip(evidence), all_failed(evidence));
    let (late, none_succeeded) = (slip.is_some(), all_failed.is_some());
    let invalid = [
        not_offered(evidence),
        scenario_not_offered(evidence),
        sessions_without_row(evidence),
        slip,
        ports(evidence),
        descriptors(evidence),
        all_failed,
        evidence.path.and_then(path_overload),
    ];
    let tainted = fleet::agent_invalid(evidence);
    let lag = lag(evidence);
    let punctual = !late && lag.is_none() && waited_calls(evidence).is_none();
    let degraded = [
        lag.filter(|_| !late),
        wait(evidence),
        driver_cpu(evidence),
        drift(evidence),
        foreign_cpu(evidence),
        shared_cores(evidence),
        evidence.path.and_then(|path| path_late(path, Some(&path_answer(evidence, path)))),
        fleet::agent_lost(evidence),
        fleet::clock(evidence),
        few_samples(evidence).filter(|_| !none_succeeded),
    ];
    let mut verdict = Verdict::default();
    // an interrupted run answers another question than its plan
    if let Some(cause) = interrupted(evidence) {
        verdict.state = State::Degraded;
        verdict.causes.push(cause);
    }
    if let Some((state, cause)) = tainted {
        verdict.state = verdict.state.max(state);
        verdict.causes.push(cause);
    }
    for (state, causes) in [(State::Invalid, &invalid[..]), (State::Degraded, &degraded[..])] {
        for cause in causes.iter().flatten() {
            // a busy machine shows in the measured lateness, or in the wait for a core
            if !(punctual && cause.id == CauseId::ForeignCpu) {
                verdict.state = verdict.state.max(state);
            }
            verdict.causes.push(cause.clone());
        }
    }
    verdict
}

/// Adds objectives that a finished run, repeats included, leaves undecided because there are too
/// few samples: INVALID, because the question has no answer. A run that was ended early has its own
/// cause.
pub fn require_samples(verdict: &mut Verdict, objectives: &[Objective], measurement: &Measurement) {
    if measurement.interrupted || measurement.aborted.is_some() {
        return;
    }
    let ruled = objectives.iter().zip(rulings(objectives, measurement));
    let ruled: Vec<(&Objective, Ruling)> = ruled.collect();
    let of_each = |cause: fn(&Objective, &Ruling) -> Option<Cause>, word: &str| {
        let mut all = ruled.iter().filter_map(|(objective, ruling)| cause(objective, ruling));
        let mut first = all.next()?;
        match all.count() {
            0 => {}
            more => first.text.push_str(&format!("; {more} more {word}")),
        }
        Some(first)
    };
    let lacking = of_each(missing_samples_cause, "undecided").map(|cause| (State::Invalid, cause));
    let found = lacking.or_else(|| Some((State::Degraded, of_each(too_few_calls, "likewise")?)));
    let Some((state, cause)) = found else { return };
    // the objective covers a printed quantile
    verdict.causes.retain(|known| known.id != CauseId::FewSamples);
    let at = match (state, verdict.state) {
        (State::Invalid, _) => {
            verdict.causes.iter().take_while(|known| INVALID.contains(&known.id)).count()
        }
        // the others are notes
        (_, State::Valid) => 0,
        _ => verdict.causes.len(),
    };
    verdict.causes.insert(at, cause);
    verdict.state = verdict.state.max(state);
}

/// Returns the cause for an objective that is met by fewer calls than its interval needs.
fn too_few_calls(objective: &Objective, ruling: &Ruling) -> Option<Cause> {
    let unsure = ruling.unsure?;
    Some(Cause {
        id: CauseId::FewSamples,
        figure: unsure.probability,
        text: format!("{} is met {}", objective.text, unsure.text()),
        advice: "Run longer, or with --until-sure.".to_owned(),
    })
}

/// Formats a factor with two digits: `2.4 times`, `200 times`.
fn times(factor: f64, round: fn(f64) -> f64) -> String {
    let unit = 10_f64.powf(factor.max(1.0).log10().floor() - 1.0);
    let shown = round(factor / unit) * unit;
    if shown < 10.0 {
        format!("{shown:.1} times")
    } else {
        format!("{} times", show::count(shown.round() as u64))
    }
}

/// Returns the cause for an objective that lacks samples; `None` if lateness leaves it undecided.
fn missing_samples_cause(objective: &Objective, ruling: &Ruling) -> Option<Cause> {
    let (count, why, advice) = match ruling.undecided? {
        Undecided::Lateness => return None,
        Undecided::Interval { longer } => {
            let interval = ruling.interval?;
            let advice = match longer {
                Some(factor) => {
                    format!("Run about {} as long.", times(factor.max(1.1), f64::round))
                }
                None => "The figure is too close to the bound: choose another bound.".to_owned(),
            };
            (
                0,
                format!(
                    "{}, {}",
                    objective.metric.show(ruling.figure),
                    interval.text(objective.metric)
                ),
                advice,
            )
        }
        Undecided::FewSamples { count, needed } => {
            let longer = needed as f64 / count.max(1) as f64;
            (
                count,
                format!("{} samples (at least {})", show::count(count), show::count(needed)),
                format!(
                    "Run {} as long, or choose a bound that needs fewer calls.",
                    times(longer, f64::ceil)
                ),
            )
        }
        Undecided::NoSamples { warm_up: 0 } => {
            (0, "no samples".to_owned(), "Run longer, or bound a part that is called.".to_owned())
        }
        Undecided::NoSamples { warm_up } => {
            let calls = match warm_up {
                1 => "its only call".to_owned(),
                calls => format!("all {} calls of it", show::count(calls)),
            };
            (
                0,
                format!("{calls} were made during the warm-up"),
                "Omit --warmup, or bound a step that users repeat.".to_owned(),
            )
        }
    };
    Some(Cause {
        id: CauseId::FewSamples,
        figure: count as f64,
        text: format!("{} is undecided: {why}", objective.text),
        advice,
    })
}

/// Returns the name of a quantile: `p99.9` for 0.999, `max` for 1.
pub fn quantile_name(q: f64) -> String {
    if q >= 1.0 {
        return "max".to_owned();
    }
    let percent = format!("{:.6}", q * 100.0);
    format!("p{}", percent.trim_end_matches('0').trim_end_matches('.'))
}

fn not_offered(evidence: &Evidence<'_>) -> Option<Cause> {
    let measurement = evidence.measurement;
    let total = &measurement.total;
    let intended = measurement.intended.filter(|intended| *intended > 0)?;
    let refused = refused(total);
    let share = if total.sessions.started > 0 {
        // Arrivals are sessions, and a refused call ends its session. A surplus does not
        // compensate.
        let started = total.sessions.started.min(intended);
        started.saturating_sub(refused + total.counts.lost) as f64 / intended as f64
    } else {
        offered(total) as f64 / intended as f64
    };
    if share >= OFFERED_SHARE_MIN {
        return None;
    }
    let span_s = measurement.due_span().as_secs_f64();
    let goal = match span_s > 0.0 {
        true => show::rate(intended as f64 / span_s),
        false => format!("{} arrivals", show::count(intended)),
    };
    let advice = if total.counts.lost > refused {
        "Calls of lost agents were not offered: repeat the run with machines that stay up."
            .to_owned()
    } else if refused > 0 {
        format!(
            "{} arrivals found neither a connection nor a place in the queue: raise \
             --connections-max and --queue-max, or lower --rate.",
            show::count(refused)
        )
    } else {
        "This client fell behind its own schedule: lower --rate, or give it more --threads and \
         cores."
            .to_owned()
    };
    Some(Cause {
        id: CauseId::NotOffered,
        figure: share,
        text: format!(
            "offered {} of the intended {goal} (at least {})",
            show::share(share),
            show::share(OFFERED_SHARE_MIN)
        ),
        advice,
    })
}

/// Returns the cause for the least offered of several loads: their arrivals do not compensate for
/// each other.
fn scenario_not_offered(evidence: &Evidence<'_>) -> Option<Cause> {
    let total = &evidence.measurement.total;
    let shares = total.scenarios.iter().enumerate();
    let shares = shares.filter_map(|(row, tally)| Some((row, tally.offered_share()?)));
    let (row, share) = shares.min_by(|one, other| one.1.total_cmp(&other.1))?;
    if share >= OFFERED_SHARE_MIN {
        return None;
    }
    let name = evidence.scenarios.get(row).cloned().unwrap_or_else(|| (row + 1).to_string());
    Some(Cause {
        id: CauseId::NotOffered,
        figure: share,
        text: format!(
            "scenario {name}: {} of the intended arrivals were offered (at least {})",
            show::share(share),
            show::share(OFFERED_SHARE_MIN)
        ),
        advice: "Its arrivals found no free connection and no place in the queue, or this client \
                 was late: raise its connections_max and queue_max, or lower its rate."
            .to_owned(),
    })
}

/// Returns the cause for sessions that were not started because a feeder had no row left for them.
fn sessions_without_row(evidence: &Evidence<'_>) -> Option<Cause> {
    let started = evidence.measurement.total.sessions.started;
    let made = started.saturating_sub(evidence.without_row);
    let share = made as f64 / started.max(1) as f64;
    (started > 0 && share < OFFERED_SHARE_MIN).then(|| Cause {
        id: CauseId::NotOffered,
        figure: share,
        text: format!(
            "{} of {} sessions were made (at least {}): the feeder had no row left for the others",
            show::count(made),
            show::count(started),
            show::share(OFFERED_SHARE_MIN)
        ),
        advice: "Give the feeder more rows, or set used-up = \"wrap\" or \"stop\".".to_owned(),
    })
}

/// Returns the cause for the client's own lateness, if it can change the answer: INVALID.
fn slip(evidence: &Evidence<'_>) -> Option<Cause> {
    let measurement = evidence.measurement;
    let ruled = evidence.objectives.iter().zip(rulings(evidence.objectives, measurement));
    let of_time: Vec<_> = ruled.filter(|(_, ruling)| ruling.without_lag.is_some()).collect();
    let late = |(_, ruling): &&(_, Ruling)| ruling.undecided == Some(Undecided::Lateness);
    match of_time.iter().find(late) {
        Some((objective, ruling)) => Some(undecided(objective, ruling)),
        // lateness cannot change the result of this objective
        None if !of_time.is_empty() => None,
        None => lateness_doubt(evidence, SLIP_HIGHEST).map(|(text, share)| Cause {
            id: CauseId::Slip,
            figure: share,
            text,
            advice: "The client was late: lower the rate, free its cores (--cpus, --nice), or \
                state the objective with --slo; --doubt-max accepts more."
                .to_owned(),
        }),
    }
}

fn undecided(objective: &Objective, ruling: &Ruling) -> Cause {
    let shown = |seconds| show::duration(Nanos::from_secs_f64(seconds));
    let lowest = ruling.without_lag.unwrap_or(ruling.figure);
    Cause {
        id: CauseId::Slip,
        figure: ruling.figure - lowest,
        text: format!(
            "{} is undecided: {} measured, {} without client delay",
            objective.text,
            shown(ruling.figure),
            shown(lowest)
        ),
        advice: "Repeat it with a lower rate or with the client's cores free (--cpus, --nice)."
            .to_owned(),
    }
}

/// Returns the sentence on the printed quantile, up to `highest`, with the largest possible share
/// of lateness, and that share, if it is above the bound. The p99 counts whether it is printed or
/// not.
fn lateness_doubt(evidence: &Evidence<'_>, highest: f64) -> Option<(String, f64)> {
    let doubt = Doubt::new(&evidence.measurement.total)?;
    let printed = evidence.quantiles.iter().copied().filter(|q| *q <= highest);
    let late = |q: &f64| doubt.at(*q) > SLIP_MAX && doubt.share(*q) > evidence.doubt_max;
    let late = [0.99].into_iter().chain(printed).filter(late);
    let quantile = late.reduce(|worst, q| match doubt.share(q) > doubt.share(worst) {
        true => q,
        false => worst,
    })?;
    let share = doubt.share(quantile);
    let text = format!(
        "up to {} of the {} {} is client delay: {} (limit {})",
        show::duration(doubt.at(quantile)),
        show::duration(evidence.measurement.total.response().quantile(quantile)),
        quantile_name(quantile),
        show::share(share),
        show::share(evidence.doubt_max)
    );
    Some((text, share))
}

/// Reports lateness above the bound that changes no objective's result: DEGRADED.
fn lag(evidence: &Evidence<'_>) -> Option<Cause> {
    let (text, figure) = lateness_doubt(evidence, LAG_HIGHEST)?;
    let advice =
        "The objectives are decided nevertheless; the other times are upper bounds.".to_owned();
    Some(Cause { id: CauseId::Lag, figure, text, advice })
}

/// Returns the results that the path's lateness could change.
fn path_answer(evidence: &Evidence<'_>, path: &PathFacts) -> PathAnswer {
    let measurement = evidence.measurement;
    let late = round_trip_lateness(path).as_secs_f64();
    let explains = |objective: &&Objective| {
        let of_time = matches!(objective.metric, Metric::Response(_) | Metric::ResponseMean);
        let figures = objective.figures(&measurement.total, measurement.rate_span());
        let (figure, met) = objective.evaluate(&figures);
        of_time && !met && figure - late < objective.bound
    };
    let turned = evidence.objectives.iter().find(explains);
    PathAnswer {
        p99: measurement.total.response().quantile(0.99),
        doubt_max: evidence.doubt_max,
        turned: turned.map(|objective| objective.text.clone()),
    }
}

/// Calls that waited for a connection: caused by the load, and part of its response times.
fn wait(evidence: &Evidence<'_>) -> Option<Cause> {
    let total = &evidence.measurement.total;
    let median = total.response().quantile(0.5);
    let limit = SLIP_MAX.max(Nanos((median.0 as f64 * WAIT_SHARE_MAX) as u64));
    let found = total.wait.quantile(0.99);
    (found > limit).then(|| Cause {
        id: CauseId::Wait,
        figure: found.as_secs_f64(),
        text: format!(
            "calls waited for a free connection, p99 {} (at most {})",
            show::duration(found),
            show::duration(limit)
        ),
        advice: "Raise --connections-max, or read the result as that of a system with this limit; \
            service times exclude the wait for a connection."
            .to_owned(),
    })
}

fn ports(evidence: &Evidence<'_>) -> Option<Cause> {
    let total = &evidence.measurement.total;
    let count = evidence.ports_out + failures(total, FailureClass::AddressUnavailable);
    (count > 0).then(|| Cause {
        id: CauseId::Ports,
        figure: count as f64,
        text: format!("{} connects found no free local port", show::count(count)),
        advice: "Keep connections open for more --calls, add local addresses with --bind, or \
                 widen net.ipv4.ip_local_port_range."
            .to_owned(),
    })
}

fn descriptors(evidence: &Evidence<'_>) -> Option<Cause> {
    let total = &evidence.measurement.total;
    let count = evidence.descriptors_out
        + failures(total, FailureClass::FdUnavailable)
        + failures(total, FailureClass::FileTableFull);
    (count > 0).then(|| Cause {
        id: CauseId::Descriptors,
        figure: count as f64,
        text: format!("{} connects found no free file descriptor", show::count(count)),
        advice: "Raise the limit (ulimit -n, fs.file-max), or lower --connections-max or -c."
            .to_owned(),
    })
}

fn all_failed(evidence: &Evidence<'_>) -> Option<Cause> {
    let total = &evidence.measurement.total;
    let counts = &total.counts;
    let bad = counts.failed + counts.timed_out + counts.dropped;
    if counts.succeeded > 0 || bad == 0 {
        return None;
    }
    // The most frequent class; of equally frequent ones, the one listed first.
    let worst = total.failures.iter().rev().max_by_key(|(_, count)| **count);
    let mostly = worst.map_or(String::new(), |(class, count)| {
        format!("; {} × {}", show::count(*count), class.short_form())
    });
    Some(Cause {
        id: CauseId::AllFailed,
        figure: bad as f64,
        text: format!("none of {} calls succeeded{mostly}", show::count(bad)),
        advice: "Make one call work first (-n 1), and see --expect-status if the response is the \
                 one you want."
            .to_owned(),
    })
}

fn driver_cpu(evidence: &Evidence<'_>) -> Option<Cause> {
    let busy =
        evidence.driver_busy.filter(|busy| evidence.closed_loop && *busy >= DRIVER_BUSY_MAX)?;
    Some(Cause {
        id: CauseId::DriverCpu,
        figure: busy,
        text: format!(
            "a worker used {} of its core (should be below {})",
            show::share(busy),
            show::share(DRIVER_BUSY_MAX)
        ),
        advice: "The client may have limited this throughput, not the server: give it more cores \
                 with --threads, or lower -c."
            .to_owned(),
    })
}

fn drift(evidence: &Evidence<'_>) -> Option<Cause> {
    let measurement = evidence.measurement;
    let drift =
        steady::drift(&measurement.series, measurement.window).filter(|_| !evidence.ramped)?;
    Some(Cause {
        id: CauseId::Drift,
        figure: drift.change(),
        text: drift_text(&drift),
        advice: "Lengthen --warmup and the run until the figure settles; one that never settles \
                 is a leak, a filling disk or a growing queue."
            .to_owned(),
    })
}

fn drift_text(drift: &Drift) -> String {
    let (name, first, last) = match drift.figure {
        Drifting::ResponseP50 => {
            let shown = |secs| show::duration(Nanos::from_secs_f64(secs));
            ("response time p50", shown(drift.first), shown(drift.last))
        }
        Drifting::Throughput => ("throughput", show::rate(drift.first), show::rate(drift.last)),
    };
    let went = if drift.last > drift.first { "rose" } else { "fell" };
    format!(
        "{name} {went} from {first} to {last} from the first to the last third (Mann-Kendall p {:.1e}; at most \
         {} change)",
        drift.p_value,
        show::share(steady::DRIFT_CHANGE_MIN)
    )
}

/// Returns an upper bound on the share of the calls whose worker waited for a core at least as long
/// as the p99. `None` at or below [`WAITED_CALLS_MAX`], and in an open loop, whose lateness shows
/// such waits.
fn waited_calls(evidence: &Evidence<'_>) -> Option<f64> {
    let response = evidence.measurement.total.response();
    let p99 = response.quantile(0.99).as_secs_f64();
    // as if every wait were as long as the p99 and delayed all outstanding calls of its worker
    let share = evidence.waited_share * response.mean().as_secs_f64() / p99.max(1e-9);
    Some(share.min(1.0)).filter(|share| evidence.closed_loop && *share > WAITED_CALLS_MAX)
}

fn foreign_cpu(evidence: &Evidence<'_>) -> Option<Cause> {
    let foreign = evidence.foreign_share.unwrap_or(0.0);
    let steal = evidence.steal_share.unwrap_or(0.0);
    let figure = foreign.max(steal);
    if figure.is_nan() || figure <= FOREIGN_SHARE_MAX {
        return None;
    }
    let (who, advice) = if foreign >= steal {
        ("other programs", "Stop them or bind the client to quiet cores with --cpus, and repeat.")
    } else {
        ("the hypervisor (steal)", "Repeat on a quieter or a dedicated machine.")
    };
    let waited = waited_calls(evidence).map_or_else(String::new, |share| {
        format!(
            "; up to {} of the calls (at most {}) waited for our core as long as the p99",
            show::share(share),
            show::share(WAITED_CALLS_MAX)
        )
    });
    Some(Cause {
        id: CauseId::ForeignCpu,
        figure,
        text: format!(
            "{who} took {} of our cores (at most {}){waited}",
            show::share(figure),
            show::share(FOREIGN_SHARE_MAX)
        ),
        advice: advice.to_owned(),
    })
}

fn shared_cores(evidence: &Evidence<'_>) -> Option<Cause> {
    evidence.shared_cores.as_ref().map(|text| Cause {
        id: CauseId::SharedCores,
        figure: 1.0,
        text: text.clone(),
        advice: "Client and server slow each other down: bind the client to other cores with \
            --cpus, or run it on another machine."
            .to_owned(),
    })
}

fn few_samples(evidence: &Evidence<'_>) -> Option<Cause> {
    let counts = &evidence.measurement.total.counts;
    let count = counts.succeeded + counts.timed_out;
    let lacking = evidence.quantiles.iter().filter(|q| count < samples_needed(**q));
    let quantile = lacking.copied().max_by_key(|q| samples_needed(*q))?;
    let needed = samples_needed(quantile);
    let name = quantile_name(quantile);
    let longer = match count {
        0 => "Run longer".to_owned(),
        _ => format!("Run {} as long", times(needed as f64 / count as f64, f64::ceil)),
    };
    Some(Cause {
        id: CauseId::FewSamples,
        figure: count as f64,
        text: format!(
            "{name} is printed from {} response times (at least {})",
            show::count(count),
            show::count(needed)
        ),
        advice: format!("{longer}, or print lower quantiles with --percentiles."),
    })
}

fn interrupted(evidence: &Evidence<'_>) -> Option<Cause> {
    let measurement = evidence.measurement;
    let after = show::duration(measurement.window);
    let (text, advice) = match &measurement.aborted {
        Some(rule) => (
            format!("ended after {after} by {}", crate::abort_source(rule)),
            "The run ended as requested: examine the failures before a longer run.",
        ),
        None if measurement.interrupted => (
            format!("interrupted after {after}"),
            "The figures cover only the measured time: let the run finish.",
        ),
        None => return None,
    };
    Some(Cause {
        id: CauseId::Interrupted,
        figure: measurement.window.as_secs_f64(),
        text,
        advice: advice.to_owned(),
    })
}

fn failures(total: &Snapshot, class: FailureClass) -> u64 {
    total.failures.get(&class).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests;
