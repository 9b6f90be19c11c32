//! The report in all its forms.

use crate::calls;
use crate::support::{Site, measure, number, outcomes, run, text, whole};
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use serde_json::Value;
use std::path::PathBuf;

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn name(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }
}

#[test]
fn server_timings_have_their_own_figures() {
    let site = Site::start(&[]);
    let json = measure(&["-c", "2", "-n", "20", &site.url("/timed?2ms")]);
    for name in ["asked", "took"] {
        assert_eq!(whole(&json, &format!("/server_timing_s/{name}/count")), 20, "{name}");
        let least = number(&json, &format!("/server_timing_s/{name}/min"));
        assert!(least > 0.001_99, "{name}: {least}");
        // a part of the service time, from a clock that ran within it
        let most = number(&json, &format!("/server_timing_s/{name}/max"));
        assert!(most <= number(&json, "/service_time_s/max") * 1.01, "{name}: {most}");
    }
    assert_eq!(whole(&json, "/server_timing_malformed"), 0);
    let ran =
        run(&["run", "--full", "-c", "2", "-n", "20", &site.url("/timed?2ms")]).expect(&[0, 4]);
    assert!(ran.stdout.contains("Server-Timing "), "{}", ran.stdout);
    let plain = measure(&["-c", "2", "-n", "20", &site.url("/hw")]);
    assert_eq!(plain["server_timing_s"], serde_json::json!({}));
}

#[test]
fn the_text_begins_with_the_server_and_fits_80_columns() {
    let site = Site::start(&[]);
    let ran = run(&["run", "-c", "2", "-n", "200", "--percentiles", &site.url("/hw")]);
    assert!(ran.stdout.starts_with("Server        serving: 200 calls"), "{}", ran.stdout);
    let second = ran.stdout.lines().nth(1).and_then(|line| line.strip_prefix("Measurement   "));
    assert!(["VALID", "DEGRADED", "INVALID"].contains(&second.unwrap()), "{}", ran.stdout);
    for part in
        ["\nLoad          closed loop of 2 users, 200 calls", "\nFailed        0 of 200 calls\n"]
    {
        assert!(ran.stdout.contains(part), "{part}\n{}", ran.stdout);
    }
    for line in ran.stdout.lines() {
        assert!(line.chars().count() <= 80, "{line:?}");
    }
    assert!(!ran.stdout.contains('\u{1b}'), "colours without a terminal");
}

#[test]
fn quiet_is_shorter_and_has_the_verdict() {
    let site = Site::start(&[]);
    let whole = run(&["run", "--full", "-n", "50", &site.url("/hw")]).expect(&[0, 4]);
    let short = run(&["run", "-n", "50", "--quiet", &site.url("/hw")]).expect(&[0, 4]);
    assert!(whole.stdout.contains("\nPhases"), "{}", whole.stdout);
    assert!(!short.stdout.contains("\nPhases"), "{}", short.stdout);
    assert!(short.stdout.contains("\nThroughput"), "{}", short.stdout);
    assert!(short.stderr.is_empty(), "{}", short.stderr);
}

#[test]
fn percentiles_are_the_requested_ones() {
    let site = Site::start(&[]);
    let json = measure(&["-c", "1", "-n", "100", "--percentiles=25,50,97.5", &site.url("/hw")]);
    let rows = json["quantiles"].as_array().unwrap();
    let quantiles: Vec<f64> = rows.iter().map(|row| number(row, "/quantile")).collect();
    assert_eq!(quantiles, [0.25, 0.5, 0.975]);
    let ran = run(&["run", "-n", "100", "--percentiles=25,97.5", &site.url("/hw")]);
    assert!(ran.stdout.contains("p97.5") && ran.stdout.contains("p25"), "{}", ran.stdout);
    let ran = run(&["run", "-n", "100", &site.url("/hw")]);
    assert!(!ran.stdout.contains("p97.5"), "{}", ran.stdout);
}

#[test]
fn json_goes_to_a_file_or_alone_to_standard_output() {
    let (site, folder) = (Site::start(&[]), Folder::new());
    let name = folder.name("r.json");
    let ran = run(&["run", "-n", "20", "--json", &name, &site.url("/hw")]).expect(&[0, 4]);
    assert!(ran.stdout.contains("Throughput"));
    let json: Value = serde_json::from_str(&folder.read("r.json")).unwrap();
    assert_eq!(json["schema"], "loadstone.run/1");
    assert_eq!(outcomes(&json)[0], 20);
}

/// Additional length of a message on a connection's last call.
const CLOSED: &str = "Connection: close\r\n";

