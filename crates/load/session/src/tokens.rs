//! Tokens of a plan: requested before its calls, and renewed on a separate thread while it runs.

use crate::caller::Caller;
use crate::exit::{Code, Failure};
use crate::servers;
use crate::session::Session;
use crate::watcher::Watcher;
use engine::exchange::Caller as _;
use engine::token::Tokens;
use engine::{Order, endpoint_key};
use plan::{Auth, Plan, TokenPlan};
use record::run::RunReport;
use sample::CallRecord;
use stats::{Cause, CauseId, Second, Snapshot, State};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::Duration;
use units::Nanos;

/// Maximum delay until a refused token, or the end of the run, is noticed.
const CHECK: Nanos = Nanos::from_millis(20);

fn now() -> Nanos {
    net::reactor::monotonic()
}

impl Session {
    /// Requests the tokens that the plan's calls need now; blocks.
    ///
    /// # Errors
    /// Fails if the token endpoint issues no token.
    pub fn obtain_tokens(&self, plan: &Plan) -> Result<(), Failure> {
        let count = match &self.part {
            Some(part) => plan.token_count_of(&part.shares),
            None => plan.token_count(),
        };
        self.request_tokens(plan, count)
    }

    /// Requests the token of a single call: a fleet's manager needs no other.
    pub(crate) fn obtain_one_token(&self, plan: &Plan) -> Result<(), Failure> {
        self.request_tokens(plan, plan.token_count().min(1))
    }

    /// Requests up to `count` tokens; existing connections are kept. It blocks.
    ///
    /// # Errors
    /// Fails if the token endpoint issues no token.
    pub fn request_tokens(&self, plan: &Plan, count: u32) -> Result<(), Failure> {
        let Some(tokens) = &self.tokens else { return Ok(()) };
        tokens.provide(count);
        if tokens.are_ready(now()) {
            return Ok(());
        }
        let mut caller = caller(plan.clone())?;
        // nothing is sent on this channel: its timeout serves as a pause
        let (_open, pause) = mpsc::channel::<()>();
        while !tokens.are_ready(now()) && crate::signals::received_signal() == 0 {
            let connected = request_due(tokens, &mut caller);
            if let Some(text) = tokens.lost(now()) {
                let code = if connected == Some(false) { Code::NoConnection } else { Code::Missed };
                return Err(Failure { code, text });
            }
            if connected.is_none() {
                // the previous run's request is in flight
                pause.recv_timeout(Duration::from_nanos(CHECK.0)).ok();
            }
        }
        Ok(())
    }

    /// Returns the plan for a single exchange, with the current token as its login.
    pub(crate) fn authorized(&self, plan: &Arc<Plan>) -> Arc<Plan> {
        let value = self.tokens.as_ref().and_then(|tokens| tokens.authorization());
        let token = value.as_deref().and_then(|value| value.strip_prefix("Bearer "));
        let Some(token) = token else { return plan.clone() };
        let mut plan = Plan::clone(plan);
        plan.token = TokenPlan::default();
        plan.request.auth = Some(Auth::Bearer(token.to_owned()));
        Arc::new(plan)
    }
}

/// Requests the due tokens together; returns whether all connections were made, `None` if none was
/// due.
fn request_due(tokens: &Tokens, caller: &mut Caller) -> Option<bool> {
    let sent = now();
    let rows = tokens.take_due(sent);
    if rows.is_empty() {
        return None;
    }
    let heard = caller.exchange(rows.iter().map(|_| tokens.request()).collect());
    let done = now();
    for (row, heard) in rows.into_iter().zip(&heard) {
        tokens.answered(row, heard, sent, done);
    }
    Some(heard.iter().all(|heard| heard.connected))
}

/// Makes token requests by the rules of the plan, over this machine's sockets.
fn caller(mut plan: Plan) -> Result<Caller, Failure> {
    let key = plan.token.url.as_ref().map(endpoint_key).unwrap_or_default();
    if plan.targets.iter().all(|target| endpoint_key(&target.url) != key) {
        // these belong to the server under test
        (plan.connection.unix, plan.tls.server_name) = (None, None);
    }
    let settings = servers::exchange_tls_settings(&plan);
    let caller = Caller::new(plan.timeouts.connect, settings).map_err(Failure::usage)?;
    Ok(caller.by_plan([], servers::endpoint_finder(&plan)))
}

/// The renewal of tokens during a run.
#[derive(Debug)]
pub(crate) struct Renewal {
    tokens: Arc<Tokens>,
    /// Dropping this ends the thread.
    _stop: Sender<()>,
}

impl Renewal {
    /// Starts the thread; `None` if the plan has no tokens.
    ///
    /// # Errors
    /// Fails if no thread can be started, or no socket is left for it.
    pub(crate) fn start(session: &Session, plan: &Plan) -> Result<Option<Renewal>, Failure> {
        let Some(tokens) = session.tokens.clone() else { return Ok(None) };
        let (stop, stopped) = mpsc::channel::<()>();
        let (refuse, refused) = mpsc::channel::<Failure>();
        let (plan, renewed) = (plan.clone(), tokens.clone());
        let body = move || {
            let mut caller = match caller(plan) {
                Ok(caller) => caller,
                Err(why) => {
                    refuse.send(why).ok();
                    return;
                }
            };
            drop(refuse);
            loop {
                if request_due(&renewed, &mut caller).is_some() {
                    continue;
                }
                let nap = (renewed.next_due() - now()).min(CHECK).max(Nanos::from_millis(1));
                match stopped.recv_timeout(Duration::from_nanos(nap.0)) {
                    Err(RecvTimeoutError::Timeout) => {}
                    // a request in flight ends after the run, which does not wait for it
                    Ok(()) | Err(RecvTimeoutError::Disconnected) => return,
                }
            }
        };
        let thread = std::thread::Builder::new().name("tokens".into()).spawn(body);
        thread.map_err(|error| Failure::usage(format!("cannot start a thread: {error}")))?;
        if let Ok(why) = refused.recv() {
            return Err(why);
        }
        Ok(Some(Renewal { tokens, _stop: stop }))
    }

    /// Ends the run when no valid token is left.
    pub(crate) fn watcher(&self) -> Box<dyn Watcher> {
        Box::new(TokenWatcher(self.tokens.clone()))
    }

    /// Ends the renewal, and adds its figures to the run.
    pub(crate) fn finish(self, run: &mut RunReport) {
        if let Some(why) = self.tokens.lost(now()) {
            let after = run.measurement.elapsed;
            run.verdict.state = State::Invalid;
            run.verdict.causes.insert(
                0,
                Cause {
                    id: CauseId::Token,
                    figure: after.as_secs_f64(),
                    text: format!(
                        "ended after {} without a valid token: {why}",
                        units::show::duration(after)
                    ),
                    advice: "Later calls would have measured refusals, not the server: fix the \
                             token endpoint, then repeat the run."
                        .to_owned(),
                },
            );
        }
        run.tokens = Some(self.tokens.take_facts());
    }
}

struct TokenWatcher(Arc<Tokens>);

impl Watcher for TokenWatcher {
    fn second(&mut self, _: &Second, _: &Snapshot) {}

    fn calls(&mut self, _: &[CallRecord]) -> anyhow::Result<()> {
        Ok(())
    }

    fn order(&self) -> Order {
        if self.0.lost(now()).is_some() { Order::Stop } else { Order::Go }
    }

    fn end(&mut self) {}
}
