//! Chooses a user's next page and the pause before it, and decodes the text of a page.

use super::config::Reps;
use super::journey::Journey;
use protocol::http1::coding::Decoder;
use protocol::http1::fields;
use units::{Nanos, Stream};

/// Maximum size of a page that is decoded for its parts.
const PAGE_MAX: u64 = 16 << 20;

/// A user's place in the list.
#[derive(Debug)]
pub(super) struct Pages {
    /// Next row in order.
    next: usize,
    made: u64,
}

/// The next page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct NextPage {
    pub(super) row: u32,
    pub(super) wait: Nanos,
    /// True if the list has started again.
    pub(super) afresh: bool,
}

impl Pages {
    /// Starts users at even distances in the list, unless each user visits the list once.
    pub(super) fn new(journey: &Journey, user: u64) -> Pages {
        let count = journey.urls.len();
        let users = usize::try_from(journey.config.users.max(1)).unwrap_or(1);
        let first = match journey.config.reps {
            Reps::Once => 0,
            _ => (user as usize).saturating_mul(count / users),
        };
        Pages { next: first, made: 0 }
    }

    /// Returns `None` if the user has visited all of its pages.
    pub(super) fn next(&mut self, journey: &Journey, random: &mut Stream) -> Option<NextPage> {
        let config = &journey.config;
        let count = journey.urls.len();
        if config.pages(count).is_some_and(|most| self.made >= most) {
            return None;
        }
        let wait = if self.made == 0 { Nanos::ZERO } else { pause(config.delay, random) };
        self.made += 1;
        if config.internet {
            // the original adds a half before it cuts off: the first row gets half its share, and the
            // last one half more
            let half = if config.strict { 0.5 } else { 0.0 };
            let drawn = random.unit() * count as f64 + half;
            let row = (drawn as usize).min(count - 1) as u32;
            return Some(NextPage { row, wait, afresh: false });
        }
        let afresh = self.next >= count;
        if afresh {
            self.next = 0;
        }
        let row = self.next as u32;
        self.next += 1;
        Some(NextPage { row, wait, afresh })
    }
}

/// Returns a pause after a page: a random number of whole seconds up to `delay` if that is at least
/// one second, otherwise a random fraction of it.
fn pause(delay: f64, random: &mut Stream) -> Nanos {
    if delay >= 1.0 {
        return Nanos::from_secs((random.unit() * delay + 0.5) as u64);
    }
    if delay >= 0.001 {
        return Nanos::from_secs_f64(random.unit() * delay);
    }
    Nanos::ZERO
}

/// Returns a body with its content coding decoded, as far as possible.
pub(super) fn decoded(head: &[u8], body: &[u8]) -> Vec<u8> {
    let decoder = fields::content_encoding(head)
        .and_then(|coding| Decoder::with_output_max(&coding, PAGE_MAX));
    let Some(mut decoder) = decoder else { return body.to_vec() };
    let mut out = Vec::new();
    // the part before an error is a page too
    decoder.push(body, &mut out).ok();
    out
}
