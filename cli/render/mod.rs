//! Renders what only the command line shows; all other screens are in `longhaul_view::screens`.

pub mod log;
pub mod preset;
pub mod selfcheck;

use longhaul_view::Document;
use longhaul_view::render::terminal;

/// Prints a document to standard output, without colours if that is no terminal.
pub fn print(document: &Document) {
    crate::output::print!("{}", terminal::render(document));
}
