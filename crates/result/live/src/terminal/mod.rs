//! The live view of a run in a terminal: a [`Model`] of what is known so far, [`draw()`] that puts it
//! on a grid of cells of any size, and [`Screen`], the thread that owns the terminal. Measures
//! nothing, decides nothing about the run but to ask for its end, and holds nobody up: whoever
//! measures hands figures in and goes on.

mod draw;
mod keys;
mod model;
mod screen;

pub use draw::{Look, draw};
pub use model::{Climb, HISTORY_MAX, Judged, Model, Subject, TimeLeft};
pub use screen::{Screen, StopCallback, restore};

#[cfg(test)]
mod tests;
