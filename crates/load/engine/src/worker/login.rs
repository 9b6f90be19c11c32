//! Logins of calls: the proof sent with a call, and what a refusal by the server changes.

use crate::call::Call;
use crate::feedback::Feedback;
use crate::proof::{answers, has_own, is_message, template_with_proof};
use crate::render::with_fields;
use crate::setup::Setup;
use protocol::http1::fields;
use protocol::login::digest::challenge;
use units::Nanos;
use workload::Template;

/// Maximum number of times that one call is resent to log in: for the first challenge, and while
/// nonces are stale.
const LOGINS_MAX: u8 = 3;

/// Returns the call's request with its proof; `None` if there is no challenge yet, or the request
/// has its own Authorization.
#[inline(never)]
pub(super) fn proved(
    setup: &Setup,
    feedback: &mut Feedback,
    call: &Call,
    now: Nanos,
) -> Option<Template> {
    let template = match &call.request {
        Some(template) => template,
        None => setup.targets.template(call.target),
    };
    if is_message(template) {
        return None;
    }
    if setup.tokens.is_some() {
        let value = feedback.token(call.user)?;
        if template.stripped.credentials || has_own(template) {
            return None;
        }
        let field = ("Authorization".to_owned(), value.to_string());
        return with_fields(&setup.plan, template, &[field]).ok();
    }
    let unix_s = setup.unix_s.saturating_add_signed((now.0 / Nanos::SECOND.0) as i64);
    let known = feedback.login_of(call.user);
    template_with_proof(&setup.plan, template, known.as_deref_mut(), unix_s)
}

/// Notes that the server refuses the token that the call carried.
#[cold]
pub(super) fn refuse_token(setup: &Setup, feedback: &mut Feedback, call: &Call, now: Nanos) {
    let own = call.request.as_deref().unwrap_or_else(|| setup.targets.template(call.target));
    if !own.stripped.credentials && !has_own(own) {
        feedback.refuse_token(call.user, call.sent, now);
    }
}

/// Decides whether the call is resent, with an answer to the challenge in this head of a 401
/// response.
#[cold]
pub(super) fn take_challenge(
    setup: &Setup,
    feedback: &mut Feedback,
    call: &Call,
    head: &[u8],
) -> bool {
    let Some(found) = challenge(fields::all(head, "www-authenticate")) else { return false };
    let own = call.request.as_deref().unwrap_or_else(|| setup.targets.template(call.target));
    let again = call.logins == 0 || (found.stale && call.logins < LOGINS_MAX);
    if !again || own.stripped.credentials || has_own(own) {
        return false;
    }
    let id = feedback.user_id(call.user).unwrap_or(u64::MAX);
    *feedback.login_of(call.user) = answers(&setup.plan, setup.seed, id, found).map(Box::new);
    true
}
