use super::*;
use crate::fileset::FileSet;
use proptest::prelude::*;
use std::collections::HashMap;

const OPTIONS: SequenceOptions =
    SequenceOptions { top: 20_000, matching: Matching::Groups, off_times: false, requests: None };
/// The published run: 5,000 files, the most popular requested 50,000 times.
const RUN: Spec = Spec::Surge { files: 5_000 };
const RUN_OPTIONS: SequenceOptions = SequenceOptions { top: 50_000, ..OPTIONS };

fn made(spec: Spec, options: &SequenceOptions, seed: u64) -> (FileSet, Sequence) {
    (spec.set(Seed(seed)), sequence(spec, options, Seed(seed)).unwrap())
}

/// Returns the requested sizes, ascending.
fn sizes(set: &FileSet, sequence: &Sequence) -> Vec<u64> {
    let size = |path| set.find(path).unwrap().size;
    let mut sizes: Vec<u64> = sequence.steps().flat_map(SequenceStep::paths).map(size).collect();
    sizes.sort_unstable();
    sizes
}

fn at<T: Copy>(sorted: &[T], share: f64) -> T {
    sorted[((sorted.len() as f64 * share) as usize).min(sorted.len() - 1)]
}

/// Depths of objects in a stack of recently requested ones, ascending.
fn stack_distances(sequence: &Sequence) -> Vec<usize> {
    let (mut stack, mut found) = (Vec::new(), Vec::new());
    for (object, _) in &sequence.steps {
        match stack.iter().position(|seen| seen == object) {
            Some(depth) => {
                found.push(depth);
                stack[..=depth].rotate_right(1);
            }
            None => stack.insert(0, *object),
        }
    }
    found.sort_unstable();
    found
}

/// S3 of the reference values: one run of SURGE 1.2. Values that depend on which file became
/// popular differ from seed to seed by up to a factor of two, in the far tail by more.
#[test]
fn a_sequence_looks_like_the_published_one() {
    let (set, sequence) = made(RUN, &RUN_OPTIONS, 1);
    let bytes = set.bytes() as f64;
    assert!((bytes / 103_163_652.0 - 1.0).abs() < 0.1, "{bytes}");
    let factor = sequence.requests() as f64 / 452_279.0;
    assert!((factor / 1.183 - 1.0).abs() < 0.15, "{factor}");
    let sizes = sizes(&set, &sequence);
    let published =
        [(0.1, 374), (0.25, 1102), (0.5, 2982), (0.75, 8425), (0.9, 31_411), (0.95, 45_335)];
    for (share, size) in published {
        let ratio = at(&sizes, share) as f64 / f64::from(size);
        assert!((0.5..2.0).contains(&ratio), "p{share}: {ratio}");
    }
    let distances = stack_distances(&sequence);
    for (share, depth, off) in [(0.25, 7, 1), (0.5, 38, 8), (0.75, 226, 45), (0.9, 709, 142)] {
        let found = at(&distances, share);
        assert!(found.abs_diff(depth) <= off, "p{share}: {found}");
    }
    let again = distances.iter().filter(|depth| **depth == 0).count() as f64;
    let again = again / distances.len() as f64;
    assert!((again - 0.046).abs() < 0.01, "{again}");
}

#[test]
fn groups_have_the_published_quantiles() {
    let files = Files::new(50_000, Seed(3));
    let published = [
        (Group::Base, [(0.25, 1061), (0.5, 2129), (0.75, 4282), (0.9, 8052)]),
        (Group::Embedded, [(0.25, 1422), (0.5, 3654), (0.75, 9031), (0.9, 22_573)]),
        (Group::Loner, [(0.25, 865), (0.5, 2744), (0.75, 33_521), (0.9, 125_999)]),
    ];
    for (group, quantiles) in published {
        let sizes: Vec<u64> = files.rows_of(group).iter().map(|row| files.sizes[*row]).collect();
        for (share, size) in quantiles {
            let ratio = at(&sizes, share) as f64 / f64::from(size);
            assert!((0.85..1.15).contains(&ratio), "{group:?} p{share}: {ratio}");
        }
    }
    let shares = Group::ALL.map(|group| files.rows_of(group).len());
    assert_eq!(shares, [15_000, 19_000, 16_000]);
}

