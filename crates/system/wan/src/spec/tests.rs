use super::*;
use crate::describe::describe;
use crate::trace::NoTraces;
use proptest::prelude::*;

fn read(text: &str) -> PathSpec {
    PathSpec::parse(text, &NoTraces).expect(text)
}

fn wrong(text: &str) -> String {
    PathSpec::parse(text, &NoTraces).expect_err("no path").0
}

/// Always the same trace of 12 Mbit/s.
struct OneTrace;

impl TraceSource for OneTrace {
    fn trace(&self, file: &str) -> Result<Arc<Trace>, String> {
        Trace::parse_file(file, b"1\n")
    }
}

#[test]
fn every_profile_can_be_read_and_its_name_too() {
    let mut names: Vec<&str> = Vec::new();
    for profile in profiles() {
        assert!(!names.contains(&profile.name), "{} is listed twice", profile.name);
        names.push(profile.name);
        let (named, plain) = (read(profile.name), read(profile.text));
        assert_eq!((named.up, named.down), (plain.up, plain.down));
    }
}

#[test]
fn items_after_a_profile_win_over_it() {
    let path = read("3g, loss=1%, up-rate=64k, rtt=100ms");
    assert_eq!(describe(&path.up), "64 kbit/s, delay 50.0 ms, queue 50 packets, loss 1.00 %");
    assert_eq!(describe(&path.down), "1.6 Mbit/s, delay 50.0 ms, queue 50 packets, loss 1.00 %");
    assert_eq!(path.rtt(), Nanos::from_millis(100));
    assert_eq!(path.text, "3g, loss=1%, up-rate=64k, rtt=100ms");
}

#[test]
fn links_are_described_as_text() {
    let up = |text: &str| describe(&read(text).up);
    assert_eq!(up("perfect"), "nothing");
    assert_eq!(
        up("train"),
        "3 Mbit/s, delay 45.0 ms ± 20.0 ms (exp), queue 63 packets, loss 1.00 % in bursts of 4.0, \
         away 2.00 s after 25.0 s (means)"
    );
    assert_eq!(
        up("rate=1G, overhead=38, bucket=15000, queue=64k, drop=codel"),
        "1 Gbit/s, 38 bytes of overhead per packet, bursts of 14.6 KiB, queue 64.0 KiB, CoDel 5.00 \
         ms, 100 ms"
    );
    assert_eq!(
        up(
            "delay=10ms, jitter=2ms, order=free, reorder=25%:5, duplicate=1%, corrupt=0.1%, loss=ge:1%:25%:90%"
        ),
        "delay 10.0 ms ± 2.00 ms (uniform, overtaking), 25.0 % of every 5. overtake, loss 3.46 % by \
         a chain of states, 1.00 % duplicated, 0.100 % corrupted"
    );
    assert_eq!(up("loss=ge:1%:25%"), "loss 3.85 % in bursts of 4.0");
    assert_eq!(up("loss=ge:1%:25%:100%:10%"), "loss 13.5 % by a chain of states");
    assert_eq!(
        up("webmark, rate=56k, delay=100ms"),
        "WebMark's delay 2·(size / 56 kbit/s + 100 ms)"
    );
    let trace = PathSpec::parse("trace=down.txt, delay=5ms", &OneTrace).expect("a path");
    assert_eq!(
        describe(&trace.down),
        "a trace of mean rate 12 Mbit/s, delay 5.00 ms, queue 1000 packets"
    );
}

#[test]
fn webmark_delays_uploads_and_loses_both_ways() {
    let path = read("webmark, rate=56k, delay=100ms, loss=5%, order=free");
    assert_eq!(path.rtt(), Nanos::from_millis(200));
    assert_eq!(path.up.carrier, Carrier::Unlimited);
    assert!(!path.up.keeps_order);
    assert!(read("webmark, rate=56k, order=free, up-order=keep").up.keeps_order);
    assert_eq!(path.down, LinkSpec { loss: Loss::Bernoulli(0.05), ..LinkSpec::default() });
}

#[test]
fn a_lossy_path_extends_the_connect_timeout() {
    let millis = |text: &str| read(text).setup_allowance().0 / 1_000_000;
    assert_eq!(millis("rtt=200ms"), 400);
    assert_eq!(millis("rtt=200ms, up-loss=2%"), 16_000);
    assert_eq!(millis("rtt=200ms, outage=25s:2s"), 8_400);
    assert_eq!(millis("rtt=0ms"), 0);
}

/// Each direction has its own values, and a path can be parsed again from its text and traces.
#[test]
fn traces_go_with_the_path() {
    let both = PathSpec::parse("rtt=9ms, trace=a, down-trace=b", &OneTrace).expect("a path");
    let names: Vec<&str> = both.traces.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    let again = PathSpec::parse(&both.text, &both.traces).expect("what was read once");
    assert_eq!(again, both);
    let replaced = PathSpec::parse("trace=a, trace=b", &OneTrace).expect("a path");
    assert_eq!(replaced.traces.len(), 1);
    let lost = PathSpec::parse(&both.text, &both.traces[..1].to_vec()).expect_err("no b").0;
    assert!(lost.contains("down-trace: the trace \"b\" cannot be read"), "{lost}");
}

#[test]
fn errors_are_reported() {
    let lines = [
        wrong(""),
        wrong("4gg"),
        wrong("rtt=50ms, 3g"),
        wrong("lose=1%"),
        wrong("loss=110%"),
        wrong("loss=ge:1%"),
        wrong("loss=states:90%:50%:50%:1%:20%"),
        wrong("loss=90%, burst=2"),
        wrong("burst=0.5"),
        wrong("rate=0"),
        wrong("rate=fast"),
        wrong("delay=2m"),
        wrong("queue=100"),
        wrong("queue=0p"),
        wrong("bucket=10k"),
        wrong("drop=random"),
        wrong("outage=10s"),
        wrong("outage=10s:1s:often"),
        wrong("trace=x.txt"),
        wrong("webmark, delay=100ms"),
        wrong("webmark, rate=56k, up-delay=100ms"),
        wrong("webmark, rate=56k, corrupt=1%"),
        wrong("webmark, rate=56k, down-duplicate=1%"),
        wrong("webmark, rate=56k, outage=10s:1s"),
        wrong("webmark, rate=56k, drop=codel"),
        wrong("webmark, rate=56k, reorder=25%"),
        wrong("webmark, rate=56k, bucket=10k"),
        wrong("webmark, rate=56k, down-order=free"),
        wrong("webmark, rate=56k, down-quantum=10ms"),
        wrong("webmark, rate=56k, down-order=keep"),
        wrong("up-down-loss=1%"),
    ];
    assert_eq!(format!("{}\n", lines.join("\n")), include_str!("wrong.txt"));
}

proptest! {
    #[test]
    fn no_text_breaks_it(text in "(rtt|loss|rate|queue|outage|reorder|drop|up-|down-|ge|3g|webmark|[=,:%.]|[0-9]{1,3}|ms|k|p|[a-z]){0,12}") {
        if let Ok(path) = PathSpec::parse(&text, &OneTrace) {
            describe(&path.up);
            let again = PathSpec::parse(&path.text, &OneTrace).expect("what was read once");
            prop_assert_eq!(again, path);
        }
    }

    #[test]
    fn any_other_text_is_parsed_without_a_panic(text in ".{0,60}") {
        PathSpec::parse(&text, &NoTraces).ok();
    }
}
