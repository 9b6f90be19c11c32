//! The parts of a plan. Times are spans, rates are per second, sizes are bytes.

use crate::journey::JourneyPlan;
use crate::priority::Priority;
use crate::scenario::ScenarioPlan;
use crate::stages::Stages;
use crate::targets::PlanTargets;
use std::net::IpAddr;
use std::sync::Arc;
use units::{Nanos, Rate};
use wan::{PathSpec, Population};
pub use workload::schedule::Gaps;
pub use workload::{Order, Think};

/// Everything needed to repeat a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub targets: PlanTargets,
    pub order: Order,
    /// Target rows by call index, in place of round robin; empty: none.
    pub sequence: Vec<u32>,
    pub request: RequestPlan,
    /// Token that requests carry in place of a login of `request`.
    pub token: crate::TokenPlan,
    /// Makes the requests, in place of the only target's.
    pub script: Option<ScriptPlan>,
    /// Steps of users; the targets are then the steps.
    pub journeys: Option<JourneyPlan>,
    /// Simultaneous connections after SPECweb99; the targets are then its operations.
    pub specweb99: Option<crate::Specweb99Plan>,
    pub connection: ConnectionPlan,
    pub http2: Http2Plan,
    /// Of calls of gRPC; nothing of it counts for others ([`Plan::is_grpc`]).
    pub grpc: crate::GrpcPlan,
    /// Messages, where the URL is one of WebSocket.
    pub websocket: crate::WebSocketPlan,
    pub tls: TlsPlan,
    pub load: Load,
    /// The size of the load over time, with `load` as its maximum; `None` if constant.
    pub stages: Option<Stages>,
    /// Several loads at once, in place of `load`, which is then that of the first of them.
    pub scenarios: Vec<ScenarioPlan>,
    pub stop: Stop,
    pub timeouts: Timeouts,
    pub expect: Expect,
    pub measure: MeasurePlan,
    pub driver: DriverPlan,
    pub seed: u64,
    /// Elements of the file that the plan was imported from and that are not in it; reports repeat them.
    pub not_imported: Vec<String>,
}

impl Plan {
    /// With separate paths every arrival is a client: a session, by default of one call.
    pub(crate) fn settle_clients(&mut self) {
        if self.connection.clients.is_some()
            && let Load::Open { session: session @ None, .. } = &mut self.load
        {
            *session = Some(SessionPlan::of(1, Think::None));
        }
    }

    /// Clients with separate paths: the number of users, at most [`wan::CLIENTS_MAX`]; for
    /// arrivals, [`ARRIVING_CLIENTS`] in turn. 0 if there are none.
    pub fn client_count(&self) -> u32 {
        match (&self.connection.clients, &self.load) {
            (None, _) => 0,
            (Some(_), Load::Closed { users, .. }) => (*users).clamp(1, wan::CLIENTS_MAX),
            (Some(_), Load::Open { .. }) => ARRIVING_CLIENTS,
        }
    }

    /// Sets the size of the load over time, and with it the load and, unless that is known, how long the
    /// run takes.
    pub fn set_stages(&mut self, stages: Stages) {
        self.load = stages.load(&self.load);
        let stop = &mut self.stop;
        if stop.requests.is_none() && stop.bytes.is_none() && self.order != Order::Once {
            stop.duration = crate::stages::span_of(&stages).or(stop.duration);
        }
        self.stages = Some(stages);
    }

    /// Every load of the plan is a closed one.
    pub fn is_closed(&self) -> bool {
        self.loads().iter().all(|load| matches!(load, Load::Closed { .. }))
    }

