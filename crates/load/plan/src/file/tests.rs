use super::keys::PlanTraces;
use super::*;
use crate::options::{Given, Inputs, KeyValue, Setting};
use crate::secrets::MASK;
use crate::*;
use proptest::prelude::*;
use std::collections::BTreeMap;
use units::{Nanos, Rate};

mod arbitrary;
mod scenarios;

struct Texts(BTreeMap<&'static str, &'static [u8]>);

impl FileSource for Texts {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        match self.0.get(path) {
            Some(bytes) => Ok(bytes.to_vec()),
            None => Err(format!("{path}: no such file")),
        }
    }
}

fn files() -> Texts {
    let files: [(&str, &[u8]); 6] = [
        ("train.up", b"1\n2\n2\n"),
        ("bad.down", b"1\n\n0\n"),
        ("list.txt", b"/a\n/b weight=3\n"),
        ("body.bin", b"\xff\x00"),
        ("key.pem", b"-----BEGIN PRIVATE KEY-----\n"),
        ("latin.txt", b"http://h/\xe4"),
    ];
    Texts(files.into())
}

fn plan() -> Plan {
    Plan::for_url("http://h/".parse().unwrap())
}

#[test]
fn the_default_plan_as_a_file() {
    insta::assert_snapshot!(to_toml(&plan(), Secrets::Masked));
}

/// A stored plan needs no other file.
#[test]
fn a_plan_embeds_its_traces() {
    let head = "version = 1\nurl = \"http://h/\"\n[connection]\n";
    let read = |rest: &str, files: &dyn FileSource| from_toml(&format!("{head}{rest}"), files);
    let plan = read("path = \"rtt=9ms, up-trace=train.up\"", &files()).unwrap();
    let kept = to_toml(&plan, Secrets::Shown);
    assert!(kept.contains("\"train.up\" = \"1*2 0\"\n"), "{kept}");
    assert_eq!(from_toml(&kept, &NoFiles).unwrap(), plan);
    let crowd = "clients = \"train=[up-trace=train.up]:50%, 3g:50%\"";
    let plan = read(crowd, &files()).unwrap();
    assert_eq!(from_toml(&to_toml(&plan, Secrets::Shown), &NoFiles).unwrap(), plan);
    for (rest, found) in [
        ("path = \"trace=bad.down\"", "the trace \"bad.down\": line 3: 0 is below the line before"),
        ("path = \"trace=nowhere\"", "[connection] path: "),
        ("traces = { \"x\" = \"1*z\" }", "[connection] traces: \"x\": \"1*z\" is not a span"),
    ] {
        let error = read(rest, &files()).unwrap_err().0;
        assert!(error.contains(found), "{error}");
    }
}

#[test]
fn a_file_may_be_short() {
    let read = from_toml("version = 1\nurl = 'h'\n", &NoFiles).unwrap();
    assert_eq!(read, plan());
}

