//! State shared by every worker of a run: the prepared plan. The caller resolves endpoints;
//! requests are rendered here, once.

use crate::answers::AnswerKeys;
use crate::inspect::BodyTest;
use crate::journey;
use crate::render::{build_template, raw_template};
use crate::speaker::Protocol;
use crate::speaker::websocket::SocketTerms;
use crate::token::Tokens;
use crate::verify::KnownBodies;
use conduit::{OpenOptions, Peer};
use plan::{
    GrpcVariant, Http2Plan, HttpVersion, Load, Masker, Plan, SessionPlan, Streaming, Visit,
};
use protocol::grpc::BodyForm;
use protocol::http1::response::{Leniency, Limits};
use stats::Snapshot;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use units::{Nanos, Seed};
use url::Url;
use workload::schedule::Share;
use workload::{Targets, Template};

/// Scheme, host and port of calls.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// As returned by [`endpoint_key`].
    pub key: String,
    /// Addresses, used in turn; never empty.
    pub peers: Vec<Peer>,
    /// Name for SNI and the certificate check; `None` without TLS.
    pub tls_name: Option<String>,
    /// CONNECT request that must precede others, through a proxy.
    pub tunnel: Option<Vec<u8>>,
    /// Requests carry the absolute URL, for a plain HTTP proxy.
    pub absolute: bool,
}

impl Endpoint {
    /// Returns whether nothing precedes the first request: no TLS, no tunnel.
    #[inline]
    pub(crate) fn is_direct(&self) -> bool {
        self.tunnel.is_none() && self.tls_name.is_none()
    }
}

/// Formats `scheme://host:port` of a URL: calls with the same key share connections.
pub fn endpoint_key(url: &Url) -> String {
    let port = url.port_or_known_default().unwrap_or(0);
    format!("{}://{}:{port}", url.scheme(), url.host_str().unwrap_or(""))
}

/// Clients that each have their own address and path.
#[derive(Clone, Debug)]
pub struct Crowd {
    /// Addresses of the first clients, never empty. The addresses of later clients follow them in
    /// turn: with two, client 2 has the address after that of client 0, and client 3 the one after
    /// that of client 1. Users are assigned to workers in turn, so each worker can have its own
    /// network.
    pub firsts: Arc<[Ipv4Addr]>,
    /// Kind of each client; never empty.
    pub kinds: Arc<[u32]>,
}

impl Crowd {
    /// Returns the client that user or session `id` represents.
    pub(crate) fn client(&self, id: u64) -> u32 {
        (id % self.kinds.len().max(1) as u64) as u32
    }

    /// Returns the kind of user or session `id`.
    pub(crate) fn kind(&self, id: u64) -> u32 {
        self.kinds.get(self.client(id) as usize).copied().unwrap_or(0)
    }

    /// Returns the address of a client.
    pub(crate) fn address(&self, client: u32) -> IpAddr {
        let (client, networks) = (client as usize, self.firsts.len().max(1));
        let first = self.firsts.get(client % networks).copied();
        let first = u32::from(first.unwrap_or(Ipv4Addr::UNSPECIFIED));
        Ipv4Addr::from(first.wrapping_add((client / networks) as u32)).into()
    }
}

/// Returns the options of the plan's `turn`-th connection: local addresses are used in turn.
pub fn open_options(plan: &Plan, turn: u64) -> OpenOptions {
    let wanted = &plan.connection;
    let bind =
        (!wanted.bind.is_empty()).then(|| wanted.bind[(turn % wanted.bind.len() as u64) as usize]);
    OpenOptions {
        bind,
        port: None,
        nodelay: wanted.nodelay,
        send_buffer: wanted.send_buffer,
        recv_buffer: wanted.recv_buffer,
        early: plan.tls.early_data,
        user: None,
        bare: false,
        by_hand: None,
    }
}

/// Reason why a plan could not be prepared.
#[derive(Debug)]
pub struct SetupError(pub String);

impl std::fmt::Display for SetupError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SetupError {}

