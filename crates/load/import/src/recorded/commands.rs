//! Splits a text into commands, for any shell.

use crate::recorded::RecordedError;

/// A word of a command, in bytes instead of text: `$'\xff'` has a byte that is not a character.
pub(crate) type ShellWord = Vec<u8>;

/// Words before a command that do not change what it sends.
const PREFIXES: [&[u8]; 8] = [b"$", b"%", b"time", b"command", b"exec", b"sudo", b"nohup", b"env"];

/// Returns whether a line begins with curl, perhaps after a prompt or `time`.
pub(crate) fn begins_command(line: &str) -> bool {
    begins_with(line, "curl")
}

/// Returns whether the line begins with this program.
pub(crate) fn begins_with(line: &str, program: &str) -> bool {
    let mut words = line.split_ascii_whitespace().map(str::as_bytes);
    words.find(|word| !is_prefix(word)).is_some_and(|word| is_program(word, program))
}

/// Returns whether a word is the program curl.
pub(crate) fn is_curl(word: &[u8]) -> bool {
    is_program(word, "curl")
}

/// Returns whether a word is this program, by its name or path.
pub(crate) fn is_program(word: &[u8], program: &str) -> bool {
    let program = program.as_bytes();
    let file = word.rsplit(|byte| matches!(byte, b'/' | b'\\')).next().unwrap_or_default();
    let on_windows = |(name, end): (&[u8], &[u8])| {
        name.eq_ignore_ascii_case(program) && end.eq_ignore_ascii_case(b".exe")
    };
    file == program || file.split_at_checked(program.len()).is_some_and(on_windows)
}

/// Returns whether a word may precede curl.
pub(crate) fn is_prefix(word: &[u8]) -> bool {
    PREFIXES.contains(&word)
}

/// Returns the arguments of curl in the words of one command.
pub(crate) fn arguments(words: Vec<ShellWord>) -> Vec<ShellWord> {
    let before = words.iter().take_while(|word| is_prefix(word)).count();
    match words.get(before) {
        Some(word) if is_curl(word) => words.into_iter().skip(before + 1).collect(),
        _ => words,
    }
}

/// Commands of a text.
#[derive(Default)]
pub(crate) struct Split {
    pub(crate) commands: Vec<Vec<ShellWord>>,
    words: Vec<ShellWord>,
    pub(crate) word: Option<ShellWord>,
    /// The next word is the first of a line.
    fresh: bool,
    /// Line that is neither a command nor part of one.
    stray: Option<ShellWord>,
}

impl Split {
    /// Returns the word in progress.
    pub(crate) fn word(&mut self) -> &mut ShellWord {
        self.word.get_or_insert_default()
    }

    pub(crate) fn blank(&mut self) {
        let Some(word) = self.word.take() else { return };
        let first = std::mem::take(&mut self.fresh) && !self.words.is_empty();
        let prefixes = || self.words.iter().all(|word| is_prefix(word));
        if first && !prefixes() {
            if is_curl(&word) || is_prefix(&word) {
                self.end();
            } else if !(word.starts_with(b"-") || word.starts_with(b"http")) {
                self.stray.get_or_insert_with(|| word.clone());
            }
        }
        self.words.push(word);
    }

    /// Ends a line without continuation.
    pub(crate) fn line(&mut self) {
        self.blank();
        self.fresh = true;
    }

    /// Ends a command.
    pub(crate) fn end(&mut self) {
        self.blank();
        if !self.words.is_empty() {
            self.commands.push(std::mem::take(&mut self.words));
        }
    }

    /// Ends the text.
    pub(crate) fn finish(&mut self) -> Result<(), RecordedError> {
        self.blank();
        match &self.stray {
            None => {
                self.end();
                Ok(())
            }
            Some(word) => {
                let word = units::quoted(&String::from_utf8_lossy(word));
                Err(RecordedError(format!(
                    "a line begins with {word}: only curl commands are read, and a command continues on the \
                     next line after a backslash; join the line, or delete it"
                )))
            }
        }
    }
}

pub(crate) fn outside(found: u8) -> RecordedError {
    RecordedError(format!(
        "it has {:?} outside of quotes, which only a shell can interpret; \
         put it into single quotes, or its value in its place",
        char::from(found)
    ))
}

pub(crate) fn open(quote: &str) -> RecordedError {
    RecordedError(format!("a quote is not closed: {quote}"))
}
