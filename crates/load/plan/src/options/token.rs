//! Tokens of OAuth 2.0 client credentials.

use super::field::{KeyValue, NO_FIELD, PlanField, field};
use super::grammar::*;
use super::{SETTING, Setting, most};
use crate::options::Scalar;
use crate::secrets::MASK;
use crate::{Plan, Secrets, TokenPlan};
use units::ParseError;

const ROW: Setting = Setting {
    heading: "Token (OAuth 2.0 client credentials)",
    page: "requests",
    shown: is_used,
    ..SETTING
};

/// Returns whether the plan has a token table.
fn is_used(plan: &Plan) -> bool {
    plan.token != TokenPlan::default()
}

/// The file has the secret, or the name of a variable or file that contains it; the option is
/// `env:NAME`, `@FILE` or the secret itself.
const SECRET: PlanField = PlanField {
    key: "token.client_secret",
    endings: &["", "_env", "_file"],
    typed: "_typed",
    read: |plan, ending, value, inputs| {
        let KeyValue::One(value) = value else { return Ok(()) };
        let Some(text) = value.typed() else { return Ok(()) };
        let (place, name) = match (ending, text.strip_prefix("env:"), text.strip_prefix('@')) {
            ("_env", ..) => ("_env", &*text),
            ("_file", ..) => ("_file", &*text),
            ("_typed", Some(name), _) => ("_env", name),
            ("_typed", None, Some(path)) => ("_file", path),
            _ => ("", &*text),
        };
        plan.token.client_secret = match place {
            "_env" => inputs.files.variable(name).map_err(ParseError)?,
            "_file" => {
                let bytes = inputs.files.read(name).map_err(ParseError)?;
                let text = String::from_utf8(bytes);
                let text = text.map_err(|_| ParseError("it is not UTF-8 text".to_owned()))?;
                // editors end a file with a line break
                text.trim_end_matches(['\r', '\n']).to_owned()
            }
            _ => name.to_owned(),
        };
        Ok(())
    },
    show: |plan, secrets| {
        let secret = &plan.token.client_secret;
        let masked = secrets == Secrets::Masked && !secret.is_empty();
        ("", KeyValue::One(Scalar::text(if masked { MASK } else { secret })))
    },
    ..NO_FIELD
};

#[rustfmt::skip] // a row is read as a row
pub(super) static SETTINGS: &[Setting] = &[
    Setting { name: "token-url", value: "URL", without: &["user", "bearer", "digest", "aws-sigv4"], field: field!(off token.url, HTTP_URL),
        help: "Request a token here, send it with every request (Authorization: Bearer), and renew it before it expires",
        more: "OAuth 2.0 client credentials (RFC 6749 section 4.4). Token requests are counted apart from the load.", ..ROW },
    Setting { name: "token-client", value: "ID", needs: Some("token-url"), field: field!(at token.client_id, WORDS),
        help: "Client id for the token request", ..ROW },
    Setting { name: "token-secret", value: "SECRET", needs: Some("token-url"), field: SECRET,
        help: "Client secret: env:NAME for an environment variable, @FILE for a file, or the secret itself", ..ROW },
    Setting { name: "token-scope", value: "SCOPE", needs: Some("token-url"), field: field!(off token.scope, TEXT),
        help: "Scope to request, such as 'orders:read orders:write'", ..ROW },
    Setting { name: "token-audience", value: "TEXT", needs: Some("token-url"), field: field!(off token.audience, TEXT),
        help: "Audience to request, for servers that require one", ..ROW },
    Setting { name: "token-login", value: "WAY", choices: &["basic", "body"], needs: Some("token-url"), field: field!(at token.login, CLIENT_LOGIN),
        help: "How the client id and secret are sent: basic (Authorization header) or body (form fields) [default: basic]", ..ROW },
    Setting { name: "token-refresh-before", value: "TIME", needs: Some("token-url"), field: field!(at token.refresh_before, DURATION),
        bounds: &[most(86_400.0, "is above a day; give 30s or so")],
        help: "Renew a token this long before it expires, at most half of its lifetime [default: 30s]", ..ROW },
    Setting { name: "token-per-user", needs: Some("token-url"), field: field!(at token.per_user, SWITCH),
        help: "A token for each user, instead of one for all", ..ROW },
];
