use super::*;
use proptest::prelude::*;

fn shown(text: &str) -> String {
    match parse_url(text) {
        Ok(Location { url, auth: None }) => url.to_string(),
        Ok(Location { url, auth: Some(Auth::Basic { user, password }) }) => {
            format!("{url} as {user:?} with {password:?}")
        }
        Ok(Location { auth, .. }) => format!("{auth:?}"),
        Err(error) => error.to_string(),
    }
}

/// RFC 9844: the zone determines the address to connect to; the URL and its Host field omit it.
#[test]
fn an_ipv6_zone_becomes_a_resolve_rule() {
    for (text, url, rule) in [
        (
            "http://[fe80::1%25eth0]:8080/a?b=[%25",
            "http://[fe80::1]:8080/a?b=[%25",
            "[fe80::1]:8080:fe80::1%eth0",
        ),
        ("[fe80:0::1%lo]", "http://[fe80::1]/", "[fe80::1]:80:fe80::1%lo"),
        ("https://u:p@[::1%2]/", "https://[::1]/", "[::1]:443:::1%2"),
    ] {
        let (location, found) = parse_zoned_url(text).unwrap();
        assert_eq!(location.url.as_str(), url, "{text}");
        assert_eq!(rules::show_resolve(&found.unwrap()), rule, "{text}");
        assert!(parse_url(text).unwrap_err().0.contains("IPv6 zone"), "{text}");
    }
    for (text, why) in [
        ("http://[::1%]/", "its IPv6 zone \"\" cannot be used: it is empty"),
        ("http://[1.2.3.4%lo]/", "its zone does not follow an IPv6 address"),
    ] {
        let message = parse_zoned_url(text).map(|(location, _)| location.url.to_string());
        let message = message.unwrap_or_else(|error| error.0);
        assert!(message.contains(why), "{text}: {message}");
    }
    assert_eq!(parse_zoned_url("http://h/[a%25b]").unwrap().1, None);
}

