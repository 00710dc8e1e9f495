//! File content that cannot be compressed and does not repeat, generated from a seed, at any offset of a file.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// Size of a ChaCha output word in bytes. The position in a ChaCha stream is counted in words.
const WORD_BYTES: u64 = 4;
/// Number of bytes that verification generates at a time, on the stack: whole sectors that fit into the first-level cache.
const COMPARED_BYTES: usize = 8 * 1024;
/// Part of every key, so that file contents differ from any other use of the same generator and seed.
const DOMAIN: [u8; 16] = *b"longhaul content";

/// Unlimited content of one file: a ChaCha8 stream whose key consists of a corpus seed and a file number.
///
/// Any part of the content can be generated without the parts before it, so reads can be verified in any order.
#[derive(Clone, Debug)]
pub struct Content {
    start: ChaCha8Rng,
}

impl Content {
    /// Creates the content of the file with this number in the corpus generated from `seed`.
    pub fn new(seed: u64, file: u64) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        key[8..16].copy_from_slice(&file.to_le_bytes());
        key[16..].copy_from_slice(&DOMAIN);
        Self { start: ChaCha8Rng::from_seed(key) }
    }

    /// Fills `out` with the content of the file from byte `offset` on.
    ///
    /// The bytes at an offset are always the same, however a file is split into calls.
    pub fn fill(&self, offset: u64, out: &mut [u8]) {
        let mut stream = self.start.clone();
        stream.set_word_pos(u128::from(offset / WORD_BYTES));
        let inside_word = (offset % WORD_BYTES) as usize;
        let mut rest = out;
        if inside_word > 0 {
            let word = stream.next_u32().to_le_bytes();
            let (head, tail) = rest.split_at_mut(rest.len().min(word.len() - inside_word));
            head.copy_from_slice(&word[inside_word..inside_word + head.len()]);
            rest = tail;
        }
        stream.fill_bytes(rest);
    }

    /// Returns the offset in the file of the first wrong byte, for bytes that were read at `offset`; `None` if all
    /// bytes are correct. Allocates no memory.
    pub fn first_difference(&self, offset: u64, bytes: &[u8]) -> Option<u64> {
        first_wrong(offset, bytes, |position, expected| self.fill(position, expected))
    }
}

/// Returns the offset of the first wrong byte, for bytes that were read at `offset`; `None` if all bytes are correct.
/// `fill` makes the correct bytes from an offset on. Allocates no memory.
pub(super) fn first_wrong(offset: u64, bytes: &[u8], mut fill: impl FnMut(u64, &mut [u8])) -> Option<u64> {
    let mut expected = [0; COMPARED_BYTES];
    let mut position = offset;
    for found in bytes.chunks(COMPARED_BYTES) {
        let expected = &mut expected[..found.len()];
        fill(position, expected);
        if let Some(index) = difference(found, expected) {
            return Some(position + index as u64);
        }
        position += found.len() as u64;
    }
    None
}

/// Returns the index of the first difference of two slices of equal length. Equal slices, the common case, cost
/// one `memcmp`.
pub(super) fn difference(found: &[u8], expected: &[u8]) -> Option<usize> {
    if found == expected {
        return None;
    }
    found.iter().zip(expected).position(|(found, expected)| found != expected)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn whole(seed: u64, file: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        Content::new(seed, file).fill(0, &mut bytes);
        bytes
    }

    #[test]
    fn seed_and_file_both_change_the_content() {
        let one = whole(1, 1, 64);
        assert_eq!(one, whole(1, 1, 64));
        assert_ne!(one, whole(2, 1, 64));
        assert_ne!(one, whole(1, 2, 64));
    }

    #[test]
    fn content_is_stable_across_machines_and_versions() {
        assert_eq!(whole(1, 2, 8), [108, 105, 3, 19, 69, 52, 254, 81]);
    }

    #[test]
    fn content_does_not_repeat_beyond_4_gib() {
        let mut far = [0; 64];
        Content::new(1, 1).fill(1 << 40, &mut far);
        assert_ne!(whole(1, 1, 64), far);
        assert_eq!(Content::new(1, 1).first_difference(1 << 40, &far), None);
    }

    proptest! {
        #[test]
        fn content_does_not_depend_on_how_it_is_split(seed: u64, lengths in prop::collection::vec(0usize..700, 1..12)) {
            let expected = whole(seed, 3, lengths.iter().sum());
            let content = Content::new(seed, 3);
            let mut offset = 0;
            for length in lengths {
                let mut part = vec![0; length];
                content.fill(offset as u64, &mut part);
                prop_assert_eq!(&part[..], &expected[offset..offset + length]);
                offset += length;
            }
        }

        #[test]
        fn changed_byte_is_found_at_its_offset(offset in 0u64..1 << 50, length in 1usize..20_000, at: prop::sample::Index) {
            let content = Content::new(5, 6);
            let mut bytes = vec![0; length];
            content.fill(offset, &mut bytes);
            prop_assert_eq!(content.first_difference(offset, &bytes), None);
            let at = at.index(length);
            bytes[at] ^= 0x10;
            prop_assert_eq!(content.first_difference(offset, &bytes), Some(offset + at as u64));
        }
    }
}
