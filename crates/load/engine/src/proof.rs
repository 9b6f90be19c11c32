//! Logins whose proof depends on the request: the fields sent with a call, and the interpretation
//! of a server's challenge. A login that is a plain field, like Basic, is in the rendered request.

use crate::call::Call;
use crate::feedback::Feedback;
use crate::render::with_fields;
use crate::setup::Setup;
use plan::{Auth, Plan};
use protocol::http1::fields;
use protocol::login::digest::{Answers, Challenge, challenge};
use protocol::login::sigv4::{Signer, ToSign};
use units::{Nanos, Purpose, Seed};
use workload::{SocketAction, Template};

/// Maximum number of times that one call is resent to log in: for the first challenge, and while
/// nonces are stale.
const LOGINS_MAX: u8 = 3;

/// A user's copy of the server's last challenge.
pub(crate) type KnownChallenge = Option<Box<Answers>>;

/// Returns whether requests of the plan need individual proofs.
pub fn needs_proofs(plan: &Plan) -> bool {
    plan.uses_tokens()
        || matches!(plan.request.auth, Some(Auth::Digest { .. } | Auth::AwsSigV4 { .. }))
}

/// Returns whether heads of responses are searched for challenges.
pub(crate) fn is_challenged(plan: &Plan) -> bool {
    matches!(plan.request.auth, Some(Auth::Digest { .. }))
}

/// Returns the call's request with its proof; `None` if there is no challenge yet, or the request
/// has its own Authorization.
#[inline(never)]
pub(crate) fn proved(
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
pub(crate) fn refuse_token(setup: &Setup, feedback: &mut Feedback, call: &Call, now: Nanos) {
    let own = call.request.as_deref().unwrap_or_else(|| setup.targets.template(call.target));
    if !own.stripped.credentials && !has_own(own) {
        feedback.refuse_token(call.user, call.sent, now);
    }
}

/// Decides whether the call is resent, with an answer to the challenge in this head of a 401
/// response.
#[cold]
pub(crate) fn take_challenge(
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

/// Returns whether a response's head requires the plan's login.
pub(crate) fn asks_for(plan: &Plan, head: &[u8]) -> bool {
    is_challenged(plan) && challenge(fields::all(head, "www-authenticate")).is_some()
}

fn answers(plan: &Plan, seed: Seed, id: u64, challenge: Challenge) -> Option<Answers> {
    let Some(Auth::Digest { user, password }) = &plan.request.auth else { return None };
    let mut stream = seed.stream(Purpose::Logins, id);
    let cnonce = format!("{:016x}{:016x}", stream.next_u64(), stream.next_u64());
    Some(Answers::new(challenge, user, password, cnonce))
}

/// Signs a single request before it is first sent, if that needs no challenge. `unix_s`: current
/// time. `None` means unchanged.
pub fn first_proof(plan: &Plan, template: &Template, unix_s: u64) -> Option<Template> {
    template_with_proof(plan, template, None, unix_s)
}

/// Returns the request with an answer to the challenge in a response's head; `None` if the plan's
/// login cannot answer it.
pub fn answer_to(plan: &Plan, template: &Template, head: &[u8]) -> Option<Template> {
    let found = challenge(fields::all(head, "www-authenticate"))?;
    let mut answers = answers(plan, Seed(plan.seed), u64::MAX, found)?;
    template_with_proof(plan, template, Some(&mut answers), 0)
}

fn template_with_proof(
    plan: &Plan,
    template: &Template,
    known: Option<&mut Answers>,
    unix_s: u64,
) -> Option<Template> {
    // the login is not for the redirect's server
    if template.stripped.credentials || has_own(template) {
        return None;
    }
    let target = origin_form(template.target()?)?;
    let made = match &plan.request.auth {
        Some(Auth::Digest { .. }) => {
            let value = known?.authorization(&template.method, target);
            vec![("Authorization".to_owned(), value)]
        }
        Some(Auth::AwsSigV4 { key, secret, scope }) => {
            signed(Signer { key, secret, scope }, template, target, unix_s)?
        }
        Some(Auth::Bearer(token)) => {
            vec![("Authorization".to_owned(), format!("Bearer {token}"))]
        }
        _ => return None,
    };
    with_fields(plan, template, &made).ok()
}

/// Returns whether the request is a message on an open WebSocket, which has no fields.
fn is_message(template: &Template) -> bool {
    let socket = template.socket.as_ref();
    socket.is_some_and(|call| !matches!(call.action, SocketAction::Connect))
}

fn has_own(template: &Template) -> bool {
    fields::find(head_of(&template.bytes), "authorization").is_some()
}

fn signed(
    signer: Signer<'_>,
    template: &Template,
    target: &str,
    unix_s: u64,
) -> Option<Vec<(String, String)>> {
    let head = head_of(&template.bytes);
    let text = |bytes| std::str::from_utf8(bytes).ok();
    let all: Vec<(&str, &str)> = fields::fields(head)
        .filter_map(|(name, value)| Some((text(name)?, text(value)?)))
        .filter(|(name, _)| !name.eq_ignore_ascii_case("host"))
        .collect();
    let host = text(fields::find(head, "host")?)?;
    let body = &template.bytes[head.len()..];
    let request = ToSign { method: &template.method, target, host, fields: &all, body };
    Some(signer.fields(&request, unix_s))
}

/// Returns the head with its empty line; the whole request if it has none.
fn head_of(request: &[u8]) -> &[u8] {
    let end = request.windows(4).position(|at| at == b"\r\n\r\n");
    end.map_or(request, |end| &request[..end + 4])
}

/// Returns the path and query of a target; of the absolute form, which a proxy receives, without
/// the server.
fn origin_form(target: &str) -> Option<&str> {
    match target.split_once("://") {
        Some((_, rest)) if !target.starts_with('/') => rest.find('/').map(|at| &rest[at..]),
        _ => Some(target),
    }
}
