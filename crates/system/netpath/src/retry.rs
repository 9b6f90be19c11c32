//! Resources that a former owner holds for some milliseconds after its end.

use std::time::Duration;

const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(10);

/// Retries a `busy` attempt for one second, because its former owner has just ended.
///
/// # Errors
/// Fails with the error of the last attempt if all were `busy`.
pub fn retry_while_busy<T, E>(
    mut attempt: impl FnMut() -> Result<T, E>,
    busy: impl Fn(&E) -> bool,
) -> Result<T, E> {
    for _ in 1..TRIES {
        match attempt() {
            Err(error) if busy(&error) => std::thread::sleep(PAUSE),
            done => return done,
        }
    }
    attempt()
}
