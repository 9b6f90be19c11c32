//! The HTML page.

use super::rendered::{html, ramp_html, side_by_side};
use super::watching::watched;
use super::{curves, fixtures, rendered, tortures};
use crate::ramp::RampRecord;
use crate::{RunRecord, RunReport, html_of_many};
use base64::Engine;
use sample::FailureClass::{self, ClosedEarly, Refused, Reset, Status, Tls};
use sha2::Digest;
use stats::Endings;
use std::sync::LazyLock;

fn all() -> [RunReport; 5] {
    [
        fixtures::valid(),
        fixtures::troubled(),
        fixtures::repeated(),
        fixtures::empty(),
        fixtures::extreme(),
    ]
}

/// Pages of every kind.
static PAGES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let ramps = [&["http://127.0.0.1:2020/work"][..], &["prefork", "cgi"]];
    let ramps = ramps.map(|labels| ramp_html(&curves::ramp(labels)));
    let all = all();
    let several = side_by_side(&all, html_of_many);
    let compared = [rendered::session(1.07, 0.96, &["p99 +5%"]), rendered::single()];
    let compared = compared.map(|report| crate::compare::html(&report));
    let tortures = [tortures::mixed(), tortures::lost(), tortures::watched()];
    let tortured = tortures.map(|report| crate::torture::html(&report.record()));
    let seen = RunReport { sut: Some(watched(1.9)), ..fixtures::valid() };
    let runs = all.iter().chain([&seen]).map(html);
    runs.chain(ramps).chain([several]).chain(compared).chain(tortured).collect()
});

/// Returns the page without the content of these tags, and that content.
fn apart(page: &str, open: &str, close: &str) -> (String, Vec<String>) {
    let (mut rest, mut outside, mut inside) = (page, String::new(), Vec::new());
    while let Some((before, after)) = rest.split_once(open) {
        let (within, after) = after.split_once(close).expect(close);
        outside += before;
        inside.push(within.to_owned());
        rest = after;
    }
    (outside + rest, inside)
}

fn hash(text: &str) -> String {
    base64::engine::general_purpose::STANDARD.encode(sha2::Sha256::digest(text))
}

#[test]
fn only_the_pages_own_script_and_style_are_allowed() {
    for page in PAGES.iter() {
        let (rest, styles) = apart(page, "<style>", "</style>");
        let (rest, scripts) = apart(&rest, "<script>", "</script>");
        let ([style], [script]) = (&styles[..], &scripts[..]) else { panic!("one of each") };
        let policy = format!(
            "content=\"default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; \
             base-uri 'none'; form-action 'none'\"",
            hash(style),
            hash(script)
        );
        assert!(rest.contains(&policy), "{rest}");
        assert!(script.starts_with("/*\nThe MIT License (MIT)\n\nCopyright (c) 2022 Leon Sorokin"));
        for reach in ["fetch(", "XMLHttpRequest", "WebSocket", "import(", "eval(", ".src"] {
            assert!(!script.contains(reach), "{reach}");
        }
        assert!(!style.contains("url(") && !style.contains("@import"));
        let rest = rest.to_lowercase();
        let (rest, data) =
            apart(&rest, "<script id=\"data\" type=\"application/json\">", "</script>");
        assert_eq!(data.len(), 1);
        let forbidden = [
            "<script",
            " src=",
            "<link",
            "@import",
            "url(",
            "<iframe",
            "<img",
            " style=\"",
            "<base",
        ];
        for forbidden in forbidden {
            assert!(!rest.contains(forbidden), "{forbidden}");
        }
    }
}

/// The script uses the same data as the drawings in the page.
#[test]
fn each_chart_has_its_data() {
    for page in PAGES.iter() {
        let (_, data) = apart(page, "<script id=\"data\" type=\"application/json\">", "</script>");
        assert!(!data[0].contains(['<', '>', '&']));
        let charts: serde_json::Value = serde_json::from_str(&data[0]).unwrap();
        let ids: Vec<&str> =
            charts.as_array().unwrap().iter().map(|chart| chart["id"].as_str().unwrap()).collect();
        let unique: std::collections::BTreeSet<&str> = ids.iter().copied().collect();
        assert_eq!(ids.len(), unique.len(), "{ids:?}");
        assert_eq!(page.matches("<figure data-chart=").count(), ids.len());
        for chart in charts.as_array().unwrap() {
            let places = chart["at"].as_array().unwrap();
            assert!(places.iter().all(serde_json::Value::is_number), "{chart}");
            for line in chart["lines"].as_array().unwrap() {
                assert_eq!(line["values"].as_array().unwrap().len(), places.len(), "{chart}");
            }
            assert!(page.contains(&format!("<figure data-chart={}>", chart["id"])), "{chart}");
        }
    }
}

