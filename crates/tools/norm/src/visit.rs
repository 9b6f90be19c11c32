//! State of a connection: its requests, the progress of its exchange, its measurements.

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode, Version};

use crate::abort::{Waiting, Watch};
use crate::breaks::Break;
use crate::exchange::{Ask, Content, Entity, Reply, SOFTWARE};
use crate::node::{Node, without_body_fields};
use crate::outgoing::{ContentObserver, OutgoingContent, SERVER_TIMING};
use crate::refusal;
use crate::route::{self, BadPath};
use crate::shared::Shared;
use crate::timing::{Point, Started, VisitTiming, append};

/// Maximum number of local redirects between scripts.
const HOPS_MAX: usize = 4;

/// Target of a request.
#[derive(Debug)]
struct RequestLine<'a> {
    method: Method,
    version: Version,
    path: &'a str,
    /// Query, not decoded.
    query: Option<&'a str>,
}

/// Progress of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum VisitStage {
    /// The last response is out; a head is awaited or being read.
    Head,
    /// A request was received whose response is not complete.
    Working,
    /// The response's content was written; its last bytes may still be in transit.
    Flushing,
}

/// Start of each part of an exchange.
#[derive(Clone, Copy, Debug, Default)]
struct Begun {
    /// The first byte of the request.
    get: Option<Started>,
    to_store: Started,
    response: Started,
    stream: Started,
}

#[derive(Debug)]
pub(crate) struct Visit {
    shared: Arc<Shared>,
    peer: SocketAddr,
    local: SocketAddr,
    watch: Rc<Watch>,
    timing: VisitTiming,
    stage: Cell<VisitStage>,
    begun: Cell<Begun>,
    /// True if input may be unread, so that closing at once would destroy the response.
    unread: Cell<bool>,
    /// Temporary files of the requests so far.
    spooled: RefCell<Vec<PathBuf>>,
}

impl Visit {
    pub(crate) fn new(
        shared: Arc<Shared>,
        (peer, local): (SocketAddr, SocketAddr),
        watch: Rc<Watch>,
        timing: VisitTiming,
    ) -> Visit {
        Visit {
            shared,
            peer,
            local,
            watch,
            timing,
            stage: Cell::new(VisitStage::Head),
            begun: Cell::default(),
            unread: Cell::new(false),
            spooled: RefCell::default(),
        }
    }

    pub(crate) fn watch(&self) -> &Watch {
        &self.watch
    }

    pub(crate) fn timing(&self) -> &VisitTiming {
        &self.timing
    }

