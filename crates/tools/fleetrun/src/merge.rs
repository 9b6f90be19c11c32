//! Merges the rows of agents into one measurement, like those of cores. Calls due on a lost agent
//! are counted as lost, interval by interval.

mod successors;

use crate::ledger::{Ledger, LedgerState, LostCounts};
use crate::wire::{AgentEntries, POLL_INTERVAL, Wire};
use engine::{Collector, Order, Owed, Row, Setup, Share};
use fleet::OnLoss;
use fleet::protocol::manager::FleetEvent;
use fleet::protocol::message::{Hello, PartEnding};
use fleet::protocol::row;
use sample::{AgentNow, AgentState};
use session::console::print_message;
use session::{Watcher, signals};
use stats::{Measurement, Snapshot};
use std::collections::BTreeMap;
use std::sync::Arc;
use successors::Handover;
pub(crate) use successors::why_not_redistributable;
use units::Nanos;

/// Time for agents to report after every call must have ended.
const GRACE: Nanos = Nanos::from_secs(15);

/// Maximum size of a fleet whose agents show their own quantiles during the run.
const QUANTILES_MAX: usize = 100;

/// Formats labels: `region=north`, several separated by commas.
pub(crate) fn labels(hello: &Hello) -> String {
    let labels = hello.labels.iter().map(|(name, value)| format!("{name}={value}"));
    labels.collect::<Vec<_>>().join(",")
}

/// An agent's account, for the report.
pub(crate) struct Account {
    pub(crate) offered: u64,
    pub(crate) lost: u64,
    pub(crate) lost_at_s: Option<f64>,
    pub(crate) ending: String,
}

/// Merges the rows of agents.
pub(crate) struct Merge {
    pub(crate) setup: Arc<Setup>,
    collector: Collector,
    /// Names in the order of the collector's workers.
    pub(crate) names: Vec<String>,
    pub(crate) ledgers: Vec<Ledger>,
    /// States as shown during the run.
    shown: Vec<AgentNow>,
    /// Parts of lost agents that were offered to others.
    pub(crate) moves: Vec<Handover>,
    owed: Option<Owed>,
    pub(crate) on_loss: OnLoss,
    spare: Box<Snapshot>,
    pub(crate) stopped: Order,
    /// Instant after which no call is due, because all agents were stopped.
    pub(crate) cut: Nanos,
}

impl Merge {
    pub(crate) fn new(
        setup: Arc<Setup>,
        parts: &BTreeMap<String, Vec<Share>>,
        on_loss: OnLoss,
    ) -> Merge {
        let ledger = |shares: &Vec<Share>| Ledger::new(shares.clone(), setup.start);
        Merge {
            collector: Collector::new(setup.clone()),
            names: parts.keys().cloned().collect(),
            ledgers: parts.values().map(ledger).collect(),
            shown: Vec::new(),
            moves: Vec::new(),
            owed: Owed::new(&setup),
            on_loss,
            spare: Box::default(),
            stopped: Order::Go,
            cut: setup.measure_until(),
            setup,
        }
    }

    /// Sets the names of the agents in views.
    pub(crate) fn set_agent_names(&mut self, agent_entries: &AgentEntries) {
        let show = |(number, name): (u32, &String)| {
            let hello = agent_entries.get(name).map(|agent_entry| &agent_entry.hello);
            AgentNow {
                number,
                host: hello.map_or_else(|| name.clone(), |hello| hello.host.clone()),
                labels: hello.map_or_else(String::new, labels),
                ..AgentNow::default()
            }
        };
        self.shown = (1..).zip(&self.names).map(show).collect();
    }

    /// Records that this agent will not report again; ignores unknown names.
    pub(crate) fn give_up(&mut self, agent: &str) {
        if let Some(row) = self.row_of(agent) {
            let ledger = &mut self.ledgers[row];
            (ledger.state, ledger.lost_at) = (LedgerState::Lost, Some(ledger.own_edge));
        }
    }

