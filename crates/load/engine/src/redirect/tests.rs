use super::*;
use crate::proof;
use crate::render::describes_content;
use plan::Auth;

fn url(text: &str) -> Url {
    text.parse().unwrap()
}

/// Returns a plan with a login and fields of every kind that a redirect may drop.
fn plan() -> Plan {
    let mut plan = Plan::for_url(url("https://shop.example/a"));
    plan.request.method = "POST".into();
    plan.request.auth = Some(Auth::Basic { user: "me".into(), password: "pw".into() });
    plan.request.follow_max = 9;
    let fields =
        ["Host: name.example", "Cookie: a=b", "X-Api-Key: k", "Content-Type: x/y", "X-Other: 1"];
    let field = |text: &str| {
        let (name, value) = text.split_once(": ").unwrap();
        (name.to_owned(), value.to_owned())
    };
    plan.request.headers = fields.into_iter().map(field).collect();
    plan
}

fn first(plan: &Plan) -> Template {
    let start = plan.targets[0].url.clone();
    crate::build_template(plan, &start, &plan.request.method, &[], Some(b"body"), 0, false).unwrap()
}

fn follow(plan: &Plan, from: &Template, to: &str, status: u16) -> Template {
    let to = location(from.url(), to.as_bytes()).unwrap();
    let method = redirect_method(status, &from.method).unwrap();
    let body = Some(&b"body"[..]);
    Redirect { from, url: &to, method, headers: &[], body, endpoint: 0, absolute: false }
        .build(plan)
        .unwrap()
}

/// Returns the request line and the fields that matter here, in one line.
fn shown(template: &Template) -> String {
    let text = String::from_utf8_lossy(&template.bytes);
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let usual = ["User-Agent", "Content-Length"];
    let lines = head.lines().filter(|line| !usual.iter().any(|name| line.starts_with(name)));
    let mut parts: Vec<&str> = lines.collect();
    parts.extend((!body.is_empty()).then_some(body));
    parts.join("; ").replace(" HTTP/1.1", "")
}

const KEPT: &str = "Host: name.example; Cookie: a=b; X-Api-Key: k; X-Other: 1";

#[test]
fn credentials_stay_with_their_server() {
    let plan = plan();
    for (to, host) in [
        ("https://other.example/b", "other.example"),
        ("https://sub.shop.example/b", "sub.shop.example"),
        ("https://shop.example:444/b", "shop.example:444"),
        ("http://shop.example/b", "shop.example"),
        ("http://shop.example:443/b", "shop.example:443"),
        ("//other.example/b", "other.example"),
    ] {
        let got = shown(&follow(&plan, &first(&plan), to, 302));
        assert_eq!(got, format!("GET /b; Host: {host}; X-Other: 1"), "{to}");
    }
    for to in ["/b", "https://shop.example:443/b", "https://SHOP.example/b", "b"] {
        let got = shown(&follow(&plan, &first(&plan), to, 302));
        assert_eq!(got, format!("GET /b; Authorization: Basic bWU6cHc=; {KEPT}"), "{to}");
    }
}

#[test]
fn credentials_that_were_dropped_do_not_return() {
    let plan = plan();
    let away = follow(&plan, &first(&plan), "https://other.example/b", 302);
    let back = follow(&plan, &away, "https://shop.example/c", 302);
    assert_eq!(shown(&back), "GET /c; Host: shop.example; X-Other: 1");
    assert_eq!(shown(&follow(&plan, &back, "/d", 302)), "GET /d; Host: shop.example; X-Other: 1");
}

#[test]
fn a_trusted_host_gets_them_on_any_port_but_not_in_cleartext() {
    let mut plan = plan();
    plan.request.follow_auth = vec!["login.example".into()];
    let to = |to: &str| shown(&follow(&plan, &first(&plan), to, 302));
    assert_eq!(
        to("https://login.example:8443/b"),
        format!("GET /b; Authorization: Basic bWU6cHc=; {KEPT}")
    );
    assert_eq!(to("http://login.example/b"), "GET /b; Host: login.example; X-Other: 1");
    assert_eq!(to("https://other.example/b"), "GET /b; Host: other.example; X-Other: 1");
}

/// RFC 9110 section 15.4: a method that has become GET loses the content and its fields.
#[test]
fn content_and_its_fields_go_with_the_method() {
    let mut plan = plan();
    (plan.request.auth, plan.request.headers) = (None, vec![("Content-Type".into(), "x/y".into())]);
    let kept = follow(&plan, &first(&plan), "/b", 307);
    assert_eq!(shown(&kept), "POST /b; Host: shop.example; Content-Type: x/y; body");
    let got = follow(&plan, &kept, "/c", 303);
    assert_eq!(shown(&got), "GET /c; Host: shop.example");
    assert_eq!(shown(&follow(&plan, &got, "/d", 302)), "GET /d; Host: shop.example");
    for name in ["content-type", "Content-Encoding", "Content-Digest", "Expect", "Digest"] {
        assert!(describes_content(name), "{name}");
    }
    assert!(!describes_content("Contents") && !describes_content("Accept"));
}

#[test]
fn another_server_gets_neither_signature_nor_digest() {
    let mut plan = plan();
    plan.request.headers.clear();
    let head = b"HTTP/1.1 401 X\r\nWWW-Authenticate: Digest realm=\"R\", nonce=\"n\", qop=\"auth\"\r\n\r\n";
    plan.request.auth = Some(Auth::Digest { user: "me".into(), password: "pw".into() });
    let away = follow(&plan, &first(&plan), "https://other.example/b", 302);
    assert!(proof::answer_to(&plan, &first(&plan), head).is_some());
    assert!(proof::answer_to(&plan, &away, head).is_none());
    let scope = protocol::login::sigv4::SignatureScope::parse("aws:amz:r:s").unwrap();
    plan.request.auth = Some(Auth::AwsSigV4 { key: "k".into(), secret: "s".into(), scope });
    assert!(proof::first_proof(&plan, &first(&plan), 0).is_some());
    assert!(proof::first_proof(&plan, &away, 0).is_none());
}

#[test]
fn a_location_may_have_a_login_or_invalid_utf8() {
    let from = url("http://a.example/x/y");
    let to = |value: &[u8]| location(&from, value).map(String::from);
    assert_eq!(to(b"http://me:pw@b.example/").as_deref(), Some("http://b.example/"));
    assert_eq!(to("é".as_bytes()).as_deref(), Some("http://a.example/x/%C3%A9"));
    assert_eq!(to(b"caf\xe9?q=\xfc").as_deref(), Some("http://a.example/x/caf%E9?q=%FC"));
    assert_eq!(to(b"http://["), None);
}
