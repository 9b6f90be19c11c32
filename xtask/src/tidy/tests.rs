//! For each rule, a violation planted in a clean tree is found, and similar valid code is not.

use super::{Tree, findings};

const CLEAN: &[(&str, &str)] = &[
    ("Cargo.toml", "[workspace.package]\nversion = \"0.1.0\"\n"),
    ("CHANGELOG.md", "# Changelog\n\n## [0.1.0] - unreleased\n"),
    (
        "ARCHITECTURE.md",
        "# Map\n\n- `crates/units`, `crates/protocol`, `crates/net`, `crates/report`\n",
    ),
    (
        "README.md",
        "# Loadstone\n\nSee [the map](ARCHITECTURE.md#map) and [units](crates/units/).\n",
    ),
    ("crates/units/src/lib.rs", "#![forbid(unsafe_code)]\n"),
    ("crates/protocol/src/lib.rs", "#![forbid(unsafe_code)]\n"),
    ("crates/net/src/lib.rs", "//! Sockets.\n"),
    ("crates/report/src/lib.rs", "//! Text.\n"),
];

/// Returns the clean tree with some files added or replaced.
fn tree(changes: &[(&str, &str)]) -> Tree {
    let mut files: Vec<(String, String)> = ["units", "protocol", "net", "report"]
        .iter()
        .map(|name| (format!("crates/{name}/Cargo.toml"), manifest(name, "")))
        .collect();
    files.extend(CLEAN.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())));
    for (path, text) in changes {
        files.retain(|(known, _)| known != path);
        files.push(((*path).to_owned(), (*text).to_owned()));
    }
    let files: Vec<(&str, &str)> =
        files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    Tree::new(&files)
}

fn manifest(name: &str, rest: &str) -> String {
    format!("[package]\nname = \"{name}\"\n[lints]\nworkspace = true\n{rest}")
}

/// Returns the findings as `path:line: text`.
fn found(changes: &[(&str, &str)]) -> Vec<String> {
    findings(&tree(changes)).iter().map(ToString::to_string).collect()
}

/// Checks for exactly one finding, which contains `expected`.
#[track_caller]
fn finds(changes: &[(&str, &str)], expected: &str) {
    let found = found(changes);
    assert!(found.len() == 1 && found[0].contains(expected), "{expected:?} expected: {found:#?}");
}

#[track_caller]
fn finds_nothing(changes: &[(&str, &str)]) {
    assert_eq!(found(changes), [""; 0]);
}

const PURE: &str = "crates/protocol/src/machine.rs";
const SHELL: &str = "crates/net/src/loop.rs";
const SHOWN: &str = "crates/report/src/text.rs";

#[test]
fn a_tuple_is_not_two_statements() {
    let body = |body: &str| format!("//! Text.\nfn f(mut a: u8, mut b: u8) {{\n    {body}\n}}\n");
    for packed in ["let (c, mut d) = (a, b + 1);", "(a, b) = (1, 2);", "let (c, d) = (f(a), (b));"]
    {
        finds(&[(SHELL, &body(packed))], "loop.rs:3: two statements packed into a tuple");
    }
    for needed in [
        "(a, b) = (b, a);",
        "let (a, b) = (b, a);",
        "let (c, d) = f(a, b);",
        "let c = (a, b);",
        "let (Some(c), 1) = (g(a), b) else { return };",
    ] {
        finds_nothing(&[(SHELL, &body(needed))]);
    }
    let test = body("let (c, d) = (a, b);").replace("fn f", "#[cfg(test)]\nfn f");
    finds_nothing(&[(SHELL, &test)]);
}

#[test]
fn a_public_function_names_what_it_takes_and_returns() {
    for pair in ["pub fn f(low_high: (u64, u64)) {}", "pub fn f() -> Option<(bool, bool)> { None }"]
    {
        finds(&[(SHELL, &format!("//! Text.\n{pair}\n"))], "a pair of");
    }
    for good in [
        "pub fn f(at: (u64, u32), all: &[(u8, u8)]) {}",
        "pub(crate) fn f() -> (u8, u8) { (1, 2) }",
    ] {
        finds_nothing(&[(SHELL, &format!("//! Text.\n{good}\n"))]);
    }
}

