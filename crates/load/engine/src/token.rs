//! Tokens of OAuth 2.0 client credentials (RFC 6749 section 4.4): when to request one, the
//! request, and the interpretation of the answer. Time is an argument; the caller makes the
//! exchanges. Workers read tokens while they run, and report tokens that the server refuses.

use crate::exchange::{ExchangeOutcome, Message, Outgoing};
use crate::render::{Own, build_own};
use plan::{ClientLogin, Plan};
use protocol::http1::fields;
use protocol::http1::request::basic_authorization;
use sample::TokenFacts;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use units::Nanos;
use url::{Position, Url, form_urlencoded};
use workload::schedule::Share;

/// Maximum number of token requests in flight.
pub const TOKENS_AT_ONCE_MAX: usize = 16;
/// Longest wait for an answer to a token request.
const PATIENCE_MAX: Nanos = Nanos::from_secs(10);
/// Pause after a failed request, doubled by each further failure, and its maximum. The same applies
/// to tokens that the server refuses in a row.
const PAUSE: Nanos = Nanos::SECOND;
const PAUSE_MAX: Nanos = Nanos::from_secs(30);
/// Minimum time from a token to its renewal, however short its lifetime.
const RENEWALS_APART: Nanos = Nanos::from_millis(250);
/// Failed requests after which a refused token is no longer replaced.
const FAILURES_MAX: u32 = 3;
/// Time before the expiry of a token that cannot be renewed at which the run ends, because the
/// order takes time to reach the workers.
const ENDS_EARLY: Nanos = Nanos::from_millis(100);
/// Maximum length of a token in bytes; servers refuse longer heads.
const TOKEN_MAX: usize = 16 << 10;
/// Maximum number of characters of the server's explanation in a message.
const EXPLANATION_MAX: usize = 200;

/// The tokens of a session: one, or one for each user of this machine.
#[derive(Debug)]
pub struct Tokens {
    url: Url,
    request: Message,
    patience: Nanos,
    refresh_before: Nanos,
    per_user: bool,
    state: Mutex<TokenState>,
}

#[derive(Debug, Default)]
struct TokenState {
    held: Vec<HeldToken>,
    facts: TokenFacts,
    /// The reason why no usable token is left.
    lost: Option<String>,
}

/// The current token as workers read it: they copy the value when the version changes, so that a
/// call takes no lock.
#[derive(Debug, Default)]
struct Published {
    version: AtomicU64,
    value: Mutex<Option<Arc<str>>>,
}

impl Published {
    fn publish(&self, value: &Arc<str>) {
        *lock(&self.value) = Some(value.clone());
        self.version.fetch_add(1, Ordering::Release);
    }
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A worker's copies of the tokens that its calls carry.
#[derive(Debug)]
pub(crate) struct TokenCopies {
    tokens: Arc<Tokens>,
    /// The parts of the load that this machine has.
    parts: Vec<Share>,
    /// By user; `None` for the token that all share.
    copies: BTreeMap<Option<u64>, TokenCopy>,
}

#[derive(Debug)]
struct TokenCopy {
    published: Arc<Published>,
    version: u64,
    value: Option<Arc<str>>,
}

impl TokenCopies {
    pub(crate) fn new(tokens: Arc<Tokens>, parts: &[Share]) -> TokenCopies {
        TokenCopies { tokens, parts: parts.to_vec(), copies: BTreeMap::new() }
    }

    /// Returns the value of Authorization for a user's request; `None` if there is no token.
    pub(crate) fn authorization(&mut self, user: Option<u64>) -> Option<&str> {
        let TokenCopies { tokens, parts, copies } = self;
        let user = user.filter(|_| tokens.per_user);
        let copy = match copies.entry(user) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let published = tokens.published(row(parts, user))?;
                new.insert(TokenCopy { published, version: 0, value: None })
            }
        };
        let version = copy.published.version.load(Ordering::Acquire);
        if version != copy.version {
            copy.version = version;
            copy.value.clone_from(&lock(&copy.published.value));
        }
        copy.value.as_deref()
    }

    /// Notes that the server answered 401 to a request sent at this instant.
    pub(crate) fn refuse(&self, user: Option<u64>, sent: Nanos, now: Nanos) {
        let user = user.filter(|_| self.tokens.per_user);
        self.tokens.refuse(row(&self.parts, user), sent, now);
    }
}

