//! Continuous integration: the cheapest check first, with the same steps as on a contributor's
//! machine.
//!
//! Tests run twice: all of them on the dev profile, and those of the faces, of Lua and of torture
//! on the release profile, which users build. Both are built before a test runs; then they run at
//! the same time.

use crate::tried_again::{self, Ended};
use crate::{licenses, packages, shell, tidy, truths};
use anyhow::Context as _;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Notes for the closing lines: a step that could not run on this machine, which is not a failure,
/// and tests that passed only when repeated.
static NOTES: Mutex<Vec<String>> = Mutex::new(Vec::new());

type Step = (&'static str, fn(&Path) -> anyhow::Result<()>);

const STEPS: &[Step] = &[
    ("format", |root| shell::run(cargo(root).args(["fmt", "--all", "--check"]))),
    ("tidy", tidy::run),
    // before the first step that builds everything: LuaJIT is built with make
    ("packages", |_| packages::install()),
    ("clippy", |root| {
        let what = ["clippy", "--workspace", "--all-targets", "--locked", "--"];
        shell::run(cargo(root).args(what).args(LINTS))
    }),
    ("deny", |root| {
        if let licenses::Advisories::NotLookedUp(why) = licenses::run(root)? {
            NOTES.lock().unwrap_or_else(PoisonError::into_inner).push(format!("skipped: {why}"));
        }
        Ok(())
    }),
    ("doc", |root| {
        let mut doc = cargo(root);
        doc.env("RUSTDOCFLAGS", "-D warnings");
        checked_by_clippy(&mut doc);
        // these doc comments are help texts, with brackets that are not links
        let help = ["--exclude", "loadstone", "--exclude", "args"];
        let what = ["doc", "--workspace", "--no-deps", "--locked"];
        shell::run(doc.args(what).args(help))
    }),
    ("test", |root| tests(root, &["--locked".to_owned()])),
    // real servers, the rows that end soon
    ("truths", |root| {
        // built together with the tests: built separately, it and all its crates would have other
        // features
        let binary = shell::target_folder(root).join("debug/loadstone");
        truths::run(root, &truths::Options::ci(binary))
    }),
];

/// Arguments for clippy.
const LINTS: [&str; 2] = ["-D", "warnings"];

/// Makes cargo reuse the crates as checked by the step `clippy`, instead of checking each of them
/// again: cargo stores the results of another compiler driver separately.
fn checked_by_clippy(cargo: &mut Command) {
    let driver = Path::new(cargo.get_program()).with_file_name("clippy-driver");
    if driver.is_file() {
        cargo.env("RUSTC_WORKSPACE_WRAPPER", driver);
        // as cargo-clippy passes its arguments on
        cargo.env("CLIPPY_ARGS", LINTS.map(|word| format!("{word}__CLIPPY_HACKERY__")).concat());
    }
}

/// Runs `cargo xtask ci`: every step in order; the first failure ends it.
///
/// # Errors
/// Fails with the first step that failed.
pub(crate) fn all(root: &Path) -> anyhow::Result<()> {
    for (name, step) in STEPS {
        eprintln!("== {name}");
        let start = Instant::now();
        step(root).map_err(|error| error.context(format!("step {name}")))?;
        eprintln!("== {name}: done in {:.1} s", start.elapsed().as_secs_f64());
    }
    eprintln!("== all {} steps passed", STEPS.len());
    for note in NOTES.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        eprintln!("== note: {note}");
    }
    Ok(())
}

/// Runs `cargo xtask test`.
///
/// # Errors
/// Fails if a program that the tests need is missing, tidy found something, or a test failed.
pub(crate) fn test(root: &Path, args: &[String]) -> anyhow::Result<()> {
    tidy::run(root)?;
    tests(root, args)
}

/// Tests that use the program from outside, each a test binary of the package `loadstone`: they run
/// again on the release build, which users build.
const FROM_OUTSIDE: [&str; 3] = ["faces", "hard_times", WAITING];

/// Tests that spend their time waiting for server timeouts, so that more of them run at once.
const WAITING: &str = "torture";
const AT_ONCE: &str = "4";

/// Tests that start servers and loads of several seconds: a separate lane, in parallel to the
/// others.
const SLOW: [&str; 5] = ["features", "fleet", "live", "pages", "store"];

const EVERYWHERE: [&str; 2] = ["--workspace", "--no-fail-fast"];

const ESTIMATE: &str = "\
xtask: all tests in the dev profile, concurrently with those of the faces, of Lua and of torture on the
xtask: release profile; an empty build folder takes about 35 minutes on two cores, mostly compiling";

