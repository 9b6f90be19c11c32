//! The users of one worker. Each is resumed with the answer that it waited for, and requests its
//! next call or pause.

use crate::begun::Passable;
use crate::call::{
    HttpReply, SocketRequest, Task, VuAnswer, VuCall, VuFailure, VuRequest, WireRequest,
};
use crate::context::{Context, IterationFacts};
use crate::metrics::Store;
use crate::options::SIMULTANEOUS_MAX;
use crate::scenario::{Membership, UserTurn};
use crate::test::{StopReason, Test, exit};
use crate::vu::Vu;
use protocol::http1::response::Asked;
use sample::{FailureClass, Note, Sample};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use units::Nanos;
use url::Url;
use workload::{
    AddressRules, CallEnd, GrpcTlsRules, Guide, GuideCall, Guides, SocketAction, SocketCall, Step,
    Stripped, Template, WholeResponse,
};

/// Interval at which users check whether setup or the last user is done.
const RECHECK_INTERVAL: Nanos = Nanos::from_millis(2);
/// Part of the interval for each user of the test, if that is longer.
const RECHECK_PER_USER: Nanos = Nanos::from_micros(1);
/// Maximum number of ended requests whose memory is kept.
const SPARES_MAX: usize = 64;
/// Maximum pause in a test that may be stopped from outside.
const PAUSE_MAX: Nanos = Nanos::from_millis(200);

/// Makes a guide for each worker.
#[derive(Debug)]
pub struct ScriptGuides(pub Arc<Test>);

impl Guides for ScriptGuides {
    fn guide(&self) -> Box<dyn Guide> {
        Box::new(ScriptGuide::new(self.0.clone()))
    }

    fn address_rules(&self) -> Option<Arc<dyn AddressRules>> {
        let rules = self.0.options().addresses.clone();
        Some(rules).filter(|it| it.has_rules()).map(|it| it as Arc<dyn AddressRules>)
    }
}

/// Current activity of a user.
#[derive(Clone, Debug, PartialEq, Eq)]
enum GuideState {
    /// The user has no runtime yet.
    Fresh,
    /// The first user waits until all users have run the init code.
    Starting,
    /// The user waits for the end of setup.
    Waiting,
    Idle,
    Iteration {
        until: Nanos,
        began: Nanos,
        moved: bool,
    },
    /// Setup or teardown, with its time limit.
    Stage {
        teardown: bool,
        until: Nanos,
    },
    Leaving,
    Left,
}

#[derive(Debug)]
struct Member {
    id: u64,
    vu: Option<Vu>,
    state: GuideState,
    /// Row in the list of the user's scenarios.
    place: usize,
    membership: Membership,
    iterations: u64,
    waits: Waits,
    /// End of the current pause.
    wake: Nanos,
    /// Instant at which the next request may begin, by the option `rps`.
    slot: Option<Nanos>,
    /// WebSockets by number.
    sockets: BTreeMap<u32, MemberSocket>,
    /// Replies to calls, by their lanes.
    ended: VecDeque<(u32, Box<HttpReply>)>,
    /// First lane of the current task.
    first_lane: u32,
    /// Number of calls in flight.
    in_flight: usize,
    /// Lanes of streams in flight, with true if bytes of them were dropped.
    streams: BTreeMap<u32, bool>,
    /// Lanes of streams that the previous task has left.
    canceled: BTreeSet<u32>,
    /// Number of times that it checked for the start of the test.
    rechecks: u32,
    /// Its connections end before its next iteration.
    must_disconnect: bool,
    /// A request that has ended, while the user is driven.
    spare: Option<Box<Template>>,
}

/// Event that continues a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waits {
    /// End of a pause.
    Pause,
    /// The end of the call in this lane.
    Lane(u32),
    /// The end of a call, or of a pause.
    Any,
}

/// WebSocket of a user.
#[derive(Debug)]
struct MemberSocket {
    url: Arc<Url>,
    /// Messages that its server sent before it ended.
    left: VecDeque<Vec<u8>>,
}

