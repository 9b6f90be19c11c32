//! HTTP/3 from the command line: measurements, messages, refusals, and no fallback.

use crate::support::quic::QuicSite;
use crate::support::tls::{TlsOptions, TlsServer};
use crate::support::{measured, number, outcomes, run, text, whole};

#[test]
fn options_that_do_not_go_together_are_refused() {
    let url = "https://127.0.0.1:1/";
    for (args, found) in [
        (&["--pipeline", "3", url][..], "with --http 2 or 3 write --streams"),
        (&["--group", "3", url], "--http 3 cannot be used with --group"),
        (&["--alpn", "h3", url], "--http 3 cannot be used with --alpn"),
        (&["--proxy", "http://127.0.0.1:2", url], "--http 3 cannot be used with --proxy"),
        (&["--tls", "1.2", url], "QUIC uses TLS 1.3 only"),
        (&["--unix", "/tmp/s", url], "QUIC is over UDP"),
        (&["--header-table", "1K", url], "--header-table is an HTTP/2 option"),
        (&["--frame-max", "32K", url], "--frame-max is an HTTP/2 option"),
        (&["--encoder-table", "8K", url], "--encoder-table is an HTTP/2 option"),
        (&["http://127.0.0.1:1/"], "HTTP/3 always uses TLS; write https://"),
    ] {
        let ran = run(&[&["run", "--http", "3"][..], args].concat()).expect(&[2]);
        assert!(ran.stderr.contains(found), "{args:?}: {}", ran.stderr);
    }
}

/// A server on TCP but not on UDP is reported with the fix; the program does not switch silently.
#[test]
fn without_udp_nothing_is_measured() {
    let server = TlsServer::start(&TlsOptions::default());
    let url = server.url("/");
    let ran = run(&["run", "-n", "5", "--http", "3", "--ca", &server.files.ca, &url]).expect(&[3]);
    assert!(ran.stderr.contains("(UDP): connection refused"), "{}", ran.stderr);
    assert!(ran.stdout.contains("--http 2 uses"), "{}", ran.stdout);
}

/// A firewall that drops UDP sends no reply: the connect timeout expires.
#[test]
fn silence_is_a_time_out() {
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/", silent.local_addr().unwrap());
    let args = ["run", "-n", "5", "--http", "3", "--insecure", "--connect-timeout", "300ms", &url];
    let ran = run(&args).expect(&[3]);
    let text = "no connection within the connect timeout";
    assert!(ran.stdout.contains(text), "{}", ran.stdout);
    assert!(ran.stdout.contains("--http 2 uses"), "{}", ran.stdout);
}

