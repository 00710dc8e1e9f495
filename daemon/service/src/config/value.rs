//! Validation of single values of the configuration file.

/// A problem at a byte offset in the configuration file.
pub struct InvalidValue {
    /// Byte offset of the value.
    pub offset: usize,
    /// Description of the problem and of a valid value.
    pub message: String,
}

/// Returns the value of a key if it lies within a range. `None`: the key is missing.
pub fn in_range<T: PartialOrd + std::fmt::Display>(
    value: Option<toml::Spanned<T>>,
    key: &str,
    range: std::ops::RangeInclusive<T>,
) -> Result<Option<T>, InvalidValue> {
    match value {
        Some(value) if !range.contains(value.get_ref()) => Err(InvalidValue {
            offset: value.span().start,
            message: format!("`{key}` must be between {} and {}", range.start(), range.end()),
        }),
        value => Ok(value.map(toml::Spanned::into_inner)),
    }
}
