//! The written tree, over HTTP.

use crate::support::{Site, last, status, tree};
use norm::Breaks;

/// Returns the body of a response that has the status.
#[track_caller]
fn body(site: &Site, path: &str, code: u16) -> String {
    let response = site.get(path);
    assert_eq!(status(&response), code, "{path} gave {response}");
    response.split_once("\r\n\r\n").map_or_else(String::new, |(_, body)| body.to_owned())
}

#[test]
fn every_link_of_the_menu_leads_somewhere() {
    let site = tree(|_, _| {});
    let menu = body(&site, "/", 200);
    assert!(menu.contains("<h1>Welcome to the Loadstone Test Site</h1>"));
    let links = menu.split("href=\"/").skip(1).filter_map(|rest| rest.split('"').next());
    let mut seen = 0;
    for link in links {
        let path = format!("/{}", link.replace("&amp;", "&").replace("sleep?5", "sleep?0"));
        let code = match path.as_str() {
            "/sub" | "/tmp" => 301,
            "/secure" => 401,
            _ => 200,
        };
        body(&site, &path, code);
        seen += 1;
    }
    assert!(seen > 10, "{menu}");
}

#[test]
fn the_listing_shows_the_sub_directory_and_its_icons_are_there() {
    let site = tree(|_, _| {});
    let page = body(&site, "/sub/", 200);
    for name in ["README", "page.html", "dawn.png", "empty/", "Up to higher level directory"] {
        assert!(page.contains(name), "{name} is missing: {page}");
    }
    for icon in page.split("src=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
        let response = site.get(icon);
        assert!(response.contains("content-type: image/svg+xml"), "{icon} gave {response}");
    }
    let images = body(&site, "/sub/page.html", 200);
    for image in images.split("src=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert_eq!(status(&site.get(&format!("/sub/{image}"))), 200, "{image}");
    }
    body(&site, "/sub/empty/", 200);
}

#[test]
fn odd_files_are_listed_and_never_block() {
    let site = tree(|_, _| {});
    let page = body(&site, "/tmp/", 200);
    for name in ["socket", "fifo", "vanished", "unreadable", "plain.txt"] {
        assert!(page.contains(name), "{name} is missing: {page}");
    }
    for name in ["socket", "fifo", "vanished"] {
        body(&site, &format!("/tmp/{name}"), 404);
    }
    assert_eq!(body(&site, "/tmp/plain.txt", 200), "An ordinary file.\n");
}

#[test]
fn fred_and_the_group_enter_and_wilma_does_not() {
    let site = tree(|_, _| {});
    // fred:rocks, fred:pebbles, wilma:pebbles, barney:bowling
    let table = [
        ("ZnJlZDpyb2Nrcw==", 200),
        ("ZnJlZDpwZWJibGVz", 401),
        ("d2lsbWE6cGViYmxlcw==", 401),
        ("YmFybmV5OmJvd2xpbmc=", 200),
    ];
    assert!(
        site.get("/secure/").to_lowercase().contains("www-authenticate: basic realm=\"admin\"")
    );
    for (user, code) in table {
        let request = last("/secure/")
            .replace("Host: h\r\n", &format!("Host: h\r\nAuthorization: Basic {user}\r\n"));
        assert_eq!(status(&site.send(request.as_bytes())), code, "{user}");
    }
    body(&site, "/secure/.site.toml", 404);
}

#[test]
fn programs_answer() {
    let site = tree(|_, _| {});
    let environment = body(&site, "/cgi/env?name=fred%20flintstone&page=3", 200);
    assert!(environment.contains("QUERY_STRING=name=fred%20flintstone&page=3"), "{environment}");
    assert!(environment.contains("SERVER_SOFTWARE=Loadstone/"), "{environment}");
    let form = "given=Fred&family=Flintstone&Submit=Send";
    let post = |path: &str, kind: &str, body: &str| {
        let len = body.len();
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Type: {kind}\r\n\
             Content-Length: {len}\r\n\r\n{body}"
        );
        site.send(request.as_bytes())
    };
    let urlencoded = "application/x-www-form-urlencoded";
    assert!(post("/cgi/test-post", urlencoded, form).contains(form));
    for path in ["/cgi/form-handler", "/lua/form"] {
        let greeting = post(path, urlencoded, form);
        assert!(greeting.contains("Fred") && greeting.contains("Flintstone"), "{greeting}");
    }
    let lines = "a line of text\n".repeat(7_000);
    let upload = format!(
        "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"t.txt\"\r\n\
         Content-Type: text/plain\r\n\r\n{lines}\r\n--b--\r\n"
    );
    let counted = post("/cgi/line-counter", "multipart/form-data; boundary=b", &upload);
    assert!(counted.contains("7000"), "{counted}");
    assert_eq!(site.spooled(), [""; 0]);
    assert_eq!(body(&site, "/process/", 200), body(&site, "/", 200));
}

