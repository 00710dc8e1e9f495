//! File content that can be verified although parts of the file are overwritten repeatedly in any order.
//!
//! Each write has a turn number. Each sector of 512 bytes starts with a stamp: the turn that wrote the sector,
//! masked so that it looks random. The rest of the sector is derived from seed, file, turn and offset. So the
//! content does not compress, no two turns write the same bytes, and any read can be verified without knowledge of
//! the earlier writes.

use super::content::{Content, first_wrong};
use longhaul_model::draw::draw;

/// Size of a sector in bytes: the smallest part that may be overwritten.
pub const SECTOR_BYTES: u64 = 512;

const STAMP_BYTES: u64 = 8;

/// Content of one file that is overwritten sector by sector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sectors {
    /// Seed of the set of files.
    pub seed: u64,
    /// Number of the file in its set.
    pub file: u64,
}

impl Sectors {
    /// Fills `out` with the bytes that turn `turn` writes at byte `offset` of the file.
    pub fn fill(&self, turn: u64, offset: u64, out: &mut [u8]) {
        self.content(turn).fill(offset, out);
        for sector in offset / SECTOR_BYTES..(offset + out.len() as u64).div_ceil(SECTOR_BYTES) {
            let stamp = (turn ^ self.stamp_mask(sector)).to_le_bytes();
            // The first and the last stamp may lie partly outside of `out`.
            for (position, byte) in (sector * SECTOR_BYTES..).zip(stamp) {
                let index = position.checked_sub(offset).and_then(|index| usize::try_from(index).ok());
                if let Some(found) = index.and_then(|index| out.get_mut(index)) {
                    *found = byte;
                }
            }
        }
    }

    /// Returns the offset in the file of the first byte that no turn up to `last` wrote, for bytes that were read
    /// at `offset`; `None` if all bytes are correct. A sector whose stamp is not in `bytes` is not checked.
    pub fn first_difference(&self, last: u64, offset: u64, bytes: &[u8]) -> Option<u64> {
        let mut known: Option<(u64, Content)> = None;
        let end = offset + bytes.len() as u64;
        let mut begin = offset.next_multiple_of(SECTOR_BYTES);
        while begin + STAMP_BYTES <= end {
            let turn = self.turn_of_sector(begin, &bytes[(begin - offset) as usize..]);
            if turn > last {
                return Some(begin);
            }
            // Consecutive sectors of one turn are compared together, because setting up a content stream is
            // costly.
            let mut until = begin + SECTOR_BYTES;
            while until + STAMP_BYTES <= end
                && self.turn_of_sector(until, &bytes[(until - offset) as usize..]) == turn
            {
                until += SECTOR_BYTES;
            }
            let content = match known.take() {
                Some((of, content)) if of == turn => content,
                _ => self.content(turn),
            };
            if let Some(position) = self.compare(
                turn,
                &content,
                begin,
                &bytes[(begin - offset) as usize..][..(until.min(end) - begin) as usize],
            ) {
                return Some(position);
            }
            known = Some((turn, content));
            begin = until;
        }
        None
    }

    /// Compares consecutive sectors of one turn with their expected content. Returns the offset of the first
    /// difference.
    fn compare(&self, turn: u64, content: &Content, begin: u64, bytes: &[u8]) -> Option<u64> {
        first_wrong(begin, bytes, |position, expected| {
            content.fill(position, expected);
            for (sector, part) in (position / SECTOR_BYTES..).zip(expected.chunks_mut(SECTOR_BYTES as usize))
            {
                let stamp = (turn ^ self.stamp_mask(sector)).to_le_bytes();
                let length = stamp.len().min(part.len());
                part[..length].copy_from_slice(&stamp[..length]);
            }
        })
    }

    fn content(&self, turn: u64) -> Content {
        Content::new(draw(self.seed, 0x7365_6374, turn), self.file)
    }

    fn stamp_mask(&self, sector: u64) -> u64 {
        draw(self.seed, self.file, sector)
    }

    /// Returns the turn in the stamp of the sector that starts at offset `begin`.
    fn turn_of_sector(&self, begin: u64, bytes: &[u8]) -> u64 {
        let stamp = u64::from_le_bytes(std::array::from_fn(|index| bytes[index]));
        stamp ^ self.stamp_mask(begin / SECTOR_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FILE: Sectors = Sectors { seed: 1, file: 2 };

    #[test]
    fn different_turns_write_different_bytes() {
        let [mut one, mut two] = [[0; 1024]; 2];
        FILE.fill(1, 0, &mut one);
        FILE.fill(2, 0, &mut two);
        assert!(one.iter().zip(two).filter(|(a, b)| *a == b).count() < 30);
    }

    #[test]
    fn future_turn_wrong_offset_and_wrong_file_are_found() {
        let mut bytes = [0; 4096];
        FILE.fill(3, 8192, &mut bytes);
        assert_eq!(FILE.first_difference(3, 8192, &bytes), None);
        assert_eq!(FILE.first_difference(2, 8192, &bytes), Some(8192));
        assert!(FILE.first_difference(3, 4096, &bytes).is_some());
        assert!(Sectors { seed: 1, file: 3 }.first_difference(3, 8192, &bytes).is_some());
    }

    proptest! {
        #[test]
        fn overwritten_file_is_valid_in_any_read(
            parts in prop::collection::vec((0u64..40, 1u64..10), 0..20),
            (from, length) in (0usize..19_600, 0usize..6000),
        ) {
            let mut whole = vec![0; 25_600];
            FILE.fill(0, 0, &mut whole);
            for (turn, (first, count)) in (1..).zip(&parts) {
                let begin = first * SECTOR_BYTES;
                FILE.fill(turn, begin, &mut whole[begin as usize..(begin + count * SECTOR_BYTES) as usize]);
            }
            prop_assert_eq!(FILE.first_difference(parts.len() as u64, from as u64, &whole[from..from + length]), None);
        }

        #[test]
        fn content_does_not_depend_on_how_it_is_split(cut in 0usize..5000) {
            let (mut whole, mut parts) = ([0; 5000], [0; 5000]);
            FILE.fill(9, 0, &mut whole);
            FILE.fill(9, 0, &mut parts[..cut]);
            FILE.fill(9, cut as u64, &mut parts[cut..]);
            prop_assert_eq!(whole, parts);
        }

        #[test]
        fn changed_byte_is_found(at in 0usize..8192) {
            let mut bytes = [0; 8192];
            FILE.fill(5, 512, &mut bytes);
            bytes[at] ^= 1;
            prop_assert!(FILE.first_difference(5, 512, &bytes).is_some());
        }
    }
}
