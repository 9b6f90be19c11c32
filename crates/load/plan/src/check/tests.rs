use super::*;
use crate::{HttpVersion, NoFiles};
use std::collections::BTreeMap;
use units::Nanos;

const HEAD: &str = "version = 1\n[check]\nbase = 'h:2020'\n";

fn read(text: &str) -> Result<CheckPlan, units::ParseError> {
    from_toml(&format!("{HEAD}{text}"), &Given::default(), &NoFiles)
}

fn step(text: &str) -> Step {
    let mut plan = read(&format!("[[step]]\nname = 'a'\n{text}")).unwrap();
    plan.steps.remove(0)
}

fn read_ask(text: &str) -> Ask {
    match step(text).action {
        Action::Ask(ask) => *ask,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_step_may_be_short() {
    let ask = read_ask("url = '/'");
    assert_eq!(ask.method, "GET");
    assert_eq!(ask.timeout, Nanos::from_secs(30));
    assert_eq!(ask.expect, Expect::default());
    assert_eq!(ask.jar.as_deref(), Some("plan"));
    assert!(ask.close);
}

#[test]
fn fields_keep_the_order_of_the_file() {
    let ask =
        read_ask("url = '/'\nform = { given = 'Flintstone', family = 'Fred', Submit = 'Send' }");
    assert_eq!(ask.method, "POST");
    let Body::Form(fields) = &ask.body else { panic!("{:?}", ask.body) };
    let names: Vec<&str> = fields.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["given", "family", "Submit"]);
}

#[test]
fn variables_are_put_in_when_the_file_is_read() {
    let text = "[vars]\nn = 5\nwho = 'a.b'\n[[step]]\nname = 'sleep ${n}'\nurl = '/sleep?${n}'\n\
        [step.expect]\nat-least = '${n}s ${n}s'\nbody = { regex = '^${who}$', contains = '$${n}' }\n";
    let plan = read(text).unwrap();
    assert_eq!(plan.steps[0].name, "sleep 5");
    let Action::Ask(ask) = &plan.steps[0].action else { panic!("{plan:?}") };
    assert_eq!(ask.url.settled().unwrap(), "/sleep?5");
    assert_eq!(ask.expect.at_least, Some(Nanos::from_secs(10)));
    assert_eq!(ask.expect.body.regex[0].settled().unwrap(), r"^a\.b$");
    assert_eq!(ask.expect.body.contains[0].settled().unwrap(), "${n}");
    let given = Given { set: vec![("n".into(), "1".into())], ..Given::default() };
    let plan = from_toml(&format!("{HEAD}{text}"), &given, &NoFiles).unwrap();
    assert_eq!(plan.steps[0].name, "sleep 1");
}

#[test]
fn captured_values_are_put_in_later() {
    let text = "[[step]]\nname = 'a'\nurl = '/'\ncapture = { id = { header = 'X-Id' } }\n\
        [[step]]\nname = 'b'\nurl = '/items/${id}'\nexpect = { body = { regex = '^${id}$' } }\n";
    let plan = read(text).unwrap();
    let Action::Ask(ask) = &plan.steps[1].action else { panic!("{plan:?}") };
    let captured = BTreeMap::from([("id".to_owned(), "7+".to_owned())]);
    assert_eq!(ask.url.settled(), None);
    assert_eq!(ask.url.expand(&captured).unwrap(), "/items/7+");
    assert_eq!(ask.expect.body.regex[0].expand(&captured).unwrap(), r"^7\+$");
    assert_eq!(ask.url.expand(&BTreeMap::new()).unwrap_err(), "${id} was not captured");
}

#[test]
fn a_step_for_another_variable_is_an_error() {
    let text = "[vars]\nmax = 3\n[[step]]\nname = 'a'\nurl = '/'\nwhen = { max = [1, 2] }\n";
    let skip = |set: &str| {
        let given = Given { set: vec![("max".into(), set.into())], ..Given::default() };
        from_toml(&format!("{HEAD}{text}"), &given, &NoFiles).unwrap().steps.remove(0).skip
    };
    assert_eq!(skip("3").unwrap(), "for max = 1 or 2, and it is 3");
    assert_eq!(skip("2"), None);
}

#[test]
fn headers_of_the_plan_are_replaced_or_left_out() {
    let text = "headers = { Accept = 'a', X-One = '1', X-Two = '2' }\n[[step]]\nname = 'a'\n\
        url = '/'\nheaders = { accept = 'b', X-Two = false }\n";
    let plan = read(text).unwrap();
    let Action::Ask(ask) = &plan.steps[0].action else { panic!("{plan:?}") };
    let shown: Vec<String> = ask
        .headers
        .iter()
        .map(|(name, value)| format!("{name}: {}", value.settled().unwrap()))
        .collect();
    assert_eq!(shown, ["X-One: 1", "accept: b"]);
}

#[test]
fn groups_and_folders_are_read() {
    let text = "[[step]]\nname = 'two'\ntogether = [ { name = 'x', url = '/1' }, \
        { name = 'y', url = '/2' } ]\nexpect = { order = ['y', 'x'], at-most = '2s' }\n\
        [[step]]\nname = 'tmp'\ndir = 'tmp'\nexpect = { empty = true }\n\
        [[step]]\nname = 'log'\nfile = 'var/log'\nwithin = '1s'\nexpect = { contains = 'a' }\n";
    let plan = read(text).unwrap();
    let Action::Together(group) = &plan.steps[0].action else { panic!("{plan:?}") };
    assert_eq!(group.order, ["y", "x"]);
    assert!(group.members.iter().all(|(_, ask)| !ask.close));
    let within = Nanos::from_secs(2);
    let tmp = Action::Folder { path: "tmp".into(), wanted: Entries::Empty, within };
    assert_eq!(plan.steps[1].action, tmp);
    assert!(matches!(&plan.steps[2].action, Action::File { path, .. } if path == "var/log"));
}

fn error_of(text: &str) -> String {
    match read(text) {
        Ok(plan) => format!("{text:?} was taken: {plan:?}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn wrong_files() {
    let one = |rest: &str| format!("[[step]]\nname = 'a'\nurl = '/'\n{rest}");
    let texts = [
        "".to_owned(),
        "colour = 'red'\n[[step]]\nname = 'a'\nurl = '/'".to_owned(),
        "[[step]]\nurl = '/'".to_owned(),
        "[[step]]\nname = ' '\nurl = '/'".to_owned(),
        "[[step]]\nname = 'a'".to_owned(),
        "[[step]]\nname = 'a'\nurl = '/'\nfile = 'x'".to_owned(),
        one("[[step]]\nname = 'a'\nurl = '/'"),
        one("metod = 'GET'"),
        one("method = 3.5.1"),
        one("method = 'CONNECT'"),
        one("http = 4"),
        one("repeat = 0"),
        one("repeat = 'x'"),
        one("user = 'fred'"),
        one("close = 'yes'"),
        one("timeout = 'soon'"),
        one("timeout = 0"),
        one("body = 'x'\nform = { a = 'b' }"),
        one("body-file = 'x'"),
        one("upload = { field = 'f' }"),
        one("upload = { field = 'f', text = 'x', times = -1 }"),
        one("upload = { field = 'f', text = 'xxxxxxxxxx', times = 4000000000 }"),
        one("when = { n = 1 }"),
        one("headers = 'Accept: x'"),
        one("expect = { status = 20 }"),
        one("expect = { status = true }"),
        one("expect = { statuses = 200 }"),
        one("expect = { outcome = 'shut' }"),
        one("expect = { outcome = 'closed', status = 200 }"),
        one("expect = { headers = { A = { like = 'b' } } }"),
        one("expect = { body = { regex = '(' } }"),
        one("expect = { body = { sha256 = 'abc' } }"),
        one("expect = { body = { json = { a = 1 } } }"),
        one("expect = { at-least = '2s', at-most = '1s' }"),
        one("capture = { id = {} }"),
        one("body = '${id}'"),
        one("body = '${id'"),
        "[[step]]\nname = 'a'\ntogether = [ { name = 'x', url = '/' } ]".to_owned(),
        "[[step]]\nname = 'a'\ntogether = [ { name = 'x', url = '/' }, { name = 'x', url = '/' } ]"
            .to_owned(),
        "[[step]]\nname = 'a'\ntogether = [ { name = 'x', url = '/' }, { name = 'y', url = '/' } ]\n\
            expect = { order = ['z'] }"
            .to_owned(),
        "[[step]]\nname = 'a'\ndir = 'tmp'".to_owned(),
        "[[step]]\nname = 'a'\ndir = 'tmp'\nexpect = { empty = false }".to_owned(),
        "[[step]]\nname = 'a'\nfile = '../x'\nexpect = { contains = 'a' }".to_owned(),
        "[[step]]\nname = 'a'\nfile = 'x'\nexpect = {}".to_owned(),
    ];
    let mut messages: Vec<String> = texts.iter().map(|text| error_of(text)).collect();
    let bare = |text: &str, set: &[(&str, &str)]| {
        let set = set.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        from_toml(text, &Given { set, ..Given::default() }, &NoFiles).unwrap_err().to_string()
    };
    messages.push(bare("", &[]));
    messages.push(bare("version = 2", &[]));
    messages.push(bare("version = 1", &[]));
    messages.push(bare("version = 1\n[check]\nname = 'x'", &[]));
    messages.push(bare("version = 1\n[check]\nbase = 'ftp://h'", &[]));
    messages.push(bare("version = 1\n[check]\nbase = 'http://a:b@h'", &[]));
    messages.push(bare(HEAD, &[("n", "1")]));
    insta::assert_snapshot!(messages.join("\n"));
}

#[test]
fn steps_on_a_websocket_are_read_or_refused() {
    let step = |rest: &str| format!("[[step]]\nname = 'a'\nconnect = '/ws'\n{rest}");
    let talk = |rest: &str| {
        let plan = read(&step(rest)).unwrap();
        let Action::Ask(ask) = &plan.steps[0].action else { panic!("{rest}: not a request") };
        (format!("{:?}", ask.talk), ask.expect.statuses.clone(), ask.version)
    };
    let closed = ("[Close(1000)]".to_owned(), vec![(101, 101)], HttpVersion::Http11);
    assert_eq!(talk(""), closed);
    assert_eq!(talk("http = '2'").2, HttpVersion::Http2);
    assert_eq!(talk("http = '3'").2, HttpVersion::Http3);
    let refused = talk("expect = { status = 403 }").1;
    assert_eq!(refused, [(403, 403)]);
    let moves =
        talk("talk = [{ send = 'a', expect = {} }, { expect = { count = 2 } }, { closed = 1011 }]")
            .0;
    let kinds = ["Send(Text(", "count: 1", "count: 2", "Closed(1011)]"];
    let mut from = 0;
    for kind in kinds {
        from += moves[from..].find(kind).unwrap_or_else(|| panic!("{kind} after {from}: {moves}"));
    }
    for (rest, why) in [
        ("talk = [{ close = 1000 }, { send = 'a' }]", "closed before this move"),
        ("talk = [{ close = 1005 }]", "not a code that a client may send"),
        ("talk = [{ send = 'a', close = 1000 }]", "a move is one of"),
        ("talk = [{ expect = { count = 0 } }]", "give 1 to 1000000"),
        ("talk = [{ expect = { status = 200 } }]", "status"),
        ("talk = [{}]", "a move is one of"),
        ("body = 'x'", "a GET without a body"),
        ("http = '1.0'", "HTTP/1.0 has no WebSockets"),
        ("url = '/'", "not both"),
    ] {
        let text = error_of(&step(rest));
        assert!(text.contains(why), "{rest}: {text}");
    }
}

proptest::proptest! {
    /// No text makes the reader panic.
    #[test]
    fn any_text_is_read_or_refused(text in ".{0,200}") {
        drop(from_toml(&text, &Given::default(), &NoFiles));
        drop(read(&text));
    }

    /// The same for plans assembled from valid and invalid pieces.
    #[test]
    fn any_pieces_are_read_or_refused(picks in proptest::collection::vec(0..PIECES.len(), 0..20)) {
        let text: String = picks.iter().map(|pick| PIECES[*pick]).collect();
        drop(read(&text));
    }
}

const PIECES: &[&str] = &[
    "[[step]]\n",
    "name = 'a'\n",
    "name = '${x}'\n",
    "url = '/'\n",
    "connect = '/'\n",
    "talk = [{ send = 'a' }, { expect = {} }, { closed = 1 }]\n",
    "url = '//'\n",
    "url = 'http://'\n",
    "[vars]\n",
    "x = 1\n",
    "[step.expect]\n",
    "status = 200\n",
    "status = [1, '2xx']\n",
    "body = ''\n",
    "body = { json = { '' = [1, {}] } }\n",
    "[[step.together]]\n",
    "file = 'a'\n",
    "dir = ''\n",
    "empty = true\n",
    "repeat = 99999999999999999999\n",
    "at-least = '-1s'\n",
    "[step.capture]\n",
    "x = { regex = '(' }\n",
    "x = { json = '/' }\n",
    "[step.upload]\n",
    "field = 'f'\n",
    "text = '${'\n",
    "times = 2\n",
    "when = 1\n",
    "1979-05-27",
    "\0",
    "=",
    "\"",
];
