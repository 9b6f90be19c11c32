//! The command line as typed, and messages on standard error.

use std::io::Write;

/// Returns the words of the command line, the program's name first. Invalid Unicode, possible in
/// file names, is replaced.
pub fn command_words() -> Vec<String> {
    std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect()
}

/// Prints a line for people on standard error; a failed write is ignored.
pub fn print_message(text: &str) {
    let mut error = std::io::stderr().lock();
    for line in text.lines() {
        writeln!(error, "loadstone: {line}").ok();
    }
}
