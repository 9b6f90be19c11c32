//! The objective grammar, `metric op value[unit]`: the same for `--slo`, `--find` and `--abort-if`.

mod ruling;

use crate::{Block, Counts, Hist, NumberTally, ScenarioTally, Snapshot, show_number};
pub use ruling::{FigureInterval, Ruling, SURE, Undecided, Unsure, quantile_interval, rulings};
use std::sync::Arc;
use units::{Nanos, ParseError, parse_percent, parse_share, quoted, show};

/// Bound on one figure of a run, such as `p99<50ms` or `failures<0.1%`.
#[derive(Clone, Debug, PartialEq)]
pub struct Objective {
    /// Name of the part; `None` for the whole run.
    pub of: Option<Subject>,
    pub metric: Metric,
    pub op: Op,
    /// Seconds for times, a share 0..=1 for failures and conforming, per second for rates, the bare
    /// number for a metric of the plan.
    pub bound: f64,
    /// Text as typed.
    pub text: String,
}

/// A named part of a run: a step, a target, a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    pub name: String,
    pub rows: SubjectRows,
}

/// Rows with the figures of a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubjectRows {
    /// The part has not been resolved to rows yet.
    Unknown,
    /// Rows of the targets.
    Targets(Arc<[u32]>),
    Transaction(u32),
    /// Row of the kinds of clients.
    Clients(u32),
    Scenario(u32),
    /// Row of the plan's metrics.
    Number(u32),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Metric {
    /// Quantile 0..=1 of the response time; `max` is 1.
    Response(f64),
    ResponseMean,
    /// (failed + timed out + dropped) / due.
    Failures,
    Throughput,
    Goodput,
    Conforming,
    /// Quantile 0..=1 of the time to the first event of a stream.
    FirstEvent(f64),
    /// Time from one event to the next.
    EventGap(f64),
    /// Events of all streams, over the window.
    Events,
    /// Quantile 0..=1 of the mean time per token of a stream.
    TokenTime(f64),
    /// Tokens of all streams, over the window.
    Tokens,
    /// Quantile 0..=1 of the handshake of a WebSocket.
    Handshake(f64),
    /// WebSockets that ended abnormally, of all that ended.
    AbnormalCloses,
    /// Messages received, over the window.
    Messages,
    /// Quantile 0..=1 of a metric of the plan.
    Number(f64),
    NumberMean,
    /// Share of the expected receptions of published messages that took place.
    Reach,
    /// Calls of gRPC that ended with the status OK, of all that were due.
    StatusOk,
}

/// Prefix of the name of a metric that a plan takes from responses: `metric queue: p95<10`.
pub const METRIC_PREFIX: &str = "metric ";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Below,
    AtMost,
    Above,
    AtLeast,
}

