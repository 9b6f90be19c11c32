//! The guide of one worker's users.

use super::Travel;
use super::carried::CarriedView;
use super::request;
use super::scripted::Performance;
use super::sockets;
use super::stencil::FillRoom;
use super::traveller::{Move, Traveller};
use crate::check::capture::capture;
use crate::check::judge::{ResponseParts, response};
use plan::check::Difference;
use plan::journey::{FeederOrder, UsedUp};
use protocol::http1::coding::Decoder;
use protocol::http1::fields;
use sample::{FailureClass, Note, Noticed, Outcome, Remark};
use std::borrow::Cow;
use std::sync::Arc;
use units::{Nanos, NumberMap, Stream};
use workload::schedule::Share;
use workload::{Actor, CallEnd, Guide, GuideCall, Step, Template, WholeResponse};

/// Number of iterations without a call after which a user leaves: no step of its journeys can run.
const EMPTY_MAX: u32 = 1_000;

/// Maximum number, and maximum length, of ended calls' requests kept for reuse.
const SPARES_MAX: usize = 1_024;
const SPARE_BYTES_MAX: usize = 64 << 10;

#[derive(Debug)]
pub(super) struct JourneyGuide {
    travellers: NumberMap<Box<Traveller>>,
    leader: Leader,
}

/// State of the guide, without the users.
#[derive(Debug)]
struct Leader {
    travel: Arc<Travel>,
    remarks: Vec<Remark>,
    /// Requests of ended calls, whose memory is reused.
    #[expect(
        clippy::vec_box,
        reason = "a call has its request in a box, which is returned unchanged"
    )]
    spares: Vec<Box<Template>>,
    room: FillRoom,
    share: Share,
    /// Iterations started by this worker, and their maximum number.
    begun: u64,
    most: u64,
    /// Iterations before this one have been counted in `turns`.
    counted: u64,
    /// Number of counted iterations that take a row, by place of the feeder.
    turns: Vec<u64>,
    /// Programs by row of the journey that they run.
    actors: Vec<Option<Box<dyn Actor>>>,
}

impl JourneyGuide {
    pub(super) fn new(
        travel: Arc<Travel>,
        share: Share,
        actors: Vec<Option<Box<dyn Actor>>>,
    ) -> JourneyGuide {
        let leader = Leader {
            remarks: Vec::new(),
            spares: Vec::new(),
            room: FillRoom::default(),
            begun: 0,
            most: travel.share(&share),
            share,
            counted: 0,
            turns: vec![0; travel.feeders.len()],
            actors,
            travel,
        };
        JourneyGuide { travellers: NumberMap::default(), leader }
    }
}

impl Leader {
    /// Returns the index of the next iteration; `None` when this worker's part is done.
    fn next_iteration(&mut self, user: u64) -> Option<u64> {
        if self.travel.single {
            return Some(user);
        }
        if self.begun >= self.most {
            return None;
        }
        let index = self.share.nth(self.begun);
        self.begun += 1;
        Some(index)
    }

    /// Returns the journey of an iteration. Counts, for each feeder, the iterations up to it that
    /// take a row: every worker draws for every index, so the rows do not depend on the number of
    /// workers.
    fn journey_of(&mut self, iteration: u64) -> (usize, Stream) {
        let (journey, stream) = self.travel.draw(iteration);
        if self.travel.counts_turns() {
            while self.counted < iteration {
                let (before, _) = self.travel.draw(self.counted);
                for feeder in &self.travel.journeys[before].feeders {
                    self.turns[*feeder] += 1;
                }
                self.counted += 1;
            }
        }
        (journey, stream)
    }

    /// Starts an iteration for the user. Returns false if no iteration, or no row of a feeder, is left.
    fn begin(&mut self, traveller: &mut Traveller, now: Nanos) -> bool {
        let Some(iteration) = self.next_iteration(traveller.user) else { return false };
        let (journey, stream) = self.journey_of(iteration);
        traveller.begin(iteration, journey, stream);
        let travel = &self.travel;
        for at in &travel.journeys[journey].feeders {
            let feeder = &travel.feeders[*at];
            let row = feeder.row(travel.seed, *at, traveller.user, self.turns[*at]);
            let Some(row) = row else {
                debug_assert!(
                    feeder.used_up != Some(UsedUp::Wrap) && feeder.order != FeederOrder::Random
                );
                self.remarks.push(Remark { at: now, fact: Noticed::RanDry { feeder: *at as u32 } });
                return false;
            };
            let taken = &mut traveller.taken[*at];
            (taken.is_taken, taken.row) = (true, row);
            feeder.generate(travel.seed, *at, row, &mut taken.generated);
        }
        true
    }

