//! Headers that go with every request: a token, usually. They are read and sent, and never shown.

use std::fmt;

/// Headers, in order. Their values are not shown, not even by `Debug`.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Headers(Vec<(String, String)>);

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

/// Why headers cannot be read. What they hold is not in the message: it may be a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeadersError {
    /// A line or entry without a name and a value.
    #[error("entry {0} is no header: write `name=value`")]
    NoPair(usize),
    /// A name that HTTP does not have.
    #[error("entry {0} has a name that HTTP does not allow: letters, digits and `-` it may hold")]
    Name(usize),
    /// A value that HTTP does not have.
    #[error("the value of entry {0} holds a character that HTTP does not allow")]
    Value(usize),
}

impl Headers {
    /// Reads what a variable holds: `name=value,name=value`, values with `%xx` for what would disturb (OpenTelemetry's
    /// specification of exporters, after the W3C's Baggage).
    ///
    /// # Errors
    ///
    /// [`HeadersError`], with the number of the entry from 1.
    pub fn from_variable(text: &str) -> Result<Self, HeadersError> {
        let entries = text.split(',').enumerate().filter(|(_, entry)| !entry.trim().is_empty());
        let read = |(place, entry): (usize, &str)| {
            let (name, value) = entry.split_once('=').ok_or(HeadersError::NoPair(place + 1))?;
            header(place + 1, name, &percent_decoded(value).ok_or(HeadersError::Value(place + 1))?)
        };
        entries.map(read).collect::<Result<_, _>>().map(Self)
    }

    /// Reads what a file holds: `name=value` or `name: value` on each line, values as they are; lines that begin with `#`
    /// are remarks.
    ///
    /// # Errors
    ///
    /// [`HeadersError`], with the number of the line from 1.
    pub fn from_file(text: &str) -> Result<Self, HeadersError> {
        let lines = text.lines().enumerate();
        let lines = lines.filter(|(_, line)| !line.trim().is_empty() && !line.trim_start().starts_with('#'));
        let read = |(place, line): (usize, &str)| {
            let at = line.find(['=', ':']).ok_or(HeadersError::NoPair(place + 1))?;
            header(place + 1, &line[..at], &line[at + 1..])
        };
        lines.map(read).collect::<Result<_, _>>().map(Self)
    }

    /// Adds others; of those with one name the others win.
    pub fn and(mut self, others: &Self) -> Self {
        self.0.retain(|(name, _)| !others.0.iter().any(|(other, _)| other.eq_ignore_ascii_case(name)));
        self.0.extend(others.0.iter().cloned());
        self
    }

    /// Each name and value.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

fn header(entry: usize, name: &str, value: &str) -> Result<(String, String), HeadersError> {
    // Not `trim`: a line's end is no space, but the way into the next header.
    let (name, value) = (name.trim(), value.trim_matches([' ', '\t']));
    // The token of RFC 9110, 5.6.2.
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_token) {
        return Err(HeadersError::Name(entry));
    }
    if !value.bytes().all(|byte| byte == b'\t' || (b' '..0x7f).contains(&byte)) {
        return Err(HeadersError::Value(entry));
    }
    Ok((name.to_owned(), value.to_owned()))
}

/// `None` for a `%` without two hexadecimal digits, and for what is no text then.
pub fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = text.bytes();
    let mut decoded = vec![];
    while let Some(byte) = bytes.next() {
        decoded.push(if byte == b'%' { digit(bytes.next()?)? << 4 | digit(bytes.next()?)? } else { byte });
    }
    String::from_utf8(decoded).ok()
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pairs(headers: &Headers) -> Vec<(&str, &str)> {
        headers.iter().collect()
    }

    #[test]
    fn a_variable_holds_pairs_with_escapes() {
        let headers = Headers::from_variable("api-key=a%20b%2Cc, x=1=2,,").unwrap();
        assert_eq!(pairs(&headers), [("api-key", "a b,c"), ("x", "1=2")], "spaces around are none of it");
        assert_eq!(Headers::from_variable(""), Ok(Headers::default()));
        assert_eq!(Headers::from_variable("a=1,b"), Err(HeadersError::NoPair(2)));
        assert_eq!(Headers::from_variable("a b=1"), Err(HeadersError::Name(1)));
        for bad in ["a=%2", "a=%zz", "a=%0d%0aHost: evil", "a=%ff"] {
            assert_eq!(Headers::from_variable(bad), Err(HeadersError::Value(1)), "{bad}");
        }
    }

    #[test]
    fn a_file_holds_lines_as_they_are() {
        let headers = Headers::from_file("# mine\nAuthorization: Bearer a%20=b\n\nx=y\n").unwrap();
        assert_eq!(pairs(&headers), [("Authorization", "Bearer a%20=b"), ("x", "y")]);
        assert_eq!(Headers::from_file("\nsecret"), Err(HeadersError::NoPair(2)));
    }

    #[test]
    fn the_later_of_one_name_wins() {
        let base = Headers::from_variable("a=1,b=2").unwrap();
        let both = base.and(&Headers::from_variable("A=3").unwrap());
        assert_eq!(pairs(&both), [("b", "2"), ("A", "3")]);
    }

    #[test]
    fn no_value_is_ever_shown() {
        let headers = Headers::from_variable("authorization=Bearer%20secret").unwrap();
        assert_eq!(format!("{headers:?}"), r#"["authorization"]"#);
        let error = Headers::from_variable("a=1,secret").unwrap_err();
        assert!(!error.to_string().contains("secret"), "{error}");
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_and_nothing_breaks_out_of_its_line(text in any::<String>()) {
            for read in [Headers::from_variable(&text), Headers::from_file(&text)] {
                for (name, value) in read.iter().flat_map(Headers::iter) {
                    prop_assert!(!name.contains(['\r', '\n', ':', ' ']) && !value.contains(['\r', '\n']));
                }
            }
        }

        #[test]
        fn what_was_escaped_comes_back(value in "[ -~]{0,40}") {
            let escaped: String = value.bytes().map(|byte| format!("%{byte:02x}")).collect();
            let headers = Headers::from_variable(&format!("a={escaped}")).unwrap();
            prop_assert_eq!(pairs(&headers), [("a", value.trim_matches(' '))]);
        }
    }
}
