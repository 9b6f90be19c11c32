//! Reports as bytes: a document of [`crate::section`] as text, as a page, as Markdown, and cases as JUnit's
//! XML. Nothing here knows what a report is about.

pub(crate) mod html;
pub(crate) mod junit;
pub(crate) mod markdown;
pub(crate) mod text;
