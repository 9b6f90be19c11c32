use super::fixtures;
use super::rendered::{csv, hdr_log, html, json, text};
use crate::page::text::WIDTH;
use crate::{RunRecord, RunReport, Style};
use record::server::Conduct;

const PLAIN: Style =
    Style { unicode: true, color: false, quiet: false, percentiles: false, full: true, columns: 0 };

fn assert_fits(report: &RunReport) {
    for style in [PLAIN, Style { percentiles: true, ..PLAIN }, Style { unicode: false, ..PLAIN }] {
        for line in text(report, style).lines() {
            let width = line.chars().count();
            assert!(width <= WIDTH, "{width} columns: {line}");
        }
    }
}

#[test]
fn a_valid_run_is_shown() {
    insta::assert_snapshot!(text(&fixtures::valid(), PLAIN));
}

#[test]
fn a_troubled_run_with_its_quantiles() {
    insta::assert_snapshot!(text(&fixtures::troubled(), Style { percentiles: true, ..PLAIN }));
}

#[test]
fn repeated_runs() {
    insta::assert_snapshot!(text(&fixtures::repeated(), PLAIN));
}

#[test]
fn a_run_without_a_connection_is_shown() {
    insta::assert_snapshot!(text(&fixtures::empty(), PLAIN));
}

#[test]
fn a_quiet_report_is_plain_ascii() {
    let style = Style { unicode: false, quiet: true, ..PLAIN };
    insta::assert_snapshot!(text(&fixtures::troubled(), style));
}

#[test]
fn no_line_is_wider_than_the_page() {
    let all = [fixtures::valid(), fixtures::troubled(), fixtures::repeated(), fixtures::empty()];
    all.iter().for_each(assert_fits);
    assert_fits(&fixtures::extreme());
}

#[test]
fn the_server_comes_first_and_the_verdict_second() {
    let shown = text(&fixtures::valid(), PLAIN);
    assert!(shown.starts_with("Server        serving: "), "{shown}");
    assert_eq!(shown.lines().nth(1), Some("Measurement   VALID"));
    let troubled = text(&fixtures::troubled(), PLAIN);
    assert!(troubled.starts_with("Server        failing: 1.48 % of "), "{troubled}");
    let invalid = "\nMeasurement   INVALID: the numbers do not describe the server\n";
    let cause = "              slip: slip p99 770 ms";
    assert!(troubled.contains(&format!("{invalid}{cause}")), "{troubled}");
}

/// Figures are right although they do not decide an objective.
#[test]
fn an_undecided_objective_does_not_discredit_the_figures() {
    let mut report = fixtures::valid();
    report.verdict.state = stats::State::Invalid;
    report.verdict.causes = vec![stats::Cause {
        id: stats::CauseId::FewSamples,
        figure: 64.0,
        text: "p99<50ms is undecided: 64 samples (at least 368)".to_owned(),
        advice: String::new(),
    }];
    let shown = text(&report, PLAIN);
    let undecided = "\nMeasurement   INVALID: an objective is undecided\n";
    assert!(shown.contains(undecided), "{shown}");
    assert!(!shown.contains("not representative"), "{shown}");
}

/// Default output.
const SCREEN: Style = Style { full: false, ..PLAIN };

#[test]
fn a_valid_run_fits_one_screen() {
    let shown = text(&fixtures::valid(), SCREEN);
    assert!(shown.lines().count() <= 24, "{shown}");
    insta::assert_snapshot!(shown);
}

#[test]
fn a_troubled_run_fits_one_screen() {
    insta::assert_snapshot!(text(&fixtures::troubled(), SCREEN));
}

#[test]
fn repeated_runs_fit_one_screen() {
    insta::assert_snapshot!(text(&fixtures::repeated(), SCREEN));
}

