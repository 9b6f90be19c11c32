//! The simultaneous connections of a SPECweb99 load: next request, time at which the line is free,
//! correctness of responses, and conformance.
//!
//! A simultaneous connection is a user here: its TCP connections follow one another, three of ten
//! with one HTTP/1.0 request, the others with 5 to 15. It receives at 400 kbit/s, as if limited by
//! its line: after a response of b bits it waits until b / 400,000 s have passed since the request.
//! Its receive rate in the measured phase, including these waits, determines whether it conforms.

use crate::exchange;
use crate::render::{Own, build_own};
use plan::specweb99::{ERRORS_MAX, LINE_BPS};
use plan::{HttpVersion, Plan, Specweb99Plan};
use protocol::http1::fields;
use protocol::http1::request::RequestError;
use sample::{FailureClass, Note, Noticed, Outcome, Remark};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use units::{Nanos, Purpose, Seed, Stream};
use url::Url;
use workload::fileset::FileContent;
use workload::fileset::specweb99::{
    Advertising, Choice, FileOfPage, Operation, PostForm, SentPost, ShownAd, USERS, Visitor,
    file_of_page,
};
use workload::fileset::specweb99_files::{ADS, FileName};
use workload::{CallEnd, Guide, GuideCall, Step, Template, WholeResponse};

/// Time within which the connections start: the time that a mean response occupies a line. Without
/// this spread all connections would send requests at the same instants.
const BEGINNING: Nanos = Nanos::from_millis(300);
/// The number of the first client in POSTs.
const CLIENT_FIRST: u32 = 10_000;

/// A prepared load, shared by the guides of all workers.
#[derive(Debug)]
pub struct SpecwebLoad {
    /// Templates for connections with one request, and for persistent ones.
    single: Plan,
    kept: Plan,
    folder: Url,
    /// Dynamic pages, and those that a separate process generates; `None` for files only.
    scripts: Option<(Url, Url)>,
    choice: Choice,
    ads: Advertising,
    files_seed: Seed,
    seed: Seed,
    warm_up: Nanos,
    span: Nanos,
    /// POSTs sent by the guides; each guide writes them once, when its run is over.
    posts: Mutex<Vec<SentPost>>,
}

impl SpecwebLoad {
    /// Returns `None` if the plan has no such load.
    pub fn new(plan: &Plan) -> Option<Arc<SpecwebLoad>> {
        let Specweb99Plan { directories, files_seed } = plan.specweb99?;
        let folder = Specweb99Plan::folder(plan)?;
        let script = |row: Operation| {
            let mut url = plan.targets.get(row.row() as usize)?.url.clone();
            url.set_query(None);
            Some(url)
        };
        let mut single = plan.clone();
        single.request.version = HttpVersion::Http10;
        Some(Arc::new(SpecwebLoad {
            single,
            kept: plan.clone(),
            folder,
            scripts: script(Operation::Dynamic).zip(script(Operation::Cgi)),
            choice: Choice::new(u64::from(directories)),
            ads: Advertising::new(Seed(files_seed)),
            files_seed: Seed(files_seed),
            seed: Seed(plan.seed),
            warm_up: plan.stop.warm_up,
            span: plan.stop.duration.unwrap_or(Nanos::NEVER),
            posts: Mutex::new(Vec::new()),
        }))
    }

    /// Returns the guide of one worker.
    pub fn guide(self: &Arc<SpecwebLoad>) -> Box<dyn Guide> {
        let load = self.clone();
        Box::new(SpecwebGuide {
            load,
            lines: BTreeMap::new(),
            remarks: Vec::new(),
            phase: None,
            posts: Vec::new(),
        })
    }

