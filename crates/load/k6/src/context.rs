//! State that one user's native functions share with the host.

mod pending;

pub(crate) use pending::{PendingCall, install};

use crate::begun::{CallQueue, Passable};
use crate::call::{Headers, HttpReply, VuAnswer, VuCall, VuFailure, VuRequest};
use crate::metrics::{Store, row};
use crate::program::Program;
use crate::suspension::Suspension;
use corosensei::Yielder;
use std::cell::{Cell, Ref, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use units::{Nanos, Purpose, Seed, Stream};
use url::Url;
use workload::Jar;

/// Maximum memory of one user's runtime.
pub(crate) const MEMORY_BYTES_MAX: usize = 256 << 20;
/// Maximum time that a script may run without a request or a pause.
const SLICE_MAX: Duration = Duration::from_secs(10);
/// Minimum time limit for a script without a request or a pause, even past its deadline.
const SLICE_MIN: Duration = Duration::from_millis(500);

/// Maximum memory of the parts of streams that wait for a user's script, in bytes.
const PARTS_BYTES_MAX: usize = 16 << 20;
/// A pause is shortened to a day.
const SLEEP_MAX_S: f64 = 86_400.0;

/// Returns the memory of a part of a stream, in bytes. It includes the overhead, which dominates
/// for small parts.
fn part_size(body: &[u8]) -> usize {
    size_of::<HttpReply>() + body.len()
}

/// Scenario to which a user currently belongs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScenarioFacts {
    pub name: String,
    pub executor: &'static str,
    pub start: Nanos,
    /// Regular length, without the graceful stop.
    pub length: Nanos,
    pub env: BTreeMap<String, String>,
    pub tags: Vec<(String, String)>,
}

/// Numbers of the current iteration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IterationFacts {
    /// Number over all scenarios of the user, and in the current one.
    pub of_user: u64,
    pub in_scenario: u64,
    /// Number in the scenario, over all users.
    pub of_scenario: u64,
}

/// Results of checks, and values of metrics by their rows.
#[derive(Debug, Default)]
pub(crate) struct JourneyNotes {
    pub(crate) checks: Vec<(String, bool)>,
    pub(crate) values: Vec<(usize, f64)>,
}

/// WebSocket of the user, from its opening to its end.
#[derive(Debug, Default)]
pub(crate) struct SocketState {
    pub(crate) url: String,
    /// Instant at which its opening began.
    pub(crate) began: Option<Nanos>,
    /// Instant at which a ping without a pong was sent.
    pub(crate) pinged: Option<Nanos>,
}

/// State of one user outside its runtime.
#[derive(Debug)]
pub struct Context {
    pub(crate) program: Arc<Program>,
    store: Arc<Mutex<Store>>,
    /// Number of the user, from 1; 0 in the init context of the options.
    pub(crate) id: u64,
    suspension: Suspension,
    now: Cell<Nanos>,
    slice: Cell<Option<Instant>>,
    /// Deadline of the current task, on the clock of the run.
    deadline: Cell<Nanos>,
    /// Maximum time until the next request or pause.
    slice_limit: Cell<Duration>,
    stop: RefCell<Option<VuFailure>>,
    stopping: Cell<bool>,
    too_long: Cell<bool>,
    init: Cell<bool>,
    pub(crate) group: RefCell<String>,
    pub(crate) tags: RefCell<BTreeMap<String, String>>,
    pub(crate) scenario: RefCell<Option<Arc<ScenarioFacts>>>,
    pub(crate) iteration: Cell<IterationFacts>,
    /// Instant at which the scenarios began.
    pub(crate) base: Cell<Nanos>,
    pub(crate) jars: RefCell<Vec<Jar>>,
    random: RefCell<Stream>,
    seed: Seed,
    /// True if the script has set its own random seed.
    reseeded: Cell<bool>,
    /// Bytes sent and received in the iteration.
    bytes: Cell<(u64, u64)>,
    /// Counts of a journey since they were last read; `None` if k6's own metrics are collected.
    journey: RefCell<Option<JourneyNotes>>,
    /// Number of iterations that a journey has started.
    begun: Cell<u64>,
    /// The user's WebSockets by their numbers, and the last number.
    pub(crate) sockets: RefCell<BTreeMap<u32, SocketState>>,
    pub(crate) last_socket: Cell<u32>,
    /// True if the user may have several calls in flight.
    simultaneous: Cell<bool>,
    last_lane: Cell<u32>,
    calls_begun: RefCell<CallQueue>,
    /// Memory of the parts of streams that wait for the script, in bytes.
    parts_bytes: Cell<usize>,
    /// Calls of promises by their lanes.
    pending: RefCell<BTreeMap<u32, Box<dyn PendingCall>>>,
    /// Calls of promises that ended while the user waited for another one.
    early: RefCell<VecDeque<(u32, HttpReply)>>,
    /// The last request for which the script passed no fields: its method, URL and fields.
    plain: RefCell<Option<PlainRequest>>,
}

