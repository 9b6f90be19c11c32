//! `loadstone calibrate`: how fast and how punctual is this client machine?

use crate::child::SiteProcess;
use crate::exit::{Code, Failure};
use args::{CalibrateArgs, Sink};
use plan::{Arrivals, Load, Plan, Think};
use report::RunReport;
use sample::CallRecord;
use session::calibration::{Calibration, Punctuality, SCHEMA};
use session::{Env, Observers, RunLoad, Session, Watcher};
use stats::{CauseId, Second, Snapshot, Verdict};
use std::sync::Arc;
use units::{Nanos, Rate, show};

/// Rates at which punctuality is measured.
const RATES: [f64; 4] = [1_000.0, 5_000.0, 20_000.0, 50_000.0];

pub(crate) fn calibrate(wanted: &CalibrateArgs) -> Result<Code, Failure> {
    // earlier calibrations do not affect this measurement
    let env = Arc::new(Env::without_calibration());
    let environment = &env.environment;
    let site = SiteProcess::start(&["--null"])?;
    let run = |load: Load, calls: Option<u32>| -> Result<RunReport, Failure> {
        crate::print_message(&format!("calibrating: {}", describe(&load, calls)));
        let measured = one(&site.url, load, calls, wanted.step(), &env)?;
        if crate::signals::received_signal() > 0 {
            return Err(Failure {
                code: Code::Interrupted,
                text: "interrupted; nothing stored".into(),
            });
        }
        Ok(measured)
    };
    let users = |users| Load::Closed { users, think: Think::None, session: None };
    let busy = run(users(64), None)?;
    let alone = run(users(1), None)?;
    let opening = run(users(64), Some(1))?;
    let mut paced = Vec::new();
    for rate in RATES {
        paced.push(run(open(rate), None)?);
    }
    let runs = [&busy, &alone, &opening].into_iter().chain(&paced);
    let doubts = unreliable_reasons(&runs.map(|run| &run.verdict).collect::<Vec<_>>());
    let punctuality =
        RATES.iter().zip(&paced).map(|(rate, run)| measure_punctuality(*rate, run)).collect();
    let per_s = |run: &RunReport| {
        run.measurement.total.in_window as f64 / run.measurement.window.as_secs_f64()
    };
    let calls = busy.measurement.total.counts.done().max(1) as f64;
    let found = Calibration {
        schema: SCHEMA.into(),
        host: environment.host.clone(),
        kernel: environment.kernel.clone(),
        cpu_model: environment.cpu_model.clone(),
        version: environment.version.clone(),
        taken_unix_s: crate::wall_clock::unix_seconds(),
        calls_per_s: per_s(&busy),
        cpu_per_call_s: (busy.driver.cpu_user_s + busy.driver.cpu_system_s) / calls,
        connections_per_s: per_s(&opening),
        call_p50_s: alone.measurement.total.service.quantile(0.5).as_secs_f64(),
        punctuality,
        doubts,
    };
    drop(site);
    keep(&found, wanted)?;
    Ok(if found.doubts.is_empty() { Code::Done } else { Code::Invalid })
}

/// Verdict causes that mark a calibration as unreliable. Limits of this machine are not among them:
/// a calibration measures those.
const DOUBTFUL: [CauseId; 5] = [
    CauseId::ForeignCpu,
    CauseId::Ports,
    CauseId::Descriptors,
    CauseId::AllFailed,
    CauseId::Interrupted,
];

/// Returns why the measurements are unreliable: each reason once, with its worst figure.
fn unreliable_reasons(verdicts: &[&Verdict]) -> Vec<String> {
    let causes = || verdicts.iter().flat_map(|verdict| &verdict.causes);
    let worst = |id: &CauseId| {
        let of = || causes().filter(|cause| cause.id == *id);
        let worst = of().max_by(|a, b| a.figure.total_cmp(&b.figure))?;
        let all = verdicts.len();
        Some(format!("in {} of {all} measurements, at worst: {}", of().count(), worst.text))
    };
    DOUBTFUL.iter().filter_map(worst).collect()
}

fn keep(found: &Calibration, wanted: &CalibrateArgs) -> Result<(), Failure> {
    let json = serde_json::to_string_pretty(found)
        .map_err(|error| Failure::usage(error.to_string()))?
        + "\n";
    let not_written = |error: anyhow::Error| Failure::not_written(&error);
    let mut kept = String::new();
    let believed = found.doubts.is_empty();
    if !believed {
        let why = found.doubts.join("; ");
        kept = format!("Unreliable: {why}\n");
        if !wanted.no_save {
            kept += "not stored: repeat it on an idle machine\n";
        }
    }
    match Calibration::path().filter(|_| !wanted.no_save && believed) {
        Some(path) => {
            host::state::store_atomic(&path, json.as_bytes())
                .map_err(|error| not_written(error.into()))?;
            kept = format!("stored in {} for the verdicts of later runs\n", path.display());
        }
        None if !wanted.no_save && believed => {
            kept = "not stored: there is no home directory\n".into()
        }
        None => {}
    }
    if let Some(sink) = &wanted.json {
        crate::files::write_to(sink, &json).map_err(not_written)?;
    }
    if wanted.json != Some(Sink::Stdout) {
        crate::files::write_stdout(&(text(found) + &kept)).map_err(not_written)?;
    }
    Ok(())
}

