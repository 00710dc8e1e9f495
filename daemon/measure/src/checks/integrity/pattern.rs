//! Finds the wrong ranges of a file and their patterns. Pure: bytes in, ranges out.

use super::known_content::KnownContent;
use longhaul_model::DamagePattern;

/// Number of equal bytes in a row up to which two wrong bytes belong to one range: foreign bytes equal the right ones by
/// chance, one in 256.
const MAX_GAP_BYTES: usize = 16;
/// Maximum number of ranges of one file. What is left counts as one range up to the last wrong byte.
const MAX_RANGES: usize = 256;
/// Maximum length of a range of which only single bits are compared: too short to recognize other patterns.
const MAX_SHORT_BYTES: usize = 8;
/// Number of zeros from which they are a pattern and not flipped bits.
const MIN_ZEROS: usize = 4;
/// Share of differing bits below which a range counts as flipped bits; foreign bytes differ in half of them.
const MAX_FLIPPED_SHARE: f64 = 0.2;
/// Number of bytes that are searched for in the file to find a shift.
const SHIFT_PROBE_BYTES: usize = 16;
/// Share of the bytes of a range that a shift must explain.
const MIN_SHIFTED_SHARE: f64 = 0.95;

/// Bytes of a file, and those that were written there. Both start at the same offset.
#[derive(Clone, Copy)]
pub struct Compared<'a> {
    /// Offset in the file.
    pub offset: u64,
    /// Bytes that were written.
    pub expected: &'a [u8],
    /// Bytes that were read; fewer or more than expected only if the file ends too early or too late.
    pub found: &'a [u8],
}

/// A wrong range of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrongRange {
    /// Offset of the first wrong byte in the file.
    pub offset: u64,
    /// Number of bytes up to the last wrong one.
    pub length: u64,
    /// Pattern of the bytes.
    pub pattern: DamagePattern,
}

/// Returns the wrong ranges, in order.
pub fn wrong_ranges(compared: Compared<'_>, content: &dyn KnownContent) -> Vec<WrongRange> {
    let differing = as_one_if_foreign(compared, content, differing_ranges(compared.expected, compared.found));
    let mut ranges: Vec<WrongRange> = differing
        .into_iter()
        .map(|range| WrongRange {
            offset: compared.offset + range.start as u64,
            length: range.len() as u64,
            pattern: pattern(compared, range, content),
        })
        .collect();
    add_wrong_end(compared, &mut ranges);
    ranges
}

/// Joins the ranges if all bytes from the first to the last are those of another file or an earlier version: two files may
/// have equal parts, such as the tables of a photo.
fn as_one_if_foreign(
    compared: Compared<'_>,
    content: &dyn KnownContent,
    ranges: Vec<std::ops::Range<usize>>,
) -> Vec<std::ops::Range<usize>> {
    let (Some(first), Some(last)) = (ranges.first(), ranges.last()) else { return ranges };
    let all = first.start..last.end;
    let is_foreign = ranges.len() > 1
        && content.origin(compared.offset + all.start as u64, &compared.found[all.clone()]).is_some();
    if is_foreign { vec![all] } else { ranges }
}

/// Adds the bytes that are missing at the end of the file, or that it has too many.
fn add_wrong_end(compared: Compared<'_>, ranges: &mut Vec<WrongRange>) {
    let (expected, found) = (compared.expected.len(), compared.found.len());
    let pattern = match found.cmp(&expected) {
        std::cmp::Ordering::Less => DamagePattern::Truncated,
        std::cmp::Ordering::Equal => return,
        std::cmp::Ordering::Greater => DamagePattern::TooLong,
    };
    let (from, to) = (expected.min(found), expected.max(found));
    let offset = compared.offset + from as u64;
    // Another file, or an earlier version, has another size as well: that is one damage and not two.
    let is_foreign = |range: &&mut WrongRange| {
        matches!(range.pattern, DamagePattern::OtherFile { .. } | DamagePattern::OldVersion)
            && range.offset + range.length + MAX_GAP_BYTES as u64 >= offset
    };
    match ranges.last_mut().filter(is_foreign) {
        Some(last) => last.length = compared.offset + to as u64 - last.offset,
        None => ranges.push(WrongRange { offset, length: (to - from) as u64, pattern }),
    }
}

