//! Determines a call's outcome from its response: collection, judgment, and the calls of a broken
//! connection.

use super::Worker;
use crate::call::{Call, End};
use crate::connect;
use crate::connection::{Conn, ConnState};
use crate::guide::AnsweredCall;
use crate::intake::{GrpcBody, Intake};
use crate::journal::{BackendFacts, SampleStart};
use crate::proof;
use crate::redirect::{self, Redirect, redirect_method};
use crate::setup::{Setup, endpoint_key};
use crate::verify::BodyMismatch;
use conduit::{Close, Io, Slot};
use plan::{GrpcVariant, Masker, Plan};
use protocol::grpc::{self, BodyForm, EarlyEnd};
use protocol::http1::fields;
use protocol::http1::response::{Asked, ResponseFacts};
use sample::{BodyPrint, EarlyFacts, FailureClass, WrongBody};
use units::Nanos;
use workload::Template;

/// RFC 8470 section 5.2.
const TOO_EARLY: u16 = 425;

impl Worker {
    /// Returns whether more than the length of responses is needed.
    #[inline]
    pub(super) fn needs_body(&self) -> bool {
        self.looks || self.journal.keeps_responses()
    }

    /// Collects a piece of a call's response, which arrived at `now`. Returns whether the
    /// response has reached a limit of its messages.
    pub(super) fn gather(
        &mut self,
        slot: Slot,
        row: usize,
        came: &ResponsePiece<'_>,
        now: Nanos,
    ) -> bool {
        let ResponsePiece { piece, body, last } = *came;
        let conn = self.pool.conn_mut(slot);
        // fields alone, before the content or after it
        if piece.is_empty() && body.is_empty() && (!last || conn.has_intake(row)) {
            return false;
        }
        let mut intake = conn.take_intake(row).unwrap_or_else(|| fresh(&mut self.intakes));
        if self.journal.keeps_responses() {
            intake.keep(piece);
        }
        if self.looks && !body.is_empty() {
            if self.feedback.wants_bodies() {
                intake.gather(body);
            }
            if self.setup.body.looks() {
                if self.setup.body.streams() && !intake.is_stream() {
                    expect_events(&self.setup, conn, row, &mut intake);
                }
                intake.inspect(&self.setup.body, conn.head(), body, last);
            }
        }
        if intake.is_stream()
            && let Some(call) = conn.call(row)
        {
            let (events, intended) = (intake.take_events(false), call.intended);
            let grpc = &self.setup.plan.grpc;
            self.journal.events(grpc, &mut intake.marks, events, intended, now);
            if self.setup.answer_keys.is_some() {
                self.journal.answers_by_field(grpc, &intake.take_answers(), intended, now);
            }
        }
        let reached = intake.reached_limit().is_some();
        conn.restore_intake(row, Some(intake));
        reached
    }

    /// Keeps the head of a response over a protocol with streams, with the stream's id.
    #[cold]
    pub(super) fn keep_head(&mut self, slot: Slot, row: usize) {
        if !self.journal.keeps_responses() {
            return;
        }
        let conn = self.pool.conn_mut(slot);
        let Some(mut intake) = conn.take_intake(row) else { return };
        let head = conn.head();
        let end = head.iter().position(|byte| *byte == b'\r').unwrap_or(head.len());
        intake.keep(&head[..end]);
        let stream = conn.speaker().map_or(0, |speaker| speaker.stream_id());
        intake.keep(format!(" {stream}").as_bytes());
        intake.keep(&head[end..]);
        conn.restore_intake(row, Some(intake));
    }

    /// Handles a call's complete response.
    #[inline]
    pub(super) fn responded<I: Io>(&mut self, io: &mut I, slot: Slot, row: usize, now: Nanos) {
        let facts = self.pool.conn(slot).facts();
        if facts.timed {
            self.count_timings(slot, row);
        }
        if self.feedback.is_attended() {
            return self.handle_guided_response(io, slot, row, &facts, now);
        }
        self.settle::<I, false>(io, slot, row, &facts, now);
    }