    /// Runs until every agent has finished, or is known not to finish.
    pub(crate) fn run(&mut self, wire: &mut Wire, observer: &mut dyn Watcher) {
        let begun = net::reactor::monotonic();
        while self.ledgers.iter().any(|ledger| ledger.state != LedgerState::Over) {
            if let Some(event) = wire.event(POLL_INTERVAL) {
                self.process(wire, event, observer);
            }
            self.send_order(wire, observer);
            self.pass(wire, begun, net::reactor::monotonic(), observer);
        }
    }

    fn process(&mut self, wire: &mut Wire, event: FleetEvent, observer: &mut dyn Watcher) {
        match event {
            FleetEvent::Row(agent, bytes) => self.row(wire, &agent, &bytes, observer),
            FleetEvent::Over(agent) => self.handle_end(wire, &agent, observer),
            FleetEvent::Lost(agent, why) | FleetEvent::StoodDown(agent, why) => {
                self.lose_agent(wire, &agent, why);
            }
            FleetEvent::Back(agent) => self.agent_returned(wire, &agent),
            FleetEvent::Taken { number, refused, .. } => self.record_reply(wire, number, refused),
            _ => {}
        }
    }

    /// Advances the time; the rows since `begun` are collected.
    fn pass(&mut self, wire: &mut Wire, begun: Nanos, now: Nanos, observer: &mut dyn Watcher) {
        if now > self.late(begun) {
            for row in 0..self.ledgers.len() {
                if self.ledgers[row].state == LedgerState::Live {
                    self.abandon_agent(wire, row, "it did not end".to_owned());
                }
            }
        }
        self.add_owed_counts(now, observer);
    }

    /// Returns the instant at which an unfinished agent counts as lost: no more calls are due,
    /// every call has ended, and there was time to report. A taken-over run may have ended long
    /// ago.
    fn late(&self, begun: Nanos) -> Nanos {
        (self.cut + self.setup.plan.timeouts.call + GRACE).max(begun + GRACE)
    }

    /// Continues without an agent that still responds; its messages are ignored.
    fn abandon_agent(&mut self, wire: &mut Wire, row: usize, why: String) {
        let agent = self.names[row].clone();
        // the agent is notified that it counts as lost, and stops
        wire.relieve(&agent);
        self.lose_agent(wire, &agent, why);
        self.ledgers[row].abandoned = true;
    }

    /// Returns the finished run.
    pub(crate) fn finish(self) -> Measurement {
        let cut_short = self.stopped != Order::Go && !self.collector.is_over();
        self.collector.finish(signals::received_signal() > 0 || cut_short)
    }

    /// Returns the length of the measured phase by the plan, in seconds; infinite where a count
    /// ends it.
    pub(crate) fn span(&self) -> f64 {
        let (from, until) = (self.setup.measure_from(), self.setup.measure_until());
        if until == Nanos::NEVER { f64::INFINITY } else { (until - from).as_secs_f64() }
    }

    pub(crate) fn account(&self, agent: &str) -> Option<Account> {
        let ledger = &self.ledgers[self.row_of(agent)?];
        let from = self.setup.measure_from();
        let at_s = |at: Nanos| at.as_secs_f64() - from.as_secs_f64();
        Some(Account {
            offered: ledger.offered(),
            lost: ledger.lost(),
            lost_at_s: ledger.lost_at.map(at_s),
            ending: ledger.ending.clone(),
        })
    }

    /// Returns whether an agent's messages are ignored.
    pub(crate) fn has_abandoned(&self, agent: &str) -> bool {
        self.row_of(agent).is_some_and(|row| self.ledgers[row].abandoned)
    }

    fn row_of(&self, agent: &str) -> Option<usize> {
        self.names.iter().position(|name| name == agent)
    }

    fn send_order(&mut self, wire: &mut Wire, observer: &dyn Watcher) {
        let wish = observer.order();
        let abandon = signals::received_signal() > 0 || wish == Order::Abandon;
        let stop = self.collector.is_over() || wish == Order::Stop;
        if abandon && self.stopped != Order::Abandon {
            self.stop(wire, Order::Abandon);
        } else if stop && self.stopped == Order::Go {
            self.stop(wire, Order::Stop);
        }
    }

    fn stop(&mut self, wire: &mut Wire, order: Order) {
        self.stopped = order;
        self.cut = self.cut.min(net::reactor::monotonic());
        wire.stop(order == Order::Abandon);
    }