/// Guide of one worker.
#[derive(Debug)]
pub struct ScriptGuide {
    test: Arc<Test>,
    store: Arc<Mutex<Store>>,
    members: BTreeMap<u64, Member>,
    /// Requests that have ended; their memory is used again.
    #[expect(clippy::vec_box, reason = "the boxes pass to the engine and back")]
    spares: Vec<Box<Template>>,
}

impl ScriptGuide {
    pub fn new(test: Arc<Test>) -> ScriptGuide {
        let store = test.new_store();
        ScriptGuide { store, test, members: BTreeMap::new(), spares: Vec::new() }
    }

    fn step(&mut self, user: u64, now: Nanos) -> Step {
        self.test.note_end(now);
        let member = self.members.entry(user).or_insert_with(|| Member {
            id: user,
            vu: None,
            state: GuideState::Fresh,
            place: 0,
            membership: Membership::default(),
            iterations: 0,
            waits: Waits::Pause,
            wake: Nanos::ZERO,
            slot: None,
            sockets: BTreeMap::new(),
            ended: VecDeque::new(),
            first_lane: 0,
            in_flight: 0,
            streams: BTreeMap::new(),
            canceled: BTreeSet::new(),
            rechecks: 0,
            must_disconnect: false,
            spare: None,
        });
        member.spare = self.spares.pop();
        let step = loop {
            if let Some(lane) = member.canceled.pop_first() {
                break Step::Cancel { lane };
            }
            if let Drive::Step(step) = member.drive(&self.test, &self.store, now) {
                break step;
            }
        };
        self.spares.extend(member.spare.take());
        step
    }
}

/// Result of advancing a user.
enum Drive {
    Step(Step),
    Again,
}

fn pause(wait: Nanos) -> Drive {
    Drive::Step(Step::Pause { wait: wait.max(Nanos(1)) })
}

impl Member {
    fn drive(&mut self, test: &Arc<Test>, store: &Arc<Mutex<Store>>, now: Nanos) -> Drive {
        match self.state.clone() {
            GuideState::Fresh => {
                self.create(test, store);
                Drive::Again
            }
            GuideState::Starting | GuideState::Waiting if test.is_stopped() => self.leave(),
            GuideState::Starting if test.has_created_all() => {
                self.begin_test(test, now);
                Drive::Again
            }
            GuideState::Starting => self.recheck(test),
            GuideState::Waiting => match test.base() {
                None => self.recheck(test),
                Some(_) => {
                    self.state = GuideState::Idle;
                    // the first call is due now, not when the user last checked
                    if self.id == 0 { Drive::Again } else { pause(Nanos(1)) }
                }
            },
            GuideState::Idle => self.idle(test, now),
            GuideState::Iteration { until, .. } => {
                self.resume_user(test, now, (until, now >= until || test.is_stopped()))
            }
            GuideState::Stage { until, .. } => self.resume_user(test, now, (until, now >= until)),
            GuideState::Leaving => self.finish(test, now),
            GuideState::Left => Drive::Step(Step::Leave),
        }
    }

    fn leave(&mut self) -> Drive {
        self.state = GuideState::Leaving;
        Drive::Again
    }

    /// Runs the init code.
    fn create(&mut self, test: &Arc<Test>, store: &Arc<Mutex<Store>>) {
        let context = Context::new(test.program.clone(), store.clone(), self.id + 1, test.seed);
        match Vu::new(&test.program, context) {
            Ok((vu, _, _)) => {
                vu.context().allow_simultaneous_calls();
                self.vu = Some(vu);
            }
            Err(failure) => {
                test.stop(StopReason::Init(text_of(failure)));
                self.state = GuideState::Leaving;
                return;
            }
        }
        test.created.fetch_add(1, Ordering::AcqRel);
        self.state = if self.id == 0 { GuideState::Starting } else { GuideState::Waiting };
    }

    /// Pauses until the start of the test is looked for again: at first by a moment, then by an
    /// interval that keeps the load of many users low.
    fn recheck(&mut self, test: &Test) -> Drive {
        self.rechecks += 1;
        pause(match self.rechecks {
            1 => Nanos(if self.id == 0 { 1 } else { 2 }),
            _ => RECHECK_INTERVAL.max(RECHECK_PER_USER * test.users()),
        })
    }

