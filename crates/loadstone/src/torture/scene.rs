//! The server of a replay.

use super::permit::{self, Permit};
use super::raw;
use super::server;
use super::target::{self, Reached};
use crate::exit::{Code, Failure};
use args::AgainArgs;
use dialogue::http2::Protocol;
use std::cell::RefCell;
use std::fs::File;
use std::rc::Rc;
use torture::case::Case;
use torture::result::RunResult;
use units::quoted;
use url::Url;
use world::Sockets;
use world::audit::{Audit, AuditWriter};
use world::evidence::Kept;

/// The permitted server, and the connection settings.
pub(super) struct Scene {
    pub(super) url: Url,
    pub(super) reached: Reached,
    pub(super) sockets: Sockets,
    audit: Option<Rc<RefCell<Audit>>>,
    /// Lock: only one run at a time stresses another machine.
    _alone: Option<File>,
}

impl Scene {
    /// Returns an observer for the audit log, if any.
    pub(super) fn writer(&self) -> Option<AuditWriter> {
        self.audit.clone().map(AuditWriter)
    }

    /// Writes the last line of the audit log.
    pub(super) fn end(&self, ended_early: Option<String>, code: Code) {
        if let Some(audit) = &self.audit {
            let interrupted = code == Code::Interrupted;
            let result = RunResult { ended_early, interrupted, ..RunResult::default() };
            audit.borrow_mut().end(&result, code as u8);
        }
    }
}

/// Returns the target of a replay: the named server, or that of the failures. The rules are those
/// of a run.
///
/// # Errors
/// Fails for failures of several servers, and for a server that may not be tested.
pub(super) fn scene(args: &AgainArgs, kept: &[Kept]) -> Result<Scene, Failure> {
    let url = match &args.to {
        Some(url) => url.clone(),
        None => of_run(kept)?,
    };
    let run = args.run(&url);
    let mut run = run.map_err(|error| Failure::usage(format!("the recorded target: {error}")))?;
    run.what.set_protocol(protocol(kept)?);
    let mut cases: Vec<Case> = Vec::new();
    for one in kept {
        if !cases.iter().any(|case| case.id == one.failure.case.id) {
            cases.push(one.failure.case.clone());
        }
    }
    let reached = target::reach(&run, &url)?;
    let asked = run.safety.requested();
    let Permit { governor, outside, audit, alone } =
        permit::permit(&run, &reached.url, &reached, &cases, &asked)?;
    let seen = server::processes(&run.server, &reached)?;
    let raw = raw::link(&run, &reached.url, (reached.class, &reached.addresses), &cases)?;
    let sockets = Sockets::new(target::tls_for(&run, &reached.url)?, governor, outside)?
        .over_quic(run.what.protocol())?
        .raw(raw)
        .with_server_watch(seen);
    Ok(Scene { url, reached, sockets, audit, _alone: alone })
}

/// Returns the protocol that all failures share, or an error if they differ.
fn protocol(kept: &[Kept]) -> Result<Protocol, Failure> {
    let polite = |one: &Kept| match one.failure.transcript.script.protocol {
        Protocol::Http2Raw => Protocol::Http2,
        Protocol::Datagrams => Protocol::Http3,
        other => other,
    };
    let first = kept.first().map(polite).unwrap_or_default();
    if kept.iter().any(|one| polite(one) != first) {
        return Err(Failure::usage(
            "these failures use several versions of HTTP: replay them one by one",
        ));
    }
    Ok(first)
}

fn of_run(kept: &[Kept]) -> Result<Url, Failure> {
    let mut targets: Vec<&str> =
        kept.iter().map(|one| one.failure.transcript.target.as_str()).collect();
    targets.sort_unstable();
    targets.dedup();
    let [target] = targets[..] else {
        return Err(Failure::usage(
            "these failures are from several servers: name a server with --to, or replay them \
            one by one",
        ));
    };
    Url::parse(target).map_err(|error| {
        Failure::usage(format!("the recorded target {} is not a URL: {error}", quoted(target)))
    })
}
