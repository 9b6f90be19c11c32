//! Switches that spoil one behaviour each, so that a test plan can be shown to notice.

/// One behaviour gone wrong on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Break {
    /// The welcome page greets differently.
    Welcome,
}

/// Every switch with its name and what it does, in the order for help.
pub const BREAKS: &[(Break, &str, &str)] =
    &[(Break::Welcome, "welcome", "the welcome page does not say Welcome")];

/// The switches that are on.
#[derive(Clone, Debug, Default)]
pub struct Breaks(Vec<Break>);

impl Breaks {
    /// Names as in [`BREAKS`], separated by commas.
    ///
    /// # Errors
    /// The first name that is none.
    pub fn parse(text: &str) -> Result<Breaks, String> {
        let find = |name: &str| {
            let known = BREAKS.iter().find(|(_, known, _)| *known == name);
            known.map(|(which, ..)| *which).ok_or_else(|| name.to_owned())
        };
        text.split(',').map(|name| find(name.trim())).collect::<Result<_, _>>().map(Breaks)
    }

    pub fn has(&self, which: Break) -> bool {
        self.0.contains(&which)
    }
}
