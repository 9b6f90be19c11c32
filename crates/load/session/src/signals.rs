//! SIGINT and SIGTERM end a run with a report; a second signal of either kind ends the program at
//! once. A hangup counts separately: service managers may send it along with SIGTERM, and the
//! report is wanted.

use signal_hook::SigId;
use signal_hook::iterator::Signals;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc};
use std::time::Duration;

/// Installs the handlers. SIGPIPE stays ignored, as Rust's start-up left it: a closed terminal is a
/// write error.
pub fn install() -> std::io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // under nohup the run must outlive its terminal
        if signal == SIGHUP && ignored(SIGHUP) {
            continue;
        }
        catch(signal)?;
    }
    Ok(())
}

/// Installs the handler of SIGINT only, like most classic tools.
pub fn install_interrupt() -> std::io::Result<()> {
    catch(signal_hook::consts::SIGINT)
}

/// Flags by kind: true once a signal was received, so that the next one ends the program.
static ARMED: [OnceLock<Arc<AtomicBool>>; 2] = [OnceLock::new(), OnceLock::new()];

/// Forgets a signal that ended the first part of a command; the second part starts fresh.
pub fn forget() {
    number().store(0, Ordering::SeqCst);
    for armed in ARMED.iter().filter_map(OnceLock::get) {
        armed.store(false, Ordering::SeqCst);
    }
}

fn catch(signal: i32) -> std::io::Result<()> {
    // signals reach the process, not a command that a program runs in its own process
    if !host::invocation::is_process() {
        return Ok(());
    }
    let armed = ARMED[kind(signal)].get_or_init(Arc::default).clone();
    // order matters: the second signal finds the flag set by the first
    let shutdown = signal_hook::flag::register_conditional_shutdown(signal, EXIT, armed.clone())?;
    let arming = signal_hook::flag::register(signal, armed)?;
    SHUTDOWNS.lock().unwrap_or_else(PoisonError::into_inner).push((signal, [shutdown, arming]));
    signal_hook::flag::register_usize(signal, number().clone(), signal as usize)?;
    Ok(())
}

/// Returns the kind of a signal. Signals of one kind count together: hangups, and all others, which
/// request an end.
fn kind(signal: i32) -> usize {
    usize::from(signal == signal_hook::consts::SIGHUP)
}

/// Actions that end the program at a second signal, by signal.
static SHUTDOWNS: Mutex<Vec<(i32, [SigId; 2])>> = Mutex::new(Vec::new());

/// Time limit of the clean-up before an exit by signal: a blocked terminal must not delay the
/// program.
const CLEAN_UP_MAX: Duration = Duration::from_secs(1);

/// The program's exit code after a second signal.
const EXIT: i32 = 130;

/// True once a second signal was received: the program ends with [`EXIT`], even if its main thread
/// ends first.
static LEAVING: AtomicBool = AtomicBool::new(false);

/// Returns whether a second signal was received, so that effects of the clean-up on a server or a
/// terminal no longer count as results.
pub fn leaving() -> bool {
    LEAVING.load(Ordering::SeqCst)
}

/// Registers `clean_up` to run before a second signal of a kind ends the program: on a separate
/// thread, because a handler may do almost nothing. Must be called once.
pub fn before_exit(clean_up: fn()) -> std::io::Result<()> {
    let shutdowns = std::mem::take(&mut *SHUTDOWNS.lock().unwrap_or_else(PoisonError::into_inner));
    let mut signals = Signals::new(shutdowns.iter().map(|(signal, _)| *signal))?;
    for (_, actions) in &shutdowns {
        for action in actions {
            signal_hook::low_level::unregister(*action);
        }
    }
    let mut seen = [0_u32; 2];
    if received_signal() > 0 {
        seen[kind(received_signal() as i32)] = 1;
    }
    let body = move || {
        let second = |signal: i32| {
            seen[kind(signal)] += 1;
            seen[kind(signal)] > 1
        };
        if signals.forever().any(second) {
            LEAVING.store(true, Ordering::SeqCst);
            let (done, wait) = mpsc::channel::<()>();
            let cleaning = move || {
                let _done = done;
                clean_up();
            };
            // without a thread there is nothing to wait for
            if std::thread::Builder::new().spawn(cleaning).is_ok() {
                wait.recv_timeout(CLEAN_UP_MAX).ok();
            }
            std::process::exit(EXIT);
        }
    };
    std::thread::Builder::new().name("signals".into()).spawn(body)?;
    Ok(())
}

/// Acts like an external SIGINT, for a terminal that passes Ctrl-C on as a key.
pub fn interrupt() {
    // fails only for a signal that does not exist
    signal_hook::low_level::raise(signal_hook::consts::SIGINT).ok();
}

/// Returns whether the kernel reports that the process was started with this signal ignored.
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

/// Sleeps; returns false if a signal was received before the end.
pub fn pause(span: Duration) -> bool {
    let (_keep, never) = mpsc::channel::<()>();
    never.recv_timeout(span).ok();
    received_signal() == 0
}

/// Returns the number of the received signal, or 0.
pub fn received_signal() -> usize {
    number().load(Ordering::Relaxed)
}
