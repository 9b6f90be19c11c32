//! Limits and timeouts, and the cost of keeping the server busy.

use super::words;
use crate::section::{
    Block, Column, DataTable, Document, Forms, Voice, heading, placed, text_block,
};
use record::torture::{CostRecord, TortureRecord};
use units::show;

/// Adds limits and timeouts, with or without a finding: an operator needs them in any case.
pub(super) fn limits(document: &mut Document, record: &TortureRecord) {
    if record.limits.is_empty() {
        return;
    }
    let rows = record.limits.iter().map(|one| {
        let texts = [&one.case, &one.what, &words::measure(one), &one.note];
        texts.map(|text| words::safe(text)).to_vec()
    });
    let columns = [
        Column::word("case"),
        Column::text("limit or deadline"),
        Column::from("value"),
        Column::text("note"),
    ];
    let table = DataTable::new(columns).listed().with(rows);
    let forms = Forms::LONG | Forms::PAGE;
    document.add(forms, [placed("limits", "Limits and deadlines")]);
    document.add(forms | Forms::MARKDOWN, [Block::Table(table)]);
    let note = "The true value lies between the two numbers.";
    document.add(Forms::PAGE, [text_block(Voice::Note, note)]);
}

/// Adds the cost of denial, one line per measured timeout.
pub(super) fn costs(document: &mut Document, record: &TortureRecord) {
    if record.costs.is_empty() {
        return;
    }
    let row = |one: &CostRecord| vec![one.case.clone(), words::safe(&one.what), price(one)];
    let columns = [Column::word("case"), Column::text("deadline"), Column::text("cost")];
    let table = DataTable::new(columns).listed().with(record.costs.iter().map(row));
    let what = "Cost of denial: what keeps every slot of the server busy";
    document.add(Forms::LONG | Forms::PAGE, [heading(what), Block::Table(table)]);
}

/// Formats `7.5/s new connections keep 150 slots busy for 20 s each`.
fn price(cost: &CostRecord) -> String {
    // a connection count: saturates below zero and beyond the range
    let whole = |number: f64| show::count(number as u64);
    match (cost.slots, cost.deadline_s, cost.connections_per_s) {
        (Some(slots), None, _) => {
            format!("{} connections, once: the server never closed them", whole(slots))
        }
        (None, None, _) => "as many connections as there are slots, once".to_owned(),
        (Some(slots), Some(deadline), Some(rate)) => {
            let (rate, slots) = (show::rate(rate), whole(slots));
            format!(
                "{rate} new connections keep {slots} slots busy for {} each",
                words::deadline(deadline)
            )
        }
        (_, Some(deadline), _) => {
            format!("n slots are kept busy by n ÷ {deadline:.1} new connections per second")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_of_denial_is_stated_in_words() {
        let say = |slots, deadline_s, connections_per_s| {
            let (case, what) = ("W-02".to_owned(), "half a head".to_owned());
            price(&CostRecord { case, what, slots, deadline_s, connections_per_s })
        };
        let with = "7.50/s new connections keep 150 slots busy for 20 s each";
        let without = "n slots are kept busy by n ÷ 60.0 new connections per second";
        let table = [
            (Some(150.0), Some(20.0), Some(7.5), with),
            (Some(150.0), None, None, "150 connections, once: the server never closed them"),
            (None, Some(60.0), None, without),
            (None, None, None, "as many connections as there are slots, once"),
        ];
        for (slots, deadline, rate, expected) in table {
            assert_eq!(say(slots, deadline, rate), expected);
        }
    }
}