/// Returns the ranges of bytes that differ, as far as both have bytes.
fn differing_ranges(expected: &[u8], found: &[u8]) -> Vec<std::ops::Range<usize>> {
    let mut ranges: Vec<std::ops::Range<usize>> = vec![];
    let compared = expected.len().min(found.len());
    for start in (0..compared).step_by(4096) {
        let end = compared.min(start + 4096);
        if expected[start..end] == found[start..end] {
            continue;
        }
        for index in (start..end).filter(|index| expected[*index] != found[*index]) {
            let is_full = ranges.len() == MAX_RANGES;
            match ranges.last_mut().filter(|last| is_full || index - last.end <= MAX_GAP_BYTES) {
                Some(last) => last.end = index + 1,
                None => ranges.push(index..index + 1),
            }
        }
    }
    ranges
}

fn pattern(
    compared: Compared<'_>,
    range: std::ops::Range<usize>,
    content: &dyn KnownContent,
) -> DamagePattern {
    let found = &compared.found[range.clone()];
    let expected = &compared.expected[range.clone()];
    if found.len() >= MIN_ZEROS && found.iter().all(|byte| *byte == 0) {
        return DamagePattern::Zeros;
    }
    let bits: u64 = found.iter().zip(expected).map(|(a, b)| u64::from((a ^ b).count_ones())).sum();
    let is_sparse = (bits as f64) < MAX_FLIPPED_SHARE * 8.0 * found.len() as f64;
    if found.len() <= MAX_SHORT_BYTES || is_sparse {
        return DamagePattern::BitFlips { bits };
    }
    content
        .origin(compared.offset + range.start as u64, found)
        .or_else(|| shift(compared, &range).map(|bytes| DamagePattern::Shifted { bytes }))
        .unwrap_or(DamagePattern::Unknown)
}

