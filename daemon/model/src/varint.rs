//! Variable-length integers: LEB128 and zig-zag encoding, as in Protocol Buffers.

/// Appends `value` as LEB128: groups of seven bits, least significant group first.
pub fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Reads one value and advances `input` past it; `None` if the input is truncated or the value exceeds 64 bits.
pub fn take(input: &mut &[u8]) -> Option<u64> {
    // Fast path: most values fit in one byte, and one page of the web interface decodes millions of values.
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

/// Maps a signed number to an unsigned one, so that small absolute values stay small.
pub fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// Reverses [`zigzag`].
pub fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}
