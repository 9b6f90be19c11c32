//! Metrics as defined by k6: their properties, and the data that a worker has collected.

use std::collections::BTreeMap;
use units::Nanos;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    Counter,
    Gauge,
    Rate,
    Trend,
}

impl MetricKind {
    pub fn id(self) -> &'static str {
        match self {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Rate => "rate",
            MetricKind::Trend => "trend",
        }
    }

    pub(crate) fn from_name(id: &str) -> Option<MetricKind> {
        [MetricKind::Counter, MetricKind::Gauge, MetricKind::Rate, MetricKind::Trend]
            .into_iter()
            .find(|it| it.id() == id)
    }
}

/// Kind of a metric's values, which determines their unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contains {
    Default,
    Time,
    Data,
}

impl Contains {
    pub fn id(self) -> &'static str {
        match self {
            Contains::Default => "default",
            Contains::Time => "time",
            Contains::Data => "data",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricDef {
    pub name: String,
    pub kind: MetricKind,
    pub contains: Contains,
}

/// Part of a metric: the values that have these tags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubMetric {
    /// Name as written in the thresholds: `http_req_duration{status:200}`.
    pub name: String,
    pub parent: usize,
    pub tags: Vec<(String, String)>,
}

/// All metrics of a test.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    pub defs: Vec<MetricDef>,
    by_name: BTreeMap<String, usize>,
    pub subs: Vec<SubMetric>,
    /// True if an output requires every value with its tags.
    pub keeps_points: bool,
    /// True if the summary has a section for each scenario and group.
    pub keeps_sections: bool,
}

macro_rules! built_in {
    ($($constant:ident = $row:literal, $name:literal, $kind:ident, $contains:ident;)*) => {
        /// Rows of the built-in metrics.
        pub mod row { $(pub const $constant: usize = $row;)* }
        const BUILT_IN: &[(&str, MetricKind, Contains)] =
            &[$(($name, MetricKind::$kind, Contains::$contains),)*];
    };
}

built_in! {
    VUS = 0, "vus", Gauge, Default;
    VUS_MAX = 1, "vus_max", Gauge, Default;
    ITERATIONS = 2, "iterations", Counter, Default;
    ITERATION_DURATION = 3, "iteration_duration", Trend, Time;
    DROPPED = 4, "dropped_iterations", Counter, Default;
    CHECKS = 5, "checks", Rate, Default;
    GROUP_DURATION = 6, "group_duration", Trend, Time;
    HTTP_REQS = 7, "http_reqs", Counter, Default;
    HTTP_FAILED = 8, "http_req_failed", Rate, Default;
    HTTP_DURATION = 9, "http_req_duration", Trend, Time;
    HTTP_BLOCKED = 10, "http_req_blocked", Trend, Time;
    HTTP_CONNECTING = 11, "http_req_connecting", Trend, Time;
    HTTP_TLS = 12, "http_req_tls_handshaking", Trend, Time;
    HTTP_SENDING = 13, "http_req_sending", Trend, Time;
    HTTP_WAITING = 14, "http_req_waiting", Trend, Time;
    HTTP_RECEIVING = 15, "http_req_receiving", Trend, Time;
    DATA_SENT = 16, "data_sent", Counter, Data;
    DATA_RECEIVED = 17, "data_received", Counter, Data;
    WS_CONNECTING = 18, "ws_connecting", Trend, Time;
    WS_RECEIVED = 19, "ws_msgs_received", Counter, Default;
    WS_SENT = 20, "ws_msgs_sent", Counter, Default;
    WS_PING = 21, "ws_ping", Trend, Time;
    WS_DURATION = 22, "ws_session_duration", Trend, Time;
    WS_SESSIONS = 23, "ws_sessions", Counter, Default;
    GRPC_DURATION = 24, "grpc_req_duration", Trend, Time;
    GRPC_STREAMS = 25, "grpc_streams", Counter, Default;
    GRPC_STREAM_SENT = 26, "grpc_streams_msgs_sent", Counter, Default;
    GRPC_STREAM_RECEIVED = 27, "grpc_streams_msgs_received", Counter, Default;
}

