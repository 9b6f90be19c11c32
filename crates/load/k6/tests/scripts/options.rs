//! Options of connections.

use crate::support::run_from;
use crate::{answer, load, ran};
use k6::program::Program;
use k6::test::{ConfigFile, OuterOptions, Test};
use std::collections::BTreeMap;
use units::Nanos;

#[test]
fn options_of_connections_are_applied() {
    let ran = ran(&[(
        "/t/a.js",
        r#"
        import http from 'k6/http';
        import { check } from 'k6';
        export const options = { vus: 2, iterations: 4, rps: 20, noVUConnectionReuse: true,
          hosts: { 'inner.test': '10.1.1.1' }, blacklistIPs: ['10.0.0.0/8'],
          blockHostnames: ['*.blocked.test'], httpDebug: 'full' };
        export default function () {
          const code = (url) => http.get(url).error_code;
          check(null, { hosts: () => code('http://inner.test/') === 1110,
            names: () => code('http://x.blocked.test/') === 1111,
            addresses: () => http.get('http://10.2.3.4/').error.includes('range (10.0.0.0/8)') });
          const login = http.get('http://u:p@h.example/digest', { auth: 'digest' });
          check(login, { login: (r) => r.status === 200 });
          const jar = http.cookieJar();
          jar.set('http://h.example/a/b', 'mine', '1');
          jar.delete('http://h.example/a/b', 'mine');
          check(jar.cookiesForURL('http://h.example/a/b'), { deleted: (all) => all.mine === undefined });
        }
    "#,
    )]);
    assert_eq!(ran.data()["metrics"]["checks"]["values"]["fails"], 0, "{}", ran.text());
    // the challenge of a login counts as expected
    assert_eq!(ran.data()["metrics"]["http_req_failed"]["values"]["passes"], 12);
    let (ends, sent): (Vec<_>, Vec<_>) =
        ran.sent.iter().partition(|(_, text)| text == "disconnect");
    assert_eq!(ends.len(), 4);
    let instants: Vec<u64> = sent.iter().map(|(at, _)| *at).collect();
    assert_eq!(instants, [0, 50, 100, 150, 200, 250, 300, 350]);
    let log = ran.log();
    let has = |part: &str| log.iter().any(|line| line.contains(part));
    assert!(has("Request:\nGET /digest HTTP/1.1") && has("Response:\nHTTP/1.1 401"), "{log:?}");
}

#[test]
fn replies_and_timers_do_not_wait_for_the_rate_of_requests() {
    let ran = ran(&[(
        "/t/a.js",
        r#"
        import http from 'k6/http';
        import exec from 'k6/execution';
        export const options = { rps: 1, dns: { ttl: null, select: null, policy: null } };
        const log = (what) => console.log(what, Math.round(exec.instance.currentTestRunDuration));
        export default function () {
          for (const path of ['a', 'b']) http.asyncRequest('GET', `http://h.example/${path}`).then(() => log(path));
          setTimeout(() => log('timer'), 300);
        }
    "#,
    )]);
    assert_eq!(ran.log(), ["a 10", "timer 300", "b 1010"]);
}

#[test]
fn values_of_options_that_are_not_available_are_reported() {
    for (options, words) in [
        ("hosts: { a: 'b' }", "\"b\" is not an address; write a: '192.0.2.1'"),
        ("blacklistIPs: ['x']", "\"x\" is not a range of addresses"),
        ("localIPs: '10.0.0.0/8'", "at most 4096 local addresses"),
        ("tlsVersion: 'tls1.1'", "only TLS 1.2 and 1.3 are available"),
        ("tlsVersion: { min: 'x' }", "or {min, max} of them"),
        ("tlsCipherSuites: ['TLS_RSA_WITH_RC4_128_SHA']", "none of them is available"),
        ("tlsAuth: [{ cert: 'a', key: 'b' }, { cert: 'c', key: 'd' }]", "one certificate per test"),
        ("tlsAuth: [{ cert: 'a', key: 'b', password: 'c' }]", "failed to decode PEM key"),
        ("dns: { select: 'last' }", "select must be first, random or roundRobin"),
        ("userAgent: 'a\\nb'", "a control character"),
        ("httpDebug: 'all'", "\"full\" or \"headers\""),
        (
            "scenarios: { s: { executor: 'shared-iterations', vus: 4, iterations: 2 } }",
            "number of VUs",
        ),
    ] {
        let text =
            format!("export const options = {{ {options} }}; export default function () {{}}");
        let read = move |_: &str| Ok(text.clone().into_bytes());
        let program = Program::new("a.js", BTreeMap::new(), Box::new(read));
        let error = Test::load(program, &OuterOptions::default(), 1).expect_err(options);
        assert!(error.code == 104 && error.text.contains(words), "{options}: {}", error.text);
    }
    let text = "export const options = { tlsVersion: { min: 'tls1.0' }, dns: { ttl: '1m' },
        tlsCipherSuites: ['TLS_RSA_WITH_RC4_128_SHA', 'TLS_AES_128_GCM_SHA256'] };
        export default function () {}";
    let read = |_: &str| Ok(text.as_bytes().to_vec());
    let program = Program::new("a.js", BTreeMap::new(), Box::new(read));
    let test =
        Test::load(program, &OuterOptions::default(), 1).map_err(|error| error.text).unwrap();
    assert_eq!(test.options().tls.ciphers, ["TLS_AES_128_GCM_SHA256"]);
    for words in ["below TLS 1.2 are not offered", "looked up once", "RC4_128_SHA is not available"]
    {
        assert!(test.warnings.iter().any(|it| it.contains(words)), "{words}: {:?}", test.warnings);
    }
}

