//! Transfers the load of a lost machine to the others: which slots go to which agents, and from
//! which instant on.

use super::Merge;
use crate::ledger::LedgerState;
use crate::wire::Wire;
use engine::{Order, Share};
use fleet::OnLoss;
use fleet::protocol::agent::SLOTS_MAX;
use fleet::protocol::slots::SlotTable;
use plan::{Load, Plan};
use sample::PartMove;
use session::console::print_message;
use units::Nanos;

/// Minimum time between an offer and the first arrival of the new part.
const OFFER_LEAD: Nanos = Nanos::from_secs(1);
/// Maximum number of slots of a lost part, so that the slot numbers for one agent fit into a
/// message.
const PIECES_MAX: usize = 65_536;

/// Returns why no other agent can continue a part of this plan; `None` if others can.
pub(crate) fn why_not_redistributable(plan: &Plan) -> Option<String> {
    let why = if plan.loads().iter().any(|load| matches!(load, Load::Closed { .. })) {
        "users of a closed loop have state that other machines lack: give --rate"
    } else if plan.loads().iter().any(|load| load.session().is_some()) {
        "sessions cannot continue on another machine"
    } else if plan.journeys.is_some() {
        "journeys cannot continue on another machine"
    } else if plan.script.is_some() {
        "the state of a script cannot move to another machine"
    } else {
        return None;
    };
    Some(format!("--on-agent-loss redistribute: {why}"))
}

/// Answer to an offer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Awaited,
    /// Accepted, or unknown: in both cases the receiving agent owes the part.
    Taken,
    Refused(String),
}

/// Slots of a lost agent that are offered to another one; both by their rows in the merge.
#[derive(Clone, Debug)]
pub(crate) struct Handover {
    number: u64,
    pub(crate) from: usize,
    to: usize,
    share: Share,
    pub(crate) at: Nanos,
    pub(crate) answer: Answer,
}

/// Slots of `of` for each worker of each receiving agent.
#[derive(Debug, PartialEq, Eq)]
struct Division {
    of: u32,
    successors: Vec<Vec<Vec<u32>>>,
}

/// Distribution of a lost agent's part.
struct PartTransfer {
    /// Workers of each receiving agent.
    workers: Vec<usize>,
    /// Worker, among those of all receiving agents, that gets each slot of a table, by weight.
    owner: Vec<usize>,
}

impl PartTransfer {
    /// Divides a part among agents.
    /// `weights`: one for each worker of each receiving agent.
    fn new(weights: &[Vec<f64>]) -> PartTransfer {
        let all: Vec<f64> = weights.iter().flatten().copied().collect();
        let table = SlotTable::new(&all);
        let mut owner = vec![0; table.of as usize];
        for (worker, places) in table.slots.iter().enumerate() {
            places.iter().for_each(|place| owner[*place as usize] = worker);
        }
        PartTransfer { workers: weights.iter().map(Vec::len).collect(), owner }
    }

    /// Divides slots among the workers by weight. They are split if there are too few.
    fn divide(&self, (slots, of): (&[u32], u32)) -> Division {
        let table = self.owner.len();
        let even = slots.len().is_multiple_of(table);
        let fits = of.checked_mul(table as u32).is_some_and(|finer| finer <= SLOTS_MAX)
            && slots.len() * table <= PIECES_MAX;
        let cut = if even || !fits { 1 } else { table as u32 };
        let pieces = (0..cut).flat_map(|round| slots.iter().map(move |slot| slot + of * round));
        let mut each = vec![Vec::new(); self.workers.iter().sum()];
        for (piece, worker) in pieces.zip(self.owner.iter().cycle()) {
            each[*worker].push(piece);
        }
        let mut each = each.into_iter();
        let successors = self.workers.iter().map(|workers| each.by_ref().take(*workers).collect());
        Division { of: of * cut, successors: successors.collect() }
    }
}

impl Merge {
    /// Offers a lost agent's part to the others, from an instant at which that agent certainly
    /// issues no more calls. Calls due before are lost; all of them if no time is left.
    pub(crate) fn redistribute(&mut self, wire: &Wire, lost: usize) {
        self.settle(lost);
        let leaves_nothing = self.ledgers[lost].is_taken_over();
        if self.on_loss != OnLoss::Redistribute || self.stopped != Order::Go || leaves_nothing {
            return;
        }
        let successors: Vec<usize> = (0..self.ledgers.len())
            .filter(|row| self.ledgers[*row].state == LedgerState::Live)
            .filter(|row| !self.ledgers[*row].is_taken_over())
            .collect();
        let silent = wire.relieve(&self.names[lost]);
        let at = self.edge_from(silent.max(net::reactor::monotonic() + OFFER_LEAD));
        if successors.is_empty() || at >= self.cut {
            return;
        }
        let weights: Vec<Vec<f64>> =
            successors.iter().map(|row| self.ledgers[*row].weights()).collect();
        let shared = PartTransfer::new(&weights);
        for part in self.ledgers[lost].leave() {
            let division = shared.divide(part.share.slots());
            for (to, slots) in successors.iter().zip(division.successors) {
                let all: Vec<u32> = sorted(slots.iter().flatten().copied());
                let Ok(share) = Share::from_slots(&all, division.of) else { continue };
                let shares =
                    slots.iter().filter_map(|own| Share::from_slots(own, division.of).ok());
                let from = at - self.setup.start;
                let number = wire.offer(&self.names[*to], slots.clone(), division.of, from);
                self.ledgers[*to].take(shares, at, number);
                self.ledgers[lost].transfer(share.clone(), part.from, at, number);
                let answer = Answer::Awaited;
                self.moves.push(Handover { number, from: lost, to: *to, share, at, answer });
            }
        }
        let seconds = at.as_secs_f64() - self.setup.measure_from().as_secs_f64();
        let name = wire.name(&self.names[lost]);
        print_message(&format!(
            "from {seconds:.1} s, {} others take over the part of {name}",
            successors.len()
        ));
    }

