//! One user's cookies (RFC 6265), stored by the `cookie_store` crate. Dates, which that crate
//! parses too strictly, and public suffixes, which it does not know, are handled here.

mod date;

use cookie_store::{Cookie, CookieStore, RawCookie, StoreAction};
use public_suffix::DEFAULT_PROVIDER;
use url::Url;

/// Cookies of one user. Bounded: cookies beyond `COOKIES_MAX` that have not expired are dropped.
#[derive(Clone, Debug, Default)]
pub struct Jar {
    store: CookieStore,
    /// The stored cookies, in the order of their creation.
    created: Vec<CookieId>,
    /// True once a cookie was stored: most users of most servers have none, and skip the lookup.
    used: bool,
}

/// A cookie's identity: another cookie with the same identity replaces it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CookieId {
    domain: String,
    path: String,
    name: String,
}

impl CookieId {
    fn new(cookie: &Cookie<'_>) -> Option<CookieId> {
        let domain = cookie.domain.as_cow()?.into_owned();
        Some(CookieId { domain, path: String::from(&cookie.path), name: cookie.name().to_owned() })
    }
}

/// Maximum number of cookies. RFC 6265 §6.1 recommends at least 50 per domain and 3,000 in total;
/// one user of one site needs few.
const COOKIES_MAX: usize = 200;

impl Jar {
    pub fn new() -> Jar {
        Jar::default()
    }

    /// Stores one `Set-Cookie` value. Values that are not a cookie, or not for this host, are
    /// dropped, as in a browser.
    pub fn absorb(&mut self, url: &Url, set_cookie: &[u8]) {
        let Ok(text) = std::str::from_utf8(set_cookie) else { return };
        let Ok(mut raw) = RawCookie::parse(text.to_owned()) else { return };
        raw.unset_expires();
        if let Some(expires) = expires(text) {
            raw.set_expires(expires);
        }
        if !settle_domain(&mut raw, url) {
            return;
        }
        // a cookie that is not for this URL is an error too
        let Ok(cookie) = Cookie::try_from_raw_cookie(&raw, url) else { return };
        let Some(place) = CookieId::new(&cookie) else { return };
        if !self.has_room_for(&cookie) {
            return;
        }
        match self.store.insert(cookie, url) {
            Ok(StoreAction::ExpiredExisting) => self.created.retain(|known| *known != place),
            Ok(StoreAction::Inserted | StoreAction::UpdatedExisting) => {
                self.used = true;
                if !self.created.contains(&place) {
                    self.created.push(place);
                }
            }
            Err(_) => {}
        }
    }

    /// Returns whether there is room for a cookie. Drops expired cookies from a full jar, which
    /// otherwise accepts only changes of stored cookies.
    fn has_room_for(&mut self, cookie: &Cookie<'_>) -> bool {
        let known = cookie
            .domain
            .as_cow()
            .is_some_and(|domain| self.store.contains_any(&domain, &cookie.path, cookie.name()));
        if known || self.store.iter_any().count() < COOKIES_MAX {
            return true;
        }
        let expired = self.store.iter_any().filter(|kept| kept.is_expired());
        let places: Vec<CookieId> = expired.filter_map(CookieId::new).collect();
        for place in &places {
            self.store.remove(&place.domain, &place.path, &place.name);
            self.created.retain(|known| known != place);
        }
        !places.is_empty()
    }

    /// Returns true if a cookie was ever stored; an unused jar has no cookies to send.
    pub fn is_used(&self) -> bool {
        self.used
    }

    /// Returns the value of the `Cookie` field for a request to `url`; `None` without cookies.
    /// Cookies with longer paths come first, and those with paths of equal length in order of
    /// creation (RFC 6265 §5.4).
    pub fn header(&self, url: &Url) -> Option<String> {
        let mut cookies = self.store.matches(url);
        if cookies.len() > 1 {
            // the order must not depend on a hash table, whose seed differs in each process
            cookies.sort_by_cached_key(|cookie| {
                let place = CookieId::new(cookie);
                let created = self.created.iter().position(|known| Some(known) == place.as_ref());
                (std::cmp::Reverse(cookie.path.len()), created)
            });
        }
        let pairs: Vec<String> =
            cookies.iter().map(|cookie| format!("{}={}", cookie.name(), cookie.value())).collect();
        (!pairs.is_empty()).then(|| pairs.join("; "))
    }
}