/// Everything of section 2 of the design page.
const PROMISED: &[&str] = &[
    "/schema",
    "/verdict/state",
    "/verdict/causes",
    "/duration_s",
    "/throughput_per_s",
    "/goodput_per_s",
    "/offered_per_s",
    "/intended_per_s",
    "/status",
    "/failures",
    "/per_url",
    "/bytes/sent",
    "/bytes/received",
    "/bytes/body",
    "/concurrency/mean",
    "/concurrency/peak",
    "/calls_per_connection",
    "/weighted_response_time_s",
    "/conforming_connections/count",
    "/conforming_connections/share",
    "/conforming_connections/threshold_bps",
    "/tls/version",
    "/tls/cipher",
    "/tls/group",
    "/tls/resumed",
    "/tcp/retransmits",
    "/client/io",
    "/client/threads",
    "/client/cpu_user_s",
    "/client/cpu_system_s",
    "/client/spin_s",
    "/findings",
];

const HISTOGRAMS: &[&str] = &[
    "/response_time_s",
    "/service_time_s",
    "/slip_s",
    "/wait_s",
    "/lag_s",
    "/by_outcome/succeeded",
    "/by_outcome/failed",
    "/by_outcome/timed_out",
    "/phases_s/dns",
    "/phases_s/connect",
    "/phases_s/tls",
    "/phases_s/first_byte",
    "/phases_s/transfer",
    "/tcp/rtt_s",
];

#[test]
fn the_json_has_every_name_and_agrees_with_the_site() {
    let site = Site::start(&[]);
    let before = site.served();
    let json = measure(&["-c", "4", "-n", "100", &site.url("/bytes/5000")]);
    let after = site.stop();
    for pointer in PROMISED {
        assert!(json.pointer(pointer).is_some(), "{pointer} is missing");
    }
    for pointer in HISTOGRAMS {
        for figure in ["count", "mean", "p50", "p90", "p99", "p99.9", "max"] {
            number(&json, &format!("{pointer}/{figure}"));
        }
    }
    let [due, succeeded, failed, timed_out, dropped, abandoned] = outcomes(&json);
    assert_eq!(due, succeeded + failed + timed_out + dropped + abandoned);
    assert_eq!(whole(&json, "/response_time_s/count"), succeeded + timed_out);
    assert_eq!(whole(&json, "/phases_s/first_byte/count"), 100);
    assert_eq!(json["status"], serde_json::json!({"200": 100}));
    assert_eq!(after.responses[&200], 101);
    assert_eq!(whole(&json, "/bytes/body"), 500_000);
    // 101 responses were sent, including one to the plain first call; the connection closed after
    // that one
    let sent = after.bytes_sent - before.bytes_sent - CLOSED.len() as u64;
    assert_eq!(whole(&json, "/bytes/received") * 101, sent * 100);
    // and the same for requests
    let received = after.bytes_received - before.bytes_received - CLOSED.len() as u64;
    assert_eq!(whole(&json, "/bytes/sent") * 101, received * 100);
    let throughput = number(&json, "/throughput_per_s");
    assert!((throughput * number(&json, "/duration_s") - 100.0).abs() < 1e-6);
    assert_eq!(number(&json, "/goodput_per_s"), throughput);
    assert!(json["intended_per_s"].is_null(), "a closed loop has no intended rate");
    // Little's law: concurrency is throughput times service time
    let product = throughput * number(&json, "/service_time_s/mean");
    let mean = number(&json, "/concurrency/mean");
    assert!((mean / product - 1.0).abs() < 0.02, "{mean} {product}");
    assert!(mean <= 4.0 && whole(&json, "/concurrency/peak") <= 4);
    let (response, service, slip) = (
        number(&json, "/response_time_s/mean"),
        number(&json, "/service_time_s/mean"),
        number(&json, "/slip_s/mean"),
    );
    assert!((response - service - slip).abs() < 1e-4, "{response} {service} {slip}");
    assert_eq!(number(&json, "/calls_per_connection"), 25.0);
    let quantiles = ["p50", "p90", "p99", "p99.9", "max"]
        .map(|name| number(&json, &format!("/response_time_s/{name}")));
    assert!(quantiles.is_sorted(), "{quantiles:?}");
}

