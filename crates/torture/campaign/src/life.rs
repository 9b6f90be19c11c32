//! Watches the server's processes during the cases, if they are visible: which exited during which
//! case, and their resources before and after it. This only confirms the observations of
//! well-behaved clients; a server without visible processes is judged without it.

use crate::World;
use sample::{Death, Ending, ServerState, together};
use torture::judge::TestOutcome;
use torture::result::CaseResult;
use torture::result::{ServerDuringCase, ServerRow, ServerSeen};
use units::Nanos;

/// Maximum number of exits kept per case; only a server that keeps restarting has more.
const DEATHS_MAX: usize = 100;

/// Observations so far.
#[derive(Debug)]
pub(crate) struct Life {
    /// Start of the run.
    origin: Nanos,
    seen: ServerSeen,
    /// During the current case.
    deaths: Vec<Death>,
    /// True if the server itself exited during the current case.
    gone: bool,
    /// True if the current case makes the server exit.
    expected: bool,
}

/// The part of the server affected by exits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum AffectedPart {
    #[default]
    Nothing,
    /// A worker that crashed; any other exit is not a loss.
    Worker,
    /// The server, terminated by a signal that another process or the kernel sent.
    Killed,
    Server,
}

/// Signals that a process does not cause itself: SIGHUP, SIGINT, SIGQUIT, SIGKILL, SIGTERM.
const SENT_SIGNALS: [u8; 5] = [1, 2, 3, 9, 15];

/// Returns whether another process or the kernel ended it.
fn is_killed(how: Ending) -> bool {
    matches!(how, Ending::Signal { number, .. } if SENT_SIGNALS.contains(&number))
}

/// Explanation appended to the description of a process that was killed from outside.
const KILLED_BY: &str = ", sent by another process or by the kernel: an operator, a supervisor, \
    or the OOM killer";

impl AffectedPart {
    fn by(deaths: &[Death]) -> AffectedPart {
        let one = |death: &Death| match (death.whole, death.how.is_fault()) {
            (true, _) if is_killed(death.how) => AffectedPart::Killed,
            (true, _) => AffectedPart::Server,
            (false, true) => AffectedPart::Worker,
            (false, false) => AffectedPart::Nothing,
        };
        deaths.iter().map(one).max().unwrap_or(AffectedPart::Nothing)
    }

