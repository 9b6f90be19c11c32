//! A stored record loads as an identical report: every output made from it is equal, byte by byte.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its scene has failed")]

#[path = "../../report/src/tests/curves.rs"]
mod curves;
#[path = "../../report/src/tests/fixtures.rs"]
mod fixtures;
#[path = "../../report/src/tests/sessions.rs"]
mod sessions;

// the names that the fixtures, written for `report` itself, look for at the root
use record::compare::{CompareRecord, Comparison, assemble};
use report::ramp::{self, RampRecord, RampReport};
use report::{
    Driver, DummyRun, Finding, FirstCall, Headline, Resolved, RunRecord, RunReport, SloResult,
    compare, merged,
};
use sample::{AgentNow, AgentState};
use stats::{Second, Snapshot};
use store::{Beginning, Recording, ResultKind, Store, StorePlace, Stored};
use units::Nanos;

fn style() -> report::Style {
    report::Style {
        unicode: true,
        color: true,
        quiet: false,
        percentiles: true,
        full: true,
        columns: 0,
    }
}

fn beginning(run: &RunReport) -> Beginning<'_> {
    Beginning {
        name: &run.name,
        plan: &run.plan,
        command_line: "loadstone run URL",
        environment: &run.environment,
        started_unix_s: run.started_unix_s,
        labels: &[],
        commands: &[],
        axis: stats::curve::Axis::Rate,
    }
}

fn fixtures() -> Vec<(&'static str, RunReport)> {
    let all = vec![
        ("valid", fixtures::valid()),
        ("troubled", fixtures::troubled()),
        ("repeated", fixtures::repeated()),
        ("empty", fixtures::empty()),
        ("extreme", fixtures::extreme()),
        ("over HTTP/2", fixtures::over_http2()),
        ("over HTTP/3", fixtures::over_http3()),
        ("of journeys", fixtures::of_journeys()),
    ];
    all.into_iter().map(|(name, run)| (name, fixtures::whole(run))).collect()
}

#[track_caller]
fn same(name: &str, loaded: &RunRecord, stored: &RunRecord) {
    assert_eq!(report::markdown(loaded), report::markdown(stored), "the Markdown of {name}");
    let text = |run: &RunRecord| report::text(run, style());
    assert_eq!(text(loaded), text(stored), "the text of {name}");
    assert_eq!(report::json(loaded), report::json(stored), "the JSON of {name}");
    assert_eq!(report::csv(loaded), report::csv(stored), "the CSV of {name}");
    assert_eq!(report::hdr_log(loaded), report::hdr_log(stored), "the HdrHistogram log of {name}");
    assert!(report::html(loaded) == report::html(stored), "the page of {name}");
}

