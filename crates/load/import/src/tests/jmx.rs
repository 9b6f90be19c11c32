//! JMeter test plans.

use super::*;

/// Plans modeled on public ones, with the same elements in the same proportions.
const PLANS: [(&str, &str); 20] = [
    ("first steps", include_str!("fixtures/jmx/01-first-steps.jmx")),
    ("health check", include_str!("fixtures/jmx/02-health-check.jmx")),
    ("rest api", include_str!("fixtures/jmx/03-rest-api.jmx")),
    ("login flow", include_str!("fixtures/jmx/04-login-flow.jmx")),
    ("csv users", include_str!("fixtures/jmx/05-csv-users.jmx")),
    ("properties", include_str!("fixtures/jmx/06-properties.jmx")),
    ("checkout", include_str!("fixtures/jmx/07-checkout.jmx")),
    ("inner loop", include_str!("fixtures/jmx/08-inner-loop.jmx")),
    ("setup and teardown", include_str!("fixtures/jmx/09-setup-and-teardown.jmx")),
    ("conditions", include_str!("fixtures/jmx/10-conditions.jmx")),
    ("once only", include_str!("fixtures/jmx/11-once-only.jmx")),
    ("counter and time", include_str!("fixtures/jmx/12-counter-and-time.jmx")),
    ("boundaries", include_str!("fixtures/jmx/13-boundaries.jmx")),
    ("stepping", include_str!("fixtures/jmx/14-stepping.jmx")),
    ("graphql", include_str!("fixtures/jmx/15-graphql.jmx")),
    ("throughput", include_str!("fixtures/jmx/16-throughput.jmx")),
    ("database", include_str!("fixtures/jmx/17-database.jmx")),
    ("groovy", include_str!("fixtures/jmx/18-groovy.jmx")),
    ("known scripts", include_str!("fixtures/jmx/19-known-scripts.jmx")),
    ("caches", include_str!("fixtures/jmx/20-caches.jmx")),
];

/// Minimum share of the plans that must be imported completely.
const WHOLE_LEAST: f64 = 0.8;

fn named(name: &str) -> &'static str {
    PLANS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text).unwrap()
}

#[test]
fn most_plans_are_imported_whole() {
    let mut parts = Vec::new();
    for (name, text) in PLANS {
        let imported = plan_of(Format::Jmeter, text);
        if !imported.left_out.is_empty() {
            parts.push(format!("{name}: {:?}", left_out(&imported)));
        }
    }
    let whole = (PLANS.len() - parts.len()) as f64 / PLANS.len() as f64;
    assert!(whole >= WHOLE_LEAST, "{whole}: {parts:#?}");
    let names: Vec<&str> = parts.iter().filter_map(|part| Some(part.split_once(':')?.0)).collect();
    assert_eq!(names, ["database", "groovy", "caches"]);
}

#[test]
fn plans_keep_scopes_loops_and_captures() {
    for name in [
        "rest api",
        "login flow",
        "csv users",
        "checkout",
        "setup and teardown",
        "conditions",
        "once only",
        "counter and time",
        "stepping",
    ] {
        let imported = plan_of(Format::Jmeter, named(name));
        insta::assert_snapshot!(name.replace(' ', "_"), below_head(&imported));
    }
}

#[test]
fn properties_are_given_on_the_command_line() {
    let text = named("properties");
    let usual = plan_of(Format::Jmeter, text);
    assert!(
        usual.toml.contains("url = \"http://localhost:8080/\"")
            && usual.toml.contains("10s:0..25, 50s:25"),
        "{}",
        usual.toml
    );
    let how =
        How { properties: &[("host", "h"), ("users", "4"), ("path", "/x")], ..How::default() };
    let given = with(Format::Jmeter, text, &how);
    assert!(
        given.toml.contains("url = \"http://h:8080/\"") && given.toml.contains("10s:0..4, 50s:4"),
        "{}",
        given.toml
    );
    assert!(given.toml.contains("url = \"/x\""), "{}", given.toml);
}

#[test]
fn omissions_have_their_line() {
    let lists: Vec<String> = ["database", "groovy", "caches"]
        .iter()
        .flat_map(|name| left_out(&plan_of(Format::Jmeter, named(name))))
        .collect();
    insta::assert_snapshot!(lists.join("\n"));
}

/// Returns a plan with one thread group that contains these elements.
fn group(elements: &str) -> String {
    format!(
        "<jmeterTestPlan version=\"1.2\"><hashTree><TestPlan testname=\"t\"/><hashTree><ThreadGroup testname=\"g\">\
         <elementProp name=\"ThreadGroup.main_controller\"><stringProp name=\"LoopController.loops\">1</stringProp></elementProp>\
         <stringProp name=\"ThreadGroup.num_threads\">1</stringProp></ThreadGroup><hashTree>{elements}</hashTree></hashTree></hashTree></jmeterTestPlan>"
    )
}

