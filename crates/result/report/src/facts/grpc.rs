//! One-line facts of calls of gRPC.

use crate::words::{counted, printable};
use record::run::GrpcRecord;
use units::show;

/// Characters of a message, and messages, that are shown.
const MESSAGE_MAX: usize = 160;
const MESSAGES_MAX: usize = 5;

/// How many calls ended with which status, and what the server said of those that failed.
pub(crate) fn facts(grpc: &GrpcRecord) -> Vec<(&'static str, String)> {
    let one = |status: &record::run::GrpcStatusRecord| {
        let unexpected = if status.expected { "" } else { " (unexpected)" };
        format!("{} {}{unexpected}", status.name, show::count(status.calls))
    };
    let list: Vec<String> = grpc.statuses.iter().map(one).collect();
    let text =
        if list.is_empty() { "no response with a status".to_owned() } else { list.join(", ") };
    let mut lines = vec![("gRPC", text)];
    if grpc.without_status > 0 {
        let responses = counted(grpc.without_status, "response");
        lines.push(("", format!("{responses} without grpc-status, counted by HTTP status")));
    }
    let mut messages: Vec<(&String, &u64)> = grpc.messages.iter().collect();
    messages.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    lines.extend(messages.into_iter().take(MESSAGES_MAX).map(|(message, count)| {
        ("", format!("{} x {}", show::count(*count), printable(message, MESSAGE_MAX)))
    }));
    lines
}
