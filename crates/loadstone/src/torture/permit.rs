//! Permission: class of the target, audit log, proof and limits, checked in this order before
//! anything is sent.

use super::target::Reached;
use crate::exit::Failure;
use args::{Disk, TortureArgs, TortureSafety};
use campaign::Settings;
use dialogue::governor::Stop;
use dialogue::governor::{Bounds, Governor};
use plan::FileSource;
use report::torture::{DryRun, Report};
use rustix::fs::{FlockOperation, flock};
use serde_json::{Map, Value, json};
use std::cell::RefCell;
use std::fs::File;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use torture::case::Case;
use torture::safety;
use torture::safety::permit as rules;
use torture::safety::permit::{Grounds, PermitRefusal};
use torture::safety::proof::{Claim, FILE_PATH, FoundProof, Sources, txt_name};
use torture::safety::{Asked, Class, Ranges};
use url::Url;
use world::audit::{Audit, Unwritten, words};
use world::key;
use world::outside::{self, ProofWatch};
use world::owner::host_of;
use world::sources::{Internet, Nowhere};

/// Returns the class of a target that is not refused at once.
///
/// # Errors
/// Fails for a port of another protocol, or a reserved address.
pub(super) fn classify(url: &Url, addresses: &[IpAddr]) -> Result<Class, Failure> {
    let port = url.port_or_known_default().unwrap_or(80);
    if safety::PORTS_REFUSED.contains(&port) {
        return Err(Failure::usage(format!(
            "port {port} belongs to another protocol: refused; name the port of a web server"
        )));
    }
    match safety::strictest(addresses) {
        Class::Never => {
            let list: Vec<String> = addresses.iter().map(IpAddr::to_string).collect();
            Err(Failure::usage(format!(
                "{} is a reserved address (metadata, multicast or unspecified): refused; name a server that you own",
                list.join(", ")
            )))
        }
        class => Ok(class),
    }
}

/// Resources of a run in addition to its target: the governor, the stop conditions, and the audit
/// log.
pub(super) struct Permit {
    pub(super) governor: Governor,
    pub(super) outside: Box<dyn FnMut() -> Option<Stop>>,
    pub(super) audit: Option<Rc<RefCell<Audit>>>,
    /// Lock: only one run at a time may stress another machine.
    pub(super) alone: Option<File>,
}

/// Performs everything before the first packet, and fetches the proof, which is the first.
///
/// # Errors
/// Fails with the part that is not permitted, and the fix.
pub(super) fn permit(
    args: &TortureArgs,
    url: &Url,
    reached: &Reached,
    cases: &[Case],
    asked: &Asked,
) -> Result<Permit, Failure> {
    let class = reached.class;
    // errors in the options are reported before anything is written
    let ranges = ranges(&args.safety)?;
    let bounds = asked.bounds(class, None).map_err(Failure::usage)?;
    if class != Class::Public {
        check_asked_for(args, cases, &permission_grounds(reached, &args.safety, None, &ranges))?;
    }
    if args.safety.no_audit && class != Class::Local {
        return Err(Failure::usage(format!(
            "--no-audit is for targets on this machine: this one is {}",
            class.id()
        )));
    }
    let folder = if args.safety.no_audit { None } else { Some(key::folder()?) };
    let alone = match (&folder, class) {
        (Some(folder), Class::Private | Class::Public) => Some(alone(folder)?),
        _ => None,
    };
    let mut audit = folder
        .as_ref()
        .map(|folder| Audit::new(folder, &reached.run, beginning(args, url, reached, &bounds)));
    let claim = claim(url, reached, folder.as_ref())?;
    let (host, fields) = (&reached.target.values.host, &reached.target.fields);
    let mut internet = match class {
        Class::Public => Some(Internet::new(url, host, fields).map_err(Failure::usage)?),
        _ => None,
    };
    let sources: &mut dyn Sources = match &mut internet {
        Some(internet) => internet,
        None => &mut Nowhere,
    };
    let found = match &mut audit {
        Some(audit) => rules::permit(class, &claim, audit, sources),
        None => rules::permit(class, &claim, &mut Unwritten, sources),
    };
    let found = found.map_err(|refusal| refused(refusal, class, url, &claim))?;
    let proof = found.as_ref().map(|found| &found.proof);
    let grounds = permission_grounds(reached, &args.safety, proof, &ranges);
    if class == Class::Public {
        check_asked_for(args, cases, &grounds)?;
    }
    let bounds = asked.bounds(class, proof).map_err(Failure::usage)?;
    let mut governor = Governor::new(bounds, reached.addresses.clone(), grounds.permits_writes());
    if !grounds.permits_repeats(args.safety.confirm) {
        governor.forbid_repeats();
    }
    for case in cases {
        if let Err(why) = grounds.permits(case) {
            governor.bar(&case.id, &why);
        }
    }
    let bare = cases.iter().filter(|case| grounds.needs_direct_server(case));
    governor.bar_if_third_party(bare.map(|case| case.id.clone()).collect());
    let audit = audit.map(|audit| Rc::new(RefCell::new(audit)));
    let watch = found.map(|found| watch(url, reached, claim, found)).transpose()?;
    let outside = outside::signs(audit.clone(), watch);
    Ok(Permit { governor, outside, audit, alone })
}

