//! The sequence of requests for a file set.

mod objects;
mod order;

use crate::fileset::law::by_weight;
use crate::fileset::surge::{self, Files, Group};
use crate::fileset::{Spec, matched, specweb99, webbench, webstone, zipf_counts};
use units::{Nanos, Purpose, Seed, Stream};

/// Law to which SURGE's popularity is matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Matching {
    /// In each group, the requested sizes follow the law of the group's files, as in the published
    /// output of SURGE 1.2.
    Groups,
    /// The requested sizes of all files follow the Pareto law of the paper of 1998.
    Requests,
}

/// Step of a user: a file, or a page with its embedded files, then a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequenceStep<'a> {
    sequence: &'a Sequence,
    files: &'a [u32],
    /// Time until the user's next step; zero if the model defines none.
    pub off: Nanos,
}

/// Requests in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sequence {
    /// Paths of all files, then of requested missing ones.
    paths: Vec<String>,
    /// Files requested together, as rows of `paths`.
    objects: Vec<Vec<u32>>,
    /// Object of each step, and the number of its files that are requested.
    steps: Vec<(u32, u32)>,
    /// OFF times: one per step, or none.
    offs: Vec<Nanos>,
    /// Steps per connection, if the model defines them; they add up to the steps.
    connections: Vec<u64>,
}

/// Reason why a sequence cannot be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SequenceError(pub String);

/// Selection and number of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequenceOptions {
    /// Number of requests for the most popular file, 1 or more; SURGE only.
    pub top: u64,
    pub matching: Matching,
    /// Draws OFF times; SURGE only.
    pub off_times: bool,
    /// Total number of requests; `None` for as many as SURGE's counts give, 100,000 for other
    /// models.
    pub requests: Option<u64>,
}

/// Number of requests of a model without an end.
const REQUESTS: u64 = 100_000;
/// Maximum number of requests of a sequence.
pub const REQUESTS_MAX: u64 = 10_000_000;
/// Maximum of steps times objects to put in order: about a minute's work.
const WORK_MAX: u64 = 50_000_000_000;

/// Creates the sequence for a set of the same name, size and seed.
///
/// # Errors
/// Fails for more requests than SURGE's counts give, or than [`REQUESTS_MAX`], in total or for one
/// file.
pub fn sequence(
    spec: Spec,
    options: &SequenceOptions,
    seed: Seed,
) -> Result<Sequence, SequenceError> {
    if options.requests.is_some_and(|requests| requests > REQUESTS_MAX) {
        return Err(SequenceError(format!("a sequence has {REQUESTS_MAX} requests at most")));
    }
    // no sum of the values below exceeds 64 bits
    if matches!(spec, Spec::Surge { .. }) && options.top > REQUESTS_MAX {
        let text = format!(
            "{} requests for the most popular file alone, and the maximum is {REQUESTS_MAX} for all: \
             lower the top count",
            options.top
        );
        return Err(SequenceError(text));
    }
    let stream = &mut seed.stream(Purpose::Sequence, 0);
    let requests = options.requests.unwrap_or(REQUESTS);
    let set = spec.set(seed);
    let mut paths: Vec<String> = set.files().iter().map(|file| file.path.clone()).collect();
    match spec {
        Spec::Surge { files } => of_surge(&Files::new(files as usize, seed), paths, options, seed),
        Spec::Specweb99 { directories } => {
            let choice = specweb99::Choice::new(directories);
            let drawn = (0..requests).map(|_| choice.row(stream) as u32).collect();
            let mut sequence = Sequence::from_paths(paths, drawn);
            sequence.connections = connections(requests, &mut seed.stream(Purpose::Sequence, 1));
            Ok(sequence)
        }
        Spec::Webstone => {
            let weights = webstone::weights();
            let drawn = (0..requests).map(|_| by_weight(&weights, stream) as u32);
            let drawn = drawn.collect();
            Ok(Sequence::from_paths(paths, drawn))
        }
        Spec::Webbench { files } => {
            let missing = paths.len() as u32;
            paths.push("missing/0.html".to_owned());
            let drawn = (0..requests).map(|_| {
                let rows = webbench::rows_of(files, by_weight(&webbench::SHARES, stream));
                // the last class has no rows: its files do not exist
                if rows.is_empty() {
                    return missing;
                }
                (rows.start + stream.below(rows.end - rows.start)) as u32
            });
            let drawn = drawn.collect();
            Ok(Sequence::from_paths(paths, drawn))
        }
    }
}

/// Draws the lengths of connections with this many requests in total.
fn connections(requests: u64, stream: &mut Stream) -> Vec<u64> {
    let mut left = requests;
    let lengths = std::iter::from_fn(|| {
        let calls = specweb99::calls(stream).min(left);
        left -= calls;
        (calls > 0).then_some(calls)
    });
    lengths.collect()
}

