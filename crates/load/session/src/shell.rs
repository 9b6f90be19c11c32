//! Commands of the user, run by a shell: in a separate process group, without input, and with the
//! descriptor limit of the user's shell.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// Original descriptor limit of this program. The program raises its own limit, which every server
/// but the first would otherwise inherit.
static SOFT_LIMIT: OnceLock<u64> = OnceLock::new();

/// Must be called before the program raises its descriptor limit.
pub fn remember_limit() {
    SOFT_LIMIT.get_or_init(|| host::limits::descriptors().soft);
}

/// Returns `sh -c command`. The caller sets the destination of its output.
pub fn shell(command: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(with_limit(command)).process_group(0).stdin(Stdio::null());
    shell
}

fn with_limit(command: &str) -> String {
    match SOFT_LIMIT.get() {
        Some(&u64::MAX) | None => command.to_owned(),
        Some(limit) => format!("ulimit -S -n {limit}\n{command}"),
    }
}
