//! What an operator pins up: limits, deadlines, and what each of them means for whoever wants to keep
//! the server busy.

use crate::torture::{costs, words};
use maud::{Markup, html};
use torture::cost;
use torture::result::RunResult;

pub(super) fn limits(result: &RunResult) -> Markup {
    let all = || result.cases.iter().flat_map(|case| case.measures.iter().map(move |m| (case, m)));
    html! {
        @if all().next().is_some() {
            h2 id="limits" { "Limits and deadlines" }
            div class="wide" { table {
                tr {
                    th { "What" } th { "Number" } th class="text" { "What happens there" }
                    th class="word" { "Case" }
                }
                @for (case, one) in all() {
                    tr {
                        td { (words::safe(&one.what)) }
                        td { strong { (words::measure(one)) } }
                        td class="text" { (words::safe(&one.note)) }
                        td class="word soft" { (case.case.id) }
                    }
                }
            } }
            p class="note" { "Two numbers are the bracket that was measured: the true one lies between." }
        }
    }
}

pub(super) fn costs(result: &RunResult) -> Markup {
    let all = cost::costs(result);
    html! {
        @if !all.is_empty() {
            h2 { "Cost of denial" }
            div class="wide" { table {
                tr { th { "What" } th class="text" { "Keeps every slot busy" } th class="word" { "Case" } }
                @for one in &all {
                    tr {
                        td { (words::safe(one.what)) }
                        td class="text" { (costs::price(one)) }
                        td class="word soft" { (one.case) }
                    }
                }
            } }
        }
    }
}
