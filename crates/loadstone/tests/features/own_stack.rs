//! `--stack own`: real packets of our own TCP to servers of this host.

use crate::support::tls::{TlsOptions, TlsServer};
use crate::support::{Site, measured, number, run, text, whole};
use std::io::Write;

/// Whether this user may make a network device here; says plainly what is missing where not. Where
/// CI is set it must be.
fn to_be_had(site: &Site) -> bool {
    let tried = run(&["run", &site.url("/"), "--stack", "own", "-n", "1", "-c", "1", "-q"]);
    if tried.code != 3 && tried.code != 2 {
        return true;
    }
    let plea = format!("our own TCP is not tested: {}", tried.stderr.trim_end());
    assert!(std::env::var_os("CI").is_none(), "{plea}");
    // nobody reads it when standard error is closed
    writeln!(std::io::stderr(), "{plea}").ok();
    false
}

#[test]
fn every_call_is_answered_on_kept_and_on_new_connections() {
    let site = Site::start(&[]);
    if !to_be_had(&site) {
        return;
    }
    let url = site.url("/bytes/20000");
    for more in [&["-c", "8"][..], &["-c", "4", "--calls", "1"], &["-c", "4", "--http", "1.0"]] {
        let words = ["--stack", "own", "-n", "200", &url];
        let report = measured(&[&words[..], more].concat(), &[0, 4]);
        assert_eq!(whole(&report, "/outcomes/succeeded"), 200, "{more:?}");
        assert_eq!(whole(&report, "/outcomes/due"), 200, "{more:?}");
        assert_eq!(text(&report, "/client/io"), "own TCP over TUN");
    }
}

/// The server sends its second SYN-ACK after a second: a first one that went to the other worker
/// would show.
#[test]
fn no_worker_gets_the_packets_of_another() {
    let site = Site::start(&[]);
    if !to_be_had(&site) {
        return;
    }
    let words = ["--stack", "own", "-n", "64", "-c", "32", "--calls", "1", "--threads", "2"];
    let report = measured(&[&words[..], &[&site.url("/")]].concat(), &[0, 4]);
    assert_eq!(whole(&report, "/outcomes/succeeded"), 64);
    let connect = number(&report, "/phases_s/connect/max");
    assert!(connect < 0.9, "{connect} s to connect");
}

#[test]
fn tls_is_spoken_over_it() {
    let site = Site::start(&[]);
    if !to_be_had(&site) {
        return;
    }
    let server = TlsServer::start(&TlsOptions::default());
    let words = ["--stack", "own", "-n", "40", "-c", "4", "--calls", "5", "--insecure"];
    let report = measured(&[&words[..], &[&server.url("/")]].concat(), &[0, 4]);
    assert_eq!(whole(&report, "/outcomes/succeeded"), 40);
}