    /// Returns the user's next call; skips iterations without calls. `fresh`: the user is at the
    /// end of an iteration.
    fn next_journey_call(
        &mut self,
        traveller: &mut Traveller,
        mut fresh: bool,
        now: Nanos,
    ) -> Step {
        for _ in 0..EMPTY_MAX {
            if fresh && !self.begin(traveller, now) {
                return Step::Leave;
            }
            if let Some(mut stage) = self.stage(traveller, now) {
                if fresh {
                    stage.begin();
                }
                match stage.next_journey_call() {
                    Some(step) => return step,
                    None if self.travel.single => return Step::Leave,
                    None => {}
                }
                fresh = true;
                continue;
            }
            fresh = true;
            while let Move::Call(row) = traveller.advance(&self.travel, now, &mut self.remarks) {
                match self.call(traveller, row) {
                    Ok(step) => return step,
                    Err(why) => {
                        let why = self.travel.masked(traveller, &why);
                        self.remarks
                            .push(Remark { at: now, fact: Noticed::Skipped { step: row, why } });
                        traveller.skip();
                    }
                }
            }
            if self.travel.single {
                return Step::Leave;
            }
        }
        Step::Leave
    }

    /// Returns the part of the program, if a program runs the user's journey.
    fn stage<'a>(
        &'a mut self,
        traveller: &'a mut Traveller,
        now: Nanos,
    ) -> Option<Performance<'a>> {
        let actor = self.actors.get_mut(traveller.journey)?.as_deref_mut()?;
        Some(Performance {
            travel: &self.travel,
            actor,
            traveller,
            remarks: &mut self.remarks,
            now,
        })
    }

    fn call(&mut self, traveller: &mut Traveller, row: u32) -> Result<Step, String> {
        let card = &self.travel.steps[row as usize];
        if card.is_static {
            let wait = std::mem::take(&mut traveller.pause);
            return Ok(Step::Target { wait, row });
        }
        let plan = &self.travel.plan;
        let view = CarriedView { travel: &self.travel, traveller };
        if let Some(socket) = &card.step.socket {
            let open = traveller.socket.as_ref();
            let template = sockets::call(&self.travel, &card.step, socket, &view, open)?;
            traveller.socket = Some(template.url.shared().clone());
            let wait = std::mem::take(&mut traveller.pause);
            return Ok(Step::Call(GuideCall { wait, row, template }));
        }
        let (room, spares) = (&mut self.room, &mut self.spares);
        let template = match card.stencil.as_ref().map(|stencil| stencil.fill(&view, room, spares))
        {
            Some(Some(template)) => template,
            Some(None) | None => {
                let absolute = plan.connection.proxy.is_some();
                Box::new(match &card.codec {
                    Some(codec) => request::make_grpc(plan, &card.step, &view, &**codec)?,
                    None => request::make(plan, &card.step, &view, 0, absolute)?,
                })
            }
        };
        let wait = std::mem::take(&mut traveller.pause);
        Ok(Step::Call(GuideCall { wait, row, template }))
    }
}

impl Guide for JourneyGuide {
    fn keeps_bodies(&self) -> bool {
        self.leader.travel.keeps_bodies
    }

    fn sees_every_response(&self) -> bool {
        true
    }

    fn ends_with_its_users(&self) -> bool {
        true
    }

    fn secrets(&self, user: u64, add: &mut dyn FnMut(&str)) {
        if let Some(traveller) = self.travellers.get(&user) {
            self.leader.travel.captured.iter().for_each(|value| add(value));
            CarriedView { travel: &self.leader.travel, traveller }.secrets(add);
        }
    }

    fn report(&mut self, process: &mut dyn FnMut(Remark)) {
        if !self.leader.remarks.is_empty() {
            self.leader.remarks.drain(..).for_each(process);
        }
    }

    fn next(&mut self, user: u64, now: Nanos) -> Step {
        let JourneyGuide { travellers, leader } = self;
        let step = match travellers.get_mut(&user) {
            Some(traveller) => leader.next_journey_call(traveller, false, now),
            None => {
                let mut traveller = Box::new(Traveller::new(&leader.travel, user));
                let step = leader.next_journey_call(&mut traveller, true, now);
                travellers.insert(user, traveller);
                step
            }
        };
        if matches!(step, Step::Leave) {
            travellers.remove(&user);
            leader.actors.iter_mut().flatten().for_each(|actor| actor.forget(user));
        }
        step
    }

    fn take_back(&mut self, template: Box<Template>) {
        let spares = &mut self.leader.spares;
        let reusable = template.socket.is_none();
        if reusable && spares.len() < SPARES_MAX && template.bytes.capacity() <= SPARE_BYTES_MAX {
            spares.push(template);
        }
    }

    fn judge(
        &mut self,
        user: u64,
        heard: &WholeResponse<'_>,
        planned: Option<FailureClass>,
    ) -> Option<FailureClass> {
        let Some(traveller) = self.travellers.get_mut(&user) else { return planned };
        let Leader { travel, remarks, actors, .. } = &mut self.leader;
        if let Some(Some(actor)) = actors.get_mut(traveller.journey) {
            let (actor, now) = (&mut **actor, heard.now);
            return Performance { travel, actor, traveller, remarks, now }.judge(heard, planned);
        }
        Judging { travel, traveller, remarks, heard }.judge(planned)
    }

