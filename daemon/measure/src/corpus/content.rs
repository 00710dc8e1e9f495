//! Content that nothing can compress or deduplicate, made from a seed, at any place of a file.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// ChaCha counts its output in words of this many bytes.
const WORD_BYTES: u64 = 4;
/// Verification generates this much at a time, on the stack: it stays in the first-level cache.
const COMPARED_BYTES: usize = 8 * 1024;
/// Keeps these streams apart from every other use of the same generator and seed.
const DOMAIN: [u8; 16] = *b"longhaul content";

/// The endless content of one file: a ChaCha8 stream whose key is made of a corpus seed and a file number.
///
/// Any part of it can be made without the parts before, so reads can be verified in any order.
#[derive(Clone, Debug)]
pub struct Content {
    start: ChaCha8Rng,
}

impl Content {
    /// The content of the file with that number in the corpus that was made from `seed`.
    pub fn new(seed: u64, file: u64) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        key[8..16].copy_from_slice(&file.to_le_bytes());
        key[16..].copy_from_slice(&DOMAIN);
        Self { start: ChaCha8Rng::from_seed(key) }
    }

    /// Writes the content that begins at byte `offset` of the file over the whole of `out`.
    ///
    /// The bytes do not depend on how a file is cut into calls.
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

    /// The place in the file of the first byte that is not what it must be, for bytes read at `offset`; `None` if all
    /// are right. Allocates nothing.
    pub fn first_difference(&self, offset: u64, bytes: &[u8]) -> Option<u64> {
        let mut wanted = [0; COMPARED_BYTES];
        let mut place = offset;
        for found in bytes.chunks(COMPARED_BYTES) {
            let wanted = &mut wanted[..found.len()];
            self.fill(place, wanted);
            if let Some(index) = difference(found, wanted) {
                return Some(place + index as u64);
            }
            place += found.len() as u64;
        }
        None
    }
}

/// The index of the first difference of two slices of one length. Equal slices, the common case, cost one `memcmp`.
pub(super) fn difference(found: &[u8], wanted: &[u8]) -> Option<usize> {
    if found == wanted {
        return None;
    }
    found.iter().zip(wanted).position(|(found, wanted)| found != wanted)
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
    fn content_is_the_same_on_every_machine_and_in_every_version() {
        assert_eq!(whole(1, 2, 8), [108, 105, 3, 19, 69, 52, 254, 81]);
    }

    #[test]
    fn places_beyond_4_gib_have_content_of_their_own() {
        let mut far = [0; 64];
        Content::new(1, 1).fill(1 << 40, &mut far);
        assert_ne!(whole(1, 1, 64), far);
        assert_eq!(Content::new(1, 1).first_difference(1 << 40, &far), None);
    }

    proptest! {
        #[test]
        fn content_does_not_depend_on_how_it_is_cut(seed: u64, cuts in prop::collection::vec(0usize..700, 1..12)) {
            let expected = whole(seed, 3, cuts.iter().sum());
            let content = Content::new(seed, 3);
            let mut place = 0;
            for cut in cuts {
                let mut part = vec![0; cut];
                content.fill(place as u64, &mut part);
                prop_assert_eq!(&part[..], &expected[place..place + cut]);
                place += cut;
            }
        }

        #[test]
        fn a_changed_byte_is_found_at_its_place(offset in 0u64..1 << 50, length in 1usize..20_000, at: prop::sample::Index) {
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