    /// Returns whether the rate of an open load, or the number of users, changes during the run.
    pub fn is_ramped(&self) -> bool {
        let by_rate = match &self.load {
            Load::Open { arrivals, .. } => arrivals.from != arrivals.to || arrivals.at.is_some(),
            Load::Closed { users, session, .. } => {
                let gap = session.as_ref().map_or(Nanos::ZERO, |session| session.start_gap);
                let start_s = gap.as_secs_f64() * f64::from(*users);
                let whole_s = self.stop.duration.map_or(f64::INFINITY, Nanos::as_secs_f64);
                start_s > START_SHARE_MAX * whole_s
            }
        };
        by_rate || self.stages.is_some() || !self.scenarios.is_empty()
    }

    /// Returns whether the load itself may vary within a second or more: it has stages, or calls
    /// fall due in bursts or at recorded instants.
    pub fn is_uneven(&self) -> bool {
        let comes_and_goes = |load: &&Load| match load {
            Load::Open { arrivals, .. } => arrivals.burst > 1 || arrivals.at.is_some(),
            Load::Closed { .. } => false,
        };
        let staged = self.scenarios.iter().any(|scenario| scenario.stages.is_some());
        self.stages.is_some() || staged || self.loads().iter().any(comes_and_goes)
    }

    /// Makes each iteration of a journey a separate session of an open load.
    pub(crate) fn settle_journeys(&mut self) {
        if self.journeys.is_none() {
            return;
        }
        for load in self.loads_mut().into_iter() {
            if let Load::Open { session: session @ None, .. } = load {
                *session = Some(SessionPlan::of(1, Think::None));
            }
        }
        if let Some(first) = self.scenarios.first() {
            self.load = first.load.clone();
        }
    }

    /// The same plan, in which no call and no connection is waited for longer than that.
    pub fn with_patience(&self, most: Nanos) -> Plan {
        let mut plan = self.clone();
        plan.timeouts.call = plan.timeouts.call.min(most);
        plan.timeouts.connect = plan.timeouts.connect.min(most);
        plan
    }

    /// The same plan, which ends after that time.
    pub fn lasting(&self, span: Nanos) -> Plan {
        let mut plan = self.clone();
        plan.stop.duration = Some(span);
        plan
    }

    /// Finds the parts of the run that objectives name: targets and steps by their names or tags,
    /// patterns of URLs, then transactions, kinds of clients and scenarios; and metrics.
    pub(crate) fn settle_objectives(&mut self) {
        let journeys = self.journeys.as_ref();
        let tags = journeys.map(JourneyPlan::tags).unwrap_or_default();
        let names = journeys.map(JourneyPlan::metrics).unwrap_or_default();
        let metrics: Vec<String> = names.into_iter().map(str::to_owned).collect();
        let named = |wanted: &str| {
            let rows = self.targets.iter().enumerate();
            let rows = rows.filter(|(_, target)| target.name.as_deref() == Some(wanted));
            let rows = rows.map(|(target, _)| self.row_of(target));
            let tagged = tags.get(wanted).into_iter().flatten().copied();
            rows.chain(self.measure.folds.row_called(wanted)).chain(tagged).collect::<Vec<_>>()
        };
        let transactions: Vec<String> = match &self.journeys {
            Some(journeys) => journeys.transactions().into_iter().map(str::to_owned).collect(),
            None => Vec::new(),
        };
        let kinds = self.client_names();
        let scenarios = self.scenario_names();
        let settle = |objective: &stats::Objective| {
            let mut settled = objective.clone();
            if let Some(subject) = &mut settled.of {
                let rows = named(&subject.name);
                let row = |names: &[String]| names.iter().position(|name| *name == subject.name);
                let of_number = matches!(
                    objective.metric,
                    stats::Metric::Number(_) | stats::Metric::NumberMean
                );
                let number = subject.name.strip_prefix(stats::METRIC_PREFIX);
                if let Some(name) = number.filter(|_| of_number) {
                    let row = metrics.iter().position(|known| known == name.trim());
                    subject.rows = row.map_or(stats::SubjectRows::Unknown, |row| {
                        stats::SubjectRows::Number(row as u32)
                    });
                    return settled;
                }
                subject.rows = match (row(&transactions), row(&kinds), row(&scenarios)) {
                    _ if !rows.is_empty() => stats::SubjectRows::Targets(rows.into()),
                    (Some(row), ..) => stats::SubjectRows::Transaction(row as u32),
                    (None, Some(row), _) => stats::SubjectRows::Clients(row as u32),
                    (None, None, Some(row)) => stats::SubjectRows::Scenario(row as u32),
                    (None, None, None) => stats::SubjectRows::Unknown,
                };
            }
            settled
        };
        let slo = self.measure.slo.iter().map(settle).collect();
        let abort_if = self
            .stop
            .abort_if
            .clone()
            .map(|rule| AbortRule { objective: settle(&rule.objective), ..rule });
        self.measure.slo = slo;
        self.stop.abort_if = abort_if;
    }

