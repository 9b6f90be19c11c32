//! Who may be tortured. Loopback is free; private addresses are somebody's, perhaps not mine; a
//! public address needs consent that lies on the server. No option turns this off.

mod address;

pub use address::{Class, PORTS_REFUSED, class, strictest};