/// Runs one measurement with one worker.
fn one(
    url: &str,
    load: Load,
    calls: Option<u32>,
    span: Nanos,
    env: &Arc<Env>,
) -> Result<RunReport, Failure> {
    let url = url::Url::parse(&format!("{url}/"));
    let mut plan = Plan::for_url(url.map_err(|error| Failure::usage(error.to_string()))?);
    plan.load = load;
    plan.connection.calls = calls;
    // thousands of short connections: leave none of their ports in TIME_WAIT
    plan.connection.reset_on_close = calls.is_some();
    plan.stop.duration = Some(span);
    plan.stop.warm_up = Nanos::from_millis(300);
    plan.driver.threads = Some(1);
    let session = Session::open(&plan, "", env)?;
    let mut watch = |_: &engine::Setup| -> Box<dyn Watcher> { Box::new(Silent) };
    let run = session.measure(&RunLoad::Repeat(0), Observers::new(&mut watch));
    run.map_err(Failure::from_run)
}

fn open(rate: f64) -> Load {
    let arrivals = Arrivals::constant(Rate(rate));
    Load::Open { arrivals, session: None, connections_max: None, queue_max: None }
}

fn measure_punctuality(rate: f64, run: &RunReport) -> Punctuality {
    let total = &run.measurement.total;
    let lag = total.lag.summary();
    Punctuality {
        rate_per_s: rate,
        offered_per_s: stats::offered(total) as f64 / run.measurement.window.as_secs_f64(),
        lag_p50_s: lag.p50.as_secs_f64(),
        lag_p99_s: lag.p99.as_secs_f64(),
        lag_max_s: lag.max.as_secs_f64(),
    }
}

fn describe(load: &Load, calls: Option<u32>) -> String {
    match (load, calls) {
        (Load::Closed { users, .. }, None) => {
            format!("{} on open connections", record::words::counted(u64::from(*users), "user"))
        }
        (Load::Closed { users, .. }, Some(_)) => {
            format!("{}, a connection per call", record::words::counted(u64::from(*users), "user"))
        }
        (Load::Open { arrivals, .. }, _) => {
            format!("punctuality at {}", show::rate(arrivals.from.0))
        }
    }
}

fn text(found: &Calibration) -> String {
    let span = |seconds: f64| show::duration(Nanos::from_secs_f64(seconds));
    let mut out = format!(
        "this machine as a client, one worker against the built-in null server\n\n\
         calls on open connections   {:>12}   {} of client CPU each\n\
         a connection per call       {:>12}\n\
         one call, alone             {:>12}   client, loopback and null server together\n\n\
         rate asked      offered     late: p50       p99       max\n",
        show::rate(found.calls_per_s),
        span(found.cpu_per_call_s),
        show::rate(found.connections_per_s),
        span(found.call_p50_s),
    );
    for row in &found.punctuality {
        out.push_str(&format!(
            "{:>10} {:>12} {:>13} {:>9} {:>9}\n",
            show::rate(row.rate_per_s),
            show::rate(row.offered_per_s),
            span(row.lag_p50_s),
            span(row.lag_p99_s),
            span(row.lag_max_s),
        ));
    }
    out.push('\n');
    out
}

/// Watcher that shows nothing.
struct Silent;

impl Watcher for Silent {
    fn second(&mut self, _: &Second, _: &Snapshot) {}
    fn calls(&mut self, _: &[CallRecord]) -> anyhow::Result<()> {
        Ok(())
    }
    fn end(&mut self) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use stats::{Cause, State};

    #[test]
    fn a_disturbed_machine_is_doubted_and_its_own_limits_are_not() {
        let verdict = |causes: &[(CauseId, f64)]| Verdict {
            state: State::Degraded,
            causes: causes
                .iter()
                .map(|&(id, figure)| Cause {
                    id,
                    figure,
                    text: format!("{id} {figure}"),
                    advice: String::new(),
                })
                .collect(),
        };
        let fine =
            verdict(&[(CauseId::DriverCpu, 1.0), (CauseId::NotOffered, 0.7), (CauseId::Slip, 0.5)]);
        assert_eq!(unreliable_reasons(&[&fine, &fine]), [""; 0]);
        let busy = verdict(&[(CauseId::DriverCpu, 1.0), (CauseId::ForeignCpu, 0.2)]);
        let busier = verdict(&[(CauseId::ForeignCpu, 0.9)]);
        let worst = "in 2 of 3 measurements, at worst: foreign-cpu 0.9";
        assert_eq!(unreliable_reasons(&[&busy, &busier, &fine]), [worst]);
    }
}