    /// Handles a response that a script or a guide needs.
    #[inline(never)]
    fn handle_guided_response<I: Io>(
        &mut self,
        io: &mut I,
        slot: Slot,
        row: usize,
        facts: &ResponseFacts,
        now: Nanos,
    ) {
        if self.pass_response(slot, row, facts, now) {
            return;
        }
        if self.feedback.is_scripted() {
            self.settle::<I, false>(io, slot, row, facts, now);
        } else {
            self.settle::<I, true>(io, slot, row, facts, now);
        }
    }

    /// Applies a complete response to its call, its user and its connection. `GUIDED`: the user has
    /// a guide, which judges the response too.
    #[inline(always)]
    fn settle<I: Io, const GUIDED: bool>(
        &mut self,
        io: &mut I,
        slot: Slot,
        row: usize,
        facts: &ResponseFacts,
        now: Nanos,
    ) {
        let heads = self.setup.plan.measure.conforming_counts_heads;
        let received = facts.body_bytes + if heads { facts.head_bytes } else { 0 };
        let conn = self.pool.conn_mut(slot);
        // used in place: a call is large, and moving it out of its Option would copy it
        let mut taken = conn.take_served(row, received, now);
        let Some(call) = &mut taken else { return };
        let setup_times = conn.take_setup_times();
        if setup_times.is_some() && conn.has_served_once() {
            self.journal.connection_answered(now - call.sent);
        }
        let (decoded, wrong) = self.judge_content(slot, call, facts, now);
        // the connection ends before the other responses to a script's call
        let wrong = wrong.or((call.responses_due > 1).then_some(FailureClass::ClosedEarly));
        call.add(facts, decoded);
        let again = self.repeats && self.must_be_repeated(slot, call, facts.status, now);
        let redirect = if (300..400).contains(&facts.status) || self.setup.plan.request.cookies {
            let own = call.request.as_deref();
            self.read_head(slot, own, (call.user, call.target, call.redirects), facts)
        } else {
            Ok(None)
        };
        if let Some(intake) = &mut call.intake {
            self.count_kept(intake, facts.is_headless());
        }
        let mut end = self.judge(call, facts, wrong);
        if GUIDED
            && !again
            && let Ok(None) = &redirect
        {
            // before any conclusion that would take the guide's copy of the response away
            let took = now - call.sent;
            let seen = AnsweredCall { row: call.target, status: facts.status, took, now };
            let class = self.feedback.judge_by_guide(call.user, &seen, end.class);
            end = End::answered(facts, class);
        }
        if let Some(class) = failure_of(&end, again, &redirect) {
            self.sample_failure(slot, call, &End { class: Some(class), ..end }, now);
        }
        let calls_max = self.pool.calls_max();
        if self.pool.conn_mut(slot).is_over(facts.persistent, calls_max) {
            self.close_after_response(io, slot, call, now);
        }
        // for the call's next request; if that needs another connection, only the totals count
        // them
        let conn = self.pool.conn_mut(slot);
        if again || matches!(&redirect, Ok(Some(next)) if next.endpoint == conn.endpoint()) {
            conn.keep_setup_times(setup_times);
        }
        match redirect {
            _ if again => {
                self.journal.response_before_last(facts.status, call.intended, now);
                self.resend_call(io, taken, now);
            }
            Ok(Some(template)) => self.redirect(io, taken, template, now),
            Ok(None) => self.conclude_with(io, call, &end, now, setup_times),
            Err(class) => {
                let end = End::answered(facts, Some(class));
                self.fail_redirect(io, call, &end, now, setup_times);
            }
        }
        self.offer(slot, now);
    }

    /// Begins a sample of a failed response before it leaves its connection.
    #[cold]
    fn sample_failure(&mut self, slot: Slot, call: &mut Call, end: &End, now: Nanos) {
        // checked before the bytes are copied: every call of a load may fail
        if !self.journal.wants_sample(call, end) {
            return;
        }
        let conn = self.pool.conn(slot);
        let kept = call.intake.as_mut().map_or_else(Vec::new, |intake| intake.take_sample());
        // over HTTP/1 the bytes as received begin with the head
        let mut start = if conn.is_multiplexed() { conn.head().to_vec() } else { Vec::new() };
        start.extend_from_slice(&kept);
        start.truncate(stats::SAMPLE_BYTES_MAX);
        let begun = SampleStart { start, length: call.body_bytes, secrets: self.secrets_of(call) };
        self.journal.begin_sample(call, end, begun, now);
    }

