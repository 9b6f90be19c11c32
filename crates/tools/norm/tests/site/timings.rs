use crate::support::{request, response, site};
use std::io::Write;

/// Names of the chapter, in the order in which one connection with one request logs them.
const NAMES: [&str; 14] = [
    "abort request",
    "abort create",
    "Listener setupConn",
    "HTTP_1_0 get",
    "GenNode request",
    "HTTP_1_0 stream_entity",
    "HTTP_1_0 response",
    "HTTP_1_0 to_store",
    "Listener talk",
    "Listener close",
    "Listener release",
    "Listener run",
    "Listener died",
    "Listener connection",
];

/// Returns the names and microseconds of the log.
fn timings(log: &str) -> Vec<(&str, u64)> {
    let timing = |line: &'_ str| line.find(" Debug: Timing ").map(|at| at + 15);
    let texts = log.lines().filter_map(|line| timing(line).map(|at| &line[at..]));
    texts
        .map(|text| {
            let (name, micros) = text.rsplit_once(' ').expect("a name and a number");
            (name, micros.parse().expect("a whole number"))
        })
        .collect()
}

#[test]
fn the_log_has_all_fourteen_points_in_order() {
    let mut site = site(|settings, _| settings.timing = true);
    assert!(site.get("/sleep?0.05").contains("Slept"));
    let log = site.log();
    let timings = timings(&log);
    let names: Vec<&str> = timings.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, NAMES);
    let of = |name: &str| timings.iter().find(|(known, _)| *known == name).map_or(0, |pair| pair.1);
    let inside = [
        ("abort request", "abort create"),
        ("abort create", "Listener setupConn"),
        ("HTTP_1_0 stream_entity", "HTTP_1_0 response"),
        ("HTTP_1_0 response", "HTTP_1_0 to_store"),
        ("HTTP_1_0 to_store", "Listener talk"),
        ("HTTP_1_0 get", "Listener talk"),
        ("Listener talk", "Listener run"),
        ("Listener close", "Listener run"),
        ("Listener release", "Listener run"),
        ("Listener run", "Listener connection"),
        ("Listener setupConn", "Listener connection"),
    ];
    for (part, whole) in inside {
        assert!(of(part) <= of(whole), "{part} is longer than {whole}: {timings:?}");
    }
    // the node's own work lies between the request and the response
    assert!(of("HTTP_1_0 to_store") - of("HTTP_1_0 response") >= 50_000, "{timings:?}");
}

#[test]
fn the_field_has_each_measurement_once() {
    let site = site(|settings, _| settings.timing = true);
    let mut stream = site.connect();
    let mut names_of_next = || {
        stream.write_all(request("/hw").as_bytes()).unwrap();
        let response = response(&mut stream);
        let field = response.lines().find_map(|line| line.strip_prefix("server-timing: ")).unwrap();
        let name = |member: &str| {
            let (name, dur) = member.split_once(";dur=").expect("a duration");
            assert!(dur.parse::<f64>().expect("a number") >= 0.0);
            name.to_owned()
        };
        field.split(", ").map(name).collect::<Vec<_>>()
    };
    assert_eq!(names_of_next(), ["abort-request", "abort-create", "setup-conn", "get", "request"]);
    assert_eq!(names_of_next(), ["get", "request"]);
}

#[test]
fn no_timing_is_sent_when_disabled() {
    let mut site = site(|_, _| {});
    assert!(!site.get("/hw").contains("server-timing"));
    assert_eq!(timings(&site.log()), []);
}

#[test]
fn pipelined_requests_are_measured_each() {
    let mut site = site(|settings, _| settings.timing = true);
    let three = format!("{}{}{}", request("/hw"), request("/hw"), crate::support::last("/hw"));
    assert_eq!(site.send(three.as_bytes()).matches("get;dur=").count(), 3);
    let log = site.log();
    let count = |name: &str| timings(&log).iter().filter(|(known, _)| *known == name).count();
    assert_eq!(
        (count("HTTP_1_0 get"), count("HTTP_1_0 to_store"), count("Listener run")),
        (3, 3, 1)
    );
}