#[derive(Debug)]
struct PlainRequest {
    method: String,
    url: Arc<Url>,
    headers: Arc<Headers>,
}

impl Context {
    pub fn new(program: Arc<Program>, store: Arc<Mutex<Store>>, id: u64, seed: u64) -> Context {
        Context {
            program,
            store,
            id,
            suspension: Suspension::default(),
            now: Cell::new(Nanos::ZERO),
            slice: Cell::new(None),
            deadline: Cell::new(Nanos::NEVER),
            slice_limit: Cell::new(SLICE_MAX),
            stop: RefCell::new(None),
            stopping: Cell::new(false),
            too_long: Cell::new(false),
            init: Cell::new(true),
            group: RefCell::new(String::new()),
            tags: RefCell::new(BTreeMap::new()),
            scenario: RefCell::new(None),
            iteration: Cell::new(IterationFacts::default()),
            base: Cell::new(Nanos::ZERO),
            jars: RefCell::new(vec![Jar::new()]),
            random: RefCell::new(Seed(seed).stream(Purpose::Scripts, id)),
            seed: Seed(seed),
            reseeded: Cell::new(false),
            bytes: Cell::new((0, 0)),
            journey: RefCell::new(None),
            begun: Cell::new(0),
            sockets: RefCell::default(),
            last_socket: Cell::new(0),
            simultaneous: Cell::new(false),
            last_lane: Cell::new(0),
            calls_begun: RefCell::default(),
            parts_bytes: Cell::new(0),
            pending: RefCell::default(),
            early: RefCell::default(),
            plain: RefCell::default(),
        }
    }

    pub(crate) fn enter(&self, yielder: &Yielder<VuAnswer, VuRequest>) {
        self.suspension.set(yielder);
    }

    /// Releases the memory of the stack; see [`Suspension::release_stack`].
    pub(crate) fn release_stack(&self, bottom: usize) {
        self.suspension.release_stack(bottom);
    }

    /// Assigns the user to this scenario from now on.
    pub fn set_scenario(&self, facts: Arc<ScenarioFacts>, base: Nanos) {
        self.base.set(base);
        let mut tags = self.tags.borrow_mut();
        tags.clear();
        tags.extend(facts.tags.iter().cloned());
        *self.scenario.borrow_mut() = Some(facts);
    }

    /// Returns whether the scenario sets environment variables.
    pub(crate) fn has_scenario_env(&self) -> bool {
        self.scenario.borrow().as_ref().is_some_and(|it| !it.env.is_empty())
    }

    /// Removes the user from its scenario, as in setup.
    pub fn leave_scenario(&self) {
        self.tags.borrow_mut().clear();
        *self.scenario.borrow_mut() = None;
    }

    /// Sets the group of functions that are not iterations: `::setup`.
    pub fn set_group(&self, path: &str) {
        path.clone_into(&mut self.group.borrow_mut());
    }

    /// Begins an iteration. Drops the cookies of the previous one unless the options keep them.
    pub fn set_iteration(&self, facts: IterationFacts, keep_cookies: bool) {
        self.iteration.set(facts);
        self.group.borrow_mut().clear();
        let mut jars = self.jars.borrow_mut();
        if !keep_cookies && (jars.len() > 1 || jars[0].is_used()) {
            *jars = vec![Jar::new()];
        }
    }

    pub fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn now(&self) -> Nanos {
        self.now.get()
    }

    pub(crate) fn initializing(&self) -> bool {
        self.init.get()
    }

    pub(crate) fn end_init(&self) {
        self.init.set(false);
    }