    /// Takes a sample of a response that was cut off after `came` bytes.
    #[cold]
    fn sample_cut(&mut self, call: &mut Call, came: &ResponseFacts, end: &End, now: Nanos) {
        let end = End { status: came.status, ..*end };
        if came.status == 0 || !self.journal.wants_sample(call, &end) {
            return;
        }
        let start = call.intake.as_mut().map_or_else(Vec::new, |intake| intake.take_sample());
        let begun = SampleStart { start, length: came.body_bytes, secrets: self.secrets_of(call) };
        self.journal.begin_sample(call, &end, begun, now);
        self.journal.end_sample(&[]);
    }

    /// Returns the secrets of the plan, the user and the request, which a response may repeat.
    fn secrets_of(&mut self, call: &Call) -> Masker {
        let mut secrets = self.setup.secrets.clone();
        if let Some(token) = self.feedback.token(call.user) {
            secrets.add_header("authorization", token);
        }
        self.feedback.add_secrets(call.user, &mut |value| secrets.add_value(value));
        let own = call.request.as_deref();
        let template = own.unwrap_or_else(|| self.setup.targets.template(call.target));
        secrets.add_request(&template.last);
        if let Some(cookies) = self.feedback.cookie(call.user, template) {
            secrets.add_header("cookie", &cookies);
        }
        secrets
    }

    /// Returns the length of the decoded content, and the failure of the content or of its gRPC
    /// status.
    #[inline(always)]
    fn judge_content(
        &mut self,
        slot: Slot,
        call: &mut Call,
        facts: &ResponseFacts,
        now: Nanos,
    ) -> (u64, Option<FailureClass>) {
        if !self.setup.body.looks() {
            return (facts.body_bytes, self.setup.body.judge_length(facts.body_bytes));
        }
        let judged = self.judge_body(call, facts, now);
        match self.setup.body.is_grpc() && self.setup.is_grpc(call.target) {
            true => self.judge_grpc(slot, call, facts, judged),
            false => judged,
        }
    }

    /// Ends the connection after the response to `call`, which has been removed from it.
    #[inline]
    fn close_after_response<I: Io>(&mut self, io: &mut I, slot: Slot, call: &mut Call, now: Nanos) {
        // a response may arrive before all of its request was sent
        let unsent = self.pool.conn_mut(slot).take_back_unsent();
        call.bytes_sent = call.bytes_sent.saturating_sub(unsent);
        self.pool.detach_calls(slot);
        self.close(io, slot, self.close_kind(), now);
        // before the user's next call, so that no call waits forever while newer ones are served
        self.replace_stranded(io, now);
    }

    /// Counts a response whose start is kept, up to the maximum number.
    #[cold]
    fn count_kept(&mut self, intake: &mut Intake, headless: bool) {
        if !self.journal.stays_kept(headless) {
            intake.clear_kept();
        }
    }

    /// Passes a response to the script or to the guide. Returns true if more responses to the call
    /// follow.
    fn pass_response(&mut self, slot: Slot, row: usize, facts: &ResponseFacts, now: Nanos) -> bool {
        let conn = self.pool.conn_mut(slot);
        let mut intake = conn.take_intake(row);
        let head = conn.head();
        if !self.feedback.is_scripted() {
            self.feedback.keep_for_guide(head, |body| {
                if let Some(intake) = &mut intake {
                    intake.swap_body(body);
                }
            });
            if self.feedback.has_simultaneous_calls() {
                let trailers = conn.speaker().map_or(&[][..], |speaker| speaker.trailers());
                self.feedback.keep_trailers(trailers);
            }
            conn.restore_intake(row, intake);
            return false;
        }
        let body = intake.as_ref().map_or(&[][..], |intake| intake.body());
        // a login challenge is answered on behalf of the script
        let asks = self.proves
            && facts.status == 401
            && conn.call(row).is_some_and(|call| call.logins == 0)
            && proof::asks_for(&self.setup.plan, head);
        let stopped = !asks && self.feedback.show_script(facts.status, head, body);
        if let Some(intake) = &mut intake {
            intake.clear_body();
        }
        conn.restore_intake(row, intake);
        let more = conn.take_partial_response(row, facts);
        if more && let Some(call) = conn.call(row) {
            self.journal.response_before_last(facts.status, call.intended, now);
        }
        if stopped {
            self.stop();
        }
        more
    }

