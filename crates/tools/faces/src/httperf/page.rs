//! `--wsesspage`: sessions that load a page with its parts.
//!
//! The page is examined once, before the run. httperf 0.9.0 examines every response for parts, and
//! aborts with a failed assertion as soon as it finds one.

use super::options::{Options, Sessions};
use super::request::{Extra, render};
use super::sesslog::SessionRequest;
use super::setup::{NO_SESSION, Work, seconds};
use crate::{Files, PageRequest};
use plan::{TlsPlan, Visit, VisitGroup};
use units::Nanos;
use url::{Position, Url};

/// Elements whose URLs are fetched with the page.
const ELEMENTS: [&str; 5] = ["img", "frame", "iframe", "object", "embed"];
/// Parts of a page that are fetched.
const PARTS_MAX: usize = 1_000;
/// Time limit for examining the page without `--timeout`.
const PATIENCE: Nanos = Nanos::from_secs(30);

/// The original ends this line of its with the program's last breath, not with a line end.
pub(super) const NOT_ABSOLUTE: &str = ": URI specified with --uri must be absolute";

/// Inputs for fetching the page and its parts.
pub(super) struct Look<'a> {
    pub(super) url: &'a Url,
    /// Value of the Host line.
    pub(super) host: &'a str,
    pub(super) extra: &'a Extra,
    pub(super) tls: &'a TlsPlan,
}

/// # Errors
/// Fails for a URI that is not absolute, and without a session.
pub(super) fn work(options: &Options, look: &Look<'_>, files: &dyn Files) -> Result<Work, String> {
    let Some(Sessions::Pages { sessions, pages, think }) = options.sessions else {
        return Err(NO_SESSION.to_owned());
    };
    if sessions == 0 {
        return Err(NO_SESSION.to_owned());
    }
    let url = look.url.join(&options.uri).ok();
    let absolute = options.uri.starts_with('/') || Url::parse(&options.uri).is_ok();
    let Some(url) = url.filter(|_| absolute) else {
        return Err(NOT_ABSOLUTE.to_owned());
    };
    let get = |uri: &str| SessionRequest { method: "GET", uri: uri.into(), contents: Vec::new() };
    let mut requests = vec![get(&options.uri)];
    let mut targets = vec![0];
    for part in parts(options, look, &url, &requests[0], files) {
        let request = get(&part);
        let known = requests.iter().position(|known| *known == request);
        let row = known.unwrap_or_else(|| {
            requests.push(request);
            requests.len() - 1
        });
        targets.push(row as u32);
    }
    let group = VisitGroup { targets, think: seconds(think) };
    let pages = usize::try_from(pages.clamp(1, 1_000_000)).unwrap_or(1);
    let visits = vec![Visit { groups: vec![group; pages] }];
    Ok(Work { requests, sequence: Vec::new(), once: false, visits, count: sessions })
}

/// Returns the URIs of the page's parts on the same server; empty if the page does not exist, which
/// the run then reports.
fn parts(
    options: &Options,
    look: &Look<'_>,
    url: &Url,
    request: &SessionRequest,
    files: &dyn Files,
) -> Vec<String> {
    let bytes = render(options, look.host, "GET", request, &look.extra.bytes);
    let limit = seconds(options.timeout);
    let timeout = if limit.is_zero() { PATIENCE } else { limit.min(PATIENCE) };
    let page = PageRequest { url: look.url, request: &bytes, tls: look.tls, timeout };
    let found = files.look_at(&page).unwrap_or_default();
    let ours = found.into_iter().filter(|reference| ELEMENTS.contains(&&*reference.element));
    // the host of the page itself is the requested server
    ours.filter_map(|reference| {
        let from =
            url.origin() == reference.url.origin() || look.url.origin() == reference.url.origin();
        from.then(|| reference.url[Position::BeforePath..Position::AfterQuery].to_owned())
    })
    .take(PARTS_MAX)
    .collect()
}