    /// Names that objectives can refer to.
    pub fn part_names(&self) -> Vec<String> {
        let targets = self.targets.iter().filter_map(|target| target.name.clone());
        let mut names: Vec<String> = targets.collect();
        let folds = &self.measure.folds.patterns;
        let matched = (0..self.row_count()).filter_map(|row| self.row(row)?.fold);
        names.extend(matched.map(|fold| folds[fold].text.clone()));
        if let Some(journeys) = &self.journeys {
            names.extend(journeys.transactions().into_iter().map(str::to_owned));
            names.extend(journeys.tags().into_keys());
            let metric = |name| format!("{}{name}", stats::METRIC_PREFIX);
            names.extend(journeys.metrics().into_iter().map(metric));
        }
        names.extend(self.client_names());
        names.extend(self.scenario_names());
        names
    }

    /// The names of the kinds of clients.
    pub fn client_names(&self) -> Vec<String> {
        let parts = self.connection.clients.as_ref().map_or(&[][..], |all| &all.parts);
        parts.iter().map(|part| part.name.clone()).collect()
    }

    /// Returns whether some targets are drawn more often than others.
    pub fn has_weights(&self) -> bool {
        // compares bits: NaN differs from everything, and validation reports it
        self.targets
            .iter()
            .any(|target| target.weight.to_bits() != self.targets[0].weight.to_bits())
    }
}

/// Clients with separate paths in an open load: session `n` belongs to client `n` modulo this.
pub const ARRIVING_CLIENTS: u32 = 1_000;

/// One line of a URL list.
#[derive(Clone, Debug, PartialEq)]
pub struct TargetPlan {
    /// Absolute URL, `http` or `https`.
    pub url: url::Url,
    /// Name of its figures; `None`: the URL.
    pub name: Option<String>,
    /// Share of the draws when the order is random; above zero.
    pub weight: f64,
    /// Overrides [`RequestPlan::method`].
    pub method: Option<String>,
    /// Overrides [`RequestPlan::body`].
    pub body: Option<Vec<u8>>,
    /// In addition to [`RequestPlan::headers`], of which fields with the same name are dropped.
    pub headers: Vec<(String, String)>,
    /// The whole request as sent, in place of the one made from URL, method, headers and body; the
    /// method's name only determines how the response is read.
    pub raw: Option<Vec<u8>>,
}

impl TargetPlan {
    /// A URL and nothing else.
    pub fn new(url: url::Url) -> TargetPlan {
        TargetPlan {
            url,
            name: None,
            weight: 1.0,
            method: None,
            body: None,
            headers: Vec::new(),
            raw: None,
        }
    }
}

/// A script: in Lua with wrk's interface, which finds the target's URL and the request's method,
/// headers and body in its table `wrk`; or a journey's, in Lua or in JavaScript with k6's interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptPlan {
    /// Its name in messages: the file's.
    pub name: String,
    pub text: Vec<u8>,
    /// Its arguments from `args[1]` on; `args[0]` is the URL. In JavaScript: variables of `__ENV` as
    /// `NAME=value`, and the name of a scenario.
    pub args: Vec<String>,
    /// Files that a script in JavaScript imports or opens: paths and texts.
    pub files: Vec<(String, String)>,
}

