use super::*;

fn process(parent: u32, name: &str, ticks: u64, waited: u64) -> Process {
    Process { parent, name: name.to_owned(), ticks, waited, started: 1, state: 'S', status: None }
}

/// Builds a census of busy ticks of threads, steal, and processes.
fn census(busy: u64, steal: u64, processes: &[(u32, Process)]) -> Census {
    Census {
        totals: Totals { user: busy, steal, ..Totals::default() },
        processes: processes.iter().cloned().collect(),
    }
}

const TEN_SECONDS: CensusInterval =
    CensusInterval { elapsed: Nanos::from_secs(10), ticks_per_s: 100, cores: 2 };

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9
}

#[test]
fn other_processes_are_foreign() {
    let before = census(
        1_000,
        10,
        &[
            (1, process(0, "init", 5, 0)),
            (10, process(1, "loadstone", 100, 0)),
            (20, process(1, "nginx", 50, 0)),
            (21, process(20, "nginx", 60, 0)),
            (30, process(1, "cargo", 500, 0)),
            (40, process(1, "cron", 1, 0)),
        ],
    );
    let after = census(
        2_800,
        50,
        &[
            (1, process(0, "init", 5, 0)),
            (10, process(1, "loadstone", 800, 0)),
            (20, process(1, "nginx", 50, 0)),
            (21, process(20, "nginx", 560, 0)),
            (30, process(1, "cargo", 900, 0)),
            (40, process(1, "cron", 3, 0)),
        ],
    );
    let found = compare(&before, &after, &[10, 20], TEN_SECONDS).unwrap();
    // 1,800 busy, of which 700 ours and 500 of nginx's worker
    assert!(near(found.cores, 0.6) && near(found.share, 0.3), "{found:?}");
    assert!(near(found.steal_share, 0.02), "{found:?}");
    let culprit = found.busiest.unwrap();
    assert_eq!((culprit.pid, &*culprit.name), (30, "cargo"));
    assert!(near(culprit.cores, 0.4));
    // with the server not named, its work is foreign too
    let found = compare(&before, &after, &[10], TEN_SECONDS).unwrap();
    assert!(near(found.cores, 1.1), "{found:?}");
    assert_eq!(found.busiest.unwrap().name, "nginx");
}

#[test]
fn short_lived_children_count_for_their_parents() {
    let server = |waited| process(1, "apache2", 10, waited);
    let before = census(0, 0, &[(20, server(0)), (21, process(20, "apache2", 300, 0))]);
    // 21 did another 100 and ended, so that 400 were waited for; 22 is new and has done 50
    let after = census(150, 0, &[(20, server(400)), (22, process(20, "apache2", 50, 0))]);
    let found = compare(&before, &after, &[20], TEN_SECONDS).unwrap();
    assert!(near(found.cores, 0.0), "{found:?}");
    assert_eq!(found.busiest, None);
}

#[test]
fn a_server_that_dies_takes_nothing_from_our_work() {
    let server = process(1, "nginx", 100_000, 0);
    let before = census(0, 0, &[(10, process(1, "us", 100, 0)), (20, server)]);
    let after = census(900, 0, &[(10, process(1, "us", 800, 0))]);
    let found = compare(&before, &after, &[10, 20], TEN_SECONDS).unwrap();
    // 900 busy, of which 700 ours; the server's last ticks are not counted
    assert!(near(found.cores, 0.2), "{found:?}");
}

#[test]
fn an_ancestors_account_includes_the_childs_work() {
    let server = |waited| process(1, "apache2", 10, waited);
    let worker = [(21, process(20, "apache2", 40, 0)), (22, process(21, "cgi", 300, 0))];
    let before = census(0, 0, &[&[(20, server(0))][..], &worker].concat());
    // 22 used another 100, and its parent waited for it; 20 then waited for that
    let after = census(150, 0, &[(20, server(440))]);
    let found = compare(&before, &after, &[20], TEN_SECONDS).unwrap();
    assert!(near(found.cores, 0.05), "{found:?}");
    // all of them ended, or another process has the number of the first
    let other = Process { started: 9, ..process(1, "other", 30, 0) };
    for processes in [vec![], vec![(20, other)]] {
        let found = compare(&before, &census(150, 0, &processes), &[20], TEN_SECONDS).unwrap();
        assert!(near(found.cores, if processes.is_empty() { 0.15 } else { 0.12 }), "{found:?}");
    }
}

#[test]
fn a_reused_process_number_hides_nothing() {
    let server = |waited| process(1, "apache2", 10, waited);
    let before = census(0, 0, &[(20, server(0)), (21, process(20, "apache2", 300, 0))]);
    let again = Process { started: 9, ..process(20, "apache2", 50, 0) };
    // 21 did another 100 and ended; the new process with that number has done 50
    let after = census(250, 0, &[(20, server(400)), (21, again)]);
    let found = compare(&before, &after, &[20], TEN_SECONDS).unwrap();
    assert!(near(found.cores, 0.1), "{found:?}");
}

#[test]
fn a_circle_of_parents_inherits_nothing() {
    let before = census(0, 0, &[(1, process(2, "a", 5, 0)), (2, process(1, "b", 5, 0))]);
    assert!(!is_counted_by_ancestor(1, &before, &Census::default(), &BTreeSet::from([1, 2])));
}

#[test]
fn a_number_used_again_is_another_process() {
    let before = census(0, 0, &[(30, process(1, "old", 900, 0))]);
    let new = Process { started: 77, ..process(1, "new", 200, 0) };
    let after = census(200, 0, &[(30, new.clone())]);
    let found = compare(&before, &after, &[10], TEN_SECONDS).unwrap();
    let culprit = found.busiest.unwrap();
    assert_eq!(culprit.name, "new");
    assert!(near(culprit.cores, 0.2));
    let found = compare(&before, &after, &[30], TEN_SECONDS).unwrap();
    assert!(near(found.cores, 0.0), "{found:?}");
}

#[test]
fn undersampling_yields_zero() {
    let before = census(0, 0, &[(10, process(1, "us", 0, 0))]);
    let after = census(90, 0, &[(10, process(1, "us", 100, 0))]);
    let found = compare(&before, &after, &[10], TEN_SECONDS).unwrap();
    assert!(near(found.cores, 0.0) && near(found.share, 0.0));
}

#[test]
fn a_circle_of_parents_ends() {
    let processes = [(1, process(2, "a", 0, 0)), (2, process(1, "b", 0, 0))];
    let found = family(&processes.into_iter().collect(), &[1]);
    assert_eq!(found.into_iter().collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn less_than_a_tick_is_unknown() {
    let interval = CensusInterval { elapsed: Nanos::from_millis(9), ..TEN_SECONDS };
    assert_eq!(compare(&census(0, 0, &[]), &census(1, 0, &[]), &[], interval), None);
}

#[test]
#[cfg(target_os = "linux")]
fn our_own_work_is_not_foreign() {
    let watch = ForeignWatch::start();
    let mut sum = 0u64;
    let started = crate::cpu::ThreadTime::now().cpu;
    while crate::cpu::ThreadTime::now().cpu - started < Nanos::from_millis(100) {
        sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(7));
    }
    let found = watch.end(Vec::new).unwrap();
    assert!(found.elapsed >= Nanos::from_millis(100));
    assert!((0.0..=1.0).contains(&found.share) && found.cores.is_finite(), "{found:?}");
    let us = std::process::id();
    assert!(found.busiest.is_none_or(|culprit| culprit.pid != us));
}
