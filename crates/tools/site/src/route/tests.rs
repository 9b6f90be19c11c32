use super::*;

fn status(target: &str) -> u16 {
    Route::parse(target).unwrap_err().status
}

#[test]
fn every_page_has_its_route() {
    let table = [
        ("/", Route::Welcome),
        ("/?x", Route::Welcome),
        ("/hw", Route::Hello),
        ("/sleep?3", Route::Sleep { seconds: "3".into(), span: Nanos::from_secs(3) }),
        ("/sleep?0.5", Route::Sleep { seconds: "0.5".into(), span: Nanos::from_millis(500) }),
        ("/timed?10ms", Route::Timed(Nanos::from_millis(10))),
        ("/bytes/0", Route::Bytes(0)),
        ("/bytes/1073741824", Route::Bytes(1 << 30)),
        ("/status/404", Route::Status { code: 404, to: "/".into() }),
        ("/status/301?to=%2Fhw%3Fx", Route::Status { code: 301, to: "/hw?x".into() }),
        ("/echo", Route::Echo { head_only: false }),
        ("/echo?headers", Route::Echo { head_only: true }),
        ("/chunked/10", Route::Chunked { len: 10, pieces: 4, trailer: false }),
        ("/chunked/2?pieces=5&trailer=1", Route::Chunked { len: 2, pieces: 2, trailer: true }),
        ("/chunked/0", Route::Chunked { len: 0, pieces: 0, trailer: false }),
        ("/chunked/131073?pieces=1", Route::Chunked { len: 131_073, pieces: 3, trailer: false }),
        ("/close/5", Route::Close(5)),
        ("/cookie", Route::Cookie { set: None }),
        ("/cookie?set=a=b", Route::Cookie { set: Some("a=b".into()) }),
        ("/gzip/7", Route::Gzip(7)),
        (
            "/events",
            Route::Events(EventPlan {
                count: 10,
                first: Nanos::ZERO,
                every: Nanos::from_millis(100),
                lines: false,
            }),
        ),
        (
            "/events?n=3&every=50ms&first=0.2&form=lines",
            Route::Events(EventPlan {
                count: 3,
                first: Nanos::from_millis(200),
                every: Nanos::from_millis(50),
                lines: true,
            }),
        ),
        ("/auth", Route::Auth),
        ("/digest?a", Route::Digest("/digest?a".to_owned())),
        ("/login?name=fred", Route::Login { name: "fred".into() }),
        ("/token?expires=2s", Route::Token(Nanos::from_secs(2))),
        ("/me", Route::Me),
        ("/redirect/3", Route::Redirect(3)),
    ];
    for (target, route) in table {
        assert_eq!(Route::parse(target), Ok(route), "{target}");
    }
}

#[test]
fn values_out_of_bounds_are_refused() {
    for target in [
        "/events?n=0",
        "/events?n=1000001",
        "/events?every=x",
        "/events?first=3601",
        "/events?n=37&every=100",
        "/events?form=xml",
        "/sleep",
        "/sleep?",
        "/sleep?x",
        "/sleep?3601",
        "/sleep?-1",
        "/timed",
        "/timed?3601",
        "/bytes/1073741825",
        "/bytes/-1",
        "/bytes/",
        "/bytes/99999999999999999999",
        "/status/99",
        "/status/600",
        "/status/301?to=%0d%0aX:1",
        "/status/301?to=",
        "/status/301?to=%f",
        "/cookie?set=%00",
        "/chunked/1?pieces=0",
        "/gzip/16777217",
        "/redirect/1001",
    ] {
        assert_eq!(status(target), 400, "{target}");
    }
    for target in ["", "*", "hw/", "/hw/", "/nope", "/bytes", "//", "/bytes/1/2/nope/é"] {
        assert!([400, 404].contains(&status(target)), "{target}");
    }
}

#[test]
fn an_absolute_target_is_as_good_as_its_path() {
    assert_eq!(origin_form("http://a:1/bytes/3?x"), "/bytes/3?x");
    assert_eq!(origin_form("http://a"), "/");
    assert_eq!(origin_form("http://a?to=/hw"), "/?to=/hw");
    assert_eq!(origin_form("http://a/hw?to=/b"), "/hw?to=/b");
    assert_eq!(origin_form("/status/301?to=http://b/c"), "/status/301?to=http://b/c");
    assert_eq!(origin_form("*"), "*");
}

#[test]
fn only_some_pages_take_a_body() {
    assert!(Route::Hello.allows("HEAD") && !Route::Hello.allows("POST"));
    assert!(Route::Echo { head_only: false }.allows("POST"));
    assert!(!Route::Hello.allows("GE") && !Route::Hello.allows(""));
}

#[test]
fn a_token_is_its_names_alone() {
    let token = token_of("fred");
    assert_eq!(name_of(&token), Some("fred"));
    assert_eq!(name_of(&token.replace("fred", "eve")), None);
    assert_eq!(name_of("fred"), None);
    assert_eq!(name_of(""), None);
    for bad in ["/login", "/login?name=", "/login?name=a%20b"] {
        assert_eq!(Route::parse(bad).unwrap_err().status, 400, "{bad}");
    }
}

#[test]
fn a_token_expires() {
    let text = token_text(Nanos::from_millis(1_500), 1_000);
    assert!(text.ends_with("\"token_type\": \"Bearer\", \"expires_in\": 1.5}\n"), "{text}");
    let token = text.split('"').nth(3).unwrap_or_default();
    let name = name_of(token).unwrap();
    assert!(is_current(name, 2_499) && !is_current(name, 2_500));
    assert!(is_current("fred", u64::MAX));
}