    /// Begins setup, or the scenarios.
    fn begin_test(&mut self, test: &Test, now: Nanos) {
        test.note_origin(now);
        self.state = GuideState::Waiting;
        if test.has_setup() {
            self.begin_stage(test, false, now);
        } else {
            test.begin_scenarios(now);
        }
    }

    fn begin_stage(&mut self, test: &Test, teardown: bool, now: Nanos) {
        let options = test.options();
        let limit = if teardown { options.teardown_timeout } else { options.setup_timeout };
        self.state = GuideState::Stage { teardown, until: now + limit };
        if let Some(vu) = &self.vu {
            vu.context().leave_scenario();
            vu.context().set_group(if teardown { "::teardown" } else { "::setup" });
        }
        self.pause_until(now);
    }

    /// Looks for the next iteration.
    fn idle(&mut self, test: &Test, now: Nanos) -> Drive {
        let Some(base) = test.base() else { return pause(RECHECK_INTERVAL) };
        if std::mem::take(&mut self.must_disconnect) {
            return Drive::Step(Step::Disconnect);
        }
        let list = &test.roster.users[self.id as usize % test.roster.users.len()];
        let Some((scenario, row)) = list.get(self.place).copied() else { return self.leave() };
        if test.is_stopped() {
            return self.leave();
        }
        self.membership.row = row;
        let progress = &test.progress[scenario];
        match progress.turn(&mut self.membership, now - base) {
            UserTurn::Over => {
                self.place += 1;
                self.membership = Membership::default();
                Drive::Again
            }
            UserTurn::Wait(at) => pause(((base + at) - now).min(self.longest_pause(test))),
            UserTurn::Begin { until, .. } => {
                let facts = IterationFacts {
                    of_user: self.iterations,
                    in_scenario: self.membership.iterations,
                    of_scenario: progress.number_iteration(),
                };
                self.iterations += 1;
                self.membership.iterations += 1;
                if let Some(vu) = &self.vu {
                    let context = vu.context();
                    if facts.in_scenario == 0 {
                        context.set_scenario(test.facts[scenario].clone(), base);
                    }
                    context.set_iteration(facts, test.options().no_cookies_reset);
                }
                test.program.counts.active.fetch_add(1, Ordering::Relaxed);
                self.state =
                    GuideState::Iteration { until: base + until, began: now, moved: false };
                self.start(test, &progress.scenario.exec, facts.of_user, now)
            }
        }
    }

    /// Returns the maximum length of a pause, which is short in tests that may stop at any time.
    fn longest_pause(&self, test: &Test) -> Nanos {
        if test.stops_early() { PAUSE_MAX } else { Nanos::from_secs(3_600) }
    }

    fn start(&mut self, test: &Test, function: &str, iteration: u64, now: Nanos) -> Drive {
        let task = Task {
            function: function.to_owned(),
            argument: test.setup_data(),
            iteration,
            wants_result: false,
        };
        self.resume(test, VuAnswer::Run(task), now)
    }

    fn pause_until(&mut self, wake: Nanos) {
        (self.waits, self.wake) = (Waits::Pause, wake);
    }

    /// Resumes a user with the answer that it waited for.
    fn resume_user(&mut self, test: &Test, now: Nanos, (until, over): (Nanos, bool)) -> Drive {
        if let GuideState::Stage { teardown, .. } = self.state
            && !self.is_running()
        {
            let (function, argument) = match teardown {
                true => ("teardown", test.setup_data()),
                false => ("setup", None),
            };
            let wants_result = !teardown;
            let function = function.to_owned();
            let task = Task { function, argument, iteration: 0, wants_result };
            return self.resume(test, VuAnswer::Run(task), now);
        }
        if over {
            return self.resume(test, VuAnswer::Interrupt, now);
        }
        let held = self.held_until(test, now);
        if let Some(drive) = self.begin_next(test, held.is_some(), (until, now)) {
            return drive;
        }
        // a held request does not delay replies and timers
        let mut wake = held.unwrap_or(Nanos::NEVER);
        match self.waits {
            Waits::Lane(lane) => {
                let place = self.ended.iter().position(|(known, _)| *known == lane);
                if let Some((_, reply)) = place.and_then(|place| self.ended.remove(place)) {
                    return self.resume(test, VuAnswer::Http(reply), now);
                }
                if held.is_none() {
                    return Drive::Step(Step::Await);
                }
            }
            Waits::Any => {
                if let Some((lane, reply)) = self.ended.pop_front() {
                    return self.resume(test, VuAnswer::Ended(lane, reply), now);
                }
                wake = wake.min(self.wake);
            }
            Waits::Pause => wake = wake.min(self.wake),
        }
        match wake > now {
            true => pause((wake.min(until) - now).min(self.longest_pause(test))),
            false => self.resume(test, VuAnswer::Go, now),
        }
    }

