//! Connections by a small index that epoll returns, with a generation that identifies events and
//! timers of a former connection.

/// A connection's place and generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Id {
    pub(super) index: u32,
    pub(super) generation: u32,
}

#[derive(Debug)]
pub(super) struct Slab<T> {
    entries: Vec<(u32, Option<T>)>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    pub(super) fn new() -> Slab<T> {
        Slab { entries: Vec::new(), free: Vec::new() }
    }

    pub(super) fn insert(&mut self, value: T) -> Id {
        let index = self.free.pop().unwrap_or_else(|| {
            self.entries.push((0, None));
            (self.entries.len() - 1) as u32
        });
        let entry = &mut self.entries[index as usize];
        entry.1 = Some(value);
        Id { index, generation: entry.0 }
    }

    pub(super) fn get_mut(&mut self, id: Id) -> Option<&mut T> {
        let entry = self.entries.get_mut(id.index as usize)?;
        if entry.0 == id.generation { entry.1.as_mut() } else { None }
    }

    pub(super) fn remove(&mut self, id: Id) -> Option<T> {
        self.get_mut(id)?;
        let entry = &mut self.entries[id.index as usize];
        entry.0 = entry.0.wrapping_add(1);
        self.free.push(id.index);
        entry.1.take()
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_former_id_finds_nothing() {
        let mut slab = Slab::new();
        let first = slab.insert('a');
        slab.remove(first);
        slab.remove(first);
        let second = slab.insert('b');
        assert_eq!((first.index, slab.len()), (second.index, 1));
        assert_eq!(slab.get_mut(first), None);
        assert_eq!(slab.get_mut(second), Some(&mut 'b'));
    }
}
