//! Usage errors: every row is refused with exit code 2, before anything is sent.

use crate::support::{finish, process, run, run_with_input};

/// Arguments after `run`, separated by `|`, each row with text that the message must contain.
const REFUSED: &[(&str, &[&str])] = &[
    ("", &["no URL is given", "loadstone run http://"]),
    ("http://", &["\"http://\"", "write http://host:port/path"]),
    ("http://a b/", &["\"http://a b/\"", "%20"]),
    ("http://[::1/", &["\"http://[::1/\"", "IPv6"]),
    ("http://host:99999/", &["http://host:99999/", "port"]),
    ("http://127.0.0.1:0/", &["port 0"]),
    (":80", &["\":80\"", "write http://host:port/path"]),
    ("ftp://host/", &["\"ftp\"", "http, https, ws, wss, grpc or grpcs"]),
    ("file:///etc/passwd", &["\"file\"", "is not http"]),
    ("gone.toml", &["gone.toml", "cannot be read"]),
    ("-c|0|h", &["-c is 0", "-c 1"]),
    ("-c|x|h", &["'x'", "--connections"]),
    ("-c|10000000|h", &["10000000", "1000000"]),
    ("-n|0|h", &["-n is 0"]),
    ("-d|0|h", &["-d is 0", "10s"]),
    ("-d|10 parsecs|h", &["10 parsecs", "10s"]),
    ("--rate|0|h", &["'0'", "above zero", "2000/s"]),
    ("--rate|0/s|h", &["above zero"]),
    ("--rate|NaN|h", &["NaN", "2000/s"]),
    ("--rate|inf/s|h", &["inf/s", "2000/s"]),
    ("--rate|1000000000000/s|h", &["1000000000000/s", "10000000/s"]),
    ("--rate|5/s|-c|10|h", &["-c and --rate", "--connections-max"]),
    ("--connections-max|3|h", &["--connections-max", "--rate"]),
    ("--queue-max|3|h", &["--queue-max", "--rate"]),
    ("--session|3|h", &["--session", "--rate"]),
    ("--burst|3|h", &["--burst", "--rate"]),
    ("--pipeline|0|h", &["--pipeline is 0"]),
    ("--pipeline|4|--group|2|h", &["--group 2 and --pipeline 4"]),
    ("--close|--calls|3|h", &["--close", "--calls"]),
    ("--calls|0|h", &["--calls is 0", "--calls 1"]),
    ("--random|h", &["--random", "--urls"]),
    ("--once|h", &["--once", "--urls"]),
    ("--warmup|5s|-n|10|h", &["--warmup", "-d"]),
    ("--timeout|0|h", &["--timeout is 0"]),
    ("--threads|0|h", &["--threads is 0"]),
    ("--nice|99|h", &["--nice", "-20"]),
    ("--cpus|4000|http://127.0.0.1:9/", &["--cpus", "4000"]),
    ("--bind|192.0.2.1|http://127.0.0.1:9/", &["--bind 192.0.2.1", "this machine"]),
    ("-4|-6|h", &["--ipv4", "--ipv6"]),
    ("--unix|/x|--proxy|http://p|h", &["--unix and --proxy"]),
    ("--body|a|--body-file|b|h", &["--body", "--body-file"]),
    ("--body-file|/gone/file|h", &["/gone/file"]),
    ("-H|no colon|h", &["no colon", "Name: value"]),
    ("-H|A: b\r\nEvil: c|h", &["control character"]),
    ("--method|G T|h", &["\"G T\""]),
    ("--slo|p99<|h", &["p99<", "p99<50ms"]),
    ("--abort-if|often|h", &["often"]),
    ("--expect-body|regex:(|h", &["\"(\"", "regular expression"]),
    ("--expect-status|9999|h", &["9999"]),
    ("--json|a|--csv|a|h", &["--json and --csv", "same file"]),
    ("--html|-|h", &["--html", "--json -"]),
    ("--resolve|a:b|h", &["a:b", "HOST:PORT:ADDRESS"]),
    ("--ca|/gone/ca.pem|https://127.0.0.1:9/", &["--ca", "/gone/ca.pem"]),
    ("--key|/gone/key.pem|https://127.0.0.1:9/", &["--key", "/gone/key.pem"]),
    ("--ciphers|ROT13|https://127.0.0.1:9/", &["ROT13", "known:"]),
    ("--rat|5|h", &["--rat", "--rate"]),
    ("h|i", &["\"i\"", "loadstone compare URL URL", "--urls FILE"]),
];

