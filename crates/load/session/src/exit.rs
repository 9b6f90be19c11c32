//! Exit codes, and reasons why the program ends early.

/// The program's result for its caller; docs/guide/in-ci.md explains it in full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    Done = 0,
    /// An objective or expectation was missed, or a rule ended the run.
    Missed = 1,
    /// The command line, a plan or a file named in it is invalid.
    Usage = 2,
    /// No attempt got a connection (with its TLS).
    NoConnection = 3,
    /// The figures do not describe the server.
    Invalid = 4,
    /// A result could not be written.
    NotWritten = 5,
    Interrupted = 130,
}

impl From<Code> for u8 {
    fn from(code: Code) -> u8 {
        code as u8
    }
}

/// The reason why a command ended early, and its exit code.
#[derive(Debug)]
pub struct Failure {
    pub code: Code,
    pub text: String,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Failure {}

impl Failure {
    pub fn usage(text: impl Into<String>) -> Failure {
        Failure { code: Code::Usage, text: text.into() }
    }

    pub fn not_written(error: &anyhow::Error) -> Failure {
        Failure { code: Code::NotWritten, text: format!("{error:#}") }
    }

    /// Returns how the program ends after a run failed: because of its script, a log of calls that
    /// cannot be written, or a bug.
    pub fn from_run(error: anyhow::Error) -> Failure {
        let error = match error.downcast::<Failure>() {
            Ok(failure) => return failure,
            Err(error) => error,
        };
        if let Some(error) = error.downcast_ref::<workload::ScriptError>() {
            return Failure::usage(format!("--script: {error}"));
        }
        if let Some(NotBegun(why)) = error.downcast_ref::<NotBegun>() {
            return Failure::usage(why.clone());
        }
        Failure::not_written(&error)
    }
}

/// Reason why a fleet did not start a run; nothing was sent.
#[derive(Debug)]
pub struct NotBegun(pub String);

impl std::fmt::Display for NotBegun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NotBegun {}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Failure {
        let error = match error.downcast::<Failure>() {
            Ok(failure) => return failure,
            Err(error) => error,
        };
        let resolving = error.downcast_ref::<host::ResolveError>().is_some();
        let code = if resolving { Code::NoConnection } else { Code::Usage };
        Failure { code, text: format!("{error:#}") }
    }
}

impl From<netpath::PathTrouble> for Failure {
    fn from(trouble: netpath::PathTrouble) -> Failure {
        Failure::usage(trouble.to_string())
    }
}
