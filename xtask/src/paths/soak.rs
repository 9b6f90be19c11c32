//! Minutes of real packets over a path with all impairments at once: the forwarder's memory and
//! descriptors at the end equal those of the beginning.

use super::machine;
use anyhow::{Context, bail, ensure};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PATH: &str = "rtt=40ms, jitter=10ms, order=free, loss=1%, burst=3, duplicate=1%, corrupt=0.5%, \
                    reorder=2%:5, rate=40M, drop=codel, outage=20s:500ms";
/// Warm-up share of the soak, in which pools fill up.
const SETTLING: f64 = 0.2;
/// Tolerated variation of resident memory.
const SLACK_KIB: u64 = 1_024;

/// Resources of the forwarder's process.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    resident_kib: u64,
    descriptors: usize,
}

pub(super) fn section(binary: &Path, minutes: u32) -> anyhow::Result<String> {
    let span = Duration::from_secs(60 * u64::from(minutes.max(1)));
    let own = binary.display().to_string();
    let server = format!("exec {own} site --listen 127.0.0.1:80");
    let seconds = format!("{}s", span.as_secs());
    let mut netpath = Command::new(binary);
    netpath.args(["netpath", "--path", PATH, "--server", &server, "--", &own]);
    netpath.args([
        "run",
        "http://127.0.0.1/bytes/20000",
        "-c",
        "100",
        "--calls",
        "20",
        "-d",
        &seconds,
    ]);
    // to a file: an unread pipe would block it when full
    let result = tempfile::NamedTempFile::new().context("a file for the result")?;
    netpath.args(["--timeout", "20s", "--store", "none", "--json"]).arg(result.path());
    netpath.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let child = netpath.spawn().context("netpath cannot be started")?;
    let (rows, child) = watch(child, span)?;
    let ran = child.wait_with_output()?;
    let errors = String::from_utf8_lossy(&ran.stderr).into_owned();
    let json = std::fs::read(result.path()).context("reading the result")?;
    let document: serde_json::Value = serde_json::from_slice(&json)
        .with_context(|| format!("netpath ended with {}: {errors}", ran.status))?;
    let from = (rows.len() as f64 * SETTLING) as usize;
    let Some(((first, last), _)) = halves(&rows[from..]).zip(rows.last()) else {
        bail!("too few readings of the process: {}", rows.len());
    };
    ensure!(
        last.resident_kib <= first.resident_kib + SLACK_KIB
            && last.descriptors <= first.descriptors,
        "it grows: {first:?} in the first half, {last:?} in the second"
    );
    let packets = errors.lines().find(|line| line.contains(" packets in ")).unwrap_or_default();
    let late = errors.lines().find(|line| line.contains("delivered late")).unwrap_or_default();
    let strip = |line: &str| line.trim_start_matches("loadstone:").trim().to_owned();
    Ok(format!(
        "{minutes} minutes over `{PATH}`: 100 users, 20 calls a connection, 20,000 bytes a response. {}\n\n\
         - {}\n- {}\n- {} calls succeeded, {} failed, timed out or were dropped\n\
         - the forwarder's process: {} KiB and {} descriptors at most in the first half of it (after the \
         first fifth, in which pools fill up), {} KiB and {} in the second\n",
        machine(),
        strip(packets),
        strip(late),
        document["outcomes"]["succeeded"],
        document["outcomes"]["due"].as_u64().unwrap_or(0)
            - document["outcomes"]["succeeded"].as_u64().unwrap_or(0),
        first.resident_kib,
        first.descriptors,
        last.resident_kib,
        last.descriptors
    ))
}

/// Samples every second until it ends, or a minute after it should have.
fn watch(mut child: Child, span: Duration) -> anyhow::Result<(Vec<Held>, Child)> {
    let start = Instant::now();
    let mut rows = Vec::new();
    while child.try_wait()?.is_none() {
        if start.elapsed() > span + Duration::from_secs(60) {
            child.kill()?;
            bail!("it has not ended one minute after its duration");
        }
        rows.extend(look(child.id()));
        std::thread::sleep(Duration::from_secs(1));
    }
    Ok((rows, child))
}

/// Returns a sample; `None` if it has just ended.
fn look(process: u32) -> Option<Held> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let resident_kib = resident.trim().strip_suffix("kB")?.trim().parse().ok()?;
    let descriptors = std::fs::read_dir(format!("/proc/{process}/fd")).ok()?.count();
    Some(Held { resident_kib, descriptors })
}

/// Returns the maximum of each resource in each half.
fn halves(rows: &[Held]) -> Option<(Held, Held)> {
    let most = |rows: &[Held]| Held {
        resident_kib: rows.iter().map(|row| row.resident_kib).max().unwrap_or(0),
        descriptors: rows.iter().map(|row| row.descriptors).max().unwrap_or(0),
    };
    let (first, second) = rows.split_at(rows.len() / 2);
    (!first.is_empty()).then(|| (most(first), most(second)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_half_has_its_own_most() {
        let row = |resident_kib, descriptors| Held { resident_kib, descriptors };
        let (first, second) = halves(&[row(5, 9), row(7, 8), row(6, 7), row(6, 6)]).unwrap();
        assert_eq!((first.resident_kib, first.descriptors), (7, 9));
        assert_eq!((second.resident_kib, second.descriptors), (6, 7));
        assert!(halves(&[]).is_none());
    }

    #[test]
    fn this_process_can_be_looked_at() {
        let held = look(std::process::id()).unwrap();
        assert!(held.resident_kib > 0 && held.descriptors > 2, "{held:?}");
    }
}
