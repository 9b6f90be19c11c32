//! A session: one plan, its servers, and the resources prepared on this machine.

use crate::calibration::Calibration;
use crate::change::Change;
use crate::judge::Judge;
use crate::network::{Fleet, Network};
use crate::own_stack::{self, PrefixUse, Threads};
use crate::path::EmulatedPath;
use crate::placement::{self, Placement};
use crate::servers::{self, Servers};
use crate::settled::{Negotiated, Settled};
use crate::{sockets, sut};
use anyhow::Result;
use engine::token::Tokens;
use engine::{Endpoint, Share};
use plan::{AnswerField, Plan};
use record::run::FirstCall;
use sample::Environment;
use std::collections::BTreeMap;
use std::sync::Arc;
use units::Nanos;
use url::Url;

/// The state of this machine that the sessions of one command share.
#[derive(Clone, Debug)]
pub struct Env {
    pub environment: Environment,
    pub calibration: Option<Calibration>,
    /// Time from the start of the workers' threads to the first due instant: 20 ms, so that they
    /// are ready even on a busy machine.
    pub lead: Nanos,
    /// Prefixes of the program's own TCP in the plans whose load varies; `None` if each plan has
    /// one load.
    varied: Option<Vec<PrefixUse>>,
}

/// Default of [`Env::lead`].
const LEAD: Nanos = Nanos::from_millis(20);

impl Env {
    /// Reads the state for sessions that are measured under the load of their plan.
    pub fn here() -> Env {
        let environment = host::environment();
        let calibration = Calibration::load(&environment);
        Env { environment, calibration, lead: LEAD, varied: None }
    }

    /// Reads the state for sessions that are not judged by the capacity of this machine.
    pub fn without_calibration() -> Env {
        let environment = host::environment();
        Env { environment, calibration: None, lead: LEAD, varied: None }
    }

    /// Reads the state for sessions of these plans, each measured under several loads.
    pub fn for_variations<'a>(plans: impl IntoIterator<Item = &'a Plan>) -> Env {
        let uses = plans.into_iter().filter_map(own_stack::prefix_use).collect();
        Env { varied: Some(uses), ..Env::here() }
    }

    /// Returns the minimum number of threads for which the devices of the program's own TCP are
    /// divided; `None` for the plan's.
    pub(crate) fn threads_of_sharers(&self, plan: &Plan) -> Option<u32> {
        let uses = self.varied.as_ref()?;
        Some(own_stack::threads_of_sharers(plan, uses))
    }
}

/// Part of a load on one machine.
#[derive(Clone, Debug)]
pub struct MachinePart {
    /// One part for each worker.
    pub shares: Vec<Share>,
    /// The first instant of the run.
    pub start: Nanos,
}

/// State that depends on the load: the plan with the bounds of this machine, its threads, its
/// network.
#[derive(Clone, Debug)]
pub(crate) struct Fit {
    pub(crate) plan: Arc<Plan>,
    pub(crate) placement: Placement,
    pub(crate) network: Network,
}

/// Values and cookies that the setup of journeys captured.
#[derive(Clone, Debug, Default)]
pub(crate) struct Captured {
    pub(crate) values: BTreeMap<String, String>,
    pub(crate) jar: workload::Jar,
}

/// A plan that can be measured.
#[derive(Clone, Debug)]
pub struct Session {
    /// Name as typed, with a password masked.
    pub(crate) name: String,
    pub(crate) env: Arc<Env>,
    /// The plan as typed, with the values negotiated with the servers.
    pub(crate) base: Arc<Plan>,
    pub(crate) settled: Settled,
    pub(crate) servers: Servers,
    pub(crate) fit: Fit,
    /// Notes for the user, one sentence each.
    pub(crate) notes: Vec<String>,
    /// The reason why sockets are not read in the requested way.
    sockets_note: Option<String>,
    pub(crate) sut: Option<sut::SutTarget>,
    pub(crate) part: Option<MachinePart>,
    pub(crate) captured: Captured,
    /// Tokens, if the plan has a token table.
    pub(crate) tokens: Option<Arc<Tokens>>,
    pub(crate) first_call: Option<FirstCall>,
    pub(crate) unreachable: bool,
    /// Users of guides may open WebSockets.
    pub(crate) guides_open_sockets: bool,
}

impl Session {
    /// Returns a session of a plan for which nothing is prepared.
    pub fn unopened(plan: &Plan, name: &str, env: &Arc<Env>) -> Session {
        let base = Arc::new(plan.clone());
        Session {
            name: name.to_owned(),
            env: env.clone(),
            fit: Fit {
                plan: base.clone(),
                placement: Placement::default(),
                network: Network::default(),
            },
            base,
            settled: Settled::default(),
            servers: Servers::default(),
            notes: Vec::new(),
            sockets_note: None,
            sut: None,
            part: None,
            captured: Captured::default(),
            tokens: None,
            first_call: None,
            unreachable: false,
            guides_open_sockets: false,
        }
    }