#[test]
fn a_clean_tree_has_no_findings() {
    finds_nothing(&[]);
}

#[test]
fn dependencies_go_downwards() {
    let depends = |name: &str, on: &str| manifest(name, &format!("[dependencies]\n{on} = \"1\"\n"));
    let protocol = "crates/protocol/Cargo.toml";
    finds(
        &[(protocol, &depends("protocol", "net"))],
        "protocol (layer 2) may not depend on net (layer 4)",
    );
    finds(&[("crates/units/Cargo.toml", &depends("units", "protocol"))], "units (layer 0)");
    finds(&[("crates/net/Cargo.toml", &depends("net", "report"))], "may not depend on report");
    finds_nothing(&[(protocol, &depends("protocol", "units"))]);
    finds_nothing(&[("crates/report/Cargo.toml", &depends("report", "units"))]);
    let renamed = manifest("protocol", "[dependencies]\nio = { package = \"net\", path = \"\" }\n");
    finds(&[(protocol, &renamed)], "may not depend on net");
    let unix = manifest("protocol", "[target.'cfg(unix)'.dependencies]\nnet.workspace = true\n");
    finds(&[(protocol, &unix)], "may not depend on net");
    let build = manifest("protocol", "[build-dependencies]\nnet.workspace = true\n");
    finds(&[(protocol, &build)], "may not depend on net");
    let dev = manifest("protocol", "[dev-dependencies]\nnet.workspace = true\n");
    finds_nothing(&[(protocol, &dev)]);
}

#[test]
fn nothing_depends_on_the_binary_or_the_simulator() {
    let map = "`crates/units` `crates/protocol` `crates/net` `crates/report` `crates/loadstone` `crates/sim`";
    let base = [
        ("ARCHITECTURE.md", format!("# Map\n{map}\n")),
        ("crates/loadstone/Cargo.toml", manifest("loadstone", "[dependencies]\nreport = \"1\"\n")),
        ("crates/sim/Cargo.toml", manifest("sim", "[dependencies]\nprotocol = \"1\"\n")),
    ];
    let with = |path: &'static str, text: String| {
        let mut files = base.to_vec();
        files.push((path, text));
        let files: Vec<(&str, &str)> =
            files.iter().map(|(path, text)| (*path, text.as_str())).collect();
        found(&files)
    };
    assert!(with("crates/x.txt", String::new()).is_empty());
    for (kind, on) in
        [("dev-dependencies", "loadstone"), ("dependencies", "loadstone"), ("dependencies", "sim")]
    {
        let text = manifest("report", &format!("[{kind}]\n{on} = \"1\"\n"));
        let found = with("crates/report/Cargo.toml", text);
        assert!(found.len() == 1 && found[0].contains(on), "{kind} {on}: {found:?}");
    }
    let dev = manifest("report", "[dev-dependencies]\nsim = \"1\"\n");
    assert!(with("crates/report/Cargo.toml", dev).is_empty());
    let shell = manifest("sim", "[dependencies]\nnet = \"1\"\n");
    assert!(with("crates/sim/Cargo.toml", shell)[0].contains("may not depend on net"));
}

#[test]
fn libraries_are_used_only_in_their_crates() {
    let uses = |name: &str, library: &str| {
        let path = format!("crates/{name}/Cargo.toml");
        let text = manifest(name, &format!("[dependencies]\n{library}.workspace = true\n"));
        found(&[(path.as_str(), text.as_str())])
    };
    assert!(uses("protocol", "socket2")[0].contains("protocol may not use socket2"));
    assert!(uses("net", "httparse")[0].contains("know no HTTP"));
    assert!(uses("report", "tokio")[0].contains("async runtime"));
    assert!(uses("report", "rusqlite")[0].contains("SQL lives in store"));
    assert!(uses("protocol", "httparse").is_empty() && uses("net", "socket2").is_empty());
}

