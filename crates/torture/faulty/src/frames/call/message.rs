//! Parses HealthCheckRequest: field 1 is a string, all others are unknown.

use protocol::grpc::varint;

/// Maximum depth of groups.
const DEPTH_MAX: usize = 100;

/// Result of parsing a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Checked {
    /// The value of field 1.
    Service(Vec<u8>),
    Malformed,
    /// Groups are nested deeper than allowed.
    TooDeep,
}

/// Parses a message. `deep`: groups may nest ten times deeper.
pub(super) fn service(mut bytes: &[u8], deep: bool) -> Checked {
    let most = if deep { 10 * DEPTH_MAX } else { DEPTH_MAX };
    let (mut service, mut groups): (&[u8], Vec<u64>) = (b"", Vec::new());
    while !bytes.is_empty() {
        let Some(tag) = varint(&mut bytes) else { return Checked::Malformed };
        let number = tag >> 3;
        let taken = match tag & 7 {
            _ if number == 0 || number >> 29 != 0 => None,
            0 => varint(&mut bytes).map(|_| &b""[..]),
            1 => take(&mut bytes, 8),
            2 => varint(&mut bytes).and_then(|length| take(&mut bytes, length)),
            3 => {
                groups.push(number);
                Some(&b""[..])
            }
            4 => (groups.pop() == Some(number)).then_some(&b""[..]),
            5 => take(&mut bytes, 4),
            _ => None,
        };
        let Some(taken) = taken else { return Checked::Malformed };
        if groups.len() > most {
            return Checked::TooDeep;
        }
        if tag == 0x0a && groups.is_empty() {
            service = taken;
        }
    }
    match groups.is_empty() && str::from_utf8(service).is_ok() {
        true => Checked::Service(service.to_vec()),
        false => Checked::Malformed,
    }
}

fn take<'b>(bytes: &mut &'b [u8], length: u64) -> Option<&'b [u8]> {
    let (taken, rest) = bytes.split_at_checked(usize::try_from(length).ok()?)?;
    *bytes = rest;
    Some(taken)
}
