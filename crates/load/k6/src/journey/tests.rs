use super::*;

/// Reads a script with files by name; arguments as after `--`.
fn read(
    files: &'static [(&'static str, &'static str)],
    args: &[&str],
) -> Result<PlannedScript, String> {
    let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
    PlannedScript::read(files[0].0, &args, finder(files), 1)
}

fn finder(files: &'static [(&'static str, &'static str)]) -> ReadFile {
    Box::new(move |path: &str| {
        let found = files.iter().find(|(name, _)| *name == path);
        found.map(|(_, text)| text.as_bytes().to_vec()).ok_or("no such file".to_owned())
    })
}

const SHOP: &[(&str, &str)] = &[
    (
        "shop/visit.js",
        "import http from 'k6/http';
        import { check, group, sleep } from 'k6';
        import { path } from './lib.js';
        const data = open('./data.txt');
        const base = __ENV.BASE || 'http://a.example:81';
        export const options = { vus: 3, duration: '30s', thresholds: {
            http_req_duration: ['p(99)<250', 'avg<=1.5'], http_req_failed: ['rate<0.01'],
            checks: ['rate>0.9'], 'http_req_duration{name:x}': ['max<5'] } };
        export function setup() { return { token: http.get(`${base}/token`).json('t') }; }
        export default function (given) {
          sleep(0.5); sleep(0.25);
          const res = group('log in', () => http.post(`${base}${path}`, 'x', { headers: { 'X-T': given.token } }));
          check(res, { good: (r) => r.status === 201 && r.body === 'hi', never: () => false });
          http.get('https://b.example/x', { tags: { name: 'second' },
            responseCallback: http.expectedStatuses(404, { min: 500, max: 501 }) });
          console.log('iteration', __ITER, data.trim());
          if (__ITER === 1) throw new Error('over');
          http.get('http://c.example/');
        }",
    ),
    ("shop/lib.js", "export const path = '/login?a=b';"),
    ("shop/data.txt", "rows\n"),
];

fn actor(script: PlannedScript) -> ScriptActor {
    let servers = ["https://b.example".parse().unwrap()].to_vec();
    ScriptActor::new(ActorSpec {
        steps: script.steps(),
        metrics: script.metrics(),
        script: Arc::new(script),
        base: "http://other.example/".parse().unwrap(),
        servers,
        data: Some(r#"{"token":"T"}"#.to_owned()),
        console: |line| LINES.lock().unwrap().push(line.to_owned()),
    })
}

static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn call(turn: ActorTurn) -> ActedCall {
    match turn.action {
        ActorAction::Call(call) => *call,
        other => panic!("{other:?}"),
    }
}

fn answer(actor: &mut ScriptActor, user: u64, status: u16, body: &str) -> ActorTurn {
    let head = format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n", body.len());
    let took = Nanos::from_millis(4);
    let (head, body) = (head.as_bytes(), body.as_bytes());
    actor.resume(user, Ok(&CallResponse { status, head, body, took, error: None }))
}

#[test]
fn a_script_describes_its_journey() {
    let script = read(SHOP, &[]).unwrap();
    assert_eq!(script.base_server().unwrap().as_str(), "http://a.example:81/token");
    assert_eq!(script.further_servers(), ["https://b.example", "http://c.example"]);
    assert_eq!(script.steps(), ["request", "log in", "second"]);
    let names: Vec<_> = script.files().unwrap().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["shop/lib.js", "shop/data.txt"]);
    let options = [("connections", "3".to_owned()), ("duration", "30s".to_owned())];
    assert_eq!(script.load_options(), options);
    let (ours, left) = script.objectives();
    let all = ["metric checks: mean>0.9", "p99<250ms", "mean<=1.5ms", "failures<1%"];
    assert_eq!(ours, all);
    assert_eq!(left, ["http_req_duration{name:x}: max<5"]);
    assert!(script.has_stage(ScriptStage::Setup) && !script.has_stage(ScriptStage::Teardown));
    let moved = read(SHOP, &["BASE=http://z.example"]).unwrap();
    assert_eq!(moved.base_server().unwrap().host_str(), Some("z.example"));
}

#[test]
fn an_iteration_is_calls_checks_and_pauses() {
    let mut actor = actor(read(SHOP, &[]).unwrap());
    let start = IterationStart { user: 7, iteration: 70, values: &[] };
    let login = call(actor.begin(&start));
    assert_eq!(login.wait, Nanos::from_millis(750));
    assert_eq!((login.step, login.method.as_str()), (1, "POST"));
    assert_eq!(login.url.as_str(), "http://other.example/login?a=b");
    assert_eq!(
        (login.headers, login.body),
        (vec![("X-T".to_owned(), "T".to_owned())], Some(b"x".to_vec()))
    );
    assert!(login.statuses.is_empty());
    let turn = answer(&mut actor, 7, 201, "hi");
    assert_eq!(turn.checks, [None, Some("never".to_owned())]);
    let second = call(turn);
    assert_eq!((second.step, second.url.as_str()), (2, "https://b.example/x"));
    assert_eq!(second.statuses, [404, 500, 501]);
    // a server outside the run ends the iteration, and nothing is sent to it
    let turn = answer(&mut actor, 7, 404, "");
    let ActorAction::Broke(why) = turn.action else { panic!("{turn:?}") };
    assert!(why.starts_with("http://c.example is not a server of this run"), "{why}");
    actor.end_early(7);
    // another user takes over the state that the first user left
    actor.forget(7);
    let start = IterationStart { user: 8, iteration: 71, values: &[] };
    call(actor.begin(&start));
    call(answer(&mut actor, 8, 200, ""));
    let turn = answer(&mut actor, 8, 404, "");
    let ActorAction::Broke(why) = turn.action else { panic!("{turn:?}") };
    assert!(why.starts_with("Error: over (at ") && why.contains("visit.js:17"), "{why}");
    assert_eq!(*LINES.lock().unwrap(), ["iteration 0 rows", "iteration 1 rows"]);
}

