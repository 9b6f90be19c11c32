//! The server's processes beside the cases, where the world shows them: who ended in the course of
//! which case, what the server holds before and after it, and what is made of that. It only makes
//! certain what well-behaved clients suggest: a server that cannot be seen is judged without.

use crate::World;
use sample::{Death, ServerState, together};
use torture::judge::TestOutcome;
use torture::result::CaseResult;
use torture::result::{Meanwhile, ServerRow, ServerSeen};
use units::Nanos;

/// Ends of processes of one case that are kept; there are more only where a server restarts without
/// end.
const DEATHS_MAX: usize = 100;

/// What has been seen so far.
#[derive(Debug)]
pub(crate) struct Life {
    /// The start of the run.
    origin: Nanos,
    seen: ServerSeen,
    /// In the course of the case under way.
    deaths: Vec<Death>,
    /// The server itself has ended in the course of the case under way.
    gone: bool,
    /// The case under way has it end.
    expected: bool,
}

/// Whom the ends of processes struck.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Struck {
    Nobody,
    /// One that died of a fault of its own; who leaves in another way is no loss.
    Worker,
    Server,
}

impl Struck {
    fn by(deaths: &[Death]) -> Struck {
        let one = |death: &Death| match (death.whole, death.how.is_fault()) {
            (true, _) => Struck::Server,
            (false, true) => Struck::Worker,
            (false, false) => Struck::Nobody,
        };
        deaths.iter().map(one).max().unwrap_or(Struck::Nobody)
    }

    /// What the conversation is that did it, and why.
    pub(crate) fn judged(self) -> Option<(TestOutcome, &'static str)> {
        match self {
            Struck::Nobody => None,
            Struck::Worker => Some((TestOutcome::Fail, "a worker of the server died of a fault")),
            Struck::Server => Some((TestOutcome::Crashed, "the server's process ended")),
        }
    }
}

impl Life {
    pub(crate) fn new(origin: Nanos) -> Life {
        Life {
            origin,
            seen: ServerSeen::default(),
            deaths: Vec::new(),
            gone: false,
            expected: false,
        }
    }

    /// The server itself has ended in the course of the case under way.
    pub(crate) fn is_gone(&self) -> bool {
        self.gone
    }

    /// `None` where the server is not seen.
    pub(crate) fn into_seen(self) -> Option<ServerSeen> {
        (!self.seen.rows.is_empty()).then_some(self.seen)
    }

    fn last(&self) -> Option<&ServerState> {
        self.seen.rows.last().map(|row| &row.state)
    }

    /// Looks at the server, if it is seen.
    fn look(&mut self, world: &mut dyn World, case: &str) {
        let at = world.now() - self.origin;
        let Some(state) = world.server() else { return };
        self.seen.rows.push(ServerRow { at, case: case.to_owned(), state });
    }

    /// What came before the first case is no case's.
    pub(crate) fn begin(&mut self, world: &mut dyn World) {
        self.hear(world);
        self.seen.deaths = std::mem::take(&mut self.deaths);
        self.look(world, "");
    }

    /// What ended in searches of ours is no case's.
    pub(crate) fn forget(&mut self, world: &mut dyn World) {
        self.hear(world);
        self.deaths.clear();
    }

    /// The server before the case under way.
    pub(crate) fn before(&self) -> Option<&ServerState> {
        self.last()
    }

    /// Workers have come or gone since the case began: the server makes as many as it needs.
    pub(crate) fn has_other_workers(&mut self, world: &mut dyn World) -> bool {
        self.hear(world);
        let Some(before) = self.last().map(|state| state.workers.len()) else { return false };
        let now = world.server().map(|state| state.workers.len());
        !self.deaths.is_empty() || now.is_some_and(|now| now != before)
    }

    pub(crate) fn begin_case(&mut self) {
        (self.gone, self.expected) = (false, false);
    }

    /// The server ends in the course of this case because the user's command has it do so.
    pub(crate) fn expect_end(&mut self) {
        self.expected = true;
    }

    /// Hears who has ended.
    pub(crate) fn hear(&mut self, world: &mut dyn World) -> Struck {
        let heard = world.deaths();
        let struck = Struck::by(&heard);
        self.gone |= struck == Struck::Server;
        let room = DEATHS_MAX.saturating_sub(self.deaths.len());
        self.deaths.extend(heard.into_iter().take(room));
        struck
    }

    /// The case and its gate are over: what became of the server's processes.
    pub(crate) fn judge_case(&mut self, world: &mut dyn World, result: &mut CaseResult) -> Struck {
        self.hear(world);
        let deaths = self.deaths.clone();
        if deaths.is_empty() || self.expected {
            return Struck::Nobody;
        }
        let now = world.server().unwrap_or_default();
        let lost = result.recovery.is_some() || result.health.is_some_and(|felt| felt.lost > 0.0);
        let (outcome, notes) = judge(&deaths, &now, lost);
        result.show(outcome);
        result.notes.extend(notes);
        Struck::by(&deaths)
    }

