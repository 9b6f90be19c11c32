//! A proxy in front of a server: nginx, which frames every message anew, and servers that read one
//! otherwise.

use super::support::nginx::Nginx;
use super::support::{Site, free_port, run, text};
use serde_json::Value;

fn row<'a>(document: &'a Value, name: &str) -> &'a Value {
    let rows = document["requests"].as_array().unwrap();
    rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("no {name}"))
}

#[test]
fn what_arrives_behind_nginx_is_told_with_what_it_changed() {
    let origin = free_port();
    let nginx = Nginx::in_front_of(origin);
    let address = format!("127.0.0.1:{origin}");
    let ran = run(&["torture", "chain", &nginx.url(), "--origin", &address, "--json", "-"]);
    let document = ran.expect(&[0]).json();
    assert_eq!(text(&document, "/schema"), "loadstone.torture-chain/1");
    let plain = row(&document, "a chunked one");
    assert_eq!(plain["handling"], "made-clear", "{plain}");
    let changes = plain["changes"].as_array().unwrap();
    let framed = "framed by Content-Length 5 in place of chunked";
    assert!(changes.iter().any(|change| change == framed), "{plain}");
    let both = row(&document, "both lengths, the length is longer");
    assert_eq!((&both["handling"], &both["back"]), (&"refused".into(), &Value::Null), "{both}");
}

#[test]
fn a_server_that_reads_a_body_as_a_request_is_found() {
    let (origin, range) = (free_port(), Site::start(&[("range", "leaves-bodies")]));
    let nginx = Nginx::in_front_of(origin);
    let (address, back) = (format!("127.0.0.1:{origin}"), range.url("/page"));
    let arguments = ["torture", "chain", &nginx.url(), "--origin", &address, "--back", &back];
    let ran = run(&[&arguments[..], &["--json", "-"]].concat());
    let document = ran.expect(&[1]).json();
    let found = row(&document, "a length with GET");
    assert_eq!((&found["pair"], &found["meeting"]), (&"0.CL".into(), &"finds-more".into()));
    assert_eq!((&found["disagrees"], &found["reused"]), (&true.into(), &true.into()), "{found}");
    assert_eq!(row(&document, "a plain one")["meeting"], "agrees");
}

#[test]
fn a_chain_is_for_ones_own_addresses_and_says_what_is_missing() {
    for (arguments, why) in [
        (&["http://127.0.0.1:8089/"][..], "name what stands behind the proxy"),
        (&["http://127.0.0.1:8089/", "--back", "http://192.168.0.9/"], "--own 192.168.0.9"),
        (&["http://203.0.113.9/", "--origin", "127.0.0.1:8090"], "where every address is your own"),
        (
            &["http://127.0.0.1:8089/", "--origin", "0.0.0.0:8090"],
            "where every address is your own",
        ),
        (&["http://127.0.0.1:8089/", "--origin", "127.0.0.1"], "invalid"),
    ] {
        let ran = run(&[&["torture", "chain"][..], arguments].concat()).expect(&[2]);
        assert!(ran.stderr.contains(why), "{why}: {ran:?}");
    }
}
