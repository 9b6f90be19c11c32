//! SIGINT and SIGTERM end a run with a report; a second one ends the program at once.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// Installs the handlers. SIGPIPE stays ignored, as Rust's start-up left it: a closed terminal is an
/// error of writing.
pub(crate) fn install() -> std::io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // under nohup the run is to outlive its terminal
        if signal == SIGHUP && ignored(SIGHUP) {
            continue;
        }
        catch(signal)?;
    }
    Ok(())
}

/// Installs the handler of SIGINT alone: all that the classic tools catch.
pub(crate) fn install_interrupt() -> std::io::Result<()> {
    catch(signal_hook::consts::SIGINT)
}

fn catch(signal: i32) -> std::io::Result<()> {
    let armed = Arc::new(AtomicBool::new(false));
    // order matters: the second signal finds the flag set by the first
    signal_hook::flag::register_conditional_shutdown(signal, 130, armed.clone())?;
    signal_hook::flag::register(signal, armed)?;
    signal_hook::flag::register_usize(signal, number().clone(), signal as usize)?;
    Ok(())
}

/// Whether the process was started with this signal ignored, by the kernel's own word.
fn ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask =
        host::proc::value(&status, "SigIgn").and_then(|hex| u64::from_str_radix(hex, 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

fn number() -> &'static Arc<AtomicUsize> {
    static NUMBER: OnceLock<Arc<AtomicUsize>> = OnceLock::new();
    NUMBER.get_or_init(Arc::default)
}

/// The number of the signal that came, or 0.
pub(crate) fn caught() -> usize {
    number().load(Ordering::Relaxed)
}
