//! Statistics of connections for the diagnosis (lifetimes, ends), and completions in intervals
//! shorter than a row. Recorded at the first response and at the end of a connection, and at the
//! end of an interval, never for each call.

use crate::Hist;
use units::Nanos;

/// Minimum number of responses for keeping a connection's mean.
pub const MEAN_RESPONSES_MIN: u32 = 10;

/// Idle time above which a server's close is caused by the idle time, not by the number of
/// responses. A limit of responses closes the connection with the last response.
pub const IDLE_END: Nanos = Nanos::from_millis(100);

/// Statistics of one established connection, taken at its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionLife {
    /// Complete responses received on it.
    pub responses: u32,
    /// Time with a call outstanding, and from established to the end.
    pub busy: Nanos,
    pub open: Nanos,
    /// Time without a call at its end.
    pub idle: Nanos,
    /// A request was sent on it.
    pub asked: bool,
    /// The server closed it, announced that it would, or reset it between two responses.
    pub by_server: bool,
}

/// Statistics of the connections that ended in an interval, including the warm-up.
#[derive(Clone, Debug, Default)]
pub struct Lives {
    /// done − sent of the first call that each connection answered.
    pub first: Hist,
    /// Time with a call outstanding per response, one value for each ended connection with at least
    /// [`MEAN_RESPONSES_MIN`].
    pub mean: Hist,
    /// Responses on connections that the server ended after at least one, unless they were idle for
    /// [`IDLE_END`]: one response is kept as one microsecond, so that counts have a histogram's
    /// precision (three digits).
    pub served: Hist,
    /// Connections with requests but without a response; and those among them that the server
    /// ended.
    pub unanswered: u64,
    pub turned_away: u64,
    /// Connections with a response, and the sum of their open times.
    pub answered: u64,
    pub answered_open: Nanos,
}

impl Lives {
    pub(crate) fn record(&mut self, life: &ConnectionLife) {
        if life.responses == 0 {
            self.unanswered += u64::from(life.asked);
            self.turned_away += u64::from(life.asked && life.by_server);
            return;
        }
        self.answered += 1;
        self.answered_open += life.open;
        if life.responses >= MEAN_RESPONSES_MIN {
            self.mean.record(Nanos(life.busy.0 / u64::from(life.responses)));
        }
        if life.by_server && life.idle < IDLE_END {
            self.served.record(Nanos::from_micros(u64::from(life.responses)));
        }
    }

    /// Returns (responses, connections that the server ended after that number), in order of the
    /// responses.
    pub fn served(&self) -> Vec<(u64, u64)> {
        let rows = self.served.buckets();
        rows.into_iter().map(|(responses, count)| (responses.0 / 1_000, count)).collect()
    }

    pub(crate) fn merge(&mut self, other: &Lives) {
        self.first.merge(&other.first);
        self.mean.merge(&other.mean);
        self.served.merge(&other.served);
        self.unanswered += other.unanswered;
        self.turned_away += other.turned_away;
        self.answered += other.answered;
        self.answered_open += other.answered_open;
    }

    /// Clears the counts and keeps the memory.
    pub(crate) fn clear(&mut self) {
        let [first, mean, served] =
            [&mut self.first, &mut self.mean, &mut self.served].map(Hist::take_cleared);
        *self = Lives { first, mean, served, ..Lives::default() };
    }
}

/// Length of one beat.
pub const BEAT: Nanos = Nanos::from_millis(50);
/// Maximum number of beats, from the beginning of the measured window: half an hour of them.
pub const BEATS_MAX: usize = 36_000;

/// Completions inside the measured window, in steps of [`BEAT`] from its beginning. A completion
/// may be one beat off: it is counted at a worker's next check, at most a beat late.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Beats {
    /// Number of the first row's beat.
    first: usize,
    /// All completions, and successful ones.
    rows: Vec<(u32, u32)>,
}

impl Beats {
    /// Allocates memory for the beats of a row of one second.
    pub(crate) fn prepared() -> Beats {
        Beats { first: 0, rows: Vec::with_capacity(64) }
    }