fn sampler(name: &str) -> String {
    format!(
        "<HTTPSamplerProxy testname=\"{name}\"><stringProp name=\"HTTPSampler.domain\">h</stringProp>\
         <stringProp name=\"HTTPSampler.path\">/{name}</stringProp></HTTPSamplerProxy>"
    )
}

fn one(element: &str) -> (String, Vec<String>) {
    let imported =
        plan_of(Format::Jmeter, &group(&format!("{}<hashTree/>{element}", sampler("a"))));
    (below_head(&imported).to_owned(), left_out(&imported))
}

fn controller(tag: &str, properties: &str) -> String {
    format!(
        "<{tag} testname=\"c\">{properties}</{tag}><hashTree>{}<hashTree/>{}<hashTree/></hashTree>",
        sampler("b"),
        sampler("d")
    )
}

fn string(name: &str, value: &str) -> String {
    format!("<stringProp name=\"{name}\">{value}</stringProp>")
}

#[test]
fn elements_of_the_table_are_imported() {
    for (element, wanted) in [
        (
            controller(
                "WhileController",
                &string("WhileController.condition", "${__jexl3(\"${s}\" != \"done\",)}"),
            ),
            "until = { s = \"done\" }",
        ),
        (controller("RandomController", ""), "chance = \"50%\""),
        (controller("InterleaveControl", ""), "chance = \"50%\""),
        (
            controller(
                "ThroughputController",
                "<intProp name=\"ThroughputController.style\">1</intProp><FloatProperty><name>ThroughputController.percentThroughput</name><value>30.0</value><savedValue>0.0</savedValue></FloatProperty>",
            ),
            "chance = \"30%\"",
        ),
        (controller("SwitchController", &string("SwitchController.value", "1")), "name = \"d\""),
        (controller("GenericController", ""), "name = \"b\""),
        (
            format!(
                "<GaussianRandomTimer testname=\"t\">{}{}</GaussianRandomTimer><hashTree/>",
                string("ConstantTimer.delay", "300"),
                string("RandomTimer.range", "100")
            ),
            "think = \"126794us..473205us\"",
        ),
        (
            format!(
                "<RandomVariableConfig testname=\"r\">{}{}{}</RandomVariableConfig><hashTree/>{}<hashTree/>",
                string("variableName", "v"),
                string("minimumValue", "5"),
                string("maximumValue", "9"),
                sampler("x${v}")
            ),
            "generate = { v = \"5..9\" }",
        ),
        (
            format!(
                "<AuthManager testname=\"m\"><collectionProp name=\"AuthManager.auth_list\"><elementProp name=\"\">{}{}</elementProp></collectionProp></AuthManager><hashTree/>",
                string("Authorization.username", "u"),
                string("Authorization.password", "p")
            ),
            "user = \"u:p\"",
        ),
        (
            format!(
                "<ResponseAssertion testname=\"r\"><collectionProp name=\"Asserion.test_strings\">{}</collectionProp>{}<intProp name=\"Assertion.test_type\">20</intProp></ResponseAssertion><hashTree/>",
                string("1", "error"),
                string("Assertion.test_field", "Assertion.response_data")
            ),
            "lacks = [\"error\"]",
        ),
        (
            format!(
                "<HtmlExtractor testname=\"e\">{}{}{}</HtmlExtractor><hashTree/>",
                string("HtmlExtractor.refname", "h"),
                string("HtmlExtractor.expr", "input[name=x]"),
                string("HtmlExtractor.attribute", "value")
            ),
            "css = \"input[name=x]\"",
        ),
    ] {
        let (plan, _) = one(&element);
        assert!(plan.contains(wanted), "{element}\n{plan}");
    }
}

#[test]
fn other_elements_are_listed() {
    for (element, listed) in [
        ("<SyncTimer testname=\"s\"/><hashTree/>".to_owned(), "SyncTimer s"),
        ("<DNSCacheManager testname=\"d\"/><hashTree/>".to_owned(), "DNSCacheManager d"),
        ("<XPathExtractor testname=\"x\"/><hashTree/>".to_owned(), "XPathExtractor x"),
        ("<org.example.Odd testname=\"o\"/><hashTree/>".to_owned(), "Odd o"),
        (controller("ForeachController", ""), "ForeachController c"),
        (controller("RunTime", ""), "RunTime c"),
        (
            controller("IfController", &string("IfController.condition", "${n} > 5")),
            "IfController c",
        ),
        ("<ModuleController testname=\"m\"/><hashTree/>".to_owned(), "ModuleController m"),
    ] {
        let (plan, left) = one(&element);
        assert!(left.iter().any(|one| one.contains(listed)), "{listed}: {left:?}\n{plan}");
        assert!(left[0].starts_with("line 1: "), "{left:?}");
    }
    let disabled = one("<org.example.Odd enabled=\"false\" testname=\"o\"/><hashTree/>");
    assert!(disabled.1.is_empty(), "{:?}", disabled.1);
}

