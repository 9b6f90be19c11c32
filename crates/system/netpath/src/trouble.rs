//! Reasons why a path cannot be created here, with the fix: one sentence each.

use std::fmt;
use std::io;

/// Problems with a path.
#[derive(Debug)]
pub enum PathTrouble {
    /// /dev/net/tun cannot be opened.
    Device(io::Error),
    /// Network namespaces are not permitted.
    Namespace(io::Error),
    /// Devices on the host are not permitted, but a server on the host needs one.
    Host(io::Error),
    /// Every block of addresses reserved for this is in use.
    Addresses,
    /// The requested addresses are in use.
    Taken { prefix: String, by: String },
    /// Too few addresses for a part per thread.
    FewAddresses { addresses: u32, parts: u32 },
    /// More clients than addresses in one worker's part.
    TooManyClients { clients: u32, workers: u32, room: u32 },
    /// Another error; the failed operation comes first.
    Other(String, io::Error),
}

impl PathTrouble {
    pub(crate) fn other(what: &str) -> impl FnOnce(io::Error) -> PathTrouble {
        move |error| PathTrouble::Other(what.to_owned(), error)
    }
}

impl fmt::Display for PathTrouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PathTrouble::Device(error) => write!(
                f,
                "cannot use /dev/net/tun ({error}){}; fix: run as root, or make the device \
                usable (`modprobe tun`, `chmod 0666 /dev/net/tun`), in a container with --device \
                /dev/net/tun --cap-add NET_ADMIN",
                mode()
            ),
            PathTrouble::Namespace(error) => write!(
                f,
                "cannot create a network namespace ({error}); fix: run as root, or allow user \
                namespaces (sysctl user.max_user_namespaces, user.max_net_namespaces, \
                kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns), \
                in a container with --cap-add NET_ADMIN --cap-add SYS_ADMIN"
            ),
            PathTrouble::Host(error) => write!(
                f,
                "a path to a server on this host needs a network device, which only root can \
                create ({error}); fix: run as root, or use `loadstone netpath --server 'COMMAND' \
                -- PROGRAM` to start the server at the far end of the path, which needs no root"
            ),
            PathTrouble::Addresses => f.write_str(
                "all addresses of 198.18.0.0/15, which paths use (RFC 2544), are routed \
                elsewhere on this host; fix: stop other paths, or delete a route (`ip route`)",
            ),
            PathTrouble::Taken { prefix, by } => write!(
                f,
                "{prefix} is in use on this host: {by}; fix: choose a prefix that neither `ip \
                route` nor `ip address` shows"
            ),
            PathTrouble::FewAddresses { addresses, parts } => write!(
                f,
                "{addresses} addresses are too few for {parts} threads, which need at least 4 \
                each; fix: use a shorter prefix, or fewer --threads"
            ),
            PathTrouble::TooManyClients { clients, workers, room } => {
                let parts = if *workers == 1 { "part" } else { "parts" };
                write!(
                    f,
                    "{clients} clients do not fit into {workers} {parts} of {room} addresses, one \
                    part per thread; fix: use fewer --threads, or fewer clients"
                )
            }
            PathTrouble::Other(what, error) => write!(f, "{what}: {error}"),
        }
    }
}

impl std::error::Error for PathTrouble {}

/// Returns the remark about the mode of the device node.
fn mode() -> String {
    use std::os::unix::fs::MetadataExt;
    match std::fs::metadata("/dev/net/tun") {
        Ok(node) => format!(", its mode is {:04o}", node.mode() & 0o7777),
        Err(_) => String::new(),
    }
}