#[test]
fn a_test_begins_when_all_users_have_run_the_init_code() {
    let script = "import http from 'k6/http';
        export const options = { scenarios: { s: { executor: 'per-vu-iterations', vus: 2 } } };
        export function setup() { http.get('http://h.example/setup'); }
        export default function () { http.get('http://h.example/get'); }";
    let test = load(Box::leak(Box::new([("/t/a.js", script)]))).map_err(|error| error.text);
    let late = |user| Nanos::from_secs(if user == 0 { 1 } else { 4 });
    let ran = run_from(test.unwrap(), &answer, late);
    let sent: Vec<u64> = ran.sent.iter().map(|(at, _)| at - at % 10).collect();
    assert_eq!(sent, [3_000, 3_010, 3_010]);
    assert!(ran.elapsed_s() < 0.05, "{}", ran.elapsed_s());
}

#[test]
fn ignored_options_are_reported_with_their_lines() {
    let text = "export const options = {\n  vus: 2,\n  cloud: { projectID: 1 },\n  ext: {},\n  \
                iterashuns: 4,\n};\nexport default function () {}";
    let read = |_: &str| Ok(text.as_bytes().to_vec());
    let program = Program::new("a.js", BTreeMap::new(), Box::new(read));
    let config = ConfigFile {
        name: "c.json".to_owned(),
        text: "{\n  \"cloud\": {},\n  \"odd\": 1\n}".to_owned(),
        json: serde_json::json!({ "cloud": {}, "odd": 1 }),
    };
    let outer = OuterOptions { config: Some(config), ..OuterOptions::default() };
    let test = Test::load(program, &outer, 1).map_err(|error| error.text).unwrap();
    let cloud = "is ignored: it configures runs in Grafana Cloud, and this test runs here";
    assert_eq!(
        test.warnings,
        [
            format!("c.json:2: option \"cloud\" {cloud}"),
            "c.json:3: unknown option \"odd\"".to_owned(),
            format!("a.js:3: options: option \"cloud\" {cloud}"),
            format!("a.js:4: options: option \"ext\" {cloud}"),
            "a.js:5: options: unknown option \"iterashuns\"".to_owned(),
        ]
    );
}

#[test]
fn options_that_set_a_load_follow_the_rules_of_k6() {
    const SCENARIO: &str = "{ s: { executor: 'per-vu-iterations', vus: 2, iterations: 5 } }";
    let load = |options: &str| {
        let text =
            format!("export const options = {{ {options} }}; export default function () {{}}");
        let read = move |_: &str| Ok(text.clone().into_bytes());
        let program = Program::new("a.js", BTreeMap::new(), Box::new(read));
        Test::load(program, &OuterOptions::default(), 1)
    };
    for options in [
        "stages: [{ duration: '1s', target: 1 }], duration: '1s'".to_owned(),
        "iterations: 1, stages: [{ duration: '1s', target: 1 }]".to_owned(),
        format!("iterations: 1, scenarios: {SCENARIO}"),
        format!("duration: '1s', scenarios: {SCENARIO}"),
        format!("stages: [{{ duration: '1s', target: 1 }}], scenarios: {SCENARIO}"),
        "vus: 0, duration: '1s'".to_owned(),
    ] {
        assert_eq!(load(&options).map_err(|error| error.code).err(), Some(104), "{options}");
    }
    let shared = "3 iterations shared among 3 VUs (maxDuration: 10m0s, gracefulStop: 30s)";
    let single = "1 iterations for each of 1 VUs (maxDuration: 10m0s, gracefulStop: 30s)";
    for (options, described, warnings) in [
        ("vus: 3".to_owned(), shared, 0),
        (format!("vus: 3, scenarios: {SCENARIO}"), shared, 1),
        ("stages: [], scenarios: {}".to_owned(), single, 2),
    ] {
        let test = load(&options).map_err(|error| error.text).unwrap();
        let all: Vec<String> = test.progress.iter().map(|it| it.scenario.describe()).collect();
        assert_eq!(all, [format!("default: {described}")], "{options}");
        assert_eq!(test.warnings.len(), warnings, "{options}: {:?}", test.warnings);
    }
}
