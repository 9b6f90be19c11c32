//! Crawls a site from one page: lists every address that its pages link to, for a run. Only the
//! start's own scheme, host and port are requested; everything is bounded, and omitted addresses
//! are counted. The world is a trait, as it is for checks.

use crate::exchange::{Caller, ExchangeOutcome, Message, Outgoing, Reply};
use protocol::http1::fields;
use protocol::http1::request::{RequestError, RequestHead, Target, Version};
use sample::FailureClass;
use std::collections::{BTreeSet, VecDeque};
use units::Nanos;
use url::{Position, Url};
use workload::{Use, links};

/// Maximum number of remembered addresses; further ones are counted and skipped.
const SEEN_MAX: usize = 200_000;
/// Maximum number of broken links listed individually.
const BROKEN_MAX: usize = 1_000;

/// Start, bounds and header fields of a crawl.
#[derive(Clone, Debug)]
pub struct CrawlPlan {
    pub start: Url,
    /// Maximum number of requested addresses, at least 1.
    pub calls_max: u64,
    /// Maximum number of links between the start and a page; 0: only the start and its parts.
    pub depth_max: u32,
    /// Maximum number of concurrent requests, at least 1.
    pub together: usize,
    /// Time limit from sending a request to the end of its response.
    pub timeout: Nanos,
    /// Images, scripts, style sheets and similar parts are requested and listed like pages.
    pub parts: bool,
    /// Header fields, in order; a `User-Agent` here replaces ours.
    pub headers: Vec<(String, String)>,
    pub user_agent: String,
}

/// An address without a good response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    pub url: Url,
    /// Status, such as `404`, or why there was no response.
    pub why: String,
    /// Page that links to it; `None` for the start.
    pub found_on: Option<Url>,
}

/// Result of a crawl.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Crawl {
    /// Addresses that answered with a status of 200 to 299, in request order.
    pub good: Vec<Url>,
    pub broken: Vec<Broken>,
    /// Number of broken addresses beyond those listed.
    pub more_broken: u64,
    pub asked: u64,
    /// Number of different addresses on other sites, or with other schemes.
    pub elsewhere: u64,
    /// Number of known addresses that a bound excluded.
    pub left_out: u64,
    /// Reason why no connection could be opened.
    pub unreachable: Option<String>,
    pub interrupted: bool,
}

/// Crawls the site, level by level. Passes the number of requested and of known addresses to
/// `report`.
///
/// # Errors
/// Fails for a header that cannot be sent.
pub fn crawl(
    plan: &CrawlPlan,
    world: &mut dyn Caller,
    report: &mut dyn FnMut(u64, u64),
) -> Result<Crawl, RequestError> {
    let mut walk = Walk::new(plan);
    while !walk.next.is_empty() && walk.found.asked < plan.calls_max {
        if world.interrupted() {
            walk.found.interrupted = true;
            break;
        }
        let room = usize::try_from(plan.calls_max - walk.found.asked).unwrap_or(usize::MAX);
        let count = plan.together.max(1).min(room).min(walk.next.len());
        let places: Vec<Place> = walk.next.drain(..count).collect();
        let outgoing: Result<Vec<Outgoing>, RequestError> =
            places.iter().map(|place| request(plan, &place.url)).collect();
        let heard = world.exchange(outgoing?);
        if world.interrupted() {
            walk.found.interrupted = true;
            break;
        }
        for (place, heard) in places.into_iter().zip(heard) {
            walk.take(place, heard);
        }
        if walk.found.unreachable.is_some() {
            break;
        }
        report(walk.found.asked, walk.found.asked + walk.next.len() as u64);
    }
    walk.found.left_out += walk.next.len() as u64;
    Ok(walk.found)
}

/// An address to be requested.
struct Place {
    url: Url,
    depth: u32,
    found_on: Option<Url>,
}

struct Walk<'a> {
    plan: &'a CrawlPlan,
    next: VecDeque<Place>,
    /// Every address that was ever in `next`.
    seen: BTreeSet<String>,
    elsewhere: BTreeSet<String>,
    too_deep: BTreeSet<String>,
    met: bool,
    found: Crawl,
}

