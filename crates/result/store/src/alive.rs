//! Detects whether the process that writes a result is still alive. Process numbers are reused: a
//! process is identified by the boot, its number and its start time.

use std::fs;

/// Returns the description of this process, for [`is_alive`].
pub(crate) fn this_process() -> String {
    let pid = std::process::id();
    format!("{} {pid} {}", boot(), started(pid).unwrap_or_default())
}

/// Returns whether the described process lives on this machine. False without a start time, or for
/// another boot.
pub(crate) fn is_alive(writer: &str) -> bool {
    let mut words = writer.split(' ');
    let (Some(its_boot), Some(pid), Some(start)) = (words.next(), words.next(), words.next())
    else {
        return false;
    };
    let Ok(pid) = pid.parse() else { return false };
    !start.is_empty() && its_boot == boot() && started(pid).as_deref() == Some(start)
}

fn boot() -> String {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().to_owned()
}

/// Returns the start time of a process, in clock ticks since boot (proc(5), `stat`, field 22).
/// `None` for a missing process, or a dead one that was not waited for yet.
fn started(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // the name may hold spaces and parentheses; the fields after its last one are plain
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let state = fields.first()?;
    if ["Z", "X"].contains(state) {
        return None;
    }
    fields.get(19).map(|start| (*start).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_lives_and_others_do_not() {
        let this = this_process();
        assert!(is_alive(&this));
        assert!(!is_alive(&format!("{this}0")));
        assert!(!is_alive(&format!("other{this}")));
        for writer in ["", "x", "x 1", "x 1 ", "x one 2", "  "] {
            assert!(!is_alive(writer), "{writer:?}");
        }
    }
}
