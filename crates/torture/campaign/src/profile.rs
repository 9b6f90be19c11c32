//! Profile of the server: the usual response of the probed page and its validators, the baseline,
//! and the results of cases that other cases depend on.

use crate::habits;
use crate::knee::Knee;
use dialogue::talk::Talk;
use dialogue::text::Values;
use torture::judge::Plain;
use torture::result::Baseline;
use units::Nanos;

/// Multiple of the plain response time below which a slow response is not a hang.
const PLAIN_TIMES: u64 = 8;

#[derive(Debug, Default)]
pub(crate) struct ServerProfile {
    plain: Plain,
    /// Time of the slowest initial plain request.
    slowest_plain: Nanos,
    /// ETag and Last-Modified of the probed page, if present.
    validators: (String, String),
    /// Size of the QPACK table that the server allows.
    table: u64,
    /// Path of its WebSocket; empty if none was found.
    socket: String,
    /// Why its WebSocket is not usable; empty if it is, or if none was found.
    socket_trouble: String,
    /// It announces extended CONNECT over HTTP/2 (RFC 8441).
    tunnels: bool,
    /// Results of probes before the first case.
    quiet: Baseline,
    /// Number of connections that the server serves at once, as last found by a case.
    slots: Option<u64>,
    /// Knee, set by the first case that needs it.
    knee: Option<Knee>,
    /// Behavior of the server where specifications define none, as found by cases.
    traits: Vec<(String, String)>,
}

impl ServerProfile {
    /// Returns the usual response to a plain request.
    pub(crate) fn plain(&self) -> &Plain {
        &self.plain
    }

    pub(crate) fn learn_plain(&mut self, plain: Plain) {
        self.plain = plain;
    }

    /// Records the time of a plain request.
    pub(crate) fn record_plain_time(&mut self, span: Nanos) {
        self.slowest_plain = self.slowest_plain.max(span);
    }

    /// Returns the maximum silence before it counts as a failure: the `wanted` one, but not less
    /// than some plain requests take.
    pub(crate) fn silence_max(&self, wanted: Option<Nanos>) -> Option<Nanos> {
        wanted.map(|most| most.max(Nanos(self.slowest_plain.0 * PLAIN_TIMES)))
    }

    /// Learns the validators of the page from a conversation.
    pub(crate) fn learn_page(&mut self, plain: &Talk) {
        self.validators = habits::validators(plain);
        self.table = habits::table_of(plain);
    }

    /// Returns whether the server permits a QPACK table with entries.
    pub(crate) fn has_table(&self) -> bool {
        self.table >= habits::TABLE_MIN
    }

    /// Returns the values of the placeholders in a case.
    pub(crate) fn values(&self, known: &Values, marker: String) -> Values {
        let (etag, modified) = self.validators.clone();
        let socket = self.socket.clone();
        Values { marker, etag, modified, socket, table: self.table, ..known.clone() }
    }

    /// Records the path of the server's WebSocket.
    pub(crate) fn learn_socket(&mut self, path: &str) {
        self.socket = path.to_owned();
    }

    /// Records why the server's WebSocket cannot be tested.
    pub(crate) fn learn_socket_trouble(&mut self, why: String) {
        self.socket_trouble = why;
    }

    pub(crate) fn socket_trouble(&self) -> Option<&str> {
        Some(self.socket_trouble.as_str()).filter(|why| !why.is_empty())
    }

    /// Records that the server announces extended CONNECT.
    pub(crate) fn learn_tunnels(&mut self) {
        self.tunnels = true;
    }

    pub(crate) fn tunnels(&self) -> bool {
        self.tunnels
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

    /// Records the slots found by a case; without any, the known number stays.
    pub(crate) fn learn_slots(&mut self, found: Option<u64>) {
        self.slots = found.or(self.slots);
    }

    pub(crate) fn knee(&self) -> Option<&Knee> {
        self.knee.as_ref()
    }

    pub(crate) fn learn_knee(&mut self, knee: Knee) {
        self.knee = Some(knee);
    }

    /// Records a behavior that no specification defines.
    pub(crate) fn record_trait(&mut self, what: String, seen: &str) {
        self.traits.push((what, seen.to_owned()));
    }

    /// Returns its traits in the order in which they were found.
    pub(crate) fn into_traits(self) -> Vec<(String, String)> {
        self.traits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_silence_limit_exceeds_slow_plain_requests() {
        let mut profile = ServerProfile::default();
        let wanted = Some(Nanos::SECOND);
        profile.record_plain_time(Nanos::from_millis(100));
        assert_eq!(profile.silence_max(wanted), wanted);
        profile.record_plain_time(Nanos::from_millis(200));
        profile.record_plain_time(Nanos::from_millis(50));
        assert_eq!(profile.silence_max(wanted), Some(Nanos::from_millis(1_600)));
        assert_eq!(profile.silence_max(None), None);
    }

    #[test]
    fn found_slots_stay_known() {
        let mut profile = ServerProfile::default();
        for (found, known) in
            [(None, None), (Some(4), Some(4)), (None, Some(4)), (Some(8), Some(8))]
        {
            profile.learn_slots(found);
            assert_eq!(profile.slots(), known);
        }
    }
}
