//! The terminal: taken over while a run is shown, given back whatever happens. A thread of its own
//! draws and reads keys, so that a slow terminal delays nobody who measures.

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

/// How long a key or a new figure may wait.
const REFRESH: Duration = Duration::from_millis(100);

/// How long a terminal that takes nothing may hold up the end of the program.
const GIVE_BACK_MAX: Duration = Duration::from_secs(5);

/// What to do when the user asks for the end; called again when he asks again.
pub type StopCallback = Box<dyn Fn() + Send>;

type Out = Terminal<CrosstermBackend<BufWriter<Stderr>>>;

/// What the measuring side and the drawing thread share.
#[derive(Debug)]
struct ScreenState {
    model: Mutex<Model>,
    /// Counts changes of the model.
    version: AtomicU64,
    over: AtomicBool,
}

impl ScreenState {
    fn model(&self) -> MutexGuard<'_, Model> {
        // a model is whole after each of its methods, whoever panicked meanwhile
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Model)) {
        change(&mut self.model());
        self.version.fetch_add(1, Ordering::Release);
    }
}

/// The live view while it is shown, on standard error. Dropping it gives the terminal back, where that
/// still takes anything.
#[derive(Debug)]
pub struct Screen {
    shared: Arc<ScreenState>,
    thread: Option<JoinHandle<()>>,
    /// Disconnected once the thread has left the terminal alone.
    left: Receiver<()>,
}

impl Screen {
    /// Takes the terminal over.
    ///
    /// # Errors
    /// Standard error or the keyboard is no terminal, or it refuses to change its mode.
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

    /// Another run begins: what was shown of the one before is forgotten.
    pub fn begin(&self, subject: Subject) {
        self.shared.change(|model| *model = Model::new(subject));
    }

    /// A complete second of the run, with everything measured up to its end.
    pub fn second(&self, second: &Second, total: &Snapshot) {
        // the sums are made outside the lock
        let mut next = self.shared.model().clone();
        next.second(second, total);
        self.shared.change(|model| {
            next.stopping = model.stopping;
            *model = next;
        });
    }

    pub fn judged(&self, judged: Judged) {
        self.shared.change(|model| model.judged(judged));
    }

    pub fn agents(&self, agents: Vec<AgentNow>) {
        self.shared.change(|model| model.agents(agents));
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Release);
        // a terminal that is there but takes nothing would be waited for without end
        if self.left.recv_timeout(GIVE_BACK_MAX) == Err(RecvTimeoutError::Timeout) {
            return;
        }
        if let Some(thread) = self.thread.take() {
            // what a panic there had to say was printed by its hook
            thread.join().ok();
        }
        restore();
    }
}

/// Whether the terminal is ours now.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Gives the terminal back, once; does nothing when it is not taken. For the way out of a program
/// that cannot wait for the view's end.
pub fn restore() {
    if TAKEN.swap(false, Ordering::SeqCst) {
        // nothing can be done for a terminal that is gone
        execute!(stderr(), LeaveAlternateScreen, Show).ok();
        disable_raw_mode().ok();
    }
}

/// A panic's words would be lost on the alternate screen.
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

/// Draws until the run is over or the terminal is gone: the run goes on without it.
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
            // Terminal::clear asks where the cursor is and does nothing where nobody answers; an
            // empty picture has the next one drawn whole. An error shows at the next drawing.
            let emptied = terminal.backend_mut().clear();
            emptied.and_then(|()| terminal.draw(|_| {}).map(drop)).ok();
        }
    }
}
