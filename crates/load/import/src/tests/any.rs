//! Damaged, generated and arbitrary texts never cause a panic, and every resulting plan is valid.

use super::*;
use proptest::prelude::*;

const FORMATS: [Format; 9] = [
    Format::Postman,
    Format::Jmeter,
    Format::Artillery,
    Format::HttpFile,
    Format::Bruno,
    Format::Insomnia,
    Format::Vegeta,
    Format::Siege,
    Format::CommandLine,
];

fn all(text: &str) {
    for format in FORMATS {
        if let Ok(imported) = try_import(format, text, &How::default()) {
            check_plan(&imported.toml);
        }
    }
    let _ = crate::detect("x", text);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_text_is_a_plan_or_an_error(text in "(?s:.{0,80})") {
        all(&text);
    }

    #[test]
    fn text_of_the_formats_words_is_a_plan_or_an_error(
        words in prop::collection::vec(prop::sample::select(WORDS), 0..30)
    ) {
        all(&words.concat());
    }

    #[test]
    fn names_and_values_of_any_text_make_a_valid_plan(
        name in "(?s:.{0,12})", value in "(?s:.{0,12})", header in "[ -~]{0,8}"
    ) {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let text = format!(
            r#"{{"info": {{"name": {n}}}, "variable": [{{"key": {n}, "value": {v}}}], "item": [{{"name": {n}, "item": [{{
              "name": {v}, "event": [{{"listen": "test", "script": {{"exec": [{s}]}}}}],
              "request": {{"method": "POST", "url": {u}, "header": [{{"key": {h}, "value": {v}}}],
              "body": {{"mode": "urlencoded", "urlencoded": [{{"key": {n}, "value": {v}}}]}}}}}},
              {{"name": "raw", "request": {{"method": {v}, "url": {u}, "body": {{"mode": "raw", "raw": {r}}}}}}}]}}]}}"#,
            n = quoted(&name),
            v = quoted(&value),
            h = quoted(&header),
            u = quoted(&format!("http://h/{value}?{name}={{{{{name}}}}}")),
            r = quoted(&format!("{value}\\{{{{{name}}}}}{{{{")),
            s = quoted(&format!("pm.environment.set({}, pm.response.json().a);", quoted(&name))),
        );
        let imported = with(Format::Postman, &text, &How::default());
        prop_assert_eq!(imported.steps, 2);
    }
}

const WORDS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "\"",
    "\n",
    "  ",
    "- ",
    "config:\n",
    "scenarios:\n",
    "  - flow:\n",
    "    - get:\n",
    "        url: /\n",
    "###\n",
    "GET http://h/\n",
    "POST ",
    "http://h/",
    "@a = b\n",
    "{{a}}",
    "{{$uuid}}",
    "${a}",
    "${__P(a,1)}",
    "meta {\n",
    "get {\n",
    "  url: http://h/\n",
    "}\n",
    "\"item\"",
    "\"request\"",
    "\"url\"",
    "<hashTree>",
    "</hashTree>",
    "<jmeterTestPlan>",
    "</jmeterTestPlan>",
    "ab -n 1 ",
    "siege ",
    "vegeta attack ",
    "| ",
    "echo ",
    "-c 5 ",
    "'",
    "> {% %}\n",
    "< x\n",
];

#[test]
fn a_cut_file_is_a_plan_or_an_error() {
    let texts = [include_str!("fixtures/shop.jmx"), artillery::SHOP, postman::SHOP];
    for text in texts {
        for cut in (0..text.len()).step_by(61) {
            all(&text[..text.floor_char_boundary(cut)]);
        }
    }
}

#[test]
fn deep_files_are_refused() {
    for text in [
        "{\"item\":[".repeat(50_000),
        format!("<jmeterTestPlan>{}", "<hashTree>".repeat(50_000)),
        format!("scenarios: {}", "[".repeat(50_000)),
    ] {
        all(&text);
    }
}
