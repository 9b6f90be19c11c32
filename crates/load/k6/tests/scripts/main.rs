//! Scripts against a scripted server, in virtual time: no network, no clock.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its scene has failed")]

mod grpc_tls;
mod libraries;
mod options;
mod reporting;
mod requests;
mod streams;
#[path = "../support/mod.rs"]
mod support;
mod webcrypto;
mod x509;

use k6::program::Program;
use k6::test::{ConfigFile, LoadError, OuterOptions, Test};
use sample::FailureClass;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use support::{Ran, Reply, run};
use units::Nanos;

/// Files by name.
type Files = &'static [(&'static str, &'static str)];

fn load_with(files: Files, outer: &OuterOptions) -> Result<Test, LoadError> {
    let read = move |path: &str| {
        let found = files.iter().find(|(name, _)| *name == path);
        found.map(|(_, text)| text.as_bytes().to_vec()).ok_or("no such file".to_owned())
    };
    let env = BTreeMap::from([("HOST".to_owned(), "sim.example".to_owned())]);
    Test::load(Program::new(files[0].0, env, Box::new(read)), outer, 1)
}

fn load(files: Files) -> Result<Test, LoadError> {
    load_with(files, &OuterOptions::default())
}

/// Answers a request after 10 ms; the path selects the answer.
fn answer(request: &str) -> Reply {
    let path = request.split(' ').nth(1).unwrap_or_default();
    let path = path.split('?').next().unwrap_or_default();
    if request.contains("Host: refused.example") {
        return Reply::Failed(FailureClass::Refused);
    }
    let (status, extra, body) = match path {
        "/redirect" => ("302 Found", "Location: /final\r\n", String::new()),
        "/cookie" => ("200 OK", "Set-Cookie: sid=abc; Path=/\r\n", String::new()),
        "/missing" => ("404 Not Found", "", "no".to_owned()),
        "/digest" if !request.contains("Authorization: Digest") => (
            "401 Unauthorized",
            "WWW-Authenticate: Digest realm=\"r\", nonce=\"n\"\r\n",
            String::new(),
        ),
        "/html" => (
            "200 OK",
            "Content-Type: text/html\r\n",
            "<p class=a>one<p class=a>two</p><form action='/login' method=post><input name=user \
             value=x><input type=hidden name=t value='1&amp;2'></form>"
                .to_owned(),
        ),
        _ => {
            ("200 OK", "", json!({"request": request, "items": [{"id": 1}, {"id": 2}]}).to_string())
        }
    };
    let head = format!("HTTP/1.1 {status}\r\n{extra}Content-Length: {}\r\n\r\n", body.len());
    Reply::Whole(head, body)
}

fn ran(files: Files) -> Ran {
    match load(files) {
        Ok(test) => run(test, &answer),
        Err(error) => panic!("{}", error.text),
    }
}

const CHECKS_GROUPS_METRICS: &str = r#"
        import http from 'k6/http';
        import { check, group, sleep } from 'k6';
        import { Trend, Counter, Rate, Gauge } from 'k6/metrics';
        const trend = new Trend('my_trend', true), counter = new Counter('my_counter');
        const rate = new Rate('my_rate'), gauge = new Gauge('my_gauge');
        export const options = {
          vus: 2, iterations: 6,
          thresholds: { http_req_duration: ['p(95)<500', 'avg<0.001'], my_counter: ['count>3'],
            'http_req_duration{status:200}': ['max<1000'], checks: ['rate>0.5'] },
        };
        export function setup() { http.get(`http://${__ENV.HOST}/get`); return { a: 1 }; }
        export default function (data) {
          group('outer', () => {
            const res = http.get(`http://${__ENV.HOST}/get`, { tags: { x: 'y' } });
            check(res, { 'status is 200': (r) => r.status === 200, never: () => false });
            group('inner', () => { check(res, { deep: (r) => r.json('items.1.id') === 2 }); });
          });
          console.log('hello', JSON.stringify(data), 3);
          trend.add(12.5); counter.add(1); rate.add(__ITER % 2); gauge.add(__VU);
          http.get(`http://${__ENV.HOST}/redirect`);
          sleep(0.2);
        }
        export function teardown(data) { console.log('bye', data.a); }
    "#;

