//! TCP implementation of a run's connections, and how its packets are exchanged.

use crate::names::name_of;
use std::fmt;
use std::net::IpAddr;
use units::{ParseError, quoted};

/// TCP implementation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StackChoice {
    /// Chosen by Loadstone: the kernel's.
    #[default]
    Auto,
    /// The kernel's sockets.
    Kernel,
    /// The kernel's sockets with io_uring, if the kernel supports it.
    KernelBatches,
    /// The program's own TCP over a TUN device, with packets in batches while many arrive together.
    Own,
    /// Own TCP with a system call for each packet.
    OwnCalls,
    /// Own TCP with packets in batches, if the kernel supports it.
    OwnBatches,
    /// The program's own TCP over an Ethernet device with AF_XDP.
    OwnXdp(XdpChoice),
}

impl StackChoice {
    /// Returns whether it is the program's own TCP.
    pub fn is_own(&self) -> bool {
        !matches!(self, StackChoice::Auto | StackChoice::Kernel | StackChoice::KernelBatches)
    }

    /// Returns the AF_XDP device, if packets are exchanged through it.
    pub fn xdp(&self) -> Option<&XdpChoice> {
        match self {
            StackChoice::OwnXdp(choice) => Some(choice),
            _ => None,
        }
    }
}

/// An Ethernet device whose packets are received with AF_XDP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XdpChoice {
    pub device: String,
    /// Next hop of all packets; `None` for this host's routes.
    pub gateway: Option<IpAddr>,
    pub mode: XdpMode,
}

/// Place in the kernel where packets are received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum XdpMode {
    /// Native or generic, depending on the device.
    #[default]
    Auto,
    /// In the device's driver.
    Native,
    /// After the driver.
    Generic,
}

const STACKS: [(&str, StackChoice); 6] = [
    ("auto", StackChoice::Auto),
    ("kernel", StackChoice::Kernel),
    ("kernel:batches", StackChoice::KernelBatches),
    ("own", StackChoice::Own),
    ("own:calls", StackChoice::OwnCalls),
    ("own:batches", StackChoice::OwnBatches),
];
const MODES: [(&str, XdpMode); 3] =
    [("auto", XdpMode::Auto), ("native", XdpMode::Native), ("generic", XdpMode::Generic)];
/// Maximum length of a device name on Linux.
const NAME_MAX: usize = 15;

/// Parses `kernel`, `kernel:batches`, `own`, `own:calls`, `own:batches`,
/// `own:xdp=eth0,gateway=10.0.0.1,mode=native`, `auto`.
///
/// # Errors
/// Fails for another word, a device without a name, or an invalid part.
pub(crate) fn parse_stack(text: &str) -> Result<StackChoice, ParseError> {
    let bad = |why: &str| {
        let example =
            "write kernel, kernel:batches, own, own:calls, own:batches, own:xdp=eth0 or auto";
        ParseError(format!("{} is not a stack: {why}; {example}", quoted(text)))
    };
    let word = text.trim();
    if let Some((_, choice)) = STACKS.iter().find(|(name, _)| *name == word) {
        return Ok(choice.clone());
    }
    match word.split_once('=') {
        Some(("own:xdp", device)) => parse_xdp(device, &bad).map(StackChoice::OwnXdp),
        _ if word == "own:xdp" => Err(bad("it has no =DEVICE")),
        _ => Err(bad("no stack has this name")),
    }
}

