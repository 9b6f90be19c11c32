use super::*;
use proptest::prelude::*;

fn files(path: &str) -> Result<Vec<u8>, String> {
    match path {
        "f.txt" => Ok(b"a\nb\n".to_vec()),
        _ => Err("no such file".to_owned()),
    }
}

fn summary(text: &str) -> String {
    match parse_curl(text, &files) {
        Err(error) => format!("error: {error}"),
        Ok(curl) => {
            let summary = curl.requests.iter().map(|one| {
                let fields = one.headers.iter().map(|(name, value)| format!("{name}: {value}"));
                let fields: Vec<String> = fields.collect();
                let body = one.body.as_deref().map(String::from_utf8_lossy);
                let body = body.map_or_else(String::new, |body| format!(" {body:?}"));
                format!("{} {} [{}]{body}", one.method, one.url, fields.join("; "))
            });
            summary.collect::<Vec<_>>().join("\n")
        }
    }
}

#[test]
fn a_command_is_the_request_that_curl_would_send() {
    const FORM: &str = "Content-Type: application/x-www-form-urlencoded";
    for (text, request) in [
        ("curl h", "GET http://h/ []".to_owned()),
        ("/usr/bin/curl -sSL https://h:8/a#b", "GET https://h:8/a []".to_owned()),
        ("curl -XPUT -H 'A: b' -H 'Empty;' -H 'Accept:' h", "PUT http://h/ [A: b; Empty: ]".into()),
        ("curl h -d a=1 --data-raw @x", format!("POST http://h/ [{FORM}] \"a=1&@x\"")),
        ("curl h -d @f.txt", format!("POST http://h/ [{FORM}] \"ab\"")),
        ("curl h --data-binary @f.txt", format!("POST http://h/ [{FORM}] \"a\\nb\\n\"")),
        ("curl -G h/?q=1 -d a=1 --data-urlencode 'b=c d&'", {
            "GET http://h/?q=1&a=1&b=c+d%26 []".to_owned()
        }),
        ("curl -I h", "HEAD http://h/ []".to_owned()),
        (
            "curl --json '{\"a\":1}' --url http://h/j",
            "POST http://h/j [Content-Type: application/json; Accept: application/json] \
             \"{\\\"a\\\":1}\""
                .to_owned(),
        ),
        ("curl -u me:x -b a=b -A ua h", {
            "GET http://h/ [User-Agent: ua; Cookie: a=b; Authorization: Basic bWU6eA==]".to_owned()
        }),
        ("curl -A '' -e a -e b h", "GET http://h/ [Referer: b]".to_owned()),
        ("curl -A '' -A ua -H 'User-Agent: own' h", "GET http://h/ [User-Agent: own]".to_owned()),
        ("curl -u me:x --oauth2-bearer t h", "GET http://h/ [Authorization: Bearer t]".to_owned()),
        ("curl -u me:x -H 'Authorization: o' h", "GET http://h/ [Authorization: o]".to_owned()),
        ("curl -G 'h/?' -d a", "GET http://h/?a []".to_owned()),
        ("curl http://h/1 http://h/2", "GET http://h/1 []\nGET http://h/2 []".to_owned()),
        ("curl -b a=1 -b 'b=2; c=3' h", "GET http://h/ [Cookie: a=1;b=2; c=3]".to_owned()),
        ("curl -b a=1 -H 'Cookie: b=2' h", "GET http://h/ [Cookie: b=2]".to_owned()),
        ("curl h -d a -H 'Content-Type:'", "POST http://h/ [] \"a\"".to_owned()),
        ("curl h --data-urlencode 'a=b c*~'", format!("POST http://h/ [{FORM}] \"a=b+c%2A~\"")),
        ("curl h -d $'a\\xff'", format!("POST http://h/ [{FORM}] \"a\u{fffd}\"")),
        ("curl.exe -g 'http://h/[1-2]'", "GET http://h/[1-2] []".to_owned()),
        ("$ time curl 'h/{a,b}' -d x", {
            format!("POST http://h/a [{FORM}] \"x\"\nPOST http://h/b [{FORM}] \"x\"")
        }),
        ("curl --path-as-is h/a/b -- -c", "GET http://h/a/b []\nGET http://-c/ []".to_owned()),
        ("\u{feff}curl h/a/../b", "GET http://h/b []".to_owned()),
    ] {
        assert_eq!(summary(text), request, "{text}");
    }
}

/// Returns the body of a form, with `|` for line ends and `B` for the boundary.
fn form_of(text: &str) -> String {
    let curl = parse_curl(text, &files).unwrap_or_else(|error| panic!("{text}: {error}"));
    let request = &curl.requests[0];
    assert_eq!(request.headers[0].1, format!("multipart/form-data; boundary={BOUNDARY}"));
    let body = String::from_utf8(request.body.clone().unwrap()).unwrap();
    body.replace(BOUNDARY, "B").replace("\r\n", "|")
}