#[test]
fn a_crate_has_a_place_a_name_and_the_lints() {
    let map =
        "# Map\n`crates/units` `crates/protocol` `crates/net` `crates/report` `crates/utils`\n";
    let added =
        found(&[("ARCHITECTURE.md", map), ("crates/utils/Cargo.toml", &manifest("utils", ""))]);
    assert_eq!(added.len(), 2, "{added:?}");
    assert!(added.iter().any(|text| text.contains("a crate called utils")));
    assert!(added.iter().any(|text| text.contains("has no layer")));
    finds(&[("crates/protocol/Cargo.toml", &manifest("http", ""))], "not its folder's");
    finds(
        &[("crates/protocol/Cargo.toml", "[package]\nname = \"protocol\"\n")],
        "[lints] workspace",
    );
    finds(&[("crates/protocol/src/lib.rs", "//! Safe.\n")], "forbids unsafe code");
}

#[test]
fn the_pure_layers_do_not_touch_the_world() {
    for (code, expected) in [
        ("use std::net::TcpStream;", "std::net::TcpStream is a socket"),
        ("use std::net::{IpAddr, UdpSocket};", "std::net::UdpSocket is a socket"),
        ("use std::net::*;", "name what you need"),
        ("fn f() { std::fs::read(\"x\").ok(); }", "std::fs::read is a file"),
        ("use std::{fmt, fs};", "std::fs is a file"),
        ("fn f() { let _ = std::thread::current(); }", "a thread"),
        ("fn f() { std::env::var(\"X\").ok(); }", "the environment"),
        ("fn f() { std::time::Instant::now(); }", "the clock"),
        ("use std::time::SystemTime;", "the clock"),
        ("use std::time::Instant as I;\nfn f() { I::now(); }", ":2: std::time::Instant::now"),
        ("use std::time;\nfn f() { time::Instant::now(); }", ":2: std::time::Instant::now"),
        ("m! { fn f() { std::thread::yield_now(); } }", "a thread"),
        ("use std::os::unix::net::UnixStream;", "a socket"),
        ("#[cfg(not(test))]\nfn f() { std::process::abort(); }", "a process"),
    ] {
        finds(&[(PURE, code)], expected);
        finds_nothing(&[(SHELL, code)]);
    }
}

#[test]
fn names_that_only_look_like_side_effects_pass() {
    for code in [
        "use std::net::{IpAddr, SocketAddr};\nuse std::path::Path;",
        "const V: &str = env!(\"CARGO_PKG_VERSION\");\nconst W: Option<&str> = option_env!(\"X\");",
        "/// Unlike std::fs::read or Instant::now().\nfn f() -> &'static str { \"std::fs::read\" }",
        "use std::time::{Duration, Instant};\nfn f(now: Instant) -> Instant { now + Duration::ZERO }",
        "mod fs { pub fn read() {} }\nfn f() { fs::read(); self::fs::read(); }",
        "#[cfg(test)]\nmod tests {\n    #[test]\n    fn it_works() { std::fs::read(\"x\").ok(); }\n}",
        "#[cfg(any(test, feature = \"x\"))]\nfn f() { std::env::args(); }",
    ] {
        finds_nothing(&[(PURE, code)]);
    }
}

#[test]
fn files_of_test_modules_are_tests() {
    let files = |declared| {
        [
            ("crates/protocol/src/machine.rs", declared),
            ("crates/protocol/src/machine/tests.rs", "mod deeper;\nuse std::fs::read;\n"),
            ("crates/protocol/src/machine/tests/deeper.rs", "use std::fs::read;\n"),
            ("crates/protocol/tests/whole.rs", "use std::fs::read;\n"),
        ]
    };
    finds_nothing(&files("#[cfg(test)]\nmod tests;\n"));
    assert_eq!(found(&files("mod tests;\n")).len(), 2, "the name alone does not make it a test");
}

#[test]
fn clocks_stay_in_the_shells() {
    let code = "use std::time::Instant;\nfn f() { Instant::now(); }";
    finds(&[(SHOWN, code)], "text.rs:2: std::time::Instant::now outside the shells");
    finds(&[(SHOWN, "fn f() { std::thread::sleep(D); }")], "std::thread::sleep outside");
    finds_nothing(&[(SHOWN, "fn f(now: std::time::Instant) {}")]);
    finds_nothing(&[(SHELL, code)]);
}

