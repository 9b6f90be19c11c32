//! A record renders the same after reading as before writing.

use super::curves::whole_ramp;
use super::fixtures::whole;
use super::{fixtures, rendered};
use crate::ramp::RampRecord;
use crate::{RunRecord, Style};
use record::compare::CompareRecord;

const STYLE: Style =
    Style { quiet: false, unicode: true, color: false, percentiles: true, full: true, columns: 0 };

/// Every form but JSON.
type Forms = Vec<(&'static str, String)>;

#[track_caller]
fn same(name: &str, read: Forms, written: Forms) {
    for ((form, read), (_, written)) in read.into_iter().zip(written) {
        assert!(read == written, "the {form} of {name}:\n{read}\n--- in place of\n{written}");
    }
}

fn forms_of_run(run: &RunRecord) -> Forms {
    vec![
        ("text", crate::text(run, STYLE)),
        ("CSV", crate::csv(run)),
        ("Markdown", crate::markdown(run)),
        ("HdrHistogram log", crate::hdr_log(run)),
        ("page", crate::html(run)),
    ]
}

#[test]
fn a_run_is_rendered_alike_from_its_file() {
    for (name, run) in [
        ("valid", fixtures::valid()),
        ("troubled", fixtures::troubled()),
        ("over HTTP/2", fixtures::over_http2()),
        ("over HTTP/3", fixtures::over_http3()),
        ("of journeys", fixtures::of_journeys()),
        ("repeated", fixtures::repeated()),
        ("empty", fixtures::empty()),
        ("extreme", fixtures::extreme()),
    ] {
        let run = RunRecord::new(&whole(run));
        let read = record::run::read(&crate::json(&run)).unwrap();
        same(name, forms_of_run(&read), forms_of_run(&run));
        assert!(crate::json(&read) == crate::json(&run), "the JSON of {name}");
    }
}

fn forms_of_ramp(ramp: &RampRecord) -> Forms {
    vec![
        ("text", crate::ramp::text(ramp, STYLE)),
        ("CSV", crate::ramp::csv(ramp)),
        ("Markdown", crate::markdown_of_ramp(ramp)),
        ("page", crate::ramp::html(ramp)),
    ]
}

#[test]
fn a_ramp_is_rendered_alike_from_its_file() {
    for labels in [&["one"][..], &["one", "two"]] {
        let ramp = RampRecord::new(&whole_ramp(labels));
        let read = record::ramp::read(&crate::ramp::json(&ramp)).unwrap();
        same(&labels.join(" and "), forms_of_ramp(&read), forms_of_ramp(&ramp));
        assert!(crate::ramp::json(&read) == crate::ramp::json(&ramp), "the JSON");
    }
}

fn forms_of_compare(compare: &CompareRecord) -> Forms {
    vec![
        ("text", crate::compare::text(compare, STYLE)),
        ("CSV", crate::compare::csv(compare)),
        ("Markdown", crate::markdown_of_compare(compare)),
        ("page", crate::compare::html(compare)),
    ]
}

#[test]
fn a_comparison_is_rendered_alike_from_its_record() {
    let bounds = ["p99 +5%"];
    for compare in [rendered::session(0.9, 1.1, &bounds), rendered::single()] {
        let read = record::compare::read(&crate::compare::json(&compare)).unwrap();
        assert_eq!(read.is_whole(), Ok(()));
        same("a comparison", forms_of_compare(&read), forms_of_compare(&compare));
        assert!(crate::compare::json(&read) == crate::compare::json(&compare), "the JSON");
    }
}

#[test]
fn three_protocols_are_rendered_alike_from_their_record() {
    let compare = rendered::protocols(&["p99 +5%"]);
    let read = record::compare::read(&crate::compare::json(&compare)).unwrap();
    same("three protocols", forms_of_compare(&read), forms_of_compare(&compare));
    assert!(crate::compare::json(&read) == crate::compare::json(&compare), "the JSON");
    assert!(crate::compare::text(&read, STYLE).contains("calls a second"));
}

#[test]
fn incompatible_results_are_refused() {
    let run = RunRecord::new(&whole(fixtures::troubled()));
    let earlier = RunRecord { measured: None, ..run.clone() };
    let why = earlier.is_whole().unwrap_err();
    assert!(why.starts_with("has no key \"measured\""), "{why}");
    assert_eq!(run.is_whole(), Ok(()));
    let written: serde_json::Value = serde_json::from_str(&crate::json(&run)).unwrap();
    let refused = |path: &str, value: serde_json::Value| {
        let mut changed = written.clone();
        *changed.pointer_mut(path).expect(path) = value;
        record::run::read(&changed.to_string()).unwrap_err()
    };
    let cut = refused("/measured/histograms/succeeded/v2", "HISTFA==".into());
    assert!(cut.contains("a histogram that is not a V2 encoding"), "{cut}");
    let no_base64 = refused("/measured/histograms/service/v2", "?".into());
    assert!(no_base64.contains("not Base64"), "{no_base64}");
    let spread = refused("/measured/spreads/0", "many".into());
    assert!(spread.contains("not a list of class:count"), "{spread}");
    let plan = refused("/plan", "load = \"much\"".into());
    assert!(plan.contains("a plan that cannot be read"), "{plan}");
    let objective = refused("/slo/0/objective", "soon".into());
    assert!(objective.contains("soon"), "{objective}");
}

#[test]
fn a_step_of_no_target_is_refused() {
    let mut ramp = RampRecord::new(&whole_ramp(&["one"]));
    ramp.steps[2].label = "another".into();
    let why = ramp.is_whole().unwrap_err();
    assert_eq!(why, "step 3 is of a target that is not among labels");
}
