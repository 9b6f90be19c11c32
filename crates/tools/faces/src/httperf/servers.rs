//! `--server` and `--servers`: the targets. With several servers, each connection or session uses
//! the next one.

use super::options::{Options, Sessions};
use super::setup::{ORDER_MAX, Work, seconds};
use crate::Files;
use plan::{Visit, VisitGroup};
use units::Nanos;
use url::Url;

/// Servers that a file may name.
const SERVERS_MAX: usize = 10_000;

/// A server by the name that its Host line has.
#[derive(Clone, Debug)]
pub(super) struct Host {
    pub(super) name: String,
    pub(super) url: Url,
}

/// Reads the hosts; at least one.
///
/// # Errors
/// Fails for a file that cannot be read or names no server; for an invalid name.
pub(super) fn hosts(options: &Options, files: &dyn Files) -> Result<Vec<Host>, String> {
    let Some(file) = &options.servers else { return Ok(vec![host(options, &options.server)?]) };
    let bytes = files.read(file).map_err(|_| format!(": can't open {file}"))?;
    let names: Vec<String> = bytes
        .split(|byte| *byte == 0)
        .map(|name| String::from_utf8_lossy(name).trim().to_owned())
        .filter(|name| !name.is_empty())
        .collect();
    if names.is_empty() || names.len() > SERVERS_MAX {
        let held = names.len();
        return Err(format!(
            ": {file} names {held} servers: give 1 to {SERVERS_MAX} names, a zero byte behind each"
        ));
    }
    names.iter().map(|name| host(options, name)).collect()
}

fn host(options: &Options, name: &str) -> Result<Host, String> {
    let scheme = if options.ssl.on { "https" } else { "http" };
    let place = if name.contains(':') { format!("[{name}]") } else { name.to_owned() };
    let known = !place.is_empty() && !place.contains(['/', '?', '#', '@']);
    Url::parse(&format!("{scheme}://{place}:{}/", options.port()))
        .ok()
        .filter(|_| known)
        .map(|url| Host { name: place, url })
        .ok_or_else(|| format!(".core_addr_intern: invalid server address {name}"))
}

/// Repeats the work for several servers: connection or session k is made to server k modulo their
/// number. Request r of server s is row s·R + r of the targets, where R is the number of requests.
///
/// # Errors
/// Fails if more is laid out than is held.
pub(super) fn spread(options: &Options, work: Work, servers: usize) -> Result<Work, String> {
    if servers == 1 {
        return Ok(work);
    }
    let layout = Layout { servers: servers as u64, requests: work.requests.len() as u64 };
    let visits = if work.visits.is_empty() {
        layout.lay_out(options, &work)?
    } else {
        layout.repeat(&work.visits)
    };
    Ok(Work { sequence: Vec::new(), once: false, visits, ..work })
}

struct Layout {
    servers: u64,
    requests: u64,
}

impl Layout {
    fn row(&self, visit: u64, request: u64) -> u32 {
        ((visit % self.servers) * self.requests + request) as u32
    }

    /// Repeats described sessions, each in turn at each server.
    fn repeat(&self, visits: &[Visit]) -> Vec<Visit> {
        let count = visits.len() as u64;
        let rounds = count / common(count, self.servers) * self.servers;
        let visit = |at: u64| {
            let mut visit = visits[(at % count) as usize].clone();
            for target in visit.groups.iter_mut().flat_map(|group| &mut group.targets) {
                *target = self.row(at, u64::from(*target));
            }
            visit
        };
        (0..rounds).map(visit).collect()
    }

