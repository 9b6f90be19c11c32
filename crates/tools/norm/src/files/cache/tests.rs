use super::*;
use proptest::prelude::*;

const CHECK_INTERVAL: Duration = Duration::from_millis(100);

fn cache(bytes_max: u64, entries_max: usize) -> Cache<u32> {
    Cache::new(CacheBounds { file_max: 1_000, bytes_max, entries_max, look_again: CHECK_INTERVAL })
}

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

#[test]
fn an_entry_is_valid_for_a_while_then_checked() {
    let start = Instant::now();
    let cache = cache(1 << 20, 10);
    assert_eq!(cache.look("a", start), Known::Nothing);
    cache.keep("a", Arc::new(1), 10, start);
    assert_eq!(cache.look("a", start + ms(99)), Known::Fresh(Arc::new(1)));
    // the first request checks the file, the others are served meanwhile
    assert_eq!(cache.look("a", start + ms(100)), Known::Old(Arc::new(1)));
    assert_eq!(cache.look("a", start + ms(101)), Known::Fresh(Arc::new(1)));
    // a slow check is overtaken by the next
    assert_eq!(cache.look("a", start + ms(200)), Known::Old(Arc::new(1)));
    cache.keep("a", Arc::new(2), 10, start + ms(200));
    assert_eq!(cache.look("a", start + ms(299)), Known::Fresh(Arc::new(2)));
    cache.forget("a");
    assert_eq!(cache.look("a", start + ms(300)), Known::Nothing);
}

#[test]
fn no_entry_outlives_its_validity() {
    let start = Instant::now();
    let cache = cache(1 << 20, 10);
    cache.keep("a", Arc::new(1), 10, start);
    for at in [100, 200, 300, 400, 500, 600, 700, 800, 900] {
        assert!(matches!(cache.look("a", start + ms(at)), Known::Old(_)), "{at}");
        assert!(matches!(cache.look("a", start + ms(at + 50)), Known::Fresh(_)), "{at}");
    }
    assert!(matches!(cache.look("a", start + BELIEVED_MAX), Known::Old(_)));
    assert!(matches!(cache.look("a", start + BELIEVED_MAX + ms(1)), Known::Old(_)));
}

#[test]
fn used_entries_survive_eviction() {
    let start = Instant::now();
    let cache = cache(1 << 20, 8);
    for k in 0..100_u32 {
        cache.keep(&format!("once {k}"), Arc::new(k), 10, start);
        cache.keep("often", Arc::new(1_000), 10, start);
        assert_eq!(cache.look("often", start), Known::Fresh(Arc::new(1_000)));
    }
    assert_eq!(cache.look("once 0", start), Known::Nothing);
    assert_eq!(cache.look("once 99", start), Known::Fresh(Arc::new(99)));
}

#[test]
fn a_cache_without_room_keeps_nothing() {
    let start = Instant::now();
    for cache in [cache(0, 10), cache(1 << 20, 0)] {
        cache.keep("a", Arc::new(1), 10, start);
        assert_eq!(cache.look("a", start), Known::Nothing);
    }
}

proptest! {
    #[test]
    fn bounds_hold_for_any_entries(
        steps in prop::collection::vec((0_u8..3, 0_u8..20, 0_u64..3_000), 0..200),
    ) {
        let (bytes_max, entries_max) = (40_000, 10);
        let cache = cache(bytes_max, entries_max);
        let now = Instant::now();
        for (what, key, bytes) in steps {
            let key = key.to_string();
            match what {
                0 => cache.forget(&key),
                1 => drop(cache.look(&key, now)),
                _ => cache.keep(&key, Arc::new(0), bytes, now),
            }
            let generations = cache.lock();
            let sum = |map: &HashMap<String, CachedValue<u32>>| map.values().map(|kept| kept.bytes).sum();
            let (young, old): (u64, u64) = (sum(&generations.young), sum(&generations.old));
            prop_assert_eq!(young, generations.young_bytes);
            prop_assert!(young + old <= bytes_max);
            prop_assert!(generations.young.len() + generations.old.len() <= entries_max);
        }
    }
}
