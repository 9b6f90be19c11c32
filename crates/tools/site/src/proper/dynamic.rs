//! SPECweb99's dynamic pages with their files: in this process, and by a process per request.

use super::body::{PageBody, Upload};
use super::pages::{TEXT, ok, page_of, refuse, with};
use crate::head::SERVER;
use crate::route::Refusal;
use http_body_util::{BodyExt, Limited};
use hyper::header::{self, HeaderMap};
use hyper::{Method, Request, Response, StatusCode};
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::process::Command;
use units::Seed;
use workload::fileset::Spec;
use workload::fileset::specweb99::{
    Advertising, DYNAMIC_TYPE, DynamicQuery, PageHead, PostForm, PostLog, Visitor, page_of_file,
};
use workload::fileset::specweb99_files::FileName;

/// The pages' paths, without a slash in front.
const SCRIPT: &str = "specweb99";
const CGI: &str = "specweb99-cgi";
/// The longest body of a POST.
const POST_MAX: usize = 4_096;
/// Timeout of a process for a page.
const PROCESS_MAX: Duration = Duration::from_secs(10);

/// Address of the client, if known: attached to a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Remote(pub(super) IpAddr);

/// State of dynamic pages shared by all threads.
#[derive(Debug)]
pub(super) struct DynamicPages {
    spec: Spec,
    directories: u64,
    seed: Seed,
    ads: Advertising,
    posts: Mutex<PostLog>,
    /// The program of the pages by CGI.
    program: Option<PathBuf>,
}

/// Kind of dynamic page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DynamicPath {
    InProcess,
    ByCgi,
}

/// Reason why a file of the set is unavailable.
const NO_FILE: &str = "Name a file of the set in the query: /file_set/dir00000/class1_3.\n";

impl DynamicPages {
    /// Returns the dynamic pages of a set; `None` if it has none.
    pub(super) fn new(
        spec: Option<Spec>,
        seed: Seed,
        program: Option<PathBuf>,
    ) -> Option<DynamicPages> {
        let spec = spec?;
        let Spec::Specweb99 { directories } = spec else { return None };
        let (ads, posts) = (Advertising::new(seed), Mutex::default());
        Some(DynamicPages { spec, directories, seed, ads, posts, program })
    }

    /// Returns the page of a path without a slash in front.
    pub(super) fn path(path: &str) -> Option<DynamicPath> {
        match path {
            SCRIPT => Some(DynamicPath::InProcess),
            CGI => Some(DynamicPath::ByCgi),
            _ => None,
        }
    }

    pub(super) async fn answer(
        &self,
        path: DynamicPath,
        request: Request<Upload>,
    ) -> Response<PageBody> {
        let query = request.uri().query().unwrap_or_default().to_owned();
        let (head, body) = request.into_parts();
        let remote = head.extensions.get::<Remote>().map(|remote| remote.0.to_string());
        let remote = remote.unwrap_or_default();
        let visitor = visitor(&head.headers);
        let script = head.uri.path().to_owned();
        let page_head =
            PageHead { software: SERVER, remote: &remote, script: &script, query: &query, visitor };
        match (path, head.method == Method::POST) {
            (DynamicPath::InProcess, true) => self.post(body, &page_head).await,
            (DynamicPath::InProcess, false) => self.get(&page_head),
            (DynamicPath::ByCgi, false) => self.by_cgi(&page_head).await,
            (DynamicPath::ByCgi, true) => refusal(405, "POST goes to /specweb99.\n"),
        }
    }

    fn get(&self, page_head: &PageHead<'_>) -> Response<PageBody> {
        match DynamicQuery::parse(page_head.query) {
            Some(DynamicQuery::Reset) => {
                self.log().clear();
                ok(TEXT, "The log of the POSTs is empty.\n")
            }
            Some(DynamicQuery::Fetch) => ok(TEXT, self.log().text(std::process::id())),
            Some(DynamicQuery::File(name)) if self.has(name) => {
                let (page, shown) = page_of_file(self.seed, page_head, name, Some(&self.ads));
                let response = ok(DYNAMIC_TYPE, page);
                match shown {
                    Some(shown) => with(response, header::SET_COOKIE, &shown.to_string()),
                    None => response,
                }
            }
            _ => refusal(404, NO_FILE),
        }
    }

