//! HTTP headers that are added to every request, usually an authorization token. Their values are never shown.

use std::fmt;

/// HTTP headers, in order. `Debug` shows only their names.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Headers(Vec<(String, String)>);

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

/// An error in the text of headers. The message does not quote the text, because it can contain a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeadersError {
    /// The line or entry with this number is not a `name=value` pair.
    #[error("entry {0} is not a header: write `name=value`")]
    NotAPair(usize),
    /// The name of the entry with this number is not a valid HTTP header name.
    #[error("the name of entry {0} is not a valid HTTP header name: use letters, digits and `-`")]
    InvalidName(usize),
    /// The value of the entry with this number contains a character that HTTP does not allow.
    #[error("the value of entry {0} contains a character that HTTP does not allow")]
    InvalidValue(usize),
}

impl Headers {
    /// Parses the value of an environment variable: `name=value,name=value`, with special characters in values
    /// encoded as `%xx` (OpenTelemetry's specification of exporters, based on W3C Baggage).
    ///
    /// # Errors
    ///
    /// [`HeadersError`], with the number of the entry from 1.
    pub fn from_variable(text: &str) -> Result<Self, HeadersError> {
        let entries = text.split(',').enumerate().filter(|(_, entry)| !entry.trim().is_empty());
        let read = |(index, entry): (usize, &str)| {
            let (name, value) = entry.split_once('=').ok_or(HeadersError::NotAPair(index + 1))?;
            parse_header(
                index + 1,
                name,
                &percent_decoded(value).ok_or(HeadersError::InvalidValue(index + 1))?,
            )
        };
        entries.map(read).collect::<Result<_, _>>().map(Self)
    }

    /// Parses the content of a headers file: `name=value` or `name: value` on each line, without any encoding.
    /// Lines that start with `#` are comments.
    ///
    /// # Errors
    ///
    /// [`HeadersError`], with the number of the line from 1.
    pub fn from_file(text: &str) -> Result<Self, HeadersError> {
        let lines = text.lines().enumerate();
        let lines = lines.filter(|(_, line)| !line.trim().is_empty() && !line.trim_start().starts_with('#'));
        let read = |(index, line): (usize, &str)| {
            let at = line.find(['=', ':']).ok_or(HeadersError::NotAPair(index + 1))?;
            parse_header(index + 1, &line[..at], &line[at + 1..])
        };
        lines.map(read).collect::<Result<_, _>>().map(Self)
    }

    /// Returns the headers plus `others`. If both have a header of the same name, the one from `others` is
    /// used.
    pub fn merged_with(mut self, others: &Self) -> Self {
        self.0.retain(|(name, _)| !others.0.iter().any(|(other, _)| other.eq_ignore_ascii_case(name)));
        self.0.extend(others.0.iter().cloned());
        self
    }

    /// Returns the name and value of each header.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

fn parse_header(entry: usize, name: &str, value: &str) -> Result<(String, String), HeadersError> {
    // Only spaces and tabs are trimmed. `trim` would also remove line breaks, which must be refused because
    // they could start another header (header injection).
    let (name, value) = (name.trim(), value.trim_matches([' ', '\t']));
    // `token` in RFC 9110, section 5.6.2.
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_token) {
        return Err(HeadersError::InvalidName(entry));
    }
    if !value.bytes().all(|byte| byte == b'\t' || (b' '..0x7f).contains(&byte)) {
        return Err(HeadersError::InvalidValue(entry));
    }
    Ok((name.to_owned(), value.to_owned()))
}

/// Decodes `%xx` escapes. `None`: a `%` is not followed by two hexadecimal digits, or the result is not UTF-8.
pub fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = text.bytes();
    let mut decoded = vec![];
    while let Some(byte) = bytes.next() {
        decoded.push(if byte == b'%' {
            hex_digit(bytes.next()?)? << 4 | hex_digit(bytes.next()?)?
        } else {
            byte
        });
    }
    String::from_utf8(decoded).ok()
}

fn hex_digit(byte: u8) -> Option<u8> {
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
    fn variable_contains_percent_encoded_pairs() {
        let headers = Headers::from_variable("api-key=a%20b%2Cc, x=1=2,,").unwrap();
        assert_eq!(pairs(&headers), [("api-key", "a b,c"), ("x", "1=2")], "spaces around a pair are ignored");
        assert_eq!(Headers::from_variable(""), Ok(Headers::default()));
        assert_eq!(Headers::from_variable("a=1,b"), Err(HeadersError::NotAPair(2)));
        assert_eq!(Headers::from_variable("a b=1"), Err(HeadersError::InvalidName(1)));
        for bad in ["a=%2", "a=%zz", "a=%0d%0aHost: evil", "a=%ff"] {
            assert_eq!(Headers::from_variable(bad), Err(HeadersError::InvalidValue(1)), "{bad}");
        }
    }

    #[test]
    fn file_values_are_not_decoded() {
        let headers = Headers::from_file("# mine\nAuthorization: Bearer a%20=b\n\nx=y\n").unwrap();
        assert_eq!(pairs(&headers), [("Authorization", "Bearer a%20=b"), ("x", "y")]);
        assert_eq!(Headers::from_file("\nsecret"), Err(HeadersError::NotAPair(2)));
    }

    #[test]
    fn later_header_of_the_same_name_wins() {
        let base = Headers::from_variable("a=1,b=2").unwrap();
        let both = base.merged_with(&Headers::from_variable("A=3").unwrap());
        assert_eq!(pairs(&both), [("b", "2"), ("A", "3")]);
    }

    #[test]
    fn debug_and_errors_show_no_values() {
        let headers = Headers::from_variable("authorization=Bearer%20secret").unwrap();
        assert_eq!(format!("{headers:?}"), r#"["authorization"]"#);
        let error = Headers::from_variable("a=1,secret").unwrap_err();
        assert!(!error.to_string().contains("secret"), "{error}");
    }

    proptest! {
        #[test]
        fn no_text_can_inject_a_second_header(text in any::<String>()) {
            for read in [Headers::from_variable(&text), Headers::from_file(&text)] {
                for (name, value) in read.iter().flat_map(Headers::iter) {
                    prop_assert!(!name.contains(['\r', '\n', ':', ' ']) && !value.contains(['\r', '\n']));
                }
            }
        }

        #[test]
        fn percent_encoded_values_are_decoded(value in "[ -~]{0,40}") {
            let escaped: String = value.bytes().map(|byte| format!("%{byte:02x}")).collect();
            let headers = Headers::from_variable(&format!("a={escaped}")).unwrap();
            prop_assert_eq!(pairs(&headers), [("a", value.trim_matches(' '))]);
        }
    }
}
