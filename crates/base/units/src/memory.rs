//! Growth of lists that may have hundreds of thousands of entries.

/// Returns the additional capacity for a full list of length `len`. By default a list doubles, and
/// with hundreds of thousands of connections half of its memory would be unused. Growing by an
/// eighth copies each entry eight times in total.
pub fn room_for_more(len: usize) -> usize {
    if len < DOUBLED { len.max(4) } else { len / 8 }
}

/// Length below which lists double, because saving an eighth of them is not worthwhile.
const DOUBLED: usize = 1_024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_list_has_room_for_an_eighth_more() {
        let mut list = Vec::new();
        for number in 0..100_000_u32 {
            if list.len() == list.capacity() {
                list.reserve_exact(room_for_more(list.len()));
            }
            list.push(number);
            let most = if list.len() <= 1_024 { 2 * list.len() + 4 } else { list.len() * 9 / 8 };
            assert!(list.capacity() <= most, "{} for {}", list.capacity(), list.len());
        }
    }
}
