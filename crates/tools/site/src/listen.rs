//! Addresses of the site: as typed, and the bound listener.

use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use socket2::{Domain, Socket, Type};

use crate::SiteError;

/// Requested address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// `host:port`; port 0 for any free one.
    Tcp(String),
    /// A Unix socket at this path.
    Unix(PathBuf),
}

/// Bound address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl Listen {
    /// Parses `127.0.0.1:2020`, `[::1]:0`, `localhost:2020`, `:2020` or `2020` (on 127.0.0.1),
    /// `unix:/path`.
    ///
    /// # Errors
    /// Fails if the text is not an address: no port, a port above 65535, an empty path.
    pub fn parse(text: &str) -> Result<Listen, SiteError> {
        let bad = |why: &str| SiteError::Address { text: text.to_owned(), why: why.to_owned() };
        let typed = text.trim();
        if let Some(path) = typed.strip_prefix("unix:") {
            if path.is_empty() {
                return Err(bad("the path is missing"));
            }
            return Ok(Listen::Unix(PathBuf::from(path)));
        }
        let (host, port) = match typed.rsplit_once(':') {
            Some((host, port)) => (host, port),
            None => ("", typed),
        };
        if host.contains(':') && !(host.starts_with('[') && host.ends_with(']')) {
            return Err(bad("an IPv6 address needs brackets"));
        }
        let port: u16 = port.parse().map_err(|_| bad("the port must be a number 0–65535"))?;
        let host = if host.is_empty() { "127.0.0.1" } else { host };
        Ok(Listen::Tcp(format!("{host}:{port}")))
    }
}

impl std::fmt::Display for Listen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Listen::Tcp(address) => f.write_str(address),
            Listen::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Address::Tcp(address) => write!(f, "{address}"),
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// A bound, listening, non-blocking socket. Its descriptor may be shared by several threads.
#[derive(Debug)]
pub(crate) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    pub(crate) fn bind(listen: &Listen, backlog: u32) -> Result<(Listener, Address), SiteError> {
        let failed = |reason| SiteError::Listen { address: listen.to_string(), reason };
        match listen {
            Listen::Tcp(text) => {
                let listener = bind_first(text, backlog).map_err(failed)?;
                let address = listener.local_addr().map_err(failed)?;
                Ok((Listener::Tcp(listener), Address::Tcp(address)))
            }
            Listen::Unix(path) => {
                clear_stale(path)?;
                let listener = UnixListener::bind(path).map_err(failed)?;
                listener.set_nonblocking(true).map_err(failed)?;
                // the standard library has its own backlog
                rustix::net::listen(&listener, queue_len(backlog))
                    .map_err(|errno| failed(errno.into()))?;
                Ok((Listener::Unix(listener), Address::Unix(path.clone())))
            }
        }
    }

    pub(crate) fn share(&self) -> io::Result<Listener> {
        Ok(match self {
            Listener::Tcp(listener) => Listener::Tcp(listener.try_clone()?),
            Listener::Unix(listener) => Listener::Unix(listener.try_clone()?),
        })
    }

    pub(crate) fn is_tcp(&self) -> bool {
        matches!(self, Listener::Tcp(_))
    }
}

impl From<Listener> for OwnedFd {
    fn from(listener: Listener) -> OwnedFd {
        match listener {
            Listener::Tcp(listener) => listener.into(),
            Listener::Unix(listener) => listener.into(),
        }
    }
}

fn bind_first(text: &str, backlog: u32) -> io::Result<TcpListener> {
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for address in text.to_socket_addrs()? {
        match bind_tcp(address, backlog) {
            Ok(listener) => return Ok(listener),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn bind_tcp(address: SocketAddr, backlog: u32) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(queue_len(backlog))?;
    Ok(socket.into())
}

fn queue_len(backlog: u32) -> i32 {
    i32::try_from(backlog).unwrap_or(i32::MAX)
}

/// Removes an abandoned socket. Any other file at the path stays.
fn clear_stale(path: &Path) -> Result<(), SiteError> {
    let refuse = |why| Err(SiteError::UnixPath { path: path.to_owned(), why });
    let Ok(found) = std::fs::symlink_metadata(path) else { return Ok(()) };
    if !found.file_type().is_socket() {
        return refuse("the path is a file that is not a socket; choose another path");
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path).map_err(|reason| SiteError::Listen {
                address: format!("unix:{}", path.display()),
                reason,
            })
        }
        _ => refuse("another program listens there; choose another path"),
    }
}

#[cfg(test)]
mod tests;
