//! A directory of files: from a path to a response, with ranges, conditional requests, a cache of
//! small files and an index of directories. Refuses every path that leads out of its root, and
//! never blocks on pipes or devices.

mod cache;
mod conditional;
mod index;
pub(crate) mod kind;
pub(crate) mod place;
mod range;
mod response;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use hyper::header::{self, HeaderValue};
use hyper::http::{Method, StatusCode};
use percent_encoding::percent_encode;

use crate::auth::{Complain, Gates, Guard};
use crate::breaks::{Break, Breaks};
use crate::exchange::{Ask, Content, Reply};

use cache::{Cache, Known};
use place::{Folder, FoundPath, Links, Missed, Opened};
use response::{ContentSource, Face};

pub(crate) use cache::CacheBounds;

/// Parameters of a directory node.
#[derive(Clone)]
pub(crate) struct DirectorySettings {
    /// The directory to serve. Looked up for each file: it may appear and disappear.
    pub(crate) root: PathBuf,
    /// Base of the password files' names.
    pub(crate) server_root: PathBuf,
    /// Lists directories that have no `index.html`; without, they are 403.
    pub(crate) fancy: bool,
    /// URL path of the icons, which must be named as in [`kind::ICONS`].
    pub(crate) icons: String,
    pub(crate) cache: CacheBounds,
    pub(crate) complain: Complain,
}

/// Serves the files below a root.
#[derive(Clone)]
pub(crate) struct Directory(Arc<Inner>);

struct Inner {
    settings: DirectorySettings,
    guard: Guard,
    cache: Cache<Loaded>,
}

/// A small file in memory, and the access rules of a request for it.
#[derive(Debug)]
struct Loaded {
    face: Face,
    bytes: hyper::body::Bytes,
    gates: Gates,
}

/// Title of a directory's page.
const INDEX_FILE: &str = "index.html";

impl Directory {
    pub(crate) fn new(settings: DirectorySettings) -> Directory {
        let guard =
            Guard::new(&settings.root, &settings.server_root, Arc::clone(&settings.complain));
        let cache = Cache::new(settings.cache);
        Directory(Arc::new(Inner { settings, guard, cache }))
    }

    /// Answers recently verified files from memory, and everything else on a thread that may block.
    pub(crate) async fn answer(&self, ask: Ask, breaks: &Breaks) -> Reply {
        if ask.method == Method::OPTIONS {
            return allowing(Reply {
                status: StatusCode::NO_CONTENT,
                headers: hyper::HeaderMap::new(),
                content: Content::Empty,
            });
        }
        if ask.method != Method::GET && ask.method != Method::HEAD {
            let text = "Method Not Allowed: files take GET, HEAD and OPTIONS.\n";
            return allowing(Reply::text(StatusCode::METHOD_NOT_ALLOWED, text));
        }
        let now = Instant::now();
        let held = match self.0.cache.look(&ask.rest, now) {
            Known::Fresh(loaded) => return loaded.answer(&ask, breaks),
            Known::Old(loaded) => Some(loaded),
            Known::Nothing => None,
        };
        let (inner, breaks) = (Arc::clone(&self.0), breaks.clone());
        let found = tokio::task::spawn_blocking(move || inner.answer(&ask, &breaks, held, now));
        found.await.unwrap_or_else(|_| failed("the search for a file"))
    }
}

impl Loaded {
    fn answer(&self, ask: &Ask, breaks: &Breaks) -> Reply {
        match self.gates.admit(&ask.headers, breaks) {
            Ok(_) => self.face.answer(ask, ContentSource::Memory(&self.bytes), breaks),
            Err(refusal) => *refusal,
        }
    }
}

impl Inner {
    /// Reads the file itself. `held` is the cached state; `now` an instant before the check.
    fn answer(&self, ask: &Ask, breaks: &Breaks, held: Option<Arc<Loaded>>, now: Instant) -> Reply {
        match self.answer_opened(ask, breaks, held, now) {
            Ok(reply) => reply,
            Err(refusal) => {
                self.cache.forget(&ask.rest);
                *refusal
            }
        }
    }

    fn answer_opened(
        &self,
        ask: &Ask,
        breaks: &Breaks,
        held: Option<Arc<Loaded>>,
        now: Instant,
    ) -> Result<Reply, Box<Reply>> {
        let gates = self.guard.gates(&ask.rest)?;
        gates.admit(&ask.headers, breaks)?;
        let missed = |missed| Box::new(self.missed(missed, breaks));
        let links = if breaks.has(Break::Escape) { Links::Anywhere } else { Links::Inside };
        let root = &self.settings.root;
        let opened = match place::find(root, &ask.rest, links).map_err(missed)? {
            FoundPath::File(opened) => opened,
            FoundPath::Folder(_) if !ask.path.ends_with('/') && !breaks.has(Break::Slash) => {
                self.cache.forget(&ask.rest);
                return Ok(with_slash(ask));
            }
            FoundPath::Folder(folder) => {
                let page = format!("{}/{INDEX_FILE}", ask.rest);
                match place::find(root, &page, links) {
                    Ok(FoundPath::File(opened)) => opened,
                    Ok(FoundPath::Folder(_)) | Err(Missed::Missing | Missed::Odd) => {
                        let gates = self.check_link_target(gates, &folder.below)?;
                        gates.admit(&ask.headers, breaks)?;
                        return self.index(ask, &folder, links, breaks);
                    }
                    Err(why) => return Err(missed(why)),
                }
            }
        };
        let gates = self.check_link_target(gates, &opened.below)?;
        gates.admit(&ask.headers, breaks)?;
        self.file(ask, opened, gates, held, now, breaks).map_err(missed)
    }