#[test]
fn impossible_values_are_refused_by_name() {
    for (line, words) in REFUSED {
        let mut args = vec!["run"];
        args.extend(line.split('|').filter(|arg| !arg.is_empty()));
        let ran = run(&args).expect(&[2]);
        assert_eq!(ran.stdout, "", "{args:?}");
        let missing: Vec<_> = words.iter().filter(|word| !ran.stderr.contains(**word)).collect();
        assert!(missing.is_empty(), "{args:?} lacks {missing:?}: {}", ran.stderr);
    }
}

/// A list's content, and the required part of the message.
const LISTS: &[(&[u8], &[&str])] = &[
    (b"", &["empty", "a line per URL"]),
    (b"\n\n# nothing but words\n", &["empty", "a line per URL"]),
    (b"\xff\xfe\x00h\x00t\x00t\x00p", &["not UTF-8 text"]),
    (b"\x7fELF\x02\x01\x01\x00\x00\x00", &["line 1"]),
    (b"http://127.0.0.1:9/\nftp://127.0.0.1/\n", &["line 2", "ftp"]),
    (b"http://127.0.0.1:9/ weight=0\n", &["line 1", "weight"]),
    (b"http://127.0.0.1:9/ colour=red\n", &["line 1", "colour"]),
];

#[test]
fn invalid_url_lists_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("list.txt");
    let name = path.to_str().unwrap();
    for (content, words) in LISTS {
        std::fs::write(&path, content).unwrap();
        let shown = String::from_utf8_lossy(content).into_owned();
        let from_file = run(&["run", "--urls", name]).expect(&[2]);
        let from_pipe = run_with_input(&["run", "--urls", "-"], content).expect(&[2]);
        for word in *words {
            assert!(from_file.stderr.contains(word), "{shown:?}: {}", from_file.stderr);
            assert!(from_pipe.stderr.contains(word), "{shown:?}: {}", from_pipe.stderr);
        }
        assert!(from_file.stderr.contains("--urls") && from_file.stderr.contains(name));
    }
    for path in [folder.path().to_str().unwrap(), "/gone/list.txt"] {
        let ran = run(&["run", "--urls", path]).expect(&[2]);
        assert!(ran.stderr.contains("--urls") && ran.stderr.contains(path), "{}", ran.stderr);
    }
}

#[test]
fn an_endless_file_is_not_read_forever() {
    // its memory is returned with the process
    let ran = process::run(&["run", "--urls", "/dev/zero"]).expect(&[2]);
    assert!(ran.stderr.contains("/dev/zero") && ran.stderr.contains("larger"), "{}", ran.stderr);
}

#[test]
fn a_list_from_a_closed_standard_input_is_empty() {
    let mut command = super::running::shell(r#"exec "$0" "$@" <&-"#);
    command.args(["run", "--urls", "-"]);
    let ran = finish(command, b"").expect(&[2]);
    assert!(ran.stderr.contains("--urls"), "{}", ran.stderr);
}

#[test]
fn an_unreadable_plan_names_the_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.toml");
    let name = path.to_str().unwrap();
    for (text, words) in [
        ("", "plan.toml"),
        ("version = 1\nbanana = 3\n", "banana"),
        ("version = 99\n", "99"),
        ("[[[", "line 1"),
        ("version = 1\nurl = \"http://h/\"\nload = { users = 0 }\n", "-c is 0"),
    ] {
        std::fs::write(&path, text).unwrap();
        let ran = run(&["run", name]).expect(&[2]);
        assert!(ran.stderr.contains(name), "{text:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(words), "{text:?}: {}", ran.stderr);
    }
}

#[test]
fn no_command_and_wrong_commands() {
    let wrong: [&[&str]; 4] =
        [&[], &["rum"], &["site", "--listen", "nowhere"], &["completions", "dos"]];
    for args in wrong {
        let ran = run(args).expect(&[2]);
        assert!(!ran.stderr.is_empty(), "{args:?} is refused without a word");
    }
}
