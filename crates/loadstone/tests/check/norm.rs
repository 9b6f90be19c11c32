//! The plan of the norm site against the norm site: it passes, and each switch that breaks one
//! behavior makes exactly that behavior's steps fail.

use crate::servers::{Serving, chown_to_unprivileged, open_folder, own_program, unprivileged};
use crate::support::{run, text, whole};
use crate::{check, failed};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Stdio;
use tempfile::TempDir;

/// State shared by all sites of a test.
struct Stage {
    program: PathBuf,
    _folder: TempDir,
}

impl Stage {
    fn new() -> Stage {
        let folder = open_folder();
        Stage { program: own_program(folder.path()), _folder: folder }
    }
}

/// A norm site with its own tree, run by an unprivileged user.
struct Norm {
    // ended before its folder is removed
    _serving: Serving,
    url: String,
    root: PathBuf,
    plans: TempDir,
    _folder: TempDir,
}

impl Norm {
    #[track_caller]
    fn start(stage: &Stage, options: &[&str]) -> Norm {
        let (program, folder) = (&stage.program, open_folder());
        let root = folder.path().join("site");
        let made = unprivileged(program).arg("site").arg("--init").arg(&root).output().unwrap();
        assert!(made.status.success(), "{made:?}");
        // a link out of the root
        std::fs::write(folder.path().join("secret.txt"), "not for you\n").unwrap();
        chown_to_unprivileged(&folder.path().join("secret.txt"));
        let link = root.join("htdocs/sub/way-out");
        std::os::unix::fs::symlink(folder.path().join("secret.txt"), link).unwrap();
        let mut command = unprivileged(program);
        command.arg("site").arg("--norm").arg(&root).args(["--listen", "127.0.0.1:0"]);
        command.args(options).env("SHELL", "/bin/sh").stderr(Stdio::null());
        let (serving, url) = Serving::announced(command);
        Norm { _serving: serving, url, root, plans: tempfile::tempdir().unwrap(), _folder: folder }
    }

    /// Runs the check of the site by its plan, with shortened sleeps.
    #[track_caller]
    fn check(&self, options: &[&str]) -> Value {
        let plan = run(&["check", "--init", "-"]).expect(&[0]).stdout;
        let root = self.root.to_str().unwrap();
        let mut all = vec!["--base", &self.url, "--root", root, "--set", "sleep=0.1"];
        all.extend(options);
        check(self.plans.path(), &plan, &all).expect(&[0, 1]).json()
    }
}

#[test]
fn the_norm_site_passes_its_plan() {
    let json = Norm::start(&Stage::new(), &[]).check(&[]);
    assert_eq!(failed(&json), [""; 0]);
    assert_eq!(whole(&json, "/counts/skipped"), 0);
    assert!(whole(&json, "/counts/passed") >= 50);
}

#[test]
fn with_max_clients_1_and_2_two_and_one_of_three_fail() {
    let stage = Stage::new();
    for most in ["1", "2"] {
        let norm = Norm::start(&stage, &["--connections-max", most]);
        let json = norm.check(&["--set", &format!("maxclients={most}")]);
        assert_eq!(failed(&json), [""; 0], "MaxClients {most}");
        let steps = json["steps"].as_array().unwrap();
        let group =
            steps.iter().find(|step| text(step, "/name").starts_with("MaxClients")).unwrap();
        let members = group["members"].as_array().unwrap();
        let passed = members.iter().filter(|member| member["state"] == "passed").count();
        assert_eq!(passed.to_string(), most);
    }
}