#[test]
fn executors_become_options_of_run() {
    let stage = |s, target| RampStage { duration: Nanos::from_secs(s), target };
    let (minute, s) = (Nanos::from_secs(60), Nanos::from_secs(1));
    for (executor, options) in [
        (
            Executor::PerVuIterations { vus: 2, iterations: 5, max_duration: minute },
            "connections=2 requests=10 duration=1m0s",
        ),
        (
            Executor::RampingVus {
                start: 1,
                stages: vec![stage(10, 5.0), stage(0, 2.0), stage(60, 2.0)],
                graceful_ramp_down: s,
            },
            "stages=10s:1..5, 1m0s:2..2",
        ),
        (
            Executor::ConstantArrivalRate { rate: 30.0, unit: minute, duration: s, pre: 1, max: 1 },
            "rate=0.5/s duration=1s",
        ),
        (
            Executor::RampingArrivalRate {
                start: 0.0,
                unit: s,
                stages: vec![stage(5, 100.0)],
                pre: 1,
                max: 1,
            },
            "stages=5s:0/s..100/s",
        ),
    ] {
        let all =
            load_options(&executor).into_iter().map(|(name, value)| format!("{name}={value}"));
        assert_eq!(all.collect::<Vec<_>>().join(" "), options);
    }
}

#[test]
fn a_scenario_must_be_named_among_several() {
    const TWO: &[(&str, &str)] = &[(
        "two.js",
        "import http from 'k6/http';
        export const options = { scenarios: {
          a: { executor: 'constant-vus', vus: 1, duration: '1s', exec: 'one' },
          b: { executor: 'shared-iterations', vus: 2, iterations: 4, exec: 'two', env: { P: '/p' } } } };
        export function one() { }
        export function two() { http.get('http://h' + __ENV.P); }",
    )];
    let why = read(TWO, &[]).unwrap_err();
    assert!(why.contains("two.js: it has 2 scenarios") && why.contains("-- a"), "{why}");
    assert!(read(TWO, &["c"]).unwrap_err().contains("\"c\" is not one of its scenarios (a, b)"));
    let script = read(TWO, &["b"]).unwrap();
    assert_eq!(script.base_server().unwrap().path(), "/p");
    assert_eq!(script.load_options()[1], ("requests", "4".to_owned()));
}

#[test]
fn metrics_of_a_script_are_those_of_its_plan() {
    const OWN: &[(&str, &str)] = &[(
        "own.js",
        "import http from 'k6/http';
        import { check } from 'k6';
        import exec from 'k6/execution';
        import { Counter, Gauge, Rate, Trend } from 'k6/metrics';
        const size = new Trend('size'), good = new Rate('good'), all = new Counter('all');
        const last = new Gauge('last');
        export const options = { thresholds: { size: ['p(95)<5', 'med>=1', 'min>0'],
            good: ['rate>0.5'], all: ['count>1'], last: ['value<9'] },
            noConnectionReuse: true, insecureSkipTLSVerify: false };
        export function handleSummary() { return {}; }
        export default function () {
          const res = http.get('http://other.example/');
          size.add(res.body.length); good.add(res.status === 200); all.add(2); last.add(7);
          check(res, { ok: () => true });
          if (__ITER === 1) exec.test.abort('enough');
        }",
    )];
    let script = read(OWN, &[]).unwrap();
    assert_eq!(script.metrics(), ["size", "good", "all", "last"]);
    assert_eq!(
        script.not_applied(),
        [
            "handleSummary(): loadstone k6 run calls it; here --json FILE",
            "option noConnectionReuse: give --close",
        ]
    );
    let (ours, left) = script.objectives();
    assert_eq!(ours, ["metric good: mean>0.5", "metric size: p95<5", "metric size: p50>=1"]);
    assert_eq!(left, ["all: count>1", "last: value<9", "size: min>0"]);
    let mut actor = actor(script);
    let begin = |iteration| IterationStart { user: 1, iteration, values: &[] };
    actor.begin(&begin(0));
    let turn = answer(&mut actor, 1, 200, "abc");
    assert_eq!(turn.values, [(0, 3.0), (1, 1.0), (2, 2.0), (3, 7.0)]);
    assert!(matches!(turn.action, ActorAction::Over { .. }), "{turn:?}");
    actor.begin(&begin(1));
    let turn = answer(&mut actor, 1, 200, "abc");
    let ActorAction::Abort(why) = turn.action else { panic!("{turn:?}") };
    assert_eq!(why, "enough");
}

#[test]
fn random_numbers_follow_the_seed_and_the_iteration() {
    const RANDOM: &[(&str, &str)] = &[(
        "random.js",
        "import http from 'k6/http';
        export default function () { http.get(`http://other.example/${Math.random()}`); }",
    )];
    let url = |seed, user, iteration| {
        let script = PlannedScript::read("random.js", &[], finder(RANDOM), seed).unwrap();
        let mut actor = actor(script);
        let turn = actor.begin(&IterationStart { user, iteration, values: &[] });
        call(turn).url.to_string()
    };
    assert_eq!(url(1, 0, 5), url(1, 9, 5));
    assert_ne!(url(1, 0, 5), url(1, 0, 6));
    assert_ne!(url(1, 0, 5), url(2, 0, 5));
}