#[test]
fn a_form_has_parts_and_files() {
    assert_eq!(
        form_of("curl h -F 'a=b;type=text/x' -F f=@f.txt -F 'g=<f.txt'"),
        "--B|Content-Disposition: form-data; name=\"a\"|Content-Type: text/x||b|\
         --B|Content-Disposition: form-data; name=\"f\"; filename=\"f.txt\"|\
         Content-Type: text/plain||a\nb\n|\
         --B|Content-Disposition: form-data; name=\"g\"||a\nb\n|--B--|"
    );
}

/// Postman also writes the content type of a form.
#[test]
fn a_form_has_its_boundary_in_a_given_content_type_too() {
    let sent = |kind: &str| {
        let text = format!("curl h -H 'content-type:{kind}' -F a=b");
        let request = parse_curl(&text, &files).unwrap().requests.remove(0);
        let body = String::from_utf8(request.body.unwrap()).unwrap();
        let disposition = body.lines().nth(1).unwrap().split(';').next().unwrap().to_owned();
        assert_eq!(request.headers.len(), 1);
        format!("{} {disposition}", request.headers[0].1.replace(BOUNDARY, "B"))
    };
    let of_form = "Content-Disposition: form-data";
    assert_eq!(sent("Multipart/form-data"), format!("Multipart/form-data; boundary=B {of_form}"));
    let attached = "Content-Disposition: attachment";
    assert_eq!(sent("text/plain"), format!("text/plain; boundary=B {attached}"));
    assert_eq!(sent(""), format!("; boundary=B {attached}"));
}

#[test]
fn a_file_of_text_is_read_by_lines() {
    let long = [b"x".repeat(254), b"\ry\nz".to_vec()].concat();
    for (content, kept) in [
        (&b"a\nb\r\n\0c\nd"[..], &b"abd"[..]),
        (b"a\rb\nc", b"ac"),
        (b"", b""),
        (&long, &[b"x".repeat(254), b"yz".to_vec()].concat()),
    ] {
        assert_eq!(stripped(content), kept);
    }
}

#[test]
fn the_words_of_a_form_are_read_as_curl_reads_them() {
    let part = |text: &str| {
        let form = form_of(&format!("curl h -F '{text}'"));
        let head = "--B|Content-Disposition: form-data; name=";
        form.strip_prefix(head).unwrap().strip_suffix("|--B--|").unwrap().to_owned()
    };
    for (text, written) in [
        ("f=\"v\"", "\"f\"||v"),
        ("f=\"a;b \\\" \\\\ \\x\"", "\"f\"||a;b \" \\ \\x"),
        ("f=\"v\" rest;type=a/b", "\"f\"|Content-Type: a/b||v"),
        ("f=\"v", "\"f\"||\"v"),
        ("f=  v  ;unknown;type=a/b;charset=x; y=z", "\"f\"|Content-Type: a/b;charset=x; y=z||v"),
        ("f=a,b", "\"f\"||a,b"),
        ("f=v;filename=x.png", "\"f\"; filename=\"x.png\"|Content-Type: image/png||v"),
        ("f=v;filename=x", "\"f\"; filename=\"x\"||v"),
        ("f=v;filename=\"a;\\\"b\"", "\"f\"; filename=\"a;%22b\"||v"),
        ("a\"b=v", "\"a%22b\"||v"),
        ("g=@\"f.txt\"", "\"g\"; filename=\"f.txt\"|Content-Type: text/plain||a\nb\n"),
        ("g=@f.txt;filename=n.bin", {
            "\"g\"; filename=\"n.bin\"|Content-Type: text/plain||a\nb\n"
        }),
        ("f=", "\"f\"||"),
    ] {
        assert_eq!(part(text), written, "{text}");
    }
}

#[test]
fn request_options_are_kept() {
    let curl = parse_curl("curl -kL --compressed --http2 --max-redirs 3 h", &files).unwrap();
    let how = (curl.insecure, curl.follow, curl.compressed, curl.version);
    assert_eq!(how, (true, Some(3), true, Some(CurlVersion::Http2)));
    let curl = parse_curl("curl -L -0 h", &files).unwrap();
    assert_eq!((curl.follow, curl.version), (Some(50), Some(CurlVersion::Http10)));
}

