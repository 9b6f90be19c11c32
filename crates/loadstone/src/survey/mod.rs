//! `loadstone survey`: which software answers, by a few requests to each server of a list.

mod list;
mod names;
mod permit;
mod web;

use crate::args::{Disk, Sink, SurveyArgs};
use crate::exit::{Code, Failure};
use crate::files;
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
    files::check_results(args.json.as_ref(), &args.html)?;
    let listed = list::resolved(&entries);
    let mut permit = Permit::new(args, &listed)?;
    let started_unix_s = crate::wall_clock::unix_seconds();
    let start = reactor::monotonic();
    let mut servers: Vec<SurveyedServer> = match args.dns {
        true => names::visit(args, &listed, &permit),
        false => web::visit(args, &listed, &permit)?,
    };
    servers.extend(listed.lost.iter().map(|lost| SurveyedServer::lost(&lost.named, &lost.why)));
    let kind = if args.dns { SurveyKind::NameServers } else { SurveyKind::WebServers };
    let record = SurveyRecord::of(kind, servers)
        .begun(started_unix_s)
        .took((reactor::monotonic() - start).as_secs_f64(), crate::signals::caught() > 0);
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

fn write(args: &SurveyArgs, record: &SurveyRecord) -> Result<(), Failure> {
    let unwritten = |error: anyhow::Error| Failure::not_written(&error);
    if let Some(path) = &args.html {
        files::write_whole(path, &report::survey::html(record)).map_err(unwritten)?;
    }
    if let Some(sink) = &args.csv {
        files::write_to(sink, &report::survey::csv(record)).map_err(unwritten)?;
    }
    if let Some(sink) = &args.json {
        files::write_to(sink, &report::survey::json(record)).map_err(unwritten)?;
    }
    let taken = [&args.json, &args.csv].into_iter().any(|sink| matches!(sink, Some(Sink::Stdout)));
    if taken {
        return Ok(());
    }
    let style = crate::run::output::style(args.quiet, false, true);
    files::write_stdout(&report::survey::text(record, style)).map_err(unwritten)
}

/// Who we are, in words that a log keeps.
fn agent() -> String {
    const PAGE: &str = "loadstone/docs/guide/survey.md";
    format!("loadstone-survey/{} (+{PAGE})", env!("CARGO_PKG_VERSION"))
}
