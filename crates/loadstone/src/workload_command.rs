//! `loadstone workload`: creates files for a server, and lists of URLs.

mod access_log;
mod anonymise;
mod cgi;
mod describe;
mod files_on_disk;
mod foreign;
mod recording;
mod sequence;
mod token_trace;
mod verify;

pub(crate) use foreign::{dry_run, list_omitted};

use crate::caller::Caller;
use crate::exit::{Code, Failure};
use crate::files;
use args::{CrawlArgs, WorkloadArgs, WorkloadCommand, trust};
use engine::crawl::{Crawl, CrawlPlan, crawl};
use std::fmt::Write as _;
use units::Nanos;

/// Connect timeout.
const CONNECT: Nanos = Nanos::from_secs(5);
/// Maximum number of broken links listed individually.
const LISTED_MAX: usize = 20;

pub(crate) fn workload(args: WorkloadArgs) -> Result<Code, Failure> {
    match args.command {
        WorkloadCommand::Crawl(args) => walk(&args),
        WorkloadCommand::Files(args) => files_on_disk::write(&args),
        WorkloadCommand::Sequence(args) => sequence::write(&args),
        WorkloadCommand::Import(args) => access_log::import(&args),
        WorkloadCommand::Describe(args) => describe::describe(&args),
        WorkloadCommand::Anonymise(args) => anonymise::anonymise(&args),
        WorkloadCommand::Verify(args) => verify::verify(&args),
        WorkloadCommand::Cgi(args) => cgi::answer(&args),
    }
}

fn walk(args: &CrawlArgs) -> Result<Code, Failure> {
    args.check()?;
    if let Some(path) = args.file() {
        files::check_writable(path).map_err(|error| Failure::not_written(&error))?;
    }
    let typed = args.rows.planned().map_err(|error| Failure::usage(error.to_string()))?;
    let mut world = Caller::new(CONNECT, trust(&typed)).map_err(Failure::usage)?;
    if args.url.scheme() == "https" {
        world.ready_tls().map_err(Failure::usage)?;
    }
    let plan = CrawlPlan {
        start: args.url.clone(),
        calls_max: args.calls_max,
        depth_max: args.depth_max,
        together: args.together,
        timeout: args.timeout,
        parts: !args.pages_only,
        headers: typed.request.headers,
        user_agent: plan::RequestPlan::default().user_agent,
    };
    let bar = crate::progress::bar(args.quiet, None, "{pos} of {len} known addresses requested");
    let found = crawl(&plan, &mut world, &mut |asked, known| {
        if let Some(bar) = &bar {
            bar.set_length(known);
            bar.set_position(asked);
        }
    });
    if let Some(bar) = &bar {
        bar.finish_and_clear();
    }
    let found = found.map_err(|error| Failure::usage(error.to_string()))?;
    if !found.good.is_empty() {
        let list: String = found.good.iter().map(|url| format!("{url}\n")).collect();
        files::write_to(&args.output, &list).map_err(|error| Failure::not_written(&error))?;
    }
    if !args.quiet && !found.good.is_empty() {
        crate::print_message(&summary(&found, args));
    }
    exit_code(&found, args)
}

fn exit_code(found: &Crawl, args: &CrawlArgs) -> Result<Code, Failure> {
    if let Some(why) = &found.unreachable {
        let text = format!("no connection to {}: {why}", args.url);
        return Err(Failure { code: Code::NoConnection, text });
    }
    if found.interrupted {
        return Ok(Code::Interrupted);
    }
    if found.good.is_empty() {
        let why = found.broken.first().map_or("it leads to another site", |broken| &broken.why);
        let text = format!("no URL to list: {} gave no good response ({why})", args.url);
        return Err(Failure { code: Code::Missed, text });
    }
    Ok(Code::Done)
}

/// Summarizes a crawl: broken pages, the number of listed pages, and skipped addresses.
fn summary(found: &Crawl, args: &CrawlArgs) -> String {
    let mut text = String::new();
    for broken in found.broken.iter().take(LISTED_MAX) {
        let place = match &broken.found_on {
            Some(page) => format!(", found on {page}"),
            None => String::new(),
        };
        put(&mut text, &format!("broken: {} ({}{place})", broken.url, broken.why));
    }
    let broken = found.broken.len() as u64 + found.more_broken;
    if broken > LISTED_MAX as u64 {
        put(&mut text, &format!("… and {} more that are broken", broken - LISTED_MAX as u64));
    }
    let sums = [
        format!("{} of {} requested pages listed", found.good.len(), found.asked),
        format!("{broken} broken"),
        format!("{} on other sites", found.elsewhere),
    ];
    put(&mut text, &sums.join(", "));
    if found.left_out > 0 && !found.interrupted {
        let bounds = format!("--calls-max {}, --depth-max {}", args.calls_max, args.depth_max);
        put(&mut text, &format!("{} known addresses were skipped ({bounds})", found.left_out));
    }
    text
}

fn put(text: &mut String, line: &str) {
    writeln!(text, "{line}").expect("a String accepts all text");
}
