//! Plain requests before and after a case, which ask for nothing but health: they say to the server's own log,
//! by their User-Agent, which case its odd traffic is of and what went out by then.

use crate::{TestTarget, habits};

/// What plain requests say at present.
#[derive(Debug, Default)]
pub(crate) struct HealthCheck {
    /// To the server's log; empty before the first case.
    remark: String,
}

impl HealthCheck {
    /// A plain request that says so.
    pub(crate) fn request(&self, target: &TestTarget) -> Vec<u8> {
        remarking(target, &self.remark)
    }

    /// No case is over yet.
    pub(crate) fn is_first(&self) -> bool {
        self.remark.is_empty()
    }

    /// What they say from now on.
    pub(crate) fn say(&mut self, remark: String) {
        self.remark = remark;
    }
}

/// Field lines with a remark at the end of the User-Agent; without one they stay as they are.
fn remarked(fields: &str, remark: &str) -> String {
    let lines = fields.split_inclusive("\r\n").map(|line| {
        match line.strip_prefix("User-Agent: ").and_then(|value| value.strip_suffix("\r\n")) {
            Some(value) if !remark.is_empty() => format!("User-Agent: {value} ({remark})\r\n"),
            _ => line.to_owned(),
        }
    });
    lines.collect()
}

/// A plain request, alone on its connection, that says this to the server's log.
pub(crate) fn remarking(target: &TestTarget, remark: &str) -> Vec<u8> {
    let ours = remarked(&target.fields, remark);
    habits::plain_request_of(target, &format!("{ours}Connection: close\r\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remark_stands_behind_the_name() {
        let fields = "Host: a\r\nUser-Agent: loadstone-torture/1\r\nX: y\r\n";
        assert_eq!(
            remarked(fields, "before S-01"),
            "Host: a\r\nUser-Agent: loadstone-torture/1 (before S-01)\r\nX: y\r\n"
        );
        assert_eq!(remarked(fields, ""), fields);
        assert_eq!(remarked("", "before S-01"), "");
    }
}