    /// Returns the instant before which the next request must not begin, by the option `rps`.
    fn held_until(&mut self, test: &Test, now: Nanos) -> Option<Nanos> {
        let begins = |vu: &Vu| self.in_flight < SIMULTANEOUS_MAX && vu.context().begins_http();
        if test.options().rps.is_none() || !self.vu.as_ref().is_some_and(begins) {
            return None;
        }
        let slot = *self.slot.get_or_insert_with(|| test.next_slot(now));
        Some(slot).filter(|slot| *slot > now)
    }

    /// Begins the next call of the script that may begin; `held`: requests of `k6/http` may not.
    fn begin_next(
        &mut self,
        test: &Test,
        held: bool,
        (until, now): (Nanos, Nanos),
    ) -> Option<Drive> {
        let calls = self.in_flight < SIMULTANEOUS_MAX;
        let passable = Passable { calls, requests: calls && !held };
        let (lane, call) = self.vu.as_ref()?.context().next_begun(passable)?;
        if call.is_request() {
            self.slot = None;
        }
        Some(self.begin_call(test, lane, call, (until, now)))
    }

    fn is_running(&self) -> bool {
        self.vu.as_ref().is_some_and(Vu::is_running)
    }

    fn resume(&mut self, test: &Test, answer: VuAnswer, now: Nanos) -> Drive {
        if matches!(answer, VuAnswer::Run(_)) {
            self.forget_calls();
        }
        self.pause_until(now);
        let Some(vu) = &mut self.vu else { return self.leave() };
        if let GuideState::Iteration { until, .. } | GuideState::Stage { until, .. } = self.state {
            vu.context().set_deadline(until);
        }
        let request = vu.resume(answer, now);
        self.wait_for(test, request, now)
    }

    /// Turns the event that a user waits for into the next step.
    fn wait_for(&mut self, test: &Test, request: VuRequest, now: Nanos) -> Drive {
        if let GuideState::Iteration { moved, .. } = &mut self.state {
            *moved = !matches!(request, VuRequest::Finished(_)) || *moved;
        }
        match request {
            VuRequest::Sleep(span) => {
                self.pause_until(now + span);
                Drive::Again
            }
            VuRequest::Any(limit) => {
                self.waits = Waits::Any;
                self.wake = limit.map_or(Nanos::NEVER, |limit| now + limit);
                Drive::Again
            }
            VuRequest::Http(wire) => self.wait_for_call(VuCall::Http(wire)),
            VuRequest::Socket(socket, request) => {
                self.wait_for_call(VuCall::Socket(socket, request))
            }
            VuRequest::Finished(outcome) => self.finished(test, outcome, now),
            VuRequest::Ready { .. } => self.leave(),
        }
    }

    /// Makes the user wait for the end of this call.
    fn wait_for_call(&mut self, call: VuCall) -> Drive {
        let Some(vu) = &self.vu else { return self.leave() };
        self.waits = Waits::Lane(vu.context().begin(call));
        Drive::Again
    }

    /// Discards the calls of the previous task.
    fn forget_calls(&mut self) {
        self.ended.clear();
        self.cancel_streams();
        self.slot = None;
        self.sockets.clear();
        if let Some(vu) = &self.vu {
            vu.context().forget_calls();
            self.first_lane = vu.context().new_lane();
        }
    }

