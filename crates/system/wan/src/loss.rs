//! Selection of lost packets: independently, in bursts by a Markov chain, or by number.

/// A loss model. Probabilities are in 0..=1.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Loss {
    #[default]
    None,
    /// Each packet independently.
    Bernoulli(f64),
    /// The two-state chain of Gilbert and Elliott: good to bad with `to_bad`, back with `to_good`,
    /// and a loss probability for each state. The stationary loss is P(bad)·`bad` + P(good)·`good`
    /// with P(bad) = `to_bad` / (`to_bad` + `to_good`); bursts in a bad state that loses everything
    /// have a mean length of 1 / `to_good`.
    Gilbert { to_bad: f64, to_good: f64, bad: f64, good: f64 },
    /// The four-state chain of Salsano, Ludovici and Ordine: received in a gap (1), received within
    /// a burst (2), lost within a burst (3), lost singly (4).
    FourState { p13: f64, p31: f64, p32: f64, p23: f64, p14: f64 },
    /// The packets with these numbers, counted from 1, in ascending order.
    List(Vec<u64>),
}

impl Loss {
    /// Returns the chain that loses the fraction `loss` in bursts with a mean length of `burst`
    /// packets: it leaves the bad state with 1 / B and enters it with L / (B·(1 − L)).
    pub fn in_bursts(loss: f64, burst: f64) -> Loss {
        let to_good = 1.0 / burst;
        Loss::Gilbert { to_bad: loss * to_good / (1.0 - loss), to_good, bad: 1.0, good: 0.0 }
    }

    /// Returns the stationary loss rate; 0 for a list, which ends.
    pub fn stationary(&self) -> f64 {
        match *self {
            Loss::None | Loss::List(_) => 0.0,
            Loss::Bernoulli(share) => share,
            Loss::Gilbert { to_bad, to_good, bad, good } => {
                let ways = to_bad + to_good;
                let in_bad = if ways > 0.0 { to_bad / ways } else { 0.0 };
                in_bad * bad + (1.0 - in_bad) * good
            }
            Loss::FourState { p13, p31, p32, p23, p14 } => {
                // balance of the chain with the weight of state 1 set to 1: the flow from 1 into
                // {2, 3} leaves from 3; 2 is entered from 3 only; 4 from 1 only and left at once
                if p31 <= 0.0 {
                    return if p13 > 0.0 {
                        permanent_loss_share(p32, p23)
                    } else {
                        p14 / (1.0 + p14)
                    };
                }
                if p23 <= 0.0 && p32 > 0.0 && p13 > 0.0 {
                    // it eventually reaches state 2, which is never left and loses nothing
                    return 0.0;
                }
                let three = p13 / p31;
                let two = if p23 > 0.0 { three * p32 / p23 } else { 0.0 };
                (three + p14) / (1.0 + two + three + p14)
            }
        }
    }
}

/// Returns the fraction of state 3 among 2 and 3, if the two are never left.
fn permanent_loss_share(p32: f64, p23: f64) -> f64 {
    if p32 + p23 > 0.0 { p23 / (p32 + p23) } else { 1.0 }
}

/// State of the loss model of one link.
#[derive(Clone, Debug, Default)]
pub(crate) struct LossState {
    packets: u64,
    /// State of the chain, counted from 0.
    state: u8,
    /// Next index of the list.
    row: usize,
}

impl LossState {
    /// Returns whether the next packet is lost. `draw`: two uniform numbers in 0..1, for the
    /// transition and for the loss; the transition comes first.
    pub(crate) fn loses(&mut self, model: &Loss, draw: [f64; 2]) -> bool {
        self.packets += 1;
        let [step, chance] = draw;
        match model {
            Loss::None => false,
            Loss::Bernoulli(share) => chance < *share,
            Loss::Gilbert { to_bad, to_good, bad, good } => {
                let leaves = if self.state == 0 { *to_bad } else { *to_good };
                if step < leaves {
                    self.state ^= 1;
                }
                chance < if self.state == 0 { *good } else { *bad }
            }
            Loss::FourState { p13, p31, p32, p23, p14 } => {
                self.state = match self.state {
                    0 if step < *p14 => 3,
                    0 if step < p14 + p13 => 2,
                    1 if step < *p23 => 2,
                    2 if step < *p32 => 1,
                    2 if step < p32 + p31 => 0,
                    3 => 0,
                    same => same,
                };
                self.state >= 2
            }
            Loss::List(numbers) => {
                while numbers.get(self.row).is_some_and(|number| *number < self.packets) {
                    self.row += 1;
                }
                numbers.get(self.row) == Some(&self.packets)
            }
        }
    }
}

#[cfg(test)]
mod tests;
