//! Renders a document of [`crate::section`] as bytes: text, a page, Markdown, and JUnit XML.
//! Independent of the subject of a report.

pub(crate) mod html;
pub(crate) mod junit;
pub(crate) mod markdown;
pub(crate) mod text;
