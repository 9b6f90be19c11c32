use super::*;
use crate::fileset::{Sequence, SequenceOptions, SequenceStep, sequence};
use units::Stream;

const SURGE: Spec = Spec::Surge { files: 2_000 };

fn model(spec: Spec) -> FitModel {
    FitModel { spec, seed: Seed(1), matching: Matching::Groups, top: 20_000 }
}

fn made(model: &FitModel, count: u64) -> Sequence {
    let requests = (!matches!(model.spec, Spec::Surge { .. })).then_some(count);
    let (top, matching) = (model.top, model.matching);
    let options = SequenceOptions { top, matching, off_times: false, requests };
    sequence(model.spec, &options, model.seed).unwrap()
}

/// Returns the requests as logged by a server of this folder.
fn asked(paths: impl Iterator<Item = String>) -> Requests {
    let mut requests = Requests::default();
    let mut rows = std::collections::HashMap::new();
    for path in paths {
        let row = *rows.entry(path.clone()).or_insert_with(|| {
            requests.targets.push(path);
            requests.targets.len() as u32 - 1
        });
        requests.order.push(row);
    }
    requests
}

fn count_requests(sequence: &Sequence) -> Requests {
    asked(sequence.steps().flat_map(SequenceStep::paths).map(|path| format!("/site/{path}")))
}

/// Formats `name: fits`, or the reason why not, one per line.
fn describe(fit: &Fit) -> String {
    let line = |check: &FitCheck| {
        let why = match (&check.untold, check.against.as_slice()) {
            (Some(why), _) => format!("untold: {why}"),
            (None, []) => "fits".to_owned(),
            (None, against) => against.join("; "),
        };
        format!("{}: {why}\n", check.name)
    };
    fit.checks.iter().map(line).collect()
}

#[test]
fn each_model_s_own_files_fit_and_another_s_do_not() {
    let models = [
        SURGE,
        Spec::Specweb99 { directories: 20 },
        Spec::Webstone,
        Spec::Webbench { files: 6_010 },
    ];
    for own in models {
        for other in models {
            let files = other.set(Seed(7));
            let sizes: Vec<u64> = files.files().iter().map(|file| file.size).collect();
            let fit = fit_files(&model(own), &sizes);
            let untold = own == SURGE && other == Spec::Webstone;
            let wanted = if untold { None } else { Some(own == other) };
            assert_eq!(fit.checks[0].fits(), wanted, "{own} {other}: {}", describe(&fit));
        }
    }
}

#[test]
fn a_model_without_requests_has_a_reason() {
    let asked = count_requests(&made(&model(SURGE), 0));
    assert_eq!(fit_requests(&model(SURGE), &asked).no_reference, None);
    let much = FitModel { top: crate::fileset::REQUESTS_MAX + 1, ..model(SURGE) };
    let why = fit_requests(&much, &asked).no_reference.unwrap().0;
    assert!(why.contains("lower the top count"), "{why}");
}

#[test]
fn a_model_s_own_requests_fit() {
    for matching in [Matching::Groups, Matching::Requests] {
        let model = FitModel { matching, ..model(SURGE) };
        let fit = fit_requests(&model, &count_requests(&made(&model, 0)));
        let wanted = "requested sizes: fits\npopularity: fits\nstack distances: fits\n";
        // embedded files are requested by their pages: with them the paper's law no longer applies
        match matching {
            Matching::Groups => assert_eq!(describe(&fit), wanted),
            Matching::Requests => {
                assert!(describe(&fit).ends_with(&wanted[22..]), "{}", describe(&fit))
            }
        }
        let names: Vec<&str> = fit.plots.iter().map(|plot| plot.id).collect();
        assert_eq!(names, ["asked", "popularity", "depths"]);
    }
    for (spec, wanted) in [
        (
            Spec::Specweb99 { directories: 90 },
            "classes: fits\nfiles of a class: fits\npopularity: fits\n",
        ),
        (Spec::Webstone, "popularity: fits\n"),
        (Spec::Webbench { files: 6_010 }, "popularity: fits\n"),
    ] {
        let model = model(spec);
        let made = made(&FitModel { seed: Seed(3), ..model }, 100_000);
        let fit = fit_requests(&model, &count_requests(&made));
        assert_eq!(describe(&fit), format!("requested sizes: fits\n{wanted}"));
    }
}