impl Objective {
    /// Parses `p99<50ms`, `max<=1s`, `mean<10ms`, `failures<0.1%`, `throughput>=1000/s`,
    /// `goodput>900/s`, `conforming>=95%`, and of streams `first-event-p99<1s`,
    /// `event-gap-p99<100ms`, `events>500/s`, of language models `ttft-p95<500ms`,
    /// `inter-token-p99<80ms`, `tpot-p95<40ms`, `tokens>1000/s`, and of gRPC `status-ok>99.9%`,
    /// `first-message-p95<50ms`, `message-gap-p99<100ms`. Times and percentages need their unit; a
    /// share may be bare (`0.001`). With a name before it, `login: p99<200ms`, it is of that part
    /// of the run; with `metric NAME:`, of a number that the plan takes from responses, without a
    /// unit.
    pub fn parse(text: &str) -> Result<Objective, ParseError> {
        let text = text.trim();
        let bad = |why: &str| {
            ParseError(format!(
                "{} is not an objective: {why}; write one like {EXAMPLES}",
                quoted(text)
            ))
        };
        // the part's name may be a pattern of URLs, with a query in it; no bound has a colon
        let bounds = ['<', '>', '≤', '≥', '='];
        let (of, whole) = match text.rsplit_once(':').filter(|(_, it)| it.contains(bounds)) {
            Some((of, whole)) => (Some(of.trim()), whole),
            None => (None, text),
        };
        let at = whole.find(bounds).ok_or_else(|| bad("it has no <, <=, > or >="))?;
        let (name, rest) = whole.split_at(at);
        let (op, value) = Op::take(rest).ok_or_else(|| bad("a bound is <, <=, > or >="))?;
        let read = |name: &str, value: &str| {
            let metric = Metric::parse(name).ok_or_else(|| match our_metric(name) {
                Some(ours) => bad(&format!("{} is {ours} here", quoted(name))),
                None => bad(&format!("{} is not a metric ({METRICS})", quoted(name))),
            })?;
            Ok((metric, metric.bound(value).map_err(|why| bad(&why))?))
        };
        let read_number = |name: &str, value: &str| {
            let metric = Metric::for_number(name).ok_or_else(|| {
                bad(&format!("a metric of the plan has p50, p99, max and mean, not {name}"))
            })?;
            Ok((metric, metric.bound(value).map_err(|why| bad(&why))?))
        };
        let (name, value) = (name.trim(), value.trim());
        let (metric, bound) = match of.is_some_and(|of| of.starts_with(METRIC_PREFIX)) {
            // a part may have such a name too: its bounds have units
            true => read_number(name, value)
                .or_else(|why| read(name, value).map_err(|_: ParseError| why))?,
            false => read(name, value)?,
        };
        let of_number = matches!(metric, Metric::Number(_) | Metric::NumberMean);
        if let Some(of) = of {
            let per_part = of_number
                || matches!(metric, Metric::Response(_) | Metric::ResponseMean | Metric::Failures);
            if of.is_empty() {
                return Err(bad("there is no name before the colon"));
            }
            if !per_part {
                return Err(bad("a part of a run has only times and failures"));
            }
        }
        let of = of.map(|name| Subject { name: name.to_owned(), rows: SubjectRows::Unknown });
        Ok(Objective { of, metric, op, bound, text: text.to_owned() })
    }

    /// Returns the figure, in the unit of [`Objective::bound`], and whether it meets the bound. An
    /// unavailable figure (a quantile of no calls) is NaN, and meets no bound.
    pub fn evaluate(&self, figures: &Figures) -> (f64, bool) {
        let figure = figures.value(self.metric);
        (figure, self.holds(figure))
    }

    /// Returns the figures of the run, or of the part that the objective names.
    pub fn figures(&self, snapshot: &Snapshot, window: Nanos) -> Figures {
        match &self.of {
            None => Figures::new(snapshot, window),
            Some(subject) => Figures::for_part(snapshot, window, &subject.rows),
        }
    }

    /// Returns the part of a series row from which the figure's interval is computed.
    pub fn block(&self, row: &Snapshot) -> Block {
        let figures = self.figures(row, Nanos::ZERO);
        let (found, of) = figures.share(self.metric).unwrap_or_default();
        let times = match (figures.samples(self.metric), self.metric) {
            (Some((_, Samples::Times(times))), _) => times,
            (Some((_, numbers)), _) => {
                let of = numbers.count();
                return Block {
                    found: of - numbers.within(self.bound, true),
                    of,
                    ..Block::default()
                };
            }
            (None, Metric::ResponseMean) => &figures.response,
            (None, _) => return Block { found, of, ..Block::default() },
        };
        let sum_s = times.mean().as_secs_f64() * times.count() as f64;
        Block { times: times.cumulative(), sum_s, found, of }
    }
}

/// Returns a lower bound of quantile `q` of `times` once each is reduced by its lateness. `lag`:
/// lateness of all calls of the run, `calls_each` of which make up one of `times`.
///
/// If `late` calls have more than a lateness L, at most that many times fall by more than L. So the
/// value of rank r falls at most to the value of rank r - late, less L.
fn quantile_without(times: &Hist, q: f64, lag: &Hist, calls_each: u64) -> Nanos {
    let count = times.count();
    if count == 0 {
        return Nanos::ZERO;
    }
    let rank = ((q * count as f64).ceil() as u64).clamp(1, count);
    let bound_at = |most: Nanos| {
        let late = lag.count().saturating_sub(lag.count_at_or_below(most));
        let rank = rank.checked_sub(late).filter(|rank| *rank > 0)?;
        let value = times.quantile((rank as f64 - 0.5) / count as f64);
        Some(value - Nanos(most.0.saturating_mul(calls_each)))
    };
    let shares = [0.5, 0.9, 0.99, 0.999, 0.9999, 1.0];
    let lags = shares.into_iter().map(|share| lag.quantile(share)).chain([Nanos::ZERO]);
    lags.filter_map(bound_at).max().unwrap_or(Nanos::ZERO)
}