#[test]
fn one_file_of_session_reads_the_clock() {
    let code = "fn f() { std::time::SystemTime::now(); }";
    let map = "# Map\n`crates/units` `crates/protocol` `crates/net` `crates/report` `crates/load/session`\n";
    let manifest = manifest("session", "");
    let one = [
        ("ARCHITECTURE.md", map),
        ("crates/load/session/Cargo.toml", manifest.as_str()),
        ("crates/load/session/src/clock.rs", code),
    ];
    finds_nothing(&one);
    let mut two = one.to_vec();
    two.push(("crates/load/session/src/run.rs", code));
    let found = found(&two);
    assert!(found.len() == 2 && found[0].contains("more than one file"), "{found:?}");
}

#[test]
fn commands_use_their_invocation() {
    let session = |code: &str| {
        let map = "# Map\n`crates/units` `crates/protocol` `crates/net` `crates/report` `crates/load/session`\n";
        [
            ("ARCHITECTURE.md", map.to_owned()),
            ("crates/load/session/Cargo.toml", manifest("session", "")),
            ("crates/load/session/src/run.rs", code.to_owned()),
        ]
    };
    let found_in = |code: &str| {
        let files = session(code);
        found(&files.each_ref().map(|(path, text)| (*path, text.as_str())))
    };
    for code in [
        "fn f() { std::env::var_os(N); }",
        "use std::env;\nfn f() { env::args(); }",
        "fn f() { std::io::stdout().lock(); }",
    ] {
        let found = found_in(code);
        assert!(found.len() == 1 && found[0].contains("host::invocation"), "{code}: {found:?}");
    }
    for code in [
        "use std::io::Write;\nfn f() { std::env::temp_dir(); }",
        "#[cfg(test)]\nmod tests {\n    fn f() { std::env::var(N); }\n}",
    ] {
        assert_eq!(found_in(code), [""; 0], "{code}");
    }
}

#[test]
fn tests_do_not_sleep() {
    let code = "#[test]\nfn it_works() { std::thread::sleep(D); }";
    finds(&[(SHELL, code)], "loop.rs:2: a test that sleeps");
    finds(&[("crates/net/tests/a.rs", "use std::thread;\nfn f() { thread::sleep(D); }")], ":2:");
}

#[test]
fn functions_and_files_stay_short() {
    let function = |lines: usize| format!("fn long() {{\n{}}}\n", "    f();\n".repeat(lines - 2));
    finds_nothing(&[(PURE, &function(70))]);
    finds(&[(PURE, &function(71))], "machine.rs:1: fn long has 71 lines");
    finds(&[(PURE, &format!("impl A {{\n{}}}\n", function(71)))], "machine.rs:2: fn long");
    finds(&[(PURE, &format!("trait A {{\n{}}}\n", function(71)))], "fn long");
    finds(&[(PURE, &format!("proptest! {{\n{}}}\n", function(71)))], "fn long");
    finds(&[(PURE, &format!("#[cfg(test)]\nmod tests {{\n{}}}\n", function(71)))], "fn long");
    finds_nothing(&[("bench/limit/src/main.rs", &function(71))]);
    let documented = format!("{}{}", "/// Text.\n".repeat(30), function(70));
    finds_nothing(&[(PURE, &documented)]);
    finds_nothing(&[(PURE, &"//\n".repeat(1_000))]);
    finds(&[(PURE, &"//\n".repeat(1_001))], "1001 lines");
    let named = |chars: usize| format!("#[test]\nfn {}_is() {{}}\n", "a".repeat(chars - 3));
    finds_nothing(&[(PURE, &named(60))]);
    finds(&[(PURE, &named(61))], "machine.rs:2: fn aaa");
}