    fn lose_agent(&mut self, wire: &mut Wire, agent: &str, why: String) {
        let Some(row) = self.row_of(agent) else { return };
        let ledger = &mut self.ledgers[row];
        if ledger.state != LedgerState::Live {
            return;
        }
        ledger.state = LedgerState::Lost;
        ledger.lost_at = Some(ledger.own_edge);
        print_message(&format!("{} is lost: {why}", wire.name(agent)));
        ledger.ending = why;
        if self.on_loss == OnLoss::Stop && self.stopped == Order::Go {
            self.stop(wire, Order::Stop);
        }
        self.redistribute(wire, row);
    }

    fn agent_returned(&mut self, wire: &mut Wire, agent: &str) {
        let Some(row) = self.row_of(agent) else { return };
        let ledger = &self.ledgers[row];
        if ledger.state == LedgerState::Live || ledger.abandoned {
            return;
        }
        let (measured, warm_up) = self.ledgers[row].restore_agent();
        self.collector.take_back(&measured, &warm_up);
        print_message(&format!("{} is back", wire.name(agent)));
    }

    /// Handles the last row of an agent. An agent that ended early owes the rest of its due calls.
    fn handle_end(&mut self, wire: &mut Wire, agent: &str, observer: &mut dyn Watcher) {
        let Some(row) = self.row_of(agent) else { return };
        if self.ledgers[row].abandoned {
            return;
        }
        let report = wire.finals().remove(agent).unwrap_or_default();
        let ledger = &mut self.ledgers[row];
        ledger.state = LedgerState::Over;
        if report.ending == PartEnding::Done {
            if ledger.has_taken_over() && self.stopped == Order::Go {
                self.charge_taken_part(row, observer);
            }
            return;
        }
        let why = match (report.ending, report.trouble) {
            (PartEnding::DeadMan, _) if ledger.is_taken_over() => {
                "others took over its part".to_owned()
            }
            (PartEnding::DeadMan, _) => "dead-man: it lost contact with the manager".to_owned(),
            (_, trouble) => format!("failed: {}", trouble.unwrap_or_default()),
        };
        ledger.state = LedgerState::Live;
        self.lose_agent(wire, agent, why);
    }

    /// Charges a finished agent for a part that it took over and still owes.
    fn charge_taken_part(&mut self, row: usize, observer: &mut dyn Watcher) {
        let ledger = &mut self.ledgers[row];
        let (measured, warm_up) = ledger.lost_counts_until(self.owed.as_ref(), self.cut);
        if (measured.lost, warm_up.lost) != (0, 0) {
            let (edge, ghost) = (ledger.edge, (measured, warm_up));
            self.add_lost_counts(row, (edge, edge), ghost, true, observer);
        }
    }

    /// Adds the missing counts of lost agents for each interval up to now.
    fn add_owed_counts(&mut self, now: Nanos, observer: &mut dyn Watcher) {
        let interval = self.setup.plan.measure.interval;
        for row in 0..self.ledgers.len() {
            while self.ledgers[row].state == LedgerState::Lost {
                let next = self.ledgers[row].edge + interval;
                let closed = self.owed.is_none();
                let cut = self.cut.min(self.ledgers[row].owed_until());
                let last = closed || next >= cut;
                let until = if last { cut.min(next) } else { next };
                if !last && next > now || self.awaits(row, next) {
                    break;
                }
                let ledger = &mut self.ledgers[row];
                let start = ledger.edge;
                let (measured, warm_up) = ledger.lost_counts_until(self.owed.as_ref(), until);
                ledger.edge = until.max(start);
                ledger.ghost_edge = ledger.edge;
                if last {
                    ledger.state = LedgerState::Over;
                }
                let times = (start, until.max(start));
                self.add_lost_counts(row, times, (measured, warm_up), last, observer);
            }
        }
    }

    /// Adds counts for calls of unknown outcome.
    fn add_lost_counts(
        &mut self,
        row: usize,
        times: (Nanos, Nanos),
        (measured, warm_up): LostCounts,
        last: bool,
        observer: &mut dyn Watcher,
    ) {
        let mut snapshot = std::mem::take(&mut self.spare);
        (snapshot.counts, snapshot.warm_up) = (measured, warm_up);
        self.put(Self::empty_row(row, times, snapshot, last), observer);
    }