/// Text, JSON, CSV, Markdown and page.
type Outputs = [(&'static str, String); 5];

fn outputs_of_ramp(report: &RampRecord) -> Outputs {
    [
        ("text", ramp::text(report, style())),
        ("JSON", ramp::json(report)),
        ("CSV", ramp::csv(report)),
        ("Markdown", report::markdown_of_ramp(report)),
        ("page", ramp::html(report)),
    ]
}

fn outputs_of_compare(report: &CompareRecord) -> Outputs {
    [
        ("text", compare::text(report, style())),
        ("JSON", compare::json(report)),
        ("CSV", compare::csv(report)),
        ("Markdown", report::markdown_of_compare(report)),
        ("page", compare::html(report)),
    ]
}

#[track_caller]
fn same_outputs(name: &str, loaded: &Outputs, stored: &Outputs) {
    for ((kind, loaded), (_, stored)) in loaded.iter().zip(stored) {
        assert!(loaded == stored, "the {kind} of {name}:\n{loaded}\nwas\n{stored}");
    }
}

fn ramps() -> Vec<(&'static str, RampRecord)> {
    let one = curves::whole_ramp(&["http://127.0.0.1:2020/work"]);
    let mut troubled = curves::whole_ramp(&[fixtures::HOSTILE, "b"]);
    let run = fixtures::whole(fixtures::troubled());
    troubled.name = fixtures::HOSTILE.into();
    troubled.findings = run.findings.clone();
    let verdict = RunRecord::new(&run).verdict;
    troubled.ended_early = Some("it died at step 7 of 20: connection refused".into());
    troubled.steps[3].run = run;
    // open ends and unknown values are not numbers
    troubled.curves[0].overload.recovery_s = f64::INFINITY;
    troubled.curves[1].overload.recovery_s = f64::NAN;
    troubled.axis = stats::curve::Axis::Population;
    let mut barren = one.clone();
    (barren.steps, barren.curves) = (Vec::new(), Vec::new());
    let mut unasked = one.clone();
    for capacity in unasked.curves.iter_mut().filter_map(|curve| curve.capacity.as_mut()) {
        capacity.objectives.clear();
    }
    let all = [
        ("one server", one),
        ("two servers in trouble", troubled),
        ("no step", barren),
        ("no objective", unasked),
    ];
    let judged = |(name, ramp): &(&'static str, RampReport)| {
        let ramp = RampRecord::new(ramp);
        let ramp = match *name {
            "two servers in trouble" => RampRecord { verdict: verdict.clone(), ..ramp },
            "no step" => ramp.with_verdict(&["connection refused"], false),
            _ => ramp,
        };
        (*name, ramp)
    };
    all.iter().map(judged).collect()
}

#[test]
fn a_ramp_loads_as_it_was_stored() {
    let folder = tempfile::tempdir().unwrap();
    let place = StorePlace::File(folder.path().join("runs.db"));
    for (name, stored) in ramps() {
        let mut store = Store::open(&place).unwrap();
        let run = fixtures::valid();
        let beginning = Beginning {
            name: &stored.name,
            plan: stored.plan.plan(),
            labels: &stored.labels,
            axis: stored.axis,
            ..beginning(&run)
        };
        let id = store.begin(ResultKind::Ramp, &beginning).unwrap();
        assert_eq!(store.show("last").unwrap().axis, Some(stored.axis), "{name}, while it runs");
        // intermediate rows are removed
        for (index, step) in stored.steps.iter().take(2).enumerate() {
            store.step(&id, index, step).unwrap();
        }
        store.finish_ramp(&id, &stored).unwrap();
        drop(store);
        let store = Store::open_to_read(&place).unwrap();
        let listed = store.show("last").unwrap();
        assert_eq!(listed.axis, Some(stored.axis), "{name}: 8 users are something else than 8/s");
        // without an objective, the steps showed a knee and no capacity
        let knees: Vec<Option<stats::curve::Span>> =
            listed.knees.iter().map(|(_, span)| *span).collect();
        match name {
            "no step" => assert_eq!(knees, [None]),
            "no objective" => {
                assert_eq!(knees, [stored.curves()[0].knee.as_ref().map(|knee| knee.at)]);
                assert!(knees[0].is_some());
            }
            _ => assert!(knees.is_empty() && listed.capacities[0].1.is_some(), "{name}"),
        }
        let Stored::Ramp(loaded) = store.load("last").unwrap() else { panic!("{name} is a ramp") };
        same_outputs(name, &outputs_of_ramp(&loaded), &outputs_of_ramp(&stored));
    }
}

fn comparisons() -> Vec<(&'static str, Comparison)> {
    let bounds = ["p99 +5%", "throughput -10%"];
    let whole = |runs: [RunReport; 2]| runs.map(fixtures::whole).to_vec();
    let mut troubled = sessions::comparison(
        whole([fixtures::troubled(), fixtures::empty()]),
        whole([fixtures::repeated(), fixtures::valid()]),
        "",
        &bounds,
    );
    troubled.labels = vec![fixtures::HOSTILE.into(), "b".into()];
    troubled.commands = vec![Some(fixtures::HOSTILE.into()), None];
    troubled.cautions.push(fixtures::HOSTILE.into());
    vec![
        ("a slower server", sessions::blocks(1.07, 0.96, &bounds)),
        ("no difference", sessions::blocks(1.0, 1.0, &[])),
        ("single runs", sessions::one_run_each()),
        ("three protocols", sessions::over_protocols(&bounds)),
        ("runs in trouble", troubled),
        ("no run", sessions::comparison(Vec::new(), Vec::new(), "", &[])),
    ]
}

#[test]
fn a_comparison_loads_as_it_was_stored() {
    let folder = tempfile::tempdir().unwrap();
    let place = StorePlace::File(folder.path().join("runs.db"));
    for (name, stored) in comparisons() {
        let mut store = Store::open(&place).unwrap();
        let run = fixtures::valid();
        let beginning = Beginning { name: &stored.name, labels: &stored.labels, ..beginning(&run) };
        let id = store.begin(ResultKind::Compare, &beginning).unwrap();
        let (runs, stored) = (&stored.runs, assemble(&stored));
        for (side, runs) in runs.iter().enumerate() {
            for (index, run) in runs.iter().take(2).enumerate() {
                store.side(&id, side, index, run).unwrap();
            }
        }
        store.finish_compare(&id, &stored, runs).unwrap();
        drop(store);
        let store = Store::open_to_read(&place).unwrap();
        let loaded = store.load("last").unwrap();
        let Stored::Compare(loaded) = loaded else { panic!("{name} is a comparison") };
        same_outputs(name, &outputs_of_compare(&loaded), &outputs_of_compare(&stored));
    }
}

#[test]
fn a_run_loads_as_it_was_stored() {
    let folder = tempfile::tempdir().unwrap();
    let place = StorePlace::File(folder.path().join("runs.db"));
    for (number, (name, stored)) in (1..).zip(fixtures()) {
        let mut store = Store::open(&place).unwrap();
        let id = store.begin(ResultKind::Run, &beginning(&stored)).unwrap();
        assert_eq!(id.to_string(), format!("run-{number}"));
        let stored = RunRecord::new(&stored);
        store.finish_run(&id, &stored).unwrap();
        drop(store);
        let store = Store::open_to_read(&place).unwrap();
        let Stored::Run(loaded) = store.load("last").unwrap() else { panic!("{name} is a run") };
        same(name, &loaded, &stored);
    }
}

fn agent(number: u32, state: AgentState) -> AgentNow {
    AgentNow {
        number,
        host: format!("host-{number}"),
        labels: "region=north".into(),
        state,
        calls_per_s: 99.5,
        p99: (state == AgentState::Running).then(|| Nanos::from_millis(3)),
        in_flight: 2,
        offered: 400,
        lost: 0,
    }
}

#[test]
fn the_machines_of_a_fleet_are_kept_while_it_runs_and_no_longer() {
    let (_, stored) = fixtures().remove(0);
    let folder = tempfile::tempdir().unwrap();
    let place = StorePlace::File(folder.path().join("runs.db"));
    let store = Store::open(&place).unwrap();
    let recording = Recording::begin(store, ResultKind::Run, &beginning(&stored)).unwrap();
    let watch = || Store::open_to_read(&place).unwrap().agents("last").unwrap();
    assert_eq!(watch(), []);
    let mut seconds = recording.measurement(0);
    let both = [agent(1, AgentState::Running), agent(2, AgentState::Running)];
    let lost = [agent(1, AgentState::Running), agent(2, AgentState::Lost)];
    for (at_s, agents) in [(0.0, Some(&both)), (1.0, Some(&lost)), (2.0, None)] {
        if let Some(agents) = agents {
            seconds.agents(agents);
        }
        let second = Second { at_s, span_s: 1.0, ..Second::default() };
        seconds.second(&second, &Snapshot::default());
    }
    // another thread writes them
    let begun = std::time::Instant::now();
    let looks = std::iter::repeat_with(|| {
        std::thread::yield_now();
        watch()
    });
    let patient = |_: &Vec<_>| begun.elapsed() < std::time::Duration::from_secs(30);
    let kept = looks.take_while(patient).find(|agents| agents == &lost);
    assert_eq!(kept, Some(lost.to_vec()), "the last that was told of them");
    let record = RunRecord::new(&stored);
    recording.finish(|store, id| store.finish_run(id, &record)).unwrap();
    assert_eq!(watch(), [], "the report has them from now on");
}
