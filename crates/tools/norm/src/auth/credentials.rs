//! Credentials sent by a client (RFC 7617 §2).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::header::{self, HeaderMap};

#[derive(PartialEq, Eq)]
pub(super) struct Credentials {
    pub(super) user: String,
    pub(super) password: String,
}

/// The password stays out of every message.
impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Credentials of {:?}", self.user)
    }
}

impl Credentials {
    /// Parses the credentials; `None` without an Authorization field, for several, for another
    /// scheme, or for an unreadable one.
    pub(super) fn new(headers: &HeaderMap) -> Option<Credentials> {
        let mut fields = headers.get_all(header::AUTHORIZATION).iter();
        let field = fields.next()?.to_str().ok()?;
        if fields.next().is_some() {
            return None;
        }
        let (scheme, token) = field.trim().split_once(' ')?;
        // the scheme's case does not matter (RFC 9110 §11.1)
        if !scheme.eq_ignore_ascii_case("basic") {
            return None;
        }
        let text = String::from_utf8(STANDARD.decode(token.trim()).ok()?).ok()?;
        // a password may hold colons, a name may not
        let (user, password) = text.split_once(':')?;
        Some(Credentials { user: user.to_owned(), password: password.to_owned() })
    }
}