/// Returns the row of a user's token. Rows are the users of this machine in ascending order.
fn row(parts: &[Share], user: Option<u64>) -> usize {
    let below = |id| parts.iter().map(|part| part.count_of(id)).sum::<u64>();
    user.map_or(0, |id| usize::try_from(below(id)).unwrap_or(usize::MAX))
}

/// One token, and its renewal.
#[derive(Clone, Debug)]
struct HeldToken {
    published: Arc<Published>,
    /// Value of the field Authorization; `None` before the first one.
    value: Option<Arc<str>>,
    obtained: Nanos,
    expires: Nanos,
    /// Instant of the next token request.
    next: Nanos,
    is_asked: bool,
    /// The server answered 401 to this token.
    refused: bool,
    /// Number of tokens refused in a row, and of requests failed in a row.
    refusals: u32,
    failures: u32,
}

impl HeldToken {
    fn none(published: Arc<Published>) -> HeldToken {
        HeldToken {
            published,
            value: None,
            obtained: Nanos::ZERO,
            expires: Nanos::NEVER,
            next: Nanos::ZERO,
            is_asked: false,
            refused: false,
            refusals: 0,
            failures: 0,
        }
    }

    fn is_usable(&self, now: Nanos) -> bool {
        self.value.is_some() && now < self.expires
    }
}

/// Returns the pause before the next attempt after `count` failures in a row.
fn pause_after(count: u32) -> Nanos {
    Nanos(PAUSE.0 << count.saturating_sub(1).min(5)).min(PAUSE_MAX)
}

impl Tokens {
    /// Creates the tokens for a plan's token table; `None` without a table.
    ///
    /// # Errors
    /// Fails if a request cannot be rendered.
    pub fn new(plan: &Plan) -> Result<Option<Tokens>, String> {
        let Some(url) = plan.token.url.clone() else { return Ok(None) };
        Ok(Some(Tokens {
            request: token_request(plan, &url)?,
            url,
            patience: plan.timeouts.call.min(PATIENCE_MAX),
            refresh_before: plan.token.refresh_before,
            per_user: plan.token.per_user,
            state: Mutex::default(),
        }))
    }

