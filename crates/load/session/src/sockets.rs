//! Chooses between epoll and io_uring for the kernel sockets of a run.

use plan::{HttpVersion, Load, Plan, StackChoice, Think};
use record::run::FirstCall;
use std::io;
use std::ops::RangeInclusive;

/// The loop of a worker over the kernel's sockets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SocketLoop {
    #[default]
    Epoll,
    Ring,
}

impl SocketLoop {
    /// Returns the name in reports.
    pub(crate) fn name(self) -> &'static str {
        match self {
            SocketLoop::Epoll => "epoll",
            SocketLoop::Ring => "kernel TCP by io_uring",
        }
    }
}

/// Number of connections per worker at which io_uring needs less CPU per call than epoll, as
/// measured in bench/history/sockets-by-io-uring.md.
const RING_CONNECTIONS: RangeInclusive<u32> = 16..=256;

/// Maximum length of a response, in bytes, at which io_uring needs less CPU: longer responses are
/// copied out of its buffers.
const RING_RESPONSE_MAX: u64 = 8 << 10;

/// Returns the loop that the plan requests, and a sentence with the reason if this machine or plan
/// cannot use it. A plan that does not set it uses epoll until [`suited`] is called.
pub(crate) fn requested(plan: &Plan) -> (SocketLoop, Option<String>) {
    requested_where(plan, net::reactor::probe_ring)
}

fn requested_where(
    plan: &Plan,
    probe: impl FnOnce() -> io::Result<()>,
) -> (SocketLoop, Option<String>) {
    if plan.driver.stack != StackChoice::KernelBatches {
        return (SocketLoop::Epoll, None);
    }
    match obstacle(plan, probe) {
        None => (SocketLoop::Ring, None),
        Some(reason) => {
            let note = format!("--stack kernel:batches: uses epoll: {reason}");
            (SocketLoop::Epoll, Some(note))
        }
    }
}

/// Returns the loop that costs less CPU per call for the plan's load on `workers` threads; `None`
/// if the plan sets the loop. `first`: the call before the run.
pub(crate) fn suited(plan: &Plan, workers: u32, first: &FirstCall) -> Option<SocketLoop> {
    if plan.driver.stack != StackChoice::Auto {
        return None;
    }
    let cheaper =
        ring_is_cheaper(plan, workers, first) && obstacle(plan, net::reactor::probe_ring).is_none();
    Some(if cheaper { SocketLoop::Ring } else { SocketLoop::Epoll })
}

/// Returns whether io_uring needs less CPU than epoll. This holds if each turn has several reads
/// and writes: in a closed loop without pauses, with many connections per worker and short
/// responses. Over TLS it holds for kept connections with one call at a time.
fn ring_is_cheaper(plan: &Plan, workers: u32, first: &FirstCall) -> bool {
    let Load::Closed { users, think: Think::None, session: None } = &plan.load else {
        return false;
    };
    let [target] = &plan.targets[..] else { return false };
    let is_http1 = matches!(plan.request.version, HttpVersion::Http10 | HttpVersion::Http11);
    let has_http2 = plan.request.version == HttpVersion::Http2 && !plan.is_grpc();
    let is_one_by_one = plan.connection.pipeline == 1 && plan.connection.calls.is_none();
    let suits = match target.url.scheme() {
        "http" => is_http1,
        "https" => (is_http1 || has_http2) && is_one_by_one,
        _ => false,
    };
    suits
        && plan.journeys.is_none()
        && plan.scenarios.is_empty()
        && plan.stages.is_none()
        && first.failure.is_none()
        && first.length <= RING_RESPONSE_MAX
        && plan.connection.idle.is_none()
        && RING_CONNECTIONS.contains(&(users / workers.max(1)))
}

