//! The command line as typed, standard streams, and messages on standard error.

use host::invocation;
pub use host::invocation::{
    inherited, stderr, stderr_is_terminal, stdin, stdout, stdout_is_terminal, text_variable,
    variable, variables,
};
use std::io::Write;

/// Returns the words of the command line, the program's name first. Invalid Unicode, possible in
/// file names, is replaced.
pub fn command_words() -> Vec<String> {
    invocation::words().iter().map(|word| word.to_string_lossy().into_owned()).collect()
}

/// Prints a line for people on standard error; a failed write is ignored.
pub fn print_message(text: &str) {
    let mut error = stderr();
    for line in text.lines() {
        writeln!(error, "loadstone: {line}").ok();
    }
}