    /// Looks up names, prepares TLS, chooses cores, raises limits and sets up the network. Sends
    /// nothing.
    ///
    /// # Errors
    /// Fails for names without an address, unusable TLS settings, limits that the plan exceeds, or
    /// a network that this machine or this user cannot set up.
    pub fn open(plan: &Plan, name: &str, env: &Arc<Env>) -> Result<Session> {
        Session::open_with(plan, &[], name, env)
    }

    /// Opens a session with additional servers that the plan does not name.
    ///
    /// # Errors
    /// Fails like [`Session::open`].
    pub fn open_with(plan: &Plan, more: &[Url], name: &str, env: &Arc<Env>) -> Result<Session> {
        servers::check_this_machine(plan)?;
        let mut session = Session::unopened(plan, name, env);
        for url in plan.targets.iter().map(|target| &target.url).chain(more) {
            session.servers.add(plan, url)?;
        }
        session.servers.prepare_tls(plan)?;
        session.tokens = Tokens::new(plan).map_err(anyhow::Error::msg)?.map(Arc::new);
        session.notes.extend(servers::unmatched(plan));
        session.place(plan.clone())?;
        session.open_network()?;
        Ok(session)
    }

    /// Chooses cores for the session's load, and sets the bounds that the plan leaves open.
    fn place(&mut self, plan: Plan) -> Result<()> {
        self.fit.placement = placement::place(&plan, &self.servers.endpoints);
        let (endpoints, workers) = (&self.servers.endpoints, self.fit.placement.workers);
        self.fit.plan = placement::bounded(plan, endpoints, workers, &mut self.notes)?;
        Ok(())
    }

    /// Sets up the network that connections on this machine use.
    fn open_network(&mut self) -> Result<()> {
        let plan = self.fit.plan.clone();
        let (sockets, note) = sockets::requested(&plan);
        let endpoints = &mut self.servers.endpoints;
        if let Some(route) = EmulatedPath::open(&plan, endpoints, &mut self.notes)? {
            self.fit.network = Network::Path(Arc::new(route), sockets);
        } else if plan.driver.stack.is_own() {
            let varied = self.env.threads_of_sharers(&plan);
            let threads = threads_of(&self.fit.placement);
            let own = own_stack::open(&plan, threads, varied, endpoints, &mut self.notes)?;
            self.fit.network = Network::OwnStack(own);
        } else {
            self.fit.network = Network::Kernel(sockets);
        }
        self.sockets_note = note;
        Ok(())
    }

    /// Chooses between epoll and io_uring for kernel sockets, if the plan does not set it. Sessions
    /// whose load varies keep epoll: their measurements are compared with each other.
    pub(crate) fn choose_sockets(&mut self, first: &FirstCall) {
        let is_fixed = self.env.varied.is_none() && self.part.is_none();
        if let Network::Kernel(sockets) = &mut self.fit.network
            && is_fixed
            && let Some(suited) = sockets::suited(&self.fit.plan, self.fit.placement.workers, first)
        {
            *sockets = suited;
        }
    }

    /// Adds a server that a response leads to; on failure the session is unchanged.
    ///
    /// # Errors
    /// Fails if a name has no address, or the plan exceeds limits with this server.
    pub(crate) fn add_server(&mut self, url: &Url) -> Result<()> {
        let mut wider = self.clone();
        let plan = (*self.fit.plan).clone();
        wider.servers.add(&plan, url)?;
        wider.servers.prepare_tls(&plan)?;
        wider.place(plan)?;
        *self = wider;
        Ok(())
    }

    /// Returns the state for a changed load of the same servers: cores, limits, bounds and the
    /// network are adapted to it.
    ///
    /// # Errors
    /// Fails if the plan exceeds limits, or a network cannot be set up.
    pub(crate) fn fitted(&self, change: &Change) -> Result<Fit> {
        let plan = change.applied(&self.base);
        let placement = placement::place(&plan, &self.servers.endpoints);
        let network = match &self.fit.network {
            // each agent has its own
            Network::Fleet(fleet) => Network::Fleet(fleet.clone()),
            Network::Path(route, sockets) => EmulatedPath::refit(&plan, Some(route))?
                .map_or(Network::Kernel(*sockets), |route| Network::Path(route, *sockets)),
            Network::Kernel(sockets) => EmulatedPath::refit(&plan, None)?
                .map_or(Network::Kernel(*sockets), |route| Network::Path(route, *sockets)),
            Network::OwnStack(own) => {
                Network::OwnStack(own_stack::refit(&plan, threads_of(&placement), own)?)
            }
        };
        // notes of the first fit are shown; later ones hardly differ
        let mut notes = Vec::new();
        let endpoints = &self.servers.endpoints;
        let plan = placement::bounded(plan, endpoints, placement.workers, &mut notes)?;
        Ok(Fit { plan, placement, network })
    }