/// Returns the date of the last Expires attribute that has one.
fn expires(set_cookie: &str) -> Option<time::OffsetDateTime> {
    let attributes =
        set_cookie.split(';').skip(1).filter_map(|attribute| attribute.split_once('='));
    let values = attributes.filter(|(name, _)| name.trim().eq_ignore_ascii_case("expires"));
    values.filter_map(|(_, value)| date::parse(value.as_bytes())).last()
}

/// Restricts a cookie for a public suffix, such as `co.uk` or any single label, to its own host
/// (RFC 6265 §5.3 step 5). Returns false if the cookie is refused.
fn settle_domain(cookie: &mut RawCookie<'_>, url: &Url) -> bool {
    let Some(domain) = cookie.domain().map(str::to_ascii_lowercase) else { return true };
    if !DEFAULT_PROVIDER.is_effective_tld(&domain) {
        return true;
    }
    cookie.unset_domain();
    url.host_str() == Some(domain.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn cookies_are_sent_to_their_host_and_path() {
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
    fn invalid_cookie_bytes_are_dropped() {
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
    fn a_full_jar_updates_existing_cookies() {
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
    fn cookies_are_ordered_by_path_length_then_age() {
        let app = url("http://h.example/app/x");
        for _ in 0..20 {
            let mut jar = Jar::new();
            for set in [
                "id=a; Path=/",
                "z=1; Path=/app",
                "id=b; Path=/app",
                "y=1; Domain=h.example; Path=/",
                "x=1; Path=/",
            ] {
                jar.absorb(&app, set.as_bytes());
            }
            assert_eq!(jar.header(&app).as_deref(), Some("z=1; id=b; id=a; y=1; x=1"));
            // a change keeps the time of creation, and a cookie that was removed begins again
            jar.absorb(&app, b"id=c; Path=/");
            jar.absorb(&app, b"z=; Path=/app; Max-Age=0");
            jar.absorb(&app, b"z=2; Path=/app");
            assert_eq!(jar.header(&app).as_deref(), Some("id=b; z=2; id=c; y=1; x=1"));
        }
    }

    #[test]
    fn a_date_in_the_past_removes_a_cookie() {
        for date in [
            "Thu, 1 Jan 1970 00:00:00 UTC",
            "thursday, 01-january-1970 0:00:00",
            "6 Nov 94 8:49:37",
        ] {
            let (mut jar, home) = (Jar::new(), url("http://h.example/"));
            jar.absorb(&home, b"id=1; expires=never");
            assert_eq!(jar.header(&home).as_deref(), Some("id=1"));
            jar.absorb(&home, format!("id=; Expires=never; EXPIRES = {date}").as_bytes());
            assert_eq!(jar.header(&home), None, "{date}");
        }
    }

    #[test]
    fn no_cookie_is_for_a_public_suffix() {
        for (host, domain, kept) in [
            ("www.shop.co.uk", "co.uk", None),
            ("me.github.io", "github.io", None),
            ("a.b.example", "example", None),
            ("www.shop.co.uk", ".Shop.co.uk", Some("other.shop.co.uk")),
            ("github.io", "github.io", Some("github.io")),
            ("localhost", "localhost", Some("localhost")),
            ("127.0.0.1", "127.0.0.1", Some("127.0.0.1")),
        ] {
            let mut jar = Jar::new();
            let at = |host: &str| url(&format!("http://{host}/"));
            jar.absorb(&at(host), format!("id=1; Domain={domain}").as_bytes());
            let sent = |host: &str| jar.header(&at(host)).is_some();
            assert_eq!(sent(host), kept.is_some(), "{host}");
            assert!(kept.is_none_or(sent), "{host}");
            // a name below an address is not a host of URLs
            let below = !domain.starts_with("127.") && !domain.contains("Shop");
            assert!(!below || !sent(&format!("other.{domain}")), "{host}");
        }
    }
}
