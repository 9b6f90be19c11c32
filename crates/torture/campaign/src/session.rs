//! The session with a server under test: the target, the options, the world, and the observations
//! so far, in one field each. It plays conversations and reports them; cases, families and searches
//! decide what is sent and how it is judged.

use crate::budget::SearchBudget;
use crate::findings::Findings;
use crate::hangs::HangsSeen;
use crate::health::HealthCheck;
use crate::life::{AffectedPart, Life};
use crate::lints::Lints;
use crate::memory_watch::MemoryWatch;
use crate::prober::Prober;
use crate::probes::{Pattern, ProbeListener};
use crate::profile::ServerProfile;
use crate::rounds::LargestRounds;
use crate::shrink::Budget;
use crate::slow_states::SlowStates;
use crate::trail::Trail;
use crate::{CampaignEvent, PLAIN_DEADLINE, Settings, TestTarget, Watcher, World, bounds, habits};
use conduit::OpenOptions;
use dialogue::talk::{Move, Talk, TalkEnd, TalkScript};
use torture::case::Case;
use torture::judge::Plain;
use torture::record::Execution;
use torture::result::Probe;
use units::Nanos;

pub(crate) struct Runner<'a> {
    pub(crate) target: &'a TestTarget,
    pub(crate) settings: &'a Settings,
    /// All selected cases.
    pub(crate) cases: &'a [Case],
    pub(crate) world: &'a mut dyn World,
    watcher: &'a mut dyn Watcher,
    /// Counter of the markers.
    serial: u64,
    pub(crate) profile: ServerProfile,
    pub(crate) health: HealthCheck,
    pub(crate) prober: Prober,
    pub(crate) lints: Lints,
    pub(crate) life: Life,
    pub(crate) memory: MemoryWatch,
    pub(crate) trail: Trail,
    pub(crate) hangs: HangsSeen,
    pub(crate) findings: Findings,
    pub(crate) budget: SearchBudget,
    pub(crate) pressed: LargestRounds,
    /// Slow states that were held.
    pub(crate) states: SlowStates,
}

impl<'a> Runner<'a> {
    pub(crate) fn new(
        target: &'a TestTarget,
        settings: &'a Settings,
        cases: &'a [Case],
        world: &'a mut dyn World,
        watcher: &'a mut dyn Watcher,
    ) -> Runner<'a> {
        let start = world.now();
        Runner {
            target,
            settings,
            cases,
            world,
            watcher,
            serial: 0,
            profile: ServerProfile::default(),
            health: HealthCheck::default(),
            prober: Prober::new(settings.probing.clone(), start),
            lints: Lints::default(),
            life: Life::new(start),
            memory: MemoryWatch::default(),
            trail: Trail::new(settings.search.is_some()),
            hangs: HangsSeen::default(),
            findings: Findings::default(),
            budget: SearchBudget::new(settings.search),
            pressed: LargestRounds::default(),
            states: SlowStates::default(),
        }
    }
}