/// First row of metrics that are not built in.
pub const CUSTOM_FROM: usize = BUILT_IN.len();

impl Registry {
    pub fn built_in() -> Registry {
        let mut registry = Registry::default();
        for (name, kind, contains) in BUILT_IN {
            registry.add(name, *kind, *contains);
        }
        registry
    }

    fn add(&mut self, name: &str, kind: MetricKind, contains: Contains) -> usize {
        let row = self.defs.len();
        self.defs.push(MetricDef { name: name.to_owned(), kind, contains });
        self.by_name.insert(name.to_owned(), row);
        row
    }

    pub fn find(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// Returns the row of a metric that a script declares.
    ///
    /// # Errors
    /// Fails if the name is invalid, or belongs to another kind.
    pub fn declare(
        &mut self,
        name: &str,
        kind: MetricKind,
        is_time: bool,
    ) -> Result<usize, String> {
        let first = name.chars().next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
        let rest = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !first || !rest || !(2..=129).contains(&name.len()) {
            return Err(format!(
                "invalid metric name: '{name}'; a name has 2 to 129 letters, digits and \
                 underscores and begins with a letter or underscore"
            ));
        }
        let contains = if is_time { Contains::Time } else { Contains::Default };
        let Some(row) = self.find(name) else { return Ok(self.add(name, kind, contains)) };
        let known = &self.defs[row];
        if known.kind != kind {
            return Err(format!(
                "metric '{name}' already exists but with type {}, instead of {}",
                known.kind.id(),
                kind.id()
            ));
        }
        Ok(row)
    }

    /// Returns the row of a sub-metric: the values of the parent that have these tags.
    pub(crate) fn sub(&mut self, name: &str, parent: usize, tags: Vec<(String, String)>) -> usize {
        let known = self.subs.iter().position(|sub| sub.parent == parent && sub.tags == tags);
        known.unwrap_or_else(|| {
            self.subs.push(SubMetric { name: name.to_owned(), parent, tags });
            self.subs.len() - 1
        })
    }

    /// Returns whether values need their tags.
    pub fn wants_tags(&self) -> bool {
        self.keeps_points || self.keeps_sections || !self.subs.is_empty()
    }
}

/// Maximum number of exact values of a trend; beyond it, values are counted in buckets.
pub const EXACT_MAX: usize = 100_000;
/// Ratio of the bounds of a bucket.
const BUCKET_RATIO: f64 = 1.001;

/// Values of a trend.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trend {
    exact: Vec<f64>,
    /// Counts by bucket number, once there are more than [`EXACT_MAX`] values.
    buckets: BTreeMap<i32, u64>,
    pub count: u64,
    pub sum: f64,
    pub min: f64,
    pub max: f64,
}

impl Trend {
    pub fn add(&mut self, value: f64) {
        self.note(1, value, value, value);
        if self.buckets.is_empty() && self.exact.len() < EXACT_MAX {
            self.exact.push(value);
        } else {
            self.spill();
            *self.buckets.entry(bucket(value)).or_default() += 1;
        }
    }

    fn note(&mut self, count: u64, sum: f64, min: f64, max: f64) {
        if self.count == 0 {
            (self.min, self.max) = (min, max);
        }
        self.count += count;
        self.sum += sum;
        self.min = self.min.min(min);
        self.max = self.max.max(max);
    }

    fn spill(&mut self) {
        for value in std::mem::take(&mut self.exact) {
            *self.buckets.entry(bucket(value)).or_default() += 1;
        }
    }

