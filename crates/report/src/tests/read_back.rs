//! What is rendered from a record is what was rendered when it was written.

use super::{curves, fixtures, sessions};
use crate::compare::CompareReport;
use crate::ramp::RampReport;
use crate::{RunReport, Style};
use plan::{Plan, Secrets};

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

fn toml(plan: &Plan) -> String {
    plan::to_toml(plan, Secrets::Masked)
}

/// With a plan as the program has it, which the fixtures do without.
fn whole(mut run: RunReport) -> RunReport {
    if run.plan.request.method.len() > 100 {
        run.plan.request.method = "GET".into();
    }
    run.plan_toml = toml(&run.plan);
    run
}

fn forms_of_run(run: &RunReport) -> Forms {
    vec![
        ("text", crate::text(run, STYLE)),
        ("CSV", crate::csv(run)),
        ("Markdown", crate::markdown(run)),
        ("HdrHistogram log", crate::hdr_log(run)),
        ("page", crate::html(run)),
    ]
}

#[test]
fn a_run_is_rendered_alike_from_its_record() {
    for (name, run) in [
        ("valid", fixtures::valid()),
        ("troubled", fixtures::troubled()),
        ("over HTTP/2", fixtures::over_http2()),
        ("over HTTP/3", fixtures::over_http3()),
        ("repeated", fixtures::repeated()),
        ("empty", fixtures::empty()),
        ("extreme", fixtures::extreme()),
    ] {
        let run = whole(run);
        let read = record::run::read(&crate::json(&run)).unwrap().report().unwrap();
        same(name, forms_of_run(&read), forms_of_run(&run));
        assert!(crate::json(&read) == crate::json(&run), "the JSON of {name}");
    }
}

fn forms_of_ramp(ramp: &RampReport) -> Forms {
    vec![
        ("text", crate::ramp::text(ramp, STYLE)),
        ("CSV", crate::ramp::csv(ramp)),
        ("Markdown", crate::markdown_of_ramp(ramp)),
        ("page", crate::ramp::html(ramp)),
    ]
}

#[test]
fn a_ramp_is_rendered_alike_from_its_record() {
    for labels in [&["one"][..], &["one", "two"]] {
        let mut ramp = curves::ramp(labels);
        ramp.plan_toml = toml(&ramp.plan);
        for step in &mut ramp.steps {
            step.run = whole(step.run.clone());
        }
        let read = record::ramp::read(&crate::ramp::json(&ramp)).unwrap().report().unwrap();
        same(&labels.join(" and "), forms_of_ramp(&read), forms_of_ramp(&ramp));
        assert!(crate::ramp::json(&read) == crate::ramp::json(&ramp), "the JSON");
    }
}

fn forms_of_compare(compare: &CompareReport) -> Forms {
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
    for mut compare in [sessions::session(0.9, 1.1, &bounds), sessions::single()] {
        for run in compare.runs.iter_mut().flatten() {
            *run = whole(run.clone());
        }
        let read =
            record::compare::read(&crate::compare::json(&compare)).unwrap().report().unwrap();
        same("a comparison", forms_of_compare(&read), forms_of_compare(&compare));
        assert!(crate::compare::json(&read) == crate::compare::json(&compare), "the JSON");
    }
}

#[test]
fn three_protocols_are_rendered_alike_from_their_record() {
    let mut compare = sessions::protocols(&["p99 +5%"]);
    for run in compare.runs.iter_mut().flatten() {
        *run = whole(run.clone());
    }
    let read = record::compare::read(&crate::compare::json(&compare)).unwrap().report().unwrap();
    same("three protocols", forms_of_compare(&read), forms_of_compare(&compare));
    assert!(crate::compare::json(&read) == crate::compare::json(&compare), "the JSON");
    assert!(crate::compare::text(&read, STYLE).contains("calls a second"));
}

#[test]
fn what_does_not_fit_together_is_refused() {
    let run = whole(fixtures::troubled());
    let refused = |change: &dyn Fn(&mut record::run::RunRecord)| {
        let mut record = record::run::RunRecord::of(&run);
        change(&mut record);
        record.report().unwrap_err()
    };
    let earlier = refused(&|record| record.measured = None);
    assert!(earlier.starts_with("has no key \"measured\""), "{earlier}");
    let cut = refused(&|record| {
        let measured = record.measured.as_mut().unwrap();
        measured.histograms.get_mut("succeeded").unwrap().v2.truncate(40);
    });
    assert!(cut.starts_with("measured.succeeded: a histogram"), "{cut}");
    let no_base64 = refused(&|record| {
        let measured = record.measured.as_mut().unwrap();
        measured.histograms.get_mut("service").unwrap().v2 = "?".into();
    });
    assert!(no_base64.contains("not Base64"), "{no_base64}");
    let status = refused(&|record| {
        record.status.insert("two hundred".into(), 1);
    });
    assert!(status.contains("\"two hundred\" is no such number"), "{status}");
    let plan = refused(&|record| record.plan = "load = \"much\"".into());
    assert!(plan.starts_with("has a plan that cannot be read"), "{plan}");
}
