//! Reads integers in native byte order from the middle of a kernel's buffer; `None` if the buffer is too
//! short.

/// Returns `N` bytes from an offset; `None` if the buffer is too short.
pub(super) fn chunk<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(chunk(bytes, at)?))
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(chunk(bytes, at)?))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(chunk(bytes, at)?))
}
