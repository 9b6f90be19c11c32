mod guard;
mod serving;