    /// Returns the POSTs of all workers, when their run is over.
    pub fn take_posts(&self) -> Vec<SentPost> {
        std::mem::take(&mut self.posts.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the URLs that reset and fetch the log of the POSTs, or `None` if there are no POSTs.
    pub fn log_commands(&self) -> Option<[Url; 2]> {
        let (script, _) = self.scripts.as_ref()?;
        let command = |query: &str| {
            let mut url = script.clone();
            url.set_query(Some(query));
            url
        };
        let users = match self.kept.load {
            plan::Load::Closed { users, .. } => users,
            plan::Load::Open { .. } => 0,
        };
        Some([command(&format!("command/Reset&maxload={users}")), command("command/Fetch")])
    }

    /// Returns the path to the set's folder, without a trailing slash.
    fn root(&self) -> &str {
        self.folder.path().trim_end_matches('/')
    }

    /// # Errors
    /// Fails if a field of the plan is invalid.
    fn request(&self, asked: &RequestedOperation, user: u64) -> Result<Template, RequestError> {
        let plan = if asked.calls == 1 { &self.single } else { &self.kept };
        let root = self.root();
        let mut headers = Vec::new();
        let mut body = None;
        let url = match (asked.operation, &self.scripts) {
            (Operation::Static, _) | (_, None) => {
                let mut url = self.folder.clone();
                url.set_path(&format!("{root}/{}", asked.name));
                url
            }
            (Operation::Post, Some((script, _))) => {
                let post = asked.post(user);
                headers.push(("Content-Type".into(), "application/x-www-form-urlencoded".into()));
                body = Some(post.body(root).into_bytes());
                script.clone()
            }
            (operation, Some((script, cgi))) => {
                let mut url = if operation == Operation::Cgi { cgi } else { script }.clone();
                url.set_query(Some(&format!("{root}/{}", asked.name)));
                url
            }
        };
        if asked.has_cookie() {
            headers.push(("Cookie".into(), asked.visitor.to_string()));
        }
        let target = &url[url::Position::BeforePath..url::Position::AfterQuery];
        let method = if body.is_some() { "POST" } else { "GET" };
        let own = Own { target, headers: &headers, body: body.as_deref(), ..Own::default() };
        let absolute = plan.connection.proxy.is_some() && url.scheme() == "http";
        let mut made = build_own(plan, &url, method, &own, 0, absolute)?;
        if asked.left == 0 {
            // the request announces that no other follows, so the server closes the connection
            made.bytes.clone_from(&made.last);
            made.cookie_at = made.cookie_at_last;
        }
        Ok(made)
    }
}

/// Sends a request to the log of the POSTs; returns the content of the response.
///
/// # Errors
/// Fails without a response, or if it does not report success.
pub fn command(
    plan: &Plan,
    url: &Url,
    caller: &mut dyn exchange::Caller,
) -> Result<Vec<u8>, String> {
    let absolute = plan.connection.proxy.is_some() && url.scheme() == "http";
    let template = crate::build_template(plan, url, "GET", &[], None, 0, absolute);
    let template = template.map_err(|error| error.to_string())?;
    let message = exchange::Message::new(template, None);
    let sent = exchange::Outgoing {
        url: url.clone(),
        message,
        timeout: plan.timeouts.call,
        negotiates: false,
    };
    let Some(heard) = caller.exchange(vec![sent]).pop() else {
        return Err("no response to it".to_owned());
    };
    let reply = heard.result.map_err(|trouble| trouble.with_fix())?;
    match reply.facts.status {
        200..=299 => Ok(reply.body),
        other => Err(format!("status {other}")),
    }
}

/// Request of a simultaneous connection.
#[derive(Clone, Copy, Debug)]
struct RequestedOperation {
    operation: Operation,
    name: FileName,
    visitor: Visitor,
    /// Remaining requests of its TCP connection, including this one.
    calls: u64,
    left: u64,
}

impl RequestedOperation {
    fn has_cookie(&self) -> bool {
        matches!(self.operation, Operation::CustomAd | Operation::Post)
    }

    fn post(&self, user: u64) -> PostForm {
        let client = CLIENT_FIRST.saturating_add(u32::try_from(user).unwrap_or(u32::MAX));
        PostForm { name: self.name, client, user: self.visitor.user }
    }
}

/// A simultaneous connection.
#[derive(Debug)]
struct PacedConnection {
    stream: Stream,
    calls: u64,
    left: u64,
    visitor: Visitor,
    asked: Option<RequestedOperation>,
    /// Instant at which the line is free for the next request.
    free_at: Nanos,
    /// For calls wholly or partly in the measured phase: received bits, their time with the waits,
    /// their number, and the number of failures.
    bits: u64,
    time: Nanos,
    ended: u64,
    failed: u64,
}

impl PacedConnection {
    fn new(seed: Seed, user: u64) -> PacedConnection {
        PacedConnection {
            stream: seed.stream(Purpose::Operations, user),
            calls: 0,
            left: 0,
            visitor: Visitor::default(),
            asked: None,
            free_at: Nanos::ZERO,
            bits: 0,
            time: Nanos::ZERO,
            ended: 0,
            failed: 0,
        }
    }

    /// Draws the next request.
    fn draw(&mut self, load: &SpecwebLoad) -> RequestedOperation {
        let stream = &mut self.stream;
        if self.left == 0 {
            self.calls = workload::fileset::specweb99::calls(stream);
            self.left = self.calls;
            let user = stream.below(u64::from(USERS)) as u32;
            self.visitor = Visitor { user, last_ad: stream.below(u64::from(ADS)) as u32 };
        }
        self.left -= 1;
        let drawn = Operation::draw(stream);
        let operation = if load.scripts.is_some() { drawn } else { Operation::Static };
        let name = load.choice.file(stream);
        RequestedOperation {
            operation,
            name,
            visitor: self.visitor,
            calls: self.calls,
            left: self.left,
        }
    }

    /// Returns whether the rate is above the threshold, with few enough errors and at least one
    /// call.
    fn conforms(&self, threshold_bps: f64) -> bool {
        let fast = self.bits as f64 > threshold_bps * self.time.as_secs_f64();
        fast && (self.failed as f64) < ERRORS_MAX * self.ended as f64
    }
}

/// The simultaneous connections of one worker.
#[derive(Debug)]
struct SpecwebGuide {
    load: Arc<SpecwebLoad>,
    lines: BTreeMap<u64, PacedConnection>,
    remarks: Vec<Remark>,
    /// The measured phase; known from the first query, at the start of the run.
    phase: Option<(Nanos, Nanos)>,
    posts: Vec<SentPost>,
}

impl SpecwebGuide {
    fn phase(&mut self, now: Nanos) -> (Nanos, Nanos) {
        let (warm_up, span) = (self.load.warm_up, self.load.span);
        *self.phase.get_or_insert_with(|| {
            let from = now + warm_up;
            (from, Nanos(from.0.saturating_add(span.0)))
        })
    }

    /// Counts a call that has ended.
    fn count(&mut self, user: u64, came: &CallEnd<'_>) {
        let phase = self.phase.unwrap_or((Nanos::ZERO, Nanos::NEVER));
        let Some(line) = self.lines.get_mut(&user) else { return };
        let sample = came.sample;
        let free = Nanos::from_secs_f64(sample.bytes_received as f64 * 8.0 / LINE_BPS);
        line.free_at = sample.done;
        if !sample.sent.is_zero() {
            line.free_at = sample.done.max(sample.sent + free);
        }
        // including its wait: a long file may occupy the line during the whole measured phase
        if line.free_at <= phase.0 || sample.intended >= phase.1 {
            return;
        }
        let heads = self.load.kept.measure.conforming_counts_heads;
        let bytes = if heads { sample.bytes_received } else { sample.body_bytes };
        line.bits += bytes * 8;
        line.time += line.free_at - sample.intended;
        line.ended += 1;
        line.failed += u64::from(came.outcome != Outcome::Succeeded);
    }
}

impl Guide for SpecwebGuide {
    fn keeps_bodies(&self) -> bool {
        true
    }

    fn sees_every_response(&self) -> bool {
        true
    }

    fn report(&mut self, process: &mut dyn FnMut(Remark)) {
        self.remarks.drain(..).for_each(process);
    }

    fn next(&mut self, user: u64, now: Nanos) -> Step {
        let (from, until) = self.phase(now);
        let load = self.load.clone();
        let line = self.lines.entry(user).or_insert_with(|| {
            let mut line = PacedConnection::new(load.seed, user);
            line.free_at = now + Nanos(line.stream.below(BEGINNING.0));
            line
        });
        let at = line.free_at.max(now);
        if at >= until {
            let conforming = line.conforms(load.kept.measure.conforming_bps);
            self.remarks.push(Remark { at: now.max(from), fact: Noticed::Judged { conforming } });
            return Step::Leave;
        }
        let asked = line.draw(&load);
        let Ok(template) = load.request(&asked, user) else { return Step::Leave };
        line.asked = Some(asked);
        let row = if load.scripts.is_some() { asked.operation.row() } else { 0 };
        Step::Call(GuideCall { wait: at - now, row, template: Box::new(template) })
    }

    fn judge(
        &mut self,
        user: u64,
        heard: &WholeResponse<'_>,
        planned: Option<FailureClass>,
    ) -> Option<FailureClass> {
        let Some(asked) = self.lines.get(&user).and_then(|line| line.asked) else { return planned };
        let in_warm_up = self.phase.is_some_and(|(from, _)| heard.now < from);
        planned.or_else(|| self.load.wrong(&asked, heard, in_warm_up))
    }

    fn note_call_end(&mut self, user: u64, came: &CallEnd<'_>) -> Option<Note> {
        self.count(user, came);
        let line = self.lines.get_mut(&user)?;
        let asked = line.asked.take()?;
        let answered = came.outcome == Outcome::Succeeded;
        if asked.operation == Operation::Post {
            self.posts.push(SentPost { post: asked.post(user), answered });
        }
        if answered && asked.operation == Operation::CustomAd {
            let shown = shown(came.head).map_or(line.visitor.last_ad, |shown| shown.ad);
            line.visitor.last_ad = shown;
        }
        if !answered {
            // a server that refuses at once gets no further request within its refusal
            let pause = self.load.kept.connection.reconnect_pause.max(Nanos(1));
            line.free_at += pause;
        }
        if !answered || !came.sample.persistent {
            // the next request is the first one of another connection
            line.left = 0;
        }
        None
    }
}

/// Passes on the sent POSTs; an outstanding POST was not answered.
impl Drop for SpecwebGuide {
    fn drop(&mut self) {
        for (user, line) in &self.lines {
            if let Some(asked) = line.asked.filter(|asked| asked.operation == Operation::Post) {
                self.posts.push(SentPost { post: asked.post(*user), answered: false });
            }
        }
        let mut all = self.load.posts.lock().unwrap_or_else(PoisonError::into_inner);
        all.append(&mut self.posts);
    }
}

/// Returns the advertisement named by a response's cookie.
fn shown(head: &[u8]) -> Option<ShownAd> {
    let mut cookies = fields::set_cookies(head);
    cookies.find_map(|value| ShownAd::parse(std::str::from_utf8(value).ok()?))
}

impl SpecwebLoad {
    /// Returns what is wrong with a response: another length or content of the file, or another
    /// advertisement. In the warm-up every byte is compared; in the measured phase, the first and
    /// the last line of the file, and its length.
    fn wrong(
        &self,
        asked: &RequestedOperation,
        heard: &WholeResponse<'_>,
        whole: bool,
    ) -> Option<FailureClass> {
        let size = asked.name.size() as usize;
        let file = match asked.operation {
            Operation::Static if heard.body.len() != size => return Some(FailureClass::Length),
            Operation::Static => heard.body,
            _ => match file_of_page(heard.body, size) {
                FileOfPage::Found(file) => file,
                FileOfPage::Missing => return Some(FailureClass::Length),
            },
        };
        let mut content = FileContent::new(self.files_seed, &asked.name.to_string());
        if asked.operation == Operation::CustomAd {
            let wanted = self.ads.choose(asked.visitor);
            if shown(heard.head) != Some(wanted) {
                return Some(FailureClass::Expectation);
            }
            content = content.with_ad(wanted.ad);
        }
        let same = if whole { content.is(file) } else { content.has_valid_ends(file) };
        (!same).then_some(FailureClass::Differs)
    }
}

#[cfg(test)]
mod tests;