    /// Everything about the case is over; what ended since it was judged, ended in a search of ours.
    pub(crate) fn end_case(&mut self, world: &mut dyn World, result: &mut CaseResult) {
        let deaths = std::mem::take(&mut self.deaths);
        self.forget(world);
        let before = self.last().cloned();
        self.look(world, &result.case.id);
        let after = self.last().cloned();
        let Some((before, after)) = before.zip(after) else { return };
        if result.health.is_some() && result.outcome >= TestOutcome::Advisory {
            let grown = |of: fn(&ServerState) -> u64| of(&after).saturating_sub(of(&before));
            let said = overflow_words(grown(|one| one.overflows), grown(|one| one.cookies));
            result.notes.extend(said);
        }
        result.server = Some(Meanwhile { before, after, deaths });
    }
}

/// What counters of the machine say of connections that came too fast; `None` where they did not move.
fn overflow_words(overflows: u64, cookies: u64) -> Option<String> {
    let counted = |count: u64, one: &str, many: &str| {
        format!("{} {}", units::show::count(count), if count == 1 { one } else { many })
    };
    let full = counted(overflows, "attempt to connect", "attempts to connect");
    let sent = counted(cookies, "SYN cookie was sent", "SYN cookies were sent");
    let said = match (overflows, cookies) {
        (0, 0) => return None,
        (_, 0) => format!("{full} found the accept queue full"),
        (0, _) => sent,
        (_, _) => format!("{full} found the accept queue full, and {sent}"),
    };
    Some(format!("{said} (counted over all servers of its machine)"))
}

/// What the ends of processes in the course of a case come to, where `now` is the server after it, and
/// well-behaved clients were lost or not. A worker that leaves in order, missed by nobody, is no finding:
/// many servers renew theirs.
fn judge(deaths: &[Death], now: &ServerState, lost: bool) -> (TestOutcome, Vec<String>) {
    let mut outcome = TestOutcome::Pass;
    let mut notes = Vec::new();
    let server: Vec<&Death> = deaths.iter().filter(|death| death.whole).collect();
    if let Some(first) = server.first() {
        outcome = TestOutcome::Crashed;
        let again = match server.len() {
            1 => String::new(),
            n => format!(", {n} times in all"),
        };
        let since = match now.listeners.as_slice() {
            [] => "nobody listens now".to_owned(),
            [one, ..] => format!("{one} listens now"),
        };
        notes.push(format!("{first}{again}; {since}"));
    }
    for (first, count) in together(deaths).into_iter().filter(|(first, _)| !first.whole) {
        if first.how.is_fault() {
            outcome = outcome.max(TestOutcome::Fail);
        } else if first.how.is_orderly() && !lost && outcome == TestOutcome::Pass {
            continue;
        }
        notes.push(match count {
            1 => first.to_string(),
            n => format!("{first}; {n} workers in all"),
        });
    }
    let renewed = deaths.iter().filter(|death| death.how.is_orderly()).count();
    if notes.is_empty() && renewed > 0 {
        notes.push(format!("{renewed} of the server's workers left in order"));
    }
    (outcome, notes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sample::{Ending, Process};

    fn process(pid: u32) -> Process {
        Process { pid, started: 1, name: "httpd".into() }
    }

    fn judged(deaths: &[(u32, bool, i32)], listeners: &[u32], lost: bool) -> String {
        let death = |(pid, whole, status): &(u32, bool, i32)| Death {
            process: process(*pid),
            whole: *whole,
            how: Ending::of_status(*status),
        };
        let deaths: Vec<Death> = deaths.iter().map(death).collect();
        let listeners = listeners.iter().map(|pid| process(*pid)).collect();
        let now = ServerState { listeners, ..ServerState::default() };
        let (outcome, notes) = judge(&deaths, &now, lost);
        format!("{}: {}", outcome.id(), notes.join("; "))
    }

    #[test]
    fn a_server_that_ended_has_crashed_and_a_worker_is_called_one() {
        for (deaths, listeners, lost, said) in [
            (
                &[(7, true, 11 | 0x80)][..],
                &[9][..],
                false,
                "crashed: the server httpd (pid 7) ended: signal 11 (SIGSEGV), core dumped; httpd (pid 9) listens now",
            ),
            (
                &[(7, true, 6), (9, true, 6)],
                &[],
                true,
                "crashed: the server httpd (pid 7) ended: signal 6 (SIGABRT), 2 times in all; nobody listens now",
            ),
            (
                &[(8, false, 11)],
                &[7],
                false,
                "fail: a worker, httpd (pid 8), ended: signal 11 (SIGSEGV)",
            ),
            (
                &[(8, false, 9), (9, false, 9)],
                &[7],
                true,
                "pass: a worker, httpd (pid 8), ended: signal 9 (SIGKILL); 2 workers in all",
            ),
            (&[(8, false, 0)], &[7], false, "pass: 1 of the server's workers left in order"),
            (&[(8, false, 0)], &[7], true, "pass: a worker, httpd (pid 8), ended: exit code 0"),
            (&[], &[7], true, "pass: "),
        ] {
            assert_eq!(judged(deaths, listeners, lost), said);
        }
    }
}
