//! One of siege's users: a page, its parts, a pause, the next page; redirects, challenges and
//! refreshes in between.

use super::address::Address;
use super::cache::Cache;
use super::call_report::{CallReport, LoggedRequest, sentence};
use super::config::{Config, Login, error};
use super::journey::Journey;
use super::login::{Challenge, Pass};
use super::request::{self, ExtraFields};
use super::{pages, parts};
use protocol::http1::fields;
use sample::{FailureClass, Outcome};
use std::collections::VecDeque;
use units::{Nanos, Purpose, Seed, Stream};
use workload::{CallEnd, GuideCall, Jar, Step};

/// Maximum number of requests that one page or part causes by redirects, refreshes and challenges.
const CHAIN_MAX: u32 = 100;
/// Maximum number of parts fetched with one page; pages among them have their own parts.
const PARTS_MAX: u32 = 1_000;

#[derive(Debug)]
pub(super) struct Visitor {
    random: Stream,
    pages: pages::Pages,
    /// Parts to fetch; the last one added is fetched next.
    parts: Vec<Address>,
    parts_left: u32,
    /// Addresses to request after the previous response.
    chase: VecDeque<Address>,
    /// True if the current request belongs to a login of the configuration.
    logging_in: bool,
    /// Answered requests of the current chain.
    chain: u32,
    /// Challenges that were answered since the page or part began.
    bids: i32,
    proxy_bids: i32,
    pass: Option<Pass>,
    proxy_pass: Option<Pass>,
    /// True if the auth-url was requested.
    gated: bool,
    jar: Jar,
    cache: Cache,
    /// Request in progress: the address, and the request as text if it is shown.
    current: Option<(Address, Vec<u8>)>,
    /// Next action; `None` if there is none.
    ahead: Option<Option<(Nanos, Address)>>,
    /// Lines of cached parts that precede the next call.
    early: Vec<LoggedRequest>,
}

impl Visitor {
    pub(super) fn new(journey: &Journey, user: u64) -> Visitor {
        let mut chase = VecDeque::new();
        if !journey.logins.is_empty() {
            let row = (user % journey.logins.len() as u64) as usize;
            chase.push_back(journey.logins[row].clone());
        }
        Visitor {
            random: Seed(1).stream(Purpose::Think, user),
            pages: pages::Pages::new(journey, user),
            parts: Vec::new(),
            parts_left: 0,
            logging_in: !chase.is_empty(),
            chase,
            chain: 0,
            bids: 0,
            proxy_bids: 0,
            pass: None,
            proxy_pass: None,
            gated: false,
            jar: Jar::new(),
            cache: Cache::default(),
            current: None,
            ahead: None,
            early: Vec::new(),
        }
    }

    /// Returns the next call.
    pub(super) fn step(&mut self, journey: &Journey, now: Nanos, given_up: bool) -> Step {
        if self.ahead.is_none() {
            let mut lines = Vec::new();
            self.look_ahead(journey, now, given_up, &mut lines);
            self.early.append(&mut lines);
        }
        let Some(Some((wait, address))) = self.ahead.take() else { return Step::Leave };
        let fields = self.fields(&journey.config, &address);
        let bytes = request::text(&journey.config, &address, &fields);
        let template = request::template(&address, bytes.clone());
        let shown = journey.config.get || journey.config.print || journey.config.debug;
        self.current = Some((address, if shown { bytes } else { Vec::new() }));
        Step::Call(GuideCall { wait, row: 0, template: Box::new(template) })
    }

    fn fields(&mut self, config: &Config, address: &Address) -> ExtraFields {
        let target = request::target(config, address);
        let value = |pass: &mut Option<Pass>| pass.as_mut()?.value(address.method, &target);
        ExtraFields {
            authorization: value(&mut self.pass),
            proxy_authorization: value(&mut self.proxy_pass),
            cookie: self.cookie(config, address),
            conditions: if config.cache {
                self.cache.conditions(address.url.as_str())
            } else {
                String::new()
            },
        }
    }

    /// Returns the Cookie field; siege writes no spaces between its pairs.
    fn cookie(&self, config: &Config, address: &Address) -> Option<String> {
        let header = self.jar.header(&address.url).filter(|_| config.cookies)?;
        Some(header.replace("; ", ";"))
    }

    /// Decides the next action; adds a line to `lines` for each part in the cache.
    pub(super) fn look_ahead(
        &mut self,
        journey: &Journey,
        now: Nanos,
        given_up: bool,
        lines: &mut Vec<LoggedRequest>,
    ) {
        self.ahead = Some(self.following(journey, now, given_up, lines));
    }

