//! `[token]`: a token of OAuth 2.0 client credentials (RFC 6749 section 4.4), requested before the
//! run and renewed during it.

use crate::Plan;
use units::Nanos;
use url::Url;
use workload::schedule::Share;

/// Maximum number of users that each have their own token: all are requested before the run.
pub const TOKEN_USERS_MAX: u32 = 10_000;

/// Placement of the client's id and secret in a token request (RFC 6749 section 2.3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientLogin {
    #[default]
    Basic,
    /// In the fields of the form.
    Body,
}

pub(crate) const CLIENT_LOGINS: [(&str, ClientLogin); 2] =
    [("basic", ClientLogin::Basic), ("body", ClientLogin::Body)];

/// Source of tokens, and the form of token requests.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenPlan {
    /// URL of the token endpoint; `None` if no tokens are used.
    pub url: Option<Url>,
    pub client_id: String,
    pub client_secret: String,
    pub scope: Option<String>,
    pub audience: Option<String>,
    pub login: ClientLogin,
    /// Time before a token's expiry when it is renewed; at most half of its lifetime.
    pub refresh_before: Nanos,
    /// True if each user has its own token; otherwise all share one.
    pub per_user: bool,
}

impl Default for TokenPlan {
    fn default() -> Self {
        TokenPlan {
            url: None,
            client_id: String::new(),
            client_secret: String::new(),
            scope: None,
            audience: None,
            login: ClientLogin::Basic,
            refresh_before: Nanos::from_secs(30),
            per_user: false,
        }
    }
}

impl std::fmt::Debug for TokenPlan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenPlan")
            .field("url", &self.url.as_ref().map(Url::as_str))
            .field("client_id", &self.client_id)
            .field("client_secret", &"***")
            .finish_non_exhaustive()
    }
}

impl Plan {
    /// Returns whether requests carry a token that is renewed.
    pub fn uses_tokens(&self) -> bool {
        self.token.url.is_some()
    }

    /// Returns the number of tokens in use at once.
    pub fn token_count(&self) -> u32 {
        let users = |load: &crate::Load| match load {
            crate::Load::Closed { users, .. } => *users,
            crate::Load::Open { .. } => 1,
        };
        match (self.uses_tokens(), self.token.per_user) {
            (false, _) => 0,
            (true, false) => 1,
            // users of scenarios are numbered from 0 in each scenario
            (true, true) => self.loads().into_iter().map(users).max().unwrap_or(1).max(1),
        }
    }

    /// Returns the number of tokens in use at once on a machine with these parts of the load.
    pub fn token_count_of(&self, parts: &[Share]) -> u32 {
        let all = self.token_count();
        if !self.token.per_user {
            return all;
        }
        let own: u64 = parts.iter().map(|part| part.count_of(u64::from(all))).sum();
        u32::try_from(own).unwrap_or(u32::MAX)
    }
}
