//! The visits: several servers at a time, each with one connection at a time.

use crate::oddities::ODDITIES;
use crate::survey::http::{PLAIN, questions};
use conduit::{OpenOptions, Peer};
use dialogue::talk::{Conversations, Director, Move, Talk, TalkEnd, TalkScript, Wake};
use dialogue::text;
use dialogue::text::Values;
use units::Nanos;

/// Time limit of a question.
const DEADLINE: Nanos = Nanos::from_secs(5);
/// Time that a connection is watched after its response, to see whether the server closes it.
const LINGER: Nanos = Nanos::from_secs(1);
/// Maximum wait for the close of an idle or unfinished connection.
const HORIZON: Nanos = Nanos::from_secs(75);

/// Requests to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// One plain request, for third-party servers.
    Plain,
    /// Also the harmless oddities.
    Oddities,
    /// Also how long it keeps an idle connection, and one with half a head.
    Deadlines,
}

/// A server to visit.
#[derive(Clone, Debug)]
pub struct TourStop {
    pub peer: Peer,
    /// Name for SNI; `None` without TLS.
    pub tls_name: Option<String>,
    /// Path, host, and our field lines in every request.
    pub values: Values,
    pub depth: Depth,
}

/// The replies of a server.
#[derive(Clone, Debug, Default)]
pub struct TourResult {
    /// Replies in the order of the questions, by their names; only the first if the server was
    /// unreachable.
    pub talks: Vec<(&'static str, Talk)>,
}

/// Probes of the timeouts: an idle connection, and one with an incomplete head.
pub const IDLE: &str = "an idle connection";
pub const HALF: &str = "half a head";

impl TourResult {
    pub fn talk(&self, question: &str) -> Option<&Talk> {
        self.talks.iter().find(|(name, _)| *name == question).map(|(_, talk)| talk)
    }

    /// Returns how long the server kept a state before closing it; `None` means longer than we
    /// waited, or not measured.
    pub fn deadline(&self, question: &str) -> Option<Nanos> {
        let talk = self.talk(question)?;
        matches!(talk.end, TalkEnd::Closed | TalkEnd::Broken(_)).then_some(talk.over)
    }
}

/// Visits all servers in order.
#[derive(Debug)]
pub struct Tour {
    stops: Vec<TourStop>,
    visits: Vec<TourResult>,
    at_once: usize,
    next: usize,
    /// Position on the stage, row of the server, and the question.
    under_way: Vec<(usize, usize, &'static str)>,
}

impl Tour {
    /// Creates a tour of the servers. `at_once`: number of servers visited at a time, at least 1.
    pub fn new(stops: Vec<TourStop>, at_once: usize) -> Tour {
        let visits = stops.iter().map(|_| TourResult::default()).collect();
        Tour { stops, visits, at_once: at_once.max(1), next: 0, under_way: Vec::new() }
    }

    /// Returns the replies of each server; empty for those not reached before the end.
    pub fn into_visits(self) -> Vec<TourResult> {
        self.visits
    }

    fn begin(
        &mut self,
        now: Nanos,
        stage: &mut Conversations<'_>,
        stop: usize,
        question: &'static str,
    ) {
        let script = script(&self.stops[stop], question, now);
        let place = stage.add(script);
        self.under_way.push((place, stop, question));
    }

    /// Handles a completed conversation; returns the next question.
    fn take(&mut self, place: usize, talk: Talk) -> Option<(usize, &'static str)> {
        let at = self.under_way.iter().position(|(known, _, _)| *known == place)?;
        let (_, stop, question) = self.under_way.swap_remove(at);
        let gone = matches!(talk.end, TalkEnd::Unconnected(_));
        self.visits[stop].talks.push((question, talk));
        // an unreachable server is not asked again
        if gone { None } else { Some((stop, after(question, self.stops[stop].depth)?)) }
    }
}

impl Director for Tour {
    fn direct(
        &mut self,
        now: Nanos,
        stage: &mut Conversations<'_>,
        over: Vec<(usize, Talk)>,
    ) -> Wake {
        let further: Vec<_> =
            over.into_iter().filter_map(|(place, talk)| self.take(place, talk)).collect();
        for (stop, question) in further {
            self.begin(now, stage, stop, question);
        }
        while self.under_way.len() < self.at_once && self.next < self.stops.len() {
            self.begin(now, stage, self.next, PLAIN);
            self.next += 1;
        }
        if self.under_way.is_empty() { Wake::Done } else { Wake::WhenOver }
    }
}

fn after(question: &str, depth: Depth) -> Option<&'static str> {
    let mut all: Vec<&'static str> = Vec::new();
    match depth {
        Depth::Plain => {}
        Depth::Oddities => all.extend(questions()),
        Depth::Deadlines => all.extend(questions().chain([IDLE, HALF])),
    }
    let at = all.iter().position(|known| *known == question)?;
    all.get(at + 1).copied()
}

fn script(stop: &TourStop, question: &str, now: Nanos) -> TalkScript {
    let plain = r"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n";
    let odd = ODDITIES.iter().find(|(name, _, _)| *name == question);
    let (method, written) = match (question, odd) {
        (_, Some((_, method, written))) => (*method, *written),
        (IDLE, None) => ("GET", r"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"),
        (HALF, None) => ("GET", r"GET {path} HTTP/1.1\r\nHost: {host}\r\n"),
        (_, None) => ("GET", plain),
    };
    // the texts are ours, and a test expands each of them
    let bytes = text::bytes(written, &stop.values).unwrap_or_default();
    let waits = matches!(question, IDLE | HALF);
    TalkScript {
        peer: stop.peer.clone(),
        options: OpenOptions { nodelay: true, ..OpenOptions::default() },
        tls_name: stop.tls_name.clone(),
        start: now,
        methods: vec![method.to_owned()],
        deadline: if waits { HORIZON } else { DEADLINE },
        linger: LINGER,
        hold: waits,
        ..TalkScript::new(vec![Move::Send(bytes)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_sent_in_order_with_our_identification() {
        let stop = TourStop {
            peer: Peer::Unix("x".into()),
            tls_name: None,
            values: Values {
                path: "/p".into(),
                host: "h:1".into(),
                fields: "User-Agent: who\r\n".into(),
                ..Values::default()
            },
            depth: Depth::Deadlines,
        };
        let mut asked = vec![PLAIN];
        while let Some(next) = after(asked.last().unwrap(), stop.depth) {
            asked.push(next);
        }
        assert_eq!(asked.len(), ODDITIES.len() + 3);
        for question in asked {
            let script = script(&stop, question, Nanos::ZERO);
            let Move::Send(bytes) = &script.steps[0] else { panic!("{question} sends nothing") };
            let text = String::from_utf8_lossy(bytes);
            // a line of junk has no fields
            assert!(text.contains("User-Agent: who\r\n") || text == "loadstone\r\n\r\n", "{text}");
            assert_eq!(text.ends_with("\r\n\r\n"), question != HALF, "{text}");
        }
        assert_eq!(after(PLAIN, Depth::Plain), None);
    }
}
