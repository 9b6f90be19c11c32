use super::*;
use crate::catalogue;
use crate::judge::Judgement;
use crate::result::{Health, ServerDuringCase};
use sample::{Death, Ending, Process, ServerState};
use units::Nanos;

fn row(id: &str, kind: Option<FailureKind>, name: &str, sent: &[u8]) -> CaseResult {
    let all = catalogue::cases().unwrap();
    let case = all.into_iter().find(|case| case.id == id).unwrap();
    let outcome = TestOutcome::Fail;
    let exchange = ExchangeResult {
        name: name.to_owned(),
        judgement: Judgement { outcome, kind, ..Judgement::default() },
        tries: 3,
        failed: 3,
        sent: sent.to_vec(),
        received: Vec::new(),
        took: Nanos::ZERO,
        pauses: Vec::new(),
    };
    CaseResult { outcome, exchanges: vec![exchange], ..CaseResult::new(&case) }
}

fn merged(mut cases: Vec<CaseResult>) -> String {
    merge(&mut cases, &[]);
    let one = |case: &CaseResult| {
        let root = case.same_as.as_ref().map_or(String::new(), |root| format!("={root}"));
        format!("{}{root}", case.case.id)
    };
    cases.iter().map(one).collect::<Vec<_>>().join(" ")
}

#[test]
fn findings_with_one_cause_are_one() {
    let nul = |id: &str, bytes: &[u8]| row(id, Some(FailureKind::Status(500)), "x", bytes);
    let encoded = b"GET /?%00 HTTP/1.1\r\nHost: h\r\n\r\n";
    let raw = b"GET / HTTP/1.1\r\nHost: h\r\nA: \0\r\n\r\n";
    let other = b"GET /?%ff HTTP/1.1\r\nHost: h\r\n\r\n";
    let both = b"GET /?%ff%00 HTTP/1.1\r\nHost: h\r\n\r\n";
    assert_eq!(
        merged(vec![nul("F-01", encoded), nul("F-02", other), nul("F-05", both), nul("S-11", raw)]),
        "F-01 F-02 F-05=F-01 S-11=F-01"
    );
    // one that may have several causes is explained by a later one with a single cause
    assert_eq!(merged(vec![nul("F-01", both), nul("F-02", encoded)]), "F-01=F-02 F-02");
    // a bad status line, regardless of the cause
    let no_http = |id: &str, sent: &[u8], why: &str| {
        let mut row = row(id, Some(FailureKind::NoHttp), "x", sent);
        row.exchanges[0].judgement.cause = Some(Cause::NoHttp(why.to_owned()));
        row
    };
    let version = "its head is invalid: invalid HTTP version";
    assert_eq!(
        merged(vec![
            no_http("F-07", b"GET / HTTP/11.1\r\n\r\n", version),
            no_http("F-08", b"GET /?%00 HTTP/2.1\r\n\r\n", version),
            no_http("K-01", b"GET / HTTP/9.9\r\n\r\n", "it does not begin with HTTP/"),
        ]),
        "F-07 F-08=F-07 K-01"
    );
    let late = |id: &str, kind| {
        let mut row = row(id, Some(kind), "x", encoded);
        row.exchanges[0].judgement.cause = Some(Cause::NoContinue);
        row
    };
    let (waits, prompt) =
        (late("F-15", FailureKind::NoContinue), late("S-50", FailureKind::Answer));
    assert_eq!(merged(vec![waits, prompt]), "F-15=S-50 S-50");
    let hang = row("F-02", Some(FailureKind::Hang), "x", encoded);
    assert_eq!(merged(vec![nul("F-01", encoded), hang]), "F-01 F-02");
    let because = |id: &str, kind, cause: Cause| {
        let mut row = row(id, kind, "x", b"DELETE /");
        row.exchanges[0].judgement.cause = Some(cause);
        row
    };
    let lacks = |name: &str| Cause::Missing(name.to_owned());
    let refused = Some(FailureKind::Refused);
    let lint = || because("F-13", None, lacks("allow"));
    assert_eq!(merged(vec![lint(), because("S-53", refused, lacks("allow"))]), "F-13 S-53=F-13");
    assert_eq!(merged(vec![lint(), because("S-53", refused, lacks("date"))]), "F-13 S-53");
}