    pub fn merge(&mut self, other: &Trend) {
        if other.count == 0 {
            return;
        }
        self.note(other.count, other.sum, other.min, other.max);
        let fits = self.buckets.is_empty()
            && other.buckets.is_empty()
            && self.exact.len() + other.exact.len() <= EXACT_MAX;
        if fits {
            self.exact.extend_from_slice(&other.exact);
            return;
        }
        self.spill();
        for value in &other.exact {
            *self.buckets.entry(bucket(*value)).or_default() += 1;
        }
        for (number, count) in &other.buckets {
            *self.buckets.entry(*number).or_default() += count;
        }
    }

    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum / self.count as f64 }
    }

    /// Returns percentiles, each in 0..=1, by linear interpolation between sorted values.
    pub fn percentiles(&self, shares: &[f64]) -> Vec<f64> {
        if self.count == 0 {
            return vec![0.0; shares.len()];
        }
        if !self.buckets.is_empty() {
            return shares.iter().map(|share| self.bucket_quantile(*share)).collect();
        }
        let mut sorted = self.exact.clone();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len() - 1;
        let at = |share: f64| {
            let place = share.clamp(0.0, 1.0) * last as f64;
            let (low, high) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
            low + (high - low) * (place - place.floor())
        };
        shares.iter().map(|share| at(*share)).collect()
    }

    fn bucket_quantile(&self, share: f64) -> f64 {
        let wanted = (share.clamp(0.0, 1.0) * (self.count - 1) as f64).round() as u64;
        let mut seen = 0;
        for (number, count) in &self.buckets {
            seen += count;
            if seen > wanted {
                return middle(*number).clamp(self.min, self.max);
            }
        }
        self.max
    }

    pub fn percentile(&self, share: f64) -> f64 {
        self.percentiles(&[share])[0]
    }
}

/// Returns the bucket of a value: logarithmic in either direction, 0 in the middle.
fn bucket(value: f64) -> i32 {
    // below a billionth a value counts as zero
    if value.abs() <= 1e-9 {
        return 0;
    }
    let size = ((value.abs() / 1e-9).ln() / BUCKET_RATIO.ln()).round() as i32;
    if value < 0.0 { -size } else { size }
}

fn middle(number: i32) -> f64 {
    let size = if number == 0 { 0.0 } else { 1e-9 * BUCKET_RATIO.powi(number.abs()) };
    if number < 0 { -size } else { size }
}

/// Collected values of one metric.
#[derive(Clone, Debug, PartialEq)]
pub enum MetricSink {
    Counter { count: f64, used: bool },
    Gauge { value: f64, min: f64, max: f64, at: Nanos, used: bool },
    Rate { passes: u64, total: u64 },
    Trend(Trend),
}

impl MetricSink {
    pub fn new(kind: MetricKind) -> MetricSink {
        match kind {
            MetricKind::Counter => MetricSink::Counter { count: 0.0, used: false },
            MetricKind::Gauge => {
                MetricSink::Gauge { value: 0.0, min: 0.0, max: 0.0, at: Nanos::ZERO, used: false }
            }
            MetricKind::Rate => MetricSink::Rate { passes: 0, total: 0 },
            MetricKind::Trend => MetricSink::Trend(Trend::default()),
        }
    }

    pub fn add(&mut self, new: f64, now: Nanos) {
        match self {
            MetricSink::Counter { count, used } => (*count, *used) = (*count + new, true),
            MetricSink::Gauge { value, min, max, at, used } => {
                (*min, *max) = if *used { (min.min(new), max.max(new)) } else { (new, new) };
                (*value, *at, *used) = (new, now, true);
            }
            MetricSink::Rate { passes, total } => {
                *total += 1;
                *passes += u64::from(new != 0.0);
            }
            MetricSink::Trend(trend) => trend.add(new),
        }
    }

    pub fn merge(&mut self, other: &MetricSink) {
        match (self, other) {
            (
                MetricSink::Counter { count, used },
                MetricSink::Counter { count: more, used: also },
            ) => {
                *count += more;
                *used |= also;
            }
            (this @ MetricSink::Gauge { .. }, that @ MetricSink::Gauge { .. }) => {
                merge_gauges(this, that)
            }
            (MetricSink::Rate { passes, total }, MetricSink::Rate { passes: more, total: all }) => {
                *passes += more;
                *total += all;
            }
            (MetricSink::Trend(this), MetricSink::Trend(that)) => this.merge(that),
            _ => {}
        }
    }

