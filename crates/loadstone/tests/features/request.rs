//! Requests as the server sees them, and expectations on the response.

use crate::support::apache::Apache;
use crate::support::http::{Recorder, Request, response};
use crate::support::quic::QuicSite;
use crate::support::{Site, failures, measure, measured, outcomes, run, run_with_input, whole};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

/// Makes one call with options; returns the request of the run, which follows the plain first call.
#[track_caller]
fn seen(options: &[&str]) -> Request {
    seen_at("/page?q=1", options)
}

#[track_caller]
fn seen_at(path: &str, options: &[&str]) -> Request {
    let server = Recorder::plain();
    let url = server.url(path);
    let mut args = vec!["-c", "1", "-n", "1", &url];
    args.extend(options);
    measure(&args);
    let requests = server.requests();
    assert_eq!(requests.len(), 1, "{requests:?}");
    let first = &server.all()[0];
    assert_eq!((first.connection, &first.line), (0, &requests[0].line), "{first:?}");
    requests[0].clone()
}

#[test]
fn a_plain_request_is_honest_and_short() {
    let request = seen(&[]);
    assert_eq!(request.line, "GET /page?q=1 HTTP/1.1");
    assert!(request.field("host").unwrap().starts_with("127.0.0.1:"));
    assert!(request.field("user-agent").unwrap().starts_with("loadstone/"));
    assert_eq!(request.field("accept-encoding"), None);
    assert_eq!(request.field("authorization"), None);
    assert_eq!(request.body, b"");
}

#[test]
fn headers_method_and_agent_are_sent_as_typed() {
    let request = seen(&["-H", "X-One: 1", "--header", "X-Two: b: c", "--method", "PURGE"]);
    assert_eq!(request.method(), "PURGE");
    assert_eq!(request.field("x-one"), Some("1"));
    assert_eq!(request.field("x-two"), Some("b: c"));
    assert_eq!(seen(&["--user-agent", "a robot"]).field("user-agent"), Some("a robot"));
    assert_eq!(seen(&["--priority", "i,u=1"]).field("priority"), Some("u=1, i"));
    let hosts = seen(&["-H", "Host: shop.example"]);
    let hosts: Vec<_> = hosts.fields.iter().filter(|(name, _)| name == "Host").collect();
    assert_eq!(hosts, [&("Host".to_owned(), "shop.example".to_owned())]);
}

#[test]
fn a_body_is_posted_from_text_file_and_standard_input() {
    let request = seen(&["--body", "a=1&b=2"]);
    assert_eq!((request.method(), request.body.as_slice()), ("POST", &b"a=1&b=2"[..]));
    assert_eq!(request.field("content-length"), Some("7"));
    assert_eq!(seen(&["--body", "x", "--method", "PUT"]).method(), "PUT");

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("body");
    let bytes: Vec<u8> = (0..=255).cycle().take(70_000).collect();
    std::fs::write(&path, &bytes).unwrap();
    assert_eq!(seen(&["--body-file", path.to_str().unwrap()]).body, bytes);

    let server = Recorder::plain();
    let url = server.url("/");
    let args = ["run", "-q", "-c", "2", "-n", "4", "--body-file", "-", &url];
    run_with_input(&args, &bytes).expect(&[0, 4]);
    let bodies = server.requests();
    assert_eq!(bodies.len(), 4);
    assert!(bodies.iter().all(|request| request.body == bytes));
}

#[test]
fn a_form_is_sent_with_its_type_and_method() {
    let form = seen(&["--form", "name=a b", "--form", "x=1"]);
    assert_eq!(form.body, b"name=a+b&x=1");
    assert_eq!(form.field("content-type"), Some("application/x-www-form-urlencoded"));
    assert!(form.line.starts_with("POST "), "{}", form.line);
    let folder = tempfile::tempdir().unwrap();
    let file = crate::support::keep(folder.path(), "note.txt", "hello");
    let upload = seen(&["--form", "name=ann", "--form", &format!("note=@{file};type=text/plain")]);
    let kind = upload.field("content-type").unwrap();
    assert!(kind.starts_with("multipart/form-data; boundary="), "{kind}");
    let body = String::from_utf8(upload.body.clone()).unwrap();
    assert!(
        body.contains("filename=\"note.txt\"\r\nContent-Type: text/plain\r\n\r\nhello"),
        "{body}"
    );
}

