//! Operations that are described later, when their turn has come.

use longhaul_recording::TraceAction;

/// Function that describes an operation by calling back with it. It owns the paths.
pub type Work = Box<dyn FnOnce(&mut dyn FnMut(TraceAction<'_>)) + Send>;

/// Returns an operation on a path.
pub fn on_path(
    path: Vec<u8>,
    action: impl for<'path> FnOnce(&'path [u8]) -> TraceAction<'path> + Send + 'static,
) -> Work {
    Box::new(move |tell| tell(action(&path)))
}

/// Returns an operation on an open file.
pub fn on_handle(action: TraceAction<'static>) -> Work {
    Box::new(move |tell| tell(action))
}

/// Returns a renaming.
pub fn on_rename(from: Vec<u8>, to: Vec<u8>) -> Work {
    Box::new(move |tell| tell(TraceAction::Rename { from: &from, to: &to }))
}

/// Returns the making of a second name.
pub fn on_link(from: Vec<u8>, to: Vec<u8>) -> Work {
    Box::new(move |tell| tell(TraceAction::HardLink { from: &from, to: &to }))
}
