//! One-line facts of bodies that were held against those of their targets.

use crate::RunReport;
use crate::words::{counted, printable};
use record::words::target_name;
use sample::{BodyPrint, FailureClass, WrongBody};
use units::show;

/// Characters of a URL that are shown.
const URL_MAX: usize = 60;

/// How many were compared and how many were wrong; nothing where nobody asked.
pub(crate) fn sentence(report: &RunReport) -> Option<String> {
    let against = record::words::verified_against(&report.plan)?;
    let total = &report.measurement.total;
    let count = |class| total.failures.get(&class).copied().unwrap_or_default();
    let (differ, others) = (count(FailureClass::Differs), count(FailureClass::OtherTarget));
    let bodies = match total.verified.compared {
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

/// An example; `None` where every body was right.
pub(crate) fn first_example(report: &RunReport) -> Option<String> {
    examples(report).next()
}

/// The first wrong bodies, a sentence each.
pub(super) fn examples(report: &RunReport) -> impl Iterator<Item = String> + '_ {
    report.measurement.total.verified.wrong.iter().map(|wrong| example(report, wrong))
}

fn example(report: &RunReport, wrong: &WrongBody) -> String {
    let url = |row| printable(&target_name(&report.plan, row), URL_MAX);
    let asked = url(wrong.target);
    let at = show::duration(wrong.at);
    match wrong.of {
        Some(of) => format!("at {at}, {asked} was answered with the body of {}", url(of)),
        None => {
            let (got, expected) = (print(&wrong.got), print(&wrong.expected));
            format!("at {at}, {asked} had {got} instead of {expected}")
        }
    }
}

fn print(print: &BodyPrint) -> String {
    let hash = format!("{:032x}", print.hash);
    match print.length {
        Some(length) => format!("{} ({hash})", counted(length, "byte")),
        None => hash,
    }
}
