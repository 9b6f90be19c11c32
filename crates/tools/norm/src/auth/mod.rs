//! Basic authorization (RFC 7617), configured per directory: the nearest `.site.toml` upwards from
//! the requested path, within the node's root, lists the permitted users.
//!
//! Any error in the configuration closes the directory (500, and a log line); only a complete and
//! readable one opens it. The files are read for each request, so that a change takes effect with
//! the next one; only the cache of small files checks no more often than it checks its files.

mod credentials;
mod rule;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::http::StatusCode;

use crate::breaks::{Break, Breaks};
use crate::exchange::Reply;
use crate::names::names;

use credentials::Credentials;
pub(crate) use rule::Rule;

/// The file that configures a directory.
pub(crate) const DIRECTORY_FILE: &str = ".site.toml";

/// Receives errors in a configuration, a line at a time.
pub(crate) type Complain = Arc<dyn Fn(&str) + Send + Sync>;

/// Access control of the directories below a root.
#[derive(Clone)]
pub(crate) struct Guard(Arc<Realm>);

struct Realm {
    root: PathBuf,
    server_root: PathBuf,
    complain: Complain,
}

/// Access rules that apply to a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gates(Vec<Arc<Rule>>);

impl Guard {
    /// Creates a guard. `root`: base of paths. `server_root`: base of the names of password files.
    pub(crate) fn new(root: &Path, server_root: &Path, complain: Complain) -> Guard {
        let (root, server_root) = (root.to_owned(), server_root.to_owned());
        Guard(Arc::new(Realm { root, server_root, complain }))
    }

    /// Checks a request's access: returns the user's name, or `None` if none is required. `path`:
    /// decoded path from the root to a file or directory, which need not exist.
    ///
    /// # Errors
    /// Fails with status 401, or 500 when the configuration is wrong, 403 when it may not be looked
    /// for, 404 for a path that no file can have.
    pub(crate) async fn admit(
        &self,
        path: &str,
        headers: &HeaderMap,
        breaks: &Breaks,
    ) -> Result<Option<String>, Box<Reply>> {
        let (guard, path) = (self.clone(), path.to_owned());
        let gates = tokio::task::spawn_blocking(move || guard.gates(&path)).await;
        let failed = |_| refusal(StatusCode::INTERNAL_SERVER_ERROR, "The guard failed.\n");
        gates.map_err(failed)??.admit(headers, breaks)
    }

    /// Returns the gates before a path. Reads files: for threads that may block.
    ///
    /// # Errors
    /// Fails like [`Guard::admit`], without 401.
    pub(crate) fn gates(&self, path: &str) -> Result<Gates, Box<Reply>> {
        let nowhere = || refusal(StatusCode::NOT_FOUND, "Not Found\n");
        let names = names(path).ok_or_else(nowhere)?;
        let mut folder = self.0.root.clone();
        let mut folders = vec![folder.clone()];
        for name in names {
            folder.push(name);
            folders.push(folder.clone());
        }
        for folder in folders.iter().rev() {
            let file = folder.join(DIRECTORY_FILE);
            match read_text(&file, CONFIGURATION_MAX) {
                Ok(text) => {
                    let rule = Rule::read(&text, &self.0.server_root);
                    let rule = rule.map_err(|why| self.closed(&file, &why))?;
                    return Ok(Gates(vec![Arc::new(rule)]));
                }
                // present but unreadable, or a dangling link: access was meant to be restricted
                Err(error) if file.symlink_metadata().is_ok() => {
                    return Err(self.closed(&file, &error.to_string()));
                }
                Err(error) if is_absent(&error) => {}
                Err(_) => return Err(refusal(StatusCode::FORBIDDEN, "Access Denied\n")),
            }
        }
        Ok(Gates::default())
    }

    fn closed(&self, file: &Path, why: &str) -> Box<Reply> {
        (self.0.complain)(&format!("{}: {why}; the directory is closed", file.display()));
        let text = "The configuration of this directory is invalid; the log has the details.\n";
        refusal(StatusCode::INTERNAL_SERVER_ERROR, text)
    }
}

impl Gates {
    /// Returns the requirements of both.
    pub(crate) fn and(mut self, other: Gates) -> Gates {
        self.0.extend(other.0);
        self
    }

    /// Checks whether the headers satisfy all rules, and returns the user.
    ///
    /// # Errors
    /// Fails with status 401.
    pub(crate) fn admit(
        &self,
        headers: &HeaderMap,
        breaks: &Breaks,
    ) -> Result<Option<String>, Box<Reply>> {
        let mut entered = None;
        if self.0.is_empty() {
            return Ok(entered);
        }
        let given = Credentials::new(headers);
        for rule in &self.0 {
            if breaks.has(Break::AuthAnybody) {
                continue;
            }
            let user = given.as_ref().and_then(|given| rule.admits(given, breaks));
            entered = Some(user.ok_or_else(|| unauthorised(rule, breaks))?);
        }
        Ok(entered)
    }
}

fn refusal(status: StatusCode, text: &str) -> Box<Reply> {
    Box::new(Reply::text(status, text))
}

fn unauthorised(rule: &Rule, breaks: &Breaks) -> Box<Reply> {
    let text = "Access Denied: this page needs a name and a password.\n";
    let mut reply = refusal(StatusCode::UNAUTHORIZED, text);
    let realm = if breaks.has(Break::AuthRealm) { "somewhere else" } else { rule.realm() };
    // a quoted string (RFC 9110 §5.6.4); the charset is RFC 7617 §2.1's
    let quoted = realm.replace('\\', r"\\").replace('"', r#"\""#);
    let challenge = format!(r#"Basic realm="{quoted}", charset="UTF-8""#);
    let value = HeaderValue::from_bytes(challenge.as_bytes())
        .expect("a realm without control characters, which the rule's reader refuses");
    reply.headers.insert(header::WWW_AUTHENTICATE, value);
    reply
}

/// Longest configuration of a directory, and longest file of passwords or groups, in bytes.
const CONFIGURATION_MAX: u64 = 64 * 1024;
const LIST_MAX: u64 = 1024 * 1024;

/// Reads a text file completely; refuses files that would block.
fn read_text(path: &Path, len_max: u64) -> io::Result<String> {
    use std::io::Read;
    use std::os::unix::fs::OpenOptionsExt;
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = std::fs::File::options().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut text = String::new();
    file.take(len_max + 1).read_to_string(&mut text)?;
    if text.len() as u64 > len_max {
        return Err(io::Error::other(format!("it is longer than the limit of {len_max} bytes")));
    }
    Ok(text)
}

fn is_absent(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let absent = [Errno::NOENT, Errno::NOTDIR, Errno::NAMETOOLONG];
    Errno::from_io_error(error).is_some_and(|error| absent.contains(&error))
}

#[cfg(test)]
mod tests;
