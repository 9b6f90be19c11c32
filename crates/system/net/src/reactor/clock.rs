//! The clock of a run: CLOCK_MONOTONIC, which all threads of a machine share.

use units::Nanos;

#[inline]
pub fn monotonic() -> Nanos {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Converts to the standard library's type, for a library that uses it.
pub fn instant() -> std::time::Instant {
    std::time::Instant::now()
}

/// Asks the kernel to wake this thread on time: the usual timer slack of 50 µs becomes 1 ns.
pub fn minimize_timer_slack() {
    if let Some(one) = std::num::NonZeroU64::new(1) {
        // refused only by a seccomp filter; then sleeping is less sharp and slip shows it
        rustix::thread::set_current_timer_slack(Some(one)).ok();
    }
}