    /// Counts the server's timing of its own work, for calls of the measured phase.
    #[inline(never)]
    fn count_timings(&mut self, slot: Slot, row: usize) {
        let conn = self.pool.conn(slot);
        if conn.call(row).is_some_and(|call| !self.journal.in_warm_up(call.intended))
            && let Some(speaker) = conn.speaker()
        {
            speaker.for_each_timing(|timing| self.journal.count_timing(timing));
        }
    }

    /// Returns the length of a decoded body, and its failure.
    fn judge_body(
        &mut self,
        call: &mut Call,
        facts: &ResponseFacts,
        now: Nanos,
    ) -> (u64, Option<FailureClass>) {
        let mut intake = call.intake.take().unwrap_or_else(|| fresh(&mut self.intakes));
        if intake.is_stream() {
            let events = intake.take_events(true);
            let grpc = &self.setup.plan.grpc;
            self.journal.events(grpc, &mut intake.marks, events, call.intended, now);
        }
        let (decoded, mut wrong, print) = intake.judge(&self.setup.body);
        call.intake = Some(intake);
        // a response without content by rule (HEAD, 204, 304) cannot have the expected body
        if call.asked != Asked::Ordinary || matches!(facts.status, 204 | 304) {
            return (0, None);
        }
        if wrong.is_none()
            && let Some(print) = print
        {
            wrong = self.verify(call, facts.status, print, now);
        }
        (decoded, wrong)
    }

    /// Judges the gRPC status of a response whose body has been judged.
    #[inline(never)]
    fn judge_grpc(
        &mut self,
        slot: Slot,
        call: &mut Call,
        facts: &ResponseFacts,
        (decoded, wrong): (u64, Option<FailureClass>),
    ) -> (u64, Option<FailureClass>) {
        // a complete response keeps the server's status, even if it reached the message count
        let early = call.intake.as_ref().and_then(|intake| intake.early_end);
        if let Some(early) = early.filter(|early| *early != EarlyEnd::Enough) {
            return (decoded, wrong.or(self.judge_early_end(call, early)));
        }
        let conn = self.pool.conn(slot);
        let end = call.intake.as_ref().map_or(&[][..], |intake| &intake.end);
        let status = match self.setup.plan.grpc.variant {
            GrpcVariant::Grpc => grpc::status_of(facts.status, conn.head(), conn.trailers()),
            GrpcVariant::Web | GrpcVariant::WebText => {
                grpc::status_of(facts.status, conn.head(), end)
            }
            GrpcVariant::Connect => {
                connect::status(facts.status, end, self.setup.grpc_form(call.target))
            }
        };
        self.journal.grpc_status(&status, call.intended);
        // the end of a Connect call is JSON and has no fields
        let trailers = match self.setup.plan.grpc.variant {
            GrpcVariant::Web | GrpcVariant::WebText => end,
            GrpcVariant::Grpc | GrpcVariant::Connect => conn.trailers(),
        };
        if let Some(facts) = backend_facts(&self.setup.plan, conn.head(), trailers) {
            self.journal.backend(call.intended, facts);
        }
        let expected = self.setup.expects_grpc(call.target, status.code) && status.sent;
        if !expected
            && self.journal.logs_calls()
            && let Some(intake) = &mut call.intake
        {
            intake.status = Some(Box::new(status));
        }
        (decoded, wrong.or((!expected).then_some(FailureClass::GrpcStatus)))
    }