#[test]
fn a_script_with_checks_groups_and_metrics_is_counted_as_by_k6() {
    let ran = ran(&[("/t/a.js", CHECKS_GROUPS_METRICS)]);
    let text = ran.text();
    // as k6 1.8 prints it, up to the times of the simulated server
    let wanted = "\n\n  █ THRESHOLDS 

    checks
    ✓ 'rate>0.5' rate=66.66%

    http_req_duration
    ✓ 'p(95)<500' p(95)=10ms
    ✗ 'avg<0.001' avg=10ms

      {status:200}
      ✓ 'max<1000' max=10ms

    my_counter
    ✓ 'count>3' count=6


  █ TOTAL RESULTS 

    checks_total.......: 18     25.641026/s
    checks_succeeded...: 66.66% 12 out of 18
    checks_failed......: 33.33% 6 out of 18

    ✓ status is 200
    ✗ never
      ↳  0% — ✓ 0 / ✗ 6
    ✓ deep

    CUSTOM
    my_counter.....................: 6      8.547009/s
    my_gauge.......................: 2      min=1       max=2
    my_rate........................: 33.33% 2 out of 6
    my_trend.......................: avg=12.5ms min=12.5ms med=12.5ms max=12.5ms p(90)=12.5ms p(95)=12.5ms

    HTTP
    http_req_duration..............: avg=10ms   min=10ms   med=10ms   max=10ms   p(90)=10ms   p(95)=10ms  
";
    assert!(text.starts_with(wanted), "{text}");
    for line in [
        "      { expected_response:true }...: avg=10ms ",
        "    http_req_failed................: 0.00%  0 out of 19\n    http_reqs......................: 19 ",
        "\n    EXECUTION\n    iteration_duration.............: avg=230ms  min=230ms ",
        "\n    NETWORK\n    data_received..................: ",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    let log = ran.log();
    assert_eq!(log.iter().filter(|line| *line == "hello {\"a\":1} 3").count(), 6);
    assert_eq!(log.last().unwrap(), "bye 1");
}

#[test]
fn requests_equal_k6s() {
    let ran = ran(&[(
        "/t/a.js",
        r#"
        import http from 'k6/http';
        import { check } from 'k6';
        export default function () {
          http.post('http://h.example:81/p?q=1#f', { b: 'x y', a: [1, 2] }, { headers: { 'x-one': '1' } });
          http.put('http://h.example/p', JSON.stringify({ a: 1 }), { cookies: { c: 'd' } });
          http.del('http://u:p%40ss@h.example/d');
          http.get('http://h.example/cookie');
          const res = http.request('GET', 'http://h.example/next');
          check(res, { cookie: (r) => r.json('request').includes('Cookie: sid=abc'),
            header: (r) => r.headers['Content-Length'] > 1, request: (r) => r.request.method === 'GET',
            jar: () => http.cookieJar().cookiesForURL('http://h.example/').sid[0] === 'abc' });
          http.batch([['GET', 'http://h.example/1'], { method: 'POST', url: 'http://h.example/2', body: 'x' }]);
          const form = http.post('http://h.example/up', { f: http.file('data', 'a.txt', 'text/plain'), n: '1' });
          check(form, { multipart: (r) => r.json('request').includes('filename="a.txt"\r\nContent-Type: text/plain\r\n\r\ndata\r\n') });
          http.get(http.url`http://h.example/item/${7}`);
        }
    "#,
    )]);
    let request = |row: usize| ran.sent[row].1.as_str();
    assert_eq!(
        request(0),
        "POST /p?q=1 HTTP/1.1\r\nHost: h.example:81\r\nUser-Agent: Grafana k6/2.2.0\r\n\
         Content-Length: 15\r\nContent-Type: application/x-www-form-urlencoded\r\nX-One: 1\r\n\r\n\
         a=1&a=2&b=x+y"
            .replace("15", "13")
    );
    assert!(
        request(1).contains("Content-Length: 7\r\nCookie: c=d\r\n\r\n{\"a\":1}"),
        "{}",
        request(1)
    );
    assert!(request(2).contains("Authorization: Basic dTpwQHNz\r\n"), "{}", request(2));
    assert!(request(6).starts_with("POST /2 HTTP/1.1\r\n") && request(6).ends_with("\r\n\r\nx"));
    assert_eq!(ran.data()["metrics"]["checks"]["values"]["fails"], 0, "{}", ran.text());
    assert_eq!(ran.count("http_reqs"), 9);
}

#[test]
fn redirects_and_failures_are_judged() {
    let ran = ran(&[(
        "/t/a.js",
        r#"
        import http from 'k6/http';
        import { check } from 'k6';
        export const options = { thresholds: { 'http_req_failed{expected_response:false}': ['rate==1'] } };
        export default function () {
          const after = http.get('http://h.example/redirect');
          check(after, { url: (r) => r.url === 'http://h.example/final' });
          const before = http.get('http://h.example/redirect', { redirects: 0 });
          check(before, { status: (r) => r.status === 302 && r.headers.Location === '/final' });
          const missing = http.get('http://h.example/missing');
          check(missing, { code: (r) => r.error_code === 1404 && r.body === 'no' });
          http.get('http://h.example/missing', { responseCallback: http.expectedStatuses(404) });
          const bad = http.get('nowhere');
          check(bad, { bad: (r) => r.status === 0 && r.error_code === 1020 });
        }
    "#,
    )]);
    let data = ran.data();
    assert_eq!(data["metrics"]["checks"]["values"]["fails"], 0, "{}", ran.text());
    assert_eq!(data["metrics"]["http_req_failed"]["values"]["passes"], 1);
    assert_eq!(data["metrics"]["http_req_failed"]["values"]["fails"], 4);
}

#[test]
fn pages_are_searched_and_forms_submitted() {
    let ran = ran(&[(
        "/t/a.js",
        r#"
        import http from 'k6/http';
        import { check } from 'k6';
        import { parseHTML } from 'k6/html';
        export default function () {
          const page = http.get('http://h.example/html');
          check(page, { texts: (r) => r.html('p.a').text() === 'onetwo',
            second: (r) => r.html().find('p:nth-child(2)').text() === 'two' });
          const made = page.submitForm({ fields: { user: 'me' } });
          check(made, { form: (r) => r.json('request').endsWith('t=1%262&user=me') });
          check(parseHTML('<a data-x="1" href=/u>t</a>'), { data: (s) => s.find('a').data('x') === 1 });
        }
    "#,
    )]);
    assert_eq!(ran.data()["metrics"]["checks"]["values"]["fails"], 0, "{}", ran.text());
}

#[test]
fn modules_shared_arrays_and_digests_are_available() {
    let ran = ran(&[
        (
            "/t/a.js",
            r#"
            import { check } from 'k6';
            import { SharedArray } from 'k6/data';
            import encoding from 'k6/encoding';
            import crypto, { md5 } from 'k6/crypto';
            import exec from 'k6/execution';
            import { uuidv4, randomIntBetween, findBetween } from 'https://jslib.k6.io/k6-utils/1.4.0/index.js';
            import { URL } from 'https://jslib.k6.io/url/1.0.0/index.js';
            import papaparse from 'https://jslib.k6.io/papaparse/5.1.1/index.js';
            import { helper } from './lib/helper.js';
            const common = require('./common.js');
            const list = new SharedArray('rows', () => JSON.parse(open('./data.json')));
            const rows = papaparse.parse(open('data.csv'), { header: true }).data;
            export const options = { scenarios: { one: { executor: 'per-vu-iterations', vus: 2, iterations: 2, exec: 'one', env: { WHO: 'me' }, tags: { t: 'v' } } } };
            export async function one() {
              const digest = await globalThis.crypto.subtle.digest('SHA-256', new TextEncoder().encode('a'));
              await new Promise((done) => setTimeout(done, 500));
              check(null, {
                shared: list.length === 3 && list[1].n === 2 && [...list].length === 3,
                base64: encoding.b64encode('hi') === 'aGk=' && encoding.b64decode('aGk', 'rawstd', 's') === 'hi',
                md5: md5('a', 'hex') === '0cc175b9c0f1b6a831c399e269772661',
                ripemd160: crypto.ripemd160('', 'hex') === '9c1185a5c5e9fc54612808977ee8f548b2258d31',
                hmac: crypto.hmac('sha256', 'k', 'd', 'hex').startsWith('e7ea21c3'),
                subtle: new Uint8Array(digest)[0] === 0xca,
                uuid: /^[0-9a-f-]{36}$/.test(uuidv4()), between: randomIntBetween(3, 3) === 3,
                found: findBetween('<a>b</a>', '<a>', '</a>') === 'b',
                url: new URL('http://h/p?a=1').searchParams.get('a') === '1',
                csv: rows[0].name === 'x', helper: helper() === 'helped', common: common.value === 7,
                scenario: exec.scenario.name === 'one' && exec.vu.idInTest === __VU && exec.vu.tags.t === 'v',
                env: __ENV.WHO === 'me', options: exec.test.options.scenarios.one.vus === 2,
              });
            }
        "#,
        ),
        ("/t/lib/helper.js", "export { word as helper } from '../word.js';"),
        ("/t/word.js", "export function word() { return 'helped'; }"),
        ("/t/common.js", "module.exports = { value: 7 };"),
        ("/t/data.json", "[{\"n\":1},{\"n\":2},{\"n\":3}]"),
        ("/t/data.csv", "name,age\nx,1\n"),
    ]);
    assert_eq!(ran.log(), Vec::<String>::new());
    assert_eq!(ran.data()["metrics"]["checks"]["values"]["fails"], 0, "{}", ran.text());
    assert_eq!(ran.data()["metrics"]["iteration_duration"]["values"]["min"], 500.0);
}

#[test]
fn executors_begin_iterations_when_k6_does() {
    let ran = ran(&[(
        "/t/a.js",
        r#"
        import { sleep } from 'k6';
        import { Counter } from 'k6/metrics';
        const all = new Counter('all');
        export const options = { scenarios: {
          a: { executor: 'constant-arrival-rate', rate: 5, duration: '2s', preAllocatedVUs: 2, exec: 'x' },
          b: { executor: 'ramping-vus', startVUs: 0, stages: [{ duration: '1s', target: 2 }, { duration: '1s', target: 0 }], startTime: '10s' },
          c: { executor: 'per-vu-iterations', vus: 2, iterations: 2, startTime: '20s' },
          d: { executor: 'ramping-arrival-rate', stages: [{ duration: '2s', target: 4 }], preAllocatedVUs: 1, maxVUs: 3, startTime: '30s' },
          e: { executor: 'constant-vus', vus: 3, duration: '1s', startTime: '40s', gracefulStop: '100ms' },
          f: { executor: 'shared-iterations', vus: 3, iterations: 7, startTime: '50s' },
          g: { executor: 'constant-arrival-rate', rate: 10, duration: '1s', preAllocatedVUs: 1, startTime: '60s', exec: 'slow' },
        }, thresholds: { 'iterations{scenario:a}': [], 'iterations{scenario:b}': [], 'iterations{scenario:c}': [],
          'iterations{scenario:d}': [], 'iterations{scenario:e}': [], 'iterations{scenario:f}': [], 'iterations{scenario:g}': [] } };
        export function x() { sleep(0.1); }
        export function slow() { sleep(0.25); }
        export default function () { sleep(0.3); }
    "#,
    )]);
    let of = |name: &str| ran.count(&format!("iterations{{scenario:{name}}}"));
    let counts: Vec<u64> = ["a", "b", "c", "d", "e", "f", "g"].into_iter().map(of).collect();
    // b: from 0.5 s to 2 s and from 1 s to 1.5 s; e: 3 users, each with 3 whole iterations, the
    // fourth ends after the graceful stop; d: the last arrival finds the user busy; g: 4 of 10 find
    // the user free
    assert_eq!(counts, [11, 7, 4, 3, 9, 7, 4]);
    assert_eq!(ran.count("dropped_iterations"), 8);
}

#[test]
fn exceptions_end_iterations_and_aborts_end_tests() {
    let thrown = ran(&[(
        "/t/a.js",
        "export const options = { iterations: 2 };\n\
        export default function () {\n  null.x; }\nexport function teardown() { nothere(); }",
    )]);
    let log = thrown.log();
    assert_eq!(thrown.count("iterations"), 2);
    assert!(log[0].starts_with("TypeError: ") && log[0].contains("/t/a.js:3"), "{log:?}");
    assert!(log[2].starts_with("ReferenceError: nothere"), "{log:?}");
    let aborted = ran(&[(
        "/t/a.js",
        "import exec from 'k6/execution'; import { sleep } from 'k6';\n\
        export const options = { vus: 3, duration: '1h' };\n\
        export default function () { if (__VU === 2 && __ITER === 3) { try { exec.test.abort('enough'); } catch (e) {} }\n\
        sleep(1); }",
    )]);
    assert_eq!(
        aborted.test.stop_reason(),
        Some(k6::test::StopReason::Aborted("enough".to_owned()))
    );
    assert!(aborted.elapsed_s() < 5.0, "{}", aborted.elapsed_s());
    assert_eq!(aborted.count("iterations"), 9);
}

#[test]
fn everything_that_is_wrong_is_listed_with_its_line() {
    let refused = |files: Files| {
        let error = load(files).expect_err("the script is refused");
        (error.code, error.text)
    };
    let (code, text) = refused(&[
        (
            "/t/a.js",
            "import x from 'k6/x/sql';\nimport './b.js';\nimport y from 'https://example.com/y.js';\nimport z from './none.js';\nexport default function () {}",
        ),
        ("/t/b.js", "\n\nconst l = require('lodash');"),
    ]);
    assert_eq!(code, 107);
    for line in [
        "/t/a.js:1: cannot import \"k6/x/sql\"",
        "/t/a.js:3: cannot import \"https://",
        "/t/b.js:3: cannot import \"lodash\"",
        "/t/a.js:4: cannot read /t/none.js",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    let (code, text) = refused(&[(
        "/t/a.js",
        "export const options = {\n  batch: 2,\n  executionSegment: '0:1/2',\n  scenarios: { s: { executor: 'constant-vu' },\n    t: { executor: 'constant-vus', exec: 'no', rate: 3 } },\n  thresholds: { nope: ['rate<1'],\n    http_reqs: ['p(95)<5'], checks: ['rate=1'] } };\nexport default function () {}",
    )]);
    assert_eq!(code, 104);
    for line in [
        "/t/a.js:3: options: option \"executionSegment\" is not available: use `loadstone fleet`",
        "/t/a.js:4: scenario \"s\": unknown executor \"constant-vu\"",
        "/t/a.js:5: scenario \"t\": constant-vus has no option \"rate\"",
        "scenario \"t\": duration is missing",
        "function \"no\" is not exported",
        "invalid threshold defined on metric \"nope\": no metric name \"nope\" found",
        "a counter has no p(95)",
        "failed parsing threshold expression \"rate=1\"",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    let (code, text) = refused(&[("/t/a.js", "export default 1;\n\nthrow new Error('boom');")]);
    assert!(code == 107 && text.contains("Error: boom") && text.contains("/t/a.js:3"), "{text}");
    let (_, text) =
        refused(&[("/t/a.js", "const a = [];\nfor (;;) { a.push(new Array(100000).fill(1.5)); }")]);
    assert!(text.contains("out of memory") && text.contains("256 MiB"), "{text}");
    let (code, text) = refused(&[
        (
            "/t/a.js",
            "import http from 'k6/http';\nimport { a, b } from './b.js';\nexport default function () { b(); }",
        ),
        ("/t/b.js", "export const a = 1;"),
    ]);
    assert_eq!((code, text.as_str()), (107, "/t/a.js:2: \"./b.js\" has no export \"b\""));
    let (_, text) = refused(&[("/t/a.js", "function f() { f(); }\nf();")]);
    assert!(text.contains("/t/a.js:1"), "{text}");
}

#[test]
fn unknown_options_are_warned_about_and_layers_override() {
    let outer = OuterOptions {
        config: Some(ConfigFile {
            name: "c.json".to_owned(),
            text: String::new(),
            json: json!({"vus": 9, "tags": {"a": "b"}}),
        }),
        environment: Some(json!({"iterations": 5})),
        flags: Some(json!({"vus": 2})),
    };
    let test = load_with(
        &[("/t/a.js", "export const options = {\n  bogus: 1, duration: '1h', vus: 3 };\nexport default function () {}")],
        &outer,
    )
    .unwrap_or_else(|error| panic!("{}", error.text));
    assert_eq!(test.warnings, ["/t/a.js:2: options: unknown option \"bogus\""]);
    assert_eq!(test.users(), 2);
    assert_eq!(test.options().tags, [("a".to_owned(), "b".to_owned())]);
    assert_eq!(run(test, &answer).count("iterations"), 5);
}

#[test]
fn outputs_have_every_value_with_its_tags() {
    let test = load(&[(
        "/t/a.js",
        "import http from 'k6/http';\nexport const options = { iterations: 2, tags: { a: 'b' } };\n\
         export default function () { http.get('http://h.example/x,y', { tags: { own: '1' } }); }",
    )])
    .unwrap_or_else(|error| panic!("{}", error.text));
    test.keep_points();
    let ran = run(test, &answer);
    let points = ran.test.take_points();
    let calendar = k6::output::Calendar { at: Nanos::SECOND, unix_s: 0.0 };
    let json = k6::output::JsonOutput::default().lines(&ran.test, &calendar, &points);
    let lines: Vec<Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let requests: Vec<&Value> = lines.iter().filter(|line| line["metric"] == "http_reqs").collect();
    assert_eq!(
        requests[0],
        &json!({"type": "Metric", "metric": "http_reqs", "data": {"name": "http_reqs",
            "type": "counter", "contains": "default", "thresholds": [], "submetrics": null}})
    );
    assert_eq!(
        requests[1],
        &json!({"type": "DataPoint", "metric": "http_reqs", "data": {"time": "1970-01-01T00:00:00.01Z",
            "value": 1, "tags": {"a": "b", "expected_response": "true", "group": "", "method": "GET",
            "name": "http://h.example/x,y", "own": "1", "proto": "HTTP/1.1",
            "scenario": "default", "status": "200", "url": "http://h.example/x,y"}}})
    );
    assert_eq!(requests.len(), 3);
    let csv = k6::output::csv_lines(&ran.test, &calendar, &points);
    let first = csv.lines().find(|line| line.starts_with("http_reqs,")).unwrap();
    assert_eq!(
        first,
        "http_reqs,0,1.000000,,,,true,,GET,\"http://h.example/x,y\",HTTP/1.1,default,,200,,,\
         \"http://h.example/x,y\",a=b&own=1,"
    );
}

#[test]
fn one_time_passwords_are_those_of_the_rfc() {
    let ran = ran(&[(
        "/t/a.js",
        r#"
        import { TOTP } from 'https://jslib.k6.io/totp/1.0.0/index.js';
        import { setTimeout as later } from 'k6/experimental/timers';
        export default async function () {
          // RFC 6238 appendix B
          const totp = new TOTP('GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ', 8);
          const codes = await Promise.all([59, 1111111109, 20000000000].map((at) => totp.gen(at * 1000)));
          console.log(codes.join(), await totp.verify(await totp.gen()), await totp.verify('1'), typeof later);
          let why = '';
          try { new TOTP('GEZ1'); } catch (error) { why = error.message; }
          console.log(why.slice(0, 30));
        }
    "#,
    )]);
    assert_eq!(
        ran.log(),
        ["94287082,07081804,65353130 true false function", "\"1\" is not a letter of Base32:"]
    );
}

#[test]
fn files_are_read_and_parsed_as_csv() {
    const CSV: Files = &[
        (
            "csv.js",
            r#"import { open, SeekMode } from 'k6/experimental/fs';
            import csv from 'k6/experimental/csv';
            const file = await open('data.csv');
            const rows = await csv.parse(file, { skipFirstLine: true });
            const objects = new csv.Parser(file, { asObjects: true });
            export default async function () {
              const { done, value } = await objects.next();
              const into = new Uint8Array(4);
              const count = await file.read(into);
              await file.seek(-2, SeekMode.End);
              const { name, size } = await file.stat();
              console.log(JSON.stringify([rows.length, rows[1], done, value, count, into[0], name, size, file.at]));
            }"#,
        ),
        ("data.csv", "a,b\r\n1,\"x, \"\"y\"\"\"\r\n\r\n2,\n"),
    ];
    let wanted = r#"[2,["2",""],false,{"a":"1","b":"x, \"y\""},4,97,"data.csv",24,22]"#;
    assert_eq!(ran(CSV).log(), [wanted]);
}

#[test]
fn websockets_of_both_modules_are_spoken() {
    let ran = ran(&[(
        "/t/a.js",
        r#"
        import ws from 'k6/ws';
        import { WebSocket } from 'k6/websockets';
        import { check } from 'k6';
        export const options = { scenarios: {
          old: { executor: 'shared-iterations', exec: 'old' },
          young: { executor: 'shared-iterations', exec: 'young', startTime: '10s' },
        } };
        export function old() {
          const log = [];
          const params = { headers: { 'X-T': 't', 'Sec-WebSocket-Protocol': 'chat' }, tags: { a: 'b' } };
          const res = ws.connect('ws://h.example:81/p?q=1', params, (socket) => {
            socket.on('open', () => { socket.send('one'); socket.sendBinary(new Uint8Array([7, 8]).buffer); });
            socket.on('message', (text) => log.push(text));
            socket.on('binaryMessage', (data) => { log.push(new Uint8Array(data)[1]); socket.ping(); });
            socket.on('pong', () => log.push('pong'));
            socket.on('close', (code) => log.push(code));
            socket.on('error', (e) => log.push(e.error()));
            socket.setTimeout(() => { log.push('timer'); socket.send('bye'); }, 500);
            socket.setInterval(() => log.push('tick'), 200);
          });
          check(res, { status: (r) => r.status === 101 && r.headers['Sec-Websocket-Protocol'] === 'chat' });
          console.log(log.join(' '));
        }
        export function young() {
          const ws = new WebSocket('wss://h.example/', ['chat']);
          const log = [ws.readyState];
          ws.onopen = () => { log.push(ws.protocol); ws.send('hi'); setTimeout(() => ws.close(), 300); };
          ws.addEventListener('message', (e) => { log.push(e.data); ws.ping(); });
          ws.addEventListener('pong', () => log.push('pong'));
          ws.addEventListener('close', (e) => { log.push(e.code, ws.readyState); console.log(log.join(' ')); });
        }
    "#,
    )]);
    assert_eq!(
        ran.log(),
        ["one 8 pong tick tick timer bye websocket: close 4000 4000", "0 chat hi pong 1000 3"]
    );
    let asked = &ran.sent[0].1;
    assert!(asked.starts_with("GET /p?q=1 HTTP/1.1\r\nHost: h.example:81\r\n"), "{asked}");
    for field in ["X-T: t", "Upgrade: websocket", "Sec-WebSocket-Version: 13"] {
        let name = field.split(':').next().unwrap_or_default();
        let found = asked.lines().find(|line| line.eq_ignore_ascii_case(field));
        assert!(found.is_some(), "{name}: {asked}");
    }
    let counts = ["ws_sessions", "ws_msgs_sent", "ws_msgs_received"].map(|name| ran.count(name));
    assert_eq!(counts, [2, 6, 4]);
    let data = ran.data();
    assert_eq!(data["metrics"]["ws_ping"]["values"]["max"], 5.0);
    assert_eq!(data["metrics"]["ws_connecting"]["values"]["max"], 10.0);
    assert_eq!(data["metrics"]["checks"]["values"]["fails"], 0);
    assert!(data["metrics"]["http_reqs"].is_null(), "{data}");
    assert!(ran.text().contains("    WEBSOCKET\n    ws_connecting"), "{}", ran.text());
    assert!((ran.elapsed_s() - 10.3).abs() < 0.05, "{}", ran.elapsed_s());
}

#[test]
fn a_user_has_several_websockets_at_once() {
    let ran = ran(&[(
        "/t/a.js",
        r#"
        import ws from 'k6/ws';
        import http from 'k6/http';
        import { WebSocket } from 'k6/websockets';
        export const options = { scenarios: {
          many: { executor: 'shared-iterations', exec: 'many' },
          nested: { executor: 'shared-iterations', exec: 'nested', startTime: '10s' },
        } };
        export function many() {
          const log = [], start = Date.now();
          for (const name of ['a', 'b', 'c']) {
            const socket = new WebSocket('ws://h.example/' + name);
            socket.onopen = () => { for (const i of [1, 2]) socket.send(name + i); };
            socket.onmessage = (event) => {
              log.push(event.data);
              // a request that blocks the user leaves messages of the others for later
              if (event.data === 'b1') http.get('http://h.example/get');
              if (event.data === name + 2) socket.send(name === 'c' ? 'bye' : name + 3);
              if (event.data === name + 3) socket.close();
            };
            socket.onerror = (event) => log.push(event.error);
            socket.onclose = (event) => { log.push(name + event.code); if (log.length === 14) console.log(log.join(' ')); };
          }
          const unopened = new WebSocket('ws://h.example/d');
          unopened.onclose = (event) => log.push('d' + event.code);
          unopened.close();
        }
        export function nested() {
          const log = [];
          ws.connect('ws://h.example/outer', (outer) => {
            outer.on('open', () => outer.send('x'));
            outer.on('message', (text) => {
              log.push('outer ' + text);
              if (text === 'x') {
                outer.send('y');
                ws.connect('ws://h.example/inner', (inner) => {
                  inner.on('open', () => inner.send('z'));
                  inner.on('message', (text) => { log.push('inner ' + text); inner.close(); });
                });
              } else outer.close();
            });
          });
          console.log(log.join(', '));
        }
    "#,
    )]);
    assert_eq!(
        ran.log(),
        [
            "a1 b1 c1 d1000 a2 b2 c2 a3 b3 bye websocket: close 4000 c4000 a1000 b1000",
            "outer x, inner z, outer y"
        ]
    );
    let counts = ["ws_sessions", "ws_msgs_sent", "ws_msgs_received"].map(|name| ran.count(name));
    assert_eq!(counts, [6, 15, 12]);
}

#[test]
fn batches_and_promises_send_at_once_within_limits() {
    let ran = ran(&[(
        "/t/a.js",
        r#"
        import http from 'k6/http';
        import { group } from 'k6';
        export const options = { batch: 3, batchPerHost: 2, thresholds: {
          'http_reqs{group:::inside}': ['count==3'], 'http_req_duration': ['max<11'] } };
        export default async function () {
          const urls = ['h/1', 'h/2', 'h/redirect', 'h/4', 'g/5', 'g/6'].map((url) => 'http://' + url);
          const all = http.batch(Object.fromEntries(urls.map((url) => [url.slice(7), url])));
          console.log(Object.entries(all).map(([key, res]) => key + '=' + res.url.slice(7) + res.status).join(' '));
          let late;
          const timer = new Promise((done) => setTimeout(() => done('timer'), 5));
          group('inside', () => {
            late = [http.asyncRequest('GET', 'http://h/a'), http.asyncRequest('GET', 'http://h/redirect'), timer];
          });
          // the responses of promises wait while the user is blocked
          http.get('http://h/blocking');
          const first = await Promise.race(late);
          const rest = await Promise.all(late);
          console.log(first.url || first, rest.map((it) => it.url || it).join(' '));
          const bad = await http.asyncRequest('GET', 'ftp://h/').then((res) => res.error_code);
          const thrown = await http.asyncRequest('GET', 'nowhere', null, { throw: true }).catch((e) => e.message.slice(0, 11));
          console.log(bad, thrown, http.batch([]).length, http.batch(['x'])[0].error_code);
        }
    "#,
    )]);
    let log: Vec<String> = ran.log().into_iter().filter(|it| !it.starts_with("Request")).collect();
    assert_eq!(
        log,
        [
            "h/1=h/1200 h/2=h/2200 h/redirect=h/final200 h/4=h/4200 g/5=g/5200 g/6=g/6200",
            "timer http://h/a http://h/final timer",
            "1020 invalid URL 0 1020",
        ]
    );
    let from = ran.sent[0].0;
    let sent: Vec<String> = ran
        .sent
        .iter()
        .map(|(at, text)| format!("{}{}", at - from, text.split(' ').nth(1).unwrap_or_default()))
        .collect();
    assert_eq!(
        sent,
        [
            "0/1",
            "0/2",
            "10/redirect",
            "10/4",
            "10/5",
            "20/final",
            "20/6",
            "30/a",
            "30/redirect",
            "30/blocking",
            "40/final"
        ]
    );
    assert!(ran.test.crossed(&ran.test.collected(), 1.0, false).is_empty(), "{}", ran.text());
}

const GRPC: Files = &[
    (
        "/t/a.js",
        r#"
        import grpc, { StatusOK } from 'k6/net/grpc';
        import { check } from 'k6';
        const client = new grpc.Client();
        const methods = client.load(['protos'], 'shop.proto');
        const again = new grpc.Client().load([], '../t/protos/shop.proto', '/t/protos/shop.proto');
        export const options = { thresholds: {
          'grpc_req_duration{method:Add,status:0,service:shop.Cart}': ['max<11'],
          'grpc_req_duration{name:/shop.Cart/Add}': ['max<11'], 'grpc_streams{a:b}': ['count==1'] } };
        const thrown = (call) => { try { call(); return 'none'; } catch (error) { return error.message; } };
        export default async function () {
          console.log(methods.map((it) => `${it.package} ${it.service} ${it.fullMethod}`).join(), again.length);
          console.log(thrown(() => client.invoke('shop.Cart/Add', {})));
          console.log(thrown(() => client.connect('h:1', { plain: true })));
          client.connect('h:1', { plaintext: true, authority: 'a\nb' });
          console.log(thrown(() => client.invoke('shop.Cart/Add', {})));
          console.log(thrown(() => client.connect('h:1', { plaintext: true, reflect: true })));
          client.connect('h.example:81', { plaintext: true, authority: 'shop' });
          const params = { metadata: { 'X-A': 'b', 'x-bin': new Uint8Array([1, 2]).buffer }, timeout: '2s' };
          const res = client.invoke('shop.Cart/Add', { name: 'tea', count: 3 }, params);
          check(res, { ok: (r) => r && r.status === StatusOK && r.error === null });
          console.log(JSON.stringify(res.message), res.headers['content-type'], JSON.stringify(res.trailers), grpc.StatusNotFound);
          const bad = client.invoke('/shop.Cart/Add', { name: 'none' });
          console.log(bad.status, JSON.stringify(bad.error), JSON.stringify(bad.message));
          console.log(thrown(() => client.invoke('shop.Cart/Ad', {})));
          console.log(thrown(() => client.invoke('shop.Cart/Add', { nam: 1 })));
          console.log(thrown(() => client.invoke('shop.Cart/Add', null)));
          const both = await Promise.all([1, 2].map((count) => client.asyncInvoke('shop.Cart/Add', { count })));
          console.log(both.map((it) => it.message.total).join());
          const stream = new grpc.Stream(client, 'shop.Cart/Watch', { tags: { a: 'b' } });
          const seen = [];
          stream.on('data', ({ total }) => { seen.push(total); if (total < 3) stream.write({ count: total + 1 }); else stream.end(); });
          stream.on('error', (error) => seen.push(error.code, error.message));
          stream.on('end', () => { client.close(); console.log(seen.join()); });
          stream.write({ count: 1 });
          console.log(client.healthCheck().status === grpc.HealthCheckServing);
        }
    "#,
    ),
    (
        "/t/protos/shop.proto",
        r#"syntax = "proto3"; package shop;
        service Cart { rpc Add(Item) returns (Total); rpc Watch(stream Item) returns (stream Total); }
        message Item { string name = 1; int32 count = 2; }
        message Total { int32 total = 1; string note = 2; }"#,
    ),
];

#[test]
fn grpc_calls_are_made_and_counted() {
    let test = load(GRPC).map_err(|error| error.text).unwrap();
    let ran = run(test, &|request| {
        let head = "HTTP/2 200\r\ncontent-type: application/grpc\r\n\r\n";
        let end = |code: &str| format!("{head}t: 1\r\ngrpc-status: {code}\r\n");
        let total = |count: u8| format!("\0\0\0\0\u{2}\u{8}{}", char::from(count));
        let path = request.split(' ').nth(1).unwrap();
        match path {
            "/grpc.health.v1.Health/Check" => Reply::Whole(end("0"), total(1)),
            // called with each message, and at the end
            "/shop.Cart/Watch" => {
                let status = "10\r\ngrpc-message: no%20more";
                Reply::Whole(end(status), total(request.as_bytes()[request.len() - 1]))
            }
            _ if request.contains("none") || path.contains("reflection") => {
                Reply::Whole(end("5\r\ngrpc-message: no%20such"), String::new())
            }
            _ => Reply::Whole(end("0"), total(request.as_bytes()[request.len() - 1])),
        }
    });
    assert_eq!(
        ran.log(),
        [
            "shop Cart /shop.Cart/Add,shop Cart /shop.Cart/Watch 2",
            "no gRPC connection, you must call connect first",
            "invalid grpc.connect() parameters: unknown connect param: \"plain\"",
            "invalid authority \"a\\nb\"; write it like host:port",
            "rpc error: code = NOT_FOUND desc = no such",
            "{\"total\":3,\"note\":\"\"} [ \"application/grpc\" ] {\"t\":[\"1\"]} 5",
            "5 {\"code\":5,\"message\":\"no such\",\"details\":[]} {\"total\":0,\"note\":\"\"}",
            "method \"/shop.Cart/Ad\" not found in file descriptors",
            "unable to serialise request object to protocol buffer: it does not fit shop.Item: \
             unrecognized field name 'nam' at line 1 column 6",
            "request cannot be nil",
            "1,2",
            "true",
            "1,2,3,10,no more",
        ]
    );
    // a server that refuses reflection is not asked again by another path
    assert_eq!(ran.sent.iter().filter(|(_, text)| text.contains("reflection")).count(), 1);
    let asked = &ran.sent[1].1;
    assert!(asked.starts_with("POST /shop.Cart/Add HTTP/1.1\r\nHost: shop\r\n"), "{asked}");
    for field in ["te: trailers", "grpc-timeout: 2000000u", "x-a: b", "x-bin: AQI"] {
        assert!(asked.lines().any(|line| line == field), "{field}: {asked}");
    }
    assert!(asked.ends_with("\0\0\0\0\u{7}\n\u{3}tea\u{10}\u{3}"), "{asked:?}");
    // the two asynchronous calls leave together
    assert_eq!(ran.sent[3].0, ran.sent[4].0);
    let names = ["grpc_streams", "grpc_streams_msgs_sent", "grpc_streams_msgs_received"];
    assert_eq!(names.map(|name| ran.count(name)), [1, 3, 3]);
    assert!(ran.text().contains("    GRPC\n    grpc_req_duration"), "{}", ran.text());
    assert!(ran.test.crossed(&ran.test.collected(), 1.0, false).is_empty(), "{}", ran.text());
}

const STREAM_LEFT: Files = &[
    (
        "/t/a.js",
        r#"
        import grpc from 'k6/net/grpc';
        import { sleep } from 'k6';
        const client = new grpc.Client();
        client.load(['protos'], 'shop.proto');
        export default function () {
          client.connect('h:1', { plaintext: true });
          const stream = new grpc.Stream(client, 'shop.Cart/Watch');
          stream.write({ count: 1 });
          sleep(0.1);
          throw new Error('over');
        }
    "#,
    ),
    GRPC[1],
];

#[test]
fn a_stream_that_an_iteration_leaves_is_canceled() {
    let test = load(STREAM_LEFT).map_err(|error| error.text).unwrap();
    let ran = run(test, &|_| Reply::Whole("HTTP/2 200\r\n\r\n".to_owned(), String::new()));
    let canceled = ran.sent.iter().filter(|(_, text)| text.starts_with("cancel ")).count();
    assert_eq!(canceled, 1, "{:?}", ran.sent);
    let log = ran.log();
    assert!(log.iter().any(|line| line.contains("over")), "{log:?}");
}

const COLLECTION: Files = &[
    (
        "visit.js",
        "import { collection } from 'loadstone/postman';
        const visit = collection(open('shop.json'), open('env.json'));
        export const options = { iterations: 2 };
        export default function () { visit(); }",
    ),
    (
        "env.json",
        r#"{"values":[{"key":"host","value":"http://h.example"},{"key":"off","value":"x","enabled":false}]}"#,
    ),
    (
        "shop.json",
        r#"{"info":{"name":"shop"},"variable":[{"key":"id","value":"7"}],
        "auth":{"type":"bearer","bearer":[{"key":"token","value":"{{token}}"}]},
        "event":[{"listen":"prerequest","script":{"exec":["pm.collectionVariables.set('token', 't' + pm.info.iteration);"]}}],
        "item":[
          {"name":"Folder","item":[{"name":"Log in","request":{"method":"POST","url":{"raw":"{{host}}/:who/in?q=old",
             "query":[{"key":"q","value":"{{id}}"},{"key":"no","value":"1","disabled":true}],"variable":[{"key":"who","value":"me"}]},
             "header":[{"key":"X-Id","value":"{{id}}"}],"body":{"mode":"raw","raw":"{\"a\":\"{{id}}\",\"off\":\"{{off}}\"}"}},
             "event":[{"listen":"test","script":{"exec":[
               "const json = pm.response.json();",
               "pm.test('status', () => pm.response.to.have.status(200));",
               "pm.test('items', function () { pm.expect(json.items).to.be.an('array').that.has.lengthOf(2);",
               "  pm.expect(json).to.have.nested.property('items[1].id', 2); pm.expect(json.items[0]).to.deep.equal({ id: 1 }); });",
               "pm.test('wrong', () => { pm.expect(json.items.length).to.be.above(5); });",
               "tests['legacy'] = responseCode.code === 200;",
               "pm.environment.set('seen', json.items[1].id);"]}}]}]},
          {"name":"Skipped","request":"{{host}}/skipped","event":[{"listen":"prerequest","script":{"exec":"pm.execution.skipRequest();"}}]},
          {"name":"Broken","request":{"method":"GET","url":"{{host}}/b","auth":{"type":"noauth"},
             "header":[]},"event":[{"listen":"test","script":{"exec":["pm.sendRequest('http://x');"]}}]},
          {"name":"Form","request":{"method":"PUT","url":"h.example/f/{{seen}}","body":{"mode":"urlencoded","urlencoded":[{"key":"a b","value":"{{id}}&"}]}},
             "event":[{"listen":"test","script":{"exec":["if (pm.info.iteration === 0) postman.setNextRequest(null);"]}}]},
          {"name":"Last","request":"{{host}}/missing","event":[{"listen":"test","script":{"exec":[
             "pm.test('missing', () => { pm.expect(pm.response.code).to.be.oneOf([404, 410]); pm.response.to.not.be.ok;",
             "  pm.expect(pm.response.text()).to.include('n').and.not.include('z'); });"]}}]}
        ]}"#,
    ),
];

#[test]
fn collections_of_postman_run_with_their_scripts() {
    let ran = ran(COLLECTION);
    let lines: Vec<&str> = ran.sent.iter().map(|(_, it)| it.lines().next().unwrap()).collect();
    let visit = ["POST /me/in?q=7 HTTP/1.1", "GET /b HTTP/1.1", "PUT /f/2 HTTP/1.1"];
    assert_eq!(lines, [&visit[..], &visit, &["GET /missing HTTP/1.1"]].concat());
    let first = &ran.sent[0].1;
    for field in
        ["Authorization: Bearer t0\r\n", "X-Id: 7\r\n", "Content-Type: application/json\r\n"]
    {
        assert!(first.contains(field), "{field}: {first}");
    }
    assert!(first.ends_with("\r\n\r\n{\"a\":\"7\",\"off\":\"{{off}}\"}"), "{first}");
    assert!(ran.sent[2].1.ends_with("\r\n\r\na+b=7%26"), "{}", ran.sent[2].1);
    assert!(!ran.sent[1].1.contains("Authorization"), "{}", ran.sent[1].1);
    assert!(ran.sent[3].1.contains("Authorization: Bearer t1\r\n"), "{}", ran.sent[3].1);
    let text = ran.text();
    for line in ["✓ status", "✓ items", "✗ wrong", "✓ legacy", "✗ script of Broken", "✓ missing"]
    {
        assert!(text.contains(line), "{line}\n{text}");
    }
    let log = ran.log().join("\n");
    assert!(log.contains("Log in: wrong: expected 2 to be above 5"), "{log}");
    assert!(log.contains("Broken: pm.sendRequest is not available"), "{log}");
}

#[test]
fn thresholds_show_metrics_without_values() {
    let ran = ran(&[(
        "/t/a.js",
        r#"
        import http from 'k6/http';
        import exec from 'k6/execution';
        import { Rate, Trend } from 'k6/metrics';
        new Trend('unused');
        new Trend('spent');
        new Rate('lost');
        export const options = { vus: 1, iterations: 1, thresholds: { lost: ['rate>0.5'], 'spent{a:b}': ['max>1'], 'http_reqs{name:none}': ['count<1'] } };
        export default function () {
          const res = http.get('http://h.example/redirect');
          console.log(res.url, res.request.url, exec.test.options.scenarios.default.executor);
          http.get('http://refused.example/');
        }
    "#,
    )]);
    let text = ran.text();
    for line in ["lost...", "0 out of 0", "spent...", "{ a:b }...", "{ name:none }..."] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    assert!(!text.contains("unused"), "{text}");
    // a rate without values meets its thresholds, and other metrics have the value 0
    assert_eq!(ran.test.crossed(&ran.test.collected(), 1.0, false), ["spent{a:b}"]);
    assert!(ran.test.crossed(&ran.test.collected(), 1.0, true).is_empty());
    assert_eq!(
        ran.log(),
        [
            "http://h.example/final http://h.example/redirect shared-iterations",
            "Request Failed error=Get \"http://refused.example/\": dial: connection refused",
        ]
    );
}