#[test]
fn a_peers_bytes_are_text() {
    let page = html(&fixtures::troubled());
    assert!(page.contains("&lt;/td&gt;&lt;script&gt;alert(1)"), "{page}");
    let (page, _) = apart(&page, "<script>", "</script>");
    let hostile = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    assert!(!page.contains(hostile));
}

/// Names, plans and all other foreign text are escaped.
#[test]
fn every_foreign_text_is_escaped() {
    let mut report = fixtures::troubled();
    let hostile = "<b onload=\"x\">'&".to_owned();
    report.name = hostile.clone();
    report.plan_toml = hostile.clone();
    report.environment.host = hostile.clone();
    report.resolved[0].host = hostile.clone();
    report.plan.request.method = hostile.clone();
    report.driver.io = hostile.clone();
    report.findings[0].evidence = hostile.clone();
    report.verdict.causes[0].advice = hostile.clone();
    report.verdict.causes[0].text = hostile.clone();
    report.slo[0].objective.text = hostile.clone();
    let (facts, count) = report.measurement.total.connections.tls.pop_first().unwrap();
    let facts = sample::TlsFacts { alpn: hostile.clone(), cipher: hostile, ..facts };
    report.measurement.total.connections.tls.insert(facts, count);
    let page = html(&report);
    assert!(!page.contains("<b onload"), "{page}");
    assert!(page.matches("&lt;b onload").count() >= 10, "{page}");
}

#[test]
fn the_verdict_and_the_answer_are_at_the_top() {
    let page = html(&fixtures::troubled());
    let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("no {text}"));
    assert!(at("<strong>INVALID</strong>") < at("<dl class=\"tiles\">"));
    assert!(at("<ul class=\"marks\">") < at("<dl class=\"tiles\">"));
    assert!(at("Half of the calls took at most") < at("<h2 id=\"over-time\">Over time"));
    assert!(page.contains("slip p99 770 ms"));
}

#[test]
fn a_run_without_a_measurement_has_no_charts() {
    let page = html(&fixtures::empty());
    assert!(page.contains("No call was due, so nothing was measured."));
    assert!(!page.contains("<svg"), "{page}");
}

#[test]
fn every_tag_is_closed_and_no_figure_is_nan() {
    for page in PAGES.iter() {
        let (page, _) = apart(page, "<script>", "</script>");
        let tags = [
            "main", "section", "table", "tr", "td", "th", "dl", "dd", "div", "svg", "figure",
            "details", "p",
        ];
        for tag in tags {
            let open = page.matches(&format!("<{tag} ")).count()
                + page.matches(&format!("<{tag}>")).count();
            assert_eq!(open, page.matches(&format!("</{tag}>")).count(), "{tag}");
        }
        assert!(!page.contains("NaN") && !page.contains("inf "), "{page}");
    }
}

#[test]
fn the_page_of_a_long_run_stays_small() {
    let size = html(&fixtures::extreme()).len();
    assert!(size < 500_000, "{size} bytes");
}

/// Returns the title of each chart of a page and the names of its lines.
fn charts_of(page: &str) -> Vec<(String, Vec<String>)> {
    let (_, data) = apart(page, "<script id=\"data\" type=\"application/json\">", "</script>");
    let charts: serde_json::Value = serde_json::from_str(&data[0]).unwrap();
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let names = |chart: &serde_json::Value| {
        chart["lines"].as_array().unwrap().iter().map(|line| text(&line["name"])).collect()
    };
    charts.as_array().unwrap().iter().map(|chart| (text(&chart["id"]), names(chart))).collect()
}

