//! Targets measured in turns, in blocks of random order.

use super::duet::{Duet, Moment};
use super::pilot::Chosen;
use super::sequential::Sequential;
use super::side::{Found, Side, TrialEnd};
use super::worktree::Worktrees;
use super::{LABEL_CHARS_MAX, server};
use crate::exit::{Code, Failure};
use crate::run::keeping::{Keeper, Keeping, command_line};
use crate::run::output;
use args::{CompareSide, Design, LiveTask};
use plan::Plan;
use record::compare::{Comparison, FailIf, LETTERS, OF_A_BLOCK, assemble};
use record::run::RunRecord;
use session::{Change, Env};
use stats::curve::Axis;
use std::sync::Arc;
use store::{Beginning, ResultKind};
use units::{Purpose, Seed, Stream, show};

/// Reason why a comparison ended before its last block.
enum Ended {
    Interrupted,
    /// A server that the comparison started died: when and how.
    Died(String),
    /// A server failed every call of a run, with a description.
    Failed(String),
}

impl Ended {
    /// Returns the exit code of a comparison that ended before its last block.
    fn code(&self) -> Option<Code> {
        match self {
            Ended::Died(_) => Some(Code::Invalid),
            Ended::Failed(_) => Some(Code::Missed),
            Ended::Interrupted => None,
        }
    }
}

/// The runs of all sides, block by block.
#[derive(Default)]
struct Blocks {
    runs: Vec<Vec<RunRecord>>,
    order: Vec<String>,
    /// Reason why it ended before its last block.
    ended: Option<Ended>,
    /// Gate, if there is one.
    gate: Option<Sequential>,
}

pub(super) fn compare(mut task: LiveTask) -> Result<Code, Failure> {
    if task.outputs.print_plan {
        return print_plans(&task);
    }
    output::check(&task.outputs)?;
    task.sides.iter().try_for_each(|side| crate::sut::check(side.sut.as_ref()))?;
    for side in &mut task.sides {
        crate::use_proxy(&mut side.plan, &task.outputs)?;
    }
    if !task.outputs.quiet {
        crate::print_not_imported(task.sides.iter().map(|side| &side.plan));
    }
    // removed when the comparison is over
    let _worktrees = Worktrees::prepared(&mut task)?;
    let keeper = Keeper::open(task.outputs.store.as_ref())?;
    let env = Arc::new(Env::for_variations(task.sides.iter().map(|side| &side.plan)));
    let started_unix_s = crate::wall_clock::unix_seconds();
    if task.sides.iter().any(|side| side.command.is_some()) {
        server::prepare()?;
    }
    let mut sides = match found_sides(&task.sides, &env, &task)? {
        Ok(sides) => sides,
        Err(nobody) => return Ok(nobody),
    };
    let keeping = begun(keeper, &env, &task, started_unix_s)?;
    let Blocks { runs, order, ended, gate } = match in_turns(&mut sides, &task, &keeping) {
        Ok(blocks) => blocks,
        Err(failure) => {
            keeping.discard();
            return Err(failure);
        }
    };
    if order.is_empty() {
        keeping.discard();
        return Err(match ended {
            Some(Ended::Died(text)) => Failure { code: Code::Invalid, text },
            Some(Ended::Failed(text)) => Failure { code: Code::Missed, text },
            Some(Ended::Interrupted) | None => interrupted(),
        });
    }
    let died = ended.as_ref().and_then(Ended::code);
    let blocks = order.len();
    let ended_early = ended.map(|ended| match ended {
        Ended::Interrupted if gate.is_some() => format!("interrupted after {blocks} blocks"),
        Ended::Interrupted => format!("interrupted after {blocks} of {} blocks", task.blocks),
        Ended::Died(why) | Ended::Failed(why) => why,
    });
    let torn_down = sides.iter().map(Side::tear_down).fold(Ok(()), Result::and);
    let starts = sides.iter().map(Side::started).collect();
    let gate = gate.map(|gate| gate.record(starts, ended_early.as_deref()));
    let comparison = Comparison {
        name: task.outputs.name.clone(),
        labels: labels(&task),
        commands: commands(&task),
        started_unix_s,
        runs,
        order: order.join(" "),
        bounds: task.bounds,
        cautions: task.cautions,
        ended_early,
        gate,
    };
    let record = assemble(&comparison);
    let written = super::finish(&record, &task.outputs);
    let kept = keeping.finish_compare(&record, &comparison.runs, task.outputs.quiet);
    let code = written?;
    kept?;
    torn_down?;
    Ok(died.unwrap_or(code))
}

/// Returns the sides, each with its server, or the exit code if a side has no server.
fn found_sides<'a>(
    asked: &'a [CompareSide],
    env: &'a Arc<Env>,
    task: &LiveTask,
) -> Result<Result<Vec<Side<'a>>, Code>, Failure> {
    let mut sides = Vec::new();
    for (side, letter) in asked.iter().zip(LETTERS.chars()) {
        match Side::found(side, letter, env, task)? {
            Found::Side(side) => sides.push(*side),
            Found::NoServer(code) => return Ok(Err(code)),
            Found::Interrupted => return Err(interrupted()),
        }
    }
    Ok(Ok(sides))
}

