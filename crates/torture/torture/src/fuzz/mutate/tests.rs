use super::*;

fn values() -> Values {
    Values { path: "/p".into(), host: "h".into(), post: "/post".into(), ..Values::default() }
}

fn many(corpus: &Corpus, seed: u64, count: u64) -> Vec<Vec<u8>> {
    let mut corpus = corpus.clone();
    (0..count).map(|index| corpus.specimen(seed, index).bytes()).collect()
}

#[test]
fn seeds_are_complete_and_have_a_follow_up() {
    let values = values();
    for seed in seeds(&Frame { values: &values, fields: "" }) {
        let bytes = seed.bytes();
        assert!(framing::read(&bytes).is_exact(bytes.len()), "{}", bytes.escape_ascii());
        assert!(seed.shot().follows);
    }
}

#[test]
fn specimens_depend_on_the_seed_and_the_corpus_only() {
    let corpus = Corpus::new(&values(), "A: b\r\n", 10);
    assert_eq!(many(&corpus, 1, 300), many(&corpus, 1, 300));
    assert_ne!(many(&corpus, 1, 300), many(&corpus, 2, 300));
}

#[test]
fn mutations_vary_and_are_mostly_parsable() {
    let all: BTreeSet<Vec<u8>> =
        many(&Corpus::new(&values(), "A: b\r\n", 0), 1, 2_000).into_iter().collect();
    assert!(all.len() > 1_200, "{}", all.len());
    let exact = all.iter().filter(|bytes| framing::read(bytes).is_exact(bytes.len())).count();
    let share = exact * 100 / all.len();
    assert!((10..60).contains(&share), "{share} % are whole and clear");
    assert!(all.iter().all(|bytes| bytes.len() <= REQUEST_MAX));
}

#[test]
fn new_behaviors_are_kept_up_to_the_maximum() {
    let mut corpus = Corpus::new(&values(), "A: b\r\n", 2);
    let behaviour = |status| Behaviour { statuses: vec![status], ..Behaviour::default() };
    let child = corpus.specimen(1, 100);
    assert!(corpus.learn(&child, behaviour(200)));
    assert!(!corpus.learn(&child, behaviour(200)));
    assert!(corpus.learn(&child, behaviour(400)));
    assert!(corpus.learn(&child, behaviour(501)));
    assert_eq!((corpus.learned(), corpus.behavior_count()), (2, 3));
}
