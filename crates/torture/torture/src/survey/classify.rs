//! Identifies the software of a server from the evidence.

use crate::survey::table::Fingerprint;

/// Certainty with which the software is identified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// Neither the claim nor the behavior of the server is known.
    Unknown,
    /// Claim only: its behavior was not observed, or matches nothing in the table.
    Claimed,
    /// Only the behavior is known: the server makes no claim, or an unknown one.
    Behaved,
    /// The claim contradicts the behavior: a changed name, or a proxy in front.
    Disputed,
    /// Claim and behavior agree.
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

    /// Returns the stable name for reports and JSON.
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

/// The signature of the reply to each question, by the question's name.
pub type Evidence = [(String, String)];

/// The identified software.
#[derive(Clone, Debug, PartialEq)]
pub struct Software {
    /// The counted name: `nginx 1.22.1`, `nginx`, or `unknown`.
    pub name: String,
    pub confidence: Confidence,
    /// The server's own claim, unchanged; empty if it makes none.
    pub claim: String,
    /// The software it behaves like, and the matched share of the fingerprint's weight, 0..=1.
    pub behaves: Option<(&'static str, f64)>,
}

/// Minimum matched share of the weight of the sent queries.
const MET_MIN: f64 = 0.8;
/// Minimum lead over the second best.
const LEAD_MIN: f64 = 0.1;
/// Minimum share of a fingerprint's weight that was queried: one plain request distinguishes
/// nothing.
const ASKED_MIN: f64 = 0.5;

/// The counted name of unknown software.
const UNKNOWN: &str = "unknown";

/// Judges by the claim of a server and by its behavior.
pub fn classify(table: &'static [Fingerprint], claim: &str, evidence: &Evidence) -> Software {
    let claimed = table.iter().find_map(|one| Some((one, one.version(claim)?)));
    let behaves = behavior(table, evidence);
    let (name, confidence) = match (&claimed, behaves) {
        (Some((one, version)), Some((other, _))) if one.software == other => {
            (versioned(one.software, version), Confidence::Agreed)
        }
        (Some((one, _)), Some((other, _))) => {
            (format!("{other}, reports {}", one.software), Confidence::Disputed)
        }
        (Some((one, version)), None) => (versioned(one.software, version), Confidence::Claimed),
        (None, Some((other, _))) if claim.is_empty() => (other.to_owned(), Confidence::Behaved),
        // a library makes no claim: the name is that of the program built with the library
        (None, Some((other, _))) if is_library(table, other) => {
            (format!("{} on {other}", first_word(claim)), Confidence::Behaved)
        }
        // its own name is not in the table: it may be derived from what it behaves like
        (None, Some((other, _))) => {
            (format!("{other}, reports {}", first_word(claim)), Confidence::Disputed)
        }
        (None, None) if claim.is_empty() => (UNKNOWN.to_owned(), Confidence::Unknown),
        (None, None) => (format!("{UNKNOWN}, reports {}", first_word(claim)), Confidence::Unknown),
    };
    Software { name, confidence, claim: claim.to_owned(), behaves }
}

fn is_library(table: &[Fingerprint], software: &str) -> bool {
    table.iter().any(|one| one.software == software && one.claims.is_empty())
}

/// Returns the single matching fingerprint and its share.
fn behavior(table: &'static [Fingerprint], evidence: &Evidence) -> Option<(&'static str, f64)> {
    let mut met: Vec<(&'static str, f64)> =
        table.iter().filter_map(|one| Some((one.software, share(one, evidence)?))).collect();
    met.sort_by(|one, other| other.1.total_cmp(&one.1));
    let first = *met.first()?;
    // software may have more than one fingerprint
    let second = met.iter().find(|one| one.0 != first.0).map_or(0.0, |one| one.1);
    (first.1 >= MET_MIN && first.1 - second >= LEAD_MIN).then_some(first)
}

/// Returns the matched share of the weight of the sent queries, or `None` if too few were sent.
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

/// Returns the name before a version, with limited length.
fn first_word(claim: &str) -> String {
    const WORD_MAX: usize = 40;
    let word = claim.split(|c: char| c == '/' || c.is_whitespace()).next().unwrap_or_default();
    word.chars().take(WORD_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::survey::table::Trait;

    static TABLE: [Fingerprint; 2] = [
        Fingerprint {
            software: "alpha",
            claims: &["alpha"],
            traits: &[Trait::new("a", 2, "x"), Trait::new("b", 2, "y"), Trait::new("c", 1, "z")],
        },
        Fingerprint {
            software: "beta",
            claims: &["beta", "Beta Server"],
            traits: &[Trait::new("a", 2, "x"), Trait::new("b", 2, "n*"), Trait::new("c", 1, "z")],
        },
    ];

    fn describe(claim: &str, evidence: &[(&str, &str)]) -> String {
        let evidence: Vec<(String, String)> =
            evidence.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        let found = classify(&TABLE, claim, &evidence);
        format!("{} ({})", found.name, found.confidence.id())
    }

    #[test]
    fn claims_are_compared_with_behavior() {
        let alpha = [("a", "x"), ("b", "y"), ("c", "z")];
        let beta = [("a", "x"), ("b", "no"), ("c", "z")];
        assert_eq!(describe("alpha/1.2 (Debian)", &alpha), "alpha 1.2 (agreed)");
        assert_eq!(describe("Beta Server 4.7", &beta), "beta 4.7 (agreed)");
        assert_eq!(describe("alpha", &beta), "beta, reports alpha (disputed)");
        assert_eq!(describe("gamma/3", &beta), "beta, reports gamma (disputed)");
        assert_eq!(describe("", &alpha), "alpha (behaved)");
    }

    #[test]
    fn unknown_software_stays_unknown() {
        let neither = [("a", "x"), ("b", "?"), ("c", "z")];
        // three fifths of both is not a match
        assert_eq!(describe("", &neither), "unknown (unknown)");
        assert_eq!(describe("gamma/3", &neither), "unknown, reports gamma (unknown)");
        assert_eq!(describe("alpha/2", &neither), "alpha 2 (claimed)");
        // one plain request distinguishes nothing
        assert_eq!(describe("", &[("c", "z")]), "unknown (unknown)");
        assert_eq!(describe("alpha/2", &[("c", "z")]), "alpha 2 (claimed)");
        assert_eq!(describe("", &[]), "unknown (unknown)");
        // a longer word is not a match
        assert_eq!(describe("alphabet/2", &[]), "unknown, reports alphabet (unknown)");
    }
}
