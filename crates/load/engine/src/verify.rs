//! Compares bodies with the bodies of their targets, by length and hash.

use plan::Plan;
use plan::verify::{Knowledge, TargetBody};
use sample::BodyPrint;
use std::sync::OnceLock;
use twox_hash::XxHash3_128;

/// Hash of a body that arrives in pieces. XXH3 with 128 bits: as fast as memory, the same on every
/// machine, and printed by `xxh128sum`.
#[derive(Default)]
pub(crate) enum Hashing {
    /// No byte yet.
    #[default]
    None,
    /// The body arrived in one piece, so that no state is needed.
    Whole(u128),
    Pieces(Box<XxHash3_128>),
}

impl std::fmt::Debug for Hashing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Hashing::None => "None",
            Hashing::Whole(_) => "Whole",
            Hashing::Pieces(_) => "Pieces",
        })
    }
}

impl Hashing {
    /// Adds a piece. `last`: it ends the body.
    #[inline]
    pub(crate) fn add(&mut self, piece: &[u8], last: bool) {
        match self {
            Hashing::None if last => *self = Hashing::Whole(XxHash3_128::oneshot(piece)),
            Hashing::Pieces(hash) => hash.write(piece),
            _ => {
                let mut hash = Box::new(XxHash3_128::new());
                hash.write(piece);
                *self = Hashing::Pieces(hash);
            }
        }
    }

    /// Returns the hash of all pieces; ready for another body.
    pub(crate) fn finish(&mut self) -> u128 {
        match std::mem::take(self) {
            Hashing::None => XxHash3_128::oneshot(&[]),
            Hashing::Whole(hash) => hash,
            Hashing::Pieces(hash) => hash.finish_128(),
        }
    }
}

/// The bodies of a plan's targets. Bodies known only from a response are learned once for all
/// workers, and never change after that. This is the only state that workers share while they
/// measure.
#[derive(Debug)]
pub(crate) struct KnownBodies(Vec<OnceLock<BodyPrint>>);

/// A body that differs from the body of its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BodyMismatch {
    pub(crate) expected: BodyPrint,
    /// The target that the body belongs to.
    pub(crate) of: Option<u32>,
}

impl KnownBodies {
    /// Returns `None` if bodies are not compared.
    ///
    /// # Errors
    /// Fails if the target's body is unknown.
    pub(crate) fn new(plan: &Plan) -> Result<Option<KnownBodies>, String> {
        let Some(verify) = &plan.expect.verify else { return Ok(None) };
        let knowledge = verify.knowledge();
        let known = plan.targets.iter().map(|target| known(&knowledge, target));
        known.collect::<Result<_, _>>().map(|all| Some(KnownBodies(all)))
    }

    /// Compares a body with the body of its target. If that is unknown, this body is stored as the
    /// target's.
    #[inline]
    pub(crate) fn check(&self, target: u32, got: BodyPrint) -> Option<BodyMismatch> {
        let expected = *self.0.get(target as usize)?.get_or_init(|| got);
        if expected.fits(&got) { None } else { Some(self.differing_target(target, expected, got)) }
    }

    #[cold]
    fn differing_target(&self, target: u32, expected: BodyPrint, got: BodyPrint) -> BodyMismatch {
        let fits = |one: &OnceLock<BodyPrint>| one.get().is_some_and(|known| known.fits(&got));
        let of = self.0.iter().position(fits).and_then(|row| u32::try_from(row).ok());
        BodyMismatch { expected, of: of.filter(|of| *of != target) }
    }
}

fn known(
    knowledge: &Knowledge<'_>,
    target: &plan::TargetPlan,
) -> Result<OnceLock<BodyPrint>, String> {
    let print = match knowledge.expected_body(target)? {
        TargetBody::Later => return Ok(OnceLock::new()),
        TargetBody::Print(print) => print,
        TargetBody::File(content, size) => {
            BodyPrint { length: Some(size), hash: hash_of(content, size) }
        }
    };
    Ok(OnceLock::from(print))
}

/// Number of bytes of a file made at a time.
const PIECE: usize = 64 << 10;

fn hash_of(content: workload::fileset::FileContent, size: u64) -> u128 {
    let mut hash = XxHash3_128::new();
    let mut piece = vec![0; PIECE];
    let mut at = 0;
    while at < size {
        let count = usize::try_from(size - at).unwrap_or(PIECE).min(PIECE);
        content.fill(at, &mut piece[..count]);
        hash.write(&piece[..count]);
        at += count as u64;
    }
    hash.finish_128()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn print(text: &str) -> BodyPrint {
        let mut hashing = Hashing::default();
        hashing.add(text.as_bytes(), true);
        BodyPrint { length: Some(text.len() as u64), hash: hashing.finish() }
    }

    #[test]
    fn pieces_make_no_difference() {
        let body: Vec<u8> = (0..5_000_u32).map(|n| (n * 7 % 251) as u8).collect();
        let whole = XxHash3_128::oneshot(&body);
        for cut in [0, 1, 16, 240, 256, 1_024, 4_999, 5_000] {
            let mut hashing = Hashing::default();
            hashing.add(&body[..cut], false);
            hashing.add(&body[cut..], true);
            assert_eq!(hashing.finish(), whole, "{cut}");
        }
        // output of `printf '' | xxh128sum` and `printf hello | xxh128sum`
        assert_eq!(Hashing::default().finish(), 0x99aa_06d3_0147_98d8_6001_c324_468d_497f);
        assert_eq!(print("hello").hash, 0xb5e9_c1ad_071b_3e7f_c779_cfaa_5e52_3818);
    }

    #[test]
    fn a_body_of_another_target_is_recognized() {
        let known = KnownBodies((0..3).map(|_| OnceLock::new()).collect());
        for (target, body, reported) in [
            (0, "a", None),
            (1, "b", None),
            (0, "a", None),
            // an unknown body, then that of the other target, then the first body of its target
            (1, "c", Some((print("b"), None))),
            (1, "a", Some((print("b"), Some(0)))),
            (2, "a", None),
            (2, "b", Some((print("a"), Some(1)))),
        ] {
            let expected = reported.map(|(expected, of)| BodyMismatch { expected, of });
            assert_eq!(known.check(target, print(body)), expected, "{target} {body}");
        }
    }
}
