use super::*;

mod search;
mod shape;
mod vectors;
