//! `loadstone k6`: exit codes and messages in a shell. The behavior of scripts is tested in `k6`.

use crate::support::tls::{TlsOptions, TlsServer};
use crate::support::{Site, keep, run};

/// Scripts with different ends: name, text, exit code, and a part of standard error, in which
/// FOLDER is the folder of the script.
const ENDS: &[(&str, &str, i32, &str)] = &[
    ("throws.js", "throw new Error('early');\nexport default function () {}", 107, "throws.js:1"),
    (
        "gone.js",
        "import './no.js';\nexport default function () {}",
        107,
        "gone.js:1: cannot read FOLDER/no.js: ",
    ),
    ("broken.js", "export default function ( {", 107, "SyntaxError"),
    (
        "two.js",
        "import sql from 'k6/x/sql';\nimport { browser } from 'k6/browser';\nexport default () => {}",
        107,
        "two.js:2: cannot import",
    ),
    ("options.js", "export const options = { vus: 'x' };\nexport default () => {}", 104, "vus"),
    (
        "abort.js",
        "import exec from 'k6/execution';\nexport default () => { exec.test.abort('enough'); }",
        108,
        "enough",
    ),
    (
        "memory.js",
        "export default () => { const all = []; for (;;) all.push(new ArrayBuffer(32 << 20)); }",
        0,
        "256 MiB",
    ),
];

#[test]
fn a_script_ends_with_the_exit_code_of_k6() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text, code, found) in ENDS {
        let path = keep(folder.path(), name, text);
        let ran = run(&["k6", "run", "--quiet", &path]).expect(&[*code]);
        let found = found.replace("FOLDER", folder.path().to_str().unwrap());
        assert!(ran.stderr.contains(&found), "{name}: {ran:#?}");
    }
    let ran = run(&["k6", "run", "nowhere.js"]).expect(&[255]);
    assert!(ran.stderr.contains("cannot read nowhere.js"), "{ran:#?}");
    let ran = run(&["k6", "cloud", "run", "x.js"]).expect(&[255]);
    assert!(ran.stderr.contains("run the script here with k6 run SCRIPT"), "{ran:#?}");
}

#[test]
fn a_threshold_decides_the_exit_code() {
    let site = Site::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let text = "import http from 'k6/http';
export const options = { iterations: 3, thresholds: { http_reqs: ['count>5'] } };
export default () => { http.get(`${__ENV.SITE}/hw`); };";
    let path = keep(folder.path(), "count.js", text);
    let summary = folder.path().join("summary.json");
    let summary = summary.to_str().unwrap();
    let variable = format!("SITE={}", site.url(""));
    let line = ["k6", "run", "-e", &variable, "--summary-export", summary, &path];
    let ran = run(&line).expect(&[99]);
    assert!(ran.stderr.contains("thresholds on metrics 'http_reqs' have been crossed"), "{ran:#?}");
    assert!(ran.stdout.contains("http_reqs") && ran.stdout.contains("LOADSTONE"), "{ran:#?}");
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(summary).unwrap()).unwrap();
    assert_eq!(json["metrics"]["http_reqs"]["count"], 3.0);
    assert_eq!(site.stop().requests, 3);
    run(&["k6", "run", "--quiet", "--no-thresholds", "-e", "SITE=http://127.0.0.1:1", &path])
        .expect(&[0]);
}

const SOCKETS: &str = "
import http from 'k6/http';
import ws from 'k6/ws';
import { WebSocket } from 'k6/websockets';
import { check } from 'k6';
const base = __ENV.SITE.replace('http', 'ws');
export const options = { vus: 2, iterations: 4, thresholds: { checks: ['rate==1'],
  ws_msgs_received: ['count==20'], ws_sessions: ['count==8'], http_reqs: ['count==4'] } };
export default function () {
  const log = [];
  const res = ws.connect(`${base}/ws?close=4001&after=3`, null, (socket) => {
    const words = ['a', 'b', 'c', 'd'];
    socket.on('open', () => socket.send(words.shift()));
    socket.on('message', (it) => {
      log.push(it);
      if (it === 'a') http.get(`${__ENV.SITE}/hw`);
      socket.send(words.shift());
    });
    socket.on('close', (code) => log.push(code));
  });
  check(res, { 101: (r) => r.status === 101 });
  check(log.join(), { first: (it) => it === 'a,b,c,4001' });
  const second = new WebSocket(`${base}/ws?delay=5ms`);
  const seen = [];
  second.binaryType = 'arraybuffer';
  second.onopen = () => { second.send('x'); second.ping(); };
  second.onpong = () => seen.push('pong');
  second.onmessage = (event) => {
    seen.push(typeof event.data === 'string' ? event.data : event.data.byteLength);
    if (seen.length < 3) second.send(new Uint8Array(7)); else second.close();
  };
  second.onclose = (event) => check(seen.join() + event.code, { second: (it) => it === 'pong,x,71000' });
}";

#[test]
fn websockets_run_in_parallel_with_requests() {
    let site = Site::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let path = keep(folder.path(), "sockets.js", SOCKETS);
    let variable = format!("SITE={}", site.url(""));
    let ran = run(&["k6", "run", "-e", &variable, &path]).expect(&[0]);
    assert!(ran.stdout.contains("WEBSOCKET") && ran.stdout.contains("ws_ping"), "{ran:#?}");
    let refused = run(&["run", &path, "--", &variable]).expect(&[2]);
    assert!(refused.stderr.contains("run it with loadstone k6 run"), "{refused:#?}");
}

