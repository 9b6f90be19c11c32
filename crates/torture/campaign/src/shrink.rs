//! Shrinking: delta debugging (Zeller and Hildebrandt, 2002) over requests, lines and bytes, then
//! lengths by bisection, then the simplest values, then the pauses. Pure: the caller decides
//! whether a candidate fails.

mod cut;
#[cfg(test)]
mod tests;

use cut::Unit;
use dialogue::talk::Move;
use std::collections::BTreeMap;
use torture::record::digest;
use torture::result::Boundary;
use units::Nanos;

/// Budget of a search, which ends with the shortest form found so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Number of conversations.
    pub executions: u64,
    pub span: Nanos,
}

impl Budget {
    pub const USUAL: Budget = Budget { executions: 500, span: Nanos::from_secs(60) };
}

/// Result of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortest {
    pub moves: Vec<Move>,
    pub boundaries: Vec<Boundary>,
    /// Number of tested candidates.
    pub candidates: u64,
    /// True if the search completed; otherwise the budget was used up.
    pub finished: bool,
}

/// Tests whether steps still fail in the same way; `None` ends the search.
pub type Fails<'f> = &'f mut dyn FnMut(&[Move]) -> Option<bool>;

/// Finds the shortest steps that still fail; `moves` are known to fail.
pub fn shrink(moves: &[Move], fails: Fails<'_>) -> Shortest {
    let whole = cut::are_pieces(moves);
    let mut search = Search {
        best: moves.to_vec(),
        fixes_length: cut::has_right_length(moves),
        fails,
        known: BTreeMap::new(),
        candidates: 0,
        over: false,
    };
    search.reduce(cut::moves);
    let boundaries = match whole {
        true => {
            search.reduce(cut::pieces);
            Vec::new()
        }
        false => search.text(),
    };
    search.shortest_pauses();
    Shortest {
        moves: search.best,
        boundaries,
        candidates: search.candidates,
        finished: !search.over,
    }
}

/// Returns a minimal sublist by delta debugging: `all` is known to fail. The order is kept.
pub fn fewest<T: Clone>(all: &[T], fails: &mut dyn FnMut(&[T]) -> Option<bool>) -> Vec<T> {
    let mut kept = all.to_vec();
    let mut parts = 2;
    while !kept.is_empty() {
        let size = kept.len().div_ceil(parts);
        let mut at = 0;
        let mut removed = false;
        while at < kept.len() {
            let end = (at + size).min(kept.len());
            let rest = [&kept[..at], &kept[end..]].concat();
            match fails(&rest) {
                None => return kept,
                Some(true) => {
                    kept = rest;
                    removed = true;
                }
                Some(false) => at = end,
            }
        }
        if size == 1 && !removed {
            break;
        }
        if size > 1 {
            parts = kept.len().div_ceil(size.div_ceil(2)).max(2);
        }
    }
    kept
}

struct Search<'f> {
    best: Vec<Move>,
    /// True if Content-Length was correct and must stay so.
    fixes_length: bool,
    fails: Fails<'f>,
    /// Results of earlier candidates, by digest.
    known: BTreeMap<String, bool>,
    candidates: u64,
    over: bool,
}

impl Search<'_> {
    /// Tests a candidate, and keeps it if it fails.
    fn try_moves(&mut self, moves: Vec<Move>) -> Option<bool> {
        let moves = if self.fixes_length { cut::with_right_length(moves) } else { moves };
        let key = digest(format!("{moves:?}").as_bytes());
        if self.over {
            return None;
        }
        let fails = match self.known.get(&key) {
            Some(known) => *known,
            None => {
                let Some(fails) = (self.fails)(&moves) else {
                    self.over = true;
                    return None;
                };
                self.candidates += 1;
                self.known.insert(key, fails);
                fails
            }
        };
        if fails {
            self.best = moves;
        }
        Some(fails)
    }

    /// Shrinks text.
    fn text(&mut self) -> Vec<Boundary> {
        self.reduce(cut::requests);
        self.reduce(cut::lines);
        let boundaries = self.lengths();
        self.reduce(cut::tokens);
        self.simplify_words();
        boundaries
    }

    /// Removes unnecessary units.
    fn reduce(&mut self, units: fn(&[Move]) -> Vec<Unit>) {
        let all = units(&self.best);
        if all.len() < 2 {
            return;
        }
        fewest(&all, &mut |kept| {
            if kept.is_empty() { Some(false) } else { self.try_moves(cut::built(kept)) }
        });
    }

    /// Replaces long words with a repeated letter if that still fails, as short as possible.
    fn lengths(&mut self) -> Vec<Boundary> {
        let mut found = Vec::new();
        let mut place = 0;
        while let Some(stretch) = cut::long_spans(&self.best).into_iter().nth(place) {
            place += 1;
            let before = self.best.clone();
            if self.try_moves(cut::filled(&before, &stretch, stretch.len())) != Some(true) {
                continue;
            }
            let (mut passes, mut fails) = (None, stretch.len());
            let mut low = 0;
            while low < fails {
                let middle = low + (fails - low) / 2;
                match self.try_moves(cut::filled(&before, &stretch, middle)) {
                    Some(true) => fails = middle,
                    Some(false) => {
                        passes = Some(middle);
                        low = middle + 1;
                    }
                    None => return found,
                }
            }
            if !cut::is_long(fails) {
                // the piece was removed from the list: its position now belongs to the next piece
                place -= 1;
            }
            if let Some(passes) = passes.filter(|passes| passes + 1 == fails) {
                found.push(Boundary { what: stretch.what.to_owned(), passes, fails });
            }
        }
        found
    }

    /// Replaces every word with a single `a` or, if that no longer fails, with as many as the word
    /// has letters.
    fn simplify_words(&mut self) {
        let mut place = 0;
        while let Some(word) = cut::words(&self.best).into_iter().nth(place) {
            let before = self.best.clone();
            for length in [1, word.len()] {
                let candidate = cut::filled(&before, &word, length);
                if candidate == before || self.try_moves(candidate) != Some(false) {
                    break;
                }
            }
            place += 1;
        }
    }

    /// Removes pauses, or halves them while the failure persists.
    fn shortest_pauses(&mut self) {
        let mut place = 0;
        while place < self.best.len() {
            let Move::Pause(span) = self.best[place] else {
                place += 1;
                continue;
            };
            let mut without = self.best.clone();
            without.remove(place);
            if self.try_moves(without) == Some(true) {
                continue;
            }
            let mut span = span.0 / 2;
            while span > 0 {
                let mut shorter = self.best.clone();
                shorter[place] = Move::Pause(Nanos(span));
                if self.try_moves(shorter) != Some(true) {
                    break;
                }
                span /= 2;
            }
            place += 1;
        }
    }
}
