//! Prints to standard output and standard error. Control characters are escaped: with them, the name of a file on a share could move
//! the cursor or hide other lines.

use std::fmt::{Arguments, Display};
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt as _;

use longhaul_measure::platform;
use longhaul_view::render::terminal::visible;

use crate::exit;

/// Writes a text to standard output, without colours if that is no terminal. If it cannot be written, as on a full disk, the program
/// says so and ends. A reader that has closed the pipe has seen what it wanted, so that is no error.
pub fn write(text: Arguments<'_>) {
    write_if_read(text);
}

/// Like [`write`], for output without an end. Returns false if the reader has closed the pipe.
pub fn write_if_read(text: Arguments<'_>) -> bool {
    match anstream::stdout().write_all(printable(&text.to_string()).as_bytes()) {
        Ok(()) => true,
        Err(error) if error.kind() == ErrorKind::BrokenPipe => false,
        // The test data on a target is still to be removed.
        Err(error) if is_closed_terminal(&error, std::io::stdout()) => false,
        Err(error) => {
            // Standard error may be the same file.
            let _ = writeln!(anstream::stderr(), "longhaul: write to standard output: {error}");
            std::process::exit(exit::ERROR.into());
        }
    }
}

/// Returns whether an error of writing means that the output is a terminal that was closed. The error alone may also be that of a disk,
/// and `is_terminal` does not know a closed one.
fn is_closed_terminal(error: &io::Error, output: impl AsFd) -> bool {
    let facts = output.as_fd().try_clone_to_owned().and_then(|output| File::from(output).metadata());
    let is_disk = facts.is_ok_and(|facts| !facts.file_type().is_char_device());
    platform::error_name(error).as_deref() == Some("EIO") && !is_disk
}

/// Writes a text to standard error. Errors are ignored: there is no other place to report them.
pub fn write_error(text: Arguments<'_>) {
    let _ = anstream::stderr().write_all(printable(&text.to_string()).as_bytes());
}

/// Prints a text that is one line, also if a name in it has line ends.
pub fn print_line(text: impl Display) {
    write(format_args!("{}\n", visible(&text.to_string())));
}

/// Prints a text to standard error. Further lines in it, as of a tool's own message, are indented, so that a name with line ends is not
/// taken for another message.
pub fn print_error(text: impl Display) {
    write_error(format_args!("{}\n", indented(&text.to_string())));
}

fn indented(text: &str) -> String {
    text.lines().map(visible).collect::<Vec<_>>().join("\n  ")
}

/// Escapes control characters except line ends, tabs, and the colours of longhaul's own texts. JSON stays valid.
pub fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let kept = match next {
            '\n' | '\t' => 1,
            '\r' if rest.starts_with("\r\n") => 2,
            '\u{1b}' => colour_length(rest),
            next if next.is_control() => 0,
            next => next.len_utf8(),
        };
        let (known, after) = rest.split_at(kept);
        shown += known;
        rest = after;
        if kept == 0 {
            shown += &format!("\\u{:04x}", u32::from(next));
            rest = &rest[next.len_utf8()..];
        }
    }
    shown
}

/// Returns the length of the ANSI sequence at the beginning of a text that changes its colour. 0: it is another one.
fn colour_length(text: &str) -> usize {
    let parameters = text.strip_prefix("\u{1b}[").unwrap_or_default();
    let end = parameters.find(|c: char| !c.is_ascii_digit() && c != ';').unwrap_or(0);
    if parameters[end..].starts_with('m') { "\u{1b}[".len() + end + 1 } else { 0 }
}

/// Prints a text, as `std::print` does, but never panics.
macro_rules! print {
    ($($text:tt)*) => { $crate::output::write(format_args!($($text)*)) };
}

/// Prints a text and a line end, as `std::println` does, but never panics. A text with a name that others chose needs [`print_line`].
macro_rules! println {
    () => { $crate::output::print!("\n") };
    ($($text:tt)*) => { $crate::output::print!("{}\n", format_args!($($text)*)) };
}

/// Prints a message to standard error as [`print_error`] does, and never panics, unlike `std::eprintln`.
macro_rules! eprintln {
    ($($text:tt)*) => { $crate::output::print_error(format_args!($($text)*)) };
}

pub(crate) use {eprintln, print, println};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_terminal_is_told_from_a_broken_disk() {
        // EIO, on Linux and macOS.
        let failed = io::Error::from_raw_os_error(5);
        assert!(is_closed_terminal(&failed, File::open("/dev/null").unwrap()));
        assert!(!is_closed_terminal(&failed, tempfile::tempfile().unwrap()));
        assert!(!is_closed_terminal(&ErrorKind::StorageFull.into(), File::open("/dev/null").unwrap()));
    }

    #[test]
    fn further_lines_of_a_message_are_indented() {
        let text = "longhaul: left out a\nlonghaul: all is well\u{1b}[2J\n";
        assert_eq!(indented(text), "longhaul: left out a\n  longhaul: all is well\\u{1b}[2J");
    }

    #[test]
    fn only_line_ends_tabs_and_colours_are_not_escaped() {
        for text in ["two\nlines\tand a tab\r\n", "\u{1b}[1;31mred\u{1b}[0m", "\u{1b}[m", "größer"] {
            assert_eq!(printable(text), text);
        }
        for (text, shown) in [
            ("a\u{1b}[2Jb", "a\\u001b[2Jb"),
            ("a\u{1b}]0;title\u{7}", "a\\u001b]0;title\\u0007"),
            ("hidden\rshown", "hidden\\u000dshown"),
            ("\u{9b}2J\u{7f}", "\\u009b2J\\u007f"),
            ("end\u{1b}", "end\\u001b"),
            ("\u{1b}[31", "\\u001b[31"),
        ] {
            assert_eq!(printable(text), shown);
        }
    }
}
