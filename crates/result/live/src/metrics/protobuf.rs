//! The wire format of Protocol Buffers, as far as Prometheus and OTLP need it: a writer of fields
//! and a reader that iterates over them. A library would add a compiler of `.proto` files to every
//! build.

/// Message under construction. Every given field is written, including defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WireMessage(Vec<u8>);

/// Encoding of a field's value: the lower three bits of its tag.
#[derive(Clone, Copy, Debug)]
enum WireType {
    Varint = 0,
    Fixed64 = 1,
    Bytes = 2,
}

impl WireMessage {
    /// Returns the message's bytes.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// Appends the message, preceded by its length, to a stream of messages.
    pub(crate) fn delimited(self, out: &mut Vec<u8>) {
        varint(out, self.0.len() as u64);
        out.extend(self.0);
    }

    /// Writes `uint32`, `uint64`, `bool` and enums.
    #[must_use]
    pub(crate) fn uint(mut self, field: u32, value: u64) -> WireMessage {
        self.tag(field, WireType::Varint);
        varint(&mut self.0, value);
        self
    }

    /// Writes `sint32` and `sint64`.
    #[must_use]
    pub(crate) fn sint(self, field: u32, value: i64) -> WireMessage {
        self.uint(field, zigzag(value))
    }

    /// Writes `fixed64` and, by its bits, `sfixed64`.
    #[must_use]
    pub(crate) fn fixed(mut self, field: u32, value: u64) -> WireMessage {
        self.tag(field, WireType::Fixed64);
        self.0.extend(value.to_le_bytes());
        self
    }

    #[must_use]
    pub(crate) fn double(self, field: u32, value: f64) -> WireMessage {
        self.fixed(field, value.to_bits())
    }

    #[must_use]
    pub(crate) fn string(self, field: u32, value: &str) -> WireMessage {
        self.bytes(field, value.as_bytes())
    }

    #[must_use]
    pub(crate) fn message(self, field: u32, value: WireMessage) -> WireMessage {
        self.bytes(field, &value.0)
    }

    /// Appends a repeated message field.
    #[must_use]
    pub(crate) fn messages(
        self,
        field: u32,
        all: impl IntoIterator<Item = WireMessage>,
    ) -> WireMessage {
        all.into_iter().fold(self, |whole, one| whole.message(field, one))
    }

    /// Appends a repeated `uint64`, packed; omitted if empty.
    #[must_use]
    pub(crate) fn uints(self, field: u32, values: impl IntoIterator<Item = u64>) -> WireMessage {
        let mut packed = Vec::new();
        values.into_iter().for_each(|value| varint(&mut packed, value));
        if packed.is_empty() { self } else { self.bytes(field, &packed) }
    }

    /// Appends a repeated `sint64`, packed; omitted if empty.
    #[must_use]
    pub(crate) fn sints(self, field: u32, values: impl IntoIterator<Item = i64>) -> WireMessage {
        self.uints(field, values.into_iter().map(zigzag))
    }

    fn bytes(mut self, field: u32, value: &[u8]) -> WireMessage {
        self.tag(field, WireType::Bytes);
        varint(&mut self.0, value.len() as u64);
        self.0.extend(value);
        self
    }

    fn tag(&mut self, field: u32, kind: WireType) {
        varint(&mut self.0, u64::from(field) << 3 | kind as u64);
    }
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Encodes by zigzag: small numbers of either sign become small unsigned numbers.
fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// The value of a parsed field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WireValue<'a> {
    Uint(u64),
    /// A string, a message, or packed numbers.
    Bytes(&'a [u8]),
    /// Four or eight bytes, which no parsed message contains.
    Fixed,
}

/// Parses the fields of a message with their numbers, in byte order. `None` if the bytes are
/// invalid.
pub(crate) fn fields(mut bytes: &[u8]) -> Option<Vec<(u32, WireValue<'_>)>> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let tag = read_varint(&mut bytes)?;
        let number = u32::try_from(tag >> 3).ok().filter(|number| *number > 0)?;
        let field = match tag & 7 {
            0 => WireValue::Uint(read_varint(&mut bytes)?),
            1 => take(&mut bytes, 8).map(|_| WireValue::Fixed)?,
            2 => {
                let length = usize::try_from(read_varint(&mut bytes)?).ok()?;
                WireValue::Bytes(take(&mut bytes, length)?)
            }
            5 => take(&mut bytes, 4).map(|_| WireValue::Fixed)?,
            // groups, which are deprecated
            _ => return None,
        };
        found.push((number, field));
    }
    Some(found)
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(taken)
}

fn read_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let byte = take(bytes, 1)?[0];
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}