const CONNECTIONS: &str = "
import http from 'k6/http';
import { check } from 'k6';
const tls = { insecureSkipTLSVerify: true };
const CASES = {
  hosts: { hosts: { 'shop.test': `127.0.0.1:${__ENV.PORT}`, '*.eu.test': '127.0.0.1' } },
  dns: { localIPs: '127.0.0.7-127.0.0.8', dns: { policy: 'onlyIPv4', select: 'first' } },
  v6: { dns: { policy: 'onlyIPv6' } },
  black: { blacklistIPs: ['127.0.0.0/8'] },
  tls: { ...tls, iterations: 2, noConnectionReuse: true, tlsVersion: 'tls1.2', tlsCipherSuites: ['TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256'],
    tlsAuth: [{ cert: open(__ENV.CERT), key: open(__ENV.KEY) }] },
};
const URLS = {
  hosts: ['http://shop.test/hw', `http://a.eu.test:${__ENV.PORT}/hw`],
  dns: [`http://localhost:${__ENV.PORT}/hw`], tls: [__ENV.TLS],
  v6: [`http://127.0.0.1:${__ENV.PORT}/hw`],
  black: [`http://127.0.0.1:${__ENV.PORT}/hw`, `http://localhost:${__ENV.PORT}/hw`],
};
export const options = { ...CASES[__ENV.CASE], thresholds: { checks: ['rate==1'] } };
const expected = { v6: [0, 1101], black: [0, 1110] }[__ENV.CASE] || [200, 0];
export default function () {
  for (const url of URLS[__ENV.CASE]) {
    const { status, error_code } = http.get(url);
    check([status, error_code].join(), { [url]: (it) => it === expected.join() });
  }
}";

#[test]
fn options_of_connections_apply_to_real_sockets() {
    let site = Site::start(&[]);
    let tls = TlsServer::start(&TlsOptions { client_certificate: true, ..TlsOptions::default() });
    let folder = tempfile::tempdir().unwrap();
    let path = keep(folder.path(), "connections.js", CONNECTIONS);
    let port = site.url("").rsplit(':').next().unwrap().trim_end_matches('/').to_owned();
    for case in ["hosts", "dns", "v6", "black", "tls"] {
        let variables = [
            format!("CASE={case}"),
            format!("PORT={port}"),
            format!("TLS={}", tls.url("/")),
            format!("CERT={}", tls.files.cert),
            format!("KEY={}", tls.files.key),
        ];
        let options = variables.iter().flat_map(|it| ["-e", it.as_str()]);
        let line: Vec<&str> = ["k6", "run", "--quiet"].into_iter().chain(options).collect();
        run(&[&line[..], &[&path]].concat()).expect(&[0]);
    }
    let seen = tls.handshakes(1);
    let all: Vec<String> = seen.iter().map(|it| format!("{} {}", it.version, it.cipher)).collect();
    let suite = "TLSv1_2 TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256";
    assert_eq!(all, [suite]);
}

/// Description of the site's gRPC service.
const PROTO: &str = include_str!("../../../tools/site/src/proper/echo.proto");

const STREAMS: &str = "
import grpc from 'k6/net/grpc';
import http from 'k6/http';
import { check } from 'k6';
const client = new grpc.Client();
client.load([], 'echo.proto');
export const options = { vus: 2, iterations: 6, rps: 500, thresholds: { checks: ['rate==1'],
  grpc_streams: ['count==24'], http_reqs: ['count==18'] } };
const of = (method, params) => {
  const stream = new grpc.Stream(client, `loadstone.v1.Echo/${method}`, params);
  const seen = [];
  stream.on('data', ({ text, number }) => seen.push(text + number));
  stream.on('error', ({ code }) => seen.push(`error ${code}`));
  return [stream, new Promise((done) => stream.on('end', () => done(seen.join())))];
};
const is = (name, seen, wanted) => check(seen, { [name]: (it) => it === wanted });
export default async function () {
  client.connect(__ENV.SITE, { plaintext: true });
  const [chat, chatted] = of('Chat');
  const [repeat, repeated] = of('Repeat');
  const [collect, collected] = of('Collect');
  const [silent, timed] = of('Chat', { timeout: '50ms' });
  for (const text of ['a', 'b']) chat.write({ text, waitMs: 1 });
  repeat.write({ text: 'r', count: 3, gapMs: 1 });
  for (let i = 0; i < 2000; i++) collect.write({ text: String(i % 10) });
  collect.end();
  const all = http.batch(Array(3).fill(`http://${__ENV.SITE}/hw`));
  check(all, { batch: (it) => it.every(({ status }) => status === 200) });
  chat.write({ text: 'c', waitMs: 1 });
  chat.end();
  is('chat', await chatted, 'a1,b2,c3');
  is('repeat', await repeated, 'r1,r2,r3');
  is('collect', (await collected).length > 2000, true);
  is('timeout', await timed, 'error 4');
}";

#[test]
fn streams_run_in_parallel_with_requests() {
    let site = Site::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    keep(folder.path(), "echo.proto", PROTO);
    let path = keep(folder.path(), "streams.js", STREAMS);
    let address = site.url("").replace("http://", "");
    let variable = format!("SITE={}", address.trim_end_matches('/'));
    let ran = run(&["k6", "run", "-e", &variable, &path]).expect(&[0]);
    assert!(ran.stdout.contains("GRPC") && !ran.stdout.contains("✗"), "{ran:#?}");
}
