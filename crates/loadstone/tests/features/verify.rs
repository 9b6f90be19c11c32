//! `--verify`, over sockets: bodies compared with the first, with a file set, with a manifest.

use crate::support::{Scripted, Site, measured, run};
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};

/// Returns the results of a run about its bodies.
fn verified(args: &[&str], codes: &[i32]) -> serde_json::Value {
    measured(args, codes)["verified"].clone()
}

#[test]
fn a_file_set_is_known_by_its_seed() {
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("list");
    let site = Site::start(&[("files", "surge-like:files=40"), ("seed", "9")]);
    let urls = run(&[
        "workload",
        "sequence",
        "surge-like:files=40",
        &site.url("/"),
        "--seed",
        "9",
        "--requests",
        "60",
        "-o",
        list.to_str().unwrap(),
    ]);
    urls.expect(&[0]);
    let list = list.to_str().unwrap();
    let base = ["--urls", list, "-n", "200", "-c", "4"];
    let against = |how: &str, http: &str, codes: &[i32]| {
        verified(&[&base[..], &[how, "--http", http]].concat(), codes)
    };
    for http in ["1.1", "2"] {
        let right = against("--verify=set:surge-like:files=40@9", http, &[0, 4]);
        assert_eq!((&right["against"], &right["compared"]), (&"files".into(), &200.into()));
        assert_eq!(right["examples"], serde_json::json!([]), "{http}");
    }
    // files of another seed have the same lengths but other contents
    let wrong = against("--verify=set:surge-like:files=40@8", "1.1", &[1]);
    assert!(wrong["differing"].as_u64() > Some(0), "{wrong:#}");
    let first = against("--verify", "1.1", &[0, 4]);
    assert_eq!((&first["against"], &first["differing"]), (&"first".into(), &0.into()));
}

#[test]
fn a_body_of_another_page_is_recognized() {
    let folder = tempfile::tempdir().unwrap();
    let (list, manifest) = (folder.path().join("list"), folder.path().join("sums"));
    let count = AtomicU64::new(0);
    let server = Scripted::answering(move |head| {
        let one = head.starts_with(b"GET /one ");
        let mixed = count.fetch_add(1, Ordering::Relaxed) % 20 == 19;
        ("200 OK", if one ^ mixed { "page one" } else { "page two" })
    });
    let url = |path: &str| format!("http://{}/{path}", server.address);
    fs::write(&list, format!("{}\n{}\n", url("one"), url("two"))).unwrap();
    // as printed by `printf 'page one' | xxh128sum`
    let sums = "6f5f47381b030e9f3d3c8af1d17eccdf  ./one\n";
    fs::write(&manifest, sums).unwrap();
    let list = list.to_str().unwrap();
    let args = ["--urls", list, "-n", "400", "-c", "4", "--verify"];
    let found = verified(&args, &[1]);
    assert_eq!((&found["of_other_targets"], &found["differing"]), (&20.into(), &0.into()));
    let example = &found["examples"][0];
    let (asked, of) = (example["url"].as_str().unwrap(), example["of_url"].as_str().unwrap());
    assert!(asked != of && of.starts_with("http://127.0.0.1:"), "{example:#}");
    let ran = run(&[&["run"], &args[..]].concat()).expect(&[1]);
    let output = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        output.contains("400 bodies compared with the first of each URL: 20 wrong"),
        "{output}"
    );
    assert!(output.contains("was answered with the body of http://127.0.0.1:"), "{output}");
    // a page missing in the manifest is reported before the first request
    let how = format!("--verify={}", manifest.display());
    let ran = run(&["run", "--urls", list, "-n", "4", &how]).expect(&[2]);
    assert!(ran.stderr.contains("--verify: the manifest has no line for \"/two\""), "{ran:#?}");
    let ran = run(&["run", &url("one"), "-n", "40", "-c", "1", &how]).expect(&[1]);
    assert!(ran.stdout.contains("compared with the manifest: "), "{ran:#?}");
    let ran = run(&["run", &url("one"), "--verify=set:nothing"]).expect(&[2]);
    assert!(ran.stderr.contains("no such file set"), "{ran:#?}");
}
