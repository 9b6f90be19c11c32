//! `loadstone record`: a recording proxy, and a plan made from the recording.

use crate::exit::{Code, Failure};
use crate::files;
use crate::workload_command::{dry_run, list_omitted};
use args::{Disk, RecordArgs};
use record::words::counted;
use recorder::{LocalAuthority, RecordedExchange, RecorderConfig, RecordingProxy, to_har};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Poll interval for signals and for the number of requests.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

pub(crate) fn record(args: &RecordArgs) -> Result<Code, Failure> {
    args.check()?;
    files::check_results(Some(&args.output), [&args.har])?;
    let settings = net::tls::Settings { insecure: args.insecure, ..net::tls::Settings::default() };
    let client =
        net::tls::Client::new(&settings).map_err(|error| Failure::usage(error.to_string()))?;
    let config = RecorderConfig {
        listen: args.listen,
        upstream: args.upstream.clone(),
        authority: authority(args.ca.as_deref()).map_err(Failure::usage)?,
        tls: client.config(),
    };
    let recorder = RecordingProxy::start(config).map_err(Failure::usage)?;
    if !args.quiet {
        crate::print_message(&opening(args, &recorder));
    }
    let most = args.requests.unwrap_or(usize::MAX);
    while recorder.count() < most && crate::signals::pause(POLL_INTERVAL) {}
    // the signal ended the recording; the files are still written
    crate::signals::forget();
    let (exchanges, troubles) = recorder.stop();
    if !args.quiet {
        for trouble in &troubles {
            crate::print_message(trouble);
        }
    }
    finish(args, &exchanges)
}

fn opening(args: &RecordArgs, recorder: &RecordingProxy) -> String {
    let address = recorder.address();
    let certificate = format!("http://{address}/.loadstone/ca.pem");
    match &args.upstream {
        Some(upstream) => format!(
            "recording http://{address}/, also https://, in front of {upstream}; Ctrl-C ends it\n\
             certificate for https://: {certificate}"
        ),
        None => format!(
            "recording as the HTTP proxy {address}; Ctrl-C ends it\n\
             for https:// sites the browser must trust {certificate}; its key can impersonate any \
             site to that browser, so remove the certificate after the recording"
        ),
    }
}

/// Writes the recording and its plan.
fn finish(args: &RecordArgs, exchanges: &[RecordedExchange]) -> Result<Code, Failure> {
    if exchanges.is_empty() {
        let text = "nothing was recorded; the recorder received no request".to_owned();
        return Err(Failure { code: Code::Missed, text });
    }
    let har = to_har(exchanges, env!("CARGO_PKG_VERSION"));
    files::write_whole(&args.har, &har).map_err(|error| Failure::not_written(&error))?;
    let imported = import::import_visit(&har, args.insecure).map_err(|error| {
        Failure::usage(format!("{}: cannot make a plan from it: {}", args.har.display(), error.0))
    })?;
    files::write_to(&args.output, &imported.toml).map_err(|error| Failure::not_written(&error))?;
    if !args.quiet {
        let name = match &args.output {
            args::Sink::File(path) => path.display().to_string(),
            args::Sink::Stdout => "standard output".to_owned(),
        };
        let mut text = format!(
            "{} in {}, {} in {name}; both contain the credentials that were sent",
            counted(exchanges.len() as u64, "request"),
            args.har.display(),
            counted(imported.steps as u64, "step"),
        );
        list_omitted(&mut text, &imported.left_out);
        crate::print_message(&text);
    }
    if !args.replay_check {
        return Ok(Code::Done);
    }
    let plan = plan::from_toml(&imported.toml, &Disk).map_err(|error| {
        Failure::usage(format!("the plan cannot be read ({error}); please report this recording"))
    })?;
    dry_run(&plan, &args.har.to_string_lossy())
}

/// Reads the certificate authority from a file, with its key next to it; creates missing files.
fn authority(file: Option<&Path>) -> Result<LocalAuthority, String> {
    let Some(path) = file else { return LocalAuthority::generate() };
    let key_path = PathBuf::from(format!("{}.key", path.display()));
    if path.exists() {
        let read = |path: &Path| {
            std::fs::read_to_string(path)
                .map_err(|error| format!("--ca: cannot read {}: {error}", path.display()))
        };
        return LocalAuthority::from_pem(&read(path)?, &read(&key_path)?)
            .map_err(|why| format!("--ca {}: {why}", path.display()));
    }
    let made = LocalAuthority::generate()?;
    let cannot = |path: &Path, error: std::io::Error| {
        format!("--ca: cannot write {}: {error}", path.display())
    };
    let key = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&key_path);
    let written =
        key.and_then(|mut file| std::io::Write::write_all(&mut file, made.key().as_bytes()));
    written.map_err(|error| cannot(&key_path, error))?;
    std::fs::write(path, made.certificate()).map_err(|error| cannot(path, error))?;
    Ok(made)
}
