//! `loadstone fleet status` and `abort`: an operator's questions to a manager.

use super::usage;
use crate::exit::{Code, Failure};
use args::FleetOperatorArgs;
use fleet::protocol::message::{self, OperatorMessage, Status};
use fleet::protocol::stamp::RefusedMessages;
use fleet::{Credentials, Incoming, NatsLink, Role, Subjects};
use std::time::Duration;

/// Longest wait for the server, and for the manager's answer.
const PATIENCE: Duration = Duration::from_secs(5);

fn connect(args: &FleetOperatorArgs) -> Result<(NatsLink, Subjects), Failure> {
    let own = Credentials::read(&args.access.creds).map_err(usage)?;
    if own.role != Role::Operator {
        return Err(Failure::usage(format!(
            "{} is not for an operator: use operator.creds, as `fleet creds` makes it",
            args.access.creds.display()
        )));
    }
    let subjects = Subjects::new(&own.fleet);
    let (_, listen) = subjects.permitted(own.role, &own.id());
    let link = NatsLink::connect(&args.access.place(), &own, listen, PATIENCE).map_err(usage)?;
    Ok((link, subjects))
}

/// Prints the agents' state according to the manager.
pub(super) fn status(args: &FleetOperatorArgs) -> Result<Code, Failure> {
    let (link, subjects) = connect(args)?;
    link.sender().send(subjects.control(), message::write(&OperatorMessage::Status));
    let until = net::reactor::monotonic() + units::Nanos(PATIENCE.as_nanos() as u64);
    while net::reactor::monotonic() < until {
        match link.inbox.recv_timeout(PATIENCE) {
            Ok(Incoming::Message { bytes, .. }) => {
                let status = message::read(&bytes).map_err(Failure::usage)?;
                return crate::print(text(&status).as_bytes());
            }
            Ok(Incoming::Refused(why)) => return Err(Failure::usage(why)),
            _ => {}
        }
    }
    Err(Failure { code: Code::NoConnection, text: "no manager answers".into() })
}

fn text(status: &Status) -> String {
    let there = status.agents.len();
    let mut text = format!("step {}, {there} of {} agents\n", status.step, status.wanted);
    for (row, agent) in status.agents.iter().enumerate() {
        let host = units::quoted(&agent.host);
        text.push_str(&format!(
            "{:>4}  {host}  {}  heard {} ms ago  {} rows\n",
            row + 1,
            agent.stage,
            agent.silent_ms,
            agent.rows
        ));
    }
    let RefusedMessages { foreign, late, replayed } = status.refused;
    if status.refused.sum() > 0 {
        text.push_str(&format!(
            "refused messages: {foreign} of another process, {late} of another run, {replayed} replayed\n"
        ));
    }
    text
}

/// Ends the run; the manager reports the measurement.
pub(super) fn abort(args: &FleetOperatorArgs) -> Result<Code, Failure> {
    let (link, subjects) = connect(args)?;
    link.sender().send(subjects.control(), message::write(&OperatorMessage::Abort));
    Ok(Code::Done)
}