    /// Checks the rule at a link's real target too: a link may otherwise bypass it, so both must
    /// permit access.
    fn check_link_target(
        &self,
        gates: Gates,
        below: &std::path::Path,
    ) -> Result<Gates, Box<Reply>> {
        match below.to_str() {
            Some(below) => Ok(gates.and(self.guard.gates(below)?)),
            None => Err(Box::new(Reply::text(StatusCode::NOT_FOUND, NOT_FOUND))),
        }
    }

    fn file(
        &self,
        ask: &Ask,
        opened: Opened,
        gates: Gates,
        held: Option<Arc<Loaded>>,
        now: Instant,
        breaks: &Breaks,
    ) -> Result<Reply, Missed> {
        let face = Face::new(&opened);
        if opened.facts.len() > self.settings.cache.file_max {
            self.cache.forget(&ask.rest);
            return Ok(face.answer(ask, ContentSource::File(opened.file), breaks));
        }
        let loaded = match held {
            Some(held) if held.face.is_same_state(&face) => Loaded {
                face: face.of_len(held.bytes.len() as u64),
                bytes: held.bytes.clone(),
                gates,
            },
            _ => {
                let bytes = response::read(&opened.file, opened.facts.len())?;
                Loaded { face: face.of_len(bytes.len() as u64), bytes, gates }
            }
        };
        let loaded = Arc::new(loaded);
        let len = loaded.bytes.len() as u64;
        self.cache.keep(&ask.rest, Arc::clone(&loaded), len, now);
        Ok(loaded.face.answer(ask, ContentSource::Memory(&loaded.bytes), breaks))
    }

    fn index(
        &self,
        ask: &Ask,
        folder: &Folder,
        links: Links,
        breaks: &Breaks,
    ) -> Result<Reply, Box<Reply>> {
        self.cache.forget(&ask.rest);
        if !self.settings.fancy {
            return Ok(Reply::text(StatusCode::FORBIDDEN, "Access Denied: no index here.\n"));
        }
        let listing = index::list(&self.settings.root, folder, links, index::ENTRIES_MAX);
        let listing = listing.map_err(|missed| Box::new(self.missed(missed, breaks)))?;
        let page = index::page(&ask.path, &self.settings.icons, &listing, breaks);
        let mut reply = Reply::text(StatusCode::OK, page);
        let html = HeaderValue::from_static("text/html; charset=utf-8");
        reply.headers.insert(header::CONTENT_TYPE, html);
        Ok(reply)
    }

    fn missed(&self, missed: Missed, breaks: &Breaks) -> Reply {
        match missed {
            Missed::Odd if breaks.has(Break::OddFiles) => failed("a file of an unsupported type"),
            Missed::Missing | Missed::Odd => Reply::text(StatusCode::NOT_FOUND, NOT_FOUND),
            Missed::Forbidden if breaks.has(Break::Unreadable) => {
                Reply::text(StatusCode::NOT_FOUND, NOT_FOUND)
            }
            Missed::Forbidden => Reply::text(StatusCode::FORBIDDEN, "Access Denied\n"),
            Missed::Overloaded => {
                let text = "Service Unavailable: too many files are open.\n";
                Reply::text(StatusCode::SERVICE_UNAVAILABLE, text)
            }
            Missed::Failed(error) => {
                (self.settings.complain)(&format!("a file cannot be read: {error}"));
                failed("reading a file")
            }
        }
    }
}

const NOT_FOUND: &str = "Not Found\n";

fn failed(what: &str) -> Reply {
    Reply::text(StatusCode::INTERNAL_SERVER_ERROR, format!("Internal Server Error: {what}.\n"))
}

fn allowing(mut reply: Reply) -> Reply {
    reply.headers.insert(header::ALLOW, HeaderValue::from_static("GET, HEAD, OPTIONS"));
    reply
}

/// Links in a directory's page are relative to the directory, which its URL must therefore name.
fn with_slash(ask: &Ask) -> Reply {
    let mut to = String::new();
    for name in ask.path.split('/').filter(|name| !name.is_empty()) {
        to.push('/');
        to.extend(percent_encode(name.as_bytes(), index::IN_SEGMENT));
    }
    to.push('/');
    if let Some(query) = &ask.query {
        to.push('?');
        to.push_str(query);
    }
    let mut reply = Reply::text(StatusCode::MOVED_PERMANENTLY, format!("See {to}\n"));
    match HeaderValue::from_str(&to) {
        Ok(to) => {
            reply.headers.insert(header::LOCATION, to);
            reply
        }
        Err(_) => {
            Reply::text(StatusCode::BAD_REQUEST, "Bad Request: the query contains invalid bytes.\n")
        }
    }
}

#[cfg(test)]
mod tests;