    fn cancel_streams(&mut self) {
        self.canceled.extend(std::mem::take(&mut self.streams).into_keys());
    }

    fn begin_call(
        &mut self,
        test: &Test,
        lane: u32,
        call: VuCall,
        (until, now): (Nanos, Nanos),
    ) -> Drive {
        match call {
            VuCall::Http(wire) => {
                let timeout = wire.timeout;
                match template(&wire, self.spare.take()) {
                    Ok(mut made) => {
                        if wire.keeps_open {
                            self.streams.insert(lane, false);
                        }
                        (made.lane, made.timeout) = (lane, timeout);
                        self.call_step(made)
                    }
                    Err(why) => self.refuse_call(test, lane, why),
                }
            }
            VuCall::Extend { bytes, ends } => Drive::Step(Step::Extend { lane, bytes, ends }),
            VuCall::Cancel => Drive::Step(Step::Cancel { lane }),
            VuCall::Socket(socket, request) => {
                let limit = self.longest_pause(test).min(until - now);
                self.use_socket(test, (socket, lane), *request, limit)
            }
        }
    }

    fn call_step(&mut self, template: Box<Template>) -> Drive {
        self.in_flight += 1;
        Drive::Step(Step::Call(GuideCall { wait: Nanos::ZERO, row: 0, template }))
    }

    /// Returns an action on a WebSocket of the user as a call; `longest`: maximum time that it
    /// listens.
    fn use_socket(
        &mut self,
        test: &Test,
        (socket, lane): (u32, u32),
        request: SocketRequest,
        longest: Nanos,
    ) -> Drive {
        let mut timeout = None;
        let (action, payload) = match request {
            SocketRequest::Open(wire) => {
                let mut made = match template(&wire, None) {
                    Ok(made) => made,
                    Err(why) => return self.refuse_call(test, lane, why),
                };
                let url = made.url.shared().clone();
                self.forget_closed_sockets();
                self.sockets.insert(socket, MemberSocket { url, left: VecDeque::new() });
                let action = SocketAction::Connect;
                let call = Arc::new(SocketCall { action, timeout, listens: true, socket });
                (made.socket, made.lane) = (Some(call), lane);
                return self.call_step(made);
            }
            SocketRequest::Send { text, payload } => {
                (SocketAction::Send { text, answer: None }, payload)
            }
            SocketRequest::Ping => (SocketAction::Ping, Vec::new()),
            SocketRequest::Listen(limit) => {
                let left = self.sockets.get_mut(&socket).map(|it| &mut it.left);
                if let Some(body) = left.and_then(VecDeque::pop_front) {
                    let reply = HttpReply { body, ..HttpReply::default() };
                    return self.end_at_once(lane, reply);
                }
                timeout = Some(limit.unwrap_or(longest).min(longest).max(Nanos(1)));
                (SocketAction::Listen, Vec::new())
            }
            SocketRequest::Close(code) => (SocketAction::Close { code }, Vec::new()),
        };
        let Some(url) = self.sockets.get(&socket).map(|it| it.url.clone()) else {
            return self.leave();
        };
        let call = Arc::new(SocketCall { action, timeout, listens: true, socket });
        let made = Template { lane, ..Template::on_socket(url, payload, call) };
        self.call_step(Box::new(made))
    }

    /// Forgets the WebSockets that the script no longer uses: an iteration may open any number of
    /// them in turn.
    fn forget_closed_sockets(&mut self) {
        let Some(vu) = &self.vu else { return };
        let open = vu.context().sockets.borrow();
        self.sockets.retain(|number, _| open.contains_key(number));
    }

    /// Ends a call whose request cannot be sent.
    fn refuse_call(&mut self, test: &Test, lane: u32, why: String) -> Drive {
        test.program.log("error", "", format!("a request cannot be sent: {why}"));
        let sample = Sample { class: Some(FailureClass::Protocol), ..Sample::default() };
        self.end_at_once(lane, HttpReply { sample, ..HttpReply::default() })
    }

    /// Ends a call that is not sent.
    fn end_at_once(&mut self, lane: u32, reply: HttpReply) -> Drive {
        self.ended.push_back((lane, Box::new(reply)));
        Drive::Again
    }

