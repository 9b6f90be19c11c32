//! The live view of a run in a terminal: a [`Model`] of the current state, [`draw()`] that puts it
//! on a grid of cells of any size, and [`Screen`], the thread that owns the terminal. It measures
//! nothing, affects the run only by requesting its end, and never blocks the measuring thread.

mod draw;
mod keys;
mod model;
mod screen;

pub use draw::{Look, draw};
pub use model::{Climb, HISTORY_MAX, Judged, Model, Subject, TimeLeft};
pub use screen::{Screen, StopCallback, restore};

#[cfg(test)]
mod tests;
