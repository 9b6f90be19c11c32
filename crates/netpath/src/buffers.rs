//! Where packets wait for their instant.

/// Packets that may be on the path at once, 128 MiB of them: a gigabit for a second.
pub(crate) const BUFFERS_MAX: usize = 1 << 16;
const BYTES: usize = 2_048;

/// Buffers with numbers, each used until its last copy is gone.
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
    /// A free one; `None` when there are no more.
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

    /// One copy less.
    pub(crate) fn done(&mut self, number: u32) {
        let buffer = &mut self.all[number as usize];
        assert!(buffer.copies > 0, "a packet has as many ends as copies");
        buffer.copies -= 1;
        if buffer.copies == 0 {
            self.free.push(number);
        }
    }

    /// Gives back one that was taken and not filled.
    pub(crate) fn give_back(&mut self, number: u32) {
        self.free.push(number);
    }
}
