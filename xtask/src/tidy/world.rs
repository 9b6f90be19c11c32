//! Permitted places of side effects: sockets, files, threads, the environment and the clock.

use super::layers::{SHELL_LAYER, is_pure, layer_of};
use super::source::{Named, Source};
use super::tree::source_of;
use super::{Finding, Tree};

/// Forbidden in the pure crates. A name ending in `*` matches every name with that prefix.
const WORLD: &[(&str, &str)] = &[
    ("std::net::Tcp*", "a socket"),
    ("std::net::Udp*", "a socket"),
    ("std::net::*", "sockets, among others: name what you need"),
    ("std::net::ToSocketAddrs", "a name lookup"),
    ("std::os::unix::net", "a socket"),
    ("std::os::fd", "a descriptor"),
    ("std::fs", "a file"),
    ("std::io::stdin", "a stream of the process"),
    ("std::io::stdout", "a stream of the process"),
    ("std::io::stderr", "a stream of the process"),
    ("std::thread", "a thread"),
    ("std::env", "the environment"),
    ("std::process", "a process"),
    ("std::time::Instant::now", "the clock"),
    ("std::time::SystemTime", "the clock"),
];

/// Functions that read a clock or sleep.
const CLOCK: &[&str] = &[
    "std::time::Instant::now",
    "std::time::SystemTime::now",
    "std::thread::sleep",
    "std::thread::park_timeout",
    "rustix::time::clock_gettime",
    "libc::clock_gettime",
    "libc::nanosleep",
    "tokio::time::sleep",
    "tokio::time::Instant::now",
];

/// Arguments, variables and streams of the process.
const PROCESS: &[&str] = &[
    "std::env::args*",
    "std::env::current_exe",
    "std::env::var*",
    "std::io::stderr",
    "std::io::stdin",
    "std::io::stdout",
];

/// Crates whose code commands run.
const COMMANDS: &[&str] = &["args", "fleetrun", "loadstone", "session", "store", "world"];

/// Files that need the process's own streams: an open descriptor by its path, and a stream that a
/// child inherits.
const WITH_PROCESS: &[&str] =
    &["crates/load/session/src/files.rs", "crates/loadstone/src/netpath_command.rs"];

const SLEEP: &[&str] = &["std::thread::sleep", "std::thread::park_timeout", "tokio::time::sleep"];

/// Layers 0-3 and the simulator touch nothing of the world outside their tests.
pub(super) fn pure_crates(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for (path, source) in product(tree, is_pure) {
        for Named { path: named, line } in outside_tests(source) {
            if let Some((_, what)) = WORLD.iter().find(|(pattern, _)| matches(pattern, &named)) {
                let text = format!("{named} is {what}: not in layers 0-3 (take it as an argument)");
                found.push(Finding::new(path, line, text));
            }
        }
    }
    found
}

/// Checks that nothing reads a clock or sleeps outside layer 4, `live`, and one file of `session`.
pub(super) fn clocks(tree: &Tree) -> Vec<Finding> {
    let clockless = |name: &str| {
        let shell = layer_of(name) == Some(SHELL_LAYER) || name == "live";
        !shell && !is_pure(name)
    };
    let mut found = Vec::new();
    let mut of_session: Vec<Vec<Finding>> = Vec::new();
    for (path, source) in product(tree, clockless) {
        let reads: Vec<Finding> = outside_tests(source)
            .filter(|named| CLOCK.iter().any(|pattern| matches(pattern, &named.path)))
            .map(|named| {
                let text = format!("{} outside the shells: hand the instant in", named.path);
                Finding::new(path, named.line, text)
            })
            .collect();
        match path.starts_with("crates/load/session/") {
            true if reads.is_empty() => {}
            true => of_session.push(reads),
            false => found.extend(reads),
        }
    }
    if of_session.len() > 1 {
        found.extend(of_session.into_iter().flatten().map(|mut finding| {
            finding.text.push_str(" (session has more than one file that reads a clock)");
            finding
        }));
    }
    found
}

/// Checks that commands take their arguments, variables and streams from their invocation, so that
/// tests can run them in the test's process.
pub(super) fn invocations(tree: &Tree) -> Vec<Finding> {
    let files = product(tree, |name| COMMANDS.contains(&name));
    let files = files.filter(|(path, _)| !WITH_PROCESS.contains(path));
    let mut found = Vec::new();
    for (path, source) in files {
        for Named { path: named, line } in outside_tests(source) {
            if PROCESS.iter().any(|pattern| matches(pattern, &named)) {
                let text = format!("{named} is of the process: use host::invocation");
                found.push(Finding::new(path, line, text));
            }
        }
    }
    found
}

/// Checks that a test waits for an event, not for time to pass.
pub(super) fn sleeping_tests(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for (path, source) in tree.sources().filter(|(path, _)| path.starts_with("crates/")) {
        let whole = tree.tests().contains(path);
        for Named { path: named, line } in source.paths() {
            let sleeps = SLEEP.iter().any(|pattern| matches(pattern, &named));
            if sleeps && (whole || source.is_test_line(line)) {
                found.push(Finding::new(path, line, format!("a test that sleeps ({named})")));
            }
        }
    }
    found
}

/// Returns parsed files below `crates/NAME/src` that are not tests, for the crates that `of`
/// selects.
fn product(tree: &Tree, of: impl Fn(&str) -> bool) -> impl Iterator<Item = (&str, &Source)> {
    tree.sources().filter(move |(path, _)| {
        source_of(path).is_some_and(|(name, _)| of(name)) && !tree.tests().contains(*path)
    })
}

fn outside_tests(source: &Source) -> impl Iterator<Item = Named> {
    source.paths().into_iter().filter(|named| !source.is_test_line(named.line))
}

/// Matches a path against a pattern: `std::fs` matches itself and everything below it;
/// `std::net::Tcp*` matches every name with this prefix; a pattern ending in `::*` matches the glob
/// import itself.
fn matches(pattern: &str, path: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) if start.ends_with("::") => path == pattern,
        Some(start) => path.starts_with(start),
        None => {
            path == pattern || path.strip_prefix(pattern).is_some_and(|rest| rest.starts_with("::"))
        }
    }
}
