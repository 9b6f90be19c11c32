//! Tokens that are renewed.

use super::Problems;
use crate::{Load, Plan, TOKEN_USERS_MAX, TokenPlan};

pub(super) fn check(plan: &Plan, problems: &mut Problems) {
    let token = &plan.token;
    if *token == TokenPlan::default() {
        return;
    }
    problems.add_faults(plan, "token");
    if !plan.uses_tokens() {
        let why = "[token] has no url: give --token-url, the address at which tokens are requested";
        return problems.add("--token-url", why);
    }
    let open = plan.loads().iter().any(|load| matches!(load, Load::Open { .. }));
    for (wrong, option, text) in [
        (
            token.client_id.is_empty(),
            "--token-client",
            "--token-url needs --token-client: the client id for the token request",
        ),
        (
            token.client_secret.is_empty(),
            "--token-secret",
            "--token-url needs --token-secret: env:NAME, @FILE or the secret itself",
        ),
        (
            plan.request.auth.is_some(),
            "--token-url",
            "--token-url and the plan's login both write the header Authorization; drop one",
        ),
        (
            token.per_user && open,
            "--token-per-user",
            "--token-per-user needs a fixed number of users (-c); with a rate, all calls share one \
             token",
        ),
        (
            token.per_user && plan.token_count() > TOKEN_USERS_MAX,
            "--token-per-user",
            "--token-per-user takes at most 10000 users: all tokens are requested before the run",
        ),
        (
            plan.specweb99.is_some(),
            "--token-url",
            "--token-url cannot be used with --workload specweb99-like, whose requests are fixed; drop one",
        ),
    ] {
        problems.add_if(wrong, option, text);
    }
}
