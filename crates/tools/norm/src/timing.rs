//! The fourteen timing points of Swerve's chapter, measured at the corresponding places.
//!
//! Each measurement is a line of the log, `Timing Listener setupConn 67` in microseconds. Those
//! known before the head of a response is sent are also in its `Server-Timing` field (W3C Server
//! Timing); those known at the end of a chunked response are in its trailer.

use std::cell::RefCell;
use std::fmt::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::log::{Level, Log};

/// Kind of measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Point {
    /// The list of timeouts accepts another entry.
    AbortRequest,
    /// A connection's timeout is created, including the above.
    AbortCreate,
    /// A new connection is set up: a socket option, its addresses, its time-out.
    SetupConn,
    /// A request is read and parsed: from its first byte to the end of its body.
    Get,
    /// The node for the path is found and the request prepared for it; not the node's own work.
    Request,
    /// Time for the response's content, from the first requested piece to the last written one.
    StreamEntity,
    /// A response is sent, head and content.
    Response,
    /// A request is dealt with once it is read: finding the node, its work, the response.
    ToStore,
    /// All requests of a connection.
    Talk,
    /// The socket is shut and closed.
    Close,
    /// A connection's temporary files and its time-out are cleaned up.
    Release,
    /// A connection from its set-up to its clean-up: talk, close and release.
    Run,
    /// Time to notify the listener that a connection has ended, which releases its slot.
    Died,
    /// A connection from its acceptance to its end.
    Connection,
}

/// Every point: its name in the log, and in a `Server-Timing` field.
pub(crate) const POINTS: [(Point, &str, &str); 14] = [
    (Point::AbortRequest, "abort request", "abort-request"),
    (Point::AbortCreate, "abort create", "abort-create"),
    (Point::SetupConn, "Listener setupConn", "setup-conn"),
    (Point::Get, "HTTP_1_0 get", "get"),
    (Point::Request, "GenNode request", "request"),
    (Point::StreamEntity, "HTTP_1_0 stream_entity", "stream-entity"),
    (Point::Response, "HTTP_1_0 response", "response"),
    (Point::ToStore, "HTTP_1_0 to_store", "to-store"),
    (Point::Talk, "Listener talk", "talk"),
    (Point::Close, "Listener close", "close"),
    (Point::Release, "Listener release", "release"),
    (Point::Run, "Listener run", "run"),
    (Point::Died, "Listener died", "died"),
    (Point::Connection, "Listener connection", "connection"),
];

/// An instant, when timing is on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Started(Option<Instant>);

impl Started {
    /// Returns the current time; `None` if timing is off.
    pub(crate) fn now(on: bool) -> Started {
        Started(on.then(Instant::now))
    }

    /// Returns the time since; `None` if timing is off.
    pub(crate) fn elapsed(self) -> Option<Duration> {
        self.0.map(|start| start.elapsed())
    }
}

/// Measurements of a connection.
#[derive(Debug)]
pub(crate) struct VisitTiming {
    on: bool,
    log: Arc<Log>,
    /// Lines not written yet: the time to write a line would be included in a running measurement.
    lines: RefCell<String>,
    /// Text for the next response's `Server-Timing`.
    field: RefCell<String>,
}

impl VisitTiming {
    pub(crate) fn new(on: bool, log: Arc<Log>) -> VisitTiming {
        VisitTiming { on, log, lines: RefCell::default(), field: RefCell::default() }
    }

    pub(crate) fn is_enabled(&self) -> bool {
        self.on
    }

    pub(crate) fn start(&self) -> Started {
        Started::now(self.on)
    }

    /// Ends a measurement and logs it.
    pub(crate) fn stop(&self, point: Point, started: Started) {
        if let Some(span) = started.elapsed() {
            self.take(point, span);
        }
    }

    /// Ends a measurement that the next response's `Server-Timing` includes.
    pub(crate) fn stop_and_report(&self, point: Point, started: Started) {
        if let Some(span) = started.elapsed() {
            self.take(point, span);
            append(&mut self.field.borrow_mut(), point, span);
        }
    }

    fn take(&self, point: Point, span: Duration) {
        let line = format!("Timing {} {}\n", POINTS[point as usize].1, span.as_micros());
        self.lines.borrow_mut().push_str(&line);
    }

    /// Returns the text of the field, once: measurements before a response belong to that response.
    pub(crate) fn field(&self) -> Option<String> {
        let text = std::mem::take(&mut *self.field.borrow_mut());
        (!text.is_empty()).then_some(text)
    }

    /// Writes the collected lines.
    pub(crate) fn flush(&self) {
        if self.on {
            let lines = std::mem::take(&mut *self.lines.borrow_mut());
            self.log.write(Level::Debug, &lines);
        }
    }
}

/// Appends a member to a `Server-Timing` list, with the duration in milliseconds.
pub(crate) fn append(field: &mut String, point: Point, span: Duration) {
    let comma = if field.is_empty() { "" } else { ", " };
    let millis = span.as_secs_f64() * 1e3;
    write!(field, "{comma}{};dur={millis:.3}", POINTS[point as usize].2)
        .expect("writing to a String cannot fail");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_in_table_order() {
        for (index, (point, ..)) in POINTS.iter().enumerate() {
            assert_eq!(*point as usize, index);
        }
    }

    #[test]
    fn a_field_lists_names_and_milliseconds() {
        let mut field = String::new();
        append(&mut field, Point::AbortRequest, Duration::from_micros(18));
        append(&mut field, Point::StreamEntity, Duration::from_nanos(1_641_499));
        assert_eq!(field, "abort-request;dur=0.018, stream-entity;dur=1.641");
    }

    #[test]
    fn nothing_is_measured_when_timing_is_off() {
        let timing = VisitTiming::new(false, Arc::new(Log::to_stderr(Level::Error)));
        timing.stop_and_report(Point::Get, timing.start());
        assert_eq!(timing.field(), None);
        let timing = VisitTiming::new(true, Arc::new(Log::to_stderr(Level::Error)));
        timing.stop_and_report(Point::Get, timing.start());
        timing.stop(Point::Talk, timing.start());
        let field = timing.field().unwrap();
        assert!(field.starts_with("get;dur=") && !field.contains("talk"), "{field}");
        assert_eq!(timing.field(), None);
        let lines = timing.lines.borrow().clone();
        assert!(
            lines.starts_with("Timing HTTP_1_0 get ") && lines.contains("\nTiming Listener talk ")
        );
    }
}
