//! Deterministic random numbers: each number is a function of a seed, a stream and an index, without any state
//! between draws.

/// Increment of SplitMix64: 2^64 divided by the golden ratio.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Returns the 64-bit number at an index of a stream: SplitMix64 (Steele, Lea, Flood, OOPSLA 2014) over the three
/// inputs.
pub fn draw(seed: u64, stream: u64, index: u64) -> u64 {
    let mut state = seed;
    for input in [stream, index] {
        state = mix_bits(state.wrapping_add(GOLDEN) ^ mix_bits(input.wrapping_add(0x632b_e59b_d9b4_e019)));
    }
    state
}

/// Returns an endless sequence of numbers for a seed and a stream. It is faster than calling [`draw`] for each
/// number, and gives different numbers.
pub fn draw_stream(seed: u64, stream: u64) -> impl Iterator<Item = u64> {
    let mut state = draw(seed, stream, 0);
    std::iter::repeat_with(move || {
        state = state.wrapping_add(GOLDEN);
        mix_bits(state)
    })
}

fn mix_bits(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// Returns a random number below `bound`, which must not be zero. The bias of the multiplication is below
/// `bound / 2^64`.
pub fn draw_below(seed: u64, stream: u64, index: u64, bound: u64) -> u64 {
    ((u128::from(draw(seed, stream, index)) * u128::from(bound)) >> 64) as u64
}

/// Returns the numbers below `count` in random order (Fisher–Yates shuffle).
pub fn shuffled_indices(seed: u64, stream: u64, count: u64) -> Vec<u64> {
    let mut order: Vec<u64> = (0..count).collect();
    for last in (1..order.len()).rev() {
        let other = draw_below(seed, stream, last as u64, last as u64 + 1) as usize;
        order.swap(last, other);
    }
    order
}

/// Returns the number at position `place` of a random permutation of the numbers below `count`, without storing
/// the permutation. `place` must be below `count`.
pub fn shuffled_index(seed: u64, stream: u64, count: u64, place: u64) -> u64 {
    // A Feistel network of four rounds permutes all numbers of the next even number of bits. A result that is not
    // below `count` is permuted again until it is (cycle walking: Black and Rogaway, CT-RSA 2002), less than four
    // times on average.
    let half_bits = (u64::BITS - count.saturating_sub(1).leading_zeros()).div_ceil(2);
    let mask = (1u64 << half_bits) - 1;
    let permute = |number: u64| {
        let halves = (number >> half_bits, number & mask);
        let (left, right) = (0..4)
            .fold(halves, |(left, right), round| (right, left ^ (draw(seed, stream ^ round, right) & mask)));
        left << half_bits | right
    };
    let mut number = permute(place);
    while number >= count {
        number = permute(number);
    }
    number
}

/// Distribution of file sizes in a home directory: the table of filebench's networkfs workload (share in percent,
/// from KB, to KB).
const HOME_DIRECTORY_SIZES: [(u64, u64, u64); 10] = [
    (33, 0, 1),
    (21, 1, 3),
    (13, 3, 5),
    (10, 5, 11),
    (8, 11, 21),
    (5, 21, 43),
    (4, 43, 85),
    (3, 85, 171),
    (2, 171, 341),
    (1, 341, 1707),
];

/// Returns a random file size in bytes, drawn from the home-directory table.
pub fn draw_home_size(seed: u64, stream: u64, index: u64) -> u64 {
    let mut percent = draw_below(seed, stream, index, 100);
    for (share, from, to) in HOME_DIRECTORY_SIZES {
        if percent < share {
            return from * 1024 + 1 + draw_below(seed, stream ^ 0x517e, index, (to - from) * 1024);
        }
        percent -= share;
    }
    unreachable!("the shares add up to 100")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_follow_the_home_directory_table() {
        let sizes: Vec<u64> = (0..20_000).map(|index| draw_home_size(7, 1, index)).collect();
        let share = |limit: u64| sizes.iter().filter(|size| **size <= limit * 1024).count() as f64 / 20_000.0;
        for (limit, expected) in [(1, 0.33), (3, 0.54), (11, 0.77), (171, 0.97), (1707, 1.0)] {
            assert!((share(limit) - expected).abs() < 0.02, "up to {limit} KB: {}", share(limit));
        }
    }

    #[test]
    fn stream_bits_are_balanced_and_streams_differ() {
        let numbers: Vec<u64> = draw_stream(1, 2).take(10_000).collect();
        for bit in 0..64 {
            let set = numbers.iter().filter(|number| *number >> bit & 1 == 1).count();
            assert!((4800..5200).contains(&set), "bit {bit}: {set}");
        }
        assert_ne!(numbers[..9], draw_stream(1, 3).take(9).collect::<Vec<_>>());
        assert_eq!(numbers[..9], draw_stream(1, 2).take(9).collect::<Vec<_>>());
    }

    #[test]
    fn shuffled_index_is_a_permutation() {
        for count in [1, 2, 3, 16, 1000, 4096, 16_385] {
            let order =
                |seed| (0..count).map(|place| shuffled_index(seed, 4, count, place)).collect::<Vec<_>>();
            let mut one = order(1);
            assert!(
                count < 16
                    || (one != order(2) && one.windows(2).filter(|two| two[1] == two[0] + 1).count() < 9)
            );
            one.sort_unstable();
            assert_eq!(one, (0..count).collect::<Vec<_>>());
        }
    }

    #[test]
    fn shuffle_is_a_permutation_and_depends_on_the_seed() {
        let mut order = shuffled_indices(1, 2, 100);
        assert_ne!(order, shuffled_indices(2, 2, 100));
        order.sort_unstable();
        assert_eq!(order, (0..100).collect::<Vec<_>>());
    }
}