#[test]
fn logins_that_are_proved_are_masked_and_kept() {
    let read = |request: &str| {
        from_toml(&format!("version = 1\nurl = 'h'\n[request]\n{request}"), &NoFiles)
    };
    for (request, masked) in [
        ("digest = 'fred:hush'", "digest = \"fred:***masked***\""),
        ("user = 'KEY:hush'\naws_sigv4 = 'aws:amz:r:s3'", "user = \"KEY:***masked***\""),
    ] {
        let plan = read(request).unwrap();
        assert_eq!(from_toml(&to_toml(&plan, Secrets::Shown), &NoFiles).unwrap(), plan);
        let shown = to_toml(&plan, Secrets::Masked);
        assert!(shown.contains(masked) && !shown.contains("hush"), "{shown}");
        assert!(from_toml(&shown, &NoFiles).unwrap_err().0.contains("its secret was masked"));
    }
    for (request, why) in [
        ("aws_sigv4 = 'aws'", "give key and secret too, as user"),
        ("aws_sigv4 = 'a/b'\nuser = 'k:s'", "is not the scope of a signature"),
        ("digest = 'a:b'\nuser = 'c:d'", "give one login only"),
    ] {
        let error = read(request).unwrap_err().0;
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn secrets_in_bodies_and_messages_are_masked() {
    for (plan, key) in [
        ("url = 'h'\n[request]\nbody = 'password=hush&n=kept'", "[request] body"),
        (
            "[[targets]]\nurl = 'h'\nbody = '{\"token\": \"hush\", \"n\": \"kept\"}'",
            "body of target 1",
        ),
        (
            "[[targets]]\nurl = 'h'\nraw = \"POST /?sid=hush HTTP/1.1\\nHost: h\\n\\npwd=hush&n=kept\"",
            "raw of target 1",
        ),
        ("url = 'ws://h'\n[websocket]\nmessage = 'secret=hush&n=kept'", "[websocket] message"),
    ] {
        let plan = from_toml(&format!("version = 1\n{plan}\n"), &NoFiles).unwrap();
        let masked = to_toml(&plan, Secrets::Masked);
        assert!(!masked.contains("hush") && masked.contains("kept"), "{masked}");
        let refused = from_toml(&masked, &NoFiles).unwrap_err().0;
        assert!(refused.contains(&format!("{key}: its secret was masked")), "{refused}");
        assert_eq!(from_toml(&to_toml(&plan, Secrets::Shown), &NoFiles).unwrap(), plan);
    }
}

/// A plan with a secret in each place that can hold a secret.
fn plan_with_secrets() -> Plan {
    let mut plan = plan();
    plan.request.auth = Some(Auth::Basic { user: "fred".into(), password: "hush1".into() });
    plan.request.headers = vec![
        ("Proxy-Authorization".into(), "Basic hush2".into()),
        ("X-Api-Key".into(), "hush3".into()),
        ("Accept".into(), "text/html".into()),
        ("cookie".into(), "id=hush4".into()),
    ];
    plan.connection.proxy = Some("http://me:hush5@proxy:3128".parse().unwrap());
    plan.tls.cert = Some(b"-----BEGIN CERTIFICATE-----\nMII\n".to_vec());
    plan.tls.key = Some(b"-----BEGIN PRIVATE KEY-----\nhush6\n".to_vec());
    plan
}

#[test]
fn secrets_are_masked_and_a_masked_plan_is_refused() {
    let shown = to_toml(&plan_with_secrets(), Secrets::Masked);
    assert!(!shown.contains("hush"), "{shown}");
    insta::assert_snapshot!(shown);
    // each mask alone is enough to reject the plan
    let masked: Vec<&str> = shown.lines().filter(|line| line.contains(MASK)).collect();
    assert_eq!(masked.len(), 4, "user, headers, proxy and key: {masked:?}");
    let open = to_toml(&plan_with_secrets(), Secrets::Shown);
    assert_eq!(from_toml(&open, &NoFiles).unwrap(), plan_with_secrets());
    let mut messages = Vec::new();
    for line in masked {
        let key = line.split(" = ").next().unwrap();
        let start = open.find(&format!("\n{key} = ")).unwrap() + 1;
        let end = next_key(&open, start);
        let one = format!("{}{line}\n{}", &open[..start], &open[end..]);
        messages.push(from_toml(&one, &NoFiles).unwrap_err().to_string());
    }
    insta::assert_snapshot!(messages.join("\n"), @"
    the plan's [request] headers: its secret was masked when the plan was printed; insert it before the run
    the plan's [request] user: its secret was masked when the plan was printed; insert it before the run
    the plan's [connection] proxy: its secret was masked when the plan was printed; insert it before the run
    the plan's [tls] key: its secret was masked when the plan was printed; insert it before the run
    ");
    let bearer = "version = 1\nurl = 'h'\n[request]\nbearer = '***masked***'\n";
    assert!(from_toml(bearer, &NoFiles).unwrap_err().0.contains("[request] bearer: its secret"));
}

/// Returns the end of the value of the key at `start`: values may span lines.
fn next_key(text: &str, start: usize) -> usize {
    let rest = text[start..].match_indices('\n').map(|(at, _)| start + at + 1);
    let begins = |at: &usize| {
        let line = text[*at..].lines().next().unwrap_or("");
        line.is_empty() || line.split(" = ").count() == 2 && !line.starts_with('-')
    };
    rest.into_iter().find(begins).unwrap_or(text.len())
}

#[test]
fn every_key_can_be_written_by_hand() {
    let text = include_str!("tests/full.toml");
    let plan = from_toml(text, &files()).unwrap();
    assert_eq!(validate(&plan), Ok(()));
    insta::assert_snapshot!(to_toml(&plan, Secrets::Shown));
}

#[test]
fn a_path_is_kept_as_it_was_typed() {
    let text = "version = 1\nurl = 'h'\n[connection]\npath = '3g, loss=1%'";
    let plan = from_toml(text, &files()).unwrap();
    assert_eq!(validate(&plan), Ok(()));
    let printed = to_toml(&plan, Secrets::Masked);
    assert!(printed.contains("\npath = \"3g, loss=1%\"\n"), "{printed}");
    assert_eq!(from_toml(&printed, &files()), Ok(plan));
    let found = error_of("url = 'h'\n[connection]\npath = '3gg'");
    assert!(found.contains("[connection] path: ") && found.contains("is not a profile"), "{found}");
    let found = error_of("url = 'h'\n[connection]\npath = 'trace=x.txt'");
    assert!(
        found.contains("path: \"trace=x.txt\" is not a path: trace: x.txt: no such file"),
        "{found}"
    );
}

#[test]
fn a_script_is_kept_whole() {
    let text = "version = 1\nurl = 'h'\n[script]\ntext = 'x = 1'\nargs = ['one', '-x']";
    let plan = from_toml(text, &files()).unwrap();
    assert_eq!(validate(&plan), Ok(()));
    let script = plan.script.clone().unwrap();
    assert_eq!((script.name.as_str(), script.text.as_slice()), ("script", &b"x = 1"[..]));
    assert_eq!(script.args, ["one", "-x"]);
    let printed = to_toml(&plan, Secrets::Masked);
    assert!(printed.contains("[script]\nname = \"script\"\ntext = \"x = 1\"\n"), "{printed}");
    assert_eq!(from_toml(&printed, &files()), Ok(plan));
    let named = from_toml("version = 1\nurl = 'h'\n[script]\ntext_file = 'list.txt'", &files());
    assert_eq!(named.unwrap().script.unwrap().name, "list.txt");
    for (table, why) in [
        ("", "the plan's [script] text: it is missing; give it here or as text_file"),
        ("text = 'x'\ntext_file = 'list.txt'", "the plan's [script] text: give it once"),
        ("text_file = 'none.txt'", "the plan's [script] text_file: "),
        ("file = 'x'", "unknown field `file`"),
    ] {
        let message = error_of(&format!("url = 'h'\n[script]\n{table}"));
        assert!(message.contains(why), "{message}");
    }
}

#[test]
fn a_list_has_no_false_and_a_depth_one_name() {
    let message = error_of("url = 'h'\n[tls]\nalpn = [false]");
    assert!(message.contains("it cannot be false"), "{message}");
    let message =
        error_of("url = 'h'\n[request]\nhttp = '2'\n[connection]\npipeline = 2\nstreams = 3");
    assert!(message.contains("it is the HTTP/2 name of pipeline: give one of them"), "{message}");
}

fn error_of(text: &str) -> String {
    match from_toml(&format!("version = 1\n{text}"), &files()) {
        Ok(plan) => format!("{text:?} was taken: {:?}", plan.request),
        Err(error) => error.to_string(),
    }
}

#[test]
fn wrong_files() {
    let messages: Vec<String> = [
        "",
        "url = 'ftp://h'",
        "url = 'h'\ncolour = 'red'",
        "url = 'h'\n[load]\nuser = 3",
        "url = 'h'\nurl = 'i'",
        "url = 'h'\n[[targets]]\nurl = 'i'",
        "[[targets]]\nweight = 1",
        "[[targets]]\nurl = 'i'\nweight = 0",
        "[[targets]]\nurl = 'http://fred@i'",
        "urls_file = 'list.txt'",
        "urls_file = 'none.txt'",
        "urls_file = 'latin.txt'",
        "url = 'h'\n[load]\nusers = 1\nrate = 5",
        "url = 'h'\n[load]\nusers = -1",
        "url = 'h'\n[load]\nusers = false",
        "url = 'h'\n[load]\nburst = 2",
        "url = 'h'\n[load]\nrate = '5/s'\nthink = '1s'",
        "url = 'h'\n[load]\nrate = '5..9/s'\nrate_to = 3",
        "url = 'h'\n[load]\nrate = nan",
        "url = 'h'\n[load]\nrate = -5",
        "url = 'h'\norder = 'sideways'",
        "url = 'h'\n[stop]\nduration = true",
        "url = 'h'\n[stop]\nduration = 'soon'",
        "url = 'h'\n[request]\nbody = 'x'\nbody_file = 'body.bin'",
        "url = 'h'\n[request]\nbody_base64 = '?'",
        "url = 'h'\n[request]\nheaders = ['x']",
        "url = 'http://a:b@h'\n[request]\nuser = 'c:d'",
        "url = 'h'\n[connection]\nsend_buffer = '8G'",
        "url = 'h'\n[expect]\nstatus = [20]",
        "url = 'h'\n[measure]\nslo = ['fast']",
        "url = 'h'\n[measure]\nfold = ['user']",
        "url = 'h'\n[driver]\nnice = 99999999999",
    ]
    .map(error_of)
    .into();
    let version = |text| from_toml(text, &NoFiles).unwrap_err().to_string();
    let messages =
        [messages, vec![version("url = 'h'"), version("version = 2\nurl = 'h'")]].concat();
    insta::assert_snapshot!(messages.join("\n"));
}

#[test]
fn a_think_time_needs_a_unit() {
    for (value, typed) in [("300", "300"), ("0.5", "0.5"), ("'100..300'", "100")] {
        let text = format!("version = 1\nurl = 'h'\n[load]\nthink = {value}");
        let error = from_toml(&text, &NoFiles).unwrap_err().to_string();
        let expected = format!("[load] think: \"{typed}\" has no unit: write {typed}ms");
        assert!(error.contains(&expected), "{error}");
    }
}

/// Steps with whole URLs need no URL of the plan; a first step with a path needs it.
#[test]
fn the_first_step_may_give_the_url() {
    let plan = |first: &str| {
        from_toml(
            &format!(
                "version = 1\n[[journey]]\nname = 'j'\n[[journey.step]]\nname = 'a'\n\
                 url = '{first}'\n[[journey.step]]\nname = 'b'\nurl = '/two'\n\
                 json = {{ url = 'http://other/' }}"
            ),
            &NoFiles,
        )
    };
    let journeys = plan("https://h:8443/one?x=1").unwrap().journeys.unwrap();
    assert_eq!(journeys.base.as_str(), "https://h:8443/");
    let error = plan("/one").unwrap_err().to_string();
    assert!(error.starts_with("the plan has no URL: give `url"), "{error}");
}

#[test]
fn a_body_without_a_method_is_a_post() {
    let method = |text: &str| from_toml(&format!("version = 1\nurl = 'h'\n{text}"), &files());
    let post = method("[request]\nbody = ''").unwrap();
    assert_eq!((post.request.method.as_str(), post.request.body), ("POST", Some(Vec::new())));
    let named = method("[request]\nbody = 'x'\nmethod = 'PUT'").unwrap();
    assert_eq!(named.request.method, "PUT");
    let listed = from_toml("version = 1\n[[targets]]\nurl = 'h'\nbody = 'x'", &files()).unwrap();
    assert_eq!(listed.targets[0].method.as_deref(), Some("POST"));
}

#[test]
fn a_stop_rule_replaces_the_default_one() {
    let stop =
        |text: &str| from_toml(&format!("version = 1\nurl = 'h'\n{text}"), &files()).unwrap().stop;
    assert_eq!(stop("").duration, Some(Nanos::from_secs(10)));
    assert_eq!(stop("[stop]\nwarmup = '1s'").duration, Some(Nanos::from_secs(10)));
    assert_eq!(stop("[stop]\nrequests = 5").duration, None);
    assert_eq!(stop("order = 'once'").duration, None);
    assert_eq!(
        stop("[stop]\nrequests = 5\nduration = '2.5s'").duration,
        Some(Nanos::from_millis(2_500))
    );
}

#[test]
fn rates_are_kept_to_the_last_bit() {
    for rate in [1.0 / 3.0, 0.1 + 0.2, 2_000.0, 1e-9, 1e15, 123_456.789] {
        let mut plan = plan();
        let (from, to) = (Rate(rate), Rate(rate * 2.0));
        let arrivals = Arrivals { to, gaps: Gaps::Poisson, ..Arrivals::constant(from) };
        plan.load = Load::Open { arrivals, session: None, connections_max: None, queue_max: None };
        let read = from_toml(&to_toml(&plan, Secrets::Shown), &NoFiles).unwrap();
        assert_eq!(read.load, plan.load);
    }
}

fn show_key(plan: &Plan, key: &str) -> (&'static str, KeyValue) {
    let row = options::all().find(|row| row.field.key == key).unwrap();
    (row.field.show)(plan, Secrets::Shown)
}

proptest! {
    /// A printed plan is read back unchanged.
    #[test]
    fn a_printed_plan_is_read_back_unchanged(plan in arbitrary::plan()) {
        let text = to_toml(&plan, Secrets::Shown);
        match from_toml(&text, &NoFiles) {
            Ok(read) => prop_assert_eq!(read, plan, "{}", text),
            Err(error) => prop_assert!(false, "{error}\n{text}"),
        }
    }

    /// A row's printed value sets the same value in another plan, whatever that contains. A load
    /// and a request are set as a whole, because their rows depend on each other.
    #[test]
    fn each_row_sets_its_printed_value(plan in arbitrary::plan()) {
        let (_, KeyValue::Texts(held)) = show_key(&plan, "connection.traces") else { panic!() };
        let traces = PlanTraces::read(held, &NoFiles).unwrap();
        let inputs = Inputs { files: &NoFiles, traces: &traces };
        let given = |row: &'static Setting| {
            let (ending, value) = (row.field.show)(&plan, Secrets::Shown);
            Given { row, ending, value }
        };
        let put = |rows: &[&'static Setting]| {
            let mut other = tests::plan();
            let given = rows.iter().map(|row| given(row)).collect();
            options::put(&mut other, given, inputs).map(|()| other)
        };
        for table in TABLES {
            let rows = options::rows_of(table).into_iter();
            let rows = rows.filter(|row| row.field.key != "connection.traces" && (row.shown)(&plan));
            let rows: Vec<&Setting> = rows.collect();
            let at_once = if ["load", "request"].contains(&table) { rows.len() } else { 1 };
            for rows in rows.chunks(at_once) {
                let other = put(rows);
                prop_assert!(other.is_ok(), "{:?}", other);
                for row in rows {
                    let (ending, value) = (row.field.show)(other.as_ref().unwrap(), Secrets::Shown);
                    let it = given(row);
                    prop_assert_eq!((ending, value), (it.ending, it.value), "{:?}", row);
                }
            }
        }
    }

    /// A masked plan shows none of its secrets, and is refused exactly when it had a secret.
    #[test]
    fn a_masked_plan_is_refused_if_it_had_secrets(plan in arbitrary::plan()) {
        let text = to_toml(&plan, Secrets::Masked);
        let read = from_toml(&text, &NoFiles);
        if text.contains(MASK) {
            prop_assert!(read.is_err());
        } else {
            prop_assert_eq!(read, Ok(plan));
        }
    }

    /// No text makes the reader panic.
    #[test]
    fn any_text_is_read_or_refused(text in any::<String>()) {
        drop(from_toml(&text, &files()));
        drop(from_toml(&format!("version = 1\n{text}"), &files()));
    }

    /// The same for files with damaged or misplaced lines.
    #[test]
    fn any_damaged_file_is_read_or_refused(
        cuts in prop::collection::vec((any::<prop::sample::Index>(), "[a-z0-9 ='\"\\[\\]{}.,-]{0,8}"), 1..4),
        plan in arbitrary::plan(),
    ) {
        let mut text = to_toml(&plan, Secrets::Shown);
        for (at, put) in cuts {
            let places: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
            let (from, to) = (places[at.index(places.len())], text.len());
            let to = text[from..].char_indices().nth(put.len() / 2).map_or(to, |(n, _)| from + n);
            text.replace_range(from..to, &put);
        }
        if let Ok(plan) = from_toml(&text, &files()) {
            drop(validate(&plan));
        }
    }
}

/// An end that is removed, and stages.
#[test]
fn stages_set_the_length_of_a_run_without_another_end() {
    let text = "version = 1\nurl = 'h'\n[load]\nstages = '10s:5'\n[stop]\nrequests = false\n";
    let plan = from_toml(text, &NoFiles).unwrap();
    assert_eq!(plan.stop.duration, Some(Nanos::from_secs(10)));
}

/// The setup may log in on another server.
#[test]
fn without_a_url_the_base_is_the_server_of_the_journey() {
    let base = |steps: &str| {
        let text = format!("version = 1\n{steps}");
        from_toml(&text, &NoFiles)
            .map(|plan| (plan.journeys.unwrap().base.as_str().to_owned(), plan.request.version))
    };
    let setup = "[[setup]]\nname = 'login'\nurl = 'http://auth:1/login'\n";
    let journey =
        |step: &str| format!("[[journey]]\nname = 'j'\n[[journey.step]]\nname = 's'\n{step}\n");
    let of = |steps: String| base(&steps).map(|(base, _)| base);
    assert_eq!(
        of(setup.to_owned() + &journey("url = 'http://shop:2/a'")).unwrap(),
        "http://shop:2/"
    );
    // relative steps are on the only server that is named
    assert_eq!(of(setup.to_owned() + &journey("url = '/a'")).unwrap(), "http://auth:1/");
    assert!(of(journey("url = '/a'")).unwrap_err().to_string().contains("has no URL"));
    let grpc = base(&(setup.to_owned() + &journey("grpc = 'grpcs://shop:2/a.B/C'"))).unwrap();
    assert_eq!(grpc, ("https://shop:2/".to_owned(), HttpVersion::Http2));
}

#[test]
fn only_grpc_steps_have_the_fields_of_compressed_messages() {
    let text = "version = 1\nurl = 'grpc://h:1'\n[grpc]\ncompress = 'gzip'\n[[journey]]\n\
        name = 'j'\n[[journey.step]]\nname = 'page'\nurl = '/page'\n[[journey.step]]\n\
        name = 'call'\ngrpc = 'a.B/C'\n";
    let plan = from_toml(text, &NoFiles).unwrap();
    assert!(plan.request.headers.is_empty());
    let fields = |row: usize| {
        let steps = plan.journeys.as_ref().unwrap().steps();
        let names = steps[row].ask.headers.iter().map(|(name, _)| name.clone());
        names.filter(|name| name.starts_with("grpc-")).collect::<Vec<String>>()
    };
    assert_eq!(fields(0), [""; 0]);
    assert_eq!(fields(1), ["grpc-encoding", "grpc-accept-encoding"]);
    let shown = to_toml(&plan, Secrets::Shown);
    assert_eq!(to_toml(&from_toml(&shown, &NoFiles).unwrap(), Secrets::Shown), shown);
}
