use crate::check::Body;
use crate::journey::{FeederOrder, JourneyPart, JourneyPlan, ProgramOutline, UsedUp};
use crate::{
    FileSource, Load, NoFiles, Plan, ScriptPlan, Secrets, from_masked_toml, from_toml,
    to_brief_toml, to_toml, validate,
};
use url::Url;

const HEAD: &str = "version = 1\nurl = 'http://h:81/shop/'\n";
const ONE: &str = "[[journey]]\nname = 'j'\n[[journey.step]]\nname = 's'\nurl = '/x'\n";

/// A few files.
struct TestFiles;

impl FileSource for TestFiles {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        match path {
            "users.csv" => Ok(b"name, plan\nann,gold\n\"b,b\",free\n".to_vec()),
            "users.jsonl" => {
                Ok(b"{\"name\": \"ann\", \"age\": 7}\n{\"age\": 8, \"name\": \"b\"}\n".to_vec())
            }
            "empty.csv" => Ok(b"name,plan\n".to_vec()),
            "ragged.csv" => Ok(b"name,plan\na\n".to_vec()),
            "twice.csv" => Ok(b"name,name\na,b\n".to_vec()),
            "bad.jsonl" => Ok(b"{\"a\": 1}\n{\"b\": 1}\n".to_vec()),
            "visit.lua" => Ok(b"function journey(user) end".to_vec()),
            "body.bin" => Ok(vec![0, 159, 146, 150]),
            other => Err(format!("\"{other}\" cannot be read: no such file")),
        }
    }
}

fn read(text: &str) -> Result<Plan, String> {
    from_toml(&format!("{HEAD}{text}"), &TestFiles).map_err(|error| error.0)
}

fn journeys(text: &str) -> JourneyPlan {
    read(text).unwrap().journeys.unwrap()
}

fn refused(text: &str) -> String {
    match read(text) {
        Err(why) => why,
        Ok(plan) => {
            let problems = validate(&plan).err().unwrap_or_default();
            problems.into_iter().map(|problem| problem.text).collect::<Vec<_>>().join("; ")
        }
    }
}

#[test]
fn a_journey_may_be_short() {
    let plan = read(ONE).unwrap();
    assert!(validate(&plan).is_ok());
    assert!(plan.request.cookies, "users have cookies");
    assert_eq!(plan.targets.len(), 1);
    assert_eq!(plan.targets[0].name.as_deref(), Some("s"));
    assert_eq!(plan.targets[0].url.as_str(), "http://h:81/x");
    let plan = read(&format!("[load]\nrate = '5/s'\n{ONE}")).unwrap();
    let Load::Open { session: Some(session), .. } = &plan.load else { panic!("{:?}", plan.load) };
    assert_eq!(session.calls, 1, "an iteration is a session");
    assert!(validate(&plan).is_ok());
}

#[test]
fn names_find_their_values() {
    let text = "[vars]\nsection = 'a b'\n[[feeder]]\nname = 'u'\nfile = 'users.csv'\n\
        [[setup]]\nname = 'key'\nurl = '/key'\ncapture = { key = { json = '/key' } }\n\
        [[journey]]\nname = 'j'\n[[journey.step]]\nname = 'one'\nurl = '/{{section}}/{{ u.name }}?k={{key}}'\n\
        capture = { id = { json = '$.id' }, kept = { json = '$.t', scope = 'user' } }\n\
        [[journey.step]]\nname = 'two'\nurl = '/{{id}}/{{user.number}}/{{iteration.number}}'\n\
        [[journey]]\nname = 'k'\n[[journey.step]]\nname = 'three'\nurl = '/{{kept}}'\n\
        [[teardown]]\nname = 'bye'\nurl = '/bye/{{key}}'\n";
    let plan = read(text).unwrap();
    let names: Vec<_> = plan.targets.iter().map(|it| it.name.clone().unwrap()).collect();
    assert_eq!(names, ["one", "two", "three"]);
    let journeys = plan.journeys.unwrap();
    assert_eq!(journeys.feeders_of(&journeys.journeys[0]), [0]);
    assert_eq!(journeys.feeders_of(&journeys.journeys[1]), [0; 0]);
    assert_eq!(journeys.captures(), [("one", "id"), ("one", "kept")]);
    assert_eq!(journeys.steps()[0].ask.url.shown(), "/a%20b/{u.name}?k={key}");
}