    fn following(
        &mut self,
        journey: &Journey,
        now: Nanos,
        given_up: bool,
        lines: &mut Vec<LoggedRequest>,
    ) -> Option<(Nanos, Address)> {
        if let Some(address) = self.chase.pop_front() {
            return Some((Nanos::ZERO, address));
        }
        let config = &journey.config;
        (self.chain, self.bids, self.proxy_bids) = (0, 0, 0);
        // parts of a login's page are counted with those of the first page
        while !self.logging_in
            && let Some(part) = self.parts.pop()
        {
            if is_excluded(config, &part) {
                continue;
            }
            if config.cache && self.cache.fresh(part.url.as_str(), now) {
                lines.push(line("HTTP/1.1", 200, true, config, &part));
                continue;
            }
            return Some((Nanos::ZERO, part));
        }
        self.logging_in = false;
        if given_up {
            return None;
        }
        let turn = self.pages.next(journey, &mut self.random)?;
        if turn.afresh && config.expire_session {
            self.jar = Jar::new();
        }
        self.parts_left = PARTS_MAX;
        Some((turn.wait, journey.urls[turn.row as usize].clone()))
    }

    /// Returns the result of the current call.
    pub(super) fn ended(&mut self, journey: &Journey, came: &CallEnd<'_>) -> CallReport {
        let config = &journey.config;
        let mut call_report =
            CallReport { lines: std::mem::take(&mut self.early), ..CallReport::default() };
        let Some((address, sent)) = self.current.take() else { return call_report };
        if matches!(came.outcome, Outcome::Abandoned | Outcome::Dropped) {
            return call_report;
        }
        show(config, &address, &sent, came, &mut call_report);
        let sample = came.sample;
        let foreign = matches!(
            sample.class,
            Some(FailureClass::NotHttp | FailureClass::BadFraming | FailureClass::Unasked)
        );
        if sample.status == 418 || (sample.status == 0 && foreign) {
            // no HTTP server: siege treats it as a teapot, which counts as both successful and
            // failed
            (call_report.hits, call_report.timed) = (1, true);
            call_report.lines.push(line("HTTP/1.1", 418, false, config, &address));
            self.fail(&mut call_report);
            return call_report;
        }
        if sample.status == 0 {
            call_report.err = sentence(sample).unwrap_or_default();
            self.fail(&mut call_report);
            return call_report;
        }
        if !config.zero_data_ok && sample.body_bytes == 0 {
            self.fail(&mut call_report);
            return call_report;
        }
        self.count(config, &address, came, &mut call_report);
        let refresh = self.read_page(config, &address, came);
        if self.continues_chain(journey, &address, came, refresh, &mut call_report) {
            self.chain += 1;
        } else if call_report.failed == 0 {
            call_report.hits = self.chain + 1;
            self.chain = 0;
        }
        call_report
    }

    fn count(
        &mut self,
        config: &Config,
        address: &Address,
        came: &CallEnd<'_>,
        call_report: &mut CallReport,
    ) {
        let status = came.sample.status;
        (call_report.timed, call_report.measured) = (true, true);
        call_report.success = status < 400 || matches!(status, 401 | 407);
        call_report.okay = status == 200;
        let protocol = came.head.get(..8).map(String::from_utf8_lossy).unwrap_or_default();
        call_report.lines.push(line(&protocol, status, false, config, address));
        if config.cookies {
            for value in fields::set_cookies(came.head) {
                self.jar.absorb(&address.url, value);
            }
        }
        if config.cache {
            self.cache.take(address.url.as_str(), status, came.head, came.sample.done);
        }
    }

    /// Records that the current chain has failed: none of its requests counts as successful.
    fn fail(&mut self, call_report: &mut CallReport) {
        // the original ignores failures of a login
        call_report.failed = u32::from(!self.logging_in);
        self.chain = 0;
        self.chase.clear();
    }

    /// Adds the parts of a page; returns its refresh target.
    fn read_page(
        &mut self,
        config: &Config,
        address: &Address,
        came: &CallEnd<'_>,
    ) -> Option<Address> {
        let kind = fields::find(came.head, "content-type").unwrap_or_default();
        let html = kind.get(..9).is_some_and(|start| start.eq_ignore_ascii_case(b"text/html"));
        if !config.parser || !html || came.sample.status >= 300 {
            return None;
        }
        let page = parts::read(&pages::decoded(came.head, came.body), &address.url);
        for part in page.parts.into_iter().filter_map(|url| address.resolve_reference(url)) {
            let known = self.parts.iter().any(|other| other.url == part.url);
            if !known && self.parts_left > 0 {
                self.parts_left -= 1;
                self.parts.push(part);
            }
        }
        page.refresh.and_then(|url| address.resolve_reference(url))
    }

    /// Returns whether the response leads to another request of the same chain, which is then the
    /// next.
    fn continues_chain(
        &mut self,
        journey: &Journey,
        address: &Address,
        came: &CallEnd<'_>,
        refresh: Option<Address>,
        call_report: &mut CallReport,
    ) -> bool {
        let config = &journey.config;
        let status = came.sample.status;
        let next = match status {
            200 => refresh,
            301 | 302 | 303 | 307 if config.follow => redirected(address, came),
            201 if config.follow && config.newer => redirected(address, came),
            401 | 407 => self.challenged(journey, address, came, call_report),
            403 => self.gate(journey, address),
            408 | 500..=509 => {
                self.fail(call_report);
                None
            }
            _ => None,
        };
        let Some(next) = next else { return false };
        if self.chain >= CHAIN_MAX {
            call_report
                .err
                .push_str(&error(&format!("{}: over {CHAIN_MAX} redirects", address.shown)));
            self.fail(call_report);
            return false;
        }
        self.chase.push_front(next);
        true
    }

