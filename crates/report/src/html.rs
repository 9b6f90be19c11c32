//! Pieces of a run's page, for pages that write their own HTML.

pub(crate) mod sections {
    use super::rendered;
    use crate::section::{Document, Forms};
    use crate::{Finding, RunRecord, RunTimes, blocks, run, words};
    use maud::{Markup, html};
    use record::run::{EnvironmentRecord, VerdictRecord};
    use stats::Hist;

    pub(crate) fn verdict(verdict: &VerdictRecord) -> Markup {
        rendered([blocks::verdict(verdict, (0, 0))])
    }

    pub(crate) fn findings(all: &[Finding]) -> Markup {
        rendered(blocks::findings(all))
    }

    pub(crate) fn tile(label: &str, value: &str, sub: &str) -> Markup {
        html! { div { dt { (label) } dd { (value) } @if !sub.is_empty() { dd class="sub" { (sub) } } } }
    }

    pub(crate) fn how_to_look() -> Markup {
        crate::page::html::how_to_look()
    }

    pub(crate) fn footer(started_unix_s: f64, environment: &EnvironmentRecord) -> Markup {
        html! { footer { (words::measured(started_unix_s, environment)) } }
    }

    pub(crate) fn quantile_or_dash(hist: &Hist, quantile: f64) -> String {
        blocks::quantile(hist, quantile)
    }

    pub(crate) fn times_table(report: &RunRecord, _: &Hist) -> Markup {
        let mut told = Document::default();
        run::tables::times(&mut told, Forms::PAGE, report, &RunTimes::of(report));
        crate::page::html::body(&told, &mut Default::default())
    }

    pub(crate) fn outcomes(report: &RunRecord) -> Markup {
        let mut told = Document::default();
        run::parts::outcomes(&mut told, Forms::PAGE, report);
        run::parts::failures(&mut told, Forms::PAGE, report);
        crate::page::html::body(&told, &mut Default::default())
    }
}

pub(crate) mod charts {
    use crate::RunRecord;
    use crate::page::html::frame::Plots;
    pub(crate) use crate::run::charts::time_axis;
    use maud::Markup;

    pub(crate) fn over_time(report: &RunRecord, plots: &mut Plots) -> Option<Markup> {
        let blocks = crate::run::charts::over_time(report);
        (!blocks.is_empty()).then(|| super::drawn(blocks, plots))
    }
}

pub(crate) mod server {
    use crate::page::html::frame::Plots;
    pub(crate) use crate::run::server::Watched;
    use crate::section::chart::{Chart, Horizontal};
    use maud::Markup;
    use sample::SutSeries;

    pub(crate) fn over_time(sut: &SutSeries, x: Option<Horizontal>, plots: &mut Plots) -> Markup {
        super::drawn(crate::run::server::over_time(sut, x), plots)
    }

    pub(crate) fn against_load(chart: Chart, all: &[Watched], plots: &mut Plots) -> Markup {
        let chart = crate::run::server::against_load(chart, all);
        super::drawn(chart.map(Into::into), plots)
    }
}

use crate::page::html::frame::Plots;
use crate::section::{Block, Document, Forms};
use maud::Markup;

fn rendered(blocks: impl IntoIterator<Item = Block>) -> Markup {
    drawn(blocks, &mut Plots::default())
}

fn drawn(blocks: impl IntoIterator<Item = Block>, plots: &mut Plots) -> Markup {
    let mut told = Document::default();
    told.add(Forms::PAGE, blocks);
    crate::page::html::body(&told, plots)
}