    /// Records whether an agent accepts an offer. A refused part is lost.
    pub(crate) fn record_reply(&mut self, wire: &Wire, number: u64, refused: Option<String>) {
        let mine = |step: &&mut Handover| step.number == number && step.answer == Answer::Awaited;
        let Some(step) = self.moves.iter_mut().find(mine) else { return };
        let (from, to) = (step.from, step.to);
        let Some(why) = refused else {
            step.answer = Answer::Taken;
            return;
        };
        print_message(&format!("{} cannot take over the load: {why}", wire.name(&self.names[to])));
        step.answer = Answer::Refused(why);
        self.ledgers[to].refuse(number);
        self.ledgers[from].keep(number);
        if self.ledgers[from].state == LedgerState::Over {
            self.ledgers[from].state = LedgerState::Lost;
        }
    }

    /// Closes an offer to an agent that is lost too: it may have accepted, so it owes the part.
    fn settle(&mut self, lost: usize) {
        let awaited = |step: &&mut Handover| step.to == lost && step.answer == Answer::Awaited;
        self.moves.iter_mut().filter(awaited).for_each(|step| step.answer = Answer::Taken);
    }

    /// Returns whether the account of a lost agent must wait for an answer before it advances to
    /// `next`.
    pub(crate) fn awaits(&self, row: usize, next: Nanos) -> bool {
        let waits = |step: &Handover| step.from == row && step.answer == Answer::Awaited;
        self.moves.iter().any(|step| waits(step) && next >= step.at)
    }

    /// Returns the first row end of the series at or after `at`.
    fn edge_from(&self, at: Nanos) -> Nanos {
        let interval = self.setup.plan.measure.interval.0.max(1);
        let first = self.setup.start + Nanos(self.setup.plan.stop.warm_up.0 % interval);
        first + Nanos((at - first).0.div_ceil(interval) * interval)
    }

    /// Returns the transfers, for the report.
    pub(crate) fn part_moves(&self) -> Vec<PartMove> {
        let from = self.setup.measure_from().as_secs_f64();
        let describe = |step: &Handover| {
            let (slots, of) = step.share.slots();
            PartMove {
                from: self.names[step.from].clone(),
                to: self.names[step.to].clone(),
                slots: slots.to_vec(),
                of,
                at_s: step.at.as_secs_f64() - from,
                refused: match &step.answer {
                    Answer::Refused(why) => why.clone(),
                    Answer::Awaited | Answer::Taken => String::new(),
                },
            }
        };
        self.moves.iter().map(describe).collect()
    }
}

fn sorted(slots: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut all: Vec<u32> = slots.collect();
    all.sort_unstable();
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::{Arrivals, Think};
    use units::Rate;

    fn divide(slots: (&[u32], u32), successors: &[Vec<f64>]) -> Division {
        PartTransfer::new(successors).divide(slots)
    }

    fn owners(division: &Division) -> Vec<usize> {
        let of = |workers: &Vec<Vec<u32>>| workers.iter().map(Vec::len).sum::<usize>();
        division.successors.iter().map(of).collect()
    }

    #[test]
    fn every_slot_goes_to_one_successor_by_its_weight() {
        let two = [vec![0.25], vec![0.25], vec![0.25]];
        let one = divide((&[2], 4), &two);
        assert_eq!(one.of, 12);
        assert_eq!(one.successors, [vec![vec![2]], vec![vec![6]], vec![vec![10]]]);
        let even = divide((&[0, 3, 7], 8), &two);
        assert_eq!((even.of, owners(&even)), (8, vec![1, 1, 1]));
        let uneven = divide((&[1], 2), &[vec![1.0, 1.0], vec![0.5]]);
        let counts = owners(&uneven);
        assert_eq!(counts.iter().sum::<usize>(), (uneven.of / 2) as usize);
        assert!(counts[0] > 3 * counts[1] && counts[0] < 5 * counts[1], "{counts:?}");
        // the same load, arrival by arrival
        let all = sorted(uneven.successors.iter().flatten().flatten().copied());
        let finer = Share::from_slots(&all, uneven.of).unwrap();
        let whole = Share::from_slots(&[1], 2).unwrap();
        assert!((0..999).all(|nth| finer.nth(nth) == whole.nth(nth)));
        // if there would be too many, they are not split
        let many = divide((&[5], SLOTS_MAX - 1), &two);
        assert_eq!((many.of, owners(&many)), (SLOTS_MAX - 1, vec![1, 0, 0]));
    }

    #[test]
    fn only_stateless_loads_move() {
        let plan = |load| Plan { load, ..Plan::for_url("http://a.example/".parse().unwrap()) };
        let open = || Load::Open {
            arrivals: Arrivals::constant(Rate(10.0)),
            session: None,
            connections_max: None,
            queue_max: None,
        };
        assert_eq!(why_not_redistributable(&plan(open())), None);
        let closed = plan(Load::Closed { users: 2, think: Think::None, session: None });
        assert!(why_not_redistributable(&closed).unwrap().contains("closed loop"));
        let script = plan::ScriptPlan {
            name: "a.lua".into(),
            text: Vec::new(),
            args: Vec::new(),
            files: Vec::new(),
        };
        let scripted = Plan { script: Some(script), ..plan(open()) };
        assert!(why_not_redistributable(&scripted).unwrap().contains("script"));
    }
}
