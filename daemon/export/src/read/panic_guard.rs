//! Catches panics of the parquet crate, which panics on some damaged files.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}
static PANIC_HOOK: Once = Once::new();

/// Returns the result of `work`. `None`: it panicked; the panic message is suppressed. Values that `work` was
/// changing must not be used afterwards.
pub(super) fn catch_panic<T>(work: impl FnOnce() -> T) -> Option<T> {
    PANIC_HOOK.call_once(|| {
        // The panic hook is global to the process. This one stays silent only for the guarded thread and passes all
        // other panics on.
        let previous = take_hook();
        set_hook(Box::new(move |panic| {
            if !IS_GUARDED.get() {
                previous(panic)
            }
        }));
    });
    let was_guarded = IS_GUARDED.replace(true);
    let result = catch_unwind(AssertUnwindSafe(work));
    IS_GUARDED.set(was_guarded);
    result.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_panic_returns_none() {
        assert_eq!(catch_panic(|| catch_panic(|| panic!("inside")).map(|()| 1)), Some(None));
        assert_eq!(catch_panic(|| 2), Some(2));
    }
}