/// Reports with more content than fits, each with everything at once.
#[test]
fn every_report_fits_one_screen() {
    let mut troubled = fixtures::troubled();
    let cause = troubled.verdict.causes[0].clone();
    troubled.verdict.causes.extend(vec![cause; 4]);
    let finding = troubled.findings[0].clone();
    troubled.findings.extend(vec![finding; 5]);
    let objective = troubled.slo[0].clone();
    troubled.slo.extend(vec![objective; 7]);
    let mut repeated = fixtures::repeated();
    repeated.runs.extend(vec![repeated.runs[0]; 20]);
    repeated.findings = troubled.findings.clone();
    let mut extreme = fixtures::extreme();
    extreme.findings = troubled.findings.clone();
    let all = [
        ("valid", fixtures::valid()),
        ("troubled", fixtures::troubled()),
        ("more troubled", troubled),
        ("repeated", fixtures::repeated()),
        ("often repeated", repeated),
        ("empty", fixtures::empty()),
        ("extreme", extreme),
    ];
    for (name, report) in &all {
        for columns in [0, 100, 200] {
            let shown = text(report, Style { columns, ..SCREEN });
            // the prompt uses the 24th
            assert!(shown.lines().count() <= 23, "{name}:\n{shown}");
            let verdict = format!("\nMeasurement   {}", report.verdict.state.id());
            assert!(shown.contains(&verdict), "{name}:\n{shown}");
            let widest = shown.lines().map(|line| line.chars().count()).max().unwrap();
            assert!(widest <= columns.clamp(80, 160), "{name}: {widest}\n{shown}");
        }
    }
    let shown = text(&all[2].1, SCREEN);
    assert!(
        shown.contains("6 more causes with --full") || shown.contains("causes with"),
        "{shown}"
    );
}

/// A finding that doubts response times is shown regardless of how many classes need a row.
#[test]
fn a_finding_comes_before_the_histogram() {
    let mut report = fixtures::valid();
    report.findings = fixtures::troubled().findings;
    let total = &mut report.measurement.total;
    for times in [&mut total.succeeded, &mut total.plain, &mut total.timed_out] {
        std::mem::take(times);
    }
    let mut drawn = 0;
    for exponent in 0..18 {
        let time = units::Nanos(1_000 << exponent);
        (0..5_000).for_each(|_| report.measurement.total.plain.record(time));
        let shown = text(&report, SCREEN);
        assert!(shown.contains("What limits this server"), "{shown}");
        drawn += usize::from(shown.contains("Response times, by calls"));
    }
    assert!((1..18).contains(&drawn), "{drawn} of 18 with a histogram");
}

/// No finding fits on the fullest screen, so their number is stated.
#[test]
fn findings_that_do_not_fit_are_counted() {
    let mut report = fixtures::troubled();
    let objective = report.slo[0].clone();
    report.slo.extend(vec![objective; 12]);
    let shown = text(&report, SCREEN);
    let count = report.findings.len();
    assert!(!shown.contains("What limits this server"), "{shown}");
    assert!(
        shown.contains(&format!("\n{count} finding")) && shown.contains(": --full shows "),
        "{shown}"
    );
}

#[test]
fn a_wide_terminal_has_longer_bars() {
    let wide = |columns| {
        let shown = text(&fixtures::valid(), Style { columns, ..SCREEN });
        shown.lines().map(|line| line.chars().count()).max().unwrap()
    };
    assert_eq!((wide(0), wide(80), wide(110)), (80, 80, 110));
}

#[test]
fn a_wide_terminal_has_the_histogram_beside_the_figures() {
    let report = fixtures::valid();
    let shown = text(&report, Style { columns: 120, ..SCREEN });
    let beside = |line: &&str| line.starts_with("Target") && line.contains("Response times, by");
    assert_eq!(shown.lines().filter(beside).count(), 1, "{shown}");
    for columns in [120, 140, 160, 300] {
        let shown = text(&report, Style { columns, ..SCREEN });
        let widest = shown.lines().map(|line| line.chars().count()).max().unwrap();
        assert_eq!(widest, columns.min(160), "{shown}");
    }
}

