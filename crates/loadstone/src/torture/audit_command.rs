//! `loadstone torture audit`: verifies and prints the log.

use crate::exit::{Code, Failure};
use crate::files;
use args::AuditCommand;
use dialogue::governor::Spent;
use serde_json::Value;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use torture::safety::chain;
use torture::safety::chain::ChainLink;
use units::show;
use world::audit::{FILE, head_of};

/// Maximum size of a log in bytes.
const LOG_MAX: u64 = 1 << 30;

pub(super) fn audit(ask: &AuditCommand) -> Result<Code, Failure> {
    match ask {
        AuditCommand::Verify { file } => verify(&log(file.as_ref())?),
        AuditCommand::Show { file, json } => show_log(&log(file.as_ref())?, *json),
    }
}

fn log(file: Option<&PathBuf>) -> Result<PathBuf, Failure> {
    if let Some(file) = file {
        return Ok(file.clone());
    }
    let folder = host::state_dir().ok_or_else(|| {
        Failure::usage("the log has no folder: name the file, or set XDG_STATE_HOME or HOME")
    })?;
    Ok(folder.join(FILE))
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let failed = |why: String| Failure::usage(format!("cannot read {}: {why}", path.display()));
    match fs::metadata(path) {
        Ok(facts) if facts.len() > LOG_MAX => {
            return Err(failed(format!("it is larger than {}", show::bytes(LOG_MAX))));
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(failed("the log does not exist: nothing has been tested yet".to_owned()));
        }
        _ => {}
    }
    fs::read(path).map_err(|error| failed(error.to_string()))
}

fn verify(path: &Path) -> Result<Code, Failure> {
    let head = fs::read_to_string(head_of(path)).ok();
    // a log that was removed while its head exists is a breach, not a missing log
    let text = match (path.exists(), &head) {
        (false, Some(_)) => Vec::new(),
        _ => read(path)?,
    };
    let head = head.as_deref().and_then(ChainLink::parse);
    let (reported, code) = match chain::verify(&text, head.as_ref()) {
        Ok(sound) => {
            let mut reported = format!(
                "{}: {} lines, all unchanged",
                path.display(),
                show::count(sound.last.line)
            );
            if sound.torn > 0 || sound.tail.is_some() {
                let cut = sound.torn + u64::from(sound.tail.is_some());
                reported.push_str(&format!("; {} cut off by a crash", show::count(cut)));
            }
            (reported, Code::Done)
        }
        Err(breach) => {
            (format!("{}, line {}: {}", path.display(), breach.line, breach.why), Code::Missed)
        }
    };
    files::write_stdout(&format!("{reported}\n")).map_err(|error| Failure::not_written(&error))?;
    Ok(code)
}

fn show_log(path: &Path, json: bool) -> Result<Code, Failure> {
    let text = read(path)?;
    let text = String::from_utf8_lossy(&text);
    let mut out = String::new();
    for line in text.lines() {
        match serde_json::from_str::<Value>(line) {
            Ok(value) if json => out.push_str(&format!("{value}\n")),
            Ok(value) => out.push_str(&format!("{}\n", description(&value))),
            // remains of a crash
            Err(_) if json => {}
            Err(_) => out.push_str("  an incomplete line\n"),
        }
    }
    files::write_stdout(&out).map_err(|error| Failure::not_written(&error))?;
    Ok(Code::Done)
}

/// Formats one line of the log for people.
fn description(value: &Value) -> String {
    let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
    let number = |key: &str| value[key].as_u64().unwrap_or_default();
    let at = report::torture::timestamp(value["at_unix_s"].as_f64().unwrap_or_default());
    let message = match text("kind").as_str() {
        "begin" => {
            let addresses: Vec<&str> = value["addresses"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect();
            format!(
                "started: {} ({}, {}), seed {}, uid {}",
                text("target"),
                text("class"),
                addresses.join(" "),
                number("seed"),
                number("uid")
            )
        }
        "proof" => format!("permitted by a proof ({}), {}", text("place"), text("digest")),
        "refused" => format!("refused: {}", text("reason")),
        "case-begin" => format!("{} started", text("case")),
        "case-end" => {
            let (connections, requests) = (number("connections"), number("requests"));
            let spent = Spent { connections, requests, bytes: number("bytes") };
            format!("{} {}: {}", text("case"), text("outcome"), spent.words())
        }
        "visit" => {
            let questions = match number("asked") {
                0 => String::new(),
                many => format!(" ({})", record::words::counted(many, "question")),
            };
            let software = text("software");
            let found = if software.is_empty() { "nothing responded" } else { &software };
            format!("visited {}{questions}: {found}", text("server"))
        }
        "stop" => format!("stopped ({}): {}", text("why"), text("reason")),
        "end" => format!("ended with {}, cases tested: {}", number("exit"), number("cases")),
        other => units::quoted(other),
    };
    // log content may be foreign: keep control characters from the terminal
    let plain: String = message.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("{at}  {}  {plain}", text("run"))
}