    fn state(&self) -> MutexGuard<'_, TokenState> {
        lock(&self.state)
    }

    /// Provides for at least `count` tokens.
    pub fn provide(&self, count: u32) {
        let mut state = self.state();
        let count = state.held.len().max(count as usize);
        state.held.resize_with(count, || HeldToken::none(Arc::default()));
    }

    /// Returns the value of Authorization with the first token; `None` if there is no token.
    pub fn authorization(&self) -> Option<Arc<str>> {
        self.state().held.first()?.value.clone()
    }

    fn published(&self, row: usize) -> Option<Arc<Published>> {
        Some(self.state().held.get(row)?.published.clone())
    }

    /// Notes that the server answered 401 to a request sent at this instant with the token of this
    /// row. Another token is requested, once for each token.
    fn refuse(&self, row: usize, sent: Nanos, now: Nanos) {
        let mut state = self.state();
        let Some(token) = state.held.get_mut(row) else { return };
        if token.refused || token.value.is_none() || sent < token.obtained {
            return;
        }
        token.refused = true;
        token.refusals += 1;
        // the first refused token is replaced at once
        let pause = match token.refusals {
            1 => Nanos::ZERO,
            more => pause_after(more - 1),
        };
        token.next = token.next.min(now + pause);
    }

    /// Returns when the next request is due; `NEVER` without one.
    pub fn next_due(&self) -> Nanos {
        let state = self.state();
        let waiting = state.held.iter().filter(|token| !token.is_asked);
        waiting.map(|token| token.next).min().unwrap_or(Nanos::NEVER)
    }

    /// Returns the tokens to request now, by row; the caller must report an answer for each.
    pub fn take_due(&self, now: Nanos) -> Vec<usize> {
        let mut state = self.state();
        let asked = state.held.iter().filter(|token| token.is_asked).count();
        let due = |(_, token): &(usize, &mut HeldToken)| !token.is_asked && token.next <= now;
        let rows = state.held.iter_mut().enumerate().filter(due);
        rows.take(TOKENS_AT_ONCE_MAX.saturating_sub(asked))
            .map(|(row, token)| {
                token.is_asked = true;
                row
            })
            .collect()
    }

    /// Returns a request for a token.
    pub fn request(&self) -> Outgoing {
        Outgoing {
            url: self.url.clone(),
            message: self.request.clone(),
            timeout: self.patience,
            negotiates: false,
        }
    }

    /// Processes the answer to the request for the token of this row, which was sent at `sent`.
    pub fn answered(&self, row: usize, heard: &ExchangeOutcome, sent: Nanos, now: Nanos) {
        let read = read_answer(&self.url, heard);
        let state = &mut *self.state();
        let Some(token) = state.held.get_mut(row) else { return };
        token.is_asked = false;
        let facts = &mut state.facts;
        match read {
            Ok((value, lifetime)) => {
                facts.obtained += 1;
                facts.replaced += u64::from(token.refused);
                facts.renewed += u64::from(token.value.is_some() && !token.refused);
                facts.slowest = facts.slowest.max(now - sent);
                let refusals = if token.refused { token.refusals } else { 0 };
                token.published.publish(&value);
                *token = HeldToken {
                    value: Some(value),
                    obtained: now,
                    refusals,
                    ..HeldToken::none(token.published.clone())
                };
                token.next = Nanos::NEVER;
                if let Some(lifetime) = lifetime {
                    token.expires = sent + lifetime;
                    let early = self.refresh_before.min(Nanos(lifetime.0 / 2));
                    token.next = (token.expires - early).max(now + RENEWALS_APART);
                }
            }
            Err(why) => {
                facts.failed += 1;
                token.failures += 1;
                token.next = now + pause_after(token.failures);
                if !token.is_usable(now) || (token.refused && token.failures >= FAILURES_MAX) {
                    state.lost.get_or_insert_with(|| why.clone());
                }
                facts.trouble = Some(why);
            }
        }
    }

    /// Returns why no token is usable: it expired or was refused, and was not renewed.
    pub fn lost(&self, now: Nanos) -> Option<String> {
        let state = self.state();
        let expired = |token: &HeldToken| token.failures > 0 && now + ENDS_EARLY >= token.expires;
        let expired = state.held.iter().any(expired);
        state.lost.clone().or_else(|| state.facts.trouble.clone().filter(|_| expired))
    }

    /// Returns whether every token is valid and no renewal is due.
    pub fn are_ready(&self, now: Nanos) -> bool {
        let state = self.state();
        state.held.iter().all(|token| token.is_usable(now) && token.next > now)
    }

    /// Returns the counts since the last call.
    pub fn take_facts(&self) -> TokenFacts {
        let mut state = self.state();
        state.lost = None;
        std::mem::take(&mut state.facts)
    }
}