#[test]
fn ascii_means_ascii() {
    let all = [fixtures::valid(), fixtures::troubled(), fixtures::repeated()];
    let styles = [PLAIN, SCREEN].map(|style| Style { unicode: false, ..style });
    for (report, style) in all.iter().flat_map(|report| styles.map(|style| (report, style))) {
        let plain = text(report, style);
        assert!(plain.is_ascii(), "{plain}");
        assert!(!plain.contains('?') || plain.contains("page="), "{plain}");
    }
}

#[test]
fn a_peers_bytes_never_reach_the_terminal_raw() {
    let shown = text(&fixtures::troubled(), PLAIN);
    let hostile = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    assert!(!shown.contains(hostile), "{shown:?}");
    assert!(shown.contains("\\u{1b}[31m"), "{shown}");
}

#[test]
fn color_marks_only_the_two_words() {
    let plain = text(&fixtures::troubled(), PLAIN);
    let coloured = text(&fixtures::troubled(), Style { color: true, ..PLAIN });
    assert!(coloured.starts_with("Server        \u{1b}[1;31mfailing\u{1b}[0m: "), "{coloured}");
    assert!(coloured.contains("\nMeasurement   \u{1b}[1;31mINVALID\u{1b}[0m: "), "{coloured}");
    assert_eq!(coloured.matches('\u{1b}').count(), 4);
    assert_eq!(coloured.replace("\u{1b}[1;31m", "").replace("\u{1b}[0m", ""), plain);
}

#[test]
fn a_failed_first_call_has_a_fix() {
    let mut report = fixtures::valid();
    report.first_call = Some(crate::FirstCall {
        failure: Some((sample::FailureClass::Tls, "received fatal alert".to_owned())),
        fix_text: Some("Give --cert FILE.".to_owned()),
        ..crate::FirstCall::default()
    });
    let shown = text(&report, PLAIN).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown.contains("(received fatal alert). Give --cert FILE."), "{shown}");
    assert!(json(&report).contains("\"advice\": \"Give --cert FILE.\""));
}