/// A plan, resolved and rendered, with the instant at which it starts.
#[derive(Debug)]
pub struct Setup {
    pub plan: Plan,
    pub endpoints: Vec<Endpoint>,
    pub targets: Targets,
    /// Workers of this process; in a fleet other machines have further workers.
    pub workers: u32,
    /// The part of the load of each worker; all parts of the run add up to the whole.
    shares: Vec<Share>,
    /// First instant of the run (start of the warm-up, if there is one).
    pub start: Nanos,
    pub(crate) seed: Seed,
    pub(crate) body: BodyTest,
    /// Expected bodies of the targets, if the plan compares them.
    pub(crate) known: Option<KnownBodies>,
    pub(crate) keys: BTreeMap<String, u32>,
    status_ok: Box<[bool; 1000]>,
    pub logging: Logging,
    /// Tokens that requests carry, if the plan has any.
    pub tokens: Option<Arc<Tokens>>,
    /// Kinds of the users and sessions, if the plan has kinds of clients.
    pub crowd: Option<Crowd>,
    /// Seconds since 1970 at the instant 0 of the run's clock, for signatures with dates.
    pub unix_s: u64,
    /// Protocol of the connections.
    pub(crate) protocol: Protocol,
    /// Protocol of the WebSockets that steps of journeys, or guides, open.
    pub(crate) sockets: Option<Protocol>,
    /// The plan's visits, call by call.
    scripts: Vec<Vec<VisitStep>>,
    /// Event formats of targets, by row; empty if there are no streams.
    streams: Vec<Option<Streaming>>,
    /// Expected gRPC statuses by row, where they differ from the plan's.
    grpc_status: Vec<Vec<u8>>,
    /// Form of the bodies of gRPC calls, by row.
    grpc_forms: Vec<BodyForm>,
    /// Messages of a stream by the field that their answers repeat; `None` without one.
    pub(crate) answer_keys: Option<Arc<AnswerKeys>>,
    /// The secrets of the plan: its responses may repeat them.
    pub(crate) secrets: Masker,
}

/// Part of the load that a worker takes over while it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LateShare {
    pub share: Share,
    /// Only arrivals due at least this long after the run's first instant.
    pub from: Nanos,
}

/// Handling of finished calls, in addition to counting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Logging {
    /// Each call is passed on, in batches.
    pub calls: bool,
    /// A failed call is passed on at once, not with its batch.
    pub failures_at_once: bool,
    /// Ends of connections and of sessions are passed on too.
    pub ends: bool,
    /// Number of calls of each worker for which the start of the response is kept, up to
    /// [`RESPONSE_KEPT_MAX`](crate::RESPONSE_KEPT_MAX) bytes. Over HTTP/2 only the head is kept, in
    /// HTTP/1 form, with the stream's id in place of the reason.
    pub responses: u64,
    /// Leniency beyond HTTP/1.x. If responses without a head are accepted, the start of a response
    /// without a head, or of a truncated response, is kept with its call.
    pub lenient: Leniency,
}

/// Returns the template whose messages are sent on a schedule, if the plan has one.
pub(crate) fn paced(plan: &Plan, mut template: Template) -> Template {
    if plan.grpc.message_rate.is_some()
        && let Some(request) = &mut template.http2
    {
        request.pace();
    }
    template
}

impl Setup {
    /// Prepares a run of the plan.
    /// `endpoints` must hold an endpoint with the key of each target's URL; `workers` is at least 1
    /// and at most the number of users or connections.
    ///
    /// # Errors
    /// Fails if a request cannot be rendered, a target has no endpoint, or an expression does not
    /// compile.
    pub fn new(
        plan: Plan,
        endpoints: Vec<Endpoint>,
        workers: u32,
        start: Nanos,
    ) -> Result<Setup, SetupError> {
        let keys = rows_by_key(&endpoints);
        let mut templates = Vec::with_capacity(plan.targets.len());
        let steps = plan.journeys.as_ref().map_or_else(Vec::new, |journeys| journeys.steps());
        for target in &plan.targets {
            let key = endpoint_key(&target.url);
            let Some(row) = keys.get(&key).copied() else {
                return Err(SetupError(format!("no address is known for {key}")));
            };
            let method = target.method.as_deref().unwrap_or(&plan.request.method);
            let body = target.body.as_deref().or(plan.request.body.as_deref());
            let absolute = endpoints[row as usize].absolute;
            let step = steps.get(templates.len());
            let template = match (&target.raw, step) {
                (_, Some(step)) => journey::template(&plan, step, row, absolute)
                    .map_err(|why| SetupError(format!("step {}: {why}", step.name)))?,
                (Some(raw), None) => raw_template(&target.url, method, raw, row),
                (None, None) => {
                    let (url, own) = (&target.url, &target.headers);
                    build_template(&plan, url, method, own, body, row, absolute)
                        .map_err(|error| SetupError(format!("request for {url}: {error}")))?
                }
            };
            templates.push(paced(&plan, template));
        }
        let weights: Vec<f64> = plan.targets.iter().map(|target| target.weight).collect();
        let seed = Seed(plan.seed);
        let targets = Targets::new(templates, &weights, plan.order, seed);
        let targets = targets.in_sequence(plan.sequence.clone());
        let streams = plan.streams();
        let body = BodyTest::new(&plan.expect, plan.request.compressed, !streams.is_empty())
            .map(|test| test.of_grpc(streams.contains(&Some(Streaming::Grpc))));
        let body = body.map_err(SetupError)?;
        let known =
            KnownBodies::new(&plan).map_err(|why| SetupError(format!("--verify: {why}")))?;
        let status_ok = statuses(&plan);
        let (grpc_status, grpc_forms) = (plan.grpc_expectations(), plan.grpc_forms());
        let protocol = protocol(&plan).map_err(SetupError)?;
        let sockets = step_socket_protocol(&plan).map_err(SetupError)?;
        Ok(Setup {
            answer_keys: AnswerKeys::new(&plan),
            shares: shares(plan.websocket.rooms, workers)?,
            secrets: Masker::new(&plan),
            scripts: plan.load.session().map_or_else(Vec::new, scripts),
            plan,
            endpoints,
            targets,
            workers,
            start,
            seed,
            body,
            known,
            keys,
            status_ok,
            logging: Logging::default(),
            tokens: None,
            crowd: None,
            unix_s: 0,
            protocol,
            sockets,
            streams,
            grpc_status,
            grpc_forms,
        })
    }

