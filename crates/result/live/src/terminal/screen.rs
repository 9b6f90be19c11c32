//! The terminal: taken over while a run is shown, and always restored. A separate thread draws and
//! reads keys, so a slow terminal does not delay the measurement.

use crate::terminal::draw::{Look, draw};
use crate::terminal::keys::{KeyAction, Keyboard};
use crate::terminal::model::{Judged, Model, Subject};
use anyhow::Context;
use ratatui::Terminal;
use ratatui::backend::{Backend, CrosstermBackend};
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use sample::AgentNow;
use stats::{Second, Snapshot};
use std::io::{BufWriter, Stderr, stderr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Maximum delay of a key or a new figure.
const REFRESH: Duration = Duration::from_millis(100);

/// Maximum time that a blocked terminal delays the end of the program.
const GIVE_BACK_MAX: Duration = Duration::from_secs(5);

/// Called when the user requests the end, and again for each further request.
pub type StopCallback = Box<dyn Fn() + Send>;

type Out = Terminal<CrosstermBackend<BufWriter<Stderr>>>;

/// State shared by the measuring side and the drawing thread.
#[derive(Debug)]
struct ScreenState {
    model: Mutex<Model>,
    /// Counts changes of the model.
    version: AtomicU64,
    over: AtomicBool,
}

impl ScreenState {
    fn model(&self) -> MutexGuard<'_, Model> {
        // a model is consistent after each of its methods, even after a panic elsewhere
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Model)) {
        change(&mut self.model());
        self.version.fetch_add(1, Ordering::Release);
    }
}

/// Live view while it is shown, on standard error. Dropping it restores the terminal, if it still
/// accepts output.
#[derive(Debug)]
pub struct Screen {
    shared: Arc<ScreenState>,
    thread: Option<JoinHandle<()>>,
    /// Disconnected once the thread no longer uses the terminal.
    left: Receiver<()>,
}

impl Screen {
    /// Takes the terminal over.
    ///
    /// # Errors
    /// Fails if standard error or the keyboard is not a terminal, or its mode cannot be changed.
    pub fn open(subject: Subject, look: Look, stop: StopCallback) -> anyhow::Result<Screen> {
        restore_on_panic();
        let keyboard = Keyboard::open().context("there is no keyboard to read from")?;
        enable_raw_mode().context("cannot switch the terminal to raw mode")?;
        TAKEN.store(true, Ordering::SeqCst);
        let terminal = execute!(stderr(), EnterAlternateScreen)
            .and_then(|()| Terminal::new(CrosstermBackend::new(BufWriter::new(stderr()))));
        let terminal = match terminal {
            Ok(terminal) => terminal,
            Err(error) => {
                restore();
                return Err(error).context("cannot open the terminal's alternate screen");
            }
        };
        let shared = Arc::new(ScreenState {
            model: Mutex::new(Model::new(subject)),
            version: AtomicU64::new(1),
            over: AtomicBool::new(false),
        });
        let theirs = shared.clone();
        let (leaving, left) = channel::<()>();
        let body = move || {
            let _leaving = leaving;
            show(terminal, keyboard, &theirs, look, &stop);
        };
        let thread = std::thread::Builder::new().name("live-view".into()).spawn(body);
        let thread = thread.inspect_err(|_| restore()).context("cannot start a thread")?;
        Ok(Screen { shared, thread: Some(thread), left })
    }

    /// Starts another run, and clears the previous one.
    pub fn begin(&self, subject: Subject) {
        self.shared.change(|model| *model = Model::new(subject));
    }

    /// Adds a complete second of the run, with everything measured up to its end.
    pub fn second(&self, second: &Second, total: &Snapshot) {
        // the sums are computed outside the lock
        let mut next = self.shared.model().clone();
        next.second(second, total);
        self.shared.change(|model| {
            next.stopping = model.stopping;
            *model = next;
        });
    }

    pub fn set_verdict(&self, judged: Judged) {
        self.shared.change(|model| model.set_verdict(judged));
    }

    pub fn agents(&self, agents: Vec<AgentNow>) {
        self.shared.change(|model| model.agents(agents));
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Release);
        // a terminal that accepts no output would block forever
        if self.left.recv_timeout(GIVE_BACK_MAX) == Err(RecvTimeoutError::Timeout) {
            return;
        }
        if let Some(thread) = self.thread.take() {
            // a panic there was printed by its hook
            thread.join().ok();
        }
        restore();
    }
}

/// True while the terminal is in our mode.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Restores the terminal once, if it was taken over. For programs that end without waiting for the
/// view.
pub fn restore() {
    if TAKEN.swap(false, Ordering::SeqCst) {
        // a closed terminal cannot be restored
        execute!(stderr(), LeaveAlternateScreen, Show).ok();
        disable_raw_mode().ok();
    }
}

/// Restores the terminal on a panic, whose message would be lost on the alternate screen.
fn restore_on_panic() {
    static HOOKED: Once = Once::new();
    HOOKED.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            restore();
            before(info);
        }));
    });
}

/// Draws until the run is over or the terminal is closed: the run continues without it.
fn show(
    mut terminal: Out,
    keyboard: Keyboard,
    shared: &ScreenState,
    mut look: Look,
    stop: &StopCallback,
) {
    let mut shown = 0;
    let mut size = keyboard.size();
    while !shared.over.load(Ordering::Acquire) {
        let version = shared.version.load(Ordering::Acquire);
        if version != shown {
            shown = version;
            let drawn = terminal.draw(|frame| draw(frame, &shared.model(), look));
            if drawn.is_err() {
                return;
            }
        }
        let Ok(keys) = keyboard.look(REFRESH) else { return };
        for wanted in keys {
            act(wanted, &mut terminal, shared, &mut look, stop);
            shown = 0;
        }
        let now = keyboard.size();
        if now != size {
            size = now;
            shown = 0;
        }
    }
}

fn act(
    wanted: KeyAction,
    terminal: &mut Out,
    shared: &ScreenState,
    look: &mut Look,
    stop: &StopCallback,
) {
    match wanted {
        KeyAction::Stop => {
            shared.change(Model::stopping);
            stop();
        }
        KeyAction::Help => look.help = !look.help,
        KeyAction::NoHelp => look.help = false,
        KeyAction::Redraw => {
            // Terminal::clear queries the cursor and does nothing without an answer; an empty
            // picture makes the next one complete. An error shows at the next drawing.
            let emptied = terminal.backend_mut().clear();
            emptied.and_then(|()| terminal.draw(|_| {}).map(drop)).ok();
        }
    }
}
