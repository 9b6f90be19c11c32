//! Loads modeled on Web benchmarks, as plans: requests, connections, pauses.

use crate::{
    Arrivals, Load, Plan, SessionPlan, Specweb99Plan, TargetPlan, Think, Visit, VisitGroup,
};
use std::collections::HashMap;
use units::{Nanos, ParseError, Rate, Seed, parse_count, parse_duration, quoted};
use url::Url;
use workload::fileset::{Matching, REQUESTS_MAX, Sequence, SequenceOptions, SequenceStep, Spec};

/// SURGE's ratio of requests for the most popular file to the number of files, in its published
/// run.
pub const TOP_PER_FILE: u64 = 10;
/// Maximum number of connections of a browser.
const CONNECTIONS_MAX: u32 = 16;
/// Default number of users or clients.
const USERS: u32 = 100;
const USERS_MAX: u64 = 1_000_000;
const S_CLIENT_TIMEOUT: Nanos = Nanos::from_millis(500);
const S_CLIENT_TIMEOUT_MIN: Nanos = Nanos::from_millis(1);
const S_CLIENT_TIMEOUT_MAX: Nanos = Nanos::from_secs(60);
/// Number of requests drawn for a model without an end; they repeat from the first.
const REQUESTS: u64 = 100_000;

/// A load by the name of its model: `surge-like:users=200,connections=2`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Representative {
    Files(FileLoad),
    /// S-Client (Banga and Druschel, USITS 1997): a number of sockets, each of which starts a
    /// connection every `timeout` and abandons it if it is not established by then. SYN segments
    /// are sent at the rate `sockets / timeout` regardless of what the server does.
    SClient {
        sockets: u32,
        timeout: Nanos,
    },
}

/// A load on the files of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileLoad {
    spec: Spec,
    users: u32,
    /// Number of connections over which a user fetches the embedded objects of a page.
    connections: u32,
    /// Number of SURGE's requests for the most popular file.
    top: u64,
    /// Includes SPECweb99's dynamic operations.
    dynamic: bool,
}

/// Names with descriptions, for messages.
pub const NAMES: &str = "surge-like[:users=N,files=N,connections=N,top=N], specweb99-like[:connections=N,mix=full|static], \
                         webstone-like[:clients=N], webbench-like[:clients=N,files=N] or \
                         s-client-like[:sockets=N,timeout=TIME]";

/// Parses a name with its parameters.
///
/// # Errors
/// Fails if there is no such model, it does not have a key, or a number is out of range.
pub fn parse_representative(text: &str) -> Result<Representative, ParseError> {
    let bad = |why: String| {
        ParseError(format!("{} is not a workload: {why}; choose from {NAMES}", quoted(text)))
    };
    let (name, rest) = text.split_once(':').unwrap_or((text, ""));
    let keys: &[&str] = match name {
        "surge-like" => &["users", "files", "connections", "top"],
        "specweb99-like" => &["connections", "mix"],
        "webstone-like" => &["clients"],
        "webbench-like" => &["clients", "files"],
        "s-client-like" => return s_client(rest).map_err(bad),
        _ => return Err(bad("unknown model".to_owned())),
    };
    let mut given: HashMap<&str, u64> = HashMap::new();
    let mut dynamic = true;
    for pair in rest.split(',').filter(|pair| !pair.trim().is_empty()) {
        let (key, number) = pair.split_once('=').unwrap_or((pair, ""));
        let key = keys.iter().find(|known| **known == key.trim());
        let key =
            key.ok_or_else(|| bad(format!("the parameters of {name} are {}", keys.join(", "))))?;
        if *key == "mix" {
            dynamic = match number.trim() {
                "full" => true,
                "static" => false,
                _ => return Err(bad("mix must be full, or static for files only".to_owned())),
            };
            continue;
        }
        let number = parse_count(number).map_err(|error| bad(format!("{key}: {}", error.0)))?;
        given.insert(key, number);
    }
    let sized = match (name, given.get("files"), given.get("connections")) {
        (_, Some(files), _) => format!("{name}:files={files}"),
        ("specweb99-like", None, Some(connections)) => format!("{name}:connections={connections}"),
        _ => name.to_owned(),
    };
    let spec = Spec::parse(&sized).map_err(|error| bad(error.0))?;
    let people = if name == "specweb99-like" { "connections" } else { keys[0] };
    let users = given.get(people).copied().unwrap_or(u64::from(USERS));
    let connections = match name {
        "surge-like" => given.get("connections").copied().unwrap_or(1),
        _ => 1,
    };
    if !(1..=USERS_MAX).contains(&users) {
        return Err(bad(format!("{people} must be a number from 1 to {USERS_MAX}")));
    }
    if !(1..=u64::from(CONNECTIONS_MAX)).contains(&connections) {
        return Err(bad(format!(
            "connections of a user must be a number from 1 to {CONNECTIONS_MAX}"
        )));
    }
    let (users, connections) = (users as u32, connections as u32);
    let top = match (spec, given.get("top")) {
        (_, Some(top)) => *top,
        (Spec::Surge { files }, None) => files * TOP_PER_FILE,
        _ => 1,
    };
    if !(1..=REQUESTS_MAX).contains(&top) {
        return Err(bad(format!("top must be a number from 1 to {REQUESTS_MAX}")));
    }
    Ok(Representative::Files(FileLoad { spec, users, connections, top, dynamic }))
}