    /// Returns the outcome of the conversation that caused the exit, with the reason.
    pub(crate) fn judged(self) -> Option<(TestOutcome, &'static str)> {
        match self {
            AffectedPart::Nothing => None,
            AffectedPart::Worker => Some((TestOutcome::Fail, "a worker of the server crashed")),
            AffectedPart::Killed => Some((TestOutcome::Crashed, "the server's process was killed")),
            AffectedPart::Server => Some((TestOutcome::Crashed, "the server's process exited")),
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

    /// Returns whether the server itself exited during the current case.
    pub(crate) fn is_gone(&self) -> bool {
        self.gone
    }

    /// Returns `None` if the server is not visible.
    pub(crate) fn into_seen(self) -> Option<ServerSeen> {
        (!self.seen.rows.is_empty()).then_some(self.seen)
    }

    fn last(&self) -> Option<&ServerState> {
        self.seen.rows.last().map(|row| &row.state)
    }

    /// Samples the server, if visible.
    fn look(&mut self, world: &mut dyn World, case: &str) {
        let at = world.now() - self.origin;
        let Some(state) = world.server() else { return };
        self.seen.rows.push(ServerRow { at, case: case.to_owned(), state });
    }

    /// Starts the run: earlier events belong to no case.
    pub(crate) fn begin(&mut self, world: &mut dyn World) {
        self.observe(world);
        self.seen.deaths = std::mem::take(&mut self.deaths);
        self.look(world, "");
    }

    /// Discards exits during our searches, which belong to no case.
    pub(crate) fn forget(&mut self, world: &mut dyn World) {
        self.observe(world);
        self.deaths.clear();
    }

    /// Returns the samples so far: before the first case, and after each.
    pub(crate) fn rows(&self) -> &[ServerRow] {
        &self.seen.rows
    }

    /// Returns the server's state before the current case.
    pub(crate) fn before(&self) -> Option<&ServerState> {
        self.last()
    }

    /// Returns whether the workers changed since the start of the case: the server starts as many
    /// as it needs.
    pub(crate) fn has_other_workers(&mut self, world: &mut dyn World) -> bool {
        self.observe(world);
        let Some(before) = self.last().map(|state| state.workers.len()) else { return false };
        let now = world.server().map(|state| state.workers.len());
        !self.deaths.is_empty() || now.is_some_and(|now| now != before)
    }

    pub(crate) fn begin_case(&mut self) {
        (self.gone, self.expected) = (false, false);
    }

    /// Marks that a user command makes the server exit during this case.
    pub(crate) fn expect_end(&mut self) {
        self.expected = true;
    }

    /// Queries which processes have exited.
    pub(crate) fn observe(&mut self, world: &mut dyn World) -> AffectedPart {
        let heard = world.deaths();
        let affected = AffectedPart::by(&heard);
        self.gone |= affected >= AffectedPart::Killed;
        let room = DEATHS_MAX.saturating_sub(self.deaths.len());
        self.deaths.extend(heard.into_iter().take(room));
        affected
    }

    /// Judges the server's processes after the case and its gate.
    pub(crate) fn judge_case(
        &mut self,
        world: &mut dyn World,
        result: &mut CaseResult,
    ) -> AffectedPart {
        self.observe(world);
        let deaths = self.deaths.clone();
        if deaths.is_empty() || self.expected {
            return AffectedPart::Nothing;
        }
        let now = world.server().unwrap_or_default();
        let lost = result.recovery.is_late() || result.health.is_some_and(|felt| felt.lost > 0.0);
        let (outcome, notes) = judge(&deaths, &now, lost);
        result.show(outcome);
        result.notes.extend(notes);
        AffectedPart::by(&deaths)
    }

    /// Ends the case; exits since it was judged were caused by our search.
    pub(crate) fn end_case(&mut self, world: &mut dyn World, result: &mut CaseResult) {
        let deaths = std::mem::take(&mut self.deaths);
        self.forget(world);
        let before = self.last().cloned();
        self.look(world, &result.case.id);
        let after = self.last().cloned();
        let Some((before, after)) = before.zip(after) else { return };
        if result.health.is_some() && result.outcome >= TestOutcome::Advisory {
            let grown = |of: fn(&ServerState) -> u64| of(&after).saturating_sub(of(&before));
            let text = overflow_text(grown(|one| one.overflows), grown(|one| one.cookies));
            result.notes.extend(text);
        }
        result.server = Some(ServerDuringCase { before, after, deaths });
    }
}

/// Describes counters of the machine for connections that arrived too fast; `None` if they did not
/// change.
fn overflow_text(overflows: u64, cookies: u64) -> Option<String> {
    let counted = |count: u64, one: &str, many: &str| {
        format!("{} {}", units::show::count(count), if count == 1 { one } else { many })
    };
    let full = counted(overflows, "attempt to connect", "attempts to connect");
    let sent = counted(cookies, "SYN cookie was sent", "SYN cookies were sent");
    let text = match (overflows, cookies) {
        (0, 0) => return None,
        (_, 0) => format!("{full} found the accept queue full"),
        (0, _) => sent,
        (_, _) => format!("{full} found the accept queue full, and {sent}"),
    };
    Some(format!("{text} (counted over all servers of its machine)"))
}

/// Judges the exits during a case. `now`: the server after it; `lost`: well-behaved clients failed.
/// A worker that exits normally without an effect is not a finding: many servers replace workers.
fn judge(deaths: &[Death], now: &ServerState, lost: bool) -> (TestOutcome, Vec<String>) {
    let mut outcome = TestOutcome::Pass;
    let mut notes = Vec::new();
    let server: Vec<&Death> = deaths.iter().filter(|death| death.whole).collect();
    if let Some(first) = server.first() {
        let killed = server.iter().all(|death| is_killed(death.how));
        outcome = if killed { TestOutcome::Inconclusive } else { TestOutcome::Crashed };
        let again = match server.len() {
            1 => String::new(),
            n => format!(", {n} times in total"),
        };
        let since = match now.listeners.as_slice() {
            [] => "no process listens now".to_owned(),
            [one, ..] => format!("{one} listens now"),
        };
        let by = if killed { KILLED_BY } else { "" };
        notes.push(format!("{first}{by}{again}; {since}"));
    }
    for (first, count) in together(deaths).into_iter().filter(|(first, _)| !first.whole) {
        if first.how.is_fault() {
            outcome = outcome.max(TestOutcome::Fail);
        } else if first.how.is_orderly() && !lost && outcome == TestOutcome::Pass {
            continue;
        }
        let by = if is_killed(first.how) { KILLED_BY } else { "" };
        notes.push(match count {
            1 => format!("{first}{by}"),
            n => format!("{first}{by}; {n} workers in total"),
        });
    }
    let renewed = deaths.iter().filter(|death| death.how.is_orderly()).count();
    if notes.is_empty() && renewed > 0 {
        notes.push(format!("{renewed} of the server's workers exited normally"));
    }
    (outcome, notes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sample::Process;

    fn process(pid: u32) -> Process {
        Process { pid, started: 1, name: "httpd".into() }
    }

    fn judged(deaths: &[(u32, bool, i32)], listeners: &[u32], lost: bool) -> String {
        let death = |(pid, whole, status): &(u32, bool, i32)| Death {
            process: process(*pid),
            whole: *whole,
            how: Ending::from_status(*status),
        };
        let deaths: Vec<Death> = deaths.iter().map(death).collect();
        let listeners = listeners.iter().map(|pid| process(*pid)).collect();
        let now = ServerState { listeners, ..ServerState::default() };
        let (outcome, notes) = judge(&deaths, &now, lost);
        format!("{}: {}", outcome.id(), notes.join("; "))
    }

    #[test]
    fn server_exits_are_crashes_and_worker_exits_are_reported() {
        for (deaths, listeners, lost, expected) in [
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
                "crashed: the server httpd (pid 7) ended: signal 6 (SIGABRT), 2 times in total; \
                no process listens now",
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
                "pass: a worker, httpd (pid 8), ended: signal 9 (SIGKILL), sent by another process \
                or by the kernel: an operator, a supervisor, or the OOM killer; 2 workers in total",
            ),
            (
                &[(7, true, 9)],
                &[],
                true,
                "inconclusive: the server httpd (pid 7) ended: signal 9 (SIGKILL), sent by another \
                process or by the kernel: an operator, a supervisor, or the OOM killer; no process \
                listens now",
            ),
            (&[(8, false, 0)], &[7], false, "pass: 1 of the server's workers exited normally"),
            (&[(8, false, 0)], &[7], true, "pass: a worker, httpd (pid 8), ended: exit code 0"),
            (&[], &[7], true, "pass: "),
        ] {
            assert_eq!(judged(deaths, listeners, lost), expected);
        }
    }
}