/// The greedy matching compared with its target, P(X > x) = 1000/x.
#[test]
fn requested_sizes_follow_the_papers_law() {
    let files = Files::new(5_000, Seed(1));
    let counts = popularity(
        &files,
        &SequenceOptions { matching: Matching::Requests, ..RUN_OPTIONS },
        Seed(1),
    );
    let total: u64 = counts.iter().sum();
    for size in [10_000, 30_000, 100_000, 300_000, 1_000_000] {
        let above = files.sizes.iter().zip(&counts).filter(|(one, _)| **one > size);
        let share = above.map(|(_, count)| *count).sum::<u64>() as f64 / total as f64;
        let off = (share * size as f64 / 1000.0).log10().abs();
        assert!(off <= 0.05, "{size}: {share}");
    }
}

/// S4: the multiset equals the counts exactly.
#[test]
fn every_object_occurs_as_often_as_its_count() {
    for matching in [Matching::Groups, Matching::Requests] {
        let options = SequenceOptions { matching, top: 2_000, ..OPTIONS };
        let files = Files::new(500, Seed(5));
        let counts = popularity(&files, &options, Seed(5));
        let sequence = sequence(Spec::Surge { files: 500 }, &options, Seed(5)).unwrap();
        let mut found: HashMap<u32, u64> = HashMap::new();
        for (object, _) in &sequence.steps {
            *found.entry(sequence.objects[*object as usize][0]).or_default() += 1;
        }
        for (row, count) in counts.iter().enumerate() {
            let wanted = if files.groups[row] == Group::Embedded { 0 } else { *count };
            assert_eq!(found.get(&(row as u32)).copied().unwrap_or(0), wanted, "{row}");
        }
    }
}

#[test]
fn the_most_popular_page_has_the_fewest_files() {
    let files = Files::new(2_000, Seed(2));
    let counts = popularity(&files, &OPTIONS, Seed(2));
    let objects = objects::objects(&files, &counts, &mut Seed(2).stream(Purpose::Sequence, 2));
    let pages: Vec<_> =
        objects.iter().filter(|o| files.groups[o.files[0] as usize] == Group::Base).collect();
    assert_eq!(pages.len(), 600);
    assert!(pages.is_sorted_by_key(|page| page.files.len()));
    assert!(pages.is_sorted_by(|a, b| a.count >= b.count));
    for page in pages {
        let parts = &page.files[1..];
        assert!(!parts.is_empty() && parts.len() < 150);
        assert!(parts.iter().all(|row| files.groups[*row as usize] == Group::Embedded));
    }
}

#[test]
fn off_times_have_their_law() {
    let (_, sequence) = made(RUN, &SequenceOptions { off_times: true, ..RUN_OPTIONS }, 1);
    let offs = sequence.offs.iter().map(|off| off.as_secs_f64());
    let mut offs: Vec<f64> = offs.collect();
    offs.sort_by(f64::total_cmp);
    let (least, most) = (offs[0], at(&offs, 1.0));
    assert!((1.0..1.001).contains(&least) && most <= 1_800.0, "{least} {most}");
    assert!((at(&offs, 0.5) - 1.639).abs() < 0.02);
    let mean = offs.iter().sum::<f64>() / offs.len() as f64;
    assert!((mean / 3.341 - 1.0).abs() < 0.15, "{mean}");
    // Hill's estimate of the exponent
    let slope = offs.len() as f64 / offs.iter().map(|off| off.ln()).sum::<f64>();
    assert!((slope - 1.4).abs() < 0.02, "{slope}");
}

/// WebMark's run, truncated to the requested length.
#[test]
fn the_sequence_ends_at_the_requested_length() {
    let spec = Spec::Surge { files: 2_000 };
    let (_, whole) = made(spec, &OPTIONS, 1);
    let (_, short) = made(spec, &SequenceOptions { requests: Some(172_020), ..OPTIONS }, 1);
    assert!(whole.requests() > 172_020);
    assert_eq!(short.requests(), 172_020);
    assert_eq!(short.steps[..1000], whole.steps[..1000]);
    let more = SequenceOptions { requests: Some(10_000_000), ..OPTIONS };
    let why = sequence(spec, &more, Seed(1)).unwrap_err().to_string();
    assert!(why.ends_with("not 10000000: raise the top count"), "{why}");
}

#[test]
fn a_top_count_beyond_every_sequence_is_refused() {
    let spec = Spec::Surge { files: 2_000 };
    for top in [REQUESTS_MAX + 1, u64::MAX / 2, u64::MAX] {
        for matching in [Matching::Groups, Matching::Requests] {
            let options = SequenceOptions { top, matching, ..OPTIONS };
            let why = sequence(spec, &options, Seed(1)).unwrap_err().to_string();
            assert!(why.contains(&format!("{top} requests for the most popular file")), "{why}");
        }
    }
}