    pub fn is_used(&self) -> bool {
        match self {
            MetricSink::Counter { used, .. } | MetricSink::Gauge { used, .. } => *used,
            MetricSink::Rate { total, .. } => *total > 0,
            MetricSink::Trend(trend) => trend.count > 0,
        }
    }
}

fn merge_gauges(this: &mut MetricSink, that: &MetricSink) {
    let MetricSink::Gauge { value, min, max, at, used } = this else { return };
    let MetricSink::Gauge { value: last, min: low, max: high, at: when, used: true } = that else {
        return;
    };
    if !*used {
        *this = that.clone();
        return;
    }
    (*min, *max) = (min.min(*low), max.max(*high));
    if *when >= *at {
        (*value, *at) = (*last, *when);
    }
}

/// Check, with the numbers of times that it passed and failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckCount {
    pub name: String,
    pub passes: u64,
    pub fails: u64,
}

/// Adds the results of a check to the check of the same name.
pub(crate) fn add_check(checks: &mut Vec<CheckCount>, name: &str, passes: u64, fails: u64) {
    match checks.iter_mut().find(|check| check.name == name) {
        Some(check) => (check.passes, check.fails) = (check.passes + passes, check.fails + fails),
        None => checks.push(CheckCount { name: name.to_owned(), passes, fails }),
    }
}

/// Checks by path of their group, in the order of their first use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Groups(pub Vec<(String, Vec<CheckCount>)>);

impl Groups {
    pub fn visit(&mut self, path: &str) -> &mut Vec<CheckCount> {
        let known = self.0.iter().position(|(known, _)| known == path);
        let row = known.unwrap_or_else(|| {
            self.0.push((path.to_owned(), Vec::new()));
            self.0.len() - 1
        });
        &mut self.0[row].1
    }

    pub fn check(&mut self, path: &str, name: &str, passes: u64, fails: u64) {
        add_check(self.visit(path), name, passes, fails);
    }

    fn merge(&mut self, other: &Groups) {
        for (path, checks) in &other.0 {
            self.visit(path);
            for check in checks {
                self.check(path, &check.name, check.passes, check.fails);
            }
        }
    }
}

/// Value with its tags, for the outputs.
#[derive(Clone, Debug, PartialEq)]
pub struct DataPoint {
    pub metric: usize,
    pub at: Nanos,
    pub value: f64,
    /// Tags, sorted by name.
    pub tags: Vec<(String, String)>,
}

/// Maximum number of scenarios and groups whose values are kept separately.
pub const SECTIONS_MAX: usize = 1_000;

/// Values of one scenario, or of one group in it.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// Name of the scenario; empty for the scenario `default`, as in k6.
    pub scenario: String,
    /// Path of the group; empty for the scenario itself.
    pub group: String,
    sinks: BTreeMap<usize, MetricSink>,
    pub checks: Vec<CheckCount>,
}

impl Section {
    pub fn sink(&self, metric: usize) -> Option<&MetricSink> {
        self.sinks.get(&metric)
    }

    fn merge(&mut self, other: &Section) {
        for (metric, sink) in &other.sinks {
            match self.sinks.get_mut(metric) {
                Some(mine) => mine.merge(sink),
                None => drop(self.sinks.insert(*metric, sink.clone())),
            }
        }
        for check in &other.checks {
            add_check(&mut self.checks, &check.name, check.passes, check.fails);
        }
    }
}

/// Sections in the order of their first values.
#[derive(Clone, Debug, Default)]
pub struct Sections(pub Vec<Section>);

impl Sections {
    /// Returns a section, and adds it if it is missing; `None` if there are too many.
    fn at(&mut self, scenario: &str, group: &str) -> Option<&mut Section> {
        let known = self.0.iter().position(|it| it.scenario == scenario && it.group == group);
        if known.is_none() && self.0.len() >= SECTIONS_MAX {
            return None;
        }
        let row = known.unwrap_or_else(|| {
            let (scenario, group) = (scenario.to_owned(), group.to_owned());
            self.0.push(Section { scenario, group, ..Section::default() });
            self.0.len() - 1
        });
        self.0.get_mut(row)
    }

