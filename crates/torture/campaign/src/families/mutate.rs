//! Mutates requests with bodies, guided by the behavior that earlier ones showed.

use crate::families::random::{self, FAILURES_MAX};
use crate::trail::Suspect;
use crate::{PLAIN_DEADLINE, Runner, bounds};
use dialogue::talk::{Talk, TalkEnd};
use torture::case::{Case, Mutation};
use torture::fuzz::Shot;
use torture::fuzz::mutate::{Behaviour, Corpus, Specimen};
use torture::judge;
use torture::judge::{Judgement, TestOutcome};
use torture::record::sent;
use torture::result::CaseResult;
use units::{Nanos, show};

/// Number of concurrent requests. Kept ones are evaluated between rounds, so that the bytes do not
/// depend on response times.
const ROUND: u64 = 16;
/// Number of hangs after which no more are sent: each costs its full time limit.
const HANGS_MAX: u64 = 2;
/// Initial response timeout; an apparent failure is repeated with the full time.
const FIRST_TIME: Nanos = Nanos::from_secs(1);
/// Time limit for half a message, for which the server may wait indefinitely.
const WAITING_TIME: Nanos = Nanos::from_millis(150);

pub(super) fn run(runner: &mut Runner<'_>, case: &Case, with: &Mutation, result: &mut CaseResult) {
    let (values, fields) = (&runner.target.values, &runner.target.fields);
    let mut corpus = Corpus::new(values, fields, with.corpus as usize);
    let asked = runner.settings.mutants_max.unwrap_or(with.number);
    let span = runner.settings.mutation.unwrap_or(with.span);
    if runner.settings.mutation.is_some() && !bounds::must_be_spared(runner.world.governor()) {
        // on third-party servers the limit of a case applies
        runner.world.governor().lengthen_case(span + PLAIN_DEADLINE);
    }
    let start = runner.now();
    let (mut sent, mut failures, mut hangs, mut oldest) = (0, 0, 0, 0);
    let is_enough = |failures, hangs| failures >= FAILURES_MAX || hangs >= HANGS_MAX;
    while sent < asked && !is_enough(failures, hangs) && runner.now() - start < span {
        let over = runner.must_end_run() || runner.life.is_gone();
        // check a lost server before anything else is sent
        if over || runner.trail.was_lost() {
            break;
        }
        let numbers = sent..(sent + ROUND).min(asked);
        sent = numbers.end;
        let round: Vec<(u64, Specimen)> =
            numbers.map(|number| (number, corpus.specimen(runner.settings.seed, number))).collect();
        let shots: Vec<Shot> = round.iter().map(|(_, specimen)| specimen.shot()).collect();
        let scripts: Vec<_> = shots
            .iter()
            .map(|shot| {
                let mut script = random::script(runner, shot);
                script.deadline = first_time(shot);
                script
            })
            .collect();
        let talks = runner.play_all(scripts.clone());
        // any of them may have crashed the server: all were sent before the check
        for ((number, _), (script, talk)) in round.iter().zip(scripts.iter().zip(&talks)) {
            let name = mutant(*number, runner.settings.seed);
            runner.trail.add(Suspect::new(case, &name, script.clone(), talk.clone()));
        }
        for (((number, specimen), shot), (script, talk)) in
            round.iter().zip(&shots).zip(scripts.into_iter().zip(talks))
        {
            if talk.end != TalkEnd::Bounded && corpus.learn(specimen, Behaviour::new(&talk)) {
                oldest = oldest.max(specimen.generation());
            }
            let name = mutant(*number, runner.settings.seed);
            let mut fired = random::assess(runner, case, &name, shot, 1, script, talk);
            if is_early(&fired) && !runner.is_stopped() {
                fired = random::fire(runner, case, &name, shot, 1);
            }
            let silent = fired.0.end == TalkEnd::Silent;
            let failed =
                random::book(runner, case, name, shot, "", fired, result) == TestOutcome::Fail;
            failures += u64::from(failed);
            hangs += u64::from(failed && silent);
            // every further silent request of this round would take a full time limit too
            if is_enough(failures, hangs) {
                break;
            }
        }
    }
    result.notes.push(format!(
        "{} requests showed {} different behaviors; {} new ones were kept and mutated further, \
        up to {oldest} times",
        show::count(sent),
        show::count(corpus.behavior_count() as u64),
        show::count(corpus.learned() as u64)
    ));
}

/// Returns the name of a mutated request.
fn mutant(number: u64, seed: u64) -> String {
    format!("mutant {number}, seed {seed}")
}

fn first_time(shot: &Shot) -> Nanos {
    match judge::missing_part(&sent(&shot.moves)) {
        Some(_) => WAITING_TIME,
        None => FIRST_TIME.min(PLAIN_DEADLINE),
    }
}

/// Returns whether it failed by silence, before the full time limit.
fn is_early((talk, judgement): &(Talk, Judgement)) -> bool {
    !judgement.outcome.is_favorable() && talk.end == TalkEnd::Silent
}
