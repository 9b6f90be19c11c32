//! A user's cache: it stores only the validators of responses (RFC 9111 sections 4.2 and 4.3).

use protocol::http1::fields;
use std::collections::BTreeMap;
use std::time::Duration;
use units::Nanos;

/// Maximum number of URLs in one user's cache.
const ENTRIES_MAX: usize = 1_000;

#[derive(Clone, Debug, Default)]
struct CachedPage {
    etag: Option<String>,
    modified: Option<String>,
    /// End of freshness, on the clock of samples.
    fresh_until: Nanos,
}

#[derive(Debug, Default)]
pub(super) struct Cache {
    entries: BTreeMap<String, CachedPage>,
}

impl Cache {
    /// Records a good response, or a confirmation of the known one.
    pub(super) fn take(&mut self, url: &str, status: u16, head: &[u8], now: Nanos) {
        if !matches!(status, 200 | 304) {
            return;
        }
        let known = self.entries.contains_key(url);
        if !known && self.entries.len() >= ENTRIES_MAX {
            return;
        }
        let text = |name: &str| {
            let value = fields::find(head, name)?;
            Some(String::from_utf8_lossy(value).into_owned())
        };
        let directives = text("cache-control").unwrap_or_default().to_ascii_lowercase();
        let entry = self.entries.entry(url.to_owned()).or_default();
        entry.etag = text("etag").or_else(|| entry.etag.take());
        entry.modified = text("last-modified").or_else(|| entry.modified.take());
        entry.fresh_until = now + lifetime(&directives, text("expires"), text("date"));
        if directives.contains("no-store") {
            self.entries.remove(url);
        }
    }

    /// Returns whether the known response is still fresh.
    pub(super) fn fresh(&self, url: &str, now: Nanos) -> bool {
        self.entries.get(url).is_some_and(|entry| now < entry.fresh_until)
    }

    /// Returns the fields that revalidate a known response.
    pub(super) fn conditions(&self, url: &str) -> String {
        let mut out = String::new();
        let Some(entry) = self.entries.get(url) else { return out };
        if let Some(date) = &entry.modified {
            put!(out, "If-Modified-Since: {date}\r\n");
        }
        if let Some(etag) = &entry.etag {
            put!(out, "If-None-Match: {etag}\r\n");
        }
        out
    }
}

/// Returns the freshness lifetime of a response: by `max-age`, else Expires minus Date (RFC 9111
/// section 4.2.1).
fn lifetime(directives: &str, expires: Option<String>, date: Option<String>) -> Nanos {
    if directives.contains("no-cache") {
        return Nanos::ZERO;
    }
    let age = directives.split(',').find_map(|each| each.trim().strip_prefix("max-age="));
    if let Some(seconds) = age.and_then(|text| text.trim_matches('"').parse::<u32>().ok()) {
        return Nanos::from_secs(u64::from(seconds));
    }
    let instant = |text: Option<String>| httpdate::parse_http_date(&text?).ok();
    let span =
        instant(expires).zip(instant(date)).and_then(|(to, from)| to.duration_since(from).ok());
    Nanos::from_secs(span.unwrap_or(Duration::ZERO).as_secs().min(u64::from(u32::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(lines: &str) -> Vec<u8> {
        format!("HTTP/1.1 200 OK\r\n{lines}\r\n\r\n").into_bytes()
    }

    #[test]
    fn freshness_follows_from_max_age_or_two_dates() {
        let dates = "Date: Tue, 09 Feb 2016 18:18:41 GMT\r\nExpires: Tue, 09 Feb 2016 18:18:44 GMT";
        for (lines, seconds) in [
            ("Cache-Control: public, max-age=30", 30),
            (dates, 3),
            ("Cache-Control: no-cache, max-age=30", 0),
            ("Cache-Control: no-store, max-age=30", 0),
            ("Expires: 0", 0),
            ("ETag: \"a\"", 0),
        ] {
            let mut cache = Cache::default();
            cache.take("u", 200, &head(lines), Nanos::from_secs(1));
            let fresh = |second| cache.fresh("u", Nanos::from_secs(second));
            assert_eq!((fresh(1), fresh(1 + seconds)), (seconds > 0, false), "{lines}");
        }
    }

    #[test]
    fn known_pages_are_revalidated() {
        let mut cache = Cache::default();
        let lines = "ETag: \"a\"\r\nLast-Modified: Tue, 09 Feb 2016 18:18:41 GMT";
        cache.take("u", 200, &head(lines), Nanos::ZERO);
        cache.take("v", 500, &head(lines), Nanos::ZERO);
        let wanted = "If-Modified-Since: Tue, 09 Feb 2016 18:18:41 GMT\r\nIf-None-Match: \"a\"\r\n";
        assert_eq!(cache.conditions("u"), wanted);
        assert_eq!(cache.conditions("v"), "");
        cache.take("u", 304, &head("X: y"), Nanos::ZERO);
        assert_eq!(cache.conditions("u"), wanted);
    }
}
