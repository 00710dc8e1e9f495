//! The line of an output that represents it in messages.

/// Maximum number of characters of a first line that are shown.
const MAX_LINE_CHARS: usize = 120;

/// Returns the first line that is not empty, which represents an unrecognized output in messages; `None` if
/// there is none.
pub fn first_line(output: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(output);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    let shown = |c: char| if c.is_control() { ' ' } else { c };
    Some(line.chars().take(MAX_LINE_CHARS).map(shown).collect())
}