fn begun(
    keeper: Keeper,
    env: &Env,
    task: &LiveTask,
    started_unix_s: f64,
) -> Result<Keeping, Failure> {
    let plans: Vec<&Plan> = task.sides.iter().map(|side| &side.plan).collect();
    let beginning = Beginning {
        name: &task.outputs.name,
        plan: plans[0],
        command_line: &command_line(&plans),
        environment: &env.environment,
        started_unix_s,
        labels: &labels(task),
        commands: &commands(task),
        axis: Axis::Rate,
    };
    keeper.begin(ResultKind::Compare, &beginning)
}

fn labels(task: &LiveTask) -> Vec<String> {
    task.sides.iter().map(|side| side.label.clone()).collect()
}

fn commands(task: &LiveTask) -> Vec<Option<String>> {
    task.sides.iter().map(|side| side.command.clone()).collect()
}

fn interrupted() -> Failure {
    let text = "interrupted before the first block was complete: nothing was compared".to_owned();
    Failure { code: Code::Interrupted, text }
}

fn print_plans(task: &LiveTask) -> Result<Code, Failure> {
    let plan = |side: &CompareSide| {
        let toml = plan::to_toml(&side.plan, plan::Secrets::Masked);
        let label = report::printable(&side.label, LABEL_CHARS_MAX);
        let command = super::command_comment(side.command.as_deref());
        let of = if task.sides.len() == 2 { "four" } else { "six" };
        format!("# {label}: {} blocks of {of} runs\n{command}{toml}", task.blocks)
    };
    let text: String = task.sides.iter().map(plan).collect();
    crate::print(text.as_bytes())
}

/// Returns the order of one block: a random order of the sides, followed by its reverse (ABBA,
/// CABBAC), so that a steady drift affects all sides alike.
fn draw_block(sides: usize, draws: &mut Stream) -> Vec<usize> {
    let mut order: Vec<usize> = (0..sides).collect();
    for last in (1..sides).rev() {
        order.swap(last, draws.below(last as u64 + 1) as usize);
    }
    let back: Vec<usize> = order.iter().rev().copied().collect();
    [order, back].concat()
}

/// Formats the remaining time of all runs, after `runs` runs of a block; empty if no time ends
/// them.
fn remaining_time(task: &LiveTask, block: u32, runs: usize) -> String {
    // the end of a gate is unknown
    if task.gate.is_some() {
        return String::new();
    }
    let of_block = 2 * task.sides.len() as u64;
    let left = u64::from(task.blocks - block) * of_block - runs as u64;
    let span = task.sides[0].plan.stop.duration;
    span.map_or_else(String::new, |span| format!(" · {} in all", show::duration(span * left)))
}

/// Outcome of one block.
pub(super) enum BlockEnd {
    /// The runs of each side, and their order in letters.
    Whole(Vec<Vec<RunRecord>>, String),
    /// A server that the comparison started died, or a side could not be measured; with the reason.
    Died(String),
    /// A server failed every call of a run; with the reason.
    Failed(String),
    Interrupted,
}

/// State for measuring the blocks of a comparison.
pub(super) struct Measurer<'a, 'b> {
    sides: &'a mut [Side<'b>],
    task: &'a LiveTask,
    draws: Stream,
    /// Set if both sides are measured at the same moment.
    duet: Option<Duet>,
    /// Store for finished runs; `None` in a pilot, whose runs do not count.
    keeping: Option<&'a Keeping>,
    /// Runs of each side in complete blocks so far.
    kept: usize,
}

impl Measurer<'_, '_> {
    /// Returns the bounds of the comparison.
    pub(super) fn bounds(&self) -> &[FailIf] {
        &self.task.bounds
    }

    /// Measures one block in the given design. All sides get the same arrivals and random draws;
    /// each block has its own.
    ///
    /// # Errors
    /// Fails like [`Side::run`] and [`Duet::moment`].
    pub(super) fn block(
        &mut self,
        block: u32,
        duet: bool,
        heading: &str,
    ) -> Result<BlockEnd, Failure> {
        let order = draw_block(self.sides.len(), &mut self.draws);
        let seed = |run: usize| {
            let nth = u64::from(block) * 2 + run as u64;
            self.task.sides[0].plan.seed.wrapping_add(nth)
        };
        if let (true, Some(moments)) = (duet, &self.duet) {
            let end = in_duet(moments, &self.task.sides, order[0] == 1, seed)?;
            if let BlockEnd::Whole(runs, _) = &end {
                self.keep(runs);
                self.kept += OF_A_BLOCK;
            }
            return Ok(end);
        }
        let name: String = order.iter().filter_map(|side| LETTERS.chars().nth(*side)).collect();
        let mut runs: Vec<Vec<RunRecord>> = vec![Vec::new(); self.sides.len()];
        for side in order {
            let change = Change { seed: Some(seed(runs[side].len())), ..Change::default() };
            let to_go = remaining_time(self.task, block, runs.iter().map(Vec::len).sum());
            let heading = format!("{heading} · {name}{to_go}");
            match self.sides[side].run(&change, &heading)? {
                TrialEnd::Run(run) => {
                    let run = RunRecord::new(&run);
                    if let Some(keeping) = self.keeping {
                        keeping.side(side, self.kept + runs[side].len(), &run);
                    }
                    runs[side].push(run);
                }
                TrialEnd::Died(why) => return Ok(BlockEnd::Died(why)),
                TrialEnd::Failed(why) => return Ok(BlockEnd::Failed(why)),
                TrialEnd::Interrupted => return Ok(BlockEnd::Interrupted),
            }
        }
        self.kept += OF_A_BLOCK;
        Ok(BlockEnd::Whole(runs, name))
    }

