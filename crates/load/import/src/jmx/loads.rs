//! Thread groups as loads.

use super::DraftReader;
use super::elements::{Element, property};
use super::scope::JmxScope;
use crate::draft::{LoadKind, LoadPart};
use units::Nanos;

/// The length of a run without an end.
const ENDLESS: f64 = 60.0;
/// Maximum number of steps of a stepping thread group.
const STEPS_MAX: usize = 500;

impl DraftReader<'_> {
    pub(super) fn load(
        &mut self,
        element: &Element<'_, '_>,
        name: String,
        samplers: usize,
        scope: &JmxScope,
    ) -> LoadPart {
        let mut load = LoadPart {
            journeys: vec![name.clone()],
            name,
            start: Nanos::ZERO,
            duration: None,
            iterations: None,
            kind: LoadKind::Users(1),
        };
        match element.kind() {
            "SteppingThreadGroup" => self.stepping(element, &mut load),
            "UltimateThreadGroup" => self.ultimate(element, &mut load),
            "ConcurrencyThreadGroup" | "ArrivalsThreadGroup" => {
                self.target_level(element, &mut load)
            }
            "ThreadGroup" | "OpenModelThreadGroup" => self.usual(element, &mut load),
            kind => {
                let why = format!("the load of a {kind} is unknown: one user for 60 s");
                self.leave_out(element, &why);
                load.duration = Some(seconds(ENDLESS));
            }
        }
        if let Some(rate) = scope.throughput {
            let rate = rate / samplers.max(1) as f64;
            self.draft.notes.push(format!(
                "{}: its throughput timer holds users back; here iterations arrive at that rate, \
                 regardless of the server.",
                load.name
            ));
            load.kind = LoadKind::Rate(rate);
        }
        load
    }

    /// Returns a number of a property, if it is known before the run.
    fn amount(&mut self, element: &Element<'_, '_>, name: &str) -> Option<f64> {
        let text = self.settled(&element.text(name), element);
        if text.is_empty() {
            return None;
        }
        let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
        if number.is_none() {
            self.leave_out(
                element,
                &format!(
                    "{name}: {} is not a number that is known before the run",
                    units::quoted(&text)
                ),
            );
        }
        number
    }

    fn usual(&mut self, element: &Element<'_, '_>, load: &mut LoadPart) {
        let users = self.amount(element, "ThreadGroup.num_threads").unwrap_or(1.0).clamp(1.0, 1e6);
        let ramp = self.amount(element, "ThreadGroup.ramp_time").unwrap_or(0.0).clamp(0.0, 1e7);
        let scheduled = element.is_true("ThreadGroup.scheduler");
        let duration =
            self.amount(element, "ThreadGroup.duration").filter(|it| scheduled && *it > 0.0);
        let delay = self.amount(element, "ThreadGroup.delay").filter(|it| scheduled && *it > 0.0);
        let loops = self.loops(element);
        load.start = seconds(delay.unwrap_or(0.0));
        load.duration = duration.map(seconds);
        load.iterations = loops.map(|loops| (loops * users as u64).max(1));
        if loops.is_none() && duration.is_none() {
            load.duration = Some(seconds(ENDLESS));
            self.leave_out(element, "it loops forever; the run takes 60 s, set another duration");
        }
        load.kind = match users > 1.0 && ramp > 0.0 {
            true => {
                let total = load.duration.map_or(ramp, |it| it.as_secs_f64());
                let mut stages = vec![(seconds(ramp), 0.0, users)];
                if total > ramp {
                    stages.push((seconds(total - ramp), users, users));
                }
                LoadKind::Stages(stages, false)
            }
            false => LoadKind::Users(users as u64),
        };
    }

    /// Returns the number of loops of each thread; `None` means endless.
    fn loops(&mut self, element: &Element<'_, '_>) -> Option<u64> {
        let controller = element.property("ThreadGroup.main_controller")?;
        let forever =
            property(controller, "LoopController.continue_forever").and_then(|it| it.text());
        let text =
            property(controller, "LoopController.loops").and_then(|it| it.text()).unwrap_or("1");
        let text = self.settled(text.trim(), element);
        match text.parse::<i64>() {
            Ok(-1) => None,
            Ok(loops) => Some(u64::try_from(loops).unwrap_or(1).clamp(1, 1_000_000_000)),
            Err(_) if forever == Some("true") => None,
            Err(_) => {
                self.leave_out(element, "its loops are not known before the run; it loops once");
                Some(1)
            }
        }
    }

    fn stepping(&mut self, element: &Element<'_, '_>, load: &mut LoadPart) {
        let mut amount = |name: &str| self.amount(element, name).unwrap_or(0.0).clamp(0.0, 1e6);
        let most = amount("ThreadGroup.num_threads").max(1.0);
        let delay = amount("Threads initial delay");
        let first = amount("Start users count burst");
        let step = amount("Start users count").max(1.0);
        let period = amount("Start users period");
        let ramp = amount("rampUp");
        let hold = amount("flighttime");
        let (down, down_period) = (amount("Stop users count"), amount("Stop users period"));
        let mut stages = Vec::new();
        let mut level = if first > 0.0 { first.min(most) } else { step.min(most) };
        stages.push((seconds(ramp.max(0.001)), 0.0, level));
        while level < most && stages.len() < STEPS_MAX {
            if period > 0.0 {
                stages.push((seconds(period), level, level));
            }
            let next = (level + step).min(most);
            stages.push((seconds(ramp.max(0.001)), level, next));
            level = next;
        }
        stages.push((seconds(hold.max(1.0)), level, level));
        if down > 0.0 && down_period > 0.0 {
            stages.push((seconds(level / down * down_period), level, 0.0));
        }
        load.start = seconds(delay);
        load.duration = Some(total(&stages));
        load.kind = LoadKind::Stages(stages, false);
    }

    /// Reads rows of threads, delay, and the times to start, hold and stop them.
    fn ultimate(&mut self, element: &Element<'_, '_>, load: &mut LoadPart) {
        let rows: Vec<Vec<f64>> = element
            .items("ultimatethreadgroupdata")
            .into_iter()
            .map(|row| {
                let cells = row.children().filter(roxmltree::Node::is_element);
                cells
                    .map(|cell| cell.text().unwrap_or_default().trim().parse().unwrap_or(0.0))
                    .collect()
            })
            .filter(|row: &Vec<f64>| row.len() >= 5 && row.iter().all(|it| (0.0..1e6).contains(it)))
            .take(50)
            .collect();
        let mut times: Vec<f64> = vec![0.0];
        for row in &rows {
            let start = row[1];
            times.extend([
                start,
                start + row[2],
                start + row[2] + row[3],
                start + row[2] + row[3] + row[4],
            ]);
        }
        times.sort_by(f64::total_cmp);
        times.dedup();
        let level = |at: f64| rows.iter().map(|row| trapezoid(row, at)).sum::<f64>();
        // a jump is steep, not vertical
        let stages: Vec<(Nanos, f64, f64)> = times
            .windows(2)
            .map(|two| (seconds(two[1] - two[0]), level(two[0]), level(two[1])))
            .collect();
        if stages.iter().all(|(_, from, to)| from.max(*to) < 1.0) {
            self.leave_out(element, "its table has no threads: one user for 60 s");
            load.duration = Some(seconds(ENDLESS));
            return;
        }
        load.duration = Some(total(&stages));
        load.kind = LoadKind::Stages(stages, false);
    }

    /// Reads a level that is reached in steps and held: users, or arrivals.
    fn target_level(&mut self, element: &Element<'_, '_>, load: &mut LoadPart) {
        let unit = if element.text("Unit") == "S" { 1.0 } else { 60.0 };
        let mut amount = |name: &str| self.amount(element, name).unwrap_or(0.0).clamp(0.0, 1e6);
        let arrivals = element.kind() == "ArrivalsThreadGroup";
        let level = amount("TargetLevel").max(if arrivals { 1e-6 } else { 1.0 });
        let level = if arrivals { level / unit } else { level };
        let (ramp, hold) = (amount("RampUp") * unit, (amount("Hold") * unit).max(1.0));
        let steps = (amount("Steps") as usize).min(STEPS_MAX);
        let mut stages = Vec::new();
        if steps > 1 && ramp > 0.0 {
            for step in 1..=steps {
                let at = level * step as f64 / steps as f64;
                stages.push((seconds(ramp / steps as f64), at, at));
            }
        } else if ramp > 0.0 {
            stages.push((seconds(ramp), 0.0, level));
        }
        stages.push((seconds(hold), level, level));
        load.duration = Some(total(&stages));
        load.kind = LoadKind::Stages(stages, arrivals);
    }
}

fn trapezoid(row: &[f64], at: f64) -> f64 {
    let (users, start, up, hold, down) = (row[0], row[1], row[2], row[3], row[4]);
    let since = at - start;
    match () {
        () if since < 0.0 => 0.0,
        () if since < up => users * since / up,
        () if since <= up + hold => users,
        () if since < up + hold + down => users * (1.0 - (since - up - hold) / down),
        () => 0.0,
    }
}

fn total(stages: &[(Nanos, f64, f64)]) -> Nanos {
    Nanos(stages.iter().map(|(over, ..)| over.0).sum())
}

pub(crate) fn seconds(time: f64) -> Nanos {
    Nanos((time.clamp(0.0, 1e9) * 1e3).round() as u64 * 1_000_000)
}
