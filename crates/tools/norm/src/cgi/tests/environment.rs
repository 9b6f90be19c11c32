use super::{Stage, address, get, post, with};
use crate::breaks::Breaks;
use crate::cgi::environment::variables;
use crate::exchange::{Ask, Entity};
use hyper::header::{HeaderName, HeaderValue};
use hyper::http::Version;
use std::path::Path;

fn table(ask: &Ask, breaks: &str) -> String {
    let stage = Stage::new();
    let mut settings = stage.settings(Path::new("/site/cgi-bin/x"));
    settings.passed = vec![("PATH".into(), "/bin".into()), ("SHELL".into(), "/bin/sh".into())];
    let breaks =
        if breaks.is_empty() { Breaks::default() } else { Breaks::parse(breaks).expect("a name") };
    let all = variables(ask, &settings, &breaks);
    let line = |(name, value): (&std::ffi::OsString, &std::ffi::OsString)| {
        format!("{}={}", name.display(), value.display())
    };
    all.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_plain_request_has_the_variables_of_the_rfc() {
    let ask = with(get(Some("name=fred%20flintstone&page=3")), &[("user-agent", "test/1")]);
    insta::assert_snapshot!(table(&ask, ""), @r"
    GATEWAY_INTERFACE=CGI/1.1
    HTTP_USER_AGENT=test/1
    PATH=/bin
    QUERY_STRING=name=fred%20flintstone&page=3
    REMOTE_ADDR=192.0.2.7
    REMOTE_HOST=192.0.2.7
    REQUEST_METHOD=GET
    SCRIPT_NAME=/cgi/x
    SERVER_NAME=192.0.2.1
    SERVER_PORT=2020
    SERVER_PROTOCOL=HTTP/1.1
    SERVER_SOFTWARE=Loadstone/1
    SHELL=/bin/sh
    ");
}

#[test]
fn a_request_with_everything_has_them_all() {
    let mut ask = with(
        post("application/x-www-form-urlencoded", "given=Fred"),
        &[
            ("host", "shop.example:2020"),
            ("authorization", "Basic c2VjcmV0"),
            ("proxy-authorization", "Basic c2VjcmV0"),
            ("proxy", "http://evil.example"),
            ("connection", "keep-alive"),
            ("transfer-encoding", "chunked"),
            ("content-length", "999"),
            ("cookie", "a=1"),
            ("cookie", "b=2"),
            ("accept", "text/html"),
            ("accept", "image/png"),
            ("x_tricky", "1"),
            ("x-plain", "2"),
        ],
    );
    ask.rest = "/more/of it".to_owned();
    ask.user = Some("fred".to_owned());
    ask.version = Version::HTTP_10;
    insta::assert_snapshot!(table(&ask, ""), @r"
    AUTH_TYPE=Basic
    CONTENT_LENGTH=10
    CONTENT_TYPE=application/x-www-form-urlencoded
    GATEWAY_INTERFACE=CGI/1.1
    HTTP_ACCEPT=text/html, image/png
    HTTP_COOKIE=a=1; b=2
    HTTP_HOST=shop.example:2020
    HTTP_X_PLAIN=2
    PATH=/bin
    PATH_INFO=/more/of it
    PATH_TRANSLATED=/site/htdocs/more/of it
    QUERY_STRING=
    REMOTE_ADDR=192.0.2.7
    REMOTE_HOST=192.0.2.7
    REMOTE_USER=fred
    REQUEST_METHOD=POST
    SCRIPT_NAME=/cgi/x
    SERVER_NAME=shop.example
    SERVER_PORT=2020
    SERVER_PROTOCOL=HTTP/1.0
    SERVER_SOFTWARE=Loadstone/1
    SHELL=/bin/sh
    ");
}

#[test]
fn the_server_name_is_the_requested_host_if_valid() {
    let name = |host: &'static str, local: &str| {
        let mut ask = get(None);
        ask.local = address(local);
        ask.headers.insert(HeaderName::from_static("host"), HeaderValue::from_static(host));
        let table = table(&ask, "");
        let line = table.lines().find_map(|line| line.strip_prefix("SERVER_NAME="));
        line.expect("SERVER_NAME is always there").to_owned()
    };
    let four = "192.0.2.1:80";
    assert_eq!(name("shop.example", four), "shop.example");
    assert_eq!(name("127.0.0.1:8080", four), "127.0.0.1");
    assert_eq!(name("[::1]:8080", four), "[::1]");
    assert_eq!(name("[2001:db8::1]", four), "[2001:db8::1]");
    for nonsense in ["", ":80", "a b", "<script>", "[x]", "a/b:1", "[::1", "x:y"] {
        assert_eq!(name(nonsense, four), "192.0.2.1", "{nonsense:?}");
    }
    assert_eq!(name("", "[2001:db8::7]:80"), "[2001:db8::7]");
    assert_eq!(name("", "[::ffff:192.0.2.9]:80"), "192.0.2.9");
}

#[test]
fn a_request_cannot_override_server_variables() {
    let ask = with(get(None), &[("path", "/evil"), ("http-proxy", "x")]);
    let table = table(&ask, "");
    assert!(table.contains("\nPATH=/bin\n") && table.contains("HTTP_PATH=/evil"), "{table}");
    assert!(!table.contains("\nHTTP_PROXY="), "{table}");
    // an empty body is still a body
    let mut ask = get(None);
    ask.body = Entity::Memory(Default::default());
    assert!(super::environment::table(&ask, "").contains("CONTENT_LENGTH=0\n"));
}

#[test]
fn each_switch_spoils_its_own_variable() {
    let ask = || get(Some("a%20b=%00%c3"));
    let lines = |text: String| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let right = lines(table(&ask(), ""));
    let changed = |breaks: &str| {
        let now = lines(table(&ask(), breaks));
        let gone = right.iter().filter(|line| !now.contains(line)).map(|line| format!("-{line}"));
        let come = now.iter().filter(|line| !right.contains(line)).map(|line| format!("+{line}"));
        gone.chain(come).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(changed("cgi-env"), "-SERVER_SOFTWARE=Loadstone/1");
    assert_eq!(changed("cgi-query"), "-QUERY_STRING=a%20b=%00%c3 +QUERY_STRING=a b=\0\u{fffd}");
    assert_eq!(changed("form-greeting"), "+SITE_BREAKS=form-greeting");
    assert_eq!(changed("form-greeting,line-count"), "+SITE_BREAKS=form-greeting line-count");
    assert_eq!(changed("welcome"), "");
    assert_eq!(changed("cgi-stdin"), "");
}