#[test]
fn bodies_of_every_framing_are_counted_to_the_byte() {
    let site = Site::start(&[]);
    for (path, body) in [
        ("/chunked/1000?pieces=7&trailer=1", 1_000),
        ("/close/1000", 1_000),
        ("/bytes/0", 0),
        ("/status/204", 0),
        ("/status/304", 0),
        ("/bytes/100000", 100_000),
    ] {
        let before = site.served().bytes_sent;
        let one = measure(&["-c", "1", "-n", "1", &site.url(path)]);
        let between = site.served().bytes_sent;
        let json = measure(&["-c", "1", "-n", "4", &site.url(path)]);
        assert_eq!(outcomes(&json), [4, 4, 0, 0, 0, 0], "{path}");
        assert_eq!(whole(&json, "/bytes/body"), 4 * body, "{path}");
        // the two runs differ by three responses
        let three = (site.served().bytes_sent - between) - (between - before);
        let received = whole(&json, "/bytes/received") - whole(&one, "/bytes/received");
        assert_eq!(received, three, "{path}");
    }
    let json = measure(&["-c", "1", "-n", "4", "--method", "HEAD", &site.url("/bytes/1000")]);
    assert_eq!((outcomes(&json)[1], whole(&json, "/bytes/body")), (4, 0));
}

#[test]
fn the_series_adds_up_to_the_run() {
    let (site, folder) = (Site::start(&[("delay", "2ms")]), Folder::new());
    let name = folder.name("s.csv");
    let options = ["-c", "2", "-d", "2s", "--interval", "100ms", "--csv", &name];
    let url = site.url("/hw");
    let mut args = options.to_vec();
    args.push(&url);
    let json = measure(&args);
    let csv = folder.read("s.csv");
    let mut lines = csv.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    assert!(rows.len() >= 4, "{csv}");
    assert_eq!(rows.len(), json["series"].as_array().unwrap().len());
    let column = |wanted: &str| names.iter().position(|name| *name == wanted).unwrap();
    let sum = |wanted: &str| -> u64 {
        rows.iter().map(|row| row[column(wanted)].parse::<u64>().unwrap()).sum()
    };
    let spans = rows.iter().map(|row| row[column("span_s")].parse::<f64>().unwrap());
    assert!(spans.into_iter().all(|span| span > 0.0), "{csv}");
    assert_eq!(sum("due"), outcomes(&json)[0]);
    assert_eq!(sum("succeeded"), outcomes(&json)[1]);
    assert_eq!(sum("bytes_received"), whole(&json, "/bytes/received"));
    assert_eq!(sum("body_bytes"), whole(&json, "/bytes/body"));
}

#[test]
fn the_histograms_are_read_back_by_the_public_reader() {
    let (site, folder) = (Site::start(&[]), Folder::new());
    let name = folder.name("h.hlog");
    let json = measure(&["-c", "2", "-n", "100", "--hdr", &name, &site.url("/hw")]);
    let log = folder.read("h.hlog");
    let mut found = Vec::new();
    for entry in IntervalLogIterator::new(log.as_bytes()) {
        let LogEntry::Interval(interval) = entry.unwrap() else { continue };
        let tag = interval.tag().unwrap().as_str().to_owned();
        let bytes = base64(interval.encoded_histogram());
        let hist: hdrhistogram::Histogram<u64> =
            Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
        found.push((tag, hist.len(), hist.max()));
    }
    let tags: Vec<(&str, u64)> = found.iter().map(|(tag, len, _)| (tag.as_str(), *len)).collect();
    assert_eq!(tags, [("response", 100), ("service", 100), ("slip", 100)]);
    let max = number(&json, "/response_time_s/max");
    assert!((found[0].2 as f64 / 1e9 / max - 1.0).abs() < 0.002, "{} {max}", found[0].2);
}

/// Decodes base64 (RFC 4648 §4) of valid input.
fn base64(text: &str) -> Vec<u8> {
    let value = |byte: u8| match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let digits: Vec<u8> = text.trim_end_matches('=').bytes().map(value).collect();
    let mut bytes = Vec::new();
    for four in digits.chunks(4) {
        let bits = four.iter().fold(0u32, |bits, digit| bits << 6 | u32::from(*digit));
        let bits = bits << (6 * (4 - four.len()));
        bytes.extend(&bits.to_be_bytes()[1..four.len()]);
    }
    bytes
}

