//! Control structures of templates, compared with ghz.

use super::*;
use units::{Purpose, Seed};

/// Executes the text as the call data of call `number`, if ghz executes it.
fn executed(text: &str, number: u64) -> Result<String, String> {
    let method = MethodFacts { name: "Say".to_owned(), ..MethodFacts::default() };
    let mut data = CallData {
        method: &method,
        worker: "g0c0".to_owned(),
        number,
        unix_ns: 1_800_000_000_000_000_000,
        utc_offset_s: 0,
        uuid: String::new(),
        random: Seed(1).stream(Purpose::Scripts, number),
    };
    let template = Template::parse(text, true)?;
    if template.has_actions() { template.execute(&mut data) } else { Ok(text.to_owned()) }
}

/// Texts that ghz 0.120.0, built with Go 1.26, sent in the calls 0 and 1.
const RECORDED: &[(&str, [&str; 2])] = &[
    ("{{$x := 1}}{{if true}}a{{end}}", ["a", "a"]),
    ("{{if true}}a{{end}}", ["{{if true}}a{{end}}", "{{if true}}a{{end}}"]),
    (
        "{{print 1}}{{if eq .RequestNumber 0}}zero{{else if eq .RequestNumber 1}}one{{else}}more{{end}}",
        ["1zero", "1one"],
    ),
    ("{{print ``}}{{range $i, $e := list `a` `b`}}{{$i}}{{$e}},{{end}}", ["0a,1b,", "0a,1b,"]),
    ("{{print ``}}{{range list `a` `b`}}[{{.}}]{{end}}", ["[a][b]", "[a][b]"]),
    ("{{print ``}}{{range until 3}}{{.}}{{else}}none{{end}}", ["012", "012"]),
    ("{{print ``}}{{range 3}}{{.}}{{end}}", ["012", "012"]),
    ("{{print ``}}{{range $i := 3}}{{$i}}{{end}}", ["012", "012"]),
    ("{{print ``}}{{range list}}x{{else}}none{{end}}", ["none", "none"]),
    ("{{print ``}}{{with .MethodName}}<{{.}}>{{end}}", ["<Say>", "<Say>"]),
    ("{{print ``}}{{with ``}}x{{else}}none{{end}}", ["none", "none"]),
    ("{{print ``}}{{with ``}}x{{else with `y`}}{{.}}{{end}}", ["y", "y"]),
    ("{{print ``}}{{with $y := 5}}{{$y}}{{.}}{{end}}", ["55", "55"]),
    ("{{$x := 1}}{{if true}}{{$x = 2}}{{end}}{{$x}}", ["2", "2"]),
    ("{{$x := 1}}{{if true}}{{$x := 2}}{{end}}{{$x}}", ["1", "1"]),
    ("{{$x := add 1 2}}{{$x}}-{{$x | add 4}}", ["3-7", "3-7"]),
    (
        "{{print ``}}{{range $i, $e := list 1 2 3}}{{if eq $e 2}}{{continue}}{{end}}{{$e}}{{end}}",
        ["13", "13"],
    ),
    (
        "{{print ``}}{{range $e := list 1 2 3}}{{if eq $e 2}}{{break}}{{end}}{{$e}}{{end}}",
        ["1", "1"],
    ),
    ("{{print ``}}{{range list 1 2}}{{$.MethodName}}{{end}}", ["SaySay", "SaySay"]),
    ("{{print ``}}{{define `t`}}<{{.}}>{{end}}{{template `t` 3}}", ["<3>", "<3>"]),
    ("{{print ``}}{{block `t` 4}}<{{.}}>{{end}}", ["<4>", "<4>"]),
    ("{{print ``}}{{define `t`}}x{{end}}{{template `t`}}", ["x", "x"]),
    ("a {{- /* c */ -}} b{{print 1}}", ["ab1", "ab1"]),
    ("a{{/* c */}}b{{print 1}}", ["ab1", "ab1"]),
    ("{{print ``}}{{if and .IsClientStreaming (div 1 0)}}x{{else}}y{{end}}", ["y", "y"]),
    ("{{print ``}}{{if or true (div 1 0)}}x{{else}}y{{end}}", ["x", "x"]),
    ("{{print ``}}{{if not .IsClientStreaming}}x{{end}}", ["x", "x"]),
    (
        "{{print 0x1F}} {{print 1_000}} {{print 1e3}} {{print 'a'}}",
        ["31 1000 1000 97", "31 1000 1000 97"],
    ),
    ("{{$x := .}}{{$x.MethodName}}", ["Say", "Say"]),
    (
        "{{print ``}}{{range $k, $v := until 2}}{{range $j := until 2}}{{$k}}{{$j}} {{end}}{{end}}",
        ["00 01 10 11 ", "00 01 10 11 "],
    ),
    ("{{print ``}}{{ if true -}} a {{- end }}b", ["ab", "ab"]),
    ("{{print ``}}{{if .RequestNumber}}n{{else}}z{{end}}", ["z", "n"]),
    ("{{print ``}}{{if $z := 3}}{{$z}}{{end}}", ["3", "3"]),
];

