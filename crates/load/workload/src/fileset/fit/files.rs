//! Compares files on a disk with a model's file set.

use super::{FigureUnit, Fit, FitCheck, FitModel, at, llcd};
use crate::fileset::surge::Group;
use crate::fileset::{Law, Spec};
use std::collections::BTreeMap;

/// Maximum share of files of sizes that the model does not have.
const UNKNOWN_SHARE_MAX: f64 = 0.01;
/// Factor by which the number of files, or their bytes, may differ from the model's.
const COUNT_FACTOR: f64 = 1.01;

/// Compares files; `sizes`: sizes of all files, in bytes.
pub fn fit_files(model: &FitModel, sizes: &[u64]) -> Fit {
    let mut sizes = sizes.to_vec();
    sizes.sort_unstable();
    match model.spec {
        Spec::Surge { .. } => by_law(model, &sizes),
        _ => by_sizes(model, &sizes),
    }
}

/// Returns the size law of SURGE's groups, mixed by their shares: a single file does not show its
/// group.
pub(super) fn law_of_files() -> Law {
    Law::Mix(Group::ALL.into_iter().map(|group| (group.share(), group.sizes())).collect())
}

fn by_law(model: &FitModel, sizes: &[u64]) -> Fit {
    let law = law_of_files();
    let text = "pages, embedded and single files: lognormal bodies, a Pareto tail";
    let mut check = FitCheck::new("sizes of files", text, sizes.len());
    if sizes.len() < 200 {
        let check = check.undecided_because("at least 200 files are needed");
        return Fit { checks: vec![check], plots: Vec::new(), ..Fit::default() };
    }
    let values: Vec<f64> = sizes.iter().map(|size| (*size).max(1) as f64).collect();
    check.follow(&values, &law, model.seed);
    for share in [0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99] {
        let name = format!("p{}", share * 100.0);
        check.figure(name, at(&values, share), law.quantile(share), FigureUnit::Bytes);
    }
    let plot = llcd("sizes", "Sizes of files: P(X > x)", "bytes", &values, |x| law.cdf(x));
    Fit { checks: vec![check], plots: plot.into_iter().collect(), ..Fit::default() }
}

/// Compares the number of files of each size: models other than SURGE have a few sizes.
fn by_sizes(model: &FitModel, sizes: &[u64]) -> Fit {
    let set = model.spec.set(model.seed);
    let mut wanted: BTreeMap<u64, u64> = BTreeMap::new();
    for file in set.files() {
        *wanted.entry(file.size).or_default() += 1;
    }
    let mut found: BTreeMap<u64, u64> = wanted.keys().map(|size| (*size, 0)).collect();
    let mut strange = 0_u64;
    for size in sizes {
        match found.get_mut(size) {
            Some(count) => *count += 1,
            None => strange += 1,
        }
    }
    let text = format!("{} sizes, each with its number of files", wanted.len());
    let mut check = FitCheck::new("sizes of files", text, sizes.len());
    let all = set.files().len() as f64;
    let shares: Vec<f64> = wanted.values().map(|count| *count as f64 / all).collect();
    let counts: Vec<u64> = found.values().copied().collect();
    check.bins(&counts, &shares);
    check.within("files", sizes.len() as f64, all, COUNT_FACTOR, FigureUnit::Number);
    let bytes = sizes.iter().sum::<u64>() as f64;
    check.within("all together", bytes, set.bytes() as f64, COUNT_FACTOR, FigureUnit::Bytes);
    let share = strange as f64 / sizes.len().max(1) as f64;
    check.figure("of other sizes", share, 0.0, FigureUnit::Share);
    if share > UNKNOWN_SHARE_MAX {
        check.against.push(format!("{strange} files have a size that the model does not have"));
    }
    Fit { checks: vec![check], plots: Vec::new(), ..Fit::default() }
}