    fn empty_row(
        row: usize,
        (start, end): (Nanos, Nanos),
        snapshot: Box<Snapshot>,
        last: bool,
    ) -> Row {
        Row {
            worker: row as u32,
            start,
            end,
            edge: end,
            snapshot,
            open_connections: 0,
            connections_peak: 0,
            in_flight: 0,
            last_done: Nanos::ZERO,
            first_late: Nanos::NEVER,
            cpu: Nanos::ZERO,
            passed: Nanos::ZERO,
            last,
        }
    }

    fn row(&mut self, wire: &mut Wire, agent: &str, bytes: &[u8], observer: &mut dyn Watcher) {
        let Some(worker) = self.row_of(agent) else { return };
        if self.ledgers[worker].abandoned {
            return;
        }
        let mut snapshot = std::mem::take(&mut self.spare);
        let head = match row::decode(bytes, &mut snapshot) {
            Ok(head) => head,
            Err(why) => {
                return self.abandon_agent(wire, worker, format!("its rows cannot be read: {why}"));
            }
        };
        let at = |span: Nanos| self.setup.start + span;
        snapshot.instants.shift(i64::try_from(self.setup.start.0).unwrap_or(i64::MAX));
        let times = (at(head.start), at(head.end));
        let row = Row {
            edge: at(head.edge),
            open_connections: head.open_connections,
            connections_peak: head.connections_peak,
            in_flight: head.in_flight,
            last_done: at(head.last_done),
            cpu: head.cpu,
            passed: head.passed,
            ..Self::empty_row(worker, times, snapshot, head.last)
        };
        self.note(worker, &row);
        let ledger = &mut self.ledgers[worker];
        ledger.add(&row.snapshot.counts, &row.snapshot.warm_up, row.edge);
        if row.edge <= ledger.ghost_edge {
            // of an interval that was shown before: it counts only in the sum
            self.collector.add_late(row);
        } else {
            self.put(row, observer);
        }
    }

    /// Records the state of an agent from its latest row.
    fn note(&mut self, worker: usize, row: &Row) {
        let few = self.shown.len() <= QUANTILES_MAX;
        let Some(shown) = self.shown.get_mut(worker) else { return };
        let (counts, warm_up) = (&row.snapshot.counts, &row.snapshot.warm_up);
        let span = (row.end - row.start).as_secs_f64().max(1e-9);
        shown.calls_per_s = (counts.done() + warm_up.done()) as f64 / span;
        shown.in_flight = row.in_flight;
        let response = few.then(|| row.snapshot.response());
        shown.p99 = response.filter(|times| !times.is_empty()).map(|times| times.quantile(0.99));
    }

    /// Shows the agents' state after a complete second.
    fn show(&mut self, observer: &mut dyn Watcher) {
        for (shown, ledger) in self.shown.iter_mut().zip(&self.ledgers) {
            (shown.offered, shown.lost) = (ledger.offered(), ledger.lost());
            shown.state = match ledger.state {
                LedgerState::Live => AgentState::Running,
                // an agent that owes nothing is still lost
                _ if ledger.lost_at.is_some() => AgentState::Lost,
                LedgerState::Lost => AgentState::Lost,
                LedgerState::Over => AgentState::Over,
            };
            if shown.state != AgentState::Running {
                (shown.calls_per_s, shown.p99, shown.in_flight) = (0.0, None, 0);
            }
        }
        observer.agents(&self.shown);
    }