    pub(crate) fn random(&self) -> std::cell::RefMut<'_, Stream> {
        self.random.borrow_mut()
    }

    pub(crate) fn reseed(&self, seed: u64) {
        self.reseeded.set(true);
        *self.random.borrow_mut() = Seed(seed).stream(Purpose::Scripts, 0);
    }

    /// Seeds the random numbers of an iteration by its number over all users: they are the same for
    /// any number of workers and any runtime.
    pub(crate) fn seed_iteration(&self, iteration: u64) {
        if !self.reseeded.get() {
            *self.random.borrow_mut() = self.seed.stream(Purpose::Scripts, iteration);
        }
    }

    /// Returns the fields of a request for which the script passes no fields, cookies or body. The
    /// last ones are kept, because scripts often repeat such a request.
    pub(crate) fn plain_headers(
        &self,
        method: &str,
        url: &Arc<Url>,
        make: impl FnOnce() -> Headers,
    ) -> Arc<Headers> {
        let mut plain = self.plain.borrow_mut();
        if let Some(known) = &*plain
            && known.method == method
            && Arc::ptr_eq(&known.url, url)
        {
            return known.headers.clone();
        }
        let headers = Arc::new(make());
        *plain = Some(PlainRequest {
            method: method.to_owned(),
            url: url.clone(),
            headers: headers.clone(),
        });
        headers
    }

    pub(crate) fn tags(&self) -> Ref<'_, BTreeMap<String, String>> {
        self.tags.borrow()
    }
}

/// Support for journeys of a plan.
impl Context {
    /// Enables keeping the results of checks and the values of metrics until they are read.
    pub(crate) fn keep_notes(&self) {
        *self.journey.borrow_mut() = Some(JourneyNotes::default());
    }

    /// Returns whether checks are kept rather than counted as k6's metric.
    pub(crate) fn note_check(&self, name: &str, met: bool) -> bool {
        let mut notes = self.journey.borrow_mut();
        let Some(notes) = notes.as_mut() else { return false };
        notes.checks.push((name.to_owned(), met));
        notes.values.push((row::CHECKS, f64::from(u8::from(met))));
        true
    }

    pub(crate) fn take_notes(&self) -> JourneyNotes {
        self.journey.borrow_mut().as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Returns whether a plan counts and judges the calls; then k6's metrics are not collected.
    fn is_in_journey(&self) -> bool {
        self.journey.borrow().is_some()
    }

    /// Returns the number of the user's next iteration, from 0.
    pub(crate) fn next_iteration(&self) -> u64 {
        self.begun.replace(self.begun.get() + 1)
    }
}

/// Suspension and interruption.
impl Context {
    pub(crate) fn begin_slice(&self, now: Nanos) {
        self.now.set(now);
        let left = Duration::from_nanos((self.deadline.get() - now).0).max(SLICE_MIN);
        self.slice_limit.set(left.min(SLICE_MAX));
        self.slice.set(Some(Instant::now()));
    }

    /// Sets the deadline of the current task. A script that is still computing then is interrupted.
    pub fn set_deadline(&self, at: Nanos) {
        self.deadline.set(at);
    }

    pub(crate) fn begin_task(&self) {
        self.stopping.set(false);
        self.too_long.set(false);
        *self.stop.borrow_mut() = None;
    }

    /// Interrupts the current task.
    pub(crate) fn interrupt(&self) {
        self.stopping.set(true);
        self.stop.borrow_mut().get_or_insert(VuFailure::Interrupted);
    }

    pub(crate) fn abort(&self, message: &str) {
        self.stopping.set(true);
        *self.stop.borrow_mut() = Some(VuFailure::Abort(message.to_owned()));
    }

    pub(crate) fn take_stop(&self) -> Option<VuFailure> {
        self.stop.borrow_mut().take()
    }

    /// Returns whether the script must stop; the engine calls this every few thousand steps.
    pub(crate) fn must_stop(&self, now: Instant) -> bool {
        if self.stopping.get() {
            return true;
        }
        let limit = self.slice_limit.get();
        let over = self.slice.get().is_some_and(|start| now - start > limit);
        match over && limit < SLICE_MAX {
            true => self.interrupt(),
            false => self.too_long.set(self.too_long.get() || over),
        }
        over
    }

