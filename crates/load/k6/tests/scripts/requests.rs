//! Requests of `k6/http` as they are sent, and their responses as scripts see them.

use super::ran;

#[test]
fn requests_that_repeat_are_sent_unchanged_after_others() {
    let ran = ran(&[(
        "/t/a.js",
        r#"
        import http from 'k6/http';
        export default function () {
          http.get('http://h.example/a#part');
          http.get('http://h.example/a');
          http.head('http://h.example/a');
          http.post('http://h.example/a', 'x', { headers: { 'User-Agent': 'me', Host: 'other' } });
          http.get('http://h.example/a');
          http.post('http://h.example/a');
          http.get('http://h.example/a', { cookies: { c: 'd' } });
          http.get('http://h.example/a');
          http.get('http://h.example:81/a');
        }
    "#,
    )]);
    let agent = "User-Agent: Grafana k6/2.2.0\r\n";
    let plain = format!("GET /a HTTP/1.1\r\nHost: h.example\r\n{agent}\r\n");
    let expected = [
        plain.clone(),
        plain.clone(),
        plain.replace("GET", "HEAD"),
        "POST /a HTTP/1.1\r\nHost: other\r\nUser-Agent: me\r\nContent-Length: 1\r\n\r\nx"
            .to_owned(),
        plain.clone(),
        format!("POST /a HTTP/1.1\r\nHost: h.example\r\n{agent}Content-Length: 0\r\n\r\n"),
        format!("GET /a HTTP/1.1\r\nHost: h.example\r\n{agent}Cookie: c=d\r\n\r\n"),
        plain.clone(),
        plain.replace("h.example", "h.example:81"),
    ];
    let sent: Vec<&str> = ran.sent.iter().map(|(_, request)| request.as_str()).collect();
    assert_eq!(sent, expected);
}

#[test]
fn a_response_has_all_its_values() {
    let ran = ran(&[(
        "/t/a.js",
        r#"
        import http from 'k6/http';
        export default function () {
          const res = http.post('http://h.example/redirect', 'x=1', { headers: { A: 'b' } });
          console.log(Object.keys(res).join());
          console.log(JSON.stringify([res.request.method, res.request.url, res.request.body, res.request.headers]));
          console.log(Object.keys(res.timings).join(), Object.values(res.timings).every((it) => it >= 0));
          const json = JSON.parse(JSON.stringify(res));
          console.log(json.url, json.status, json.proto, json.status_text, json.error, json.error_code, json.remote_port, json.ocsp.status === '');
          console.log(typeof json.headers, typeof json.cookies, json.request.method, res instanceof http.get('nowhere').constructor);
          const bad = http.get('nowhere');
          console.log(bad.url, JSON.stringify(bad.headers), JSON.stringify(bad.cookies), bad.request.url, bad.body);
        }
    "#,
    )]);
    let log: Vec<String> =
        ran.log().into_iter().filter(|line| !line.starts_with("Request Failed")).collect();
    let expected = [
        "remote_ip,remote_port,url,status,status_text,proto,body,timings,tls_version,\
         tls_cipher_suite,ocsp,error,error_code",
        r#"["POST","http://h.example/redirect","x=1",{"User-Agent":["Grafana k6/2.2.0"],"A":["b"],"Referer":["http://h.example/redirect"]}]"#,
        "duration,blocked,looking_up,connecting,tls_handshaking,sending,waiting,receiving true",
        "http://h.example/final 200 HTTP/1.1 200 OK  0 80 true",
        "object object POST true",
        "nowhere {} {} http://invalid.invalid/ null",
    ];
    assert_eq!(log, expected);
}

#[test]
fn proxies_and_derived_objects_reach_the_values_of_a_response() {
    let ran = ran(&[(
        "/t/a.js",
        r#"
        import http from 'k6/http';
        const NAMES = ['status', 'headers', 'cookies', 'request', 'timings', 'body', 'json', 'html'];
        const show = (what, it) => console.log(what, NAMES.map((name) => typeof it[name]).join(), it.request.method);
        export default function () {
          const get = () => http.get('http://h.example/final');
          show('plain', new Proxy(get(), {}));
          show('reflect', new Proxy(get(), { get: (target, key, receiver) => Reflect.get(target, key, receiver) }));
          show('target', new Proxy(get(), { get: (target, key) => target[key] }));
          show('derived', Object.create(get()));
          const shown = [];
          for (const name in get()) shown.push(name);
          console.log(shown.sort().join());
          const keys = Object.keys(JSON.parse(JSON.stringify(new Proxy(get(), {}))));
          console.log(keys.includes('headers') && keys.includes('cookies') && keys.includes('request'));
        }
    "#,
    )]);
    let types = "number,object,object,object,object,string,function,function GET";
    let expected = [
        format!("plain {types}"),
        format!("reflect {types}"),
        format!("target {types}"),
        format!("derived {types}"),
        "body,clickLink,cookies,error,error_code,headers,html,json,ocsp,proto,remote_ip,\
         remote_port,request,status,status_text,submitForm,timings,tls_cipher_suite,tls_version,url"
            .to_owned(),
        "true".to_owned(),
    ];
    assert_eq!(ran.log(), expected);
}
