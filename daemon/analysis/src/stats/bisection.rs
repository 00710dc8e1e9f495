//! Bisection.

/// Maximum number of bisections. Far more than the 53 bits of a double need, unless the boundary is close to zero.
const MAX_BISECTIONS: usize = 100;

/// Returns the two values on both sides of a boundary between `inside` and `outside`: the last one inside and the first one
/// outside.
pub(crate) fn bisect(mut inside: f64, mut outside: f64, is_inside: impl Fn(f64) -> bool) -> (f64, f64) {
    for _ in 0..MAX_BISECTIONS {
        let middle = f64::midpoint(inside, outside);
        // Neighbouring doubles have none between them.
        if middle == inside || middle == outside {
            break;
        }
        *(if is_inside(middle) { &mut inside } else { &mut outside }) = middle;
    }
    (inside, outside)
}