    /// Permits guides to open WebSockets and gRPC connections.
    ///
    /// # Errors
    /// Fails if settings of WebSockets cannot be used.
    pub fn expect_sockets(&mut self) -> Result<(), SetupError> {
        if self.sockets.is_none() && !self.plan.is_websocket() {
            let terms = SocketTerms::new(&self.plan).map_err(SetupError)?.guided();
            self.sockets = Some(Protocol::WebSocket(Arc::new(terms)));
        }
        Ok(())
    }

    /// Returns a clear snapshot with enough memory to record a usual call of the plan without
    /// allocating.
    pub fn fresh_snapshot(&self) -> Box<Snapshot> {
        let mut fresh = Box::new(Snapshot::prepared(self.plan.row_count()));
        if !self.plan.measure.folds.patterns.is_empty() {
            fresh.expect_rows(self.plan.row_count());
        }
        if self.is_open() {
            fresh.expect_slip();
        }
        fresh
    }

    /// Returns the first instant of the measured phase.
    pub fn measure_from(&self) -> Nanos {
        self.start + self.plan.stop.warm_up
    }

    /// Returns the instant after which nothing falls due; `NEVER` if only a count ends the run.
    pub fn measure_until(&self) -> Nanos {
        self.plan.stop.duration.map_or(Nanos::NEVER, |span| self.measure_from() + span)
    }

    /// Returns whether arrivals are independent of responses.
    pub fn is_open(&self) -> bool {
        matches!(self.plan.load, Load::Open { .. })
    }

    /// Returns whether calls use streams of connections: HTTP/2 or HTTP/3.
    pub(crate) fn has_streams(&self) -> bool {
        matches!(self.protocol, Protocol::Http2(_) | Protocol::Http3(_))
    }

    /// Returns the number of calls (sessions) of the measured phase; `None` if only time ends the
    /// run.
    pub fn requests_max(&self) -> Option<u64> {
        let listed = self.targets.calls_max();
        let sessions = self.plan.load.session().is_some();
        match (self.plan.stop.requests, listed) {
            (Some(asked), Some(listed)) if !sessions => Some(asked.min(listed)),
            (Some(asked), _) => Some(asked),
            (None, listed) => listed,
        }
    }

    /// Returns the delimiter of this target's events; `None` if its responses are not streams.
    pub(crate) fn stream(&self, target: u32) -> Option<Streaming> {
        self.streams.get(target as usize).copied().flatten()
    }

    /// Returns whether the target's calls are gRPC.
    pub(crate) fn is_grpc(&self, target: u32) -> bool {
        self.stream(target) == Some(Streaming::Grpc)
    }

    /// Returns the form of the bodies of the target's gRPC calls.
    pub(crate) fn grpc_form(&self, target: u32) -> BodyForm {
        let form = self.grpc_forms.get(target as usize).copied();
        form.unwrap_or_else(|| BodyForm::new(self.plan.grpc.variant, ""))
    }

