//! The entropy-coded part of a photo: random bytes to which a bit template is applied. So generation is fast, and
//! the result is incompressible.
//!
//! With the Huffman tables of this module, every block has the same bit layout, whatever its coefficients are
//! (T.81 F.1.2):
//!
//! | part of a block | code | value | bits |
//! |---|---|---|---|
//! | DC difference of size 5 | `0` | 5 random bits | 6 |
//! | 15 AC coefficients of size 10, each after a run of 0 to 3 zeros | `0` and 2 random bits for the run | 10 random bits | 15 × 13 |
//! | end of block | `100` | | 3 |
//!
//! So 185 of 204 bits are random, a 4:2:0 MCU of six blocks has exactly 153 bytes, and the last coefficient is at
//! most the 60th. If a byte would be 0xFF, which would need stuffing (T.81 B.1.1.5), one of its random bits is
//! cleared. The predictors are reset every eight MCUs: the sum of 32 luma differences of at most 31 stays within
//! the ±1023 of a baseline DC coefficient. AC size 10 is the largest that baseline allows (T.81 tables F.1 and
//! F.2).

use crate::Content;

/// Number of MCUs between two restart markers.
pub(super) const INTERVAL_MCUS: u16 = 8;
/// Size of one restart interval in bytes, including the marker at its end.
pub(super) const INTERVAL_BYTES: usize = CODED_BYTES + 2;
/// Width and height in pixels of a 4:2:0 MCU.
pub(super) const MCU_SIDE: u64 = 16;

/// Huffman table of DC coefficients: number of codes of each length from 1 to 16, then the symbols (T.81 B.2.4.2).
/// Code `0` is "DC difference of size 5".
pub(super) const DC_CODES: [u8; 17] = [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5];
/// Huffman table of AC coefficients: codes `000` to `011` are "size 10 after a run of 0 to 3 zeros", code `100` is
/// "end of block".
pub(super) const AC_CODES: [u8; 21] =
    [0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x0A, 0x1A, 0x2A, 0x3A, 0x00];

const DC_BITS: usize = 6;
const AC_BITS: usize = 13;
const AC_COEFFICIENTS: usize = 15;
const END_OF_BLOCK: usize = DC_BITS + AC_COEFFICIENTS * AC_BITS;
const BLOCK_BITS: usize = END_OF_BLOCK + 3;
const BLOCKS_PER_MCU: usize = 6;
const CODED_BYTES: usize = INTERVAL_MCUS as usize * BLOCKS_PER_MCU * BLOCK_BITS / 8;

const MARKER: u8 = 0xFF;
const FIRST_RESTART: u8 = 0xD0;
const END_OF_IMAGE: u8 = 0xD9;

/// Bit template of an interval: which bits of each byte are random, and which are always one.
struct Template {
    /// Mask of the random bits of each byte.
    random_bits: [u8; CODED_BYTES],
    /// Mask of the bits of each byte that are always one.
    one_bits: [u8; CODED_BYTES],
    /// Mask of all bits of each byte except the random bit that is cleared if the byte would be 0xFF.
    without_one_random_bit: [u8; CODED_BYTES],
}

static TEMPLATE: Template = template();

const fn template() -> Template {
    let mut template = Template {
        random_bits: [0; CODED_BYTES],
        one_bits: [0; CODED_BYTES],
        without_one_random_bit: [0; CODED_BYTES],
    };
    let mut bit = 0;
    while bit < CODED_BYTES * 8 {
        let mask = 0x80 >> (bit % 8);
        match bit % BLOCK_BITS {
            END_OF_BLOCK => template.one_bits[bit / 8] |= mask,
            position if is_zero(position) => {}
            _ => template.random_bits[bit / 8] |= mask,
        }
        bit += 1;
    }
    let mut byte = 0;
    while byte < CODED_BYTES {
        template.without_one_random_bit[byte] = !one_bit_of(template.random_bits[byte], byte);
        byte += 1;
    }
    template
}

/// Returns whether the bit at this position of a block is always zero.
const fn is_zero(position: usize) -> bool {
    position == 0
        || position > END_OF_BLOCK
        || (position >= DC_BITS && (position - DC_BITS).is_multiple_of(AC_BITS))
}

/// Returns one of the set bits of `random_bits`, which must not be zero. The choice depends on the index of the
/// byte, so that no bit position is preferred.
const fn one_bit_of(random_bits: u8, byte_index: usize) -> u8 {
    let mut bit = byte_index % 8;
    while random_bits & (1 << bit) == 0 {
        bit = (bit + 1) % 8;
    }
    1 << bit
}

/// Scan of one picture: `intervals` restart intervals, whose random bits start at offset `start` of a content
/// stream.
#[derive(Clone, Debug)]
pub(super) struct Scan {
    pub(super) content: Content,
    pub(super) start: u64,
    pub(super) intervals: u64,
}

impl Scan {
    /// Returns the size of the scan in bytes, including the end-of-image marker that replaces the last restart
    /// marker.
    pub(super) fn bytes(&self) -> u64 {
        self.intervals * INTERVAL_BYTES as u64
    }

    /// Fills `out`, whose length is a whole number of intervals, with the intervals from number `first` on.
    pub(super) fn fill(&self, first: u64, out: &mut [u8]) {
        self.content.fill(self.start + first * INTERVAL_BYTES as u64, out);
        for (number, interval) in (first..).zip(out.chunks_exact_mut(INTERVAL_BYTES)) {
            let (coded, marker) = interval.split_at_mut(CODED_BYTES);
            apply_template(coded.try_into().expect("an interval is split at its coded bytes"));
            marker.copy_from_slice(&[MARKER, self.marker_after(number)]);
        }
    }

    fn marker_after(&self, number: u64) -> u8 {
        if number + 1 == self.intervals { END_OF_IMAGE } else { FIRST_RESTART + (number % 8) as u8 }
    }
}

/// Applies the bit template to random bytes.
fn apply_template(bytes: &mut [u8; CODED_BYTES]) {
    // Without branches and with arrays of constant length, the compiler vectorizes this loop.
    for (index, byte) in bytes.iter_mut().enumerate() {
        let masked = (*byte & TEMPLATE.random_bits[index]) | TEMPLATE.one_bits[index];
        *byte = if masked == MARKER { masked & TEMPLATE.without_one_random_bit[index] } else { masked };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mcu_has_a_whole_number_of_bytes() {
        assert_eq!(BLOCK_BITS, 204);
        assert_eq!(BLOCKS_PER_MCU * BLOCK_BITS % 8, 0);
        assert_eq!(INTERVAL_BYTES, 1226);
    }

    #[test]
    fn template_has_185_random_bits_per_block() {
        let free: u32 = TEMPLATE.random_bits.iter().map(|byte| byte.count_ones()).sum();
        assert_eq!(free as usize, INTERVAL_MCUS as usize * BLOCKS_PER_MCU * 185);
    }

    #[test]
    fn scan_needs_no_stuffing_for_any_random_bytes() {
        let mut ones = [0xFF; CODED_BYTES];
        apply_template(&mut ones);
        assert!(!ones.contains(&MARKER));
        let mut zeros = [0; CODED_BYTES];
        apply_template(&mut zeros);
        assert!(!zeros.contains(&MARKER));
    }
}
