//! Who may be tested.

use crate::exit::Failure;
use std::net::IpAddr;
use torture::safety::{self, Class};
use url::Url;

/// Whether this server may be tortured.
pub(super) fn permit(url: &Url, addresses: &[IpAddr]) -> Result<Class, Failure> {
    let port = url.port_or_known_default().unwrap_or(80);
    if safety::PORTS_REFUSED.contains(&port) {
        return Err(Failure::usage(format!("port {port} is another protocol's: refused")));
    }
    let class = safety::strictest(addresses);
    let list: Vec<String> = addresses.iter().map(IpAddr::to_string).collect();
    match class {
        Class::Local | Class::Private => Ok(class),
        Class::Public => Err(Failure::usage(format!(
            "{} is public: torture is for loopback and private addresses only",
            list.join(", ")
        ))),
        Class::Never => {
            Err(Failure::usage(format!("{} is nobody's to torture: refused", list.join(", "))))
        }
    }
}