    /// Returns whether the HTTP status of the target's responses is part of a status of Connect,
    /// which decides on the call.
    pub(crate) fn is_connect(&self, target: u32) -> bool {
        self.plan.grpc.variant == GrpcVariant::Connect
            && self.plan.journeys.is_some()
            && self.is_grpc(target)
    }

    /// Returns whether a call with this status succeeded.
    pub(crate) fn expects_grpc(&self, target: u32, code: plan::GrpcCode) -> bool {
        self.plan.expects_grpc(&self.grpc_status, target, code)
    }

    /// Returns the row of the step for which streams of this target are counted; `None` without
    /// journeys.
    pub(crate) fn stream_step(&self, target: u32) -> Option<u32> {
        (self.plan.journeys.is_some() && self.streams.len() > 1).then_some(target)
    }

    /// Returns the step of session `id` after `made` calls; `None` if sessions have no visits.
    #[inline]
    pub(crate) fn script(&self, id: u64, made: u64) -> Option<&VisitStep> {
        if self.scripts.is_empty() {
            return None;
        }
        let script = &self.scripts[(id % self.scripts.len() as u64) as usize];
        script.get(usize::try_from(made).unwrap_or(usize::MAX))
    }

    /// Returns the number of calls of session `id`.
    pub(crate) fn session_calls(&self, id: u64) -> u32 {
        let Some(session) = self.plan.load.session() else { return 0 };
        if !session.lengths.is_empty() {
            return session.lengths[(id % session.lengths.len() as u64) as usize];
        }
        if self.scripts.is_empty() {
            return session.calls;
        }
        self.scripts[(id % self.scripts.len() as u64) as usize].len() as u32
    }

    /// Returns the maximum number of concurrent calls of a visit.
    pub(crate) fn widest_group(&self) -> u32 {
        self.scripts.iter().flatten().map(|step| step.rest).max().unwrap_or(1)
    }

    #[inline]
    pub(crate) fn status_ok(&self, status: u16) -> bool {
        self.status_ok[usize::from(status.min(999))]
    }

    /// Returns whether heads must be kept because one of their fields determines the next action.
    pub(crate) fn keeps_heads(&self) -> bool {
        let request = &self.plan.request;
        // a response over HTTP/2 passes on only its head
        let shown = self.logging.responses > 0 && matches!(self.protocol, Protocol::Http2(_));
        let challenged = crate::proof::is_challenged(&self.plan);
        let read = request.cookies || request.follow_max > 0 || request.compressed;
        challenged || read || shown || self.body.is_grpc()
    }

    /// Returns whether calls are messages without an answer.
    pub(crate) fn is_unanswered(&self) -> bool {
        matches!(&self.protocol, Protocol::WebSocket(terms) if !terms.has_answers())
    }

    /// Returns worker `worker`'s part of `total`: parts differ by at most one and sum to the whole.
    pub(crate) fn share(&self, total: u64, worker: u32) -> u64 {
        self.part(worker).count_of(total)
    }

    /// Returns the setup of each scenario of the plan, or this setup if it has none.
    ///
    /// # Errors
    /// Fails like [`Setup::new`], and if a request cannot be made.
    pub fn per_scenario(self: &Arc<Setup>) -> Result<Vec<Arc<Setup>>, SetupError> {
        if self.plan.scenarios.is_empty() {
            return Ok(vec![self.clone()]);
        }
        let of_scenario = |plan| {
            let setup = Setup::new(plan, self.endpoints.clone(), self.workers, self.start)?;
            let mut setup = setup.with_shares(self.parts().to_vec())?;
            setup.logging = self.logging;
            setup.tokens.clone_from(&self.tokens);
            setup.unix_s = self.unix_s;
            Ok(Arc::new(setup))
        };
        self.plan.lanes().into_iter().map(of_scenario).collect()
    }

    /// Gives the workers these parts of the load, as one machine of several: one worker for each
    /// part.
    ///
    /// # Errors
    /// Fails if there is no part.
    pub fn with_shares(mut self, shares: Vec<Share>) -> Result<Setup, SetupError> {
        if shares.is_empty() {
            return Err(SetupError("no part of the load is left for this machine".into()));
        }
        self.workers = shares.len() as u32;
        self.shares = shares;
        Ok(self)
    }

    /// Returns worker `worker`'s part of the load.
    pub fn part(&self, worker: u32) -> &Share {
        &self.shares[worker as usize]
    }

    /// Returns the parts of all workers of this process.
    pub fn parts(&self) -> &[Share] {
        &self.shares
    }
}