#[test]
fn unsupported_options_name_a_fix() {
    for (text, why) in [
        ("curl", "error: it names no URL"),
        ("curl -Z h", "curl's option \"-Z\" is not known here; leave it out"),
        ("curl --nothing h", "curl's option \"--nothing\" is not known here"),
        ("curl h -d", "curl's option -d lacks its value"),
        ("curl h -d @g", "cannot read \"g\": no such file"),
        ("curl h -d a -F b=c", "it has both -d and -F"),
        ("curl h -F a", "-F \"a\" is not NAME=CONTENT"),
        ("curl h -H nothing", "-H \"nothing\" is not a header"),
        ("curl h -H 'Host: other'", "give --resolve for its address"),
        ("curl h --digest", "option --digest lacks a login; add -u"),
        ("curl h --aws-sigv4 aws:amz:r:s", "option --aws-sigv4 lacks a login"),
        ("curl h -u a:b --digest --aws-sigv4 aws:amz:r:s", "are two logins; drop one"),
        ("curl h -x http://p", "give --proxy in place of curl's option -x"),
        ("curl h -b jar", "names a file of cookies"),
        ("curl h --max-redirs x", "--max-redirs \"x\" is not a number"),
        ("curl ftp://h/", "its scheme is ftp, not http or https"),
        ("curl 'http://h:99999/'", "is not a URL"),
        ("curl h | sh", "outside of quotes"),
        ("curl \"http://h/?$top=3\"", "'$' inside double quotes"),
        ("curl a; curl b", "more than one command"),
        ("curl $'h/a\\tb'", "it has control characters"),
        ("curl -G h -d $'a\\tb'", "give --data-urlencode"),
        ("curl -G h -d $'a\\xff'", "give --data-urlencode"),
        ("curl 'h/[1-'", "is a glob that cannot be read: a bracket is not closed"),
        ("curl --path-as-is h/a/../b", "--path-as-is: the path of \"h/a/../b\" has the segment"),
        ("curl h/a/%2E%2e/b", "has the segment \"%2E%2e\""),
        ("curl h -F 'a=@f.txt,f.txt'", "several files in one part is not known here"),
        ("curl h -F 'a=b;headers=x'", "headers= is not known here"),
        ("curl h -F 'a=b;type=x'", "TYPE/SUBTYPE is not known here"),
        ("curl h -F '=(;type=a/b'", "a form within a form"),
        ("curl h -H $'A: \\xff'", "has bytes that are not UTF-8"),
    ] {
        let summary = summary(text);
        assert!(summary.starts_with("error: ") && summary.contains(why), "{text}: {summary}");
    }
}

#[test]
fn a_text_is_cut_into_its_commands() {
    let urls = |text: &str| {
        let commands = read_commands(text, &files);
        commands.map(|commands| {
            let urls = commands.into_iter().flat_map(|command| command.requests);
            urls.map(|request| request.url.to_string()).collect::<Vec<_>>()
        })
    };
    let text = "#!/bin/sh\n# `two` |\ncurl a \\\n  -k\n\n  curl b\n";
    assert_eq!(urls(text).unwrap(), ["http://a/", "http://b/"]);
    let joined = "curl 'http://h/a' -H 'a: b' ;\ncurl 'http://h/b' \\\n -H 'a: b' ; time curl c &";
    assert_eq!(urls(joined).unwrap(), ["http://h/a", "http://h/b", "http://c/"]);
    let windows = "curl ^\"http://h/a?x=1^&y=2^\" ^\r\n  -H ^\"a: b^\" &\r\ncurl ^\"http://h/b^\"";
    assert_eq!(urls(windows).unwrap(), ["http://h/a?x=1&y=2", "http://h/b"]);
    assert_eq!(urls("wget a"), Ok(Vec::new()));
    for (text, why) in [
        ("curl a\ncurl -Z b", "command 2: curl's option \"-Z\" is not known"),
        ("curl a; sleep 1", "command 2: it is \"sleep\", and only curl is supported"),
        ("curl a\nsleep 1\ncurl b", "a line begins with \"sleep\""),
    ] {
        let error = urls(text).unwrap_err().0;
        assert!(error.contains(why), "{text}: {error}");
    }
}

proptest! {
    #[test]
    fn arbitrary_commands_are_handled(text in "(curl|-[a-zA-Z]|--data|=|@|'|\"|\\$|h| |\\PC){0,24}") {
        parse_curl(&text, &files).ok();
    }
}

#[test]
fn proved_logins_are_not_fields() {
    let login = |text: &str| {
        let curl = parse_curl(text, &files).unwrap();
        (curl.login, curl.requests[0].headers.len())
    };
    let digest = |user: &str| Some(CurlLogin::Digest { user: user.to_owned() });
    assert_eq!(login("curl h --digest -u me:x:y"), (digest("me:x:y"), 0));
    assert_eq!(login("curl -u me --digest h"), (digest("me:"), 0));
    assert_eq!(login("curl -u me:x --digest --basic h"), (None, 1));
    let signed = CurlLogin::AwsSigV4 { user: "K:s".to_owned(), scope: "aws:amz:r:s".to_owned() };
    assert_eq!(login("curl --aws-sigv4=aws:amz:r:s --user K:s h"), (Some(signed), 0));
}
