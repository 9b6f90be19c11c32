//! `loadstone site`: the reference server in the foreground, or the norm site.

use crate::exit::{Code, Failure};
use args::{NormTask, SiteTask};
use faulty::Defect;
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

/// Poll interval for signals.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

pub(crate) fn site(task: SiteTask) -> Result<Code, Failure> {
    match task {
        SiteTask::Plain(config) => serve(*config),
        SiteTask::Norm(task) => serve_norm(&task),
        SiteTask::Init(folder) => init(&folder),
        SiteTask::Switches => switches(),
    }
}

/// Serves until a signal or until the site ends by its own option.
fn serve(mut config: site::Config) -> Result<Code, Failure> {
    // this program makes CGI pages; if it cannot be found they are refused
    config.cgi = host::invocation::program().ok();
    // its connections count against the soft limit: raise it to the maximum
    host::raise_descriptors(host::limits::descriptors().hard).ok();
    let site = site::Site::start(config).map_err(|error| Failure::usage(error.to_string()))?;
    crate::files::write_stdout(&format!("{}\n", site.url()))
        .map_err(|error| Failure::not_written(&error))?;
    while crate::signals::received_signal() == 0 {
        if site.wait(POLL_INTERVAL) {
            break;
        }
    }
    let lateness = site.lateness();
    let served = site.stop().map_err(|error| Failure::usage(error.to_string()))?;
    crate::print_message(&format!(
        "served {} requests on {} connections",
        units::show::count(served.requests),
        units::show::count(served.connections)
    ));
    if lateness.responses > 0 {
        crate::print_message(&format!(
            "responses were late by p50 {}, p99 {}, max {}",
            units::show::duration(lateness.p50),
            units::show::duration(lateness.p99),
            units::show::duration(lateness.max)
        ));
    }
    Ok(Code::Done)
}

/// Serves the norm site until a signal.
fn serve_norm(task: &NormTask) -> Result<Code, Failure> {
    host::raise_descriptors(host::limits::descriptors().hard).ok();
    if !task.cpus.is_empty() {
        // its threads inherit it
        host::cpu::bind_thread(&task.cpus).map_err(|error| Failure::usage(error.to_string()))?;
    }
    let server = norm::NormServer::start(&task.settings);
    let server = server.map_err(|error| Failure::usage(error.to_string()))?;
    print(&format!("{}\n", server.url()))?;
    while crate::signals::received_signal() == 0 {
        server.wait(POLL_INTERVAL);
    }
    let served = server.stop();
    crate::print_message(&format!(
        "served {} requests on {} connections, refused {} beyond MaxClients",
        units::show::count(served.requests),
        units::show::count(served.connections),
        units::show::count(served.refused)
    ));
    if served.log_lines_lost > 0 {
        crate::print_message(&format!(
            "{} lines could not be written to the log",
            served.log_lines_lost
        ));
        return Ok(Code::NotWritten);
    }
    Ok(Code::Done)
}

/// Prints the switches of the firing range.
fn switches() -> Result<Code, Failure> {
    let mut text = String::new();
    for defect in Defect::ALL {
        writeln!(text, "{:<20} {}", defect.id(), defect.text())
            .expect("writing to a String cannot fail");
    }
    print(&text)?;
    Ok(Code::Done)
}

/// Writes the norm site's tree and prints the files.
fn init(folder: &Path) -> Result<Code, Failure> {
    let written = norm::tree::write(folder).map_err(|error| Failure::usage(error.to_string()))?;
    let mut text = String::new();
    for path in &written {
        writeln!(text, "{}", path.display()).expect("writing to a String cannot fail");
    }
    writeln!(text, "Serve it: loadstone site --norm {}", folder.display())
        .expect("writing to a String cannot fail");
    print(&text)?;
    Ok(Code::Done)
}

fn print(text: &str) -> Result<(), Failure> {
    crate::files::write_stdout(text).map_err(|error| Failure::not_written(&error))
}
