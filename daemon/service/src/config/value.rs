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

/// Returns the end of a message about an unknown name: the most similar known name, or all of them.
pub(super) fn did_you_mean(word: &str, known: &[&str]) -> String {
    let nearest =
        known.iter().max_by(|a, b| strsim::jaro_winkler(word, a).total_cmp(&strsim::jaro_winkler(word, b)));
    match nearest {
        // 0.7: a typing error scores higher, an unrelated word lower.
        Some(nearest) if strsim::jaro_winkler(word, nearest) > 0.7 => format!("; did you mean `{nearest}`?"),
        _ => format!("; valid names are {}", known.join(", ")),
    }
}