#[test]
fn the_log_has_a_line_per_call_with_the_four_instants() {
    let (site, folder) = (Site::start(&[]), Folder::new());
    let name = folder.name("log.tsv");
    let json = measure(&["-c", "3", "-n", "90", "--log", &name, &site.url("/bytes/100")]);
    let calls = calls::read(&folder.path("log.tsv"));
    let indices: Vec<u64> = calls.iter().map(|call| call.index).collect();
    assert_eq!(indices, (0..90).collect::<Vec<u64>>());
    let bytes: u64 = calls.iter().map(|call| call.bytes).sum();
    assert_eq!(bytes, whole(&json, "/bytes/received"));
    for call in &calls {
        assert_eq!(call.response, Some(call.service.unwrap() + call.slip.unwrap()), "{call:?}");
        assert_eq!((call.outcome.as_str(), call.status, call.target), ("succeeded", 200, 0));
        assert_eq!(call.class, "");
    }
}

#[test]
fn the_page_is_self_contained() {
    let (site, folder) = (Site::start(&[]), Folder::new());
    let name = folder.name("p.html");
    let url = site.url("/hw?a=%3Cscript%3Ealert(1)%3C/script%3E");
    measure(&["-c", "2", "-n", "100", "--html", &name, &url]);
    let page = folder.read("p.html");
    assert!(page.starts_with("<!DOCTYPE html>") && page.trim_end().ends_with("</html>"));
    for word in ["src=", "@import", "<link", "<script>alert", "href=\"http"] {
        assert!(!page.contains(word), "{word}");
    }
    assert!(page.contains("100"));
}

#[test]
fn conforming_connections_are_judged_by_threshold_and_rule() {
    // 500 bytes at 1000 a second: at most 8 kbit/s
    let site = Site::start(&[("drip", "1000B/s")]);
    let url = site.url("/bytes/500");
    let judge = |options: &[&str]| {
        let mut args = vec!["-c", "2", "-n", "2", "--calls", "1", &url];
        args.extend(options);
        let json = measure(&args);
        assert_eq!(whole(&json, "/conforming_connections/judged"), 2, "{options:?}");
        (
            whole(&json, "/conforming_connections/count"),
            number(&json, "/conforming_connections/threshold_bps"),
        )
    };
    assert_eq!(judge(&[]), (0, 320_000.0));
    assert_eq!(judge(&["--conforming", "100"]), (2, 100.0));
    assert_eq!(judge(&["--conforming", "9k"]), (0, 9_000.0));
    // an empty body has no bits: only heads can make its connection conform
    let site = Site::start(&[]);
    let url = site.url("/bytes/0");
    let count = |options: &[&str]| {
        let mut args = vec!["-c", "1", "-n", "2", "--calls", "1", "--conforming", "100", &url];
        args.extend(options);
        whole(&measure(&args), "/conforming_connections/count")
    };
    assert_eq!(count(&[]), 0);
    assert_eq!(count(&["--conforming-heads"]), 2);
}

#[test]
fn failures_have_a_class_and_a_responsible_side() {
    for (fault, class) in
        [("garbage", "not-http"), ("close-early", "closed-early"), ("truncate", "truncated")]
    {
        let site = Site::start(&[(fault, "")]);
        let json = crate::support::measured(&["-c", "1", "-n", "3", &site.url("/hw")], &[1]);
        assert_eq!(outcomes(&json), [3, 0, 3, 0, 0, 0], "{fault}");
        assert_eq!(json["failures"].as_array().unwrap().len(), 1, "{fault}: {}", json["failures"]);
        assert_eq!(text(&json, "/failures/0/class"), class);
        assert_eq!(text(&json, "/failures/0/blame"), "server");
        assert_eq!(whole(&json, "/failures/0/count"), 3);
        assert_eq!(text(&json, "/verdict/state"), "INVALID");
        let mut causes = json["verdict"]["causes"].as_array().unwrap().iter();
        assert!(causes.any(|cause| cause["id"] == "all-failed"), "{}", json["verdict"]);
        // a fast failure does not improve a quantile
        assert_eq!(whole(&json, "/response_time_s/count"), 0);
        assert_eq!(whole(&json, "/by_outcome/failed/count"), 3);
    }
}

/// A second of the series with zero CPU time was not measured, because sending calls costs CPU
/// time.
#[test]
fn each_row_of_the_series_has_the_clients_cpu() {
    let site = Site::start(&[("null", "")]);
    let json = measure(&["-c", "8", "-d", "400ms", "--interval", "200ms", &site.url("/")]);
    let rows = json["series"].as_array().unwrap();
    let shares: Vec<f64> = rows.iter().map(|row| row["driver_cpu"].as_f64().unwrap()).collect();
    assert!(shares[0] > 0.0, "{shares:?}");
    // a share of one core; the clocks of CPU and wall time may differ by a little
    assert!(shares.iter().all(|share| (0.0..1.1).contains(share)), "{shares:?}");
}
