//! A full disk: reported once, with exit code 5, and no file is incomplete.

use super::safety::namespaces_are_available;
use super::support::{Scripted, behind, finish};

/// Returns the output of a script that has a small separate disk as `/mnt`, with the program as $0;
/// `fill` is already on the disk.
fn on_a_small_disk(fill: &str, script: &str) -> String {
    let script = format!(
        "mount -t tmpfs -o size=128k tmpfs /mnt && head -c {fill} /dev/zero > /mnt/fill && {script}"
    );
    let mut command = behind(&["unshare", "--mount", "sh", "-c", &script]);
    command.env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin");
    let ran = finish(command, b"").expect(&[0]);
    format!("{}{}", ran.stdout, ran.stderr)
}

#[test]
fn too_many_transcripts_end_the_evidence_not_the_run() {
    if !namespaces_are_available("--mount") {
        return;
    }
    let server = Scripted::failing_on_nul();
    let torture = "$0 torture --no-audit --no-shrink --quick --only F-01,F-09,S-08 -q";
    let text = on_a_small_disk(
        "16k",
        &format!(
            "{torture} --out /mnt {}; echo exit $?; \
             echo parts $(find /mnt -name '*.part*' | wc -l); \
             grep -h '\"end\"' /mnt/run-*/run.json; \
             $0 torture judge /mnt/run-* > /dev/null; echo judge $?; \
             for folder in $(find /mnt/run-*/failures -mindepth 1 -maxdepth 1); do test -f $folder/README || echo half $folder; done",
            server.url("/")
        ),
    );
    let full = "No space left on device";
    for part in ["in 3 cases", "exit 5", "parts 0", "\"end\": null", "judge 1", full] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(text.matches("is incomplete: it ends at this error").count(), 1, "{text}");
    assert!(!text.contains("\nhalf ") && !text.contains("panicked"), "{text}");
}

#[test]
fn results_that_do_not_fit_are_not_written() {
    if !namespaces_are_available("--mount") {
        return;
    }
    let server = Scripted::failing_on_nul();
    let url = server.url("/");
    let text = on_a_small_disk(
        "128k",
        &format!(
            "$0 torture --no-audit --only S-02,S-08 --json /mnt/a.json --html /mnt/a.html {url}; \
             echo exit $?; ls -A /mnt"
        ),
    );
    assert!(text.contains("1 finding in 2 cases") && text.contains("exit 5\nfill\n"), "{text}");
    assert!(text.contains("cannot write /mnt/a.json: No space left on device"), "{text}");
    let text = on_a_small_disk(
        "100k",
        &format!("$0 torture --no-audit --only S-02 --store /mnt/runs.db {url}; echo exit $?"),
    );
    assert!(text.contains("exit 2") && text.contains("the results store /mnt/runs.db"), "{text}");
    assert!(!text.contains("Torture of"), "a store that was asked for comes first: {text}");
}
