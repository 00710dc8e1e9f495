//! FNV-1a, a hash by which unchanged content is recognized. It needs no resistance to attacks.

/// Returns the 64-bit FNV-1a hash of some bytes (Fowler, Noll, Vo; RFC 9923).
pub fn fnv(bytes: impl IntoIterator<Item = u8>) -> u64 {
    let add = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, add)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Test vectors of the RFC.
    #[test]
    fn hash_is_that_of_others() {
        assert_eq!(fnv(*b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv(*b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv(*b"foobar"), 0x8594_4171_f739_67e8);
    }
}