#[test]
fn modules_are_replaced_by_their_controllers() {
    let module = |path: &[&str]| {
        let names: String = path.iter().map(|name| string("n", name)).collect();
        format!(
            "<ModuleController testname=\"m\"><collectionProp name=\"ModuleController.node_path\">\
             {names}</collectionProp></ModuleController><hashTree/>"
        )
    };
    let plan = |body: &str| {
        format!(
            "<jmeterTestPlan version=\"1.2\"><hashTree><TestPlan testname=\"t\"/><hashTree>\
             <TestFragmentController testname=\"parts\" enabled=\"false\"/><hashTree>\
             <LoopController testname=\"twice\">{}</LoopController><hashTree>{}<hashTree/></hashTree>\
             <GenericController testname=\"itself\"/><hashTree>{}</hashTree>\
             </hashTree><ThreadGroup testname=\"g\"/><hashTree>{body}</hashTree>\
             </hashTree></hashTree></jmeterTestPlan>",
            string("LoopController.loops", "2"),
            sampler("log in"),
            module(&["WorkBench", "t", "parts", "itself"]),
        )
    };
    let imported = plan_of(Format::Jmeter, &plan(&module(&["WorkBench", "t", "parts", "twice"])));
    assert!(
        imported.toml.contains("log in") && imported.toml.contains("repeat"),
        "{}",
        imported.toml
    );
    assert!(!left_out(&imported).iter().any(|one| one.contains("ModuleController")));
    for (path, why) in [
        (vec!["WorkBench", "t", "parts", "other"], "is not in the file"),
        (vec!["WorkBench", "t", "parts", "itself"], "it refers to a controller that contains it"),
        (vec![], "is not in the file"),
    ] {
        let body = module(&path) + &sampler("a") + "<hashTree/>";
        let left = left_out(&plan_of(Format::Jmeter, &plan(&body)));
        assert!(left.iter().any(|one| one.contains(why)), "{path:?}: {left:?}");
    }
}

#[test]
fn other_loads_become_stages() {
    let plugin = |tag: &str, properties: &str| {
        let text = format!(
            "<jmeterTestPlan version=\"1.2\"><hashTree><TestPlan testname=\"t\"/><hashTree><{tag} testname=\"g\">{properties}</{tag}>\
             <hashTree>{}<hashTree/></hashTree></hashTree></hashTree></jmeterTestPlan>",
            sampler("a")
        );
        plan_of(Format::Jmeter, &text).toml
    };
    let string =
        |name: &str, value: &str| format!("<stringProp name=\"{name}\">{value}</stringProp>");
    let level = format!(
        "{}{}{}{}{}",
        string("TargetLevel", "20"),
        string("RampUp", "2"),
        string("Steps", "2"),
        string("Hold", "3"),
        string("Unit", "M")
    );
    let concurrency =
        plugin("com.blazemeter.jmeter.threads.concurrency.ConcurrencyThreadGroup", &level);
    assert!(
        concurrency.contains("stages = \"60s:10, 60s:20, 180s:20\"")
            || concurrency.contains("60s:10..10"),
        "{concurrency}"
    );
    let arrivals = plugin("com.blazemeter.jmeter.threads.arrivals.ArrivalsThreadGroup", &level);
    assert!(arrivals.contains("/s"), "{arrivals}");
    let row: String = ["10", "0", "5", "20", "5"].iter().map(|it| string("c", it)).collect();
    let table = format!(
        "<collectionProp name=\"ultimatethreadgroupdata\"><collectionProp name=\"r\">{row}</collectionProp></collectionProp>"
    );
    let ultimate = plugin("kg.apc.jmeter.threads.UltimateThreadGroup", &table);
    assert!(ultimate.contains("stages = \"5s:0..10, 20s:10, 5s:0\""), "{ultimate}");
}

#[test]
fn other_xml_than_jmeter_is_refused() {
    for (text, why) in [
        ("<a/>", "its root is not jmeterTestPlan"),
        ("<jmeterTestPlan/>", "it has no hashTree"),
        ("<jmeterTestPlan><hashTree/></jmeterTestPlan>", "it has no request that can be made"),
        ("<jmeterTestPlan>", "it is not supported XML"),
        ("<!DOCTYPE a [<!ENTITY b \"c\">]><jmeterTestPlan/>", "it is not supported XML"),
    ] {
        let error = try_import(Format::Jmeter, text, &How::default()).unwrap_err();
        assert!(error.contains(why), "{text}: {error}");
    }
}