#[test]
fn a_plan_file_has_the_same_settings() {
    let args = ["run", "--print-plan", "--http", "3", "--streams", "7", "https://127.0.0.1:1/"];
    let plan = run(&args).expect(&[0]).stdout;
    assert!(plan.contains("http = 3") || plan.contains("http = \"3\""), "{plan}");
    assert!(plan.contains("streams = 7"), "{plan}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("plan.toml").display().to_string();
    std::fs::write(&file, &plan).unwrap();
    assert_eq!(run(&["run", "--print-plan", &file]).expect(&[0]).stdout, plan);
}

#[test]
fn streams_share_connections_and_are_counted() {
    let site = QuicSite::start();
    let url = site.url("/bytes/3000");
    let json = site.measured(&["-c", "3", "-n", "300", "--streams", "5", &url]);
    assert_eq!(outcomes(&json), [300, 300, 0, 0, 0, 0]);
    assert_eq!(whole(&json, "/connections/established"), 3);
    assert_eq!((whole(&json, "/http3/streams"), whole(&json, "/http3/streams_peak")), (300, 5));
    assert_eq!(whole(&json, "/http3/streams_max"), 200);
    assert_eq!(whole(&json, "/http3/quic/handshakes"), 3);
    assert_eq!(whole(&json, "/bytes/body"), 300 * 3_000);
    assert_eq!(text(&json, "/first_call/http_version"), "3");
    let json = site.measured(&["--rate", "500/s", "-n", "200", &url]);
    assert_eq!(outcomes(&json)[..2], [200, 200]);
    assert_eq!(whole(&json, "/connections/established"), whole(&json, "/client/threads"));
}

#[test]
fn bodies_redirects_cookies_and_sessions_go_over_streams() {
    let site = QuicSite::start();
    let (body, url) = ("b".repeat(100_000), site.url("/echo"));
    let json = site.measured(&["-c", "2", "-n", "20", "--streams", "4", "--body", &body, &url]);
    assert_eq!(outcomes(&json)[..2], [20, 20]);
    assert_eq!(whole(&json, "/bytes/body"), 20 * 100_000);
    assert!(whole(&json, "/bytes/sent") > 20 * 100_000);
    let url = site.url("/status/302?to=/bytes/10");
    let json = site.measured(&["-c", "1", "-n", "5", "--follow", "--cookies", &url]);
    assert_eq!((outcomes(&json)[1], whole(&json, "/redirects")), (5, 5));
    let url = site.url("/bytes/10");
    let json = site.measured(&["--session", "3", "--rate", "50/s", "-n", "10", &url]);
    assert_eq!(outcomes(&json)[..2], [30, 30]);
}

#[test]
fn users_resume_their_own_sessions_over_quic() {
    let site = QuicSite::start();
    let url = site.url("/bytes/100");
    for (option, resumed) in [(&[][..], 7), (&["--user-sessions"], 6), (&["--no-resumption"], 0)] {
        let line = ["-c", "2", "--threads", "1", "-n", "8", "--calls", "1"];
        let json = site.measured(&[&line[..], option, &[&url]].concat());
        assert_eq!(whole(&json, "/http3/quic/handshakes"), 8);
        // without the option the second user's first connection may open before a ticket arrives
        let found = whole(&json, "/http3/quic/resumed");
        assert!(found == resumed || (option.is_empty() && found == 6), "{option:?}: {found}");
    }
}

#[test]
fn the_text_shows_the_protocol() {
    let site = QuicSite::start();
    let url = site.url("/bytes/100");
    let args =
        ["run", "-n", "50", "--http", "3", "--streams", "2", "--full", "--ca", &site.ca, &url];
    let output = run(&args).expect(&[0, 4]).stdout;
    assert!(output.contains("GET, HTTP/3, 2 streams"), "{output}");
    assert!(output.contains("50 streams, at most 2 at once on a connection"), "{output}");
    assert!(output.contains("QUIC          10 handshakes, "), "{output}");
}

/// The first call of every connection but a worker's first uses early data. The server's decision
/// is counted separately, and no call is lost.
#[test]
fn early_data_is_counted_separately() {
    for (door, counts) in
        [("accept", [13, 13, 0, 0]), ("refuse", [13, 0, 13, 0]), ("too-early", [0, 0, 0, 0])]
    {
        let site = QuicSite::with(&[("early-data", door)]);
        let url = site.url("/bytes/100");
        let limits = ["-c", "1", "-n", "42", "--calls", "3", "--threads", "1", "--early-data"];
        let json = site.measured(&[&limits[..], &[&url]].concat());
        assert_eq!(outcomes(&json)[..2], [42, 42], "{door}");
        let text = ["sent", "accepted", "rejected", "too_early"]
            .map(|name| whole(&json, &format!("/tls/early_data/{name}")));
        if door != "too-early" {
            assert_eq!(text, counts, "{door}");
            continue;
        }
        // accepted by TLS, and answered with 425 until the handshake is complete
        let [sent, accepted, rejected, too_early] = text;
        assert_eq!((sent, rejected), (accepted, 0));
        assert!(too_early > 0 && too_early <= sent, "{text:?}");
        assert_eq!(whole(&json, "/status/425"), too_early);
    }
    let site = QuicSite::start();
    let url = site.url("/bytes/100");
    let json = site.measured(&["-c", "1", "-n", "10", "--calls", "1", &url]);
    assert!(json["tls"]["early_data"].is_null());
}

#[test]
fn early_data_is_for_requests_that_do_no_harm() {
    for (args, found) in [
        (&["--method", "POST"][..], "cannot be used with the method \"POST\""),
        (&["--no-resumption"], "--early-data cannot be used with --no-resumption"),
        (&["--http", "1.1", "--tls", "1.2"], "early data needs TLS 1.3"),
    ] {
        let all = [&["run", "--early-data", "https://127.0.0.1:1/"][..], args].concat();
        let ran = run(&all).expect(&[2]);
        assert!(ran.stderr.contains(found), "{args:?}: {}", ran.stderr);
    }
    let ran = run(&["run", "--early-data", "http://127.0.0.1:1/"]).expect(&[2]);
    assert!(ran.stderr.contains("write https://, or drop it"), "{}", ran.stderr);
}

#[test]
fn connections_continue_from_another_port() {
    let site = QuicSite::start();
    let url = site.url("/bytes/100");
    let json =
        site.measured(&["-c", "2", "-n", "400", "--streams", "2", "--migrate", "20calls", &url]);
    assert_eq!(outcomes(&json)[..2], [400, 400]);
    assert_eq!(whole(&json, "/connections/established"), 2);
    let made = whole(&json, "/http3/migration/made");
    assert!((15..=20).contains(&made), "{made}");
    let validated = whole(&json, "/http3/migration/validated");
    // the last change may happen with the last calls
    assert!(made - validated <= 2, "{made} {validated}");
    assert_eq!(whole(&json, "/http3/migration/calls_lost"), 0);
    assert!(json["http3"]["migration"]["time_s"]["mean"].as_f64().unwrap() > 0.0);
    let args = ["run", "--print-plan", "--http", "3", "--migrate", "250ms", "--early-data", &url];
    let plan = run(&args).expect(&[0]).stdout;
    assert!(plan.contains("migrate = \"250ms\"") && plan.contains("early_data = true"), "{plan}");
    let ran = run(&["run", "--migrate", "5s", &url]).expect(&[2]);
    assert!(ran.stderr.contains("add --http 3, or drop it"), "{}", ran.stderr);
}

/// The progress timeout is counted from the last bytes, in the plain first call too.
#[test]
fn a_first_call_that_goes_on_is_waited_for() {
    let site = QuicSite::start();
    let limits = ["-c", "1", "-n", "1", "--timeout", "20s"];
    let url = site.url("/events?n=5&every=250ms&first=250ms");
    let json = site.measured(&[&limits[..], &["--progress-timeout", "900ms", &url]].concat());
    assert_eq!(whole(&json, "/first_call/status"), 200);
    assert!(number(&json, "/first_call/took_s") >= 1.0, "{json:#}");
    let url = site.url("/sleep?5");
    let args =
        [&limits[..], &["--first-byte-timeout", "200ms", "--http", "3", "--ca", &site.ca, &url]];
    let json = measured(&args.concat(), &[1]);
    assert_eq!(text(&json, "/first_call/failure/class"), "first-byte-timo");
    let detail = text(&json, "/first_call/failure/detail");
    assert!(
        detail.starts_with("127.0.0.1:") && detail.contains(" (UDP): no first byte"),
        "{detail}"
    );
}

/// gRPC by reflection, with its status in trailers, and gRPC-Web.
#[test]
fn calls_of_grpc_use_streams_of_http3() {
    let site = QuicSite::start();
    let url = site.url("/loadstone.v1.Echo/Say").replacen("https:", "grpcs:", 1);
    let json = site.measured(&["-n", "20", "--message", r#"{"text": "hello"}"#, &url]);
    assert_eq!(outcomes(&json)[..2], [20, 20]);
    assert_eq!(
        (text(&json, "/grpc/statuses/0/name"), whole(&json, "/grpc/without_status")),
        ("OK", 0)
    );
    let refused = ["-n", "20", "--message", r#"{"status": 5}"#, "--grpc-status", "NOT_FOUND", &url];
    assert_eq!(outcomes(&site.measured(&refused))[..2], [20, 20]);
    let web = ["-n", "20", "--grpc-protocol", "grpc-web-text", &url];
    assert_eq!(outcomes(&site.measured(&web))[..2], [20, 20]);
    let stream = url.replace("Say", "Repeat");
    let endless = r#"{"count": 1000000, "gap_ms": 10}"#;
    let args = ["-n", "10", "--message", endless, "--response-messages", "3", &stream];
    let json = site.measured(&args);
    assert_eq!(outcomes(&json)[..2], [10, 10]);
    assert_eq!((whole(&json, "/streams/events"), whole(&json, "/http3/refused")), (30, 0));
    let paced = ["run", "--http", "3", "--message", "{}", "--message-rate", "1/s", &url];
    let errors = run(&paced).expect(&[2]).stderr;
    assert!(errors.contains("drop --http 3"), "{errors}");
}
