//! vegeta, siege and command lines.

use super::*;

#[test]
fn targets_of_vegeta_become_targets() {
    let text = "GET http://h:1/a\nX-A: b\n\n# comment\nPOST http://h:1/b\n@body.json\n\nnonsense\n";
    let imported = plan_of(Format::Vegeta, text);
    insta::assert_snapshot!(below_head(&imported));
    let json = "{\"method\":\"POST\",\"url\":\"http://h/\",\"body\":\"aGk=\",\"header\":{\"X-A\":[\"b\"]}}\n";
    let imported = with(Format::Vegeta, json, &How { base: Some("http://n:2/"), ..How::default() });
    assert!(
        imported.toml.contains("url = \"http://n:2/\"") && imported.toml.contains("body = \"hi\""),
        "{}",
        imported.toml
    );
}

#[test]
fn urls_of_siege_become_targets() {
    let text = "# shop\nHOST=h:1\nhttp://$(HOST)/a\nhttp://h:1/b POST a=1&b=2\nhttp://h:1/c POST <body.json\n";
    let imported = plan_of(Format::Siege, text);
    assert_eq!(imported.toml.matches("[[targets]]").count(), 3, "{}", imported.toml);
    assert!(
        imported.toml.contains("url = \"http://h:1/a\"")
            && imported.toml.contains("body = \"a=1&b=2\"")
    );
}

#[test]
fn a_plan_for_another_folder_names_files_absolutely() {
    let line = "ab -p body.json -T application/json -n 1 http://h/";
    let how = How { absolute_paths: true, ..How::default() };
    let imported = try_import(Format::CommandLine, line, &how).unwrap();
    let path = std::path::absolute("body.json").unwrap();
    let wanted = format!("body_file = \"{}\"", path.display());
    assert!(imported.toml.contains(&wanted), "{}", imported.toml);
}

#[test]
fn command_lines_become_plans() {
    for (line, wanted) in [
        ("ab -n 100 -c 10 http://h/", &["users = 10", "requests = 100", "calls = 1"][..]),
        (
            "$ ab -kc10 -t 5 -H 'X-A: b' -A u:p http://h/x",
            &["duration = \"5s\"", "headers = [\"X-A: b\"]", "user = \"u:p\""],
        ),
        (
            "ab -p body.json -T application/json -n 1 http://h/",
            &["body_file = \"body.json\"", "Content-Type: application/json"],
        ),
        (
            "siege -c 5 -r 4 -d 2 \"http://h/ POST a=1\"",
            &["requests = 20", "think = \"0s..2s\"", "body = \"a=1\""],
        ),
        ("siege -t 1M -f urls.txt", &["duration = \"60s\"", "http://h:1/b"]),
        (
            "hey -z 5s -c 2 -q 10 -m PUT -d x http://h/",
            &["rate = \"20/s\"", "method = \"PUT\"", "body = \"x\""],
        ),
        ("hey http://h/", &["users = 50", "requests = 200"]),
        (
            "echo 'GET http://h/' | vegeta attack -rate=100/1m -duration=30s | vegeta report",
            &["rate = \"1.666667/s\"", "duration = \"30s\""],
        ),
        ("vegeta attack -targets targets.txt", &["rate = \"50/s\"", "http://h:1/b"]),
        (
            "oha -n 10 -q 5 --insecure --http2 https://h/",
            &["rate = \"5/s\"", "insecure = true", "http = \"2\""],
        ),
        ("wrk -t2 -c 100 -d30s --latency http://h/", &["users = 100", "duration = \"30s\""]),
        ("wrk2 -R 2000 http://h/", &["rate = \"2000/s\""]),
        ("bombardier -c 5 -d 2s -k https://h/", &["users = 5", "insecure = true"]),
    ] {
        let imported = plan_of(Format::CommandLine, line);
        for text in wanted {
            assert!(imported.toml.contains(text), "{line}: {text}\n{}", imported.toml);
        }
        assert!(imported.left_out.is_empty(), "{line}: {:?}", left_out(&imported));
    }
    let imported = plan_of(Format::CommandLine, "wrk -s x.lua --odd http://h/\nab http://h/");
    assert_eq!(imported.left_out.len(), 3, "{:?}", left_out(&imported));
    assert!(
        try_import(Format::CommandLine, "ab -n 5", &How::default()).unwrap_err().contains("no URL")
    );
    assert!(
        try_import(Format::CommandLine, "ab 'http://h", &How::default())
            .unwrap_err()
            .contains("not closed")
    );
}