fn tests(root: &Path, args: &[String]) -> anyhow::Result<()> {
    packages::install()?;
    // with a filter, only one profile is wanted
    if args.iter().any(|arg| arg != "--locked") {
        return run_tests(root, &EVERYWHERE, args);
    }
    eprintln!("{ESTIMATE}");
    build(root, args)?;
    // one failure must not hide the others: all lanes run to completion. No doc comment has an
    // example that runs (a rule of tidy), so that the pass of rustdoc over every crate is saved.
    let names = test_names(root)?;
    let others = names.iter().map(String::as_str);
    let others = others.filter(|name| *name != WAITING && !SLOW.contains(name));
    let others = others.flat_map(|name| ["--test", name]);
    let what: Vec<&str> =
        EVERYWHERE.into_iter().chain(["--lib", "--bin", "xtask"]).chain(others).collect();
    let others = || {
        let mut test = test_cargo(root);
        test.arg("test").args(args).args(&what);
        vec![run_lane(&mut test, shell::run_and_print)]
    };
    let slow = || vec![run_lane(&mut tests_named(root, args, &SLOW), shell::run_and_capture)];
    for name in tried_again::repeat(lanes(others, [&slow, &|| test_source_build(root, args)]))? {
        let note = format!("{name} failed alongside other tests and passed alone: find its race");
        eprintln!("xtask: {note}");
        NOTES.lock().unwrap_or_else(PoisonError::into_inner).push(note);
    }
    Ok(())
}

/// Runs a command of tests, with its output shown by `run`.
fn run_lane(
    test: &mut Command,
    run: impl FnOnce(&mut Command) -> (anyhow::Result<()>, String),
) -> Ended {
    packages::with_system_folders(test);
    let (result, printed) = run(test);
    Ended::new(test, result, &printed)
}

/// Every test of the workspace that is a separate program, by name.
fn test_names(root: &Path) -> anyhow::Result<BTreeSet<String>> {
    let mut metadata = cargo(root);
    let json = shell::output(metadata.args(["metadata", "--no-deps", "--format-version", "1"]))?;
    let facts: serde_json::Value = serde_json::from_str(&json)?;
    let list = |value: &serde_json::Value| value.as_array().cloned().unwrap_or_default();
    let packages = list(&facts["packages"]);
    let targets = packages.into_iter().flat_map(|package| list(&package["targets"]));
    let is_test =
        |target: &serde_json::Value| list(&target["kind"]).iter().any(|kind| kind == "test");
    let tests = targets.filter(is_test);
    Ok(tests.filter_map(|target| target["name"].as_str().map(str::to_owned)).collect())
}

/// A part of the tests.
type Lane<'a> = &'a (dyn Fn() -> Vec<Ended> + Sync);

/// Runs all at the same time: each mostly waits, for server timeouts and for loads of seconds.
fn lanes(first: impl FnOnce() -> Vec<Ended>, others: [Lane<'_>; 2]) -> Vec<Ended> {
    std::thread::scope(|scope| {
        let others = others.map(|lane| scope.spawn(lane));
        let mut all = first();
        for lane in others {
            let panicked =
                |_| vec![Ended::before_tests(Err(anyhow::anyhow!("a lane of tests panicked")))];
            all.extend(lane.join().unwrap_or_else(panicked));
        }
        all
    })
}

/// Builds everything that the tests start, before any of them runs. Both profiles are built at the
/// same time, so that the last crate of one leaves no core idle.
fn build(root: &Path, args: &[String]) -> anyhow::Result<()> {
    let mut release = cargo(root);
    release.args(["build", "--release", "--package", "loadstone"]).args(args);
    let mut dev = cargo(root);
    dev.args(["test", "--no-run", "--workspace", "--lib", "--bin", "xtask", "--tests"]).args(args);
    std::thread::scope(|scope| {
        let release = scope.spawn(move || shell::run(&mut release));
        let dev = shell::run(&mut dev);
        let release = release.join().map_err(|_| anyhow::anyhow!("the release build panicked"))?;
        dev.and(release)
    })
}

/// The tests of the package `lua` that are separate programs: each Rust file of its folder.
///
/// # Errors
/// Fails for an empty list: the wrong tests would run.
fn lua_tests(root: &Path) -> anyhow::Result<Vec<String>> {
    let folder = root.join("crates/load/lua/tests");
    let files = std::fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
    let rust = files.flatten().map(|file| file.path());
    let rust = rust.filter(|path| path.extension().is_some_and(|end| end == "rs"));
    let names = rust.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()));
    let names: Vec<String> = names.collect();
    anyhow::ensure!(!names.is_empty(), "{} has no test binary", folder.display());
    Ok(names)
}

