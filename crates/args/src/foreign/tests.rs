use super::*;
use clap::Parser;

#[track_caller]
fn hint_of(words: &[&str]) -> Option<String> {
    let argv: Vec<OsString> = ["loadstone"].iter().chain(words).map(OsString::from).collect();
    hint(&Cli::try_parse_from(&argv).expect_err("another tool's command line"), &argv)
}

/// Command lines from the pages of ten tools, each with the hint for the first unknown word.
#[test]
fn the_command_lines_of_ten_tools_are_answered_by_ours() {
    let lines: [(&str, &[&str], &str); 46] = [
        ("k6", &["--vus", "10", "URL"], "-c N"),
        ("k6", &["-u", "10", "URL"], "-c N"),
        ("k6", &["--stage", "30s:20", "URL"], "ramp"),
        ("k6", &["--iterations", "100", "URL"], "-n COUNT"),
        ("k6", &["--rps=50", "URL"], "--rate"),
        ("k6", &["--summary-export=s.json", "URL"], "--json"),
        ("k6", &["--no-connection-reuse", "URL"], "--close"),
        ("oha", &["-z", "10s", "URL"], "-d TIME"),
        ("oha", &["-q", "50", "URL"], "--rate 50/s"),
        ("oha", &["--latency-correction", "URL"], "response times"),
        ("oha", &["--disable-keepalive", "URL"], "--close"),
        ("oha", &["-d", "{\"a\":1}", "URL"], "--body"),
        ("vegeta", &["-rate=50", "URL"], "--rate"),
        ("vegeta", &["-duration=5s", "URL"], "--duration TIME"),
        ("vegeta", &["-targets=t.txt"], "--urls FILE"),
        ("vegeta", &["-header", "A: b", "URL"], "--header"),
        ("vegeta", &["-name=50qps", "URL"], "runs tag"),
        ("hey", &["-m", "POST", "URL"], "--method"),
        ("hey", &["-disable-keepalive", "URL"], "--close"),
        ("hey", &["-h2", "URL"], "--http 2"),
        ("curl", &["-X", "POST", "URL"], "--method"),
        ("curl", &["--data", "a=b", "URL"], "--body"),
        ("curl", &["-d", "a=b", "URL"], "--body"),
        ("curl", &["-k", "URL"], "--insecure"),
        ("autocannon", &["--pipelining", "4", "URL"], "--pipeline"),
        ("autocannon", &["--overallRate", "100", "URL"], "--rate"),
        ("h2load", &["--h1", "URL"], "--http"),
        ("bombardier", &["--latencies", "URL"], "--percentiles"),
        ("bombardier", &["-a", "URL"], "--close"),
        ("Locust", &["--users", "10", "URL"], "-c N"),
        ("Locust", &["--run-time", "1m", "URL"], "-d TIME"),
        ("wrk", &["-s", "a.lua", "URL"], "--script"),
        ("curl", &["-F", "a=b", "URL"], "--form"),
        ("Locust", &["--spawn-rate", "5", "URL"], "--stages '30s:0..100, 2m:100'"),
        ("autocannon", &["--har", "a.har", "URL"], "loadstone workload import FILE.har"),
        ("curl", &["--http2", "URL"], "use --http 2 ("),
        ("curl", &["--http3", "URL"], "use --http 3 ("),
        ("h2load", &["--h3", "URL"], "use --http 3 ("),
        ("oha", &["--http-version", "3", "URL"], "--http 2 or --http 3"),
        ("JMeter", &["--ramp-up", "30s", "URL"], "--stages"),
        ("k6", &["--batch", "5", "URL"], "--group N"),
        ("k6", &["--http-debug", "URL"], "--log FILE"),
        ("k6", &["--dns", "ttl=0", "URL"], "--resolve"),
        ("k6", &["--config", "c.json", "URL"], "PLAN.toml"),
        ("curl", &["-v", "URL"], "loadstone once URL"),
        ("other tools", &["--json-body", "{}", "URL"], "application/json"),
    ];
    for (tool, words, ours) in lines {
        let url = |word: &&str| if *word == "URL" { "http://h/" } else { *word }.to_owned();
        let words: Vec<String> = words.iter().map(url).collect();
        let words: Vec<&str> =
            ["run"].into_iter().chain(words.iter().map(String::as_str)).collect();
        let hint_text =
            hint_of(&words).unwrap_or_else(|| panic!("{tool} {words:?}: nothing is said"));
        assert!(
            hint_text.contains(tool) && hint_text.contains(ours),
            "{tool} {words:?}: {hint_text}"
        );
    }
}

#[test]
fn hints_are_complete_sentences() {
    assert_eq!(
        hint_of(&["run", "h", "-z", "10s"]).as_deref(),
        Some("-z is not an option here: use -d TIME (-z is an option of oha, hey and Locust)")
    );
    assert_eq!(
        hint_of(&["run", "-q", "50", "http://h/"]).as_deref(),
        Some(
            "-q is --quiet here; a rate, as in hey (of each worker) and oha (of all), is --rate \
             50/s (of all)"
        )
    );
}

