//! One user's cookies (RFC 6265), kept by the `cookie_store` crate.

use cookie_store::{CookieStore, RawCookie};
use url::Url;

/// Cookies of one user. Bounded: a server that sets more than `COOKIES_MAX` loses the surplus.
#[derive(Clone, Debug, Default)]
pub struct Jar {
    store: CookieStore,
    /// A cookie was ever kept: most users of most servers have none, and are not asked.
    used: bool,
}

/// RFC 6265 §6.1 asks for at least 50 per domain and 3,000 in all; one user of one site needs few.
const COOKIES_MAX: usize = 200;

impl Jar {
    pub fn new() -> Jar {
        Jar::default()
    }

    /// Takes one `Set-Cookie` value in. What is no cookie, or not for this host, is left out, as a
    /// browser would.
    pub fn absorb(&mut self, url: &Url, set_cookie: &[u8]) {
        let Ok(text) = std::str::from_utf8(set_cookie) else { return };
        if let Ok(cookie) = RawCookie::parse(text.to_owned()) {
            let known = self.store.get(url.host_str().unwrap_or(""), "/", cookie.name()).is_some();
            if known || self.store.iter_any().count() < COOKIES_MAX {
                // an error says that the cookie is not for this URL: then it is not kept
                drop(self.store.insert_raw(&cookie.into_owned(), url));
                self.used = true;
            }
        }
    }

    /// A cookie was ever kept in it; where none was, there is none to send.
    pub fn is_used(&self) -> bool {
        self.used
    }

    /// The value of the `Cookie` field for a request to `url`; `None` when there is none to send.
    pub fn header(&self, url: &Url) -> Option<String> {
        let pairs: Vec<String> = self
            .store
            .get_request_values(url)
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        (!pairs.is_empty()).then(|| pairs.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn cookies_come_back_to_their_own_host_and_path() {
        let mut jar = Jar::new();
        jar.absorb(&url("http://127.0.0.1:80/a/b"), b"id=7; Path=/a");
        assert_eq!(jar.header(&url("http://127.0.0.1:80/a/c")).as_deref(), Some("id=7"));
        assert_eq!(jar.header(&url("http://127.0.0.1:80/x")), None);
        assert_eq!(jar.header(&url("http://127.0.0.2:80/a")), None);
    }

    #[test]
    fn a_new_value_replaces_the_old_and_max_age_zero_removes_it() {
        let (mut jar, home) = (Jar::new(), url("http://h.example/"));
        jar.absorb(&home, b"id=1");
        jar.absorb(&home, b"id=2");
        assert_eq!(jar.header(&home).as_deref(), Some("id=2"));
        jar.absorb(&home, b"id=; Max-Age=0");
        assert_eq!(jar.header(&home), None);
    }

    #[test]
    fn bytes_that_are_no_cookie_are_left_out() {
        let (mut jar, home) = (Jar::new(), url("http://h.example/"));
        for bad in [&b"\xff\xfe=1"[..], b"", b"=", b";;;", b"a=b; Domain=other.example"] {
            jar.absorb(&home, bad);
        }
        assert_eq!(jar.header(&home), None);
    }

    #[test]
    fn a_flood_of_cookies_is_bounded() {
        let (mut jar, home) = (Jar::new(), url("http://h.example/"));
        for n in 0..1_000 {
            jar.absorb(&home, format!("c{n}=1").as_bytes());
        }
        assert_eq!(jar.store.iter_any().count(), COOKIES_MAX);
    }
}
