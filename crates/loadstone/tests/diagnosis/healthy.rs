//! Servers without a bottleneck: the built-in site, and others written in C and in Go.

use crate::support::Site;
use crate::support::apache::Apache;
use crate::support::caddy::Caddy;
use crate::support::nginx::Nginx;
use crate::support::process::measure;
use crate::{findings_of, succeeds_in_some_attempt};

/// One call at a time, many concurrent calls, and an open load that any server sustains.
const LOADS: [&[&str]; 3] = [&["-c", "1"], &["-c", "8"], &["--rate", "200/s"]];

/// Checks that a client or server with saturated processors is reported, with no other finding.
#[track_caller]
fn not_accused(url: &str) {
    for load in LOADS {
        succeeds_in_some_attempt(|| {
            let report = measure(&[&[url, "-d", "2s"][..], load].concat());
            assert!(report["outcomes"]["succeeded"].as_u64().unwrap() > 0, "{load:?}: {report:#}");
            let mut others = findings_of(&report);
            others.retain(|(id, _)| !["client-limited", "cpu-contention"].contains(&id.as_str()));
            if others.is_empty() { Ok(()) } else { Err(format!("{load:?}: {others:#?}")) }
        });
    }
}

#[test]
fn our_own_site_has_no_finding() {
    not_accused(&Site::start(&[("threads", "1")]).url("/hw"));
}

#[test]
fn nginx_has_no_finding() {
    not_accused(&Nginx::start(&"a line of a page\n".repeat(200)).url());
}

/// Caddy represents Go's net/http without a Go compiler of half a gigabyte.
#[test]
fn caddy_has_no_finding() {
    not_accused(&Caddy::start(&"a line of a page\n".repeat(200)).url());
}

#[test]
fn apache_has_no_finding() {
    // a process for each user is there before the first call; connections do not end by number
    let apache = Apache::start(&["dir", "mime"], |folder| {
        std::fs::write(folder.join("types"), "text/html html\n").unwrap();
        std::fs::create_dir(folder.join("www")).unwrap();
        std::fs::write(folder.join("www/page.html"), "a line of a page\n".repeat(200)).unwrap();
        format!(
            "TypesConfig {root}/types\nDocumentRoot {root}/www\nKeepAlive On\n\
             MaxKeepAliveRequests 0\nStartServers 64\nMinSpareServers 32\nMaxSpareServers 100\n\
             MaxRequestWorkers 100\n<Directory {root}/www>\nRequire all granted\n</Directory>\n",
            root = folder.display()
        )
    });
    not_accused(&apache.url("/page.html"));
}