/// Returns the parts of the load for each of `workers`. With rooms a part is a set of rooms, so
/// that each room has the same share of the messages.
fn shares(rooms: Option<u32>, workers: u32) -> Result<Vec<Share>, SetupError> {
    let Some(rooms) = rooms.filter(|rooms| *rooms >= workers) else {
        return Ok((0..workers).map(|worker| Share::new(worker, workers)).collect());
    };
    let slots = |worker: u32| (worker..rooms).step_by(workers as usize).collect::<Vec<_>>();
    let share = |worker| Share::from_slots(&slots(worker), rooms);
    let all = (0..workers).map(share).collect::<Result<_, _>>();
    all.map_err(|error| SetupError(format!("--ws-rooms: {error}")))
}

/// Returns HTTP/2 with the settings of the plan.
pub(crate) fn http2_of(plan: &Plan) -> Protocol {
    Protocol::Http2(http2_settings(plan))
}

fn protocol(plan: &Plan) -> Result<Protocol, String> {
    if plan.is_websocket() {
        return Ok(Protocol::WebSocket(Arc::new(SocketTerms::new(plan)?)));
    }
    Ok(match plan.request.version {
        // a protocol left to the server's choice was resolved before
        HttpVersion::Http10 | HttpVersion::Http11 | HttpVersion::Auto => {
            Protocol::Http1(head_limits(plan))
        }
        HttpVersion::Http2 => http2_of(plan),
        HttpVersion::Http3 => {
            let settings = protocol::http3::SessionSettings::default();
            let section_max = plan.connection.head_max;
            Protocol::Http3(protocol::http3::SessionSettings { section_max, ..settings })
        }
    })
}

/// Returns the settings that connections of HTTP/2 announce.
pub fn http2_settings(plan: &Plan) -> http2::SessionSettings {
    let Http2Plan { stream_window, connection_window, header_table, encoder_table, frame_max } =
        plan.http2;
    http2::SessionSettings {
        stream_window,
        connection_window,
        header_table,
        encoder_table,
        frame_max,
        header_list_max: plan.connection.head_max,
        prioritises: plan.request.priority.is_some(),
        ..http2::SessionSettings::default()
    }
}

/// Returns the limits on the head of an HTTP/1 response.
pub(crate) fn head_limits(plan: &Plan) -> Limits {
    Limits { head_max: plan.connection.head_max as usize, ..Limits::default() }
}

/// Returns the protocol of connections that steps of journeys open, if these may be WebSockets.
fn step_socket_protocol(plan: &Plan) -> Result<Option<Protocol>, String> {
    let opens = plan.journeys.is_some() && plan.speaks_websocket();
    let terms = opens.then(|| SocketTerms::new(plan)).transpose()?;
    Ok(terms.map(|terms| Protocol::WebSocket(Arc::new(terms))))
}

/// One call of a visit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VisitStep {
    pub(crate) target: u32,
    /// The first call of its group, and the pause before that group.
    pub(crate) first: bool,
    pub(crate) pause: Nanos,
    /// Calls from here to the end of the group.
    pub(crate) rest: u32,
}

fn scripts(session: &SessionPlan) -> Vec<Vec<VisitStep>> {
    let script = |visit: &Visit| {
        let mut steps = Vec::new();
        let mut pause = Nanos::ZERO;
        for group in &visit.groups {
            for (at, target) in group.targets.iter().enumerate() {
                let first = at == 0;
                let rest = (group.targets.len() - at) as u32;
                let pause = if first { pause } else { Nanos::ZERO };
                steps.push(VisitStep { target: *target, first, pause, rest });
            }
            pause = group.think;
        }
        steps
    };
    session.visits.iter().map(script).collect()
}

/// 101 Switching Protocols.
const SWITCHING: u16 = 101;

fn statuses(plan: &Plan) -> Box<[bool; 1000]> {
    let mut table = Box::new([false; 1000]);
    for (status, ok) in table.iter_mut().enumerate() {
        let number = status as u16;
        let listed = |&(from, to): &(u16, u16)| (from..=to).contains(&number);
        *ok = match plan.expect.status.as_slice() {
            // 101 answers a request to switch protocols (RFC 9110 section 15.2.2), which only
            // WebSocket sends
            [] => (100..400).contains(&number) && (number != SWITCHING || plan.is_websocket()),
            ranges => ranges.iter().any(listed),
        };
    }
    table
}

/// Returns the row of each endpoint by its key.
fn rows_by_key(endpoints: &[Endpoint]) -> BTreeMap<String, u32> {
    endpoints.iter().enumerate().map(|(row, end)| (end.key.clone(), row as u32)).collect()
}
