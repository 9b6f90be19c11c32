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
    /// Target rows by call index; replaces round robin. Empty: not set.
    pub sequence: Vec<u32>,
    pub request: RequestPlan,
    /// Token that requests carry, instead of a login of `request`.
    pub token: crate::TokenPlan,
    /// Script that makes the requests, instead of the single target.
    pub script: Option<ScriptPlan>,
    /// Steps of users, which are then the targets.
    pub journeys: Option<JourneyPlan>,
    /// Simultaneous connections modeled on SPECweb99; the targets are then its operations.
    pub specweb99: Option<crate::Specweb99Plan>,
    pub connection: ConnectionPlan,
    pub http2: Http2Plan,
    /// Settings of gRPC calls, ignored for other calls ([`Plan::is_grpc`]).
    pub grpc: crate::GrpcPlan,
    /// Messages, if the URL is a WebSocket URL.
    pub websocket: crate::WebSocketPlan,
    pub tls: TlsPlan,
    pub load: Load,
    /// Size of the load over time, with `load` as its maximum; `None` for a constant load.
    pub stages: Option<Stages>,
    /// Several loads at once; `load` is then the load of the first.
    pub scenarios: Vec<ScenarioPlan>,
    pub stop: Stop,
    pub timeouts: Timeouts,
    pub expect: Expect,
    pub measure: MeasurePlan,
    pub driver: DriverPlan,
    pub seed: u64,
    /// Elements of the imported file that the plan lacks; reports repeat them.
    pub not_imported: Vec<String>,
}

impl Plan {
    /// Makes every arrival a session, by default of one call, if clients have separate paths: each
    /// session is a client.
    pub(crate) fn settle_clients(&mut self) {
        if self.connection.clients.is_some()
            && let Load::Open { session: session @ None, .. } = &mut self.load
        {
            *session = Some(SessionPlan::new(1, Think::None));
        }
    }

    /// Returns the number of clients with separate paths: the number of users, at most
    /// [`wan::CLIENTS_MAX`]; for arrivals, [`ARRIVING_CLIENTS`] in turn. 0 without such clients.
    pub fn client_count(&self) -> u32 {
        match (&self.connection.clients, &self.load) {
            (None, _) => 0,
            (Some(_), Load::Closed { users, .. }) => (*users).clamp(1, wan::CLIENTS_MAX),
            (Some(_), Load::Open { .. }) => ARRIVING_CLIENTS,
        }
    }

    /// Sets the size of the load over time, and with it the load and, unless that is set already,
    /// the duration of the run.
    pub fn set_stages(&mut self, stages: Stages) {
        self.load = stages.load(&self.load);
        let stop = &mut self.stop;
        if stop.requests.is_none() && stop.bytes.is_none() && self.order != Order::Once {
            stop.duration = crate::stages::span_of(&stages).or(stop.duration);
        }
        self.stages = Some(stages);
    }

    /// Returns whether every load of the plan is closed.
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
    /// are due in bursts or at recorded instants.
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
                *session = Some(SessionPlan::new(1, Think::None));
            }
        }
        if let Some(first) = self.scenarios.first() {
            self.load = first.load.clone();
        }
    }

    /// Returns the plan with the timeouts for calls and connections limited to this maximum.
    pub fn with_patience(&self, most: Nanos) -> Plan {
        let mut plan = self.clone();
        plan.timeouts.call = plan.timeouts.call.min(most);
        plan.timeouts.connect = plan.timeouts.connect.min(most);
        plan
    }

    /// Returns the plan with this duration.
    pub fn lasting(&self, span: Nanos) -> Plan {
        let mut plan = self.clone();
        plan.stop.duration = Some(span);
        plan
    }

    /// Resolves the parts of the run that objectives name: targets and steps by their names or
    /// tags, patterns of URLs, then transactions, kinds of clients and scenarios; and metrics.
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
            rows.chain(self.measure.folds.row_of_pattern(wanted)).chain(tagged).collect::<Vec<_>>()
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

    /// Returns the names that objectives can refer to.
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

    /// Returns the names of the kinds of clients.
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