    fn note_call_end(&mut self, user: u64, came: &CallEnd<'_>) -> Option<Note> {
        let traveller = self.travellers.get_mut(&user)?;
        let Leader { travel, remarks, actors, .. } = &mut self.leader;
        if let Some(Some(actor)) = actors.get_mut(traveller.journey) {
            let (actor, now) = (&mut **actor, came.sample.done);
            Performance { travel, actor, traveller, remarks, now }.note_call_end(came);
        } else {
            let took = came.sample.done - came.sample.intended;
            let failed = came.outcome != Outcome::Succeeded;
            traveller.note_call_end(travel, came.sample.target, took, failed);
        }
        None
    }
}

/// Compares a response with its step.
struct Judging<'a> {
    travel: &'a Travel,
    traveller: &'a mut Traveller,
    remarks: &'a mut Vec<Remark>,
    heard: &'a WholeResponse<'a>,
}

impl Judging<'_> {
    fn note(&mut self, fact: Noticed) {
        self.remarks.push(Remark { at: self.heard.now, fact });
    }

    fn masked(&self, message: &str) -> String {
        self.travel.masked(self.traveller, message)
    }

    fn judge(mut self, planned: Option<FailureClass>) -> Option<FailureClass> {
        let heard = self.heard;
        let step = heard.row;
        if self.traveller.refresh(self.travel, step, heard.status) {
            self.note(Noticed::Refreshed { step });
            return None;
        }
        let travel = self.travel;
        let card = &travel.steps[step as usize];
        // the step overrides the plan's rule on the status
        let planned = planned.filter(|class| !card.expects || *class != FailureClass::Status);
        if planned.is_some() {
            return planned;
        }
        if card.judges_nothing && heard.body.is_empty() {
            return None;
        }
        let Some(body) = content(&travel.plan, heard) else { return Some(FailureClass::Encoding) };
        let body = match &card.codec {
            // with any other status the body describes an error
            Some(codec) if card.looks_at_bodies && heard.status == 200 => {
                match codec.response_json(&body) {
                    Ok(json) => Cow::Owned(json.into_bytes()),
                    Err(_) => return Some(FailureClass::Encoding),
                }
            }
            _ => body,
        };
        let seen = ResponseParts { status: heard.status, head: heard.head, body: &body };
        let view = CarriedView { travel, traveller: self.traveller };
        if card.expects
            && let Err(difference) = response(&card.step.ask.expect, &seen, heard.took, &view)
        {
            let class = class_of(&difference);
            let difference = self.masked(&words(&difference));
            self.note(Noticed::Differed { step, difference });
            return Some(class);
        }
        let missing = self.capture(&seen);
        if let Some(check) = &card.step.check {
            let view = CarriedView { travel, traveller: self.traveller };
            let difference = response(check, &seen, heard.took, &view).err();
            let difference = difference.map(|difference| self.masked(&words(&difference)));
            self.note(Noticed::Checked { step, difference });
        }
        missing.then_some(FailureClass::Capture)
    }

    /// Captures the step's values from a response. Returns true if a required value is missing.
    fn capture(&mut self, seen: &ResponseParts<'_>) -> bool {
        let card = &self.travel.steps[self.heard.row as usize];
        let mut missing = false;
        for (number, (name, wanted)) in (card.step.first_capture..).zip(&card.step.ask.capture) {
            // always drawn, so that later draws do not depend on whether it is used
            let drawn = self.traveller.draw(u64::MAX);
            let mut draw = |most: u64| ((u128::from(drawn) * u128::from(most)) >> 64) as u64;
            let view = CarriedView { travel: self.travel, traveller: self.traveller };
            let value = match capture(wanted, seen, &view, &mut draw) {
                Ok(value) => {
                    if let Some(metric) = &wanted.metric {
                        let number = stats::parse_number(&value);
                        self.note(Noticed::Measured { metric: metric.row, value: number });
                    }
                    Some(value)
                }
                Err(wrong) => {
                    missing |= !wanted.optional;
                    let example = format!("wanted {}, searched {}", wrong.expected, wrong.got);
                    let example = self.masked(&example);
                    self.note(Noticed::Missed { capture: number, example });
                    None
                }
            };
            self.traveller.keep(name, value, wanted.scope);
        }
        missing
    }
}

/// Decodes a response's content; `None` if it cannot be decoded.
pub(super) fn content<'a>(plan: &plan::Plan, heard: &WholeResponse<'a>) -> Option<Cow<'a, [u8]>> {
    let coded = plan.request.compressed && !heard.body.is_empty();
    let coding = if coded { fields::content_encoding(heard.head) } else { None };
    let Some(coding) = coding else { return Some(Cow::Borrowed(heard.body)) };
    let mut decoder = Decoder::for_encoding(&coding)?;
    let mut content = Vec::new();
    decoder.push(heard.body, &mut content).ok()?;
    decoder.finish().ok()?;
    Some(Cow::Owned(content))
}

pub(super) fn words(difference: &Difference) -> String {
    let Difference { what, expected, got } = difference;
    format!("{what}: expected {expected}, got {got}")
}

/// Returns the failure class of a call whose response differs at this place.
fn class_of(difference: &Difference) -> FailureClass {
    match &difference.what {
        what if what == "status" => FailureClass::Status,
        what if what.starts_with("body") => FailureClass::Body,
        _ => FailureClass::Expectation,
    }
}