    /// Returns the failure of a task that was stopped because it exceeded its time limit.
    pub(crate) fn overrun(&self) -> Option<VuFailure> {
        self.too_long.get().then(|| VuFailure::Exception(self.explain(String::new())))
    }

    /// Adds the reason to an exception that one of our limits caused.
    pub(crate) fn explain(&self, text: String) -> String {
        if self.too_long.get() {
            let place =
                text.lines().find(|line| line.trim_start().starts_with("at ")).unwrap_or("");
            let limit = SLICE_MAX.as_secs();
            let place = match place.trim() {
                "" => String::new(),
                place => format!(" {place}"),
            };
            return format!(
                "the script ran for {limit} s without a request or a pause and was stopped\
                 {place}; is there an endless loop?"
            );
        }
        if text.contains("out of memory") {
            let limit = MEMORY_BYTES_MAX >> 20;
            return format!("{text}\na user of the script may use {limit} MiB of memory");
        }
        text
    }

    /// Suspends the user until the answer to a request arrives. Returns `None` if the task was
    /// interrupted.
    pub(crate) fn suspend(&self, request: VuRequest) -> VuAnswer {
        self.suspension.suspend(request)
    }

    pub(crate) fn exchange(&self, request: VuRequest) -> Option<VuAnswer> {
        if self.stopping.get() {
            return None;
        }
        match self.suspend(request) {
            VuAnswer::Interrupt | VuAnswer::End | VuAnswer::Run(_) => {
                self.interrupt();
                None
            }
            answer => Some(answer),
        }
    }

    /// Pauses; returns false if the task was interrupted.
    pub(crate) fn sleep(&self, seconds: f64) -> bool {
        let span = Nanos::from_secs_f64(seconds.clamp(0.0, SLEEP_MAX_S));
        self.exchange(VuRequest::Sleep(span)).is_some()
    }
}

/// Simultaneous calls.
impl Context {
    /// Lets the user have several calls in flight.
    pub fn allow_simultaneous_calls(&self) {
        self.simultaneous.set(true);
    }

    pub(crate) fn has_simultaneous_calls(&self) -> bool {
        self.simultaneous.get()
    }

    /// Returns an unused number for another call.
    pub fn new_lane(&self) -> u32 {
        let lane = self.last_lane.get().wrapping_add(1).max(1);
        self.last_lane.set(lane);
        lane
    }

    /// Begins a call, which is passed on when the user next waits.
    pub(crate) fn begin(&self, call: VuCall) -> u32 {
        let lane = self.new_lane();
        self.push_call(lane, call);
        lane
    }

    /// Begins a call in this lane.
    pub fn push_call(&self, lane: u32, call: VuCall) {
        self.calls_begun.borrow_mut().push(lane, call);
    }

    /// Adds to the body of an open request, when the user next waits. Returns false if too many
    /// bytes wait.
    pub(crate) fn extend(&self, lane: u32, bytes: Vec<u8>, ends: bool) -> bool {
        self.calls_begun.borrow_mut().extend(lane, bytes, ends)
    }

    /// Returns the next call to pass to the engine.
    pub(crate) fn next_begun(&self, passable: Passable) -> Option<(u32, VuCall)> {
        self.calls_begun.borrow_mut().pop(passable)
    }

    /// Returns whether a request of `k6/http` waits to be passed on.
    pub(crate) fn begins_http(&self) -> bool {
        self.calls_begun.borrow().has_request()
    }

    /// Counts the memory of a part of a stream until the script consumes it. Returns false if too
    /// much waits.
    pub(crate) fn hold_part(&self, body: &[u8]) -> bool {
        let waiting = self.parts_bytes.get() + part_size(body);
        if waiting > PARTS_BYTES_MAX {
            return false;
        }
        self.parts_bytes.set(waiting);
        true
    }

    pub(crate) fn release_part(&self, body: &[u8]) {
        self.parts_bytes.set(self.parts_bytes.get().saturating_sub(part_size(body)));
    }

    /// Forgets the calls of a task that is over.
    pub fn forget_calls(&self) {
        *self.calls_begun.borrow_mut() = CallQueue::default();
        self.parts_bytes.set(0);
        self.pending.borrow_mut().clear();
        self.early.borrow_mut().clear();
        self.sockets.borrow_mut().clear();
    }

