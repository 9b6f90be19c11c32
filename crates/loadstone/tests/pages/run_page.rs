//! The page of `loadstone run --html`.

use crate::support::browser::Browser;
use crate::support::{Site, run};

/// A page of a short run against the reference server.
fn page(folder: &tempfile::TempDir, args: &[&str]) -> std::path::PathBuf {
    let site = Site::start(&[]);
    let (file, url) = (folder.path().join("page.html"), site.url("/hw"));
    let mut all = vec!["run", &url, "--html", file.to_str().unwrap(), "-q"];
    all.extend(args);
    run(&all).expect(&[0, 4]);
    file
}

#[test]
fn it_opens_without_a_breach_of_its_own_policy() {
    let folder = tempfile::tempdir().unwrap();
    let file = page(&folder, &["-c", "2", "-d", "2s"]);
    let mut browser = Browser::open();
    browser.go_to_file(&file);
    browser.drawn();
    assert!(browser.text("h1").starts_with("http://127.0.0.1:"));
    assert!(browser.problems().is_empty(), "{:?}", browser.problems());
    assert!(browser.screenshot().starts_with(b"\x89PNG"));
    assert!(browser.printed().starts_with(b"%PDF"));
}