#[test]
fn a_finding_with_more_failures_explains_one_with_fewer() {
    let lacks = |id: &str, names: &[Option<&str>]| {
        let mut all = row(id, None, "x", b"GET /");
        let one = all.exchanges[0].clone();
        all.exchanges = names.iter().map(|_| one.clone()).collect();
        for (exchange, name) in all.exchanges.iter_mut().zip(names) {
            exchange.judgement.cause = name.map(|name| Cause::Missing(name.to_owned()));
        }
        all
    };
    let (date, both) = (Some("date"), [Some("date"), None]);
    // the cause of one failure of F-13 is unknown
    let pair = |fewer: &[Option<&str>]| vec![lacks("F-13", &both), lacks("S-53", fewer)];
    assert_eq!(merged(pair(&[date])), "F-13 S-53=F-13");
    assert_eq!(merged(pair(&[Some("allow")])), "F-13 S-53");
    assert_eq!(merged(vec![lacks("F-13", &[None, None]), lacks("S-53", &[date])]), "F-13 S-53");
}

#[test]
fn an_echoed_version_is_one_cause() {
    let echoed = |id: &str, sent: &[u8]| {
        let mut row = row(id, Some(FailureKind::NoHttp), "x", sent);
        row.exchanges[0].judgement.cause = Some(Cause::EchoedVersion);
        row
    };
    let rows = vec![
        echoed("F-04", b"x y zzz\r\n\r\n"),
        echoed("F-08", b"GET / HTTP/9.9\r\nHost: h\r\n\r\n"),
        echoed("K-01", b"GET / HTTP/1.1 x\r\nHost: h\r\n\r\n"),
    ];
    assert_eq!(merged(rows), "F-04 F-08=F-04 K-01=F-04");
}