#[test]
fn local_redirects_are_followed_within_a_limit() {
    let site = tree(|settings, folder| {
        for (name, target) in [
            ("there", "/cgi/env?from=there"),
            ("third", "/cgi/there"),
            ("second", "/cgi/third"),
            ("first", "/cgi/second"),
            ("fifth", "/cgi/first"),
            ("round", "/cgi/round"),
        ] {
            let text = format!("#!/bin/sh\nprintf 'Location: {target}\\n\\n'\n");
            let program = folder.join("cgi-bin").join(name);
            let draft = folder.join("draft");
            std::fs::write(&draft, text).expect("a new file");
            let mut copy = std::process::Command::new("install");
            copy.args(["-m", "755"]).arg(&draft).arg(&program);
            assert!(copy.status().expect("install can be started").success());
            let kind = norm::NodeKind::Cgi(program);
            settings.nodes.push(norm::NodeSettings { path: format!("/cgi/{name}"), kind });
        }
    });
    assert!(body(&site, "/cgi/there", 200).contains("QUERY_STRING=from=there"));
    // four scripts are the maximum in a row
    assert!(body(&site, "/cgi/first", 200).contains("QUERY_STRING=from=there"));
    body(&site, "/cgi/fifth", 500);
    body(&site, "/cgi/round", 500);
}

#[test]
fn a_chunked_response_ends_with_late_timings_as_trailers() {
    let site = tree(|settings, _| settings.timing = true);
    let request = last("/cgi/env").replace("Host: h\r\n", "Host: h\r\nTE: trailers\r\n");
    let response = site.send(request.as_bytes());
    let (head, rest) = response.split_once("\r\n\r\n").unwrap();
    let head = head.to_lowercase();
    assert!(head.contains("trailer: server-timing"), "{head}");
    assert!(head.contains("server-timing: abort-request;dur="), "{head}");
    let trailer = rest.rsplit("\r\n0\r\n").next().unwrap();
    for name in ["stream-entity;dur=", "response;dur=", "to-store;dur="] {
        assert!(trailer.contains(name), "{trailer}");
    }
    assert!(!site.get("/cgi/env").to_lowercase().contains("\r\ntrailer:"));
}

#[test]
fn the_welcome_page_is_broken_on_request() {
    let site = tree(|settings, _| settings.breaks = Breaks::parse("welcome").unwrap());
    let page = body(&site, "/", 200);
    assert!(!page.contains("Welcome") && page.ends_with("</html>\n"), "{page}");
    let site = tree(|settings, _| settings.breaks = Breaks::parse("menu").unwrap());
    let page = body(&site, "/", 200);
    assert!(page.contains("Welcome") && !page.contains("/hw"), "{page}");
}

#[test]
fn odd_files_are_removed_with_the_server() {
    let mut site = tree(|_, _| {});
    site.server.take();
    let left = std::fs::read_dir(site.folder.path().join("odd")).unwrap().count();
    assert_eq!(left, 0);
}

#[test]
fn head_and_ranges_go_with_files() {
    let site = tree(|_, _| {});
    let whole = site.get("/sub/README");
    let length = whole.lines().find(|line| line.starts_with("content-length: ")).unwrap();
    let head = site.send(last("/sub/README").replace("GET", "HEAD").as_bytes());
    assert!(head.contains(length) && head.ends_with("\r\n\r\n"), "{head}");
    let part = last("/sub/README").replace("Host: h\r\n", "Host: h\r\nRange: bytes=5-13\r\n");
    let part = site.send(part.as_bytes());
    assert!(status(&part) == 206 && part.ends_with("\r\n\r\ndirectory"), "{part}");
    let beyond = last("/sub/README").replace("Host: h\r\n", "Host: h\r\nRange: bytes=999-\r\n");
    assert_eq!(status(&site.send(beyond.as_bytes())), 416);
}

#[test]
fn scripts_are_guarded_by_their_folder() {
    let site = tree(|_, folder| {
        let guard = std::fs::read(folder.join("htdocs/secure/.site.toml")).expect("a file");
        for name in ["cgi-bin", "scripts"] {
            std::fs::write(folder.join(name).join(".site.toml"), &guard).expect("a new file");
        }
    });
    for path in ["/cgi/env", "/lua/form"] {
        assert_eq!(status(&site.get(path)), 401, "{path}");
        let known = last(path)
            .replace("Host: h\r\n", "Host: h\r\nAuthorization: Basic ZnJlZDpyb2Nrcw==\r\n");
        let response = site.send(known.as_bytes());
        assert_eq!(status(&response), 200, "{response}");
        assert!(path != "/cgi/env" || response.contains("REMOTE_USER=fred"), "{response}");
    }
}