/// Parses `sockets=65,timeout=500ms`; the paper uses 500 ms, longer than any round trip of its
/// network.
fn s_client(rest: &str) -> Result<Representative, String> {
    let (mut sockets, mut timeout) = (u64::from(USERS), S_CLIENT_TIMEOUT);
    for pair in rest.split(',').filter(|pair| !pair.trim().is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let wrong = |error: ParseError| format!("{}: {}", key.trim(), error.0);
        match key.trim() {
            "sockets" => sockets = parse_count(value).map_err(wrong)?,
            "timeout" => timeout = parse_duration(value).map_err(wrong)?,
            _ => return Err("the parameters of s-client-like are sockets, timeout".to_owned()),
        }
    }
    if !(1..=USERS_MAX).contains(&sockets) {
        return Err(format!("sockets must be a number from 1 to {USERS_MAX}"));
    }
    if !(S_CLIENT_TIMEOUT_MIN..=S_CLIENT_TIMEOUT_MAX).contains(&timeout) {
        return Err("timeout must be from 1ms to 1m, and above the longest round trip".to_owned());
    }
    Ok(Representative::SClient { sockets: sockets as u32, timeout })
}

impl Representative {
    /// Returns whether each user has its own sequence, so that the load needs users.
    pub fn is_per_user(&self) -> bool {
        match self {
            Representative::Files(files) => files.is_per_user(),
            Representative::SClient { .. } => false,
        }
    }

    /// Returns whether the model itself determines the load over time.
    pub fn has_rate(&self) -> bool {
        matches!(self, Representative::SClient { .. })
    }

    /// Sets the plan's load: requests at or below `base`, users, connections.
    ///
    /// # Errors
    /// Fails with a message if a sequence cannot be built.
    pub fn apply(&self, plan: &mut Plan, base: &Url, seed: u64) -> Result<(), String> {
        match *self {
            Representative::Files(files) => files.apply(plan, base, seed)?,
            Representative::SClient { sockets, timeout } => {
                let rate = Rate(f64::from(sockets) / timeout.as_secs_f64());
                plan.load = Load::Open {
                    arrivals: Arrivals::constant(rate),
                    session: None,
                    connections_max: None,
                    queue_max: None,
                };
                plan.connection.calls = Some(1);
                plan.timeouts.connect = timeout;
            }
        }
        Ok(())
    }
}

/// Interval between the starts of SURGE's users: started at once, they would be a burst.
const START_GAP: Nanos = Nanos::from_millis(50);

impl FileLoad {
    fn is_per_user(&self) -> bool {
        matches!(self.spec, Spec::Surge { .. } | Spec::Specweb99 { .. })
    }

    fn apply(&self, plan: &mut Plan, base: &Url, seed: u64) -> Result<(), String> {
        if let Spec::Specweb99 { .. } = self.spec {
            return Specweb99Plan::apply(plan, &folder(base), self.users, seed, self.dynamic);
        }
        let surge = matches!(self.spec, Spec::Surge { .. });
        let requests = (!surge).then_some(REQUESTS);
        let options = SequenceOptions {
            top: self.top,
            matching: Matching::Groups,
            off_times: surge,
            requests,
        };
        let sequence =
            workload::fileset::sequence(self.spec, &options, Seed(seed)).map_err(|error| {
                if surge { format!("{error} (top={})", self.top) } else { error.to_string() }
            })?;
        match self.spec {
            Spec::Surge { .. } => self.of_users(plan, &sequence, base)?,
            Spec::Webstone | Spec::Webbench { .. } | Spec::Specweb99 { .. } => {
                self.of_clients(plan, &sequence, base)?;
            }
        }
        Ok(())
    }