#[test]
fn unknown_habits_get_the_usual_message() {
    let others: [&[&str]; 6] = [
        &["run", "--conections", "3", "h"],
        &["run", "-d", "5 weeks", "http://h/"],
        &["run", "http://h/", "--", "-rate=50", "--no-such"],
        // a command without the suggested option
        &["site", "-k"],
        &["torture", "-z", "10s", "http://h/"],
        &["runs", "list", "-o", "x"],
    ];
    for words in others {
        let argv: Vec<OsString> = ["loadstone"].iter().chain(words).map(OsString::from).collect();
        let hint_text = Cli::try_parse_from(&argv).err().and_then(|error| hint(&error, &argv));
        assert_eq!(hint_text, None, "{words:?}");
    }
}

#[test]
fn no_option_of_ours_is_called_foreign() {
    let cli = Cli::command();
    let run = cli.find_subcommand("run").expect("there is a command run");
    for argument in run.get_arguments() {
        let long = argument.get_long().map(|name| format!("--{name}"));
        let short = argument.get_short().map(|name| format!("-{name}"));
        for ours in long.into_iter().chain(short) {
            let taken = table::all().find(|row| row.options.contains(&ours.as_str()));
            assert!(taken.is_none(), "{ours} is an option of run");
        }
    }
    let mut all: Vec<&str> = table::all().flat_map(|row| row.options).copied().collect();
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count, "an option is listed twice");
}

#[test]
fn a_misspelled_command_is_reported() {
    let hint_text = |word: &str| hint_of(&[word, "http://h/"]).unwrap();
    assert_eq!(hint_text("rnu"), "\"rnu\" is not a command; did you mean run?");
    assert_eq!(hint_text("tortrue"), "\"tortrue\" is not a command; did you mean torture?");
    assert_eq!(
        hint_text("benchmark"),
        "\"benchmark\" is not a command; loadstone --help lists the commands"
    );
}

#[test]
fn a_second_url_leads_to_compare_and_lists() {
    let hint_text = hint_of(&["run", "http://a/", "http://b/"]).unwrap();
    assert!(
        hint_text.contains("loadstone compare") && hint_text.contains("--urls FILE"),
        "{hint_text}"
    );
}

#[test]
fn a_negative_number_is_refused_by_its_option() {
    for [option, value] in [["-c", "-5"], ["-d", "-5s"], ["--rate", "-5/s"], ["-n", "-1k"]] {
        let words = ["loadstone", "run", "http://h/", option, value];
        let error = Cli::try_parse_from(words).unwrap_err();
        assert!(error.to_string().contains("must not be negative"), "{error}");
        assert_eq!(hint_of(&words[1..]), None, "{option} {value}");
    }
}

/// Checks that suggested replacements exist: options of `run`, commands of the program.
#[test]
fn suggested_replacements_exist() {
    let cli = Cli::command();
    for row in table::all() {
        assert!(hint_text("run", row.options[0], row).is_some(), "{:?}: {}", row.options, row.ours);
        for word in row.ours.split_once("loadstone ").map(|(_, rest)| rest).into_iter() {
            let command = word.split([' ', ',']).next().unwrap_or_default();
            let face = faces::Tool::from_name(command);
            assert!(cli.find_subcommand(command).is_some() || face.is_some(), "{}", row.ours);
        }
        for letter in
            row.ours.split([' ', '\'', ',']).filter(|word| word.len() == 2 && *word != "--")
        {
            let known = || {
                let run = cli.find_subcommand("run").expect("there is a command run");
                let mut shorts = run.get_arguments().filter_map(clap::Arg::get_short);
                shorts.any(|short| letter.ends_with(short))
            };
            assert!(!letter.starts_with('-') || known(), "{letter}: {}", row.ours);
        }
    }
}

/// With a URL the value is a surplus word; without one it is parsed as the URL.
#[test]
fn a_value_without_its_equals_sign_gets_a_hint() {
    let set = "surge-like:files=200";
    let text = format!("--verify takes its value after an equals sign: write --verify={set}");
    let words = ["run", "--verify", set, "http://h/"];
    assert_eq!(hint_of(&words), Some(text.clone()));
    assert_eq!(hint_of(&["run", "http://h/", "--verify", set, "-n", "1"]), Some(text.clone()));
    // a second URL is not a value of the option
    let hint_text = hint_of(&["run", "--verify", "http://h/", "http://i/"]).unwrap();
    assert!(
        hint_text.contains("loadstone compare") && !hint_text.contains("--verify"),
        "{hint_text}"
    );
    let argv = ["loadstone", "run", "--verify", set].map(OsString::from);
    let why = format!("\"{set}\" is not a URL: invalid port number");
    assert_eq!(value_hint(&why, &argv), Some(text));
    assert_eq!(value_hint("no server answers", &argv), None);
    // a target and a plan are permitted there
    let argv = ["loadstone", "run", "--follow", "127.0.0.1:9"].map(OsString::from);
    assert_eq!(value_hint("no connection to http://127.0.0.1:9/", &argv), None);
    assert_eq!(hint_of(&["run", "--verify", "host:80", "--bogus"]), None);
}
