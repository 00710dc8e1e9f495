//! Work on all processors at once. Results do not depend on how many there are.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{available_parallelism, scope};

/// Returns the results of a function for all items, in their order.
pub fn map<T: Sync, R: Send>(items: &[T], each: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = available_parallelism().map_or(1, usize::from).min(items.len());
    if threads < 2 {
        return items.iter().map(each).collect();
    }
    let next = AtomicUsize::new(0);
    let work = || {
        let positions = std::iter::from_fn(|| Some(next.fetch_add(1, Ordering::Relaxed)));
        let mine = positions.map_while(|place| Some((place, each(items.get(place)?))));
        mine.collect::<Vec<(usize, R)>>()
    };
    let mut results = scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let own = work();
        let joined =
            others.into_iter().flat_map(|other| other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        own.into_iter().chain(joined).collect::<Vec<_>>()
    });
    results.sort_unstable_by_key(|(place, _)| *place);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Returns the results of two functions that run at the same time.
pub fn both<A, B: Send>(one: impl FnOnce() -> A, other: impl FnOnce() -> B + Send) -> (A, B) {
    scope(|scope| {
        let other = scope.spawn(other);
        (one(), other.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_have_the_order_of_the_items() {
        let numbers: Vec<u64> = (0..1000).collect();
        let squares: Vec<u64> = numbers.iter().map(|number| number * number).collect();
        assert_eq!(map(&numbers, |number| number * number), squares);
        assert!(map(&[] as &[u64], |number| number * number).is_empty());
        assert_eq!(both(|| 1, || "two"), (1, "two"));
    }

    #[test]
    #[should_panic(expected = "item 7")]
    fn a_panic_is_passed_on() {
        map(&[1, 7, 3], |item| assert_ne!(*item, 7, "item 7"));
    }
}
