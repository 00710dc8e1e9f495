//! Content that is ready before it is needed: making it costs no time while a replay is measured, and comparing it costs as much
//! as reading memory.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// Number of bytes after which content repeats. It is odd, so that repetitions lie in no two blocks of a file system alike, and
/// farther away than compression looks.
const PERIOD: usize = (16 << 20) + 1;
/// Number of bytes that can be used in one piece from any place on.
const PIECE: usize = 4 << 20;

/// Random bytes that all files of a corpus share. Each file begins at another place in them.
pub struct ContentPool {
    bytes: Vec<u8>,
}

impl ContentPool {
    /// Makes the bytes of a corpus from its seed.
    pub fn new(seed: u64) -> Self {
        let mut bytes = vec![0; PERIOD + PIECE];
        ChaCha8Rng::seed_from_u64(seed).fill_bytes(&mut bytes[..PERIOD]);
        bytes.copy_within(..PIECE, PERIOD);
        Self { bytes }
    }

    /// Returns the content of a file from a byte on: as many bytes as lie in one piece, at most `length`.
    pub fn piece(&self, file: u32, offset: u64, length: usize) -> &[u8] {
        let first = u64::from(file).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
        let begin = ((first % PERIOD as u64 + offset % PERIOD as u64) % PERIOD as u64) as usize;
        &self.bytes[begin..][..length.min(PIECE)]
    }

    /// Returns the offset in the file of the first wrong byte; `None` if all are right.
    pub fn first_difference(&self, file: u32, offset: u64, bytes: &[u8]) -> Option<u64> {
        let mut position = offset;
        for found in bytes.chunks(PIECE) {
            let expected = self.piece(file, position, found.len());
            if let Some(index) = super::content::difference(found, expected) {
                return Some(position + index as u64);
            }
            position += found.len() as u64;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_fit_together_and_wrong_bytes_are_found() {
        let pool = ContentPool::new(7);
        let far = PERIOD as u64 * 3 - 10;
        let whole = pool.piece(9, far, 100).to_vec();
        assert_eq!(&whole[30..], pool.piece(9, far + 30, 70));
        assert_ne!(whole, pool.piece(8, far, 100));
        let mut long: Vec<u8> = vec![];
        while long.len() < PIECE + 5000 {
            long.extend(pool.piece(9, far + long.len() as u64, 1 << 20));
        }
        assert_eq!(pool.first_difference(9, far, &long), None);
        long[PIECE + 17] ^= 1;
        assert_eq!(pool.first_difference(9, far, &long), Some(far + PIECE as u64 + 17));
    }
}
