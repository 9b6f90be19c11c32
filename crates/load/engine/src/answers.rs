//! Answers in a bidirectional gRPC stream, matched with the messages of the request by a field.

use crate::message_field::field_key;
use plan::Plan;
use protocol::grpc::{PREFIX_BYTES, fill_prefix, messages};
use std::collections::HashMap;
use std::sync::Arc;

/// Maximum size of a message whose field is read, in bytes; the field of a longer one is unknown.
const MESSAGE_MAX: usize = 64 << 10;

/// Messages of the request by the value of their field.
#[derive(Debug)]
pub(crate) struct AnswerKeys {
    /// Place of the field in answers.
    path: Vec<u32>,
    /// Numbers of the messages with each value.
    numbers: HashMap<u64, Vec<u32>>,
}

impl AnswerKeys {
    /// Reads the messages of the plan; `None` if answers are matched by their order, or not at all.
    pub(crate) fn new(plan: &Plan) -> Option<Arc<AnswerKeys>> {
        let field = plan.grpc.correlate.as_ref().filter(|_| plan.grpc.answers)?;
        let (request, path) = field.places.clone()?;
        let body = plan.request.body.as_deref().unwrap_or_default();
        let mut numbers: HashMap<u64, Vec<u32>> = HashMap::new();
        for (number, message) in messages(body).unwrap_or_default().iter().enumerate() {
            if let Some(key) = field_key(message, &request) {
                numbers.entry(key).or_default().push(number as u32);
            }
        }
        Some(Arc::new(AnswerKeys { path, numbers }))
    }
}

/// Finds the messages that one response answers. Of several messages with the same value, the
/// first one without an answer is answered.
#[derive(Clone, Debug)]
pub(crate) struct AnswerReader {
    keys: Arc<AnswerKeys>,
    prefix: [u8; PREFIX_BYTES],
    /// Number of available prefix bytes.
    have: usize,
    /// Number of missing message bytes.
    left: usize,
    /// The message so far, unless it is too long.
    message: Vec<u8>,
    /// Number of answers so far with each value.
    taken: HashMap<u64, usize>,
    /// Numbers of the messages answered since the last call of [`AnswerReader::take`].
    answered: Vec<u32>,
}

impl AnswerReader {
    pub(crate) fn new(keys: Arc<AnswerKeys>) -> AnswerReader {
        AnswerReader {
            keys,
            prefix: [0; PREFIX_BYTES],
            have: 0,
            left: 0,
            message: Vec::new(),
            taken: HashMap::new(),
            answered: Vec::new(),
        }
    }

    /// Processes a piece of the response's body.
    pub(crate) fn push(&mut self, mut piece: &[u8]) {
        while !piece.is_empty() {
            if self.have < PREFIX_BYTES {
                if !fill_prefix(&mut self.prefix, &mut self.have, &mut piece) {
                    return;
                }
                let [_, length @ ..] = self.prefix;
                self.left = u32::from_be_bytes(length) as usize;
                self.message.clear();
            }
            let count = piece.len().min(self.left);
            let room = MESSAGE_MAX - self.message.len();
            self.message.extend_from_slice(&piece[..count.min(room)]);
            self.left -= count;
            piece = &piece[count..];
            if self.left == 0 {
                self.have = 0;
                self.end_message();
            }
        }
    }

    fn end_message(&mut self) {
        let [flag, length @ ..] = self.prefix;
        let whole = u32::from_be_bytes(length) as usize == self.message.len();
        // a compressed message is not read
        if flag != 0 || !whole {
            return;
        }
        let Some(key) = field_key(&self.message, &self.keys.path) else { return };
        let Some(numbers) = self.keys.numbers.get(&key) else { return };
        let taken = self.taken.entry(key).or_default();
        // an answer beyond the last message with this value answers none
        self.answered.extend(numbers.get(*taken));
        *taken += 1;
    }

    /// Returns the numbers of the messages that were answered since the last call.
    pub(crate) fn take(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.answered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::AnswerField;
    use protocol::grpc::prefixed;

    /// Field 1 of requests is field 2 of answers.
    fn reader(request: &[u8]) -> AnswerReader {
        let mut plan = Plan::for_url("http://h/p.S/M".parse().unwrap());
        plan.use_grpc();
        plan.request.body = Some(request.to_vec());
        plan.grpc.answers = true;
        let places = Some((vec![1], vec![2]));
        plan.grpc.correlate = Some(AnswerField { name: "id".to_owned(), places });
        AnswerReader::new(AnswerKeys::new(&plan).unwrap())
    }

    fn messages_of(field: u8, values: &[u8]) -> Vec<u8> {
        values.iter().flat_map(|value| prefixed(&[field << 3, *value])).collect()
    }

    #[test]
    fn answers_in_any_order_and_pieces_find_their_messages() {
        let mut reader = reader(&messages_of(1, &[7, 8, 9, 7]));
        // unmatched: the value 6, and the third 7, since only two messages have that value
        let body = messages_of(2, &[9, 7, 6, 8, 7, 7]);
        for size in 1..body.len() {
            let mut reader = reader.clone();
            body.chunks(size).for_each(|piece| reader.push(piece));
            assert_eq!(reader.take(), [2, 0, 1, 3], "pieces of {size}");
        }
        reader.push(&body[..7]);
        assert_eq!((reader.take(), reader.take()), (vec![2], vec![]));
    }

    #[test]
    fn unreadable_answers_are_skipped() {
        let mut reader = reader(&messages_of(1, &[7]));
        let mut compressed = messages_of(2, &[7]);
        compressed[0] = 1;
        let long = prefixed(&vec![0; MESSAGE_MAX + 1]);
        let bodies = [compressed, long, prefixed(&[0xff]), messages_of(2, &[7])];
        reader.push(&bodies.concat());
        assert_eq!(reader.take(), [0]);
    }
}