/// Number of clients with separate paths in an open load: session `n` belongs to client `n` modulo
/// this.
pub const ARRIVING_CLIENTS: u32 = 1_000;

/// Line of a URL list.
#[derive(Clone, Debug, PartialEq)]
pub struct TargetPlan {
    /// Absolute URL, `http` or `https`.
    pub url: url::Url,
    /// Name in the tables; `None` for the URL.
    pub name: Option<String>,
    /// Share of the draws when the order is random; above zero.
    pub weight: f64,
    /// Overrides [`RequestPlan::method`].
    pub method: Option<String>,
    /// Overrides [`RequestPlan::body`].
    pub body: Option<Vec<u8>>,
    /// Fields in addition to [`RequestPlan::headers`], which they replace if the names are equal.
    pub headers: Vec<(String, String)>,
    /// The whole request as sent, instead of a request made from URL, method, headers and body; the
    /// method's name only determines how the response is read.
    pub raw: Option<Vec<u8>>,
}

impl TargetPlan {
    /// Returns a target with only a URL.
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
/// headers and body in its table `wrk`; or a journey's script, in Lua or in JavaScript with k6's
/// interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptPlan {
    /// Name of the file, for messages.
    pub name: String,
    pub text: Vec<u8>,
    /// Arguments from `args[1]` on; `args[0]` is the URL. In JavaScript: variables of `__ENV` as
    /// `NAME=value`, and the name of a scenario.
    pub args: Vec<String>,
    /// Files that a script in JavaScript imports or opens: paths and texts.
    pub files: Vec<(String, String)>,
}

impl ScriptPlan {
    /// Returns whether the script is in JavaScript or TypeScript, by the extension of its name.
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
    /// By ALPN over TLS; by prior knowledge without TLS (RFC 9113 section 3).
    Http2,
    /// Over QUIC, which always uses TLS (RFC 9114 section 3).
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

    /// Returns the name as printed in reports.
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
    /// Header fields in order; a `Host`, `User-Agent` or `Connection` here replaces the default.
    /// Values are bytes.
    pub headers: Vec<(String, String)>,
    pub body: Option<Vec<u8>>,
    pub auth: Option<Auth>,
    pub user_agent: String,
    /// Priority of each request without its own field `priority` (RFC 9218).
    pub priority: Option<Priority>,
    /// True to accept gzip, deflate, br and zstd, and to decode them.
    pub compressed: bool,
    /// Maximum number of redirects followed per call; 0: none.
    pub follow_max: u16,
    /// Hosts, as written in URLs, to which redirected requests may carry the credentials.
    pub follow_auth: Vec<String>,
    /// True to keep cookies per user and send them back.
    pub cookies: bool,
    /// Sends only the cookie that was set last, regardless of its path and domain.
    pub last_cookie: bool,
}