/// The build from source: Lua's tests built with it, and the external tests, as built by the dev
/// profile, with the release build as the program that they start. Also the dev profile's own tests
/// that wait.
fn test_source_build(root: &Path, args: &[String]) -> Vec<Ended> {
    let release = shell::target_folder(root).join("release/loadstone");
    let mut lua = test_cargo(root);
    // together with the program's package its dependencies have the same features; otherwise LuaJIT
    // and others would be rebuilt
    let packages = ["--package", "loadstone", "--package", "lua"];
    // a failed test must not end the lane: only the failed tests are repeated
    lua.arg("test").args(args).args(["--release", "--no-fail-fast"]).args(packages);
    let names = match lua_tests(root) {
        Ok(names) => names,
        Err(why) => return vec![Ended::before_tests(Err(why))],
    };
    lua.args(names.iter().flat_map(|name| ["--test", name]));
    let tests = |names: &[&str]| {
        let mut test = tests_named(root, args, names);
        if names.contains(&WAITING) {
            test.env("RUST_TEST_THREADS", AT_ONCE);
        }
        test
    };
    let busy: Vec<&str> = FROM_OUTSIDE.into_iter().filter(|name| *name != WAITING).collect();
    let mut outside = tests(&busy);
    let mut waiting = tests(&[WAITING]);
    outside.env("LOADSTONE_BIN", &release);
    waiting.env("LOADSTONE_BIN", &release);
    [lua, outside, waiting, tests(&[WAITING])]
        .into_iter()
        .map(|mut command| run_lane(&mut command, shell::run_and_capture))
        .collect()
}

/// The command that runs these tests, which are separate programs.
fn tests_named(root: &Path, args: &[String], names: &[&str]) -> Command {
    let mut test = test_cargo(root);
    test.arg("test").args(args).args(EVERYWHERE);
    test.args(names.iter().flat_map(|name| ["--test", name]));
    test
}

fn run_tests(root: &Path, what: &[&str], args: &[String]) -> anyhow::Result<()> {
    let mut test = test_cargo(root);
    packages::with_system_folders(&mut test);
    shell::run(test.arg("test").args(args).args(what))
}

/// Runs `cargo xtask bless`: updates the snapshots with the program's output. Read the diff.
///
/// # Errors
/// Fails if a test fails for another reason than its snapshot.
pub(crate) fn bless(root: &Path, args: &[String]) -> anyhow::Result<()> {
    let mut test = test_cargo(root);
    packages::with_system_folders(&mut test);
    test.env("INSTA_UPDATE", "always").arg("test");
    if !args.iter().any(|arg| arg == "-p" || arg.starts_with("--package")) {
        test.arg("--workspace");
    }
    shell::run(test.args(args))?;
    if let Some(git) = shell::find("git") {
        let mut status = Command::new(git);
        shell::run(status.current_dir(root).args(["status", "--short", "--", "*.snap"]))?;
    }
    Ok(())
}

/// Runs `cargo xtask schema`: writes docs/schema. Read the diff; a test of `record` compares the
/// files with the types.
///
/// # Errors
/// Fails if it cannot be built, or a file cannot be written.
pub(crate) fn schema(root: &Path) -> anyhow::Result<()> {
    let what = ["run", "--quiet", "--locked", "--package", "record", "--features", "schema"];
    let example = ["--example", "schemas", "--"];
    shell::run(cargo(root).args(what).args(example).arg(root.join("docs/schema")))
}

fn cargo(root: &Path) -> Command {
    let mut cargo = shell::cargo();
    cargo.current_dir(root);
    cargo
}

/// The command for tests. Property tests draw the same inputs each time, unless the variable is set:
/// a failure is a fault of the change and can be repeated. Plain `cargo test` draws new inputs.
fn test_cargo(root: &Path) -> Command {
    let mut command = cargo_with_default_signals(root);
    if std::env::var_os(PROPTEST_SEED).is_none() {
        command.env(PROPTEST_SEED, "1");
    }
    command
}

/// Read by proptest.
const PROPTEST_SEED: &str = "PROPTEST_RNG_SEED";

/// Resets ignored signals for tests that send signals: a program inherits them, as set by `nohup`
/// and by shells for background jobs.
fn cargo_with_default_signals(root: &Path) -> Command {
    // only GNU's env has this option; otherwise the tests inherit the caller's settings
    const RESET_SIGNALS: [&str; 2] = ["env", "--default-signal=HUP,INT,QUIT,TERM"];
    let mut tried = Command::new(RESET_SIGNALS[0]);
    tried.args([RESET_SIGNALS[1], "true"]).stdout(Stdio::null()).stderr(Stdio::null());
    if !tried.status().is_ok_and(|status| status.success()) {
        return cargo(root);
    }
    let mut command = Command::new(RESET_SIGNALS[0]);
    command.arg(RESET_SIGNALS[1]).arg(shell::cargo().get_program()).current_dir(root);
    command
}
