//! A script that makes a run's requests (`--script`): opened for each repeat; it receives the
//! figures after the report.

use crate::exit::{Code, Failure};
use crate::script::LoadedScript;
use crate::session::{Fit, Session};
use crate::specweb99::{self, Posting};
use crate::threads::RequestSource;
use faces::wrk::{WrkFigures, figures_of};
use faces::{ScriptJob, StartTrouble};
use plan::{Auth, Plan};
use protocol::http1::request::basic_authorization;
use record::run::RunReport;
use url::Position;

/// The scripts of the runs so far, each with the figures for its final report.
#[derive(Debug, Default)]
pub struct Scripts {
    over: Vec<(LoadedScript, WrkFigures)>,
}

impl Scripts {
    /// Runs each script's own report.
    ///
    /// # Errors
    /// Fails if a script fails.
    pub fn report(&self) -> Result<(), Failure> {
        self.over.iter().try_for_each(|(script, figures)| script.done(figures).map_err(failure))
    }
}

/// Source of one run's requests, instead of the plan's targets.
#[derive(Debug, Default)]
pub(crate) struct Requesters {
    script: Option<LoadedScript>,
    posting: Option<Posting>,
}

impl Requesters {
    /// Returns the workers' sources of requests for one run: the plan's script, its journeys, or
    /// its SPECweb99 connections; none if it has none of these. `aside`: scripts print on standard
    /// error.
    ///
    /// # Errors
    /// Fails if the script is invalid or fails, or its server accepts no connection.
    pub(crate) fn sources(
        &mut self,
        plan: &Plan,
        session: &Session,
        fit: &Fit,
        aside: bool,
    ) -> Result<Vec<RequestSource>, Failure> {
        let shares = session.shares(fit);
        let endpoints = &session.servers.endpoints;
        if let Some((sources, posting)) =
            specweb99::sources(plan, endpoints, &fit.network, shares.len())?
        {
            self.posting = Some(posting);
            return Ok(sources);
        }
        match job(plan, aside) {
            Some(job) => self.open_script(job, plan, fit.placement.workers),
            None if plan.is_grpc() && plan.grpc.message_differs() => {
                crate::grpc::sources(plan, shares.len())
            }
            None => crate::journeys::sources(plan, &session.captured.values, &shares, aside),
        }
    }

    fn open_script(
        &mut self,
        job: ScriptJob,
        plan: &Plan,
        workers: u32,
    ) -> Result<Vec<RequestSource>, Failure> {
        let mut complaints = String::new();
        let mut complain = |text: &str| complaints.push_str(text);
        let script = LoadedScript::open(job, &mut complain).and_then(|mut script| {
            let parts = script.parts(workers, &mut complain)?;
            Ok((script, parts))
        });
        // a text that cannot be loaded prevents the run, regardless of other errors
        if let Some(line) = complaints.lines().next() {
            // the complaint is wrk's: the script's name, and then Lua's sentence, which includes it
            // too
            let line = line.split_once(": ").map_or(line, |(_, sentence)| sentence);
            return Err(Failure::usage(format!("--script: {line}")));
        }
        let (script, parts) = script.map_err(failure)?;
        // a proof is added to the head of a single request
        let many = parts.iter().any(|part| part.wants().requests > 1);
        if many && engine::proof::needs_proofs(plan) {
            return Err(Failure::usage(
                "--script: request() returns several requests in one text, but --digest, \
                 --aws-sigv4 and --token-url need a single request: let it return one",
            ));
        }
        self.script = Some(script);
        Ok(parts.into_iter().map(RequestSource::Script).collect())
    }

    /// Ends the run: compares the POSTs with the server's log, and keeps the script for its own
    /// report.
    pub(crate) fn finish(self, run: &mut RunReport, scripts: Option<&mut Scripts>) {
        if let Some(posting) = self.posting {
            run.posts = posting.compare();
        }
        if let Some(script) = self.script {
            script.flush();
            if let Some(scripts) = scripts {
                scripts.over.push((script, figures_of(&run.measurement)));
            }
        }
    }
}

fn failure(trouble: StartTrouble) -> Failure {
    match trouble {
        StartTrouble::Lookup(text) | StartTrouble::Connect(text) => {
            Failure { code: Code::NoConnection, text: format!("no connection to {text}") }
        }
        StartTrouble::Request(text) => {
            Failure::usage(format!("--script: it returned something that is not a request: {text}"))
        }
        StartTrouble::Name { text, .. }
        | StartTrouble::Tls(text)
        | StartTrouble::Script(text)
        | StartTrouble::Other(text) => Failure::usage(format!("--script: {text}")),
        StartTrouble::Bind(error) => Failure::usage(format!("--script: {}", error.text)),
        StartTrouble::Descriptors => Failure::usage("--script: no descriptor is left"),
    }
}

/// Returns the contents of a script's table `wrk`: the request as in the plan.
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
        // the proof belongs to a single request, and is added when it is sent
        Some(Auth::Digest { .. } | Auth::AwsSigV4 { .. }) | None => None,
    };
    if let Some(value) = authorization {
        add("Authorization", value);
    }
    headers
}