fn of_surge(
    files: &Files,
    paths: Vec<String>,
    options: &SequenceOptions,
    seed: Seed,
) -> Result<Sequence, SequenceError> {
    let counts = popularity(files, options, seed);
    let objects = objects::objects(files, &counts, &mut seed.stream(Purpose::Sequence, 2));
    let of = |object: &objects::Object| object.count.saturating_mul(object.files.len() as u64);
    let asked = objects.iter().map(of).fold(0, u64::saturating_add);
    if asked > REQUESTS_MAX {
        let text = format!(
            "these counts give {asked} requests, and the maximum is {REQUESTS_MAX}: lower the number of \
             files or the top count"
        );
        return Err(SequenceError(text));
    }
    let requests = options.requests.unwrap_or(asked);
    if requests > asked {
        let text =
            format!("these counts give {asked} requests, not {requests}: raise the top count");
        return Err(SequenceError(text));
    }
    let counts: Vec<u64> = objects.iter().map(|object| object.count).collect();
    let work = counts.iter().sum::<u64>().saturating_mul(counts.len() as u64);
    if work > WORK_MAX {
        let text = "that many steps among that many objects take too long to be put in order: \
                    lower the number of files or the top count";
        return Err(SequenceError(text.to_owned()));
    }
    let order = order::order(&counts, &mut seed.stream(Purpose::Sequence, 3));
    let objects: Vec<Vec<u32>> = objects.into_iter().map(|object| object.files).collect();
    let steps = split_steps(&order, &objects, requests);
    let mut stream = seed.stream(Purpose::Sequence, 4);
    let law = surge::off_times();
    let off = |_: &(u32, u32)| Nanos::from_secs_f64(law.draw(&mut stream));
    let offs = if options.off_times { steps.iter().map(off).collect() } else { Vec::new() };
    Ok(Sequence { paths, objects, steps, offs, connections: Vec::new() })
}

/// Returns steps up to this number of requests; the last object is cut to fit.
fn split_steps(order: &[u32], objects: &[Vec<u32>], requests: u64) -> Vec<(u32, u32)> {
    let mut left = requests;
    let steps = order.iter().map_while(|object| {
        let files = (objects[*object as usize].len() as u64).min(left);
        left -= files;
        (files > 0).then_some((*object, files as u32))
    });
    steps.collect()
}

/// Returns the count of each file, by row of the set.
fn popularity(files: &Files, options: &SequenceOptions, seed: Seed) -> Vec<u64> {
    let mut counts = zipf_counts(files.sizes.len(), options.top);
    if options.matching == Matching::Requests {
        return matched(&files.sizes, &counts, &surge::request_sizes());
    }
    // the ranks of a group are random
    shuffle(&mut counts, &mut seed.stream(Purpose::Sequence, 1));
    let mut given = vec![0; counts.len()];
    let mut dealt = 0;
    for group in Group::ALL {
        let rows = files.rows_of(group);
        let sizes: Vec<u64> = rows.iter().map(|row| files.sizes[*row]).collect();
        let share = &counts[dealt..dealt + rows.len()];
        dealt += rows.len();
        for (row, count) in rows.iter().zip(matched(&sizes, share, &group.sizes())) {
            given[*row] = count;
        }
    }
    given
}

/// Shuffles so that every order is equally likely (Fisher-Yates).
pub(crate) fn shuffle<T>(values: &mut [T], stream: &mut Stream) {
    for last in (1..values.len()).rev() {
        values.swap(last, stream.below(last as u64 + 1) as usize);
    }
}

impl Sequence {
    fn from_paths(paths: Vec<String>, drawn: Vec<u32>) -> Sequence {
        let objects = (0..paths.len() as u32).map(|row| vec![row]).collect();
        let steps = drawn.into_iter().map(|row| (row, 1)).collect();
        Sequence { paths, objects, steps, offs: Vec::new(), connections: Vec::new() }
    }

    pub fn steps(&self) -> impl Iterator<Item = SequenceStep<'_>> {
        (0..self.steps.len()).map(|index| self.step(index))
    }

    /// Returns the number of requests of all steps.
    pub fn requests(&self) -> u64 {
        self.steps.iter().map(|(_, files)| u64::from(*files)).sum()
    }

    fn step(&self, index: usize) -> SequenceStep<'_> {
        let (object, files) = self.steps[index];
        let files = &self.objects[object as usize][..files as usize];
        SequenceStep {
            sequence: self,
            files,
            off: self.offs.get(index).copied().unwrap_or_default(),
        }
    }

    /// Returns the steps of each session: of each connection, if the model defines them; otherwise
    /// dealt in turn to this number of users, at least 1.
    pub fn sessions(&self, users: usize) -> Vec<Vec<SequenceStep<'_>>> {
        if self.connections.is_empty() {
            let users = users.clamp(1, self.steps.len().max(1));
            let of = |user| (user..self.steps.len()).step_by(users).map(|index| self.step(index));
            return (0..users).map(|user| of(user).collect()).collect();
        }
        let mut next = 0;
        let connections = self.connections.iter().map(|calls| {
            let start = next;
            next += *calls as usize;
            (start..next).map(|index| self.step(index)).collect()
        });
        connections.collect()
    }
}

impl<'a> SequenceStep<'a> {
    /// Returns the rows of the file set, the page first; missing targets follow the set's last row.
    pub(crate) fn rows(self) -> impl Iterator<Item = u32> + 'a {
        self.files.iter().copied()
    }

    /// Returns requested paths, the page first, without a leading slash.
    pub fn paths(self) -> impl Iterator<Item = &'a str> {
        let paths = &self.sequence.paths;
        self.files.iter().map(|row| paths[*row as usize].as_str())
    }
}

impl std::fmt::Display for SequenceError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SequenceError {}

#[cfg(test)]
mod tests;