/// Determines what a run would do, without sending a packet.
///
/// # Errors
/// Fails for options that a run would refuse.
pub(super) fn dry_run(
    args: &TortureArgs,
    report: &Report,
    reached: &Reached,
    settings: &Settings,
    cases: &[Case],
    asked: &Asked,
) -> Result<String, Failure> {
    let class = reached.class;
    let bounds = asked.bounds(class, None).map_err(Failure::usage)?;
    let ranges = ranges(&args.safety)?;
    let grounds = permission_grounds(reached, &args.safety, None, &ranges);
    let skipped = |case: &Case| match class {
        // the content of the proof is not known yet
        Class::Public => None,
        _ => grounds.permits(case).err(),
    };
    let cases: Vec<_> = cases.iter().map(|case| (case.clone(), skipped(case))).collect();
    let wanting = (class == Class::Public).then_some(
        "a proof of permission (loadstone torture prove URL), whose groups and limits are maximums",
    );
    let (target, bounds, cases) = (&reached.target, &bounds, cases.as_slice());
    let plan = DryRun { report, target, settings, bounds, cases, wanting };
    Ok(report::torture::dry_run(&plan))
}

fn watch(
    url: &Url,
    reached: &Reached,
    claim: Claim,
    found: FoundProof,
) -> Result<ProofWatch, Failure> {
    let (url, target) = (url.clone(), &reached.target);
    let (host, fields) = (target.values.host.clone(), target.fields.clone());
    ProofWatch::start(move || Internet::new(&url, &host, &fields), claim, found).map_err(|error| {
        Failure::usage(format!("cannot start the thread that watches the proof: {error}"))
    })
}

fn permission_grounds<'a>(
    reached: &'a Reached,
    safety: &'a TortureSafety,
    proof: Option<&'a safety::Proof>,
    ranges: &'a Ranges,
) -> Grounds<'a> {
    let (class, addresses, own) = (reached.class, &reached.hosts, &safety.own);
    Grounds { class, addresses, own, proof, ranges }
}

/// Returns the third-party machines listed with `--front`.
fn ranges(safety: &TortureSafety) -> Result<Ranges, Failure> {
    let Some(path) = &safety.front else { return Ok(Ranges::default()) };
    let bytes = Disk.read(&path.to_string_lossy()).map_err(Failure::usage)?;
    let read = String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".to_owned());
    read.and_then(|text| Ranges::parse(&text))
        .map_err(|why| Failure::usage(format!("{}: {why}", path.display())))
}