    /// Adds to the measurement and its series.
    fn put(&mut self, row: Row, observer: &mut dyn Watcher) {
        observer.row(&row);
        let (clear, seconds) = self.collector.add(row);
        let seconds = seconds.to_vec();
        self.spare = clear;
        if !seconds.is_empty() {
            self.show(observer);
        }
        for second in &seconds {
            observer.second(second, self.collector.total());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fleet::protocol::manager::Manager;
    use plan::{Arrivals, Load, Plan};
    use sample::CallRecord;
    use stats::Second;
    use units::Rate;

    const START: Nanos = Nanos::from_secs(1_000);

    struct NoWatcher;

    impl Watcher for NoWatcher {
        fn second(&mut self, _: &Second, _: &Snapshot) {}

        fn calls(&mut self, _: &[CallRecord]) -> anyhow::Result<()> {
            Ok(())
        }

        fn end(&mut self) {}
    }

    /// Two agents that share 10 calls a second, for 2 s or without an end.
    fn merge(duration: Option<Nanos>) -> (Merge, Wire) {
        let load = Load::Open {
            arrivals: Arrivals::constant(Rate(10.0)),
            session: None,
            connections_max: None,
            queue_max: None,
        };
        let mut plan = Plan { load, ..Plan::for_url("http://127.0.0.1/".parse().unwrap()) };
        (plan.stop.duration, plan.stop.warm_up) = (duration, Nanos::ZERO);
        plan.timeouts.call = Nanos::SECOND;
        let endpoints = vec![session::endpoint_of(&plan, &plan.targets[0].url).unwrap()];
        let setup = Setup::new(plan, endpoints, 2, START).unwrap();
        let part = |row| (format!("A{row}"), vec![Share::new(row, 2)]);
        let parts = BTreeMap::from([part(0), part(1)]);
        let merge = Merge::new(Arc::new(setup), &parts, OnLoss::Continue);
        (merge, Wire::disconnected(Manager::new(1, 2, START)))
    }

    fn handle_end(agent: &str) -> FleetEvent {
        FleetEvent::Over(agent.to_owned())
    }

    #[test]
    fn an_agent_that_does_not_end_loses_its_own_part_alone() {
        let (mut merge, mut wire) = merge(Some(Nanos::from_secs(2)));
        merge.process(&mut wire, handle_end("A0"), &mut NoWatcher);
        let late = START + Nanos::from_secs(2 + 1) + GRACE;
        merge.pass(&mut wire, START, late, &mut NoWatcher);
        assert_eq!(merge.ledgers[1].state, LedgerState::Live);
        merge.pass(&mut wire, START, late + Nanos(1), &mut NoWatcher);
        let account = merge.account("A1").unwrap();
        assert_eq!((account.lost, &*account.ending), (10, "it did not end"));
        // a late report is not counted in addition to its replacement
        merge.process(&mut wire, FleetEvent::Back("A1".into()), &mut NoWatcher);
        assert!(merge.ledgers.iter().all(|ledger| ledger.state == LedgerState::Over));
        assert_eq!(merge.finish().total.counts.lost, 10);
    }

    #[test]
    fn a_run_without_an_end_is_not_waited_for_once_stopped() {
        let (mut merge, mut wire) = merge(None);
        assert_eq!(merge.late(START), Nanos::NEVER);
        merge.stop(&mut wire, Order::Stop);
        let now = net::reactor::monotonic();
        assert!(merge.late(Nanos::ZERO) <= now + Nanos::SECOND + GRACE);
        merge.pass(&mut wire, Nanos::ZERO, now + Nanos::SECOND + GRACE + Nanos(1), &mut NoWatcher);
        assert!(merge.ledgers.iter().all(|ledger| ledger.state == LedgerState::Over));
    }

    #[test]
    fn an_agent_whose_rows_cannot_be_read_is_lost() {
        let (mut merge, mut wire) = merge(Some(Nanos::from_secs(2)));
        let garbled = FleetEvent::Row("A1".into(), vec![1, 2, 3]);
        for event in [garbled.clone(), FleetEvent::Back("A1".into()), garbled, handle_end("A1")] {
            merge.process(&mut wire, event, &mut NoWatcher);
            assert_eq!(merge.ledgers[1].state, LedgerState::Lost);
        }
        merge.process(&mut wire, handle_end("A0"), &mut NoWatcher);
        merge.pass(&mut wire, START, START + Nanos::from_secs(3), &mut NoWatcher);
        assert!(merge.ledgers.iter().all(|ledger| ledger.state == LedgerState::Over));
        assert_eq!(["A0", "A1"].map(|agent| merge.has_abandoned(agent)), [false, true]);
        let account = merge.account("A1").unwrap();
        assert!(account.lost == 10 && account.ending.contains("cannot be read"));
    }
}