    /// Returns the failure of a gRPC call that the client ends at a limit. Only a message above the
    /// maximum length is a failure.
    #[cold]
    fn judge_early_end(&mut self, call: &mut Call, early: EarlyEnd) -> Option<FailureClass> {
        let status = grpc::Status::of_early_end(early, self.setup.plan.grpc.response_limits());
        self.journal.grpc_status(&status, call.intended);
        if self.journal.logs_calls()
            && let Some(intake) = &mut call.intake
        {
            intake.status = Some(Box::new(status));
        }
        (early != EarlyEnd::Enough).then_some(FailureClass::GrpcStatus)
    }

    /// Ends the calls whose incomplete responses have reached a limit of their messages. Runs after
    /// all input is read, because the input may complete these responses. Returns whether the
    /// connection stays open.
    #[cold]
    pub(super) fn end_early_calls<I: Io>(&mut self, io: &mut I, slot: Slot, now: Nanos) -> bool {
        let generation = self.pool.conn(slot).generation();
        while let Some((row, early)) = self.pool.conn(slot).reached_limit() {
            let conn = self.pool.conn(slot);
            let Some((call, speaker)) = conn.call(row).zip(conn.speaker()) else { break };
            if let Some(facts) = backend_facts(&self.setup.plan, speaker.head_of(row), &[]) {
                self.journal.backend(call.intended, facts);
            }
            let came = speaker.partial(row).unwrap_or_default();
            let Some(call) = self.pool.conn_mut(slot).end_early(row, now) else { break };
            self.end_early(io, (slot, call), (came, early), now);
            if !self.pool.conn(slot).has_generation(generation) {
                return false;
            }
        }
        true
    }

    /// Concludes a call that was withdrawn from its connection after a part of its response.
    fn end_early<I: Io>(
        &mut self,
        io: &mut I,
        (slot, mut call): (Slot, Call),
        (came, early): (ResponseFacts, EarlyEnd),
        now: Nanos,
    ) {
        let wrong = self.judge_early_end(&mut call, early);
        if let Some(intake) = &mut call.intake {
            self.count_kept(intake, false);
        }
        let left = self.pool.conn(slot).is_abandoned_by_peer();
        let came = ResponseFacts { persistent: !left, ..came };
        let end = self.judge(&call, &came, wrong);
        if end.class.is_some() {
            self.feedback.fail_session_unless_repeated(call.user);
            self.sample_cut(&mut call, &came, &end, now);
        }
        self.pool.mark_dirty(slot);
        let calls_max = self.pool.calls_max();
        if self.pool.conn_mut(slot).is_over(!left, calls_max) {
            self.close_after_response(io, slot, &mut call, now);
        }
        self.conclude(io, call, end, now);
        self.offer(slot, now);
    }

    /// Compares a body with the body of its target. Only good responses are compared, so that an
    /// error page is never taken for the page; a followed redirect is compared at its target.
    fn verify(
        &mut self,
        call: &Call,
        status: u16,
        print: BodyPrint,
        now: Nanos,
    ) -> Option<FailureClass> {
        let on_the_way = (300..400).contains(&status) && self.setup.plan.request.follow_max > 0;
        if on_the_way || !self.setup.status_ok(status) {
            return None;
        }
        let found = self.setup.known.as_ref()?.check(call.target, print);
        if self.journal.in_warm_up(call.intended) {
            return found.map(|wrong| class_of(&wrong));
        }
        self.journal.body_compared();
        let wrong = found?;
        let BodyMismatch { expected, of } = wrong;
        let at = now - self.setup.measure_from();
        let target = call.target;
        self.journal.wrong_body(WrongBody { at, target, of, expected, got: print });
        Some(class_of(&wrong))
    }

    #[inline]
    fn judge(&self, call: &Call, facts: &ResponseFacts, wrong: Option<FailureClass>) -> End {
        let is_accepted = self.setup.status_ok(facts.status)
            || is_on_socket(call)
            || self.setup.is_connect(call.target) && !facts.is_headless();
        let class = if is_accepted {
            wrong
        } else if facts.is_headless() {
            Some(FailureClass::NotHttp)
        } else {
            Some(FailureClass::Status)
        };
        End::answered(facts, class)
    }

