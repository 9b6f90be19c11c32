//! Arguments, environment variables and standard streams of a command.
//!
//! Usually those of this process. A program that runs a command in its own process, such as a test,
//! passes others with [`Invocation::run`]: they apply to the calling thread, and to the threads
//! that it starts with a body from [`inherited`].

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead, IsTerminal, StderrLock, StdoutLock, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Arguments, variables and input for a command in this process. Its streams are not terminals, and
/// signals to the process do not reach it.
#[derive(Clone, Debug, Default)]
pub struct Invocation {
    /// The path of the program, which a command may start, then its arguments.
    pub words: Vec<OsString>,
    /// All environment variables.
    pub variables: BTreeMap<OsString, OsString>,
    /// Standard input to its end.
    pub input: Vec<u8>,
}

/// Output of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

/// Invocation whose command is running.
#[derive(Debug)]
struct GivenInvocation {
    words: Vec<OsString>,
    variables: BTreeMap<OsString, OsString>,
    /// Standard input that no reader has taken.
    input: Mutex<Vec<u8>>,
    output: Mutex<Output>,
}

thread_local! {
    /// Invocation of this thread; `None`: of the process.
    static CURRENT: RefCell<Option<Arc<GivenInvocation>>> = const { RefCell::new(None) };
}

fn current() -> Option<Arc<GivenInvocation>> {
    CURRENT.with_borrow(Clone::clone)
}

/// Returns the current invocation's value of `given`, or that of the process.
fn either<T>(given: impl FnOnce(&GivenInvocation) -> T, process: impl FnOnce() -> T) -> T {
    current().map_or_else(process, |running| given(&running))
}

/// Restores a thread's invocation on drop, also after a panic.
struct Restored(Option<Arc<GivenInvocation>>);

impl Drop for Restored {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
    }
}

fn enter(running: Option<Arc<GivenInvocation>>) -> Restored {
    Restored(CURRENT.replace(running))
}

impl Invocation {
    /// Runs a command with this invocation; returns its result and what it wrote.
    pub fn run<T>(self, command: impl FnOnce() -> T) -> (T, Output) {
        let Invocation { words, variables, input } = self;
        let output = Mutex::default();
        let running =
            Arc::new(GivenInvocation { words, variables, input: Mutex::new(input), output });
        let restored = enter(Some(Arc::clone(&running)));
        let result = command();
        drop(restored);
        let output = std::mem::take(&mut *locked(&running.output));
        (result, output)
    }
}

fn locked<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns `body` with the invocation of the calling thread, for another thread to run.
pub fn inherited<T>(body: impl FnOnce() -> T) -> impl FnOnce() -> T {
    let running = current();
    move || {
        let _restored = enter(running);
        body()
    }
}

/// Returns whether the command has this process to itself, so that it may change what belongs to
/// the process, such as the handlers of signals.
pub fn is_process() -> bool {
    current().is_none()
}

/// Returns the command line: the program's name, then its arguments.
pub fn words() -> Vec<OsString> {
    either(|running| running.words.clone(), || std::env::args_os().collect())
}

/// Returns the path of the program's file, to start it again.
///
/// # Errors
/// Fails if the system does not report the path.
pub fn program() -> io::Result<PathBuf> {
    let given = |running: &GivenInvocation| {
        Ok(running.words.first().map(PathBuf::from).unwrap_or_default())
    };
    either(given, std::env::current_exe)
}

/// Returns an environment variable.
pub fn variable(name: &str) -> Option<OsString> {
    let given = |running: &GivenInvocation| running.variables.get(OsStr::new(name)).cloned();
    either(given, || std::env::var_os(name))
}

/// Returns an environment variable; `None` if it is not Unicode.
pub fn text_variable(name: &str) -> Option<String> {
    variable(name).and_then(|value| value.into_string().ok())
}

/// Returns all environment variables.
pub fn variables() -> BTreeMap<OsString, OsString> {
    either(|running| running.variables.clone(), || std::env::vars_os().collect())
}

