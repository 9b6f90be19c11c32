//! From what was seen of a server to the software that it is.

use crate::table::Fingerprint;

/// How sure it is which software answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// Neither its words nor its behaviour are known here.
    Unknown,
    /// Its words alone: its behaviour was not seen, or is that of nothing in the table.
    Claimed,
    /// Its behaviour alone: it says nothing of itself, or nothing that is known here.
    Behaved,
    /// It says one thing and behaves like another: a name that was changed, or a proxy in front.
    Disputed,
    /// Words and behaviour agree.
    Agreed,
}

impl Confidence {
    pub const ALL: [Confidence; 5] = [
        Confidence::Agreed,
        Confidence::Disputed,
        Confidence::Behaved,
        Confidence::Claimed,
        Confidence::Unknown,
    ];

    /// Stable name for reports and JSON.
    pub fn id(self) -> &'static str {
        match self {
            Confidence::Unknown => "unknown",
            Confidence::Claimed => "claimed",
            Confidence::Behaved => "behaved",
            Confidence::Disputed => "disputed",
            Confidence::Agreed => "agreed",
        }
    }
}

/// What was seen: the signature of the reply to each question, by the question's name.
pub type Evidence = [(String, String)];

/// What a server was found to be.
#[derive(Clone, Debug, PartialEq)]
pub struct Software {
    /// What is counted: `nginx 1.22.1`, `nginx`, or `unknown`.
    pub name: String,
    pub confidence: Confidence,
    /// What it says of itself, as it came; empty: nothing.
    pub claim: String,
    /// What it behaves like, and the share of the fingerprint's weight that was met, 0..=1.
    pub behaves: Option<(&'static str, f64)>,
}

/// What a fingerprint must be met by at least, as a share of the weight of what was asked.
const MET_MIN: f64 = 0.8;
/// And how far the second best has to stay behind.
const LEAD_MIN: f64 = 0.1;
/// Of a fingerprint's weight, what must have been asked: one plain request tells nothing apart.
const ASKED_MIN: f64 = 0.5;

/// What is not known, as it is counted.
const UNKNOWN: &str = "unknown";

/// Judges by the words of a server (`claim`) and by its behaviour.
pub fn classify(table: &'static [Fingerprint], claim: &str, evidence: &Evidence) -> Software {
    let claimed = table.iter().find_map(|one| Some((one, one.version(claim)?)));
    let behaves = behaviour(table, evidence);
    let (name, confidence) = match (&claimed, behaves) {
        (Some((one, version)), Some((other, _))) if one.software == other => {
            (versioned(one.software, version), Confidence::Agreed)
        }
        (Some((one, _)), Some((other, _))) => {
            (format!("{other}, says {}", one.software), Confidence::Disputed)
        }
        (Some((one, version)), None) => (versioned(one.software, version), Confidence::Claimed),
        (None, Some((other, _))) if claim.is_empty() => (other.to_owned(), Confidence::Behaved),
        // a library says nothing of itself: the name is that of the program that is made with it
        (None, Some((other, _))) if is_library(table, other) => {
            (format!("{} on {other}", first_word(claim)), Confidence::Behaved)
        }
        // its own name is not in the table: it may be a child of what it behaves like
        (None, Some((other, _))) => {
            (format!("{other}, says {}", first_word(claim)), Confidence::Disputed)
        }
        (None, None) if claim.is_empty() => (UNKNOWN.to_owned(), Confidence::Unknown),
        (None, None) => (format!("{UNKNOWN}, says {}", first_word(claim)), Confidence::Unknown),
    };
    Software { name, confidence, claim: claim.to_owned(), behaves }
}

fn is_library(table: &[Fingerprint], software: &str) -> bool {
    table.iter().any(|one| one.software == software && one.claims.is_empty())
}

/// The one fingerprint that is met, and how well.
fn behaviour(table: &'static [Fingerprint], evidence: &Evidence) -> Option<(&'static str, f64)> {
    let mut met: Vec<(&'static str, f64)> =
        table.iter().filter_map(|one| Some((one.software, share(one, evidence)?))).collect();
    met.sort_by(|one, other| other.1.total_cmp(&one.1));
    let first = *met.first()?;
    // a software may have more than one fingerprint
    let second = met.iter().find(|one| one.0 != first.0).map_or(0.0, |one| one.1);
    (first.1 >= MET_MIN && first.1 - second >= LEAD_MIN).then_some(first)
}

/// The share of the weight that was met of what was asked; `None`: too little was asked.
fn share(one: &Fingerprint, evidence: &Evidence) -> Option<f64> {
    let (mut all, mut asked, mut met) = (0, 0, 0);
    for wanted in one.traits {
        all += wanted.weight;
        let seen = evidence.iter().find(|(question, _)| question == wanted.question);
        let Some((_, signature)) = seen else { continue };
        asked += wanted.weight;
        met += if wanted.fits(signature) { wanted.weight } else { 0 };
    }
    let enough = asked > 0 && f64::from(asked) >= ASKED_MIN * f64::from(all);
    enough.then(|| f64::from(met) / f64::from(asked))
}

fn versioned(software: &str, version: &str) -> String {
    match version {
        "" => software.to_owned(),
        version => format!("{software} {version}"),
    }
}

/// The name in front of a version, bounded.
fn first_word(claim: &str) -> String {
    const WORD_MAX: usize = 40;
    let word = claim.split(|c: char| c == '/' || c.is_whitespace()).next().unwrap_or_default();
    word.chars().take(WORD_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Trait;

    static TABLE: [Fingerprint; 2] = [
        Fingerprint {
            software: "alpha",
            claims: &["alpha"],
            traits: &[Trait::of("a", 2, "x"), Trait::of("b", 2, "y"), Trait::of("c", 1, "z")],
        },
        Fingerprint {
            software: "beta",
            claims: &["beta", "Beta Server"],
            traits: &[Trait::of("a", 2, "x"), Trait::of("b", 2, "n*"), Trait::of("c", 1, "z")],
        },
    ];

    fn told(claim: &str, evidence: &[(&str, &str)]) -> String {
        let evidence: Vec<(String, String)> =
            evidence.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        let found = classify(&TABLE, claim, &evidence);
        format!("{} ({})", found.name, found.confidence.id())
    }

    #[test]
    fn words_and_behaviour_are_held_against_each_other() {
        let alpha = [("a", "x"), ("b", "y"), ("c", "z")];
        let beta = [("a", "x"), ("b", "no"), ("c", "z")];
        assert_eq!(told("alpha/1.2 (Debian)", &alpha), "alpha 1.2 (agreed)");
        assert_eq!(told("Beta Server 4.7", &beta), "beta 4.7 (agreed)");
        assert_eq!(told("alpha", &beta), "beta, says alpha (disputed)");
        assert_eq!(told("gamma/3", &beta), "beta, says gamma (disputed)");
        assert_eq!(told("", &alpha), "alpha (behaved)");
    }

    #[test]
    fn what_is_not_known_stays_unknown() {
        let neither = [("a", "x"), ("b", "?"), ("c", "z")];
        // three fifths of both is no match
        assert_eq!(told("", &neither), "unknown (unknown)");
        assert_eq!(told("gamma/3", &neither), "unknown, says gamma (unknown)");
        assert_eq!(told("alpha/2", &neither), "alpha 2 (claimed)");
        // one plain request tells nothing apart
        assert_eq!(told("", &[("c", "z")]), "unknown (unknown)");
        assert_eq!(told("alpha/2", &[("c", "z")]), "alpha 2 (claimed)");
        assert_eq!(told("", &[]), "unknown (unknown)");
        // an alphabet soup is no alpha
        assert_eq!(told("alphabet/2", &[]), "unknown, says alphabet (unknown)");
    }
}
