//! The overload options, through the program. The overload cases are tested in virtual time.

use super::support::{Site, run};

#[test]
fn overload_options_are_required_and_commands_are_hidden() {
    let site = Site::start(&[]);
    let url = site.url("/hw");
    let wrong = |args: &[&str]| run(&[&["torture"], args, &[&url]].concat()).expect(&[2]).stderr;
    assert!(wrong(&["--starve-command", "true"]).contains("--relieve-command"));
    assert!(wrong(&["--restart-command", " "]).contains("write a shell command"));
    assert!(wrong(&["--expensive", "dear"]).contains("write it as /path"));
    assert!(wrong(&["--soak", "long"]).contains("--soak"));
    let plan = |args: &[&str]| {
        run(&[&["torture", "--dry-run", "--press"], args, &[&url]].concat()).expect(&[0]).stdout
    };
    let restart = plan(&["--only", "R-06", "--restart-command", "echo s3cret"]);
    assert!(restart.contains("R-06") && !restart.contains("s3cret"), "{restart}");
    // a soak is part of a run only with its duration
    assert!(!plan(&["--only", "R"]).contains("R-04"));
    assert!(plan(&["--only", "R", "--soak", "1h"]).contains("R-04"));
    assert_eq!(site.served().requests, 0, "nothing of this is sent to anybody");
}