/// Returns the reason why the plan's connections cannot use io_uring. `probe`: tests whether this
/// machine supports it.
fn obstacle(plan: &Plan, probe: impl FnOnce() -> io::Result<()>) -> Option<String> {
    if plan.request.version == HttpVersion::Http3 {
        return Some("HTTP/3 uses UDP".into());
    }
    if plan.websocket.read_rate.is_some() && plan.is_websocket() {
        return Some("--ws-read-rate paces each read".into());
    }
    if plan.tunnels_websockets() {
        return Some("WebSockets share connections of HTTP/2".into());
    }
    let refusal = probe().err()?;
    Some(net::reactor::ring_unavailable_reason(&refusal, "Linux 6.1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(version: HttpVersion, refusal: Option<io::Error>) -> (SocketLoop, Option<String>) {
        let url = "http://127.0.0.1:1/".parse().expect("a URL");
        let mut plan = Plan::for_url(url);
        plan.driver.stack = StackChoice::KernelBatches;
        plan.request.version = version;
        requested_where(&plan, || refusal.map_or(Ok(()), Err))
    }

    #[test]
    fn unavailable_resources_are_reported_with_a_reason() {
        let first = HttpVersion::Http11;
        assert_eq!(chosen(first, None), (SocketLoop::Ring, None));
        let describe = |version, refusal| {
            let (way, note) = chosen(version, refusal);
            assert_eq!(way, SocketLoop::Epoll);
            let note = note.unwrap_or_default();
            let way = "--stack kernel:batches: uses epoll: ";
            note.strip_prefix(way).map(str::to_owned).ok_or(note)
        };
        let errno = |number| Some(io::Error::from_raw_os_error(number));
        assert_eq!(
            describe(first, errno(1)).as_deref(),
            Ok(
                "this machine does not allow io_uring (the setting kernel.io_uring_disabled, or the \
                profile of a container)"
            )
        );
        assert_eq!(
            describe(first, errno(22)).as_deref(),
            Ok("this kernel's io_uring does not support that; Linux 6.1 does")
        );
        // a kernel without io_uring, or a profile that hides it
        assert_eq!(
            describe(first, errno(38)).as_deref(),
            Ok("this kernel's io_uring does not support that; Linux 6.1 does")
        );
        assert_eq!(
            describe(first, errno(24)).as_deref(),
            Ok("io_uring does not start: Too many open files (os error 24)")
        );
        assert_eq!(describe(HttpVersion::Http3, None).as_deref(), Ok("HTTP/3 uses UDP"));
    }

    fn url(text: &str) -> url::Url {
        text.parse().expect("a URL")
    }

    fn closed(users: u32) -> Load {
        Load::Closed { users, think: Think::None, session: None }
    }

    /// A loop over many connections with short responses uses io_uring; everything else epoll.
    #[test]
    fn many_connections_with_short_responses_suit_io_uring() {
        let cheaper = |workers: u32, length: u64, change: fn(&mut Plan)| {
            let mut plan = Plan::for_url("http://127.0.0.1:1/".parse().expect("a URL"));
            plan.load = closed(64);
            change(&mut plan);
            let first = FirstCall { status: 200, length, ..FirstCall::default() };
            ring_is_cheaper(&plan, workers, &first)
        };
        assert!(cheaper(1, 13, |_| {}));
        assert!(cheaper(4, 8 << 10, |_| {}));
        assert!(!cheaper(5, 13, |_| {}), "12 connections for each worker");
        assert!(!cheaper(1, (8 << 10) + 1, |_| {}), "long responses");
        let secure: fn(&mut Plan) = |plan| plan.targets[0].url = url("https://127.0.0.1:1/");
        assert!(cheaper(1, 13, secure));
        assert!(cheaper(1, 13, |plan| {
            plan.targets[0].url = url("https://127.0.0.1:1/");
            plan.request.version = HttpVersion::Http2;
        }));
        let others: [fn(&mut Plan); 7] = [
            |plan| plan.load = closed(5_000),
            |plan| plan.load = closed(1),
            |plan| plan.request.version = HttpVersion::Http2,
            |plan| {
                plan.targets[0].url = url("https://127.0.0.1:1/");
                plan.request.version = HttpVersion::Http2;
                plan.connection.pipeline = 2;
            },
            |plan| {
                plan.targets[0].url = url("https://127.0.0.1:1/");
                plan.connection.calls = Some(1);
            },
            |plan| plan.targets[0].url = url("ws://127.0.0.1:1/"),
            |plan| *plan.targets = vec![plan.targets[0].clone(), plan.targets[0].clone()],
        ];
        assert!(others.iter().all(|change| !cheaper(1, 13, *change)));
    }

    #[test]
    fn a_plan_that_sets_the_loop_keeps_it() {
        let mut plan = Plan::for_url("http://127.0.0.1:1/".parse().expect("a URL"));
        plan.load = closed(64);
        for stack in [StackChoice::Kernel, StackChoice::KernelBatches] {
            plan.driver.stack = stack;
            assert_eq!(suited(&plan, 1, &FirstCall::default()), None);
        }
        plan.driver.stack = StackChoice::Auto;
        plan.load = closed(1);
        assert_eq!(suited(&plan, 1, &FirstCall::default()), Some(SocketLoop::Epoll));
    }
}