impl ScriptPlan {
    /// Returns whether the script is in JavaScript or TypeScript, by the ending of its name.
    pub fn is_javascript(&self) -> bool {
        is_javascript(&self.name)
    }
}

/// Returns whether a file of this name is a script in JavaScript or TypeScript.
pub fn is_javascript(name: &str) -> bool {
    [".js", ".mjs", ".ts"].iter().any(|ending| name.ends_with(ending))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpVersion {
    Http10,
    Http11,
    /// By ALPN over TLS; by prior knowledge without it (RFC 9113 section 3).
    Http2,
    /// Over QUIC, which is over TLS always (RFC 9114 section 3).
    Http3,
    /// The server's preference among the protocols offered by ALPN; HTTP/1.1 without TLS. Resolved
    /// before the first call.
    Auto,
}

impl HttpVersion {
    /// Returns whether calls are concurrent streams of a connection, or may be if the server
    /// chooses so.
    pub fn has_streams(self) -> bool {
        matches!(self, HttpVersion::Http2 | HttpVersion::Http3 | HttpVersion::Auto)
    }

    /// As in a report.
    pub fn name(self) -> &'static str {
        match self {
            HttpVersion::Http10 => "HTTP/1.0",
            HttpVersion::Http11 => "HTTP/1.1",
            HttpVersion::Http2 => "HTTP/2",
            HttpVersion::Http3 => "HTTP/3",
            HttpVersion::Auto => "the protocol that the server prefers",
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct RequestPlan {
    pub method: String,
    pub version: HttpVersion,
    /// In order; a `Host`, `User-Agent` or `Connection` here replaces ours. Values are bytes.
    pub headers: Vec<(String, String)>,
    pub body: Option<Vec<u8>>,
    pub auth: Option<Auth>,
    pub user_agent: String,
    /// Sent with each request without its own field `priority` (RFC 9218).
    pub priority: Option<Priority>,
    /// Accept gzip, deflate, br and zstd, and decode them.
    pub compressed: bool,
    /// Redirects followed per call; 0: none.
    pub follow_max: u16,
    /// Hosts, as URLs name them, to which a redirect takes the credentials along.
    pub follow_auth: Vec<String>,
    /// Keep cookies per user and send them back.
    pub cookies: bool,
    /// Send only the cookie that was set last, whatever its path and domain.
    pub last_cookie: bool,
}

impl RequestPlan {
    /// Adds a header unless there is one of this name.
    pub(crate) fn add_missing_header(&mut self, name: &str, value: &str) {
        if !self.headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name)) {
            self.headers.push((name.to_owned(), value.to_owned()));
        }
    }
}

/// Authorization; masked wherever a plan is shown.
#[derive(Clone, PartialEq, Eq)]
pub enum Auth {
    Basic {
        user: String,
        password: String,
    },
    Bearer(String),
    /// RFC 7616, after the server's challenge.
    Digest {
        user: String,
        password: String,
    },
    /// AWS Signature Version 4.
    AwsSigV4 {
        key: String,
        secret: String,
        scope: protocol::login::sigv4::SignatureScope,
    },
}

impl std::fmt::Debug for Auth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Auth::Basic { .. } => "Basic(***)",
            Auth::Bearer(_) => "Bearer(***)",
            Auth::Digest { .. } => "Digest(***)",
            Auth::AwsSigV4 { .. } => "AwsSigV4(***)",
        })
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct ConnectionPlan {
    /// Calls per connection; `None`: as many as the server allows.
    pub calls: Option<u32>,
    /// Requests outstanding on one connection: pipelined, or streams of HTTP/2 and 3; 1: one at a time.
    pub pipeline: u32,
    /// Requests that go out together; the next group when all responses of this one are in.
    pub group: Option<u32>,
    /// Calls that may be outstanding on one connection where a group goes out together; the rest of
    /// the group goes to further connections of its user. `None`: the whole group.
    pub depth: Option<u32>,
    /// Connections that one user or session may have; the last one takes the excess.
    pub per_user: u32,
    /// Maximum number of connections a call is put on when they end before its response.
    pub tries: u16,
    /// A call whose request was on its way when the connection broke, before the response's first
    /// byte, is retried on another connection if that connection had answered before. One whose
    /// request was not written yet is retried in any case.
    pub resend: bool,
    /// A response without a length that ends with its connection is incomplete, as in h2load; if
    /// false, the end of the connection is the end of the response (RFC 9112 section 6.3).
    pub needs_length: bool,
    /// Bytes of the head of one response that are read, of HTTP/2 and 3 uncompressed: 1 KiB to 16 MiB.
    pub head_max: u32,
    /// Connect to this Unix socket, whatever the URL's host.
    pub unix: Option<std::path::PathBuf>,
    /// `host:port:address` overrides of the name look-up.
    pub resolve: Vec<ResolveRule>,
    /// Local addresses, used in turn.
    pub bind: Vec<IpAddr>,
    pub send_buffer: Option<u32>,
    pub recv_buffer: Option<u32>,
    pub nodelay: bool,
    pub reset_on_close: bool,
    /// Minimum pause of a closed loop's user between a call whose connection could not be opened
    /// and the next one, so that a dead server does not receive a hundred thousand connects per
    /// second. 0 to 1 h; 0 retries at once.
    pub reconnect_pause: Nanos,
    /// `http://host:port` of a proxy; https targets go through it by CONNECT.
    pub proxy: Option<url::Url>,
    pub prefer: AddressFamily,
    /// Which of a host's addresses connections go to.
    pub addresses: AddressOrder,
    /// All connections go through this emulated path.
    pub path: Option<PathSpec>,
    /// Each user or session is a client with a separate path.
    pub clients: Option<Population>,
    /// Connections that are held open while the load runs, and never used: 1 to 10,000,000.
    pub idle: Option<u32>,
    /// How often QUIC connections change their local port.
    pub migrate: Option<Migrate>,
}