    /// Records the posted data; responds with the page of its file.
    async fn post(&self, body: Upload, page_head: &PageHead<'_>) -> Response<PageBody> {
        let Ok(body) = Limited::new(body, POST_MAX).collect().await else {
            return refusal(413, "A POST here has at most 4096 bytes and must be complete.\n");
        };
        let body = String::from_utf8_lossy(&body.to_bytes()).into_owned();
        let user = page_head.visitor.map(|visitor| visitor.user);
        let Some((post, _)) = user.and_then(|user| PostForm::parse(&body, user)) else {
            let text = "Send urlroot, dir, class, num and client, and the cookie my_cookie.\n";
            return refusal(400, text);
        };
        if !self.has(post.name) {
            return refusal(404, NO_FILE);
        }
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        if !self.log().push(post, since.unwrap_or_default().as_secs()) {
            return refusal(507, "The log of the POSTs is full: ?command/Reset empties it.\n");
        }
        let (page, _) = page_of_file(self.seed, page_head, post.name, None);
        ok(DYNAMIC_TYPE, page)
    }

    /// Makes the page by a separate process (RFC 3875).
    async fn by_cgi(&self, page_head: &PageHead<'_>) -> Response<PageBody> {
        let Some(program) = &self.program else {
            return refusal(501, "This site has no program configured for its CGI pages.\n");
        };
        let mut command = Command::new(program);
        command
            .args(["workload", "cgi", &self.spec.to_string(), "--seed", &self.seed.0.to_string()])
            .env_clear()
            .env("GATEWAY_INTERFACE", "CGI/1.1")
            .env("REQUEST_METHOD", "GET")
            .env("SERVER_PROTOCOL", "HTTP/1.1")
            .env("SERVER_SOFTWARE", page_head.software)
            .env("REMOTE_ADDR", page_head.remote)
            .env("SCRIPT_NAME", page_head.script)
            .env("QUERY_STRING", page_head.query)
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true);
        if let Some(visitor) = page_head.visitor {
            command.env("HTTP_COOKIE", visitor.to_string());
        }
        match tokio::time::timeout(PROCESS_MAX, command.output()).await {
            Ok(Ok(output)) if output.status.success() => passed_on(output.stdout),
            Ok(Ok(_)) => refusal(502, "The program of the CGI page failed.\n"),
            Ok(Err(_)) => refusal(503, "The program of the CGI page cannot be started.\n"),
            Err(_) => refusal(504, "The program of the CGI page took too long.\n"),
        }
    }

    fn has(&self, name: FileName) -> bool {
        u64::from(name.directory) < self.directories
    }

    fn log(&self) -> std::sync::MutexGuard<'_, PostLog> {
        self.posts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Converts the output of one of our programs to a response: a header with the type, a cookie or a
/// status, an empty line, the page.
fn passed_on(mut output: Vec<u8>) -> Response<PageBody> {
    const END: &[u8] = b"\r\n\r\n";
    let Some(at) = output.windows(END.len()).position(|window| window == END) else {
        return refusal(502, "The program of the CGI page wrote no head.\n");
    };
    let body = output.split_off(at + END.len());
    let head = String::from_utf8_lossy(&output).into_owned();
    let field = |name: &str| {
        let mut fields = head.lines().filter_map(|line| line.split_once(": "));
        fields.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    };
    let status = field("Status").and_then(|status| status.get(..3)?.parse().ok());
    let status = status.unwrap_or(StatusCode::OK);
    let response = page_of(status, Some(DYNAMIC_TYPE), PageBody::Whole(body.into()));
    match field("Set-Cookie") {
        Some(cookie) => with(response, header::SET_COOKIE, cookie),
        None => response,
    }
}

fn visitor(headers: &HeaderMap) -> Option<Visitor> {
    let values = headers.get_all(header::COOKIE).iter();
    let mut known = values.filter_map(|value| Visitor::parse(value.to_str().ok()?));
    known.next_back()
}

fn refusal(status: u16, text: &str) -> Response<PageBody> {
    refuse(&Refusal { status, text: text.to_owned() })
}
