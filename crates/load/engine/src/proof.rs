//! Logins whose proof depends on the request: the fields sent with it, and the interpretation of a
//! server's challenge. A login that is a plain field, like Basic, is in the rendered request.

use crate::render::with_fields;
use plan::{Auth, Plan};
use protocol::http1::fields;
use protocol::login::digest::{Answers, Challenge, challenge};
use protocol::login::sigv4::{Signer, ToSign};
use units::{Purpose, Seed};
use workload::{SocketAction, Template};

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

/// Returns whether a response's head requires the plan's login.
pub(crate) fn asks_for(plan: &Plan, head: &[u8]) -> bool {
    is_challenged(plan) && challenge(fields::all(head, "www-authenticate")).is_some()
}

/// Returns the state with which one user answers a challenge of Digest. `id`: number of the user, for its nonce.
pub(crate) fn answers(plan: &Plan, seed: Seed, id: u64, challenge: Challenge) -> Option<Answers> {
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

/// Returns the request with its proof, for an answer to the last challenge if there was one.
pub(crate) fn template_with_proof(
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
pub(crate) fn is_message(template: &Template) -> bool {
    let socket = template.socket.as_ref();
    socket.is_some_and(|call| !matches!(call.action, SocketAction::Connect))
}

/// Returns whether the request has its own Authorization.
pub(crate) fn has_own(template: &Template) -> bool {
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