    /// Waits for the end of a call; `None` if none ends within the limit, `Err` if the task was
    /// interrupted.
    pub(crate) fn wait_for_any(
        &self,
        limit: Option<Nanos>,
    ) -> Result<Option<(u32, HttpReply)>, ()> {
        match self.exchange(VuRequest::Any(limit)) {
            Some(VuAnswer::Ended(lane, reply)) => Ok(Some((lane, *reply))),
            Some(_) => Ok(None),
            None => Err(()),
        }
    }

    /// Keeps the result of a promise's call until the user asks for it.
    pub(crate) fn keep_early_reply(&self, lane: u32, reply: HttpReply) {
        self.early.borrow_mut().push_back((lane, reply));
    }

    fn take_early(&self) -> Option<(u32, HttpReply)> {
        self.early.borrow_mut().pop_front()
    }
}

/// Metric values.
impl Context {
    pub(crate) fn wants_tags(&self) -> bool {
        self.program.metrics().wants_tags()
    }

    pub(crate) fn wants_system_tag(&self, name: &str) -> bool {
        let options = self.program.options();
        options.is_none_or(|it| it.system_tags.iter().any(|tag| tag == name))
    }

    /// Returns the tags of every value of the user, with `more`, sorted by name; later values take
    /// precedence.
    pub(crate) fn all_tags(
        &self,
        more: impl Iterator<Item = (String, String)>,
    ) -> Vec<(String, String)> {
        let mut all = BTreeMap::new();
        if let Some(options) = self.program.options() {
            all.extend(options.tags.iter().cloned());
        }
        if self.wants_system_tag("group") {
            all.insert("group".to_owned(), self.group.borrow().clone());
        }
        if self.wants_system_tag("scenario")
            && let Some(scenario) = self.scenario.borrow().as_ref()
        {
            all.insert("scenario".to_owned(), scenario.name.clone());
        }
        if self.program.options().is_some_and(|it| it.system_tags.iter().any(|tag| tag == "vu")) {
            all.insert("vu".to_owned(), self.id.to_string());
        }
        all.extend(self.tags().iter().map(|(name, value)| (name.clone(), value.clone())));
        all.extend(more);
        all.into_iter().collect()
    }

    /// Adds a value; `tags` has names and values in turn.
    pub(crate) fn record(&self, metric: usize, value: f64, tags: &[String]) {
        if let Some(notes) = self.journey.borrow_mut().as_mut() {
            notes.values.push((metric, value));
            return;
        }
        let all = if self.wants_tags() {
            let own = tags.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone()));
            self.all_tags(own)
        } else {
            Vec::new()
        };
        self.record_all(&[(metric, value)], &all);
    }

    pub(crate) fn record_all(&self, values: &[(usize, f64)], tags: &[(String, String)]) {
        if self.is_in_journey() {
            return;
        }
        let now = self.now();
        let mut store = self.store();
        for (metric, value) in values {
            store.add(self.program.metrics(), *metric, *value, now, tags);
        }
    }

    pub(crate) fn count_bytes(&self, sent: u64, received: u64) {
        let (before_sent, before_received) = self.bytes.get();
        self.bytes.set((before_sent + sent, before_received + received));
    }

    /// Adds the values of a finished iteration; `took`: without its pause to the minimum.
    pub fn end_iteration(&self, took: Nanos, completed: bool) {
        let (sent, received) = self.bytes.replace((0, 0));
        self.group.borrow_mut().clear();
        let tags = if self.wants_tags() { self.all_tags(std::iter::empty()) } else { Vec::new() };
        let mut values = vec![(row::DATA_SENT, sent as f64), (row::DATA_RECEIVED, received as f64)];
        if completed {
            values.push((row::ITERATION_DURATION, took.as_millis_f64()));
            values.push((row::ITERATIONS, 1.0));
        }
        self.record_all(&values, &tags);
    }

    /// Adds the bytes of setup or teardown.
    pub fn end_stage(&self) {
        let (sent, received) = self.bytes.replace((0, 0));
        let values = [(row::DATA_SENT, sent as f64), (row::DATA_RECEIVED, received as f64)];
        let tags = if self.wants_tags() { self.all_tags(std::iter::empty()) } else { Vec::new() };
        self.record_all(&values, &tags);
    }
}