/// Errors that ghz reported, without the position.
const FAULTS: &[(&str, &str)] = &[
    (
        "{{print ``}}{{range list 1 2}}{{.MethodName}}{{end}}",
        "can't evaluate field MethodName in type interface {}",
    ),
    ("{{if true}}a", "unexpected EOF"),
    ("{{end}}", "unexpected {{end}}"),
    ("{{else}}", "unexpected {{else}}"),
    ("{{$y}}", r#"undefined variable "$y""#),
    ("{{$y = 3}}", "undefined variable: $y"),
    ("{{print ``}}{{if}}x{{end}}", "missing value for if"),
    ("{{break}}", "{{break}} outside {{range}}"),
    ("{{print ``}}{{if true}}a{{else}}b{{else}}c{{end}}", "expected end; found {{else}}"),
    ("{{print ``}}{{template `q`}}", r#"template "q" not defined"#),
    ("{{print ``}}{{range `abc`}}{{.}}{{end}}", "range can't iterate over abc"),
    (
        "{{print ``}}{{range $i, $e := 3}}{{$i}}{{$e}}{{end}}",
        "can't use 3 to iterate over more than one variable",
    ),
    ("{{(list 1 2).UUID}}", "can't evaluate field UUID in type []interface {}"),
    ("{{.UUID.Foo}}", "can't evaluate field Foo in type string"),
    ("{{1x}}", r#"bad number syntax: "1x""#),
    ("{{with $x := 3}}{{$x}}{{end}}{{$x}}", r#"undefined variable "$x""#),
    ("{{print ``}}{{if true}}a{{else with 3}}b{{end}}", "unexpected <with> in input"),
    ("{{/* open }}", "unclosed comment"),
    ("{{range $i, $j, $k := list 1}}{{end}}", "too many declarations in range"),
    ("{{$i, $j := 1}}", "too many declarations in command"),
];

#[test]
fn control_structures_do_what_they_do_in_ghz() {
    for (text, expected) in RECORDED {
        let texts = [0, 1].map(|number| executed(text, number));
        assert_eq!(texts, expected.map(|text| Ok(text.to_owned())), "{text}");
    }
}

#[test]
fn faults_of_control_structures_have_the_words_of_go() {
    for (text, expected) in FAULTS {
        let why = executed(text, 0).expect_err(text);
        // items of a list have their own types here
        let expected = expected.replace("interface {}", "int").replace("[]int", "[]interface {}");
        assert!(why.contains(&expected), "{text}: {why}");
    }
}

#[test]
fn quoted_texts_have_the_escapes_of_go() {
    let text = |text: &str| executed(text, 0);
    assert_eq!(text(r#"{{print "a\"b\n\u00e9\x41"}}"#).as_deref(), Ok("a\"b\n\u{e9}A"));
    assert!(text("{{print \"a\nb\"}}").unwrap_err().contains("unterminated quoted string"));
    assert!(text(r#"{{print "\q"}}"#).unwrap_err().contains("invalid syntax"));
}

/// The time and the memory of an execution are limited.
#[test]
fn executions_are_bounded() {
    for text in [
        "{{print 1}}{{range 100000}}{{range 100000}}x{{end}}{{end}}",
        "{{print 1}}{{range 9000000000}}{{end}}",
        "{{print 1}}{{define `t`}}{{template `t` .}}{{end}}{{template `t` .}}",
        "{{print .}}",
        "{{.}}",
    ] {
        assert!(executed(text, 0).is_err(), "{text}");
    }
    let deep = "{{if true}}".repeat(100);
    assert!(executed(&deep, 0).is_err());
    let parentheses = format!("{{{{{}1}}}}", "(".repeat(100));
    assert!(executed(&parentheses, 0).is_err());
}
