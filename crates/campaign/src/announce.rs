//! What the server's own log is told: ordinary requests whose User-Agent names the case before and
//! after its odd traffic, and every minute while it goes on, with what went out by then.

use super::{PLAIN_DEADLINE, Runner, habits};
use dialogue::governor::Spent;
use dialogue::talk::{Move, TalkScript};
use torture::case::Case;
use torture::judge::TestOutcome;
use torture::result::CaseResult;
use units::show;

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

impl Runner<'_> {
    /// A plain request that says this to the server's log.
    pub(super) fn remarking(&self, remark: &str, fields: &str) -> Vec<u8> {
        let ours = remarked(&self.target.fields, remark);
        habits::plain_request_of(self.target, &format!("{ours}{fields}"))
    }

    /// Says what comes; from now on the time of the case counts, and what goes out is its own.
    pub(super) fn announce(&mut self, case: &Case) -> Spent {
        if self.remark.is_empty() {
            self.ask(&self.remarking(&format!("before {}", case.id), "Connection: close\r\n"));
        }
        let now = self.world.now();
        let template = format!("during {}: {}", case.id, dialogue::governor::SPENT);
        let bytes = self.remarking(&template, "Connection: close\r\n");
        let beacon = self.bare(vec![Move::Send(bytes)], PLAIN_DEADLINE);
        let beacon = TalkScript { probe: true, ..beacon };
        let governor = self.world.governor();
        governor.begin_case();
        governor.set_beacon(now, Some(beacon));
        governor.spent()
    }

    /// The case is over but for its gate, whose plain requests say so.
    pub(super) fn conclude(&mut self, before: Spent, result: &mut CaseResult) {
        let now = self.world.now();
        let governor = self.world.governor();
        let spent = governor.spent().since(before);
        let cut_off = governor.case_ends().is_some_and(|at| at <= now);
        let bound = governor.bounds().map(|bounds| bounds.case_max);
        governor.end_case();
        governor.set_beacon(now, None);
        result.spent = spent;
        self.remark = format!("after {}: {}", result.case.id, spent.words());
        if let Some(bound) = bound.filter(|_| cut_off) {
            let span = show::duration(bound);
            result.notes.push(format!("cut off by the bound on the time of a case, {span}"));
            if result.case.exchanges.len() > result.exchanges.len() {
                result.outcome = result.outcome.max(TestOutcome::Inconclusive);
            }
        }
    }

    /// The bound on its time has ended the case.
    pub(super) fn case_is_over(&mut self) -> bool {
        let now = self.world.now();
        self.world.governor().case_ends().is_some_and(|at| at <= now)
    }
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
