//! The figures of WebStone 2 and of WebBench, computed as in the originals: another form of output
//! for a run, or for the steps of a ramp.

use plan::{Load, Plan};
use record::ramp::RampRecord;
use record::run::{RunHist, RunRecord};

/// Figures that WebStone's webmaster collects from its clients.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Collected {
    pub clients: u32,
    /// Time from GO to the last result; WebStone counts whole seconds.
    pub elapsed_s: f64,
    /// Complete files, each on a separate connection.
    pub connections: u64,
    pub errors: u64,
    /// Bytes of heads and bodies.
    pub bytes: u64,
    /// Over the connections: from connecting to the last byte, and its standard deviation, in seconds.
    pub response_sum_s: f64,
    pub response_stdev_s: f64,
}

/// Figures in the units in which the benchmark prints them. A megabit is 2^20 bits here.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scores {
    pub seconds: u64,
    pub connections_per_s: f64,
    pub errors_per_s: f64,
    pub thruput_mbit: f64,
    /// Mean number of connections being served, by Little's law; the code uses only the whole
    /// seconds of the summed response times.
    pub load_factor: f64,
    pub response_ms: f64,
    pub response_stdev_ms: f64,
    pub error_percent: f64,
    pub client_thruput_mbit: f64,
}

const MEGABIT: f64 = 1_048_576.0;

impl Collected {
    pub fn scores(&self) -> Scores {
        // a run of less than a second would be divided by nothing
        let seconds = (self.elapsed_s as u64).max(1);
        let (t, connections) = (seconds as f64, self.connections as f64);
        let (bits, sum) = (8.0 * self.bytes as f64, self.response_sum_s);
        let over = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
        Scores {
            seconds,
            connections_per_s: connections / t,
            errors_per_s: self.errors as f64 / t,
            thruput_mbit: bits / (t * MEGABIT),
            load_factor: sum.floor() / t,
            response_ms: over(sum * 1_000.0, connections),
            response_stdev_ms: self.response_stdev_s * 1_000.0,
            error_percent: over(100.0 * self.errors as f64, connections),
            client_thruput_mbit: over(bits, sum) / MEGABIT,
        }
    }

    fn new(run: &RunRecord) -> Collected {
        let response = run.hist(RunHist::Succeeded).summary();
        Collected {
            clients: clients(run),
            elapsed_s: run.duration_s,
            connections: run.outcomes.succeeded,
            errors: run.outcomes.bad(),
            bytes: run.bytes.received,
            response_sum_s: response.mean.as_secs_f64() * response.count as f64,
            response_stdev_s: response.stdev.as_secs_f64(),
        }
    }
}

/// Selects the printed figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Benchmark {
    Webstone,
    Webbench,
}

impl Benchmark {
    /// Renders the figures of a run.
    ///
    /// # Errors
    /// Fails for a load that the benchmark does not have: its figures would mean something else.
    pub fn of_run(self, run: &RunRecord) -> Result<String, String> {
        self.admit(run.plan.plan())?;
        let mut text = String::new();
        match self {
            Benchmark::Webstone => webstone(&mut text, &Collected::new(run)),
            Benchmark::Webbench => {
                putln!(text, "{WEBBENCH}");
                webbench(&mut text, run);
            }
        }
        Ok(text)
    }

    /// Renders the figures of a ramp, step by step: WebStone's numbers of clients, WebBench's
    /// mixes.
    ///
    /// # Errors
    /// Fails like [`Benchmark::of_run`].
    pub fn of_ramp(self, ramp: &RampRecord) -> Result<String, String> {
        let mut text = String::new();
        if self == Benchmark::Webbench {
            putln!(text, "{WEBBENCH}");
        }
        for step in &ramp.steps {
            self.admit(step.run.plan.plan())?;
            match self {
                Benchmark::Webstone => {
                    webstone(&mut text, &Collected::new(&step.run));
                    text.push('\n');
                }
                Benchmark::Webbench => webbench(&mut text, &step.run),
            }
        }
        Ok(text)
    }