#[test]
fn logins_are_sent_as_authorization() {
    let basic = seen(&["--user", "fred:flint:stone"]);
    // RFC 7617 §2: base64 of fred:flint:stone
    assert_eq!(basic.field("authorization"), Some("Basic ZnJlZDpmbGludDpzdG9uZQ=="));
    assert_eq!(seen(&["--bearer", "tok.en"]).field("authorization"), Some("Bearer tok.en"));
    let server = Recorder::plain();
    let url = server.url("/x").replace("http://", "http://fred:pw@");
    measure(&["-c", "1", "-n", "1", &url]);
    let request = &server.requests()[0];
    assert_eq!(request.field("authorization"), Some("Basic ZnJlZDpwdw=="));
    assert!(!request.field("host").unwrap().contains('@'));
    // the site knows this one
    let site = Site::start(&[]);
    let url = site.url("/auth");
    let json = measure(&["-c", "1", "-n", "3", "--user", "fred:flintstone", &url]);
    assert_eq!(json["status"], serde_json::json!({"200": 3}));
    let json = measured(&["-c", "1", "-n", "3", "--user", "fred:wrong", &url], &[1]);
    assert_eq!(json["status"], serde_json::json!({"401": 3}));
}

#[test]
fn http_1_0_and_close_use_a_connection_per_call() {
    let request = seen(&["--http", "1.0"]);
    assert!(request.line.ends_with(" HTTP/1.0"), "{request:?}");
    for options in [&["--http", "1.0", "--close"][..], &["--close"], &["--calls", "1"]] {
        let server = Recorder::plain();
        let url = server.url("/");
        let mut args = vec!["-c", "2", "-n", "10", &url];
        args.extend(options);
        let json = measure(&args);
        assert_eq!(outcomes(&json), [10, 10, 0, 0, 0, 0]);
        assert_eq!(whole(&json, "/connections/attempted"), 10, "{options:?}");
        let connections: BTreeSet<usize> =
            server.requests().iter().map(|request| request.connection).collect();
        assert_eq!(connections.len(), 10, "{options:?}");
    }
}

#[test]
fn compressed_bytes_are_counted_on_wire_and_decoded() {
    assert!(seen(&["--compressed"]).field("accept-encoding").unwrap().contains("gzip"));
    let site = Site::start(&[]);
    let url = site.url("/gzip/100000");
    let json = measure(&["-c", "1", "-n", "3", "--compressed", &url]);
    assert_eq!(outcomes(&json)[1], 3);
    assert_eq!(whole(&json, "/bytes/decoded"), 300_000);
    let wire = whole(&json, "/bytes/body");
    assert!(wire < 150_000 && wire.is_multiple_of(3), "{json:#}");
    let options = ["--compressed", "--expect-length", "100000"];
    let json = measure(&["-c", "1", "-n", "3", options[0], options[1], options[2], &url]);
    assert_eq!(outcomes(&json)[1], 3, "the expected length is that of the decoded body");
    // without it nothing is decoded
    let json = measure(&["-c", "1", "-n", "3", &url]);
    assert_eq!(whole(&json, "/bytes/decoded"), whole(&json, "/bytes/body"));
}