    /// Stores cookies in the user's jar, and builds the request of a redirect. `own`: the call's
    /// request, if not its target's.
    fn read_head(
        &mut self,
        slot: Slot,
        own: Option<&Template>,
        (user, target, redirects): (u32, u32, u8),
        facts: &ResponseFacts,
    ) -> Result<Option<Template>, FailureClass> {
        let setup = &*self.setup;
        let status = facts.status;
        let head = self.pool.conn(slot).head();
        let from = own.unwrap_or_else(|| setup.targets.template(target));
        if facts.sets_cookies {
            self.feedback.take_cookies(user, from, head);
        }
        if setup.plan.request.follow_max == 0 {
            return Ok(None);
        }
        let Some(next) = redirect_method(status, &from.method) else { return Ok(None) };
        let Some(value) = fields::location(head) else { return Ok(None) };
        if u16::from(redirects) >= setup.plan.request.follow_max {
            return Err(FailureClass::Redirects);
        }
        let url = redirect::location(from.url(), value).ok_or(FailureClass::Redirects)?;
        let Some(endpoint) = setup.keys.get(&endpoint_key(&url)).copied() else {
            return Err(FailureClass::Redirects);
        };
        let target = &setup.plan.targets[target as usize];
        let of_step;
        let (headers, body) = match &setup.plan.journeys {
            // only the request has a step's fields and body, with its values
            Some(_) => {
                of_step = redirect::own_fields(&setup.plan, from);
                (&of_step[..], body_of(&from.bytes))
            }
            None => {
                let body = target.body.as_deref().or(setup.plan.request.body.as_deref());
                (&target.headers[..], body)
            }
        };
        let absolute = setup.endpoints[endpoint as usize].absolute;
        let next = Redirect { from, url: &url, method: next, headers, body, endpoint, absolute };
        next.build(&setup.plan).map(Some).map_err(|_| FailureClass::Redirects)
    }

    /// Returns whether a response with this status is not the last one to its call: the server
    /// requires a login, or wants the request after the handshake.
    #[cold]
    fn must_be_repeated(&mut self, slot: Slot, call: &mut Call, status: u16, now: Nanos) -> bool {
        if status == TOO_EARLY && self.setup.plan.tls.early_data && !call.late {
            call.late = true;
            self.journal.count_early(&EarlyFacts { too_early: 1, ..EarlyFacts::default() });
            return true;
        }
        if status == 401 {
            super::login::refuse_token(&self.setup, &mut self.feedback, call, now);
        }
        let challenged = self.proves && status == 401 && {
            let head = self.pool.conn(slot).head();
            super::login::take_challenge(&self.setup, &mut self.feedback, call, head)
        };
        call.logins += u8::from(challenged);
        challenged
    }

    /// Resends the same call, with the answer to the server's challenge, or later.
    #[cold]
    fn resend_call<I: Io>(&mut self, io: &mut I, call: Option<Call>, now: Nanos) {
        let Some(mut call) = call else { return };
        call.tries = 0;
        call.first_byte = Nanos::ZERO;
        if let Some(intake) = call.intake.take() {
            self.reclaim(intake);
        }
        self.place_again(io, call, now);
    }

    /// Replaces the call's request by that of a redirect.
    fn redirect<I: Io>(&mut self, io: &mut I, call: Option<Call>, template: Template, now: Nanos) {
        let Some(mut call) = call else { return };
        call.redirects += 1;
        call.tries = 0;
        call.asked = template.asked;
        call.first_byte = Nanos::ZERO;
        call.request = Some(Box::new(template));
        if let Some(intake) = call.intake.take() {
            self.reclaim(intake);
        }
        self.place_again(io, call, now);
    }

    /// Fails a call whose redirect cannot be followed.
    #[cold]
    fn fail_redirect<I: Io>(
        &mut self,
        io: &mut I,
        call: &mut Call,
        end: &End,
        now: Nanos,
        setup: Option<(Nanos, Option<Nanos>)>,
    ) {
        self.conclude_with(io, call, end, now, setup);
    }

