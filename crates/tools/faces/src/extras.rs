//! Options of every face, in addition to those of its tool.

/// `--strict`, `--notes` and `--native`, which no tool had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extras {
    /// Computes figures as the tool does, including its mistakes.
    pub strict: bool,
    /// Prints notes on standard error, even if it is not a terminal.
    pub notes: bool,
    /// Prints the equivalent native command, without running it.
    pub native: bool,
}

impl Extras {
    /// Extracts them from a command line, anywhere before a `--`.
    pub fn take(args: &[String]) -> (Extras, Vec<String>) {
        let mut extras = Extras::default();
        let mut rest = Vec::with_capacity(args.len());
        let mut over = false;
        for arg in args {
            over |= arg == "--";
            match arg.as_str() {
                "--strict" if !over => extras.strict = true,
                "--notes" if !over => extras.notes = true,
                "--native" if !over => extras.native = true,
                _ => rest.push(arg.clone()),
            }
        }
        (extras, rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_options_are_removed_and_the_rest_stays_in_order() {
        let args = ["-n", "3", "--strict", "--notes", "--", "--native"].map(str::to_owned);
        let (extras, rest) = Extras::take(&args);
        assert_eq!(extras, Extras { strict: true, notes: true, native: false });
        assert_eq!(rest, ["-n", "3", "--", "--native"]);
    }
}