    fn finished(
        &mut self,
        test: &Test,
        outcome: Result<Option<String>, VuFailure>,
        now: Nanos,
    ) -> Drive {
        // an iteration that was interrupted or failed may have left streams
        self.cancel_streams();
        match self.state {
            GuideState::Stage { teardown: false, .. } => self.setup_done(test, outcome, now),
            GuideState::Stage { teardown: true, .. } => {
                self.teardown_done(test, outcome);
                self.leave()
            }
            GuideState::Iteration { began, moved, .. } => {
                self.iteration_done(test, outcome, began, now);
                let rest = (began + test.options().min_iteration).max(now);
                self.state = GuideState::Idle;
                self.must_disconnect = test.options().disconnects;
                if rest > now {
                    return pause(rest - now);
                }
                // an iteration without waits must not keep the worker from its other users
                if moved { Drive::Again } else { pause(Nanos(1)) }
            }
            _ => self.leave(),
        }
    }

    fn iteration_done(
        &mut self,
        test: &Test,
        outcome: Result<Option<String>, VuFailure>,
        began: Nanos,
        now: Nanos,
    ) {
        let counts = &test.program.counts;
        counts.active.fetch_sub(1, Ordering::Relaxed);
        // the iteration that ends the test counts, as in k6
        let completed = !matches!(outcome, Err(VuFailure::Interrupted));
        let count = if completed { &counts.completed } else { &counts.interrupted };
        count.fetch_add(1, Ordering::Relaxed);
        if let Some(vu) = &self.vu {
            vu.context().end_iteration(now - began, completed);
        }
        match outcome {
            Err(VuFailure::Exception(text)) => test.program.log("error", "stacktrace", text),
            Err(VuFailure::Abort(message)) => test.stop(StopReason::Aborted(message)),
            _ => {}
        }
    }

    fn setup_done(
        &mut self,
        test: &Test,
        outcome: Result<Option<String>, VuFailure>,
        now: Nanos,
    ) -> Drive {
        if let Some(vu) = &self.vu {
            vu.context().end_stage();
        }
        match outcome {
            Ok(json) => {
                test.set_setup(json.as_deref());
                test.begin_scenarios(now);
                self.state = GuideState::Idle;
                return Drive::Again;
            }
            Err(VuFailure::Abort(message)) => test.stop(StopReason::Aborted(message)),
            Err(VuFailure::Interrupted) => test.stop(StopReason::SetupTimeout),
            Err(failure) => test.stop(StopReason::Setup(text_of(failure))),
        }
        self.vu = None;
        self.leave()
    }

    fn teardown_done(&mut self, test: &Test, outcome: Result<Option<String>, VuFailure>) {
        if let Some(vu) = &self.vu {
            vu.context().end_stage();
        }
        let failed = match outcome {
            Ok(_) => None,
            Err(VuFailure::Interrupted) => {
                let limit = test.options().teardown_timeout.as_secs_f64();
                let text = format!("teardown() execution timed out after {limit:.0} seconds");
                test.program.log("error", "", text);
                Some(exit::TEARDOWN_TIMEOUT)
            }
            Err(failure) => {
                test.program.log("error", "stacktrace", text_of(failure));
                Some(exit::EXCEPTION)
            }
        };
        *test.teardown_failed.lock().unwrap_or_else(PoisonError::into_inner) = failed;
        self.vu = None;
    }

    /// Ends a user; the first user runs teardown when all others have left.
    fn finish(&mut self, test: &Test, now: Nanos) -> Drive {
        let wanted =
            self.id == 0 && self.vu.is_some() && test.has_teardown() && test.base().is_some();
        if !wanted {
            self.vu = None;
            self.state = GuideState::Left;
            test.present.fetch_sub(1, Ordering::AcqRel);
            return Drive::Step(Step::Leave);
        }
        if test.present.load(Ordering::Acquire) > 1 {
            return pause(RECHECK_INTERVAL);
        }
        self.begin_stage(test, true, now);
        Drive::Again
    }
}