/// Returns the lower bound of the mean of `times` less their lateness: all lateness of the run is
/// attributed to them.
fn mean_without(times: &Hist, lag: &Hist) -> Nanos {
    let all = lag.mean().as_secs_f64() * lag.count() as f64;
    times.mean() - Nanos::from_secs_f64(all / times.count().max(1) as f64)
}

/// Parses objectives separated by commas: `p99<50ms, failures<0.1%`. A comma between digits groups
/// thousands.
pub fn parse_objectives(text: &str) -> Result<Vec<Objective>, ParseError> {
    let mut objectives = Vec::new();
    let mut rest = text;
    loop {
        let end = rest.match_indices(',').find(|(at, _)| {
            let next = rest[at + 1..].trim_start().chars().next();
            next.is_none_or(|next| !next.is_ascii_digit())
        });
        let (one, after) = match end {
            Some((at, _)) => (&rest[..at], Some(&rest[at + 1..])),
            None => (rest, None),
        };
        objectives.push(Objective::parse(one)?);
        match after {
            Some(after) => rest = after,
            None => return Ok(objectives),
        }
    }
}

/// Returns the metric with this name in other tools, such as k6.
fn our_metric(name: &str) -> Option<String> {
    let quantile = name.strip_prefix("p(").and_then(|rest| rest.strip_suffix(')'));
    let ours = match name {
        "avg" | "average" => "mean".to_owned(),
        "med" => "median".to_owned(),
        "rate" | "errors" | "error-rate" | "http_req_failed" => "failures".to_owned(),
        "rps" | "http_reqs" => "throughput".to_owned(),
        _ => format!("p{}", quantile?.trim()),
    };
    Metric::parse(&ours).map(|_| ours)
}

impl Metric {
    /// Returns the quantile, 0..=1, of a metric that is a quantile.
    pub fn quantile(self) -> Option<f64> {
        match self {
            Metric::Response(quantile)
            | Metric::FirstEvent(quantile)
            | Metric::EventGap(quantile)
            | Metric::TokenTime(quantile)
            | Metric::Handshake(quantile)
            | Metric::Number(quantile) => Some(quantile),
            _ => None,
        }
    }

    /// Returns true for a time, in seconds.
    pub fn is_time(self) -> bool {
        let is_number = matches!(self, Metric::Number(_));
        self == Metric::ResponseMean || (self.quantile().is_some() && !is_number)
    }

    /// Returns true for a share, 0..=1.
    fn is_share(self) -> bool {
        let shares = [
            Metric::Failures,
            Metric::Conforming,
            Metric::AbnormalCloses,
            Metric::Reach,
            Metric::StatusOk,
        ];
        shares.contains(&self)
    }

    /// Returns a figure with its unit; `no samples` for NaN.
    pub fn show(self, figure: f64) -> String {
        match self {
            _ if figure.is_nan() => "no samples".to_owned(),
            metric if metric.is_time() => show::duration(Nanos::from_secs_f64(figure)),
            Metric::Number(_) | Metric::NumberMean => show_number(figure),
            metric if metric.is_share() => show::share(figure),
            _ => show::rate(figure),
        }
    }

    /// Returns a range of figures with its unit: `28.1 ms to 31.7 ms`, `28.1 ms or more`; `None`
    /// without ends.
    pub fn show_range(self, low: Option<f64>, high: Option<f64>) -> Option<String> {
        let [low, high] = [low, high].map(|end| end.map(|end| self.show(end)));
        Some(match (low, high) {
            (Some(low), Some(high)) => format!("{low} to {high}"),
            (Some(low), None) => format!("{low} or more"),
            (None, Some(high)) => format!("up to {high}"),
            (None, None) => return None,
        })
    }