fn parse_xdp(text: &str, bad: &dyn Fn(&str) -> ParseError) -> Result<XdpChoice, ParseError> {
    let mut parts = text.split(',').map(str::trim);
    let device = parts.next().unwrap_or_default().to_owned();
    let strange = |letter: char| letter.is_whitespace() || letter == '/' || letter.is_control();
    if device.is_empty() || device.len() > NAME_MAX || device.contains(strange) {
        return Err(bad(&format!("{} is not the name of a network device", quoted(&device))));
    }
    let mut choice = XdpChoice { device, gateway: None, mode: XdpMode::Auto };
    for part in parts {
        match part.split_once('=') {
            Some(("gateway", address)) => {
                let address: Option<IpAddr> = address.parse().ok();
                let usable = address.filter(|it| !it.is_loopback() && !it.is_unspecified());
                let why = format!("{} names no address of a gateway", quoted(part));
                choice.gateway = Some(usable.ok_or_else(|| bad(&why))?);
            }
            Some(("mode", name)) => {
                let mode = MODES.iter().find(|(known, _)| *known == name);
                let why = format!("{} is not mode=native, mode=generic or mode=auto", quoted(part));
                choice.mode = mode.ok_or_else(|| bad(&why))?.1;
            }
            _ => {
                let why = format!("{} is neither gateway=ADDRESS nor mode=MODE", quoted(part));
                return Err(bad(&why));
            }
        }
    }
    Ok(choice)
}

impl fmt::Display for StackChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let StackChoice::OwnXdp(choice) = self else { return f.write_str(&name_of(&STACKS, self)) };
        write!(f, "own:xdp={}", choice.device)?;
        if let Some(gateway) = choice.gateway {
            write!(f, ",gateway={gateway}")?;
        }
        match choice.mode {
            XdpMode::Auto => Ok(()),
            mode => write!(f, ",mode={}", name_of(&MODES, &mode)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_are_written_as_they_are_read() {
        for text in [
            "auto",
            "kernel",
            "kernel:batches",
            "own",
            "own:calls",
            "own:batches",
            "own:xdp=eth0",
            "own:xdp=enp3s0f1.100",
            "own:xdp=veth0,gateway=10.0.0.1",
            "own:xdp=veth0,gateway=10.0.0.1,mode=generic",
            "own:xdp=veth0,mode=native",
            "own:xdp=veth0,gateway=fe80::1",
        ] {
            assert_eq!(parse_stack(text).map(|stack| stack.to_string()), Ok(text.to_owned()));
        }
        let spaced = parse_stack(" own:xdp=veth0, mode=native ").map(|stack| stack.to_string());
        assert_eq!(spaced.as_deref(), Ok("own:xdp=veth0,mode=native"));
    }

    #[test]
    fn an_unknown_stack_is_reported() {
        let failure: String = [
            "tun",
            "own:xdp",
            "own:xdp=",
            "own:xdp=a-name-of-17-byte",
            "own:xdp=../etc",
            "own:xdp=eth0,gateway=::",
            "own:xdp=eth0,gateway=127.0.0.1",
            "own:xdp=eth0,mode=fast",
            "own:xdp=eth0,queue=3",
            "xdp=eth0",
        ]
        .iter()
        .map(|text| {
            let error = parse_stack(text).expect_err(text).0;
            error.split("; write").next().unwrap_or_default().to_owned() + "\n"
        })
        .collect();
        assert_eq!(
            failure,
            "\"tun\" is not a stack: no stack has this name\n\
             \"own:xdp\" is not a stack: it has no =DEVICE\n\
             \"own:xdp=\" is not a stack: \"\" is not the name of a network device\n\
             \"own:xdp=a-name-of-17-byte\" is not a stack: \"a-name-of-17-byte\" is not the \
             name of a network device\n\
             \"own:xdp=../etc\" is not a stack: \"../etc\" is not the name of a network device\n\
             \"own:xdp=eth0,gateway=::\" is not a stack: \"gateway=::\" names no address of a gateway\n\
             \"own:xdp=eth0,gateway=127.0.0.1\" is not a stack: \"gateway=127.0.0.1\" names no \
             address of a gateway\n\
             \"own:xdp=eth0,mode=fast\" is not a stack: \"mode=fast\" is not mode=native, \
             mode=generic or mode=auto\n\
             \"own:xdp=eth0,queue=3\" is not a stack: \"queue=3\" is neither gateway=ADDRESS nor mode=MODE\n\
             \"xdp=eth0\" is not a stack: no stack has this name\n"
        );
    }
}
