use super::*;
use clap::CommandFactory;
use plan::{FileSource, HttpVersion, Plan, Secrets, to_toml};
use std::collections::BTreeMap;

const URL: &str = "http://h/";

struct Texts(BTreeMap<&'static str, &'static [u8]>);

impl FileSource for Texts {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        self.0.get(path).map(|bytes| bytes.to_vec()).ok_or(format!("{path:?} cannot be read: gone"))
    }
}

fn files() -> Texts {
    let open: &[u8] = b"version = 1\nurl = 'http://h/'\n[load]\nrate = '50/s'\nsession = 3\n\
        think = '1s'\nconnections_max = 9\n[stop]\nduration = '7s'\nrequests = 70\n\
        [measure]\nslo = ['p99<1s']\n";
    let bodied = b"version = 1\nurl = 'h'\n[request]\nmethod = 'PUT'\nbody_file = 'b.bin'\n";
    const SERVICE: &[u8] =
        b"syntax = 'proto3'; package p; service S { rpc M(A) returns (A); } message A {}";
    let set = ::grpc::Schema::compile("s.proto", &|name| {
        (name == "s.proto").then(|| String::from_utf8_lossy(SERVICE).into_owned())
    });
    let set = set.map_or_else(|why| panic!("{why}"), |schema| schema.to_set());
    let files: [(&str, &[u8]); 20] = [
        ("people.csv", b"a\n1\n"),
        ("s.proto", SERVICE),
        (
            "x/s.proto",
            b"syntax = 'proto3'; package p; service S { rpc M(B) returns (B); } message B {}",
        ),
        ("s.set", Box::leak(set.into_boxed_slice())),
        ("list.txt", b"http://a/\nhttp://b/\n"),
        ("weights.txt", b"http://a/\nhttp://b/ weight=2\n"),
        ("paths.txt", b"/a\nPUT /b body=x\n/c body=y\n"),
        ("empty.txt", b"# nothing\n"),
        ("-", b"http://stdin/\n"),
        ("b.bin", b"\xff\x00"),
        ("x.pem", b"-----BEGIN-----"),
        ("closed.toml", b"version = 1\nurl = 'h'\n[load]\nusers = 33\nthink = '2s'\n"),
        ("open.toml", open),
        (
            "sessions.toml",
            b"version = 1\nurl = 'h'\n[load]\nusers = 3\nsession = 4\nretry = true\n",
        ),
        ("plans/bodied.toml", bodied),
        ("plans/b.bin", b"beside the plan"),
        ("shop.js", SCRIPT),
        ("lib/pick.js", b"export const path = '/x';"),
        ("nowhere.js", b"export default function () { }"),
        ("bad.toml", b"version = 1\nurl = 'h'\n[stop]\nduration = 'soon'\n"),
    ];
    Texts(files.into())
}

const SCRIPT: &[u8] = b"import http from 'k6/http'; import { path } from './lib/pick.js';
export const options = { vus: 3, duration: '4s', thresholds: { http_req_duration: ['p(95)<500'],
  checks: ['rate>0.9'] } };
export default function () { http.get(`http://${__ENV.HOST || 'h:81'}${path}`, { tags: { name: 'get x' } }); }";

/// Parses arguments of `run`; `Err` is the message for the user.
fn typed(argv: &[&str]) -> Result<(Plan, Outputs), String> {
    let argv = ["loadstone", "run"].iter().chain(argv);
    let cli = Cli::try_parse_from(argv).map_err(|error| error.to_string())?;
    let Command::Run(run) = cli.command else { unreachable!() };
    run.into_plan(&files()).map_err(|error| error.to_string())
}

/// Returns the lines of the plan that differ from the default plan, under the names of their
/// tables.
fn change(argv: &str) -> String {
    let words = split(argv);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (plan, _) = match typed(&words) {
        Ok(typed) => typed,
        Err(error) => return format!("$ {argv}\n{error}"),
    };
    let default = tables(&Plan::for_url(URL.parse().unwrap()));
    let changed = tables(&plan).into_iter().filter(|line| !default.contains(line));
    format!("$ {argv}\n{}", changed.collect::<Vec<_>>().join("\n"))
}

/// Returns the `[table] key = value` lines of a plan.
fn tables(plan: &Plan) -> Vec<String> {
    let mut table = String::new();
    let mut lines = Vec::new();
    for line in to_toml(plan, Secrets::Shown).lines() {
        if line.starts_with('[') {
            line.clone_into(&mut table);
        } else if !line.is_empty() {
            lines.push(format!("{table} {line}").trim_start().to_owned());
        }
    }
    lines
}

