//! Limits, deadlines, and what each of them costs whoever wants to keep the server busy.

use crate::torture::{costs, words};
use maud::{Markup, html};
use record::torture::TortureRecord;

pub(super) fn limits(record: &TortureRecord) -> Markup {
    html! {
        @if !record.limits.is_empty() {
            h2 id="limits" { "Limits and deadlines" }
            div class="wide" { table {
                tr {
                    th { "What" } th { "Number" } th class="text" { "What happens there" }
                    th class="word" { "Case" }
                }
                @for one in &record.limits {
                    tr {
                        td { (words::safe(&one.what)) }
                        td { strong { (words::measure(one)) } }
                        td class="text" { (words::safe(&one.note)) }
                        td class="word soft" { (one.case) }
                    }
                }
            } }
            p class="note" { "Of two numbers the true one lies between them." }
        }
    }
}

pub(super) fn costs(record: &TortureRecord) -> Markup {
    let all = &record.costs;
    html! {
        @if !all.is_empty() {
            h2 { "Cost of denial" }
            div class="wide" { table {
                tr { th { "What" } th class="text" { "Keeps every slot busy" } th class="word" { "Case" } }
                @for one in all {
                    tr {
                        td { (words::safe(&one.what)) }
                        td class="text" { (costs::price(one)) }
                        td class="word soft" { (one.case) }
                    }
                }
            } }
        }
    }
}