#[test]
fn requests_without_a_law_do_not_fit() {
    let model = model(SURGE);
    let mut stream = Seed(1).stream(Purpose::Simulation, 0);
    let even = (0..100_000).map(|_| format!("/{}.txt", stream.below(2_000)));
    let text = describe(&fit_requests(&model, &asked(even)));
    assert!(text.contains("popularity: λ² is"), "{text}");
    assert!(text.contains("stack distances: p25 is"), "{text}");
    // each of the files in turn, with others in between
    let spec = FitModel { spec: Spec::Webstone, ..model };
    let names = ["file500.html", "file5k.html", "file50k.html", "file500k.html", "no.html"];
    let text =
        describe(&fit_requests(&spec, &asked((0..5_000).map(|row| names[row % 5].to_owned()))));
    assert!(text.contains("1000 requests are for files that the model does not have"), "{text}");
    let text = describe(&fit_requests(&spec, &asked((0..999).map(|_| names[0].to_owned()))));
    assert_eq!(text, "popularity: untold: at least 1000 requests are needed\n");
}

#[test]
fn off_times_are_held_against_their_law() {
    let model = model(SURGE);
    let base = count_requests(&made(&model, 0));
    let line = |requests: Requests| {
        let text = describe(&fit_requests(&model, &requests));
        text.lines().find(|line| line.starts_with("OFF times")).unwrap().to_owned()
    };
    let draw = |law: &dyn Fn(&mut Stream) -> f64| {
        let mut stream = Seed(4).stream(Purpose::Think, 0);
        (0..20_000).map(|_| law(&mut stream)).collect::<Vec<f64>>()
    };
    let pareto = draw(&|stream| crate::fileset::surge::off_times().draw(stream));
    let exponential = draw(&|stream| 1.0 + stream.exponential(2.3));
    let requests = |offs_s: &[f64], gaps_s: &[f64]| Requests {
        offs_s: offs_s.to_vec(),
        gaps_s: gaps_s.to_vec(),
        ..base.clone()
    };
    assert_eq!(line(requests(&pareto, &[])), "OFF times: fits");
    assert!(line(requests(&exponential, &[])).contains("Anderson-Darling rejects"));
    // in a log they include the server's time, mixed with gaps inside pages
    let gaps: Vec<f64> = pareto.iter().flat_map(|off| [off + 0.05, 0.01]).collect();
    assert_eq!(line(requests(&[], &gaps)), "OFF times: fits");
    assert!(line(requests(&[], &exponential)).contains("the exponent is"));
}

#[test]
fn bursts_are_distinguished_from_a_steady_stream() {
    let model = model(SURGE);
    let base = count_requests(&made(&model, 0));
    let line = |cells: Vec<f64>| {
        let requests = Requests { cells, cell_s: 1.0, ..base.clone() };
        let text = describe(&fit_requests(&model, &requests));
        text.lines().find(|line| line.starts_with("arrivals")).unwrap().to_owned()
    };
    let mut stream = Seed(1).stream(Purpose::Arrivals, 0);
    let steady = (0..7_200).map(|_| stream.below(20) as f64).collect();
    assert!(line(steady).contains("not above 0.6"));
    assert!(line(vec![1.0; 100]).contains("untold: at least ten minutes"));
    // users with Pareto-distributed pauses
    let mut cells = vec![0.0; 7_200];
    for user in 0..50 {
        let mut stream = Seed(3).stream(Purpose::Arrivals, user);
        let mut at = 0.0;
        while at < 7_200.0 {
            cells[at as usize] += 1.0;
            let on = (1.0 - stream.unit()).powf(-1.0 / 1.4);
            (0..on as usize).for_each(|s| {
                if let Some(c) = cells.get_mut(at as usize + s) {
                    *c += 1.0
                }
            });
            at += on + (1.0 - stream.unit()).powf(-1.0 / 1.4);
        }
    }
    assert_eq!(line(cells), "arrivals: fits");
}

/// WebMark's run is SURGE's sequence, truncated.
#[test]
fn a_sequence_that_is_cut_short_fits() {
    let model = model(SURGE);
    let options = SequenceOptions {
        top: model.top,
        matching: model.matching,
        off_times: false,
        requests: Some(172_020),
    };
    let cut = count_requests(&sequence(SURGE, &options, Seed(1)).unwrap());
    let wanted = "requested sizes: fits\npopularity: fits\nstack distances: fits\n";
    assert_eq!(describe(&fit_requests(&model, &cut)), wanted);
}
