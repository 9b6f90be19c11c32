//! Visits to name servers.

use super::list::{Listed, Resolved};
use super::permit::Permit;
use args::SurveyArgs;
use host::{Asking, NameServerVisit, ask_name_servers};
use record::survey::SurveyedServer;
use std::time::Duration;
use torture::survey::dns::{QUERIES, Query};
use torture::survey::{Depth, classify, dns};

/// Time limit for the reply to each question.
const WAIT: Duration = Duration::from_secs(2);

pub(super) fn visit(args: &SurveyArgs, listed: &Resolved, permit: &Permit) -> Vec<SurveyedServer> {
    let asked: Vec<NameServerVisit> =
        listed.servers.iter().map(|one| questions(one, permit)).collect();
    let how =
        Asking { at_once: args.at_once as usize, per_second: u64::from(args.rate), wait: WAIT };
    let all = ask_name_servers(&asked, how, &|| crate::signals::received_signal() > 0);
    listed.servers.iter().zip(all).map(|(one, replies)| survey_row(one, &replies)).collect()
}

fn queries(one: &Listed, permit: &Permit) -> &'static [Query] {
    match permit.depth(one.address.ip()) {
        Depth::Plain => &QUERIES[..1],
        Depth::Oddities | Depth::Deadlines => &QUERIES,
    }
}

fn questions(one: &Listed, permit: &Permit) -> NameServerVisit {
    // unpredictable ids, so that no third party can reply
    let seed = permit.run.bytes().fold(u64::from(one.address.port()), |sum, byte| {
        sum.wrapping_mul(31).wrapping_add(u64::from(byte))
    });
    let id =
        |at: usize| (seed.wrapping_mul(2_654_435_761).wrapping_add(at as u64 * 7_919) >> 3) as u16;
    let messages = queries(one, permit).iter().enumerate().map(|(at, query)| query.message(id(at)));
    NameServerVisit { server: one.address, messages: messages.collect() }
}

fn survey_row(one: &Listed, replies: &[Option<Vec<u8>>]) -> SurveyedServer {
    let reached = matches!(replies.first(), Some(Some(_)));
    let mut server = SurveyedServer::at(one.address, &one.names);
    if !reached {
        return server.unreached("no reply to a plain query within 2 s");
    }
    let evidence: Vec<(String, String)> = QUERIES
        .iter()
        .zip(replies)
        .map(|(query, reply)| (query.name.to_owned(), dns::signature(reply.as_deref())))
        .collect();
    let claim = dns::claim(replies.first().and_then(Option::as_deref));
    server.set_software(&classify(&dns::TABLE, &claim, &evidence), &evidence);
    server
}
