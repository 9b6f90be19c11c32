use super::*;
use crate::case::Fuzz;
use crate::catalogue;

fn values() -> Values {
    Values { path: "/p".into(), host: "h".into(), post: "/post".into(), ..Values::default() }
}

fn bytes(seed: u64, fuzz: &Fuzz, index: u64) -> Vec<u8> {
    let shot = shot(seed, "F-01", 1, fuzz, index, &values(), "");
    let send = |step: &Move| match step {
        Move::Send(bytes) => bytes.clone(),
        _ => Vec::new(),
    };
    shot.moves.iter().flat_map(send).collect()
}

#[test]
fn an_execution_depends_on_seed_case_and_index_only() {
    for (_, place) in FuzzPlace::ALL {
        let fuzz = Fuzz { place, count: 10, length: 100 };
        let forwards: Vec<Vec<u8>> = (0..10).map(|index| bytes(7, &fuzz, index)).collect();
        let backwards: Vec<Vec<u8>> = (0..10).rev().map(|index| bytes(7, &fuzz, index)).collect();
        assert!(forwards.iter().eq(backwards.iter().rev()), "{place:?}");
        if place != FuzzPlace::Edges {
            let other: Vec<Vec<u8>> = (0..10).map(|index| bytes(8, &fuzz, index)).collect();
            assert_ne!(forwards, other, "{place:?}: the seed changes nothing");
        }
    }
}

#[test]
fn the_bytes_of_a_seed_are_stable() {
    let fuzz = Fuzz { place: FuzzPlace::Query, count: 1, length: 12 };
    let made: Vec<String> =
        (0..4).map(|index| bytes(1, &fuzz, index).escape_ascii().to_string()).collect();
    insta::assert_snapshot!(made.join("\n"));
}

#[test]
fn lengths_are_spread_evenly_below_the_limit() {
    let mut random = Seed(3).stream(Purpose::Torture, 0);
    let lengths: Vec<usize> = (0..2_000).map(|_| classic(&mut random, 100).len()).collect();
    assert!(lengths.iter().all(|length| *length < 100));
    let mean = lengths.iter().sum::<usize>() as f64 / 2_000.0;
    // sd of the mean: 28.9 / sqrt(2,000) = 0.65
    assert!((mean - 49.5).abs() < 4.0, "{mean}");
}

#[test]
fn every_fuzz_case_makes_requests_that_end() {
    for case in catalogue::cases().unwrap() {
        let Some(fuzz) = &case.fuzz else { continue };
        for index in 0..fuzz.count.min(200) {
            let shot = shot(1, &case.id, case.version, fuzz, index, &values(), "");
            assert!(!shot.moves.is_empty() && !shot.methods.is_empty(), "{} {index}", case.id);
        }
    }
}