    fn of_users(&self, plan: &mut Plan, sequence: &Sequence, base: &Url) -> Result<(), String> {
        let (targets, visits) = visits_of(sequence, base, self.users as usize)?;
        plan.targets = targets.into();
        let session = SessionPlan {
            visits,
            lead: true,
            parallel: Some(self.connections),
            start_gap: START_GAP,
            ..SessionPlan::new(1, Think::None)
        };
        plan.load = Load::Closed { users: self.users, think: Think::None, session: Some(session) };
        plan.connection.per_user = self.connections;
        plan.connection.depth = Some(1);
        Ok(())
    }

    /// Sets the load of WebStone or WebBench: clients that request one file after another, each on
    /// its own connection.
    fn of_clients(&self, plan: &mut Plan, sequence: &Sequence, base: &Url) -> Result<(), String> {
        let mut list = TargetList::new(base);
        plan.sequence =
            sequence.steps().flat_map(SequenceStep::paths).map(|path| list.row(path)).collect();
        plan.targets = list.targets()?.into();
        plan.load = Load::Closed { users: self.users, think: Think::None, session: None };
        plan.connection.calls = Some(1);
        if matches!(self.spec, Spec::Webbench { .. }) {
            // two of a hundred requests are for a missing file, which is intended
            plan.expect.status = vec![(100, 399), (404, 404)];
        }
        Ok(())
    }
}

/// Returns the targets of a sequence and the visits of its users: a page, then its embedded
/// objects, then the OFF time. `base`: their folder.
///
/// # Errors
/// Fails if a path does not make a URL.
pub fn visits_of(
    sequence: &Sequence,
    base: &Url,
    users: usize,
) -> Result<(Vec<TargetPlan>, Vec<Visit>), String> {
    let mut list = TargetList::new(base);
    let mut visits = Vec::new();
    for steps in sequence.sessions(users) {
        let mut groups = Vec::with_capacity(steps.len());
        for step in steps {
            let targets = step.paths().map(|path| list.row(path)).collect();
            groups.push(VisitGroup { targets, think: step.off });
        }
        visits.push(Visit { groups });
    }
    Ok((list.targets()?, visits))
}

/// Returns the folder of a URL: without the part after its last slash.
pub fn folder(base: &Url) -> String {
    let mut base = base.clone();
    base.set_query(None);
    base.set_fragment(None);
    let text = base.as_str();
    text[..=text.rfind('/').unwrap_or(text.len() - 1)].to_owned()
}

/// Each path once, in the order of first use.
struct TargetList<'a> {
    folder: String,
    paths: Vec<&'a str>,
    rows: HashMap<&'a str, u32>,
}