#[test]
fn redirects_are_followed_on_request() {
    let site = Site::start(&[]);
    let url = site.url("/redirect/3");
    let json = measure(&["-c", "1", "-n", "2", &url]);
    assert_eq!(json["status"], serde_json::json!({"302": 2}));
    assert_eq!(whole(&json, "/redirects"), 0);
    let json = measure(&["-c", "1", "-n", "2", "--follow", &url]);
    assert_eq!(json["status"], serde_json::json!({"200": 2}));
    assert_eq!((outcomes(&json)[0], whole(&json, "/redirects")), (2, 6));
    let json = measured(&["-c", "1", "-n", "2", "--follow=2", &url], &[1]);
    assert_eq!(failures(&json), [("redirects".to_owned(), 2)]);
    // to another server, whose name and port were unknown before
    let there = Recorder::plain();
    let to = there.url("/end");
    let here = Recorder::start(move |_| response(302, &format!("Location: {to}\r\n"), ""));
    let json = measure(&["-c", "1", "-n", "4", "--follow", &here.url("/start")]);
    assert_eq!(outcomes(&json), [4, 4, 0, 0, 0, 0]);
    let ends = there.all().iter().filter(|request| request.target() == "/end").count();
    assert!(ends >= 4, "{ends}");
}

#[test]
fn each_user_keeps_its_own_cookies() {
    let given = AtomicU64::new(0);
    let server = Recorder::start(move |request| match request.field("cookie") {
        Some(_) => response(200, "", "known"),
        None => {
            let id = given.fetch_add(1, Ordering::SeqCst);
            response(200, &format!("Set-Cookie: id=user{id}; Path=/\r\n"), "new")
        }
    });
    let url = server.url("/");
    measure(&["-c", "3", "-n", "30", "--cookies", &url]);
    let requests = server.requests();
    let without = requests.iter().filter(|request| request.field("cookie").is_none()).count();
    assert_eq!((requests.len(), without), (30, 3));
    let cookies: BTreeSet<&str> =
        requests.iter().filter_map(|request| request.field("cookie")).collect();
    // user0 was used by the plain first call
    assert!(
        cookies.is_subset(&BTreeSet::from(["id=user1", "id=user2", "id=user3"])),
        "{cookies:?}"
    );
    assert!(cookies.len() > 1, "{cookies:?}");
    let server = Recorder::start(|_| response(200, "Set-Cookie: a=b\r\n", ""));
    measure(&["-c", "1", "-n", "5", &server.url("/")]);
    assert!(server.requests().iter().all(|request| request.field("cookie").is_none()));
}

#[test]
fn a_status_is_judged_by_the_list_or_by_being_below_400() {
    let site = Site::start(&[]);
    let judge = |path: &str, options: &[&str]| {
        let url = site.url(path);
        let mut args = vec!["-c", "1", "-n", "2", &url];
        args.extend(options);
        let json = measured(&args, &[0, 1, 4]);
        let [_, succeeded, failed, ..] = outcomes(&json);
        let classes = failures(&json);
        assert_eq!(classes.first().is_some_and(|(class, _)| class == "status"), failed > 0);
        (succeeded, failed)
    };
    assert_eq!(judge("/status/399", &[]), (2, 0));
    assert_eq!(judge("/status/400", &[]), (0, 2));
    assert_eq!(judge("/status/404", &["--expect-status", "200,404"]), (2, 0));
    assert_eq!(judge("/status/404", &["--expect-status", "400-499"]), (2, 0));
    assert_eq!(judge("/hw", &["--expect-status", "201-299"]), (0, 2));
}

#[test]
fn lengths_and_bodies_are_compared() {
    let site = Site::start(&[]);
    let url = site.url("/hw");
    // `/hw` says "hello world"
    let hash = "b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9";
    let right = [
        ["--expect-length", "11"],
        ["--expect-body", "lo wor"],
        ["--expect-body", "exact:hello world"],
        ["--expect-body", "regex:^h.*d$"],
        ["--expect-body", &format!("sha256:{hash}")],
    ];
    for [option, value] in right {
        let json = measure(&["-c", "1", "-n", "2", option, value, &url]);
        assert_eq!(outcomes(&json)[..3], [2, 2, 0], "{option} {value}");
    }
    let wrong = [
        ["--expect-length", "12", "length"],
        ["--expect-body", "Hello", "body"],
        ["--expect-body", "exact:hello worl", "body"],
        ["--expect-body", "exact:hello world!", "body"],
        ["--expect-body", "regex:^w", "body"],
        ["--expect-body", &format!("sha256:{}", hash.replace("b9", "00")), "body"],
    ];
    for [option, value, class] in wrong {
        let json = measured(&["-c", "1", "-n", "2", option, value, &url], &[1]);
        assert_eq!(failures(&json), [(class.to_owned(), 2)], "{option} {value}");
        assert_eq!(json["status"], serde_json::json!({"200": 2}));
    }
}