    /// Sets the negotiated protocol.
    pub(crate) fn set_protocol(&mut self, negotiated: Negotiated) {
        self.settled.negotiated = Some(negotiated);
        self.apply_settled();
    }

    /// Sets the body of requests.
    pub(crate) fn send(&mut self, body: Vec<u8>) {
        self.settled.body = Some(body);
        self.apply_settled();
    }

    /// Notes that the method of gRPC calls, or of the steps of these rows, has a stream.
    pub(crate) fn stream_connect(&mut self, rows: Vec<u32>) {
        self.settled.has_stream = true;
        self.settled.stream_rows = rows;
        self.apply_settled();
    }

    /// Records that messages of responses answer those of requests: in order, or by a field.
    pub(crate) fn answer_messages(&mut self, field: Option<AnswerField>) {
        self.settled.answers = true;
        self.settled.correlate = field;
        self.apply_settled();
    }

    /// Sets the descriptors of gRPC methods.
    pub(crate) fn describe(&mut self, descriptors: Vec<u8>) {
        self.settled.descriptors = Some(descriptors);
        self.apply_settled();
    }

    /// Limits the streams of a connection.
    pub(crate) fn keep_to_streams(&mut self, most: u32) {
        self.settled.streams = Some(most);
        self.apply_settled();
    }

    fn apply_settled(&mut self) {
        self.fit.plan = Arc::new(self.settled.applied(&self.fit.plan));
        self.base = Arc::new(self.settled.applied(&self.base));
    }

    /// Lets the machines of a fleet run the plan. The resources set up here for the first call are
    /// dropped: each machine sets up its own.
    pub fn move_to(&mut self, fleet: &Arc<dyn Fleet>) {
        if self.fit.network.route().is_some() {
            self.notes.push(
                "each agent sets up the path on its own machine: as many links as agents, not one \
                 shared by all"
                    .to_owned(),
            );
        }
        self.fit.network = Network::Fleet(fleet.clone());
        self.sockets_note = None;
    }

    /// Watches the resources of this server during each measurement.
    pub fn watch_server(&mut self, target: Option<&sut::SutTarget>) {
        self.sut = target.cloned();
    }

    /// Measures this plan from now on; only its timeouts differ from those of the opened session.
    pub fn replace_base(&mut self, plan: &Plan) {
        self.base = Arc::new(self.settled.applied(plan));
    }

    /// Measures this plan from now on; it has the same servers and the same size of its load.
    pub fn replace_plan(&mut self, plan: Plan) {
        self.fit.plan = Arc::new(plan);
    }

    /// Runs only this part of the load.
    pub fn take_part(&mut self, part: MachinePart) {
        self.fit.placement.workers = part.shares.len() as u32;
        self.part = Some(part);
    }

    /// Prepares TLS for servers that are not known yet.
    ///
    /// # Errors
    /// Fails if TLS settings cannot be used.
    pub fn expect_tls(&mut self) -> Result<()> {
        let plan = self.fit.plan.clone();
        self.servers.expect_tls(&plan)
    }

    /// Lets the users of guides open WebSockets.
    pub fn expect_sockets(&mut self) {
        self.guides_open_sockets = true;
    }

    /// Returns the name as typed, with a password masked.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the plan as typed, with the values negotiated with the servers.
    pub fn base(&self) -> &Plan {
        &self.base
    }

    /// Returns the plan as run: bounded by this machine if it has no bounds.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.fit.plan
    }

    pub fn env(&self) -> &Env {
        &self.env
    }

    pub fn endpoints(&self) -> &[Endpoint] {
        &self.servers.endpoints
    }

    pub fn workers(&self) -> u32 {
        self.fit.placement.workers
    }

    /// Returns the values that the setup of journeys captured.
    pub fn captured(&self) -> &BTreeMap<String, String> {
        &self.captured.values
    }

    /// Notes for the user before the run, about the machines that run it.
    pub fn notes(&self) -> impl Iterator<Item = &str> {
        self.notes.iter().chain(&self.sockets_note).map(String::as_str)
    }

    /// Adds a note for the user.
    pub fn note(&mut self, text: String) {
        self.notes.push(text);
    }

    /// Returns the judge of measurements of this session.
    pub fn judge(&self) -> Judge {
        Judge::new(&self.fit.placement, self.env.calibration.as_ref())
    }
}