    /// Frees the collected parts of the call's response.
    pub(super) fn reclaim(&mut self, mut intake: Box<Intake>) {
        intake.renew();
        self.intakes.push(intake);
    }

    /// Handles bytes without a request: the connection cannot be trusted any further.
    pub(super) fn close_on_unrequested<I: Io>(&mut self, io: &mut I, slot: Slot, now: Nanos) {
        self.journal.count_failure(FailureClass::Unasked, now);
        self.pool.conn_mut(slot).break_with(FailureClass::Unasked);
        self.pool.detach_calls(slot);
        self.close(io, slot, Close::Reset, now);
        self.replace_stranded(io, now);
    }

    /// Handles a call that the peer will not process: it may be placed on another connection.
    pub(super) fn refused<I: Io>(&mut self, io: &mut I, slot: Slot, row: usize, now: Nanos) {
        let none = ResponseFacts::default();
        let Some(call) = self.pool.conn_mut(slot).take_failed(row, &none, now) else { return };
        // more of an open request may have been sent than is still in memory
        let begun = call.open_lane().is_some();
        if begun || call.tries >= self.setup.plan.connection.tries {
            self.feedback.fail_session_unless_repeated(call.user);
            if self.pool.refuses_further_calls(slot) {
                self.feedback.end_with_connection(call.user);
            }
            self.conclude(io, call, End::failed(FailureClass::StreamRefused), now);
        } else {
            self.pool.detach_call(call);
            self.replace_stranded(io, now);
        }
        self.offer(slot, now);
    }

    /// Handles a call that the peer abandons; the connection continues.
    pub(super) fn failed<I: Io>(
        &mut self,
        io: &mut I,
        slot: Slot,
        row: usize,
        class: FailureClass,
        now: Nanos,
    ) {
        let conn = self.pool.conn_mut(slot);
        let came = conn.facts();
        let Some(mut call) = conn.take_failed(row, &came, now) else { return };
        self.feedback.fail_session_unless_repeated(call.user);
        let end = End::failed(class);
        self.sample_cut(&mut call, &came, &end, now);
        self.conclude(io, call, end, now);
        self.offer(slot, now);
    }

    /// Handles the end of a connection. Before it was established, all its calls fail for that
    /// reason. Later, partially answered calls fail; if the server closed it, all other calls are
    /// put on another connection, otherwise only the unwritten ones.
    pub(super) fn break_off<I: Io>(
        &mut self,
        io: &mut I,
        slot: Slot,
        class: FailureClass,
        now: Nanos,
    ) {
        let conn = self.pool.conn_mut(slot);
        // the end of the input is a less specific reason
        let class = conn.unwritable().unwrap_or(class);
        conn.settle_bytes();
        let (endpoint, address) = (conn.endpoint(), conn.address());
        if conn.state() == ConnState::Connecting && self.pool.give_up_address(endpoint, address) {
            self.pool.detach_calls(slot);
            self.close(io, slot, Close::Reset, now);
            return self.replace_stranded(io, now);
        }
        let conn = self.pool.conn_mut(slot);
        let was_open = conn.is_open();
        conn.break_with(class);
        let unbegun = conn.is_unanswered();
        let closed = matches!(class, FailureClass::ClosedEarly | FailureClass::Reset);
        let unwritten = closed && conn.is_unwritten();
        let resend = was_open && unbegun && conn.has_served() && self.setup.plan.connection.resend;
        if unbegun && closed {
            conn.end_by_server();
        }
        let came = conn.speaker().and_then(|speaker| speaker.partial(0));
        let mut first = if resend || unwritten { None } else { conn.take_oldest_affected() };
        let others = conn.take_begun();
        for call in first.iter().chain(&others) {
            self.feedback.fail_session_unless_repeated(call.user);
        }
        self.pool.detach_calls(slot);
        self.close(io, slot, Close::Reset, now);
        if was_open {
            self.replace_stranded(io, now);
        }
        let end = End::failed(class);
        if let (Some(call), Some(came)) = (&mut first, came) {
            self.sample_cut(call, &came, &end, now);
        }
        for call in first.into_iter().chain(others) {
            self.conclude(io, call, end, now);
        }
        for call in self.pool.take_stranded() {
            self.conclude(io, call, end, now);
        }
    }
}