#[test]
fn an_offer_of_http3_is_noted_in_runs_of_other_versions() {
    let mut report = fixtures::valid();
    let mut shown = |version: &str, field: &str| {
        report.first_call = Some(crate::FirstCall {
            status: 200,
            http_version: version.to_owned(),
            alt_svc: Some(field.to_owned()),
            ..crate::FirstCall::default()
        });
        text(&report, PLAIN).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let message = "offers HTTP/3 (Alt-Svc: h3=\":443\"; ma=2592000)";
    assert!(shown("2", "h3=\":443\"; ma=2592000").contains(message));
    assert!(!shown("3", "h3=\":443\"; ma=2592000").contains("Alt-Svc"));
    assert!(!shown("1.1", "h2=\":443\"").contains("Alt-Svc"));
    assert!(shown("1.1", "h2=\":443\", h3=\":443\"").contains("offers HTTP/3"));
}

#[test]
fn quantiles_from_too_few_samples_are_marked() {
    // 4,000 calls are enough for p99.9 (3,688), not for p99.99.
    let shown = text(&fixtures::troubled(), Style { percentiles: true, ..PLAIN });
    let row = |name: &str| shown.lines().find(|line| line.trim().starts_with(name)).unwrap();
    assert!(row("p99.99 ").contains('~'), "{shown}");
    assert!(!row("p99.9 ").contains('~'), "{shown}");
}

#[test]
fn passwords_in_urls_are_masked() {
    let mut report = fixtures::valid();
    report.plan.targets[0].url = url::Url::parse("http://fred:flintstone@h/").unwrap();
    report.plan.connection.proxy = Some(url::Url::parse("http://barney:rubble@p:3128").unwrap());
    report.name = "http://fred:flintstone@h/".to_owned();
    let outputs =
        [text(&report, PLAIN), json(&report), html(&report), csv(&report), hdr_log(&report)];
    for output in outputs {
        for secret in ["fred", "flintstone", "barney", "rubble"] {
            assert!(!output.contains(secret), "{output}");
        }
    }
}

/// Some sentences continue after their word without a colon.
#[test]
fn server_behavior_is_reported_as_recorded() {
    let found = [
        (Conduct::Gone, "gone since 3.20 s (died: 3 idle connections ended)"),
        (Conduct::Stalled, "stalled since 4.10 s: no response to 8 calls"),
        (Conduct::Stalled, "stalled: no response to any of 800 calls"),
    ];
    for (state, sentence) in found {
        let mut record = RunRecord::new(&fixtures::valid());
        record.server.state = state;
        record.server.sentence = sentence.to_owned();
        for style in [PLAIN, SCREEN, Style { quiet: true, ..PLAIN }] {
            let shown = crate::text(&record, style);
            assert!(shown.starts_with(&format!("Server        {sentence}\n")), "{shown}");
        }
        let (word, behind) = (state.word(), sentence.strip_prefix(state.word()).unwrap());
        let page = crate::html(&record);
        let after_word = behind.trim_start_matches(": ").trim_start();
        assert!(page.contains(&format!("<strong>{word}</strong> {after_word}</p>")), "{page}");
        let text = crate::markdown(&record);
        let colon = if behind.starts_with(": ") { ":" } else { "" };
        let line = format!("**Server {word}{colon}** {after_word}\n");
        assert!(text.contains(&line), "{line}{text}");
    }
}

#[test]
fn a_terminal_has_the_server_and_the_verdict_last_as_well() {
    let shown = text(&fixtures::troubled(), Style { columns: 100, ..SCREEN });
    let last = shown.lines().last().unwrap();
    assert!(last.starts_with("Measurement   INVALID: slip, "), "{shown}");
    let servers = shown.lines().filter(|line| line.starts_with("Server   ")).count();
    assert_eq!(servers, 2, "{shown}");
    assert!(!text(&fixtures::troubled(), SCREEN).contains("INVALID: slip"));
}

/// A ramp that does not fit a terminal repeats its result at the end.
#[test]
fn a_terminal_has_the_result_of_a_long_report_last() {
    let ramp = super::curves::ramp(&["one"]);
    let shown = |columns| {
        crate::ramp::text(&record::ramp::RampRecord::new(&ramp), Style { columns, ..PLAIN })
    };
    let (file, terminal) = (shown(0), shown(80));
    let last = terminal.strip_prefix(file.as_str()).expect("the same report first");
    assert!(
        last.starts_with("\nThe server keeps up") && last.contains("\nMeasurement   "),
        "{last}"
    );
    let quiet = Style { quiet: true, columns: 80, ..PLAIN };
    let short = crate::ramp::text(&record::ramp::RampRecord::new(&ramp), quiet);
    assert!(!short.contains("The server keeps up"), "{short}");
}

#[test]
fn a_log_line_sums_up_a_run() {
    let of = |report| crate::line(&RunRecord::new(&report), PLAIN);
    let valid = of(fixtures::valid());
    assert!(valid.starts_with("serving · VALID · ") && valid.contains("/s · p50 "), "{valid}");
    let troubled = of(fixtures::troubled());
    assert!(troubled.starts_with("failing · INVALID: "), "{troubled}");
    assert!(
        troubled.contains(" objectives met, ") || troubled.contains(" met, MISSED "),
        "{troubled}"
    );
    for shown in [valid, troubled, of(fixtures::empty())] {
        assert_eq!(shown.lines().count(), 1, "{shown}");
    }
    let ascii = Style { unicode: false, ..PLAIN };
    assert!(crate::line(&RunRecord::new(&fixtures::troubled()), ascii).is_ascii());
}

#[test]
fn the_load_is_in_full() {
    let mut report = fixtures::valid();
    report.plan.stop.warm_up = units::Nanos::from_secs(90);
    report.plan.measure.repeat = 12;
    let shown = text(&report, SCREEN);
    assert!(shown.contains("12 runs") && !shown.contains("..."), "{shown}");
}

#[test]
fn objectives_are_test_cases() {
    insta::assert_snapshot!(crate::junit(&RunRecord::new(&fixtures::troubled())));
}
