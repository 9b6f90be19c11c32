//! Chooses how the kernel's sockets of a run are read and written: by epoll, or by io_uring if
//! requested and available.

use plan::{HttpVersion, Plan, StackChoice};
use std::io;

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

/// Returns the loop that the plan's connections use on this machine, and a sentence with the reason
/// if it is not the requested one.
pub(crate) fn choose(plan: &Plan) -> (SocketLoop, Option<String>) {
    choose_loop(plan, net::reactor::probe_ring)
}

/// Chooses the loop. `probe`: whether io_uring is available.
fn choose_loop(
    plan: &Plan,
    probe: impl FnOnce() -> io::Result<()>,
) -> (SocketLoop, Option<String>) {
    if plan.driver.stack != StackChoice::KernelBatches {
        return (SocketLoop::Epoll, None);
    }
    let because = |reason: &str| {
        let note = format!("--stack kernel:batches: sockets go one by one, by epoll: {reason}");
        (SocketLoop::Epoll, Some(note))
    };
    if plan.request.version == HttpVersion::Http3 {
        return because("HTTP/3 goes over UDP");
    }
    if plan.websocket.read_rate.is_some() && plan.is_websocket() {
        return because("--ws-read-rate paces each read");
    }
    if plan.tunnels_websockets() {
        return because("WebSockets share connections of HTTP/2");
    }
    match probe() {
        Ok(()) => (SocketLoop::Ring, None),
        Err(error) => because(&net::reactor::ring_unavailable_reason(&error, "Linux 6.1")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(version: HttpVersion, refusal: Option<io::Error>) -> (SocketLoop, Option<String>) {
        let url = "http://127.0.0.1:1/".parse().expect("a URL");
        let mut plan = Plan::for_url(url);
        plan.driver.stack = StackChoice::KernelBatches;
        plan.request.version = version;
        choose_loop(&plan, || refusal.map_or(Ok(()), Err))
    }

    #[test]
    fn unavailable_resources_are_reported_with_a_reason() {
        let first = HttpVersion::Http11;
        assert_eq!(chosen(first, None), (SocketLoop::Ring, None));
        let describe = |version, refusal| {
            let (way, note) = chosen(version, refusal);
            assert_eq!(way, SocketLoop::Epoll);
            let note = note.unwrap_or_default();
            let way = "--stack kernel:batches: sockets go one by one, by epoll: ";
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
        assert_eq!(describe(HttpVersion::Http3, None).as_deref(), Ok("HTTP/3 goes over UDP"));
    }
}