impl RequestPlan {
    /// Adds a header unless there is a header of this name.
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
    /// Digest login of RFC 7616, after the server's challenge.
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
    /// Number of calls per connection; `None` for the number that the server permits.
    pub calls: Option<u32>,
    /// Maximum number of outstanding requests on one connection: pipelined, or streams of HTTP/2
    /// and 3; 1 for one at a time.
    pub pipeline: u32,
    /// Number of requests that are sent together; the next group follows when all responses to this
    /// one have arrived.
    pub group: Option<u32>,
    /// Maximum number of outstanding calls on one connection if a group is sent together; the rest
    /// of the group uses other connections of its user. `None` for the whole group.
    pub depth: Option<u32>,
    /// Maximum number of connections of one user or session; the last one takes the excess calls.
    pub per_user: u32,
    /// Maximum number of connections that a call is put on if they end before its response.
    pub tries: u16,
    /// True to retry a call on another connection if its connection, which had answered before,
    /// broke while the request was sent and before the response's first byte. A call whose request
    /// was not written yet is retried in any case.
    pub resend: bool,
    /// A response without a length that ends with its connection is incomplete, as in h2load; if
    /// false, the end of the connection ends the response (RFC 9112 section 6.3).
    pub needs_length: bool,
    /// Maximum size of a response head in bytes, uncompressed for HTTP/2 and 3: 1 KiB to 16 MiB.
    pub head_max: u32,
    /// Unix socket to connect to, whatever the URL's host.
    pub unix: Option<std::path::PathBuf>,
    /// `host:port:address` overrides of the name look-up.
    pub resolve: Vec<ResolveRule>,
    /// Local addresses, used in turn.
    pub bind: Vec<IpAddr>,
    pub send_buffer: Option<u32>,
    pub recv_buffer: Option<u32>,
    pub nodelay: bool,
    pub reset_on_close: bool,
    /// Minimum pause of a closed loop's user after a call whose connection could not be opened, so
    /// that a dead server does not receive a hundred thousand connects per second. 0 to 1 h; 0
    /// retries at once.
    pub reconnect_pause: Nanos,
    /// `http://host:port` of a proxy; https targets are reached through it by CONNECT.
    pub proxy: Option<url::Url>,
    pub prefer: AddressFamily,
    /// Selects the addresses of a host to which connections are made.
    pub addresses: AddressOrder,
    /// Emulated path of all connections.
    pub path: Option<PathSpec>,
    /// Each user or session is a client with a separate path.
    pub clients: Option<Population>,
    /// Number of connections that are held open but never used while the load runs: 1 to
    /// 10,000,000.
    pub idle: Option<u32>,
    /// Interval at which QUIC connections change their local port.
    pub migrate: Option<Migrate>,
}

/// Interval at which a QUIC connection changes its local port (RFC 9000 section 9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Migrate {
    /// Interval, 1 ms to 1 h.
    Every(Nanos),
    /// A number of requests: 1 or more.
    Calls(u32),
}

/// Settings that our side of an HTTP/2 connection announces; HTTP/3 uses only the two windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Http2Plan {
    /// Receive window for the content of one response: 1 to 2^31 − 1.
    pub stream_window: u32,
    /// Receive window for all responses of a connection: 65,535 to 2^31 − 1.
    pub connection_window: u32,
    /// Size in bytes of the table by which the server may compress fields; 0 for none.
    pub header_table: u32,
    /// Maximum size on our side; the server's limit may be lower.
    pub encoder_table: u32,
    /// Maximum payload of a frame that the server may send, in bytes: 16,384 to 2^24 − 1.
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
    /// Connections use all addresses in turn.
    InTurn,
    /// All connections use the first address, in the resolver's order, that accepts a connection.
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
    /// True to accept any certificate.
    pub insecure: bool,
    /// PEM files, read by the caller: trust anchors instead of the system's; client certificate and
    /// key.
    pub ca: Option<Vec<u8>>,
    pub cert: Option<Vec<u8>>,
    pub key: Option<Vec<u8>>,
    pub resumption: bool,
    /// Sends requests with the first flight of a resumed handshake (0-RTT, RFC 8446 section 2.3).
    pub early_data: bool,
    /// True if each user resumes only its own sessions.
    pub user_sessions: bool,
    /// Sends the requested name (SNI, RFC 6066 section 3).
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
    /// Fixed population of users: each calls, waits for the response, thinks, and calls again. With
    /// `session`, each runs one session after another instead of calls.
    Closed { users: u32, think: Think, session: Option<SessionPlan> },
    /// Arrivals independent of responses. With `session`, each arrival is a session of this number
    /// of calls (with think time between them) on its own connection.
    Open {
        arrivals: Arrivals,
        session: Option<SessionPlan>,
        connections_max: Option<u32>,
        queue_max: Option<u64>,
    },
}

