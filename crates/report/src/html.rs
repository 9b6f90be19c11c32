//! Pieces of a page, for pages that write their own HTML.

pub(crate) mod sections {
    use crate::words;
    use maud::{Markup, html};
    use record::run::EnvironmentRecord;

    pub(crate) fn how_to_look() -> Markup {
        crate::page::html::how_to_look()
    }

    pub(crate) fn footer(started_unix_s: f64, environment: &EnvironmentRecord) -> Markup {
        html! { footer { (words::measured(started_unix_s, environment)) } }
    }
}