    fn parse(name: &str) -> Option<Metric> {
        Some(match name {
            "mean" => Metric::ResponseMean,
            "failures" => Metric::Failures,
            "throughput" => Metric::Throughput,
            "goodput" => Metric::Goodput,
            "conforming" => Metric::Conforming,
            "events" => Metric::Events,
            "tokens" => Metric::Tokens,
            "abnormal-closes" => Metric::AbnormalCloses,
            "messages" => Metric::Messages,
            "reach" => Metric::Reach,
            "message-mean" => Metric::ResponseMean,
            "status-ok" => Metric::StatusOk,
            _ => match name.rsplit_once('-') {
                Some(("first-event" | "first-message" | "ttft", name)) => {
                    Metric::FirstEvent(quantile(name)?)
                }
                Some(("event-gap" | "message-gap" | "inter-token", name)) => {
                    Metric::EventGap(quantile(name)?)
                }
                Some(("tpot", name)) => Metric::TokenTime(quantile(name)?),
                Some(("handshake", name)) => Metric::Handshake(quantile(name)?),
                Some(("message", name)) => Metric::Response(quantile(name)?),
                _ => Metric::Response(quantile(name)?),
            },
        })
    }

    /// Returns the metric of a number that the plan takes from responses.
    fn for_number(name: &str) -> Option<Metric> {
        if name == "mean" { Some(Metric::NumberMean) } else { quantile(name).map(Metric::Number) }
    }

    fn bound(self, value: &str) -> Result<f64, String> {
        match self {
            Metric::Number(_) | Metric::NumberMean => {
                let bound = value.parse().ok().filter(|bound: &f64| bound.is_finite());
                bound.ok_or_else(|| format!("{} is not a number without a unit", quoted(value)))
            }
            metric if metric.is_time() => {
                if !value.ends_with(char::is_alphabetic) {
                    return Err(format!("the time {} needs a unit", quoted(value)));
                }
                units::parse_duration(value).map(Nanos::as_secs_f64).map_err(|error| error.0)
            }
            metric if metric.is_share() => parse_share(value).map_err(|error| error.0),
            _ => units::parse_rate(value).map(|rate| rate.0).map_err(|error| error.0),
        }
    }
}

impl Op {
    fn take(text: &str) -> Option<(Op, &str)> {
        let ops = [
            ("<=", Op::AtMost),
            ("≤", Op::AtMost),
            (">=", Op::AtLeast),
            ("≥", Op::AtLeast),
            ("<", Op::Below),
            (">", Op::Above),
        ];
        ops.iter().find_map(|(sign, op)| text.strip_prefix(sign).map(|rest| (*op, rest)))
    }
}

/// Parses `p99.9`, `median` or `max` as a share.
fn quantile(name: &str) -> Option<f64> {
    match name {
        "max" => Some(1.0),
        "median" => Some(0.5),
        _ => parse_percent(name.strip_prefix('p')?).filter(|it| *it > 0.0 && *it <= 1.0),
    }
}

const EXAMPLES: &str = "p99<50ms, failures<0.1% or throughput>=1000/s";
const METRICS: &str = "p50 p99 p99.9 max mean failures throughput goodput conforming; of streams \
                       first-event-p99 event-gap-p99 events; of language models ttft-p95 \
                       inter-token-p99 tpot-p95 tokens; of WebSockets message-p99 handshake-p99 messages \
                        abnormal-closes reach; of gRPC status-ok first-message-p99 \
                       message-gap-p99";

/// Figures that objectives refer to, of a whole run or of one interval.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    counts: Counts,
    response: Hist,
    window: Nanos,
    in_window: u64,
    good_in_window: u64,
    judged: u64,
    conforming: u64,
    /// For streams: time to the first event, time between events, and events inside the window.
    first_event: Hist,
    event_gap: Hist,
    events: u64,
    /// For streams of tokens: the mean time per token of each, and the tokens of an event.
    token_time: Hist,
    tokens_each: f64,
    /// For WebSockets: handshakes, received messages, ends and abnormal ends.
    handshake: Hist,
    messages: u64,
    ended: u64,
    abnormal: u64,
    /// Numbers of a metric of the plan.
    numbers: NumberTally,
    /// Receptions that took place, and expected ones.
    receptions: (u64, u64),
    /// Calls that ended with the status OK; `None` if no call had a gRPC status.
    status_ok: Option<u64>,
}