#[test]
fn sessions_hold_every_step_once() {
    let (_, surge) = made(Spec::Surge { files: 100 }, &SequenceOptions { top: 300, ..OPTIONS }, 1);
    let sessions = surge.sessions(7);
    assert_eq!(sessions.len(), 7);
    assert_eq!(sessions.iter().map(Vec::len).sum::<usize>(), surge.steps.len());
    assert_eq!(sessions[3][2], surge.step(3 + 2 * 7));
    assert_eq!(surge.sessions(1_000_000).len(), surge.steps.len());

    let (_, spec) = made(Spec::Specweb99 { directories: 9 }, &OPTIONS, 1);
    let lengths: Vec<u64> = spec.sessions(1).iter().map(|one| one.len() as u64).collect();
    assert_eq!(lengths.iter().sum::<u64>(), REQUESTS);
    // P3: 0.3·1 + 0.7·10 requests on a connection
    let mean = REQUESTS as f64 / lengths.len() as f64;
    assert!((mean - 7.3).abs() < 0.15, "{mean}");
    let single = lengths.iter().filter(|calls| **calls == 1).count() as f64;
    assert!((single / lengths.len() as f64 - 0.3).abs() < 0.02);
}

/// The mean size of a request, by the published shares.
#[test]
fn requests_have_the_benchmarks_mean_size() {
    let options = SequenceOptions { requests: Some(400_000), ..OPTIONS };
    for (spec, mean, off) in
        [(Spec::Specweb99 { directories: 90 }, 14_726.0, 0.03), (Spec::Webstone, 19_773.0, 0.06)]
    {
        let (set, sequence) = made(spec, &options, 1);
        let found = sizes(&set, &sequence).iter().sum::<u64>() as f64 / 400_000.0;
        assert!((found / mean - 1.0).abs() < off, "{spec:?}: {found}");
    }
    let (set, sequence) = made(Spec::Webbench { files: 6_010 }, &options, 1);
    let missing = sequence.steps().flat_map(SequenceStep::paths);
    let missing = missing.filter(|path| set.find(path).is_none()).count() as f64;
    assert!((missing / 400_000.0 - 0.02).abs() < 0.002, "{missing}");
}

/// P2: the most requested files that serve half of the requests of 1 GB are 2.1 MB, those that
/// serve 90 % are 39.5 MB (Ruan & Pai, USENIX 2006).
#[test]
fn specweb99_s_working_set_is_the_published_one() {
    let spec = Spec::Specweb99 { directories: 200 };
    let (set, sequence) = made(spec, &SequenceOptions { requests: Some(2_000_000), ..OPTIONS }, 1);
    let mut counts = vec![0_u64; set.files().len()];
    for (object, _) in &sequence.steps {
        counts[*object as usize] += 1;
    }
    let mut rows: Vec<usize> = (0..counts.len()).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(counts[*row]));
    let working_set = |share: f64| {
        let (mut served, mut bytes) = (0, 0);
        for row in &rows {
            if served as f64 >= share * 2_000_000.0 {
                break;
            }
            served += counts[*row];
            bytes += set.files()[*row].size;
        }
        bytes as f64 / 1e6
    };
    for (share, megabytes) in [(0.5, 2.1), (0.9, 39.5)] {
        let found = working_set(share);
        assert!((found / megabytes - 1.0).abs() < 0.3, "{share}: {found}");
    }
}

proptest! {
    #[test]
    fn any_wish_is_met_or_refused(files in 10_u64..300, top in 1_u64..500, seed: u64, cut: u64) {
        let spec = Spec::Surge { files };
        let (_, whole) = made(spec, &SequenceOptions { top, ..OPTIONS }, seed);
        let cut = cut % (whole.requests() + 1);
        let (_, short) = made(spec, &SequenceOptions { top, requests: Some(cut), ..OPTIONS }, seed);
        prop_assert_eq!(short.requests(), cut);
        let lines = |sequence: &Sequence| -> Vec<String> {
            sequence.steps().flat_map(SequenceStep::paths).map(str::to_owned).collect()
        };
        let (whole, short) = (lines(&whole), lines(&short));
        prop_assert_eq!(&whole[..short.len()], &short[..]);
    }
}
