//! Permission checks before the first packet. Requests are recorded in the audit log.

use super::list::Resolved;
use crate::exit::Failure;
use crate::torture::run_id;
use args::SurveyArgs;
use record::survey::SurveyRecord;
use record::words::counted;
use serde_json::{Map, Value, json};
use std::net::{IpAddr, SocketAddr};
use torture::safety::permit::RunLog;
use torture::safety::{Class, class};
use torture::survey::Depth;
use world::audit::{Audit, words};
use world::key;

/// Maximum number of addresses in the log's first line; every visit has a separate line.
const ADDRESSES_MAX: usize = 200;

/// Permitted requests, and their log.
pub(super) struct Permit {
    depth: Depth,
    audit: Option<Audit>,
    pub(super) run: String,
}

impl Permit {
    /// # Errors
    /// Fails for others' addresses without permission, addresses that may never be queried, and a
    /// log that cannot be written.
    pub(super) fn new(args: &SurveyArgs, listed: &Resolved) -> Result<Permit, Failure> {
        let addresses = || listed.servers.iter().map(|one| one.address);
        let of = |wanted: Class| addresses().find(|address| class(address.ip()) == wanted);
        if let Some(address) = of(Class::Never) {
            return Err(Failure::usage(format!(
                "{} is a reserved address (metadata, multicast or unspecified): refused; remove it \
                 from the list",
                address.ip()
            )));
        }
        if let Some(address) = of(Class::Public).filter(|_| !args.yes_i_may) {
            return Err(Failure::usage(format!(
                "{} is a public address: refused. If its owner permits it, confirm with \
                 --yes-i-may --owner NAME; it gets one plain request",
                address.ip()
            )));
        }
        let ports = |address: &SocketAddr| torture::safety::PORTS_REFUSED.contains(&address.port());
        if let Some(address) = addresses().find(ports).filter(|_| !args.dns) {
            return Err(Failure::usage(format!(
                "port {} belongs to another protocol: refused; name the port of a web server",
                address.port()
            )));
        }
        let strictest = addresses().map(|address| class(address.ip())).max();
        let local = strictest.is_none_or(|class| class == Class::Local);
        if args.no_audit && !local {
            return Err(Failure::usage(
                "--no-audit is for servers on this machine: others are listed",
            ));
        }
        let run = run_id();
        let mut audit = match args.no_audit {
            true => None,
            false => Some(Audit::new(&key::folder()?, &run, beginning(args, listed, strictest))),
        };
        if let Some(audit) = &mut audit {
            audit
                .write_start()
                .map_err(|why| Failure::usage(format!("the audit log cannot be written: {why}")))?;
        }
        let depth = match (args.plain, args.deadlines) {
            (true, _) => Depth::Plain,
            (false, true) => Depth::Deadlines,
            (false, false) => Depth::Oddities,
        };
        Ok(Permit { depth, audit, run })
    }

    /// Returns the extent of the visit to this server; a third party's server gets one plain
    /// request.
    pub(super) fn depth(&self, address: IpAddr) -> Depth {
        match class(address) {
            Class::Local | Class::Private => self.depth,
            Class::Public | Class::Never => Depth::Plain,
        }
    }

    /// Records the end of the survey.
    pub(super) fn end(&mut self, record: &SurveyRecord, code: u8) {
        let Some(audit) = &mut self.audit else { return };
        for server in &record.servers {
            let fields = json!({
                "server": server.address,
                "names": server.names.iter().take(20).collect::<Vec<_>>(),
                "asked": server.evidence.len(),
                "software": server.software,
            });
            audit.note("visit", fields);
        }
        audit.note("end", json!({ "exit": code, "cases": record.servers.len() }));
        if let Some(why) = audit.trouble() {
            crate::print_message(&format!("the audit log cannot be written: {why}"));
        }
    }
}

fn beginning(args: &SurveyArgs, listed: &Resolved, strictest: Option<Class>) -> Map<String, Value> {
    let servers = &listed.servers;
    let addresses = servers.iter().take(ADDRESSES_MAX).map(|one| one.address.to_string());
    let fields = json!({
        "uid": rustix::process::getuid().as_raw(),
        "pid": std::process::id(),
        "arguments": words(),
        "version": env!("CARGO_PKG_VERSION"),
        "target": format!("a survey of {}", counted(servers.len() as u64, "server")),
        "addresses": addresses.collect::<Vec<_>>(),
        "class": strictest.unwrap_or(Class::Local).id(),
        "owner": args.owner,
        "contact": args.contact,
        "yes_i_may": args.yes_i_may,
    });
    match fields {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}
