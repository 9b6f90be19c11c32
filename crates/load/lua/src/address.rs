//! Names and addresses. Scripts receive addresses as objects; here they are text, `ip:port`.

use crate::director::ScriptTrouble;
use crate::state::failure;
use mlua::{Lua, Table};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

/// Timeout of the test connect to one address.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// Installs host functions of a script: `lookup` and `connect`.
pub(crate) fn native(lua: &Lua) -> mlua::Result<Table> {
    let native = lua.create_table()?;
    let lookup = lua.create_function(|_, (host, service): (String, String)| {
        let found = resolve(&host, &service).map_err(failure)?;
        Ok(found.iter().map(SocketAddr::to_string).collect::<Vec<String>>())
    })?;
    native.raw_set("lookup", lookup)?;
    let connect = lua.create_function(|_, address: String| {
        let address = parse(&address)?;
        Ok(TcpStream::connect_timeout(&address, CONNECT_LIMIT).is_ok())
    })?;
    native.raw_set("connect", connect)?;
    Ok(native)
}

/// Parses an address from its text.
pub(crate) fn parse(text: &str) -> mlua::Result<SocketAddr> {
    text.parse().map_err(|_| mlua::Error::runtime(format!("{text} is not an address")))
}

/// Resolves the addresses of a host; `service` is a port, `http` or `https`.
fn resolve(host: &str, service: &str) -> Result<Vec<SocketAddr>, ScriptTrouble> {
    let unresolved = |why: &str| ScriptTrouble::Resolve(format!("{host}:{service} {why}"));
    let port = match service {
        "http" => 80,
        "https" => 443,
        number => {
            number.parse().map_err(|_| unresolved("Servname not supported for ai_socktype"))?
        }
    };
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let found = (bare, port).to_socket_addrs().map_err(|error| {
        let text = error.to_string();
        // the library prefixes the resolver's message with its own
        unresolved(text.rsplit(": ").next().unwrap_or(&text))
    })?;
    Ok(found.collect())
}

/// Returns the system's reason why no address of `host` accepted a connection.
pub(crate) fn why_unreachable(host: &str, service: &str) -> String {
    let Ok(found) = resolve(host, service) else { return "Name or service not known".into() };
    let mut why = String::from("no address");
    for address in found {
        if let Err(error) = TcpStream::connect_timeout(&address, CONNECT_LIMIT) {
            let text = error.to_string();
            why = text.split(" (os error").next().unwrap_or(&text).to_owned();
        }
    }
    why
}
