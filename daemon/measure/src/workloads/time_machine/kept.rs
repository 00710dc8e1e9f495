//! The content of the bands of an image that is kept on a target.

use std::path::PathBuf;

use super::image::{ImagePlan, ImageState, SEED};
use crate::checks::integrity::KnownContent;
use longhaul_corpus::bands::{BLOCK_BYTES, Block, band_name};
use longhaul_model::{DamagePattern, Timestamp};

/// Number of bytes that are compared to recognize a block.
const PROBE_BYTES: usize = 32;
/// Number of bursts, back from the last one, of which blocks are recognized.
const KNOWN_BURSTS: u64 = 64;

/// A band of an image. Each of its blocks may have been written by any burst up to the last one.
pub struct KnownBand {
    /// Number of the band.
    pub band: u64,
    /// Plan of the image.
    pub plan: ImagePlan,
    /// State of the image.
    pub image: ImageState,
    /// Time by which the newest block was written; `None` if it is not recorded.
    pub written: Option<Timestamp>,
}

impl KnownBand {
    /// Returns the path of the band in the image's folder.
    pub fn path(band: u64) -> PathBuf {
        PathBuf::from("bands").join(band_name(band))
    }

    fn bursts(&self) -> impl Iterator<Item = u64> + use<> {
        (self.image.burst.saturating_sub(KNOWN_BURSTS)..=self.image.burst).rev()
    }

    /// Returns the burst that wrote a block, from the bytes that were found at `offset` in the band; the last burst if none
    /// of them matches.
    fn burst_of(&self, index: u64, offset: u64, found: &[u8]) -> u64 {
        let begin = index * BLOCK_BYTES as u64;
        let start = (begin.max(offset) - offset) as usize;
        let end = (begin + BLOCK_BYTES as u64).min(offset + found.len() as u64);
        let part = &found[start..(end - offset) as usize];
        let matches = |burst: &u64| {
            let bytes = bytes_of(Block { band: self.band, index, burst: *burst });
            let inside = &bytes[(offset + start as u64 - begin) as usize..][..part.len()];
            // Half of it may be damaged: any piece in place is enough.
            part.chunks_exact(PROBE_BYTES).zip(inside.chunks_exact(PROBE_BYTES)).any(|(a, b)| a == b)
        };
        self.bursts().find(matches).unwrap_or(self.image.burst)
    }
}

impl KnownContent for KnownBand {
    fn length(&self) -> u64 {
        self.plan.band_bytes
    }

    fn expected(&self, offset: u64, found: &[u8], out: &mut [u8]) {
        let end = offset + out.len() as u64;
        for index in offset / BLOCK_BYTES as u64..end.div_ceil(BLOCK_BYTES as u64) {
            let burst = self.burst_of(index, offset, found);
            let bytes = bytes_of(Block { band: self.band, index, burst });
            let begin = index * BLOCK_BYTES as u64;
            let (from, to) = (begin.max(offset), (begin + BLOCK_BYTES as u64).min(end));
            let source = &bytes[(from - begin) as usize..(to - begin) as usize];
            out[(from - offset) as usize..(to - offset) as usize].copy_from_slice(source);
        }
    }

    fn origin(&self, offset: u64, found: &[u8]) -> Option<DamagePattern> {
        let end = offset + found.len() as u64;
        let matches = |band: &u64| {
            let blocks = offset / BLOCK_BYTES as u64..end.div_ceil(BLOCK_BYTES as u64);
            blocks.into_iter().all(|index| {
                let begin = index * BLOCK_BYTES as u64;
                let (from, to) = (begin.max(offset), (begin + BLOCK_BYTES as u64).min(end));
                let part = &found[(from - offset) as usize..(to - offset) as usize];
                let inside = (from - begin) as usize..(to - begin) as usize;
                self.bursts()
                    .any(|burst| bytes_of(Block { band: *band, index, burst })[inside.clone()] == *part)
            })
        };
        let mut others = (self.image.first..self.image.next).filter(|band| *band != self.band);
        others.find(matches).map(|band| DamagePattern::OtherFile { name: band_name(band) })
    }

    fn written(&self) -> Option<Timestamp> {
        self.written
    }
}

fn bytes_of(block: Block) -> Box<[u8; BLOCK_BYTES]> {
    let mut bytes = Box::new([0; BLOCK_BYTES]);
    block.fill(SEED, &mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::integrity::{Compared, wrong_ranges};

    fn band() -> KnownBand {
        let plan = ImagePlan { band_bytes: 4 * BLOCK_BYTES as u64, bands: 4, overwrites: 1, new_bands: 1 };
        let image = ImageState { first: 2, next: 6, burst: 7, unfinished: false };
        KnownBand { band: 3, plan, image, written: None }
    }

    /// Returns the band with blocks of these bursts.
    fn bytes(bursts: [u64; 4]) -> Vec<u8> {
        let blocks = (0..).zip(bursts).map(|(index, burst)| *bytes_of(Block { band: 3, index, burst }));
        blocks.flatten().collect()
    }

    fn damage_of(found: &[u8]) -> Vec<(u64, u64, DamagePattern)> {
        let mut expected = vec![0; found.len()];
        band().expected(0, found, &mut expected);
        let ranges = wrong_ranges(Compared { offset: 0, expected: &expected, found }, &band());
        ranges.into_iter().map(|range| (range.offset, range.length, range.pattern)).collect()
    }

    #[test]
    fn blocks_of_any_burst_are_right() {
        assert_eq!(damage_of(&bytes([0, 7, 3, 7])), []);
    }

    #[test]
    fn damage_within_a_block_is_found() {
        let mut found = bytes([1, 2, 3, 4]);
        found[BLOCK_BYTES + 100..BLOCK_BYTES + 4196].fill(0);
        found[3 * BLOCK_BYTES] ^= 1;
        let damage = damage_of(&found);
        assert_eq!(damage.len(), 2, "{damage:?}");
        assert_eq!(damage[0].2, DamagePattern::Zeros);
        assert_eq!(damage[1], (3 * BLOCK_BYTES as u64, 1, DamagePattern::BitFlips { bits: 1 }));
    }

    #[test]
    fn block_of_another_band_is_recognized() {
        let mut found = bytes([1, 2, 3, 4]);
        found[BLOCK_BYTES..2 * BLOCK_BYTES].copy_from_slice(&*bytes_of(Block {
            band: 5,
            index: 1,
            burst: 2,
        }));
        let damage = damage_of(&found);
        let other = DamagePattern::OtherFile { name: "5".to_owned() };
        assert!(damage.iter().any(|(_, _, pattern)| *pattern == other), "{damage:?}");
    }
}