/// Apache requires Digest (RFC 7616 with MD5): each user logs in once, and a wrong password never
/// succeeds.
#[test]
fn digest_logins_pass_at_apache() {
    let apache =
        Apache::start(&["auth_digest", "authn_core", "authn_file", "authz_user"], |folder| {
            std::fs::create_dir(folder.join("www")).unwrap();
            std::fs::write(folder.join("www/page.html"), "a page").unwrap();
            // MD5 of fred:site:rocks
            std::fs::write(folder.join("users"), "fred:site:f4138e0763ff01a65074b8eed57f7384\n")
                .unwrap();
            format!(
                "DocumentRoot {root}/www\nKeepAlive On\nMaxKeepAliveRequests 0\n\
                 <Directory {root}/www>\nAuthType Digest\nAuthName site\n\
                 AuthUserFile {root}/users\nRequire valid-user\n</Directory>\n",
                root = folder.display()
            )
        });
    let url = apache.url("/page.html?a=b");
    let json = measure(&["-c", "2", "-n", "40", "--digest", "fred:rocks", &url]);
    assert_eq!(outcomes(&json), [40, 40, 0, 0, 0, 0]);
    assert_eq!((whole(&json, "/status/200"), whole(&json, "/status/401")), (40, 2));
    assert_eq!(whole(&json, "/first_call/status"), 200);
    assert!(!json.to_string().contains("rocks"), "a password is shown");
    let json = measured(&["-c", "1", "-n", "3", "--digest", "fred:stone", &url], &[1]);
    assert_eq!(outcomes(&json)[2], 3);
    // a plan stores it, and can be run again
    let plan = run(&["run", &url, "-n", "4", "-c", "1", "--digest", "fred:rocks", "--print-plan"]);
    assert!(plan.stdout.contains("digest = \"fred:***masked***\""), "{}", plan.stdout);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("plan.toml");
    std::fs::write(&file, plan.stdout.replace("***masked***", "rocks")).unwrap();
    let json = measure(&[file.to_str().unwrap()]);
    assert_eq!(outcomes(&json), [4, 4, 0, 0, 0, 0]);
}

#[test]
fn signatures_go_with_every_request() {
    let scope = ["--aws-sigv4", "aws:amz:eu-central-1:s3", "--user", "KEY:secret"];
    let request = seen(&[&scope[..], &["-H", "x-amz-security-token: abc", "--body", "x"]].concat());
    let value = request.field("authorization").unwrap();
    assert!(value.starts_with("AWS4-HMAC-SHA256 Credential=KEY/"), "{value}");
    let names = "SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token";
    assert!(value.contains("/eu-central-1/s3/aws4_request") && value.contains(names), "{value}");
    assert!(request.field("x-amz-content-sha256").unwrap().starts_with("2d711642b726b044"));
    assert_eq!(request.field("x-amz-date").unwrap().len(), "20150830T123600Z".len());
    let ran =
        run(&["run", "http://127.0.0.1:1/", "--aws-sigv4", "aws:amz", "-n", "1"]).expect(&[2]);
    assert!(ran.stderr.contains("--user"), "{}", ran.stderr);
    let ran = run(&["run", "http://h/", "--aws-sigv4", "a/b", "--user", "k:s"]).expect(&[2]);
    assert!(ran.stderr.contains("aws:amz:eu-central-1:s3"), "{}", ran.stderr);
}

