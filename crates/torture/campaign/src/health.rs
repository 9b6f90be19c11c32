//! Plain requests before and after a case, which check the server's health. Their User-Agent
//! records in the server's log which case sent the unusual traffic, and its content.

use crate::{TestTarget, habits};

/// Current announcement of plain requests.
#[derive(Debug, Default)]
pub(crate) struct HealthCheck {
    /// Remark for the server's log; empty before the first case.
    remark: String,
}

impl HealthCheck {
    /// Returns a plain request with the announcement.
    pub(crate) fn request(&self, target: &TestTarget) -> Vec<u8> {
        remarking(target, &self.remark)
    }

    /// Returns whether no case is over yet.
    pub(crate) fn is_first(&self) -> bool {
        self.remark.is_empty()
    }

    /// Sets the announcement.
    pub(crate) fn announce(&mut self, remark: String) {
        self.remark = remark;
    }
}

/// Appends a remark to the User-Agent of the field lines; without one they are unchanged.
fn remarked(fields: &str, remark: &str) -> String {
    let lines = fields.split_inclusive("\r\n").map(|line| {
        match line.strip_prefix("User-Agent: ").and_then(|value| value.strip_suffix("\r\n")) {
            Some(value) if !remark.is_empty() => format!("User-Agent: {value} ({remark})\r\n"),
            _ => line.to_owned(),
        }
    });
    lines.collect()
}

/// Returns a plain request on its own connection, with this remark for the server's log.
pub(crate) fn remarking(target: &TestTarget, remark: &str) -> Vec<u8> {
    let ours = remarked(&target.fields, remark);
    habits::plain_request_of(target, &format!("{ours}Connection: close\r\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remark_follows_the_user_agent() {
        let fields = "Host: a\r\nUser-Agent: loadstone-torture/1\r\nX: y\r\n";
        assert_eq!(
            remarked(fields, "before S-01"),
            "Host: a\r\nUser-Agent: loadstone-torture/1 (before S-01)\r\nX: y\r\n"
        );
        assert_eq!(remarked(fields, ""), fields);
        assert_eq!(remarked("", "before S-01"), "");
    }
}
