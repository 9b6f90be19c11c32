//! One-line facts of bodies that were compared with their targets.

use crate::RunRecord;
use crate::words::{counted, printable, seconds};
use record::run::{BodyPrintRecord, WrongBodyRecord};
use units::show;

/// Characters of a URL that are shown.
const URL_MAX: usize = 60;

/// Describes the number of compared and of wrong bodies; `None` if not requested.
pub(crate) fn sentence(report: &RunRecord) -> Option<String> {
    let against = record::words::verified_against(report.plan.plan())?;
    let verified = report.bodies.verified.as_ref()?;
    let (differ, others) = (verified.differing, verified.of_other_targets);
    let bodies = match verified.compared {
        1 => "1 body".to_owned(),
        n => format!("{} bodies", show::count(n)),
    };
    Some(match differ + others {
        0 => format!("{bodies} compared with {against}: all are equal"),
        wrong => format!(
            "{bodies} compared with {against}: {} wrong, {} of these of another URL",
            show::count(wrong),
            show::count(others)
        ),
    })
}

/// Describes the first wrong body; `None` if every body was right.
pub(crate) fn first_example(report: &RunRecord) -> Option<String> {
    examples(report).next()
}

/// Describes the first wrong bodies, one sentence each.
pub(super) fn examples(report: &RunRecord) -> impl Iterator<Item = String> + '_ {
    report.bodies.verified.iter().flat_map(|verified| verified.examples.iter().map(example))
}

fn example(wrong: &WrongBodyRecord) -> String {
    let (at, asked) = (seconds(wrong.at_s), printable(&wrong.url, URL_MAX));
    match &wrong.of_url {
        Some(of) => {
            format!("at {at}, {asked} was answered with the body of {}", printable(of, URL_MAX))
        }
        None => {
            let (got, expected) = (print(&wrong.got), print(&wrong.expected));
            format!("at {at}, {asked} had {got} instead of {expected}")
        }
    }
}

fn print(print: &BodyPrintRecord) -> String {
    match print.bytes {
        Some(length) => format!("{} ({})", counted(length, "byte"), print.xxh128),
        None => print.xxh128.clone(),
    }
}
