//! Prints to standard output and standard error.

use std::fmt::Arguments;
use std::io::{ErrorKind, Write};

use crate::exit;

/// Writes a text to standard output, without colours if that is no terminal. If it cannot be written, as on a full disk, the program
/// says so and ends. A reader that has closed the pipe has seen what it wanted, so that is no error.
pub fn write(text: Arguments<'_>) {
    write_if_read(text);
}

/// Like [`write`], for output without an end. Returns false if the reader has closed the pipe.
pub fn write_if_read(text: Arguments<'_>) -> bool {
    match anstream::stdout().write_fmt(text) {
        Ok(()) => true,
        Err(error) if error.kind() == ErrorKind::BrokenPipe => false,
        Err(error) => {
            // Standard error may be the same file.
            let _ = writeln!(anstream::stderr(), "longhaul: write to standard output: {error}");
            std::process::exit(exit::ERROR.into());
        }
    }
}

/// Writes a text to standard error. Errors are ignored: there is no other place to report them.
pub fn write_error(text: Arguments<'_>) {
    let _ = anstream::stderr().write_fmt(text);
}

/// Prints a text, as `std::print` does, but never panics.
macro_rules! print {
    ($($text:tt)*) => { $crate::output::write(format_args!($($text)*)) };
}

/// Prints a text and a line end, as `std::println` does, but never panics.
macro_rules! println {
    () => { $crate::output::print!("\n") };
    ($($text:tt)*) => { $crate::output::print!("{}\n", format_args!($($text)*)) };
}

/// Prints a text and a line end to standard error, as `std::eprintln` does, but never panics.
macro_rules! eprintln {
    ($($text:tt)*) => { $crate::output::write_error(format_args!("{}\n", format_args!($($text)*))) };
}

pub(crate) use {eprintln, print, println};
