//! Crawls of sites that are defined by tables.

use super::*;
use crate::exchange::ExchangeError;
use protocol::http1::response::ResponseFacts;

/// Answers by path: status, fields, body. Any other path is not found.
struct Table {
    responses: Vec<(&'static str, u16, &'static str, &'static str)>,
    sent: Vec<String>,
    most_at_once: usize,
    stop_after: usize,
}

fn table(responses: &[(&'static str, u16, &'static str, &'static str)]) -> Table {
    let responses = responses.to_vec();
    Table { responses, sent: Vec::new(), most_at_once: 0, stop_after: usize::MAX }
}

impl Caller for Table {
    fn exchange(&mut self, requests: Vec<Outgoing>) -> Vec<ExchangeOutcome> {
        self.most_at_once = self.most_at_once.max(requests.len());
        requests.iter().map(|request| self.heard(request)).collect()
    }

    fn interrupted(&self) -> bool {
        self.sent.len() >= self.stop_after
    }
}

impl Table {
    fn heard(&mut self, request: &Outgoing) -> ExchangeOutcome {
        self.sent.push(String::from_utf8_lossy(request.message.http1_bytes()).into_owned());
        let path = &request.url[Position::BeforePath..];
        let found = self.responses.iter().find(|(known, ..)| *known == path);
        let (status, fields, body) =
            found.map_or((404, "", ""), |(_, status, fields, body)| (*status, *fields, *body));
        if status == 0 {
            let trouble = ExchangeError::new(FailureClass::Refused, body.into());
            return ExchangeOutcome::nothing(trouble);
        }
        let facts = ResponseFacts { status, ..ResponseFacts::default() };
        let head = format!("HTTP/1.1 {status} X\r\n{fields}\r\n\r\n").into_bytes();
        let reply = Reply { facts, head, body: body.as_bytes().to_vec() };
        ExchangeOutcome { result: Ok(reply), connected: true, took: Nanos::ZERO }
    }
}

fn plan() -> CrawlPlan {
    CrawlPlan {
        start: Url::parse("http://h:81/#top").unwrap(),
        calls_max: 1_000,
        depth_max: 10,
        together: 2,
        timeout: Nanos::SECOND,
        parts: true,
        headers: vec![("X-One".into(), "1".into())],
        user_agent: "loadstone/test".into(),
    }
}

fn paths(urls: &[Url]) -> Vec<&str> {
    urls.iter().map(|url| &url[Position::BeforePath..]).collect()
}

const HTML: &str = "Content-Type: Text/HTML; charset=utf-8";

const SITE: &[(&str, u16, &str, &str)] = &[
    (
        "/",
        200,
        HTML,
        "<a href=/a#x>a</a><a href=/a#y>a</a><a href='mailto:me@h'>m</a><img src=i.png>\
         <a href=http://h/>other port</a><a href=http://u@h:81/>login</a><a href=gone>g</a>",
    ),
    ("/a", 200, HTML, "<a href=/b?q=1&amp;r=2>b</a><iframe src=/f></iframe><a href=/>home</a>"),
    ("/b?q=1&r=2", 200, HTML, "<a href=/deep>d</a><a href=/moved>m</a>"),
    ("/f", 200, "Content-Type: application/xhtml+xml", "<a href=/deep>d</a>"),
    ("/deep", 200, "Content-Type: text/plain", "<a href=/not-a-link>x</a>"),
    ("/moved", 301, "Location: /there", ""),
    ("/there", 204, "", ""),
    ("/i.png", 200, "Content-Type: image/png", "<a href=/never>"),
];

#[test]
fn every_page_is_found_once_and_nothing_elsewhere_is_asked() {
    let mut world = table(SITE);
    let found = crawl(&plan(), &mut world, &mut |_, _| {}).unwrap();
    let good = ["/", "/a", "/i.png", "/b?q=1&r=2", "/f", "/deep", "/there"];
    assert_eq!(paths(&found.good), good);
    let broken: Vec<String> = found.broken.iter().map(|b| format!("{} {}", b.why, b.url)).collect();
    assert_eq!(broken, ["404 http://h:81/gone"]);
    assert_eq!(found.broken[0].found_on.as_ref().map(Url::as_str), Some("http://h:81/"));
    // the excluded addresses: the mail address, the other port, the login
    assert_eq!((found.asked, found.elsewhere, found.left_out), (9, 3, 0));
    assert_eq!(world.most_at_once, 2);
    let wanted = "GET / HTTP/1.1\r\nHost: h:81\r\n";
    assert!(world.sent[0].starts_with(wanted), "{}", world.sent[0]);
    assert!(world.sent[0].contains("X-One: 1\r\n"), "{}", world.sent[0]);
}

#[test]
fn bounds_hold_and_report_omissions() {
    let bounded = |change: fn(&mut CrawlPlan)| {
        let mut plan = plan();
        change(&mut plan);
        let found = crawl(&plan, &mut table(SITE), &mut |_, _| {}).unwrap();
        (paths(&found.good).join(" "), found.asked, found.left_out)
    };
    // of the start: /a and /gone are too deep
    assert_eq!(bounded(|plan| plan.depth_max = 0), ("/ /i.png".to_owned(), 2, 2));
    let two = bounded(|plan| plan.depth_max = 2);
    // a frame of /a has the depth of /a; /deep is found from there
    assert_eq!(two, ("/ /a /i.png /b?q=1&r=2 /f /deep".to_owned(), 7, 1));
    assert_eq!(bounded(|plan| plan.calls_max = 3), ("/ /a /i.png".to_owned(), 3, 3));
    let pages = bounded(|plan| plan.parts = false);
    assert_eq!(pages, ("/ /a /b?q=1&r=2 /f /deep /there".to_owned(), 8, 0));
}

#[test]
fn a_missing_server_and_an_interrupt_end_the_crawl() {
    let mut world = table(&[("/", 0, "", "connection refused")]);
    let found = crawl(&plan(), &mut world, &mut |_, _| {}).unwrap();
    assert_eq!(found.unreachable.as_deref(), Some("connection refused"));
    assert!(found.good.is_empty() && found.broken.len() == 1);
    let mut world = Table { stop_after: 2, ..table(SITE) };
    let found = crawl(&plan(), &mut world, &mut |_, _| {}).unwrap();
    assert!(found.interrupted && found.good.len() == 1, "{found:?}");
}

#[test]
fn a_redirect_that_leads_nowhere_is_broken() {
    let found = crawl(&plan(), &mut table(&[("/", 302, "", "")]), &mut |_, _| {}).unwrap();
    assert_eq!(found.broken[0].why, "302 without a target");
    let away = [("/", 302, "Location: https://h:81/", "")];
    let found = crawl(&plan(), &mut table(&away), &mut |_, _| {}).unwrap();
    assert_eq!((found.elsewhere, found.good.len(), found.broken.len()), (1, 0, 0));
}