/// Words as a shell splits them, with single quotes.
fn split(line: &str) -> Vec<String> {
    let mut words = vec![];
    for (index, part) in line.split('\'').enumerate() {
        if index % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}

fn changes(lines: &str) -> String {
    let lines = lines.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.map(change).collect::<Vec<_>>().join("\n\n")
}

#[test]
fn the_definition_is_sound() {
    Cli::command().debug_assert();
}

#[test]
fn help_fits_eighty_columns() {
    let mut command = Cli::command().term_width(80);
    command.build();
    let mut pages = vec![command.render_help().to_string()];
    for sub in command.get_subcommands_mut() {
        pages.push(sub.render_help().to_string());
        pages.push(sub.render_long_help().to_string());
    }
    for page in pages {
        for line in page.lines() {
            assert!(line.chars().count() <= 80, "{} columns: {line}", line.chars().count());
        }
    }
}

fn help(name: &str, long: bool) -> String {
    let mut command = Cli::command().term_width(80);
    command.build();
    let command = match name {
        "" => &mut command,
        name => command.find_subcommand_mut(name).unwrap(),
    };
    let page = if long { command.render_long_help() } else { command.render_help() };
    page.to_string()
}

#[test]
fn help_texts() {
    for (name, command, long) in [
        ("top", "", false),
        ("run", "run", false),
        ("run_long", "run", true),
        ("demo", "demo", true),
        ("site", "site", false),
        ("calibrate", "calibrate", true),
    ] {
        insta::assert_snapshot!(format!("help_{name}"), help(command, long));
    }
}

#[test]
fn loads_and_ends() {
    insta::assert_snapshot!(changes(
        "h
        -c 64 -d 30s h
        -c 3 --think exp:2s -n 100 h
        --rate 2000/s h
        --rate 100..2000/s --arrivals poisson --burst 4 -d 1m h
        --rate 2k/s --connections-max 100 --queue-max 0 h
        --rate 10/s --session 5 --think 1s..3s h
        -d 5s -n 9 --bytes-max 1G h
        --urls list.txt --once
        --urls list.txt --once -d 5s
        --urls weights.txt
        --urls weights.txt --once
        --warmup 2s --abort-if 'failures>50% for 5s' --repeat 3 --seed 7 h"
    ));
}

#[test]
fn requests_and_connections() {
    insta::assert_snapshot!(changes(
        "--body a=1 h
        --body a=1 --method PUT h
        --body-file b.bin h
        --body-file - h
        -H 'A: b' --header 'C: d:e' h
        --user fred:x --user-agent me/1 h
        http://fred:a%3Ab@h/
        --bearer abc --http 1.0 h
        --follow --compressed --cookies h
        --priority u=1,i h
        --priority u=9 h
        --priority i -H 'priority: u=1' h
        --follow=3 h
        --expect-status 200,3xx --expect-length 1k --expect-body hello h
        --timeout 1s --connect-timeout 2s --first-byte-timeout 3s --progress-timeout 4s h
        --close h
        --calls 8 --pipeline 4 h
        -c 4 --calls 8 --group 8 h
        --unix /run/app.sock http://app/x
        --resolve h:80:127.0.0.1 --bind 127.0.0.2-127.0.0.3 -4 h
        --proxy fred:x@p:3128 -6 h
        --send-buffer 64k --recv-buffer 1M --no-nodelay --reset h"
    ));
}

#[test]
fn lists_and_the_rest() {
    insta::assert_snapshot!(changes(
        "--urls list.txt --random
        --urls - --random
        --urls paths.txt https://h:8443/x/
        --urls paths.txt --method PATCH h
        --insecure https://h
        --ca x.pem --cert x.pem --key x.pem --tls 1.3 --no-resumption --alpn none https://h
        --server-name x --groups X25519,secp256r1 --ciphers A --alpn http/1.1 https://h
        --slo 'p99<50ms, failures<0.1%' --slo 'max<1s' --percentiles=50,99.99 h
        --percentiles h
        --conforming 2M --conforming-heads --interval 100ms --doubt-max 10% h
        --threads 2 --cpus 0,2-3 --nice -5 h"
    ));
}

#[test]
fn options_win_over_a_plan_file() {
    insta::assert_snapshot!(changes(
        "closed.toml
        closed.toml -c 2
        closed.toml --rate 5/s
        closed.toml --rate 5/s --session 2
        open.toml
        open.toml --rate 99/s
        open.toml --burst 2 --session 9 --think none
        open.toml -c 4
        open.toml -n 5 --slo 'max<2s'
        open.toml --urls list.txt
        plans/bodied.toml
        plans/bodied.toml --body x"
    ));
}

#[test]
fn what_cannot_be() {
    insta::assert_snapshot!(changes(
        "-d 1s
        ftp://h/
        http://
        /some/path
        -c 0 h
        -c many h
        -n 99999999999999999999 h
        --rate 0/s h
        --rate 1e9 h
        --rate 11M/s h
        -c 5 --rate 5/s h
        -c 5 --burst 2 h
        --queue-max 2 h
        --think 1s --rate 5/s h
        -d soon h
        -d 0 h
        -n 0 h
        --random h
        --once h
        --random --once --urls list.txt
        --urls list.txt --once -n 3
        --urls paths.txt
        --urls empty.txt
        --urls gone.txt
        --urls b.bin
        --urls - --body-file - h
        --body x --body-file b.bin h
        --body-file gone h
        --user a:b --bearer c h
        --user a:b http://c:d@h
        --bearer a http://c:d@h
        --user-agent a -H 'User-Agent: b' h
        -H nonsense h
        --close --calls 3 h
        --http 1.0 --pipeline 4 h
        --http 2 h
        --group 4 --rate 5/s h
        --group 4 --calls 2 h
        --warmup 1s -n 5 h
        -4 -6 h
        --cert x.pem https://h
        --ca gone.pem https://h
        --unix /s --proxy p:1 h
        --proxy https://p h
        --expect-body 'regex:(' h
        --expect-status 20 h
        --slo fast h
        --percentiles=0 h
        --cpus x h
        --csv - h
        --csv x --html x h
        --json x --log x h
        --hdr '' h
        --script gone.lua h
        --script b.bin --session 3 --rate 5/s h
        h -- word
        gone.toml
        bad.toml
        h other
        --colour h"
    ));
}

#[test]
fn outputs_go_where_they_are_sent() {
    let line = "--json - --csv a --hdr b --html c --log d -q --percentiles --print-plan \
                --store s.db http://u:p@h/x";
    let words = split(line);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let expected = Outputs {
        name: "http://h/x".into(),
        json: Some(Sink::Stdout),
        csv: Some("a".into()),
        hdr: Some("b".into()),
        html: Some("c".into()),
        junit: None,
        md: None,
        log: Some("d".into()),
        quiet: true,
        line: false,
        live: false,
        metrics: None,
        otlp: None,
        sut: None,
        store: Some(::store::StorePlace::File("s.db".into())),
        percentiles: true,
        full: false,
        print_plan: true,
        version_open: true,
        proxy_open: true,
    };
    assert_eq!(typed(&words).unwrap().1, expected);
    assert!(typed(&["--live", URL]).unwrap().1.live);
    assert!(typed(&["--live", "-q", URL]).is_err());
    assert!(typed(&["--full", URL]).unwrap().1.full);
    assert!(typed(&["--full", "-q", URL]).is_err());
    assert!(typed(&["--line", URL]).unwrap().1.line);
    assert!(typed(&["--line", "-q", URL]).is_err());
    let name = |words: &[&str]| typed(words).unwrap().1.name;
    assert_eq!(name(&["--urls", "-"]), "standard input");
    assert_eq!(name(&["--urls", "paths.txt", URL]), "paths.txt");
    assert_eq!(name(&["--urls", "list.txt", "closed.toml"]), "closed.toml");
    let plain = typed(&["closed.toml", "--json", "x"]).unwrap().1;
    let json = Some(Sink::File("x".into()));
    let open = Outputs { version_open: true, proxy_open: true, ..Outputs::default() };
    assert_eq!(plain, Outputs { name: "closed.toml".into(), json, ..open });
}

/// A value for each option of `run` that has one, with required other options.
const VALUES: &[(&str, &str)] = &[
    ("connections", "3"),
    ("message", "{}"),
    ("proto", "s.proto"),
    ("proto-path", "x --proto s.proto"),
    ("protoset", "s.set"),
    ("grpc-status", "5"),
    ("feeder", "u=people.csv --message {{u.a}}"),
    ("messages", "5 --message [{}]"),
    ("message-rate", "5/s --message [{}]"),
    ("correlate", "field:id --message [{}] --message-rate 5/s"),
    ("response-messages", "3"),
    ("response-message-max", "1M"),
    ("grpc-protocol", "connect"),
    ("grpc-timeout", "2s"),
    ("grpc-compress", "gzip"),
    ("grpc-keepalive", "30s"),
    ("grpc-backend", "x-served-by"),
    ("ws-message", "hi"),
    ("ws-rate", "5/s"),
    ("ws-expect", "next"),
    ("ws-subprotocol", "chat"),
    ("ws-ping", "2s --ws-message hi"),
    ("ws-mask", "zero"),
    ("ws-live", "2s"),
    ("ws-read-rate", "10k"),
    ("ws-storm", "1s"),
    ("ws-per-connection", "5 --http 2"),
    ("ws-preset", "stomp"),
    ("ws-rooms", "1 --ws-rate 5/s -c 2"),
    ("rate", "5/s"),
    ("stages", "1s:2..9/s"),
    ("workload", "webstone-like:clients=3"),
    ("think", "1s"),
    ("session", "4 --rate 9/s"),
    ("arrivals", "uniform --rate 9/s"),
    ("burst", "2 --rate 9/s"),
    ("connections-max", "5 --rate 9/s"),
    ("queue-max", "5 --rate 9/s"),
    ("seed", "9"),
    ("duration", "3s"),
    ("requests", "7"),
    ("fold", "/a/{n}"),
    ("token-url", "http://a/ --token-client a --token-secret b"),
    ("token-client", "z --token-url http://a/ --token-secret b"),
    ("token-secret", "z --token-url http://a/ --token-client a"),
    ("token-scope", "z --token-url http://a/ --token-client a --token-secret b"),
    ("token-audience", "z --token-url http://a/ --token-client a --token-secret b"),
    ("token-login", "body --token-url http://a/ --token-client a --token-secret b"),
    ("token-refresh-before", "9s --token-url http://a/ --token-client a --token-secret b"),
    ("digest", "a:b"),
    ("aws-sigv4", "aws:amz:r:s --user a:b"),
    ("bytes-max", "1M"),
    ("warmup", "1s"),
    ("abort-if", "p99>1s"),
    ("repeat", "2"),
    ("urls", "list.txt"),
    ("method", "PUT"),
    ("header", "A:b"),
    ("body", "x"),
    ("body-file", "b.bin"),
    ("user", "a:b"),
    ("bearer", "a"),
    ("user-agent", "a"),
    ("priority", "u=1"),
    ("http", "1.0"),
    ("follow", "=4"),
    ("follow-auth", "other.example --follow"),
    ("expect-status", "200"),
    ("expect-length", "5"),
    ("expect-body", "x"),
    ("timeout", "9s"),
    ("connect-timeout", "9s"),
    ("first-byte-timeout", "9s"),
    ("progress-timeout", "9s"),
    ("calls", "5"),
    ("pipeline", "5"),
    ("group", "5"),
    ("script", "b.bin"),
    ("curl", "http://h/other"),
    ("verify", "=first"),
    ("stream", "sse"),
    ("prompt", "x --stream openai"),
    ("model", "x --stream openai"),
    ("max-tokens", "5 --stream anthropic"),
    ("unix", "/s"),
    ("resolve", "h:80:127.0.0.1"),
    ("bind", "127.0.0.2"),
    ("proxy", "p:1"),
    ("send-buffer", "9k"),
    ("recv-buffer", "9k"),
    ("reconnect-pause", "20ms"),
    ("ca", "x.pem"),
    ("cert", "x.pem --key x.pem"),
    ("key", "x.pem --cert b.bin"),
    ("tls", "1.2"),
    ("alpn", "none"),
    ("server-name", "x"),
    ("groups", "x"),
    ("ciphers", "x"),
    ("streams", "9 --http 2"),
    ("migrate", "5s --http 3"),
    ("stream-window", "1M --http 2"),
    ("connection-window", "1M --http 2"),
    ("header-table", "8K --http 2"),
    ("encoder-table", "8K --http 2"),
    ("frame-max", "32K --http 2"),
    ("head-max", "9k"),
    ("slo", "p99<1s"),
    ("percentiles", "=50"),
    ("conforming", "9k"),
    ("interval", "9s"),
    ("doubt-max", "9%"),
    ("path", "3g"),
    ("clients", "dsl:60%,3g:40%"),
    ("threads", "2"),
    ("cpus", "1"),
    ("nice", "5"),
    ("stack", "own"),
    ("sources", "10.9.0.0/16 --stack own"),
    ("tcp", "ecn --stack own"),
    ("idle", "9"),
    ("json", "f"),
    ("junit", "f --slo p99<1s"),
    ("md", "f"),
    ("form", "a=b"),
    ("html", "f"),
    ("csv", "f"),
    ("hdr", "f"),
    ("log", "f"),
    ("store", "f"),
    ("metrics", "9"),
    ("otlp", "http://h"),
    ("sut", "1"),
];

/// A plan printed from a file and options is equal to the original without the options.
#[test]
fn a_printed_plan_gives_the_same_plan() {
    let lines = "closed.toml --rate 5..9/s --session 2 --arrivals poisson --burst 3 -d 9s -n 7
        open.toml -c 4 --think 1s..3s --warmup 2s -d 9s
        open.toml --stages '5s:0..9/s, 5s:9/s' --queue-max 3
        sessions.toml --think 2s --http 2 --streams 4
        plans/bodied.toml -H 'A: b' --user a:b --aws-sigv4 aws:amz:r:s --follow
        --urls weights.txt --slo p99<1s --fold /a/{n}
        --urls list.txt --once --bytes-max 1G
        --workload surge-like:users=20,connections=2 --seed 4 h
        h --body-file b.bin --digest a:b --expect-status 2xx --clients 'dsl:60%,3g:40%'";
    for line in lines.lines() {
        let words = split(line);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let (plan, _) = typed(&words).unwrap_or_else(|error| panic!("{line}: {error}"));
        let printed = to_toml(&plan, Secrets::Shown);
        assert_eq!(plan::from_toml(&printed, &plan::NoFiles).as_ref(), Ok(&plan), "{line}");
    }
}

/// Sessions keep their think time, whether an option or the plan sets it.
#[test]
fn users_with_sessions_think_as_configured() {
    let (plan, _) = typed(&["sessions.toml", "--think", "2s"]).unwrap();
    let think = plan::Think::Fixed(units::Nanos::from_secs(2));
    assert_eq!(plan.load.session().map(|session| session.think), Some(think));
}

/// A ramp sets the rate; the options that shape arrivals stay in effect.
#[test]
fn a_ramp_keeps_the_arrival_options() {
    let argv = ["loadstone", "ramp", "--burst", "2", "--to", "20/m", URL];
    let Command::Ramp(ramp) = Cli::try_parse_from(argv).unwrap().command else { unreachable!() };
    let task = ramp.into_task(&files()).unwrap();
    let plan::Load::Open { arrivals, .. } = &task.targets[0].plan.load else { panic!() };
    assert_eq!((arrivals.burst, arrivals.from), (2, units::Rate(20.0 / 60.0)));
}

/// Scripts get their arguments in ramps and comparisons too.
#[test]
fn ramps_and_comparisons_pass_arguments_to_scripts() {
    let argv = ["loadstone", "ramp", "shop.js", "--", "SITE=http://h/"];
    let Command::Ramp(ramp) = Cli::try_parse_from(argv).unwrap().command else { unreachable!() };
    let task = ramp.into_task(&files()).unwrap();
    let script = &task.targets[0].plan.journeys.as_ref().unwrap().journeys[0].script;
    assert!(format!("{script:?}").contains("SITE=http://h/"), "{script:?}");
    let compared = |words: &[&str]| {
        let argv = ["loadstone", "compare"].into_iter().chain(words.iter().copied());
        let Command::Compare(compare) = Cli::try_parse_from(argv).unwrap().command else {
            unreachable!()
        };
        compare.into_task(&files()).map_err(|error| error.to_string())
    };
    let script = ["http://a/", "http://b/", "--script", "shop.js", "--", "other"];
    assert!(compared(&script).unwrap_err().contains("is not one of its scenarios"));
    assert!(compared(&["last~1", "last", "--", "x"]).unwrap_err().contains("as they are"));
}

/// `--users` of a ramp takes no value, as people from other tools expect.
#[test]
fn a_ramp_refuses_a_load_in_place_of_a_url() {
    for load in ["1..4", "10", "10/s"] {
        let argv = ["loadstone", "ramp", URL, "--users", load];
        let Command::Ramp(ramp) = Cli::try_parse_from(argv).unwrap().command else {
            unreachable!()
        };
        let refused = ramp.into_task(&files()).unwrap_err().to_string();
        assert!(refused.contains("--from and --to"), "{refused}");
    }
}

/// `--http` uses the version names of the plan's row in `compare` too.
#[test]
fn versions_have_one_name() {
    let row = plan::options::named("http").unwrap();
    let inputs = plan::options::Inputs { files: &plan::NoFiles, traces: &wan::NoTraces };
    for (name, version) in parse::VERSIONS {
        assert_eq!(row.check(name, inputs), Ok(()));
        assert_eq!(typed(&["https://h/", "--http", name]).unwrap().0.request.version, version);
    }
    let refused = row.check("", inputs).unwrap_err().0;
    assert_eq!(refused.matches(", ").count() + 1, parse::VERSIONS.len(), "{refused}");
}

/// No option is ignored: each one changes the plan or an output.
#[test]
fn every_option_of_run_does_something() {
    let mut command = Cli::command();
    command.build();
    let run = command.find_subcommand("run").unwrap();
    let mut unused: Vec<&str> = VALUES.iter().map(|(name, _)| *name).collect();
    for option in run.get_opts().chain(run.get_arguments().filter(|arg| !arg.is_positional())) {
        let Some(name) = option.get_long().filter(|name| *name != "help") else { continue };
        let value = VALUES.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        let takes_value = option.get_action().takes_values();
        assert_eq!(value.is_some(), takes_value, "--{name} needs a line in VALUES");
        unused.retain(|known| *known != name);
        // requirements of the option, with and without the option
        let (own, beside) =
            value.unwrap_or("").split_once(' ').unwrap_or((value.unwrap_or(""), ""));
        let list = match name {
            "random" | "once" => "--urls list.txt",
            "until-sure" => "--slo p99<1s",
            "token-per-user" => "--token-url http://a/ --token-client a --token-secret b",
            _ => beside,
        };
        let glue = if own.starts_with('=') || own.is_empty() { "" } else { " " };
        // the command names the URL itself
        let url = match name {
            "curl" => "",
            "early-data" | "migrate" => "https://h/",
            name if name.starts_with("ws-") => "ws://h/",
            "message"
            | "correlate"
            | "feeder"
            | "messages"
            | "message-rate"
            | "proto"
            | "proto-path"
            | "protoset"
            | "grpc-status"
            | "grpc-timeout"
            | "grpc-protocol"
            | "grpc-compress"
            | "grpc-keepalive"
            | "grpc-backend"
            | "response-messages"
            | "response-message-max" => "grpc://h/p.S/M",
            _ => URL,
        };
        let with = split(&format!("{url} --{name}{glue}{own} {list}"));
        let with: Vec<&str> = with.iter().map(String::as_str).collect();
        let with = typed(&with).unwrap_or_else(|error| panic!("--{name}: {error}"));
        let without = split(&format!("{} {list}", if url.is_empty() { URL } else { url }));
        let without: Vec<&str> = without.iter().map(String::as_str).collect();
        // a certificate without its key is an error: compare with the plain plan there
        let without = typed(&without).or_else(|_| typed(&[URL])).unwrap();
        assert_ne!(with, without, "--{name} changes nothing");
    }
    assert_eq!(unused, Vec::<&str>::new(), "options that are no more");
}

#[test]
fn demo_is_an_open_load_with_a_web_page() {
    let parse = |argv: &[&str]| {
        let argv = ["loadstone", "demo"].iter().chain(argv);
        let cli = Cli::try_parse_from(argv).map_err(|error| error.to_string())?;
        let Command::Demo(demo) = cli.command else { unreachable!() };
        demo.into_plan(URL.parse().unwrap()).map_err(|error| error.to_string())
    };
    let (plan, outputs) = parse(&[]).unwrap();
    let mut lines = tables(&plan);
    let default = tables(&Plan::for_url(URL.parse().unwrap()));
    lines.retain(|line| !default.contains(line));
    insta::assert_snapshot!(lines.join("\n"), @r#"
    [load] rate = "1000/s"
    [load] rate_to = "1000/s"
    [load] arrivals = "poisson"
    [load] burst = 1
    [load] connections_max = false
    [load] queue_max = false
    [stop] duration = "5s"
    [stop] warmup = "1s"
    "#);
    assert_eq!(outputs.html, Some("loadstone-demo.html".into()));
    assert!(parse(&["--rate", "0/s"]).is_err());
    assert!(parse(&["-d", "0"]).unwrap_err().starts_with("-d is 0"));
    assert!(parse(&["--html", "x", "--json", "x"]).unwrap_err().contains("same file"));
}

#[test]
fn site_options_reach_the_site() {
    let parse = |line: &str| {
        let words = split(line);
        let argv = ["loadstone".to_owned(), "site".to_owned()].into_iter().chain(words);
        let cli = Cli::try_parse_from(argv).map_err(|error| error.to_string())?;
        let Command::Site(site) = cli.command else { unreachable!() };
        match site.into_task().map_err(|error| error.to_string())? {
            SiteTask::Plain(config) => Ok(*config),
            other => Err(format!("{other:?}")),
        }
    };
    let config = parse("--listen 127.0.0.1:0 --delay exp:10ms --error-share 1% --twice --seed 4");
    let config = config.unwrap();
    assert_eq!(config.listen, ::site::Listen::parse("127.0.0.1:0").unwrap());
    assert_eq!(config.faults.misbehaviour, Some(::site::Misbehaviour::Twice));
    assert!(config.faults.delay.is_some() && config.seed == units::Seed(4));
    assert!(!config.null && !parse("").unwrap().faults.any());
    assert!(parse("--null").unwrap().null);
    for bad in ["--delay soon", "--garbage --twice", "--listen nowhere", "--colour red", "--delay"]
    {
        assert!(parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn options_of_the_norm_site_need_the_norm_site() {
    let parse = |line: &str| {
        let words = split(line);
        let argv = ["loadstone".to_owned(), "site".to_owned()].into_iter().chain(words);
        let cli = Cli::try_parse_from(argv).map_err(|error| error.to_string())?;
        let Command::Site(site) = cli.command else { unreachable!() };
        site.into_task().map_err(|error| error.to_string())
    };
    let norm = |line: &str| match parse(line) {
        Ok(SiteTask::Norm(task)) => task,
        other => panic!("{line} gave {other:?}"),
    };
    let task = norm(
        "--norm --listen localhost:0 --threads 2 --cpus 0 --log l --body-max 1M --connections-max 3 \
         --sleep-parallel --timing --break welcome,hw-type",
    );
    let settings = &task.settings;
    assert_eq!((settings.host.as_str(), settings.port, settings.threads), ("localhost", 0, 2));
    assert_eq!((settings.max_clients, settings.body_max), (3, 1 << 20));
    assert_eq!(settings.log_file, norm::LogFile::File("l".into()));
    assert!(settings.sleep_parallel && settings.timing && task.cpus == [0]);
    assert_eq!(settings.log_level, norm::Level::Debug);
    assert!(settings.breaks.has(norm::Break::Welcome));
    assert!(!settings.breaks.has(norm::Break::HwText));
    let task = norm("--timing --log-level warn --norm");
    assert_eq!(task.settings.log_level, norm::Level::Warn);
    let task = norm("--norm --listen [::1]:8080");
    assert_eq!((task.settings.host.as_str(), task.settings.port), ("[::1]", 8080));
    assert!(
        matches!(parse("--init tree"), Ok(SiteTask::Init(folder)) if folder.as_os_str() == "tree")
    );
    let table = [
        ("--norm --delay 5ms", "--delay is for the plain site"),
        ("--norm --null", "--null is for the plain site"),
        ("--norm --seed 4", "--seed is for the plain site"),
        ("--timing", "--timing is for the norm site: add --norm"),
        ("--break welcome", "--break is for the norm site: add --norm"),
        ("--log-level Info", "--log-level is for the norm site: add --norm"),
        ("--init tree --norm", "--init writes a tree out and serves nothing"),
        ("--init tree --listen :0", "--init writes a tree out and serves nothing"),
        ("--norm /nowhere", "there is no site.toml in /nowhere: write a tree with"),
        ("--norm --break nonsense", "--break \"nonsense\": unknown name; use one of\n  welcome "),
        ("--norm --log-level loud", "--log-level \"loud\": one of Debug, Info, Warn, Error"),
        ("--norm --listen unix:/tmp/x", "give --listen ADDR:PORT"),
        ("--norm --threads 65", "--threads must be 1 to 64 with --norm"),
        ("--norm --connections-max 100001", "--connections-max must be 1 to 100000"),
    ];
    for (line, found) in table {
        let error = parse(line).unwrap_err();
        assert!(error.contains(found), "{line} gave {error}");
    }
}

/// curl reads a file in this case.
#[test]
fn a_body_that_names_a_file_is_refused() {
    let why = typed(&[URL, "--body", "@post.json"]).unwrap_err();
    assert!(why.contains("give a file as --body-file post.json"), "{why}");
    for body in ["@", "@home and away", "a@b"] {
        assert!(typed(&[URL, "--body", body]).is_ok(), "{body}");
    }
}

#[test]
fn calibrate_bounds_its_steps() {
    let check = |argv: &[&str]| {
        let cli = Cli::try_parse_from(["loadstone", "calibrate"].iter().chain(argv)).unwrap();
        let Command::Calibrate(calibrate) = cli.command else { unreachable!() };
        calibrate.check().map_err(|error| error.to_string())
    };
    assert_eq!(check(&[]), Ok(()));
    assert_eq!(check(&["-d", "60s", "--json", "-", "--no-save"]), Ok(()));
    assert_eq!(
        check(&["-d", "2m"]).unwrap_err(),
        "-d is the length of a step here; give 100ms to 60s"
    );
    assert!(check(&["--json", ""]).is_err());
}

#[test]
fn an_open_load_has_no_more_streams_than_calls_on_a_connection() {
    let streams = |more: &str| {
        let words = split(&format!("{URL} --rate 9/s --http 2 {more}"));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        typed(&words).unwrap().0.connection.pipeline
    };
    assert_eq!(["", "--calls 7", "--close", "--calls 500"].map(streams), [100, 7, 1, 100]);
    assert_eq!(streams("--calls 9 --streams 3"), 3);
}

#[test]
fn the_manual_and_the_completions_name_every_option() {
    let page = String::from_utf8(man_page().unwrap()).unwrap();
    let script = String::from_utf8(completions(clap_complete::Shell::Bash)).unwrap();
    let mut command = Cli::command();
    command.build();
    for sub in command.get_subcommands() {
        for name in sub.get_arguments().filter_map(clap::Arg::get_long) {
            // roff writes a hyphen as \-
            assert!(page.contains(&name.replace('-', "\\-")), "{} --{name}", sub.get_name());
            assert!(script.contains(&format!("--{name}")), "{} --{name}", sub.get_name());
        }
    }
    assert!(page.contains("Local addresses to connect from"), "a rare option");
    assert!(page.starts_with(".ie \\n(.g") || page.starts_with(".TH"), "{}", &page[..80]);
}

#[test]
fn the_disk_reports_what_is_wrong_with_a_file() {
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    assert!(Disk.read(own).unwrap().starts_with(b"[package]"));
    let gone = Disk.read("no/such/file").unwrap_err();
    assert_eq!(gone, "\"no/such/file\" cannot be read: No such file or directory (os error 2)");
    assert!(
        Disk.read(env!("CARGO_MANIFEST_DIR")).unwrap_err().contains("cannot be read: Is a dir")
    );
}

/// The background load uses the HTTP version of the cases, given or implied.
#[test]
fn the_background_load_uses_the_cases_protocol() {
    for (words, expected) in [
        ("", HttpVersion::Http11),
        ("--only H", HttpVersion::Http2),
        ("--only Q-01", HttpVersion::Http3),
        ("--http 1.1 --only S-01", HttpVersion::Http11),
        ("--http 2", HttpVersion::Http2),
        ("--http 3", HttpVersion::Http3),
    ] {
        let words = split(words);
        let words = words.iter().map(String::as_str);
        let argv = ["loadstone", "torture", "--beside-rate", "9/s", URL].into_iter().chain(words);
        let Command::Torture(args) = Cli::try_parse_from(argv).unwrap().command else {
            unreachable!()
        };
        let url = if expected == HttpVersion::Http3 { "https://h/" } else { URL };
        let made = background_plan(&args, &url.parse().unwrap(), &files()).unwrap();
        assert_eq!(made.unwrap().0.request.version, expected, "{:?}", args.what);
    }
}

#[test]
fn a_script_of_k6_is_a_plan() {
    let (plan, outputs) = typed(&["shop.js"]).unwrap();
    assert_eq!(outputs.name, "shop.js");
    let journeys = plan.journeys.as_ref().unwrap();
    assert_eq!((journeys.base.as_str(), journeys.transactions()), ("http://h:81/", vec!["shop"]));
    let text = to_toml(&plan, Secrets::Shown);
    for line in ["users = 3", "duration = \"4s\"", "cookies = false"] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    assert!(text.contains(r#"slo = ["metric checks: mean>0.9", "p95<500ms"]"#), "{text}");
    assert_eq!(plan.not_imported, [""; 0]);
    // a printed plan needs no other file
    let again = plan::from_toml(&text, &plan::NoFiles).unwrap();
    assert_eq!(again.journeys.unwrap().journeys[0].script, journeys.journeys[0].script);
    // typed options replace those of the script
    let (plan, _) =
        typed(&["shop.js", "--rate", "50/s", "--slo", "p99<1s", "--", "HOST=z"]).unwrap();
    let text = to_toml(&plan, Secrets::Shown);
    for line in
        ["rate = \"50/s\"", "duration = \"4s\"", "slo = [\"p99<1s\"]", "url = \"http://z/\""]
    {
        assert!(text.contains(line), "{line}\n{text}");
    }
    let (plan, _) = typed(&["http://other:9/", "--script", "shop.js", "-n", "7"]).unwrap();
    assert_eq!((plan.stop.requests, plan.stop.duration), (Some(7), None));
    assert_eq!(plan.journeys.unwrap().base.as_str(), "http://other:9/");
    for (argv, why) in [
        (&["nowhere.js"][..], "nowhere.js does not determine its server"),
        (&["gone.js"], "\"gone.js\" cannot be read"),
        (&["shop.js", "--script", "shop.js"], "are both scripts"),
        (&["shop.js", "--compressed"], "sets Accept-Encoding itself"),
        (&["shop.js", "--", "other"], "\"other\" is not one of its scenarios (default)"),
    ] {
        let error = typed(argv).unwrap_err();
        assert!(error.contains(why), "{argv:?}: {error}");
    }
}

#[test]
fn a_recorder_listens_on_this_machine_only() {
    let typed = |argv: &[&str]| {
        let cli = Cli::try_parse_from(["loadstone", "record"].iter().chain(argv));
        let Command::Record(args) = cli.map_err(|error| error.to_string())?.command else {
            unreachable!()
        };
        args.check().map_err(|error| error.to_string())
    };
    assert_eq!(typed(&[]), Ok(()));
    assert_eq!(typed(&["--listen", "[::1]:0", "--upstream", "localhost:81"]), Ok(()));
    let refused = typed(&["--listen", "0.0.0.0:8888"]).unwrap_err();
    assert!(refused.contains("other machines could use the recorder"), "{refused}");
    assert_eq!(typed(&["--listen", "0.0.0.0:8888", "--public"]), Ok(()));
    assert!(typed(&["-n", "0"]).unwrap_err().contains("records nothing"));
    assert!(typed(&["--upstream", "http://u:p@h/"]).unwrap_err().contains("the login in it"));
}
