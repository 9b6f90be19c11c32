//! A log is described in bounded memory, regardless of its length and its number of clients and
//! targets.

use import::access_log::Describer;
use std::alloc::{GlobalAlloc, Layout, System};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use units::Nanos;

struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on to the system's allocator unchanged.
#[allow(unsafe_code, reason = "a counting allocator is a GlobalAlloc, whose methods are unsafe")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Relaxed) + layout.size();
        PEAK.fetch_max(now, Relaxed);
        // SAFETY: the caller keeps alloc's contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the pointer was returned by the same allocator.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Maximum memory for describing, in megabytes: two tables of 2^18 places, each with its
/// predecessor while it grows.
const MEGABYTES_MAX: usize = 48;

/// More than twice as many clients and targets as a table has places.
#[test]
fn a_huge_log_is_described_in_bounded_memory() {
    const LINES: u64 = 600_000;
    let mut describer = Describer::new(Nanos::from_secs(1_800));
    let mut line = String::with_capacity(256);
    let before = NOW.load(Relaxed);
    for row in 0..LINES {
        let (hour, minute, second) = (row / 360_000, row / 6_000 % 60, row / 100 % 60);
        line.clear();
        write!(
            line,
            "10.{}.{}.{} - - [10/Oct/2000:{hour:02}:{minute:02}:{second:02} +0000] \"GET /item/{row}/{} \
             HTTP/1.1\" 200 {row} \"-\" \"agent {}\"",
            row >> 16 & 255,
            row >> 8 & 255,
            row & 255,
            "x".repeat(60),
            row >> 24
        )
        .unwrap();
        describer.line(&line);
    }
    let found = describer.finish();
    let peak = (PEAK.load(Relaxed) - before) >> 20;
    assert!(peak < MEGABYTES_MAX, "{peak} MiB");
    assert_eq!((found.requests, found.broken), (LINES, 0));
    for counted in [found.targets, found.clients, found.visits] {
        let off = (counted.count as f64 / LINES as f64 - 1.0).abs();
        assert!(counted.weight > 1 && off < 4.0 * counted.error, "{counted:?}");
    }
}
