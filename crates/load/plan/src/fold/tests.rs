use super::*;
use crate::PlanDraft;

/// Returns the rows of a list, as `pattern or URL: targets`, then the row of each target.
fn rows(folds: &[&str], list: &str) -> String {
    let base = url::Url::parse("http://h/").unwrap();
    let mut plan = Plan::for_targets(crate::parse_url_list(list, Some(&base)).unwrap());
    plan.measure.folds.patterns = folds.iter().map(|text| parse_fold(text).unwrap()).collect();
    plan.settle_folds();
    let mut text = String::new();
    for row in (0..plan.row_count()).map(|row| plan.row(row).unwrap()) {
        let name = match row.fold {
            Some(fold) => plan.measure.folds.patterns[fold].text.clone(),
            None => plan.targets[row.first].url.to_string(),
        };
        text += &format!("{name}: {}; ", row.targets);
    }
    let of: Vec<String> = (0..plan.targets.len()).map(|it| plan.row_of(it).to_string()).collect();
    text + &of.join(" ")
}

#[test]
fn urls_that_match_share_a_row() {
    let list = "/user/1\n/hw\n/user/2?tab=x\n/user/2/photo\n/user/\n";
    assert_eq!(
        rows(&["/user/{id}"], list),
        "/user/{id}: 2; http://h/hw: 1; http://h/user/2/photo: 1; http://h/user/: 1; 0 1 0 2 3"
    );
    // without a pattern each target has its own row
    assert_eq!(rows(&[], "/a\n/b\n"), "http://h/a: 1; http://h/b: 1; 0 1");
}

#[test]
fn the_first_pattern_that_matches_takes_the_url() {
    let list = "/user/me\n/user/7\n/user/7/a/b\n";
    let all = ["/user/me", "/user/{id}", "/user/{*rest}"];
    assert_eq!(rows(&all, list), "/user/me: 1; /user/{id}: 1; /user/{*rest}: 1; 0 1 2");
    assert_eq!(rows(&["/user/{*rest}", "/user/{id}"], list), "/user/{*rest}: 3; 0 0 0");
}

#[test]
fn methods_hosts_and_queries_count_where_the_pattern_has_them() {
    let list = "/u/1\nDELETE /u/2\nhttp://other/u/3\n/u/4?page=2\n/u/5?page=2&x=1\n";
    assert_eq!(rows(&["/u/{id}"], list), "/u/{id}: 5; 0 0 0 0 0");
    assert!(rows(&["GET /u/{id}"], list).ends_with("; 0 1 0 0 0"));
    assert!(rows(&["http://h/u/{id}"], list).ends_with("; 0 0 1 0 0"));
    assert!(rows(&["/u/{id}?page={n}"], list).ends_with("; 1 2 3 0 4"));
    // characters that are special in expressions are literal here
    assert!(rows(&["/a.b/{id}"], "/a.b/1\n/axb/1\n").ends_with("; 0 1"));
    assert!(rows(&["/f-{n}.png"], "/f-12.png\n/f-.png\n").ends_with("; 0 1"));
}

#[test]
fn a_named_target_is_listed_by_name() {
    let url = url::Url::parse("http://h/user/1").unwrap();
    let named = TargetPlan { name: Some("one".into()), ..TargetPlan::new(url.clone()) };
    let mut draft = PlanDraft::new(Plan::for_targets(vec![named, TargetPlan::new(url)]));
    let lost = parse_fold("/nobody/{id}").unwrap();
    draft.measure.folds.patterns = vec![parse_fold("/user/{id}").unwrap(), lost];
    draft.measure.slo = stats::parse_objectives("/user/{id}: p99<1s, one: p99<1s").unwrap();
    let plan = draft.settle();
    let of = |row: usize| plan.measure.slo[row].of.as_ref().unwrap().rows.clone();
    assert_eq!(of(0), stats::SubjectRows::Targets([0].into()));
    assert_eq!(of(1), stats::SubjectRows::Targets([1].into()));
    let unmatched: Vec<&str> =
        plan.measure.folds.unmatched().map(|fold| fold.text.as_str()).collect();
    assert_eq!(unmatched, ["/nobody/{id}"]);
    assert_eq!(plan.part_names(), ["one", "/user/{id}"]);
}

#[test]
fn an_invalid_pattern_is_reported() {
    let why = |text: &str| parse_fold(text).unwrap_err().0;
    for (text, part) in [
        ("", "it begins with /"),
        ("user/{id}", "it begins with /"),
        ("get /a", "a method in capitals"),
        ("http://h", "it has no path"),
        ("/a/{id", "its braces do not match"),
        ("/a}/{id}", "its braces do not match"),
        ("/a/{}", "a name of letters"),
        ("/a/{i d}", "precede a space"),
        ("/a/{i-d}", "a name of letters"),
        ("/a/{*all}/b", "must be last"),
        ("/über/{id}", "percent-encode"),
        ("/a#{id}", "percent-encode"),
    ] {
        let why = why(text);
        assert!(why.contains(part), "{text}: {why}");
        assert!(why.contains(&quoted(text)) && why.contains("/user/{id}"), "{why}");
    }
}