#[test]
fn values_are_encoded_for_their_place() {
    let text = "[[feeder]]\nname = 'f'\ngenerate = { v = ['x'] }\n[[journey]]\nname = 'j'\n\
        [[journey.step]]\nname = 's'\nurl = '/a/{{f.v}}'\njson = { a = '<{{f.v}}>', n = 1 }\n\
        [[journey.step]]\nname = 't'\nurl = '{{f.v}}'\nbody = '\\{{no}} {{f.v}}'\n";
    let journeys = journeys(text);
    let value = std::collections::BTreeMap::from([("f.v".to_owned(), "b/c \"d\"".to_owned())]);
    let steps = journeys.steps();
    assert_eq!(steps[0].ask.url.expand(&value).unwrap(), "/a/b%2Fc%20%22d%22");
    let Body::Json(json) = &steps[0].ask.body else { panic!("{:?}", steps[0].ask.body) };
    assert_eq!(json.expand(&value).unwrap(), r#"{"a":"<b/c \"d\">","n":1}"#);
    assert_eq!(steps[1].ask.url.expand(&value).unwrap(), "b/c \"d\"", "a URL of its own");
    let Body::Text(text) = &steps[1].ask.body else { panic!("{:?}", steps[1].ask.body) };
    assert_eq!(text.expand(&value).unwrap(), "{{no}} b/c \"d\"");
}

#[test]
fn a_step_with_a_variable_server_is_found() {
    let found = |url: &str| {
        let text = format!(
            "[[feeder]]\nname = 'f'\ngenerate = {{ v = ['x'] }}\n[[journey]]\nname = 'j'\n\
             [[journey.step]]\nname = 's'\nurl = '{url}'\n"
        );
        journeys(&text).step_with_variable_host().is_some()
    };
    for anywhere in ["{{f.v}}", "{{f.v}}/x", "http://{{f.v}}/", "http://a:{{f.v}}/"] {
        assert!(found(anywhere), "{anywhere}");
    }
    for known in ["/{{f.v}}", "//{{f.v}}/x", "x?q={{f.v}}", "https://b.example/{{f.v}}"] {
        assert!(!found(known), "{known}");
    }
}

fn assert_each_refused(texts: &[(&str, &str)]) {
    for (text, found) in texts {
        let why = refused(text);
        assert!(why.contains(found), "{text}\n→ {why}\n≠ {found}");
    }
}

#[test]
fn a_wrong_step_is_refused_with_its_line_and_the_way_out() {
    assert_each_refused(&[
        ("[vars]\na = 1\n", "no [[journey]] that uses them"),
        ("[[journey]]\nname = 'j'\n", "line 3: journey: it has no [[journey.step]]"),
        (&format!("{ONE}urll = 'x'\n"), "line 8: urll: not a key of step; its keys are name, url"),
        (
            &format!("{ONE}headers = {{ A = '{{{{b}}}}' }}\n"),
            "{{b}} is not defined: it is not a variable",
        ),
        (
            &format!("[vars]\na = 1\n{ONE}headers = {{ A = '{{{{a|url}}}}' }}\n"),
            "{{a|url}}: url is not a filter; the only one is |json",
        ),
        (
            &format!("[vars]\na = 1\n{ONE}json = {{ A = '{{{{a|json}}}}' }}\n"),
            "{{a|json}}: every value is escaped in this text, so remove |json",
        ),
        (
            &format!("{ONE}capture = {{ a = {{ css = 'a:b' }} }}\n"),
            "line 8: css: \"a:b\" is not a CSS selector",
        ),
        (
            &format!("{ONE}capture = {{ a = {{ json = '$[' }} }}\n"),
            "line 8: json: \"$[\" is not a JSONPath",
        ),
        (&format!("{ONE}capture = {{ a = {{ regex = '(' }} }}\n"), "line 8: regex: "),
        (
            &format!("{ONE}capture = {{ a = {{ }} }}\n"),
            "give its source: status, header, cookie, json, css or regex",
        ),
        (
            &format!("{ONE}capture = {{ a = {{ header = 'x', scope = 'run' }} }}\n"),
            "\"run\" is not one of iteration, user",
        ),
        (&format!("{ONE}capture = {{ 'a.b' = {{ header = 'x' }} }}\n"), "a name with a dot"),
        (&format!("{ONE}when = {{ b = true }}\n"), "line 8: b: \"b\" is not defined"),
        (&format!("{ONE}until = {{ }}\n"), "it ends a loop: give repeat too"),
        (&format!("{ONE}repeat = 0\n"), "give a number from 1 to 100000"),
        (&format!("{ONE}chance = '0%'\n"), "line 8: chance: a chance of 0 disables the step"),
        (&format!("{ONE}think = 'soon'\n"), "line 8: think: "),
        (&format!("{ONE}timeout = '1s'\n"), "call in [timeouts]"),
        (&format!("{ONE}expect = {{ outcome = 'closed' }}\n"), "outcome works only in check plans"),
        (
            &format!("{ONE}[[journey.step]]\nname = 's'\nurl = '/'\n"),
            "is the name of an earlier step",
        ),
        (&format!("{ONE}[[journey.step]]\nname = 't'\n"), "give one of url (a request), grpc"),
        (
            "[[journey]]\nname = 'j'\nrefresh = { step = 'q' }\n[[journey.step]]\nname = 's'\nurl = '/x'\n",
            "line 5: step: \"q\" is not a step of this journey",
        ),
        (&format!("order = 'random'\n{ONE}"), "journeys have their own weights"),
        (&format!("[connection]\npipeline = 2\n{ONE}"), "a user waits for each response"),
        (
            &format!("[load]\nsession = 3\nrate = '1/s'\n{ONE}"),
            "an iteration of a journey is a session already",
        ),
        (
            &format!("[measure]\nslo = ['login: p99<1s']\n{ONE}"),
            "nothing is called \"login\"; there are: s, j",
        ),
        (
            &format!("urls_file = 'users.csv'\n{ONE}"),
            "has only url: drop targets, urls_file and script",
        ),
    ]);
}

#[test]
fn a_wrong_feeder_is_refused_with_its_line_and_the_way_out() {
    assert_each_refused(&[
        (
            &format!("[[feeder]]\nname = 'f'\nfile = 'no.csv'\n{ONE}"),
            "line 5: file: \"no.csv\" cannot be read",
        ),
        (
            &format!("[[feeder]]\nname = 'f'\nfile = 'empty.csv'\n{ONE}"),
            "\"empty.csv\": it has no rows",
        ),
        (
            &format!("[[feeder]]\nname = 'f'\nfile = 'ragged.csv'\n{ONE}"),
            "line 2 has 1 fields, and the first line names 2 columns",
        ),
        (
            &format!("[[feeder]]\nname = 'f'\nfile = 'twice.csv'\n{ONE}"),
            "two columns are called \"name\"",
        ),
        (&format!("[[feeder]]\nname = 'f'\nfile = 'bad.jsonl'\n{ONE}"), "line 2 has no \"a\""),
        (&format!("[[feeder]]\nname = 'f'\nfile = 'body.bin'\n{ONE}"), "is not UTF-8 text"),
        (
            &format!("[[feeder]]\nname = 'user'\nfile = 'users.csv'\n{ONE}"),
            "neither user nor iteration",
        ),
        (
            &format!("[[feeder]]\nname = 'f'\ngenerate = {{ a = '9..1' }}\n{ONE}"),
            "the smaller first",
        ),
        (
            &format!("[[feeder]]\nname = 'f'\ngenerate = {{ a = 'hex' }}\n{ONE}"),
            "\"hex\" is not a generator",
        ),
        (
            &format!("[[setup]]\nname = 'x'\nurl = '/{{{{user.number}}}}'\n{ONE}"),
            "this step has no user",
        ),
    ]);
}

#[test]
fn feeders_are_read_or_generated() {
    let text = |more: &str| format!("[[feeder]]\nname = 'f'\n{more}\n{ONE}");
    let csv = journeys(&text("file = 'users.csv'\norder = 'unique'\nused-up = 'wrap'"));
    let feeder = &csv.feeders[0];
    assert_eq!(feeder.columns, ["name", "plan"]);
    assert_eq!((feeder.order, feeder.used_up), (FeederOrder::Unique, Some(UsedUp::Wrap)));
    assert_eq!((feeder.count(), feeder.cell(1, 0)), (Some(2), Some("b,b")));
    let json = journeys(&text("file = 'users.jsonl'"));
    let feeder = &json.feeders[0];
    let name = feeder.columns.iter().position(|column| column == "name").unwrap();
    assert_eq!((feeder.cell(1, name), feeder.cell(1, 1 - name)), (Some("b"), Some("8")));
    let made = journeys(&text("generate = { id = '1..9', key = 'hex:4', kind = ['a', 'b'] }"));
    assert_eq!(made.feeders[0].count(), Some(9));
}

#[test]
fn a_unique_feeder_with_fewer_rows_than_users_is_refused() {
    let step = "[[journey]]\nname = 'j'\n[[journey.step]]\nname = 's'\nurl = '/{{f.name}}'\n";
    let of = |load: &str, more: &str| {
        let feeder =
            format!("[[feeder]]\nname = 'f'\nfile = 'users.csv'\norder = 'unique'\n{more}\n");
        refused(&format!("{load}\n{feeder}{step}"))
    };
    let ten_s = "[stop]\nduration = '10s'";
    let closed = |users: u32| format!("[load]\nusers = {users}\n{ten_s}");
    assert_eq!(of(&closed(2), ""), "");
    assert_eq!(
        of(&closed(8), ""),
        "feeder \"f\" has 2 rows for 8 users, and each takes a row that no other has: add rows, or set \
         used-up = \"wrap\" (rows are used again) or \"stop\" (users without a row leave)"
    );
    assert_eq!(of(&closed(8), "used-up = 'wrap'"), "");
    assert_eq!(of(&closed(8), "used-up = 'stop'"), "");
    let open = |rate: &str, stop: &str| of(&format!("[load]\nrate = '{rate}'\n{stop}"), "");
    assert_eq!(open("0.2/s", ten_s), "");
    assert!(open("1/s", ten_s).contains("2 rows for 10 sessions"), "{}", open("1/s", ten_s));
    assert_eq!(open("1/s", "[stop]\nrequests = 2"), "");
    assert!(open("1/s", "[stop]\nrequests = 3").contains("2 rows for 3 sessions"));
    let staged = "[load]\nstages = '4s:0/s..1/s, 4s:1/s..0/s'\n";
    assert!(of(staged, "").contains("2 rows for 4 sessions"), "{}", of(staged, ""));
    let scenarios = "[stop]\nduration = '10s'\n[[scenario]]\nname = 'a'\njourneys = ['j']\n\
         load = { users = 2 }\n\
         [[scenario]]\nname = 'b'\njourneys = ['j']\nload = { users = 3 }\n";
    assert!(of(scenarios, "").contains("2 rows for 3 users of scenario \"b\""));
    // a feeder from which no journey takes a row
    let unused = "[[feeder]]\nname = 'f'\nfile = 'users.csv'\norder = 'unique'\n";
    assert_eq!(refused(&format!("{}\n{unused}{ONE}", closed(8))), "");
}

#[test]
fn a_block_is_a_transaction_with_its_parts() {
    let text = "[[journey]]\nname = 'j'\n[[journey.step]]\nname = 'b'\nrepeat = '2..4'\n\
        [[journey.step.step]]\nname = 'x'\nurl = '/x'\n[[journey.step.step]]\nname = 'y'\nurl = '/y'\n\
        [[journey.step]]\nname = 'z'\nurl = '/z'\n";
    let journeys = journeys(text);
    assert_eq!(journeys.transactions(), ["j", "b"]);
    let JourneyPart::Block(block) = &journeys.journeys[0].parts[0] else { panic!("{journeys:?}") };
    assert_eq!((block.transaction, block.guard.repeat), (1, (2, 4)));
    let rows: Vec<u32> = journeys.steps().iter().map(|step| step.row).collect();
    assert_eq!(rows, [0, 1, 2]);
}

const RICH: &str = "[load]\nusers = 4\n[measure]\nslo = ['s: p99<200ms', 'j: failures<1%']\n\
    [vars]\napi-token = 'sesame'\n[[feeder]]\nname = 'u'\nfile = 'users.csv'\n\
    [[journey]]\nname = 'j'\n[[journey.step]]\nname = 's'\nurl = '/x'\nuser = 'fred:rocks'\n\
    form = { zebra = '1', password = 'hush', alpha = '{{u.name}}' }\n\
    [[journey.step]]\nname = 't'\nurl = '/y'\nbody-file = 'body.bin'\n\
    headers = { Authorization = 'Bearer {{api-token}}' }\n\
    [[journey.step]]\nname = 'v'\nurl = '/z'\nform = { a = 'b' }\nupload = [{ field = 'f', file = 'body.bin' }]\n";

#[test]
fn a_printed_plan_needs_no_other_file() {
    let plan = read(RICH).unwrap();
    let printed = to_toml(&plan, Secrets::Shown);
    let again = from_toml(&printed, &NoFiles).unwrap();
    assert_eq!(to_toml(&again, Secrets::Shown), printed);
    // an agent of a fleet has the rows but not the file, and verifies with this text that it read
    // the same plan
    assert_eq!(crate::identity(&again), crate::identity(&plan));
    assert_eq!(again.targets, plan.targets);
    let steps = |plan: &Plan| -> Vec<_> {
        let journeys = plan.journeys.as_ref().unwrap();
        journeys.steps().into_iter().map(|step| (step.ask.clone(), step.guard.clone())).collect()
    };
    assert_eq!(steps(&again), steps(&plan));
    let feeders = |plan: &Plan| plan.journeys.as_ref().unwrap().feeders.clone();
    assert_eq!(feeders(&again), feeders(&plan));
    assert_eq!(again.measure.slo, plan.measure.slo);
}

#[test]
fn secrets_in_bodies_of_steps_are_masked_and_values_are_not() {
    let steps = "[[feeder]]\nname = 'u'\nfile = 'users.csv'\n[[journey]]\nname = 'j'\n\
        [[journey.step]]\nname = 's'\nurl = '/x'\nmethod = 'POST'\nbody = 'password=hush&n={{u.name}}'\n\
        [[journey.step]]\nname = 't'\nurl = '/x'\nmethod = 'POST'\n\
        body = '{ \"token\": \"{{u.name}}\", \"sid\": \"hush\" }'\n";
    let masked = to_toml(&read(steps).unwrap(), Secrets::Masked);
    assert!(!masked.contains("hush"), "{masked}");
    for kept in ["password=***masked***&n={{u.name}}", "\"{{u.name}}\", \"sid\": \"***masked***\""]
    {
        assert!(masked.contains(kept), "{kept} in\n{masked}");
    }
}

#[test]
fn a_secret_masked_in_base64_is_refused() {
    for (url, key) in [("http://h/x", "body-base64"), ("ws://h/x", "send-base64")] {
        // password=hush
        let steps = format!(
            "[[journey]]\nname = 'j'\n[[journey.step]]\nname = 'o'\n{}\n[[journey.step]]\n\
             name = 's'\n{key} = 'cGFzc3dvcmQ9aHVzaA=='\n",
            match key {
                "send-base64" => format!("connect = '{url}'"),
                _ => format!("url = '{url}'"),
            }
        );
        let steps = match key {
            "body-base64" => steps + "url = '/x'\nmethod = 'POST'\n",
            _ => steps,
        };
        let masked = to_toml(&read(&steps).unwrap(), Secrets::Masked);
        assert!(!masked.contains("cGFzc3dvcmQ9aHVzaA=="), "{masked}");
        let refused = from_toml(&masked, &NoFiles).unwrap_err().0;
        assert!(refused.contains("its secret was masked"), "{key}: {refused}");
    }
}

#[test]
fn secrets_are_masked_and_a_masked_plan_is_not_run() {
    let plan = read(RICH).unwrap();
    let masked = to_toml(&plan, Secrets::Masked);
    for secret in ["sesame", "rocks", "hush", "gold", "ann"] {
        assert!(!masked.contains(secret), "{secret} in\n{masked}");
    }
    for kept in ["{{api-token}}", "fred:", "zebra", "{{u.name}}"] {
        assert!(masked.contains(kept), "{kept} in\n{masked}");
    }
    let shown = from_masked_toml(&masked).unwrap();
    assert_eq!(shown.targets, plan.targets);
    assert!(from_toml(&masked, &NoFiles).unwrap_err().0.contains("masked"));
}

#[test]
fn a_masked_plan_runs_where_the_files_of_its_feeders_are() {
    let text = "[vars]\nplain = 'x'\n[[feeder]]\nname = 'u'\nfile = 'users.csv'\n\
        [[feeder]]\nname = 't'\ngenerate = { term = ['a', 'b'] }\n\
        [[journey]]\nname = 'j'\n[[journey.step]]\nname = 's'\nurl = '/{{u.name}}/{{t.term}}'\n";
    let plan = read(text).unwrap();
    let masked = to_toml(&plan, Secrets::Masked);
    assert!(!masked.contains("ann") && masked.contains("file = \"users.csv\""), "{masked}");
    let feeders = |plan: &Plan| plan.journeys.as_ref().unwrap().feeders.clone();
    assert_eq!(feeders(&from_toml(&masked, &TestFiles).unwrap()), feeders(&plan));
    let elsewhere = from_toml(&masked, &NoFiles).unwrap_err().0;
    assert!(elsewhere.contains("feeder \"u\": its rows were masked"), "{elsewhere}");
    // without default values it is the same plan
    let brief = to_brief_toml(&masked).unwrap();
    assert!(brief.contains("version = 1\n") && !brief.contains("[timeouts]"), "{brief}");
    assert_eq!(brief.matches("[[feeder]]").count(), 2, "{brief}");
    assert_eq!(to_toml(&from_toml(&brief, &TestFiles).unwrap(), Secrets::Masked), masked);
    assert_eq!(to_brief_toml("no plan"), None);
}

#[test]
fn a_brief_plan_keeps_non_default_journey_keys() {
    let plan = read(&format!("[request]\ncookies = false\n{ONE}")).unwrap();
    let text = to_toml(&plan, Secrets::Masked);
    let brief = to_brief_toml(&text).unwrap();
    assert!(!from_toml(&brief, &TestFiles).unwrap().request.cookies, "{brief}");
}

#[test]
fn an_unknown_column_lists_the_feeders_columns() {
    let text = |column: &str, file: &str| {
        format!(
            "[[feeder]]\nname = 'u'\n{file}\n[[journey]]\nname = 'j'\n[[journey.step]]\n\
             name = 's'\nurl = '/{{{{u.{column}}}}}'\n"
        )
    };
    let why = refused(&text("password", "file = 'users.csv'"));
    assert!(why.ends_with("; the columns of u are \"name\", \"plan\""), "{why}");
    let why = refused(&text("name", "format = 'csv'\ntext = \"name;plan\\nann;gold\\n\""));
    assert!(why.contains("\"name;plan\": separate columns by commas"), "{why}");
    let why = refused(&text("name", "format = 'csv'\ntext = \"name\\tplan\\nann\\tgold\\n\""));
    assert!(why.ends_with("separate columns by commas instead of tabs"), "{why}");
}

/// Other tools write a value as `${name}`, which would be sent unchanged.
#[test]
fn a_known_name_in_the_marks_of_another_tool_is_refused() {
    let text = |url: &str| {
        format!(
            "[[feeder]]\nname = 'u'\nfile = 'users.csv'\n[[journey]]\nname = 'j'\n\
             [[journey.step]]\nname = 's'\nurl = '{url}'\n"
        )
    };
    let why = refused(&text("/${u.name}"));
    assert!(why.contains("${u.name} is not filled in: write {{u.name}}, or"), "{why}");
    for url in ["/${other}?{{u.name}}", r"/\${u.name}?{{u.name}}"] {
        let text = format!("version = 1\nurl = 'http://h/'\n{}", text(url));
        assert!(from_toml(&text, &TestFiles).is_ok(), "{url}");
    }
}

const BY_SCRIPT: &str = "[[feeder]]\nname = 'u'\nfile = 'users.csv'\n[[journey]]\nname = 'j'\n\
    script-file = 'visit.lua'\nsteps = ['log in', 'pay']\nservers = ['https://b/']\n\
    feeders = ['u']\nargs = ['1']\nthink = '1s'\n[[journey]]\nname = 'k'\n[[journey.step]]\n\
    name = 's'\nurl = '/x'\n";

#[test]
fn a_script_carries_a_journey_out() {
    let plan = read(BY_SCRIPT).unwrap();
    assert!(validate(&plan).is_ok());
    let journeys = plan.journeys.as_ref().unwrap();
    assert!(journeys.is_scripted());
    let program = journeys.journeys[0].script.as_ref().unwrap();
    assert_eq!(program.script.name, "visit.lua");
    assert_eq!(program.script.text, b"function journey(user) end");
    assert_eq!((program.script.args.len(), program.first_row), (1, 0));
    assert_eq!(journeys.feeders_of(&journeys.journeys[0]), [0]);
    assert_eq!(journeys.further_servers().map(Url::as_str).collect::<Vec<_>>(), ["https://b/"]);
    assert!(journeys.journeys[1].script.is_none());
    let names: Vec<_> = plan.targets.iter().filter_map(|it| it.name.as_deref()).collect();
    assert_eq!(names, ["log in", "pay", "s"]);
    assert!(plan.targets[1].url.as_str() == "http://h:81/shop/", "its calls go where it says");
    // a printed plan needs no other file
    let printed = to_toml(&plan, Secrets::Shown);
    assert!(printed.contains("script-name = \"visit.lua\""), "{printed}");
    let again = from_toml(&printed, &NoFiles).unwrap();
    assert_eq!(to_toml(&again, Secrets::Shown), printed);
    assert_eq!(again.journeys.unwrap().journeys[0].script, journeys.journeys[0].script);
}

#[test]
fn a_wrong_script_of_a_journey_is_refused() {
    let with = |rest: &str| format!("[[journey]]\nname = 'j'\n{rest}");
    for (rest, found) in [
        ("script = 'x'", "line 3: journey: its script needs steps = "),
        ("script = 'x'\nsteps = []", "line 6: steps: name the calls"),
        ("script = 'x'\nsteps = ['a', 'a']", "steps: \"a\" is the name of an earlier step"),
        ("script = 'x'\nsteps = ['a<b']", "steps: a name must not contain <"),
        ("script = 'x'\nsteps = ['a']\nservers = ['ftp://h']", "line 7: servers: "),
        ("script = 'x'\nsteps = ['a']\nfeeders = ['f']", "feeders: \"f\" is not a [[feeder]]"),
        ("script = 'x'\nscript-file = 'visit.lua'\nsteps = ['a']", "script is given too"),
        ("script-file = 'body.bin'\nsteps = ['a']", "body.bin is not UTF-8"),
        ("script-file = 'no.lua'\nsteps = ['a']", "\"no.lua\" cannot be read"),
        ("script = 'x'\nsteps = ['a']\nrefresh = { step = 'a' }", "refresh: not a key of journey"),
        (
            "script = 'x'\nsteps = ['a']\n[[journey.step]]\nname = 'b'\nurl = '/'",
            "step: the script makes the calls",
        ),
    ] {
        let why = refused(&with(rest));
        assert!(why.contains(found), "{rest}\n→ {why}\n≠ {found}");
    }
}

#[test]
fn a_script_alone_is_the_plan_s_one_journey() {
    let script = |name: &str| ScriptPlan {
        name: name.to_owned(),
        text: b"-- ''' \"\"\" \\\nfunction journey(user) end\n".to_vec(),
        args: vec!["x".to_owned()],
        files: Vec::new(),
    };
    let outline = |steps: &[&str]| ProgramOutline {
        steps: steps.iter().map(|step| (*step).to_owned()).collect(),
        servers: vec!["http://b:1".to_owned()],
        metrics: vec!["depth".to_owned()],
    };
    let mut plan = Plan::for_url("http://h/a/".parse().unwrap());
    plan.set_journey_script(script("dir/visit.lua"), outline(&["one", "two"])).unwrap();
    assert!(validate(&plan).is_ok());
    let journeys = plan.journeys.as_ref().unwrap();
    assert_eq!((journeys.transactions(), journeys.metrics()), (vec!["visit"], vec!["depth"]));
    assert_eq!(journeys.journeys[0].script.as_ref().unwrap().script, script("dir/visit.lua"));
    assert!(plan.request.cookies && plan.script.is_none());
    let again = from_toml(&to_toml(&plan, Secrets::Shown), &NoFiles).unwrap();
    assert_eq!(again.journeys.unwrap().journeys[0].script, journeys.journeys[0].script);
    // an unused name, regardless of the file's name
    let mut plan = Plan::for_url("http://h/".parse().unwrap());
    plan.set_journey_script(script("{{x}}.lua"), outline(&["journey"])).unwrap();
    assert_eq!(plan.journeys.unwrap().transactions(), ["journey of 1"]);
    let refused = |change: &dyn Fn(&mut Plan), steps: &[&str]| {
        let mut plan = Plan::for_url("http://h/".parse().unwrap());
        change(&mut plan);
        plan.set_journey_script(script("v.lua"), outline(steps)).unwrap_err().0
    };
    let two = |plan: &mut Plan| plan.targets = vec![plan.targets[0].clone(); 2].into();
    assert!(refused(&two, &["a"]).starts_with("--script: v.lua: a journey has one URL"));
    let own = |plan: &mut Plan| plan.targets[0].method = Some("PUT".to_owned());
    assert!(refused(&own, &["a"]).contains("leave only the URL in the target"));
    assert!(refused(&|_| {}, &["a", "a"]).contains("is the name of an earlier step"));
    let journeys = |plan: &mut Plan| plan.journeys = read(ONE).unwrap().journeys;
    assert!(refused(&journeys, &["a"]).contains("has journeys already"));
}

#[test]
fn a_check_may_bound_the_time_of_a_response() {
    let check = |text: &str| {
        let plan = journeys(&format!("{ONE}check = {{ {text} }}\n"));
        let JourneyPart::Step(step) = &plan.journeys[0].parts[0] else { panic!("{plan:?}") };
        let check = step.check.clone().unwrap();
        (check.at_least.map(|it| it.0), check.at_most.map(|it| it.0))
    };
    assert_eq!(check("time = '<200ms'"), (None, Some(199_999_999)));
    assert_eq!(check("time = ['>=1ms', '<= 1s']"), (Some(1_000_000), Some(1_000_000_000)));
    assert_eq!(check("time = '> 5ms'"), (Some(5_000_001), None));
    for (text, why) in [
        ("time = '200ms'", "\"200ms\" is not a bound on a time: write \"<200ms\""),
        ("time = '<0s'", "no time is below zero"),
        ("time = ['<1s', '<2s']", "the time has this bound already"),
        ("time = '<1s', at-most = '2s'", "the time has this bound already"),
        ("time = ['<1s', '>2s']", "the lower bound of the time is above the upper one"),
    ] {
        let message = refused(&format!("{ONE}check = {{ {text} }}\n"));
        assert!(message.contains(why), "{message}");
    }
}

#[test]
fn objectives_name_tags_and_metrics() {
    let step = |name: &str, more: &str| {
        format!("[[journey.step]]\nname = '{name}'\nurl = '/{name}'\n{more}\n")
    };
    let text = format!(
        "[measure]\nslo = ['kind=api: p95<1s', 'metric depth: p95<10', 'metric depth: mean<5']\n\
         [[journey]]\nname = 'j'\n{}{}{}",
        step(
            "a",
            "tags = { kind = 'api', team = 'x' }\ncapture = { d = { json = '/d', metric = 'depth' } }"
        ),
        step("b", "tags = { kind = 'page' }"),
        step("c", "tags = { kind = 'api' }\ncapture = { depth = { json = '/e', metric = true } }"),
    );
    let plan = read(&text).unwrap();
    assert!(validate(&plan).is_ok());
    let rows = plan.measure.slo.iter().map(|slo| slo.of.clone().unwrap().rows);
    let rows: Vec<stats::SubjectRows> = rows.collect();
    let number = stats::SubjectRows::Number(0);
    assert_eq!(rows, [stats::SubjectRows::Targets([0, 2].into()), number.clone(), number]);
    assert_eq!(plan.journeys.as_ref().unwrap().metrics(), ["depth"]);
    let back = from_toml(&to_toml(&plan, Secrets::Shown), &NoFiles).unwrap();
    assert_eq!(back.journeys.unwrap().tags(), plan.journeys.unwrap().tags());
    for (from, to, why) in [
        ("metric depth: mean", "metric width: mean", "nothing is called \"metric width\""),
        (
            "depth: mean<5",
            "depth: mean<5ms",
            "\"metric depth\" is a number that the plan takes from",
        ),
        ("kind=api:", "kind=none:", "nothing is called \"kind=none\""),
        ("metric = true", "metric = 'a:b'", "a metric has a name without"),
        ("team = 'x'", "team = 'a=b'", "a tag is a word without"),
    ] {
        let found = refused(&text.replace(from, to));
        assert!(found.contains(why), "{found}");
    }
    // a step may have the name of a metric, but its bounds have units
    let named = text.replace("name = 'b'", "name = 'metric b'").replace("kind=api:", "metric b:");
    let of = read(&named).unwrap().measure.slo[0].of.clone().unwrap();
    assert_eq!(of.rows, stats::SubjectRows::Targets([1].into()));
    let setup = format!(
        "[[setup]]\nname = 's0'\nurl = '/'\ncapture = {{ d = {{ json = '/d', metric = true }} }}\n{ONE}"
    );
    assert!(refused(&setup).contains("metric is for steps of journeys"));
}