fn threads_of(placement: &Placement) -> Threads {
    Threads { workers: placement.workers, most: placement.threads_most }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::FleetTask;
    use crate::sockets::SocketLoop;
    use crate::watcher::Watcher;
    use engine::Setup;
    use plan::{HttpVersion, Load, StackChoice};
    use record::run::RunReport;
    use sample::BudgetFacts;

    /// A fleet that is never queried.
    #[derive(Debug)]
    struct Others;

    impl Fleet for Others {
        fn admit(&self, _: &Plan) -> Result<Vec<BudgetFacts>> {
            Ok(Vec::new())
        }

        fn measure(
            &self,
            _: &FleetTask<'_>,
            _: &mut dyn FnMut(&Setup) -> Box<dyn Watcher>,
            _: &mut RunReport,
        ) -> Result<()> {
            anyhow::bail!("no machine measures")
        }
    }

    fn env() -> Arc<Env> {
        Arc::new(Env {
            environment: Environment::default(),
            calibration: None,
            varied: Some(Vec::new()),
            lead: LEAD,
        })
    }

    fn by_batches() -> Plan {
        let mut plan = Plan::for_url("http://127.0.0.1:1/".parse().expect("a URL"));
        plan.driver.stack = StackChoice::KernelBatches;
        plan
    }

    /// Each agent has its own kernel: refusals of this one do not apply there.
    #[test]
    fn notes_of_a_fleet_are_not_about_the_sockets_of_this_machine() {
        // refused on each machine, because of UDP
        let mut plan = by_batches();
        plan.request.version = HttpVersion::Http3;
        let mut session = Session::unopened(&plan, "", &env());
        session.note("of the plan".into());
        session.open_network().expect("nothing is set up");
        let notes: Vec<&str> = session.notes().collect();
        let refused = "--stack kernel:batches: uses epoll: HTTP/3 uses UDP";
        assert_eq!(notes, ["of the plan", refused]);
        assert_eq!(session.fit.network.name(&plan), "epoll");
        let fleet: Arc<dyn Fleet> = Arc::new(Others);
        session.move_to(&fleet);
        assert_eq!(session.notes().collect::<Vec<_>>(), ["of the plan"]);
        assert_eq!(session.fit.network.name(&plan), "kernel TCP");
        plan.driver.stack = StackChoice::Kernel;
        assert_eq!(session.fit.network.name(&plan), "epoll");
    }

    /// The bounds of one load are not those of the next.
    #[test]
    fn bounds_follow_the_load_that_is_carried_out() {
        let open = |rate: f64| {
            let arrivals = plan::Arrivals::constant(units::Rate(rate));
            Load::Open { arrivals, session: None, connections_max: None, queue_max: None }
        };
        let bounds = |plan: &Plan| match plan.load {
            Load::Open { connections_max, queue_max, .. } => (connections_max, queue_max),
            Load::Closed { .. } => (None, None),
        };
        let mut typed = Plan::for_url("http://127.0.0.1:1/".parse().expect("a URL"));
        typed.load = open(10.0);
        let session = Session::open(&typed, "", &env()).expect("limits that can be kept");
        let (connections, queue) = bounds(session.plan());
        assert!(connections.is_some(), "{connections:?}");
        // the arrivals of one timeout
        assert_eq!(queue, Some(300));
        assert_eq!(session.base().load, open(10.0));
        let change = Change { load: Some(open(20.0)), ..Change::default() };
        let step = session.fitted(&change).expect("limits that can be kept");
        // the number of connections that fit depends on the other descriptors of this process
        let (connections, queue) = bounds(&step.plan);
        assert!(connections.is_some() && queue == Some(600), "{connections:?}, {queue:?}");
    }

    /// A comparison whose trials use different loops is meaningless.
    #[test]
    fn a_changed_load_uses_the_sockets_of_the_first_call() {
        let plan = by_batches();
        for sockets in [SocketLoop::Epoll, SocketLoop::Ring] {
            let mut session = Session::unopened(&plan, "", &env());
            session.fit.network = Network::Kernel(sockets);
            let trial = session.fitted(&Change::default()).expect("limits that can be kept");
            assert!(matches!(trial.network, Network::Kernel(kept) if kept == sockets));
        }
    }

    #[test]
    fn a_server_that_cannot_be_added_leaves_the_session_as_it_was() {
        let plan = Plan::for_url("http://127.0.0.1:1/".parse().expect("a URL"));
        let mut session = Session::open(&plan, "", &env()).expect("limits that can be kept");
        let nowhere = "http://name.invalid/".parse().expect("a URL");
        assert!(session.add_server(&nowhere).is_err());
        assert_eq!(session.endpoints().len(), 1);
        session.add_server(&"http://127.0.0.2:1/".parse().expect("a URL")).expect("an address");
        let keys: Vec<&str> = session.endpoints().iter().map(|it| it.key.as_str()).collect();
        assert_eq!(keys, ["http://127.0.0.1:1", "http://127.0.0.2:1"]);
    }
}