/// Returns the form, with the client's id and secret as the plan places them (RFC 6749 section
/// 2.3.1).
fn token_request(plan: &Plan, url: &Url) -> Result<Message, String> {
    let token = &plan.token;
    let mut form = form_urlencoded::Serializer::new(String::new());
    form.append_pair("grant_type", "client_credentials");
    let further = [("scope", &token.scope), ("audience", &token.audience)];
    for (name, value) in further.into_iter().filter_map(|(name, it)| Some((name, it.as_ref()?))) {
        form.append_pair(name, value);
    }
    let fault = |why: String| format!("the token request cannot be sent: {why}");
    let authorization = match token.login {
        ClientLogin::Basic => {
            let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect();
            let (id, secret): (String, String) =
                (encoded(&token.client_id), encoded(&token.client_secret));
            Some(basic_authorization(&id, &secret).map_err(|error| fault(error.to_string()))?)
        }
        ClientLogin::Body => {
            form.append_pair("client_id", &token.client_id);
            form.append_pair("client_secret", &token.client_secret);
            None
        }
    };
    let body = form.finish();
    let mut own_plan = Plan::for_url(url.clone());
    own_plan.request.user_agent.clone_from(&plan.request.user_agent);
    own_plan.connection.proxy.clone_from(&plan.connection.proxy);
    let field = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let headers = [
        field("Content-Type", "application/x-www-form-urlencoded"),
        field("Accept", "application/json"),
    ];
    let own = Own {
        target: &url[Position::BeforePath..Position::AfterQuery],
        headers: &headers,
        authorization: authorization.as_deref(),
        body: Some(body.as_bytes()),
        ..Own::default()
    };
    let absolute = plan.connection.proxy.is_some() && url.scheme() == "http";
    let template = build_own(&own_plan, url, "POST", &own, 0, absolute);
    Ok(Message::new(template.map_err(|error| fault(error.to_string()))?, None))
}

/// Returns the value of Authorization and lifetime of the token in an answer.
fn read_answer(url: &Url, heard: &ExchangeOutcome) -> Result<(Arc<str>, Option<Nanos>), String> {
    let endpoint = format!("the token endpoint {}", &url[..Position::AfterPath]);
    let reply = heard.result.as_ref();
    let reply =
        reply.map_err(|trouble| format!("{endpoint} sent no response: {}", trouble.text))?;
    let json: Option<serde_json::Value> = match fields::find(&reply.head, "content-encoding") {
        None => serde_json::from_slice(&reply.body).ok(),
        Some(_) => None,
    };
    let text = |name: &str| json.as_ref()?.get(name)?.as_str();
    let status = reply.facts.status;
    if status != 200 {
        let why = [text("error"), text("error_description")].into_iter().flatten();
        let why: String = why.collect::<Vec<_>>().join(": ");
        let why: String = why.chars().filter(|it| !it.is_control()).take(EXPLANATION_MAX).collect();
        let why = if why.is_empty() { why } else { format!(" ({why})") };
        return Err(format!("{endpoint} answered {status}{why}"));
    }
    let Some(token) = text("access_token") else {
        return Err(format!("{endpoint} answered 200 without an access_token in JSON"));
    };
    if token.is_empty() || token.len() > TOKEN_MAX || !token.bytes().all(|it| it.is_ascii_graphic())
    {
        return Err(format!("{endpoint} answered with a token that a header cannot carry"));
    }
    if let Some(kind) = text("token_type").filter(|kind| !kind.eq_ignore_ascii_case("bearer")) {
        let kind: String = kind.chars().filter(|it| !it.is_control()).take(20).collect();
        return Err(format!("{endpoint} answered with a token of type {kind}, not Bearer"));
    }
    Ok((format!("Bearer {token}").into(), lifetime(json.as_ref())))
}

/// Parses a lifetime in seconds: a number, or its digits as a text, as some servers write it.
fn lifetime(json: Option<&serde_json::Value>) -> Option<Nanos> {
    let given = json?.get("expires_in")?;
    let seconds = given.as_f64().or_else(|| given.as_str()?.parse().ok())?;
    // a lifetime of a century or more counts as unlimited
    (seconds.is_finite() && seconds < 3e9).then(|| Nanos::from_secs_f64(seconds.max(0.0)))
}

#[cfg(test)]
mod tests;