    /// Handles a 403: requests the auth-url of the same host once, and then the page again.
    fn gate(&mut self, journey: &Journey, address: &Address) -> Option<Address> {
        let gate = journey.gates.iter().find(|gate| gate.host() == address.host())?;
        if std::mem::replace(&mut self.gated, true) {
            return None;
        }
        self.chase.push_front(address.clone());
        Some(gate.clone())
    }

    /// Handles a challenge: repeats the request, with a login if one fits.
    fn challenged(
        &mut self,
        journey: &Journey,
        address: &Address,
        came: &CallEnd<'_>,
        call_report: &mut CallReport,
    ) -> Option<Address> {
        let config = &journey.config;
        let proxied = came.sample.status == 407;
        let bids = if proxied { &mut self.proxy_bids } else { &mut self.bids };
        *bids += 1;
        if *bids >= config.attempts {
            return None;
        }
        let (field, logins) = match proxied {
            true => ("proxy-authenticate", &config.proxy_logins),
            false => ("www-authenticate", &config.logins),
        };
        let challenge = Challenge::parse(came.head, field)?;
        let realm = challenge.realm().to_owned();
        let named = address.login.clone().filter(|_| !proxied).map(|(user, password)| Login {
            user,
            password,
            realm: "any".to_owned(),
        });
        let login = Login::find(logins, &realm).cloned().or(named);
        match (&challenge, login) {
            (Challenge::Other(name), _) => {
                call_report.err = error(&format!(
                    "{name} is not a login that is supported here; Basic and Digest are"
                ));
                self.fail(call_report);
                return None;
            }
            (Challenge::Digest(_), None) => {
                call_report.err = unanswered(&realm, proxied);
                self.fail(call_report);
                return None;
            }
            // the original nevertheless repeats the request
            (Challenge::Basic { .. }, None) => {}
            (_, Some(login)) => {
                let pass = Pass::new(login, challenge, self.random.next_u64());
                if proxied { self.proxy_pass = pass } else { self.pass = pass }
            }
        }
        Some(address.clone())
    }
}

fn unanswered(realm: &str, proxied: bool) -> String {
    let (kind, word, key) = match proxied {
        true => ("a proxy authorization", "HTTP realm", "proxy-login"),
        false => ("an authorization", "realm", "login"),
    };
    format!(
        "ERROR: Unable to respond to {kind} challenge\n       in the following {word}: \
         '{realm}'\n       Did you set {key} credentials in the conf file?\n"
    )
}

/// Returns the target of a Location field; only 307 keeps method and body.
fn redirected(address: &Address, came: &CallEnd<'_>) -> Option<Address> {
    let location = String::from_utf8_lossy(fields::location(came.head)?).into_owned();
    let mut next = address.join(&location)?;
    if came.sample.status == 307 {
        (next.method, next.body) = (address.method, address.body.clone());
    }
    Some(next)
}

/// Returns whether the part's host must not be visited.
fn is_excluded(config: &Config, part: &Address) -> bool {
    let host = part.host().to_ascii_lowercase();
    config.no_follow.iter().any(|name| host.contains(&name.to_ascii_lowercase()))
}

fn line(
    protocol: &str,
    code: u16,
    cached: bool,
    config: &Config,
    address: &Address,
) -> LoggedRequest {
    LoggedRequest {
        protocol: protocol.to_owned(),
        code,
        cached,
        method: address.method,
        shown: address.display(config.full_url).to_owned(),
        row: address.row,
    }
}

/// Renders the output of `-g`, `-p` and debug mode for a call.
fn show(
    config: &Config,
    address: &Address,
    sent: &[u8],
    came: &CallEnd<'_>,
    call_report: &mut CallReport,
) {
    let asked_for = config.get || config.debug || config.print;
    let heads = (config.get || config.debug) && !config.quiet;
    // a request with a body is printed even by a quiet siege
    let requests = asked_for && (!config.quiet || matches!(address.method, "POST" | "PUT"));
    if !came.sample.sent.is_zero() && requests {
        call_report.out.extend_from_slice(sent);
        call_report.out.push(b'\n');
        if !sent.ends_with(b"\r\n\r\n") {
            call_report.out.push(b'\n');
        }
    }
    if heads && !came.head.is_empty() {
        call_report.out.extend_from_slice(came.head);
        call_report.out.push(b'\n');
    }
    if config.print && came.sample.status != 0 {
        call_report.out.extend_from_slice(&pages::decoded(came.head, came.body));
        call_report.out.push(b'\n');
    }
}
