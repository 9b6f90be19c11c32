//! Clients on different paths: `dsl:60%, 3g:30%, satellite:10%`.

use crate::number::share;
use crate::spec::{PathSpec, SpecFault};
use crate::trace::{Trace, TraceSource};
use std::sync::Arc;
use units::{Purpose, Seed, quoted};

/// Maximum number of client kinds in a population.
pub const PARTS_MAX: usize = 32;

/// Maximum number of clients with their own links on one path.
pub const CLIENTS_MAX: u32 = 16_000;

/// Client kinds and their shares, which add up to 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Population {
    /// The original text; [`Population::parse`] accepts it.
    pub text: String,
    pub parts: Vec<PopulationPart>,
}

/// One kind of clients.
#[derive(Clone, Debug, PartialEq)]
pub struct PopulationPart {
    /// Name in results: that of the profile, or the text before `=`.
    pub name: String,
    pub path: PathSpec,
    /// Share, 0..=1.
    pub share: f64,
}

impl Population {
    /// Returns all clients on the same path.
    pub fn new(path: PathSpec) -> Population {
        let (text, name) = (path.text.clone(), path.text.clone());
        Population { text, parts: vec![PopulationPart { name, path, share: 1.0 }] }
    }

    /// Parses `NAME:SHARE, …`; the shares add up to 100 %. A path that is not a profile is written
    /// in brackets, optionally with a name: `home=[rtt=80ms, loss=1%]:40%`.
    ///
    /// # Errors
    /// Fails with the invalid part, and the fix.
    pub fn parse(text: &str, traces: &dyn TraceSource) -> Result<Population, SpecFault> {
        let wrong = |why: String| SpecFault(format!("{} is not a population: {why}", quoted(text)));
        let mut parts: Vec<PopulationPart> = Vec::new();
        for item in split(text) {
            let (path, of) = item.trim().rsplit_once(':').ok_or_else(|| {
                wrong(format!(
                    "{} has no share; write parts like dsl:60%, 3g:40%",
                    quoted(item.trim())
                ))
            })?;
            let (name, path) = named(path.trim());
            let path = PathSpec::parse(path, traces)?;
            let name = name.unwrap_or(&path.text).to_owned();
            let share = share(of).map_err(wrong)?;
            if share <= 0.0 {
                return Err(wrong(format!("the share of {} is 0", quoted(&name))));
            }
            if parts.iter().any(|part| part.name == name) {
                return Err(wrong(format!(
                    "{} appears twice; add the shares up, or give one a name: other=[…]:10%",
                    quoted(&name)
                )));
            }
            if parts.len() == PARTS_MAX {
                return Err(wrong(format!("it has more than {PARTS_MAX} parts")));
            }
            parts.push(PopulationPart { name, path, share });
        }
        let sum: f64 = parts.iter().map(|part| part.share).sum();
        if (sum - 1.0).abs() > 1e-6 {
            return Err(wrong(format!("its shares add up to {:.1} %, not 100 %", sum * 100.0)));
        }
        Ok(Population { text: text.trim().to_owned(), parts })
    }

    /// Returns the traces of all its paths, each name once.
    pub fn traces(&self) -> Vec<(String, Arc<Trace>)> {
        let mut all: Vec<(String, Arc<Trace>)> = Vec::new();
        for (name, trace) in self.parts.iter().flat_map(|part| &part.path.traces) {
            if all.iter().all(|(known, _)| known != name) {
                all.push((name.clone(), trace.clone()));
            }
        }
        all
    }

    /// Returns the number of clients of each kind: by its share, rounded.
    pub fn counts(&self, clients: u32) -> Vec<u32> {
        let (mut upto, mut dealt) = (0.0, 0);
        let last = self.parts.len().saturating_sub(1);
        let of = |(row, part): (usize, &PopulationPart)| {
            upto += part.share;
            let until = (upto * f64::from(clients)).round() as u32;
            // shares that add up to slightly less than 1 omit no client
            let until = if row == last { clients } else { until.min(clients) };
            let count = until - dealt;
            dealt = until;
            count
        };
        self.parts.iter().enumerate().map(of).collect()
    }

