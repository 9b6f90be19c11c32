//! What each deadline means for somebody who wants to keep the server busy.

use super::words;
use crate::text::layout::Page;
use torture::cost;
use torture::cost::Cost;
use torture::result::RunResult;
use units::show;

/// Cost of denial, a line for each deadline that was measured.
pub(super) fn costs(page: &mut Page, result: &RunResult) {
    let all = cost::costs(result);
    if all.is_empty() {
        return;
    }
    page.heading("Cost of denial: what keeps every slot of the server busy");
    let width = all.iter().map(|one| one.what.chars().count()).max().unwrap_or(0).min(30);
    for one in all {
        let what = words::safe(one.what);
        page.wrapped(&format!("  {} {what:<width$}  ", one.case), &price(&one));
    }
}

/// In words: `7.5/s new connections keep 150 slots busy for 20 s each`.
pub(crate) fn price(cost: &Cost<'_>) -> String {
    // a count of connections: below zero and beyond the range it saturates
    let whole = |number: f64| show::count(number as u64);
    match (cost.slots, cost.deadline_s, cost.per_second) {
        (Some(slots), None, _) => format!("{} connections, once: nothing ended them", whole(slots)),
        (None, None, _) => "as many connections as there are slots, once".to_owned(),
        (Some(slots), Some(deadline), Some(rate)) => {
            let (rate, slots) = (show::rate(rate), whole(slots));
            format!(
                "{rate} new connections keep {slots} slots busy for {} each",
                words::deadline(deadline)
            )
        }
        (_, Some(deadline), _) => {
            format!("n slots are kept busy by n ÷ {deadline:.1} new connections a second")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_of_denial_is_said_in_words() {
        let say = |slots, deadline_s, per_second| {
            price(&Cost { case: "W-02", what: "half a head", slots, deadline_s, per_second })
        };
        let with = "7.50/s new connections keep 150 slots busy for 20 s each";
        let without = "n slots are kept busy by n ÷ 60.0 new connections a second";
        let table = [
            (Some(150.0), Some(20.0), Some(7.5), with),
            (Some(150.0), None, None, "150 connections, once: nothing ended them"),
            (None, Some(60.0), None, without),
            (None, None, None, "as many connections as there are slots, once"),
        ];
        for (slots, deadline, rate, expected) in table {
            assert_eq!(say(slots, deadline, rate), expected);
        }
    }
}
