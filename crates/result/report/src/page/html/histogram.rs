//! A histogram of times: a row with a bar for each class.

use crate::page::text::picture;
use maud::{Markup, html};
use stats::Hist;
use units::show;

/// Width and height of the longest bar, in the units of its own drawing.
const BAR: (f64, f64) = (300.0, 12.0);

pub(super) fn table(hist: &Hist, rows: usize) -> Markup {
    let classes = picture::classes(hist, rows);
    let most = classes.iter().map(|(_, count)| *count).max().unwrap_or(1) as f64;
    let share = |count: u64| show::share(count as f64 / hist.count() as f64);
    let (width, height) = BAR;
    html! {
        div class="wide" { table class="narrow histogram" {
            tr { th { "up to" } th { } th { "calls" } th { "share" } }
            @for (end, count) in &classes {
                tr {
                    td { (show::duration(*end)) }
                    td class="bar" {
                        svg viewBox=(format!("0 0 {width} {height}")) preserveAspectRatio="none" role="img"
                            aria-label=(share(*count)) {
                            rect class="bar" x="0" y="0" height=(height)
                                width=(format!("{:.1}", width * *count as f64 / most)) {}
                        }
                    }
                    td { (show::count(*count)) }
                    td { (share(*count)) }
                }
            }
        } }
    }
}
