//! Publishes a run's figures to Prometheus and OTLP.

use crate::exit::Failure;
use args::Outputs;
use engine::{Intention, Setup};
use live::metrics::{Board, Collector, Endpoint, Pusher, Reading, RunLabels};
use sample::{AgentNow, CallRecord};
use session::Watcher;
use stats::{Second, Snapshot};
use std::cell::RefCell;
use std::rc::Rc;
use units::{Nanos, show};

/// Metrics endpoint and exporters of a command, shared by all of its runs.
pub(crate) struct Meters {
    board: Board,
    pusher: Option<Rc<RefCell<Pusher>>>,
    /// Served until this is dropped.
    _endpoint: Option<Endpoint>,
    collector: String,
}

impl Meters {
    /// Returns `None` if neither `--metrics` nor `--otlp` is given.
    ///
    /// # Errors
    /// Fails if the address cannot be used.
    pub(crate) fn open(outputs: &Outputs) -> Result<Option<Meters>, Failure> {
        if outputs.metrics.is_none() && outputs.otlp.is_none() {
            return Ok(None);
        }
        let refused = |error: anyhow::Error| Failure::usage(format!("{error:#}"));
        let board = Board::default();
        let endpoint = outputs.metrics.map(|at| Endpoint::start(at, board.clone()));
        let endpoint = endpoint.transpose().map_err(refused)?;
        if let Some(endpoint) = &endpoint {
            crate::print_message(&format!("metrics at {}", endpoint.url()));
        }
        let pusher = outputs.otlp.clone().map(pusher).transpose().map_err(refused)?;
        Ok(Some(Meters {
            board,
            pusher: pusher.map(|pusher| Rc::new(RefCell::new(pusher))),
            _endpoint: endpoint,
            collector: outputs.otlp.as_ref().map_or_else(String::new, |to| to.url().to_string()),
        }))
    }

    /// Returns a watcher that publishes a run of the target `name`: the repeat or step with this
    /// number, from 1.
    pub(crate) fn watch(&self, setup: &Setup, name: &str, number: u32) -> Metered {
        let run = RunLabels {
            name: name.to_owned(),
            load: report::load_in_words(&setup.plan),
            version: env!("CARGO_PKG_VERSION").into(),
            repeat: number,
            started_unix_s: crate::wall_clock::unix_seconds(),
        };
        Metered {
            board: self.board.clone(),
            pusher: self.pusher.clone(),
            run,
            intention: Intention::new(setup),
            measure_from: setup.measure_from(),
            measure_until: setup.measure_until(),
            agents: Vec::new(),
        }
    }

    /// Sends the remaining data, and reports failed pushes.
    pub(crate) fn close(self) {
        let pusher = self.pusher.and_then(Rc::into_inner).map(RefCell::into_inner);
        let Some(pushed) = pusher.map(Pusher::end) else { return };
        let lost = pushed.failed + pushed.skipped;
        if lost > 0 {
            let all = show::count(pushed.taken + lost);
            let trouble = pushed.trouble.map_or_else(
                || "the collector was too slow for the interval".to_owned(),
                |trouble| format!("the last time: {trouble}"),
            );
            let lost = show::count(lost);
            crate::print_message(&format!(
                "{lost} of {all} pushes to {} failed; {trouble}",
                self.collector
            ));
        }
    }
}

/// Creates the exporter. It verifies the collector against the system's certificates, whatever
/// certificates the run trusts.
fn pusher(to: Collector) -> anyhow::Result<Pusher> {
    let tls =
        to.secure().then(|| net::tls::Client::new(&net::tls::Settings::default())).transpose()?;
    Pusher::start(to, tls.map(|client| client.config()))
}

/// Watcher that publishes one run.
pub(crate) struct Metered {
    board: Board,
    pusher: Option<Rc<RefCell<Pusher>>>,
    run: RunLabels,
    intention: Option<Intention>,
    measure_from: Nanos,
    measure_until: Nanos,
    agents: Vec<AgentNow>,
}

impl Watcher for Metered {
    fn second(&mut self, second: &Second, total: &Snapshot) {
        let passed = Nanos::from_secs_f64((second.at_s + second.span_s).max(0.0));
        let now = (self.measure_from + passed).min(self.measure_until);
        let intended = self.intention.as_ref().map(|wanted| wanted.until(now).0);
        let reading = Reading::new(&self.run, second, total, intended).with_agents(&self.agents);
        if let Some(pusher) = &self.pusher {
            pusher.borrow_mut().push(reading.clone());
        }
        self.board.pin(reading);
    }

    fn agents(&mut self, agents: &[AgentNow]) {
        self.agents = agents.to_vec();
    }

    fn calls(&mut self, _: &[CallRecord]) -> anyhow::Result<()> {
        Ok(())
    }

    fn end(&mut self) {}
}