    pub(crate) fn peer(&self) -> SocketAddr {
        self.peer
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Returns whether closing must wait until the client has closed.
    pub(crate) fn is_unread(&self) -> bool {
        self.unread.get()
    }

    pub(crate) fn leave_unread(&self) {
        self.unread.set(true);
    }

    /// Returns whether a head was expected: hyper's own response is then a refusal, which is
    /// replaced by the status that the RFC requires.
    pub(crate) fn expects_head(&self) -> bool {
        self.stage.get() == VisitStage::Head
    }

    /// Records that data arrived from the client.
    pub(crate) fn note_input(&self) {
        if self.timing.is_enabled() && self.stage.get() == VisitStage::Head {
            let begun = self.begun.get();
            if begun.get.is_none() {
                self.begun.set(Begun { get: Some(self.timing.start()), ..begun });
            }
        }
    }

    /// Records that all written data was sent.
    pub(crate) fn written(&self) {
        if self.stage.get() == VisitStage::Flushing {
            self.exchange_over();
        }
    }

    fn exchange_over(&self) {
        self.stage.set(VisitStage::Head);
        if self.timing.is_enabled() {
            let begun = self.begun.take();
            self.timing.stop(Point::StreamEntity, begun.stream);
            self.timing.stop(Point::Response, begun.response);
            self.timing.stop(Point::ToStore, begun.to_store);
            self.timing.flush();
        }
        if !self.spooled.borrow().is_empty() {
            self.spooled.borrow_mut().retain(|path| path.exists());
        }
    }

    /// Removes remaining temporary files: those of an abandoned request.
    pub(crate) fn release(&self) {
        if self.shared.breaks.has(Break::SpoolLeft) {
            return;
        }
        for path in self.spooled.take() {
            // gone already is as good
            std::fs::remove_file(path).ok();
        }
    }

    /// Answers any request.
    pub(crate) async fn serve(
        self: Rc<Visit>,
        request: Request<Incoming>,
    ) -> Result<Response<OutgoingContent>, Infallible> {
        if self.stage.get() == VisitStage::Flushing {
            self.exchange_over();
        }
        self.stage.set(VisitStage::Working);
        self.watch.wait_for(Waiting::Nothing);
        self.shared.counters.request();
        // a pipelined request was already read
        let get = self.begun.take().get.unwrap_or_else(|| self.timing.start());
        let (parts, incoming) = request.into_parts();
        let head_only = parts.method == Method::HEAD;
        // hyper sends trailers only to clients that announced support (RFC 9110 §10.1.4)
        let trailers = self.timing.is_enabled()
            && parts.version == Version::HTTP_11
            && refusal::has_token(&parts.headers, &header::TE, "trailers");
        let read = self.read(&parts, incoming).await;
        self.timing.stop_and_report(Point::Get, get);
        self.begun.set(Begun { to_store: self.timing.start(), ..Begun::default() });
        let reply = match read {
            Ok(entity) => self.reply(parts, entity).await,
            Err(refused) => *refused,
        };
        Ok(self.respond(reply, head_only, trailers))
    }

    /// Returns the body of a request that is in order.
    async fn read(&self, parts: &Parts, incoming: Incoming) -> Result<Entity, Box<Reply>> {
        let result = match refusal::check(parts) {
            Some(refused) => Err(Box::new(refused)),
            None if incoming.is_end_stream() => return Ok(Entity::None),
            None => self.read_body(incoming).await,
        };
        self.watch.wait_for(Waiting::Nothing);
        self.unread.set(self.unread.get() || result.is_err());
        result
    }

    async fn read_body(&self, mut incoming: Incoming) -> Result<Entity, Box<Reply>> {
        let shared = &self.shared;
        if incoming.size_hint().lower() > shared.body_max {
            return Err(Box::new(refusal::too_large(shared.body_max)));
        }
        let mut memory = Vec::new();
        let mut filling = None;
        let mut len = 0;
        self.watch.wait_for(Waiting::Body);
        while let Some(frame) = incoming.frame().await {
            self.watch.wait_for(Waiting::Body);
            let frame = frame.map_err(|_| Box::new(refusal::broken_body()))?;
            // no node needs trailers
            let Ok(data) = frame.into_data() else { continue };
            len += data.len() as u64;
            if len > shared.body_max {
                return Err(Box::new(refusal::too_large(shared.body_max)));
            }
            if filling.is_none() && len > shared.spool_over {
                let mut file = self.allocate()?;
                file.push(&memory).await.map_err(|error| self.spool_failure(&error))?;
                memory = Vec::new();
                filling = Some(file);
            }
            match &mut filling {
                Some(file) => file.push(&data).await.map_err(|error| self.spool_failure(&error))?,
                None => memory.extend_from_slice(&data),
            }
        }
        let Some(file) = filling else { return Ok(Entity::Memory(memory.into())) };
        let spooled = file.finish().await.map_err(|error| self.spool_failure(&error))?;
        Ok(Entity::Spooled(spooled))
    }

    fn allocate(&self) -> Result<crate::spool::Filling, Box<Reply>> {
        let shared = &self.shared;
        let mut file = shared.spool.allocate().map_err(|error| self.spool_failure(&error))?;
        self.spooled.borrow_mut().push(file.path().to_owned());
        if shared.breaks.has(Break::SpoolLeft) {
            file.keep_file();
        }
        if !shared.breaks.has(Break::LogTmpFile) {
            shared.log.debug(&format!("TmpFile allocate file {}", file.path().display()));
        }
        Ok(file)
    }

    fn spool_failure(&self, error: &std::io::Error) -> Box<Reply> {
        self.shared.log.warn(&format!("cannot write a temporary file: {error}"));
        let text = "The body cannot be kept: the server has no room for it.\n";
        Box::new(Reply::text(StatusCode::INTERNAL_SERVER_ERROR, text))
    }

    /// Returns the response of the path's node. A script may redirect to another path of the site,
    /// whose response is then used (RFC 3875 §6.2.2).
    async fn reply(&self, parts: Parts, body: Entity) -> Reply {
        let found = self.timing.start();
        let line = RequestLine {
            method: parts.method,
            version: parts.version,
            path: parts.uri.path(),
            query: parts.uri.query(),
        };
        let (node, ask) = match self.ask(line, parts.headers, body) {
            Ok(found) => found,
            Err(refused) => return *refused,
        };
        let headers = node.may_redirect_internally().then(|| without_body_fields(&ask.headers));
        self.timing.stop_and_report(Point::Request, found);
        let mut reply = node.answer(ask, &self.shared.breaks).await;
        let Some(headers) = headers else { return reply };
        for _ in 0..HOPS_MAX {
            let Content::Elsewhere(target) = reply.content else { return reply };
            let (path, query) = match target.split_once('?') {
                Some((path, query)) => (path, Some(query)),
                None => (target.as_str(), None),
            };
            let line = RequestLine { method: Method::GET, version: parts.version, path, query };
            reply = match self.ask(line, headers.clone(), Entity::None) {
                Ok((node, ask)) => node.answer(ask, &self.shared.breaks).await,
                Err(refused) => return *refused,
            };
        }
        if !matches!(reply.content, Content::Elsewhere(_)) {
            return reply;
        }
        self.shared.log.warn(&format!("more than {HOPS_MAX} scripts point to one another"));
        Reply::text(StatusCode::INTERNAL_SERVER_ERROR, "The scripts point to one another.\n")
    }

    /// Returns the node for a request, and the request as the node receives it.
    fn ask(
        &self,
        line: RequestLine<'_>,
        headers: HeaderMap,
        body: Entity,
    ) -> Result<(&Node, Ask), Box<Reply>> {
        let nowhere = || Box::new(refusal::not_found());
        let path = route::clean_path(line.path).map_err(|bad| match bad {
            BadPath::Syntax(why) => refusal::bad_path(why),
            BadPath::Nowhere => nowhere(),
        })?;
        let (node, own) = self.shared.routes.find(&path).ok_or_else(nowhere)?;
        let ask = Ask {
            method: line.method,
            version: line.version,
            node_path: path[..own].to_owned(),
            rest: path[own..].to_owned(),
            path,
            query: line.query.map(str::to_owned),
            headers,
            body,
            peer: self.peer,
            local: self.local,
            user: None,
        };
        Ok((node, ask))
    }

    /// Returns the response for hyper, which adds Date and the framing.
    fn respond(
        self: &Rc<Visit>,
        mut reply: Reply,
        head_only: bool,
        trailers: bool,
    ) -> Response<OutgoingContent> {
        let mut begun = self.begun.get();
        begun.response = self.timing.start();
        let headers = &mut reply.headers;
        headers.insert(header::SERVER, HeaderValue::from_static(SOFTWARE));
        if self.unread.get() {
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        if let Some(text) = self.timing.field()
            && let Ok(value) = HeaderValue::from_str(&text)
        {
            headers.append(SERVER_TIMING.clone(), value);
        }
        let bodiless = [StatusCode::NO_CONTENT, StatusCode::NOT_MODIFIED].contains(&reply.status);
        if head_only && !bodiless {
            declare_length(headers, &reply.content);
        }
        let content = if head_only || bodiless { Content::Empty } else { reply.content };
        let chunked =
            matches!(content, Content::Stream(_)) && !headers.contains_key(header::CONTENT_LENGTH);
        let trailer = trailers && chunked;
        if trailer {
            headers.insert(header::TRAILER, HeaderValue::from_name(SERVER_TIMING.clone()));
        }
        begun.stream = self.timing.start();
        self.begun.set(begun);
        let mut response =
            Response::new(OutgoingContent::new(content, Rc::<Visit>::clone(self), trailer));
        *response.status_mut() = reply.status;
        *response.headers_mut() = reply.headers;
        response
    }
}

impl ContentObserver for Visit {
    fn late_field(&self) -> Option<String> {
        let begun = self.begun.get();
        let mut field = String::new();
        for (point, started) in [
            (Point::StreamEntity, begun.stream),
            (Point::Response, begun.response),
            (Point::ToStore, begun.to_store),
        ] {
            append(&mut field, point, started.elapsed()?);
        }
        Some(field)
    }

    fn content_over(&self) {
        self.stage.set(VisitStage::Flushing);
        self.watch.wait_for(Waiting::Head);
    }
}

/// Sets the length of the content, which HEAD announces too (RFC 9110 §8.6).
fn declare_length(headers: &mut HeaderMap, content: &Content) {
    let len = match content {
        Content::Empty | Content::Elsewhere(_) => 0,
        Content::Bytes(bytes) => bytes.len() as u64,
        Content::Pieces(pieces) => pieces.iter().map(crate::exchange::Piece::len).sum(),
        Content::Stream(_) => return,
    };
    if !headers.contains_key(header::CONTENT_LENGTH) {
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(len));
    }
}