/// Switch, further options of the site and of the check, and the steps that fail.
type DefectRow =
    (&'static str, &'static [&'static str], &'static [&'static str], &'static [&'static str]);

const fn one(name: &'static str, steps: &'static [&'static str]) -> DefectRow {
    (name, &[], &[], steps)
}

const CONFUSIONS: &[DefectRow] = &[
    one("welcome", &["1: the welcome page"]),
    one("menu", &["1: the menu of everything"]),
    one("hw-text", &["2: hello world is one line"]),
    one("hw-type", &["2: hello world is text/plain"]),
    one("sleep-text", &["3: a sleep says how long it was"]),
    // long enough to distinguish a sleep from a slow machine
    (
        "sleep-short",
        &[],
        &["--set", "sleep=1"],
        &["3: a sleep takes its time", "two sleeps: one after the other"],
    ),
    ("sleep-parallel", &[], &["--set", "sleep=1"], &["two sleeps: one after the other"]),
    (
        "max-clients",
        &["--connections-max", "2"],
        &["--set", "maxclients=2"],
        &["MaxClients 2: so many of three are served"],
    ),
    one("spool-left", &["tmp is empty"]),
    one("log-connections", &["log: connections come and go"]),
    one("log-tmpfile", &["log: the temporary file of the upload"]),
    one("index-parent", &["4: the index leads up"]),
    one("index-sizes", &["4: the index has sizes"]),
    one("index-dates", &["4: the index has dates"]),
    one("index-icons", &["4: the index has icons by type"]),
    one("index-empty", &["4: an empty directory is shown as empty"]),
    one("slash", &["4: a directory's URL ends in a slash"]),
    one("mime", &["4: the page of images", "4: its images"]),
    one("range", &["4: a part of a file"]),
    one("not-modified", &["4: a file that the client has is not sent again"]),
    one("escape", &["4: no link leads out of the root"]),
    one("odd-500", &["5: a socket is not found", "5: a pipe is not found"]),
    one("unreadable-404", &["5: an unreadable file is forbidden"]),
    one("auth-wilma", &["secure: wilma with the right password is rejected"]),
    one(
        "auth-anybody",
        &[
            "secure: fred with a wrong password is rejected",
            "secure: fred without a password is rejected",
            "secure: wilma with the right password is rejected",
            "secure: wilma with a wrong password is rejected",
            "secure: wilma without a password is rejected",
            "secure: barney with a wrong password is rejected",
            "secure: barney without a password is rejected",
            "secure: betty with a wrong password is rejected",
            "secure: betty without a password is rejected",
            "secure: a request without a name is rejected",
            "secure: the challenge names the realm",
        ],
    ),
    one(
        "auth-password",
        &[
            "secure: fred with a wrong password is rejected",
            "secure: fred without a password is rejected",
            "secure: barney with a wrong password is rejected",
            "secure: barney without a password is rejected",
            "secure: betty with a wrong password is rejected",
            "secure: betty without a password is rejected",
        ],
    ),
    one(
        "auth-group",
        &[
            "secure: barney with the right password enters",
            "secure: betty with the right password enters",
        ],
    ),
    one("auth-realm", &["secure: the challenge names the realm"]),
    one("cgi-query", &["6: printenv with a query"]),
    one("cgi-env", &["6: printenv shows the variables of a script"]),
    one(
        "cgi-stdin",
        &[
            "7: a posted form arrives on standard input",
            "8: the form greets by name",
            "9: a file of 105 kB has 5000 lines",
        ],
    ),
    one("form-greeting", &["8: the form greets by name"]),
    one("line-count", &["9: a file of 105 kB has 5000 lines"]),
];

/// Switches for behaviors without a step in the test plan; other tests cover them.
const NOT_IN_THE_PLAN: &[&str] = &[];

#[test]
fn every_switch_is_in_the_table() {
    let known: BTreeSet<&str> = norm::BREAKS.iter().map(|(_, name, _)| *name).collect();
    let covered: BTreeSet<&str> =
        CONFUSIONS.iter().map(|row| row.0).chain(NOT_IN_THE_PLAN.iter().copied()).collect();
    assert_eq!(known, covered);
}

/// Tests a share of the table; the shares run in parallel.
fn confuse(share: usize) {
    let (stage, mut wrong) = (Stage::new(), Vec::new());
    for (name, site, options, steps) in CONFUSIONS.iter().skip(share).step_by(4) {
        let mut site = site.to_vec();
        site.extend(["--break", name]);
        let json = Norm::start(&stage, &site).check(options);
        let all = json["steps"].as_array().unwrap().iter();
        let failed: Vec<&str> =
            all.filter(|step| step["state"] == "failed").map(|step| text(step, "/name")).collect();
        if failed != *steps {
            wrong.push(format!("{name}: {failed:#?} and not {steps:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn each_switch_fails_its_steps_first_share() {
    confuse(0);
}

#[test]
fn each_switch_fails_its_steps_second_share() {
    confuse(1);
}

#[test]
fn each_switch_fails_its_steps_third_share() {
    confuse(2);
}

#[test]
fn each_switch_fails_its_steps_fourth_share() {
    confuse(3);
}
