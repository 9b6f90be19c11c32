//! A script that makes a run's requests (`--script`): set up anew for each repeat, told the figures
//! behind the report.

use super::measure::Measured;
use super::prepare::Prepared;
use super::specweb99::{self, Posting};
use super::threads::Cast;
use crate::exit::{Code, Failure};
use crate::script::LoadedScript;
use faces::wrk::{WrkFigures, figures_of};
use faces::{ScriptJob, StartTrouble};
use plan::{Auth, Plan};
use protocol::http1::request::basic_authorization;
use url::Position;

/// The stages of the repeats so far, each with what its script is told at the end.
#[derive(Debug, Default)]
pub(crate) struct Stages {
    open: Option<LoadedScript>,
    over: Vec<(LoadedScript, WrkFigures)>,
    posting: Option<Posting>,
}

impl Stages {
    /// The workers' parts for one repeat: of the plan's script, its journeys, or its connections after
    /// SPECweb99; none where it has nothing of these. `aside`: standard
    /// output is not the script's to print on.
    ///
    /// # Errors
    /// The script is wrong, or went wrong; its server takes no connection.
    pub(crate) fn cast(
        &mut self,
        plan: &Plan,
        prepared: &Prepared,
        aside: bool,
    ) -> Result<Vec<Cast>, Failure> {
        if let Some((casts, posting)) = specweb99::cast(plan, prepared)? {
            self.posting = Some(posting);
            return Ok(casts);
        }
        let Some(job) = job(plan, aside) else {
            return super::journeys::cast(plan, prepared, aside);
        };
        let mut complaints = String::new();
        let mut complain = |text: &str| complaints.push_str(text);
        let stage = LoadedScript::open(job, &mut complain).and_then(|mut stage| {
            let parts = stage.cast(prepared.workers, &mut complain)?;
            Ok((stage, parts))
        });
        // a text that cannot be loaded leaves nothing to be done, whatever else is wrong
        if let Some(line) = complaints.lines().next() {
            // the complaint is wrk's: the script's name, and then Lua's sentence, which has it too
            let line = line.split_once(": ").map_or(line, |(_, sentence)| sentence);
            return Err(Failure::usage(format!("--script: {line}")));
        }
        let (stage, parts) = stage.map_err(failure)?;
        // a proof is put into the head of one request
        let many = parts.iter().any(|part| part.wants().requests > 1);
        if many && matches!(plan.request.auth, Some(Auth::Digest { .. } | Auth::AwsSigV4 { .. })) {
            return Err(Failure::usage(
                "--script: request() returns several requests in one text, and --digest and \
                 --aws-sigv4 prove one: let it return one",
            ));
        }
        self.open = Some(stage);
        Ok(parts.into_iter().map(Cast::Script).collect())
    }

    /// A repeat is over.
    pub(super) fn keep(&mut self, measured: &mut Measured) {
        if let Some(posting) = self.posting.take() {
            measured.posts = posting.compare();
        }
        if let Some(stage) = self.open.take() {
            stage.flush();
            self.over.push((stage, figures_of(&measured.measurement)));
        }
    }

    /// Each script's own report.
    ///
    /// # Errors
    /// A script went wrong.
    pub(super) fn done(&self) -> Result<(), Failure> {
        self.over.iter().try_for_each(|(stage, figures)| stage.done(figures).map_err(failure))
    }
}

fn failure(trouble: StartTrouble) -> Failure {
    match trouble {
        StartTrouble::Lookup(text) | StartTrouble::Connect(text) => {
            Failure { code: Code::NoConnection, text: format!("no connection to {text}") }
        }
        StartTrouble::Request(text) => {
            Failure::usage(format!("--script: what it wants to send is not a request: {text}"))
        }
        StartTrouble::Name { text, .. }
        | StartTrouble::Tls(text)
        | StartTrouble::Script(text)
        | StartTrouble::Other(text) => Failure::usage(format!("--script: {text}")),
        StartTrouble::Bind(error) => Failure::usage(format!("--script: {}", error.text)),
        StartTrouble::Descriptors => Failure::usage("--script: no descriptor is left"),
    }
}

/// What a script finds in its table `wrk`: the request as the plan has it.
fn job(plan: &Plan, aside: bool) -> Option<ScriptJob> {
    let script = plan.script.as_ref()?;
    let url = &plan.targets.first()?.url;
    let host = url.host_str().unwrap_or_default();
    let mut args = vec![url.to_string()];
    args.extend(script.args.iter().cloned());
    Some(ScriptJob {
        text: Some((script.name.clone(), Ok(script.text.clone()))),
        scheme: url.scheme().to_owned(),
        host: host.trim_start_matches('[').trim_end_matches(']').to_owned(),
        port: url.port().map(|port| port.to_string()),
        path: url[Position::BeforePath..Position::AfterQuery].to_owned(),
        headers: headers(plan),
        args,
        method: Some(plan.request.method.clone()),
        body: plan.request.body.clone(),
        aside,
    })
}

fn headers(plan: &Plan) -> Vec<(String, String)> {
    let request = &plan.request;
    let mut headers = request.headers.clone();
    let mut add = |name: &str, value: String| {
        if !headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name)) {
            headers.push((name.to_owned(), value));
        }
    };
    add("User-Agent", request.user_agent.clone());
    if let Some(priority) = request.priority {
        add("Priority", priority.to_string());
    }
    if request.compressed {
        add("Accept-Encoding", protocol::http1::coding::ACCEPTED.to_owned());
    }
    let authorization = match &request.auth {
        Some(Auth::Basic { user, password }) => basic_authorization(user, password).ok(),
        Some(Auth::Bearer(token)) => Some(format!("Bearer {token}")),
        // what these prove is of one request alone, and is put into it when it is sent
        Some(Auth::Digest { .. } | Auth::AwsSigV4 { .. }) | None => None,
    };
    if let Some(value) = authorization {
        add("Authorization", value);
    }
    headers
}