/// Logins work for every source of requests, and over every protocol.
#[test]
fn digest_goes_over_every_version() {
    let (site, quic) = (Site::start(&[]), QuicSite::start());
    let url = site.url("/digest?a=b");
    for version in ["1.0", "1.1", "2"] {
        let line = ["-c", "2", "-n", "20", "--http", version, "--digest", "fred:flintstone", &url];
        let json = measured(&line, &[0, 4]);
        assert_eq!(outcomes(&json), [20, 20, 0, 0, 0, 0], "{version}");
        assert_eq!((whole(&json, "/status/200"), whole(&json, "/status/401")), (20, 2));
        assert_eq!(whole(&json, "/first_call/status"), 200, "{version}");
    }
    let url = quic.url("/digest?a=b");
    let json = quic.measured(&["-c", "2", "-n", "20", "--digest", "fred:flintstone", &url]);
    assert_eq!((whole(&json, "/status/200"), whole(&json, "/status/401")), (20, 2));
    assert_eq!(whole(&json, "/first_call/status"), 200);
    // a wrong password fails over each of them
    let line = ["-c", "1", "-n", "3", "--http", "2", "--digest", "fred:x", &site.url("/digest")];
    assert_eq!(outcomes(&measured(&line, &[1]))[2], 3);
}

#[test]
fn a_command_of_curl_brings_its_login() {
    let site = Site::start(&[]);
    let command = format!("curl --digest -u fred:flintstone {}", site.url("/digest"));
    let json = measured(&["--curl", &command, "-c", "1", "-n", "5"], &[0, 4]);
    assert_eq!((whole(&json, "/status/200"), whole(&json, "/status/401")), (5, 1));
    let server = Recorder::plain();
    let command = format!("curl --aws-sigv4 aws:amz:eu:s3 -u KEY:secret {}", server.url("/"));
    run(&["run", "--curl", &command, "-c", "1", "-n", "2", "-q"]).expect(&[0, 4]);
    let value = server.all()[1].field("authorization").unwrap().to_owned();
    assert!(value.starts_with("AWS4-HMAC-SHA256 Credential=KEY/"), "{value}");
    // an imported plan has the login, and conflicting commands are reported
    let folder = tempfile::tempdir().unwrap();
    let (file, plan) = (folder.path().join("c.sh"), folder.path().join("p.toml"));
    let digest = "curl --digest -u fred:flintstone http://127.0.0.1:1/a\n";
    std::fs::write(&file, digest).unwrap();
    let (file, plan) = (file.to_str().unwrap(), plan.to_str().unwrap());
    run(&["workload", "import", file, "--from", "curl", "-o", plan]).expect(&[0]);
    let text = std::fs::read_to_string(plan).unwrap();
    assert!(text.contains("digest = \"fred:flintstone\""), "{text}");
    std::fs::write(file, format!("{digest}curl http://127.0.0.1:1/b\n")).unwrap();
    let ran = run(&["workload", "import", file, "--from", "curl", "-o", plan]).expect(&[2]);
    let message = "command 2: its login differs from that of command 1";
    assert!(ran.stderr.contains(message), "{}", ran.stderr);
}

#[test]
fn setups_and_journeys_log_in_too() {
    let site = Site::start(&[]);
    let text = format!(
        "version = 1\nurl = '{}'\n[request]\ndigest = 'fred:flintstone'\n[load]\nusers = 2\n\
         [stop]\nrequests = 6\n[[setup]]\nname = 'in'\nurl = '/digest'\nexpect = {{ status = 200 }}\n\
         [[journey]]\nname = 'j'\n[[journey.step]]\nname = 's'\nurl = '/digest?x'\n\
         [[teardown]]\nname = 'out'\nurl = '/digest'\nexpect = {{ status = 200 }}\n",
        site.url("/")
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("plan.toml");
    std::fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    for version in ["1.1", "2"] {
        let json = measured(&[file, "--http", version], &[0, 4]);
        assert_eq!((whole(&json, "/status/200"), whole(&json, "/status/401")), (6, 2), "{version}");
    }
}
