//! Bytes of the buffers of a script.

use rquickjs::ArrayBuffer;

/// Returns the bytes of a buffer; empty if it is detached.
pub(crate) fn view<'a>(data: &'a ArrayBuffer<'_>) -> &'a [u8] {
    // SAFETY: no script runs while the slice is in use, so the buffer is neither changed nor
    // detached.
    unsafe { data.as_bytes() }.unwrap_or_default()
}