/// Returns the values of each line of a chart at each position.
fn lines_of(page: &str, id: &str) -> Vec<(String, Vec<f64>)> {
    let (_, data) = apart(page, "<script id=\"data\" type=\"application/json\">", "</script>");
    let charts: serde_json::Value = serde_json::from_str(&data[0]).unwrap();
    let found = charts.as_array().unwrap().iter().find(|chart| chart["id"] == id);
    let line = |line: &serde_json::Value| {
        let values = line["values"].as_array().unwrap().iter();
        let values = values.map(|value| value.as_f64().unwrap()).collect();
        (line["name"].as_str().unwrap().to_owned(), values)
    };
    found.map_or(Vec::new(), |chart| chart["lines"].as_array().unwrap().iter().map(line).collect())
}

/// Returns a row with this number of responses of each status and calls of each class.
fn ended(statuses: &[(u16, u64)], failures: &[(FailureClass, u64)]) -> Endings {
    Endings { statuses: statuses.to_vec(), other_statuses: 0, failures: failures.to_vec() }
}

#[test]
fn statuses_are_drawn_along_the_run() {
    let mut report = fixtures::valid();
    for (index, row) in report.measurement.series.iter_mut().enumerate() {
        let endings = match index < 5 {
            true => ended(&[(200, 100)], &[]),
            false => ended(&[(200, 9), (503, 90)], &[(Refused, 1), (Status, 90)]),
        };
        row.endings = Some(endings);
    }
    let page = html(&report);
    let lines = lines_of(&page, "endings");
    let shown = |name: &str, from: f64, to: f64| {
        let (_, values) = lines.iter().find(|(known, _)| known == name).unwrap();
        assert_eq!(values[..5], [from; 5], "{name}");
        assert_eq!(values[5..], [to; 5], "{name}");
    };
    shown("200", 100.0, 9.0);
    shown("503", 0.0, 90.0);
    shown("connrefused", 0.0, 1.0);
    assert_eq!(lines.len(), 3, "failures with a status are among the statuses: {lines:?}");
    // ten columns of 200 and five of each other, the single calls too
    let drawn = page.split("<figure data-chart=\"endings\">").nth(1).unwrap();
    let drawn = drawn.split("</svg>").find(|svg| svg.contains("class=\"grid\"")).unwrap();
    let columns: Vec<(&str, usize)> = drawn
        .split("<path class=\"fill ")
        .skip(1)
        .map(|path| (path.split('"').next().unwrap(), path.matches('M').count()))
        .collect();
    assert_eq!(columns, [("t-blue", 10), ("t-red", 5), ("t-purple", 5)]);
}

#[test]
fn many_statuses_are_grouped_into_few_parts() {
    let mut report = fixtures::valid();
    let statuses: Vec<(u16, u64)> = (0..12).map(|n| (400 + n, 20 - u64::from(n))).collect();
    let classes = [Refused, Reset, ClosedEarly, Tls].map(|class| (class, 2));
    for row in &mut report.measurement.series {
        row.endings = Some(Endings { other_statuses: 3, ..ended(&statuses, &classes) });
    }
    let lines = lines_of(&html(&report), "endings");
    let names: Vec<&str> = lines.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names.join(", "),
        "400, 401, 402, 403, other statuses, connrefused, connreset, other failures"
    );
    let sum: f64 = lines.iter().map(|(_, values)| values[0]).sum();
    let counted = statuses.iter().map(|(_, count)| count).sum::<u64>() + 3 + 4 * 2;
    assert_eq!(sum as u64, counted);
}

/// Results of earlier versions lack the endings of each second's calls.
#[test]
fn without_statuses_by_second_their_chart_is_left_out() {
    let mut report = fixtures::valid();
    assert!(html(&report).contains("data-chart=\"endings\""));
    report.measurement.series.iter_mut().for_each(|row| row.endings = None);
    let page = html(&report);
    assert!(page.contains("data-chart=\"throughput\"") && !page.contains("data-chart=\"endings\""));
}

