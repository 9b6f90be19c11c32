//! Sends requests through a proxy. Records what arrives at our own origin behind it, then tests how
//! a real server interprets that, or the original requests.

use crate::{
    GRACE, PLAIN_CALLS, Runner, Settings, TestTarget, Unwatched, World, habits, preconditions,
};
use dialogue::governor::Stop;
use dialogue::http2::{Protocol, write};
use dialogue::http3;
use dialogue::talk::{Move, Talk, TalkEnd, TalkScript};
use torture::chain::{
    Arrival, ChainRequest, ChainResult, ChainRow, Handling, Meeting, changes, merge_difference,
};
use torture::framing;
use torture::judge;
use units::Nanos;

/// Timeout of a conversation; the origin responds within a fraction of it.
const TIME: Nanos = Nanos::from_secs(3);
/// Interval and maximum number of queries on whether the origin has received everything.
const QUERY_INTERVAL: Nanos = Nanos::from_millis(50);
const QUERIES_MAX: u32 = 60;

/// Number of initial plain requests, and their interval.
const WAKES_MAX: u32 = 4;
const WAKE_EVERY: Nanos = Nanos::SECOND;

/// Server with a fixed response that records what arrives, one connection at a time.
pub trait RecordingOrigin {
    /// Returns the bytes that arrived since the previous call, in the order of the connections;
    /// `None` while data still arrives.
    fn take(&mut self) -> Option<Vec<Arrival>>;
}

/// The tested servers and their order.
#[derive(Clone, Copy, Debug)]
pub struct ChainTargets<'a> {
    /// The proxy, with a page that it forwards.
    pub front: &'a TestTarget,
    /// Server behind the proxy, or a candidate for it.
    pub back: Option<&'a TestTarget>,
}

/// Sends each request through the proxy, then sends what arrived, or the original request, to the
/// server.
pub fn chain(
    targets: ChainTargets<'_>,
    requests: &[ChainRequest],
    mut origin: Option<&mut dyn RecordingOrigin>,
    world: &mut dyn World,
) -> ChainResult {
    let mut result = ChainResult::default();
    let through = {
        let (settings, mut nobody) = (Settings::default(), Unwatched);
        let mut runner = Runner::new(targets.front, &settings, &[], world, &mut nobody);
        send_through_proxy(&mut runner, requests, origin.as_deref_mut(), &mut result)
    };
    if let (Ok(()), Some(back)) = (&through, targets.back) {
        let (settings, mut nobody) = (Settings::default(), Unwatched);
        let mut runner = Runner::new(back, &settings, &[], world, &mut nobody);
        if let Err(why) = send_directly(&mut runner, origin.is_some(), &mut result) {
            result.ended_early = Some(format!("the server behind the proxy: {why}"));
        }
    }
    if let Err(why) = through {
        result.ended_early = Some(why);
    }
    match world.stopped() {
        Some(Stop::Interrupted) => result.interrupted = true,
        Some(stop) => result.ended_early = Some(stop.why().to_owned()),
        None => {}
    }
    result
}

fn send_through_proxy(
    runner: &mut Runner<'_>,
    requests: &[ChainRequest],
    mut origin: Option<&mut (dyn RecordingOrigin + '_)>,
    result: &mut ChainResult,
) -> Result<(), String> {
    wake(runner);
    if let Some(origin) = origin.as_deref_mut() {
        collect_arrivals(runner, origin);
    }
    let plain = preconditions::check(runner).map_err(|why| format!("through the proxy: {why}"))?;
    runner.profile.learn_plain(plain);
    if let Some(origin) = origin.as_deref_mut() {
        let heard = collect_arrivals(runner, origin);
        if heard.len() < PLAIN_CALLS {
            return Err(format!(
                "{} of {PLAIN_CALLS} plain requests through the proxy arrived: configure the \
                proxy to forward to the --origin address and not to cache",
                heard.len()
            ));
        }
    }
    for request in requests {
        if runner.is_stopped() {
            break;
        }
        let (values, ours) = (&runner.target.values, &runner.target.fields);
        let (sent, plain) = (request.bytes(values, ours)?, request.in_http1(values, ours)?);
        let talk = send_request(runner, &sent, origin.is_none());
        let arrived = match origin.as_deref_mut() {
            Some(origin) => collect_arrivals(runner, origin),
            None => Vec::new(),
        };
        let answered = !talk.replies.responses.is_empty() || talk.end != TalkEnd::Silent;
        let parted = request.has_frames().then(|| merge_difference(&arrived)).flatten();
        let handling = origin.is_some().then(|| match Handling::new(&arrived, answered) {
            Handling::MadeClear if parted.is_some() => Handling::PassedOn,
            other => other,
        });
        let first = arrived.first().map(|arrival| arrival.bytes.as_slice());
        result.rows.push(ChainRow {
            request: request.clone(),
            front: judge::seen(&talk),
            handling,
            changes: first.map_or_else(Vec::new, |first| changes(&plain, first)),
            faults: first.map_or_else(Vec::new, |first| framing::read(first).faults),
            arrived,
            sent,
            parted,
            back: None,
            out_of_step: judge::out_of_step(&talk, runner.profile.plain()),
        });
    }
    Ok(())
}

/// Sends plain requests until one is served: a proxy that did not reach its server at first may
/// need a request to retry.
fn wake(runner: &mut Runner<'_>) {
    for _ in 0..WAKES_MAX {
        let plain = habits::plain_request(runner.target, "");
        let talk = runner.ask(&plain);
        let served = talk.replies.responses.first().is_some_and(|response| response.status < 500);
        if served || runner.is_stopped() {
            return;
        }
        runner.world.pause(WAKE_EVERY);
    }
}

/// Sends what arrived, or the requests themselves, directly to the server.
fn send_directly(
    runner: &mut Runner<'_>,
    recorded: bool,
    result: &mut ChainResult,
) -> Result<(), String> {
    let plain = preconditions::check(runner)?;
    runner.profile.learn_plain(plain);
    for row in &mut result.rows {
        if runner.is_stopped() {
            break;
        }
        let bytes = match (row.arrived.first(), recorded) {
            (Some(arrival), _) => arrival.bytes.clone(),
            (None, true) => continue,
            (None, false) => row.sent.clone(),
        };
        let talk = send_request(runner, &bytes, true);
        row.back = Some((judge::seen(&talk), Meeting::new(&talk, runner.profile.plain())));
    }
    Ok(())
}

/// Sends these bytes on a new connection, optionally followed by a plain request.
fn send_request(runner: &mut Runner<'_>, bytes: &[u8], followed: bool) -> Talk {
    let frames = runner.target.protocol.has_frames();
    let opening = match runner.target.protocol {
        Protocol::Http1 => Vec::new(),
        Protocol::Http2 | Protocol::Http2Raw => write::opening(),
        Protocol::Http3 | Protocol::Datagrams => http3::write::opening(),
    };
    let sent = [&opening, bytes].concat();
    let mut script: TalkScript = runner.bare(vec![Move::Send(sent)], TIME);
    script.methods = vec!["POST".to_owned()];
    // frames go to a proxy before a recording origin, so no follow-up is needed
    script.follow_up = (followed && !frames).then(|| habits::plain_request(runner.target, ""));
    script.grace = GRACE;
    runner.hold(script)
}

fn collect_arrivals(runner: &mut Runner<'_>, origin: &mut dyn RecordingOrigin) -> Vec<Arrival> {
    for _ in 0..QUERIES_MAX {
        runner.world.pause(QUERY_INTERVAL);
        if let Some(arrived) = origin.take() {
            return arrived;
        }
    }
    origin.take().unwrap_or_default()
}
