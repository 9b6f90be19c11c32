use super::*;
use proptest::prelude::*;

fn files(path: &str) -> Result<Vec<u8>, String> {
    match path {
        "f.txt" => Ok(b"a\nb\n".to_vec()),
        _ => Err("no such file".to_owned()),
    }
}

fn told(text: &str) -> String {
    match parse_curl(text, &files) {
        Err(error) => format!("error: {error}"),
        Ok(curl) => {
            let told = curl.requests.iter().map(|one| {
                let fields = one.headers.iter().map(|(name, value)| format!("{name}: {value}"));
                let fields: Vec<String> = fields.collect();
                let body = one.body.as_deref().map(String::from_utf8_lossy);
                let body = body.map_or_else(String::new, |body| format!(" {body:?}"));
                format!("{} {} [{}]{body}", one.method, one.url, fields.join("; "))
            });
            told.collect::<Vec<_>>().join("\n")
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
            "GET http://h/?q=1&a=1&b=c%20d%26 []".to_owned()
        }),
        ("curl -I h", "HEAD http://h/ []".to_owned()),
        (
            "curl --json '{\"a\":1}' --url http://h/j",
            "POST http://h/j [Content-Type: application/json; Accept: application/json] \
             \"{\\\"a\\\":1}\""
                .to_owned(),
        ),
        ("curl -u me:x -b a=b -A ua h", {
            "GET http://h/ [Cookie: a=b; User-Agent: ua; Authorization: Basic bWU6eA==]".to_owned()
        }),
        ("curl http://h/1 http://h/2", "GET http://h/1 []\nGET http://h/2 []".to_owned()),
    ] {
        assert_eq!(told(text), request, "{text}");
    }
}

#[test]
fn a_form_has_parts_and_files() {
    let curl = parse_curl("curl h -F 'a=b;type=text/x' -F f=@f.txt -F 'g=<f.txt'", &files).unwrap();
    let request = &curl.requests[0];
    assert_eq!(request.headers[0].1, format!("multipart/form-data; boundary={BOUNDARY}"));
    let body = String::from_utf8(request.body.clone().unwrap()).unwrap();
    let body = body.replace(BOUNDARY, "B").replace("\r\n", "|");
    assert_eq!(
        body,
        "--B|Content-Disposition: form-data; name=\"a\"|Content-Type: text/x||b|\
         --B|Content-Disposition: form-data; name=\"f\"; filename=\"f.txt\"|\
         Content-Type: application/octet-stream||a\nb\n|\
         --B|Content-Disposition: form-data; name=\"g\"||a\nb\n|--B--|"
    );
}

#[test]
fn how_it_is_asked_is_kept() {
    let curl = parse_curl("curl -kL --compressed --http2 --max-redirs 3 h", &files).unwrap();
    let how = (curl.insecure, curl.follow, curl.compressed, curl.version);
    assert_eq!(how, (true, Some(3), true, Some(CurlVersion::Http2)));
    let curl = parse_curl("curl -L -0 h", &files).unwrap();
    assert_eq!((curl.follow, curl.version), (Some(50), Some(CurlVersion::Http10)));
}

#[test]
fn what_cannot_be_taken_over_says_what_to_do() {
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
    ] {
        let told = told(text);
        assert!(told.starts_with("error: ") && told.contains(why), "{text}: {told}");
    }
}

#[test]
fn a_text_is_cut_into_its_commands() {
    let text = "#!/bin/sh\n# two\ncurl a \\\n  -k\n\n  curl b\n";
    assert_eq!(split_commands(text), ["curl a \\\n  -k\n", "  curl b"]);
    assert!(split_commands("wget a").is_empty());
}

proptest! {
    #[test]
    fn no_command_is_too_odd(text in "(curl|-[a-zA-Z]|--data|=|@|'|\"|\\$|h| |\\PC){0,24}") {
        parse_curl(&text, &files).ok();
    }
}

#[test]
fn logins_that_are_proved_are_no_fields() {
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