fn text_of(failure: VuFailure) -> String {
    match failure {
        VuFailure::Exception(text) | VuFailure::Abort(text) => text,
        VuFailure::Interrupted => "interrupted".to_owned(),
    }
}

impl Guide for ScriptGuide {
    fn keeps_bodies(&self) -> bool {
        true
    }

    fn sees_every_response(&self) -> bool {
        true
    }

    fn ends_with_its_users(&self) -> bool {
        true
    }

    /// Lets the script decide which statuses count as failed.
    fn judge(
        &mut self,
        _: u64,
        _: &WholeResponse<'_>,
        planned: Option<FailureClass>,
    ) -> Option<FailureClass> {
        planned
    }

    fn next(&mut self, user: u64, now: Nanos) -> Step {
        self.step(user, now)
    }

    fn makes_simultaneous_calls(&self) -> bool {
        true
    }

    fn socket_ended(&mut self, user: u64, socket: u32, left: Vec<Vec<u8>>) {
        let member = self.members.get_mut(&user);
        if let Some(socket) = member.and_then(|member| member.sockets.get_mut(&socket)) {
            socket.left = left.into();
        }
    }

    fn grpc_tls(&self) -> Option<Arc<dyn GrpcTlsRules>> {
        Some(self.test.program.grpc_tls.clone())
    }

    fn take_back(&mut self, template: Box<Template>) {
        if self.spares.len() < SPARES_MAX {
            self.spares.push(template);
        }
    }

    fn part(&mut self, user: u64, lane: u32, body: &[u8]) {
        let Some(member) = self.members.get_mut(&user) else { return };
        let (Some(is_cut), Some(vu)) = (member.streams.get_mut(&lane), &member.vu) else { return };
        if *is_cut {
            return;
        }
        if !vu.context().hold_part(body) {
            // the end of the call reports it
            *is_cut = true;
            member.canceled.insert(lane);
            return;
        }
        let reply = HttpReply { body: body.to_vec(), is_part: true, ..HttpReply::default() };
        member.ended.push_back((lane, Box::new(reply)));
    }

    fn note_call_end(&mut self, user: u64, came: &CallEnd<'_>) -> Option<Note> {
        let member = self.members.get_mut(&user)?;
        member.in_flight = member.in_flight.saturating_sub(1);
        member.canceled.remove(&came.lane);
        let is_cut = member.streams.remove(&came.lane).unwrap_or(false);
        if came.lane >= member.first_lane {
            let reply = HttpReply {
                sample: came.sample.clone(),
                head: came.head.to_vec(),
                body: came.body.to_vec(),
                is_part: false,
                is_cut,
            };
            member.ended.push_back((came.lane, Box::new(reply)));
        }
        None
    }
}

/// Returns the request in the form that the engine sends; `spare`: a request that has ended, whose
/// memory is used again.
///
/// # Errors
/// Fails if its fields are not valid in HTTP/2.
fn template(wire: &WireRequest, spare: Option<Box<Template>>) -> Result<Box<Template>, String> {
    let url = wire.url.clone().into();
    let mut made = match spare {
        Some(mut made) => {
            made.url = url;
            made.bytes.clear();
            made.last.clear();
            (made.endpoint, made.http2, made.http3, made.socket) = (0, None, None, None);
            made.stripped = Stripped::default();
            made
        }
        None => Box::new(Template::new(url, wire.method.as_ref())),
    };
    if *made.method != *wire.method {
        made.method = wire.method.as_ref().into();
    }
    made.asked = if wire.method == "HEAD" { Asked::Head } else { Asked::Ordinary };
    wire.render(&mut made.bytes);
    made.last.extend_from_slice(&made.bytes);
    (made.cookie_at, made.cookie_at_last) = (made.bytes.len(), made.bytes.len());
    if let "grpc" | "grpcs" = wire.url.scheme() {
        let scheme = if wire.url.scheme() == "grpc" { "http" } else { "https" };
        made.add_http2(scheme)?;
        if wire.keeps_open
            && let Some(http2) = &mut made.http2
        {
            http2.keep_open();
        }
    }
    Ok(made)
}
