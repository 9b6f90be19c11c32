//! Responses that reach a client that did not send the request.

use super::{Act, Defect, Defects};

/// Number of connections above which a server with that defect mixes up responses.
const CONNECTIONS_MIN: usize = 20;
/// The response of a connection that repeats the previous one.
const REPEATED: u64 = 5;

/// The last response of all, and one that waits for the next client.
#[derive(Debug, Default)]
pub(super) struct Mix {
    last: Option<(u64, Vec<u8>)>,
    stray: Option<(u64, Vec<u8>)>,
}

impl Mix {
    /// Inserts responses of others into these actions if a switch requires it. `sent`: earlier
    /// responses on the connection; `open`: open connections.
    pub(super) fn insert_foreign_responses(
        &mut self,
        defects: &Defects,
        id: u64,
        acts: &mut [Act],
        (sent, open): (u64, usize),
    ) {
        let has = |defect| defects.contains(&defect);
        let others = self.last.clone().filter(|(owner, _)| *owner != id);
        let mut places = acts.iter_mut().filter_map(|act| match act {
            Act::Send(bytes) => Some(bytes),
            _ => None,
        });
        let mut before = self.last.take().filter(|(owner, _)| *owner == id).map(|(_, bytes)| bytes);
        for number in 0.. {
            let Some(bytes) = places.next() else { break };
            let own = bytes.clone();
            let foreign = match number {
                0 if self.stray.as_ref().is_some_and(|(owner, _)| *owner != id) => {
                    self.stray.take()
                }
                0 if has(Defect::MixesCrowd) && open > CONNECTIONS_MIN => others.clone(),
                1 if has(Defect::MixesPipelined) => others.clone(),
                _ => None,
            };
            if let Some((_, foreign)) = foreign {
                *bytes = foreign;
            } else if has(Defect::RepeatsAnswers) && sent + number + 1 == REPEATED {
                bytes.clone_from(before.as_ref().unwrap_or(&own));
            }
            before = Some(own);
        }
        self.last = before.map(|bytes| (id, bytes)).or(others);
    }

    /// Handles a reset by a client, or a refused request: determines whose response remains.
    pub(super) fn leave(&mut self, id: u64) {
        self.stray = self.last.clone().map(|(_, bytes)| (id, bytes));
    }
}
