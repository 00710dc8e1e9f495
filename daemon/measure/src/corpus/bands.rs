//! The bands of a sparse disk image, as Time Machine writes them to a share.
//!
//! Every block says which block it is, of which band, written by which burst, and holds content that follows from
//! these: so each block can be verified alone, however often the ones around it were overwritten.

use super::Content;

/// Bytes of a block: the unit of overwriting and of verification.
pub const BLOCK_BYTES: usize = 64 << 10;

const HEADER_BYTES: usize = 32;
const MAGIC: u64 = 0x6c6f_6e67_6261_6e64;

/// Which block, and as of when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// The band.
    pub band: u64,
    /// The block in the band.
    pub index: u64,
    /// The burst that wrote it.
    pub burst: u64,
}

impl Block {
    /// Makes the bytes of this block.
    pub fn fill(&self, seed: u64, out: &mut [u8; BLOCK_BYTES]) {
        for (place, word) in [MAGIC, self.band, self.index, self.burst].into_iter().enumerate() {
            out[place * 8..place * 8 + 8].copy_from_slice(&word.to_le_bytes());
        }
        self.content(seed).fill(self.begin(), &mut out[HEADER_BYTES..]);
    }

    /// Checks the bytes of a block of this band at this index, written by this or an earlier burst; says what is wrong.
    pub fn check(&self, seed: u64, bytes: &[u8; BLOCK_BYTES]) -> Result<Block, String> {
        let word = |place: usize| u64::from_le_bytes(std::array::from_fn(|byte| bytes[place * 8 + byte]));
        let found = Block { band: word(1), index: word(2), burst: word(3) };
        if word(0) != MAGIC {
            return Err(format!("block {} has no header", self.index));
        }
        if (found.band, found.index) != (self.band, self.index) {
            return Err(format!("block {} holds block {} of band {:x}", self.index, found.index, found.band));
        }
        if found.burst > self.burst {
            return Err(format!(
                "block {} claims to be of burst {}, which is to come",
                self.index, found.burst
            ));
        }
        match found.content(seed).first_difference(found.begin(), &bytes[HEADER_BYTES..]) {
            None => Ok(found),
            Some(_) => Err(format!("block {} is not what burst {} wrote", self.index, found.burst)),
        }
    }

    fn content(&self, seed: u64) -> Content {
        Content::new(super::draw::draw(seed, self.burst, self.band), self.band)
    }

    fn begin(&self) -> u64 {
        self.index * BLOCK_BYTES as u64
    }
}

/// The name of a band: lower-case hexadecimal without padding, as in a sparse bundle.
pub fn band_name(band: u64) -> String {
    format!("{band:x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_recognised_and_every_damage_is_named() {
        let block = Block { band: 17, index: 3, burst: 9 };
        let mut bytes = [0u8; BLOCK_BYTES];
        block.fill(1, &mut bytes);
        assert_eq!(block.check(1, &bytes), Ok(block));
        assert_eq!(
            Block { burst: 12, ..block }.check(1, &bytes),
            Ok(block),
            "an earlier burst's block stays good"
        );
        assert!(Block { burst: 8, ..block }.check(1, &bytes).unwrap_err().contains("to come"));
        assert!(Block { index: 4, ..block }.check(1, &bytes).unwrap_err().contains("holds block 3"));
        bytes[BLOCK_BYTES - 1] ^= 1;
        assert!(block.check(1, &bytes).unwrap_err().contains("not what burst 9 wrote"));
        assert!(block.check(1, &[0; BLOCK_BYTES]).unwrap_err().contains("no header"));
    }

    #[test]
    fn neighbouring_blocks_and_bursts_differ_in_content() {
        let mut first = [0u8; BLOCK_BYTES];
        let mut second = [0u8; BLOCK_BYTES];
        Block { band: 1, index: 0, burst: 1 }.fill(1, &mut first);
        for other in [(1, 1, 1), (2, 0, 1), (1, 0, 2)] {
            Block { band: other.0, index: other.1, burst: other.2 }.fill(1, &mut second);
            assert_ne!(first[HEADER_BYTES..], second[HEADER_BYTES..], "{other:?}");
        }
    }
}