    /// Adds a value to the sections that its tags name.
    fn add(
        &mut self,
        (metric, kind): (usize, MetricKind),
        value: f64,
        now: Nanos,
        tags: &[(String, String)],
    ) {
        let tag = |name: &str| {
            let found = tags.iter().find(|(known, _)| known == name);
            found.map_or("", |(_, value)| value.as_str())
        };
        let scenario = Some(tag("scenario")).filter(|name| *name != "default").unwrap_or_default();
        let group = tag("group");
        let in_stage = group == "::setup" || group == "::teardown";
        let of_scenario = (!scenario.is_empty()).then_some("");
        let of_group = (!group.is_empty() && !in_stage).then_some(group);
        for path in of_scenario.into_iter().chain(of_group) {
            let Some(section) = self.at(scenario, path) else { continue };
            section.sinks.entry(metric).or_insert_with(|| MetricSink::new(kind)).add(value, now);
            if metric == row::CHECKS {
                let passes = u64::from(value != 0.0);
                add_check(&mut section.checks, tag("check"), passes, 1 - passes);
            }
        }
    }

    fn merge(&mut self, other: &Sections) {
        for section in &other.0 {
            if let Some(mine) = self.at(&section.scenario, &section.group) {
                mine.merge(section);
            }
        }
    }
}

/// Values collected by one worker, or by all.
#[derive(Clone, Debug, Default)]
pub struct Store {
    pub sinks: Vec<Option<MetricSink>>,
    pub subs: Vec<Option<MetricSink>>,
    pub groups: Groups,
    /// Values by scenario and group, if [`Registry::keeps_sections`] is set.
    pub sections: Sections,
    pub points: Vec<DataPoint>,
}

impl Store {
    /// Adds a value; `tags` are needed where [`Registry::wants_tags`] holds.
    pub fn add(
        &mut self,
        registry: &Registry,
        metric: usize,
        value: f64,
        now: Nanos,
        tags: &[(String, String)],
    ) {
        let Some(def) = registry.defs.get(metric) else { return };
        if self.sinks.len() <= metric {
            self.sinks.resize(metric + 1, None);
        }
        self.sinks[metric].get_or_insert_with(|| MetricSink::new(def.kind)).add(value, now);
        for (row, sub) in registry.subs.iter().enumerate() {
            if sub.parent != metric || !sub.tags.iter().all(|tag| tags.contains(tag)) {
                continue;
            }
            if self.subs.len() <= row {
                self.subs.resize(row + 1, None);
            }
            self.subs[row].get_or_insert_with(|| MetricSink::new(def.kind)).add(value, now);
        }
        if registry.keeps_sections {
            self.sections.add((metric, def.kind), value, now, tags);
        }
        if registry.keeps_points {
            self.points.push(DataPoint { metric, at: now, value, tags: tags.to_vec() });
        }
    }

    pub fn merge(&mut self, other: &Store) {
        let merge = |into: &mut Vec<Option<MetricSink>>, from: &Vec<Option<MetricSink>>| {
            if into.len() < from.len() {
                into.resize(from.len(), None);
            }
            for (mine, theirs) in into.iter_mut().zip(from) {
                match (mine.as_mut(), theirs) {
                    (Some(mine), Some(theirs)) => mine.merge(theirs),
                    (None, Some(theirs)) => *mine = Some(theirs.clone()),
                    _ => {}
                }
            }
        };
        merge(&mut self.sinks, &other.sinks);
        merge(&mut self.subs, &other.subs);
        self.groups.merge(&other.groups);
        self.sections.merge(&other.sections);
    }

    pub fn sink(&self, metric: usize) -> Option<&MetricSink> {
        self.sinks.get(metric)?.as_ref()
    }

    pub fn sub(&self, row: usize) -> Option<&MetricSink> {
        self.subs.get(row)?.as_ref()
    }
}
