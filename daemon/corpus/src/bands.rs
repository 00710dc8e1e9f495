//! Bands of a sparse disk image, as Time Machine writes them to a share.
//!
//! Every block starts with its band, its index and the number of the burst that wrote it, followed by content
//! derived from these. So each block can be verified alone, even if its neighbors were overwritten many times.

use super::Content;

/// Size of a block in bytes: the unit of overwriting and of verification.
pub const BLOCK_BYTES: usize = 64 << 10;

const HEADER_BYTES: usize = 32;
const MAGIC: u64 = 0x6c6f_6e67_6261_6e64;

/// Block of a band, as written by one burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// Number of the band.
    pub band: u64,
    /// Index of the block in the band.
    pub index: u64,
    /// Number of the burst that wrote the block.
    pub burst: u64,
}

impl Block {
    /// Generates the bytes of this block: header and content.
    pub fn fill(&self, seed: u64, out: &mut [u8; BLOCK_BYTES]) {
        for (position, word) in [MAGIC, self.band, self.index, self.burst].into_iter().enumerate() {
            out[position * 8..position * 8 + 8].copy_from_slice(&word.to_le_bytes());
        }
        self.content(seed).fill(self.offset(), &mut out[HEADER_BYTES..]);
    }

    /// Verifies the bytes that were read for this block. They may have been written by this or an earlier burst.
    /// Returns the block that was found.
    ///
    /// # Errors
    ///
    /// Description of the damage.
    pub fn verify(&self, seed: u64, bytes: &[u8; BLOCK_BYTES]) -> Result<Block, String> {
        let word =
            |position: usize| u64::from_le_bytes(std::array::from_fn(|byte| bytes[position * 8 + byte]));
        let found = Block { band: word(1), index: word(2), burst: word(3) };
        if word(0) != MAGIC {
            return Err(format!("block {} has no header", self.index));
        }
        if (found.band, found.index) != (self.band, self.index) {
            return Err(format!(
                "block {} contains block {} of band {:x}",
                self.index, found.index, found.band
            ));
        }
        if found.burst > self.burst {
            return Err(format!(
                "block {} claims to be written by burst {}, which has not run yet",
                self.index, found.burst
            ));
        }
        match found.content(seed).first_difference(found.offset(), &bytes[HEADER_BYTES..]) {
            None => Ok(found),
            Some(_) => Err(format!("block {} differs from what burst {} wrote", self.index, found.burst)),
        }
    }

    fn content(&self, seed: u64) -> Content {
        Content::new(longhaul_model::draw::draw(seed, self.burst, self.band), self.band)
    }

    fn offset(&self) -> u64 {
        self.index * BLOCK_BYTES as u64
    }
}

/// Returns the file name of a band: its number in lower-case hexadecimal without padding, as in a sparse bundle.
pub fn band_name(band: u64) -> String {
    format!("{band:x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_is_recognized_and_each_damage_is_described() {
        let block = Block { band: 17, index: 3, burst: 9 };
        let mut bytes = [0u8; BLOCK_BYTES];
        block.fill(1, &mut bytes);
        assert_eq!(block.verify(1, &bytes), Ok(block));
        assert_eq!(
            Block { burst: 12, ..block }.verify(1, &bytes),
            Ok(block),
            "a block of an earlier burst is valid"
        );
        assert!(Block { burst: 8, ..block }.verify(1, &bytes).unwrap_err().contains("has not run yet"));
        assert!(Block { index: 4, ..block }.verify(1, &bytes).unwrap_err().contains("contains block 3"));
        bytes[BLOCK_BYTES - 1] ^= 1;
        assert!(block.verify(1, &bytes).unwrap_err().contains("differs from what burst 9 wrote"));
        assert!(block.verify(1, &[0; BLOCK_BYTES]).unwrap_err().contains("no header"));
    }

    #[test]
    fn content_differs_between_blocks_bands_and_bursts() {
        let mut first = [0u8; BLOCK_BYTES];
        let mut second = [0u8; BLOCK_BYTES];
        Block { band: 1, index: 0, burst: 1 }.fill(1, &mut first);
        for other in [(1, 1, 1), (2, 0, 1), (1, 0, 2)] {
            Block { band: other.0, index: other.1, burst: other.2 }.fill(1, &mut second);
            assert_ne!(first[HEADER_BYTES..], second[HEADER_BYTES..], "{other:?}");
        }
    }
}
