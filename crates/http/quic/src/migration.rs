//! Connections that change their local port (RFC 9000 section 9).

use sample::MigrationFacts;
use std::collections::BTreeSet;
use units::Nanos;

/// Repeated changes of a connection's local port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moves {
    /// After this time.
    Every(Nanos),
    /// After this number of requests.
    Requests(u32),
}

/// Migration state of one connection.
#[derive(Debug)]
pub(crate) struct Migration {
    moves: Moves,
    /// Due time of the next change; `NEVER` if it depends on requests, or no change is left.
    due: Nanos,
    /// Requests since the last change.
    requests: u32,
    /// Time of the change without a PATH_CHALLENGE from the server, and the number of challenges
    /// before it.
    pending: Option<(Nanos, u64)>,
    /// Open requests, by their streams, and those of them that were open during a change.
    open: BTreeSet<u64>,
    moved: BTreeSet<u64>,
    facts: MigrationFacts,
}

impl Migration {
    pub(crate) fn new(moves: Moves) -> Migration {
        Migration {
            moves,
            due: Nanos::NEVER,
            requests: 0,
            pending: None,
            open: BTreeSet::new(),
            moved: BTreeSet::new(),
            facts: MigrationFacts::default(),
        }
    }

    /// Handles the end of the handshake. `allowed`: the server permits migration.
    pub(crate) fn begin(&mut self, allowed: bool, now: Nanos) {
        if !allowed {
            self.facts.forbidden = 1;
            self.moves = Moves::Requests(u32::MAX);
            return;
        }
        self.requests = 0;
        self.set_due(now);
    }

    fn set_due(&mut self, now: Nanos) {
        if let Moves::Every(span) = self.moves {
            self.due = now + span;
        }
    }

    pub(crate) fn opened(&mut self, stream: u64) {
        self.open.insert(stream);
        self.requests = self.requests.saturating_add(1);
    }

    pub(crate) fn ended(&mut self, stream: u64) {
        self.open.remove(&stream);
        self.moved.remove(&stream);
    }

    /// Returns the time at which a change is due.
    pub(crate) fn due(&self) -> Nanos {
        self.due
    }

    /// Returns whether a change is due. One at a time: it waits until the server has validated the
    /// last one.
    pub(crate) fn is_due(&self, now: Nanos) -> bool {
        let due = match self.moves {
            Moves::Every(_) => self.due <= now,
            Moves::Requests(count) => self.facts.forbidden == 0 && self.requests >= count,
        };
        due && self.pending.is_none()
    }

    /// Records that the local port was changed at `now`, after `asked` challenges from the server.
    pub(crate) fn note_change(&mut self, asked: u64, now: Nanos) {
        self.pending = Some((now, asked));
        self.requests = 0;
        self.set_due(now);
        self.facts.made += 1;
        self.facts.calls += self.open.difference(&self.moved).count() as u64;
        self.moved.extend(&self.open);
    }

    /// Records that `asked` challenges from the server have arrived so far.
    pub(crate) fn process(&mut self, asked: u64, now: Nanos) {
        if let Some((at, before)) = self.pending
            && asked > before
        {
            self.pending = None;
            self.facts.add_validated(now - at);
        }
    }

    /// Stops further changes, because no socket was available.
    pub(crate) fn stop(&mut self) {
        self.due = Nanos::NEVER;
        self.moves = Moves::Requests(u32::MAX);
    }

    /// Returns the result; `lost`: the connection failed.
    pub(crate) fn facts(&self, lost: bool) -> MigrationFacts {
        let calls_lost = if lost { self.moved.len() as u64 } else { 0 };
        MigrationFacts { calls_lost, ..self.facts.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(migration: &Migration, lost: bool) -> [u64; 6] {
        let facts = migration.facts(lost);
        let MigrationFacts { made, validated, forbidden, calls, calls_lost, .. } = facts;
        [made, validated, forbidden, calls, calls_lost, facts.time_sum.0]
    }

    #[test]
    fn a_change_waits_for_the_question_to_the_one_before() {
        let at = Nanos::from_millis;
        let mut migration = Migration::new(Moves::Every(at(100)));
        assert!(!migration.is_due(at(5_000)), "the handshake is not over");
        migration.begin(true, at(10));
        assert_eq!((migration.due(), migration.is_due(at(109))), (at(110), false));
        migration.opened(0);
        migration.opened(4);
        migration.ended(0);
        assert!(migration.is_due(at(110)));
        migration.note_change(0, at(110));
        assert!(!migration.is_due(at(500)), "the server has not asked yet");
        migration.process(0, at(111));
        migration.process(1, at(113));
        assert_eq!(figures(&migration, false), [1, 1, 0, 1, 0, 3_000_000]);
        assert!(migration.is_due(at(500)));
        // a call that is open during two changes is counted once
        migration.note_change(1, at(500));
        assert_eq!(figures(&migration, true)[3..5], [1, 1]);
        migration.ended(4);
        assert_eq!(figures(&migration, true)[3..5], [1, 0]);
    }

    #[test]
    fn requests_count_since_the_last_change() {
        let now = Nanos::from_secs(1);
        let mut migration = Migration::new(Moves::Requests(3));
        migration.begin(true, now);
        for stream in [0, 4, 8] {
            assert!(!migration.is_due(now));
            migration.opened(stream);
        }
        assert!(migration.is_due(now));
        migration.note_change(7, now);
        migration.process(8, now);
        assert!(!migration.is_due(now));
    }

    #[test]
    fn migration_obeys_a_server_that_disables_it() {
        for moves in [Moves::Requests(1), Moves::Every(Nanos(1))] {
            let mut migration = Migration::new(moves);
            migration.begin(false, Nanos::ZERO);
            migration.opened(0);
            assert!(!migration.is_due(Nanos::from_secs(9)));
            assert_eq!(figures(&migration, false), [0, 0, 1, 0, 0, 0]);
        }
    }
}
