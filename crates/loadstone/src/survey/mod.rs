//! `loadstone survey`: which software answers, by a few requests to each server of a list.

mod list;
mod names;
mod permit;
mod web;

use crate::exit::{Code, Failure};
use crate::files;
use args::{Disk, Sink, SurveyArgs};
use permit::Permit;
use plan::FileSource;
use record::survey::{SurveyKind, SurveyRecord, SurveyedServer};

pub(crate) fn survey(args: &SurveyArgs) -> Result<Code, Failure> {
    args.check()?;
    let bytes = Disk.read(&args.list).map_err(Failure::usage)?;
    let text = String::from_utf8(bytes)
        .map_err(|_| Failure::usage(format!("{}: it is not UTF-8 text", args.list)))?;
    let entries = list::read(&text, args.dns)
        .map_err(|why| Failure::usage(format!("{}: {why}", args.list)))?;
    let csv = args.csv.as_ref().and_then(Sink::file);
    files::check_results(args.json.as_ref(), args.html.iter().chain(csv))?;
    let listed = list::resolved(&entries);
    let mut permit = Permit::new(args, &listed)?;
    let started_unix_s = crate::wall_clock::unix_seconds();
    let start = net::reactor::monotonic();
    let mut servers: Vec<SurveyedServer> = match args.dns {
        true => names::visit(args, &listed, &permit),
        false => web::visit(args, &listed, &permit)?,
    };
    servers.extend(listed.lost.iter().map(|lost| SurveyedServer::lost(&lost.named, &lost.why)));
    let kind = if args.dns { SurveyKind::NameServers } else { SurveyKind::WebServers };
    let record = SurveyRecord::new(kind, servers).with_start(started_unix_s).with_duration(
        (net::reactor::monotonic() - start).as_secs_f64(),
        crate::signals::received_signal() > 0,
    );
    let code = exit_code(&record);
    permit.end(&record, code as u8);
    write(args, &record)?;
    Ok(code)
}

fn exit_code(record: &SurveyRecord) -> Code {
    match record {
        SurveyRecord { interrupted: true, .. } => Code::Interrupted,
        _ if record.servers.iter().all(|server| !server.reached) => Code::NoConnection,
        _ => Code::Done,
    }
}

/// Writes all results; the first failure is returned.
fn write(args: &SurveyArgs, record: &SurveyRecord) -> Result<(), Failure> {
    let mut done = Ok(());
    if let Some(path) = &args.html {
        done = done.and(files::write_whole(path, &report::survey::html(record)));
    }
    if let Some(sink) = &args.csv {
        done = done.and(files::write_to(sink, &report::survey::csv(record)));
    }
    if let Some(sink) = &args.json {
        done = done.and(files::write_to(sink, &report::survey::json(record)));
    }
    let taken = [&args.json, &args.csv].into_iter().any(|sink| matches!(sink, Some(Sink::Stdout)));
    if !taken {
        let style = crate::run::output::style(args.quiet, false, true);
        done = done.and(files::write_stdout(&report::survey::text(record, style)));
    }
    done.map_err(|error| Failure::not_written(&error))
}

/// Returns the identification that we send, for the servers' logs.
fn agent() -> String {
    const PAGE: &str = "loadstone/docs/guide/torture-safety.md";
    format!("loadstone-survey/{} (+{PAGE})", env!("CARGO_PKG_VERSION"))
}
