//! Journeys that a program runs: its calls, and its assessment of their responses.

use super::Travel;
use super::carried::CarriedView;
use super::guide::content;
use super::sockets;
use super::traveller::Traveller;
use crate::render::{Own, build_own};
use plan::journey::AfterFailure;
use plan::{HttpVersion, Plan};
use sample::{FailureClass, Noticed, Outcome, Remark};
use units::Nanos;
use url::Position;
use workload::{
    ActedCall, Actor, ActorAction, ActorTurn, CallEnd, CallResponse, GuideCall, IterationStart,
    Step, Template, WholeResponse,
};

/// Number of consecutive invalid requests after which an iteration is abandoned.
const REFUSED_MAX: u32 = 1_000;

/// One user on a program's journey.
pub(super) struct Performance<'a> {
    pub(super) travel: &'a Travel,
    pub(super) actor: &'a mut dyn Actor,
    pub(super) traveller: &'a mut Traveller,
    pub(super) remarks: &'a mut Vec<Remark>,
    pub(super) now: Nanos,
}

impl Performance<'_> {
    /// Begins the iteration.
    pub(super) fn begin(&mut self) {
        let view = CarriedView { travel: self.travel, traveller: self.traveller };
        let values = view.rows_taken();
        let Traveller { user, iteration, .. } = *self.traveller;
        let act = self.actor.begin(&IterationStart { user, iteration, values: &values });
        self.take(act, None);
    }

    /// Returns the user's next call, or `None` if the iteration is over.
    pub(super) fn next_journey_call(&mut self) -> Option<Step> {
        for _ in 0..REFUSED_MAX {
            match self.traveller.action.take() {
                Some(ActorAction::Call(call)) => {
                    let (step, wait) = (call.step, call.wait);
                    let row = self.row(step);
                    match self.template(&call) {
                        Ok(template) => {
                            let wait = std::mem::take(&mut self.traveller.pause) + wait;
                            (self.traveller.answered, self.traveller.statuses) =
                                (false, call.statuses);
                            let template = Box::new(template);
                            return Some(Step::Call(GuideCall { wait, row, template }));
                        }
                        Err(why) => {
                            self.traveller.pause += wait;
                            let act = self.actor.resume(self.traveller.user, Err(&why));
                            self.take(act, Some(row));
                        }
                    }
                }
                Some(ActorAction::Over { wait }) => {
                    self.traveller.pause += wait;
                    break;
                }
                Some(ActorAction::Abort(why)) => {
                    let why = self.travel.masked(self.traveller, &why);
                    self.note(Noticed::Aborted { why });
                    break;
                }
                Some(ActorAction::Broke(_)) => {
                    if self.traveller.calls == 0 {
                        // no call failed because of it, but the iteration did
                        let transaction = self.traveller.journey as u32;
                        let took = Nanos::ZERO;
                        self.note(Noticed::Together { transaction, took, failed: true });
                    }
                    break;
                }
                None => break,
            }
        }
        self.actor.end_early(self.traveller.user);
        self.traveller.finish(self.travel, self.now, self.remarks);
        None
    }

    /// Returns the failure of a response; `planned`: as judged by the plan.
    pub(super) fn judge(
        &mut self,
        heard: &WholeResponse<'_>,
        planned: Option<FailureClass>,
    ) -> Option<FailureClass> {
        let own = !self.traveller.statuses.is_empty();
        let mut class = planned.filter(|class| !own || *class != FailureClass::Status);
        if own && !self.traveller.statuses.contains(&heard.status) {
            class = class.or(Some(FailureClass::Status));
        }
        let body = content(&self.travel.plan, heard);
        if body.is_none() {
            class = class.or(Some(FailureClass::Encoding));
        }
        let back = CallResponse {
            status: heard.status,
            head: heard.head,
            body: body.as_deref().unwrap_or_default(),
            took: heard.took,
            error: class.map(FailureClass::id),
        };
        self.traveller.answered = true;
        let act = self.actor.resume(self.traveller.user, Ok(&back));
        class.or(self.take(act, Some(heard.row)))
    }

    /// Notes the end of a call. The program is notified here of a call without a response.
    pub(super) fn note_call_end(&mut self, came: &CallEnd<'_>) {
        let sample = came.sample;
        let failed = came.outcome != Outcome::Succeeded;
        if !self.traveller.answered && came.outcome != Outcome::Abandoned {
            let took = if sample.sent.is_zero() { Nanos::ZERO } else { sample.done - sample.sent };
            let error = Some(sample.class.map_or("failed", FailureClass::id));
            let back =
                CallResponse { status: sample.status, head: came.head, body: &[], took, error };
            self.traveller.answered = true;
            let act = self.actor.resume(self.traveller.user, Ok(&back));
            self.take(act, Some(sample.target));
        }
        let took = sample.done - sample.intended;
        self.traveller.note_call_end(self.travel, sample.target, took, failed);
        let journey = &self.travel.journeys[self.traveller.journey];
        if failed && journey.failure == AfterFailure::End {
            self.traveller.action = None;
        }
    }

    /// Records the program's judgment of the ended call, and its next action. `row`: row of that
    /// call; `None` before the first call, when the first step represents the journey.
    fn take(&mut self, act: ActorTurn, row: Option<u32>) -> Option<FailureClass> {
        let step = row.unwrap_or_else(|| self.row(0));
        for unmet in act.checks {
            let difference = unmet.map(|text| self.masked(&text));
            self.note(Noticed::Checked { step, difference });
        }
        for (place, value) in act.values {
            let Some(metric) = self.metric(place) else { continue };
            let value = stats::parse_number(&value.to_string());
            self.note(Noticed::Measured { metric, value });
        }
        let mut class = None;
        if let Some(why) = &act.failure {
            class = Some(FailureClass::Expectation);
            self.fail(step, why);
        }
        if let ActorAction::Broke(why) = &act.action {
            class = Some(FailureClass::Script);
            self.fail(step, why);
        }
        self.traveller.action = Some(act.action);
        class
    }

    fn fail(&mut self, step: u32, why: &str) {
        let difference = self.masked(why);
        self.traveller.mark_failed();
        self.note(Noticed::Differed { step, difference });
    }

    fn masked(&self, message: &str) -> String {
        self.travel.masked(self.traveller, message)
    }

    fn note(&mut self, fact: Noticed) {
        self.remarks.push(Remark { at: self.now, fact });
    }

    /// Returns the row of a metric of the program among those of the plan.
    fn metric(&self, place: u32) -> Option<u32> {
        let metrics = &self.travel.journeys[self.traveller.journey].metrics;
        metrics.get(place as usize).copied()
    }

    fn row(&self, step: u32) -> u32 {
        self.travel.journeys[self.traveller.journey].first_row + step
    }

    /// Returns the request of a call, and the WebSocket of the user if the call opens one.
    fn template(&mut self, call: &ActedCall) -> Result<Template, String> {
        if let Some(socket) = call.socket.as_ref().filter(|it| !it.opens()) {
            let url = self.traveller.socket.as_ref().ok_or(sockets::NOT_OPEN)?;
            let payload = call.body.clone().unwrap_or_default();
            return Ok(Template::on_socket(url.clone(), payload, socket.clone()));
        }
        let made = template(&self.travel.plan, call)?;
        if call.socket.is_some() {
            self.traveller.socket = Some(made.url.shared().clone());
        }
        Ok(Template { socket: call.socket.clone(), ..made })
    }
}

/// Returns the request of a program's call.
pub(super) fn template(plan: &Plan, call: &ActedCall) -> Result<Template, String> {
    let own = Own {
        target: &call.url[Position::BeforePath..Position::AfterQuery],
        headers: &call.headers,
        body: call.body.as_deref(),
        ..Own::default()
    };
    let absolute = plan.connection.proxy.is_some();
    if call.socket.is_some() && (plan.request.version != HttpVersion::Http11 || absolute) {
        return Err("WebSockets are opened over HTTP/1.1 without a proxy only".to_owned());
    }
    let made = build_own(plan, &call.url, &call.method, &own, 0, absolute);
    made.map_err(|error| error.to_string())
}
