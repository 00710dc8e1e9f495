//! Files whose parts are overwritten in any order, again and again, and can still be verified.
//!
//! Each sector of 512 bytes begins with a stamp: which turn wrote it, in a form that looks like noise. The rest follows
//! from seed, file, turn and place. So nothing compresses, no two turns write the same bytes, and a read of any part
//! says by itself what it must be.

use super::Content;
use super::draw::draw;

/// Bytes of a sector: the least that may be overwritten.
pub const SECTOR_BYTES: u64 = 512;

const STAMP_BYTES: u64 = 8;

/// The content of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sectors {
    /// The seed of its set.
    pub seed: u64,
    /// Its number in the set.
    pub file: u64,
}

impl Sectors {
    /// Writes what this turn puts at `offset` over the whole of `out`.
    pub fn fill(&self, turn: u64, offset: u64, out: &mut [u8]) {
        self.content(turn).fill(offset, out);
        for sector in offset / SECTOR_BYTES..(offset + out.len() as u64).div_ceil(SECTOR_BYTES) {
            let stamp = (turn ^ self.mask(sector)).to_le_bytes();
            for (place, byte) in (sector * SECTOR_BYTES..).zip(stamp) {
                let index = place.checked_sub(offset).and_then(|index| usize::try_from(index).ok());
                if let Some(found) = index.and_then(|index| out.get_mut(index)) {
                    *found = byte;
                }
            }
        }
    }

    /// Where the first byte lies that no turn up to `last` wrote there, for bytes read at `offset`; `None` if all are
    /// right. A sector whose stamp was not read is passed over: it is checked when it is read whole.
    pub fn first_difference(&self, last: u64, offset: u64, bytes: &[u8]) -> Option<u64> {
        let mut known: Option<(u64, Content)> = None;
        let end = offset + bytes.len() as u64;
        let mut begin = offset.next_multiple_of(SECTOR_BYTES);
        while begin + STAMP_BYTES <= end {
            let turn = self.stamp(begin, &bytes[(begin - offset) as usize..]);
            if turn > last {
                return Some(begin);
            }
            // As many sectors as this turn wrote in a row are compared at once.
            let mut until = begin + SECTOR_BYTES;
            while until + STAMP_BYTES <= end && self.stamp(until, &bytes[(until - offset) as usize..]) == turn
            {
                until += SECTOR_BYTES;
            }
            let content = match known.take() {
                Some((of, content)) if of == turn => content,
                _ => self.content(turn),
            };
            if let Some(place) = self.compare(
                (turn, &content),
                begin,
                &bytes[(begin - offset) as usize..][..(until.min(end) - begin) as usize],
            ) {
                return Some(place);
            }
            known = Some((turn, content));
            begin = until;
        }
        None
    }

    /// Compares whole sectors of one turn, a few at a time so that what is made for it stays in the nearest cache.
    fn compare(&self, (turn, content): (u64, &Content), begin: u64, bytes: &[u8]) -> Option<u64> {
        let mut wanted = [0; 16 * SECTOR_BYTES as usize];
        let mut place = begin;
        for found in bytes.chunks(wanted.len()) {
            let wanted = &mut wanted[..found.len()];
            content.fill(place, wanted);
            for (sector, part) in (place / SECTOR_BYTES..).zip(wanted.chunks_mut(SECTOR_BYTES as usize)) {
                let stamp = (turn ^ self.mask(sector)).to_le_bytes();
                let length = stamp.len().min(part.len());
                part[..length].copy_from_slice(&stamp[..length]);
            }
            if let Some(index) = super::content::difference(found, wanted) {
                return Some(place + index as u64);
            }
            place += found.len() as u64;
        }
        None
    }

    fn content(&self, turn: u64) -> Content {
        Content::new(draw(self.seed, 0x7365_6374, turn), self.file)
    }

    fn mask(&self, sector: u64) -> u64 {
        draw(self.seed, self.file, sector)
    }

    /// The turn that a sector says wrote it.
    fn stamp(&self, begin: u64, bytes: &[u8]) -> u64 {
        let stamp = u64::from_le_bytes(std::array::from_fn(|index| bytes[index]));
        stamp ^ self.mask(begin / SECTOR_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FILE: Sectors = Sectors { seed: 1, file: 2 };

    #[test]
    fn another_turn_writes_other_bytes() {
        let [mut one, mut two] = [[0; 1024]; 2];
        FILE.fill(1, 0, &mut one);
        FILE.fill(2, 0, &mut two);
        assert!(one.iter().zip(two).filter(|(a, b)| *a == b).count() < 30);
    }

    #[test]
    fn what_is_to_come_and_what_is_of_another_place_is_found() {
        let mut bytes = [0; 4096];
        FILE.fill(3, 8192, &mut bytes);
        assert_eq!(FILE.first_difference(3, 8192, &bytes), None);
        assert_eq!(FILE.first_difference(2, 8192, &bytes), Some(8192));
        assert!(FILE.first_difference(3, 4096, &bytes).is_some());
        assert!(Sectors { seed: 1, file: 3 }.first_difference(3, 8192, &bytes).is_some());
    }

    proptest! {
        #[test]
        fn overwritten_parts_are_right_however_they_are_read(
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
        fn content_does_not_depend_on_how_it_is_cut(cut in 0usize..5000) {
            let (mut whole, mut parts) = ([0; 5000], [0; 5000]);
            FILE.fill(9, 0, &mut whole);
            FILE.fill(9, 0, &mut parts[..cut]);
            FILE.fill(9, cut as u64, &mut parts[cut..]);
            prop_assert_eq!(whole, parts);
        }

        #[test]
        fn a_changed_byte_is_found(at in 0usize..8192) {
            let mut bytes = [0; 8192];
            FILE.fill(5, 512, &mut bytes);
            bytes[at] ^= 1;
            prop_assert!(FILE.first_difference(5, 512, &bytes).is_some());
        }
    }
}
