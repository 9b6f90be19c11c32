//! Steps between an open session and its first due instant: negotiates the protocol, and makes the
//! plain call that precedes every run.

use crate::exit::Failure;
use crate::first_call::{self, PlainCall};
use crate::session::{Env, Session};
use crate::{journeys, path};
use engine::Setup;
use plan::{HttpVersion, Plan};
use sample::FailureClass;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;
use units::Nanos;
use workload::Template;

/// Maximum delay until a signal is noticed while a call blocks.
const SIGNAL_CHECK: Duration = Duration::from_millis(50);

/// Maximum number of redirects of the first target that are followed to find the hosts of the run.
const HOPS_MAX: usize = 10;

/// Runs `body` on a separate thread, because it blocks. Returns `None` if a signal arrives first:
/// the thread then ends with the program.
///
/// # Errors
/// Fails if no thread can be started, or the thread panics; `owner` names the thread.
pub fn unless_interrupted<T: Send + 'static>(
    name: &str,
    owner: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> Result<Option<T>, Failure> {
    let (give, done) = mpsc::channel();
    // after a signal nothing receives it
    let body = crate::console::inherited(move || drop(give.send(body())));
    let thread = std::thread::Builder::new().name(name.into()).spawn(body);
    thread.map_err(|error| Failure::usage(format!("cannot start a thread: {error}")))?;
    loop {
        match done.recv_timeout(SIGNAL_CHECK) {
            Ok(done) => return Ok(Some(done)),
            Err(RecvTimeoutError::Timeout) if crate::signals::received_signal() > 0 => {
                return Ok(None);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Failure::usage(format!("{owner} panicked; this is a bug")));
            }
        }
    }
}

impl Session {
    /// Opens a session and makes its first call; `None` if a signal arrived first.
    ///
    /// # Errors
    /// Fails like [`Session::open`] and [`Session::first_call`].
    pub fn reach(plan: &Plan, name: &str, env: &Arc<Env>) -> Result<Option<Session>, Failure> {
        let (plan, name, env) = (plan.clone(), name.to_owned(), env.clone());
        let body = move || {
            let mut session = Session::open(&plan, &name, &env)?;
            session.first_call()?;
            Ok(session)
        };
        unless_interrupted("first-call", "the first call's thread", body)?.transpose()
    }

    /// Negotiates the protocol, makes the plain call, adds the hosts that its redirects lead to,
    /// and runs the setup steps of the plan's journeys. Without a connection,
    /// [`Session::is_reachable`] is false afterwards.
    ///
    /// # Errors
    /// Fails if TLS settings cannot be used, or a setup step fails.
    pub fn first_call(&mut self) -> Result<(), Failure> {
        self.obtain_one_token(&self.fit.plan)?;
        let streams = self.base.connection.pipeline;
        let choice = self.negotiate()?;
        if choice.is_some() && self.fit.plan.request.version != HttpVersion::Http2 {
            // streams are those of HTTP/2
            self.keep_to_streams(1);
        }
        self.settle_grpc()?;
        let (mut found, from) = self.call_first()?;
        self.check_tunnels(&found)?;
        if found.unimplemented && self.fit.plan.grpc.descriptors.is_none() {
            self.check_grpc_method()?;
        }
        if let Some(choice) = choice.filter(|choice| !choice.unreached) {
            self.notes.push(choice.sentence(&self.fit.plan, streams));
            found.call.negotiated = Some(choice.offered);
        }
        self.limit_streams(found.streams_max);
        if self.fit.network.route().is_some() {
            self.notes.extend(path::excess_packet_rate(&self.fit.plan, found.call.length));
        }
        self.follow_redirects(&mut found, from)?;
        if !found.unreachable {
            journeys::set_up(self)?;
        }
        self.unreachable = found.unreachable;
        self.choose_sockets(&found.call);
        self.first_call = Some(found.call);
        Ok(())
    }

    /// Returns whether the first call got a connection.
    pub fn is_reachable(&self) -> bool {
        !self.unreachable
    }

    /// Returns why the first call got no successful response.
    pub fn first_failure(&self) -> Option<&str> {
        let call = self.first_call.as_ref()?;
        call.failure.as_ref().map(|(_, why)| why.as_str())
    }

