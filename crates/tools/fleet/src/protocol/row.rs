//! An agent's counts between two edges of the series as bytes, numbered from 0 within its step.

use crate::protocol::codec::{Packed, Reader, Unreadable, read};
use crate::protocol::snapshot;
use stats::Snapshot;
use units::Nanos;

/// First byte of every row; another form has another number.
const FORM: u8 = 2;

/// Fields before the snapshot. Instants are offsets from the first instant of the step, the same on
/// every machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowHead {
    /// The run that it is of: the number of the manager that began it.
    pub run: u64,
    pub step: u64,
    pub number: u64,
    pub start: Nanos,
    pub end: Nanos,
    pub edge: Nanos,
    pub open_connections: u64,
    pub connections_peak: u64,
    pub in_flight: u64,
    pub last_done: Nanos,
    /// Sums over the agent's workers.
    pub cpu: Nanos,
    pub passed: Nanos,
    /// True for the agent's last row.
    pub last: bool,
}

impl Packed for RowHead {
    fn pack(&self, out: &mut Vec<u8>) {
        let RowHead { run, step, number, start, end, edge, .. } = self;
        run.pack(out);
        (*step, *number).pack(out);
        [*start, *end, *edge].iter().for_each(|instant| instant.pack(out));
        (self.open_connections, self.connections_peak).pack(out);
        (self.in_flight, self.last_done).pack(out);
        (self.cpu, self.passed).pack(out);
        self.last.pack(out);
    }

    fn fill(&mut self, from: &mut Reader<'_>) -> Result<(), Unreadable> {
        self.run = read(from)?;
        (self.step, self.number) = read(from)?;
        for instant in [&mut self.start, &mut self.end, &mut self.edge] {
            instant.fill(from)?;
        }
        (self.open_connections, self.connections_peak) = read(from)?;
        (self.in_flight, self.last_done) = read(from)?;
        (self.cpu, self.passed) = read(from)?;
        self.last = read(from)?;
        let most = Nanos::from_secs(400 * 86_400);
        if [self.start, self.end, self.edge, self.last_done].iter().any(|at| *at > most) {
            return Err(Unreadable("an instant beyond all runs"));
        }
        Ok(())
    }
}

/// Returns a row as a message.
pub fn encode(head: &RowHead, snapshot: &Snapshot) -> Vec<u8> {
    let mut out = vec![FORM];
    head.pack(&mut out);
    snapshot.pack(&mut out);
    out
}

/// Parses only the head: which row it is.
///
/// # Errors
/// Fails if it is not a row, or has another form.
pub fn head(bytes: &[u8]) -> Result<RowHead, Unreadable> {
    open(bytes).map(|(head, _)| head)
}

/// Decodes the row, and counts its snapshot into `snapshot`, which is empty.
///
/// # Errors
/// Fails if it is not a row, has another form, or exceeds a bound.
pub fn decode(bytes: &[u8], snapshot: &mut Snapshot) -> Result<RowHead, Unreadable> {
    let (head, mut rest) = open(bytes)?;
    snapshot::fill(snapshot, &mut rest)?;
    if rest.is_empty() { Ok(head) } else { Err(Unreadable("it continues after its end")) }
}

fn open(bytes: &[u8]) -> Result<(RowHead, Reader<'_>), Unreadable> {
    let mut from = Reader::new(bytes);
    if from.bytes(1)? != [FORM] {
        return Err(Unreadable("a row of another form: another version wrote it"));
    }
    Ok((read(&mut from)?, from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_round_trips_and_a_foreign_one_is_refused() {
        let head = RowHead {
            run: 9,
            step: 2,
            number: 300,
            edge: Nanos(5),
            last: true,
            ..RowHead::default()
        };
        let bytes = encode(&head, &Snapshot::default());
        let mut snapshot = Snapshot::default();
        assert_eq!(decode(&bytes, &mut snapshot).unwrap(), head);
        let mut other = bytes.clone();
        other[0] = 1;
        assert!(decode(&other, &mut snapshot).unwrap_err().to_string().contains("another form"));
        other = bytes;
        other.push(0);
        assert!(decode(&other, &mut Snapshot::default()).is_err());
    }
}