#[test]
fn words_have_one_meaning() {
    for (text, expected) in [
        ("The latency is low.", "service time"),
        ("Latencies vary.", "service time"),
        ("It does 100 RPS.", "requests/s"),
        ("Ten virtual users.", "user or session"),
        ("the average time", "say mean"),
        ("An Error rate of 1 %", "failures %"),
        ("hits per second", "say calls"),
    ] {
        finds(
            &[("docs/a.md", &format!("# A\n\n{text}\n"))],
            &format!("docs/a.md:3: {:?}", first(text)),
        );
        finds(&[(PURE, &format!("\nconst A: &str = {text:?};"))], expected);
        finds(&[(PURE, &format!("/// {text}\nfn f() {{}}"))], expected);
        finds_nothing(&[("GLOSSARY.md", text)]);
        finds_nothing(&[(PURE, &format!("// {text}\n"))]);
        finds_nothing(&[(PURE, &format!("#[test]\nfn it_works() {{ f({text:?}); }}"))]);
    }
    finds_nothing(&[(
        "docs/a.md",
        "Others print \"Latency\" or `latency`.\n\n```\nlatency\n```\n",
    )]);
    finds_nothing(&[("docs/a.md", "when the limit is hit, percentiles are never averaged\n")]);
}

#[test]
fn plain_documents_stay_plain() {
    for (text, expected) in [
        ("Whoever asks gets it.", "name the party"),
        ("The counter begins anew.", "again"),
        ("Its way out is a flag.", "fix or hint"),
        ("The user is told so.", "reported"),
        ("The file stood there.", "usual verb"),
        ("A timeout that restarts is none.", "what it is"),
        ("It waits for so many calls.", "this many"),
        ("Such a figure is to be believed.", "trusted"),
    ] {
        finds(&[("docs/guide/a.md", &format!("# A\n\n{text}\n"))], expected);
        finds_nothing(&[("docs/guide/a.md", &format!("# A\n\n```\n{text}\n```\n"))]);
        finds(&[("docs/b.md", &format!("# B\n\n{text}\n"))], expected);
    }
    finds_nothing(&[(
        "docs/guide/a.md",
        "The recommended way: none of these. It tells them apart.\n",
    )]);
}

#[test]
fn rewritten_code_stays_plain() {
    const PLAIN: &str = "crates/system/host/src/a.rs";
    for (text, expected) in [
        ("// the caller is told", "reported"),
        ("/// Closes after so many calls.\nconst A: u8 = 0;", "this many"),
        ("/// Whether it is open.\nconst A: bool = true;", "verb or a noun phrase"),
        ("/// Who calls.\n///\n/// What it does.\nconst A: u8 = 0;", ":1: a doc comment"),
        ("fn told() {}", "told\" in a function's name"),
        ("fn begin_anew<T>(_: T) {}", "anew"),
    ] {
        finds(&[(PLAIN, text)], expected);
        finds_nothing(&[("vendor/other/src/a.rs", text)]);
    }
    finds(&[("crates/other/src/a.rs", "// the caller is told")], "reported");
    finds_nothing(&[("crates/other/src/a.rs", "fn told() {}")]);
    finds_nothing(&[(
        PLAIN,
        "/// Returns whether `told` is set; `None` if there is none.\n/// What follows is optional.\nfn teller() {}",
    )]);
}

/// Returns the first of these forbidden words in the text.
fn first(text: &str) -> &str {
    ["latency", "Latencies", "RPS", "virtual users", "average", "Error rate", "hits per second"]
        .into_iter()
        .find(|word| text.contains(word))
        .unwrap()
}

#[test]
fn no_loose_ends() {
    finds(&[(PURE, "fn f() { todo!() }")], "todo! left");
    finds(&[(PURE, "fn f() { unimplemented!(\"later\") }")], "unimplemented! left");
    finds(&[(PURE, "#[test]\n#[ignore]\nfn it_works() {}")], ":2: a test switched off");
    finds(&[(PURE, "#[test]\n#[ignore = \"slow\"]\nfn it_works() {}")], "a test switched off");
    let mark = ["FIX", "ME"].concat();
    finds(&[(PURE, &format!("// {mark} later\n"))], "left behind");
    finds(&[("docs/a.md", &format!("{mark}: write\n"))], "left behind");
    finds_nothing(&[(PURE, "// a todo! in a comment\nconst A: &str = \"#[ignore]\";")]);
}

