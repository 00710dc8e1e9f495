//! The entropy-coded part of a photo: random bytes under a mask, which is what makes it fast *and* incompressible.
//!
//! The Huffman tables give every block the same bit layout, whatever its coefficients are (T.81 F.1.2):
//!
//! | part of a block | code | value | bits |
//! |---|---|---|---|
//! | DC difference of size 5 | `0` | 5 random bits | 6 |
//! | 15 AC coefficients of size 10, each after a run of 0 to 3 zeros | `0` and 2 random bits for the run | 10 random bits | 15 × 13 |
//! | end of block | `100` | | 3 |
//!
//! So 185 of 204 bits are random, a 4:2:0 MCU of six blocks is 153 whole bytes, and the last coefficient is at most the
//! 60th. A byte that comes out as 0xFF, which would need stuffing (T.81 B.1.1.5), has one of its random bits cleared.
//! The predictors are reset every eight MCUs: 32 luma differences of at most 31 stay within the ±1023 of a baseline DC
//! coefficient, and AC size 10 is the largest that baseline allows (T.81 tables F.1 and F.2).

use crate::corpus::Content;

/// MCUs between two restart markers.
pub(super) const INTERVAL_MCUS: u16 = 8;
/// Bytes of one restart interval with the marker that ends it.
pub(super) const INTERVAL_BYTES: usize = CODED_BYTES + 2;
/// Width and height in pixels of a 4:2:0 MCU.
pub(super) const MCU_SIDE: u64 = 16;

/// Codes per length 1 to 16, then symbols (T.81 B.2.4.2). Code `0` is "DC difference of size 5".
pub(super) const DC_CODES: [u8; 17] = [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5];
/// Codes `000` to `011` are "size 10 after a run of 0 to 3 zeros", code `100` is "end of block".
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

/// What is forced on each byte of an interval.
struct Template {
    /// Bits that stay random.
    free: [u8; CODED_BYTES],
    /// Bits that are one.
    set: [u8; CODED_BYTES],
    /// All but the one random bit that is cleared when the byte would be 0xFF.
    kept: [u8; CODED_BYTES],
}

static TEMPLATE: Template = template();

const fn template() -> Template {
    let mut made = Template { free: [0; CODED_BYTES], set: [0; CODED_BYTES], kept: [0; CODED_BYTES] };
    let mut bit = 0;
    while bit < CODED_BYTES * 8 {
        let mask = 0x80 >> (bit % 8);
        match bit % BLOCK_BITS {
            END_OF_BLOCK => made.set[bit / 8] |= mask,
            place if is_zero(place) => {}
            _ => made.free[bit / 8] |= mask,
        }
        bit += 1;
    }
    let mut byte = 0;
    while byte < CODED_BYTES {
        made.kept[byte] = !one_bit_of(made.free[byte], byte);
        byte += 1;
    }
    made
}

/// Whether the bit at that place of a block is forced to zero.
const fn is_zero(place: usize) -> bool {
    place == 0 || place > END_OF_BLOCK || (place >= DC_BITS && (place - DC_BITS).is_multiple_of(AC_BITS))
}

/// One of the set bits of `free`, which is never empty: a different one for neighbours, so that no bit is favoured.
const fn one_bit_of(free: u8, neighbour: usize) -> u8 {
    let mut bit = neighbour % 8;
    while free & (1 << bit) == 0 {
        bit = (bit + 1) % 8;
    }
    1 << bit
}

/// The scan of one picture: `intervals` restart intervals whose random bits begin at `start` of a content.
#[derive(Clone, Debug)]
pub(super) struct Scan {
    pub(super) content: Content,
    pub(super) start: u64,
    pub(super) intervals: u64,
}

impl Scan {
    /// Bytes of the scan, with the end-of-image marker that takes the place of the last restart marker.
    pub(super) fn bytes(&self) -> u64 {
        self.intervals * INTERVAL_BYTES as u64
    }

    /// Fills `out`, a whole number of intervals, with those from number `first` on.
    pub(super) fn fill(&self, first: u64, out: &mut [u8]) {
        self.content.fill(self.start + first * INTERVAL_BYTES as u64, out);
        for (number, interval) in (first..).zip(out.chunks_exact_mut(INTERVAL_BYTES)) {
            let (coded, marker) = interval.split_at_mut(CODED_BYTES);
            mask(coded.try_into().expect("an interval is split at its coded bytes"));
            marker.copy_from_slice(&[MARKER, self.marker_after(number)]);
        }
    }

    fn marker_after(&self, number: u64) -> u8 {
        if number + 1 == self.intervals { END_OF_IMAGE } else { FIRST_RESTART + (number % 8) as u8 }
    }
}

/// Lays the template over random bytes. No branch, and arrays of a known length: the compiler makes vectors of it.
fn mask(bytes: &mut [u8; CODED_BYTES]) {
    for (index, byte) in bytes.iter_mut().enumerate() {
        let masked = (*byte & TEMPLATE.free[index]) | TEMPLATE.set[index];
        *byte = if masked == MARKER { masked & TEMPLATE.kept[index] } else { masked };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_mcu_is_whole_bytes() {
        assert_eq!(BLOCK_BITS, 204);
        assert_eq!(BLOCKS_PER_MCU * BLOCK_BITS % 8, 0);
        assert_eq!(INTERVAL_BYTES, 1226);
    }

    #[test]
    fn all_but_one_bit_in_eleven_is_random() {
        let free: u32 = TEMPLATE.free.iter().map(|byte| byte.count_ones()).sum();
        assert_eq!(free as usize, INTERVAL_MCUS as usize * BLOCKS_PER_MCU * 185);
    }

    #[test]
    fn a_scan_needs_no_stuffing_whatever_is_random() {
        let mut ones = [0xFF; CODED_BYTES];
        mask(&mut ones);
        assert!(!ones.contains(&MARKER));
        let mut zeros = [0; CODED_BYTES];
        mask(&mut zeros);
        assert!(!zeros.contains(&MARKER));
    }
}
