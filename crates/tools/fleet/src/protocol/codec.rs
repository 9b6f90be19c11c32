//! Numbers and lists as bytes: variable-length integers, least significant seven bits first. The
//! input comes from another machine, so every length is checked against the remaining bytes.

use std::collections::BTreeMap;
use units::Nanos;

/// Invalid bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable(pub &'static str);

impl std::fmt::Display for Unreadable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a message that cannot be read: {}", self.0)
    }
}

impl std::error::Error for Unreadable {}

/// Maximum number of non-empty histograms in a message: a few bytes each become 192 KiB here. A row
/// of a run has 1,000 each for its targets, its kinds of clients and its scenarios, 3,097 for 999
/// steps in journeys and blocks, and fewer than 100 others.
pub(crate) const HISTOGRAMS_MAX: usize = 8_192;

/// Remaining bytes of a message.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    /// Number of histograms that the message may still contain.
    histograms: usize,
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes, histograms: HISTOGRAMS_MAX }
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Counts a histogram that needs memory.
    ///
    /// # Errors
    /// Fails for more than a run has.
    pub(crate) fn count_histogram(&mut self) -> Result<(), Unreadable> {
        let left = self.histograms.checked_sub(1);
        self.histograms = left.ok_or(Unreadable("more histograms than a run has"))?;
        Ok(())
    }

    /// # Errors
    /// Fails if fewer bytes are left.
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], Unreadable> {
        let (taken, rest) =
            self.bytes.split_at_checked(count).ok_or(Unreadable("it ends too early"))?;
        self.bytes = rest;
        Ok(taken)
    }

    /// # Errors
    /// Fails at the end, or for more than 128 bits.
    pub fn number(&mut self) -> Result<u128, Unreadable> {
        let (mut number, mut shift) = (0_u128, 0_u32);
        loop {
            let byte = self.bytes(1)?[0];
            let bits = u128::from(byte & 0x7f);
            if shift > 126 || (shift == 126 && bits > 3) {
                return Err(Unreadable("a number that is too long"));
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
            shift += 7;
        }
    }

    /// Reads a count of items that take at least one byte each.
    ///
    /// # Errors
    /// Fails if fewer bytes are left.
    pub fn count(&mut self) -> Result<usize, Unreadable> {
        let count = usize::try_from(self.number()?).unwrap_or(usize::MAX);
        if count > self.bytes.len() {
            Err(Unreadable("a list longer than its message"))
        } else {
            Ok(count)
        }
    }
}

/// Writes a number.
pub fn put(out: &mut Vec<u8>, mut number: u128) {
    loop {
        let low = (number & 0x7f) as u8;
        number >>= 7;
        if number == 0 {
            out.push(low);
            return;
        }
        out.push(low | 0x80);
    }
}

/// Types with a binary form. `fill` decodes into an empty value, so that histograms reuse existing
/// memory.
pub trait Packed {
    fn pack(&self, out: &mut Vec<u8>);

    /// # Errors
    /// Fails if the bytes are not such a value.
    fn fill(&mut self, from: &mut Reader<'_>) -> Result<(), Unreadable>;
}

/// # Errors
/// Fails if the bytes are not such a value.
pub fn read<T: Packed + Default>(from: &mut Reader<'_>) -> Result<T, Unreadable> {
    let mut value = T::default();
    value.fill(from)?;
    Ok(value)
}

macro_rules! unsigned {
    ($($name:ty)*) => {$(
        impl Packed for $name {
            fn pack(&self, out: &mut Vec<u8>) {
                put(out, u128::try_from(*self).unwrap_or(u128::MAX));
            }

            fn fill(&mut self, from: &mut Reader<'_>) -> Result<(), Unreadable> {
                *self = <$name>::try_from(from.number()?)
                    .map_err(|_| Unreadable("a number out of range"))?;
                Ok(())
            }
        }
    )*};
}

unsigned! { u8 u16 u32 u64 u128 usize }

/// Zigzag encoding: 0, -1, 1, -2, …
impl Packed for i64 {
    fn pack(&self, out: &mut Vec<u8>) {
        put(out, u128::from(((self << 1) ^ (self >> 63)) as u64));
    }

    fn fill(&mut self, from: &mut Reader<'_>) -> Result<(), Unreadable> {
        let folded: u64 = read(from)?;
        *self = (folded >> 1) as i64 ^ -((folded & 1) as i64);
        Ok(())
    }
}

impl Packed for bool {
    fn pack(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn fill(&mut self, from: &mut Reader<'_>) -> Result<(), Unreadable> {
        *self = match from.bytes(1)? {
            [0] => false,
            [1] => true,
            _ => return Err(Unreadable("neither yes nor no")),
        };
        Ok(())
    }
}

impl Packed for Nanos {
    fn pack(&self, out: &mut Vec<u8>) {
        self.0.pack(out);
    }

    fn fill(&mut self, from: &mut Reader<'_>) -> Result<(), Unreadable> {
        self.0.fill(from)
    }
}

impl Packed for String {
    fn pack(&self, out: &mut Vec<u8>) {
        self.len().pack(out);
        out.extend_from_slice(self.as_bytes());
    }

    fn fill(&mut self, from: &mut Reader<'_>) -> Result<(), Unreadable> {
        let count = from.count()?;
        let text = std::str::from_utf8(from.bytes(count)?);
        *self = text.map_err(|_| Unreadable("a text that is not UTF-8"))?.to_owned();
        Ok(())
    }
}

impl<T: Packed + Default> Packed for Option<T> {
    fn pack(&self, out: &mut Vec<u8>) {
        self.is_some().pack(out);
        if let Some(value) = self {
            value.pack(out);
        }
    }

    fn fill(&mut self, from: &mut Reader<'_>) -> Result<(), Unreadable> {
        *self = if read(from)? { Some(read(from)?) } else { None };
        Ok(())
    }
}

/// Existing rows are overwritten, so that their memory is reused.
impl<T: Packed + Default> Packed for Vec<T> {
    fn pack(&self, out: &mut Vec<u8>) {
        self.len().pack(out);
        self.iter().for_each(|value| value.pack(out));
    }

    fn fill(&mut self, from: &mut Reader<'_>) -> Result<(), Unreadable> {
        let count = from.count()?;
        self.resize_with(count, T::default);
        self.iter_mut().try_for_each(|value| value.fill(from))
    }
}

impl<K: Packed + Default + Ord, V: Packed + Default> Packed for BTreeMap<K, V> {
    fn pack(&self, out: &mut Vec<u8>) {
        self.len().pack(out);
        for (key, value) in self {
            key.pack(out);
            value.pack(out);
        }
    }

    fn fill(&mut self, from: &mut Reader<'_>) -> Result<(), Unreadable> {
        for _ in 0..from.count()? {
            let key = read(from)?;
            self.insert(key, read(from)?);
        }
        Ok(())
    }
}

impl<A: Packed, B: Packed> Packed for (A, B) {
    fn pack(&self, out: &mut Vec<u8>) {
        self.0.pack(out);
        self.1.pack(out);
    }

    fn fill(&mut self, from: &mut Reader<'_>) -> Result<(), Unreadable> {
        self.0.fill(from)?;
        self.1.fill(from)
    }
}