    fn admit(self, plan: &Plan) -> Result<(), String> {
        let closed = matches!(plan.load, Load::Closed { .. }) && plan.scenarios.is_empty();
        if !closed {
            return Err("its clients wait for their responses: make the run with -c".to_owned());
        }
        if self == Benchmark::Webstone && plan.connection.calls != Some(1) {
            return Err(
                "WebStone has a connection for each file: make the run with --close, or with \
                        --workload webstone-like"
                    .to_owned(),
            );
        }
        Ok(())
    }
}

fn clients(run: &RunRecord) -> u32 {
    if let Load::Closed { users, .. } = run.plan.plan().load { users } else { 0 }
}

fn webstone(text: &mut String, collected: &Collected) {
    let scores = collected.scores();
    putln!(text, "WEBSTONE 2.0 results (as loadstone measured them):");
    putln!(text, "Total number of clients:        {:>14}", collected.clients);
    putln!(text, "Test time:                      {:>14}   seconds", scores.seconds);
    let rows = [
        ("Server connection rate:", scores.connections_per_s, "connections/sec"),
        ("Server error rate:", scores.errors_per_s, "err/sec"),
        ("Server thruput:", scores.thruput_mbit, "Mbit/sec"),
        ("Little's Load Factor:", scores.load_factor, ""),
        ("Average response time:", scores.response_ms, "millisec"),
        ("  its standard deviation:", scores.response_stdev_ms, "millisec"),
        ("Error Level:", scores.error_percent, "%"),
        ("Average client thruput:", scores.client_thruput_mbit, "Mbit/sec"),
    ];
    for (name, value, unit) in rows {
        let line = format!("{name:<32}{value:>14.4}   {unit}");
        putln!(text, "{}", line.trim_end());
    }
    let sum = collected.response_sum_s.floor();
    putln!(text, "Sum of client response times:   {sum:>14}   sec");
    putln!(text, "Total number of pages read:     {:>14}", collected.connections);
}

/// WebBench's two scores, of the window.
const WEBBENCH: &str = "clients   requests per second   throughput (bytes per second)";

fn webbench(text: &mut String, run: &RunRecord) {
    let (clients, requests) = (clients(run), run.goodput_per_s);
    let bytes = run.measured.as_ref().map_or(0, |measured| measured.bytes_in_window);
    let bytes = if run.duration_s > 0.0 { bytes as f64 / run.duration_s } else { 0.0 };
    putln!(text, "{clients:>7}   {requests:>19.3}   {bytes:>29.0}");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// T1 of the reference values: the formulas of WebStone's source, evaluated by hand.
    #[test]
    fn scores_are_computed_as_webstone_computes_them() {
        let collected = Collected {
            clients: 20,
            elapsed_s: 60.9,
            connections: 6_000,
            errors: 12,
            // the mean of the standard list
            bytes: 6_000 * 19_773,
            response_sum_s: 1_199.7,
            response_stdev_s: 0.05,
        };
        let scores = collected.scores();
        assert_eq!(scores.seconds, 60);
        let near = |found: f64, wanted: f64| {
            assert!((found - wanted).abs() < 1e-9 * wanted, "{found} {wanted}");
        };
        near(scores.connections_per_s, 100.0);
        near(scores.errors_per_s, 0.2);
        near(scores.thruput_mbit, 8.0 * 118_638_000.0 / (60.0 * 1_048_576.0));
        // only the whole seconds of the sum
        near(scores.load_factor, 1_199.0 / 60.0);
        near(scores.response_ms, 199.95);
        near(scores.error_percent, 0.2);
        near(scores.client_thruput_mbit, 8.0 * 118_638_000.0 / 1_199.7 / 1_048_576.0);
        let nothing =
            Collected { connections: 0, response_sum_s: 0.0, elapsed_s: 0.2, ..collected };
        assert_eq!((nothing.scores().response_ms, nothing.scores().seconds), (0.0, 1));
    }
}