impl Walk<'_> {
    fn new(plan: &CrawlPlan) -> Walk<'_> {
        let mut start = plan.start.clone();
        start.set_fragment(None);
        let seen = BTreeSet::from([start.to_string()]);
        let place = Place { url: start, depth: 0, found_on: None };
        Walk {
            plan,
            next: VecDeque::from([place]),
            seen,
            elsewhere: BTreeSet::new(),
            too_deep: BTreeSet::new(),
            met: false,
            found: Crawl::default(),
        }
    }

    fn take(&mut self, place: Place, heard: ExchangeOutcome) {
        self.found.asked += 1;
        self.met |= heard.connected;
        let reply = match heard.result {
            Ok(reply) => reply,
            Err(trouble) => {
                if !self.met && trouble.class != FailureClass::Length {
                    self.found.unreachable = Some(trouble.with_common_fix());
                }
                return self.broken(place, trouble.text);
            }
        };
        match reply.facts.status {
            200..=299 => self.note_links(place, &reply),
            300..=399 => match location(&place.url, &reply) {
                Some(url) => self.note(url, place.depth, &place.url),
                None => self.broken(place, format!("{} without a target", reply.facts.status)),
            },
            status => self.broken(place, status.to_string()),
        }
    }

    fn note_links(&mut self, place: Place, reply: &Reply) {
        if is_html(&reply.head) {
            for link in links(&reply.body, &place.url) {
                match link.usage {
                    Use::Part if !self.plan.parts && !is_embedded_page(&link.element) => {}
                    // a part belongs to its page: it is at the same depth
                    Use::Part => self.note(link.url, place.depth, &place.url),
                    Use::Link | Use::Refresh => self.note(link.url, place.depth + 1, &place.url),
                }
            }
        }
        self.found.good.push(place.url);
    }

    /// Handles a found URL: it is requested if it is on this site, new and within the depth.
    fn note(&mut self, mut url: Url, depth: u32, found_on: &Url) {
        url.set_fragment(None);
        let full = self.seen.len() + self.elsewhere.len() + self.too_deep.len() >= SEEN_MAX;
        let text = url.to_string();
        if self.seen.contains(&text) {
            return;
        }
        if url.origin() != self.plan.start.origin() || !url.username().is_empty() {
            if !full && self.elsewhere.insert(text) {
                self.found.elsewhere += 1;
            }
            return;
        }
        if full {
            self.found.left_out += 1;
            return;
        }
        if depth > self.plan.depth_max {
            if self.too_deep.insert(text) {
                self.found.left_out += 1;
            }
            return;
        }
        if self.too_deep.remove(&text) {
            self.found.left_out -= 1;
        }
        self.seen.insert(text);
        self.next.push_back(Place { url, depth, found_on: Some(found_on.clone()) });
    }

    fn broken(&mut self, place: Place, why: String) {
        if self.found.broken.len() == BROKEN_MAX {
            self.found.more_broken += 1;
            return;
        }
        self.found.broken.push(Broken { url: place.url, why, found_on: place.found_on });
    }
}

/// Returns whether an element is a page inside a page: frames count as parts and as pages.
fn is_embedded_page(element: &str) -> bool {
    matches!(element, "frame" | "iframe")
}

fn request(plan: &CrawlPlan, url: &Url) -> Result<Outgoing, RequestError> {
    let head = RequestHead {
        method: "GET",
        target: Target::Origin(&url[Position::BeforePath..Position::AfterQuery]),
        version: Version::Http11,
        host: &url[Position::BeforeHost..Position::AfterPort],
        headers: &plan.headers,
        user_agent: Some(&plan.user_agent),
        accept_encoding: None,
        authorization: None,
        body: None,
    };
    let rendered = head.render()?;
    let message = Message::Http1 { bytes: rendered.last, asked: rendered.asked };
    Ok(Outgoing { url: url.clone(), message, timeout: plan.timeout, negotiates: false })
}

fn location(url: &Url, reply: &Reply) -> Option<Url> {
    let value = fields::location(&reply.head)?;
    url.join(&String::from_utf8_lossy(value)).ok()
}

fn is_html(head: &[u8]) -> bool {
    let kind = fields::find(head, "content-type").unwrap_or_default();
    let kind = String::from_utf8_lossy(kind).to_ascii_lowercase();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind == "text/html" || kind == "application/xhtml+xml"
}

#[cfg(test)]
mod tests;
