//! Syntax of one call in the output of strace (src/strace.c `printleader`, src/syscall.c, src/util.c `printpathn` and
//! `print_quoted_string_ex` of strace 6.1).

use std::time::Duration;

pub(super) use crate::import::numbers::number;
use crate::import::numbers::seconds;

/// A line of strace: the thread, the time, and the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Line<'line> {
    /// Thread; 0 without `-f`.
    pub(super) thread: u64,
    /// Time since 1970, or since midnight with `-t` and `-tt`; `None` without times.
    pub(super) time: Option<Duration>,
    pub(super) rest: &'line [u8],
}

/// A call and its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Call<'line> {
    pub(super) name: &'line [u8],
    pub(super) arguments: Vec<&'line [u8]>,
    pub(super) answer: Answer<'line>,
    pub(super) took: Option<Duration>,
}

/// Answer of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer<'line> {
    /// A number, and the path of the descriptor that it is, with `-y`.
    Number(Returned<'line>),
    /// Name of the error.
    Error(&'line [u8]),
    /// `?`: the thread ended, or the call was restarted.
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Returned<'line> {
    pub(super) number: u64,
    /// Text between `<` and `>` behind the number.
    pub(super) annotation: Option<&'line [u8]>,
}

/// Splits the thread and the time from a line.
pub(super) fn line(text: &[u8]) -> Line<'_> {
    let text = text.trim_ascii();
    let (mut thread, mut rest) = (0, text);
    if let Some(after) = rest.strip_prefix(b"[pid ") {
        let end = after.iter().position(|byte| *byte == b']').unwrap_or(0);
        thread = number(after[..end].trim_ascii()).unwrap_or(0);
        rest = after.get(end + 1..).unwrap_or_default().trim_ascii_start();
    }
    let mut time = None;
    // A number with a point or colons is a time, another one a thread.
    while let Some(end) = rest.iter().position(|byte| *byte == b' ') {
        let word = &rest[..end];
        if time.is_none()
            && let Some(parsed) = seconds(word)
        {
            time = Some(parsed);
        } else if thread == 0
            && time.is_none()
            && let Some(parsed) = number(word)
        {
            thread = parsed;
        } else {
            break;
        }
        rest = rest[end..].trim_ascii_start();
    }
    Line { thread, time, rest }
}

/// Parses a complete call: `name(arguments) = answer <time>`.
pub(super) fn call(text: &[u8]) -> Option<Call<'_>> {
    let open = text.iter().position(|byte| *byte == b'(')?;
    let (name, rest) = (&text[..open], &text[open + 1..]);
    if name.is_empty() || !name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_') {
        return None;
    }
    let (arguments, end) = arguments(rest)?;
    let after = rest.get(end + 1..)?.trim_ascii_start().strip_prefix(b"=")?.trim_ascii();
    let (after, took) = split_duration(after);
    Some(Call { name, arguments, answer: answer(after)?, took })
}

/// Splits the arguments at the commas of the outermost level; also returns the position of the closing parenthesis.
fn arguments(text: &[u8]) -> Option<(Vec<&[u8]>, usize)> {
    let mut found = vec![];
    let (mut depth, mut start, mut index) = (0usize, 0, 0);
    while index < text.len() {
        match text[index] {
            b'"' => index = end_of_string(text, index)?,
            b'<' if begins_annotation(text, index) => index = end_of_annotation(text, index)?,
            b'(' | b'[' | b'{' => depth += 1,
            b')' if depth == 0 => {
                found.push(text[start..index].trim_ascii());
                return Some((found, index));
            }
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                found.push(text[start..index].trim_ascii());
                start = index + 1;
            }
            _ => {}
        }
        index += 1;
    }
    None
}

/// Returns the position of the quote that ends a string.
fn end_of_string(text: &[u8], start: usize) -> Option<usize> {
    let mut index = start + 1;
    loop {
        match text.get(index)? {
            b'\\' => index += 2,
            b'"' => return Some(index),
            _ => index += 1,
        }
    }
}

/// Tells whether `<` begins the path of a descriptor: `3</path>` or `AT_FDCWD</path>`, not `1<<3`.
fn begins_annotation(text: &[u8], index: usize) -> bool {
    let before = index.checked_sub(1).map(|before| text[before]);
    let next = text.get(index + 1).copied();
    before.is_some_and(|byte| byte.is_ascii_digit() || byte == b'D') && next.is_some_and(|byte| byte != b'<')
}

/// Returns the position of the `>` that ends an annotation. In paths, strace writes both signs as octal numbers; others may
/// hold arrows between addresses in brackets, or a device in signs of its own.
fn end_of_annotation(text: &[u8], start: usize) -> Option<usize> {
    let mut depth = 0usize;
    for (index, byte) in text.iter().enumerate().skip(start) {
        match byte {
            b'<' => depth += 1,
            b'>' if text[index - 1] == b'-'
                && text.get(index + 1).is_some_and(|next| *next == b'[' || next.is_ascii_digit()) => {}
            b'>' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(index);
        }
    }
    None
}

/// Splits `<0.000123>` from the end.
fn split_duration(text: &[u8]) -> (&[u8], Option<Duration>) {
    let inner = text.strip_suffix(b">").and_then(|text| {
        let start = text.iter().rposition(|byte| *byte == b'<')?;
        Some((text[..start].trim_ascii_end(), seconds(&text[start + 1..])?))
    });
    inner.map_or((text, None), |(rest, took)| (rest, Some(took)))
}

