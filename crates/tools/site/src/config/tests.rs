use units::Nanos;

use super::*;

fn parsed(options: &[(&str, &str)]) -> Result<Config, String> {
    let mut config = Config::default();
    for (name, value) in options {
        config.parse_option(name, value).map_err(|error| error.to_string())?;
    }
    config.check().map_err(|error| error.to_string())?;
    Ok(config)
}

fn refused(options: &[(&str, &str)]) -> String {
    parsed(options).unwrap_err()
}

#[test]
fn every_listed_option_is_accepted() {
    let dir = std::env::temp_dir().join(format!("site-config-{}", std::process::id()));
    for option in OPTIONS {
        let value = match option.value {
            None => String::new(),
            Some("N") => "3".to_owned(),
            Some("ADDR:PORT|unix:PATH") => "127.0.0.1:0".to_owned(),
            Some("LIST") => "0".to_owned(),
            Some("CERT,KEY") => "cert.pem,key.pem".to_owned(),
            Some("SET") => "webstone-like".to_owned(),
            Some("FILE") => dir.display().to_string(),
            Some("SIZE") => "1K".to_owned(),
            Some("TIME") if ["delay", "service", "other-delay"].contains(&option.name) => {
                "5ms..20ms".to_owned()
            }
            Some("TIME") => "20ms".to_owned(),
            Some("LENGTH/PERIOD") => "500ms/2s".to_owned(),
            Some("SHARE") => "1%".to_owned(),
            Some("RATE") if option.name == "tokens" => "20/s".to_owned(),
            Some("RATE") => "100B/s".to_owned(),
            Some("RATE[:BURST[:STATUS]]") => "100/s:20:503".to_owned(),
            Some("TIME:TIMES") => "4s:5".to_owned(),
            Some("A:B") => "0.05:0.002".to_owned(),
            Some("SHARE:TIME") => "1%:2s".to_owned(),
            Some("short|long") => "long".to_owned(),
            Some("accept|refuse|too-early") => "accept".to_owned(),
            Some("SWITCH,…|none") => "no-host,crashes".to_owned(),
            Some(other) => panic!("no sample for {other}"),
        };
        let mut config = Config::default();
        let before = format!("{config:?}");
        config.parse_option(option.name, &value).unwrap();
        let changed = format!("{config:?}") != before;
        assert!(changed, "--{} changes nothing", option.name);
        assert!(option.help.len() <= 76, "{}", option.name);
    }
    std::fs::remove_file(dir).unwrap();
}

#[test]
fn http3_is_for_the_pages_over_udp() {
    let files = ("http3", "both.pem");
    let taken = parsed(&[files]).unwrap().http3.unwrap();
    assert_eq!((taken.cert.clone(), taken.key), (taken.cert, "both.pem".into()));
    for other in [("null", ""), ("delay", "1ms")] {
        assert!(refused(&[files, other]).contains("--http3 is for the pages"));
    }
    for kept in ["accept", "refuse"] {
        assert!(parsed(&[files, ("range", "none"), ("early-data", kept)]).is_ok(), "{kept}");
    }
    assert!(parsed(&[files, ("early-data", "too-early")]).is_ok());
    assert!(parsed(&[files, ("range", "none")]).unwrap().check().is_ok());
    assert!(refused(&[files, ("listen", "unix:/tmp/s")]).contains("--http3 is over UDP"));
    assert!(refused(&[("http3", "cert.pem,")]).contains("write CERT.pem,KEY.pem"));
}

#[test]
fn a_file_set_is_for_the_pages() {
    let set = ("files", "surge-like:files=10");
    assert_eq!(parsed(&[set]).unwrap().files, Some(workload::fileset::Spec::Surge { files: 10 }));
    for other in [("null", ""), ("delay", "1ms"), ("range", "none")] {
        let why = refused(&[set, other]);
        assert!(why.starts_with("--files is for the pages"), "{why}");
    }
    let why = refused(&[("files", "surge-like:files=1")]);
    assert_eq!(why, "--files \"surge-like:files=1\": files must be 10 to 1000000");
}

#[test]
fn the_engine_follows_from_the_options() {
    let engine = |options: &[(&str, &str)]| parsed(options).unwrap().engine();
    assert_eq!(engine(&[("threads", "2"), ("sleep-parallel", "")]), Engine::Proper);
    assert_eq!(engine(&[("delay", "10ms")]), Engine::Exact);
    assert_eq!(engine(&[("connection-cap", "10")]), Engine::Exact);
    assert_eq!(engine(&[("null", ""), ("threads", "2")]), Engine::Null);
}

#[test]
fn values_arrive_where_they_belong() {
    let config = parsed(&[
        ("delay", "exp:10ms"),
        ("stall", "500ms/2s"),
        ("error-share", "1%"),
        ("drip", "100B/s"),
        ("seed", "7"),
        ("cpus", "3,0-1,1"),
    ])
    .unwrap();
    let faults = &config.faults;
    assert_eq!(faults.delay, Some(TimeLaw::Exponential { mean: Nanos::from_millis(10) }));
    assert_eq!((faults.error_share, faults.drip), (0.01, Some(100)));
    assert_eq!((config.seed, config.cpus), (Seed(7), vec![0, 1, 3]));
}

#[test]
fn invalid_values_are_reported_with_the_fix() {
    assert_eq!(
        refused(&[("delay", "soon")]),
        "--delay \"soon\": \"soon\" is not a duration: \"soon\" does not begin with a number; \
         write one like 500ms, 10s or 1m30s (units ns us ms s m h d)"
    );
    assert_eq!(
        refused(&[("close-after", "0")]),
        "--close-after \"0\": it must be a whole number above 0"
    );
    assert_eq!(refused(&[("null", "yes")]), "--null \"yes\": it is a switch and takes no value");
    assert!(refused(&[("cpus", "3-1")]).contains("like 0,2-3"));
    assert!(refused(&[("cpus", "99999")]).contains("0–1023"));
    assert!(refused(&[("wrong-length", "")]).contains("short or long"));
    assert!(refused(&[("log", "/nowhere/at/all")]).contains("cannot write the log"));
    assert!(refused(&[("colour", "red")]).starts_with("the site has no option --colour"));
}

#[test]
fn contradictions_are_refused_before_anything_starts() {
    for options in [
        &[("null", ""), ("delay", "1ms")][..],
        &[("delay", "1ms"), ("threads", "2")],
        &[("delay", "1ms"), ("sleep-parallel", "")],
        &[("threads", "65")],
        &[("garbage", ""), ("twice", "")],
        &[("wrong-length", "short"), ("wrong-length", "long")],
        &[("one-at-a-time", "")],
        &[("workers", "4")],
        &[("cold", "4s:5")],
        &[("contention", "0.1:0")],
        &[("other-delay", "5ms")],
        &[("bandwidth", "1M/s"), ("drip", "1k/s")],
        &[("late", "1%:2s"), ("garbage", "")],
        &[("backlog", "0")],
        &[("quantum", "0ms")],
        &[("range", "none"), ("http3", "both.pem"), ("early-data", "too-early")],
    ] {
        assert!(parsed(options).is_err(), "{options:?}");
    }
    assert!(parsed(&[("twice", ""), ("twice", "")]).is_ok());
}