/// Checks that explicitly selected cases are permitted. Other cases without permission are skipped,
/// but at least one must remain.
fn check_asked_for(
    args: &TortureArgs,
    cases: &[Case],
    grounds: &Grounds<'_>,
) -> Result<(), Failure> {
    let mut left = false;
    for case in cases {
        let named = args.what.only.iter().any(|name| case.id.eq_ignore_ascii_case(name));
        match grounds.permits(case) {
            Ok(()) => left = true,
            Err(why) if named => {
                return Err(Failure::usage(format!("{} is not permitted: {why}", case.id)));
            }
            Err(_) => {}
        }
    }
    match cases.first() {
        Some(case) if !left => {
            let why = grounds.permits(case).err().unwrap_or_default();
            Err(Failure::usage(format!("no case is permitted; {}, for one: {why}", case.id)))
        }
        _ => Ok(()),
    }
}

fn claim(url: &Url, reached: &Reached, folder: Option<&PathBuf>) -> Result<Claim, Failure> {
    let tester = match (reached.class, folder) {
        (Class::Public, Some(folder)) => key::fingerprint(folder)?,
        _ => String::new(),
    };
    Ok(Claim { tester, host: host_of(url), addresses: reached.addresses.clone() })
}

fn refused(refusal: PermitRefusal, class: Class, url: &Url, claim: &Claim) -> Failure {
    let host = url.host_str().unwrap_or_default();
    match refusal {
        PermitRefusal::Unwritten(why) if class == Class::Local => Failure::usage(format!(
            "the audit log cannot be written: {why} (targets on this machine can be tested with --no-audit)"
        )),
        PermitRefusal::Unwritten(why) => Failure::usage(format!(
            "the audit log cannot be written: {why}; set XDG_STATE_HOME to another folder"
        )),
        PermitRefusal::NotPermitted(why) => {
            let list: Vec<String> =
                claim.addresses.iter().map(|address| address.ip().to_string()).collect();
            Failure::usage(format!(
                "{} is public, and no proof of permission was found: {why}\nits owner must \
                publish the output of \"loadstone torture prove {url}\" at {FILE_PATH} on every \
                address, or as TXT at {}",
                list.join(", "),
                txt_name(host)
            ))
        }
    }
}

fn alone(folder: &Path) -> Result<File, Failure> {
    let path = folder.join("torture.lock");
    let failed = |why: String| Failure::usage(format!("the lock {}: {why}", path.display()));
    let file = File::options()
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path)
        .map_err(|error| failed(error.to_string()))?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
        failed(
            "another torture of a remote server is running, and two would exceed the limits of \
            one: wait until it ends"
                .to_owned(),
        )
    })?;
    Ok(file)
}

fn beginning(
    args: &TortureArgs,
    url: &Url,
    reached: &Reached,
    bounds: &Bounds,
) -> Map<String, Value> {
    let bounds: Map<String, Value> = safety::bounds::rows(bounds)
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.into()))
        .collect();
    let machine = rustix::system::uname();
    let node = machine.nodename().to_bytes();
    let fields = json!({
        "uid": rustix::process::getuid().as_raw(),
        "machine": safety::proof::digest(node).get(..16),
        "pid": std::process::id(),
        "arguments": words(),
        "version": env!("CARGO_PKG_VERSION"),
        "target": display_target(url),
        "addresses": reached.addresses.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "class": reached.class.id(),
        "own": args.safety.own.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "front": args.safety.front.as_ref().map(|path| path.display().to_string()),
        "contact": args.safety.contact,
        "bounds": bounds,
        "seed": args.what.seed(),
    });
    match fields {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// Returns the target without secrets, with limited length.
fn display_target(url: &Url) -> String {
    let mut url = url.clone();
    // a URL with a host accepts both
    url.set_password(None).ok();
    url.set_username("").ok();
    url.as_str().chars().take(2_000).collect()
}
