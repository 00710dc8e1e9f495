//! Runs a future to its end: the rest of longhaul waits for an export on a thread of its own.

use std::future::Future;

use crate::Error;

/// Runs a future on this thread.
pub(crate) fn block_on<T>(future: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let started = |source: std::io::Error| {
        let source = object_store::Error::Generic { store: "runtime", source: Box::new(source) };
        Error::storage("start", &"the export")(source)
    };
    runtime.map_err(started)?.block_on(future)
}
