//! `loadstone demo stall`: one server with regular freezes, measured by this program and by the
//! other installed tools.

use crate::child::SiteProcess;
use crate::exit::{Code, Failure};
use crate::files;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use units::{Nanos, show};

/// Options of the site: a response takes 10 ms, and every 2 s the server freezes for half a second.
const SITE: [&str; 4] = ["--delay", "10ms", "--stall", "500ms/2s"];
/// Seconds of each measurement; connections of the other tools; calls per second of this program.
const SECONDS: u32 = 10;
const CONNECTIONS: u32 = 64;
const RATE: u32 = 500;

/// Quantiles of the table's columns, in percent as wrk and ab name them.
const QUANTILES: [&str; 3] = ["50", "90", "99"];

/// Figures of a tool as it prints them: p50, p90, p99.
struct Reported {
    command: String,
    times: [String; 3],
}

/// Measures the same server with each tool in turn, and prints their figures below each other.
pub(super) fn stall() -> Result<Code, Failure> {
    let site = SiteProcess::start(&SITE)?;
    let url = format!("{}/hw", site.url);
    let others = [("wrk", RivalTool::Wrk), ("ab", RivalTool::Ab)];
    let there: Vec<(PathBuf, RivalTool)> =
        others.into_iter().filter_map(|(name, tool)| Some((found(name)?, tool))).collect();
    let seconds = SECONDS * (there.len() as u32 + 1);
    crate::print_message(&format!(
        "a server freezes 500 ms every 2 s; measuring it takes {seconds} s"
    ));
    let mut rows = Vec::new();
    for (program, tool) in &there {
        rows.push(tool.measure(program, &url)?);
    }
    rows.push(ours(&url)?);
    drop(site);
    files::write_stdout(&table(&rows)).map_err(|error| Failure::not_written(&error))?;
    Ok(Code::Done)
}

/// Load tools that keep a fixed number of connections busy.
#[derive(Clone, Copy, Debug)]
enum RivalTool {
    Wrk,
    Ab,
}

impl RivalTool {
    fn options(self) -> Vec<String> {
        let (seconds, connections) = (SECONDS.to_string(), CONNECTIONS.to_string());
        let words = match self {
            RivalTool::Wrk => vec!["-t1", "-c", &connections, "-d", &seconds, "--latency"],
            // without -n it stops after 50,000 requests
            RivalTool::Ab => vec!["-q", "-k", "-c", &connections, "-t", &seconds, "-n", "10000000"],
        };
        words.into_iter().map(str::to_owned).collect()
    }

    fn measure(self, program: &PathBuf, url: &str) -> Result<Reported, Failure> {
        let output = output(Command::new(program).args(self.options()).arg(url))?;
        let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let times = QUANTILES.map(|quantile| self.time(&output, quantile));
        let command = match self {
            RivalTool::Wrk => format!("{name} -c {CONNECTIONS}"),
            RivalTool::Ab => format!("{name} -k -c {CONNECTIONS}"),
        };
        Ok(Reported { command, times })
    }

    /// Returns the time on a quantile's line: `    99%   10.93ms` of wrk, `  99%     11` of ab.
    fn time(self, output: &str, quantile: &str) -> String {
        let line = |line: &str| {
            let (name, time) = line.trim().split_once('%')?;
            (name == quantile).then(|| time.trim().to_owned())
        };
        let time = output.lines().find_map(line).unwrap_or_else(|| "-".to_owned());
        match self {
            RivalTool::Wrk => time,
            RivalTool::Ab => format!("{time}ms"),
        }
    }
}

/// Measures with a process of this program, with the load options that a user would type.
fn ours(url: &str) -> Result<Reported, Failure> {
    let program = host::invocation::program()
        .map_err(|error| Failure::usage(format!("cannot find this program's own file: {error}")))?;
    let (rate, span) = (format!("{RATE}/s"), format!("{SECONDS}s"));
    let words = ["run", url, "--rate", &rate, "-d", &span, "--json", "-", "--store", "none"];
    let json = output(Command::new(program).args(words))?;
    let run: report::RunRecord = serde_json::from_str(&json)
        .map_err(|error| Failure::usage(format!("the result of the run is unreadable: {error}")))?;
    let times = &run.response_time_s;
    let shown = [times.p50, times.p90, times.p99];
    let shown = shown.map(|seconds| show::duration(Nanos::from_secs_f64(seconds)));
    let times = shown.map(|time| time.replace(' ', ""));
    Ok(Reported { command: format!("loadstone run --rate {RATE}/s"), times })
}

fn output(command: &mut Command) -> Result<String, Failure> {
    let name = command.get_program().to_string_lossy().into_owned();
    let done = command.stdin(Stdio::null()).stderr(Stdio::null()).output();
    let done = done.map_err(|error| Failure::usage(format!("cannot start {name}: {error}")))?;
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

/// Finds a program in the search path.
fn found(name: &str) -> Option<PathBuf> {
    let path = host::invocation::variable("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

fn table(rows: &[Reported]) -> String {
    let mut text =
        "Each response takes 10 ms, and the server freezes for 500 ms every 2 s.\n\n".to_owned();
    let mut line = |name: &str, [p50, p90, p99]: [&str; 3]| {
        text += &format!("  {name:<28} {p50:>9} {p90:>9} {p99:>9}\n");
    };
    line("", ["p50", "p90", "p99"]);
    for row in rows {
        let [p50, p90, p99] = &row.times;
        line(&row.command, [p50, p90, p99]);
    }
    let with = |name: &str| rows.iter().any(|row| row.command.starts_with(name));
    text.push('\n');
    if with("ab ") {
        text += &format!(
            "ab sends nothing during a freeze: it counts {CONNECTIONS} slow calls per freeze.\n"
        );
    }
    if with("wrk ") {
        text += "wrk waits as well, and adds an estimate of the calls that it did not send.\n";
    }
    text += "Loadstone sends every call, and counts it from the instant it was due.\n";
    if rows.len() == 1 {
        text += "Install ab (apache2-utils) or wrk to see what they report for the same server.\n";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRK: &str = "  Latency Distribution\n     50%   10.20ms\n     75%   10.31ms\n     90%   \
                       10.48ms\n     99%   11.02ms\n  4821 requests in 10.01s\n";
    const AB: &str = "Percentage of the requests served within a certain time (ms)\n  50%     10\n  \
                      90%     11\n  99%     12\n 100%    511 (longest request)\n";

    #[test]
    fn the_printed_figures_of_other_tools_are_read() {
        assert_eq!(
            QUANTILES.map(|q| RivalTool::Wrk.time(WRK, q)),
            ["10.20ms", "10.48ms", "11.02ms"]
        );
        assert_eq!(QUANTILES.map(|q| RivalTool::Ab.time(AB, q)), ["10ms", "11ms", "12ms"]);
        assert_eq!(RivalTool::Wrk.time("Socket errors", "99"), "-");
    }

    #[test]
    fn a_table_of_one_tool_suggests_another() {
        let row = |command: &str| Reported {
            command: command.to_owned(),
            times: ["10.1ms", "270ms", "487ms"].map(str::to_owned),
        };
        let alone = table(&[row("loadstone run --rate 500/s")]);
        assert!(alone.contains("Install ab"), "{alone}");
        let both = table(&[row("ab -k -c 64"), row("loadstone run --rate 500/s")]);
        assert!(both.contains("counts 64 slow calls") && !both.contains("Install"), "{both}");
        assert!(both.lines().all(|line| line.chars().count() <= 80), "{both}");
    }
}