    /// Adds the hosts that redirects of the first target lead to.
    fn follow_redirects(
        &mut self,
        found: &mut PlainCall,
        mut from: Template,
    ) -> Result<(), Failure> {
        let plan = &self.authorized(&self.fit.plan);
        for _ in 0..HOPS_MAX {
            let endpoints = &self.servers.endpoints;
            let Some(url) = first_call::unknown_host(found, plan, endpoints) else { break };
            if let Err(error) = self.add_server(&url) {
                self.notes.push(format!(
                    "the first call is redirected to {url}, which cannot be requested: {error:#}"
                ));
                break;
            }
            let row = self.servers.endpoints.len() - 1;
            let endpoint = &mut self.servers.endpoints[row];
            let place = (row as u32, endpoint.absolute);
            let Some(template) = first_call::redirected(plan, &from, &url, place) else { break };
            let (tls, network) = (self.servers.tls.as_ref(), &self.fit.network);
            let call = || first_call::make(plan, endpoint, tls, network.own(), &template);
            found.location = path::run_on_path(network.route().map(|it| &**it), call)?.location;
            from = template;
        }
        Ok(())
    }

    /// Limits the streams on a connection to the number that the server allows: refused streams are
    /// not a measurement.
    fn limit_streams(&mut self, allowed: Option<u32>) {
        let asked = self.fit.plan.connection.pipeline;
        let kept = allowed.map(|most| most.max(1)).filter(|kept| *kept < asked);
        let Some(kept) = kept else { return };
        self.keep_to_streams(kept);
        self.notes.push(format!(
            "the server allows {kept} streams on a connection: {kept} are used, not {asked}"
        ));
    }

    /// # Errors
    /// The server accepts no WebSocket over the requested version.
    fn check_tunnels(&self, found: &PlainCall) -> Result<(), Failure> {
        let refused = found.call.failure.as_ref();
        let refused = refused.filter(|(class, _)| *class == FailureClass::UpgradeRefused);
        match refused.filter(|_| found.unreachable && self.base.tunnels_websockets()) {
            Some((_, why)) => {
                let number = if self.base.request.version == HttpVersion::Http3 { 3 } else { 2 };
                let fix = format!("drop --http {number} to use HTTP/1.1");
                Err(Failure::usage(format!("{}: {why}; {fix}", self.name)))
            }
            None => Ok(()),
        }
    }

    /// Makes the first call; returns its request too.
    fn call_first(&mut self) -> Result<(PlainCall, Template), Failure> {
        let plan = &self.authorized(&self.fit.plan);
        let setup = Setup::new(Plan::clone(plan), self.servers.endpoints.clone(), 1, Nanos::ZERO)
            .map_err(|error| Failure::usage(error.to_string()))?;
        let mut template = setup.targets.template(0).clone();
        // never send a non-GET step before the run
        let journeys = plan.journeys.as_ref();
        let journeys =
            journeys.filter(|it| &*template.method != "GET" || it.has_special_first_step());
        let over_quic = plan.request.version == HttpVersion::Http3;
        if let Some(journeys) = journeys.filter(|_| over_quic) {
            let row = template.endpoint;
            let absolute = setup.endpoints[row as usize].absolute;
            let base = first_call::request_for(plan, &journeys.base, row, absolute);
            template = base.unwrap_or(template);
        }
        let endpoint = &mut self.servers.endpoints[template.endpoint as usize];
        let (tls, network) = (self.servers.tls.as_ref(), &self.fit.network);
        let found = path::run_on_path(network.route().map(|it| &**it), || match journeys {
            Some(_) if !over_quic => first_call::connect(plan, endpoint, tls, network.own()),
            _ => first_call::make(plan, endpoint, tls, network.own(), &template),
        })?;
        Ok((found, template))
    }

    /// Makes one plain call with this timeout; blocks.
    ///
    /// # Errors
    /// Fails if the path cannot be entered.
    pub fn plain_call(&self, template: &Template, patience: Nanos) -> Result<PlainCall, Failure> {
        let plan = self.authorized(&Arc::new(self.base.with_patience(patience)));
        let mut endpoint = self.servers.endpoints[template.endpoint as usize].clone();
        let (tls, network) = (self.servers.tls.as_ref(), &self.fit.network);
        let call = || first_call::make(&plan, &mut endpoint, tls, network.own(), template);
        path::run_on_path(network.route().map(|it| &**it), call)
    }
}