#[test]
fn chance_silence_and_content_are_causes() {
    let because = |id: &str, kind, cause: Cause| {
        let mut row = row(id, kind, "x", b"DELETE /");
        row.exchanges[0].judgement.cause = Some(cause);
        row
    };
    // regardless of their texts
    let lost = |id: &str| because(id, Some(FailureKind::Lost), Cause::Chance);
    assert_eq!(merged(vec![lost("F-01"), lost("F-16")]), "F-01 F-16=F-01");
    let silent = |id: &str, sent: &[u8]| row(id, Some(FailureKind::Hang), "x", sent);
    assert_eq!(
        merged(vec![
            silent("F-01", b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"),
            silent("S-07", b"GET / HTTP/1.1\r\nHost: h\r\nX : 1\r\n\r\n"),
            silent("S-23", b"GET / HTTQ/1.1\r\nHost: h\r\n\r\n"),
            // an unknown coding may be the cause as well
            silent("B-01", b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: \x0bchunked\r\n\r\n"),
            silent(
                "S-38",
                b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nz\r\n"
            ),
        ]),
        "F-01 S-07 S-23=S-07 B-01=S-07 S-38"
    );
    let only = |id: &str| because(id, Some(FailureKind::Hang), Cause::OnlyContinue);
    assert_eq!(merged(vec![only("B-14"), only("F-08")]), "B-14 F-08=B-14");
    let content = |id: &str| because(id, Some(FailureKind::Answer), Cause::HeadContent);
    assert_eq!(merged(vec![content("S-43"), content("S-46")]), "S-43 S-46=S-43");
}

#[test]
fn long_heads_pipelines_and_chunks_are_causes() {
    let nul = |id: &str, bytes: &[u8]| row(id, Some(FailureKind::Status(500)), "x", bytes);
    // a long head, regardless of its content
    let long = |part: &str| format!("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", part.repeat(3_000));
    let (plain, odd) = (long("a/"), long("%ff"));
    let pair = |odd: &str| vec![nul("F-02", odd.as_bytes()), nul("L-06", plain.as_bytes())];
    assert_eq!(merged(pair(&odd)), "F-02=L-06 L-06");
    assert_eq!(merged(pair("GET /%ff HTTP/1.1\r\nHost: h\r\n\r\n")), "F-02 L-06");
    // any second request, but not of different failures
    let two = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n".repeat(2);
    let failed = |id: &str| row(id, Some(FailureKind::Status(500)), "x", &two);
    let foreign = row("M-02", Some(FailureKind::Foreign), "x", &two);
    assert_eq!(merged(vec![failed("L-13"), failed("S-43"), foreign]), "L-13 S-43=L-13 M-02");
    assert_eq!(merged(vec![failed("L-13"), nul("S-43", &two[..two.len() / 2])]), "L-13 S-43");
    // one crash on different parts of chunked content
    let crash = |id: &str, chunks: &str, number: u8| {
        let head = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
        let mut row = row(id, Some(FailureKind::Lost), "x", (head.to_owned() + chunks).as_bytes());
        row.exchanges[0].judgement.outcome = TestOutcome::Crashed;
        let how = Ending::Signal { number, core: false };
        let process = Process { pid: 8, started: 0, name: "httpd".into() };
        let deaths = vec![Death { process, whole: true, how }];
        let (before, after) = (ServerState::default(), ServerState::default());
        row.server = Some(ServerDuringCase { before, after, deaths });
        row
    };
    let (size, trailer) = ("5x\r\nhello\r\n0\r\n\r\n", "1\r\nx\r\n0\r\nA: b\r\n\r\n");
    assert_eq!(merged(vec![crash("B-04", size, 6), crash("S-40", trailer, 6)]), "B-04 S-40=B-04");
    assert_eq!(merged(vec![crash("B-04", size, 6), crash("S-40", trailer, 11)]), "B-04 S-40");
}

#[test]
fn hosts_and_trailers_are_causes() {
    let failed = |id: &str, host: &str| {
        let sent = format!("GET / HTTP/1.1\r\n{host}\r\n");
        row(id, Some(FailureKind::Status(500)), "x", sent.as_bytes())
    };
    let odd = [("S-05", ""), ("S-04", "Host: a b\r\n"), ("F-08", "Host: h:x\r\n")];
    let odd = odd.map(|(id, host)| failed(id, host)).to_vec();
    assert_eq!(merged(odd), "S-05 S-04=S-05 F-08=S-05");
    assert_eq!(merged(vec![failed("S-05", ""), failed("S-04", "Host: [::1]:80\r\n")]), "S-05 S-04");
    let parsed = |id: &str, trailers: &str| {
        let head = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
        let sent = format!("{head}1\r\nx\r\n0\r\n{trailers}\r\n");
        row(id, Some(FailureKind::ContentParsed), "x", sent.as_bytes())
    };
    let both = vec![parsed("B-11", "no colon\r\nA: b\r\n"), parsed("L-11", "A: b\r\n")];
    assert_eq!(merged(both), "B-11 L-11=B-11");
    let failed = |id: &str, trailers: &str| {
        let mut row = parsed(id, trailers);
        row.exchanges[0].judgement.kind = Some(FailureKind::Status(500));
        row
    };
    let both = vec![failed("B-05", "Host: i\r\n"), failed("S-40", "A: b\r\n")];
    assert_eq!(merged(both), "B-05=S-40 S-40");
}

#[test]
fn chunked_content_that_is_never_read_is_one_cause() {
    let parsed = |id: &str, method: &str, fields: &str, content: &str| {
        let sent = format!("{method} / HTTP/1.1\r\nHost: h\r\n{fields}\r\n\r\n{content}");
        row(id, Some(FailureKind::ContentParsed), "x", sent.as_bytes())
    };
    let (field, chunks) = ("Transfer-Encoding: chunked", "1\r\nx\r\n0\r\n\r\n");
    let unusual = || {
        vec![
            parsed("B-01", "POST", "Transfer-Encoding: xchunked", chunks),
            parsed("B-02", "POST", "Transfer-Encoding: CHUNKED", chunks),
            parsed("B-03", "POST", field, "+1\r\nx\r\n0\r\n\r\n"),
            parsed("B-07", "GET", field, chunks),
            parsed("B-09", "GET", "Content-Length: 1", "x"),
        ]
    };
    let mut all = unusual();
    all.push(parsed("B-14", "POST", field, chunks));
    assert_eq!(merged(all), "B-01=B-14 B-02=B-14 B-03=B-14 B-07=B-14 B-09 B-14");
    // a server that reads it in its usual form
    assert_eq!(merged(unusual()), "B-01 B-02 B-03 B-07 B-09");
    // a server that does not consume the whole head refuses the next request
    let refused =
        |id: &str, sent: &str| row(id, Some(FailureKind::NextRefused), "x", sent.as_bytes());
    let codings = "Transfer-Encoding: chunked\r\n , identity";
    let folded = format!("POST / HTTP/1.1\r\nHost: h\r\n{codings}\r\n\r\n0\r\n\r\n");
    let fold = "GET / HTTP/1.1\r\nHost: h\r\nA: b\r\n c\r\n\r\n";
    let both = vec![refused("B-01", &folded), refused("S-08", fold)];
    assert_eq!(merged(both), "B-01 S-08=B-01");
}

#[test]
fn chunked_content_that_gets_no_response_is_one_cause() {
    let post = |id: &str, kind, fields: &str, content: &str| {
        let sent = format!("POST / HTTP/1.1\r\nHost: h\r\n{fields}\r\n\r\n{content}");
        row(id, Some(kind), "x", sent.as_bytes())
    };
    let (field, chunks) = ("Transfer-Encoding: chunked", "1\r\nx\r\n0\r\n\r\n");
    use FailureKind::{Closed, Hang, Refused};
    let unusual = |kind| {
        vec![
            post("B-02", kind, "Transfer-Encoding: CHUNKED", chunks),
            post("S-40", kind, field, "1\r\nx\r\n0\r\nA: b\r\n\r\n"),
            // a server may read other content
            post("B-09", kind, "Content-Length: 1", "x"),
        ]
    };
    for kind in [Closed, Hang, Refused] {
        let mut all = unusual(kind);
        all.push(post("B-14", kind, field, chunks));
        assert_eq!(merged(all), "B-02=B-14 S-40=B-14 B-09 B-14", "{kind}");
        // a server that reads the usual form, or fails in another way on it
        assert_eq!(merged(unusual(kind)), "B-02 S-40 B-09", "{kind}");
        let mut all = unusual(kind);
        all.push(post("B-14", FailureKind::Status(500), field, chunks));
        assert_eq!(merged(all), "B-02 S-40 B-09 B-14", "{kind}");
    }
}

#[test]
fn pipelined_requests_without_a_response_are_one_cause() {
    let get = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
    let silent =
        |id: &str, sent: String| row(id, Some(FailureKind::NextHangs), "x", sent.as_bytes());
    let content = "GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx";
    assert_eq!(
        merged(vec![
            silent("K-03", get.repeat(2)),
            silent("S-43", get.repeat(3)),
            // the content may be the cause
            silent("S-42", content.to_owned() + get),
        ]),
        "K-03=S-43 S-43 S-42"
    );
}

#[test]
fn errors_on_heads_chunks_and_no_content_are_one_each() {
    let failed =
        |id: &str, sent: &str| row(id, Some(FailureKind::Status(500)), "x", sent.as_bytes());
    let post = "POST / HTTP/1.1\r\nHost: h\r\n";
    let chunked = |chunks: &str| format!("{post}Transfer-Encoding: chunked\r\n\r\n{chunks}");
    // the first one is also processed in another exchange
    let mut processed = failed("B-03", &chunked("1_\r\nx\r\n0\r\n\r\n"));
    let answer = row("B-03", Some(FailureKind::Answer), "y", b"x").exchanges;
    processed.exchanges.extend(answer);
    let rows = vec![
        processed,
        failed("B-08", &chunked("1\nx\r\n0\r\n\r\n")),
        failed("B-12", &chunked("1;\r\nx\r\n0\r\n\r\n")),
        // an invalid trailer follows valid chunks
        failed("B-05", &chunked("1\r\nx\r\n0\r\nno colon\r\n\r\n")),
        failed("S-39", &chunked("1;a=b\r\nx\r\n0\r\n\r\n")),
        failed("S-40", &chunked("1\r\nx\r\n0\r\nA: b\r\n\r\n")),
        failed("B-14", &format!("{post}\r\n")),
        failed("B-09", &format!("{post}Content-Length: 00\r\n\r\n")),
        failed("B-10", &format!("{post}Content_Length: 5\r\n\r\n")),
        // these have none either: a method that the page does not implement, another page
        failed("S-53", "DELETE / HTTP/1.1\r\nHost: h\r\n\r\n"),
        failed("S-26", "POST /other HTTP/1.1\r\nHost: h\r\n\r\n"),
        failed("F-07", "G T / HTTP/1.1\r\nHost: h\r\n\r\n"),
        failed("S-25", "G(T / HTTP/1.1\r\nHost: h\r\n\r\n"),
        failed("F-15", "GET / HTTP/1.1\r\nHost: h\r\n\r\nG(T / HTTP/1.1\r\n\r\n"),
    ];
    assert_eq!(
        merged(rows),
        "B-03 B-08 B-12=B-08 B-05=S-40 S-39 S-40 B-14 B-09=B-14 B-10=B-14 S-53 S-26 F-07 S-25=F-07 F-15=F-07"
    );
}

#[test]
fn hangs_without_content_and_with_credentials_are_merged() {
    let silent = |id: &str, sent: &str| row(id, Some(FailureKind::Hang), "x", sent.as_bytes());
    let post = "POST / HTTP/1.1\r\nHost: h\r\n";
    // the field is valid, and so is the head
    let lookalike = format!("{post}Content_Length: 5\r\n\r\n");
    let invalid = "GET / HTTP/1.1\r\nHost: h\r\nX : 1\r\n\r\n";
    assert_eq!(merged(vec![silent("B-10", &lookalike), silent("F-08", invalid)]), "B-10 F-08");
    let bare = silent("B-14", &format!("{post}\r\n"));
    assert_eq!(merged(vec![silent("B-10", &lookalike), bare]), "B-10=B-14 B-14");
    let login = |id: &str, method: &str, credentials: &str| {
        let head = format!("{method} / HTTP/1.1\r\nHost: h\r\n");
        silent(id, &format!("{head}Authorization: {credentials}\r\n\r\n"))
    };
    let rows = vec![
        login("F-06", "GET", "Basic ===="),
        login("F-08", "GET", "Basic0"),
        login("S-28", "TRACE", "basic loadstone-secret"),
        login("S-44", "GET", "Basic bG9hZHN0b25lOg=="),
        login("S-45", "GET", "Bearer a-b"),
    ];
    assert_eq!(merged(rows), "F-06 F-08=F-06 S-28=F-06 S-44 S-45");
}

#[test]
fn errors_on_cookies_are_one() {
    let failed = |id: &str, cookies: &str| {
        let sent = format!("GET / HTTP/1.1\r\nHost: h\r\nCookie: {cookies}\r\n\r\n");
        row(id, Some(FailureKind::Status(500)), "x", sent.as_bytes())
    };
    let rows = vec![
        failed("J-04", "a"),
        failed("J-05", "a\0b=1"),
        failed("J-06", "a=1; b=\"2\""),
        failed("F-06", "a=1;; b"),
    ];
    assert_eq!(merged(rows), "J-04 J-05=J-04 J-06 F-06=J-04");
}

#[test]
fn a_connection_limit_is_one_finding() {
    let denied = |id: &str, control_denied| {
        let health = Some(Health { control_denied, ..Health::default() });
        let bare = row(id, None, "x", b"");
        CaseResult { outcome: TestOutcome::Denied, exchanges: Vec::new(), health, ..bare }
    };
    let (limit, same) = (denied("C-01", None), denied("C-06", Some(true)));
    // the control run was inconclusive, but idle connections suffice
    assert_eq!(merged(vec![limit.clone(), denied("C-06", None)]), "C-01 C-06=C-01");
    assert_eq!(merged(vec![denied("W-11", None), denied("C-06", None)]), "W-11 C-06");
    assert_eq!(merged(vec![limit.clone(), same.clone()]), "C-01 C-06=C-01");
    assert_eq!(merged(vec![limit, denied("C-06", Some(false))]), "C-01 C-06");
    // a case with other failures remains a separate finding
    let exchanges = row("C-06", Some(FailureKind::Hang), "x", b"GET /").exchanges;
    assert_eq!(merged(vec![denied("C-01", None), CaseResult { exchanges, ..same }]), "C-01 C-06");
}

#[test]
fn a_framing_fault_is_one_finding_unless_processed() {
    let nul = |id: &str, bytes: &[u8]| row(id, Some(FailureKind::Status(500)), "x", bytes);
    // the same framing fault, but only where it is not processed
    let length = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: x\r\n\r\n";
    let answered = |id: &str| row(id, Some(FailureKind::Answer), "x", length);
    assert_eq!(merged(vec![answered("B-06"), answered("S-34")]), "B-06 S-34");
    let (one, other) = (nul("B-06", length), nul("S-34", length));
    assert_eq!(merged(vec![one, other]), "B-06 S-34=B-06");
}

/// A server that refuses an invalid field line may still hang on an invalid request line.
#[test]
fn hangs_are_merged_by_fault_if_other_heads_are_refused() {
    let silent = |id: &str, sent: &[u8]| row(id, Some(FailureKind::Hang), "x", sent);
    let field = b"GET / HTTP/1.1\r\nHost: h\r\nA : b\r\n\r\n";
    let rows = || {
        let lines =
            [("S-23", &b"GET / HTTQ/1.1\r\nHost: h\r\n\r\n"[..]), ("S-26", b"EHLO h\r\n\r\n")];
        let mut all = vec![silent("F-06", field), silent("S-07", field)];
        all.extend(lines.map(|(id, line)| silent(id, line)));
        all
    };
    assert_eq!(merged(rows()), "F-06 S-07=F-06 S-23=F-06 S-26=F-06");
    let mut refused = row("S-10", None, "x", b"GET / HTTP/1.1\r\nHost: h\r\nA\r\n\r\n");
    refused.outcome = TestOutcome::Pass;
    refused.exchanges[0].judgement.outcome = TestOutcome::Pass;
    refused.exchanges[0].received = b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec();
    let mut all = rows();
    all.push(refused);
    // NUL ends a head for some parsers, in any line
    all.push(silent("F-08", b"GET / HTTP/1.1\r\nHost: h\r\n\0\r\n\r\n"));
    all.push(silent("S-27", b"\0\r\n\r\n"));
    assert_eq!(merged(all), "F-06 S-07=F-06 S-23 S-26=S-23 S-10 F-08 S-27=F-08");
}

/// Another case of a critical finding does not explain faults that its less severe exchanges show.
#[test]
fn a_less_severe_exchange_is_no_root() {
    let hang = Some(FailureKind::Hang);
    let spaced = b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n";
    let version = b"GET / HTTQ/1.1\r\nHost: h\r\n\r\n";
    let mut mixed = row("B-13", Some(FailureKind::ContentParsed), "a", b"POST / HTTP/1.1\r\n\r\n");
    mixed.exchanges.extend(row("B-13", hang, "b", spaced).exchanges);
    let rows = vec![mixed, row("B-10", hang, "x", spaced), row("S-23", hang, "x", version)];
    assert_eq!(merged(rows), "B-13 B-10=S-23 S-23");
}

#[test]
fn long_heads_and_closed_pipelines_are_causes() {
    let failed = |id: &str, kind, sent: &str| row(id, Some(kind), "x", sent.as_bytes());
    let get = |fields: &str| format!("GET / HTTP/1.1\r\nHost: h\r\n{fields}\r\n");
    let long = get(&format!("A: {}\r\n", "b".repeat(20_000)));
    let line = long.replacen("GET /", &format!("GET /{}", "c".repeat(20_000)), 1);
    for kind in [FailureKind::Hang, FailureKind::OutOfStep, FailureKind::ContentParsed] {
        let rows = vec![failed("F-05", kind, &long), failed("L-02", kind, &line)];
        assert_eq!(merged(rows), "F-05 L-02=F-05", "{kind}");
        let rows = vec![failed("F-05", kind, &long), failed("L-02", kind, &get(""))];
        assert_eq!(merged(rows), "F-05 L-02", "{kind}");
    }
    let closed = |id, count| failed(id, FailureKind::Closed, &get("").repeat(count));
    assert_eq!(
        merged(vec![closed("K-03", 2), closed("S-43", 3), closed("S-53", 1)]),
        "K-03=S-43 S-43 S-53"
    );
}
