//! Nodes that answer for a path.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hyper::StatusCode;
use hyper::header::{CONTENT_LENGTH, HeaderMap};

use crate::auth::Guard;
use crate::breaks::{Break, Breaks};
use crate::builtin::{self, Sleep};
use crate::cgi::per_request::PerRequest;
use crate::cgi::{self, CgiScript, Places};
use crate::exchange::{Ask, Content, Reply, SOFTWARE};
use crate::files::{self, Directory};
#[cfg(feature = "lua")]
use crate::interpreter::{self, Interpreter};
use crate::log::Log;
use crate::settings::{BuiltIn, DirectorySettings, NodeKind, NodeSettings, NormSettings};
use crate::tree;

pub(crate) enum Node {
    Hello,
    Sleep(Sleep),
    Directory(Directory),
    /// Files, each response by a separate process.
    Process(Directory, PerRequest),
    Cgi(DirectoryGuard, CgiScript),
    #[cfg(feature = "lua")]
    Interpreter(DirectoryGuard, Interpreter),
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Node::Hello => "hw",
            Node::Sleep(_) => "sleep",
            Node::Directory(_) => "directory",
            Node::Process(..) => "process per request",
            Node::Cgi(..) => "CGI",
            #[cfg(feature = "lua")]
            Node::Interpreter(..) => "interpreter",
        })
    }
}

/// The guard of the directory that contains a script.
pub(crate) struct DirectoryGuard {
    guard: Guard,
    /// The script's path for the guard.
    name: String,
}

/// Shared parameters for making nodes.
pub(crate) struct Maker<'a> {
    pub(crate) settings: &'a NormSettings,
    pub(crate) log: &'a Arc<Log>,
    pub(crate) places: &'a Arc<Places>,
}

impl Maker<'_> {
    /// # Errors
    /// Fails if a script for the interpreter is wrong.
    pub(crate) fn node(&self, node: &NodeSettings) -> Result<Node, String> {
        Ok(match &node.kind {
            NodeKind::BuiltIn(BuiltIn::Hello) => Node::Hello,
            NodeKind::BuiltIn(BuiltIn::Sleep) => {
                Node::Sleep(Sleep::new(self.settings.sleep_parallel))
            }
            NodeKind::Directory(own) if own.process_per_request => {
                let places = Arc::clone(self.places);
                let process = PerRequest::new(places, self.limits(), self.complain());
                Node::Process(self.directory(own), process)
            }
            NodeKind::Directory(own) => Node::Directory(self.directory(own)),
            NodeKind::Cgi(program) => {
                Node::Cgi(self.directory_guard(program), self.script(program))
            }
            NodeKind::Interpreter(script) => self.interpreter(script)?,
        })
    }

    fn complain(&self) -> Arc<dyn Fn(&str) + Send + Sync> {
        let log = Arc::clone(self.log);
        Arc::new(move |text| log.warn(text))
    }

    /// Returns the limits of a program: it has the same time as a client.
    fn limits(&self) -> cgi::CgiLimits {
        cgi::CgiLimits { time: self.settings.timeout, ..cgi::CgiLimits::default() }
    }

    fn directory(&self, own: &DirectorySettings) -> Directory {
        Directory::new(files::DirectorySettings {
            root: own.root.clone(),
            server_root: self.settings.root.clone(),
            fancy: own.fancy,
            icons: own.icons.clone(),
            cache: files::CacheBounds::default(),
            complain: self.complain(),
        })
    }

    fn directory_guard(&self, program: &Path) -> DirectoryGuard {
        let folder = program.parent().unwrap_or(&self.settings.root);
        let name = program.file_name().unwrap_or_default().to_string_lossy();
        let guard = Guard::new(folder, &self.settings.root, self.complain());
        DirectoryGuard { guard, name: format!("/{name}") }
    }

    fn script(&self, program: &Path) -> CgiScript {
        CgiScript::new(cgi::CgiSettings {
            program: program.to_owned(),
            root: self.document_root(),
            software: SOFTWARE.to_owned(),
            passed: cgi::passed_on(),
            limits: self.limits(),
            places: Arc::clone(self.places),
            complain: self.complain(),
        })
    }

    /// Returns the directory of the root path: prefix of PATH_TRANSLATED.
    fn document_root(&self) -> Option<PathBuf> {
        let root = self.settings.nodes.iter().find(|node| node.path == "/")?;
        match &root.kind {
            NodeKind::Directory(directory) => Some(directory.root.clone()),
            _ => None,
        }
    }

    #[cfg(feature = "lua")]
    fn interpreter(&self, script: &Path) -> Result<Node, String> {
        let defaults = interpreter::InterpreterLimits::default();
        Interpreter::new(interpreter::InterpreterSettings {
            script: script.to_owned(),
            limits: interpreter::InterpreterLimits { time: self.settings.timeout, ..defaults },
            complain: self.complain(),
        })
        .map(|interpreter| Node::Interpreter(self.directory_guard(script), interpreter))
    }

    #[cfg(not(feature = "lua"))]
    fn interpreter(&self, script: &Path) -> Result<Node, String> {
        let script = script.display();
        Err(format!("{script}: this program was built without Lua; remove the node"))
    }
}

impl Node {
    /// Returns whether a response may be [`Content::Elsewhere`].
    pub(crate) fn may_redirect_internally(&self) -> bool {
        matches!(self, Node::Cgi(..))
    }

    pub(crate) async fn answer(&self, ask: Ask, breaks: &Breaks) -> Reply {
        match self {
            Node::Hello => builtin::hello(&ask, breaks),
            Node::Sleep(sleep) => sleep.answer(&ask, breaks).await,
            Node::Directory(directory) => {
                let at_root = ask.path == "/";
                let reply = directory.answer(ask, breaks).await;
                if at_root { spoil_welcome(reply, breaks) } else { reply }
            }
            Node::Process(directory, process) => {
                process.copy_through_process(directory.answer(ask, breaks).await).await
            }
            Node::Cgi(door, script) => match door.admit(ask, breaks).await {
                Ok(ask) => script.answer(ask, breaks).await,
                Err(refused) => *refused,
            },
            #[cfg(feature = "lua")]
            Node::Interpreter(door, interpreter) => match door.admit(ask, breaks).await {
                Ok(ask) => interpreter.answer(ask).await,
                Err(refused) => *refused,
            },
        }
    }
}

impl DirectoryGuard {
    /// Returns the request with its user's name, when it may enter.
    async fn admit(&self, mut ask: Ask, breaks: &Breaks) -> Result<Ask, Box<Reply>> {
        ask.user = self.guard.admit(&self.name, &ask.headers, breaks).await?;
        Ok(ask)
    }
}

fn spoil_welcome(mut reply: Reply, breaks: &Breaks) -> Reply {
    let spoils = breaks.has(Break::Welcome) || breaks.has(Break::Menu);
    if spoils && reply.status == StatusCode::OK {
        reply.headers.remove(CONTENT_LENGTH);
        reply.content = Content::Bytes(tree::spoiled_welcome(breaks).into());
    }
    reply
}

/// Returns the fields of a request without those that concern its body.
pub(crate) fn without_body_fields(headers: &HeaderMap) -> HeaderMap {
    use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, EXPECT, TRANSFER_ENCODING};
    let mut headers = headers.clone();
    for name in [CONTENT_LENGTH, CONTENT_TYPE, CONTENT_ENCODING, EXPECT, TRANSFER_ENCODING] {
        headers.remove(name);
    }
    headers
}