#[test]
fn one_url_is_normalized() {
    for (text, expected) in [
        ("http://h", "http://h/"),
        ("HTTPS://Host:8443/a?b#c", "https://host:8443/a?b"),
        ("localhost:8080", "http://localhost:8080/"),
        ("localhost", "http://localhost/"),
        ("localhost/a?u=http://x", "http://localhost/a?u=http://x"),
        ("127.0.0.1:2020/hw", "http://127.0.0.1:2020/hw"),
        ("[::1]:2020/hw", "http://[::1]:2020/hw"),
        ("::1", "http://[::1]/"),
        ("http://fred:a%3Ab@h/", r#"http://h/ as "fred" with "a:b""#),
        ("fred@h", r#"http://h/ as "fred" with """#),
        ("http://:x@h", r#"http://h/ as "" with "x""#),
    ] {
        assert_eq!(shown(text), expected, "for {text:?}");
    }
}

#[test]
fn a_file_is_not_taken_for_a_host() {
    for (text, fix) in [
        ("k6.js", "JavaScript"),
        ("./load/k6.ts", "JavaScript"),
        ("a.har", "loadstone workload import"),
        ("./shop.yaml", "(.toml)"),
        ("shop.json", "loadstone workload import"),
        ("plan.jmx", "JMeter"),
        ("/tmp/visit.lua", "--script"),
        ("access.log", "loadstone workload import"),
        ("urls.txt", "--urls"),
        ("locustfile.py", "Locust"),
        ("locustfile_shop.py", "Locust"),
        ("login.feature", "other tools"),
        ("Basic.scala", "other tools"),
    ] {
        let message = shown(text);
        assert!(
            message.starts_with(&format!("{text:?} is ")) && message.contains(fix),
            "{message}"
        );
    }
    for url in ["web/app.js", "cdn.example/k6.js", "http://k6.js/", "k6.js:80", "shop.example"] {
        assert!(shown(url).starts_with("http://"), "{url}: {}", shown(url));
    }
}

#[test]
fn a_scheme_without_its_colon_is_not_looked_up() {
    for (text, meant) in [
        ("http//127.0.0.1/a", "http://127.0.0.1/a"),
        ("https//shop.example", "https://shop.example"),
    ] {
        let message = shown(text);
        assert!(message.contains("is not a URL") && message.contains(meant), "{message}");
    }
    assert_eq!(shown("http/a//b"), "http://http/a//b");
}

#[test]
fn an_ipv6_address_without_brackets_is_shown_with_them() {
    for (text, meant) in [
        ("http://::1:8443/", "http://[::1]:8443/"),
        ("https://2001:db8::1/a?b", "https://[2001:db8::1]/a?b"),
        ("::1:70000/x", "an IPv6 address"),
    ] {
        let message = shown(text);
        let known = message.contains(meant) || text.contains("70000");
        assert!(message.contains("is not a URL") && known, "{message}");
    }
}

#[test]
fn invalid_urls_are_refused() {
    let messages: Vec<String> = [
        "",
        "ftp://h/",
        "http://",
        "http:///x",
        "/x",
        "://x",
        "mailto:me",
        "h:99999",
        "h:0",
        "http://[::1/",
        "a b",
        "https://fred:secret@h:x/?a=b@c",
        "fred:secret@h:0",
        "http://h/\r\nX: y",
        "http://h/\u{7f}",
        "http://h%00/",
        "http://%ff@h/",
    ]
    .map(|text| match parse_url(text) {
        Ok(location) => format!("{text:?} was taken for {location:?}"),
        Err(error) => error.to_string(),
    })
    .into();
    insta::assert_snapshot!(messages.join("\n"));
}

#[test]
fn proxies_keep_their_login() {
    let shown = |text| parse_proxy(text).map_or_else(|error| error.0, |url| url.to_string());
    for (text, expected) in [
        ("h:3128", "http://h:3128/"),
        ("http://fred:x@h", "http://fred:x@h/"),
        (
            "https://h",
            r#""https://h" is not a proxy: a proxy is contacted over plain http (https targets are tunneled through it); write http://host:port"#,
        ),
        ("fred:x@h/a", r#""fred:***@h/a" is not a proxy: it has a path; write http://host:port"#),
        ("h:0", r#""h:0" is not a proxy: port 0 cannot be connected to; write http://host:port"#),
        ("", r#""" is not a URL: it is empty; write http://host:port/path"#),
    ] {
        assert_eq!(shown(text), expected, "for {text:?}");
    }
}

fn listed(text: &str, base: Option<&str>) -> String {
    let base = base.map(|base| Url::parse(base).unwrap());
    match parse_url_list(text, base.as_ref()) {
        Err(error) => error.to_string(),
        Ok(targets) => {
            let lines = targets.iter().map(|target| {
                let TargetPlan { url, weight, method, body, .. } = target;
                let body = body.as_deref().map(String::from_utf8_lossy);
                format!("{url} {weight} {method:?} {body:?}")
            });
            lines.collect::<Vec<_>>().join("\n")
        }
    }
}

#[test]
fn a_list_takes_methods_weights_bodies_and_remarks() {
    let text = "\u{feff}# the shop\r\n\
        http://h/a\r\n\
        \n\
        https://h/b weight=2.5\n\
        \t POST http://h/c weight=3 body=a=1 & b=2 \n\
        PURGE h:81/d\n\
        GET weight=2\n\
        LOCALHOST weight=4\n\
        http://h/e body=\n";
    insta::assert_snapshot!(listed(text, None), @r#"
    http://h/a 1 None None
    https://h/b 2.5 None None
    http://h/c 3 Some("POST") Some("a=1 & b=2")
    http://h:81/d 1 Some("PURGE") None
    http://get/ 2 None None
    http://localhost/ 4 None None
    http://h/e 1 None Some("")
    "#);
}

#[test]
fn paths_are_relative_to_the_base() {
    let text = "/a\n?q=1\n./b\n../c\nother:81/d\nhttp://third/e\n";
    insta::assert_snapshot!(listed(text, Some("https://h:8443/x/y/z?old")), @"
    https://h:8443/a 1 None None
    https://h:8443/x/y/z?q=1 1 None None
    https://h:8443/x/y/b 1 None None
    https://h:8443/x/c 1 None None
    http://other:81/d 1 None None
    http://third/e 1 None None
    ");
}

#[test]
fn a_wrong_line_is_named() {
    let messages: Vec<String> = [
        "",
        "# nothing\n\n",
        "http://h/\n/a\n",
        "http://h/ weight=0",
        "http://h/ weight=nan",
        "http://h/ weight=1 weight=2",
        "\n\nhttp://h/ colour=red",
        "http://h/ http://h/",
        "http://fred:x@h/",
        "CONNECT h:443",
        "gopher://h/",
    ]
    .map(|text| listed(text, None))
    .into();
    insta::assert_snapshot!(messages.join("\n"));
}

#[test]
fn a_list_is_bounded() {
    let long = "#\n".repeat(LINES_MAX) + "http://h/\n";
    assert_eq!(listed(&long, None), "the URL list has more than 1000000 lines");
    let wide = format!("http://h/{}", "x".repeat(URL_BYTES_MAX));
    assert!(listed(&wide, None).ends_with("it is longer than 64 KiB; write http://host:port/path"));
}

proptest! {
    /// No text makes a parser panic, and accepted URLs can be sent: absolute, with host and port.
    #[test]
    fn any_text_is_accepted_or_refused(text in any::<String>(), based in any::<bool>()) {
        let base = based.then(|| Url::parse("http://base:81/x/").unwrap());
        if let Ok(targets) = parse_url_list(&text, base.as_ref()) {
            for target in targets {
                prop_assert!(target.url.has_host() && target.url.port_or_known_default().is_some());
                prop_assert!(target.url.username().is_empty() && target.weight > 0.0);
            }
        }
        if let Ok(location) = parse_url(&text) {
            prop_assert_eq!(parse_url(location.url.as_str()).unwrap().url, location.url);
        }
    }

    /// The same for texts that look like lists.
    #[test]
    fn any_almost_valid_list_is_accepted_or_refused(
        text in "((GET |POST |)(http://|https://|/|)[a-z:@%\\[\\]./?#=]{0,12}( weight=[0-9.e]{0,4}| body=.{0,5}){0,2}(\n|\r\n)){0,6}",
    ) {
        let base = Url::parse("http://base:81/x/").unwrap();
        for base in [None, Some(&base)] {
            if let Ok(targets) = parse_url_list(&text, base) {
                prop_assert!(!targets.is_empty());
                prop_assert!(targets.len() <= text.lines().count());
            }
        }
    }
}
