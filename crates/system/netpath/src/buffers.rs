//! Buffers of packets waiting for their delivery time.

/// Maximum number of packets on the path, 128 MiB in total: one gigabit for one second.
pub(crate) const BUFFERS_MAX: usize = 1 << 16;
const BYTES: usize = 2_048;

/// Numbered buffers, each in use until its last copy is released.
#[derive(Default)]
pub(crate) struct Buffers {
    all: Vec<Buffer>,
    free: Vec<u32>,
}

struct Buffer {
    bytes: Box<[u8; BYTES]>,
    length: u16,
    copies: u8,
}

impl Buffers {
    /// Returns the number of a free buffer; `None` if all are in use.
    pub(crate) fn take(&mut self) -> Option<u32> {
        if let Some(number) = self.free.pop() {
            return Some(number);
        }
        if self.all.len() == BUFFERS_MAX {
            return None;
        }
        self.all.push(Buffer { bytes: Box::new([0; BYTES]), length: 0, copies: 0 });
        Some(self.all.len() as u32 - 1)
    }

    pub(crate) fn room(&mut self, number: u32) -> &mut [u8] {
        &mut self.all[number as usize].bytes[..]
    }

    pub(crate) fn fill(&mut self, number: u32, length: usize, copies: u8) {
        let buffer = &mut self.all[number as usize];
        buffer.length = length as u16;
        buffer.copies = copies;
        if copies == 0 {
            self.free.push(number);
        }
    }

    pub(crate) fn packet(&mut self, number: u32) -> &mut [u8] {
        let buffer = &mut self.all[number as usize];
        &mut buffer.bytes[..usize::from(buffer.length)]
    }

    /// Releases one copy.
    pub(crate) fn done(&mut self, number: u32) {
        let buffer = &mut self.all[number as usize];
        assert!(buffer.copies > 0, "a packet has as many ends as copies");
        buffer.copies -= 1;
        if buffer.copies == 0 {
            self.free.push(number);
        }
    }

    /// Returns an acquired buffer that was not filled.
    pub(crate) fn release_unfilled(&mut self, number: u32) {
        self.free.push(number);
    }
}
