//! A script as the only journey of a plan (`--script`).

use super::read;
use crate::{NoFiles, Plan, ScriptPlan, TargetPlan};
use toml::{Table, Value};
use units::ParseError;

/// Name of the journey if the script's file does not name it.
const NAME: &str = "journey";

/// A script's description of its journey, before the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramOutline {
    /// Names of the script's calls; at least one.
    pub steps: Vec<String>,
    /// Hosts that the script may call in addition to the plan's URL.
    pub servers: Vec<String>,
    /// Names of the metrics for which the script provides numbers.
    pub metrics: Vec<String>,
}

impl Plan {
    /// Lets a script carry out the plan's only journey: users of the journey are the load, and
    /// users of a Lua script have cookies.
    ///
    /// # Errors
    /// Fails for an invalid name or server, or a plan with other requests.
    pub fn set_journey_script(
        &mut self,
        script: ScriptPlan,
        outline: ProgramOutline,
    ) -> Result<(), ParseError> {
        let wrong = |why: String| ParseError(format!("--script: {}: {why}", script.name));
        if self.journeys.is_some() {
            let why = "the plan has journeys already: give one of them script-file";
            return Err(wrong(why.to_owned()));
        }
        let [target] = self.targets.as_slice() else {
            let why = "a journey has one URL: name its other servers in servers = {…}";
            return Err(wrong(why.to_owned()));
        };
        let bare = TargetPlan { weight: target.weight, ..TargetPlan::new(target.url.clone()) };
        if *target != bare {
            let why = "a script makes its own calls: leave only the URL in the target";
            return Err(wrong(why.to_owned()));
        }
        let text = String::from_utf8(script.text.clone());
        let text = text.map_err(|_| wrong("a journey's script must be UTF-8".to_owned()))?;
        let list = |all: Vec<String>| Value::Array(all.into_iter().map(Value::String).collect());
        let mut table = Table::new();
        let mut put = |key: &str, value| table.insert(key.to_owned(), value);
        put("name", Value::String(name_of(&script.name, &outline.steps)));
        put("script-name", Value::String(script.name.clone()));
        put("script", Value::String(text));
        put("args", list(script.args.clone()));
        let files = script.files.iter().map(|(name, text)| {
            Value::Table(super::tables::script_file(name.clone(), text.clone()))
        });
        let files: Vec<Value> = files.collect();
        if !files.is_empty() {
            put("script-files", Value::Array(files));
        }
        put("steps", list(outline.steps));
        put("servers", list(outline.servers));
        if !outline.metrics.is_empty() {
            put("metrics", list(outline.metrics));
        }
        let mut all = Table::new();
        all.insert("journey".to_owned(), Value::Array(vec![Value::Table(table)]));
        // the lines refer to a generated text
        let reworded =
            |error: ParseError| wrong(error.0.split_once(": ").map_or("", |(_, it)| it).to_owned());
        let read = read(&all.to_string(), &target.url, &NoFiles).map_err(reworded)?;
        self.targets = super::targets(&read).into();
        self.journeys = Some(read);
        // scripts of k6 have their own cookie jars
        self.request.cookies = !script.is_javascript();
        self.script = None;
        Ok(())
    }
}

/// Returns the file's name without its extension, unless a step has that name too.
fn name_of(file: &str, steps: &[String]) -> String {
    let name = file.rsplit('/').next().unwrap_or_default();
    let name = [".lua", ".js", ".mjs", ".ts"]
        .iter()
        .find_map(|ending| name.strip_suffix(ending))
        .unwrap_or(name);
    let good = read::is_valid_in_objectives(name) && !name.trim().is_empty();
    let free = |name: &str| steps.iter().all(|step| step != name);
    match name {
        name if good && free(name) && !name.contains("{{") => name.to_owned(),
        _ if free(NAME) => NAME.to_owned(),
        _ => format!("{NAME} of {}", steps.len()),
    }
}