#[test]
fn a_watched_server_is_drawn_along_the_run() {
    let report = RunReport { sut: Some(watched(1.9)), ..fixtures::valid() };
    let page = html(&report);
    assert!(page.contains("<h2 id=\"server\">The server itself</h2>"), "{page}");
    assert!(page.contains("full: CPU, listen queue"), "{page}");
    assert!(page.contains("accept queue up to 120 of 128, up to 2 half open"), "{page}");
    let charts = charts_of(&page);
    let names = |id: &str| charts.iter().find(|(known, _)| known == id).unwrap().1.join(", ");
    assert_eq!(names("server-cpu"), "busy, cores that it may use");
    // far from its bound: showing the bound would flatten the line
    assert_eq!(names("server-memory"), "in use");
    assert_eq!(names("server-held"), "descriptors, threads");
    assert_eq!(names("server-switches"), "context switches");
    assert_eq!(
        names("server-queues"),
        "wait to be accepted, half open, dropped: listen queue full, listen queue length"
    );
    // the same time axis as the run's other charts, to the last reading
    assert!(page.contains("CPU of the server, in cores over time"));
    let unwatched = html(&fixtures::valid());
    assert!(!unwatched.contains("The server itself"));
    let mut once = watched(1.0);
    once.rows.truncate(1);
    let page = html(&RunReport { sut: Some(once), ..fixtures::valid() });
    assert!(page.contains("The server itself") && !page.contains("server-cpu"));
}

#[test]
fn a_ramp_names_the_resource_exhausted_at_the_knee() {
    let mut report = curves::ramp(&["one"]);
    let knee = report.curves[0].knee.as_ref().unwrap().at.at;
    for step in &mut report.steps {
        let share = (step.point.level / knee).min(1.0);
        step.run.sut = Some(watched(1.95 * share));
    }
    let page = ramp_html(&report);
    let text = "by the knee, at ";
    assert!(page.contains(text) && page.contains("; full: CPU, listen queue"), "{page}");
    assert!(
        crate::ramp::answer(&RampRecord::new(&report), 0).iter().any(|(name, _)| *name == "Server")
    );
    let charts = charts_of(&page);
    let (_, names) = charts.iter().find(|(id, _)| id == "resources").unwrap();
    assert_eq!(names.join(", "), "CPU, memory, descriptors, accept queue");
    assert!(charts.iter().any(|(id, _)| id == "step-1-server-cpu"), "{charts:?}");
    assert!(!ramp_html(&curves::ramp(&["one"])).contains("resources in use"));
}

#[test]
fn the_page_of_a_ramp_shows_the_curves_results() {
    let page = ramp_html(&curves::ramp(&["http://127.0.0.1:2020/work"]));
    assert!(page.contains("The server keeps up with the offered load to 4"), "{page}");
    assert!(page.contains("successful responses/s. Its capacity with p99&lt;100ms: "));
    assert!(page.contains("</span>") && page.contains(">INVALID, client-limited<"));
    assert_eq!(page.matches("<details>").count(), 19 + 1, "the steps, and the whole plan");
    let several = ramp_html(&curves::ramp(&["<i>prefork</i>", "cgi"]));
    assert!(!several.contains("<i>") && several.contains("&lt;i&gt;prefork&lt;/i&gt;: achieved"));
}

/// A point that the client limited is shown, but not connected by a line.
#[test]
fn client_limited_points_are_in_no_line() {
    let page = ramp_html(&curves::ramp(&["a"]));
    let (_, data) = apart(&page, "<script id=\"data\" type=\"application/json\">", "</script>");
    let charts: serde_json::Value = serde_json::from_str(&data[0]).unwrap();
    let curve = &charts[0];
    assert_eq!((curve["id"].as_str(), curve["at"][8].as_f64()), (Some("curve"), Some(900.0)));
    let achieved = &curve["lines"][0];
    assert!(achieved["values"][8].is_null() && achieved["hollow"][8].is_number(), "{achieved}");
    assert!(achieved["low"][3].as_f64() <= achieved["values"][3].as_f64());
    assert!(achieved["values"][3].as_f64() <= achieved["high"][3].as_f64());
}

#[test]
fn a_ramp_that_measured_nothing_still_has_a_page() {
    let mut report = curves::ramp(&["a"]);
    report.steps.clear();
    report.curves = vec![stats::curve::Curve::default()];
    report.ended_early = Some("the server died at step 1 of 20".to_owned());
    let page = ramp_html(&report);
    assert!(page.contains("No step was measured.") && page.contains("died at step 1 of 20"));
}

