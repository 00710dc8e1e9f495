//! LEB128 and zig-zag, as in protocol buffers.

/// Appends `value` in groups of seven bits, least significant first.
pub fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Takes one value off the front; `None` if the input ends early or the value has more than 64 bits.
pub fn take(input: &mut &[u8]) -> Option<u64> {
    // Most are small, and a page reads millions of them.
    if let [byte @ 0..0x80, rest @ ..] = *input {
        *input = rest;
        return Some(u64::from(*byte));
    }
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = input.split_first()?;
        *input = rest;
        let bits = u64::from(byte & 0x7f);
        if bits << shift >> shift != bits {
            return None;
        }
        value |= bits << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// Maps small negative and positive numbers to small unsigned ones.
pub fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// Undoes [`zigzag`].
pub fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}