    fn keep(&self, runs: &[Vec<RunRecord>]) {
        let Some(keeping) = self.keeping else { return };
        for (side, runs) in runs.iter().enumerate() {
            for (index, run) in runs.iter().enumerate() {
                keeping.side(side, self.kept + index, run);
            }
        }
    }

    /// Returns the design of a gate; a pilot chooses it on request.
    fn design(&mut self) -> Result<Chosen, Failure> {
        let given = |duet: bool| Chosen::Design { duet, why: String::new() };
        match self.task.gate.as_ref().map_or(Design::Turns, |gate| gate.design) {
            Design::Turns => Ok(given(false)),
            Design::Duet => Ok(given(true)),
            Design::Auto => super::pilot::choose(self),
        }
    }
}

/// Measures both sides at once, twice; each side starts first once.
fn in_duet(
    duet: &Duet,
    sides: &[CompareSide],
    b_first: bool,
    seed: impl Fn(usize) -> u64,
) -> Result<BlockEnd, Failure> {
    let mut runs = vec![Vec::new(), Vec::new()];
    for (moment, b_first) in [b_first, !b_first].into_iter().enumerate() {
        match duet.moment(sides, seed(moment), b_first)? {
            Moment::Runs(both) => {
                for (all, run) in runs.iter_mut().zip(*both) {
                    all.push(run);
                }
            }
            Moment::Failed(why) => return Ok(BlockEnd::Died(why)),
            Moment::Interrupted => return Ok(BlockEnd::Interrupted),
        }
    }
    Ok(BlockEnd::Whole(runs, if b_first { "BAAB" } else { "ABBA" }.to_owned()))
}

/// Drops an interrupted block: half a block would favor a side.
fn in_turns(sides: &mut [Side<'_>], task: &LiveTask, keeping: &Keeping) -> Result<Blocks, Failure> {
    let mut blocks = Blocks { runs: vec![Vec::new(); sides.len()], ..Blocks::default() };
    for side in &mut *sides {
        side.prepare_first_block()?;
        if crate::signals::received_signal() > 0 {
            blocks.ended = Some(Ended::Interrupted);
            return Ok(blocks);
        }
    }
    let draws = Seed(task.sides[0].plan.seed).stream(Purpose::Bootstrap, 1);
    let gate = task.gate.as_ref();
    let duet = gate.filter(|gate| gate.design != Design::Turns).map(|_| Duet::new()).transpose()?;
    blocks.gate = gate.map(|gate| Sequential::start_budget(gate, &task.bounds));
    let mut measurer = Measurer { sides, task, draws, duet, keeping: None, kept: 0 };
    let duet = match measurer.design()? {
        Chosen::Design { duet, why } => {
            if let Some(gate) = &mut blocks.gate {
                gate.chose(duet, why);
            }
            duet
        }
        Chosen::Ended(end) => {
            blocks.end("in the pilot", end);
            return Ok(blocks);
        }
    };
    (measurer.keeping, measurer.kept) = (Some(keeping), 0);
    for block in 0..task.blocks {
        if blocks.gate.as_ref().is_some_and(Sequential::is_over) {
            break;
        }
        let of = match &blocks.gate {
            Some(gate) => gate.progress(),
            None => format!("of {}", task.blocks),
        };
        let number = block + 1;
        match measurer.block(block, duet, &format!("block {number} {of}"))? {
            BlockEnd::Whole(runs, name) => blocks.add(runs, name),
            end => {
                blocks.end(&format!("in block {number}"), end);
                return Ok(blocks);
            }
        }
    }
    Ok(blocks)
}

impl Blocks {
    /// Adds a whole block.
    fn add(&mut self, runs: Vec<Vec<RunRecord>>, name: String) {
        if let (Some(gate), [before, after]) = (&mut self.gate, runs.as_slice()) {
            gate.block(before, after);
        }
        for (all, runs) in self.runs.iter_mut().zip(runs) {
            all.extend(runs);
        }
        self.order.push(name);
    }

    /// Records why the comparison ended before its last block.
    fn end(&mut self, place: &str, end: BlockEnd) {
        self.ended = match end {
            BlockEnd::Whole(..) => None,
            BlockEnd::Died(why) => Some(Ended::Died(format!("{place}: {why}"))),
            BlockEnd::Failed(why) => Some(Ended::Failed(format!("{place}: {why}"))),
            BlockEnd::Interrupted => Some(Ended::Interrupted),
        };
    }
}
