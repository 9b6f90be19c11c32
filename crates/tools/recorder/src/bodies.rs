//! Bodies in memory: each counts from its first byte until its last reference is dropped.

use http_body_util::BodyExt;
use hyper::body::{Body, Bytes};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Maximum size of one body in bytes.
const BODY_MAX: usize = 64 << 20;
/// Maximum size in bytes of all bodies in memory: of kept bodies (512 MiB), and of bodies in
/// transit.
const ALL_MAX: usize = 768 << 20;

/// Bytes of all bodies in memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct BodyRoom(Arc<AtomicUsize>);

/// A body. Dropping it releases its room.
struct CountedBody {
    bytes: Vec<u8>,
    room: BodyRoom,
    counted: usize,
}

impl CountedBody {
    /// Adds a part; returns false if there is no room.
    fn push(&mut self, part: &[u8]) -> bool {
        let before = self.room.0.fetch_add(part.len(), Ordering::Relaxed);
        self.counted += part.len();
        self.bytes.extend_from_slice(part);
        before + part.len() <= ALL_MAX
    }
}

impl Drop for CountedBody {
    fn drop(&mut self) {
        self.room.0.fetch_sub(self.counted, Ordering::Relaxed);
    }
}

impl AsRef<[u8]> for CountedBody {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Receives a whole body.
///
/// # Errors
/// Fails if it ends early, is too large, or all bodies together are.
pub(crate) async fn collect<B>(body: B, room: &BodyRoom) -> Result<Bytes, String>
where
    B: Body<Data = Bytes>,
    B::Error: std::fmt::Display,
{
    let mut counted = CountedBody { bytes: Vec::new(), room: room.clone(), counted: 0 };
    let mut body = pin!(body);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| format!("it is incomplete: {error}"))?;
        let Ok(part) = frame.into_data() else { continue };
        if counted.counted + part.len() > BODY_MAX {
            return Err(format!("it exceeds {} MiB", BODY_MAX >> 20));
        }
        if !counted.push(&part) {
            let most = ALL_MAX >> 20;
            return Err(format!("all bodies in memory exceed {most} MiB; record fewer at a time"));
        }
    }
    Ok(Bytes::from_owner(counted))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::Full;

    fn received(room: &BodyRoom, size: usize) -> Result<Bytes, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(collect(Full::new(Bytes::from(vec![0; size])), room))
    }

    #[test]
    fn bodies_are_counted_while_they_are_in_memory() {
        let room = BodyRoom::default();
        let body = received(&room, 1_000).unwrap();
        let shared = body.clone();
        drop(body);
        assert_eq!(room.0.load(Ordering::Relaxed), 1_000);
        drop(shared);
        assert_eq!(room.0.load(Ordering::Relaxed), 0);
        assert!(received(&room, BODY_MAX + 1).unwrap_err().contains("exceeds 64 MiB"));
        room.0.store(ALL_MAX, Ordering::Relaxed);
        assert!(received(&room, 1).unwrap_err().contains("exceed 768 MiB"));
        assert_eq!(room.0.load(Ordering::Relaxed), ALL_MAX);
    }
}
