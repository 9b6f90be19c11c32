//! Result of comparing bodies with the known ones.

use sample::WrongBody;

/// Maximum number of wrong bodies kept as examples.
pub const WRONG_BODIES_MAX: usize = 8;

/// Number of compared bodies, and examples of wrong ones. Wrong bodies count as failures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// Bodies that were compared with their targets'.
    pub compared: u64,
    /// The first wrong bodies, at most [`WRONG_BODIES_MAX`].
    pub wrong: Vec<WrongBody>,
}

impl Verified {
    /// Counts a wrong body.
    pub fn add(&mut self, wrong: WrongBody) {
        if self.wrong.len() < WRONG_BODIES_MAX {
            self.wrong.push(wrong);
        }
    }

    pub fn merge(&mut self, other: &Verified) {
        self.compared += other.compared;
        if !other.wrong.is_empty() {
            self.wrong.extend_from_slice(&other.wrong);
            self.wrong.sort_unstable();
            self.wrong.truncate(WRONG_BODIES_MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Nanos;

    #[test]
    fn the_first_examples_stay_in_any_order() {
        let at = |second: u64| WrongBody { at: Nanos::from_secs(second), ..WrongBody::default() };
        let of = |seconds: &[u64]| {
            let mut one = Verified { compared: seconds.len() as u64, ..Verified::default() };
            seconds.iter().for_each(|second| one.add(at(*second)));
            one
        };
        let (one, other) = (of(&[1, 4, 6, 9, 12, 15]), of(&[2, 3, 20, 21]));
        let (mut there, mut back) = (one.clone(), other.clone());
        there.merge(&other);
        back.merge(&one);
        assert_eq!(there, back);
        let seconds: Vec<f64> = there.wrong.iter().map(|one| one.at.as_secs_f64()).collect();
        assert_eq!((there.compared, seconds.len()), (10, WRONG_BODIES_MAX));
        assert_eq!(seconds[..4], [1.0, 2.0, 3.0, 4.0]);
    }
}
