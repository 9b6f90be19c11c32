//! One-line facts of gRPC calls.

use crate::words::{counted, printable};
use record::run::GrpcRecord;
use units::show;

/// Maximum number of characters of a message, and of messages shown.
const MESSAGE_MAX: usize = 160;
const MESSAGES_MAX: usize = 5;

/// Returns the number of calls by status, and the server's messages for the failed ones.
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
        ("", format!("{} × {}", show::count(*count), printable(message, MESSAGE_MAX)))
    }));
    lines
}