#[test]
fn several_runs_are_shown_side_by_side() {
    let reports = [fixtures::valid(), fixtures::troubled()];
    let page = side_by_side(&reports, html_of_many);
    let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("no {text}"));
    assert!(at("2 runs side by side") < at("<strong>run-0: </strong>"));
    assert!(page.contains("<td class=\"invalid\">INVALID</td>"));
    assert!(page.contains("data-chart=\"run-2-spectrum\"") && page.contains("data-chart=\"p99\""));
    let one = side_by_side(&reports[..1], html_of_many);
    assert_eq!(one, html(&reports[0]));
}

#[test]
fn ramps_are_put_side_by_side_as_labels() {
    let ramps =
        ["before", "after"].map(|name| (name.to_owned(), RampRecord::new(&curves::ramp(&["a"]))));
    let both = crate::combine_ramps(&ramps).unwrap();
    assert_eq!(both.labels, ["before", "after"]);
    assert_eq!((both.curves.len(), both.steps.len()), (2, 38));
    assert!(crate::ramp::html(&both).contains("after: achieved"));
    // steps refer to their target only by its label
    let twice = crate::combine_ramps(&[ramps[0].clone(), ramps[0].clone()]).unwrap();
    assert_eq!(twice.labels, ["before", "before again"]);
    assert_eq!((twice.steps_of(0).count(), twice.steps_of(1).count()), (19, 19));
    let mut other = ramps.clone();
    other[1].1.axis = stats::curve::Axis::Population;
    assert!(crate::combine_ramps(&other).is_none() && crate::combine_ramps(&[]).is_none());
}

#[test]
fn the_page_of_a_comparison_shows_the_differences() {
    let mut report = rendered::session(1.07, 0.96, &["p99 +5%", "throughput -10%"]);
    report.after.label = "<i>new</i>".to_owned();
    report.cautions = vec!["the plans differ: <b>seed</b>".to_owned()];
    let page = crate::compare::html(&report);
    assert!(page.contains("<p class=\"answer\">B is worse than A: "), "{page}");
    assert!(page.contains("✗ crossed") && page.contains("✓ kept") && page.contains("CAUTION"));
    assert!(
        page.contains("&lt;i&gt;new&lt;/i&gt;") && !page.contains("<i>") && !page.contains("<b>")
    );
    // one row of the chart for each ratio; it is drawn for a desktop and for a phone
    let ratios = report.differences.iter().filter(|one| !one.points()).count();
    assert_eq!(page.matches("r=\"4.5\"").count(), 2 * ratios);
}

/// A tortured server's output is plain text, and bidirectional controls are escaped.
#[test]
fn a_tortured_servers_bytes_are_text() {
    let mut report = tortures::pressed();
    let hostile = "</script></pre><b onload=\"x\">\u{202e}\u{1b}[2J\u{2028}'&".to_owned();
    let (_, failed) = (0, &mut report.result.cases[1]);
    failed.exchanges[0].received = hostile.clone().into_bytes();
    failed.exchanges[0].judgement.seen = hostile.clone();
    failed.exchanges[0].judgement.why = hostile.clone();
    failed.notes = vec![hostile.clone()];
    failed.tally.insert(hostile.clone(), 1);
    report.result.habits.seen[0].1 = hostile.clone();
    report.result.ended_early = Some(hostile.clone());
    report.result.cases[4].measures[0].note = hostile.clone();
    report.result.probes[0].case = hostile.clone();
    report.environment.host = hostile;
    let page = crate::torture::html(&report.record());
    let (rest, _) = apart(&page, "<script>", "</script>");
    assert!(!rest.contains("<b onload") && !rest.contains("</pre><b"), "{rest}");
    assert!(rest.matches("&lt;b onload").count() >= 8, "{rest}");
    let turns = |c: char| (c.is_control() && c != '\n') || matches!(c, '\u{202e}' | '\u{2028}');
    assert!(!rest.contains(turns));
}

