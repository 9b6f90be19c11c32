//! Token requests of a run, apart from its calls.

use sample::TokenFacts;
#[cfg(any(test, feature = "schema"))]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Requests for tokens of OAuth 2.0 client credentials; they are not calls of the load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct TokensRecord {
    /// Requests answered with a token.
    pub obtained: u64,
    /// Obtained before the expiry of an earlier token.
    pub renewed: u64,
    /// Obtained after the server answered 401 to an earlier token.
    pub replaced: u64,
    /// Requests without a token in the response.
    pub failed: u64,
    /// Longest time of an answered request.
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub slowest_s: f64,
    /// Reason why the last failed request failed; null if none failed.
    pub trouble: Option<String>,
}

impl TokensRecord {
    pub fn new(facts: &TokenFacts) -> TokensRecord {
        TokensRecord {
            obtained: facts.obtained,
            renewed: facts.renewed,
            replaced: facts.replaced,
            failed: facts.failed,
            slowest_s: facts.slowest.as_secs_f64(),
            trouble: facts.trouble.clone(),
        }
    }

    /// Formats the counts: `3 obtained (2 renewed before expiry), none failed; slowest 12.0 ms`.
    pub fn sentence(&self) -> String {
        let show = units::show::count;
        let mut ways = Vec::new();
        if self.renewed > 0 {
            ways.push(format!("{} renewed before expiry", show(self.renewed)));
        }
        if self.replaced > 0 {
            ways.push(format!("{} after a 401", show(self.replaced)));
        }
        let ways = match ways.is_empty() {
            true => String::new(),
            false => format!(" ({})", ways.join(", ")),
        };
        let failed = match self.failed {
            0 => "none failed".to_owned(),
            count => format!("{} failed", show(count)),
        };
        let mut text = format!("{} obtained{ways}, {failed}", show(self.obtained));
        if self.obtained > 0 {
            let slowest = units::Nanos::from_secs_f64(self.slowest_s.max(0.0));
            text += &format!("; slowest {}", units::show::duration(slowest));
        }
        if let Some(trouble) = &self.trouble {
            text += &format!("; {trouble}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Nanos;

    #[test]
    fn token_requests_are_described_in_words() {
        let mut facts = TokenFacts { obtained: 1, ..TokenFacts::default() };
        facts.slowest = Nanos::from_millis(12);
        let text = |facts: &TokenFacts| TokensRecord::new(facts).sentence();
        assert_eq!(text(&facts), "1 obtained, none failed; slowest 12.0 ms");
        facts = TokenFacts { obtained: 9, renewed: 5, replaced: 3, failed: 2, ..facts };
        facts.trouble = Some("the token endpoint http://a/ answered 500".into());
        assert_eq!(
            text(&facts),
            "9 obtained (5 renewed before expiry, 3 after a 401), 2 failed; slowest 12.0 ms; \
             the token endpoint http://a/ answered 500"
        );
    }
}
