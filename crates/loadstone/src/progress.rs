//! Progress of a command, only on standard error of a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use session::console::{stderr_is_terminal, variable};

/// Redraws per second.
const HZ: u8 = 4;

/// Creates a progress line; `None` without a terminal. `template` has the syntax of indicatif.
pub(crate) fn bar(quiet: bool, length: Option<u64>, template: &str) -> Option<ProgressBar> {
    let dumb = dumb_terminal();
    let shown = !quiet && !dumb && stderr_is_terminal();
    shown.then(|| {
        let style = ProgressStyle::with_template(template);
        let target = ProgressDrawTarget::stderr_with_hz(HZ);
        let bar = ProgressBar::with_draw_target(length, target);
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        bar
    })
}

/// Returns whether the terminal cannot move its cursor back.
pub(crate) fn dumb_terminal() -> bool {
    variable("TERM").is_some_and(|term| term == "dumb")
}