    /// Adds completions to beat `index`, which is not before the first one kept.
    pub(crate) fn add(&mut self, index: usize, done: u64, good: u64) {
        if index >= BEATS_MAX {
            return;
        }
        if self.rows.is_empty() {
            self.first = index;
        }
        if index < self.first {
            self.rows.splice(0..0, std::iter::repeat_n((0, 0), self.first - index));
            self.first = index;
        }
        let at = index - self.first;
        if at >= self.rows.len() {
            self.rows.resize(at + 1, (0, 0));
        }
        let row = &mut self.rows[at];
        row.0 = row.0.saturating_add(u32::try_from(done).unwrap_or(u32::MAX));
        row.1 = row.1.saturating_add(u32::try_from(good).unwrap_or(u32::MAX));
    }

    /// Returns (done, succeeded) for each beat from the start of the window to the last beat with a
    /// completion, at most [`BEATS_MAX`].
    pub fn all(&self) -> Vec<(u32, u32)> {
        let before = std::iter::repeat_n((0, 0), self.first);
        before.chain(self.rows.iter().copied()).collect()
    }

    /// Builds it from the beat of the first row, and the rows.
    pub fn from_rows(first: usize, rows: Vec<(u32, u32)>) -> Beats {
        Beats { first, rows }
    }

    /// Builds it from the result of [`Beats::all`].
    pub fn from_all(rows: Vec<(u32, u32)>) -> Beats {
        Beats { first: 0, rows }
    }

    pub(crate) fn merge(&mut self, other: &Beats) {
        for (at, (done, good)) in other.rows.iter().enumerate() {
            if *done > 0 {
                self.add(other.first + at, u64::from(*done), u64::from(*good));
            }
        }
    }

    pub(crate) fn clear(&mut self) {
        self.first = 0;
        self.rows.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beats_add_up_in_any_order() {
        let beats = |rows: &[(usize, u64)]| {
            let mut beats = Beats::default();
            rows.iter().for_each(|(index, done)| beats.add(*index, *done, *done / 2));
            beats
        };
        let parts = [beats(&[(3, 4), (5, 2)]), beats(&[(1, 7)]), beats(&[(4, 9), (20, 1)])];
        let sum = |order: [usize; 3]| {
            let mut sum = Beats::default();
            order.iter().for_each(|part| sum.merge(&parts[*part]));
            sum.all()
        };
        let wanted = sum([0, 1, 2]);
        assert_eq!(wanted[..6], [(0, 0), (7, 3), (0, 0), (4, 2), (9, 4), (2, 1)]);
        assert_eq!(wanted.len(), 21);
        for order in [[1, 2, 0], [2, 1, 0], [2, 0, 1]] {
            assert_eq!(sum(order), wanted);
        }
    }

    #[test]
    fn beats_end_at_their_bound() {
        let mut beats = Beats::default();
        beats.add(BEATS_MAX, 5, 5);
        assert!(beats.all().is_empty());
        beats.add(BEATS_MAX - 1, 5, 5);
        assert_eq!(beats.all().len(), BEATS_MAX);
    }

    #[test]
    fn a_life_is_counted_by_how_it_ended() {
        let mut lives = Lives::default();
        let life = ConnectionLife {
            responses: 100,
            busy: Nanos::from_millis(200),
            ..ConnectionLife::default()
        };
        lives.record(&ConnectionLife { by_server: true, asked: true, ..life });
        lives.record(&ConnectionLife { responses: 0, asked: true, by_server: true, ..life });
        lives.record(&ConnectionLife { responses: 0, asked: false, by_server: true, ..life });
        lives.record(&ConnectionLife { responses: 3, ..life });
        // an idle timeout is not a limit of responses
        lives.record(&ConnectionLife { responses: 7, by_server: true, idle: IDLE_END, ..life });
        assert_eq!(lives.served(), [(100, 1)]);
        assert_eq!((lives.answered, lives.unanswered, lives.turned_away), (3, 1, 1));
        assert_eq!(lives.mean.count(), 1);
        let mut twice = lives.clone();
        twice.merge(&lives);
        assert_eq!(twice.served(), [(100, 2)]);
        twice.clear();
        assert_eq!((twice.served().len(), twice.answered, twice.mean.count()), (0, 0, 0));
    }
}
