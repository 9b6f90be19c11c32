//! How lists grow of which there may be hundreds of thousands of entries.

/// Entries that a list which is full with `len` of them makes room for: by itself it would double, and with
/// hundreds of thousands of connections half of its memory would be room for more of them. An eighth more
/// each time copies an entry eight times on its way to any length.
///
/// ```
/// let mut list = vec![0u8; 80_000];
/// if list.len() == list.capacity() {
///     list.reserve_exact(units::room_for_more(list.len()));
/// }
/// list.push(1);
/// assert!(list.capacity() <= 90_000);
/// ```
pub fn room_for_more(len: usize) -> usize {
    if len < DOUBLED { len.max(4) } else { len / 8 }
}

/// Shorter lists double: what an eighth would save of them is nothing.
const DOUBLED: usize = 1_024;