/// Piece of a response.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResponsePiece<'a> {
    /// Bytes as received.
    pub(super) piece: &'a [u8],
    /// Content of the body.
    pub(super) body: &'a [u8],
    /// The piece completes the response.
    pub(super) last: bool,
}

/// Returns whether a call is a step on a WebSocket, whose response is the 101 or a message.
fn is_on_socket(call: &Call) -> bool {
    call.request.as_ref().is_some_and(|request| request.socket.is_some())
}

/// Bytes of the shortest trailers with a report of load.
const LOAD_BYTES_MIN: usize = grpc::LOAD_TRAILER.len() + "grpc-status: 0\r\n".len();

/// Returns facts about the back end in a response to a gRPC call, if there are any.
fn backend_facts<'a>(plan: &Plan, head: &'a [u8], trailers: &'a [u8]) -> Option<BackendFacts<'a>> {
    let field =
        |name: &str| fields::find(head, name).or_else(|| fields::find_trailer(trailers, name));
    let name = plan.grpc.backend.as_deref().and_then(field);
    let name = name.and_then(|name| str::from_utf8(name).ok()).map(shortened);
    let load = match trailers.len() > LOAD_BYTES_MIN {
        true => fields::find_trailer(trailers, grpc::LOAD_TRAILER).map(grpc::load_report),
        false => None,
    };
    (name.is_some() || load.is_some()).then_some(BackendFacts { name, load })
}

/// Maximum length of a stored back-end name, in characters.
const NAME_MAX: usize = 200;

fn shortened(name: &str) -> &str {
    name.char_indices().nth(NAME_MAX).map_or(name, |(at, _)| &name[..at])
}

/// Reads the events of a good response, if its target's responses are streams: an error page or an
/// intermediate redirect is not a stream.
fn expect_events(setup: &Setup, conn: &Conn, row: usize, intake: &mut Intake) {
    let Some(call) = conn.call(row) else { return };
    let partial = conn.speaker().and_then(|speaker| speaker.partial(row));
    let status = partial.map_or_else(|| conn.facts().status, |it| it.status);
    let good = (200..300).contains(&status);
    // Connect describes errors in the body
    let described = setup.plan.grpc.variant == GrpcVariant::Connect;
    if (good || described)
        && let Some(form) = setup.stream(call.target)
    {
        let body = if good { setup.grpc_form(call.target) } else { BodyForm::Error };
        intake.marks.step = setup.stream_step(call.target);
        let (limits, answers) = (setup.plan.grpc.response_limits(), setup.answer_keys.as_ref());
        intake.expect_events(form, GrpcBody { form: body, limits, answers });
    }
}

/// Returns the failure of a call with this response; `None` if it succeeded or another response
/// will follow.
#[inline]
fn failure_of(
    end: &End,
    again: bool,
    redirect: &Result<Option<Template>, FailureClass>,
) -> Option<FailureClass> {
    match redirect {
        Err(class) => Some(*class),
        Ok(None) if !again => end.class,
        Ok(_) => None,
    }
}

fn class_of(wrong: &BodyMismatch) -> FailureClass {
    if wrong.of.is_some() { FailureClass::OtherTarget } else { FailureClass::Differs }
}

/// Returns the part of a request after its head.
fn body_of(request: &[u8]) -> Option<&[u8]> {
    let end = request.windows(4).position(|at| at == b"\r\n\r\n")?;
    Some(&request[end + 4..]).filter(|body| !body.is_empty())
}

/// Returns an intake for another call.
#[expect(clippy::vec_box, reason = "a call has its intake in a box, which is returned unchanged")]
pub(super) fn fresh(intakes: &mut Vec<Box<Intake>>) -> Box<Intake> {
    intakes.pop().unwrap_or_else(|| {
        let mut intake = Box::<Intake>::default();
        intake.renew();
        intake
    })
}
