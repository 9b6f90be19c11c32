use super::*;
use crate::recorded::commands::begins_command;
use proptest::prelude::*;

/// Returns the words of one command, as text.
fn one(text: &str) -> Vec<String> {
    let commands = split(text).unwrap();
    assert!(commands.len() <= 1, "{text}");
    let words = commands.into_iter().flatten();
    words.map(|word| String::from_utf8(word).unwrap()).collect()
}

#[test]
fn words_are_split_as_a_shell_does() {
    for (text, words) in [
        ("", &[][..]),
        ("curl  http://h/ -H 'A: b c'", &["curl", "http://h/", "-H", "A: b c"]),
        (r#""a \"b\" \n" c\ d"#, &[r#"a "b" \n"#, "c d"]),
        ("a \\\n  b", &["a", "b"]),
        ("a \\\r\n -b # said\n-c", &["a", "-b", "-c"]),
        (r"$'it\'s \u0041\x42\n'x", &["it's AB\nx"]),
        ("'' ''a''", &["", "a"]),
        ("a#b cost=\\$5 '$5' $. $", &["a#b", "cost=$5", "$5", "$.", "$"]),
        ("$\"a b\"", &["a b"]),
        ("curl.exe 'a' `\r\n -b", &["curl.exe", "a", "-b"]),
    ] {
        assert_eq!(one(text), words, "{text}");
    }
}

/// Bytes as in bash 5.2: `printf %s WORD | od -c` in C.UTF-8.
#[test]
fn escapes_of_c_are_the_bytes_that_bash_makes() {
    let cases: [(&str, &[u8]); 22] = [
        (r"$'Hi\041 it\'s'", b"Hi! it's"),
        (r"$'\303\251'", b"\xc3\xa9"),
        (r"$'\xc3\xa9\xg'", b"\xc3\xa9\\xg"),
        (r"$'\101\e[0m\E'", b"A\x1b[0m\x1b"),
        (r"$'a\cAb\c?\c['", b"a\x01b\x7f\x1b"),
        (r"$'C:\qdir'", b"C:\\qdir"),
        (r"$'\a\b\f\n\r\t\v'", b"\x07\x08\x0c\n\r\t\x0b"),
        (r#"$'\\\"\?'"#, b"\\\"?"),
        (r"$'a\0b'c", b"ac"),
        (r"$'a\x00b'$'c'", b"ac"),
        (r"$'\u0000'x", b"x"),
        (r"$'\400\777'", b""),
        (r"$'\777'", b"\xff"),
        (r"$'\08'", b""),
        (r"$'\x{41}\x{1F60}'", b"A`"),
        (r"$'\u00e9\u20ac\U0001f600'", "é€😀".as_bytes()),
        (r"$'\u\U\ug'", b"\\u\\U\\ug"),
        (r"$'\ud800'", b"\xed\xa0\x80"),
        (r"$'\U7fffffff'", b"\xfd\xbf\xbf\xbf\xbf\xbf"),
        (r"$'\UFFFFFFFFz'", b"z"),
        (r"$'\c'", b"\\c"),
        (r"$'é'", "é".as_bytes()),
    ];
    for (text, bytes) in cases {
        assert_eq!(split(text).unwrap(), [[bytes]], "{text}");
    }
}

#[test]
fn commands_end_where_a_shell_ends_them() {
    for (text, commands) in [
        ("curl a ;\ncurl b", &[&["curl", "a"][..], &["curl", "b"]][..]),
        ("curl a; curl b && curl c &", &[&["curl", "a"], &["curl", "b"], &["curl", "c"]]),
        (
            "curl a\n$ curl b\n% time curl c",
            &[&["curl", "a"], &["$", "curl", "b"], &["%", "time", "curl", "c"]],
        ),
        ("curl a\n  -k\n\n  curl b\n", &[&["curl", "a", "-k"], &["curl", "b"]]),
    ] {
        let split = split(text).unwrap();
        let message: Vec<Vec<&str>> = split
            .iter()
            .map(|words| words.iter().map(|word| std::str::from_utf8(word).unwrap()).collect())
            .collect();
        assert_eq!(message, commands, "{text}");
    }
    assert!(begins_command("$ time /usr/bin/curl http://h/"));
    assert!(!begins_command("# curl http://h/") && !begins_command("curly"));
    let why = split("curl a\nsleep 1\ncurl b").unwrap_err().error.0;
    assert!(why.contains("a line begins with \"sleep\""), "{why}");
}

#[test]
fn carets_inside_bash_quotes_are_text() {
    for (text, words) in [
        (r#"'a ^"b"' c"#, &[r#"a ^"b""#, "c"][..]),
        ("'a ^\nb' c", &["a ^\nb", "c"]),
        (r#""a\\" 'b^"'"#, &["a\\", "b^\""]),
        (r#"'it'\''s ^"b"' c"#, &[r#"it's ^"b""#, "c"]),
        (r#"a\"b 'c^"'"#, &["a\"b", "c^\""]),
        (r#"$'it\'s ^"b"' c"#, &[r#"it's ^"b""#, "c"]),
        ("^\"it's^\" ^\r\n b", &["it's", "b"]),
        ("\"it's\" ^\r\n b ^", &["it's", "b"]),
    ] {
        assert_eq!(one(text), words, "{text}");
    }
}

#[test]
fn shell_operators_are_refused() {
    for text in ["a | b", "$(id)", "`id`", "a > f", "(a)", "cost=$5", "$HOME", "a$?"] {
        assert!(split(text).unwrap_err().error.0.contains("outside of quotes"), "{text}");
    }
    for text in ["\"$HOME\"", "\"?$top=3\"", "\"`id`\"", "\"$5\""] {
        assert!(split(text).unwrap_err().error.0.contains("inside double quotes"), "{text}");
    }
    for text in ["'a", "\"a", "$'a", "\"a\\", "$'\\"] {
        assert!(split(text).unwrap_err().error.0.contains("not closed"), "{text}");
    }
}

proptest! {
    #[test]
    fn quoted_words_round_trip(words in proptest::collection::vec("[^']{0,12}", 1..5)) {
        let text: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
        prop_assert_eq!(one(&text.join(" ")), words);
    }

    #[test]
    fn arbitrary_text_is_handled(text in "\\PC*|[\\^\"\\\\ &\\na]*") {
        split(&text).ok();
    }
}
