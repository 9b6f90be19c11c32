//! The commands: dispatch, wiring, signals, exit codes.
#![forbid(unsafe_code)]

mod calibrate;
mod check;
mod child;
mod compare;
mod demo;
mod face;
#[cfg(feature = "fleet")]
mod fleet;
mod init_command;
mod netpath_command;
mod once_command;
mod progress;
mod ramp;
mod record_command;
mod report_command;
mod run;
mod runs;
mod site_command;
mod survey;
#[cfg(test)]
mod tests;
mod torture;
mod ui_command;
mod workload_command;

use args::{Cli, Command, Disk, Outputs, RunArgs};
use clap::{CommandFactory, FromArgMatches};
use exit::{Code, Failure};
use host::invocation::words;
use session::console::{command_words, print_message, stderr, stdout};
use session::{Fleet, caller, exit, files, programs, script, shell, signals, sut, wall_clock};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::Write;
use std::sync::Arc;

/// Runs the command line of the current [invocation](host::invocation), and returns its exit code.
pub fn run() -> u8 {
    if let Some(wanted) = face::requested_face(words().into_iter()) {
        return face::run_face(&wanted);
    }
    let argv = args::with_command(words());
    if argv.len() == 1 {
        write!(stderr(), "{}", args::FIRST_STEPS).ok();
        return Code::Usage.into();
    }
    if let Some(page) = args::topic_page(&argv) {
        let printed = page.map_err(Failure::from).and_then(|page| print(page.as_bytes()));
        return ended(printed).into();
    }
    let cli = match parsed(&argv) {
        Ok(cli) => cli,
        Err(error) => return print_usage(&error, &argv),
    };
    if let Command::Netpath(args) = &cli.command {
        // handles its own signals, and must have a single thread until it has forked a process
        return netpath_command::netpath(args);
    }
    if let Err(error) = signals::install() {
        print_message(&format!("cannot catch signals: {error}"));
        return Code::Usage.into();
    }
    let code = dispatch(cli.command).unwrap_or_else(|failure| {
        print_message(&failure.text);
        if let Some(hint) = args::value_hint(&failure.text, &argv) {
            print_message(&hint);
        }
        failure.code
    });
    let code = if signals::leaving() { Code::Interrupted } else { code };
    code.into()
}

fn parsed(argv: &[OsString]) -> Result<Cli, clap::Error> {
    let matches = args::command_for(argv).try_get_matches_from(argv)?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut Cli::command()))
}

fn ended(done: Result<Code, Failure>) -> Code {
    done.unwrap_or_else(|failure| {
        print_message(&failure.text);
        failure.code
    })
}

fn dispatch(command: Command) -> Result<Code, Failure> {
    match command {
        Command::Run(args) => run_plan(*args, None),
        Command::Ramp(args) => ramp::ramp(*args, None),
        #[cfg(feature = "fleet")]
        Command::Fleet(args) => fleet::fleet(args),
        Command::Compare(args) => compare::compare(*args),
        Command::Demo(args) => demo::demo(args),
        Command::Init(args) => init_command::init(&args),
        Command::Once(args) => once_command::once(&args),
        Command::Runs(args) => runs::runs(args),
        Command::Site(args) => site_command::site(args.into_task()?),
        Command::Calibrate(args) => {
            args.check()?;
            calibrate::calibrate(&args)
        }
        Command::Torture(args) => torture::torture(&args),
        Command::Survey(args) => survey::survey(&args),
        Command::Report(args) => report_command::report(&args),
        Command::Check(args) => check::check(&args),
        Command::Ui(args) => ui_command::ui(args),
        Command::Workload(args) => workload_command::workload(args),
        Command::Record(args) => record_command::record(&args),
        Command::Netpath(_) => unreachable!("main has carried it out"),
        Command::Completions { shell } => print(&args::completions(shell)),
        Command::Man => {
            let page = args::man_page().map_err(|error| Failure::usage(error.to_string()))?;
            print(&page)
        }
    }
}

/// Sends a plan's calls through the proxy of the environment, unless a proxy is named elsewhere.
pub(crate) fn use_proxy(plan: &mut plan::Plan, outputs: &Outputs) -> Result<(), Failure> {
    let note = args::use_environment(plan, outputs)?;
    note.iter().filter(|_| !outputs.quiet).for_each(|note| print_message(note));
    Ok(())
}

/// Runs a plan here, or on the machines of a fleet.
fn run_plan(args: RunArgs, fleet: Option<&Arc<dyn Fleet>>) -> Result<Code, Failure> {
    let (mut plan, outputs) = args.into_plan(&Disk)?;
    use_proxy(&mut plan, &outputs)?;
    if outputs.print_plan {
        return print(plan::to_toml(&plan, plan::Secrets::Masked).as_bytes());
    }
    run::run(plan, &outputs, fleet)
}

fn print(bytes: &[u8]) -> Result<Code, Failure> {
    let text = String::from_utf8_lossy(bytes);
    files::write_stdout(&text).map_err(|error| Failure::not_written(&error))?;
    Ok(Code::Done)
}

/// Help and version go to standard output and are not failures; everything else is a usage error.
fn print_usage(error: &clap::Error, argv: &[OsString]) -> u8 {
    if let Some(hint) = args::hint(error, argv) {
        print_message(&hint);
        return Code::Usage.into();
    }
    let printed = print_clap(error);
    if error.use_stderr() {
        return Code::Usage.into();
    }
    match printed {
        Ok(()) => Code::Done.into(),
        // `--help | head`: the reader has closed
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Code::Done.into(),
        Err(error) => {
            print_message(&format!("cannot write to standard output: {error}"));
            Code::NotWritten.into()
        }
    }
}

/// Prints help, a version or an error, in colors on a terminal.
fn print_clap(error: &clap::Error) -> std::io::Result<()> {
    if host::invocation::is_process() {
        return error.print();
    }
    let text = error.render().to_string();
    if error.use_stderr() {
        stderr().write_all(text.as_bytes())
    } else {
        stdout().write_all(text.as_bytes())
    }
}

/// Prints the parts of scripts that were not imported into these plans, each once, for commands
/// whose report does not list them.
fn print_not_imported<'p>(plans: impl IntoIterator<Item = &'p plan::Plan>) {
    let mut known = BTreeSet::new();
    let parts = plans.into_iter().flat_map(|plan| &plan.not_imported);
    for part in parts.filter(|part| known.insert(part.as_str())) {
        print_message(&format!("not imported: {part}"));
    }
}
