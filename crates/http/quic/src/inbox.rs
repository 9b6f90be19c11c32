//! Pieces that wait for a worker.

/// Stored and unread pieces.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    pieces: Vec<u8>,
    /// Number of bytes already read.
    at: usize,
}

impl Inbox {
    /// Returns the buffer to which new pieces are appended.
    pub(crate) fn pieces(&mut self) -> &mut Vec<u8> {
        &mut self.pieces
    }

    /// Returns the number of unread bytes.
    pub(crate) fn waiting(&self) -> usize {
        self.pieces.len() - self.at
    }

    /// Copies as much as fits into the buffer, and returns the length.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> usize {
        let rest = &self.pieces[self.at..];
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        self.at += count;
        if self.at == self.pieces.len() {
            self.pieces.clear();
            self.at = 0;
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queued_data_is_read_in_parts() {
        let mut inbox = Inbox::default();
        inbox.pieces().extend_from_slice(b"hello");
        let mut buffer = [0; 3];
        assert_eq!((inbox.read(&mut buffer), inbox.waiting(), &buffer), (3, 2, b"hel"));
        inbox.pieces().push(b'!');
        assert_eq!((inbox.read(&mut buffer), inbox.waiting(), &buffer), (3, 0, b"lo!"));
        assert_eq!((inbox.read(&mut buffer), inbox.pieces().len()), (0, 0));
    }
}
