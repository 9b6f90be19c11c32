//! Single-letter options, as parsed by the C library and the Apache runtime.

/// One step through a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionStep<'a> {
    /// Letter, with its value if it takes one.
    Option(char, &'a str),
    /// A letter that the tool does not have.
    Unknown(char),
    /// A letter at the very end that requires a value.
    NoValue(char),
    /// No option follows; operands begin at [`Getopt::at`].
    End,
}

/// Reads option letters from arguments; stops at the first operand, at `--`, and at a lone `-`.
#[derive(Debug)]
pub struct Getopt<'a> {
    args: &'a [String],
    /// Accepted letters, such as `n:k`; a colon marks a letter that takes a value.
    letters: &'a str,
    at: usize,
    /// The remainder of a group of letters: `c5` of `-kc5`.
    group: &'a str,
}

impl<'a> Getopt<'a> {
    pub fn new(args: &'a [String], letters: &'a str) -> Getopt<'a> {
        Getopt { args, letters, at: 0, group: "" }
    }

    /// Returns the index of the next argument. A group whose letters are not all read counts as not
    /// read.
    pub fn at(&self) -> usize {
        self.at
    }

    pub fn step(&mut self) -> OptionStep<'a> {
        if self.group.is_empty() {
            let Some(arg) = self.args.get(self.at) else { return OptionStep::End };
            match arg.strip_prefix('-') {
                None | Some("") => return OptionStep::End,
                Some(rest) if rest.starts_with('-') => {
                    self.at += 1;
                    return OptionStep::End;
                }
                Some(rest) => self.group = rest,
            }
        }
        let mut chars = self.group.chars();
        let Some(letter) = chars.next() else { return OptionStep::End };
        self.group = chars.as_str();
        match self.takes_value(letter) {
            None => {
                self.leave_group();
                OptionStep::Unknown(letter)
            }
            Some(false) => {
                self.leave_group();
                OptionStep::Option(letter, "")
            }
            Some(true) => self.value(letter),
        }
    }

    fn value(&mut self, letter: char) -> OptionStep<'a> {
        let here = std::mem::take(&mut self.group);
        self.at += 1;
        if !here.is_empty() {
            return OptionStep::Option(letter, here);
        }
        match self.args.get(self.at) {
            Some(value) => {
                self.at += 1;
                OptionStep::Option(letter, value)
            }
            None => OptionStep::NoValue(letter),
        }
    }

    fn leave_group(&mut self) {
        if self.group.is_empty() {
            self.at += 1;
        }
    }

    /// Returns whether the letter takes a value; `None` if the tool has no such letter.
    fn takes_value(&self, letter: char) -> Option<bool> {
        let at = self.letters.find(letter).filter(|_| letter != ':')?;
        Some(self.letters[at + letter.len_utf8()..].starts_with(':'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(line: &str) -> String {
        let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let mut options = Getopt::new(&args, "n:kc:");
        let mut lines = Vec::new();
        loop {
            let step = options.step();
            lines.push(format!("{step:?}"));
            if !matches!(step, OptionStep::Option(..)) {
                break;
            }
        }
        format!("{} at {}", lines.join(" "), options.at())
    }

    #[test]
    fn letters_values_groups_and_ends() {
        insta::assert_snapshot!(
            ["-n 3 -kc5 url", "-c", "-kQk url", "-Q url", "--foo url", "- url", "url -k", "-k -- -k", "-n -k"]
                .map(|line| format!("{line}: {}", steps(line)))
                .join("\n"),
            @r#"
        -n 3 -kc5 url: Option('n', "3") Option('k', "") Option('c', "5") End at 3
        -c: NoValue('c') at 1
        -kQk url: Option('k', "") Unknown('Q') at 0
        -Q url: Unknown('Q') at 1
        --foo url: End at 1
        - url: End at 0
        url -k: End at 0
        -k -- -k: Option('k', "") End at 2
        -n -k: Option('n', "-k") End at 2
        "#
        );
    }
}
