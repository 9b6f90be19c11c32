//! Lists the case files in the order of their names; regressions come last.

use std::fmt::Write;
use std::path::Path;

#[allow(clippy::print_stdout, reason = "build scripts talk to cargo on standard output")]
fn main() {
    let root = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets this variable");
    let folder = Path::new(&root).join("cases");
    let found = names(&folder.join("regressions"), "regressions/");
    let names: Vec<String> = names(&folder, "").into_iter().chain(found).collect();
    let mut out = format!("const CASES: [(&str, &str); {}] = [\n", names.len());
    for name in names {
        let path = folder.join(&name);
        writeln!(out, "    ({name:?}, include_str!({path:?})),").expect(
            "writing to a String \
            cannot fail",
        );
    }
    out.push_str("];\n");
    let target = std::env::var("OUT_DIR").expect("cargo sets this variable");
    std::fs::write(Path::new(&target).join("cases.rs"), out).expect("the build folder is writable");
}

/// Returns the case files of a folder, each name prefixed with `before`.
#[allow(clippy::print_stdout, reason = "build scripts talk to cargo on standard output")]
fn names(folder: &Path, before: &str) -> Vec<String> {
    println!("cargo::rerun-if-changed={}", folder.display());
    let entries = std::fs::read_dir(folder).expect("the case folder is readable");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("the case folder is readable").file_name())
        .filter_map(|name| name.into_string().ok())
        .filter(|name| name.ends_with(".toml"))
        .map(|name| format!("{before}{name}"))
        .collect();
    names.sort();
    names
}