impl Figures {
    /// Returns the figures of a snapshot. `window`: time by which its completions are divided.
    pub fn new(snapshot: &Snapshot, window: Nanos) -> Figures {
        let fan_out = &snapshot.messages.fan_out;
        Figures {
            counts: snapshot.counts,
            response: snapshot.response(),
            window,
            in_window: snapshot.in_window,
            good_in_window: snapshot.good_in_window,
            judged: snapshot.connections.judged,
            conforming: snapshot.connections.conforming,
            first_event: snapshot.streams.first.clone(),
            event_gap: snapshot.streams.gap.clone(),
            events: snapshot.streams.in_window,
            token_time: snapshot.streams.pace.clone(),
            tokens_each: snapshot.streams.tokens.of_event(),
            handshake: snapshot.messages.handshake.clone(),
            messages: snapshot.messages.in_window,
            ended: snapshot.messages.ended(),
            abnormal: snapshot.messages.abnormal(),
            numbers: NumberTally::default(),
            receptions: (fan_out.received, fan_out.expected),
            status_ok: snapshot.streams.grpc.ok_count(),
        }
    }

    /// Returns the figures of a part: its ended calls, or its ended transactions.
    fn for_part(snapshot: &Snapshot, window: Nanos, rows: &SubjectRows) -> Figures {
        let mut counts = Counts::default();
        let mut response = Hist::new();
        match rows {
            SubjectRows::Unknown => {}
            // a single target has no separate row, because it equals the run
            SubjectRows::Targets(_) if snapshot.targets.is_empty() => {
                return Figures::new(snapshot, window);
            }
            SubjectRows::Targets(rows) => {
                for row in rows.iter().filter_map(|row| snapshot.targets.get(*row as usize)) {
                    row.add_to(&mut counts, &mut response);
                }
            }
            SubjectRows::Clients(row) => {
                if let Some(row) = snapshot.clients.get(*row as usize) {
                    row.add_to(&mut counts, &mut response);
                }
            }
            SubjectRows::Scenario(row) => {
                if let Some(row) = snapshot.scenarios.get(*row as usize) {
                    return Figures::for_scenario(row, window);
                }
            }
            SubjectRows::Number(row) => {
                let numbers = snapshot.journeys.metrics.get(*row as usize).cloned();
                let none = Figures::for_calls(counts, response, window, (0, 0));
                return Figures { numbers: numbers.unwrap_or_default(), ..none };
            }
            SubjectRows::Transaction(row) => {
                if let Some(row) = snapshot.journeys.transactions.get(*row as usize) {
                    counts.succeeded = row.succeeded;
                    counts.failed = row.failed;
                    response.merge(&row.time);
                }
            }
        }
        counts.due = counts.done();
        let (in_window, good_in_window) = (counts.due, counts.succeeded);
        Figures::for_calls(counts, response, window, (in_window, good_in_window))
    }

    /// Returns the figures of a scenario, counted like those of the run except for its connections.
    fn for_scenario(row: &ScenarioTally, window: Nanos) -> Figures {
        let done = (row.in_window, row.good_in_window);
        Figures::for_calls(row.counts, row.response.clone(), window, done)
    }

    /// Returns the figures of calls. `done`: calls inside the window, and successful ones.
    fn for_calls(counts: Counts, response: Hist, window: Nanos, done: (u64, u64)) -> Figures {
        Figures {
            counts,
            response,
            window,
            in_window: done.0,
            good_in_window: done.1,
            ..Figures::default()
        }
    }