/// Locked standard output.
#[derive(Debug)]
pub struct Stdout(StreamOwner<StdoutLock<'static>>);

/// Locked standard error.
#[derive(Debug)]
pub struct Stderr(StreamOwner<StderrLock<'static>>);

#[derive(Debug)]
enum StreamOwner<P> {
    Process(P),
    Given(Arc<GivenInvocation>),
}

/// Returns standard output, locked if it is that of the process.
pub fn stdout() -> Stdout {
    Stdout(current().map_or_else(|| StreamOwner::Process(io::stdout().lock()), StreamOwner::Given))
}

/// Returns standard error, locked if it is that of the process.
pub fn stderr() -> Stderr {
    Stderr(current().map_or_else(|| StreamOwner::Process(io::stderr().lock()), StreamOwner::Given))
}

/// Returns standard input, locked if it is that of the process. The first reader of a given input
/// takes all of it.
pub fn stdin() -> Box<dyn BufRead> {
    match current() {
        None => Box::new(io::stdin().lock()),
        Some(running) => Box::new(io::Cursor::new(std::mem::take(&mut *locked(&running.input)))),
    }
}

/// Returns whether standard output is a terminal.
pub fn stdout_is_terminal() -> bool {
    is_process() && io::stdout().is_terminal()
}

/// Returns whether standard error is a terminal.
pub fn stderr_is_terminal() -> bool {
    is_process() && io::stderr().is_terminal()
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            StreamOwner::Process(stream) => stream.write(bytes),
            StreamOwner::Given(running) => locked(&running.output).stdout.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            StreamOwner::Process(stream) => stream.flush(),
            StreamOwner::Given(_) => Ok(()),
        }
    }
}

impl Write for Stderr {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            StreamOwner::Process(stream) => stream.write(bytes),
            StreamOwner::Given(running) => locked(&running.output).stderr.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            StreamOwner::Process(stream) => stream.flush(),
            StreamOwner::Given(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;
    use std::thread;

    fn given(words: &[&str], variables: &[(&str, &str)], input: &str) -> Invocation {
        Invocation {
            words: words.iter().map(OsString::from).collect(),
            variables: variables.iter().map(|(name, value)| (name.into(), value.into())).collect(),
            input: input.into(),
        }
    }

    #[test]
    fn a_command_has_the_words_and_streams_of_its_invocation() {
        let (result, output) = given(&["p", "x"], &[("A", "1")], "in\nput").run(|| {
            assert!(!is_process() && !stdout_is_terminal() && !stderr_is_terminal());
            assert_eq!(words(), ["p", "x"]);
            assert_eq!((text_variable("A").as_deref(), variable("PATH")), (Some("1"), None));
            assert_eq!(variables().len(), 1);
            let mut text = String::new();
            stdin().read_to_string(&mut text).unwrap();
            stdout().write_all(text.as_bytes()).unwrap();
            writeln!(stderr(), "wrong").unwrap();
            7
        });
        assert_eq!(result, 7);
        assert_eq!(output, Output { stdout: b"in\nput".into(), stderr: b"wrong\n".into() });
        assert!(is_process());
    }

    #[test]
    fn commands_on_several_threads_do_not_mix_their_output() {
        let one = |name: &'static str| {
            let command = move || {
                for _ in 0..200 {
                    writeln!(stdout(), "{}", words()[0].display()).unwrap();
                }
            };
            thread::spawn(move || given(&[name], &[], "").run(command).1.stdout)
        };
        for (name, thread) in ["a", "b", "c"].map(|name| (name, one(name))) {
            let expected = format!("{name}\n").repeat(200);
            assert_eq!(String::from_utf8(thread.join().unwrap()).unwrap(), expected);
        }
    }

    #[test]
    fn a_thread_inherits_the_invocation() {
        let ((), output) = given(&["p"], &[], "").run(|| {
            let body = inherited(|| stdout().write_all(b"from a thread").unwrap());
            thread::spawn(body).join().unwrap();
        });
        assert_eq!(output.stdout, b"from a thread");
    }

    #[test]
    fn a_panic_restores_the_invocation_of_the_process() {
        let broken =
            || given(&["p"], &[], "").run(|| assert!(words().is_empty(), "a test of panics"));
        assert!(std::panic::catch_unwind(broken).is_err());
        assert!(is_process());
    }
}
