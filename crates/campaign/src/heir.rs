//! A request that fails once and passes after a plain one: what somebody else said before it, on another
//! connection, may be why. Such a state between clients is worse than the failure that shows it.

use super::search::Suspect;
use super::{CampaignEvent, PLAIN_DEADLINE, Runner, habits};
use dialogue::talk::{Move, TalkScript};
use torture::case::{Case, Exchange};
use torture::judge;
use torture::judge::{FailureKind, TestOutcome};
use torture::result::ExchangeResult;

impl Runner<'_> {
    /// A plain request on a connection of its own: no try rests on what the one before left behind.
    pub(super) fn begin_anew(&mut self) {
        let plain = habits::plain_request(self.target, "Connection: close\r\n");
        let script =
            TalkScript { probe: true, ..self.bare(vec![Move::Send(plain)], PLAIN_DEADLINE) };
        self.hold(script);
    }

    /// The exchange failed in some tries and not in others: it fails, where it does behind what was said
    /// before it.
    pub(super) fn look_for_heir(
        &mut self,
        case: &Case,
        exchange: &Exchange,
        before: &[Suspect],
        result: &mut ExchangeResult,
    ) {
        let Some(guilty) = self.inherited_from(case, exchange, before) else { return };
        let names: Vec<String> =
            guilty.iter().map(|one| format!("{} {}", one.case, one.name)).collect();
        let judgement = &mut result.judgement;
        judgement.outcome = TestOutcome::Fail;
        judgement.kind = Some(FailureKind::Inherited);
        judgement.why = format!(
            "it fails behind {} on another connection, and not behind a plain request: what one \
             client sends changes what another gets",
            names.join("; then ")
        );
        let scripts: Vec<TalkScript> = guilty.into_iter().map(|one| one.script).collect();
        self.watcher.hear(CampaignEvent::FailsBehind { name: &exchange.name, before: &scripts });
    }

    /// The fewest of those before, in their order, behind which the exchange fails again.
    fn inherited_from(
        &mut self,
        case: &Case,
        exchange: &Exchange,
        before: &[Suspect],
    ) -> Option<Vec<Suspect>> {
        if self.settings.search.is_none() || before.is_empty() {
            return None;
        }
        self.renew_budget();
        let mut fails = |runner: &mut Self, some: &[Suspect]| {
            runner.mostly(|runner| runner.fails_behind(case, exchange, some))
        };
        // who came last is the likeliest
        let mut count = 1;
        loop {
            let end = &before[before.len() - count..];
            if fails(self, end)? {
                return Some(self.fewest_of(end, &mut fails));
            }
            if count == before.len() {
                return None;
            }
            count = (count * 2).min(before.len());
        }
    }

    fn fails_behind(
        &mut self,
        case: &Case,
        exchange: &Exchange,
        before: &[Suspect],
    ) -> Option<bool> {
        self.begin_anew();
        for suspect in before {
            self.say_again(suspect)?;
        }
        let script = self.script(exchange);
        let talk = self.hold(script);
        let judgement = judge::judge(exchange, case.level, &talk, &self.plain);
        Some(judgement.outcome == TestOutcome::Fail)
    }
}