fn answer(text: &[u8]) -> Option<Answer<'_>> {
    if let Some(error) = text.strip_prefix(b"-1 ") {
        return Some(Answer::Error(error.split(|byte| *byte == b' ').next()?));
    }
    if text.starts_with(b"?") {
        return Some(Answer::Unknown);
    }
    let descriptor = descriptor(text.split(|byte| *byte == b' ').next()?);
    let with_path = descriptor.or_else(|| descriptor_with_spaces(text))?;
    Some(Answer::Number(with_path))
}

fn descriptor_with_spaces(text: &[u8]) -> Option<Returned<'_>> {
    let start = text.iter().position(|byte| *byte == b'<')?;
    let end = end_of_annotation(text, start)?;
    descriptor(&text[..=end])
}

/// Parses `3`, `3</path>` and `3</path>(deleted)`.
pub(super) fn descriptor(text: &[u8]) -> Option<Returned<'_>> {
    let Some(start) = text.iter().position(|byte| *byte == b'<') else {
        return Some(Returned { number: number(text)?, annotation: None });
    };
    let end = end_of_annotation(text, start)?;
    Some(Returned { number: number(&text[..start])?, annotation: Some(&text[start + 1..end]) })
}

/// Returns the bytes of a quoted string; `None` if it is not one, or if strace cut it (`"abc"...`).
pub(super) fn string(text: &[u8]) -> Option<Vec<u8>> {
    unescaped(text.strip_prefix(b"\"")?.strip_suffix(b"\"")?)
}

/// Resolves the escapes of a string or of the path of a descriptor.
pub(super) fn unescaped(text: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte == b'\\' {
            bytes.push(escape(&mut rest)?);
        } else {
            bytes.push(byte);
        }
    }
    Some(bytes)
}

fn escape(rest: &mut &[u8]) -> Option<u8> {
    let (&byte, after) = rest.split_first()?;
    let digits = |text: &[u8], most: usize, radix: u32| {
        text.iter().take(most).take_while(|byte| char::from(**byte).is_digit(radix)).count()
    };
    let (length, radix, skipped) = match byte {
        b'0'..=b'7' => (digits(rest, 3, 8), 8, 0),
        b'x' => (digits(after, 2, 16), 16, 1),
        _ => {
            *rest = after;
            return Some(match byte {
                b'n' => b'\n',
                b't' => b'\t',
                b'r' => b'\r',
                b'v' => 0x0b,
                b'f' => 0x0c,
                other => other,
            });
        }
    };
    let text = std::str::from_utf8(&rest[skipped..skipped + length]).ok()?;
    *rest = &rest[skipped + length..];
    u32::from_str_radix(text, radix).ok().map(|value| value as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_and_time_are_split_from_a_line() {
        for (text, thread, seconds) in [
            ("5997  1795681558.119299 close(3) = 0", 5997, Some(1_795_681_558.119_299)),
            ("[pid  5997] 1795681558.119299 close(3) = 0", 5997, Some(1_795_681_558.119_299)),
            ("1795681558.119299 close(3) = 0", 0, Some(1_795_681_558.119_299)),
            ("5997 12:00:01.5 close(3) = 0", 5997, Some(43_201.5)),
            ("5997 close(3) = 0", 5997, None),
            ("close(3) = 0", 0, None),
        ] {
            let line = line(text.as_bytes());
            assert_eq!((line.thread, line.time.map(|time| time.as_secs_f64())), (thread, seconds), "{text}");
            assert_eq!(line.rest, b"close(3) = 0", "{text}");
        }
    }

    #[test]
    fn arguments_are_split_outside_strings_and_structures() {
        let text = br#"openat(AT_FDCWD</a\74b\76, c>, "x,\"y)", O_RDONLY) = 3</a/x,"y)> <0.000036>"#;
        let call = call(text).unwrap();
        let arguments: [&[u8]; 3] = [br#"AT_FDCWD</a\74b\76, c>"#, br#""x,\"y)""#, b"O_RDONLY"];
        assert_eq!(call.arguments, arguments);
        assert_eq!(call.took, Some(Duration::from_micros(36)));
        let Answer::Number(returned) = call.answer else { panic!("{call:?}") };
        assert_eq!((returned.number, returned.annotation), (3, Some(&br#"/a/x,"y)"#[..])));
    }

    #[test]
    fn sockets_devices_and_shifts_are_no_obstacle() {
        for text in [
            "write(4<TCP:[10.0.0.1:5->10.0.0.2:80]>, \"x\", 1) = 1",
            "write(1</dev/pts/0<char 136:0>>, \"x\", 1) = 1 <0.1>",
            "capset({}, {effective=1<<CAP_CHOWN, permitted=0}, 0) = 0",
            "poll([{fd=3<UNIX-STREAM:[7->8]>, events=POLLIN}], 1, 0) = 1 ([{fd=3, revents=POLLIN}])",
        ] {
            assert!(call(text.as_bytes()).is_some_and(|call| call.arguments.len() == 3), "{text}");
        }
    }

    #[test]
    fn escapes_become_bytes() {
        let text = string(br#""a\303\251\n\"\\\x41\0""#).unwrap();
        assert_eq!(text, "aé\n\"\\A\0".as_bytes());
        assert_eq!(string(br#""cut"..."#), None);
    }

    #[test]
    fn truncated_calls_are_refused() {
        let text = br#"openat(AT_FDCWD</a>, "x", O_RDONLY) = 3"#;
        assert!((0..text.len() - 1).all(|length| call(&text[..length]).is_none()));
    }
}
