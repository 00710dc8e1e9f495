//! A fence around a library that panics on bytes that it does not expect.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    static IS_FENCED: Cell<bool> = const { Cell::new(false) };
}
static HOOK: Once = Once::new();

/// What `work` gives; `None` if it panicked, of which nobody else hears. Whatever it was working on is not to be used
/// again.
pub(super) fn fenced<T>(work: impl FnOnce() -> T) -> Option<T> {
    HOOK.call_once(|| {
        let others = take_hook();
        set_hook(Box::new(move |panic| {
            if !IS_FENCED.get() {
                others(panic)
            }
        }));
    });
    let before = IS_FENCED.replace(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    IS_FENCED.set(before);
    done.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_inside_is_an_answer() {
        assert_eq!(fenced(|| fenced(|| panic!("inside")).map(|()| 1)), Some(None));
        assert_eq!(fenced(|| 2), Some(2));
    }
}
