//! `loadstone init`: the first plan of a service.

use crate::exit::{Code, Failure};
use crate::{files, workload_command};
use args::{Cli, Command, InitArgs, Sink};
use clap::Parser;
use plan::{Plan, Secrets};

/// Contents of the plan's tables below.
const LOAD: &str = r#"
[load]
users = 10                # each sends a request after the response to its last one
# think = "1s..3s"        # and waits so long in between
# rate = "100/s"          # instead of users: a fixed rate, however slow the server is

[stop]
duration = "10s"
warmup = "1s"             # before that, reported separately

[measure]
# the run ends with exit code 1 if an objective is missed
slo = ["p99<500ms", "failures<1%"]
"#;

/// Tables defined by [`LOAD`].
const WRITTEN: [&str; 4] = ["version", "load", "stop", "measure"];

/// Writes the plan, and prints the command that runs it.
pub(crate) fn init(args: &InitArgs) -> Result<Code, Failure> {
    if let Sink::File(path) = &args.output
        && !args.force
        && path.exists()
    {
        return Err(Failure::usage(format!(
            "{} exists; give another file with -o, or --force to replace it",
            path.display()
        )));
    }
    match args.file() {
        Some(file) => drop(import(file, &args.output)?),
        None => {
            let text = text(&args.plan()?, &args.output)?;
            files::write_to(&args.output, &text).map_err(|error| Failure::not_written(&error))?;
        }
    }
    if let Sink::File(path) = &args.output {
        crate::print_message(&format!("wrote {0}; next: loadstone run {0}", path.display()));
    }
    Ok(Code::Done)
}

/// Imports a file of another tool, like `loadstone workload import FILE -o PLAN`.
fn import(file: &str, output: &Sink) -> Result<Code, Failure> {
    let output = match output {
        Sink::File(path) => path.display().to_string(),
        Sink::Stdout => "-".to_owned(),
    };
    let words = ["loadstone", "workload", "import", "-o", &output, "--", file];
    match Cli::try_parse_from(words).map(|cli| cli.command) {
        Ok(Command::Workload(args)) => workload_command::workload(args),
        Ok(_) => unreachable!("the words name the command"),
        Err(error) => Err(Failure::usage(error.to_string())),
    }
}

/// Renders the plan with its comments.
fn text(plan: &Plan, output: &Sink) -> Result<String, Failure> {
    let file = match output {
        Sink::File(path) => path.display().to_string(),
        Sink::Stdout => "PLAN.toml".to_owned(),
    };
    let mut text = format!(
        "# A plan for Loadstone.\n\
         #   run it:                           loadstone run {file}\n\
         #   all settings with their defaults: loadstone run {file} --print-plan\n\
         #   users who log in, step by step:   docs/guide/journeys.md\n\
         version = 1\n"
    );
    text += LOAD;
    text += &calls(plan)?;
    Ok(text)
}

/// Renders the calls of the plan, without defaults.
fn calls(plan: &Plan) -> Result<String, Failure> {
    let whole = plan::to_toml(plan, Secrets::Shown);
    let brief = plan::to_brief_toml(&whole).unwrap_or(whole);
    let unreadable = |error: String| Failure::usage(format!("the plan cannot be written: {error}"));
    let mut table: toml::Table = toml::from_str(&brief).map_err(|e| unreadable(e.to_string()))?;
    WRITTEN.iter().for_each(|key| drop(table.remove(*key)));
    let text = toml::to_string(&table).map_err(|e| unreadable(e.to_string()))?;
    Ok(format!("\n{text}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::FileSource;

    struct NoFiles;

    impl FileSource for NoFiles {
        fn read(&self, path: &str) -> Result<Vec<u8>, String> {
            Err(format!("{path} is not there"))
        }
    }

    fn written(start: &str) -> String {
        let cli = Cli::parse_from(["loadstone", "init", start]);
        let Command::Init(args) = cli.command else { panic!("init") };
        text(&args.plan().unwrap(), &args.output).unwrap()
    }

    #[test]
    fn the_plan_of_a_url_runs_as_it_is() {
        let text = written("http://127.0.0.1:8080/shop?page=1");
        let plan = plan::from_toml(&text, &NoFiles).unwrap();
        plan::validate(&plan).unwrap();
        assert_eq!(plan.targets[0].url.as_str(), "http://127.0.0.1:8080/shop?page=1");
        assert_eq!(plan.measure.slo.len(), 2);
        assert!(text.contains("# rate = \"100/s\"") && !text.contains("raw = false"), "{text}");
        // the suggested settings are valid
        let open = text.replace("users = 10 ", "").replace("# rate", "rate");
        assert!(plan::from_toml(&open, &NoFiles).is_ok(), "{open}");
        let paused = text.replace("# think", "think");
        assert!(plan::from_toml(&paused, &NoFiles).is_ok(), "{paused}");
    }

    #[test]
    fn the_plan_of_a_curl_command_sends_the_same_request() {
        let text = written("curl -X PUT https://h/api -H 'X-Key: 7' -d '{\"a\":1}' -k");
        let plan = plan::from_toml(&text, &NoFiles).unwrap();
        let target = &plan.targets[0];
        assert_eq!(target.method.as_deref(), Some("PUT"));
        assert_eq!(target.body.as_deref(), Some(&b"{\"a\":1}"[..]));
        assert!(plan.request.headers.iter().any(|(name, value)| name == "X-Key" && value == "7"));
        assert!(plan.tls.insecure);
    }
}
