//! Libraries of jslib that are built in.

use crate::ran;
use k6::test::StopReason;

const LIBRARIES: &str = r#"
        import http from 'k6/http';
        import chai, { describe, expect } from 'https://jslib.k6.io/k6chaijs/4.3.4.3/index.js';
        import { expect as check } from 'https://jslib.k6.io/k6-testing/0.6.1/index.js';
        import { Httpx, Get } from 'https://jslib.k6.io/httpx/0.1.0/index.js';
        import { FormData } from 'https://jslib.k6.io/formdata/0.0.2/index.js';
        import tempo from 'https://jslib.k6.io/http-instrumentation-tempo/1.0.1/index.js';
        import { ReadableStream, WritableStream } from 'k6/experimental/streams';
        const session = new Httpx({ baseURL: 'http://h.example', headers: { 'X-A': '1' } });
        export default async function () {
          const done = [describe('met', () => {
            const response = session.get('/get', null, { tags: { t: '1' } });
            expect(response.status, 'status').to.equal(200);
            expect(response).to.have.validJsonBody();
            expect(response.json().items, 'items').to.be.an('array').that.has.lengthOf.above(1);
            expect({ a: { b: 1 } }).to.deep.include({ a: { b: 1 } });
            expect([1, 2], 'list').to.include(2).and.not.be.empty;
            expect('text', 'word').to.be.a('string').and.match(/^t/);
            expect(false, 'flag').to.be.false();
            expect([1, 2]).to.have.ordered.members([1, 2], 'order');
            expect(2).to.equal(2, 'two');
          }), describe('missed', () => { expect(3, 'three').to.be.below(2); throw 1; }),
          describe('thrown', () => { throw new Error('odd'); })];
          console.log(done.join());
          check({ a: [1] }).toEqual({ a: [1] });
          check([1, 2]).not.toContain(3);
          try { check.configure({ softMode: 'throw' }).soft(1, 'no').toBe(2); } catch (error) { console.log(error.message); }
          const form = new FormData();
          form.append('n', '1');
          form.append('f', { data: new Uint8Array([65]), filename: 'a.txt', content_type: 'text/plain' });
          console.log(new TextDecoder().decode(form.body()).includes('filename="a.txt"\r\nContent-Type: text/plain\r\n\r\nA\r\n'));
          console.log(session.batch([new Get('/1'), new Get('/2')]).map((r) => r.status).join());
          const seen = [];
          const stream = new ReadableStream({ start(c) { c.enqueue(1); }, pull(c) { c.enqueue(2); c.close(); } });
          const reader = stream.getReader();
          const writer = new WritableStream({ write(chunk) { seen.push(chunk); } }).getWriter();
          for (;;) { const { done: over, value } = await reader.read(); if (over) break; await writer.write(value); }
          console.log(seen.join());
          tempo.instrumentHTTP({ propagator: 'w3c' });
          http.get('http://h.example/traced');
          check(1, 'ends the test').toBeNull();
        }
    "#;

#[test]
fn libraries_of_jslib_are_built_in() {
    let ran = ran(&[("/t/a.js", LIBRARIES)]);
    assert_eq!(
        ran.log()[1..],
        ["true,false,false", "no", "true", "200,200", "1,2"].map(str::to_owned)
    );
    let checks = &ran.data()["root_group"]["groups"];
    let named = |group: &str| {
        let found = checks.as_array().unwrap().iter().find(|it| it["name"] == group).unwrap();
        let all = found["checks"].as_array().unwrap().iter();
        all.map(|it| format!("{} {}", it["name"].as_str().unwrap(), it["passes"]))
            .collect::<Vec<_>>()
    };
    assert_eq!(named("missed"), ["expected three to be below 2 0"]);
    assert_eq!(named("thrown"), ["Exception raised \"Error: odd\" 0"]);
    let met = named("met");
    for name in [
        "status to equal 200",
        "items to be an array",
        "items to have a length above 1 got ${actual}",
        "list to include 2",
        "list not to be empty",
        "word to match /^t/",
        "flag to be false",
        "two to equal 2",
        "order to have the same ordered members as [ 1, 2 ]",
    ] {
        assert!(met.contains(&format!("expected {name} 1")), "{name}: {met:?}");
    }
    assert!(ran.sent[0].1.contains("GET /get ") && ran.sent[0].1.contains("X-A: 1"));
    let traced = &ran.sent[3].1;
    assert!(traced.contains("Traceparent: 00-dc0718"), "{traced}");
    assert!(
        matches!(ran.test.stop_reason(), Some(StopReason::Aborted(why)) if why == "ends the test")
    );
}

#[test]
fn modules_import_common_js_files() {
    let ran = ran(&[
        (
            "/t/a.js",
            "import lib, { double } from './lib.js';
            import flagged, * as all from './flagged.js';
            export default function () {
              console.log(lib.double(2), double(3), flagged, all.named, Object.keys(all).join());
            }",
        ),
        (
            "/t/lib.js",
            "const two = require('./two.js'); module.exports = { double: (x) => x * two };",
        ),
        ("/t/two.js", "module.exports = 2;"),
        (
            "/t/flagged.js",
            "Object.defineProperty(exports, '__esModule', { value: true });
            exports.default = 'mine'; exports.named = 1; exports.delete = 2; exports['a-b'] = 3;",
        ),
    ]);
    assert_eq!(ran.log(), ["4 6 mine 1 default,delete,named"]);
}