    /// Returns the figure as seconds, a share or a rate per second, like [`Objective::bound`]; NaN
    /// without samples.
    pub fn value(&self, metric: Metric) -> f64 {
        let per_s = |count: u64| ratio(count as f64, self.window.as_secs_f64());
        match metric {
            Metric::Response(_) | Metric::ResponseMean if self.response.is_empty() => f64::NAN,
            Metric::Response(quantile) => self.response.quantile(quantile).as_secs_f64(),
            Metric::ResponseMean => self.response.mean().as_secs_f64(),
            Metric::Failures | Metric::AbnormalCloses | Metric::StatusOk => {
                let (found, of) = self.share(metric).unwrap_or_default();
                ratio(found as f64, of as f64)
            }
            Metric::Throughput => per_s(self.in_window),
            Metric::Goodput => per_s(self.good_in_window),
            Metric::Conforming => ratio(self.conforming as f64, self.judged as f64),
            Metric::FirstEvent(_) if self.first_event.is_empty() => f64::NAN,
            Metric::EventGap(_) if self.event_gap.is_empty() => f64::NAN,
            Metric::FirstEvent(quantile) => self.first_event.quantile(quantile).as_secs_f64(),
            Metric::EventGap(quantile) => self.event_gap.quantile(quantile).as_secs_f64(),
            Metric::Events => per_s(self.events),
            Metric::TokenTime(_) if self.token_time.is_empty() => f64::NAN,
            Metric::TokenTime(quantile) => self.token_time.quantile(quantile).as_secs_f64(),
            Metric::Tokens => per_s(self.events) * self.tokens_each,
            Metric::Handshake(_) if self.handshake.is_empty() => f64::NAN,
            Metric::Handshake(quantile) => self.handshake.quantile(quantile).as_secs_f64(),
            Metric::Messages => per_s(self.messages),
            Metric::Number(quantile) => self.numbers.quantile(quantile).unwrap_or(f64::NAN),
            Metric::NumberMean => self.numbers.mean().unwrap_or(f64::NAN),
            Metric::Reach => ratio(self.receptions.0 as f64, self.receptions.1 as f64),
        }
    }

    /// Returns the quantile and samples of a metric that has them.
    fn samples(&self, metric: Metric) -> Option<(f64, Samples<'_>)> {
        let samples = match metric {
            Metric::FirstEvent(_) => Samples::Times(&self.first_event),
            Metric::EventGap(_) => Samples::Times(&self.event_gap),
            Metric::TokenTime(_) => Samples::Times(&self.token_time),
            Metric::Handshake(_) => Samples::Times(&self.handshake),
            Metric::Number(_) => Samples::Numbers(&self.numbers),
            _ => Samples::Times(&self.response),
        };
        Some((metric.quantile()?, samples))
    }

    /// Returns the counted and all trials of a metric that is a share of independent trials.
    fn share(&self, metric: Metric) -> Option<(u64, u64)> {
        match metric {
            Metric::Failures => Some((self.counts.unsuccessful(), self.counts.due)),
            Metric::AbnormalCloses => Some((self.abnormal, self.ended)),
            Metric::StatusOk => Some((self.status_ok?, self.counts.due)),
            _ => None,
        }
    }
}

/// Samples of a quantile.
enum Samples<'a> {
    Times(&'a Hist),
    Numbers(&'a NumberTally),
}

impl Samples<'_> {
    fn count(&self) -> u64 {
        match self {
            Samples::Times(times) => times.count(),
            Samples::Numbers(numbers) => numbers.count(),
        }
    }

    /// Returns how many are below the bound, or `at` it too.
    fn within(&self, bound: f64, at: bool) -> u64 {
        match self {
            Samples::Times(times) => {
                let bound = Nanos::from_secs_f64(bound);
                times.count_at_or_below(if at { bound } else { bound - Nanos(1) })
            }
            Samples::Numbers(numbers) => {
                numbers.count_at_or_below(if at { bound } else { bound.next_down() })
            }
        }
    }

    /// Returns the values that were counted, the upper end of each class, the lowest first.
    fn values(&self) -> Vec<f64> {
        match self {
            Samples::Times(times) => {
                times.buckets().into_iter().map(|(value, _)| value.as_secs_f64()).collect()
            }
            Samples::Numbers(numbers) => numbers.values(),
        }
    }
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { f64::NAN }
}

#[cfg(test)]
mod tests;