impl Runner<'_> {
    pub(crate) fn now(&mut self) -> Nanos {
        self.world.now()
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.world.stopped().is_some()
    }

    /// Returns whether the time limit of the case was reached.
    pub(crate) fn case_is_over(&mut self) -> bool {
        let now = self.now();
        self.world.governor().case_ends().is_some_and(|at| at <= now)
    }

    /// Returns whether the run must end or the time of the case is up: nothing more is started.
    pub(crate) fn must_end_run(&mut self) -> bool {
        self.is_stopped() || self.case_is_over()
    }

    /// Records the usual response of the probed page: the run can start.
    pub(crate) fn set_plain(&mut self, plain: Plain) {
        self.profile.learn_plain(plain);
        self.watcher.observe(CampaignEvent::Ready(self.profile.plain()));
    }

    /// Notifies observers.
    pub(crate) fn report(&mut self, event: CampaignEvent<'_>) {
        self.watcher.observe(event);
    }

    /// Returns a number unique among the markers of the run.
    pub(crate) fn next_serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    /// Returns the remaining budget of searches; `None` if it is used up, searches are disabled, or
    /// the run has stopped.
    pub(crate) fn budget_left(&mut self) -> Option<Budget> {
        if !self.budget.is_wanted() || self.is_stopped() {
            return None;
        }
        let now = self.now();
        self.budget.remaining(now)
    }

    /// Takes one conversation from the budget; `None` if it is used up.
    pub(crate) fn spend(&mut self) -> Option<()> {
        self.budget_left()?;
        self.budget.spend();
        Some(())
    }

    /// Returns a script of these steps on a new connection, from now on.
    pub(crate) fn bare(&mut self, steps: Vec<Move>, deadline: Nanos) -> TalkScript {
        TalkScript {
            peer: self.target.peer.clone(),
            options: OpenOptions { nodelay: true, ..OpenOptions::default() },
            // QUIC has its own TLS
            tls_name: self.target.tls_name.clone().filter(|_| !self.target.protocol.is_http3()),
            protocol: self.target.protocol,
            start: self.world.now(),
            steps,
            methods: vec!["GET".to_owned()],
            deadline,
            follow_up: None,
            grace: Nanos::ZERO,
            linger: Nanos::ZERO,
            hold: false,
            probe: false,
        }
    }

    /// Sends regular bytes.
    pub(crate) fn ask(&mut self, bytes: &[u8]) -> Talk {
        let mut script = self.bare(vec![Move::Send(bytes.to_vec())], PLAIN_DEADLINE);
        script.probe = true;
        self.hold(script)
    }

    pub(crate) fn hold(&mut self, script: TalkScript) -> Talk {
        let mut talks = self.play_all(vec![script]);
        talks.pop().expect("a world returns one talk per script")
    }

    /// Plays conversations all at once; every response is checked.
    pub(crate) fn play_all(&mut self, scripts: Vec<TalkScript>) -> Vec<Talk> {
        let odd = scripts.iter().any(|script| !script.probe);
        let talks = self.world.talk(scripts);
        talks.iter().for_each(|talk| self.lints.note_talk(talk));
        if odd && bounds::must_be_spared(self.world.governor()) && talks.iter().any(got_no_response)
        {
            // the governor learns whether the server still responds, and otherwise stops the run
            let request = self.health.request(self.target);
            self.ask(&request);
        }
        talks
    }

    /// Plays a director with concurrent health probes, and returns the probes. They are kept with
    /// those of the run, and observers are notified of each.
    pub(crate) fn play_with_probes(
        &mut self,
        case: &str,
        director: &mut dyn ProbeListener,
    ) -> Vec<Probe> {
        let new = habits::plain_request(self.target, "Connection: close\r\n");
        let new = TalkScript { probe: true, ..self.bare(vec![Move::Send(new)], PLAIN_DEADLINE) };
        let pattern = Pattern {
            new,
            keep: match self.target.protocol.has_frames() {
                true => habits::plain_frame(self.target, ""),
                false => habits::plain_request(self.target, ""),
            },
            plain: self.profile.plain().clone(),
            origin: self.prober.origin(),
            case: case.to_owned(),
        };
        self.prober.play(self.world, self.watcher, pattern, director)
    }

    /// Reports a completed conversation of a case to all observers.
    pub(crate) fn report_conversation(&mut self, execution: &Execution<'_>) {
        let affected = self.life.observe(self.world);
        self.report_with_effect(execution, affected);
    }

    /// Reports a result whose affected part of the server is known.
    pub(crate) fn report_with_effect(&mut self, execution: &Execution<'_>, affected: AffectedPart) {
        self.watcher.observe(CampaignEvent::ConversationOver(execution));
        self.hangs.note_talk(execution);
        self.trail.observe(execution, affected);
        self.memory.sample(self.world);
    }
}

/// Returns whether there was no response: the server may be gone.
fn got_no_response(talk: &Talk) -> bool {
    matches!(talk.end, TalkEnd::Silent | TalkEnd::Unconnected(_))
        && talk.replies.responses.is_empty()
}
