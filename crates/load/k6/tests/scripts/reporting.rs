//! Output as k6 prints it: full summaries, console lines, warnings, and the end of busy scripts.

use super::support::{Ran, run};
use super::{answer, load, ran};
use k6::test::StopReason;

const SECTIONS: &str = r#"
    import http from 'k6/http';
    import { check, group } from 'k6';
    import { Counter } from 'k6/metrics';
    const counter = new Counter('my_counter');
    const later = new Counter('http_req_retries');
    export const options = { scenarios: {
      two: { executor: 'shared-iterations', vus: 1, iterations: 2, exec: 'two', startTime: '10s' },
      one: { executor: 'per-vu-iterations', vus: 1, iterations: 3, exec: 'one' },
    } };
    export function setup() { http.get('http://sim.example/'); }
    export function one() {
      group('outer', () => {
        group('inner', () => {
          counter.add(1);
          check(http.get('http://sim.example/a'), { ok: () => true, never: () => false });
        });
        check(http.get('http://sim.example/b'), { ok: () => true });
      });
      group('last', () => counter.add(1));
    }
    export function two() { later.add(1); group('alone', () => http.get('http://sim.example/')); }
"#;

fn full(script: &'static str) -> Ran {
    let files: &'static [(&str, &str)] = Box::leak(Box::new([("/t/a.js", script)]));
    let test = load(files).unwrap_or_else(|error| panic!("{}", error.text));
    test.keep_sections();
    run(test, &answer)
}

/// Returns the headings and counts of a text.
fn outline(text: &str) -> Vec<String> {
    let wanted =
        ["█", "↳", "✓", "✗", "checks_total", "http_reqs", "my_counter", "http_req_retries"];
    let lines = text.lines().filter(|line| wanted.iter().any(|word| line.contains(word)));
    let without_rate = |line: &str| match line.rsplit_once(' ') {
        Some((left, rate)) if rate.ends_with("/s") => left.trim_end().to_owned(),
        _ => line.trim_end().to_owned(),
    };
    lines.map(without_rate).collect()
}

#[test]
fn a_full_summary_has_sections_of_scenarios_and_groups() {
    let text = full(SECTIONS).full_text();
    let wanted = "  █ TOTAL RESULTS
    checks_total.......: 9
    ✓ ok
    ✗ never
      ↳  0% — ✓ 0 / ✗ 3
    my_counter.....................: 6
    http_req_retries...............: 2
    http_reqs......................: 9
  █ SCENARIO: one
    checks_total.......: 9
    ✓ ok
    ✗ never
      ↳  0% — ✓ 0 / ✗ 3
    my_counter.................: 6
    http_reqs..................: 6
    ↳ GROUP: outer
      checks_total.......: 3
      ✓ ok
      http_reqs..................: 3
      ↳ GROUP: inner
        checks_total.......: 6
        ✓ ok
        ✗ never
              ↳  0% — ✓ 0 / ✗ 3
        my_counter.................: 3
        http_reqs..................: 3
    ↳ GROUP: last
      my_counter...: 3
  █ SCENARIO: two
    http_req_retries...........: 2
    http_reqs..................: 2
    ↳ GROUP: alone
      http_reqs..................: 2";
    assert_eq!(outline(&text), wanted.lines().collect::<Vec<_>>(), "{text}");
    assert!(!text.contains("group_duration") && !text.contains("::setup"), "{text}");
    assert!(text.ends_with("\n\n\n") && !text.ends_with("\n\n\n\n"), "{text}");
}

#[test]
fn groups_of_the_default_scenario_are_sections() {
    let text = full(
        "import { group } from 'k6'; import { Counter } from 'k6/metrics';
        const my_counter = new Counter('my_counter');
        export default function () { group('a', () => group('b', () => my_counter.add(2))); }",
    )
    .full_text();
    let wanted = "  █ TOTAL RESULTS
    my_counter...........: 2
  █ GROUP: a
    ↳ GROUP: b
      my_counter...: 2";
    assert_eq!(outline(&text), wanted.lines().collect::<Vec<_>>(), "{text}");
}

#[test]
fn values_are_printed_as_k6_prints_them() {
    let ran = ran(&[(
        "/t/a.js",
        r#"
        export default function () {
          console.log({ a: 1, b: [1, 'x', { c: 3 }] });
          console.log([1, 2], 'x', 5, null, undefined, [], {}, Symbol('s'));
          console.log({ x: 1 }, new Date(0), { d: new Date(0) }, /re/g, function f() {}, () => 1);
          console.log(new Error('e1'), { e: new Error('in'), u: undefined, f() {}, n: NaN });
          console.log(new Map([[1, 2]]), new Uint8Array([1, 2]), new Uint8Array([1, 255]).buffer, new Float64Array());
          const around = { b: 1 }; around.self = around; const twice = { x: around.b };
          console.log(around, [twice, twice], [undefined, null, () => 1]);
        }
    "#,
    )]);
    assert_eq!(
        ran.log(),
        [
            "{ a: 1, b: [ 1, \"x\", { c: 3 } ] }",
            "[ 1, 2 ] x 5 null undefined [] {} s",
            "{ x: 1 } \"1970-01-01T00:00:00.000Z\" { d: \"1970-01-01T00:00:00.000Z\" } {} [object Function] [object Function]",
            "Error: e1 { e: Error: in, u: null, f: [object Function], n: NaN }",
            "{} Uint8Array(2) [ 1, 2 ] ArrayBuffer { [Uint8Contents]: <01 ff>, byteLength: 2 } Float64Array(0) []",
            "{ b: 1, self: [Circular] } [ { x: 1 }, { x: 1 } ] [ null, null, [object Function] ]",
        ]
    );
}

#[test]
fn requests_with_invalid_parameters_fail_alone() {
    let ran = ran(&[(
        "/t/a.js",
        r#"
        import http from 'k6/http';
        export default async function () {
          const res = http.get('http://sim.example/', { timeout: 'x' });
          console.log(res.status, res.error.length > 0, res.headers, res.body, res.request.method);
          const other = await http.asyncRequest('GET', 'http://sim.example/', null, { tags: 5 });
          console.log(other.status, other.error);
        }
    "#,
    )]);
    assert!(ran.sent.is_empty());
    let log = ran.log();
    assert!(log[0].starts_with("Request Failed error=invalid duration"), "{log:?}");
    assert_eq!(log[1], "0 true {} null ");
    assert_eq!(log[3], "0 tags must be an object of names and values");
}

#[test]
fn a_script_that_computes_beyond_its_time_limit_is_interrupted() {
    let setup = ran(&[(
        "/t/a.js",
        "export const options = { setupTimeout: '50ms' };
        export function setup() { for (;;) {} }
        export default function () {}",
    )]);
    assert_eq!(setup.test.stop_reason(), Some(StopReason::SetupTimeout));
    let jobs = ran(&[(
        "/t/a.js",
        "export const options = { scenarios: { a: { executor: 'per-vu-iterations', maxDuration: '1s', gracefulStop: '0s' } } };
        export default async function () { for (;;) await 1; }",
    )]);
    assert_eq!(jobs.count("iterations"), 0);
    let summary = ran(&[(
        "/t/a.js",
        "export const options = { handleSummaryTimeout: '100ms' };
        export default function () {}
        export function handleSummary() { for (;;) {} }",
    )]);
    let made = summary.test.handle_summary(&summary.data()).expect("the script has the function");
    assert!(made.is_err_and(|why| why.contains("handleSummaryTimeout")));
}