/// Returns the distance to the place where the bytes of a range belong; `None` if they belong nowhere near.
fn shift(compared: Compared<'_>, range: &std::ops::Range<usize>) -> Option<i64> {
    let found = &compared.found[range.clone()];
    let middle = (found.len() / 2).min(found.len().checked_sub(SHIFT_PROBE_BYTES)?);
    let probe = &found[middle..middle + SHIFT_PROBE_BYTES];
    let place = compared.expected.windows(SHIFT_PROBE_BYTES).position(|window| window == probe)?;
    let bytes = i64::try_from(place).ok()? - i64::try_from(range.start + middle).ok()?;
    let belongs = |index: usize| {
        let from = i64::try_from(range.start + index).ok()?.checked_add(bytes)?;
        compared.expected.get(usize::try_from(from).ok()?)
    };
    let explained = (0..found.len()).filter(|index| belongs(*index) == Some(&found[*index])).count();
    (explained as f64 >= MIN_SHIFTED_SHARE * found.len() as f64).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::integrity::SeededFile;
    use longhaul_corpus::Content;
    use proptest::prelude::*;

    const LENGTH: usize = 20_000;

    fn content() -> impl KnownContent {
        let origins = || {
            let other = DamagePattern::OtherFile { name: "other".to_owned() };
            [(Content::new(1, 2), other), (Content::new(9, 1), DamagePattern::OldVersion)].into_iter()
        };
        SeededFile { content: Content::new(1, 1), length: LENGTH as u64, written: None, origins }
    }

    fn bytes_of(seed: u64, file: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        Content::new(seed, file).fill(0, &mut bytes);
        bytes
    }

    /// Damages the file, and returns what is found.
    fn found_after(damage: impl FnOnce(&mut Vec<u8>)) -> Vec<WrongRange> {
        let expected = bytes_of(1, 1, LENGTH);
        let mut found = expected.clone();
        damage(&mut found);
        wrong_ranges(Compared { offset: 0, expected: &expected, found: &found }, &content())
    }

    /// Returns the only pattern, and checks that the range has the true bounds.
    fn only(ranges: &[WrongRange], from: usize, to: usize) -> DamagePattern {
        let [range] = ranges else { panic!("one range, not {ranges:?}") };
        let end = (range.offset + range.length) as usize;
        assert!(range.offset as usize - from <= 2 && to - end <= 2, "{range:?} is not {from} to {to}");
        range.pattern.clone()
    }

    #[test]
    fn each_damage_is_recognized() {
        let zeros = found_after(|bytes| bytes[5000..9096].fill(0));
        assert_eq!(only(&zeros, 5000, 9096), DamagePattern::Zeros);
        let shifted = found_after(|bytes| bytes.copy_within(1000..5000, 1512));
        assert_eq!(only(&shifted, 1512, 5512), DamagePattern::Shifted { bytes: -512 });
        let old = found_after(|bytes| bytes[4096..8192].copy_from_slice(&bytes_of(9, 1, 8192)[4096..]));
        assert_eq!(only(&old, 4096, 8192), DamagePattern::OldVersion);
        let other = DamagePattern::OtherFile { name: "other".to_owned() };
        let part = found_after(|bytes| bytes[100..900].copy_from_slice(&bytes_of(1, 2, 900)[100..]));
        assert_eq!(only(&part, 100, 900), other);
        let shorter = found_after(|bytes| *bytes = bytes_of(1, 2, 12_345));
        assert_eq!(only(&shorter, 0, LENGTH), other, "another file with another size is one damage");
        let longer = found_after(|bytes| *bytes = bytes_of(1, 2, 30_000));
        assert_eq!(only(&longer, 0, 30_000), other);
        assert_eq!(only(&found_after(|bytes| bytes.truncate(777)), 777, LENGTH), DamagePattern::Truncated);
        let extended = found_after(|bytes| bytes.extend([7; 50]));
        assert_eq!(only(&extended, LENGTH, LENGTH + 50), DamagePattern::TooLong);
        let random = found_after(|bytes| bytes[100..1100].copy_from_slice(&bytes_of(77, 7, 1000)));
        assert_eq!(only(&random, 100, 1100), DamagePattern::Unknown);
    }

    #[test]
    fn flipped_bits_are_counted() {
        let one = found_after(|bytes| bytes[12_000] ^= 0b100);
        assert_eq!(only(&one, 12_000, 12_001), DamagePattern::BitFlips { bits: 1 });
        let byte = found_after(|bytes| bytes[3] = !bytes[3]);
        assert_eq!(only(&byte, 3, 4), DamagePattern::BitFlips { bits: 8 });
        let near = found_after(|bytes| [10, 20, 30].iter().for_each(|index| bytes[*index] ^= 1));
        assert_eq!(only(&near, 10, 31), DamagePattern::BitFlips { bits: 3 });
    }

    #[test]
    fn distant_damages_are_separate_ranges() {
        let found = found_after(|bytes| {
            bytes[1000..2000].fill(0);
            bytes[7000] ^= 1;
            bytes.truncate(9000);
        });
        let patterns: Vec<_> = found.into_iter().map(|range| range.pattern).collect();
        let bits = DamagePattern::BitFlips { bits: 1 };
        assert_eq!(patterns, [DamagePattern::Zeros, bits, DamagePattern::Truncated]);
    }

    #[test]
    fn countless_ranges_are_bounded() {
        let found = found_after(|bytes| bytes.iter_mut().step_by(40).for_each(|byte| *byte ^= 1));
        let end = found.last().map(|range| range.offset + range.length);
        assert_eq!((found.len(), end), (MAX_RANGES, Some(LENGTH as u64 - 39)));
    }

    proptest! {
        #[test]
        fn ranges_cover_exactly_the_wrong_bytes(
            flips in prop::collection::btree_set(0..LENGTH, 0..20),
            keep in 0..=LENGTH,
        ) {
            let expected = bytes_of(1, 1, LENGTH);
            let found = found_after(|bytes| {
                flips.iter().for_each(|index| bytes[*index] ^= 0x40);
                bytes.truncate(keep);
            });
            let covers = |index: &usize| found.iter().any(|range| (range.offset..range.offset + range.length).contains(&(*index as u64)));
            prop_assert!(flips.iter().filter(|index| **index < keep).all(covers));
            prop_assert!((keep..LENGTH).all(|index| covers(&index)));
            for range in found.iter().filter(|range| range.pattern != DamagePattern::Truncated) {
                let first = range.offset as usize;
                prop_assert!(flips.contains(&first) && flips.contains(&(first + range.length as usize - 1)));
            }
            prop_assert_eq!(expected.len(), LENGTH);
        }

        #[test]
        fn any_bytes_are_compared_without_panic(found: Vec<u8>, expected: Vec<u8>) {
            let ranges = wrong_ranges(Compared { offset: 3, expected: &expected, found: &found }, &content());
            prop_assert_eq!(ranges.is_empty(), found == expected);
        }
    }
}