#[test]
fn examples_are_tests() {
    let fence = "`".repeat(3);
    let example = |language: &str| {
        format!("/// Doubles.\n/// {fence}{language}\n/// f(1);\n/// {fence}\nfn f() {{}}")
    };
    finds(&[(PURE, &example(""))], ":2: no test runs an example");
    finds(&[(PURE, &example("rust"))], ":2: no test runs an example");
    finds_nothing(&[(PURE, &example("text"))]);
    finds_nothing(&[(PURE, &format!("// {fence}\n"))]);
}

#[test]
fn a_path_of_one_machine_is_found() {
    for folder in ["work", "root", "home"] {
        let path = format!("/{folder}/me/x");
        finds(&[("bench/a.sh", &format!("cp {path} .\n"))], "a path of one machine");
        finds(&[(PURE, &format!("const A: &str = \"{path}\";"))], "a path of one machine");
        finds(&[("docs/a.md", &format!("see ({path})\n"))], "docs/a.md:1:");
        let test = format!("#[test]\nfn it_works() {{ f(\"{path}\"); }}");
        assert_eq!(found(&[(PURE, &test)]).is_empty(), folder == "home", "{folder}");
        finds_nothing(&[("docs/a.md", &format!("http://host{path} and ~{path}\n"))]);
    }
}

#[test]
fn the_map_names_every_crate_and_no_other() {
    finds(
        &[("ARCHITECTURE.md", "# Map\n`crates/units` `crates/protocol` `crates/net`\n")],
        "does not name crates/report",
    );
    let map =
        "# Map\n`crates/units` `crates/protocol` `crates/net` `crates/report`\n`crates/lua`\n";
    finds(&[("ARCHITECTURE.md", map)], "ARCHITECTURE.md:3: names crates/lua, which is not there");
}

#[test]
fn the_changelog_knows_the_version() {
    finds(&[("Cargo.toml", "[workspace.package]\nversion = \"0.2.0\"\n")], "no section ## [0.2.0]");
    finds(&[("CHANGELOG.md", "# Changelog\n\n## [Unreleased]\n")], "no section ## [0.1.0]");
}

#[test]
fn link_targets_exist() {
    let page = |text: &'static str| [("docs/guide/a.md", text)];
    finds(&page("[x](b.md)\n"), "docs/guide/a.md:1: link to b.md: there is no such file");
    finds(
        &page("\n[x](../../README.md#nowhere)\n"),
        ":2: link to ../../README.md#nowhere: there is no such heading",
    );
    finds(&page("[x](../../../etc/passwd)\n"), "out of the repository");
    finds(&page("![x](picture.png \"title\")\n"), "picture.png");
    finds_nothing(&page(
        "[x](../../README.md#loadstone) [y](../../crates/units) [z](https://a.example/b)\n",
    ));
    finds_nothing(&page("`[x](b.md)`\n\n```\n[x](b.md)\n```\n"));
    finds_nothing(&page("# The first, `second`\n\n[x](#the-first-second)\n"));
}

#[test]
fn a_file_that_does_not_parse_is_reported() {
    finds(&[(PURE, "fn f() {}\nfn (\n")], "cannot be parsed");
}

#[test]
fn names_of_tests_state_a_fact() {
    let named = |name: &str| format!("#[test]\nfn {name}() {{}}\n");
    for name in ["test_sizes_are_parsed", "a_case_was_run", "it_will_end", "sizes_should_fit"] {
        finds(&[(PURE, &named(name))], "write a fact in the present tense");
    }
    for name in ["sizes", "a_gzip_bomb", "every_call_failed", "one_status"] {
        finds(&[(PURE, &named(name))], &format!(":2: test {name}: it states no fact"));
    }
    finds(&[(PURE, "#[tokio::test]\nasync fn bodies() {}\n")], "test bodies");
    let inside = "proptest! {\n    #[test]\n    fn round_trip(a in any::<u8>()) {}\n}\n";
    finds(&[(PURE, inside)], ":3: test round_trip");
    for name in ["rates_follow_the_plan", "a_case_that_was_run_is_shown", "both_close", "it_works"]
    {
        finds_nothing(&[(PURE, &named(name))]);
    }
    finds_nothing(&[(PURE, "fn was() {}\n")]);
}
