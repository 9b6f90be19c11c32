//! What is known of the server: what the probed page answers, and by what it is known; how it fares when
//! nothing is done to it; and what cases found out that others rest on.

use crate::habits;
use crate::knee::Knee;
use dialogue::talk::Talk;
use dialogue::text::Values;
use torture::judge::Plain;
use torture::result::Baseline;
use units::Nanos;

/// A page that takes so long by itself is not taken for a hang.
const PLAIN_TIMES: u64 = 8;

#[derive(Debug, Default)]
pub(crate) struct ServerProfile {
    plain: Plain,
    /// What the slowest of the first plain requests took.
    slowest_plain: Nanos,
    /// What the probed page is known by: its ETag and its Last-Modified, where it has them.
    validators: (String, String),
    /// Bytes of QPACK's table that the server permits.
    table: u64,
    /// What probes met before the first case.
    quiet: Baseline,
    /// Connections that the server serves at once, as the last case found them.
    slots: Option<u64>,
    /// Found by the first case that needs it.
    knee: Option<Knee>,
    /// What the server does where no text says what to do, as cases found it.
    traits: Vec<(String, String)>,
}

impl ServerProfile {
    /// What is answered to a plain request.
    pub(crate) fn plain(&self) -> &Plain {
        &self.plain
    }

    pub(crate) fn learn_plain(&mut self, plain: Plain) {
        self.plain = plain;
    }

    /// A plain request took so long.
    pub(crate) fn plain_took(&mut self, span: Nanos) {
        self.slowest_plain = self.slowest_plain.max(span);
    }

    /// How long silence lasts at most until it is a failure, where so long is `wanted`: never shorter than
    /// some plain requests take.
    pub(crate) fn silence_max(&self, wanted: Option<Nanos>) -> Option<Nanos> {
        wanted.map(|most| most.max(Nanos(self.slowest_plain.0 * PLAIN_TIMES)))
    }

    /// Learns by what the page is known, of a conversation about it.
    pub(crate) fn learn_page(&mut self, plain: &Talk) {
        self.validators = habits::validators(plain);
        self.table = habits::table_of(plain);
    }

    /// It permits a table of QPACK that holds entries.
    pub(crate) fn has_table(&self) -> bool {
        self.table >= habits::TABLE_MIN
    }

    /// What the places in the text of a case stand for.
    pub(crate) fn values(&self, known: &Values, marker: String) -> Values {
        let (etag, modified) = self.validators.clone();
        Values { marker, etag, modified, table: self.table, ..known.clone() }
    }

    pub(crate) fn quiet(&self) -> Baseline {
        self.quiet
    }

    pub(crate) fn learn_quiet(&mut self, quiet: Baseline) {
        self.quiet = quiet;
    }

    pub(crate) fn slots(&self) -> Option<u64> {
        self.slots
    }

    /// The slots that a case found; where it found none, what was known stays.
    pub(crate) fn learn_slots(&mut self, found: Option<u64>) {
        self.slots = found.or(self.slots);
    }

    pub(crate) fn knee(&self) -> Option<&Knee> {
        self.knee.as_ref()
    }

    pub(crate) fn learn_knee(&mut self, knee: Knee) {
        self.knee = Some(knee);
    }

    /// What the server does where no text says what to do.
    pub(crate) fn tell_trait(&mut self, what: String, seen: &str) {
        self.traits.push((what, seen.to_owned()));
    }

    /// Its traits, in the order in which they were found.
    pub(crate) fn into_traits(self) -> Vec<(String, String)> {
        self.traits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_is_no_shorter_than_slow_plain_requests_take() {
        let mut profile = ServerProfile::default();
        let wanted = Some(Nanos::SECOND);
        profile.plain_took(Nanos::from_millis(100));
        assert_eq!(profile.silence_max(wanted), wanted);
        profile.plain_took(Nanos::from_millis(200));
        profile.plain_took(Nanos::from_millis(50));
        assert_eq!(profile.silence_max(wanted), Some(Nanos::from_millis(1_600)));
        assert_eq!(profile.silence_max(None), None);
    }

    #[test]
    fn slots_that_were_found_stay_known() {
        let mut profile = ServerProfile::default();
        for (found, known) in
            [(None, None), (Some(4), Some(4)), (None, Some(4)), (Some(8), Some(8))]
        {
            profile.learn_slots(found);
            assert_eq!(profile.slots(), known);
        }
    }
}