impl Load {
    /// Returns the content of sessions, if the load consists of them.
    pub fn session(&self) -> Option<&SessionPlan> {
        match self {
            Load::Closed { session, .. } | Load::Open { session, .. } => session.as_ref(),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct SessionPlan {
    /// Calls of each session; visits override this.
    pub calls: u32,
    pub think: Think,
    /// Content of sessions, in turn: calls to named targets in groups. Empty: `calls` calls, in the
    /// groups of [`ConnectionPlan::group`], to targets in the plan's order.
    pub visits: Vec<Visit>,
    /// Maximum number of concurrent calls of a group; the next call starts when one has ended.
    /// `None` for the whole group.
    pub parallel: Option<u32>,
    /// True if the rest of a group follows the response to its first call, as a browser fetches a
    /// page and then its parts.
    pub lead: bool,
    /// A session ends with its connection, even if it has calls left.
    pub one_connection: bool,
    /// A failed call is retried at once and does not fail its session, up to [`RETRIES_MAX`] times.
    pub retry: bool,
    /// True if a failed call neither ends its session nor is retried. A timeout still ends the
    /// session.
    pub survives: bool,
    /// Numbers of calls of the sessions, in turn; they replace `calls`. Empty: all sessions have
    /// `calls`.
    pub lengths: Vec<u32>,
    /// True if each session uses the targets from the first one on, independently of other
    /// sessions.
    pub own_order: bool,
    /// Time between the starts of consecutive users of a closed loop.
    pub start_gap: Nanos,
    /// Due times of the session's calls by the clock; without this, each is due when a previous one
    /// has ended.
    pub pace: Option<Pace>,
}

/// Due times of the calls of a session, counted from its start. A call that finds the maximum
/// number outstanding on its connection waits, and its response time counts from its due instant.
#[derive(Clone, Debug, PartialEq)]
pub enum Pace {
    /// At equal intervals, the first one at once.
    Every(Rate),
    /// At these instants, in ascending order; one for each call.
    At(Arc<[Nanos]>),
}

impl Pace {
    /// Returns when call `index`, counted from 0, is due after its session's start; `NEVER` after
    /// the last one.
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

    /// Returns the number of calls that have fallen due by `span` after their session's start.
    pub fn due_within(&self, span: Nanos) -> u64 {
        let rate = match self {
            Pace::Every(rate) => rate.0,
            Pace::At(at) => return at.partition_point(|at| *at <= span) as u64,
        };
        // at most one off the exact number, as offsets are rounded to nanoseconds
        let mut count = (span.0 as f64 / 1e9 * rate) as u64;
        while self.offset(count) <= span && self.offset(count) < self.offset(count + 1) {
            count += 1;
        }
        count
    }
}

/// Maximum number of retries of a session's failed calls, if [`SessionPlan::retry`] is set.
pub const RETRIES_MAX: u32 = 1_000;

/// Share of a run that the start of its users may take without counting as a changing load.
const START_SHARE_MAX: f64 = 0.1;

impl SessionPlan {
    /// Returns sessions of `calls` calls with think times between them.
    pub fn new(calls: u32, think: Think) -> SessionPlan {
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

/// Script of a session.
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
    /// Equal to `from` unless the rate ramps during the whole measured phase.
    pub to: Rate,
    pub gaps: Gaps,
    /// Number of arrivals that fall due at the same instant; the rate counts arrivals, not bursts.
    pub burst: u32,
    /// A trace: the due instants themselves, counted from the start, in ascending order. They
    /// replace rate, gaps and bursts (the rates then only determine queue limits).
    pub at: Option<Arc<[Nanos]>>,
}

impl Arrivals {
    /// Returns a constant rate with constant gaps.
    pub fn constant(rate: Rate) -> Arrivals {
        Arrivals { from: rate, to: rate, gaps: Gaps::Constant, burst: 1, at: None }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Stop {
    /// Length of the measured phase.
    pub duration: Option<Nanos>,
    /// Number of calls (sessions, with `--session`) of the measured phase.
    pub requests: Option<u64>,
    /// Number of bytes received.
    pub bytes: Option<u64>,
    /// Calls in flight at the end of the duration are abandoned, instead of followed to their
    /// outcome.
    pub at_once: bool,
    /// True if the first call that times out, or whose connection is refused or reset, ends the
    /// run: no more calls become due.
    pub at_loss: bool,
    /// Load before the measured phase, reported separately.
    pub warm_up: Nanos,
    /// Rule such as `failures>50% for 5s`.
    pub abort_if: Option<AbortRule>,
    /// The run ends as soon as every objective is decided.
    pub until_sure: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct AbortRule {
    pub objective: stats::Objective,
    /// Time for which the objective's figure must hold.
    pub hold: Nanos,
    pub text: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Timeouts {
    pub connect: Nanos,
    /// Time limit from writing the request's last byte to the response's first byte.
    pub first_byte: Option<Nanos>,
    /// Longest pause without progress of a connection with a call on it.
    pub progress: Option<Nanos>,
    /// Limit while a response's first byte is awaited; `None` for the same limit as otherwise.
    pub answer: Option<Nanos>,
    /// Time limit from the instant a call was due to its outcome.
    pub call: Nanos,
}

impl Timeouts {
    /// Returns the shortest limit on a call of an open connection.
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
    /// Length of the decoded body in bytes.
    pub length: Option<u64>,
    pub body: Option<BodyRule>,
    /// Compares each body with the body of its target.
    pub verify: Option<Verify>,
}

/// Source of the expected body of a target.
#[derive(Clone, Debug, PartialEq)]
pub enum Verify {
    /// The first response from the target in this run.
    First,
    /// A file set, whose contents follow from the seed.
    Files { spec: workload::fileset::Spec, seed: u64 },
    /// List of hashes.
    Manifest(Vec<KnownBody>),
}

/// Line of a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownBody {
    /// A URL, or its path and query with or without a leading slash.
    pub name: String,
    pub print: sample::BodyPrint,
}

#[derive(Clone, Debug, PartialEq)]
pub enum BodyRule {
    Exact(Vec<u8>),
    /// Bytes that the body must contain.
    Contains(Vec<u8>),
    /// A regular expression that must match somewhere (on bytes, not necessarily UTF-8).
    Regex(String),
    /// SHA-256 of the whole body.
    Sha256([u8; 32]),
}

#[derive(Clone, Debug, PartialEq)]
pub struct MeasurePlan {
    pub repeat: u32,
    pub slo: Vec<stats::Objective>,
    /// Quantiles to print, 0..1.
    pub quantiles: Vec<f64>,
    /// Bit rate that makes a connection conforming, and a flag that includes heads in the count.
    pub conforming_bps: f64,
    pub conforming_counts_heads: bool,
    /// Length of a row of the time series.
    pub interval: Nanos,
    /// Share of closing connections for which TCP_INFO is sampled, 0..=1.
    pub tcp_info_share: f64,
    /// Maximum share of the p99 that may be the client's own lateness, 0..=1; without an objective,
    /// a run above it is invalid.
    pub doubt_max: f64,
    /// Responses are streams of events whose times are measured.
    pub stream: Option<crate::Streaming>,
    /// Patterns of URLs that are counted in one row.
    pub folds: crate::fold::Folds,
}

#[derive(Clone, Debug, PartialEq)]
pub struct DriverPlan {
    /// Number of worker threads; `None` leaves it to [placement](DriverPlan::cpus).
    pub threads: Option<u32>,
    /// Cores that the workers are bound to; empty: the default placement.
    pub cpus: Vec<u32>,
    pub nice: Option<i32>,
    /// Busy-wait before a due instant, at most this long.
    pub spin: Nanos,
    /// TCP implementation of the connections.
    pub stack: crate::StackChoice,
    /// Local addresses of the program's own TCP; `None` if Loadstone chooses.
    pub sources: Option<SourcePrefix>,
    /// Settings of the program's own TCP that differ from Linux.
    pub tcp: Option<crate::TcpTraits>,
}

/// Addresses that share their first bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourcePrefix {
    /// First of these addresses; the remaining bits are 0.
    pub network: IpAddr,
    /// Prefix length: 8 to 30, or 16 to 126 for IPv6.
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