    /// Returns the kind of each client: the numbers of [`Population::counts`], distributed by the
    /// seed.
    pub fn assign_kinds(&self, clients: u32, seed: Seed) -> Vec<u32> {
        let counts = self.counts(clients);
        let mut dealt: Vec<u32> = (0..)
            .zip(&counts)
            .flat_map(|(row, count)| std::iter::repeat_n(row, *count as usize))
            .collect();
        let mut stream = seed.stream(Purpose::Paths, u64::MAX);
        for row in (1..dealt.len()).rev() {
            dealt.swap(row, stream.below(row as u64 + 1) as usize);
        }
        dealt
    }
}

/// Returns the name before a path in brackets, and the path: `home=[rtt=80ms]`, `[rtt=80ms]`, `3g`.
fn named(text: &str) -> (Option<&str>, &str) {
    let Some((before, path)) = text.strip_suffix(']').and_then(|text| text.split_once('[')) else {
        return (None, text);
    };
    match before.trim_end().strip_suffix('=').map(str::trim) {
        Some(name) if !name.is_empty() => (Some(name), path),
        _ if before.is_empty() => (None, path),
        _ => (None, text),
    }
}

/// Splits at commas outside brackets.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0usize);
    for (at, letter) in text.char_indices() {
        match letter {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::NoTraces;

    fn parse(text: &str) -> Result<Population, SpecFault> {
        Population::parse(text, &NoTraces)
    }

    #[test]
    fn clients_are_dealt_by_share_and_seed() {
        let people = parse("dsl:60%, 3g:30%, satellite:10%").expect("a population");
        let dealt = people.assign_kinds(20, Seed(1));
        let count = |row| dealt.iter().filter(|one| **one == row).count();
        assert_eq!([count(0), count(1), count(2)], [12, 6, 2]);
        assert_eq!(dealt, people.assign_kinds(20, Seed(1)));
        assert_ne!(dealt, people.assign_kinds(20, Seed(2)));
        assert_eq!(people.assign_kinds(1, Seed(1)).len(), 1);
        assert_eq!(people.assign_kinds(0, Seed(1)), [0; 0]);
    }

    #[test]
    fn a_numeric_path_is_printed_in_brackets() {
        let people = parse("[rtt=80ms, loss=1%]:40%, 3g:60%").expect("a population");
        assert_eq!(people.parts[0].path.text, "rtt=80ms, loss=1%");
        assert_eq!(people.parts.len(), 2);
        let people = parse("home = [dsl, loss=1%]:40%, dsl:60%").expect("a population");
        assert_eq!((&*people.parts[0].name, &*people.parts[1].name), ("home", "dsl"));
        assert_eq!(people.parts[0].path.text, "dsl, loss=1%");
    }

    #[test]
    fn three_thirds_are_all_clients() {
        let people = parse("dsl:33.3333%, 3g:33.3333%, 4g:33.3334%").expect("a population");
        assert_eq!(people.counts(10), [3, 4, 3]);
        assert_eq!(people.counts(2), [1, 0, 1]);
    }

    #[test]
    fn an_invalid_population_is_reported() {
        let wrong = |text: &str| parse(text).expect_err("no population").0;
        assert_eq!(
            wrong("dsl"),
            "\"dsl\" is not a population: \"dsl\" has no share; write parts like dsl:60%, 3g:40%"
        );
        assert_eq!(
            wrong("dsl:60%,3g:30%"),
            "\"dsl:60%,3g:30%\" is not a population: its shares add up to 90.0 %, not 100 %"
        );
        assert_eq!(
            wrong("dsl:50%,dsl:50%"),
            "\"dsl:50%,dsl:50%\" is not a population: \"dsl\" appears twice; add the shares up, or \
             give one a name: other=[…]:10%"
        );
        assert!(wrong("dsl:120%,3g:-20%").contains("\"120%\" is not a share"));
        assert!(wrong("dls:100%").starts_with("\"dls\" is not a path: \"dls\" is not a profile"));
    }
}
