//! One user's cookies (RFC 6265), kept by the `cookie_store` crate.

use cookie_store::{Cookie, CookieStore};
use url::Url;

/// Cookies of one user. Bounded: a server that sets more than `COOKIES_MAX` that have not expired loses the
/// surplus.
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
        // one that is not for this URL is an error as well
        let Ok(cookie) = Cookie::parse(text.to_owned(), url) else { return };
        if self.has_room_for(&cookie) {
            self.used |= self.store.insert(cookie, url).is_ok();
        }
    }

    /// A full jar drops what has expired, and then takes in no more than changes of what it has.
    fn has_room_for(&mut self, cookie: &Cookie<'_>) -> bool {
        let known = cookie
            .domain
            .as_cow()
            .is_some_and(|domain| self.store.contains_any(&domain, &cookie.path, cookie.name()));
        if known || self.store.iter_any().count() < COOKIES_MAX {
            return true;
        }
        let expired = self.store.iter_any().filter(|kept| kept.is_expired());
        let places = expired.filter_map(|kept| {
            let domain = kept.domain.as_cow()?.into_owned();
            Some((domain, String::from(&kept.path), kept.name().to_owned()))
        });
        let places: Vec<(String, String, String)> = places.collect();
        for (domain, path, name) in &places {
            self.store.remove(domain, path, name);
        }
        !places.is_empty()
    }

    /// A cookie was ever kept in it; where none was, there is none to send.
    pub fn is_used(&self) -> bool {
        self.used
    }

    /// The value of the `Cookie` field for a request to `url`; `None` when there is none to send. Cookies of
    /// longer paths come first (RFC 6265 §5.4), and those of one path by name.
    pub fn header(&self, url: &Url) -> Option<String> {
        let mut cookies = self.store.matches(url);
        // the order must not be that of a hash table, whose seed is another one in each process
        cookies.sort_by(|a, b| {
            let by_path = b.path.len().cmp(&a.path.len());
            let by_name = || a.name().cmp(b.name());
            by_path.then_with(by_name).then_with(|| a.domain.as_cow().cmp(&b.domain.as_cow()))
        });
        let pairs: Vec<String> =
            cookies.iter().map(|cookie| format!("{}={}", cookie.name(), cookie.value())).collect();
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

    #[test]
    fn cookies_that_have_expired_make_room() {
        let (mut jar, home) = (Jar::new(), url("http://h.example/"));
        for n in 0..COOKIES_MAX {
            jar.absorb(&home, format!("c{n}=1").as_bytes());
            jar.absorb(&home, format!("c{n}=; Max-Age=0").as_bytes());
        }
        jar.absorb(&home, b"id=1");
        assert_eq!(jar.header(&home).as_deref(), Some("id=1"));
        assert_eq!(jar.store.iter_any().count(), 1);
    }

    #[test]
    fn a_full_jar_takes_changes_of_what_it_has() {
        let (mut jar, app) = (Jar::new(), url("http://h.example/app/x"));
        for set in ["id=1; Path=/app", "wide=1; Domain=h.example; Path=/app/x"] {
            jar.absorb(&app, set.as_bytes());
        }
        for n in 2..COOKIES_MAX {
            jar.absorb(&app, format!("c{n}=1; Path=/other").as_bytes());
        }
        for set in ["id=2; Path=/app", "wide=2; Domain=h.example; Path=/app/x", "new=1"] {
            jar.absorb(&app, set.as_bytes());
        }
        assert_eq!(jar.header(&app).as_deref(), Some("wide=2; id=2"));
        jar.absorb(&app, b"id=; Path=/app; Max-Age=0");
        assert_eq!(jar.header(&app).as_deref(), Some("wide=2"));
    }

    #[test]
    fn cookies_of_longer_paths_come_first_and_then_by_name() {
        let app = url("http://h.example/app/x");
        for _ in 0..20 {
            let mut jar = Jar::new();
            for set in ["id=a; Path=/", "z=1; Path=/app", "id=b; Path=/app", "y=1; Path=/"] {
                jar.absorb(&app, set.as_bytes());
            }
            assert_eq!(jar.header(&app).as_deref(), Some("id=b; z=1; id=a; y=1"));
        }
    }
}