/// When a QUIC connection changes its local port (RFC 9000 section 9), repeatedly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Migrate {
    /// After this time: 1 ms to 1 h.
    Every(Nanos),
    /// After this many requests: 1 or more.
    Calls(u32),
}

/// Settings that our side of an HTTP/2 connection announces; of HTTP/3 the two windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Http2Plan {
    /// Receive window for the content of one response: 1 to 2^31 − 1.
    pub stream_window: u32,
    /// The same of all responses of a connection: 65,535 to 2^31 − 1.
    pub connection_window: u32,
    /// Bytes of the table with which the server may compress fields; 0: none.
    pub header_table: u32,
    /// Maximum size on our side; the server's limit may be lower.
    pub encoder_table: u32,
    /// Bytes of one frame's payload that the server may send: 16,384 to 2^24 − 1.
    pub frame_max: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolveRule {
    pub host: String,
    pub port: u16,
    pub address: IpAddr,
    /// Interface of a link-local IPv6 address, by name or number (RFC 4007 section 11).
    pub zone: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressOrder {
    /// To all in turn.
    InTurn,
    /// All to the first address, in the resolver's order, that accepts a connection.
    FirstThatAnswers,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressFamily {
    Any,
    V4,
    V6,
}

#[derive(Clone, Debug, PartialEq)]
pub struct TlsPlan {
    /// Accept any certificate.
    pub insecure: bool,
    /// PEM files, read by the caller: trust anchors instead of the system's; certificate and key of ours.
    pub ca: Option<Vec<u8>>,
    pub cert: Option<Vec<u8>>,
    pub key: Option<Vec<u8>>,
    pub resumption: bool,
    /// Requests go out with the first flight of a resumed handshake (0-RTT, RFC 8446 section 2.3).
    pub early_data: bool,
    /// Each user resumes only its own sessions.
    pub user_sessions: bool,
    /// Send the requested name (SNI, RFC 6066 section 3).
    pub sni: bool,
    pub versions: TlsVersions,
    /// Protocols offered by ALPN, in order; empty: no ALPN.
    pub alpn: Vec<String>,
    /// Name for SNI and the certificate check instead of the URL's host.
    pub server_name: Option<String>,
    /// Key-exchange groups and cipher suites by their names; empty: the library's choice.
    pub groups: Vec<String>,
    pub ciphers: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsVersions {
    Any,
    Tls12,
    Tls13,
}

/// Model that decides when a call falls due.
#[derive(Clone, Debug, PartialEq)]
pub enum Load {
    /// A fixed population of users: each calls, waits for the response, thinks, calls again. With
    /// `session`, each runs one session after another in place of calls.
    Closed { users: u32, think: Think, session: Option<SessionPlan> },
    /// Arrivals independent of responses. With `session`, each arrival is a session of that many
    /// calls (think time between them) on its own connection.
    Open {
        arrivals: Arrivals,
        session: Option<SessionPlan>,
        connections_max: Option<u32>,
        queue_max: Option<u64>,
    },
}

impl Load {
    /// Content of sessions, if the load consists of them.
    pub fn session(&self) -> Option<&SessionPlan> {
        match self {
            Load::Closed { session, .. } | Load::Open { session, .. } => session.as_ref(),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct SessionPlan {
    /// Calls of each; visits override it.
    pub calls: u32,
    pub think: Think,
    /// Content of sessions, in turn: calls to named targets in groups. Empty: `calls` calls, in the
    /// groups of [`ConnectionPlan::group`], to targets in the plan's order.
    pub visits: Vec<Visit>,
    /// Maximum number of concurrent calls of a group, the next one when one has ended; `None`: all
    /// of it.
    pub parallel: Option<u32>,
    /// The first call of a group goes alone; the rest follows that call's response, as a browser
    /// gets a page and then its parts.
    pub lead: bool,
    /// A session ends with its connection, whatever calls it has left.
    pub one_connection: bool,
    /// A failed call is made again at once and does not fail its session, [`RETRIES_MAX`] times.
    pub retry: bool,
    /// A failed call does not end its session, and is not made again. A timeout still ends it.
    pub survives: bool,
    /// Calls of the sessions, in turn, in place of `calls`; empty: all have `calls`.
    pub lengths: Vec<u32>,
    /// Each session goes through the targets from the first one on, whatever the others do.
    pub own_order: bool,
    /// In a closed loop: time from the start of one user to that of the next.
    pub start_gap: Nanos,
    /// Its calls fall due by the clock; without it, each when one before it has ended.
    pub pace: Option<Pace>,
}

/// When the calls of a session fall due, counted from its start. A call that finds the maximum
/// number outstanding on its connection waits, and its response time counts from its due instant.
#[derive(Clone, Debug, PartialEq)]
pub enum Pace {
    /// At even distances, the first one at once.
    Every(Rate),
    /// At these instants, never falling; one for each call.
    At(Arc<[Nanos]>),
}

impl Pace {
    /// Returns when call `index`, counted from 0, falls due after its session's start; `NEVER`
    /// beyond the last one.
    pub fn offset(&self, index: u64) -> Nanos {
        match self {
            Pace::Every(rate) => Nanos((index as f64 / rate.0 * 1e9).round() as u64),
            Pace::At(at) => usize::try_from(index)
                .ok()
                .and_then(|index| at.get(index))
                .copied()
                .unwrap_or(Nanos::NEVER),
        }
    }

    /// Number of calls that have fallen due by `span` after their session's start.
    pub fn due_within(&self, span: Nanos) -> u64 {
        let rate = match self {
            Pace::Every(rate) => rate.0,
            Pace::At(at) => return at.partition_point(|at| *at <= span) as u64,
        };
        // within one of the right one, as offsets are rounded to nanoseconds
        let mut count = (span.0 as f64 / 1e9 * rate) as u64;
        while self.offset(count) <= span && self.offset(count) < self.offset(count + 1) {
            count += 1;
        }
        count
    }
}

/// How often a session's failed calls are retried, if [`SessionPlan::retry`] is set.
pub const RETRIES_MAX: u32 = 1_000;

/// Share of a run that the start of its users may take without counting as a changing load.
const START_SHARE_MAX: f64 = 0.1;

impl SessionPlan {
    /// `calls` calls with think times between them.
    pub fn of(calls: u32, think: Think) -> SessionPlan {
        SessionPlan {
            calls,
            think,
            visits: Vec::new(),
            parallel: None,
            lead: false,
            one_connection: false,
            retry: false,
            survives: false,
            lengths: Vec::new(),
            own_order: false,
            start_gap: Nanos::ZERO,
            pace: None,
        }
    }
}

/// One session's script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visit {
    pub groups: Vec<VisitGroup>,
}

/// Calls that belong together, and the think time after their last response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VisitGroup {
    /// Rows of the target list.
    pub targets: Vec<u32>,
    pub think: Nanos,
}

/// The arrival process.
#[derive(Clone, Debug, PartialEq)]
pub struct Arrivals {
    pub from: Rate,
    /// Equal to `from` unless the rate ramps over the whole of the measured phase.
    pub to: Rate,
    pub gaps: Gaps,
    /// Arrivals that fall due at the same instant; the rate counts arrivals, not bursts.
    pub burst: u32,
    /// A trace: the due instants themselves, counted from the start, never decreasing. They replace
    /// rate, gaps and bursts (the rates then only determine queue limits).
    pub at: Option<Arc<[Nanos]>>,
}

impl Arrivals {
    /// A rate that holds, with constant gaps.
    pub fn constant(rate: Rate) -> Arrivals {
        Arrivals { from: rate, to: rate, gaps: Gaps::Constant, burst: 1, at: None }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Stop {
    /// Length of the measured phase.
    pub duration: Option<Nanos>,
    /// Calls (sessions, with `--session`) of the measured phase.
    pub requests: Option<u64>,
    /// Bytes received.
    pub bytes: Option<u64>,
    /// Calls in flight at the end of the duration are abandoned, instead of followed to their
    /// outcome.
    pub at_once: bool,
    /// The first call that times out, or whose connection is refused or reset, ends the run:
    /// nothing further falls due.
    pub at_loss: bool,
    /// Load before the measured phase, kept apart.
    pub warm_up: Nanos,
    /// `failures>50% for 5s`.
    pub abort_if: Option<AbortRule>,
    /// The run ends as soon as every objective is decided.
    pub until_sure: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct AbortRule {
    pub objective: stats::Objective,
    /// How long the objective's figure must hold.
    pub hold: Nanos,
    pub text: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Timeouts {
    pub connect: Nanos,
    /// From writing the request's last byte to the response's first byte.
    pub first_byte: Option<Nanos>,
    /// Longest standstill of a connection with a call on it.
    pub progress: Option<Nanos>,
    /// The same while a response's first byte is awaited; `None`: as long as any other.
    pub answer: Option<Nanos>,
    /// From the instant a call was due to its outcome.
    pub call: Nanos,
}

impl Timeouts {
    /// The shortest of those that bound a call on an open connection.
    pub fn shortest(&self) -> Nanos {
        let optional = [self.first_byte, self.progress, self.answer];
        optional.into_iter().flatten().fold(self.call, Nanos::min)
    }
}

/// Requirements on a good response.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Expect {
    /// Ranges of statuses, inclusive; empty: below 400.
    pub status: Vec<(u16, u16)>,
    /// Length of the body in bytes, content coding undone.
    pub length: Option<u64>,
    pub body: Option<BodyRule>,
    /// Each body is compared with its target's.
    pub verify: Option<Verify>,
}

/// Source of the expected body of a target.
#[derive(Clone, Debug, PartialEq)]
pub enum Verify {
    /// From the first response to it in this run.
    First,
    /// From a file set, whose contents follow from the seed.
    Files { spec: workload::fileset::Spec, seed: u64 },
    /// From a list.
    Manifest(Vec<KnownBody>),
}

/// One line of a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownBody {
    /// A URL, or its path and query with or without a slash in front.
    pub name: String,
    pub print: sample::BodyPrint,
}

#[derive(Clone, Debug, PartialEq)]
pub enum BodyRule {
    Exact(Vec<u8>),
    /// Bytes that must be somewhere in the body.
    Contains(Vec<u8>),
    /// A regular expression that must match somewhere (bytes, not necessarily UTF-8).
    Regex(String),
    /// SHA-256 of the whole body.
    Sha256([u8; 32]),
}

#[derive(Clone, Debug, PartialEq)]
pub struct MeasurePlan {
    pub repeat: u32,
    pub slo: Vec<stats::Objective>,
    /// Quantiles printed, 0..1.
    pub quantiles: Vec<f64>,
    /// Conforming connections: bits per second, and whether heads count as well as bodies.
    pub conforming_bps: f64,
    pub conforming_counts_heads: bool,
    /// Length of a row of the time series.
    pub interval: Nanos,
    /// Sample TCP_INFO of this share of closing connections, 0..=1.
    pub tcp_info_share: f64,
    /// Without an objective a run is invalid when more than this share of its p99 may be the
    /// client's own lateness, 0..=1.
    pub doubt_max: f64,
    /// Responses are streams of events, whose times are measured.
    pub stream: Option<crate::Streaming>,
    /// URLs that are counted in one row.
    pub folds: crate::fold::Folds,
}

#[derive(Clone, Debug, PartialEq)]
pub struct DriverPlan {
    /// Worker threads; `None`: decided by [placement](DriverPlan::cpus).
    pub threads: Option<u32>,
    /// Cores that the workers are bound to; empty: the default placement.
    pub cpus: Vec<u32>,
    pub nice: Option<i32>,
    /// Busy-wait before a due instant, at most this long.
    pub spin: Nanos,
    /// TCP implementation of the connections.
    pub stack: crate::StackChoice,
    /// Local addresses of our own TCP; `None`: Loadstone's choice.
    pub sources: Option<SourcePrefix>,
    /// Settings of our own TCP that differ from Linux.
    pub tcp: Option<crate::TcpTraits>,
}

/// Addresses that agree in their first bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourcePrefix {
    /// The first of them; the other bits are 0.
    pub network: IpAddr,
    /// Prefix length: 8 to 30, with IPv6 16 to 126.
    pub bits: u8,
}

impl std::fmt::Display for SourcePrefix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.network, self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pace_counts_due_calls() {
        let at = Pace::At([0, 7, 7, 40].map(Nanos::from_millis).into());
        let counts = [0, 6, 7, 41].map(|span| at.due_within(Nanos::from_millis(span)));
        assert_eq!(counts, [1, 1, 3, 4]);
        for rate in [0.3, 3.0, 7.0, 1e6 / 3.0, 1e7] {
            let pace = Pace::Every(Rate(rate));
            for index in [0, 1, 2, 99, 12_345_678] {
                let due = pace.offset(index);
                assert_eq!(pace.due_within(due), index + 1, "{rate} {index}");
                let before = Nanos(due.0.saturating_sub(1));
                assert_eq!(pace.due_within(before), index.max(1), "{rate} {index}");
            }
        }
    }
}