#[test]
fn the_page_of_a_torture_shows_the_findings() {
    let page = crate::torture::html(&tortures::pressed().record());
    let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("no {text}"));
    let sentence = "4 findings in 7 cases (1 critical, 1 high, 1 medium, 1 low): 1 denied service";
    assert!(at("<strong>4 FINDINGS</strong>") < at(sentence));
    assert!(at(">Findings and advice</h2>") < at(">Well-behaved clients under load</h2>"));
    assert!(
        page.contains("<details id=\"W-10\" open>") && page.contains("GET /\\&#39;\\x00")
            || page.contains("GET /\\'\\x00"),
        "{page}"
    );
    assert!(page.contains("8,190 B") && page.contains("<title>W-10</title>"));
    // 60 s of unanswered probes are a gap in the line with separate marks
    let (_, data) = apart(&page, "<script id=\"data\" type=\"application/json\">", "</script>");
    let charts: serde_json::Value = serde_json::from_str(&data[0]).unwrap();
    let lines = &charts[0]["lines"];
    let there = |line: usize| -> Vec<bool> {
        lines[line]["values"].as_array().unwrap().iter().map(|one| !one.is_null()).collect()
    };
    assert_eq!(
        (&lines[0]["name"], &lines[3]["name"]),
        (&"on new connections".into(), &"lost".into())
    );
    assert!(there(0).iter().zip(there(3)).all(|(answered, lost)| *answered != lost));
    let lost = there(3).iter().filter(|lost| **lost).count();
    assert!((140..160).contains(&lost), "{lost}");
    let well = crate::torture::Report {
        result: torture::result::RunResult {
            cases: vec![tortures::result("S-01", Default::default())],
            ..Default::default()
        },
        ..tortures::mixed()
    };
    let well = crate::torture::html(&well.record());
    assert!(well.contains("<strong>NO FINDING</strong>") && !well.contains("<figure"), "{well}");
}

/// A factor of eight is not drawn at +200 %.
#[test]
fn a_difference_beyond_the_axis_is_marked_with_its_size() {
    let far = crate::compare::html(&rendered::session(8.0, 0.2, &[]));
    let marks: Vec<&str> = far.split(r#"<text class="beyond""#).skip(1).collect();
    // the five times; throughput and goodput fall by 80 %, which the axis shows
    assert_eq!(marks.len(), 5, "{far}");
    for mark in &marks {
        let found = mark.split(['>', '<']).nth(1).unwrap();
        assert!(found.starts_with("+70") && found.contains(" to +7"), "{found}");
    }
    assert_eq!(far.matches(r#"beyond" d="M880"#).count(), 5, "an arrow each");
    assert_eq!(far.matches("<circle").count(), 2 * 2, "a point for each of the others, twice");
    let near = crate::compare::html(&rendered::session(1.07, 0.96, &[]));
    assert!(!near.contains("beyond\""), "no mark is of that class: {near}");
}

/// The script turns each column head into a button, and a button needs a label.
#[test]
fn each_column_that_can_be_sorted_has_a_head() {
    for page in PAGES.iter().chain([&html(&fixtures::of_journeys())]) {
        for table in page.split("<table class=\"sortable").skip(1) {
            let (heads, _) = table.split_once("</tr>").unwrap();
            assert!(heads.contains("<th") && !heads.contains("></th>"), "{heads}");
        }
    }
    assert!(html(&fixtures::troubled()).contains("<th>URL</th>"));
    assert!(html(&fixtures::of_journeys()).contains("<th>journey or block</th>"));
}

#[test]
fn a_fact_that_goes_on_has_no_empty_label() {
    let gone_on = PAGES.iter().filter(|page| page.contains("</dd><dd>")).count();
    assert!(gone_on > 0);
    assert!(PAGES.iter().all(|page| !page.contains("<dt></dt>")));
}

#[test]
fn urls_without_room_are_one_row_that_is_not_sorted() {
    let mut record = RunRecord::new(&fixtures::troubled());
    let last = record.per_url.last().unwrap().clone();
    record.per_url.resize(156, last);
    let page = crate::html(&record);
    let (_, row) = page.split_once("<tr class=\"rest\">").expect("a row for the rest");
    assert!(row.starts_with("<td class=\"url\">57 more</td>"), "{row}");
    let (table, note) = row.split_once("</table></div>").unwrap();
    assert_eq!(table.matches("<tr").count(), 0, "it is the last");
    assert!(note.starts_with("<p class=\"note\">57 rows more in the JSON.</p>"), "{note}");
}
