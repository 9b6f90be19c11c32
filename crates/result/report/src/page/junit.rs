//! Test cases as the XML that JUnit's tools write and build servers read.

use std::fmt::Write as _;

/// One suite of cases.
#[derive(Clone, Debug, Default)]
pub(crate) struct TestSuite {
    /// Names of all suites, and of this one.
    pub(crate) names: [String; 2],
    /// `2001-10-05 16:31:26 UTC`.
    pub(crate) started: String,
    /// Duration in seconds.
    pub(crate) elapsed_s: f64,
    pub(crate) properties: Vec<(&'static str, String)>,
    pub(crate) cases: Vec<TestCase>,
}

#[derive(Clone, Debug)]
pub(crate) struct TestCase {
    pub(crate) name: String,
    pub(crate) class: String,
    /// Duration in seconds, if it ran.
    pub(crate) elapsed_s: Option<f64>,
    pub(crate) ending: CaseEnding,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CaseEnding {
    Passed,
    /// Passed, with output.
    Noted(String),
    Failed {
        kind: String,
        message: String,
        account: String,
    },
    Skipped(String),
    /// Undecided.
    Unknown(String),
}

/// Renders the suite as XML, with a line feed at its end.
pub(crate) fn junit(suite: &TestSuite) -> String {
    let count =
        |of: fn(&CaseEnding) -> bool| suite.cases.iter().filter(|case| of(&case.ending)).count();
    let totals = format!(
        "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{:.6}\"",
        suite.cases.len(),
        count(|ending| matches!(ending, CaseEnding::Failed { .. })),
        count(|ending| matches!(ending, CaseEnding::Unknown(_))),
        count(|ending| matches!(ending, CaseEnding::Skipped(_))),
        suite.elapsed_s
    );
    let [all, own] = suite.names.each_ref().map(|name| escaped(name));
    // ISO 8601 without a zone, as the tools expect it
    let started = escaped(&suite.started.replace(" UTC", "").replace(' ', "T"));
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    out += &format!("<testsuites name=\"{all}\" {totals}>\n");
    out += &format!("  <testsuite name=\"{own}\" {totals} timestamp=\"{started}\">\n");
    if !suite.properties.is_empty() {
        out += "    <properties>\n";
        for (name, value) in &suite.properties {
            out += &format!("      <property name=\"{name}\" value=\"{}\"/>\n", escaped(value));
        }
        out += "    </properties>\n";
    }
    suite.cases.iter().for_each(|one| out += &case(one));
    out + "  </testsuite>\n</testsuites>\n"
}

fn case(case: &TestCase) -> String {
    let (name, class) = (escaped(&case.name), escaped(&case.class));
    let time = case.elapsed_s.map_or_else(String::new, |s| format!(" time=\"{s:.6}\""));
    let head = format!("    <testcase name=\"{name}\" classname=\"{class}\"{time}");
    let inner = match &case.ending {
        CaseEnding::Passed => return format!("{head}/>\n"),
        CaseEnding::Noted(text) => format!("<system-out>{}</system-out>", escaped(text)),
        CaseEnding::Skipped(why) => format!("<skipped message=\"{}\"/>", escaped(why)),
        CaseEnding::Unknown(why) => format!("<error message=\"{}\"/>", escaped(why)),
        CaseEnding::Failed { kind, message, account } => {
            let end = match account.as_str() {
                "" => "/>".to_owned(),
                account => format!(">{}</failure>", escaped(account)),
            };
            let (kind, message) = (escaped(kind), escaped(message));
            format!("<failure type=\"{kind}\" message=\"{message}\"{end}")
        }
    };
    format!("{head}>\n      {inner}\n    </testcase>\n")
}

/// Escapes text for element content and attribute values alike; characters that XML 1.0 cannot
/// contain (section 2.2) become U+FFFD.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            '\t' | '\n' | '\r' => {
                write!(out, "&#{};", c as u32).expect("a String accepts all text")
            }
            '\u{0}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