impl<'a> TargetList<'a> {
    fn new(base: &Url) -> TargetList<'a> {
        TargetList { folder: folder(base), paths: Vec::new(), rows: HashMap::new() }
    }

    fn row(&mut self, path: &'a str) -> u32 {
        let paths = &mut self.paths;
        *self.rows.entry(path).or_insert_with(|| {
            paths.push(path);
            paths.len() as u32 - 1
        })
    }

    fn targets(self) -> Result<Vec<TargetPlan>, String> {
        let url = |path: &&str| {
            let url = Url::parse(&format!("{}{path}", self.folder));
            url.map(TargetPlan::new).map_err(|error| format!("{path}: {error}"))
        };
        self.paths.iter().map(url).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validate;

    fn made(text: &str) -> Plan {
        let base: Url = "http://h/site/index.html".parse().unwrap();
        let mut plan = Plan::for_url(base.clone());
        parse_representative(text).unwrap().apply(&mut plan, &base, 1).unwrap();
        assert_eq!(validate(&plan), Ok(()), "{text}");
        plan
    }

    #[test]
    fn surge_users_pause_between_pages() {
        let plan = made("surge-like:users=7,files=50,connections=2");
        let Load::Closed { users: 7, session: Some(session), .. } = &plan.load else {
            panic!("{:?}", plan.load)
        };
        assert_eq!((session.visits.len(), session.parallel, session.lead), (7, Some(2), true));
        assert_eq!(session.start_gap, Nanos::from_millis(50));
        assert_eq!((plan.connection.per_user, plan.connection.depth), (2, Some(1)));
        assert!(plan.targets.iter().all(|target| target.url.path().starts_with("/site/")));
        let groups = session.visits.iter().flat_map(|visit| &visit.groups);
        assert!(groups.clone().all(|group| group.think >= Nanos::SECOND), "OFF times");
        assert!(groups.clone().any(|group| group.targets.len() > 1), "embedded files");
    }

    /// By default, a set with this number of files has more requests than are ordered.
    #[test]
    fn a_large_set_has_a_lower_top_count() {
        let base: Url = "http://h/".parse().unwrap();
        let mut plan = Plan::for_url(base.clone());
        let large = parse_representative("surge-like:users=3,files=200000").unwrap();
        let why = large.apply(&mut plan, &base, 1).unwrap_err();
        assert!(why.contains("the top count") && why.ends_with("(top=2000000)"), "{why}");
        let plan = made("surge-like:users=3,files=200000,top=500");
        assert!(plan.targets.len() <= 200_000, "{}", plan.targets.len());
        let steps = |text: &str| match made(text).load {
            Load::Closed { session: Some(session), .. } => {
                session.visits.iter().map(|visit| visit.groups.len()).sum::<usize>()
            }
            other => panic!("{other:?}"),
        };
        let (few, many) = (steps("surge-like:files=50,top=50"), steps("surge-like:files=50"));
        assert!(few * 5 < many, "{few} {many}");
    }

    #[test]
    fn specweb99_has_its_operations_as_targets() {
        let plan = made("specweb99-like:connections=20");
        let Load::Closed { users: 20, session: None, .. } = &plan.load else {
            panic!("{:?}", plan.load)
        };
        let names = plan.targets.iter().map(|target| target.name.clone().unwrap());
        let wanted = ["static GET", "dynamic GET", "custom ad GET", "CGI GET", "POST"];
        assert_eq!(names.collect::<Vec<_>>(), wanted);
        assert_eq!(plan.targets[3].url.path(), "/site/specweb99-cgi");
        assert_eq!(Specweb99Plan::folder(&plan).unwrap().as_str(), "http://h/site/");
        let spec = plan.specweb99.unwrap();
        assert_eq!((spec.directories, spec.files_seed), (38, 1));
        assert_eq!(made("specweb99-like:mix=static").targets.len(), 1);
        for (wrong, reported) in [
            (|plan: &mut Plan| plan.stop.duration = None, "cannot be used with -n"),
            (|plan: &mut Plan| plan.request.version = crate::HttpVersion::Http2, "--http 2 or 3"),
            (|plan: &mut Plan| plan.connection.calls = Some(1), "--close or --calls"),
            (|plan: &mut Plan| drop(plan.targets.pop()), "has its operations as targets"),
        ] as [(fn(&mut Plan), &str); 4]
        {
            let mut plan = made("specweb99-like");
            wrong(&mut plan);
            let problems = validate(&plan).unwrap_err();
            assert!(problems.iter().any(|problem| problem.text.contains(reported)), "{problems:?}");
        }
    }

    #[test]
    fn clients_request_files_in_sequence() {
        let webstone = made("webstone-like:clients=8");
        assert_eq!((webstone.targets.len(), webstone.connection.calls), (5, Some(1)));
        assert_eq!(webstone.sequence.len(), 100_000);
        let webbench = made("webbench-like:clients=3,files=100");
        assert_eq!(webbench.expect.status, [(100, 399), (404, 404)]);
    }

    #[test]
    fn an_unknown_workload_is_reported() {
        for (text, reported) in [
            ("surge", "unknown model; choose from surge-like"),
            (
                "surge-like:clients=3",
                "the parameters of surge-like are users, files, connections, top",
            ),
            ("surge-like:top=0", "top must be a number from 1 to 10000000"),
            ("webstone-like:top=9", "the parameters of webstone-like are clients"),
            ("surge-like:users=0", "users must be a number from 1"),
            ("surge-like:connections=17", "connections of a user must be a number from 1 to 16"),
            ("surge-like:files=3", "files must be 10 to"),
            ("specweb99-like:mix=half", "mix must be full, or static"),
            ("s-client-like:sockets=0", "sockets must be a number from 1 to"),
            ("s-client-like:timeout=0s", "timeout must be from 1ms to 1m"),
            ("s-client-like:timeout=soon", "timeout: "),
            ("s-client-like:users=5", "the parameters of s-client-like are sockets, timeout"),
            ("webstone-like:clients=x", "clients: "),
        ] {
            let why = parse_representative(text).unwrap_err().0;
            assert!(why.contains(reported), "{text}: {why}");
        }
    }

    /// D sockets and a timeout of T: D/T connections per second, each abandoned after T.
    #[test]
    fn s_client_s_rate_is_that_of_its_sockets() {
        let plan = made("s-client-like:sockets=65,timeout=250ms");
        let Load::Open { arrivals, session: None, .. } = &plan.load else { panic!("{plan:?}") };
        assert_eq!((arrivals.from, arrivals.to), (Rate(260.0), Rate(260.0)));
        assert_eq!(
            (plan.connection.calls, plan.timeouts.connect),
            (Some(1), Nanos::from_millis(250))
        );
        let plan = made("s-client-like");
        assert_eq!(plan.timeouts.connect, Nanos::from_millis(500));
    }
}