    /// Returns the calls by number, in groups: connection k has the calls from k·C on, C being its
    /// calls.
    fn lay_out(&self, options: &Options, work: &Work) -> Result<Vec<Visit>, String> {
        let (calls, think) = match &options.sessions {
            Some(Sessions::Fixed { calls, think, .. }) => (*calls, seconds(*think)),
            _ => (options.calls, Nanos::ZERO),
        };
        let calls = calls.max(1);
        let length = match work.sequence.len() as u64 {
            0 => self.requests,
            listed => listed,
        };
        let round = length / common(length, calls);
        let again = round / common(round, self.servers) * self.servers;
        let visits = if work.once { work.count } else { work.count.min(again) };
        if visits.saturating_mul(calls) > ORDER_MAX {
            return Err(format!(
                ": --servers lays out at most {ORDER_MAX} calls; {visits} connections of {calls} \
                 calls are more: give fewer URIs or servers"
            ));
        }
        let request = |call: u64| match work.sequence.as_slice() {
            [] => call % length,
            sequence => u64::from(sequence[(call % length) as usize]),
        };
        let visit = |visit: u64| {
            let all: Vec<u32> = (visit * calls..(visit + 1) * calls)
                .take_while(|call| !work.once || *call < length)
                .map(|call| self.row(visit, request(call)))
                .collect();
            let burst = usize::try_from(options.burst.clamp(1, calls)).unwrap_or(usize::MAX);
            let group = |targets: &[u32]| VisitGroup { targets: targets.to_vec(), think };
            Visit { groups: all.chunks(burst).map(group).collect() }
        };
        Ok((0..visits).map(visit).collect())
    }
}

/// Returns the greatest common divisor; both are above zero.
fn common(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::httperf::sesslog::SessionRequest;

    fn visits(options: &Options, requests: usize, sequence: &[u32], once: bool) -> String {
        let get = SessionRequest { method: "GET", uri: b"/".to_vec(), contents: Vec::new() };
        let count = options.count();
        let work = Work {
            requests: vec![get; requests],
            sequence: sequence.to_vec(),
            once,
            visits: Vec::new(),
            count,
        };
        let group = |group: &VisitGroup| {
            group.targets.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
        };
        let visit = |visit: &Visit| visit.groups.iter().map(group).collect::<Vec<_>>().join(" ");
        spread(options, work, 2).unwrap().visits.iter().map(visit).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn connections_take_the_servers_in_turn() {
        let options = |conns, calls, burst| Options { conns, calls, burst, ..Options::default() };
        assert_eq!(visits(&options(9, 1, 1), 1, &[], false), "0; 1");
        assert_eq!(visits(&options(9, 3, 2), 1, &[], false), "0,0 0; 1,1 1");
        // three URIs, two calls each: the pattern begins again after six connections
        assert_eq!(visits(&options(9, 2, 1), 3, &[], false), "0 1; 5 3; 1 2; 3 4; 2 0; 4 5");
        assert_eq!(visits(&options(2, 2, 1), 3, &[], false), "0 1; 5 3");
        // a list that ends
        assert_eq!(visits(&options(2, 2, 1), 3, &[], true), "0 1; 5");
        assert_eq!(visits(&options(3, 1, 1), 2, &[1, 1, 0], false), "1; 3; 0");
    }

    #[test]
    fn described_sessions_take_them_too() {
        let visit =
            |row| Visit { groups: vec![VisitGroup { targets: vec![row], think: Nanos::SECOND }] };
        let layout = Layout { servers: 2, requests: 3 };
        let rows = |visits: &[Visit]| -> Vec<u32> {
            layout.repeat(visits).iter().map(|visit| visit.groups[0].targets[0]).collect()
        };
        assert_eq!(rows(&[visit(0), visit(1), visit(2)]), [0, 4, 2, 3, 1, 5]);
        assert_eq!(rows(&[visit(0), visit(2)]), [0, 5]);
    }

    #[test]
    fn too_much_is_refused() {
        let options = Options { conns: 2_000_000, calls: 1_000_001, ..Options::default() };
        let work = Work {
            requests: vec![SessionRequest { method: "GET", uri: Vec::new(), contents: Vec::new() }],
            sequence: Vec::new(),
            once: false,
            visits: Vec::new(),
            count: 2_000_000,
        };
        assert!(spread(&options, work, 2).is_err());
    }
}
